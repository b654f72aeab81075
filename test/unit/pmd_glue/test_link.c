/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Two ports of this process linked by vhost and virtio-user, or by memif: frames cross with the
 * offloads that the drivers offer, interrupts wake, and a side that returns is found again.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/internal.h"

#include "port_test.h"

struct side {
	struct pmf_port *port;
	struct pmf_path to_peer;
	unsigned int got;  /* frames for this side */
	unsigned int bad;  /* of these, with other bytes than sent */
	uint16_t last_len; /* of the last one */
};

static struct side a, b;
static char dir[] = "/tmp/pmf-link-XXXXXX";

static void side_open(struct side *s, const char *text, const char *peer_ip)
{
	const struct pmf_addr dst = addr_of(peer_ip, 7);
	struct pmf_port_conf conf;
	char err[256] = "";

	if (s->port) /* a test that failed left it */
		pmf_port_close(s->port);
	memset(s, 0, sizeof(*s));
	CU_ASSERT_EQUAL_FATAL(pmf_port_conf_parse(text, &conf, err, sizeof(err)), 0);
	if (pmf_port_open(&conf, &s->port, err, sizeof(err)) != 0) {
		printf("\n  %s\n", err);
		CU_FAIL_FATAL("the port does not open");
	}
	CU_ASSERT_EQUAL_FATAL(pmf_path_init(&s->to_peer, s->port, &dst, 7), 0);
}

static void side_close(struct side *s)
{
	pmf_port_close(s->port);
	s->port = NULL;
}

/* One pass of an engine that only receives. */
static void side_poll(struct side *s)
{
	struct pmf_queue *sq = &s->port->queue[0];
	struct rte_mbuf *m[PMF_BURST];
	const pmf_ns_t now = pmf_clock_ns();
	const uint16_t n = pmf_queue_rx(sq, m, PMF_BURST, now);

	for (uint16_t i = 0; i < n; i++) {
		struct pmf_frame f;

		if (!pmf_frame_parse(sq, m[i], &f, now))
			continue;
		s->got++;
		s->last_len = f.len;
		for (unsigned int k = 0; k < f.len; k++)
			s->bad += f.payload[k] != pattern(k);
		rte_pktmbuf_free(m[i]);
	}
	pmf_queue_tick(sq, now);
	pmf_port_service(s->port, NULL, NULL, NULL);
}

static void side_send(struct side *s, uint16_t len)
{
	struct pmf_queue *sq = &s->port->queue[0];
	struct rte_mbuf *m = pmf_frame_alloc(sq);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	for (unsigned int i = 0; i < len; i++)
		rte_pktmbuf_mtod(m, uint8_t *)[i] = pattern(i);
	pmf_frame_send(sq, &s->to_peer, m, len, false, pmf_clock_ns());
	pmf_queue_flush(sq);
}

static bool up(const struct side *s)
{
	return atomic_load(&s->port->link_up);
}

/* Run both sides until @p cond, at most so long. @return whether it came */
#define RUN_FOR(ns, cond)                                    \
	({                                                   \
		const pmf_ns_t end_ = pmf_clock_ns() + (ns); \
		while (!(cond) && pmf_clock_ns() < end_) {   \
			if (a.port)                          \
				side_poll(&a);               \
			if (b.port)                          \
				side_poll(&b);               \
		}                                            \
		(cond);                                      \
	})
#define RUN_UNTIL(cond) RUN_FOR(20 * PMF_NS_PER_S, cond)

static const char *path_of(const char *format, char *buf, size_t len)
{
	snprintf(buf, len, format, dir);
	return buf;
}

static void open_vhost(struct side *s)
{
	char text[256];

	side_open(s, path_of("net_vhost0,iface=%s/s 10.99.0.1/24 fd00::1/64", text, sizeof(text)),
		  "10.99.0.2");
}

static void open_virtio(struct side *s)
{
	char text[256];

	side_open(s,
		  path_of("net_virtio_user0,path=%s/s,queue_size=1024 10.99.0.2/24 fd00::2/64",
			  text, sizeof(text)),
		  "10.99.0.1");
}

/* Frames that meet a link or a neighbour that is not ready are lost, so they are sent again. */
static void one_frame_crosses(struct side *from, struct side *to)
{
	const unsigned int got = to->got;

	for (int i = 0; i < 200 && to->got == got; i++) {
		side_send(from, 100);
		RUN_FOR(100 * PMF_NS_PER_MS, to->got > got);
	}
	CU_ASSERT_TRUE_FATAL(to->got > got);
}

