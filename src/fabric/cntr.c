/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/cntr.h"

#include <stdlib.h>

#include "fabric/nosys.h"
#include "fabric/objects.h"
#include "msg/calls.h"

static int cntr_close(struct fid *fid)
{
	struct pmf_fcntr *f = (struct pmf_fcntr *)fid;
	struct pmf_domain *d = f->cntr.domain;

	if (pmf_in_use(&f->cntr.refs))
		return -FI_EBUSY;
	pthread_mutex_lock(&d->lock);
	TAILQ_REMOVE(&d->cntrs, f, link);
	pthread_mutex_unlock(&d->lock);
	pmf_cntr_fini(&f->cntr);
	free(f);
	pmf_unref(&d->refs);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return pmf_wait_control(&((struct pmf_cntr *)fid)->wait, command, arg);
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = pmf_nosys_bind,
	.control = cntr_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

int pmf_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context)
{
	struct pmf_domain *d = pmf_domain_of(domain);
	struct fi_cntr_attr fallback = {0};
	struct pmf_fcntr *f;
	int rc;

	f = aligned_alloc(_Alignof(struct pmf_fcntr), sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	rc = pmf_cntr_init(&f->cntr, attr ? attr : &fallback);
	if (rc) {
		free(f);
		return rc;
	}
	f->cntr.domain = d;
	f->cntr.progress = &d->progress;
	f->cntr.fid.fid.fclass = FI_CLASS_CNTR;
	f->cntr.fid.fid.context = context;
	f->cntr.fid.fid.ops = &cntr_fid_ops;
	f->cntr.fid.ops = &pmf_ops_cntr;
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_TAIL(&d->cntrs, f, link);
	pthread_mutex_unlock(&d->lock);
	pmf_ref(&d->refs);
	*cntr = &f->cntr.fid;
	return 0;
}
