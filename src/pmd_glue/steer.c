/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "pmd_glue/steer.h"

bool pmf_steer_take(struct pmf_queue *q, uint16_t port)
{
	struct pmf_steer *s = q->port->steer;
	uint8_t none = 0, mine = (uint8_t)(q->queue_id + 1);

	if (!s)
		return true;
	/* acquire: what the last owner left in `users` is seen */
	if (!atomic_compare_exchange_strong_explicit(&s->queue[port], &none, mine,
						     memory_order_acq_rel, memory_order_acquire) &&
	    none != mine)
		return false;
	s->users[port]++;
	return true;
}

void pmf_steer_drop(struct pmf_queue *q, uint16_t port)
{
	struct pmf_steer *s = q->port->steer;

	if (s && --s->users[port] == 0)
		atomic_store_explicit(&s->queue[port], 0, memory_order_release);
}
