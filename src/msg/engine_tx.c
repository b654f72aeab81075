/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The engine's sending half: submission rings to flows, flows to frames. Owner only.
 */
#include "msg/engine.h"

#include <rdma/fi_errno.h>

#include "msg/auth.h"

#define ACK_GRACE (2 * PMF_NS_PER_US) /* a worker's passes are quicker than any answer */

/* ---- fences ---- */

/* Every send that the flow was given is over, and its entry written. */
static bool sends_over(const struct pmf_flow *f)
{
	return STAILQ_EMPTY(&f->txq[PMF_Q_SEND].items) && STAILQ_EMPTY(&f->txq[PMF_Q_BODY].items) &&
	       TAILQ_EMPTY(&f->parked) && TAILQ_EMPTY(&f->waiting) && STAILQ_EMPTY(&f->done);
}

void pmf_fence_release(struct pmf_eflow *ef)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&ef->fenced))) {
		struct pmf_tx *tx = pmf_container_of(item, struct pmf_tx, item);

		if ((tx->flags & PMF_XF_FENCE) && !sends_over(&ef->flow))
			return;
		STAILQ_REMOVE_HEAD(&ef->fenced, link);
		tx->flags = (tx->flags & (uint8_t)~PMF_XF_FENCE) | PMF_XF_POSTED;
		pmf_flow_push(&ef->flow, item);
	}
}

void pmf_fence_end(struct pmf_engine *e, struct pmf_eflow *ef, int error)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&ef->fenced))) {
		STAILQ_REMOVE_HEAD(&ef->fenced, link);
		pmf_complete_tx(e, pmf_container_of(item, struct pmf_tx, item), error);
	}
}

/* ---- posts ---- */

/** Move what is posted on @p ep to its flows. @return whether there was anything. */
bool pmf_engine_submit(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now)
{
	struct pmf_eflow *ef = NULL;
	void *posted[32];
	unsigned int n, all = 0;
	int err;

	do {
		n = rte_ring_sc_dequeue_burst(ep->tx_ring, posted, PMF_ARRAY_SIZE(posted), NULL);
		pmf_tsan_take(ep->tx_ring);
		for (unsigned int i = 0; i < n; i++) {
			struct pmf_tx *tx = posted[i];
			struct pmf_eflow *to;

			if (pmf_unlikely(tx->flags & PMF_XF_GROUP)) {
				pmf_mc_send(e, tx);
				continue;
			}
			to = pmf_eflow_to(e, ep, tx->dest, now, &err);
			if (pmf_unlikely(!to)) {
				pmf_complete_tx(e, tx, err);
				continue;
			}
			if (to != ef && ef)
				pmf_eflow_settle(e, ef, now);
			ef = to;
			tx->flow = ef;
			/* settling lets go what no fence holds */
			if (pmf_unlikely((tx->flags & PMF_XF_FENCE) ||
					 !STAILQ_EMPTY(&ef->fenced))) {
				STAILQ_INSERT_TAIL(&ef->fenced, &tx->item, link);
				continue;
			}
			tx->flags |= PMF_XF_POSTED;
			pmf_flow_push(&ef->flow, &tx->item);
		}
		all += n;
	} while (n == PMF_ARRAY_SIZE(posted));
	if (ef)
		pmf_eflow_settle(e, ef, now);
	return all;
}

/* The end of a packet lies with the sender: the driver reads it there. Injected bytes are a copy
 * already, in memory that need not outlive its endpoint. */
static __attribute__((noinline)) void send_piece(struct pmf_engine *e, struct pmf_eflow *ef,
						 struct rte_mbuf *m, uint16_t len,
						 const struct pmf_piece *piece, bool ect,
						 pmf_ns_t now)
{
	struct pmf_tx *tx = pmf_container_of(piece->item, struct pmf_tx, item);

	if (tx->flags & PMF_XF_INLINE) {
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, len), piece->bytes, piece->len);
		pmf_frame_send(e->q, &ef->path, m, (uint16_t)(len + piece->len), ect, now);
		return;
	}
	tx->flags |= PMF_XF_ATTACHED;
	pmf_frame_send_attached(e->q, &ef->path, m, len, piece->bytes, (uint16_t)piece->len,
				&tx->attached, ect, now);
}

