/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/cntr.h"

#include <stdlib.h>

int pmf_cntr_init(struct pmf_cntr *c, const struct fi_cntr_attr *attr)
{
	struct fid_cntr fid = c->fid;
	int rc;

	if (attr->flags)
		return -EINVAL;
	memset(c, 0, sizeof(*c));
	c->fid = fid;
	switch ((int)attr->events) {
	case FI_CNTR_EVENTS_COMP:
		break;
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 21))
	case FI_CNTR_EVENTS_BYTES:
		c->bytes = true;
		break;
#endif
	default:
		return -EINVAL;
	}
	rc = pmf_wait_open(&c->wait, (int)attr->wait_obj);
	return rc == -EINVAL || rc == 0 ? rc : -ENOMEM;
}

void pmf_cntr_fini(struct pmf_cntr *c)
{
	uint32_t n = atomic_load_explicit(&c->nfeeds, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++)
		free(atomic_load_explicit(&c->feed[i], memory_order_relaxed));
	atomic_store_explicit(&c->nfeeds, 0, memory_order_relaxed);
	pmf_wait_close(&c->wait);
}

struct pmf_cntr_feed *pmf_cntr_feed_get(struct pmf_cntr *c, void *engine)
{
	uint32_t n = atomic_load_explicit(&c->nfeeds, memory_order_relaxed);
	struct pmf_cntr_feed *feed;

	for (uint32_t i = 0; i < n; i++) {
		feed = atomic_load_explicit(&c->feed[i], memory_order_relaxed);
		if (feed->engine == engine) {
			feed->refs++;
			return feed;
		}
	}
	if (n == PMF_MAX_FEEDS)
		return NULL;
	feed = aligned_alloc(PMF_CACHE_LINE, sizeof(*feed));
	if (!feed)
		return NULL;
	memset(feed, 0, sizeof(*feed));
	feed->cntr = c;
	feed->engine = engine;
	feed->refs = 1;
	atomic_store_explicit(&c->feed[n], feed, memory_order_relaxed);
	/* Pairs with the acquire of the readers: they see the slot whole. */
	atomic_store_explicit(&c->nfeeds, n + 1, memory_order_release);
	return feed;
}

/* The slot stays until the counter is closed: what it has counted still counts. */
void pmf_cntr_feed_put(struct pmf_cntr_feed *feed)
{
	assert(feed->refs > 0);
	feed->refs--;
}

static uint64_t feeds_sum(struct pmf_cntr *c, bool errors)
{
	uint32_t n = atomic_load_explicit(&c->nfeeds, memory_order_acquire);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct pmf_cntr_feed *f = atomic_load_explicit(&c->feed[i], memory_order_relaxed);

		/* Acquire: the bytes of a counted message are seen with the count. */
		sum += atomic_load_explicit(errors ? &f->err : &f->ok, memory_order_acquire);
	}
	return sum;
}

uint64_t pmf_cntr_value(struct pmf_cntr *c)
{
	uint64_t v = atomic_load_explicit(&c->base_ok, memory_order_relaxed) + feeds_sum(c, false);

	atomic_store_explicit(&c->seen_ok, v, memory_order_relaxed);
	return v;
}

uint64_t pmf_cntr_errors(struct pmf_cntr *c)
{
	uint64_t v = atomic_load_explicit(&c->base_err, memory_order_relaxed) + feeds_sum(c, true);

	atomic_store_explicit(&c->seen_err, v, memory_order_relaxed);
	return v;
}

bool pmf_cntr_changed(struct pmf_cntr *c)
{
	uint64_t ok = atomic_load_explicit(&c->base_ok, memory_order_relaxed);
	uint64_t err = atomic_load_explicit(&c->base_err, memory_order_relaxed);

	return ok + feeds_sum(c, false) !=
		       atomic_load_explicit(&c->seen_ok, memory_order_relaxed) ||
	       err + feeds_sum(c, true) != atomic_load_explicit(&c->seen_err, memory_order_relaxed);
}

/* The base takes the difference, modulo 2^64: the feeds belong to the engines. */
void pmf_cntr_set(struct pmf_cntr *c, uint64_t value)
{
	atomic_store_explicit(&c->base_ok, value - feeds_sum(c, false), memory_order_relaxed);
	pmf_wait_wake(&c->wait);
}

void pmf_cntr_add(struct pmf_cntr *c, uint64_t value)
{
	atomic_fetch_add_explicit(&c->base_ok, value, memory_order_relaxed);
	pmf_wait_wake(&c->wait);
}

void pmf_cntr_set_errors(struct pmf_cntr *c, uint64_t value)
{
	atomic_store_explicit(&c->base_err, value - feeds_sum(c, true), memory_order_relaxed);
	pmf_wait_wake(&c->wait);
}

void pmf_cntr_add_errors(struct pmf_cntr *c, uint64_t value)
{
	atomic_fetch_add_explicit(&c->base_err, value, memory_order_relaxed);
	pmf_wait_wake(&c->wait);
}
