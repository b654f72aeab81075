/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The messages of MLD, version 2 (RFC 3810 §5) and, where a querier knows no better, 1 (RFC 2710).
 * Owner of queue 0.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/mcast_internal.h"

enum {
	HOP_LEN = 8, /* hop-by-hop options with Router Alert (RFC 2711), which all messages bear */
	REPORT_LEN = 8,
	OLD_LEN = 24,
	QUERY2_LEN = 28,
	REC_LEN = 20,
	TYPE_QUERY = 130,
	TYPE_REPORT1 = 131,
	TYPE_DONE1 = 132,
	TYPE_REPORT2 = 143,
	OPT_PAD1 = 0,
	OPT_ROUTER_ALERT = 5,
};

static const uint8_t all_routers[16] = {0xff, 0x02, [15] = 2};
static const uint8_t all_mldv2[16] = {0xff, 0x02, [15] = 0x16};

/* A message of @p len zeros to @p dst. @return where it begins; NULL: no buffer */
static uint8_t *mld_frame(struct pmf_queue *q, const uint8_t dst[16], uint16_t len,
			  struct rte_mbuf **m)
{
	static const uint8_t hop[HOP_LEN] = {IPPROTO_V6_ICMP, 0, OPT_ROUTER_ALERT, 2, 0, 0, 1, 0};
	uint8_t mac[6], *ip;

	pmf_mcast_mac(dst, mac);
	*m = pmf_ctrl_frame(q, mac, ETYPE_IP6, (uint16_t)(IP6_LEN + HOP_LEN + len), &ip);
	if (!*m)
		return NULL;
	ip[0] = 0x60;
	pmf_put_be16(ip + 4, (uint16_t)(HOP_LEN + len));
	ip[6] = IPPROTO_V6_HOP;
	ip[7] = 1;
	memcpy(ip + 8, q->port->ip6_ll, 16);
	memcpy(ip + 24, dst, 16);
	memcpy(ip + IP6_LEN, hop, HOP_LEN);
	return ip + IP6_LEN + HOP_LEN;
}

/* Over the pseudo header of @p ip and the message, its checksum as it stands. */
static uint64_t icmp_sum(const uint8_t *ip, const uint8_t *icmp, uint16_t len)
{
	uint64_t sum = pmf_cksum_add(ip + 8, 32, 0);

	sum += rte_cpu_to_be_16(len);
	sum += rte_cpu_to_be_16(IPPROTO_V6_ICMP);
	return pmf_cksum_add(icmp, len, sum);
}

static void mld_send(struct pmf_queue *q, struct rte_mbuf *m, uint8_t *icmp, uint16_t len)
{
	const uint8_t *ip = icmp - HOP_LEN - IP6_LEN;

	pmf_put16(icmp + 2, (uint16_t)~pmf_cksum_fold(icmp_sum(ip, icmp, len)));
	q->stats.mcast_reports++;
	pmf_stage_or_drop(q, m);
}

/*
 * | type 143      | 0             | checksum      | reserved      | records       |
 * each: | type  | 0     | sources       | group (16)    | sources, 16 bytes each    |
 */
void pmf_mld_report(struct pmf_queue *q, const struct pmf_mcast_rec *recs, unsigned int n)
{
	uint16_t len = REPORT_LEN;
	struct rte_mbuf *m;
	uint8_t *icmp, *p;
	unsigned int i;

	for (i = 0; i < n; i++)
		len = (uint16_t)(len + REC_LEN + 16 * recs[i].nsrc);
	icmp = mld_frame(q, all_mldv2, len, &m);
	if (!icmp)
		return;
	icmp[0] = TYPE_REPORT2;
	pmf_put_be16(icmp + 6, (uint16_t)n);
	p = icmp + REPORT_LEN;
	for (i = 0; i < n; i++) {
		p[0] = recs[i].type;
		pmf_put_be16(p + 2, recs[i].nsrc);
		memcpy(p + 4, recs[i].ip, 16);
		p += REC_LEN;
		if (recs[i].nsrc)
			memcpy(p, recs[i].src, 16u * recs[i].nsrc);
		p += 16 * recs[i].nsrc;
	}
	mld_send(q, m, icmp, len);
}

