/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files of pmd_glue share beside neigh.h: control frames, staging, capture, faults and
 * the drivers' peculiarities.
 */
#ifndef PMF_PMD_INTERNAL_H
#define PMF_PMD_INTERNAL_H

#include "pmd_glue/frame.h"
#include "pmf_tsan.h"

enum {
	ETH_LEN = 14,
	VLAN_LEN = 4,
	IP4_LEN = 20,
	IP6_LEN = 40,
	UDP_LEN = 8,
	/* Ethernet's least frame without its FCS; some NICs do not pad. */
	ETH_MIN = 60,
	IPPROTO_V4_ICMP = 1,
	IPPROTO_UDP_NR = 17,
	IPPROTO_V6_ICMP = 58,
	IPPROTO_V6_FRAGMENT = 44,
	HOP_LIMIT = 64,
	/* What drivers count into a frame beyond the MTU: two tags, the FCS, virtio's header. */
	PMF_FRAME_SLACK = ETH_LEN + 2 * VLAN_LEN + 4 + 12,
	ND_HOP_LIMIT = 255, /* RFC 4861 §3.1: proves that no router passed it on */
};

#define ETYPE_IP4 0x0800
#define ETYPE_ARP 0x0806
#define ETYPE_VLAN 0x8100
#define ETYPE_IP6 0x86dd

/* Where a driver departs from the common way; one entry each in port_quirks.c. */
struct pmf_quirks {
	const char *driver;   /* ethdev's driver name */
	bool own_mac;	      /* its MAC address is not ours alone, or none: ours is random */
	bool hairpin;	      /* gives back what it sends */
	bool raw_mtu;	      /* ethdev refuses another MTU, the device itself bears it */
	bool kernel_mtu;      /* the kernel's interface decides the MTU */
	bool single_seg;      /* chains of mbufs are offered and broken */
	bool no_rx_intr;      /* no usable rx interrupts */
	bool start_retry;     /* start fails until the peer is there */
	bool whole_ring_room; /* rx mbufs must take a whole slot of its ring, see pmf_quirks_room()
			       */
	uint16_t extra_room;  /* bytes of each rx mbuf that it keeps for itself */
	/*
	 * The caller's bytes are attached to a frame, not copied, when they are so many; 0: copied.
	 * For drivers that read chains of mbufs wherever they lie, and have given them back when
	 * their burst returns: dts/test_attach.py shows it of each.
	 */
	uint16_t attach_min;
	uint16_t pad; /* bytes before the room in each mbuf: where frames begin in a cache line */
	bool on_intr_thread; /* handles its peer there, unlocked: stopped and removed there, too */
	/* A side that connects, and that only stop and start make connect again. */
	bool (*reconnects)(const struct pmf_port_conf *conf);
	/* Its removal leaves a live descriptor behind: it is only stopped. */
	bool (*stays)(const struct pmf_port_conf *conf);
};

/** The entry of @p driver, or one without peculiarities. */
const struct pmf_quirks *pmf_quirks_find(const char *driver);

/** Largest IP MTU that the device bears, from its devargs; UINT16_MAX: ask ethdev. */
uint16_t pmf_quirks_max_mtu(const struct pmf_quirks *quirks, const struct pmf_port_conf *conf);

/** Least bytes of room that an rx mbuf needs behind its headroom. */
uint32_t pmf_quirks_room(const struct pmf_quirks *quirks, const struct pmf_port_conf *conf);

/**
 * What must be done before the device is made: a socket file that a dead process left is removed,
 * one that the other side has to make is awaited for a few seconds.
 * @return 0; -EADDRINUSE: somebody has it; -ENOTCONN: nobody came; with a sentence
 */
int pmf_quirks_before_probe(const struct pmf_port_conf *conf, char *err, size_t errlen);

/** The number of @p key in the devargs, or @p def. */
unsigned long pmf_devarg_num(const char *dev, const char *key, unsigned long def);

/** Copy the value of @p key in the devargs. @return whether it is there and fits */
bool pmf_devarg_str(const char *dev, const char *key, char *buf, size_t len);

/** Rx interrupts of a queue, part of opening and closing its port. */
void pmf_queue_intr_open(struct pmf_queue *q);
void pmf_queue_intr_close(struct pmf_queue *q);

struct pmf_capture *pmf_capture_open(struct pmf_port *port, char *err, size_t errlen);
void pmf_capture_close(struct pmf_capture *c);

/** Keep copies of @p n frames of queue @p q. Owner of the engine. */
void pmf_capture_frames(struct pmf_queue *q, struct rte_mbuf *const *m, uint16_t n, bool out);

/** Write what was kept. Owner of the engine; any thread when the engine does not run. */
void pmf_capture_flush(struct pmf_queue *q);

/* An mbuf that lends the driver a sender's bytes, private part. */
struct pmf_lent {
	struct rte_mbuf_ext_shared_info shared; /* its callback counts down */
};

/** Put one whole frame on the stage; without room it is freed. Takes the mbuf. */
void pmf_stage_or_drop(struct pmf_queue *q, struct rte_mbuf *m);

/**
 * An empty frame to another host: Ethernet header (and tag) of @p etype written.
 * @param dst   NULL: broadcast
 * @param body  points behind the Ethernet header on return; @p len bytes of zeros, padded to 60
 */
struct rte_mbuf *pmf_ctrl_frame(struct pmf_queue *q, const uint8_t *dst, uint16_t etype,
				uint16_t len, uint8_t **body);

/* Each takes the mbuf. @p l3 is the offset of what lies behind the Ethernet header. */
void pmf_arp_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, pmf_ns_t now);
void pmf_icmp4_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t l4, uint16_t len);
void pmf_icmp6_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t len, pmf_ns_t now);

/** Ask for @p ip (4 or 16 bytes); @p mac NULL: everyone, else that host alone. */
void pmf_arp_solicit(struct pmf_queue *q, const uint8_t *ip4, const uint8_t *mac);
void pmf_nd_solicit(struct pmf_queue *q, const uint8_t *ip6, const uint8_t *mac);

/** Tell everyone our addresses (RFC 5227 §3, RFC 4861 §7.2.6). */
void pmf_arp_announce(struct pmf_queue *q);
void pmf_nd_announce(struct pmf_queue *q);

/** Neighbour solicitation or advertisement, checked by the caller for length and checksum. */
void pmf_nd_rx(struct pmf_queue *q, const uint8_t *eth_src, const uint8_t *ip6, const uint8_t *icmp,
	       uint16_t len, pmf_ns_t now);

/** Is the IPv6 address one of ours, the link-local one included? */
static inline bool pmf_owns_ip6(const struct pmf_port *port, const uint8_t *ip6)
{
	return port->conf.v6.set &&
	       (memcmp(ip6, port->conf.v6.addr.ip, 16) == 0 || memcmp(ip6, port->ip6_ll, 16) == 0);
}

static inline bool pmf_owns_ip4(const struct pmf_port *port, const uint8_t *ip4)
{
	return port->conf.v4.set && memcmp(ip4, port->conf.v4.addr.ip + 12, 4) == 0;
}

/** A frame for queue @p to, whose engine takes it as one that came in. Any thread. @return false:
 * no room */
static inline bool pmf_loop_put(struct pmf_queue *to, struct rte_mbuf *m)
{
	pmf_tsan_give(to->loop);
	return rte_ring_enqueue(to->loop, m) == 0;
}

static inline uint16_t pmf_l2_len(const struct pmf_port *port)
{
	return port->vlan ? ETH_LEN + VLAN_LEN : ETH_LEN;
}

#endif
