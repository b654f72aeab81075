/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "pattern.h"

#include <endian.h>
#include <string.h>

/*
 * Words of eight bytes, little endian on the wire of every machine: a start mixed from key and
 * sequence number, then equal steps by an odd constant, which the compiler can vectorise.
 */
#define STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t perf_pattern_key(uint64_t nonce, int from_server)
{
	return mix(nonce + (from_server ? 2 : 1) * STEP);
}

void perf_pattern_fill(void *buf, size_t len, uint64_t key, uint64_t seq)
{
	uint64_t word = mix(key + seq), wire;
	uint8_t *p = buf;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8, word += STEP) {
		wire = htole64(word);
		memcpy(p + i, &wire, 8);
	}
	wire = htole64(word);
	memcpy(p + i, &wire, len - i);
}

size_t perf_pattern_check(const void *buf, size_t len, uint64_t key, uint64_t seq)
{
	uint64_t word = mix(key + seq), wire, differs = 0;
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8, word += STEP) {
		memcpy(&wire, p + i, 8);
		differs |= wire ^ htole64(word);
	}
	wire = 0;
	memcpy(&wire, p + i, len - i);
	word = htole64(word);
	differs |= memcmp(&wire, &word, len - i) != 0;
	if (!differs)
		return len;
	for (i = 0; i < len; i++) {
		if (p[i] != perf_pattern_byte(i, key, seq))
			break;
	}
	return i;
}

uint8_t perf_pattern_byte(size_t offset, uint64_t key, uint64_t seq)
{
	return (uint8_t)((mix(key + seq) + offset / 8 * STEP) >> (offset % 8 * 8));
}
