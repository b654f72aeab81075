/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The peers' table of an AV: fi_addr_t → address, one or two loads and no lock for the posting
 * thread. The AV in fabric changes it; endpoints bound to the AV learn of it under their engine's
 * owner word.
 */
#ifndef PMF_MSG_PEERS_H
#define PMF_MSG_PEERS_H

#include <rdma/fabric.h>
#include <rte_hash.h>
#include <stdatomic.h>

#include "pmf_common.h"

#define PMF_PEERS_CHUNK_BITS 12
#define PMF_PEERS_CHUNK (1u << PMF_PEERS_CHUNK_BITS)
#define PMF_PEERS_CHUNKS 1024 /* 4 M peers */

/* Headers before 1.20 have no keys in address vectors. */
#ifdef FI_AUTH_KEY
#define PMF_AUTH_KEY FI_AUTH_KEY
#else
#define PMF_AUTH_KEY 0ull
#endif

struct pmf_ep;

struct pmf_peers {
	/* peer → fi_addr_t; written under the AV's lock, read by engines: rte_hash with
	 * lock-free reading */
	struct rte_hash *by_peer;
	/* chunks are set once by the control path and stay until the table closes */
	struct pmf_peer *_Atomic *_Atomic chunk[PMF_PEERS_CHUNKS];
	TAILQ_HEAD(, pmf_ep) eps; /* bound endpoints; the lock of the AV */
	/* bit n: the AV has a key of number n; written under its lock, read by posters */
	_Atomic uint32_t keys;
};

/** @param max  addresses that it must hold; NULL: no memory */
struct pmf_peers *pmf_peers_open(uint32_t max);
void pmf_peers_close(struct pmf_peers *p); /* no endpoint is bound */

/**
 * Enter a peer. Control path, under the AV's lock; tells every bound endpoint, so that messages
 * of a source that came before its insert get their fi_addr_t.
 * @return 0, -ENOMEM, -ENOSPC
 */
int pmf_peers_set(struct pmf_peers *p, fi_addr_t fi_addr, const struct pmf_peer *peer);
/** Take it out; every bound endpoint forgets the fi_addr_t (its flow stays until it is idle). */
void pmf_peers_unset(struct pmf_peers *p, fi_addr_t fi_addr);

/** Any thread: the fi_addr_t of @p peer, or FI_ADDR_NOTAVAIL. */
fi_addr_t pmf_peers_find(struct pmf_peers *p, const struct pmf_peer *peer);

/** Any thread: is @p a the fi_addr_t of a key that the AV has? */
static inline bool pmf_peers_have_key(struct pmf_peers *p, fi_addr_t a)
{
	return (a & ~(fi_addr_t)31) == PMF_KEY_ADDR &&
	       (atomic_load_explicit(&p->keys, memory_order_relaxed) >> (a & 31) & 1);
}

/** Any thread: the peer or NULL. The pointer is good while the fi_addr_t is inserted. */
static inline struct pmf_peer *pmf_peers_get(struct pmf_peers *p, fi_addr_t a)
{
	struct pmf_peer *_Atomic *chunk;

	if (pmf_unlikely(a >= (fi_addr_t)PMF_PEERS_CHUNKS * PMF_PEERS_CHUNK))
		return NULL;
	/* acquire pairs with the release of pmf_peers_set() */
	chunk = atomic_load_explicit(&p->chunk[a >> PMF_PEERS_CHUNK_BITS], memory_order_acquire);
	if (pmf_unlikely(!chunk))
		return NULL;
	return atomic_load_explicit(&chunk[a & (PMF_PEERS_CHUNK - 1)], memory_order_acquire);
}

#endif
