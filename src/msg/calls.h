/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The entry points that touch the data path, for the ops tables that fabric hands out: the nine
 * calls of fi_msg(3), and reading or waiting on CQs and counters (these run passes).
 */
#ifndef PMF_MSG_CALLS_H
#define PMF_MSG_CALLS_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

extern struct fi_ops_msg pmf_ops_msg; /* an endpoint's, enabled or not: the calls look themselves */
extern struct fi_ops_msg pmf_ops_srx; /* a shared receive context's: it sends nothing */
extern struct fi_ops_cq
	pmf_ops_cq; /* read, readfrom, readerr, sread, sreadfrom, signal, strerror */
extern struct fi_ops_eq pmf_ops_eq;	/* read, readerr, write, sread */
extern struct fi_ops_cntr pmf_ops_cntr; /* read, readerr, add, set, wait, adderr, seterr */

struct pmf_eq;

/** Passes for a reader of @p eq, as reading it runs them. Any thread. */
void pmf_eq_progress(struct pmf_eq *eq);

#endif
