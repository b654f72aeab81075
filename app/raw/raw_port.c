/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "raw_port.h"

#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "../error.h"

/* Setting up of a port. Whoever opened it uses it from the same thread only. */

#define RING_SIZE 1024
#define POOL_CACHE 256

static int configure(struct raw_port *p, uint32_t size, uint16_t *descs)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t tx = RING_SIZE, rx = RING_SIZE;
	uint32_t mtu = size - RTE_ETHER_HDR_LEN;
	int rc;

	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc)
		return perf_fail("port %u says nothing of itself: %s", p->id, rte_strerror(-rc));
	/* Links such as memif and af_packet take large frames but know one MTU only. */
	if (mtu > RTE_ETHER_MTU && info.max_mtu >= mtu && info.max_rx_pktlen >= size)
		conf.rxmode.mtu = mtu;
	rc = rte_eth_dev_configure(p->id, 1, 1, &conf);
	if (rc)
		return perf_fail("port %u cannot be configured: %s", p->id, rte_strerror(-rc));
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx, &tx);
	if (rc)
		return perf_fail("port %u has no rings: %s", p->id, rte_strerror(-rc));
	descs[0] = rx;
	descs[1] = tx;
	return 0;
}

static int start(struct raw_port *p, const uint16_t *descs)
{
	int socket = rte_eth_dev_socket_id(p->id), rc;

	rc = rte_eth_rx_queue_setup(p->id, 0, descs[0], (unsigned int)socket, NULL, p->pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(p->id, 0, descs[1], (unsigned int)socket, NULL);
	if (rc)
		return perf_fail("port %u takes no queue: %s", p->id, rte_strerror(-rc));
	rc = rte_eth_dev_start(p->id);
	if (rc)
		return perf_fail("port %u does not start: %s", p->id, rte_strerror(-rc));
	/* A link without addresses has none to filter by. */
	rte_eth_promiscuous_enable(p->id);
	rte_eth_macaddr_get(p->id, &p->own);
	return 0;
}

int raw_port_open(struct raw_port *p, uint16_t id, uint32_t size, uint32_t room, uint32_t buffers)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	uint16_t descs[2];

	memset(p, 0, sizeof(*p));
	p->id = id;
	memset(&p->peer, 0xff, sizeof(p->peer));
	if (!rte_eth_dev_is_valid_port(id))
		return perf_fail("there is no port %u: name a device by --vdev or -a", id);
	/* af_packet wants 2176 bytes whatever the frames are, and as much as its own are set to. */
	room = RTE_MAX(room, size < 2048 ? 2048 : size + 64);
	snprintf(name, sizeof(name), "raw%u", id);
	p->pool = rte_pktmbuf_pool_create(name, buffers, POOL_CACHE, 0,
					  (uint16_t)(RTE_PKTMBUF_HEADROOM + room),
					  (int)rte_socket_id());
	if (!p->pool)
		return perf_fail("no memory for %u frames of %u bytes: %s", buffers, size,
				 rte_strerror(rte_errno));
	if (configure(p, size, descs) || start(p, descs)) {
		raw_port_close(p);
		return -1;
	}
	return 0;
}

void raw_port_stop(struct raw_port *p)
{
	if (!p->pool || p->stopped)
		return;
	rte_eth_dev_stop(p->id);
	rte_eth_dev_close(p->id);
	p->stopped = true;
}

void raw_port_close(struct raw_port *p)
{
	raw_port_stop(p);
	rte_mempool_free(p->pool);
	p->pool = NULL;
}
