/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Where drivers depart from the common way: one table, so that no other file names a driver. What
 * stands here was measured with DPDK 22.11 and 24.11.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "pmd_glue/internal.h"

enum {
	MEMIF_BSIZE = 2048,
	AF_PACKET_FRAMESZ = 2048,
	/* TPACKET2_HDRLEN and the link-level address, as the driver subtracts them. */
	AF_PACKET_OVERHEAD = 66,
	XDP_HEADROOM = 256, /* XDP_PACKET_HEADROOM; frames that do not fit behind it vanish */
	L2_MAX = ETH_LEN + VLAN_LEN,
	ATTACH_MIN = 6144, /* measured: docs/performance.md */
};

/* The default role of a memif is client. */
static bool memif_is_server(const struct pmf_port_conf *conf)
{
	char role[16];

	return pmf_devarg_str(conf->dev, "role", role, sizeof(role)) &&
	       (strcmp(role, "server") == 0 || strcmp(role, "master") == 0);
}

static bool memif_is_client(const struct pmf_port_conf *conf)
{
	return !memif_is_server(conf);
}

/* clang-format off */
static const struct pmf_quirks table[] = {
	/* Two processes with a net_vhost0 have the same MAC address, and net_ring has none. */
	{.driver = "net_vhost", .own_mac = true, .attach_min = ATTACH_MIN},
	{.driver = "net_ring", .own_mac = true, .hairpin = true, .no_rx_intr = true},
	/*
	 * Its header of 12 bytes lies before each frame, and the peer's core takes the cache lines of
	 * both: so they begin a line, and a small message has two of them, not three.
	 */
	{.driver = "net_virtio_user", .pad = 16, .on_intr_thread = true},
	/*
	 * A client whose server is not there, not started yet, or gone stays unconnected. A server's
	 * listening socket stays registered with EAL's interrupt thread after the device is removed.
	 */
	{.driver = "net_memif", .raw_mtu = true, .single_seg = true, .no_rx_intr = true,
	 .start_retry = true, .on_intr_thread = true, .reconnects = memif_is_client,
	 .stays = memif_is_server},
	/* Refuses mbufs that do not take a whole slot of its ring, whatever the MTU. */
	{.driver = "net_af_packet", .raw_mtu = true, .kernel_mtu = true, .no_rx_intr = true,
	 .whole_ring_room = true, .attach_min = ATTACH_MIN},
	{.driver = "net_af_xdp", .kernel_mtu = true, .no_rx_intr = true,
	 .extra_room = XDP_HEADROOM},
	/* Its MAC address is the kernel's end of the wire; ours is the other end. */
	{.driver = "net_tap", .own_mac = true, .no_rx_intr = true},
	{.driver = "net_pcap", .no_rx_intr = true},
	{.driver = "net_null", .no_rx_intr = true},
};
/* clang-format on */

const struct pmf_quirks *pmf_quirks_find(const char *driver)
{
	static const struct pmf_quirks none;
	unsigned int i;

	for (i = 0; i < PMF_ARRAY_SIZE(table); i++)
		if (strcmp(table[i].driver, driver) == 0)
			return &table[i];
	return &none;
}

bool pmf_devarg_str(const char *dev, const char *key, char *buf, size_t len)
{
	const size_t klen = strlen(key);
	const char *p = dev;

	while ((p = strchr(p, ','))) {
		p++;
		if (strncmp(p, key, klen) == 0 && p[klen] == '=') {
			const char *v = p + klen + 1;
			const size_t n = strcspn(v, ",");

			if (n >= len)
				return false;
			memcpy(buf, v, n);
			buf[n] = '\0';
			return true;
		}
	}
	return false;
}

unsigned long pmf_devarg_num(const char *dev, const char *key, unsigned long def)
{
	char v[32];

	return pmf_devarg_str(dev, key, v, sizeof(v)) ? strtoul(v, NULL, 0) : def;
}

static unsigned long ring_slot(const struct pmf_port_conf *conf)
{
	return pmf_devarg_num(conf->dev, "framesz", AF_PACKET_FRAMESZ);
}

