/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Ports as a whole: opened again and again, several queues, refusals, faults, capture, counters.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/neigh.h"

#include "port_test.h"

static int open_conf(struct pmf_port_conf *conf, const char *text, char *err, size_t len)
{
	CU_ASSERT_EQUAL_FATAL(pmf_port_conf_parse(text, conf, err, len), 0);
	return 0;
}

static void test_opens_again(void)
{
	for (int i = 0; i < 3; i++) {
		port_test_open(TEST_DEV, NULL);
		CU_ASSERT_TRUE(port->link_up);
		CU_ASSERT_TRUE(port->started);
		CU_ASSERT_EQUAL(port->mac[0] & 3, 2);
		port_test_close();
	}
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *word;
	} bad[] = {
		{"net_nosuch0 10.0.0.1/24", "net_nosuch0"},
		{"0000:ff:1f.7 10.0.0.1/24", "0000:ff:1f.7"},
		{"net_memif0,bsize=1024 10.0.0.1/24 mtu=9000", "mtu=9000"},
	};

	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(bad); i++) {
		struct pmf_port_conf conf;
		struct pmf_port *p = NULL;
		char err[256] = "";

		open_conf(&conf, bad[i].text, err, sizeof(err));
		CU_ASSERT_TRUE(pmf_port_open(&conf, &p, err, sizeof(err)) < 0);
		CU_ASSERT_PTR_NULL(p);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i].word));
	}
}

static void test_bad_fault_text_is_refused(void)
{
	struct pmf_port_conf conf;
	struct pmf_port *p;
	char err[256];

	open_conf(&conf, TEST_DEV, err, sizeof(err));
	conf.fault = "loss=200%";
	CU_ASSERT_EQUAL(pmf_port_open(&conf, &p, err, sizeof(err)), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "FI_PMF_FAULT"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "loss=200%"));
}

static void test_owns_its_addresses(void)
{
	port_test_open(TEST_DEV, NULL);
	CU_ASSERT_TRUE(pmf_port_owns(port, addr_of("10.99.0.1", 0).ip));
	CU_ASSERT_TRUE(pmf_port_owns(port, addr_of("fd00::1", 0).ip));
	CU_ASSERT_FALSE(pmf_port_owns(port, addr_of("10.99.0.2", 0).ip));
	CU_ASSERT_FALSE(pmf_port_owns(port, addr_of("::", 0).ip));
	port_test_close();
}

/* A queue other than 0 hands over what needs the neighbour table. */
static void test_second_queue_resolves_through_the_first(void)
{
	struct pmf_queue *q1;
	struct pmf_path path;
	struct pmf_addr dst;
	struct pmf_frame parsed;
	struct rte_mbuf *m[PMF_BURST];
	struct frame f;

	port_test_open(TEST_DEV " queues=2", NULL);
	q1 = &port->queue[1];
	dst = addr_of("10.99.0.2", 9);
	CU_ASSERT_EQUAL_FATAL(pmf_path_init(&path, port, &dst, 9), 0);
	m[0] = pmf_frame_alloc(q1);
	pmf_frame_send(q1, &path, m[0], 5, false, 1);
	CU_ASSERT_EQUAL(q1->nstage, 0);
	pmf_neigh_tick(q, 2);
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f)); /* the request, on queue 0 */
	/* The answer arrives on queue 1. */
	f = frame_arp(2, peer_mac, "10.99.0.2", port->mac, "10.99.0.1");
	CU_ASSERT_FALSE(pmf_frame_parse(q1, frame_mbuf(&f), &parsed, 3));
	CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, 3), 1);
	CU_ASSERT_FALSE(pmf_frame_parse(q, m[0], &parsed, 3));
	CU_ASSERT_TRUE_FATAL(port_test_tx(&f));
	CU_ASSERT_EQUAL(memcmp(f.b, peer_mac, 6), 0);
	/* Now queue 1 sends for itself. */
	m[0] = pmf_frame_alloc(q1);
	pmf_frame_send(q1, &path, m[0], 5, false, 4);
	CU_ASSERT_EQUAL_FATAL(q1->nstage, 1);
	CU_ASSERT_EQUAL(memcmp(rte_pktmbuf_mtod(q1->stage[0], void *), peer_mac, 6), 0);
	rte_pktmbuf_free(q1->stage[0]);
	q1->nstage = 0;
	rte_pktmbuf_free_bulk(q1->stash, q1->nstash);
	q1->nstash = 0;
	port_test_close();
}

