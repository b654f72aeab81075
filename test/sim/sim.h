/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The simulator: nodes that run flows over a simulated wire, under a virtual clock. One thread, no
 * real time, no randomness but the seed's: a run repeats itself from its options.
 *
 *   sim_net.c   the wire: rate, delay, queue, faults, and the order of events
 *   sim_node.c  one engine's share: frames to flows, first contact, timers, sending
 *   sim_match.c records to messages, messages to receives, memory, credit
 *   sim_app.c   streams of messages that are made, counted and verified
 *   sim_vary.c  configurations drawn from a seed
 */
#ifndef PMF_SIM_H
#define PMF_SIM_H

#include <inttypes.h>
#include <stdio.h>

#include "pmf_fault_text.h"
#include "proto/contact.h"
#include "proto/ended.h"
#include "seal/seal.h"

#define SIM_MAX_NODES 80
#define SIM_MAX_FRAME 9216
#define SIM_WIRE_OVERHEAD 66 /* preamble, gap, Ethernet, IPv4 and UDP of each frame */
#define SIM_RING (1u << 17)  /* messages of one stream that may be between push and delivery */

struct sim;
struct sim_node;
struct sim_flow;

static inline uint64_t sim_mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* ---- options ---- */

struct sim_conf {
	uint64_t seed;
	unsigned int nodes;
	struct pmf_fault fault; /* of each direction of each pair, with seeds of their own */
	pmf_ns_t delay, jitter; /* one way */
	pmf_ns_t stall;		/* of each millisecond nodes do nothing for so long */
	double gbps;		/* of each node's port, both ways */
	uint64_t queue;		/* bytes that wait at a receiver's port before frames are dropped */
	uint64_t ecn_mark;	/* bytes that wait there before frames are marked; 0: never */
	struct pmf_flow_conf flow;
	uint64_t unexpected;  /* bytes of memory for messages without a receive, of each node */
	uint32_t held_frames; /* ahead of order, of each node */
	uint32_t refuse;      /* one in so many packets finds no memory at its turn; 0: none */
	uint32_t receives;    /* posted by each node at first; each one is posted again after use */
	pmf_ns_t repost;      /* how long after */
	uint64_t fixed_size;  /* of all messages, or SIM_MIX */
	bool big;	      /* with SIM_MIX: one in 10000 of 1 to 16 MB */
	bool private_bytes;   /* every message has a block of its own, which is poisoned when it is
				 done */
	bool reclaim;	      /* take active parts back when a flow has been quiet for a while */
	struct pmf_key_list keys; /* of all nodes; none: packets are not sealed */
	bool encrypt;
};
#define SIM_MIX UINT64_MAX

void sim_conf_default(struct sim_conf *c);
/** Draw what the wire does and what nodes have from c->seed, on top of the defaults. */
void sim_conf_vary(struct sim_conf *c);

/* ---- the wire ---- */

struct sim_frame {
	struct sim_frame *next;
	pmf_ns_t at;
	uint16_t len;
	uint8_t src, dst, ecn;
	uint8_t *body; /* when held ahead of order: the records */
	uint32_t body_len;
	uint8_t data[SIM_MAX_FRAME] __attribute__((aligned(64)));
};

struct sim_frame *sim_frame_get(struct sim *s);
void sim_frame_put(struct sim *s, struct sim_frame *f);
/** Hand a frame to the wire; it is the wire's. */
void sim_net_send(struct sim *s, struct sim_frame *f);
/** @return whether the node's port takes another frame now; else *when it will */
bool sim_net_room(const struct sim *s, const struct sim_node *n, pmf_ns_t *when);

/* ---- nodes ---- */

enum sim_rx_where { SIM_RX_UNEXPECTED, SIM_RX_MATCHED };

/* A message on its way in, from its START to its delivery. */
struct sim_rx {
	TAILQ_ENTRY(sim_rx) link; /* unexpected ones of the node */
	LIST_ENTRY(sim_rx) hash;  /* of the flow, by message number */
	struct sim_flow *flow;	  /* NULL: it died after this message had come whole */
	struct sim_stream *stream;
	uint64_t msg, k, len, got, data;
	uint8_t *buf;
	uint64_t cost; /* not returned yet */
	uint64_t memory;
	bool matched, by_body, has_data, gone, awaited;
	bool invite_out, hold_out; /* these items are the flow's */
	struct pmf_item invite, hold;
};
TAILQ_HEAD(sim_rxq, sim_rx);
LIST_HEAD(sim_rx_list, sim_rx);

