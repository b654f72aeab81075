/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Ops tables for the copies that a forked child has: the rings and hugepages behind them are the
 * parent's.
 */
#include "fabric/forked.h"

#include "fabric/nosys.h"
#include "msg/ep_state.h"

enum { REFUSED = -FI_EOPBADSTATE };

static int no_close(struct fid *fid)
{
	return 0;
}

static int no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return REFUSED;
}

static int no_control(struct fid *fid, int command, void *arg)
{
	return REFUSED;
}

static int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return REFUSED;
}

static struct fi_ops no_fid = {
	.size = sizeof(struct fi_ops),
	.close = no_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

static ssize_t no_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
		       void *context)
{
	return REFUSED;
}

static ssize_t no_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t src_addr, void *context)
{
	return REFUSED;
}

static ssize_t no_msg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return REFUSED;
}

static ssize_t no_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
		       fi_addr_t dest_addr, void *context)
{
	return REFUSED;
}

static ssize_t no_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	return REFUSED;
}

static ssize_t no_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest_addr, void *context)
{
	return REFUSED;
}

static ssize_t no_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			     fi_addr_t dest_addr)
{
	return REFUSED;
}

static struct fi_ops_msg no_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = no_recv,
	.recvv = no_recvv,
	.recvmsg = no_msg,
	.send = no_send,
	.sendv = no_recvv,
	.sendmsg = no_msg,
	.inject = no_inject,
	.senddata = no_senddata,
	.injectdata = no_injectdata,
};

static int no_setname(fid_t fid, void *addr, size_t addrlen)
{
	return REFUSED;
}

static int no_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return REFUSED;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return REFUSED;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return REFUSED;
}

static int no_listen(struct fid_pep *pep)
{
	return REFUSED;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return REFUSED;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return REFUSED;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return REFUSED;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	return REFUSED;
}

static struct fi_ops_cm no_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = no_setname,
	.getname = no_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

static ssize_t no_cancel(fid_t fid, void *context)
{
	return REFUSED;
}

static int no_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return REFUSED;
}

static int no_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return REFUSED;
}

static ssize_t no_size_left(struct fid_ep *ep)
{
	return REFUSED;
}

static struct fi_ops_ep no_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = no_cancel,
	.getopt = no_getopt,
	.setopt = no_setopt,
	.tx_ctx = pmf_nosys_tx_ctx,
	.rx_ctx = pmf_nosys_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

static ssize_t no_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return REFUSED;
}

static ssize_t no_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return REFUSED;
}

static ssize_t no_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	return REFUSED;
}

static ssize_t no_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond,
			   int timeout)
{
	return REFUSED;
}

static ssize_t no_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
			       const void *cond, int timeout)
{
	return REFUSED;
}

static int no_cq_signal(struct fid_cq *cq)
{
	return REFUSED;
}

static struct fi_ops_cq no_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = no_cq_read,
	.readfrom = no_cq_readfrom,
	.readerr = no_cq_readerr,
	.sread = no_cq_sread,
	.sreadfrom = no_cq_sreadfrom,
	.signal = no_cq_signal,
	.strerror = pmf_cq_strerror,
};

static ssize_t no_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	return REFUSED;
}

static ssize_t no_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return REFUSED;
}

static ssize_t no_eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			   uint64_t flags)
{
	return REFUSED;
}

static ssize_t no_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
			   uint64_t flags)
{
	return REFUSED;
}

static struct fi_ops_eq no_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = no_eq_read,
	.readerr = no_eq_readerr,
	.write = no_eq_write,
	.sread = no_eq_sread,
	.strerror = pmf_eq_strerror,
};

/* A counter has no way to tell an error but its error value. */
static uint64_t no_cntr_read(struct fid_cntr *cntr)
{
	return 0;
}

static uint64_t no_cntr_readerr(struct fid_cntr *cntr)
{
	return 1;
}

static int no_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return REFUSED;
}

static int no_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return REFUSED;
}

