/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Two flows and a wire between them, under a virtual clock, for the tests of flows. A test decides
 * by a filter which frames get lost, late or twice, and looks at what the two ends have got.
 */
#ifndef TEST_FLOW_PIPE_H
#define TEST_FLOW_PIPE_H

#include "proto/contact.h"
#include "proto/flow_active.h"

#include "../unit.h"

#define PIPE_FRAMES 4096
#define PIPE_MSGS 2048
#define PIPE_WINDOW 64
#define PIPE_PAYLOAD 9000
#define PIPE_DELAY (10 * PMF_NS_PER_US)

struct pipe;
struct end;

/* A message as the receiver sees it. */
struct got {
	bool begun, announced, held, whole, aborted;
	uint64_t len, have, data;
	uint8_t flags;
	uint8_t *bytes;
	struct pmf_item item; /* its INVITE */
	struct pmf_item hold;
};

struct frame {
	bool used;
	bool kept; /* ahead of order: not on the wire any more */
	pmf_ns_t at;
	struct end *to;
	uint16_t len;
	uint8_t ecn;
	uint8_t data[PIPE_PAYLOAD];
};

struct end {
	struct pipe *pipe;
	struct end *peer;
	struct pmf_flow f;
	struct pmf_flow_conf conf;
	struct pmf_flow_stats stats;
	struct pmf_contact_key key;
	struct pmf_addr addr;
	uint64_t inc;
	bool deaf;	 /* its process is gone */
	bool conn_known; /* what it answers to a VERIFY */
	bool posted;	 /* receives are there: eager is matched at once, announced is invited */
	bool later;	 /* acknowledgements are accounted after records, where they may be */
	uint32_t leaves; /* a piece of so many bytes is left out of a packet; 0: none */
	unsigned int left_out;
	unsigned int holds;	  /* so many eager messages find no memory */
	unsigned int refuse;	  /* so many packets find no memory */
	unsigned int refuse_held; /* when their turn comes */
	struct frame *held[PIPE_WINDOW];
	struct got got[PIPE_MSGS];
	unsigned int begun, whole, flushes, laters;
	unsigned int done, failed, canceled;
	int last_status;
	unsigned int frames[PMF_PT_MAX]; /* sent, by type */
	unsigned int resets;
};

/* What becomes of a frame: lost, or late by so much. */
struct fate {
	bool lose;
	bool twice;
	pmf_ns_t late;
	uint8_t ecn;
};

typedef struct fate (*fate_fn)(struct pipe *p, struct end *from, const struct pmf_hdr *hdr,
			       size_t len);

struct pipe {
	pmf_ns_t now;
	pmf_ns_t delay;
	struct end a, b;
	struct frame *frames;
	unsigned int top; /* none in use from here on */
	fate_fn filter;
	/* for filters */
	unsigned int count;
	uint64_t random;
	size_t mtu;
	size_t largest[PMF_PT_MAX];
};

static inline uint8_t pattern(uint64_t msg, uint64_t i)
{
	return (uint8_t)(msg * 131 + i * 7 + (i >> 8));
}

/* Begin the flow; again, when a test has changed the configuration before anything was sent. */
static inline void end_begin(struct end *e)
{
	struct pmf_flow_ident id = {.inc = e->inc, .local = e->addr};
	uint8_t host = e->addr.ip[15], ip[4] = {10, 0, 0, 0};

	id.conn = e->inc << 32 | host;
	id.nonce = e->inc * 7;
	ip[3] = e->peer == e ? host : (uint8_t)(3 - host);
	pmf_addr_set_v4(&id.peer, ip, 5000 + ip[3]);
	pmf_flow_init(&e->f, &e->conf, &id, &e->stats, e->pipe->now);
}

static inline void end_init(struct pipe *p, struct end *e, struct end *peer, uint8_t host,
			    uint64_t inc)
{
	uint8_t ip[4] = {10, 0, 0, host};

	memset(e, 0, sizeof(*e));
	e->pipe = p;
	e->peer = peer;
	e->conf = (struct pmf_flow_conf){
		.ack_delay = 20 * PMF_NS_PER_US,
		.ack_every = 2,
		.dead_after = 2 * PMF_NS_PER_S,
		.min_rto = PMF_NS_PER_MS,
		.max_rto = PMF_NS_PER_S,
		.window = PIPE_WINDOW,
		.eager_limit = 4096,
		.rx_credit = 64 * 1024,
		.first_credit = 16 * 1024,
		.max_payload = PIPE_PAYLOAD,
	};
	e->inc = inc;
	e->key.k[0] = inc * 3;
	e->key.k[1] = inc * 5;
	e->conn_known = true;
	e->posted = true;
	pmf_addr_set_v4(&e->addr, ip, 5000 + host);
	end_begin(e);
}

