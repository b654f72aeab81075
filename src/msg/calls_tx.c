/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The six sending calls of fi_msg(3). Each says what it has in a struct post and goes one way:
 * check, take a transfer, fill it, put it on the ring, and let it leave at once when the peer's
 * flow is idle.
 */
#include "msg/calls_internal.h"

#include <rdma/fi_errno.h>

#include "msg/threads.h"

#define TX_FLAGS                                                                        \
	(FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE | \
	 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_FENCE | FI_MULTICAST)

/* One call's arguments. */
struct post {
	const struct iovec *iov;
	size_t count;
	fi_addr_t dest;
	void *context;
	uint64_t data;
	uint64_t flags; /* of fi_sendmsg, or the defaults */
	bool silent;	/* fi_inject: no success entry at all */
};

/*
 * Automatic progress: the worker finds the post in its next pass, unless it sleeps. The fence pairs
 * with the one in worker.c.
 */
static inline void kick_worker(struct pmf_ep *ep)
{
	struct pmf_engine *e = ep->engine;

	atomic_thread_fence(memory_order_seq_cst);
	if (pmf_likely(!atomic_load_explicit(&e->asleep, memory_order_relaxed)))
		return;
	if (pmf_engine_try(e)) {
		pmf_engine_kick(e, ep, true);
		pmf_engine_release(e);
	}
	pmf_worker_wake(e->worker);
}

/*
 * Let it leave at once: the tx half of a pass. Tried for the first post since the last pass, and
 * for every batch after it; what lies between gathers and shares frames.
 */
static inline void kick(struct pmf_ep *ep, uint64_t flags)
{
	uint32_t n = atomic_load_explicit(&ep->unkicked, memory_order_relaxed) + 1;
	bool batch;

	if (pmf_unlikely(!ep->kick)) {
		kick_worker(ep);
		return;
	}
	if (flags & FI_MORE)
		n |= PMF_KICK_MORE;
	atomic_store_explicit(&ep->unkicked, n & ~(flags & FI_MORE ? 0 : PMF_KICK_MORE),
			      memory_order_relaxed);
	if (flags & FI_MORE)
		return;
	batch = n % PMF_KICK_BATCH == 0 ||
		(n & PMF_KICK_MORE); /* the end of a burst lets everything out */
	if ((n != 1 && !batch) || !pmf_engine_try(ep->engine))
		return;
	pmf_engine_kick(ep->engine, ep, batch);
	pmf_engine_release(ep->engine);
}

/* A message to a group is one datagram, and nobody acknowledges it. */
static __attribute__((noinline)) ssize_t check_group(const struct pmf_ep *ep, const struct post *p,
						     uint64_t len)
{
	if (ep->type != PMF_EP_RDM || (p->flags & (FI_DELIVERY_COMPLETE | FI_FENCE)))
		return -FI_EBADFLAGS;
	if (!pmf_mc_may_send(ep, p->dest))
		return -FI_EINVAL;
	return len > ep->mc_max ? -FI_EMSGSIZE : (ssize_t)len;
}

/* @return total length, or a negative errno */
static inline ssize_t check(const struct pmf_ep *ep, const struct post *p)
{
	uint64_t len = 0;

	if (pmf_unlikely(atomic_load_explicit(&ep->state, memory_order_acquire) != PMF_EP_ENABLED))
		return pmf_call_state(ep);
	if (pmf_unlikely(!ep->can_send))
		return -FI_ENOSYS;
	if (pmf_unlikely(p->count > ep->iov_limit))
		return -FI_EINVAL;
	for (size_t i = 0; i < p->count; i++)
		len += p->iov[i].iov_len;
	if (pmf_unlikely(len > ep->max_msg_size))
		return -FI_EMSGSIZE;
	if (pmf_unlikely((p->silent || (p->flags & FI_INJECT)) && len > ep->inject_size))
		return -FI_EMSGSIZE;
	if (pmf_unlikely(p->flags & FI_MULTICAST))
		return check_group(ep, p, len);
	if (pmf_unlikely(ep->peers ? !pmf_peers_get(ep->peers, p->dest) : ep->type == PMF_EP_RDM))
		return -FI_EINVAL;
	return (ssize_t)len;
}

static inline void fill(struct pmf_tx *tx, const struct post *p, size_t len)
{
	struct pmf_item *item = &tx->item;
	size_t count = 0;

	item->kind = PMF_ITEM_MSG;
	item->state = PMF_ITEM_NEW;
	item->len = len;
	item->flags = p->flags & FI_REMOTE_CQ_DATA ? PMF_RF_DATA : 0;
	item->data = p->data;
	if (p->silent || (p->flags & FI_INJECT)) {
		uint8_t *to = tx->data;

		for (size_t i = 0; i < p->count; i++) {
			if (!p->iov[i].iov_len)
				continue;
			memcpy(to, p->iov[i].iov_base, p->iov[i].iov_len);
			to += p->iov[i].iov_len;
		}
		item->buf = tx->data;
		item->niov = 1;
		tx->flags |= PMF_XF_INLINE;
		return;
	}
	for (size_t i = 0; i < p->count; i++)
		if (p->iov[i].iov_len) /* pieces of length 0 have no say, nor has their address */
			tx->iov[count++] = p->iov[i];
	item->niov = count > 1 ? (uint8_t)count : 1;
	if (count > 1)
		item->iov = tx->iov;
	else
		item->buf = count ? tx->iov[0].iov_base : NULL;
}

