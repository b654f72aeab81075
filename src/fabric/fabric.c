/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/objects.h"

#include <stdio.h>
#include <stdlib.h>

#include "fabric/info.h"
#include "fabric/log.h"
#include "fabric/nosys.h"
#include "fabric/pep.h"
#include "msg/calls.h"

static int fabric_close(struct fid *fid)
{
	struct pmf_fabric *f = (struct pmf_fabric *)fid;

	if (pmf_in_use(&f->refs))
		return -FI_EBUSY;
	free(f);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = pmf_nosys_bind,
	.control = pmf_nosys_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

static int fabric_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **dom,
			  uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : pmf_domain_open(fabric, info, dom, context);
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = pmf_domain_open,
	.passive_ep = pmf_passive_ep_open,
	.eq_open = pmf_eq_open,
	.wait_open = pmf_nosys_wait_open,
	.trywait = pmf_trywait,
	.domain2 = fabric_domain2,
};

static bool name_is_known(const struct pmf_conf *conf, const char *name)
{
	char text[FI_NAME_MAX];

	for (unsigned int i = 0; i < conf->nports; i++) {
		const struct pmf_port_conf *p = &conf->port[i];

		if ((p->v4.set && !strcmp(name, pmf_fabric_name(&p->v4, text, sizeof(text)))) ||
		    (p->v6.set && !strcmp(name, pmf_fabric_name(&p->v6, text, sizeof(text)))))
			return true;
	}
	return false;
}

int pmf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	const struct pmf_conf *conf = pmf_conf_load();
	struct pmf_fabric *f;

	if (!conf || !attr->name || !name_is_known(conf, attr->name)) {
		pmf_warn(FABRIC, "no configured port is in the network \"%s\" (FI_PMF_PORT)\n",
			 attr->name ? attr->name : "");
		return -FI_ENODATA;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->fid.fid.fclass = FI_CLASS_FABRIC;
	f->fid.fid.context = context;
	f->fid.fid.ops = &fabric_fid_ops;
	f->fid.ops = &fabric_ops;
	f->fid.api_version = attr->api_version;
	snprintf(f->name, sizeof(f->name), "%s", attr->name);
	*fabric = &f->fid;
	return 0;
}

/* Armed first, then looked at: what comes later writes the descriptor. */
static int trywait_on(struct pmf_wait *w, bool (*is_quiet)(struct fid *), struct fid *fid)
{
	pmf_wait_arm_poll(w);
	if (is_quiet(fid))
		return 0;
	pmf_wait_disarm_poll(w);
	return -FI_EAGAIN;
}

static bool cq_is_quiet(struct fid *fid)
{
	return pmf_cq_is_empty((struct pmf_cq *)fid);
}

static bool cntr_is_quiet(struct fid *fid)
{
	return !pmf_cntr_changed((struct pmf_cntr *)fid);
}

static int trywait_one(struct fid *fid)
{
	struct pmf_cntr *cntr;
	struct pmf_cq *cq;

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		cq = (struct pmf_cq *)fid;
		pmf_progress_run(cq->progress);
		return trywait_on(&cq->wait, cq_is_quiet, fid);
	case FI_CLASS_CNTR:
		cntr = (struct pmf_cntr *)fid;
		pmf_progress_run(cntr->progress);
		return trywait_on(&cntr->wait, cntr_is_quiet, fid);
	case FI_CLASS_EQ:
		/* Its descriptor is ready exactly while an event is there. */
		pmf_eq_progress((struct pmf_eq *)fid);
		return pmf_eq_is_empty((struct pmf_eq *)fid) ? 0 : -FI_EAGAIN;
	default:
		return -FI_EINVAL;
	}
}

int pmf_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int rc = 0;

	if (pmf_forked())
		return -FI_EOPBADSTATE;
	for (int i = 0; i < count && !rc; i++)
		rc = trywait_one(fids[i]);
	return rc;
}
