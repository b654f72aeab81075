/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The engine's receiving half: frames to flows, records to matching, first contact. Owner only.
 */
#include "msg/engine.h"

#include <rdma/fi_errno.h>

#include "msg/auth.h"

/* ---- answers without a flow ---- */

/*
 * Send @p len bytes that stand in @p m to @p to, sealed under the key that @p got came with if
 * there is a ring; not for the data path.
 */
static void send_stray(struct pmf_engine *e, struct rte_mbuf *m, size_t len,
		       const struct pmf_addr *to, uint16_t sport, const struct pmf_auth *auth,
		       const struct pmf_hdr *got, pmf_ns_t now)
{
	struct pmf_seal_ends ends = {.to_port = to->port};
	struct pmf_path path;

	if (!len || !pmf_queue_room(e->q) || pmf_path_init(&path, e->port, to, sport)) {
		rte_pktmbuf_free(m);
		return;
	}
	if (auth) {
		pmf_path_src(&path, ends.from);
		memcpy(ends.to, to->ip, sizeof(ends.to));
		len = pmf_seal_contact(auth->ring, got->key, &ends, rte_pktmbuf_mtod(m, uint8_t *),
				       len);
	}
	if (len)
		pmf_frame_send(e->q, &path, m, (uint16_t)len, false, now);
	else
		rte_pktmbuf_free(m);
	pmf_path_fini(&path, e->q);
}

/*
 * Reset the sender of a packet of an unknown connection, or refuse a hello. Without a ring for his
 * key he is told so, which proves nothing to him.
 */
static void answer_reset(struct pmf_engine *e, const struct pmf_frame *f, const struct pmf_hdr *hdr,
			 const struct pmf_auth *auth, bool key_refused, pmf_ns_t now)
{
	uint8_t flags = key_refused ? PMF_HF_KEY : 0;
	struct rte_mbuf *m;
	struct pmf_addr to;
	uint8_t *p;
	size_t len;

	if (now - e->reset_window > PMF_NS_PER_S) {
		e->reset_window = now;
		e->resets = 0;
	}
	if (e->resets++ >= PMF_RESET_RATE)
		return;
	m = pmf_frame_alloc(e->q);
	if (!m)
		return;
	/* a flow sends from its endpoint's port unless it has changed the path: good enough for a
	 * hint */
	pmf_frame_src(f, &to);
	p = rte_pktmbuf_mtod(m, uint8_t *);
	e->stats.key_refused += key_refused;
	if (hdr->type == PMF_PT_HELLO) {
		to.port = hdr->port;
		len = pmf_contact_refuse(hdr, f->dst_port, flags, p, e->port->max_payload);
		e->stats.hello_refused += !key_refused;
	} else {
		len = pmf_contact_reset(hdr, f->dst_port, flags, p, e->port->max_payload);
	}
	send_stray(e, m, len, &to, f->dst_port, key_refused ? NULL : auth, hdr, now);
}

/* A packet names a connection that is not known here. */
static void unknown_conn(struct pmf_engine *e, const struct pmf_frame *f, const struct pmf_hdr *hdr,
			 pmf_ns_t now)
{
	const struct pmf_ep *ep = e->ep_of_port[f->dst_port];
	struct pmf_auth *auth;
	bool known = true;

	if (ep)
		known = pmf_auth_find(ep, hdr, &auth);
	else
		auth = pmf_auth_any(e, hdr->key);
	e->stats.drop_no_flow++;
	answer_reset(e, f, hdr, auth, !known, now);
}

/* Who takes this hello: a listener those that ask for one, an RDM endpoint the others. */
static struct pmf_ep *taker(struct pmf_engine *e, uint16_t port, const struct pmf_hdr *hdr)
{
	struct pmf_ep *ep = e->ep_of_port[port];

	if (!ep || ep->state != PMF_EP_ENABLED)
		return NULL;
	return ep->type == (hdr->flags & PMF_HF_CONNECT ? PMF_EP_PASSIVE : PMF_EP_RDM) ? ep : NULL;
}

