/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * SipHash-2-4, from the paper: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF",
 * 2012, sections 2.1 to 2.4.
 */
#include "proto/contact.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 = rotl(s->v2, 32);
}

static void compress(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

/* The paper's words are little endian. */
static uint64_t load_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint64_t pmf_siphash(const struct pmf_contact_key *key, const void *data, size_t len)
{
	struct sip s = {
		.v0 = key->k[0] ^ 0x736f6d6570736575ull,
		.v1 = key->k[1] ^ 0x646f72616e646f6dull,
		.v2 = key->k[0] ^ 0x6c7967656e657261ull,
		.v3 = key->k[1] ^ 0x7465646279746573ull,
	};
	const uint8_t *p = data;
	size_t left = len;

	for (; left >= 8; left -= 8, p += 8)
		compress(&s, load_le(p, 8));
	compress(&s, load_le(p, left) | (uint64_t)len << 56);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
