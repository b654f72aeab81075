/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A connection as the engine keeps it, beside its flow; engine owner only. Shared by cm.c,
 * engine_cm.c and cm_event.c.
 */
#ifndef PMF_MSG_CM_STATE_H
#define PMF_MSG_CM_STATE_H

#include "msg/cm.h"
#include "msg/engine.h"

enum pmf_cm_state {
	PMF_CM_OPENING,	   /* at a listener: has not brought its request yet */
	PMF_CM_CONNECTING, /* our request is out */
	PMF_CM_REQUESTED,  /* its request waits for accept or reject */
	PMF_CM_CONNECTED,
	PMF_CM_REFUSING, /* REJECT is under way, then the flow is freed */
	PMF_CM_CLOSING,	 /* nothing more from us but what was injected, then CLOSE, then it is freed
			  */
	PMF_CM_OVER,	 /* the peer's REJECT or CLOSE has come */
	PMF_CM_STATES
};

struct pmf_cm {
	uint8_t state;
	uint8_t reason;	  /* of the peer's REJECT */
	bool timed;	  /* on engine->cms */
	bool closing_out; /* CLOSE is in the flow */
	bool acked;	  /* REJECT, or CLOSE, has arrived */
	pmf_ns_t deadline;
	pmf_ns_t seen;		  /* the last look at the deadline; 0: none yet */
	TAILQ_ENTRY(pmf_cm) link; /* engine->cms: with a deadline */
	struct pmf_eflow *ef;
	struct pmf_connreq *req;
	struct pmf_item item;  /* CONNREQ, ACCEPT or REJECT */
	struct pmf_item close; /* CLOSE */
	uint16_t out_len, in_len;
	uint8_t out[PMF_CM_DATA]; /* the item's bytes */
	uint8_t in[PMF_CM_DATA];  /* of REJECT */
};

/* What fi_info->handle points to. It outlives its flow until an endpoint or fi_reject takes it. */
struct pmf_connreq {
	struct fid fid;
	struct pmf_engine *engine;
	struct pmf_ep *listener; /* NULL once taken */
	struct pmf_cm *cm;	 /* NULL: the other side has gone. The owner word */
	bool taken;
	TAILQ_ENTRY(pmf_connreq) link; /* all of the process; a lock of cm.c's */
};

/* cm.c */
struct pmf_connreq *pmf_connreq_new(struct pmf_ep *listener, struct pmf_cm *cm);
void pmf_connreq_free(struct pmf_connreq *req);
/** The listener closes: what nobody has taken is forgotten. */
void pmf_connreq_forget(struct pmf_ep *listener);

/* engine_cm.c */
void pmf_cm_step(struct pmf_engine *e, struct pmf_cm *cm, enum pmf_cm_state to, pmf_ns_t deadline);
void pmf_cm_refuse(struct pmf_engine *e, struct pmf_cm *cm, enum pmf_reason reason,
		   const void *data, size_t len, pmf_ns_t now);
void pmf_cm_send(struct pmf_cm *cm, enum pmf_item_kind kind, enum pmf_reason reason,
		 const void *data, size_t len);
/** Nothing more from our side: CLOSE goes now or when what was injected has arrived. */
void pmf_cm_close(struct pmf_engine *e, struct pmf_cm *cm, pmf_ns_t now);
/** Receives of an endpoint whose connection is over end in FI_ECANCELED. */
void pmf_cm_ended(struct pmf_ep *ep);

/* cm_event.c; any of these may come to nothing for want of memory, which is counted */
void pmf_cm_event(struct pmf_engine *e, struct pmf_ep *ep, uint32_t event, const void *data,
		  size_t len);
void pmf_cm_error(struct pmf_engine *e, struct pmf_ep *ep, int err, const void *data, size_t len);
/** @return 0, -ENOMEM */
int pmf_cm_request(struct pmf_ep *listener, struct pmf_connreq *req, const struct pmf_addr *peer,
		   const void *data, size_t len);

#endif
