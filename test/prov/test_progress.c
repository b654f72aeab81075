/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Progress and threads: rows F3 and F4; several domains and what looks inside.
 */
#include "fx.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "pmf/pmf_stats.h"

static void nap(void)
{
	struct timespec ts = {.tv_nsec = 1000000};

	nanosleep(&ts, NULL);
}

/* With no call at all the bytes come and the counter of nobody's reading goes up. */
static void test_F3_auto_needs_no_call(void)
{
	struct fx_opt opt = {.auto_progress = true, .counters = true};
	enum { LEN = 300000 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	uint64_t rescues;
	struct fx_comp c;
	struct fx f;
	double end;

	fx_open(&f, &opt);
	rescues = fx_stat(&f, "engine:0", "rescues");
	fx_fill(tx, LEN, 3);
	rx[LEN - 1] = (char)~tx[LEN - 1];
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	end = fx_now_ms() + FX_MS;
	while (fx_peek(&rx[LEN - 1]) != tx[LEN - 1] && fx_now_ms() < end)
		nap();
	CU_ASSERT_EQUAL(fx_peek(&rx[LEN - 1]), tx[LEN - 1]);
	/* nor does it take the helper, which looks once a millisecond: peers see no stall */
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "rescues"), rescues);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, LEN, 3));
	fx_close(&f);
	free(tx);
	free(rx);
}

static void test_F3_auto_a_burst_with_more_leaves_by_itself(void)
{
	struct fx_opt opt = {.auto_progress = true};
	char tx[4] = "abc", rx[4] = {0};
	struct iovec iov = {tx, 4};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	struct fx f;
	double end;

	fx_open(&f, &opt);
	msg.addr = f.a.b;
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_MORE), 0);
	end = fx_now_ms() + FX_MS;
	while (fx_peek(rx) != 'a' && fx_now_ms() < end)
		nap();
	CU_ASSERT_EQUAL(fx_peek(rx), 'a');
	fx_close(&f);
}

/* Reading any one queue of the domain is enough for all of it. */
static void test_F3_manual_any_queue_drives_the_domain(void)
{
	struct fx_opt opt = {.counters = true};
	enum { LEN = 300000 };
	char *tx = malloc(LEN), *rx = malloc(LEN);
	struct fi_cq_data_entry e;
	struct fx f;
	double end;

	fx_open(&f, &opt);
	fx_fill(tx, LEN, 3);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, LEN, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, LEN, NULL, f.a.b, tx), 0);
	end = fx_now_ms() + FX_MS;
	while (fi_cntr_read(f.a.rxcntr) == 0 && fi_cq_read(f.b.rxcq, NULL, 0) != 0 &&
	       fx_now_ms() < end)
		;
	CU_ASSERT_EQUAL(fi_cq_read(f.b.rxcq, &e, 1), 1);
	CU_ASSERT(fx_same(rx, LEN, 3));
	fx_close(&f);
	free(tx);
	free(rx);
}

/* A program that computes and makes no call is not held dead, and what was posted arrives. */
static void test_F3_manual_a_program_that_computes_is_answered_for(void)
{
	char tx[64], rx[64] = {0};
	struct fx f;
	double end;

	fx_open(&f, NULL);
	fx_fill(tx, 64, 3);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, tx, 64, f.a.b), 0);
	end = fx_now_ms() + FX_MS;
	while (fx_peek(&rx[63]) != tx[63] && fx_now_ms() < end)
		nap();
	CU_ASSERT_EQUAL(fx_peek(&rx[63]), tx[63]);
	fx_close(&f);
}

/* Times that the helper thread has gone to sleep, each of which disturbs whoever polls. */
static long helper_naps(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *d;
	long naps = -1;

	while ((d = readdir(tasks))) {
		char path[300], line[128];
		bool helper = false;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			helper |= strcmp(line, "Name:\tpmf-helper\n") == 0;
			if (helper)
				sscanf(line, "voluntary_ctxt_switches: %ld", &naps);
		}
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return naps;
}

