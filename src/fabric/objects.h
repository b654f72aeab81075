/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The objects behind the fids. Control path only: each has a reference count of what was opened on
 * it or bound to it, and closing it with references is -FI_EBUSY. Locks: a domain's before an AV's,
 * and neither is held on a data path.
 */
#ifndef PMF_FABRIC_OBJECTS_H
#define PMF_FABRIC_OBJECTS_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdatomic.h>

#include "completion/cntr.h"
#include "completion/cq.h"
#include "completion/eq.h"
#include "fabric/av_table.h"
#include "msg/ep_state.h"
#include "msg/peers.h"
#include "msg/stack.h"

struct pmf_fabric {
	struct fid_fabric fid;
	char name[FI_NAME_MAX];
	_Atomic int refs; /* domains and event queues */
};

struct pmf_domain {
	struct fid_domain fid;
	struct pmf_fabric *fabric;
	const struct pmf_conf *conf;
	struct pmf_progress progress; /* endpoints, CQs and counters keep its address */
	unsigned int port;	      /* index in conf */
	uint32_t api_version;
	uint32_t addr_format;
	enum fi_av_type av_type;
	bool thread_safe;
	uint8_t dscp;	   /* of its endpoints that name no traffic class */
	uint8_t *auth_key; /* of its endpoints that have none of their own */
	size_t auth_key_size;
	_Atomic int refs;
	_Atomic uint64_t next_key;
	struct pmf_eq *eq; /* bound: the default for endpoints; or NULL */
	/* feeds of CQs and counters, binding, and the lists */
	pthread_mutex_t lock;
	TAILQ_HEAD(, pmf_fep) eps;
	TAILQ_HEAD(, pmf_srx) srxs;
	TAILQ_HEAD(, pmf_av) avs;
	TAILQ_HEAD(, pmf_fcq) cqs;
	TAILQ_HEAD(, pmf_fcntr) cntrs;
	TAILQ_ENTRY(pmf_domain) link; /* all open domains; the lock of domain_list.c */
};

/* An authorization key of an address vector. Free when all three are 0. */
struct pmf_av_key {
	struct pmf_key_bytes bytes;
	uint32_t refs;	/* inserted so often */
	uint32_t eps;	/* were enabled with it, and are open */
	uint32_t peers; /* are inserted under it */
};

struct pmf_av {
	struct fid_av fid;
	struct pmf_domain *domain;
	uint32_t addr_format;
	bool events; /* FI_EVENT: FI_AV_COMPLETE on eq */
	struct pmf_eq *eq;
	_Atomic int refs; /* bound endpoints */
	pthread_mutex_t lock;
	struct pmf_av_table table;
	struct pmf_peers *peers;
	struct pmf_av_key *keys;  /* PMF_EP_KEYS, by number less 1; NULL: not FI_AV_AUTH_KEY */
	TAILQ_ENTRY(pmf_av) link; /* domain->avs */
};

/* CQs and counters as completion has them, on a list of their domain; EQs on one of them all. */
struct pmf_fcq {
	struct pmf_cq cq; /* first: fids and bindings point to it */
	TAILQ_ENTRY(pmf_fcq) link;
};

struct pmf_fcntr {
	struct pmf_cntr cntr; /* first */
	TAILQ_ENTRY(pmf_fcntr) link;
};

struct pmf_feq {
	struct pmf_eq eq;	   /* first */
	TAILQ_ENTRY(pmf_feq) link; /* the lock of domain_list.c */
};

/* A shared receive context. */
struct pmf_srx {
	struct pmf_handle handle; /* first; its ep is NULL */
	struct pmf_domain *domain;
	struct pmf_av *av;	   /* of the RDM endpoints bound to it; the domain's lock */
	_Atomic int refs;	   /* bound endpoints */
	TAILQ_ENTRY(pmf_srx) link; /* domain->srxs */
};

/* Another handle of an endpoint. */
struct pmf_alias {
	struct pmf_handle handle;    /* first */
	TAILQ_ENTRY(pmf_alias) link; /* fep->aliases */
};

/* A group that an endpoint has joined. */
struct pmf_fmc {
	struct fid_mc fid; /* first */
	struct pmf_fep *fep;
	struct pmf_mc *mc;
	TAILQ_ENTRY(pmf_fmc) link; /* fep->mcs */
};

/* fabric's part of an endpoint. */
struct pmf_fep {
	struct pmf_ep *ep;
	bool closed; /* its own handle is; the endpoint goes with the last alias. The domain's lock
		      */
	TAILQ_HEAD(, pmf_alias) aliases; /* the domain's lock */
	TAILQ_HEAD(, pmf_fmc) mcs;	 /* groups that are joined; the domain's lock */
	struct pmf_srx *srx;
	struct pmf_domain *domain;
	struct pmf_av *av;
	struct pmf_eq *eq;
	struct pmf_cq *tx_cq, *rx_cq;
	struct pmf_cntr *tx_cntr, *rx_cntr;
	uint64_t caps;
	uint32_t keys; /* of the AV that it was enabled with, by bit; the AV's lock */
	uint32_t addr_format;
	uint64_t max_msg_size;
	uint32_t inject_size;
	TAILQ_ENTRY(pmf_fep) link; /* domain->eps */
};

struct pmf_mr {
	struct fid_mr fid;
	struct pmf_domain *domain;
};

/* One table for all open domains: telemetry walks it, and a forked child finds them shut. */
void pmf_domain_list_add(struct pmf_domain *d);
void pmf_domain_list_del(struct pmf_domain *d);
void pmf_eq_list_add(struct pmf_feq *eq);
void pmf_eq_list_del(struct pmf_feq *eq);
/** Before the stack runs: its objects are shut in forked children from now on. */
void pmf_watch_forks(void);
/** Call @p fn for each open domain, with the list locked. */
void pmf_domain_list_walk(void (*fn)(struct pmf_domain *d, void *arg), void *arg);

/** @return whether this process is the forked child of one that used the stack: nothing works.
 */
bool pmf_forked(void);

/* Opening: the members of the ops tables of fabric and domain, one a file. */
int pmf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int pmf_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context);
int pmf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);
int pmf_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);
int pmf_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);
int pmf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);
int pmf_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);
int pmf_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		      void *context);
int pmf_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		 void *context);
extern struct fi_ops_mr pmf_ops_mr;

/** fi_trywait: 0 when all of @p fids are armed and empty, else -FI_EAGAIN. */
int pmf_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

static inline struct pmf_domain *pmf_domain_of(struct fid_domain *fid)
{
	return (struct pmf_domain *)fid;
}

static inline void pmf_ref(_Atomic int *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static inline void pmf_unref(_Atomic int *refs)
{
	atomic_fetch_sub_explicit(refs, 1, memory_order_release);
}

static inline bool pmf_in_use(_Atomic int *refs)
{
	/* acquire pairs with the release of pmf_unref(): what used the object is over */
	return atomic_load_explicit(refs, memory_order_acquire) != 0;
}

#endif