static void test_stats_are_summed(void)
{
	struct pmf_port_stats sum;

	port_test_open(TEST_DEV " queues=2", NULL);
	port->queue[0].stats.rx_frames = 3;
	port->queue[1].stats.rx_frames = 4;
	port->queue[1].stats.fault_reordered = 5;
	pmf_port_stats_get(port, &sum);
	CU_ASSERT_EQUAL(sum.rx_frames, 7);
	CU_ASSERT_EQUAL(sum.fault_reordered, 5);
	CU_ASSERT_EQUAL(pmf_port_stat_count * sizeof(uint64_t), sizeof(sum));
	CU_ASSERT_STRING_EQUAL(pmf_port_stat_desc[0].name, "rx_frames");
	port_test_close();
}

/* Frames with a number each, through the fault component. @return how many came out in all */
static unsigned int faulted(unsigned int n, unsigned int *copies, unsigned int *late)
{
	struct rte_mbuf *m[PMF_BURST];
	unsigned int total = 0, sent = 0, highest = 0;
	pmf_ns_t now = 1;

	/* The last rounds send nothing: what is held must come out by time alone. */
	for (unsigned int round = 0; round < n / 8 + 100; round++, now += 100 * PMF_NS_PER_US) {
		uint16_t got;

		for (unsigned int k = 0; k < 8 && sent < n; k++, sent++) {
			struct frame f = {.len = 64};

			memcpy(f.b, &sent, sizeof(sent));
			m[k] = frame_mbuf(&f);
			CU_ASSERT_EQUAL_FATAL(rte_ring_enqueue(q->loop, m[k]), 0);
		}
		got = pmf_queue_rx(q, m, PMF_BURST, now);
		for (uint16_t i = 0; i < got; i++) {
			unsigned int id;

			memcpy(&id, rte_pktmbuf_mtod(m[i], void *), sizeof(id));
			CU_ASSERT_FATAL(id < n);
			copies[id]++;
			*late += id < highest;
			highest = PMF_MAX(highest, id);
			rte_pktmbuf_free(m[i]);
		}
		total += got;
	}
	return total;
}

static void test_faults_lose_double_and_delay(void)
{
	enum { N = 20000 };
	static unsigned int copies[N];
	unsigned int total, late = 0, missing = 0, twice = 0;

	port_test_open(TEST_DEV, "loss=2%,dup=3%,reorder=5%:20,seed=7");
	memset(copies, 0, sizeof(copies));
	total = faulted(N, copies, &late);
	for (unsigned int i = 0; i < N; i++) {
		CU_ASSERT_FATAL(copies[i] <= 2);
		missing += copies[i] == 0;
		twice += copies[i] == 2;
	}
	CU_ASSERT_EQUAL(missing, q->stats.fault_lost);
	CU_ASSERT_EQUAL(twice, q->stats.fault_dup);
	CU_ASSERT_EQUAL(total, N - missing + twice);
	CU_ASSERT_TRUE(missing > N / 100 && missing < N / 25);
	CU_ASSERT_TRUE(late > N / 100);
	CU_ASSERT_TRUE(q->stats.fault_reordered > N / 40);
	port_test_close();
}

static void test_held_frame_comes_out_by_time(void)
{
	struct rte_mbuf *m[PMF_BURST];
	const struct frame f = {.len = 64};

	port_test_open(TEST_DEV, "reorder=100%:20,seed=1");
	CU_ASSERT_EQUAL_FATAL(rte_ring_enqueue(q->loop, frame_mbuf(&f)), 0);
	CU_ASSERT_EQUAL(pmf_queue_rx(q, m, PMF_BURST, 1), 0);
	CU_ASSERT_EQUAL(pmf_queue_rx(q, m, PMF_BURST, PMF_NS_PER_MS / 2), 0);
	CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, PMF_NS_PER_MS + 1), 1);
	rte_pktmbuf_free(m[0]);
	port_test_close();
}

