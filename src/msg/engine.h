/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The engine: one rx/tx queue pair with all flows behind it. Whoever holds the owner word runs it;
 * so nothing in here is locked. Control calls take the word by waiting for it, readers only try.
 */
#ifndef PMF_MSG_ENGINE_H
#define PMF_MSG_ENGINE_H

#include <rte_hash.h>
#include <sched.h>
#include <stdatomic.h>

#include "msg/ep_state.h"
#include "pmd_glue/frame.h"
#include "proto/contact.h"
#include "proto/ended.h"

#define PMF_QUANTUM_FRAMES 16 /* frames of one flow before the next flow's turn */
#define PMF_BUSY_LOOKS 16     /* endpoints that one pass looks at */
#define PMF_KICK_BATCH 16     /* posts behind a busy flow before the poster runs a pass */
#define PMF_RESET_RATE 1000   /* resets per second at most */
#define PMF_WINDOWS 8 /* sizes of active parts: from PMF_WINDOW_LEAST on, each 4 times the last */

/* A flow as the engine keeps it. */
struct pmf_seal;
struct pmf_auth; /* auth.h */

struct pmf_eflow {
	struct pmf_flow flow;
	struct pmf_seal *seal; /* NULL: packets have no tags */
	struct pmf_path path;
	struct pmf_timer timer;
	TAILQ_ENTRY(pmf_eflow) ready_link;
	TAILQ_ENTRY(pmf_eflow) ack_link;
	TAILQ_ENTRY(pmf_eflow) active_link; /* while it has an active part */
	TAILQ_ENTRY(pmf_eflow) ep_link;	    /* ep->eflows */
	bool ready;			    /* on engine->ready */
	bool ack;			    /* on engine->acks */
	bool named;			    /* in the address hash */
	uint32_t index;
	uint64_t conn;
	uint16_t local_port; /* its name here; of the listener that took it, or of its endpoint */
	uint32_t held_mask;  /* places in held, less one; counts only while there is one */
	struct pmf_ep *ep;
	struct pmf_auth *auth; /* the keys of its seal */
	struct pmf_cm *cm;     /* of a connection, else NULL */
	fi_addr_t fi_addr;     /* of the peer in the AV, or FI_ADDR_NOTAVAIL */
	struct pmf_peer peer;
	/* the eager message under way from the peer; both NULL: its bytes are thrown away */
	struct pmf_rx *cur_rx;
	struct pmf_stub *cur_stub;
	uint64_t cur_msg, cur_left, cur_off;
	struct pmf_rxq rx_order; /* matched receives, oldest first */
	struct pmf_rxq bodies;	 /* of those the invited ones */
	struct pmf_stubq stubs;
	uint32_t nheld;	  /* frames in held */
	uint32_t awaited; /* messages whose bytes are to come: the peer is watched meanwhile */
	struct pmf_itemq fenced; /* sends behind a fence (FI_FENCE), not in the flow yet */
	/* frames ahead of order, by packet number; behind the active part */
	struct rte_mbuf **held;
	pmf_ns_t quiet_since; /* 0: something was under way at the last look */
	struct pmf_flow_stats stats;
};

TAILQ_HEAD(pmf_eflowq, pmf_eflow);
TAILQ_HEAD(pmf_epq, pmf_ep);
TAILQ_HEAD(pmf_cmq, pmf_cm);

struct pmf_engine {
	_Atomic uint32_t
		owner; /* 1: held. Taken by exchange (acquire), given back by store (release) */
	_Atomic uint32_t
		waiters; /* control callers that wait for the word: a resident owner steps aside */
	_Atomic pmf_ns_t
		last_pass; /* written by the owner, read by the helper and control callers */
	_Atomic bool
		worker_waits; /* for the word; written by the worker, read by control callers */

