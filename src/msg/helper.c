/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The helper thread: starts EAL, opens and closes ports, looks after them, and runs passes when
 * nobody else does: for readers that sleep, and for an application that has been away for
 * FI_PMF_RESCUE_US, or a little longer if it was polling before.
 */
#include "msg/threads.h"

#include "msg/auth.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "pmd_glue/mcast.h"

#define SERVICE_EVERY (10 * PMF_NS_PER_MS)
#define BUSY_SLEEP_MIN \
	(20 * PMF_NS_PER_US) /* between passes for a sleeping reader, doubling up to */
#define BUSY_SLEEP_MAX (500 * PMF_NS_PER_US)
#define IDLE_SLEEP (100 * PMF_NS_PER_MS)
#define LOOK_MOST (8 * PMF_NS_PER_MS)	 /* between looks at an engine that is being driven */
#define KEYS_EVERY (500 * PMF_NS_PER_MS) /* a look whether the key file has changed */

struct request {
	int (*fn)(void *);
	void *arg;
	int result;
	bool done;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake, answered;
	pthread_t thread;
	bool started, stop;
	bool look; /* somebody wants the helper to look at the engines at once */
	struct request *request;
	TAILQ_HEAD(, pmf_engine) engines; /* the lock; the helper walks it with the lock held */
	const struct pmf_conf *conf;
	pmf_ns_t nap, next_service, next_keys;
	uint32_t keys; /* which ones the engines have */
} h = {.lock = PTHREAD_MUTEX_INITIALIZER,
       .answered = PTHREAD_COND_INITIALIZER,
       .engines = TAILQ_HEAD_INITIALIZER(h.engines)};

/* The engines of a port, in the order in which whoever wants several words takes them. */
static void quiesce(void *arg)
{
	struct pmf_engine *e;

	TAILQ_FOREACH (e, &h.engines, link)
		if (e->port == arg)
			pmf_engine_lock(e);
}

static void resume(void *arg)
{
	struct pmf_engine *e;

	TAILQ_FOREACH (e, &h.engines, link)
		if (e->port == arg)
			pmf_engine_unlock(e);
}

/*
 * Somebody drives it. Each look costs a polling program a context switch, so the next one comes
 * ever later while this goes on.
 */
static pmf_ns_t driven(struct pmf_engine *e)
{
	pmf_ns_t next = PMF_MAX(h.conf->rescue, PMF_MIN(2 * e->look_every, LOOK_MOST));

	e->look_every = next;
	return next;
}

/* @return how long nothing need be done */
static pmf_ns_t look_at(struct pmf_engine *e, pmf_ns_t now)
{
	bool sleepers = atomic_load_explicit(&e->sleepers, memory_order_acquire);
	pmf_ns_t last = atomic_load_explicit(&e->last_pass, memory_order_relaxed);
	bool mine, busy = false;

	if (atomic_load_explicit(&e->autos, memory_order_relaxed))
		return IDLE_SLEEP; /* its worker does all this */
	if (!sleepers && now < last + h.conf->rescue)
		return driven(e);
	mine = pmf_engine_try(e);
	if (mine) {
		if (!TAILQ_EMPTY(&e->eps) || !TAILQ_EMPTY(&e->orphans) || e->port->nqueues > 1 ||
		    pmf_mcast_leaving(e->port)) {
			e->stats.rescues++;
			busy = pmf_engine_pass(e);
		}
		pmf_engine_release(e);
		if (busy)
			h.nap = 0;
	}
	if (!sleepers && !mine)
		return driven(e);
	e->look_every = 0;
	if (!sleepers)
		return h.conf->rescue;
	h.nap = PMF_MIN(PMF_MAX(h.nap * 2, BUSY_SLEEP_MIN), BUSY_SLEEP_MAX);
	return h.nap;
}

/* @return ns until the next look */
static pmf_ns_t look_round(void)
{
	pmf_ns_t now = pmf_clock_ns(), sleep = IDLE_SLEEP;
	bool service = now >= h.next_service;
	struct pmf_engine *e;

	TAILQ_FOREACH (e, &h.engines, link) {
		sleep = PMF_MIN(sleep, look_at(e, now));
		if (service && e->q->queue_id == 0)
			pmf_port_service(e->port, quiesce, resume, e->port);
		sleep = PMF_MIN(sleep, SERVICE_EVERY);
	}
	if (service)
		h.next_service = now + SERVICE_EVERY;
	return sleep;
}

