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

/**
 * @param fi_addr  of the call: keys come in by it
 * @return 0; -FI_EBADFLAGS, -FI_ENOSYS; -FI_EINVAL without a key where one is due; -FI_ENOEQ when
 * events are due and there is no event queue
 */
int pmf_av_flags(const struct pmf_av *av, const fi_addr_t *fi_addr, uint64_t flags);

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

/* ---- av_key.c: authorization keys. Where they are not the AV's, av->keys is NULL. ---- */

/** @return 0, -FI_ENOMEM */
int pmf_av_keys_open(struct pmf_av *av);
void pmf_av_keys_close(struct pmf_av *av);

/* The members of fi_ops_av, and of fi_av_remove its part with FI_AUTH_KEY. */
int pmf_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size,
			   fi_addr_t *fi_addr, uint64_t flags);
int pmf_av_lookup_auth_key(struct fid_av *av, fi_addr_t fi_addr, void *auth_key,
			   size_t *auth_key_size);
int pmf_av_remove_auth_key(struct pmf_av *av, fi_addr_t fi_addr);

/* A peer under key @p number, or 0, is new or gone; under the AV's lock, as what follows. */
void pmf_av_key_hold(struct pmf_av *av, uint16_t number);
void pmf_av_key_release(struct pmf_av *av, uint16_t number);

/** An endpoint that is about to be enabled gets the keys that are there. @return 0; -FI_ENOKEY none
 * is; -FI_ENOMEM */
int pmf_av_keys_give(struct pmf_fep *fep);
/** It is closed, or could not be enabled. */
void pmf_av_keys_return(struct pmf_fep *fep);

#endif
