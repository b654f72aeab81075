/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Congestion control by delay: what is reckoned once a round trip, and what losses do. The struct
 * belongs to one flow.
 */
#include "proto/cc.h"

#define ONE PMF_CC_ONE
#define INITIAL_WINDOW 10u /* packets, RFC 6928 */
#define LEAST (ONE / 256)  /* some hundred peers may meet at one port */
#define PACED 1500u	   /* ns between packets, to be kept; less is not worth a timer */
#define SCALE 48u	   /* ns of target for the root of each ns between two sends */
#define SCALE_MOST (60 * PMF_NS_PER_US)
#define RARE 32u	/* one in so many of the time between two sends may go by in queues */
#define STREAK_PLAIN 5u /* rounds without a queue before the step begins to double */
#define STREAK_MOST 16u
#define AIM_LEAST (1 * PMF_NS_PER_US)
#define ROUND_LEAST (10 * PMF_NS_PER_US) /* on shorter paths a round is several round trips */
#define QUIET_LATELY (6 * PMF_NS_PER_MS)
#define MANY_TRIED 64u /* packets over which the share of lost ones is looked at */
#define MANY_LOST 4u   /* one in so many is more than a bad wire loses */

/* The largest number whose square is at most @p v, by Newton's steps from above. */
static uint32_t root(uint64_t v)
{
	uint64_t r, next;

	if (v == 0)
		return 0;
	next = 1ull << (65 - __builtin_clzll(v)) / 2;
	do {
		r = next;
		next = (r + v / r) / 2;
	} while (next < r);
	return (uint32_t)r;
}

void pmf_cc_init(struct pmf_cc *cc, uint32_t window, pmf_ns_t aim)
{
	memset(cc, 0, sizeof(*cc));
	cc->max = PMF_MIN(window, UINT32_MAX / ONE) * ONE;
	cc->cwnd = PMF_MIN(INITIAL_WINDOW * ONE, cc->max);
	cc->ssthresh = cc->max;
	cc->aim = (uint32_t)PMF_MAX(aim, AIM_LEAST);
	cc->target = cc->aim;
	cc->queue = cc->least = UINT32_MAX;
}

/*
 * A flow that sends less than a packet in a round trip hears late, and as often as it sends: it
 * does as much less each time, or all of them would swing. In 1/65536.
 */
static uint32_t gain(const struct pmf_cc *cc)
{
	return PMF_MIN(PMF_MAX(cc->cwnd, ONE / 16), ONE);
}

/*
 * The rarer a flow sends, the longer a queue it allows: so those that send less than others are the
 * last to give way, and where many meet, where queues vary more, the target is higher. Counted by
 * time between sends, not by window, it holds alike for near and far peers. Whose packets come
 * milliseconds apart sees too few to tell a path whose delay swings from a queue: he allows for it,
 * or would send ever less, and it would swing all the same.
 */
static void set_target(struct pmf_cc *cc)
{
	int64_t queue = cc->queue != UINT32_MAX ? cc->queue : (int64_t)cc->target;
	uint64_t apart;

	/* Where packets go out evenly, a longer round trip is no reason to send less: it is one
	 * here, in part, which keeps flows from swinging.
	 */
	queue = (int64_t)cc->target + (queue - (int64_t)cc->target) * gain(cc) / (2 * (int64_t)ONE);
	apart = ((cc->base + (uint64_t)PMF_MAX(queue, 0)) << 16) / cc->cwnd;
	cc->target = cc->aim + cc->base / 16 +
		     PMF_MAX(PMF_MIN((uint64_t)SCALE * root(apart), SCALE_MOST), apart / RARE);
	if (cc->cwnd < cc->ssthresh)
		apart /= 2;
	if (apart > PACED) {
		cc->interval = (uint32_t)PMF_MIN(apart, UINT32_MAX);
	} else {
		cc->interval = 0;
		cc->next_send = 0;
	}
}

static void decrease(struct pmf_cc *cc)
{
	uint64_t cut = 0;

	if (cc->queue > cc->target)
		cut = ((cc->queue - cc->target) << 14) / (cc->base + cc->target);
	if (cc->queue > 2 * cc->target)
		cut += ((cc->queue - 2 * cc->target) << 16) / (cc->base + cc->queue) / 2;
	/* Bursts have some packets marked though no queue stands. A cut for those would be the
	 * harder the farther the peer, whose window is larger; when most are marked a queue stands,
	 * whatever delay says.
	 */
	if (cc->marks != 0 && cc->alpha > ONE / 2)
		cut = PMF_MAX(cut, cc->alpha - ONE / 2);
	cut = PMF_MIN(cut, ONE / 2) * gain(cc) / ONE;
	cc->cwnd = (uint32_t)PMF_MAX(cc->cwnd - ((cc->cwnd * cut) >> 16), PMF_MIN(LEAST, cc->max));
	cc->ssthresh = PMF_MIN(cc->ssthresh, cc->cwnd);
	cc->streak = 0;
}

static void increase(struct pmf_cc *cc)
{
	uint64_t small = PMF_MIN(cc->cwnd, ONE), step = ONE, most = cc->cwnd / 8;

	if (2 * ONE * (uint64_t)cc->most < cc->cwnd || cc->cwnd < cc->ssthresh)
		return;
	if (cc->queue != UINT32_MAX)
		step = ((cc->target - cc->queue) << 14) / (cc->base + cc->target) * small / ONE *
		       small / ONE;
	/* No queue for several rounds: others have stopped, or the way was never full. */
	if (cc->least > cc->target / 4)
		cc->streak = 0;
	else if (cc->streak < STREAK_MOST)
		cc->streak++;
	if (cc->streak > STREAK_PLAIN)
		step <<= cc->streak - STREAK_PLAIN;
	cc->cwnd = (uint32_t)PMF_MIN(cc->cwnd + PMF_MIN(step, most) + 8, cc->max);
}

