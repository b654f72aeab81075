/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_CONTROL_H
#define PERF_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "fabric.h"
#include "options.h"

/*
 * What client and server say to each other about the work, as messages of their own endpoint pair:
 *
 *   client                                server
 *   HELLO (its control name)      ──►     inserts the name
 *                                 ◄──     WELCOME
 *   RUN (work, data name)         ──►     opens its data endpoints, posts receives;
 *                                 ◄──     READY (data name) when all its clients have come so far
 *   ... data messages, either way or both, on the data endpoints ...
 *   DONE (how many I sent)        ◄─►     DONE, from each side that sends
 *                                 ◄──     RESULT (what came in, how fast)
 *   the next RUN, or BYE          ──►
 *                                 ◄──     BYE, and both close
 *
 * STOP asks a sender to end before its time, KEEP says that a quiet client is alive, ABORT carries
 * the sentence that says why the sender gives up. Who has several data endpoints names the others
 * in NAME messages behind RUN or READY. All numbers are big endian.
 */
enum perf_control_type {
	PERF_HELLO = 1,
	PERF_WELCOME,
	PERF_RUN,
	PERF_READY,
	PERF_NAME,
	PERF_DONE,
	PERF_RESULT,
	PERF_STOP,
	PERF_KEEP,
	PERF_BYE,
	PERF_ABORT,
};

/* The work of one run; what both sides must know. */
struct perf_work {
	enum perf_mode mode;
	enum perf_direction direction;
	uint64_t size;
	uint32_t window;
	uint32_t more;
	enum perf_choice inject;
	uint32_t verify;
	uint32_t cq_data; /* each message says to which pair of endpoints it belongs */
	uint64_t count;	  /* measured messages from each sender to each receiver; 0: by time */
	uint64_t duration_ns;
	uint64_t warmup;
	uint64_t walk;
	uint64_t mix; /* seed of mixed sizes up to size; 0: all have this size */
};

/* What one side received, measured from the end of the warm-up to the last message. */
struct perf_received {
	uint64_t messages;
	uint64_t ns;
};

struct perf_name {
	uint16_t len;
	uint8_t bytes[PERF_NAME_MAX];
};

enum {
	PERF_CONTROL_MAX = 1024, /* bytes on the wire */
	PERF_REASON_MAX = 512,
};

struct perf_control {
	enum perf_control_type type;
	uint64_t nonce; /* of the client's life, in both directions */
	uint32_t place; /* of the sender in the receiver's table, as the receiver numbers it */
	uint32_t run;	/* number of the run that this is about */
	union {
		struct {
			uint32_t own_place; /* of the receiver in the sender's table */
			struct perf_name name;
		} hello;
		struct {
			uint32_t own_place;
			uint32_t clients;   /* that must come before the work starts */
			uint32_t endpoints; /* for data */
			uint64_t max_size;
			uint64_t timeout_ns;
		} welcome;
		struct {
			struct perf_work work;
			uint32_t endpoints; /* for data */
			struct perf_name name;
		} run_work;
		struct perf_name name; /* READY, NAME */
		uint64_t done;
		struct {
			struct perf_received yours;
			struct perf_received all;
		} result;
		char reason[PERF_REASON_MAX];
	} u;
};

/** Write the message. @return its length, never above PERF_CONTROL_MAX */
size_t perf_control_put(const struct perf_control *c, uint8_t *buf);

/** Read a message. @return 0; -1 (without perf_error()) if it is none, and *c is undefined */
int perf_control_get(struct perf_control *c, const uint8_t *buf, size_t len);

#endif
