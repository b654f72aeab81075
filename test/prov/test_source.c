/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Who sent it, and receives for one sender: rows C4, C6, A14. b receives; its AV knows a as 0 and
 * itself as 1.
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
static void open_stranger(struct fx *f, uint64_t caps, bool selective)
{
	struct fx_opt opt = {.caps = caps,
			     .no_insert = true,
			     .counters = true,
			     .rx_bind = selective ? FI_SELECTIVE_COMPLETION : 0};

	fx_open(f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f->a.av, f->b.name, 1, &f->a.b, 0, NULL), 1);
}

static void test_C6_unknown_sender_is_not_available(void)
{
	char rx[8];
	struct fx f;

	open_stranger(&f, FI_MSG | FI_SOURCE, false);
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

	open_stranger(&f, FI_MSG | FI_SOURCE | FI_SOURCE_ERR, false);
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

/* Where no success entry is due none is written; what is cut is cut, whoever has sent it; and the
 * address comes as far as there is room, or in the provider's own buffer (D3). */
static void test_C6_source_err_and_other_reasons(void)
{
	struct fi_cq_err_entry err = {0};
	char rx[8], addr[4];
	struct iovec iov = {rx, 8};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	struct fx_comp c;
	struct fx f;

	open_stranger(&f, FI_MSG | FI_SOURCE | FI_SOURCE_ERR, true);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	inject(&f, &f.a, "silent");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_STRING_EQUAL(rx, "silent");
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 1, NULL, FI_ADDR_UNSPEC, rx), 0);
	inject(&f, &f.a, "cut");
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ETRUNC, &c);
	for (int own = 0; own < 2; own++) {
		CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, FI_COMPLETION), 0);
		inject(&f, &f.a, "x");
		err.err_data = own ? NULL : addr;
		err.err_data_size = own ? 0 : sizeof(addr);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_cq_readerr(f.b.rxcq, &err, 0)), 1);
		CU_ASSERT_EQUAL(err.err, FI_EADDRNOTAVAIL);
		CU_ASSERT_EQUAL_FATAL(err.err_data_size, own ? f.a.namelen : sizeof(addr));
		CU_ASSERT_EQUAL(memcmp(err.err_data, f.a.name, err.err_data_size), 0);
	}
	fx_close(&f);
}

static void expect_stranger(struct fx *f, struct fi_cq_err_entry *err, void *ctx)
{
	CU_ASSERT_EQUAL_FATAL(FX_RETRY(f, fi_cq_readerr(f->b.rxcq, err, 0)), 1);
	CU_ASSERT_EQUAL(err->err, FI_EADDRNOTAVAIL);
	CU_ASSERT_PTR_EQUAL(err->op_context, ctx);
	CU_ASSERT_EQUAL_FATAL(err->err_data_size, f->a.namelen);
	CU_ASSERT_EQUAL(memcmp(err->err_data, f->a.name, f->a.namelen), 0);
}

/* Of messages that came before their receive as well. */
static void source_err_in(uint32_t format)
{
	struct fx_opt opt = {.caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR,
			     .no_insert = true,
			     .addr_format = format};
	fi_addr_t a = FI_ADDR_NOTAVAIL;
	char rx[8], addr[128];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, f.b.name, 1, &f.a.b, 0, NULL), 1);
	for (int kept = 1; kept >= 0; kept--) {
		struct fi_cq_err_entry err = {.err_data = addr, .err_data_size = sizeof(addr)};

		if (kept)
			inject(&f, &f.a, "x");
		CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
		if (!kept)
			inject(&f, &f.a, "x");
		expect_stranger(&f, &err, rx);
	}
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, addr, 1, &a, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	inject(&f, &f.a, "x");
	CU_ASSERT_EQUAL(wait_from(&f, rx), a);
	fx_close(&f);
}

static void test_C6_source_err_in_each_format(void)
{
	source_err_in(FI_SOCKADDR_IN);
	source_err_in(FI_SOCKADDR_IN6);
	source_err_in(FI_ADDR_STR);
}

