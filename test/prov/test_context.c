/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What holds for all calls: errors that say what they mean, and contexts. Rows A12, A15.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void test_A12_again_means_nothing_was_queued(void)
{
	struct fx_opt opt = {.tx_size = 64, .rx_size = 64};
	unsigned int accepted = 0, got = 0, done = 0;
	char tx[8] = "again", rx[64][8];
	struct fi_cq_data_entry e;
	struct fx f;
	ssize_t rc;

	/* Given a sender whose peer has posted nothing, it posts until it is refused ... */
	fx_open(&f, &opt);
	while ((rc = fi_send(f.a.ep, tx, sizeof(tx), NULL, f.a.b, tx)) == 0 && accepted < 1u << 20)
		accepted++;
	CU_ASSERT_EQUAL(rc, -FI_EAGAIN);
	CU_ASSERT(accepted >= f.info->tx_attr->size);
	/* ... then as many messages come as were accepted, and no more. */
	for (double end = fx_now_ms() + FX_MS; got < accepted && fx_now_ms() < end;) {
		(void)!fi_recv(f.b.ep, rx[got % 64], 8, NULL, FI_ADDR_UNSPEC, NULL);
		while (fi_cq_read(f.b.rxcq, &e, 1) == 1)
			got++;
		while (fi_cq_read(f.a.txcq, &e, 1) == 1)
			done++;
	}
	CU_ASSERT_EQUAL(got, accepted);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	while (fi_cq_read(f.a.txcq, &e, 1) == 1)
		done++;
	CU_ASSERT_EQUAL(done, accepted);
	/* The same call succeeds now that both queues were read. */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, sizeof(tx), NULL, f.a.b, tx), 0);
	fx_close(&f);
}

static void test_A15_context_comes_back(void)
{
	char tx[16] = "context", rx[2][16];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[i], 16, NULL, FI_ADDR_UNSPEC, &rx[i][i]), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 16, NULL, f.a.b, &tx[i]), 0);
	}
	for (unsigned int i = 0; i < 2; i++) {
		FX_WAIT_OK(&f, f.b.rxcq, &rx[i][i], &c);
		FX_WAIT_OK(&f, f.a.txcq, &tx[i], &c);
	}
	fx_close(&f);
}

static void test_A15_an_error_gives_back_what_no_success_would(void)
{
	struct fx_opt opt = {.tx_bind = FI_SELECTIVE_COMPLETION};
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(9)};
	char tx[16] = "nobody hears it";
	struct iovec iov = {tx, sizeof(tx)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = tx};
	bool seen_context = false, seen_null = false;
	struct fx_comp c;
	struct fx f;

	/* Given a peer that is not there, and sends of which no success entry is due ... */
	inet_pton(AF_INET, "10.99.0.1", &sin.sin_addr);
	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, &sin, 1, &msg.addr, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, 0), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, sizeof(tx), msg.addr), 0);
	/* ... each ends in an error entry, with the context as passed, or NULL for inject. */
	for (unsigned int i = 0; i < 2; i++) {
		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
		CU_ASSERT_NOT_EQUAL(c.err.err, 0);
		seen_context |= c.err.op_context == tx;
		seen_null |= c.err.op_context == NULL;
	}
	CU_ASSERT(seen_context && seen_null);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_A12_again_means_nothing_was_queued),
	FX_TEST(test_A15_context_comes_back),
	FX_TEST(test_A15_an_error_gives_back_what_no_success_would),
};
FX_MAIN("contexts and errors")
