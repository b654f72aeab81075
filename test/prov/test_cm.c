/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections: rows A11, A13, A17, D9, E8, E9 and F7 of the specification on FI_EP_MSG.
 */
#include "fx.h"

static const struct fx_opt msg = {.msg = true};

/* Domain and listener, and a not yet connected in f->a. */
static void open_half(struct fx *f)
{
	fx_open_domain(f, &msg);
	fx_listen(f);
	fx_ep_open(f, &f->a);
}

static void accept_b(struct fx *f, const void *data, size_t datalen)
{
	char name[128];
	size_t len = sizeof(name);
	struct fx_event ev;

	FX_EVENT(f, f->peq, FI_CONNREQ, &f->pep->fid, &ev);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ev.cm.info);
	CU_ASSERT_EQUAL(fi_getname(&f->a.ep->fid, name, &len), 0);
	CU_ASSERT_EQUAL(ev.cm.info->dest_addrlen, len);
	CU_ASSERT_EQUAL(memcmp(ev.cm.info->dest_addr, name, len), 0);
	f->b.info = ev.cm.info;
	fx_ep_open(f, &f->b);
	CU_ASSERT_EQUAL_FATAL(fi_accept(f->b.ep, data, datalen), 0);
}

static void exchange(struct fx *f, struct fx_ep *from, struct fx_ep *to, size_t len)
{
	uint8_t *out = malloc(len + 1), *in = malloc(len + 1);
	struct fx_comp c;

	fx_fill(out, len, 5);
	CU_ASSERT_EQUAL(fi_recv(to->ep, in, len, NULL, 0xbad, in), 0);
	CU_ASSERT_EQUAL(fi_send(from->ep, out, len, NULL, 0xbad, out), 0);
	FX_WAIT_OK(f, to->rxcq, in, &c);
	CU_ASSERT_EQUAL(c.e.len, len);
	FX_WAIT_OK(f, from->txcq, out, &c);
	CU_ASSERT_TRUE(fx_same(in, len, 5));
	free(out);
	free(in);
}

static void test_E8_connect_accept(void)
{
	struct fx_event ev;
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	accept_b(&f, NULL, 0);
	FX_EVENT(&f, f.b.eq, FI_CONNECTED, &f.b.ep->fid, &ev);
	FX_EVENT(&f, f.a.eq, FI_CONNECTED, &f.a.ep->fid, &ev);
	CU_ASSERT_TRUE(fx_no_event(&f, f.a.eq));
	CU_ASSERT_TRUE(fx_no_event(&f, f.b.eq));
	exchange(&f, &f.a, &f.b, 100);
	exchange(&f, &f.b, &f.a, 100000);
	fx_close(&f);
}

static void test_E8_sends_before_the_other_side_reads_its_event(void)
{
	struct fx_event ev;
	struct fx_comp c;
	char in[8] = "";
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	accept_b(&f, NULL, 0);
	FX_EVENT(&f, f.b.eq, FI_CONNECTED, &f.b.ep->fid, &ev);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "early", 6, NULL, 0, NULL), 0);
	FX_WAIT_OK(&f, f.b.txcq, NULL, &c);
	FX_EVENT(&f, f.a.eq, FI_CONNECTED, &f.a.ep->fid, &ev);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, in, sizeof(in), NULL, 0, in), 0);
	FX_WAIT_OK(&f, f.a.rxcq, in, &c);
	CU_ASSERT_STRING_EQUAL(in, "early");
	fx_close(&f);
}

static void test_E8_second_connect(void)
{
	struct fx f;

	fx_open(&f, &msg);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), -FI_EOPBADSTATE);
	fx_close(&f);
}

