/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * One of two processes, for tests: mortal_peer rdm|msg survivor|victim ADDRESS, the survivor's. The
 * victim sends a large message, and in the middle of it the survivor kills it. Rows E1 and E10 say
 * what the survivor is told then, and when. It prints "ready" and, at the end, "told".
 */
#include "peer.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

enum { LARGE = 64 << 20, WAIT_MS = 60000, QUIET_MS = 100 };

#define EXPECT(cond)                                         \
	do {                                                 \
		if (!(cond)) {                               \
			fprintf(stderr, "not: " #cond "\n"); \
			exit(1);                             \
		}                                            \
	} while (0)

static struct fid_pep *pep;
static fi_addr_t peer;
static bool connects;
static char *large;

/* @return the next event; 0: none in time. An error ends the program. */
static uint32_t next_event(struct fi_eq_cm_entry *entry, int ms)
{
	uint32_t event;
	ssize_t n = fi_eq_sread(eq, &event, entry, sizeof(*entry), ms, 0);

	if (n == -FI_EAGAIN)
		return 0;
	DO(n);
	return event;
}

/* @return 1 an entry of @p ctx, with its error or 0; 0 none in time */
static int next_entry(void **ctx, int *err, double until)
{
	struct fi_cq_err_entry e = {0};
	struct fi_cq_data_entry ok;
	ssize_t n;

	while ((n = fi_cq_read(cq, &ok, 1)) == -FI_EAGAIN)
		if (now_ms() > until)
			return 0;
	if (n == 1) {
		*ctx = ok.op_context;
		*err = 0;
		return 1;
	}
	DO(fi_cq_readerr(cq, &e, 0));
	*ctx = e.op_context;
	*err = e.err;
	return 1;
}

/* ---- the victim ---- */

static void be_killed(void)
{
	pid_t pid = getpid();
	struct fi_eq_cm_entry entry;

	open_ep(info);
	if (connects) {
		DO(fi_connect(ep, info->dest_addr, NULL, 0));
		EXPECT(next_event(&entry, WAIT_MS) == FI_CONNECTED);
	} else {
		DO(fi_av_insert(av, info->dest_addr, 1, &peer, 0, NULL));
	}
	DO(fi_send(ep, &pid, sizeof(pid), NULL, peer, NULL));
	memset(large, 1, LARGE);
	DO(fi_send(ep, large, LARGE, NULL, peer, NULL));
	for (;;)
		fi_cq_read(cq, NULL, 0);
}

/* ---- the survivor ---- */

static void accept_one(void)
{
	struct fi_eq_cm_entry entry;

	EXPECT(next_event(&entry, WAIT_MS) == FI_CONNREQ);
	open_ep(entry.info);
	DO(fi_accept(ep, NULL, 0));
	fi_freeinfo(entry.info);
	EXPECT(next_event(&entry, WAIT_MS) == FI_CONNECTED);
}

static void meet(void)
{
	if (!connects) {
		open_ep(info);
		printf("ready\n");
		return;
	}
	DO(fi_passive_ep(fabric, info, &pep, NULL));
	DO(fi_pep_bind(pep, &eq->fid, 0));
	DO(fi_listen(pep));
	printf("ready\n");
	accept_one();
}

static bool is_death(int err)
{
	return connects ? err == FI_ECANCELED
			: err == FI_ETIMEDOUT || err == FI_ECONNRESET || err == FI_EHOSTUNREACH;
}

/* What had begun ends, and for a connection what waits, too; nothing ends twice. */
static void expect_ends(double until)
{
	static char waiting[8];
	bool filled_ended = false, waiting_ended = false;
	void *ctx;
	int err;

	DO(fi_recv(ep, waiting, sizeof(waiting), NULL, FI_ADDR_UNSPEC, waiting));
	while (!filled_ended || (connects && !waiting_ended)) {
		EXPECT(next_entry(&ctx, &err, until));
		EXPECT(is_death(err));
		EXPECT(ctx == large || ctx == waiting);
		EXPECT(!(ctx == large ? filled_ended : waiting_ended));
		*(ctx == large ? &filled_ended : &waiting_ended) = true;
	}
	EXPECT(!next_entry(&ctx, &err, now_ms() + QUIET_MS));
}

static void survive(void)
{
	const char *text = getenv("FI_PMF_PEER_TIMEOUT_MS");
	struct fi_eq_cm_entry entry;
	double killed, most = 3 * (text ? atof(text) : 10000);
	void *ctx;
	pid_t pid;
	int err;

	meet();
	DO(fi_recv(ep, &pid, sizeof(pid), NULL, FI_ADDR_UNSPEC, &pid));
	DO(fi_recv(ep, large, LARGE, NULL, FI_ADDR_UNSPEC, large));
	EXPECT(next_entry(&ctx, &err, now_ms() + WAIT_MS) && ctx == &pid && !err);
	while (*(volatile char *)large == 0)
		EXPECT(fi_cq_read(cq, NULL, 0) == -FI_EAGAIN);
	EXPECT(kill(pid, SIGKILL) == 0);
	killed = now_ms();
	expect_ends(killed + most);
	if (connects) {
		EXPECT(next_event(&entry, (int)most) == FI_SHUTDOWN);
		EXPECT(entry.fid == &ep->fid);
		EXPECT(next_event(&entry, QUIET_MS) == 0);
		EXPECT(fi_send(ep, large, 1, NULL, 0, NULL) == -FI_ENOTCONN);
	}
	printf("told after %.0f ms\n", now_ms() - killed);
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo();
	bool survivor;

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	connects = strcmp(argv[1], "msg") == 0;
	survivor = strcmp(argv[2], "survivor") == 0;
	large = calloc(1, LARGE);
	EXPECT(large);
	hints->ep_attr->type = connects ? FI_EP_MSG : FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	open_domain(argv[3], "7000", survivor ? FI_SOURCE : 0, hints);
	if (!survivor)
		be_killed();
	survive();
	if (connects)
		DO(fi_close(&pep->fid));
	close_all();
	free(large);
	return 0;
}
