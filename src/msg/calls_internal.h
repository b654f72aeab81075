/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files of the nine calls share.
 */
#ifndef PMF_MSG_CALLS_INTERNAL_H
#define PMF_MSG_CALLS_INTERNAL_H

#include <rdma/fi_errno.h>

#include "msg/calls.h"
#include "msg/engine.h"

#define PMF_KICK_MORE \
	0x80000000u /* in ep->unkicked: posted with FI_MORE since the last call without */

/**
 * An error return: it ends a burst of FI_MORE, and -FI_EAGAIN runs a pass, so that an application
 * that only repeats the call gets on. @return @p err
 */
static inline ssize_t pmf_call_refuse(struct pmf_ep *ep, ssize_t err)
{
	if (ep->kick && pmf_engine_try(ep->engine)) {
		pmf_engine_pass(ep->engine);
		pmf_engine_release(ep->engine);
	}
	return err;
}

/** Why an endpoint takes no call now. */
static inline ssize_t pmf_call_state(const struct pmf_ep *ep)
{
	return ep->state == PMF_EP_NEW ? -FI_EOPBADSTATE : -FI_ENOTCONN;
}

/** Before the connection stands, and after its end as long as kept messages are there. */
static inline bool pmf_call_may_receive(const struct pmf_ep *ep)
{
	int state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return state == PMF_EP_UNCONNECTED || state == PMF_EP_DRAINING;
}

ssize_t pmf_call_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
		      void *context);
ssize_t pmf_call_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
		       fi_addr_t src, void *context);
ssize_t pmf_call_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);

#endif
