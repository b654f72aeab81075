/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The process's stack: which ports are open, with which engines, for how many domains. Control
 * path, under one lock.
 */
#include "msg/stack.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "msg/idle.h"
#include "msg/threads.h"

/* Looks at a domain's own engines before one around, and how long the others may be left alone. */
#define LOOK_AROUND 64
#define LEFT_ALONE (20 * PMF_NS_PER_US)

struct stack_port {
	unsigned int refs;
	struct pmf_port *port;
	uint32_t nengines;
	struct pmf_engine *engine[PMF_MAX_QUEUES];
	unsigned int homes[PMF_MAX_QUEUES]; /* domains and listeners whose home each is */
};

static struct {
	pthread_mutex_t lock;
	bool started;
	_Atomic bool forked; /* this is a child of the process that runs the stack */
	const struct pmf_conf *conf;
	struct stack_port port[PMF_MAX_PORTS];
} s = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool pmf_stack_forked(void)
{
	return atomic_load_explicit(&s.forked, memory_order_relaxed);
}

/*
 * The child has no threads of ours, and what its copy of the rings points to is the parent's: it
 * never gets an owner word again, so it does nothing, and its exit leaves everything alone.
 */
static void in_child(void)
{
	atomic_store_explicit(&s.forked, true, memory_order_relaxed);
	for (unsigned int i = 0; i < PMF_MAX_PORTS; i++)
		for (uint32_t q = 0; q < s.port[i].nengines; q++)
			atomic_store_explicit(&s.port[i].engine[q]->owner, 1, memory_order_relaxed);
}

/* exit without fi_close: no thread of ours may run while the process is taken apart. */
static void at_exit(void)
{
	if (pmf_stack_forked())
		return;
	for (unsigned int i = 0; i < PMF_MAX_PORTS; i++)
		for (uint32_t q = 0; q < s.port[i].nengines; q++) {
			struct pmf_engine *e = s.port[i].engine[q];

			if (e->worker)
				pmf_worker_halt(e->worker);
			e->worker = NULL;
		}
	pmf_helper_stop();
}

/* ---- on the helper thread ---- */

struct open_request {
	unsigned int index;
	char *err;
	size_t errlen;
};

static bool wants_single_file(const struct pmf_conf *conf)
{
	for (unsigned int i = 0; i < conf->nports; i++)
		if (strstr(conf->port[i].dev, "virtio_user") ||
		    strstr(conf->port[i].dev, "zero-copy=yes"))
			return true;
	return false;
}

static int start_eal(void *arg)
{
	struct open_request *r = arg;
	struct pmf_eal_conf c = {
		.extra = s.conf->eal_extra,
		.huge = s.conf->huge,
		.memory_mb = s.conf->memory_mb,
		.single_file = wants_single_file(s.conf),
		.log = s.conf->log,
	};

	for (unsigned int i = 0; i < s.conf->nports; i++)
		if (s.conf->port[i].is_pci)
			c.pci[c.npci++] = s.conf->port[i].dev;
	return pmf_eal_start(&c, r->err, r->errlen);
}

static int open_port(void *arg)
{
	struct open_request *r = arg;

	return pmf_port_open(&s.conf->port[r->index], &s.port[r->index].port, r->err, r->errlen);
}

static int close_port(void *arg)
{
	pmf_port_close(arg);
	return 0;
}

/* ---- ports ---- */

static int start(const struct pmf_conf *conf, struct open_request *r)
{
	int err;

	if (s.started)
		return 0;
	s.conf = conf;
	/* before our atexit: libcrypto's clean-up comes after it */
	err = pmf_crypt_init();
	if (err) {
		snprintf(r->err, r->errlen, "libcrypto has no AES-GCM, HMAC or HKDF");
		return err;
	}
	err = pmf_helper_start(conf);
	if (err) {
		snprintf(r->err, r->errlen, "cannot start the helper thread: %s", strerror(-err));
		return err;
	}
	err = pmf_helper_call(start_eal, r);
	if (err)
		return err;
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	s.started = true;
	return 0;
}

