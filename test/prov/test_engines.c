/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A port with two queues, and so two engines: who lives where, and that frames find their engine
 * whatever queue they come in at. The link gives a frame back to the queue that it was sent on, so
 * all that goes from one engine to the other is handed over. The helper thread is late here
 * (FI_PMF_RESCUE_US), so that it covers nothing up.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <pthread.h>

enum { MESSAGES = 20000, WINDOW = 32, LEN = 64 };

static const struct fx_opt of_a_thread = {.threading = FI_THREAD_DOMAIN};

/* One sender and one receiver; nothing is asserted in here, since threads run it. */
struct stream {
	struct fx_ep *from, *to;
	fi_addr_t dest;
	uint8_t tx[LEN], rx[WINDOW][LEN];
	unsigned int sent, got, bad;
	double end;
};

static bool post(struct stream *s, unsigned int slot)
{
	return fi_recv(s->to->ep, s->rx[slot], LEN, NULL, FI_ADDR_UNSPEC, s->rx[slot]) == 0;
}

static void begin(struct stream *s, struct fx_ep *from, struct fx_ep *to, fi_addr_t dest)
{
	*s = (struct stream){.from = from, .to = to, .dest = dest, .end = fx_now_ms() + FX_MS};
	for (unsigned int i = 0; i < WINDOW; i++)
		s->bad += !post(s, i);
}

static void send_some(struct stream *s)
{
	struct fi_cq_data_entry e;

	while (fi_cq_read(s->from->txcq, &e, 1) == 1)
		;
	if (s->sent == MESSAGES)
		return;
	fx_fill(s->tx, LEN, s->sent);
	s->sent += fi_inject(s->from->ep, s->tx, LEN, s->dest) == 0;
}

static void receive_some(struct stream *s)
{
	struct fi_cq_data_entry e;

	while (fi_cq_read(s->to->rxcq, &e, 1) == 1) {
		unsigned int slot = s->got % WINDOW;

		s->bad += e.op_context != s->rx[slot] || e.len != LEN ||
			  !fx_same(s->rx[slot], LEN, s->got);
		s->bad += !post(s, slot);
		s->got++;
	}
}

static bool goes_on(const struct stream *s)
{
	return !s->bad && fx_now_ms() < s->end;
}

static void *both_sides(void *arg)
{
	struct stream *s = arg;

	while (s->got < MESSAGES && goes_on(s)) {
		send_some(s);
		receive_some(s);
	}
	return NULL;
}

static void judge(const struct stream *s)
{
	CU_ASSERT_EQUAL(s->bad, 0);
	CU_ASSERT_EQUAL(s->sent, MESSAGES);
	CU_ASSERT_EQUAL(s->got, MESSAGES);
}

static uint64_t handed_over(struct fx *f)
{
	return fx_stat(f, "port", "rx_steered");
}

/* FI_THREAD_SAFE: a and b are on different engines, and every frame between them is handed over. */
static void test_engines_endpoints_are_spread(void)
{
	struct stream there, back;
	struct fx f;

	fx_open(&f, NULL);
	begin(&there, &f.a, &f.b, f.a.b);
	both_sides(&there);
	judge(&there);
	begin(&back, &f.b, &f.a, f.b.a);
	both_sides(&back);
	judge(&back);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "flows_opened"), 1);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:1", "flows_opened"), 1);
	CU_ASSERT(handed_over(&f) >= 4);
	fx_close(&f);
}

/* FI_THREAD_DOMAIN: the endpoints of one domain are together, and those of the next elsewhere. */
static void test_engines_a_domain_has_a_home(void)
{
	struct stream s[2];
	pthread_t thread[2];
	struct fx f[2];

	for (int i = 0; i < 2; i++) {
		fx_open(&f[i], &of_a_thread);
		begin(&s[i], &f[i].a, &f[i].b, f[i].a.b);
	}
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, both_sides, &s[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	judge(&s[0]);
	judge(&s[1]);
	CU_ASSERT_EQUAL(fx_stat(&f[0], "engine:0", "flows_opened"), 2);
	CU_ASSERT_EQUAL(fx_stat(&f[0], "engine:1", "flows_opened"), 2);
	CU_ASSERT_EQUAL(handed_over(&f[0]), 0);
	fx_close(&f[1]);
	fx_close(&f[0]);
}

/* ---- from a domain to another ---- */

struct pair {
	struct fx f[2];
	struct stream s;
};

/* The sender is f[0].a, the receiver f[1].a, each on the engine of its domain. */
static void pair_open(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		fx_open_domain(&p->f[i], &of_a_thread);
		fx_ep_open(&p->f[i], &p->f[i].a);
		fx_ep_enable(&p->f[i].a);
	}
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(
			fi_av_insert(p->f[i].a.av, p->f[!i].a.name, 1, &p->f[i].a.b, 0, NULL), 1);
	begin(&p->s, &p->f[0].a, &p->f[1].a, p->f[0].a.b);
}

