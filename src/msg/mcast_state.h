/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Multicast as the engine keeps it; owner only. Shared by mcast.c and mcast_rx.c.
 */
#ifndef PMF_MSG_MCAST_STATE_H
#define PMF_MSG_MCAST_STATE_H

#include "msg/engine.h"
#include "msg/mcast.h"
#include "pmd_glue/mcast.h"

#define PMF_MC_SENDERS 4096 /* whose last message is remembered */

enum pmf_mc_state { PMF_MC_JOINING, PMF_MC_JOINED, PMF_MC_FAILED, PMF_MC_STATES };

/* One endpoint's membership. */
struct pmf_mc {
	struct pmf_ep *ep;
	struct pmf_mc_attr attr;
	uint8_t state;
	uint16_t slot; /* in ep->mc_slots */
	int group;     /* index in the port's table; -1: sends only */
	fi_addr_t fi_addr;
	pmf_ns_t deadline;
	TAILQ_ENTRY(pmf_mc) link; /* joining, or the group's members */
	struct pmf_path path;
};

TAILQ_HEAD(pmf_mcq, pmf_mc);

/* Key of the hash: compared as bytes. */
struct pmf_mc_key {
	struct pmf_addr sender, group;
};
static_assert(sizeof(struct pmf_mc_key) == 36, "hashed as words");

/* What was last heard of one sender in one group. */
struct pmf_mc_sender {
	TAILQ_ENTRY(pmf_mc_sender) link; /* the one heard last is last */
	struct pmf_mc_key key;
	uint64_t inc, seq; /* its life, and the number of its last message */
	uint64_t before;   /* the life before that */
};

/* Made by the first join. */
struct pmf_mcasts {
	struct pmf_mcq joining;
	struct pmf_mcq members[PMF_MCAST_MAX]; /* that receive; of one endpoint side by side */
	struct rte_hash *by_sender;
	TAILQ_HEAD(, pmf_mc_sender) senders;
	uint32_t nsenders;
	struct pmf_mc_sender sender[PMF_MC_SENDERS];
};

#endif
