/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Blocking reads; see waiting.h. Any thread; the state is the caller's, on its stack.
 */
#include "msg/waiting.h"

#include <limits.h>
#include <sched.h>
#include <time.h>

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void pmf_waiting_begin(struct pmf_waiting *w, struct pmf_wait *wait, struct pmf_progress *progress,
		       int timeout)
{
	w->wait = wait;
	w->progress = progress;
	w->deadline = timeout < 0 ? UINT64_MAX : now_ms() + (uint64_t)timeout;
	w->armed = false;
}

static int left_ms(const struct pmf_waiting *w)
{
	uint64_t now = now_ms();

	if (w->deadline == UINT64_MAX)
		return -1;
	return now >= w->deadline ? 0 : (int)PMF_MIN(w->deadline - now, (uint64_t)INT_MAX);
}

bool pmf_waiting_sleep(struct pmf_waiting *w)
{
	int left = left_ms(w);

	if (left == 0)
		return false;
	if (!pmf_wait_active(w->wait)) { /* FI_WAIT_YIELD */
		sched_yield();
		return true;
	}
	if (!w->armed) {
		w->armed = true;
		pmf_progress_sleep_begin(w->progress);
		w->ticket = pmf_wait_arm(w->wait);
		return true;
	}
	pmf_wait_sleep(w->wait, w->ticket, left);
	pmf_wait_disarm(w->wait);
	w->ticket = pmf_wait_arm(w->wait);
	return true;
}

void pmf_waiting_end(struct pmf_waiting *w)
{
	if (!w->armed)
		return;
	pmf_wait_disarm(w->wait);
	pmf_progress_sleep_end(w->progress);
}
