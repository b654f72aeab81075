/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Races: cancel against arrival, closing against progress, removing against retransmission, several
 * threads on several endpoints and one queue. Rows C5, C9, E3, E4, D6, D7, F4. Run without faults
 * and, for the retransmissions, with FI_PMF_FAULT. PMF_LONG runs the full counts, which sanitizers
 * otherwise spare themselves.
 */
#include "fx.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SHARE 20
#else
#define SHARE 1
#endif

static unsigned int rounds(unsigned int all)
{
	return getenv("PMF_LONG") ? all : all / SHARE / (getenv("FI_PMF_FAULT") ? 10 : 1);
}

/* A number of its own for each test and PMF_SEED. */
static unsigned int dice(void)
{
	const char *given = getenv("PMF_SEED");
	unsigned int seed = given ? (unsigned int)strtoul(given, NULL, 0) : 11;

	printf("PMF_SEED=%u ", seed);
	return seed;
}

/* ---- cancel against arrival: C5 ---- */

struct cancel {
	struct fx f;
	fi_addr_t from;
	bool multi;
	char buf[64];
	uint32_t next; /* the number of the message that comes next */
	unsigned int state, taken, canceled;
};

static void post(struct cancel *r, bool multi)
{
	struct iovec iov = {r->buf, sizeof(r->buf)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = r->from, .context = r->buf};

	CU_ASSERT_EQUAL_FATAL(
		FX_RETRY(&r->f, fi_recvmsg(r->f.b.ep, &msg, multi ? FI_MULTI_RECV : 0)), 0);
}

/* One entry. @return whether the posted buffer is ours again */
static bool entry(struct cancel *r, bool multi)
{
	struct fx_comp c;

	CU_ASSERT_FATAL(fx_wait(&r->f, r->f.b.rxcq, &c));
	if (c.err.err) {
		CU_ASSERT_EQUAL_FATAL(c.err.err, FI_ECANCELED);
		CU_ASSERT_PTR_EQUAL_FATAL(c.err.op_context, r->buf);
		CU_ASSERT_EQUAL_FATAL(c.err.flags, FI_RECV | FI_MSG | (multi ? FI_MULTI_RECV : 0));
		r->canceled++;
		return true;
	}
	/* one that was cancelled before has left its message to this one */
	CU_ASSERT_PTR_EQUAL_FATAL(c.e.op_context, r->buf);
	CU_ASSERT_EQUAL_FATAL(memcmp(multi ? c.e.buf : r->buf, &r->next, 4), 0);
	r->next++;
	r->taken++;
	return !multi || (c.e.flags & FI_MULTI_RECV);
}

static void one_round(struct cancel *r)
{
	uint32_t until = r->next + (r->multi ? 2 : 1);
	unsigned int wait = (unsigned int)rand_r(&r->state) % 400;
	bool over = false;
	ssize_t rc;

	post(r, r->multi);
	for (uint32_t n = r->next; n < until; n++)
		CU_ASSERT_EQUAL_FATAL(FX_RETRY(&r->f, fi_inject(r->f.a.ep, &n, 4, r->f.a.b)), 0);
	if (r->f.opt.auto_progress)
		while (wait--) /* another thread is at it */
			atomic_signal_fence(memory_order_seq_cst);
	else
		for (wait %= 5; wait--;)
			fi_cq_read(r->f.a.txcq, NULL, 0);
	/* -FI_EAGAIN: a message is being placed into the buffer */
	do
		rc = fi_cancel(&r->f.b.ep->fid, r->buf);
	while (rc == -FI_EAGAIN && r->multi);
	CU_ASSERT_FATAL(rc == 0 || rc == -FI_ENOENT);
	while (!over)
		over = entry(r, r->multi);
	while (r->next < until) {
		post(r, false);
		entry(r, false);
	}
}

static void cancel_races(struct fx_opt opt, bool multi)
{
	unsigned int count = rounds(12500);
	size_t min = 57; /* two messages fit into a buffer */
	struct cancel r = {.multi = multi, .from = FI_ADDR_UNSPEC, .state = dice()};
	double end = fx_now_ms() + 10000;

	opt.counters = true;
	fx_open(&r.f, &opt);
	if (opt.caps & FI_DIRECTED_RECV)
		r.from = r.f.b.a;
	CU_ASSERT_EQUAL(fi_setopt(&r.f.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
				  sizeof(min)),
			0);
	/* on a loaded machine, where a round takes many milliseconds, not all of them */
	for (unsigned int i = 0; i < count; i++) {
		one_round(&r);
		if (r.taken && r.canceled && fx_now_ms() > end)
			break;
	}
	CU_ASSERT(fx_stays_empty(&r.f, r.f.b.rxcq));
	CU_ASSERT(r.taken > 0 && r.canceled > 0);
	CU_ASSERT_EQUAL(fi_cntr_read(r.f.b.rxcntr), r.taken);
	CU_ASSERT_EQUAL(fi_cntr_readerr(r.f.b.rxcntr), r.canceled);
	fx_close(&r.f);
}

