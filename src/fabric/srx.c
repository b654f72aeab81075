/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Shared receive contexts: receives that any endpoint bound to the context may use.
 */
#include <stdlib.h>

#include "fabric/auth.h"
#include "fabric/ep.h"
#include "fabric/info.h"
#include "fabric/log.h"
#include "fabric/nosys.h"
#include "msg/calls.h"

static int srx_close(struct fid *fid)
{
	struct pmf_srx *srx = (struct pmf_srx *)fid;
	struct pmf_domain *d = srx->domain;

	if (pmf_in_use(&srx->refs))
		return -FI_EBUSY;
	pthread_mutex_lock(&d->lock);
	TAILQ_REMOVE(&d->srxs, srx, link);
	pthread_mutex_unlock(&d->lock);
	pmf_rctx_unshare(srx->handle.rctx);
	free(srx);
	pmf_unref(&d->refs);
	return 0;
}

static int srx_opsflag(struct pmf_srx *srx, int command, uint64_t *flags)
{
	if (!flags || (*flags & (FI_TRANSMIT | FI_RECV)) != FI_RECV)
		return -FI_EINVAL;
	if (command == FI_GETOPSFLAG) {
		*flags = srx->handle.rx_op_flags;
		return 0;
	}
	if (*flags & ~(FI_RECV | PMF_RX_OP_FLAGS))
		return -FI_EBADFLAGS;
	srx->handle.rx_op_flags = *flags & ~FI_RECV;
	return 0;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	switch (command) {
	case FI_ENABLE: /* it is, from the beginning */
		return 0;
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return srx_opsflag((struct pmf_srx *)fid, command, arg);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = pmf_nosys_bind,
	.control = srx_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

static ssize_t srx_cancel(fid_t fid, void *context)
{
	return pmf_rctx_cancel(((struct pmf_srx *)fid)->handle.rctx, context);
}

static ssize_t srx_rx_size_left(struct fid_ep *fid)
{
	return (ssize_t)pmf_rctx_left(pmf_handle_of(fid)->rctx);
}

static ssize_t srx_tx_size_left(struct fid_ep *fid)
{
	return -FI_ENOSYS;
}

static struct fi_ops_ep srx_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = srx_cancel,
	.getopt = pmf_rctx_getopt,
	.setopt = pmf_rctx_setopt,
	.tx_ctx = pmf_nosys_tx_ctx,
	.rx_ctx = pmf_nosys_rx_ctx,
	.rx_size_left = srx_rx_size_left,
	.tx_size_left = srx_tx_size_left,
};

static struct fi_ops_cm srx_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pmf_nosys_setname,
	.getname = pmf_nosys_getname,
	.getpeer = pmf_nosys_getpeer,
	.connect = pmf_nosys_connect,
	.listen = pmf_nosys_listen,
	.accept = pmf_nosys_accept,
	.reject = pmf_nosys_reject,
	.shutdown = pmf_nosys_shutdown,
	.join = pmf_nosys_join,
};

static void set_fids(struct fid_ep *fid, void *context)
{
	fid->fid.fclass = FI_CLASS_SRX_CTX;
	fid->fid.context = context;
	fid->fid.ops = &srx_fid_ops;
	fid->ops = &srx_ops;
	fid->cm = &srx_cm;
	fid->msg = &pmf_ops_srx;
	fid->rma = &pmf_nosys_rma;
	fid->tagged = &pmf_nosys_tagged;
	fid->atomic = &pmf_nosys_atomic;
	fid->collective = &pmf_nosys_collective;
}

static void attr_from(const struct pmf_domain *d, const struct fi_rx_attr *attr,
		      struct pmf_rctx_attr *rx)
{
	*rx = (struct pmf_rctx_attr){
		.engine = d->progress.engine[0], /* as its endpoints: see place() in ep.c */
		.size = d->conf->rx_size,
		.iov_limit = d->conf->iov_limit,
		.thread_safe = d->thread_safe,
		.kick = d->progress.manual,
		.keyed = pmf_auth_of_av(d->auth_key_size),
	};
	if (!attr)
		return;
	if (attr->size)
		rx->size = (uint32_t)attr->size;
	rx->prefix = attr->mode & FI_MSG_PREFIX ? PMF_MSG_PREFIX_SIZE : 0;
	rx->directed = attr->caps & FI_DIRECTED_RECV;
}

int pmf_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		 void *context)
{
	struct pmf_domain *d = pmf_domain_of(domain);
	const char *why = pmf_info_check_rx(attr);
	struct pmf_rctx_attr rx;
	struct pmf_srx *srx;
	int rc;

	if (why) {
		pmf_warn(EP_CTRL, "fi_srx_context: %s\n", why);
		return -FI_EINVAL;
	}
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	attr_from(d, attr, &rx);
	rc = pmf_rctx_open(&rx, &srx->handle.rctx);
	if (rc) {
		free(srx);
		return rc;
	}
	srx->domain = d;
	srx->handle.rx_op_flags = attr ? attr->op_flags : 0;
	set_fids(&srx->handle.fid, context);
	pmf_rctx_share(srx->handle.rctx);
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_TAIL(&d->srxs, srx, link);
	pthread_mutex_unlock(&d->lock);
	pmf_ref(&d->refs);
	*rx_ep = &srx->handle.fid;
	return 0;
}
