/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Matching: posted receives against messages, in posting and sending order; and the placing of
 * bytes. Engine owner only. The lists belong to the endpoint (posted, unexpected) and to the flow
 * (matched receives in order, invited ones, stubs).
 */
#include "msg/engine.h"

#include <rdma/fi_errno.h>

#include "msg/scatter.h"

void pmf_scatter_iov(const struct iovec *iov, uint8_t niov, uint64_t off, const uint8_t *bytes,
		     uint32_t len)
{
	for (uint8_t i = 0; i < niov && len; i++) {
		uint32_t n;

		if (off >= iov[i].iov_len) {
			off -= iov[i].iov_len;
			continue;
		}
		n = (uint32_t)PMF_MIN(len, iov[i].iov_len - off);
		memcpy((uint8_t *)iov[i].iov_base + off, bytes, n);
		bytes += n;
		len -= n;
		off = 0;
	}
}

/* ---- messages under way ---- */

/* Bytes are to come: a sender that dies meanwhile must be missed, though we owe it nothing (E1). */
static void await(struct pmf_engine *e, struct pmf_eflow *ef)
{
	if (ef->awaited++ == 0 && !ef->cm) /* connections are always watched */
		pmf_flow_watch(&ef->flow,
			       atomic_load_explicit(&e->last_pass, memory_order_relaxed));
}

void pmf_match_arrived(struct pmf_eflow *ef)
{
	if (--ef->awaited == 0 && !ef->cm)
		pmf_flow_unwatch(&ef->flow);
}

/* ---- a receive ends ---- */

/* Receives of one sender complete in matching order (C3): one that is whole early waits for its
 * elders. */
static void order_advance(struct pmf_engine *e, struct pmf_eflow *ef)
{
	struct pmf_rx *rx;

	while ((rx = TAILQ_FIRST(&ef->rx_order)) && rx->done) {
		TAILQ_REMOVE(&ef->rx_order, rx, order);
		rx->ordered = false;
		rx->flow = NULL;
		pmf_match_arrived(ef);
		pmf_complete_rx(e, rx);
	}
}

static void rx_whole(struct pmf_engine *e, struct pmf_rx *rx)
{
	struct pmf_eflow *ef = rx->flow;

	rx->done = true;
	if (!rx->ordered) {
		rx->flow = NULL;
		pmf_complete_rx(e, rx);
		return;
	}
	order_advance(e, ef);
}

static void order_append(struct pmf_engine *e, struct pmf_eflow *ef, struct pmf_rx *rx)
{
	await(e, ef);
	rx->ordered = true;
	TAILQ_INSERT_TAIL(&ef->rx_order, rx, order);
}

/* A receive takes a message. */
static inline void rx_take(struct pmf_rx *rx, struct pmf_ep *ep, struct pmf_eflow *ef, uint64_t msg,
			   uint64_t total, bool has_data, uint64_t data, fi_addr_t src)
{
	rx->ep = ep;
	rx->flow = ef;
	rx->msg = msg;
	rx->total = total;
	rx->got = 0;
	rx->has_data = has_data;
	rx->data = data;
	rx->src = src;
}

static void rx_invite(struct pmf_rx *rx)
{
	TAILQ_INSERT_TAIL(&rx->flow->bodies, rx, body);
	rx->item.kind = PMF_ITEM_INVITE;
	rx->invite_out = true;
	pmf_flow_invite(&rx->flow->flow, &rx->item, rx->msg);
}

/* ---- who takes what ---- */

/* @param key  the number of the sender's */
static inline bool wants(const struct pmf_rx *rx, fi_addr_t src, uint16_t key)
{
	if (!(rx->flags & PMF_XF_DIRECTED))
		return true;
	return rx->want == (rx->flags & PMF_XF_KEYED ? PMF_KEY_ADDR | key : src);
}

/* The oldest posted receive that a message of @p src matches. */
static struct pmf_rx *find_posted(struct pmf_rctx *rc, fi_addr_t src, uint16_t key)
{
	struct pmf_rx *rx;

	TAILQ_FOREACH (rx, &rc->posted, link)
		if (wants(rx, src, key))
			return rx;
	return NULL;
}