/* The file is looked at without the lock: it may lie far away. */
static void look_at_keys(void)
{
	pmf_ns_t now = pmf_clock_ns();
	struct pmf_engine *e;
	uint32_t generation;

	if (!h.conf->auth_key_file || TAILQ_EMPTY(&h.engines) || now < h.next_keys)
		return;
	h.next_keys = now + KEYS_EVERY;
	pthread_mutex_unlock(&h.lock);
	generation = pmf_keyfile_look(h.conf);
	pthread_mutex_lock(&h.lock);
	if (generation == h.keys)
		return;
	h.keys = generation;
	TAILQ_FOREACH (e, &h.engines, link) {
		pmf_engine_lock(e);
		pmf_auth_roll(e);
		pmf_engine_unlock(e);
	}
}

static void sleep_until(pmf_ns_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns += (pmf_ns_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / PMF_NS_PER_S);
	ts.tv_nsec = (long)(ns % PMF_NS_PER_S);
	while (!h.request && !h.stop && !h.look)
		if (pthread_cond_timedwait(&h.wake, &h.lock, &ts))
			break;
}

static void *helper_main(void *arg)
{
	pthread_mutex_lock(&h.lock);
	while (!h.stop) {
		struct request *r = h.request;

		if (r) {
			/* without the lock: opening a port takes long, and only requests wait for
			 * it */
			pthread_mutex_unlock(&h.lock);
			r->result = r->fn(r->arg);
			pthread_mutex_lock(&h.lock);
			r->done = true;
			h.request = NULL;
			pthread_cond_broadcast(&h.answered);
			continue;
		}
		h.look = false;
		look_at_keys();
		if (h.request || h.stop)
			continue;
		sleep_until(TAILQ_EMPTY(&h.engines) ? IDLE_SLEEP : look_round());
	}
	pthread_mutex_unlock(&h.lock);
	return NULL;
}

int pmf_helper_start(const struct pmf_conf *conf)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int err;

	if (h.started)
		return 0;
	h.conf = conf;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&h.wake, &attr);
	pthread_condattr_destroy(&attr);
	/* The application's signals are its own threads' to take; SIGPIPE must not kill from in
	 * here. EAL's threads inherit the mask. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&h.thread, NULL, helper_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	pthread_setname_np(h.thread, "pmf-helper");
	h.started = true;
	return 0;
}

int pmf_helper_call(int (*fn)(void *), void *arg)
{
	struct request r = {.fn = fn, .arg = arg};

	pthread_mutex_lock(&h.lock);
	if (h.stop) { /* the process exits, and something is closed after all */
		pthread_mutex_unlock(&h.lock);
		return fn(arg);
	}
	while (h.request) /* another caller's turn */
		pthread_cond_wait(&h.answered, &h.lock);
	h.request = &r;
	pthread_cond_signal(&h.wake);
	while (!r.done)
		pthread_cond_wait(&h.answered, &h.lock);
	pthread_mutex_unlock(&h.lock);
	return r.result;
}

void pmf_helper_add(struct pmf_engine *e)
{
	pthread_mutex_lock(&h.lock);
	TAILQ_INSERT_TAIL(&h.engines, e, link);
	h.look = true;
	pthread_cond_signal(&h.wake);
	pthread_mutex_unlock(&h.lock);
}

void pmf_helper_remove(struct pmf_engine *e)
{
	pthread_mutex_lock(&h.lock);
	TAILQ_REMOVE(&h.engines, e, link);
	pthread_mutex_unlock(&h.lock);
}

void pmf_helper_wake(void)
{
	pthread_mutex_lock(&h.lock);
	h.look = true;
	h.nap = 0;
	pthread_cond_signal(&h.wake);
	pthread_mutex_unlock(&h.lock);
}

/*
 * exit() may have been called from a signal handler that interrupted anything, a holder of this
 * lock or of malloc's among them. The thread then cannot end; the process does not wait for it for
 * ever.
 */
void pmf_helper_stop(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PMF_EXIT_PATIENCE_S;
	if (pthread_mutex_timedlock(&h.lock, &until))
		return;
	h.stop = true;
	pthread_cond_signal(&h.wake);
	pthread_mutex_unlock(&h.lock);
	pthread_timedjoin_np(h.thread, NULL, &until);
}
