/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Looking inside: counters of port, engine, endpoints and peers, walked under the owner word.
 */
#include <arpa/inet.h>
#include <stdio.h>

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

static void walk_engine(struct pmf_engine *e, pmf_stat_emit emit, void *arg)
{
	char object[96], addr[72];
	struct pmf_ep *ep;

	snprintf(object, sizeof(object), "engine:%u", e->q->queue_id);
	walk_list(pmf_engine_stat_desc, pmf_engine_stat_count, &e->stats, object, emit, arg);
	TAILQ_FOREACH (ep, &e->eps, link) {
		snprintf(object, sizeof(object), "ep:%s", addr_text(&ep->addr, addr, sizeof(addr)));
		walk_list(pmf_ep_stat_desc, pmf_ep_stat_count, &ep->stats, object, emit, arg);
	}
	for (uint32_t i = 0; i < e->flows_cap; i++) {
		struct pmf_eflow *ef = e->flows[i];

		if (!ef)
			continue;
		snprintf(object, sizeof(object), "peer:%s",
			 addr_text(&ef->peer, addr, sizeof(addr)));
		walk_list(pmf_flow_stat_desc, pmf_flow_stat_count, &ef->stats, object, emit, arg);
	}
}

void pmf_stats_walk(struct pmf_progress *p, pmf_stat_emit emit, void *arg)
{
	struct pmf_port_stats port;

	if (!p->nengines)
		return;
	pmf_port_stats_get(p->engine[0]->port, &port);
	walk_list(pmf_port_stat_desc, pmf_port_stat_count, &port, "port", emit, arg);
	for (uint32_t q = 0; q < p->nengines; q++) {
		pmf_engine_lock(p->engine[q]);
		walk_engine(p->engine[q], emit, arg);
		pmf_engine_unlock(p->engine[q]);
	}
}

static void view_peer(const struct pmf_eflow *ef, struct pmf_peer_view *v)
{
	const struct pmf_flow *f = &ef->flow;

	v->local = ef->ep->addr;
	v->peer = ef->peer;
	snprintf(v->state, sizeof(v->state), "%s", pmf_flow_state_name[f->state]);
	v->srtt = f->rtt.srtt;
	v->cwnd = f->cc.cwnd >> 8;
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
