/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files of the endpoint's control path share.
 */
#ifndef PMF_FABRIC_EP_H
#define PMF_FABRIC_EP_H

#include "fabric/objects.h"
#include "msg/ep_state.h"

static inline struct pmf_fep *pmf_fep_of(struct fid *fid)
{
	return pmf_ep_of((struct fid_ep *)fid)->owner;
}

/* The event queue of an endpoint: its own, or its domain's. NULL: none. */
static inline struct pmf_eq *pmf_fep_eq(const struct pmf_fep *fep)
{
	return fep->eq ? fep->eq : fep->domain->eq;
}

/* ep_bind.c */
int pmf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/** Give back all that was bound. */
void pmf_ep_unbind(struct pmf_fep *fep);
/** @return 0; -FI_ENOAV, -FI_ENOCQ: something is missing that the endpoint needs */
int pmf_ep_bound(struct pmf_fep *fep);

/* ep_opt.c; of endpoints and of shared receive contexts */
int pmf_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int pmf_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);
int pmf_rctx_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int pmf_rctx_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);

/* ep.c */
int pmf_fep_enable(struct pmf_fep *fep);
/** The address that an endpoint on @p port will have: the info's, or the port's own with a port to
 * choose. */
int pmf_ep_choose_addr(const struct pmf_port_conf *port, const struct fi_info *info,
		       uint32_t format, struct pmf_addr *out);

/* ep_cm.c */
struct pmf_connreq;
/** FI_OPT_CM_DATA_SIZE, of active and passive endpoints. */
int pmf_cm_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);
/** info->handle: a request, or a passive endpoint whose address goes to @p attr. @return 0,
 * -FI_EINVAL */
int pmf_fep_handle(const struct fi_info *info, struct pmf_ep_attr *attr, struct pmf_connreq **req);
int pmf_ep_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int pmf_ep_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int pmf_ep_shutdown(struct fid_ep *ep, uint64_t flags);
int pmf_ep_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);

/* mc.c */
int pmf_ep_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		void *context);

/* ep_name.c */
extern struct fi_ops_cm pmf_ep_ops_cm_msg;
extern struct fi_ops_cm pmf_ep_ops_cm;

#endif
