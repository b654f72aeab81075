/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/cq.h"

#include <pthread.h>
#include <stdlib.h>

#include "../unit.h"

#define API FI_VERSION(1, 17)

static struct pmf_cq *open_cq(enum fi_cq_format format, size_t size, bool locked)
{
	struct fi_cq_attr attr = {.format = format, .size = size};
	struct pmf_cq *cq = aligned_alloc(PMF_CACHE_LINE, sizeof(*cq));

	CU_ASSERT_PTR_NOT_NULL_FATAL(cq);
	CU_ASSERT_EQUAL_FATAL(pmf_cq_init(cq, &attr, locked), 0);
	return cq;
}

static void close_cq(struct pmf_cq *cq)
{
	pmf_cq_fini(cq);
	free(cq);
}

static struct pmf_cqe entry(uintptr_t n, int err)
{
	return (struct pmf_cqe){
		.context = (void *)n,
		.flags = FI_RECV | FI_MSG,
		.len = 100 + n,
		.buf = (void *)(n + 1),
		.data = 1000 + n,
		.src = 7 + n,
		.olen = err ? 50 : 0,
		.err = err,
	};
}

static void write_entry(struct pmf_cq_feed *feed, uintptr_t n, int err)
{
	struct pmf_cqe e = entry(n, err);

	CU_ASSERT(pmf_cq_feed_write(feed, &e));
}

static void test_an_unbound_queue_is_empty(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 8, false);
	struct fi_cq_err_entry err = {0};
	struct fi_cq_entry e;

	CU_ASSERT_EQUAL(pmf_cq_take(cq, &e, 1, NULL), -FI_EAGAIN);
	CU_ASSERT_EQUAL(pmf_cq_take_err(cq, &err, 0, API, NULL), -FI_EAGAIN);
	CU_ASSERT(pmf_cq_is_empty(cq));
	close_cq(cq);
}

static void test_each_format_gets_its_fields(void)
{
	static const enum fi_cq_format formats[] = {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
						    FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED};
	static const size_t sizes[] = {sizeof(struct fi_cq_entry), sizeof(struct fi_cq_msg_entry),
				       sizeof(struct fi_cq_data_entry),
				       sizeof(struct fi_cq_tagged_entry)};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(formats); i++) {
		struct pmf_cq *cq = open_cq(formats[i], 8, false);
		struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
		uint8_t buf[4 * sizeof(struct fi_cq_tagged_entry)];
		struct fi_cq_tagged_entry e[2];
		fi_addr_t src[2];

		write_entry(feed, 1, 0);
		write_entry(feed, 2, 0);
		memset(buf, 0xee, sizeof(buf));
		CU_ASSERT_EQUAL(pmf_cq_take(cq, buf, 2, src), 2);
		for (int k = 0; k < 2; k++) {
			memset(&e[k], 0, sizeof(e[k]));
			memcpy(&e[k], buf + k * sizes[i], sizes[i]);
			CU_ASSERT_EQUAL((uintptr_t)e[k].op_context, (uintptr_t)k + 1);
			CU_ASSERT_EQUAL(src[k], (fi_addr_t)k + 8);
		}
		/* not a byte more than two entries */
		CU_ASSERT_EQUAL(buf[2 * sizes[i]], 0xee);
		if (formats[i] >= FI_CQ_FORMAT_MSG) {
			CU_ASSERT_EQUAL(e[1].flags, FI_RECV | FI_MSG);
			CU_ASSERT_EQUAL(e[1].len, 102);
		}
		if (formats[i] >= FI_CQ_FORMAT_DATA) {
			CU_ASSERT_EQUAL((uintptr_t)e[1].buf, 3);
			CU_ASSERT_EQUAL(e[1].data, 1002);
		}
		close_cq(cq);
	}
}

static void test_unspecified_format_is_context(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_UNSPEC, 8, false);

	CU_ASSERT_EQUAL(cq->format, FI_CQ_FORMAT_CONTEXT);
	close_cq(cq);
}

static void test_entries_before_an_error_come_first(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 16, false);
	struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
	struct fi_cq_err_entry err = {0};
	struct fi_cq_entry e[8];

	write_entry(feed, 1, 0);
	write_entry(feed, 2, 0);
	write_entry(feed, 3, FI_ETRUNC);
	write_entry(feed, 4, 0);
	CU_ASSERT_EQUAL(pmf_cq_take_err(cq, &err, 0, API, NULL), -FI_EAGAIN);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, e, 8, NULL), 2);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, e, 8, NULL), -FI_EAVAIL);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, e, 8, NULL), -FI_EAVAIL);
	CU_ASSERT_EQUAL(pmf_cq_take_err(cq, &err, 0, API, NULL), 1);
	CU_ASSERT_EQUAL((uintptr_t)err.op_context, 3);
	CU_ASSERT_EQUAL(err.err, FI_ETRUNC);
	CU_ASSERT_EQUAL(err.prov_errno, FI_ETRUNC);
	CU_ASSERT_EQUAL(err.len, 103);
	CU_ASSERT_EQUAL(err.olen, 50);
	CU_ASSERT_EQUAL(err.flags, FI_RECV | FI_MSG);
	CU_ASSERT_EQUAL(err.data, 1003);
	CU_ASSERT_EQUAL(pmf_cq_take_err(cq, &err, 0, API, NULL), -FI_EAGAIN);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, e, 8, NULL), 1);
	CU_ASSERT_EQUAL((uintptr_t)e[0].op_context, 4);
	close_cq(cq);
}

