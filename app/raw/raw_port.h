/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef RAW_PORT_H
#define RAW_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

/* One port with one queue each way, and the pool that feeds it. */
struct raw_port {
	uint16_t id;
	bool stopped;
	struct rte_mempool *pool;
	struct rte_ether_addr own;
	struct rte_ether_addr peer; /* broadcast until it has answered */
};

enum {
	RAW_ROOM_MAX = 65535 - RTE_PKTMBUF_HEADROOM,
};

/**
 * Configure and start the port for frames of up to size bytes in one segment.
 * @param room  least bytes of a frame's buffer, where a driver wants more than the frame; up to
 *              RAW_ROOM_MAX
 * @param buffers  of its pool: what the rings take, and what the caller holds
 * @return 0; -1 with perf_error() set
 */
int raw_port_open(struct raw_port *p, uint16_t id, uint32_t size, uint32_t room, uint32_t buffers);

/** Let the driver give back its buffers, among them those of other ports' pools. */
void raw_port_stop(struct raw_port *p);

/** Stop it, and free its pool. A port that never opened is allowed. */
void raw_port_close(struct raw_port *p);

#endif
