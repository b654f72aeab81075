/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Messages: credit, announcement, hold, invitation and abort on the sending side; the walk over
 * records on the receiving side.
 */
#include "proto/flow_private.h"

/* ---- sending ---- */

bool pmf_flow_admit(struct pmf_flow *f, struct pmf_item *item)
{
	bool announced = item->len > f->conf->eager_limit;
	uint64_t cost = pmf_msg_cost(item->len, !announced) >> PMF_CREDIT_SHIFT;
	uint64_t open = f->tx_limit - f->tx_cost;

	if (pmf_unlikely(cost > open)) {
		/* More than the peer ever leaves open will not come by waiting. */
		if (!announced && open != 0 && cost > f->grant_seen) {
			announced = true;
			cost = PMF_MSG_HEAD_COST >> PMF_CREDIT_SHIFT;
		} else {
			f->blocked = true;
			f->ready &= (uint8_t) ~(1u << PMF_Q_SEND);
			f->stats->credit_stalls++;
			f->probe_every = 0;
			return false;
		}
	}
	item->mode = announced ? PMF_MODE_ANNOUNCED : PMF_MODE_EAGER;
	f->stats->tx_announced += announced;
	f->tx_cost += cost;
	return true;
}

static void unblock(struct pmf_flow *f)
{
	f->blocked = false;
	f->probe_every = 0;
	if (f->txq[PMF_Q_SEND].cur)
		f->ready |= 1u << PMF_Q_SEND;
}

void pmf_flow_credit_raise(struct pmf_flow *f, uint64_t limit)
{
	f->tx_limit = limit;
	f->grant_seen = PMF_MAX(f->grant_seen, limit - f->tx_cost);
	if (f->blocked)
		unblock(f);
}

static void park(struct pmf_flow *f, struct pmf_item *item, struct pmf_itempark *where)
{
	if (!pmf_item_step(f, item, PMF_ITEM_PARKED))
		return;
	TAILQ_INSERT_TAIL(where, item, park);
	pmf_flow_arm(f, f->last_rx + f->conf->dead_after / 4);
}

/* The peer has a buffer: all bytes go, whatever went before. */
static void send_body(struct pmf_flow *f, struct pmf_item *item)
{
	item->mode = PMF_MODE_BODY;
	pmf_flow_enqueue(f, item, PMF_Q_BODY);
}

/* The peer knows of the message and is told that nothing more of it will come. */
static void send_abort(struct pmf_flow *f, struct pmf_item *item)
{
	item->len = 0;
	pmf_flow_enqueue(f, item, PMF_Q_CTL);
}

/* The last record of the item is acknowledged in order; it has left its queue. */
void pmf_flow_item_acked(struct pmf_flow *f, struct pmf_item *item, enum pmf_flow_queue q)
{
	uint16_t under_way = (uint16_t)(f->holds_told - f->holds_got);
	bool waits = q == PMF_Q_SEND && (item->mode == PMF_MODE_ANNOUNCED || item->held);
	bool maybe = q == PMF_Q_SEND && under_way != 0 && under_way <= INT16_MAX;

	if (pmf_likely(!waits && !maybe)) {
		pmf_flow_item_done(f, item, item->aborted ? -ECANCELED : 0);
	} else if (item->aborted) {
		send_abort(f, item);
	} else if (item->invited) {
		send_body(f, item);
	} else if (waits) {
		park(f, item, &f->parked);
	} else {
		item->holds = f->holds_told;
		park(f, item, &f->waiting);
	}
}

/* HOLD records that were counted have come: what waited for them and was not named has arrived. */
static void release_waiting(struct pmf_flow *f)
{
	struct pmf_item *item, *next;

	PMF_TAILQ_FOREACH_SAFE(item, &f->waiting, park, next)
	{
		if ((int16_t)(uint16_t)(item->holds - f->holds_got) > 0)
			break;
		TAILQ_REMOVE(&f->waiting, item, park);
		pmf_flow_item_done(f, item, 0);
	}
}

static struct pmf_item *find(struct pmf_itempark *where, uint64_t msg)
{
	struct pmf_item *item;

	TAILQ_FOREACH (item, where, park) {
		if (item->msg == msg)
			return item;
	}
	return NULL;
}

/*
 * The peer answers a START only after having taken it, and that packet's header acknowledged it: a
 * message that is answered and still in the send queue is the first there.
 */
