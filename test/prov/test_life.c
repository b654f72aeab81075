/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Peers that are not there, closing, cycles, forks: rows E1, E3, E5, E6.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void nobody_at(const char *ip)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(7)};
	struct fx_opt opt = {.caps = FI_MSG | FI_DIRECTED_RECV, .counters = true};
	char tx[64] = {0}, rx[64];
	struct iovec iov = {tx, 64};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = tx};
	fi_addr_t nobody;
	struct fx_comp c;
	double start;
	struct fx f;

	fx_open(&f, &opt);
	inet_pton(AF_INET, ip, &sin.sin_addr);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, &sin, 1, &nobody, 0, NULL), 1);
	msg.addr = nobody;
	start = fx_now_ms();
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 64, NULL, nobody, rx), 0);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, nobody, tx), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, 64, nobody), 0);
	/* B9: what waits behind a fence ends with what it waits for */
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_FENCE), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, nobody, tx), 0);
	/* operations to others go on */
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, rx), 0);
	FX_WAIT_OK(&f, f.a.txcq, rx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
		CU_ASSERT(c.err.err == FI_EHOSTUNREACH || c.err.err == FI_ETIMEDOUT ||
			  c.err.err == FI_ECONNRESET);
		CU_ASSERT_EQUAL(c.err.flags, FI_SEND | FI_MSG);
		/* A15: as passed, and NULL for inject */
		CU_ASSERT_PTR_EQUAL(c.err.op_context, i == 1 ? NULL : tx);
	}
	CU_ASSERT(fx_now_ms() - start < fx_dead_ms() + FX_MS);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT_EQUAL(fi_cntr_readerr(f.a.txcntr), 4); /* D8 */
	CU_ASSERT_EQUAL(fi_cntr_read(f.a.txcntr), 1);
	/* receives that wait stay posted, that for the dead one, too */
	CU_ASSERT(fx_stays_empty(&f, f.a.rxcq));
	CU_ASSERT_EQUAL(fi_cancel(&f.a.ep->fid, rx), 0);
	FX_WAIT_ERR(&f, f.a.rxcq, rx, FI_ECANCELED, &c);
	CU_ASSERT_EQUAL(fi_cancel(&f.a.ep->fid, rx), 0);
	FX_WAIT_ERR(&f, f.a.rxcq, rx, FI_ECANCELED, &c);
	fx_close(&f);
}

static void test_E1_a_host_that_is_not_there(void)
{
	nobody_at("10.99.0.200");
}

static void test_E1_a_port_without_an_endpoint(void)
{
	nobody_at("10.99.0.1");
}

static void test_E1_a_peer_that_closes(void)
{
	char tx[64] = {0}, rx[64];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fx_ep_close(&f.b);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
	CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
	CU_ASSERT_NOT_EQUAL(c.err.err, 0);
	fx_close(&f);
}

/* E2 within one process: somebody new on the old address, without a re-insert. */
static void test_E2_a_new_endpoint_on_the_old_address(void)
{
	struct fx_opt opt = {.addr_format = FI_SOCKADDR_IN};
	char tx[64], rx[64];
	struct fx_comp c;
	char name[16];
	struct fx f;
	double end;

	fx_open(&f, &opt);
	fx_fill(tx, 64, 5);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	memcpy(name, f.b.name, sizeof(name));
	fx_ep_close(&f.b);
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_setname(&f.b.ep->fid, name, sizeof(name)), 0);
	fx_ep_enable(&f.b);
	memset(rx, 0, 64);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	/* what was on its way to the old one may fail; a repeated send gets through */
	end = fx_now_ms() + 2 * fx_dead_ms() + FX_MS;
	do {
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
	} while (c.err.err && fx_now_ms() < end);
	CU_ASSERT_EQUAL(c.err.err, 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, 64, 5));
	fx_close(&f);
}

/* An endpoint on that address, which knows of nothing. Its address vector has nobody. */
static void open_at(struct fx *f, struct fx_ep *e, const void *name, size_t len)
{
	fx_ep_open(f, e);
	CU_ASSERT_EQUAL(fi_setname(&e->ep->fid, (void *)(uintptr_t)name, len), 0);
	fx_ep_enable(e);
}