/* The flow with the endpoint at @p src that a packet outside flows comes from, under a key of that
 * ring. */
static struct pmf_eflow *named(struct pmf_engine *e, uint16_t local_port,
			       const struct pmf_addr *src, const struct pmf_hdr *hdr,
			       const struct pmf_auth *auth)
{
	struct pmf_peer peer = {*src, auth ? auth->number : 0};

	peer.addr.port = hdr->port;
	return pmf_eflow_find(e, local_port, &peer);
}

static void on_hello(struct pmf_engine *e, const struct pmf_frame *f, const struct pmf_hdr *hdr,
		     pmf_ns_t now)
{
	uint16_t port = f->dst_port;
	struct pmf_ep *ep = taker(e, port, hdr);
	struct pmf_addr src, to;
	struct pmf_auth *auth;
	struct pmf_eflow *ef;
	struct rte_mbuf *m;
	uint64_t inc;
	size_t len;

	if (!pmf_auth_hello(e, ep, f, hdr, &auth)) {
		if (ep)
			answer_reset(e, f, hdr, NULL, true, now);
		return;
	}
	pmf_frame_src(f, &src);
	ef = named(e, port, &src, hdr, auth);
	/* a connection is asked about: it may have been accepted at a listener that is gone */
	if (ef && (hdr->flags & PMF_HF_VERIFY)) {
		inc = ef->flow.id.inc;
	} else if (ep) {
		inc = ep->inc;
	} else {
		answer_reset(e, f, hdr, auth, false, now);
		return;
	}
	m = pmf_frame_alloc(e->q);
	if (!m)
		return;
	len = pmf_contact_challenge(&e->key, &e->fconf, hdr, f->len, &src, port, inc,
				    ef && ef->conn == hdr->peer_conn, now,
				    rte_pktmbuf_mtod(m, uint8_t *), e->port->max_payload, &to);
	e->stats.hello_rx++;
	send_stray(e, m, len, &to, port, auth, hdr, now);
}

static bool is_peer(const struct pmf_flow *f, uint64_t inc, uint64_t conn)
{
	return f->bound && f->peer_inc == inc && (!f->peer_conn || f->peer_conn == conn);
}

/*
 * Whether the cookie of an OPEN lets it in, @p err says what pmf_contact_check() found. @p ef is
 * the flow with that peer, @p same too if it is with that life of it.
 */
static bool cookie_good(int err, const struct pmf_contact *c, const struct pmf_eflow *ef,
			const struct pmf_eflow *same)
{
	/* an old cookie is no reason to stop a flow that it has opened long ago */
	if (err)
		return err == -ETIMEDOUT && same && same->flow.bound;
	if (same)
		return true;
	/* the last words of the old one may come in the same burst, which has one time for all */
	return !ef || c->cookie_time >= ef->flow.last_rx;
}

/*
 * An OPEN with a valid cookie. The same life as before: just data. Another life, and the cookie
 * not older than what we heard of the old one: the peer has restarted, the old flow ends.
 * @return the flow, or NULL
 */
