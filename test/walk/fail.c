/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Whose turn it is to fail, and the functions that the linker puts in place of what the provider
 * calls (--wrap).
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rte_hash.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <stdatomic.h>
#include <string.h>

#include "pmd_glue/internal.h"
#include "walk.h"

static _Atomic bool counting;
static _Atomic uint64_t counted[FAIL_KINDS];
static _Atomic uint64_t first[FAIL_KINDS], last[FAIL_KINDS];

bool fail_now(enum fail_kind kind)
{
	uint64_t n;

	if (!atomic_load_explicit(&counting, memory_order_relaxed))
		return false;
	n = atomic_fetch_add_explicit(&counted[kind], 1, memory_order_relaxed) + 1;
	if (n < first[kind] || n > last[kind])
		return false;
	errno = ENOMEM;
	return true;
}

void fail_begin(enum fail_kind kind, uint64_t from, uint64_t count)
{
	for (int k = 0; k < FAIL_KINDS; k++) {
		counted[k] = 0;
		first[k] = UINT64_MAX;
		last[k] = 0;
	}
	first[kind] = from;
	last[kind] = from + count - 1;
	counting = true;
}

void fail_pause(bool pause)
{
	counting = !pause;
}

uint64_t fail_end(enum fail_kind kind)
{
	counting = false;
	return counted[kind];
}

/* In place of pmf_quirks_find() in port.c: see walk_tx_burst(). */
const struct pmf_quirks *walk_quirks_find(const char *driver);
const struct pmf_quirks *walk_quirks_find(const char *driver)
{
	static struct pmf_quirks quirks;

	quirks = *pmf_quirks_find(driver);
	quirks.attach_min = 256;
	return &quirks;
}

/* ---- in place of what is linked; walk/meson.build has the same list ---- */

#define WRAP(kind, failure, type, name, params, args)                         \
	type __real_##name params;                                            \
	type __wrap_##name params;                                            \
	type __wrap_##name params                                             \
	{                                                                     \
		return fail_now(kind) ? (type)(failure) : __real_##name args; \
	}

WRAP(FAIL_MEMORY, NULL, void *, malloc, (size_t n), (n))
WRAP(FAIL_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAIL_MEMORY, NULL, void *, realloc, (void *p, size_t n), (p, n))
WRAP(FAIL_MEMORY, NULL, void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(FAIL_MEMORY, NULL, char *, strdup, (const char *s), (s))
WRAP(FAIL_MEMORY, NULL, struct fi_info *, fi_dupinfo, (const struct fi_info *i), (i))
WRAP(FAIL_MEMORY, EAGAIN, int, pthread_create,
     (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *arg), (t, a, f, arg))
WRAP(FAIL_MEMORY, -1, int, eventfd, (unsigned int n, int flags), (n, flags))
WRAP(FAIL_MEMORY, -1, int, epoll_create1, (int flags), (flags))
WRAP(FAIL_MEMORY, NULL, void *, rte_zmalloc, (const char *what, size_t n, unsigned int align),
     (what, n, align))
WRAP(FAIL_MEMORY, NULL, struct rte_ring *, rte_ring_create,
     (const char *name, unsigned int n, int socket, unsigned int flags), (name, n, socket, flags))
WRAP(FAIL_MEMORY, NULL, struct rte_hash *, rte_hash_create, (const struct rte_hash_parameters *p),
     (p))
WRAP(FAIL_MEMORY, -ENOSPC, int, rte_hash_add_key_data,
     (const struct rte_hash *h, const void *key, void *data), (h, key, data))
WRAP(FAIL_MEMORY, NULL, struct rte_mempool *, rte_mempool_create_empty,
     (const char *name, unsigned int n, unsigned int size, unsigned int cache, unsigned int priv,
      int socket, unsigned int flags),
     (name, n, size, cache, priv, socket, flags))
WRAP(FAIL_MEMORY, -ENOMEM, int, rte_mempool_populate_default, (struct rte_mempool * mp), (mp))
WRAP(FAIL_BUFFER, NULL, struct rte_mbuf *, rte_pktmbuf_copy,
     (const struct rte_mbuf *m, struct rte_mempool *mp, uint32_t off, uint32_t len),
     (m, mp, off, len))
