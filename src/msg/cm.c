/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections, the application's side: each call does its work under the owner word. What packets,
 * the clock and dying peers do to a connection stands in engine_cm.c.
 */
#include "msg/cm.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "msg/cm_state.h"
#include "pmd_glue/eal.h"

/* ---- requests ---- */

/* All requests of the process, so that a stale handle is found out. The lock comes after an owner
 * word. */
static struct {
	pthread_mutex_t lock;
	TAILQ_HEAD(, pmf_connreq) all;
} reqs = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = TAILQ_HEAD_INITIALIZER(reqs.all)};

struct pmf_connreq *pmf_connreq_new(struct pmf_ep *listener, struct pmf_cm *cm)
{
	struct pmf_connreq *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->engine = listener->engine;
	req->listener = listener;
	req->cm = cm;
	pthread_mutex_lock(&reqs.lock);
	TAILQ_INSERT_TAIL(&reqs.all, req, link);
	pthread_mutex_unlock(&reqs.lock);
	return req;
}

void pmf_connreq_free(struct pmf_connreq *req)
{
	pthread_mutex_lock(&reqs.lock);
	TAILQ_REMOVE(&reqs.all, req, link);
	pthread_mutex_unlock(&reqs.lock);
	if (req->cm)
		req->cm->req = NULL;
	free(req);
}

void pmf_connreq_forget(struct pmf_ep *listener)
{
	struct pmf_connreq *req, *next;

	pthread_mutex_lock(&reqs.lock);
	PMF_TAILQ_FOREACH_SAFE(req, &reqs.all, link, next)
	{
		if (req->listener != listener)
			continue;
		req->listener = NULL;
		if (req->taken) /* by a call that waits for the owner word */
			continue;
		TAILQ_REMOVE(&reqs.all, req, link);
		if (req->cm)
			req->cm->req = NULL;
		free(req);
	}
	pthread_mutex_unlock(&reqs.lock);
}

struct pmf_connreq *pmf_connreq_take(fid_t handle)
{
	struct pmf_connreq *req;

	pthread_mutex_lock(&reqs.lock);
	TAILQ_FOREACH (req, &reqs.all, link)
		if (&req->fid == handle)
			break;
	if (req && req->taken)
		req = NULL;
	if (req)
		req->taken = true;
	pthread_mutex_unlock(&reqs.lock);
	return req;
}

/* It does not wait at its listener any more. Under the owner word. */
static void leave_backlog(struct pmf_connreq *req)
{
	if (req->listener)
		req->listener->nrequests--;
	req->listener = NULL;
}

void pmf_cm_reject(struct pmf_connreq *req, const void *data, size_t len)
{
	struct pmf_engine *e = req->engine;
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_cm *cm;

	pmf_engine_lock(e);
	leave_backlog(req);
	cm = req->cm;
	pmf_connreq_free(req);
	if (cm) {
		pmf_cm_refuse(e, cm, PMF_REASON_NONE, data, len, now);
		pmf_engine_transmit(e, now);
		pmf_queue_flush(e->q);
	}
	pmf_engine_unlock(e);
}

/* The flow goes over from the listener to the endpoint. */
static void move(struct pmf_eflow *ef, struct pmf_ep *to)
{
	TAILQ_REMOVE(&ef->ep->eflows, ef, ep_link);
	ef->ep->nflows--;
	ef->ep = to;
	TAILQ_INSERT_TAIL(&to->eflows, ef, ep_link);
	to->nflows++;
	to->conn = ef;
	pmf_path_set_dscp(&ef->path, to->dscp);
}

int pmf_cm_adopt(struct pmf_ep *ep, struct pmf_connreq *req)
{
	struct pmf_engine *e = ep->engine;

	if (req->engine != e) {
		pmf_cm_reject(req, NULL, 0);
		return -EINVAL;
	}
	pmf_engine_lock(e);
	leave_backlog(req);
	ep->request = req;
	ep->shares_port = true;
	if (req->cm) {
		ep->addr = req->cm->ef->flow.id.local;
		move(req->cm->ef, ep);
	}
	pmf_engine_unlock(e);
	return 0;
}

/* ---- calls ---- */

void pmf_cm_set_eq(struct pmf_ep *ep, struct pmf_eq *eq, struct fid *fid)
{
	ep->eq = eq;
	ep->event_fid = fid;
}

int pmf_cm_listen(struct pmf_ep *ep, const struct fi_info *info)
{
	int err;

	if (pmf_ep_enabled(ep))
		return -FI_EOPBADSTATE;
	ep->info = info;
	err = pmf_ep_enable(ep);
	return err;
}

void pmf_cm_backlog(struct pmf_ep *ep, uint32_t backlog)
{
	pmf_engine_lock(ep->engine);
	ep->backlog = backlog;
	pmf_engine_unlock(ep->engine);
}

