/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Checking received frames: what is taken, what is dropped, and that each cause is counted.
 */
#include "port_test.h"

enum { V4_IP = 14, V4_UDP = 34, V6_IP = 14, V6_UDP = 54 };

static struct frame udp4(void)
{
	return frame_udp("10.99.0.2", "10.99.0.1", 4000, 5000, 100);
}

static struct frame udp6(void)
{
	return frame_udp("fd00::2", "fd00::1", 4000, 5000, 100);
}

/* Given a frame, then it is dropped and exactly this counter rises. */
#define ASSERT_DROPPED(frame, counter)                          \
	do {                                                    \
		const uint64_t before_ = q->stats.counter;      \
		CU_ASSERT_FALSE(port_test_rx(frame, 1));        \
		CU_ASSERT_EQUAL(q->stats.counter, before_ + 1); \
	} while (0)

static void test_udp_of_both_families(void)
{
	port_test_open(TEST_DEV, NULL);
	for (unsigned int v6 = 0; v6 < 2; v6++) {
		struct frame g = v6 ? udp6() : udp4();
		struct pmf_frame f;
		struct rte_mbuf *m;
		struct pmf_addr src, want;

		if (v6)
			g.b[V6_IP + 1] |= 0x30;
		else
			g.b[V4_IP + 1] |= 3;
		frame_sums(&g);
		/* The driver hands over padding and all. */
		g.len = (uint16_t)(g.len + 10);
		m = frame_mbuf(&g);
		CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m, &f, 1));
		CU_ASSERT_EQUAL(f.v6, v6);
		CU_ASSERT_EQUAL(f.len, 100);
		CU_ASSERT_EQUAL(f.src_port, 4000);
		CU_ASSERT_EQUAL(f.dst_port, 5000);
		CU_ASSERT_EQUAL(f.ecn, 3);
		CU_ASSERT_FALSE(f.multicast);
		for (unsigned int i = 0; i < f.len; i++)
			CU_ASSERT_FATAL(f.payload[i] == pattern(i));
		pmf_frame_src(&f, &src);
		want = addr_of(v6 ? "fd00::2" : "10.99.0.2", 4000);
		CU_ASSERT_TRUE(pmf_addr_eq(&src, &want));
		rte_pktmbuf_free(m);
	}
	port_test_close();
}

static void test_chain_is_joined(void)
{
	const uint16_t cuts[] = {1, 13, 20, 40, 100};

	port_test_open(TEST_DEV, NULL);
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(cuts); i++) {
		const struct frame g = udp4();
		struct frame a = g, b = g;
		struct rte_mbuf *m, *n;
		struct pmf_frame f;

		a.len = cuts[i];
		b.len = (uint16_t)(g.len - cuts[i]);
		memcpy(b.b, g.b + cuts[i], b.len);
		m = frame_mbuf(&a);
		n = frame_mbuf(&b);
		CU_ASSERT_EQUAL_FATAL(rte_pktmbuf_chain(m, n), 0);
		CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m, &f, 1));
		for (unsigned int k = 0; k < f.len; k++)
			CU_ASSERT_FATAL(f.payload[k] == pattern(k));
		rte_pktmbuf_free(m);
	}
	port_test_close();
}

static void test_checksums(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = udp4();
	f.b[V4_UDP + 20] ^= 1;
	ASSERT_DROPPED(&f, rx_bad_cksum);
	f = udp4();
	f.b[V4_IP + 8] ^= 1; /* TTL */
	ASSERT_DROPPED(&f, rx_bad_cksum);
	f = udp6();
	f.b[V6_UDP + 107] ^= 0x80;
	ASSERT_DROPPED(&f, rx_bad_cksum);
	/* None at all: allowed in IPv4, forbidden in IPv6. */
	f = udp4();
	f.b[V4_UDP + 6] = f.b[V4_UDP + 7] = 0;
	CU_ASSERT_TRUE(port_test_rx(&f, 1));
	f = udp6();
	f.b[V6_UDP + 6] = f.b[V6_UDP + 7] = 0;
	ASSERT_DROPPED(&f, rx_no_cksum);
	port_test_close();
}

