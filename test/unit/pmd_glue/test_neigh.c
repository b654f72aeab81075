/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The neighbour table under a clock of the test's: who is asked when, what waits, what is believed.
 */
#include "pmd_glue/neigh.h"

#include "port_test.h"

#define MS PMF_NS_PER_MS

static const uint8_t other_mac[6] = {0x02, 0, 0, 0, 0, 0x66};

static struct pmf_path path_to(const char *ip)
{
	const struct pmf_addr dst = addr_of(ip, 7000);
	struct pmf_path path;

	CU_ASSERT_EQUAL_FATAL(pmf_path_init(&path, port, &dst, 6000), 0);
	return path;
}

static void send_byte(struct pmf_path *path, uint8_t byte, pmf_ns_t now)
{
	struct rte_mbuf *m = pmf_frame_alloc(q);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	*rte_pktmbuf_mtod(m, uint8_t *) = byte;
	pmf_frame_send(q, path, m, 1, false, now);
}

static bool is_arp_request(const struct frame *f, const char *ip)
{
	const struct pmf_addr a = addr_of(ip, 0);

	return f->b[12] == 0x08 && f->b[13] == 0x06 && f->b[21] == 1 &&
	       memcmp(f->b + 38, a.ip + 12, 4) == 0;
}

static bool is_broadcast(const struct frame *f)
{
	return memcmp(f->b, "\xff\xff\xff\xff\xff\xff", 6) == 0;
}

/* A tick whose frames stay on the stage, for port_test_tx(). */
static void tick(pmf_ns_t now)
{
	pmf_neigh_tick(q, now);
}

static void answer(const uint8_t mac[6], const char *ip, pmf_ns_t now)
{
	const struct frame f = frame_arp(2, mac, ip, port->mac, "10.99.0.1");

	CU_ASSERT_FALSE(port_test_rx(&f, now));
}

/* The next frame is UDP to @p mac with this byte. */
static bool next_is(const uint8_t mac[6], uint8_t byte)
{
	struct frame f;

	return port_test_tx(&f) && f.b[12] == 8 && f.b[13] == 0 && memcmp(f.b, mac, 6) == 0 &&
	       f.b[42] == byte && frame_sums_ok(&f);
}

/* A port, and byte 1 waiting at 1 for who has been asked for. */
static struct pmf_path asked(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	path = path_to("10.99.0.2");
	send_byte(&path, 1, 1);
	CU_ASSERT_TRUE(port_test_tx(&f) && is_arp_request(&f, "10.99.0.2"));
	return path;
}

/* And answered at 2: the byte has left for peer_mac. */
static struct pmf_path met(void)
{
	struct pmf_path path = asked();

	answer(peer_mac, "10.99.0.2", 2);
	CU_ASSERT_TRUE(next_is(peer_mac, 1));
	return path;
}

static void test_frames_wait_for_the_answer(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	path = path_to("10.99.0.2");
	CU_ASSERT_EQUAL(q->nstage, 0); /* a path alone asks nobody */
	for (uint8_t i = 1; i <= 3; i++)
		send_byte(&path, i, 1);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2") && is_broadcast(&f));
	CU_ASSERT_FALSE(port_test_tx(&f));
	answer(peer_mac, "10.99.0.2", 2);
	for (uint8_t i = 1; i <= 3; i++)
		CU_ASSERT_TRUE(next_is(peer_mac, i));
	/* From here on they leave at once. */
	send_byte(&path, 4, 3);
	CU_ASSERT_TRUE(next_is(peer_mac, 4));
	port_test_close();
}

static void test_ipv6_resolves_too(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	path = path_to("fd00::2");
	send_byte(&path, 1, 1);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(f.b[54], 135);
	CU_ASSERT_EQUAL(memcmp(f.b, "\x33\x33\xff\0\0\2", 6), 0);
	CU_ASSERT_TRUE(frame_sums_ok(&f));
	f = frame_nd(136, "fd00::2", "fd00::1", "fd00::2", peer_mac, 0x60);
	CU_ASSERT_FALSE(port_test_rx(&f, 2));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(memcmp(f.b, peer_mac, 6), 0);
	CU_ASSERT_EQUAL(f.b[62], 1);
	port_test_close();
}