static void first_frame_each_way(void)
{
	CU_ASSERT_TRUE_FATAL(RUN_UNTIL(up(&a) && up(&b)));
	one_frame_crosses(&a, &b);
	one_frame_crosses(&b, &a);
	/* Whatever was sent twice arrives before anything is counted. */
	RUN_FOR(20 * PMF_NS_PER_MS, false);
}

static void every_size_crosses(const uint16_t *sizes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const unsigned int got_a = a.got, got_b = b.got;

		side_send(&a, sizes[i]);
		side_send(&b, sizes[i]);
		CU_ASSERT_TRUE_FATAL(RUN_UNTIL(a.got > got_a && b.got > got_b));
		CU_ASSERT_EQUAL(a.last_len, sizes[i]);
		CU_ASSERT_EQUAL(b.last_len, sizes[i]);
	}
	CU_ASSERT_EQUAL(a.bad + b.bad, 0);
	CU_ASSERT_EQUAL(a.port->queue[0].stats.rx_bad_cksum, 0);
	CU_ASSERT_EQUAL(b.port->queue[0].stats.rx_bad_cksum, 0);
}

static void test_vhost_carries_every_size(void)
{
	static const uint16_t sizes[] = {0, 1, 63, 64, 503, 504, 505, 1472, 1473, 4001, 8951, 8952};

	open_vhost(&a);
	open_virtio(&b);
	CU_ASSERT_EQUAL(a.port->max_payload, 8952);
	CU_ASSERT_EQUAL(b.port->max_payload, 8952);
	first_frame_each_way();
	every_size_crosses(sizes, PMF_ARRAY_SIZE(sizes));
	side_close(&b);
	side_close(&a);
}

/* The same, but the last bytes stay where they are. */
static void side_send_attached(struct side *s, const uint8_t *bytes, uint16_t len, uint16_t more,
			       uint16_t *attached)
{
	struct pmf_queue *sq = &s->port->queue[0];
	struct rte_mbuf *m = pmf_frame_alloc(sq);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), bytes, len);
	pmf_frame_send_attached(sq, &s->to_peer, m, len, bytes + len, more, attached, false,
				pmf_clock_ns());
}

/* Every parity of both parts; and the driver has given all back when its burst returns. */
static void attached_bytes_cross(struct side *from, struct side *to, uint8_t *bytes)
{
	struct pmf_port_stats *stats = &from->port->queue[0].stats;
	const uint64_t before = stats->tx_attached;
	uint16_t attached = 0, n = 0;

	for (uint16_t len = 48; len < 52; len++) {
		for (uint16_t more = 6000; more < 6003; more++, n++) {
			const unsigned int got = to->got;

			for (unsigned int i = 0; i < (unsigned int)len + more; i++)
				bytes[i] = pattern(i);
			side_send_attached(from, bytes, len, more, &attached);
			CU_ASSERT_EQUAL(attached, 1);
			pmf_queue_flush(&from->port->queue[0]);
			CU_ASSERT_EQUAL(attached, 0);
			memset(bytes, 0xee, 9000);
			CU_ASSERT_TRUE_FATAL(RUN_UNTIL(to->got > got));
			CU_ASSERT_EQUAL(to->last_len, len + more);
		}
	}
	CU_ASSERT_EQUAL(stats->tx_attached, before + n);
	CU_ASSERT_EQUAL(to->bad, 0);
	CU_ASSERT_EQUAL(to->port->queue[0].stats.rx_bad_cksum, 0);
}

static void test_vhost_reads_bytes_where_they_lie(void)
{
	static uint8_t bytes[9000];

	open_vhost(&a);
	open_virtio(&b);
	first_frame_each_way();
	CU_ASSERT_TRUE_FATAL(a.to_peer.attach_min <= 6000 + 2048);
	attached_bytes_cross(&a, &b, bytes);
	a.port->tx_cksum_udp = false;
	attached_bytes_cross(&a, &b, bytes);
	/* the peer of virtio-user would not see them */
	CU_ASSERT_EQUAL(b.to_peer.attach_min, UINT16_MAX);
	CU_ASSERT_PTR_NULL(b.port->attach_pool);
	side_close(&b);
	side_close(&a);
}

