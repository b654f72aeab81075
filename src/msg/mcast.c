/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Memberships and sending. A join is complete when the device lets the group in and the switches
 * have been told; a send, when the device has been given its frame.
 */
#include "msg/mcast_state.h"

#include <rdma/fi_errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmd_glue/eal.h"

/* fi_addr_t of a membership: far above an AV's, and never given twice. */
#define MC_ADDR (1ull << 62)
#define SLOT_BITS 10

static_assert(PMF_MC_SLOTS == 1u << SLOT_BITS, "the slot is in the address");

static _Atomic uint64_t serial;

/* ---- the engine's part ---- */

static struct pmf_mcasts *mcasts_open(const struct pmf_engine *e)
{
	struct pmf_mcasts *ms = calloc(1, sizeof(*ms));
	char name[32];
	struct rte_hash_parameters p = {
		.name = name,
		.entries = PMF_MC_SENDERS,
		.key_len = sizeof(struct pmf_mc_key),
		.hash_func = rte_jhash,
		.socket_id = e->port->socket_id,
		/* else it may be full before it has as many as it was made for */
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};

	if (!ms)
		return NULL;
	snprintf(name, sizeof(name), "pmf_mc_%u_%u", e->q->port_id, e->q->queue_id);
	ms->by_sender = rte_hash_create(&p);
	if (!ms->by_sender) {
		free(ms);
		return NULL;
	}
	TAILQ_INIT(&ms->joining);
	TAILQ_INIT(&ms->senders);
	for (unsigned int i = 0; i < PMF_MCAST_MAX; i++)
		TAILQ_INIT(&ms->members[i]);
	return ms;
}

void pmf_mcasts_close(struct pmf_engine *e)
{
	if (!e->mcasts)
		return;
	rte_hash_free(e->mcasts->by_sender);
	free(e->mcasts);
}

/* ---- joining ---- */

