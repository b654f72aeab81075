/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Packets of two flows sealed and opened: what is changed, repeated or another's is not taken.
 */
#include "seal/seal.h"

#include "proto/contact.h"
#include "../unit.h"

#define PAYLOAD 1472
#define NOW PMF_NS_PER_S

static const struct pmf_flow_conf conf = {
	.ack_delay = 20 * PMF_NS_PER_US,
	.ack_every = 2,
	.dead_after = PMF_NS_PER_S,
	.min_rto = PMF_NS_PER_MS,
	.max_rto = PMF_NS_PER_S,
	.window = 64,
	.eager_limit = 4096,
	.rx_credit = 65536,
	.first_credit = 65536,
	.max_payload = PAYLOAD,
};

/* One end: a flow with its seal. */
struct side {
	struct pmf_addr addr;
	struct pmf_keyring *ring;
	struct pmf_seal *seal;
	struct pmf_flow f;
	struct pmf_flow_stats stats;
	struct pmf_contact_key cookie;
	uint64_t inc;
};

static struct side a, b;
static uint64_t seed;

static struct pmf_seal_ends ends(const struct side *from, const struct side *to)
{
	struct pmf_seal_ends e = {.to_port = to->addr.port};

	memcpy(e.from, from->addr.ip, sizeof(e.from));
	memcpy(e.to, to->addr.ip, sizeof(e.to));
	return e;
}

static struct pmf_key_list keys(const char *text)
{
	struct pmf_key_list l;
	char err[100];

	CU_ASSERT_EQUAL_FATAL(pmf_keys_parse(text, &l, err, sizeof(err)), 0);
	return l;
}

static void side_open(struct side *s, const struct side *peer, const char *text, bool encrypt)
{
	struct pmf_flow_ident id = {.inc = s->inc,
				    .local = s->addr,
				    .peer = peer->addr,
				    .nonce = test_random(&seed),
				    .conn = test_random(&seed) | 1,
				    .tail = PMF_WIRE_TAG};
	struct pmf_seal_ends e = ends(s, peer);
	struct pmf_key_list l = keys(text);

	CU_ASSERT_EQUAL_FATAL(pmf_keyring_open(&l, encrypt, &s->ring), 0);
	s->seal = pmf_seal_open(s->ring, &e);
	pmf_flow_init(&s->f, &conf, &id, &s->stats, NOW);
}

static void side_lend(struct side *s)
{
	const uint32_t window = pmf_flow_window_wanted(&s->f);

	if (window)
		free(pmf_flow_lend(&s->f, aligned_alloc(64, pmf_flow_active_size(window)), window));
}

static void side_close(struct side *s)
{
	pmf_seal_close(s->seal);
	pmf_keyring_close(s->ring);
	free(pmf_flow_reclaim(&s->f));
	memset(s, 0, sizeof(*s));
}

/* The next packet, sealed. */
static size_t tx(struct side *s, pmf_ns_t now, uint8_t *buf)
{
	size_t len;
	bool ect;

	side_lend(s);
	len = pmf_flow_tx(&s->f, now, buf, PAYLOAD, &ect, NULL);
	return len ? pmf_seal_tx(s->seal, &s->f, buf, len) : 0;
}

static void name(struct side *s, uint8_t host)
{
	uint8_t ip[4] = {10, 0, 0, host};

	memset(s, 0, sizeof(*s));
	pmf_addr_set_v4(&s->addr, ip, 5000 + host);
	s->inc = 0x1000 + host;
	s->cookie.k[0] = host;
}

/* A has sent a hello and taken B's challenge. */
static void given_challenged(const char *text, bool encrypt, struct pmf_item *item)
{
	uint8_t hello[PAYLOAD], challenge[PAYLOAD];
	struct pmf_seal_ends e;
	struct pmf_addr to;
	struct pmf_hdr hdr;
	size_t len;

	name(&a, 1);
	name(&b, 2);
	side_open(&a, &b, text, encrypt);
	side_open(&b, &a, text, encrypt);
	pmf_flow_push(&a.f, item);
	len = tx(&a, NOW, hello);
	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(hello, len, &hdr), 0);
	e = ends(&a, &b);
	CU_ASSERT_EQUAL(pmf_seal_contact_check(b.ring, &hdr, &e, hello, len), PMF_SEAL_OK);
	len = pmf_contact_challenge(&b.cookie, &conf, &hdr, len, &a.addr, b.addr.port, b.inc, false,
				    NOW, challenge, sizeof(challenge), &to);
	e = ends(&b, &a);
	len = pmf_seal_contact(b.ring, hdr.key, &e, challenge, len);
	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(challenge, len, &hdr), 0);
	CU_ASSERT_EQUAL(pmf_seal_contact_check(a.ring, &hdr, &e, challenge, len), PMF_SEAL_OK);
	CU_ASSERT_EQUAL(pmf_flow_on_challenge(&a.f, &hdr, NOW), 0);
	CU_ASSERT_EQUAL(pmf_seal_bind(a.seal, &a.f), 0);
}

