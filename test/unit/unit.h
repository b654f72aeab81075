/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the unit tests share: a main over tables of tests, and seeded random numbers.
 */
#ifndef PMF_TEST_UNIT_H
#define PMF_TEST_UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <CUnit/Basic.h>

#include "pmf_common.h"

struct unit_test {
	const char *name;
	void (*run)(void);
};

/* A test by the name of its function. */
#define UNIT_TEST(fn)   \
	{               \
#fn, fn \
	}

struct unit_suite {
	const char *name;
	const struct unit_test *tests;
	int (*init)(void); /* 0: went well; may be NULL, as the next */
	int (*fini)(void);
	size_t n; /* 0: up to one without a name */
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

/* @return the exit status: a test that has not run is a failure, too */
static inline int test_suites(const struct unit_suite *suites, size_t n)
{
	size_t all = 0;
	bool good;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	for (size_t i = 0; i < n; i++) {
		CU_pSuite s = CU_add_suite(suites[i].name, suites[i].init, suites[i].fini);

		for (size_t k = 0; suites[i].n ? k < suites[i].n : suites[i].tests[k].name != NULL;
		     k++, all++)
			if (!s || !CU_add_test(s, suites[i].tests[k].name, suites[i].tests[k].run))
				return 2;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	good = CU_get_number_of_failures() == 0 && CU_get_number_of_tests_run() == all;
	CU_cleanup_registry();
	return good ? 0 : 1;
}

static inline int test_main(const char *suite, const struct unit_test *tests, size_t n)
{
	const struct unit_suite all = {.name = suite, .tests = tests, .n = n};

	return test_suites(&all, 1);
}

#define UNIT_MAIN(suite)                                               \
	int main(void)                                                 \
	{                                                              \
		return test_main(suite, tests, PMF_ARRAY_SIZE(tests)); \
	}

#endif
