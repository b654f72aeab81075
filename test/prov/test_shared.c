/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Shared receive contexts: row C9, and what B2, B5, C4, C5, D8, D9 say of them. a and b receive
 * from f.srx. FX_EP=msg: once more on a connection, whose two ends share it.
 */
#include "fx.h"

static const struct fx_opt shared = {.shared_rx = true};

static void post(struct fx *f, void *rx, size_t len)
{
	CU_ASSERT_EQUAL(fi_recv(f->srx, rx, len, NULL, FI_ADDR_UNSPEC, rx), 0);
}

static void inject(struct fx *f, struct fx_ep *from, const char *text)
{
	fi_addr_t to = from == &f->a ? from->b : from->a;

	CU_ASSERT_EQUAL(FX_RETRY(f, fi_inject(from->ep, text, strlen(text) + 1, to)), 0);
}

/* The next entry of @p e is @p rx's. */
static void expect(struct fx *f, struct fx_ep *e, char *rx, const char *text)
{
	struct fx_comp c;

	FX_WAIT_OK(f, e->rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, text);
}

static void test_C9_any_endpoint_takes_a_receive(void)
{
	char rx[4][8];
	struct fx f;

	fx_open(&f, &shared);
	CU_ASSERT(f.info->domain_attr->max_ep_srx_ctx > 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), -FI_ENOSYS);
	for (int i = 0; i < 4; i++)
		post(&f, rx[i], 8);
	/* to b, to a, to b: each takes the oldest, and the entry comes where the message went */
	inject(&f, &f.a, "1");
	expect(&f, &f.b, rx[0], "1");
	inject(&f, &f.b, "2");
	expect(&f, &f.a, rx[1], "2");
	inject(&f, &f.a, "3");
	expect(&f, &f.b, rx[2], "3");
	CU_ASSERT(fx_stays_empty(&f, f.a.rxcq));
	/* and what came before its receive */
	inject(&f, &f.b, "4");
	expect(&f, &f.a, rx[3], "4");
	inject(&f, &f.a, "5");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	post(&f, rx[0], 8);
	expect(&f, &f.b, rx[0], "5");
	fx_close(&f);
}

static void test_C9_the_other_calls(void)
{
	char rx[16], tx[4] = "abc";
	struct iovec iov[2] = {{rx, 2}, {rx + 2, 14}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .addr = FI_ADDR_UNSPEC, .context = rx};
	struct fx f;

	fx_open(&f, &shared);
	CU_ASSERT_EQUAL(fi_recvv(f.srx, iov, NULL, 2, FI_ADDR_UNSPEC, rx), 0);
	inject(&f, &f.a, "scattered");
	expect(&f, &f.b, rx, "scattered");
	CU_ASSERT_EQUAL(fi_recvmsg(f.srx, &msg, 0), 0);
	inject(&f, &f.a, "again");
	expect(&f, &f.b, rx, "again");
	CU_ASSERT_EQUAL(fi_recvmsg(f.srx, &msg, FI_PEEK), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_send(f.srx, tx, 4, NULL, 0, tx), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_inject(f.srx, tx, 4, 0), -FI_ENOSYS);
	fx_close(&f);
}

static void expect_part(struct fx *f, struct fx_ep *e, char *rx, char *at, const char *text,
			bool last)
{
	struct fx_comp c;

	FX_WAIT_OK(f, e->rxcq, rx, &c);
	CU_ASSERT_PTR_EQUAL(c.e.buf, at);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | (last ? FI_MULTI_RECV : 0));
	CU_ASSERT_STRING_EQUAL(at, text);
}

