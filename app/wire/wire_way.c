/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "wire.h"

#include <string.h>

#include <rte_ethdev.h>

#include "../clock.h"
#include "../error.h"

/*
 * One way of the wire. While the far port takes nothing, nothing is taken from the near one, so
 * that frames get lost by faults alone; but not for long: nobody may be there.
 */

#define PATIENCE_NS (100 * PERF_NS_PER_MS)

int wire_way_open(struct wire_way *w, const struct pmf_fault *fault, uint32_t held)
{
	w->fault = *fault;
	w->faults = pmf_faults_open(fault, w->from->pool, held);
	if (!w->faults)
		return perf_fail("no memory for %u frames that wait", held);
	return 0;
}

void wire_way_change(struct wire_way *w, const struct pmf_fault *fault)
{
	w->fault = *fault;
	pmf_faults_change(w->faults, fault);
}

void wire_way_close(struct wire_way *w)
{
	rte_pktmbuf_free_bulk(w->out + w->at, (unsigned int)(w->n - w->at));
	w->at = w->n = 0;
	pmf_faults_close(w->faults);
	w->faults = NULL;
}

static void give(struct wire_way *w, uint64_t now)
{
	uint64_t bytes[WIRE_OUT + 1] = {0};
	uint16_t left = (uint16_t)(w->n - w->at), sent, i;

	/* The driver frees what it has sent. */
	for (i = 0; i < left; i++)
		bytes[i + 1] = bytes[i] + w->out[w->at + i]->pkt_len;
	sent = rte_eth_tx_burst(w->to->id, 0, w->out + w->at, left);
	w->stats.tx_frames += sent;
	w->stats.tx_bytes += bytes[sent];
	w->at = (uint16_t)(w->at + sent);
	if (sent > 0) {
		w->refused_since = 0;
	} else if (w->refused_since == 0) {
		w->refused_since = now;
	} else if (now - w->refused_since > PATIENCE_NS) {
		rte_pktmbuf_free_bulk(w->out + w->at, left);
		w->stats.refused += left;
		w->at = w->n;
	}
}

/* Nothing of what the near port's driver said of a frame holds for the far one. */
static uint16_t prepare(struct wire_way *w, uint16_t n)
{
	uint16_t kept = 0, i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = w->out[i];

		if (m->pkt_len < RTE_ETHER_HDR_LEN) {
			w->stats.runts++;
			rte_pktmbuf_free(m);
			continue;
		}
		m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
		w->out[kept++] = m;
	}
	return kept;
}

bool wire_way_turn(struct wire_way *w, uint64_t now)
{
	uint16_t got, i;

	if (w->at == w->n) {
		got = rte_eth_rx_burst(w->from->id, 0, w->out, WIRE_BURST);
		w->stats.rx_frames += got;
		for (i = 0; i < got; i++)
			w->stats.rx_bytes += w->out[i]->pkt_len;
		w->at = 0;
		w->n = prepare(w, pmf_faults_apply(w->faults, w->out, got, WIRE_OUT, now));
		if (w->n == 0)
			return got > 0;
	}
	give(w, now);
	return w->refused_since == 0;
}

#define FAULT_COUNT(name, unit, help) out->name = done->name;

void wire_stats_get(const struct wire_way *w, struct wire_stats *out)
{
	const struct pmf_fault_stats *done = pmf_faults_stats(w->faults);

	*out = w->stats;
	PMF_FAULT_STATS(FAULT_COUNT)
	out->held = pmf_faults_held(w->faults) + (uint32_t)(w->n - w->at);
}
