/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Completions: from a finished transfer to the CQ's ring and the counter, and the transfer back to
 * the ring of free ones. A completion that finds the ring full stays in its transfer, which is then
 * not free.
 */
#include "msg/engine.h"

#include <rdma/fi_errno.h>

static void tx_free(struct pmf_tx *tx)
{
	tx->flags = 0;
	pmf_freelist_put(&tx->ep->tx_free, tx);
}

static inline void mark_dirty(struct pmf_engine *e, struct pmf_cq_feed *feed)
{
	if (pmf_unlikely(pmf_wait_active(&feed->cq->wait)) && !feed->dirty) {
		feed->dirty = true;
		feed->dirty_next = e->dirty_cqs;
		e->dirty_cqs = feed;
	}
}

static inline void count(struct pmf_engine *e, struct pmf_cntr_feed *f, int err, uint64_t len)
{
	if (pmf_likely(!f))
		return;
	if (err)
		pmf_cntr_feed_err(f);
	else
		pmf_cntr_feed_ok(f, len);
	if (pmf_wait_active(&f->cntr->wait) && !f->dirty) {
		f->dirty = true;
		f->dirty_next = e->dirty_cntrs;
		e->dirty_cntrs = f;
	}
}

/* @return true: written; false: it waits in @p pending, the transfer must stay. */
static inline bool put(struct pmf_engine *e, struct pmf_cq_feed *feed, const struct pmf_cqe *cqe,
		       struct pmf_cq_pending *pending)
{
	if (pmf_likely(STAILQ_EMPTY(&feed->pending) && pmf_cq_feed_write(feed, cqe))) {
		mark_dirty(e, feed);
		return true;
	}
	if (STAILQ_EMPTY(&feed->pending))
		LIST_INSERT_HEAD(&e->stalled, feed, stalled);
	pending->cqe = *cqe;
	STAILQ_INSERT_TAIL(&feed->pending, pending, link);
	return false;
}

/* Its bytes are the application's again when an entry is written: frames that the device has not
 * taken yet get a copy. */
static void detach(struct pmf_engine *e, struct pmf_tx *tx)
{
	if (tx->attached)
		pmf_queue_detach(e->q);
	tx->flags &= (uint8_t)~PMF_XF_ATTACHED;
}

/* A send that had its entry, or has lent its bytes. @return whether it had, and is done with */
static __attribute__((noinline)) bool had_entry(struct pmf_engine *e, struct pmf_tx *tx)
{
	detach(e, tx);
	if (!(tx->flags & PMF_XF_EARLY))
		return false;
	if (!(tx->flags & PMF_XF_STALLED))
		tx_free(tx);
	return true;
}

/** A send is over. @p err positive errno or 0. An orphan's sends end in silence. */
void pmf_complete_tx(struct pmf_engine *e, struct pmf_tx *tx, int err)
{
	struct pmf_ep *ep = tx->ep;
	struct pmf_cqe cqe;

	tx->flags &= (uint8_t)~PMF_XF_POSTED;
	if (pmf_unlikely(tx->flags & (PMF_XF_EARLY | PMF_XF_ATTACHED)) && had_entry(e, tx))
		return;
	if (pmf_unlikely(atomic_load_explicit(&ep->state, memory_order_relaxed) == PMF_EP_ORPHAN)) {
		tx_free(tx);
		return;
	}
	if (pmf_likely(!err)) {
		ep->stats.tx_msgs++;
		ep->stats.tx_bytes += tx->item.len;
	} else {
		ep->stats.tx_errors++;
	}
	count(e, ep->tx_cntr, err, tx->item.len);
	if (!err && !(tx->flags & PMF_XF_COMPLETION)) {
		tx_free(tx);
		return;
	}
	cqe = (struct pmf_cqe){
		.context = tx->context, /* NULL for inject */
		.flags = FI_SEND | FI_MSG | (tx->flags & PMF_XF_GROUP ? FI_MULTICAST : 0),
		.src = FI_ADDR_NOTAVAIL,
		.err = err,
		.prov_errno = err,
	};
	if (put(e, ep->tx_cq, &cqe, &tx->pending))
		tx_free(tx);
}

void pmf_complete_early(struct pmf_engine *e, struct pmf_tx *tx, int err)
{
	struct pmf_cqe cqe = {
		.context = tx->context,
		.flags = FI_SEND | FI_MSG,
		.src = FI_ADDR_NOTAVAIL,
		.err = err,
		.prov_errno = err,
	};

	detach(e, tx);
	tx->ep->stats.tx_errors++;
	count(e, tx->ep->tx_cntr, err, tx->item.len);
	tx->flags |= PMF_XF_EARLY;
	if (!put(e, tx->ep->tx_cq, &cqe, &tx->pending))
		tx->flags |= PMF_XF_STALLED;
}

static inline void rx_entry(struct pmf_cqe *cqe, const struct pmf_rx *rx)
{
	*cqe = (struct pmf_cqe){
		.context = rx->context,
		.flags = FI_RECV | FI_MSG | (rx->has_data ? FI_REMOTE_CQ_DATA : 0) |
			 (rx->flags & PMF_XF_FROM_GROUP ? FI_MULTICAST : 0),
		.len = rx->total,
		.data = rx->data,
		.src = rx->src | rx->ep->no_src,
		.err = rx->err,
		.prov_errno = rx->err,
	};
	if (pmf_unlikely(rx->err)) {
		cqe->len = PMF_MIN(rx->got, rx->cap);
		cqe->olen = rx->err == FI_ETRUNC ? rx->total - rx->cap : 0;
	}
}

