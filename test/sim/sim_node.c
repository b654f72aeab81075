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

void sim_node_wake_at(struct sim_node *n, pmf_ns_t at)
{
	if (at < n->wake_at)
		n->wake_at = at;
}

pmf_ns_t sim_node_now(const struct sim_node *n)
{
	return n->sim->now + n->clock;
}

#define STALL_PERIOD PMF_NS_PER_MS

pmf_ns_t sim_node_stalled(struct sim_node *n)
{
	pmf_ns_t since = (n->sim->now + n->id * STALL_PERIOD / 2) % STALL_PERIOD;
	pmf_ns_t stall = n->sim->conf.stall, now = sim_node_now(n);

	if (stall == 0)
		return 0;
	if (since < stall)
		return n->sim->now - since + stall;
	if (n->looks.last == now)
		return 0;
	/* The first look afterwards, or one of many. */
	n->looks.last = n->looks.last < now - since ? now - since : now;
	pmf_looks_note(&n->looks, now, false);
	return 0;
}

static void node_arm_wake(struct sim_node *n)
{
	pmf_ns_t next = pmf_wheel_next(&n->wheel);

	if (next != PMF_NS_NEVER)
		sim_node_wake_at(n, PMF_MAX(next, sim_node_now(n)) - n->clock);
	if (n->repost_n != 0)
		sim_node_wake_at(n, n->repost_at);
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
	n->conf.looks = s->conf.stall ? &n->looks : NULL;
	n->ring = NULL;
	if (s->conf.keys.n != 0 && pmf_keyring_open(&s->conf.keys, s->conf.encrypt, &n->ring) != 0)
		sim_fail(s, "no keys");
	memset(&n->ended, 0, sizeof(n->ended));
	n->posted = s->conf.receives;
	n->memory = n->memory_least = s->conf.unexpected;
	n->nheld = 0;
	n->repost_n = 0;
	n->wake_at = PMF_NS_NEVER;
	n->delay = s->conf.delay;
	memset(n->flow, 0, sizeof(n->flow));
	memset(n->slot, 0, sizeof(n->slot));
	TAILQ_INIT(&n->blocked);
	TAILQ_INIT(&n->unexpected);
	pmf_wheel_init(&n->wheel, sim_node_now(n));
}

/* ---- flows ---- */

static struct pmf_seal_ends ends_of(const struct sim_node *from, const struct sim_node *to)
{
	struct pmf_seal_ends ends = {.to_port = to->addr.port};

	memcpy(ends.from, from->addr.ip, sizeof(ends.from));
	memcpy(ends.to, to->addr.ip, sizeof(ends.to));
	return ends;
}

