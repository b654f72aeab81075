/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Groups: what IGMP and MLD say byte by byte and when, which queries are believed, which frames
 * come in, and how frames to a group look.
 */
#include "pmd_glue/mcast_internal.h"

#include "port_test.h"

#define V4_DEV "net_ring0 10.99.0.1/24"
#define V6_DEV "net_ring0 fd00::1/64"
#define S PMF_NS_PER_S
#define MS PMF_NS_PER_MS

static pmf_ns_t now;

static void open_at(const char *conf)
{
	port_test_open(conf, NULL);
	now = 1000 * S;
}

static int join(const char *group)
{
	return pmf_mcast_join(q, addr_of(group, 0).ip, now);
}

static void tick_at(pmf_ns_t t)
{
	now = t;
	pmf_mcast_tick(q, now);
}

static void nothing_said(void)
{
	struct frame f;

	CU_ASSERT_FALSE(port_test_tx(&f));
}

static void put_sum(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

static uint32_t add16(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	return sum;
}

/* An IGMP message in its packet: TTL 1, Router Alert. */
static struct frame igmp_frame(const char *src, const char *dst, const uint8_t *msg, uint8_t len)
{
	const struct pmf_addr s = addr_of(src, 0), d = addr_of(dst, 0);
	struct frame f = {.len = (uint16_t)PMF_MAX(60, 14 + 24 + len)};
	uint8_t *ip = f.b + 14;

	pmf_mcast_mac(d.ip, f.b);
	memcpy(f.b + 6, peer_mac, 6);
	memcpy(f.b + 12, "\x08\x00\x46\xc0", 4);
	ip[3] = (uint8_t)(24 + len);
	ip[6] = 0x40;
	ip[8] = 1;
	ip[9] = 2;
	memcpy(ip + 12, s.ip + 12, 4);
	memcpy(ip + 16, d.ip + 12, 4);
	memcpy(ip + 20, "\x94\x04\0\0", 4);
	memcpy(ip + 24, msg, len);
	frame_sums(&f);
	return f;
}

static void mld_sums(struct frame *f)
{
	uint8_t *ip = f->b + 14, *icmp = ip + 48;
	const uint32_t len = (ip[4] << 8 | ip[5]) - 8u;

	icmp[2] = icmp[3] = 0;
	put_sum(icmp + 2, add16(icmp, len, add16(ip + 8, 32, len + 58)));
}

/* An MLD message: hop limit 1, hop-by-hop options with Router Alert. */
static struct frame mld_frame(const uint8_t src[16], const char *dst, const uint8_t *msg,
			      uint8_t len)
{
	const struct pmf_addr d = addr_of(dst, 0);
	struct frame f = {.len = (uint16_t)(14 + 48 + len)};
	uint8_t *ip = f.b + 14;

	pmf_mcast_mac(d.ip, f.b);
	memcpy(f.b + 6, peer_mac, 6);
	memcpy(f.b + 12, "\x86\xdd\x60", 3);
	ip[5] = (uint8_t)(8 + len);
	ip[7] = 1;
	memcpy(ip + 8, src, 16);
	memcpy(ip + 24, d.ip, 16);
	memcpy(ip + 40, "\x3a\0\x05\x02\0\0\x01\0", 8);
	memcpy(ip + 48, msg, len);
	mld_sums(&f);
	return f;
}

/* The next frame said is @p want, from us. */
static void said(struct frame want)
{
	struct frame f;

	memcpy(want.b + 6, port->mac, 6);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL_FATAL(f.len, want.len);
	CU_ASSERT_EQUAL(memcmp(f.b, want.b, f.len), 0);
}

/* A report of one record with at most two sources. */
static void said_report4(uint8_t type, const char *group, uint8_t nsrc)
{
	uint8_t msg[24] = {0x22, [7] = 1, type, 0, 0, nsrc, [16] = 10, 1, 1, 1, 10, 1, 1, 2};

	memcpy(msg + 12, addr_of(group, 0).ip + 12, 4);
	said(igmp_frame("10.99.0.1", "224.0.0.22", msg, (uint8_t)(16 + 4 * nsrc)));
}

static void said_report6(uint8_t type, const char *group)
{
	uint8_t msg[28] = {143, [7] = 1, type};

	memcpy(msg + 12, addr_of(group, 0).ip, 16);
	said(mld_frame(port->ip6_ll, "ff02::16", msg, 28));
}

/* What the port has to say of itself is said. */
static void settle(void)
{
	struct frame f;

	pmf_mcast_announce(q, now);
	for (int i = 0; i < 3; i++)
		tick_at(now + S + 1);
	while (port_test_tx(&f))
		continue;
}

/* ---- telling ---- */

static void test_igmp_join_and_leave(void)
{
	int g;

	open_at(V4_DEV);
	g = join("239.1.2.3");
	CU_ASSERT_FATAL(g >= 0);
	said_report4(PMF_MCAST_TO_EX, "239.1.2.3", 0);
	nothing_said();
	tick_at(now + S + 1); /* again, within a second; and that is all */
	said_report4(PMF_MCAST_TO_EX, "239.1.2.3", 0);
	tick_at(now + 100 * S);
	nothing_said();
	CU_ASSERT_EQUAL(join("239.1.2.3"), g);
	pmf_mcast_leave(q, (uint16_t)g, now);
	nothing_said();
	pmf_mcast_leave(q, (uint16_t)g, now);
	said_report4(PMF_MCAST_TO_IN, "239.1.2.3", 0);
	CU_ASSERT_TRUE(pmf_mcast_leaving(port));
	tick_at(now + S + 1);
	said_report4(PMF_MCAST_TO_IN, "239.1.2.3", 0);
	CU_ASSERT_FALSE(pmf_mcast_leaving(port));
	tick_at(now + 100 * S);
	nothing_said();
	CU_ASSERT_EQUAL(q->stats.mcast_reports, 4);
	port_test_close();
}

static void test_mld_join_and_leave(void)
{
	int g;

	open_at(V6_DEV);
	settle();
	g = join("ff05::1:3");
	CU_ASSERT_FATAL(g >= 0);
	said_report6(PMF_MCAST_TO_EX, "ff05::1:3");
	tick_at(now + S + 1);
	said_report6(PMF_MCAST_TO_EX, "ff05::1:3");
	pmf_mcast_leave(q, (uint16_t)g, now);
	said_report6(PMF_MCAST_TO_IN, "ff05::1:3");
	tick_at(now + S + 1);
	said_report6(PMF_MCAST_TO_IN, "ff05::1:3");
	tick_at(now + 100 * S);
	nothing_said();
	port_test_close();
}

/* The groups by which neighbours ask for the port's addresses. */
static void test_the_ports_own_groups_are_told_with_its_addresses(void)
{
	struct frame f;

	open_at(V6_DEV);
	nothing_said();
	port->announce = true;
	pmf_queue_tick(q, now); /* flushes: net_ring gives the frames back */
	{
		struct rte_mbuf *m[PMF_BURST];
		const uint16_t n = pmf_queue_rx(q, m, PMF_BURST, now);

		CU_ASSERT_EQUAL_FATAL(n, 2); /* the announcement of the address, and the report */
		f.len = m[1]->data_len;
		memcpy(f.b, rte_pktmbuf_mtod(m[1], void *), f.len);
		rte_pktmbuf_free_bulk(m, n);
	}
	CU_ASSERT_EQUAL(f.len, 14 + 48 + 8 + 2 * 20);
	CU_ASSERT_EQUAL(f.b[62], 143);
	CU_ASSERT_EQUAL(f.b[69], 2);
	CU_ASSERT_EQUAL(memcmp(f.b + 74, addr_of("ff02::1:ff00:1", 0).ip, 16), 0);
	CU_ASSERT_EQUAL(memcmp(f.b + 94, addr_of("ff02::1:ff00:0", 0).ip, 13), 0);
	CU_ASSERT_EQUAL(memcmp(f.b + 94 + 13, port->mac + 3, 3), 0);
	port_test_close();
}

static void test_a_join_waits_for_the_link(void)
{
	open_at(V4_DEV);
	port->link_up = false;
	CU_ASSERT(join("239.1.2.3") >= 0);
	tick_at(now + 10 * S);
	nothing_said();
	port->link_up = true;
	pmf_mcast_announce(q, now);
	tick_at(now);
	said_report4(PMF_MCAST_TO_EX, "239.1.2.3", 0);
	/* down and up again: all is told anew */
	tick_at(now + S + 1);
	said_report4(PMF_MCAST_TO_EX, "239.1.2.3", 0);
	pmf_mcast_announce(q, now);
	tick_at(now);
	said_report4(PMF_MCAST_TO_EX, "239.1.2.3", 0);
	port_test_close();
}

static void test_groups_that_all_are_in_are_not_told(void)
{
	open_at(V4_DEV);
	CU_ASSERT(join("224.0.0.1") >= 0);
	tick_at(now + 10 * S);
	nothing_said();
	pmf_mcast_leave(q, 0, now);
	nothing_said();
	CU_ASSERT_EQUAL(join("ff05::1"), -ENETUNREACH);
	port_test_close();
}

/* Many records go into several reports; many groups find their end. */
static void test_many_groups(void)
{
	unsigned int frames = 0, records = 0;
	struct frame f;
	char text[32];
	int i;

	open_at(V4_DEV);
	port->link_up = false;
	for (i = 0; i < PMF_MCAST_MAX; i++) {
		snprintf(text, sizeof(text), "239.9.%d.%d", i / 256, i % 256);
		CU_ASSERT_EQUAL_FATAL(join(text), i);
	}
	CU_ASSERT_EQUAL(join("239.1.2.3"), -ENOSPC);
	CU_ASSERT_EQUAL(join("239.9.3.255"), 1023);
	port->link_up = true;
	tick_at(now + 1);
	while (port_test_tx(&f)) {
		frames++;
		records += f.b[44] << 8 | f.b[45];
	}
	CU_ASSERT_EQUAL(frames, PMF_MCAST_MAX / PMF_MCAST_RECS);
	CU_ASSERT_EQUAL(records, PMF_MCAST_MAX);
	port->link_up = false;
	for (i = 0; i < PMF_MCAST_MAX - 1; i++)
		pmf_mcast_leave(q, (uint16_t)i, now);
	port->link_up = true;
	tick_at(now + 1);
	tick_at(now + S + 1);
	while (port_test_tx(&f))
		continue;
	CU_ASSERT(join("239.1.2.3") >= 0);
	CU_ASSERT_TRUE(pmf_mcast_joined(port, addr_of("239.9.3.255", 0).ip));
	CU_ASSERT_FALSE(pmf_mcast_joined(port, addr_of("239.9.3.254", 0).ip));
	port_test_close();
}

/* ---- being asked ---- */

/* A query of version 3: half a second, robustness 3. */
static struct frame query3(const char *group, uint16_t nsrc)
{
	uint8_t msg[12 + 4 * 20] = {0x11, 5, [8] = 3, 125, (uint8_t)(nsrc >> 8), (uint8_t)nsrc};
	const struct pmf_addr g = addr_of(group, 0);

	memcpy(msg + 4, g.ip + 12, 4);
	for (unsigned int i = 0; i < PMF_MIN(nsrc, 20u); i++)
		memcpy(msg + 12 + 4 * i, (uint8_t[]){10, 1, 1, (uint8_t)(i + 1)}, 4);
	return igmp_frame("10.99.0.254", g.ip[12] ? group : "224.0.0.1", msg,
			  (uint8_t)(12 + 4 * PMF_MIN(nsrc, 20u)));
}

static void ask(struct frame f)
{
	CU_ASSERT_FALSE(port_test_rx(&f, now));
}

/* Joined, and all that is said of it unasked. */
static void open_joined(const char *conf, const char *group)
{
	open_at(conf);
	CU_ASSERT_FATAL(join(group) >= 0);
	settle();
}

/* Ticks every millisecond. @return how long until something was said; -1: not within a while */
static int ms_until_said(int most)
{
	for (int i = 1; i <= most; i++) {
		tick_at(now + MS);
		if (q->nstage)
			return i;
	}
	return -1;
}

static void test_a_general_query_is_answered_after_a_random_delay(void)
{
	int least = 10000, longest = 0;

	open_joined(V4_DEV, "239.1.2.3");
	for (int i = 0; i < 50; i++) {
		int ms;

		ask(query3("0.0.0.0", 0));
		nothing_said();
		ms = ms_until_said(502);
		CU_ASSERT_FATAL(ms > 0);
		least = PMF_MIN(least, ms);
		longest = PMF_MAX(longest, ms);
		said_report4(PMF_MCAST_IS_EX, "239.1.2.3", 0);
		CU_ASSERT_EQUAL(ms_until_said(1000), -1);
	}
	CU_ASSERT(least < 200 && longest > 300);
	CU_ASSERT_EQUAL(q->stats.mcast_queries, 50);
	/* as often as the querier wishes: 3 times */
	join("239.1.2.4");
	for (int i = 0; i < 3; i++) {
		said_report4(PMF_MCAST_TO_EX, "239.1.2.4", 0);
		tick_at(now + S + 1);
	}
	nothing_said();
	port_test_close();
}

static void test_queries_of_one_group(void)
{
	open_joined(V4_DEV, "239.1.2.3");
	ask(query3("239.1.2.3", 0));
	CU_ASSERT(ms_until_said(502) > 0);
	said_report4(PMF_MCAST_IS_EX, "239.1.2.3", 0);
	/* of sources: all of them are wanted, each named once */
	ask(query3("239.1.2.3", 1));
	ask(query3("239.1.2.3", 2));
	CU_ASSERT(ms_until_said(502) > 0);
	said_report4(PMF_MCAST_IS_IN, "239.1.2.3", 2);
	/* of sources and of all: of all */
	ask(query3("239.1.2.3", 2));
	ask(query3("239.1.2.3", 0));
	ask(query3("239.1.2.3", 1));
	CU_ASSERT(ms_until_said(502) > 0);
	said_report4(PMF_MCAST_IS_EX, "239.1.2.3", 0);
	/* too many sources to remember */
	ask(query3("239.1.2.3", 20));
	CU_ASSERT(ms_until_said(502) > 0);
	said_report4(PMF_MCAST_IS_EX, "239.1.2.3", 0);
	CU_ASSERT_EQUAL(ms_until_said(1000), -1);
	/* of a group that is not joined */
	ask(query3("239.1.2.4", 0));
	CU_ASSERT_EQUAL(ms_until_said(1000), -1);
	/* the answer to all says it too, when it is due first */
	ask(query3("0.0.0.0", 0));
	now += 500 * MS - 1;
	ask(query3("239.1.2.3", 0));
	tick_at(now + 1000 * MS);
	said_report4(PMF_MCAST_IS_EX, "239.1.2.3", 0);
	nothing_said();
	port_test_close();
}

static void test_mld_queries(void)
{
	uint8_t query[28] = {130, [4] = 500 >> 8, 500 & 255, [24] = 2, 125};
	const struct pmf_addr router = addr_of("fe80::99", 0), global = addr_of("fd00::99", 0);
	const struct pmf_addr group = addr_of("ff05::1:3", 0);
	struct frame f;

	open_joined(V6_DEV, "ff05::1:3");
	memcpy(query + 8, group.ip, 16);
	ask(mld_frame(router.ip, "ff05::1:3", query, 28));
	CU_ASSERT(ms_until_said(502) > 0);
	said_report6(PMF_MCAST_IS_EX, "ff05::1:3");
	/* of all: the two of the port itself are told, too */
	memset(query + 8, 0, 16);
	ask(mld_frame(router.ip, "ff02::1", query, 28));
	CU_ASSERT(ms_until_said(502) > 0);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(f.b[69], 3);
	CU_ASSERT_EQUAL(q->stats.mcast_queries, 2);
	/* not from a link-local address; by more than one hop; without Router Alert */
	f = mld_frame(global.ip, "ff02::1", query, 28);
	ask(f);
	f = mld_frame(router.ip, "ff02::1", query, 28);
	f.b[21] = 2;
	ask(f);
	f = mld_frame(router.ip, "ff02::1", query, 28);
	memset(f.b + 56, 0, 6);
	ask(f);
	/* options that do not end where they should; one that must be known */
	f = mld_frame(router.ip, "ff02::1", query, 28);
	f.b[57] = 9;
	ask(f);
	f = mld_frame(router.ip, "ff02::1", query, 28);
	f.b[60] = 0x81;
	ask(f);
	/* damaged; more sources than there are; of a length between versions */
	f = mld_frame(router.ip, "ff02::1", query, 28);
	f.b[70] ^= 1;
	ask(f);
	f = mld_frame(router.ip, "ff02::1", query, 28);
	f.b[14 + 48 + 27] = 1;
	mld_sums(&f);
	ask(f);
	f = mld_frame(router.ip, "ff02::1", query, 26);
	ask(f);
	CU_ASSERT_EQUAL(q->stats.mcast_bad, 8);
	CU_ASSERT_EQUAL(ms_until_said(2000), -1);
	port_test_close();
}

static void test_older_mld_queriers(void)
{
	const uint8_t query[24] = {130, [4] = 500 >> 8, 500 & 255};
	const struct pmf_addr router = addr_of("fe80::99", 0), group = addr_of("ff05::1:3", 0);
	uint8_t msg[24] = {131};
	struct frame f;
	int g;

	open_joined(V6_DEV, "ff05::1:3");
	g = join("ff05::1:3");
	memcpy(msg + 8, group.ip, 16);
	ask(mld_frame(router.ip, "ff02::1", query, 24));
	tick_at(now + 501 * MS);
	for (int i = 0; i < 3; i++) { /* in any order, one by one; the port's own among them */
		CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
		if (memcmp(f.b + 14 + 24, group.ip, 16) == 0) {
			const struct frame want = mld_frame(port->ip6_ll, "ff05::1:3", msg, 24);

			CU_ASSERT_EQUAL(memcmp(f.b + 14, want.b + 14, want.len - 14), 0);
		}
	}
	nothing_said();
	pmf_mcast_leave(q, (uint16_t)g, now);
	pmf_mcast_leave(q, (uint16_t)g, now);
	msg[0] = 132;
	said(mld_frame(port->ip6_ll, "ff02::2", msg, 24));
	port_test_close();
}

static void test_older_igmp_queriers(void)
{
	const uint8_t query2[8] = {0x11, 5}, query1[8] = {0x11};
	uint8_t msg[8] = {0x16, [4] = 239, 1, 2, 3};
	int g;

	open_joined(V4_DEV, "239.1.2.3");
	g = join("239.1.2.3");
	/* version 2: reports to the group itself, leaving to the routers */
	ask(igmp_frame("10.99.0.254", "224.0.0.1", query2, 8));
	CU_ASSERT(ms_until_said(502) > 0);
	said(igmp_frame("10.99.0.1", "239.1.2.3", msg, 8));
	nothing_said();
	pmf_mcast_leave(q, (uint16_t)g, now);
	pmf_mcast_leave(q, (uint16_t)g, now);
	msg[0] = 0x17;
	said(igmp_frame("10.99.0.1", "224.0.0.2", msg, 8));
	CU_ASSERT_EQUAL(ms_until_said(2000), -1);
	/* version 1: ten seconds, and no leaving */
	g = join("239.1.2.3");
	msg[0] = 0x16;
	said(igmp_frame("10.99.0.1", "239.1.2.3", msg, 8));
	ask(igmp_frame("10.99.0.254", "224.0.0.1", query1, 8));
	CU_ASSERT(ms_until_said(10001) > 0);
	msg[0] = 0x12;
	said(igmp_frame("10.99.0.1", "239.1.2.3", msg, 8));
	/* a newer query does not make the older querier go away */
	ask(query3("0.0.0.0", 0));
	CU_ASSERT(ms_until_said(502) > 0);
	said(igmp_frame("10.99.0.1", "239.1.2.3", msg, 8));
	pmf_mcast_leave(q, (uint16_t)g, now);
	CU_ASSERT_EQUAL(ms_until_said(2000), -1);
	/* which it does when it is silent */
	tick_at(now + 260 * S);
	join("239.1.2.3");
	said_report4(PMF_MCAST_TO_EX, "239.1.2.3", 0);
	port_test_close();
}

static void test_queries_that_are_not_believed(void)
{
	struct frame f;

	open_joined(V4_DEV, "239.1.2.3");
	f = query3("0.0.0.0", 0);
	f.b[40] ^= 1; /* damaged */
	ask(f);
	f = query3("0.0.0.0", 0);
	f.b[22] = 2; /* from beyond the link */
	frame_sums(&f);
	ask(f);
	f = query3("0.0.0.0", 0);
	f.b[34] = 1; /* without Router Alert */
	f.b[35] = 1;
	frame_sums(&f);
	ask(f);
	f = query3("0.0.0.0", 0);
	f.b[35] = 0; /* an option of no length */
	frame_sums(&f);
	ask(f);
	f = query3("239.1.2.3", 2);
	f.b[49] = 3; /* a source more than there is */
	frame_sums(&f);
	ask(f);
	f = query3("239.1.2.3", 20);
	f.b[48] = 0xff;
	frame_sums(&f);
	ask(f);
	ask(query3("0.0.0.0", 1)); /* of all, and of sources */
	f = query3("0.0.0.0", 0);
	f.b[42] = 10; /* of no group */
	frame_sums(&f);
	ask(f);
	f = query3("0.0.0.0", 0);
	f.b[17] = 24 + 10; /* of a length between versions */
	frame_sums(&f);
	ask(f);
	f.b[17] = 24 + 7;
	frame_sums(&f);
	ask(f);
	CU_ASSERT_EQUAL(q->stats.mcast_bad, 10);
	CU_ASSERT_EQUAL(q->stats.mcast_queries, 0);
	CU_ASSERT_EQUAL(ms_until_said(2000), -1);
	port_test_close();
}

/* ---- frames to groups ---- */

static void test_only_joined_groups_come_in(void)
{
	static const char *const dev[] = {V4_DEV, V6_DEV};
	static const char *const peer[] = {"10.99.0.2", "fd00::2"};
	static const char *const group[] = {"239.1.2.3", "ff05::1:3"};

	for (int v6 = 0; v6 < 2; v6++) {
		struct pmf_frame parsed;
		struct frame f;
		struct rte_mbuf *m;
		int g;

		open_at(dev[v6]);
		f = frame_udp(peer[v6], group[v6], 4000, 5000, 10);
		pmf_mcast_mac(addr_of(group[v6], 0).ip, f.b);
		CU_ASSERT_FALSE(port_test_rx(&f, now));
		CU_ASSERT_EQUAL(q->stats.rx_no_group, 1);
		g = join(group[v6]);
		m = frame_mbuf(&f);
		CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m, &parsed, now));
		CU_ASSERT_TRUE(parsed.multicast);
		CU_ASSERT_EQUAL(parsed.group, g);
		CU_ASSERT_EQUAL(parsed.dst_port, 5000);
		rte_pktmbuf_free(m);
		/* a switch may have addressed it to us alone */
		memcpy(f.b, port->mac, 6);
		CU_ASSERT_TRUE(port_test_rx(&f, now));
		pmf_mcast_leave(q, (uint16_t)g, now);
		CU_ASSERT_FALSE(port_test_rx(&f, now));
		CU_ASSERT_EQUAL(q->stats.rx_no_group, 2);
		port_test_close();
	}
}

