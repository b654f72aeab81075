/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "self.h"

#include <sched.h>
#include <string.h>

#include "clock.h"
#include "endpoint.h"
#include "error.h"
#include "region.h"
#include "report.h"
#include "run.h"

/*
 * Both ends in one program and one thread: no session, no partner. What it shows is what the
 * provider does for one application thread, by itself or by a thread of its own (automatic
 * progress).
 */

#define RECEIVES 16u
#define WARM_UP 1000u
#define LOOK 256u /* empty polls between two looks at the clock and at the user */

struct side {
	struct perf_endpoint endpoint;
	struct perf_region rx; /* RECEIVES buffers */
	fi_addr_t peer;
	uint64_t sent;
	uint64_t received;
};

struct self {
	const struct perf_options *options;
	struct perf_fabric fabric;
	struct perf_region tx;
	struct side sides[2];
	struct perf_result result;
	size_t size;
	bool inject;
	bool (*stop)(void *arg);
};

static int post_receive(struct self *x, struct side *s, uint8_t *buf)
{
	ssize_t rc = fi_recv(s->endpoint.ep, buf, x->size, s->rx.desc, FI_ADDR_UNSPEC, buf);

	return rc ? perf_fail("a receive of %zu bytes is refused: %s", x->size,
			      fi_strerror((int)-rc))
		  : 0;
}

/* The context of a receive is its buffer, a send has none. */
static int poll_side(struct self *x, struct side *s)
{
	struct fi_cq_data_entry entries[RECEIVES];
	int n = perf_endpoint_read(&s->endpoint, entries, RECEIVES), i;

	for (i = 0; i < n; i++) {
		if (!entries[i].op_context)
			continue;
		if (entries[i].len != x->size)
			return perf_fail("a message has %zu bytes where %zu were sent",
					 entries[i].len, x->size);
		s->received++;
		if (post_receive(x, s, entries[i].op_context))
			return -1;
	}
	return n < 0 ? -1 : n;
}

/* @return 1 posted, 0 no room now, -1 */
static int send_one(struct self *x, struct side *s)
{
	struct perf_endpoint *e = &s->endpoint;
	ssize_t rc = x->inject ? fi_inject(e->ep, x->tx.base, x->size, s->peer)
			       : fi_send(e->ep, x->tx.base, x->size, x->tx.desc, s->peer, NULL);

	if (rc == -FI_EAGAIN)
		return 0;
	if (rc)
		return perf_fail("a send of %zu bytes is refused: %s", x->size,
				 fi_strerror((int)-rc));
	s->sent++;
	return 1;
}

static int look(struct self *x, uint64_t since)
{
	if (x->stop(NULL))
		return perf_fail("interrupted");
	return perf_now() - since > x->options->timeout_ns
		       ? perf_fail("no message has moved for %g s",
				   (double)x->options->timeout_ns / 1e9)
		       : 0;
}

/* One message, from its post to the reading of its completion at the other end. */
static int cross(struct self *x, struct side *from, struct side *to, uint64_t now)
{
	const uint32_t yield = x->options->yield;
	uint64_t before = to->received;
	uint32_t idle = 0;
	int sent = 0, n;

	while (to->received == before) {
		if (!sent && (sent = send_one(x, from)) < 0)
			return -1;
		n = poll_side(x, to);
		if (n == 0)
			n = poll_side(x, from);
		if (n < 0)
			return -1;
		idle = n ? 0 : idle + 1;
		if (yield && idle && idle % yield == 0)
			sched_yield();
		if (idle && idle % LOOK == 0 && look(x, now))
			return -1;
	}
	return 0;
}

static int ping(struct self *x)
{
	const struct perf_options *o = x->options;
	uint64_t warm = o->warmup_auto ? WARM_UP : o->warmup, n;
	uint64_t limit = o->count ? warm + o->count : UINT64_MAX;
	uint64_t now = perf_now(), start = now, end = UINT64_MAX, before;
	struct perf_result *r = &x->result;

	for (n = 0; n < limit && now < end; n++) {
		if (n == warm) {
			start = now;
			end = o->count ? UINT64_MAX : start + o->duration_ns;
		}
		if (cross(x, &x->sides[0], &x->sides[1], now) ||
		    cross(x, &x->sides[1], &x->sides[0], now))
			return -1;
		before = now;
		now = perf_now();
		if (n >= warm)
			perf_histogram_add(&r->rtt, now - before);
		if (n % 4096 == 0 && look(x, now))
			return -1;
	}
	r->rtt_ns = r->rtt.count ? now - start : 0;
	return 0;
}

static void close_sides(struct self *x)
{
	int i;

	for (i = 0; i < 2; i++) {
		perf_endpoint_close(&x->sides[i].endpoint);
		perf_region_close(&x->sides[i].rx);
	}
	perf_region_close(&x->tx);
	memset(x->sides, 0, sizeof(x->sides));
}

static int open_side(struct self *x, struct side *s)
{
	size_t stride = (x->size + 63) & ~(size_t)63, i;

	if (perf_region_open(&s->rx, &x->fabric, RECEIVES * stride + 1) ||
	    perf_endpoint_open(&s->endpoint, &x->fabric, x->fabric.data_info, 4 * RECEIVES, 2))
		return -1;
	for (i = 0; i < RECEIVES; i++) {
		if (post_receive(x, s, s->rx.base + i * stride))
			return -1;
	}
	return 0;
}

static int open_sides(struct self *x)
{
	struct side *s = x->sides;

	return perf_region_open(&x->tx, &x->fabric, x->size + 1) || open_side(x, &s[0]) ||
			       open_side(x, &s[1]) ||
			       perf_endpoint_insert(&s[0].endpoint, s[1].endpoint.name,
						    s[1].endpoint.name_len, &s[0].peer) ||
			       perf_endpoint_insert(&s[1].endpoint, s[0].endpoint.name,
						    s[0].endpoint.name_len, &s[1].peer)
		       ? -1
		       : 0;
}

static int one_size(struct self *x, size_t size)
{
	struct perf_result *r = &x->result;
	int rc;

	memset(r, 0, sizeof(*r));
	perf_histogram_init(&r->rtt);
	r->partners = r->pairs = 1;
	r->work = (struct perf_work){
		.mode = PERF_LAT, .direction = PERF_BOTH, .size = size, .window = 1, .more = 1};
	x->size = size;
	x->inject =
		x->options->inject != PERF_OFF && size <= x->fabric.data_info->tx_attr->inject_size;
	rc = open_sides(x) || ping(x) ? -1 : 0;
	close_sides(x);
	if (rc == 0)
		perf_report_add(r);
	return rc;
}

int perf_self(const struct perf_options *o, bool (*stop)(void *arg))
{
	static struct self x;
	unsigned int i;
	int rc;

	memset(&x, 0, sizeof(x));
	x.options = o;
	x.stop = stop;
	rc = perf_fabric_open(&x.fabric, o);
	if (rc)
		return -1;
	for (i = 0; rc == 0 && i < o->n_sizes; i++)
		rc = one_size(&x, o->sizes[i]);
	perf_fabric_close(&x.fabric);
	return rc;
}
