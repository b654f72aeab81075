/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Path MTU after RFC 8899: larger packets are used only after a padded probe of that size has been
 * echoed, and given up when they keep getting lost and probes of their size go unanswered. Searched
 * for only when there is enough to fill packets.
 */
#include "proto/flow_private.h"

#define MAX_PROBES 3			 /* of one size, RFC 8899 §5.1.2 */
#define RAISE_EVERY (600 * PMF_NS_PER_S) /* PMTU_RAISE_TIMER */
#define AFTER_FALL (1 * PMF_NS_PER_S)
#define CLOSE_ENOUGH 256 /* bytes between what passes and what does not */
#define BLACK_HOLE 3	 /* packets lost again, and none acknowledged between: a doubt */
#define DOUBT_PROBES 6	 /* of the present size, until it is given up */

/* UDP payload of a standard Ethernet frame over IPv4 and IPv6: the sizes most worth trying. */
static const uint16_t usual[] = {1472, 1452};

void pmf_flow_mtu_bind(struct pmf_flow *f)
{
	uint16_t both = PMF_MIN(f->conf->max_payload, f->peer_max);
	uint16_t floor = PMF_MIN(PMF_WIRE_MIN_PAYLOAD, both);

	/* All sizes here are without the tag. */
	both -= f->id.tail;
	f->pl.ceiling = both;
	f->pl.floor = floor - f->id.tail;
	f->pl.bad = both == UINT16_MAX ? both : both + 1;
	f->mtu = f->pl.floor;
}

/* The next size to try, 0: none is worth it. */
static uint16_t next_size(const struct pmf_flow *f)
{
	uint16_t low = f->mtu, bad = f->pl.bad;

	if (bad > f->pl.ceiling)
		return f->pl.ceiling > low ? f->pl.ceiling : 0;
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(usual); i++) {
		uint16_t size = usual[i] - f->id.tail;

		if (size > low && size < bad)
			return size;
	}
	return bad > low && bad - low > CLOSE_ENOUGH ? (uint16_t)(low + (bad - low) / 2) : 0;
}

static void search(struct pmf_flow *f, pmf_ns_t now)
{
	f->pl.size = next_size(f);
	f->pl.tries = 0;
	if (f->pl.size != 0) {
		f->want |= PMF_WANT_MTU;
	} else {
		f->pl.bad = f->pl.ceiling == UINT16_MAX ? UINT16_MAX : f->pl.ceiling + 1;
		f->pl.at = now + RAISE_EVERY;
	}
}

/* A packet was filled and there is more: a larger one would be of use. */
void pmf_flow_mtu_full(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->pl.size == 0 && now >= f->pl.at && f->state == PMF_FLOW_OPEN && !f->intro)
		search(f, now);
}

size_t pmf_flow_mtu_probe(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap)
{
	f->want &= (uint8_t)~PMF_WANT_MTU;
	f->pl.txno = f->txno_next;
	f->pl.tries += f->pl.tries != UINT8_MAX;
	f->pl.at = now + pmf_rtt_rto(&f->rtt, f->conf->min_rto, f->conf->max_rto);
	pmf_flow_arm(f, f->pl.at);
	return pmf_flow_probe(f, 0, f->pl.size, now, buf, cap);
}

void pmf_flow_mtu_echo(struct pmf_flow *f, uint64_t txno, pmf_ns_t now)
{
	if (f->pl.size == 0 || txno != f->pl.txno || f->pl.tries == 0 || f->state != PMF_FLOW_OPEN)
		return;
	f->want &= (uint8_t)~PMF_WANT_MTU;
	f->stats->mtu_raised += f->pl.size != f->mtu;
	f->mtu = f->pl.size;
	f->pl.size = 0;
	f->pl.at = now;
	f->pl.big_lost = 0;
}

static void fall(struct pmf_flow *f, pmf_ns_t now)
{
	f->pl.bad = f->mtu;
	f->pl.size = 0;
	f->pl.at = now + AFTER_FALL;
	f->pl.big_lost = 0;
	f->mtu = f->pl.floor;
	f->stats->mtu_fell++;
	pmf_flow_resync(f, now);
}

/* The present size is in doubt, and one more probe of it went unanswered. */
static void doubt(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->pl.big_lost < BLACK_HOLE || f->state != PMF_FLOW_OPEN)
		f->pl.size = 0;
	else if (f->last_rx < f->pl.since)
		f->want |= PMF_WANT_MTU | PMF_WANT_PROBE;
	else if (f->pl.tries < DOUBT_PROBES)
		f->want |= PMF_WANT_MTU;
	else
		fall(f, now);
}

void pmf_flow_mtu_timer(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->pl.size == 0 || (f->want & PMF_WANT_MTU))
		return;
	if (now < f->pl.at) {
		pmf_flow_arm(f, f->pl.at);
	} else if (f->pl.size == f->mtu) {
		doubt(f, now);
	} else if (f->pl.tries < MAX_PROBES) {
		f->want |= PMF_WANT_MTU;
	} else {
		f->pl.bad = f->pl.size;
		search(f, now);
	}
}

/*
 * Large packets that are lost again and again may have met a path that swallows them, or only a bad
 * one: probes tell, small ones that the peer is there, and large ones what passes.
 */
void pmf_flow_mtu_lost(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->pl.big_lost != UINT8_MAX)
		f->pl.big_lost++;
	if (f->pl.big_lost < BLACK_HOLE || f->state != PMF_FLOW_OPEN || f->mtu <= f->pl.floor ||
	    f->pl.size == f->mtu)
		return;
	f->pl.size = f->mtu;
	f->pl.tries = 0;
	f->pl.since = now;
	f->want |= PMF_WANT_MTU | PMF_WANT_PROBE;
}
