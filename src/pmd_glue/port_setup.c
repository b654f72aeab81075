/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Capabilities into configuration: what is offered is used, what is not is done in software, and
 * only queues and bare frames are required.
 */
#include "pmd_glue/port_setup.h"

#include <stdatomic.h>
#include <stdio.h>

#include <rte_errno.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/eal_internal.h"
#include "pmd_glue/internal.h"
#include "pmd_glue/mcast_internal.h"

enum {
	DESCRIPTORS = 1024,
	/* Frames that flows may keep ahead of order, and that queues in software may hold. */
	HELD_PER_QUEUE = 2048,
	POOL_CACHE = 256,
	ATTACH_CACHE = 32,
	/* Threads that may keep a full cache of their own, 1.5 times its size. */
	CACHING_THREADS = 2,
	ROOM_MIN = 2048,
};

/* Time that a peer has to connect in after a start, before another one. */
static const pmf_ns_t restart_pause = 200 * PMF_NS_PER_MS;

struct pool_shape {
	unsigned int n, cache;
	uint16_t room; /* bytes of each mbuf, headroom included */
	uint16_t priv;
};

static struct rte_mempool *pool_make(struct pmf_port *port, const char *what,
				     const struct pool_shape *shape)
{
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = shape->room,
		.mbuf_priv_size = shape->priv,
	};
	/*
	 * Virtual devices address buffers as the process does. Without the flag, objects do not
	 * cross pages: half of the memory lies idle without hugepages, and af_xdp, which counts on
	 * dense objects, registers half of them.
	 */
	const unsigned int flags = port->conf.is_pci ? 0 : RTE_MEMPOOL_F_NO_IOVA_CONTIG;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mp;

	snprintf(name, sizeof(name), "pmf_%s_%u", what, port->port_id);
	mp = rte_mempool_create_empty(name, shape->n,
				      sizeof(struct rte_mbuf) + shape->priv + shape->room,
				      shape->cache, sizeof(priv), port->socket_id, flags);
	if (!mp)
		return NULL;
	/*
	 * Relaxed tails: pollers that EAL does not know have no cache, meet in the pool's ring, and
	 * may be preempted there.
	 */
	if (rte_mempool_set_ops_byname(mp, "ring_mt_rts", NULL) != 0)
		goto free_pool;
	rte_pktmbuf_pool_init(mp, &priv);
	if (rte_mempool_populate_default(mp) < 0)
		goto free_pool;
	rte_mempool_obj_iter(mp, rte_pktmbuf_init, NULL);
	return mp;

free_pool:
	rte_mempool_free(mp);
	return NULL;
}

static struct rte_mempool *frame_pool_make(struct pmf_port *port, const char *what, uint32_t room)
{
	const struct pool_shape shape = {
		.n = port->nqueues * (DESCRIPTORS + HELD_PER_QUEUE) +
		     CACHING_THREADS * POOL_CACHE * 3 / 2,
		.cache = POOL_CACHE,
		.room = (uint16_t)(RTE_PKTMBUF_HEADROOM + room),
		.priv = port->quirks->pad,
	};

	return pool_make(port, what, &shape);
}

/* As many as are staged at once: the driver keeps none. */
static struct rte_mempool *attach_pool_make(struct pmf_port *port)
{
	const struct pool_shape shape = {
		.n = port->nqueues * PMF_TX_STAGE + CACHING_THREADS * ATTACH_CACHE * 3 / 2,
		.cache = ATTACH_CACHE,
		.priv = RTE_ALIGN_CEIL(sizeof(struct pmf_lent), RTE_MBUF_PRIV_ALIGN),
	};

	return pool_make(port, "attach", &shape);
}

static int pools_make(struct pmf_port *port, char *err, size_t errlen)
{
	const uint32_t frame = (uint32_t)port->mtu + PMF_FRAME_SLACK;
	uint32_t room = RTE_ALIGN_CEIL(PMF_MAX(frame, (uint32_t)ROOM_MIN), 64);

	port->tx_pool = frame_pool_make(port, "tx", room);
	/* NICs use buffers in whole KB, and a frame should need one only. */
	if (port->conf.is_pci)
		room = RTE_ALIGN_CEIL(room, 1024);
	room = PMF_MAX(room, pmf_quirks_room(port->quirks, &port->conf));
	room = PMF_MAX(room, frame + port->quirks->extra_room);
	port->rx_pool = frame_pool_make(port, "rx", room);
	port->attach_min = UINT16_MAX;
	if (port->multi_seg && port->quirks->attach_min) {
		port->attach_pool = attach_pool_make(port);
		if (!port->attach_pool)
			goto no_memory;
		port->attach_min = port->quirks->attach_min;
	}
	if (port->tx_pool && port->rx_pool)
		return 0;
no_memory:
	snprintf(err, errlen,
		 "no memory for the buffers of %s (%s); raise FI_PMF_MEMORY_MB, or lower mtu= or "
		 "queues= in FI_PMF_PORT",
		 port->conf.name, rte_strerror(rte_errno));
	return -ENOMEM;
}

static void choose_offloads(struct pmf_port *port, const struct rte_eth_dev_info *info,
			    struct rte_eth_conf *c)
{
	const uint64_t tx_udp = RTE_ETH_TX_OFFLOAD_UDP_CKSUM, rx_udp = RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	const uint64_t udp = RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;