/* B5: one buffer, filled by messages to both. */
static void test_C9_multi_receive(void)
{
	char rx[20];
	struct iovec iov = {rx, sizeof(rx)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	size_t min = 8, got = 0, len = sizeof(got);
	struct fx f;

	fx_open(&f, &shared);
	CU_ASSERT_EQUAL(fi_setopt(&f.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, len),
			0);
	CU_ASSERT_EQUAL(fi_getopt(&f.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len),
			0);
	CU_ASSERT_EQUAL(got, 8);
	CU_ASSERT_EQUAL(fi_recvmsg(f.srx, &msg, FI_MULTI_RECV), 0);
	inject(&f, &f.a, "12345"); /* 14 are left */
	expect_part(&f, &f.b, rx, rx, "12345", false);
	inject(&f, &f.b, "12345"); /* 8 */
	expect_part(&f, &f.a, rx, rx + 6, "12345", false);
	inject(&f, &f.a, ""); /* 7: fewer than the minimum */
	expect_part(&f, &f.b, rx, rx + 12, "", true);
	inject(&f, &f.b, "x");
	CU_ASSERT(fx_stays_empty(&f, f.a.rxcq));
	/* by default flags, and given back by a cancel */
	CU_ASSERT_EQUAL(
		fi_control(&f.srx->fid, FI_SETOPSFLAG, &(uint64_t){FI_RECV | FI_MULTI_RECV}), 0);
	post(&f, rx, sizeof(rx));
	expect_part(&f, &f.a, rx, rx, "x", false);
	CU_ASSERT_EQUAL(fi_cancel(&f.srx->fid, rx), 0);
	{
		struct fx_comp c;

		FX_WAIT_ERR(&f, f.a.rxcq, rx, FI_ECANCELED, &c);
		CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	}
	fx_close(&f);
}

/* C4; connections do not look at the source. */
static void test_C9_directed_receives(void)
{
	struct fx_opt opt = {.shared_rx = true, .caps = FI_MSG | FI_DIRECTED_RECV};
	char from_a[8], from_b[8];
	struct fx f;

	if (fx_on_connections()) {
		fx_open(&f, &shared);
		CU_ASSERT_EQUAL(fi_recv(f.srx, from_a, 8, NULL, 0xdeadbeef, from_a), 0);
		inject(&f, &f.a, "a");
		expect(&f, &f.b, from_a, "a");
		fx_close(&f);
		return;
	}
	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.srx, from_b, 8, NULL, 77, from_b), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recv(f.srx, from_b, 8, NULL, f.a.b, from_b), 0);
	inject(&f, &f.a, "a");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_EQUAL(fi_recv(f.srx, from_a, 8, NULL, f.a.a, from_a), 0);
	expect(&f, &f.b, from_a, "a");
	inject(&f, &f.b, "b");
	expect(&f, &f.a, from_b, "b");
	fx_close(&f);
}

/* C5, D8: nobody has got it, so the endpoint that is longest with the context hears of it. */
static void test_C9_cancel_and_counters(void)
{
	struct fx_opt opt = {.shared_rx = true, .counters = true};
	char rx[3][8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 3; i++)
		post(&f, rx[i], 8);
	CU_ASSERT_EQUAL(fi_cancel(&f.srx->fid, rx[1]), 0);
	FX_WAIT_ERR(&f, f.a.rxcq, rx[1], FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.a.rxcntr), 1);
	CU_ASSERT_EQUAL(fi_cancel(&f.srx->fid, rx[1]), -FI_ENOENT);
	/* its neighbours are as they were, and count where they are used */
	inject(&f, &f.a, "1");
	expect(&f, &f.b, rx[0], "1");
	inject(&f, &f.a, "2");
	expect(&f, &f.b, rx[2], "2");
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 2);
	CU_ASSERT_EQUAL(fi_cntr_read(f.a.rxcntr), 0);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.b.rxcntr), 0);
	fx_close(&f);
}

/* B2: the binding of the endpoint that got the message counts. */
static void test_C9_selective_completion(void)
{
	struct fx_opt opt = {
		.shared_rx = true, .counters = true, .rx_bind = FI_SELECTIVE_COMPLETION};
	char rx[2][8];
	struct iovec iov = {rx[1], 8};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx[1]};
	struct fx f;

	fx_open(&f, &opt);
	post(&f, rx[0], 8);
	CU_ASSERT_EQUAL(fi_recvmsg(f.srx, &msg, FI_COMPLETION), 0);
	inject(&f, &f.a, "1");
	inject(&f, &f.a, "2");
	expect(&f, &f.b, rx[1], "2");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_STRING_EQUAL(rx[0], "1");
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 2);
	fx_close(&f);
}

/* E3, E10: the others go on with what is posted. */
static void test_C9_an_endpoint_goes(void)
{
	char rx[8];
	struct fx_event ev;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &shared);
	post(&f, rx, 8);
	CU_ASSERT_EQUAL(fi_close(&f.srx->fid), -FI_EBUSY);
	fx_ep_close(&f.b);
	if (f.opt.msg)
		FX_EVENT(&f, f.a.eq, FI_SHUTDOWN, &f.a.ep->fid, &ev);
	CU_ASSERT(fx_stays_empty(&f, f.a.rxcq));
	if (f.opt.msg) {
		CU_ASSERT_EQUAL(fi_cancel(&f.srx->fid, rx), 0);
		FX_WAIT_ERR(&f, f.a.rxcq, rx, FI_ECANCELED, &c);
	} else {
		CU_ASSERT_EQUAL(fi_inject(f.a.ep, "self", 5, f.a.a), 0);
		expect(&f, &f.a, rx, "self");
	}
	fx_close(&f);
}

/* Its queues stay, until fx_ep_close(). */
static void close_only(struct fx_ep *e)
{
	CU_ASSERT_EQUAL_FATAL(fi_close(&e->ep->fid), 0);
	e->ep = NULL;
}

