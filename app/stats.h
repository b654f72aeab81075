/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_STATS_H
#define PERF_STATS_H

#include "session.h"

/**
 * Print the provider's counters, those that are not zero unless all is set.
 * @return 0; -1 with perf_error() set if the provider has none
 */
int perf_stats_show(struct perf_session *s, bool all);

/** Print what the provider knows of each peer. 0 or -1 as above. */
int perf_stats_peers(struct perf_session *s);

#endif