static void test_count_0_tells_and_takes_nothing(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 16, false);
	struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
	struct fi_cq_entry e;

	CU_ASSERT_EQUAL(pmf_cq_take(cq, NULL, 0, NULL), -FI_EAGAIN);
	write_entry(feed, 1, 0);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, NULL, 0, NULL), 0);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, &e, 1, NULL), 1);
	write_entry(feed, 2, FI_EIO);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, NULL, 0, NULL), 0);
	close_cq(cq);
}

static void test_a_full_ring_refuses_and_keeps_what_it_has(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 5, false);
	struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
	struct fi_cq_entry e;
	struct pmf_cqe more = entry(99, 0);

	for (uintptr_t i = 0; i < 5; i++)
		write_entry(feed, i, 0);
	CU_ASSERT_FALSE(pmf_cq_feed_write(feed, &more));
	for (uintptr_t i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(pmf_cq_take(cq, &e, 1, NULL), 1);
		CU_ASSERT_EQUAL((uintptr_t)e.op_context, i);
	}
	CU_ASSERT_EQUAL(pmf_cq_take(cq, &e, 1, NULL), -FI_EAGAIN);
	CU_ASSERT(pmf_cq_feed_write(feed, &more));
	close_cq(cq);
}

static void test_feeds_are_taken_in_turn(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 256, false);
	struct pmf_cq_feed *one = pmf_cq_feed_get(cq, &cq->size);
	struct pmf_cq_feed *two = pmf_cq_feed_get(cq, &cq->format);
	struct fi_cq_entry e;
	bool both[2] = {false};

	CU_ASSERT_PTR_NOT_EQUAL(one, two);
	for (uintptr_t i = 0; i < 200; i++)
		write_entry(one, 1, 0);
	write_entry(two, 2, 0);
	/* a full ring does not starve the other: it is there within two stashes */
	for (int i = 0; i < 2 * PMF_CQ_STASH; i++) {
		CU_ASSERT_EQUAL(pmf_cq_take(cq, &e, 1, NULL), 1);
		both[(uintptr_t)e.op_context - 1] = true;
	}
	CU_ASSERT(both[0] && both[1]);
	close_cq(cq);
}

static void test_a_feed_is_shared_and_outlives_its_users(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 8, false);
	struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
	struct fi_cq_entry e;

	CU_ASSERT_PTR_EQUAL(pmf_cq_feed_get(cq, cq), feed);
	CU_ASSERT_EQUAL(feed->refs, 2);
	write_entry(feed, 5, 0);
	pmf_cq_feed_put(feed);
	pmf_cq_feed_put(feed);
	CU_ASSERT_EQUAL(pmf_cq_take(cq, &e, 1, NULL), 1);
	CU_ASSERT_PTR_EQUAL(pmf_cq_feed_get(cq, cq), feed);
	close_cq(cq);
}

static void test_too_many_feeds(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 1, false);

	for (uintptr_t i = 1; i <= PMF_MAX_FEEDS; i++)
		CU_ASSERT_PTR_NOT_NULL(pmf_cq_feed_get(cq, (void *)i));
	CU_ASSERT_PTR_NULL(pmf_cq_feed_get(cq, (void *)(uintptr_t)(PMF_MAX_FEEDS + 1)));
	close_cq(cq);
}

static void test_error_data_of_the_callers_version(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 8, false);
	struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
	char room[16];
	struct fi_cq_err_entry err = {.err_data = room, .err_data_size = sizeof(room)};

	/* room given: it stays the caller's, and nothing was copied into it */
	write_entry(feed, 1, FI_EIO);
	CU_ASSERT_EQUAL(pmf_cq_take_err(cq, &err, 0, API, NULL), 1);
	CU_ASSERT_PTR_EQUAL(err.err_data, room);
	CU_ASSERT_EQUAL(err.err_data_size, 0);
	/* before 1.5 there was no size: that field is not ours to write */
	write_entry(feed, 2, FI_EIO);
	err.err_data_size = 0xabcd;
	CU_ASSERT_EQUAL(pmf_cq_take_err(cq, &err, 0, FI_VERSION(1, 4), NULL), 1);
	CU_ASSERT_EQUAL(err.err_data_size, 0xabcd);
	CU_ASSERT_PTR_NULL(err.err_data);
	close_cq(cq);
}

