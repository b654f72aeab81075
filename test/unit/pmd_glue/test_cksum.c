/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The checksum against RFC 1071's own example and against the plainest implementation.
 */
#include "pmd_glue/cksum.h"

#include "../unit.h"

/* Byte by byte, big endian, as the RFC defines it. */
static uint16_t plain(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += (uint64_t)p[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void test_rfc1071_example(void)
{
	static const uint8_t data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	CU_ASSERT_EQUAL(rte_be_to_cpu_16(pmf_cksum_fold(pmf_cksum_add(data, 8, 0))), 0xddf2);
}

static void test_every_length_and_alignment(void)
{
	static uint8_t buf[10000];
	uint64_t seed = test_seed();

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)test_random(&seed);
	for (size_t off = 0; off < 9; off++)
		for (size_t len = 0; len < 300; len++)
			CU_ASSERT_FATAL(pmf_cksum_fold(pmf_cksum_add(buf + off, len, 0)) ==
					rte_cpu_to_be_16(plain(buf + off, len)));
	CU_ASSERT_EQUAL(pmf_cksum_fold(pmf_cksum_add(buf + 1, 9000, 0)),
			rte_cpu_to_be_16(plain(buf + 1, 9000)));
}

static void test_carries_do_not_get_lost(void)
{
	static uint8_t ones[65536];

	memset(ones, 0xff, sizeof(ones));
	for (size_t len = 0; len <= sizeof(ones); len += 2)
		CU_ASSERT_FATAL(pmf_cksum_fold(pmf_cksum_add(ones, len, 0)) == (len ? 0xffff : 0));
	CU_ASSERT_EQUAL(pmf_cksum_fold(UINT64_MAX), 0xffff);
	CU_ASSERT_EQUAL(pmf_cksum_fold(pmf_cksum_add(ones, 64, UINT64_MAX)), 0xffff);
}

static void test_parts_add_up(void)
{
	uint8_t buf[64];
	uint64_t seed = test_seed(), sum;

	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)test_random(&seed);
	sum = pmf_cksum_add(buf, 20, 0);
	sum = pmf_cksum_add(buf + 20, 44, sum);
	CU_ASSERT_EQUAL(pmf_cksum_fold(sum), pmf_cksum_fold(pmf_cksum_add(buf, 64, 0)));
}

static void test_udp_never_sends_zero(void)
{
	CU_ASSERT_EQUAL(pmf_cksum_udp(0xffff), 0xffff);
	CU_ASSERT_EQUAL(pmf_cksum_udp(0), 0xffff);
	CU_ASSERT_EQUAL(pmf_cksum_udp(1), 0xfffe);
	CU_ASSERT_TRUE(pmf_cksum_ok(0x1234 + (uint16_t)~0x1234));
	CU_ASSERT_FALSE(pmf_cksum_ok(0x1234 + (uint16_t)~0x1235));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"RFC 1071's example", test_rfc1071_example},
		{"every length and alignment", test_every_length_and_alignment},
		{"carries do not get lost", test_carries_do_not_get_lost},
		{"parts add up", test_parts_add_up},
		{"UDP never sends zero", test_udp_never_sends_zero},
	};

	return test_main("cksum", tests, PMF_ARRAY_SIZE(tests));
}
