/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "job.h"

#include <stdio.h>

#include "clock.h"
#include "error.h"
#include "report.h"
#include "run.h"

/* What a client or a server does from start to end, apart from the prompt. */

static struct perf_result result;

static int connect_peers(struct perf_session *s, const struct perf_options *o)
{
	if (s->open)
		return 0;
	if (perf_session_open(s, o))
		return -1;
	if (perf_session_connect(s))
		return -1;
	if (o->verbose)
		perf_report_note("connected to %u peer%s\n", s->n_partners,
				 s->n_partners == 1 ? "" : "s");
	return 0;
}

static int client_runs(struct perf_session *s, const struct perf_options *o)
{
	struct perf_work work;
	unsigned int m, i;

	if (o->mix)
		perf_report_note("mixed sizes, seed %llu\n", (unsigned long long)o->mix);
	for (m = 0; m < o->n_modes; m++) {
		for (i = 0; i < o->n_sizes && !s->stop; i++) {
			perf_run_work(s, o->modes[m], o->sizes[i], &work);
			if (perf_run_client(s, &work, &result))
				return -1;
			perf_report_add(&result);
		}
	}
	return 0;
}

int perf_job_client(struct perf_session *s, const struct perf_options *o)
{
	s->stop = false;
	if (connect_peers(s, o) == 0 && client_runs(s, o) == 0)
		return 0;
	perf_session_abort(s);
	perf_session_close(s);
	return -1;
}

static int serve_clients(struct perf_session *s, const struct perf_options *o)
{
	int rc;

	if (perf_session_accept(s))
		return -1;
	while ((rc = perf_run_server(s, &result)) == 0) {
		if (o->verbose)
			perf_report_add(&result);
	}
	if (rc < 0)
		return -1;
	/* The answer to their goodbyes; who does not wait for it does not get it. */
	perf_session_farewell(s);
	return 0;
}

int perf_job_server(struct perf_session *s, const struct perf_options *o)
{
	char text[PERF_TEXT_MAX];
	int rc;

	if (perf_session_open(s, o))
		return -1;
	perf_endpoint_text(&s->link.endpoint, s->link.endpoint.name, text, sizeof(text));
	perf_report_note("listening on %s\n", text);
	do {
		rc = serve_clients(s, o);
		/* Asked to stop while nothing is under way: that is how a server ends. */
		if (s->stop && s->n_partners == 0) {
			perf_error_clear();
			rc = 0;
			break;
		}
		if (rc == 0)
			continue;
		perf_session_abort(s);
		if (o->forever && !s->stop) {
			fprintf(stderr, "pmf-perf: %s\n", perf_error());
			perf_error_clear();
		}
	} while (o->forever && !s->stop);
	perf_session_close(s);
	return rc;
}