static inline void pipe_init(struct pipe *p)
{
	memset(p, 0, sizeof(*p));
	p->now = PMF_NS_PER_S;
	p->delay = PIPE_DELAY;
	p->random = 1;
	p->mtu = PIPE_PAYLOAD;
	p->frames = calloc(PIPE_FRAMES, sizeof(*p->frames));
	end_init(p, &p->a, &p->b, 1, 0x1111);
	end_init(p, &p->b, &p->a, 2, 0x2222);
}

static inline void end_drop_held(struct end *e)
{
	for (unsigned int i = 0; i < PIPE_WINDOW; i++) {
		if (e->held[i])
			e->held[i]->used = false;
		e->held[i] = NULL;
	}
}

static inline void end_fini(struct end *e)
{
	CU_ASSERT_EQUAL(e->f.bad_steps, 0);
	end_drop_held(e);
	free(pmf_flow_reclaim(&e->f));
	for (unsigned int i = 0; i < PIPE_MSGS; i++)
		free(e->got[i].bytes);
}

static inline void pipe_fini(struct pipe *p)
{
	end_fini(&p->a);
	end_fini(&p->b);
	free(p->frames);
}

/* A new process behind the same address. */
static inline void end_restart(struct end *e, uint64_t inc)
{
	struct pipe *p = e->pipe;
	struct end *peer = e->peer;
	uint8_t host = e->addr.ip[15];

	end_fini(e);
	end_init(p, e, peer, host, inc);
	e->conn_known = false;
}

/* ---- the wire ---- */

static inline void pipe_put(struct pipe *p, struct end *to, const uint8_t *data, size_t len,
			    pmf_ns_t at, uint8_t ecn)
{
	for (unsigned int i = 0; i < PIPE_FRAMES; i++) {
		struct frame *f = &p->frames[i];

		if (f->used)
			continue;
		p->top = PMF_MAX(p->top, i + 1);
		f->used = true;
		f->kept = false;
		f->at = at;
		f->to = to;
		f->len = (uint16_t)len;
		f->ecn = ecn;
		memcpy(f->data, data, len);
		return;
	}
	CU_FAIL_FATAL("the wire is full");
}

static inline void pipe_send(struct end *from, const uint8_t *data, size_t len, bool ect)
{
	struct pipe *p = from->pipe;
	struct fate fate = {0};
	struct pmf_hdr hdr;

	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(data, len, &hdr), 0);
	from->frames[hdr.type]++;
	p->largest[hdr.type] = PMF_MAX(p->largest[hdr.type], len);
	if (p->filter)
		fate = p->filter(p, from, &hdr, len);
	if (fate.lose || len > p->mtu)
		return;
	for (int i = 0; i <= fate.twice; i++)
		pipe_put(p, from->peer, data, len, p->now + p->delay + fate.late,
			 ect && fate.ecn ? fate.ecn : 0);
}

/* ---- a receiver ---- */

static inline void end_invite(struct end *e, uint64_t msg)
{
	memset(&e->got[msg].item, 0, sizeof(e->got[msg].item));
	pmf_flow_invite(&e->f, &e->got[msg].item, msg);
}

static inline void end_start(struct end *e, const struct pmf_rec *rec)
{
	struct got *g = &e->got[rec->msg];
	bool eager = !(rec->flags & PMF_RF_ANNOUNCE);

	CU_ASSERT_FATAL(rec->msg < PIPE_MSGS);
	CU_ASSERT_EQUAL(rec->msg, e->begun);
	e->begun++;
	g->begun = true;
	g->announced = !eager;
	g->len = rec->total;
	g->flags = rec->flags;
	g->data = rec->data;
	g->bytes = malloc(g->len + 1);
	if (eager && e->holds > 0) {
		e->holds--;
		g->held = true;
		pmf_flow_hold(&e->f, &g->hold, rec->msg);
		pmf_flow_credit_return(&e->f, pmf_msg_cost(g->len, true));
	} else if (e->posted) {
		pmf_flow_credit_return(&e->f, pmf_msg_cost(g->len, eager));
		if (!eager)
			end_invite(e, rec->msg);
	}
}

static inline void end_bytes(struct end *e, const struct pmf_rec *rec)
{
	struct got *g = &e->got[rec->msg];

	CU_ASSERT_FATAL(rec->msg < PIPE_MSGS && g->begun);
	if (rec->type != PMF_RT_BODY && (g->held || g->announced))
		return;
	/* An engine may rely on it: its invitation has been acknowledged, and it is not aborted. */
	if (rec->type == PMF_RT_BODY)
		CU_ASSERT_TRUE((g->held || g->announced) && !g->aborted &&
			       g->item.state == PMF_ITEM_DONE);
	CU_ASSERT_EQUAL(rec->off, g->have);
	CU_ASSERT_FATAL(rec->off + rec->len <= g->len);
	memcpy(g->bytes + rec->off, rec->bytes, rec->len);
	g->have += rec->len;
	if (g->have != g->len)
		return;
	for (uint64_t i = 0; i < g->len; i++)
		CU_ASSERT_EQUAL_FATAL(g->bytes[i], pattern(rec->msg, i));
	CU_ASSERT_FALSE(g->whole);
	g->whole = true;
	e->whole++;
}

