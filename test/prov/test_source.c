/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Who sent it, and receives for one sender: rows C4, C6, A14; fences (B9), aliases (B13), shared
 * receive contexts (C9), the prefix (F1). b receives; its AV knows a as 0 and itself as 1.
 */
#include "fx.h"

static void inject(struct fx *f, struct fx_ep *from, const char *text)
{
	CU_ASSERT_EQUAL(FX_RETRY(f, fi_inject(from->ep, text, strlen(text) + 1, from->b)), 0);
}

/* Wait for one entry of b, with its source. */
static fi_addr_t wait_from(struct fx *f, void *ctx)
{
	double end = fx_now_ms() + FX_MS;
	struct fi_cq_tagged_entry e = {0};
	fi_addr_t src = 12345;
	ssize_t n;

	while ((n = fi_cq_readfrom(f->b.rxcq, &e, 1, &src)) == -FI_EAGAIN && fx_now_ms() < end)
		fx_progress(f);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_EQUAL(e.op_context, ctx);
	return src;
}

static void expect_text(struct fx *f, char *rx, const char *text)
{
	struct fx_comp c;

	FX_WAIT_OK(f, f->b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, text);
}

static void test_C6_readfrom_tells_the_sender(void)
{
	struct fx_opt opt = {.caps = FI_MSG | FI_SOURCE};
	char rx[8];
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
		inject(&f, i ? &f.b : &f.a, "x");
		CU_ASSERT_EQUAL(wait_from(&f, rx), i ? f.b.b : f.b.a);
	}
	fx_close(&f);
}

static void test_C6_without_the_capability_nobody_is_named(void)
{
	char rx[8];
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	inject(&f, &f.a, "x");
	CU_ASSERT_EQUAL(wait_from(&f, rx), FI_ADDR_NOTAVAIL);
	fx_close(&f);
}

/* a and b meet, but a is not in b's AV. */
static void open_stranger(struct fx *f, uint64_t caps)
{
	struct fx_opt opt = {.caps = caps, .no_insert = true, .counters = true};

	fx_open(f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f->a.av, f->b.name, 1, &f->a.b, 0, NULL), 1);
}

static void test_C6_unknown_sender_is_not_available(void)
{
	char rx[8];
	struct fx f;

	open_stranger(&f, FI_MSG | FI_SOURCE);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	inject(&f, &f.a, "x");
	CU_ASSERT_EQUAL(wait_from(&f, rx), FI_ADDR_NOTAVAIL);
	fx_close(&f);
}

static void test_C6_source_err_carries_the_raw_address(void)
{
	char rx[8], addr[64];
	struct fi_cq_err_entry err = {.err_data = addr, .err_data_size = sizeof(addr)};
	double end = fx_now_ms() + FX_MS;
	fi_addr_t a = FI_ADDR_NOTAVAIL;
	struct fi_cq_tagged_entry e;
	struct fx f;
	ssize_t n;

	open_stranger(&f, FI_MSG | FI_SOURCE | FI_SOURCE_ERR);
	CU_ASSERT(f.info->domain_attr->max_err_data >= f.a.namelen);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(FX_RETRY(&f, fi_injectdata(f.a.ep, "abc", 4, 99, f.a.b)), 0);
	while ((n = fi_cq_read(f.b.rxcq, &e, 1)) == -FI_EAGAIN && fx_now_ms() < end)
		fx_progress(&f);
	CU_ASSERT_EQUAL(n, -FI_EAVAIL);
	CU_ASSERT_EQUAL_FATAL(fi_cq_readerr(f.b.rxcq, &err, 0), 1);
	CU_ASSERT_EQUAL(err.err, FI_EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(err.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
	CU_ASSERT_EQUAL(err.len, 4);
	CU_ASSERT_EQUAL(err.data, 99);
	CU_ASSERT_PTR_EQUAL(err.op_context, rx);
	CU_ASSERT_STRING_EQUAL(rx, "abc");
	CU_ASSERT_EQUAL(err.err_data_size, f.a.namelen);
	CU_ASSERT_EQUAL(memcmp(addr, f.a.name, f.a.namelen), 0);
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 1);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.b.rxcntr), 0);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, addr, 1, &a, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	inject(&f, &f.a, "x");
	CU_ASSERT_EQUAL(wait_from(&f, rx), a);
	fx_close(&f);
}