/* Frames with a number as content; @return how many came out, in the order of the numbers or not */
static unsigned int timed(unsigned int n, pmf_ns_t until, bool *in_order)
{
	unsigned int got = 0, before = 0, id;
	struct rte_mbuf *m[PMF_BURST];

	*in_order = true;
	for (unsigned int i = 1; i <= n; i++) {
		struct frame f = {.len = 64};

		memcpy(f.b, &i, sizeof(i));
		CU_ASSERT_EQUAL_FATAL(rte_ring_enqueue(q->loop, frame_mbuf(&f)), 0);
		CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, i), 0);
	}
	for (unsigned int turn = 0; turn < n; turn++) {
		const uint16_t k = pmf_queue_rx(q, m, PMF_BURST, until);

		for (uint16_t i = 0; i < k; i++) {
			memcpy(&id, rte_pktmbuf_mtod(m[i], void *), sizeof(id));
			*in_order &= id > before;
			before = id;
			rte_pktmbuf_free(m[i]);
		}
		got += k;
	}
	return got;
}

static void test_delayed_frames_keep_their_order(void)
{
	bool in_order;

	port_test_open(TEST_DEV, "delay=1ms");
	CU_ASSERT_EQUAL(timed(500, PMF_NS_PER_S, &in_order), 500);
	CU_ASSERT_TRUE(in_order);
	port_test_close();
}

static void test_jitter_changes_the_order(void)
{
	bool in_order;

	port_test_open(TEST_DEV, "delay=1ms,jitter=1ms,seed=1");
	CU_ASSERT_EQUAL(timed(500, PMF_NS_PER_S, &in_order), 500);
	CU_ASSERT_FALSE(in_order);
	port_test_close();
}

static void test_delayed_frames_have_a_bound(void)
{
	bool in_order;
	unsigned int got;

	port_test_open(TEST_DEV, "delay=1ms");
	got = timed(1100, PMF_NS_PER_S, &in_order);
	CU_ASSERT_EQUAL(got, 1024);
	CU_ASSERT_EQUAL(q->stats.fault_crowded, 1100 - 1024);
	CU_ASSERT_EQUAL(q->stats.fault_delayed, 1024);
	port_test_close();
}

static void test_faults_are_counted_by_kind(void)
{
	static unsigned int copies[20000];
	unsigned int late;

	port_test_open(TEST_DEV, "corrupt=5%:8,truncate=5%,cut=15ms:30ms,rate=8:300,seed=7");
	faulted(PMF_ARRAY_SIZE(copies), copies, &late);
	CU_ASSERT_TRUE(q->stats.fault_cut > 0);
	CU_ASSERT_TRUE(q->stats.fault_full > 0);
	CU_ASSERT_TRUE(q->stats.fault_corrupted > 0);
	CU_ASSERT_TRUE(q->stats.fault_truncated > 0);
	CU_ASSERT_EQUAL(q->stats.fault_lost, 0);
	port_test_close();
}

static void test_capture_writes_a_file(void)
{
	enum { CAPTURED = 4000 };
	char path[] = "/tmp/pmf-capture-XXXXXX", err[256];
	const int fd = mkstemp(path);
	struct pmf_port_conf conf;
	struct pmf_path to;
	struct pmf_addr dst;
	uint32_t head[3] = {0};
	off_t empty, full;

	CU_ASSERT_FATAL(fd >= 0);
	open_conf(&conf, TEST_DEV " neigh=10.99.0.2=02:00:00:00:00:02", err, sizeof(err));
	conf.capture = path;
	CU_ASSERT_EQUAL_FATAL(pmf_port_open(&conf, &port, err, sizeof(err)), 0);
	q = &port->queue[0];
	port->announce = false;
	empty = lseek(fd, 0, SEEK_END);
	dst = addr_of("10.99.0.2", 1);
	CU_ASSERT_EQUAL_FATAL(pmf_path_init(&to, port, &dst, 1), 0);
	/* More than the capture's own buffers: they must come back. Each goes out and comes in. */
	for (unsigned int i = 0; i < CAPTURED / 2; i++) {
		struct rte_mbuf *m[PMF_BURST];

		pmf_frame_send(q, &to, pmf_frame_alloc(q), 1000, false, i);
		pmf_queue_tick(q, i);
		CU_ASSERT_EQUAL_FATAL(pmf_queue_rx(q, m, PMF_BURST, i), 1);
		rte_pktmbuf_free(m[0]);
	}
	pmf_queue_tick(q, CAPTURED);
	full = lseek(fd, 0, SEEK_END);
	CU_ASSERT_TRUE(full - empty >= 1042 * CAPTURED && full - empty < 1200 * CAPTURED);
	CU_ASSERT_EQUAL(pread(fd, head, sizeof(head), 0), sizeof(head));
	CU_ASSERT_EQUAL(head[0], 0x0a0d0d0a); /* section header block */
	CU_ASSERT_EQUAL(head[2], 0x1a2b3c4d);
	pmf_port_close(port);
	close(fd);
	unlink(path);
}