/*
 * An object of the pool must not exceed a page, all that stands before the frame included, what the
 * pool adds to spread objects over memory channels, and what port_setup.c allows beyond L2_MAX.
 */
static unsigned long xdp_max_frame(void)
{
	return (unsigned long)getpagesize() -
	       rte_mempool_calc_obj_size(sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM, 0, NULL) -
	       XDP_HEADROOM - RTE_CACHE_LINE_SIZE - (PMF_FRAME_SLACK - L2_MAX);
}

uint16_t pmf_quirks_max_mtu(const struct pmf_quirks *quirks, const struct pmf_port_conf *conf)
{
	unsigned long frame = 0;

	if (!quirks->driver)
		return UINT16_MAX;
	if (strcmp(quirks->driver, "net_memif") == 0)
		frame = pmf_devarg_num(conf->dev, "bsize", MEMIF_BSIZE);
	else if (quirks->whole_ring_room)
		frame = ring_slot(conf) > AF_PACKET_OVERHEAD ? ring_slot(conf) - AF_PACKET_OVERHEAD
							     : 0;
	else if (strcmp(quirks->driver, "net_af_xdp") == 0)
		frame = xdp_max_frame();
	else
		return UINT16_MAX;
	return (uint16_t)(frame > L2_MAX ? PMF_MIN(frame - L2_MAX, (unsigned long)UINT16_MAX) : 0);
}

uint32_t pmf_quirks_room(const struct pmf_quirks *quirks, const struct pmf_port_conf *conf)
{
	return quirks->whole_ring_room ? (uint32_t)PMF_MIN(ring_slot(conf), 32768ul) : 0;
}

/* A file nobody listens on is left over from a process that died. */
static int socket_reclaim(const char *path, int type, char *err, size_t errlen)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct stat st;
	int fd, ret;

	if (strlen(path) >= sizeof(sun.sun_path) || lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return 0;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = connect(fd, (struct sockaddr *)&sun, sizeof(sun));
	close(fd);
	if (ret == 0) {
		snprintf(err, errlen, "another process listens on %s; give each its own socket",
			 path);
		return -EADDRINUSE;
	}
	unlink(path);
	return 0;
}

/*
 * The driver connects while it is probed and gives up at once. Processes that are started together
 * come in any order, so the other side gets a moment.
 */
static int socket_await(const char *path, char *err, size_t errlen)
{
	const struct timespec pause = {.tv_nsec = 20 * 1000000};
	const unsigned int tries = 500;
	unsigned int i;

	for (i = 0; access(path, F_OK) != 0; i++) {
		if (i == tries) {
			snprintf(err, errlen,
				 "nobody has made %s within 10 seconds; start the process at the "
				 "other "
				 "end (the vhost side) first",
				 path);
			return -ENOTCONN;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

int pmf_quirks_before_probe(const struct pmf_port_conf *conf, char *err, size_t errlen)
{
	char path[sizeof(conf->dev)];

	if (strncmp(conf->name, "net_vhost", 9) == 0 || strncmp(conf->name, "eth_vhost", 9) == 0) {
		if (pmf_devarg_num(conf->dev, "client", 0) == 0 &&
		    pmf_devarg_str(conf->dev, "iface", path, sizeof(path)))
			return socket_reclaim(path, SOCK_STREAM, err, errlen);
	} else if (strncmp(conf->name, "net_virtio_user", 15) == 0) {
		/* Character devices are vhost-net, vDPA and the like. */
		if (pmf_devarg_num(conf->dev, "server", 0) == 0 &&
		    pmf_devarg_str(conf->dev, "path", path, sizeof(path)))
			return socket_await(path, err, errlen);
	} else if (strncmp(conf->name, "net_memif", 9) == 0 && memif_is_server(conf)) {
		char abstract[8] = "yes";

		pmf_devarg_str(conf->dev, "socket-abstract", abstract, sizeof(abstract));
		if (strcmp(abstract, "no") == 0 &&
		    pmf_devarg_str(conf->dev, "socket", path, sizeof(path)))
			return socket_reclaim(path, SOCK_SEQPACKET, err, errlen);
	}
	return 0;
}
