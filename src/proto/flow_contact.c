/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Contact as a flow sees it: hello until the challenge comes, opening until the peer has told its
 * id, and the verification of a reset. The half without state is in contact.c.
 */
#include "proto/contact.h"
#include "proto/flow_private.h"

#define HELLO_FIRST (5 * PMF_NS_PER_MS)
#define HELLO_MOST (250 * PMF_NS_PER_MS)
#define VERIFY_EVERY (100 * PMF_NS_PER_MS)
#define COOKIE_RENEW (250 * PMF_NS_PER_MS)
#define COOKIE_RENEW_MOST (PMF_COOKIE_LIFE / 2)

/* @return whether a hello of ours had this nonce, and no answer has been taken since */
static bool nonce_counts(const struct pmf_flow *f, uint64_t nonce)
{
	uint64_t ago = f->nonce - nonce;

	return ago < f->nonce - f->nonce_void;
}

/* The peer's life is known from now on. */
static void bind(struct pmf_flow *f, uint64_t inc, uint16_t max_payload, pmf_ns_t alive_at)
{
	f->bound = true;
	f->intro = true;
	f->bound_at = alive_at;
	f->peer_inc = inc;
	f->peer_max = max_payload;
	f->want &= (uint8_t)~PMF_WANT_HELLO;
	pmf_flow_mtu_bind(f);
}

static void open_up(struct pmf_flow *f)
{
	pmf_flow_step(f, PMF_FLOW_OPEN);
	pmf_flow_set_window(f);
	f->want &= (uint8_t)~PMF_WANT_HELLO;
}

size_t pmf_flow_hello(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	/* A nonce of its own for each, so that an answer is taken once. */
	struct pmf_hdr hdr = {
		.type = PMF_PT_HELLO,
		.inc = f->id.inc,
		.my_conn = f->id.conn,
		.nonce = f->nonce + 1,
		.port = f->id.local.port,
		.max_payload = f->conf->max_payload,
	};
	size_t n;

	if (f->id.connects)
		hdr.flags |= PMF_HF_CONNECT;
	if (f->verifying && f->peer_conn != 0) {
		hdr.flags |= PMF_HF_VERIFY;
		hdr.peer_conn = f->peer_conn;
	}
	n = pmf_wire_put(buf, cap, &hdr);
	if (n == 0)
		return 0;
	f->nonce++;
	f->want &= (uint8_t)~PMF_WANT_HELLO;
	if (f->state == PMF_FLOW_IDLE) {
		pmf_flow_step(f, PMF_FLOW_HELLO);
		f->contact_every = HELLO_FIRST;
		pmf_flow_due(f, now);
	}
	if (f->state == PMF_FLOW_HELLO) {
		f->hello_at = now;
		f->contact_at = now + f->contact_every;
		f->contact_every = PMF_MIN(2 * f->contact_every, HELLO_MOST);
		pmf_flow_arm(f, f->contact_at);
	}
	f->stats->tx_hellos++;
	return n;
}

void pmf_flow_contact_timer(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->state != PMF_FLOW_HELLO && f->state != PMF_FLOW_OPENING)
		return;
	if (now >= f->contact_at) {
		f->want |= PMF_WANT_HELLO;
		/* A hello sets its own time; a cookie is asked for again until it is renewed. */
		f->contact_at = now + PMF_NS_PER_S;
	}
	pmf_flow_arm(f, f->contact_at);
}

static void on_first_challenge(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	bind(f, hdr->inc, hdr->max_payload, now);
	f->seed = hdr->cookie_mac;
	pmf_flow_step(f, PMF_FLOW_OPENING);
	f->contact_every = COOKIE_RENEW;
	pmf_flow_credit_raise(f, hdr->credit);
	f->last_rx = now;
	/* No doubt which one was answered, and that is the one whose time is known. */
	if (hdr->nonce == f->nonce && now > f->hello_at) {
		pmf_rtt_sample(&f->rtt, now - f->hello_at, now);
		f->pto = 2 * f->rtt.srtt + f->conf->ack_delay;
	}
}

