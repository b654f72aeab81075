/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Multi-receive buffers: row B5, and what of A9, C1, C5, F1 is said of them.
 */
#include "fx.h"

/* Post @p len bytes of @p buf for several messages. */
static ssize_t post_multi(struct fid_ep *ep, void *buf, size_t len, void *ctx, uint64_t flags)
{
	struct iovec iov = {buf, len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = ctx};

	return fi_recvmsg(ep, &msg, flags | FI_MULTI_RECV);
}

static void set_min(struct fid_ep *ep, size_t min)
{
	size_t got = 77, len = sizeof(got);

	CU_ASSERT_EQUAL(
		fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)), 0);
	CU_ASSERT_EQUAL(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len), 0);
	CU_ASSERT_EQUAL(got, min);
}

static void send_one(struct fx *f, size_t len, unsigned int seed)
{
	char *tx = malloc(len + 1);
	struct fx_comp c;

	fx_fill(tx, len, seed);
	CU_ASSERT_EQUAL(FX_RETRY(f, fi_send(f->a.ep, tx, len, NULL, f->a.b, tx)), 0);
	FX_WAIT_OK(f, f->a.txcq, tx, &c);
	free(tx);
}

/* The next entry of b: @p len bytes at @p at, with the flag of a released buffer or without. */
static void expect_part(struct fx *f, void *ctx, char *at, size_t len, unsigned int seed, bool last)
{
	struct fx_comp c;

	FX_WAIT_OK(f, f->b.rxcq, ctx, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | (last ? FI_MULTI_RECV : 0));
	CU_ASSERT_EQUAL(c.e.len, len);
	CU_ASSERT_PTR_EQUAL(c.e.buf, at);
	CU_ASSERT(fx_same(at, len, seed));
}

static void test_B5_messages_are_packed_without_padding(void)
{
	static const size_t len[] = {100, 1, 0, 33, 5000, 7};
	char rx[8192];
	size_t at = 0;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT(f.info->caps & FI_MULTI_RECV);
	CU_ASSERT(f.info->rx_attr->caps & FI_MULTI_RECV);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	for (unsigned int i = 0; i < 6; i++)
		send_one(&f, len[i], i);
	for (unsigned int i = 0; i < 6; i++) {
		expect_part(&f, rx, rx + at, len[i], i, false);
		at += len[i];
	}
	fx_close(&f);
}

static void test_B5_released_when_less_than_the_minimum_is_left(void)
{
	char rx[2][300];
	struct fx f;

	fx_open(&f, NULL);
	set_min(f.b.ep, 100);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx[0], 300, rx[0], 0), 0);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx[1], 300, rx[1], 0), 0);
	send_one(&f, 200, 1); /* 100 are left: just enough */
	send_one(&f, 1, 2);   /* 99 are left */
	send_one(&f, 50, 3);
	expect_part(&f, rx[0], rx[0], 200, 1, false);
	expect_part(&f, rx[0], rx[0] + 200, 1, 2, true);
	expect_part(&f, rx[1], rx[1], 50, 3, false);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static void test_B5_a_minimum_of_0_acts_as_1(void)
{
	char rx[64];
	struct fx f;

	fx_open(&f, NULL);
	set_min(f.b.ep, 0);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	send_one(&f, 63, 1);
	send_one(&f, 1, 2);
	expect_part(&f, rx, rx, 63, 1, false);
	expect_part(&f, rx, rx + 63, 1, 2, true);
	fx_close(&f);
}

