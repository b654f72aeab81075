/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The engine's life and its pass. The pass is the whole data path in order: receives posted, frames
 * in, completions, sends posted, timers, frames out, wake-ups.
 */
#include "msg/engine.h"

#include <rte_errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmd_glue/eal.h"

#define FLOWS_FIRST 64
#define NAMES 65536 /* flows that can be found by name; flows beyond are refused */
#define TICK PMF_NS_PER_MS

#define WORKER_TURN                                                                   \
	(10 * PMF_NS_PER_MS) /* without a pass before control callers let a worker in \
			      */

#define WINDOW 1024 /* packets in flight of one flow */
#define ACK_EVERY 16
#define RX_CREDIT (1024 * 1024)
#define FIRST_CREDIT (64 * 1024)
#define MIN_RTO (2 * PMF_NS_PER_MS)
#define QUEUE_AIM (6 * PMF_NS_PER_US)
#define MAX_RTO (500 * PMF_NS_PER_MS)

const struct pmf_stat_desc pmf_engine_stat_desc[] = {PMF_ENGINE_STATS(PMF_STAT_DESC)};
const unsigned int pmf_engine_stat_count = PMF_ARRAY_SIZE(pmf_engine_stat_desc);

/* ---- the owner word, control side ---- */

/*
 * The word is nobody's in particular when it is free, and a program that makes one control call
 * after another could keep a worker from it for long, on a loaded machine for so long that peers
 * give us up. So a worker that has not had its turn for a while goes first.
 */
static bool worker_first(const struct pmf_engine *e)
{
	return atomic_load_explicit(&e->worker_waits, memory_order_relaxed) &&
	       pmf_clock_ns() >
		       atomic_load_explicit(&e->last_pass, memory_order_relaxed) + WORKER_TURN;
}

void pmf_engine_lock(struct pmf_engine *e)
{
	while (pmf_unlikely(worker_first(e)) && !pmf_stack_forked())
		sched_yield();
	atomic_fetch_add_explicit(&e->waiters, 1, memory_order_relaxed);
	while (!pmf_engine_try(e) && !pmf_stack_forked())
		sched_yield();
	/* what has been acknowledged is not taken for under way */
	if (!pmf_stack_forked())
		pmf_engine_rest(e);
}

void pmf_engine_unlock(struct pmf_engine *e)
{
	pmf_engine_release(e);
	atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
}

/* ---- life ---- */

static void conf_flow(struct pmf_engine *e)
{
	struct pmf_flow_conf *f = &e->fconf;
	const struct pmf_conf *c = e->conf;

	f->ack_delay = c->ack_delay;
	f->ack_every = ACK_EVERY;
	f->dead_after = c->dead_after;
	f->min_rto = MIN_RTO;
	f->max_rto = PMF_MIN(MAX_RTO, c->dead_after / 8);
	f->window = WINDOW;
	f->eager_limit = c->eager_limit;
	f->rx_credit = PMF_MIN(RX_CREDIT, PMF_MAX(c->unexpected_bytes / 2, 4096u));
	f->first_credit = PMF_MIN(FIRST_CREDIT, f->rx_credit);
	f->max_payload = e->port->max_payload;
	f->one_record = !c->coalesce;
	f->queue_aim = QUEUE_AIM;
	f->looks = &e->looks;
}

static int open_tables(struct pmf_engine *e)
{
	char name[32];
	struct rte_hash_parameters p = {
		.name = name,
		.entries = NAMES,
		.key_len = sizeof(struct pmf_flow_name),
		.hash_func = rte_jhash,
		.socket_id = e->port->socket_id,
	};

	snprintf(name, sizeof(name), "pmf_names_%u_%u", e->q->port_id, e->q->queue_id);
	e->by_name = rte_hash_create(&p);
	e->flows = calloc(FLOWS_FIRST, sizeof(*e->flows));
	e->flows_cap = FLOWS_FIRST;
	e->ep_of_port = calloc(65536, sizeof(*e->ep_of_port));
	if (!e->by_name || !e->flows || !e->ep_of_port)
		return -ENOMEM;
	return pmf_unexpected_init(e);
}

