/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The sending calls: rows A1 to A6, A10, A13, A15, A16.
 */
#include "fx.h"

static const fi_addr_t garbage_addr = 0xdeadbeefull;

/* Given a receive of this size; when @p call has sent; then it ends as a success with these bytes.
 */
static void expect_message(struct fx *f, char *rx, size_t len, unsigned int seed, void *rx_ctx)
{
	struct fx_comp c;

	FX_WAIT_OK(f, f->b.rxcq, rx_ctx, &c);
	CU_ASSERT_EQUAL(c.e.len, len);
	CU_ASSERT(fx_same(rx, len, seed));
}

static void test_A1_send_keeps_boundaries(void)
{
	static const size_t sizes[] = {1, 8, 100, 1500, 9000, 65536, 1 << 20};
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	char *tx = malloc(1 << 20), *rx[N];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int i = 0; i < N; i++) {
		rx[i] = malloc(1 << 20);
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[i], 1 << 20, NULL, FI_ADDR_UNSPEC, rx[i]), 0);
	}
	for (unsigned int i = 0; i < N; i++) {
		fx_fill(tx, sizes[i], i);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, sizes[i], NULL, f.a.b, rx[i]), 0);
		FX_WAIT_OK(&f, f.a.txcq, rx[i], &c);
		CU_ASSERT_EQUAL(c.e.flags, FI_SEND | FI_MSG);
	}
	for (unsigned int i = 0; i < N; i++) {
		expect_message(&f, rx[i], sizes[i], i, rx[i]);
		free(rx[i]);
	}
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
	free(tx);
}