static int open_engines(struct stack_port *sp, struct open_request *r)
{
	for (uint16_t q = 0; q < sp->port->nqueues; q++) {
		int err = pmf_engine_open(&sp->port->queue[q], s.conf, &sp->engine[q]);

		if (err) {
			snprintf(r->err, r->errlen,
				 "no memory for the engine of queue %u: see "
				 "FI_PMF_MEMORY_MB and FI_PMF_UNEXPECTED_MB",
				 q);
			while (q--)
				pmf_engine_close(sp->engine[q]);
			return err;
		}
	}
	sp->nengines = sp->port->nqueues;
	for (uint32_t q = 0; q < sp->nengines; q++)
		pmf_helper_add(sp->engine[q]);
	return 0;
}

static int get_port(unsigned int index, struct open_request *r)
{
	struct stack_port *sp = &s.port[index];
	int err;

	if (sp->refs)
		return 0;
	err = pmf_helper_call(open_port, r);
	if (err)
		return err;
	err = open_engines(sp, r);
	if (err)
		pmf_helper_call(close_port, sp->port);
	return err;
}

static void put_port(struct stack_port *sp)
{
	if (--sp->refs)
		return;
	for (uint32_t q = 0; q < sp->nengines; q++) {
		pmf_helper_remove(sp->engine[q]);
		pmf_engine_close(sp->engine[q]);
	}
	sp->nengines = 0;
	pmf_helper_call(close_port, sp->port);
	sp->port = NULL;
}

/* ---- automatic progress ---- */

/* Those of the first @p n engines; without one: at_exit() has stopped it. */
static void put_workers(struct stack_port *sp, uint32_t n)
{
	for (uint32_t q = 0; q < n; q++) {
		struct pmf_engine *e = sp->engine[q];

		if (atomic_fetch_sub_explicit(&e->autos, 1, memory_order_relaxed) != 1 ||
		    !e->worker)
			continue;
		pmf_worker_stop(e->worker);
		e->worker = NULL;
	}
}

static int get_workers(struct stack_port *sp)
{
	for (uint32_t q = 0; q < sp->nengines; q++) {
		struct pmf_engine *e = sp->engine[q];
		int cpu = q < s.conf->nlcores ? s.conf->lcore[q] : -1, err = 0;

		if (!e->worker)
			err = pmf_worker_start(e, cpu, &e->worker);
		if (err) {
			put_workers(sp, q);
			return err;
		}
		atomic_fetch_add_explicit(&e->autos, 1, memory_order_relaxed);
	}
	return 0;
}

/* ---- what fabric calls ---- */

static uint32_t take_home(struct stack_port *sp)
{
	uint32_t best = 0;

	for (uint32_t q = 1; q < sp->nengines; q++)
		if (sp->homes[q] < sp->homes[best])
			best = q;
	sp->homes[best]++;
	return best;
}

int pmf_stack_get(const struct pmf_conf *conf, unsigned int index, bool manual, bool thread_safe,
		  struct pmf_progress *out, char *err, size_t errlen)
{
	struct open_request r = {.index = index, .err = err, .errlen = errlen};
	struct stack_port *sp = &s.port[index];
	int ret;

	if (pmf_stack_forked()) {
		snprintf(err, errlen,
			 "this is a forked child of a process that uses pmf: exec first");
		return -ECHILD;
	}
	pthread_mutex_lock(&s.lock);
	ret = start(conf, &r);
	if (!ret)
		ret = get_port(index, &r);
	if (ret)
		goto out;
	sp->refs++;
	if (!manual)
		ret = get_workers(sp);
	if (ret) {
		snprintf(err, errlen, "cannot start a progress thread: %s", strerror(-ret));
		put_port(sp);
		goto out;
	}
	memset(out, 0, sizeof(*out));
	out->nengines = sp->nengines;
	out->home = take_home(sp);
	atomic_store_explicit(&out->used, 1u << out->home, memory_order_relaxed);
	memcpy(out->engine, sp->engine, sizeof(out->engine));
	out->manual = manual;
	out->thread_safe = thread_safe;
	out->port = index;
out:
	pthread_mutex_unlock(&s.lock);
	return ret;
}

