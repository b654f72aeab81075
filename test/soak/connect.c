/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections: the hub listens for each connected slot, the other side connects again whenever one
 * has ended.
 */
#include <arpa/inet.h>
#include <string.h>

#include "soak.h"

/* An event, with the other end's life where it says one. */
struct event {
	uint32_t what; /* 0: none */
	int err;       /* positive errno, or 0 */
	struct fi_info *info;
	uint32_t life;
};

static bool next_event(struct fid_eq *eq, struct event *e)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 64];
	} buf;
	struct fi_eq_err_entry err = {0};
	ssize_t rc;

	memset(e, 0, sizeof(*e));
	rc = fi_eq_read(eq, &e->what, &buf, sizeof(buf), 0);
	if (rc == -FI_EAGAIN)
		return false;
	soak.moved++;
	if (rc == -FI_EAVAIL) {
		MUST(fi_eq_readerr(eq, &err, 0));
		e->err = err.err;
		return true;
	}
	MUST(rc);
	if ((size_t)rc >= sizeof(buf.cm) + sizeof(e->life))
		memcpy(&e->life, buf.bytes + sizeof(buf.cm), sizeof(e->life));
	e->info = e->what == FI_CONNREQ ? buf.cm.info : NULL;
	return true;
}

void connections_init(void)
{
	for (unsigned int i = 0; i < MSG_SLOTS && soak.hub; i++) {
		struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_port = htons((uint16_t)(PORT + RDM_SLOTS + i))};

		inet_pton(AF_INET, soak.host[0], &a.sin_addr);
		MUST(fi_eq_open(soak.fabric[1], &attr, &soak.pep_eq[i], NULL));
		MUST(fi_passive_ep(soak.fabric[1], soak.info[1], &soak.pep[i], NULL));
		MUST(fi_setname(&soak.pep[i]->fid, &a, sizeof(a)));
		MUST(fi_pep_bind(soak.pep[i], &soak.pep_eq[i]->fid, 0));
		MUST(fi_listen(soak.pep[i]));
	}
}

void connections_fini(void)
{
	for (unsigned int i = 0; i < MSG_SLOTS && soak.hub; i++) {
		MUST(fi_close(&soak.pep[i]->fid));
		MUST(fi_close(&soak.pep_eq[i]->fid));
	}
}

static void connect_to(struct slot *s)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + s->n))};

	inet_pton(AF_INET, soak.host[1], &a.sin_addr);
	slot_open(s, soak.info[1]);
	MUST(fi_connect(s->ep, &a, &s->life, sizeof(s->life)));
}

/* Who asks again has lost the connection, even if we have not heard of it yet. */
static void requested(struct slot *s, unsigned int listener, struct event *e)
{
	bool wait = s->ep && !slot_may_close(s);
	int rc;

	if (wait)
		fi_shutdown(s->ep, 0); /* ends its receives with entries */
	if (wait || soak_chance(8)) {
		MUST(fi_reject(soak.pep[listener], e->info->handle, &s->n, sizeof(s->n)));
		soak.rejected++;
		fi_freeinfo(e->info);
		return;
	}
	if (s->ep)
		slot_close(s);
	slot_open(s, e->info);
	s->mate = e->life;
	rc = fi_accept(s->ep, &s->life, sizeof(s->life));
	fi_freeinfo(e->info);
	if (rc == -FI_ECONNABORTED) /* it has gone since */
		slot_close(s);
	else
		MUST(rc);
}

static void hear(struct slot *s)
{
	struct event e;

	while (s->ep && next_event(s->eq, &e)) {
		if (e.what == FI_CONNECTED && s->state == PENDING) {
			s->state = OPEN;
			if (!soak.hub)
				s->mate = e.life;
		} else if (e.what == FI_SHUTDOWN || e.err) {
			slot_read(s);
			slot_close(s);
		} else {
			soak_fail("slot %u: event %u", s->n, e.what);
		}
	}
}

void connections_turn(void)
{
	struct event e;

	for (unsigned int i = 0; i < MSG_SLOTS; i++) {
		struct slot *s = &soak.slot[RDM_SLOTS + i];

		hear(s);
		if (!soak.hub && !s->ep)
			connect_to(s);
		while (soak.hub && next_event(soak.pep_eq[i], &e)) {
			if (e.what != FI_CONNREQ)
				soak_fail("listener %u: event %u, error %d", i, e.what, e.err);
			requested(s, i, &e);
		}
	}
}