/* Of frames that the device has not been given, as when it is full. */
static void test_staged_bytes_are_given_back(void)
{
	static uint8_t bytes[9000];
	uint16_t attached = 0;
	struct pmf_queue *sq;
	unsigned int got;

	open_vhost(&a);
	open_virtio(&b);
	first_frame_each_way();
	sq = &a.port->queue[0];
	got = b.got;
	for (unsigned int i = 0; i < 7000; i++)
		bytes[i] = pattern(i);
	for (unsigned int i = 0; i < 4; i++)
		side_send_attached(&a, bytes, 100, 6000, &attached);
	CU_ASSERT_EQUAL(attached, 4);
	pmf_queue_detach(sq);
	CU_ASSERT_EQUAL(attached, 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(a.port->attach_pool), 0);
	memset(bytes, 0xee, sizeof(bytes));
	CU_ASSERT_TRUE_FATAL(RUN_UNTIL(b.got == got + 4));
	CU_ASSERT_EQUAL(b.last_len, 6100);
	CU_ASSERT_EQUAL(b.bad, 0);
	side_close(&b);
	side_close(&a);
}

/* Those that a test has shown to carry attached bytes, and no other. */
static void test_drivers_that_read_bytes_where_they_lie(void)
{
	static const char *const these[] = {"net_vhost", "net_af_packet"};
	static const char *const others[] = {
		"net_ring", "net_virtio_user", "net_memif", "net_af_xdp", "net_tap",
		"net_pcap", "net_null",	       "net_ixgbe", "net_virtio", "net_vmxnet3"};

	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(these); i++)
		CU_ASSERT_NOT_EQUAL(pmf_quirks_find(these[i])->attach_min, 0);
	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(others); i++)
		CU_ASSERT_EQUAL(pmf_quirks_find(others[i])->attach_min, 0);
}

/* What one side leaves to the other's device must be right even if that one does not take part. */
static void test_offload_of_one_side_only(void)
{
	static const uint16_t sizes[] = {1000, 8952};

	for (int i = 0; i < 2; i++) {
		open_vhost(&a);
		open_virtio(&b);
		(i ? &a : &b)->port->tx_cksum_udp = false;
		first_frame_each_way();
		every_size_crosses(sizes, PMF_ARRAY_SIZE(sizes));
		side_close(&b);
		side_close(&a);
	}
}

static void test_peer_returns(void)
{
	open_vhost(&a);
	for (int i = 0; i < 3; i++) {
		open_virtio(&b);
		first_frame_each_way();
		side_close(&b);
		CU_ASSERT_TRUE_FATAL(RUN_UNTIL(!up(&a)));
	}
	side_close(&a);
}

