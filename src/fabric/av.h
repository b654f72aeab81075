/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Inserting, however the addresses are given: one loop over pmf_av_add_one() between start and end.
 */
#ifndef PMF_FABRIC_AV_H
#define PMF_FABRIC_AV_H

#include "fabric/info.h"
#include "fabric/objects.h"

struct pmf_av_add {
	struct pmf_av *av;
	fi_addr_t *fi_addr; /* the caller's array or NULL */
	int *errors;	    /* the caller's array (FI_SYNC_ERR) or NULL */
	void *context;
	size_t count, good;
};

/** @return 0; -FI_EBADFLAGS, -FI_ENOSYS; -FI_ENOEQ when events are due and there is no event queue
 */
int pmf_av_flags(const struct pmf_av *av, uint64_t flags);

void pmf_av_add_start(struct pmf_av_add *add, struct pmf_av *av, fi_addr_t *fi_addr, uint64_t flags,
		      void *context);
/** Enter @p addr, or note that there is none because of @p err (positive errno). */
void pmf_av_add_one(struct pmf_av_add *add, const struct pmf_addr *addr, int err);
/** @return what the call returns: how many were inserted, or 0 when an event tells */
int pmf_av_add_end(struct pmf_av_add *add);

/* av_sym.c: the members of fi_ops_av */
int pmf_av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr,
		     uint64_t flags, void *context);
int pmf_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
		     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context);

#endif
