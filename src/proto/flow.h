/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A flow: the reliable datagram protocol between one local and one remote endpoint, both
 * directions. Bytes and a clock in, bytes and verdicts out: no I/O, no clock, no allocation, no
 * globals. All calls are the engine owner's; `now` is never less than an earlier `now` of the same
 * flow.
 *
 * Received packets are processed strictly in order of packet number (those ahead of order are
 * acknowledged selectively and held by the caller), and a packet counts as acknowledged only after
 * its caller has processed it. So a cumulative acknowledgement means: matched and placed in the
 * posted buffer, kept in memory of the receiver, or named by a HOLD record. A send completes when
 * it is acknowledged cumulatively and all HOLD records that the acknowledgement counts have
 * arrived.
 */
#ifndef PMF_PROTO_FLOW_H
#define PMF_PROTO_FLOW_H

#include <sys/uio.h>

#include "pmf_common.h"
#include "proto/cc.h"
#include "proto/looks.h"
#include "proto/rtt.h"
#include "proto/wheel.h"
#include "proto/wire.h"

/* What a receiver pays for a message, counted in the credit: its head, and its bytes if they come
 * at once. */
#define PMF_MSG_HEAD_COST 64u
static inline uint64_t pmf_msg_cost(uint64_t len, bool eager)
{
	return PMF_MSG_HEAD_COST + (eager ? (len + 63) & ~63ull : 0);
}

/* The same for all flows of an engine; kept by pointer. Times in ns. */
struct pmf_flow_conf {
	pmf_ns_t ack_delay;  /* an acknowledgement waits at most this for something to ride on */
	uint32_t ack_every;  /* packets received that are acknowledged at once */
	pmf_ns_t dead_after; /* unanswered for this long while an answer is due: the peer is dead */
	pmf_ns_t min_rto, max_rto;
	uint32_t window;       /* packets in flight and held ahead; a power of two, at most 32768 */
	uint32_t eager_limit;  /* longer messages are announced, bytes */
	uint64_t rx_credit;    /* message cost that a peer may have unreturned here, bytes */
	uint64_t first_credit; /* the grant in a challenge, bytes, at most rx_credit */
	uint16_t max_payload;  /* UDP payload that the port bears, at least PMF_WIRE_MIN_PAYLOAD */
	bool one_record;       /* messages and control records do not share packets */
	pmf_ns_t queue_aim;    /* time in queues that a flow which is alone allows */
	const struct pmf_looks *looks; /* how often the caller looks for frames; NULL: always */
};

/* Kinds of an item. */
enum pmf_item_kind {
	PMF_ITEM_MSG,
	PMF_ITEM_INVITE,
	PMF_ITEM_HOLD,
	PMF_ITEM_ABORT,
	PMF_ITEM_CONNREQ, /* this and what follows: of a connection, with bytes of the program */
	PMF_ITEM_ACCEPT,
	PMF_ITEM_REJECT,
	PMF_ITEM_CLOSE
};

/* Where an item is. The flow's setter checks the steps. */
enum pmf_item_state {
	PMF_ITEM_NEW,	 /* not in a flow */
	PMF_ITEM_QUEUED, /* in a send queue; not or not wholly sent, or not acknowledged */
	PMF_ITEM_PARKED, /* acknowledged; waits for an invitation or for HOLD records under way */
	PMF_ITEM_DONE	 /* on flow->done, status set */
};

/*
 * One message or control record to send; embedded by the caller. The caller fills the first block
 * and keeps item and bytes unchanged until the item comes out of flow->done.
 */