/* Orphans still owe their peers something: see it go, at most for the linger time. */
static void linger(struct pmf_engine *e)
{
	pmf_ns_t until = pmf_clock_ns() + e->conf->linger;
	bool left = true;

	while (left && pmf_clock_ns() < until) {
		pmf_engine_lock(e);
		pmf_engine_pass(e);
		pmf_ep_reap(e, pmf_clock_ns());
		left = !TAILQ_EMPTY(&e->orphans);
		pmf_engine_unlock(e);
		sched_yield();
	}
}

void pmf_stack_put(struct pmf_progress *p)
{
	struct stack_port *sp = &s.port[p->port];

	if (pmf_stack_forked())
		return;
	for (uint32_t q = 0; q < p->nengines; q++)
		linger(p->engine[q]);
	pthread_mutex_lock(&s.lock);
	sp->homes[p->home]--;
	if (!p->manual)
		put_workers(sp, sp->nengines);
	put_port(sp);
	pthread_mutex_unlock(&s.lock);
}

static inline bool try_pass(struct pmf_engine *e, bool answers)
{
	bool busy;

	if (!pmf_engine_try(e))
		return false;
	busy = answers ? pmf_engine_poll(e) : pmf_engine_pass(e);
	pmf_engine_release(e);
	return busy;
}

/*
 * The engines of a port with several queues: those of the domain's endpoints, and now and then any
 * that nobody has looked at for a while, for frames that are to be handed over.
 */
static __attribute__((noinline)) bool run_several(struct pmf_progress *p, bool answers)
{
	uint32_t used = atomic_load_explicit(&p->used, memory_order_relaxed);
	pmf_ns_t old = 0;
	bool busy = false;

	if (pmf_thread.looks++ % LOOK_AROUND == 0)
		old = pmf_clock_ns() - LEFT_ALONE;
	for (uint32_t q = 0; q < p->nengines; q++) {
		struct pmf_engine *e = p->engine[q];

		if (used >> q & 1)
			busy |= try_pass(e, answers);
		else if (old && atomic_load_explicit(&e->last_pass, memory_order_relaxed) < old)
			busy |= try_pass(e, false); /* nothing there is left for later */
	}
	return busy;
}

static inline bool run(struct pmf_progress *p, bool answers)
{
	struct pmf_thread *self = &pmf_thread;
	bool busy = false;

	if (p->manual) {
		if (pmf_unlikely(!self->known))
			pmf_thread_register(self);
		busy = pmf_likely(p->nengines == 1) ? try_pass(p->engine[0], answers)
						    : run_several(p, answers);
	}
	if (busy)
		pmf_idle_busy(&self->idle);
	else
		pmf_idle_empty(&self->idle);
	return busy || !p->manual;
}

bool pmf_progress_run(struct pmf_progress *p)
{
	return run(p, false);
}

bool pmf_progress_poll(struct pmf_progress *p)
{
	return run(p, true);
}

bool pmf_progress_rest(struct pmf_progress *p)
{
	uint32_t used = atomic_load_explicit(&p->used, memory_order_relaxed);
	bool any = false;

	for (uint32_t q = 0; p->manual && q < p->nengines; q++) {
		if (!(used >> q & 1) || !pmf_engine_try(p->engine[q]))
			continue;
		any |= pmf_engine_rest(p->engine[q]);
		pmf_engine_release(p->engine[q]);
	}
	return any;
}

void pmf_progress_sleep_begin(struct pmf_progress *p)
{
	for (uint32_t q = 0; q < p->nengines; q++)
		atomic_fetch_add_explicit(&p->engine[q]->sleepers, 1, memory_order_release);
	pmf_helper_wake();
}

void pmf_progress_sleep_end(struct pmf_progress *p)
{
	for (uint32_t q = 0; q < p->nengines; q++)
		atomic_fetch_sub_explicit(&p->engine[q]->sleepers, 1, memory_order_release);
}

struct pmf_port *pmf_progress_port(struct pmf_progress *p)
{
	return p->nengines ? p->engine[0]->port : NULL;
}
