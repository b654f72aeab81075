/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "session.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "error.h"

/*
 * Who takes part, and the control messages between them. What the messages say is stored in the
 * partners; the work loops and run.c look there.
 */

#define KEEP_NS PERF_NS_PER_S
#define RETRY_NS (100 * PERF_NS_PER_MS)

static int open_endpoint(struct perf_session *s)
{
	if (perf_fabric_open(&s->fabric, s->options))
		return -1;
	if (perf_link_open(&s->link, &s->fabric)) {
		perf_fabric_close(&s->fabric);
		return -1;
	}
	s->open = true;
	return 0;
}

int perf_session_open(struct perf_session *s, const struct perf_options *options)
{
	bool (*tick)(void *) = s->tick;
	void *arg = s->tick_arg;

	memset(s, 0, sizeof(*s));
	s->tick = tick;
	s->tick_arg = arg;
	s->options = options;
	if (getrandom(&s->nonce, sizeof(s->nonce), 0) != sizeof(s->nonce))
		return perf_fail("the kernel gives no random number");
	return open_endpoint(s);
}

static void drop_partners(struct perf_session *s)
{
	while (s->n_partners)
		free(s->partners[--s->n_partners].names);
}

void perf_session_close(struct perf_session *s)
{
	if (!s->open)
		return;
	perf_link_close(&s->link);
	perf_fabric_close(&s->fabric);
	s->open = false;
	drop_partners(s);
}

int perf_session_send(struct perf_session *s, struct perf_partner *p, struct perf_control *m)
{
	m->nonce = p->nonce;
	m->place = p->place_there;
	m->run = p->run;
	return perf_link_send(&s->link, p->control, m) ? perf_fail_about(p->text) : 0;
}

static struct perf_partner *find_by_nonce(struct perf_session *s, uint64_t nonce)
{
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (s->partners[i].nonce == nonce)
			return &s->partners[i];
	}
	return NULL;
}

static int send_welcome(struct perf_session *s, struct perf_partner *p)
{
	struct perf_control m = {.type = PERF_WELCOME};

	m.u.welcome.own_place = (uint32_t)(p - s->partners);
	m.u.welcome.clients = s->options->clients;
	m.u.welcome.endpoints = perf_own_endpoints(s->options);
	m.u.welcome.max_size = s->fabric.info->ep_attr->max_msg_size;
	m.u.welcome.timeout_ns = s->options->timeout_ns;
	return perf_session_send(s, p, &m);
}

static int refuse(struct perf_session *s, fi_addr_t addr, const struct perf_control *hello)
{
	struct perf_control m = {
		.type = PERF_ABORT,
		.nonce = hello->nonce,
		.place = hello->u.hello.own_place,
	};

	strcpy(m.u.reason, "it is busy with other clients");
	return perf_link_send(&s->link, addr, &m);
}

/* A client greets. A second greeting of the same one is a repetition. */
static int take_hello(struct perf_session *s, const struct perf_control *m)
{
	struct perf_partner *p = find_by_nonce(s, m->nonce);
	fi_addr_t addr;

	if (!s->options->listen)
		return 0;
	if (p)
		return send_welcome(s, p);
	if (perf_endpoint_insert(&s->link.endpoint, m->u.hello.name.bytes, m->u.hello.name.len,
				 &addr))
		return -1;
	if (s->n_partners == s->options->clients)
		return refuse(s, addr, m);
	p = &s->partners[s->n_partners++];
	memset(p, 0, sizeof(*p));
	perf_endpoint_text(&s->link.endpoint, m->u.hello.name.bytes, p->text, sizeof(p->text));
	p->control = addr;
	p->nonce = m->nonce;
	p->place_there = m->u.hello.own_place;
	p->heard = perf_now();
	p->joined = true;
	return send_welcome(s, p);
}

static int expect_names(struct perf_partner *p, uint32_t n)
{
	free(p->names);
	p->names = malloc(n * sizeof(*p->names));
	if (!p->names)
		return perf_fail("no memory for the names of %u endpoints", n);
	p->endpoints = n;
	p->n_names = 0;
	return 0;
}

static void take_name(struct perf_partner *p, const struct perf_name *name)
{
	if (p->n_names < p->endpoints)
		p->names[p->n_names++] = *name;
}

static int take_run(struct perf_partner *p, const struct perf_control *m)
{
	if (expect_names(p, m->u.run_work.endpoints))
		return -1;
	take_name(p, &m->u.run_work.name);
	p->work = m->u.run_work.work;
	p->run = m->run;
	p->stop = false;
	p->expected = UINT64_MAX;
	return 0;
}

static int take_welcome(struct perf_partner *p, const struct perf_control *m)
{
	if (p->joined)
		return 0;
	p->place_there = m->u.welcome.own_place;
	p->clients = m->u.welcome.clients;
	p->max_size = m->u.welcome.max_size;
	p->joined = true;
	return expect_names(p, m->u.welcome.endpoints);
}