struct pmf_item {
	STAILQ_ENTRY(pmf_item) link;
	union {
		const void *buf;	 /* niov == 1: the bytes */
		const struct iovec *iov; /* niov > 1; stays with the caller as the bytes do */
	};
	uint64_t len;
	uint64_t data; /* CQ data, with PMF_RF_DATA in flags */
	uint8_t flags; /* PMF_RF_DATA */
	uint8_t niov;
	uint8_t kind;
	/* the flow's */
	uint8_t state;
	uint8_t mode;	/* eager, announced, body; decided at the first transmission */
	bool aborted;	/* bytes are not to be read any more */
	bool held;	/* a HOLD named it */
	bool invited;	/* an INVITE came while the eager bytes were still under way */
	int32_t status; /* on done: 0 or a negative errno */
	uint32_t holds; /* PARKED: HOLD records that must have come, modulo 2^16 */
	uint64_t msg; /* message number; of INVITE, HOLD, ABORT: the number they name; of CONNREQ to
			 CLOSE: the reason */
	TAILQ_ENTRY(pmf_item) park;
};

STAILQ_HEAD(pmf_itemq, pmf_item);
TAILQ_HEAD(pmf_itempark, pmf_item);

enum pmf_flow_state {
	PMF_FLOW_IDLE,	  /* nothing sent yet */
	PMF_FLOW_HELLO,	  /* hello sent, waits for the challenge */
	PMF_FLOW_OPENING, /* data goes out with the answer in it until the peer's id is known */
	PMF_FLOW_OPEN,
	PMF_FLOW_RESYNC, /* data stops until the peer has told where it stands (path MTU fell) */
	PMF_FLOW_DEAD,	 /* error set; all items are on done */
	PMF_FLOW_STATES
};
extern const char *const pmf_flow_state_name[PMF_FLOW_STATES];

struct pmf_flow_active; /* windows of a flow that has something in flight; flow_active.h */

#define PMF_FLOW_STATS(X)                                                                          \
	X(tx_packets, "packets", "data packets sent, first time")                                  \
	X(tx_bytes, "bytes", "message bytes sent, first time")                                     \
	X(tx_msgs, "messages", "messages sent whole and acknowledged")                             \
	X(tx_retrans, "packets", "data packets sent again")                                        \
	X(tx_spurious, "packets", "sent again although the first copy had arrived")                \
	X(tx_marked, "packets", "sent, and seen by the peer with a congestion mark")               \
	X(rtt_unsure, "times", "round trips that say nothing of the path: a side was not looking") \
	X(tx_acks, "packets", "acknowledgements sent alone")                                       \
	X(tx_probes, "packets", "probes sent")                                                     \
	X(tx_hellos, "packets", "hellos sent")                                                     \
	X(tx_announced, "messages", "messages announced first")                                    \
	X(tx_held, "messages", "eager messages that the peer asked to hold")                       \
	X(timeouts, "times", "retransmission timeouts")                                            \
	X(tail_probes, "times", "tail loss probes")                                                \
	X(credit_stalls, "times", "sending stopped for want of credit")                            \
	X(mtu_raised, "times", "path MTU proven larger")                                           \
	X(mtu_fell, "times", "path MTU fell back")                                                 \
	X(rx_packets, "packets", "data packets accepted")                                          \
	X(rx_bytes, "bytes", "message bytes accepted")                                             \
	X(rx_msgs, "messages", "messages begun by the peer")                                       \
	X(rx_dups, "packets", "dropped: received before")                                          \
	X(rx_outside, "packets", "dropped: outside the window")                                    \
	X(rx_ahead, "packets", "held ahead of order")                                              \
	X(rx_bad, "packets", "dropped: not acceptable in this state")                              \
	X(rx_ce, "packets", "received with a congestion mark")                                     \
	X(rx_held, "messages", "messages that found no memory here and were held at the sender")   \
	X(rx_resets, "packets", "reset hints received")

struct pmf_flow_stats {
	PMF_FLOW_STATS(PMF_STAT_FIELD)
};
extern const struct pmf_stat_desc pmf_flow_stat_desc[];
extern const unsigned int pmf_flow_stat_count;

/* Who the two ends are. */
struct pmf_flow_ident {
	uint64_t inc;	/* incarnation of the local endpoint */
	uint64_t conn;	/* chosen here: flow index in the low 32 bits, random above */
	uint64_t nonce; /* random; hellos count on from it */
	struct pmf_addr local, peer;
	bool connects; /* to a listener */
	uint8_t tail;  /* bytes that the caller puts behind each packet: PMF_WIRE_TAG, or 0 */
};

