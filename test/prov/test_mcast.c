/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Multicast: row B10. The link gives back what is sent on it, as a switch does that has learnt of
 * the members; PMF_TEST_FAULTS says that it also doubles and reorders.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <unistd.h>

#define GROUP "239.1.2.3"
#define GROUP_MAX 1396 /* with the MTU of 1500 that FI_PMF_PORT says here; docs/fi_pmf.7 */

struct mc {
	struct fid_mc *mc;
	fi_addr_t addr;
};

static const struct fx_opt usual = {.caps = FI_MSG | FI_MULTICAST | FI_SOURCE, .eq = true};

static struct sockaddr_in group_of(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, ip, &sin.sin_addr);
	return sin;
}

/* Join and wait for the event. */
static void join_at(struct fx *f, struct fx_ep *e, const void *addr, uint64_t flags, struct mc *mc)
{
	struct fx_event ev;
	struct fi_eq_entry entry;

	CU_ASSERT_EQUAL_FATAL(fi_join(e->ep, addr, flags, &mc->mc, mc), 0);
	CU_ASSERT_FATAL(fx_event(f, e->eq, &ev));
	CU_ASSERT_EQUAL(ev.err.err, 0);
	CU_ASSERT_EQUAL(ev.event, FI_JOIN_COMPLETE);
	CU_ASSERT_EQUAL(ev.len, sizeof(entry));
	memcpy(&entry, ev.bytes, sizeof(entry));
	CU_ASSERT_PTR_EQUAL(entry.fid, &mc->mc->fid);
	CU_ASSERT_PTR_EQUAL(entry.context, mc);
	mc->addr = fi_mc_addr(mc->mc);
	CU_ASSERT_NOT_EQUAL(mc->addr, FI_ADDR_NOTAVAIL);
}

static void join(struct fx *f, struct fx_ep *e, uint64_t flags, struct mc *mc)
{
	struct sockaddr_in sin = group_of(GROUP, 4000);

	join_at(f, e, &sin, flags, mc);
}

static void leave(struct mc *mc)
{
	CU_ASSERT_EQUAL(fi_close(&mc->mc->fid), 0);
}

static ssize_t send_to(struct fx_ep *e, fi_addr_t to, const void *buf, size_t len, uint64_t flags,
		       uint64_t data)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct fi_msg msg = {.msg_iov = &iov,
			     .iov_count = 1,
			     .addr = to,
			     .context = (void *)(uintptr_t)buf,
			     .data = data};

	return fi_sendmsg(e->ep, &msg, flags);
}

static void say(struct fx *f, struct fx_ep *e, const struct mc *mc, const char *text)
{
	struct fx_comp c;

	CU_ASSERT_EQUAL(FX_RETRY(f, send_to(e, mc->addr, text, strlen(text) + 1, FI_MULTICAST, 0)),
			0);
	FX_WAIT_OK(f, e->txcq, text, &c);
	CU_ASSERT_EQUAL(c.e.flags, FI_SEND | FI_MSG | FI_MULTICAST);
}

static void hear(struct fx *f, struct fx_ep *e, const char *text)
{
	char rx[64] = "";
	struct fx_comp c;

	CU_ASSERT_EQUAL(fi_recv(e->ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	FX_WAIT_OK(f, e->rxcq, rx, &c);
	CU_ASSERT_STRING_EQUAL(rx, text);
	CU_ASSERT_EQUAL(c.e.len, strlen(text) + 1);
	CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | FI_MULTICAST);
}

/* ---- joining ---- */

static void test_B10_a_join_ends_in_one_event(void)
{
	struct sockaddr_in sin = group_of(GROUP, 4000);
	struct fx_event ev;
	struct mc m, other;
	struct fx f;

	fx_open(&f, &usual);
	CU_ASSERT_EQUAL_FATAL(fi_join(f.a.ep, &sin, 0, &m.mc, NULL), 0);
	CU_ASSERT_EQUAL(m.mc->fid.fclass, FI_CLASS_MC);
	CU_ASSERT_FATAL(fx_event(&f, f.a.eq, &ev));
	CU_ASSERT_EQUAL(ev.event, FI_JOIN_COMPLETE);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	join(&f, &f.b, 0, &other);
	CU_ASSERT_TRUE(fx_no_event(&f, f.b.eq));
	leave(&m);
	leave(&other);
	fx_close(&f);
}

static void test_B10_closed_before_it_is_complete(void)
{
	struct sockaddr_in sin = group_of(GROUP, 4000);
	struct fid_mc *mc;
	struct fx f;

	fx_open(&f, &usual);
	CU_ASSERT_EQUAL_FATAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), 0);
	CU_ASSERT_EQUAL(fi_close(&mc->fid), 0);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	fx_close(&f);
}

