/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * fi_open_ops(domain, "pmf_stats"): include/pmf/pmf_stats.h says what it is.
 */
#ifndef PMF_FABRIC_STATS_H
#define PMF_FABRIC_STATS_H

#include "fabric/objects.h"
#include "pmf/pmf_stats.h"

int pmf_stats_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context);

/**
 * All peers of the domain's port. @return how many there are; @p out is theirs by malloc(3), NULL
 * when there are none or no memory
 */
size_t pmf_stats_peers(struct pmf_domain *d, struct pmf_peer_view **out);

/** At FI_LOG_LEVEL=info, one line of what an endpoint did. Before it is closed. */
void pmf_stats_log_ep(struct pmf_fep *fep);

#endif