void pmf_mld_old(struct pmf_queue *q, bool leave, const uint8_t ip[16])
{
	struct rte_mbuf *m;
	uint8_t *icmp = mld_frame(q, leave ? all_routers : ip, OLD_LEN, &m);

	if (!icmp)
		return;
	icmp[0] = leave ? TYPE_DONE1 : TYPE_REPORT1;
	memcpy(icmp + 8, ip, 16);
	mld_send(q, m, icmp, OLD_LEN);
}

/* Walk the hop-by-hop options. @return whether Router Alert is there and all is well formed */
static bool hop_ok(const uint8_t *hop, uint16_t hlen)
{
	bool alert = false;
	uint16_t at = 2;

	while (at < hlen) {
		if (hop[at] == OPT_PAD1) {
			at++;
			continue;
		}
		if (at + 2 > hlen || at + 2 + hop[at + 1] > hlen)
			return false;
		if (hop[at] == OPT_ROUTER_ALERT)
			alert = hop[at + 1] == 2 && pmf_get16(hop + at + 2) == 0;
		else if (hop[at] >> 6)
			return false; /* whoever does not know it must drop the packet */
		at = (uint16_t)(at + 2 + hop[at + 1]);
	}
	return alert;
}

/* RFC 3810 §5.1.3: milliseconds, from 32768 on with an exponent. */
static pmf_ns_t max_response(uint16_t code)
{
	const uint32_t ms =
		code < 32768 ? code : ((code & 0xfffu) | 0x1000u) << ((code >> 12 & 7) + 3);

	return ms * PMF_NS_PER_MS;
}

static bool query_get(const uint8_t *icmp, uint16_t len, struct pmf_mcast_query *query)
{
	static const uint8_t zero[16];

	memset(query, 0, sizeof(*query));
	if (icmp[1] != 0 || (len > OLD_LEN && len < QUERY2_LEN))
		return false;
	query->v6 = true;
	memcpy(query->ip, icmp + 8, 16);
	query->general = memcmp(query->ip, zero, 16) == 0;
	if (!query->general && !pmf_mcast_is_group(query->ip))
		return false;
	query->version = len > OLD_LEN ? 3 : 2;
	if (query->version == 2) {
		query->max_delay = pmf_get_be16(icmp + 4) * PMF_NS_PER_MS;
		return true;
	}
	query->max_delay = max_response(pmf_get_be16(icmp + 4));
	query->robustness = icmp[24] & 7;
	query->nsrc = pmf_get_be16(icmp + 26);
	query->src = icmp + QUERY2_LEN;
	return query->nsrc <= (len - QUERY2_LEN) / 16 && !(query->general && query->nsrc);
}

/* A message behind hop-by-hop options; from a host of this link alone (RFC 3810 §6.2). */
static void message_rx(struct pmf_queue *q, const uint8_t *ip, uint16_t len, pmf_ns_t now)
{
	const uint8_t *hop = ip + IP6_LEN;
	const uint16_t hlen = (uint16_t)((hop[1] + 1) * 8);
	const uint8_t *icmp = hop + hlen;
	struct pmf_mcast_query query;

	if (hlen + OLD_LEN > len || icmp[0] != TYPE_QUERY) {
		q->stats.rx_no_group++; /* other members' reports are routers' business */
		return;
	}
	len = (uint16_t)(len - hlen);
	if (!pmf_cksum_ok(icmp_sum(ip, icmp, len)) || !hop_ok(hop, hlen) || ip[7] != 1 ||
	    ip[8] != 0xfe || (ip[9] & 0xc0) != 0x80 || !query_get(icmp, len, &query))
		q->stats.mcast_bad++;
	else
		pmf_mcast_queried(q, &query, now);
}

void pmf_mld_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t len, pmf_ns_t now)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);

	if (len < HOP_LEN)
		q->stats.rx_short++;
	else if (ip[IP6_LEN] != IPPROTO_V6_ICMP)
		q->stats.rx_not_udp++;
	else
		message_rx(q, ip, len, now);
	rte_pktmbuf_free(m);
}
