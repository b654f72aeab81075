/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * EAL: started late, once a process, politely. The calling thread becomes EAL's main thread unless
 * the application has started EAL before, which is then shared.
 */
#ifndef PMF_PMD_EAL_H
#define PMF_PMD_EAL_H

#include <rte_cycles.h>

#include "pmf_common.h"

enum pmf_huge { PMF_HUGE_AUTO, PMF_HUGE_ON, PMF_HUGE_OFF };

struct pmf_eal_conf {
	const char *extra;  /* FI_PMF_EAL or NULL */
	const char *pci[8]; /* PCI devices named by ports: -a each; none: --no-pci */
	unsigned int npci;
	enum pmf_huge huge;
	unsigned int memory_mb; /* 0: default */
	bool single_file;	/* memif zero-copy or virtio-user: --single-file-segments */
	pmf_log_fn log;		/* where EAL's lines go */
};

/**
 * Start EAL, or join one that runs. Call from a thread made for it (its affinity is changed; the
 * caller blocks SIGPIPE in it before); the same thread must open and close ports. A second call
 * gives the first one's result.
 * @return 0, or a negative errno with a sentence in @p err: -ENOMEM no memory or hugepages,
 *         -EINVAL bad arguments, -ECHILD a forked child of a process that runs EAL
 */
int pmf_eal_start(const struct pmf_eal_conf *conf, char *err, size_t errlen);

/** @return whether EAL runs in this process, started by anyone, and this is not a forked child. */
bool pmf_eal_running(void);

/** Can EAL get hugepages here? No EAL is started: reads /proc/meminfo and the mounts. */
bool pmf_eal_hugepages_usable(void);

/* The clock's scale; written once, before any engine runs. */
struct pmf_clock {
	uint64_t mult; /* ns per tick, 32 bits of fraction; 0: no usable TSC */
	uint64_t base_tsc;
	pmf_ns_t base_ns;
};
extern struct pmf_clock pmf_clock;
pmf_ns_t pmf_clock_monotonic(void);

/** Monotonic clock of engines, ns, from the TSC where it is invariant. Any thread, after start. */
static inline pmf_ns_t pmf_clock_ns(void)
{
	if (pmf_unlikely(pmf_clock.mult == 0))
		return pmf_clock_monotonic();
	return pmf_clock.base_ns +
	       (pmf_ns_t)(((unsigned __int128)(rte_rdtsc() - pmf_clock.base_tsc) *
			   pmf_clock.mult) >>
			  32);
}

/** Cryptographically fit random bytes (getrandom(2)). Control path. */
void pmf_random(void *buf, size_t len);

#endif
