/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "histogram.h"

#include <stdlib.h>
#include <string.h>

#include <CUnit/Basic.h>

#include "error.h"
#include "options.h"
#include "pattern.h"
#include "value.h"

/* The parts of pmf-perf that need no fabric: numbers in, numbers out. */

static struct perf_histogram h;

static void test_small_values_are_exact(void)
{
	uint64_t v;

	perf_histogram_init(&h);
	for (v = 1; v <= 200; v++)
		perf_histogram_add(&h, v);
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 500000), 100);
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 990000), 198);
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 1000000), 200);
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 0), 1);
	CU_ASSERT_EQUAL(h.min, 1);
	CU_ASSERT_DOUBLE_EQUAL(perf_histogram_mean(&h), 100.5, 1e-9);
}

static void test_any_value_is_within_its_step(void)
{
	uint64_t v, got;

	for (v = 1; v < UINT64_C(1) << 62; v = v * 3 + 1) {
		perf_histogram_init(&h);
		perf_histogram_add(&h, v);
		perf_histogram_add(&h, UINT64_MAX); /* so that the maximum does not cut the edge */
		got = perf_histogram_quantile(&h, 500000);
		CU_ASSERT(got >= v);
		CU_ASSERT(got - v <= v >> PERF_HISTOGRAM_BITS);
	}
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 1000000), UINT64_MAX);
}

static void test_an_empty_histogram_says_0(void)
{
	perf_histogram_init(&h);
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 500000), 0);
	CU_ASSERT_DOUBLE_EQUAL(perf_histogram_mean(&h), 0, 0);
}

static void test_merging_counts_both(void)
{
	static struct perf_histogram other;

	perf_histogram_init(&h);
	perf_histogram_init(&other);
	perf_histogram_add(&h, 10);
	perf_histogram_add(&other, 5);
	perf_histogram_add(&other, 20);
	perf_histogram_merge(&h, &other);
	CU_ASSERT_EQUAL(h.count, 3);
	CU_ASSERT_EQUAL(h.min, 5);
	CU_ASSERT_EQUAL(h.max, 20);
	CU_ASSERT_EQUAL(perf_histogram_quantile(&h, 500000), 10);
}

static void test_every_wrong_byte_is_found(void)
{
	static const size_t sizes[] = {1, 7, 8, 9, 64, 1000};
	uint64_t key = perf_pattern_key(42, 0);
	uint8_t buf[1000];
	size_t s, at;

	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		perf_pattern_fill(buf, sizes[s], key, 7);
		CU_ASSERT_EQUAL(perf_pattern_check(buf, sizes[s], key, 7), sizes[s]);
		for (at = 0; at < sizes[s]; at++) {
			CU_ASSERT_EQUAL(buf[at], perf_pattern_byte(at, key, 7));
			buf[at] ^= 0x10;
			CU_ASSERT_EQUAL(perf_pattern_check(buf, sizes[s], key, 7), at);
			buf[at] ^= 0x10;
		}
	}
}

static void test_another_message_or_flow_differs(void)
{
	uint64_t key = perf_pattern_key(42, 0);
	uint8_t buf[64];

	perf_pattern_fill(buf, sizeof(buf), key, 7);
	CU_ASSERT(perf_pattern_check(buf, sizeof(buf), key, 8) < sizeof(buf));
	CU_ASSERT(perf_pattern_check(buf, sizeof(buf), perf_pattern_key(42, 1), 7) < sizeof(buf));
	CU_ASSERT(perf_pattern_check(buf, sizeof(buf), perf_pattern_key(43, 0), 7) < sizeof(buf));
}

static bool count_is(const char *text, uint64_t want)
{
	uint64_t got = ~want;

	perf_error_clear();
	return perf_value_count(text, UINT64_C(1) << 40, &got) == 0 && got == want;
}

static bool count_fails(const char *text)
{
	uint64_t got = 77;

	perf_error_clear();
	return perf_value_count(text, 1000, &got) == -1 && got == 77 && perf_error()[0];
}

static void test_counts(void)
{
	CU_ASSERT(count_is("0", 0));
	CU_ASSERT(count_is("12", 12));
	CU_ASSERT(count_is("3k", 3000));
	CU_ASSERT(count_is("2M", 2000000));
	CU_ASSERT(count_is("1g", 1000000000));
	CU_ASSERT(count_fails(""));
	CU_ASSERT(count_fails("-1"));
	CU_ASSERT(count_fails(" 1"));
	CU_ASSERT(count_fails("1001"));
	CU_ASSERT(count_fails("2k"));
	CU_ASSERT(count_fails("1kk"));
	CU_ASSERT(count_fails("1x"));
	CU_ASSERT(count_fails("99999999999999999999"));
	CU_ASSERT(count_fails("18446744073709551615g"));
}

static void test_times(void)
{
	uint64_t ns = 0;

	CU_ASSERT_EQUAL(perf_value_time("1.5", &ns), 0);
	CU_ASSERT_EQUAL(ns, 1500000000);
	CU_ASSERT_EQUAL(perf_value_time("20ms", &ns), 0);
	CU_ASSERT_EQUAL(ns, 20000000);
	CU_ASSERT_EQUAL(perf_value_time("7us", &ns), 0);
	CU_ASSERT_EQUAL(ns, 7000);
	perf_error_clear();
	CU_ASSERT_EQUAL(perf_value_time("5 apples", &ns), -1);
	CU_ASSERT_EQUAL(perf_value_time("-5s", &ns), -1);
	CU_ASSERT_EQUAL(perf_value_time("inf", &ns), -1);
	CU_ASSERT_EQUAL(ns, 7000);
}

