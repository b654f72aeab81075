/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include <string.h>

#include "pattern.h"
#include "soak.h"

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

size_t message_len(uint64_t word, const struct kind *kind)
{
	static const uint32_t edges[] = {1,	7,     8,     256,   257,   1400,  8900,    9000,
					 16383, 16384, 16385, 65535, 65536, 65537, 1u << 20};
	const struct kind *from = &kinds[(word >> 48 & 15) % SLOTS];
	uint64_t h = mix(word + 0x9e3779b97f4a7c15ull), r = h >> 32;
	size_t max = from->max < kind->max ? from->max : kind->max, len;

	switch (h % 10) {
	case 0:
		return 0;
	case 1:
		len = edges[r % (sizeof(edges) / sizeof(edges[0]))];
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		len = r % 300;
		break;
	case 6:
		len = r % 4096;
		break;
	case 7:
		len = r % 70000;
		break;
	case 8:
		len = r % (max + 1);
		break;
	default:
		/* The longest there is, and now and then one that is cut. */
		len = r % 4 ? r % 16384 : max + (r % 16 ? 0 : r % 1000);
		return len;
	}
	return len < max ? len : max;
}

void message_fill(uint64_t word, uint8_t *to, size_t len)
{
	size_t head = len < WORD_LEN ? len : WORD_LEN;

	memcpy(to, &word, head);
	perf_pattern_fill(to + head, len - head, word, 0);
}

bool message_same(uint64_t word, const uint8_t *bytes, size_t len)
{
	size_t head = len < WORD_LEN ? len : WORD_LEN;

	return memcmp(bytes, &word, head) == 0 &&
	       perf_pattern_check(bytes + head, len - head, word, 0) == len - head;
}
