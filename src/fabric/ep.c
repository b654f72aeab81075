/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/ep.h"

#include <stdlib.h>

#include "fabric/auth.h"
#include "fabric/av.h"
#include "fabric/info.h"
#include "fabric/log.h"
#include "fabric/nosys.h"
#include "fabric/stats.h"
#include "msg/addr.h"
#include "msg/calls.h"
#include "msg/cm.h"

static void destroy(struct pmf_fep *fep)
{
	struct pmf_domain *d = fep->domain;
	struct pmf_av *av = fep->av;
	struct fid *fid = &fep->ep->fid.fid;
	bool enabled = pmf_ep_enabled(fep->ep), connects = fep->ep->type == PMF_EP_MSG;

	if (enabled)
		pmf_stats_log_ep(fep);
	pthread_mutex_lock(&d->lock);
	TAILQ_REMOVE(&d->eps, fep, link);
	if (av)
		pthread_mutex_lock(&av->lock);
	pmf_ep_close(fep->ep);
	pmf_av_keys_return(fep);
	if (av)
		pthread_mutex_unlock(&av->lock);
	pthread_mutex_unlock(&d->lock);
	if (pmf_fep_eq(fep))
		pmf_eq_forget(pmf_fep_eq(fep), fid);
	if (connects && enabled)
		pmf_eq_unreserve(pmf_fep_eq(fep), PMF_CM_EVENTS);
	pmf_ep_unbind(fep);
	free(fep);
	pmf_unref(&d->refs);
}

static bool is_last_handle(const struct pmf_fep *fep, const struct pmf_handle *h)
{
	const struct pmf_alias *first = TAILQ_FIRST(&fep->aliases);

	if (h == &fep->ep->handle)
		return !first;
	return fep->closed && !TAILQ_NEXT(first, link);
}

/* The endpoint goes with its last handle, and not with a group joined. */
static int ep_close(struct fid *fid)
{
	struct pmf_handle *h = pmf_handle_of((struct fid_ep *)fid);
	struct pmf_fep *fep = h->ep->owner;
	bool last;

	pthread_mutex_lock(&fep->domain->lock);
	last = is_last_handle(fep, h);
	if (last && !TAILQ_EMPTY(&fep->mcs)) {
		pthread_mutex_unlock(&fep->domain->lock);
		return -FI_EBUSY;
	}
	if (h == &h->ep->handle) {
		fep->closed = true;
	} else {
		TAILQ_REMOVE(&fep->aliases, (struct pmf_alias *)h, link);
		free(h);
	}
	pthread_mutex_unlock(&fep->domain->lock);
	if (last)
		destroy(fep);
	return 0;
}

/* It may be tried again: what it got of the AV goes back when it fails. */
static int enable_with_keys(struct pmf_fep *fep)
{
	int rc = pmf_av_keys_give(fep);

	if (!rc)
		rc = pmf_ep_enable(fep->ep);
	if (rc && fep->keys) {
		pmf_ep_drop_keys(fep->ep);
		pthread_mutex_lock(&fep->av->lock);
		pmf_av_keys_return(fep);
		pthread_mutex_unlock(&fep->av->lock);
	}
	return rc;
}

/* What it needs is bound. Its events come in any case: nobody would repeat them. */
static int enable(struct pmf_fep *fep)
{
	bool connects = fep->ep->type == PMF_EP_MSG;
	struct pmf_eq *eq = pmf_fep_eq(fep);
	int rc = connects ? pmf_eq_reserve(eq, PMF_CM_EVENTS) : 0;

	if (rc)
		return rc;
	if (eq)
		pmf_cm_set_eq(fep->ep, eq, &fep->ep->fid.fid);
	rc = enable_with_keys(fep);
	if (rc && connects)
		pmf_eq_unreserve(eq, PMF_CM_EVENTS);
	return rc;
}

int pmf_fep_enable(struct pmf_fep *fep)
{
	int rc;

	pthread_mutex_lock(&fep->domain->lock);
	rc = pmf_ep_enabled(fep->ep) ? -FI_EOPBADSTATE : pmf_ep_bound(fep);
	if (!rc)
		rc = enable(fep);
	pthread_mutex_unlock(&fep->domain->lock);
	return rc;
}

static int ep_getopsflag(const struct pmf_handle *h, uint64_t *flags)
{
	uint64_t dir = *flags & (FI_TRANSMIT | FI_RECV);

	if (dir != FI_TRANSMIT && dir != FI_RECV)
		return -FI_EINVAL;
	*flags = dir == FI_TRANSMIT ? h->tx_op_flags : h->rx_op_flags;
	return 0;
}