static void test_B5_the_minimum_acts_on_later_buffers(void)
{
	char rx[2][100];
	struct fx f;

	fx_open(&f, NULL);
	set_min(f.b.ep, 10);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx[0], 100, rx[0], 0), 0);
	set_min(f.b.ep, 60);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx[1], 100, rx[1], 0), 0);
	for (unsigned int i = 0; i < 3; i++)
		send_one(&f, 45, i);
	expect_part(&f, rx[0], rx[0], 45, 0, false);
	expect_part(&f, rx[0], rx[0] + 45, 45, 1, false); /* 10 are left */
	/* the third does not fit: cut, and the buffer is released */
	{
		struct fx_comp c;

		FX_WAIT_ERR(&f, f.b.rxcq, rx[0], FI_ETRUNC, &c);
		CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
		CU_ASSERT_EQUAL(c.err.len, 10);
		CU_ASSERT_EQUAL(c.err.olen, 35);
		CU_ASSERT_PTR_EQUAL(c.err.buf, rx[0] + 90);
	}
	send_one(&f, 45, 4);
	expect_part(&f, rx[1], rx[1], 45, 4, true); /* 55 are fewer than 60 */
	fx_close(&f);
}

static void test_B5_a_buffer_below_the_minimum_takes_one_message(void)
{
	char rx[64];
	struct fx f;

	fx_open(&f, NULL);
	set_min(f.b.ep, 1000);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	send_one(&f, 3, 1);
	expect_part(&f, rx, rx, 3, 1, true);
	fx_close(&f);
}

static void test_B5_more_than_one_piece_is_refused(void)
{
	char rx[64];
	struct iovec iov[2] = {{rx, 32}, {rx + 32, 32}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC};
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	fx_close(&f);
}

static void test_B5_by_default_flags_and_not_by_a_call_without(void)
{
	struct fx_opt opt = {.rx_op_flags = FI_MULTI_RECV};
	char multi[256], plain[256];
	struct iovec iov = {plain, sizeof(plain)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = plain};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, 0), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, multi, sizeof(multi), NULL, FI_ADDR_UNSPEC, multi), 0);
	for (unsigned int i = 0; i < 3; i++)
		send_one(&f, 10, i);
	FX_WAIT_OK(&f, f.b.rxcq, plain, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG);
	expect_part(&f, multi, multi, 10, 1, false);
	expect_part(&f, multi, multi + 10, 10, 2, false);
	fx_close(&f);
}

static void test_B5_the_last_entry_comes_under_selective_completion(void)
{
	struct fx_opt opt = {.rx_bind = FI_SELECTIVE_COMPLETION};
	char rx[100];
	struct fx f;

	fx_open(&f, &opt);
	set_min(f.b.ep, 20);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	send_one(&f, 40, 1);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	send_one(&f, 45, 2);
	expect_part(&f, rx, rx + 40, 45, 2, true);
	CU_ASSERT(fx_same(rx, 40, 1));
	fx_close(&f);
}

static void test_B5_unexpected_messages_fill_it(void)
{
	char rx[1000];
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int i = 0; i < 5; i++)
		send_one(&f, 100, i);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	for (unsigned int i = 0; i < 5; i++)
		expect_part(&f, rx, rx + 100 * i, 100, i, false);
	fx_close(&f);
}

/* Large messages come by invitation; several are on their way into the buffer at once. */
static void test_B5_large_messages_side_by_side(void)
{
	enum { LEN = 200000, N = 4 };
	char *tx[N], *rx = malloc(N * LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, N * LEN, rx, 0), 0);
	for (unsigned int i = 0; i < N; i++) {
		tx[i] = malloc(LEN);
		fx_fill(tx[i], LEN, i);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx[i], LEN, NULL, f.a.b, tx[i]), 0);
	}
	for (unsigned int i = 0; i < N; i++)
		expect_part(&f, rx, rx + (size_t)LEN * i, LEN, i, i == N - 1);
	for (unsigned int i = 0; i < N; i++) {
		CU_ASSERT(fx_wait(&f, f.a.txcq, &c));
		free(tx[i]);
	}
	fx_close(&f);
	free(rx);
}

