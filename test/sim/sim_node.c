/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * One node: what an engine does around its flows. Frames to flows, first contact, matching in
 * order, messages without a receive in bounded memory, invitations, and timers. Nothing of it is
 * shared.
 */
#include "sim.h"

#include <stdlib.h>

#define QUANTUM 32 /* frames that a flow sends before others have their turn */
#define REST (200 * PMF_NS_PER_US)

static void node_wake_at(struct sim_node *n, pmf_ns_t at)
{
	if (at < n->wake_at)
		n->wake_at = at;
}

pmf_ns_t sim_node_now(const struct sim_node *n)
{
	return n->sim->now + n->clock;
}

static void node_arm_wake(struct sim_node *n)
{
	pmf_ns_t next = pmf_wheel_next(&n->wheel);

	if (next != PMF_NS_NEVER)
		node_wake_at(n, PMF_MAX(next, sim_node_now(n)) - n->clock);
	if (n->repost_n != 0)
		node_wake_at(n, n->repost_at);
}

void sim_node_start(struct sim_node *n)
{
	struct sim *s = n->sim;

	n->alive = true;
	n->stopped = false;
	n->rnd = sim_mix(s->conf.seed ^ (n->id + 1) * 1000003 ^ n->inc);
	n->inc = sim_mix(n->rnd) | 1;
	n->key.k[0] = sim_mix(n->rnd + 1);
	n->key.k[1] = sim_mix(n->rnd + 2);
	/* Clocks of different machines have nothing in common. */
	n->clock = sim_mix(n->rnd + 3) >> 16;
	n->conf = s->conf.flow;
	n->posted = s->conf.receives;
	n->memory = n->memory_least = s->conf.unexpected;
	n->nheld = 0;
	n->repost_n = 0;
	n->wake_at = PMF_NS_NEVER;
	memset(n->flow, 0, sizeof(n->flow));
	memset(n->slot, 0, sizeof(n->slot));
	TAILQ_INIT(&n->blocked);
	TAILQ_INIT(&n->unexpected);
	pmf_wheel_init(&n->wheel, sim_node_now(n));
}

/* ---- flows ---- */

struct sim_flow *sim_node_flow(struct sim_node *n, unsigned int peer)
{
	struct sim_flow *sf = n->flow[peer];
	struct pmf_flow_ident id = {
		.local = n->addr, .peer = n->sim->node[peer].addr, .inc = n->inc};
	unsigned int index = 0;

	if (sf != NULL)
		return sf;
	while (n->slot[index] != NULL)
		index++;
	sf = calloc(1, sizeof(*sf));
	sf->held = calloc(n->conf.window, sizeof(sf->held[0]));
	sf->node = n;
	sf->index = index;
	sf->peer = peer;
	n->rnd = sim_mix(n->rnd);
	id.conn = n->rnd << 32 | index;
	id.nonce = sim_mix(n->rnd);
	sf->in = n->sim->by_pair[peer][n->id];
	pmf_timer_init(&sf->timer);
	pmf_flow_init(&sf->f, &n->conf, &id, &n->flow_stats, sim_node_now(n));
	n->flow[peer] = n->slot[index] = sf;
	return sf;
}

static struct sim_flow *flow_by_conn(struct sim_node *n, uint64_t conn)
{
	uint32_t index = (uint32_t)conn;
	struct sim_flow *sf = index < PMF_ARRAY_SIZE(n->slot) ? n->slot[index] : NULL;

	return sf != NULL && sf->f.id.conn == conn ? sf : NULL;
}

static unsigned int node_by_addr(const struct sim *s, const struct pmf_addr *a)
{
	unsigned int id = (unsigned int)a->ip[14] << 8 | a->ip[15];

	return id < s->conf.nodes ? id : 0;
}

static void flush_held(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;

	for (uint32_t i = 0; sf->nheld > 0 && i < n->conf.window; i++) {
		if (sf->held[i] == NULL)
			continue;
		sim_frame_put(n->sim, sf->held[i]);
		sf->held[i] = NULL;
		sf->nheld--;
		n->nheld--;
	}
}