static struct pmf_item *find_first(struct pmf_flow *f, uint64_t msg)
{
	struct pmf_item *item = STAILQ_FIRST(&f->txq[PMF_Q_SEND].items);

	return item && item->msg == msg && item->mode != PMF_MODE_NONE ? item : NULL;
}

static int on_hold(struct pmf_flow *f, uint64_t msg)
{
	struct pmf_item *item = find(&f->waiting, msg);

	f->holds_got++;
	f->stats->tx_held++;
	if (item) {
		item->held = true;
		TAILQ_REMOVE(&f->waiting, item, park);
		TAILQ_INSERT_TAIL(&f->parked, item, park);
	} else {
		item = find_first(f, msg);
		if (item)
			item->held = true;
	}
	release_waiting(f);
	return 0;
}

static int on_invite(struct pmf_flow *f, uint64_t msg)
{
	struct pmf_item *item = find(&f->parked, msg);

	f->probe_every = 0;
	if (item) {
		TAILQ_REMOVE(&f->parked, item, park);
		send_body(f, item);
		return 0;
	}
	item = find_first(f, msg);
	if (item && item->held)
		item->invited = true;
	/* Otherwise it has been aborted meanwhile: the ABORT is on its way. */
	return 0;
}

/* How much of the item is in packets. */
static uint64_t cut_so_far(const struct pmf_flow *f, const struct pmf_item *item)
{
	const struct pmf_txq *txq = &f->txq[item->mode == PMF_MODE_BODY ? PMF_Q_BODY : PMF_Q_SEND];

	if (txq->cur == item)
		return txq->off;
	for (const struct pmf_item *i = txq->cur; i; i = STAILQ_NEXT(i, link)) {
		if (i == item)
			return 0;
		if (item->mode != PMF_MODE_BODY && i->msg > item->msg)
			break; /* the send queue is in order of numbers */
	}
	return item->len;
}

void pmf_flow_abort(struct pmf_flow *f, struct pmf_item *item)
{
	if (item->aborted || item->state == PMF_ITEM_DONE || item->kind != PMF_ITEM_MSG)
		return;
	item->aborted = true;
	if (item->state == PMF_ITEM_PARKED) {
		bool waits = find(&f->waiting, item->msg) == item;

		TAILQ_REMOVE(waits ? &f->waiting : &f->parked, item, park);
		send_abort(f, item);
	} else {
		item->len = cut_so_far(f, item);
		if (f->blocked && f->txq[PMF_Q_SEND].cur == item)
			unblock(f);
	}
}

/* ---- receiving ---- */

void pmf_flow_credit_return(struct pmf_flow *f, uint64_t cost)
{
	uint64_t part = f->conf->rx_credit >> (PMF_CREDIT_SHIFT + 2), low, told;

	f->rx_limit += cost >> PMF_CREDIT_SHIFT;
	if (pmf_likely(f->rx_limit - f->rx_told < part) || f->state == PMF_FLOW_DEAD)
		return;
	/* A quarter has come back: tell a peer that may be waiting for it. */
	low = PMF_MAX(part, pmf_msg_cost(f->conf->eager_limit, true) >> PMF_CREDIT_SHIFT);
	told = f->rx_told - f->rx_cost;
	if (told < low)
		pmf_flow_ack_soon(f);
}

static void control_item(struct pmf_flow *f, struct pmf_item *item, enum pmf_item_kind kind,
			 uint64_t msg, size_t len)
{
	item->kind = (uint8_t)kind;
	item->state = PMF_ITEM_NEW;
	item->mode = PMF_MODE_NONE;
	item->aborted = item->held = item->invited = false;
	item->flags = item->niov = 0;
	item->len = len;
	item->msg = msg;
	pmf_flow_enqueue(f, item, PMF_Q_CTL);
}

void pmf_flow_invite(struct pmf_flow *f, struct pmf_item *item, uint64_t msg)
{
	control_item(f, item, PMF_ITEM_INVITE, msg, 0);
}

void pmf_flow_hold(struct pmf_flow *f, struct pmf_item *item, uint64_t msg)
{
	f->holds_made++;
	f->stats->rx_held++;
	control_item(f, item, PMF_ITEM_HOLD, msg, 0);
}