static void test_A1_too_long_is_refused(void)
{
	char byte = 0;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT(f.info->ep_attr->max_msg_size >= 1ull << 30);
	CU_ASSERT_EQUAL(
		fi_send(f.a.ep, &byte, f.info->ep_attr->max_msg_size + 1, NULL, f.a.b, NULL),
		-FI_EMSGSIZE);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A2_sendv_gathers(void)
{
	char tx[300], rx[300];
	struct fx_comp c;
	struct fx f;
	struct iovec iov[4] = {{tx, 100}, {tx + 100, 0}, {tx + 100, 1}, {tx + 101, 199}};

	fx_open(&f, NULL);
	CU_ASSERT_FATAL(f.info->tx_attr->iov_limit >= 4);
	fx_fill(tx, sizeof(tx), 3);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_sendv(f.a.ep, iov, NULL, 4, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	expect_message(&f, rx, sizeof(rx), 3, rx);
	fx_close(&f);
}

static void test_A2_too_many_pieces_are_refused(void)
{
	struct iovec iov[64] = {{0}};
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_FATAL(f.info->tx_attr->iov_limit < 64);
	CU_ASSERT_EQUAL(fi_sendv(f.a.ep, iov, NULL, f.info->tx_attr->iov_limit + 1, f.a.b, NULL),
			-FI_EINVAL);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A3_sendmsg_refuses_other_flags(void)
{
	static const uint64_t bad[] = {FI_TRIGGER,	  FI_COMMIT_COMPLETE,
				       FI_MATCH_COMPLETE, FI_MULTI_RECV,
				       FI_PEEK,		  1ull << 40};
	struct fi_msg msg = {0};
	struct fx f;

	fx_open(&f, NULL);
	msg.addr = f.a.b;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, bad[i]), -FI_EBADFLAGS);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A3_strongest_level_holds(void)
{
	static const uint64_t levels =
		FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
	char tx[64], rx[64];
	struct iovec iov = {tx, sizeof(tx)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = tx};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	msg.addr = f.a.b;
	fx_fill(tx, sizeof(tx), 9);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, levels), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	/* Delivery complete: by now the bytes are in the buffer, whatever b has read. */
	CU_ASSERT(fx_same(rx, sizeof(rx), 9));
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fx_close(&f);
}

static void test_A4_inject_frees_its_buffer_and_is_silent(void)
{
	char tx[64], rx[64];
	struct fx_opt opt = {.inject_size = 64, .tx_op_flags = FI_COMPLETION};
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_FATAL(f.info->tx_attr->inject_size >= 64);
	for (unsigned int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
		fx_fill(tx, sizeof(tx), i);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, sizeof(tx), f.a.b)), 0);
		memset(tx, 0xee, sizeof(tx));
		expect_message(&f, rx, sizeof(rx), i, rx);
	}
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A4_inject_beyond_its_size_is_refused(void)
{
	struct fx_opt opt = {.inject_size = 64};
	char tx[4096] = {0};
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_FATAL(f.info->tx_attr->inject_size < sizeof(tx));
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, f.info->tx_attr->inject_size + 1, f.a.b),
			-FI_EMSGSIZE);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A5_senddata_carries_64_bits(void)
{
	static const uint64_t data = 0x0123456789abcdefull;
	char tx[8], rx[8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(f.info->domain_attr->cq_data_size, 8);
	fx_fill(tx, sizeof(tx), 5);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_senddata(f.a.ep, tx, sizeof(tx), NULL, data, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_SEND | FI_MSG);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	CU_ASSERT_EQUAL(c.e.data, data);
	CU_ASSERT(fx_same(rx, sizeof(rx), 5));
	fx_close(&f);
}

static void test_A6_injectdata(void)
{
	char tx[8], rx[8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, sizeof(tx), 6);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_injectdata(f.a.ep, tx, sizeof(tx), ~0ull, f.a.b), 0);
	memset(tx, 0, sizeof(tx));
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	CU_ASSERT_EQUAL(c.e.data, ~0ull);
	CU_ASSERT(fx_same(rx, sizeof(rx), 6));
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

/* Post the three kinds of 0-byte receives, with nothing or with garbage where buffers stand. */
static void post_zero_receives(struct fx *f, void *junk)
{
	struct iovec bad = {junk, 0};
	struct fi_msg msg = {.addr = FI_ADDR_UNSPEC};

	CU_ASSERT_EQUAL(fi_recv(f->b.ep, junk, 0, junk, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(
		fi_recvv(f->b.ep, junk ? &bad : NULL, NULL, junk ? 1 : 0, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_recvmsg(f->b.ep, &msg, 0), 0);
	/* Three more for the senders that are not paired with a receiving call. */
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fi_recv(f->b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

static void send_zeros(struct fx *f, void *junk)
{
	struct iovec bad = {junk, 0};
	struct fi_msg msg = {.addr = f->a.b};

	CU_ASSERT_EQUAL(fi_send(f->a.ep, junk, 0, junk, f->a.b, NULL), 0);
	CU_ASSERT_EQUAL(fi_sendv(f->a.ep, junk ? &bad : NULL, NULL, junk ? 1 : 0, f->a.b, NULL), 0);
	CU_ASSERT_EQUAL(fi_sendmsg(f->a.ep, &msg, 0), 0);
	CU_ASSERT_EQUAL(fi_senddata(f->a.ep, junk, 0, junk, 7, f->a.b, NULL), 0);
	CU_ASSERT_EQUAL(FX_RETRY(f, fi_inject(f->a.ep, junk, 0, f->a.b)), 0);
	CU_ASSERT_EQUAL(FX_RETRY(f, fi_injectdata(f->a.ep, junk, 0, 7, f->a.b)), 0);
}

static void zero_bytes_with(void *junk)
{
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	post_zero_receives(&f, junk);
	send_zeros(&f, junk);
	for (int i = 0; i < 6; i++) {
		FX_WAIT_OK(&f, f.b.rxcq, NULL, &c);
		CU_ASSERT_EQUAL(c.e.len, 0);
	}
	for (int i = 0; i < 4; i++)
		FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A10_zero_bytes_with_null(void)
{
	zero_bytes_with(NULL);
}

static void test_A10_zero_bytes_with_garbage(void)
{
	zero_bytes_with((void *)(uintptr_t)0xdead0001ull);
}

static void test_A10_zero_receive_cuts_a_longer_message(void)
{
	struct fx_comp c;
	char tx[5] = "abcd";
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, tx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 5, NULL, f.a.b, NULL), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, tx, FI_ETRUNC, &c);
	CU_ASSERT_EQUAL(c.err.len, 0);
	CU_ASSERT_EQUAL(c.err.olen, 5);
	FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	fx_close(&f);
}

static void test_A13_to_itself_and_both_ways(void)
{
	char tx[32], rx[2][32];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, sizeof(tx), 1);
	/* a to a, then b to a */
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx[0], 32, NULL, FI_ADDR_UNSPEC, rx[0]), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 32, NULL, f.a.a, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.a.rxcq, rx[0], &c);
	CU_ASSERT(fx_same(rx[0], 32, 1));
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx[1], 32, NULL, FI_ADDR_UNSPEC, rx[1]), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, 32, NULL, f.b.a, tx), 0);
	FX_WAIT_OK(&f, f.b.txcq, tx, &c);
	FX_WAIT_OK(&f, f.a.rxcq, rx[1], &c);
	CU_ASSERT(fx_same(rx[1], 32, 1));
	fx_close(&f);
}

