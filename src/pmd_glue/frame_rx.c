/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * From the device to a checked UDP payload. Every offset is checked here against the bytes that are
 * there, and nothing behind it looks at the headers again. Owner of the engine.
 */
#include "pmd_glue/frame.h"

#include "pmd_glue/cksum.h"
#include "pmd_glue/mcast_internal.h"
#include "pmd_glue/steer.h"

void pmf_frame_src(const struct pmf_frame *f, struct pmf_addr *out)
{
	if (f->v6) {
		memcpy(out->ip, f->src_ip, 16);
		out->port = f->src_port;
	} else {
		pmf_addr_set_v4(out, f->src_ip, f->src_port);
	}
}

#define FAULT_COUNT(name, unit, help) q->stats.name = done->name;

static uint16_t faults_apply(struct pmf_queue *q, struct rte_mbuf **m, uint16_t n, uint16_t max,
			     pmf_ns_t now)
{
	const struct pmf_fault_stats *done = pmf_faults_stats(q->faults);

	n = pmf_faults_apply(q->faults, m, n, max, now);
	PMF_FAULT_STATS(FAULT_COUNT)
	return n;
}

uint16_t pmf_queue_rx(struct pmf_queue *q, struct rte_mbuf **m, uint16_t n, pmf_ns_t now)
{
	uint16_t got = 0, i;
	uint64_t bytes = 0;

	if (pmf_likely(q->port->started))
		got = rte_eth_rx_burst(q->port_id, q->queue_id, m, n);
	for (i = 0; i < got; i++)
		bytes += m[i]->pkt_len;
	q->stats.rx_frames += got;
	q->stats.rx_bytes += bytes;
	if (got < n && !rte_ring_empty(q->loop)) {
		got = (uint16_t)(got + rte_ring_sc_dequeue_burst(q->loop, (void **)(m + got),
								 (unsigned int)(n - got), NULL));
		pmf_tsan_take(q->loop);
	}
	if (pmf_unlikely(q->capture != NULL) && got)
		pmf_capture_frames(q, m, got, false);
	if (pmf_unlikely(q->faults != NULL))
		got = faults_apply(q, m, got, n, now);
	return got;
}

static bool drop(struct rte_mbuf *m, uint64_t *why)
{
	(*why)++;
	rte_pktmbuf_free(m);
	return false;
}

/*
 * GOOD: the device checked it. NONE: the sum in the frame is unfinished, but the bytes come from
 * memory that the device vouches for (virtio, and our own loop ring).
 */
static bool l4_vouched(const struct rte_mbuf *m)
{
	const uint64_t l4 = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;

	return l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD || l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE;
}

/* What is no datagram to an endpoint changes tables of queue 0: it goes there. */
static bool hand_over(struct pmf_queue *q, uint16_t to, struct rte_mbuf *m)
{
	if (!pmf_loop_put(&q->port->queue[to], m))
		return drop(m, &q->stats.loop_full);
	q->stats.rx_steered++;
	return false;
}

/*
 * Whose datagram is it? Nobody's is answered by who found it. Memory vouches for it behind this
 * look, which has checked its sum.
 */
static bool steer(struct pmf_queue *q, struct rte_mbuf *m, const struct pmf_frame *f)
{
	const int owner = f->multicast ? q->queue_id : pmf_steer_of(q->port, f->dst_port);

	if (pmf_likely(owner < 0 || owner == q->queue_id))
		return true;
	m->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return hand_over(q, (uint16_t)owner, m);
}

/* The UDP header at @p udp, with @p avail bytes up to the end of the IP packet. */
static bool parse_udp(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f,
		      const uint8_t *udp, uint16_t avail)
{
	const uint16_t len = pmf_get_be16(udp + 4);
	const uint8_t addr_len = f->v6 ? 32 : 8;

	if (len < UDP_LEN || len > avail)
		return drop(m, &q->stats.rx_bad_len);
	if (pmf_get16(udp + 6) == 0) {
		if (f->v6) /* RFC 8200 §8.1 */
			return drop(m, &q->stats.rx_no_cksum);
	} else if (!l4_vouched(m)) {
		uint64_t sum = pmf_cksum_add(f->src_ip, addr_len, 0);

		sum += rte_cpu_to_be_16(IPPROTO_UDP_NR);
		sum += rte_cpu_to_be_16(len);
		if (!pmf_cksum_ok(pmf_cksum_add(udp, len, sum)))
			return drop(m, &q->stats.rx_bad_cksum);
	}
	f->src_port = pmf_get_be16(udp);
	f->dst_port = pmf_get_be16(udp + 2);
	f->len = (uint16_t)(len - UDP_LEN);
	/* The caller owns the mbuf and may write to it. */
	f->payload = rte_pktmbuf_mtod(m, uint8_t *) +
		     (udp + UDP_LEN - rte_pktmbuf_mtod(m, const uint8_t *));
	return pmf_likely(!q->port->steer) || steer(q, m, f);
}

