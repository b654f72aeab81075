/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include <pmf/pmf_stats.h>

#include "error.h"

/* The provider's own figures, by the ops table that it offers on the domain. */

static const struct pmf_stats_ops *open_ops(struct perf_session *s)
{
	void *ops = NULL;

	if (!s->open) {
		perf_fail("nothing is open yet: 'start' opens it");
		return NULL;
	}
	if (fi_open_ops(&s->fabric.domain->fid, PMF_STATS_OPS, 0, &ops, NULL) || !ops) {
		perf_fail("provider %s has no counters", s->options->provider);
		return NULL;
	}
	return ops;
}

/* Ask until all fits: objects come and go between two calls. */
static void *fetch(struct fid *domain, int (*get)(struct fid *, void *, size_t *), size_t each,
		   size_t *count)
{
	void *out = NULL, *more;
	int rc;

	*count = 0;
	while ((rc = get(domain, out, count)) == -FI_ETOOSMALL) {
		*count += 8;
		more = realloc(out, *count * each);
		if (!more)
			break;
		out = more;
	}
	if (rc) {
		free(out);
		perf_fail("the provider gives no figures: %s", fi_strerror(rc < 0 ? -rc : rc));
		return NULL;
	}
	/* Nothing to tell is no failure. */
	return out ? out : calloc(1, each);
}

static const struct pmf_stats_ops *table;

static int get_stats(struct fid *domain, void *out, size_t *count)
{
	return table->get(domain, out, count);
}

static int get_peers(struct fid *domain, void *out, size_t *count)
{
	return table->peers(domain, out, count);
}

int perf_stats_show(struct perf_session *s, bool all)
{
	struct pmf_stat *stats;
	const char *object = "";
	size_t n, i;

	table = open_ops(s);
	if (!table)
		return -1;
	stats = fetch(&s->fabric.domain->fid, get_stats, sizeof(*stats), &n);
	if (!stats)
		return -1;
	for (i = 0; i < n; i++) {
		if (!all && stats[i].value == 0)
			continue;
		if (strcmp(object, stats[i].object) != 0)
			printf("%.48s\n", object = stats[i].object);
		printf("  %-28.48s %16" PRIu64 " %-10.16s %s\n", stats[i].name, stats[i].value,
		       stats[i].unit, stats[i].help);
	}
	free(stats);
	return 0;
}

static void print_peer(const struct pmf_peer_info *p)
{
	printf("%.64s to %.64s: %.16s, round trip %.3f us, window %u.%03u, under way %u, "
	       "frame %u\n",
	       p->local, p->peer, p->state, (double)p->srtt_ns / 1e3, p->cwnd, p->cwnd_fraction,
	       p->inflight, p->mtu);
	printf("  in queues %.3f us of %.3f aimed at, %" PRIu64 " packets marked\n",
	       (double)p->queue_ns / 1e3, (double)p->target_ns / 1e3, p->tx_marked);
	printf("  tx %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " packets, %" PRIu64
	       " again, %" PRIu64 " time-outs\n",
	       p->tx_msgs, p->tx_bytes, p->tx_packets, p->tx_retrans, p->timeouts);
	printf("  rx %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64 " packets, %" PRIu64
	       " twice\n",
	       p->rx_msgs, p->rx_bytes, p->rx_packets, p->rx_dups);
}

int perf_stats_peers(struct perf_session *s)
{
	struct pmf_peer_info *peers;
	size_t n, i;

	table = open_ops(s);
	if (!table)
		return -1;
	peers = fetch(&s->fabric.domain->fid, get_peers, sizeof(*peers), &n);
	if (!peers)
		return -1;
	for (i = 0; i < n; i++)
		print_peer(&peers[i]);
	if (n == 0)
		printf("no peers\n");
	free(peers);
	return 0;
}
