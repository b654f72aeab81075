/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "proto/cc.h"

#include "proto_test.h"

#define WINDOW 1024
#define US PMF_NS_PER_US

static uint32_t packets(const struct pmf_cc *cc)
{
	return cc->cwnd >> 8;
}

/* Everything that the window lets out is acknowledged, one by one. */
static void round_trip(struct pmf_cc *cc)
{
	for (uint32_t n = packets(cc), i = 0; i < n; i++)
		pmf_cc_on_ack(cc, 1, n - 1, 10 * US, 0, 1);
}

static void test_starts_small_and_doubles(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, WINDOW);
	CU_ASSERT_EQUAL(packets(&cc), 10);
	CU_ASSERT_TRUE(pmf_cc_may_send(&cc, 9, 0));
	CU_ASSERT_FALSE(pmf_cc_may_send(&cc, 10, 0));
	round_trip(&cc);
	CU_ASSERT_EQUAL(packets(&cc), 20);
	for (int i = 0; i < 20; i++)
		round_trip(&cc);
	CU_ASSERT_EQUAL(packets(&cc), WINDOW);
}

static void test_idle_window_does_not_grow(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, WINDOW);
	for (int i = 0; i < 1000; i++)
		pmf_cc_on_ack(&cc, 1, 0, 10 * US, 0, 1);
	CU_ASSERT_EQUAL(packets(&cc), 10);
}

static void test_loss_halves_once_a_round_trip(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, WINDOW);
	for (int i = 0; i < 20; i++)
		round_trip(&cc);
	pmf_cc_on_loss(&cc, 5000, 6000, false, 1);
	CU_ASSERT_EQUAL(packets(&cc), WINDOW / 2);
	pmf_cc_on_loss(&cc, 5001, 6010, false, 2);
	pmf_cc_on_loss(&cc, 5999, 6010, false, 2);
	CU_ASSERT_EQUAL(packets(&cc), WINDOW / 2);
	pmf_cc_on_loss(&cc, 6000, 7000, false, 3);
	CU_ASSERT_EQUAL(packets(&cc), WINDOW / 4);
}

static void test_one_more_a_round_trip(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, WINDOW);
	for (int i = 0; i < 20; i++)
		round_trip(&cc);
	pmf_cc_on_loss(&cc, 5000, 6000, false, 1);
	for (int i = 1; i <= 20; i++) {
		round_trip(&cc);
		CU_ASSERT_TRUE(packets(&cc) >= (uint32_t)(WINDOW / 2 + i - 1));
		CU_ASSERT_TRUE(packets(&cc) <= (uint32_t)(WINDOW / 2 + i));
	}
}

static void test_timeout_and_floor(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, WINDOW);
	pmf_cc_on_loss(&cc, 0, 10, true, 1);
	CU_ASSERT_EQUAL(packets(&cc), 1);
	for (pmf_psn_t psn = 10; psn < 100; psn++)
		pmf_cc_on_loss(&cc, psn, psn + 1, psn & 1, 1);
	/* However bad the path, one packet goes. */
	CU_ASSERT_TRUE(pmf_cc_may_send(&cc, 0, 0));
	CU_ASSERT_FALSE(pmf_cc_may_send(&cc, 2, 0));
	/* And it comes back. */
	for (int i = 0; i < 2 * WINDOW; i++)
		round_trip(&cc);
	CU_ASSERT_EQUAL(packets(&cc), WINDOW);
}

static void test_marks_take_half(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, WINDOW);
	for (int i = 0; i < 20; i++)
		round_trip(&cc);
	/* A whole window marked: half is left, as after a loss. */
	pmf_cc_on_ack(&cc, WINDOW, 0, 10 * US, WINDOW, 1);
	CU_ASSERT_EQUAL(packets(&cc), WINDOW / 2);
	for (int i = 0; i < 100; i++)
		pmf_cc_on_ack(&cc, 1, 0, 10 * US, UINT16_MAX, 1);
	CU_ASSERT_EQUAL(packets(&cc), 2);
}

static void test_tiny_window(void)
{
	struct pmf_cc cc;

	pmf_cc_init(&cc, 1);
	CU_ASSERT_EQUAL(packets(&cc), 1);
	pmf_cc_on_ack(&cc, 1, 0, 1, 5, 1);
	pmf_cc_on_loss(&cc, 1, 2, true, 1);
	round_trip(&cc);
	CU_ASSERT_EQUAL(packets(&cc), 1);
}

int main(void)
{
	static const struct proto_test tests[] = {
		{"starts with ten and doubles to the window", test_starts_small_and_doubles},
		{"does not grow while it is not used", test_idle_window_does_not_grow},
		{"half on loss, once a round trip", test_loss_halves_once_a_round_trip},
		{"one packet more a round trip after a loss", test_one_more_a_round_trip},
		{"one packet after a timeout, never none", test_timeout_and_floor},
		{"a window of marks halves it", test_marks_take_half},
		{"a window of one packet works", test_tiny_window},
	};

	return test_main("cc", tests, PMF_ARRAY_SIZE(tests));
}