/* What the flow has to send next, in @p m, which is taken. @return false: nothing */
static inline bool send_packet(struct pmf_engine *e, struct pmf_eflow *ef, struct rte_mbuf *m,
			       pmf_ns_t now)
{
	/* what a seal has gone over is not read elsewhere */
	struct pmf_piece piece = {.min = ef->path.attach_min}, *may = ef->seal ? NULL : &piece;
	bool ect = false;
	size_t len = pmf_flow_tx(&ef->flow, now, rte_pktmbuf_mtod(m, uint8_t *),
				 e->port->max_payload, &ect, may);

	if (pmf_unlikely(ef->seal != NULL))
		len = pmf_auth_tx(ef, rte_pktmbuf_mtod(m, uint8_t *), len);
	if (pmf_unlikely(!len)) {
		rte_pktmbuf_free(m);
		return false;
	}
	if (pmf_unlikely(piece.len))
		send_piece(e, ef, m, (uint16_t)len, &piece, ect, now);
	else
		pmf_frame_send(e->q, &ef->path, m, (uint16_t)len, ect, now);
	return true;
}

/* Frames of one flow, at most a quantum. @return false: no room or buffer, stop for now. */
static bool transmit_flow(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	unsigned int left = PMF_QUANTUM_FRAMES;
	struct pmf_queue *q = e->q;

	if (pmf_unlikely(!pmf_eflow_activate(e, ef)))
		return false;
	do {
		struct rte_mbuf *m;

		if (pmf_unlikely(!pmf_queue_room(q))) {
			pmf_queue_flush(q);
			if (!pmf_queue_room(q))
				return false;
		}
		m = pmf_frame_alloc(q);
		if (pmf_unlikely(!m))
			return false;
		if (!send_packet(e, ef, m, now))
			break;
		pmf_eflow_activate(e, ef); /* a larger window, before it is needed */
	} while (--left && pmf_flow_wants_tx(&ef->flow, now));
	return true;
}

void pmf_engine_transmit_one(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	struct rte_mbuf *m = pmf_queue_room(e->q) ? pmf_frame_alloc(e->q) : NULL;

	if (m)
		send_packet(e, ef, m, now);
}

/** Serve the ready flows in turn. @return whether any frame was made. */
bool pmf_engine_transmit(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_eflow *last = TAILQ_LAST(&e->ready, pmf_eflowq), *ef;
	bool any = false, go = true;

	while (go && last && (ef = TAILQ_FIRST(&e->ready))) {
		go = transmit_flow(e, ef, now);
		any = true;
		if (ef == last) /* the frames leave, then the books are done */
			pmf_queue_flush(e->q);
		if (go) {
			/* settle puts it back at the end if it has more to send */
			TAILQ_REMOVE(&e->ready, ef, ready_link);
			ef->ready = false;
			pmf_eflow_settle(e, ef, now);
		}
		if (ef == last)
			break;
	}
	return any;
}

/*
 * Acknowledgements for which nothing came to ride on. In manual progress the second pass in a row
 * without a frame says that the application has had its chance to answer; a worker thread waits a
 * moment instead.
 */
void pmf_engine_flush_acks(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_eflow *ef, *next;
	bool resident = atomic_load_explicit(&e->autos, memory_order_relaxed);

	if (e->idle_rx < 2)
		return;
	PMF_TAILQ_FOREACH_SAFE(ef, &e->acks, ack_link, next)
	{
		if (pmf_flow_ack_pending(&ef->flow)) {
			pmf_ns_t due = pmf_flow_ack_due(&ef->flow);

			if (resident && now + e->fconf.ack_delay < due + ACK_GRACE)
				continue;
			pmf_flow_ack_now(&ef->flow);
		}
		/* Leave the list last: due until it is sent, the flow would be put at its end
		 * again. */
		if (pmf_eflow_settle(e, ef, now)) {
			TAILQ_REMOVE(&e->acks, ef, ack_link);
			ef->ack = false;
		}
	}
}