static void test_oldest_waiting_frame_gives_way(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	path = path_to("10.99.0.2");
	for (uint8_t i = 1; i <= PMF_NEIGH_PEND + 3; i++)
		send_byte(&path, i, 1);
	CU_ASSERT_EQUAL(q->stats.tx_no_neigh, 3);
	CU_ASSERT_TRUE(port_test_tx(&f)); /* one request only */
	answer(peer_mac, "10.99.0.2", 2);
	for (uint8_t i = 4; i <= PMF_NEIGH_PEND + 3; i++)
		CU_ASSERT_TRUE(next_is(peer_mac, i));
	CU_ASSERT_FALSE(port_test_tx(&f));
	port_test_close();
}

static void test_requests_repeat_and_end(void)
{
	/* When each request leaves, in ms from the first frame on. */
	static const unsigned int when[] = {5, 25, 125, 1125, 2125};
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	path = path_to("10.99.0.2");
	send_byte(&path, 1, MS);
	CU_ASSERT_TRUE(port_test_tx(&f));
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(when); i++) {
		tick((1 + when[i]) * MS - 1);
		CU_ASSERT_FALSE(port_test_tx(&f));
		tick((1 + when[i]) * MS);
		CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
		CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2") && is_broadcast(&f));
	}
	CU_ASSERT_EQUAL(q->stats.tx_no_neigh, 0);
	tick(3126 * MS);
	CU_ASSERT_EQUAL(q->stats.tx_no_neigh, 1);
	CU_ASSERT_FALSE(port_test_tx(&f));
	tick(60000 * MS);
	CU_ASSERT_FALSE(port_test_tx(&f));
	/* The next frame begins anew. */
	send_byte(&path, 2, 60001 * MS);
	CU_ASSERT_TRUE(port_test_tx(&f));
	answer(peer_mac, "10.99.0.2", 60002 * MS);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	port_test_close();
}

static void test_unasked_answers_change_nothing(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	/* Of an unknown neighbour: not even an entry. */
	answer(other_mac, "10.99.0.2", 1);
	CU_ASSERT_EQUAL(port->neigh->count, 0);
	path = path_to("10.99.0.2");
	answer(other_mac, "10.99.0.2", 1);
	send_byte(&path, 1, 1);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2"));
	answer(peer_mac, "10.99.0.2", 2);
	CU_ASSERT_TRUE(next_is(peer_mac, 1));
	/* A second answer with another address, right behind: the first one stands. */
	answer(other_mac, "10.99.0.2", 3);
	send_byte(&path, 2, 3);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	CU_ASSERT_FALSE(port_test_tx(&f));
	port_test_close();
}

/* A peer that restarted has a new MAC address, and says so; it is asked before it is believed. */
static void test_new_address_is_verified(void)
{
	struct pmf_path path = met();
	struct frame f;

	f = frame_arp(1, other_mac, "10.99.0.2", NULL, "10.99.0.2"); /* gratuitous */
	CU_ASSERT_FALSE(port_test_rx(&f, 1000 * MS));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2") && is_broadcast(&f));
	/* Until the answer the old one is used. */
	send_byte(&path, 2, 1000 * MS);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	answer(other_mac, "10.99.0.2", 1001 * MS);
	send_byte(&path, 3, 1002 * MS);
	CU_ASSERT_TRUE(next_is(other_mac, 3));
	port_test_close();
}

static void test_request_for_us_teaches_what_is_unknown(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	path = path_to("10.99.0.2");
	f = frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.1");
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_TRUE(port_test_tx(&f)); /* our answer */
	send_byte(&path, 1, 2);
	CU_ASSERT_TRUE(next_is(peer_mac, 1));
	port_test_close();
}