static void b_is_another(struct fx *f)
{
	char name[128];
	size_t len = f->b.namelen;

	memcpy(name, f->b.name, len);
	fx_ep_close(&f->b);
	open_at(f, &f->b, name, len);
}

/* Announced to the old one, never received: that ends in an error, and is not the new one's. */
static void test_E2_nothing_is_replayed(void)
{
	enum { LEN = 1 << 20 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fx_comp c;
	struct fx f;
	double end;

	fx_open(&f, NULL);
	fx_fill(tx, LEN, 5);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	b_is_another(&f);
	memset(rx, 0, 64);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
	CU_ASSERT_NOT_EQUAL(c.err.err, 0);
	CU_ASSERT_PTR_EQUAL(c.err.op_context, tx);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	end = fx_now_ms() + 2 * fx_dead_ms() + FX_MS;
	do {
		CU_ASSERT_EQUAL(fi_send(f.a.ep, "new", 4, NULL, f.a.b, rx), 0);
		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
	} while (c.err.err && fx_now_ms() < end);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "new");
	fx_close(&f);
	free(tx);
	free(rx);
}

/* The new one speaks first: it is heard at once, though the old one has not been missed yet. */
static void test_E2_the_new_one_is_heard(void)
{
	char rx[8] = "";
	struct fx_comp c;
	double start;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_inject(f.b.ep, "old", 4, f.b.a), 0);
	FX_WAIT_OK(&f, f.a.rxcq, rx, &c);
	b_is_another(&f);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, f.a.name, 1, &f.b.a, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	start = fx_now_ms();
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "new", 4, NULL, f.b.a, rx), 0);
	FX_WAIT_OK(&f, f.b.txcq, rx, &c);
	CU_ASSERT(fx_now_ms() - start < fx_dead_ms() / 2);
	FX_WAIT_OK(&f, f.a.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "new");
	fx_close(&f);
}

/*
 * What the old one injected, and its peer was not there to hear, is tried on after its close. It
 * must not reach the peer behind what the new one has said: that would end what they have.
 */
static void test_E2_the_old_one_is_silent_after_the_new(void)
{
	enum { HEARD_MS = 700 }; /* more than twice the time between two hellos */
	char rx[8] = "", name[128];
	struct fx_comp c;
	size_t len;
	double end;
	struct fx f;

	fx_open(&f, NULL);
	len = f.a.namelen;
	memcpy(name, f.a.name, len);
	fx_ep_close(&f.a);
	CU_ASSERT_EQUAL(fi_inject(f.b.ep, "old", 4, f.b.a), 0);
	CU_ASSERT(fx_stays_empty(&f, f.b.txcq));
	b_is_another(&f);
	open_at(&f, &f.a, name, len);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, f.b.name, 1, &f.a.b, 0, NULL), 1);
	CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.b.av, f.a.name, 1, &f.b.a, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "new", 4, NULL, f.b.a, rx), 0);
	FX_WAIT_OK(&f, f.b.txcq, rx, &c);
	FX_WAIT_OK(&f, f.a.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "new");
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	for (end = fx_now_ms() + HEARD_MS; fx_now_ms() < end;)
		fx_progress(&f);
	CU_ASSERT(fx_stays_empty(&f, f.a.rxcq));
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "flows_dead"), 0);
	fx_close(&f);
}

static void test_E3_close_with_operations_outstanding(void)
{
	enum { LEN = 1 << 20 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (int i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	}
	CU_ASSERT_EQUAL(fi_close(&f.a.ep->fid), 0);
	/* nothing is written any more, and the buffers are ours */
	free(tx);
	free(rx);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT(fx_stays_empty(&f, f.a.rxcq));
	/* the queues still serve another endpoint */
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &f.a.ep, NULL), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(f.a.ep, &f.a.av->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(f.a.ep, &f.a.txcq->fid, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(f.a.ep, &f.a.rxcq->fid, FI_RECV), 0);
	fx_ep_enable(&f.a);
	rx = malloc(64);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "hello", 6, NULL, f.a.b, rx), 0);
	FX_WAIT_OK(&f, f.a.txcq, rx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "hello");
	fx_close(&f);
	free(rx);
}

