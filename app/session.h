/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_SESSION_H
#define PERF_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "fabric.h"
#include "link.h"
#include "options.h"

/* One other side: a server, seen from a client, or a client, seen from a server. */
struct perf_partner {
	char text[PERF_TEXT_MAX]; /* its address, for people */
	fi_addr_t control;
	uint64_t nonce;	      /* of the client among the two */
	uint32_t place_there; /* of this side in the partner's table */
	uint64_t heard;	      /* when its last message came, ns */
	uint32_t clients;     /* a server's: how many it waits for */
	uint32_t endpoints;   /* for data */
	uint64_t max_size;    /* a server's */
	bool joined;
	bool bye;
	/* of the run that is asked for or under way */
	uint32_t run;
	struct perf_work work;
	struct perf_name *names;    /* of its endpoints: those that have come, room for all */
	uint32_t n_names;	    /* 0 between runs */
	bool stop;		    /* a client wants the server's stream to end */
	bool has_result;	    /* a server's RESULT has come */
	struct perf_received yours; /* RESULT */
	struct perf_received all;
	uint64_t expected; /* messages that it says it sent; UINT64_MAX: not known yet */
};

/* All that is under way between this program and its partners. Main thread only. */
struct perf_session {
	const struct perf_options *options;
	struct perf_fabric fabric;
	struct perf_link link;
	struct perf_partner partners[PERF_PARTNERS_MAX];
	unsigned int n_partners;
	uint64_t nonce; /* of this client */
	uint32_t run;
	uint64_t pulsed; /* when KEEP was last sent */
	bool open;
	bool stop; /* the user wants the run to end */
	/* Called some hundred times a second while something is awaited; true: end the run. */
	bool (*tick)(void *arg);
	void *tick_arg;
};

/** Open fabric and control endpoint by the options. 0, or -1 with a reason and s closed. */
int perf_session_open(struct perf_session *s, const struct perf_options *options);

/** Client: greet every peer until all have answered. 0, or -1 within the time-out. */
int perf_session_connect(struct perf_session *s);

/**
 * Server: wait for the clients; the time-out runs from the first one on.
 * @return 0, or -1; with s->stop set if the user ended the wait
 */
int perf_session_accept(struct perf_session *s);

/** A client that has asked for a run, a server that is ready for it: all endpoints are named. */
static inline bool perf_partner_named(const struct perf_partner *p)
{
	return p->n_names && p->n_names == p->endpoints;
}

/** Send a message of a run to one partner; type and u are the caller's. 0 or -1. */
int perf_session_send(struct perf_session *s, struct perf_partner *p, struct perf_control *m);

/**
 * Read control messages into the partners' fields, send what keeps the session alive, ask the user.
 * To be called now and then during all waiting.
 * @return 0; -1 if a partner gave up or has been silent for the time-out
 */
int perf_session_pulse(struct perf_session *s, uint64_t now);

/** Pulse until done() says so. 0, or -1 as above. s->stop does not end it. */
int perf_session_wait(struct perf_session *s, bool (*done)(const struct perf_session *s));

/** Client: say goodbye and wait for the answers. Errors on this last stretch are of no interest. */
void perf_session_bye(struct perf_session *s);

/** Server: answer the clients' goodbyes and forget them. Errors do not matter any more. */
void perf_session_farewell(struct perf_session *s);

/** Tell all partners why this side gives up (perf_error()), and forget them. */
void perf_session_abort(struct perf_session *s);

void perf_session_close(struct perf_session *s);

#endif
