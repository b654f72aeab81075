/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Completion queues: one single-producer ring for each engine that feeds the queue. The engine's
 * owner writes, the reader takes the rings in turn. Several readers exclude each other by a
 * try-lock (FI_THREAD_SAFE only). Nothing here runs an engine: that is msg's.
 */
#ifndef PMF_COMPLETION_CQ_H
#define PMF_COMPLETION_CQ_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rte_ring.h>
#include <rte_ring_peek_zc.h>
#include <stdatomic.h>

#include "completion/wait.h"
#include "pmf_common.h"
#include "pmf_tsan.h"

#define PMF_MAX_FEEDS 64 /* engines that can feed one CQ or counter */
#define PMF_CQ_STASH 32
#define PMF_CQ_ERR_DATA 80 /* an address in the longest format */

/* One completion as it stands in a ring: a cache line. */
struct pmf_cqe {
	void *context;
	uint64_t flags;
	uint64_t len;
	void *buf;
	uint64_t data;
	union {
		struct {
			uint64_t src; /* fi_addr_t of the sender */
			uint64_t olen;
		};
		uint8_t ip[16]; /* err == FI_EADDRNOTAVAIL: the sender, whom the AV does not hold */
	};
	int32_t err; /* 0 success, else positive FI_E… */
	union {
		int32_t prov_errno;
		struct {
			uint16_t port, key; /* err == FI_EADDRNOTAVAIL */
		};
	};
};
static_assert(sizeof(struct pmf_cqe) == PMF_CACHE_LINE, "a completion is a cache line");

/** FI_SOURCE_ERR: a received message of an unknown sender; all else stays as for a success. */
static inline void pmf_cqe_set_unknown(struct pmf_cqe *e, const struct pmf_peer *sender)
{
	memcpy(e->ip, sender->addr.ip, sizeof(e->ip));
	e->port = sender->addr.port;
	e->key = sender->key;
	e->err = FI_EADDRNOTAVAIL;
}

struct pmf_cq;
struct pmf_cq_feed;

/*
 * A completion that found its ring full waits in the transfer that it is about, on its feed's list;
 * the transfer is not free before it has moved. Engine's owner only.
 */
struct pmf_cq_pending {
	STAILQ_ENTRY(pmf_cq_pending) link;
	struct pmf_cqe cqe;
};

/* From one engine to one CQ. Written by the engine's owner only. */
struct pmf_cq_feed {
	struct rte_ring *ring; /* elements of sizeof(struct pmf_cqe), SP/SC */
	struct pmf_cq *cq;
	unsigned int refs; /* endpoints of this engine bound to the CQ; control path */
	bool dirty;	   /* the engine has written in this pass and owes a pmf_wait_wake() */
	struct pmf_cq_feed *dirty_next; /* the engine's list */
	void *engine;			/* key of the feed: the engine, never followed here */
	/* the engine's; non-empty: new completions queue behind */
	STAILQ_HEAD(, pmf_cq_pending) pending;
	LIST_ENTRY(pmf_cq_feed) stalled; /* the engine's list of feeds with something pending */
};

struct pmf_cq {
	struct fid_cq fid; /* ops are set by fabric; read calls are msg's */
	enum fi_cq_format format;
	size_t size; /* entries of each feed's ring */
	bool locked; /* FI_THREAD_SAFE: readers take `busy` */
	struct pmf_wait wait;
	void *domain;	  /* struct pmf_domain of fabric, never followed here */
	void *progress;	  /* what msg needs to run passes (struct pmf_progress *) */
	_Atomic int refs; /* bound endpoints: fi_close is -FI_EBUSY while not 0 */
	_Atomic uint32_t nfeeds;
	/* set by the control path, read by readers */
	struct pmf_cq_feed *_Atomic feed[PMF_MAX_FEEDS];
	/* the reader's */
	atomic_flag busy PMF_CACHE_ALIGNED;
	uint32_t next_feed;
	uint32_t stash_head,
		stash_count; /* taken from a ring, not yet given out; an error stays here */
	struct pmf_cqe stash[PMF_CQ_STASH];
	uint32_t addr_format;		   /* of addresses in err_data; set by fabric */
	uint8_t err_data[PMF_CQ_ERR_DATA]; /* valid until the next read */
};

/** Fill @p cq in place (fid excepted). @return 0, -EINVAL, -ENOMEM */
int pmf_cq_init(struct pmf_cq *cq, const struct fi_cq_attr *attr, bool locked);
/** Free rings and wait object. The caller has checked refs. */
void pmf_cq_fini(struct pmf_cq *cq);

/** The feed of @p engine, made if missing; counts a reference. Control path, any thread, under the
 * domain's lock. */
struct pmf_cq_feed *pmf_cq_feed_get(struct pmf_cq *cq, void *engine);
void pmf_cq_feed_put(struct pmf_cq_feed *feed);

/** Engine owner: write one completion. @return false when the ring is full: nothing was written. */
static inline bool pmf_cq_feed_write(struct pmf_cq_feed *feed, const struct pmf_cqe *e)
{
	struct rte_ring_zc_data at;

	if (pmf_unlikely(
		    !rte_ring_enqueue_zc_burst_elem_start(feed->ring, sizeof(*e), 1, &at, NULL)))
		return false;
	pmf_tsan_take(feed); /* its last entry was read */
	*(struct pmf_cqe *)at.ptr1 = *e;
	pmf_tsan_give(feed->ring);
	rte_ring_enqueue_zc_elem_finish(feed->ring, 1);
	return true;
}

/**
 * Take completions in the CQ's format; drives nothing.
 * @param src  NULL or room for @p count fi_addr_t
 * @return n > 0; -FI_EAGAIN empty (or another reader is inside); -FI_EAVAIL an error entry is next
 */
ssize_t pmf_cq_take(struct pmf_cq *cq, void *buf, size_t count, fi_addr_t *src);

/**
 * @param sender  set for FI_EADDRNOTAVAIL: the caller writes it to err_data, which is left as it
 * was. Otherwise there is no error data, as fi_cq(3) says it.
 * @return 1 with the next error entry; -FI_EAGAIN when none is next
 */
ssize_t pmf_cq_take_err(struct pmf_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags,
			uint32_t api_version, struct pmf_addr *sender);

/** Any entry there? Reader's side; may be a moment old. */
bool pmf_cq_is_empty(struct pmf_cq *cq);

/** A sentence for prov_errno (positive errno here). */
const char *pmf_cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
			    size_t len);

#endif
