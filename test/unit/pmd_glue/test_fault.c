/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The wire that misbehaves: the text, the frequencies, the clock, and that a seed repeats a run.
 */
#include "pmf_fault_text.h"

#include "../unit.h"

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
	CU_ASSERT_EQUAL(fault.conf.loss, 42949673);
	CU_ASSERT_EQUAL(fault.conf.dup, 21474836);
	CU_ASSERT_EQUAL(fault.conf.reorder, 214748365);
	CU_ASSERT_EQUAL(fault.conf.span, 20);
	CU_ASSERT_EQUAL(fault.conf.seed, 7);
}

static void test_parse_parts(void)
{
	CU_ASSERT_EQUAL_FATAL(parse(""), 0);
	CU_ASSERT_EQUAL(fault.conf.loss + fault.conf.dup + fault.conf.reorder, 0);
	CU_ASSERT_EQUAL_FATAL(parse("loss=0.25"), 0);
	CU_ASSERT_EQUAL(fault.conf.loss, 1u << 30);
	CU_ASSERT_EQUAL_FATAL(parse("reorder=100%"), 0);
	CU_ASSERT_EQUAL(fault.conf.reorder, 1ull << 32);
	CU_ASSERT_EQUAL(fault.conf.span, PMF_FAULT_SPAN_DEFAULT);
	CU_ASSERT_EQUAL_FATAL(parse("seed=18446744073709551615"), 0);
	CU_ASSERT_EQUAL(fault.conf.seed, UINT64_MAX);
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
					  "seed=99999999999999999999",
					  "burst=1%",
					  "every=0.5",
					  "kinds=date",
					  "kinds=",
					  "delay=5",
					  "delay=5m",
					  "delay=99999999999s",
					  "cut=5ms",
					  "cut=5ms:4ms",
					  "pause=1ms:1ms",
					  "pause=1ms",
					  "rate=10:20:30:40",
					  "corrupt=1%:1%"};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(bad); i++) {
		fault.conf.seed = 12345;
		CU_ASSERT_EQUAL(parse(bad[i]), -EINVAL);
		CU_ASSERT_NOT_EQUAL(err[0], '\0');
		CU_ASSERT_EQUAL(fault.conf.seed, 12345);
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

#define US PMF_NS_PER_US
#define MS PMF_NS_PER_MS
#define LEN 1000u

static struct pmf_fault_verdict next(pmf_ns_t now)
{
	return pmf_fault_next(&fault, LEN, 4, now);
}

static void test_frequencies(void)
{
	const unsigned int n = 2000000;
	unsigned int loss = 0, dup = 0, late = 0, both = 0, flips = 0, cuts = 0;
	unsigned int behind[8] = {0};

	CU_ASSERT_EQUAL_FATAL(parse("loss=1%,dup=2%,reorder=5%:7,corrupt=3%,truncate=4%"), 0);
	pmf_fault_reseed(&fault, test_seed());
	for (unsigned int i = 0; i < n; i++) {
		const struct pmf_fault_verdict v = next(i + 1);

		CU_ASSERT_FATAL(v.behind <= 7 && v.where < LEN && v.len <= LEN);
		if (v.drop) {
			loss++;
			continue;
		}
		dup += v.dup;
		late += v.behind != 0;
		both += v.dup && v.behind;
		flips += v.flip != 0;
		cuts += v.len != LEN;
		behind[v.behind]++;
	}
	CU_ASSERT_TRUE(likely(loss, n, 0.01));
	CU_ASSERT_TRUE(likely(dup, n - loss, 0.02));
	CU_ASSERT_TRUE(likely(late, n - loss, 0.05));
	CU_ASSERT_TRUE(likely(flips, n - loss, 0.03));
	CU_ASSERT_TRUE(likely(cuts, n - loss, 0.04));
	/* Independent of each other. */
	CU_ASSERT_TRUE(likely(both, n - loss, 0.001));
	for (unsigned int k = 1; k <= 7; k++)
		CU_ASSERT_TRUE(likely(behind[k], n - loss, 0.05 / 7));
}

static void test_spared_bytes_stay_whole(void)
{
	bool first = false, last = false;

	CU_ASSERT_EQUAL_FATAL(parse("corrupt=100%:14"), 0);
	for (unsigned int i = 1; i <= 100000; i++) {
		const struct pmf_fault_verdict v = next(i);

		CU_ASSERT_FATAL(v.flip != 0 && v.where >= 14 && v.where < LEN);
		first |= v.where == 14;
		last |= v.where == LEN - 1;
	}
	CU_ASSERT_TRUE(first && last);
	/* Nothing is left to be altered. */
	CU_ASSERT_EQUAL(pmf_fault_next(&fault, 14, 4, 1).flip, 0);
}

/* One in a hundred begins a burst, one in five ends it: five long, and one in 21 of all lost. */
static void test_bursts(void)
{
	const unsigned int n = 2000000;
	unsigned int lost = 0, bursts = 0;
	bool before = false;

	CU_ASSERT_EQUAL_FATAL(parse("burst=1%:20%"), 0);
	pmf_fault_reseed(&fault, test_seed());
	for (unsigned int i = 0; i < n; i++) {
		const bool drop = next(i + 1).drop;

		lost += drop;
		bursts += drop && !before;
		before = drop;
	}
	CU_ASSERT_DOUBLE_EQUAL((double)lost / bursts, 5, 0.2);
	CU_ASSERT_DOUBLE_EQUAL((double)lost / n, 1.0 / 21, 0.003);
}

static void test_every_nth_of_a_kind(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("every=3,kinds=data+ack"), 0);
	for (unsigned int i = 1; i <= 30; i++) {
		CU_ASSERT_EQUAL(pmf_fault_next(&fault, LEN, 1, i).drop, PMF_FAULT_PASSES);
		CU_ASSERT_EQUAL(pmf_fault_next(&fault, LEN, i & 1 ? 4 : 5, i).drop,
				i % 3 ? PMF_FAULT_PASSES : PMF_FAULT_LOST);
	}
}

