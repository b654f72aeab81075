/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What is said when it is quiet: messages by slot and by peer, and what the process holds.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_mempool.h>

#include "pmf/pmf_stats.h"
#include "soak.h"

static void say_name(FILE *f, const struct slot *s)
{
	if (s->kind->msg)
		fprintf(f, "\"conn:%x\"", s->life);
	else
		fprintf(f, "\"%s:%u\"", soak.host[0], PORT + s->n);
}

static void say_dests(FILE *f, const struct slot *s)
{
	for (unsigned int i = 0; i < (s->kind->msg ? 1 : DESTS); i++) {
		if (s->kind->msg)
			fprintf(f, "\"conn:%x\"", s->mate);
		else
			fprintf(f, "%s\"%s:%u\"", i ? ", " : "", soak.host[i / RDM_SLOTS],
				PORT + i % RDM_SLOTS);
		fprintf(f, ": [%u, %u]", s->dest[i].next, s->dest[i].failed);
	}
}

static void say_slot(FILE *f, struct slot *s)
{
	const char *comma = "";

	fprintf(f, "{\"name\": ");
	say_name(f, s);
	fprintf(f, ", \"state\": %d, \"life\": \"%x\", \"lost\": %" PRIu64, s->state, s->life,
		s->lost);
	if (s->ep)
		fprintf(f, ", \"taken\": %" PRIu64 ", \"ended\": %" PRIu64, s->taken,
			fi_cntr_read(s->txcntr) + fi_cntr_readerr(s->txcntr));
	fprintf(f, ", \"receives\": %u, \"gone\": %u, \"to\": {", s->q->posted, rxq_doomed(s->q));
	say_dests(f, s);
	fprintf(f, "}, \"from\": {");
	for (unsigned int i = 0; i < FROMS; i++)
		if (s->from[i].life) {
			fprintf(f, "%s\"%x\": [%u, %u, %u]", comma, s->from[i].life, s->from[i].low,
				s->from[i].high, s->from[i].count);
			comma = ", ";
		}
	fprintf(f, "}}");
}

/* Buffers to send are taken by the dozen and handed out one by one. */
static void count_buffers(struct rte_mempool *pool, void *f)
{
	fprintf(f, ", \"%s\": %u", strstr(pool->name, "tx") ? "tx_away" : "rx_away",
		rte_mempool_in_use_count(pool));
}

static uint64_t flows(void)
{
	struct pmf_stats_ops *ops;
	size_t n = 0;

	/* Both domains are of one port. */
	MUST(fi_open_ops(&soak.domain[0]->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL));
	ops->peers(&soak.domain[0]->fid, NULL, &n);
	return n;
}

static void say_held(FILE *f)
{
	struct rte_malloc_socket_stats dpdk = {0};
	struct mallinfo2 heap = mallinfo2();

	rte_malloc_get_socket_stats(0, &dpdk);
	fprintf(f, "\"flows\": %" PRIu64 ", \"heap\": %zu, \"dpdk_heap\": %zu", flows(),
		heap.uordblks + heap.hblkhd, dpdk.heap_allocsz_bytes);
	rte_mempool_walk(count_buffers, f);
}

static bool drained(void)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (!slot_drained(&soak.slot[i]))
			return false;
	return true;
}

void report(void)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s.new", soak.report);
	f = fopen(name, "w");
	if (!f)
		soak_fail("%s cannot be written", name);
	fprintf(f, "{\"quiets\": %" PRIu64 ", \"drained\": %s, \"slots\": [", soak.quiets,
		drained() ? "true" : "false");
	for (unsigned int i = 0; i < SLOTS; i++) {
		fprintf(f, "%s", i ? ", " : "");
		say_slot(f, &soak.slot[i]);
	}
	fprintf(f, "], ");
	say_held(f);
	fprintf(f,
		", \"sent\": %" PRIu64 ", \"got\": %" PRIu64 ", \"bytes\": %" PRIu64
		", \"cut\": %" PRIu64 ", \"cancelled\": %" PRIu64 ", \"failed\": %" PRIu64
		", \"closed\": %" PRIu64 ", \"rejected\": %" PRIu64 "}\n",
		soak.sent, soak.got, soak.bytes, soak.cut, soak.cancelled, soak.failed, soak.closed,
		soak.rejected);
	fclose(f);
	if (rename(name, soak.report))
		soak_fail("%s cannot be written", soak.report);
}
