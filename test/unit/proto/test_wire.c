/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Packet headers: the bytes themselves, round trips, and everything that must be refused.
 */
#include "proto/wire.h"

#include "../unit.h"

#define LAID_OUT_TYPES 8 /* HELLO to MULTICAST */

/* Decodes from a block of exactly @p len bytes, so that a sanitizer sees each byte read behind it.
 */
static int get_exact(const uint8_t *p, size_t len, struct pmf_hdr *hdr)
{
	uint8_t *copy = malloc(len ? len : 1);
	int err;

	memcpy(copy, p, len);
	err = pmf_wire_get(copy, len, hdr);
	if (err == 0)
		hdr->body = p + (hdr->body - copy);
	free(copy);
	return err;
}

static void test_data_bytes(void)
{
	static const uint8_t want[] = {
		2,    11,   4,	  0,	0,    0,    0x01, 0x02, /* version, length, type, holds */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* connection */
		0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, /* psn, txno */
		0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, /* ack, ack_txno */
		0x61, 0x62, 0x63, 0x64, 0x71, 0x72, 0x73, 0x74, /* ack_delay, credit */
		0x81, 0x82, 0,	  0,				/* ce, no ranges */
	};
	struct pmf_hdr hdr = {.type = PMF_PT_DATA,
			      .holds = 0x0102,
			      .conn = 0x1112131415161718,
			      .psn = 0x21222324,
			      .txno = 0x31323334,
			      .ack = 0x41424344,
			      .ack_txno = 0x51525354,
			      .ack_delay = 0x61626364,
			      .credit = 0x71727374,
			      .ce = 0x8182};
	uint8_t buf[64];

	CU_ASSERT_EQUAL(pmf_wire_put(buf, sizeof(buf), &hdr), sizeof(want));
	CU_ASSERT_EQUAL(memcmp(buf, want, sizeof(want)), 0);
}

static void test_multicast_bytes(void)
{
	static const uint8_t want[] = {
		2,    10,   8,	  0,	0,    0,    0,	  0,	/* version, length, type */
		0,    0,    0,	  0,	0,    0,    0,	  0,	/* no connection */
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* incarnation */
		0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, /* sequence number */
		0x41, 0x42, 0,	  0,	0,    0,    0,	  0,	/* port */
	};
	struct pmf_hdr hdr = {.type = PMF_PT_MULTICAST,
			      .inc = 0x2122232425262728,
			      .seq = 0x3132333435363738,
			      .port = 0x4142};
	uint8_t buf[64];

	CU_ASSERT_EQUAL(pmf_wire_put(buf, sizeof(buf), &hdr), sizeof(want));
	CU_ASSERT_EQUAL(memcmp(buf, want, sizeof(want)), 0);
}

/* A header of @p type with every field of it set at random. */
static void random_header(uint64_t *rnd, uint8_t type, struct pmf_hdr *h)
{
	bool seq = pmf_wire_has_seq(type);

	memset(h, 0, sizeof(*h));
	h->type = type;
	h->flags = test_random(rnd) & PMF_HF_KNOWN;
	h->holds = test_random(rnd);
	h->conn = test_random(rnd);
	if (seq) {
		h->psn = test_random(rnd);
		h->txno = test_random(rnd);
		h->ack = test_random(rnd);
		h->ack_txno = test_random(rnd);
		h->ack_delay = test_random(rnd);
		h->ce = test_random(rnd);
		h->nsack = test_random(rnd) % (PMF_WIRE_MAX_SACK + 1);
		for (int i = 0; i < h->nsack; i++) {
			h->sack[i].first = 1 + test_random(rnd) % 30000;
			h->sack[i].count = 1 + test_random(rnd) % 30000;
		}
	}
	if (seq || type == PMF_PT_CHALLENGE)
		h->credit = test_random(rnd);
	if (type == PMF_PT_MULTICAST) {
		h->inc = test_random(rnd);
		h->seq = test_random(rnd);
	}
	if (type == PMF_PT_HELLO || type == PMF_PT_CHALLENGE || type == PMF_PT_OPEN) {
		h->inc = test_random(rnd);
		h->max_payload = test_random(rnd);
	}
	if (type == PMF_PT_CHALLENGE || type == PMF_PT_OPEN) {
		h->peer_inc = test_random(rnd);
		h->cookie_time = test_random(rnd);
		h->cookie_mac = test_random(rnd);
	}
	if (type == PMF_PT_OPEN)
		h->seed = test_random(rnd);
	if (type == PMF_PT_HELLO || type == PMF_PT_OPEN)
		h->my_conn = test_random(rnd);
	if (type == PMF_PT_HELLO || type == PMF_PT_CHALLENGE)
		h->nonce = test_random(rnd);
	if (type == PMF_PT_HELLO || type == PMF_PT_RESET)
		h->peer_conn = test_random(rnd);
	if (type == PMF_PT_HELLO || type == PMF_PT_OPEN || type >= PMF_PT_RESET)
		h->port = test_random(rnd);
}

