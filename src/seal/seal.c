/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Packets and their tags. Nothing here decides what a packet does: the engine asks whether its tag
 * is right before it looks at anything else.
 */
#include "seal/seal.h"

#include <stdlib.h>

#include "proto/bytes.h"

/* Bytes that stand for a way, and so for one flow in one direction. */
struct way_bytes {
	uint8_t label[4];
	uint8_t from[16], to[16], to_port[2];
	uint8_t inc[8], peer_inc[8], conn[8], seed[8];
};
static_assert(sizeof(struct way_bytes) == 70, "no padding is hashed");

struct ends_bytes {
	uint8_t from[16], to[16], to_port[2];
};
static_assert(sizeof(struct ends_bytes) == 34, "no padding is hashed");

/* ---- outside flows ---- */

static void put_ends(const struct pmf_seal_ends *ends, struct ends_bytes *out)
{
	memcpy(out->from, ends->from, sizeof(out->from));
	memcpy(out->to, ends->to, sizeof(out->to));
	pmf_put16(out->to_port, ends->to_port);
}

size_t pmf_seal_contact(const struct pmf_keyring *ring, uint16_t id,
			const struct pmf_seal_ends *ends, uint8_t *p, size_t len)
{
	const struct pmf_key *key = pmf_keyring_find(ring, id);
	struct ends_bytes e;

	if (!key)
		key = ring->key[0];
	put_ends(ends, &e);
	pmf_wire_set_key(p, key->id);
	if (!pmf_hmac_tag(key->contact, &e, sizeof(e), p, len, p + len))
		return 0;
	return len + PMF_WIRE_TAG;
}

enum pmf_seal_verdict pmf_seal_contact_check(const struct pmf_keyring *ring,
					     const struct pmf_hdr *hdr,
					     const struct pmf_seal_ends *ends, const uint8_t *p,
					     size_t len)
{
	const struct pmf_key *key = pmf_keyring_find(ring, hdr->key);
	uint8_t tag[PMF_CRYPT_TAG];
	struct ends_bytes e;

	if (!key)
		return PMF_SEAL_KEY;
	put_ends(ends, &e);
	len -= PMF_WIRE_TAG;
	if (!pmf_hmac_tag(key->contact, &e, sizeof(e), p, len, tag) || !pmf_tag_equal(tag, p + len))
		return PMF_SEAL_TAG;
	return PMF_SEAL_OK;
}

/* ---- keys of a flow ---- */

static void keyed_close(struct pmf_seal_keyed *k)
{
	pmf_gcm_close(k->gcm);
	memset(k, 0, sizeof(*k));
}

static int keyed_open(struct pmf_seal_keyed *k, const struct pmf_key *key,
		      const struct pmf_seal_way *way, bool seals)
{
	struct way_bytes w = {.label = "flow"};
	uint8_t out[16 + PMF_CRYPT_IV];
	int err;

	memcpy(w.from, way->ends.from, sizeof(w.from));
	memcpy(w.to, way->ends.to, sizeof(w.to));
	pmf_put16(w.to_port, way->ends.to_port);
	pmf_put64(w.inc, way->inc);
	pmf_put64(w.peer_inc, way->peer_inc);
	pmf_put64(w.conn, way->conn);
	pmf_put64(w.seed, way->seed);
	err = pmf_hkdf_expand(key->prk, sizeof(key->prk), &w, sizeof(w), out, sizeof(out));
	if (err)
		return err;
	k->gcm = pmf_gcm_open(out, 16, seals);
	memcpy(k->iv, out + 16, sizeof(k->iv));
	k->key = key;
	pmf_wipe(out, sizeof(out));
	if (k->gcm)
		return 0;
	keyed_close(k);
	return -ENOMEM;
}

struct pmf_seal *pmf_seal_open(struct pmf_keyring *ring, const struct pmf_seal_ends *ends)
{
	struct pmf_seal *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ring = ring;
	s->tx_way.ends = *ends;
	return s;
}

void pmf_seal_close(struct pmf_seal *s)
{
	if (!s)
		return;
	keyed_close(&s->tx);
	for (unsigned int i = 0; i < PMF_KEYS_MAX; i++)
		keyed_close(&s->rx[i]);
	free(s);
}

int pmf_seal_bind(struct pmf_seal *s, const struct pmf_flow *f)
{
	int err;

	if (s->tx_known || !f->bound)
		return 0;
	s->tx_way.inc = f->id.inc;
	s->tx_way.peer_inc = f->peer_inc;
	s->tx_way.conn = f->id.conn;
	s->tx_way.seed = f->seed;
	err = keyed_open(&s->tx, s->ring->key[0], &s->tx_way, true);
	s->tx_known = !err;
	return err;
}

/* The slot of @p key, or a free one; there are as many as a ring has keys. */
static struct pmf_seal_keyed *rx_slot(struct pmf_seal *s, const struct pmf_key *key)
{
	struct pmf_seal_keyed *k = s->rx;

	while (k->key != key)
		k++;
	return k;
}

/* Keys for all that the ring accepts. */
static int rx_fill(struct pmf_seal *s)
{
	int err = 0;

	for (unsigned int i = 0; i < s->ring->n && !err; i++) {
		const struct pmf_key *key = s->ring->key[i];
		unsigned int at = 0;

		while (at < PMF_KEYS_MAX && s->rx[at].key != key)
			at++;
		if (at == PMF_KEYS_MAX)
			err = keyed_open(rx_slot(s, NULL), key, &s->rx_way, false);
	}
	return err;
}