static int ep_setopsflag(struct pmf_handle *h, uint64_t flags)
{
	uint64_t dir = flags & (FI_TRANSMIT | FI_RECV);

	if (dir != FI_TRANSMIT && dir != FI_RECV)
		return -FI_EINVAL;
	flags &= ~dir;
	if (flags & ~(dir == FI_TRANSMIT ? PMF_TX_OP_FLAGS : PMF_RX_OP_FLAGS))
		return -FI_EBADFLAGS;
	if ((flags & FI_MULTICAST) && h->ep->type == PMF_EP_MSG)
		return -FI_EBADFLAGS;
	if (dir == FI_TRANSMIT)
		h->tx_op_flags = flags;
	else
		h->rx_op_flags = flags;
	return 0;
}

/* Another handle of the endpoint, with its own default flags for one direction. */
static int ep_alias(const struct pmf_handle *h, const struct fi_alias *arg)
{
	struct pmf_fep *fep = h->ep->owner;
	struct pmf_alias *alias = malloc(sizeof(*alias));
	int rc;

	if (!alias)
		return -FI_ENOMEM;
	alias->handle = *h;
	rc = ep_setopsflag(&alias->handle, arg->flags);
	if (rc) {
		free(alias);
		return rc;
	}
	pthread_mutex_lock(&fep->domain->lock);
	TAILQ_INSERT_TAIL(&fep->aliases, alias, link);
	pthread_mutex_unlock(&fep->domain->lock);
	*arg->fid = &alias->handle.fid.fid;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct pmf_handle *h = pmf_handle_of((struct fid_ep *)fid);

	switch (command) {
	case FI_ENABLE:
		return pmf_fep_enable(h->ep->owner);
	case FI_GETOPSFLAG:
		return arg ? ep_getopsflag(h, arg) : -FI_EINVAL;
	case FI_SETOPSFLAG:
		return arg ? ep_setopsflag(h, *(uint64_t *)arg) : -FI_EINVAL;
	case FI_ALIAS:
		return arg ? ep_alias(h, arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = pmf_ep_bind,
	.control = ep_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct pmf_handle *h = pmf_handle_of((struct fid_ep *)fid);
	ssize_t rc = -FI_ENOENT;

	if (!pmf_ep_enabled(h->ep))
		return -FI_EOPBADSTATE;
	if (h->rctx == h->ep->rctx)
		rc = pmf_rctx_cancel(h->rctx, context);
	/* It may be a send's, which ends by itself: nothing to cancel is no error. */
	return rc == -FI_ENOENT ? 0 : rc;
}

static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct pmf_handle *h = pmf_handle_of(fid);

	return pmf_ep_enabled(h->ep) ? (ssize_t)pmf_rctx_left(h->rctx) : -FI_EOPBADSTATE;
}

static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct pmf_ep *ep = pmf_ep_of(fid);

	return pmf_ep_enabled(ep) ? (ssize_t)pmf_ep_tx_left(ep) : -FI_EOPBADSTATE;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = pmf_ep_getopt,
	.setopt = pmf_ep_setopt,
	.tx_ctx = pmf_nosys_tx_ctx,
	.rx_ctx = pmf_nosys_rx_ctx,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

static bool port_owns(const struct pmf_port_conf *port, const struct pmf_addr *a)
{
	const struct pmf_ifaddr *ifa = pmf_addr_is_v4(a) ? &port->v4 : &port->v6;

	return ifa->set && memcmp(ifa->addr.ip, a->ip, sizeof(a->ip)) == 0;
}

int pmf_ep_choose_addr(const struct pmf_port_conf *port, const struct fi_info *info,
		       uint32_t format, struct pmf_addr *out)
{
	bool v4 = format == FI_SOCKADDR_IN || (format == FI_ADDR_STR && port->v4.set);
	struct pmf_addr a = v4 ? port->v4.addr : port->v6.addr;

	if (info->src_addr && info->src_addrlen) {
		if (pmf_addr_get(info->src_addr, info->src_addrlen, format, &a))
			return -FI_EINVAL;
		if (pmf_addr_is_any(&a))
			memcpy(a.ip, (v4 ? port->v4 : port->v6).addr.ip, sizeof(a.ip));
		if (!port_owns(port, &a))
			return -FI_EADDRNOTAVAIL;
	}
	*out = a;
	return 0;
}

static uint64_t directions(const struct fi_info *info)
{
	uint64_t dir = info->caps & (FI_SEND | FI_RECV);

	return dir ? dir : FI_SEND | FI_RECV;
}

static void attr_from(const struct fi_info *info, struct pmf_domain *d, struct pmf_ep_attr *attr)
{
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;
	const struct pmf_conf *conf = d->conf;
	size_t max = info->ep_attr->max_msg_size;

	attr->type = info->ep_attr->type == FI_EP_MSG ? PMF_EP_MSG : PMF_EP_RDM;
	attr->progress = &d->progress;
	attr->caps = (info->caps & ~(FI_SEND | FI_RECV)) | directions(info);
	attr->tx_op_flags = tx ? tx->op_flags : 0;
	attr->rx_op_flags = rx ? rx->op_flags : 0;
	attr->tx_size = tx && tx->size ? (uint32_t)tx->size : conf->tx_size;
	attr->rx_size = rx && rx->size ? (uint32_t)rx->size : conf->rx_size;
	attr->inject_size = tx ? (uint32_t)tx->inject_size : conf->inject_size;
	attr->iov_limit = conf->iov_limit;
	attr->max_msg_size = max ? max : PMF_MAX_MSG_SIZE;
	attr->thread_safe = d->thread_safe;
	attr->shared_rx = info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	attr->prefix = info->mode & FI_MSG_PREFIX ? PMF_MSG_PREFIX_SIZE : 0;
	attr->dscp = d->dscp;
	if (tx)
		pmf_info_dscp(tx->tclass, &attr->dscp);
}

static void set_fids(struct pmf_ep *ep, void *context)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = ep->type == PMF_EP_MSG ? &pmf_ep_ops_cm_msg : &pmf_ep_ops_cm;
	ep->fid.msg = &pmf_ops_msg;
	ep->fid.rma = &pmf_nosys_rma;
	ep->fid.tagged = &pmf_nosys_tagged;
	ep->fid.atomic = &pmf_nosys_atomic;
	ep->fid.collective = &pmf_nosys_collective;
}

