/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Congestion control one event at a time; what many flows make of it is judged in test/sim.
 */
#include "proto/cc.h"

#include "proto/looks.h"
#include "proto/rtt.h"
#include "../unit.h"

#define WINDOW 1024
#define US PMF_NS_PER_US
#define AIM (6 * US)
#define BASE (10 * US)
#define NO_SAMPLE PMF_NS_NEVER

static struct pmf_cc cc;
static pmf_ns_t now;

static void begin(void)
{
	now = PMF_NS_PER_S;
	pmf_cc_init(&cc, WINDOW, AIM);
}

static double packets(void)
{
	return (double)cc.cwnd / PMF_CC_ONE;
}

/* Everything that the window lets out comes back after @p queued in queues, @p ce of it marked. */
static void round_trip(pmf_ns_t queued, uint32_t ce)
{
	uint32_t n = PMF_MAX(cc.cwnd / PMF_CC_ONE, 1u);

	now = PMF_MAX(now + n, cc.round_end);
	for (uint32_t i = 0; i < n; i++)
		pmf_cc_on_ack(&cc, 1, n - 1 - i, BASE, queued, i < ce, now - (n - 1 - i));
}

static void round_trips(unsigned int n, pmf_ns_t queued)
{
	while (n-- != 0)
		round_trip(queued, 0);
}

/* A queue that has been met once ends the quick start. */
static void congested(double window)
{
	begin();
	round_trip(50 * US, 0);
	round_trip(50 * US, 0);
	cc.cwnd = cc.ssthresh = (uint32_t)(window * PMF_CC_ONE);
}

static void test_starts_small_and_doubles(void)
{
	begin();
	CU_ASSERT_EQUAL(packets(), 10);
	CU_ASSERT_TRUE(pmf_cc_may_send(&cc, 9, 0));
	CU_ASSERT_FALSE(pmf_cc_may_send(&cc, 10, 0));
	round_trip(0, 0);
	CU_ASSERT_TRUE(packets() >= 18);
	round_trips(20, 0);
	CU_ASSERT_EQUAL(packets(), WINDOW);
}

static void test_idle_window_does_not_grow(void)
{
	begin();
	for (int i = 0; i < 1000; i++)
		pmf_cc_on_ack(&cc, 1, 0, BASE, 0, 0, now += 100 * US);
	CU_ASSERT_EQUAL(packets(), 10);
}

static void test_queue_above_target_takes_in_proportion(void)
{
	double little, much;

	congested(8);
	round_trip(cc.target + 2 * US, 0);
	little = 8 - packets();
	congested(8);
	round_trip(cc.target + 8 * US, 0);
	much = 8 - packets();
	CU_ASSERT_TRUE(little > 0 && much > 3 * little);
	/* However long the queue, one round takes a half at most. */
	congested(8);
	round_trip(10000 * US, 0);
	CU_ASSERT_EQUAL(packets(), 4);
}

static void test_one_reduction_a_round_trip(void)
{
	congested(8);
	now = cc.round_end;
	for (int i = 0; i < 8; i++)
		pmf_cc_on_ack(&cc, 1, 7, BASE, 1000 * US, 0, now + (pmf_ns_t)i);
	CU_ASSERT_EQUAL(packets(), 4);
}

static void test_queue_below_target_adds(void)
{
	congested(8);
	round_trip(cc.target / 2, 0);
	CU_ASSERT_TRUE(packets() > 8 && packets() < 8.5);
	/* No queue for long: more and more. */
	congested(8);
	round_trips(20, 0);
	CU_ASSERT_TRUE(packets() > 16);
}

static void test_below_one_packet_is_spaced(void)
{
	pmf_ns_t first;

	congested(8);
	round_trips(12, 200 * US);
	CU_ASSERT_TRUE(packets() < 0.5);
	CU_ASSERT_TRUE(cc.interval > 2 * BASE);
	/* One at a time, and the next after the interval. */
	now += PMF_NS_PER_MS;
	CU_ASSERT_TRUE(pmf_cc_may_send(&cc, 0, now));
	pmf_cc_on_send(&cc, now);
	first = cc.next_send;
	CU_ASSERT_TRUE(first >= now + cc.interval - PMF_CC_LATE);
	CU_ASSERT_FALSE(pmf_cc_may_send(&cc, 0, first - 1));
	CU_ASSERT_TRUE(pmf_cc_may_send(&cc, 0, first));
	CU_ASSERT_FALSE(pmf_cc_may_send(&cc, 1, first));
}

static void test_target_is_higher_for_who_sends_rarely(void)
{
	pmf_ns_t often, rarely;

	congested(8);
	round_trip(10 * US, 0);
	often = cc.target;
	congested(0.2);
	round_trip(10 * US, 0);
	rarely = cc.target;
	CU_ASSERT_TRUE(rarely > often + 5 * US);
}

