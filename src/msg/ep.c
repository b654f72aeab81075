/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The endpoint: made, bound, enabled. Control path. Closing stands in ep_close.c.
 */
#include "msg/ep.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "msg/auth.h"
#include "msg/cm.h"
#include "msg/engine.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/steer.h"

#define PORT_FIRST 49152 /* RFC 6335 §6: dynamic ports */

const struct pmf_stat_desc pmf_ep_stat_desc[] = {PMF_EP_STATS(PMF_STAT_DESC)};
const unsigned int pmf_ep_stat_count = PMF_ARRAY_SIZE(pmf_ep_stat_desc);

/* Our own memory, so that it need not come from a memzone. */
struct rte_ring *pmf_ring_open(uint32_t entries, unsigned int flags)
{
	uint32_t room = pmf_roundup_pow2(entries + 1);
	ssize_t size = rte_ring_get_memsize(room);
	struct rte_ring *r;

	if (size < 0)
		return NULL;
	r = aligned_alloc(PMF_CACHE_LINE, ((size_t)size + 63) & ~(size_t)63);
	if (r && rte_ring_init(r, "pmf", room, flags)) {
		free(r);
		return NULL;
	}
	return r;
}

/*
 * One direction's transfers and the ring by which they are posted. The engine's side is single.
 * Posting threads may be several: then they take turns by relaxed tail sync, which bears a
 * preempted thread.
 */
int pmf_posts_open(struct pmf_freelist *f, struct rte_ring **ring, size_t bytes, uint32_t size,
		   bool many)
{
	*ring = pmf_ring_open(size, RING_F_SC_DEQ | (many ? RING_F_MP_RTS_ENQ : RING_F_SP_ENQ));
	return *ring ? pmf_freelist_open(f, bytes, size, many) : -ENOMEM;
}

static int tx_open(struct pmf_ep *ep, uint32_t size, bool many)
{
	int err = pmf_posts_open(&ep->tx_free, &ep->tx_ring,
				 sizeof(struct pmf_tx) + ep->inject_size, size, many);

	for (uint32_t i = 0; !err && i < size; i++)
		pmf_ep_tx(ep, i)->ep = ep;
	return err;
}

/* Its own receive context; or none yet: then its own calls find one that is never open. */
static int rx_open(struct pmf_ep *ep, const struct pmf_ep_attr *attr)
{
	struct pmf_rctx_attr rx = {
		.engine = ep->engine,
		.size = attr->rx_size,
		.iov_limit = ep->iov_limit,
		.prefix = attr->prefix,
		.directed = attr->caps & FI_DIRECTED_RECV,
		.keyed = attr->keys_of_av,
		.thread_safe = attr->thread_safe,
		.kick = ep->kick,
	};
	int err;

	ep->handle.rctx = &pmf_rctx_none;
	if (attr->shared_rx)
		return 0;
	err = pmf_rctx_open(&rx, &ep->rctx);
	if (!err)
		ep->handle.rctx = ep->rctx;
	return err;
}

static int keys_open(struct pmf_ep *ep, const struct pmf_ep_attr *attr)
{
	int err;

	if (!attr->keys && !attr->keys_of_file)
		return 0;
	err = pmf_auth_open(ep->engine, attr->keys, 0, &ep->auths[0]);
	ep->nauths = !err;
	return err;
}

int pmf_ep_add_key(struct pmf_ep *ep, const struct pmf_key_bytes *key, uint16_t number)
{
	struct pmf_key_list one = {.n = 1, .key = {*key}};
	struct pmf_auth *auth;
	int err;

	if (ep->nauths == PMF_EP_KEYS)
		return -ENOSPC;
	err = pmf_auth_open(ep->engine, &one, number, &auth);
	pmf_wipe(&one, sizeof(one));
	if (err)
		return err;
	/* it may have its port, and packets come in for it */
	pmf_engine_lock(ep->engine);
	ep->auths[ep->nauths++] = auth;
	pmf_engine_unlock(ep->engine);
	return 0;
}

void pmf_ep_drop_keys(struct pmf_ep *ep)
{
	pmf_engine_lock(ep->engine);
	while (ep->nauths)
		pmf_auth_put(ep->engine, ep->auths[--ep->nauths]);
	pmf_engine_unlock(ep->engine);
}

/*
 * The engine it is to live on. What several endpoints share is engine 0's: groups, receive
 * contexts, listeners with the connections that they accept. A UDP port that is in use stays where
 * it is. The others of a domain that one thread works with are together, those of several threads
 * spread.
 */
