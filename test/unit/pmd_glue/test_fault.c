/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * pmf_fault.h: the text, the frequencies, and that a seed repeats a run.
 */
#include "pmf_fault.h"

#include "pmd_glue_test.h"

static struct pmf_fault fault;
static char err[256];

static int parse(const char *text)
{
	err[0] = '\0';
	return pmf_fault_parse(text, &fault, err, sizeof(err));
}

static void test_parse_whole(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("loss=1%,dup=0.5%,reorder=5%:20,seed=7"), 0);
	CU_ASSERT_EQUAL(fault.loss, 42949673);
	CU_ASSERT_EQUAL(fault.dup, 21474836);
	CU_ASSERT_EQUAL(fault.reorder, 214748365);
	CU_ASSERT_EQUAL(fault.span, 20);
	CU_ASSERT_EQUAL(fault.seed, 7);
}

static void test_parse_parts(void)
{
	CU_ASSERT_EQUAL_FATAL(parse(""), 0);
	CU_ASSERT_EQUAL(fault.loss + fault.dup + fault.reorder, 0);
	CU_ASSERT_EQUAL_FATAL(parse("loss=0.25"), 0);
	CU_ASSERT_EQUAL(fault.loss, 1u << 30);
	CU_ASSERT_EQUAL_FATAL(parse("reorder=100%"), 0);
	CU_ASSERT_EQUAL(fault.reorder, 1ull << 32);
	CU_ASSERT_EQUAL(fault.span, PMF_FAULT_SPAN_DEFAULT);
	CU_ASSERT_EQUAL_FATAL(parse("seed=18446744073709551615"), 0);
	CU_ASSERT_EQUAL(fault.seed, UINT64_MAX);
}

static void test_parse_refusals(void)
{
	static const char *const bad[] = {"loss",
					  "loss=",
					  "loss=x",
					  "loss=101%",
					  "loss=-1%",
					  "loss=nan",
					  "loss=1%x",
					  "loss=1%:3",
					  "reorder=5%:",
					  "reorder=5%:0",
					  "reorder=:20",
					  "reorder=5%:2000",
					  "seed=x",
					  "seed=",
					  "lose=1%",
					  ",",
					  "loss=1%,,dup=1%",
					  "seed=1:2",
					  "reorder=5%:20%",
					  "seed=99999999999999999999"};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(bad); i++) {
		fault.seed = 12345;
		CU_ASSERT_EQUAL(parse(bad[i]), -EINVAL);
		CU_ASSERT_NOT_EQUAL(err[0], '\0');
		CU_ASSERT_EQUAL(fault.seed, 12345);
		if (err[0] == '\0')
			printf("\n  taken: %s\n", bad[i]);
	}
}

/* Is @p seen within six standard deviations of n trials at @p chance? */
static bool likely(unsigned int seen, unsigned int n, double chance)
{
	const double mean = n * chance, var = mean * (1 - chance), d = seen - mean;

	return d * d <= 36 * var + 1;
}

static void test_frequencies(void)
{
	const unsigned int n = 2000000;
	unsigned int loss = 0, dup = 0, late = 0, both = 0;
	unsigned int behind[8] = {0};

	CU_ASSERT_EQUAL_FATAL(parse("loss=1%,dup=2%,reorder=5%:7"), 0);
	pmf_fault_reseed(&fault, test_seed());
	for (unsigned int i = 0; i < n; i++) {
		const struct pmf_fault_verdict v = pmf_fault_next(&fault);

		loss += v.drop;
		dup += v.dup;
		late += v.behind != 0;
		both += v.dup && v.behind;
		CU_ASSERT_FATAL(v.behind <= 7);
		behind[v.behind]++;
	}
	CU_ASSERT_TRUE(likely(loss, n, 0.01));
	CU_ASSERT_TRUE(likely(dup, n, 0.02));
	CU_ASSERT_TRUE(likely(late, n, 0.05));
	/* Independent of each other. */
	CU_ASSERT_TRUE(likely(both, n, 0.001));
	for (unsigned int k = 1; k <= 7; k++)
		CU_ASSERT_TRUE(likely(behind[k], n, 0.05 / 7));
}

static void test_extremes(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("loss=100%,reorder=100%:1"), 0);
	for (int i = 0; i < 100000; i++) {
		const struct pmf_fault_verdict v = pmf_fault_next(&fault);

		CU_ASSERT_FATAL(v.drop && v.behind == 1 && !v.dup);
	}
}

static void test_seed_repeats(void)
{
	struct pmf_fault a, b;
	bool differs = false;

	CU_ASSERT_EQUAL_FATAL(parse("loss=30%,dup=30%,reorder=30%:1024,seed=99"), 0);
	a = b = fault;
	for (int i = 0; i < 1000; i++) {
		const struct pmf_fault_verdict x = pmf_fault_next(&a), y = pmf_fault_next(&b);

		CU_ASSERT_FATAL(x.drop == y.drop && x.dup == y.dup && x.behind == y.behind);
	}
	pmf_fault_reseed(&a, 99);
	pmf_fault_reseed(&b, 100);
	for (int i = 0; i < 1000; i++)
		differs |= pmf_fault_next(&a).behind != pmf_fault_next(&b).behind;
	CU_ASSERT_TRUE(differs);
}

int main(void)
{
	static const struct glue_test tests[] = {
		{"the whole text", test_parse_whole},
		{"any part of it", test_parse_parts},
		{"refusals", test_parse_refusals},
		{"frequencies", test_frequencies},
		{"always", test_extremes},
		{"a seed repeats a run", test_seed_repeats},
		{NULL},
	};
	static const struct glue_suite suite = {"fault", tests};

	return glue_run(&suite, 1);
}
