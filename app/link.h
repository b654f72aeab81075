/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_LINK_H
#define PERF_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "endpoint.h"
#include "fabric.h"
#include "region.h"

enum {
	PERF_LINK_BUFS = 128, /* receives posted, and sends under way, at most */
	PERF_LINK_INBOX = 256,
};

struct perf_link_buf {
	uint8_t *bytes;
	fi_addr_t to; /* of a send */
	bool busy;    /* posted */
	bool is_tx;
	bool forgotten; /* a send whose failure is nobody's any more */
};

/* The control endpoint, its buffers, and messages that were read but not yet asked for. */
struct perf_link {
	struct perf_fabric *fabric;
	struct perf_endpoint endpoint;
	struct perf_region region;
	struct perf_link_buf rx[PERF_LINK_BUFS];
	struct perf_link_buf tx[PERF_LINK_BUFS];
	unsigned int n_rx;
	struct perf_control inbox[PERF_LINK_INBOX];
	unsigned int inbox_head;
	unsigned int inbox_len;
	fi_addr_t lost;	    /* where the last failed send went; FI_ADDR_UNSPEC if it was no send */
	uint64_t strangers; /* messages that were none of ours */
};

/** Open the control endpoint and post its receives. 0, or -1 with a reason. */
int perf_link_open(struct perf_link *l, struct perf_fabric *f);

void perf_link_close(struct perf_link *l);

/**
 * Post one message; its completion is read by later calls.
 * @return 0; -FI_EAGAIN, nothing was sent; another negative errno with perf_error() set
 */
int perf_link_try_send(struct perf_link *l, fi_addr_t to, const struct perf_control *m);

/** As above, reading completions until it is posted, for at most the time-out. 0 or -1. */
int perf_link_send(struct perf_link *l, fi_addr_t to, const struct perf_control *m);

/**
 * Drive the control endpoint and take the next message.
 * @return 1 with *m written, 0 if there is none, -errno with perf_error() set and l->lost written
 */
int perf_link_poll(struct perf_link *l, struct perf_control *m);

/**
 * Remove an address. What was sent there may fail later: unsaid, since the address may by then be
 * another's.
 */
void perf_link_forget(struct perf_link *l, fi_addr_t addr);

/** Wait for the completion of all that was sent, at most ns. 0, or -1 with a reason. */
int perf_link_flush(struct perf_link *l, uint64_t ns);

#endif
