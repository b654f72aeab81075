/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Counters and poll sets: rows D8, D10, and A4 as far as it counts.
 */
#include "fx.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

/* Later headers deprecate some of what is tested here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void wait_value(struct fx *f, struct fid_cntr *c, uint64_t want)
{
	double end = fx_now_ms() + FX_MS;

	while (fi_cntr_read(c) < want && fx_now_ms() < end)
		;
	CU_ASSERT_EQUAL(fi_cntr_read(c), want);
}

static void test_D8_successes_are_counted_suppressed_or_not(void)
{
	struct fx_opt opt = {.counters = true, .tx_bind = FI_SELECTIVE_COMPLETION};
	char tx[4] = "abc", rx[4];
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, 4, f.a.b), 0);
	CU_ASSERT_EQUAL(fi_injectdata(f.a.ep, tx, 4, 1, f.a.b), 0);
	wait_value(&f, f.a.txcntr, 3);
	wait_value(&f, f.b.rxcntr, 3);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.a.txcntr), 0);
	CU_ASSERT_EQUAL(fi_cntr_read(f.a.rxcntr), 0);
	fx_close(&f);
}

static void test_D8_a_held_message_is_not_counted(void)
{
	struct fx_opt opt = {.counters = true};
	char tx[4] = "abc", rx[4];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	wait_value(&f, f.b.rxcntr, 1);
	fx_close(&f);
}

static void test_D8_failures_raise_the_error_value_only(void)
{
	struct fx_opt opt = {.counters = true};
	struct fx_comp c;
	char rx[4];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.b.rxcntr), 1);
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 0);
	fx_close(&f);
}

/* The same of sends; those to peers that are not there are counted in test_life.c. */
static void test_D8_sends_that_are_cancelled(void)
{
	enum { LEN = 1 << 20 };
	struct fx_opt opt = {.msg = true, .counters = true};
	char *tx = malloc(LEN);
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, 0, tx), 0);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.a.txcntr), 1);
	CU_ASSERT_EQUAL(fi_cntr_read(f.a.txcntr), 0);
	fx_close(&f);
	free(tx);
}

static void test_D8_set_add_seterr_adderr(void)
{
	struct fx_opt opt = {.counters = true};
	char tx[4] = "abc", rx[4];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_cntr_set(f.a.txcntr, 10), 0);
	CU_ASSERT_EQUAL(fi_cntr_add(f.a.txcntr, 5), 0);
	CU_ASSERT_EQUAL(fi_cntr_seterr(f.a.txcntr, 2), 0);
	CU_ASSERT_EQUAL(fi_cntr_adderr(f.a.txcntr, 1), 0);
	CU_ASSERT_EQUAL(fi_cntr_read(f.a.txcntr), 15);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.a.txcntr), 3);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	wait_value(&f, f.a.txcntr, 16);
	fx_close(&f);
}

/* One counter for two endpoints and both directions. */
static void test_D8_one_counter_for_many(void)
{
	struct fx_opt opt = {.no_enable = true};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	char tx[4] = "abc", rx[2][4];
	struct fid_cntr *c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_cntr_open(f.domain, &attr, &c, NULL), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(f.a.ep, &c->fid, FI_SEND | FI_RECV), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(f.b.ep, &c->fid, FI_SEND | FI_RECV), 0);
	fx_ep_enable(&f.a);
	fx_ep_enable(&f.b);
	fx_meet(&f);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[0], 4, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx[1], 4, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, NULL), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, 4, NULL, f.b.a, NULL), 0);
	wait_value(&f, c, 4);
	CU_ASSERT_EQUAL(fi_close(&c->fid), -FI_EBUSY);
	fx_ep_close(&f.a);
	fx_ep_close(&f.b);
	CU_ASSERT_EQUAL(fi_close(&c->fid), 0);
	fx_close_domain(&f);
}

/* Each drives progress, and without a wait object nobody can wait. */
static void test_D8_reading_drives_progress(void)
{
	struct fx_opt opt = {.counters = true};
	struct fx f;

	fx_open(&f, &opt);
	FX_DRIVES_PROGRESS(&f, fi_cntr_read(f.b.rxcntr));
	FX_DRIVES_PROGRESS(&f, fi_cntr_readerr(f.b.rxcntr));
	CU_ASSERT_EQUAL(fi_cntr_wait(f.b.rxcntr, 1, 0), -FI_ENOSYS);
	fx_close(&f);
}

struct later {
	struct fid_cntr *c;
	bool error;
};

static void *count_later(void *arg)
{
	struct timespec ts = {.tv_nsec = 20 * 1000000l};
	struct later *l = arg;

	nanosleep(&ts, NULL); /* the waiter is to be asleep; too quick passes all the same */
	if (l->error)
		fi_cntr_adderr(l->c, 1);
	else
		fi_cntr_add(l->c, 1);
	return NULL;
}

static void test_D8_wait(void)
{
	struct fx_opt opt = {.counters = true, .wait_obj = FI_WAIT_FD};
	struct later l = {0};
	pthread_t thread;
	double start;
	struct fx f;

	fx_open(&f, &opt);
	l.c = f.a.txcntr;
	CU_ASSERT_EQUAL(fi_cntr_wait(l.c, 0, -1), 0);
	start = fx_now_ms();
	CU_ASSERT_EQUAL(fi_cntr_wait(l.c, 1, 50), -FI_ETIMEDOUT);
	CU_ASSERT(fx_now_ms() - start >= 49);
	pthread_create(&thread, NULL, count_later, &l);
	CU_ASSERT_EQUAL(fi_cntr_wait(l.c, 1, FX_MS), 0);
	pthread_join(thread, NULL);
	l.error = true;
	pthread_create(&thread, NULL, count_later, &l);
	CU_ASSERT_EQUAL(fi_cntr_wait(l.c, 100, FX_MS), -FI_EAVAIL);
	pthread_join(thread, NULL);
	fx_close(&f);
}