static void test_capture_that_cannot_be_written(void)
{
	struct pmf_port_conf conf;
	struct pmf_port *p;
	char err[256];

	open_conf(&conf, TEST_DEV, err, sizeof(err));
	conf.capture = "/nonexistent/x.pcapng";
	CU_ASSERT_TRUE(pmf_port_open(&conf, &p, err, sizeof(err)) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "FI_PMF_CAPTURE"));
}

static void test_descriptors_close_on_exec(void)
{
	unsigned int ours = 0;

	port_test_open(TEST_DEV, NULL);
	for (int fd = 3; fd < 1024; fd++) {
		char link[64], target[256] = "";
		const int flags = fcntl(fd, F_GETFD);

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (flags < 0 || readlink(link, target, sizeof(target) - 1) < 0)
			continue;
		/*
		 * Inherited ones are the runner's; EAL's are memory and events. Its interrupt
		 * thread makes itself a new epoll at any time, which is its own affair.
		 */
		if (!strstr(target, "memfd") && !strstr(target, "[eventfd]") &&
		    !strstr(target, "[timerfd]"))
			continue;
		ours++;
		CU_ASSERT_TRUE(flags & FD_CLOEXEC);
		if (!(flags & FD_CLOEXEC))
			printf("\n  %d: %s\n", fd, target);
	}
	CU_ASSERT_TRUE(ours > 0);
	port_test_close();
}

static void test_forked_child_keeps_away(void)
{
	const struct pmf_eal_conf conf = {.huge = PMF_HUGE_OFF};
	char err[256];
	int status = -1;
	pid_t pid;

	CU_ASSERT_TRUE(pmf_eal_running());
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0)
		_exit(pmf_eal_running() || pmf_eal_start(&conf, err, sizeof(err)) != -ECHILD);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_TRUE(pmf_eal_running());
	/* A second start gives the first one's result. */
	CU_ASSERT_EQUAL(pmf_eal_start(&conf, err, sizeof(err)), 0);
}

/* Each reading lies between two of the kernel's clock, however long the scheduler made that. */
static void test_clock_runs_evenly(void)
{
	pmf_ns_t before[2], ours[2], after[2], least, most;

	before[0] = pmf_clock_monotonic();
	ours[0] = pmf_clock_ns();
	after[0] = pmf_clock_monotonic();
	do {
		before[1] = pmf_clock_monotonic();
		ours[1] = pmf_clock_ns();
		after[1] = pmf_clock_monotonic();
		least = before[1] - after[0];
		most = after[1] - before[0];
	} while (least < 50000000);
	CU_ASSERT_TRUE(ours[1] - ours[0] >= least - least / 100);
	CU_ASSERT_TRUE(ours[1] - ours[0] <= most + most / 100);
}

const struct unit_test port_tests[] = {
	{"opens again", test_opens_again},
	{"refusals name the cause", test_refusals},
	{"a bad FI_PMF_FAULT", test_bad_fault_text_is_refused},
	{"owns its addresses", test_owns_its_addresses},
	{"a second queue resolves through the first", test_second_queue_resolves_through_the_first},
	{"counters are summed", test_stats_are_summed},
	{"faults lose, double and delay", test_faults_lose_double_and_delay},
	{"a held frame comes out by time", test_held_frame_comes_out_by_time},
	{"delayed frames keep their order", test_delayed_frames_keep_their_order},
	{"jitter changes the order", test_jitter_changes_the_order},
	{"delayed frames have a bound", test_delayed_frames_have_a_bound},
	{"faults are counted by kind", test_faults_are_counted_by_kind},
	{"capture writes a file", test_capture_writes_a_file},
	{"capture that cannot be written", test_capture_that_cannot_be_written},
	{"descriptors close on exec", test_descriptors_close_on_exec},
	{"a forked child keeps away", test_forked_child_keeps_away},
	{"the clock runs evenly", test_clock_runs_evenly},
	{NULL},
};
