/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The fixture's connections: a listener, a pair of FI_EP_MSG endpoints, and events with a deadline.
 */
#include "fx.h"

struct fid_eq *fx_eq_open(struct fx *f)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_eq *eq;

	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f->fabric, &attr, &eq, NULL), 0);
	return eq;
}

void fx_listen(struct fx *f)
{
	f->peq = fx_eq_open(f);
	CU_ASSERT_EQUAL_FATAL(fi_passive_ep(f->fabric, f->info, &f->pep, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_pep_bind(f->pep, &f->peq->fid, 0), 0);
	CU_ASSERT_EQUAL_FATAL(fi_listen(f->pep), 0);
}

int fx_connect(struct fx *f, struct fx_ep *e, const void *data, size_t len)
{
	char name[128];
	size_t namelen = sizeof(name);

	CU_ASSERT_EQUAL_FATAL(fi_getname(&f->pep->fid, name, &namelen), 0);
	return fi_connect(e->ep, name, data, len);
}

/* @return 1 an event, 0 none, -1 something that must not happen */
static int take(struct fid_eq *eq, struct fx_event *out)
{
	memset(out, 0, sizeof(*out));
	out->len = fi_eq_read(eq, &out->event, out->bytes, sizeof(out->bytes), 0);
	if (out->len == -FI_EAGAIN)
		return 0;
	if (out->len >= (ssize_t)sizeof(out->cm)) {
		out->data = out->bytes + sizeof(out->cm);
		out->datalen = (size_t)out->len - sizeof(out->cm);
		return 1;
	}
	if (out->len != -FI_EAVAIL)
		return -1;
	out->err.err_data = out->err_data;
	out->err.err_data_size = sizeof(out->err_data);
	return fi_eq_readerr(eq, &out->err, 0) > 0 ? 1 : -1;
}

bool fx_event(struct fx *f, struct fid_eq *eq, struct fx_event *out)
{
	double end = fx_now_ms() + FX_MS;
	int got;

	while ((got = take(eq, out)) == 0 && fx_now_ms() < end)
		fx_progress(f);
	return got == 1;
}

bool fx_no_event(struct fx *f, struct fid_eq *eq)
{
	double end = fx_now_ms() + 30;
	struct fx_event ev;

	while (fx_now_ms() < end) {
		fx_progress(f);
		if (take(eq, &ev) != 0)
			return false;
	}
	return true;
}

void fx_msg_meet(struct fx *f)
{
	struct fx_event ev;

	fx_ep_open(f, &f->a);
	CU_ASSERT_EQUAL_FATAL(fx_connect(f, &f->a, NULL, 0), 0);
	CU_ASSERT_FATAL(fx_event(f, f->peq, &ev));
	CU_ASSERT_EQUAL_FATAL(ev.event, FI_CONNREQ);
	f->b.info = ev.cm.info;
	fx_ep_open(f, &f->b);
	CU_ASSERT_EQUAL_FATAL(fi_accept(f->b.ep, NULL, 0), 0);
	CU_ASSERT_FATAL(fx_event(f, f->b.eq, &ev));
	CU_ASSERT_EQUAL_FATAL(ev.event, FI_CONNECTED);
	CU_ASSERT_FATAL(fx_event(f, f->a.eq, &ev));
	CU_ASSERT_EQUAL_FATAL(ev.event, FI_CONNECTED);
	f->a.a = f->a.b = f->b.a = f->b.b = 0xdeadbeefdeadbeef;
}