/*
 * The resident part. Fields are the flow's own unless a comment says that the engine reads them.
 * (The layout is proto's to arrange: what an active flow touches per packet stands first.)
 */
struct pmf_flow;
#include "proto/flow_state.h" /* defines struct pmf_flow */

/** Start a flow in PMF_FLOW_IDLE. @p conf and @p stats are kept by pointer; several flows may share
 * stats. */
void pmf_flow_init(struct pmf_flow *f, const struct pmf_flow_conf *conf,
		   const struct pmf_flow_ident *id, struct pmf_flow_stats *stats, pmf_ns_t now);

/** Append a message (PMF_ITEM_MSG): it gets its message number now. */
void pmf_flow_push(struct pmf_flow *f, struct pmf_item *item);

/* ---- the active part ---- */

/*
 * It holds the packets of a window, which begins small and grows with what is under way: a peer
 * that exchanges a message now and then costs a few lines, not what a full window takes.
 */
#define PMF_WINDOW_LEAST 4u /* packets */

/** @param window  a power of two */
size_t pmf_flow_active_size(uint32_t window);
/** @return the least window, in packets, that the flow needs to go on; 0: it has what it needs. */
uint32_t pmf_flow_window_wanted(const struct pmf_flow *f);
/** The same as a question. */
static inline bool pmf_flow_needs_active(const struct pmf_flow *f)
{
	return f->want_window != 0 || (!f->active && f->ready &&
				       (f->state == PMF_FLOW_OPEN || f->state == PMF_FLOW_OPENING));
}
/**
 * Lend @p mem, pmf_flow_active_size(window) bytes, cache aligned; it is initialised here, and takes
 * over what an active part with a smaller window holds. @param window  a power of two, at least
 * what is wanted, at most conf->window
 * @return the smaller one, which is the caller's again; NULL: there was none
 */
void *pmf_flow_lend(struct pmf_flow *f, void *mem, uint32_t window);
/** There is no memory for a larger one: go on with what there is, and ask again later. */
void pmf_flow_make_do(struct pmf_flow *f);
/** Take it back: only when pmf_flow_is_quiet(). @return the memory */
void *pmf_flow_reclaim(struct pmf_flow *f);
/** @return nothing in flight, nothing ahead of order, nothing to send: the active part is not
 * needed. */
bool pmf_flow_is_quiet(const struct pmf_flow *f);

/* ---- sending ---- */

/*
 * The last bytes of a packet, where they lie: the caller puts them behind what was written, by a
 * copy or by having the device read them there. They stay as they are until the item is done.
 */
struct pmf_piece {
	uint32_t min; /* set by the caller: shorter ones are written like the rest; at least 1 */
	uint32_t len; /* 0: nothing is left out */
	const void *bytes;
	struct pmf_item *item; /* whose bytes they are: a PMF_ITEM_MSG */
};

/** @return whether pmf_flow_tx() would give a packet at @p now. Cheap. */
bool pmf_flow_wants_tx(const struct pmf_flow *f, pmf_ns_t now);

/**
 * Make the next packet of any type: hello, open, data (first or again), acknowledgement, probe.
 * Acknowledgements go alone only when due (pmf_flow_ack_due()); they ride on everything else.
 * @param buf  where the UDP payload goes; bytes of messages are copied; room for id.tail is left
 * @param cap  at least conf->max_payload
 * @param ect  set to whether the frame should be marked ECN capable (data only)
 * @param piece  what was left out of the end of a packet that is sent for the first time; NULL, or
 *               a packet that is sent again: all is written
 * @return bytes written; 0: nothing to send now
 */
size_t pmf_flow_tx(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap, bool *ect,
		   struct pmf_piece *piece);

/* ---- receiving ---- */

enum pmf_verdict {
	PMF_RX_NONE,  /* acknowledgement or control: all done */
	PMF_RX_NEXT,  /* next in order: read its records, then pmf_flow_rx_done() */
	PMF_RX_AHEAD, /* ahead of order: keep the frame under *psn, or forget it by
			 pmf_flow_rx_refuse() */
	PMF_RX_DROP,  /* duplicate, outside the window or not acceptable; counted */
	PMF_RX_FLUSH, /* done, and what was kept ahead of order is to be dropped (resynchronised) */
	PMF_RX_DEAD   /* the flow died (f->error) */
};