/*
 * A message has its buffer, but no part is free: it waits, and all that come after it. Passes look
 * again until one is, however long ago the endpoint has posted (engine_busy.c).
 */
static void starve(struct pmf_rctx *rc)
{
	struct pmf_ep *ep = TAILQ_FIRST(&rc->eps);

	rc->starved = true;
	TAILQ_INSERT_HEAD(&rc->posted, &rc->barrier, link);
	if (ep)
		pmf_ep_posted(ep);
}

/* Take a posted receive, or a part of one. @return what the bytes go into; NULL: starved now */
static struct pmf_rx *claim(struct pmf_rctx *rc, struct pmf_rx *rx, uint64_t total)
{
	if (!(rx->flags & PMF_XF_MULTI)) {
		pmf_rx_unpost(rc, rx);
		return rx;
	}
	rx = pmf_multi_cut(rc, rx, total);
	if (!rx)
		starve(rc);
	return rx;
}

/* ---- a receive is posted ---- */

/* An unexpected message meets a receive. @return false: its flow died of it, lists have changed */
static bool take_stub(struct pmf_engine *e, struct pmf_stub *s, struct pmf_rx *rx, pmf_ns_t now)
{
	struct pmf_eflow *ef = s->flow;

	rx_take(rx, s->ep, ef, s->msg, s->total, s->has_data, s->data, s->src);
	if (pmf_unlikely(s->ep->source_err))
		rx->from = s->peer;
	if (pmf_unlikely(s->datagram))
		rx->flags |= PMF_XF_FROM_GROUP;
	switch (s->state) {
	case PMF_STUB_COMPLETE:
		pmf_stub_read(s, rx);
		rx->got = s->total;
		if (ef && !TAILQ_EMPTY(&ef->rx_order))
			order_append(e, ef, rx);
		pmf_stub_put(e, s);
		rx_whole(e, rx);
		break;
	case PMF_STUB_RECEIVING:
		pmf_stub_read(s, rx);
		rx->got = s->got;
		order_append(e, ef, rx);
		ef->cur_rx = rx;
		pmf_stub_put(e, s); /* clears cur_stub */
		break;
	default: /* HELD */
		order_append(e, ef, rx);
		rx_invite(rx);
		pmf_stub_put(e, s);
		break;
	}
	/* an invitation, or credit that the peer waits for */
	return !ef || pmf_eflow_settle(e, ef, now);
}

void pmf_match_again(struct pmf_engine *e, struct pmf_rctx *rc, struct pmf_rx *rx, pmf_ns_t now)
{
	struct pmf_stub *s, *next;

	if (rc->starved)
		TAILQ_REMOVE(&rc->posted, &rc->barrier, link);
	rc->starved = false;
	for (s = TAILQ_FIRST(&rc->unexpected); s; s = next) {
		struct pmf_rx *to = rx && wants(rx, s->src, s->peer.key) ? rx : NULL;
		bool last;

		next = TAILQ_NEXT(s, link);
		if (!rx)
			to = find_posted(rc, s->src, s->peer.key);
		if (!to)
			continue;
		last = !(to->flags & PMF_XF_MULTI);
		to = claim(rc, to, s->total);
		if (!to)
			return;
		/* a buffer that is released may be free again, and another thread's, before we look
		 * next */
		last = rx && (last || rx->released);
		if (!take_stub(e, s, to, now)) {
			rx = NULL;
			next = TAILQ_FIRST(&rc->unexpected);
		} else if (last) {
			return;
		}
	}
}

void pmf_match_posted(struct pmf_engine *e, struct pmf_rctx *rc, struct pmf_rx *rx, pmf_ns_t now)
{
	struct pmf_stub *s = TAILQ_FIRST(&rc->unexpected);

	if (pmf_unlikely(s && !rc->starved && !(rx->flags & PMF_XF_CHOOSY))) {
		take_stub(e, s, rx, now);
		return;
	}
	TAILQ_INSERT_TAIL(&rc->posted, rx, link);
	if (pmf_likely(!(rx->flags & PMF_XF_CHOOSY))) {
		rc->nany++;
		return;
	}
	if (rx->flags & PMF_XF_DIRECTED)
		rc->ndirected++;
	else
		rc->nany++;
	if (rx->flags & PMF_XF_MULTI)
		rc->nmulti++;
	if (s && !rc->starved)
		pmf_match_again(e, rc, rx, now);
}