static void test_E8_handle_is_a_passive_endpoint(void)
{
	char name[128], want[128];
	size_t len = sizeof(name), wantlen = sizeof(want);
	struct fid_pep *pep;
	struct fid_ep *again;
	struct fx f;

	fx_open_domain(&f, &msg);
	CU_ASSERT_EQUAL_FATAL(fi_passive_ep(f.fabric, f.info, &pep, NULL), 0);
	CU_ASSERT_EQUAL(fi_setname(&pep->fid, f.info->src_addr, f.info->src_addrlen), 0);
	CU_ASSERT_EQUAL(fi_getname(&pep->fid, want, &wantlen), 0);
	f.info->handle = &pep->fid;
	fx_ep_open(&f, &f.a);
	/* it has its address no more: neither to give again nor to listen on */
	CU_ASSERT_EQUAL(fi_endpoint(f.domain, f.info, &again, NULL), -FI_EOPBADSTATE);
	CU_ASSERT(fi_listen(pep) < 0);
	fx_ep_enable(&f.a);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, name, &len), 0);
	CU_ASSERT_EQUAL(len, wantlen);
	CU_ASSERT_EQUAL(memcmp(name, want, len), 0);
	f.info->handle = NULL;
	CU_ASSERT_EQUAL(fi_close(&pep->fid), 0);
	fx_close(&f);
}

static void test_E8_backlog(void)
{
	struct fx_event ev;
	struct fx_ep c = {0};
	int backlog = 1;
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fi_control(&f.pep->fid, FI_BACKLOG, &backlog), 0);
	fx_ep_open(&f, &c);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	f.b.info = ev.cm.info;
	CU_ASSERT_EQUAL(fx_connect(&f, &c, NULL, 0), 0);
	FX_EVENT_ERR(&f, c.eq, FI_ECONNREFUSED, &c.ep->fid, &ev);
	CU_ASSERT_TRUE(fx_no_event(&f, f.peq));
	fx_ep_close(&c);
	/* taken from the backlog, the next one is heard */
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_accept(f.b.ep, NULL, 0), 0);
	fx_ep_open(&f, &c);
	CU_ASSERT_EQUAL(fx_connect(&f, &c, NULL, 0), 0);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	fi_freeinfo(ev.cm.info);
	fx_ep_close(&c);
	fx_close(&f);
}

static void test_E8_listener_closes(void)
{
	struct fx_event ev;
	struct fx_ep c = {0};
	struct fi_info *stale;
	struct fid_ep *ep;
	struct fx f;

	fx_open(&f, &msg);
	fx_ep_open(&f, &c);
	CU_ASSERT_EQUAL(fx_connect(&f, &c, NULL, 0), 0);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	stale = ev.cm.info;
	CU_ASSERT_EQUAL(fi_close(&f.pep->fid), 0);
	f.pep = NULL;
	FX_EVENT_ERR(&f, c.eq, FI_ECONNREFUSED, &c.ep->fid, &ev);
	CU_ASSERT_EQUAL(fi_endpoint(f.domain, stale, &ep, NULL), -FI_EINVAL);
	fi_freeinfo(stale);
	/* what it had accepted goes on */
	exchange(&f, &f.a, &f.b, 1000);
	exchange(&f, &f.b, &f.a, 1000);
	fx_ep_close(&c);
	fx_close(&f);
}

static void test_E8_both_connect_to_each_other(void)
{
	char a[128], b[128];
	size_t alen = sizeof(a), blen = sizeof(b);
	struct fx_event ev;
	struct fx f;

	fx_open_domain(&f, &msg);
	fx_ep_open(&f, &f.a);
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_enable(f.a.ep), 0);
	CU_ASSERT_EQUAL(fi_enable(f.b.ep), 0);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, a, &alen), 0);
	CU_ASSERT_EQUAL(fi_getname(&f.b.ep->fid, b, &blen), 0);
	CU_ASSERT_EQUAL(fi_connect(f.a.ep, b, NULL, 0), 0);
	CU_ASSERT_EQUAL(fi_connect(f.b.ep, a, NULL, 0), 0);
	FX_EVENT_ERR(&f, f.a.eq, FI_ECONNREFUSED, &f.a.ep->fid, &ev);
	FX_EVENT_ERR(&f, f.b.eq, FI_ECONNREFUSED, &f.b.ep->fid, &ev);
	fx_close(&f);
}

