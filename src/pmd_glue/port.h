/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Ports: a DPDK device with its IP addresses, queues and buffer pools. A port is opened and closed
 * by the helper thread (the one that started EAL) and belongs to whoever opened it; each queue
 * belongs to the engine that polls it.
 */
#ifndef PMF_PMD_PORT_H
#define PMF_PMD_PORT_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "pmf_common.h"

#include "pmd_glue/fault.h"

#define PMF_MAX_QUEUES 16
#define PMF_MAX_STATIC_NEIGH 16
#define PMF_BURST 32
#define PMF_TX_STAGE 64

struct pmf_capture;
struct pmf_mcast;
struct pmf_neigh_table;
struct pmf_quirks;
struct pmf_steer;

struct pmf_ifaddr {
	bool set;
	struct pmf_addr addr; /* port 0 */
	uint8_t prefix;	      /* bits of the 4- or 16-byte address */
	bool has_gw;
	struct pmf_addr gw;
};

/* One word group of FI_PMF_PORT; parsed by pmf_port_conf_parse(), which needs no EAL. */
struct pmf_port_conf {
	char dev[512]; /* PCI address, or vdev name with devargs */
	char name[64]; /* dev up to the first comma: what the ethdev is called */
	bool is_pci;
	struct pmf_ifaddr v4, v6;
	uint16_t mtu;	    /* IP MTU; 0: what the device bears, at most 9000 */
	uint16_t vlan;	    /* 0: untagged */
	uint16_t nqueues;   /* at least 1 */
	uint8_t dscp;	    /* 0..63, of every frame */
	uint16_t mcast_ttl; /* of multicast datagrams; 0: the network carries none */
	uint16_t nneigh;
	struct {
		struct pmf_addr ip;
		uint8_t mac[6];
	} neigh[PMF_MAX_STATIC_NEIGH];
	const char *fault;   /* FI_PMF_FAULT's text or NULL; not owned */
	const char *capture; /* file or NULL; not owned */
};

/**
 * Parse one port of FI_PMF_PORT ("DEVICE ADDR/PREFIX … key=value …").
 * @return 0, or -EINVAL with a sentence in @p err that names the word at fault
 */
int pmf_port_conf_parse(const char *text, struct pmf_port_conf *conf, char *err, size_t errlen);

#define PMF_PORT_STATS(X)                                                                          \
	X(rx_frames, "frames", "frames taken from the device")                                     \
	X(rx_bytes, "bytes", "bytes of those frames")                                              \
	X(tx_frames, "frames", "frames given to the device")                                       \
	X(tx_bytes, "bytes", "bytes of those frames")                                              \
	X(loop_frames, "frames", "frames to an address of the same port, handed over in software") \
	X(rx_steered, "frames", "frames handed to the engine of their endpoint")                   \
	X(tx_attached, "frames", "sent with bytes that the driver read where the sender has them") \
	X(tx_stalls, "times", "bursts that the device did not take whole")                         \
	X(tx_nobuf, "times", "no mbuf for a frame to send")                                        \
	X(tx_no_neigh, "frames", "dropped: the next hop's MAC address was not resolved in time")   \
	X(tx_link_down, "frames", "dropped: the link was down")                                    \
	X(loop_full, "frames", "dropped: the receiving queue's software ring was full")            \
	X(rx_short, "frames", "dropped: too short for its headers")                                \
	X(rx_not_mine, "frames", "dropped: for another MAC or IP address or VLAN")                 \
	X(rx_no_group, "frames", "dropped: for a multicast group that is not joined")              \
	X(rx_not_ip, "frames", "dropped: neither IPv4, IPv6 nor ARP")                              \
	X(rx_not_udp, "frames", "dropped: an IP protocol that is not handled")                     \
	X(rx_fragment, "frames", "dropped: an IP fragment")                                        \
	X(rx_bad_len, "frames", "dropped: lengths in the headers disagree")                        \
	X(rx_bad_cksum, "frames", "dropped: IP or UDP checksum wrong")                             \
	X(rx_no_cksum, "frames", "dropped: UDP over IPv6 without a checksum")                      \
	X(arp_rx, "frames", "ARP and neighbour discovery frames received")                         \
	X(arp_tx, "frames", "ARP and neighbour discovery frames sent")                             \
	X(icmp_echo, "frames", "echo requests answered")                                           \
	X(mcast_reports, "frames", "IGMP and MLD reports sent")                                    \
	X(mcast_queries, "frames", "IGMP and MLD queries received")                                \
	X(mcast_bad, "frames", "dropped: IGMP or MLD, broken or from beyond the link")             \
	PMF_FAULT_STATS(X)

struct pmf_port_stats {
	PMF_PORT_STATS(PMF_STAT_FIELD)
};
extern const struct pmf_stat_desc pmf_port_stat_desc[];
extern const unsigned int pmf_port_stat_count;

