/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Authorization keys of an address vector (FI_AV_AUTH_KEY). A key has a number, which stands in its
 * fi_addr_t and with each peer under it; an endpoint gets those that are there when it is enabled.
 */
#include <stdlib.h>

#include "fabric/auth.h"
#include "fabric/av.h"
#include "fabric/log.h"

int pmf_av_keys_open(struct pmf_av *av)
{
	if (!pmf_auth_of_av(av->domain->auth_key_size))
		return 0;
	av->keys = calloc(PMF_EP_KEYS, sizeof(*av->keys));
	return av->keys ? 0 : -FI_ENOMEM;
}

void pmf_av_keys_close(struct pmf_av *av)
{
	if (av->keys)
		pmf_wipe(av->keys, PMF_EP_KEYS * sizeof(*av->keys));
	free(av->keys);
}

static bool is_free(const struct pmf_av_key *k)
{
	return !k->refs && !k->eps && !k->peers;
}

static void wipe_unused(struct pmf_av_key *k)
{
	if (is_free(k))
		pmf_wipe(k, sizeof(*k));
}

/* ---- inserting ---- */

static bool same_bytes(const struct pmf_key_bytes *a, const struct pmf_key_bytes *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Packets name a key by 16 bits: could they tell these two apart? @return 0; -FI_EINVAL, -FI_ENOMEM
 */
static int check_apart(const struct pmf_av *av, const struct pmf_key_bytes *a,
		       const struct pmf_key_bytes *b)
{
	struct pmf_key_list both = {.n = 2, .key = {*a, *b}};
	struct pmf_keyring *r;
	int rc = pmf_keyring_open(&both, av->domain->conf->encrypt, &r);

	pmf_wipe(&both, sizeof(both));
	if (!rc)
		pmf_keyring_close(r);
	if (rc != -EEXIST)
		return rc;
	pmf_warn(AV, "fi_av_insert_auth_key: the key has the same id as another one: change it\n");
	return -FI_EINVAL;
}

/* The place of a key, its own or a free one. @return index; -FI_ENOSPC, or as check_apart() */
static int find_place(const struct pmf_av *av, const struct pmf_key_bytes *key)
{
	int place = -FI_ENOSPC;

	for (int i = 0; i < PMF_EP_KEYS; i++)
		if (!is_free(&av->keys[i]) && same_bytes(&av->keys[i].bytes, key))
			return i;
	for (int i = 0; i < PMF_EP_KEYS; i++) {
		int rc = is_free(&av->keys[i]) ? 0 : check_apart(av, &av->keys[i].bytes, key);

		if (rc)
			return rc;
		if (place < 0 && is_free(&av->keys[i]))
			place = i;
	}
	return place;
}

int pmf_av_insert_auth_key(struct fid_av *fid, const void *auth_key, size_t size,
			   fi_addr_t *fi_addr, uint64_t flags)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	struct pmf_key_bytes key = {0};
	int i;

	if (flags)
		return -FI_EBADFLAGS;
	if (!av->keys || !size || !fi_addr || pmf_auth_check(auth_key, size))
		return -FI_EINVAL;
	key.len = (uint16_t)size;
	memcpy(key.bytes, auth_key, size);
	pthread_mutex_lock(&av->lock);
	i = find_place(av, &key);
	if (i >= 0) {
		av->keys[i].bytes = key;
		av->keys[i].refs++;
		atomic_fetch_or(&av->peers->keys, 2u << i);
		*fi_addr = PMF_KEY_ADDR + (unsigned int)i + 1;
	}
	pthread_mutex_unlock(&av->lock);
	pmf_wipe(&key, sizeof(key));
	return PMF_MIN(i, 0);
}

/* ---- looking up, removing ---- */

int pmf_av_lookup_auth_key(struct fid_av *fid, fi_addr_t fi_addr, void *auth_key, size_t *size)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	const struct pmf_peer *peer;
	uint64_t number = 0;

	if (!av->keys || !size || (*size && !auth_key))
		return -FI_EINVAL;
	pthread_mutex_lock(&av->lock);
	peer = pmf_av_table_get(&av->table, fi_addr);
	if (peer)
		number = peer->key;
	else if (pmf_peers_have_key(av->peers, fi_addr))
		number = fi_addr - PMF_KEY_ADDR;
	if (number) {
		const struct pmf_key_bytes *key = &av->keys[number - 1].bytes;

		if (*size)
			memcpy(auth_key, key->bytes, PMF_MIN(*size, key->len));
		*size = key->len;
	}
	pthread_mutex_unlock(&av->lock);
	return number ? 0 : -FI_EINVAL;
}

int pmf_av_remove_auth_key(struct pmf_av *av, fi_addr_t fi_addr)
{
	uint64_t number = fi_addr - PMF_KEY_ADDR;
	struct pmf_av_key *k;

	if (!pmf_peers_have_key(av->peers, fi_addr))
		return -FI_EINVAL;
	k = &av->keys[number - 1];
	if (k->refs == 1 && k->eps)
		return -FI_EBUSY;
	if (--k->refs)
		return 0;
	atomic_fetch_and(&av->peers->keys, ~(1u << number));
	wipe_unused(k); /* peers under it keep its number */
	return 0;
}

void pmf_av_key_hold(struct pmf_av *av, uint16_t number)
{
	if (number)
		av->keys[number - 1].peers++;
}

void pmf_av_key_release(struct pmf_av *av, uint16_t number)
{
	if (!number)
		return;
	av->keys[number - 1].peers--;
	wipe_unused(&av->keys[number - 1]);
}

/* ---- endpoints ---- */

int pmf_av_keys_give(struct pmf_fep *fep)
{
	struct pmf_av *av = fep->av;
	int rc = 0;

	if (!av || !av->keys)
		return 0;
	pthread_mutex_lock(&av->lock);
	for (uint16_t i = 0; i < PMF_EP_KEYS && !rc; i++) {
		if (!av->keys[i].refs)
			continue;
		rc = pmf_ep_add_key(fep->ep, &av->keys[i].bytes, i + 1);
		if (rc)
			continue;
		av->keys[i].eps++;
		fep->keys |= 1u << i;
	}
	pthread_mutex_unlock(&av->lock);
	if (!rc && !fep->keys) {
		pmf_warn(EP_CTRL, "fi_enable: the address vector has no authorization key\n");
		rc = -FI_ENOKEY;
	}
	return rc;
}

void pmf_av_keys_return(struct pmf_fep *fep)
{
	for (int i = 0; i < PMF_EP_KEYS; i++)
		if (fep->keys & 1u << i)
			fep->av->keys[i].eps--;
	fep->keys = 0;
}
