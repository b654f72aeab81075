/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * One direction of a wire that misbehaves, for mbufs: pmf_fault.h decides, here frames are dropped,
 * copied, altered and held. Behind a port's queue it is FI_PMF_FAULT, between two ports pmf-wire.
 */
#ifndef PMF_PMD_FAULT_H
#define PMF_PMD_FAULT_H

#include <rte_mbuf.h>

#include "pmf_fault.h"

#define PMF_FAULT_STATS(X)                                                                     \
	X(fault_lost, "frames", "lost on purpose: by chance, in a burst, every nth")           \
	X(fault_cut, "frames", "lost on purpose while the wire was cut")                       \
	X(fault_full, "frames", "lost on purpose: the limited wire's queue was full")          \
	X(fault_crowded, "frames", "lost: more are held at once by faults than there is room") \
	X(fault_dup, "frames", "doubled on purpose")                                           \
	X(fault_reordered, "frames", "delayed behind later frames on purpose")                 \
	X(fault_delayed, "frames", "delayed by time on purpose")                               \
	X(fault_corrupted, "frames", "with a bit changed on purpose")                          \
	X(fault_truncated, "frames", "cut short on purpose")                                   \
	X(fault_marked, "frames", "marked for congestion on purpose")

struct pmf_fault_stats {
	PMF_FAULT_STATS(PMF_STAT_FIELD)
};

struct pmf_faults;

/**
 * @param fault  as parsed; copied
 * @param pool   where second copies are made
 * @param room   frames that can wait for their time at once; more than 0
 * @return NULL: no memory
 */
struct pmf_faults *pmf_faults_open(const struct pmf_fault *fault, struct rte_mempool *pool,
				   uint32_t room);
/** From now on by other faults; what is held passes at its time. */
void pmf_faults_change(struct pmf_faults *f, const struct pmf_fault *fault);
/** Frees what it holds. NULL is allowed. */
void pmf_faults_close(struct pmf_faults *f);

/**
 * Lose, double, alter and delay frames of @p m. One thread at a time.
 * @param n    frames in m; they are taken
 * @param max  room in m
 * @param now  ns, never 0; never less than an earlier now
 * @return frames in m now, which are the caller's
 */
uint16_t pmf_faults_apply(struct pmf_faults *f, struct rte_mbuf **m, uint16_t n, uint16_t max,
			  pmf_ns_t now);

/** What was done so far; valid until the close. */
const struct pmf_fault_stats *pmf_faults_stats(const struct pmf_faults *f);

/** Frames that are held now. */
uint32_t pmf_faults_held(const struct pmf_faults *f);

#endif
