/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "error.h"

/* One mapping each; whoever opened it owns it. */

int perf_region_open(struct perf_region *r, struct perf_fabric *f, size_t len)
{
	static uint64_t key;
	int rc;

	memset(r, 0, sizeof(*r));
	len = (len + 4095) & ~(size_t)4095;
	r->base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->base == MAP_FAILED) {
		r->base = NULL;
		return perf_fail("no memory for %zu bytes of buffers: %s", len, strerror(errno));
	}
	r->len = len;
	madvise(r->base, len, MADV_HUGEPAGE);
	memset(r->base, 0, len);
	if (!f->mr_local)
		return 0;
	rc = fi_mr_reg(f->domain, r->base, len, FI_SEND | FI_RECV, 0, key++, 0, &r->mr, NULL);
	if (rc) {
		perf_region_close(r);
		return perf_fail("%zu bytes cannot be registered: %s", len, fi_strerror(-rc));
	}
	r->desc = fi_mr_desc(r->mr);
	return 0;
}

void perf_region_close(struct perf_region *r)
{
	if (r->mr)
		fi_close(&r->mr->fid);
	if (r->base)
		munmap(r->base, r->len);
	memset(r, 0, sizeof(*r));
}