	struct pmf_queue *q PMF_CACHE_ALIGNED;
	struct pmf_port *port;
	const struct pmf_conf *conf;
	uint32_t idle_rx; /* passes in a row that received nothing */
	bool rx_more;	  /* the last look for frames took all that it could */
	bool lone;	  /* it took a single one */
	struct {
		struct rte_mbuf *frame; /* to be freed */
		struct pmf_eflow *flow; /* to be told what `hdr` acknowledges; NULL: nobody */
		uint32_t packets;	/* acknowledged */
		pmf_ns_t at;		/* when it came */
	} later;	  /* what is left to do of a lone frame when it has been answered */
	bool manual_acks; /* the reader drives: two empty passes flush acknowledgements */
	struct pmf_eflowq ready, acks, actives;
	struct pmf_epq eps, orphans;
	TAILQ_HEAD(, pmf_rctx) shared; /* receive contexts of several endpoints */
	struct pmf_epq busy; /* of eps those that have posted lately: what a pass looks at */
	uint32_t nbusy;
	struct pmf_ep *look_at; /* of busy: where the next pass goes on; NULL: at the first */
	bool can_forget;	/* endpoints leave it: the kernel has membarrier(2) */
	_Atomic(struct pmf_ep *) announced
		PMF_CACHE_ALIGNED; /* pushed by posters, taken by the owner */
	struct pmf_cmq cms;	   /* connections that have a deadline */
	struct pmf_wheel wheel;
	struct pmf_eflow **flows; /* by index */
	uint32_t nflows, flows_cap, flow_free_hint;
	uint32_t idle_at; /* the next flow that is looked at whether it is idle */
	struct pmf_cq_feed *dirty_cqs;
	struct pmf_cntr_feed *dirty_cntrs;
	LIST_HEAD(, pmf_cq_feed) stalled;
	/* unexpected memory */
	struct pmf_stubq stub_free;
	uint32_t nstub_free;
	struct pmf_block *block_free;
	uint32_t nblock_free;
	uint32_t ep_kept_max;	       /* blocks of one endpoint: a part of all */
	uint32_t mc_kept, mc_kept_max; /* stubs and blocks of multicast: a part of all */
	/* sends to groups: without room to go; staged, the device not given them yet */
	struct pmf_itemq mc_waiting, mc_sent;
	uint32_t nheld, held_max;
	/* lent to flows with something in flight, by window; linked through the first word */
	void *active_free[PMF_WINDOWS];
	void *active_mem; /* what they were cut from, linked likewise */
	pmf_ns_t next_tick, reset_window;
	uint32_t resets;

	struct pmf_hdr hdr; /* of the frame that came last */
	struct pmf_flow_conf fconf;
	struct pmf_looks looks;
	struct pmf_contact_key key;
	TAILQ_HEAD(, pmf_auth) auths;	      /* rings of authorization keys in use */
	struct rte_hash *by_name;	      /* struct pmf_flow_name → struct pmf_eflow */
	struct pmf_ep **ep_of_port;	      /* 65,536 */
	struct pmf_stub *stub_mem, *stub_new; /* from stub_new on none was ever out */
	struct pmf_block *block_mem, *block_new;
	struct pmf_ended ended;
	struct pmf_engine_stats stats;
	struct pmf_mcasts *mcasts; /* NULL until a group is joined */
	uint16_t port_hint;
	_Atomic uint32_t
		sleepers;	/* readers that sleep on a wait object: the helper thread drives */
	_Atomic uint32_t neps;	/* endpoints that live here */
	_Atomic uint32_t autos; /* domains in automatic progress: a worker thread runs */
	_Atomic uint32_t
		asleep; /* the worker sleeps; a futex. Written by the worker and who wakes it */
	struct pmf_worker *worker;
	pmf_ns_t look_every;	      /* the helper thread's: see driven() */
	TAILQ_ENTRY(pmf_engine) link; /* the stack's list */
};

/* Key of the address hash: compared as bytes. */
struct pmf_flow_name {
	struct pmf_peer peer;
	uint16_t local_port;
	uint16_t zero; /* the hash reads whole words */
};
static_assert(sizeof(struct pmf_flow_name) == 24, "hashed as bytes");

/* ---- the owner word ---- */

static inline bool pmf_engine_try(struct pmf_engine *e)
{
	if (atomic_load_explicit(&e->owner, memory_order_relaxed))
		return false;
	/* acquire pairs with the release in pmf_engine_release(): all that the last owner did is
	 * seen */
	return atomic_exchange_explicit(&e->owner, 1, memory_order_acquire) == 0;
}

static inline void pmf_engine_release(struct pmf_engine *e)
{
	atomic_store_explicit(&e->owner, 0, memory_order_release);
}

/** Control path: wait for the owner word. Resident owners give it up between passes when asked. */
void pmf_engine_lock(struct pmf_engine *e);
void pmf_engine_unlock(struct pmf_engine *e);

/* ---- engine.c; control path ---- */

/** @return 0, -ENOMEM */
int pmf_engine_open(struct pmf_queue *q, const struct pmf_conf *conf, struct pmf_engine **out);
void pmf_engine_close(struct pmf_engine *e);

/* ---- passes; owner only ---- */

/** One whole pass. @return whether there was anything to do. */
bool pmf_engine_pass(struct pmf_engine *e);
/**
 * The pass of an application's thread, which may answer the one message that it finds: what that
 * message's packet acknowledges is left until the answer has gone, or until the next pass.
 */
bool pmf_engine_poll(struct pmf_engine *e);
/** What pmf_engine_poll() left. @return whether there was anything */
bool pmf_engine_rest(struct pmf_engine *e);
/** The tx half for a poster: what @p ep has posted goes to its flows; @p batch: sent even if they
 * are busy. */