/* E11: an event that nobody has read goes with its membership. */
static void test_B10_closed_with_its_event_unread(void)
{
	struct sockaddr_in sin = group_of(GROUP, 4000);
	double end = fx_now_ms() + FX_MS;
	struct fi_eq_entry entry;
	struct fid_mc *mc;
	uint32_t event;
	ssize_t n;
	struct fx f;

	fx_open(&f, &usual);
	CU_ASSERT_EQUAL_FATAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), 0);
	while ((n = fi_eq_read(f.a.eq, &event, &entry, sizeof(entry), FI_PEEK)) == -FI_EAGAIN &&
	       fx_now_ms() < end)
		;
	CU_ASSERT_EQUAL(n, sizeof(entry));
	CU_ASSERT_EQUAL(fi_close(&mc->fid), 0);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	fx_close(&f);
}

/* Nobody is at the other end of the link. */
static void test_B10_the_link_is_down(void)
{
	char dir[] = "/tmp/pmf-test-XXXXXX", port[128], sock[64];
	struct sockaddr_in sin = group_of(GROUP, 4000);
	struct fx_event ev;
	struct fid_mc *mc;
	struct fx f;

	if (!getenv("FX_LINK")) /* a process has one link */
		return;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(sock, sizeof(sock), "%s/l", dir);
	snprintf(port, sizeof(port), "net_vhost0,iface=%s 10.99.0.1/24", sock);
	setenv("FI_PMF_PORT", port, 1);
	fx_open(&f, &usual);
	CU_ASSERT_EQUAL_FATAL(fi_join(f.a.ep, &sin, 0, &mc, dir), 0);
	CU_ASSERT_FATAL(fx_event(&f, f.a.eq, &ev));
	CU_ASSERT_EQUAL(ev.err.err, FI_ETIMEDOUT);
	CU_ASSERT_PTR_EQUAL(ev.err.fid, &mc->fid);
	CU_ASSERT_PTR_EQUAL(ev.err.context, dir);
	CU_ASSERT_EQUAL(fi_mc_addr(mc), FI_ADDR_NOTAVAIL);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	CU_ASSERT_EQUAL(fi_close(&mc->fid), 0);
	fx_close(&f);
	unlink(sock);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void test_B10_the_domains_event_queue_serves(void)
{
	struct fx_opt opt = {.caps = FI_MSG | FI_MULTICAST};
	struct sockaddr_in sin = group_of(GROUP, 4000);
	struct fx_event ev;
	struct fid_eq *eq;
	struct fid_mc *mc;
	struct fx f;

	fx_open_domain(&f, &opt);
	eq = fx_eq_open(&f);
	CU_ASSERT_EQUAL(fi_domain_bind(f.domain, &eq->fid, 0), 0);
	fx_ep_open(&f, &f.a);
	fx_ep_enable(&f.a);
	CU_ASSERT_EQUAL_FATAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), 0);
	/* reading the queue alone drives it */
	do
		ev.len = fi_eq_sread(eq, &ev.event, ev.bytes, sizeof(ev.bytes), 1000, 0);
	while (ev.len == -FI_EAGAIN);
	CU_ASSERT_EQUAL(ev.event, FI_JOIN_COMPLETE);
	CU_ASSERT_EQUAL(fi_close(&mc->fid), 0);
	fx_ep_close(&f.a);
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.fabric->fid), 0);
	fi_freeinfo(f.info);
}

