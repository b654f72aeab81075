/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What changes the calls of an endpoint: fences (B9), aliases (B13), the prefix (F1). FX_EP=msg:
 * once more on connections.
 */
#include "fx.h"

static ssize_t send_flags(struct fx *f, void *buf, size_t len, uint64_t flags)
{
	struct iovec iov = {buf, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = f->a.b, .context = buf};

	return fi_sendmsg(f->a.ep, &msg, flags);
}

static void post(struct fx *f, void *rx, size_t len)
{
	CU_ASSERT_EQUAL(fi_recv(f->b.ep, rx, len, NULL, FI_ADDR_UNSPEC, rx), 0);
}

/* ---- fences ---- */

enum { LARGE = 1 << 20 }; /* announced: stays here until it is received */

static void test_B9_waits_for_all_earlier_sends(void)
{
	char *tx = malloc(LARGE), *rx = malloc(LARGE), small[8] = "fenced", in[2][8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT(f.info->caps & FI_FENCE);
	/* without a fence the small ones would complete */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LARGE, NULL, f.a.b, tx), 0);
	CU_ASSERT_EQUAL(send_flags(&f, small, 8, FI_FENCE), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, small, 8, NULL, f.a.b, in), 0);
	if (!f.opt.msg) { /* another peer is not held up */
		CU_ASSERT_EQUAL(fi_recv(f.a.ep, in[0], 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, small, 8, NULL, f.a.a, in[0]), 0);
		FX_WAIT_OK(&f, f.a.txcq, in[0], &c);
	}
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	post(&f, rx, LARGE);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.a.txcq, small, &c);
	FX_WAIT_OK(&f, f.a.txcq, in, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_B9_with_nothing_before_it(void)
{
	char small[8] = "fenced", rx[8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (int i = 0; i < 100; i++) {
		post(&f, rx, 8);
		CU_ASSERT_EQUAL(FX_RETRY(&f, send_flags(&f, small, 8, FI_FENCE)), 0);
		FX_WAIT_OK(&f, f.a.txcq, small, &c);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT_STRING_EQUAL(rx, "fenced");
	}
	fx_close(&f);
}

/* What was injected is on its way, and not yet acknowledged: a burst behind a fence stays. */
static void test_B9_waits_for_what_is_in_flight(void)
{
	enum { TRIES = 100, ENOUGH = 30 };
	char small[8] = "fenced", plain[8] = "behind", rx[3][8];
	unsigned int stayed = 0;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	/* (a pass of the helper's may come between, and with it the acknowledgement) */
	for (int i = 0; i < TRIES && stayed < ENOUGH; i++) {
		uint64_t before;

		for (int k = 0; k < 3; k++)
			post(&f, rx[k], 8);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, "before", 7, f.a.b)), 0);
		before = fx_packets_sent(&f);
		CU_ASSERT_EQUAL(send_flags(&f, small, 8, FI_FENCE | FI_MORE), 0);
		CU_ASSERT_EQUAL(send_flags(&f, plain, 8, 0), 0);
		stayed += fx_packets_sent(&f) == before;
		FX_WAIT_OK(&f, f.a.txcq, small, &c);
		FX_WAIT_OK(&f, f.a.txcq, plain, &c);
		for (int k = 0; k < 3; k++)
			FX_WAIT_OK(&f, f.b.rxcq, rx[k], &c);
	}
	CU_ASSERT_EQUAL(stayed, ENOUGH);
	fx_close(&f);
}

static void test_B9_refused_it_leaves_nothing_behind(void)
{
	struct fx_opt opt = {.tx_size = 8};
	char *tx = malloc(LARGE), *rx = malloc(LARGE), small[8] = "free";
	unsigned int sent = 0;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	while (sent < 1000 && fi_send(f.a.ep, tx, LARGE, NULL, f.a.b, tx) == 0)
		sent++;
	CU_ASSERT_EQUAL(send_flags(&f, small, 8, FI_FENCE), -FI_EAGAIN);
	post(&f, rx, LARGE);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	/* the others still wait for their receives */
	CU_ASSERT_EQUAL(FX_RETRY(&f, fi_send(f.a.ep, small, 8, NULL, f.a.b, small)), 0);
	FX_WAIT_OK(&f, f.a.txcq, small, &c);
	fx_close(&f);
	free(tx);
	free(rx);
}