static struct fi_ops_cntr no_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = no_cntr_read,
	.readerr = no_cntr_readerr,
	.add = no_cntr_set,
	.set = no_cntr_set,
	.wait = no_cntr_wait,
	.adderr = no_cntr_set,
	.seterr = no_cntr_set,
};

static int no_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		      void *context)
{
	return REFUSED;
}

static int no_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		      void *context)
{
	return REFUSED;
}

static int no_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		       void *context)
{
	return REFUSED;
}

static int no_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			struct fid_cntr **cntr, void *context)
{
	return REFUSED;
}

static int no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set)
{
	return REFUSED;
}

static int no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		      void *context)
{
	return REFUSED;
}

static int no_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			uint64_t flags, void *context)
{
	return REFUSED;
}

static struct fi_ops_domain no_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = no_av_open,
	.cq_open = no_cq_open,
	.endpoint = no_endpoint,
	.scalable_ep = pmf_nosys_scalable_ep,
	.cntr_open = no_cntr_open,
	.poll_open = no_poll_open,
	.stx_ctx = pmf_nosys_stx_ctx,
	.srx_ctx = no_srx_ctx,
	.query_atomic = pmf_nosys_query_atomic,
	.query_collective = pmf_nosys_query_collective,
	.endpoint2 = no_endpoint2,
};

/* What an AV changes is in the engines' tables. */
static int no_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	return REFUSED;
}

static int no_av_insertsvc(struct fid_av *av, const char *node, const char *service,
			   fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return REFUSED;
}

static int no_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
			   size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return REFUSED;
}

static int no_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	return REFUSED;
}

static struct fi_ops_av no_av_ops;

static void refuse_av(struct pmf_av *av)
{
	/* Looking at it is harmless; changing it is not. */
	no_av_ops = *av->fid.ops;
	no_av_ops.insert = no_av_insert;
	no_av_ops.insertsvc = no_av_insertsvc;
	no_av_ops.insertsym = no_av_insertsym;
	no_av_ops.remove = no_av_remove;
	av->fid.ops = &no_av_ops;
	av->fid.fid.ops = &no_fid;
}

static void refuse_handle(struct pmf_handle *h)
{
	h->fid.fid.ops = &no_fid;
	h->fid.ops = &no_ep_ops;
	h->fid.msg = &no_msg_ops;
	h->fid.cm = &no_cm_ops;
}

static void refuse_ep(struct pmf_fep *fep)
{
	struct pmf_alias *alias;
	struct pmf_fmc *fmc;

	refuse_handle(&fep->ep->handle);
	TAILQ_FOREACH (fmc, &fep->mcs, link)
		fmc->fid.fid.ops = &no_fid;
	TAILQ_FOREACH (alias, &fep->aliases, link)
		refuse_handle(&alias->handle);
}

void pmf_forked_eq(struct fid_eq *eq)
{
	eq->fid.ops = &no_fid;
	eq->ops = &no_eq_ops;
}

void pmf_forked_pep(struct fid_pep *pep)
{
	pep->fid.ops = &no_fid;
	pep->ops = &no_ep_ops;
	pep->cm = &no_cm_ops;
}

void pmf_forked_domain(struct pmf_domain *d)
{
	struct pmf_fcntr *cntr;
	struct pmf_srx *srx;
	struct pmf_fep *fep;
	struct pmf_fcq *cq;
	struct pmf_av *av;

	d->fid.fid.ops = &no_fid;
	d->fid.ops = &no_domain_ops;
	TAILQ_FOREACH (fep, &d->eps, link)
		refuse_ep(fep);
	TAILQ_FOREACH (srx, &d->srxs, link)
		refuse_handle(&srx->handle);
	TAILQ_FOREACH (av, &d->avs, link)
		refuse_av(av);
	TAILQ_FOREACH (cq, &d->cqs, link) {
		cq->cq.fid.fid.ops = &no_fid;
		cq->cq.fid.ops = &no_cq_ops;
	}
	TAILQ_FOREACH (cntr, &d->cntrs, link) {
		cntr->cntr.fid.fid.ops = &no_fid;
		cntr->cntr.fid.ops = &no_cntr_ops;
	}
}