static void test_B10_joins_that_are_refused(void)
{
	struct sockaddr_in sin = group_of(GROUP, 4000), unicast = group_of("10.99.0.2", 4000);
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(4000)};
	struct fx_opt no_eq = {.caps = FI_MSG | FI_MULTICAST}, plain = {.eq = true};
	struct fx_opt closed = {.caps = FI_MSG | FI_MULTICAST, .eq = true, .no_enable = true};
	struct fid_mc *mc = NULL;
	struct fx f;

	inet_pton(AF_INET6, "ff05::1", &sin6.sin6_addr);
	fx_open(&f, &usual);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &unicast, 0, &mc, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin6, 0, &mc, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, NULL, 0, &mc, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, FI_MULTICAST, &mc, NULL), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, FI_RECV | FI_PEEK, &mc, NULL), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, FI_COLLECTIVE, &mc, NULL), -FI_ENOSYS);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	fx_close(&f);
	fx_open(&f, &no_eq);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), -FI_ENOEQ);
	fx_close(&f);
	fx_open(&f, &closed);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), -FI_EOPBADSTATE);
	fx_close(&f);
	fx_open(&f, &plain); /* did not ask for the capability */
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), -FI_ENOSYS);
	fx_close(&f);
}

static void test_B10_one_direction_alone(void)
{
	struct fx_opt opt = {.caps = FI_MSG | FI_MULTICAST | FI_SEND, .eq = true};
	struct sockaddr_in sin = group_of(GROUP, 4000);
	char in[16];
	struct mc a, b;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	say(&f, &f.a, &a, "from a");
	hear(&f, &f.b, "from a");
	CU_ASSERT_EQUAL(send_to(&f.b, b.addr, "x", 1, FI_MULTICAST, 0), -FI_EINVAL);
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.a.rxcq));
	leave(&a);
	leave(&b);
	fx_close(&f);
	/* an endpoint that only sends cannot join to receive; nor does it by default */
	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, FI_RECV, &a.mc, NULL), -FI_ENOSYS);
	join(&f, &f.a, 0, &a);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, "x", 1, FI_MULTICAST, 0), 0);
	leave(&a);
	fx_close(&f);
}

/* ---- messages ---- */

static void test_B10_all_that_have_joined_hear_it(void)
{
	struct fi_cq_data_entry e;
	struct mc a, b;
	fi_addr_t src;
	char rx[16];
	struct fx f;
	double end;

	fx_open(&f, &usual);
	join(&f, &f.a, 0, &a);
	join(&f, &f.b, 0, &b);
	say(&f, &f.a, &a, "one");
	hear(&f, &f.a, "one"); /* the sender's own included */
	hear(&f, &f.b, "one");
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, "two", 4, FI_MULTICAST | FI_REMOTE_CQ_DATA,
				0x1122334455667788),
			0);
	end = fx_now_ms() + FX_MS;
	while (fi_cq_readfrom(f.b.rxcq, &e, 1, &src) == -FI_EAGAIN && fx_now_ms() < end)
		fx_progress(&f);
	CU_ASSERT_EQUAL(src, f.b.a);
	CU_ASSERT_EQUAL(e.data, 0x1122334455667788);
	CU_ASSERT_EQUAL(e.flags, FI_RECV | FI_MSG | FI_MULTICAST | FI_REMOTE_CQ_DATA);
	CU_ASSERT_STRING_EQUAL(rx, "two");
	leave(&a);
	leave(&b);
	fx_close(&f);
}

/* C6: who the AV does not hold. */
static void test_B10_from_a_stranger(void)
{
	struct fx_opt opt = usual;
	char rx[16] = "", addr[64];
	struct fi_cq_err_entry err = {.err_data = addr, .err_data_size = sizeof(addr)};
	struct mc a, b;
	struct fx f;

	opt.caps |= FI_SOURCE_ERR;
	opt.no_insert = true;
	fx_open(&f, &opt);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
	say(&f, &f.a, &a, "hello");
	CU_ASSERT_EQUAL_FATAL(FX_RETRY(&f, fi_cq_readerr(f.b.rxcq, &err, 0)), 1);
	CU_ASSERT_EQUAL(err.err, FI_EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(err.flags, FI_RECV | FI_MSG | FI_MULTICAST);
	CU_ASSERT_EQUAL_FATAL(err.err_data_size, f.a.namelen);
	CU_ASSERT_EQUAL(memcmp(addr, f.a.name, f.a.namelen), 0);
	CU_ASSERT_STRING_EQUAL(rx, "hello");
	leave(&a);
	leave(&b);
	fx_close(&f);
}

static void test_B10_over_ipv6(void)
{
	struct fx_opt opt = usual;
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(4000)};
	struct mc a, b;
	struct fx f;

	opt.addr_format = FI_SOCKADDR_IN6;
	inet_pton(AF_INET6, "ff05::1:3", &sin6.sin6_addr);
	fx_open(&f, &opt);
	join_at(&f, &f.a, &sin6, 0, &a);
	join_at(&f, &f.b, &sin6, FI_RECV, &b);
	say(&f, &f.a, &a, "six");
	hear(&f, &f.b, "six");
	hear(&f, &f.a, "six");
	leave(&a);
	leave(&b);
	fx_close(&f);
}

