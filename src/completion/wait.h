/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Wait objects: an eventfd that is written only when a reader has armed it.
 *   reader:   arm, full fence, look again, sleep
 *   producer: publish, full fence, look whether armed, write
 * The two fences pair, so one of the two sees the other: no wake-up is lost.
 *
 * There are two kinds of readers. One sleeps in here (sread, a counter's wait): it counts in
 * `sleepers` from arm to disarm. The other polls the descriptor itself after fi_trywait(3): nobody
 * sees it leave, so `polled` asks for one write, and the next fi_trywait asks again.
 */
#ifndef PMF_COMPLETION_WAIT_H
#define PMF_COMPLETION_WAIT_H

#include <stdatomic.h>

#include "pmf_common.h"

struct pmf_wait {
	int fd;		      /* eventfd, non-blocking, close-on-exec; -1: FI_WAIT_NONE or _YIELD */
	bool yield;	      /* FI_WAIT_YIELD: readers spin with sched_yield */
	_Atomic int sleepers; /* written by readers, read by producers */
	_Atomic int polled;   /* set by fi_trywait, taken by the producer that writes */
	_Atomic int written;  /* set by producers after the write, taken by the reader that drains */
	_Atomic int signaled; /* fi_cq_signal not consumed yet */
};

/** @param obj  enum fi_wait_obj. @return 0; -EINVAL for _SET, _MUTEX_COND, _POLLFD; errno of eventfd */
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

/** Producer, after publishing: wake if armed. No system call otherwise; nothing without a descriptor. */
void pmf_wait_wake(struct pmf_wait *w);

/** fi_cq_signal: kept until pmf_wait_take_signal() if nobody sleeps. Any thread. */
void pmf_wait_signal(struct pmf_wait *w);
/** @return whether a signal was there; it is consumed. */
bool pmf_wait_take_signal(struct pmf_wait *w);

/** Reader: announce that it will sleep here. Look at the queue again after this. */
void pmf_wait_arm(struct pmf_wait *w);
/** Reader: not sleeping any more, once for each arm; drains the descriptor. Look at the queue after it. */
void pmf_wait_disarm(struct pmf_wait *w);
/** fi_trywait: the caller will poll the descriptor. Look at the queue again after this. */
void pmf_wait_arm_poll(struct pmf_wait *w);

/** Make the descriptor quiet if it was written. Readers call it *before* they look at the queue. */
void pmf_wait_drain(struct pmf_wait *w);
static inline void pmf_wait_quiet(struct pmf_wait *w)
{
	if (pmf_unlikely(atomic_load_explicit(&w->written, memory_order_relaxed)))
		pmf_wait_drain(w);
}

/**
 * Sleep until written or @p ms passed (negative: for ever). FI_WAIT_YIELD: gives the processor away
 * once and returns 0, the caller minds its time-out.
 * @return 0 woken (or interrupted): look at the queue; -EAGAIN time-out
 */
int pmf_wait_sleep(struct pmf_wait *w, int ms);

/** fi_control FI_GETWAIT (@p arg int *) and FI_GETWAITOBJ (enum fi_wait_obj *): 0, -FI_ENODATA, -FI_ENOSYS. */
int pmf_wait_control(const struct pmf_wait *w, int command, void *arg);

#endif
