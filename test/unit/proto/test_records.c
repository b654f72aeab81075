/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Records in data packets: the bytes, round trips, and everything that must be refused.
 */
#include "proto/wire.h"

#include "../unit.h"

static int get_exact(const uint8_t *p, size_t len, struct pmf_rec *rec)
{
	uint8_t *copy = malloc(len ? len : 1);
	int n;

	memcpy(copy, p, len);
	n = pmf_rec_get(copy, len, rec);
	if (n > 0 && rec->bytes != NULL)
		rec->bytes = p + (rec->bytes - copy);
	free(copy);
	return n;
}

static void test_start_bytes(void)
{
	static const uint8_t want[] = {
		1, 0x24, 0, 25,		       /* START, DATA, kind 2 */
		0, 0,	 0, 9,		       /* message */
		0, 0,	 0, 0,	0, 0, 0x10, 0, /* length 4096 */
		1, 2,	 3, 4,	5, 6, 7,    8, /* CQ data */
	};
	struct pmf_rec rec = {.type = PMF_RT_START,
			      .flags = PMF_RF_DATA,
			      .kind = PMF_MK_RMA,
			      .len = 5,
			      .msg32 = 9,
			      .total = 4096,
			      .data = 0x0102030405060708};
	uint8_t buf[64];

	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), sizeof(want));
	CU_ASSERT_EQUAL(memcmp(buf, want, sizeof(want)), 0);
}

static void random_record(uint64_t *rnd, struct pmf_rec *r)
{
	memset(r, 0, sizeof(*r));
	r->type = 1 + test_random(rnd) % (PMF_RT_MAX - 1);
	r->msg32 = test_random(rnd);
	if (test_random(rnd) % 4 == 0)
		r->flags = PMF_RF_OPTIONAL;
	if (r->type >= PMF_RT_CONNREQ)
		r->len = test_random(rnd) % 100;
	if (r->type == PMF_RT_CONT || r->type == PMF_RT_BODY) {
		r->len = test_random(rnd) % 100;
		r->off = test_random(rnd) >> 1;
	}
	if (r->type != PMF_RT_START)
		return;
	r->kind = test_random(rnd) % 4;
	switch (test_random(rnd) % 3) {
	case 0:
		r->flags |= PMF_RF_WHOLE;
		r->total = r->len = test_random(rnd) % 100;
		break;
	case 1:
		r->flags |= PMF_RF_ANNOUNCE;
		r->total = test_random(rnd);
		break;
	default:
		r->len = test_random(rnd) % 100;
		r->total = r->len + (test_random(rnd) >> 1);
	}
	if (test_random(rnd) & 1) {
		r->flags |= PMF_RF_DATA;
		r->data = test_random(rnd);
	}
}

static void test_round_trip(void)
{
	uint64_t rnd = test_seed();
	uint8_t buf[256];

	for (int i = 0; i < 20000; i++) {
		struct pmf_rec in, out;
		size_t head;

		random_record(&rnd, &in);
		head = pmf_rec_put(buf, sizeof(buf), &in);
		if (head == 0 || head != pmf_rec_size(&in))
			CU_FAIL_FATAL("written size");
		if (get_exact(buf, head + in.len, &out) != (int)(head + in.len))
			CU_FAIL_FATAL("read size");
		if (out.type != in.type || out.flags != in.flags || out.kind != in.kind ||
		    out.len != in.len || out.msg32 != in.msg32 || out.off != in.off ||
		    out.total != in.total || out.data != in.data)
			CU_FAIL_FATAL("read back differently");
		if ((in.type <= PMF_RT_BODY || in.type >= PMF_RT_CONNREQ) &&
		    out.bytes != buf + head)
			CU_FAIL_FATAL("bytes elsewhere");
		for (size_t len = head + in.len; len-- > 0;)
			if (get_exact(buf, len, &out) != -EBADMSG)
				CU_FAIL_FATAL("a cut record was taken");
		if (pmf_rec_put(buf, head + in.len - 1, &in) != 0)
			CU_FAIL_FATAL("written without room");
	}
}

static void test_unknown(void)
{
	uint8_t buf[16] = {PMF_RT_MAX, 0, 0, 3, 1, 2, 3, 4};
	struct pmf_rec rec;

	/* An unknown record ends the flow, unless it says that it may be skipped, by its length. */
	CU_ASSERT_EQUAL(get_exact(buf, 16, &rec), -EOPNOTSUPP);
	buf[1] = PMF_RF_OPTIONAL;
	CU_ASSERT_EQUAL(get_exact(buf, 16, &rec), 7);
	CU_ASSERT_EQUAL(rec.type, 0);
	buf[3] = 0;
	CU_ASSERT_EQUAL(get_exact(buf, 4, &rec), 4);
	CU_ASSERT_EQUAL(rec.type, 0);
	buf[0] = 0;
	CU_ASSERT_EQUAL(get_exact(buf, 4, &rec), 4);
	buf[3] = 13;
	CU_ASSERT_EQUAL(get_exact(buf, 16, &rec), -EBADMSG);
}

