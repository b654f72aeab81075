/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * First contact: what a stranger gets, and which answers are believed.
 */
#include "proto/contact.h"

#include "../unit.h"

#define INC 0x1111222233334444ull
#define PEER_INC 0x5555666677778888ull
#define PEER_CONN 0x9999aaaa00000007ull
#define NOW (100 * PMF_NS_PER_S)
#define PORT 7471

static const struct pmf_contact_key key = {{1, 2}};
static const struct pmf_flow_conf conf = {
	.first_credit = 64 * 1024, .rx_credit = 1024 * 1024, .max_payload = 8972};

static struct pmf_addr peer_ip(void)
{
	static const uint8_t be[4] = {10, 99, 0, 2};
	struct pmf_addr a;

	pmf_addr_set_v4(&a, be, 0);
	return a;
}

static struct pmf_hdr hello(void)
{
	return (struct pmf_hdr){.type = PMF_PT_HELLO,
				.inc = PEER_INC,
				.my_conn = PEER_CONN,
				.nonce = 42,
				.port = 4000,
				.max_payload = 1472};
}

/* The challenge to @p h as its sender decodes it; false: there was none. */
static bool challenge(const struct pmf_hdr *h, size_t len, bool known, struct pmf_hdr *out)
{
	static uint8_t buf[256];
	struct pmf_addr src = peer_ip(), to;
	size_t n = pmf_contact_challenge(&key, &conf, h, len, &src, PORT, INC, known, NOW, buf,
					 sizeof(buf), &to);

	CU_ASSERT_TRUE(n <= len);
	if (n == 0)
		return false;
	CU_ASSERT_EQUAL(to.port, h->port);
	CU_ASSERT_EQUAL(memcmp(to.ip, src.ip, sizeof(to.ip)), 0);
	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(buf, n, out), 0);
	return true;
}

/* The OPEN with which the sender of hello() answers. */
static struct pmf_hdr answer(void)
{
	struct pmf_hdr h = hello(), c;

	CU_ASSERT_TRUE_FATAL(challenge(&h, 64, false, &c));
	return (struct pmf_hdr){.type = PMF_PT_OPEN,
				.inc = PEER_INC,
				.peer_inc = c.inc,
				.my_conn = PEER_CONN,
				.cookie_time = c.cookie_time,
				.cookie_mac = c.cookie_mac,
				.port = 4000,
				.max_payload = 1472};
}

static int check(const struct pmf_hdr *open, pmf_ns_t now)
{
	struct pmf_addr src = peer_ip();
	struct pmf_contact c;

	return pmf_contact_check(&key, open, &src, PORT, INC, now, &c);
}

static void test_siphash_vectors(void)
{
	/* Appendix A of the paper, and the reference implementation's table at 0 and 8 bytes. */
	const struct pmf_contact_key k = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
	uint8_t in[16];

	for (int i = 0; i < 16; i++)
		in[i] = i;
	CU_ASSERT_EQUAL(pmf_siphash(&k, in, 15), 0xa129ca6149be45e5);
	CU_ASSERT_EQUAL(pmf_siphash(&k, in, 0), 0x726fdb47dd0e0e31);
	CU_ASSERT_EQUAL(pmf_siphash(&k, in, 8), 0x93f5f5799a932462);
}

static void test_challenge_says(void)
{
	struct pmf_hdr h = hello(), c;

	CU_ASSERT_TRUE_FATAL(challenge(&h, 64, false, &c));
	CU_ASSERT_EQUAL(c.type, PMF_PT_CHALLENGE);
	CU_ASSERT_EQUAL(c.conn, PEER_CONN);
	CU_ASSERT_EQUAL(c.inc, INC);
	CU_ASSERT_EQUAL(c.peer_inc, PEER_INC);
	CU_ASSERT_EQUAL(c.nonce, 42);
	CU_ASSERT_EQUAL(c.credit, 1024);
	CU_ASSERT_EQUAL(c.max_payload, 8972);
	CU_ASSERT_EQUAL(c.flags, 0);
}

static void test_verify(void)
{
	struct pmf_hdr h = hello(), c;

	h.flags = PMF_HF_VERIFY;
	CU_ASSERT_TRUE_FATAL(challenge(&h, 64, true, &c));
	CU_ASSERT_EQUAL(c.flags, 0);
	CU_ASSERT_TRUE_FATAL(challenge(&h, 64, false, &c));
	CU_ASSERT_EQUAL(c.flags, PMF_HF_GONE);
}

static void test_bad_hello(void)
{
	struct pmf_hdr h = hello(), c;

	CU_ASSERT_FALSE(challenge(&h, 63, false, &c));
	h.port = 0;
	CU_ASSERT_FALSE(challenge(&h, 64, false, &c));
	h = hello();
	h.my_conn = 0;
	CU_ASSERT_FALSE(challenge(&h, 64, false, &c));
	h = hello();
	h.max_payload = PMF_WIRE_MIN_PAYLOAD - 1;
	CU_ASSERT_FALSE(challenge(&h, 64, false, &c));
	h = hello();
	h.type = PMF_PT_OPEN;
	CU_ASSERT_FALSE(challenge(&h, 64, false, &c));
}