/** Before pmf_flow_rx(): a packet that is ahead of order needs a window that reaches so far; see
 * pmf_flow_window_wanted(). Without it the packet is dropped. */
void pmf_flow_make_room(struct pmf_flow *f, const struct pmf_hdr *hdr);

/**
 * Account a received OPEN, DATA, ACK or PROBE for this flow: acknowledgement, credit, loss
 * detection. Items that are finished are appended to f->done.
 * @param ecn  the two bits of the IP header
 * @param psn  set on NEXT and AHEAD
 */
enum pmf_verdict pmf_flow_rx(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
			     pmf_ns_t now, pmf_psn_t *psn);

/**
 * The same, but what the header acknowledges may be left for after what it brings has been
 * answered: pmf_flow_rx_later() accounts it then, before the flow takes another packet.
 * @param later  set to the packets that are left so; 0: none, all is done
 */
enum pmf_verdict pmf_flow_rx_first(struct pmf_flow *f, const struct pmf_hdr *hdr, uint8_t ecn,
				   pmf_ns_t now, pmf_psn_t *psn, uint32_t *later);
/** @param hdr, later  of pmf_flow_rx_first(); @param at  when the packet came */
void pmf_flow_rx_later(struct pmf_flow *f, const struct pmf_hdr *hdr, uint32_t later, pmf_ns_t at);

/* A walk over the records of one packet that is next in order. */
struct pmf_rec_iter {
	const uint8_t *p;
	size_t left;
};

/**
 * Next record for the caller: START (msg = the next number, in order), CONT (of the last START, its
 * bytes in order), BODY, ABORT, and those of a connection, CONNREQ to CLOSE, whose order is the
 * caller's to check. INVITE and HOLD are dealt with inside (their effect shows on
 * f->done and in pmf_flow_wants_tx()). ABORT may name a message that never began, one that is
 * whole, or one whose INVITE is still under way (the two cross): the caller ignores it, or waits
 * for its item. BODY comes only after its INVITE is done, and not after an ABORT. A START whose
 * kind is not PMF_MK_MSG is given too.
 * @return 1: @p rec; 0: end; -EPROTO: the peer broke the protocol, the caller kills the flow
 */
int pmf_flow_next_rec(struct pmf_flow *f, struct pmf_rec_iter *it, struct pmf_rec *rec);

/**
 * The packet that was NEXT has been processed: advance. The following one may be held by the
 * caller: its records are read then, and pmf_flow_rx_done() called again, without pmf_flow_rx().
 */
void pmf_flow_rx_done(struct pmf_flow *f, pmf_ns_t now);

/**
 * A packet cannot be taken (no memory): one that pmf_flow_rx() has just called NEXT or AHEAD, or
 * one that was held ahead of order and is next now. As if it had not come, but the peer hears that
 * we live. Before pmf_flow_next_rec() of that packet and before the next pmf_flow_tx().
 */
void pmf_flow_rx_refuse(struct pmf_flow *f, pmf_psn_t psn);

/** A message's cost is free again: it was matched at once, or has left the unexpected memory. */
void pmf_flow_credit_return(struct pmf_flow *f, uint64_t cost);

/** Ask for the bytes of an announced or held message. @p item is the caller's until it is on done.
 */
void pmf_flow_invite(struct pmf_flow *f, struct pmf_item *item, uint64_t msg);

/** Tell that the bytes of eager message @p msg were not kept; before pmf_flow_rx_done() of its
 * START. */
void pmf_flow_hold(struct pmf_flow *f, struct pmf_item *item, uint64_t msg);

/* ---- connections ---- */

/**
 * Send a record of a connection (@p kind PMF_ITEM_CONNREQ to _CLOSE). @p item and @p bytes, at most
 * PMF_WIRE_CM_DATA, are the flow's until the item is on done. Control goes before messages: a CLOSE
 * that is to come after them is pushed when they are done.
 */