static void test_A13_unknown_destination_is_refused(void)
{
	static const fi_addr_t bad[] = {FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL, 2,	     4095, 4096,
					1 << 22,	0xdeadbeefull,	  1ull << 63};
	char byte = 0;
	struct fx f;

	fx_open(&f, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CU_ASSERT_EQUAL(fi_send(f.a.ep, &byte, 1, NULL, bad[i], NULL), -FI_EINVAL);
		CU_ASSERT_EQUAL(fi_inject(f.a.ep, &byte, 1, bad[i]), -FI_EINVAL);
	}
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_A14_source_is_ignored_without_directed_receive(void)
{
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, garbage_addr, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, NULL), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "abc");
	FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	fx_close(&f);
}

static void test_A16_arrays_are_the_callers_after_the_call(void)
{
	char tx[2][2000], rx[4000];
	struct iovec iov[2] = {{tx[0], 2000}, {tx[1], 2000}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	msg.addr = f.a.b;
	fx_fill(rx, sizeof(rx), 4);
	memcpy(tx[0], rx, 2000);
	memcpy(tx[1], rx + 2000, 2000);
	memset(rx, 0, sizeof(rx));
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, 0), 0);
	memset(iov, 0xee, sizeof(iov));
	memset(&msg, 0xee, sizeof(msg));
	iov[0] = (struct iovec){rx, 1000};
	iov[1] = (struct iovec){rx + 1000, 3000};
	CU_ASSERT_EQUAL(fi_recvv(f.b.ep, iov, NULL, 2, FI_ADDR_UNSPEC, rx), 0);
	memset(iov, 0xee, sizeof(iov));
	expect_message(&f, rx, sizeof(rx), 4, rx);
	FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_A1_send_keeps_boundaries),
	FX_TEST(test_A1_too_long_is_refused),
	FX_TEST(test_A2_sendv_gathers),
	FX_TEST(test_A2_too_many_pieces_are_refused),
	FX_TEST(test_A3_sendmsg_refuses_other_flags),
	FX_TEST(test_A3_strongest_level_holds),
	FX_TEST(test_A4_inject_frees_its_buffer_and_is_silent),
	FX_TEST(test_A4_inject_beyond_its_size_is_refused),
	FX_TEST(test_A5_senddata_carries_64_bits),
	FX_TEST(test_A6_injectdata),
	FX_TEST(test_A10_zero_bytes_with_null),
	FX_TEST(test_A10_zero_bytes_with_garbage),
	FX_TEST(test_A10_zero_receive_cuts_a_longer_message),
	FX_TEST(test_A13_to_itself_and_both_ways),
	FX_TEST(test_A13_unknown_destination_is_refused),
	FX_TEST(test_A14_source_is_ignored_without_directed_receive),
	FX_TEST(test_A16_arrays_are_the_callers_after_the_call),
};
FX_MAIN("sending")