int pmf_seal_roll(struct pmf_seal *s)
{
	for (unsigned int at = 0; at < PMF_KEYS_MAX; at++) {
		unsigned int i = 0;

		while (i < s->ring->n && s->ring->key[i] != s->rx[at].key)
			i++;
		if (i == s->ring->n)
			keyed_close(&s->rx[at]);
	}
	if (s->rx_known && rx_fill(s))
		return -ENOMEM;
	if (!s->tx_known || s->tx.key == s->ring->key[0])
		return 0;
	/* Another key, so another sequence of nonces; the numbers go on. */
	keyed_close(&s->tx);
	return keyed_open(&s->tx, s->ring->key[0], &s->tx_way, true);
}

/* ---- packets of a flow ---- */

/* As RFC 8446 §5.3 makes it: 64 bits of number, padded in front, over the secret vector. */
static void nonce(const struct pmf_seal_keyed *k, uint64_t txno, uint8_t out[PMF_CRYPT_IV])
{
	memcpy(out, k->iv, PMF_CRYPT_IV);
	pmf_put64(out + 4, pmf_get64(out + 4) ^ txno);
}

/* What is not encrypted: the header; or all of it. */
static size_t clear_bytes(const struct pmf_seal *s, const uint8_t *p, size_t len)
{
	return s->ring->encrypt ? pmf_wire_head(p) : len;
}

size_t pmf_seal_tx(struct pmf_seal *s, const struct pmf_flow *f, uint8_t *p, size_t len)
{
	uint8_t iv[PMF_CRYPT_IV];
	size_t clear;

	if (pmf_unlikely(!pmf_wire_has_seq(pmf_wire_type(p))))
		return pmf_seal_contact(s->ring, 0, &s->tx_way.ends, p, len);
	if (pmf_unlikely(!s->tx.gcm))
		return 0;
	pmf_wire_set_key(p, s->tx.key->id);
	nonce(&s->tx, f->txno_next - 1, iv);
	clear = clear_bytes(s, p, len);
	if (!pmf_gcm_seal(s->tx.gcm, iv, p, clear, p + clear, len - clear, p + len))
		return 0;
	return len + PMF_WIRE_TAG;
}

/* @return the tag is right. @p len is without it */
static bool unseal(struct pmf_seal *s, struct pmf_seal_keyed *k, uint64_t txno, uint8_t *p,
		   size_t len)
{
	size_t clear = clear_bytes(s, p, len);
	uint8_t iv[PMF_CRYPT_IV];

	nonce(k, txno, iv);
	return pmf_gcm_unseal(k->gcm, iv, p, clear, p + clear, len - clear, p + len);
}

enum pmf_seal_verdict pmf_seal_rx(struct pmf_seal *s, const struct pmf_hdr *hdr, uint8_t *p,
				  size_t len)
{
	struct pmf_seal_keyed *k = s->rx, *end = s->rx + PMF_KEYS_MAX;
	uint64_t txno = pmf_replay_extend(&s->replay, hdr->txno);

	while (k < end && !(k->key && k->key->id == hdr->key))
		k++;
	if (pmf_unlikely(k == end))
		return pmf_keyring_find(s->ring, hdr->key) ? PMF_SEAL_REPLAY : PMF_SEAL_KEY;
	if (pmf_unlikely(!pmf_replay_is_new(&s->replay, txno)))
		return PMF_SEAL_REPLAY;
	if (pmf_unlikely(!unseal(s, k, txno, p, len - PMF_WIRE_TAG)))
		return PMF_SEAL_TAG;
	pmf_replay_take(&s->replay, txno);
	return PMF_SEAL_OK;
}

static bool same_way(const struct pmf_seal_way *w, const struct pmf_hdr *hdr, uint64_t inc)
{
	return w->inc == hdr->inc && w->peer_inc == inc && w->conn == hdr->my_conn &&
	       w->seed == hdr->seed;
}

enum pmf_seal_verdict pmf_seal_rx_open(struct pmf_seal *s, const struct pmf_hdr *hdr,
				       const struct pmf_seal_ends *ends, uint64_t inc, uint8_t *p,
				       size_t len)
{
	const struct pmf_key *key;
	struct pmf_seal_keyed *k;

	if (s->rx_known)
		return same_way(&s->rx_way, hdr, inc) ? pmf_seal_rx(s, hdr, p, len)
						      : PMF_SEAL_REPLAY;
	key = pmf_keyring_find(s->ring, hdr->key);
	if (!key)
		return PMF_SEAL_KEY;
	s->rx_way = (struct pmf_seal_way){.ends = *ends,
					  .inc = hdr->inc,
					  .peer_inc = inc,
					  .conn = hdr->my_conn,
					  .seed = hdr->seed};
	k = rx_slot(s, NULL);
	if (keyed_open(k, key, &s->rx_way, false))
		return PMF_SEAL_TAG;
	if (!pmf_replay_is_new(&s->replay, hdr->txno) ||
	    !unseal(s, k, hdr->txno, p, len - PMF_WIRE_TAG)) {
		keyed_close(k);
		return PMF_SEAL_TAG;
	}
	/* (Without memory for the other keys those do not open here; it comes again.) */
	if (rx_fill(s)) {
		for (unsigned int i = 0; i < PMF_KEYS_MAX; i++)
			keyed_close(&s->rx[i]);
		return PMF_SEAL_TAG;
	}
	s->rx_known = true;
	pmf_replay_take(&s->replay, hdr->txno);
	return PMF_SEAL_OK;
}
