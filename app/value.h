/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_VALUE_H
#define PERF_VALUE_H

#include <stddef.h>
#include <stdint.h>

/* Readers of what users write as option values. All return 0 or -1 with perf_error() set. */

/** A count, decimal, with k, m or g for 10^3, 10^6, 10^9. */
int perf_value_count(const char *text, uint64_t max, uint64_t *out);

/** A size in bytes, with k, m or g for 2^10, 2^20, 2^30. */
int perf_value_size(const char *text, uint64_t max, uint64_t *out);

/** A time with unit ns, us, ms, s or m; a number alone is seconds. Fractions are taken. */
int perf_value_time(const char *text, uint64_t *ns);

/**
 * A list of sizes: single ones, ranges A-B of the powers of two between A and B, and "all", which
 * is 1-1m; parted by commas.
 * @param n  in: places in sizes; out: how many were written, at least 1
 */
int perf_value_sizes(const char *text, uint64_t max, size_t *sizes, unsigned int *n);

#endif