static struct pmf_eflow *on_open(struct pmf_engine *e, const struct pmf_frame *f,
				 const struct pmf_hdr *hdr, struct pmf_ep *ep, pmf_ns_t now)
{
	struct pmf_contact c = {0};
	struct pmf_seal *fresh;
	struct pmf_auth *auth;
	struct pmf_eflow *ef, *same;
	struct pmf_addr src;
	int err;

	pmf_frame_src(f, &src);
	err = pmf_contact_check(&e->key, hdr, &src, ep->addr.port, ep->inc, now, &c);
	if (!pmf_auth_find(ep, hdr, &auth)) {
		e->stats.drop_key++;
		return NULL;
	}
	ef = named(e, ep->addr.port, &src, hdr, auth);
	same = ef && (!ef->flow.bound || is_peer(&ef->flow, hdr->inc, hdr->my_conn)) ? ef : NULL;
	if (!cookie_good(err, &c, ef, same)) {
		e->stats.drop_cookie++;
		return NULL;
	}
	/* (A flow that is not bound yet, in HELLO, would be bound to that life.) */
	if (!(same && same->flow.bound) && pmf_ended_has(&e->ended, c.inc, c.conn)) {
		e->stats.drop_ended++;
		return NULL;
	}
	if (!pmf_auth_open_rx(e, same, auth, f, hdr, ep->inc, &fresh))
		return NULL;
	if (err) /* nothing new */
		return same;
	if (ef && !same) {
		pmf_flow_kill(&ef->flow, FI_ECONNRESET);
		pmf_eflow_settle(e, ef, now);
	}
	ef = same ? same : pmf_eflow_open(e, ep, &c.peer, auth, now, &err);
	pmf_auth_adopt(ef, fresh);
	if (ef) {
		pmf_flow_accept(&ef->flow, &c, now);
		pmf_auth_bind(ef);
	}
	return ef;
}

/* ---- records ---- */

/* STARTs in a packet, or -1 when it also brings bytes for an endpoint that is closed. */
static int count_starts(const uint8_t *p, size_t len, bool *data)
{
	struct pmf_rec rec;
	int starts = 0, n;

	*data = false;
	while (len && (n = pmf_rec_get(p, len, &rec)) > 0) {
		size_t all = (size_t)n; /* its payload included */

		if (rec.type == PMF_RT_START)
			starts++;
		if (rec.type == PMF_RT_START || rec.type == PMF_RT_CONT || rec.type == PMF_RT_BODY)
			*data = true;
		p += all;
		len -= PMF_MIN(all, len);
	}
	return starts;
}

/* Can the packet be processed to its end? An orphan takes control records only. */
static bool can_take(struct pmf_engine *e, struct pmf_eflow *ef, const uint8_t *p, size_t len)
{
	bool orphan = ef->ep->state > PMF_EP_ENABLED, data; /* or its connection is over */
	int starts;

	/* counted by what the packet can hold, not by what a peer that keeps to the limit puts in
	 */
	if (pmf_likely(!orphan && e->nstub_free >= len / sizeof(struct pmf_wire_rec)))
		return true;
	starts = count_starts(p, len, &data);
	if (orphan)
		return !data;
	return starts <= (int)(e->nstub_free + pmf_rctx_sure(ef->ep->rctx));
}

/* What the packet acknowledges is accounted now, if that was left for later. */
static void account(struct pmf_engine *e, struct pmf_eflow *ef)
{
	if (e->later.flow != ef)
		return;
	e->later.flow = NULL;
	pmf_flow_rx_later(&ef->flow, &e->hdr, e->later.packets, e->later.at);
	pmf_eflow_drain(e, ef);
}

static int records(struct pmf_engine *e, struct pmf_eflow *ef, const uint8_t *p, size_t len,
		   pmf_ns_t now)
{
	struct pmf_rec_iter it = {p, len};
	struct pmf_rec rec;
	int err;

	while ((err = pmf_flow_next_rec(&ef->flow, &it, &rec)) > 0) {
		switch (rec.type) {
		case PMF_RT_START:
			if (pmf_unlikely(ef->cur_left || rec.kind != PMF_MK_MSG ||
					 (ef->cm && !pmf_cm_takes_messages(ef))))
				return -EPROTO; /* the one before is not whole, or not of a kind
						   that is taken */
			pmf_match_start(e, ef, &rec);
			err = 0;
			break;
		case PMF_RT_CONT:
			err = pmf_match_cont(e, ef, &rec);
			break;
		case PMF_RT_BODY:
			err = pmf_match_body(e, ef, &rec);
			break;
		case PMF_RT_ABORT:
			err = pmf_match_abort(e, ef, rec.msg);
			break;
		default:
			account(e, ef); /* the peer's end is not that of what it has taken */
			err = pmf_cm_record(e, ef, &rec, now);
			break;
		}
		if (pmf_unlikely(err))
			return err;
	}
	return err;
}

