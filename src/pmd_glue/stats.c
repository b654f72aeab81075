/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The counters of ports: their descriptions, and the sum over a port's queues.
 */
#include "pmd_glue/port.h"

const struct pmf_stat_desc pmf_port_stat_desc[] = {PMF_PORT_STATS(PMF_STAT_DESC)};
const unsigned int pmf_port_stat_count = PMF_ARRAY_SIZE(pmf_port_stat_desc);

#define STAT_ADD(name, unit, help) \
	out->name += __atomic_load_n(&port->queue[i].stats.name, __ATOMIC_RELAXED);

void pmf_port_stats_get(const struct pmf_port *port, struct pmf_port_stats *out)
{
	uint16_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < port->nqueues; i++) {
		PMF_PORT_STATS(STAT_ADD)
	}
}
