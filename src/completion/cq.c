/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/cq.h"

#include <stdlib.h>

#define CQ_SIZE_DEFAULT 1024
#define CQ_SIZE_MAX (1u << 24)
#define RING_ALIGN ((size_t)PMF_CACHE_LINE * 2)

int pmf_cq_init(struct pmf_cq *cq, const struct fi_cq_attr *attr, bool locked)
{
	struct fid_cq fid = cq->fid;
	int rc;

	if (attr->size > CQ_SIZE_MAX || (unsigned int)attr->format > FI_CQ_FORMAT_TAGGED ||
	    (unsigned int)attr->wait_cond > FI_CQ_COND_THRESHOLD)
		return -EINVAL;
	memset(cq, 0, sizeof(*cq));
	cq->fid = fid;
	cq->format = attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->size = attr->size ? attr->size : CQ_SIZE_DEFAULT;
	cq->locked = locked;
	atomic_flag_clear(&cq->busy);
	rc = pmf_wait_open(&cq->wait, (int)attr->wait_obj);
	return rc == -EINVAL || rc == 0 ? rc : -ENOMEM;
}

void pmf_cq_fini(struct pmf_cq *cq)
{
	uint32_t n = atomic_load_explicit(&cq->nfeeds, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct pmf_cq_feed *feed = atomic_load_explicit(&cq->feed[i], memory_order_relaxed);

		free(feed->ring);
		free(feed);
	}
	atomic_store_explicit(&cq->nfeeds, 0, memory_order_relaxed);
	pmf_wait_close(&cq->wait);
}

/* A ring in memory of its own: no memzone, no name, so no EAL is needed and nothing can collide. */
static struct rte_ring *ring_make(size_t size)
{
	unsigned int count = (unsigned int)pmf_roundup_pow2((uint32_t)size + 1);
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct pmf_cqe), count);
	struct rte_ring *ring;

	if (bytes < 0)
		return NULL;
	/* aligned_alloc(3) wants whole multiples */
	ring = aligned_alloc(RING_ALIGN, ((size_t)bytes + RING_ALIGN - 1) & ~(RING_ALIGN - 1));
	if (!ring)
		return NULL;
	if (rte_ring_init(ring, "pmf_cq", (unsigned int)size,
			  RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ)) {
		free(ring);
		return NULL;
	}
	return ring;
}

static struct pmf_cq_feed *feed_make(struct pmf_cq *cq, void *engine)
{
	struct pmf_cq_feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return NULL;
	feed->ring = ring_make(cq->size);
	if (!feed->ring) {
		free(feed);
		return NULL;
	}
	feed->cq = cq;
	feed->engine = engine;
	STAILQ_INIT(&feed->pending);
	return feed;
}

struct pmf_cq_feed *pmf_cq_feed_get(struct pmf_cq *cq, void *engine)
{
	uint32_t n = atomic_load_explicit(&cq->nfeeds, memory_order_relaxed);
	struct pmf_cq_feed *feed;

	for (uint32_t i = 0; i < n; i++) {
		feed = atomic_load_explicit(&cq->feed[i], memory_order_relaxed);
		if (feed->engine == engine) {
			feed->refs++;
			return feed;
		}
	}
	if (n == PMF_MAX_FEEDS)
		return NULL;
	feed = feed_make(cq, engine);
	if (!feed)
		return NULL;
	feed->refs = 1;
	atomic_store_explicit(&cq->feed[n], feed, memory_order_relaxed);
	/* Pairs with the acquire of the readers: they see the feed whole. */
	atomic_store_explicit(&cq->nfeeds, n + 1, memory_order_release);
	return feed;
}

/* The feed stays until the CQ is closed: entries in it are still to be read, and it will be used
 * again. */
void pmf_cq_feed_put(struct pmf_cq_feed *feed)
{
	assert(feed->refs > 0);
	feed->refs--;
}

static inline bool rings_empty(struct pmf_cq *cq)
{
	uint32_t n = atomic_load_explicit(&cq->nfeeds, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++) {
		struct pmf_cq_feed *feed = atomic_load_explicit(&cq->feed[i], memory_order_relaxed);

		if (!rte_ring_empty(feed->ring))
			return false;
	}
	return true;
}