void pmf_engine_kick(struct pmf_engine *e, struct pmf_ep *ep, bool batch);

/** Take over the receives posted on @p rc. @return whether there were any. */
bool pmf_engine_receives(struct pmf_engine *e, struct pmf_rctx *rc, pmf_ns_t now);

/* engine_busy.c */
void pmf_busy_init(struct pmf_engine *e);
void pmf_busy_collect(struct pmf_engine *e);
void pmf_busy_forget(struct pmf_engine *e, pmf_ns_t now);
void pmf_busy_remove(struct pmf_engine *e, struct pmf_ep *ep);

/* engine_rx.c */
bool pmf_engine_receive(struct pmf_engine *e, pmf_ns_t now);
/** What the last frame left to be done when it has been answered. */
void pmf_engine_later(struct pmf_engine *e, pmf_ns_t now);
void pmf_engine_release_held(struct pmf_engine *e, struct pmf_eflow *ef);

/* engine_tx.c */
bool pmf_engine_submit(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now);
bool pmf_engine_transmit(struct pmf_engine *e, pmf_ns_t now);
/** Sends that waited for all earlier ones go to the flow, as far as fences let them. */
void pmf_fence_release(struct pmf_eflow *ef);
/** The flow is over: what waits behind a fence ends in @p error, positive. */
void pmf_fence_end(struct pmf_engine *e, struct pmf_eflow *ef, int error);
/** One packet of this flow now, whatever its turn. */
void pmf_engine_transmit_one(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now);
void pmf_engine_flush_acks(struct pmf_engine *e, pmf_ns_t now);

/* engine_flow.c */
struct pmf_eflow *pmf_eflow_to(struct pmf_engine *e, struct pmf_ep *ep, fi_addr_t dest,
			       pmf_ns_t now, int *err);
struct pmf_eflow *pmf_eflow_find(struct pmf_engine *e, uint16_t local_port,
				 const struct pmf_peer *peer);
/** @param auth  its ring of keys; NULL: none. @param err  positive errno, set on NULL */
struct pmf_eflow *pmf_eflow_open(struct pmf_engine *e, struct pmf_ep *ep,
				 const struct pmf_addr *addr, struct pmf_auth *auth, pmf_ns_t now,
				 int *err);
/** After any call into the flow: completions, death, ready list, timer. @return false: the flow is
 * gone */
bool pmf_eflow_settle(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now);
/** The part of settling that frees what is done: completions of sends, items of stubs and receives.
 */
void pmf_eflow_drain(struct pmf_engine *e, struct pmf_eflow *ef);
/** Take it out of names and tables and free it; its items are done. */
void pmf_eflow_free(struct pmf_engine *e, struct pmf_eflow *ef, int error);
/** Lend the active part if the flow wants one. @return false: no memory now */
bool pmf_eflow_activate(struct pmf_engine *e, struct pmf_eflow *ef);
/** Take back active parts of flows that have been quiet for a while, and forget peers that have
 * gone for good; about once a millisecond. */
void pmf_eflow_rest(struct pmf_engine *e, pmf_ns_t now);
void pmf_eflow_unname(struct pmf_engine *e, struct pmf_eflow *ef);

/** The flow of @p ep to @p peer, if there is one, goes by another fi_addr_t (an AV insert or
 * removal). */
void pmf_eflow_rename(struct pmf_engine *e, struct pmf_ep *ep, const struct pmf_peer *peer,
		      fi_addr_t old, fi_addr_t fi_addr);

/* match.c */
void pmf_match_posted(struct pmf_engine *e, struct pmf_rctx *rc, struct pmf_rx *rx, pmf_ns_t now);
/**
 * Waiting messages meet posted receives once more: sources have become known, a part is free, or @p
 * rx has just been posted (else NULL). Not from within the processing of a packet.
 */
void pmf_match_again(struct pmf_engine *e, struct pmf_rctx *rc, struct pmf_rx *rx, pmf_ns_t now);
void pmf_match_start(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec);
int pmf_match_cont(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec);
int pmf_match_body(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec);
void pmf_match_invited(struct pmf_engine *e, struct pmf_rx *rx);
int pmf_match_abort(struct pmf_engine *e, struct pmf_eflow *ef, uint64_t msg);
/** The flow is dead or its endpoint closes: end what it had begun. */
void pmf_match_flow_end(struct pmf_engine *e, struct pmf_eflow *ef, int error);
void pmf_match_ep_end(struct pmf_engine *e, struct pmf_ep *ep);
/** One of ef->awaited is whole, or given up. */
void pmf_match_arrived(struct pmf_eflow *ef);

