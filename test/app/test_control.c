/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <CUnit/Basic.h>

/* The control messages between client and server of pmf-perf. */

static struct perf_control make(enum perf_control_type type)
{
	struct perf_control m;

	memset(&m, 0, sizeof(m));
	m.type = type;
	m.nonce = UINT64_C(0x0123456789abcdef);
	m.place = 3;
	m.run = 9;
	switch (type) {
	case PERF_HELLO:
		m.u.hello.own_place = 2;
		m.u.hello.name.len = PERF_NAME_MAX;
		memset(m.u.hello.name.bytes, 0xa5, PERF_NAME_MAX);
		break;
	case PERF_WELCOME:
		m.u.welcome.own_place = 1;
		m.u.welcome.clients = 2;
		m.u.welcome.endpoints = PERF_ENDPOINTS_MAX;
		m.u.welcome.max_size = UINT64_MAX;
		m.u.welcome.timeout_ns = 5;
		break;
	case PERF_RUN:
		m.u.run_work.work = (struct perf_work){
			.mode = PERF_RATE,
			.direction = PERF_BOTH,
			.size = 1 << 20,
			.window = 64,
			.more = 8,
			.inject = PERF_OFF,
			.verify = 1,
			.cq_data = 1,
			.count = 77,
			.duration_ns = 78,
			.warmup = 79,
			.walk = 80,
			.mix = 81,
		};
		m.u.run_work.endpoints = 1;
		m.u.run_work.name.len = 16;
		memset(m.u.run_work.name.bytes, 0x11, 16);
		break;
	case PERF_READY:
	case PERF_NAME:
		m.u.name.len = 28;
		memset(m.u.name.bytes, 0x22, 28);
		break;
	case PERF_DONE:
		m.u.done = UINT64_C(1) << 40;
		break;
	case PERF_RESULT:
		m.u.result.yours = (struct perf_received){1, 2};
		m.u.result.all = (struct perf_received){3, 4};
		break;
	case PERF_ABORT:
		memset(m.u.reason, 'x', PERF_REASON_MAX - 1);
		break;
	default:
		break;
	}
	return m;
}

static void test_every_message_comes_back(void)
{
	uint8_t buf[PERF_CONTROL_MAX];
	struct perf_control in, out;
	size_t len;
	int type;

	for (type = PERF_HELLO; type <= PERF_ABORT; type++) {
		in = make((enum perf_control_type)type);
		len = perf_control_put(&in, buf);
		CU_ASSERT(len <= sizeof(buf));
		memset(&out, 0, sizeof(out));
		CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), 0);
		CU_ASSERT_EQUAL(memcmp(&in, &out, sizeof(in)), 0);
	}
}

static void test_a_cut_message_is_refused(void)
{
	uint8_t buf[PERF_CONTROL_MAX];
	struct perf_control in, out;
	size_t len, cut;
	int type;

	for (type = PERF_HELLO; type < PERF_ABORT; type++) {
		in = make((enum perf_control_type)type);
		len = perf_control_put(&in, buf);
		for (cut = 0; cut < len; cut++) {
			/* A buffer of its own, so that a sanitizer sees a read behind it. */
			uint8_t *exact = malloc(cut ? cut : 1);

			CU_ASSERT_PTR_NOT_NULL_FATAL(exact);
			memcpy(exact, buf, cut);
			CU_ASSERT_EQUAL(perf_control_get(&out, exact, cut), -1);
			free(exact);
		}
	}
}

static void test_nonsense_is_refused(void)
{
	uint8_t buf[PERF_CONTROL_MAX];
	struct perf_control m = make(PERF_RUN), out;
	size_t len = perf_control_put(&m, buf);

	buf[0] ^= 1;
	CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), -1);
	buf[0] ^= 1;
	buf[5] ^= 2; /* the version */
	CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), -1);
	buf[5] ^= 2;
	buf[7] = 99; /* the type */
	CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), -1);

	m.u.run_work.work.window = 0;
	len = perf_control_put(&m, buf);
	CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), -1);
	m = make(PERF_RUN);
	m.u.run_work.work.size = UINT64_MAX;
	len = perf_control_put(&m, buf);
	CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), -1);
	m = make(PERF_RUN);
	m.u.run_work.work.mode = PERF_MODES;
	len = perf_control_put(&m, buf);
	CU_ASSERT_EQUAL(perf_control_get(&out, buf, len), -1);
}

static void test_random_bytes_do_no_harm(void)
{
	const char *env = getenv("PMF_TEST_SEED");
	unsigned int seed = env ? (unsigned int)strtoul(env, NULL, 0) : (unsigned int)time(NULL);
	struct perf_control m, out;
	uint8_t buf[PERF_CONTROL_MAX];
	size_t len, i;
	int round;

	printf("PMF_TEST_SEED=%u ", seed);
	for (round = 0; round < 20000; round++) {
		m = make((enum perf_control_type)(PERF_HELLO + rand_r(&seed) % PERF_ABORT));
		len = perf_control_put(&m, buf);
		for (i = 0; i < 3; i++)
			buf[8 + (size_t)rand_r(&seed) % (len - 8)] = (uint8_t)rand_r(&seed);
		if (perf_control_get(&out, buf, len) == 0 && out.type == PERF_RUN)
			CU_ASSERT(out.u.run_work.name.len <= PERF_NAME_MAX &&
				  out.u.run_work.work.more <= out.u.run_work.work.window);
	}
}

int main(void)
{
	CU_pSuite suite;
	unsigned int failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite("pmf-perf control", NULL, NULL);
	CU_ADD_TEST(suite, test_every_message_comes_back);
	CU_ADD_TEST(suite, test_a_cut_message_is_refused);
	CU_ADD_TEST(suite, test_nonsense_is_refused);
	CU_ADD_TEST(suite, test_random_bytes_do_no_harm);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() || CU_get_number_of_tests_run() == 0;
	CU_cleanup_registry();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
