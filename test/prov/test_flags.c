/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Flags: rows B1 to B4, B6 to B8, B12.
 */
#include "fx.h"

static ssize_t sendmsg_flags(struct fx *f, const void *buf, size_t len, uint64_t flags,
			     uint64_t data, void *ctx)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = f->a.b, .data = data, .context = ctx};

	return fi_sendmsg(f->a.ep, &msg, flags);
}

static void post(struct fx *f, char *rx, size_t len)
{
	CU_ASSERT_EQUAL(fi_recv(f->b.ep, rx, len, NULL, FI_ADDR_UNSPEC, rx), 0);
}

static void test_B1_data_goes_only_with_its_flag(void)
{
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_REMOTE_CQ_DATA, 77, NULL), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	CU_ASSERT_EQUAL(c.e.data, 77);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, 0, 88, NULL), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG);
	fx_close(&f);
}

/* Under selective completion only what asks for an entry gets one; the order of the asked is kept.
 */
static void test_B2_selective_sends(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 4; i++) {
		post(&f, rx, 4);
		if (i == 0)
			CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, NULL), 0);
		if (i == 1)
			CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, 0, 0, NULL), 0);
		if (i == 2)
			CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_COMPLETION, 0, rx), 0);
		if (i == 3)
			CU_ASSERT_EQUAL(fi_senddata(f.a.ep, tx, 4, NULL, 1, f.a.b, NULL), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		if (i == 2)
			FX_WAIT_OK(&f, f.a.txcq, rx, &c);
	}
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_B2_selective_receives(void)
{
	struct fx_opt opt = {.rx_bind = FI_SELECTIVE_COMPLETION};
	char tx[4] = "abc", rx[4];
	struct iovec iov = {rx, 4};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_DELIVERY_COMPLETE, 0, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "abc");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, FI_COMPLETION), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	/* errors are written in any case */
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 1, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ETRUNC, &c);
	fx_close(&f);
}

static void test_B2_default_flags_ask_for_entries(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION,
			     .rx_bind = FI_SELECTIVE_COMPLETION,
			     .tx_op_flags = FI_COMPLETION,
			     .rx_op_flags = FI_COMPLETION};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	/* and a call with flags replaces them */
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, 0, 0, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_B2_inject_stays_silent(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION, .tx_op_flags = FI_COMPLETION};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, 4, f.a.b), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

/* Two endpoints and both directions on one queue: each binding is its own. */
static void test_B2_selective_belongs_to_a_binding(void)
{
	struct fx_opt opt = {.one_cq = true, .tx_bind = FI_SELECTIVE_COMPLETION};
	char tx[4] = "abc", from_a[4], from_b[4];
	struct fx_event ev;
	unsigned int seen = 0;
	struct fx f;

	fx_open_domain(&f, &opt);
	if (f.opt.msg) {
		fx_listen(&f);
		fx_ep_open(&f, &f.a);
		CU_ASSERT_EQUAL_FATAL(fx_connect(&f, &f.a, NULL, 0), 0);
		FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
		f.b.info = ev.cm.info;
	} else {
		fx_ep_open(&f, &f.a);
	}
	f.opt.tx_bind = 0;
	f.opt.rx_bind = FI_SELECTIVE_COMPLETION;
	fx_ep_open(&f, &f.b);
	if (f.opt.msg) {
		CU_ASSERT_EQUAL_FATAL(fi_accept(f.b.ep, NULL, 0), 0);
		FX_EVENT(&f, f.a.eq, FI_CONNECTED, &f.a.ep->fid, &ev);
	} else {
		fx_ep_enable(&f.a);
		fx_ep_enable(&f.b);
		fx_meet(&f);
	}
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, from_b, 4, NULL, FI_ADDR_UNSPEC, from_b), 0);
	post(&f, from_a, 4);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, NULL), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, 4, NULL, f.b.a, tx), 0);
	for (int i = 0; i < 2; i++) {
		struct fx_comp c;

		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
		CU_ASSERT_EQUAL(c.err.err, 0);
		seen |= c.e.op_context == tx ? 1 : c.e.op_context == from_b ? 2 : 4;
	}
	CU_ASSERT_EQUAL(seen, 3);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT_STRING_EQUAL(from_a, "abc");
	fx_close(&f);
}

/* A burst with FI_MORE leaves by each thing that ends it. */
static void burst_ends_by(int how)
{
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (int i = 0; i < 3; i++)
		post(&f, rx, 4);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_MORE, 0, tx), 0);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_MORE, 0, tx), 0);
	if (how == 0)
		CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, 0, 0, tx), 0);
	if (how == 1)
		CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_TRIGGER, 0, tx), -FI_EBADFLAGS);
	/* else the reads below do it */
	for (int i = 0; i < (how == 0 ? 3 : 2); i++) {
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	}
	fx_close(&f);
}

static void test_B3_a_burst_leaves(void)
{
	for (int how = 0; how < 3; how++)
		burst_ends_by(how);
}

