/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A flow's life: begin, states, queues, the loan of its active part, and its end.
 */
#include "proto/flow_private.h"

const char *const pmf_flow_state_name[PMF_FLOW_STATES] = {
	"idle", "hello", "opening", "open", "resync", "dead",
};

const struct pmf_stat_desc pmf_flow_stat_desc[] = {PMF_FLOW_STATS(PMF_STAT_DESC)};
const unsigned int pmf_flow_stat_count = PMF_ARRAY_SIZE(pmf_flow_stat_desc);

#define TO(state) (1u << PMF_FLOW_##state)

static const uint8_t flow_steps[PMF_FLOW_STATES] = {
	[PMF_FLOW_IDLE] = TO(HELLO) | TO(OPEN) | TO(DEAD),
	[PMF_FLOW_HELLO] = TO(OPENING) | TO(OPEN) | TO(DEAD),
	[PMF_FLOW_OPENING] = TO(OPEN) | TO(DEAD),
	[PMF_FLOW_OPEN] = TO(RESYNC) | TO(DEAD),
	[PMF_FLOW_RESYNC] = TO(OPEN) | TO(DEAD),
};

static const uint8_t item_steps[] = {
	[PMF_ITEM_NEW] = 1u << PMF_ITEM_QUEUED | 1u << PMF_ITEM_DONE,
	[PMF_ITEM_QUEUED] = 1u << PMF_ITEM_PARKED | 1u << PMF_ITEM_DONE | 1u << PMF_ITEM_QUEUED,
	[PMF_ITEM_PARKED] = 1u << PMF_ITEM_QUEUED | 1u << PMF_ITEM_DONE,
	[PMF_ITEM_DONE] = 0,
};

/* Take a step if it is allowed. @return whether it was; those that are not are counted. */
bool pmf_flow_step(struct pmf_flow *f, enum pmf_flow_state to)
{
	if (!(flow_steps[f->state] >> to & 1)) {
		f->bad_steps++;
		return false;
	}
	f->state = (uint8_t)to;
	return true;
}

bool pmf_item_step(struct pmf_flow *f, struct pmf_item *item, enum pmf_item_state to)
{
	if (pmf_unlikely(!(item_steps[item->state] >> to & 1))) {
		f->bad_steps++;
		return false;
	}
	item->state = (uint8_t)to;
	return true;
}

void pmf_flow_init(struct pmf_flow *f, const struct pmf_flow_conf *conf,
		   const struct pmf_flow_ident *id, struct pmf_flow_stats *stats, pmf_ns_t now)
{
	memset(f, 0, sizeof(*f));
	f->conf = conf;
	f->stats = stats;
	f->id = *id;
	f->nonce = f->nonce_void = id->nonce;
	f->txno_next = 1;
	f->ack_at = PMF_NS_NEVER;
	f->loss_at = PMF_NS_NEVER;
	f->slow_at = PMF_NS_NEVER;
	pmf_flow_set_window(f);
	f->mtu = PMF_MIN(PMF_WIRE_MIN_PAYLOAD, conf->max_payload) - id->tail;
	f->rx_limit = f->rx_told = conf->rx_credit >> PMF_CREDIT_SHIFT;
	f->last_rx = now;
	f->rx_aborted = UINT64_MAX;
	pmf_cc_init(&f->cc, conf->window, conf->queue_aim);
	pmf_rtt_init(&f->rtt);
	for (unsigned int q = 0; q < PMF_QUEUES; q++)
		STAILQ_INIT(&f->txq[q].items);
	TAILQ_INIT(&f->parked);
	TAILQ_INIT(&f->waiting);
	STAILQ_INIT(&f->done);
}

void pmf_flow_item_done(struct pmf_flow *f, struct pmf_item *item, int status)
{
	if (!pmf_item_step(f, item, PMF_ITEM_DONE))
		return;
	item->status = status;
	if (status == 0 && item->kind == PMF_ITEM_MSG)
		f->stats->tx_msgs++;
	STAILQ_INSERT_TAIL(&f->done, item, link);
}

void pmf_flow_enqueue(struct pmf_flow *f, struct pmf_item *item, enum pmf_flow_queue q)
{
	struct pmf_txq *txq = &f->txq[q];

	if (pmf_unlikely(f->state == PMF_FLOW_DEAD)) {
		pmf_flow_item_done(f, item, -f->error);
		return;
	}
	if (!pmf_item_step(f, item, PMF_ITEM_QUEUED))
		return;
	STAILQ_INSERT_TAIL(&txq->items, item, link);
	if (!txq->cur) {
		txq->cur = item;
		txq->off = 0;
		f->ready |= (uint8_t)(1u << q);
	}
	if (pmf_unlikely(f->state == PMF_FLOW_IDLE))
		f->want |= PMF_WANT_HELLO;
}

void pmf_flow_push(struct pmf_flow *f, struct pmf_item *item)
{
	item->state = PMF_ITEM_NEW;
	item->mode = PMF_MODE_NONE;
	item->status = 0;
	item->aborted = item->held = item->invited = false;
	item->msg = f->tx_msg++;
	pmf_flow_enqueue(f, item, PMF_Q_SEND);
}

size_t pmf_flow_active_size(uint32_t window)
{
	size_t size = sizeof(struct pmf_flow_active) + window * sizeof(struct pmf_txpkt) +
		      2 * (size_t)window * sizeof(pmf_ns_t) +
		      2 * ((window + 63) / 64) * sizeof(uint64_t);

	return (size + PMF_CACHE_LINE - 1) & ~(size_t)(PMF_CACHE_LINE - 1);
}