/** A multicast message for @p ep. @return 0; -ENOMEM: no receive, no memory to keep it */
int pmf_match_datagram(struct pmf_engine *e, struct pmf_ep *ep, const struct pmf_rec *rec,
		       const struct pmf_addr *from);

/* mcast.c */
void pmf_mcasts_close(struct pmf_engine *e);
/** A posted send to a group: sent, or it waits for room. */
void pmf_mc_send(struct pmf_engine *e, struct pmf_tx *tx);
void pmf_mc_retry(struct pmf_engine *e);
/** Sends are done of which the device has been given the first @p upto frames. */
void pmf_mc_handed(struct pmf_engine *e, uint64_t upto);
/** Joins that are complete, or take too long; about once a millisecond. */
void pmf_mc_tick(struct pmf_engine *e, pmf_ns_t now);
/* mcast_rx.c */
/** A frame to a group. Takes the mbuf. */
void pmf_mc_receive(struct pmf_engine *e, const struct pmf_frame *f, struct rte_mbuf *m);

/* unexpected.c */
int pmf_unexpected_init(struct pmf_engine *e);
void pmf_unexpected_fini(struct pmf_engine *e);
struct pmf_stub *pmf_stub_get(struct pmf_engine *e);
bool pmf_stub_reserve(struct pmf_engine *e, struct pmf_stub *s, uint64_t total);
/** Keep a multicast message of @p total bytes, within multicast's part of the memory. @return NULL:
 * no room */
struct pmf_stub *pmf_stub_get_datagram(struct pmf_engine *e, uint64_t total);
void pmf_stub_write(struct pmf_stub *s, uint64_t off, const uint8_t *bytes, uint32_t len);
void pmf_stub_read(struct pmf_stub *s, struct pmf_rx *rx);
void pmf_stub_put(struct pmf_engine *e, struct pmf_stub *s);

/* engine_cm.c: connections */
/** A flow of a connection begins. @return false: no memory */
bool pmf_cm_new(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now);
/** CONNREQ, ACCEPT, REJECT or CLOSE. @return 0, -EPROTO */
int pmf_cm_record(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_rec *rec,
		  pmf_ns_t now);
bool pmf_cm_takes_messages(const struct pmf_eflow *ef);
bool pmf_cm_over(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now);
void pmf_cm_receives(struct pmf_engine *e, struct pmf_ep *ep);
void pmf_cm_item_done(struct pmf_eflow *ef, const struct pmf_item *item);
void pmf_cm_flow_end(struct pmf_engine *e, struct pmf_eflow *ef, int error);
void pmf_cm_leave(struct pmf_engine *e, struct pmf_ep *ep, pmf_ns_t now);
/** What is due on a connection that is being set up or ended. May free its flow. */
void pmf_cm_tick_one(struct pmf_engine *e, struct pmf_cm *cm, pmf_ns_t now);
void pmf_cm_tick(struct pmf_engine *e, pmf_ns_t now);

/* complete.c */
/** A send's error entry is written now, though its flow keeps the transfer for a while. */
void pmf_complete_early(struct pmf_engine *e, struct pmf_tx *tx, int err);
void pmf_complete_tx(struct pmf_engine *e, struct pmf_tx *tx, int err);
void pmf_complete_rx(struct pmf_engine *e, struct pmf_rx *rx);
void pmf_complete_canceled(struct pmf_engine *e, struct pmf_rx *rx);
void pmf_complete_left(struct pmf_engine *e, struct pmf_rx *rx);
void pmf_complete_retry(struct pmf_engine *e);
/** A completion that waited for room is not wanted any more: its transfer is free. */
void pmf_complete_drop(struct pmf_cq_pending *p);
void pmf_complete_wake(struct pmf_engine *e);

/* ep_close.c: an orphan has nothing left to send, or its time is over. */
void pmf_ep_reap(struct pmf_engine *e, pmf_ns_t now);
/** Another endpoint takes the port of orphans. */
void pmf_ep_succeed(struct pmf_engine *e, uint16_t port);
/** ep.c: its port may be another's; under the owner word. */
void pmf_ep_drop_port(struct pmf_ep *ep);
/** Memory only: never enabled, or off its engine. */
void pmf_ep_free(struct pmf_ep *ep);
/* ep.c: free transfers and a ring of posted ones, to be freed by free(3). @return 0, -ENOMEM */
int pmf_posts_open(struct pmf_freelist *f, struct rte_ring **ring, size_t bytes, uint32_t size,
		   bool many);
/* ep.c: a ring for at least so many, to be freed by free(3). @return NULL: no memory */
struct rte_ring *pmf_ring_open(uint32_t entries, unsigned int flags);

#endif
