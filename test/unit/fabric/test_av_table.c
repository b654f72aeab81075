/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/av_table.h"

#include <stdlib.h>

#include "../unit.h"

/* Two neighbours are one address under two keys. */
static struct pmf_peer peer_of(uint32_t n)
{
	uint8_t ip[4] = {10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)(n & ~1u)};
	struct pmf_peer p = {.key = n & 1};

	pmf_addr_set_v4(&p.addr, ip, (uint16_t)(1000 + (n >> 1) % 7));
	return p;
}

static uint32_t insert(struct pmf_av_table *t, uint32_t n, bool expect_fresh)
{
	struct pmf_peer a = peer_of(n);
	uint32_t index = PMF_AV_NONE;
	bool fresh;

	CU_ASSERT_EQUAL_FATAL(pmf_av_table_insert(t, &a, &index, &fresh), 0);
	CU_ASSERT_EQUAL(fresh, expect_fresh);
	return index;
}

static void take_out(struct pmf_av_table *t, uint32_t index, bool expect_gone)
{
	bool gone;

	CU_ASSERT_EQUAL(pmf_av_table_remove(t, index, &gone), 0);
	CU_ASSERT_EQUAL(gone, expect_gone);
}

static void test_indices_count_up_over_growth(void)
{
	struct pmf_av_table t;

	CU_ASSERT_EQUAL_FATAL(pmf_av_table_init(&t, 0), 0);
	for (uint32_t i = 0; i < 5000; i++)
		CU_ASSERT_EQUAL(insert(&t, i, true), i);
	for (uint32_t i = 0; i < 5000; i++) {
		struct pmf_peer a = peer_of(i);

		CU_ASSERT_EQUAL(pmf_av_table_find(&t, &a), i);
		CU_ASSERT(pmf_peer_eq(pmf_av_table_get(&t, i), &a));
	}
	CU_ASSERT_PTR_NULL(pmf_av_table_get(&t, 5000));
	CU_ASSERT_PTR_NULL(pmf_av_table_get(&t, UINT64_MAX));
	pmf_av_table_fini(&t);
}

static void test_the_lowest_free_index_comes_first(void)
{
	struct pmf_av_table t;

	CU_ASSERT_EQUAL_FATAL(pmf_av_table_init(&t, 0), 0);
	for (uint32_t i = 0; i < 10; i++)
		insert(&t, i, true);
	take_out(&t, 7, true);
	take_out(&t, 2, true);
	take_out(&t, 5, true);
	CU_ASSERT_PTR_NULL(pmf_av_table_get(&t, 5));
	CU_ASSERT_EQUAL(insert(&t, 100, true), 2);
	CU_ASSERT_EQUAL(insert(&t, 101, true), 5);
	CU_ASSERT_EQUAL(insert(&t, 102, true), 7);
	CU_ASSERT_EQUAL(insert(&t, 103, true), 10);
	pmf_av_table_fini(&t);
}

static void test_an_address_inserted_twice_is_removed_twice(void)
{
	struct pmf_peer a = peer_of(1);
	struct pmf_av_table t;
	bool gone;

	CU_ASSERT_EQUAL_FATAL(pmf_av_table_init(&t, 0), 0);
	insert(&t, 0, true);
	CU_ASSERT_EQUAL(insert(&t, 1, true), 1);
	CU_ASSERT_EQUAL(insert(&t, 1, false), 1);
	take_out(&t, 1, false);
	CU_ASSERT_EQUAL(pmf_av_table_find(&t, &a), 1);
	take_out(&t, 1, true);
	CU_ASSERT_EQUAL(pmf_av_table_find(&t, &a), PMF_AV_NONE);
	CU_ASSERT_EQUAL(pmf_av_table_remove(&t, 1, &gone), -EINVAL);
	CU_ASSERT_EQUAL(pmf_av_table_remove(&t, 1ull << 40, &gone), -EINVAL);
	pmf_av_table_fini(&t);
}

/* Against a plain model: insert and remove at random, and compare all answers. */
static void test_random_steps_match_a_model(void)
{
	enum { ADDRS = 300, STEPS = 20000 };
	const char *given = getenv("PMF_SEED");
	unsigned int seed = given ? (unsigned int)strtoul(given, NULL, 0) : 20261130;
	uint32_t index_of[ADDRS], refs[ADDRS] = {0};
	bool taken[ADDRS + 1] = {false};
	struct pmf_av_table t;

	printf("PMF_SEED=%u ", seed);
	CU_ASSERT_EQUAL_FATAL(pmf_av_table_init(&t, 0), 0);
	for (int i = 0; i < STEPS; i++) {
		uint32_t n = (uint32_t)rand_r(&seed) % ADDRS;
		uint32_t lowest = 0;

		if (refs[n] && rand_r(&seed) % 2) {
			take_out(&t, index_of[n], refs[n] == 1);
			if (--refs[n] == 0)
				taken[index_of[n]] = false;
			continue;
		}
		while (taken[lowest])
			lowest++;
		if (!refs[n]) {
			index_of[n] = lowest;
			taken[lowest] = true;
		}
		CU_ASSERT_EQUAL(insert(&t, n, refs[n] == 0), index_of[n]);
		refs[n]++;
	}
	pmf_av_table_fini(&t);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_indices_count_up_over_growth),
	UNIT_TEST(test_the_lowest_free_index_comes_first),
	UNIT_TEST(test_an_address_inserted_twice_is_removed_twice),
	UNIT_TEST(test_random_steps_match_a_model),
};
UNIT_MAIN("fabric av_table")