static void test_devices_verdict_is_taken(void)
{
	struct pmf_frame f;
	struct rte_mbuf *m;
	struct frame g;

	port_test_open(TEST_DEV, NULL);
	g = udp4();
	g.b[V4_UDP + 6] ^= 0xff;
	for (unsigned int i = 0; i < 4; i++) {
		static const uint64_t flags[] = {
			RTE_MBUF_F_RX_L4_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_NONE,
			RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN, RTE_MBUF_F_RX_L4_CKSUM_BAD};

		m = frame_mbuf(&g);
		m->ol_flags |= flags[i];
		CU_ASSERT_EQUAL(pmf_frame_parse(q, m, &f, 1), i < 2);
		if (i < 2)
			rte_pktmbuf_free(m);
	}
	/* BAD is not believed blindly: some drivers say it of sums that are merely absent. */
	g = udp4();
	m = frame_mbuf(&g);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_BAD;
	CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m, &f, 1));
	rte_pktmbuf_free(m);
	port_test_close();
}

static void test_foreign_frames(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = udp4();
	f.b[5] ^= 1; /* another MAC address */
	ASSERT_DROPPED(&f, rx_not_mine);
	f = udp4();
	memset(f.b, 0xff, 6); /* broadcast to our IP address */
	ASSERT_DROPPED(&f, rx_not_mine);
	f = frame_udp("10.99.0.2", "10.99.0.3", 1, 2, 10);
	ASSERT_DROPPED(&f, rx_not_mine);
	f = frame_udp("fd00::2", "fd00::3", 1, 2, 10);
	ASSERT_DROPPED(&f, rx_not_mine);
	f = frame_udp("10.99.0.2", "224.0.0.251", 1, 2, 10);
	ASSERT_DROPPED(&f, rx_no_group);
	f = udp4();
	f.b[13] = 0x05;
	ASSERT_DROPPED(&f, rx_not_ip);
	f = udp4();
	f.b[V4_IP + 9] = 6; /* TCP */
	frame_sums(&f);
	ASSERT_DROPPED(&f, rx_not_udp);
	f = udp6();
	f.b[V6_IP + 6] = 43; /* routing header */
	ASSERT_DROPPED(&f, rx_not_udp);
	port_test_close();
}

static void test_fragments(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = udp4();
	f.b[V4_IP + 6] = 0x20;
	frame_sums(&f);
	ASSERT_DROPPED(&f, rx_fragment);
	f = udp4();
	f.b[V4_IP + 7] = 3;
	frame_sums(&f);
	ASSERT_DROPPED(&f, rx_fragment);
	f = udp4();
	f.b[V4_IP + 6] = 0x40; /* don't fragment is not a fragment */
	frame_sums(&f);
	CU_ASSERT_TRUE(port_test_rx(&f, 1));
	f = udp6();
	f.b[V6_IP + 6] = 44;
	ASSERT_DROPPED(&f, rx_fragment);
	port_test_close();
}

static void test_lengths_that_disagree(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = udp4();
	f.b[V4_IP + 3]++; /* longer than the frame */
	frame_sums(&f);
	ASSERT_DROPPED(&f, rx_bad_len);
	f = udp4();
	f.b[V4_UDP + 5]++; /* longer than the IP packet */
	ASSERT_DROPPED(&f, rx_bad_len);
	f = udp4();
	f.b[V4_UDP + 4] = 0;
	f.b[V4_UDP + 5] = 7; /* shorter than its own header */
	ASSERT_DROPPED(&f, rx_bad_len);
	f = udp4();
	f.b[V4_IP] = 0x44;
	ASSERT_DROPPED(&f, rx_bad_len);
	f = udp6();
	f.b[V6_IP + 5]++;
	ASSERT_DROPPED(&f, rx_bad_len);
	f = udp6();
	f.b[V6_IP] = 0x50;
	ASSERT_DROPPED(&f, rx_bad_len);
	port_test_close();
}

static void test_every_cut_is_dropped_and_counted(void)
{
	port_test_open(TEST_DEV, NULL);
	for (unsigned int v6 = 0; v6 < 2; v6++) {
		const struct frame whole = v6 ? udp6() : udp4();

		for (uint16_t len = 0; len < whole.len; len++) {
			struct frame f = whole;
			const uint64_t before = q->stats.rx_short + q->stats.rx_bad_len;

			f.len = len;
			CU_ASSERT_FALSE(port_test_rx(&f, 1));
			CU_ASSERT_EQUAL(q->stats.rx_short + q->stats.rx_bad_len, before + 1);
		}
	}
	port_test_close();
}

