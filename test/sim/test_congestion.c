/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Many senders to one receiver, over a bottleneck of 25 Gb/s with 10 us of round trip, a queue of
 * 1 MB that drops at its end, and marks at 100 KB. What is judged is what leaves the bottleneck, in
 * pieces of 10 ms. Every figure is printed.
 */
#include "test_sim.h"

#include <stdlib.h>

#define GBPS 25.0
#define SLICE (10 * MS)
#define MOST_SAMPLES (1u << 20)

static struct {
	uint64_t bytes[SIM_MAX_NODES]; /* data through the bottleneck in this slice, by sender */
	uint32_t waits[MOST_SAMPLES];  /* ns in its queue, of each data frame */
	uint32_t nwaits;
} seen;

static void watch(struct sim *s, const struct sim_frame *f, pmf_ns_t waits, void *arg)
{
	(void)s;
	(void)arg;
	if (f->dst != 0)
		return;
	seen.bytes[f->src] += f->len + SIM_WIRE_OVERHEAD;
	if (seen.nwaits < MOST_SAMPLES)
		seen.waits[seen.nwaits++] = (uint32_t)waits;
}

static void look_anew(void)
{
	memset(seen.bytes, 0, sizeof(seen.bytes));
	seen.nwaits = 0;
}

/* Jain's index over senders from @p first on. */
static double jain(unsigned int first, unsigned int n)
{
	double sum = 0, squares = 0;

	for (unsigned int i = first; i < first + n; i++) {
		sum += (double)seen.bytes[i];
		squares += (double)seen.bytes[i] * (double)seen.bytes[i];
	}
	return sum * sum / (n * squares);
}