void pmf_flow_control(struct pmf_flow *f, struct pmf_item *item, enum pmf_item_kind kind,
		      enum pmf_reason reason, const void *bytes, size_t len)
{
	item->buf = bytes;
	control_item(f, item, kind, (uint64_t)reason, PMF_MIN(len, (size_t)PMF_WIRE_CM_DATA));
}

/* A message begins: it must be the next one, after the end of the last, and within the credit. */
static int on_start(struct pmf_flow *f, struct pmf_rec *rec)
{
	bool eager = !(rec->flags & PMF_RF_ANNOUNCE);

	if (pmf_unlikely(rec->msg32 != (uint32_t)f->rx_msg || f->rx_off != f->rx_total))
		return -EPROTO;
	if (pmf_unlikely(eager && rec->total > UINT32_MAX)) /* no credit is that large */
		return -EPROTO;
	f->rx_cost += pmf_msg_cost(rec->total, eager) >> PMF_CREDIT_SHIFT;
	if (pmf_unlikely(f->rx_cost > f->rx_limit))
		return -EPROTO;
	rec->msg = f->rx_msg++;
	f->rx_off = rec->len;
	f->rx_total = eager ? rec->total : 0;
	f->stats->rx_msgs++;
	f->stats->rx_bytes += rec->len;
	return 1;
}

/* The rest of the message that began last, in order. */
static int on_cont(struct pmf_flow *f, struct pmf_rec *rec)
{
	if (pmf_unlikely(rec->msg32 != (uint32_t)(f->rx_msg - 1)))
		return -EPROTO;
	rec->msg = f->rx_msg - 1;
	if (f->rx_total == UINT64_MAX) /* aborted: some of it was sent before */
		return 0;
	if (pmf_unlikely(rec->off != f->rx_off || rec->len > f->rx_total - f->rx_off ||
			 rec->len == 0))
		return -EPROTO;
	f->rx_off += rec->len;
	f->stats->rx_bytes += rec->len;
	return 1;
}

/* Of a message that may be any number up to the next. */
static int on_abort(struct pmf_flow *f, struct pmf_rec *rec)
{
	rec->msg = pmf_extend32(rec->msg32, f->rx_msg);
	if (pmf_unlikely(rec->msg > f->rx_msg))
		return -EPROTO;
	if (rec->msg == f->rx_msg)
		f->rx_msg++;
	if (rec->msg + 1 == f->rx_msg)
		f->rx_off = f->rx_total = UINT64_MAX;
	f->rx_aborted = rec->msg;
	return 1;
}

static int on_body(struct pmf_flow *f, struct pmf_rec *rec)
{
	rec->msg = pmf_extend32(rec->msg32, f->rx_msg);
	if (pmf_unlikely(rec->msg >= f->rx_msg))
		return -EPROTO;
	if (pmf_unlikely(rec->msg == f->rx_aborted)) /* sent before it was aborted */
		return 0;
	f->stats->rx_bytes += rec->len;
	return 1;
}

/* An answer to a message of ours. */
static int on_answer(struct pmf_flow *f, const struct pmf_rec *rec)
{
	uint64_t msg = pmf_extend32(rec->msg32, f->tx_msg);

	if (pmf_unlikely(msg >= f->tx_msg))
		return -EPROTO;
	return rec->type == PMF_RT_HOLD ? on_hold(f, msg) : on_invite(f, msg);
}

int pmf_flow_next_rec(struct pmf_flow *f, struct pmf_rec_iter *it, struct pmf_rec *rec)
{
	int n, got = 0;

	while (got == 0) {
		if (it->left == 0)
			return 0;
		n = pmf_rec_get(it->p, it->left, rec);
		if (pmf_unlikely(n <= 0))
			return -EPROTO;
		it->p += n;
		it->left -= (size_t)n;
		switch (rec->type) {
		case PMF_RT_START:
			return on_start(f, rec);
		case PMF_RT_CONT:
			got = on_cont(f, rec);
			break;
		case PMF_RT_BODY:
			got = on_body(f, rec);
			break;
		case PMF_RT_ABORT:
			return on_abort(f, rec);
		case PMF_RT_CONNREQ:
		case PMF_RT_ACCEPT:
		case PMF_RT_REJECT:
		case PMF_RT_CLOSE:
			return 1;
		case PMF_RT_INVITE:
		case PMF_RT_HOLD:
			got = on_answer(f, rec);
			break;
		default: /* unknown and optional */
			break;
		}
	}
	return got;
}
