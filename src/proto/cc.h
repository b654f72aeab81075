/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Congestion control by delay, in the shape of Swift (Kumar et al., SIGCOMM 2020): a target for the
 * time that packets wait in queues, additive increase below it, multiplicative decrease above it,
 * once a round trip. Marks (RFC 3168) are smoothed as in DCTCP (RFC 8257), and tell of a queue that
 * stands and that delay does not show. The window may fall below one packet; sends are spaced then.
 * A struct belongs to one flow.
 *
 * Acknowledgements only add up; what divides or takes a root is done once a round trip.
 */
#ifndef PMF_PROTO_CC_H
#define PMF_PROTO_CC_H

#include "pmf_common.h"

#define PMF_CC_PHASE (1ull << 23) /* ns between two pauses that all make together, 8.4 ms */
#define PMF_CC_ONE 65536u	  /* one packet, as windows are counted */

struct pmf_cc {
	/* with every packet */
	uint32_t cwnd; /* packets, units of 1/65536 */
	uint32_t ssthresh;
	pmf_ns_t next_send; /* earliest next transmission; 0: at once */
	pmf_ns_t round_end;
	uint32_t interval; /* ns between transmissions; 0: not spaced */
	/* of this round */
	uint32_t least;	 /* time in queues, ns */
	pmf_ns_t queued; /* sum of them */
	uint32_t samples;
	uint32_t acked;
	uint32_t marks;
	uint32_t most; /* packets that were in flight at once */

	uint32_t max;
	uint32_t alpha; /* share of packets that come back marked, smoothed, in 1/65536 */

	/* once a round */
	pmf_ns_t base;	      /* least round trip */
	pmf_ns_t target;      /* for the time in queues */
	uint32_t queue;	      /* mean time in queues in the last round, UINT32_MAX: not known; ns */
	uint32_t smooth;      /* the same over several rounds */
	pmf_ns_t quiet_at;    /* when packets were last seen to pass without waiting */
	uint32_t aim;	      /* least target */
	uint16_t streak;      /* rounds without a queue to speak of */
	uint16_t undo_left;   /* packets lost in the last reduction, not seen to have arrived after
				 all */
	uint32_t tried, lost; /* packets, over several rounds */
	/* the last reduction for loss, which may turn out to be needless */
	pmf_psn_t recovery_end; /* a loss below it belongs to it */
	uint32_t undo_cwnd, undo_ssthresh;
};
static_assert(sizeof(struct pmf_cc) <= 2 * PMF_CACHE_LINE, "a line with every packet, one a round");

/** @param window packets; @param aim time in queues that a flow that is alone allows, ns */
void pmf_cc_init(struct pmf_cc *cc, uint32_t window, pmf_ns_t aim);

/** A round trip is over, or nothing is known of one: reckon. Called by pmf_cc_on_ack(). */
void pmf_cc_round(struct pmf_cc *cc, pmf_ns_t base, pmf_ns_t now);

/** @param psn the lost packet; @param next the next new packet number. @param timeout all was lost
 */
void pmf_cc_on_loss(struct pmf_cc *cc, pmf_psn_t psn, pmf_psn_t next, bool timeout, pmf_ns_t now);

/** A packet that counted as lost had arrived. */
void pmf_cc_on_spurious(struct pmf_cc *cc);

/**
 * Stop for a moment, together with all others who send to the same peer, so that queues run empty
 * and the least round trip shows; unless it has shown lately.
 */
void pmf_cc_pause(struct pmf_cc *cc, pmf_ns_t now);

/**
 * @param acked   packets, newly acknowledged
 * @param base    least round trip, 0: not known
 * @param queued  how long the packet waited in queues at least; PMF_NS_NEVER: no sample
 * @param ce      newly reported congestion marks
 */
static inline void pmf_cc_on_ack(struct pmf_cc *cc, uint32_t acked, uint32_t inflight,
				 pmf_ns_t base, pmf_ns_t queued, uint32_t ce, pmf_ns_t now)
{
	cc->acked += acked;
	cc->marks += ce;
	cc->most = PMF_MAX(cc->most, inflight + acked);
	if (queued != PMF_NS_NEVER) {
		cc->queued += queued;
		cc->least = (uint32_t)PMF_MIN(cc->least, queued);
		cc->samples++;
	}
	/* A window that was not used proves nothing about the path (RFC 7661). */
	if (cc->cwnd < cc->ssthresh && (queued <= cc->target || queued == PMF_NS_NEVER) &&
	    2 * PMF_CC_ONE * (uint64_t)cc->most >= cc->cwnd)
		cc->cwnd = (uint32_t)PMF_MIN(cc->cwnd + (uint64_t)acked * PMF_CC_ONE, cc->max);
	if (now >= cc->round_end)
		pmf_cc_round(cc, base, now);
}

/* As many sends as are due are made up for at once, within what a timer may be late. */
#define PMF_CC_LATE (16 * PMF_NS_PER_US)

static inline void pmf_cc_on_send(struct pmf_cc *cc, pmf_ns_t now)
{
	if (pmf_likely(cc->interval == 0))
		return;
	if (cc->next_send + PMF_CC_LATE < now)
		cc->next_send = now - PMF_CC_LATE;
	cc->next_send += cc->interval;
}

static inline bool pmf_cc_has_room(const struct pmf_cc *cc, uint32_t inflight)
{
	return (uint64_t)inflight * PMF_CC_ONE < cc->cwnd;
}

static inline bool pmf_cc_may_send(const struct pmf_cc *cc, uint32_t inflight, pmf_ns_t now)
{
	return pmf_cc_has_room(cc, inflight) && now >= cc->next_send;
}

#endif
