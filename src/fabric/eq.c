/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/eq.h"

#include <stdlib.h>

#include "fabric/nosys.h"
#include "fabric/objects.h"
#include "msg/calls.h"

static int eq_close(struct fid *fid)
{
	struct pmf_eq *eq = (struct pmf_eq *)fid;
	struct pmf_fabric *f = eq->fabric;

	if (pmf_in_use(&eq->refs))
		return -FI_EBUSY;
	pmf_eq_list_del((struct pmf_feq *)eq);
	pmf_eq_fini(eq);
	free(eq);
	pmf_unref(&f->refs);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	return pmf_eq_control((struct pmf_eq *)fid, command, arg);
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = pmf_nosys_bind,
	.control = eq_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

int pmf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context)
{
	struct pmf_fabric *f = (struct pmf_fabric *)fabric;
	struct fi_eq_attr fallback = {0};
	struct pmf_feq *feq;
	struct pmf_eq *e;
	int rc;

	feq = calloc(1, sizeof(*feq));
	if (!feq)
		return -FI_ENOMEM;
	e = &feq->eq;
	rc = pmf_eq_init(e, attr ? attr : &fallback, f->fid.api_version);
	if (rc) {
		free(feq);
		return rc;
	}
	e->fabric = f;
	e->fid.fid.fclass = FI_CLASS_EQ;
	e->fid.fid.context = context;
	e->fid.fid.ops = &eq_fid_ops;
	e->fid.ops = &pmf_ops_eq;
	pmf_ref(&f->refs);
	pmf_eq_list_add(feq);
	*eq = &e->fid;
	return 0;
}
