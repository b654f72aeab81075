/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Closing an endpoint. Buffers are the application's again at once; what was injected still goes
 * out: the endpoint stays behind as an orphan of its engine until its flows are quiet or its time
 * is over.
 */
#include "msg/engine.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "msg/auth.h"
#include "pmd_glue/eal.h"

#define LAST_ACKS 3

void pmf_ep_free(struct pmf_ep *ep)
{
	for (unsigned int c = 0; c < PMF_PEERS_CHUNKS; c++)
		free(ep->flow_of[c]);
	if (ep->rctx)
		pmf_rctx_put(ep->rctx);
	pmf_freelist_close(&ep->tx_free);
	for (uint32_t i = 0; i < ep->nauths; i++)
		pmf_auth_put(ep->engine, ep->auths[i]);
	atomic_fetch_sub_explicit(&ep->engine->neps, 1, memory_order_relaxed);
	free(ep->tx_ring);
	free(ep->mc_slots);
	free(ep);
}

/* A receive whose entry waited for room, or the last part of a buffer: a shared context hears of
 * it. */
static void drop_receive(struct pmf_engine *e, struct pmf_cq_pending *p)
{
	struct pmf_rx *rx = pmf_container_of(p, struct pmf_rx, pending);

	if ((rx->flags & PMF_XF_PART) && !(p->cqe.flags & FI_MULTI_RECV))
		pmf_complete_drop(p);
	else
		pmf_complete_left(e, rx);
}

static struct pmf_ep *pending_of(struct pmf_cq_pending *p)
{
	return p->cqe.flags & FI_SEND ? pmf_container_of(p, struct pmf_tx, pending)->ep
				      : pmf_container_of(p, struct pmf_rx, pending)->ep;
}

/* Completions that wait for room in a CQ are dropped with their endpoint. */
static void drop_pending(struct pmf_engine *e, struct pmf_ep *ep, struct pmf_cq_feed *feed)
{
	STAILQ_HEAD(, pmf_cq_pending) dropped = STAILQ_HEAD_INITIALIZER(dropped);
	struct pmf_cq_pending *p, *next;

	if (!feed || STAILQ_EMPTY(&feed->pending))
		return;
	for (p = STAILQ_FIRST(&feed->pending); p; p = next) {
		next = STAILQ_NEXT(p, link);
		if (pending_of(p) != ep)
			continue;
		STAILQ_REMOVE(&feed->pending, p, pmf_cq_pending, link);
		STAILQ_INSERT_TAIL(&dropped, p, link);
	}
	if (STAILQ_EMPTY(&feed->pending))
		LIST_REMOVE(feed, stalled);
	while ((p = STAILQ_FIRST(&dropped))) {
		STAILQ_REMOVE_HEAD(&dropped, link);
		if (p->cqe.flags & FI_SEND)
			pmf_complete_drop(p);
		else
			drop_receive(e, p);
	}
}

/* Sends that are the application's bytes leave their flows; copies stay. */
static void abort_sends(struct pmf_engine *e, struct pmf_ep *ep)
{
	struct pmf_eflow *ef;

	TAILQ_FOREACH (ef, &ep->eflows, ep_link) {
		struct pmf_itemq waiting = ef->fenced;
		struct pmf_item *item;

		if (STAILQ_EMPTY(&waiting))
			continue;
		STAILQ_INIT(&ef->fenced);
		for (item = STAILQ_FIRST(&waiting); item;) {
			struct pmf_item *next = STAILQ_NEXT(item, link);

			if (pmf_container_of(item, struct pmf_tx, item)->flags & PMF_XF_INLINE)
				STAILQ_INSERT_TAIL(&ef->fenced, item, link);
			item = next;
		}
	}
	for (uint32_t i = 0; i < ep->tx_free.size; i++) {
		struct pmf_tx *tx = pmf_ep_tx(ep, i);

		if ((tx->flags & PMF_XF_POSTED) && !(tx->flags & PMF_XF_INLINE))
			pmf_flow_abort(&tx->flow->flow, &tx->item);
	}
	pmf_queue_detach(e->q);
}

/* Sends not yet with a flow: copies go on, the others are forgotten. */
static void drop_ring(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now)
{
	void *posted;
	int err;

	while (rte_ring_sc_dequeue(ep->tx_ring, &posted) == 0) {
		struct pmf_tx *tx = posted;
		struct pmf_eflow *ef;

		if (!(tx->flags & PMF_XF_INLINE) || (tx->flags & PMF_XF_GROUP))
			continue;
		ef = pmf_eflow_to(e, ep, tx->dest, now, &err);
		if (!ef)
			continue;
		tx->flow = ef;
		if ((tx->flags & PMF_XF_FENCE) || !STAILQ_EMPTY(&ef->fenced)) {
			STAILQ_INSERT_TAIL(&ef->fenced, &tx->item, link);
			continue;
		}
		tx->flags |= PMF_XF_POSTED;
		pmf_flow_push(&ef->flow, &tx->item);
	}
}

