/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The timer wheel. A timer's tick is written in base 64; it stands at the level of the highest
 * digit in which it differs from the wheel's tick, in the slot of that digit. So within a level all
 * slots lie ahead of the wheel, none has to be told apart from the next turn, and the next event is
 * found from one word a level. A slot above level 0 is spread over the levels below when the wheel
 * reaches it.
 */
#include "proto/wheel.h"

#define LEVEL_DUE PMF_WHEEL_LEVELS /* timer.level of those on the due list */
#define SPAN_MASK ((1ull << (PMF_WHEEL_BITS * PMF_WHEEL_LEVELS)) - 1)

/* The first tick that begins no earlier than @p at: then a timer never expires early. */
static uint64_t tick_of(pmf_ns_t at)
{
	return (at >> PMF_WHEEL_SHIFT) + ((at & ((1ull << PMF_WHEEL_SHIFT) - 1)) != 0);
}

static unsigned int digit(uint64_t tick, unsigned int level)
{
	return (tick >> (level * PMF_WHEEL_BITS)) & (PMF_WHEEL_SLOTS - 1);
}

void pmf_wheel_init(struct pmf_wheel *w, pmf_ns_t now)
{
	w->tick = now >> PMF_WHEEL_SHIFT;
	for (unsigned int l = 0; l < PMF_WHEEL_LEVELS; l++) {
		w->occupied[l] = 0;
		for (unsigned int s = 0; s < PMF_WHEEL_SLOTS; s++)
			LIST_INIT(&w->slot[l][s]);
	}
	LIST_INIT(&w->due);
}

void pmf_timer_init(struct pmf_timer *t)
{
	memset(t, 0, sizeof(*t));
	t->at = PMF_NS_NEVER;
}

static void place(struct pmf_wheel *w, struct pmf_timer *t)
{
	uint64_t tick = tick_of(t->at);

	if (tick < w->tick) {
		t->level = LEVEL_DUE;
		LIST_INSERT_HEAD(&w->due, t, link);
		return;
	}
	/* Beyond the top level's turn it waits at the turn's last tick and is placed again from
	 * there. */
	if ((tick ^ w->tick) > SPAN_MASK)
		tick = w->tick | SPAN_MASK;
	t->level = tick == w->tick ? 0 : (63 - __builtin_clzll(tick ^ w->tick)) / PMF_WHEEL_BITS;
	t->slot = digit(tick, t->level);
	w->occupied[t->level] |= 1ull << t->slot;
	LIST_INSERT_HEAD(&w->slot[t->level][t->slot], t, link);
}

static void unlink_timer(struct pmf_wheel *w, struct pmf_timer *t)
{
	LIST_REMOVE(t, link);
	if (t->level != LEVEL_DUE && LIST_EMPTY(&w->slot[t->level][t->slot]))
		w->occupied[t->level] &= ~(1ull << t->slot);
}

void pmf_wheel_arm(struct pmf_wheel *w, struct pmf_timer *t, pmf_ns_t at)
{
	if (t->at == at)
		return;
	if (pmf_timer_armed(t))
		unlink_timer(w, t);
	t->at = at;
	if (at != PMF_NS_NEVER)
		place(w, t);
}

void pmf_wheel_disarm(struct pmf_wheel *w, struct pmf_timer *t)
{
	if (!pmf_timer_armed(t))
		return;
	unlink_timer(w, t);
	t->at = PMF_NS_NEVER;
}

/* The tick at which the next slot is to be looked at; UINT64_MAX when all are empty. */
static uint64_t next_event(const struct pmf_wheel *w, unsigned int *level)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int l = 0; l < PMF_WHEEL_LEVELS; l++) {
		unsigned int shift = l * PMF_WHEEL_BITS;
		uint64_t turn = ((1ull << PMF_WHEEL_BITS) << shift) - 1, tick;

		if (w->occupied[l] == 0)
			continue;
		tick = (w->tick & ~turn) | (uint64_t)__builtin_ctzll(w->occupied[l]) << shift;
		/* Of two levels at the same tick the upper goes first: it feeds the lower. */
		if (tick <= best) {
			best = tick;
			*level = l;
		}
	}
	return best;
}

/* The wheel stands at the slot's tick: its timers go to the due list or to lower levels. */
static void spread(struct pmf_wheel *w, unsigned int level)
{
	unsigned int slot = digit(w->tick, level);
	struct pmf_timer_list list = LIST_HEAD_INITIALIZER(list);
	struct pmf_timer *t = LIST_FIRST(&w->slot[level][slot]);

	LIST_INIT(&w->slot[level][slot]);
	w->occupied[level] &= ~(1ull << slot);
	if (level == 0)
		w->tick++;
	for (LIST_FIRST(&list) = t; (t = LIST_FIRST(&list)) != NULL;) {
		LIST_FIRST(&list) = LIST_NEXT(t, link);
		place(w, t);
	}
}

struct pmf_timer *pmf_wheel_expire(struct pmf_wheel *w, pmf_ns_t now)
{
	uint64_t target = now >> PMF_WHEEL_SHIFT;
	struct pmf_timer *t;

	while (LIST_EMPTY(&w->due) && w->tick <= target) {
		unsigned int level = 0;
		uint64_t tick = next_event(w, &level);

		if (tick > target) {
			w->tick = target + 1;
		} else {
			w->tick = tick;
			spread(w, level);
		}
	}
	t = LIST_FIRST(&w->due);
	if (t != NULL) {
		LIST_REMOVE(t, link);
		t->at = PMF_NS_NEVER;
	}
	return t;
}

pmf_ns_t pmf_wheel_next(const struct pmf_wheel *w)
{
	unsigned int level;
	uint64_t tick;

	if (!LIST_EMPTY(&w->due))
		return 0;
	tick = next_event(w, &level);
	return tick == UINT64_MAX ? PMF_NS_NEVER : tick << PMF_WHEEL_SHIFT;
}
