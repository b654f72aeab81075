/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_REGION_H
#define PERF_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "fabric.h"

/* Memory that messages are sent from and received into, registered where that is asked for. */
struct perf_region {
	uint8_t *base;
	size_t len;
	struct fid_mr *mr;
	void *desc;
};

/** Map len zeroed bytes (touched, in huge pages if the kernel likes). 0, or -1 with a reason. */
int perf_region_open(struct perf_region *r, struct perf_fabric *f, size_t len);

void perf_region_close(struct perf_region *r);

#endif
