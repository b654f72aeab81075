/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "self.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "report.h"
#include "run.h"
#include "self_work.h"

/*
 * Both ends in one program and one thread: no session, no partner. What it shows is what the
 * provider does for one application thread, by itself or by a thread of its own (automatic
 * progress); with several threads, each with a domain and two ends, what more of its engines give.
 */

#define RECEIVES 16u /* at least */

struct worker {
	struct perf_both both;
	struct self *self;
	pthread_t thread;
	int core; /* -1: where the scheduler likes */
	int rc;
	char error[256]; /* why, where rc is not 0 */
};

struct self {
	const struct perf_options *options;
	pthread_mutex_t gate; /* held while threads are started */
	atomic_bool failed;
	unsigned int n;
	struct worker *workers;
};

static void close_sides(struct perf_both *b)
{
	int i;

	for (i = 0; i < 2; i++) {
		perf_endpoint_close(&b->sides[i].endpoint);
		perf_region_close(&b->sides[i].rx);
	}
	perf_region_close(&b->tx);
	memset(b->sides, 0, sizeof(b->sides));
}

static int open_side(struct perf_both *b, struct perf_side *s)
{
	size_t receives = b->mode == PERF_LAT ? RECEIVES : RECEIVES + b->options->window;
	size_t stride = (b->size + 63) & ~(size_t)63, i;

	if (perf_region_open(&s->rx, &b->fabric, receives * stride + 1) ||
	    perf_endpoint_open(&s->endpoint, &b->fabric, b->fabric.data_info, 4 * receives, 2))
		return -1;
	for (i = 0; i < receives; i++) {
		if (perf_both_receive(b, s, s->rx.base + i * stride))
			return -1;
	}
	return 0;
}

static int open_sides(struct perf_both *b)
{
	struct perf_side *s = b->sides;

	return perf_region_open(&b->tx, &b->fabric, b->size + 1) || open_side(b, &s[0]) ||
			       open_side(b, &s[1]) ||
			       perf_endpoint_insert(&s[0].endpoint, s[1].endpoint.name,
						    s[1].endpoint.name_len, &s[0].peer) ||
			       perf_endpoint_insert(&s[1].endpoint, s[0].endpoint.name,
						    s[0].endpoint.name_len, &s[1].peer)
		       ? -1
		       : 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	cpu_set_t mask;

	if (w->core >= 0) {
		CPU_ZERO(&mask);
		CPU_SET(w->core, &mask);
		pthread_setaffinity_np(pthread_self(), sizeof(mask), &mask);
	}
	pthread_mutex_lock(&w->self->gate);
	pthread_mutex_unlock(&w->self->gate);
	w->rc = atomic_load(&w->self->failed) ? -1 : perf_both_work(&w->both);
	if (w->rc) {
		snprintf(w->error, sizeof(w->error), "%s", perf_error());
		atomic_store(&w->self->failed, true);
	}
	return NULL;
}

/* All of them at once, each in a thread; one alone in this one. */
static int work(struct self *x)
{
	unsigned int started, i;
	struct worker *w;
	int rc = 0;

	if (x->n == 1)
		return perf_both_work(&x->workers[0].both);
	pthread_mutex_lock(&x->gate);
	for (started = 0; rc == 0 && started < x->n; started += rc == 0) {
		w = &x->workers[started];
		rc = pthread_create(&w->thread, NULL, worker_main, w);
	}
	if (rc) {
		atomic_store(&x->failed, true);
		perf_fail("a thread cannot be started: %s", strerror(rc));
	}
	pthread_mutex_unlock(&x->gate);
	for (i = 0; i < started; i++) {
		pthread_join(x->workers[i].thread, NULL);
		if (x->workers[i].error[0])
			perf_fail("%s", x->workers[i].error);
	}
	return atomic_load(&x->failed) ? -1 : 0;
}

static void report(const struct self *x)
{
	static struct perf_result r;
	const struct perf_both *first = &x->workers[0].both, *b;
	bool lat = first->mode == PERF_LAT;
	unsigned int i;

	memset(&r, 0, sizeof(r));
	perf_histogram_init(&r.rtt);
	r.partners = 1;
	r.pairs = x->n;
	r.work = (struct perf_work){.mode = first->mode,
				    .direction = lat ? PERF_BOTH : PERF_TX,
				    .size = first->size,
				    .window = lat ? 1 : x->options->window,
				    .more = 1};
	for (i = 0; i < x->n; i++) {
		b = &x->workers[i].both;
		perf_histogram_merge(&r.rtt, &b->rtt);
		r.rtt_ns = b->got.ns > r.rtt_ns ? b->got.ns : r.rtt_ns;
		r.tx.messages += b->got.messages;
	}
	r.tx.ns = r.rtt_ns;
	perf_report_add(&r);
}

static int one_size(struct self *x, enum perf_mode mode, size_t size)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; rc == 0 && i < x->n; i++) {
		struct perf_both *b = &x->workers[i].both;

		perf_histogram_init(&b->rtt);
		memset(&b->got, 0, sizeof(b->got));
		b->mode = mode;
		b->size = size;
		b->inject = size <= b->fabric.data_info->tx_attr->inject_size &&
			    (x->options->inject == PERF_ON ||
			     (x->options->inject == PERF_AUTO && mode == PERF_LAT));
		rc = open_sides(b);
	}
	rc = rc || work(x) ? -1 : 0;
	for (i = 0; i < x->n; i++)
		close_sides(&x->workers[i].both);
	if (rc == 0)
		report(x);
	return rc;
}

static int open_workers(struct self *x, bool (*stop)(void *arg))
{
	unsigned int i;
	cpu_set_t mine;
	int core = -1;

	sched_getaffinity(0, sizeof(mine), &mine);
	for (i = 0; i < x->n; i++) {
		struct worker *w = &x->workers[i];

		w->self = x;
		w->both.options = x->options;
		w->both.stop = stop;
		w->both.failed = &x->failed;
		/* a processor each, in their order; no two share one while there are enough */
		do
			core = (core + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(core, &mine));
		w->core = (unsigned int)CPU_COUNT(&mine) >= x->n ? core : -1;
		if (perf_fabric_open(&w->both.fabric, x->options))
			return -1;
	}
	perf_report_domain(&x->workers[0].both.fabric);
	return 0;
}

int perf_self(const struct perf_options *o, bool (*stop)(void *arg))
{
	struct self x = {.options = o, .n = o->threads};
	unsigned int m, s, i;
	int rc;

	x.workers = calloc(x.n, sizeof(*x.workers));
	if (!x.workers)
		return perf_fail("no memory for %u threads", x.n);
	pthread_mutex_init(&x.gate, NULL);
	rc = open_workers(&x, stop);
	for (m = 0; rc == 0 && m < o->n_modes; m++)
		for (s = 0; rc == 0 && s < o->n_sizes; s++)
			rc = one_size(&x, o->modes[m], o->sizes[s]);
	for (i = 0; i < x.n; i++)
		perf_fabric_close(&x.workers[i].both.fabric);
	pthread_mutex_destroy(&x.gate);
	free(x.workers);
	return rc;
}