uint32_t pmf_flow_window_wanted(const struct pmf_flow *f)
{
	if (!pmf_flow_needs_active(f))
		return 0;
	return f->want_window ? f->want_window : PMF_MIN(PMF_WINDOW_LEAST, f->conf->window);
}

void pmf_flow_want_window(struct pmf_flow *f, uint32_t packets)
{
	uint32_t least = PMF_MAX(pmf_roundup_pow2(packets), PMF_WINDOW_LEAST);

	f->want_window = (uint16_t)PMF_MIN(least, f->conf->window);
}

void pmf_flow_make_do(struct pmf_flow *f)
{
	f->want_window = 0;
}

void pmf_flow_set_window(struct pmf_flow *f)
{
	uint32_t most = f->state == PMF_FLOW_OPEN || f->state == PMF_FLOW_RESYNC
				? f->conf->window
				: PMF_MIN(PMF_OPENING_WINDOW, f->conf->window);

	f->tx_window = (uint16_t)(f->active ? PMF_MIN(most, f->active->mask + 1) : most);
}

/* The packets of one list, in its order. */
static void move_list(const struct pmf_flow *f, const struct pmf_flow_active *from, uint16_t slot,
		      struct pmf_flow_active *to, struct pmf_pktlist *list)
{
	for (; slot != PMF_PKT_NONE; slot = from->pkt[slot].next) {
		pmf_psn_t psn = f->una + ((slot - (uint32_t)f->una) & from->mask);

		pmf_pktlist_append(to, list, pmf_pkt(to, psn));
	}
}

/* What a smaller window holds: the same packets have other places in a larger one. */
static void move_window(const struct pmf_flow *f, const struct pmf_flow_active *from,
			struct pmf_flow_active *to)
{
	const uint64_t ntimes = 2 * ((uint64_t)from->mask + 1);

	for (pmf_psn_t psn = f->una; psn != f->psn_next; psn++) {
		struct pmf_txpkt *p = pmf_pkt(to, psn);

		*p = from->pkt[psn & from->mask];
		if (p->state == PMF_PKT_SACKED)
			pmf_map_set(to->tx_map, (uint32_t)psn & to->mask);
	}
	move_list(f, from, from->sent.head, to, &to->sent);
	move_list(f, from, from->lost.head, to, &to->lost);
	for (pmf_psn_t psn = f->rcv_next; psn <= f->rcv_next + from->mask; psn++)
		if (pmf_map_test(from->rx_map, (uint32_t)psn & from->mask))
			pmf_map_set(to->rx_map, (uint32_t)psn & to->mask);
	for (uint64_t n = f->txno_next - PMF_MIN(ntimes, f->txno_next); n != f->txno_next; n++)
		to->times[n & (2 * (uint64_t)to->mask + 1)] = from->times[n & (ntimes - 1)];
	to->sack_from = from->sack_from;
}

void *pmf_flow_lend(struct pmf_flow *f, void *mem, uint32_t window)
{
	struct pmf_flow_active *a = mem, *before = f->active;

	memset(a, 0, pmf_flow_active_size(window));
	pmf_pktlist_init(&a->sent);
	pmf_pktlist_init(&a->lost);
	a->mask = window - 1;
	a->times = (pmf_ns_t *)(void *)&a->pkt[window];
	a->rx_map = a->times + 2 * (size_t)window;
	a->tx_map = a->rx_map + (window + 63) / 64;
	if (before)
		move_window(f, before, a);
	f->active = a;
	f->want_window = 0;
	pmf_flow_set_window(f);
	return before;
}

void *pmf_flow_reclaim(struct pmf_flow *f)
{
	void *mem = f->active;

	f->active = NULL;
	pmf_flow_set_window(f);
	return mem;
}

bool pmf_flow_is_quiet(const struct pmf_flow *f)
{
	if (f->state == PMF_FLOW_DEAD)
		return true;
	return f->una == f->psn_next && f->ahead == 0 && f->ready == 0 && !f->blocked &&
	       f->state != PMF_FLOW_RESYNC;
}

/* The list's links are those by which items come out of done. */
static void fail_queue(struct pmf_flow *f, struct pmf_itemq *q)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(q)) != NULL) {
		STAILQ_REMOVE_HEAD(q, link);
		pmf_flow_item_done(f, item, item->aborted ? -ECANCELED : -f->error);
	}
}

static void fail_park(struct pmf_flow *f, struct pmf_itempark *park)
{
	struct pmf_item *item;

	while ((item = TAILQ_FIRST(park)) != NULL) {
		TAILQ_REMOVE(park, item, park);
		pmf_flow_item_done(f, item, -f->error);
	}
}

void pmf_flow_kill(struct pmf_flow *f, int error)
{
	if (f->state == PMF_FLOW_DEAD || !pmf_flow_step(f, PMF_FLOW_DEAD))
		return;
	f->error = error;
	f->want = f->ready = 0;
	f->ack_at = f->loss_at = f->slow_at = PMF_NS_NEVER;
	f->want_window = 0;
	f->inflight = f->lost = f->ahead = 0;
	/* What was acknowledged but for a HOLD under way comes first: it was sent first. */
	fail_park(f, &f->waiting);
	fail_park(f, &f->parked);
	fail_queue(f, &f->txq[PMF_Q_BODY].items);
	fail_queue(f, &f->txq[PMF_Q_SEND].items);
	fail_queue(f, &f->txq[PMF_Q_CTL].items);
	for (unsigned int q = 0; q < PMF_QUEUES; q++)
		f->txq[q].cur = NULL;
}
