/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Neighbour discovery (RFC 4861): solicitations answered and sent, advertisements learnt and sent.
 * No routers, no prefixes, no redirects: the configuration says all that. Owner of queue 0.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/internal.h"
#include "pmd_glue/neigh.h"

/*
 * |  type 135/136 |    code 0     |           checksum            |
 * |R|S|O|                     reserved                            |   (flags in advertisements)
 * |                     target address (16)                       |
 * | option 1 or 2 |    1 (8 B)    |       MAC address (6)         |
 */
struct nd {
	uint8_t type, code, cksum[2], flags[4];
	uint8_t target[16];
	uint8_t opt_type, opt_len, opt_mac[6];
};

static_assert(sizeof(struct nd) == 32, "RFC 4861 §4.3, with one link-layer address option");

enum {
	ND_NS = 135,
	ND_NA = 136,
	ND_FIXED = 24, /* without options */
	OPT_SOURCE_MAC = 1,
	OPT_TARGET_MAC = 2,
	NA_SOLICITED = 0x40,
	NA_OVERRIDE = 0x20,
};

static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};

static void nd_send(struct pmf_queue *q, const uint8_t *dst_mac, const uint8_t *dst_ip,
		    const uint8_t *src_ip, const struct nd *nd)
{
	uint8_t *ip, *icmp;
	struct rte_mbuf *m;
	uint64_t sum;

	m = pmf_ctrl_frame(q, dst_mac, ETYPE_IP6, IP6_LEN + sizeof(*nd), &ip);
	if (!m)
		return;
	ip[0] = 0x60;
	pmf_put_be16(ip + 4, sizeof(*nd));
	ip[6] = IPPROTO_V6_ICMP;
	ip[7] = ND_HOP_LIMIT;
	memcpy(ip + 8, src_ip, 16);
	memcpy(ip + 24, dst_ip, 16);
	icmp = ip + IP6_LEN;
	memcpy(icmp, nd, sizeof(*nd));
	sum = pmf_cksum_add(ip + 8, 32, 0);
	sum += rte_cpu_to_be_16(sizeof(*nd));
	sum += rte_cpu_to_be_16(IPPROTO_V6_ICMP);
	sum = pmf_cksum_add(icmp, sizeof(*nd), sum);
	pmf_put16(icmp + 2, (uint16_t)~pmf_cksum_fold(sum));
	q->stats.arp_tx++;
	pmf_stage_or_drop(q, m);
}

void pmf_nd_solicit(struct pmf_queue *q, const uint8_t *ip6, const uint8_t *mac)
{
	struct nd nd = {.type = ND_NS, .opt_type = OPT_SOURCE_MAC, .opt_len = 1};
	/* The solicited-node multicast address, ff02::1:ffXX:XXXX, and its MAC address. */
	uint8_t ip[16] = {0xff, 0x02, [11] = 1, [12] = 0xff, [13] = ip6[13], ip6[14], ip6[15]};
	const uint8_t group[6] = {0x33, 0x33, 0xff, ip6[13], ip6[14], ip6[15]};

	memcpy(nd.target, ip6, 16);
	memcpy(nd.opt_mac, q->port->mac, 6);
	if (mac)
		memcpy(ip, ip6, 16);
	/*
	 * From the address that peers send to, not the link-local one: the neighbour learns us from
	 * it (RFC 4861 §7.2.2).
	 */
	nd_send(q, mac ? mac : group, ip, q->port->conf.v6.addr.ip, &nd);
}

static void na_send(struct pmf_queue *q, const uint8_t *dst_mac, const uint8_t *dst_ip,
		    const uint8_t *target, bool solicited)
{
	struct nd nd = {.type = ND_NA, .opt_type = OPT_TARGET_MAC, .opt_len = 1};

	nd.flags[0] = NA_OVERRIDE | (solicited ? NA_SOLICITED : 0);
	memcpy(nd.target, target, 16);
	memcpy(nd.opt_mac, q->port->mac, 6);
	nd_send(q, dst_mac, dst_ip, target, &nd);
}

void pmf_nd_announce(struct pmf_queue *q)
{
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};

	if (q->port->conf.v6.set)
		na_send(q, all_nodes_mac, all_nodes, q->port->conf.v6.addr.ip, false);
}

/* The MAC address in option @p type, or NULL. Malformed options end the search. */
static const uint8_t *nd_option(const uint8_t *icmp, uint16_t len, uint8_t type)
{
	uint16_t at = ND_FIXED;

	while (at + 8 <= len && icmp[at + 1] != 0 && at + 8 * icmp[at + 1] <= len) {
		if (icmp[at] == type && icmp[at + 1] == 1)
			return (icmp[at + 2] & 1) ? NULL : icmp + at + 2;
		at = (uint16_t)(at + 8 * icmp[at + 1]);
	}
	return NULL;
}

static void ns_rx(struct pmf_queue *q, const uint8_t *eth_src, const uint8_t *src,
		  const uint8_t *icmp, uint16_t len, pmf_ns_t now)
{
	static const uint8_t unspecified[16];
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	const uint8_t *target = icmp + 8;
	const uint8_t *mac = nd_option(icmp, len, OPT_SOURCE_MAC);

	if (!pmf_owns_ip6(q->port, target) || pmf_owns_ip6(q->port, src))
		return;
	/* Somebody tests whether the address is free (RFC 4862 §5.4): all are told that it is not.
	 */
	if (memcmp(src, unspecified, 16) == 0) {
		na_send(q, all_nodes_mac, all_nodes, target, false);
		return;
	}
	/* A host that knows us already may leave its MAC address out; the frame came from there. */
	if (!mac) {
		na_send(q, eth_src, src, target, true);
		return;
	}
	pmf_neigh_heard(q, src, mac, true, now);
	na_send(q, mac, src, target, true);
}

static void na_rx(struct pmf_queue *q, const uint8_t *icmp, uint16_t len, pmf_ns_t now)
{
	const uint8_t *target = icmp + 8;
	const uint8_t *mac = nd_option(icmp, len, OPT_TARGET_MAC);

	if (!mac || pmf_owns_ip6(q->port, target))
		return;
	if (icmp[4] & NA_SOLICITED)
		pmf_neigh_answered(q, target, mac, now);
	else
		pmf_neigh_heard(q, target, mac, false, now);
}

void pmf_nd_rx(struct pmf_queue *q, const uint8_t *eth_src, const uint8_t *ip6, const uint8_t *icmp,
	       uint16_t len, pmf_ns_t now)
{
	q->stats.arp_rx++;
	if (len < ND_FIXED || icmp[1] != 0 || ip6[7] != ND_HOP_LIMIT || icmp[8] == 0xff)
		return;
	if (icmp[0] == ND_NS)
		ns_rx(q, eth_src, ip6 + 8, icmp, len, now);
	else
		na_rx(q, icmp, len, now);
}