int pmf_flow_on_challenge(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	if (f->state == PMF_FLOW_IDLE || f->state == PMF_FLOW_DEAD ||
	    !nonce_counts(f, hdr->nonce) || hdr->peer_inc != f->id.inc)
		return -EBADMSG;
	f->nonce_void = hdr->nonce;
	if (f->state == PMF_FLOW_HELLO) {
		on_first_challenge(f, hdr, now);
	} else if (hdr->inc != f->peer_inc || (f->verifying && (hdr->flags & PMF_HF_GONE))) {
		pmf_flow_kill(f, ECONNRESET);
		return 0;
	}
	f->verifying = false;
	f->cookie_time = hdr->cookie_time;
	f->cookie_mac = hdr->cookie_mac;
	if (f->state == PMF_FLOW_OPENING) {
		/* Soon at first: a late packet of our life before makes this cookie one of the
		 * past. */
		f->contact_at = now + f->contact_every;
		f->contact_every = PMF_MIN(2 * f->contact_every, COOKIE_RENEW_MOST);
		pmf_flow_arm(f, f->contact_at);
	}
	return 0;
}

void pmf_flow_accept(struct pmf_flow *f, const struct pmf_contact *c, pmf_ns_t now)
{
	if (f->state == PMF_FLOW_DEAD)
		return;
	if (!f->bound) {
		bind(f, c->inc, c->max_payload, c->cookie_time);
		/* What answers our hellos now may be an earlier life's, and late. */
		f->nonce_void = f->nonce;
		f->seed = c->seed;
		f->peer_conn = c->conn;
		f->last_rx = now;
		/* The cookie has been there and back. */
		pmf_rtt_guess(&f->rtt, now - c->cookie_time);
		f->pto = 2 * f->rtt.srtt + f->conf->ack_delay;
		open_up(f);
	} else if (c->inc != f->peer_inc || (f->peer_conn != 0 && c->conn != f->peer_conn)) {
		/* Another life of the peer, or another flow of it: which of the two is the older?
		 */
		if (c->cookie_time > f->bound_at)
			pmf_flow_kill(f, ECONNRESET);
	} else if (f->peer_conn == 0) {
		f->peer_conn = c->conn;
		open_up(f);
	}
}

bool pmf_flow_contact_rx(struct pmf_flow *f, const struct pmf_hdr *hdr)
{
	if (!f->bound)
		return false;
	if (hdr->type == PMF_PT_OPEN) {
		if (hdr->inc != f->peer_inc || hdr->peer_inc != f->id.inc || hdr->my_conn == 0)
			return false;
		if (f->peer_conn == 0) {
			f->peer_conn = hdr->my_conn;
			open_up(f);
		}
		if (hdr->my_conn != f->peer_conn)
			return false;
	} else if (f->peer_conn == 0) {
		return false;
	}
	/* The peer uses our id: it need not be told any more. */
	if (hdr->conn == f->id.conn)
		f->intro = false;
	return true;
}

void pmf_flow_on_refused(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	if (f->state == PMF_FLOW_DEAD || !nonce_counts(f, hdr->peer_conn))
		return;
	if (hdr->flags & PMF_HF_KEY) {
		/* Who has no key is safe from those that read his hellos; who has one is not. */
		if (f->id.tail)
			f->key_refused_at = now;
		else
			pmf_flow_kill(f, EKEYREJECTED);
		return;
	}
	if (f->verifying)
		pmf_flow_kill(f, ECONNRESET);
	else if (f->state == PMF_FLOW_HELLO && f->id.connects)
		pmf_flow_kill(f, ECONNREFUSED);
	/* Otherwise the endpoint may yet be opened: try on until the peer counts as dead. */
}

void pmf_flow_on_reset(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	f->stats->rx_resets++;
	if (!f->bound || f->state == PMF_FLOW_DEAD || hdr->peer_conn != f->peer_conn ||
	    now < f->verify_at)
		return;
	if ((hdr->flags & PMF_HF_KEY) && f->id.tail) {
		f->key_refused_at = now;
		return;
	}
	/* A challenge that was asked for before proves nothing. */
	f->verify_at = now + VERIFY_EVERY;
	f->verifying = true;
	f->nonce_void = f->nonce;
	f->want |= PMF_WANT_HELLO;
}
