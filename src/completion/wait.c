/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

int pmf_wait_open(struct pmf_wait *w, int obj)
{
	memset(w, 0, sizeof(*w));
	w->fd = -1;
	atomic_flag_clear(&w->draining);
	switch (obj) {
	case FI_WAIT_NONE:
		return 0;
	case FI_WAIT_YIELD:
		w->yield = true;
		return 0;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		return w->fd < 0 ? -errno : 0;
	default:
		return -EINVAL;
	}
}

void pmf_wait_close(struct pmf_wait *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* The write cannot fail but for a counter at its limit, which 2^64 wake-ups would take. */
static void wait_write(struct pmf_wait *w)
{
	uint64_t one = 1;
	ssize_t n;

	/* Counted first: who drains knows how many are due. */
	atomic_fetch_add_explicit(&w->writes, 1, memory_order_acq_rel);
	n = write(w->fd, &one, sizeof(one));
	(void)n;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void pmf_wait_wake(struct pmf_wait *w)
{
	uint32_t armed;

	if (w->fd < 0)
		return;
	armed = atomic_fetch_and_explicit(&w->armed, ~PMF_WAIT_POLLED, memory_order_acq_rel);
	if (armed >= PMF_WAIT_SLEEPER) {
		atomic_fetch_add_explicit(&w->ticket, 1, memory_order_release);
		futex(&w->ticket, FUTEX_WAKE, INT_MAX, NULL);
	}
	if (armed & PMF_WAIT_POLLED)
		wait_write(w);
}

void pmf_wait_signal(struct pmf_wait *w)
{
	atomic_store_explicit(&w->signaled, 1, memory_order_release);
	pmf_wait_wake(w);
}

bool pmf_wait_take_signal(struct pmf_wait *w)
{
	return atomic_load_explicit(&w->signaled, memory_order_relaxed) &&
	       atomic_exchange_explicit(&w->signaled, 0, memory_order_acquire);
}

uint32_t pmf_wait_arm(struct pmf_wait *w)
{
	uint32_t ticket = atomic_load_explicit(&w->ticket, memory_order_acquire);

	atomic_fetch_add_explicit(&w->armed, PMF_WAIT_SLEEPER, memory_order_acq_rel);
	return ticket;
}

void pmf_wait_disarm(struct pmf_wait *w)
{
	atomic_fetch_sub_explicit(&w->armed, PMF_WAIT_SLEEPER, memory_order_acq_rel);
}

void pmf_wait_arm_poll(struct pmf_wait *w)
{
	/* What was written before is nothing that the coming poll() should see. */
	pmf_wait_quiet(w);
	atomic_fetch_or_explicit(&w->armed, PMF_WAIT_POLLED, memory_order_acq_rel);
}

void pmf_wait_disarm_poll(struct pmf_wait *w)
{
	atomic_fetch_and_explicit(&w->armed, ~PMF_WAIT_POLLED, memory_order_acq_rel);
}

void pmf_wait_drain(struct pmf_wait *w)
{
	uint64_t got = 0, value;
	uint32_t due;

	if (w->fd < 0 || atomic_flag_test_and_set_explicit(&w->draining, memory_order_acquire))
		return;
	due = atomic_exchange_explicit(&w->writes, 0, memory_order_acq_rel);
	while (got < due) {
		/* The descriptor sums up what is written to it. */
		if (read(w->fd, &value, sizeof(value)) == sizeof(value))
			got += value;
		else
			sched_yield(); /* a producer is between count and write */
	}
	if (got > due) /* later ones came along: they were counted before they were written */
		atomic_fetch_sub_explicit(&w->writes, (uint32_t)(got - due), memory_order_acq_rel);
	atomic_flag_clear_explicit(&w->draining, memory_order_release);
}

int pmf_wait_sleep(struct pmf_wait *w, uint32_t ticket, int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

	if (w->fd < 0) {
		sched_yield();
		return 0;
	}
	if (futex(&w->ticket, FUTEX_WAIT, ticket, ms < 0 ? NULL : &ts) < 0 && errno == ETIMEDOUT)
		return -EAGAIN;
	return 0;
}

int pmf_wait_control(const struct pmf_wait *w, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (w->fd < 0)
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(int *)arg = w->fd;
		return 0;
	case FI_GETWAITOBJ:
		if (!pmf_wait_can_sleep(w))
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(enum fi_wait_obj *)arg = w->yield ? FI_WAIT_YIELD : FI_WAIT_FD;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
