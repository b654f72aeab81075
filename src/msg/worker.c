/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Automatic progress: a thread that keeps the owner word of one engine. It yields after an empty
 * pass, since cores may be shared, and sleeps when there has been no work for a while, unless it
 * has a core of its own.
 */
#include "msg/threads.h"

#include "msg/idle.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pmd_glue/eal.h"

#define AWAKE (100 * PMF_NS_PER_US) /* without work before it sleeps */
#define SLEEP_MIN (20 * PMF_NS_PER_US)
#define SLEEP_MAX (500 * PMF_NS_PER_US)

struct pmf_worker {
	struct pmf_engine *e;
	pthread_t thread;
	int cpu;
	_Atomic bool stop;
	pmf_ns_t nap;
	pmf_ns_t last_busy;
};

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *ts)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, ts, NULL, 0);
}

static bool stopped(const struct pmf_worker *w)
{
	return atomic_load_explicit(&w->stop, memory_order_relaxed);
}

/*
 * Take the word. Who holds it may never give it back: a thread that a signal interrupted, whose
 * handler calls exit(). @return false: to stop, without the word
 */
static bool take(struct pmf_worker *w)
{
	struct pmf_engine *e = w->e;
	bool got = pmf_engine_try(e);

	if (pmf_likely(got))
		return true;
	atomic_store_explicit(&e->worker_waits, true, memory_order_relaxed);
	while (!got && !stopped(w)) {
		sched_yield();
		got = pmf_engine_try(e);
	}
	atomic_store_explicit(&e->worker_waits, false, memory_order_relaxed);
	return got;
}

/* Give the word away as long as control callers wait for it. @return as take() */
static bool step_aside(struct pmf_worker *w)
{
	pmf_engine_release(w->e);
	while (atomic_load_explicit(&w->e->waiters, memory_order_relaxed) && !stopped(w))
		sched_yield();
	return take(w);
}

/* A pass looks at a part of many endpoints: so many that none is left out. */
static bool look_at_all(struct pmf_engine *e)
{
	for (uint32_t n = 0; n <= e->nbusy; n += PMF_BUSY_LOOKS)
		if (pmf_engine_pass(e))
			return true;
	return false;
}

/*
 * Sleep without the word: posters then run the tx half themselves. Full fences pair with the
 * poster's: it publishes, fences and looks at `asleep`; here asleep is set, fenced, and the rings
 * are looked at by passes. @return as take()
 */
static bool nap(struct pmf_worker *w)
{
	struct pmf_engine *e = w->e;
	struct timespec ts;

	atomic_store_explicit(&e->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (look_at_all(e)) {
		atomic_store_explicit(&e->asleep, 0, memory_order_relaxed);
		w->last_busy = pmf_clock_ns();
		return true;
	}
	pmf_engine_release(e);
	w->nap = PMF_MIN(PMF_MAX(w->nap * 2, SLEEP_MIN), SLEEP_MAX);
	ts = (struct timespec){.tv_nsec = (long)w->nap};
	futex(&e->asleep, FUTEX_WAIT, 1, &ts);
	atomic_store_explicit(&e->asleep, 0, memory_order_relaxed);
	return take(w);
}

static void run(struct pmf_worker *w)
{
	struct pmf_engine *e = w->e;
	struct pmf_idle idle = {0};
	bool have = take(w);

	w->last_busy = pmf_clock_ns();
	while (have && !stopped(w)) {
		if (pmf_engine_pass(e)) {
			w->last_busy = e->last_pass;
			w->nap = 0;
			pmf_idle_busy(&idle);
		} else if (w->cpu < 0) {
			if (e->last_pass - w->last_busy > AWAKE)
				have = nap(w);
			else
				pmf_idle_empty(&idle);
		}
		if (have && pmf_unlikely(atomic_load_explicit(&e->waiters, memory_order_relaxed)))
			have = step_aside(w);
	}
	if (have)
		pmf_engine_release(e);
}

static void *worker_main(void *arg)
{
	struct pmf_worker *w = arg;
	cpu_set_t set;

	pthread_setname_np(pthread_self(), "pmf-worker");
	if (w->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((unsigned int)w->cpu, &set);
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	}
	pmf_thread_register(&pmf_thread);
	run(w);
	return NULL;
}

int pmf_worker_start(struct pmf_engine *e, int cpu, struct pmf_worker **out)
{
	struct pmf_worker *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int err;

	if (!w)
		return -ENOMEM;
	w->e = e;
	w->cpu = cpu;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		free(w);
		return -err;
	}
	*out = w;
	return 0;
}

static void ask_to_stop(struct pmf_worker *w)
{
	atomic_store_explicit(&w->stop, true, memory_order_relaxed);
	pmf_worker_wake(w);
}

void pmf_worker_stop(struct pmf_worker *w)
{
	ask_to_stop(w);
	pthread_join(w->thread, NULL);
	free(w);
}

void pmf_worker_halt(struct pmf_worker *w)
{
	struct timespec until;

	ask_to_stop(w);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PMF_EXIT_PATIENCE_S;
	pthread_timedjoin_np(w->thread, NULL, &until);
}

void pmf_worker_wake(struct pmf_worker *w)
{
	atomic_store_explicit(&w->e->asleep, 0, memory_order_release);
	futex(&w->e->asleep, FUTEX_WAKE, 1, NULL);
}
