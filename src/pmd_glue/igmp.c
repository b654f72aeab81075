/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The messages of IGMP, version 3 (RFC 3376 §4) and, where a querier knows no better, 2 and 1.
 * Owner of queue 0.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/mcast_internal.h"

enum {
	RA_LEN = 4, /* the option Router Alert (RFC 2113), which all messages bear */
	OLD_LEN = 8,
	QUERY3_LEN = 12,
	REC_LEN = 8,
	TYPE_QUERY = 0x11,
	TYPE_REPORT1 = 0x12,
	TYPE_REPORT2 = 0x16,
	TYPE_LEAVE2 = 0x17,
	TYPE_REPORT3 = 0x22,
	TOS_CONTROL = 0xc0,
};

static const uint8_t all_routers[16] = {[10] = 0xff, 0xff, 224, 0, 0, 2};
static const uint8_t all_igmpv3[16] = {[10] = 0xff, 0xff, 224, 0, 0, 22};

/* A message of @p len zeros to @p dst. @return where it begins; NULL: no buffer */
static uint8_t *igmp_frame(struct pmf_queue *q, const uint8_t dst[16], uint16_t len,
			   struct rte_mbuf **m)
{
	static const uint8_t router_alert[RA_LEN] = {0x94, 4, 0, 0};
	uint8_t mac[6], *ip;

	pmf_mcast_mac(dst, mac);
	*m = pmf_ctrl_frame(q, mac, ETYPE_IP4, (uint16_t)(IP4_LEN + RA_LEN + len), &ip);
	if (!*m)
		return NULL;
	ip[0] = 0x40 | (IP4_LEN + RA_LEN) / 4;
	ip[1] = TOS_CONTROL;
	pmf_put_be16(ip + 2, (uint16_t)(IP4_LEN + RA_LEN + len));
	pmf_put_be16(ip + 6, 0x4000);
	ip[8] = 1;
	ip[9] = IPPROTO_V4_IGMP;
	memcpy(ip + 12, q->port->conf.v4.addr.ip + 12, 4);
	memcpy(ip + 16, dst + 12, 4);
	memcpy(ip + 20, router_alert, RA_LEN);
	pmf_put16(ip + 10, (uint16_t)~pmf_cksum_fold(pmf_cksum_add(ip, IP4_LEN + RA_LEN, 0)));
	return ip + IP4_LEN + RA_LEN;
}

static void igmp_send(struct pmf_queue *q, struct rte_mbuf *m, uint8_t *igmp, uint16_t len)
{
	pmf_put16(igmp + 2, (uint16_t)~pmf_cksum_fold(pmf_cksum_add(igmp, len, 0)));
	q->stats.mcast_reports++;
	pmf_stage_or_drop(q, m);
}

/*
 * | type 0x22     | reserved      | checksum      | reserved      | records       |
 * each: | type  | 0     | sources       | group         | sources, 4 bytes each     |
 */
void pmf_igmp_report(struct pmf_queue *q, const struct pmf_mcast_rec *recs, unsigned int n)
{
	uint16_t len = OLD_LEN;
	struct rte_mbuf *m;
	uint8_t *igmp, *p;
	unsigned int i, k;

	for (i = 0; i < n; i++)
		len = (uint16_t)(len + REC_LEN + 4 * recs[i].nsrc);
	igmp = igmp_frame(q, all_igmpv3, len, &m);
	if (!igmp)
		return;
	igmp[0] = TYPE_REPORT3;
	pmf_put_be16(igmp + 6, (uint16_t)n);
	p = igmp + OLD_LEN;
	for (i = 0; i < n; i++) {
		p[0] = recs[i].type;
		pmf_put_be16(p + 2, recs[i].nsrc);
		memcpy(p + 4, recs[i].ip + 12, 4);
		p += REC_LEN;
		for (k = 0; k < recs[i].nsrc; k++, p += 4)
			memcpy(p, recs[i].src[k] + 12, 4);
	}
	igmp_send(q, m, igmp, len);
}

void pmf_igmp_old(struct pmf_queue *q, uint8_t version, bool leave, const uint8_t ip[16])
{
	struct rte_mbuf *m;
	uint8_t *igmp = igmp_frame(q, leave ? all_routers : ip, OLD_LEN, &m);

	if (!igmp)
		return;
	igmp[0] = leave ? TYPE_LEAVE2 : version == 1 ? TYPE_REPORT1 : TYPE_REPORT2;
	memcpy(igmp + 4, ip + 12, 4);
	igmp_send(q, m, igmp, OLD_LEN);
}

static bool has_router_alert(const uint8_t *ip, uint16_t hlen)
{
	uint16_t at = IP4_LEN;

	while (at < hlen && ip[at] != 0) {
		if (ip[at] == 1) {
			at++;
			continue;
		}
		if (at + 1 >= hlen || ip[at + 1] < 2 || at + ip[at + 1] > hlen)
			return false;
		if (ip[at] == 0x94 && ip[at + 1] == RA_LEN)
			return true;
		at = (uint16_t)(at + ip[at + 1]);
	}
	return false;
}

/* RFC 3376 §4.1.1: tenths of a second, from 128 on with an exponent. */
static pmf_ns_t max_response(uint8_t code)
{
	const uint32_t tenths = code < 128 ? code : ((code & 15u) | 16u) << ((code >> 4 & 7) + 3);

	return tenths * 100 * PMF_NS_PER_MS;
}

/* @return whether it is a query that this host must answer (§7.1, §9.1) */
static bool query_get(const uint8_t *ip, uint16_t hlen, const uint8_t *igmp, uint16_t len,
		      struct pmf_mcast_query *query)
{
	struct pmf_addr a;

	memset(query, 0, sizeof(*query));
	if (ip[8] != 1 || (len > OLD_LEN && len < QUERY3_LEN))
		return false;
	pmf_addr_set_v4(&a, igmp + 4, 0);
	memcpy(query->ip, a.ip, 16);
	query->general = pmf_get16(igmp + 4) == 0 && pmf_get16(igmp + 6) == 0;
	if (!query->general && !pmf_mcast_is_group(query->ip))
		return false;
	query->version = len > OLD_LEN ? 3 : igmp[1] ? 2 : 1;
	query->max_delay = query->version == 1	 ? 10 * PMF_NS_PER_S
			   : query->version == 2 ? igmp[1] * 100 * PMF_NS_PER_MS
						 : max_response(igmp[1]);
	if (query->version == 1)
		return query->general;
	if (query->version == 3) {
		query->robustness = igmp[8] & 7;
		query->nsrc = pmf_get_be16(igmp + 10);
		query->src = igmp + QUERY3_LEN;
		if (query->nsrc > (len - QUERY3_LEN) / 4 || (query->general && query->nsrc))
			return false;
	}
	return has_router_alert(ip, hlen);
}

void pmf_igmp_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t l4, uint16_t len,
		 pmf_ns_t now)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	const uint8_t *igmp = rte_pktmbuf_mtod_offset(m, const uint8_t *, l4);
	struct pmf_mcast_query query;

	if (len < OLD_LEN || !pmf_cksum_ok(pmf_cksum_add(igmp, len, 0)))
		q->stats.mcast_bad++;
	else if (igmp[0] != TYPE_QUERY)
		q->stats.rx_no_group++; /* other members' reports are routers' business */
	else if (!query_get(ip, (uint16_t)(l4 - l3), igmp, len, &query))
		q->stats.mcast_bad++;
	else
		pmf_mcast_queried(q, &query, now);
	rte_pktmbuf_free(m);
}
