/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * soak_peer: one of two processes that talk without end, each in every way at once, while dts/
 * test_soak.py changes the wire between them, restarts the one and kills it. Each checks what it
 * gets by itself: every byte, the order of each sender's messages, that no operation ends twice or
 * not at all. When it is told to be quiet it says what it has sent and got, and the conductor
 * compares the two sides. One thread; all is static or allocated once, so that memory that grows is
 * the provider's.
 */
#ifndef PMF_SOAK_H
#define PMF_SOAK_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RDM_SLOTS = 5,
	MSG_SLOTS = 4,
	SLOTS = RDM_SLOTS + MSG_SLOTS,
	HOSTS = 2,
	DESTS = HOSTS * RDM_SLOTS, /* an unconnected slot sends to all, itself included */
	PORT = 4000,		   /* and the slot's number */
	BUFS_MAX = 64,
	SENDS_MAX = 32,
	FROMS = 256,
	FROM_WINDOW = 1024,
	INJECT_MAX = 256,
	WORD_LEN = 8 /* bytes that say which message it is */
};

/* What a slot is like, on both sides. */
struct kind {
	bool msg;	/* connected */
	bool shared;	/* receives of all such slots of the same type are one queue */
	bool multi;	/* FI_MULTI_RECV */
	bool selective; /* sends without FI_COMPLETION have no entry */
	bool directed;	/* some receives want one sender */
	size_t max;	/* bytes of a message; a few are longer */
	size_t cap;	/* of a receive */
	unsigned int nrecvs, nsends;
};
extern const struct kind kinds[SLOTS];

/* A receive buffer. */
struct buf {
	struct rxq *q;
	uint8_t *bytes;
	bool posted, directed;
	bool suspect;  /* shared, and an endpoint has closed since: it may have gone with it */
	uint64_t post; /* its number among those of the queue */
	bool doomed;   /* it has, unless its entry comes before all is quiet */
};

/* A queue of receives: a slot's own, or a shared context's. */
struct rxq {
	const struct kind *kind;
	struct fid_ep *ep; /* where they are posted; NULL: nowhere now */
	struct buf buf[BUFS_MAX];
	unsigned int n, posted;
	uint64_t posts; /* ever */
};

/* A send buffer. */
struct send {
	uint8_t *bytes;
	unsigned int dest;
	bool busy;
};

struct dest {
	uint32_t next; /* number of the next message */
	uint32_t failed;
	bool greeted; /* since it is quiet */
};

/*
 * What came from one life of another slot: messages low to high, each once when all is quiet. Short
 * ones may overtake long ones on the way, but the later one always takes the later receive.
 */
struct from {
	uint32_t life, low, high, count;
	uint64_t at;			 /* when the last one came */
	uint64_t post;			 /* the receive that the latest one took */
	uint64_t seen[FROM_WINDOW / 64]; /* those below high */
};

enum state { EMPTY, PENDING, OPEN };

struct slot {
	unsigned int n;
	const struct kind *kind;
	enum state state;
	uint32_t life; /* of the process, number of the slot, how many it has opened */
	uint32_t mate; /* connected: the other end's life */
	struct fid_ep *ep;
	struct fid_cq *txcq, *rxcq;
	struct fid_cntr *txcntr;
	struct fid_eq *eq;
	struct rxq *q;
	struct send send[SENDS_MAX];
	struct dest dest[DESTS];
	struct from from[FROMS];
	uint64_t taken, lost; /* sends that were accepted; injected ones that failed */
};

struct soak {
	bool hub; /* listens, and is never restarted */
	bool quiet;
	const char *host[HOSTS]; /* own address first */
	uint32_t life;		 /* of this process */
	uint32_t opened;	 /* lives of slots so far */
	uint64_t random;
	const char *report; /* name of its file */
	uint64_t report_at, quiets;
	struct fid_fabric *fabric[2]; /* unconnected, connected */
	struct fid_domain *domain[2];
	struct fi_info *info[2];
	struct rxq own[SLOTS], shared[2];
	struct fid_ep *srx[2];
	struct fid_av *av; /* of all, as shared receives want it */
	struct fid_pep *pep[MSG_SLOTS];
	struct fid_eq *pep_eq[MSG_SLOTS];
	struct slot slot[SLOTS];
	/* what was done, for who wants to know that anything was */
	uint64_t sent, got, bytes, cut, cancelled, failed, closed, rejected;
	uint64_t moved; /* entries and events, ever */
};
extern struct soak soak;

/** What must not be ends the program with a sentence. */
_Noreturn void soak_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define MUST(call)                                                            \
	do {                                                                  \
		long must_ = (call);                                          \
		if (must_ < 0)                                                \
			soak_fail("%s: %s", #call, fi_strerror((int)-must_)); \
	} while (0)

uint32_t soak_below(uint32_t n);
static inline bool soak_chance(uint32_t one_in)
{
	return soak_below(one_in) == 0;
}

/* ---- message.c: each is known by its word, the sender's life and the number it has there ---- */

static inline uint64_t message_word(uint32_t life, uint32_t seq)
{
	return (uint64_t)life << 32 | seq;
}

/** Length of message @p word, of which both ends have room for, to a slot like @p kind. */
size_t message_len(uint64_t word, const struct kind *kind);
void message_fill(uint64_t word, uint8_t *to, size_t len);
/** Are these the first bytes of that message? */
bool message_same(uint64_t word, const uint8_t *bytes, size_t len);

/* ---- slot.c ---- */

/** Make buffers, shared contexts and listeners. */
void slots_init(void);
/** Open an endpoint of @p info for a slot, with its receives posted. */
void slot_open(struct slot *s, struct fi_info *info);
/** Is it known where enough of its receives are? Shared, closing loses what is being filled. */
bool slot_may_close(const struct slot *s);
/** Close it with whatever is under way. */
void slot_close(struct slot *s);
void slots_fini(void);
/** Post what is not posted. */
void rxq_post(struct rxq *q);
/** Cancel one that is posted, or all that are directed or suspect. */
void rxq_cancel_one(struct rxq *q);
void rxq_cancel_odd(struct rxq *q);
/** How many have gone with their endpoints, as it seems. */
unsigned int rxq_doomed(const struct rxq *q);
/** All has been quiet: those that are doomed are ours again. */
void rxq_reclaim(struct rxq *q);

/* ---- talk.c ---- */

/** Post a message, if there is room. */
void slot_talk(struct slot *s);
/** One message to each that has had none since it is quiet. */
void slot_greet(struct slot *s);
/** Have all its sends ended? */
bool slot_drained(struct slot *s);
/** Read its queues. */
void slot_read(struct slot *s);

/* ---- report.c ---- */

/** Write what was sent and got, and what is held, into the report's file: whole when it is seen. */
void report(void);

/* ---- connect.c ---- */

void connections_init(void);
void connections_fini(void);
/** Connect, accept, hear of ends. */
void connections_turn(void);

#endif