/* ---- a message begins ---- */

static void start_expected(struct pmf_engine *e, struct pmf_eflow *ef, struct pmf_rx *rx,
			   const struct pmf_rec *rec)
{
	bool eager = !(rec->flags & PMF_RF_ANNOUNCE);

	ef->ep->stats.rx_expected++;
	rx_take(rx, ef->ep, ef, rec->msg, rec->total, rec->flags & PMF_RF_DATA, rec->data,
		ef->fi_addr);
	if (pmf_unlikely(ef->ep->source_err))
		rx->from = ef->peer;
	pmf_flow_credit_return(&ef->flow, pmf_msg_cost(rec->total, eager));
	if (pmf_likely(eager && rec->len == rec->total)) {
		if (rec->len)
			pmf_scatter(rx, 0, rec->bytes, rec->len);
		rx->got = rec->len;
		if (!TAILQ_EMPTY(&ef->rx_order))
			order_append(e, ef, rx);
		rx_whole(e, rx);
		return;
	}
	order_append(e, ef, rx);
	if (!eager) {
		rx_invite(rx);
		return;
	}
	pmf_scatter(rx, 0, rec->bytes, rec->len);
	rx->got = rec->len;
	ef->cur_rx = rx;
}

static void start_unexpected(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec)
{
	bool eager = !(rec->flags & PMF_RF_ANNOUNCE);
	struct pmf_stub *s = pmf_stub_get(e); /* there is one: engine_rx.c has counted */

	ef->ep->stats.rx_unexpected++;
	s->ep = ef->ep;
	s->flow = ef;
	s->msg = rec->msg;
	s->total = rec->total;
	s->has_data = rec->flags & PMF_RF_DATA;
	s->data = rec->data;
	s->src = ef->fi_addr;
	s->peer = ef->peer;
	s->cost = pmf_msg_cost(rec->total, eager);
	TAILQ_INSERT_TAIL(&ef->ep->rctx->unexpected, s, link);
	TAILQ_INSERT_TAIL(&ef->stubs, s, flow_link);
	if (!eager) {
		s->state = PMF_STUB_HELD;
		await(e, ef);
		return;
	}
	if (pmf_unlikely(!pmf_stub_reserve(e, s, rec->total))) {
		s->state = PMF_STUB_HELD;
		await(e, ef);
		s->item.kind = PMF_ITEM_HOLD;
		s->hold_out = true;
		pmf_flow_hold(&ef->flow, &s->item, rec->msg);
		return;
	}
	if (rec->len)
		pmf_stub_write(s, 0, rec->bytes, rec->len);
	s->got = rec->len;
	s->state = s->got == s->total ? PMF_STUB_COMPLETE : PMF_STUB_RECEIVING;
	if (s->state == PMF_STUB_RECEIVING) {
		ef->cur_stub = s;
		await(e, ef);
	}
}

void pmf_match_start(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec)
{
	struct pmf_rctx *rc = ef->ep->rctx;
	struct pmf_rx *rx = TAILQ_FIRST(&rc->posted);

	ef->cur_rx = NULL;
	ef->cur_stub = NULL;
	ef->cur_msg = rec->msg;
	ef->cur_off = rec->len;
	ef->cur_left = rec->flags & PMF_RF_ANNOUNCE ? 0 : rec->total - rec->len;
	if (pmf_likely(rx && !(rx->flags & PMF_XF_CHOOSY))) {
		TAILQ_REMOVE(&rc->posted, rx, link);
		rc->nany--;
		start_expected(e, ef, rx, rec);
		return;
	}
	if (rx)
		rx = rc->starved ? NULL : find_posted(rc, ef->fi_addr, ef->peer.key);
	if (rx)
		rx = claim(rc, rx, rec->total);
	if (rx)
		start_expected(e, ef, rx, rec);
	else
		start_unexpected(e, ef, rec);
}

/* ---- a multicast message ---- */

