/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "self_work.h"

#include <sched.h>

#include "clock.h"
#include "error.h"

/* The loops of one thread that has both ends. */

#define READ 16	      /* entries at a time */
#define WARM_UP 1000u /* messages */
#define LOOK 256u     /* empty polls between two looks at the clock and at the user */
#define PASSES 16u    /* of a stream, with entries, between two looks at the clock */

int perf_both_receive(struct perf_both *b, struct perf_side *s, uint8_t *buf)
{
	ssize_t rc = fi_recv(s->endpoint.ep, buf, b->size, s->rx.desc, FI_ADDR_UNSPEC, buf);

	return rc ? perf_fail("a receive of %zu bytes is refused: %s", b->size,
			      fi_strerror((int)-rc))
		  : 0;
}

/* The context of a receive is its buffer, a send has none. */
static int poll_side(struct perf_both *b, struct perf_side *s)
{
	struct fi_cq_data_entry entries[READ];
	int n = perf_endpoint_read(&s->endpoint, entries, READ), i;

	for (i = 0; i < n; i++) {
		if (!entries[i].op_context)
			continue;
		if (entries[i].len != b->size)
			return perf_fail("a message has %zu bytes where %zu were sent",
					 entries[i].len, b->size);
		s->received++;
		if (perf_both_receive(b, s, entries[i].op_context))
			return -1;
	}
	return n < 0 ? -1 : n;
}

/* Entries of either side, or -1. */
static int poll_both(struct perf_both *b, struct perf_side *first, struct perf_side *second)
{
	int n = poll_side(b, first);

	return n ? n : poll_side(b, second);
}

/* @return 1 posted, 0 no room now, -1 */
static int send_one(struct perf_both *b, struct perf_side *s)
{
	struct perf_endpoint *e = &s->endpoint;
	ssize_t rc = b->inject ? fi_inject(e->ep, b->tx.base, b->size, s->peer)
			       : fi_send(e->ep, b->tx.base, b->size, b->tx.desc, s->peer, NULL);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc)
		return perf_fail("a send of %zu bytes is refused: %s", b->size,
				 fi_strerror((int)-rc));
	s->sent++;
	return 1;
}

static int look(struct perf_both *b, uint64_t since)
{
	if (b->stop(NULL))
		return perf_fail("interrupted");
	if (atomic_load_explicit(b->failed, memory_order_relaxed))
		return -1;
	return perf_now() - since > b->options->timeout_ns
		       ? perf_fail("no message has moved for %g s",
				   (double)b->options->timeout_ns / 1e9)
		       : 0;
}

/* After a poll that gave @p n, with @p idle empty ones behind each other. */
static int pace(struct perf_both *b, int n, uint32_t *idle, uint64_t since)
{
	const uint32_t yield = b->options->yield;

	*idle = n ? 0 : *idle + 1;
	if (yield && *idle && *idle % yield == 0)
		sched_yield();
	return *idle && *idle % LOOK == 0 ? look(b, since) : 0;
}

static uint64_t warm_up(const struct perf_both *b)
{
	return b->options->warmup_auto ? WARM_UP : b->options->warmup;
}

/* One message, from its post to the reading of its completion at the other end. */
static int cross(struct perf_both *b, struct perf_side *from, struct perf_side *to, uint64_t now)
{
	uint64_t before = to->received;
	uint32_t idle = 0;
	int sent = 0, n;

	while (to->received == before) {
		if (!sent && (sent = send_one(b, from)) < 0)
			return -1;
		n = poll_both(b, to, from);
		if (n < 0 || pace(b, n, &idle, now))
			return -1;
	}
	return 0;
}

static int ping(struct perf_both *b)
{
	const struct perf_options *o = b->options;
	uint64_t warm = warm_up(b), n, limit = o->count ? warm + o->count : UINT64_MAX;
	uint64_t now = perf_now(), start = now, end = UINT64_MAX, before;

	for (n = 0; n < limit && now < end; n++) {
		if (n == warm) {
			start = now;
			end = o->count ? UINT64_MAX : start + o->duration_ns;
		}
		if (cross(b, &b->sides[0], &b->sides[1], now) ||
		    cross(b, &b->sides[1], &b->sides[0], now))
			return -1;
		before = now;
		now = perf_now();
		if (n >= warm)
			perf_histogram_add(&b->rtt, now - before);
		if (n % 4096 == 0 && look(b, now))
			return -1;
	}
	b->got = (struct perf_received){.messages = b->rtt.count, .ns = now - start};
	return 0;
}

/* From the first side to the second, with the window of the options under way. */
static int stream(struct perf_both *b)
{
	const struct perf_options *o = b->options;
	struct perf_side *from = &b->sides[0], *to = &b->sides[1];
	uint64_t warm = warm_up(b), limit = o->count ? warm + o->count : UINT64_MAX;
	uint64_t now = perf_now(), start = 0, end = UINT64_MAX;
	uint32_t idle = 0, passes = 0;
	int sent, n;

	while (to->received < limit && now < end) {
		for (sent = 1;
		     sent && from->sent < limit && from->sent - to->received < o->window;) {
			sent = send_one(b, from);
			if (sent < 0)
				return -1;
		}
		n = poll_both(b, to, from);
		if (n < 0 || pace(b, n, &idle, now))
			return -1;
		if (n && ++passes % PASSES == 0) {
			now = perf_now();
			if (b->stop(NULL))
				return perf_fail("interrupted");
		}
		if (start == 0 && to->received >= warm) {
			start = now = perf_now();
			b->got.messages = to->received;
			if (o->count)
				limit = to->received + o->count;
			else
				end = start + o->duration_ns;
		}
	}
	b->got.ns = perf_now() - start;
	b->got.messages = to->received - b->got.messages;
	while (to->received < from->sent) {
		n = poll_both(b, to, from);
		if (n < 0 || pace(b, n, &idle, now))
			return -1;
	}
	return 0;
}

int perf_both_work(struct perf_both *b)
{
	return b->mode == PERF_LAT ? ping(b) : stream(b);
}