static void test_C5_cancel_against_arrival(void)
{
	for (int i = 0; i < 4; i++) {
		struct fx_opt opt = {.auto_progress = i & 1, .msg = i & 2};

		cancel_races(opt, false);
		cancel_races(opt, true);
	}
}

static void test_C5_cancel_against_arrival_directed(void)
{
	for (int i = 0; i < 2; i++) {
		struct fx_opt opt = {.auto_progress = i, .caps = FI_MSG | FI_DIRECTED_RECV};

		cancel_races(opt, false);
		cancel_races(opt, true);
	}
}

/* ---- closing against progress: E3 ---- */

struct watcher {
	struct fx *f;
	_Atomic bool stop;
	_Atomic unsigned int entries, odd;
	pthread_t thread;
};

/* Reads a's queues, which is progress for all of the domain. */
static void *watch(void *arg)
{
	struct watcher *w = arg;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	while (!atomic_load(&w->stop)) {
		ssize_t n = fi_cq_read(w->f->a.txcq, &e, 1);

		if (n == -FI_EAVAIL)
			n = fi_cq_readerr(w->f->a.txcq, memset(&err, 0, sizeof(err)), 0);
		if (n == 1)
			atomic_fetch_add(&w->entries, 1);
		else if (n != -FI_EAGAIN)
			atomic_fetch_add(&w->odd, 1);
	}
	return NULL;
}

static void start_watch(struct watcher *w, struct fx *f)
{
	*w = (struct watcher){.f = f};
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, watch, w), 0);
}

static void end_watch(struct watcher *w)
{
	atomic_store(&w->stop, true);
	pthread_join(w->thread, NULL);
	CU_ASSERT_EQUAL(w->odd, 0);
}

/* An endpoint with sends and receives of all kinds under way, in both directions. */
static void make_busy(struct fx *f, struct fx_ep *e, fi_addr_t to, char *tx, char *rx, size_t len)
{
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(fi_recv(e->ep, rx, len, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_send(e->ep, tx, 16, NULL, to, tx), 0);
		CU_ASSERT_EQUAL(fi_send(e->ep, tx, len, NULL, to, tx), 0);
		CU_ASSERT_EQUAL(FX_RETRY(f, fi_inject(f->a.ep, tx, 16, f->a.a)), 0);
	}
}

/* Its buffers are ours when fi_close returns, whoever makes progress meanwhile. */
static void test_E3_close_against_progress(void)
{
	enum { LEN = 30000 };
	struct fx_opt opt = {.no_insert = true};
	unsigned int count = rounds(400);
	char *tx = calloc(1, LEN), *rx = malloc(LEN);
	struct watcher w;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, f.a.name, 1, &f.a.a, 0, NULL), 1);
	start_watch(&w, &f);
	for (unsigned int i = 0; i < count; i++) {
		struct fx_ep c = {0};
		fi_addr_t a, to;

		fx_ep_open(&f, &c);
		fx_ep_enable(&c);
		CU_ASSERT_EQUAL_FATAL(fi_av_insert(c.av, f.a.name, 1, &a, 0, NULL), 1);
		CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, c.name, 1, &to, 0, NULL), 1);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 16, to)), 0);
		make_busy(&f, &c, a, tx, rx, LEN);
		CU_ASSERT_EQUAL(fi_close(&c.ep->fid), 0);
		memset(rx, 0x5a, LEN);
		for (int k = 0; k < 100; k++)
			fi_cq_read(f.b.rxcq, NULL, 0);
		for (int k = 0; k < LEN; k++)
			CU_ASSERT_EQUAL_FATAL(rx[k], 0x5a);
		CU_ASSERT_EQUAL(fi_close(&c.av->fid), 0);
		CU_ASSERT_EQUAL(fi_close(&c.txcq->fid), 0);
		CU_ASSERT_EQUAL(fi_close(&c.rxcq->fid), 0);
		CU_ASSERT_EQUAL(fi_av_remove(f.a.av, &to, 1, 0), 0);
	}
	end_watch(&w);
	fx_close(&f);
	free(tx);
	free(rx);
}