static int keep_datagram(struct pmf_engine *e, struct pmf_ep *ep, const struct pmf_rec *rec,
			 const struct pmf_peer *from, fi_addr_t src)
{
	struct pmf_stub *s = pmf_stub_get_datagram(e, rec->total);

	if (!s)
		return -ENOMEM;
	ep->stats.rx_unexpected++;
	s->ep = ep;
	s->flow = NULL;
	s->msg = 0;
	s->total = s->got = rec->total;
	s->has_data = rec->flags & PMF_RF_DATA;
	s->data = rec->data;
	s->src = src;
	s->peer = *from;
	s->state = PMF_STUB_COMPLETE;
	if (rec->len)
		pmf_stub_write(s, 0, rec->bytes, rec->len);
	TAILQ_INSERT_TAIL(&ep->rctx->unexpected, s, link);
	return 0;
}

int pmf_match_datagram(struct pmf_engine *e, struct pmf_ep *ep, const struct pmf_rec *rec,
		       const struct pmf_addr *from)
{
	struct pmf_rctx *rc = ep->rctx;
	struct pmf_peer peer = {*from, 0};
	fi_addr_t src = pmf_peers_find(ep->peers, &peer);
	struct pmf_rx *rx = rc->starved ? NULL : find_posted(rc, src, 0);

	if (rx)
		rx = claim(rc, rx, rec->total);
	if (!rx)
		return keep_datagram(e, ep, rec, &peer, src);
	ep->stats.rx_expected++;
	rx_take(rx, ep, NULL, 0, rec->total, rec->flags & PMF_RF_DATA, rec->data, src);
	rx->flags |= PMF_XF_FROM_GROUP;
	rx->from = peer;
	if (rec->len)
		pmf_scatter(rx, 0, rec->bytes, rec->len);
	rx->got = rec->len;
	rx_whole(e, rx);
	return 0;
}

/* ---- its bytes ---- */

/** More of the eager message under way. @return 0, or -EPROTO */
int pmf_match_cont(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec)
{
	if (pmf_unlikely(rec->msg != ef->cur_msg || rec->off != ef->cur_off ||
			 rec->len > ef->cur_left || rec->len == 0))
		return -EPROTO;
	ef->cur_off += rec->len;
	ef->cur_left -= rec->len;
	if (ef->cur_rx) {
		struct pmf_rx *rx = ef->cur_rx;

		pmf_scatter(rx, rec->off, rec->bytes, rec->len);
		rx->got += rec->len;
		if (ef->cur_left == 0) {
			ef->cur_rx = NULL;
			rx_whole(e, rx);
		}
	} else if (ef->cur_stub) {
		struct pmf_stub *s = ef->cur_stub;

		pmf_stub_write(s, rec->off, rec->bytes, rec->len);
		s->got += rec->len;
		if (ef->cur_left == 0) {
			ef->cur_stub = NULL;
			s->state = PMF_STUB_COMPLETE;
			pmf_match_arrived(ef);
		}
	}
	return 0;
}

static struct pmf_rx *find_body(struct pmf_eflow *ef, uint64_t msg)
{
	struct pmf_rx *rx;

	TAILQ_FOREACH (rx, &ef->bodies, body)
		if (rx->msg == msg)
			return rx;
	return NULL;
}

/** Bytes of an invited message. @return 0, or -EPROTO */
int pmf_match_body(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec)
{
	struct pmf_rx *rx = find_body(ef, rec->msg);

	/* whoever sends a body has acknowledged its invitation with it: else the item would be
	 * reused too early */
	if (pmf_unlikely(!rx || rx->invite_out || rec->off != rx->got ||
			 rec->len > rx->total - rx->got))
		return -EPROTO;
	if (rec->len)
		pmf_scatter(rx, rec->off, rec->bytes, rec->len);
	rx->got += rec->len;
	if (rx->got == rx->total) {
		TAILQ_REMOVE(&ef->bodies, rx, body);
		rx_whole(e, rx);
	}
	return 0;
}

/* ---- ends ---- */

static void rx_fail(struct pmf_engine *e, struct pmf_rx *rx, int error)
{
	rx->err = error;
	rx_whole(e, rx);
}