/* Share of the bottleneck that was used in @p time. */
static double used(pmf_ns_t time)
{
	double sum = 0;

	for (unsigned int i = 1; i < SIM_MAX_NODES; i++)
		sum += (double)seen.bytes[i];
	return sum * 8 / GBPS / (double)time;
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static double quantile(double q)
{
	qsort(seen.waits, seen.nwaits, sizeof(seen.waits[0]), by_size);
	return seen.nwaits ? seen.waits[(uint32_t)(q * (seen.nwaits - 1))] / 1e3 : 0;
}

/* What the senders want to see in the queue, on average. */
static double mean_target(unsigned int senders)
{
	double sum = 0;

	for (unsigned int i = 1; i <= senders; i++)
		sum += (double)flow(i, 0)->cc.target / 1e3;
	return sum / senders;
}

static void open_bottleneck(unsigned int senders)
{
	begin();
	conf.nodes = senders + 1;
	conf.gbps = GBPS;
	conf.queue = 1000000;
	conf.ecn_mark = 100000;
	conf.fixed_size = 1000000;
	conf.private_bytes = false;
	conf.receives = 1000;
	open_sim();
	sim.watch = watch;
}

static void start(unsigned int sender)
{
	sim_add_stream(&sim, sender, 0, 1u << 30, 8);
}

static void compete(const char *name, unsigned int senders, unsigned int far, double least)
{
	double worst = 1, thinnest = 1, longest = 0, target = 0;
	uint64_t dropped;

	open_bottleneck(senders);
	for (unsigned int i = 1; i <= far; i++)
		sim.node[i].delay = 50 * US;
	for (unsigned int i = 1; i <= senders; i++)
		start(i);
	run_until(SLICE);
	dropped = sim.dropped;
	for (unsigned int slice = 1; slice < 20; slice++) {
		double j, u, median;

		look_anew();
		run_until((slice + 1) * SLICE);
		j = jain(1, senders);
		u = used(SLICE);
		median = quantile(0.5);
		worst = PMF_MIN(worst, j);
		thinnest = PMF_MIN(thinnest, u);
		if (median > longest) {
			longest = median;
			target = mean_target(senders);
		}
	}
	printf("  %s: Jain >= %.3f, throughput >= %.1f %%, median in queue <= %.1f us (target "
	       "%.1f), %" PRIu64 " dropped, %" PRIu64 " marked\n",
	       name, worst, 100 * thinnest, longest, target, sim.dropped - dropped, sim.marked);
	CU_ASSERT_TRUE(worst >= least);
	CU_ASSERT_TRUE(thinnest >= 0.9);
	CU_ASSERT_TRUE(longest <= 2 * target);
	CU_ASSERT_EQUAL(sim.dropped - dropped, 0);
	end();
}

static void test_eight(void)
{
	compete("8 senders", 8, 0, 0.95);
}

static void test_sixty_four(void)
{
	compete("64 senders", 64, 0, 0.95);
}

static void test_eight_near_and_far(void)
{
	compete("8 senders, 4 of them far", 8, 4, 0.8);
}

static void test_sixty_four_near_and_far(void)
{
	compete("64 senders, 32 of them far", 64, 32, 0.8);
}

/* ---- those who come and go ---- */

#define ROUND (10 * US)

/* The last of @p senders stops; others have its part after 20 round trips. */
static void leave(unsigned int senders)
{
	double u;

	open_bottleneck(senders);
	for (unsigned int i = 1; i <= senders; i++)
		start(i);
	run_until(20 * MS);
	sim.node[senders].stopped = true;
	run_until(sim.now + 20 * ROUND);
	look_anew();
	run_until(sim.now + 100 * ROUND);
	u = used(100 * ROUND);
	printf("  one of %u stops: %.1f %% used from the 20th to the 120th round trip\n", senders,
	       100 * u);
	CU_ASSERT_TRUE(u >= 0.9);
	end();
}

static void test_leaver(void)
{
	leave(8);
}

static void test_half_leave(void)
{
	leave(2);
}

static void join(unsigned int before, pmf_ns_t measured)
{
	double share;

	open_bottleneck(before + 1);
	for (unsigned int i = 1; i <= before; i++)
		start(i);
	run_until(20 * MS);
	start(before + 1);
	run_until(sim.now + 100 * ROUND);
	look_anew();
	run_until(sim.now + measured);
	share = (double)seen.bytes[before + 1] * 8 * (before + 1) / GBPS / (double)measured;
	printf("  one joins %u: %.0f %% of its share after 100 round trips, Jain %.3f\n", before,
	       100 * share, jain(1, before + 1));
	CU_ASSERT_TRUE(share >= 0.8);
	end();
}

static void test_joiner(void)
{
	join(8, MS);
}

static void test_joiner_of_many(void)
{
	join(63, 10 * MS);
}

/* ---- losses that are no congestion ---- */

static double goodput(const char *faults, double link, pmf_ns_t delay)
{
	/* enough that a window which takes milliseconds to grow is seen many times */
	uint64_t messages = delay > 100 * US ? 3000 : 400;
	double gbps;

	begin();
	conf.gbps = link;
	conf.delay = delay;
	conf.queue = 1000000;
	conf.ecn_mark = 100000;
	conf.fixed_size = 1000000;
	conf.private_bytes = false;
	set_faults(faults);
	open_sim();
	sim_add_stream(&sim, 1, 0, messages, 8);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	gbps = (double)sim.stream[0].bytes * 8 / (double)sim.now;
	CU_ASSERT_TRUE(sim_settle(&sim));
	end();
	return gbps;
}

static void lossy(double link, pmf_ns_t delay, double at_one, double at_five)
{
	double all = goodput("", link, delay), one = goodput("loss=1%", link, delay),
	       five = goodput("loss=5%", link, delay);

	printf("  %.0f Gb/s, round trip %.0f us: %.2f Gb/s without loss, %.0f %% of it at 1 %% "
	       "loss, "
	       "%.0f %% at 5 %%\n",
	       link, 2 * (double)delay / 1e3, all, 100 * one / all, 100 * five / all);
	CU_ASSERT_TRUE(one >= at_one * all);
	CU_ASSERT_TRUE(five >= at_five * all);
}

static void test_lossy_near(void)
{
	lossy(GBPS, 5 * US, 0.8, 0.5);
}

static void test_lossy_far(void)
{
	lossy(10, 500 * US, 0.8, 0.5);
}

/*
 * Eight messages of 1 MB are hardly more than two round trips of this link. Each one takes two
 * round trips, and losses one more before its announcement has its turn, and one more before its
 * bytes have: so here it is the number of messages that bounds what is carried, and no window.
 */
static void test_lossy_far_and_fast(void)
{
	lossy(GBPS, 500 * US, 0.6, 0.5);
}

/* ---- one packet ---- */

#define NONE UINT32_MAX

struct lose_one {
	unsigned int skip, seen;
};

static bool lose_one(struct sim *s, const struct sim_frame *f, void *arg)
{
	struct lose_one *l = arg;

	(void)s;
	return f->src == 1 && frame_type(f) == PMF_PT_DATA && l->seen++ == l->skip;
}

/* How long three messages of @p len take on an idle path when packet number @p skip of them is
 * lost. */
static pmf_ns_t takes(uint64_t len, unsigned int skip)
{
	struct lose_one l = {skip, 0};
	pmf_ns_t begun;

	begin();
	conf.gbps = GBPS;
	conf.fixed_size = len;
	open_sim();
	sim_add_stream(&sim, 1, 0, 200, 1);
	while (sim.stream[0].done < 100)
		sim_step(&sim, PMF_NS_NEVER);
	begun = sim.now;
	sim.eat = lose_one;
	sim.eat_arg = &l;
	while (sim.stream[0].done < 103)
		sim_step(&sim, PMF_NS_NEVER);
	begun = sim.now - begun;
	CU_ASSERT_TRUE(skip == NONE || l.seen > skip);
	end();
	return begun;
}

static void test_one_lost_packet(void)
{
	/* One that nothing follows; the announcement, one in the middle, the last of several. */
	static const struct {
		uint64_t len;
		unsigned int skip;
	} cases[] = {{64, 1}, {64000, 8}, {64000, 12}, {64000, 17}};

	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(cases); i++) {
		pmf_ns_t without = takes(cases[i].len, NONE), rtt, probe;
		int64_t cost = (int64_t)(takes(cases[i].len, cases[i].skip) - without);

		rtt = 2 * conf.delay + 4 * US; /* and 9,000 bytes on the wire */
		probe = 2 * rtt + conf.flow.ack_delay;
		printf("  %" PRIu64 " bytes, packet %u lost: %.1f us more than %.1f\n",
		       cases[i].len, cases[i].skip, (double)cost / 1e3, (double)without / 1e3);
		CU_ASSERT_TRUE(cost < (int64_t)(3 * rtt + probe));
	}
}

