/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What callgrind counts: a fixed number of messages between two endpoints of one process, on the
 * loop link, by public calls only. Everything else of the program lies outside measured().
 *
 *     count ping|stream|idle BYTES MESSAGES
 *     count fan BYTES MESSAGES PEERS
 *
 * ping:   each message is answered before the next one, as in a round trip
 * stream: 64 under way, one way
 * fan:    64 under way, from one endpoint to PEERS others in turn
 * idle:   reads of a queue to which nothing comes, in place of messages
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64u
#define PEERS_MAX 1000u
#define PEER_RECEIVES 4u
#define WARM_UP 2000u /* the path's MTU is proven by then, and every table has its size */

struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t peer;
	uint64_t sent, completed, received;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct end a, b;
static struct end peers[PEERS_MAX]; /* of a fan: on the queue of b */
static unsigned int npeers;
static size_t bytes;
static uint8_t buffer[65536];

static void need(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "count: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

static void open_domain(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("pmf");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	need(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	need(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	need(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	need(fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL),
	     "fi_av_open");
}

static void open_ep(struct end *e)
{
	need(fi_endpoint(domain, info, &e->ep, NULL), "fi_endpoint");
	need(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "bind of the queue");
	need(fi_ep_bind(e->ep, &av->fid, 0), "bind of the AV");
	need(fi_enable(e->ep), "fi_enable");
}

static void open_end(struct end *e)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .size = 1024};

	need(fi_cq_open(domain, &attr, &e->cq, NULL), "fi_cq_open");
	open_ep(e);
}

static fi_addr_t address_of(struct end *e)
{
	size_t len = 128;
	char name[128];
	fi_addr_t at;

	need(fi_getname(&e->ep->fid, name, &len), "fi_getname");
	need(fi_av_insert(av, name, 1, &at, 0, NULL), "fi_av_insert");
	return at;
}

static void post_receive(struct end *e)
{
	need(fi_recv(e->ep, buffer, bytes, NULL, FI_ADDR_UNSPEC, e), "fi_recv");
}

/* The context of a receive is its end, a send has none. */
static void take(struct end *e)
{
	struct fi_cq_entry entry[16];
	ssize_t n = fi_cq_read(e->cq, entry, 16), i;

	if (n == -FI_EAGAIN)
		return;
	need(n, "fi_cq_read");
	for (i = 0; i < n; i++) {
		if (entry[i].op_context) {
			e->received++;
			post_receive(entry[i].op_context);
		} else {
			e->completed++;
		}
	}
}

static bool send_one(struct end *e)
{
	ssize_t rc = fi_send(e->ep, buffer, bytes, NULL, e->peer, NULL);

	if (rc == -FI_EAGAIN)
		return false;
	need(rc, "fi_send");
	e->sent++;
	return true;
}

static void send_and_wait(struct end *from, struct end *to)
{
	const uint64_t before = to->received;

	while (!send_one(from))
		take(from);
	while (to->received == before) {
		take(to);
		if (to->received == before)
			take(from);
	}
}

static void ping(uint64_t messages)
{
	for (uint64_t i = 0; i < messages; i += 2) {
		send_and_wait(&a, &b);
		send_and_wait(&b, &a);
	}
}

static void stream(uint64_t messages)
{
	const uint64_t until = b.received + messages;

	while (b.received < until) {
		while (a.sent - b.received < WINDOW && a.sent < until && send_one(&a))
			;
		take(&b);
		take(&a);
	}
}

static void fan(uint64_t messages)
{
	const uint64_t until = b.received + messages;
	unsigned int turn = 0;

	while (b.received < until) {
		while (a.sent - b.received < WINDOW && a.sent < until) {
			a.peer = peers[turn].peer;
			if (!send_one(&a))
				break;
			turn = turn + 1 < npeers ? turn + 1 : 0;
		}
		take(&b);
		take(&a);
	}
}

static void open_fan(void)
{
	info->tx_attr->size = info->rx_attr->size = 64;
	for (unsigned int i = 0; i < npeers; i++) {
		peers[i].cq = b.cq;
		open_ep(&peers[i]);
		peers[i].peer = address_of(&peers[i]);
		for (unsigned int j = 0; j < (npeers == 1 ? WINDOW : PEER_RECEIVES); j++)
			post_receive(&peers[i]);
	}
	a.sent = b.received; /* the window counts what is under way */
	fan(WARM_UP + 4 * npeers);
}

static void idle(uint64_t reads)
{
	while (reads--)
		take(&a);
}

/* The name is callgrind's: it counts what runs between entry and return. */
__attribute__((noinline)) void measured(void (*work)(uint64_t), uint64_t messages);
__attribute__((noinline)) void measured(void (*work)(uint64_t), uint64_t messages)
{
	work(messages);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*work)(uint64_t);
	} modes[] = {{"ping", ping}, {"stream", stream}, {"idle", idle}, {"fan", fan}};
	void (*work)(uint64_t) = NULL;
	uint64_t messages;

	for (unsigned int i = 0; argc >= 4 && argc <= 5 && i < sizeof(modes) / sizeof(modes[0]);
	     i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			work = modes[i].work;
	if (argc == 5)
		npeers = (unsigned int)strtoul(argv[4], NULL, 0);
	if (!work || (work == fan) != (npeers > 0) || npeers > PEERS_MAX) {
		fprintf(stderr, "usage: count ping|stream|idle BYTES MESSAGES\n"
				"       count fan BYTES MESSAGES PEERS\n");
		return 2;
	}
	bytes = strtoul(argv[2], NULL, 0);
	messages = strtoul(argv[3], NULL, 0);
	if (bytes > sizeof(buffer) || messages == 0) {
		fprintf(stderr, "count: 0 to %zu bytes, one message or more\n", sizeof(buffer));
		return 2;
	}
	open_domain();
	open_end(&a);
	open_end(&b);
	a.peer = address_of(&b);
	b.peer = address_of(&a);
	for (unsigned int i = 0; i < 2 * WINDOW; i++) {
		post_receive(&a);
		post_receive(&b);
	}
	ping(WARM_UP);
	if (work == fan)
		open_fan();
	measured(work, messages);
	/* No orderly end: the process goes, and what it holds with it. */
	return 0;
}