/* A message is coming into it: no entry, and not a byte more. */
static void test_E3_a_receive_that_is_being_filled(void)
{
	enum { LEN = 16 << 20 };
	char *tx = malloc(LEN), *rx = calloc(1, LEN);
	struct fx f;
	double end;

	fx_open(&f, NULL);
	memset(tx, 1, LEN);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	end = fx_now_ms() + FX_MS;
	while (fx_peek(rx) != 1 && fx_now_ms() < end)
		fi_cq_read(f.a.txcq, NULL, 0);
	CU_ASSERT_EQUAL(fx_peek(rx), 1);
	CU_ASSERT_EQUAL(fx_peek(rx + LEN - 1), 0);
	CU_ASSERT_EQUAL(fi_close(&f.b.ep->fid), 0);
	memset(rx, 0x5a, LEN);
	CU_ASSERT(fx_stays_empty(&f, f.b.rxcq));
	for (int i = 0; i < LEN; i++)
		CU_ASSERT_EQUAL_FATAL(rx[i], 0x5a);
	CU_ASSERT_EQUAL(fi_close(&f.b.av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.b.txcq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.b.rxcq->fid), 0);
	memset(&f.b, 0, sizeof(f.b));
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_E3_entries_in_the_queue_stay_readable(void)
{
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	while (fi_cq_read(f.a.txcq, NULL, 0) != 0)
		fx_progress(&f);
	CU_ASSERT_EQUAL(fi_close(&f.a.ep->fid), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_EQUAL(fi_close(&f.a.av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.txcq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.rxcq->fid), 0);
	memset(&f.a, 0, sizeof(f.a));
	fx_close(&f);
}

static void test_E3_what_was_injected_still_arrives(void)
{
	enum { N = 20 };
	char tx[64], rx[N][64];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	for (unsigned int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[i], 64, NULL, FI_ADDR_UNSPEC, rx[i]), 0);
		fx_fill(tx, 64, i);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_inject(f.a.ep, tx, 64, f.a.b)), 0);
	}
	fx_ep_close(&f.a);
	for (unsigned int i = 0; i < N; i++) {
		FX_WAIT_OK(&f, f.b.rxcq, rx[i], &c);
		CU_ASSERT(fx_same(rx[i], 64, i));
	}
	fx_close(&f);
}

/* @return whether it has come; the sender may not know yet */
static bool exchange(struct fx *f, char *tx, char *rx)
{
	struct fx_comp c;

	CU_ASSERT_EQUAL(fi_recv(f->b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(FX_RETRY(f, fi_send(f->a.ep, tx, 8, NULL, f->a.b, tx)), 0);
	return fx_wait(f, f->b.rxcq, &c) && c.err.err == 0;
}

/* Who closes right after a message cannot be asked again. prov-life-acks: every other one is lost.
 */
static void test_E3_the_last_acknowledgement_may_be_lost(void)
{
	char tx[8] = "last", rx[8];
	struct fx_comp c;
	struct fx f;

	for (int before = 1; before < 7; before++) {
		fx_open(&f, NULL);
		for (int i = 0; i < before; i++) {
			CU_ASSERT(exchange(&f, tx, rx));
			FX_WAIT_OK(&f, f.a.txcq, tx, &c);
		}
		CU_ASSERT(exchange(&f, tx, rx));
		fx_ep_close(&f.b);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
		fx_close(&f);
	}
}

/* The one waits behind a fence, the other has not been looked at yet. */
static void test_E3_what_was_injected_keeps_its_order(void)
{
	enum { LEN = 1 << 20 };
	static const char *const text[] = {"first", "second"};
	char *large = calloc(1, LEN), rx[8];
	struct iovec iov = {(void *)(uintptr_t)text[0], 6};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	msg.addr = f.a.b;
	CU_ASSERT_EQUAL(fi_send(f.a.ep, large, LEN, NULL, f.a.b, large), 0);
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_INJECT | FI_FENCE), 0);
	CU_ASSERT(fx_stays_empty(&f, f.a.txcq));
	iov = (struct iovec){(void *)(uintptr_t)text[1], 7};
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_INJECT | FI_MORE), 0);
	fx_ep_close(&f.a);
	free(large);
	for (unsigned int i = 0; i < 2;) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_FATAL(fx_wait(&f, f.b.rxcq, &c));
		if (c.err.err) /* of the large one, which was taken back */
			continue;
		CU_ASSERT_STRING_EQUAL(rx, text[i]);
		i++;
	}
	fx_close(&f);
}