static void test_announcement_hastens_the_request(void)
{
	struct frame f;

	asked();
	f = frame_arp(1, peer_mac, "10.99.0.2", NULL, "10.99.0.2");
	CU_ASSERT_FALSE(port_test_rx(&f, 2));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2"));
	answer(peer_mac, "10.99.0.2", 3);
	CU_ASSERT_TRUE(next_is(peer_mac, 1));
	port_test_close();
}

static void test_old_entries_are_probed_when_used(void)
{
	struct pmf_path path = met();
	struct frame f;
	pmf_ns_t t;

	/* Nobody sends: nobody asks. */
	t = 31 * PMF_NS_PER_S;
	tick(t);
	tick(t + 1000 * MS);
	CU_ASSERT_FALSE(port_test_tx(&f));
	/* A frame leaves at once, and the neighbour alone is asked. */
	send_byte(&path, 2, t + 2000 * MS);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	tick(t + 2001 * MS);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2"));
	CU_ASSERT_EQUAL(memcmp(f.b, peer_mac, 6), 0);
	answer(peer_mac, "10.99.0.2", t + 2002 * MS);
	tick(t + 10000 * MS);
	CU_ASSERT_FALSE(port_test_tx(&f));
	port_test_close();
}

static void test_silent_neighbour_is_given_up(void)
{
	struct pmf_path path = met();
	struct frame f;
	pmf_ns_t t = 31 * PMF_NS_PER_S;
	unsigned int alone = 0, all = 0;

	tick(t);
	send_byte(&path, 2, t);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	for (unsigned int i = 0; i < 10000; i++) {
		tick(t += MS);
		while (port_test_tx(&f)) {
			alone += !is_broadcast(&f);
			all += is_broadcast(&f);
		}
	}
	CU_ASSERT_EQUAL(alone, 3);
	CU_ASSERT_EQUAL(all, 3);
	/* Now it waits again. */
	send_byte(&path, 3, t);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.2"));
	answer(other_mac, "10.99.0.2", t + 1);
	CU_ASSERT_TRUE(next_is(other_mac, 3));
	port_test_close();
}

static void test_gateway_for_what_is_off_link(void)
{
	struct pmf_path a, b;
	struct frame f;

	port_test_open(TEST_DEV, NULL);
	a = path_to("192.0.2.9");
	b = path_to("198.51.100.7");
	CU_ASSERT_EQUAL(a.neigh, b.neigh);
	send_byte(&a, 1, 1);
	send_byte(&b, 2, 1);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.254"));
	answer(peer_mac, "10.99.0.254", 2);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(memcmp(f.b, peer_mac, 6), 0);
	CU_ASSERT_EQUAL(memcmp(f.b + 30, "\xc0\x00\x02\x09", 4), 0);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	port_test_close();
}

static void test_static_entries_stand(void)
{
	struct pmf_path path;
	struct frame f;

	port_test_open(TEST_DEV " neigh=10.99.0.2=02:00:00:00:00:02", NULL);
	path = path_to("10.99.0.2");
	answer(other_mac, "10.99.0.2", 1);
	f = frame_arp(1, other_mac, "10.99.0.2", NULL, "10.99.0.1");
	CU_ASSERT_FALSE(port_test_rx(&f, 1));
	CU_ASSERT_TRUE(port_test_tx(&f));
	tick(3600 * PMF_NS_PER_S);
	send_byte(&path, 1, 3600 * PMF_NS_PER_S);
	CU_ASSERT_TRUE(next_is(peer_mac, 1));
	port_test_close();
}

