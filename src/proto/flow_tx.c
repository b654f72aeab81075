/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What goes out next: the choice between packets, and the header that all of them carry.
 */
#include "proto/flow_private.h"

#define ACK_AGAIN PMF_NS_PER_S /* for what came before, a peer does not wait any more */

void pmf_flow_fill(const struct pmf_flow *f, struct pmf_hdr *hdr, uint8_t type, pmf_ns_t now)
{
	pmf_ns_t delay = (now - f->rx_at) >> 6;

	hdr->type = type;
	hdr->flags = now / PMF_CC_PHASE & 1 ? PMF_HF_PHASE : 0;
	hdr->wait = f->rx_wait;
	hdr->key = 0;
	hdr->nsack = 0;
	hdr->holds = f->holds_made;
	hdr->ce = f->rx_ce;
	hdr->conn = f->peer_conn;
	hdr->psn = (uint32_t)f->psn_next;
	hdr->txno = (uint32_t)f->txno_next;
	hdr->ack = (uint32_t)f->rcv_next;
	hdr->ack_txno = (uint32_t)f->rx_txno;
	hdr->ack_delay = (uint32_t)PMF_MIN(delay, UINT32_MAX);
	hdr->credit = (uint32_t)f->rx_limit;
}

void pmf_flow_fill_open(const struct pmf_flow *f, struct pmf_hdr *hdr)
{
	hdr->inc = f->id.inc;
	hdr->peer_inc = f->peer_inc;
	hdr->my_conn = f->id.conn;
	hdr->cookie_time = f->cookie_time;
	hdr->cookie_mac = f->cookie_mac;
	hdr->seed = f->seed;
	hdr->port = f->id.local.port;
	hdr->max_payload = f->conf->max_payload;
}

/* A frame with a transmission number has been made: it carried all that was to be acknowledged. */
void pmf_flow_sent(struct pmf_flow *f, uint32_t size, pmf_ns_t now)
{
	if (pmf_likely(f->active != NULL))
		pmf_times_set(f->active, f->txno_next, size, now);
	f->txno_next++;
	f->ack_at = PMF_NS_NEVER;
	f->rx_unacked = 0;
	f->rx_told = f->rx_limit;
}

/* An OPEN without records while the peer may not know our id. */
static void ack_header(const struct pmf_flow *f, struct pmf_hdr *hdr, pmf_ns_t now)
{
	pmf_flow_fill(f, hdr, f->intro ? PMF_PT_OPEN : PMF_PT_ACK, now);
	if (f->intro)
		pmf_flow_fill_open(f, hdr);
}

static size_t ack_alone(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	struct pmf_hdr hdr;
	size_t n;

	ack_header(f, &hdr, now);
	if (f->ahead != 0)
		hdr.nsack = (uint8_t)pmf_flow_sack_list(f, hdr.sack, PMF_WIRE_MAX_SACK);
	n = pmf_wire_put(buf, cap, &hdr);
	if (n == 0)
		return 0;
	pmf_flow_sent(f, 0, now);
	f->stats->tx_acks++;
	return n;
}

size_t pmf_flow_probe(struct pmf_flow *f, uint8_t flags, size_t size, pmf_ns_t now, uint8_t *buf,
		      size_t cap)
{
	struct pmf_hdr hdr;
	size_t n;

	pmf_flow_fill(f, &hdr, PMF_PT_PROBE, now);
	hdr.flags |= flags;
	if (f->ahead != 0)
		hdr.nsack = (uint8_t)pmf_flow_sack_list(f, hdr.sack, PMF_WIRE_MAX_SACK);
	n = pmf_wire_put(buf, cap, &hdr);
	if (n == 0 || size > cap)
		return 0;
	if (size > n) {
		memset(buf + n, 0, size - n);
		n = size;
	}
	pmf_flow_sent(f, 0, now);
	f->stats->tx_probes++;
	return n;
}

/*
 * The answer to a probe. It tells of that probe only and is no acknowledgement of anything else,
 * since the transmission it names need not be the newest.
 */
static size_t tx_echo(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	pmf_ns_t ack_at = f->ack_at;
	uint16_t unacked = f->rx_unacked;
	struct pmf_hdr hdr;
	size_t n;

	f->want &= (uint8_t)~PMF_WANT_ECHO;
	ack_header(f, &hdr, now);
	hdr.flags |= f->echo_flags;
	hdr.ack_txno = f->echo_txno;
	hdr.ack_delay = (uint32_t)PMF_MIN((now - f->echo_at) >> 6, UINT32_MAX);
	if (hdr.flags & PMF_HF_RESYNC)
		hdr.ack = (uint32_t)f->rs_cum;
	f->echo_flags = 0;
	n = pmf_wire_put(buf, cap, &hdr);
	if (n == 0)
		return 0;
	pmf_flow_sent(f, 0, now);
	f->ack_at = ack_at;
	f->rx_unacked = unacked;
	f->stats->tx_acks++;
	return n;
}

static size_t tx_alive_probe(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	f->want &= (uint8_t)~PMF_WANT_PROBE;
	if (f->probe_txno == 0) {
		f->probe_txno = f->txno_next;
		if (f->una == f->psn_next) /* else an answer is due already */
			pmf_flow_due(f, now);
	}
	return pmf_flow_probe(f, 0, 0, now, buf, cap);
}

