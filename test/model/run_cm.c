/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections of a program: a listener for each pair, and what its two endpoints are told.
 */
#include "run_private.h"

#include <string.h>

enum { CM_MAX = 64 };

/* What goes with a request, an accept or a reject. */
struct words {
	size_t len;
	uint8_t bytes[CM_MAX];
};

/* An event as it was read. */
struct event {
	uint32_t event; /* 0: none */
	int err;	/* positive errno, or 0 */
	struct fid *fid;
	struct fi_info *info;
	struct words words;
};

static struct words words_of(const struct run *r, unsigned int what)
{
	struct words w;
	uint64_t id = model_mix(r->p->seed ^ (uint64_t)r->m.now << 8 ^ what);

	w.len = id % (CM_MAX + 1);
	model_bytes(id, w.bytes, w.len);
	return w;
}

static bool same(const struct words *a, const struct words *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static struct event take(struct run *r, struct fid_eq *eq)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + CM_MAX];
	} buf;
	struct fi_eq_err_entry err = {.err_data_size = CM_MAX};
	struct event e = {0};
	ssize_t rc = fi_eq_read(eq, &e.event, &buf, sizeof(buf), 0);

	if (rc >= (ssize_t)sizeof(buf.cm)) {
		e.fid = buf.cm.fid;
		e.info = buf.cm.info;
		e.words.len = (size_t)rc - sizeof(buf.cm);
		memcpy(e.words.bytes, buf.bytes + sizeof(buf.cm), e.words.len);
		return e;
	}
	e.event = 0;
	if (rc == -FI_EAGAIN)
		return e;
	err.err_data = e.words.bytes;
	if (rc != -FI_EAVAIL || fi_eq_readerr(eq, &err, 0) < 0 || err.err_data_size > CM_MAX) {
		model_fail(&r->m, "reading an event queue: %zd", rc);
		return e;
	}
	e.err = err.err;
	e.fid = err.fid;
	e.words.len = err.err_data_size;
	return e;
}

static struct event await(struct run *r, struct fid_eq *eq, const char *what)
{
	struct event e = take(r, eq);

	while (!e.event && !e.err && !failed(r)) {
		run_poll(r);
		e = take(r, eq);
		if (!e.event && !e.err)
			run_late(r, what);
	}
	return e;
}

void run_listen(struct run *r)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};

	for (unsigned int i = 0; i < r->p->neps / 2 && !failed(r); i++) {
		struct listener *l = &r->listener[i];
		struct fi_info *info = run_info(r, 2 * i);

		l->namelen = sizeof(l->name);
		MUST(r, fi_eq_open(r->env->msg.fabric, &attr, &l->eq, NULL));
		MUST(r, fi_passive_ep(r->env->msg.fabric, info, &l->pep, NULL));
		fi_freeinfo(info);
		if (failed(r))
			return;
		MUST(r, fi_pep_bind(l->pep, &l->eq->fid, 0));
		MUST(r, fi_listen(l->pep));
		MUST(r, fi_getname(&l->pep->fid, l->name, &l->namelen));
	}
}

void run_unlisten(struct run *r)
{
	for (unsigned int i = 0; i < MAX_EPS / 2; i++) {
		if (r->listener[i].pep)
			MUST(r, fi_close(&r->listener[i].pep->fid));
		if (r->listener[i].eq)
			MUST(r, fi_close(&r->listener[i].eq->fid));
	}
}

static void rejected(struct run *r, int n, struct listener *l, const struct event *request)
{
	struct words no = words_of(r, 1);
	struct event e;

	MUST(r, fi_reject(l->pep, request->info->handle, no.bytes, no.len));
	e = await(r, r->life[n].eq, "a request is rejected");
	if (!failed(r) && (e.err != FI_ECONNREFUSED || !same(&e.words, &no)))
		model_fail(&r->m, "life %d: rejected with event %u, error %d, %zu bytes", n,
			   e.event, e.err, e.words.len);
	run_close_ep(r, n);
}

static void told_connected(struct run *r, int n, const struct words *words)
{
	struct event e = await(r, r->life[n].eq, "a connection is made");

	if (!failed(r) &&
	    (e.event != FI_CONNECTED || e.fid != &r->life[n].ep->fid || !same(&e.words, words)))
		model_fail(&r->m, "life %d: connected with event %u, error %d, %zu bytes", n,
			   e.event, e.err, e.words.len);
}

static void accepted(struct run *r, int n, unsigned int slot, const struct event *request)
{
	struct words yes = words_of(r, 2), none = {0};
	int mate = run_open_ep(r, slot ^ 1, request->info);

	if (failed(r))
		return;
	MUST(r, fi_enable(r->life[mate].ep));
	MUST(r, fi_accept(r->life[mate].ep, yes.bytes, yes.len));
	told_connected(r, mate, &none);
	if (!failed(r))
		told_connected(r, n, &yes);
	model_connected(&r->m, n, mate);
}

void run_connect(struct run *r, unsigned int slot, bool reject)
{
	struct listener *l = &r->listener[slot / 2];
	struct fi_info *info = run_info(r, slot);
	struct words hello = words_of(r, 0);
	struct event request;
	int n = run_open_ep(r, slot, info);

	fi_freeinfo(info);
	if (failed(r))
		return;
	MUST(r, fi_enable(r->life[n].ep));
	MUST(r, fi_connect(r->life[n].ep, l->name, hello.bytes, hello.len));
	if (failed(r))
		return;
	request = await(r, l->eq, "a request arrives");
	if (failed(r))
		return;
	if (request.event != FI_CONNREQ || request.fid != &l->pep->fid ||
	    !same(&request.words, &hello)) {
		model_fail(&r->m, "a request came as event %u, error %d, %zu bytes", request.event,
			   request.err, request.words.len);
		return;
	}
	if (reject)
		rejected(r, n, l, &request);
	else
		accepted(r, n, slot, &request);
	fi_freeinfo(request.info);
}

void run_shutdown(struct run *r, int n)
{
	if (r->m.life[n].own_end != NEVER)
		return;
	MUST(r, fi_shutdown(r->life[n].ep, 0));
	model_ended(&r->m, n);
}

void run_events(struct run *r, int n)
{
	struct event e;

	if (!r->life[n].eq || !r->life[n].ep || r->m.life[n].mate == NOBODY)
		return;
	for (e = take(r, r->life[n].eq); (e.event || e.err) && !failed(r);
	     e = take(r, r->life[n].eq)) {
		if (e.event != FI_SHUTDOWN || e.fid != &r->life[n].ep->fid)
			model_fail(&r->m, "life %d: event %u, error %d", n, e.event, e.err);
		else
			model_told(&r->m, n);
	}
}
