/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What a port needs between passes: its link watched, and devices restarted whose driver does not
 * find a returned peer by itself. Helper thread only.
 */
#include <stdatomic.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/mcast_internal.h"
#include "pmd_glue/port_setup.h"

static bool needs_restart(const struct pmf_port *port)
{
	const struct pmf_quirks *quirks = port->quirks;

	if (!port->started)
		return quirks->start_retry;
	return quirks->reconnects && quirks->reconnects(&port->conf) &&
	       !atomic_load_explicit(&port->link_up, memory_order_relaxed);
}

void pmf_port_service(struct pmf_port *port, void (*quiesce)(void *), void (*resume)(void *),
		      void *arg)
{
	char err[128];

	pmf_port_link_update(port);
	pmf_mcast_filter_service(port, quiesce, resume, arg);
	if (!needs_restart(port) || pmf_clock_ns() < port->next_restart)
		return;
	if (quiesce)
		quiesce(arg);
	pmf_port_stop(port);
	/* Only drivers that may fail to start come here; the next service tries again. */
	(void)pmf_port_start(port, err, sizeof(err));
	if (resume)
		resume(arg);
}