/* Refill the empty stash from the next feed that has entries. @return whether there is anything */
static bool stash_fill(struct pmf_cq *cq)
{
	uint32_t nfeeds = atomic_load_explicit(&cq->nfeeds, memory_order_acquire), n;

	for (uint32_t i = 0; i < nfeeds; i++) {
		struct rte_ring_zc_data at;
		struct pmf_cq_feed *feed;

		if (cq->next_feed >= nfeeds)
			cq->next_feed = 0;
		feed = atomic_load_explicit(&cq->feed[cq->next_feed++], memory_order_relaxed);
		n = rte_ring_dequeue_zc_burst_elem_start(feed->ring, sizeof(struct pmf_cqe),
							 PMF_CQ_STASH, &at, NULL);
		if (!n)
			continue;
		cq->stash_head = 0;
		pmf_tsan_take(feed->ring);
		memcpy(cq->stash, at.ptr1, at.n1 * sizeof(struct pmf_cqe));
		if (pmf_unlikely(n != at.n1))
			memcpy(cq->stash + at.n1, at.ptr2, (n - at.n1) * sizeof(struct pmf_cqe));
		pmf_tsan_give(feed);
		rte_ring_dequeue_zc_elem_finish(feed->ring, n);
		cq->stash_count = n;
		return true;
	}
	return false;
}

static inline struct pmf_cqe *stash_peek(struct pmf_cq *cq)
{
	if (!cq->stash_count && (rings_empty(cq) || !stash_fill(cq)))
		return NULL;
	return &cq->stash[cq->stash_head];
}

static inline void stash_pop(struct pmf_cq *cq)
{
	cq->stash_head++;
	cq->stash_count--;
}

static inline void *put_context(void *buf, const struct pmf_cqe *e)
{
	struct fi_cq_entry *out = buf;

	out->op_context = e->context;
	return out + 1;
}

static inline void *put_msg(void *buf, const struct pmf_cqe *e)
{
	struct fi_cq_msg_entry *out = buf;

	*out = (struct fi_cq_msg_entry){e->context, e->flags, e->len};
	return out + 1;
}

static inline void *put_data(void *buf, const struct pmf_cqe *e)
{
	struct fi_cq_data_entry *out = buf;

	*out = (struct fi_cq_data_entry){e->context, e->flags, e->len, e->buf, e->data};
	return out + 1;
}

static inline void *put_tagged(void *buf, const struct pmf_cqe *e)
{
	struct fi_cq_tagged_entry *out = buf;

	*out = (struct fi_cq_tagged_entry){e->context, e->flags, e->len, e->buf, e->data, 0};
	return out + 1;
}

static inline void *put(enum fi_cq_format format, void *buf, const struct pmf_cqe *e)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return put_msg(buf, e);
	case FI_CQ_FORMAT_DATA:
		return put_data(buf, e);
	case FI_CQ_FORMAT_TAGGED:
		return put_tagged(buf, e);
	default:
		return put_context(buf, e);
	}
}

static inline bool reader_enter(struct pmf_cq *cq)
{
	return !cq->locked || !atomic_flag_test_and_set_explicit(&cq->busy, memory_order_acquire);
}

/*
 * A reader that found us inside went to sleep without having seen the queue. Whatever we leave
 * behind is its to take.
 */
static inline void reader_leave(struct pmf_cq *cq)
{
	bool more;

	if (!cq->locked)
		return;
	more = pmf_wait_active(&cq->wait) && (cq->stash_count || !rings_empty(cq));
	atomic_flag_clear_explicit(&cq->busy, memory_order_release);
	if (pmf_unlikely(more))
		pmf_wait_wake(&cq->wait);
}

ssize_t pmf_cq_take(struct pmf_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	const struct pmf_cqe *e;
	size_t n = 0;
	ssize_t rc;

	/* Before the look: what is published after it writes the descriptor again. */
	pmf_wait_quiet(&cq->wait);
	if (pmf_unlikely(!reader_enter(cq)))
		return -FI_EAGAIN;
	/* One look decides each step: an entry that comes meanwhile is the next call's. */
	e = stash_peek(cq);
	while (e && !e->err && n < count) {
		buf = put(cq->format, buf, e);
		if (src)
			src[n] = e->src;
		stash_pop(cq);
		e = ++n < count ? stash_peek(cq) : NULL;
	}
	if (n)
		rc = (ssize_t)n;
	else if (!e)
		rc = -FI_EAGAIN;
	else
		rc = e->err && count ? -FI_EAVAIL : 0;
	reader_leave(cq);
	return rc;
}

