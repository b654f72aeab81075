/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Round-trip estimator. The struct belongs to one flow.
 */
#include "proto/rtt.h"

/* Before the first sample. RFC 6298 §2.1 says 1 s, for paths around the world; a hello sent twice
 * harms nobody, a lost one costs the application this long.
 */
#define RTO_INITIAL (50 * PMF_NS_PER_MS)
#define MIN_PERIOD (10 * PMF_NS_PER_S) /* a minimum is forgotten after this: routes change */
#define MAX_BACKOFF 16

void pmf_rtt_init(struct pmf_rtt *r)
{
	memset(r, 0, sizeof(*r));
}

void pmf_rtt_sample(struct pmf_rtt *r, pmf_ns_t rtt, pmf_ns_t now)
{
	pmf_ns_t diff;

	rtt = PMF_MAX(rtt, 1u);
	if (r->srtt == 0) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
	} else {
		diff = r->srtt > rtt ? r->srtt - rtt : rtt - r->srtt;
		r->rttvar = r->rttvar - r->rttvar / 4 + diff / 4;
		r->srtt = PMF_MAX(r->srtt - r->srtt / 8 + rtt / 8, 1u);
	}
	if (r->min == 0 || rtt <= r->min || now - r->min_at > MIN_PERIOD) {
		r->min = rtt;
		r->min_at = now;
	}
	r->backoff = 0;
}

pmf_ns_t pmf_rtt_rto(const struct pmf_rtt *r, pmf_ns_t min, pmf_ns_t max)
{
	pmf_ns_t rto = r->srtt == 0 ? RTO_INITIAL : r->srtt + 4 * r->rttvar;
	uint32_t backoff = PMF_MIN(r->backoff, MAX_BACKOFF);

	rto = PMF_MIN(PMF_MAX(rto, min), max);
	return rto > max >> backoff ? max : rto << backoff;
}
