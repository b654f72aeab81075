/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/wait.h"

#include <poll.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "../unit.h"

static bool fd_ready(const struct pmf_wait *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void test_objects(void)
{
	enum fi_wait_obj obj = FI_WAIT_SET;
	struct pmf_wait w;
	int fd = -1;

	CU_ASSERT_EQUAL(pmf_wait_open(&w, FI_WAIT_NONE), 0);
	CU_ASSERT_FALSE(pmf_wait_can_sleep(&w));
	CU_ASSERT_EQUAL(pmf_wait_control(&w, FI_GETWAIT, &fd), -FI_ENODATA);
	CU_ASSERT_EQUAL(pmf_wait_control(&w, FI_GETWAITOBJ, &obj), -FI_ENODATA);
	pmf_wait_wake(&w);
	pmf_wait_close(&w);

	CU_ASSERT_EQUAL(pmf_wait_open(&w, FI_WAIT_YIELD), 0);
	CU_ASSERT(pmf_wait_can_sleep(&w));
	CU_ASSERT_EQUAL(pmf_wait_control(&w, FI_GETWAIT, &fd), -FI_ENODATA);
	CU_ASSERT_EQUAL(pmf_wait_control(&w, FI_GETWAITOBJ, &obj), 0);
	CU_ASSERT_EQUAL(obj, FI_WAIT_YIELD);
	pmf_wait_close(&w);

	CU_ASSERT_EQUAL(pmf_wait_open(&w, FI_WAIT_UNSPEC), 0);
	CU_ASSERT_EQUAL(pmf_wait_control(&w, FI_GETWAIT, &fd), 0);
	CU_ASSERT_EQUAL(fd, w.fd);
	CU_ASSERT_EQUAL(pmf_wait_control(&w, FI_GETWAITOBJ, &obj), 0);
	CU_ASSERT_EQUAL(obj, FI_WAIT_FD);
	pmf_wait_close(&w);

	CU_ASSERT_EQUAL(pmf_wait_open(&w, FI_WAIT_SET), -EINVAL);
	CU_ASSERT_EQUAL(pmf_wait_open(&w, FI_WAIT_MUTEX_COND), -EINVAL);
	CU_ASSERT_EQUAL(pmf_wait_open(&w, FI_WAIT_POLLFD), -EINVAL);
}

static void test_the_descriptor_is_written_only_when_asked_for(void)
{
	struct pmf_wait w;

	CU_ASSERT_EQUAL_FATAL(pmf_wait_open(&w, FI_WAIT_FD), 0);
	pmf_wait_wake(&w);
	CU_ASSERT_FALSE(fd_ready(&w));
	pmf_wait_arm_poll(&w);
	CU_ASSERT_FALSE(fd_ready(&w));
	pmf_wait_wake(&w);
	CU_ASSERT(fd_ready(&w));
	/* the reader looks, and it is quiet again; one promise is one write */
	pmf_wait_quiet(&w);
	CU_ASSERT_FALSE(fd_ready(&w));
	pmf_wait_wake(&w);
	CU_ASSERT_FALSE(fd_ready(&w));
	pmf_wait_close(&w);
}

static void test_a_wake_up_between_arming_and_sleeping_is_not_lost(void)
{
	struct pmf_wait w;
	uint32_t ticket;

	CU_ASSERT_EQUAL_FATAL(pmf_wait_open(&w, FI_WAIT_FD), 0);
	ticket = pmf_wait_arm(&w);
	pmf_wait_wake(&w);
	CU_ASSERT_EQUAL(pmf_wait_sleep(&w, ticket, -1), 0);
	pmf_wait_disarm(&w);
	ticket = pmf_wait_arm(&w);
	CU_ASSERT_EQUAL(pmf_wait_sleep(&w, ticket, 5), -EAGAIN);
	pmf_wait_disarm(&w);
	pmf_wait_close(&w);
}

static void test_a_signal_is_kept_and_taken_once(void)
{
	struct pmf_wait w;

	CU_ASSERT_EQUAL_FATAL(pmf_wait_open(&w, FI_WAIT_FD), 0);
	CU_ASSERT_FALSE(pmf_wait_take_signal(&w));
	pmf_wait_signal(&w);
	pmf_wait_signal(&w);
	CU_ASSERT(pmf_wait_take_signal(&w));
	CU_ASSERT_FALSE(pmf_wait_take_signal(&w));
	pmf_wait_close(&w);
}

/* A producer publishes numbers; each sleeper waits for every one of them. */
enum { ROUNDS = 20000, SLEEPERS = 2 };

struct race {
	struct pmf_wait wait;
	_Atomic uint32_t published;
	_Atomic uint32_t seen[SLEEPERS];
};

struct sleeper {
	struct race *race;
	int index;
	bool late;
};

static void *sleeper_main(void *arg)
{
	struct sleeper *s = arg;
	struct race *r = s->race;

	for (uint32_t want = 1; want <= ROUNDS; want++) {
		while (atomic_load_explicit(&r->published, memory_order_acquire) < want) {
			uint32_t ticket = pmf_wait_arm(&r->wait);

			if (atomic_load_explicit(&r->published, memory_order_acquire) < want &&
			    pmf_wait_sleep(&r->wait, ticket, 10000))
				s->late = true;
			pmf_wait_disarm(&r->wait);
			if (s->late)
				return NULL;
		}
		atomic_store_explicit(&r->seen[s->index], want, memory_order_release);
	}
	return NULL;
}

static void test_no_wake_up_is_lost_with_two_sleepers(void)
{
	struct race r = {0};
	struct sleeper s[SLEEPERS];
	pthread_t thread[SLEEPERS];
	bool late = false;

	CU_ASSERT_EQUAL_FATAL(pmf_wait_open(&r.wait, FI_WAIT_FD), 0);
	for (int i = 0; i < SLEEPERS; i++) {
		s[i] = (struct sleeper){.race = &r, .index = i};
		pthread_create(&thread[i], NULL, sleeper_main, &s[i]);
	}
	for (uint32_t n = 1; n <= ROUNDS && !late; n++) {
		atomic_store_explicit(&r.published, n, memory_order_release);
		pmf_wait_wake(&r.wait);
		/* the next one only when both have this one: each round is a new chance to miss it
		 */
		for (int i = 0; i < SLEEPERS; i++)
			while (!late && atomic_load_explicit(&r.seen[i], memory_order_acquire) < n)
				late = s[i].late;
	}
	for (int i = 0; i < SLEEPERS; i++) {
		pthread_join(thread[i], NULL);
		CU_ASSERT_FALSE(s[i].late);
	}
	pmf_wait_close(&r.wait);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_objects),
	UNIT_TEST(test_the_descriptor_is_written_only_when_asked_for),
	UNIT_TEST(test_a_wake_up_between_arming_and_sleeping_is_not_lost),
	UNIT_TEST(test_a_signal_is_kept_and_taken_once),
	UNIT_TEST(test_no_wake_up_is_lost_with_two_sleepers),
};
UNIT_MAIN("completion wait")
