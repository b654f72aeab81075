/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Message bytes into a posted receive.
 */
#ifndef PMF_MSG_SCATTER_H
#define PMF_MSG_SCATTER_H

#include "msg/transfer.h"

/** Several pieces; what lies behind the buffer's end is cut off. */
void pmf_scatter_iov(const struct iovec *iov, uint8_t niov, uint64_t off, const uint8_t *bytes,
		     uint32_t len);

/** Place @p len bytes of the message from @p off on; never one byte behind the posted room. */
static inline void pmf_scatter(const struct pmf_rx *rx, uint64_t off, const uint8_t *bytes,
			       uint32_t len)
{
	if (pmf_unlikely(off >= rx->cap))
		return;
	if (pmf_unlikely(len > rx->cap - off))
		len = (uint32_t)(rx->cap - off);
	if (pmf_likely(rx->niov == 1))
		memcpy((uint8_t *)rx->iov[0].iov_base + off, bytes, len);
	else
		pmf_scatter_iov(rx->iov, rx->niov, off, bytes, len);
}

#endif
