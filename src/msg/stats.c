/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Looking inside: counters of port, engine, endpoints and peers, copied under the owner word.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "msg/engine.h"

static const char *addr_text(const struct pmf_addr *a, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN];

	if (pmf_addr_is_v4(a)) {
		inet_ntop(AF_INET, a->ip + 12, ip, sizeof(ip));
		snprintf(buf, len, "%s:%u", ip, a->port);
	} else {
		inet_ntop(AF_INET6, a->ip, ip, sizeof(ip));
		snprintf(buf, len, "[%s]:%u", ip, a->port);
	}
	return buf;
}

/* A statistics struct is its list's uint64_t fields in order. */
static void walk_list(const struct pmf_stat_desc *desc, unsigned int count, const void *stats,
		      const char *object, pmf_stat_emit emit, void *arg)
{
	const uint64_t *v = stats;

	for (unsigned int i = 0; i < count; i++)
		emit(arg, object, &desc[i], v[i]);
}

/* One object of an engine, copied under the owner word. */
struct copy {
	char object[96];
	const struct pmf_stat_desc *desc;
	unsigned int count;
	union {
		struct pmf_engine_stats engine;
		struct pmf_ep_stats ep;
		struct pmf_flow_stats flow;
	};
};

static void copy_engine(const struct pmf_engine *e, struct copy *c)
{
	snprintf(c->object, sizeof(c->object), "engine:%u", e->q->queue_id);
	c->desc = pmf_engine_stat_desc;
	c->count = pmf_engine_stat_count;
	c->engine = e->stats;
}

static void copy_ep(const struct pmf_ep *ep, struct copy *c)
{
	char addr[72];

	snprintf(c->object, sizeof(c->object), "ep:%s", addr_text(&ep->addr, addr, sizeof(addr)));
	c->desc = pmf_ep_stat_desc;
	c->count = pmf_ep_stat_count;
	c->ep = ep->stats;
}

static void copy_flow(const struct pmf_eflow *ef, struct copy *c)
{
	char addr[72];

	snprintf(c->object, sizeof(c->object), "peer:%s",
		 addr_text(&ef->peer.addr, addr, sizeof(addr)));
	c->desc = pmf_flow_stat_desc;
	c->count = pmf_flow_stat_count;
	c->flow = ef->stats;
}

/* Owner only. Fills what there is room for. @return how many objects there are */
static size_t copy_all(const struct pmf_engine *e, struct copy *c, size_t room)
{
	struct pmf_ep *ep;
	size_t n = 0;

	if (n++ < room)
		copy_engine(e, &c[n - 1]);
	TAILQ_FOREACH (ep, &e->eps, link)
		if (n++ < room)
			copy_ep(ep, &c[n - 1]);
	for (uint32_t i = 0; i < e->flows_cap; i++)
		if (e->flows[i] && n++ < room)
			copy_flow(e->flows[i], &c[n - 1]);
	return n;
}

/* What is called back may take long, or wait for the engine: the word is not held meanwhile. */
static void walk_engine(struct pmf_engine *e, pmf_stat_emit emit, void *arg)
{
	struct copy *c = NULL;
	size_t n = 0, room = 0;

	/* Peers may come between the count and the copy: again until all fit. */
	do {
		free(c);
		room = n + 8;
		c = calloc(room, sizeof(*c));
		if (!c)
			return;
		pmf_engine_lock(e);
		n = copy_all(e, c, room);
		pmf_engine_unlock(e);
	} while (n > room);
	for (size_t i = 0; i < n; i++)
		walk_list(c[i].desc, c[i].count, &c[i].engine, c[i].object, emit, arg);
	free(c);
}

void pmf_stats_walk(struct pmf_progress *p, pmf_stat_emit emit, void *arg)
{
	struct pmf_port_stats port;

	if (!p->nengines)
		return;
	/* Its queues are the engines' owners', which count without atomics. */
	for (uint32_t q = 0; q < p->nengines; q++)
		pmf_engine_lock(p->engine[q]);
	pmf_port_stats_get(p->engine[0]->port, &port);
	for (uint32_t q = 0; q < p->nengines; q++)
		pmf_engine_unlock(p->engine[q]);
	walk_list(pmf_port_stat_desc, pmf_port_stat_count, &port, "port", emit, arg);
	for (uint32_t q = 0; q < p->nengines; q++)
		walk_engine(p->engine[q], emit, arg);
}

static void view_peer(const struct pmf_eflow *ef, struct pmf_peer_view *v)
{
	const struct pmf_flow *f = &ef->flow;

	v->local = ef->ep->addr;
	v->peer = ef->peer.addr;
	snprintf(v->state, sizeof(v->state), "%s", pmf_flow_state_name[f->state]);
	v->srtt = f->rtt.srtt;
	v->cwnd = (uint32_t)((uint64_t)f->cc.cwnd * 1000 / PMF_CC_ONE);
	v->queue = f->cc.queue != UINT32_MAX ? f->cc.queue : 0;
	v->target = f->cc.target;
	v->inflight = f->inflight;
	v->mtu_payload = f->mtu;
	v->stats = ef->stats;
}

size_t pmf_peers_walk(struct pmf_progress *p, struct pmf_peer_view *out, size_t max)
{
	size_t n = 0;

	for (uint32_t q = 0; q < p->nengines; q++) {
		struct pmf_engine *e = p->engine[q];

		pmf_engine_lock(e);
		for (uint32_t i = 0; i < e->flows_cap; i++) {
			if (!e->flows[i])
				continue;
			if (n < max)
				view_peer(e->flows[i], &out[n]);
			n++;
		}
		pmf_engine_unlock(e);
	}
	return n;
}
