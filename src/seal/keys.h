/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Authorization keys: a ring of them, of which the first sends and all are accepted, and the text
 * they stand in. Not locked: an engine's rings are its owner's.
 */
#ifndef PMF_SEAL_KEYS_H
#define PMF_SEAL_KEYS_H

#include "seal/crypt.h"

#define PMF_KEYS_MAX 8	     /* in one ring */
#define PMF_KEY_SIZE_MAX 256 /* bytes of one key */

/* A key as it was given. */
struct pmf_key_bytes {
	uint16_t len;
	uint8_t bytes[PMF_KEY_SIZE_MAX];
};

/* Several, in the order in which they were given. */
struct pmf_key_list {
	unsigned int n;
	struct pmf_key_bytes key[PMF_KEYS_MAX];
};

/* A key made ready: what is derived from it, and the id by which packets name it. */
struct pmf_key {
	uint16_t id; /* not 0 */
	uint8_t prk[PMF_CRYPT_HASH];
	struct pmf_hmac *contact; /* of packets outside flows */
};

struct pmf_keyring {
	bool encrypt; /* else packets are authenticated only */
	unsigned int n;
	struct pmf_key *key[PMF_KEYS_MAX];
};

/**
 * Read keys: one a line, in hexadecimal; empty lines and those that begin with # do not count. Each
 * line ends in a newline, so that a file that is not whole yet is told.
 * @return 0; -EINVAL with a sentence in @p err that names the line; @p out is written in any case
 */
int pmf_keys_parse(const char *text, struct pmf_key_list *out, char *err, size_t errlen);

/** @return 0; -EINVAL none, or one without bytes; -EEXIST two with the same id; -ENOMEM */
int pmf_keyring_open(const struct pmf_key_list *keys, bool encrypt, struct pmf_keyring **out);
void pmf_keyring_close(struct pmf_keyring *r);

/**
 * Other keys from now on; those that stay are the same objects. What goes is left in @p gone for
 * pmf_keyring_drop(), when nobody uses it any more.
 * @return as pmf_keyring_open(), or -EALREADY: they are its keys; on failure the ring is as it was
 */
int pmf_keyring_change(struct pmf_keyring *r, const struct pmf_key_list *keys,
		       struct pmf_keyring *gone);
void pmf_keyring_drop(struct pmf_keyring *gone);

/** @return the key that packets name @p id, or NULL */
static inline struct pmf_key *pmf_keyring_find(const struct pmf_keyring *r, uint16_t id)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (r->key[i]->id == id)
			return r->key[i];
	return NULL;
}

#endif
