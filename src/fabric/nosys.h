/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What is not offered: every member of every ops table is set, and these answer -FI_ENOSYS.
 */
#ifndef PMF_FABRIC_NOSYS_H
#define PMF_FABRIC_NOSYS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* Whole tables. */
extern struct fi_ops_rma pmf_nosys_rma;
extern struct fi_ops_tagged pmf_nosys_tagged;
extern struct fi_ops_atomic pmf_nosys_atomic;
extern struct fi_ops_collective pmf_nosys_collective;

/* fi_ops */
int pmf_nosys_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int pmf_nosys_control(struct fid *fid, int command, void *arg);
int pmf_nosys_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		       void *context);
int pmf_nosys_tostr(const struct fid *fid, char *buf, size_t len);
int pmf_nosys_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/* fi_ops_fabric */
int pmf_nosys_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context);
int pmf_nosys_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			struct fid_wait **waitset);

/* fi_ops_domain */
int pmf_nosys_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			  void *context);
int pmf_nosys_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		      void *context);
int pmf_nosys_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			   struct fi_atomic_attr *attr, uint64_t flags);
int pmf_nosys_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			       struct fi_collective_attr *attr, uint64_t flags);

/* fi_ops_ep */
int pmf_nosys_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		     void *context);
int pmf_nosys_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		     void *context);

/* fi_ops_cm */
int pmf_nosys_setname(fid_t fid, void *addr, size_t addrlen);
int pmf_nosys_getname(fid_t fid, void *addr, size_t *addrlen);
int pmf_nosys_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int pmf_nosys_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int pmf_nosys_listen(struct fid_pep *pep);
int pmf_nosys_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int pmf_nosys_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
int pmf_nosys_shutdown(struct fid_ep *ep, uint64_t flags);
int pmf_nosys_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context);

/* fi_ops_av */
int pmf_nosys_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set,
		     void *context);

#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20))
int pmf_nosys_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags);
#endif

#endif
