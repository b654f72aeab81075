/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files of a flow share with each other and with nobody else.
 */
#ifndef PMF_PROTO_FLOW_PRIVATE_H
#define PMF_PROTO_FLOW_PRIVATE_H

#include "proto/flow_active.h"

#define PMF_OPENING_WINDOW                                                                      \
	8		   /* packets to a peer that has not shown yet that it took our opening \
			    */
#define PMF_CREDIT_SHIFT 6 /* credit is counted in units of 64 bytes */

/* How a message goes; pmf_item.mode. */
enum pmf_item_mode { PMF_MODE_NONE, PMF_MODE_EAGER, PMF_MODE_ANNOUNCED, PMF_MODE_BODY };

/* The low 32 bits of a 64-bit number, seen from @p ref: how far it is ahead (RFC 4303 §2.2.1). */
static inline int32_t pmf_ahead32(uint32_t low, uint64_t ref)
{
	return (int32_t)(low - (uint32_t)ref);
}

static inline uint64_t pmf_extend32(uint32_t low, uint64_t ref)
{
	return ref + (uint64_t)(int64_t)pmf_ahead32(low, ref);
}

/** The slow timer is to fire at @p at or earlier. */
static inline void pmf_flow_arm(struct pmf_flow *f, pmf_ns_t at)
{
	if (at < f->slow_at)
		f->slow_at = at;
}

/** Acknowledge at once: something is odd, or the peer waits. */
static inline void pmf_flow_ack_soon(struct pmf_flow *f)
{
	f->ack_at = 0;
}

static inline bool pmf_flow_carries_data(const struct pmf_flow *f)
{
	return f->state == PMF_FLOW_OPEN || f->state == PMF_FLOW_OPENING;
}

/* flow.c */
bool pmf_flow_step(struct pmf_flow *f, enum pmf_flow_state to);
bool pmf_item_step(struct pmf_flow *f, struct pmf_item *item, enum pmf_item_state to);
/** Put an item at the end of a queue; refused with the flow's error when it is dead. */
void pmf_flow_enqueue(struct pmf_flow *f, struct pmf_item *item, enum pmf_flow_queue q);
void pmf_flow_item_done(struct pmf_flow *f, struct pmf_item *item, int status);
/** Reckon tx_window anew: the state or the active part has changed. */
void pmf_flow_set_window(struct pmf_flow *f);
/** The active part is to hold @p packets, or as many as it may. */
void pmf_flow_want_window(struct pmf_flow *f, uint32_t packets);

/* flow_tx.c */
void pmf_flow_fill(const struct pmf_flow *f, struct pmf_hdr *hdr, uint8_t type, pmf_ns_t now);
void pmf_flow_fill_open(const struct pmf_flow *f, struct pmf_hdr *hdr);
/** @param size of the records, 0: none */
void pmf_flow_sent(struct pmf_flow *f, uint32_t size, pmf_ns_t now);
/** A PROBE, padded to @p size if that is more. @return length */
size_t pmf_flow_probe(struct pmf_flow *f, uint8_t flags, size_t size, pmf_ns_t now, uint8_t *buf,
		      size_t cap);

/* flow_cut.c: packets from queues, and packets again */
size_t pmf_flow_cut(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap,
		    struct pmf_piece *piece);
size_t pmf_flow_again(struct pmf_flow *f, struct pmf_txpkt *p, pmf_ns_t now, uint8_t *buf,
		      size_t cap);

/* flow_sack.c */
unsigned int pmf_flow_sack_list(struct pmf_flow *f, struct pmf_sack *out, unsigned int max);
uint32_t pmf_flow_sack_take(struct pmf_flow *f, const struct pmf_hdr *hdr);

/* flow_loss.c */
/** Take an acknowledgement that is @p ahead of una (0: nothing in order) and was sent after the
 * last. */
void pmf_flow_on_ack(struct pmf_flow *f, const struct pmf_hdr *hdr, uint32_t ahead, pmf_ns_t now);
/** @return 1 if the packet was in flight or to be sent again, 0 if it was acknowledged before */
uint32_t pmf_flow_pkt_acked(struct pmf_flow *f, struct pmf_txpkt *p);
void pmf_flow_loss_timer(struct pmf_flow *f, pmf_ns_t now);
void pmf_flow_loss_arm(struct pmf_flow *f);
/** Release the packets up to una + @p n. @return those that were not acknowledged before */
uint32_t pmf_flow_release(struct pmf_flow *f, uint32_t n);
/** Nothing is in flight any more: forget all packets. */
void pmf_flow_forget(struct pmf_flow *f);

/* flow_contact.c */
size_t pmf_flow_hello(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap);
/** @return whether a packet is to be taken in a flow that is not plainly open */
bool pmf_flow_contact_rx(struct pmf_flow *f, const struct pmf_hdr *hdr);
void pmf_flow_contact_timer(struct pmf_flow *f, pmf_ns_t now);

/* flow_mtu.c */
void pmf_flow_mtu_bind(struct pmf_flow *f);
void pmf_flow_mtu_full(struct pmf_flow *f, pmf_ns_t now);
void pmf_flow_mtu_echo(struct pmf_flow *f, uint64_t txno, pmf_ns_t now);
void pmf_flow_mtu_timer(struct pmf_flow *f, pmf_ns_t now);
size_t pmf_flow_mtu_probe(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap);
/** A packet above the floor was lost that had been lost before. */
void pmf_flow_mtu_lost(struct pmf_flow *f, pmf_ns_t now);

/* flow_resync.c */
void pmf_flow_resync(struct pmf_flow *f, pmf_ns_t now);
size_t pmf_flow_resync_probe(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap);
/** A PROBE with RESYNC. @return FLUSH when the receive window moved, else NONE or DROP */
enum pmf_verdict pmf_flow_resync_rx(struct pmf_flow *f, const struct pmf_hdr *hdr);
void pmf_flow_resync_done(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now);

/* flow_live.c */
void pmf_flow_due(struct pmf_flow *f, pmf_ns_t now);
void pmf_flow_late(struct pmf_flow *f, pmf_ns_t now);
void pmf_flow_live_timer(struct pmf_flow *f, pmf_ns_t now);
void pmf_flow_stalled(struct pmf_flow *f, pmf_ns_t now);
void pmf_flow_on_echo(struct pmf_flow *f, const struct pmf_hdr *hdr, pmf_ns_t now);

/* flow_msgs.c */
/** @return whether the message at the head of the send queue may begin; decides how */
bool pmf_flow_admit(struct pmf_flow *f, struct pmf_item *item);
void pmf_flow_item_acked(struct pmf_flow *f, struct pmf_item *item, enum pmf_flow_queue q);
void pmf_flow_credit_raise(struct pmf_flow *f, uint64_t limit);

#endif
