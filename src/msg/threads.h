/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The threads that the provider has: one helper for the process, one worker for each engine in
 * automatic progress; and what a thread of the application needs before it polls.
 */
#ifndef PMF_MSG_THREADS_H
#define PMF_MSG_THREADS_H

#include "msg/engine.h"
#include "msg/idle.h"

#define PMF_EXIT_PATIENCE_S 1 /* for a thread of ours that may not be able to end */

struct pmf_worker;

/** Start the helper thread. Once a process, under the stack's lock. @return 0 or a negative errno
 */
int pmf_helper_start(const struct pmf_conf *conf);
/** Run @p fn on the helper thread and wait; here if that has stopped. @return what it returned */
int pmf_helper_call(int (*fn)(void *), void *arg);
/** Drive this engine and look after its port from now on, or not any more (waits until it does
 * not). */
void pmf_helper_add(struct pmf_engine *e);
void pmf_helper_remove(struct pmf_engine *e);
/** Look at once: a reader has gone to sleep. */
void pmf_helper_wake(void);
/** At the process's exit: no thread of ours touches anything afterwards. */
void pmf_helper_stop(void);

/** A worker thread that keeps the owner word of @p e. @param cpu  to pin it to (it then never
 * sleeps), or -1 */
int pmf_worker_start(struct pmf_engine *e, int cpu, struct pmf_worker **out);
void pmf_worker_stop(struct pmf_worker *w);
/**
 * At the process's exit, which may have been called from a signal handler that interrupted
 * anything, a holder of the owner word or of malloc's lock among them: the thread is not waited for
 * without limit, and nothing is freed.
 */
void pmf_worker_halt(struct pmf_worker *w);
/** A poster saw the worker asleep. */
void pmf_worker_wake(struct pmf_worker *w);

/* What a thread of the application that polls has. */
struct pmf_thread {
	bool known; /* to EAL, or it was tried */
	struct pmf_idle idle;
	uint32_t looks; /* at ports with several engines */
};
/* The few bytes that every process has to spare for libraries that it loads late. */
extern __thread struct pmf_thread pmf_thread __attribute__((tls_model("initial-exec")));

/** Give the calling thread a mempool cache (rte_thread_register), once; without one it works too.
 */
void pmf_thread_register(struct pmf_thread *self);

#endif
