/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * /pmf/... on DPDK's telemetry socket.
 */
#ifndef PMF_FABRIC_TELEMETRY_H
#define PMF_FABRIC_TELEMETRY_H

/** Register the commands, once a process. After EAL runs; any thread. */
void pmf_telemetry_init(void);

#endif
