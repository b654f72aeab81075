/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files of the endpoint's control path share.
 */
#ifndef PMF_FABRIC_EP_H
#define PMF_FABRIC_EP_H

#include "fabric/objects.h"
#include "msg/ep_state.h"

static inline struct pmf_fep *pmf_fep_of(struct fid *fid)
{
	return ((struct pmf_ep *)fid)->owner;
}

/* ep_bind.c */
int pmf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/** Give back all that was bound. */
void pmf_ep_unbind(struct pmf_fep *fep);
/** @return 0; -FI_ENOAV, -FI_ENOCQ: something is missing that the endpoint needs */
int pmf_ep_bound(const struct pmf_fep *fep);

/* ep_opt.c */
int pmf_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int pmf_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);

/* ep_name.c */
extern struct fi_ops_cm pmf_ep_ops_cm;

#endif
