/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What EAL's start is made of; for pmd_glue only.
 */
#ifndef PMF_PMD_EAL_INTERNAL_H
#define PMF_PMD_EAL_INTERNAL_H

#include "pmf_common.h"

enum { PMF_FDSET_MAX = 65536 };

/* The descriptors that were open at one moment; those above the bound count as open. */
struct pmf_fdset {
	uint64_t bits[PMF_FDSET_MAX / 64];
};

/** Note which descriptors are open. */
void pmf_fdset_take(struct pmf_fdset *set);

/**
 * Set FD_CLOEXEC on every open descriptor that @p before does not hold; a signal that one sends
 * comes to the calling thread alone.
 */
void pmf_fdset_cloexec_new(const struct pmf_fdset *before);

/**
 * Set FD_CLOEXEC on what drivers opened by themselves when a peer came: connections at the socket
 * @p path, and memory that the peer shares. A started program that held them would hide our death.
 */
void pmf_fds_cloexec_link(const char *path);

/**
 * May EAL start with telemetry, under this file prefix? Takes up to three seconds when a process
 * that has such a socket hangs. @return false, with the reason in @p why
 */
bool pmf_eal_telemetry_possible(const char *prefix, char *why, size_t len);

/** Lead EAL's log to @p log (may be NULL: dropped), for good. */
void pmf_eal_log_open(pmf_log_fn log);

/** The first line of level error, or what getopt complained of, "" if none. */
void pmf_eal_log_first_error(char *buf, size_t len);

/**
 * Lead what this thread writes to stdout and stderr to the log, until restored. Other threads'
 * output passes on to where it went.
 */
void pmf_eal_stdio_divert(void);
void pmf_eal_stdio_restore(void);

/** A first look at the clocks; before EAL starts, if it is this process that starts it. */
void pmf_clock_prepare(void);

/** Fix the clock's scale; once, after EAL started. */
void pmf_clock_start(void);

#endif