static void test_E9_data_both_ways(void)
{
	struct fx_event ev;
	uint8_t data[300];
	size_t size = 0, len = sizeof(size);
	struct fx f;

	fx_fill(data, sizeof(data), 9);
	open_half(&f);
	CU_ASSERT_EQUAL(fi_getopt(&f.a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len),
			0);
	CU_ASSERT_EQUAL(size, 256);
	CU_ASSERT_EQUAL(fi_getopt(&f.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len),
			0);
	CU_ASSERT_EQUAL(size, 256);
	len = 4;
	CU_ASSERT_EQUAL(fi_getopt(&f.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &len),
			-FI_ETOOSMALL);
	CU_ASSERT_EQUAL(len, sizeof(size));
	CU_ASSERT_EQUAL(fi_getopt(&f.pep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size, &len),
			-FI_ENOPROTOOPT);
	CU_ASSERT_EQUAL(fi_setopt(&f.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, len),
			-FI_ENOPROTOOPT);
	CU_ASSERT_EQUAL(fi_setopt(&f.a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, len),
			-FI_ENOPROTOOPT);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, data, sizeof(data)), 0); /* longer: cut */
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	CU_ASSERT_EQUAL(ev.datalen, 256);
	CU_ASSERT_TRUE(fx_same(ev.data, 256, 9));
	f.b.info = ev.cm.info;
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_accept(f.b.ep, data, 7), 0);
	FX_EVENT(&f, f.b.eq, FI_CONNECTED, &f.b.ep->fid, &ev);
	CU_ASSERT_EQUAL(ev.datalen, 0);
	FX_EVENT(&f, f.a.eq, FI_CONNECTED, &f.a.ep->fid, &ev);
	CU_ASSERT_EQUAL(ev.datalen, 7);
	CU_ASSERT_TRUE(fx_same(ev.data, 7, 9));
	fx_close(&f);
}

static void test_E9_reject_with_data(void)
{
	struct fx_event ev;
	struct fi_info *info;
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	info = ev.cm.info;
	CU_ASSERT_EQUAL(fi_reject(f.pep, info->handle, "no", 3), 0);
	CU_ASSERT_EQUAL(fi_reject(f.pep, info->handle, "no", 3), -FI_EINVAL);
	fi_freeinfo(info);
	FX_EVENT_ERR(&f, f.a.eq, FI_ECONNREFUSED, &f.a.ep->fid, &ev);
	CU_ASSERT_EQUAL(ev.err.err_data_size, 3);
	CU_ASSERT_STRING_EQUAL(ev.err_data, "no");
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "x", 1, NULL, 0, NULL), -FI_ENOTCONN);
	fx_close(&f);
}

/* Longer than the option says: cut, wherever it comes from. */
static void test_E9_long_data_is_cut(void)
{
	struct fx_event ev;
	uint8_t data[300];
	struct fx_ep c = {0};
	struct fx f;

	fx_fill(data, sizeof(data), 3);
	open_half(&f);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	accept_b(&f, data, sizeof(data));
	FX_EVENT(&f, f.a.eq, FI_CONNECTED, &f.a.ep->fid, &ev);
	CU_ASSERT_EQUAL(ev.datalen, 256);
	CU_ASSERT_TRUE(fx_same(ev.data, 256, 3));
	fx_ep_open(&f, &c);
	CU_ASSERT_EQUAL(fx_connect(&f, &c, NULL, 0), 0);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	CU_ASSERT_EQUAL(ev.datalen, 0);
	CU_ASSERT_EQUAL(fi_reject(f.pep, ev.cm.info->handle, data, sizeof(data)), 0);
	fi_freeinfo(ev.cm.info);
	FX_EVENT_ERR(&f, c.eq, FI_ECONNREFUSED, &c.ep->fid, &ev);
	CU_ASSERT_EQUAL(ev.err.err_data_size, 256);
	CU_ASSERT_TRUE(fx_same(ev.err_data, 256, 3));
	fx_ep_close(&c);
	fx_close(&f);
}

static void test_E9_nobody_listens(void)
{
	struct fx_event ev;
	char name[128];
	size_t len = sizeof(name);
	double start;
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fi_getname(&f.pep->fid, name, &len), 0);
	CU_ASSERT_EQUAL(fi_close(&f.pep->fid), 0);
	f.pep = NULL;
	start = fx_now_ms();
	CU_ASSERT_EQUAL(fi_connect(f.a.ep, name, NULL, 0), 0);
	FX_EVENT_ERR(&f, f.a.eq, FI_ECONNREFUSED, &f.a.ep->fid, &ev);
	CU_ASSERT_TRUE(fx_now_ms() - start < fx_dead_ms()); /* told, not timed out */
	fx_close(&f);
}

