/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Receiving: rows A7 to A9, C1 to C3, C5, C7.
 */
#include "fx.h"

#include <stdlib.h>

static void test_A7_receives_take_messages_in_posting_order(void)
{
	enum { N = 50 };
	char tx[N], rx[N];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, &rx[i], 1, NULL, FI_ADDR_UNSPEC, &rx[i]), 0);
	for (int i = 0; i < N; i++) {
		tx[i] = (char)i;
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_send(f.a.ep, &tx[i], 1, NULL, f.a.b, NULL)), 0);
	}
	for (int i = 0; i < N; i++) {
		FX_WAIT_OK(&f, f.b.rxcq, &rx[i], &c);
		CU_ASSERT_EQUAL(rx[i], (char)i);
		CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG);
	}
	fx_close(&f);
}

static void test_A8_recvv_scatters_in_order(void)
{
	char tx[1000], rx[1000];
	struct iovec iov[4] = {{rx, 10}, {rx + 10, 0}, {rx + 10, 490}, {rx + 500, 500}};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_FATAL(f.info->rx_attr->iov_limit >= 4);
	fx_fill(tx, sizeof(tx), 8);
	CU_ASSERT_EQUAL(fi_recvv(f.b.ep, iov, NULL, 4, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 700, NULL, f.a.b, NULL), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.len, 700);
	CU_ASSERT(fx_same(rx, 700, 8));
	CU_ASSERT_EQUAL(
		fi_recvv(f.b.ep, iov, NULL, f.info->rx_attr->iov_limit + 1, FI_ADDR_UNSPEC, NULL),
		-FI_EINVAL);
	fx_close(&f);
}

static void test_A9_recvmsg_flags(void)
{
	static const uint64_t good[] = {0, FI_COMPLETION, FI_MORE, FI_TRANSMIT_COMPLETE};
	static const uint64_t bad[] = {FI_PEEK,	 FI_INJECT, FI_REMOTE_CQ_DATA,
				       FI_FENCE, FI_CLAIM,  1ull << 40};
	char tx[4] = "abc", rx[4];
	struct iovec iov = {rx, sizeof(rx)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, bad[i]), -FI_EBADFLAGS);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, good[i]), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, NULL), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT_STRING_EQUAL(rx, "abc");
	}
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

/* A message of @p sent bytes into @p room: cut, counted, not a byte beyond, and the next one is
 * whole. */
static void cut_message(size_t sent, size_t room, bool posted_first)
{
	char *tx = malloc(sent), *rx = malloc(room + 64), next[16];
	struct fx_opt opt = {.counters = true};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	fx_fill(tx, sent, 2);
	memset(rx, 0x5a, room + 64);
	if (posted_first)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, room, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_senddata(f.a.ep, tx, sent, NULL, 99, f.a.b, tx), 0);
	if (!posted_first) {
		CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, room, NULL, FI_ADDR_UNSPEC, rx), 0);
	}
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ETRUNC, &c);
	CU_ASSERT_EQUAL(c.err.len, room);
	CU_ASSERT_EQUAL(c.err.olen, sent - room);
	CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	CU_ASSERT_EQUAL(c.err.data, 99);
	CU_ASSERT(fx_same(rx, room, 2));
	for (size_t i = room; i < room + 64; i++)
		CU_ASSERT_EQUAL_FATAL(rx[i], 0x5a);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.b.rxcntr), 1);
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, next, 16, NULL, FI_ADDR_UNSPEC, next), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 16, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, next, &c);
	CU_ASSERT_EQUAL(c.e.len, 16);
	CU_ASSERT(fx_same(next, 16, 2));
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 1);
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_C1_a_small_message_is_cut(void)
{
	cut_message(100, 60, true);
	cut_message(100, 60, false);
}

static void test_C1_a_large_message_is_cut(void)
{
	cut_message(1 << 20, 100000, true);
	cut_message(1 << 20, 100000, false);
	cut_message(40000, 1, true);
}

static void test_C2_messages_wait_for_their_receive(void)
{
	enum { N = 40 };
	static const size_t sizes[] = {0, 1, 100, 5000, 70000, 300000};
	enum { S = sizeof(sizes) / sizeof(sizes[0]) };
	char *tx[S], *rx = malloc(300000);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int s = 0; s < S; s++) {
		tx[s] = malloc(sizes[s] + 1);
		fx_fill(tx[s], sizes[s], s);
	}
	for (unsigned int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(
			FX_RETRY(&f, fi_send(f.a.ep, tx[i % S], sizes[i % S], NULL, f.a.b, NULL)),
			0);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	for (unsigned int i = 0; i < N; i++) {
		memset(rx, 0, sizes[i % S]);
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 300000, NULL, FI_ADDR_UNSPEC, rx), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT_EQUAL(c.e.len, sizes[i % S]);
		CU_ASSERT(fx_same(rx, sizes[i % S], i % S));
	}
	for (unsigned int i = 0; i < N; i++)
		FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	for (unsigned int s = 0; s < S; s++)
		free(tx[s]);
	free(rx);
	fx_close(&f);
}

