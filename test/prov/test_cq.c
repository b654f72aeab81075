/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Completion queues: rows D1 to D7.
 */
#include "fx.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

static void post(struct fx *f, char *rx, size_t len)
{
	CU_ASSERT_EQUAL(fi_recv(f->b.ep, rx, len, NULL, FI_ADDR_UNSPEC, rx), 0);
}

static void format_is(enum fi_cq_format format)
{
	struct fx_opt opt = {.format = format};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(fi_senddata(f.a.ep, tx, 4, NULL, 5, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	if (format >= FI_CQ_FORMAT_MSG) {
		CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
		CU_ASSERT_EQUAL(c.e.len, 4);
	}
	if (format >= FI_CQ_FORMAT_DATA)
		CU_ASSERT_EQUAL(c.e.data, 5);
	fx_close(&f);
}

static void test_D1_formats(void)
{
	format_is(FI_CQ_FORMAT_CONTEXT);
	format_is(FI_CQ_FORMAT_MSG);
	format_is(FI_CQ_FORMAT_DATA);
	format_is(FI_CQ_FORMAT_TAGGED);
}

static void test_D1_unspecified_format_is_told(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_UNSPEC};
	struct fid_cq *cq;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f.domain, &attr, &cq, NULL), 0);
	CU_ASSERT_NOT_EQUAL(attr.format, FI_CQ_FORMAT_UNSPEC);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	fx_close_domain(&f);
}

static void test_D2_a_queue_that_is_not_bound(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA};
	struct fi_cq_err_entry err = {0};
	struct fi_cq_data_entry e;
	struct fid_cq *cq;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f.domain, &attr, &cq, NULL), 0);
	CU_ASSERT_EQUAL(fi_cq_read(cq, &e, 1), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fi_cq_read(cq, NULL, 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fi_cq_readerr(cq, &err, 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	fx_close_domain(&f);
}

static void test_D2_count_0_drives_progress(void)
{
	struct fx f;

	fx_open(&f, NULL);
	FX_DRIVES_PROGRESS(&f, CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, NULL, 0), -FI_EAGAIN));
	fx_close(&f);
}

static void test_D2_entries_before_an_error_come_first(void)
{
	char tx[8] = "abc", rx[3][8];
	struct fi_cq_data_entry e[8];
	struct fi_cq_err_entry err = {0};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	post(&f, rx[0], 8);
	post(&f, rx[1], 2);
	post(&f, rx[2], 8);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 8, NULL, f.a.b, tx), 0);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	}
	CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, NULL, 0), 0);
	CU_ASSERT_EQUAL(fi_cq_readerr(f.b.rxcq, &err, 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, e, 8), 1);
	CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, e, 8), -FI_EAVAIL);
	CU_ASSERT_EQUAL(fi_cq_readerr(f.b.rxcq, &err, 0), 1);
	CU_ASSERT_PTR_EQUAL(err.op_context, rx[1]);
	CU_ASSERT(err.err > 0);
	CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, e, 8), 1);
	CU_ASSERT_PTR_EQUAL(e[0].op_context, rx[2]);
	fx_close(&f);
}

static void test_D3_error_data_and_a_sentence(void)
{
	char tx[8] = "abc", rx[2], room[8], text[128];
	struct fi_cq_err_entry err = {.err_data = room, .err_data_size = sizeof(room)};
	struct fx_comp c;
	struct fx f;
	double end;

	fx_open(&f, NULL);
	post(&f, rx, 2);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 8, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	end = fx_now_ms() + FX_MS;
	while (fi_cq_readerr(f.b.rxcq, &err, 0) != 1 && fx_now_ms() < end)
		fx_progress(&f);
	CU_ASSERT_EQUAL(err.err, FI_ETRUNC);
	CU_ASSERT_PTR_EQUAL(err.err_data, room);
	CU_ASSERT_EQUAL(err.err_data_size, 0); /* as many as were copied */
	CU_ASSERT_PTR_EQUAL(
		fi_cq_strerror(f.b.rxcq, err.prov_errno, err.err_data, text, sizeof(text)), text);
	CU_ASSERT(strlen(text) > 10);
	CU_ASSERT_PTR_NOT_NULL(fi_cq_strerror(f.b.rxcq, 12345, NULL, NULL, 0));
	fx_close(&f);
}