static enum pmf_seal_verdict rx_open(struct side *s, const struct side *from, uint8_t *buf,
				     size_t len, struct pmf_hdr *hdr)
{
	struct pmf_seal_ends e = ends(from, s);

	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(buf, len, hdr), 0);
	return pmf_seal_rx_open(s->seal, hdr, &e, s->inc, buf, len);
}

static const char text[] = "attack at dawn, from both sides, and bring the drums";

static struct pmf_item message(void)
{
	return (struct pmf_item){.kind = PMF_ITEM_MSG, .buf = text, .len = sizeof(text), .niov = 1};
}

/* A's first packet, sealed, in @p buf. */
static size_t given_open(bool encrypt, struct pmf_item *item, uint8_t *buf)
{
	size_t len;

	*item = message();
	given_challenged("00112233445566778899aabbccddeeff\n", encrypt, item);
	len = tx(&a, NOW, buf);
	CU_ASSERT_EQUAL_FATAL(pmf_wire_type(buf), PMF_PT_OPEN);
	return len;
}

static bool contains(const uint8_t *p, size_t len)
{
	return memmem(p, len, text, sizeof(text)) != NULL;
}

static void test_round_trip(void)
{
	for (int encrypt = 0; encrypt < 2; encrypt++) {
		uint8_t buf[PAYLOAD];
		struct pmf_item item;
		struct pmf_hdr hdr;
		size_t len = given_open(encrypt, &item, buf);

		/* the bytes are to be read on the wire, or not; and are there when it is opened */
		CU_ASSERT_EQUAL(contains(buf, len), !encrypt);
		CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_OK);
		CU_ASSERT_TRUE(contains(hdr.body, hdr.body_len));
		side_close(&a);
		side_close(&b);
	}
}

/* Every byte of every kind of packet. */
static void test_any_byte_changed(void)
{
	for (int encrypt = 0; encrypt < 2; encrypt++) {
		uint8_t buf[PAYLOAD], bad[PAYLOAD];
		struct pmf_item item;
		struct pmf_hdr hdr;
		size_t len = given_open(encrypt, &item, buf);

		for (size_t i = 0; i < len; i++) {
			struct pmf_seal_ends e = ends(&a, &b);

			memcpy(bad, buf, len);
			bad[i] ^= (uint8_t)(1u << i % 8);
			/* what is no packet any more, or of another type, is not for this flow */
			if (pmf_wire_get(bad, len, &hdr) || hdr.type != PMF_PT_OPEN)
				continue;
			if (pmf_seal_rx_open(b.seal, &hdr, &e, b.inc, bad, len) == PMF_SEAL_OK)
				CU_FAIL("a changed packet was taken");
		}
		/* it has left nothing behind */
		CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_OK);
		side_close(&a);
		side_close(&b);
	}
}

static void test_contact_changed(void)
{
	struct pmf_hdr in = {.type = PMF_PT_HELLO, .my_conn = 5, .port = 5001}, hdr;
	uint8_t buf[200], bad[200];
	struct pmf_seal_ends e, other;
	struct pmf_item item = message();
	size_t len;

	given_challenged("0011\n", false, &item);
	e = ends(&a, &b);
	len = pmf_seal_contact(a.ring, 0, &e, buf, pmf_wire_put(buf, sizeof(buf), &in));
	for (size_t i = 0; i < len; i++) {
		memcpy(bad, buf, len);
		bad[i] ^= 0x10;
		if (pmf_wire_get(bad, len, &hdr) == 0)
			CU_ASSERT_NOT_EQUAL(pmf_seal_contact_check(b.ring, &hdr, &e, bad, len),
					    PMF_SEAL_OK);
	}
	/* nor by another way */
	CU_ASSERT_EQUAL(pmf_wire_get(buf, len, &hdr), 0);
	CU_ASSERT_EQUAL(pmf_seal_contact_check(b.ring, &hdr, &e, buf, len), PMF_SEAL_OK);
	other = e;
	other.from[15] ^= 1;
	CU_ASSERT_EQUAL(pmf_seal_contact_check(b.ring, &hdr, &other, buf, len), PMF_SEAL_TAG);
	other = e;
	other.to[15] ^= 1;
	CU_ASSERT_EQUAL(pmf_seal_contact_check(b.ring, &hdr, &other, buf, len), PMF_SEAL_TAG);
	other = e;
	other.to_port ^= 1;
	CU_ASSERT_EQUAL(pmf_seal_contact_check(b.ring, &hdr, &other, buf, len), PMF_SEAL_TAG);
	side_close(&a);
	side_close(&b);
}

