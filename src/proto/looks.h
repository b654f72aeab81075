/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * How often a host looks for frames. A frame waits for that, and what it waits is no queue in the
 * network. One for all flows of an engine; its owner notes every look, the flows read.
 */
#ifndef PMF_PROTO_LOOKS_H
#define PMF_PROTO_LOOKS_H

#include "pmf_common.h"

#define PMF_LOOKS_SHIFT 8  /* on the wire in units of 256 ns */
#define PMF_LOOKS_LATE 255 /* so long, or longer: no measure of anything */
#define PMF_LOOKS_PERIOD PMF_NS_PER_MS

struct pmf_looks {
	pmf_ns_t last;	  /* look */
	pmf_ns_t gap;	  /* between looks, or a look's length: the longest in two periods */
	pmf_ns_t newer;	  /* the longest in this one */
	pmf_ns_t since;	  /* begin of this one */
	pmf_ns_t stalled; /* when a gap ended that was too long; 0: never */
	bool late;	  /* frames may have waited since before that */
};

/**
 * Frames are looked for now.
 * @param more whether the look before took all that it could, so that frames may have been left
 */
static inline void pmf_looks_note(struct pmf_looks *p, pmf_ns_t now, bool more)
{
	pmf_ns_t gap = now - p->last;

	p->last = now;
	if (pmf_unlikely(gap >= (pmf_ns_t)PMF_LOOKS_LATE << PMF_LOOKS_SHIFT)) {
		p->stalled = now;
		p->late = true;
		return;
	}
	p->late &= more;
	p->newer = PMF_MAX(p->newer, gap);
	if (pmf_unlikely(now - p->since > PMF_LOOKS_PERIOD)) {
		p->gap = p->newer;
		p->newer = gap;
		p->since = now;
	}
	p->gap = PMF_MAX(p->gap, gap);
}

/* How long a frame that has just been taken may have waited, as it goes onto the wire. */
static inline uint8_t pmf_looks_wait(const struct pmf_looks *p)
{
	if (!p)
		return 0;
	return p->late ? PMF_LOOKS_LATE : (uint8_t)(p->gap >> PMF_LOOKS_SHIFT);
}

#endif
