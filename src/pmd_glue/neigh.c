/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The neighbour table and its timers. The owner of queue 0 changes entries; others make entries
 * under the lock, read addresses, and set the `wanted` flags.
 */
#include "pmd_glue/neigh.h"

#include <stdio.h>
#include <stdlib.h>

#include <rte_errno.h>

#include "pmd_glue/internal.h"

/*
 * The first requests follow each other closely, since links lose their first frames (the other
 * side is not ready when the link shows up); the later ones keep RFC 4861's RETRANS_TIMER.
 */
static const pmf_ns_t retry_after[] = {
	5 * PMF_NS_PER_MS, 20 * PMF_NS_PER_MS, 100 * PMF_NS_PER_MS,
	PMF_NS_PER_S,	   PMF_NS_PER_S,       PMF_NS_PER_S,
};

/* A probe asks the known MAC address alone this often, then everyone. */
enum { UNICAST_TRIES = 3 };

static const pmf_ns_t reachable_time = 30 * PMF_NS_PER_S;
/* Contradictions make us ask, but not more often than this. */
static const pmf_ns_t suspect_pause = 100 * PMF_NS_PER_MS;

#define BUCKET_MASK (PMF_NEIGH_BUCKETS - 1)

static uint32_t hash_ip(const uint8_t ip[16])
{
	uint64_t a, b;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	a = (a ^ (b * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
	return (uint32_t)(a >> 40);
}

/* @return the index, or -ENOENT with *slot where it belongs. */
static int table_find(const struct pmf_neigh_table *t, const uint8_t ip[16], uint32_t *slot)
{
	uint32_t s = hash_ip(ip) & BUCKET_MASK;

	for (; t->bucket[s]; s = (s + 1) & BUCKET_MASK)
		if (memcmp(t->e[t->bucket[s] - 1].ip, ip, 16) == 0)
			return t->bucket[s] - 1;
	*slot = s;
	return -ENOENT;
}

static int table_find_locked(struct pmf_neigh_table *t, const uint8_t ip[16])
{
	uint32_t slot;
	int i;

	pthread_mutex_lock(&t->lock);
	i = table_find(t, ip, &slot);
	pthread_mutex_unlock(&t->lock);
	return i;
}

/* Under the lock. What a gap would hide moves into it (Knuth, TAOCP 3, 6.4, algorithm R). */
static void table_remove(struct pmf_neigh_table *t, const struct pmf_neigh *e)
{
	uint32_t gap = hash_ip(e->ip) & BUCKET_MASK, s;

	while (t->bucket[gap] != e - t->e + 1)
		gap = (gap + 1) & BUCKET_MASK;
	for (s = (gap + 1) & BUCKET_MASK; t->bucket[s]; s = (s + 1) & BUCKET_MASK) {
		const uint32_t home = hash_ip(t->e[t->bucket[s] - 1].ip) & BUCKET_MASK;

		if (((s - home) & BUCKET_MASK) < ((s - gap) & BUCKET_MASK))
			continue;
		t->bucket[gap] = t->bucket[s];
		gap = s;
	}
	t->bucket[gap] = 0;
}

/* Under the lock. @return the index, or -ENOBUFS */
static int table_make(struct pmf_neigh_table *t, const uint8_t ip[16], uint32_t slot)
{
	struct pmf_neigh *e = TAILQ_FIRST(&t->free);
	const uint32_t n = atomic_load_explicit(&t->count, memory_order_relaxed);
	struct pmf_addr a;

	if (e)
		TAILQ_REMOVE(&t->free, e, link);
	else if (n < PMF_NEIGH_SLOTS)
		e = &t->e[n];
	else
		return -ENOBUFS;
	memcpy(e->ip, ip, 16);
	memcpy(a.ip, ip, 16);
	e->v6 = !pmf_addr_is_v4(&a);
	e->due = PMF_NS_NEVER;
	t->bucket[slot] = (uint16_t)(e - t->e + 1);
	TAILQ_INSERT_TAIL(&t->unused, e, link);
	t->nunused++;
	if (e == &t->e[n]) /* Pairs with the acquire in pmf_neigh_tick(): the entry is whole. */
		atomic_store_explicit(&t->count, n + 1, memory_order_release);
	return (int)(e - t->e);
}

int pmf_neigh_get(struct pmf_neigh_table *t, const uint8_t ip[16])
{
	struct pmf_neigh *e;
	uint32_t slot;
	int i;

	pthread_mutex_lock(&t->lock);
	i = table_find(t, ip, &slot);
	if ((i < 0 || t->e[i].users == 0) && t->nused == PMF_NEIGH_MAX)
		i = -ENOBUFS;
	if (i == -ENOENT)
		i = table_make(t, ip, slot);
	if (i >= 0) {
		e = &t->e[i];
		if (e->users++ == 0) {
			TAILQ_REMOVE(&t->unused, e, link);
			t->nunused--;
			t->nused++;
		}
	}
	pthread_mutex_unlock(&t->lock);
	return i;
}

static void pend_drop(struct pmf_queue *q, struct pmf_neigh *e)
{
	q->stats.tx_no_neigh += e->npend;
	q->port->neigh->npend -= e->npend;
	while (e->npend > 0)
		rte_pktmbuf_free(e->pend[--e->npend]);
}

/* The oldest of those that nobody uses is forgotten. Queue 0, under the lock. */
static void forget_oldest(struct pmf_queue *q)
{
	struct pmf_neigh_table *t = q->port->neigh;
	struct pmf_neigh *e = TAILQ_FIRST(&t->unused);

	TAILQ_REMOVE(&t->unused, e, link);
	t->nunused--;
	table_remove(t, e);
	pend_drop(q, e);
	e->state = PMF_NEIGH_IDLE;
	e->due = PMF_NS_NEVER;
	atomic_store_explicit(&e->gen, 0, memory_order_relaxed);
	TAILQ_INSERT_HEAD(&t->free, e, link);
}

void pmf_neigh_put(struct pmf_queue *q, uint16_t index)
{
	struct pmf_neigh_table *t = q->port->neigh;
	struct pmf_neigh *e = &t->e[index];

	pthread_mutex_lock(&t->lock);
	if (--e->users == 0) {
		TAILQ_INSERT_TAIL(&t->unused, e, link);
		t->nunused++;
		t->nused--;
	}
	while (q->queue_id == 0 && t->nunused > PMF_NEIGH_UNUSED)
		forget_oldest(q);
	pthread_mutex_unlock(&t->lock);
}

uint32_t pmf_neigh_mac(struct pmf_neigh_table *t, uint16_t index, uint8_t mac[6])
{
	struct pmf_neigh *e = &t->e[index];
	uint32_t gen, again;
	uint64_t v;

	/* A sequence count of one word: the generation changes after the address, see
	 * entry_set_mac(). */
	do {
		gen = atomic_load_explicit(&e->gen, memory_order_acquire);
		v = atomic_load_explicit(&e->mac, memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		again = atomic_load_explicit(&e->gen, memory_order_relaxed);
	} while (gen != again);
	memcpy(mac, &v, 6);
	atomic_store_explicit(&e->wanted, true, memory_order_relaxed);
	atomic_store_explicit(&t->wanted, true, memory_order_release);
	return gen;
}

static void entry_mac(struct pmf_neigh *e, uint8_t mac[6])
{
	const uint64_t v = atomic_load_explicit(&e->mac, memory_order_relaxed);

	memcpy(mac, &v, 6);
}

static void entry_due(struct pmf_neigh_table *t, struct pmf_neigh *e, pmf_ns_t due)
{
	e->due = due;
	t->next_due = PMF_MIN(t->next_due, due);
}

/* A new generation makes every path look at the entry once more. */
static void entry_new_gen(struct pmf_neigh_table *t, struct pmf_neigh *e)
{
	if (++t->last_gen == 0)
		t->last_gen = 1;
	atomic_store_explicit(&e->gen, t->last_gen, memory_order_release);
}

static void entry_set_mac(struct pmf_neigh_table *t, struct pmf_neigh *e, const uint8_t mac[6])
{
	uint64_t v = 0;

	memcpy(&v, mac, 6);
	if (atomic_load_explicit(&e->gen, memory_order_relaxed) != 0 &&
	    atomic_load_explicit(&e->mac, memory_order_relaxed) == v)
		return;
	/* A reader that sees the new address under the old generation reads again: gen 0 between.
	 */
	atomic_store_explicit(&e->gen, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&e->mac, v, memory_order_relaxed);
	entry_new_gen(t, e);
}

static void entry_solicit(struct pmf_queue *q, struct pmf_neigh *e)
{
	uint8_t mac[6];
	const bool alone = e->state == PMF_NEIGH_PROBE && e->tries < UNICAST_TRIES;

	entry_mac(e, mac);
	if (e->v6)
		pmf_nd_solicit(q, e->ip, alone ? mac : NULL);
	else
		pmf_arp_solicit(q, e->ip + 12, alone ? mac : NULL);
}

static void entry_ask(struct pmf_queue *q, struct pmf_neigh *e, enum pmf_neigh_state state,
		      pmf_ns_t now)
{
	e->state = (uint8_t)state;
	e->tries = 0;
	entry_solicit(q, e);
	entry_due(q->port->neigh, e, now + retry_after[0]);
}

static void pend_send(struct pmf_queue *q, struct pmf_neigh *e)
{
	uint8_t mac[6];
	unsigned int i;

	entry_mac(e, mac);
	for (i = 0; i < e->npend; i++) {
		memcpy(rte_pktmbuf_mtod(e->pend[i], uint8_t *), mac, 6);
		pmf_stage_or_drop(q, e->pend[i]);
	}
	q->port->neigh->npend -= e->npend;
	e->npend = 0;
}

static void entry_learn(struct pmf_queue *q, struct pmf_neigh *e, const uint8_t mac[6],
			pmf_ns_t now)
{
	entry_set_mac(q->port->neigh, e, mac);
	e->state = PMF_NEIGH_REACHABLE;
	e->tries = 0;
	entry_due(q->port->neigh, e, now + reachable_time);
	pend_send(q, e);
}

/*
 * Frames that wait are bounded, for one neighbour and in all: the oldest of this one makes room, or
 * those of one that nobody uses. @return false: there is no room
 */
static bool pend_room(struct pmf_queue *q, struct pmf_neigh *e)
{
	struct pmf_neigh_table *t = q->port->neigh;

	if (e->npend == PMF_NEIGH_PEND || (e->npend && t->npend == PMF_NEIGH_PEND_ALL)) {
		/* The newest frames are worth most (RFC 1122 §2.3.2.2). */
		rte_pktmbuf_free(e->pend[0]);
		q->stats.tx_no_neigh++;
		memmove(e->pend, e->pend + 1, sizeof(e->pend[0]) * (PMF_NEIGH_PEND - 1));
		e->npend--;
		t->npend--;
	}
	if (pmf_likely(t->npend < PMF_NEIGH_PEND_ALL))
		return true;
	pthread_mutex_lock(&t->lock);
	while (t->npend == PMF_NEIGH_PEND_ALL && !TAILQ_EMPTY(&t->unused))
		forget_oldest(q);
	pthread_mutex_unlock(&t->lock);
	return t->npend < PMF_NEIGH_PEND_ALL;
}

static void hold_here(struct pmf_queue *q, struct pmf_neigh *e, struct rte_mbuf *m, pmf_ns_t now)
{
	uint8_t mac[6];

	if (atomic_load_explicit(&e->gen, memory_order_relaxed) != 0) {
		entry_mac(e, mac);
		memcpy(rte_pktmbuf_mtod(m, uint8_t *), mac, 6);
		pmf_stage_or_drop(q, m);
		return;
	}
	if (pend_room(q, e)) {
		e->pend[e->npend++] = m;
		q->port->neigh->npend++;
	} else {
		rte_pktmbuf_free(m);
		q->stats.tx_no_neigh++;
	}
	if (e->state == PMF_NEIGH_IDLE)
		entry_ask(q, e, PMF_NEIGH_INCOMPLETE, now);
}

void pmf_neigh_hold(struct pmf_queue *q, uint16_t index, struct rte_mbuf *m, pmf_ns_t now)
{
	struct pmf_neigh_table *t = q->port->neigh;

	if (q->queue_id == 0) {
		hold_here(q, &t->e[index], m, now);
		return;
	}
	m->hash.usr = index;
	pthread_mutex_lock(&t->lock);
	t->e[index].users++; /* the path that sends it is one already */
	pthread_mutex_unlock(&t->lock);
	pmf_tsan_give(t->handoff);
	if (rte_ring_enqueue(t->handoff, m) != 0) {
		q->stats.tx_no_neigh++;
		rte_pktmbuf_free(m);
		pmf_neigh_put(q, index);
	}
}

static void entry_timeout(struct pmf_queue *q, struct pmf_neigh *e, pmf_ns_t now)
{
	struct pmf_neigh_table *t = q->port->neigh;

	switch ((enum pmf_neigh_state)e->state) {
	case PMF_NEIGH_INCOMPLETE:
	case PMF_NEIGH_PROBE:
		if (++e->tries < PMF_ARRAY_SIZE(retry_after)) {
			entry_solicit(q, e);
			entry_due(t, e, now + retry_after[e->tries]);
			break;
		}
		/* The next frame begins anew. */
		atomic_store_explicit(&e->gen, 0, memory_order_release);
		e->state = PMF_NEIGH_IDLE;
		e->due = PMF_NS_NEVER;
		pend_drop(q, e);
		break;
	case PMF_NEIGH_REACHABLE:
		/* Paths find a new generation, look, and so tell whether anybody still sends there.
		 */
		e->state = PMF_NEIGH_STALE;
		e->due = PMF_NS_NEVER;
		atomic_store_explicit(&e->wanted, false, memory_order_relaxed);
		entry_new_gen(t, e);
		break;
	default:
		e->due = PMF_NS_NEVER;
		break;
	}
}

/*
 * Somebody claims the address for another MAC address: a restarted peer, or a lie. Everyone is
 * asked, and the answer believed; but not sooner than a while after the last answer.
 */
static void entry_suspect(struct pmf_queue *q, struct pmf_neigh *e, pmf_ns_t now)
{
	const pmf_ns_t learnt = e->state == PMF_NEIGH_REACHABLE ? e->due - reachable_time : 0;

	e->state = PMF_NEIGH_PROBE;
	e->tries = UNICAST_TRIES - 1;
	e->due = learnt + suspect_pause;
	if (e->due <= now)
		entry_timeout(q, e, now);
	else
		entry_due(q->port->neigh, e, e->due);
}

static struct pmf_neigh *entry_of(struct pmf_queue *q, const uint8_t ip[16])
{
	const int i = table_find_locked(q->port->neigh, ip);

	return i < 0 ? NULL : &q->port->neigh->e[i];
}

void pmf_neigh_answered(struct pmf_queue *q, const uint8_t ip[16], const uint8_t mac[6],
			pmf_ns_t now)
{
	struct pmf_neigh *e = entry_of(q, ip);

	if (!e)
		return;
	if (e->state == PMF_NEIGH_INCOMPLETE || e->state == PMF_NEIGH_PROBE)
		entry_learn(q, e, mac, now);
	else
		pmf_neigh_heard(q, ip, mac, false, now);
}

void pmf_neigh_heard(struct pmf_queue *q, const uint8_t ip[16], const uint8_t mac[6], bool to_us,
		     pmf_ns_t now)
{
	struct pmf_neigh *e = entry_of(q, ip);
	uint8_t known[6];

	if (!e || e->state == PMF_NEIGH_STATIC)
		return;
	entry_mac(e, known);
	switch ((enum pmf_neigh_state)e->state) {
	case PMF_NEIGH_IDLE:
	case PMF_NEIGH_INCOMPLETE:
		if (to_us)
			entry_learn(q, e, mac, now);
		else if (e->state == PMF_NEIGH_INCOMPLETE)
			entry_ask(q, e, PMF_NEIGH_INCOMPLETE, now);
		break;
	case PMF_NEIGH_STALE:
		if (to_us && memcmp(known, mac, 6) == 0) {
			entry_learn(q, e, mac, now);
			break;
		}
		/* fall through */
	case PMF_NEIGH_REACHABLE:
		if (memcmp(known, mac, 6) != 0)
			entry_suspect(q, e, now);
		break;
	case PMF_NEIGH_PROBE:
	case PMF_NEIGH_STATIC:
		break;
	}
}

void pmf_neigh_kick(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_neigh_table *t = q->port->neigh;
	const uint32_t n = atomic_load_explicit(&t->count, memory_order_acquire);
	uint32_t i;

	for (i = 0; i < n; i++)
		if (t->e[i].state == PMF_NEIGH_INCOMPLETE)
			entry_ask(q, &t->e[i], PMF_NEIGH_INCOMPLETE, now);
}

static void handoff_drain(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_neigh_table *t = q->port->neigh;
	void *m;

	while (rte_ring_dequeue(t->handoff, &m) == 0) {
		uint16_t index;

		pmf_tsan_take(t->handoff);
		index = (uint16_t)((struct rte_mbuf *)m)->hash.usr;
		hold_here(q, &t->e[index], m, now);
		pmf_neigh_put(q, index);
	}
}

static void wanted_scan(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_neigh_table *t = q->port->neigh;
	const uint32_t n = atomic_load_explicit(&t->count, memory_order_acquire);
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct pmf_neigh *e = &t->e[i];

		if (e->state == PMF_NEIGH_STALE &&
		    atomic_load_explicit(&e->wanted, memory_order_relaxed))
			entry_ask(q, e, PMF_NEIGH_PROBE, now);
	}
}

void pmf_neigh_tick(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_neigh_table *t = q->port->neigh;
	uint32_t i, n;

	if (!rte_ring_empty(t->handoff))
		handoff_drain(q, now);
	if (atomic_load_explicit(&t->wanted, memory_order_relaxed) &&
	    atomic_exchange_explicit(&t->wanted, false, memory_order_acquire))
		wanted_scan(q, now);
	if (now < t->next_due)
		return;
	t->next_due = PMF_NS_NEVER;
	n = atomic_load_explicit(&t->count, memory_order_acquire);
	for (i = 0; i < n; i++) {
		if (t->e[i].due <= now)
			entry_timeout(q, &t->e[i], now);
		t->next_due = PMF_MIN(t->next_due, t->e[i].due);
	}
}

struct pmf_neigh_table *pmf_neigh_open(struct pmf_port *port)
{
	/* Zeroed pages cost nothing until an entry is used. */
	struct pmf_neigh_table *t = calloc(1, sizeof(*t));
	char name[RTE_RING_NAMESIZE];
	unsigned int i;

	if (!t)
		return NULL;
	t->port = port;
	t->next_due = PMF_NS_NEVER;
	TAILQ_INIT(&t->unused);
	TAILQ_INIT(&t->free);
	pthread_mutex_init(&t->lock, NULL);
	snprintf(name, sizeof(name), "pmf_neigh_%u", port->port_id);
	/* Relaxed tail: a producer that is preempted inside does not hold up the others. */
	t->handoff = rte_ring_create(name, 256, port->socket_id, RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
	if (!t->handoff) {
		pthread_mutex_destroy(&t->lock);
		free(t);
		return NULL;
	}
	for (i = 0; i < port->conf.nneigh; i++) {
		const int e = pmf_neigh_get(t, port->conf.neigh[i].ip.ip);

		t->e[e].state = PMF_NEIGH_STATIC;
		entry_set_mac(t, &t->e[e], port->conf.neigh[i].mac);
	}
	return t;
}

void pmf_neigh_close(struct pmf_neigh_table *t)
{
	const uint32_t n = atomic_load_explicit(&t->count, memory_order_acquire);
	void *m;
	uint32_t i;

	for (i = 0; i < n; i++)
		while (t->e[i].npend > 0)
			rte_pktmbuf_free(t->e[i].pend[--t->e[i].npend]);
	while (rte_ring_dequeue(t->handoff, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(t->handoff);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