	port->tx_cksum_udp = info->tx_offload_capa & tx_udp;
	port->rx_cksum = info->rx_offload_capa & rx_udp;
	port->multi_seg = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) &&
			  !port->quirks->single_seg;
	/* The sum of an IPv4 header that is known but for its length costs less than asking. */
	port->tx_cksum_v4 = false;
	c->txmode.offloads = (port->tx_cksum_udp ? tx_udp : 0) |
			     (port->multi_seg ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : 0);
	c->rxmode.offloads = port->rx_cksum ? rx_udp : 0;
	/* Drivers that round the buffer's size down below the frame need it; else it is unused. */
	if (port->conf.is_pci)
		c->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	if (port->nqueues > 1 && (info->flow_type_rss_offloads & udp)) {
		c->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		c->rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & udp;
	}
	c->rxmode.mtu = port->quirks->raw_mtu ? RTE_ETHER_MTU : port->mtu;
}

static int device_configure(struct pmf_port *port, const struct rte_eth_dev_info *info,
			    struct rte_eth_conf *c, char *err, size_t errlen)
{
	int ret;

	if (port->nqueues > info->max_rx_queues || port->nqueues > info->max_tx_queues) {
		snprintf(err, errlen, "FI_PMF_PORT: queues=%u, but %s has %u", port->nqueues,
			 port->conf.name, PMF_MIN(info->max_rx_queues, info->max_tx_queues));
		return -EINVAL;
	}
	choose_offloads(port, info, c);
	port->rx_intr = !port->quirks->no_rx_intr;
	c->intr_conf.rxq = port->rx_intr;
	ret = rte_eth_dev_configure(port->port_id, port->nqueues, port->nqueues, c);
	if (ret != 0 && port->rx_intr) {
		port->rx_intr = false;
		c->intr_conf.rxq = 0;
		ret = rte_eth_dev_configure(port->port_id, port->nqueues, port->nqueues, c);
	}
	if (ret == -EBUSY)
		snprintf(err, errlen, "the device %s is in use by the application",
			 port->conf.name);
	else if (ret)
		snprintf(err, errlen, "the device %s cannot be configured: %s", port->conf.name,
			 strerror(-ret));
	return ret;
}

static int queues_setup(struct pmf_port *port, const struct rte_eth_dev_info *info,
			const struct rte_eth_conf *c, char *err, size_t errlen)
{
	uint16_t nrx = DESCRIPTORS, ntx = DESCRIPTORS, i;
	struct rte_eth_rxconf rxc = info->default_rxconf;
	struct rte_eth_txconf txc = info->default_txconf;
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->port_id, &nrx, &ntx);

	rxc.offloads = c->rxmode.offloads;
	txc.offloads = c->txmode.offloads;
	for (i = 0; ret == 0 && i < port->nqueues; i++) {
		ret = rte_eth_rx_queue_setup(port->port_id, i, nrx, port->socket_id, &rxc,
					     port->rx_pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(port->port_id, i, ntx, port->socket_id, &txc);
	}
	if (ret)
		snprintf(err, errlen, "the queues of %s cannot be set up: %s", port->conf.name,
			 strerror(-ret));
	return ret;
}

static int mtu_set(struct pmf_port *port, char *err, size_t errlen)
{
	int ret = port->quirks->raw_mtu ? 0 : rte_eth_dev_set_mtu(port->port_id, port->mtu);

	/* Many virtual devices have no such notion, and bear what their buffers bear. */
	if (ret == 0 || ret == -ENOTSUP)
		return 0;
	snprintf(err, errlen, "the device %s refuses an MTU of %u (%s); set mtu= in FI_PMF_PORT",
		 port->conf.name, port->mtu, strerror(-ret));
	return ret;
}

int pmf_port_setup(struct pmf_port *port, const struct rte_eth_dev_info *info, char *err,
		   size_t errlen)
{
	struct rte_eth_conf c = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
	int ret = device_configure(port, info, &c, err, errlen);

	if (ret == 0)
		ret = pools_make(port, err, errlen);
	if (ret == 0)
		ret = queues_setup(port, info, &c, err, errlen);
	if (ret == 0)
		ret = mtu_set(port, err, errlen);
	return ret;
}

/* Devices that are linked through a socket have it in one of these words. */
static void link_cloexec(const struct pmf_port *port)
{
	static const char *const keys[] = {"iface", "path", "socket"};
	char path[sizeof(port->conf.dev)];
	unsigned int i;

	for (i = 0; i < PMF_ARRAY_SIZE(keys); i++)
		if (pmf_devarg_str(port->conf.dev, keys[i], path, sizeof(path)) && path[0])
			pmf_fds_cloexec_link(path);
}

void pmf_port_link_update(struct pmf_port *port)
{
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_DOWN};
	bool up;

	up = port->started && rte_eth_link_get_nowait(port->port_id, &link) == 0 &&
	     link.link_status == RTE_ETH_LINK_UP;
	if (up == atomic_load_explicit(&port->link_up, memory_order_relaxed))
		return;
	atomic_store_explicit(&port->link_up, up, memory_order_relaxed);
	if (!up)
		return;
	link_cloexec(port);
	/* Pairs with the exchange in announce(), frame_tx.c. */
	atomic_store_explicit(&port->announce, true, memory_order_release);
}

int pmf_port_start(struct pmf_port *port, char *err, size_t errlen)
{
	int ret = rte_eth_dev_start(port->port_id);

	port->next_restart = pmf_clock_ns() + restart_pause;
	if (ret != 0 && !port->quirks->start_retry) {
		snprintf(err, errlen, "the device %s does not start: %s", port->conf.name,
			 strerror(-ret));
		return ret;
	}
	port->started = ret == 0;
	if (port->started)
		pmf_mcast_filter_start(port);
	pmf_port_link_update(port);
	return 0;
}
