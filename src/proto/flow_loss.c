/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What has arrived and what is lost: acknowledgements, round trips, RACK with its reordering window
 * and the tail probe (RFC 8985), and the timeout (RFC 6298). Whoever asks why a packet went out
 * again asks here.
 */
#include "proto/flow_private.h"

#define REO_KEEP \
	16 /* recoveries after which a widened reordering window is narrowed (RFC 8985 §6.2) */
#define DUP_THRESH 3 /* later transmissions, RFC 8985 §6.2 */
#define BIG_TRIES 2  /* a packet above the floor lost this often hints at the path MTU */

/* A packet was overtaken, and had not been lost. */
static void reordered(struct pmf_flow *f)
{
	if (f->reo_mult == 0) {
		f->reo_mult = 1;
		f->reo_keep = REO_KEEP;
	}
}

/* A packet went out again although its first copy had arrived: allow for more reordering. */
static void spurious(struct pmf_flow *f)
{
	f->stats->tx_spurious++;
	pmf_cc_on_spurious(&f->cc);
	reordered(f);
	if (f->reo_mult != UINT8_MAX)
		f->reo_mult++;
	f->reo_keep = REO_KEEP;
}

uint32_t pmf_flow_pkt_acked(struct pmf_flow *f, struct pmf_txpkt *p)
{
	struct pmf_flow_active *a = f->active;

	if (pmf_likely(p->state == PMF_PKT_SENT)) {
		pmf_pktlist_remove(a, &a->sent, p);
		f->inflight--;
	} else if (p->state == PMF_PKT_LOST) {
		pmf_pktlist_remove(a, &a->lost, p);
		f->lost--;
	} else {
		return 0;
	}
	/* Acknowledged before the latest copy can have been seen: an earlier one arrived. */
	if (pmf_unlikely(p->tries > 1 && p->txno > f->acked_txno))
		spurious(f);
	if (p->size > PMF_WIRE_MIN_PAYLOAD)
		f->pl.big_lost = 0;
	return 1;
}

uint32_t pmf_flow_release(struct pmf_flow *f, uint32_t n)
{
	struct pmf_flow_active *a = f->active;
	uint32_t acked = 0;
	bool late = false; /* the packet before has been sent once only */

	for (; n != 0; n--) {
		uint32_t slot = (uint32_t)f->una & a->mask;
		struct pmf_txpkt *p = &a->pkt[slot];
		struct pmf_itemq *q = &f->txq[p->queue].items;

		acked += pmf_flow_pkt_acked(f, p);
		if (pmf_unlikely(p->state == PMF_PKT_SACKED)) {
			pmf_map_clear(a->tx_map, slot);
			if (late)
				reordered(f);
		}
		late = p->state == PMF_PKT_SENT && p->tries == 1;
		p->state = PMF_PKT_FREE;
		f->una++;
		for (unsigned int ends = p->ends; ends != 0; ends--) {
			struct pmf_item *item = STAILQ_FIRST(q);

			STAILQ_REMOVE_HEAD(q, link);
			pmf_flow_item_acked(f, item, p->queue);
		}
	}
	return acked;
}

void pmf_flow_forget(struct pmf_flow *f)
{
	struct pmf_flow_active *a = f->active;

	for (; f->una != f->psn_next; f->una++)
		pmf_pkt(a, f->una)->state = PMF_PKT_FREE;
	memset(a->tx_map, 0, (a->mask + 64) / 64 * sizeof(*a->tx_map));
	pmf_pktlist_init(&a->sent);
	pmf_pktlist_init(&a->lost);
	f->inflight = f->lost = 0;
	f->loss_kind = PMF_LOSS_TAIL;
	f->loss_at = PMF_NS_NEVER;
}

/*
 * The next packet in order was acknowledged selectively, and yet the peer waits for it: it held the
 * packet and had no memory when its turn came. It goes again (RFC 2018 §8 has the same for TCP).
 */
static void reneged(struct pmf_flow *f)
{
	struct pmf_flow_active *a = f->active;
	struct pmf_txpkt *p = pmf_pkt(a, f->una);

	pmf_map_clear(a->tx_map, (uint32_t)f->una & a->mask);
	p->state = PMF_PKT_LOST;
	pmf_pktlist_append(a, &a->lost, p);
	f->lost++;
}

