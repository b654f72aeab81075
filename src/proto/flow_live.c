/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Whether the peer lives: answers that are due, and probes when nothing else would be answered. A
 * peer that is only slow to post a buffer or to give credit answers probes and is waited for
 * without limit.
 */
#include "proto/flow_private.h"

#define BLOCKED_MOST (100 * PMF_NS_PER_MS)
#define IDLE_ASK 6   /* times dead_after without a word until an idle peer is asked, and again */
#define IDLE_ASKS 10 /* not answered: it is forgotten */
#define LATE (10 * PMF_NS_PER_MS) /* no timer comes so late while somebody runs the engine */

/* From now on an answer is due. */
void pmf_flow_due(struct pmf_flow *f, pmf_ns_t now)
{
	f->due_since = now;
	pmf_flow_arm(f, now + f->conf->dead_after);
}

static bool answer_due(const struct pmf_flow *f)
{
	return f->una != f->psn_next || f->probe_txno != 0 || f->state == PMF_FLOW_HELLO ||
	       f->state == PMF_FLOW_OPENING || f->state == PMF_FLOW_RESYNC;
}

static void check_dead(struct pmf_flow *f, pmf_ns_t now)
{
	pmf_ns_t limit = PMF_MAX(f->last_rx, f->due_since) + f->conf->dead_after;

	if (!answer_due(f))
		return;
	if (now >= limit)
		pmf_flow_kill(f, f->key_refused_at > f->last_rx ? EKEYREJECTED
				 : f->bound			? ETIMEDOUT
								: EHOSTUNREACH);
	else
		pmf_flow_arm(f, limit);
}

/*
 * Nobody has looked since the timer was due: the process was stopped, or got no processor. It has
 * neither asked nor listened meanwhile, so this time is no silence of the peer's.
 */
void pmf_flow_late(struct pmf_flow *f, pmf_ns_t now)
{
	pmf_ns_t due = PMF_MIN(f->loss_at, f->slow_at);

	if (pmf_likely(now < LATE || due > now - LATE))
		return;
	f->due_since = PMF_MIN(PMF_MAX(f->last_rx, f->due_since) + (now - due), now);
}

/* Sending has stopped for want of credit and nothing is in flight that would bring some. */
void pmf_flow_stalled(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->probe_every != 0)
		return;
	f->probe_every = PMF_MAX(f->pto, f->conf->min_rto);
	f->probe_at = now + f->probe_every;
	pmf_flow_arm(f, f->probe_at);
}

void pmf_flow_watch(struct pmf_flow *f, pmf_ns_t now)
{
	f->watch = true;
	pmf_flow_arm(f, now + f->conf->dead_after / 4);
}

/* A probe that is out is forgotten by the timer, which is armed. */
void pmf_flow_unwatch(struct pmf_flow *f)
{
	f->watch = false;
}

bool pmf_flow_idle(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->state != PMF_FLOW_OPEN || !pmf_flow_is_quiet(f) || !TAILQ_EMPTY(&f->parked) ||
	    !TAILQ_EMPTY(&f->waiting))
		return true;
	if (f->asked_at <= f->last_rx)
		f->asks = 0;
	if (now < PMF_MAX(f->last_rx, f->asked_at) + IDLE_ASK * f->conf->dead_after)
		return true;
	if (f->asks == IDLE_ASKS)
		return false;
	f->asks++;
	f->asked_at = now;
	f->want |= PMF_WANT_ASK;
	return true;
}

/* A quarter of the time without a word: ask, and count the silence from its beginning. */
static void watch_peer(struct pmf_flow *f, pmf_ns_t now)
{
	pmf_ns_t most = f->conf->dead_after / 4, ask = f->last_rx + most;

	if (now >= ask && f->state == PMF_FLOW_OPEN && f->una == f->psn_next) {
		if (f->probe_txno == 0) {
			f->probe_txno = f->txno_next;
			f->due_since = now - most;
			pmf_flow_arm(f, now - most + f->conf->dead_after);
		}
		f->want |= PMF_WANT_PROBE;
	}
	pmf_flow_arm(f, PMF_MAX(ask, now + most / 2));
}

/*
 * A probe that is answered is followed by the next one after a long while, one that is not by
 * another soon, so that a few lost ones make nobody dead. Who waits for credit asks more often: the
 * packet that brought it may have been lost.
 */
static void probe_again(struct pmf_flow *f, pmf_ns_t now)
{
	pmf_ns_t most = f->conf->dead_after / 4, soon = most / 8;
	bool answered = f->probe_txno == 0;

	if (f->blocked) {
		f->probe_every = PMF_MIN(2 * f->probe_every, PMF_MIN(most, BLOCKED_MOST));
	} else if (f->probe_every != most && answered) {
		f->probe_every = most;
		f->probe_at = now + most;
		return;
	} else {
		f->probe_every = soon;
	}
	if (f->state == PMF_FLOW_OPEN)
		f->want |= PMF_WANT_PROBE;
	else /* the challenge granted nothing: open without a message */
		pmf_flow_ack_soon(f);
	f->probe_at = now + f->probe_every;
}

static void keep_alive(struct pmf_flow *f, pmf_ns_t now)
{
	pmf_ns_t most = f->conf->dead_after / 4;
	bool parked = !TAILQ_EMPTY(&f->parked) || !TAILQ_EMPTY(&f->waiting);

	if (!parked && !f->blocked) {
		f->probe_every = 0;
		if (!f->watch)
			f->probe_txno = 0;
		return;
	}
	/* What is in flight asks for an answer by itself, but it may end and leave the parked. */
	if (f->una != f->psn_next || !pmf_flow_carries_data(f)) {
		f->probe_every = f->probe_txno = 0;
		pmf_flow_arm(f, now + most);
		return;
	}
	if (f->probe_every == 0 && f->blocked) {
		pmf_flow_stalled(f, now);
	} else if (f->probe_every == 0) {
		f->probe_every = most;
		f->probe_at = now + most;
	}
	if (now >= f->probe_at)
		probe_again(f, now);
	pmf_flow_arm(f, f->probe_at);
}

void pmf_flow_live_timer(struct pmf_flow *f, pmf_ns_t now)
{
	if (f->state == PMF_FLOW_DEAD)
		return;
	f->slow_at = PMF_NS_NEVER;
	check_dead(f, now);
	if (f->state == PMF_FLOW_DEAD)
		return;
	pmf_flow_contact_timer(f, now);
	if (f->state == PMF_FLOW_RESYNC) {
		if (now >= f->contact_at)
			f->want |= PMF_WANT_RESYNC;
		else
			pmf_flow_arm(f, f->contact_at);
	}
	keep_alive(f, now);
	if (f->watch)
		watch_peer(f, now);
	pmf_flow_mtu_timer(f, now);
}

void pmf_flow_on_echo(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now)
{
	uint64_t txno = pmf_extend32(hdr->ack_txno, f->txno_next);

	if (f->probe_txno != 0 && txno >= f->probe_txno)
		f->probe_txno = 0;
	if (!(hdr->flags & PMF_HF_RESYNC))
		pmf_flow_mtu_echo(f, txno, now);
	else if (f->state == PMF_FLOW_RESYNC && txno >= f->resync_txno)
		pmf_flow_resync_done(f, hdr, now);
}