static uint64_t stat_of(struct fx *f, struct pmf_stats_ops *ops, const char *object,
			const char *name);

/*
 * A program that polls is looked at every 8 ms, not each millisecond. One that loses its processor
 * is rescued, and then looked at more often again: on a loaded machine more looks are right.
 */
static void test_F3_manual_a_program_that_polls_is_left_alone(void)
{
	struct pmf_stats_ops *ops;
	uint64_t rescues;
	double start, ms;
	struct fx f;
	long naps;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_open_ops(&f.domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL),
			      0);
	rescues = stat_of(&f, ops, "engine", "rescues");
	naps = helper_naps();
	CU_ASSERT_FATAL(naps >= 0);
	start = fx_now_ms();
	while ((ms = fx_now_ms() - start) < 600)
		fx_progress(&f);
	naps = helper_naps() - naps;
	rescues = stat_of(&f, ops, "engine", "rescues") - rescues;
	printf("%ld naps in %.0f ms, %lu rescues ", naps, ms, (unsigned long)rescues);
	CU_ASSERT((double)naps < ms / 4 + 8 * (double)(rescues + 1));
	fx_close(&f);
}

/* ---- threads ---- */

enum { EACH = 3000, PAIRS = 2 };

/* Two threads send on a and on b, two read the one queue; every message is counted at its receiver.
 */
struct crowd {
	struct fx f;
	_Atomic unsigned int sent, got, bad;
	_Atomic bool late;
	uint32_t rx[64];
};

static void *crowd_sender(void *arg)
{
	struct crowd *w = arg;
	double end = fx_now_ms() + 3 * FX_MS;
	uint32_t value = 0x600dda7a;

	for (int i = 0; i < EACH && !w->late; i++) {
		/* both directions from this thread: the endpoints are shared by the senders */
		struct fid_ep *ep = i % 2 ? w->f.a.ep : w->f.b.ep;
		fi_addr_t to = i % 2 ? w->f.a.b : w->f.b.a;

		while (fi_inject(ep, &value, 4, to) == -FI_EAGAIN)
			if (fx_now_ms() > end)
				w->late = true;
	}
	atomic_fetch_add(&w->sent, EACH);
	return NULL;
}

static void take_entries(struct crowd *w, struct fi_cq_data_entry *e, ssize_t n)
{
	for (ssize_t i = 0; i < n; i++) {
		uint32_t *slot = e[i].op_context;
		struct fid_ep *ep = slot - w->rx < 32 ? w->f.a.ep : w->f.b.ep;

		if (e[i].flags != (FI_RECV | FI_MSG) || e[i].len != 4 || *slot != 0x600dda7a)
			atomic_fetch_add(&w->bad, 1);
		*slot = 0;
		atomic_fetch_add(&w->got, 1);
		while (fi_recv(ep, slot, 4, NULL, FI_ADDR_UNSPEC, slot) == -FI_EAGAIN)
			;
	}
}

static void *crowd_reader(void *arg)
{
	struct crowd *w = arg;
	double end = fx_now_ms() + 3 * FX_MS;

	while (atomic_load(&w->got) < PAIRS * EACH && !w->late) {
		struct fi_cq_data_entry e[4];
		ssize_t n = fi_cq_read(w->f.a.txcq, e, 4);

		if (n > 0)
			take_entries(w, e, n);
		else if (n != -FI_EAGAIN)
			atomic_fetch_add(&w->bad, 1);
		if (fx_now_ms() > end)
			w->late = true;
	}
	return NULL;
}