/* How much later than others @p p may come. Nothing, on a path that keeps the order, once several
 * that were sent later have had the time to arrive.
 */
static pmf_ns_t reorder_window(const struct pmf_flow *f, const struct pmf_txpkt *p)
{
	if (f->reo_mult == 0 && f->acked_txno - p->txno >= DUP_THRESH)
		return 0;
	return PMF_MIN(f->rtt.min / 4 * PMF_MAX(f->reo_mult, 1), f->rtt.srtt);
}

static void mark_lost(struct pmf_flow *f, struct pmf_txpkt *p, bool timeout, pmf_ns_t now)
{
	struct pmf_flow_active *a = f->active;
	pmf_psn_t psn = f->una + (((uint32_t)(p - a->pkt) - (uint32_t)f->una) & a->mask);

	if (psn >= f->cc.recovery_end && f->reo_keep != 0 && --f->reo_keep == 0)
		f->reo_mult = 0;
	pmf_pktlist_remove(a, &a->sent, p);
	pmf_pktlist_append(a, &a->lost, p);
	p->state = PMF_PKT_LOST;
	f->inflight--;
	f->lost++;
	pmf_cc_on_loss(&f->cc, psn, f->psn_next, timeout, now);
	if (p->tries >= BIG_TRIES && p->size > PMF_WIRE_MIN_PAYLOAD)
		pmf_flow_mtu_lost(f, now);
}

/* When the timer for what is in flight is due; the reordering timer is set where it is found
 * needed. */
void pmf_flow_loss_arm(struct pmf_flow *f)
{
	pmf_ns_t rto;

	if (f->inflight == 0) {
		f->loss_at = PMF_NS_NEVER;
	} else if (pmf_likely(!f->tail_probed && f->rtt.srtt != 0)) {
		f->loss_kind = PMF_LOSS_TAIL;
		/* Where sends are spaced out, the next one will show what has arrived. */
		f->loss_at = PMF_MAX(f->sent_last + f->pto, f->cc.next_send);
	} else {
		rto = pmf_rtt_rto(&f->rtt, f->conf->min_rto, f->conf->max_rto);
		f->loss_kind = PMF_LOSS_RTO;
		f->loss_at = f->sent_last + PMF_MAX(rto, f->pto);
	}
}

/*
 * RACK: what was sent before something that has arrived, and a round trip and the reordering window
 * ago, is lost. Stops at the first packet that is not old enough, for which the reordering timer
 * waits.
 */
static void detect(struct pmf_flow *f, pmf_ns_t now)
{
	struct pmf_flow_active *a = f->active;
	pmf_ns_t rtt = PMF_MAX(f->rtt.srtt, f->rack_rtt), age;

	f->loss_kind = PMF_LOSS_TAIL;
	while (a->sent.head != PMF_PKT_NONE) {
		struct pmf_txpkt *p = &a->pkt[a->sent.head];

		if (pmf_likely(p->txno >= f->acked_txno))
			break;
		age = rtt + reorder_window(f, p);
		if (p->sent_at + age > now) {
			f->loss_kind = PMF_LOSS_REORDER;
			f->loss_at = p->sent_at + age;
			return;
		}
		mark_lost(f, p, false, now);
		if (f->state == PMF_FLOW_RESYNC)
			return;
	}
	pmf_flow_loss_arm(f);
}

/*
 * How long a packet waited in queues at least: what a host may have added before it looked is taken
 * off. @return PMF_NS_NEVER: not known, for the packet or its acknowledgement met a host that had
 * not looked for long, or because its size tells nothing
 */
