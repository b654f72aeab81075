/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Put before the sources that use DPDK's inline functions, when they are built once more for the
 * walk: what can fail asks first whether it is its turn. (Functions that are linked are caught
 * there, see fail.c.) Nothing of this is in the provider that is installed.
 */
#ifndef PMF_FAIL_H
#define PMF_FAIL_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_peek_zc.h>

#include "walk.h"

/* The ring as a driver that copies what it sends: then senders' bytes may be attached. */
static inline uint16_t walk_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if (m[i]->nb_segs > 1 && rte_pktmbuf_linearize(m[i]) != 0)
			abort();
	return rte_eth_tx_burst(port, queue, m, n);
}

#define pmf_quirks_find walk_quirks_find
#define rte_pktmbuf_alloc(p) (fail_now(FAIL_BUFFER) ? NULL : rte_pktmbuf_alloc(p))
#define rte_pktmbuf_alloc_bulk(...) \
	(fail_now(FAIL_BUFFER) ? -ENOENT : rte_pktmbuf_alloc_bulk(__VA_ARGS__))
#define rte_eth_tx_burst(...) (fail_now(FAIL_DEVICE) ? 0 : walk_tx_burst(__VA_ARGS__))
#define rte_ring_enqueue(...) (fail_now(FAIL_RING) ? -ENOBUFS : rte_ring_enqueue(__VA_ARGS__))
#define rte_ring_enqueue_zc_burst_elem_start(...) \
	(fail_now(FAIL_RING) ? 0 : rte_ring_enqueue_zc_burst_elem_start(__VA_ARGS__))

#endif
