/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Transfers: one posted send or receive each, in an array of the endpoint; and messages that came
 * before their receive. The posting thread fills a transfer and hands it to the engine by a ring;
 * from then on it is the engine owner's until it comes back by the ring of free ones.
 */
#ifndef PMF_MSG_TRANSFER_H
#define PMF_MSG_TRANSFER_H

#include <rdma/fabric.h>

#include "completion/cq.h"
#include "proto/flow.h"

#define PMF_IOV_LIMIT 4
#define PMF_STUB_INLINE 128
#define PMF_BLOCK_SIZE 2048 /* unexpected memory is given out in blocks of this many bytes */

struct pmf_ep;
struct pmf_eflow;

/* What is due when a transfer ends, and what it is. */
enum {
	PMF_XF_COMPLETION = 0x01, /* send: a success entry is due (B2); receive: it was asked for */
	PMF_XF_INLINE = 0x02,	  /* bytes were copied into the transfer: survives fi_close */
	PMF_XF_POSTED = 0x04,	  /* in a flow: fi_close must take it out */
	PMF_XF_FENCE = 0x08,	  /* waits until all earlier sends to its peer are over */
	PMF_XF_EARLY = 0x10,	  /* a send's entry was written before the flow let it go */
	PMF_XF_STALLED = 0x20,	  /* and waits for room in the CQ */
	PMF_XF_GROUP = 0x40,	  /* to a multicast group, in no flow */
	PMF_XF_ATTACHED = 0x80,	  /* its bytes were attached to frames: see `attached` */
	/* receives */
	PMF_XF_KEYED =
		0x04, /* directed: `want` is a key of the AV, and all peers under it are meant */
	PMF_XF_FROM_GROUP = 0x08, /* took a multicast message */
	PMF_XF_DIRECTED = 0x10,	  /* takes messages of one source only */
	PMF_XF_MULTI = 0x20,	  /* a multi-receive buffer: messages take parts of it */
	PMF_XF_PART = 0x40,	  /* one message's part of such a buffer */
	PMF_XF_PREFIX = 0x80,	  /* the prefix of FI_MSG_PREFIX stands before the bytes */
};
#define PMF_XF_CHOOSY (PMF_XF_DIRECTED | PMF_XF_MULTI) /* does not just take the next message */

struct pmf_tx {
	struct pmf_item item;
	struct pmf_ep *ep;
	struct pmf_eflow *flow; /* set by the engine */
	void *context;
	fi_addr_t dest;
	uint8_t flags;
	uint16_t attached; /* frames that still read its bytes where they lie; engine owner only */
	union {
		struct iovec iov[PMF_IOV_LIMIT];
		uint64_t mark; /* to a group, staged: the device must have been given so many frames
				*/
		struct pmf_cq_pending pending; /* after the flow is done with it */
	};
	uint8_t data[]; /* inject_size bytes */
};

struct pmf_stub;
struct pmf_rctx;

struct pmf_rx {
	TAILQ_ENTRY(pmf_rx) link; /* rctx->posted; a part: rctx->parts */
	struct pmf_rctx *rctx;	  /* it is a receive of this context */
	struct pmf_ep *ep;	  /* that got the message; set when matched */
	void *context;
	uint64_t cap;  /* bytes of room */
	uint8_t flags; /* PMF_XF_… */
	uint8_t niov;
	bool done;	 /* all bytes placed (or error): waits for its turn in the flow's order */
	bool invite_out; /* item is in the flow */
	int err;	 /* positive errno: ends in an error entry */
	/* the message that it took */
	bool ordered; /* in flow->rx_order */
	bool has_data;
	struct pmf_eflow *flow;
	uint64_t msg, total, got, data;
	fi_addr_t src;
	struct pmf_peer from; /* endpoints with FI_SOURCE_ERR: the sender */
	union {
		fi_addr_t want;	       /* PMF_XF_DIRECTED */
		struct pmf_rx *buffer; /* PMF_XF_PART: what it is a part of */
	};
	/* PMF_XF_MULTI */
	uint64_t used, min; /* bytes given out; released when fewer than min are left */
	uint32_t nparts;    /* under way */
	bool released;	    /* takes no more messages */
	bool dropped; /* its endpoint was closed: free when the invitation is out of the flow */
	TAILQ_ENTRY(pmf_rx) order; /* flow->rx_order: completions come in matching order */
	TAILQ_ENTRY(pmf_rx) body;  /* flow->bodies: invited, its bytes come as BODY records */
	struct pmf_item item;	   /* INVITE */
	struct iovec iov[PMF_IOV_LIMIT];
	struct pmf_cq_pending pending;
};

TAILQ_HEAD(pmf_rxq, pmf_rx);

enum pmf_stub_state {
	PMF_STUB_RECEIVING, /* eager, more bytes to come */
	PMF_STUB_COMPLETE,
	PMF_STUB_HELD, /* bytes are at the sender: announced, or there was no memory */
	PMF_STUB_GONE  /* matched or dropped; only its HOLD item keeps it */
};

struct pmf_block {
	struct pmf_block *next;
	uint8_t bytes[PMF_BLOCK_SIZE - sizeof(void *)];
};

/* A message that no posted receive matched. Engine owner only. */
struct pmf_stub {
	TAILQ_ENTRY(pmf_stub) link;	 /* rctx->unexpected, or the engine's free list */
	TAILQ_ENTRY(pmf_stub) flow_link; /* flow->stubs */
	struct pmf_ep *ep;
	struct pmf_eflow *flow; /* NULL once the flow is gone */
	uint8_t state;
	bool hold_out; /* item is in the flow */
	bool has_data;
	bool datagram; /* of multicast: no flow has brought it */
	uint64_t msg, total, got, data, cost;
	fi_addr_t src;
	struct pmf_peer peer;		/* an AV may learn it after the flow has gone */
	struct pmf_block *block, *last; /* bytes, unless they fit inline */
	struct pmf_item item;		/* HOLD */
	uint8_t bytes[PMF_STUB_INLINE];
};

TAILQ_HEAD(pmf_stubq, pmf_stub);

#endif
