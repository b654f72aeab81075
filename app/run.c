/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "run.h"

#include <string.h>

#include "error.h"
#include "station.h"
#include "work.h"

/* One run from its announcement to its result. The station lives from RUN to RESULT. */

#define WINDOW_BYTES (UINT64_C(64) << 20)
#define MIX_WINDOW 32

static struct perf_station station;

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* Then messages say of which pair of endpoints they are. */
static bool has_company(const struct perf_session *s)
{
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (s->partners[i].clients > 1 || s->partners[i].endpoints > 1)
			return true;
	}
	return s->n_partners > 1 || s->options->endpoints;
}

static uint64_t most_pairs(const struct perf_session *s)
{
	uint32_t most = perf_own_endpoints(s->options);
	unsigned int i;

	for (i = 0; i < s->n_partners; i++)
		most = s->partners[i].endpoints > most ? s->partners[i].endpoints : most;
	return most;
}

void perf_run_work(const struct perf_session *s, enum perf_mode mode, size_t size,
		   struct perf_work *work)
{
	const struct perf_options *o = s->options;
	uint64_t per_message = size ? size : 1;

	memset(work, 0, sizeof(*work));
	work->mode = mode;
	work->direction = mode == PERF_LAT ? PERF_BOTH : o->direction;
	work->size = size;
	/* A window of large messages is bounded by its bytes too. */
	work->window =
		mode == PERF_LAT ? 1 : (uint32_t)clamp(WINDOW_BYTES / per_message, 2, o->window);
	if (o->window == 1)
		work->window = 1;
	work->more = mode == PERF_LAT ? 1 : (uint32_t)clamp(o->more, 1, work->window);
	work->inject = o->inject;
	work->verify = o->verify;
	work->cq_data = has_company(s);
	work->count = o->count;
	work->duration_ns = o->duration_ns;
	work->warmup =
		o->warmup_auto ? clamp((UINT64_C(16) << 20) / per_message, 16, 1000) : o->warmup;
	if (o->warmup_auto) /* each pair meets before the clock starts */
		work->warmup = clamp(work->warmup, 4 * most_pairs(s), UINT64_MAX);
	work->mix = mode == PERF_LAT ? 0 : o->mix;
	if (work->mix) /* mostly small ones: as many as asked for, and one buffer each */
		work->window = (uint32_t)clamp(o->window, 1, MIX_WINDOW);
	work->walk = work->mix ? 0 : o->walk_auto ? (mode == PERF_BW ? WINDOW_BYTES : 0) : o->walk;
}

static void set_name(struct perf_name *name, const struct perf_endpoint *e)
{
	memset(name, 0, sizeof(*name));
	name->len = (uint16_t)e->name_len;
	memcpy(name->bytes, e->name, e->name_len);
}

static bool all_ready(const struct perf_session *s)
{
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (!perf_partner_named(&s->partners[i]))
			return false;
	}
	return true;
}

/* RUN or READY, with the names of all endpoints. */
static int send_names(struct perf_session *s, struct perf_partner *p, struct perf_control *first,
		      struct perf_name *name)
{
	struct perf_control m;
	unsigned int i;

	set_name(name, &station.endpoints[0]);
	if (perf_session_send(s, p, first))
		return -1;
	for (i = 1; i < station.n_endpoints; i++) {
		m = (struct perf_control){.type = PERF_NAME};
		set_name(&m.u.name, &station.endpoints[i]);
		if (perf_session_send(s, p, &m))
			return -1;
	}
	return 0;
}

static int announce(struct perf_session *s, const struct perf_work *work)
{
	struct perf_control m;
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		m = (struct perf_control){.type = PERF_RUN};
		m.u.run_work.work = *work;
		m.u.run_work.endpoints = station.n_endpoints;
		if (send_names(s, &s->partners[i], &m, &m.u.run_work.name))
			return -1;
	}
	return perf_session_wait(s, all_ready);
}

/* The data queue is read on: with manual progress the other side may need it. */
static int wait_results(struct perf_session *s)
{
	unsigned int i = 0;
	int n;

	while (i < s->n_partners) {
		if (s->partners[i].has_result) {
			i++;
			continue;
		}
		n = perf_station_poll(&station);
		if (n < 0 || perf_session_pulse(s, perf_now()))
			return -1;
		if (n == 0)
			sched_yield();
	}
	return 0;
}

