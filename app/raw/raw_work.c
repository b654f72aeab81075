/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "raw_work.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_memcpy.h>

#include "../clock.h"
#include "../error.h"
#include "raw_frame.h"

/*
 * The four loops. Whoever asks (ping, flood) greets first and says when it is over; whoever answers
 * (echo, sink) serves until then. One work at a time, hence the one state.
 */

#define WALK_BYTES ((size_t)64 << 20)
#define RETRY_NS (PERF_NS_PER_MS)
#define LINGER_NS (300 * PERF_NS_PER_MS)

static struct {
	struct raw_port *port;
	const struct raw_options *options;
	struct raw_result *result;
	const volatile int *stop;
	uint8_t *walk;
	size_t tx_at;
	size_t rx_at;
	uint64_t sum;
	double ns_per_cycle;
	uint32_t idle;
} work;

static uint64_t cycles_to_ns(uint64_t cycles)
{
	return (uint64_t)((double)cycles * work.ns_per_cycle);
}

static void take_turn(bool worked)
{
	uint32_t yield = work.options->yield;

	work.idle = worked ? 0 : work.idle + 1;
	if (yield && work.idle && work.idle % yield == 0)
		sched_yield();
}

static size_t walk_step(size_t *at, size_t len)
{
	size_t here = *at;

	*at += (len + 63) & ~(size_t)63;
	if (*at + RAW_SIZE_MAX > WALK_BYTES)
		*at = 0;
	return here;
}

static void write_payload(struct rte_mbuf *m)
{
	size_t len = m->data_len - sizeof(struct raw_frame);

	if (work.options->touch == RAW_TOUCH_NONE)
		return;
	rte_memcpy(rte_pktmbuf_mtod_offset(m, void *, sizeof(struct raw_frame)),
		   work.walk + walk_step(&work.tx_at, len), len);
}

static void read_payload(const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, sizeof(struct raw_frame));
	size_t len = m->data_len - sizeof(struct raw_frame), i;
	uint64_t word;

	switch (work.options->touch) {
	case RAW_TOUCH_COPY:
		rte_memcpy(work.walk + walk_step(&work.rx_at, len), p, len);
		break;
	case RAW_TOUCH_SUM:
		for (i = 0; i + 8 <= len; i += 8) {
			memcpy(&word, p + i, 8);
			work.sum += word;
		}
		break;
	default:
		break;
	}
}

/* Send one frame, dropping it if the ring stays full: all that matters is asked for again. */
static int send_frame(enum raw_kind kind, uint64_t number, uint64_t ns, uint32_t size)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(work.port->pool);

	if (!m)
		return perf_fail("the frames have run out");
	raw_frame_make(m, work.port, kind, number, ns, size);
	if (kind == RAW_PING)
		write_payload(m);
	if (rte_eth_tx_burst(work.port->id, 0, &m, 1) == 0)
		rte_pktmbuf_free(m);
	return 0;
}

/* Ask until the answer comes; *answer gets its header. */
static int ask(enum raw_kind kind, uint64_t number, enum raw_kind wanted, struct raw_frame *answer)
{
	uint64_t now = perf_now(), deadline = now + work.options->timeout_ns, next = now;
	struct rte_mbuf *bufs[RAW_BURST];
	struct raw_frame *f;
	bool found = false;
	uint16_t n, i;

	while (!found) {
		now = perf_now();
		if (now > deadline || *work.stop)
			return perf_fail("the other side did not answer within %g s",
					 (double)work.options->timeout_ns / 1e9);
		if (now >= next) {
			next = now + RETRY_NS;
			if (send_frame(kind, number, 0, RAW_SIZE_MIN))
				return -1;
		}
		n = rte_eth_rx_burst(work.port->id, 0, bufs, RAW_BURST);
		for (i = 0; i < n; i++) {
			f = raw_frame_get(bufs[i]);
			if (f && f->kind == wanted) {
				*answer = *f;
				found = true;
			}
			rte_pktmbuf_free(bufs[i]);
		}
		take_turn(n > 0);
	}
	return 0;
}

static int greet(void)
{
	struct raw_frame answer;

	if (ask(RAW_HELLO, 0, RAW_WELCOME, &answer))
		return -1;
	work.port->peer = answer.ether.src_addr;
	return 0;
}

/* Wait for one pong; a frame lost on the way is a failure, since nothing here repeats. */
static int await_pong(uint64_t number)
{
	struct rte_mbuf *bufs[RAW_BURST];
	uint64_t deadline = 0;
	struct raw_frame *f;
	bool found = false;
	uint16_t n, i;

	while (!found) {
		n = rte_eth_rx_burst(work.port->id, 0, bufs, RAW_BURST);
		for (i = 0; i < n; i++) {
			f = raw_frame_get(bufs[i]);
			if (f && f->kind == RAW_PONG && raw_get64(f->number) == number) {
				read_payload(bufs[i]);
				found = true;
			}
			rte_pktmbuf_free(bufs[i]);
		}
		take_turn(n > 0);
		if (n || work.idle % 4096)
			continue;
		if (deadline == 0)
			deadline = perf_now() + work.options->timeout_ns;
		if (perf_now() > deadline)
			return perf_fail("frame %llu did not come back",
					 (unsigned long long)number);
	}
	return 0;
}