static unsigned int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/*
 * EAL's telemetry socket answers whoever starts EAL on this machine: a descriptor of one that has
 * just gone is closed by a thread of its own.
 */
static bool fds_are_at_most(unsigned int most)
{
	double end = fx_now_ms() + FX_MS;

	while (count_fds() > most && fx_now_ms() < end)
		sched_yield();
	return count_fds() <= most;
}

static void one_cycle(void)
{
	char tx[64] = {0}, rx[64];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	fx_close(&f);
}

/* Bytes that malloc(3) has given out, in all arenas. */
static size_t bytes_in_use(void)
{
	return mallinfo2().uordblks;
}

static void test_E5_cycles_leave_everything_where_it_was(void)
{
	int cycles = getenv("PMF_LONG") ? 1000 : 50;
	unsigned int fds;
	size_t bytes;

	/* what the allocator keeps aside grows by some 5,000 bytes in the first of them, then
	 * hardly */
	for (int i = 0; i < 25; i++)
		one_cycle();
	fds = count_fds();
	bytes = bytes_in_use();
	for (int i = 0; i < cycles; i++) {
		unsigned int n;

		one_cycle();
		n = count_fds();
		fds = n < fds ? n : fds; /* the least: one that goes does not hide one that stays */
	}
	CU_ASSERT_TRUE(fds_are_at_most(fds));
	/* a leak of 100 bytes a cycle would show; what the allocator keeps aside would not */
	CU_ASSERT(bytes_in_use() < bytes + 100 * (size_t)cycles);
}

/* Closed with everything outstanding: posted, kept, announced, half invited. */
static void busy_cycle(bool msg)
{
	enum { LARGE = 1 << 20, MIDDLE = 50000 };
	struct fx_opt opt = {.msg = msg, .counters = true};
	static char tx[LARGE], rx[2][LARGE];
	struct fx f;

	fx_open(&f, &opt);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, MIDDLE, NULL, f.b.a, tx), 0);
		CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, LARGE, NULL, f.b.a, tx), 0);
		CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, 64, NULL, f.b.a, tx), 0);
		CU_ASSERT_EQUAL(fi_inject(f.b.ep, tx, 64, f.b.a), 0);
	}
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx[i], LARGE, NULL, FI_ADDR_UNSPEC, rx[i]), 0);
	for (int i = 0; i < 20; i++)
		fx_progress(&f);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx[0], LARGE, NULL, FI_ADDR_UNSPEC, rx[0]), 0);
	fx_ep_close(&f.b);
	/* else it is waited for at the end, as long as FI_PMF_LINGER_MS says */
	for (int i = 0; i < 100; i++)
		fx_progress(&f);
	fx_close(&f);
}

/* DPDK's mempools, of the library that the provider has loaded. */
static struct {
	void (*walk)(void (*fn)(void *pool, void *arg), void *arg);
	unsigned int (*in_use)(const void *pool);
} mempool;

static bool find_mempool(void)
{
	char path[4096];
	void *lib;

	snprintf(path, sizeof(path), "%s/libpmf-fi.so", getenv("FI_PROVIDER_PATH"));
	lib = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return false;
	*(void **)&mempool.walk = dlsym(lib, "rte_mempool_walk");
	*(void **)&mempool.in_use = dlsym(lib, "rte_mempool_in_use_count");
	dlclose(lib);
	return mempool.walk && mempool.in_use;
}

static void add_in_use(void *pool, void *sum)
{
	*(unsigned int *)sum += mempool.in_use(pool);
}

static unsigned int mbufs_in_use(void)
{
	unsigned int sum = 0;

	mempool.walk(add_in_use, &sum);
	return sum;
}

