/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Lives of flows that have ended here, so that a copy of an OPEN that comes late does not begin one
 * of them again. Bounded: the latest few thousand, which is more than end within a cookie's life
 * unless very many do. A struct has one user at a time.
 */
#ifndef PMF_PROTO_ENDED_H
#define PMF_PROTO_ENDED_H

#include <stdbool.h>
#include <stdint.h>

enum { PMF_ENDED_SETS = 1024, PMF_ENDED_WAYS = 4 };

struct pmf_ended {
	struct {
		uint64_t inc, conn; /* the peer's incarnation, and its id for the flow */
	} life[PMF_ENDED_SETS][PMF_ENDED_WAYS];
	uint8_t next[PMF_ENDED_SETS]; /* the way that is written next: the oldest */
};

static inline uint32_t pmf_ended_set(uint64_t inc, uint64_t conn)
{
	return (uint32_t)(conn ^ conn >> 32 ^ inc) % PMF_ENDED_SETS; /* both are random */
}

static inline bool pmf_ended_has(const struct pmf_ended *t, uint64_t inc, uint64_t conn)
{
	uint32_t set = pmf_ended_set(inc, conn);

	for (unsigned int i = 0; i < PMF_ENDED_WAYS; i++)
		if (t->life[set][i].inc == inc && t->life[set][i].conn == conn)
			return true;
	return false;
}

static inline void pmf_ended_add(struct pmf_ended *t, uint64_t inc, uint64_t conn)
{
	uint32_t set = pmf_ended_set(inc, conn);
	uint8_t way = t->next[set];

	if (pmf_ended_has(t, inc, conn))
		return;
	t->life[set][way].inc = inc;
	t->life[set][way].conn = conn;
	t->next[set] = (uint8_t)((way + 1) % PMF_ENDED_WAYS);
}

#endif