static void test_groups_and_their_mac_addresses(void)
{
	static const struct {
		const char *ip;
		bool is;
		uint8_t mac[6];
	} t[] = {
		{"224.0.0.0", false},
		{"224.0.0.1", true, {1, 0, 0x5e, 0, 0, 1}},
		{"239.129.2.3", true, {1, 0, 0x5e, 1, 2, 3}},
		{"239.255.255.255", true, {1, 0, 0x5e, 0x7f, 0xff, 0xff}},
		{"240.0.0.1", false},
		{"10.1.2.3", false},
		{"ff02::1:ff00:1", true, {0x33, 0x33, 0xff, 0, 0, 1}},
		{"ff05::1234:5678", true, {0x33, 0x33, 0x12, 0x34, 0x56, 0x78}},
		{"ff01::1", false}, /* never leaves a host */
		{"ff10::1", false}, /* reserved */
		{"fd00::1", false},
	};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(t); i++) {
		const struct pmf_addr a = addr_of(t[i].ip, 0);
		uint8_t mac[6];

		CU_ASSERT_EQUAL(pmf_mcast_is_group(a.ip), t[i].is);
		if (!t[i].is)
			continue;
		pmf_mcast_mac(a.ip, mac);
		CU_ASSERT_EQUAL(memcmp(mac, t[i].mac, 6), 0);
	}
}

