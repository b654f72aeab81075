/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef RAW_WORK_H
#define RAW_WORK_H

#include "../histogram.h"
#include "raw_port.h"

enum raw_mode {
	RAW_MODE_ECHO,
	RAW_MODE_PING,
	RAW_MODE_FLOOD,
	RAW_MODE_SINK,
	RAW_MODES,
};

/* What is done with the bytes of each frame behind its header. */
enum raw_touch {
	RAW_TOUCH_NONE,
	RAW_TOUCH_COPY, /* written from, and read into, 64 MB that is walked through */
	RAW_TOUCH_SUM,	/* written from 64 MB, added up by the receiver */
	RAW_TOUCHES,
};

struct raw_options {
	enum raw_mode mode;
	enum raw_touch touch;
	uint32_t size;
	uint64_t count; /* 0: by time */
	uint64_t duration_ns;
	uint64_t warmup;
	uint64_t timeout_ns;
	uint32_t yield;
};

struct raw_result {
	uint64_t sent;
	uint64_t received;
	uint64_t ns; /* ping: of all round trips; flood, sink: from the first to the last frame */
	struct perf_histogram rtt; /* ping, ns */
};

/**
 * Do the work of the mode; echo and sink end when the other side says so, or when *stop is set.
 * @return 0; -1 with perf_error() set
 */
int raw_work(struct raw_port *p, const struct raw_options *o, struct raw_result *r,
	     const volatile int *stop);

#endif
