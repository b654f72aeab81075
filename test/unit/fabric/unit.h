/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PMF_TEST_FABRIC_UNIT_H
#define PMF_TEST_FABRIC_UNIT_H

#include <CUnit/Basic.h>
#include <stddef.h>

struct unit_test {
	const char *name;
	void (*fn)(void);
};

#define UNIT_TEST(fn)   \
	{               \
#fn, fn \
	}

static inline int unit_main(const char *suite, const struct unit_test *tests, size_t count)
{
	unsigned int failed;
	CU_pSuite s;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	s = CU_add_suite(suite, NULL, NULL);
	for (size_t i = 0; i < count; i++)
		CU_add_test(s, tests[i].name, tests[i].fn);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() + CU_get_number_of_tests_failed();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}

#define UNIT_MAIN(suite)                                                          \
	int main(void)                                                            \
	{                                                                         \
		return unit_main(suite, tests, sizeof(tests) / sizeof(tests[0])); \
	}

#endif
