/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The timer wheel against a list that is searched.
 */
#include "proto/wheel.h"

#include "../unit.h"

#define TICK (1ull << PMF_WHEEL_SHIFT)
#define TURN (TICK << (PMF_WHEEL_BITS * PMF_WHEEL_LEVELS))

static struct pmf_wheel wheel;

static void test_expires_within_one_tick(void)
{
	/* Given timers at awkward distances from an awkward time. */
	static const uint64_t after[] = {0,	      1,
					 TICK - 1,    TICK,
					 TICK + 1,    63 * TICK,
					 64 * TICK,   65 * TICK - 1,
					 4095 * TICK, 4096 * TICK,
					 TURN - 1,    TURN,
					 TURN + TICK, 3 * TURN + 12345};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(after); i++) {
		pmf_ns_t start = 77 * TICK * 64 * 64 - 3, at = start + after[i];
		struct pmf_timer t;

		pmf_wheel_init(&wheel, start);
		pmf_timer_init(&t);
		pmf_wheel_arm(&wheel, &t, at);
		/* When the clock stands just before it, then nothing; one tick after, then it. */
		if (after[i] > 0)
			CU_ASSERT_PTR_NULL(pmf_wheel_expire(&wheel, at - 1));
		CU_ASSERT_TRUE(pmf_timer_armed(&t));
		CU_ASSERT_TRUE(pmf_wheel_next(&wheel) < at + TICK);
		CU_ASSERT_PTR_EQUAL(pmf_wheel_expire(&wheel, at + TICK), &t);
		CU_ASSERT_FALSE(pmf_timer_armed(&t));
		CU_ASSERT_PTR_NULL(pmf_wheel_expire(&wheel, at + 2 * TICK));
		CU_ASSERT_EQUAL(pmf_wheel_next(&wheel), PMF_NS_NEVER);
	}
}

static void test_past_expires_at_once(void)
{
	struct pmf_timer t;

	pmf_wheel_init(&wheel, 0);
	pmf_timer_init(&t);
	CU_ASSERT_PTR_NULL(pmf_wheel_expire(&wheel, 1000 * TICK));
	CU_ASSERT_FALSE(pmf_wheel_due(&wheel, 1000 * TICK));
	pmf_wheel_arm(&wheel, &t, 5);
	CU_ASSERT_TRUE(pmf_wheel_due(&wheel, 1000 * TICK));
	CU_ASSERT_TRUE(pmf_wheel_next(&wheel) <= 1000 * TICK);
	CU_ASSERT_PTR_EQUAL(pmf_wheel_expire(&wheel, 1000 * TICK), &t);
}

static void test_disarmed_stays_silent(void)
{
	struct pmf_timer t[3];

	pmf_wheel_init(&wheel, 0);
	for (int i = 0; i < 3; i++) {
		pmf_timer_init(&t[i]);
		pmf_wheel_arm(&wheel, &t[i], 100 * TICK);
	}
	pmf_wheel_disarm(&wheel, &t[1]);
	pmf_wheel_disarm(&wheel, &t[1]);
	/* One that is due already, but not taken yet, can be disarmed too. */
	CU_ASSERT_PTR_NOT_NULL(pmf_wheel_expire(&wheel, 101 * TICK));
	pmf_wheel_disarm(&wheel, &t[0]);
	pmf_wheel_disarm(&wheel, &t[2]);
	CU_ASSERT_PTR_NULL(pmf_wheel_expire(&wheel, 200 * TICK));
	/* Arming for never is disarming. */
	pmf_wheel_arm(&wheel, &t[0], 300 * TICK);
	pmf_wheel_arm(&wheel, &t[0], PMF_NS_NEVER);
	CU_ASSERT_EQUAL(pmf_wheel_next(&wheel), PMF_NS_NEVER);
}

#define TIMERS 300

/* Everything that expires is compared with what a search of all timers says. */
static bool take_expired(struct pmf_timer *t, pmf_ns_t *model, pmf_ns_t now)
{
	struct pmf_timer *e;
	bool due = pmf_wheel_due(&wheel, now), any = false;

	while ((e = pmf_wheel_expire(&wheel, now)) != NULL) {
		any = true;
		if (model[e - t] > now)
			return false; /* early, or not armed at all */
		model[e - t] = PMF_NS_NEVER;
	}
	for (int i = 0; i < TIMERS; i++)
		if (model[i] <= now && now - model[i] >= TICK)
			return false; /* more than a tick late */
	return due || !any;
}

static bool next_is_bound(const pmf_ns_t *model, pmf_ns_t now)
{
	pmf_ns_t next = pmf_wheel_next(&wheel), first = PMF_NS_NEVER;

	for (int i = 0; i < TIMERS; i++)
		first = PMF_MIN(first, model[i]);
	if (first == PMF_NS_NEVER)
		return next == PMF_NS_NEVER;
	/* Never so late that a sleeper would miss more than a tick; and no sleeper spins. */
	return next < first + TICK && (next > now || first <= now + TICK);
}

static void test_against_search(void)
{
	static struct pmf_timer t[TIMERS];
	static pmf_ns_t model[TIMERS];
	uint64_t rnd = test_seed();
	pmf_ns_t now = test_random(&rnd) >> (test_random(&rnd) % 40 + 8);

	pmf_wheel_init(&wheel, now);
	for (int i = 0; i < TIMERS; i++) {
		pmf_timer_init(&t[i]);
		model[i] = PMF_NS_NEVER;
	}
	for (int op = 0; op < 100000; op++) {
		uint64_t r = test_random(&rnd);
		unsigned int i = r % TIMERS;

		switch (r >> 32 & 7) {
		case 0:
			pmf_wheel_disarm(&wheel, &t[i]);
			model[i] = PMF_NS_NEVER;
			break;
		case 1:
		case 2:
			/* Steps of all magnitudes, now and then a jump over everything. */
			now += test_random(&rnd) >> (test_random(&rnd) % 44 + 20);
			if (!take_expired(t, model, now)) {
				CU_FAIL_FATAL("expired early, late, or without being due");
			}
			break;
		default:
			model[i] = now + (test_random(&rnd) >> (test_random(&rnd) % 44 + 19));
			if ((r >> 40 & 15) == 0)
				model[i] = now - PMF_MIN(now, model[i] - now);
			pmf_wheel_arm(&wheel, &t[i], model[i]);
		}
		if (!next_is_bound(model, now))
			CU_FAIL_FATAL("the next expiry is no lower bound");
		if (pmf_timer_armed(&t[i]) != (model[i] != PMF_NS_NEVER))
			CU_FAIL_FATAL("armed in one and not in the other");
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a timer expires not early and at most a tick late", test_expires_within_one_tick},
		{"a time in the past expires at the next call", test_past_expires_at_once},
		{"a disarmed timer stays silent", test_disarmed_stays_silent},
		{"100000 random operations agree with a search", test_against_search},
	};

	return test_main("wheel", tests, PMF_ARRAY_SIZE(tests));
}
