/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Sealing: the tag of every packet, and its encryption. Packets outside flows (hello, challenge,
 * reset) have an HMAC under a key of that purpose; those of flows AES-GCM under keys that are
 * derived for each flow and direction, with the transmission number as nonce. Owner of the engine.
 */
#ifndef PMF_SEAL_SEAL_H
#define PMF_SEAL_SEAL_H

#include "proto/flow.h"
#include "proto/replay.h"
#include "seal/keys.h"

/* Where a packet goes, as its IP and UDP headers say. */
struct pmf_seal_ends {
	uint8_t from[16], to[16];
	uint16_t to_port;
};

/* What becomes of a received packet. */
enum pmf_seal_verdict {
	PMF_SEAL_OK,
	PMF_SEAL_KEY,	/* under a key that is not taken here */
	PMF_SEAL_TAG,	/* its tag is wrong */
	PMF_SEAL_REPLAY /* it came before, or belongs to another life of the flow */
};

/* ---- outside flows ---- */

/**
 * Finish a packet of @p len bytes: key id and tag.
 * @param id   key to use; 0 or one that is gone: the one that sends
 * @return bytes with the tag, 0: libcrypto failed
 */
size_t pmf_seal_contact(const struct pmf_keyring *ring, uint16_t id,
			const struct pmf_seal_ends *ends, uint8_t *p, size_t len);
/** @param len  of the whole packet, that pmf_wire_get() has taken */
enum pmf_seal_verdict pmf_seal_contact_check(const struct pmf_keyring *ring,
					     const struct pmf_hdr *hdr,
					     const struct pmf_seal_ends *ends, const uint8_t *p,
					     size_t len);

/* ---- flows ---- */

/* Who sends, to whom: with the authorization key what a direction's keys come from. */
struct pmf_seal_way {
	struct pmf_seal_ends ends;
	uint64_t inc, peer_inc; /* of the sender, of the receiver */
	uint64_t conn;		/* chosen by the sender */
	uint64_t seed;		/* from the challenge that the sender answered first */
};

/* One direction under one authorization key. */
struct pmf_seal_keyed {
	const struct pmf_key *key; /* NULL: unused */
	struct pmf_gcm *gcm;
	uint8_t iv[PMF_CRYPT_IV];
};

struct pmf_seal {
	struct pmf_keyring *ring; /* kept */
	bool tx_known, rx_known;  /* the ways are */
	struct pmf_seal_way tx_way, rx_way;
	struct pmf_seal_keyed tx;		/* under the ring's first key */
	struct pmf_seal_keyed rx[PMF_KEYS_MAX]; /* under each key of the ring */
	struct pmf_replay replay;
};

/** @param ends  of what is sent. @return NULL: no memory */
struct pmf_seal *pmf_seal_open(struct pmf_keyring *ring, const struct pmf_seal_ends *ends);
void pmf_seal_close(struct pmf_seal *s);

/** The flow knows its peer, since it took a challenge or was accepted: its keys are made, once.
 * @return 0; -ENOMEM */
int pmf_seal_bind(struct pmf_seal *s, const struct pmf_flow *f);

/** Finish what pmf_flow_tx() has just made. @return bytes with the tag, 0: it cannot be sent */
size_t pmf_seal_tx(struct pmf_seal *s, const struct pmf_flow *f, uint8_t *p, size_t len);

/**
 * Check a packet with a sequence header of a flow that has heard its peer, and decrypt it in place.
 * @param len  of the whole packet, that pmf_wire_get() has taken
 */
enum pmf_seal_verdict pmf_seal_rx(struct pmf_seal *s, const struct pmf_hdr *hdr, uint8_t *p,
				  size_t len);
/**
 * The same for an OPEN. The first one makes the keys for what comes; whether it is of today is the
 * caller's to know: by its cookie, or by its seed.
 * @param ends  of what comes
 * @param inc   of the local endpoint
 */
enum pmf_seal_verdict pmf_seal_rx_open(struct pmf_seal *s, const struct pmf_hdr *hdr,
				       const struct pmf_seal_ends *ends, uint64_t inc, uint8_t *p,
				       size_t len);

/** The ring has other keys; those that are gone still exist. @return 0; -ENOMEM: it cannot go on */
int pmf_seal_roll(struct pmf_seal *s);

#endif