static void test_link_up_asks_again(void)
{
	struct frame f;

	asked();
	tick(200 * MS);
	CU_ASSERT_TRUE(port_test_tx(&f));
	pmf_neigh_kick(q, 201 * MS);
	CU_ASSERT_TRUE(port_test_tx(&f));
	/* And the quick retries come again. */
	tick(206 * MS);
	CU_ASSERT_TRUE(port_test_tx(&f));
	answer(peer_mac, "10.99.0.2", 207 * MS);
	CU_ASSERT_TRUE(next_is(peer_mac, 1));
	port_test_close();
}

static void test_table_fills_up(void)
{
	struct pmf_path path;
	struct pmf_addr dst = addr_of("fd00::1:0:0", 1);
	int ret = 0;
	unsigned int i;

	port_test_open(TEST_DEV, NULL);
	for (i = 0; i <= PMF_NEIGH_MAX && ret == 0; i++) {
		dst.ip[14] = (uint8_t)(i >> 8);
		dst.ip[15] = (uint8_t)i;
		ret = pmf_path_init(&path, port, &dst, 1);
		CU_ASSERT_FATAL(ret != 0 || path.neigh == i);
	}
	CU_ASSERT_EQUAL(ret, -ENOBUFS);
	CU_ASSERT_EQUAL(i, PMF_NEIGH_MAX + 1);
	/* Known ones are still found. */
	dst.ip[14] = dst.ip[15] = 0;
	CU_ASSERT_EQUAL(pmf_path_init(&path, port, &dst, 1), 0);
	CU_ASSERT_EQUAL(path.neigh, 0);
	port_test_close();
}

/* An address of the link for each number. */
static struct pmf_addr nth(unsigned int i)
{
	struct pmf_addr a = addr_of("fd00::1:0:0", 7000);

	for (unsigned int k = 0; k < 4; k++)
		a.ip[12 + k] = (uint8_t)(i >> (24 - 8 * k));
	return a;
}

/* What is staged, and what found no room there and has come back from the device. */
static void throw_away(void)
{
	struct rte_mbuf *m[PMF_BURST];
	uint16_t n;

	rte_pktmbuf_free_bulk(q->stage, q->nstage);
	q->nstage = 0;
	while ((n = rte_eth_rx_burst(q->port_id, 0, m, PMF_BURST)) != 0)
		rte_pktmbuf_free_bulk(m, n);
}

/* Nobody answers, until nothing waits any more. */
static void let_time_pass(pmf_ns_t from)
{
	for (pmf_ns_t t = 1; t < 10; t++) {
		tick(from + t * PMF_NS_PER_S);
		throw_away();
	}
	CU_ASSERT_EQUAL(port->neigh->npend, 0);
}

/* As a stranger is answered: one frame, or none for want of something, and the path is gone. */
static void answer_stranger(unsigned int i, pmf_ns_t now)
{
	const struct pmf_addr dst = nth(i);
	struct pmf_path path;

	CU_ASSERT_EQUAL_FATAL(pmf_path_init(&path, port, &dst, 1), 0);
	if (i & 1)
		send_byte(&path, 1, now);
	pmf_path_fini(&path, q);
	throw_away();
}

static void test_strangers_leave_room(void)
{
	unsigned int free_before;
	struct pmf_path path = met();
	struct frame f;

	free_before = rte_mempool_avail_count(q->tx_pool);
	for (unsigned int i = 0; i < 20 * PMF_NEIGH_MAX; i++)
		answer_stranger(i, 3 + i);
	/* Neither entries nor buffers, beyond what is kept of the last ones. */
	CU_ASSERT_EQUAL(port->neigh->nused, 1);
	CU_ASSERT_EQUAL(port->neigh->nunused, PMF_NEIGH_UNUSED);
	CU_ASSERT_TRUE(port->neigh->count <= PMF_NEIGH_UNUSED + 2);
	CU_ASSERT_TRUE(rte_mempool_avail_count(q->tx_pool) + PMF_NEIGH_PEND_ALL >= free_before);
	/* Whom we talk to is known as before, and whom we want to talk to becomes known. */
	send_byte(&path, 2, 200000);
	CU_ASSERT_TRUE(next_is(peer_mac, 2));
	path = path_to("10.99.0.3");
	send_byte(&path, 3, 200000);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_TRUE(is_arp_request(&f, "10.99.0.3"));
	answer(other_mac, "10.99.0.3", 200001);
	CU_ASSERT_TRUE(next_is(other_mac, 3));
	let_time_pass(200001);
	port_test_close();
}