/* One rx/tx queue pair. All fields: owner of the engine only, but for `loop` (rings). */
struct pmf_queue {
	struct pmf_port *port;
	uint16_t port_id;
	uint16_t queue_id;
	uint16_t nstage;		 /* frames staged, sent by pmf_queue_flush() */
	bool hairpin;			 /* the device itself gives back frames sent to itself */
	struct rte_mempool *tx_pool;	 /* buffers for frames to send */
	struct rte_mempool *attach_pool; /* mbufs without bytes of their own; NULL: none needed */
	struct rte_ring *loop;		 /* frames from this process to this queue (mbufs); MP/SC */
	struct pmf_faults *faults;	 /* NULL when off */
	struct pmf_capture *capture;	 /* NULL when off */
	int intr_fd;			 /* our epoll, -1: none; what pmf_queue_intr_fd() gives */
	int intr_src;			 /* the driver's descriptor in it, -1: none yet */
	uint16_t nstash;
	struct rte_mbuf *stash[PMF_BURST]; /* taken from tx_pool at once, handed out one by one */
	struct rte_mbuf *stage[PMF_TX_STAGE];
	struct pmf_port_stats stats;
} PMF_CACHE_ALIGNED;

struct pmf_port {
	uint16_t port_id;
	uint16_t mtu;	      /* IP MTU in use */
	uint16_t max_payload; /* UDP payload of one frame over IPv6 (the smaller), in bytes */
	uint16_t nqueues;
	uint16_t vlan;
	uint8_t dscp;
	uint8_t mac[6];
	bool tx_cksum_v4, tx_cksum_udp; /* done by the device */
	bool rx_cksum;			/* checked by the device, result in ol_flags */
	bool multi_seg;
	uint16_t attach_min; /* bytes that are attached, not copied; UINT16_MAX: never */
	bool rx_intr;	     /* rx interrupts work on this driver: pmf_queue_intr_fd() */
	bool started;	     /* changed by the helper thread between quiesce() and resume() only */
	int socket_id;
	_Atomic bool link_up;  /* written by the helper thread, read by anyone */
	_Atomic bool announce; /* link came up: the owner of queue 0 tells the neighbours */
	uint8_t announced;     /* how often since; this and the next: owner of queue 0 */
	pmf_ns_t announce_due;
	uint8_t ip6_ll[16]; /* link-local, from the MAC address; source of solicitations */
	struct pmf_port_conf conf;
	const struct pmf_quirks *quirks;
	struct pmf_neigh_table *neigh;
	struct pmf_mcast *mcast;
	struct pmf_steer *steer;     /* NULL: the port has one queue */
	struct pmf_capture *capture; /* NULL when off; the queues share it */
	pmf_ns_t next_restart;	     /* helper thread only */
	struct rte_mempool *rx_pool;
	struct rte_mempool *tx_pool;
	struct rte_mempool *attach_pool;
	struct pmf_queue queue[PMF_MAX_QUEUES];
};

/**
 * Configure and start a device. Helper thread only; EAL runs. A vdev that does not exist yet is
 * hot-plugged, a PCI device probed. A memif or vhost peer that is not there yet is no error: the
 * link is down until pmf_port_service() finds it up.
 * @return 0 with @p out set; negative errno with a sentence that says what to do in @p err
 */
int pmf_port_open(const struct pmf_port_conf *conf, struct pmf_port **out, char *err,
		  size_t errlen);

/** Stop the device and free the port. Helper thread only; no engine may use it any more. */
void pmf_port_close(struct pmf_port *port);

/**
 * What cannot be done in a pass: link state, a peer that left and returned (stop and start again).
 * Helper thread only, about every 10 ms while the port is open.
 * @param quiesce,resume  called around a device stop: after quiesce() no engine of the port runs a
 *        pass until resume(). May be NULL when no engine runs yet.
 */
void pmf_port_service(struct pmf_port *port, void (*quiesce)(void *), void (*resume)(void *),
		      void *arg);

/** Sum of the queues' counters. Any thread; figures may be a moment old. */
void pmf_port_stats_get(const struct pmf_port *port, struct pmf_port_stats *out);

/**
 * Descriptor that becomes readable when frames arrive on queue @p q while its interrupt is armed,
 * for poll or epoll of any kind. Never read from. The same from opening to closing the port. Any
 * thread.
 * @return the descriptor, owned by the queue; -ENOTSUP: this driver has no rx interrupts
 */
int pmf_queue_intr_fd(const struct pmf_queue *q);

/**
 * Let the descriptor signal the next frame, and forget earlier signals; receive once more after it
 * before sleeping. Owner of the engine. Costs system calls.
 * @return 0; -ENOTSUP: no interrupt, or not now, the link being down: sleep by time only
 */
int pmf_queue_intr_arm(struct pmf_queue *q);

/** No more signals, which cost the other side something. Owner of the engine. */
void pmf_queue_intr_disarm(struct pmf_queue *q);

/** @return whether @p ip (16 bytes, port ignored) is an address of @p port. Any thread. */
bool pmf_port_owns(const struct pmf_port *port, const uint8_t ip[16]);

#endif
