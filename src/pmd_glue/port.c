/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Opening and closing a port: find or make the device, ask what it can, set it up accordingly. Runs
 * on the helper thread; everything made here is the port's and goes with it.
 */
#include "pmd_glue/port.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "pmf_fault_text.h"

#include "pmd_glue/eal.h"
#include "pmd_glue/eal_internal.h"
#include "pmd_glue/internal.h"
#include "pmd_glue/mcast_internal.h"
#include "pmd_glue/neigh.h"
#include "pmd_glue/port_setup.h"
#include "pmd_glue/steer.h"

enum {
	MTU_MAX = 9000,
	LOOP_RING = 1024,
	FAULT_ROOM = 1024, /* rx buffers that FI_PMF_FAULT may keep until their time */
};

static int probe(const struct pmf_port_conf *conf, uint16_t *port_id, char *err, size_t errlen)
{
	const char *comma = strchr(conf->dev, ',');
	int ret;

	if (rte_eth_dev_get_port_by_name(conf->name, port_id) == 0)
		return 0;
	ret = pmf_quirks_before_probe(conf, err, errlen);
	if (ret)
		return ret;
	ret = rte_eal_hotplug_add(conf->is_pci ? "pci" : "vdev", conf->name,
				  comma ? comma + 1 : "");
	if (ret == 0 && rte_eth_dev_get_port_by_name(conf->name, port_id) == 0)
		return 0;
	if (conf->is_pci)
		snprintf(err, errlen,
			 "FI_PMF_PORT: no driver takes the PCI device %s; is it bound to vfio-pci "
			 "(dpdk-devbind.py --status)?",
			 conf->name);
	else
		snprintf(err, errlen,
			 "FI_PMF_PORT: the driver of %s refuses it; FI_LOG_LEVEL=warn shows why",
			 conf->dev);
	/* Drivers fail with -1, which is no errno. */
	return ret < -1 ? ret : -ENODEV;
}

static int kernel_mtu(unsigned int if_index)
{
	struct ifreq ifr = {.ifr_mtu = 0};
	int fd, ret;

	if (!if_indextoname(if_index, ifr.ifr_name))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, SIOCGIFMTU, &ifr) == 0 ? ifr.ifr_mtu : -errno;
	close(fd);
	return ret;
}

static int kernel_set_mtu(unsigned int if_index, uint16_t mtu)
{
	struct ifreq ifr = {.ifr_mtu = mtu};
	int fd, ret;

	if (!if_indextoname(if_index, ifr.ifr_name))
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ifr.ifr_mtu = mtu;
	ret = ioctl(fd, SIOCSIFMTU, &ifr) == 0 ? 0 : -errno;
	close(fd);
	return ret;
}