/* A queue much smaller than what completes: everything comes to who reads on. */
static void test_D4_nothing_is_lost_when_the_queue_is_full(void)
{
	enum { N = 500 };
	struct fx_opt opt = {.cq_size = 4, .rx_size = N};
	uint32_t tx[N], rx[N];
	struct fx_comp c;
	struct fx f;
	unsigned int sent = 0, done = 0, got = 0;

	fx_open(&f, &opt);
	for (uint32_t i = 0; i < N; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, &rx[i], 4, NULL, FI_ADDR_UNSPEC, &rx[i]), 0);
	/* nobody reads the receiver's queue while all is sent */
	while (sent < N || done < N) {
		if (sent < N) {
			tx[sent] = sent;
			if (fi_send(f.a.ep, &tx[sent], 4, NULL, f.a.b, &tx[sent]) == 0) {
				sent++;
				continue;
			}
		}
		FX_WAIT_OK(&f, f.a.txcq, &tx[done], &c);
		done++;
	}
	for (; got < N; got++) {
		FX_WAIT_OK(&f, f.b.rxcq, &rx[got], &c);
		CU_ASSERT_EQUAL_FATAL(rx[got], got);
	}
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static void test_D4_errors_are_kept_too(void)
{
	enum { N = 50 };
	struct fx_opt opt = {.cq_size = 2, .rx_bind = FI_SELECTIVE_COMPLETION};
	struct fx_comp c;
	char tx[8] = {0}, rx[N];
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, &rx[i], 1, NULL, FI_ADDR_UNSPEC, &rx[i]), 0);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 8, f.a.b)), 0);
	for (int i = 0; i < N; i++)
		FX_WAIT_ERR(&f, f.b.rxcq, &rx[i], FI_ETRUNC, &c);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

/* ---- waiting ---- */

struct delayed {
	struct fx *f;
	int what; /* 0 send, 1 signal */
};

static void *act_later(void *arg)
{
	struct timespec ts = {.tv_nsec = 20 * 1000000l};
	struct delayed *d = arg;
	static char tx[4] = "abc";

	nanosleep(&ts,
		  NULL); /* the reader is to be asleep; a test that is too quick still passes */
	if (d->what == 1)
		fi_cq_signal(d->f->b.rxcq);
	else
		fi_send(d->f->a.ep, tx, 4, NULL, d->f->a.b, tx);
	return NULL;
}

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void sread_with(enum fi_wait_obj obj, bool auto_progress)
{
	struct fx_opt opt = {.wait_obj = obj, .auto_progress = auto_progress};
	struct fi_cq_data_entry e;
	struct delayed d = {.what = 0};
	pthread_t thread;
	double start, cpu;
	char rx[4];
	struct fx f;

	fx_open(&f, &opt);
	d.f = &f;
	/* the time-out, without a busy processor */
	start = fx_now_ms();
	cpu = cpu_ms();
	CU_ASSERT_EQUAL(fi_cq_sread(f.b.rxcq, &e, 1, NULL, 100), -FI_EAGAIN);
	CU_ASSERT(fx_now_ms() - start >= 99);
	if (obj != FI_WAIT_YIELD)
		CU_ASSERT(cpu_ms() - cpu < 50);
	/* an entry */
	post(&f, rx, 4);
	pthread_create(&thread, NULL, act_later, &d);
	CU_ASSERT_EQUAL(fi_cq_sread(f.b.rxcq, &e, 1, NULL, FX_MS), 1);
	CU_ASSERT_PTR_EQUAL(e.op_context, rx);
	pthread_join(thread, NULL);
	/* a signal, before and while */
	CU_ASSERT_EQUAL(fi_cq_signal(f.b.rxcq), 0);
	start = fx_now_ms();
	CU_ASSERT_EQUAL(fi_cq_sread(f.b.rxcq, &e, 1, NULL, FX_MS), -FI_EAGAIN);
	d.what = 1;
	pthread_create(&thread, NULL, act_later, &d);
	CU_ASSERT_EQUAL(fi_cq_sread(f.b.rxcq, &e, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
	CU_ASSERT(fx_now_ms() - start < FX_MS / 2);
	fx_close(&f);
}

static void test_D5_sread(void)
{
	sread_with(FI_WAIT_UNSPEC, false);
	sread_with(FI_WAIT_FD, false);
	sread_with(FI_WAIT_FD, true);
	sread_with(FI_WAIT_YIELD, false);
}

static void test_D5_without_a_wait_object(void)
{
	struct fi_cq_data_entry e;
	struct fx f;
	int fd;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_cq_sread(f.b.rxcq, &e, 1, NULL, 0), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_cq_signal(f.b.rxcq), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_control(&f.b.rxcq->fid, FI_GETWAIT, &fd), -FI_ENODATA);
	CU_ASSERT_EQUAL(fi_control(&f.b.rxcq->fid, FI_GETWAITOBJ, &fd), -FI_ENODATA);
	fx_close(&f);
}

static void test_D5_the_wait_object_is_told(void)
{
	static const enum fi_wait_obj asked[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD},
				      got[] = {FI_WAIT_FD, FI_WAIT_FD, FI_WAIT_YIELD};
	enum fi_wait_obj obj;
	struct fx f;
	int fd;

	for (unsigned int i = 0; i < 3; i++) {
		struct fx_opt opt = {.wait_obj = asked[i], .counters = true};

		fx_open(&f, &opt);
		CU_ASSERT_EQUAL(fi_control(&f.b.rxcq->fid, FI_GETWAITOBJ, &obj), 0);
		CU_ASSERT_EQUAL(obj, got[i]);
		CU_ASSERT_EQUAL(fi_control(&f.b.rxcntr->fid, FI_GETWAITOBJ, &obj), 0);
		CU_ASSERT_EQUAL(obj, got[i]);
		CU_ASSERT_EQUAL(fi_control(&f.b.rxcq->fid, FI_GETWAIT, &fd),
				obj == FI_WAIT_FD ? 0 : -FI_ENODATA);
		fx_close(&f);
	}
}

/* The condition is the number itself, no pointer; fewer entries may be returned. */
static void test_D5_threshold(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA,
				  .wait_obj = FI_WAIT_FD,
				  .wait_cond = FI_CQ_COND_THRESHOLD};
	struct fi_cq_data_entry e[4];
	struct fid_cq *cq;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f.domain, &attr, &cq, NULL), 0);
	CU_ASSERT_EQUAL(fi_cq_sread(cq, e, 4, (void *)4, 1), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	fx_close_domain(&f);
}