/* E3: its bytes are the caller's again. */
static void test_B9_closing_takes_it_back(void)
{
	char *tx = malloc(LARGE), *fenced = strdup("fenced"), rx[8];
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LARGE, NULL, f.a.b, tx), 0);
	CU_ASSERT_EQUAL(send_flags(&f, fenced, 7, FI_FENCE), 0);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	fx_ep_close(&f.a);
	free(tx);
	free(fenced);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq)); /* the large one is taken back meanwhile */
	if (!f.opt.msg)
		post(&f, rx, 8);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

/* ---- aliases ---- */

static void test_B13_alias_has_flags_of_its_own(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION};
	char tx[8] = "alias", rx[8];
	struct fid_ep *alias = NULL, *none;
	struct fx_comp c;
	uint64_t flags;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_ep_alias(f.a.ep, &none, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_alias(f.a.ep, &none, FI_COMPLETION), -FI_EINVAL);
	CU_ASSERT_EQUAL_FATAL(fi_ep_alias(f.a.ep, &alias, FI_TRANSMIT | FI_COMPLETION), 0);
	for (int i = 0; i < 2; i++) {
		post(&f, rx, 8);
		CU_ASSERT_EQUAL(fi_send(i ? alias : f.a.ep, tx, 8, NULL, f.a.b, tx), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		if (i)
			FX_WAIT_OK(&f, f.a.txcq, tx, &c);
		CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	}
	flags = FI_TRANSMIT;
	CU_ASSERT_EQUAL(fi_control(&alias->fid, FI_GETOPSFLAG, &flags), 0);
	CU_ASSERT_EQUAL(flags, FI_COMPLETION);
	flags = FI_TRANSMIT;
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CU_ASSERT_EQUAL(flags, 0);
	/* the endpoint stays until both are closed */
	CU_ASSERT_EQUAL(fi_close(&f.a.ep->fid), 0);
	post(&f, rx, 8);
	CU_ASSERT_EQUAL(fi_send(alias, tx, 8, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "alias");
	f.a.ep = alias;
	fx_close(&f);
}

static uint64_t flags_of(struct fid_ep *ep, uint64_t dir)
{
	uint64_t flags = dir;

	CU_ASSERT_EQUAL(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	return flags;
}

/* The other direction's are the endpoint's. */
static void test_B13_alias_has_flags_of_its_own_for_one_direction(void)
{
	struct fx_opt opt = {.tx_op_flags = FI_DELIVERY_COMPLETE, .rx_op_flags = FI_COMPLETION};
	struct fid_ep *tx = NULL, *rx = NULL;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_ep_alias(f.a.ep, &tx, FI_TRANSMIT | FI_INJECT), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_alias(f.a.ep, &rx, FI_RECV | FI_MULTI_RECV), 0);
	CU_ASSERT_EQUAL(flags_of(tx, FI_TRANSMIT), FI_INJECT);
	CU_ASSERT_EQUAL(flags_of(tx, FI_RECV), FI_COMPLETION);
	CU_ASSERT_EQUAL(flags_of(rx, FI_TRANSMIT), FI_DELIVERY_COMPLETE);
	CU_ASSERT_EQUAL(flags_of(rx, FI_RECV), FI_MULTI_RECV);
	CU_ASSERT_EQUAL(flags_of(f.a.ep, FI_TRANSMIT), FI_DELIVERY_COMPLETE);
	CU_ASSERT_EQUAL(flags_of(f.a.ep, FI_RECV), FI_COMPLETION);
	CU_ASSERT_EQUAL(fi_close(&tx->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&rx->fid), 0);
	fx_close(&f);
}

/* For receives; and it may go first. */
static void test_B13_alias_for_receives(void)
{
	struct fx_opt opt = {.rx_bind = FI_SELECTIVE_COMPLETION};
	char rx[3][8];
	struct fid_ep *alias = NULL;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_ep_alias(f.b.ep, &alias, FI_RECV | FI_COMPLETION), 0);
	post(&f, rx[0], 8);
	CU_ASSERT_EQUAL(fi_recv(alias, rx[1], 8, NULL, FI_ADDR_UNSPEC, rx[1]), 0);
	post(&f, rx[2], 8);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, &"012"[i], 1, f.a.b)), 0);
	/* posting order is the endpoint's; only the alias asks for an entry */
	FX_WAIT_OK(&f, f.b.rxcq, rx[1], &c);
	CU_ASSERT_EQUAL(rx[1][0], '1');
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_EQUAL(rx[0][0], '0');
	CU_ASSERT_EQUAL(rx[2][0], '2');
	CU_ASSERT_EQUAL(fi_close(&alias->fid), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[0], 8, NULL, FI_ADDR_UNSPEC, rx[0]), 0);
	fx_close(&f);
}