/* ---- messages on their way in ---- */

static void rx_maybe_free(struct sim_rx *rx)
{
	if (!rx->gone || rx->invite_out || rx->hold_out)
		return;
	free(rx);
}

static void rx_return_cost(struct sim_rx *rx, uint64_t cost)
{
	if (cost == 0 || rx->flow == NULL)
		return;
	rx->cost -= cost;
	rx->flow->owed -= cost;
	pmf_flow_credit_return(&rx->flow->f, cost);
}

/* Off all lists; its memory goes back, and its cost to the sender. */
static void rx_end(struct sim_node *n, struct sim_rx *rx)
{
	rx_return_cost(rx, rx->cost);
	n->memory += rx->memory;
	if (!rx->matched)
		TAILQ_REMOVE(&n->unexpected, rx, link);
	if (rx->flow != NULL) {
		LIST_REMOVE(rx, hash);
		if (rx->flow->cur == rx)
			rx->flow->cur = NULL;
	}
	free(rx->buf);
	rx->buf = NULL;
	rx->gone = true;
	rx_maybe_free(rx);
}

/* The application posts its buffer again, after a while. */
static void repost(struct sim_node *n)
{
	if (n->sim->conf.repost == 0) {
		sim_node_post(n, 1);
		return;
	}
	if (n->repost_n++ == 0)
		n->repost_at = n->sim->now + n->sim->conf.repost;
	node_wake_at(n, n->repost_at);
}

static void rx_deliver(struct sim_node *n, struct sim_rx *rx)
{
	sim_stream_deliver(n->sim, rx);
	rx_end(n, rx);
	repost(n);
}

/* It will not come: a receive that has met it ends in an error. */
static void rx_abort(struct sim_node *n, struct sim_rx *rx)
{
	bool matched = rx->matched;

	sim_stream_aborted(n->sim, rx);
	rx_end(n, rx);
	if (matched)
		repost(n);
}

/* A receive meets the message: now, or when its bytes are here. */
static void rx_match(struct sim_node *n, struct sim_rx *rx)
{
	n->posted--;
	rx->matched = true;
	if (rx->by_body) {
		rx->buf = malloc(rx->len ? rx->len : 1);
		rx->invite.kind = PMF_ITEM_INVITE;
		rx->invite.state = PMF_ITEM_NEW;
		rx->invite_out = true;
		pmf_flow_invite(&rx->flow->f, &rx->invite, rx->msg);
	}
	rx_return_cost(rx, rx->cost);
	n->memory += rx->memory;
	rx->memory = 0;
}

/* The credit or the invitation wants to go, but not from inside a packet of that flow. */
static void flow_kick_later(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;

	node_wake_at(n, n->sim->now);
	if (sf->blocked)
		return;
	sf->blocked = true;
	TAILQ_INSERT_TAIL(&n->blocked, sf, blocked_link);
}

void sim_node_post(struct sim_node *n, uint64_t receives)
{
	struct sim_rx *rx;

	n->posted += receives;
	if (n->posting)
		return; /* a delivery below has posted again: the loop goes on with it */
	n->posting = true;
	while (n->posted > 0 && (rx = TAILQ_FIRST(&n->unexpected)) != NULL) {
		TAILQ_REMOVE(&n->unexpected, rx, link);
		if (rx->flow != NULL)
			flow_kick_later(rx->flow);
		rx_match(n, rx);
		if (!rx->by_body && rx->got == rx->len)
			rx_deliver(n, rx);
	}
	n->posting = false;
}

static void rx_unexpected(struct sim_node *n, struct sim_rx *rx)
{
	uint64_t head = pmf_msg_cost(0, false);

	TAILQ_INSERT_TAIL(&n->unexpected, rx, link);
	if (rx->by_body)
		return;
	if (rx->len <= n->memory) {
		rx->memory = rx->len;
		n->memory -= rx->len;
		n->memory_least = PMF_MIN(n->memory_least, n->memory);
		rx->buf = malloc(rx->len ? rx->len : 1);
		return;
	}
	rx->by_body = true;
	rx->hold.kind = PMF_ITEM_HOLD;
	rx->hold.state = PMF_ITEM_NEW;
	rx->hold_out = true;
	pmf_flow_hold(&rx->flow->f, &rx->hold, rx->msg);
	rx_return_cost(rx, rx->cost - head);
}

