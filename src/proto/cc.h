/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Congestion control behind three events: window and earliest next send come out. Plain for now:
 * half on loss once a round trip, one packet more a round trip. A delay-based one replaces cc.c and
 * nothing else.
 */
#ifndef PMF_PROTO_CC_H
#define PMF_PROTO_CC_H

#include "pmf_common.h"

struct pmf_cc {
	uint32_t cwnd;		/* packets, units of 1/256: may fall below one packet */
	uint32_t ssthresh;	/* same units */
	uint32_t acked;		/* packets acknowledged since the last step beyond ssthresh */
	uint32_t max;		/* same units */
	pmf_psn_t recovery_end; /* a loss below it belongs to a reduction already made */
	pmf_ns_t next_send;	/* earliest next first transmission; 0: at once */
};

void pmf_cc_init(struct pmf_cc *cc, uint32_t window);
void pmf_cc_on_send(struct pmf_cc *cc, uint32_t inflight, pmf_ns_t now);
/** @param rtt 0: no sample with this acknowledgement. @param ce newly reported congestion marks */
void pmf_cc_on_ack(struct pmf_cc *cc, uint32_t acked, uint32_t inflight, pmf_ns_t rtt, uint32_t ce,
		   pmf_ns_t now);
/** @param psn the lost packet; @param next the next new packet number. @param timeout all was lost
 */
void pmf_cc_on_loss(struct pmf_cc *cc, pmf_psn_t psn, pmf_psn_t next, bool timeout, pmf_ns_t now);

static inline bool pmf_cc_may_send(const struct pmf_cc *cc, uint32_t inflight, pmf_ns_t now)
{
	return ((uint64_t)inflight << 8) < cc->cwnd && now >= cc->next_send;
}

#endif