/* ---- FI_MSG_PREFIX ---- */

static const struct fx_opt prefixed = {.prefix = true};

static size_t open_prefixed(struct fx *f)
{
	size_t p;

	fx_open(f, &prefixed);
	p = f->info->ep_attr->msg_prefix_size;
	CU_ASSERT_FATAL(p > 0 && p % 8 == 0 && p <= 64);
	return p;
}

static void test_F1_modes(void)
{
	struct fx_opt opt = prefixed;
	struct fi_info *hints, *info;

	opt.msg = fx_on_connections();
	hints = fx_hints(&opt);
	hints->mode |= FI_CONTEXT;
	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->mode, FI_MSG_PREFIX);
	CU_ASSERT_EQUAL(info->tx_attr->mode, FI_MSG_PREFIX);
	CU_ASSERT_EQUAL(info->rx_attr->mode, FI_MSG_PREFIX);
	fi_freeinfo(info);
	hints->mode = 0;
	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->ep_attr->msg_prefix_size, 0);
	CU_ASSERT_EQUAL(info->mode | info->tx_attr->mode | info->rx_attr->mode, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_F1_prefix_is_counted_and_does_not_travel(void)
{
	char tx[128], rx[128];
	struct fx_comp c;
	struct fx f;
	size_t p = open_prefixed(&f);

	fx_fill(tx + p, 20, 1);
	memset(tx, 0x55, p);
	memset(rx, 0xaa, sizeof(rx));
	post(&f, rx, p + 20);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, p + 20, f.a.b), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.len, p + 20);
	CU_ASSERT(fx_same(rx + p, 20, 1));
	CU_ASSERT_EQUAL((unsigned char)rx[0], 0xaa);
	CU_ASSERT_EQUAL((unsigned char)rx[p + 20], 0xaa);
	/* no byte of payload */
	post(&f, rx, p);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, p, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.len, p);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	fx_close(&f);
}

static void test_F1_the_first_piece_holds_it(void)
{
	char tx[128], rx[128];
	struct iovec out[2] = {{tx, 0}, {tx + 64, 20}}, in[2] = {{rx, 0}, {rx + 64, 20}};
	struct fx_comp c;
	struct fx f;
	size_t p = open_prefixed(&f);

	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, p - 1, NULL, f.a.b, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, NULL, 0, f.a.b), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_sendv(f.a.ep, NULL, NULL, 0, f.a.b, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, p - 1, NULL, FI_ADDR_UNSPEC, rx), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recvv(f.b.ep, NULL, NULL, 0, FI_ADDR_UNSPEC, rx), -FI_EINVAL);
	out[0].iov_len = in[0].iov_len = p - 1;
	CU_ASSERT_EQUAL(fi_sendv(f.a.ep, out, NULL, 2, f.a.b, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recvv(f.b.ep, in, NULL, 2, FI_ADDR_UNSPEC, rx), -FI_EINVAL);
	out[0].iov_len = in[0].iov_len = p;
	fx_fill(tx + 64, 20, 3);
	CU_ASSERT_EQUAL(fi_recvv(f.b.ep, in, NULL, 2, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_sendv(f.a.ep, out, NULL, 2, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.len, p + 20);
	CU_ASSERT(fx_same(rx + 64, 20, 3));
	fx_close(&f);
}

static void test_F1_limits_do_not_count_it(void)
{
	char tx[8192] = {0};
	struct fx f;
	size_t p = open_prefixed(&f), most = f.info->tx_attr->inject_size;

	CU_ASSERT_FATAL(p + most + 1 <= sizeof(tx));
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, p + most, f.a.b), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, p + most + 1, f.a.b), -FI_EMSGSIZE);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, p + f.info->ep_attr->max_msg_size + 1, NULL, f.a.b, tx),
			-FI_EMSGSIZE);
	fx_close(&f);
}