static void crowd_of_four(bool auto_progress)
{
	struct fx_opt opt = {.one_cq = true,
			     .threading = FI_THREAD_SAFE,
			     .auto_progress = auto_progress,
			     .tx_size = 64,
			     .rx_size = 64};
	struct crowd *w = calloc(1, sizeof(*w));
	pthread_t thread[2 * PAIRS];

	fx_open(&w->f, &opt);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(fi_recv(i < 32 ? w->f.a.ep : w->f.b.ep, &w->rx[i], 4, NULL,
					FI_ADDR_UNSPEC, &w->rx[i]),
				0);
	for (int i = 0; i < PAIRS; i++) {
		pthread_create(&thread[2 * i], NULL, crowd_sender, w);
		pthread_create(&thread[2 * i + 1], NULL, crowd_reader, w);
	}
	for (int i = 0; i < 2 * PAIRS; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_FALSE(w->late);
	CU_ASSERT_EQUAL(w->bad, 0);
	CU_ASSERT_EQUAL(w->got, PAIRS * EACH);
	fx_close(&w->f);
	free(w);
}

static void test_F4_four_threads_on_two_endpoints_and_one_queue(void)
{
	crowd_of_four(false);
	crowd_of_four(true);
}

static void with_threading(enum fi_threading threading)
{
	struct fx_opt opt = {.threading = threading};
	char tx[64], rx[64];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(f.info->domain_attr->threading, threading);
	for (unsigned int i = 0; i < 100; i++) {
		fx_fill(tx, 64, i);
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx), 0);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		CU_ASSERT(fx_same(rx, 64, i));
	}
	fx_close(&f);
}

static void test_F4_each_level(void)
{
	with_threading(FI_THREAD_SAFE);
	with_threading(FI_THREAD_FID);
	with_threading(FI_THREAD_DOMAIN);
	with_threading(FI_THREAD_COMPLETION);
	with_threading(FI_THREAD_ENDPOINT);
}

/* One thread sends on a and reads its queue, another posts on b and reads that: what each level
 * allows, FI_THREAD_DOMAIN apart. */
struct pair {
	struct fx f;
	_Atomic bool late, bad;
};

enum { PAIR_MESSAGES = 3000 };

static void *pair_sender(void *arg)
{
	struct pair *p = arg;
	double end = fx_now_ms() + 3 * FX_MS;
	struct fi_cq_data_entry e[8];
	uint32_t n = 0, done = 0;
	static uint32_t tx[64];

	while (done < PAIR_MESSAGES && !p->late) {
		ssize_t got;

		if (n < PAIR_MESSAGES && n - done < 64) {
			tx[n % 64] = n;
			n += fi_send(p->f.a.ep, &tx[n % 64], 4, NULL, p->f.a.b, NULL) == 0;
		}
		got = fi_cq_read(p->f.a.txcq, e, 8);
		done += got > 0 ? (uint32_t)got : 0;
		p->late |= fx_now_ms() > end;
	}
	return NULL;
}

static void *pair_receiver(void *arg)
{
	struct pair *p = arg;
	double end = fx_now_ms() + 3 * FX_MS;
	struct fi_cq_data_entry e;
	uint32_t posted = 0, got = 0;
	static uint32_t rx[64];

	while (got < PAIR_MESSAGES && !p->late) {
		if (posted < PAIR_MESSAGES && posted - got < 64)
			posted += fi_recv(p->f.b.ep, &rx[posted % 64], 4, NULL, FI_ADDR_UNSPEC,
					  NULL) == 0;
		if (fi_cq_read(p->f.b.rxcq, &e, 1) == 1) {
			p->bad |= rx[got % 64] != got;
			got++;
		}
		p->late |= fx_now_ms() > end;
	}
	return NULL;
}

static void pair_of_threads(enum fi_threading threading, bool auto_progress)
{
	struct fx_opt opt = {.threading = threading, .auto_progress = auto_progress};
	struct pair *p = calloc(1, sizeof(*p));
	pthread_t thread[2];

	fx_open(&p->f, &opt);
	pthread_create(&thread[0], NULL, pair_sender, p);
	pthread_create(&thread[1], NULL, pair_receiver, p);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_FALSE(p->late);
	CU_ASSERT_FALSE(p->bad);
	fx_close(&p->f);
	free(p);
}

static void test_F4_a_thread_for_each_endpoint(void)
{
	static const enum fi_threading levels[] = {FI_THREAD_SAFE, FI_THREAD_FID,
						   FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		pair_of_threads(levels[i], false);
		pair_of_threads(levels[i], true);
	}
}

