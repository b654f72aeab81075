/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What multicast frames the device lets in: a list of addresses where the driver keeps one, else
 * all; frames for others are dropped when they are checked. Helper thread.
 */
#include "pmd_glue/mcast_internal.h"

/* Those of the groups, and those by which everybody is asked. */
enum { MACS_MAX = PMF_MCAST_MAX + 2 };

static void mac_add(struct rte_ether_addr *macs, uint32_t *n, const uint8_t mac[6])
{
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (memcmp(macs[i].addr_bytes, mac, 6) == 0)
			return; /* several groups share one */
	memcpy(macs[(*n)++].addr_bytes, mac, 6);
}

static uint32_t macs_list(const struct pmf_port *port, struct rte_ether_addr *macs)
{
	static const uint8_t all_hosts[6] = {0x01, 0x00, 0x5e, 0, 0, 1};
	static const uint8_t all_nodes[6] = {0x33, 0x33, 0, 0, 0, 1};
	const struct pmf_mcast *mc = port->mcast;
	uint32_t n = 0;
	uint8_t mac[6];
	uint16_t i;

	if (port->conf.v4.set)
		mac_add(macs, &n, all_hosts);
	if (port->conf.v6.set)
		mac_add(macs, &n, all_nodes);
	for (i = 0; i < mc->top; i++) {
		if (!mc->g[i].used || !mc->g[i].refs)
			continue;
		pmf_mcast_mac(mc->g[i].ip, mac);
		mac_add(macs, &n, mac);
	}
	return n;
}

/* Not every driver has a list, or room in it. One that cannot filter at all lets in everything. */
static void filter_set(struct pmf_port *port, struct rte_ether_addr *macs, uint32_t n,
		       uint32_t wanted)
{
	struct pmf_mcast *mc = port->mcast;
	const bool listed = rte_eth_dev_set_mc_addr_list(port->port_id, macs, n) == 0;

	if (listed) {
		if (rte_eth_allmulticast_get(port->port_id) == 1)
			rte_eth_allmulticast_disable(port->port_id);
	} else if (rte_eth_allmulticast_enable(port->port_id) != 0) {
		rte_eth_promiscuous_enable(port->port_id);
	}
	atomic_store_explicit(&mc->filtered, listed, memory_order_relaxed);
	/* Pairs with the acquire in pmf_mcast_ready(). */
	atomic_store_explicit(&mc->applied, wanted, memory_order_release);
}

void pmf_mcast_filter_start(struct pmf_port *port)
{
	struct rte_ether_addr macs[MACS_MAX];
	const uint32_t n = macs_list(port, macs);

	filter_set(port, macs, n, atomic_load_explicit(&port->mcast->wanted, memory_order_acquire));
}

void pmf_mcast_filter_service(struct pmf_port *port, void (*quiesce)(void *),
			      void (*resume)(void *), void *arg)
{
	struct pmf_mcast *mc = port->mcast;
	uint32_t wanted = atomic_load_explicit(&mc->wanted, memory_order_acquire), n;
	struct rte_ether_addr macs[MACS_MAX];

	if (pmf_likely(wanted == atomic_load_explicit(&mc->applied, memory_order_relaxed)) ||
	    !port->started)
		return;
	if (quiesce)
		quiesce(arg);
	wanted = atomic_load_explicit(&mc->wanted, memory_order_relaxed);
	n = macs_list(port, macs);
	if (resume)
		resume(arg);
	filter_set(port, macs, n, wanted);
}

bool pmf_mcast_ready(const struct pmf_port *port)
{
	const struct pmf_mcast *mc = port->mcast;

	/* What lets in everything is ready at any time; else pairs with the release above. */
	return !atomic_load_explicit(&mc->filtered, memory_order_relaxed) ||
	       atomic_load_explicit(&mc->applied, memory_order_acquire) ==
		       atomic_load_explicit(&mc->wanted, memory_order_relaxed);
}
