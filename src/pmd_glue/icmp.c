/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * ICMP: echo requests of both families are answered in the mbuf that brought them; ICMPv6 leads to
 * neighbour discovery. Any other message is counted and dropped.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/internal.h"

enum {
	ECHO_MIN = 8,
	V4_ECHO_REPLY = 0,
	V4_ECHO_REQUEST = 8,
	V6_ECHO_REQUEST = 128,
	V6_ECHO_REPLY = 129,
	V6_NS = 135,
	V6_NA = 136,
};

static void swap_bytes(uint8_t *a, uint8_t *b, size_t len)
{
	uint8_t t[16];

	memcpy(t, a, len);
	memcpy(a, b, len);
	memcpy(b, t, len);
}

/* Back to whoever sent it: no neighbour is asked. Takes the mbuf. */
static void echo_return(struct pmf_queue *q, struct rte_mbuf *m, uint16_t frame_len)
{
	uint8_t *eth = rte_pktmbuf_mtod(m, uint8_t *);

	memcpy(eth, eth + 6, 6);
	memcpy(eth + 6, q->port->mac, 6);
	m->data_len = frame_len;
	m->pkt_len = frame_len;
	m->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	q->stats.icmp_echo++;
	pmf_stage_or_drop(q, m);
}

void pmf_icmp4_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t l4, uint16_t len)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l3);
	uint8_t *icmp = rte_pktmbuf_mtod_offset(m, uint8_t *, l4);

	if (len < ECHO_MIN) {
		q->stats.rx_short++;
	} else if (icmp[0] != V4_ECHO_REQUEST || icmp[1] != 0) {
		q->stats.rx_not_udp++;
	} else if (!pmf_cksum_ok(pmf_cksum_add(icmp, len, 0))) {
		q->stats.rx_bad_cksum++;
	} else {
		icmp[0] = V4_ECHO_REPLY;
		pmf_put16(icmp + 2, 0);
		pmf_put16(icmp + 2, (uint16_t)~pmf_cksum_fold(pmf_cksum_add(icmp, len, 0)));
		swap_bytes(ip + 12, ip + 16, 4);
		ip[8] = HOP_LIMIT;
		pmf_put16(ip + 10, 0);
		pmf_put16(ip + 10,
			  (uint16_t)~pmf_cksum_fold(pmf_cksum_add(ip, (size_t)(l4 - l3), 0)));
		echo_return(q, m, (uint16_t)(l4 + len));
		return;
	}
	rte_pktmbuf_free(m);
}

static bool icmp6_cksum_ok(const uint8_t *ip, const uint8_t *icmp, uint16_t len)
{
	uint64_t sum = pmf_cksum_add(ip + 8, 32, 0);

	sum += rte_cpu_to_be_16(len);
	sum += rte_cpu_to_be_16(IPPROTO_V6_ICMP);
	return pmf_cksum_ok(pmf_cksum_add(icmp, len, sum));
}

static void echo6_answer(struct pmf_queue *q, struct rte_mbuf *m, uint8_t *ip, uint8_t *icmp,
			 uint16_t l3, uint16_t len)
{
	uint64_t sum;

	/* The pseudo header keeps its sum when the addresses change places. */
	icmp[0] = V6_ECHO_REPLY;
	pmf_put16(icmp + 2, 0);
	swap_bytes(ip + 8, ip + 24, 16);
	ip[7] = HOP_LIMIT;
	sum = pmf_cksum_add(ip + 8, 32, 0);
	sum += rte_cpu_to_be_16(len);
	sum += rte_cpu_to_be_16(IPPROTO_V6_ICMP);
	pmf_put16(icmp + 2, (uint16_t)~pmf_cksum_fold(pmf_cksum_add(icmp, len, sum)));
	echo_return(q, m, (uint16_t)(l3 + IP6_LEN + len));
}

void pmf_icmp6_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t len, pmf_ns_t now)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l3);
	uint8_t *icmp = ip + IP6_LEN;

	if (len < ECHO_MIN) {
		q->stats.rx_short++;
	} else if (!icmp6_cksum_ok(ip, icmp, len)) {
		q->stats.rx_bad_cksum++;
	} else if (icmp[0] == V6_NS || icmp[0] == V6_NA) {
		pmf_nd_rx(q, rte_pktmbuf_mtod(m, uint8_t *) + 6, ip, icmp, len, now);
	} else if (icmp[0] == V6_ECHO_REQUEST && icmp[1] == 0 && ip[24] != 0xff) {
		echo6_answer(q, m, ip, icmp, l3, len);
		return;
	} else {
		q->stats.rx_not_udp++;
	}
	rte_pktmbuf_free(m);
}
