/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_STATION_H
#define PERF_STATION_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "endpoint.h"
#include "pattern.h"
#include "region.h"
#include "session.h"

struct perf_flow;

/* One operation: a buffer, and where it walks through the region. The context of its completion. */
struct perf_slot {
	uint8_t *buf;
	struct perf_slot *next; /* free sends of the flow, or receives that wait to be posted */
	struct perf_flow *flow; /* NULL: a receive */
	struct fid_ep *ep;	/* of a receive */
	uint64_t seq;		/* of a receive from an only pair: the message that it gets */
	uint32_t lap;
};

/* An endpoint here and one there. */
struct perf_pair {
	struct fid_ep *ep;
	fi_addr_t to;
	uint64_t tx_key;
	uint64_t rx_key;
	uint64_t sent;
	uint64_t received;
};

/*
 * The messages between this station and one partner's. Where one has several endpoints, there are
 * as many pairs, and a message or burst goes over each in turn: over the same ones on both sides.
 */
struct perf_flow {
	struct perf_partner *partner;
	struct perf_pair *pairs;
	unsigned int n_pairs;
	unsigned int turn;
	struct perf_slot *free;
	uint64_t sent;	    /* posted */
	uint64_t completed; /* sends whose entry was read, or that write none */
	uint64_t received;
	uint64_t first_ns; /* when the warm-up had come in */
	uint64_t last_ns;  /* when the last message so far came in */
	uint64_t owed;	   /* replies of a lat server */
	bool done_told;
};

/* Data endpoints and their buffers, for one run. Main thread only. */
struct perf_station {
	struct perf_session *session;
	struct perf_work work;
	struct perf_endpoint *endpoints; /* on the queue and the addresses of the first */
	unsigned int n_endpoints;
	struct perf_region tx;
	struct perf_region rx;
	struct perf_slot *slots;
	unsigned int n_tx; /* slots of each flow */
	unsigned int n_rx; /* of all endpoints, the same number each */
	size_t stride;	   /* bytes from buffer to buffer */
	uint32_t tx_laps;
	uint32_t rx_laps;
	size_t tx_lap_bytes;
	size_t rx_lap_bytes;
	struct perf_pair *pairs; /* of all flows */
	unsigned int n_pairs;
	struct perf_flow flows[PERF_PARTNERS_MAX];
	unsigned int n_flows;
	struct perf_flow *flow_at[PERF_PARTNERS_MAX]; /* by place in the session's table */
	struct perf_slot *unposted;		      /* receives for which there was no room */
	bool inject;
	bool sends;
	bool receives;
	uint64_t rx_posted;
	uint64_t events;   /* completions read; shows that something moves */
	uint32_t idle;	   /* empty polls in a row */
	uint32_t busy;	   /* polls that found something, since the last check */
	uint32_t patience; /* so many of them are some ms, for the next check */
	uint64_t checked_ns;
	uint64_t events_seen;
	uint64_t moved_ns; /* when events last differed from events_seen */
};

/**
 * Open the endpoints and the buffers, and post the receives.
 * @param partners  with whom the run is; their data names may still be missing
 * @return 0; -1 with perf_error() set and st closed
 */
int perf_station_open(struct perf_station *st, struct perf_session *s, const struct perf_work *work,
		      struct perf_partner *const *partners, unsigned int n);

/** Insert the partners' data addresses, and start the clocks. 0, or -1 with a reason. */
int perf_station_connect(struct perf_station *st);

void perf_station_close(struct perf_station *st);

/**
 * Post the next message of a flow: one call.
 * @param flags  FI_MORE or 0
 * @return 1 posted, 0 no room now (nothing was changed), -1 with perf_error() set
 */
int perf_station_send(struct perf_station *st, struct perf_flow *flow, uint64_t flags);

/** Read completions, check and count messages, post their receives again. @return count or -1 */
int perf_station_poll(struct perf_station *st);

/** The rare part of perf_station_pace(). */
int perf_station_check(struct perf_station *st);

/**
 * To be called after each poll: offers the processor after empty polls, and now and then looks at
 * control messages, the user and the time-out.
 * @return 0, or -1 with perf_error() set
 */
static inline int perf_station_pace(struct perf_station *st, bool worked)
{
	uint32_t yield = st->session->options->yield;

	if (worked) {
		st->idle = 0;
		return ++st->busy < st->patience ? 0 : perf_station_check(st);
	}
	st->idle++;
	if (yield && st->idle % yield == 0)
		sched_yield();
	return st->idle % 256 ? 0 : perf_station_check(st);
}

/** @return whether all that the partners say they sent has come. */
bool perf_station_all_received(const struct perf_station *st);

/** Tell each partner to which all sends are completed how many there were. 0 or -1. */
int perf_station_tell_done(struct perf_station *st);

/** What came in from one flow, or (NULL) from all, after the warm-up. */
struct perf_received perf_station_received(const struct perf_station *st,
					   const struct perf_flow *flow);

#endif
