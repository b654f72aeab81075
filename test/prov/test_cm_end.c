/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * How connections end, and event queues: rows E10 and E11, and A11 after the end.
 */
#include <poll.h>

#include "fx.h"

static const struct fx_opt msg = {.msg = true};

static void test_E10_shutdown(void)
{
	static uint8_t big[1 << 20];
	struct fx_event ev;
	struct fx_comp c;
	char in[16], own[16];
	struct fx f;

	fx_open(&f, &msg);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 1), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, 0, in), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "one", 4, NULL, 0, &f), 0);
	FX_WAIT_OK(&f, f.a.txcq, &f, &c);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in + 8, 8, NULL, 0, in + 8), 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, own, sizeof(own), NULL, 0, own), 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, own, sizeof(own), NULL, 0, own), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "two", 4, NULL, 0, &f), 0);
	FX_WAIT_OK(&f, f.a.rxcq, own, &c);
	/* announced: waits for a receive that never comes */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "", 0, NULL, 0, NULL), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, big, sizeof(big), NULL, 0, big), 0);
	FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	/* all entries are there when it returns: no progress in between */
	CU_ASSERT_EQUAL(fi_cq_read(f.a.txcq, &c.e, 1), -FI_EAVAIL);
	CU_ASSERT_EQUAL(fi_cq_readerr(f.a.txcq, &c.err, 0), 1);
	CU_ASSERT_EQUAL(c.err.err, FI_ECANCELED);
	CU_ASSERT_PTR_EQUAL(c.err.op_context, big);
	CU_ASSERT_EQUAL(fi_cq_read(f.a.rxcq, &c.e, 1), -FI_EAVAIL);
	CU_ASSERT_EQUAL(fi_cq_readerr(f.a.rxcq, &c.err, 0), 1);
	CU_ASSERT_EQUAL(c.err.err, FI_ECANCELED);
	FX_EVENT(&f, f.a.eq, FI_SHUTDOWN, &f.a.ep->fid, &ev);
	FX_EVENT(&f, f.b.eq, FI_SHUTDOWN, &f.b.ep->fid, &ev);
	FX_WAIT_OK(&f, f.b.rxcq, in, &c);
	CU_ASSERT_STRING_EQUAL(in, "one");
	FX_WAIT_OK(&f, f.b.rxcq, in + 8, &c); /* the empty one */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "x", 1, NULL, 0, NULL), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, own, 1, NULL, 0, NULL), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "x", 1, NULL, 0, NULL), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, own, 1, NULL, 0, NULL), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_shutdown(f.b.ep, 0), 0);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	CU_ASSERT_TRUE(fx_no_event(&f, f.b.eq));
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.a.rxcq));
	fx_close(&f);
}

/* One side's end is the acknowledgement of what it has taken, and it knows what it has heard. */
static void test_E10_what_the_end_acknowledges_is_sent(void)
{
	char in[8], own[8];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &msg);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, 0, in), 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, own, sizeof(own), NULL, 0, own), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "ask", 4, NULL, 0, &in), 0);
	FX_WAIT_OK(&f, f.b.rxcq, in, &c);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "answer", 7, NULL, 0, &own), 0);
	FX_WAIT_OK(&f, f.a.rxcq, own, &c);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	FX_WAIT_OK(&f, f.a.txcq, &in, &c);
	FX_WAIT_OK(&f, f.b.txcq, &own, &c);
	fx_close(&f);
}

/* Not by the next pass: what has just been posted has its entries when fi_shutdown returns. */
static void test_E10_entries_are_there_when_it_returns(void)
{
	enum { N = 10 };
	struct fx_opt opt = {.msg = true, .wait_obj = FI_WAIT_FD};
	static uint8_t big[1 << 20];
	unsigned int there = 0;
	char own[8];

	for (int i = 0; i < N; i++) {
		struct pollfd rx = {.events = POLLIN}, tx = {.events = POLLIN};
		struct fid *fids[2];
		struct fx f;

		fx_open(&f, &opt);
		fids[0] = &f.a.rxcq->fid;
		fids[1] = &f.a.txcq->fid;
		CU_ASSERT_EQUAL_FATAL(fi_control(fids[0], FI_GETWAIT, &rx.fd), 0);
		CU_ASSERT_EQUAL_FATAL(fi_control(fids[1], FI_GETWAIT, &tx.fd), 0);
		CU_ASSERT_EQUAL(fi_trywait(f.fabric, fids, 2), 0);
		CU_ASSERT_EQUAL(fi_recv(f.a.ep, own, sizeof(own), NULL, 0, own), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, big, sizeof(big), NULL, 0, big), 0);
		CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
		there += poll(&rx, 1, 0) == 1 && poll(&tx, 1, 0) == 1;
		fx_close(&f);
	}
	CU_ASSERT_EQUAL(there, N);
}

