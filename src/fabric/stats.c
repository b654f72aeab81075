/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/log.h"
#include "msg/addr.h"
#include "msg/ep_state.h"

struct collect {
	struct pmf_stat *out;
	size_t room, count;
};

static void collect_one(void *arg, const char *object, const struct pmf_stat_desc *desc,
			uint64_t value)
{
	struct collect *c = arg;
	struct pmf_stat *s;

	if (c->count++ >= c->room)
		return;
	s = &c->out[c->count - 1];
	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", desc->name);
	snprintf(s->object, sizeof(s->object), "%s", object);
	snprintf(s->unit, sizeof(s->unit), "%s", desc->unit);
	s->help = desc->help;
	s->value = value;
}

static int stats_get(struct fid *domain, struct pmf_stat *out, size_t *count)
{
	struct pmf_domain *d = (struct pmf_domain *)domain;
	struct collect c = {.out = out};

	if (!domain || domain->fclass != FI_CLASS_DOMAIN || !count || (*count && !out))
		return -FI_EINVAL;
	c.room = *count;
	pmf_stats_walk(&d->progress, collect_one, &c);
	*count = c.count;
	return c.count > c.room ? -FI_ETOOSMALL : 0;
}

size_t pmf_stats_peers(struct pmf_domain *d, struct pmf_peer_view **out)
{
	size_t room = 0, n;
	struct pmf_peer_view *v = NULL;

	/* Peers may come between the count and the copy: ask again until all fit. */
	while ((n = pmf_peers_walk(&d->progress, v, room)) > room) {
		free(v);
		room = n + 8;
		v = calloc(room, sizeof(*v));
		if (!v) {
			n = 0;
			break;
		}
	}
	*out = v;
	return n;
}

static void peer_info(const struct pmf_peer_view *v, struct pmf_peer_info *out)
{
	memset(out, 0, sizeof(*out));
	pmf_addr_text(&v->local, out->local, sizeof(out->local));
	pmf_addr_text(&v->peer, out->peer, sizeof(out->peer));
	memcpy(out->state, v->state, sizeof(out->state));
	out->srtt_ns = v->srtt;
	out->cwnd = v->cwnd / 1000;
	out->cwnd_fraction = v->cwnd % 1000;
	out->queue_ns = v->queue;
	out->target_ns = v->target;
	out->tx_marked = v->stats.tx_marked;
	out->inflight = v->inflight;
	out->mtu = v->mtu_payload;
	out->tx_msgs = v->stats.tx_msgs;
	out->tx_bytes = v->stats.tx_bytes;
	out->tx_packets = v->stats.tx_packets;
	out->tx_retrans = v->stats.tx_retrans;
	out->timeouts = v->stats.timeouts;
	out->rx_msgs = v->stats.rx_msgs;
	out->rx_bytes = v->stats.rx_bytes;
	out->rx_packets = v->stats.rx_packets;
	out->rx_dups = v->stats.rx_dups;
}

static int stats_peers(struct fid *domain, struct pmf_peer_info *out, size_t *count)
{
	struct pmf_domain *d = (struct pmf_domain *)domain;
	struct pmf_peer_view *views;
	size_t n, room;

	if (!domain || domain->fclass != FI_CLASS_DOMAIN || !count || (*count && !out))
		return -FI_EINVAL;
	room = *count;
	n = pmf_stats_peers(d, &views);
	for (size_t i = 0; i < n && i < room; i++)
		peer_info(&views[i], &out[i]);
	free(views);
	*count = n;
	return n > room ? -FI_ETOOSMALL : 0;
}

static struct pmf_stats_ops stats_ops = {
	.size = sizeof(struct pmf_stats_ops),
	.get = stats_get,
	.peers = stats_peers,
};

int pmf_stats_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	if (strcmp(name, PMF_STATS_OPS) != 0)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	*ops = &stats_ops;
	return 0;
}

void pmf_stats_log_ep(struct pmf_fep *fep)
{
	const struct pmf_ep_stats *s = &fep->ep->stats;
	uint64_t retrans = 0, timeouts = 0, drops = 0;
	struct pmf_peer_view *views;
	char text[PMF_ADDR_TEXT];
	size_t n;

	if (!fi_log_enabled(&pmf_prov, FI_LOG_INFO, FI_LOG_EP_CTRL))
		return;
	n = pmf_stats_peers(fep->domain, &views);
	for (size_t i = 0; i < n; i++) {
		if (!pmf_addr_eq(&views[i].local, pmf_ep_addr(fep->ep)))
			continue;
		retrans += views[i].stats.tx_retrans;
		timeouts += views[i].stats.timeouts;
		drops += views[i].stats.rx_dups + views[i].stats.rx_outside + views[i].stats.rx_bad;
	}
	free(views);
	pmf_info(EP_CTRL,
		 "%s closed: sent %" PRIu64 " messages (%" PRIu64 " failed), received %" PRIu64
		 " (%" PRIu64 " failed, %" PRIu64 " unexpected); %" PRIu64
		 " retransmissions, %" PRIu64 " timeouts, %" PRIu64 " packets dropped\n",
		 pmf_addr_text(pmf_ep_addr(fep->ep), text, sizeof(text)), s->tx_msgs, s->tx_errors,
		 s->rx_msgs, s->rx_errors, s->rx_unexpected, retrans, timeouts, drops);
}