static inline void end_records(struct end *e, const struct pmf_hdr *hdr)
{
	struct pmf_rec_iter it = {hdr->body, hdr->body_len};
	struct pmf_rec rec;
	int ret;

	while ((ret = pmf_flow_next_rec(&e->f, &it, &rec)) > 0) {
		if (rec.type == PMF_RT_ABORT) {
			if (rec.msg == e->begun)
				e->begun++;
			e->got[rec.msg].aborted = true;
			continue;
		}
		if (rec.type == PMF_RT_START)
			end_start(e, &rec);
		end_bytes(e, &rec);
	}
	CU_ASSERT_EQUAL_FATAL(ret, 0);
	pmf_flow_rx_done(&e->f, e->pipe->now);
}

static inline void end_next(struct end *e, const struct pmf_hdr *hdr)
{
	end_records(e, hdr);
	for (;;) {
		struct frame **slot = &e->held[e->f.rcv_next % PIPE_WINDOW], *f = *slot;
		struct pmf_hdr h;

		if (!f)
			return;
		pmf_wire_get(f->data, f->len, &h);
		CU_ASSERT_EQUAL_FATAL(h.psn, (uint32_t)e->f.rcv_next);
		*slot = NULL;
		f->used = false;
		if (e->refuse_held > 0) {
			e->refuse_held--;
			pmf_flow_rx_refuse(&e->f, e->f.rcv_next);
			return;
		}
		end_records(e, &h);
	}
}

static bool pipe_no_memory; /* for a larger window than one has */

/* As an engine does before each packet, in and out. */
static inline void lend_window(struct pmf_flow *f)
{
	const uint32_t window = pmf_flow_window_wanted(f);

	CU_ASSERT_TRUE_FATAL(window <= f->conf->window);
	if (window && f->active && pipe_no_memory)
		pmf_flow_make_do(f);
	else if (window)
		free(pmf_flow_lend(f, aligned_alloc(PMF_CACHE_LINE, pmf_flow_active_size(window)),
				   window));
}

static inline void end_flow_rx(struct end *e, struct frame *f, const struct pmf_hdr *hdr)
{
	enum pmf_verdict v;
	uint32_t later = 0;
	pmf_psn_t psn;

	pmf_flow_make_room(&e->f, hdr);
	lend_window(&e->f);
	if (e->later)
		v = pmf_flow_rx_first(&e->f, hdr, f->ecn, e->pipe->now, &psn, &later);
	else
		v = pmf_flow_rx(&e->f, hdr, f->ecn, e->pipe->now, &psn);
	switch (v) {
	case PMF_RX_NEXT:
		if (e->refuse > 0) {
			e->refuse--;
			pmf_flow_rx_refuse(&e->f, psn);
		} else {
			end_next(e, hdr);
		}
		break;
	case PMF_RX_AHEAD:
		if (e->refuse > 0) {
			e->refuse--;
			pmf_flow_rx_refuse(&e->f, psn);
			break;
		}
		CU_ASSERT_PTR_NULL(e->held[psn % PIPE_WINDOW]);
		e->held[psn % PIPE_WINDOW] = f;
		f->kept = true;
		break;
	case PMF_RX_FLUSH:
		e->flushes++;
		end_drop_held(e);
		break;
	default:
		break;
	}
	e->laters += later;
	if (later)
		pmf_flow_rx_later(&e->f, hdr, later, e->pipe->now);
}

/* What an engine does with a frame before it knows a flow. */
static inline void end_rx(struct end *e, struct frame *f)
{
	struct pmf_contact c;
	struct pmf_addr to;
	struct pmf_hdr hdr;
	uint8_t out[256];
	size_t n;

	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(f->data, f->len, &hdr), 0);
	if (hdr.type == PMF_PT_HELLO) {
		n = pmf_contact_challenge(&e->key, &e->conf, &hdr, f->len, &e->peer->addr,
					  e->addr.port, e->inc, e->conn_known, e->pipe->now, out,
					  sizeof(out), &to);
		CU_ASSERT_NOT_EQUAL(n, 0);
		CU_ASSERT_TRUE(pmf_addr_eq(&to, &e->peer->addr));
		pipe_send(e, out, n, false);
	} else if (hdr.type == PMF_PT_RESET) {
		pmf_flow_on_reset(&e->f, &hdr, e->pipe->now);
	} else if (hdr.type == PMF_PT_OPEN && hdr.conn == 0) {
		if (pmf_contact_check(&e->key, &hdr, &e->peer->addr, e->addr.port, e->inc,
				      e->pipe->now, &c) == 0) {
			pmf_flow_accept(&e->f, &c, e->pipe->now);
			end_flow_rx(e, f, &hdr);
		}
	} else if (hdr.conn != e->f.id.conn) {
		n = pmf_contact_reset(&hdr, e->addr.port, 0, out, sizeof(out));
		e->resets++;
		if (n != 0)
			pipe_send(e, out, n, false);
	} else if (hdr.type == PMF_PT_CHALLENGE) {
		pmf_flow_on_challenge(&e->f, &hdr, e->pipe->now);
	} else {
		end_flow_rx(e, f, &hdr);
	}
}