static void test_E10_peer_closes(void)
{
	struct fx_event ev;
	struct fx_comp c;
	char in[8];
	double start;
	struct fx f;

	fx_open(&f, &msg);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, 0, in), 0);
	start = fx_now_ms();
	fx_ep_close(&f.a);
	FX_WAIT_ERR(&f, f.b.rxcq, in, FI_ECANCELED, &c);
	FX_EVENT(&f, f.b.eq, FI_SHUTDOWN, &f.b.ep->fid, &ev);
	CU_ASSERT(fx_now_ms() - start < fx_dead_ms() / 5); /* told, not found out by asking */
	CU_ASSERT_TRUE(fx_no_event(&f, f.b.eq));
	fx_close(&f);
}

static void test_E10_injected_and_kept_messages_arrive(void)
{
	struct fx_event ev;
	struct fx_comp c;
	char in[8] = "";
	struct fx f;

	fx_open(&f, &msg);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "last", 5, 0), 0);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	FX_EVENT(&f, f.b.eq, FI_SHUTDOWN, &f.b.ep->fid, &ev);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "x", 1, NULL, 0, NULL), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, 0, in), 0);
	FX_WAIT_OK(&f, f.b.rxcq, in, &c);
	CU_ASSERT_STRING_EQUAL(in, "last");
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, 0, in), -FI_ENOTCONN);
	fx_close(&f);
}

/* Injected messages that a window or the peer still holds back leave before the end, without an
 * entry. */
static void test_E10_all_that_was_injected_arrives(void)
{
	struct fx_opt opt = {.msg = true, .tx_size = 256, .rx_size = 256};
	unsigned int sent = 0, got = 0;
	struct fx_event ev;
	struct fx_comp c;
	uint32_t in[256];
	struct fx f;

	fx_open(&f, &opt);
	for (unsigned int i = 0; i < 200; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, &in[i], 4, NULL, 0, &in[i]), 0);
	while (sent < 200 && fi_inject(f.a.ep, &sent, 4, 0) == 0)
		sent++;
	CU_ASSERT(sent > 1);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	for (; got < sent; got++) {
		FX_WAIT_OK(&f, f.b.rxcq, &in[got], &c);
		CU_ASSERT_EQUAL(in[got], got);
	}
	FX_EVENT(&f, f.b.eq, FI_SHUTDOWN, &f.b.ep->fid, &ev);
	for (; got < 200; got++)
		FX_WAIT_ERR(&f, f.b.rxcq, &in[got], FI_ECANCELED, &c);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

/* Where the link doubles every frame, and one of the two comes up to a millisecond late: what has
 * ended is not begun again. */
static void test_E10_faults_late_copies_begin_nothing(void)
{
	double end = fx_now_ms() + FX_MS;
	struct fx_event ev;
	struct fx f;

	if (!getenv("FI_PMF_FAULT"))
		return;
	fx_open_domain(&f, &msg);
	fx_listen(&f);
	/* until the end of one came before the late copy of its request */
	while (fx_stat(&f, "engine:0", "drop_ended") < 3 && fx_now_ms() < end) {
		fx_ep_open(&f, &f.a);
		CU_ASSERT_EQUAL_FATAL(fx_connect(&f, &f.a, &f.a, sizeof(void *)), 0);
		FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
		CU_ASSERT_EQUAL_FATAL(fi_reject(f.pep, ev.cm.info->handle, NULL, 0), 0);
		fi_freeinfo(ev.cm.info);
		FX_EVENT_ERR(&f, f.a.eq, FI_ECONNREFUSED, &f.a.ep->fid, &ev);
		CU_ASSERT_FATAL(fx_no_event(&f, f.peq));
		fx_ep_close(&f.a);
	}
	CU_ASSERT(fx_stat(&f, "engine:0", "drop_ended") >= 3);
	fx_close(&f);
}

enum { BIG = 64 << 20 };

/* On both sides a receive that is being filled, a send that is being fetched, one that waits for a
 * receive, and one behind a fence. */
struct busy {
	struct fx f;
	char *mem; /* 2 × BIG */
	char small[8];
};

