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

/* Least time by which the TSC is measured: readings a microsecond apart make 0.002 %. */
#define CLOCK_SPAN (50 * PMF_NS_PER_MS)

/* The same moment by both clocks. */
struct reading {
	uint64_t tsc;
	pmf_ns_t ns;
};

struct pmf_clock pmf_clock;
static struct reading first;

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

/* Of some readings the one that the scheduler disturbed least. */
static struct reading clock_read(void)
{
	struct reading best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		const uint64_t before = rte_rdtsc();
		const pmf_ns_t ns = pmf_clock_monotonic();
		const uint64_t took = rte_rdtsc() - before;

		if (took < least) {
			least = took;
			best = (struct reading){.tsc = before + took / 2, .ns = ns};
		}
	}
	return best;
}

void pmf_clock_prepare(void)
{
	first = clock_read();
}

/*
 * Where the processor does not tell its TSC's frequency, EAL takes each of two readings once: on a
 * loaded machine it errs by whatever kept it from the processor between the two clocks. Its start
 * lasts long enough to be measured better; short of that, or when others started it, its word is
 * taken.
 */
void pmf_clock_start(void)
{
	struct reading now;
	uint64_t ns = PMF_NS_PER_S, ticks = rte_get_tsc_hz();

	if (ticks == 0 || !tsc_invariant())
		return;
	now = clock_read();
	if (first.ns && now.ns - first.ns >= CLOCK_SPAN) {
		ns = now.ns - first.ns;
		ticks = now.tsc - first.tsc;
	}
	pmf_clock.base_tsc = now.tsc;
	pmf_clock.base_ns = now.ns;
	pmf_clock.mult = (uint64_t)(((unsigned __int128)ns << 32) / ticks);
}