/* FI_MSG_PREFIX, FI_SOURCE_ERR, and parts of multi-receive buffers. */
static void complete_odd(struct pmf_engine *e, struct pmf_rx *rx, bool due)
{
	bool last = (rx->flags & PMF_XF_PART) && pmf_multi_ended(rx);
	uint8_t prefix = rx->rctx->prefix;
	struct pmf_cqe cqe;

	if (!rx->err && !due && !last) {
		pmf_rx_free(rx);
		return;
	}
	rx_entry(&cqe, rx);
	cqe.len += prefix;
	if (rx->flags & PMF_XF_PART)
		cqe.buf = (uint8_t *)rx->iov[0].iov_base - prefix;
	if (last)
		cqe.flags |= FI_MULTI_RECV;
	if (!rx->err && rx->src == FI_ADDR_NOTAVAIL && rx->ep->source_err)
		pmf_cqe_set_unknown(&cqe, &rx->from);
	if (put(e, rx->ep->rx_cq, &cqe, &rx->pending))
		pmf_rx_free(rx);
}

/** A receive is over: whole, cut, or in error (rx->err). */
void pmf_complete_rx(struct pmf_engine *e, struct pmf_rx *rx)
{
	struct pmf_ep *ep = rx->ep;
	struct pmf_cqe cqe;
	bool due = (rx->flags & PMF_XF_COMPLETION) || !ep->rx_selective;

	if (pmf_unlikely(!rx->err && rx->total > rx->cap)) {
		rx->err = FI_ETRUNC;
		ep->stats.rx_truncated++;
	}
	if (pmf_likely(!rx->err)) {
		ep->stats.rx_msgs++;
		ep->stats.rx_bytes += rx->total;
	} else {
		ep->stats.rx_errors++;
	}
	count(e, ep->rx_cntr, rx->err, rx->total);
	if (pmf_unlikely((rx->flags & (PMF_XF_PART | PMF_XF_PREFIX)) || ep->source_err)) {
		complete_odd(e, rx, due);
		return;
	}
	if (!rx->err && !due) {
		pmf_rx_free(rx);
		return;
	}
	rx_entry(&cqe, rx);
	if (put(e, ep->rx_cq, &cqe, &rx->pending))
		pmf_rx_free(rx);
}

/** A receive is cancelled, a part of a buffer only as its last; rx->ep says whose CQ hears of it.
 */
void pmf_complete_canceled(struct pmf_engine *e, struct pmf_rx *rx)
{
	struct pmf_cqe cqe = {
		.context = rx->context,
		.flags = FI_RECV | FI_MSG |
			 (rx->flags & (PMF_XF_MULTI | PMF_XF_PART) ? FI_MULTI_RECV : 0),
		.src = FI_ADDR_NOTAVAIL,
		.err = FI_ECANCELED,
		.prov_errno = FI_ECANCELED,
	};

	rx->ep->stats.rx_errors++;
	count(e, rx->ep->rx_cntr, FI_ECANCELED, 0);
	if (put(e, rx->ep->rx_cq, &cqe, &rx->pending))
		pmf_rx_free(rx);
}

/**
 * The endpoint that had this receive has closed. A shared context goes on: an endpoint that has it
 * is told, so that the buffer is the application's again; with no such endpoint, nobody is.
 */
void pmf_complete_left(struct pmf_engine *e, struct pmf_rx *rx)
{
	rx->ep = TAILQ_FIRST(&rx->rctx->eps);
	if (rx->ep)
		pmf_complete_canceled(e, rx);
	else
		pmf_rx_free(rx);
}

/* The transfer around a pending completion, back to its free ring. */
void pmf_complete_drop(struct pmf_cq_pending *p)
{
	if (p->cqe.flags & FI_SEND) {
		struct pmf_tx *tx = pmf_container_of(p, struct pmf_tx, pending);

		tx->flags &= (uint8_t)~PMF_XF_STALLED;
		if (!(tx->flags & PMF_XF_POSTED))
			tx_free(tx);
	} else {
		pmf_rx_free(pmf_container_of(p, struct pmf_rx, pending));
	}
}

/** Move what waits for room, in order; at the start of a pass. */
void pmf_complete_retry(struct pmf_engine *e)
{
	struct pmf_cq_feed *feed, *next;
	struct pmf_cq_pending *p;

	for (feed = LIST_FIRST(&e->stalled); feed; feed = next) {
		next = LIST_NEXT(feed, stalled);
		while ((p = STAILQ_FIRST(&feed->pending)) && pmf_cq_feed_write(feed, &p->cqe)) {
			STAILQ_REMOVE_HEAD(&feed->pending, link);
			mark_dirty(e, feed);
			pmf_complete_drop(p);
		}
		if (!p)
			LIST_REMOVE(feed, stalled);
	}
}

/** Once a pass: wake the readers of queues and counters that were written and have a wait object.
 */
void pmf_complete_wake(struct pmf_engine *e)
{
	struct pmf_cq_feed *feed = e->dirty_cqs;
	struct pmf_cntr_feed *cf = e->dirty_cntrs;

	e->dirty_cqs = NULL;
	e->dirty_cntrs = NULL;
	while (feed) {
		struct pmf_cq_feed *next = feed->dirty_next;

		feed->dirty = false;
		pmf_wait_wake(&feed->cq->wait);
		feed = next;
	}
	while (cf) {
		struct pmf_cntr_feed *next = cf->dirty_next;

		cf->dirty = false;
		pmf_wait_wake(&cf->cntr->wait);
		cf = next;
	}
}