void pmf_flow_control(struct pmf_flow *f, struct pmf_item *item, enum pmf_item_kind kind,
		      enum pmf_reason reason, const void *bytes, size_t len);

/** Mind from now on whether the peer lives though nothing is under way: probes after silence. */
void pmf_flow_watch(struct pmf_flow *f, pmf_ns_t now);
/** Not any more. */
void pmf_flow_unwatch(struct pmf_flow *f);
/**
 * The caller wants nothing of the peer, which may have gone for good: ask it now and then. To be
 * called now and then; does nothing unless the flow has been quiet for long. There may be something
 * to send afterwards.
 * @return false: it has not answered for so long that the caller forgets it
 */
bool pmf_flow_idle(struct pmf_flow *f, pmf_ns_t now);

/* ---- acknowledgements ---- */

/** @return whether something received is not acknowledged yet. */
bool pmf_flow_ack_pending(const struct pmf_flow *f);
/** When a pending acknowledgement must go at the latest; PMF_NS_NEVER if none. */
pmf_ns_t pmf_flow_ack_due(const struct pmf_flow *f);
/** Let it go with the next pmf_flow_tx(), alone if need be. */
void pmf_flow_ack_now(struct pmf_flow *f);
/**
 * The same, whether it has gone before or not.
 * @return false: no packet of the peer has come within the last second, or the flow carries no data
 */
bool pmf_flow_ack_again(struct pmf_flow *f, pmf_ns_t now);

/* ---- time ---- */

/** When pmf_flow_on_timer() wants to be called; PMF_NS_NEVER: not at all. Acknowledgements
 * included. */
pmf_ns_t pmf_flow_deadline(const struct pmf_flow *f);
/** Early calls do no harm. Afterwards there may be something to send, items on done, or a dead
 * flow. */
void pmf_flow_on_timer(struct pmf_flow *f, pmf_ns_t now);

/* ---- contact; see contact.h for the stateless half ---- */

struct pmf_contact;
/*
 * An OPEN without a connection id comes from somebody who knows only our incarnation: the caller
 * checks it with pmf_contact_check(), finds or makes the flow by its two addresses, calls
 * pmf_flow_accept() and then pmf_flow_rx(). An OPEN *with* a connection id answers such a one (it
 * tells the id that the answering side chose, and carries no cookie): it goes to the flow of that
 * id like DATA, straight into pmf_flow_rx().
 */
/**
 * A valid OPEN names this flow's two ends: bind the peer's incarnation and connection id.
 * Idempotent. Another incarnation or id than the bound one: the flow dies (ECONNRESET) if that OPEN
 * is the newer one, and the caller makes a new flow; an older one is ignored, and pmf_flow_rx()
 * will drop it.
 */
void pmf_flow_accept(struct pmf_flow *f, const struct pmf_contact *c, pmf_ns_t now);
/** A CHALLENGE for this flow's connection id. The flow may die of it. @return 0, or -EBADMSG when
 * it answers no hello of ours */
int pmf_flow_on_challenge(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now);
/** A RESET with REFUSED for this flow's connection id: believed if it answers a hello of ours. The
 * flow may die of it (ECONNREFUSED, ECONNRESET when it was open, EKEYREJECTED with KEY). With KEY
 * to a flow that has a key it is a mere hint: it gives a death of silence its name. */
void pmf_flow_on_refused(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now);
/** A RESET that names this flow's peer: not believed, verified by a hello. With KEY as above. */
void pmf_flow_on_reset(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now);

/* ---- ends ---- */

/**
 * Its bytes are not the flow's any more (the endpoint closes): what has not arrived yet is replaced
 * by an ABORT. The item stays the flow's until it comes out of done, with -ECANCELED though all may
 * have arrived. item->len is cut to what was sent.
 */
void pmf_flow_abort(struct pmf_flow *f, struct pmf_item *item);

/** The flow is dead with @p error (positive errno): every item goes to done with that status. */
void pmf_flow_kill(struct pmf_flow *f, int error);

#endif
