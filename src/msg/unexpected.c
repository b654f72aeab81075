/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Memory for messages that came before their receive: a fixed number of stubs and of blocks, made
 * with the engine. Engine owner only. What does not fit is held at its sender. What was given back
 * last goes out first, and what was never out has not been touched: it is no memory of the
 * machine's yet.
 */
#include "msg/engine.h"

#include <stdlib.h>

#include "msg/scatter.h"

#define STUBS_PER_BLOCK 1 /* a small message needs no block, a large one several */
#define OTHERS_PART 4	  /* of the blocks that one endpoint leaves to the others */
#define MULTICAST_PART 4  /* of the blocks, and as many stubs: flows are never starved by it */
#define BLOCK_BYTES sizeof(((struct pmf_block *)NULL)->bytes)

int pmf_unexpected_init(struct pmf_engine *e)
{
	uint32_t nblocks = (uint32_t)(e->conf->unexpected_bytes / PMF_BLOCK_SIZE);
	uint32_t nstubs = PMF_MAX(nblocks * STUBS_PER_BLOCK, 4u * PMF_WIRE_MAX_RECS);

	e->stub_mem = calloc(nstubs, sizeof(*e->stub_mem));
	e->block_mem = calloc(PMF_MAX(nblocks, 1u), sizeof(*e->block_mem));
	if (!e->stub_mem || !e->block_mem) {
		pmf_unexpected_fini(e);
		return -ENOMEM;
	}
	TAILQ_INIT(&e->stub_free);
	e->stub_new = e->stub_mem;
	e->nstub_free = nstubs;
	e->block_new = e->block_mem;
	e->nblock_free = nblocks;
	e->mc_kept_max = nblocks / MULTICAST_PART;
	e->ep_kept_max = nblocks - nblocks / OTHERS_PART;
	return 0;
}

void pmf_unexpected_fini(struct pmf_engine *e)
{
	free(e->stub_mem);
	free(e->block_mem);
	e->stub_mem = NULL;
	e->block_mem = NULL;
}

struct pmf_stub *pmf_stub_get(struct pmf_engine *e)
{
	struct pmf_stub *s = TAILQ_FIRST(&e->stub_free);

	if (pmf_unlikely(e->nstub_free == 0))
		return NULL;
	if (s)
		TAILQ_REMOVE(&e->stub_free, s, link);
	else
		s = e->stub_new++;
	e->nstub_free--;
	s->block = s->last = NULL;
	s->ep = NULL;
	s->hold_out = false;
	s->datagram = false;
	s->got = 0;
	return s;
}

struct pmf_stub *pmf_stub_get_datagram(struct pmf_engine *e, uint64_t total)
{
	uint64_t cost = 1 + (total + BLOCK_BYTES - 1) / BLOCK_BYTES;
	struct pmf_stub *s = e->mc_kept + cost > e->mc_kept_max ? NULL : pmf_stub_get(e);

	if (!s)
		return NULL;
	if (!pmf_stub_reserve(e, s, total)) {
		TAILQ_INSERT_HEAD(&e->stub_free, s, link);
		e->nstub_free++;
		return NULL;
	}
	s->datagram = true;
	s->cost = cost;
	e->mc_kept += (uint32_t)cost;
	return s;
}

/* There is one: the caller has counted. */
static struct pmf_block *block_get(struct pmf_engine *e)
{
	struct pmf_block *b = e->block_free;

	if (!b)
		return e->block_new++;
	e->block_free = b->next;
	b->next = NULL;
	return b;
}

/** @return whether @p total bytes have a place now; all or nothing. */
bool pmf_stub_reserve(struct pmf_engine *e, struct pmf_stub *s, uint64_t total)
{
	uint64_t need;

	if (total <= PMF_STUB_INLINE)
		return true;
	need = (total + BLOCK_BYTES - 1) / BLOCK_BYTES;
	if (need > e->nblock_free || (s->ep && s->ep->kept + need > e->ep_kept_max))
		return false;
	e->nblock_free -= (uint32_t)need;
	if (s->ep) /* else a datagram, which has bounds of its own */
		s->ep->kept += (uint32_t)need;
	while (need--) {
		struct pmf_block *b = block_get(e);

		if (s->last)
			s->last->next = b;
		else
			s->block = b;
		s->last = b;
	}
	s->last = s->block; /* from now on: where the next byte goes */
	return true;
}

/** Append: bytes come in order. */
void pmf_stub_write(struct pmf_stub *s, uint64_t off, const uint8_t *bytes, uint32_t len)
{
	if (!s->block) {
		memcpy(s->bytes + off, bytes, len);
		return;
	}
	while (len) {
		uint64_t at = off % BLOCK_BYTES;
		uint32_t n = (uint32_t)PMF_MIN(len, BLOCK_BYTES - at);

		memcpy(s->last->bytes + at, bytes, n);
		off += n;
		bytes += n;
		len -= n;
		if (off % BLOCK_BYTES == 0)
			s->last = s->last->next;
	}
}

/** Copy what has come so far into the receive that took the message. */
void pmf_stub_read(struct pmf_stub *s, struct pmf_rx *rx)
{
	struct pmf_block *b = s->block;

	if (!b) {
		pmf_scatter(rx, 0, s->bytes, (uint32_t)s->got);
		return;
	}
	for (uint64_t off = 0; off < s->got; b = b->next) {
		uint32_t n = (uint32_t)PMF_MIN(s->got - off, BLOCK_BYTES);

		pmf_scatter(rx, off, b->bytes, n);
		off += n;
	}
}

static void blocks_put(struct pmf_engine *e, struct pmf_stub *s)
{
	while (s->block) {
		struct pmf_block *b = s->block;

		s->block = b->next;
		b->next = e->block_free;
		e->block_free = b;
		e->nblock_free++;
		if (!s->datagram)
			s->ep->kept--;
	}
}

/**
 * Done with it: off the lists, its cost back to the sender. A HOLD record still under way keeps the
 * stub itself (PMF_STUB_GONE) until it is acknowledged.
 */
void pmf_stub_put(struct pmf_engine *e, struct pmf_stub *s)
{
	if (s->state != PMF_STUB_GONE) {
		if (s->state != PMF_STUB_COMPLETE)
			pmf_match_arrived(s->flow);
		s->state = PMF_STUB_GONE;
		blocks_put(e, s);
		TAILQ_REMOVE(&s->ep->rctx->unexpected, s, link);
		if (s->datagram)
			e->mc_kept -= (uint32_t)s->cost;
		if (s->flow) {
			TAILQ_REMOVE(&s->flow->stubs, s, flow_link);
			if (s->flow->cur_stub == s)
				s->flow->cur_stub = NULL;
			pmf_flow_credit_return(&s->flow->flow, s->cost);
		}
	}
	if (s->hold_out)
		return;
	TAILQ_INSERT_HEAD(&e->stub_free, s, link);
	e->nstub_free++;
}