static void test_lists_of_sizes(void)
{
	static const size_t want[] = {0, 8, 16, 32, 100};
	size_t sizes[PERF_SIZES_MAX];
	unsigned int n = PERF_SIZES_MAX;

	perf_error_clear();
	CU_ASSERT_EQUAL(perf_value_sizes("0,8-32,100", 1 << 20, sizes, &n), 0);
	CU_ASSERT_EQUAL_FATAL(n, 5);
	CU_ASSERT_EQUAL(memcmp(sizes, want, sizeof(want)), 0);
	n = PERF_SIZES_MAX;
	CU_ASSERT_EQUAL(perf_value_sizes("all", 1 << 20, sizes, &n), 0);
	CU_ASSERT_EQUAL(n, 21);
	CU_ASSERT_EQUAL(sizes[20], 1 << 20);
	n = 3;
	CU_ASSERT_EQUAL(perf_value_sizes("all", 1 << 20, sizes, &n), -1);
	perf_error_clear();
	n = PERF_SIZES_MAX;
	CU_ASSERT_EQUAL(perf_value_sizes("64-8", 1 << 20, sizes, &n), -1);
	CU_ASSERT_EQUAL(perf_value_sizes("9-15", 1 << 20, sizes, &n), -1);
	CU_ASSERT_EQUAL(perf_value_sizes("8,,9", 1 << 20, sizes, &n), -1);
	CU_ASSERT_EQUAL(perf_value_sizes("", 1 << 20, sizes, &n), -1);
}

static int parse(struct perf_options *o, const char *line)
{
	static char copy[256];
	char *argv[16], *rest = copy;
	int argc = 0;

	perf_error_clear();
	perf_options_init(o);
	strcpy(copy, line);
	while (argc < 16 && (argv[argc] = strsep(&rest, " ")))
		argc++;
	return perf_options_parse(o, argc, argv);
}

static void test_options_in_both_spellings(void)
{
	static struct perf_options o;

	CU_ASSERT_EQUAL(parse(&o, "--mode=rate,lat -s 8-16 --peer a --peer b:7 -c -pshm -w 16"), 0);
	CU_ASSERT_EQUAL(o.n_modes, 2);
	CU_ASSERT_EQUAL(o.modes[0], PERF_RATE);
	CU_ASSERT_EQUAL(o.modes[1], PERF_LAT);
	CU_ASSERT_EQUAL(o.n_sizes, 2);
	CU_ASSERT_EQUAL(o.n_peers, 2);
	CU_ASSERT_STRING_EQUAL(o.peers[1], "b:7");
	CU_ASSERT_STRING_EQUAL(o.provider, "shm");
	CU_ASSERT_EQUAL(o.window, 16);
	CU_ASSERT(o.verify);
	CU_ASSERT_EQUAL(perf_options_check(&o), 0);
}

static void test_bad_options_say_which(void)
{
	static struct perf_options o;
	static const char *const bad[] = {"--nonsense",	  "--window",	"--window 0", "--mode fast",
					  "-x",		  "something",	"--listen=1", "--size 2g",
					  "--port 70000", "--timeout 0"};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(parse(&o, bad[i]), -1);
		CU_ASSERT(perf_error()[0] != '\0');
	}
	CU_ASSERT_EQUAL(parse(&o, "--listen --peer a"), 0);
	CU_ASSERT_EQUAL(perf_options_check(&o), -1);
	CU_ASSERT_EQUAL(parse(&o, "--peer a --window 4 --more 5"), 0);
	CU_ASSERT_EQUAL(perf_options_check(&o), -1);
}

static void test_the_prompt_sets_work_but_no_provider(void)
{
	static struct perf_options o;

	CU_ASSERT_EQUAL(parse(&o, "--peer a"), 0);
	CU_ASSERT_EQUAL(perf_options_set(&o, "size", "1k"), 0);
	CU_ASSERT_EQUAL(o.sizes[0], 1024);
	CU_ASSERT_EQUAL(perf_options_set(&o, "verify", "on"), 0);
	CU_ASSERT(o.verify);
	CU_ASSERT_EQUAL(perf_options_set(&o, "verify", "off"), 0);
	CU_ASSERT(!o.verify);
	CU_ASSERT_EQUAL(perf_options_set(&o, "provider", "tcp"), -1);
	CU_ASSERT_EQUAL(perf_options_set(&o, "window", NULL), -1);
	CU_ASSERT_EQUAL(perf_options_set(&o, "window", "x"), -1);
	CU_ASSERT_EQUAL(o.window, 64);
}

int main(void)
{
	CU_pSuite suite;
	unsigned int failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite("pmf-perf values", NULL, NULL);
	CU_ADD_TEST(suite, test_small_values_are_exact);
	CU_ADD_TEST(suite, test_any_value_is_within_its_step);
	CU_ADD_TEST(suite, test_an_empty_histogram_says_0);
	CU_ADD_TEST(suite, test_merging_counts_both);
	CU_ADD_TEST(suite, test_every_wrong_byte_is_found);
	CU_ADD_TEST(suite, test_another_message_or_flow_differs);
	CU_ADD_TEST(suite, test_counts);
	CU_ADD_TEST(suite, test_times);
	CU_ADD_TEST(suite, test_lists_of_sizes);
	CU_ADD_TEST(suite, test_options_in_both_spellings);
	CU_ADD_TEST(suite, test_bad_options_say_which);
	CU_ADD_TEST(suite, test_the_prompt_sets_work_but_no_provider);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() || CU_get_number_of_tests_run() == 0;
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
