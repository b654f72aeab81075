/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "msg/freelist.h"

#include <errno.h>
#include <stdlib.h>

#include "msg/engine.h"

int pmf_freelist_open(struct pmf_freelist *f, size_t bytes, uint32_t size, bool many)
{
	f->stride = (bytes + PMF_CACHE_LINE - 1) & ~(size_t)(PMF_CACHE_LINE - 1);
	f->size = size;
	f->mem = aligned_alloc(PMF_CACHE_LINE, f->stride * size);
	f->ring = pmf_ring_open(size, RING_F_SP_ENQ | (many ? RING_F_MC_RTS_DEQ : RING_F_SC_DEQ));
	if (!f->mem || !f->ring)
		return -ENOMEM;
	memset(f->mem, 0, f->stride * size);
	return 0;
}

void pmf_freelist_close(struct pmf_freelist *f)
{
	free(f->ring);
	free(f->mem);
}

void *pmf_freelist_fresh(struct pmf_freelist *f)
{
	uint32_t n = atomic_load_explicit(&f->fresh, memory_order_relaxed);

	do {
		if (n == f->size)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&f->fresh, &n, n + 1, memory_order_relaxed,
							memory_order_relaxed));
	return pmf_freelist_at(f, n);
}