/* D6, E3: ends that have no room in the queue of who closes are told by another one. */
static void test_C9_canceled_with_an_endpoint_that_goes(void)
{
	enum { N = 12 };
	struct fx_opt opt = {.shared_rx = true, .counters = true, .rx_size = N, .cq_size = 4};
	unsigned int at_a = 0, at_b = 0, seen = 0;
	struct fx_comp c;
	char rx[N];
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < N; i++)
		post(&f, &rx[i], 1);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(fi_cancel(&f.srx->fid, &rx[i]), 0);
	close_only(&f.a);
	for (double end = fx_now_ms() + FX_MS; at_a + at_b < N && fx_now_ms() < end;) {
		bool a = fx_take(f.a.rxcq, &c) == 1, b = !a && fx_take(f.b.rxcq, &c) == 1;

		if (!a && !b)
			continue;
		at_a += a;
		at_b += b;
		CU_ASSERT_EQUAL(c.err.err, FI_ECANCELED);
		seen |= 1u << ((char *)c.err.op_context - rx);
	}
	CU_ASSERT_EQUAL(seen, (1u << N) - 1);
	CU_ASSERT(at_a >= 4 && at_b > 0);
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.b.rxcntr), at_b);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_ep_close(&f.b);
	fx_ep_close(&f.a);
	fx_close(&f);
}

/* E3: and so are receives that were being filled by it. */
static void test_C9_filled_by_an_endpoint_that_goes(void)
{
	enum { LEN = 64 << 20 };
	char *tx = malloc(LEN), *rx = calloc(1, LEN);
	struct fx_comp c;
	struct fx f;

	memset(tx, 1, LEN);
	fx_open(&f, &shared);
	post(&f, rx, LEN);
	CU_ASSERT_EQUAL(FX_RETRY(&f, fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx)), 0);
	for (double end = fx_now_ms() + FX_MS; !fx_peek(rx) && fx_now_ms() < end;)
		fx_progress(&f);
	CU_ASSERT_EQUAL(fx_peek(rx), 1);
	CU_ASSERT_EQUAL(fx_peek(rx + LEN - 1), 0);
	close_only(&f.b);
	FX_WAIT_ERR(&f, f.a.rxcq, rx, FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(c.err.flags, FI_RECV | FI_MSG);
	fx_ep_close(&f.b);
	fx_close(&f);
	free(rx);
	free(tx);
}

static void test_C9_binding(void)
{
	struct fx_opt opt = {.msg = fx_on_connections()};
	struct fi_rx_attr other_prefix;
	struct fid_domain *domain;
	struct fid_ep *ep, *own, *srx, *foreign, *prefixed;
	struct fx f;

	fx_open_domain(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &own, NULL), 0);
	f.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &ep, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(f.domain, f.info->rx_attr, &srx, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f.fabric, f.info, &domain, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(domain, NULL, &foreign, NULL), 0);
	other_prefix = *f.info->rx_attr;
	other_prefix.mode |= FI_MSG_PREFIX;
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(f.domain, &other_prefix, &prefixed, NULL), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_EOPBADSTATE); /* where are its receives? */
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &srx->fid, FI_RECV), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &foreign->fid, 0), -FI_EDOMAIN);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &prefixed->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(own, &srx->fid, 0), -FI_EINVAL); /* has receives of its own */
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &srx->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &srx->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_close(&srx->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&own->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&srx->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&prefixed->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&foreign->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&domain->fid), 0);
	fx_close_domain(&f);
}

/* RDM endpoints on one context name sources by one AV. */
static void test_C9_different_avs_are_refused(void)
{
	struct fx_opt opt = {.no_enable = true};
	struct fid_ep *srx;
	struct fx f;

	if (fx_on_connections())
		return;
	fx_open_domain(&f, &opt);
	f.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(f.domain, f.info->rx_attr, &srx, NULL), 0);
	fx_ep_open(&f, &f.a);
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(f.a.ep, &srx->fid, 0), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(f.b.ep, &srx->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_enable(f.a.ep), 0);
	CU_ASSERT_EQUAL(fi_enable(f.b.ep), -FI_EINVAL);
	fx_ep_close(&f.b);
	fx_ep_close(&f.a);
	CU_ASSERT_EQUAL(fi_close(&srx->fid), 0);
	fx_close_domain(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_C9_any_endpoint_takes_a_receive),
	FX_TEST(test_C9_the_other_calls),
	FX_TEST(test_C9_multi_receive),
	FX_TEST(test_C9_directed_receives),
	FX_TEST(test_C9_cancel_and_counters),
	FX_TEST(test_C9_selective_completion),
	FX_TEST(test_C9_an_endpoint_goes),
	FX_TEST(test_C9_canceled_with_an_endpoint_that_goes),
	FX_TEST(test_C9_filled_by_an_endpoint_that_goes),
	FX_TEST(test_C9_binding),
	FX_TEST(test_C9_different_avs_are_refused),
};
FX_MAIN("shared receive contexts")