/* Fields that came with later versions are written only for callers that have them. */
static void put_err(const struct pmf_cqe *e, struct fi_cq_err_entry *out, uint32_t api_version,
		    struct pmf_addr *sender)
{
	bool unknown = e->err == FI_EADDRNOTAVAIL;

	out->op_context = e->context;
	out->flags = e->flags;
	out->len = e->len;
	out->buf = e->buf;
	out->data = e->data;
	out->tag = 0;
	out->olen = unknown ? 0 : e->olen;
	out->err = e->err;
	out->prov_errno = !unknown && e->prov_errno ? e->prov_errno : e->err;
	if (FI_VERSION_LT(api_version, FI_VERSION(1, 5))) {
		out->err_data = NULL;
		return;
	}
	if (unknown) {
		memcpy(sender->ip, e->ip, sizeof(sender->ip));
		sender->port = e->port;
	} else {
		if (!out->err_data_size)
			out->err_data = NULL;
		out->err_data_size = 0;
	}
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20))
	if (FI_VERSION_GE(api_version, FI_VERSION(1, 20)))
		out->src_addr = unknown && e->key ? PMF_KEY_ADDR | e->key : FI_ADDR_NOTAVAIL;
#endif
}

ssize_t pmf_cq_take_err(struct pmf_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags,
			uint32_t api_version, struct pmf_addr *sender)
{
	const struct pmf_cqe *e;
	ssize_t rc = -FI_EAGAIN;

	pmf_wait_quiet(&cq->wait);
	if (!reader_enter(cq))
		return -FI_EAGAIN;
	e = stash_peek(cq);
	if (e && e->err) {
		put_err(e, buf, api_version, sender);
		stash_pop(cq);
		rc = 1;
	}
	reader_leave(cq);
	return rc;
}

bool pmf_cq_is_empty(struct pmf_cq *cq)
{
	bool empty;

	/* Another reader inside: it may leave something behind, so the answer is no. */
	if (!reader_enter(cq))
		return false;
	empty = !cq->stash_count && rings_empty(cq);
	if (cq->locked)
		atomic_flag_clear_explicit(&cq->busy, memory_order_release);
	return empty;
}

const char *pmf_cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
			    size_t len)
{
	static const struct {
		int err;
		const char *text;
	} sentence[] = {
		{FI_ETRUNC, "The message was longer than the posted buffer; its end was cut off."},
		{FI_ECANCELED, "The operation was cancelled."},
		{FI_EADDRNOTAVAIL,
		 "The sender is not in the address vector; err_data is its address."},
		{FI_ETIMEDOUT, "The peer did not answer within FI_PMF_PEER_TIMEOUT_MS."},
		{FI_EHOSTUNREACH, "No way to the peer: its address did not resolve."},
		{FI_ENETUNREACH,
		 "The peer's address is in no configured network and there is no gateway."},
		{FI_ECONNRESET, "The peer was restarted or has closed its endpoint."},
		{FI_ECONNABORTED, "The sender has closed its endpoint within the message."},
		{FI_ECONNREFUSED, "No endpoint listens on the peer's address."},
		{FI_EKEYREJECTED, "The peer does not take our authorization key, or wants one."},
		{FI_ENOMEM, "Out of memory."},
		{FI_EIO, "The peer speaks another protocol version or broke the protocol."},
	};
	const char *text = NULL;

	for (size_t i = 0; i < PMF_ARRAY_SIZE(sentence); i++)
		if (sentence[i].err == prov_errno)
			text = sentence[i].text;
	if (!text)
		text = prov_errno > 0 ? fi_strerror(prov_errno) : "Unknown error.";
	if (!buf || !len)
		return text;
	strncpy(buf, text, len - 1);
	buf[len - 1] = '\0';
	return buf;
}