static void test_repeated(void)
{
	uint8_t buf[PAYLOAD], again[PAYLOAD];
	struct pmf_item item;
	struct pmf_hdr hdr;
	size_t len = given_open(true, &item, buf);

	memcpy(again, buf, len);
	CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_OK);
	CU_ASSERT_EQUAL(rx_open(&b, &a, again, len, &hdr), PMF_SEAL_REPLAY);
	side_close(&a);
	side_close(&b);
}

/* The same flow anew: its packets are of another life. */
static void test_another_life(void)
{
	uint8_t first[PAYLOAD], second[PAYLOAD];
	struct pmf_item item, item2 = message();
	struct pmf_hdr hdr;
	size_t len = given_open(true, &item, first), len2;

	CU_ASSERT_EQUAL(rx_open(&b, &a, first, len, &hdr), PMF_SEAL_OK);
	side_close(&a);
	side_close(&b);
	given_challenged("00112233445566778899aabbccddeeff\n", true, &item2);
	len2 = tx(&a, NOW, second);
	CU_ASSERT_EQUAL(rx_open(&b, &a, second, len2, &hdr), PMF_SEAL_OK);
	CU_ASSERT_EQUAL(rx_open(&b, &a, first, len, &hdr), PMF_SEAL_REPLAY);
	side_close(&a);
	side_close(&b);
}

static void test_other_keys(void)
{
	struct pmf_key_list other = keys("ffff\n");
	struct pmf_keyring gone;
	uint8_t buf[PAYLOAD];
	struct pmf_item item;
	struct pmf_hdr hdr;
	size_t len = given_open(false, &item, buf);

	CU_ASSERT_EQUAL(pmf_keyring_change(b.ring, &other, &gone), 0);
	CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_KEY);
	pmf_keyring_drop(&gone);
	side_close(&a);
	side_close(&b);
}

/* Every transmission has another number under one key, sent again or not. */
static void test_nonces_never_repeat(void)
{
	uint64_t seen[400], bodies[400];
	unsigned int n = 0, again = 0;
	uint8_t buf[PAYLOAD];
	pmf_ns_t now = NOW;
	struct pmf_item item;
	struct pmf_hdr hdr;

	given_open(true, &item, buf);
	seen[n++] = a.f.txno_next - 1;
	/* when: nobody answers for a while, so that the packet goes again and again */
	while (n < PMF_ARRAY_SIZE(seen) && a.f.state != PMF_FLOW_DEAD) {
		size_t len = tx(&a, now, buf);

		if (!len) {
			now += 100 * PMF_NS_PER_US;
			pmf_flow_on_timer(&a.f, now);
			continue;
		}
		CU_ASSERT_EQUAL(pmf_wire_get(buf, len, &hdr), 0);
		if (!pmf_wire_has_seq(hdr.type))
			continue;
		if (hdr.type == PMF_PT_OPEN && hdr.body_len >= sizeof(bodies[0])) {
			/* the same bytes, encrypted: they look new each time */
			memcpy(&bodies[again], hdr.body, sizeof(bodies[0]));
			for (unsigned int i = 0; i < again; i++)
				CU_ASSERT_NOT_EQUAL(bodies[i], bodies[again]);
			again++;
		}
		for (unsigned int i = 0; i < n; i++)
			CU_ASSERT_NOT_EQUAL(seen[i], a.f.txno_next - 1);
		seen[n++] = a.f.txno_next - 1;
		CU_ASSERT_EQUAL(hdr.txno, (uint32_t)(a.f.txno_next - 1));
	}
	CU_ASSERT_TRUE(again >= 3);
	side_close(&a);
	side_close(&b);
}