static void test_marks_reduce(void)
{
	congested(64);
	round_trip(0, 0);
	double before = packets();

	/* All are marked, for long: down by half a round trip. */
	for (int i = 0; i < 60; i++)
		round_trip(0, 1u << 30);
	CU_ASSERT_TRUE(packets() < before / 8);
	/* A mark now and then, as bursts bring it, takes nothing; nor does the window grow. */
	congested(64);
	round_trip(0, 1);
	CU_ASSERT_EQUAL(packets(), 64);
}

static void test_loss_without_delay_takes_nothing(void)
{
	begin();
	round_trips(3, 0);
	double before = packets();

	pmf_cc_on_loss(&cc, 5000, 6000, false, now);
	CU_ASSERT_EQUAL(packets(), before);
}

static void test_loss_with_delay_halves_once(void)
{
	congested(64);
	round_trip(30 * US, 0);
	double before = packets();

	pmf_cc_on_loss(&cc, 5000, 6000, false, now);
	pmf_cc_on_loss(&cc, 5001, 6010, false, now);
	pmf_cc_on_loss(&cc, 5999, 6010, false, now);
	CU_ASSERT_DOUBLE_EQUAL(packets(), before / 2, 0.01);
	pmf_cc_on_loss(&cc, 6000, 7000, false, now);
	CU_ASSERT_DOUBLE_EQUAL(packets(), before / 4, 0.01);
}

static void test_loss_of_much_halves_whatever_the_delay(void)
{
	double before;

	begin();
	round_trips(6, 0);
	before = packets();
	/* Every other packet. */
	for (uint64_t psn = 0; psn < 600; psn++) {
		pmf_cc_on_loss(&cc, psn, psn + 1, false, now);
		pmf_cc_on_ack(&cc, 1, 300, BASE, 0, 0, now += 50);
	}
	CU_ASSERT_TRUE(packets() <= before / 2);
}

static void test_timeout_leaves_one_packet(void)
{
	begin();
	round_trips(4, 0);
	pmf_cc_on_loss(&cc, 100, 200, true, now);
	CU_ASSERT_EQUAL(packets(), 1);
	/* And quickly back. */
	round_trips(5, 0);
	CU_ASSERT_TRUE(packets() >= 32);
}

static void test_needless_reduction_is_undone(void)
{
	double before;

	congested(64);
	round_trip(30 * US, 0);
	before = packets();
	pmf_cc_on_loss(&cc, 5000, 5002, false, now);
	pmf_cc_on_loss(&cc, 5001, 5002, false, now);
	pmf_cc_on_spurious(&cc);
	CU_ASSERT_TRUE(packets() < before);
	pmf_cc_on_spurious(&cc);
	CU_ASSERT_EQUAL(packets(), before);
	/* A timeout, too. */
	pmf_cc_on_loss(&cc, 6000, 6001, true, now);
	CU_ASSERT_EQUAL(packets(), 1);
	pmf_cc_on_spurious(&cc);
	CU_ASSERT_EQUAL(packets(), before);
	pmf_cc_on_spurious(&cc);
	CU_ASSERT_EQUAL(packets(), before);
}

static void test_without_samples_it_goes_on(void)
{
	congested(8);
	round_trips(10, NO_SAMPLE);
	CU_ASSERT_TRUE(packets() > 12);
	/* But a loss counts as congestion: nothing speaks against it. */
	double before = packets();

	pmf_cc_on_loss(&cc, 5000, 6000, false, now);
	CU_ASSERT_TRUE(packets() <= before / 2 + 0.01);
}

static void test_small_windows(void)
{
	begin();
	pmf_cc_init(&cc, 1, AIM);
	CU_ASSERT_EQUAL(packets(), 1);
	round_trips(20, 0);
	CU_ASSERT_EQUAL(packets(), 1);
	round_trips(100, 10000 * US);
	CU_ASSERT_TRUE(cc.cwnd > 0);
	CU_ASSERT_TRUE(pmf_cc_has_room(&cc, 0));
}

/* ---- what a host adds ---- */

static void test_gaps_are_remembered_for_a_while(void)
{
	struct pmf_looks p = {0};
	pmf_ns_t t = PMF_NS_PER_S;

	pmf_looks_note(&p, t, false); /* the first look is late by nature */
	pmf_looks_note(&p, t += US, false);
	CU_ASSERT_EQUAL(pmf_looks_wait(&p), 1000 >> PMF_LOOKS_SHIFT);
	pmf_looks_note(&p, t += 20 * US, false);
	pmf_looks_note(&p, t += US, false);
	CU_ASSERT_EQUAL(pmf_looks_wait(&p), 20000 >> PMF_LOOKS_SHIFT);
	for (int i = 0; i < 3000; i++)
		pmf_looks_note(&p, t += US, false);
	CU_ASSERT_EQUAL(pmf_looks_wait(&p), 1000 >> PMF_LOOKS_SHIFT);
}

