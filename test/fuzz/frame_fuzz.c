/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Any bytes as a received frame, on a port over net_ring: what is taken lies inside the frame, what
 * is answered is sound, and no buffer is lost. The first byte of the input says what of the frame
 * is put right before, since noise alone would hardly get past the addresses and checksums.
 */
#include "pmd_glue/mcast_internal.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "fuzz.h"
#include "pmd_glue/eal.h"

#define PUT_RIGHT_MAC 1
#define PUT_RIGHT_SUMS 2
#define MAX_FRAME 1600

static struct pmf_port *port;
static struct pmf_queue *q;
static pmf_ns_t now;

/* EAL frees nothing at exit. Read by the sanitizer's runtime where there is one. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* The groups that are joined; those of make_corpus.py. */
static const uint8_t group4[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
static const uint8_t group6[16] = {0xff, 5, [13] = 1, [15] = 3};

static void start(void)
{
	const struct pmf_eal_conf eal = {
		.huge = PMF_HUGE_OFF, .memory_mb = 128, .extra = "--no-telemetry"};
	struct pmf_port_conf conf;
	char err[256] = "";

	if (pmf_eal_start(&eal, err, sizeof(err)) != 0 ||
	    pmf_port_conf_parse("net_ring0 10.99.0.1/24 fd00::1/64", &conf, err, sizeof(err)) !=
		    0 ||
	    pmf_port_open(&conf, &port, err, sizeof(err)) != 0) {
		fprintf(stderr, "%s\n", err);
		exit(2);
	}
	q = &port->queue[0];
	q->hairpin = false;
	port->announce = false;
	now = PMF_NS_PER_S;
	FUZZ_CHECK(pmf_mcast_join(q, group4, now) >= 0 && pmf_mcast_join(q, group6, now) >= 0);
}

static uint32_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	return sum;
}

static void put_sum(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

/* Write the checksums of IPv4 and of UDP, ICMP or IGMP, as far as the frame goes. */
static void put_right_sums(uint8_t *b, size_t len)
{
	bool v6 = b[12] == 0x86;
	uint8_t *ip = b + 14, *t = v6 ? ip + 40 : ip + (ip[0] & 15) * 4;
	uint8_t proto = v6 ? ip[6] : ip[9];
	ptrdiff_t tlen = v6 ? ip[4] << 8 | ip[5] : (ip[2] << 8 | ip[3]) - (t - ip);
	size_t at;
	uint32_t pseudo = 0;

	if (v6 && proto == 0) { /* hop-by-hop options */
		size_t hop = (t[1] + 1) * 8u;

		if (hop + 8 > (size_t)(b + len - t))
			return;
		proto = t[0];
		t += hop;
		tlen -= (ptrdiff_t)hop;
	}
	at = proto == 17 ? 6 : 2;
	if (tlen < 8 || tlen > b + len - t)
		return;
	if (!v6) {
		ip[10] = ip[11] = 0;
		put_sum(ip + 10, sum16(ip, t - ip, 0));
	}
	if (v6)
		pseudo = sum16(ip + 8, 32, (uint32_t)tlen + proto);
	else if (proto == 17)
		pseudo = sum16(ip + 12, 8, (uint32_t)tlen + proto);
	t[at] = t[at + 1] = 0;
	put_sum(t + at, sum16(t, (size_t)tlen, pseudo));
}

/* What the port answered, as the wire would get it. */
static void check_answers(void)
{
	while (q->nstage > 0) {
		struct rte_mbuf *m = q->stage[--q->nstage];

		FUZZ_CHECK(m->nb_segs == 1 && m->pkt_len == m->data_len && m->data_len >= 42);
		FUZZ_CHECK(memcmp(rte_pktmbuf_mtod(m, uint8_t *) + 6, port->mac, 6) == 0);
		rte_pktmbuf_free(m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t what = size > 0 ? data[0] : 0, *b;
	size_t len = size > 0 ? PMF_MIN(size - 1, MAX_FRAME) : 0;
	struct pmf_frame f;
	struct rte_mbuf *m;

	if (port == NULL)
		start();
	m = rte_pktmbuf_alloc(port->rx_pool);
	FUZZ_CHECK(m != NULL);
	/* At the end of the buffer's room, whose end is all that a sanitizer could know. */
	b = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	FUZZ_CHECK(b != NULL);
	memcpy(b, data + 1, len);
	if ((what & PUT_RIGHT_MAC) && len >= 12)
		memcpy(b, port->mac, 6);
	if ((what & PUT_RIGHT_SUMS) && len >= 64)
		put_right_sums(b, len);
	now += PMF_NS_PER_MS;
	if (pmf_frame_parse(q, m, &f, now)) {
		FUZZ_CHECK(f.payload >= b && f.payload + f.len <= b + len);
		FUZZ_CHECK(f.src_ip >= b && f.src_ip + (f.v6 ? 16 : 4) <= f.payload);
		FUZZ_CHECK(f.dst_ip >= b && f.dst_ip + (f.v6 ? 16 : 4) <= f.payload);
		FUZZ_CHECK(!f.multicast || f.group < PMF_MCAST_MAX);
		rte_pktmbuf_free(m);
	}
	pmf_mcast_tick(q, now);
	check_answers();
	FUZZ_CHECK(rte_mempool_in_use_count(port->rx_pool) == 0);
	return 0;
}
