/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The engines' clock: the TSC, scaled to nanoseconds by one multiplication, where it runs evenly
 * and never stops; CLOCK_MONOTONIC elsewhere. The scale is written once, before any engine runs.
 */
#include <time.h>

#include <rte_cycles.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/eal_internal.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

struct pmf_clock pmf_clock;

pmf_ns_t pmf_clock_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (pmf_ns_t)ts.tv_sec * PMF_NS_PER_S + (pmf_ns_t)ts.tv_nsec;
}

static bool tsc_invariant(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
	return true; /* the generic timers of arm64, ppc64 and riscv are by their definition */
#endif
}

void pmf_clock_start(void)
{
	const uint64_t hz = rte_get_tsc_hz();

	if (hz == 0 || !tsc_invariant())
		return;
	pmf_clock.base_tsc = rte_rdtsc();
	pmf_clock.base_ns = pmf_clock_monotonic();
	pmf_clock.mult = (uint64_t)(((unsigned __int128)PMF_NS_PER_S << 32) / hz);
}
