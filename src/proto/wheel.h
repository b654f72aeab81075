/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A hierarchical timer wheel without a clock of its own: one timer per flow, intrusive, owned by
 * the engine. Resolution is 2^13 ns; a timer never expires early.
 */
#ifndef PMF_PROTO_WHEEL_H
#define PMF_PROTO_WHEEL_H

#include "pmf_common.h"

#define PMF_WHEEL_SHIFT 13 /* ns per tick, as a power of two */
#define PMF_WHEEL_BITS 6
#define PMF_WHEEL_SLOTS (1u << PMF_WHEEL_BITS)
#define PMF_WHEEL_LEVELS 5

struct pmf_timer {
	LIST_ENTRY(pmf_timer) link;
	pmf_ns_t at; /* PMF_NS_NEVER: not armed */
	uint8_t level, slot;
};

LIST_HEAD(pmf_timer_list, pmf_timer);

struct pmf_wheel {
	uint64_t tick;			     /* all before it has been expired */
	uint64_t occupied[PMF_WHEEL_LEVELS]; /* a bit per slot that is not empty */
	struct pmf_timer_list slot[PMF_WHEEL_LEVELS][PMF_WHEEL_SLOTS];
	struct pmf_timer_list due;
};

void pmf_wheel_init(struct pmf_wheel *w, pmf_ns_t now);
void pmf_timer_init(struct pmf_timer *t);

/** Arm or re-arm. O(1). A time in the past expires at the next pmf_wheel_expire(). */
void pmf_wheel_arm(struct pmf_wheel *w, struct pmf_timer *t, pmf_ns_t at);
void pmf_wheel_disarm(struct pmf_wheel *w, struct pmf_timer *t);

static inline bool pmf_timer_armed(const struct pmf_timer *t)
{
	return t->at != PMF_NS_NEVER;
}

/** Cheap: is there anything to do at @p now? */
static inline bool pmf_wheel_due(const struct pmf_wheel *w, pmf_ns_t now)
{
	return (now >> PMF_WHEEL_SHIFT) >= w->tick || !LIST_EMPTY(&w->due);
}

/** Take one expired timer (disarmed), or NULL when all that is due at @p now has been taken. */
struct pmf_timer *pmf_wheel_expire(struct pmf_wheel *w, pmf_ns_t now);

/** Lower bound of the next expiry, PMF_NS_NEVER when nothing is armed. For sleeping. */
pmf_ns_t pmf_wheel_next(const struct pmf_wheel *w);

#endif
