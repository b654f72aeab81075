/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/eq.h"

#include <poll.h>

#include "../unit.h"

static void open_eq(struct pmf_eq *eq, size_t size, enum fi_wait_obj obj)
{
	struct fi_eq_attr attr = {.size = size, .wait_obj = obj, .flags = FI_WRITE};

	memset(eq, 0, sizeof(*eq));
	CU_ASSERT_EQUAL_FATAL(pmf_eq_init(eq, &attr, FI_VERSION(1, 17)), 0);
}

static bool fd_ready(const struct pmf_eq *eq)
{
	struct pollfd p = {.fd = eq->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void post(struct pmf_eq *eq, struct fid *fid, uint64_t n)
{
	struct fi_eq_entry e = {.fid = fid, .data = n};

	CU_ASSERT_EQUAL(pmf_eq_post(eq, FI_NOTIFY, &e, sizeof(e)), 0);
}

static void test_events_come_in_order(void)
{
	struct fi_eq_entry e;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 4, FI_WAIT_NONE);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	for (uint64_t i = 0; i < 100; i++)
		post(&eq, NULL, i);
	for (uint64_t i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), sizeof(e));
		CU_ASSERT_EQUAL(event, FI_NOTIFY);
		CU_ASSERT_EQUAL(e.data, i);
	}
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	pmf_eq_fini(&eq);
}

static void test_write_takes_size_events_exactly(void)
{
	struct fi_eq_entry e = {.data = 1};
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 32, FI_WAIT_NONE);
	for (int i = 0; i < 32; i++)
		CU_ASSERT_EQUAL(pmf_eq_write(&eq, FI_NOTIFY, &e, sizeof(e), 0), sizeof(e));
	CU_ASSERT_EQUAL(pmf_eq_write(&eq, FI_NOTIFY, &e, sizeof(e), 0), -FI_EAGAIN);
	/* the provider's own events are never lost */
	post(&eq, NULL, 2);
	for (int i = 0; i < 33; i++)
		CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), sizeof(e));
	pmf_eq_fini(&eq);
}

static void test_write_needs_the_flag(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_eq_entry e = {0};
	struct pmf_eq eq;

	memset(&eq, 0, sizeof(eq));
	CU_ASSERT_EQUAL_FATAL(pmf_eq_init(&eq, &attr, FI_VERSION(1, 17)), 0);
	CU_ASSERT_EQUAL(pmf_eq_write(&eq, FI_NOTIFY, &e, sizeof(e), 0), -FI_EINVAL);
	pmf_eq_fini(&eq);
}

static void test_peek_leaves_the_event_and_the_descriptor(void)
{
	struct fi_eq_entry e;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 4, FI_WAIT_FD);
	CU_ASSERT_FALSE(fd_ready(&eq));
	post(&eq, NULL, 5);
	CU_ASSERT(fd_ready(&eq));
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), FI_PEEK), sizeof(e));
	CU_ASSERT(fd_ready(&eq));
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), sizeof(e));
	CU_ASSERT_FALSE(fd_ready(&eq));
	pmf_eq_fini(&eq);
}

static void test_a_small_buffer_leaves_the_event(void)
{
	struct fi_eq_entry e;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 4, FI_WAIT_NONE);
	post(&eq, NULL, 5);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e) - 1, 0), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), sizeof(e));
	pmf_eq_fini(&eq);
}

static void test_an_error_stands_in_the_way(void)
{
	char data[4] = "abc", room[2];
	struct fi_eq_err_entry err = {.err = FI_EIO, .err_data = data, .err_data_size = 4};
	struct fi_eq_err_entry got = {0};
	struct fi_eq_entry e;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 4, FI_WAIT_NONE);
	CU_ASSERT_EQUAL(pmf_eq_readerr(&eq, &got, 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(pmf_eq_post_err(&eq, &err), 0);
	CU_ASSERT_EQUAL(pmf_eq_post_err(&eq, &err), 0);
	post(&eq, NULL, 5);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), -FI_EAVAIL);
	/* our buffer, good until the next read */
	CU_ASSERT_EQUAL(pmf_eq_readerr(&eq, &got, 0), sizeof(got));
	CU_ASSERT_EQUAL(got.err, FI_EIO);
	CU_ASSERT_EQUAL(got.err_data_size, 4);
	CU_ASSERT_STRING_EQUAL(got.err_data, "abc");
	/* the caller's buffer */
	got.err_data = room;
	got.err_data_size = sizeof(room);
	CU_ASSERT_EQUAL(pmf_eq_readerr(&eq, &got, 0), sizeof(got));
	CU_ASSERT_EQUAL(got.err_data_size, 2);
	CU_ASSERT_EQUAL(memcmp(room, "ab", 2), 0);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), sizeof(e));
	pmf_eq_fini(&eq);
}

static void test_events_of_a_closed_object_are_dropped(void)
{
	struct fi_eq_err_entry err = {.err = FI_EIO};
	struct fid one, two;
	struct fi_eq_entry e;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 8, FI_WAIT_FD);
	post(&eq, &one, 1);
	post(&eq, &two, 2);
	err.fid = &one;
	CU_ASSERT_EQUAL(pmf_eq_post_err(&eq, &err), 0);
	pmf_eq_forget(&eq, &one);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), sizeof(e));
	CU_ASSERT_PTR_EQUAL(e.fid, &two);
	CU_ASSERT_EQUAL(pmf_eq_read(&eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	CU_ASSERT_FALSE(fd_ready(&eq));
	pmf_eq_fini(&eq);
}

static void *post_main(void *arg)
{
	post(arg, NULL, 77);
	return NULL;
}

static void sread_wakes_with(enum fi_wait_obj obj)
{
	struct fi_eq_entry e;
	pthread_t thread;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 4, obj);
	CU_ASSERT_EQUAL(pmf_eq_sread(&eq, &event, &e, sizeof(e), 5, 0), -FI_EAGAIN);
	pthread_create(&thread, NULL, post_main, &eq);
	CU_ASSERT_EQUAL(pmf_eq_sread(&eq, &event, &e, sizeof(e), -1, 0), sizeof(e));
	CU_ASSERT_EQUAL(e.data, 77);
	pthread_join(thread, NULL);
	pmf_eq_fini(&eq);
}

static void test_sread_wakes(void)
{
	sread_wakes_with(FI_WAIT_UNSPEC);
	sread_wakes_with(FI_WAIT_FD);
	sread_wakes_with(FI_WAIT_YIELD);
}

static void test_sread_without_a_wait_object(void)
{
	struct fi_eq_entry e;
	struct pmf_eq eq;
	uint32_t event;

	open_eq(&eq, 4, FI_WAIT_NONE);
	CU_ASSERT_EQUAL(pmf_eq_sread(&eq, &event, &e, sizeof(e), 5, 0), -FI_ENOSYS);
	pmf_eq_fini(&eq);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_events_come_in_order),
	UNIT_TEST(test_write_takes_size_events_exactly),
	UNIT_TEST(test_write_needs_the_flag),
	UNIT_TEST(test_peek_leaves_the_event_and_the_descriptor),
	UNIT_TEST(test_a_small_buffer_leaves_the_event),
	UNIT_TEST(test_an_error_stands_in_the_way),
	UNIT_TEST(test_events_of_a_closed_object_are_dropped),
	UNIT_TEST(test_sread_wakes),
	UNIT_TEST(test_sread_without_a_wait_object),
};
UNIT_MAIN("completion eq")
