/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Endpoint options: the limits of a message, where the headers have names for them.
 */
#include "fabric/ep.h"
#include "fabric/info.h"

/* The limit that an option names, or 0. */
static size_t limit_of(const struct pmf_fep *fep, int optname)
{
	switch (optname) {
#if FI_VERSION_GE(PMF_HEADERS, FI_VERSION(1, 22))
	case FI_OPT_MAX_MSG_SIZE:
		return fep->max_msg_size;
	case FI_OPT_INJECT_MSG_SIZE:
		return fep->inject_size;
#endif
	default:
		return SIZE_MAX;
	}
}

int pmf_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct pmf_fep *fep = pmf_fep_of(fid);
	size_t limit = limit_of(fep, optname);

	if (optname == FI_OPT_CM_DATA_SIZE && fep->ep->type == PMF_EP_MSG)
		return pmf_cm_getopt(fid, level, optname, optval, optlen);

	if (level != FI_OPT_ENDPOINT || limit == SIZE_MAX)
		return -FI_ENOPROTOOPT;
	if (*optlen < sizeof(size_t)) {
		*optlen = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	*(size_t *)optval = limit;
	*optlen = sizeof(size_t);
	return 0;
}

#if FI_VERSION_GE(PMF_HEADERS, FI_VERSION(1, 22))
static int lower(struct pmf_fep *fep, int optname, size_t value)
{
	if (value > limit_of(fep, optname))
		return -FI_EINVAL;
	if (optname == FI_OPT_MAX_MSG_SIZE)
		fep->max_msg_size = value;
	else
		fep->inject_size = (uint32_t)value;
	pmf_ep_set_limits(fep->ep, fep->max_msg_size, fep->inject_size);
	return 0;
}
#else
static int lower(struct pmf_fep *fep, int optname, size_t value)
{
	return -FI_ENOPROTOOPT;
}
#endif

int pmf_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct pmf_fep *fep = pmf_fep_of(fid);
	int rc;

	if (level != FI_OPT_ENDPOINT || limit_of(fep, optname) == SIZE_MAX)
		return -FI_ENOPROTOOPT;
	if (optlen < sizeof(size_t))
		return -FI_EINVAL;
	pthread_mutex_lock(&fep->domain->lock);
	rc = pmf_ep_enabled(fep->ep) ? -FI_EOPBADSTATE
				     : lower(fep, optname, *(const size_t *)optval);
	pthread_mutex_unlock(&fep->domain->lock);
	return rc;
}
