/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/cntr.h"

#include <stdlib.h>

#include "../unit.h"

static struct pmf_cntr *open_cntr(void)
{
	struct pmf_cntr *c = aligned_alloc(PMF_CACHE_LINE, (sizeof(*c) + 63) & ~(size_t)63);
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};

	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT_EQUAL_FATAL(pmf_cntr_init(c, &attr), 0);
	return c;
}

static void close_cntr(struct pmf_cntr *c)
{
	pmf_cntr_fini(c);
	free(c);
}

static void test_feeds_are_summed(void)
{
	struct pmf_cntr *c = open_cntr();
	struct pmf_cntr_feed *one = pmf_cntr_feed_get(c, &c->bytes);
	struct pmf_cntr_feed *two = pmf_cntr_feed_get(c, &c->domain);

	CU_ASSERT_PTR_NOT_EQUAL(one, two);
	pmf_cntr_feed_ok(one, 100);
	pmf_cntr_feed_ok(two, 100);
	pmf_cntr_feed_ok(two, 100);
	pmf_cntr_feed_err(one);
	CU_ASSERT_EQUAL(pmf_cntr_value(c), 3);
	CU_ASSERT_EQUAL(pmf_cntr_errors(c), 1);
	close_cntr(c);
}

static void test_set_and_add_go_with_what_is_counted(void)
{
	struct pmf_cntr *c = open_cntr();
	struct pmf_cntr_feed *f = pmf_cntr_feed_get(c, c);

	for (int i = 0; i < 10; i++)
		pmf_cntr_feed_ok(f, 1);
	pmf_cntr_set(c, 3);
	CU_ASSERT_EQUAL(pmf_cntr_value(c), 3);
	pmf_cntr_feed_ok(f, 1);
	pmf_cntr_add(c, 5);
	CU_ASSERT_EQUAL(pmf_cntr_value(c), 9);
	CU_ASSERT_EQUAL(pmf_cntr_errors(c), 0);
	pmf_cntr_set_errors(c, 2);
	pmf_cntr_feed_err(f);
	pmf_cntr_add_errors(c, 4);
	CU_ASSERT_EQUAL(pmf_cntr_errors(c), 7);
	CU_ASSERT_EQUAL(pmf_cntr_value(c), 9);
	close_cntr(c);
}

static void test_counts_stay_when_their_endpoint_goes(void)
{
	struct pmf_cntr *c = open_cntr();
	struct pmf_cntr_feed *f = pmf_cntr_feed_get(c, c);

	pmf_cntr_feed_ok(f, 1);
	pmf_cntr_feed_put(f);
	CU_ASSERT_EQUAL(pmf_cntr_value(c), 1);
	CU_ASSERT_PTR_EQUAL(pmf_cntr_feed_get(c, c), f);
	close_cntr(c);
}

static void test_changed_since_it_was_read(void)
{
	struct pmf_cntr *c = open_cntr();
	struct pmf_cntr_feed *f = pmf_cntr_feed_get(c, c);

	CU_ASSERT_FALSE(pmf_cntr_changed(c));
	pmf_cntr_feed_ok(f, 1);
	CU_ASSERT(pmf_cntr_changed(c));
	pmf_cntr_value(c);
	CU_ASSERT_FALSE(pmf_cntr_changed(c));
	pmf_cntr_feed_err(f);
	CU_ASSERT(pmf_cntr_changed(c));
	pmf_cntr_errors(c);
	CU_ASSERT_FALSE(pmf_cntr_changed(c));
	close_cntr(c);
}

static void test_bad_attributes_are_refused(void)
{
	struct fi_cntr_attr attr = {.events = 99};
	struct pmf_cntr c = {0};

	CU_ASSERT_EQUAL(pmf_cntr_init(&c, &attr), -EINVAL);
	attr = (struct fi_cntr_attr){.wait_obj = FI_WAIT_POLLFD};
	CU_ASSERT_EQUAL(pmf_cntr_init(&c, &attr), -EINVAL);
	attr = (struct fi_cntr_attr){.flags = 1};
	CU_ASSERT_EQUAL(pmf_cntr_init(&c, &attr), -EINVAL);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_feeds_are_summed),
	UNIT_TEST(test_set_and_add_go_with_what_is_counted),
	UNIT_TEST(test_counts_stay_when_their_endpoint_goes),
	UNIT_TEST(test_changed_since_it_was_read),
	UNIT_TEST(test_bad_attributes_are_refused),
};
UNIT_MAIN("completion cntr")
