/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Poll sets: contexts of the CQs that are not empty and of the counters that have changed.
 */
#include <stdlib.h>

#include "fabric/nosys.h"
#include "fabric/objects.h"

struct poll_member {
	TAILQ_ENTRY(poll_member) link;
	struct fid *fid;
};

struct pmf_poll {
	struct fid_poll fid;
	struct pmf_domain *domain;
	pthread_mutex_t lock;
	TAILQ_HEAD(, poll_member) members;
};

static _Atomic int *refs_of(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ ? &((struct pmf_cq *)fid)->refs
					  : &((struct pmf_cntr *)fid)->refs;
}

static bool is_ready(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return !pmf_cq_is_empty((struct pmf_cq *)fid);
	return pmf_cntr_changed((struct pmf_cntr *)fid);
}

static int poll_poll(struct fid_poll *set, void **context, int count)
{
	struct pmf_poll *p = (struct pmf_poll *)set;
	struct poll_member *m;
	int n = 0;

	if (pmf_forked())
		return -FI_EOPBADSTATE;
	pmf_progress_run(&p->domain->progress);
	pthread_mutex_lock(&p->lock);
	TAILQ_FOREACH (m, &p->members, link) {
		if (n == count)
			break;
		if (is_ready(m->fid))
			context[n++] = m->fid->context;
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

static struct poll_member *find(struct pmf_poll *p, struct fid *fid)
{
	struct poll_member *m;

	TAILQ_FOREACH (m, &p->members, link) {
		if (m->fid == fid)
			return m;
	}
	return NULL;
}

static struct pmf_domain *domain_of(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return ((struct pmf_cq *)fid)->domain;
	case FI_CLASS_CNTR:
		return ((struct pmf_cntr *)fid)->domain;
	default:
		return NULL;
	}
}

static int poll_add(struct fid_poll *set, struct fid *fid, uint64_t flags)
{
	struct pmf_poll *p = (struct pmf_poll *)set;
	struct pmf_domain *d = domain_of(fid);
	struct poll_member *m;

	if (!d || flags)
		return -FI_EINVAL;
	if (d != p->domain)
		return -FI_EDOMAIN;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	m->fid = fid;
	pthread_mutex_lock(&p->lock);
	if (find(p, fid)) {
		pthread_mutex_unlock(&p->lock);
		free(m);
		return 0;
	}
	TAILQ_INSERT_TAIL(&p->members, m, link);
	pmf_ref(refs_of(fid));
	pthread_mutex_unlock(&p->lock);
	return 0;
}

static int poll_del(struct fid_poll *set, struct fid *fid, uint64_t flags)
{
	struct pmf_poll *p = (struct pmf_poll *)set;
	struct poll_member *m;

	if (flags)
		return -FI_EINVAL;
	pthread_mutex_lock(&p->lock);
	m = find(p, fid);
	if (m) {
		TAILQ_REMOVE(&p->members, m, link);
		pmf_unref(refs_of(fid));
		free(m);
	}
	pthread_mutex_unlock(&p->lock);
	return m ? 0 : -FI_EINVAL;
}

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

static int poll_close(struct fid *fid)
{
	struct pmf_poll *p = (struct pmf_poll *)fid;
	struct poll_member *m;

	while ((m = TAILQ_FIRST(&p->members))) {
		TAILQ_REMOVE(&p->members, m, link);
		pmf_unref(refs_of(m->fid));
		free(m);
	}
	pthread_mutex_destroy(&p->lock);
	pmf_unref(&p->domain->refs);
	free(p);
	return 0;
}

static struct fi_ops poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = pmf_nosys_bind,
	.control = pmf_nosys_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

int pmf_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set)
{
	struct pmf_domain *d = pmf_domain_of(domain);
	struct pmf_poll *p;

	if (attr && attr->flags)
		return -FI_EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -FI_ENOMEM;
	p->domain = d;
	TAILQ_INIT(&p->members);
	pthread_mutex_init(&p->lock, NULL);
	p->fid.fid.fclass = FI_CLASS_POLL;
	p->fid.fid.ops = &poll_fid_ops;
	p->fid.ops = &poll_ops;
	pmf_ref(&d->refs);
	*set = &p->fid;
	return 0;
}
