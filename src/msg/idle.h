/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What a thread does that polls and finds nothing: it goes on for a while, then gives the processor
 * away. How long the yield took says whether somebody else wanted the core: if so, the next empty
 * poll yields at once, else ever later. Two processes polling on one core then take turns in
 * microseconds, and who has a core alone makes hardly any system call.
 */
#ifndef PMF_MSG_IDLE_H
#define PMF_MSG_IDLE_H

#include <sched.h>

#include "pmd_glue/eal.h"
#include "pmf_common.h"

#define PMF_IDLE_PATIENCE_MAX 1024	    /* empty polls before a yield on a core of one's own */
#define PMF_IDLE_SHARED (2 * PMF_NS_PER_US) /* a yield of this length has let somebody else run */

struct pmf_idle {
	uint32_t empty;	   /* polls in a row that found nothing */
	uint32_t patience; /* of them before a yield */
};

static inline void pmf_idle_busy(struct pmf_idle *i)
{
	i->empty = 0;
}

static inline void pmf_idle_empty(struct pmf_idle *i)
{
	pmf_ns_t before;

	if (pmf_likely(++i->empty <= i->patience))
		return;
	before = pmf_clock_ns();
	sched_yield();
	if (pmf_clock_ns() - before > PMF_IDLE_SHARED)
		i->patience = 0;
	else
		i->patience = PMF_MIN(2 * i->patience + 1, (uint32_t)PMF_IDLE_PATIENCE_MAX);
	i->empty = 0;
}

#endif
