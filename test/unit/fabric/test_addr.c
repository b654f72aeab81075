/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "msg/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include "../unit.h"

static struct pmf_addr parse(const char *str)
{
	struct pmf_addr a;

	CU_ASSERT_EQUAL_FATAL(pmf_addr_get(str, 0, FI_ADDR_STR, &a), 0);
	return a;
}

static void test_names_round_trip(void)
{
	static const char *const names[] = {
		"fi_sockaddr_in://10.99.0.1:4000", "fi_sockaddr_in://255.255.255.255:65535",
		"fi_sockaddr_in6://[fd00::1]:4000", "fi_sockaddr_in6://[fe80::a:b]:1"};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(names); i++) {
		struct pmf_addr a = parse(names[i]);
		char out[PMF_ADDR_TEXT];
		size_t len = sizeof(out);

		CU_ASSERT_EQUAL(pmf_addr_put(&a, FI_ADDR_STR, out, &len), 0);
		CU_ASSERT_STRING_EQUAL(out, names[i]);
		CU_ASSERT_EQUAL(len, strlen(names[i]) + 1);
	}
}

static void test_bad_names_are_refused(void)
{
	static const char *const names[] = {
		"",
		"10.0.0.1:4000",
		"fi_sockaddr://10.0.0.1:4000",
		"fi_sockaddr_in://",
		"fi_sockaddr_in://10.0.0:4000",
		"fi_sockaddr_in://10.0.0.1:",
		"fi_sockaddr_in://10.0.0.1:70000",
		"fi_sockaddr_in://10.0.0.1:12x",
		"fi_sockaddr_in://fd00::1:4000",
		"fi_sockaddr_in6://[fd00::1:4000",
		"fi_sockaddr_in6://[fd00::1]4000",
		"fi_sockaddr_in6://[10.0.0.1]:4000",
		"fi_sockaddr_in6://[f:f:f:f:f:f:f:f:f]:1",
	};
	struct pmf_addr a;

	for (size_t i = 0; i < PMF_ARRAY_SIZE(names); i++)
		CU_ASSERT_EQUAL(pmf_addr_get(names[i], 0, FI_ADDR_STR, &a), -FI_EINVAL);
	/* a text that does not end within its length */
	CU_ASSERT_EQUAL(pmf_addr_get("fi_sockaddr_in://10.0.0.1:4000", 20, FI_ADDR_STR, &a),
			-FI_EINVAL);
}

static void test_socket_addresses_round_trip(void)
{
	struct pmf_addr v4 = parse("fi_sockaddr_in://10.99.0.1:4000");
	struct pmf_addr v6 = parse("fi_sockaddr_in6://[fd00::1]:4001");
	struct pmf_addr back;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
	size_t len = sizeof(sin);

	CU_ASSERT_EQUAL(pmf_addr_put(&v4, FI_SOCKADDR_IN, &sin, &len), 0);
	CU_ASSERT_EQUAL(len, sizeof(sin));
	CU_ASSERT_EQUAL(sin.sin_family, AF_INET);
	CU_ASSERT_EQUAL(ntohs(sin.sin_port), 4000);
	CU_ASSERT_EQUAL(ntohl(sin.sin_addr.s_addr), 0x0a630001);
	CU_ASSERT_EQUAL(pmf_addr_get(&sin, len, FI_SOCKADDR_IN, &back), 0);
	CU_ASSERT(pmf_addr_eq(&v4, &back));
	CU_ASSERT_EQUAL(pmf_addr_get(&sin, len, FI_FORMAT_UNSPEC, &back), 0);
	CU_ASSERT_EQUAL(pmf_addr_get(&sin, len - 1, FI_SOCKADDR_IN, &back), -FI_EINVAL);
	CU_ASSERT_EQUAL(pmf_addr_get(&sin, len, FI_SOCKADDR_IN6, &back), -FI_EINVAL);

	len = sizeof(sin6);
	CU_ASSERT_EQUAL(pmf_addr_put(&v6, FI_SOCKADDR_IN6, &sin6, &len), 0);
	CU_ASSERT_EQUAL(sin6.sin6_family, AF_INET6);
	CU_ASSERT_EQUAL(pmf_addr_get(&sin6, len, FI_SOCKADDR, &back), 0);
	CU_ASSERT(pmf_addr_eq(&v6, &back));
	CU_ASSERT_EQUAL(pmf_addr_put(&v6, FI_SOCKADDR_IN, &sin, &len), -FI_EINVAL);
}

static void test_a_mapped_address_is_no_ipv6_address(void)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};
	struct pmf_addr a;

	inet_pton(AF_INET6, "::ffff:10.0.0.1", &sin6.sin6_addr);
	CU_ASSERT_EQUAL(pmf_addr_get(&sin6, sizeof(sin6), FI_SOCKADDR_IN6, &a), -FI_EINVAL);
}

static void test_a_short_buffer_gets_a_cut_address_and_the_length(void)
{
	struct pmf_addr a = parse("fi_sockaddr_in://10.99.0.1:4000");
	uint8_t whole[16], cut[8] = {0};
	size_t len = 0;

	CU_ASSERT_EQUAL(pmf_addr_put(&a, FI_SOCKADDR_IN, NULL, &len), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(len, 16);
	CU_ASSERT_EQUAL(pmf_addr_put(&a, FI_SOCKADDR_IN, whole, &len), 0);
	len = 4;
	CU_ASSERT_EQUAL(pmf_addr_put(&a, FI_SOCKADDR_IN, cut, &len), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(len, 16);
	CU_ASSERT_EQUAL(memcmp(cut, whole, 4), 0);
	CU_ASSERT_EQUAL(cut[4], 0);
}

static void test_resolving(void)
{
	struct pmf_addr a[4];

	CU_ASSERT_EQUAL(pmf_addr_resolve("10.1.2.3", "77", AF_UNSPEC, 0, a, 4), 1);
	CU_ASSERT_EQUAL(a[0].port, 77);
	CU_ASSERT_EQUAL(pmf_addr_resolve("10.1.2.3", NULL, AF_INET, FI_NUMERICHOST, a, 4), 1);
	CU_ASSERT_EQUAL(a[0].port, 0);
	CU_ASSERT_EQUAL(pmf_addr_resolve("fd00::3", "77", AF_INET, 0, a, 4), -FI_ENODATA);
	CU_ASSERT_EQUAL(pmf_addr_resolve("no-number", "77", AF_UNSPEC, FI_NUMERICHOST, a, 4),
			-FI_ENODATA);
	CU_ASSERT_EQUAL(pmf_addr_resolve("fi_sockaddr_in://10.1.2.3:9", NULL, AF_UNSPEC, 0, a, 4),
			1);
	CU_ASSERT_EQUAL(a[0].port, 9);
	CU_ASSERT_EQUAL(pmf_addr_resolve("fi_sockaddr_in://10.1.2.3:9", "9", AF_UNSPEC, 0, a, 4),
			-FI_ENODATA);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_names_round_trip),
	UNIT_TEST(test_bad_names_are_refused),
	UNIT_TEST(test_socket_addresses_round_trip),
	UNIT_TEST(test_a_mapped_address_is_no_ipv6_address),
	UNIT_TEST(test_a_short_buffer_gets_a_cut_address_and_the_length),
	UNIT_TEST(test_resolving),
};
UNIT_MAIN("fabric addr")