/* Control calls are safe from any thread at every level. */
struct controls {
	struct fx f;
	struct fid_av *av; /* no endpoint's */
	_Atomic unsigned int next, bad;
};

static unsigned int insert_and_remove(struct controls *w, const char *name)
{
	char out[16];
	size_t len = sizeof(out);
	fi_addr_t addr;

	if (fi_av_insert(w->av, name, 1, &addr, 0, NULL) != 1)
		return 1;
	if (fi_av_lookup(w->av, addr, out, &len) || memcmp(out, name, 16))
		return 1;
	return fi_av_remove(w->av, &addr, 1, 0) != 0;
}

static unsigned int open_and_close(struct controls *w)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_mr *mr;
	char buf[64];

	if (fi_cq_open(w->f.domain, &cq_attr, &cq, NULL) ||
	    fi_endpoint(w->f.domain, w->f.info, &ep, NULL) ||
	    fi_mr_reg(w->f.domain, buf, sizeof(buf), FI_SEND, 0, 0, 0, &mr, NULL))
		return 1;
	if (fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) || fi_ep_bind(ep, &w->f.a.av->fid, 0) ||
	    fi_enable(ep))
		return 1;
	return fi_close(&ep->fid) || fi_close(&cq->fid) || fi_close(&mr->fid);
}

static void *control(void *arg)
{
	struct controls *w = arg;
	unsigned int mine = atomic_fetch_add(&w->next, 1);
	char name[16];

	memcpy(name, w->f.b.name, 16);
	for (unsigned int i = 0; i < 3000 && !w->bad; i++) {
		name[2] = (char)(mine + 1); /* ports of its own */
		name[3] = (char)i;
		atomic_fetch_add(&w->bad, insert_and_remove(w, name));
		if (i % 128 == 0)
			atomic_fetch_add(&w->bad, open_and_close(w));
	}
	return NULL;
}

