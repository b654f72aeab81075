/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_WORK_H
#define PERF_WORK_H

#include "histogram.h"
#include "station.h"

/* The loops that are measured. All return 0, or -1 with perf_error() set. */

/**
 * Ping-pong, one message under way, the partners in turn.
 * @param h   counts whole round trips in ns, after the warm-up
 * @param ns  how long they took together
 */
int perf_lat_client(struct perf_station *st, struct perf_histogram *h, uint64_t *ns);

/** Answer each message until all clients are done. */
int perf_lat_server(struct perf_station *st);

/** Send, receive or both, as the work says, until all that was sent has come. */
int perf_stream(struct perf_station *st);

/** Poll until every send is completed. */
int perf_drain(struct perf_station *st);

#endif
