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

static int get_size(size_t value, void *optval, size_t *optlen)
{
	if (*optlen < sizeof(size_t)) {
		*optlen = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	memcpy(optval, &value, sizeof(value));
	*optlen = sizeof(size_t);
	return 0;
}

int pmf_rctx_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct pmf_rctx *rc = pmf_handle_of((struct fid_ep *)fid)->rctx;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	return get_size(atomic_load_explicit(&rc->min_multi, memory_order_relaxed), optval, optlen);
}

/* Acts on buffers that are posted from now on. */
int pmf_rctx_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct pmf_rctx *rc = pmf_handle_of((struct fid_ep *)fid)->rctx;
	size_t value;

	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (optlen < sizeof(value))
		return -FI_EINVAL;
	memcpy(&value, optval, sizeof(value));
	atomic_store_explicit(&rc->min_multi, value, memory_order_relaxed);
	return 0;
}

int pmf_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct pmf_fep *fep = pmf_fep_of(fid);
	size_t limit = limit_of(fep, optname);

	if (optname == FI_OPT_CM_DATA_SIZE && fep->ep->type == PMF_EP_MSG)
		return pmf_cm_getopt(fid, level, optname, optval, optlen);
	if (optname == FI_OPT_MIN_MULTI_RECV)
		return pmf_rctx_getopt(fid, level, optname, optval, optlen);
	if (level != FI_OPT_ENDPOINT || limit == SIZE_MAX)
		return -FI_ENOPROTOOPT;
	return get_size(limit, optval, optlen);
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

	if (optname == FI_OPT_MIN_MULTI_RECV)
		return pmf_rctx_setopt(fid, level, optname, optval, optlen);
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
