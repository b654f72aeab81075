/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "proto/rtt.h"

#include "../unit.h"

#define MIN_RTO (200 * PMF_NS_PER_US)
#define MAX_RTO (2 * PMF_NS_PER_S)

static void test_first_sample(void)
{
	struct pmf_rtt r;

	pmf_rtt_init(&r);
	pmf_rtt_sample(&r, 800 * PMF_NS_PER_US, 1);
	/* RFC 6298 §2.2 */
	CU_ASSERT_EQUAL(r.srtt, 800 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(r.rttvar, 400 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO), 2400 * PMF_NS_PER_US);
}

static void test_guess(void)
{
	struct pmf_rtt r;
	pmf_ns_t unknown;

	pmf_rtt_init(&r);
	unknown = pmf_rtt_rto(&r, MIN_RTO, MAX_RTO);
	/* it holds until the first sample, and is none */
	pmf_rtt_guess(&r, 2 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO), 6 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(r.min, 0);
	pmf_rtt_sample(&r, 800 * PMF_NS_PER_US, 1);
	CU_ASSERT_EQUAL(r.srtt, 800 * PMF_NS_PER_US);
	/* and a peer that was slow is not waited for longer than one of which nothing is known */
	pmf_rtt_init(&r);
	pmf_rtt_guess(&r, 5 * PMF_NS_PER_S);
	CU_ASSERT(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO) <= unknown);
}

static void test_later_sample(void)
{
	struct pmf_rtt r;

	pmf_rtt_init(&r);
	pmf_rtt_sample(&r, 800000, 1);
	pmf_rtt_sample(&r, 1600000, 2);
	/* RFC 6298 §2.3: 3/4 · 400 + 1/4 · 800, 7/8 · 800 + 1/8 · 1600 */
	CU_ASSERT_EQUAL(r.rttvar, 500000);
	CU_ASSERT_EQUAL(r.srtt, 900000);
	CU_ASSERT_EQUAL(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO), 2900000);
}

static void test_bounds(void)
{
	struct pmf_rtt r;

	pmf_rtt_init(&r);
	CU_ASSERT_TRUE(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO) >= 10 * PMF_NS_PER_MS);
	for (int i = 0; i < 100; i++)
		pmf_rtt_sample(&r, 1000, 1);
	CU_ASSERT_EQUAL(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO), MIN_RTO);
	pmf_rtt_init(&r);
	pmf_rtt_sample(&r, 5 * PMF_NS_PER_S, 1);
	CU_ASSERT_EQUAL(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO), MAX_RTO);
}

static void test_backoff(void)
{
	struct pmf_rtt r;
	pmf_ns_t rto, last;

	pmf_rtt_init(&r);
	pmf_rtt_sample(&r, PMF_NS_PER_MS, 1);
	last = pmf_rtt_rto(&r, MIN_RTO, MAX_RTO);
	for (r.backoff = 1; r.backoff < 10; r.backoff++) {
		rto = pmf_rtt_rto(&r, MIN_RTO, MAX_RTO);
		CU_ASSERT_EQUAL(rto, PMF_MIN(2 * last, MAX_RTO));
		last = rto;
	}
	r.backoff = 1000;
	CU_ASSERT_EQUAL(pmf_rtt_rto(&r, MIN_RTO, MAX_RTO), MAX_RTO);
	/* A new sample says that the peer is there again. */
	pmf_rtt_sample(&r, PMF_NS_PER_MS, 2);
	CU_ASSERT_EQUAL(r.backoff, 0);
}

static void test_minimum_slides(void)
{
	struct pmf_rtt r;

	pmf_rtt_init(&r);
	pmf_rtt_sample(&r, 500, 1);
	pmf_rtt_sample(&r, 900, 2);
	CU_ASSERT_EQUAL(r.min, 500);
	pmf_rtt_sample(&r, 400, 3);
	CU_ASSERT_EQUAL(r.min, 400);
	/* A path that has become longer is believed after a while. */
	pmf_rtt_sample(&r, 900, 60 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(r.min, 900);
}

static void test_zero_is_a_sample(void)
{
	struct pmf_rtt r;

	pmf_rtt_init(&r);
	pmf_rtt_sample(&r, 0, 1);
	CU_ASSERT_NOT_EQUAL(r.srtt, 0);
	for (int i = 0; i < 100; i++)
		pmf_rtt_sample(&r, 0, 1);
	CU_ASSERT_NOT_EQUAL(r.srtt, 0);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"the first sample sets both estimates", test_first_sample},
		{"a guess holds until the first sample", test_guess},
		{"a later sample moves them by a quarter and an eighth", test_later_sample},
		{"the timeout stays within its bounds", test_bounds},
		{"backing off doubles up to the bound and ends with a sample", test_backoff},
		{"the minimum is of a sliding period", test_minimum_slides},
		{"a round trip of no time counts as a sample", test_zero_is_a_sample},
	};

	return test_main("rtt", tests, PMF_ARRAY_SIZE(tests));
}