static pmf_ns_t in_queues(struct pmf_flow *f, uint64_t times, pmf_ns_t rtt, uint8_t wait,
			  pmf_ns_t now)
{
	const struct pmf_looks *p = f->conf->looks;
	pmf_ns_t host = (pmf_ns_t)wait << PMF_LOOKS_SHIFT;

	if (!pmf_base_take(&f->base, (uint8_t)(times >> PMF_TIMES_SHIFT), rtt, now))
		return PMF_NS_NEVER;
	if (p) {
		host += 2 * p->gap;
		if ((times & PMF_TIMES_MASK) <= p->stalled)
			wait = PMF_LOOKS_LATE;
	}
	if (pmf_unlikely(wait == PMF_LOOKS_LATE)) {
		f->stats->rtt_unsure++;
		return PMF_NS_NEVER;
	}
	host += f->base.min;
	return rtt > host ? rtt - host : 0;
}

/*
 * The echo of a transmission number gives an exact round trip. @return the time in queues, or
 * PMF_NS_NEVER
 */
static pmf_ns_t take_echo(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	uint64_t txno = pmf_extend32(hdr->ack_txno, f->txno_next);
	uint64_t times = pmf_times_get(f->active, txno, f->txno_next);
	pmf_ns_t sent = times & PMF_TIMES_MASK, held = (pmf_ns_t)hdr->ack_delay << 6, rtt;

	f->acked_txno = txno;
	if (sent == 0 || hdr->ack_delay == UINT32_MAX || now < sent + held)
		return PMF_NS_NEVER;
	rtt = PMF_MAX(now - sent - held, 1u);
	f->rack_rtt = rtt;
	pmf_rtt_sample(&f->rtt, rtt, now);
	f->pto = 2 * f->rtt.srtt + f->conf->ack_delay;
	return in_queues(f, times, rtt, hdr->wait, now);
}

void pmf_flow_on_ack(struct pmf_flow *f, const struct pmf_hdr *hdr, uint32_t ahead, pmf_ns_t now)
{
	bool newer = pmf_ahead32(hdr->ack_txno, f->acked_txno) > 0;
	uint32_t acked = 0, ce;
	pmf_ns_t queued = PMF_NS_NEVER;

	if (newer)
		queued = take_echo(f, hdr, now);
	if (ahead != 0) {
		f->holds_told = hdr->holds;
		acked = pmf_flow_release(f, ahead);
		if (pmf_unlikely(pmf_pkt(f->active, f->una)->state == PMF_PKT_SACKED))
			reneged(f);
	}
	if (pmf_unlikely(hdr->nsack != 0)) {
		acked += pmf_flow_sack_take(f, hdr);
		/* What is not told may have arrived all the same. */
		if (hdr->nsack == PMF_WIRE_MAX_SACK)
			reordered(f);
	}
	if (acked == 0 && !newer)
		return;
	if (acked != 0) {
		ce = (uint16_t)(hdr->ce - f->peer_ce);
		if (pmf_unlikely(ce > INT16_MAX))
			ce = 0;
		f->peer_ce += (uint16_t)ce;
		f->tail_probed = false;
		f->rtt.backoff = 0;
		f->stats->tx_marked += ce;
		pmf_cc_on_ack(&f->cc, acked, f->inflight, f->base.min, queued, ce, now);
	}
	detect(f, now);
	if (pmf_unlikely(f->blocked && f->una == f->psn_next))
		pmf_flow_stalled(f, now);
}

static void timeout(struct pmf_flow *f, pmf_ns_t now)
{
	struct pmf_flow_active *a = f->active;

	f->stats->timeouts++;
	f->rtt.backoff++;
	while (a->sent.head != PMF_PKT_NONE && f->state != PMF_FLOW_RESYNC)
		mark_lost(f, &a->pkt[a->sent.head], true, now);
	if (f->state != PMF_FLOW_RESYNC)
		pmf_flow_loss_arm(f);
}

void pmf_flow_loss_timer(struct pmf_flow *f, pmf_ns_t now)
{
	if (!f->active || f->inflight == 0) {
		f->loss_at = PMF_NS_NEVER;
	} else if (f->loss_kind == PMF_LOSS_REORDER) {
		detect(f, now);
	} else if (f->loss_kind == PMF_LOSS_TAIL) {
		f->want |= PMF_WANT_TLP;
		f->tail_probed = true;
		f->sent_last = now;
		pmf_flow_loss_arm(f);
	} else {
		timeout(f, now);
	}
}
