/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Counters: one slot for each engine that feeds the counter, written by that engine's owner alone
 * and summed by the reader; set, add, seterr, adderr are kept as a base.
 */
#ifndef PMF_COMPLETION_CNTR_H
#define PMF_COMPLETION_CNTR_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <stdatomic.h>

#include "completion/cq.h"
#include "completion/wait.h"

/* From one engine. Written by the engine's owner, read by anyone. */
struct pmf_cntr_feed {
	_Atomic uint64_t ok, err;
	struct pmf_cntr *cntr;
	bool dirty;
	struct pmf_cntr_feed *dirty_next;
	void *engine;
	unsigned int refs;
} PMF_CACHE_ALIGNED;

struct pmf_cntr {
	struct fid_cntr fid;
	bool bytes; /* FI_CNTR_EVENTS_BYTES */
	struct pmf_wait wait;
	void *domain, *progress;
	_Atomic int refs;
	_Atomic uint64_t base_ok, base_err;
	_Atomic uint64_t seen_ok, seen_err; /* as last read: what has changed since wakes */
	_Atomic uint32_t nfeeds;
	struct pmf_cntr_feed *_Atomic feed[PMF_MAX_FEEDS];
};

/** Fill @p c in place (fid excepted). @return 0, -EINVAL, -ENOMEM */
int pmf_cntr_init(struct pmf_cntr *c, const struct fi_cntr_attr *attr);
void pmf_cntr_fini(struct pmf_cntr *c);
/** The slot of @p engine, made if missing; counts a reference. Control path, under the domain's
 * lock. */
struct pmf_cntr_feed *pmf_cntr_feed_get(struct pmf_cntr *c, void *engine);
void pmf_cntr_feed_put(struct pmf_cntr_feed *feed);

/** Engine owner: one success of @p len payload bytes, released so that the bytes are seen with it.
 */
static inline void pmf_cntr_feed_ok(struct pmf_cntr_feed *f, uint64_t len)
{
	uint64_t v = atomic_load_explicit(&f->ok, memory_order_relaxed);

	atomic_store_explicit(&f->ok, v + (f->cntr->bytes ? len : 1), memory_order_release);
}

static inline void pmf_cntr_feed_err(struct pmf_cntr_feed *f)
{
	uint64_t v = atomic_load_explicit(&f->err, memory_order_relaxed);

	atomic_store_explicit(&f->err, v + 1, memory_order_release);
}

/** Any thread: what fi_cntr_read and fi_cntr_readerr return, noted as seen. Drive nothing. */
uint64_t pmf_cntr_value(struct pmf_cntr *c);
uint64_t pmf_cntr_errors(struct pmf_cntr *c);

/** @return whether value or errors differ from what was last seen (fi_trywait, fi_poll). */
bool pmf_cntr_changed(struct pmf_cntr *c);

/** Any thread: set or add to the value (or the error value), and wake who waits for it. */
void pmf_cntr_set(struct pmf_cntr *c, uint64_t value);
void pmf_cntr_add(struct pmf_cntr *c, uint64_t value);
void pmf_cntr_set_errors(struct pmf_cntr *c, uint64_t value);
void pmf_cntr_add_errors(struct pmf_cntr *c, uint64_t value);

#endif
