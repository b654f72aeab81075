/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "work.h"

#include "error.h"

/*
 * Bandwidth and rate: each flow keeps its window full, every completion is read, every receive is
 * posted again.
 */

struct stream {
	struct perf_station *st;
	uint64_t limit; /* messages of each flow, warm-up and all */
	uint64_t warm;	/* messages after which the time runs */
	uint64_t sent;	/* by all flows */
	uint64_t end;	/* ns */
	uint32_t turns;
	bool sending;
	bool told;
	bool stop_told;
};

/* One burst: calls with FI_MORE, the last one without. How many were posted, or -1. */
static int burst(struct stream *x, struct perf_flow *flow)
{
	struct perf_station *st = x->st;
	uint64_t room = st->n_tx - (flow->sent - flow->completed);
	uint64_t n = x->limit - flow->sent, i;
	int rc;

	n = n < st->work.more ? n : st->work.more;
	if (room < n)
		return 0;
	for (i = 0; i < n; i++) {
		rc = perf_station_send(st, flow, i + 1 < n ? FI_MORE : 0);
		if (rc < 0)
			return -1;
		if (rc == 0)
			break;
	}
	return (int)i;
}

static int send_some(struct stream *x)
{
	struct perf_station *st = x->st;
	unsigned int f, k;
	int n;

	for (f = 0; f < st->n_flows; f++) {
		/* Injected messages leave the window open: bound the turn all the same. */
		for (k = 0; k < st->n_tx; k += (unsigned int)n) {
			n = burst(x, &st->flows[f]);
			if (n < 0)
				return -1;
			if (n == 0)
				break;
			x->sent += (unsigned int)n;
		}
	}
	return 0;
}

static bool limit_reached(const struct stream *x)
{
	unsigned int f;

	for (f = 0; f < x->st->n_flows; f++) {
		if (x->st->flows[f].sent < x->limit)
			return false;
	}
	return true;
}

static bool user_stops(const struct stream *x)
{
	unsigned int f;

	if (x->st->session->stop)
		return true;
	for (f = 0; f < x->st->n_flows; f++) {
		if (x->st->flows[f].partner->stop)
			return true;
	}
	return false;
}

static bool time_is_up(struct stream *x)
{
	const struct perf_work *w = &x->st->work;

	if (w->count || x->sent < x->warm || ++x->turns % 16)
		return false;
	if (x->end == 0)
		x->end = perf_now() + w->duration_ns;
	return perf_now() >= x->end;
}

/* The client wants the servers' streams to end too. */
static int tell_stop(struct stream *x)
{
	struct perf_control m;
	unsigned int f;

	if (x->stop_told || !x->st->session->stop || x->st->session->options->listen)
		return 0;
	x->stop_told = true;
	for (f = 0; f < x->st->n_flows; f++) {
		m = (struct perf_control){.type = PERF_STOP};
		if (perf_session_send(x->st->session, x->st->flows[f].partner, &m))
			return -1;
	}
	return 0;
}

static int finish_sending(struct stream *x)
{
	if (perf_drain(x->st) || perf_station_tell_done(x->st))
		return -1;
	x->told = true;
	return 0;
}

int perf_stream(struct perf_station *st)
{
	struct stream x = {.st = st, .sending = st->sends, .told = !st->sends};
	const struct perf_work *w = &st->work;
	int n;

	x.warm = w->warmup * st->n_flows;
	x.limit = w->count ? w->warmup + w->count : UINT64_MAX;
	while (x.sending || !x.told || !perf_station_all_received(st)) {
		if (x.sending && send_some(&x))
			return -1;
		n = perf_station_poll(st);
		if (n < 0 || perf_station_pace(st, n > 0))
			return -1;
		if (tell_stop(&x))
			return -1;
		if (x.sending && (limit_reached(&x) || user_stops(&x) || time_is_up(&x)))
			x.sending = false;
		if (!x.sending && !x.told && finish_sending(&x))
			return -1;
	}
	return 0;
}