/* Tail loss probe (RFC 8985 §7.3): new data if there is some, else the newest packet again. */
static size_t tx_tail(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	struct pmf_flow_active *a = f->active;
	size_t n = 0;

	f->want &= (uint8_t)~PMF_WANT_TLP;
	if (!a || !pmf_flow_carries_data(f))
		return 0;
	if (f->lost == 0 && f->ready && f->psn_next - f->una < f->tx_window)
		n = pmf_flow_cut(f, now, buf, cap, NULL);
	if (n == 0 && a->sent.tail != PMF_PKT_NONE)
		n = pmf_flow_again(f, &a->pkt[a->sent.tail], now, buf, cap);
	if (n != 0)
		f->stats->tail_probes++;
	return n;
}

static size_t tx_special(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap, bool *ect)
{
	size_t n = 0;

	if (f->want & PMF_WANT_HELLO)
		return pmf_flow_hello(f, now, buf, cap);
	if (f->want & PMF_WANT_ECHO)
		return tx_echo(f, now, buf, cap);
	if (f->want & PMF_WANT_RESYNC)
		return pmf_flow_resync_probe(f, now, buf, cap);
	if (f->want & PMF_WANT_TLP) {
		n = tx_tail(f, now, buf, cap);
		*ect = n != 0;
	}
	if (n == 0 && (f->want & PMF_WANT_PROBE))
		return tx_alive_probe(f, now, buf, cap);
	if (n == 0 && (f->want & PMF_WANT_ASK)) {
		f->want &= (uint8_t)~PMF_WANT_ASK;
		return pmf_flow_probe(f, 0, 0, now, buf, cap);
	}
	if (n == 0 && (f->want & PMF_WANT_MTU))
		return pmf_flow_mtu_probe(f, now, buf, cap);
	return n;
}

/* There is something to send, and but for the time room in the windows. */
static inline bool has_data(const struct pmf_flow *f)
{
	if (!f->active || !pmf_flow_carries_data(f) || !pmf_cc_has_room(&f->cc, f->inflight))
		return false;
	return f->lost != 0 || (f->ready && f->psn_next - f->una < f->tx_window);
}

static inline bool data_ready(const struct pmf_flow *f, pmf_ns_t now)
{
	return now >= f->cc.next_send && has_data(f);
}

/* Of the packets to be sent again: the one that all others wait for, however often it got lost. */
static struct pmf_txpkt *lost_first(const struct pmf_flow *f)
{
	struct pmf_flow_active *a = f->active;
	struct pmf_txpkt *oldest = pmf_pkt(a, f->una);

	return oldest->state == PMF_PKT_LOST ? oldest : &a->pkt[a->lost.head];
}

bool pmf_flow_wants_tx(const struct pmf_flow *f, pmf_ns_t now)
{
	return f->want != 0 || now >= f->ack_at || data_ready(f, now);
}

size_t pmf_flow_tx(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap, bool *ect,
		   struct pmf_piece *piece)
{
	size_t n = 0;

	*ect = false;
	if (piece)
		piece->len = 0;
	if (pmf_unlikely(f->want != 0)) {
		n = tx_special(f, now, buf, cap, ect);
		if (n != 0)
			return n;
	}
	if (data_ready(f, now)) {
		if (pmf_unlikely(f->lost != 0))
			n = pmf_flow_again(f, lost_first(f), now, buf, cap);
		else
			n = pmf_flow_cut(f, now, buf, cap, piece);
		*ect = n != 0;
	}
	if (n == 0 && now >= f->ack_at && f->state != PMF_FLOW_DEAD)
		n = ack_alone(f, now, buf, cap);
	return n;
}

bool pmf_flow_ack_pending(const struct pmf_flow *f)
{
	return f->ack_at != PMF_NS_NEVER;
}

pmf_ns_t pmf_flow_ack_due(const struct pmf_flow *f)
{
	return f->ack_at;
}

void pmf_flow_ack_now(struct pmf_flow *f)
{
	if (f->ack_at != PMF_NS_NEVER)
		pmf_flow_ack_soon(f);
}

bool pmf_flow_ack_again(struct pmf_flow *f, pmf_ns_t now)
{
	if (!pmf_flow_carries_data(f) || !f->rx_txno || now - f->rx_at > ACK_AGAIN)
		return false;
	pmf_flow_ack_soon(f);
	return true;
}

pmf_ns_t pmf_flow_deadline(const struct pmf_flow *f)
{
	pmf_ns_t at = PMF_MIN(PMF_MIN(f->ack_at, f->loss_at), f->slow_at);

	/* A window below one packet is kept by spacing sends out. */
	if (pmf_unlikely(f->cc.next_send != 0) && has_data(f))
		at = PMF_MIN(at, f->cc.next_send);
	return at;
}

void pmf_flow_on_timer(struct pmf_flow *f, pmf_ns_t now)
{
	pmf_flow_late(f, now);
	if (now >= f->loss_at)
		pmf_flow_loss_timer(f, now);
	if (now >= f->slow_at)
		pmf_flow_live_timer(f, now);
}
