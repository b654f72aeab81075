/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "work.h"

#include "error.h"

/* Latency: the round trips are timed end to end, so posting and polling are in them. */

static bool is_drained(const struct perf_station *st)
{
	unsigned int i;

	for (i = 0; i < st->n_flows; i++) {
		if (st->flows[i].completed != st->flows[i].sent)
			return false;
	}
	return true;
}

int perf_drain(struct perf_station *st)
{
	int n;

	while (!is_drained(st)) {
		n = perf_station_poll(st);
		if (n < 0 || perf_station_pace(st, n > 0))
			return -1;
	}
	return 0;
}

static int ping(struct perf_station *st, struct perf_flow *flow)
{
	uint64_t before = flow->received;
	bool sent = false;
	int rc;

	while (flow->received == before) {
		if (!sent) {
			rc = perf_station_send(st, flow, 0);
			if (rc < 0)
				return -1;
			sent = rc == 1;
		}
		rc = perf_station_poll(st);
		if (rc < 0 || perf_station_pace(st, rc > 0))
			return -1;
	}
	return 0;
}

int perf_lat_client(struct perf_station *st, struct perf_histogram *h, uint64_t *ns)
{
	const struct perf_work *w = &st->work;
	uint64_t warm = w->warmup * st->n_flows;
	uint64_t limit = w->count ? warm + w->count * st->n_flows : UINT64_MAX;
	uint64_t now = perf_now(), start = now, end = UINT64_MAX, before, n;

	for (n = 0; n < limit && now < end && !st->session->stop; n++) {
		if (n == warm) {
			start = now;
			end = w->count ? UINT64_MAX : start + w->duration_ns;
		}
		if (ping(st, &st->flows[n % st->n_flows]))
			return -1;
		before = now;
		now = perf_now();
		if (n >= warm)
			perf_histogram_add(h, now - before);
	}
	*ns = h->count ? now - start : 0;
	return perf_drain(st) || perf_station_tell_done(st) ? -1 : 0;
}

/* Answer what is owed as far as there is room. */
static int answer(struct perf_station *st, struct perf_flow *flow)
{
	int rc = 0;

	while (flow->owed && (rc = perf_station_send(st, flow, 0)) == 1)
		flow->owed--;
	return rc < 0 ? -1 : 0;
}

static bool all_answered(const struct perf_station *st)
{
	unsigned int i;

	for (i = 0; i < st->n_flows; i++) {
		if (st->flows[i].owed)
			return false;
	}
	return is_drained(st) && perf_station_all_received(st);
}

int perf_lat_server(struct perf_station *st)
{
	bool over = false;
	unsigned int i;
	int n;

	while (!over) {
		n = perf_station_poll(st);
		if (n < 0)
			return -1;
		for (i = 0; i < st->n_flows; i++) {
			if (answer(st, &st->flows[i]))
				return -1;
		}
		if (perf_station_pace(st, n > 0))
			return -1;
		/* DONE comes to an idle station: no need to look while messages come. */
		over = n == 0 && all_answered(st);
	}
	return 0;
}
