/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_HISTOGRAM_H
#define PERF_HISTOGRAM_H

#include <stdint.h>

/*
 * A logarithmic histogram of 64-bit values: each power of two is cut into 2^PERF_HISTOGRAM_BITS
 * equal steps, so a value comes back at most 1/128 too large, whatever its size.
 */
enum {
	PERF_HISTOGRAM_BITS = 7,
	PERF_HISTOGRAM_STEPS = 1 << PERF_HISTOGRAM_BITS,
	PERF_HISTOGRAM_BUCKETS = (64 - PERF_HISTOGRAM_BITS + 1) * PERF_HISTOGRAM_STEPS,
};

struct perf_histogram {
	uint64_t count;
	uint64_t sum;
	uint64_t min;
	uint64_t max;
	uint32_t buckets[PERF_HISTOGRAM_BUCKETS];
};

void perf_histogram_init(struct perf_histogram *h);

/** Count one value. */
void perf_histogram_add(struct perf_histogram *h, uint64_t value);

/** Count all that from has counted. */
void perf_histogram_merge(struct perf_histogram *h, const struct perf_histogram *from);

/**
 * @param per_million  the share of values that are no larger: 500000 is the median
 * @return the upper edge of the bucket that holds it, never above max; 0 if nothing was counted
 */
uint64_t perf_histogram_quantile(const struct perf_histogram *h, uint32_t per_million);

/** @return the mean, 0 if nothing was counted. */
double perf_histogram_mean(const struct perf_histogram *h);

#endif