/* Far more than may be kept: the sender comes to -FI_EAGAIN, another peer goes on, nothing is lost.
 */
static void test_C2_a_flood_holds_the_sender_only(void)
{
	enum { LEN = 8192, TRIES = 50000 };
	struct fx_opt opt = {.tx_size = 64};
	char *tx = malloc(LEN), *rx = malloc(LEN);
	unsigned int sent = 0, idle = 0;
	struct fx_comp c;
	struct fx f;
	double end;

	fx_open(&f, &opt);
	fx_fill(tx, LEN, 1);
	/* b receives nothing; a sends until it is held for good */
	end = fx_now_ms() + FX_MS;
	while (sent < TRIES && idle < 2000 && fx_now_ms() < end) {
		if (fi_inject(f.a.ep, tx, 8, f.a.b) == 0) {
			sent++;
			idle = 0;
		} else {
			idle++;
			fx_progress(&f);
		}
	}
	CU_ASSERT(sent >= 64);
	CU_ASSERT(sent < TRIES);
	/* others go on */
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, LEN, NULL, f.b.a, tx), 0);
	FX_WAIT_OK(&f, f.a.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, LEN, 1));
	for (unsigned int i = 0; i < sent; i++) {
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx)),
				0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT_EQUAL_FATAL(c.e.len, 8);
	}
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
	free(tx);
	free(rx);
}

/* What is kept of one peer has a bound of its own: docs/reliability.md. */
static void test_C2_one_peer_is_kept_up_to_its_credit(void)
{
	enum { LEN = 8192, N = 1024, CREDIT = 1 << 20 };
	struct fx_opt opt = {.tx_size = N};
	char *tx = malloc(LEN), *rx = malloc(LEN);
	unsigned int sent = 0, kept = 1, got = 0;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	fx_fill(tx, LEN, 1);
	while (sent < N && fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx) == 0)
		sent++;
	CU_ASSERT_EQUAL(sent, N);
	/* their entries say that b holds them */
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	while (kept < sent && !fx_stays_empty(&f, f.a.txcq))
		kept++;
	CU_ASSERT(kept <= CREDIT / LEN);
	for (; got < sent; got++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	}
	for (; kept < sent; kept++)
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	fx_close(&f);
	free(tx);
	free(rx);
}

/* Messages of all sizes, some receives posted before and some after: matched in sending order. */
static void test_C3_sending_order_whatever_the_sizes(void)
{
	enum { N = 400, MAX = 200000, AHEAD = 20 };
	const char *given = getenv("PMF_SEED");
	unsigned int seed = given ? (unsigned int)strtoul(given, NULL, 0) : 7;
	unsigned int state = seed, got = 0, posted = 0, sent = 0;
	char *tx[N], *rx[AHEAD];
	size_t len[N];
	struct fx_comp c;
	struct fx f;

	printf("PMF_SEED=%u ", seed);
	fx_open(&f, NULL);
	for (int i = 0; i < AHEAD; i++)
		rx[i] = malloc(MAX);
	while (got < N) {
		if (sent < N && rand_r(&state) % 2) {
			len[sent] = (size_t)rand_r(&state) % (rand_r(&state) % 8 ? 2000 : MAX);
			tx[sent] = malloc(len[sent] + 1);
			fx_fill(tx[sent], len[sent], sent);
			CU_ASSERT_EQUAL_FATAL(FX_RETRY(&f, fi_send(f.a.ep, tx[sent], len[sent],
								   NULL, f.a.b, NULL)),
					      0);
			sent++;
		}
		if (posted < N && posted - got < AHEAD && rand_r(&state) % 2) {
			CU_ASSERT_EQUAL_FATAL(fi_recv(f.b.ep, rx[posted % AHEAD], MAX, NULL,
						      FI_ADDR_UNSPEC, rx[posted % AHEAD]),
					      0);
			posted++;
		}
		if (got < posted && got < sent && (rand_r(&state) % 3 == 0 || sent == N)) {
			FX_WAIT_OK(&f, f.b.rxcq, rx[got % AHEAD], &c);
			CU_ASSERT_EQUAL(c.e.len, len[got]);
			CU_ASSERT_FATAL(fx_same(rx[got % AHEAD], len[got], got));
			got++;
		}
	}
	for (int i = 0; i < N; i++) {
		FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
		CU_ASSERT_EQUAL(c.e.flags, FI_SEND | FI_MSG);
	}
	for (int i = 0; i < N; i++)
		free(tx[i]);
	for (int i = 0; i < AHEAD; i++)
		free(rx[i]);
	fx_close(&f);
}

