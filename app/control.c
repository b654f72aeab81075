/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "control.h"

#include <endian.h>
#include <string.h>

/* Encoder and the one bounds-checked decoder of control messages. No state. */

#define MAGIC 0x706d6670u /* "pmfp" */
#define VERSION 2u

struct cursor {
	uint8_t *put;
	const uint8_t *get;
	size_t left;
	int bad;
};

static void put_bytes(struct cursor *c, const void *bytes, size_t len)
{
	memcpy(c->put, bytes, len);
	c->put += len;
}

static void put32(struct cursor *c, uint32_t v)
{
	v = htobe32(v);
	put_bytes(c, &v, sizeof(v));
}

static void put64(struct cursor *c, uint64_t v)
{
	v = htobe64(v);
	put_bytes(c, &v, sizeof(v));
}

static void get_bytes(struct cursor *c, void *bytes, size_t len)
{
	if (len > c->left) {
		c->bad = 1;
		memset(bytes, 0, len);
		return;
	}
	memcpy(bytes, c->get, len);
	c->get += len;
	c->left -= len;
}

static uint32_t get32(struct cursor *c)
{
	uint32_t v;

	get_bytes(c, &v, sizeof(v));
	return be32toh(v);
}

static uint64_t get64(struct cursor *c)
{
	uint64_t v;

	get_bytes(c, &v, sizeof(v));
	return be64toh(v);
}

static void put_name(struct cursor *c, const struct perf_name *name)
{
	put32(c, name->len);
	put_bytes(c, name->bytes, name->len);
}

static void get_name(struct cursor *c, struct perf_name *name)
{
	uint32_t len = get32(c);

	memset(name, 0, sizeof(*name));
	if (len == 0 || len > sizeof(name->bytes)) {
		c->bad = 1;
		return;
	}
	name->len = (uint16_t)len;
	get_bytes(c, name->bytes, len);
}

static uint32_t get_endpoints(struct cursor *c)
{
	uint32_t n = get32(c);

	if (n == 0 || n > PERF_ENDPOINTS_MAX)
		c->bad = 1;
	return n;
}

static void put_work(struct cursor *c, const struct perf_work *w)
{
	put32(c, w->mode);
	put32(c, w->direction);
	put64(c, w->size);
	put32(c, w->window);
	put32(c, w->more);
	put32(c, w->inject);
	put32(c, w->verify);
	put32(c, w->cq_data);
	put64(c, w->count);
	put64(c, w->duration_ns);
	put64(c, w->warmup);
	put64(c, w->walk);
	put64(c, w->mix);
}

static void get_work(struct cursor *c, struct perf_work *w)
{
	w->mode = get32(c);
	w->direction = get32(c);
	w->size = get64(c);
	w->window = get32(c);
	w->more = get32(c);
	w->inject = get32(c);
	w->verify = get32(c);
	w->cq_data = get32(c);
	w->count = get64(c);
	w->duration_ns = get64(c);
	w->warmup = get64(c);
	w->walk = get64(c);
	w->mix = get64(c);
	if (w->mode >= PERF_MODES || w->direction < PERF_TX || w->direction > PERF_BOTH ||
	    w->inject > PERF_OFF || w->window == 0 || w->window > 4096 || w->more == 0 ||
	    w->more > w->window || w->size > UINT64_C(1) << 30 || w->walk > UINT64_C(1) << 34)
		c->bad = 1;
}

static void put_received(struct cursor *c, const struct perf_received *r)
{
	put64(c, r->messages);
	put64(c, r->ns);
}

static void get_received(struct cursor *c, struct perf_received *r)
{
	r->messages = get64(c);
	r->ns = get64(c);
}

static void put_body(struct cursor *c, const struct perf_control *m)
{
	switch (m->type) {
	case PERF_HELLO:
		put32(c, m->u.hello.own_place);
		put_name(c, &m->u.hello.name);
		break;
	case PERF_WELCOME:
		put32(c, m->u.welcome.own_place);
		put32(c, m->u.welcome.clients);
		put32(c, m->u.welcome.endpoints);
		put64(c, m->u.welcome.max_size);
		put64(c, m->u.welcome.timeout_ns);
		break;
	case PERF_RUN:
		put_work(c, &m->u.run_work.work);
		put32(c, m->u.run_work.endpoints);
		put_name(c, &m->u.run_work.name);
		break;
	case PERF_READY:
	case PERF_NAME:
		put_name(c, &m->u.name);
		break;
	case PERF_DONE:
		put64(c, m->u.done);
		break;
	case PERF_RESULT:
		put_received(c, &m->u.result.yours);
		put_received(c, &m->u.result.all);
		break;
	case PERF_ABORT:
		put_bytes(c, m->u.reason, strnlen(m->u.reason, PERF_REASON_MAX - 1));
		break;
	case PERF_STOP:
	case PERF_KEEP:
	case PERF_BYE:
		break;
	}
}

static void get_body(struct cursor *c, struct perf_control *m)
{
	switch (m->type) {
	case PERF_HELLO:
		m->u.hello.own_place = get32(c);
		get_name(c, &m->u.hello.name);
		break;
	case PERF_WELCOME:
		m->u.welcome.own_place = get32(c);
		m->u.welcome.clients = get32(c);
		m->u.welcome.endpoints = get_endpoints(c);
		m->u.welcome.max_size = get64(c);
		m->u.welcome.timeout_ns = get64(c);
		break;
	case PERF_RUN:
		get_work(c, &m->u.run_work.work);
		m->u.run_work.endpoints = get_endpoints(c);
		get_name(c, &m->u.run_work.name);
		break;
	case PERF_READY:
	case PERF_NAME:
		get_name(c, &m->u.name);
		break;
	case PERF_DONE:
		m->u.done = get64(c);
		break;
	case PERF_RESULT:
		get_received(c, &m->u.result.yours);
		get_received(c, &m->u.result.all);
		break;
	case PERF_ABORT:
		if (c->left > PERF_REASON_MAX - 1)
			c->left = PERF_REASON_MAX - 1;
		memset(m->u.reason, 0, PERF_REASON_MAX);
		get_bytes(c, m->u.reason, c->left);
		break;
	case PERF_STOP:
	case PERF_KEEP:
	case PERF_BYE:
		break;
	default:
		c->bad = 1;
	}
}

size_t perf_control_put(const struct perf_control *m, uint8_t *buf)
{
	struct cursor c = {.put = buf};

	put32(&c, MAGIC);
	put32(&c, VERSION << 16 | m->type);
	put64(&c, m->nonce);
	put32(&c, m->place);
	put32(&c, m->run);
	put_body(&c, m);
	return (size_t)(c.put - buf);
}

int perf_control_get(struct perf_control *m, const uint8_t *buf, size_t len)
{
	struct cursor c = {.get = buf, .left = len};
	uint32_t word;

	if (get32(&c) != MAGIC)
		return -1;
	word = get32(&c);
	if (word >> 16 != VERSION)
		return -1;
	m->type = word & 0xffff;
	m->nonce = get64(&c);
	m->place = get32(&c);
	m->run = get32(&c);
	get_body(&c, m);
	return c.bad ? -1 : 0;
}