static void test_waiting_frames_are_bounded_in_all(void)
{
	static struct pmf_path path[2 * PMF_NEIGH_PEND_ALL / PMF_NEIGH_PEND];

	port_test_open(TEST_DEV, NULL);
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(path); i++) {
		const struct pmf_addr dst = nth(i);

		CU_ASSERT_EQUAL_FATAL(pmf_path_init(&path[i], port, &dst, 1), 0);
		for (uint8_t k = 0; k < PMF_NEIGH_PEND; k++)
			send_byte(&path[i], k, 1);
		throw_away();
		CU_ASSERT_TRUE(port->neigh->npend <= PMF_NEIGH_PEND_ALL);
	}
	CU_ASSERT_EQUAL(port->neigh->npend, PMF_NEIGH_PEND_ALL);
	CU_ASSERT_EQUAL(q->stats.tx_no_neigh, PMF_NEIGH_PEND_ALL);
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(path); i++)
		pmf_path_fini(&path[i], q);
	CU_ASSERT_EQUAL(port->neigh->nused, 0);
	let_time_pass(1);
	port_test_close();
}

/* Whatever goes, the others are found as before: addresses that share a bucket among them. */
static void test_forgotten_ones_hide_nobody(void)
{
	enum { PEERS = 3000 };
	static struct pmf_path path[PEERS];

	port_test_open(TEST_DEV, NULL);
	for (unsigned int i = 0; i < PEERS; i++) {
		const struct pmf_addr dst = nth(i);

		CU_ASSERT_EQUAL_FATAL(pmf_path_init(&path[i], port, &dst, 1), 0);
	}
	for (unsigned int i = 0; i < PEERS; i += 3)
		pmf_path_fini(&path[i], q);
	for (unsigned int i = PEERS; i < 2 * PEERS; i++)
		answer_stranger(i, 1);
	for (unsigned int i = 0; i < PEERS; i++) {
		const struct pmf_addr dst = nth(i);
		struct pmf_path again;

		if (i % 3 == 0)
			continue;
		CU_ASSERT_EQUAL_FATAL(pmf_path_init(&again, port, &dst, 1), 0);
		CU_ASSERT_EQUAL(again.neigh, path[i].neigh);
		pmf_path_fini(&again, q);
	}
	let_time_pass(1);
	port_test_close();
}

const struct unit_test neigh_tests[] = {
	{"frames wait for the answer", test_frames_wait_for_the_answer},
	{"IPv6 resolves, too", test_ipv6_resolves_too},
	{"the oldest waiting frame gives way", test_oldest_waiting_frame_gives_way},
	{"requests repeat, and end", test_requests_repeat_and_end},
	{"unasked answers change nothing", test_unasked_answers_change_nothing},
	{"a new address is verified", test_new_address_is_verified},
	{"a request for us teaches", test_request_for_us_teaches_what_is_unknown},
	{"an announcement hastens the request", test_announcement_hastens_the_request},
	{"old entries are probed when used", test_old_entries_are_probed_when_used},
	{"a silent neighbour is given up", test_silent_neighbour_is_given_up},
	{"the gateway for what is off-link", test_gateway_for_what_is_off_link},
	{"static entries stand", test_static_entries_stand},
	{"link up: asked again", test_link_up_asks_again},
	{"the table fills up", test_table_fills_up},
	{"strangers leave room", test_strangers_leave_room},
	{"waiting frames are bounded in all", test_waiting_frames_are_bounded_in_all},
	{"forgotten ones hide nobody", test_forgotten_ones_hide_nobody},
	{NULL},
};