/* The same address with other ports, and one without. */
static void test_B10_a_group_has_a_port(void)
{
	struct sockaddr_in other = group_of(GROUP, 4001), none = group_of(GROUP, 0);
	struct mc a, b, c, d;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, FI_SEND, &a);
	join_at(&f, &f.b, &other, 0, &b);
	join_at(&f, &f.a, &none, FI_SEND, &c);
	join_at(&f, &f.b, &none, FI_RECV, &d);
	say(&f, &f.a, &a, "to 4000");
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.b.rxcq));
	say(&f, &f.a, &c, "to the default");
	hear(&f, &f.b, "to the default");
	say(&f, &f.b, &b, "to 4001");
	hear(&f, &f.b, "to 4001");
	leave(&a);
	leave(&b);
	leave(&c);
	leave(&d);
	fx_close(&f);
}

static void test_B10_joined_twice_heard_once(void)
{
	struct sockaddr_in other = group_of(GROUP, 4001);
	struct mc a, b[2], x;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, 0, &b[0]);
	join_at(&f, &f.b, &other, 0, &x);
	join(&f, &f.b, 0, &b[1]);
	CU_ASSERT_NOT_EQUAL(b[0].addr, b[1].addr);
	say(&f, &f.a, &a, "once");
	hear(&f, &f.b, "once");
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.b.rxcq));
	leave(&b[0]);
	say(&f, &f.a, &a, "still");
	hear(&f, &f.b, "still");
	leave(&b[1]);
	leave(&x);
	say(&f, &f.a, &a, "gone");
	leave(&a);
	fx_close(&f);
}

/* Before a receive is there they wait, in order; the longest that goes into a frame among them. */
static void test_B10_messages_wait_for_their_receives(void)
{
	static uint8_t out[GROUP_MAX], in[GROUP_MAX];
	struct fx_comp c;
	struct mc a, b;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	fx_fill(out, sizeof(out), 3);
	say(&f, &f.a, &a, "first");
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, out, sizeof(out), FI_MULTICAST, 0), 0);
	FX_WAIT_OK(&f, f.a.txcq, out, &c);
	say(&f, &f.a, &a, "");
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.b.rxcq));
	hear(&f, &f.b, "first");
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	FX_WAIT_OK(&f, f.b.rxcq, in, &c);
	CU_ASSERT_EQUAL(c.e.len, sizeof(in));
	CU_ASSERT_TRUE(fx_same(in, sizeof(in), 3));
	hear(&f, &f.b, "");
	leave(&a);
	leave(&b);
	fx_close(&f);
}

static void test_B10_pieces_cut_and_empty_messages(void)
{
	char text[] = "multicast";
	struct iovec iov[] = {{text, 3}, {NULL, 0}, {text + 3, 7}};
	struct mc a, b;
	struct fx_comp c;
	char rx[4];
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	{
		struct fi_msg msg = {.msg_iov = iov, .iov_count = 3, .addr = a.addr};

		CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_MULTICAST), 0);
		FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
		hear(&f, &f.b, "multicast");
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_sendmsg(f.a.ep, &msg, FI_MULTICAST), 0);
	}
	FX_WAIT_ERR(&f, f.b.rxcq, rx, FI_ETRUNC, &c);
	CU_ASSERT_EQUAL(c.err.len, 4);
	CU_ASSERT_EQUAL(c.err.olen, 6);
	CU_ASSERT_EQUAL(memcmp(rx, "mult", 4), 0);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, NULL, 0, NULL, FI_ADDR_UNSPEC, &f), 0);
	FX_WAIT_OK(&f, f.a.txcq, NULL, &c);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, NULL, 0, FI_MULTICAST, 0), 0);
	FX_WAIT_OK(&f, f.b.rxcq, &f, &c);
	CU_ASSERT_EQUAL(c.e.len, 0);
	leave(&a);
	leave(&b);
	fx_close(&f);
}

