/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Multicast groups that an endpoint has joined: fi_join, and leaving by fi_close of the fid_mc.
 */
#include "msg/mcast.h"

#include <stdlib.h>

#include "fabric/ep.h"
#include "fabric/log.h"
#include "fabric/nosys.h"
#include "msg/addr.h"
#include "pmd_glue/mcast.h"

static int mc_close(struct fid *fid)
{
	struct pmf_fmc *fmc = (struct pmf_fmc *)fid;
	struct pmf_fep *fep = fmc->fep;

	pthread_mutex_lock(&fep->domain->lock);
	pmf_mc_leave(fmc->mc);
	TAILQ_REMOVE(&fep->mcs, fmc, link);
	pmf_eq_forget(pmf_fep_eq(fep), fid);
	pmf_eq_unreserve(pmf_fep_eq(fep), 1);
	pthread_mutex_unlock(&fep->domain->lock);
	free(fmc);
	return 0;
}

static struct fi_ops mc_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mc_close,
	.bind = pmf_nosys_bind,
	.control = pmf_nosys_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

/* What the flags leave of the endpoint's directions. @return 0 or a negative errno */
static int choose_directions(const struct pmf_fep *fep, uint64_t flags, struct pmf_mc_attr *attr)
{
	uint64_t dir = fep->caps & (FI_SEND | FI_RECV);

	if (flags & FI_COLLECTIVE)
		return -FI_ENOSYS;
	if (flags & ~(FI_SEND | FI_RECV))
		return -FI_EBADFLAGS;
	if (flags)
		dir &= flags;
	attr->send = dir & FI_SEND;
	attr->recv = dir & FI_RECV;
	return dir ? 0 : -FI_ENOSYS;
}

static int choose_group(const struct pmf_fep *fep, const void *addr, struct pmf_addr *group)
{
	if (!addr || pmf_addr_get(addr, 0, fep->addr_format, group) ||
	    !pmf_mcast_is_group(group->ip))
		return -FI_EINVAL;
	if (!group->port)
		group->port = PMF_MC_PORT;
	return 0;
}

static int join(struct pmf_fep *fep, const struct pmf_mc_attr *attr, void *context,
		struct fid_mc **mc)
{
	struct pmf_fmc *fmc = calloc(1, sizeof(*fmc));
	struct pmf_mc_attr a = *attr;
	int rc;

	if (!fmc)
		return -FI_ENOMEM;
	rc = pmf_eq_reserve(attr->eq, 1);
	if (rc) {
		free(fmc);
		return rc;
	}
	fmc->fep = fep;
	fmc->fid.fid.fclass = FI_CLASS_MC;
	fmc->fid.fid.context = context;
	fmc->fid.fid.ops = &mc_fid_ops;
	fmc->fid.fi_addr = FI_ADDR_NOTAVAIL;
	a.fid = &fmc->fid;
	/* before the event that another thread may be reading */
	*mc = &fmc->fid;
	rc = pmf_mc_join(fep->ep, &a, &fmc->mc);
	if (rc) {
		*mc = NULL;
		pmf_eq_unreserve(attr->eq, 1);
		free(fmc);
		return rc;
	}
	TAILQ_INSERT_TAIL(&fep->mcs, fmc, link);
	return 0;
}

int pmf_ep_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		void *context)
{
	struct pmf_fep *fep = pmf_fep_of(&ep->fid);
	struct pmf_mc_attr attr = {0};
	int rc;

	if (!(fep->caps & FI_MULTICAST))
		return -FI_ENOSYS;
	rc = choose_directions(fep, flags, &attr);
	if (rc)
		return rc;
	if (fep->ep->nauths) {
		pmf_warn(EP_CTRL, "fi_join: the endpoint has an authorization key, and messages to "
				  "groups are not authenticated\n");
		return -FI_EACCES;
	}
	pthread_mutex_lock(&fep->domain->lock);
	attr.eq = pmf_fep_eq(fep);
	if (!pmf_ep_enabled(fep->ep))
		rc = -FI_EOPBADSTATE;
	else if (!attr.eq)
		rc = -FI_ENOEQ;
	else
		rc = choose_group(fep, addr, &attr.group);
	if (!rc)
		rc = join(fep, &attr, context, mc);
	pthread_mutex_unlock(&fep->domain->lock);
	return rc;
}
