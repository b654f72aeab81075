/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What is used of libcrypto: HKDF and HMAC with SHA-256, AES-GCM. Contexts are made on the control
 * path; a packet costs update calls only. A context is used by one thread at a time.
 */
#ifndef PMF_SEAL_CRYPT_H
#define PMF_SEAL_CRYPT_H

#include "pmf_common.h"

#define PMF_CRYPT_HASH 32 /* bytes of SHA-256 */
#define PMF_CRYPT_TAG 16
#define PMF_CRYPT_IV 12

/**
 * Fetch the algorithms; again does nothing. Any thread. To be called before the process's own
 * atexit(3), so that libcrypto outlives the threads that are stopped there.
 * @return 0; -ENOSYS libcrypto lacks them
 */
int pmf_crypt_init(void);

/** HKDF (RFC 5869) of two steps. @return 0; -ENOMEM */
int pmf_hkdf_extract(const void *salt, size_t salt_len, const void *ikm, size_t ikm_len,
		     uint8_t prk[PMF_CRYPT_HASH]);
int pmf_hkdf_expand(const uint8_t *prk, size_t prk_len, const void *info, size_t info_len,
		    uint8_t *out, size_t len);

/* HMAC (RFC 2104), truncated to PMF_CRYPT_TAG. */
struct pmf_hmac;
struct pmf_hmac *pmf_hmac_open(const uint8_t *key, size_t len);
void pmf_hmac_close(struct pmf_hmac *h);
/** Of two pieces. @return false: libcrypto failed */
bool pmf_hmac_tag(struct pmf_hmac *h, const void *a, size_t a_len, const void *b, size_t b_len,
		  uint8_t tag[PMF_CRYPT_TAG]);

/* AES-GCM (NIST SP 800-38D) in one direction, under one key of 16 or 32 bytes. */
struct pmf_gcm;
/** @param seals  for sealing, else for opening. @return NULL: no memory, or no such key */
struct pmf_gcm *pmf_gcm_open(const uint8_t *key, size_t len, bool seals);
void pmf_gcm_close(struct pmf_gcm *g);
/** Encrypt @p text in place; @p tag covers it and @p aad. @return false: libcrypto failed */
bool pmf_gcm_seal(struct pmf_gcm *g, const uint8_t iv[PMF_CRYPT_IV], const void *aad,
		  size_t aad_len, uint8_t *text, size_t len, uint8_t tag[PMF_CRYPT_TAG]);
/** Decrypt @p text in place. @return whether the tag is right; if not, @p text is garbage */
bool pmf_gcm_unseal(struct pmf_gcm *g, const uint8_t iv[PMF_CRYPT_IV], const void *aad,
		    size_t aad_len, uint8_t *text, size_t len, const uint8_t tag[PMF_CRYPT_TAG]);

/** Compare in a time that tells nothing. */
bool pmf_tag_equal(const uint8_t *a, const uint8_t *b);
/** Overwrite what is secret. */
void pmf_wipe(void *p, size_t len);

#endif