static struct pmf_engine *place(const struct pmf_ep_attr *attr)
{
	struct pmf_progress *p = attr->progress;
	struct pmf_engine *best = p->engine[p->home];
	int owner;

	if (p->nengines == 1 || attr->shared_rx || attr->accepts || (attr->caps & FI_MULTICAST) ||
	    attr->type == PMF_EP_PASSIVE)
		return p->engine[0];
	owner = attr->addr.port ? pmf_steer_of(best->port, attr->addr.port) : -1;
	if (owner >= 0)
		return p->engine[owner];
	for (uint32_t q = 0; attr->thread_safe && q < p->nengines; q++)
		if (atomic_load_explicit(&p->engine[q]->neps, memory_order_relaxed) <
		    atomic_load_explicit(&best->neps, memory_order_relaxed))
			best = p->engine[q];
	return best;
}

int pmf_ep_open(const struct pmf_ep_attr *attr, struct pmf_ep **out)
{
	struct pmf_ep *ep = aligned_alloc(PMF_CACHE_LINE, sizeof(*ep));
	int err = -ENOMEM;

	if (!ep)
		return -ENOMEM;
	memset(ep, 0, sizeof(*ep));
	ep->type = attr->type;
	ep->backlog = PMF_BACKLOG;
	ep->progress = attr->progress;
	ep->engine = place(attr);
	atomic_fetch_add_explicit(&ep->engine->neps, 1, memory_order_relaxed);
	atomic_fetch_or_explicit(&attr->progress->used, 1u << ep->engine->q->queue_id,
				 memory_order_relaxed);
	ep->can_send = attr->caps & FI_SEND;
	ep->can_recv = attr->caps & FI_RECV;
	ep->kick = attr->progress->manual;
	ep->inject_size = attr->inject_size;
	ep->iov_limit = PMF_MIN(attr->iov_limit, (uint32_t)PMF_IOV_LIMIT);
	ep->max_msg_size = attr->max_msg_size;
	ep->mc_max = ep->engine->port->max_payload - PMF_WIRE_MULTICAST_OVERHEAD;
	ep->handle.ep = ep;
	ep->handle.tx_op_flags = attr->tx_op_flags;
	ep->handle.rx_op_flags = attr->rx_op_flags;
	ep->no_src = attr->caps & FI_SOURCE ? 0 : FI_ADDR_NOTAVAIL;
	ep->prefix = attr->prefix;
	ep->dscp = attr->dscp;
	ep->source_err = attr->caps & FI_SOURCE_ERR;
	ep->addr = attr->addr;
	pmf_random(&ep->inc, sizeof(ep->inc));
	TAILQ_INIT(&ep->eflows);
	if (!tx_open(ep, attr->tx_size, attr->thread_safe) && !rx_open(ep, attr))
		err = keys_open(ep, attr); /* last: what it makes is freed under the owner word */
	if (err) {
		pmf_ep_free(ep);
		return err;
	}
	*out = ep;
	return 0;
}

int pmf_ep_bind_cq(struct pmf_ep *ep, struct pmf_cq *cq, uint64_t flags)
{
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = pmf_cq_feed_get(cq, ep->engine);
		if (!ep->tx_cq)
			return -ENOMEM;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	if (flags & FI_RECV) {
		ep->rx_cq = pmf_cq_feed_get(cq, ep->engine);
		if (!ep->rx_cq)
			return -ENOMEM;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
	}
	return 0;
}

int pmf_ep_bind_cntr(struct pmf_ep *ep, struct pmf_cntr *cntr, uint64_t flags)
{
	if (flags & FI_SEND) {
		ep->tx_cntr = pmf_cntr_feed_get(cntr, ep->engine);
		if (!ep->tx_cntr)
			return -ENOMEM;
	}
	if (flags & FI_RECV) {
		ep->rx_cntr = pmf_cntr_feed_get(cntr, ep->engine);
		if (!ep->rx_cntr)
			return -ENOMEM;
	}
	return 0;
}

void pmf_ep_bind_peers(struct pmf_ep *ep, struct pmf_peers *peers)
{
	ep->peers = peers;
	if (ep->rctx)
		ep->rctx->peers = peers;
	TAILQ_INSERT_TAIL(&peers->eps, ep, peers_link);
}

int pmf_ep_bind_rctx(struct pmf_ep *ep, struct pmf_rctx *rctx)
{
	struct pmf_engine *e = ep->engine;

	if (rctx->engine != e || ep->rctx)
		return -FI_EINVAL;
	pmf_engine_lock(e);
	rctx->refs++;
	ep->rctx = rctx;
	pmf_engine_unlock(e);
	return 0;
}