static void add_received(struct perf_received *sum, const struct perf_received *part)
{
	sum->messages += part->messages;
	sum->ns = part->ns > sum->ns ? part->ns : sum->ns;
}

static int client_work(struct perf_session *s, struct perf_result *r)
{
	unsigned int i;
	int rc;

	if (announce(s, &r->work) || perf_station_connect(&station))
		return -1;
	rc = r->work.mode == PERF_LAT ? perf_lat_client(&station, &r->rtt, &r->rtt_ns)
				      : perf_stream(&station);
	if (rc || wait_results(s))
		return -1;
	for (i = 0; i < s->n_partners; i++) {
		add_received(&r->tx, &s->partners[i].yours);
		add_received(&r->all, &s->partners[i].all);
	}
	r->rx = perf_station_received(&station, NULL);
	r->pairs = station.n_pairs;
	return 0;
}

int perf_run_client(struct perf_session *s, const struct perf_work *work, struct perf_result *r)
{
	struct perf_partner *partners[PERF_PARTNERS_MAX];
	unsigned int i;
	int rc;

	memset(r, 0, sizeof(*r));
	r->work = *work;
	r->partners = s->n_partners;
	perf_histogram_init(&r->rtt);
	s->run++;
	for (i = 0; i < s->n_partners; i++) {
		partners[i] = &s->partners[i];
		partners[i]->run = s->run;
		partners[i]->n_names = 0;
		partners[i]->has_result = false;
		partners[i]->expected = UINT64_MAX;
		if (work->size > partners[i]->max_size)
			return perf_fail("%s takes messages up to %llu bytes", partners[i]->text,
					 (unsigned long long)partners[i]->max_size);
	}
	if (perf_station_open(&station, s, work, partners, s->n_partners))
		return -1;
	rc = client_work(s, r);
	perf_station_close(&station);
	return rc;
}

static bool all_asked(const struct perf_session *s)
{
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (!perf_partner_named(&s->partners[i]) && !s->partners[i].bye)
			return s->stop;
	}
	return true;
}

static unsigned int gather(struct perf_session *s, struct perf_partner **partners)
{
	unsigned int i, n = 0;

	for (i = 0; i < s->n_partners; i++) {
		if (perf_partner_named(&s->partners[i]))
			partners[n++] = &s->partners[i];
	}
	return n;
}

static int send_ready(struct perf_session *s, struct perf_partner *const *partners, unsigned int n)
{
	struct perf_control m;
	unsigned int i;

	for (i = 0; i < n; i++) {
		m = (struct perf_control){.type = PERF_READY};
		if (send_names(s, partners[i], &m, &m.u.name))
			return -1;
	}
	return 0;
}

static int send_results(struct perf_session *s, struct perf_partner *const *partners,
			unsigned int n)
{
	struct perf_control m;
	unsigned int i;

	for (i = 0; i < n; i++) {
		m = (struct perf_control){.type = PERF_RESULT};
		m.u.result.yours = perf_station_received(&station, &station.flows[i]);
		m.u.result.all = perf_station_received(&station, NULL);
		partners[i]->n_names = 0;
		if (perf_session_send(s, partners[i], &m))
			return -1;
	}
	return 0;
}

static int server_work(struct perf_session *s, struct perf_partner *const *partners, unsigned int n,
		       struct perf_result *r)
{
	int rc;

	if (perf_station_connect(&station) || send_ready(s, partners, n))
		return -1;
	rc = r->work.mode == PERF_LAT ? perf_lat_server(&station) : perf_stream(&station);
	if (rc)
		return -1;
	r->rx = perf_station_received(&station, NULL);
	r->pairs = station.n_pairs;
	return send_results(s, partners, n);
}

int perf_run_server(struct perf_session *s, struct perf_result *r)
{
	struct perf_partner *partners[PERF_PARTNERS_MAX];
	unsigned int n, i;
	int rc;

	memset(r, 0, sizeof(*r));
	if (perf_session_wait(s, all_asked))
		return -1;
	if (s->stop)
		return perf_fail("stopped by the user");
	n = gather(s, partners);
	if (n == 0)
		return 1;
	r->work = partners[0]->work;
	r->partners = n;
	for (i = 1; i < n; i++) {
		if (memcmp(&partners[i]->work, &r->work, sizeof(r->work)))
			return perf_fail("the clients do not want the same work");
	}
	if (perf_station_open(&station, s, &r->work, partners, n))
		return -1;
	rc = server_work(s, partners, n, r);
	perf_station_close(&station);
	return rc;
}