/* Nobody will be here to answer a peer that has missed it: it goes more than once. */
static void acknowledge_last(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	for (unsigned int i = 0; i < LAST_ACKS && pmf_flow_ack_again(&ef->flow, now); i++)
		pmf_engine_transmit_one(e, ef, now);
}

static void settle_flows(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now)
{
	struct pmf_eflow *ef, *next;

	PMF_TAILQ_FOREACH_SAFE(ef, &ep->eflows, ep_link, next)
	{
		/* another endpoint may take this port and meet the same peers */
		pmf_eflow_unname(e, ef);
		pmf_flow_ack_now(&ef->flow);
		if (!ef->cm) /* a connection's end is acknowledged by itself */
			acknowledge_last(e, ef, now);
		pmf_eflow_settle(e, ef, now);
	}
}

/* Everything sent and acknowledged, nothing held at the peer's wish, and the peer knows what we
 * received. */
static bool owes_nothing(const struct pmf_flow *f)
{
	return pmf_flow_is_quiet(f) && TAILQ_EMPTY(&f->parked) && TAILQ_EMPTY(&f->waiting) &&
	       !pmf_flow_ack_pending(f);
}

/* Free the flows that owe nothing more, and the endpoint with the last of them. */
static bool orphan_done(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now)
{
	bool over = now >= ep->linger_until;

	struct pmf_eflow *ef, *next;

	/* a connection is freed when its last record has arrived: engine_cm.c */
	PMF_TAILQ_FOREACH_SAFE(ef, &ep->eflows, ep_link, next)
	if (over || (!ef->cm && STAILQ_EMPTY(&ef->fenced) && owes_nothing(&ef->flow)))
		pmf_eflow_free(e, ef, FI_ECANCELED);
	return ep->nflows == 0;
}

void pmf_ep_reap(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_ep *ep, *next;

	PMF_TAILQ_FOREACH_SAFE(ep, &e->orphans, link, next)
	{
		if (!orphan_done(e, ep, now))
			continue;
		TAILQ_REMOVE(&e->orphans, ep, link);
		pmf_ep_free(ep);
	}
}

/*
 * A peer that hears of the old life after the new one would take the old one for the newer, and end
 * its flow with the new one: what an orphan has not opened by now it does not open any more.
 */
static void close_unopened(struct pmf_engine *e, struct pmf_ep *ep)
{
	struct pmf_eflow *ef, *next;

	PMF_TAILQ_FOREACH_SAFE(ef, &ep->eflows, ep_link, next)
	if (ef->flow.state != PMF_FLOW_OPEN)
		pmf_eflow_free(e, ef, FI_ECANCELED);
}

void pmf_ep_succeed(struct pmf_engine *e, uint16_t port)
{
	struct pmf_ep *ep;

	TAILQ_FOREACH (ep, &e->orphans, link)
		if (ep->type == PMF_EP_RDM && ep->addr.port == port)
			close_unopened(e, ep);
}

static void leave_engine(struct pmf_engine *e, struct pmf_ep *ep)
{
	pmf_ns_t now = pmf_clock_ns();

	if (ep->state != PMF_EP_NEW)
		TAILQ_REMOVE(&e->eps, ep, link);
	pmf_busy_remove(e, ep);
	pmf_ep_drop_port(ep);
	drop_ring(e, ep, now);
	if (ep->joined)
		TAILQ_REMOVE(&ep->rctx->eps, ep, rctx_link);
	if (ep->rctx)
		pmf_match_ep_end(e, ep);
	drop_pending(e, ep, ep->tx_cq);
	drop_pending(e, ep, ep->rx_cq);
	atomic_store_explicit(&ep->state, PMF_EP_ORPHAN, memory_order_release);
	abort_sends(e, ep);
	ep->peers = NULL;
	ep->linger_until = now + e->conf->linger;
	if (ep->type != PMF_EP_RDM)
		pmf_cm_leave(e, ep, now);
	settle_flows(e, ep, now);
	TAILQ_INSERT_TAIL(&e->orphans, ep, link);
	pmf_engine_transmit(e, now);
	pmf_queue_flush(e->q);
	pmf_ep_reap(e, now);
	pmf_complete_wake(e);
}

void pmf_ep_close(struct pmf_ep *ep)
{
	struct pmf_cq_feed *tx_cq = ep->tx_cq, *rx_cq = ep->rx_cq;
	struct pmf_cntr_feed *tx_cntr = ep->tx_cntr, *rx_cntr = ep->rx_cntr;
	struct pmf_engine *e = ep->engine;

	if (pmf_stack_forked())
		return; /* the parent's */
	if (ep->peers)
		TAILQ_REMOVE(&ep->peers->eps, ep, peers_link);
	pmf_engine_lock(e);
	leave_engine(e, ep);
	pmf_engine_unlock(e);
	if (tx_cq)
		pmf_cq_feed_put(tx_cq);
	if (rx_cq)
		pmf_cq_feed_put(rx_cq);
	if (tx_cntr)
		pmf_cntr_feed_put(tx_cntr);
	if (rx_cntr)
		pmf_cntr_feed_put(rx_cntr);
}
