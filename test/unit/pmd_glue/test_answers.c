/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the port answers by itself: ARP, neighbour discovery, echo. And what it must not answer.
 */
#include "port_test.h"

static void test_arp_request_is_answered(void)
{
	struct frame f, want;

	port_test_open(TEST_DEV, NULL);
	f = frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.1");
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	want = frame_arp(2, port->mac, "10.99.0.1", peer_mac, "10.99.0.2");
	CU_ASSERT_EQUAL_FATAL(f.len, want.len);
	CU_ASSERT_EQUAL(memcmp(f.b, want.b, f.len), 0);
	CU_ASSERT_EQUAL(q->stats.arp_rx, 1);
	CU_ASSERT_EQUAL(q->stats.arp_tx, 1);
	port_test_close();
}

static void test_arp_for_others_is_not(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.3");
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_arp(2, peer_mac, "10.99.0.2", port->mac, "10.99.0.1"); /* a reply */
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.1");
	f.b[15] = 6; /* another hardware */
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.1");
	f.len = 41;
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_FALSE(port_test_tx(&f));
	CU_ASSERT_EQUAL(q->stats.rx_short, 1);
	port_test_close();
}

static void check_echo(const char *peer, const char *self, unsigned int icmp_at, uint8_t reply)
{
	struct frame f, g;

	f = frame_echo(peer, self, 56);
	g = f;
	g.len = (uint16_t)(g.len + 6); /* padding is not sent back */
	CU_ASSERT_FALSE(port_test_rx(&g, 1));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&g));
	CU_ASSERT_EQUAL(g.len, f.len);
	CU_ASSERT_TRUE(frame_sums_ok(&g));
	CU_ASSERT_EQUAL(memcmp(g.b, peer_mac, 6), 0);
	CU_ASSERT_EQUAL(memcmp(g.b + 6, port->mac, 6), 0);
	CU_ASSERT_EQUAL(g.b[icmp_at], reply);
	/* Identifier, sequence number and data come back as they were. */
	CU_ASSERT_EQUAL(memcmp(g.b + icmp_at + 4, f.b + icmp_at + 4, 60), 0);
	{
		const unsigned int at = icmp_at == 34 ? 26 : 22, len = icmp_at == 34 ? 4 : 16;

		CU_ASSERT_EQUAL(memcmp(g.b + at, f.b + at + len, len), 0);
		CU_ASSERT_EQUAL(memcmp(g.b + at + len, f.b + at, len), 0);
	}
}

static void test_echo_is_answered(void)
{
	port_test_open(TEST_DEV, NULL);
	check_echo("10.99.0.2", "10.99.0.1", 34, 0);
	check_echo("fd00::2", "fd00::1", 54, 129);
	CU_ASSERT_EQUAL(q->stats.icmp_echo, 2);
	port_test_close();
}

static void test_other_icmp_is_not(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = frame_echo("10.99.0.2", "10.99.0.1", 56);
	f.b[34] = 0; /* a reply */
	frame_sums(&f);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_echo("10.99.0.2", "10.99.0.1", 56);
	f.b[60] ^= 1; /* damaged */
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_echo("fd00::2", "fd00::1", 56);
	f.b[70] ^= 1;
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_echo("10.99.0.2", "10.99.0.3", 56);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	/* To a group: would be answered by all at once. */
	f = frame_echo("fd00::2", "ff02::1", 56);
	memcpy(f.b, "\x33\x33\0\0\0\1", 6);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_FALSE(port_test_tx(&f));
	CU_ASSERT_EQUAL(q->stats.rx_bad_cksum, 2);
	CU_ASSERT_EQUAL(q->stats.rx_not_udp, 2);
	port_test_close();
}

static void test_solicitation_is_answered(void)
{
	struct frame f, want;

	port_test_open(TEST_DEV, NULL);
	f = frame_nd(135, "fd00::2", "ff02::1:ff00:1", "fd00::1", peer_mac, 0);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	/* Solicited and override. */
	want = frame_nd(136, "fd00::1", "fd00::2", "fd00::1", port->mac, 0x60);
	memcpy(want.b, peer_mac, 6);
	memcpy(want.b + 6, port->mac, 6);
	CU_ASSERT_EQUAL_FATAL(f.len, want.len);
	CU_ASSERT_EQUAL(memcmp(f.b, want.b, f.len), 0);
	port_test_close();
}

/* A neighbour that checks whether we are still there: unicast, perhaps without its address. */
static void test_solicitation_without_address(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = frame_nd(135, "fd00::2", "fd00::1", "fd00::1", NULL, 0);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(f.b[54], 136);
	CU_ASSERT_EQUAL(memcmp(f.b, peer_mac, 6), 0);
	CU_ASSERT_TRUE(frame_sums_ok(&f));
	port_test_close();
}

static void test_duplicate_address_detection_is_answered_to_all(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = frame_nd(135, "::", "ff02::1:ff00:1", "fd00::1", NULL, 0);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(memcmp(f.b, "\x33\x33\0\0\0\1", 6), 0);
	CU_ASSERT_EQUAL(f.b[58], 0x20); /* not solicited */
	port_test_close();
}

static void test_solicitation_that_a_router_passed_is_not(void)
{
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	f = frame_nd(135, "fd00::2", "ff02::1:ff00:1", "fd00::1", peer_mac, 0);
	f.b[21] = 254; /* hop limit */
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_nd(135, "fd00::2", "ff02::1:ff00:3", "fd00::3", peer_mac, 0);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	f = frame_nd(135, "fd00::2", "ff02::1:ff00:1", "fd00::1", peer_mac, 0);
	f.b[79] = 0; /* an option of no length */
	frame_sums(&f);
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	(void)port_test_tx(&f); /* may be answered, but must not hang */
	CU_ASSERT_FALSE(port_test_tx(&f));
	port_test_close();
}

static void test_announcements(void)
{
	struct frame f, want;

	port_test_open(TEST_DEV, NULL);
	port->announce = true;
	pmf_queue_tick(q, 1);			/* flushes: net_ring gives the frames back */
	CU_ASSERT_EQUAL(q->stats.tx_frames, 3); /* the last is test_mcast.c's */
	CU_ASSERT_FALSE(port->announce);
	{
		struct rte_mbuf *m[PMF_BURST];

		CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, 1), 3);
		f.len = m[0]->data_len;
		memcpy(f.b, rte_pktmbuf_mtod(m[0], void *), f.len);
		want = frame_arp(1, port->mac, "10.99.0.1", NULL, "10.99.0.1");
		CU_ASSERT_EQUAL(f.len, want.len);
		CU_ASSERT_EQUAL(memcmp(f.b, want.b, want.len), 0);
		f.len = m[1]->data_len;
		memcpy(f.b, rte_pktmbuf_mtod(m[1], void *), f.len);
		CU_ASSERT_EQUAL(f.b[54], 136);
		CU_ASSERT_TRUE(frame_sums_ok(&f));
		rte_pktmbuf_free_bulk(m, 3);
	}
	port_test_close();
}

const struct unit_test answers_tests[] = {
	{"an ARP request is answered", test_arp_request_is_answered},
	{"one for others is not", test_arp_for_others_is_not},
	{"echo is answered", test_echo_is_answered},
	{"other ICMP is not", test_other_icmp_is_not},
	{"a neighbour solicitation is answered", test_solicitation_is_answered},
	{"one without an address, too", test_solicitation_without_address},
	{"duplicate address detection", test_duplicate_address_detection_is_answered_to_all},
	{"solicitations that are not", test_solicitation_that_a_router_passed_is_not},
	{"announcements", test_announcements},
	{NULL},
};