static void send_group(const char *group, uint8_t hops, bool here)
{
	const struct pmf_addr dst = addr_of(group, 7000);
	struct rte_mbuf *m = pmf_frame_alloc(q);
	struct pmf_path path;

	CU_ASSERT_EQUAL_FATAL(pmf_path_init_group(&path, port, &dst, 6000, hops), 0);
	for (unsigned int i = 0; i < 100; i++)
		rte_pktmbuf_mtod(m, uint8_t *)[i] = pattern(i);
	pmf_frame_send_group(q, &path, m, 100, here);
}

static void test_frames_to_groups_byte_by_byte(void)
{
	struct frame want;

	open_at(TEST_DEV);
	send_group("239.1.2.3", 1, false);
	want = frame_udp("10.99.0.1", "239.1.2.3", 6000, 7000, 100);
	memcpy(want.b, "\x01\0\x5e\x01\x02\x03", 6);
	want.b[20] = 0x40; /* don't fragment */
	want.b[22] = 1;
	frame_sums(&want);
	said(want);
	send_group("ff05::1:3", 9, false);
	want = frame_udp("fd00::1", "ff05::1:3", 6000, 7000, 100);
	memcpy(want.b, "\x33\x33\0\x01\0\x03", 6);
	want.b[21] = 9;
	said(want);
	nothing_said();
	port_test_close();
}