/* Process the packet that is next in order. @return 0; -ENOMEM refused; -EPROTO */
static int deliver(struct pmf_engine *e, struct pmf_eflow *ef, pmf_psn_t psn, const uint8_t *p,
		   size_t len, pmf_ns_t now)
{
	int err;

	if (pmf_unlikely(!can_take(e, ef, p, len))) {
		e->stats.drop_no_memory++;
		pmf_flow_rx_refuse(&ef->flow, psn);
		return -ENOMEM;
	}
	err = records(e, ef, p, len, now);
	if (pmf_unlikely(err)) {
		e->stats.drop_protocol++;
		pmf_flow_kill(&ef->flow, FI_EIO);
		return err;
	}
	pmf_flow_rx_done(&ef->flow, now);
	return 0;
}

/* ---- frames ahead of order ---- */

static void hold(struct pmf_engine *e, struct pmf_eflow *ef, pmf_psn_t psn, struct rte_mbuf *m,
		 const struct pmf_hdr *hdr)
{
	struct rte_mbuf **slot = &ef->held[psn & ef->held_mask];

	if (pmf_unlikely(e->nheld >= e->held_max || *slot)) {
		pmf_flow_rx_refuse(&ef->flow, psn);
		rte_pktmbuf_free(m);
		return;
	}
	/* the mbuf's data becomes the records alone, so nothing is parsed again */
	rte_pktmbuf_adj(m, (uint16_t)(hdr->body - rte_pktmbuf_mtod(m, const uint8_t *)));
	m->data_len = (uint16_t)hdr->body_len;
	m->pkt_len = hdr->body_len;
	*slot = m;
	ef->nheld++;
	e->nheld++;
}

static void deliver_held(struct pmf_engine *e, struct pmf_eflow *ef, pmf_psn_t psn, pmf_ns_t now)
{
	while (ef->nheld) {
		struct rte_mbuf **slot = &ef->held[++psn & ef->held_mask], *m = *slot;

		if (!m)
			return;
		*slot = NULL;
		ef->nheld--;
		e->nheld--;
		if (deliver(e, ef, psn, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, now)) {
			rte_pktmbuf_free(m);
			return;
		}
		rte_pktmbuf_free(m);
	}
}

void pmf_engine_release_held(struct pmf_engine *e, struct pmf_eflow *ef)
{
	for (uint32_t i = 0; ef->nheld && i <= ef->held_mask; i++) {
		if (!ef->held[i])
			continue;
		rte_pktmbuf_free(ef->held[i]);
		ef->held[i] = NULL;
		ef->nheld--;
		e->nheld--;
	}
}

/* ---- packets ---- */

/* A packet of a flow. Takes the mbuf. */
static void on_flow_packet(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_frame *f,
			   const struct pmf_hdr *hdr, struct rte_mbuf *m, pmf_ns_t now)
{
	enum pmf_verdict v;
	pmf_psn_t psn;

	if (pmf_unlikely(hdr->psn != (uint32_t)ef->flow.rcv_next))
		pmf_flow_make_room(&ef->flow, hdr);
	if (pmf_unlikely(!pmf_eflow_activate(e, ef))) {
		e->stats.drop_no_memory++;
		rte_pktmbuf_free(m);
		return;
	}
	if (pmf_unlikely(e->nbusy > PMF_BUSY_LOOKS) && ef->ep->busy &&
	    pmf_rctx_posted(ef->ep->rctx)) {
		/* this pass did not look there: what is posted is not to miss its message */
		pmf_engine_receives(e, ef->ep->rctx, now);
		ef->ep->busy_at = now;
	}
	if (e->lone) {
		v = pmf_flow_rx_first(&ef->flow, hdr, f->ecn, now, &psn, &e->later.packets);
		e->later.flow = e->later.packets ? ef : NULL;
		e->later.at = now;
	} else {
		v = pmf_flow_rx(&ef->flow, hdr, f->ecn, now, &psn);
	}
	pmf_eflow_drain(e, ef); /* invitations that this packet acknowledges, before its records */
	switch (v) {
	case PMF_RX_NEXT:
		if (pmf_likely(!deliver(e, ef, psn, hdr->body, hdr->body_len, now)) &&
		    pmf_unlikely(ef->nheld))
			deliver_held(e, ef, psn, now);
		break;
	case PMF_RX_AHEAD:
		hold(e, ef, psn, m, hdr);
		m = NULL;
		break;
	case PMF_RX_FLUSH:
		pmf_engine_release_held(e, ef);
		break;
	default:
		break;
	}
	if (m && e->lone)
		e->later.frame = m;
	else if (m)
		rte_pktmbuf_free(m);
	if (pmf_unlikely(ef->cm) && pmf_cm_over(e, ef, now))
		return;
	if (e->later.flow != ef)
		pmf_eflow_settle(e, ef, now);
}

