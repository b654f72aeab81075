/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections, the engine's side: their records, their time, and how they end. Owner only.
 */
#include "msg/cm_state.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#define LATE (10 * PMF_NS_PER_MS) /* ticks come each millisecond while somebody runs the engine */

#define TO(state) (1u << PMF_CM_##state)

static const uint8_t steps[PMF_CM_STATES] = {
	[PMF_CM_OPENING] = TO(CONNECTING) | TO(REQUESTED) | TO(REFUSING) | TO(OVER),
	[PMF_CM_CONNECTING] = TO(CONNECTED) | TO(CLOSING) | TO(OVER),
	[PMF_CM_REQUESTED] = TO(CONNECTED) | TO(REFUSING) | TO(OVER),
	[PMF_CM_CONNECTED] = TO(CLOSING) | TO(OVER),
	[PMF_CM_REFUSING] = TO(OVER),
	[PMF_CM_CLOSING] = TO(OVER),
};

/** @param deadline  0: none */
void pmf_cm_step(struct pmf_engine *e, struct pmf_cm *cm, enum pmf_cm_state to, pmf_ns_t deadline)
{
	if (!(steps[cm->state] >> to & 1)) {
		e->stats.cm_bad_steps++;
		return;
	}
	cm->state = (uint8_t)to;
	cm->deadline = deadline;
	cm->seen = 0;
	if (cm->timed == (deadline != 0))
		return;
	cm->timed = deadline != 0;
	if (cm->timed)
		TAILQ_INSERT_TAIL(&e->cms, cm, link);
	else
		TAILQ_REMOVE(&e->cms, cm, link);
}

bool pmf_cm_new(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	struct pmf_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return false;
	cm->ef = ef;
	ef->cm = cm;
	cm->timed = true; /* a flow at a listener has a time to bring its request */
	cm->deadline = now + e->conf->dead_after;
	TAILQ_INSERT_TAIL(&e->cms, cm, link);
	return true;
}

void pmf_cm_send(struct pmf_cm *cm, enum pmf_item_kind kind, enum pmf_reason reason,
		 const void *data, size_t len)
{
	cm->out_len = (uint16_t)PMF_MIN(len, (size_t)PMF_CM_DATA);
	if (cm->out_len)
		memcpy(cm->out, data, cm->out_len);
	pmf_flow_control(&cm->ef->flow, &cm->item, kind, reason, cm->out, cm->out_len);
}

void pmf_cm_refuse(struct pmf_engine *e, struct pmf_cm *cm, enum pmf_reason reason,
		   const void *data, size_t len, pmf_ns_t now)
{
	pmf_cm_step(e, cm, PMF_CM_REFUSING, now + e->conf->dead_after);
	pmf_cm_send(cm, PMF_ITEM_REJECT, reason, data, len);
	pmf_eflow_settle(e, cm->ef, now);
	e->stats.cm_refused++;
}

/* ---- records ---- */

static int on_request(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec,
		      pmf_ns_t now)
{
	struct pmf_ep *ep = ef->ep;
	struct pmf_cm *cm = ef->cm;

	if (ep->type != PMF_EP_PASSIVE || cm->state != PMF_CM_OPENING)
		return -EPROTO;
	e->stats.cm_requests++;
	if (ep->state != PMF_EP_ENABLED || ep->nrequests >= ep->backlog) {
		pmf_cm_refuse(e, cm, PMF_REASON_BACKLOG, NULL, 0, now);
		return 0;
	}
	cm->req = pmf_connreq_new(ep, cm);
	if (cm->req && pmf_cm_request(ep, cm->req, &ef->peer.addr, rec->bytes, rec->len)) {
		pmf_connreq_free(cm->req);
		cm->req = NULL;
	}
	if (!cm->req) {
		e->stats.cm_no_memory++;
		pmf_cm_refuse(e, cm, PMF_REASON_BACKLOG, NULL, 0, now);
		return 0;
	}
	ep->nrequests++;
	pmf_cm_step(e, cm, PMF_CM_REQUESTED, 0);
	pmf_flow_watch(&ef->flow, now);
	return 0;
}

