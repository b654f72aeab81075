/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The three receiving calls of fi_msg(3): one way, as for sending. A posted receive meets its message in
 * the next pass.
 */
#include "msg/calls_internal.h"

#include <rdma/fi_errno.h>

#define RX_FLAGS (FI_COMPLETION | FI_MORE | FI_TRANSMIT_COMPLETE)

static inline __attribute__((always_inline)) ssize_t post(struct fid_ep *fid, const struct iovec *iov,
							   size_t count, void *context, uint64_t flags)
{
	struct pmf_ep *ep = pmf_ep_of(fid);
	struct pmf_rx *rx;
	void *entry;
	uint8_t n = 0;

	if (pmf_unlikely(atomic_load_explicit(&ep->state, memory_order_acquire) != PMF_EP_ENABLED) &&
	    !pmf_call_may_receive(ep))
		return pmf_call_refuse(ep, pmf_call_state(ep));
	if (pmf_unlikely(!ep->can_recv))
		return pmf_call_refuse(ep, -FI_ENOSYS);
	if (pmf_unlikely(count > ep->iov_limit))
		return pmf_call_refuse(ep, -FI_EINVAL);
	if (pmf_unlikely(rte_ring_dequeue(ep->rx_free, &entry)))
		return pmf_call_refuse(ep, -FI_EAGAIN);
	pmf_tsan_take(ep->rx_free);
	rx = entry;
	rx->context = context;
	rx->flags = !ep->rx_selective || (flags & FI_COMPLETION) ? PMF_XF_COMPLETION : 0;
	rx->cap = 0;
	rx->done = rx->ordered = false;
	rx->err = 0;
	for (size_t i = 0; i < count; i++) {
		if (!iov[i].iov_len)
			continue;
		rx->iov[n++] = iov[i];
		rx->cap += iov[i].iov_len;
	}
	rx->niov = n;
	pmf_tsan_give(ep->rx_ring);
	rte_ring_enqueue(ep->rx_ring, rx);
	pmf_ep_posted(ep);
	/* a burst of sends ends by any call without FI_MORE (B3) */
	if (pmf_unlikely(atomic_load_explicit(&ep->unkicked, memory_order_relaxed) & PMF_KICK_MORE) &&
	    !(flags & FI_MORE))
		pmf_call_refuse(ep, 0);
	return 0;
}

ssize_t pmf_call_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		      void *context)
{
	struct iovec iov = {buf, len};

	return post(ep, &iov, 1, context, pmf_ep_of(ep)->rx_op_flags);
}

ssize_t pmf_call_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t src, void *context)
{
	return post(ep, iov, count, context, pmf_ep_of(ep)->rx_op_flags);
}

ssize_t pmf_call_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	if (pmf_unlikely(flags & ~RX_FLAGS))
		return pmf_call_refuse(pmf_ep_of(ep), -FI_EBADFLAGS);
	return post(ep, msg->msg_iov, msg->iov_count, msg->context, flags);
}