static void test_B10_directed_and_packed_receives(void)
{
	struct fx_opt opt = usual;
	char from_b[16] = "", packed[256];
	struct iovec iov = {packed, sizeof(packed)};
	struct fi_msg many = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
	struct mc a, b;
	struct fx_comp c;
	struct fx f;

	opt.caps |= FI_DIRECTED_RECV | FI_MULTI_RECV;
	fx_open(&f, &opt);
	join(&f, &f.a, 0, &a);
	join(&f, &f.b, 0, &b);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, from_b, sizeof(from_b), NULL, f.b.b, from_b), 0);
	say(&f, &f.a, &a, "from a");
	say(&f, &f.b, &b, "from b");
	FX_WAIT_OK(&f, f.b.rxcq, from_b, &c);
	CU_ASSERT_STRING_EQUAL(from_b, "from b");
	hear(&f, &f.b, "from a");
	CU_ASSERT_EQUAL(fi_recvmsg(f.b.ep, &many, FI_MULTI_RECV), 0);
	for (int i = 0; i < 2; i++) {
		say(&f, &f.a, &a, "packed");
		FX_WAIT_OK(&f, f.b.rxcq, NULL, &c);
		CU_ASSERT_PTR_EQUAL(c.e.buf, packed + 7 * i);
		CU_ASSERT_EQUAL(c.e.flags, FI_RECV | FI_MSG | FI_MULTICAST);
	}
	leave(&a);
	leave(&b);
	fx_close(&f);
}

/* The flag as a default of the calls that have none, and an alias that has another. */
static void test_B10_by_default_flags(void)
{
	struct fx_opt opt = usual;
	struct fid_ep *alias = NULL;
	struct fx_comp c;
	struct mc a, b;
	struct fx f;
	uint64_t flags = FI_TRANSMIT;

	opt.tx_op_flags = FI_MULTICAST;
	opt.counters = true;
	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CU_ASSERT_EQUAL(flags, FI_MULTICAST);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "send", 5, NULL, a.addr, &a), 0);
	FX_WAIT_OK(&f, f.a.txcq, &a, &c);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "inject", 7, a.addr), 0);
	CU_ASSERT_EQUAL(fi_senddata(f.a.ep, "data", 5, NULL, 7, a.addr, &a), 0);
	FX_WAIT_OK(&f, f.a.txcq, &a, &c);
	CU_ASSERT_EQUAL(fi_injectdata(f.a.ep, "both", 5, 8, a.addr), 0);
	hear(&f, &f.b, "send");
	hear(&f, &f.b, "inject");
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "x", 1, NULL, f.a.b, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "x", 1, f.a.b), -FI_EINVAL);
	/* the call's own flags stand for themselves */
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, "x", 1, 0, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL_FATAL(fi_ep_alias(f.a.ep, &alias, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL(fi_send(alias, "x", 1, NULL, a.addr, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_close(&alias->fid), 0);
	CU_ASSERT_EQUAL(fi_cntr_read(f.a.txcntr), 4);
	leave(&a);
	leave(&b);
	fx_close(&f);
}

static void test_B10_completions_as_asked_for(void)
{
	struct fx_opt opt = usual;
	struct fx_comp c;
	struct mc a;
	struct fx f;
	char byte = 1;

	opt.tx_bind = FI_SELECTIVE_COMPLETION;
	fx_open(&f, &opt);
	join(&f, &f.a, FI_SEND, &a);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, &byte, 1, FI_MULTICAST, 0), 0);
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, &byte, 1,
				FI_MULTICAST | FI_COMPLETION | FI_TRANSMIT_COMPLETE, 0),
			0);
	FX_WAIT_OK(&f, f.a.txcq, &byte, &c);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, &byte, 1,
				FI_MULTICAST | FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE, 0),
			0);
	FX_WAIT_OK(&f, f.a.txcq, &byte, &c);
	leave(&a);
	fx_close(&f);
}

/* ---- what is refused ---- */

