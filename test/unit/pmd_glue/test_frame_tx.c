/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Headers that are put before payloads: every field, the sums, and where the frame goes.
 */
#include "port_test.h"

#define STATIC_PEER " neigh=10.99.0.2=02:00:00:00:00:02 neigh=fd00::2=02:00:00:00:00:02"

static struct pmf_path path_to(const char *ip)
{
	const struct pmf_addr dst = addr_of(ip, 7000);
	struct pmf_path path;

	CU_ASSERT_EQUAL_FATAL(pmf_path_init(&path, port, &dst, 6000), 0);
	return path;
}

static void send_pattern(struct pmf_path *path, uint16_t len, bool ect)
{
	struct rte_mbuf *m = pmf_frame_alloc(q);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	for (unsigned int i = 0; i < len; i++)
		rte_pktmbuf_mtod(m, uint8_t *)[i] = pattern(i);
	pmf_frame_send(q, path, m, len, ect, 1);
}

static void test_ipv4_frame_byte_by_byte(void)
{
	struct pmf_path path;
	struct frame f, want;

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	port->dscp = 46;
	path = path_to("10.99.0.2");
	send_pattern(&path, 100, true);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	want = frame_udp("10.99.0.1", "10.99.0.2", 6000, 7000, 100);
	memcpy(want.b, peer_mac, 6);
	memcpy(want.b + 6, port->mac, 6);
	want.b[15] = 46 << 2 | 2; /* ECT(0) */
	want.b[20] = 0x40;	  /* don't fragment */
	frame_sums(&want);
	CU_ASSERT_EQUAL_FATAL(f.len, want.len);
	CU_ASSERT_EQUAL(memcmp(f.b, want.b, f.len), 0);
	port_test_close();
}

static void test_ipv6_frame_byte_by_byte(void)
{
	struct pmf_path path;
	struct frame f, want;

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	port->dscp = 46;
	path = path_to("fd00::2");
	send_pattern(&path, 101, true);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	want = frame_udp("fd00::1", "fd00::2", 6000, 7000, 101);
	memcpy(want.b, peer_mac, 6);
	memcpy(want.b + 6, port->mac, 6);
	want.b[14] = 0x60 | 46 >> 2;
	want.b[15] = (46 & 3) << 6 | 0x20;
	frame_sums(&want);
	CU_ASSERT_EQUAL_FATAL(f.len, want.len);
	CU_ASSERT_EQUAL(memcmp(f.b, want.b, f.len), 0);
	port_test_close();
}

/* The path keeps nothing of the frame before. */
static void test_every_length_has_right_sums(void)
{
	struct pmf_path paths[2];

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	paths[0] = path_to("10.99.0.2");
	paths[1] = path_to("fd00::2");
	for (uint16_t len = 0; len < 1800; len++) {
		struct frame f;

		send_pattern(&paths[len & 1], len, len & 2);
		CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
		CU_ASSERT_FATAL(frame_sums_ok(&f));
		CU_ASSERT_EQUAL(f.b[15] & 0x33, len & 2 ? (len & 1 ? 0x20 : 0x02) : 0);
	}
	port_test_close();
}

static void test_code_point_changes(void)
{
	struct pmf_path v4, v6;
	struct frame f;

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	port->dscp = 63;
	v4 = path_to("10.99.0.2");
	v6 = path_to("fd00::2");
	pmf_path_set_dscp(&v4, 46);
	send_pattern(&v4, 100, true);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(f.b[15], 46 << 2 | 2);
	CU_ASSERT(frame_sums_ok(&f));
	pmf_path_set_dscp(&v6, 46);
	send_pattern(&v6, 100, true);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(f.b[14], 0x60 | 46 >> 2);
	CU_ASSERT_EQUAL(f.b[15], (46 & 3) << 6 | 0x20);
	CU_ASSERT(frame_sums_ok(&f));
	port_test_close();
}

static void test_source_port_changes(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	path = path_to("10.99.0.2");
	pmf_path_set_sport(&path, 0xabcd);
	send_pattern(&path, 10, false);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(f.b[34] << 8 | f.b[35], 0xabcd);
	CU_ASSERT_TRUE(frame_sums_ok(&f));
	port_test_close();
}

static void test_vlan_tag(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV STATIC_PEER " vlan=259", NULL);
	path = path_to("10.99.0.2");
	send_pattern(&path, 10, false);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(memcmp(f.b + 12, "\x81\x00\x01\x03\x08\x00\x45", 7), 0);
	memmove(f.b + 12, f.b + 16, f.len - 16u);
	f.len = (uint16_t)(f.len - 4);
	CU_ASSERT_TRUE(frame_sums_ok(&f));
	port_test_close();
}

