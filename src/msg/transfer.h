/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Transfers: one posted send or receive each, in an array of the endpoint; and messages that came before
 * their receive. The posting thread fills a transfer and hands it to the engine by a ring; from then on
 * it is the engine owner's until it comes back by the ring of free ones.
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
	PMF_XF_COMPLETION = 0x01, /* a success entry is due (B2) */
	PMF_XF_INLINE = 0x02,	  /* bytes were copied into the transfer: survives fi_close */
	PMF_XF_POSTED = 0x04,	  /* in a flow: fi_close must take it out */
	PMF_XF_EARLY = 0x40,	  /* its entry was written before the flow let it go */
	PMF_XF_STALLED = 0x80,	  /* and waits for room in the CQ */
};

struct pmf_tx {
	struct pmf_item item;
	struct pmf_ep *ep;
	struct pmf_eflow *flow; /* set by the engine */
	void *context;
	fi_addr_t dest;
	uint8_t flags;
	union {
		struct iovec iov[PMF_IOV_LIMIT];
		struct pmf_cq_pending pending; /* after the flow is done with it */
	};
	uint8_t data[]; /* inject_size bytes */
};

struct pmf_stub;

struct pmf_rx {
	TAILQ_ENTRY(pmf_rx) link; /* posted, then ep-wide nothing */
	struct pmf_ep *ep;
	void *context;
	uint64_t cap;	  /* bytes of room */
	uint8_t flags;	  /* PMF_XF_… */
	uint8_t niov;
	bool done;	  /* all bytes placed (or error): waits for its turn in the flow's order */
	bool invite_out;  /* item is in the flow */
	int err;	  /* positive errno: ends in an error entry */
	/* the message that it took */
	bool ordered;	       /* in flow->rx_order */
	bool has_data;
	struct pmf_eflow *flow;
	uint64_t msg, total, got, data;
	fi_addr_t src;
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
	TAILQ_ENTRY(pmf_stub) link;	 /* ep->unexpected, or the engine's free list */
	TAILQ_ENTRY(pmf_stub) flow_link; /* flow->stubs */
	struct pmf_ep *ep;
	struct pmf_eflow *flow; /* NULL once the flow is gone */
	uint8_t state;
	bool hold_out; /* item is in the flow */
	bool has_data;
	uint64_t msg, total, got, data, cost;
	fi_addr_t src;
	struct pmf_block *block, *last; /* bytes, unless they fit inline */
	struct pmf_item item;		/* HOLD */
	uint8_t bytes[PMF_STUB_INLINE];
};

TAILQ_HEAD(pmf_stubq, pmf_stub);

#endif
