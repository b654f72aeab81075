/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The free transfers of one direction. Those that came back are taken before those that were never
 * used: a program with few messages under way then touches few transfers, and they stay in its
 * core's cache. Posting threads take, the engine's owner puts.
 */
#ifndef PMF_MSG_FREELIST_H
#define PMF_MSG_FREELIST_H

#include <rte_ring.h>
#include <stdatomic.h>

#include "pmf_common.h"
#include "pmf_tsan.h"

struct pmf_freelist {
	struct rte_ring *ring; /* that came back */
	uint8_t *mem;	       /* zeroed; size × stride bytes, on a cache line */
	size_t stride;
	uint32_t size;
	_Atomic uint32_t fresh; /* from here on never used */
};

/** @param many  whether posting threads may be several. @return 0, -ENOMEM */
int pmf_freelist_open(struct pmf_freelist *f, size_t bytes, uint32_t size, bool many);
void pmf_freelist_close(struct pmf_freelist *f);

static inline void *pmf_freelist_at(const struct pmf_freelist *f, uint32_t i)
{
	return f->mem + i * f->stride;
}

/** One that was never used. @return NULL: there is none */
void *pmf_freelist_fresh(struct pmf_freelist *f);

/** @return NULL: all are in use */
static inline void *pmf_freelist_take(struct pmf_freelist *f)
{
	void *entry;

	if (pmf_unlikely(rte_ring_dequeue(f->ring, &entry)))
		return pmf_freelist_fresh(f);
	pmf_tsan_take(f->ring);
	return entry;
}

static inline void pmf_freelist_put(struct pmf_freelist *f, void *entry)
{
	pmf_tsan_give(f->ring);
	/* cannot fail: the ring has room for all */
	rte_ring_sp_enqueue(f->ring, entry);
}

static inline size_t pmf_freelist_count(const struct pmf_freelist *f)
{
	return rte_ring_count(f->ring) + f->size -
	       atomic_load_explicit(&f->fresh, memory_order_relaxed);
}

#endif