static void test_C5_cancel_ends_a_receive_once(void)
{
	struct fx_opt opt = {.counters = true};
	char rx[3][8], tx[8] = "abc";
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[i], 8, NULL, FI_ADDR_UNSPEC, rx[i]), 0);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx[1]), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx[1], FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.b.rxcntr), 1);
	/* its neighbours are as they were */
	for (int i = 0; i < 3; i += 2) {
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 8, NULL, f.a.b, NULL), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx[i], &c);
	}
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static void test_C5_one_of_several_with_that_context(void)
{
	char rx[3][8], tx[8] = "abc";
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[i], 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ECANCELED, &c);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 8, f.a.b)), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	}
	fx_close(&f);
}

static void test_C5_cancel_of_what_is_not_there(void)
{
	char rx[8];
	ssize_t rc;
	struct fx f;

	fx_open(&f, NULL);
	rc = fi_cancel(&f.b.ep->fid, rx);
	CU_ASSERT(rc == 0 || rc == -FI_ENOENT);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static void test_C5_cancel_under_selective_completion(void)
{
	struct fx_opt opt = {.rx_bind = FI_SELECTIVE_COMPLETION};
	struct fx_comp c;
	char rx[8];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ECANCELED, &c);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static void test_C5_sends_are_not_cancelled(void)
{
	struct fx_comp c;
	char tx[8] = "abc", rx[8];
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 8, NULL, f.a.b, tx), 0);
	CU_ASSERT(fi_cancel(&f.a.ep->fid, tx) == 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

/* The buffer is the provider's only from the post to the entry. */
static void test_C7_nothing_is_written_after_the_entry(void)
{
	enum { LEN = 50000 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, LEN, 3);
	for (int i = 0; i < 20; i++) {
		memset(rx, 0x11, LEN);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, NULL), 0);
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT(fx_same(rx, LEN, 3));
		memset(rx, 0x22, LEN);
		FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
		fx_progress(&f);
		for (int k = 0; k < LEN; k++)
			CU_ASSERT_EQUAL_FATAL(rx[k], 0x22);
	}
	fx_close(&f);
	free(tx);
	free(rx);
}

/* The provider's thread writes, this one looks: at the queue, and every other time at the counter.
 */
static void test_C7_the_bytes_are_there_with_the_entry(void)
{
	enum { LEN = 8000, N = 2000 };
	struct fx_opt opt = {.auto_progress = true, .counters = true};
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fi_cq_data_entry e;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	for (unsigned int i = 0; i < N; i++) {
		double end = fx_now_ms() + FX_MS;
		ssize_t n = -FI_EAGAIN;

		fx_fill(tx, LEN, i);
		rx[LEN - 1] = (char)~tx[LEN - 1];
		CU_ASSERT_EQUAL_FATAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL_FATAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
		if (i % 2)
			while (fi_cntr_read(f.b.rxcntr) <= i && fx_now_ms() < end)
				;
		else
			while ((n = fi_cq_read(f.b.rxcq, &e, 1)) == -FI_EAGAIN && fx_now_ms() < end)
				;
		CU_ASSERT_EQUAL_FATAL(rx[LEN - 1], tx[LEN - 1]);
		CU_ASSERT_FATAL(fx_same(rx, LEN, i));
		if (i % 2)
			FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		else
			CU_ASSERT_EQUAL_FATAL(n, 1);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	}
	fx_close(&f);
	free(tx);
	free(rx);
}

static const struct fx_test tests[] = {
	FX_TEST(test_A7_receives_take_messages_in_posting_order),
	FX_TEST(test_A8_recvv_scatters_in_order),
	FX_TEST(test_A9_recvmsg_flags),
	FX_TEST(test_C1_a_small_message_is_cut),
	FX_TEST(test_C1_a_large_message_is_cut),
	FX_TEST(test_C2_messages_wait_for_their_receive),
	FX_TEST(test_C2_a_flood_holds_the_sender_only),
	FX_TEST(test_C2_one_peer_is_kept_up_to_its_credit),
	FX_TEST(test_C3_sending_order_whatever_the_sizes),
	FX_TEST(test_C5_cancel_ends_a_receive_once),
	FX_TEST(test_C5_one_of_several_with_that_context),
	FX_TEST(test_C5_cancel_of_what_is_not_there),
	FX_TEST(test_C5_cancel_under_selective_completion),
	FX_TEST(test_C5_sends_are_not_cancelled),
	FX_TEST(test_C7_nothing_is_written_after_the_entry),
	FX_TEST(test_C7_the_bytes_are_there_with_the_entry),
};
FX_MAIN("receiving")