/* fi_cq_sreadfrom sleeps as fi_cq_sread, and names the sender as fi_cq_readfrom (C6). */
static void test_D5_sreadfrom(void)
{
	struct fx_opt opt = {.wait_obj = FI_WAIT_FD, .caps = FI_MSG | FI_SOURCE};
	struct fi_cq_data_entry e;
	fi_addr_t src = 77;
	char rx[4];
	struct fx f;

	if (fx_on_connections())
		opt.caps = 0; /* who the peer is is no question there */
	fx_open(&f, &opt);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, "abc", 4, f.a.b)), 0);
	CU_ASSERT_EQUAL(fi_cq_sreadfrom(f.b.rxcq, &e, 1, &src, NULL, FX_MS), 1);
	CU_ASSERT_EQUAL(src, f.opt.msg ? FI_ADDR_NOTAVAIL : f.b.a);
	fx_close(&f);
}

static void test_D5_wait_objects_that_are_not_offered(void)
{
	static const enum fi_wait_obj bad[] = {FI_WAIT_SET, FI_WAIT_MUTEX_COND, FI_WAIT_POLLFD};
	struct fid_cq *cq;
	struct fx f;

	fx_open_domain(&f, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = bad[i]};

		CU_ASSERT_EQUAL(fi_cq_open(f.domain, &attr, &cq, NULL), -FI_EINVAL);
	}
	fx_close_domain(&f);
}

/* poll(2) on the descriptor, as fi_trywait(3) has it, a thousand times without a lost wake-up. */
static void poll_loop(bool auto_progress)
{
	enum { N = 300 };
	struct fx_opt opt = {.wait_obj = FI_WAIT_FD, .auto_progress = auto_progress};
	struct fi_cq_data_entry e;
	struct pollfd pfd = {.events = POLLIN};
	char tx[4] = "abc", rx[4];
	struct fid *fids[1];
	ssize_t n;
	struct fx f;

	fx_open(&f, &opt);
	fids[0] = &f.b.rxcq->fid;
	CU_ASSERT_EQUAL_FATAL(fi_control(fids[0], FI_GETWAIT, &pfd.fd), 0);
	for (int i = 0; i < N; i++) {
		double end = fx_now_ms() + FX_MS;

		post(&f, rx, 4);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 4, f.a.b)), 0);
		do {
			if (fi_trywait(f.fabric, fids, 1) == 0)
				poll(&pfd, 1, FX_MS);
			n = fi_cq_read(f.b.rxcq, &e, 1);
		} while (n == -FI_EAGAIN && fx_now_ms() < end);
		CU_ASSERT_EQUAL_FATAL(n, 1);
		/* read empty: quiet */
		CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, &e, 1), -FI_EAGAIN);
		CU_ASSERT_EQUAL(poll(&pfd, 1, 0), 0);
	}
	fx_close(&f);
}

