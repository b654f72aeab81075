/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files that run a program share: its endpoints, and what the model is asked.
 */
#ifndef PMF_MODEL_RUN_PRIVATE_H
#define PMF_MODEL_RUN_PRIVATE_H

#include "model.h"
#include "run.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

struct life {
	struct fid_ep *ep; /* NULL: closed */
	struct fid_cq *txcq, *rxcq;
	struct fid_cntr *txcntr, *rxcntr;
	struct fid_av *av;
	struct fid_eq *eq; /* connected */
};

/* Where the endpoints of a pair find each other. */
struct listener {
	struct fid_pep *pep;
	struct fid_eq *eq;
	char name[64];
	size_t namelen;
};

struct run {
	struct run_env *env;
	const struct program *p;
	struct model m;
	struct life life[MAX_LIVES];
	struct listener listener[MAX_EPS / 2];
	struct fid_ep *srx;    /* shared receives, or NULL */
	struct fid_av *one_av; /* of all endpoints with shared receives */
	char name[MAX_EPS][64];
	size_t namelen[MAX_EPS];
	uint8_t *sent[MAX_MSGS]; /* bytes that the provider may still read */
	uint8_t *recv[MAX_RECVS];
	uint64_t sum[MAX_RECVS]; /* of the bytes when the buffer became ours again, or 0 */
	bool sweep[MAX_RECVS];
	char token[MAX_RECVS]; /* addresses: contexts of receives */
	char sent_token[MAX_MSGS];
	uint64_t read; /* entries, of all queues */
	double end;
};

#define MUST(r, call)                                                                \
	do {                                                                         \
		long must_ = (call);                                                 \
		if (must_ < 0)                                                       \
			model_fail(&(r)->m, #call ": %s", fi_strerror((int)-must_)); \
	} while (0)

static inline bool failed(const struct run *r)
{
	return r->m.why[0] != '\0';
}

/** Open an endpoint of @p info at a slot, up to fi_enable. @return its life */
int run_open_ep(struct run *r, unsigned int slot, struct fi_info *info);
void run_close_ep(struct run *r, int life);
/** Read what is there, of all queues. */
void run_poll(struct run *r);
/** Has the program taken too long? Then it fails with @p what. */
bool run_late(struct run *r, const char *what);
/** What makes an endpoint of this slot, with its key; to be freed by fi_freeinfo(). */
struct fi_info *run_info(struct run *r, unsigned int slot);

/* ---- connections: run_cm.c ---- */

void run_listen(struct run *r);
void run_unlisten(struct run *r);
/** The slot connects to its mate, who accepts, or rejects. */
void run_connect(struct run *r, unsigned int slot, bool reject);
void run_shutdown(struct run *r, int life);
/** Read the events of a life. */
void run_events(struct run *r, int life);

#endif
