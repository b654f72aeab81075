/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Binding: each use at most once, objects of this domain only, before fi_enable.
 */
#include "fabric/ep.h"

#include "msg/cm.h"

#define CQ_FLAGS (FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)
#define CNTR_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static int bind_av(struct pmf_fep *fep, struct pmf_av *av, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (fep->ep->type == PMF_EP_MSG)
		return -FI_EINVAL;
	if (av->domain != fep->domain)
		return -FI_EDOMAIN;
	if (fep->av)
		return -FI_EINVAL;
	fep->av = av;
	pmf_ref(&av->refs);
	pthread_mutex_lock(&av->lock);
	pmf_ep_bind_peers(fep->ep, av->peers);
	pthread_mutex_unlock(&av->lock);
	return 0;
}

static int bind_cq(struct pmf_fep *fep, struct pmf_cq *cq, uint64_t flags)
{
	int rc;

	if (flags & ~CQ_FLAGS)
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if (cq->domain != fep->domain)
		return -FI_EDOMAIN;
	if (((flags & FI_TRANSMIT) && fep->tx_cq) || ((flags & FI_RECV) && fep->rx_cq))
		return -FI_EINVAL;
	rc = pmf_ep_bind_cq(fep->ep, cq, flags);
	if (rc)
		return rc;
	if (flags & FI_TRANSMIT) {
		fep->tx_cq = cq;
		pmf_ref(&cq->refs);
	}
	if (flags & FI_RECV) {
		fep->rx_cq = cq;
		pmf_ref(&cq->refs);
	}
	return 0;
}

static int bind_cntr(struct pmf_fep *fep, struct pmf_cntr *cntr, uint64_t flags)
{
	int rc;

	if (flags & ~CNTR_FLAGS)
		return -FI_EBADFLAGS;
	if (cntr->domain != fep->domain)
		return -FI_EDOMAIN;
	if (((flags & FI_SEND) && fep->tx_cntr) || ((flags & FI_RECV) && fep->rx_cntr))
		return -FI_EINVAL;
	rc = pmf_ep_bind_cntr(fep->ep, cntr, flags & (FI_SEND | FI_RECV));
	if (rc)
		return rc;
	if (flags & FI_SEND) {
		fep->tx_cntr = cntr;
		pmf_ref(&cntr->refs);
	}
	if (flags & FI_RECV) {
		fep->rx_cntr = cntr;
		pmf_ref(&cntr->refs);
	}
	return 0;
}

static int bind_eq(struct pmf_fep *fep, struct pmf_eq *eq, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (eq->fabric != fep->domain->fabric)
		return -FI_EDOMAIN;
	if (fep->eq)
		return -FI_EINVAL;
	if (pmf_eq_drive(eq, &fep->domain->progress))
		return -FI_ENOMEM;
	fep->eq = eq;
	pmf_ref(&eq->refs);
	return 0;
}

static int bind_srx(struct pmf_fep *fep, struct pmf_srx *srx, uint64_t flags)
{
	int rc;

	if (flags)
		return -FI_EBADFLAGS;
	if (srx->domain != fep->domain)
		return -FI_EDOMAIN;
	if (fep->srx || srx->handle.rctx->prefix != fep->ep->prefix)
		return -FI_EINVAL;
	rc = pmf_ep_bind_rctx(fep->ep, srx->handle.rctx);
	if (rc)
		return rc;
	fep->srx = srx;
	pmf_ref(&srx->refs);
	return 0;
}

static int bind_any(struct pmf_fep *fep, struct fid *bfid, uint64_t flags)
{
	if (pmf_ep_enabled(fep->ep))
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		return bind_av(fep, (struct pmf_av *)bfid, flags);
	case FI_CLASS_CQ:
		return bind_cq(fep, (struct pmf_cq *)bfid, flags);
	case FI_CLASS_CNTR:
		return bind_cntr(fep, (struct pmf_cntr *)bfid, flags);
	case FI_CLASS_EQ:
		return bind_eq(fep, (struct pmf_eq *)bfid, flags);
	case FI_CLASS_SRX_CTX:
		return bind_srx(fep, (struct pmf_srx *)bfid, flags);
	case FI_CLASS_STX_CTX:
		return -FI_ENOSYS;
	default:
		return -FI_EINVAL;
	}
}

int pmf_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct pmf_fep *fep = pmf_fep_of(fid);
	int rc;

	pthread_mutex_lock(&fep->domain->lock);
	rc = bind_any(fep, bfid, flags);
	pthread_mutex_unlock(&fep->domain->lock);
	return rc;
}

/* Endpoints on one shared context name the same sources by the same fi_addr_t. */
static int srx_av(struct pmf_fep *fep)
{
	struct pmf_srx *srx = fep->srx;

	if (srx->av && fep->av && srx->av != fep->av)
		return -FI_EINVAL;
	if (fep->av)
		srx->av = fep->av;
	return 0;
}

int pmf_ep_bound(struct pmf_fep *fep)
{
	if (!fep->ep->rctx) /* receives were to come from a shared context */
		return -FI_EOPBADSTATE;
	if (fep->ep->type == PMF_EP_RDM && !fep->av)
		return -FI_ENOAV;
	if (fep->ep->type == PMF_EP_MSG && !pmf_fep_eq(fep))
		return -FI_ENOEQ;
	if ((fep->caps & FI_SEND) && !fep->tx_cq)
		return -FI_ENOCQ;
	if ((fep->caps & FI_RECV) && !fep->rx_cq)
		return -FI_ENOCQ;
	return fep->srx ? srx_av(fep) : 0;
}

void pmf_ep_unbind(struct pmf_fep *fep)
{
	if (fep->av)
		pmf_unref(&fep->av->refs);
	if (fep->tx_cq)
		pmf_unref(&fep->tx_cq->refs);
	if (fep->rx_cq)
		pmf_unref(&fep->rx_cq->refs);
	if (fep->tx_cntr)
		pmf_unref(&fep->tx_cntr->refs);
	if (fep->rx_cntr)
		pmf_unref(&fep->rx_cntr->refs);
	if (fep->eq) {
		pmf_eq_undrive(fep->eq, &fep->domain->progress);
		pmf_unref(&fep->eq->refs);
	}
	if (fep->srx)
		pmf_unref(&fep->srx->refs);
}