/* A member in this process gets a copy, since the device does not give the frame back. */
static void test_a_copy_for_members_here(void)
{
	struct pmf_frame parsed;
	struct rte_mbuf *m[2];
	struct frame f;

	open_at(V4_DEV);
	CU_ASSERT(join("239.1.2.3") >= 0);
	settle();
	send_group("239.1.2.3", 1, true);
	CU_ASSERT_TRUE(port_test_tx(&f));
	CU_ASSERT_TRUE(frame_sums_ok(&f));
	CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, 2, now), 1);
	CU_ASSERT_TRUE_FATAL(pmf_frame_parse(q, m[0], &parsed, now));
	CU_ASSERT_TRUE(parsed.multicast);
	CU_ASSERT_EQUAL(parsed.len, 100);
	CU_ASSERT_EQUAL(parsed.payload[99], pattern(99));
	rte_pktmbuf_free(m[0]);
	q->hairpin = true;
	send_group("239.1.2.3", 1, true);
	CU_ASSERT_TRUE(port_test_tx(&f));
	CU_ASSERT_EQUAL(pmf_queue_rx(q, m, 2, now), 0);
	port_test_close();
}

const struct unit_test mcast_tests[] = {
	{"IGMP: joining and leaving are told twice", test_igmp_join_and_leave},
	{"MLD: the same", test_mld_join_and_leave},
	{"the port's own groups", test_the_ports_own_groups_are_told_with_its_addresses},
	{"a join waits for the link", test_a_join_waits_for_the_link},
	{"groups that all are in", test_groups_that_all_are_in_are_not_told},
	{"many groups", test_many_groups},
	{"a general query", test_a_general_query_is_answered_after_a_random_delay},
	{"queries of one group", test_queries_of_one_group},
	{"MLD queries, good and bad", test_mld_queries},
	{"older MLD queriers", test_older_mld_queriers},
	{"older IGMP queriers", test_older_igmp_queriers},
	{"queries that are not believed", test_queries_that_are_not_believed},
	{"only joined groups come in", test_only_joined_groups_come_in},
	{"groups and their MAC addresses", test_groups_and_their_mac_addresses},
	{"frames to groups", test_frames_to_groups_byte_by_byte},
	{"a copy for members here", test_a_copy_for_members_here},
	{NULL},
};