static void rx_arrived(struct sim_node *n, struct sim_rx *rx)
{
	sim_stream_arrived(n->sim, rx);
	if (rx->matched)
		rx_deliver(n, rx);
}

static bool on_start(struct sim_node *n, struct sim_flow *sf, const struct pmf_rec *rec)
{
	bool eager = !(rec->flags & PMF_RF_ANNOUNCE);
	struct sim_rx *rx;

	if (sf->cur != NULL) {
		sim_fail(n->sim, "message %" PRIu64 " begins inside another", rec->msg);
		return false;
	}
	if (sf->starts == 0)
		sf->first_msg = rec->msg;
	if (rec->msg != sf->first_msg + sf->starts) {
		sim_fail(n->sim, "message %" PRIu64 " begins after %" PRIu64 " others", rec->msg,
			 sf->starts);
		return false;
	}
	if (!sim_stream_start(n->sim, sf, rec, sf->starts))
		return false;
	rx = calloc(1, sizeof(*rx));
	rx->flow = sf;
	rx->stream = sf->in;
	rx->msg = rec->msg;
	rx->k = sf->starts++;
	rx->len = rec->total;
	rx->has_data = rec->flags & PMF_RF_DATA;
	rx->data = rec->data;
	rx->by_body = !eager;
	rx->cost = pmf_msg_cost(rx->len, eager);
	sf->owed += rx->cost;
	if (sf->owed > n->conf.rx_credit) {
		sim_fail(n->sim, "node %u: peer %u has %" PRIu64 " of cost outstanding", n->id,
			 sf->peer, sf->owed);
		return false;
	}
	LIST_INSERT_HEAD(&sf->rx[rx->msg % SIM_RX_HASH], rx, hash);
	if (n->posted > 0) {
		rx_match(n, rx);
		if (eager)
			rx->buf = malloc(rx->len ? rx->len : 1);
	} else {
		rx_unexpected(n, rx);
	}
	if (!eager)
		return true;
	if (rec->len != 0 && !rx->by_body)
		memcpy(rx->buf, rec->bytes, rec->len);
	if (!rx->by_body)
		rx->got = rec->len;
	if (rec->len < rec->total)
		sf->cur = rx;
	else if (!rx->by_body)
		rx_arrived(n, rx);
	return true;
}

static bool on_cont(struct sim_node *n, struct sim_flow *sf, const struct pmf_rec *rec)
{
	struct sim_rx *rx = sf->cur;
	bool last;

	if (rx == NULL || rx->msg != rec->msg || rec->off + rec->len > rx->len) {
		sim_fail(n->sim, "bytes of message %" PRIu64 " that is not under way", rec->msg);
		return false;
	}
	last = rec->off + rec->len == rx->len;
	if (last)
		sf->cur = NULL;
	if (rx->by_body)
		return true; /* held: they come again */
	if (rec->off != rx->got) {
		sim_fail(n->sim, "message %" PRIu64 ": offset %" PRIu64 " after %" PRIu64, rec->msg,
			 rec->off, rx->got);
		return false;
	}
	memcpy(rx->buf + rec->off, rec->bytes, rec->len);
	rx->got += rec->len;
	if (last)
		rx_arrived(n, rx);
	return true;
}

static struct sim_rx *rx_find(struct sim_flow *sf, uint64_t msg)
{
	struct sim_rx *rx;

	LIST_FOREACH (rx, &sf->rx[msg % SIM_RX_HASH], hash)
		if (rx->msg == msg)
			return rx;
	return NULL;
}

