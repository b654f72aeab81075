/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the unit tests of pmd_glue share: a main over tables of tests, and seeded random numbers.
 */
#ifndef PMD_GLUE_TEST_H
#define PMD_GLUE_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <CUnit/Basic.h>

#include "pmf_common.h"

struct glue_test {
	const char *name;
	void (*run)(void);
};

struct glue_suite {
	const char *name;
	const struct glue_test *tests; /* ends with a name of NULL */
	int (*init)(void);	       /* 0: went well; may be NULL, as the next */
	int (*fini)(void);
};

/* splitmix64 */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* PMF_TEST_SEED, or a new one; printed, so that a failure can be had again. */
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

/* @return the exit status */
static inline int glue_run(const struct glue_suite *suites, size_t n)
{
	unsigned int failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	for (size_t i = 0; i < n; i++) {
		CU_pSuite s = CU_add_suite(suites[i].name, suites[i].init, suites[i].fini);

		if (!s)
			return 2;
		for (const struct glue_test *t = suites[i].tests; t->name; t++)
			if (!CU_add_test(s, t->name, t->run))
				return 2;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}

#endif