static void test_long_gap_says_nothing_until_all_is_taken(void)
{
	struct pmf_looks p = {0};
	pmf_ns_t t = PMF_NS_PER_S;

	pmf_looks_note(&p, t, false);
	pmf_looks_note(&p, t += US, false);
	pmf_looks_note(&p, t += PMF_NS_PER_MS, false);
	CU_ASSERT_EQUAL(pmf_looks_wait(&p), PMF_LOOKS_LATE);
	CU_ASSERT_EQUAL(p.stalled, t);
	/* What had gathered is not taken in one look. */
	pmf_looks_note(&p, t += US, true);
	CU_ASSERT_EQUAL(pmf_looks_wait(&p), PMF_LOOKS_LATE);
	pmf_looks_note(&p, t += US, false);
	CU_ASSERT_EQUAL(pmf_looks_wait(&p), 1000 >> PMF_LOOKS_SHIFT);
}

static void test_base_is_of_one_size(void)
{
	struct pmf_base b = {0};
	pmf_ns_t t = PMF_NS_PER_S;

	CU_ASSERT_FALSE(pmf_base_take(&b, 0, US, t)); /* no records */
	CU_ASSERT_TRUE(pmf_base_take(&b, 5, 10 * US, t));
	CU_ASSERT_TRUE(pmf_base_take(&b, 5, 12 * US, t));
	CU_ASSERT_EQUAL(b.min, 10 * US);
	/* Larger ones take longer on the wires, and may have met a queue just now. */
	CU_ASSERT_TRUE(pmf_base_take(&b, 35, 40 * US, t));
	CU_ASSERT_EQUAL(b.min, 15 * US);
	for (int i = 0; i < 30; i++)
		CU_ASSERT_TRUE(pmf_base_take(&b, 35, 18 * US, t += PMF_NS_PER_MS));
	CU_ASSERT_EQUAL(b.min, 18 * US);
	/* Small ones between are not measured, small ones alone are. */
	CU_ASSERT_FALSE(pmf_base_take(&b, 5, 10 * US, t));
	CU_ASSERT_EQUAL(b.min, 18 * US);
	for (int i = 0; i < 64; i++)
		pmf_base_take(&b, 5, 10 * US, t);
	CU_ASSERT_TRUE(pmf_base_take(&b, 5, 10 * US, t));
	CU_ASSERT_EQUAL(b.min, 10 * US);
}

/* The peer's phase changes every few ms, and packets may be due once in hundreds of them. */
static void check_sends_between_pauses(pmf_ns_t interval, pmf_ns_t base)
{
	const pmf_ns_t until = now + 100 * PMF_MAX(interval, PMF_CC_PHASE);
	pmf_ns_t change = now + PMF_CC_PHASE;
	uint64_t sent = 0, all = (until - now) / interval;

	pmf_cc_init(&cc, 512, 6 * PMF_NS_PER_US);
	cc.interval = (uint32_t)interval;
	cc.base = base;
	while (now < until) {
		pmf_cc_on_send(&cc, now);
		sent++;
		for (; change < PMF_MIN(PMF_MAX(cc.next_send, now + 1), until);
		     change += PMF_CC_PHASE)
			pmf_cc_pause(&cc, change);
		now = PMF_MAX(cc.next_send, now + 1);
	}
	CU_ASSERT_TRUE(3 * sent >= all);
}

static void test_pauses_leave_time_to_send(void)
{
	static const pmf_ns_t bases[] = {10 * US, PMF_NS_PER_MS, 20 * PMF_NS_PER_MS};

	now = PMF_NS_PER_S;
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(bases); i++)
		for (pmf_ns_t interval = 50 * US; interval < 400 * PMF_NS_PER_MS; interval *= 2)
			check_sends_between_pauses(interval, bases[i]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"starts with ten packets and doubles", test_starts_small_and_doubles},
		{"a window that is not used does not grow", test_idle_window_does_not_grow},
		{"a queue above the target takes in proportion",
		 test_queue_above_target_takes_in_proportion},
		{"one reduction in a round trip", test_one_reduction_a_round_trip},
		{"a queue below the target adds", test_queue_below_target_adds},
		{"below one packet sends are spaced", test_below_one_packet_is_spaced},
		{"who sends rarely has a higher target",
		 test_target_is_higher_for_who_sends_rarely},
		{"marks reduce", test_marks_reduce},
		{"loss without delay takes nothing", test_loss_without_delay_takes_nothing},
		{"loss with delay halves once a round trip", test_loss_with_delay_halves_once},
		{"loss of much halves whatever the delay",
		 test_loss_of_much_halves_whatever_the_delay},
		{"a timeout leaves one packet", test_timeout_leaves_one_packet},
		{"a needless reduction is undone", test_needless_reduction_is_undone},
		{"without samples it goes on", test_without_samples_it_goes_on},
		{"windows of one packet", test_small_windows},
		{"gaps between looks are remembered for a while",
		 test_gaps_are_remembered_for_a_while},
		{"a long gap says nothing until all is taken",
		 test_long_gap_says_nothing_until_all_is_taken},
		{"the least round trip is of one size", test_base_is_of_one_size},
		{"pauses leave time to send in", test_pauses_leave_time_to_send},
	};

	return test_main("cc", tests, PMF_ARRAY_SIZE(tests));
}
