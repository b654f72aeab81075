/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_CLOCK_H
#define PERF_CLOCK_H

#include <stdint.h>
#include <time.h>

#define PERF_NS_PER_S UINT64_C(1000000000)
#define PERF_NS_PER_MS UINT64_C(1000000)

/** @return nanoseconds of a clock that never goes back; some 20 ns a call. */
static inline uint64_t perf_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * PERF_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
