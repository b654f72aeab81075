/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Every combination of flags against the oracle (matrix.h): what each call returns, the entries of
 * both sides one by one, their order, the counters, and the bytes. Rows A2 to A9, B1 to B9, B12,
 * C1, C3, D1, D8. FX_ONLY=NUMBER or FIRST-LAST runs those combinations alone.
 */
#include "matrix.h"

#include <inttypes.h>

enum { TX_SLOTS = 48, RX_SLOTS = 128, BYTES = 70000 + 256, GUARD = 32 };

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP 23 /* a sanitizer costs a factor; another share of them for each pair */
#else
#define SKIP 1
#endif

/* One pair of endpoints and what is expected of it. */
struct pair {
	struct fx f;
	struct mx_oracle o;
	char *tx, *rx; /* TX_SLOTS and RX_SLOTS buffers */
	bool used[RX_SLOTS];
	unsigned int next_entry;
	uint64_t tx_default, rx_default;
	unsigned int sent, posted; /* the combinations that are looked at */
	const char *wrong;	   /* the first thing that was not as expected */
};

static char *tx_slot(struct pair *p)
{
	return p->tx + (size_t)p->o.nsent * BYTES;
}

static char *rx_slot(struct pair *p)
{
	for (unsigned int i = 0; i < RX_SLOTS; i++)
		if (!p->used[i]) {
			p->used[i] = true;
			return p->rx + (size_t)i * BYTES;
		}
	p->wrong = "more buffers posted than there are";
	return p->rx;
}

static void rx_slot_free(struct pair *p, const char *buf)
{
	p->used[(size_t)(buf - p->rx) / BYTES] = false;
}

static void expect(struct pair *p, bool holds, const char *what)
{
	struct mx_combo c;

	if (holds || p->wrong)
		return;
	p->wrong = what;
	c = mx_combo(p->sent);
	mx_print(&c);
	c = mx_combo(p->posted);
	if (p->sent != p->posted)
		mx_print(&c);
	printf("      %s\n", what);
}

static void set_defaults(struct pair *p, const struct mx_combo *c)
{
	uint64_t tx = FI_TRANSMIT | c->tx_default, rx = FI_RECV | c->rx_default;

	if (p->tx_default != tx)
		expect(p, fi_control(&p->f.a.ep->fid, FI_SETOPSFLAG, &tx) == 0, "tx SETOPSFLAG");
	if (p->rx_default != rx)
		expect(p, fi_control(&p->f.b.ep->fid, FI_SETOPSFLAG, &rx) == 0, "rx SETOPSFLAG");
	p->tx_default = tx;
	p->rx_default = rx;
}

/* ---- the nine calls ---- */

/* @p pieces of 1 to 3, one of them empty. */
static void cut(struct iovec *iov, char *buf, size_t len, unsigned int pieces)
{
	size_t first = pieces == 1 ? len : len / 3;

	iov[0] = (struct iovec){buf, first};
	iov[1] = (struct iovec){buf + first, pieces == 2 ? len - first : 0};
	iov[2] = (struct iovec){buf + first, len - first};
}

static ssize_t call_send(struct pair *p, const struct mx_combo *c, char *buf, uint64_t data)
{
	struct fid_ep *ep = p->f.a.ep;
	fi_addr_t to = p->f.a.b;
	struct iovec iov[3];
	struct fi_msg msg = {.msg_iov = iov,
			     .iov_count = c->tx_pieces,
			     .addr = to,
			     .context = buf,
			     .data = data};

	cut(iov, buf, c->len, c->tx_pieces);
	switch (c->send) {
	case MX_SEND:
		return fi_send(ep, buf, c->len, NULL, to, buf);
	case MX_SENDV:
		return fi_sendv(ep, iov, NULL, c->tx_pieces, to, buf);
	case MX_SENDDATA:
		return fi_senddata(ep, buf, c->len, NULL, data, to, buf);
	case MX_INJECT:
		return fi_inject(ep, buf, c->len, to);
	case MX_INJECTDATA:
		return fi_injectdata(ep, buf, c->len, data, to);
	default:
		return fi_sendmsg(ep, &msg, c->tx_flags);
	}
}

static ssize_t call_recv(struct pair *p, const struct mx_combo *c, char *buf)
{
	struct fid_ep *ep = p->f.b.ep;
	struct iovec iov[3];
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = c->rx_pieces, .addr = FI_ADDR_UNSPEC, .context = buf};

	cut(iov, buf, c->room, c->rx_pieces);
	switch (c->recv) {
	case MX_RECV:
		return fi_recv(ep, buf, c->room, NULL, FI_ADDR_UNSPEC, buf);
	case MX_RECVV:
		return fi_recvv(ep, iov, NULL, c->rx_pieces, FI_ADDR_UNSPEC, buf);
	default:
		return fi_recvmsg(ep, &msg, c->rx_flags);
	}
}

/* ---- entries ---- */

static bool bytes_are_there(const struct mx_entry *e)
{
	return fx_same(e->at, e->placed, e->sent);
}

