/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections of FI_EP_MSG endpoints: what fabric calls. A listener is a passive endpoint that
 * takes requests; a connection is one flow, which begins with a CONNREQ record and ends with CLOSE.
 * Control path.
 */
#ifndef PMF_MSG_CM_H
#define PMF_MSG_CM_H

#include "completion/eq.h"
#include "msg/ep.h"

#define PMF_CM_DATA PMF_WIRE_CM_DATA /* FI_OPT_CM_DATA_SIZE */
#define PMF_CM_EVENTS 2		     /* that a connection has at most: it stands, and it ends */
#define PMF_BACKLOG 4096 /* requests that wait for accept or reject, unless FI_BACKLOG says */

struct pmf_connreq; /* a request as fi_info->handle names it */

/** Where events of @p ep go, as what object's, from now on; before it is enabled. */
void pmf_cm_set_eq(struct pmf_ep *ep, struct pmf_eq *eq, struct fid *fid);

/**
 * A passive endpoint takes requests from now on. @p info, its address in it, is kept and copied
 * into events.
 * @return 0, -EADDRINUSE, -EOPBADSTATE it does so already
 */
int pmf_cm_listen(struct pmf_ep *ep, const struct fi_info *info);
void pmf_cm_backlog(struct pmf_ep *ep, uint32_t backlog);

/**
 * Ask the listener at @p peer for a connection; once in the endpoint's life. Ends in FI_CONNECTED,
 * or in an error event: ECONNREFUSED, or ETIMEDOUT without an answer for twice
 * FI_PMF_PEER_TIMEOUT_MS.
 * @return 0; -EOPBADSTATE connected before; -EHOSTUNREACH, -ENOMEM
 */
int pmf_cm_connect(struct pmf_ep *ep, const struct pmf_addr *peer, const void *data, size_t len);

/** The request that @p handle names, for one endpoint alone. NULL: none, used up or gone with its
 * listener. */
struct pmf_connreq *pmf_connreq_take(fid_t handle);
/** @p ep, not enabled yet, is for the request, which it takes over with its listener's address.
 * -EINVAL: of another port than the endpoint's domain; the request is refused. */
int pmf_cm_adopt(struct pmf_ep *ep, struct pmf_connreq *req);
/** @return 0: connected; -EINVAL no request; -EOPBADSTATE a second time; -ECONNABORTED the other
 * side has gone */
int pmf_cm_accept(struct pmf_ep *ep, const void *data, size_t len);
void pmf_cm_reject(struct pmf_connreq *req, const void *data, size_t len);

/** End the connection. @return 0; -ENOTCONN it never stood */
int pmf_cm_shutdown(struct pmf_ep *ep);

/** @return 0: the peer's address; -ENOTCONN */
int pmf_cm_peer(struct pmf_ep *ep, struct pmf_addr *out);

/* calls_eq.c: which engines reading an event queue drives; counted. -ENOMEM */
int pmf_eq_drive(struct pmf_eq *eq, struct pmf_progress *p);
void pmf_eq_undrive(struct pmf_eq *eq, struct pmf_progress *p);

#endif