static inline void end_collect(struct end *e)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&e->f.done)) != NULL) {
		STAILQ_REMOVE_HEAD(&e->f.done, link);
		CU_ASSERT_EQUAL(item->state, PMF_ITEM_DONE);
		if (item->kind != PMF_ITEM_MSG)
			continue;
		e->last_status = item->status;
		if (item->status == 0)
			e->done++;
		else if (item->status == -ECANCELED)
			e->canceled++;
		else
			e->failed++;
	}
}

/* Timers and sends. @return whether a frame went out */
static inline bool end_work(struct end *e)
{
	static uint8_t buf[PIPE_PAYLOAD];
	struct pmf_piece piece = {.min = e->leaves}, *may = e->leaves ? &piece : NULL;
	bool any = false, ect;
	size_t n;

	if (e->deaf)
		return false;
	if (e->pipe->now >= pmf_flow_deadline(&e->f))
		pmf_flow_on_timer(&e->f, e->pipe->now);
	while (lend_window(&e->f), pmf_flow_wants_tx(&e->f, e->pipe->now)) {
		n = pmf_flow_tx(&e->f, e->pipe->now, buf, sizeof(buf), &ect, may);
		if (n == 0)
			break;
		if (may && piece.len) {
			e->left_out++;
			memcpy(buf + n, piece.bytes, piece.len);
			n += piece.len;
		}
		any = true;
		pipe_send(e, buf, n, ect);
	}
	end_collect(e);
	return any;
}

/* ---- time ---- */

static inline void pipe_deliver(struct pipe *p)
{
	for (;;) {
		struct frame *f = NULL;

		for (unsigned int i = 0; i < p->top; i++) {
			struct frame *g = &p->frames[i];

			if (g->used && !g->kept && g->at <= p->now && (!f || g->at < f->at))
				f = g;
		}
		if (!f)
			return;
		if (!f->to->deaf)
			end_rx(f->to, f);
		f->used = f->kept;
	}
}

static inline pmf_ns_t pipe_next(struct pipe *p)
{
	pmf_ns_t at = PMF_NS_NEVER;

	for (unsigned int i = 0; i < p->top; i++)
		if (p->frames[i].used && !p->frames[i].kept)
			at = PMF_MIN(at, p->frames[i].at);
	if (!p->a.deaf)
		at = PMF_MIN(at, pmf_flow_deadline(&p->a.f));
	if (!p->b.deaf && p->a.peer != &p->a)
		at = PMF_MIN(at, pmf_flow_deadline(&p->b.f));
	return at;
}

/* One step of the clock. @return false: nothing will ever happen again */
static inline bool pipe_step(struct pipe *p)
{
	pmf_ns_t next;

	pipe_deliver(p);
	end_work(&p->a);
	if (p->a.peer != &p->a)
		end_work(&p->b);
	next = pipe_next(p);
	if (next == PMF_NS_NEVER)
		return false;
	p->now = PMF_MAX(next, p->now + 1);
	return true;
}

/* Let @p span pass, or less if nothing is going to happen. */
static inline void pipe_run(struct pipe *p, pmf_ns_t span)
{
	pmf_ns_t end = p->now + span;

	while (p->now < end && pipe_step(p))
		;
	p->now = PMF_MAX(p->now, end);
}

/* ---- a sender ---- */

static inline struct pmf_item *msg_new(uint64_t len, uint64_t msg)
{
	struct pmf_item *item = calloc(1, sizeof(*item) + len + 1);
	uint8_t *bytes = (uint8_t *)(item + 1), *end = bytes + len;

	/* By address: counting to len, gcc 14 unrolls past it and then warns of its own copies. */
	for (uint64_t i = 0; bytes + i < end; i++)
		bytes[i] = pattern(msg, i);
	item->buf = bytes;
	item->niov = 1;
	item->len = len;
	item->kind = PMF_ITEM_MSG;
	return item;
}

#endif
