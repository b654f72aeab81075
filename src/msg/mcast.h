/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Multicast: memberships of endpoints in groups, as fabric makes them. A group is an IP address and
 * a UDP port. Messages to it are single datagrams, best effort, that no flow has to do with.
 * Control path.
 */
#ifndef PMF_MSG_MCAST_H
#define PMF_MSG_MCAST_H

#include <rdma/fi_cm.h>

#include "completion/eq.h"
#include "msg/ep.h"

#define PMF_MC_PORT 28781 /* of a group whose address says none: "pm" */

struct pmf_mc;

struct pmf_mc_attr {
	struct pmf_addr group;
	bool send, recv;
	struct fid_mc *fid; /* gets its fi_addr when the join is complete */
	struct pmf_eq *eq;  /* of the event that says so */
};

/**
 * Begin to join; ends in FI_JOIN_COMPLETE, or in an error event: ETIMEDOUT when the link has not
 * come up within FI_PMF_PEER_TIMEOUT_MS.
 * @return 0; -EHOSTUNREACH no address of that family; -ENOSPC too many groups; -ENOMEM
 */
int pmf_mc_join(struct pmf_ep *ep, const struct pmf_mc_attr *attr, struct pmf_mc **out);

/** Leave, and free it: what has been posted to it has gone, or ended in an error. */
void pmf_mc_leave(struct pmf_mc *mc);

#endif