/* While another domain keeps the port, with its mbufs and flows, open. */
static void test_E5_busy_cycles_beside_another_domain(void)
{
	/* kept for the next frames, and by malloc(3); neither grows with the cycles */
	enum { MBUFS_ASIDE = 32, BYTES_ASIDE = 16384 };
	int cycles = getenv("PMF_LONG") ? 1000 : 200;
	double end;
	unsigned int mbufs;
	size_t bytes;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_FATAL(find_mempool());
	for (int i = 0; i < 20; i++)
		busy_cycle(i % 2);
	while (!fx_stays_empty(&f, f.a.txcq))
		;
	mbufs = mbufs_in_use();
	bytes = bytes_in_use();
	for (int i = 0; i < cycles; i++)
		busy_cycle(i % 2);
	/* frames that are under way are somebody's yet */
	end = fx_now_ms() + FX_MS;
	while (mbufs_in_use() > mbufs + MBUFS_ASIDE && fx_now_ms() < end)
		fx_progress(&f);
	CU_ASSERT(mbufs_in_use() <= mbufs + MBUFS_ASIDE);
	CU_ASSERT(bytes_in_use() < bytes + BYTES_ASIDE + 50 * (size_t)cycles);
	fx_close(&f);
}

static int child_of(struct fx *f)
{
	struct fid_domain *domain;
	struct fi_cq_data_entry e;
	char b[8] = {0};

	if (fi_send(f->a.ep, b, 8, NULL, f->a.b, NULL) != -FI_EOPBADSTATE)
		return 1;
	if (fi_recv(f->a.ep, b, 8, NULL, 0, NULL) != -FI_EOPBADSTATE)
		return 2;
	if (fi_cq_read(f->a.txcq, &e, 1) >= 0 || fi_cq_read(f->a.txcq, &e, 1) == -FI_EAGAIN)
		return 3;
	if (fi_domain(f->fabric, f->info, &domain, NULL) >= 0)
		return 4;
	if (!f->opt.msg && fi_av_insert(f->a.av, f->a.name, 1, NULL, 0, NULL) >= 0)
		return 5;
	return 0;
}

/* Connections, and what belongs to no domain. */
static int child_of_msg(struct fx *f)
{
	char b[128] = {0};
	size_t len = sizeof(b);
	uint32_t event;

	if (fi_eq_read(f->a.eq, &event, b, sizeof(b), 0) != -FI_EOPBADSTATE ||
	    fi_eq_sread(f->peq, &event, b, sizeof(b), -1, 0) != -FI_EOPBADSTATE)
		return 6;
	if (fi_shutdown(f->a.ep, 0) != -FI_EOPBADSTATE ||
	    fi_connect(f->a.ep, b, NULL, 0) != -FI_EOPBADSTATE ||
	    fi_getpeer(f->a.ep, b, &len) != -FI_EOPBADSTATE)
		return 7;
	if (fi_listen(f->pep) != -FI_EOPBADSTATE ||
	    fi_reject(f->pep, &f->a.ep->fid, NULL, 0) != -FI_EOPBADSTATE ||
	    fi_getname(&f->pep->fid, b, &len) != -FI_EOPBADSTATE)
		return 8;
	if (fi_close(&f->pep->fid) || fi_close(&f->peq->fid))
		return 9;
	return 0;
}

static int child_calls(struct fx *f)
{
	int wrong = child_of(f);

	if (!wrong && f->opt.msg)
		wrong = child_of_msg(f);
	return wrong ? wrong : -fi_close(&f->a.ep->fid);
}

static void fork_with(bool msg)
{
	struct fx_opt opt = {.msg = msg, .eq = true};
	char tx[8] = "abc", rx[8];
	struct fx_comp c;
	struct fx f;
	int status;
	pid_t pid;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	pid = fork();
	if (pid == 0)
		exit(child_calls(&f));
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	/* the parent never notices */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 8, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "abc");
	fx_close(&f);
}

static void test_E6_a_forked_child_gets_errors_and_harms_nobody(void)
{
	fork_with(false);
	fork_with(true);
}

