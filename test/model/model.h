/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The reference: what endpoints may observe of each other's messages. It is told what was called
 * and what was read, in the order in which one thread did it, and says when that cannot be. It does
 * not say when a message arrives, which nobody may rely on; it keeps what must have happened by
 * when, and finds what contradicts it.
 *
 *   Messages of one sender are matched in the order of their sending, by the oldest open receive
 *   that wants them. So when a receive is seen to have taken a message, every older one that wanted
 *   it has been matched before (or cancelled): it takes something sent before that moment, and
 *   nothing more of that sender.
 *   Receives that are shared are one queue. A connection's end cancels what is open on both sides;
 *   what was acknowledged before, or injected by who ends it, has arrived and can still be taken.
 *   An acknowledged message has arrived. So what was sent after the acknowledgement was read comes
 *   behind it: a receive that wants both takes it first.
 */
#ifndef PMF_MODEL_MODEL_H
#define PMF_MODEL_MODEL_H

#include <stddef.h>

#include "program.h"

enum {
	MAX_LIVES = 32, /* of all endpoints: each restart is another one */
	MAX_MSGS = MAX_STEPS,
	MAX_RECVS = 4 * MAX_STEPS,
	MAX_PARTS = MAX_MSGS,
	NEVER = 0x7fffffff,
	NOBODY = -1
};

/* What was read of a completion queue. */
struct model_entry {
	int err;	/* positive errno, or 0 */
	uint64_t flags; /* FI_SEND … */
	uint64_t len, olen, data;
	int src;	      /* slot of the sender, or NOBODY when that is not known */
	const uint8_t *bytes; /* what was received */
	uint64_t off;	      /* of it in the posted buffer */
};

struct model_msg {
	int from, to_slot; /* life of the sender; slot of the receiver */
	int dest;	   /* connected: life of the receiver */
	int to;		   /* the life that has got it, or NOBODY */
	uint32_t len;
	uint16_t flags; /* of its step */
	int sent, acked;
	int err;	 /* of its send, or 0 */
	bool entry_due;	 /* a success has an entry */
	bool entry_seen; /* of either kind */
	bool gone;	 /* met a receive and was taken back by its sender */
	int older_than;	 /* only a receive posted before this one may take it */
};

struct model_part {
	uint64_t off, len;
	int src;
	bool cut;
};

struct model_recv {
	int queue, want; /* see model_queue(); slot, or ANY */
	int hears;	 /* the life that is told of its cancel, or NOBODY */
	bool lost;	 /* shared: it may have gone with the last endpoint of all */
	uint64_t cap, min, used;
	bool multi, done, failed; /* failed: a part of it ended in an error */
	bool was_cancelled;	  /* its end, when it is done */
	int posted, cancelled;	  /* when the cancel that may take effect was called, or NEVER */
	int by;			  /* it has been matched, or released, before this time */
	uint32_t not_from[MAX_LIVES]; /* slots of which it gets nothing more by that life */
	uint32_t nparts, first_part;
};

struct model_life {
	int slot, opened, closed; /* NEVER: open */
	uint64_t min;
	int mate;		/* connected: the life at the other end */
	int ended, own_end;	/* when an end, or this one, called for the connection's end */
	unsigned int told;	/* FI_SHUTDOWN events */
	uint64_t rx_ok, rx_err; /* receives that have ended */
	uint64_t tx_taken, tx_err;
};

struct model {
	const struct program *p;
	int now;
	struct model_msg msg[MAX_MSGS];
	struct model_recv recv[MAX_RECVS];
	struct model_life life[MAX_LIVES];
	struct model_part part[MAX_PARTS];
	int nmsgs, nrecvs, nlives;
	uint32_t nparts;
	int life_of[MAX_EPS];	    /* that stands at the slot now, or NOBODY */
	uint32_t restarted, closed; /* slots, ever */
	bool lonely;		    /* shared receives were once without an endpoint */
	char why[400];		    /* empty: nothing is wrong */
};

void model_begin(struct model *m, const struct program *p);
/** Something cannot be; the first time counts. */
void model_fail(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- calls that were accepted ---- */

/** An endpoint stands at @p slot. @return its life */
int model_open(struct model *m, unsigned int slot);
void model_close(struct model *m, int life);
/** The next message that is accepted. */
uint64_t model_next_id(const struct model *m);
/** @return its number */
int model_sent(struct model *m, int life, const struct step *s);
/** @return its number */
int model_posted(struct model *m, int life, const struct step *s);
/** @param rc  of fi_cancel() */
void model_cancelled(struct model *m, int recv, long rc);
/** The n-th newest open receive of a queue. @return NOBODY: none */
int model_open_recv(const struct model *m, int queue, unsigned int n);
/** Two lives are connected from now on. */
void model_connected(struct model *m, int a, int b);
/** One of them calls for the end, by fi_shutdown() or by closing. */
void model_ended(struct model *m, int life);
/** A call was refused because there is no connection. */
void model_refused(struct model *m, int life);
/** FI_SHUTDOWN was read. */
void model_told(struct model *m, int life);
/** Where this life's receives are: one number for all that are shared. */
int model_queue(const struct model *m, int life);
/** Do messages from one slot to another fail because of their keys? */
bool model_apart(const struct model *m, int a, int b);

/* ---- entries that were read ---- */

void model_tx_entry(struct model *m, int life, int msg, const struct model_entry *e);
/** An inject failed: which one it was nobody says. */
void model_lost_inject(struct model *m, int life, int err);
void model_rx_entry(struct model *m, int life, int recv, const struct model_entry *e);

/* ---- what is to come ---- */

/** Must it still arrive at the endpoint that stands at its destination? */
bool model_is_due(const struct model *m, int msg);
/** Messages that must, or may, still come to this life. */
unsigned int model_coming(const struct model *m, int life, bool must);
/** Sends of this life without an entry that is due. */
unsigned int model_unanswered(const struct model *m, int life);
/** Events of this life that must still come. */
unsigned int model_untold(const struct model *m, int life);
/** Everything is over: nothing may be missing. Counters are those of the life's sends and receives.
 */
void model_end(struct model *m, int life, const uint64_t counter[4]);

/* ---- bytes of message @p id ---- */

void model_bytes(uint64_t id, uint8_t *to, uint64_t len);
/** Are these its first bytes? */
bool model_same(uint64_t id, const uint8_t *bytes, uint64_t len, uint64_t total);
uint64_t model_id(const struct model *m, int msg);

#endif
