/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Resynchronisation: packets that were cut for a path MTU that is gone cannot be sent again as they
 * are. The sender asks where the receiver stands, behind a base that no packet has reached, and
 * cuts anew from there.
 */
#include "proto/flow_private.h"

#define RETRY_MOST (250 * PMF_NS_PER_MS)

void pmf_flow_resync(struct pmf_flow *f, pmf_ns_t now)
{
	if (!pmf_flow_step(f, PMF_FLOW_RESYNC))
		return;
	f->want &= (uint8_t)~PMF_WANT_TLP;
	f->want |= PMF_WANT_RESYNC;
	f->loss_at = PMF_NS_NEVER;
	f->resync_txno = f->txno_next;
	f->contact_every = PMF_MAX(f->pto, f->conf->min_rto);
	f->contact_at = now;
	pmf_flow_due(f, now);
}

size_t pmf_flow_resync_probe(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	f->want &= (uint8_t)~PMF_WANT_RESYNC;
	if (f->state != PMF_FLOW_RESYNC)
		return 0;
	f->contact_at = now + f->contact_every;
	f->contact_every = PMF_MIN(2 * f->contact_every, RETRY_MOST);
	pmf_flow_arm(f, f->contact_at);
	return pmf_flow_probe(f, PMF_HF_RESYNC, 0, now, buf, cap);
}

/* The peer cuts anew from the base in the header: nothing between what has come in order and it
 * will come. */
enum pmf_verdict pmf_flow_resync_rx(struct pmf_flow *f, const struct pmf_hdr *hdr)
{
	int32_t ahead = pmf_ahead32(hdr->psn, f->rcv_next);
	pmf_psn_t base = pmf_extend32(hdr->psn, f->rcv_next);

	/* The answer was lost: the same again. */
	if (f->rs_valid && base == f->rs_base)
		return PMF_RX_NONE;
	if (ahead < 0 || (uint32_t)ahead > f->conf->window) {
		f->stats->rx_outside++;
		return PMF_RX_DROP;
	}
	f->rs_valid = true;
	f->rs_base = base;
	f->rs_cum = f->rcv_next;
	f->rcv_next = base;
	if (f->active)
		memset(f->active->rx_map, 0,
		       (f->active->mask + 64) / 64 * sizeof(*f->active->rx_map));
	f->ahead = 0;
	return PMF_RX_FLUSH;
}

/* Put the queues back to where the first packet that did not arrive began. */
static void rewind_queues(struct pmf_flow *f)
{
	bool seen[PMF_QUEUES] = {false};

	for (pmf_psn_t psn = f->una; psn != f->psn_next; psn++) {
		const struct pmf_txpkt *p = pmf_pkt(f->active, psn);

		if (seen[p->queue])
			continue;
		seen[p->queue] = true;
		f->txq[p->queue].cur = p->first;
		f->txq[p->queue].off = p->off;
		f->ready |= (uint8_t)(1u << p->queue);
		if (p->queue == PMF_Q_SEND)
			f->blocked = false;
	}
}

void pmf_flow_resync_done(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	int32_t got = pmf_ahead32(hdr->ack, f->una);

	if (got < 0 || (uint64_t)got > f->psn_next - f->una) {
		f->stats->rx_bad++;
		return;
	}
	f->want &= (uint8_t)~PMF_WANT_RESYNC;
	f->holds_told = hdr->holds;
	pmf_flow_release(f, (uint32_t)got);
	rewind_queues(f);
	pmf_flow_forget(f);
	pmf_flow_step(f, PMF_FLOW_OPEN);
	f->rtt.backoff = 0;
	f->tail_probed = false;
	pmf_flow_due(f, now);
}
