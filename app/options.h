/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PERF_PARTNERS_MAX = 64,	   /* peers of a client, clients of a server */
	PERF_ENDPOINTS_MAX = 1024, /* of one side, for data */
	PERF_THREADS_MAX = 64,
	PERF_SIZES_MAX = 64,
	PERF_TEXT_MAX = 128, /* an address, a name */
};

enum perf_mode {
	PERF_LAT,  /* ping-pong, half of the round trip */
	PERF_BW,   /* a stream, judged by its bytes */
	PERF_RATE, /* a stream, judged by its messages */
	PERF_MODES,
};

/* As the client sees it; the bits are or-ed. */
enum perf_direction {
	PERF_TX = 1,
	PERF_RX = 2,
	PERF_BOTH = 3,
};

enum perf_format {
	PERF_TEXT,
	PERF_CSV,
	PERF_JSON,
};

enum perf_choice {
	PERF_AUTO,
	PERF_ON,
	PERF_OFF,
};

struct perf_options {
	/* what is opened */
	char provider[PERF_TEXT_MAX];
	char domain[PERF_TEXT_MAX];
	char bind[PERF_TEXT_MAX]; /* own address, or own name where addresses are names */
	char port[8];
	char peers[PERF_PARTNERS_MAX][PERF_TEXT_MAX];
	unsigned int n_peers;
	unsigned int clients;
	unsigned int endpoints; /* 0: one, and messages do not say to which pair they belong */
	bool listen;
	bool self;	      /* both ends are here */
	unsigned int threads; /* that do so */
	bool forever;
	bool auto_progress;
	bool thread_safe;
	bool mr;
	/* what is done */
	enum perf_mode modes[PERF_MODES];
	unsigned int n_modes;
	size_t sizes[PERF_SIZES_MAX];
	unsigned int n_sizes;
	enum perf_direction direction;
	unsigned int window;
	unsigned int more;
	enum perf_choice inject;
	bool verify;
	uint64_t count; /* 0: by duration */
	uint64_t duration_ns;
	bool warmup_auto;
	uint64_t warmup;
	bool walk_auto;
	uint64_t walk; /* bytes; 0: reused */
	uint64_t mix;  /* seed of mixed sizes; 0: off */
	/* how */
	uint64_t timeout_ns;
	unsigned int yield; /* empty polls before the processor is offered; 0: never */
	int core;	    /* -1: not pinned */
	enum perf_format format;
	bool interactive;
	bool verbose;
	bool help;
	bool version;
};

void perf_options_init(struct perf_options *o);

/**
 * Read the program's own arguments (behind "--").
 * @return 0; -1 with perf_error() set. Not checked against each other yet.
 */
int perf_options_parse(struct perf_options *o, int argc, char *argv[]);

/** Set one option by name, as the prompt does; value NULL for a flag. Changes nothing on -1. */
int perf_options_set(struct perf_options *o, const char *name, const char *value);

/** @return 0 if the options go together; -1 with perf_error() set. */
int perf_options_check(const struct perf_options *o);

/** Print the help of the program, or of what the prompt may set. */
void perf_options_help(bool prompt);

/** Print what is set, for "show config". */
void perf_options_show(const struct perf_options *o);

static inline unsigned int perf_own_endpoints(const struct perf_options *o)
{
	return o->endpoints ? o->endpoints : 1;
}

const char *perf_mode_name(enum perf_mode mode);
const char *perf_direction_name(enum perf_direction direction);

#endif