static void test_B10_sends_that_are_refused(void)
{
	static uint8_t big[GROUP_MAX + 1];
	struct mc a, b;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, 0, &a);
	join(&f, &f.b, FI_RECV, &b);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, "x", 1, 0, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "x", 1, NULL, a.addr, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(send_to(&f.a, f.a.b, "x", 1, FI_MULTICAST, 0), -FI_EINVAL);
	/* of another endpoint; of nobody */
	CU_ASSERT_EQUAL(send_to(&f.b, a.addr, "x", 1, FI_MULTICAST, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(send_to(&f.a, FI_ADDR_NOTAVAIL, "x", 1, FI_MULTICAST, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr + 1, "x", 1, FI_MULTICAST, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, "x", 1, FI_MULTICAST | FI_DELIVERY_COMPLETE, 0),
			-FI_EBADFLAGS);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, "x", 1, FI_MULTICAST | FI_FENCE, 0), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(send_to(&f.a, a.addr, big, sizeof(big), FI_MULTICAST, 0), -FI_EMSGSIZE);
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.a.txcq));
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.b.rxcq));
	leave(&a);
	leave(&b);
	fx_close(&f);
}

static void test_B10_not_on_connections(void)
{
	struct sockaddr_in sin = group_of(GROUP, 4000);
	struct fx_opt opt = {.msg = true};
	uint64_t flags = FI_TRANSMIT | FI_MULTICAST;
	struct fi_info *hints, *info;
	struct fid_mc *mc;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(send_to(&f.a, 0, "x", 1, FI_MULTICAST, 0), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &sin, 0, &mc, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_control(&f.a.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	fx_close(&f);
	opt.caps = FI_MSG | FI_MULTICAST;
	hints = fx_hints(&opt);
	CU_ASSERT_EQUAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->caps = FI_MSG;
	hints->tx_attr->op_flags = FI_MULTICAST;
	CU_ASSERT_EQUAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void test_B10_a_group_is_no_peer(void)
{
	struct sockaddr_in sin = group_of(GROUP, 4000);
	fi_addr_t addr = 0;
	struct fx f;

	fx_open(&f, &usual);
	CU_ASSERT_EQUAL(fi_av_insert(f.a.av, &sin, 1, &addr, 0, NULL), 0);
	CU_ASSERT_EQUAL(addr, FI_ADDR_NOTAVAIL);
	fx_close(&f);
}

/* ---- leaving ---- */

static void test_B10_leaving(void)
{
	struct mc a, b;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, 0, &a);
	join(&f, &f.b, 0, &b);
	/* an endpoint with open groups stays, and is well */
	CU_ASSERT_EQUAL(fi_close(&f.b.ep->fid), -FI_EBUSY);
	say(&f, &f.a, &a, "one");
	hear(&f, &f.b, "one");
	hear(&f, &f.a, "one");
	leave(&b);
	CU_ASSERT_EQUAL(send_to(&f.b, b.addr, "x", 1, FI_MULTICAST, 0), -FI_EINVAL);
	say(&f, &f.a, &a, "two");
	hear(&f, &f.a, "two");
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.b.rxcq));
	/* again: what was said meanwhile does not come, what is said now does */
	join(&f, &f.b, 0, &b);
	say(&f, &f.a, &a, "three");
	hear(&f, &f.b, "three");
	leave(&a);
	leave(&b);
	fx_close(&f);
}

/* What was posted is the device's, or over, when fi_close of the group returns. */
static void test_B10_leaving_with_sends_posted(void)
{
	struct fx_opt opt = usual;
	struct mc a, b;
	struct fx_comp c;
	struct fx f;
	int left;

	opt.auto_progress = true; /* posts are not sent by the call */
	fx_open(&f, &opt);
	join(&f, &f.b, FI_RECV, &b);
	for (int round = 0; round < 20; round++) {
		join(&f, &f.a, FI_SEND, &a);
		for (left = 0; left < 50; left++)
			if (send_to(&f.a, a.addr, "x", 1, FI_MULTICAST, 0))
				break;
		leave(&a);
		for (; left; left--) {
			CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
			CU_ASSERT(c.err.err == 0 || c.err.err == FI_ECANCELED);
		}
	}
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.a.txcq));
	leave(&b);
	fx_close(&f);
}

/* ---- how much is kept, and how often it comes ---- */

static uint64_t counted(struct fx *f, const char *name)
{
	return fx_stat(f, "engine:0", name);
}