/* @return one that is taken for this engine, or 0 */
static uint16_t choose_port(struct pmf_engine *e)
{
	for (uint32_t i = 0; i < 65536 - PORT_FIRST; i++) {
		uint16_t port = (uint16_t)(PORT_FIRST + e->port_hint++ % (65536 - PORT_FIRST));

		if (!e->ep_of_port[port] && pmf_steer_take(e->q, port))
			return port;
	}
	return 0;
}

/* Its port, or one that is free, is its own from now on. */
static int hold_port(struct pmf_engine *e, struct pmf_ep *ep)
{
	if (ep->port_held)
		return 0;
	if (!ep->addr.port)
		ep->addr.port = choose_port(e);
	else if (e->ep_of_port[ep->addr.port] || !pmf_steer_take(e->q, ep->addr.port))
		return -EADDRINUSE;
	if (!ep->addr.port)
		return -EADDRINUSE;
	e->ep_of_port[ep->addr.port] = ep;
	ep->port_held = true;
	return 0;
}

void pmf_ep_drop_port(struct pmf_ep *ep)
{
	if (!ep->port_held)
		return;
	ep->engine->ep_of_port[ep->addr.port] = NULL;
	pmf_steer_drop(ep->engine->q, ep->addr.port);
	ep->port_held = false;
}

int pmf_ep_hold_addr(struct pmf_ep *ep)
{
	int err;

	pmf_engine_lock(ep->engine);
	err = hold_port(ep->engine, ep);
	pmf_engine_unlock(ep->engine);
	return err;
}

void pmf_ep_release_addr(struct pmf_ep *ep)
{
	pmf_engine_lock(ep->engine);
	pmf_ep_drop_port(ep);
	pmf_engine_unlock(ep->engine);
}

/* Messages of the endpoint may meet receives of its context from now on. */
static void join_rctx(struct pmf_ep *ep)
{
	struct pmf_rctx *rc = ep->rctx;

	TAILQ_INSERT_TAIL(&rc->eps, ep, rctx_link);
	ep->joined = true;
	if (!rc->peers)
		rc->peers = ep->peers;
	if (rc == ep->handle.rctx)
		atomic_store_explicit(&rc->open, ep->can_recv, memory_order_release);
}

int pmf_ep_enable(struct pmf_ep *ep)
{
	struct pmf_engine *e = ep->engine;
	int err = 0;

	pmf_engine_lock(e);
	if (!ep->shares_port)
		err = hold_port(e, ep);
	if (!err) {
		if (ep->type == PMF_EP_RDM)
			pmf_ep_succeed(e, ep->addr.port);
		TAILQ_INSERT_TAIL(&e->eps, ep, link);
		join_rctx(ep);
		atomic_store_explicit(&ep->state,
				      ep->type == PMF_EP_MSG ? PMF_EP_UNCONNECTED : PMF_EP_ENABLED,
				      memory_order_release);
	}
	pmf_engine_unlock(e);
	return err;
}

bool pmf_ep_enabled(const struct pmf_ep *ep)
{
	int state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return state != PMF_EP_NEW && state != PMF_EP_ORPHAN;
}

const struct pmf_addr *pmf_ep_addr(const struct pmf_ep *ep)
{
	return &ep->addr;
}

int pmf_ep_set_addr(struct pmf_ep *ep, const struct pmf_addr *addr)
{
	struct pmf_engine *e = ep->engine;
	struct pmf_addr old = ep->addr;
	int err = 0;

	if (!pmf_port_owns(e->port, addr->ip))
		return -EADDRNOTAVAIL;
	pmf_engine_lock(e);
	if (addr->port && addr->port != old.port && e->ep_of_port[addr->port]) {
		err = -EADDRINUSE;
	} else if (ep->port_held && addr->port == old.port) {
		ep->addr = *addr;
	} else {
		pmf_ep_drop_port(ep);
		ep->addr = *addr;
		err = hold_port(e, ep);
		if (err)
			ep->addr = old;
	}
	pmf_engine_unlock(e);
	return err;
}

size_t pmf_ep_tx_left(const struct pmf_ep *ep)
{
	return pmf_freelist_count(&ep->tx_free);
}

void pmf_ep_set_limits(struct pmf_ep *ep, uint64_t max_msg_size, uint32_t inject_size)
{
	ep->max_msg_size = max_msg_size;
	ep->inject_size = inject_size;
}
