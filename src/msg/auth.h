/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Authorization keys as an engine uses them: a ring of keys for each endpoint that has some, and
 * the file whose keys roll. Rings are the engine owner's.
 */
#ifndef PMF_MSG_AUTH_H
#define PMF_MSG_AUTH_H

#include "msg/engine.h"
#include "seal/seal.h"

/* One ring; kept by its endpoints and flows. */
struct pmf_auth {
	struct pmf_keyring *ring;
	uint16_t number; /* of its key in the address vector; 0: it is not from there */
	uint32_t refs;
	bool file;		    /* its keys are those of the file */
	TAILQ_ENTRY(pmf_auth) link; /* engine->auths */
};

/**
 * A ring of @p keys; NULL: of those in the file, which roll. Takes the owner word.
 * @return 0; -EINVAL, -EEXIST as pmf_keyring_open(); -ENOMEM
 */
int pmf_auth_open(struct pmf_engine *e, const struct pmf_key_list *keys, uint16_t number,
		  struct pmf_auth **out);
/** Owner only. */
void pmf_auth_put(struct pmf_engine *e, struct pmf_auth *a);

/* ---- the file; see also pmf_keyfile_load() in stack.h ---- */

/** Helper thread: read the keys again if the file has changed. @return a number that says which
 * they are */
uint32_t pmf_keyfile_look(const struct pmf_conf *conf);
/** Owner only: the engine's rings of the file have its keys from now on. */
void pmf_auth_roll(struct pmf_engine *e);

/* ---- packets; owner only. What is not taken is counted ---- */

/** A packet of a flow, that has a key or is sealed. @return whether it may be looked at */
bool pmf_auth_flow_rx(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_frame *f,
		      const struct pmf_hdr *hdr, pmf_ns_t now);

/**
 * Who sent this HELLO: under which ring of @p ep, or without an endpoint of the engine, its tag is
 * right.
 * @param auth  set on true; NULL: without a key, and none is wanted
 */
bool pmf_auth_hello(struct pmf_engine *e, const struct pmf_ep *ep, const struct pmf_frame *f,
		    const struct pmf_hdr *hdr, struct pmf_auth **auth);

/** Is this CHALLENGE or RESET of whom it should be? @p auth NULL: without a key */
bool pmf_auth_contact(struct pmf_engine *e, const struct pmf_auth *auth, const struct pmf_frame *f,
		      const struct pmf_hdr *hdr);

/** A ring of the engine that has the key with this id, or NULL. */
struct pmf_auth *pmf_auth_any(struct pmf_engine *e, uint16_t key);

/** The ring by whose key @p hdr says to be sealed, unproven. @return false: there is none, or one
 * is wanted */
bool pmf_auth_find(const struct pmf_ep *ep, const struct pmf_hdr *hdr, struct pmf_auth **auth);

/** The ring by which @p ep talks to peers under the key of this number; NULL: without one. @return
 * false: it has not got that key */
bool pmf_auth_of(const struct pmf_ep *ep, uint16_t number, struct pmf_auth **auth);

/**
 * An OPEN with a good cookie.
 * @param ef     its flow, or NULL: one is to be made, and takes *fresh by pmf_auth_adopt()
 * @param inc    of the local endpoint
 * @return whether it may be looked at
 */
bool pmf_auth_open_rx(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_auth *auth,
		      const struct pmf_frame *f, const struct pmf_hdr *hdr, uint64_t inc,
		      struct pmf_seal **fresh);
void pmf_auth_adopt(struct pmf_eflow *ef, struct pmf_seal *fresh);

/** A flow begins: it gets a seal if it has a ring. @return false: no memory */
bool pmf_auth_begin(struct pmf_engine *e, struct pmf_eflow *ef, struct pmf_auth *auth);
void pmf_auth_end(struct pmf_engine *e, struct pmf_eflow *ef);
/** The flow may have learnt who its peer is. It dies without memory for its keys. */
void pmf_auth_bind(struct pmf_eflow *ef);

/** What pmf_flow_tx() made for a flow with a seal. @return bytes; 0: cannot be sent */
static inline size_t pmf_auth_tx(struct pmf_eflow *ef, uint8_t *p, size_t len)
{
	return len ? pmf_seal_tx(ef->seal, &ef->flow, p, len) : 0;
}

#endif