struct sim_flow *sim_node_flow(struct sim_node *n, unsigned int peer)
{
	struct sim_flow *sf = n->flow[peer];
	struct pmf_flow_ident id = {.local = n->addr,
				    .peer = n->sim->node[peer].addr,
				    .inc = n->inc,
				    .tail = n->ring != NULL ? PMF_WIRE_TAG : 0};
	struct pmf_seal_ends ends = ends_of(n, &n->sim->node[peer]);
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
	if (n->ring != NULL)
		sf->seal = pmf_seal_open(n->ring, &ends);
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

/* ---- packets ---- */

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
	if (!sim_match_records(n, sf, p, len))
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

static void lend_window(struct sim_flow *sf)
{
	const uint32_t window = pmf_flow_window_wanted(&sf->f);

	if (window != 0)
		free(pmf_flow_lend(&sf->f, aligned_alloc(64, pmf_flow_active_size(window)),
				   window));
}

/* The flow's part of a packet. @return whether the frame was kept */
static bool flow_rx(struct sim_node *n, struct sim_flow *sf, struct sim_frame *f,
		    const struct pmf_hdr *hdr)
{
	const pmf_ns_t now = sim_node_now(n);
	enum pmf_verdict v;
	uint32_t later = 0;
	pmf_psn_t psn = 0;
	bool kept = false;

	pmf_flow_make_room(&sf->f, hdr);
	lend_window(sf);
	/* one node of two accounts acknowledgements after records, as an engine does at times */
	v = n->id & 1 ? pmf_flow_rx_first(&sf->f, hdr, f->ecn, now, &psn, &later)
		      : pmf_flow_rx(&sf->f, hdr, f->ecn, now, &psn);
	switch (v) {
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
	if (later)
		pmf_flow_rx_later(&sf->f, hdr, later, now);
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

/* ---- keys ---- */

/* @return whether a packet may be looked at */
static bool verdict(struct sim_node *n, enum pmf_seal_verdict v)
{
	n->stats.other_key += v == PMF_SEAL_KEY;
	n->stats.bad_tag += v == PMF_SEAL_TAG;
	n->stats.replayed += v == PMF_SEAL_REPLAY;
	return v == PMF_SEAL_OK;
}

/* A packet outside flows: its tag is right, or there is none where none is wanted. */
static bool contact_ok(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct pmf_seal_ends ends = ends_of(&n->sim->node[f->src], n);

	if (n->ring == NULL || hdr->key == 0)
		return verdict(n, n->ring != NULL || hdr->key != 0 ? PMF_SEAL_KEY : PMF_SEAL_OK);
	return verdict(n, pmf_seal_contact_check(n->ring, hdr, &ends, f->data, f->len));
}

/* A packet outside flows, about to leave. */
static void send_contact(struct sim_node *n, unsigned int dst, struct sim_frame *f, size_t len,
			 uint16_t key, bool proven)
{
	struct pmf_seal_ends ends = ends_of(n, &n->sim->node[dst]);

	if (len != 0 && n->ring != NULL && proven)
		len = pmf_seal_contact(n->ring, key, &ends, f->data, len);
	send_bytes(n, dst, f, len, false);
}

/* It brings a cookie of ours: it is of today. */
static bool cookie_ok(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct pmf_addr src = n->sim->node[f->src].addr;
	struct pmf_contact c;

	return pmf_contact_check(&n->key, hdr, &src, n->addr.port, n->inc, sim_node_now(n), &c) ==
	       0;
}

/* A packet of a flow; @p fresh: an OPEN that is known to be of today. */
static bool flow_ok(struct sim_node *n, struct sim_flow *sf, struct sim_frame *f,
		    const struct pmf_hdr *hdr, bool fresh)
{
	struct pmf_seal_ends ends = ends_of(&n->sim->node[f->src], n);

	if (sf->seal == NULL || hdr->key == 0)
		return verdict(n, sf->seal != NULL || hdr->key != 0 ? PMF_SEAL_KEY : PMF_SEAL_OK);
	if (hdr->type != PMF_PT_OPEN)
		return verdict(n, pmf_seal_rx(sf->seal, hdr, f->data, f->len));
	if (!fresh && !sf->seal->rx_known && hdr->seed != sf->f.seed && !cookie_ok(n, f, hdr))
		return verdict(n, PMF_SEAL_REPLAY);
	return verdict(n, pmf_seal_rx_open(sf->seal, hdr, &ends, n->inc, f->data, f->len));
}

void sim_node_roll(struct sim_node *n, const struct pmf_key_list *keys)
{
	struct pmf_keyring gone;

	if (pmf_keyring_change(n->ring, keys, &gone) != 0)
		sim_fail(n->sim, "node %u: the keys do not roll", n->id);
	for (unsigned int i = 0; i < SIM_MAX_NODES; i++)
		if (n->flow[i] != NULL)
			pmf_seal_roll(n->flow[i]->seal);
	pmf_keyring_drop(&gone);
}

/* ---- contact ---- */

static void on_hello(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct sim_frame *out = sim_frame_get(n->sim);
	struct sim_flow *sf = n->flow[f->src];
	struct pmf_addr src = n->sim->node[f->src].addr, to;
	size_t len;

	if (!contact_ok(n, f, hdr)) {
		len = pmf_contact_refuse(hdr, n->addr.port, PMF_HF_KEY, out->data, SIM_MAX_FRAME);
		send_contact(n, f->src, out, len, 0, false);
		return;
	}
	src.port = 0; /* the frame's source port is only entropy */
	len = pmf_contact_challenge(&n->key, &n->conf, hdr, f->len, &src, n->addr.port, n->inc,
				    sf != NULL && sf->f.id.conn == hdr->peer_conn, sim_node_now(n),
				    out->data, SIM_MAX_FRAME, &to);
	send_contact(n, len ? node_by_addr(n->sim, &to) : 0, out, len, hdr->key, true);
}

/* Its flow, if it is with that life of the peer, or with none yet. */
static struct sim_flow *same_life(struct sim_flow *sf, const struct pmf_hdr *hdr)
{
	if (sf == NULL || !sf->f.bound)
		return sf;
	if (sf->f.peer_inc != hdr->inc || (sf->f.peer_conn != 0 && sf->f.peer_conn != hdr->my_conn))
		return NULL;
	return sf;
}

/* An OPEN from who does not know our id yet. @return its flow */
static struct sim_flow *on_open(struct sim_node *n, struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct pmf_addr src = n->sim->node[f->src].addr;
	struct pmf_seal_ends ends = ends_of(n, &n->sim->node[f->src]);
	struct sim_flow *sf = n->flow[f->src], *same = same_life(sf, hdr), fresh = {0};
	struct pmf_contact c;
	int err = pmf_contact_check(&n->key, hdr, &src, n->addr.port, n->inc, sim_node_now(n), &c);
	bool good = err == 0;

	/* An old cookie does not stop a flow that it has opened; nor does one open another. */
	if (err == -ETIMEDOUT)
		good = same != NULL && same->f.bound;
	else if (good && same == NULL)
		good = sf == NULL || c.cookie_time > sf->f.last_rx;
	if (good && !(same != NULL && same->f.bound) && pmf_ended_has(&n->ended, c.inc, c.conn))
		good = false;
	if (!good) {
		n->stats.opens_bad++;
		return NULL;
	}
	if (same == NULL && n->ring != NULL)
		fresh.seal = pmf_seal_open(n->ring, &ends);
	if (!flow_ok(n, same != NULL ? same : &fresh, f, hdr, true)) {
		pmf_seal_close(fresh.seal);
		return NULL;
	}
	if (err != 0)
		return same;
	if (same == NULL && sf != NULL) {
		/* The peer has begun a new life; its old one ends here. */
		pmf_flow_kill(&sf->f, ECONNRESET);
		sim_flow_kick(sf);
	}
	sf = sim_node_flow(n, f->src);
	if (fresh.seal != NULL) {
		pmf_seal_close(sf->seal);
		sf->seal = fresh.seal;
	}
	pmf_flow_accept(&sf->f, &c, sim_node_now(n));
	if (sf->seal != NULL)
		pmf_seal_bind(sf->seal, &sf->f);
	return sf;
}

static void send_reset(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	bool known = n->ring != NULL ? pmf_keyring_find(n->ring, hdr->key) != NULL : hdr->key == 0;
	struct sim_frame *out = sim_frame_get(n->sim);

	n->stats.resets_tx++;
	send_contact(n, f->src, out,
		     pmf_contact_reset(hdr, n->addr.port, known ? 0 : PMF_HF_KEY, out->data,
				       SIM_MAX_FRAME),
		     hdr->key, known);
}

static void on_reset(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	bool refused = hdr->flags & PMF_HF_REFUSED, hint = (hdr->flags & PMF_HF_KEY) && !hdr->key;
	struct sim_flow *sf = refused ? flow_by_conn(n, hdr->conn) : n->flow[f->src];

	if (sf == NULL || !(hint || contact_ok(n, f, hdr)))
		return;
	if (refused)
		pmf_flow_on_refused(&sf->f, hdr, sim_node_now(n));
	else
		pmf_flow_on_reset(&sf->f, hdr, sim_node_now(n));
	sim_flow_kick(sf);
}

static void on_challenge(struct sim_node *n, const struct sim_frame *f, const struct pmf_hdr *hdr)
{
	struct sim_flow *sf = flow_by_conn(n, hdr->conn);

	if (sf == NULL || !contact_ok(n, f, hdr) ||
	    pmf_flow_on_challenge(&sf->f, hdr, sim_node_now(n)) != 0)
		return;
	if (sf->seal != NULL)
		pmf_seal_bind(sf->seal, &sf->f);
	sim_flow_kick(sf);
}

void sim_node_rx(struct sim_node *n, struct sim_frame *f)
{
	struct sim_flow *sf;
	struct pmf_hdr hdr;
	bool kept = false;

	n->stats.frames_rx++;
	if (pmf_wire_get(f->data, f->len, &hdr) != 0) {
		n->stats.unreadable++;
		if (!n->sim->noise)
			sim_fail(n->sim, "node %u cannot read a frame of node %u", n->id, f->src);
		sim_frame_put(n->sim, f);
		return;
	}
	switch (hdr.type) {
	case PMF_PT_HELLO:
		on_hello(n, f, &hdr);
		break;
	case PMF_PT_RESET:
		on_reset(n, f, &hdr);
		break;
	case PMF_PT_CHALLENGE:
		on_challenge(n, f, &hdr);
		break;
	default:
		if (hdr.type == PMF_PT_OPEN && hdr.conn == 0)
			sf = on_open(n, f, &hdr);
		else if ((sf = flow_by_conn(n, hdr.conn)) == NULL)
			send_reset(n, f, &hdr);
		else if (!flow_ok(n, sf, f, &hdr, false))
			sf = NULL;
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
		if (item->kind == PMF_ITEM_MSG)
			sim_stream_done(sf->node->sim, item);
		else
			sim_match_item_done(item);
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
	if (sf->f.bound && sf->f.peer_conn != 0)
		pmf_ended_add(&n->ended, sf->f.peer_inc, sf->f.peer_conn);
	pmf_seal_close(sf->seal);
	free(sf->held);
	free(sf);
}

/* A flow that died: what came whole stays, what was under way ends. */
static void flow_bury(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;

	if (!n->sim->dead_is_fine)
		sim_fail(n->sim, "node %u: the flow to %u died of %d", n->id, sf->peer,
			 sf->f.error);
	items_done(sf);
	sim_match_bury(sf);
	flow_free(sf);
}

void sim_flow_block(struct sim_flow *sf)
{
	if (sf->blocked)
		return;
	sf->blocked = true;
	TAILQ_INSERT_TAIL(&sf->node->blocked, sf, blocked_link);
}

/*
 * Every other packet has its last bytes left out, from one length or another, and put behind it
 * here.
 */
static size_t flow_tx(struct sim_flow *sf, pmf_ns_t now, struct sim_frame *f, bool *ect)
{
	const uint64_t txno = sf->f.txno_next;
	struct pmf_piece piece = {.min = 1 + (uint32_t)(txno * 37 % 1024)};
	bool leaves = !sf->seal && (txno & 1);
	size_t len = pmf_flow_tx(&sf->f, now, f->data, sf->node->conf.max_payload, ect,
				 leaves ? &piece : NULL);

	if (leaves && piece.len) {
		memcpy(f->data + len, piece.bytes, piece.len);
		len += piece.len;
	}
	return len;
}

/* As many packets as the flow wants and the port takes, up to @p quantum. */
static void flow_send(struct sim_flow *sf, unsigned int quantum)
{
	struct sim_node *n = sf->node;
	pmf_ns_t now = sim_node_now(n), when;

	lend_window(sf);
	while (pmf_flow_wants_tx(&sf->f, now)) {
		struct sim_frame *f;
		bool ect = false;
		size_t len;

		if (quantum-- == 0 || !sim_net_room(n->sim, n, &when)) {
			sim_flow_block(sf);
			break;
		}
		f = sim_frame_get(n->sim);
		len = flow_tx(sf, now, f, &ect);
		if (len != 0 && sf->seal != NULL) {
			len = pmf_seal_tx(sf->seal, &sf->f, f->data, len);
			if (n->sim->sealed && pmf_wire_has_seq(pmf_wire_type(f->data)))
				n->sim->sealed(sf->seal, sf->f.txno_next - 1);
		}
		lend_window(sf);
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
		sim_node_wake_at(n, sf->rest_at);
	deadline = pmf_flow_deadline(&sf->f);
	/* One that is blocked sends when the port has room; its timer would only be due till then.
	 */
	if (sf->blocked && deadline <= now)
		deadline = now + 1;
	pmf_wheel_arm(&n->wheel, &sf->timer, deadline);
	if (!TAILQ_EMPTY(&n->blocked))
		sim_node_wake_at(n, sim_net_room(n->sim, n, &when) ? n->sim->now : when);
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
			sim_node_wake_at(n, sf->rest_at);
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

	n->sim->dead_is_fine = true;
	for (unsigned int i = 0; i < SIM_MAX_NODES; i++) {
		if (n->flow[i] == NULL)
			continue;
		pmf_flow_kill(&n->flow[i]->f, ECONNABORTED);
		flow_bury(n->flow[i]);
	}
	sim_match_forget(n);
	pmf_keyring_close(n->ring);
	n->ring = NULL;
	n->sim->dead_is_fine = fine;
	n->alive = false;
}