static bool on_body(struct sim_node *n, struct sim_flow *sf, const struct pmf_rec *rec)
{
	struct sim_rx *rx = rx_find(sf, rec->msg);

	/* What was aborted may have been on its way still. */
	if (rx == NULL && sf->aborts > 0)
		return true;
	if (rx == NULL || !rx->matched || !rx->by_body || rec->off + rec->len > rx->len ||
	    rx->got + rec->len > rx->len) {
		sim_fail(n->sim, "body of message %" PRIu64 " that was not asked for", rec->msg);
		return false;
	}
	memcpy(rx->buf + rec->off, rec->bytes, rec->len);
	rx->got += rec->len;
	if (rx->got == rx->len)
		rx_arrived(n, rx);
	return true;
}

static void on_abort(struct sim_node *n, struct sim_flow *sf, uint64_t msg)
{
	struct sim_rx *rx = rx_find(sf, msg);

	sf->aborts++;
	if (sf->starts == 0)
		sf->first_msg = msg;
	if (rx != NULL)
		rx_abort(n, rx);
	else if (msg == sf->first_msg + sf->starts)
		sim_stream_skipped(n->sim, sf, sf->starts++); /* none of it was sent */
}

/* ---- packets ---- */

static bool records(struct sim_node *n, struct sim_flow *sf, const uint8_t *p, size_t len)
{
	struct pmf_rec_iter it = {p, len};
	struct pmf_rec rec;
	bool ok = true;
	int err;

	while (ok && (err = pmf_flow_next_rec(&sf->f, &it, &rec)) > 0) {
		if (rec.type == PMF_RT_START)
			ok = on_start(n, sf, &rec);
		else if (rec.type == PMF_RT_CONT)
			ok = on_cont(n, sf, &rec);
		else if (rec.type == PMF_RT_BODY)
			ok = on_body(n, sf, &rec);
		else if (rec.type == PMF_RT_ABORT)
			on_abort(n, sf, rec.msg);
	}
	if (ok && err < 0)
		sim_fail(n->sim, "node %u: peer %u broke the protocol", n->id, sf->peer);
	return ok && err == 0;
}

/* The packet that is next. @return whether it was taken */
static bool take(struct sim_node *n, struct sim_flow *sf, pmf_psn_t psn, const uint8_t *p,
		 size_t len)
{
	n->rnd = sim_mix(n->rnd);
	if (n->sim->conf.refuse != 0 && n->rnd % n->sim->conf.refuse == 0) {
		n->stats.refused++;
		pmf_flow_rx_refuse(&sf->f, psn);
		return false;
	}
	if (!records(n, sf, p, len))
		return false;
	pmf_flow_rx_done(&sf->f, sim_node_now(n));
	return true;
}

static void deliver_held(struct sim_node *n, struct sim_flow *sf, pmf_psn_t psn)
{
	struct sim_frame **slot, *f;
	bool taken = true;

	while (taken && sf->nheld > 0) {
		slot = &sf->held[++psn & (n->conf.window - 1)];
		f = *slot;
		if (f == NULL)
			return;
		*slot = NULL;
		sf->nheld--;
		n->nheld--;
		taken = take(n, sf, psn, f->body, f->body_len);
		sim_frame_put(n->sim, f);
	}
}

/* @return whether the frame was kept */
static bool hold(struct sim_node *n, struct sim_flow *sf, pmf_psn_t psn, struct sim_frame *f,
		 const struct pmf_hdr *hdr)
{
	struct sim_frame **slot = &sf->held[psn & (n->conf.window - 1)];

	if (*slot != NULL) {
		sim_fail(n->sim, "packet %" PRIu64 " ahead of order twice", psn);
		return false;
	}
	if (n->nheld >= n->sim->conf.held_frames) {
		n->stats.refused++;
		pmf_flow_rx_refuse(&sf->f, psn);
		return false;
	}
	f->body = f->data + (hdr->body - f->data);
	f->body_len = hdr->body_len;
	*slot = f;
	sf->nheld++;
	n->nheld++;
	return true;
}