/* The same for connections: connect, talk, and close while the other side's queue is read. */
static void test_E3_close_of_connections_against_progress(void)
{
	struct fx_opt opt = {.msg = true};
	unsigned int count = rounds(200);
	static char tx[20000], rx[20000];
	struct watcher w;
	struct fx f;

	fx_open(&f, &opt);
	start_watch(&w, &f);
	for (unsigned int i = 0; i < count; i++) {
		struct fx_ep c = {0}, d = {0};
		struct fx_event ev;

		fx_ep_open(&f, &c);
		CU_ASSERT_EQUAL_FATAL(fx_connect(&f, &c, NULL, 0), 0);
		CU_ASSERT_FATAL(fx_event(&f, f.peq, &ev));
		CU_ASSERT_EQUAL_FATAL(ev.event, FI_CONNREQ);
		d.info = ev.cm.info;
		fx_ep_open(&f, &d);
		CU_ASSERT_EQUAL_FATAL(fi_accept(d.ep, NULL, 0), 0);
		CU_ASSERT_FATAL(fx_event(&f, d.eq, &ev));
		CU_ASSERT_EQUAL(ev.event, FI_CONNECTED);
		for (int k = 0; k < 3; k++) {
			CU_ASSERT_EQUAL(fi_recv(d.ep, rx, sizeof(rx), NULL, 0, rx), 0);
			CU_ASSERT_EQUAL(fi_send(d.ep, tx, sizeof(tx), NULL, 0, tx), 0);
		}
		if (i % 3 == 0)
			fi_cq_read(d.txcq, NULL, 0);
		if (i % 2) {
			fx_ep_close(&d);
			CU_ASSERT_FATAL(fx_event(&f, c.eq, &ev));
			if (ev.event == FI_CONNECTED)
				CU_ASSERT_FATAL(fx_event(&f, c.eq, &ev));
			fx_ep_close(&c);
		} else {
			fx_ep_close(&c);
			CU_ASSERT_FATAL(fx_event(&f, d.eq, &ev));
			CU_ASSERT_EQUAL(ev.event, FI_SHUTDOWN);
			fx_ep_close(&d);
		}
	}
	end_watch(&w);
	fx_close(&f);
}

/* ---- removing against retransmission: E4, D7 ---- */

/* What was accepted ends once, in order, whoever leaves and comes back into the address vectors. */
static void test_E4_remove_against_retransmission(void)
{
	enum { BURST = 16, LEN = 3000 };
	unsigned int count = rounds(3000), sent = 0, got = 0, done = 0, state = dice();
	char *tx = malloc(BURST * LEN), *rx = malloc(LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int n = 1 + (unsigned int)rand_r(&state) % BURST;

		for (unsigned int k = 0; k < n; k++, sent++) {
			fx_fill(tx + k * LEN, LEN, sent);
			CU_ASSERT_EQUAL_FATAL(FX_RETRY(&f, fi_send(f.a.ep, tx + k * LEN, LEN, NULL,
								   f.a.b, tx + k * LEN)),
					      0);
		}
		for (unsigned int k = (unsigned int)rand_r(&state) % 8; k--;)
			fx_progress(&f);
		CU_ASSERT_EQUAL_FATAL(fi_av_remove(f.a.av, &f.a.b, 1, 0), 0);
		CU_ASSERT_EQUAL_FATAL(fi_av_remove(f.b.av, &f.b.a, 1, 0), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 1, NULL, f.a.b, NULL), -FI_EINVAL);
		for (; got < sent; got++) {
			CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
			FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
			CU_ASSERT_FATAL(fx_same(rx, LEN, got));
			if (got + n / 2 == sent) { /* half way, they are back */
				CU_ASSERT_EQUAL(fi_av_insert(f.b.av, f.a.name, 1, &f.b.a, 0, NULL),
						1);
				CU_ASSERT_EQUAL(f.b.a, 0);
			}
		}
		for (; done < sent; done++) {
			CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
			CU_ASSERT_EQUAL_FATAL(c.err.err, 0);
		}
		if (n / 2 == 0)
			CU_ASSERT_EQUAL(fi_av_insert(f.b.av, f.a.name, 1, &f.b.a, 0, NULL), 1);
		CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, f.b.name, 1, &f.a.b, 0, NULL), 1);
	}
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
	free(tx);
	free(rx);
}

/* ---- several threads on a shared context, several endpoints and one queue: C9, D6, F4 ---- */

enum { SLOTS = 32, SENDERS = 2 };

struct crowd {
	struct fx f;
	unsigned int each;
	_Atomic unsigned int got, sum, bad;
	_Atomic bool late, stop;
	uint32_t rx[SLOTS];
};

