/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The multicast groups of a port: which ones its device lets in, and what switches and routers are
 * told of them (IGMPv3, RFC 3376; MLDv2, RFC 3810). Memberships are counted. Owner of queue 0's
 * engine, unless said otherwise; while groups change, no other engine of the port runs a pass.
 */
#ifndef PMF_PMD_MCAST_H
#define PMF_PMD_MCAST_H

#include "pmd_glue/frame.h"

#define PMF_MCAST_MAX 1024 /* groups of one port */

/** @return whether @p ip (16 bytes) names a group that frames can be sent to. */
bool pmf_mcast_is_group(const uint8_t ip[16]);

/**
 * Join, once more if it is joined. The first time a report goes out, or waits for the link.
 * @return the group's index, as in pmf_frame; -ENETUNREACH: the port has no address of the family;
 *         -ENOSPC
 */
int pmf_mcast_join(struct pmf_queue *q, const uint8_t ip[16], pmf_ns_t now);

/** The last one to leave tells the switches, now and once more; the frames are staged. */
void pmf_mcast_leave(struct pmf_queue *q, uint16_t group, pmf_ns_t now);

/** @return whether anybody in this process is in the group. Owner of any engine of the port. */
bool pmf_mcast_joined(const struct pmf_port *port, const uint8_t ip[16]);

/** @return whether the device lets in all that is joined. Changed by the helper thread. */
bool pmf_mcast_ready(const struct pmf_port *port);

/** @return whether reports are still to be sent for groups that nobody is in any more. */
bool pmf_mcast_leaving(const struct pmf_port *port);

/**
 * Headers towards @p group and its port, for pmf_frame_send_group(); @p hops is the TTL.
 * @return 0; -ENETUNREACH: no group, or no address of its family
 */
int pmf_path_init_group(struct pmf_path *path, struct pmf_port *port, const struct pmf_addr *group,
			uint16_t sport, uint8_t hops);

/**
 * pmf_frame_send() to a group.
 * @param here  somebody in this process has joined it, too: a copy takes the loop rings, unless the
 *              device itself gives the frame back
 */
void pmf_frame_send_group(struct pmf_queue *q, const struct pmf_path *path, struct rte_mbuf *m,
			  uint16_t len, bool here);

#endif