static void test_delay_and_jitter(void)
{
	pmf_ns_t least = PMF_NS_NEVER, most = 0;

	CU_ASSERT_EQUAL_FATAL(parse("delay=50us,jitter=10us"), 0);
	for (unsigned int i = 1; i <= 10000; i++) {
		const pmf_ns_t at = next(i * US).at - i * US;

		least = PMF_MIN(least, at);
		most = PMF_MAX(most, at);
	}
	CU_ASSERT_TRUE(least >= 50 * US && least < 51 * US);
	CU_ASSERT_TRUE(most <= 60 * US && most > 59 * US);
}

/* 1,000 bytes take 1 us at 8 Gb/s; the queue holds ten of them, and is marked beyond five. */
static void test_limited_rate(void)
{
	unsigned int passed = 0, marked = 0;

	CU_ASSERT_EQUAL_FATAL(parse("rate=8000:10000:5000"), 0);
	for (unsigned int i = 0; i < 20; i++) {
		const struct pmf_fault_verdict v = next(MS);

		if (v.drop) {
			CU_ASSERT_EQUAL(v.drop, PMF_FAULT_FULL);
			continue;
		}
		passed++;
		marked += v.mark;
		CU_ASSERT_EQUAL(v.at, MS + passed * US);
	}
	CU_ASSERT_EQUAL(passed, 10);
	CU_ASSERT_EQUAL(marked, 4);
	/* Later it is empty again. */
	CU_ASSERT_EQUAL(next(2 * MS).at, 2 * MS + US);
}

