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
#define LEARN (20 * PMF_NS_PER_MS) /* the least of larger packets */
#define SMALL_MOST 64		   /* packets of less than those measured */

void pmf_rtt_init(struct pmf_rtt *r)
{
	memset(r, 0, sizeof(*r));
}

void pmf_rtt_sample(struct pmf_rtt *r, pmf_ns_t rtt, pmf_ns_t now)
{
	pmf_ns_t diff;

	rtt = PMF_MAX(rtt, 1u);
	if (r->min == 0) {
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

void pmf_rtt_guess(struct pmf_rtt *r, pmf_ns_t most)
{
	/* Such that the timeout is not above that without a guess. */
	r->srtt = PMF_MIN(PMF_MAX(most, 1u), RTO_INITIAL / 3);
	r->rttvar = r->srtt / 2;
}

pmf_ns_t pmf_rtt_rto(const struct pmf_rtt *r, pmf_ns_t min, pmf_ns_t max)
{
	pmf_ns_t rto = r->srtt == 0 ? RTO_INITIAL : r->srtt + 4 * r->rttvar;
	uint32_t backoff = PMF_MIN(r->backoff, MAX_BACKOFF);

	rto = PMF_MIN(PMF_MAX(rto, min), max);
	return rto > max >> backoff ? max : rto << backoff;
}

static void start_anew(struct pmf_base *b, uint8_t size, pmf_ns_t rtt, pmf_ns_t now)
{
	b->size = size;
	b->small = 0;
	b->min = b->next = rtt;
	b->since = now;
}

bool pmf_base_take(struct pmf_base *b, uint8_t size, pmf_ns_t rtt, pmf_ns_t now)
{
	if (size == 0)
		return false;
	if (pmf_unlikely(4u * size < 3u * b->size)) {
		/* A flow of large packets has small ones, too; not only, for long. */
		if (++b->small < SMALL_MOST)
			return false;
		start_anew(b, size, rtt, now);
	} else if (pmf_unlikely(4u * b->size < 3u * size)) {
		/* Queues may be full at this moment: the smaller ones' time counts for a while. */
		pmf_ns_t before = b->min ? b->min + b->min / 2 : rtt;

		start_anew(b, size, rtt, now);
		b->min = PMF_MIN(before, rtt);
		b->since = now - MIN_PERIOD / 2 + LEARN;
	}
	b->small = 0;
	if (pmf_unlikely(now - b->since > MIN_PERIOD / 2)) {
		b->min = b->next;
		b->next = rtt;
		b->since = now;
	}
	b->min = PMF_MIN(b->min, rtt);
	b->next = PMF_MIN(b->next, rtt);
	return true;
}
