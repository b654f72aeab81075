/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The resident part of a flow. Included by flow.h only. All fields are the flow's; the engine reads
 * state, error, id, peer_inc and peer_conn, and takes items from done.
 *
 * Numbers of packets (psn) and transmissions (txno) count in 64 bits from 0 and from 1, credit in
 * units of 64 bytes.
 */
#ifndef PMF_PROTO_FLOW_STATE_H
#define PMF_PROTO_FLOW_STATE_H

/*
 * A packet carries a range of one queue. Messages wait for credit in the first; so neither the
 * bytes of an invited message nor what the peer waits for (invitations, holds, aborts) ever stand
 * behind them.
 */
enum pmf_flow_queue {
	PMF_Q_SEND, /* messages: START and CONT */
	PMF_Q_BODY, /* invited messages: BODY */
	PMF_Q_CTL,  /* INVITE, HOLD, ABORT, CONNREQ to CLOSE */
	PMF_QUEUES
};

struct pmf_txq {
	struct pmf_item *cur;	/* where the next packet begins; NULL: all is cut */
	uint64_t off;		/* byte of cur */
	struct pmf_itemq items; /* not wholly acknowledged yet, in order */
};

/* Bits of pmf_flow.want: something other than data is to be sent at once. */
enum {
	PMF_WANT_HELLO = 0x01,
	PMF_WANT_RESYNC = 0x02,
	PMF_WANT_ECHO = 0x04,
	PMF_WANT_PROBE = 0x08,
	PMF_WANT_MTU = 0x10,
	PMF_WANT_TLP = 0x20,
	PMF_WANT_ASK = 0x40, /* a PROBE whose answer is not due: see pmf_flow_idle() */
};

/* What pmf_flow.loss_at stands for. */
enum pmf_loss_timer { PMF_LOSS_TAIL, PMF_LOSS_REORDER, PMF_LOSS_RTO };

/* Search for the path MTU, RFC 8899. */
struct pmf_flow_mtu {
	uint16_t ceiling; /* what both ports bear */
	uint16_t floor;	  /* what every path bears, or less if a port does not */
	uint16_t bad;	  /* smallest size known not to pass, or ceiling + 1 */
	uint16_t size;	  /* of the probe under way, 0: none */
	uint8_t tries;	  /* of this size */
	uint8_t big_lost; /* packets above the floor lost again since one was acknowledged */
	uint64_t txno;	  /* of the probe */
	pmf_ns_t since;	  /* the size in use is in doubt, and probed for */
	pmf_ns_t at;	  /* the probe's timeout, or when the search may begin again */
};

struct pmf_flow {
	/* with every packet, both ways */
	struct pmf_flow_active *active;
	pmf_psn_t psn_next; /* next new packet */
	pmf_psn_t una;	    /* oldest not acknowledged in order */
	pmf_psn_t rcv_next; /* next expected in order */
	uint64_t txno_next;
	pmf_ns_t ack_at; /* an acknowledgement is due, 0: at once */
	uint16_t inflight;
	uint16_t tx_window; /* packets in flight at most: what the peer and the active part bear */
	uint16_t mtu;	    /* UDP payload */
	uint16_t lost;	    /* packets that wait to be sent again */
	uint8_t state;	    /* enum pmf_flow_state; the engine reads it */
	uint8_t want;
	uint8_t ready;	   /* a bit per queue that may be cut */
	uint8_t turn;	   /* queue that was cut last */
	uint8_t loss_kind; /* enum pmf_loss_timer */
	bool tail_probed;  /* since the last progress */
	bool intro;	   /* packets carry the opening block: the peer may not know our id */
	bool blocked;	   /* the head of the send queue waits for credit */

	/* receiving, and credit */
	uint64_t rx_txno;   /* newest transmission received */
	pmf_ns_t rx_at;	    /* its arrival */
	pmf_ns_t last_rx;   /* anything valid */
	uint64_t rx_limit;  /* credit granted */
	uint64_t tx_limit;  /* credit we have */
	uint64_t tx_cost;   /* credit used */
	uint64_t peer_conn; /* 0: not known yet; the engine reads it */
	uint16_t holds_made;
	uint16_t rx_ce;
	uint16_t rx_unacked; /* packets since the last acknowledgement */
	uint16_t ahead;	     /* packets ahead of order that the caller holds */