static void start_busy(struct busy *b)
{
	struct iovec iov = {b->small, 8};
	struct fi_msg fenced = {.msg_iov = &iov, .iov_count = 1, .context = b->small};
	struct fx *f = &b->f;
	struct fx_ep *both[] = {&f->a, &f->b};

	b->mem = calloc(4, BIG);
	fx_open(f, &msg);
	for (int i = 0; i < 2; i++) {
		char *rx = b->mem + (size_t)(2 * i) * BIG, *tx = rx + BIG;

		CU_ASSERT_EQUAL(fi_recv(both[i]->ep, rx, BIG, NULL, 0, rx), 0);
		CU_ASSERT_EQUAL(fi_send(both[i]->ep, tx, BIG, NULL, 0, tx), 0);
		CU_ASSERT_EQUAL(fi_send(both[i]->ep, tx, BIG, NULL, 0, tx + 1), 0);
		CU_ASSERT_EQUAL(fi_sendmsg(both[i]->ep, &fenced, FI_FENCE), 0);
	}
	/* until bytes come, and far from their end */
	for (double end = fx_now_ms() + FX_MS; fx_now_ms() < end && !fx_peek(b->mem + 2 * BIG);)
		fi_cq_read(f->a.txcq, memset(b->mem + BIG, 1, 1), 0);
}

static bool still_busy(const struct busy *b)
{
	const struct fx_ep *a = &b->f.a, *e = &b->f.b;

	return fi_cq_read(a->txcq, NULL, 0) == -FI_EAGAIN &&
	       fi_cq_read(a->rxcq, NULL, 0) == -FI_EAGAIN &&
	       fi_cq_read(e->txcq, NULL, 0) == -FI_EAGAIN &&
	       fi_cq_read(e->rxcq, NULL, 0) == -FI_EAGAIN;
}

/* A thread that did not run for long finds all of it transferred: then once more. */
static void open_busy(struct busy *b)
{
	start_busy(b);
	for (int i = 0; i < 20 && !still_busy(b); i++) {
		fx_close(&b->f);
		free(b->mem);
		start_busy(b);
	}
}

/* All of the four end as cancelled: two of the large sends, the fenced one, and the receive. */
static void expect_canceled(struct fx *f, struct fx_ep *e, bool at_once)
{
	struct fx_comp c = {0};

	for (int i = 0; i < 4; i++) {
		struct fid_cq *cq = i < 3 ? e->txcq : e->rxcq;

		if (at_once) { /* written before fi_shutdown returned */
			CU_ASSERT_EQUAL(fi_cq_read(cq, &c.e, 1), -FI_EAVAIL);
			memset(&c.err, 0, sizeof(c.err));
			CU_ASSERT_EQUAL(fi_cq_readerr(cq, &c.err, 0), 1);
		} else {
			CU_ASSERT_FATAL(fx_wait(f, cq, &c));
		}
		if (c.err.err != FI_ECANCELED)
			fx_explain(f, &c);
		CU_ASSERT_EQUAL(c.err.err, FI_ECANCELED);
	}
	CU_ASSERT(fx_stays_empty(f, e->txcq));
	CU_ASSERT(fx_stays_empty(f, e->rxcq));
}

static void test_E10_operations_under_way_are_cancelled_on_both_sides(void)
{
	struct busy b = {0};
	struct fx_event ev;

	open_busy(&b);
	CU_ASSERT_EQUAL(fi_shutdown(b.f.a.ep, 0), 0);
	expect_canceled(&b.f, &b.f.a, true);
	expect_canceled(&b.f, &b.f.b, false);
	FX_EVENT(&b.f, b.f.a.eq, FI_SHUTDOWN, &b.f.a.ep->fid, &ev);
	FX_EVENT(&b.f, b.f.b.eq, FI_SHUTDOWN, &b.f.b.ep->fid, &ev);
	fx_close(&b.f);
	free(b.mem);
}

static void test_E10_close_cancels_the_peers_operations(void)
{
	struct busy b = {0};
	struct fx_event ev;

	open_busy(&b);
	fx_ep_close(&b.f.a);
	expect_canceled(&b.f, &b.f.b, false);
	FX_EVENT(&b.f, b.f.b.eq, FI_SHUTDOWN, &b.f.b.ep->fid, &ev);
	fx_close(&b.f);
	free(b.mem);
}

static void test_E11_small_buffer_and_descriptor(void)
{
	struct fi_eq_cm_entry entry;
	struct pollfd p = {.events = POLLIN};
	enum fi_wait_obj obj;
	struct fid *fids[1];
	uint32_t event;
	struct fx_event ev;
	struct fx f;

	fx_open_domain(&f, &msg);
	fx_listen(&f);
	fx_ep_open(&f, &f.a);
	CU_ASSERT_EQUAL(fi_control(&f.peq->fid, FI_GETWAIT, &p.fd), 0);
	CU_ASSERT_EQUAL(fi_control(&f.peq->fid, FI_GETWAITOBJ, &obj), 0);
	CU_ASSERT_EQUAL(obj, FI_WAIT_FD);
	FX_DRIVES_PROGRESS(&f, CU_ASSERT_EQUAL(fi_eq_read(f.peq, &event, &entry, sizeof(entry), 0),
					       -FI_EAGAIN));
	fids[0] = &f.peq->fid;
	CU_ASSERT_EQUAL(fi_trywait(f.fabric, fids, 1), 0);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, "hi", 3), 0);
	/* with no call of ours: somebody is always there */
	CU_ASSERT_EQUAL(poll(&p, 1, FX_MS), 1);
	CU_ASSERT_EQUAL(fi_eq_read(f.peq, &event, &entry, sizeof(entry), 0), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(fi_eq_read(f.peq, &event, &entry, 1, FI_PEEK), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(fi_eq_sread(f.peq, &event, ev.bytes, sizeof(ev.bytes), FX_MS, FI_PEEK),
			(ssize_t)sizeof(entry) + 3);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 1);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	fi_freeinfo(ev.cm.info);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0);
	fx_close(&f);
}