/* ---- hosts that do not look ---- */

/* A receiver that stands still now and then is no congested path, and its sender goes on as before.
 */
static void test_stalls_are_no_congestion(void)
{
	double before, after;

	begin();
	conf.nodes = 2;
	conf.gbps = GBPS;
	conf.fixed_size = 1000000;
	conf.private_bytes = false;
	conf.stall = 200 * US;
	open_sim();
	sim.watch = watch;
	start(1);
	run_until(10 * MS);
	before = flow(1, 0)->cc.cwnd;
	look_anew();
	run_until(110 * MS);
	after = flow(1, 0)->cc.cwnd;
	printf("  0.2 ms of standstill each ms: window %.1f before, %.1f after, %.1f %% used\n",
	       before / PMF_CC_ONE, after / PMF_CC_ONE, 100 * used(100 * MS));
	CU_ASSERT_TRUE(sim.node[1].flow_stats.rtt_unsure > 0);
	/* Nothing gets through while one of the two stands still. */
	CU_ASSERT_TRUE(used(100 * MS) > 0.55);
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"eight senders", test_eight},
		{"sixty-four senders", test_sixty_four},
		{"eight senders, half of them far", test_eight_near_and_far},
		{"sixty-four senders, half of them far", test_sixty_four_near_and_far},
		{"what one of eight leaves is used", test_leaver},
		{"what one of two leaves is used", test_half_leave},
		{"a new sender gets its share", test_joiner},
		{"a new sender among many gets its share", test_joiner_of_many},
		{"random loss on a near path", test_lossy_near},
		{"random loss on a far path", test_lossy_far},
		{"random loss on a far and fast path", test_lossy_far_and_fast},
		{"one lost packet on an idle path", test_one_lost_packet},
		{"a host that stands still is no congestion", test_stalls_are_no_congestion},
	};

	seed = test_seed();
	return test_main("congestion", tests, PMF_ARRAY_SIZE(tests));
}