	/* congestion and loss */
	struct pmf_cc cc;
	pmf_ns_t loss_at;
	pmf_ns_t pto;	     /* 2 srtt + the peer's longest acknowledgement delay */
	uint64_t acked_txno; /* newest transmission that the peer has seen */
	pmf_ns_t slow_at;    /* contact, dead peer, probes, path MTU */

	/* messages */
	const struct pmf_flow_conf *conf;
	struct pmf_flow_stats *stats;
	uint64_t tx_msg, rx_msg; /* next message number */
	struct pmf_txq txq[PMF_QUEUES];

	uint64_t rx_cost;	   /* credit that the peer has used */
	uint64_t rx_told;	   /* rx_limit that went out last */
	uint64_t rx_off, rx_total; /* the eager message under way from the peer */
	uint64_t rx_aborted;	   /* message that the peer aborted last */
	struct pmf_rtt rtt;
	struct pmf_base base;
	pmf_ns_t rack_rtt; /* last measured */
	pmf_ns_t sent_last;
	uint8_t rx_wait;      /* of rx_txno, for us to look; units of 256 ns */
	uint8_t phase;	      /* PMF_HF_PHASE as the peer sent it last */
	uint8_t reo_mult;     /* of a quarter of the least round trip; 0: no packet was ever late */
	uint8_t reo_keep;     /* recoveries until it falls back */
	bool bound;	      /* the peer's incarnation is known */
	uint16_t want_window; /* the active part is to hold so many packets; 0: it does */
	uint16_t peer_ce;
	uint16_t holds_got, holds_told;
	uint8_t asks;		     /* by pmf_flow_idle(), without an answer since */
	uint64_t grant_seen;	     /* most credit that the peer ever left open */
	struct pmf_itempark parked;  /* wait for an invitation */
	struct pmf_itempark waiting; /* acknowledged; HOLD records are under way */
	struct pmf_itemq done;	     /* the engine takes them */
	int error;		     /* positive errno when dead */

	/* contact and liveness */
	struct pmf_flow_ident id;
	uint64_t peer_inc;
	uint64_t nonce, nonce_void; /* of the last hello; of the last that counts no more */
	uint64_t cookie_time, cookie_mac;
	uint64_t seed;	   /* of the keys for what we send; the engine reads it */
	pmf_ns_t bound_at; /* on our clock: when the bound life of the peer was alive */
	pmf_ns_t hello_at, contact_at, contact_every, verify_at;
	pmf_ns_t key_refused_at; /* somebody said that our key is not taken; 0: nobody */
	pmf_ns_t due_since;	 /* an answer is due */
	pmf_ns_t probe_at, probe_every;
	pmf_ns_t asked_at;   /* by pmf_flow_idle() */
	uint64_t probe_txno; /* unanswered since, 0: none */
	bool verifying;
	bool watch; /* mind whether the peer lives though nothing is under way */
	uint16_t peer_max;
	struct pmf_flow_mtu pl;

	/* resynchronisation: ours, and what the peer's last one met here */
	uint64_t resync_txno;
	pmf_psn_t rs_base, rs_cum;
	bool rs_valid;
	uint8_t echo_flags;
	uint32_t echo_txno;
	pmf_ns_t echo_at;
	uint32_t bad_steps; /* state changes that are not allowed; stays 0 */
};

/* What every packet touches: these lines, but for the second of cc, and the queue of messages. */
static_assert(offsetof(struct pmf_flow, rx_txno) == 1 * PMF_CACHE_LINE, "lines are as drawn");
static_assert(offsetof(struct pmf_flow, cc) == 2 * PMF_CACHE_LINE, "lines are as drawn");
static_assert(offsetof(struct pmf_flow, loss_at) == 4 * PMF_CACHE_LINE, "lines are as drawn");
static_assert(offsetof(struct pmf_flow, txq) == 5 * PMF_CACHE_LINE, "lines are as drawn");

#endif
