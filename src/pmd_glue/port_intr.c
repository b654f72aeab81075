/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Rx interrupts, for whoever wants to sleep. Drivers hand out descriptors of several natures (an
 * event counter, an epoll over one) that change when the peer returns, and that nobody drains; so
 * each queue has an epoll of its own around it, edge-triggered, which stays.
 */
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "pmd_glue/internal.h"

void pmf_queue_intr_open(struct pmf_queue *q)
{
	q->intr_src = -1;
	q->intr_fd = q->port->rx_intr ? epoll_create1(EPOLL_CLOEXEC) : -1;
}

void pmf_queue_intr_close(struct pmf_queue *q)
{
	if (q->intr_fd >= 0)
		close(q->intr_fd);
	q->intr_fd = -1;
}

int pmf_queue_intr_fd(const struct pmf_queue *q)
{
	return q->intr_fd >= 0 ? q->intr_fd : -ENOTSUP;
}

/*
 * The driver's descriptor into our epoll. A closed one has left it by itself, and its number may
 * have come back as another one's; so it is added each time, and mostly there already.
 */
static int source_update(struct pmf_queue *q)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	const int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(q->port_id, q->queue_id);

	if (fd < 0)
		return -ENOTSUP;
	if (fd != q->intr_src && q->intr_src >= 0)
		epoll_ctl(q->intr_fd, EPOLL_CTL_DEL, q->intr_src, NULL);
	q->intr_src = fd;
	if (epoll_ctl(q->intr_fd, EPOLL_CTL_ADD, fd, &ev) != 0 && errno != EEXIST)
		return -ENOTSUP;
	return 0;
}

int pmf_queue_intr_arm(struct pmf_queue *q)
{
	struct epoll_event ev;

	if (q->intr_fd < 0 || !atomic_load_explicit(&q->port->link_up, memory_order_relaxed) ||
	    source_update(q) != 0)
		return -ENOTSUP;
	/* Old signals go before the interrupt is enabled: what comes between is seen by the caller.
	 */
	(void)epoll_wait(q->intr_fd, &ev, 1, 0);
	return rte_eth_dev_rx_intr_enable(q->port_id, q->queue_id) == 0 ? 0 : -ENOTSUP;
}

void pmf_queue_intr_disarm(struct pmf_queue *q)
{
	if (q->intr_fd >= 0)
		rte_eth_dev_rx_intr_disable(q->port_id, q->queue_id);
}