/* Other fields are as for a success, in a multi-receive buffer too. */
static void test_C6_source_err_in_a_packed_buffer(void)
{
	char rx[12], addr[64];
	struct iovec iov = {rx, sizeof(rx)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = rx};
	size_t min = 8;
	struct fx f;

	open_stranger(&f, FI_MSG | FI_SOURCE | FI_SOURCE_ERR | FI_MULTI_RECV, false);
	CU_ASSERT_EQUAL(
		fi_setopt(&f.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
		0);
	CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &msg, FI_MULTI_RECV), 0);
	for (int last = 0; last < 2; last++) {
		struct fi_cq_err_entry err = {.err_data = addr, .err_data_size = sizeof(addr)};

		inject(&f, &f.a, last ? "yz" : "x");
		expect_stranger(&f, &err, rx);
		CU_ASSERT_EQUAL(err.flags, FI_RECV | FI_MSG | (last ? FI_MULTI_RECV : 0));
		CU_ASSERT_EQUAL(err.len, last ? 3 : 2);
		CU_ASSERT_PTR_EQUAL(err.buf, last ? rx + 2 : rx);
		CU_ASSERT_STRING_EQUAL(err.buf, last ? "yz" : "x");
	}
	CU_ASSERT_EQUAL(fi_cntr_read(f.b.rxcntr), 2);
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
	char first[8], second[8], third[8], other[8];
	struct fx f;

	fx_open(&f, &directed);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, first, 8, NULL, FI_ADDR_UNSPEC, first), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, second, 8, NULL, f.b.a, second), 0);
	inject(&f, &f.a, "1");
	expect_text(&f, first, "1");
	inject(&f, &f.a, "2");
	expect_text(&f, second, "2");
	/* behind one for another source: the older of the two that match, of either kind */
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, other, 8, NULL, f.b.b, other), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, first, 8, NULL, FI_ADDR_UNSPEC, first), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, second, 8, NULL, f.b.a, second), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, third, 8, NULL, FI_ADDR_UNSPEC, third), 0);
	inject(&f, &f.a, "3");
	expect_text(&f, first, "3");
	inject(&f, &f.a, "4");
	expect_text(&f, second, "4");
	inject(&f, &f.a, "5");
	expect_text(&f, third, "5");
	fx_close(&f);
}

static void test_C4_matches_after_the_insert(void)
{
	char rx[8], any[8];
	fi_addr_t a, self;
	struct fx f;

	open_stranger(&f, FI_MSG | FI_DIRECTED_RECV, false);
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

/* A receive that waits for an fi_addr_t takes what somebody has sent who is given it later. */
static void test_C4_an_insert_finds_the_receive_that_waits(void)
{
	char rx[8];
	fi_addr_t a;
	struct fx f;

	fx_open(&f, &directed);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, f.b.a, rx), 0);
	CU_ASSERT_EQUAL(fi_av_remove(f.b.av, &f.b.a, 1, 0), 0);
	inject(&f, &f.a, "1");
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, f.a.name, 1, &a, 0, NULL), 1);
	CU_ASSERT_EQUAL(a, f.b.a);
	expect_text(&f, rx, "1");
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

static const struct fx_test tests[] = {
	FX_TEST(test_C6_readfrom_tells_the_sender),
	FX_TEST(test_C6_without_the_capability_nobody_is_named),
	FX_TEST(test_C6_unknown_sender_is_not_available),
	FX_TEST(test_C6_source_err_carries_the_raw_address),
	FX_TEST(test_C6_source_err_and_other_reasons),
	FX_TEST(test_C6_source_err_in_each_format),
	FX_TEST(test_C6_source_err_in_a_packed_buffer),
	FX_TEST(test_C4_directed_skips_others_and_leaves_them),
	FX_TEST(test_C4_one_posting_order),
	FX_TEST(test_C4_matches_after_the_insert),
	FX_TEST(test_C4_an_insert_finds_the_receive_that_waits),
	FX_TEST(test_A14_a_source_that_the_av_does_not_hold),
	FX_TEST(test_C5_cancel_of_a_directed_receive),
};
FX_MAIN("sources")
