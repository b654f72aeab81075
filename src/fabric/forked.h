/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PMF_FABRIC_FORKED_H
#define PMF_FABRIC_FORKED_H

#include "fabric/objects.h"

/**
 * In a forked child, in its atfork handler: every object of @p d answers -FI_EOPBADSTATE from now
 * on, and closing it touches nothing. The domain's lock is held.
 */
void pmf_forked_domain(struct pmf_domain *d);

/** The same of what belongs to a fabric. */
void pmf_forked_eq(struct fid_eq *eq);
void pmf_forked_pep(struct fid_pep *pep);

#endif