/* A number for it among the endpoint's, which sends find it by. @return 0, -ENOMEM, -ENOSPC */
static int take_slot(struct pmf_mc *mc)
{
	struct pmf_ep *ep = mc->ep;
	struct pmf_mc_slot *slots = ep->mc_slots;

	if (!slots) {
		slots = calloc(PMF_MC_SLOTS, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		for (unsigned int i = 0; i < PMF_MC_SLOTS; i++)
			slots[i].addr = FI_ADDR_NOTAVAIL;
		/* pairs with the acquire in pmf_mc_may_send() */
		atomic_store_explicit(&ep->mc_slots, slots, memory_order_release);
	}
	for (uint16_t i = 0; i < PMF_MC_SLOTS; i++) {
		if (slots[i].mc)
			continue;
		slots[i].mc = mc;
		mc->slot = i;
		mc->fi_addr = MC_ADDR | atomic_fetch_add(&serial, 1) << SLOT_BITS | i;
		return 0;
	}
	return -ENOSPC;
}

static int begin(struct pmf_engine *e, struct pmf_mc *mc, pmf_ns_t now)
{
	int err;

	if (!e->mcasts)
		e->mcasts = mcasts_open(e);
	if (!e->mcasts)
		return -ENOMEM;
	err = take_slot(mc);
	if (err)
		return err;
	if (mc->attr.recv) {
		mc->group = pmf_mcast_join(e->q, mc->attr.group.ip, now);
		if (mc->group < 0) {
			((struct pmf_mc_slot *)mc->ep->mc_slots)[mc->slot].mc = NULL;
			return mc->group;
		}
	}
	mc->deadline = now + e->conf->dead_after;
	TAILQ_INSERT_TAIL(&e->mcasts->joining, mc, link);
	pmf_queue_flush(e->q);
	return 0;
}

int pmf_mc_join(struct pmf_ep *ep, const struct pmf_mc_attr *attr, struct pmf_mc **out)
{
	struct pmf_engine *e = ep->engine;
	struct pmf_mc *mc = calloc(1, sizeof(*mc));
	int err;

	if (!mc)
		return -ENOMEM;
	mc->ep = ep;
	mc->attr = *attr;
	mc->group = -1;
	if (pmf_path_init_group(&mc->path, e->port, &attr->group, ep->addr.port,
				(uint8_t)e->port->conf.mcast_ttl)) {
		free(mc);
		return -EHOSTUNREACH;
	}
	pmf_path_set_dscp(&mc->path, ep->dscp);
	pmf_engine_lock(e);
	err = begin(e, mc, pmf_clock_ns());
	if (!err)
		*out = mc;
	pmf_engine_unlock(e);
	if (err)
		free(mc);
	return err;
}

/* Behind another membership of the same endpoint in the same group, so that it hears once. */
static void members_add(struct pmf_mcq *members, struct pmf_mc *mc)
{
	struct pmf_mc *other;

	TAILQ_FOREACH (other, members, link)
		if (other->ep == mc->ep && pmf_addr_eq(&other->attr.group, &mc->attr.group)) {
			TAILQ_INSERT_AFTER(members, other, mc, link);
			return;
		}
	TAILQ_INSERT_TAIL(members, mc, link);
}

static void joined(struct pmf_engine *e, struct pmf_mc *mc)
{
	struct fi_eq_entry entry = {.fid = &mc->attr.fid->fid,
				    .context = mc->attr.fid->fid.context};
	struct pmf_mc_slot *slots = mc->ep->mc_slots;

	mc->state = PMF_MC_JOINED;
	mc->attr.fid->fi_addr = mc->fi_addr;
	if (mc->attr.send)
		atomic_store_explicit(&slots[mc->slot].addr, mc->fi_addr, memory_order_release);
	if (mc->attr.recv)
		members_add(&e->mcasts->members[mc->group], mc);
	if (pmf_eq_post(mc->attr.eq, FI_JOIN_COMPLETE, &entry, sizeof(entry)))
		e->stats.cm_no_memory++;
}

static void failed(struct pmf_engine *e, struct pmf_mc *mc, pmf_ns_t now)
{
	struct fi_eq_err_entry entry = {
		.fid = &mc->attr.fid->fid,
		.context = mc->attr.fid->fid.context,
		.err = FI_ETIMEDOUT,
		.prov_errno = FI_ETIMEDOUT,
	};

	mc->state = PMF_MC_FAILED;
	if (mc->group >= 0)
		pmf_mcast_leave(e->q, (uint16_t)mc->group, now);
	if (pmf_eq_post_err(mc->attr.eq, &entry))
		e->stats.cm_no_memory++;
}

void pmf_mc_tick(struct pmf_engine *e, pmf_ns_t now)
{
	bool up = atomic_load_explicit(&e->port->link_up, memory_order_relaxed);
	bool ready = up && pmf_mcast_ready(e->port);
	struct pmf_mc *mc, *next;

	PMF_TAILQ_FOREACH_SAFE(mc, &e->mcasts->joining, link, next)
	{
		bool done = mc->attr.recv ? ready : up;

		if (!done && now < mc->deadline)
			continue;
		TAILQ_REMOVE(&e->mcasts->joining, mc, link);
		if (done)
			joined(e, mc);
		else
			failed(e, mc, now);
	}
}

/* ---- leaving ---- */

/* Sends that still wait for room. */
static void end_waiting(struct pmf_engine *e, const struct pmf_mc *mc)
{
	struct pmf_itemq all = e->mc_waiting;
	struct pmf_item *item, *next;

	if (STAILQ_EMPTY(&all))
		return;
	STAILQ_INIT(&e->mc_waiting);
	for (item = STAILQ_FIRST(&all); item; item = next) {
		struct pmf_tx *tx = pmf_container_of(item, struct pmf_tx, item);

		next = STAILQ_NEXT(item, link);
		if (tx->ep == mc->ep && tx->dest == mc->fi_addr)
			pmf_complete_tx(e, tx, FI_ECANCELED);
		else
			STAILQ_INSERT_TAIL(&e->mc_waiting, item, link);
	}
}

static void leave(struct pmf_engine *e, struct pmf_mc *mc, pmf_ns_t now)
{
	struct pmf_mc_slot *slots = mc->ep->mc_slots;

	pmf_engine_submit(e, mc->ep, now);
	end_waiting(e, mc);
	atomic_store_explicit(&slots[mc->slot].addr, FI_ADDR_NOTAVAIL, memory_order_release);
	slots[mc->slot].mc = NULL;
	if (mc->state == PMF_MC_JOINING)
		TAILQ_REMOVE(&e->mcasts->joining, mc, link);
	else if (mc->state == PMF_MC_JOINED && mc->attr.recv)
		TAILQ_REMOVE(&e->mcasts->members[mc->group], mc, link);
	if (mc->group >= 0 && mc->state != PMF_MC_FAILED)
		pmf_mcast_leave(e->q, (uint16_t)mc->group, now);
	pmf_queue_flush(e->q);
	/* what is left on the stage is not waited for: its endpoint may go next */
	pmf_mc_handed(e, UINT64_MAX);
	pmf_complete_wake(e);
}

void pmf_mc_leave(struct pmf_mc *mc)
{
	struct pmf_engine *e = mc->ep->engine;

	pmf_engine_lock(e);
	leave(e, mc, pmf_clock_ns());
	pmf_engine_unlock(e);
	free(mc);
}

/* ---- sending ---- */

static const struct pmf_mc *find(struct pmf_ep *ep, fi_addr_t dest)
{
	const struct pmf_mc_slot *slots = ep->mc_slots;
	const struct pmf_mc *mc = slots ? slots[dest & (PMF_MC_SLOTS - 1)].mc : NULL;

	return mc && mc->fi_addr == dest ? mc : NULL;
}

static void gather(uint8_t *to, const struct pmf_item *item)
{
	if (item->niov == 1) {
		if (item->len)
			memcpy(to, item->buf, item->len);
		return;
	}
	for (uint8_t i = 0; i < item->niov; i++) {
		memcpy(to, item->iov[i].iov_base, item->iov[i].iov_len);
		to += item->iov[i].iov_len;
	}
}

/* The datagram: a header, and a message that is whole. @return its length */
static uint16_t build(struct pmf_ep *ep, const struct pmf_item *item, uint8_t *p, size_t cap)
{
	const struct pmf_hdr hdr = {.type = PMF_PT_MULTICAST,
				    .inc = ep->inc,
				    .seq = ++ep->mc_seq,
				    .port = ep->addr.port};
	const struct pmf_rec rec = {.type = PMF_RT_START,
				    .kind = PMF_MK_MSG,
				    .flags = PMF_RF_WHOLE | item->flags,
				    .len = (uint32_t)item->len,
				    .total = item->len,
				    .data = item->data};
	size_t len = pmf_wire_put(p, cap, &hdr);

	len += pmf_rec_put(p + len, cap - len, &rec);
	gather(p + len, item);
	return (uint16_t)(len + item->len);
}

/* @return false: no room or buffer now */
static bool send_now(struct pmf_engine *e, const struct pmf_mc *mc, struct pmf_tx *tx)
{
	struct rte_mbuf *m;
	uint16_t len;

	if (!pmf_queue_room(e->q))
		pmf_queue_flush(e->q);
	m = pmf_queue_room(e->q) ? pmf_frame_alloc(e->q) : NULL;
	if (!m)
		return false;
	len = build(mc->ep, &tx->item, rte_pktmbuf_mtod(m, uint8_t *), e->port->max_payload);
	pmf_frame_send_group(e->q, &mc->path, m, len, pmf_mcast_joined(e->port, mc->attr.group.ip));
	tx->mark = pmf_queue_staged(e->q);
	STAILQ_INSERT_TAIL(&e->mc_sent, &tx->item, link);
	e->stats.mcast_tx++;
	return true;
}

/* @return false: it has to wait */
static bool try_send(struct pmf_engine *e, struct pmf_tx *tx)
{
	const struct pmf_mc *mc = find(tx->ep, tx->dest);

	if (mc)
		return send_now(e, mc, tx);
	pmf_complete_tx(e, tx, FI_ECANCELED); /* left between the post and now */
	return true;
}

void pmf_mc_send(struct pmf_engine *e, struct pmf_tx *tx)
{
	/* in the order of posting: behind those that wait */
	if (!STAILQ_EMPTY(&e->mc_waiting) || !try_send(e, tx))
		STAILQ_INSERT_TAIL(&e->mc_waiting, &tx->item, link);
}

void pmf_mc_retry(struct pmf_engine *e)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&e->mc_waiting))) {
		STAILQ_REMOVE_HEAD(&e->mc_waiting, link);
		if (try_send(e, pmf_container_of(item, struct pmf_tx, item)))
			continue;
		STAILQ_INSERT_HEAD(&e->mc_waiting, item, link);
		return;
	}
}

void pmf_mc_handed(struct pmf_engine *e, uint64_t upto)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&e->mc_sent))) {
		struct pmf_tx *tx = pmf_container_of(item, struct pmf_tx, item);

		if (tx->mark > upto)
			return;
		STAILQ_REMOVE_HEAD(&e->mc_sent, link);
		pmf_complete_tx(e, tx, 0);
	}
}