int pmf_cm_connect(struct pmf_ep *ep, const struct pmf_addr *peer, const void *data, size_t len)
{
	struct pmf_engine *e = ep->engine;
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_eflow *ef;
	int err = 0;

	pmf_engine_lock(e);
	if (ep->state != PMF_EP_UNCONNECTED || ep->conn || ep->request) {
		err = -FI_EOPBADSTATE;
		goto out;
	}
	ef = pmf_eflow_open(e, ep, peer, ep->nauths ? ep->auths[0] : NULL, now, &err);
	if (!ef) {
		err = -err;
		goto out;
	}
	err = 0;
	ep->conn = ef;
	pmf_cm_step(e, ef->cm, PMF_CM_CONNECTING, now + 2 * e->conf->dead_after);
	pmf_cm_send(ef->cm, PMF_ITEM_CONNREQ, PMF_REASON_NONE, data, len);
	pmf_flow_watch(&ef->flow, now);
	pmf_eflow_settle(e, ef, now);
	pmf_engine_transmit(e, now);
	pmf_queue_flush(e->q);
out:
	pmf_engine_unlock(e);
	return err;
}

int pmf_cm_accept(struct pmf_ep *ep, const void *data, size_t len)
{
	struct pmf_engine *e = ep->engine;
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_eflow *ef;
	int err = 0;

	pmf_engine_lock(e);
	ef = ep->conn;
	if (ep->state != PMF_EP_UNCONNECTED) {
		err = -FI_EOPBADSTATE;
	} else if (!ep->request) {
		err = -EINVAL;
	} else if (!ef) {
		pmf_cm_ended(ep);
		pmf_rctx_flush(e, ep);
		err = -ECONNABORTED;
	} else {
		pmf_connreq_free(ep->request);
		ep->request = NULL;
		pmf_cm_step(e, ef->cm, PMF_CM_CONNECTED, 0);
		pmf_cm_send(ef->cm, PMF_ITEM_ACCEPT, PMF_REASON_NONE, data, len);
		/* release: who sees it sees the flow */
		atomic_store_explicit(&ep->state, PMF_EP_ENABLED, memory_order_release);
		pmf_cm_event(e, ep, FI_CONNECTED, NULL, 0);
		pmf_eflow_settle(e, ef, now);
		pmf_engine_transmit(e, now);
		pmf_queue_flush(e->q);
	}
	pmf_complete_wake(e);
	pmf_engine_unlock(e);
	return err;
}

/* The entries of its sends are written now; the transfers stay with the flow until it lets them go.
 */
static void cancel_sends(struct pmf_engine *e, struct pmf_ep *ep)
{
	for (uint32_t i = 0; i < ep->tx_free.size; i++) {
		struct pmf_tx *tx = pmf_ep_tx(ep, i);
		bool injected = (tx->flags & PMF_XF_INLINE) && !(tx->flags & PMF_XF_COMPLETION);

		if (!(tx->flags & PMF_XF_POSTED) || injected)
			continue;
		pmf_complete_early(e, tx, FI_ECANCELED);
		pmf_flow_abort(&tx->flow->flow, &tx->item);
	}
}

int pmf_cm_shutdown(struct pmf_ep *ep)
{
	struct pmf_engine *e = ep->engine;
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_eflow *ef;
	int err = 0;

	pmf_engine_lock(e);
	ef = ep->conn;
	if (ep->state != PMF_EP_ENABLED) {
		err = ep->state == PMF_EP_ENDED || ep->state == PMF_EP_DRAINING ? 0 : -ENOTCONN;
		goto out;
	}
	pmf_engine_receives(e, ep->rctx, now);
	pmf_engine_submit(e, ep, now);
	pmf_cm_ended(ep);
	cancel_sends(e, ep);
	pmf_fence_end(e, ef, FI_ECANCELED);
	pmf_match_flow_end(e, ef, FI_ECANCELED);
	pmf_rctx_flush(e, ep);
	pmf_rctx_forget(e, ep);
	pmf_cm_event(e, ep, FI_SHUTDOWN, NULL, 0);
	pmf_cm_close(e, ef->cm, now);
	pmf_engine_transmit(e, now);
	pmf_queue_flush(e->q);
	pmf_complete_wake(e);
out:
	pmf_engine_unlock(e);
	return err;
}

int pmf_cm_peer(struct pmf_ep *ep, struct pmf_addr *out)
{
	int err = -ENOTCONN;

	pmf_engine_lock(ep->engine);
	if (ep->state == PMF_EP_ENABLED && ep->conn) {
		*out = ep->conn->peer.addr;
		err = 0;
	}
	pmf_engine_unlock(ep->engine);
	return err;
}