static struct pmf_fep *fep_make(struct pmf_domain *d, const struct pmf_ep_attr *attr, int *rc)
{
	struct pmf_fep *fep = calloc(1, sizeof(*fep));

	if (!fep) {
		*rc = -FI_ENOMEM;
		return NULL;
	}
	*rc = pmf_ep_open(attr, &fep->ep);
	if (*rc) {
		free(fep);
		return NULL;
	}
	fep->domain = d;
	TAILQ_INIT(&fep->aliases);
	TAILQ_INIT(&fep->mcs);
	fep->caps = attr->caps;
	fep->addr_format = d->addr_format;
	fep->max_msg_size = attr->max_msg_size;
	fep->inject_size = attr->inject_size;
	fep->ep->owner = fep;
	return fep;
}

int pmf_endpoint_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		      void *context)
{
	struct pmf_domain *d = pmf_domain_of(domain);
	const char *why = pmf_info_check_ep(info);
	struct pmf_connreq *req = NULL;
	struct pmf_ep_attr attr = {0};
	struct pmf_key_list keys = {0};
	struct pmf_fep *fep;
	int rc;

	if (!why)
		why = pmf_auth_check_ep(info->ep_attr, d->auth_key_size);
	if (why) {
		pmf_warn(EP_CTRL, "fi_endpoint: %s\n", why);
		return -FI_EINVAL;
	}
	rc = pmf_ep_choose_addr(&d->conf->port[d->port], info, d->addr_format, &attr.addr);
	if (rc)
		return rc;
	attr_from(info, d, &attr);
	pmf_auth_choose(info->ep_attr, d->auth_key, d->auth_key_size, d->conf, &keys, &attr);
	rc = pmf_fep_handle(info, &attr, &req);
	if (rc)
		return rc;
	attr.accepts = req != NULL;
	fep = fep_make(d, &attr, &rc);
	pmf_wipe(&keys, sizeof(keys));
	if (!fep) {
		if (req)
			pmf_cm_reject(req, NULL, 0);
		return rc;
	}
	if (req)
		rc = pmf_cm_adopt(fep->ep, req);
	if (rc) {
		pmf_ep_close(fep->ep);
		free(fep);
		return rc;
	}
	set_fids(fep->ep, context);
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_TAIL(&d->eps, fep, link);
	pthread_mutex_unlock(&d->lock);
	pmf_ref(&d->refs);
	*ep = &fep->ep->fid;
	return 0;
}