static void test_every_error_has_a_sentence(void)
{
	/* with which operations end: a whole sentence, not the name of the number */
	static const int ends[] = {FI_ETRUNC,	    FI_ECANCELED,    FI_EADDRNOTAVAIL,
				   FI_ETIMEDOUT,    FI_EHOSTUNREACH, FI_ENETUNREACH,
				   FI_ECONNRESET,   FI_ECONNABORTED, FI_ECONNREFUSED,
				   FI_EKEYREJECTED, FI_ENOMEM,	     FI_EIO};
	char buf[8];

	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const char *text = pmf_cq_strerror(NULL, ends[i], NULL, NULL, 0);

		CU_ASSERT_STRING_NOT_EQUAL(text, fi_strerror(ends[i]));
		CU_ASSERT_EQUAL(text[strlen(text) - 1], '.');
	}
	for (int e = -1; e < FI_ERRNO_MAX; e++) {
		const char *text = pmf_cq_strerror(NULL, e, NULL, NULL, 0);

		CU_ASSERT_PTR_NOT_NULL_FATAL(text);
		CU_ASSERT(strlen(text) > 0);
	}
	CU_ASSERT_PTR_EQUAL(pmf_cq_strerror(NULL, FI_ETRUNC, NULL, buf, sizeof(buf)), buf);
	CU_ASSERT_EQUAL(strlen(buf), sizeof(buf) - 1);
}

static void test_bad_attributes_are_refused(void)
{
	struct pmf_cq *cq = aligned_alloc(PMF_CACHE_LINE, sizeof(*cq));
	struct fi_cq_attr attr = {.size = SIZE_MAX};

	CU_ASSERT_EQUAL(pmf_cq_init(cq, &attr, false), -EINVAL);
	attr = (struct fi_cq_attr){.format = 99};
	CU_ASSERT_EQUAL(pmf_cq_init(cq, &attr, false), -EINVAL);
	attr = (struct fi_cq_attr){.wait_obj = FI_WAIT_SET};
	CU_ASSERT_EQUAL(pmf_cq_init(cq, &attr, false), -EINVAL);
	attr = (struct fi_cq_attr){.wait_obj = FI_WAIT_MUTEX_COND};
	CU_ASSERT_EQUAL(pmf_cq_init(cq, &attr, false), -EINVAL);
	free(cq);
}

/* ---- several readers ---- */

enum { ENTRIES = 100000, READERS = 3 };

struct reader {
	pthread_t thread;
	struct pmf_cq *cq;
	_Atomic uint32_t *total;
	uint8_t *seen;
	bool bad;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct fi_cq_entry e[4];

	while (atomic_load(r->total) < ENTRIES) {
		ssize_t n = pmf_cq_take(r->cq, e, 4, NULL);

		for (ssize_t i = 0; i < n; i++)
			if (r->seen[(uintptr_t)e[i].op_context]++)
				r->bad = true;
		if (n > 0)
			atomic_fetch_add(r->total, (uint32_t)n);
		else if (n != -FI_EAGAIN)
			r->bad = true;
		else
			sched_yield();
	}
	return NULL;
}

static void test_several_readers_take_each_entry_once(void)
{
	struct pmf_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, 64, true);
	struct pmf_cq_feed *feed = pmf_cq_feed_get(cq, cq);
	uint8_t *seen = calloc(ENTRIES, 1);
	struct reader r[READERS] = {0};
	_Atomic uint32_t total = 0;

	for (int i = 0; i < READERS; i++) {
		r[i] = (struct reader){.cq = cq, .total = &total, .seen = seen};
		pthread_create(&r[i].thread, NULL, reader_main, &r[i]);
	}
	for (uintptr_t n = 0; n < ENTRIES;) {
		struct pmf_cqe e = entry(n, 0);

		if (pmf_cq_feed_write(feed, &e))
			n++;
		else
			sched_yield();
	}
	for (int i = 0; i < READERS; i++) {
		pthread_join(r[i].thread, NULL);
		CU_ASSERT_FALSE(r[i].bad);
	}
	CU_ASSERT_EQUAL(atomic_load(&total), ENTRIES);
	CU_ASSERT(pmf_cq_is_empty(cq));
	free(seen);
	close_cq(cq);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_an_unbound_queue_is_empty),
	UNIT_TEST(test_each_format_gets_its_fields),
	UNIT_TEST(test_unspecified_format_is_context),
	UNIT_TEST(test_entries_before_an_error_come_first),
	UNIT_TEST(test_count_0_tells_and_takes_nothing),
	UNIT_TEST(test_a_full_ring_refuses_and_keeps_what_it_has),
	UNIT_TEST(test_feeds_are_taken_in_turn),
	UNIT_TEST(test_a_feed_is_shared_and_outlives_its_users),
	UNIT_TEST(test_too_many_feeds),
	UNIT_TEST(test_error_data_of_the_callers_version),
	UNIT_TEST(test_every_error_has_a_sentence),
	UNIT_TEST(test_bad_attributes_are_refused),
	UNIT_TEST(test_several_readers_take_each_entry_once),
};
UNIT_MAIN("completion cq")