/* Entries wait in their parts while the queue is full, until no part is free. */
static void more_messages_than_parts(double quiet_ms)
{
	struct fx_opt opt = {.rx_size = 8, .cq_size = 8};
	enum { N = 500 };
	char *rx = malloc(N * 8), late[8];
	double end;
	struct fx f;

	fx_open(&f, &opt);
	set_min(f.b.ep, 1);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, N * 8, rx, 0), 0);
	for (unsigned int i = 0; i < N; i++) {
		char tx[8];

		fx_fill(tx, 8, i);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 8, f.a.b)), 0);
	}
	/* what is posted later must not overtake the buffer */
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, late, 8, NULL, FI_ADDR_UNSPEC, late), 0);
	end = fx_now_ms() + quiet_ms;
	while (fx_now_ms() < end)
		fx_progress(&f);
	for (unsigned int i = 0; i < N; i++)
		expect_part(&f, rx, rx + (size_t)8 * i, 8, i, i == N - 1);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
	free(rx);
}

static void test_B5_more_messages_than_parts_lose_nothing(void)
{
	more_messages_than_parts(0);
}

/* The engine stops looking at an endpoint that has not posted for 20 ms. */
static void test_B5_more_messages_than_parts_after_a_quiet_while(void)
{
	more_messages_than_parts(100);
}

/* Half of a message is there: no cancel yet (C5); and then its sender goes. */
static void test_B5_an_error_releases_it(void)
{
	enum { LEN = 64 << 20 };
	char *tx = calloc(1, LEN), *rx = calloc(2, LEN);
	double end = fx_now_ms() + FX_MS;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	tx[0] = 1;
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, 2ul * LEN, rx, 0), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	while (!fx_peek(rx) && fx_now_ms() < end)
		fx_progress(&f);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx), -FI_EAGAIN);
	fx_ep_close(&f.a);
	CU_ASSERT_FATAL(fx_wait(&f, f.b.rxcq, &c));
	CU_ASSERT_EQUAL(c.err.err, f.opt.msg ? FI_ECANCELED : FI_ECONNABORTED);
	CU_ASSERT_PTR_EQUAL(c.err.op_context, rx);
	CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	CU_ASSERT(c.err.len < LEN);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_B5_closing_writes_no_entry(void)
{
	char rx[1000];
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	send_one(&f, 10, 1);
	expect_part(&f, rx, rx, 10, 1, false);
	CU_ASSERT_EQUAL(fi_close(&f.b.ep->fid), 0);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	/* its queues are left to close */
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &f.b.ep, NULL), 0);
	fx_close(&f);
}

static void test_C5_cancel_gives_the_buffer_back(void)
{
	char rx[1000];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(post_multi(f.b.ep, rx, sizeof(rx), rx, 0), 0);
	send_one(&f, 10, 1);
	expect_part(&f, rx, rx, 10, 1, false);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	memset(rx, 0x11, sizeof(rx));
	send_one(&f, 10, 2);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_EQUAL(rx[0], 0x11);
	CU_ASSERT_EQUAL(rx[10], 0x11);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B5_messages_are_packed_without_padding),
	FX_TEST(test_B5_released_when_less_than_the_minimum_is_left),
	FX_TEST(test_B5_a_minimum_of_0_acts_as_1),
	FX_TEST(test_B5_the_minimum_acts_on_later_buffers),
	FX_TEST(test_B5_a_buffer_below_the_minimum_takes_one_message),
	FX_TEST(test_B5_more_than_one_piece_is_refused),
	FX_TEST(test_B5_by_default_flags_and_not_by_a_call_without),
	FX_TEST(test_B5_the_last_entry_comes_under_selective_completion),
	FX_TEST(test_B5_unexpected_messages_fill_it),
	FX_TEST(test_B5_large_messages_side_by_side),
	FX_TEST(test_B5_more_messages_than_parts_lose_nothing),
	FX_TEST(test_B5_more_messages_than_parts_after_a_quiet_while),
	FX_TEST(test_B5_an_error_releases_it),
	FX_TEST(test_B5_closing_writes_no_entry),
	FX_TEST(test_C5_cancel_gives_the_buffer_back),
};
FX_MAIN("multi-receive")
