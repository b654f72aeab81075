/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/wait.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

int pmf_wait_open(struct pmf_wait *w, int obj)
{
	*w = (struct pmf_wait){.fd = -1};
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

/* The write cannot fail but for a counter at its limit, and then the descriptor is ready anyway. */
static void wait_write(struct pmf_wait *w)
{
	uint64_t one = 1;
	ssize_t n = write(w->fd, &one, sizeof(one));

	(void)n;
	/* After the write: a reader that sees it finds something to drain. */
	atomic_store_explicit(&w->written, 1, memory_order_release);
}

void pmf_wait_wake(struct pmf_wait *w)
{
	if (w->fd < 0)
		return;
	/* Pairs with the fences of pmf_wait_arm() and pmf_wait_arm_poll(). */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&w->sleepers, memory_order_relaxed) ||
	    (atomic_load_explicit(&w->polled, memory_order_relaxed) &&
	     atomic_exchange_explicit(&w->polled, 0, memory_order_relaxed)))
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

void pmf_wait_arm(struct pmf_wait *w)
{
	atomic_fetch_add_explicit(&w->sleepers, 1, memory_order_relaxed);
	/* Pairs with the fence of pmf_wait_wake(). */
	atomic_thread_fence(memory_order_seq_cst);
}

void pmf_wait_disarm(struct pmf_wait *w)
{
	atomic_fetch_sub_explicit(&w->sleepers, 1, memory_order_relaxed);
	pmf_wait_quiet(w);
}

void pmf_wait_arm_poll(struct pmf_wait *w)
{
	/* What was written before is nothing that the coming poll() should see. */
	pmf_wait_quiet(w);
	atomic_store_explicit(&w->polled, 1, memory_order_relaxed);
	/* Pairs with the fence of pmf_wait_wake(). */
	atomic_thread_fence(memory_order_seq_cst);
}

void pmf_wait_drain(struct pmf_wait *w)
{
	uint64_t value;
	ssize_t n;

	if (w->fd < 0 || !atomic_exchange_explicit(&w->written, 0, memory_order_acquire))
		return;
	n = read(w->fd, &value, sizeof(value));
	(void)n; /* another reader may have been quicker */
	/* The look at the queue that follows must not move up before the read. */
	atomic_thread_fence(memory_order_seq_cst);
}

int pmf_wait_sleep(struct pmf_wait *w, int ms)
{
	struct pollfd pfd = {.fd = w->fd, .events = POLLIN};
	int rc;

	if (w->fd < 0) {
		sched_yield();
		return 0;
	}
	rc = poll(&pfd, 1, ms < 0 ? -1 : ms);
	return rc == 0 ? -EAGAIN : 0;
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
