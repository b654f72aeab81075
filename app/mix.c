/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "mix.h"

#define OCTAVES 16 /* 1 byte to 64 KiB */
#define MIB (UINT64_C(1) << 20)

/* SplitMix64 (Steele, Lea, Flood 2014): the output function on a counter. */
static uint64_t draw(uint64_t counter)
{
	uint64_t z = counter * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

size_t perf_mix_size(uint64_t seed, bool from_server, uint64_t seq, size_t max)
{
	uint64_t base = draw(seed + from_server) + 2 * seq;
	uint64_t kind = draw(base) % 10000, r = draw(base + 1), size;

	if (kind == 0) {
		size = MIB + r % (15 * MIB + 1);
	} else if (kind <= 1000) {
		size = 0;
	} else {
		size = UINT64_C(1) << (r % OCTAVES);
		size += (r >> 32) % size;
	}
	return size < max ? (size_t)size : max;
}
