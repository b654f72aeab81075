/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A received packet: whether it is acceptable, what its header tells, and where it stands in the
 * order.
 */
#include "proto/flow_private.h"

#define AHEAD_LEAST 256u /* packets: what a sender may have under way that has just begun */

static enum pmf_verdict drop_bad(struct pmf_flow *f)
{
	f->stats->rx_bad++;
	return PMF_RX_DROP;
}

/* Ahead of order: the caller keeps it, and the peer learns of the gap at once. */
static enum pmf_verdict rx_ahead(struct pmf_flow *f, uint32_t ahead, pmf_psn_t *psn)
{
	struct pmf_flow_active *a = f->active;
	uint32_t slot;

	/* Taken or not, the peer learns where we stand: its last acknowledgement may be lost. */
	pmf_flow_ack_soon(f);
	if (ahead >= f->conf->window || !a || ahead > a->mask) {
		f->stats->rx_outside++;
		return PMF_RX_DROP;
	}
	slot = (uint32_t)(f->rcv_next + ahead) & a->mask;
	if (pmf_map_test(a->rx_map, slot)) {
		f->stats->rx_dups++;
		return PMF_RX_DROP;
	}
	pmf_map_set(a->rx_map, slot);
	f->ahead++;
	f->stats->rx_ahead++;
	*psn = f->rcv_next + ahead;
	return PMF_RX_AHEAD;
}

void pmf_flow_make_room(struct pmf_flow *f, const struct pmf_hdr *hdr)
{
	const struct pmf_flow_active *a = f->active;
	int32_t ahead = pmf_ahead32(hdr->psn, f->rcv_next);

	if (ahead <= 0 || ahead >= (int64_t)f->conf->window || hdr->body_len == 0)
		return;
	if (!a || (uint32_t)ahead > a->mask)
		pmf_flow_want_window(f, PMF_MAX(2 * (uint32_t)ahead, AHEAD_LEAST));
}

static enum pmf_verdict rx_data(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
				pmf_psn_t *psn)
{
	int32_t ahead = pmf_ahead32(hdr->psn, f->rcv_next);

	if (pmf_unlikely((ecn & 3) == 3)) {
		f->rx_ce++;
		f->stats->rx_ce++;
		pmf_flow_ack_soon(f);
	}
	if (hdr->flags & PMF_HF_ANSWER)
		f->rx_unacked = (uint16_t)f->conf->ack_every;
	if (pmf_likely(ahead == 0)) {
		*psn = f->rcv_next;
		return PMF_RX_NEXT;
	}
	if (ahead > 0)
		return rx_ahead(f, (uint32_t)ahead, psn);
	f->stats->rx_dups++;
	pmf_flow_ack_soon(f);
	return PMF_RX_DROP;
}

static enum pmf_verdict rx_probe(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	enum pmf_verdict v = PMF_RX_NONE;

	if (hdr->flags & PMF_HF_RESYNC) {
		v = pmf_flow_resync_rx(f, hdr);
		if (v == PMF_RX_DROP)
			return v;
		f->echo_flags = PMF_HF_RESYNC;
	}
	f->echo_flags |= PMF_HF_ECHO;
	f->echo_txno = hdr->txno;
	f->echo_at = now;
	f->want |= PMF_WANT_ECHO;
	return v;
}

/* What the packet is for, once its header has been taken. */
static inline enum pmf_verdict rx_body(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
				       pmf_ns_t now, pmf_psn_t *psn)
{
	if (pmf_likely(hdr->type == PMF_PT_DATA))
		return rx_data(f, hdr, ecn, psn);
	if (hdr->type == PMF_PT_PROBE)
		return rx_probe(f, hdr, now);
	if (hdr->type == PMF_PT_OPEN && hdr->body_len != 0)
		return rx_data(f, hdr, ecn, psn);
	/* An OPEN without records acknowledges and tells an id, or asks for ours and for credit. */
	if (hdr->type == PMF_PT_OPEN && hdr->conn == 0)
		pmf_flow_ack_soon(f);
	return PMF_RX_NONE;
}

/*
 * While we wait to hear where the peer stands, an acknowledgement of all up to the base may mean
 * that it has skipped to there. Records that came with it are left for later: they may answer what
 * is not known to have arrived.
 */
static enum pmf_verdict rx_resync(struct pmf_flow *f, const struct pmf_hdr *hdr, int32_t ahead,
				  uint8_t ecn, pmf_ns_t now, pmf_psn_t *psn)
{
	if (ahead < (int64_t)(f->psn_next - f->una)) {
		if (ahead > 0) {
			f->holds_told = hdr->holds;
			pmf_flow_release(f, (uint32_t)ahead);
		}
		return rx_body(f, hdr, ecn, now, psn);
	}
	if (hdr->type == PMF_PT_PROBE)
		return rx_probe(f, hdr, now);
	if (hdr->body_len == 0)
		return PMF_RX_NONE;
	f->stats->rx_outside++;
	return PMF_RX_DROP;
}