static void send_prefixed(struct fx *f, size_t p, size_t len, unsigned int seed)
{
	char tx[128];

	memset(tx, 0x55, p);
	fx_fill(tx + p, len, seed);
	CU_ASSERT_EQUAL(FX_RETRY(f, fi_inject(f->a.ep, tx, p + len, f->a.b)), 0);
}

static ssize_t post_multi(struct fx *f, void *buf, size_t len)
{
	struct iovec iov = {buf, len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};

	return fi_recvmsg(f->b.ep, &msg, FI_MULTI_RECV);
}

/* Each message has its own prefix, and buf points at it. */
static void test_F1_in_a_multi_receive_buffer(void)
{
	static const size_t len[] = {10, 20, 0};
	char rx[512], *at = rx;
	size_t min = 0, p;
	struct fx_comp c;
	struct fx f;

	p = open_prefixed(&f);
	CU_ASSERT_EQUAL(
		fi_setopt(&f.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
		0);
	CU_ASSERT_EQUAL(post_multi(&f, rx, p - 1), -FI_EINVAL);
	/* behind the third message less than a prefix is left */
	memset(rx, 0xaa, sizeof(rx));
	CU_ASSERT_EQUAL(post_multi(&f, rx, 3 * p + 30 + p - 1), 0);
	for (unsigned int i = 0; i < 3; i++)
		send_prefixed(&f, p, len[i], i);
	for (unsigned int i = 0; i < 3; i++) {
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | (i == 2 ? FI_MULTI_RECV : 0));
		CU_ASSERT_EQUAL(c.e.len, p + len[i]);
		CU_ASSERT_PTR_EQUAL(c.e.buf, at);
		CU_ASSERT_EQUAL((unsigned char)at[0], 0xaa);
		CU_ASSERT(fx_same(at + p, len[i], i));
		at += p + len[i];
	}
	/* longer than what is left beside its prefix */
	CU_ASSERT_EQUAL(post_multi(&f, rx, p + 8), 0);
	send_prefixed(&f, p, 20, 7);
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ETRUNC, &c);
	CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	CU_ASSERT_EQUAL(c.err.len, p + 8);
	CU_ASSERT_EQUAL(c.err.olen, 12);
	CU_ASSERT(fx_same(rx + p, 8, 7));
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B9_waits_for_all_earlier_sends),
	FX_TEST(test_B9_with_nothing_before_it),
	FX_TEST(test_B9_waits_for_what_is_in_flight),
	FX_TEST(test_B9_refused_it_leaves_nothing_behind),
	FX_TEST(test_B9_closing_takes_it_back),
	FX_TEST(test_B13_alias_has_flags_of_its_own),
	FX_TEST(test_B13_alias_has_flags_of_its_own_for_one_direction),
	FX_TEST(test_B13_alias_for_receives),
	FX_TEST(test_F1_modes),
	FX_TEST(test_F1_prefix_is_counted_and_does_not_travel),
	FX_TEST(test_F1_the_first_piece_holds_it),
	FX_TEST(test_F1_limits_do_not_count_it),
	FX_TEST(test_F1_in_a_multi_receive_buffer),
};
FX_MAIN("fences, aliases, prefix")
