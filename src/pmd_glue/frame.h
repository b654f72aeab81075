/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Frames: from the device to a UDP payload and back. Engine owner only, unless said otherwise.
 * Frames that are not ours to deliver (ARP, ND, ICMP echo, bad ones) are answered or counted here.
 */
#ifndef PMF_PMD_FRAME_H
#define PMF_PMD_FRAME_H

#include "pmd_glue/port.h"

#define PMF_L2L3L4_MAX (14 + 4 + 40 + 8)

/* A checked UDP datagram in one mbuf segment. Pointers live as long as the mbuf. */
struct pmf_frame {
	uint8_t *payload;
	uint16_t len; /* bytes of payload, padding cut off */
	uint16_t dst_port;
	uint16_t src_port;
	uint8_t ecn; /* the two bits of RFC 3168: 3 is CE */
	bool v6;
	bool multicast;	       /* to a group that is joined, */
	uint16_t group;	       /* whose index pmf_mcast_join() gave */
	const uint8_t *src_ip; /* 4 or 16 bytes */
	const uint8_t *dst_ip;
};

/** The source as an address with the source's UDP port. */
void pmf_frame_src(const struct pmf_frame *f, struct pmf_addr *out);

/**
 * Take what the device (and the loop ring, and the fault component) has.
 * @return number of mbufs in @p m, at most @p n; owned by the caller
 */
uint16_t pmf_queue_rx(struct pmf_queue *q, struct rte_mbuf **m, uint16_t n, pmf_ns_t now);

/**
 * Check one received frame: lengths, addresses, checksums.
 * @return true: @p f is filled and the mbuf stays the caller's; false: the mbuf was used up (ARP,
 * ND, echo answered; or dropped and counted by cause)
 */
bool pmf_frame_parse(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f, pmf_ns_t now);

/*
 * How to reach one peer endpoint: the headers, built once. The MAC address is refreshed when the
 * neighbour's generation changes.
 */
struct pmf_path {
	uint8_t hdr[PMF_L2L3L4_MAX]; /* flush with the end, so that one copy fits every shape */
	uint8_t hdr_len;
	bool v6;
	bool local;	     /* an address of this port: goes through the loop ring */
	bool uses_neigh;     /* until pmf_path_fini() */
	uint16_t neigh;	     /* index in the port's table */
	uint32_t neigh_gen;  /* generation that hdr's MAC address is from; 0: unresolved */
	uint32_t pseudo_sum; /* of the UDP pseudo header, without the length */
	uint32_t ip_sum;     /* of the IPv4 header, without the length */
	uint16_t attach_min; /* pmf_frame_send_attached() is for so many bytes and more; UINT16_MAX:
				for none */
};

/**
 * Prepare the headers towards @p dst; ends by pmf_path_fini(). No frame is sent; resolution starts
 * with the first one.
 * @param sport  UDP source port: entropy for ECMP and RSS only
 * @return 0; -ENETUNREACH: no address of that family, or off-link without a gateway;
 *         -ENOBUFS: too many neighbours are in use
 */
int pmf_path_init(struct pmf_path *path, struct pmf_port *port, const struct pmf_addr *dst,
		  uint16_t sport);

/** Let go of what pmf_path_init() took, or of nothing if the path is all zeros. Frames that it has
 * sent still go. */
void pmf_path_fini(struct pmf_path *path, struct pmf_queue *q);

/** The source address that its frames have, IPv4 as IPv4-mapped. */
void pmf_path_src(const struct pmf_path *path, uint8_t ip[16]);

/** Change the source port of a path (to leave a dead ECMP path). */
void pmf_path_set_sport(struct pmf_path *path, uint16_t sport);

/** Another differentiated services code point than the port's. */
void pmf_path_set_dscp(struct pmf_path *path, uint8_t dscp);

/** Frames that can still be staged before pmf_queue_flush() must make room. */
static inline uint16_t pmf_queue_room(const struct pmf_queue *q)
{
	return (uint16_t)(PMF_TX_STAGE - q->nstage);
}

/**
 * A buffer for one datagram: headroom for the headers is reserved.
 * @return the mbuf; write up to port->max_payload bytes at rte_pktmbuf_mtod(); NULL: counted
 */
struct rte_mbuf *pmf_frame_alloc(struct pmf_queue *q);

/**
 * Put the headers before @p len payload bytes and stage the frame; needs pmf_queue_room() > 0.
 * Takes the mbuf in every case. An unresolved neighbour: the frame waits in a short queue there,
 * or is dropped and counted.
 * @param ect  set ECN capable transport (ECT(0)) in the IP header
 */
void pmf_frame_send(struct pmf_queue *q, struct pmf_path *path, struct rte_mbuf *m, uint16_t len,
		    bool ect, pmf_ns_t now);

/**
 * The same for a payload that goes on with @p more bytes elsewhere, at least path->attach_min. The
 * driver reads them there; without a buffer for that they are copied.
 * @param attached  one more while somebody may still read @p bytes; they stay as they are so long.
 *        Not after pmf_queue_flush() has sent the frame, nor after pmf_queue_detach().
 */
void pmf_frame_send_attached(struct pmf_queue *q, struct pmf_path *path, struct rte_mbuf *m,
			     uint16_t len, const void *bytes, uint16_t more, uint16_t *attached,
			     bool ect, pmf_ns_t now);

/** Copy what staged frames have attached: it is its owner's again. */
void pmf_queue_detach(struct pmf_queue *q);

/** Frames staged so far, and how many of them the device has been given, in this order. */
static inline uint64_t pmf_queue_handed(const struct pmf_queue *q)
{
	return q->stats.tx_frames + q->stats.tx_link_down;
}

static inline uint64_t pmf_queue_staged(const struct pmf_queue *q)
{
	return pmf_queue_handed(q) + q->nstage;
}

/** Give all staged frames to the device in one burst. What it does not take stays staged. */
void pmf_queue_flush(struct pmf_queue *q);

/**
 * Periodic work of the port's frames: neighbour retries and ageing, delayed frames of the fault
 * component. Owner of the engine of queue 0, about once a millisecond.
 */
void pmf_queue_tick(struct pmf_queue *q, pmf_ns_t now);

#endif
