/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_RUN_H
#define PERF_RUN_H

#include "histogram.h"
#include "session.h"

/* What one run gave, as a side reports it. */
struct perf_result {
	struct perf_work work;
	unsigned int partners;
	unsigned int pairs;	   /* of endpoints, one here and one there */
	struct perf_received tx;   /* from this side, measured by the receivers */
	struct perf_received rx;   /* to this side */
	struct perf_received all;  /* what the servers got from all of their clients */
	struct perf_histogram rtt; /* lat, on a client: whole round trips, ns */
	uint64_t rtt_ns;	   /* the round trips together */
};

/** The work of one mode and size, as the options want it with these partners. */
void perf_run_work(const struct perf_session *s, enum perf_mode mode, size_t size,
		   struct perf_work *work);

/** Client: do one run with all peers. 0, or -1 with perf_error() set. */
int perf_run_client(struct perf_session *s, const struct perf_work *work, struct perf_result *r);

/** Server: wait for the next run and do it. 0, 1 if all clients said goodbye instead, or -1. */
int perf_run_server(struct perf_session *s, struct perf_result *r);

#endif