static void test_large_payload(void)
{
	struct pmf_path path;
	struct rte_mbuf *m;

	port_test_open(TEST_DEV STATIC_PEER " mtu=9000", NULL);
	CU_ASSERT_EQUAL(port->max_payload, 9000 - 48);
	path = path_to("fd00::2");
	send_pattern(&path, port->max_payload, false);
	CU_ASSERT_EQUAL_FATAL(q->nstage, 1);
	m = q->stage[0];
	q->nstage = 0;
	CU_ASSERT_EQUAL(m->pkt_len, 9014);
	CU_ASSERT_EQUAL(m->nb_segs, 1);
	rte_pktmbuf_free(m);
	port_test_close();
}

static void test_offloaded_sum_covers_the_pseudo_header(void)
{
	struct pmf_path path;
	struct rte_mbuf *m;
	uint32_t sum = 0;
	const uint8_t *p;

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	port->tx_cksum_udp = true;
	path = path_to("10.99.0.2");
	send_pattern(&path, 1000, false);
	CU_ASSERT_EQUAL_FATAL(q->nstage, 1);
	m = q->stage[0];
	q->nstage = 0;
	CU_ASSERT_EQUAL(m->ol_flags, RTE_MBUF_F_TX_UDP_CKSUM | RTE_MBUF_F_TX_IPV4);
	CU_ASSERT_EQUAL(m->l2_len, 14);
	CU_ASSERT_EQUAL(m->l3_len, 20);
	p = rte_pktmbuf_mtod(m, const uint8_t *);
	for (unsigned int i = 26; i < 34; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	sum += 17 + 1008;
	sum = (sum & 0xffff) + (sum >> 16);
	CU_ASSERT_EQUAL((uint32_t)(p[40] << 8 | p[41]), sum);
	rte_pktmbuf_free(m);
	port_test_close();
}

static void test_own_address_goes_through_the_loop_ring(void)
{
	struct pmf_path path;
	struct rte_mbuf *m[PMF_BURST];
	struct pmf_frame f;

	port_test_open(TEST_DEV, NULL);
	for (unsigned int v6 = 0; v6 < 2; v6++) {
		path = path_to(v6 ? "fd00::1" : "10.99.0.1");
		CU_ASSERT_TRUE(path.local);
		send_pattern(&path, 500, true);
		CU_ASSERT_EQUAL(q->nstage, 0);
		CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, 1), 1);
		CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m[0], &f, 1));
		CU_ASSERT_EQUAL(f.len, 500);
		CU_ASSERT_EQUAL(f.dst_port, 7000);
		CU_ASSERT_EQUAL(f.src_port, 6000);
		CU_ASSERT_EQUAL(f.ecn, 2);
		CU_ASSERT_EQUAL(f.payload[499], pattern(499));
		rte_pktmbuf_free(m[0]);
	}
	CU_ASSERT_EQUAL(q->stats.loop_frames, 2);
	port_test_close();
}

static void test_full_loop_ring_is_counted(void)
{
	struct rte_mbuf *m[PMF_BURST];
	struct pmf_path path;
	unsigned int got = 0;
	uint16_t n;

	port_test_open(TEST_DEV, NULL);
	path = path_to("10.99.0.1");
	for (unsigned int i = 0; i < 1100; i++)
		send_pattern(&path, 8, false);
	while ((n = pmf_queue_rx(q, m, PMF_BURST, 1)) > 0) {
		got += n;
		rte_pktmbuf_free_bulk(m, n);
	}
	CU_ASSERT_EQUAL(got, q->stats.loop_frames);
	CU_ASSERT_EQUAL(got + q->stats.loop_full, 1100);
	CU_ASSERT_TRUE(q->stats.loop_full > 0);
	port_test_close();
}

static void test_device_gives_back_its_own(void)
{
	struct rte_mbuf *m[PMF_BURST];
	struct pmf_path path;
	struct pmf_frame f;

	port_test_open(TEST_DEV, NULL);
	q->hairpin = true;
	path = path_to("10.99.0.1");
	send_pattern(&path, 50, false);
	pmf_queue_flush(q);
	CU_ASSERT_EQUAL(q->stats.tx_frames, 1);
	CU_ASSERT_EQUAL(q->stats.tx_bytes, 92);
	CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, 1), 1);
	CU_ASSERT_EQUAL(q->stats.rx_bytes, 92);
	CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m[0], &f, 1));
	CU_ASSERT_EQUAL(f.len, 50);
	rte_pktmbuf_free(m[0]);
	port_test_close();
}