static const struct fx_opt directed = {.caps = FI_MSG | FI_DIRECTED_RECV};

static void test_C4_directed_skips_others_and_leaves_them(void)
{
	char from_b[8], any[8];
	struct fx f;

	fx_open(&f, &directed);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, from_b, 8, NULL, f.b.b, from_b), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, any, 8, NULL, FI_ADDR_UNSPEC, any), 0);
	inject(&f, &f.a, "a");
	expect_text(&f, any, "a");
	inject(&f, &f.a, "a2");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	inject(&f, &f.b, "b");
	expect_text(&f, from_b, "b");
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, any, 8, NULL, f.b.a, any), 0);
	expect_text(&f, any, "a2");
	fx_close(&f);
}

static void test_C4_one_posting_order(void)
{
	char first[8], second[8];
	struct fx f;

	fx_open(&f, &directed);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, first, 8, NULL, FI_ADDR_UNSPEC, first), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, second, 8, NULL, f.b.a, second), 0);
	inject(&f, &f.a, "1");
	expect_text(&f, first, "1");
	inject(&f, &f.a, "2");
	expect_text(&f, second, "2");
	fx_close(&f);
}

static void test_C4_matches_after_the_insert(void)
{
	char rx[8], any[8];
	fi_addr_t a, self;
	struct fx f;

	open_stranger(&f, FI_MSG | FI_DIRECTED_RECV);
	/* index 0 is b, so that a receive can be posted for index 1 only after the insert */
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, f.b.name, 1, &self, 0, NULL), 1);
	inject(&f, &f.a, "1");
	inject(&f, &f.a, "2");
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, any, 8, NULL, FI_ADDR_UNSPEC, any), 0);
	expect_text(&f, any, "1");
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, f.a.name, 1, &a, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, self, any), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, a, rx), 0);
	expect_text(&f, rx, "2");
	fx_close(&f);
}

static void test_A14_a_source_that_the_av_does_not_hold(void)
{
	char rx[8];
	struct fx f;

	fx_open(&f, &directed);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, 77, rx), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, 1ull << 40, rx), -FI_EINVAL);
	fx_close(&f);
}

static void test_C5_cancel_of_a_directed_receive(void)
{
	char rx[2][8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &directed);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[0], 8, NULL, f.b.b, rx[0]), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[1], 8, NULL, FI_ADDR_UNSPEC, rx[1]), 0);
	CU_ASSERT_EQUAL(fi_cancel(&f.b.ep->fid, rx[0]), 0);
	FX_WAIT_ERR(&f, f.b.rxcq, rx[0], FI_ECANCELED, &c);
	inject(&f, &f.b, "b");
	expect_text(&f, rx[1], "b");
	fx_close(&f);
}

/* ---- fences ---- */

static void test_B9_waits_for_all_earlier_sends(void)
{
	enum { LEN = 1 << 20 };
	char *tx = malloc(LEN), *rx = malloc(LEN), small[8] = "fenced", in[2][8];
	struct iovec iov = {small, 8};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = small};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT(f.info->caps & FI_FENCE);
	msg.addr = f.a.b;
	/* the large one is held until it is received; without a fence the small ones would complete
	 */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_FENCE), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, small, 8, NULL, f.a.b, in), 0);
	/* another peer is not held up */
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, in[0], 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, small, 8, NULL, f.a.a, in[0]), 0);
	FX_WAIT_OK(&f, f.a.txcq, in[0], &c);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
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
	struct iovec iov = {small, 8};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = small};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	msg.addr = f.a.b;
	for (int i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_sendmsg(f.a.ep, &msg, FI_FENCE)), 0);
		FX_WAIT_OK(&f, f.a.txcq, small, &c);
		expect_text(&f, rx, "fenced");
	}
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
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_send(i ? alias : f.a.ep, tx, 8, NULL, f.a.b, tx), 0);
		expect_text(&f, rx, "alias");
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
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(alias, tx, 8, NULL, f.a.b, tx), 0);
	expect_text(&f, rx, "alias");
	f.a.ep = alias;
	fx_close(&f);
}

