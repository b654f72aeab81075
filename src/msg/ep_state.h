/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * struct pmf_ep. Three parts on cache lines of their own: what posting threads write, what the
 * engine's owner writes, and what nobody writes after fi_enable.
 */
#ifndef PMF_MSG_EP_STATE_H
#define PMF_MSG_EP_STATE_H

#include <rte_ring.h>
#include <stdatomic.h>

#include "msg/ep.h"
#include "msg/freelist.h"
#include "msg/rctx.h"
#include "msg/transfer.h"

struct pmf_engine;

enum pmf_ep_state {
	PMF_EP_NEW,	    /* being bound */
	PMF_EP_UNCONNECTED, /* MSG: enabled; receives may be posted */
	PMF_EP_ENABLED,	    /* on its engine; MSG: connected; passive: listens */
	PMF_EP_DRAINING, /* MSG: the connection is over, messages are kept that nobody has received
			    yet */
	PMF_EP_ENDED,	 /* MSG: the connection is over */
	PMF_EP_ORPHAN,	 /* closed by the application; sends what it owes */
	PMF_EP_STATES
};

/*
 * What an application holds: an endpoint, an alias of one, or a shared receive context. Each has
 * default flags of its own.
 */
struct pmf_handle {
	struct fid_ep fid; /* first: calls get this address */
	struct pmf_ep *ep; /* NULL: a shared receive context */
	struct pmf_rctx
		*rctx; /* where its receives go; closed when they must go to a shared context */
	uint64_t tx_op_flags, rx_op_flags;
};

struct pmf_ep {
	union {
		struct pmf_handle handle;
		struct fid_ep fid;
	};
	void *owner; /* fabric's part of the endpoint; never followed here */

	/* Set before fi_enable ends, then only read. */
	struct pmf_engine *engine;
	struct pmf_progress *progress;
	struct pmf_peers *peers;	     /* NULL: not RDM */
	struct pmf_auth *auths[PMF_EP_KEYS]; /* rings of keys: one, or by the AV's numbers */
	uint32_t nauths;
	enum pmf_ep_type type;
	_Atomic int state; /* enum pmf_ep_state; written under the owner word, read by posters */
	bool can_send, can_recv;
	bool tx_selective, rx_selective;
	bool source_err; /* FI_SOURCE_ERR */
	uint8_t prefix;	 /* bytes of FI_MSG_PREFIX, or 0 */
	uint8_t dscp;
	fi_addr_t no_src; /* FI_ADDR_NOTAVAIL, which is all bits, without FI_SOURCE; else 0 */
	bool kick;	  /* manual progress: posting runs the tx half of a pass */
	uint32_t inject_size, iov_limit;
	uint64_t max_msg_size;
	struct pmf_freelist tx_free; /* sends */
	struct rte_ring *tx_ring;    /* posted ones */
	struct pmf_rctx *rctx;	     /* its own, or a shared one; NULL: that is not bound yet */
	struct pmf_cq_feed *tx_cq, *rx_cq;
	struct pmf_cntr_feed *tx_cntr, *rx_cntr;
	struct pmf_addr addr;
	uint64_t inc;	 /* incarnation */
	uint32_t mc_max; /* bytes of a multicast message */
	/* memberships in groups; made by the first, written under the owner word */
	struct pmf_mc_slot *_Atomic mc_slots;
	TAILQ_ENTRY(pmf_ep) peers_link; /* peers->eps; the AV's lock */
	struct pmf_eq *eq;		/* where events of a connection go, as event_fid's */
	struct fid *event_fid;
	const struct fi_info *info; /* of a listener */
	bool port_held;		    /* ep_of_port names it before it is enabled */
	bool shares_port;	    /* its address is its listener's */

	/* Posting threads. A hint only: written racily under FI_THREAD_SAFE, which costs a pass at
	 * most. */
	_Atomic uint32_t unkicked
		PMF_CACHE_ALIGNED; /* posts since the engine last drained the ring */
	_Atomic uint32_t listed;   /* engine looks here, or is about to; set by posters, cleared by
				      the owner */
	struct pmf_ep *announced_next; /* engine->announced; whoever set `listed` */

	/* The engine owner's. */
	TAILQ_ENTRY(pmf_ep) link PMF_CACHE_ALIGNED; /* engine->eps or engine->orphans */
	TAILQ_ENTRY(pmf_ep) busy_link;		    /* engine->busy */
	bool busy;				    /* on it */
	pmf_ns_t busy_at;			    /* the last pass that found a post */
	TAILQ_ENTRY(pmf_ep) rctx_link;		    /* rctx->eps */
	bool joined;				    /* on it */
	uint32_t nflows;
	TAILQ_HEAD(, pmf_eflow) eflows;
	struct pmf_eflow *conn;	     /* MSG: the one flow; NULL: none yet, or no more */
	struct pmf_connreq *request; /* that it was made for */
	uint32_t nrequests,
		backlog; /* of a listener: requests nobody has taken, and how many may be */
	uint32_t kept;	 /* blocks of unexpected memory that its messages take */
	uint64_t mc_seq; /* messages sent to groups */
	pmf_ns_t linger_until;
	struct pmf_eflow *
		*flow_of[PMF_PEERS_CHUNKS]; /* fi_addr_t → flow, as pmf_peers is laid out */
	struct pmf_ep_stats stats;
};

static inline struct pmf_handle *pmf_handle_of(struct fid_ep *fid)
{
	return (struct pmf_handle *)fid;
}

static inline struct pmf_ep *pmf_ep_of(struct fid_ep *fid)
{
	return pmf_handle_of(fid)->ep;
}

#define PMF_MC_SLOTS 1024 /* groups of one endpoint */

struct pmf_mc_slot {
	_Atomic fi_addr_t addr; /* that may be sent to, or FI_ADDR_NOTAVAIL; read by posters */
	struct pmf_mc *mc;	/* the engine owner's */
};

/** Any thread: is @p dest a group that the endpoint has joined for sending? */
static inline bool pmf_mc_may_send(const struct pmf_ep *ep, fi_addr_t dest)
{
	struct pmf_mc_slot *slots = atomic_load_explicit(&ep->mc_slots, memory_order_acquire);

	return slots && dest != FI_ADDR_NOTAVAIL &&
	       atomic_load_explicit(&slots[dest & (PMF_MC_SLOTS - 1)].addr, memory_order_acquire) ==
		       dest;
}

void pmf_busy_announce(struct pmf_ep *ep);

/** A poster has put an entry on a ring: see that a pass looks there. The fence is engine_busy.c's.
 */
static inline void pmf_ep_posted(struct pmf_ep *ep)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (pmf_unlikely(!atomic_load_explicit(&ep->listed, memory_order_relaxed)))
		pmf_busy_announce(ep);
}

static inline struct pmf_tx *pmf_ep_tx(struct pmf_ep *ep, uint32_t i)
{
	return pmf_freelist_at(&ep->tx_free, i);
}

#endif
