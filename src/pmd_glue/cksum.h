/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The Internet checksum (RFC 1071). Sums are over 16-bit words as they lie in memory, so that the
 * result is stored as it is, whatever the byte order of the machine.
 */
#ifndef PMF_PMD_CKSUM_H
#define PMF_PMD_CKSUM_H

#include <rte_byteorder.h>

#include "pmf_common.h"

static inline uint16_t pmf_get16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void pmf_put16(void *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline uint16_t pmf_get_be16(const void *p)
{
	return rte_be_to_cpu_16(pmf_get16(p));
}

static inline void pmf_put_be16(void *p, uint16_t v)
{
	pmf_put16(p, rte_cpu_to_be_16(v));
}

/** Fold to 16 bits; not complemented. */
static inline uint16_t pmf_cksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

#define PMF_CKSUM_SHORT 256 /* bytes, below which a vector loop costs more to begin and end */

/* The words of eight bytes in [p, p + len), by additions with carry. Not folded. */
static inline uint64_t pmf_cksum_short(const uint8_t *p, size_t len)
{
	unsigned __int128 sum = 0;
	uint64_t w, low;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&w, p, sizeof(w));
		sum += w;
	}
	low = (uint64_t)sum;
	return (low & 0xffffffff) + (low >> 32) + (uint64_t)(sum >> 64);
}

/* The same four bytes at a time into 64 bits, which compilers turn into vector additions and which
 * cannot overflow below 16 GB. */
static inline uint64_t pmf_cksum_long(const uint8_t *p, size_t len)
{
	uint64_t even = 0, odd = 0, w;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&w, p, sizeof(w));
		even += w & 0xffffffff;
		odd += w >> 32;
	}
	return even + odd;
}

/**
 * Add @p len bytes at @p buf to @p sum. Wider words may be added, the folded result is that of
 * 16-bit words: 2^16 is 1 modulo 2^16 - 1.
 */
static inline uint64_t pmf_cksum_add(const void *buf, size_t len, uint64_t sum)
{
	const uint8_t *p = (const uint8_t *)buf + (len & ~(size_t)7);

	sum = (sum & 0xffffffff) + (sum >> 32) +
	      (len < PMF_CKSUM_SHORT ? pmf_cksum_short(buf, len) : pmf_cksum_long(buf, len));
	if (len & 4) {
		uint32_t w;

		memcpy(&w, p, sizeof(w));
		sum += w;
		p += 4;
	}
	if (len & 2) {
		sum += pmf_get16(p);
		p += 2;
	}
	if (len & 1) {
		uint16_t w = 0;

		memcpy(&w, p, 1); /* the missing byte is zero, behind it in memory */
		sum += w;
	}
	return sum;
}

/** Checksum of UDP, in which 0 would mean "none" (RFC 768). */
static inline uint16_t pmf_cksum_udp(uint64_t sum)
{
	const uint16_t c = (uint16_t)~pmf_cksum_fold(sum);

	return c ? c : 0xffff;
}

/** Is the sum over a covered range, its checksum included, right? */
static inline bool pmf_cksum_ok(uint64_t sum)
{
	return pmf_cksum_fold(sum) == 0xffff;
}

#endif
