/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The headers towards one peer endpoint, with the sums over what does not change. A path belongs to
 * the engine that sends on it.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/mcast_internal.h"
#include "pmd_glue/neigh.h"

static bool same_net(const struct pmf_ifaddr *ifa, const uint8_t *ip)
{
	const unsigned int skip = pmf_addr_is_v4(&ifa->addr) ? 12 : 0;
	const uint8_t *a = ifa->addr.ip + skip, *b = ip + skip;
	const unsigned int whole = ifa->prefix / 8, rest = ifa->prefix % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

static bool link_local6(const uint8_t *ip)
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

static bool sendable(const struct pmf_addr *dst)
{
	static const uint8_t zero[16];

	if (pmf_addr_is_v4(dst))
		return dst->ip[12] != 0 && dst->ip[12] < 224;
	return dst->ip[0] != 0xff && memcmp(dst->ip, zero, 16) != 0;
}

/* Ethernet header, and the tag where there is one, at @p p. @return where the IP header begins */
static uint8_t *put_l2(uint8_t *p, const struct pmf_port *port, uint16_t etype)
{
	memset(p, 0, 6);
	memcpy(p + 6, port->mac, 6);
	p += 12;
	if (port->vlan) {
		pmf_put_be16(p, ETYPE_VLAN);
		pmf_put_be16(p + 2, port->vlan);
		p += VLAN_LEN;
	}
	pmf_put_be16(p, etype);
	return p + 2;
}

static void put_ip4(struct pmf_path *path, const struct pmf_port *port, uint8_t *ip,
		    const struct pmf_addr *dst, uint8_t hops)
{
	memset(ip, 0, IP4_LEN);
	ip[0] = 0x45;
	ip[1] = (uint8_t)(port->dscp << 2);
	/* Don't fragment, so that the id may stay 0 (RFC 6864 §4.1). */
	pmf_put_be16(ip + 6, 0x4000);
	ip[8] = hops;
	ip[9] = IPPROTO_UDP_NR;
	memcpy(ip + 12, port->conf.v4.addr.ip + 12, 4);
	memcpy(ip + 16, dst->ip + 12, 4);
	path->ip_sum = pmf_cksum_fold(pmf_cksum_add(ip, IP4_LEN, 0));
	path->pseudo_sum = pmf_cksum_fold(pmf_cksum_add(ip + 12, 8, 0));
}

static void put_class6(uint8_t *ip, uint8_t dscp)
{
	ip[0] = (uint8_t)(0x60 | dscp >> 2);
	ip[1] = (uint8_t)(dscp << 6);
}

static void put_ip6(struct pmf_path *path, const struct pmf_port *port, uint8_t *ip,
		    const struct pmf_addr *dst, uint8_t hops)
{
	memset(ip, 0, IP6_LEN);
	put_class6(ip, port->dscp);
	ip[6] = IPPROTO_UDP_NR;
	ip[7] = hops;
	memcpy(ip + 8, port->conf.v6.addr.ip, 16);
	memcpy(ip + 24, dst->ip, 16);
	path->pseudo_sum = pmf_cksum_fold(pmf_cksum_add(ip + 8, 32, 0));
}

/* All but the destination's MAC address. @return where that goes */
static uint8_t *put_headers(struct pmf_path *path, const struct pmf_port *port,
			    const struct pmf_addr *dst, uint16_t sport, uint8_t hops)
{
	const uint16_t l3_len = path->v6 ? IP6_LEN : IP4_LEN;
	uint8_t *eth, *ip;

	path->hdr_len = (uint8_t)(pmf_l2_len(port) + l3_len + UDP_LEN);
	eth = path->hdr + PMF_L2L3L4_MAX - path->hdr_len;
	ip = put_l2(eth, port, path->v6 ? ETYPE_IP6 : ETYPE_IP4);
	if (path->v6)
		put_ip6(path, port, ip, dst, hops);
	else
		put_ip4(path, port, ip, dst, hops);
	path->pseudo_sum += rte_cpu_to_be_16(IPPROTO_UDP_NR);
	pmf_put_be16(ip + l3_len + 2, dst->port);
	pmf_path_set_sport(path, sport);
	return eth;
}

int pmf_path_init(struct pmf_path *path, struct pmf_port *port, const struct pmf_addr *dst,
		  uint16_t sport)
{
	const bool v6 = !pmf_addr_is_v4(dst);
	const struct pmf_ifaddr *ifa = v6 ? &port->conf.v6 : &port->conf.v4;
	struct pmf_path p = {.v6 = v6};
	const uint8_t *hop = dst->ip;
	uint8_t *eth;

	if (!ifa->set || !sendable(dst))
		return -ENETUNREACH;
	eth = put_headers(&p, port, dst, sport, HOP_LIMIT);
	p.local = pmf_port_owns(port, dst->ip);
	/* over the loop ring the mbuf itself goes to its reader */
	p.attach_min = p.local && !port->quirks->hairpin ? UINT16_MAX : port->attach_min;
	if (p.local) {
		memcpy(eth, port->mac, 6);
	} else {
		int n;

		if (!same_net(ifa, dst->ip) && !(v6 && link_local6(dst->ip))) {
			if (!ifa->has_gw)
				return -ENETUNREACH;
			hop = ifa->gw.ip;
		}
		n = pmf_neigh_get(port->neigh, hop);
		if (n < 0)
			return n;
		p.neigh = (uint16_t)n;
		p.uses_neigh = true;
	}
	*path = p;
	return 0;
}

void pmf_path_fini(struct pmf_path *path, struct pmf_queue *q)
{
	if (path->uses_neigh)
		pmf_neigh_put(q, path->neigh);
	path->uses_neigh = false;
}

int pmf_path_init_group(struct pmf_path *path, struct pmf_port *port, const struct pmf_addr *group,
			uint16_t sport, uint8_t hops)
{
	struct pmf_path p = {.v6 = !pmf_addr_is_v4(group)};

	if (!(p.v6 ? port->conf.v6.set : port->conf.v4.set) || !pmf_mcast_is_group(group->ip))
		return -ENETUNREACH;
	pmf_mcast_mac(group->ip, put_headers(&p, port, group, sport, hops));
	*path = p;
	return 0;
}

void pmf_path_set_dscp(struct pmf_path *path, uint8_t dscp)
{
	uint8_t *end = path->hdr + PMF_L2L3L4_MAX - UDP_LEN, *ip = end - IP4_LEN;

	if (path->v6) {
		put_class6(end - IP6_LEN, dscp);
		return;
	}
	ip[1] = (uint8_t)(dscp << 2);
	path->ip_sum = pmf_cksum_fold(pmf_cksum_add(ip, IP4_LEN, 0));
}

void pmf_path_src(const struct pmf_path *path, uint8_t ip[16])
{
	const uint8_t *end = path->hdr + PMF_L2L3L4_MAX - UDP_LEN;
	struct pmf_addr a;

	if (path->v6) {
		memcpy(ip, end - IP6_LEN + 8, 16);
		return;
	}
	pmf_addr_set_v4(&a, end - IP4_LEN + 12, 0);
	memcpy(ip, a.ip, sizeof(a.ip));
}

void pmf_path_set_sport(struct pmf_path *path, uint16_t sport)
{
	pmf_put_be16(path->hdr + PMF_L2L3L4_MAX - UDP_LEN, sport);
}