static void pair_close(struct pair *p)
{
	fx_close(&p->f[1]);
	fx_close(&p->f[0]);
}

static void *sender(void *arg)
{
	struct stream *s = arg;

	while (s->sent < MESSAGES && fx_now_ms() < s->end)
		send_some(s);
	return NULL;
}

/* Each side has a thread of its own, which works with its domain and no other. */
static void test_engines_hand_over_between_threads(void)
{
	pthread_t thread;
	struct pair p;

	pair_open(&p);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, sender, &p.s), 0);
	while (p.s.got < MESSAGES && fx_now_ms() < p.s.end)
		receive_some(&p.s);
	pthread_join(thread, NULL);
	judge(&p.s);
	CU_ASSERT(handed_over(&p.f[0]) >= 2);
	pair_close(&p);
}

/* Nobody works with the sender's domain once it has sent, not even to meet the peer: who waits for
 * the message looks there, too. */
static void test_engines_a_queue_left_alone_is_looked_at(void)
{
	struct fi_cq_data_entry e;
	struct pair p;
	double end;
	ssize_t n;

	pair_open(&p);
	CU_ASSERT_EQUAL(fi_inject(p.f[0].a.ep, p.s.tx, LEN, p.s.dest), 0);
	end = fx_now_ms() + FX_MS;
	while ((n = fi_cq_read(p.f[1].a.rxcq, &e, 1)) == -FI_EAGAIN && fx_now_ms() < end)
		;
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_EQUAL(e.len, LEN);
	pair_close(&p);
}

/* ---- UDP ports ---- */

static struct fi_info *bound_to(struct fx *f, uint16_t port)
{
	struct fi_info *info = fi_dupinfo(f->info);
	struct sockaddr_in *sin = calloc(1, sizeof(*sin));

	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	inet_pton(AF_INET, "10.99.0.1", &sin->sin_addr);
	free(info->src_addr);
	info->src_addr = sin;
	info->src_addrlen = sizeof(*sin);
	return info;
}

/* A UDP port is one endpoint's, whatever engine another would be on. */
static void test_engines_a_udp_port_is_had_once(void)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);
	struct fx f;

	fx_open_domain(&f, NULL);
	f.a.info = bound_to(&f, 4791);
	fx_ep_open(&f, &f.a);
	fx_ep_enable(&f.a);
	CU_ASSERT_EQUAL_FATAL(fi_getname(&f.a.ep->fid, &sin, &len), 0);
	f.b.info = bound_to(&f, 4791);
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_enable(f.b.ep), -FI_EADDRINUSE);
	fx_ep_close(&f.b);
	memset(&f.b, 0, sizeof(f.b));

	/* this one has no port yet, and goes to the other engine */
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_setname(&f.b.ep->fid, &sin, sizeof(sin)), -FI_EADDRINUSE);
	fx_close(&f);
}

/* And it can be had anew, on any engine, when the flows of the last endpoint are over. */
static void test_engines_a_udp_port_is_let_go(void)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);
	double end = fx_now_ms() + FX_MS;
	struct stream s;
	struct fx f;
	int rc;

	fx_open_domain(&f, NULL);
	f.a.info = bound_to(&f, 4791);
	fx_ep_open(&f, &f.a);
	fx_ep_enable(&f.a);
	fx_ep_open(&f, &f.b);
	fx_ep_enable(&f.b);
	fx_meet(&f);
	begin(&s, &f.a, &f.b, f.a.b);
	both_sides(&s);
	judge(&s);
	CU_ASSERT_EQUAL_FATAL(fi_getname(&f.a.ep->fid, &sin, &len), 0);
	fx_ep_close(&f.a);
	memset(&f.a, 0, sizeof(f.a));

	fx_ep_open(&f, &f.a); /* where the last one was: it is the emptier engine */
	fx_ep_close(&f.b);
	memset(&f.b, 0, sizeof(f.b));
	fx_ep_open(&f, &f.b);
	do {
		fx_progress(&f);
		rc = fi_setname(&f.b.ep->fid, &sin, sizeof(sin));
	} while (rc == -FI_EADDRINUSE && fx_now_ms() < end);
	CU_ASSERT_EQUAL(rc, 0);
	fx_ep_enable(&f.b);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "flows_opened"), 1);
	fx_ep_enable(&f.a);
	fx_meet(&f);
	begin(&s, &f.a, &f.b, f.a.b);
	both_sides(&s);
	judge(&s);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_engines_endpoints_are_spread),
	FX_TEST(test_engines_a_domain_has_a_home),
	FX_TEST(test_engines_hand_over_between_threads),
	FX_TEST(test_engines_a_queue_left_alone_is_looked_at),
	FX_TEST(test_engines_a_udp_port_is_had_once),
	FX_TEST(test_engines_a_udp_port_is_let_go),
};

FX_MAIN("engines")