void pmf_engine_later(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_eflow *ef = e->later.flow;

	if (e->later.frame) {
		rte_pktmbuf_free(e->later.frame);
		e->later.frame = NULL;
	}
	if (ef) {
		account(e, ef);
		pmf_eflow_settle(e, ef, now);
	}
}

static struct pmf_eflow *by_conn(struct pmf_engine *e, uint64_t conn)
{
	uint32_t index = (uint32_t)conn;
	struct pmf_eflow *ef;

	if (pmf_unlikely(index >= e->flows_cap))
		return NULL;
	ef = e->flows[index];
	return pmf_likely(ef && ef->conn == conn) ? ef : NULL;
}

/* The flow whose packets the peer does not know: one of those with him, by the id that they named.
 */
static struct pmf_eflow *reset_flow(struct pmf_engine *e, const struct pmf_frame *f,
				    const struct pmf_hdr *hdr)
{
	const struct pmf_ep *ep = e->ep_of_port[f->dst_port];
	uint32_t n = ep && ep->nauths ? ep->nauths : 1;
	struct pmf_addr src;

	pmf_frame_src(f, &src);
	for (uint32_t i = 0; i < n; i++) {
		struct pmf_eflow *ef =
			named(e, f->dst_port, &src, hdr, ep && ep->nauths ? ep->auths[i] : NULL);

		if (ef && ef->flow.peer_conn == hdr->peer_conn)
			return ef;
	}
	return NULL;
}

static void on_reset(struct pmf_engine *e, const struct pmf_frame *f, const struct pmf_hdr *hdr,
		     pmf_ns_t now)
{
	/* that a key is not taken nobody can prove by one: a hint, which the flow takes as such */
	bool hint = (hdr->flags & PMF_HF_KEY) && !hdr->key, refused = hdr->flags & PMF_HF_REFUSED;
	struct pmf_eflow *ef = refused ? by_conn(e, hdr->conn) : reset_flow(e, f, hdr);

	if (!ef || !(hint || pmf_auth_contact(e, ef->auth, f, hdr)))
		return;
	if (refused)
		pmf_flow_on_refused(&ef->flow, hdr, now);
	else
		pmf_flow_on_reset(&ef->flow, hdr, now);
	pmf_eflow_settle(e, ef, now);
}

/* First contact, and what names no flow of ours. Takes the mbuf. */
static void on_contact(struct pmf_engine *e, const struct pmf_frame *f, const struct pmf_hdr *hdr,
		       struct rte_mbuf *m, pmf_ns_t now)
{
	struct pmf_ep *ep = e->ep_of_port[f->dst_port];
	struct pmf_eflow *ef;

