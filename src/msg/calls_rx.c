/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The three receiving calls of fi_msg(3): one way, as for sending. A posted receive meets its
 * message in the next pass.
 */
#include "msg/calls_internal.h"

#include <rdma/fi_errno.h>

#include "msg/threads.h"

#define RX_FLAGS (FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE)

static ssize_t refuse(struct pmf_rctx *rc, ssize_t err)
{
	if (rc->kick && pmf_engine_try(rc->engine)) {
		pmf_engine_pass(rc->engine);
		pmf_engine_release(rc->engine);
	}
	return err;
}

/* Why its receives are not taken. */
static ssize_t refuse_closed(const struct pmf_handle *h)
{
	struct pmf_ep *ep = h->ep;

	if (ep->state != PMF_EP_ENABLED && ep->state != PMF_EP_UNCONNECTED)
		return pmf_call_refuse(ep, pmf_call_state(ep));
	return pmf_call_refuse(ep, -FI_ENOSYS); /* send only, or a shared context takes them */
}

/* Does the AV hold it: a peer, or with PMF_AUTH_KEY a key? */
static bool is_source(const struct pmf_rctx *rc, fi_addr_t src, uint64_t flags)
{
	if (!rc->peers)
		return false;
	return flags & PMF_AUTH_KEY ? pmf_peers_have_key(rc->peers, src)
				    : pmf_peers_get(rc->peers, src) != NULL;
}

/* What is asked of a receive that is not plain. @return 0, or -FI_EINVAL */
static int check_odd(const struct pmf_rctx *rc, const struct iovec *iov, size_t count,
		     fi_addr_t src, uint64_t flags)
{
	if (rc->directed && src != FI_ADDR_UNSPEC && !is_source(rc, src, flags))
		return -FI_EINVAL;
	if (rc->prefix && (!count || iov[0].iov_len < rc->prefix))
		return -FI_EINVAL;
	return (flags & FI_MULTI_RECV) && count > 1 ? -FI_EINVAL : 0;
}

static void fill_odd(struct pmf_rctx *rc, struct pmf_rx *rx, const struct iovec *iov, size_t count,
		     fi_addr_t src, uint64_t flags)
{
	if (rc->directed && src != FI_ADDR_UNSPEC) {
		rx->flags |= PMF_XF_DIRECTED | (flags & PMF_AUTH_KEY ? PMF_XF_KEYED : 0);
		rx->want = src;
	}
	if (flags & FI_MULTI_RECV) {
		uint64_t min = atomic_load_explicit(&rc->min_multi, memory_order_relaxed);

		rx->flags |= PMF_XF_MULTI;
		/* entries say where their bytes are, in an empty buffer too */
		rx->iov[0] = count ? iov[0] : (struct iovec){0};
		rx->used = 0;
		rx->nparts = 0;
		rx->released = false;
		rx->min = PMF_MAX(PMF_MAX(min, (uint64_t)rc->prefix), 1u);
	} else if (rc->prefix) {
		rx->iov[0].iov_base = (uint8_t *)rx->iov[0].iov_base + rc->prefix;
		rx->iov[0].iov_len -= rc->prefix;
		rx->cap -= rc->prefix;
	}
}

static inline __attribute__((always_inline)) ssize_t post(struct fid_ep *fid,
							  const struct iovec *iov, size_t count,
							  fi_addr_t src, void *context,
							  uint64_t flags)
{
	struct pmf_handle *h = pmf_handle_of(fid);
	struct pmf_rctx *rc = h->rctx;
	struct pmf_rx *rx;
	uint8_t n = 0;
	bool odd = (flags & FI_MULTI_RECV) || rc->odd;

	if (pmf_unlikely(!atomic_load_explicit(&rc->open, memory_order_acquire)))
		return refuse_closed(h);
	if (pmf_unlikely(count > rc->iov_limit))
		return refuse(rc, -FI_EINVAL);
	if (pmf_unlikely(odd) && check_odd(rc, iov, count, src, flags))
		return refuse(rc, -FI_EINVAL);
	rx = pmf_freelist_take(&rc->free);
	if (pmf_unlikely(!rx))
		return refuse(rc, -FI_EAGAIN);
	rx->context = context;
	rx->flags = rc->rx_flags | (flags & FI_COMPLETION ? PMF_XF_COMPLETION : 0);
	rx->cap = 0;
	rx->done = rx->ordered = rx->dropped = false;
	rx->err = 0;
	for (size_t i = 0; i < count; i++) {
		if (!iov[i].iov_len)
			continue;
		rx->iov[n++] = iov[i];
		rx->cap += iov[i].iov_len;
	}
	rx->niov = n;
	if (pmf_unlikely(odd))
		fill_odd(rc, rx, iov, count, src, flags);
	pmf_tsan_give(rc->ring);
	rte_ring_enqueue(rc->ring, rx);
	if (pmf_likely(h->ep)) {
		pmf_ep_posted(h->ep);
		/* a burst of sends ends by any call without FI_MORE (B3) */
		if (pmf_unlikely(atomic_load_explicit(&h->ep->unkicked, memory_order_relaxed) &
				 PMF_KICK_MORE) &&
		    !(flags & FI_MORE))
			pmf_call_refuse(h->ep, 0);
	}
	return 0;
}

ssize_t pmf_call_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		      void *context)
{
	struct iovec iov = {buf, len};

	return post(ep, &iov, 1, src, context, pmf_handle_of(ep)->rx_op_flags);
}

ssize_t pmf_call_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t src, void *context)
{
	return post(ep, iov, count, src, context, pmf_handle_of(ep)->rx_op_flags);
}

ssize_t pmf_call_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct pmf_rctx *rc = pmf_handle_of(ep)->rctx;

	if (pmf_unlikely(flags & ~RX_FLAGS) &&
	    ((flags & ~(RX_FLAGS | PMF_AUTH_KEY)) || !rc->directed || !rc->keyed))
		return refuse(rc, -FI_EBADFLAGS);
	return post(ep, msg->msg_iov, msg->iov_count, msg->addr, msg->context, flags);
}

/* ---- what a shared receive context does not do ---- */

static ssize_t no_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest,
		       void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			fi_addr_t dest, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t no_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest)
{
	return -FI_ENOSYS;
}

static ssize_t no_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			     fi_addr_t dest)
{
	return -FI_ENOSYS;
}

struct fi_ops_msg pmf_ops_srx = {
	.size = sizeof(struct fi_ops_msg),
	.recv = pmf_call_recv,
	.recvv = pmf_call_recvv,
	.recvmsg = pmf_call_recvmsg,
	.send = no_send,
	.sendv = no_sendv,
	.sendmsg = no_sendmsg,
	.inject = no_inject,
	.senddata = no_senddata,
	.injectdata = no_injectdata,
};