static void test_reserved_is_ignored(void)
{
	struct pmf_rec in = {.type = PMF_RT_START, .flags = PMF_RF_WHOLE, .len = 3, .total = 3};
	struct pmf_rec out;
	uint8_t buf[32] = {0};

	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &in), 8);
	buf[1] |= 0x40;
	CU_ASSERT_EQUAL(get_exact(buf, 11, &out), 11);
	CU_ASSERT_EQUAL(out.flags, PMF_RF_WHOLE);
	CU_ASSERT_EQUAL(out.total, 3);
	/* The tag's place is known already: a kind that has none skips it. */
	buf[1] = PMF_RF_WHOLE | PMF_RF_TAG;
	buf[3] = 4 + 8 + 3;
	CU_ASSERT_EQUAL(get_exact(buf, 19, &out), 19);
	CU_ASSERT_EQUAL(out.len, 3);
	CU_ASSERT_PTR_EQUAL(out.bytes, buf + 16);
	/* Controls may grow at their tails. */
	buf[0] = PMF_RT_HOLD;
	buf[1] = 0;
	CU_ASSERT_EQUAL(get_exact(buf, 19, &out), 19);
	CU_ASSERT_EQUAL(out.len, 0);
}

static void test_contradictions(void)
{
	struct pmf_rec rec = {.type = PMF_RT_START, .len = 10, .total = 9}, out;
	uint8_t buf[64] = {0};

	/* More bytes than the message has. */
	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), 16);
	CU_ASSERT_EQUAL(get_exact(buf, 26, &out), -EBADMSG);
	rec.total = 10;
	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), 16);
	CU_ASSERT_EQUAL(get_exact(buf, 26, &out), 26);
	/* Announced with bytes, or announced and whole. */
	buf[1] = PMF_RF_ANNOUNCE;
	CU_ASSERT_EQUAL(get_exact(buf, 26, &out), -EBADMSG);
	buf[1] = PMF_RF_ANNOUNCE | PMF_RF_WHOLE;
	buf[3] = 4;
	CU_ASSERT_EQUAL(get_exact(buf, 8, &out), -EBADMSG);
	/* An offset that overflows. */
	rec = (struct pmf_rec){.type = PMF_RT_BODY, .len = 2, .off = UINT64_MAX - 1};
	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), 16);
	CU_ASSERT_EQUAL(get_exact(buf, 18, &out), -EBADMSG);
	rec.off--;
	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), 16);
	CU_ASSERT_EQUAL(get_exact(buf, 18, &out), 18);
}

static void test_program_bytes(void)
{
	static uint8_t buf[512];
	struct pmf_rec rec = {.type = PMF_RT_CONNREQ, .len = PMF_WIRE_CM_DATA, .msg32 = 2}, out;
	int n = (int)pmf_rec_put(buf, sizeof(buf), &rec);

	CU_ASSERT_EQUAL(n, 8);
	CU_ASSERT_EQUAL(get_exact(buf, sizeof(buf), &out), n + PMF_WIRE_CM_DATA);
	CU_ASSERT_EQUAL(out.len, PMF_WIRE_CM_DATA);
	CU_ASSERT_EQUAL(out.msg32, 2);
	/* One more is refused where it arrives. */
	pmf_put16(buf + 2, PMF_WIRE_CM_DATA + 5);
	CU_ASSERT_EQUAL(get_exact(buf, sizeof(buf), &out), -EBADMSG);
}

static void test_too_long_for_its_length(void)
{
	static uint8_t buf[70000];
	struct pmf_rec rec = {.type = PMF_RT_CONT, .len = UINT16_MAX - 12};

	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), 16);
	rec.len++;
	CU_ASSERT_EQUAL(pmf_rec_put(buf, sizeof(buf), &rec), 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a message start has these bytes", test_start_bytes},
		{"every record comes back as written, and cut ones are refused", test_round_trip},
		{"an unknown record is skipped only if optional", test_unknown},
		{"reserved bits and later fields are ignored", test_reserved_is_ignored},
		{"records that contradict themselves are refused", test_contradictions},
		{"a connection's records bring at most 256 bytes", test_program_bytes},
		{"no record is longer than its length can say", test_too_long_for_its_length},
	};

	return test_main("records", tests, PMF_ARRAY_SIZE(tests));
}
