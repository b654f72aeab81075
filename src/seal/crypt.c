/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * libcrypto, with a library context of its own: neither the host program's configuration nor its
 * providers change what is computed here.
 */
#include "seal/crypt.h"

#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
	pthread_once_t once;
	bool ready;
	OSSL_LIB_CTX *lib;
	EVP_CIPHER *gcm128, *gcm256;
	EVP_KDF *hkdf;
	EVP_MAC *hmac;
} c = {.once = PTHREAD_ONCE_INIT};

static char sha256[] = "SHA256"; /* not const: parameters take it so */

static void fetch(void)
{
	c.lib = OSSL_LIB_CTX_new();
	if (!c.lib)
		return;
	c.gcm128 = EVP_CIPHER_fetch(c.lib, "AES-128-GCM", NULL);
	c.gcm256 = EVP_CIPHER_fetch(c.lib, "AES-256-GCM", NULL);
	c.hkdf = EVP_KDF_fetch(c.lib, "HKDF", NULL);
	c.hmac = EVP_MAC_fetch(c.lib, "HMAC", NULL);
	c.ready = c.gcm128 && c.gcm256 && c.hkdf && c.hmac;
}

int pmf_crypt_init(void)
{
	pthread_once(&c.once, fetch);
	return c.ready ? 0 : -ENOSYS;
}

/* ---- HKDF ---- */

static void param_bytes(OSSL_PARAM *p, const char *name, const void *bytes, size_t len)
{
	*p = OSSL_PARAM_construct_octet_string(name, (void *)(uintptr_t)bytes, len);
}

static int hkdf(int mode, const void *key, size_t key_len, const char *name, const void *bytes,
		size_t bytes_len, uint8_t *out, size_t len)
{
	OSSL_PARAM p[5];
	EVP_KDF_CTX *ctx;
	int ok;

	if (pmf_crypt_init())
		return -ENOSYS;
	ctx = EVP_KDF_CTX_new(c.hkdf);
	if (!ctx)
		return -ENOMEM;
	p[0] = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	p[1] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, sha256, 0);
	param_bytes(&p[2], OSSL_KDF_PARAM_KEY, key, key_len);
	param_bytes(&p[3], name, bytes, bytes_len);
	p[4] = OSSL_PARAM_construct_end();
	ok = EVP_KDF_derive(ctx, out, len, p);
	EVP_KDF_CTX_free(ctx);
	return ok > 0 ? 0 : -ENOMEM;
}

int pmf_hkdf_extract(const void *salt, size_t salt_len, const void *ikm, size_t ikm_len,
		     uint8_t prk[PMF_CRYPT_HASH])
{
	return hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, ikm, ikm_len, OSSL_KDF_PARAM_SALT, salt,
		    salt_len, prk, PMF_CRYPT_HASH);
}

int pmf_hkdf_expand(const uint8_t *prk, size_t prk_len, const void *info, size_t info_len,
		    uint8_t *out, size_t len)
{
	return hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, prk, prk_len, OSSL_KDF_PARAM_INFO, info,
		    info_len, out, len);
}

/* ---- HMAC ---- */

struct pmf_hmac {
	EVP_MAC_CTX *ctx;
};

struct pmf_hmac *pmf_hmac_open(const uint8_t *key, size_t len)
{
	struct pmf_hmac *h = calloc(1, sizeof(*h));
	OSSL_PARAM p[2];

	if (!h || pmf_crypt_init())
		goto failed;
	p[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0);
	p[1] = OSSL_PARAM_construct_end();
	h->ctx = EVP_MAC_CTX_new(c.hmac);
	if (h->ctx && EVP_MAC_init(h->ctx, key, len, p))
		return h;
failed:
	pmf_hmac_close(h);
	return NULL;
}

void pmf_hmac_close(struct pmf_hmac *h)
{
	if (h)
		EVP_MAC_CTX_free(h->ctx);
	free(h);
}

bool pmf_hmac_tag(struct pmf_hmac *h, const void *a, size_t a_len, const void *b, size_t b_len,
		  uint8_t tag[PMF_CRYPT_TAG])
{
	uint8_t hash[PMF_CRYPT_HASH];
	size_t n = 0;

	/* Without a key: the one it was opened with, from the start. */
	if (!EVP_MAC_init(h->ctx, NULL, 0, NULL) || !EVP_MAC_update(h->ctx, a, a_len) ||
	    !EVP_MAC_update(h->ctx, b, b_len) || !EVP_MAC_final(h->ctx, hash, &n, sizeof(hash)) ||
	    n != sizeof(hash))
		return false;
	memcpy(tag, hash, PMF_CRYPT_TAG);
	return true;
}

/* ---- AES-GCM ---- */

struct pmf_gcm {
	EVP_CIPHER_CTX *ctx;
};

struct pmf_gcm *pmf_gcm_open(const uint8_t *key, size_t len, bool seals)
{
	struct pmf_gcm *g = calloc(1, sizeof(*g));
	const EVP_CIPHER *cipher;

	if (!g || pmf_crypt_init() || (len != 16 && len != 32))
		goto failed;
	cipher = len == 16 ? c.gcm128 : c.gcm256;
	g->ctx = EVP_CIPHER_CTX_new();
	if (g->ctx && EVP_CipherInit_ex2(g->ctx, cipher, key, NULL, seals, NULL))
		return g;
failed:
	pmf_gcm_close(g);
	return NULL;
}

void pmf_gcm_close(struct pmf_gcm *g)
{
	if (g)
		EVP_CIPHER_CTX_free(g->ctx);
	free(g);
}

static bool begin(struct pmf_gcm *g, const uint8_t *iv, const void *aad, size_t aad_len,
		  uint8_t *text, size_t len)
{
	int n;

	return aad_len <= INT_MAX && len <= INT_MAX &&
	       EVP_CipherInit_ex2(g->ctx, NULL, NULL, iv, -1, NULL) &&
	       EVP_CipherUpdate(g->ctx, NULL, &n, aad, (int)aad_len) &&
	       (len == 0 || EVP_CipherUpdate(g->ctx, text, &n, text, (int)len));
}

bool pmf_gcm_seal(struct pmf_gcm *g, const uint8_t iv[PMF_CRYPT_IV], const void *aad,
		  size_t aad_len, uint8_t *text, size_t len, uint8_t tag[PMF_CRYPT_TAG])
{
	uint8_t none[16];
	int n;

	return begin(g, iv, aad, aad_len, text, len) && EVP_CipherFinal_ex(g->ctx, none, &n) &&
	       EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_GET_TAG, PMF_CRYPT_TAG, tag) > 0;
}

bool pmf_gcm_unseal(struct pmf_gcm *g, const uint8_t iv[PMF_CRYPT_IV], const void *aad,
		    size_t aad_len, uint8_t *text, size_t len, const uint8_t tag[PMF_CRYPT_TAG])
{
	uint8_t none[16];
	int n;

	return begin(g, iv, aad, aad_len, text, len) &&
	       EVP_CIPHER_CTX_ctrl(g->ctx, EVP_CTRL_AEAD_SET_TAG, PMF_CRYPT_TAG,
				   (void *)(uintptr_t)tag) > 0 &&
	       EVP_CipherFinal_ex(g->ctx, none, &n) > 0;
}

bool pmf_tag_equal(const uint8_t *a, const uint8_t *b)
{
	return CRYPTO_memcmp(a, b, PMF_CRYPT_TAG) == 0;
}

void pmf_wipe(void *p, size_t len)
{
	OPENSSL_cleanse(p, len);
}