int pmf_engine_open(struct pmf_queue *q, const struct pmf_conf *conf, struct pmf_engine **out)
{
	struct pmf_engine *e = aligned_alloc(PMF_CACHE_LINE, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	memset(e, 0, sizeof(*e));
	e->q = q;
	e->port = q->port;
	e->conf = conf;
	TAILQ_INIT(&e->ready);
	TAILQ_INIT(&e->acks);
	TAILQ_INIT(&e->actives);
	TAILQ_INIT(&e->eps);
	TAILQ_INIT(&e->orphans);
	TAILQ_INIT(&e->cms);
	TAILQ_INIT(&e->shared);
	STAILQ_INIT(&e->mc_waiting);
	STAILQ_INIT(&e->mc_sent);
	TAILQ_INIT(&e->auths);
	pmf_busy_init(e);
	LIST_INIT(&e->stalled);
	pmf_wheel_init(&e->wheel, pmf_clock_ns());
	pmf_random(&e->key, sizeof(e->key));
	pmf_random(&e->port_hint, sizeof(e->port_hint));
	conf_flow(e);
	e->held_max = rte_mempool_avail_count(e->port->rx_pool) / 4;
	err = open_tables(e);
	if (err) {
		pmf_engine_close(e);
		return err;
	}
	*out = e;
	return 0;
}

/* No endpoint is left but orphans, whose time is over. */
void pmf_engine_close(struct pmf_engine *e)
{
	pmf_engine_later(e, pmf_clock_ns());
	pmf_ep_reap(e, PMF_NS_NEVER);
	pmf_queue_flush(e->q);
	while (e->active_mem) {
		void *next = *(void **)e->active_mem;

		free(e->active_mem);
		e->active_mem = next;
	}
	pmf_unexpected_fini(e);
	pmf_mcasts_close(e);
	rte_hash_free(e->by_name);
	free(e->flows);
	free(e->ep_of_port);
	free(e);
}

/* ---- the pass ---- */

bool pmf_engine_receives(struct pmf_engine *e, struct pmf_rctx *rc, pmf_ns_t now)
{
	void *rx[32];
	unsigned int n, all = 0;

	if (pmf_unlikely(rc->starved) && rc->nparts_free)
		pmf_match_again(e, rc, NULL, now);
	do {
		n = rte_ring_sc_dequeue_burst(rc->ring, rx, PMF_ARRAY_SIZE(rx), NULL);
		pmf_tsan_take(rc->ring);
		for (unsigned int i = 0; i < n; i++)
			pmf_match_posted(e, rc, rx[i], now);
		all += n;
	} while (n == PMF_ARRAY_SIZE(rx));
	return all;
}

/*
 * What is due by the clock and not by messages stands in functions of their own, here and in
 * run_timers(): the instruction guard (test/guard) leaves them out.
 */
static __attribute__((noinline)) void tick(struct pmf_engine *e, pmf_ns_t now)
{
	e->next_tick = now + TICK;
	pmf_queue_tick(e->q, now);
	pmf_eflow_rest(e, now);
	pmf_busy_forget(e, now);
	if (e->mcasts)
		pmf_mc_tick(e, now);
	if (!TAILQ_EMPTY(&e->cms))
		pmf_cm_tick(e, now);
	if (!TAILQ_EMPTY(&e->orphans))
		pmf_ep_reap(e, now);
}

static __attribute__((noinline)) bool run_timers(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_timer *t;
	bool any = false;

	while ((t = pmf_wheel_expire(&e->wheel, now))) {
		struct pmf_eflow *ef = pmf_container_of(t, struct pmf_eflow, timer);

		pmf_flow_on_timer(&ef->flow, now);
		pmf_eflow_settle(e, ef, now);
		any = true;
	}
	return any;
}

/* Frames to the device; with them go messages to groups, which are done then. */
static void flush(struct pmf_engine *e)
{
	if (e->q->nstage)
		pmf_queue_flush(e->q);
	if (pmf_unlikely(!STAILQ_EMPTY(&e->mc_sent)))
		pmf_mc_handed(e, pmf_queue_handed(e->q));
}

static inline bool pass(struct pmf_engine *e, bool answers)
{
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_ep *ep, *first;
	struct pmf_rctx *rc;
	unsigned int looks;
	bool busy = false;

	atomic_store_explicit(&e->last_pass, now, memory_order_relaxed);
	e->stats.passes++;
	if (pmf_unlikely(!LIST_EMPTY(&e->stalled))) {
		pmf_complete_retry(e);
		busy = true;
	}
	if (pmf_unlikely(atomic_load_explicit(&e->announced, memory_order_relaxed)))
		pmf_busy_collect(e);
	first = e->look_at && e->nbusy > PMF_BUSY_LOOKS ? e->look_at : TAILQ_FIRST(&e->busy);
	looks = PMF_BUSY_LOOKS;
	for (ep = first; ep && looks; ep = TAILQ_NEXT(ep, busy_link), looks--) {
		bool any = pmf_rctx_posted(ep->rctx) && pmf_engine_receives(e, ep->rctx, now);

		if (pmf_unlikely(ep->state > PMF_EP_ENABLED))
			pmf_cm_receives(e, ep);
		if (!any)
			continue;
		ep->busy_at = now;
		busy = true;
	}
	TAILQ_FOREACH (rc, &e->shared, link)
		busy |= pmf_engine_receives(e, rc, now);
	if (pmf_engine_receive(e, now)) {
		busy = true;
		e->idle_rx = 0;
	} else {
		e->idle_rx++;
	}
	if (pmf_unlikely(!STAILQ_EMPTY(&e->mc_waiting)))
		pmf_mc_retry(e);
	looks = PMF_BUSY_LOOKS;
	for (ep = first; ep && looks; ep = TAILQ_NEXT(ep, busy_link), looks--) {
		if (!rte_ring_empty(ep->tx_ring) && pmf_engine_submit(e, ep, now)) {
			ep->busy_at = now;
			busy = true;
		}
		if (ep->unkicked)
			atomic_store_explicit(&ep->unkicked, 0, memory_order_relaxed);
	}
	e->look_at = ep;
	if (pmf_wheel_due(&e->wheel, now))
		busy |= run_timers(e, now);
	if (!TAILQ_EMPTY(&e->acks))
		pmf_engine_flush_acks(e, now);
	if (!TAILQ_EMPTY(&e->ready))
		busy |= pmf_engine_transmit(e, now);
	if (pmf_unlikely(now >= e->next_tick))
		tick(e, now);
	flush(e);
	/* who sleeps until a completion comes is not kept waiting for an answer to something else
	 */
	if (!answers || atomic_load_explicit(&e->sleepers, memory_order_relaxed))
		pmf_engine_later(e, now);
	if (pmf_unlikely(e->dirty_cqs || e->dirty_cntrs))
		pmf_complete_wake(e);
	e->stats.passes_busy += busy;
	return busy;
}

bool pmf_engine_pass(struct pmf_engine *e)
{
	return pass(e, false);
}

bool pmf_engine_poll(struct pmf_engine *e)
{
	return pass(e, true);
}

bool pmf_engine_rest(struct pmf_engine *e)
{
	if (!e->later.flow)
		return false;
	pmf_engine_later(e, pmf_clock_ns());
	if (pmf_unlikely(e->dirty_cqs || e->dirty_cntrs))
		pmf_complete_wake(e);
	return true;
}

/* Has it something in flight of which no acknowledgement has come? */
static inline bool has_unanswered(const struct pmf_engine *e, const struct pmf_eflow *ef)
{
	return ef->flow.inflight > (e->later.flow == ef ? e->later.packets : 0);
}

/*
 * A flow with nothing in flight sends at once. Behind a busy one a batch has to gather: its frames
 * would only be smaller, and acknowledgements are about to open the window in a pass anyway.
 */
void pmf_engine_kick(struct pmf_engine *e, struct pmf_ep *ep, bool batch)
{
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_eflow *ef;

	pmf_engine_submit(e, ep, now);
	ef = TAILQ_LAST(&e->ready, pmf_eflowq);
	if (ef && (batch || !has_unanswered(e, ef)))
		pmf_engine_transmit(e, now);
	flush(e);
	pmf_engine_later(e, now);
	if (pmf_unlikely(e->dirty_cqs || e->dirty_cntrs))
		pmf_complete_wake(e);
}