static void test_E9_no_answer(void)
{
	struct fx_event ev;
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
	fi_freeinfo(ev.cm.info);
	FX_EVENT_ERR(&f, f.a.eq, FI_ETIMEDOUT, &f.a.ep->fid, &ev); /* never accepted */
	fx_close(&f);
}

static void test_A11_before_the_connection(void)
{
	struct fx_event ev;
	struct fx_comp c;
	char in[8] = "";
	struct fx f;

	open_half(&f);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, in, sizeof(in), NULL, 0, in), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "x", 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_enable(f.a.ep), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, "x", 1, NULL, 0, NULL), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, "x", 1, 0), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, in, sizeof(in), NULL, 0, in), 0);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	accept_b(&f, NULL, 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, "first", 6, NULL, 0, NULL), 0);
	FX_WAIT_OK(&f, f.a.rxcq, in, &c);
	CU_ASSERT_STRING_EQUAL(in, "first");
	FX_EVENT(&f, f.a.eq, FI_CONNECTED, &f.a.ep->fid, &ev);
	fx_close(&f);
}

static void test_D9_queues_that_are_needed(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_fabric *fabric;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_eq *eq, *other;
	struct fx f;

	fx_open_domain(&f, &msg);
	eq = fx_eq_open(&f);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f.domain, &cq_attr, &cq, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_av_open(f.domain, &av_attr, &av, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &ep, NULL), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_ENOEQ);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &eq->fid, FI_RECV), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(f.info->fabric_attr, &fabric, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(fabric, &eq_attr, &other, NULL), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &other->fid, 0), -FI_EDOMAIN);
	CU_ASSERT_EQUAL(fi_close(&other->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&fabric->fid), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &eq->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &eq->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_ENOCQ);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_RECV), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_enable(ep), 0);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	/* the domain's is the default */
	CU_ASSERT_EQUAL(fi_domain_bind(f.domain, &eq->fid, 0), 0);
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &ep, NULL), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), 0);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.fabric->fid), 0);
	fi_freeinfo(f.info);
}

static void test_F7_names(void)
{
	char pep[128], a[128], b[128], peer[128];
	size_t peplen = sizeof(pep), alen = sizeof(a), blen = sizeof(b), n;
	struct fid_pep *other;
	struct fx f;

	open_half(&f);
	n = sizeof(peer);
	CU_ASSERT_EQUAL(fi_getpeer(f.a.ep, peer, &n), -FI_ENOTCONN);
	fx_close(&f);

	fx_open(&f, &msg);
	CU_ASSERT_EQUAL(fi_getname(&f.pep->fid, pep, &peplen), 0);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, a, &alen), 0);
	CU_ASSERT_EQUAL(fi_getname(&f.b.ep->fid, b, &blen), 0);
	CU_ASSERT_EQUAL(memcmp(pep, b, blen), 0); /* as an accepted socket */
	n = sizeof(peer);
	CU_ASSERT_EQUAL(fi_getpeer(f.a.ep, peer, &n), 0);
	CU_ASSERT_TRUE(n == peplen && memcmp(peer, pep, n) == 0);
	n = sizeof(peer);
	CU_ASSERT_EQUAL(fi_getpeer(f.b.ep, peer, &n), 0);
	CU_ASSERT_TRUE(n == alen && memcmp(peer, a, n) == 0);
	n = 0;
	CU_ASSERT_EQUAL(fi_getpeer(f.b.ep, peer, &n), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(n, alen);
	/* the listener's address is taken, and after it listens it keeps it */
	CU_ASSERT_EQUAL_FATAL(fi_passive_ep(f.fabric, f.info, &other, NULL), 0);
	CU_ASSERT_EQUAL(fi_setname(&other->fid, pep, peplen), -FI_EADDRINUSE);
	CU_ASSERT_EQUAL(fi_setname(&f.pep->fid, a, alen), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_close(&other->fid), 0);
	CU_ASSERT_EQUAL(fi_shutdown(f.a.ep, 0), 0);
	n = sizeof(peer);
	CU_ASSERT_EQUAL(fi_getpeer(f.a.ep, peer, &n), -FI_ENOTCONN);
	fx_close(&f);
}

