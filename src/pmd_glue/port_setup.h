/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The ethdev half of opening a port. Helper thread only.
 */
#ifndef PMF_PMD_PORT_SETUP_H
#define PMF_PMD_PORT_SETUP_H

#include "pmd_glue/port.h"

/**
 * Make the buffer pools and configure device and queues; port->mtu and quirks are set.
 * @return 0, or a negative errno with a sentence; pools that were made are in the port
 */
int pmf_port_setup(struct pmf_port *port, const struct rte_eth_dev_info *info, char *err,
		   size_t errlen);

/**
 * Start the device and look at its link. A driver whose peer must be there first may stay stopped;
 * pmf_port_service() tries again.
 */
int pmf_port_start(struct pmf_port *port, char *err, size_t errlen);

/** Stop the device if it is started. */
void pmf_port_stop(struct pmf_port *port);

/** Take the stopped device away, so that the same words can make it again. */
void pmf_port_remove(struct pmf_port *port);

/** Note whether the link is up; when it comes up, have the neighbours told. */
void pmf_port_link_update(struct pmf_port *port);

#endif
