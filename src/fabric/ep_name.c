/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * An endpoint's name; the rest of connection management is not an unconnected endpoint's.
 */
#include "fabric/ep.h"
#include "fabric/nosys.h"
#include "msg/addr.h"

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct pmf_fep *fep = pmf_fep_of(fid);
	int rc;

	if (!addrlen)
		return -FI_EINVAL;
	pthread_mutex_lock(&fep->domain->lock);
	rc = pmf_addr_put(pmf_ep_addr(fep->ep), fep->addr_format, addr, addrlen);
	pthread_mutex_unlock(&fep->domain->lock);
	return rc;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct pmf_fep *fep = pmf_fep_of(fid);
	struct pmf_addr a;
	int rc;

	if (!addr || !addrlen || pmf_addr_get(addr, addrlen, fep->addr_format, &a))
		return -FI_EINVAL;
	pthread_mutex_lock(&fep->domain->lock);
	/* The address of any interface is this endpoint's own. */
	if (pmf_addr_is_any(&a))
		memcpy(a.ip, pmf_ep_addr(fep->ep)->ip, sizeof(a.ip));
	rc = pmf_ep_enabled(fep->ep) ? -FI_EOPBADSTATE : pmf_ep_set_addr(fep->ep, &a);
	pthread_mutex_unlock(&fep->domain->lock);
	return rc;
}

static int ep_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return -FI_ENOTCONN;
}

/* FI_EP_MSG. */
struct fi_ops_cm pmf_ep_ops_cm_msg = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = pmf_ep_getpeer,
	.connect = pmf_ep_connect,
	.listen = pmf_nosys_listen,
	.accept = pmf_ep_accept,
	.reject = pmf_nosys_reject,
	.shutdown = pmf_ep_shutdown,
	.join = pmf_nosys_join,
};

struct fi_ops_cm pmf_ep_ops_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = pmf_nosys_connect,
	.listen = pmf_nosys_listen,
	.accept = pmf_nosys_accept,
	.reject = pmf_nosys_reject,
	.shutdown = pmf_nosys_shutdown,
	.join = pmf_ep_join,
};