/*
 * May what the packet acknowledges wait? One eager message, whole and kept by the peer, may.
 * Records that are about to be read may name what is announced, held or invited: there they come
 * second.
 */
static inline bool may_wait(const struct pmf_flow *f, const struct pmf_hdr *hdr, int32_t ahead)
{
	const struct pmf_txpkt *p;

	if (ahead != 1 || hdr->type != PMF_PT_DATA || hdr->nsack != 0 ||
	    hdr->holds != f->holds_told)
		return false;
	p = pmf_pkt(f->active, f->una);
	return p->queue == PMF_Q_SEND && p->state == PMF_PKT_SENT && p->nrecs == 1 &&
	       p->ends == 1 && p->first->mode == PMF_MODE_EAGER;
}

static inline enum pmf_verdict rx(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
				  pmf_ns_t now, pmf_psn_t *psn, uint32_t *later)
{
	int32_t ahead;

	if (pmf_unlikely(f->state != PMF_FLOW_OPEN || f->intro || hdr->type == PMF_PT_OPEN)) {
		if (f->state == PMF_FLOW_DEAD)
			return PMF_RX_DEAD;
		if (!pmf_flow_contact_rx(f, hdr))
			return drop_bad(f);
	}
	/* What was never sent cannot be acknowledged, nor seen. */
	ahead = pmf_ahead32(hdr->ack, f->una);
	if (pmf_unlikely(ahead > (int64_t)(f->psn_next - f->una) ||
			 pmf_ahead32(hdr->ack_txno, f->txno_next) >= 0))
		return drop_bad(f);

	f->last_rx = now;
	if (pmf_likely(pmf_ahead32(hdr->txno, f->rx_txno) > 0)) {
		f->rx_txno = pmf_extend32(hdr->txno, f->rx_txno);
		f->rx_at = now;
		f->rx_wait = pmf_looks_wait(f->conf->looks);
		if (pmf_unlikely((hdr->flags ^ f->phase) & PMF_HF_PHASE)) {
			f->phase ^= PMF_HF_PHASE;
			pmf_cc_pause(&f->cc, now);
		}
	}
	if (pmf_ahead32(hdr->credit, f->tx_limit) > 0)
		pmf_flow_credit_raise(f, pmf_extend32(hdr->credit, f->tx_limit));
	if (pmf_unlikely(hdr->flags & PMF_HF_ECHO))
		pmf_flow_on_echo(f, hdr, now);
	else if (pmf_unlikely(f->state == PMF_FLOW_RESYNC))
		return rx_resync(f, hdr, ahead, ecn, now, psn);
	else if (later && may_wait(f, hdr, ahead))
		*later = (uint32_t)ahead;
	else if (ahead >= 0 && f->active)
		pmf_flow_on_ack(f, hdr, (uint32_t)ahead, now);
	return rx_body(f, hdr, ecn, now, psn);
}

enum pmf_verdict pmf_flow_rx(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
			     pmf_ns_t now, pmf_psn_t *psn)
{
	return rx(f, hdr, ecn, now, psn, NULL);
}

enum pmf_verdict pmf_flow_rx_first(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
				   pmf_ns_t now, pmf_psn_t *psn, uint32_t *later)
{
	*later = 0;
	return rx(f, hdr, ecn, now, psn, later);
}

void pmf_flow_rx_later(struct pmf_flow *f, const struct pmf_hdr *hdr, uint32_t later, pmf_ns_t at)
{
	/* else it is told again, once the two have found together */
	if (pmf_likely(f->state == PMF_FLOW_OPEN))
		pmf_flow_on_ack(f, hdr, later, at);
}

void pmf_flow_rx_done(struct pmf_flow *f, pmf_ns_t now)
{
	if (pmf_unlikely(f->ahead != 0)) {
		uint32_t slot = (uint32_t)f->rcv_next & f->active->mask;

		if (pmf_map_test(f->active->rx_map, slot)) {
			pmf_map_clear(f->active->rx_map, slot);
			f->ahead--;
		}
		pmf_flow_ack_soon(f); /* a gap is being filled (RFC 5681 §4.2) */
	}
	f->rcv_next++;
	f->stats->rx_packets++;
	f->rx_unacked++;
	if (f->rx_unacked >= f->conf->ack_every)
		pmf_flow_ack_soon(f);
	else if (f->ack_at > now + f->conf->ack_delay)
		f->ack_at = now + f->conf->ack_delay;
}

void pmf_flow_rx_refuse(struct pmf_flow *f, pmf_psn_t psn)
{
	uint32_t slot;

	pmf_flow_ack_soon(f); /* that we live at least, and do not have it */
	if (f->ahead == 0)
		return;
	slot = (uint32_t)psn & f->active->mask;
	if (pmf_map_test(f->active->rx_map, slot)) {
		pmf_map_clear(f->active->rx_map, slot);
		f->ahead--;
	}
}