static int on_accept(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec)
{
	struct pmf_cm *cm = ef->cm;

	if (cm->state == PMF_CM_CLOSING) /* crossed with our CLOSE */
		return 0;
	if (cm->state != PMF_CM_CONNECTING)
		return -EPROTO;
	pmf_cm_step(e, cm, PMF_CM_CONNECTED, 0);
	atomic_store_explicit(&ef->ep->state, PMF_EP_ENABLED, memory_order_release);
	pmf_cm_event(e, ef->ep, FI_CONNECTED, rec->bytes, rec->len);
	return 0;
}

static int on_end(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec)
{
	struct pmf_cm *cm = ef->cm;

	if (rec->type == PMF_RT_REJECT && cm->state != PMF_CM_CONNECTING &&
	    cm->state != PMF_CM_CLOSING)
		return -EPROTO;
	if (rec->len)
		memcpy(cm->in, rec->bytes, rec->len);
	cm->in_len = (uint16_t)rec->len;
	cm->reason = (uint8_t)rec->msg32;
	pmf_cm_step(e, cm, PMF_CM_OVER, 0);
	return 0;
}

int pmf_cm_record(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec,
		  pmf_ns_t now)
{
	if (!ef->cm)
		return -EPROTO;
	if (ef->cm->state == PMF_CM_OVER)
		return 0;
	switch (rec->type) {
	case PMF_RT_CONNREQ:
		return on_request(e, ef, rec, now);
	case PMF_RT_ACCEPT:
		return on_accept(e, ef, rec);
	default:
		return on_end(e, ef, rec);
	}
}

bool pmf_cm_takes_messages(const struct pmf_eflow *ef)
{
	/* the accepting side may send before its ACCEPT has been read here */
	return ef->cm->state == PMF_CM_CONNECTED || ef->cm->state == PMF_CM_CONNECTING;
}

/** After a packet: when it ended the connection, acknowledge and let go. @return whether the flow
 * is gone */
bool pmf_cm_over(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	if (ef->cm->state != PMF_CM_OVER)
		return false;
	pmf_flow_ack_now(&ef->flow);
	pmf_engine_transmit_one(e, ef, now);
	pmf_eflow_free(e, ef, FI_ECONNRESET);
	return true;
}

/* ---- ends ---- */

/** No receive is taken any more. */
void pmf_cm_ended(struct pmf_ep *ep)
{
	atomic_store_explicit(&ep->state, PMF_EP_ENDED, memory_order_release);
	if (ep->handle.rctx == ep->rctx)
		atomic_store_explicit(&ep->rctx->open, false, memory_order_release);
}

/** Receives were posted on an endpoint whose connection is over: kept messages first, then nothing
 * more. */
void pmf_cm_receives(struct pmf_engine *e, struct pmf_ep *ep)
{
	if (ep->state == PMF_EP_DRAINING && !pmf_rctx_keeps(ep))
		pmf_cm_ended(ep);
	if (ep->state == PMF_EP_ENDED)
		pmf_rctx_flush(e, ep);
}

/* What a program is told when its request came to nothing. */
static int connect_error(int error)
{
	if (error == EKEYREJECTED)
		return FI_EKEYREJECTED;
	return error == ETIMEDOUT || error == EHOSTUNREACH ? FI_ETIMEDOUT : FI_ECONNREFUSED;
}

/* The endpoint's flow is gone; its sends and begun receives have their entries. */
static void ep_end(struct pmf_engine *e, struct pmf_ep *ep, struct pmf_cm *cm, int error, bool was)
{
	pmf_ns_t now = atomic_load_explicit(&e->last_pass, memory_order_relaxed);
	bool kept;

	pmf_engine_receives(e, ep->rctx, now);
	kept = pmf_rctx_keeps(ep);
	if (kept)
		atomic_store_explicit(&ep->state, PMF_EP_DRAINING, memory_order_release);
	else
		pmf_cm_ended(ep);
	pmf_engine_submit(e, ep, now);
	pmf_rctx_flush(e, ep);
	if (was)
		pmf_cm_event(e, ep, FI_SHUTDOWN, NULL, 0);
	else
		pmf_cm_error(e, ep, connect_error(error), cm->in, cm->in_len);
}