/* A flood without receives is bounded, and what comes one by one is not held up by it. */
static void test_B10_a_flood_is_dropped_and_harms_nobody(void)
{
	static uint8_t big[GROUP_MAX];
	struct fx_opt opt = usual;
	struct fx_comp c;
	struct mc a, b;
	uint64_t sent;
	char rx[16];
	struct fx f;

	fx_open(&f, &opt);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	for (sent = 0; sent < 100000 && !counted(&f, "mcast_drop_no_memory"); sent += 100)
		for (int i = 0; i < 100; i++) {
			CU_ASSERT_EQUAL_FATAL(FX_RETRY(&f, send_to(&f.a, a.addr, big, sizeof(big),
								   FI_MULTICAST, 0)),
					      0);
			FX_WAIT_OK(&f, f.a.txcq, big, &c);
		}
	CU_ASSERT(sent < 100000);
	/* a message of its own still comes, behind those that are kept */
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "unicast", 8, f.a.b), 0);
	leave(&b);
	do {
		CU_ASSERT_EQUAL_FATAL(
			FX_RETRY(&f, fi_recv(f.b.ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx)), 0);
		CU_ASSERT_FATAL(fx_wait(&f, f.b.rxcq, &c));
	} while (c.err.err == FI_ETRUNC);
	CU_ASSERT_EQUAL(c.err.err, 0);
	CU_ASSERT_STRING_EQUAL(rx, "unicast");
	leave(&a);
	fx_close(&f);
}

/* Run again with a link that doubles and reorders: FI_PMF_FAULT. */
static void test_B10_faults_at_most_once_and_in_order(void)
{
	bool faults = getenv("FI_PMF_FAULT");
	uint32_t number, last = 0, got = 0;
	const uint32_t all = 5000;
	struct fx_comp c;
	struct mc a, b;
	struct fx f;

	fx_open(&f, &usual);
	join(&f, &f.a, FI_SEND, &a);
	join(&f, &f.b, FI_RECV, &b);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL), 0);
	for (uint32_t i = 1; i <= all + 200; i++) {
		uint32_t n = i;

		CU_ASSERT_EQUAL_FATAL(FX_RETRY(&f, send_to(&f.a, a.addr, &n, sizeof(n),
							   FI_MULTICAST | FI_INJECT, 0)),
				      0);
		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
		while (fi_cq_read(f.b.rxcq, &c.e, 1) == 1) {
			CU_ASSERT(number > last);
			last = number;
			got++;
			CU_ASSERT_EQUAL(fi_recv(f.b.ep, &number, sizeof(number), NULL,
						FI_ADDR_UNSPEC, NULL),
					0);
		}
	}
	CU_ASSERT(last >= all);
	if (faults) {
		CU_ASSERT(counted(&f, "mcast_drop_old") > 100);
		CU_ASSERT(got > all / 2);
	} else {
		CU_ASSERT_EQUAL(counted(&f, "mcast_drop_old"), 0);
	}
	leave(&a);
	leave(&b);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B10_a_join_ends_in_one_event),
	FX_TEST(test_B10_closed_before_it_is_complete),
	FX_TEST(test_B10_closed_with_its_event_unread),
	FX_TEST(test_B10_the_link_is_down),
	FX_TEST(test_B10_the_domains_event_queue_serves),
	FX_TEST(test_B10_joins_that_are_refused),
	FX_TEST(test_B10_one_direction_alone),
	FX_TEST(test_B10_all_that_have_joined_hear_it),
	FX_TEST(test_B10_from_a_stranger),
	FX_TEST(test_B10_over_ipv6),
	FX_TEST(test_B10_a_group_has_a_port),
	FX_TEST(test_B10_joined_twice_heard_once),
	FX_TEST(test_B10_messages_wait_for_their_receives),
	FX_TEST(test_B10_pieces_cut_and_empty_messages),
	FX_TEST(test_B10_directed_and_packed_receives),
	FX_TEST(test_B10_by_default_flags),
	FX_TEST(test_B10_completions_as_asked_for),
	FX_TEST(test_B10_sends_that_are_refused),
	FX_TEST(test_B10_not_on_connections),
	FX_TEST(test_B10_a_group_is_no_peer),
	FX_TEST(test_B10_leaving),
	FX_TEST(test_B10_leaving_with_sends_posted),
	FX_TEST(test_B10_a_flood_is_dropped_and_harms_nobody),
	FX_TEST(test_B10_faults_at_most_once_and_in_order),
};

FX_MAIN("multicast")