/* What the round has brought, as means. */
static void sum_up(struct pmf_cc *cc)
{
	uint32_t share;

	cc->queue = UINT32_MAX;
	if (cc->samples != 0) {
		cc->queue = (uint32_t)PMF_MIN(cc->queued / cc->samples, UINT32_MAX - 1);
		cc->smooth = (uint32_t)((int64_t)cc->smooth +
					((int64_t)cc->queue - (int64_t)cc->smooth) * gain(cc) /
						(2 * (int64_t)ONE));
	}
	if (cc->acked != 0) {
		share = (uint32_t)PMF_MIN(((uint64_t)cc->marks << 16) / cc->acked, ONE);
		cc->alpha += share / 8 - cc->alpha / 8;
	}
}

static void count_tried(struct pmf_cc *cc)
{
	cc->tried += cc->acked;
	if (cc->tried > 4 * MANY_TRIED) {
		cc->tried /= 2;
		cc->lost /= 2;
	}
}

/*
 * Most of the window lay idle, packets hardly waited, and the path is as it was: what was reckoned
 * holds. A program that waits for each answer has no other rounds than these.
 */
static bool unchanged(const struct pmf_cc *cc, pmf_ns_t base)
{
	return 2 * ONE * (uint64_t)cc->most < cc->cwnd && cc->interval == 0 && cc->marks == 0 &&
	       cc->queued <= cc->target * cc->samples && base == cc->base;
}

static void reckon(struct pmf_cc *cc)
{
	bool starting;

	sum_up(cc);
	starting = cc->cwnd < cc->ssthresh && cc->least <= cc->target / 4;
	if (cc->marks != 0 || (cc->queue != UINT32_MAX && cc->queue > cc->target && !starting))
		decrease(cc);
	else
		increase(cc);
	set_target(cc);
}

/* Of its own, as what is due by the clock: see engine.c. */
__attribute__((noinline)) void pmf_cc_round(struct pmf_cc *cc, pmf_ns_t base, pmf_ns_t now)
{
	if (unchanged(cc, base)) {
		cc->queue = cc->least;
	} else {
		cc->base = base;
		reckon(cc);
	}
	count_tried(cc);
	if (cc->least < cc->target / 4)
		cc->quiet_at = now;
	cc->round_end = now + PMF_MAX(cc->base + cc->smooth, ROUND_LEAST);
	cc->queued = 0;
	cc->least = UINT32_MAX;
	cc->samples = cc->acked = cc->marks = cc->most = 0;
}

void pmf_cc_pause(struct pmf_cc *cc, pmf_ns_t now)
{
	pmf_ns_t most = cc->base + cc->target + cc->interval;

	if (cc->interval == 0 || now - cc->quiet_at < QUIET_LATELY)
		return;
	/* A pause from one phase to the next and beyond would leave no time to send in. */
	if (most > PMF_CC_PHASE / 3)
		return;
	/* Who waits already for longer has paused enough. */
	if (cc->next_send > now + most)
		return;
	/* Whole intervals, or all would go on at the same moment. */
	cc->next_send = PMF_MAX(cc->next_send, now) +
			((cc->base + cc->target) / cc->interval + 1) * cc->interval;
}

/* A path that loses much without delay has a limit of its own, or hardly any room for a queue. */
static bool loses_many(struct pmf_cc *cc)
{
	bool many;

	cc->lost++;
	if (cc->tried < MANY_TRIED)
		return false;
	many = cc->lost * MANY_LOST > cc->tried;
	cc->tried = cc->lost = 0;
	return many;
}

static void remember(struct pmf_cc *cc)
{
	cc->undo_cwnd = cc->cwnd;
	cc->undo_ssthresh = cc->ssthresh;
	cc->undo_left = 1;
}

void pmf_cc_on_loss(struct pmf_cc *cc, pmf_psn_t psn, pmf_psn_t next, bool timeout, pmf_ns_t now)
{
	bool reduce = loses_many(cc) || timeout || cc->queue > cc->target;

	(void)now;
	if (psn >= cc->recovery_end) {
		cc->recovery_end = next;
		cc->undo_left = 0;
		if (reduce)
			remember(cc);
	} else if (cc->undo_left != 0) {
		cc->undo_left++;
		reduce = false;
	} else if (timeout) {
		remember(cc);
	}
	/* Below one packet is a matter of delay: only that tells how many others there are. */
	if (reduce)
		cc->cwnd = cc->ssthresh = PMF_MAX(cc->cwnd / 2, PMF_MIN(cc->cwnd, ONE));
	if (timeout)
		cc->cwnd = PMF_MIN(cc->cwnd, ONE);
}

void pmf_cc_on_spurious(struct pmf_cc *cc)
{
	if (cc->undo_left == 0 || --cc->undo_left != 0)
		return;
	cc->cwnd = PMF_MAX(cc->cwnd, cc->undo_cwnd);
	cc->ssthresh = PMF_MAX(cc->ssthresh, cc->undo_ssthresh);
}