#define SIM_RX_HASH 256

struct sim_flow {
	struct pmf_flow f;
	struct pmf_seal *seal; /* with keys */
	struct pmf_timer timer;
	TAILQ_ENTRY(sim_flow) blocked_link;
	bool blocked;
	pmf_ns_t rest_at;
	struct sim_node *node;
	unsigned int index, peer; /* peer: node */
	struct sim_frame **held;  /* window slots */
	uint32_t nheld;
	struct sim_stream *in; /* what this life of the peer sends */
	uint64_t starts;       /* messages begun by the peer */
	uint64_t first_msg;    /* number of the first */
	uint64_t aborts;
	uint64_t awaited; /* messages whose bytes are still to come */
	uint64_t owed;	  /* message cost not returned */
	struct sim_rx *cur;
	struct sim_rx_list rx[SIM_RX_HASH];
};

TAILQ_HEAD(sim_blocked, sim_flow);

struct sim_node_stats {
	uint64_t frames_tx, frames_rx, resets_tx, opens_bad, no_flow, refused, flushed, tx_nothing;
	uint64_t unreadable, other_key, bad_tag, replayed;
};

struct sim_node {
	struct sim *sim;
	unsigned int id;
	bool alive;
	bool stopped; /* hears and says nothing; its memory stays */
	struct pmf_addr addr;
	uint64_t inc;
	struct pmf_contact_key key;
	struct pmf_keyring *ring; /* NULL: no keys */
	struct pmf_ended ended;	  /* lives of its flows */
	pmf_ns_t clock;		  /* what its clock shows at virtual time 0 */
	uint64_t rnd;
	struct pmf_flow_conf conf;
	struct pmf_flow_stats flow_stats;
	struct sim_node_stats stats;
	struct pmf_wheel wheel;
	struct pmf_looks looks;		      /* with stalls; otherwise a node always looks */
	struct sim_flow *flow[SIM_MAX_NODES]; /* by peer */
	struct sim_flow *slot[SIM_MAX_NODES * 4];
	struct sim_blocked blocked;
	struct sim_rxq unexpected;
	uint64_t posted, memory, memory_least;
	bool posting;
	uint32_t nheld;
	uint64_t repost_n;
	pmf_ns_t repost_at;
	pmf_ns_t wake_at; /* virtual time */
	pmf_ns_t delay;	  /* one way to and from it; of two nodes the larger counts */
	pmf_ns_t port_free,
		in_free; /* when the port's two directions have sent what they were given */
};

void sim_node_start(struct sim_node *n);
/** The process is gone: its memory too. */
void sim_node_kill(struct sim_node *n);
void sim_node_rx(struct sim_node *n, struct sim_frame *f);
/** Other authorization keys from now on. */
void sim_node_roll(struct sim_node *n, const struct pmf_key_list *keys);
void sim_node_wake(struct sim_node *n);
/** @return when the node goes on that stands still now; 0: it does not */
pmf_ns_t sim_node_stalled(struct sim_node *n);
/** Post receives, now. */
void sim_node_post(struct sim_node *n, uint64_t receives);
struct sim_flow *sim_node_flow(struct sim_node *n, unsigned int peer);
/** Let a flow send, and arm its timer. @return false: the flow died and is gone */
bool sim_flow_kick(struct sim_flow *sf);
pmf_ns_t sim_node_now(const struct sim_node *n);
/** Have sim_node_wake() called at virtual time @p at, or earlier. */
void sim_node_wake_at(struct sim_node *n, pmf_ns_t at);
/** It has something to send, and will at the next wake when the port has room. */
void sim_flow_block(struct sim_flow *sf);

/* ---- a node's messages on their way in ---- */

/** The packet that is next, record by record. @return whether it held what the protocol promises */
bool sim_match_records(struct sim_node *n, struct sim_flow *sf, const uint8_t *p, size_t len);
void sim_match_item_done(struct pmf_item *item);
/** The flow has died: what came whole stays, what was under way ends. */
void sim_match_bury(struct sim_flow *sf);
/** The node goes: nothing is kept. */
void sim_match_forget(struct sim_node *n);

/* ---- streams of messages ---- */