static void take_run_message(struct perf_partner *p, const struct perf_control *m)
{
	if (m->run != p->run)
		return;
	switch (m->type) {
	case PERF_READY:
	case PERF_NAME:
		take_name(p, &m->u.name);
		break;
	case PERF_DONE:
		p->expected = m->u.done;
		break;
	case PERF_RESULT:
		p->yours = m->u.result.yours;
		p->all = m->u.result.all;
		p->has_result = true;
		break;
	case PERF_STOP:
		p->stop = true;
		break;
	default:
		break;
	}
}

static int take_message(struct perf_session *s, const struct perf_control *m)
{
	struct perf_partner *p;

	if (m->type == PERF_HELLO)
		return take_hello(s, m);
	if (m->place >= s->n_partners || s->partners[m->place].nonce != m->nonce) {
		s->link.strangers++;
		return 0;
	}
	p = &s->partners[m->place];
	p->heard = perf_now();
	switch (m->type) {
	case PERF_WELCOME:
		return take_welcome(p, m);
	case PERF_RUN:
		return take_run(p, m);
	case PERF_BYE:
		p->bye = true;
		return 0;
	case PERF_ABORT:
		p->bye = true;
		return perf_fail("%s gives up: %s", p->text, m->u.reason);
	default:
		take_run_message(p, m);
		return 0;
	}
}

/* 1: a message was taken, 0: none was there, -1: failed, with link.lost naming the partner. */
static int poll_once(struct perf_session *s)
{
	struct perf_control m;
	int rc = perf_link_poll(&s->link, &m);

	if (rc <= 0)
		return rc < 0 ? -1 : 0;
	s->link.lost = FI_ADDR_UNSPEC;
	return take_message(s, &m) ? -1 : 1;
}

static struct perf_partner *find_lost(struct perf_session *s)
{
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (s->link.lost != FI_ADDR_UNSPEC && s->partners[i].control == s->link.lost)
			return &s->partners[i];
	}
	return NULL;
}

static void ask_user(struct perf_session *s)
{
	if (s->tick && s->tick(s->tick_arg))
		s->stop = true;
}

static int keep_alive(struct perf_session *s, uint64_t now)
{
	struct perf_control m;
	unsigned int i;

	s->pulsed = now;
	for (i = 0; i < s->n_partners; i++) {
		struct perf_partner *p = &s->partners[i];

		if (!p->joined || p->bye)
			continue;
		if (now > p->heard && now - p->heard > s->options->timeout_ns)
			return perf_fail("%s has not been heard for %g s", p->text,
					 (double)(now - p->heard) / 1e9);
		m = (struct perf_control){.type = PERF_KEEP};
		m.nonce = p->nonce;
		m.place = p->place_there;
		if (perf_link_try_send(&s->link, p->control, &m) < 0 && perf_error()[0])
			return perf_fail_about(p->text);
	}
	return 0;
}