static bool same_header(const struct pmf_hdr *a, const struct pmf_hdr *b)
{
	return a->type == b->type && a->flags == b->flags && a->key == b->key &&
	       a->nsack == b->nsack && a->holds == b->holds && a->ce == b->ce &&
	       a->conn == b->conn && a->psn == b->psn && a->txno == b->txno && a->ack == b->ack &&
	       a->ack_txno == b->ack_txno && a->ack_delay == b->ack_delay &&
	       a->credit == b->credit && a->inc == b->inc && a->peer_inc == b->peer_inc &&
	       a->my_conn == b->my_conn && a->peer_conn == b->peer_conn &&
	       a->cookie_time == b->cookie_time && a->cookie_mac == b->cookie_mac &&
	       a->seed == b->seed && a->nonce == b->nonce && a->port == b->port &&
	       a->max_payload == b->max_payload &&
	       memcmp(a->sack, b->sack, a->nsack * sizeof(a->sack[0])) == 0;
}

static void test_round_trip(void)
{
	uint64_t rnd = test_seed();
	uint8_t buf[512];

	for (int i = 0; i < 20000; i++) {
		uint8_t type = 1 + test_random(&rnd) % LAID_OUT_TYPES;
		uint32_t body = test_random(&rnd) % 100;
		struct pmf_hdr in, out;
		size_t len;

		random_header(&rnd, type, &in);
		len = pmf_wire_put(buf, sizeof(buf), &in);
		if (len == 0 || len != pmf_wire_size(type, in.nsack))
			CU_FAIL_FATAL("written size");
		memset(&out, 0x5a, sizeof(out));
		if (get_exact(buf, len + body, &out) != 0)
			CU_FAIL_FATAL("not read back");
		if (!same_header(&in, &out) || out.body != buf + len || out.body_len != body)
			CU_FAIL_FATAL("read back differently");
	}
}

static void test_truncated(void)
{
	uint64_t rnd = 1;
	uint8_t buf[512];
	struct pmf_hdr in, out;

	for (uint8_t type = 1; type <= LAID_OUT_TYPES; type++) {
		random_header(&rnd, type, &in);
		for (size_t len = pmf_wire_put(buf, sizeof(buf), &in); len-- > 0;)
			CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EBADMSG);
	}
}

static void test_no_room(void)
{
	uint64_t rnd = 2;
	uint8_t buf[512];
	struct pmf_hdr in;

	for (uint8_t type = 1; type <= LAID_OUT_TYPES; type++) {
		random_header(&rnd, type, &in);
		size_t len = pmf_wire_size(type, in.nsack);

		buf[len - 1] = 0xee;
		CU_ASSERT_EQUAL(pmf_wire_put(buf, len - 1, &in), 0);
		CU_ASSERT_EQUAL(buf[len - 1], 0xee);
		CU_ASSERT_EQUAL(pmf_wire_put(buf, len, &in), len);
	}
	in.type = PMF_PT_MAX;
	CU_ASSERT_EQUAL(pmf_wire_put(buf, sizeof(buf), &in), 0);
}

static void test_other_versions_and_types(void)
{
	struct pmf_hdr in = {.type = PMF_PT_DATA, .conn = 77}, out;
	uint8_t buf[64];
	size_t len = pmf_wire_put(buf, sizeof(buf), &in);

	buf[0] = PMF_WIRE_VERSION - 1;
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(out.type, PMF_PT_DATA);
	CU_ASSERT_EQUAL(out.conn, 77);
	/* Of another version no more than the prefix is known, and that may be all there is. */
	CU_ASSERT_EQUAL(get_exact(buf, 16, &out), -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(get_exact(buf, 15, &out), -EBADMSG);
	buf[0] = PMF_WIRE_VERSION;
	for (int type = 0; type < 256; type++) {
		if (type >= PMF_PT_HELLO && type < PMF_PT_MAX)
			continue;
		buf[2] = type;
		CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EOPNOTSUPP);
	}
}

/* With a key id there is a tag behind the body, which no reader of the body sees. */
static void test_tag_is_no_body(void)
{
	static const uint8_t types[] = {PMF_PT_HELLO, PMF_PT_CHALLENGE, PMF_PT_OPEN, PMF_PT_DATA,
					PMF_PT_ACK,   PMF_PT_PROBE,	PMF_PT_RESET};
	uint8_t buf[512] = {0};
	struct pmf_hdr out;

	for (size_t i = 0; i < PMF_ARRAY_SIZE(types); i++) {
		struct pmf_hdr in = {.type = types[i], .conn = 77, .key = 0xff00};
		size_t len = pmf_wire_put(buf, sizeof(buf), &in);

		CU_ASSERT_EQUAL(get_exact(buf, len + PMF_WIRE_TAG + 5, &out), 0);
		CU_ASSERT_EQUAL(out.key, 0xff00);
		CU_ASSERT_EQUAL(out.body_len, 5);
		CU_ASSERT_EQUAL(get_exact(buf, len + PMF_WIRE_TAG, &out), 0);
		CU_ASSERT_EQUAL(out.body_len, 0);
		CU_ASSERT_EQUAL(get_exact(buf, len + PMF_WIRE_TAG - 1, &out), -EBADMSG);
		pmf_wire_set_key(buf, 0);
		CU_ASSERT_EQUAL(get_exact(buf, len + 5, &out), 0);
		CU_ASSERT_EQUAL(out.body_len, 5);
	}
}

