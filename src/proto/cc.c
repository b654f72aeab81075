/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Plain congestion control: RFC 5681 counted in packets. The struct belongs to one flow.
 */
#include "proto/cc.h"

#define ONE 256u	   /* one packet */
#define INITIAL_WINDOW 10u /* packets, RFC 6928 */

void pmf_cc_init(struct pmf_cc *cc, uint32_t window)
{
	cc->max = PMF_MIN(window, UINT32_MAX / ONE) * ONE;
	cc->cwnd = PMF_MIN(INITIAL_WINDOW * ONE, cc->max);
	cc->ssthresh = cc->max;
	cc->acked = 0;
	cc->recovery_end = 0;
	cc->next_send = 0;
}

/* No pacing here: next_send stays 0. */
void pmf_cc_on_send(struct pmf_cc *cc, uint32_t inflight, pmf_ns_t now)
{
	(void)cc;
	(void)inflight;
	(void)now;
}

void pmf_cc_on_ack(struct pmf_cc *cc, uint32_t acked, uint32_t inflight, pmf_ns_t rtt, uint32_t ce,
		   pmf_ns_t now)
{
	uint64_t cwnd = cc->cwnd;

	(void)rtt;
	(void)now;
	if (pmf_unlikely(ce != 0)) {
		/* Half a packet less for each mark: all marked halves the window in a round trip.
		 */
		uint64_t less = (uint64_t)ce * (ONE / 2), floor = PMF_MIN(2 * ONE, cc->max);

		cwnd = cwnd > floor + less ? cwnd - less : PMF_MIN(cwnd, floor);
		cc->cwnd = (uint32_t)cwnd;
		cc->ssthresh = cc->cwnd;
		return;
	}
	/* A window that was not used proves nothing about the path (RFC 7661). */
	if (cwnd == cc->max || 2 * ONE * ((uint64_t)inflight + acked) < cwnd)
		return;
	if (cwnd < cc->ssthresh) {
		cwnd += (uint64_t)acked * ONE;
	} else {
		cc->acked += acked;
		if (cc->acked * (uint64_t)ONE >= cwnd) {
			cc->acked = 0;
			cwnd += ONE;
		}
	}
	cc->cwnd = (uint32_t)PMF_MIN(cwnd, cc->max);
}

void pmf_cc_on_loss(struct pmf_cc *cc, pmf_psn_t psn, pmf_psn_t next, bool timeout, pmf_ns_t now)
{
	(void)now;
	if (psn >= cc->recovery_end) {
		cc->ssthresh = PMF_MIN(PMF_MAX(cc->cwnd / 2, 2 * ONE), cc->max);
		cc->cwnd = PMF_MIN(cc->cwnd, cc->ssthresh);
		cc->recovery_end = next;
	}
	if (timeout)
		cc->cwnd = PMF_MIN(ONE, cc->max);
}