/* The flow's part of a packet. @return whether the frame was kept */
static bool flow_rx(struct sim_node *n, struct sim_flow *sf, struct sim_frame *f,
		    const struct pmf_hdr *hdr)
{
	pmf_psn_t psn = 0;
	bool kept = false;

	switch (pmf_flow_rx(&sf->f, hdr, f->ecn, sim_node_now(n), &psn)) {
	case PMF_RX_NEXT:
		if (take(n, sf, psn, hdr->body, hdr->body_len))
			deliver_held(n, sf, psn);
		break;
	case PMF_RX_AHEAD:
		kept = hold(n, sf, psn, f, hdr);
		break;
	case PMF_RX_FLUSH:
		n->stats.flushed++;
		flush_held(sf);
		break;
	default:
		break;
	}
	sim_flow_kick(sf);
	return kept;
}

static void send_bytes(struct sim_node *n, unsigned int dst, struct sim_frame *f, size_t len,
		       bool ect)
{
	if (len == 0) {
		sim_frame_put(n->sim, f);
		return;
	}
	f->src = (uint8_t)n->id;
	f->dst = (uint8_t)dst;
	f->len = (uint16_t)len;
	f->ecn = ect ? 2 : 0; /* RFC 3168: ECT(0) */
	n->stats.frames_tx++;
	sim_net_send(n->sim, f);
}

static void on_hello(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct sim_frame *out = sim_frame_get(n->sim);
	struct sim_flow *sf = n->flow[f->src];
	struct pmf_addr src = n->sim->node[f->src].addr, to;
	size_t len;

	src.port = 0; /* the frame's source port is only entropy */
	len = pmf_contact_challenge(&n->key, &n->conf, hdr, f->len, &src, n->addr.port, n->inc,
				    sf != NULL && sf->f.id.conn == hdr->peer_conn, sim_node_now(n),
				    out->data, SIM_MAX_FRAME, &to);
	send_bytes(n, len ? node_by_addr(n->sim, &to) : 0, out, len, false);
}

/* An OPEN from who does not know our id yet. @return its flow */
static struct sim_flow *on_open(struct sim_node *n, const struct sim_frame *f,
				const struct pmf_hdr *hdr)
{
	struct pmf_addr src = n->sim->node[f->src].addr;
	struct sim_flow *sf = n->flow[f->src];
	struct pmf_contact c;
	int err = pmf_contact_check(&n->key, hdr, &src, n->addr.port, n->inc, sim_node_now(n), &c);

	/* An old cookie does not stop a flow that it has opened. */
	if (err == -ETIMEDOUT && sf != NULL && sf->f.bound && sf->f.peer_inc == hdr->inc)
		return sf;
	if (err != 0) {
		n->stats.opens_bad++;
		return NULL;
	}
	sf = sim_node_flow(n, f->src);
	pmf_flow_accept(&sf->f, &c, sim_node_now(n));
	if (sf->f.state != PMF_FLOW_DEAD)
		return sf;
	/* The peer has begun a new life; its old one ends here. */
	sim_flow_kick(sf);
	sf = sim_node_flow(n, f->src);
	pmf_flow_accept(&sf->f, &c, sim_node_now(n));
	return sf;
}

static void send_reset(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct sim_frame *out = sim_frame_get(n->sim);

	n->stats.resets_tx++;
	send_bytes(n, f->src, out, pmf_contact_reset(hdr, n->addr.port, out->data, SIM_MAX_FRAME),
		   false);
}

