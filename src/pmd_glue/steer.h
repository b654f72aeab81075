/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Steering: which engine of a port with several queues a UDP port belongs to. All flows of a UDP
 * port live on one engine, whatever queue their frames come in at; pmf_frame_parse() looks every
 * frame up and hands those of another engine over.
 */
#ifndef PMF_PMD_STEER_H
#define PMF_PMD_STEER_H

#include <stdatomic.h>

#include "pmd_glue/port.h"

struct pmf_steer {
	_Atomic uint8_t queue[65536]; /* of a UDP port, counted from 1; 0: nobody's. Any thread */
	uint32_t users[65536];	      /* of those taken; the owner of that queue's engine */
};

/** @return the queue that UDP port @p port belongs to, or -1: nobody's. Any thread. */
static inline int pmf_steer_of(const struct pmf_port *p, uint16_t port)
{
	if (!p->steer)
		return 0;
	/* acquire pairs with the release in pmf_steer_take() and pmf_steer_drop() */
	return atomic_load_explicit(&p->steer->queue[port], memory_order_acquire) - 1;
}

/**
 * One user more of a UDP port on this queue: an endpoint or a flow. Owner of the engine.
 * @return false: another queue has it
 */
bool pmf_steer_take(struct pmf_queue *q, uint16_t port);
void pmf_steer_drop(struct pmf_queue *q, uint16_t port);

#endif