enum ending { BY_RECEIVE, BY_SEND, BY_REFUSAL, BY_AGAIN, ENDINGS };
enum { BURST = 8 };

/* End a burst of @p n sends. @return how many are posted then */
static unsigned int end_burst(struct fx *f, enum ending how, unsigned int n, char *tx, char *back)
{
	switch (how) {
	case BY_RECEIVE:
		CU_ASSERT_EQUAL(fi_recv(f->a.ep, back, 4, NULL, FI_ADDR_UNSPEC, back), 0);
		return n;
	case BY_SEND:
		CU_ASSERT_EQUAL(sendmsg_flags(f, tx, 4, 0, 0, tx), 0);
		return n + 1;
	case BY_REFUSAL:
		CU_ASSERT_EQUAL(sendmsg_flags(f, tx, 4, FI_MORE | FI_TRIGGER, 0, tx),
				-FI_EBADFLAGS);
		return n;
	default:
		while (n < BURST && sendmsg_flags(f, tx, 4, FI_MORE, 0, tx) == 0)
			n++;
		CU_ASSERT_EQUAL(sendmsg_flags(f, tx, 4, FI_MORE, 0, tx), -FI_EAGAIN);
		return n;
	}
}

/* Not the next progress call, nor the helper thread a while later. */
static void leaves_at_once(enum ending how)
{
	enum { N = 20 };
	struct fx_opt opt = {.tx_size = BURST, .rx_size = 64};
	char tx[4] = "abc", rx[4], back[4];
	unsigned int at_once = 0;
	struct fx_comp c;
	uint64_t before;
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < N; i++) {
		unsigned int n;

		for (int k = 0; k < BURST; k++)
			post(&f, rx, 4);
		before = fx_packets_sent(&f);
		CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 4, FI_MORE, 0, tx), 0);
		n = end_burst(&f, how, 1, tx, back);
		at_once += fx_packets_sent(&f) > before;
		while (n < BURST && sendmsg_flags(&f, tx, 4, 0, 0, tx) == 0)
			n++;
		for (; n > 0; n--) {
			FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
			FX_WAIT_OK(&f, f.a.txcq, tx, &c);
		}
	}
	/* (the first one has to open the flow; and a pass of the helper's may be under way) */
	CU_ASSERT(at_once > N / 2);
	fx_close(&f);
}

static void test_B3_what_ends_a_burst_lets_it_out(void)
{
	for (int how = 0; how < ENDINGS; how++)
		leaves_at_once((enum ending)how);
}

static void test_B3_a_receive_with_more_matches_at_once(void)
{
	char tx[4] = "abc", rx[4];
	struct iovec iov = {rx, 4};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, FI_MORE), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fx_close(&f);
}

static void test_B4_inject_flag_frees_the_buffer_and_has_an_entry(void)
{
	struct fx_opt opt = {.inject_size = 64};
	char tx[64], rx[64];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	post(&f, rx, 64);
	fx_fill(tx, 64, 1);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 64, FI_INJECT, 0, tx), 0);
	memset(tx, 0, 64);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, 64, 1));
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, f.info->tx_attr->inject_size + 1, FI_INJECT, 0, tx),
			-FI_EMSGSIZE);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_close(&f);
}

static void test_B4_inject_by_default(void)
{
	struct fx_opt opt = {.inject_size = 64, .tx_op_flags = FI_INJECT};
	char tx[64], rx[64], large[4096] = {0};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	post(&f, rx, 64);
	fx_fill(tx, 64, 2);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
	memset(tx, 0, 64);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, 64, 2));
	CU_ASSERT_EQUAL(fi_send(f.a.ep, large, sizeof(large), NULL, f.a.b, tx), -FI_EMSGSIZE);
	fx_close(&f);
}

static void test_B6_inject_complete_has_no_size_limit(void)
{
	enum { LEN = 300000 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	post(&f, rx, LEN);
	fx_fill(tx, LEN, 4);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, LEN, FI_INJECT_COMPLETE, 0, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	memset(tx, 0, LEN); /* the buffer may be reused from the entry on */
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, LEN, 4));
	fx_close(&f);
	free(tx);
	free(rx);
}

/* Too large for the peer to hold: the entry waits for the receive. */
static void test_B7_transmit_complete_of_a_large_message_waits(void)
{
	enum { LEN = 4 << 20 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, LEN, 4);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, LEN, FI_TRANSMIT_COMPLETE, 0, tx), 0);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	post(&f, rx, LEN);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, LEN, 4));
	fx_close(&f);
	free(tx);
	free(rx);
}

static void delivery_complete(size_t len)
{
	char *tx = malloc(len), *rx = malloc(len);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, len, 6);
	/* posted: when the entry is there, the bytes are */
	post(&f, rx, len);
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, len, FI_DELIVERY_COMPLETE, 0, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT(fx_same(rx, len, 6));
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_B8_delivery_complete(void)
{
	delivery_complete(8);
	delivery_complete(9000);
	delivery_complete(1 << 20);
}

