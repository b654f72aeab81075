/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "error.h"

/* Pure text to number; nothing is kept here. */

static int scaled(const char *text, const char *end, uint64_t unit, uint64_t max, uint64_t *out)
{
	uint64_t n;
	char *stop;

	if (*text < '0' || *text > '9')
		return perf_fail("'%s' is not a number", text);
	errno = 0;
	n = strtoull(text, &stop, 10);
	if (errno || stop == text)
		return perf_fail("'%s' is not a number", text);
	if (stop < end) {
		static const char units[] = "kmg";
		const char *u = strchr(units, *stop | 0x20);
		uint64_t factor = 1;

		if (stop + 1 != end || !u)
			return perf_fail("'%s' is not a number with k, m or g", text);
		for (; u >= units; u--)
			factor *= unit;
		if (n > UINT64_MAX / factor)
			return perf_fail("%s is more than %llu", text, (unsigned long long)max);
		n *= factor;
	}
	if (n > max)
		return perf_fail("%s is more than %llu", text, (unsigned long long)max);
	*out = n;
	return 0;
}

int perf_value_count(const char *text, uint64_t max, uint64_t *out)
{
	return scaled(text, text + strlen(text), 1000, max, out);
}

int perf_value_size(const char *text, uint64_t max, uint64_t *out)
{
	return scaled(text, text + strlen(text), 1024, max, out);
}

int perf_value_time(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"m", 60e9}};
	double value;
	char *stop;
	size_t i;

	value = strtod(text, &stop);
	if (*text < '0' || *text > '9' || stop == text || !(value < 1e9))
		return perf_fail("'%s' is not a time", text);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(stop, units[i].name) == 0) {
			*ns = (uint64_t)(value * units[i].ns + 0.5);
			return 0;
		}
	}
	return perf_fail("'%s' is not a time with ns, us, ms, s or m", text);
}

static int sizes_add(size_t *sizes, unsigned int *used, unsigned int room, uint64_t size)
{
	if (*used == room)
		return perf_fail("more than %u sizes", room);
	sizes[(*used)++] = (size_t)size;
	return 0;
}

static int sizes_range(const char *item, const char *dash, uint64_t max, size_t *sizes,
		       unsigned int *used, unsigned int room)
{
	uint64_t low = 0, high = 0, size;

	if (scaled(item, dash, 1024, max, &low) || perf_value_size(dash + 1, max, &high))
		return -1;
	if (low > high)
		return perf_fail("the sizes %s run backwards", item);
	if (low == 0 && sizes_add(sizes, used, room, 0))
		return -1;
	for (size = 1; size <= high; size <<= 1) {
		if (size >= low && sizes_add(sizes, used, room, size))
			return -1;
	}
	return 0;
}

int perf_value_sizes(const char *text, uint64_t max, size_t *sizes, unsigned int *n)
{
	char copy[512], *rest = copy;
	const char *item, *dash;
	unsigned int used = 0;
	uint64_t size;

	if (strlen(text) >= sizeof(copy))
		return perf_fail("the list of sizes is too long");
	strcpy(copy, text);
	while ((item = strsep(&rest, ","))) {
		if (strcmp(item, "all") == 0)
			item = "1-1m";
		dash = strchr(item, '-');
		if (dash) {
			if (sizes_range(item, dash, max, sizes, &used, *n))
				return -1;
		} else if (perf_value_size(item, max, &size) || sizes_add(sizes, &used, *n, size)) {
			return -1;
		}
	}
	if (used == 0)
		return perf_fail("'%s' holds no power of two", text);
	*n = used;
	return 0;
}