static inline __attribute__((always_inline)) ssize_t post_bytes(struct pmf_ep *ep,
								const struct post *p)
{
	ssize_t len = check(ep, p);
	struct pmf_tx *tx;

	if (pmf_unlikely(len < 0))
		return pmf_call_refuse(ep, len);
	tx = pmf_freelist_take(&ep->tx_free);
	if (pmf_unlikely(!tx))
		return pmf_call_refuse(ep, -FI_EAGAIN);
	tx->flags = 0;
	tx->dest = p->dest;
	tx->context = p->silent ? NULL : p->context;
	if (!p->silent && (!ep->tx_selective || (p->flags & FI_COMPLETION)))
		tx->flags = PMF_XF_COMPLETION;
	if (pmf_unlikely(p->flags & (FI_FENCE | FI_MULTICAST)))
		tx->flags |= p->flags & FI_FENCE ? PMF_XF_FENCE : PMF_XF_GROUP;
	fill(tx, p, (size_t)len);
	/* cannot fail: the ring has room for every transfer of the endpoint */
	pmf_tsan_give(ep->tx_ring);
	rte_ring_enqueue(ep->tx_ring, tx);
	pmf_ep_posted(ep);
	kick(ep, p->flags);
	return 0;
}

/* FI_MSG_PREFIX: the first bytes are the provider's and do not travel. */
static __attribute__((noinline)) ssize_t post_prefixed(struct pmf_ep *ep, const struct post *p)
{
	struct iovec iov[PMF_IOV_LIMIT];
	struct post q = *p;

	if (p->count > ep->iov_limit || !p->count || p->iov[0].iov_len < ep->prefix)
		return pmf_call_refuse(ep, -FI_EINVAL);
	memcpy(iov, p->iov, p->count * sizeof(*iov));
	iov[0].iov_base = (uint8_t *)iov[0].iov_base + ep->prefix;
	iov[0].iov_len -= ep->prefix;
	q.iov = iov;
	return post_bytes(ep, &q);
}

static inline __attribute__((always_inline)) ssize_t post(struct fid_ep *fid, const struct post *p)
{
	struct pmf_ep *ep = pmf_ep_of(fid);

	return pmf_unlikely(ep->prefix) ? post_prefixed(ep, p) : post_bytes(ep, p);
}

static ssize_t ep_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		       void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct post p = {.iov = &iov,
			 .count = 1,
			 .dest = dest,
			 .context = context,
			 .flags = pmf_handle_of(ep)->tx_op_flags};

	return post(ep, &p);
}

static ssize_t ep_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t dest, void *context)
{
	struct post p = {.iov = iov,
			 .count = count,
			 .dest = dest,
			 .context = context,
			 .flags = pmf_handle_of(ep)->tx_op_flags};

	return post(ep, &p);
}

static ssize_t ep_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct post p = {.iov = msg->msg_iov,
			 .count = msg->iov_count,
			 .dest = msg->addr,
			 .context = msg->context,
			 .flags = flags};

	if (pmf_unlikely(flags & ~TX_FLAGS))
		return pmf_call_refuse(pmf_ep_of(ep), -FI_EBADFLAGS);
	if (flags & FI_REMOTE_CQ_DATA)
		p.data = msg->data;
	return post(ep, &p);
}

static ssize_t ep_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct post p = {.iov = &iov,
			 .count = 1,
			 .dest = dest,
			 .silent = true,
			 .flags = pmf_handle_of(ep)->tx_op_flags & FI_MULTICAST};

	return post(ep, &p);
}

static ssize_t ep_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct post p = {.iov = &iov,
			 .count = 1,
			 .dest = dest,
			 .context = context,
			 .data = data,
			 .flags = pmf_handle_of(ep)->tx_op_flags | FI_REMOTE_CQ_DATA};

	return post(ep, &p);
}

static ssize_t ep_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			     fi_addr_t dest)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct post p = {.iov = &iov,
			 .count = 1,
			 .dest = dest,
			 .data = data,
			 .silent = true,
			 .flags = FI_REMOTE_CQ_DATA |
				  (pmf_handle_of(ep)->tx_op_flags & FI_MULTICAST)};

	return post(ep, &p);
}

struct fi_ops_msg pmf_ops_msg = {
	.size = sizeof(struct fi_ops_msg),
	.recv = pmf_call_recv,
	.recvv = pmf_call_recvv,
	.recvmsg = pmf_call_recvmsg,
	.send = ep_send,
	.sendv = ep_sendv,
	.sendmsg = ep_sendmsg,
	.inject = ep_inject,
	.senddata = ep_senddata,
	.injectdata = ep_injectdata,
};
