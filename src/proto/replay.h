/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Which transmission numbers of a peer have been taken: a sliding window of bits (RFC 4303 §3.4.3,
 * in words as RFC 6479 lays them out). What is behind the window counts as taken.
 */
#ifndef PMF_PROTO_REPLAY_H
#define PMF_PROTO_REPLAY_H

#include "pmf_common.h"

#define PMF_REPLAY_WORDS 16 /* a power of two */
#define PMF_REPLAY_WINDOW \
	((PMF_REPLAY_WORDS - 1) * 64) /* numbers behind the newest that are told apart */

struct pmf_replay {
	uint64_t newest; /* 0: none; numbers begin at 1 */
	uint64_t map[PMF_REPLAY_WORDS];
};

/* The number that travels as @p low: the one nearest to the newest (RFC 4303 §2.2.1). @return 0:
 * there is none, it would lie before the first. */
static inline uint64_t pmf_replay_extend(const struct pmf_replay *r, uint32_t low)
{
	int32_t ahead = (int32_t)(low - (uint32_t)r->newest);

	if (ahead < 0 && (uint64_t) - (int64_t)ahead > r->newest)
		return 0;
	return r->newest + (uint64_t)(int64_t)ahead;
}

/** @return whether @p n has not been taken yet. Changes nothing: its tag is still to be checked. */
static inline bool pmf_replay_is_new(const struct pmf_replay *r, uint64_t n)
{
	if (n == 0 || (n <= r->newest && r->newest - n >= PMF_REPLAY_WINDOW))
		return false;
	return n > r->newest || !(r->map[n / 64 % PMF_REPLAY_WORDS] >> n % 64 & 1);
}

/** @p n is new, and its tag was right. */
static inline void pmf_replay_take(struct pmf_replay *r, uint64_t n)
{
	if (n > r->newest) {
		uint64_t words = PMF_MIN(n / 64 - r->newest / 64, (uint64_t)PMF_REPLAY_WORDS);

		for (uint64_t i = 1; i <= words; i++)
			r->map[(r->newest / 64 + i) % PMF_REPLAY_WORDS] = 0;
		r->newest = n;
	}
	r->map[n / 64 % PMF_REPLAY_WORDS] |= 1ull << n % 64;
}

#endif
