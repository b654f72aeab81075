/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Big endian fields at any alignment.
 */
#ifndef PMF_PROTO_BYTES_H
#define PMF_PROTO_BYTES_H

#include "pmf_common.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PMF_BE(bits, v) __builtin_bswap##bits(v)
#else
#define PMF_BE(bits, v) (v)
#endif

static inline uint16_t pmf_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return PMF_BE(16, v);
}

static inline uint32_t pmf_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return PMF_BE(32, v);
}

static inline uint64_t pmf_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return PMF_BE(64, v);
}

static inline void pmf_put16(uint8_t *p, uint16_t v)
{
	v = PMF_BE(16, v);
	memcpy(p, &v, sizeof(v));
}

static inline void pmf_put32(uint8_t *p, uint32_t v)
{
	v = PMF_BE(32, v);
	memcpy(p, &v, sizeof(v));
}

static inline void pmf_put64(uint8_t *p, uint64_t v)
{
	v = PMF_BE(64, v);
	memcpy(p, &v, sizeof(v));
}

#endif