/* Is it to a group that is joined? Then @p f says which. */
static bool to_my_group(const struct pmf_queue *q, struct pmf_frame *f, const uint8_t ip[16])
{
	const int group = pmf_mcast_find(q->port->mcast, ip);

	f->multicast = group >= 0;
	f->group = (uint16_t)group;
	return f->multicast;
}

/*
 * Not to our address: is it to a group of ours? Queries also come to groups in which all hosts are.
 * The table of groups is queue 0's, as that of neighbours is.
 * @return false: dropped or handed over
 */
static bool parse_group4(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f,
			 const uint8_t *ip)
{
	struct pmf_addr dst;

	if (ip[16] >> 4 != 14)
		return drop(m, &q->stats.rx_not_mine);
	if (pmf_unlikely(q->queue_id != 0))
		return hand_over(q, 0, m);
	pmf_addr_set_v4(&dst, ip + 16, 0);
	if (to_my_group(q, f, dst.ip) || (ip[9] == IPPROTO_V4_IGMP && q->port->conf.v4.set))
		return true;
	return drop(m, &q->stats.rx_no_group);
}

/* Not UDP; lengths and the header's sum are right. */
static bool parse_other4(struct pmf_queue *q, struct rte_mbuf *m, const struct pmf_frame *f,
			 uint16_t l3, pmf_ns_t now)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	const uint16_t hlen = (uint16_t)((ip[0] & 15) * 4);
	const uint16_t l4 = (uint16_t)(l3 + hlen), len = (uint16_t)(pmf_get_be16(ip + 2) - hlen);

	if (ip[9] == IPPROTO_V4_IGMP)
		pmf_igmp_rx(q, m, l3, l4, len, now);
	else if (ip[9] == IPPROTO_V4_ICMP && !f->multicast)
		pmf_icmp4_rx(q, m, l3, l4, len);
	else
		return drop(m, &q->stats.rx_not_udp);
	return false;
}

static bool parse_ip4(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f, uint16_t l3,
		      bool to_my_mac, pmf_ns_t now)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	const uint16_t avail = (uint16_t)(m->data_len - l3);
	uint16_t hlen, total;

	if (avail < IP4_LEN)
		return drop(m, &q->stats.rx_short);
	hlen = (uint16_t)((ip[0] & 15) * 4);
	total = pmf_get_be16(ip + 2);
	if (ip[0] >> 4 != 4 || hlen < IP4_LEN || total < hlen || total > avail)
		return drop(m, &q->stats.rx_bad_len);
	if (pmf_unlikely(!to_my_mac || !pmf_owns_ip4(q->port, ip + 16)) &&
	    !parse_group4(q, m, f, ip))
		return false;
	if (!pmf_cksum_ok(pmf_cksum_add(ip, hlen, 0)))
		return drop(m, &q->stats.rx_bad_cksum);
	/* More fragments, or an offset: of a peer that ignores our don't-fragment. */
	if (pmf_get_be16(ip + 6) & 0x3fff)
		return drop(m, &q->stats.rx_fragment);
	if (pmf_unlikely(ip[9] != IPPROTO_UDP_NR))
		return q->queue_id ? hand_over(q, 0, m) : parse_other4(q, m, f, l3, now);
	if (total - hlen < UDP_LEN)
		return drop(m, &q->stats.rx_short);
	f->v6 = false;
	f->ecn = ip[1] & 3;
	f->src_ip = ip + 12;
	f->dst_ip = ip + 16;
	return parse_udp(q, m, f, ip + hlen, (uint16_t)(total - hlen));
}

/* As parse_group4(); queries stand behind hop-by-hop options. */
static bool parse_group6(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f,
			 const uint8_t *ip)
{
	if (ip[24] != 0xff)
		return drop(m, &q->stats.rx_not_mine);
	if (pmf_unlikely(q->queue_id != 0))
		return hand_over(q, 0, m);
	if (to_my_group(q, f, ip + 24) || (ip[6] == IPPROTO_V6_HOP && q->port->conf.v6.set))
		return true;
	return drop(m, &q->stats.rx_no_group);
}