static void test_A17_one_direction(void)
{
	struct fx_opt opt = {.msg = true, .caps = FI_MSG | FI_SEND};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_eq *eq;
	char in[4];
	struct fx f;

	fx_open_domain(&f, &opt);
	eq = fx_eq_open(&f);
	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f.domain, &cq_attr, &cq, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f.domain, f.info, &ep, NULL), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &eq->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), 0);
	CU_ASSERT_EQUAL(fi_recv(ep, in, sizeof(in), NULL, 0, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	fx_close_domain(&f);
}

/* Many connections at once, each used after all stand quiet; what a pass looks at has to find them
 * again. */
static void test_E8_many(void)
{
	enum { N = 200 };
	static struct fx_ep c[N], s[N];
	struct fx_event ev;
	struct fx_comp comp;
	struct fx f;

	fx_open_domain(&f, &msg);
	fx_listen(&f);
	for (int i = 0; i < N; i++) {
		fx_ep_open(&f, &c[i]);
		CU_ASSERT_EQUAL_FATAL(fx_connect(&f, &c[i], &i, sizeof(i)), 0);
	}
	for (int n = 0; n < N; n++) {
		int i = -1;

		FX_EVENT(&f, f.peq, FI_CONNREQ, &f.pep->fid, &ev);
		memcpy(&i, ev.data, sizeof(i));
		CU_ASSERT_FATAL(i >= 0 && i < N && !s[i].ep);
		s[i].info = ev.cm.info;
		fx_ep_open(&f, &s[i]);
		CU_ASSERT_EQUAL(fi_accept(s[i].ep, NULL, 0), 0);
	}
	for (int i = 0; i < N; i++) {
		FX_EVENT(&f, c[i].eq, FI_CONNECTED, &c[i].ep->fid, &ev);
		FX_EVENT(&f, s[i].eq, FI_CONNECTED, &s[i].ep->fid, &ev);
	}
	for (int round = 0; round < 2; round++) {
		double end = fx_now_ms() + 100;

		while (fx_now_ms() < end) /* all fall quiet */
			fi_cq_read(c[0].txcq, NULL, 0);
		for (int i = 0; i < N; i++) {
			int in = -1;

			CU_ASSERT_EQUAL(fi_recv(s[i].ep, &in, sizeof(in), NULL, 0, &in), 0);
			CU_ASSERT_EQUAL(fi_send(c[i].ep, &i, sizeof(i), NULL, 0, &i), 0);
			FX_WAIT_OK(&f, s[i].rxcq, &in, &comp);
			FX_WAIT_OK(&f, c[i].txcq, &i, &comp);
			CU_ASSERT_EQUAL(in, i);
		}
	}
	for (int i = 0; i < N; i++) {
		fx_ep_close(&c[i]);
		FX_EVENT(&f, s[i].eq, FI_SHUTDOWN, &s[i].ep->fid, &ev);
		fx_ep_close(&s[i]);
	}
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_E8_connect_accept),
	FX_TEST(test_E8_sends_before_the_other_side_reads_its_event),
	FX_TEST(test_E8_second_connect),
	FX_TEST(test_E8_handle_is_a_passive_endpoint),
	FX_TEST(test_E8_backlog),
	FX_TEST(test_E8_listener_closes),
	FX_TEST(test_E8_both_connect_to_each_other),
	FX_TEST(test_E9_data_both_ways),
	FX_TEST(test_E9_reject_with_data),
	FX_TEST(test_E9_long_data_is_cut),
	FX_TEST(test_E9_nobody_listens),
	FX_TEST(test_E9_no_answer),
	FX_TEST(test_A11_before_the_connection),
	FX_TEST(test_A17_one_direction),
	FX_TEST(test_D9_queues_that_are_needed),
	FX_TEST(test_F7_names),
	FX_TEST(test_E8_many),
};

FX_MAIN("connections")