/** The flow is being freed; its items are done. @p error says why, positive */
void pmf_cm_flow_end(struct pmf_engine *e, struct pmf_eflow *ef, int error)
{
	struct pmf_ep *ep = ef->ep;
	struct pmf_cm *cm = ef->cm;

	ef->cm = NULL;
	if (cm->timed)
		TAILQ_REMOVE(&e->cms, cm, link);
	if (cm->req)
		cm->req->cm = NULL;
	if (ep->conn == ef) {
		ep->conn = NULL;
		if (!ep->request &&
		    (ep->state == PMF_EP_UNCONNECTED || ep->state == PMF_EP_ENABLED))
			ep_end(e, ep, cm, error, ep->state == PMF_EP_ENABLED);
	}
	free(cm);
}

void pmf_cm_close(struct pmf_engine *e, struct pmf_cm *cm, pmf_ns_t now)
{
	pmf_cm_step(e, cm, PMF_CM_CLOSING, now + e->conf->linger);
	pmf_cm_tick_one(e, cm, now);
}

/** The endpoint, or the listener, closes: tell the other sides. */
void pmf_cm_leave(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now)
{
	struct pmf_eflow *ef, *next;

	if (ep->request)
		pmf_connreq_free(ep->request);
	ep->request = NULL;
	if (ep->type == PMF_EP_PASSIVE)
		pmf_connreq_forget(ep);
	PMF_TAILQ_FOREACH_SAFE(ef, &ep->eflows, ep_link, next)
	{
		switch (ef->cm->state) {
		case PMF_CM_OPENING:
		case PMF_CM_REQUESTED:
			if (!ef->cm->req) /* else a call that waits for the owner word is about to
					     take it */
				pmf_cm_refuse(e, ef->cm, PMF_REASON_GONE, NULL, 0, now);
			break;
		case PMF_CM_CONNECTING:
		case PMF_CM_CONNECTED:
			pmf_cm_close(e, ef->cm, now);
			break;
		default: /* ending already */
			break;
		}
	}
}

/* ---- time ---- */

void pmf_cm_item_done(struct pmf_eflow *ef, const struct pmf_item *item)
{
	if (ef->cm && item->status == 0 &&
	    (item->kind == PMF_ITEM_REJECT || item->kind == PMF_ITEM_CLOSE))
		ef->cm->acked = true;
}

/* Nothing is left that was injected. */
static bool sent_all(const struct pmf_flow *f)
{
	return STAILQ_EMPTY(&f->txq[PMF_Q_SEND].items) && STAILQ_EMPTY(&f->txq[PMF_Q_BODY].items) &&
	       TAILQ_EMPTY(&f->parked) && TAILQ_EMPTY(&f->waiting);
}

/* May free the flow. */
void pmf_cm_tick_one(struct pmf_engine *e, struct pmf_cm *cm, pmf_ns_t now)
{
	struct pmf_eflow *ef = cm->ef;

	if (cm->acked) {
		pmf_eflow_free(e, ef, ECONNABORTED);
		return;
	}
	if (cm->state == PMF_CM_CLOSING && !cm->closing_out && sent_all(&ef->flow)) {
		cm->closing_out = true;
		pmf_flow_control(&ef->flow, &cm->close, PMF_ITEM_CLOSE, PMF_REASON_NONE, NULL, 0);
		pmf_eflow_settle(e, ef, now);
		return;
	}
	if (now >= cm->deadline)
		pmf_eflow_free(e, ef, ETIMEDOUT);
}

/* Time in which nobody ran the engine is not the peer's, as in pmf_flow_late(). */
void pmf_cm_tick(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_cm *cm, *next;

	PMF_TAILQ_FOREACH_SAFE(cm, &e->cms, link, next)
	{
		if (cm->seen && now - cm->seen > LATE)
			cm->deadline += now - cm->seen;
		cm->seen = now;
		pmf_cm_tick_one(e, cm, now);
	}
}
