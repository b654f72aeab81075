/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_EAL_H
#define PERF_EAL_H

#include <stdbool.h>

/**
 * Start DPDK's environment with the arguments in front of "--", before any libfabric call.
 * --no-pci is added unless a device is allowed, the processor mask stays unless the arguments
 * choose lcores, and nothing reaches stdout. SIGPIPE is blocked for good: the virtio-user driver
 * writes to sockets whose other end may be gone.
 * @param argv     argv[0] is the program
 * @param verbose  show what EAL says even if it starts
 * @return 0; -1 with perf_error() set
 */
int perf_eal_start(int argc, char *argv[], bool verbose);

#endif
