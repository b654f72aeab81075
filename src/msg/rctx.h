/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A receive context: receives that were posted, and messages that came before theirs. An endpoint
 * has one of its own, or several share one (fi_srx_context). It lives until its last user has gone:
 * the handle, the endpoints, and orphans whose flows still hold an invitation.
 */
#ifndef PMF_MSG_RCTX_H
#define PMF_MSG_RCTX_H

#include <rte_ring.h>
#include <stdatomic.h>

#include "msg/freelist.h"
#include "msg/peers.h"
#include "msg/transfer.h"

#define PMF_MIN_MULTI_RECV 64 /* FI_OPT_MIN_MULTI_RECV until set */

struct pmf_engine;
struct pmf_part_chunk;

struct pmf_rctx_attr {
	struct pmf_engine *engine;
	uint32_t size, iov_limit;
	uint8_t prefix;	  /* of FI_MSG_PREFIX, or 0 */
	bool directed;	  /* FI_DIRECTED_RECV: the source of a receive counts */
	bool keyed;	  /* authorization keys are those of the AV: a source may be one of them */
	bool thread_safe; /* posting threads may be several */
	bool kick;	  /* manual progress: a call that is refused runs a pass */
};

struct pmf_rctx {
	/* Read by posting threads. */
	_Atomic bool open; /* receives may be posted; written by the control path */
	bool directed, keyed, kick;
	bool odd;	  /* posting has more to look at: directed or prefix */
	uint8_t rx_flags; /* PMF_XF_PREFIX or 0 */
	uint8_t prefix;
	uint32_t iov_limit, size;
	struct pmf_freelist free; /* receives */
	struct rte_ring *ring;	  /* posted ones */
	struct pmf_engine *engine;
	struct pmf_peers *peers;  /* that sources are of, or NULL */
	_Atomic size_t min_multi; /* FI_OPT_MIN_MULTI_RECV */

	/* The engine owner's. */
	struct pmf_rxq posted PMF_CACHE_ALIGNED;
	struct pmf_stubq unexpected;
	uint32_t nany; /* posted for any source */
	uint32_t ndirected;
	uint32_t nmulti;
	uint32_t refs;
	bool starved; /* a message found its multi-receive buffer but no part: see pmf_match_again()
		       */
	struct pmf_rx barrier; /* first of posted while starved, so that nothing overtakes */
	/* parts of multi-receive buffers, made when first needed, at most `size` */
	struct pmf_rxq parts;
	uint32_t nparts, nparts_free;
	struct pmf_part_chunk *chunks;
	TAILQ_HEAD(, pmf_ep) eps;   /* enabled endpoints that take from it */
	TAILQ_ENTRY(pmf_rctx) link; /* engine->shared */
};

/** Owner only: has pmf_engine_receives() anything to do? */
static inline bool pmf_rctx_posted(const struct pmf_rctx *rc)
{
	return !rte_ring_empty(rc->ring) || rc->starved;
}

/** @return 0 with one reference; -ENOMEM. Control path. */
int pmf_rctx_open(const struct pmf_rctx_attr *attr, struct pmf_rctx **out);
/** Let posts in, and have passes look for them; an endpoint's own context is opened by fi_enable.
 */
void pmf_rctx_share(struct pmf_rctx *rc);
/** The handle of a shared context closes: no endpoint uses it any more. Control path. */
void pmf_rctx_unshare(struct pmf_rctx *rc);
/** Under the engine's owner word. Frees it with the last reference. */
void pmf_rctx_put(struct pmf_rctx *rc);

/** fi_cancel: 0, -FI_ENOENT, -FI_EAGAIN (messages are under way into that multi-receive buffer). */
ssize_t pmf_rctx_cancel(struct pmf_rctx *rc, void *context);
size_t pmf_rctx_left(const struct pmf_rctx *rc);

/** Of an endpoint that has a shared context: never open. */
extern struct pmf_rctx pmf_rctx_none;

/* The rest is the engine owner's. */

/** The connection of @p ep is over: what is posted on its own context ends as FI_ECANCELED. */
void pmf_rctx_flush(struct pmf_engine *e, struct pmf_ep *ep);
/** @return whether messages of @p ep are kept until a receive is posted. */
bool pmf_rctx_keeps(const struct pmf_ep *ep);
/** Kept messages of @p ep are thrown away. */
void pmf_rctx_forget(struct pmf_engine *e, struct pmf_ep *ep);
/** How many messages surely find a receive. */
uint32_t pmf_rctx_sure(const struct pmf_rctx *rc);

/** Off the list of posted ones. */
static inline void pmf_rx_unpost(struct pmf_rctx *rc, struct pmf_rx *rx)
{
	TAILQ_REMOVE(&rc->posted, rx, link);
	if (pmf_likely(!(rx->flags & PMF_XF_DIRECTED)))
		rc->nany--;
	else
		rc->ndirected--;
	if (pmf_unlikely(rx->flags & PMF_XF_MULTI))
		rc->nmulti--;
}

/* multi.c */

/** Cut a part for @p total bytes from a posted multi-receive buffer. @return NULL: no part is free
 */
struct pmf_rx *pmf_multi_cut(struct pmf_rctx *rc, struct pmf_rx *buffer, uint64_t total);
/**
 * A part is over, with part->err. The buffer goes back to the free ones with its last part.
 * @return whether it was the last: its entry carries FI_MULTI_RECV
 */
bool pmf_multi_ended(struct pmf_rx *part);
void pmf_part_put(struct pmf_rx *part);
/** A receive, or a part, is free again. */
static inline void pmf_rx_free(struct pmf_rx *rx)
{
	if (pmf_unlikely(rx->flags & PMF_XF_PART))
		pmf_part_put(rx);
	else
		pmf_freelist_put(&rx->rctx->free, rx);
}
void pmf_parts_fini(struct pmf_rctx *rc);

#endif
