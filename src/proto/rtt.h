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
	pmf_ns_t srtt, rttvar; /* srtt 0: nothing known yet */
	pmf_ns_t min, min_at;  /* min 0: no sample yet */
	uint32_t backoff;      /* doublings in force */
};

void pmf_rtt_init(struct pmf_rtt *r);
void pmf_rtt_sample(struct pmf_rtt *r, pmf_ns_t rtt, pmf_ns_t now);
/** Not before a sample: it takes @p most at most. Holds until the first sample. */
void pmf_rtt_guess(struct pmf_rtt *r, pmf_ns_t most);
/** Timeout with back-off applied, within the bounds. */
pmf_ns_t pmf_rtt_rto(const struct pmf_rtt *r, pmf_ns_t min, pmf_ns_t max);

/*
 * The least round trip of packets of one size: the time on the wires differs by size, and is not to
 * be taken for a queue. Sizes in steps of 256 bytes. Of two half periods, so that one that was
 * measured in passing does not stay, and one that is better is not forgotten at once.
 */
struct pmf_base {
	pmf_ns_t min; /* 0: no sample yet */
	pmf_ns_t next, since;
	uint8_t size;  /* class of those measured */
	uint8_t small; /* packets of less, one after another */
};

/** @return whether packets of this class are measured: @p rtt may be compared to min */
bool pmf_base_take(struct pmf_base *b, uint8_t size, pmf_ns_t rtt, pmf_ns_t now);

#endif
