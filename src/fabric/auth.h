/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Authorization keys as libfabric's attributes and FI_PMF_AUTH_KEY_FILE give them: an endpoint's
 * own, else its domain's, else those of the file.
 */
#ifndef PMF_FABRIC_AUTH_H
#define PMF_FABRIC_AUTH_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "msg/ep.h"

/** @return whether a domain's auth_key_size says that keys come from its address vectors; headers
 * before 1.20 have no such size */
static inline bool pmf_auth_of_av(size_t size)
{
#ifdef FI_AV_AUTH_KEY
	return size == FI_AV_AUTH_KEY;
#else
	return false;
#endif
}

/** @return NULL, or a sentence about what is wrong with a key given as attribute */
const char *pmf_auth_check(const uint8_t *key, size_t size);
/** The same for an attribute of a domain. */
const char *pmf_auth_check_domain(const uint8_t *key, size_t size);
/** The same for an endpoint whose domain has @p size. */
const char *pmf_auth_check_ep(const struct fi_ep_attr *ep, size_t size);

/** The key in attributes, which may be none: a copy of malloc(3). @return false: no memory */
bool pmf_auth_dup(const uint8_t *key, size_t size, uint8_t **out, size_t *out_size);

/** Read the file if it will be needed. @return 0; -FI_EINVAL after a warning that names it */
int pmf_auth_load(const struct fi_domain_attr *domain, const struct pmf_conf *conf);

/**
 * The keys of an endpoint or listener into @p attr.
 * @param list  where attr->keys points to; to be wiped after use
 */
void pmf_auth_choose(const struct fi_ep_attr *ep, const uint8_t *domain_key, size_t domain_size,
		     const struct pmf_conf *conf, struct pmf_key_list *list,
		     struct pmf_ep_attr *attr);

#endif
