/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Round-trip estimator and timeout after RFC 6298 §2, with the minimum over a sliding period (RFC
 * 8985 §6.1 step 1 wants it for the reordering window).
 */
#ifndef PMF_PROTO_RTT_H
#define PMF_PROTO_RTT_H

#include "pmf_common.h"

struct pmf_rtt {
	pmf_ns_t srtt, rttvar; /* srtt 0: no sample yet */
	pmf_ns_t min, min_at;
	uint32_t backoff; /* doublings in force */
};

void pmf_rtt_init(struct pmf_rtt *r);
void pmf_rtt_sample(struct pmf_rtt *r, pmf_ns_t rtt, pmf_ns_t now);
/** Timeout with back-off applied, within the bounds. */
pmf_ns_t pmf_rtt_rto(const struct pmf_rtt *r, pmf_ns_t min, pmf_ns_t max);

#endif