static void test_roll(void)
{
	struct pmf_key_list both = keys("aa\nbb\n"), rolled = keys("bb\naa\n"), last = keys("bb\n");
	struct pmf_keyring gone;
	uint8_t buf[PAYLOAD];
	struct pmf_item item = message();
	pmf_ns_t now = NOW;
	struct pmf_hdr hdr;
	uint16_t id;
	size_t len;

	given_challenged("aa\n", false, &item);
	len = tx(&a, now, buf);
	CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_OK);
	id = hdr.key;
	/* the other key is accepted everywhere, then it sends, then the old one goes */
	CU_ASSERT_EQUAL(pmf_keyring_change(b.ring, &both, &gone), 0);
	CU_ASSERT_EQUAL(pmf_seal_roll(b.seal), 0);
	pmf_keyring_drop(&gone);
	CU_ASSERT_EQUAL(pmf_keyring_change(a.ring, &rolled, &gone), 0);
	CU_ASSERT_EQUAL(pmf_seal_roll(a.seal), 0);
	pmf_keyring_drop(&gone);
	do {
		now += PMF_NS_PER_MS;
		pmf_flow_on_timer(&a.f, now);
	} while (!(len = tx(&a, now, buf)));
	CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_OK);
	CU_ASSERT_NOT_EQUAL(hdr.key, id);
	CU_ASSERT_TRUE(contains(hdr.body, hdr.body_len));
	CU_ASSERT_EQUAL(pmf_keyring_change(b.ring, &last, &gone), 0);
	CU_ASSERT_EQUAL(pmf_seal_roll(b.seal), 0);
	pmf_keyring_drop(&gone);
	do {
		now += PMF_NS_PER_MS;
		pmf_flow_on_timer(&a.f, now);
	} while (!(len = tx(&a, now, buf)));
	CU_ASSERT_EQUAL(rx_open(&b, &a, buf, len, &hdr), PMF_SEAL_OK);
	side_close(&a);
	side_close(&b);
}

static void test_window(void)
{
	struct pmf_replay r = {0};

	CU_ASSERT_FALSE(pmf_replay_is_new(&r, 0));
	pmf_replay_take(&r, 70);
	/* a gap wider than the window forgets all, and takes nothing from before it */
	pmf_replay_take(&r, r.newest + 5000);
	CU_ASSERT_TRUE(pmf_replay_is_new(&r, r.newest - 1));
	CU_ASSERT_TRUE(pmf_replay_is_new(&r, r.newest - PMF_REPLAY_WINDOW + 1));
	CU_ASSERT_FALSE(pmf_replay_is_new(&r, r.newest - PMF_REPLAY_WINDOW));
	/* numbers travel with 32 bits */
	r.newest = 0x1fffffff0ull;
	CU_ASSERT_EQUAL(pmf_replay_extend(&r, 5), 0x200000005ull);
	CU_ASSERT_EQUAL(pmf_replay_extend(&r, 0xffffff00u), 0x1ffffff00ull);
	r.newest = 5;
	CU_ASSERT_EQUAL(pmf_replay_extend(&r, 0xffffff00u), 0);
}

/* Against a plain list of what was taken. */
static void test_window_against_a_list(void)
{
	static bool taken[20000];
	struct pmf_replay r = {0};

	memset(taken, 0, sizeof(taken));
	for (uint64_t base = 1; base + 1000 < PMF_ARRAY_SIZE(taken);
	     base += test_random(&seed) % 20) {
		uint64_t n = base + test_random(&seed) % 1000;
		bool behind = n + PMF_REPLAY_WINDOW <= r.newest;

		CU_ASSERT_EQUAL(pmf_replay_is_new(&r, n), !behind && !taken[n]);
		if (behind || taken[n])
			continue;
		pmf_replay_take(&r, n);
		taken[n] = true;
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"round trip", test_round_trip},
		{"any byte changed", test_any_byte_changed},
		{"contact packets changed", test_contact_changed},
		{"repeated", test_repeated},
		{"another life", test_another_life},
		{"other keys", test_other_keys},
		{"nonces never repeat", test_nonces_never_repeat},
		{"roll", test_roll},
		{"replay window", test_window},
		{"replay window against a list", test_window_against_a_list},
	};

	seed = test_seed();
	return test_main("seal", tests, PMF_ARRAY_SIZE(tests));
}