static void *crowd_send(void *arg)
{
	struct crowd *w = arg;
	double end = fx_now_ms() + 3 * FX_MS;

	for (uint32_t i = 1; i <= w->each && !w->late; i++) {
		struct fid_ep *ep = i % 2 ? w->f.a.ep : w->f.b.ep;
		fi_addr_t to = i % 3 ? w->f.a.b : w->f.a.a; /* one AV: the same names for both */

		if (w->f.opt.msg)
			to = 0;
		while (fi_inject(ep, &i, 4, to) == -FI_EAGAIN && !w->late) {
			w->late |= fx_now_ms() > end;
			sched_yield();
		}
	}
	return NULL;
}

static void crowd_post(struct crowd *w, uint32_t *slot)
{
	while (fi_recv(w->f.srx, slot, 4, NULL, FI_ADDR_UNSPEC, slot) == -FI_EAGAIN)
		sched_yield();
}

static void *crowd_read(void *arg)
{
	struct crowd *w = arg;
	double end = fx_now_ms() + 3 * FX_MS;

	while (atomic_load(&w->got) < SENDERS * w->each && !w->late) {
		struct fi_cq_data_entry e[4];
		ssize_t n = fi_cq_read(w->f.a.txcq, e, 4);

		for (ssize_t i = 0; i < n; i++) {
			uint32_t *slot = e[i].op_context;

			if (e[i].flags != (FI_RECV | FI_MSG) || e[i].len != 4)
				atomic_fetch_add(&w->bad, 1);
			atomic_fetch_add(&w->sum, *slot);
			atomic_fetch_add(&w->got, 1);
			crowd_post(w, slot);
		}
		if (n == -FI_EAGAIN)
			sched_yield();
		else if (n < 0)
			atomic_fetch_add(&w->bad, 1);
		if (fx_now_ms() > end)
			w->late = true;
	}
	return NULL;
}

/* Endpoints join the context and leave it meanwhile. */
static void *crowd_churn(void *arg)
{
	struct crowd *w = arg;

	while (!atomic_load(&w->stop)) {
		struct fid_ep *ep;
		int rc = fi_endpoint(w->f.domain, w->f.info, &ep, NULL);

		if (rc)
			break;
		rc |= fi_ep_bind(ep, &w->f.a.txcq->fid, FI_TRANSMIT | FI_RECV);
		rc |= fi_ep_bind(ep, &w->f.a.av->fid, 0);
		rc |= fi_ep_bind(ep, &w->f.srx->fid, 0);
		rc |= fi_enable(ep);
		rc |= fi_close(&ep->fid);
		if (rc)
			atomic_fetch_add(&w->bad, 1);
		sched_yield();
	}
	return NULL;
}

static void crowd_on_a_shared_context(struct fx_opt opt)
{
	struct crowd *w = calloc(1, sizeof(*w));
	pthread_t thread[2 * SENDERS + 1];

	opt.one_cq = opt.shared_rx = true;
	opt.rx_size = opt.tx_size = 64;
	w->each = rounds(20000);
	fx_open(&w->f, &opt);
	for (int i = 0; i < SLOTS; i++)
		crowd_post(w, &w->rx[i]);
	for (int i = 0; i < SENDERS; i++) {
		pthread_create(&thread[2 * i], NULL, crowd_send, w);
		pthread_create(&thread[2 * i + 1], NULL, crowd_read, w);
	}
	if (!w->f.opt.msg)
		pthread_create(&thread[2 * SENDERS], NULL, crowd_churn, w);
	for (int i = 0; i < 2 * SENDERS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&w->stop, true);
	if (!w->f.opt.msg)
		pthread_join(thread[2 * SENDERS], NULL);
	CU_ASSERT_FALSE(w->late);
	CU_ASSERT_EQUAL(w->bad, 0);
	CU_ASSERT_EQUAL(w->got, SENDERS * w->each);
	CU_ASSERT_EQUAL(w->sum, SENDERS * (w->each * (w->each + 1) / 2));
	fx_close(&w->f);
	free(w);
}

static void test_C9_threads_on_a_shared_context(void)
{
	for (int i = 0; i < 4; i++)
		crowd_on_a_shared_context((struct fx_opt){.auto_progress = i & 1, .msg = i & 2});
}

static const struct fx_test tests[] = {
	FX_TEST(test_C5_cancel_against_arrival),
	FX_TEST(test_C5_cancel_against_arrival_directed),
	FX_TEST(test_E3_close_against_progress),
	FX_TEST(test_E3_close_of_connections_against_progress),
	FX_TEST(test_E4_remove_against_retransmission),
	FX_TEST(test_C9_threads_on_a_shared_context),
};
FX_MAIN("races")
