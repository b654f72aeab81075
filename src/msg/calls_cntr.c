/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Reading and waiting on counters: each drives progress.
 */
#include "msg/calls.h"

#include <rdma/fi_errno.h>

#include "completion/cntr.h"
#include "msg/stack.h"
#include "msg/waiting.h"

static inline struct pmf_cntr *cntr_of(struct fid_cntr *fid)
{
	return pmf_container_of(fid, struct pmf_cntr, fid);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct pmf_cntr *c = cntr_of(fid);

	pmf_progress_run(c->progress);
	return pmf_cntr_value(c);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct pmf_cntr *c = cntr_of(fid);

	pmf_progress_run(c->progress);
	return pmf_cntr_errors(c);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	pmf_cntr_add(cntr_of(fid), value);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	pmf_cntr_set(cntr_of(fid), value);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	pmf_cntr_add_errors(cntr_of(fid), value);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	pmf_cntr_set_errors(cntr_of(fid), value);
	return 0;
}

/* 0 at the threshold; -FI_EAVAIL when the error value changes meanwhile; -FI_ETIMEDOUT. */
static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct pmf_cntr *c = cntr_of(fid);
	uint64_t errors = pmf_cntr_errors(c);
	struct pmf_waiting w;
	int ret = -FI_ETIMEDOUT;

	if (!pmf_wait_can_sleep(&c->wait))
		return -FI_ENOSYS;
	pmf_waiting_begin(&w, &c->wait, c->progress, timeout);
	do {
		pmf_progress_run(c->progress);
		if (pmf_cntr_value(c) >= threshold)
			ret = 0;
		else if (pmf_cntr_errors(c) != errors)
			ret = -FI_EAVAIL;
	} while (ret == -FI_ETIMEDOUT && pmf_waiting_sleep(&w));
	pmf_waiting_end(&w);
	return ret;
}

struct fi_ops_cntr pmf_ops_cntr = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};