static void test_ip_options_are_skipped(void)
{
	struct frame f, g;
	struct pmf_frame p;
	struct rte_mbuf *m;

	port_test_open(TEST_DEV, NULL);
	f = g = udp4();
	memmove(g.b + V4_UDP + 8, f.b + V4_UDP, f.len - V4_UDP);
	memset(g.b + V4_UDP, 1, 8); /* no-operation */
	g.len = (uint16_t)(g.len + 8);
	g.b[V4_IP] = 0x47;
	g.b[V4_IP + 3] = (uint8_t)(g.b[V4_IP + 3] + 8);
	frame_sums(&g);
	m = frame_mbuf(&g);
	CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m, &p, 1));
	CU_ASSERT_EQUAL(p.len, 100);
	CU_ASSERT_EQUAL(p.payload[0], pattern(0));
	rte_pktmbuf_free(m);
	port_test_close();
}

static struct frame tagged(uint16_t vlan)
{
	struct frame f = udp4();

	memmove(f.b + 16, f.b + 12, f.len - 12u);
	f.b[12] = 0x81;
	f.b[13] = 0;
	f.b[14] = (uint8_t)(0xe0 | vlan >> 8); /* priority bits do not matter */
	f.b[15] = (uint8_t)vlan;
	f.len = (uint16_t)(f.len + 4);
	return f;
}

static void test_vlans(void)
{
	struct frame f;
	struct pmf_frame p;
	struct rte_mbuf *m;

	port_test_open(TEST_DEV, NULL);
	f = tagged(7);
	ASSERT_DROPPED(&f, rx_not_mine);
	f = tagged(0); /* priority only (802.1Q) */
	CU_ASSERT_TRUE(port_test_rx(&f, 1));
	f.len = 15;
	ASSERT_DROPPED(&f, rx_short);
	port_test_close();

	port_test_open(TEST_DEV " vlan=7", NULL);
	f = tagged(7);
	CU_ASSERT_TRUE(port_test_rx(&f, 1));
	f = tagged(8);
	ASSERT_DROPPED(&f, rx_not_mine);
	f = udp4();
	ASSERT_DROPPED(&f, rx_not_mine);
	/* A driver that takes the tag away says so. */
	f = udp4();
	m = frame_mbuf(&f);
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 7;
	CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m, &p, 1));
	rte_pktmbuf_free(m);
	port_test_close();
}

static struct frame random_kind(uint64_t kind)
{
	switch (kind) {
	case 0:
		return udp4();
	case 1:
		return udp6();
	case 2:
		return frame_echo("10.99.0.2", "10.99.0.1", 56);
	case 3:
		return frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.1");
	default:
		return frame_nd(135, "fd00::2", "ff02::1:ff00:1", "fd00::1", peer_mac, 0);
	}
}

/* Whatever the bytes, what is reported lies inside the mbuf, and every mbuf is accounted for. */
static void test_random_frames_stay_in_bounds(void)
{
	uint64_t seed = test_seed();
	unsigned int taken = 0, answers = 0;

	port_test_open(TEST_DEV, NULL);
	for (unsigned int i = 0; i < 200000; i++) {
		struct frame g = random_kind(test_random(&seed) % 5);
		const unsigned int flips = (unsigned int)(test_random(&seed) % 4);
		struct pmf_frame f;
		struct rte_mbuf *m;

		for (unsigned int k = 0; k < flips; k++)
			g.b[12 + test_random(&seed) % 60] = (uint8_t)test_random(&seed);
		if (test_random(&seed) & 1)
			g.len = (uint16_t)(test_random(&seed) % (g.len + 1u));
		m = frame_mbuf(&g);
		if (test_random(&seed) & 1) /* past the sums */
			m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		if (pmf_frame_parse(q, m, &f, i)) {
			const uint8_t *start = rte_pktmbuf_mtod(m, uint8_t *);

			taken++;
			CU_ASSERT_FATAL(f.payload >= start + V4_UDP + 8);
			CU_ASSERT_FATAL(f.payload + f.len <= start + m->data_len);
			rte_pktmbuf_free(m);
		}
		while (port_test_tx(&g))
			answers++;
	}
	CU_ASSERT_TRUE(answers > 0);
	CU_ASSERT_TRUE(taken > 1000);
	port_test_close();
}

const struct unit_test frame_rx_tests[] = {
	{"UDP of both families", test_udp_of_both_families},
	{"a chain of mbufs is joined", test_chain_is_joined},
	{"checksums", test_checksums},
	{"the device's verdict is taken", test_devices_verdict_is_taken},
	{"frames that are not ours", test_foreign_frames},
	{"fragments", test_fragments},
	{"lengths that disagree", test_lengths_that_disagree},
	{"every cut is dropped and counted", test_every_cut_is_dropped_and_counted},
	{"IP options are skipped", test_ip_options_are_skipped},
	{"VLANs", test_vlans},
	{"random frames stay in bounds", test_random_frames_stay_in_bounds},
	{NULL},
};