/* fi_trywait and poll(2) on a counter's descriptor, as on a queue's: no wake-up is lost. */
static void test_D8_trywait_and_poll(void)
{
	struct fx_opt opt = {.counters = true, .wait_obj = FI_WAIT_FD};
	struct pollfd p = {.events = POLLIN};
	char tx[4] = "abc", rx[4];
	struct fid *fids[1];
	struct fx f;

	fx_open(&f, &opt);
	fids[0] = &f.b.rxcntr->fid;
	CU_ASSERT_EQUAL_FATAL(fi_control(fids[0], FI_GETWAIT, &p.fd), 0);
	for (uint64_t n = 1; n <= 50; n++) {
		CU_ASSERT_EQUAL(fi_trywait(f.fabric, fids, 1), 0);
		CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 4, f.a.b)), 0);
		CU_ASSERT_EQUAL_FATAL(poll(&p, 1, FX_MS), 1);
		CU_ASSERT_EQUAL(fi_trywait(f.fabric, fids, 1), -FI_EAGAIN);
		CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), n);
	}
	fx_close(&f);
}

static void test_D8_wait_for_a_message(void)
{
	struct fx_opt opt = {.counters = true, .wait_obj = FI_WAIT_FD};
	char tx[4] = "abc", rx[4];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	CU_ASSERT_EQUAL(fi_cntr_wait(f.b.rxcntr, 1, FX_MS), 0);
	CU_ASSERT_STRING_EQUAL(rx, "abc");
	fx_close(&f);
}

static void test_D10_poll_set(void)
{
	struct fx_opt opt = {.counters = true};
	struct fi_poll_attr attr = {0};
	char tx[4] = "abc", rx[4];
	struct fid_poll *set;
	void *ready[4];
	struct fx_comp c;
	struct fx f;
	double end;
	int n = 0;

	fx_open(&f, &opt);
	f.b.rxcq->fid.context = &f.b;
	f.b.rxcntr->fid.context = &f;
	CU_ASSERT_EQUAL_FATAL(fi_poll_open(f.domain, &attr, &set), 0);
	CU_ASSERT_EQUAL(fi_poll_add(set, &f.b.rxcq->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_poll_add(set, &f.b.rxcntr->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_poll_add(set, &f.b.ep->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_poll(set, ready, 4), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	/* polling alone drives it */
	end = fx_now_ms() + FX_MS;
	while (n < 2 && fx_now_ms() < end)
		n = fi_poll(set, ready, 4);
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT(ready[0] == &f.b && ready[1] == &f);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fi_cntr_read(f.b.rxcntr);
	CU_ASSERT_EQUAL(fi_poll(set, ready, 4), 0);
	CU_ASSERT_EQUAL(fi_poll_del(set, &f.b.rxcq->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_close(&set->fid), 0);
	fx_close(&f);
}

static void test_D10_members(void)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_domain *other;
	struct fid_cntr *mine, *foreign;
	struct fi_poll_attr none = {0};
	struct fid_poll *set;
	void *ready[2];
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f.fabric, f.info, &other, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_cntr_open(f.domain, &attr, &mine, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_cntr_open(other, &attr, &foreign, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_poll_open(f.domain, &none, &set), 0);
	CU_ASSERT_EQUAL(fi_poll_add(set, &foreign->fid, 0), -FI_EDOMAIN);
	CU_ASSERT_EQUAL(fi_poll_add(set, &mine->fid, 1), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_poll_add(set, &mine->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_close(&mine->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_poll_del(set, &foreign->fid, 0), -FI_EINVAL);
	/* an error alone is a change */
	CU_ASSERT_EQUAL(fi_cntr_adderr(mine, 1), 0);
	CU_ASSERT_EQUAL(fi_poll(set, ready, 2), 1);
	CU_ASSERT_EQUAL(fi_poll_del(set, &mine->fid, 0), 0);
	FX_DRIVES_PROGRESS(&f, CU_ASSERT_EQUAL(fi_poll(set, ready, 2), 0));
	CU_ASSERT_EQUAL(fi_poll_add(set, &mine->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&set->fid), 0); /* with a member */
	CU_ASSERT_EQUAL(fi_close(&mine->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&foreign->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&other->fid), 0);
	fx_close_domain(&f);
}

static void test_D10_wait_sets_are_not_offered(void)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_wait *set;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL(fi_wait_open(f.fabric, &attr, &set), -FI_ENOSYS);
	fx_close_domain(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_D8_successes_are_counted_suppressed_or_not),
	FX_TEST(test_D8_a_held_message_is_not_counted),
	FX_TEST(test_D8_failures_raise_the_error_value_only),
	FX_TEST(test_D8_sends_that_are_cancelled),
	FX_TEST(test_D8_set_add_seterr_adderr),
	FX_TEST(test_D8_one_counter_for_many),
	FX_TEST(test_D8_reading_drives_progress),
	FX_TEST(test_D8_wait),
	FX_TEST(test_D8_trywait_and_poll),
	FX_TEST(test_D8_wait_for_a_message),
	FX_TEST(test_D10_poll_set),
	FX_TEST(test_D10_members),
	FX_TEST(test_D10_wait_sets_are_not_offered),
};
FX_MAIN("counters")
