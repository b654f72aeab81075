/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Runs programs through fi_* calls, all endpoints in one process and on one domain, and asks the
 * model about everything that is read.
 */
#ifndef PMF_MODEL_RUN_H
#define PMF_MODEL_RUN_H

#include <rdma/fabric.h>

#include "program.h"

struct run_side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

struct run_env {
	struct run_side rdm, msg;
	double patience_s; /* what has not ended by then hangs */
};

/** @return 0, or -1, having said why */
int run_open(struct run_env *env);
int run_close(struct run_env *env);

/** @return NULL, or what cannot be; valid until the next run */
const char *run_program(struct run_env *env, const struct program *p);

#endif