/* Connections and shared memory; the events go with them. */
static void test_link_is_closed_on_exec(void)
{
	unsigned int sockets = 0;

	open_vhost(&a);
	open_virtio(&b);
	first_frame_each_way();
	for (int fd = 3; fd < 1024; fd++) {
		struct sockaddr_un sun = {.sun_family = AF_UNSPEC};
		char link[64], target[256] = "";
		socklen_t n = sizeof(sun);

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		if (readlink(link, target, sizeof(target) - 1) < 0)
			continue;
		if (getsockname(fd, (struct sockaddr *)&sun, &n) == 0 &&
		    strncmp(sun.sun_path, dir, strlen(dir)) == 0)
			sockets++;
		else if (!strstr(target, "memfd"))
			continue;
		CU_ASSERT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	CU_ASSERT_EQUAL(sockets, 2); /* the listening one and the accepted one */
	side_close(&b);
	side_close(&a);
}

static bool signalled(const struct side *s, int timeout_ms)
{
	struct pollfd p = {.fd = pmf_queue_intr_fd(&s->port->queue[0]), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static void check_interrupt(struct side *rx, struct side *tx)
{
	struct pmf_queue *rq = &rx->port->queue[0];
	const unsigned int got = rx->got;

	CU_ASSERT_TRUE_FATAL(pmf_queue_intr_fd(rq) >= 0);
	for (int i = 0; i < 3; i++) {
		/* Quiet until armed and sent to; the second round shows that nothing old is left.
		 */
		CU_ASSERT_TRUE_FATAL(RUN_UNTIL(pmf_queue_intr_arm(rq) == 0));
		side_poll(rx);
		CU_ASSERT_FALSE(signalled(rx, 0));
		side_send(tx, 10);
		CU_ASSERT_TRUE(signalled(rx, 20000));
		pmf_queue_intr_disarm(rq);
		CU_ASSERT_TRUE_FATAL(RUN_UNTIL(rx->got == got + 1u + (unsigned int)i));
	}
}

static void test_interrupts_wake(void)
{
	open_vhost(&a);
	open_virtio(&b);
	first_frame_each_way();
	check_interrupt(&a, &b);
	check_interrupt(&b, &a);
	side_close(&b);
	/* The link is down: there is nothing to wait for but time. */
	CU_ASSERT_TRUE_FATAL(RUN_UNTIL(!up(&a)));
	CU_ASSERT_EQUAL(pmf_queue_intr_arm(&a.port->queue[0]), -ENOTSUP);
	side_close(&a);
}

static void test_socket_of_a_dead_process_is_replaced(void)
{
	char text[256], err[256];
	struct pmf_port_conf conf;
	struct pmf_port *second;

	open_vhost(&a);
	/* A live one is not. */
	path_of("net_vhost1,iface=%s/s 10.99.0.3/24", text, sizeof(text));
	CU_ASSERT_EQUAL_FATAL(pmf_port_conf_parse(text, &conf, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(pmf_port_open(&conf, &second, err, sizeof(err)), -EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "/s"));
	side_close(&a);
}

/*
 * The driver keeps one socket a file name and process; two names of the same file let both sides
 * stand in one process, in any order.
 */
static void open_memif(struct side *s, bool server)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "net_memif%d,role=%s,id=0,socket=%s%s/m,socket-abstract=no,bsize=2048 "
		 "10.99.0.%d/24",
		 server ? 0 : 1, server ? "server" : "client", dir, server ? "" : "/.",
		 server ? 1 : 2);
	side_open(s, text, server ? "10.99.0.2" : "10.99.0.1");
}

/*
 * The driver unmaps the rings in a thread of its own, and who polls them at that moment crashes in
 * it: nobody polls until the link is down.
 */
static bool memif_goes_down(struct side *s)
{
	const pmf_ns_t end = pmf_clock_ns() + 20 * PMF_NS_PER_S;

	while (up(s) && pmf_clock_ns() < end)
		pmf_port_service(s->port, NULL, NULL, NULL);
	return !up(s);
}

static void test_memif_in_any_order(void)
{
	static const uint16_t sizes[] = {0, 64, 1472, 1982};

	/* The client first: it cannot start until the server is there. */
	open_memif(&b, false);
	CU_ASSERT_FALSE(b.port->started);
	open_memif(&a, true);
	CU_ASSERT_EQUAL(a.port->mtu, 2030);
	first_frame_each_way();
	every_size_crosses(sizes, PMF_ARRAY_SIZE(sizes));
	/* The client goes and returns. */
	side_close(&b);
	CU_ASSERT_TRUE_FATAL(memif_goes_down(&a));
	open_memif(&b, false);
	first_frame_each_way();
	/* The server goes and returns. */
	side_close(&a);
	CU_ASSERT_TRUE_FATAL(memif_goes_down(&b));
	open_memif(&a, true);
	first_frame_each_way();
	side_close(&b);
	side_close(&a);
}

int link_tests_init(void)
{
	return mkdtemp(dir) ? 0 : -1;
}

int link_tests_fini(void)
{
	char path[256];

	unlink(path_of("%s/s", path, sizeof(path)));
	unlink(path_of("%s/m", path, sizeof(path)));
	return rmdir(dir);
}

const struct unit_test link_tests[] = {
	{"vhost carries every size", test_vhost_carries_every_size},
	{"vhost reads bytes where they lie", test_vhost_reads_bytes_where_they_lie},
	{"staged bytes are given back", test_staged_bytes_are_given_back},
	{"drivers that read bytes where they lie", test_drivers_that_read_bytes_where_they_lie},
	{"offload of one side only", test_offload_of_one_side_only},
	{"a virtio-user peer returns", test_peer_returns},
	{"the link is closed on exec", test_link_is_closed_on_exec},
	{"interrupts wake", test_interrupts_wake},
	{"a socket that is in use", test_socket_of_a_dead_process_is_replaced},
	{"memif in any order", test_memif_in_any_order},
	{NULL},
};