/* Waiting at leisure: quick at first, later without keeping a processor busy. */
static void relax(unsigned int *idle)
{
	static const struct timespec nap = {.tv_nsec = 50000};

	if (++*idle < 10000)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

int perf_session_pulse(struct perf_session *s, uint64_t now)
{
	struct perf_partner *lost;
	int rc;

	ask_user(s);
	while ((rc = poll_once(s)) > 0)
		;
	if (rc < 0) {
		lost = find_lost(s);
		if (lost && !lost->bye)
			return perf_fail_about(lost->text);
		/* Who said goodbye may be gone before our last word is acknowledged. */
		if (s->link.lost == FI_ADDR_UNSPEC)
			return -1;
		perf_error_clear();
	}
	return now - s->pulsed > KEEP_NS ? keep_alive(s, now) : 0;
}

int perf_session_wait(struct perf_session *s, bool (*done)(const struct perf_session *s))
{
	unsigned int idle = 0;

	while (!done(s)) {
		if (perf_session_pulse(s, perf_now()))
			return -1;
		relax(&idle);
	}
	return 0;
}

/* One greeting: sent again when it fails, until the time is over. */
struct greeting {
	bool sent;
	uint64_t next_try;
	char reason[256];
};

static int greet(struct perf_session *s, struct perf_partner *p, struct greeting *g, uint64_t now)
{
	struct perf_control m = {.type = PERF_HELLO, .nonce = s->nonce};
	const struct perf_endpoint *e = &s->link.endpoint;
	int rc;

	if (g->sent || now < g->next_try)
		return 0;
	m.u.hello.own_place = (uint32_t)(p - s->partners);
	m.u.hello.name.len = (uint16_t)e->name_len;
	memcpy(m.u.hello.name.bytes, e->name, e->name_len);
	rc = perf_link_try_send(&s->link, p->control, &m);
	if (rc == 0)
		g->sent = true;
	else if (rc != -FI_EAGAIN)
		return -1;
	return 0;
}

static void greeting_failed(struct greeting *g, uint64_t now)
{
	g->sent = false;
	g->next_try = now + RETRY_NS;
	snprintf(g->reason, sizeof(g->reason), " (%.250s)", perf_error());
	perf_error_clear();
}

static int resolve(struct perf_session *s, struct perf_partner *p)
{
	struct perf_partner *other;
	struct fi_info *info;
	int rc;

	if (perf_fabric_lookup(&s->fabric, p->text, &info))
		return -1;
	rc = perf_endpoint_insert(&s->link.endpoint, info->dest_addr, info->dest_addrlen,
				  &p->control);
	fi_freeinfo(info);
	/* shm 1.17 does so with names that nobody has taken yet. */
	for (other = s->partners; rc == 0 && other < p; other++) {
		if (other->control == p->control)
			rc = perf_fail("provider %s gives %s and %s the same address: start the "
				       "servers first",
				       s->options->provider, other->text, p->text);
	}
	return rc;
}

static int add_peers(struct perf_session *s)
{
	const struct perf_options *o = s->options;
	struct perf_partner *p;
	unsigned int i;

	for (i = 0; i < o->n_peers; i++) {
		p = &s->partners[i];
		memset(p, 0, sizeof(*p));
		snprintf(p->text, sizeof(p->text), "%s", o->peers[i]);
		p->nonce = s->nonce;
		if (resolve(s, p))
			return -1;
	}
	s->n_partners = o->n_peers;
	return 0;
}

int perf_session_connect(struct perf_session *s)
{
	struct greeting greetings[PERF_PARTNERS_MAX] = {0};
	uint64_t now = perf_now(), deadline = now + s->options->timeout_ns;
	struct perf_partner *lost;
	unsigned int i, idle = 0;

	if (add_peers(s))
		return -1;
	for (i = 0; i < s->n_partners; now = perf_now()) {
		if (s->partners[i].joined) {
			i++;
			continue;
		}
		if (greet(s, &s->partners[i], &greetings[i], now))
			greeting_failed(&greetings[i], now);
		if (poll_once(s) < 0) {
			lost = find_lost(s);
			if (!lost)
				return -1;
			greeting_failed(&greetings[lost - s->partners], now);
		}
		ask_user(s);
		if (s->stop)
			return perf_fail("stopped before %s answered", s->partners[i].text);
		if (now > deadline)
			return perf_fail("peer %s did not answer within %g s%s",
					 s->partners[i].text, (double)s->options->timeout_ns / 1e9,
					 greetings[i].reason);
		relax(&idle);
	}
	s->pulsed = now;
	return 0;
}

int perf_session_accept(struct perf_session *s)
{
	uint64_t deadline = UINT64_MAX, now;
	unsigned int idle = 0;

	drop_partners(s);
	while (s->n_partners < s->options->clients) {
		now = perf_now();
		if (perf_session_pulse(s, now))
			return -1;
		if (s->stop)
			return perf_fail("stopped before the clients came");
		if (s->n_partners == 0)
			deadline = now + s->options->timeout_ns;
		else if (now > deadline)
			return perf_fail("only %u of %u clients came within %g s", s->n_partners,
					 s->options->clients, (double)s->options->timeout_ns / 1e9);
		relax(&idle);
	}
	return 0;
}

static bool all_bye(const struct perf_session *s)
{
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (!s->partners[i].bye)
			return false;
	}
	return true;
}

void perf_session_bye(struct perf_session *s)
{
	struct perf_control m = {.type = PERF_BYE};
	unsigned int i;

	for (i = 0; i < s->n_partners; i++) {
		if (perf_session_send(s, &s->partners[i], &m))
			break;
	}
	if (i == s->n_partners)
		perf_session_wait(s, all_bye);
	perf_error_clear();
}

/* A server that goes on keeps no trace of clients that have gone. */
static void forget_partners(struct perf_session *s)
{
	unsigned int i;

	for (i = 0; i < s->n_partners && s->options->forever; i++)
		perf_link_forget(&s->link, s->partners[i].control);
	drop_partners(s);
}

void perf_session_farewell(struct perf_session *s)
{
	struct perf_control m = {.type = PERF_BYE};
	unsigned int i;

	for (i = 0; i < s->n_partners; i++)
		perf_session_send(s, &s->partners[i], &m);
	perf_link_flush(&s->link, PERF_NS_PER_S);
	perf_error_clear();
	forget_partners(s);
}

void perf_session_abort(struct perf_session *s)
{
	struct perf_control m = {.type = PERF_ABORT};
	char reason[PERF_REASON_MAX];
	unsigned int i;

	if (!s->open)
		return;
	snprintf(reason, sizeof(reason), "%.*s", PERF_REASON_MAX - 1, perf_error());
	for (i = 0; i < s->n_partners; i++) {
		struct perf_partner *p = &s->partners[i];

		if (!p->joined || p->bye)
			continue;
		memcpy(m.u.reason, reason, sizeof(reason));
		m.nonce = p->nonce;
		m.place = p->place_there;
		/* Best effort: the partner may be the cause. */
		perf_link_try_send(&s->link, p->control, &m);
	}
	perf_link_flush(&s->link, PERF_NS_PER_S);
	forget_partners(s);
}