struct sim_item {
	struct pmf_item item;
	struct sim_item *next;
	struct sim_stream *stream;
	uint64_t k;
	uint8_t *own;
	struct iovec iov[4];
};

/* Messages from one node to another, numbered by k. */
struct sim_stream {
	unsigned int src, dst;
	uint64_t inc; /* the life that sends */
	uint64_t seed, count, window;
	uint64_t pushed, done, failed;	      /* by the sender */
	uint64_t started, delivered, aborted; /* at the receiver */
	uint64_t oldest;		      /* not delivered */
	uint64_t bytes;
	uint8_t *state; /* SIM_RING entries */
	struct sim_item *free, *items;
	int error; /* first status other than 0 */
};

/* For the node: how the stream sees what happens. */
/** Message @p k of the flow's peer begins. @return whether it is what was sent */
bool sim_stream_start(struct sim *s, struct sim_flow *sf, const struct pmf_rec *rec, uint64_t k);
void sim_stream_arrived(struct sim *s, struct sim_rx *rx);
void sim_stream_deliver(struct sim *s, struct sim_rx *rx);
void sim_stream_aborted(struct sim *s, struct sim_rx *rx);
/** Message @p k will not come, and had not begun. */
void sim_stream_skipped(struct sim *s, struct sim_flow *sf, uint64_t k);
void sim_stream_done(struct sim *s, struct pmf_item *item);
/** Push what the window lets out. */
void sim_stream_fill(struct sim *s, struct sim_stream *st);

/* ---- all of it ---- */

struct sim_link {
	struct pmf_fault fault;
	uint8_t nbehind;
	struct {
		struct sim_frame *frame; /* at: when it comes at the latest */
		uint32_t left;
	} behind[64];
};

/* A frame arrives; or, without one, frames of a link have waited long enough for others. */
struct sim_event {
	pmf_ns_t at;
	uint64_t seq;
	struct sim_frame *frame;
	struct sim_link *link;
};

struct sim {
	struct sim_conf conf;
	pmf_ns_t now;
	struct sim_node node[SIM_MAX_NODES];
	struct sim_link *link; /* nodes × nodes */
	struct sim_event *heap;
	size_t nheap, cap;
	uint64_t seq;
	struct sim_frame *free;
	uint64_t frames_out; /* taken and not put back */
	struct sim_stream stream[SIM_MAX_NODES * 2];
	unsigned int nstreams;
	/* the newest */
	struct sim_stream *by_pair[SIM_MAX_NODES][SIM_MAX_NODES];
	const uint8_t *table; /* random bytes that messages are cut from */
	uint64_t lost, doubled, reordered, dropped, marked, carried, carried_bytes;
	/* Frames for which it says true vanish. */
	bool (*eat)(struct sim *s, const struct sim_frame *f, void *arg);
	void *eat_arg;
	/* Sees every frame that got a place in the queue before its receiver, and how long it
	 * waits. */
	void (*watch)(struct sim *s, const struct sim_frame *f, pmf_ns_t waits, void *arg);
	void *watch_arg;
	/* A packet of a flow has been sealed under this number. */
	void (*sealed)(const struct pmf_seal *seal, uint64_t txno);
	FILE *trace; /* a line for every frame; NULL: none */
	bool failed;
	bool dead_is_fine; /* flows may die in this run */
	bool noise;	   /* frames that nobody can read may come */
	bool quiet;	   /* failures are not printed */
};

int sim_init(struct sim *s, const struct sim_conf *conf);
void sim_fini(struct sim *s);
struct sim_stream *sim_add_stream(struct sim *s, unsigned int src, unsigned int dst, uint64_t count,
				  uint64_t window);
/** Run to virtual time @p until at most, or until nothing happens any more. @return false at the
 * end */
bool sim_step(struct sim *s, pmf_ns_t until);
/** Run until every stream is at its end, one has failed, or nothing was delivered for @p stall. */
bool sim_run(struct sim *s, pmf_ns_t stall, void (*progress)(struct sim *s));
bool sim_streams_finished(const struct sim *s);
/** Grows as long as anything gets on: messages, or bytes of large ones. */
uint64_t sim_moved(const struct sim *s);
/** Run on until all flows are quiet, then look for what was left behind. */
bool sim_settle(struct sim *s);
void sim_print_state(struct sim *s, FILE *f);

/** Something does not hold: say so, once for each run, and stop it. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
