/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "histogram.h"

#include <string.h>

/* The buckets of one histogram, and nothing else: no memory is allocated here. */

static unsigned int bucket_of(uint64_t value)
{
	unsigned int shift;

	if (value < PERF_HISTOGRAM_STEPS)
		return (unsigned int)value;
	shift = 63 - (unsigned int)__builtin_clzll(value) - PERF_HISTOGRAM_BITS;
	/* The leading bit moves the index on by one power of two, hence no minus here. */
	return shift * PERF_HISTOGRAM_STEPS + (unsigned int)(value >> shift);
}

static uint64_t upper_edge(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < 2 * PERF_HISTOGRAM_STEPS)
		return bucket;
	shift = bucket / PERF_HISTOGRAM_STEPS - 1;
	return (((uint64_t)(bucket % PERF_HISTOGRAM_STEPS) + PERF_HISTOGRAM_STEPS + 1) << shift) -
	       1;
}

void perf_histogram_init(struct perf_histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void perf_histogram_add(struct perf_histogram *h, uint64_t value)
{
	h->buckets[bucket_of(value)]++;
	h->count++;
	h->sum += value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
}

void perf_histogram_merge(struct perf_histogram *h, const struct perf_histogram *from)
{
	unsigned int i;

	for (i = 0; i < PERF_HISTOGRAM_BUCKETS; i++)
		h->buckets[i] += from->buckets[i];
	h->count += from->count;
	h->sum += from->sum;
	if (from->min < h->min)
		h->min = from->min;
	if (from->max > h->max)
		h->max = from->max;
}

uint64_t perf_histogram_quantile(const struct perf_histogram *h, uint32_t per_million)
{
	uint64_t seen = 0, rank;
	unsigned int i;

	if (h->count == 0)
		return 0;
	rank = (uint64_t)((double)h->count * per_million / 1e6 + 0.5);
	if (rank == 0)
		rank = 1;
	for (i = 0; i < PERF_HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= rank)
			return upper_edge(i) < h->max ? upper_edge(i) : h->max;
	}
	return h->max;
}

double perf_histogram_mean(const struct perf_histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
