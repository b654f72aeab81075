/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_FABRIC_H
#define PERF_FABRIC_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "options.h"

enum {
	PERF_NAME_MAX = 256, /* what fi_getname may give */
};

/* What all endpoints of the program share. Main thread only. */
struct perf_fabric {
	const struct perf_options *options;
	struct fi_info *info;	   /* of the control endpoint: the port, on a server */
	struct fi_info *data_info; /* of data endpoints: any port */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	bool mr_local;
	uint64_t domain_ns; /* that fi_domain took */
	double domain_mb;   /* by which the process had more memory after it */
};

/**
 * Find the provider and open fabric and domain. A server (options->listen), or who is alone, opens
 * for its own address, a client for its first peer.
 * @return 0; -1 with perf_error() set and f empty
 */
int perf_fabric_open(struct perf_fabric *f, const struct perf_options *options);

void perf_fabric_close(struct perf_fabric *f);

/**
 * Look up "ADDR", "ADDR:PORT", "[ADDR6]:PORT" or a name.
 * @param info  the caller's to free; has a dest_addr
 * @return 0, or -1 with a reason
 */
int perf_fabric_lookup(struct perf_fabric *f, const char *peer, struct fi_info **info);

#endif