/* What the device bears and what was asked for, into port->mtu. */
static int choose_mtu(struct pmf_port *port, const struct rte_eth_dev_info *info, char *err,
		      size_t errlen)
{
	const struct pmf_port_conf *conf = &port->conf;
	uint32_t max = pmf_quirks_max_mtu(port->quirks, conf);

	if (!port->quirks->raw_mtu)
		max = PMF_MIN(max, info->max_mtu);
	/* Drivers that do not know their limit say 64 KB; then frames' lengths bind. */
	if (!port->quirks->raw_mtu && info->max_mtu == UINT16_MAX &&
	    info->max_rx_pktlen < UINT16_MAX)
		max = PMF_MIN(max, info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
	if (conf->mtu > max) {
		snprintf(err, errlen, "FI_PMF_PORT: mtu=%u, but %s bears at most %u", conf->mtu,
			 conf->name, max);
		return -EINVAL;
	}
	port->mtu = conf->mtu ? conf->mtu : (uint16_t)PMF_MIN(max, (uint32_t)MTU_MAX);
	if (info->if_index) {
		const int kernel = kernel_mtu(info->if_index);

		if (!conf->mtu && kernel > 0)
			port->mtu = (uint16_t)PMF_MIN(kernel, (int)port->mtu);
		else if (port->quirks->kernel_mtu && kernel > 0 && kernel < conf->mtu &&
			 kernel_set_mtu(info->if_index, conf->mtu) != 0) {
			snprintf(err, errlen,
				 "FI_PMF_PORT: mtu=%u, but the interface under %s has %d and "
				 "cannot be "
				 "changed by this user",
				 conf->mtu, conf->name, kernel);
			return -EPERM;
		}
	}
	return 0;
}

static void choose_mac(struct pmf_port *port)
{
	struct rte_ether_addr mac;
	static const uint8_t ll[8] = {0xfe, 0x80};

	if (port->quirks->own_mac || rte_eth_macaddr_get(port->port_id, &mac) != 0 ||
	    rte_is_zero_ether_addr(&mac)) {
		pmf_random(port->mac, sizeof(port->mac));
		port->mac[0] =
			(uint8_t)((port->mac[0] & ~1) | 2); /* unicast, locally administered */
	} else {
		memcpy(port->mac, mac.addr_bytes, 6);
	}
	/* RFC 4291 appendix A */
	memcpy(port->ip6_ll, ll, 8);
	port->ip6_ll[8] = port->mac[0] ^ 2;
	port->ip6_ll[9] = port->mac[1];
	port->ip6_ll[10] = port->mac[2];
	port->ip6_ll[11] = 0xff;
	port->ip6_ll[12] = 0xfe;
	memcpy(port->ip6_ll + 13, port->mac + 3, 3);
}

static int faults_open(struct pmf_queue *q, char *err, size_t errlen)
{
	struct pmf_fault fault;
	char why[128];

	if (pmf_fault_parse(q->port->conf.fault, &fault, why, sizeof(why)) != 0) {
		snprintf(err, errlen, "FI_PMF_FAULT: %s", why);
		return -EINVAL;
	}
	pmf_fault_reseed(&fault, fault.conf.seed + q->queue_id);
	q->faults = pmf_faults_open(&fault, q->port->rx_pool, FAULT_ROOM);
	if (!q->faults) {
		snprintf(err, errlen, "no memory for FI_PMF_FAULT");
		return -ENOMEM;
	}
	return 0;
}

static int queue_open(struct pmf_port *port, uint16_t id, char *err, size_t errlen)
{
	struct pmf_queue *q = &port->queue[id];
	char name[RTE_RING_NAMESIZE];

	q->port = port;
	q->port_id = port->port_id;
	q->queue_id = id;
	q->hairpin = port->quirks->hairpin;
	q->tx_pool = port->tx_pool;
	q->attach_pool = port->attach_pool;
	q->capture = port->capture;
	pmf_queue_intr_open(q);
	snprintf(name, sizeof(name), "pmf_loop_%u_%u", port->port_id, id);
	/* Relaxed tail: a producer that is preempted inside does not hold up the others. */
	q->loop = rte_ring_create(name, LOOP_RING, port->socket_id,
				  RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
	if (!q->loop) {
		snprintf(err, errlen, "no memory for the rings of %s", port->conf.name);
		return -ENOMEM;
	}
	return port->conf.fault ? faults_open(q, err, errlen) : 0;
}

static void queue_close(struct pmf_queue *q)
{
	void *m;

	if (!q->port) /* never opened */
		return;
	pmf_queue_intr_close(q);
	rte_pktmbuf_free_bulk(q->stash, q->nstash);
	rte_pktmbuf_free_bulk(q->stage, q->nstage);
	q->nstash = q->nstage = 0;
	while (q->loop && rte_ring_dequeue(q->loop, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(q->loop);
	pmf_faults_close(q->faults);
}

/* A device that gives back what it was sent keeps it beyond its own end: frames whose pool is then
 * gone. */
static void drain_hairpin(struct pmf_port *port)
{
	struct rte_mbuf *m[PMF_BURST];
	uint16_t i, n;

	if (!port->started || !port->quirks || !port->quirks->hairpin)
		return;
	for (i = 0; i < port->nqueues; i++)
		while ((n = rte_eth_rx_burst(port->port_id, i, m, PMF_BURST)) != 0)
			rte_pktmbuf_free_bulk(m, n);
}

/* Everything in the reverse order; what is not there yet is skipped. */
static void port_free(struct pmf_port *port)
{
	uint16_t i;

	drain_hairpin(port);
	pmf_port_stop(port);
	for (i = 0; i < port->nqueues; i++)
		queue_close(&port->queue[i]);
	if (port->neigh)
		pmf_neigh_close(port->neigh);
	pmf_mcast_close(port->mcast);
	pmf_capture_close(port->capture);
	pmf_port_remove(port);
	rte_mempool_free(port->rx_pool);
	rte_mempool_free(port->tx_pool);
	rte_mempool_free(port->attach_pool);
	free(port->steer);
	rte_free(port);
}

static int port_build(struct pmf_port *port, char *err, size_t errlen)
{
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port->port_id, &info);
	uint16_t i;

	if (ret) {
		snprintf(err, errlen, "the device %s does not answer: %s", port->conf.name,
			 strerror(-ret));
		return ret;
	}
	port->quirks = pmf_quirks_find(info.driver_name);
	ret = choose_mtu(port, &info, err, errlen);
	if (ret)
		return ret;
	ret = pmf_port_setup(port, &info, err, errlen);
	if (ret)
		return ret;
	choose_mac(port);
	/* IPv6's header is the longer one; either family's frames then fit. */
	port->max_payload = (uint16_t)(port->mtu - IP6_LEN - UDP_LEN);
	port->neigh = pmf_neigh_open(port);
	port->mcast = pmf_mcast_open(port);
	if (!port->neigh || !port->mcast) {
		snprintf(err, errlen, "no memory for the neighbours of %s", port->conf.name);
		return -ENOMEM;
	}
	if (port->nqueues > 1) {
		/* Zeroed pages cost nothing until a UDP port is used. */
		port->steer = calloc(1, sizeof(*port->steer));
		if (!port->steer) {
			snprintf(err, errlen, "no memory for the queues of %s", port->conf.name);
			return -ENOMEM;
		}
	}
	if (port->conf.capture) {
		port->capture = pmf_capture_open(port, err, errlen);
		if (!port->capture)
			return -EIO;
		/* So that the file holds whole checksums. */
		port->tx_cksum_udp = false;
	}
	for (i = 0; i < port->nqueues; i++) {
		ret = queue_open(port, i, err, errlen);
		if (ret)
			return ret;
	}
	return pmf_port_start(port, err, errlen);
}

int pmf_port_open(const struct pmf_port_conf *conf, struct pmf_port **out, char *err, size_t errlen)
{
	struct pmf_fdset before;
	struct pmf_port *port;
	uint16_t port_id;
	int ret;

	/* Before the device, which would be left behind without it. */
	port = rte_zmalloc("pmf_port", sizeof(*port), PMF_CACHE_LINE);
	if (!port) {
		snprintf(err, errlen, "no memory for %s (FI_PMF_MEMORY_MB)", conf->name);
		return -ENOMEM;
	}
	pmf_fdset_take(&before);
	ret = probe(conf, &port_id, err, errlen);
	if (ret) {
		rte_free(port);
		goto mark;
	}
	port->conf = *conf;
	port->port_id = port_id;
	port->nqueues = conf->nqueues;
	port->vlan = conf->vlan;
	port->dscp = conf->dscp;
	port->announce_due = PMF_NS_NEVER;
	port->socket_id = rte_eth_dev_socket_id(port_id);
	ret = port_build(port, err, errlen);
	if (ret)
		port_free(port);
	else
		*out = port;
mark:
	pmf_fdset_cloexec_new(&before);
	return ret;
}

void pmf_port_close(struct pmf_port *port)
{
	port_free(port);
}

bool pmf_port_owns(const struct pmf_port *port, const uint8_t ip[16])
{
	return (port->conf.v4.set && memcmp(ip, port->conf.v4.addr.ip, 16) == 0) ||
	       (port->conf.v6.set && memcmp(ip, port->conf.v6.addr.ip, 16) == 0);
}
