/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A blocking read: look, sleep until the engine has written or the time is over, look again. While
 * a reader sleeps, the helper thread drives its engines.
 */
#ifndef PMF_MSG_WAITING_H
#define PMF_MSG_WAITING_H

#include "completion/wait.h"
#include "msg/stack.h"

struct pmf_waiting {
	struct pmf_wait *wait;
	struct pmf_progress *progress;
	uint64_t deadline; /* ms of CLOCK_MONOTONIC; UINT64_MAX: none */
	uint32_t ticket;
	bool armed;
};

/** @param timeout  ms, negative: for ever */
void pmf_waiting_begin(struct pmf_waiting *w, struct pmf_wait *wait, struct pmf_progress *progress,
		       int timeout);

/**
 * After a look that found nothing. The first call only arms, so that the caller looks once more
 * before it sleeps. @return false: the time is over
 */
bool pmf_waiting_sleep(struct pmf_waiting *w);

void pmf_waiting_end(struct pmf_waiting *w);

#endif
