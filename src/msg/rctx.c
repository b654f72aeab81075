/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Receive contexts: made, cancelled on, given back. Control path, but for what frees a receive.
 */
#include "msg/rctx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "msg/engine.h"
#include "pmd_glue/eal.h"

struct pmf_rctx pmf_rctx_none;

static void rctx_free(struct pmf_rctx *rc)
{
	pmf_parts_fini(rc);
	pmf_freelist_close(&rc->free);
	free(rc->ring);
	free(rc);
}

int pmf_rctx_open(const struct pmf_rctx_attr *attr, struct pmf_rctx **out)
{
	struct pmf_rctx *rc = aligned_alloc(PMF_CACHE_LINE, sizeof(*rc));

	if (!rc)
		return -ENOMEM;
	memset(rc, 0, sizeof(*rc));
	rc->engine = attr->engine;
	rc->size = attr->size;
	rc->iov_limit = attr->iov_limit;
	rc->prefix = attr->prefix;
	rc->rx_flags = attr->prefix ? PMF_XF_PREFIX : 0;
	rc->directed = attr->directed;
	rc->keyed = attr->keyed;
	rc->odd = attr->directed || attr->prefix;
	rc->kick = attr->kick;
	rc->min_multi = PMF_MIN_MULTI_RECV;
	rc->refs = 1;
	TAILQ_INIT(&rc->posted);
	TAILQ_INIT(&rc->unexpected);
	TAILQ_INIT(&rc->parts);
	TAILQ_INIT(&rc->eps);
	rc->barrier.flags = PMF_XF_CHOOSY;
	if (pmf_posts_open(&rc->free, &rc->ring, sizeof(struct pmf_rx), rc->size,
			   attr->thread_safe)) {
		rctx_free(rc);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < rc->size; i++)
		((struct pmf_rx *)pmf_freelist_at(&rc->free, i))->rctx = rc;
	*out = rc;
	return 0;
}

void pmf_rctx_put(struct pmf_rctx *rc)
{
	if (--rc->refs == 0)
		rctx_free(rc);
}

void pmf_rctx_share(struct pmf_rctx *rc)
{
	pmf_engine_lock(rc->engine);
	TAILQ_INSERT_TAIL(&rc->engine->shared, rc, link);
	atomic_store_explicit(&rc->open, true, memory_order_release);
	pmf_engine_unlock(rc->engine);
}

void pmf_rctx_unshare(struct pmf_rctx *rc)
{
	struct pmf_engine *e = rc->engine;

	pmf_engine_lock(e);
	TAILQ_REMOVE(&e->shared, rc, link);
	pmf_rctx_put(rc);
	pmf_engine_unlock(e);
}

size_t pmf_rctx_left(const struct pmf_rctx *rc)
{
	return rc->free.ring ? pmf_freelist_count(&rc->free) : 0;
}

/* Behind a buffer that has run out of parts nothing is sure; a buffer takes one message at the
 * least. */
uint32_t pmf_rctx_sure(const struct pmf_rctx *rc)
{
	bool scarce = rc->nmulti && rc->nparts_free < PMF_WIRE_MAX_RECS;

	return rc->starved || scarce ? 0 : rc->nany;
}

/**
 * The receive may still be on the ring, posted, or under way: under the owner word the ring is
 * drained, so that it is in one place only. One that has taken a message keeps it. The entry of a
 * shared context's receive, which no endpoint has got, goes to the endpoint that is longest with
 * the context.
 */
ssize_t pmf_rctx_cancel(struct pmf_rctx *rc, void *context)
{
	struct pmf_engine *e = rc->engine;
	pmf_ns_t now = pmf_clock_ns();
	ssize_t ret = -FI_ENOENT;
	struct pmf_rx *rx;

	pmf_engine_lock(e);
	pmf_engine_receives(e, rc, now);
	TAILQ_FOREACH (rx, &rc->posted, link)
		if (rx != &rc->barrier && rx->context == context)
			break;
	if (!rx)
		goto out;
	rx->ep = TAILQ_FIRST(&rc->eps);
	ret = rx->ep ? 0 : -FI_EOPBADSTATE;
	if (rx->flags & PMF_XF_MULTI && rx->nparts)
		ret = -FI_EAGAIN;
	if (ret)
		goto out;
	pmf_rx_unpost(rc, rx);
	pmf_complete_canceled(e, rx);
	if (rc->starved)
		pmf_match_again(e, rc, NULL, now);
out:
	pmf_complete_wake(e);
	pmf_engine_unlock(e);
	return ret;
}

void pmf_rctx_flush(struct pmf_engine *e, struct pmf_ep *ep)
{
	struct pmf_rctx *rc = ep->rctx;
	struct pmf_rx *rx;

	if (rc != ep->handle.rctx)
		return; /* others go on with it */
	while ((rx = TAILQ_FIRST(&rc->posted))) {
		if (rx == &rc->barrier) {
			TAILQ_REMOVE(&rc->posted, rx, link);
			rc->starved = false;
			continue;
		}
		pmf_rx_unpost(rc, rx);
		rx->ep = ep;
		if (rx->flags & PMF_XF_MULTI && rx->nparts)
			rx->released = true; /* the last part tells of it */
		else
			pmf_complete_canceled(e, rx);
	}
}

bool pmf_rctx_keeps(const struct pmf_ep *ep)
{
	struct pmf_stub *s;

	TAILQ_FOREACH (s, &ep->rctx->unexpected, link)
		if (s->ep == ep)
			return true;
	return false;
}

void pmf_rctx_forget(struct pmf_engine *e, struct pmf_ep *ep)
{
	struct pmf_stub *s, *next;

	PMF_TAILQ_FOREACH_SAFE(s, &ep->rctx->unexpected, link, next)
	if (s->ep == ep)
		pmf_stub_put(e, s);
}