static bool parse_ip6(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f, uint16_t l3,
		      bool to_my_mac, pmf_ns_t now)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	uint16_t avail = (uint16_t)(m->data_len - l3), len;

	if (avail < IP6_LEN)
		return drop(m, &q->stats.rx_short);
	avail = (uint16_t)(avail - IP6_LEN);
	len = pmf_get_be16(ip + 4);
	if (ip[0] >> 4 != 6 || len > avail)
		return drop(m, &q->stats.rx_bad_len);
	if (pmf_unlikely(q->queue_id != 0 && ip[6] != IPPROTO_UDP_NR))
		return hand_over(q, 0, m);
	/* Solicitations come to a group of ours; any group will do, the target decides. */
	if (ip[6] == IPPROTO_V6_ICMP && q->port->conf.v6.set &&
	    (ip[24] == 0xff || (to_my_mac && pmf_owns_ip6(q->port, ip + 24)))) {
		pmf_icmp6_rx(q, m, l3, len, now);
		return false;
	}
	if (pmf_unlikely(!to_my_mac || !pmf_owns_ip6(q->port, ip + 24)) &&
	    !parse_group6(q, m, f, ip))
		return false;
	if (pmf_unlikely(ip[6] == IPPROTO_V6_HOP)) {
		pmf_mld_rx(q, m, l3, len, now);
		return false;
	}
	if (ip[6] != IPPROTO_UDP_NR)
		return drop(m, ip[6] == IPPROTO_V6_FRAGMENT ? &q->stats.rx_fragment
							    : &q->stats.rx_not_udp);
	if (len < UDP_LEN)
		return drop(m, &q->stats.rx_short);
	f->v6 = true;
	f->ecn = ip[1] >> 4 & 3;
	f->src_ip = ip + 8;
	f->dst_ip = ip + 24;
	return parse_udp(q, m, f, ip + IP6_LEN, len);
}

/* @return the tag's VLAN, 0 without one; *l3 behind it, *etype what lies there; -1: too short */
static int parse_tag(const struct rte_mbuf *m, uint16_t *l3, uint16_t *etype)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	int vlan = 0;

	*l3 = ETH_LEN;
	*etype = pmf_get_be16(p + 12);
	if (pmf_unlikely(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED))
		vlan = m->vlan_tci & 0xfff;
	if (pmf_unlikely(*etype == ETYPE_VLAN)) {
		if (m->data_len < ETH_LEN + VLAN_LEN)
			return -1;
		vlan = pmf_get_be16(p + 14) & 0xfff;
		*etype = pmf_get_be16(p + 16);
		*l3 = ETH_LEN + VLAN_LEN;
	}
	return vlan;
}

bool pmf_frame_parse(struct pmf_queue *q, struct rte_mbuf *m, struct pmf_frame *f, pmf_ns_t now)
{
	uint16_t l3, etype;
	const uint8_t *p;
	bool to_my_mac;
	int vlan;

	if (pmf_unlikely(m->nb_segs > 1) && rte_pktmbuf_linearize(m) != 0)
		return drop(m, &q->stats.rx_bad_len);
	if (m->data_len < ETH_LEN)
		return drop(m, &q->stats.rx_short);
	p = rte_pktmbuf_mtod(m, const uint8_t *);
	vlan = parse_tag(m, &l3, &etype);
	if (pmf_unlikely(vlan < 0))
		return drop(m, &q->stats.rx_short);
	f->multicast = false;
	to_my_mac = memcmp(p, q->port->mac, 6) == 0;
	if (vlan != q->port->vlan || (!to_my_mac && !(p[0] & 1)))
		return drop(m, &q->stats.rx_not_mine);
	switch (etype) {
	case ETYPE_IP4:
		return parse_ip4(q, m, f, l3, to_my_mac, now);
	case ETYPE_IP6:
		return parse_ip6(q, m, f, l3, to_my_mac, now);
	case ETYPE_ARP:
		if (pmf_unlikely(q->queue_id != 0))
			return hand_over(q, 0, m);
		pmf_arp_rx(q, m, l3, now);
		return false;
	default:
		return drop(m, &q->stats.rx_not_ip);
	}
}
