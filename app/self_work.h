/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_SELF_WORK_H
#define PERF_SELF_WORK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "control.h"
#include "endpoint.h"
#include "histogram.h"
#include "region.h"

/* Two endpoints of one domain and the thread that works with both. */

struct perf_side {
	struct perf_endpoint endpoint;
	struct perf_region rx; /* as many buffers as receives are posted */
	fi_addr_t peer;	       /* the other side */
	uint64_t sent;
	uint64_t received;
};

struct perf_both {
	const struct perf_options *options;
	struct perf_fabric fabric;
	struct perf_region tx;
	struct perf_side sides[2];
	enum perf_mode mode;
	size_t size;
	bool inject;
	bool (*stop)(void *arg); /* the user wants the end; any thread */
	atomic_bool *failed;	 /* another pair's thread has */
	/* results */
	struct perf_histogram rtt; /* lat: whole round trips, ns */
	struct perf_received got; /* lat: round trips; else messages that came to the second side */
};

/** Post a receive of the size into @p buf. 0, or -1 with perf_error() set. */
int perf_both_receive(struct perf_both *b, struct perf_side *s, uint8_t *buf);

/** Do what the mode says, for the count or the duration of the options. 0, or -1 with a reason. */
int perf_both_work(struct perf_both *b);

#endif