/* ---- shared receive contexts ---- */

struct shared {
	struct fx f;
	struct fid_ep *srx;
};

/* a and b receive from one context, and have an AV each. */
static void open_shared(struct shared *s)
{
	struct fx_opt opt = {0};
	struct fx_ep *both[] = {&s->f.a, &s->f.b};
	struct fx *f = &s->f;

	fx_open_domain(f, &opt);
	CU_ASSERT(f->info->domain_attr->max_ep_srx_ctx > 0);
	f->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(f->domain, f->info->rx_attr, &s->srx, NULL), 0);
	for (int i = 0; i < 2; i++) {
		fx_ep_open(f, both[i]);
		CU_ASSERT_EQUAL_FATAL(fi_ep_bind(both[i]->ep, &s->srx->fid, 0), 0);
	}
}

static void test_C9_different_avs_are_refused_and_closing_is_busy(void)
{
	struct shared s;

	open_shared(&s);
	CU_ASSERT_EQUAL(fi_enable(s.f.a.ep), 0);
	CU_ASSERT_EQUAL(fi_enable(s.f.b.ep), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_close(&s.srx->fid), -FI_EBUSY);
	fx_ep_close(&s.f.b);
	fx_ep_close(&s.f.a);
	CU_ASSERT_EQUAL(fi_close(&s.srx->fid), 0);
	fx_close_domain(&s.f);
}

static void bind_own(struct fx *f, struct fx_ep *e, struct fid_av *av, struct fid_ep *srx)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA};

	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f->domain, f->info, &e->ep, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f->domain, &attr, &e->txcq, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f->domain, &attr, &e->rxcq, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->rxcq->fid, FI_RECV), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &av->fid, 0), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &srx->fid, 0), 0);
	fx_ep_enable(e);
}

static void close_own(struct fx_ep *e)
{
	CU_ASSERT_EQUAL(fi_close(&e->ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&e->txcq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&e->rxcq->fid), 0);
}

