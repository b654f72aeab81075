/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Passive endpoints as other files of the control path meet them.
 */
#ifndef PMF_FABRIC_PEP_H
#define PMF_FABRIC_PEP_H

#include "fabric/objects.h"

/**
 * fi_endpoint with a handle that is a passive endpoint: its address goes over, and it can do no
 * more than be closed.
 * @return 0 and the address; -FI_EINVAL: @p handle is none; -FI_EOPBADSTATE: it listens
 */
int pmf_pep_give(fid_t handle, struct pmf_addr *addr);

/** Over a fork: none comes or goes. */
void pmf_peps_hold(void);
void pmf_peps_let_go(void);
/** In the child, all held: they only refuse. @return whether there are any */
bool pmf_peps_forked(void);

int pmf_passive_ep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			void *context);

#endif