static void test_cut_and_pause(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("cut=10ms:20ms"), 0);
	CU_ASSERT_FALSE(next(5 * MS).drop); /* the first: time counts from here */
	CU_ASSERT_FALSE(next(14 * MS).drop);
	CU_ASSERT_EQUAL(next(15 * MS).drop, PMF_FAULT_CUT);
	CU_ASSERT_EQUAL(next(25 * MS - 1).drop, PMF_FAULT_CUT);
	CU_ASSERT_FALSE(next(25 * MS).drop);

	CU_ASSERT_EQUAL_FATAL(parse("pause=10ms:2ms"), 0);
	CU_ASSERT_EQUAL(next(100 * MS).at, 100 * MS);
	CU_ASSERT_EQUAL(next(107 * MS).at, 107 * MS);
	CU_ASSERT_EQUAL(next(109 * MS).at, 110 * MS);
	CU_ASSERT_EQUAL(next(110 * MS).at, 110 * MS);
	CU_ASSERT_EQUAL(next(118 * MS).at, 120 * MS);
}

static void test_extremes(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("loss=100%"), 0);
	for (unsigned int i = 1; i < 100000; i++)
		CU_ASSERT_FATAL(next(i).drop == PMF_FAULT_LOST);
	CU_ASSERT_EQUAL_FATAL(parse("reorder=100%:1,dup=100%"), 0);
	for (unsigned int i = 1; i < 100000; i++) {
		const struct pmf_fault_verdict v = next(i);

		CU_ASSERT_FATAL(!v.drop && v.behind == 1 && v.dup && v.at == i && v.len == LEN);
	}
}

static void test_print_is_read_as_the_same(void)
{
	static const char *const texts[] = {
		"",
		"loss=1%,dup=0.5%,reorder=5%:20,seed=7",
		"burst=0.1%:20%,every=100,kinds=data+ack+other,corrupt=1e-7:14,truncate=100%",
		"delay=50us,jitter=1500ns,rate=25000:1000000:100000,cut=1s:2s,pause=10ms:1ms",
		"rate=100,cut=0ns:5ms",
	};
	char text[512];
	struct pmf_fault first;

	for (size_t i = 0; i < PMF_ARRAY_SIZE(texts); i++) {
		CU_ASSERT_EQUAL_FATAL(parse(texts[i]), 0);
		first = fault;
		pmf_fault_print(&fault.conf, text, sizeof(text));
		CU_ASSERT_EQUAL_FATAL(parse(text), 0);
		CU_ASSERT_EQUAL(memcmp(&first.conf, &fault.conf, sizeof(first.conf)), 0);
	}
	CU_ASSERT_STRING_EQUAL(text, "rate=100:0:0,cut=0s:5ms,seed=1");
}

static void test_seed_repeats(void)
{
	struct pmf_fault a, b;
	bool differs = false;

	CU_ASSERT_EQUAL_FATAL(
		parse("loss=30%,dup=30%,reorder=30%:1024,corrupt=10%,jitter=1ms,seed=99"), 0);
	a = b = fault;
	for (unsigned int i = 1; i <= 1000; i++) {
		const struct pmf_fault_verdict x = pmf_fault_next(&a, LEN, 4, i),
					       y = pmf_fault_next(&b, LEN, 4, i);

		CU_ASSERT_FATAL(x.drop == y.drop && x.dup == y.dup && x.behind == y.behind &&
				x.flip == y.flip && x.where == y.where && x.at == y.at);
	}
	pmf_fault_reseed(&a, 99);
	pmf_fault_reseed(&b, 100);
	for (unsigned int i = 1; i <= 1000; i++)
		differs |= pmf_fault_next(&a, LEN, 4, i).behind !=
			   pmf_fault_next(&b, LEN, 4, i).behind;
	CU_ASSERT_TRUE(differs);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"the whole text", test_parse_whole},
		{"any part of it", test_parse_parts},
		{"refusals", test_parse_refusals},
		{"frequencies", test_frequencies},
		{"spared bytes stay whole", test_spared_bytes_stay_whole},
		{"bursts", test_bursts},
		{"every nth of a kind", test_every_nth_of_a_kind},
		{"delay and jitter", test_delay_and_jitter},
		{"a limited rate with a queue", test_limited_rate},
		{"a cut, and pauses", test_cut_and_pause},
		{"always", test_extremes},
		{"what is printed is read as the same", test_print_is_read_as_the_same},
		{"a seed repeats a run", test_seed_repeats},
	};

	return test_main("fault", tests, PMF_ARRAY_SIZE(tests));
}
