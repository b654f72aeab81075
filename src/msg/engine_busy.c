/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Which endpoints a pass looks at: those that have posted lately, or have something left to do; of
 * many some in turn, so that a pass costs the same. Posting threads announce an endpoint that is
 * not looked at; the owner stops looking at one that has had nothing for a while.
 */
#include "msg/engine.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QUIET_AFTER (20 * PMF_NS_PER_MS)
#define LOOKS 64 /* endpoints looked at in one go */

static long membarrier(int cmd)
{
	return syscall(SYS_membarrier, cmd, 0, 0);
}

void pmf_busy_init(struct pmf_engine *e)
{
	TAILQ_INIT(&e->busy);
	e->can_forget = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/*
 * Any thread. Who turns `listed` from 0 to 1 puts the endpoint on a list, so it stands on one only:
 * here on the stack of announced ones. Release pairs with the acquire in pmf_busy_collect().
 */
void pmf_busy_announce(struct pmf_ep *ep)
{
	struct pmf_engine *e = ep->engine;
	struct pmf_ep *top;

	/* acquire pairs with the release that cleared it: the link is nobody's any more */
	if (atomic_exchange_explicit(&ep->listed, 1, memory_order_acquire))
		return;
	top = atomic_load_explicit(&e->announced, memory_order_relaxed);
	do
		ep->announced_next = top;
	while (!atomic_compare_exchange_weak_explicit(&e->announced, &top, ep, memory_order_release,
						      memory_order_relaxed));
}

static void look(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now)
{
	ep->busy = true;
	ep->busy_at = now;
	TAILQ_INSERT_TAIL(&e->busy, ep, busy_link);
	e->nbusy++;
}

static void look_away(struct pmf_engine *e, struct pmf_ep *ep)
{
	if (e->look_at == ep)
		e->look_at = TAILQ_NEXT(ep, busy_link);
	TAILQ_REMOVE(&e->busy, ep, busy_link);
	ep->busy = false;
	e->nbusy--;
}

void pmf_busy_collect(struct pmf_engine *e)
{
	struct pmf_ep *ep = atomic_exchange_explicit(&e->announced, NULL, memory_order_acquire);

	for (; ep; ep = ep->announced_next)
		look(e, ep, e->last_pass);
}

/* Something of it is left to a coming pass. */
static bool has_work(const struct pmf_ep *ep)
{
	return rte_ring_count(ep->tx_ring) || rte_ring_count(ep->rctx->ring) || ep->rctx->starved;
}

/*
 * A poster writes its ring and then looks at `listed` without a fence, since it does so for every
 * post. So the fence is made here, for all threads at once and only when endpoints fall quiet:
 * whoever saw `listed` still set has its entry visible after the barrier, and whoever looks later
 * sees it cleared and announces.
 */
void pmf_busy_forget(struct pmf_engine *e, pmf_ns_t now)
{
	TAILQ_HEAD(, pmf_ep) quiet = TAILQ_HEAD_INITIALIZER(quiet);
	struct pmf_ep *ep, *next;

	if (!e->can_forget)
		return;
	for (unsigned int i = 0; i < LOOKS && (ep = TAILQ_FIRST(&e->busy)); i++) {
		look_away(e, ep);
		if (now - ep->busy_at < QUIET_AFTER || now < ep->busy_at) {
			look(e, ep, ep->busy_at);
			continue;
		}
		atomic_store_explicit(&ep->listed, 0, memory_order_release);
		TAILQ_INSERT_TAIL(&quiet, ep, busy_link);
	}
	if (TAILQ_EMPTY(&quiet))
		return;
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	PMF_TAILQ_FOREACH_SAFE(ep, &quiet, busy_link, next)
	{
		/* announced by its poster meanwhile: then it stands on the other list */
		if (!has_work(ep) || atomic_exchange_explicit(&ep->listed, 1, memory_order_relaxed))
			continue;
		look(e, ep, now);
	}
}

/** The endpoint leaves the engine; nobody posts on it any more. */
void pmf_busy_remove(struct pmf_engine *e, struct pmf_ep *ep)
{
	pmf_busy_collect(e);
	if (ep->busy)
		look_away(e, ep);
}