static void test_E11_no_event_after_close(void)
{
	struct fid_eq *eq;
	struct fx_event ev;
	struct fx f;

	fx_open(&f, &msg);
	eq = fx_eq_open(&f);
	/* both on the listener's queue would do as well; b's own is kept open behind it */
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.ep->fid), 0);
	CU_ASSERT_EQUAL(fi_eq_read(f.a.eq, &ev.event, ev.bytes, sizeof(ev.bytes), 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fi_close(&f.a.eq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.txcq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.rxcq->fid), 0);
	memset(&f.a, 0, sizeof(f.a));
	FX_EVENT(&f, f.b.eq, FI_SHUTDOWN, &f.b.ep->fid, &ev);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	fx_close(&f);
}

/* An error entry is seen by fi_eq_readerr alone, and stays there when it is looked at only. */
static void test_E11_errors_and_peeking(void)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_eq_cm_entry entry = {0};
	struct fid_eq *eq;
	uint32_t event;
	struct fx f;
	double end;

	fx_open_domain(&f, &msg);
	fx_listen(&f);
	fx_ep_open(&f, &f.a);
	CU_ASSERT_EQUAL(fi_eq_readerr(f.a.eq, &err, 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	/* with its request unread, no event of the listener is left when it closes */
	CU_ASSERT_EQUAL(fi_eq_sread(f.peq, &event, &entry, sizeof(entry), FX_MS, FI_PEEK),
			sizeof(entry));
	CU_ASSERT_EQUAL(fi_close(&f.pep->fid), 0);
	f.pep = NULL;
	CU_ASSERT_EQUAL(fi_eq_read(f.peq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	end = fx_now_ms() + FX_MS;
	while (fi_eq_read(f.a.eq, &event, &entry, sizeof(entry), 0) == -FI_EAGAIN &&
	       fx_now_ms() < end)
		;
	CU_ASSERT_EQUAL(fi_eq_read(f.a.eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	CU_ASSERT_EQUAL(fi_eq_sread(f.a.eq, &event, &entry, sizeof(entry), 0, 0), -FI_EAVAIL);
	CU_ASSERT_EQUAL(fi_eq_readerr(f.a.eq, &err, FI_PEEK), sizeof(err));
	CU_ASSERT_EQUAL(err.err, FI_ECONNREFUSED);
	memset(&err, 0, sizeof(err));
	CU_ASSERT_EQUAL(fi_eq_readerr(f.a.eq, &err, 0), sizeof(err));
	CU_ASSERT_EQUAL(err.err, FI_ECONNREFUSED);
	CU_ASSERT_PTR_EQUAL(err.fid, &f.a.ep->fid);
	CU_ASSERT_EQUAL(fi_eq_readerr(f.a.eq, &err, 0), -FI_EAGAIN);
	/* written to only if opened for it */
	CU_ASSERT_EQUAL(fi_eq_write(f.a.eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EINVAL);
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f.fabric, &attr, &eq, NULL), 0);
	CU_ASSERT_EQUAL(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_control(&eq->fid, FI_GETWAITOBJ, &event), -FI_ENODATA);
	CU_ASSERT_EQUAL(fi_control(&eq->fid, FI_GETWAIT, &event), -FI_ENODATA);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_E10_shutdown),
	FX_TEST(test_E10_what_the_end_acknowledges_is_sent),
	FX_TEST(test_E10_entries_are_there_when_it_returns),
	FX_TEST(test_E10_peer_closes),
	FX_TEST(test_E10_injected_and_kept_messages_arrive),
	FX_TEST(test_E10_all_that_was_injected_arrives),
	FX_TEST(test_E10_faults_late_copies_begin_nothing),
	FX_TEST(test_E10_operations_under_way_are_cancelled_on_both_sides),
	FX_TEST(test_E10_close_cancels_the_peers_operations),
	FX_TEST(test_E11_small_buffer_and_descriptor),
	FX_TEST(test_E11_no_event_after_close),
	FX_TEST(test_E11_errors_and_peeking),
};

FX_MAIN("connections' ends")