static void test_open_is_believed(void)
{
	struct pmf_hdr o = answer();
	struct pmf_addr src = peer_ip();
	struct pmf_contact c;

	CU_ASSERT_EQUAL(pmf_contact_check(&key, &o, &src, PORT, INC, NOW + 5, &c), 0);
	CU_ASSERT_EQUAL(c.peer.port, 4000);
	CU_ASSERT_EQUAL(memcmp(c.peer.ip, src.ip, sizeof(src.ip)), 0);
	CU_ASSERT_EQUAL(c.inc, PEER_INC);
	CU_ASSERT_EQUAL(c.conn, PEER_CONN);
	CU_ASSERT_EQUAL(c.max_payload, 1472);
	CU_ASSERT_EQUAL(c.cookie_time, NOW);
}

static void test_forged(void)
{
	struct pmf_hdr good = answer(), o;
	struct pmf_addr src = peer_ip();
	struct pmf_contact_key other = {{1, 3}};
	struct pmf_contact c;

	o = good, o.cookie_mac ^= 1;
	CU_ASSERT_EQUAL(check(&o, NOW), -EACCES);
	o = good, o.cookie_time++;
	CU_ASSERT_EQUAL(check(&o, NOW + 10), -EACCES);
	o = good, o.inc++;
	CU_ASSERT_EQUAL(check(&o, NOW), -EACCES);
	o = good, o.my_conn++;
	CU_ASSERT_EQUAL(check(&o, NOW), -EACCES);
	o = good, o.port++;
	CU_ASSERT_EQUAL(check(&o, NOW), -EACCES);
	o = good, o.peer_inc++;
	CU_ASSERT_EQUAL(check(&o, NOW), -EACCES);
	CU_ASSERT_EQUAL(pmf_contact_check(&key, &good, &src, PORT + 1, INC, NOW, &c), -EACCES);
	CU_ASSERT_EQUAL(pmf_contact_check(&other, &good, &src, PORT, INC, NOW, &c), -EACCES);
	src.ip[15]++;
	CU_ASSERT_EQUAL(pmf_contact_check(&key, &good, &src, PORT, INC, NOW, &c), -EACCES);
	o = good, o.max_payload = 100;
	CU_ASSERT_EQUAL(check(&o, NOW), -EACCES);
}

static void test_old_cookie(void)
{
	struct pmf_hdr o = answer();

	CU_ASSERT_EQUAL(check(&o, NOW + PMF_COOKIE_LIFE), 0);
	CU_ASSERT_EQUAL(check(&o, NOW + PMF_COOKIE_LIFE + 1), -ETIMEDOUT);
}

static void test_other_life(void)
{
	struct pmf_hdr o = answer();
	struct pmf_addr src = peer_ip();
	struct pmf_contact c;

	/* The endpoint was closed and opened again between challenge and answer. */
	CU_ASSERT_EQUAL(pmf_contact_check(&key, &o, &src, PORT, INC + 1, NOW, &c), -ESTALE);
}

static void test_reset(void)
{
	struct pmf_hdr bad = {.type = PMF_PT_DATA, .conn = 0x1234}, r;
	uint8_t buf[64];
	size_t n = pmf_contact_reset(&bad, PORT, 0, buf, sizeof(buf));

	CU_ASSERT_TRUE(n > 0 && n <= pmf_wire_size(PMF_PT_DATA, 0));
	CU_ASSERT_EQUAL(pmf_wire_get(buf, n, &r), 0);
	CU_ASSERT_EQUAL(r.type, PMF_PT_RESET);
	CU_ASSERT_EQUAL(r.peer_conn, 0x1234);
	CU_ASSERT_EQUAL(r.port, PORT);
	/* Resets, hellos and challenges are not answered by one. */
	for (uint8_t type = 0; type < 16; type++) {
		bad.type = type;
		CU_ASSERT_EQUAL(pmf_contact_reset(&bad, PORT, 0, buf, sizeof(buf)) > 0,
				pmf_wire_has_seq(type));
	}
}

static void test_refused(void)
{
	struct pmf_hdr h = hello(), r;
	uint8_t buf[64];
	size_t n = pmf_contact_refuse(&h, PORT, 0, buf, sizeof(buf));

	CU_ASSERT_TRUE(n > 0 && n <= pmf_wire_size(PMF_PT_HELLO, 0));
	CU_ASSERT_EQUAL(pmf_wire_get(buf, n, &r), 0);
	CU_ASSERT_EQUAL(r.type, PMF_PT_RESET);
	CU_ASSERT_EQUAL(r.flags, PMF_HF_REFUSED);
	/* What only the sender of that hello knows comes back. */
	CU_ASSERT_EQUAL(r.conn, PEER_CONN);
	CU_ASSERT_EQUAL(r.peer_conn, 42);
	/* Only hellos are refused, and only whole ones. */
	h.my_conn = 0;
	CU_ASSERT_EQUAL(pmf_contact_refuse(&h, PORT, 0, buf, sizeof(buf)), 0);
	h = hello();
	h.type = PMF_PT_RESET;
	CU_ASSERT_EQUAL(pmf_contact_refuse(&h, PORT, 0, buf, sizeof(buf)), 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"siphash gives the published values", test_siphash_vectors},
		{"a challenge says who, and what may be sent", test_challenge_says},
		{"a verifying hello learns whether its connection is gone", test_verify},
		{"a hello that is short or incomplete gets nothing", test_bad_hello},
		{"the answer to a challenge is believed", test_open_is_believed},
		{"a forged or stolen answer is not", test_forged},
		{"an old cookie is refused as old", test_old_cookie},
		{"a cookie for another life of the endpoint is told apart", test_other_life},
		{"a reset answers packets of connections only", test_reset},
		{"a refusal answers a hello, and proves it", test_refused},
	};

	return test_main("contact", tests, PMF_ARRAY_SIZE(tests));
}