static void test_B8_delivery_complete_without_a_receive(void)
{
	char tx[100], rx[100];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, 100, 6);
	/* the target holds it: that is enough */
	CU_ASSERT_EQUAL(sendmsg_flags(&f, tx, 100, FI_DELIVERY_COMPLETE, 0, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	memset(tx, 0, 100);
	post(&f, rx, 100);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, 100, 6));
	fx_close(&f);
}

/* Run again over a link that reorders: what is there ahead of its turn is not delivered yet. */
static void test_B8_the_entry_comes_after_the_bytes(void)
{
	enum { N = 8, LEN = 5000, ROUNDS = 100 };
	char(*tx)[LEN] = malloc(N * LEN), (*rx)[LEN] = malloc(N * LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < N; i++) {
			memset(rx[i], 0, LEN);
			post(&f, rx[i], LEN);
			fx_fill(tx[i], LEN, round + i);
		}
		for (unsigned int i = 0; i < N; i++)
			CU_ASSERT_EQUAL(
				sendmsg_flags(&f, tx[i], LEN, FI_DELIVERY_COMPLETE, 0, tx[i]), 0);
		for (unsigned int i = 0; i < N; i++) {
			size_t n;

			CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
			CU_ASSERT_EQUAL(c.err.err, 0);
			n = (size_t)((char(*)[LEN])c.e.op_context - tx);
			CU_ASSERT_FATAL(n < N);
			CU_ASSERT_FATAL(fx_same(rx[n], LEN, round + (unsigned int)n));
		}
		for (unsigned int i = 0; i < N; i++)
			FX_WAIT_OK(&f, f.b.rxcq, rx[i], &c);
	}
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_B12_get_and_set_default_flags(void)
{
	struct fx_opt opt = {.tx_op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE};
	uint64_t flags = FI_TRANSMIT;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CU_ASSERT_EQUAL(flags, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	flags = FI_TRANSMIT | FI_INJECT;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CU_ASSERT_EQUAL(flags, FI_INJECT);
	flags = FI_RECV;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CU_ASSERT_EQUAL(flags, 0);
	flags = FI_TRANSMIT | FI_RECV;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_COMPLETION;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_TRANSMIT | FI_MORE;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	flags = FI_RECV | FI_INJECT;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	fx_close(&f);
}

static void set_flags(struct fid_ep *ep, uint64_t flags)
{
	CU_ASSERT_EQUAL(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
}

/* What is set last is what the calls without flags do, in its direction alone. */
static void test_B12_calls_take_the_flags_that_are_set(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION,
			     .rx_bind = FI_SELECTIVE_COMPLETION,
			     .tx_op_flags = FI_COMPLETION,
			     .rx_op_flags = FI_COMPLETION};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 4; i++) {
		bool sends = i & 1, receives = i & 2;

		set_flags(f.a.ep, FI_TRANSMIT | (sends ? FI_COMPLETION : 0));
		set_flags(f.b.ep, FI_RECV | (receives ? FI_COMPLETION : 0));
		memset(rx, 0, sizeof(rx));
		post(&f, rx, 4);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
		if (sends)
			FX_WAIT_OK(&f, f.a.txcq, tx, &c);
		if (receives)
			FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
		CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
		CU_ASSERT_STRING_EQUAL(rx, "abc");
	}
	fx_close(&f);
}

static void test_B12_flags_changed_after_getinfo_hold(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION, .no_enable = true};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	fx_ep_close(&f.a);
	f.info->tx_attr->op_flags = FI_COMPLETION;
	fx_ep_open(&f, &f.a);
	fx_ep_enable(&f.a);
	fx_ep_enable(&f.b);
	fx_meet(&f);
	post(&f, rx, 4);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B1_data_goes_only_with_its_flag),
	FX_TEST(test_B2_selective_sends),
	FX_TEST(test_B2_selective_receives),
	FX_TEST(test_B2_default_flags_ask_for_entries),
	FX_TEST(test_B2_inject_stays_silent),
	FX_TEST(test_B2_selective_belongs_to_a_binding),
	FX_TEST(test_B3_a_burst_leaves),
	FX_TEST(test_B3_what_ends_a_burst_lets_it_out),
	FX_TEST(test_B3_a_receive_with_more_matches_at_once),
	FX_TEST(test_B4_inject_flag_frees_the_buffer_and_has_an_entry),
	FX_TEST(test_B4_inject_by_default),
	FX_TEST(test_B6_inject_complete_has_no_size_limit),
	FX_TEST(test_B7_transmit_complete_of_a_large_message_waits),
	FX_TEST(test_B8_delivery_complete),
	FX_TEST(test_B8_delivery_complete_without_a_receive),
	FX_TEST(test_B8_the_entry_comes_after_the_bytes),
	FX_TEST(test_B12_get_and_set_default_flags),
	FX_TEST(test_B12_calls_take_the_flags_that_are_set),
	FX_TEST(test_B12_flags_changed_after_getinfo_hold),
};
FX_MAIN("flags")
