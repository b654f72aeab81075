/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the files of multicast share: the table of groups and its timers (mcast.c), the frames of
 * IGMP and MLD (igmp.c, mld.c), the device's filter (mcast_filter.c).
 */
#ifndef PMF_PMD_MCAST_INTERNAL_H
#define PMF_PMD_MCAST_INTERNAL_H

#include <stdatomic.h>

#include "pmd_glue/internal.h"
#include "pmd_glue/mcast.h"

enum {
	PMF_MCAST_SOURCES = 8, /* of one query; of more than that the whole group is told */
	PMF_MCAST_RECS = 32,   /* in one report: never longer than the least MTU */
	IPPROTO_V4_IGMP = 2,
	IPPROTO_V6_HOP = 0,
};

/* Types of a group record; the same in both protocols (RFC 3376 §4.2.12, RFC 3810 §5.2.12). */
enum {
	PMF_MCAST_IS_IN = 1,
	PMF_MCAST_IS_EX = 2,
	PMF_MCAST_TO_IN = 3,
	PMF_MCAST_TO_EX = 4,
};

struct pmf_mcast_rec {
	uint8_t type;
	uint8_t nsrc;
	const uint8_t *ip; /* 16 bytes, as all addresses here */
	const uint8_t (*src)[16];
};

/* Versions are counted as IGMP does: MLDv2 is 3, MLDv1 is 2. */
struct pmf_mcast_query {
	bool v6;
	uint8_t version;
	uint8_t robustness; /* 0: not said */
	bool general;
	uint8_t ip[16];
	uint16_t nsrc;	    /* bounded by the message's length */
	const uint8_t *src; /* 4 or 16 bytes each */
	pmf_ns_t max_delay;
};

struct pmf_mcast_group {
	uint8_t ip[16];
	uint32_t refs; /* 0: only its last reports keep it */
	uint16_t next; /* in its bucket or among the free ones: index + 1 */
	uint8_t left;  /* state-change reports still to be sent */
	uint8_t nsrc;  /* that the pending answer is about; 0: the whole group */
	bool used;
	pmf_ns_t answer_due;
	uint8_t src[PMF_MCAST_SOURCES][16];
};

/* One for IGMP, one for MLD. */
struct pmf_mcast_family {
	uint8_t version;     /* in which reports are made */
	uint8_t robustness;  /* how often a change is told */
	pmf_ns_t old_until;  /* an older querier counts as present */
	pmf_ns_t answer_due; /* to a general query */
};

struct pmf_mcast {
	struct pmf_mcast_family fam[2]; /* [v6] */
	pmf_ns_t change_due;		/* the next state-change report */
	pmf_ns_t group_due;		/* no group's answer is due earlier */
	uint64_t random;
	uint16_t top; /* groups below it have been used */
	uint16_t free_head;
	_Atomic bool filtered;	  /* the device has the list; written by the helper thread */
	_Atomic uint32_t wanted;  /* changes so far; written by the owner of queue 0 */
	_Atomic uint32_t applied; /* of which the device knows; written by the helper thread */
	uint16_t bucket[PMF_MCAST_MAX];
	struct pmf_mcast_group g[PMF_MCAST_MAX];
};

/** With the groups that the port itself is in: those by which neighbours ask for its addresses. */
struct pmf_mcast *pmf_mcast_open(const struct pmf_port *port);
void pmf_mcast_close(struct pmf_mcast *mc);

/** @return the index of @p ip, if somebody is in it; -1. Any engine. */
int pmf_mcast_find(const struct pmf_mcast *mc, const uint8_t ip[16]);

/** The link came up: what is behind it knows nothing. */
void pmf_mcast_announce(struct pmf_queue *q, pmf_ns_t now);
void pmf_mcast_tick(struct pmf_queue *q, pmf_ns_t now);
/** A query, well formed. */
void pmf_mcast_queried(struct pmf_queue *q, const struct pmf_mcast_query *query, pmf_ns_t now);

/** The MAC address of a group (RFC 1112 §6.4, RFC 2464 §7). */
void pmf_mcast_mac(const uint8_t ip[16], uint8_t mac[6]);

/* igmp.c, mld.c: one frame each, staged. */
void pmf_igmp_report(struct pmf_queue *q, const struct pmf_mcast_rec *recs, unsigned int n);
void pmf_mld_report(struct pmf_queue *q, const struct pmf_mcast_rec *recs, unsigned int n);
/** In the manner of the older @p version: a report, or a leave, which version 1 does not have. */
void pmf_igmp_old(struct pmf_queue *q, uint8_t version, bool leave, const uint8_t ip[16]);
void pmf_mld_old(struct pmf_queue *q, bool leave, const uint8_t ip[16]);

/* Take the mbuf. IGMP's message has @p len bytes at @p l4; behind IPv6's header come @p len. */
void pmf_igmp_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t l4, uint16_t len,
		 pmf_ns_t now);
void pmf_mld_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, uint16_t len, pmf_ns_t now);

/** Have the device let in what is joined, or everything. Helper thread, no engine runs. */
void pmf_mcast_filter_start(struct pmf_port *port);
/** The same while engines run, if anything has changed. Helper thread. */
void pmf_mcast_filter_service(struct pmf_port *port, void (*quiesce)(void *),
			      void (*resume)(void *), void *arg);

#endif