static int ping(void)
{
	const struct raw_options *o = work.options;
	uint64_t limit = o->count ? o->warmup + o->count : UINT64_MAX, i;
	uint64_t start = 0, end = UINT64_MAX, before, now;
	struct raw_frame answer;

	if (greet())
		return -1;
	now = rte_rdtsc();
	for (i = 0; i < limit && now < end && !*work.stop; i++) {
		if (i == o->warmup) {
			start = now;
			if (!o->count)
				end = start +
				      (uint64_t)((double)o->duration_ns / work.ns_per_cycle);
		}
		if (send_frame(RAW_PING, i, 0, o->size) || await_pong(i))
			return -1;
		before = now;
		now = rte_rdtsc();
		if (i >= o->warmup)
			perf_histogram_add(&work.result->rtt, cycles_to_ns(now - before));
	}
	work.result->sent = i;
	work.result->received = i;
	work.result->ns = cycles_to_ns(now - start);
	return ask(RAW_STOP, i, RAW_STOPPED, &answer);
}

/* One burst of data. How many went out, or -1. */
static int flood_burst(uint64_t number, uint16_t want)
{
	struct rte_mbuf *bufs[RAW_BURST];
	uint16_t n, i;

	/* An empty pool means that the frames are with the driver: that is its back-pressure. */
	if (rte_pktmbuf_alloc_bulk(work.port->pool, bufs, want)) {
		rte_eth_tx_done_cleanup(work.port->id, 0, 0);
		return 0;
	}
	for (i = 0; i < want; i++) {
		raw_frame_make(bufs[i], work.port, RAW_DATA, number + i, 0, work.options->size);
		write_payload(bufs[i]);
	}
	n = rte_eth_tx_burst(work.port->id, 0, bufs, want);
	if (n < want)
		rte_pktmbuf_free_bulk(bufs + n, want - n);
	return n;
}

static int flood(void)
{
	const struct raw_options *o = work.options;
	uint64_t limit = o->count ? o->count : UINT64_MAX, sent = 0, turns = 0, end;
	struct raw_frame answer;
	int n;

	if (greet())
		return -1;
	end = perf_now() + o->duration_ns;
	while (sent < limit && !*work.stop) {
		n = flood_burst(sent,
				(uint16_t)(limit - sent < RAW_BURST ? limit - sent : RAW_BURST));
		if (n < 0)
			return -1;
		sent += (uint64_t)n;
		take_turn(n > 0);
		if (!o->count && ++turns % 64 == 0 && perf_now() >= end)
			break;
	}
	if (ask(RAW_STOP, sent, RAW_STOPPED, &answer))
		return -1;
	work.result->sent = sent;
	work.result->received = raw_get64(answer.number);
	work.result->ns = raw_get64(answer.ns);
	return 0;
}

struct service {
	uint64_t first; /* TSC */
	uint64_t last;
	uint64_t over; /* ns when a STOP last came; 0: none yet */
};

/* Turn a ping into its pong, in place. */
static bool answer_ping(struct rte_mbuf *m, struct raw_frame *f)
{
	if (f->kind != RAW_PING)
		return false;
	read_payload(m);
	write_payload(m);
	f->kind = RAW_PONG;
	f->ether.dst_addr = f->ether.src_addr;
	f->ether.src_addr = work.port->own;
	work.result->received++;
	return true;
}

static int answer_control(struct service *s, const struct raw_frame *f)
{
	struct raw_result *r = work.result;

	work.port->peer = f->ether.src_addr;
	if (f->kind == RAW_HELLO)
		return send_frame(RAW_WELCOME, 0, 0, RAW_SIZE_MIN);
	if (f->kind != RAW_STOP)
		return 0;
	s->over = perf_now();
	r->sent = raw_get64(f->number);
	r->ns = cycles_to_ns(s->last - s->first);
	return send_frame(RAW_STOPPED, r->received, r->ns, RAW_SIZE_MIN);
}

/* Serve one burst; pongs leave together. */
static int serve_burst(struct service *s, struct rte_mbuf **bufs, uint16_t n)
{
	struct rte_mbuf *out[RAW_BURST];
	uint16_t n_out = 0, sent, i;
	uint64_t now = rte_rdtsc();
	struct raw_frame *f;
	int rc = 0;

	for (i = 0; i < n; i++) {
		f = raw_frame_get(bufs[i]);
		if (f && work.options->mode == RAW_MODE_ECHO && answer_ping(bufs[i], f)) {
			out[n_out++] = bufs[i];
			continue;
		}
		if (f && f->kind == RAW_DATA) {
			read_payload(bufs[i]);
			if (work.result->received++ == 0)
				s->first = now;
			s->last = now;
		} else if (f && answer_control(s, f)) {
			rc = -1;
		}
		rte_pktmbuf_free(bufs[i]);
	}
	for (sent = 0; sent < n_out;)
		sent += rte_eth_tx_burst(work.port->id, 0, out + sent, n_out - sent);
	return rc;
}

static int serve(void)
{
	struct service s = {0};
	struct rte_mbuf *bufs[RAW_BURST];
	uint16_t n;

	while (!*work.stop) {
		n = rte_eth_rx_burst(work.port->id, 0, bufs, RAW_BURST);
		if (n && serve_burst(&s, bufs, n))
			return -1;
		take_turn(n > 0);
		/* The answer to STOP may have been lost: it is given again for a while. */
		if (s.over && n == 0 && perf_now() - s.over > LINGER_NS)
			break;
	}
	return 0;
}

int raw_work(struct raw_port *p, const struct raw_options *o, struct raw_result *r,
	     const volatile int *stop)
{
	int rc;

	memset(&work, 0, sizeof(work));
	memset(r, 0, sizeof(*r));
	perf_histogram_init(&r->rtt);
	work.port = p;
	work.options = o;
	work.result = r;
	work.stop = stop;
	work.ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	work.walk = malloc(WALK_BYTES);
	if (!work.walk)
		return perf_fail("no memory to walk through");
	memset(work.walk, 0x5a, WALK_BYTES);
	if (o->mode == RAW_MODE_PING)
		rc = ping();
	else if (o->mode == RAW_MODE_FLOOD)
		rc = flood();
	else
		rc = serve();
	free(work.walk);
	return rc;
}