/** The sender has taken the message back (it closed its endpoint). @return 0, or -EPROTO */
int pmf_match_abort(struct pmf_engine *e, struct pmf_eflow *ef, uint64_t msg)
{
	int error =
		ef->cm ? FI_ECANCELED : FI_ECONNABORTED; /* a connection is about to end (E10) */
	struct pmf_rx *rx = find_body(ef, msg);
	struct pmf_stub *s, *next;

	if (rx) {
		TAILQ_REMOVE(&ef->bodies, rx, body);
		/* our invitation may have crossed it: then the receive ends when that is
		 * acknowledged */
		rx->err = error;
		if (!rx->invite_out)
			rx_whole(e, rx);
		return 0;
	}
	if (ef->cur_left && ef->cur_msg == msg) {
		rx = ef->cur_rx;
		ef->cur_rx = NULL;
		ef->cur_left = 0;
		if (rx) {
			rx_fail(e, rx, error);
			return 0;
		}
	}
	PMF_TAILQ_FOREACH_SAFE(s, &ef->stubs, flow_link, next)
	if (s->msg == msg && s->state != PMF_STUB_COMPLETE) {
		pmf_stub_put(e, s);
		return 0;
	}
	return 0;
}

/* Nothing refers any more to a receive whose endpoint has closed. The buffer of a part has been
 * seen to before. */
static void rx_dropped(struct pmf_engine *e, struct pmf_rx *rx)
{
	if (rx->flags & PMF_XF_PART)
		pmf_rx_free(rx);
	else
		pmf_complete_left(e, rx);
}

/** The invitation of @p rx is acknowledged, or has died with its flow. */
void pmf_match_invited(struct pmf_engine *e, struct pmf_rx *rx)
{
	rx->invite_out = false;
	if (pmf_unlikely(rx->dropped))
		rx_dropped(e, rx);
	else if (pmf_unlikely(rx->err && rx->flow && !rx->done))
		rx_whole(e, rx);
}

void pmf_match_flow_end(struct pmf_engine *e, struct pmf_eflow *ef, int error)
{
	struct pmf_stub *s, *next;
	struct pmf_rx *rx;

	PMF_TAILQ_FOREACH_SAFE(s, &ef->stubs, flow_link, next)
	{
		if (s->state != PMF_STUB_COMPLETE) {
			pmf_stub_put(e, s);
			continue;
		}
		TAILQ_REMOVE(&ef->stubs, s, flow_link);
		s->flow = NULL; /* whole: can still be delivered */
	}
	ef->cur_rx = NULL;
	ef->cur_stub = NULL;
	while ((rx = TAILQ_FIRST(&ef->bodies)))
		TAILQ_REMOVE(&ef->bodies, rx, body);
	while ((rx = TAILQ_FIRST(&ef->rx_order))) {
		TAILQ_REMOVE(&ef->rx_order, rx, order);
		rx->ordered = false;
		rx->flow = NULL;
		if (!rx->done)
			rx->err = error;
		rx->done = true;
		pmf_complete_rx(e, rx);
	}
}

/* A receive had taken a message of the endpoint that closes. */
static void rx_drop(struct pmf_engine *e, struct pmf_rx *rx)
{
	struct pmf_rx *buffer = rx->flags & PMF_XF_PART ? rx->buffer : NULL;

	rx->ordered = false;
	rx->flow = NULL;
	if (buffer && --buffer->nparts == 0 && buffer->released)
		pmf_complete_left(e, buffer);
	rx->dropped = true;
	if (!rx->invite_out)
		rx_dropped(e, rx);
}

/** The endpoint closes: its own receives are dropped without an entry, those of a shared context
 * end as FI_ECANCELED with another endpoint; bytes under way are thrown away. */
void pmf_match_ep_end(struct pmf_engine *e, struct pmf_ep *ep)
{
	struct pmf_rx *rx, *then;
	struct pmf_eflow *ef;

	pmf_rctx_forget(e, ep);
	TAILQ_FOREACH (ef, &ep->eflows, ep_link) {
		ef->cur_rx = NULL;
		PMF_TAILQ_FOREACH_SAFE(rx, &ef->rx_order, order, then)
		rx_drop(e, rx);
		TAILQ_INIT(&ef->rx_order);
		TAILQ_INIT(&ef->bodies);
	}
}