static void control_calls(enum fi_threading threading)
{
	struct fx_opt opt = {.threading = threading, .tx_size = 8, .rx_size = 8};
	struct controls *w = calloc(1, sizeof(*w));
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	pthread_t thread[4];
	fi_addr_t addr;

	fx_open(&w->f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_open(w->f.domain, &attr, &w->av, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, control, w);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(w->bad, 0);
	/* and nothing is left of it */
	CU_ASSERT_EQUAL(fi_av_insert(w->av, w->f.b.name, 1, &addr, 0, NULL), 1);
	CU_ASSERT_EQUAL(addr, 0);
	CU_ASSERT_EQUAL(fi_close(&w->av->fid), 0);
	fx_close(&w->f);
	free(w);
}

static void test_F4_control_calls_from_several_threads(void)
{
	control_calls(FI_THREAD_SAFE);
	control_calls(FI_THREAD_DOMAIN);
}

/* Addresses come and go in one thread while another sends. */
static void *churn(void *arg)
{
	struct crowd *w = arg;
	char name[16];

	memcpy(name, w->f.b.name, 16);
	for (int i = 0; i < 2000 && !w->late; i++) {
		fi_addr_t addr;

		name[3] = (char)(i + 1); /* another port */
		if (fi_av_insert(w->f.a.av, name, 1, &addr, 0, NULL) != 1)
			atomic_fetch_add(&w->bad, 1);
		if (addr != w->f.a.b && fi_av_remove(w->f.a.av, &addr, 1, 0))
			atomic_fetch_add(&w->bad, 1);
	}
	w->late = true;
	return NULL;
}

static void test_F4_control_calls_beside_data(void)
{
	struct fx_opt opt = {.threading = FI_THREAD_SAFE};
	struct crowd *w = calloc(1, sizeof(*w));
	uint32_t tx = 7, rx;
	pthread_t thread;
	struct fx_comp c;

	fx_open(&w->f, &opt);
	pthread_create(&thread, NULL, churn, w);
	while (!w->late) {
		CU_ASSERT_EQUAL(fi_recv(w->f.b.ep, &rx, 4, NULL, FI_ADDR_UNSPEC, &rx), 0);
		CU_ASSERT_EQUAL(FX_RETRY(&w->f, fi_inject(w->f.a.ep, &tx, 4, w->f.a.b)), 0);
		FX_WAIT_OK(&w->f, w->f.b.rxcq, &rx, &c);
	}
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(w->bad, 0);
	fx_close(&w->f);
	free(w);
}

/* ---- several domains, and looking inside ---- */

static void test_several_domains_share_a_port(void)
{
	struct fx_opt opt = {.auto_progress = true};
	char tx[8] = "abc", rx[8];
	fi_addr_t to;
	struct fx_comp c;
	struct fx one, two;

	/* the second is in automatic progress: both modes at once on one engine */
	fx_open(&one, NULL);
	fx_open(&two, &opt);
	CU_ASSERT_EQUAL(fi_av_insert(one.a.av, two.b.name, 1, &to, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(two.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(one.a.ep, tx, 8, NULL, to, tx), 0);
	FX_WAIT_OK(&one, one.a.txcq, tx, &c);
	FX_WAIT_OK(&two, two.b.rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, "abc");
	fx_close(&two);
	CU_ASSERT_EQUAL(fi_recv(one.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(one.a.ep, tx, 8, NULL, one.a.b, tx), 0);
	FX_WAIT_OK(&one, one.b.rxcq, rx, &c);
	fx_close(&one);
}

static uint64_t stat_of(struct fx *f, struct pmf_stats_ops *ops, const char *object,
			const char *name)
{
	struct pmf_stat *s = calloc(1024, sizeof(*s));
	size_t n = 1024;
	uint64_t v = UINT64_MAX;

	CU_ASSERT_EQUAL(ops->get(&f->domain->fid, s, &n), 0);
	for (size_t i = 0; i < n; i++) {
		CU_ASSERT(s[i].unit[0] && s[i].help && s[i].help[0]);
		if (strncmp(s[i].object, object, strlen(object)) == 0 &&
		    strcmp(s[i].name, name) == 0)
			v = v == UINT64_MAX ? s[i].value : v + s[i].value;
	}
	free(s);
	return v;
}

static void test_statistics(void)
{
	struct pmf_peer_info peers[8];
	struct pmf_stats_ops *ops;
	struct pmf_stat one;
	char tx[100] = {0}, rx[100];
	struct fx_comp c;
	size_t n = 0;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_open_ops(&f.domain->fid, "something else", 0, (void **)&ops, NULL),
			-FI_ENOSYS);
	CU_ASSERT_EQUAL_FATAL(fi_open_ops(&f.domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL),
			      0);
	CU_ASSERT_EQUAL(ops->size, sizeof(*ops));
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 100, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 100, NULL, f.a.b, tx), 0);
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	}
	CU_ASSERT_EQUAL(stat_of(&f, ops, "ep:", "tx_msgs"), 5);
	CU_ASSERT_EQUAL(stat_of(&f, ops, "ep:", "rx_bytes"), 500);
	CU_ASSERT(stat_of(&f, ops, "port", "rx_frames") >= 5);
	CU_ASSERT(stat_of(&f, ops, "engine", "passes") > 0);
	/* no room: how many there are */
	CU_ASSERT_EQUAL(ops->get(&f.domain->fid, NULL, &n), -FI_ETOOSMALL);
	CU_ASSERT(n > 20);
	n = 1;
	CU_ASSERT_EQUAL(ops->get(&f.domain->fid, &one, &n), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(ops->get(&f.fabric->fid, &one, &n), -FI_EINVAL);
	n = 8;
	CU_ASSERT_EQUAL(ops->peers(&f.domain->fid, peers, &n), 0);
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_EQUAL(strncmp(peers[0].peer, "10.99.0.1:", 10), 0);
	CU_ASSERT(peers[0].tx_msgs == 5 || peers[1].tx_msgs == 5);
	fx_close(&f);
}

/* A counter of all objects of the domain. */
static uint64_t sum_of(struct fx *f, const char *name)
{
	struct pmf_stats_ops *ops;
	struct pmf_stat *stats;
	size_t n = 16384;
	uint64_t sum = 0;

	stats = calloc(n, sizeof(*stats));
	CU_ASSERT_PTR_NOT_NULL_FATAL(stats);
	CU_ASSERT_EQUAL_FATAL(fi_open_ops(&f->domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL),
			      0);
	CU_ASSERT_EQUAL_FATAL(ops->get(&f->domain->fid, stats, &n), 0);
	for (size_t i = 0; i < n; i++)
		sum += strcmp(stats[i].name, name) == 0 ? stats[i].value : 0;
	free(stats);
	return sum;
}

/*
 * More endpoints than one pass looks at: what is posted on each still meets its message, and what
 * each sends leaves.
 */
static void test_F3_manual_many_endpoints(void)
{
	enum { MANY = 40, SENDS = 3 };
	static struct fx_ep many[MANY];
	fi_addr_t to[MANY], back[MANY];
	char rx[MANY][8], got[8];
	int tx[MANY];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	memset(many, 0, sizeof(many));
	for (int i = 0; i < MANY; i++) {
		tx[i] = i;
		fx_ep_open(&f, &many[i]);
		fx_ep_enable(&many[i]);
		CU_ASSERT_EQUAL_FATAL(fi_av_insert(f.a.av, many[i].name, 1, &to[i], 0, NULL), 1);
		CU_ASSERT_EQUAL_FATAL(fi_av_insert(many[i].av, f.b.name, 1, &back[i], 0, NULL), 1);
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			CU_ASSERT_EQUAL(fi_recv(many[i].ep, rx[i], 8, NULL, FI_ADDR_UNSPEC, rx[i]),
					0);
		for (int i = MANY - 1; i >= 0; i--)
			CU_ASSERT_EQUAL(FX_RETRY(&f, fi_send(f.a.ep, &tx[i], sizeof(tx[i]), NULL,
							     to[i], NULL)),
					0);
		for (int i = 0; i < MANY; i++) {
			FX_WAIT_OK(&f, many[i].rxcq, rx[i], &c);
			CU_ASSERT_EQUAL(memcmp(rx[i], &i, sizeof(i)), 0);
			FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
		}
	}
	CU_ASSERT_EQUAL(sum_of(&f, "rx_expected"), 3 * MANY);
	CU_ASSERT_EQUAL(sum_of(&f, "rx_unexpected"), 0);
	for (int n = 0; n < SENDS; n++)
		for (int i = 0; i < MANY; i++)
			CU_ASSERT_EQUAL(fi_send(many[i].ep, "abc", 4, NULL, back[i], NULL), 0);
	for (int n = 0; n < SENDS * MANY; n++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, got, 8, NULL, FI_ADDR_UNSPEC, got), 0);
		FX_WAIT_OK(&f, f.b.rxcq, got, &c);
	}
	for (int i = 0; i < MANY; i++)
		fx_ep_close(&many[i]);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_F3_auto_needs_no_call),
	FX_TEST(test_F3_auto_a_burst_with_more_leaves_by_itself),
	FX_TEST(test_F3_manual_any_queue_drives_the_domain),
	FX_TEST(test_F3_manual_a_program_that_computes_is_answered_for),
	FX_TEST(test_F3_manual_a_program_that_polls_is_left_alone),
	FX_TEST(test_F3_manual_many_endpoints),
	FX_TEST(test_F4_four_threads_on_two_endpoints_and_one_queue),
	FX_TEST(test_F4_each_level),
	FX_TEST(test_F4_a_thread_for_each_endpoint),
	FX_TEST(test_F4_control_calls_from_several_threads),
	FX_TEST(test_F4_control_calls_beside_data),
	FX_TEST(test_several_domains_share_a_port),
	FX_TEST(test_statistics),
};
FX_MAIN("progress")