static void look_at_send(struct pair *p, const struct fx_comp *c)
{
	struct mx_oracle *o = &p->o;

	for (unsigned int i = 0; i < o->nsent; i++) {
		struct mx_sent *s = &o->sent[i];

		if (!s->due || s->seen || s->context != c->e.op_context)
			continue;
		s->seen = true;
		p->sent = p->posted = s->number;
		expect(p, !c->err.err, "a send ends in an error");
		expect(p, c->e.flags == (FI_SEND | FI_MSG), "flags of a send's entry");
		expect(p, mx_in_turn(o, i), "a send's entry passes a fence");
		if (s->delivered && s->received >= 0)
			expect(p, bytes_are_there(&o->entries[s->received]),
			       "delivered, and the bytes are not there");
		return;
	}
	expect(p, false, "an entry of a send that is due none");
}

static void look_at_recv(struct pair *p, const struct fx_comp *c)
{
	struct mx_oracle *o = &p->o;
	struct mx_entry *e;

	while (p->next_entry < o->nentries && !o->entries[p->next_entry].due)
		p->next_entry++;
	if (p->next_entry == o->nentries) {
		expect(p, false, "an entry of a receive that is due none");
		return;
	}
	e = &o->entries[p->next_entry++];
	p->sent = e->sent;
	p->posted = e->posted;
	expect(p, c->err.err == e->err, "error of a receive");
	if (e->err) {
		expect(p, c->err.op_context == e->buf, "context of a cut receive");
		expect(p, c->err.flags == e->flags, "flags of a cut receive");
		expect(p, c->err.len == e->len && c->err.olen == e->olen,
		       "lengths of a cut receive");
		expect(p, !e->multi || c->err.buf == e->at, "buf of a cut receive");
		expect(p, !(e->flags & FI_REMOTE_CQ_DATA) || c->err.data == e->data,
		       "data of a cut receive");
	} else {
		expect(p, c->e.op_context == e->buf, "order of receives");
		expect(p, c->e.flags == e->flags, "flags of a receive");
		expect(p, c->e.len == e->len, "length of a receive");
		expect(p, !e->multi || c->e.buf == e->at, "buf of a receive");
		expect(p, !(e->flags & FI_REMOTE_CQ_DATA) || c->e.data == e->data,
		       "data of a receive");
	}
	expect(p, bytes_are_there(e), "an entry before its bytes");
}

static bool settled(struct pair *p)
{
	struct mx_oracle *o = &p->o;

	for (unsigned int i = 0; i < o->nsent; i++)
		if (o->sent[i].due && !o->sent[i].seen)
			return false;
	for (unsigned int i = p->next_entry; i < o->nentries; i++)
		if (o->entries[i].due)
			return false;
	return fi_cntr_read(p->f.a.txcntr) >= o->tx_ok && fi_cntr_read(p->f.b.rxcntr) >= o->rx_ok &&
	       fi_cntr_readerr(p->f.b.rxcntr) >= o->rx_err;
}

static bool read_entries(struct pair *p)
{
	struct fx_comp c;
	int tx, rx;

	while ((tx = fx_take(p->f.a.txcq, &c)) == 1)
		look_at_send(p, &c);
	while ((rx = fx_take(p->f.b.rxcq, &c)) == 1)
		look_at_recv(p, &c);
	expect(p, tx == 0 && rx == 0, "fi_cq_read");
	return !p->wrong;
}

/* The buffer of a receive that is over: its bytes, and not one behind them. */
static void look_at_buffers(struct pair *p)
{
	static const char guard[GUARD] = {0};

	for (unsigned int i = 0; i < p->o.nentries; i++) {
		struct mx_entry *e = &p->o.entries[i];

		p->sent = e->sent;
		p->posted = e->posted;
		expect(p, bytes_are_there(e), "the bytes of a receive");
		if (e->multi && !(e->flags & FI_MULTI_RECV))
			continue;
		expect(p, memcmp(e->at + e->placed, guard, GUARD) == 0, "bytes behind a message");
	}
	for (unsigned int i = 0; i < p->o.nentries; i++) {
		struct mx_entry *e = &p->o.entries[i];

		memset(e->at, 0, e->placed);
		if (!e->multi || (e->flags & FI_MULTI_RECV))
			rx_slot_free(p, e->buf);
	}
}

/* Wait until all that was accepted is over, and see that nothing else came. */
static void settle(struct pair *p)
{
	double end = fx_now_ms() + FX_MS;
	struct mx_oracle *o = &p->o;

	while (!p->wrong && read_entries(p) && !settled(p))
		expect(p, fx_now_ms() < end, "an entry or a count is missing");
	if (p->wrong || !read_entries(p))
		return;
	expect(p,
	       fi_cntr_read(p->f.a.txcntr) == o->tx_ok && fi_cntr_read(p->f.b.rxcntr) == o->rx_ok &&
		       fi_cntr_readerr(p->f.b.rxcntr) == o->rx_err &&
		       fi_cntr_readerr(p->f.a.txcntr) == 0,
	       "a counter");
	look_at_buffers(p);
	mx_forget(o);
	p->next_entry = 0;
}