static void test_D5_trywait_and_poll(void)
{
	poll_loop(false);
	poll_loop(true);
}

static void test_D5_trywait_says_no_when_something_is_there(void)
{
	struct fx_opt opt = {.wait_obj = FI_WAIT_FD};
	char tx[4] = "abc", rx[4];
	struct fid *fids[1];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	fids[0] = &f.b.rxcq->fid;
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_EQUAL(fi_trywait(f.fabric, fids, 1), -FI_EAGAIN);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(fi_trywait(f.fabric, fids, 1), 0);
	fx_close(&f);
}

static void test_D6_one_queue_for_all(void)
{
	struct fx_opt opt = {.one_cq = true};
	char tx[2][4] = {"abc", "def"}, rx[2][4];
	unsigned int seen = 0;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[0], 4, NULL, FI_ADDR_UNSPEC, rx[0]), 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx[1], 4, NULL, FI_ADDR_UNSPEC, rx[1]), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx[0], 4, NULL, f.a.b, tx[0]), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx[1], 4, NULL, f.b.a, tx[1]), 0);
	for (int i = 0; i < 4; i++) {
		struct fx_comp c;

		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
		for (int k = 0; k < 2; k++) {
			if (c.e.op_context == tx[k] && (c.e.flags & FI_SEND))
				seen |= 1u << k;
			if (c.e.op_context == rx[k] && (c.e.flags & FI_RECV))
				seen |= 4u << k;
		}
	}
	CU_ASSERT_EQUAL(seen, 15);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

/* Accepted = success + error + suppressed, under refusals of all kinds. */
static void test_D7_one_completion_for_each_accepted_operation(void)
{
	enum { N = 3000 };
	struct fx_opt opt = {.tx_size = 32, .rx_size = 64, .cq_size = 16};
	unsigned int accepted = 0, completed = 0, received = 0, posted = 0;
	static char rx[64][16];
	char tx[16] = {0};
	struct fx f;
	double end;

	fx_open(&f, &opt);
	end = fx_now_ms() + FX_MS;
	while ((accepted < N || completed < accepted || received < N) && fx_now_ms() < end) {
		struct fi_cq_data_entry e[8];
		ssize_t n;

		if (accepted < N && fi_send(f.a.ep, tx, 16, NULL, f.a.b, NULL) == 0)
			accepted++;
		if (posted < N &&
		    fi_recv(f.b.ep, rx[posted % 64], 16, NULL, FI_ADDR_UNSPEC, NULL) == 0)
			posted++;
		n = fi_cq_read(f.a.txcq, e, 8);
		completed += n > 0 ? (unsigned int)n : 0;
		n = fi_cq_read(f.b.rxcq, e, 8);
		received += n > 0 ? (unsigned int)n : 0;
	}
	CU_ASSERT_EQUAL(accepted, N);
	CU_ASSERT_EQUAL(completed, N);
	CU_ASSERT_EQUAL(received, N);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_D1_formats),
	FX_TEST(test_D1_unspecified_format_is_told),
	FX_TEST(test_D2_a_queue_that_is_not_bound),
	FX_TEST(test_D2_count_0_drives_progress),
	FX_TEST(test_D2_entries_before_an_error_come_first),
	FX_TEST(test_D3_error_data_and_a_sentence),
	FX_TEST(test_D4_nothing_is_lost_when_the_queue_is_full),
	FX_TEST(test_D4_errors_are_kept_too),
	FX_TEST(test_D5_sread),
	FX_TEST(test_D5_without_a_wait_object),
	FX_TEST(test_D5_threshold),
	FX_TEST(test_D5_sreadfrom),
	FX_TEST(test_D5_the_wait_object_is_told),
	FX_TEST(test_D5_wait_objects_that_are_not_offered),
	FX_TEST(test_D5_trywait_and_poll),
	FX_TEST(test_D5_trywait_says_no_when_something_is_there),
	FX_TEST(test_D6_one_queue_for_all),
	FX_TEST(test_D7_one_completion_for_each_accepted_operation),
};
FX_MAIN("completion queues")
