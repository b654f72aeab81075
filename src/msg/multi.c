/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Multi-receive buffers: a message takes a part, which is a receive of its own until its entry is
 * written; the buffer is released when too little is left, and free again when its last part is
 * over. Engine owner only.
 */
#include "msg/rctx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#define CHUNK 64

struct pmf_part_chunk {
	struct pmf_part_chunk *next;
	struct pmf_rx part[CHUNK];
};

/* More parts under way at once than ever before; never more than the context has receives. */
static bool more_parts(struct pmf_rctx *rc)
{
	struct pmf_part_chunk *c;

	if (rc->nparts >= PMF_MAX(rc->size, (uint32_t)CHUNK))
		return false;
	c = calloc(1, sizeof(*c));
	if (!c)
		return false;
	c->next = rc->chunks;
	rc->chunks = c;
	for (unsigned int i = 0; i < CHUNK; i++)
		TAILQ_INSERT_TAIL(&rc->parts, &c->part[i], link);
	rc->nparts += CHUNK;
	rc->nparts_free += CHUNK;
	return true;
}

void pmf_parts_fini(struct pmf_rctx *rc)
{
	while (rc->chunks) {
		struct pmf_part_chunk *c = rc->chunks;

		rc->chunks = c->next;
		free(c);
	}
}

void pmf_part_put(struct pmf_rx *part)
{
	struct pmf_rctx *rc = part->rctx;

	/* the one used last comes first: it is in the cache */
	TAILQ_INSERT_HEAD(&rc->parts, part, link);
	rc->nparts_free++;
}

static void release(struct pmf_rx *buffer)
{
	if (buffer->released)
		return;
	buffer->released = true;
	pmf_rx_unpost(buffer->rctx, buffer);
}

struct pmf_rx *pmf_multi_cut(struct pmf_rctx *rc, struct pmf_rx *buffer, uint64_t total)
{
	uint64_t left = buffer->cap - buffer->used, room = left - rc->prefix;
	struct pmf_rx *part;

	if (pmf_unlikely(!rc->nparts_free) && !more_parts(rc))
		return NULL;
	part = TAILQ_FIRST(&rc->parts);
	TAILQ_REMOVE(&rc->parts, part, link);
	rc->nparts_free--;
	part->rctx = rc;
	part->buffer = buffer;
	part->context = buffer->context;
	part->flags = PMF_XF_PART | (buffer->flags & (PMF_XF_COMPLETION | PMF_XF_PREFIX));
	part->done = part->ordered = part->dropped = false;
	part->err = 0;
	part->cap = PMF_MIN(total, room);
	part->niov = 1;
	part->iov[0].iov_base = (uint8_t *)buffer->iov[0].iov_base + buffer->used + rc->prefix;
	part->iov[0].iov_len = part->cap;
	buffer->used += rc->prefix + part->cap;
	buffer->nparts++;
	left -= rc->prefix + part->cap;
	if (total > room || left < buffer->min)
		release(buffer);
	return part;
}

bool pmf_multi_ended(struct pmf_rx *part)
{
	struct pmf_rx *buffer = part->buffer;

	buffer->nparts--;
	if (pmf_unlikely(part->err))
		release(buffer);
	if (!buffer->released || buffer->nparts)
		return false;
	pmf_rx_free(buffer);
	return true;
}
