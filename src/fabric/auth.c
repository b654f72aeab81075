/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/auth.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "fabric/log.h"

const char *pmf_auth_check(const uint8_t *key, size_t size)
{
	if (size > PMF_KEY_SIZE_MAX)
		return "auth_key_size is above 256";
	if (size && !key)
		return "auth_key is not set, auth_key_size is";
	return NULL;
}

const char *pmf_auth_check_domain(const uint8_t *key, size_t size)
{
	if (!pmf_auth_of_av(size))
		return pmf_auth_check(key, size);
	return key ? "auth_key is set, auth_key_size is FI_AV_AUTH_KEY" : NULL;
}

const char *pmf_auth_check_ep(const struct fi_ep_attr *ep, size_t size)
{
	if (!pmf_auth_of_av(size))
		return NULL;
	if (ep->type == FI_EP_MSG)
		return "the domain's keys are those of address vectors, which FI_EP_MSG has not";
	return ep->auth_key || ep->auth_key_size
		       ? "the domain's keys are those of address vectors, auth_key is set"
		       : NULL;
}

bool pmf_auth_dup(const uint8_t *key, size_t size, uint8_t **out, size_t *out_size)
{
	if (pmf_auth_of_av(size))
		*out_size = size;
	if (!size || pmf_auth_of_av(size))
		return true;
	*out = malloc(size);
	if (!*out)
		return false;
	memcpy(*out, key, size);
	*out_size = size;
	return true;
}

int pmf_auth_load(const struct fi_domain_attr *domain, const struct pmf_conf *conf)
{
	char err[300];

	if (!conf->auth_key_file || domain->auth_key_size)
		return 0;
	if (!pmf_keyfile_load(conf, err, sizeof(err)))
		return 0;
	pmf_warn(DOMAIN, "%s\n", err);
	return -FI_EINVAL;
}

void pmf_auth_choose(const struct fi_ep_attr *ep, const uint8_t *domain_key, size_t domain_size,
		     const struct pmf_conf *conf, struct pmf_key_list *list,
		     struct pmf_ep_attr *attr)
{
	const uint8_t *key = ep->auth_key_size ? ep->auth_key : domain_key;
	size_t size = ep->auth_key_size ? ep->auth_key_size : domain_size;

	attr->keys_of_av = pmf_auth_of_av(size);
	if (attr->keys_of_av)
		return;
	attr->keys_of_file = !size && conf->auth_key_file;
	if (!size)
		return;
	list->n = 1;
	list->key[0].len = (uint16_t)size;
	memcpy(list->key[0].bytes, key, size);
	attr->keys = list;
}
