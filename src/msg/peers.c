/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The peers' table. Written by the control path under the AV's lock; a change that bound endpoints
 * must know of is made under their engine's owner word.
 */
#include "msg/peers.h"

#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <stdio.h>
#include <stdlib.h>

#include "msg/engine.h"
#include "pmd_glue/eal.h"

static _Atomic unsigned int tables; /* names of hashes are global in DPDK */

struct pmf_peers *pmf_peers_open(uint32_t max)
{
	struct pmf_peers *p = calloc(1, sizeof(*p));
	char name[32];
	struct rte_hash_parameters hp = {
		.name = name,
		.entries = PMF_MAX(max, 64u),
		.key_len = sizeof(struct pmf_peer),
		.hash_func = rte_hash_crc, /* rte_jhash reads words: beyond 18 bytes */
		.socket_id = SOCKET_ID_ANY,
		.extra_flag =
			RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF | RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};

	if (!p)
		return NULL;
	snprintf(name, sizeof(name), "pmf_peers_%u", atomic_fetch_add(&tables, 1));
	p->by_peer = rte_hash_create(&hp);
	if (!p->by_peer) {
		free(p);
		return NULL;
	}
	TAILQ_INIT(&p->eps);
	return p;
}

void pmf_peers_close(struct pmf_peers *p)
{
	for (unsigned int c = 0; c < PMF_PEERS_CHUNKS; c++) {
		struct pmf_peer *_Atomic *chunk = p->chunk[c];

		for (unsigned int i = 0; chunk && i < PMF_PEERS_CHUNK; i++)
			free(chunk[i]);
		free(chunk);
	}
	rte_hash_free(p->by_peer);
	free(p);
}

fi_addr_t pmf_peers_find(struct pmf_peers *p, const struct pmf_peer *peer)
{
	void *data;

	if (rte_hash_lookup_data(p->by_peer, peer, &data) < 0)
		return FI_ADDR_NOTAVAIL;
	return (fi_addr_t)(uintptr_t)data;
}

/* Every bound endpoint: its flow to @p peer has this fi_addr_t from now on. */
static void tell(struct pmf_peers *p, const struct pmf_peer *peer, fi_addr_t old, fi_addr_t fi_addr)
{
	struct pmf_ep *ep;

	TAILQ_FOREACH (ep, &p->eps, peers_link) {
		if (!pmf_ep_enabled(ep))
			continue;
		pmf_engine_lock(ep->engine);
		pmf_eflow_rename(ep->engine, ep, peer, old, fi_addr);
		pmf_engine_unlock(ep->engine);
	}
}

/* What is posted goes to its flows: it means the peer that has the fi_addr_t now, not the next one.
 */
static void submit(struct pmf_peers *p)
{
	struct pmf_ep *ep;

	TAILQ_FOREACH (ep, &p->eps, peers_link) {
		if (!pmf_ep_enabled(ep))
			continue;
		pmf_engine_lock(ep->engine);
		pmf_engine_submit(ep->engine, ep, pmf_clock_ns());
		pmf_complete_wake(ep->engine);
		pmf_engine_unlock(ep->engine);
	}
}

int pmf_peers_set(struct pmf_peers *p, fi_addr_t fi_addr, const struct pmf_peer *peer)
{
	struct pmf_peer *_Atomic *chunk;
	struct pmf_peer *kept;
	uint64_t c = fi_addr >> PMF_PEERS_CHUNK_BITS;

	if (c >= PMF_PEERS_CHUNKS)
		return -ENOSPC;
	kept = malloc(sizeof(*kept));
	chunk = atomic_load_explicit(&p->chunk[c], memory_order_relaxed);
	if (!chunk)
		chunk = calloc(PMF_PEERS_CHUNK, sizeof(*chunk));
	if (!kept || !chunk)
		goto no_memory;
	*kept = *peer;
	atomic_store_explicit(&p->chunk[c], chunk, memory_order_release);
	if (rte_hash_add_key_data(p->by_peer, peer, (void *)(uintptr_t)fi_addr))
		goto full;
	/* release pairs with the acquire of pmf_peers_get() */
	atomic_store_explicit(&chunk[fi_addr & (PMF_PEERS_CHUNK - 1)], kept, memory_order_release);
	tell(p, peer, FI_ADDR_NOTAVAIL, fi_addr);
	return 0;

no_memory:
	if (chunk != atomic_load_explicit(&p->chunk[c], memory_order_relaxed))
		free(chunk);
	free(kept);
	return -ENOMEM;
full:
	free(kept);
	return -ENOSPC;
}

void pmf_peers_unset(struct pmf_peers *p, fi_addr_t fi_addr)
{
	struct pmf_peer *peer = pmf_peers_get(p, fi_addr);
	struct pmf_peer *_Atomic *chunk;
	int32_t pos;

	if (!peer)
		return;
	submit(p);
	chunk = p->chunk[fi_addr >> PMF_PEERS_CHUNK_BITS];
	atomic_store_explicit(&chunk[fi_addr & (PMF_PEERS_CHUNK - 1)], NULL, memory_order_release);
	pos = rte_hash_del_key(p->by_peer, peer);
	/* after this no engine looks at the old entry: each has been held once */
	tell(p, peer, fi_addr, FI_ADDR_NOTAVAIL);
	if (pos >= 0)
		rte_hash_free_key_with_position(p->by_peer, pos);
	free(peer);
}