void sim_node_rx(struct sim_node *n, struct sim_frame *f)
{
	struct sim_flow *sf;
	struct pmf_hdr hdr;
	bool kept = false;

	n->stats.frames_rx++;
	if (pmf_wire_get(f->data, f->len, &hdr) != 0) {
		sim_fail(n->sim, "node %u cannot read a frame of node %u", n->id, f->src);
		sim_frame_put(n->sim, f);
		return;
	}
	switch (hdr.type) {
	case PMF_PT_HELLO:
		on_hello(n, f, &hdr);
		break;
	case PMF_PT_RESET:
		sf = n->flow[f->src];
		if (sf != NULL) {
			pmf_flow_on_reset(&sf->f, &hdr, sim_node_now(n));
			sim_flow_kick(sf);
		}
		break;
	case PMF_PT_CHALLENGE:
		sf = flow_by_conn(n, hdr.conn);
		if (sf != NULL) {
			pmf_flow_on_challenge(&sf->f, &hdr, sim_node_now(n));
			sim_flow_kick(sf);
		}
		break;
	default:
		if (hdr.type == PMF_PT_OPEN && hdr.conn == 0)
			sf = on_open(n, f, &hdr);
		else if ((sf = flow_by_conn(n, hdr.conn)) == NULL)
			send_reset(n, f, &hdr);
		if (sf != NULL)
			kept = flow_rx(n, sf, f, &hdr);
		else
			n->stats.no_flow++;
	}
	if (!kept)
		sim_frame_put(n->sim, f);
	node_arm_wake(n);
}

/* ---- sending, time, ends ---- */

/* The bytes of an ended message are not read any more: rx items, or the application's. */
static void items_done(struct sim_flow *sf)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&sf->f.done)) != NULL) {
		STAILQ_REMOVE_HEAD(&sf->f.done, link);
		if (item->kind == PMF_ITEM_INVITE) {
			struct sim_rx *rx = pmf_container_of(item, struct sim_rx, invite);

			rx->invite_out = false;
			rx_maybe_free(rx);
		} else if (item->kind == PMF_ITEM_HOLD) {
			struct sim_rx *rx = pmf_container_of(item, struct sim_rx, hold);

			rx->hold_out = false;
			rx_maybe_free(rx);
		} else {
			sim_stream_done(sf->node->sim, item);
		}
	}
}

static void flow_free(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;

	flush_held(sf);
	if (sf->blocked)
		TAILQ_REMOVE(&n->blocked, sf, blocked_link);
	pmf_wheel_disarm(&n->wheel, &sf->timer);
	if (sf->f.active != NULL)
		free(pmf_flow_reclaim(&sf->f));
	n->flow[sf->peer] = NULL;
	n->slot[sf->index] = NULL;
	free(sf->held);
	free(sf);
}

/* A flow that died: what came whole stays, what was under way ends. */
static void flow_bury(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;
	struct sim_rx *rx;

	if (!n->sim->dead_is_fine)
		sim_fail(n->sim, "node %u: the flow to %u died of %d", n->id, sf->peer,
			 sf->f.error);
	items_done(sf);
	for (unsigned int i = 0; i < SIM_RX_HASH; i++) {
		while ((rx = LIST_FIRST(&sf->rx[i])) != NULL) {
			bool whole = !rx->by_body && rx->got == rx->len && !rx->matched;

			LIST_REMOVE(rx, hash);
			rx->flow = NULL;
			if (!whole)
				rx_abort(n, rx);
		}
	}
	flow_free(sf);
}

static void flow_block(struct sim_flow *sf)
{
	if (sf->blocked)
		return;
	sf->blocked = true;
	TAILQ_INSERT_TAIL(&sf->node->blocked, sf, blocked_link);
}

/* As many packets as the flow wants and the port takes, up to @p quantum. */
static void flow_send(struct sim_flow *sf, unsigned int quantum)
{
	struct sim_node *n = sf->node;
	pmf_ns_t now = sim_node_now(n), when;

	if (pmf_flow_needs_active(&sf->f))
		pmf_flow_lend(&sf->f, aligned_alloc(64, pmf_flow_active_size(n->conf.window)));
	while (pmf_flow_wants_tx(&sf->f, now)) {
		struct sim_frame *f;
		bool ect = false;
		size_t len;

		if (quantum-- == 0 || !sim_net_room(n->sim, n, &when)) {
			flow_block(sf);
			break;
		}
		f = sim_frame_get(n->sim);
		len = pmf_flow_tx(&sf->f, now, f->data, n->conf.max_payload, &ect);
		if (len == 0)
			n->stats.tx_nothing++;
		send_bytes(n, sf->peer, f, len, ect);
		if (len == 0)
			break;
	}
}