static void test_C9_any_endpoint_takes_a_receive(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	fi_addr_t addr[2];
	struct fid_ep *srx;
	struct fid_av *av;
	struct fx_comp c;
	char rx[4][8];
	struct fx f;

	fx_open_domain(&f, NULL);
	f.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(f.domain, f.info->rx_attr, &srx, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_av_open(f.domain, &attr, &av, NULL), 0);
	bind_own(&f, &f.a, av, srx);
	bind_own(&f, &f.b, av, srx);
	CU_ASSERT_EQUAL(fi_av_insert(av, f.a.name, 1, &addr[0], 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_av_insert(av, f.b.name, 1, &addr[1], 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), -FI_ENOSYS);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(fi_recv(srx, rx[i], 8, NULL, FI_ADDR_UNSPEC, rx[i]), 0);
	/* to b, to a, to b: each takes the oldest, and the entry comes where the message went */
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "1", 2, addr[1]), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx[0], &c);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "2", 2, addr[0]), 0);
	FX_WAIT_OK(&f, f.a.rxcq, rx[1], &c);
	CU_ASSERT_EQUAL(fi_inject(f.b.ep, "3", 2, addr[1]), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx[2], &c);
	CU_ASSERT_STRING_EQUAL(rx[0], "1");
	CU_ASSERT_STRING_EQUAL(rx[1], "2");
	CU_ASSERT_STRING_EQUAL(rx[2], "3");
	CU_ASSERT_EQUAL(fi_cancel(&srx->fid, rx[3]), 0);
	FX_WAIT_ERR(&f, f.a.rxcq, rx[3], FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(fi_close(&srx->fid), -FI_EBUSY);
	close_own(&f.a);
	/* the other goes on with it */
	CU_ASSERT_EQUAL(fi_recv(srx, rx[0], 8, NULL, FI_ADDR_UNSPEC, rx[0]), 0);
	f.a.txcq = f.a.rxcq = NULL;
	CU_ASSERT_EQUAL(fi_inject(f.b.ep, "4", 2, addr[1]), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx[0], &c);
	close_own(&f.b);
	CU_ASSERT_EQUAL(fi_close(&srx->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

/* ---- FI_MSG_PREFIX ---- */

static void test_F1_prefix_is_counted_and_does_not_travel(void)
{
	struct fi_info *hints = fx_hints(&(struct fx_opt){0});
	char tx[64], rx[64];
	struct fx_comp c;
	struct fx f = {0};
	size_t p;

	hints->mode = FI_MSG_PREFIX | FI_CONTEXT;
	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &f.info), 0);
	fi_freeinfo(hints);
	CU_ASSERT_EQUAL(f.info->mode, FI_MSG_PREFIX);
	CU_ASSERT_EQUAL(f.info->tx_attr->mode, FI_MSG_PREFIX);
	CU_ASSERT_EQUAL(f.info->rx_attr->mode, FI_MSG_PREFIX);
	p = f.info->ep_attr->msg_prefix_size;
	CU_ASSERT(p > 0 && p % 8 == 0);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(f.info->fabric_attr, &f.fabric, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f.fabric, f.info, &f.domain, NULL), 0);
	fx_ep_open(&f, &f.a);
	fx_ep_open(&f, &f.b);
	fx_ep_enable(&f.a);
	fx_ep_enable(&f.b);
	fx_meet(&f);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, p - 1, NULL, f.a.b, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, NULL, 0, f.a.b), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, p - 1, NULL, FI_ADDR_UNSPEC, rx), -FI_EINVAL);
	fx_fill(tx + p, 20, 1);
	memset(tx, 0x55, p);
	memset(rx, 0xaa, sizeof(rx));
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, p + 20, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, p + 20, f.a.b), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.len, p + 20);
	CU_ASSERT(fx_same(rx + p, 20, 1));
	CU_ASSERT_EQUAL((unsigned char)rx[p + 20], 0xaa);
	/* no byte of payload */
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, p, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, p, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_EQUAL(c.e.len, p);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	fx_close(&f);
}

static void test_F1_without_the_mode_there_is_none(void)
{
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(f.info->ep_attr->msg_prefix_size, 0);
	CU_ASSERT_EQUAL(f.info->mode, 0);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_F1_prefix_is_counted_and_does_not_travel),
	FX_TEST(test_F1_without_the_mode_there_is_none),
	FX_TEST(test_C6_readfrom_tells_the_sender),
	FX_TEST(test_C6_without_the_capability_nobody_is_named),
	FX_TEST(test_C6_unknown_sender_is_not_available),
	FX_TEST(test_C6_source_err_carries_the_raw_address),
	FX_TEST(test_C4_directed_skips_others_and_leaves_them),
	FX_TEST(test_C4_one_posting_order),
	FX_TEST(test_C4_matches_after_the_insert),
	FX_TEST(test_A14_a_source_that_the_av_does_not_hold),
	FX_TEST(test_C5_cancel_of_a_directed_receive),
	FX_TEST(test_B9_waits_for_all_earlier_sends),
	FX_TEST(test_B9_with_nothing_before_it),
	FX_TEST(test_B13_alias_has_flags_of_its_own),
	FX_TEST(test_C9_different_avs_are_refused_and_closing_is_busy),
	FX_TEST(test_C9_any_endpoint_takes_a_receive),
};
FX_MAIN("sources, fences, aliases, shared contexts, prefix")
