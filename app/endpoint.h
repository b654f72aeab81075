/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_ENDPOINT_H
#define PERF_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "fabric.h"

/*
 * An enabled endpoint with a completion queue for both directions and an address vector, of its own
 * or another's: so the addresses of one run go with its endpoints.
 */
struct perf_endpoint {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	uint8_t name[PERF_NAME_MAX];
	size_t name_len;
	bool guest; /* queue and addresses are another's */
	/* Of the last failed operation, written when perf_endpoint_read() returns a negative value.
	 */
	void *failed_context;
	uint64_t failed_flags;
};

/**
 * @param info     f->info or f->data_info
 * @param entries  that the queue should hold
 * @param peers    whose addresses are to be inserted, about
 * @return 0; -1 with perf_error() set and e empty
 */
int perf_endpoint_open(struct perf_endpoint *e, struct perf_fabric *f, struct fi_info *info,
		       size_t entries, size_t peers);

/** Another endpoint on the queue and the addresses of @p host, which is closed after it. 0 or -1.
 */
int perf_endpoint_join(struct perf_endpoint *e, struct perf_fabric *f, struct fi_info *info,
		       const struct perf_endpoint *host);

void perf_endpoint_close(struct perf_endpoint *e);

/** Insert an address as fi_getname or fi_getinfo gives it. 0, or -1 with a reason. */
int perf_endpoint_insert(struct perf_endpoint *e, const void *name, size_t len, fi_addr_t *addr);

/** Forget an address; what is under way to it may end in errors. */
void perf_endpoint_remove(struct perf_endpoint *e, fi_addr_t addr);

/** Write an address as text, for people. */
void perf_endpoint_text(struct perf_endpoint *e, const void *name, char *text, size_t room);

/** Note why the next entry is an error entry, or why the queue cannot be read. @return -errno */
int perf_endpoint_read_error(struct perf_endpoint *e, ssize_t rc);

/**
 * Read completions, which drives manual progress.
 * @return how many of at most n were written, 0 if there are none; -errno with perf_error() set
 */
static inline int perf_endpoint_read(struct perf_endpoint *e, struct fi_cq_data_entry *entries,
				     size_t n)
{
	ssize_t rc = fi_cq_read(e->cq, entries, n);

	if (__builtin_expect(rc >= 0, 1))
		return (int)rc;
	return rc == -FI_EAGAIN ? 0 : perf_endpoint_read_error(e, rc);
}

#endif