/* ---- one combination ---- */

static void do_recv(struct pair *p, const struct mx_combo *c)
{
	char *buf = rx_slot(p);
	ssize_t rc = FX_RETRY(&p->f, call_recv(p, c, buf)), want = mx_expect_recv(&p->o, c, buf);

	expect(p, rc == want, "value of the receiving call");
	if (rc)
		rx_slot_free(p, buf);
}

static void do_send(struct pair *p, const struct mx_combo *c)
{
	char *buf = tx_slot(p);
	uint64_t data = 0x1234567800000000ull | c->number;
	ssize_t rc, want;

	fx_fill(buf, c->len, c->number);
	rc = FX_RETRY(&p->f, call_send(p, c, buf, data));
	want = mx_expect_send(&p->o, c, buf, data);
	expect(p, rc == want, "value of the sending call");
	/* injected: ours again */
	if (c->send == MX_INJECT || c->send == MX_INJECTDATA ||
	    ((c->send == MX_SENDMSG ? c->tx_flags : c->tx_default) & FI_INJECT))
		memset(buf, 0xee, c->len);
}

/* What stands in the queues of both sides goes by plain calls: the buffers that are posted (all but
 * @p posted of them), and the messages that came too early. */
static void finish(struct pair *p, unsigned int posted)
{
	struct mx_combo c = {
		.send = MX_SENDMSG, .recv = MX_RECVMSG, .tx_pieces = 1, .rx_pieces = 1};

	do {
		while (p->o.nposted > posted && p->o.nsent < TX_SLOTS && !p->wrong) {
			/* exactly what is left of it */
			c.len = p->o.posted[0].room - p->o.posted[0].used;
			do_send(p, &c);
		}
		while (p->o.nmatched < p->o.nsent && !p->wrong) {
			c.room = p->o.sent[p->o.nmatched].len;
			do_recv(p, &c);
		}
		settle(p);
	} while (p->o.nposted > posted && !p->wrong);
}

static void run_combo(struct pair *p, const struct mx_combo *c)
{
	p->sent = p->posted = c->number;
	set_defaults(p, c);
	if (c->send_first) {
		do_send(p, c);
		do_recv(p, c);
	} else {
		do_recv(p, c);
		do_send(p, c);
	}
	if (p->o.nsent == TX_SLOTS || p->o.nposted == RX_SLOTS / 2)
		finish(p, RX_SLOTS / 4);
}

static void open_pair(struct pair *p, unsigned int which)
{
	struct fx_opt opt = {.msg = which & 4,
			     .counters = true,
			     .inject_size = MX_INJECT_SIZE,
			     .format = FI_CQ_FORMAT_TAGGED,
			     .tx_bind = which & 1 ? FI_SELECTIVE_COMPLETION : 0,
			     .rx_bind = which & 2 ? FI_SELECTIVE_COMPLETION : 0};
	size_t min = MX_MIN_MULTI;

	memset(p, 0, sizeof(*p));
	fx_open(&p->f, &opt);
	CU_ASSERT_EQUAL_FATAL(p->f.info->tx_attr->inject_size, MX_INJECT_SIZE);
	CU_ASSERT_EQUAL_FATAL(fi_setopt(&p->f.b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
					&min, sizeof(min)),
			      0);
	p->o.tx_selective = opt.tx_bind;
	p->o.rx_selective = opt.rx_bind;
	p->o.msg = opt.msg;
	p->o.inject_size = MX_INJECT_SIZE;
	p->tx = malloc((size_t)TX_SLOTS * BYTES);
	p->rx = calloc(RX_SLOTS, BYTES);
}

static void run_pair(unsigned int which, unsigned int first, unsigned int last)
{
	unsigned int n = first + (which + MX_PAIRS - first % MX_PAIRS) % MX_PAIRS;
	struct mx_combo c;
	struct pair p;

	if (n > last)
		return;
	open_pair(&p, which);
	for (; n <= last && !p.wrong; n += MX_PAIRS * (last - first > 10000 ? SKIP : 1)) {
		c = mx_combo(n);
		run_combo(&p, &c);
	}
	finish(&p, 0);
	CU_ASSERT_PTR_NULL(p.wrong);
	fx_close(&p.f);
	free(p.tx);
	free(p.rx);
}

static void run_pairs(unsigned int from)
{
	const char *only = getenv("FX_ONLY");
	unsigned int first = 0, last = mx_count() - 1;

	if (only && sscanf(only, "%u-%u", &first, &last) == 1)
		last = first;
	for (unsigned int which = from; which < from + MX_PAIRS / 2; which++)
		run_pair(which, first, last);
}

static void test_B2_flag_matrix_rdm(void)
{
	run_pairs(0);
}

static void test_B2_flag_matrix_msg(void)
{
	run_pairs(4);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B2_flag_matrix_rdm),
	FX_TEST(test_B2_flag_matrix_msg),
};
FX_MAIN("matrix of flags")
