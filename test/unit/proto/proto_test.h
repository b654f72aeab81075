/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the unit tests of proto share: a main over a table of tests, and seeded random numbers.
 */
#ifndef PROTO_TEST_H
#define PROTO_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <CUnit/Basic.h>

#include "pmf_common.h"

struct proto_test {
	const char *name;
	void (*run)(void);
};

/* splitmix64: a state of one word, any seed is good. */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* The seed of this run: PMF_TEST_SEED, or a new one. Printed, so that a failure can be had again.
 */
static inline uint64_t test_seed(void)
{
	const char *given = getenv("PMF_TEST_SEED");
	struct timespec ts;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &ts);
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)ts.tv_sec * 1000000007u + ts.tv_nsec;
	printf(" PMF_TEST_SEED=%llu ", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

static inline int test_main(const char *suite_name, const struct proto_test *tests, size_t n)
{
	CU_pSuite suite;
	unsigned int failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t i = 0; suite != NULL && i < n; i++)
		if (CU_add_test(suite, tests[i].name, tests[i].run) == NULL)
			suite = NULL;
	if (suite == NULL)
		return 2;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	if (CU_get_number_of_tests_run() != n)
		failed++;
	CU_cleanup_registry();
	return failed != 0;
}

#endif
