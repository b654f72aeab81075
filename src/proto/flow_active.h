/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The active part of a flow: its windows, lent by the engine while something is in flight or ahead
 * of order. Private to proto.
 */
#ifndef PMF_PROTO_FLOW_ACTIVE_H
#define PMF_PROTO_FLOW_ACTIVE_H

#include "proto/flow.h"

#define PMF_PKT_NONE UINT16_MAX

enum pmf_pkt_state { PMF_PKT_FREE, PMF_PKT_SENT, PMF_PKT_LOST, PMF_PKT_SACKED };

/* A packet not acknowledged in order: the range of its queue from which it can be built again. */
struct pmf_txpkt {
	struct pmf_item *first;
	uint64_t off; /* of first, where the range begins */
	pmf_ns_t sent_at;
	uint64_t txno; /* latest transmission */
	uint32_t bytes;
	uint16_t size; /* of the records when first sent: they are never larger */
	uint8_t nrecs;
	uint8_t ends;	     /* items whose last record this is */
	uint16_t prev, next; /* slots, in order of transmission, or of loss */
	uint8_t state;
	uint8_t queue;
	uint8_t tries; /* transmissions, saturating */
};
static_assert(sizeof(struct pmf_txpkt) <= PMF_CACHE_LINE, "one line a packet");

struct pmf_pktlist {
	uint16_t head, tail;
};

struct pmf_flow_active {
	struct pmf_pktlist sent; /* in flight, in order of transmission */
	struct pmf_pktlist lost; /* to be sent again */
	uint32_t mask;		 /* window - 1 */
	uint32_t sack_from;	 /* slot offset at which the next list of ranges begins */
	pmf_ns_t *times;  /* when a transmission left, and its size, 2 × window; 0: not known */
	uint64_t *rx_map; /* a bit per packet ahead of order */
	uint64_t *tx_map; /* a bit per packet acknowledged selectively */
	struct pmf_txpkt pkt[] PMF_CACHE_ALIGNED;
};

static inline struct pmf_txpkt *pmf_pkt(struct pmf_flow_active *a, pmf_psn_t psn)
{
	return &a->pkt[psn & a->mask];
}

static inline bool pmf_map_test(const uint64_t *map, uint32_t slot)
{
	return map[slot >> 6] >> (slot & 63) & 1;
}

static inline void pmf_map_set(uint64_t *map, uint32_t slot)
{
	map[slot >> 6] |= 1ull << (slot & 63);
}

static inline void pmf_map_clear(uint64_t *map, uint32_t slot)
{
	map[slot >> 6] &= ~(1ull << (slot & 63));
}

static inline void pmf_pktlist_init(struct pmf_pktlist *l)
{
	l->head = l->tail = PMF_PKT_NONE;
}

static inline void pmf_pktlist_append(struct pmf_flow_active *a, struct pmf_pktlist *l,
				      struct pmf_txpkt *p)
{
	uint16_t slot = (uint16_t)(p - a->pkt);

	p->prev = l->tail;
	p->next = PMF_PKT_NONE;
	if (l->tail == PMF_PKT_NONE)
		l->head = slot;
	else
		a->pkt[l->tail].next = slot;
	l->tail = slot;
}

static inline void pmf_pktlist_remove(struct pmf_flow_active *a, struct pmf_pktlist *l,
				      struct pmf_txpkt *p)
{
	if (p->prev == PMF_PKT_NONE)
		l->head = p->next;
	else
		a->pkt[p->prev].next = p->next;
	if (p->next == PMF_PKT_NONE)
		l->tail = p->prev;
	else
		a->pkt[p->next].prev = p->prev;
}

/* An entry of times also tells how large the packet was, 0 for one without records. */
#define PMF_TIMES_SHIFT 58
#define PMF_TIMES_MASK ((1ull << PMF_TIMES_SHIFT) - 1)
static inline unsigned int pmf_times_class(uint32_t size)
{
	return size ? PMF_MIN(1 + size / 256, 63u) : 0;
}

/** Note when the transmission that is about to get txno_next leaves. */
static inline void pmf_times_set(struct pmf_flow_active *a, uint64_t txno, uint32_t size,
				 pmf_ns_t now)
{
	a->times[txno & (2 * (uint64_t)a->mask + 1)] =
		(uint64_t)pmf_times_class(size) << PMF_TIMES_SHIFT | now;
}

/** @return the entry of @p txno, 0 if that is not known any more */
static inline pmf_ns_t pmf_times_get(const struct pmf_flow_active *a, uint64_t txno, uint64_t next)
{
	return next - txno > 2 * (uint64_t)a->mask ? 0
						   : a->times[txno & (2 * (uint64_t)a->mask + 1)];
}

#endif
