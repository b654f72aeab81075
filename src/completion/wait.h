/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Wait objects: who sleeps is woken, and nobody makes a system call when nobody sleeps.
 *   reader:   arm, look again, sleep
 *   producer: publish, look whether armed, wake
 * Arming and looking are read-modify-writes of one word: whichever comes second sees what came
 * before the other, so no wake-up is lost.
 *
 * There are two kinds of readers. One sleeps in here (sread, a counter's wait): a futex, so that
 * each sleeper is woken by itself, whatever the others do. The other polls the eventfd itself after
 * fi_trywait(3): nobody sees it leave, so one fi_trywait asks for one write.
 */
#ifndef PMF_COMPLETION_WAIT_H
#define PMF_COMPLETION_WAIT_H

#include <stdatomic.h>

#include "pmf_common.h"

#define PMF_WAIT_POLLED 1u  /* in `armed`: fi_trywait has promised a write */
#define PMF_WAIT_SLEEPER 2u /* in `armed`: one sleeper */

struct pmf_wait {
	int fd;			   /* eventfd, non-blocking, close-on-exec; -1 without */
	bool yield;		   /* FI_WAIT_YIELD: readers spin with sched_yield */
	_Atomic uint32_t armed;	   /* written by readers; producers take PMF_WAIT_POLLED out */
	_Atomic uint32_t ticket;   /* counts wake-ups of sleepers; the futex */
	_Atomic uint32_t writes;   /* to the descriptor, counted before each, and not drained yet */
	atomic_flag draining;	   /* one reader drains at a time */
	_Atomic uint32_t signaled; /* fi_cq_signal not consumed yet */
};

/**
 * @param obj  enum fi_wait_obj
 * @return 0; -EINVAL for FI_WAIT_SET, _MUTEX_COND, _POLLFD; what eventfd(2) says
 */
int pmf_wait_open(struct pmf_wait *w, int obj);
void pmf_wait_close(struct pmf_wait *w);

/** @return whether there is a descriptor that a producer may have to write. */
static inline bool pmf_wait_active(const struct pmf_wait *w)
{
	return w->fd >= 0;
}

/** @return whether blocking calls work at all (not FI_WAIT_NONE). */
static inline bool pmf_wait_can_sleep(const struct pmf_wait *w)
{
	return w->fd >= 0 || w->yield;
}

/** Producer, after publishing: wake if armed. Nothing at all without a descriptor. */
void pmf_wait_wake(struct pmf_wait *w);

/** fi_cq_signal: kept until pmf_wait_take_signal() if nobody sleeps. Any thread. */
void pmf_wait_signal(struct pmf_wait *w);
/** @return whether a signal was there; it is consumed. */
bool pmf_wait_take_signal(struct pmf_wait *w);

/** Reader: announce that it will sleep here. @return a ticket; look at the queue again after this
 */
uint32_t pmf_wait_arm(struct pmf_wait *w);
/** Reader: not sleeping any more, once for each arm. */
void pmf_wait_disarm(struct pmf_wait *w);
/** fi_trywait: the caller will poll the descriptor. Look at the queue again after this. */
void pmf_wait_arm_poll(struct pmf_wait *w);
/** fi_trywait says no after all: the promise is taken back. */
void pmf_wait_disarm_poll(struct pmf_wait *w);

/**
 * Make the descriptor quiet if it was written, or is being written: then wait for that write, so
 * that it is not ready on a queue that is read empty. Readers call it *before* they look at the
 * queue.
 */
void pmf_wait_drain(struct pmf_wait *w);
static inline void pmf_wait_quiet(struct pmf_wait *w)
{
	if (pmf_unlikely(atomic_load_explicit(&w->writes, memory_order_relaxed)))
		pmf_wait_drain(w);
}

/**
 * Sleep until woken after the arm that gave @p ticket, or @p ms passed (negative: for ever).
 * FI_WAIT_YIELD: gives the processor away once and returns 0, the caller minds its time-out.
 * @return 0 woken (or interrupted): look at the queue; -EAGAIN time-out
 */
int pmf_wait_sleep(struct pmf_wait *w, uint32_t ticket, int ms);

/** fi_control FI_GETWAIT (@p arg int *) and FI_GETWAITOBJ (enum fi_wait_obj *): 0, -FI_ENODATA,
 * -FI_ENOSYS. */
int pmf_wait_control(const struct pmf_wait *w, int command, void *arg);

#endif