/* A listener runs the stack without a domain. */
static void test_E6_a_listener_in_a_forked_child(void)
{
	struct fx_opt opt = {.msg = true};
	uint32_t event;
	struct fx f;
	int status;
	char b[64];
	pid_t pid;

	fx_open_domain(&f, &opt);
	fx_listen(&f);
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), 0);
	pid = fork();
	if (pid == 0)
		exit(fi_listen(f.pep) != -FI_EOPBADSTATE ||
		     fi_eq_sread(f.peq, &event, b, sizeof(b), -1, 0) != -FI_EOPBADSTATE ||
		     fi_domain(f.fabric, f.info, &f.domain, NULL) >= 0);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f.fabric, f.info, &f.domain, NULL), 0);
	fx_close(&f);
}

static struct fx exiting;

/* No assertions: CUnit has ended. */
static void close_late(void)
{
	struct fx *f = &exiting;
	struct fid *all[] = {
		&f->a.ep->fid,	 &f->b.ep->fid,	  &f->a.av->fid,   &f->b.av->fid,   &f->a.txcq->fid,
		&f->a.rxcq->fid, &f->b.txcq->fid, &f->b.rxcq->fid, &f->domain->fid, &f->fabric->fid,
	};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (fi_close(all[i]))
			_exit(3);
}

/* In a process of its own: closed when the provider's threads have ended already. */
static void exit_with_all_open(bool automatic)
{
	struct fx_opt opt = {.auto_progress = automatic};

	unsetenv("FX_EP");
	atexit(close_late); /* before the provider's own: runs after it */
	fx_open(&exiting, &opt);
}

static void exits(const char *how)
{
	double end = fx_now_ms() + FX_MS;
	int status = -1;
	pid_t pid, done;

	setenv("FX_EXITING", how, 1);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "exiting", "closing_while_the_process_exits", (char *)NULL);
		_exit(127);
	}
	unsetenv("FX_EXITING");
	while (!(done = waitpid(pid, &status, WNOHANG)) && fx_now_ms() < end)
		usleep(1000);
	if (!done) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

static void exit_now(int sig)
{
	exit(0);
}

/* The word is this thread's most of the time, and then never given back. */
static void exit_within_a_call(bool automatic)
{
	struct fx_opt opt = {.auto_progress = automatic};
	struct itimerval soon = {.it_value.tv_usec = 20000};

	unsetenv("FX_EP");
	fx_open(&exiting, &opt);
	signal(SIGALRM, exit_now);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		fi_cancel(&exiting.a.ep->fid, NULL);
}

/* As a destructor of a C++ program's global does it. */
static void test_E3_closing_while_the_process_exits(void)
{
	const char *how = getenv("FX_EXITING");

	if (how && strncmp(how, "signal", 6) == 0)
		exit_within_a_call(strcmp(how, "signal auto") == 0);
	if (how) {
		exit_with_all_open(strcmp(how, "auto") == 0);
		return;
	}
	exits("manual");
	exits("auto");
	for (int i = 0; i < 5; i++) {
		exits("signal manual");
		exits("signal auto");
	}
}

static const struct fx_test tests[] = {
	FX_TEST(test_E1_a_host_that_is_not_there),
	FX_TEST(test_E1_a_port_without_an_endpoint),
	FX_TEST(test_E1_a_peer_that_closes),
	FX_TEST(test_E2_a_new_endpoint_on_the_old_address),
	FX_TEST(test_E2_nothing_is_replayed),
	FX_TEST(test_E2_the_new_one_is_heard),
	FX_TEST(test_E2_the_old_one_is_silent_after_the_new),
	FX_TEST(test_E3_close_with_operations_outstanding),
	FX_TEST(test_E3_a_receive_that_is_being_filled),
	FX_TEST(test_E3_entries_in_the_queue_stay_readable),
	FX_TEST(test_E3_what_was_injected_still_arrives),
	FX_TEST(test_E3_what_was_injected_keeps_its_order),
	FX_TEST(test_E3_the_last_acknowledgement_may_be_lost),
	FX_TEST(test_E3_closing_while_the_process_exits),
	FX_TEST(test_E5_cycles_leave_everything_where_it_was),
	FX_TEST(test_E5_busy_cycles_beside_another_domain),
	FX_TEST(test_E6_a_forked_child_gets_errors_and_harms_nobody),
	FX_TEST(test_E6_a_listener_in_a_forked_child),
};
FX_MAIN("life")
