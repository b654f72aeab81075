/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The neighbours of a port: MAC addresses of next hops, resolved by ARP (RFC 826) and neighbour
 * discovery (RFC 4861). Entries are made by any engine and live as long as a path uses them; of
 * those that no path uses some are kept, and the oldest give way, so that strangers cannot fill the
 * table. The owner of the engine of queue 0 does everything else; other engines read generation and
 * MAC address of what they use, and hand over frames that must wait.
 */
#ifndef PMF_PMD_NEIGH_H
#define PMF_PMD_NEIGH_H

#include <pthread.h>
#include <stdatomic.h>

#include "pmd_glue/port.h"

enum {
	PMF_NEIGH_MAX = 4096,	/* that paths use */
	PMF_NEIGH_UNUSED = 512, /* kept beside them */
	/* A path that ends gives back its entry before one that is not used goes; so may a few
	 * engines at once. */
	PMF_NEIGH_SLOTS = PMF_NEIGH_MAX + PMF_NEIGH_UNUSED + 2 * PMF_MAX_QUEUES,
	PMF_NEIGH_BUCKETS = 16384,
	PMF_NEIGH_PEND = 8,	  /* frames that wait for one neighbour, */
	PMF_NEIGH_PEND_ALL = 512, /* and for all */
};

enum pmf_neigh_state {
	PMF_NEIGH_IDLE,	      /* unknown, and nobody has asked for it since */
	PMF_NEIGH_INCOMPLETE, /* asked for; frames wait */
	PMF_NEIGH_REACHABLE,
	PMF_NEIGH_STALE, /* old, in use until proven wrong; the next frame starts a probe */
	PMF_NEIGH_PROBE, /* being asked again; the old MAC address is used meanwhile */
	PMF_NEIGH_STATIC,
};

struct pmf_neigh {
	_Atomic uint64_t mac; /* 6 bytes as in memory; written by queue 0, read by all */
	_Atomic uint32_t gen; /* 0: no MAC address; never the same twice. As mac */
	_Atomic bool
		wanted; /* written true by all, false by queue 0: a frame met a new generation */
	uint8_t state;	/* this and below: queue 0 only */
	uint8_t tries;
	uint8_t npend;
	bool v6;
	pmf_ns_t due; /* next retry, or end of reachability */
	uint8_t ip[16];
	struct rte_mbuf *pend[PMF_NEIGH_PEND];
	/* under the lock */
	uint32_t users;		     /* paths, and frames on their way to queue 0 */
	TAILQ_ENTRY(pmf_neigh) link; /* among the unused, or the free */
};

TAILQ_HEAD(pmf_neighq, pmf_neigh);

struct pmf_neigh_table {
	struct pmf_port *port;
	pthread_mutex_t lock;	 /* makers and users of entries */
	_Atomic uint32_t count;	 /* written under the lock; entries below it have been made */
	uint32_t nused, nunused; /* this and the next: the lock */
	struct pmf_neighq unused, free; /* unused: the oldest first */
	_Atomic bool wanted; /* some entry's `wanted` may be set. Written by all, cleared by 0 */
	uint32_t last_gen;   /* queue 0 only */
	uint32_t npend;	     /* queue 0 only: frames that wait, of all entries */
	pmf_ns_t next_due;   /* queue 0 only: no entry is due earlier */
	struct rte_ring *handoff; /* frames of other queues that must wait; index in hash.usr */
	uint16_t bucket[PMF_NEIGH_BUCKETS]; /* index + 1; the lock */
	struct pmf_neigh e[PMF_NEIGH_SLOTS];
};

/** Make the table with the port's static entries. @return NULL: no memory */
struct pmf_neigh_table *pmf_neigh_open(struct pmf_port *port);

/** Free the table and the frames that wait in it. */
void pmf_neigh_close(struct pmf_neigh_table *t);

/**
 * Find or make the entry of @p ip (16 bytes), and use it from now on. Any engine.
 * @return its index; -ENOBUFS: PMF_NEIGH_MAX are in use
 */
int pmf_neigh_get(struct pmf_neigh_table *t, const uint8_t ip[16]);

/** Use it no more: the last one leaves it to be forgotten. Any engine. */
void pmf_neigh_put(struct pmf_queue *q, uint16_t index);

/** MAC address and generation of an entry. Any engine. @return the generation, 0 if unresolved */
uint32_t pmf_neigh_mac(struct pmf_neigh_table *t, uint16_t index, uint8_t mac[6]);

/**
 * Take a frame, complete but for its destination MAC address, until the entry is resolved, and
 * start the resolution. Any engine; takes the mbuf.
 */
void pmf_neigh_hold(struct pmf_queue *q, uint16_t index, struct rte_mbuf *m, pmf_ns_t now);

/** An answer addressed to us. Learnt only if we asked. Owner of queue 0. */
void pmf_neigh_answered(struct pmf_queue *q, const uint8_t ip[16], const uint8_t mac[6],
			pmf_ns_t now);

/**
 * A neighbour spoke unasked. Learnt only when nothing contradicts and @p to_us says it was asking
 * for us; a contradiction only makes us ask. Owner of queue 0.
 */
void pmf_neigh_heard(struct pmf_queue *q, const uint8_t ip[16], const uint8_t mac[6], bool to_us,
		     pmf_ns_t now);

/** Ask again now for all that is unresolved: the link came up. Owner of queue 0. */
void pmf_neigh_kick(struct pmf_queue *q, pmf_ns_t now);

/** Retries, ageing and handed-over frames. Owner of queue 0. */
void pmf_neigh_tick(struct pmf_queue *q, pmf_ns_t now);

#endif
