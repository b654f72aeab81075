/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connecting: what an active FI_EP_MSG endpoint has besides its name.
 */
#include "msg/cm.h"

#include "fabric/ep.h"
#include "fabric/pep.h"
#include "msg/addr.h"

int pmf_cm_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (*optlen < sizeof(size_t)) {
		*optlen = sizeof(size_t);
		return -FI_ETOOSMALL;
	}
	*(size_t *)optval = PMF_CM_DATA;
	*optlen = sizeof(size_t);
	return 0;
}

/* fi_connect and fi_accept enable by themselves. */
static int enable_first(struct pmf_fep *fep)
{
	return pmf_ep_enabled(fep->ep) ? 0 : pmf_fep_enable(fep);
}

int pmf_ep_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	struct pmf_fep *fep = pmf_fep_of(&ep->fid);
	struct pmf_addr peer;
	int rc;

	if (!addr || pmf_addr_get(addr, 0, fep->addr_format, &peer) || !peer.port)
		return -FI_EINVAL;
	rc = enable_first(fep);
	return rc ? rc : pmf_cm_connect(fep->ep, &peer, param, param ? paramlen : 0);
}

int pmf_ep_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	struct pmf_fep *fep = pmf_fep_of(&ep->fid);
	int rc = enable_first(fep);

	return rc ? rc : pmf_cm_accept(fep->ep, param, param ? paramlen : 0);
}

int pmf_ep_shutdown(struct fid_ep *ep, uint64_t flags)
{
	if (flags)
		return -FI_EINVAL;
	return pmf_cm_shutdown(pmf_fep_of(&ep->fid)->ep);
}

int pmf_ep_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	struct pmf_fep *fep = pmf_fep_of(&ep->fid);
	struct pmf_addr peer;
	int rc;

	if (!addrlen)
		return -FI_EINVAL;
	rc = pmf_cm_peer(fep->ep, &peer);
	return rc ? rc : pmf_addr_put(&peer, fep->addr_format, addr, addrlen);
}

int pmf_fep_handle(const struct fi_info *info, struct pmf_ep_attr *attr, struct pmf_connreq **req)
{
	*req = NULL;
	if (!info->handle)
		return 0;
	if (attr->type != PMF_EP_MSG)
		return -FI_EINVAL;
	*req = pmf_connreq_take(info->handle);
	return *req ? 0 : pmf_pep_give(info->handle, &attr->addr);
}
