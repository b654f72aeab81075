/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/cq.h"

#include <stdlib.h>

#include "fabric/nosys.h"
#include "fabric/objects.h"
#include "msg/calls.h"

static int cq_close(struct fid *fid)
{
	struct pmf_fcq *f = (struct pmf_fcq *)fid;
	struct pmf_domain *d = f->cq.domain;

	if (pmf_in_use(&f->cq.refs))
		return -FI_EBUSY;
	pthread_mutex_lock(&d->lock);
	TAILQ_REMOVE(&d->cqs, f, link);
	pthread_mutex_unlock(&d->lock);
	pmf_cq_fini(&f->cq);
	free(f);
	pmf_unref(&d->refs);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return pmf_wait_control(&((struct pmf_cq *)fid)->wait, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = pmf_nosys_bind,
	.control = cq_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

int pmf_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context)
{
	struct pmf_domain *d = pmf_domain_of(domain);
	struct fi_cq_attr fallback = {0};
	struct pmf_fcq *f;
	int rc;

	if (!attr)
		attr = &fallback;
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	f = aligned_alloc(_Alignof(struct pmf_fcq), sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	rc = pmf_cq_init(&f->cq, attr, d->thread_safe);
	if (rc) {
		free(f);
		return rc;
	}
	attr->format = f->cq.format;
	f->cq.domain = d;
	f->cq.addr_format = d->addr_format;
	f->cq.progress = &d->progress;
	f->cq.fid.fid.fclass = FI_CLASS_CQ;
	f->cq.fid.fid.context = context;
	f->cq.fid.fid.ops = &cq_fid_ops;
	f->cq.fid.ops = &pmf_ops_cq;
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_TAIL(&d->cqs, f, link);
	pthread_mutex_unlock(&d->lock);
	pmf_ref(&d->refs);
	*cq = &f->cq.fid;
	return 0;
}