static void test_reserved_is_ignored(void)
{
	struct pmf_hdr in = {.type = PMF_PT_DATA, .conn = 77, .psn = 5}, out;
	uint8_t buf[512];
	size_t len = pmf_wire_put(buf, sizeof(buf), &in);

	buf[3] |= (uint8_t)~PMF_HF_KNOWN;
	buf[43] = 0xff;
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), 0);
	CU_ASSERT_TRUE(same_header(&in, &out));
	/* And so are the later fields of a longer header, up to all that its length can say. */
	memset(buf + len, 0xff, sizeof(buf) - len);
	buf[1] = 12;
	CU_ASSERT_EQUAL(get_exact(buf, 60, &out), 0);
	CU_ASSERT_TRUE(same_header(&in, &out));
	CU_ASSERT_EQUAL(out.body_len, 12);
	buf[1] = 128;
	CU_ASSERT_EQUAL(get_exact(buf, 512, &out), 0);
	CU_ASSERT_EQUAL(out.body_len, 0);
	CU_ASSERT_EQUAL(get_exact(buf, 511, &out), -EBADMSG);
	buf[1] = 10;
	CU_ASSERT_EQUAL(get_exact(buf, 512, &out), -EBADMSG);
}

static void test_bad_ranges(void)
{
	struct pmf_hdr in = {.type = PMF_PT_ACK, .nsack = 2, .sack = {{1, 2}, {10, 5}}}, out;
	uint8_t buf[512] = {0};
	size_t len = pmf_wire_put(buf, sizeof(buf), &in);

	CU_ASSERT_EQUAL(get_exact(buf, len, &out), 0);
	pmf_put16(buf + 48, 0); /* the expected packet itself */
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EBADMSG);
	pmf_put16(buf + 48, 10);
	pmf_put16(buf + 50, 0); /* no packet at all */
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EBADMSG);
	pmf_put16(buf + 50, 0xfff6); /* wraps */
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EBADMSG);
	pmf_put16(buf + 50, 0xfff5);
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), 0);
	/* More ranges than the header has, and more than there may be. */
	buf[42] = 3;
	CU_ASSERT_EQUAL(get_exact(buf, len, &out), -EBADMSG);
	buf[42] = PMF_WIRE_MAX_SACK + 1;
	buf[1] = 120;
	CU_ASSERT_EQUAL(get_exact(buf, sizeof(buf), &out), -EBADMSG);
}

static void test_hello_is_no_amplifier(void)
{
	CU_ASSERT_TRUE(pmf_wire_size(PMF_PT_HELLO, 0) >= pmf_wire_size(PMF_PT_CHALLENGE, 0));
	CU_ASSERT_TRUE(pmf_wire_size(PMF_PT_ACK, 0) >= pmf_wire_size(PMF_PT_RESET, 0));
}

static void test_random_bytes(void)
{
	uint64_t rnd = test_seed();
	uint8_t buf[200];
	struct pmf_hdr out;
	int good = 0;

	for (int i = 0; i < 200000; i++) {
		size_t len = test_random(&rnd) % sizeof(buf);

		for (size_t b = 0; b < len; b += 8) {
			uint64_t r = test_random(&rnd);

			memcpy(buf + b, &r, PMF_MIN(8, len - b));
		}
		/* Near misses get further than noise. */
		if (len > 5 && i % 4 != 0) {
			buf[0] = PMF_WIRE_VERSION;
			buf[1] %= 50;
			buf[2] %= PMF_PT_MAX + 1;
			if (i & 1)
				buf[4] = buf[5] = 0;
			if (len > 42)
				buf[42] %= 20;
		}
		if (get_exact(buf, len, &out) != 0)
			continue;
		good++;
		if (out.body + out.body_len + (out.key ? PMF_WIRE_TAG : 0) != buf + len ||
		    out.nsack > PMF_WIRE_MAX_SACK)
			CU_FAIL_FATAL("a body outside the packet");
	}
	CU_ASSERT_TRUE(good > 1000);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a data header has these bytes", test_data_bytes},
		{"a multicast header, too", test_multicast_bytes},
		{"every type comes back as it was written", test_round_trip},
		{"a header cut anywhere is refused", test_truncated},
		{"nothing is written without room", test_no_room},
		{"other versions, types and keys are told apart", test_other_versions_and_types},
		{"a tag is no body", test_tag_is_no_body},
		{"reserved bits and later fields are ignored", test_reserved_is_ignored},
		{"impossible ranges are refused", test_bad_ranges},
		{"answers to strangers are no longer than questions", test_hello_is_no_amplifier},
		{"any bytes are safe", test_random_bytes},
	};

	return test_main("wire", tests, PMF_ARRAY_SIZE(tests));
}