bool sim_flow_kick(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;
	pmf_ns_t now = sim_node_now(n), when, deadline;

	/* What is done lets the application send more. */
	do {
		items_done(sf);
		if (sf->f.state == PMF_FLOW_DEAD) {
			flow_bury(sf);
			return false;
		}
		flow_send(sf, QUANTUM);
	} while (!STAILQ_EMPTY(&sf->f.done));
	sf->rest_at = n->sim->now + REST;
	if (sf->f.active != NULL && n->sim->conf.reclaim && pmf_flow_is_quiet(&sf->f))
		node_wake_at(n, sf->rest_at);
	deadline = pmf_flow_deadline(&sf->f);
	/* One that is blocked sends when the port has room; its timer would only be due till then.
	 */
	if (sf->blocked && deadline <= now)
		deadline = now + 1;
	pmf_wheel_arm(&n->wheel, &sf->timer, deadline);
	if (!TAILQ_EMPTY(&n->blocked))
		node_wake_at(n, sim_net_room(n->sim, n, &when) ? n->sim->now : when);
	node_arm_wake(n);
	return true;
}

/* As an engine does with many flows: the active parts of those that rest go back. */
static void reclaim(struct sim_node *n)
{
	for (unsigned int i = 0; i < n->sim->conf.nodes; i++) {
		struct sim_flow *sf = n->flow[i];

		if (sf == NULL || sf->f.active == NULL || !pmf_flow_is_quiet(&sf->f))
			continue;
		if (n->sim->now >= sf->rest_at)
			free(pmf_flow_reclaim(&sf->f));
		else
			node_wake_at(n, sf->rest_at);
	}
}

void sim_node_wake(struct sim_node *n)
{
	pmf_ns_t now = sim_node_now(n);
	unsigned int patience = 4 * SIM_MAX_NODES;
	struct pmf_timer *t;
	struct sim_flow *sf, *last;

	n->wake_at = PMF_NS_NEVER;
	if (n->repost_n != 0 && n->repost_at <= n->sim->now) {
		uint64_t receives = n->repost_n;

		n->repost_n = 0;
		sim_node_post(n, receives);
	}
	while ((t = pmf_wheel_expire(&n->wheel, now)) != NULL) {
		sf = pmf_container_of(t, struct sim_flow, timer);
		pmf_flow_on_timer(&sf->f, now);
		/* One deadline may hide another that is due too, but not for ever. */
		if (sim_flow_kick(sf) && sf->timer.at <= now && --patience == 0) {
			sim_fail(n->sim,
				 "node %u, flow to %u: due again at once (ack %+" PRId64
				 ", loss %+" PRId64 " of kind %u, slow %+" PRId64 " ns)",
				 n->id, sf->peer, (int64_t)(sf->f.ack_at - now),
				 (int64_t)(sf->f.loss_at - now), sf->f.loss_kind,
				 (int64_t)(sf->f.slow_at - now));
			return;
		}
	}
	/* Once around: who is blocked again stands at the end. */
	last = TAILQ_LAST(&n->blocked, sim_blocked);
	while ((sf = TAILQ_FIRST(&n->blocked)) != NULL) {
		bool end = sf == last;

		sf->blocked = false;
		TAILQ_REMOVE(&n->blocked, sf, blocked_link);
		sim_flow_kick(sf);
		if (end)
			break;
	}
	if (n->sim->conf.reclaim)
		reclaim(n);
	node_arm_wake(n);
}

void sim_node_kill(struct sim_node *n)
{
	bool fine = n->sim->dead_is_fine;
	struct sim_rx *rx;

	n->sim->dead_is_fine = true;
	for (unsigned int i = 0; i < SIM_MAX_NODES; i++) {
		if (n->flow[i] == NULL)
			continue;
		pmf_flow_kill(&n->flow[i]->f, ECONNABORTED);
		flow_bury(n->flow[i]);
	}
	while ((rx = TAILQ_FIRST(&n->unexpected)) != NULL)
		rx_end(n, rx);
	n->sim->dead_is_fine = fine;
	n->alive = false;
}