	if (hdr->type == PMF_PT_CHALLENGE) {
		ef = by_conn(e, hdr->conn); /* an orphan's too */
		if (ef && pmf_auth_contact(e, ef->auth, f, hdr) &&
		    !pmf_flow_on_challenge(&ef->flow, hdr, now)) {
			pmf_auth_bind(ef);
			pmf_eflow_settle(e, ef, now);
		}
		goto out;
	}
	switch (hdr->type) {
	case PMF_PT_HELLO:
		on_hello(e, f, hdr, now);
		break;
	case PMF_PT_OPEN:
		if (!ep || ep->state != PMF_EP_ENABLED || ep->type == PMF_EP_MSG) {
			e->stats.drop_no_ep++;
			break;
		}
		ef = on_open(e, f, hdr, ep, now);
		if (ef) {
			on_flow_packet(e, ef, f, hdr, m, now);
			return;
		}
		break;
	case PMF_PT_RESET:
		on_reset(e, f, hdr, now);
		break;
	default:
		e->stats.drop_no_flow++;
		break;
	}
out:
	rte_pktmbuf_free(m);
}

static void on_frame(struct pmf_engine *e, const struct pmf_frame *f, struct rte_mbuf *m,
		     pmf_ns_t now)
{
	struct pmf_hdr *hdr = &e->hdr;
	struct pmf_eflow *ef;
	int err;

	if (pmf_unlikely(f->multicast)) {
		pmf_mc_receive(e, f, m);
		return;
	}
	err = pmf_wire_get(f->payload, f->len, hdr);
	if (pmf_unlikely(err)) {
		if (err == -EPROTONOSUPPORT)
			e->stats.drop_version++;
		else
			e->stats.drop_malformed++;
		rte_pktmbuf_free(m);
		return;
	}
	ef = by_conn(e, hdr->conn);
	/* an OPEN that names our id comes from a peer that we have opened to: it tells us its own
	 */
	if (pmf_likely(ef && (hdr->type == PMF_PT_DATA || hdr->type == PMF_PT_ACK ||
			      hdr->type == PMF_PT_PROBE || hdr->type == PMF_PT_OPEN))) {
		if (pmf_unlikely(ef->seal || hdr->key) && !pmf_auth_flow_rx(e, ef, f, hdr, now)) {
			if (ef->seal && hdr->key && !pmf_keyring_find(ef->auth->ring, hdr->key))
				answer_reset(e, f, hdr, NULL, true, now);
			rte_pktmbuf_free(m);
			return;
		}
		on_flow_packet(e, ef, f, hdr, m, now);
		return;
	}
	/* an OPEN with an id answers one of ours; that flow, or the life that had it, is gone */
	if (hdr->type == PMF_PT_DATA || hdr->type == PMF_PT_ACK || hdr->type == PMF_PT_PROBE ||
	    (hdr->type == PMF_PT_OPEN && hdr->conn)) {
		unknown_conn(e, f, hdr, now);
		rte_pktmbuf_free(m);
		return;
	}
	on_contact(e, f, hdr, m, now);
}

/** Take one burst from the device. @return whether there was any frame. */
bool pmf_engine_receive(struct pmf_engine *e, pmf_ns_t now)
{
	struct rte_mbuf *m[PMF_BURST];
	struct pmf_frame f;
	uint16_t n;

	pmf_engine_later(e, now);
	pmf_looks_note(&e->looks, now, e->rx_more);
	n = pmf_queue_rx(e->q, m, PMF_BURST, now);
	e->rx_more = n == PMF_BURST;
	e->lone = n == 1;
	/* the lines that follow the first, which is about to be read */
	for (uint16_t i = 0; i < n; i++)
		__builtin_prefetch(rte_pktmbuf_mtod_offset(m[i], void *, PMF_CACHE_LINE));
	for (uint16_t i = 0; i < n; i++) {
		if (i + 1 < n)
			__builtin_prefetch(rte_pktmbuf_mtod(m[i + 1], void *));
		if (pmf_likely(pmf_frame_parse(e->q, m[i], &f, now)))
			on_frame(e, &f, m[i], now);
	}
	return n;
}
