/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Keys and rings. The id of a key is derived from it, so that nobody has to number keys; and the
 * mode is part of the derivation, so that who encrypts and who does not have different keys.
 */
#include "seal/keys.h"

#include <stdio.h>
#include <stdlib.h>

static const char salt_tag[] = "pmf 2 authenticate", salt_encrypt[] = "pmf 2 encrypt";
static const char info_id[] = "id", info_contact[] = "contact";

/* ---- text ---- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* @return 0, or why not */
static const char *parse_line(const char *p, size_t len, struct pmf_key_bytes *out)
{
	if (len % 2)
		return "an odd number of digits";
	if (len / 2 > PMF_KEY_SIZE_MAX)
		return "longer than 256 bytes";
	for (size_t i = 0; i < len; i += 2) {
		int high = digit(p[i]), low = digit(p[i + 1]);

		if (high < 0 || low < 0)
			return "not hexadecimal";
		out->bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	out->len = (uint16_t)(len / 2);
	return NULL;
}

int pmf_keys_parse(const char *text, struct pmf_key_list *out, char *err, size_t errlen)
{
	unsigned int line = 0;

	out->n = 0;
	for (const char *p = text; *p; p += strcspn(p, "\n") + 1) {
		size_t len = strcspn(p, "\n"), n;
		const char *why = NULL;

		line++;
		if (p[len] != '\n')
			why = "it does not end in a newline: is it being written?";
		p += strspn(p, " \t");
		n = strcspn(p, " \t\r\n");
		if (!why && (n == 0 || *p == '#'))
			continue;
		if (!why && out->n == PMF_KEYS_MAX)
			why = "more than 8 keys";
		if (!why)
			why = parse_line(p, n, &out->key[out->n]);
		if (why) {
			snprintf(err, errlen, "line %u: %s", line, why);
			return -EINVAL;
		}
		out->n++;
	}
	if (out->n)
		return 0;
	snprintf(err, errlen, "no key in it");
	return -EINVAL;
}

/* ---- a key ---- */

static void key_close(struct pmf_key *k)
{
	pmf_hmac_close(k->contact);
	pmf_wipe(k, sizeof(*k));
	free(k);
}

static int key_open(const struct pmf_key_bytes *b, bool encrypt, struct pmf_key **out)
{
	const char *salt = encrypt ? salt_encrypt : salt_tag;
	struct pmf_key *k = calloc(1, sizeof(*k));
	uint8_t contact[PMF_CRYPT_HASH], id[2];
	int err = -ENOMEM;

	if (!k)
		return -ENOMEM;
	err = pmf_hkdf_extract(salt, strlen(salt), b->bytes, b->len, k->prk);
	if (!err)
		err = pmf_hkdf_expand(k->prk, sizeof(k->prk), info_id, strlen(info_id), id,
				      sizeof(id));
	if (!err)
		err = pmf_hkdf_expand(k->prk, sizeof(k->prk), info_contact, strlen(info_contact),
				      contact, sizeof(contact));
	if (!err) {
		k->contact = pmf_hmac_open(contact, sizeof(contact));
		err = k->contact ? 0 : -ENOMEM;
	}
	pmf_wipe(contact, sizeof(contact));
	if (err) {
		key_close(k);
		return err;
	}
	k->id = (uint16_t)(id[0] << 8 | id[1]);
	if (k->id == 0)
		k->id = 1;
	*out = k;
	return 0;
}

/* ---- rings ---- */

void pmf_keyring_drop(struct pmf_keyring *gone)
{
	for (unsigned int i = 0; i < gone->n; i++)
		key_close(gone->key[i]);
	gone->n = 0;
}

static int fill(struct pmf_keyring *r, const struct pmf_key_list *keys)
{
	if (keys->n == 0 || keys->n > PMF_KEYS_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < keys->n; i++) {
		struct pmf_key *k;
		int err;

		if (keys->key[i].len == 0 || keys->key[i].len > PMF_KEY_SIZE_MAX)
			return -EINVAL;
		err = key_open(&keys->key[i], r->encrypt, &k);
		if (err)
			return err;
		if (pmf_keyring_find(r, k->id)) {
			key_close(k);
			return -EEXIST;
		}
		r->key[r->n++] = k;
	}
	return 0;
}

int pmf_keyring_open(const struct pmf_key_list *keys, bool encrypt, struct pmf_keyring **out)
{
	struct pmf_keyring *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->encrypt = encrypt;
	err = fill(r, keys);
	if (err) {
		pmf_keyring_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void pmf_keyring_close(struct pmf_keyring *r)
{
	if (!r)
		return;
	pmf_keyring_drop(r);
	free(r);
}

static bool same_keys(const struct pmf_keyring *a, const struct pmf_keyring *b)
{
	for (unsigned int i = 0; i < a->n && i < b->n; i++)
		if (memcmp(a->key[i]->prk, b->key[i]->prk, PMF_CRYPT_HASH) != 0)
			return false;
	return a->n == b->n;
}

int pmf_keyring_change(struct pmf_keyring *r, const struct pmf_key_list *keys,
		       struct pmf_keyring *gone)
{
	struct pmf_keyring more = {.encrypt = r->encrypt};
	int err = fill(&more, keys);

	gone->n = 0;
	if (!err && same_keys(r, &more))
		err = -EALREADY;
	if (err) {
		pmf_keyring_drop(&more);
		return err;
	}
	for (unsigned int i = 0; i < r->n; i++) {
		struct pmf_key *old = r->key[i];
		unsigned int at = 0;

		while (at < more.n && memcmp(more.key[at]->prk, old->prk, sizeof(old->prk)) != 0)
			at++;
		if (at < more.n) {
			key_close(more.key[at]);
			more.key[at] = old;
		} else {
			gone->key[gone->n++] = old;
		}
	}
	*r = more;
	return 0;
}