static void test_destinations_without_a_way(void)
{
	static const char *const none[] = {"224.0.0.1", "255.255.255.255", "0.0.0.1", "ff02::1",
					   "::"};
	struct pmf_addr dst;
	struct pmf_path path;

	port_test_open(TEST_DEV, NULL);
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(none); i++) {
		dst = addr_of(none[i], 1);
		CU_ASSERT_EQUAL(pmf_path_init(&path, port, &dst, 1), -ENETUNREACH);
	}
	port_test_close();

	port_test_open("net_ring0 10.99.0.1/20", NULL);
	dst = addr_of("fd00::2", 1);
	CU_ASSERT_EQUAL(pmf_path_init(&path, port, &dst, 1), -ENETUNREACH);
	dst = addr_of("10.99.15.255", 1);
	CU_ASSERT_EQUAL(pmf_path_init(&path, port, &dst, 1), 0);
	dst = addr_of("10.99.16.0", 1);
	CU_ASSERT_EQUAL(pmf_path_init(&path, port, &dst, 1), -ENETUNREACH);
	port_test_close();
}

static void test_stage_keeps_what_the_device_refuses(void)
{
	struct rte_mbuf *m[PMF_BURST];
	struct pmf_path path;
	unsigned int sent = 0, got = 0, n;

	port_test_open(TEST_DEV STATIC_PEER, NULL);
	path = path_to("10.99.0.2");
	/* net_ring takes 1,023 frames; nobody receives. */
	while (pmf_queue_room(q) > 0) {
		send_pattern(&path, 8, false);
		sent++;
		if (pmf_queue_room(q) == 0)
			pmf_queue_flush(q);
	}
	CU_ASSERT_EQUAL(sent, q->stats.tx_frames + q->nstage);
	CU_ASSERT_TRUE(q->stats.tx_stalls > 0);
	/* Room again: the rest leaves, in order and none lost. */
	do {
		n = pmf_queue_rx(q, m, PMF_BURST, 1);
		got += n;
		rte_pktmbuf_free_bulk(m, n);
		pmf_queue_flush(q);
	} while (n > 0);
	CU_ASSERT_EQUAL(got, sent);
	/* But a link that is down gets rid of it. */
	port->started = false;
	port->link_up = false;
	send_pattern(&path, 8, false);
	pmf_queue_flush(q);
	CU_ASSERT_EQUAL(q->nstage, 0);
	CU_ASSERT_EQUAL(q->stats.tx_link_down, 1);
	port->started = true;
	port_test_close();
}

static void test_pool_runs_dry_and_recovers(void)
{
	static struct rte_mbuf *all[65536];
	unsigned int n = 0;

	port_test_open(TEST_DEV, NULL);
	while ((all[n] = pmf_frame_alloc(q)))
		n++;
	CU_ASSERT_EQUAL(n, port->tx_pool->size);
	CU_ASSERT_EQUAL(q->stats.tx_nobuf, 1);
	rte_pktmbuf_free_bulk(all, n);
	all[0] = pmf_frame_alloc(q);
	CU_ASSERT_PTR_NOT_NULL_FATAL(all[0]);
	CU_ASSERT_TRUE(rte_pktmbuf_headroom(all[0]) >= PMF_L2L3L4_MAX);
	CU_ASSERT_TRUE(rte_pktmbuf_tailroom(all[0]) >= port->max_payload);
	rte_pktmbuf_free(all[0]);
	port_test_close();
}

const struct unit_test frame_tx_tests[] = {
	{"an IPv4 frame, byte by byte", test_ipv4_frame_byte_by_byte},
	{"an IPv6 frame, byte by byte", test_ipv6_frame_byte_by_byte},
	{"another code point", test_code_point_changes},
	{"every length has right sums", test_every_length_has_right_sums},
	{"the source port changes", test_source_port_changes},
	{"a VLAN tag", test_vlan_tag},
	{"the largest payload", test_large_payload},
	{"an offloaded sum", test_offloaded_sum_covers_the_pseudo_header},
	{"our own address: the loop ring", test_own_address_goes_through_the_loop_ring},
	{"a full loop ring", test_full_loop_ring_is_counted},
	{"our own address: the device", test_device_gives_back_its_own},
	{"destinations without a way", test_destinations_without_a_way},
	{"the stage keeps what the device refuses", test_stage_keeps_what_the_device_refuses},
	{"the pool runs dry and recovers", test_pool_runs_dry_and_recovers},
	{NULL},
};
