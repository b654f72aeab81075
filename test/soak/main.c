/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soak.h"

enum { REPORT_US = 100000 };

struct soak soak;

static volatile sig_atomic_t wanted_quiet, asked, wanted_end;

static const char usage[] =
	"usage: soak_peer hub|guest OWN OTHER LIFE SEED manual|auto REPORT\n"
	"  OWN, OTHER  addresses of the two hosts\n"
	"  LIFE        number of this process, another each time\n"
	"  REPORT      file that says again and again, when it is quiet, what was sent and got\n"
	"SIGUSR1: be quiet, or greet all again; SIGUSR2: go on; SIGTERM: end.\n";

_Noreturn void soak_fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "soak_peer: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

uint32_t soak_below(uint32_t n)
{
	uint64_t z = soak.random += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return (uint32_t)((z >> 32) * n >> 32);
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void on_signal(int number)
{
	if (number == SIGTERM)
		wanted_end = 1;
	else
		wanted_quiet = number == SIGUSR1;
	asked += number == SIGUSR1;
}

static void domain_open(bool msg, enum fi_progress progress)
{
	struct fi_info *h = fi_allocinfo();

	h->caps = FI_MSG | FI_MULTI_RECV | FI_FENCE | (msg ? 0 : FI_SOURCE | FI_DIRECTED_RECV);
	h->addr_format = FI_SOCKADDR_IN;
	h->ep_attr->type = msg ? FI_EP_MSG : FI_EP_RDM;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->control_progress = progress;
	h->domain_attr->data_progress = progress;
	h->tx_attr->inject_size = INJECT_MAX;
	h->fabric_attr->prov_name = strdup("pmf");
	MUST(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &soak.info[msg]));
	fi_freeinfo(h);
	MUST(fi_fabric(soak.info[msg]->fabric_attr, &soak.fabric[msg], NULL));
	MUST(fi_domain(soak.fabric[msg], soak.info[msg], &soak.domain[msg], NULL));
}

/* ---- going on ---- */

static struct rxq *any_rxq(void)
{
	return soak.slot[soak_below(SLOTS)].q;
}

/* Endpoints close, receives are cancelled. */
static void upset(uint64_t now)
{
	static uint64_t close_at, cancel_at;
	struct slot *s = &soak.slot[soak_below(SLOTS)];

	if (now > cancel_at) {
		cancel_at = now + soak_below(20000);
		rxq_cancel_one(any_rxq());
	}
	if (now < close_at)
		return;
	if (close_at && s->ep) {
		if (s->kind->msg && (soak_chance(2) || !slot_may_close(s)))
			fi_shutdown(s->ep, 0);
		else if (slot_may_close(s))
			slot_close(s);
		if (!s->kind->msg && !s->ep)
			slot_open(s, soak.info[0]);
	}
	close_at = now + soak_below(1000000);
}

static void become_quiet(void)
{
	soak.quiets++;
	soak.report_at = 0;
	for (unsigned int i = 0; i < SLOTS; i++) {
		for (unsigned int k = 0; k < DESTS; k++)
			soak.slot[i].dest[k].greeted = false;
		rxq_cancel_odd(soak.slot[i].q);
	}
}

static void go_on(void)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		rxq_reclaim(soak.slot[i].q);
}

static void turn_quiet(uint64_t now)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		slot_greet(&soak.slot[i]);
	if (now < soak.report_at)
		return;
	report();
	soak.report_at = now + REPORT_US;
}

static void obey(void)
{
	static sig_atomic_t heard;

	if (wanted_quiet && heard != asked) {
		heard = asked;
		soak.quiet = true;
		become_quiet();
	} else if (!wanted_quiet && soak.quiet) {
		soak.quiet = false;
		go_on();
	}
}

static void turn(void)
{
	uint64_t before = soak.moved + soak.sent;

	obey();
	connections_turn();
	for (unsigned int i = 0; i < SLOTS; i++) {
		if (soak.slot[i].ep)
			slot_read(&soak.slot[i]);
		if (!soak.quiet)
			slot_talk(&soak.slot[i]);
	}
	if (soak.quiet)
		turn_quiet(now_us());
	else
		upset(now_us());
	if (soak.moved + soak.sent == before)
		sched_yield();
}

static bool parse(int argc, char **argv, enum fi_progress *progress)
{
	if (argc != 8)
		return false;
	soak.hub = strcmp(argv[1], "hub") == 0;
	soak.host[0] = argv[2];
	soak.host[1] = argv[3];
	soak.life = (uint32_t)strtoul(argv[4], NULL, 0) & 0xfff;
	soak.random = strtoull(argv[5], NULL, 0) ^ (uint64_t)soak.life << 40;
	*progress = strcmp(argv[6], "auto") == 0 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	soak.report = argv[7];
	return soak.life > 0;
}

int main(int argc, char **argv)
{
	static const int numbers[] = {SIGUSR1, SIGUSR2, SIGTERM};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	enum fi_progress progress;

	if (!parse(argc, argv, &progress)) {
		fputs(usage, stderr);
		return 2;
	}
	for (unsigned int i = 0; i < 3; i++)
		sigaction(numbers[i], &action, NULL);
	domain_open(false, progress);
	domain_open(true, progress);
	slots_init();
	connections_init();
	for (unsigned int i = 0; i < RDM_SLOTS; i++)
		slot_open(&soak.slot[i], soak.info[0]);
	printf("ready\n");
	fflush(stdout);
	while (!wanted_end)
		turn();
	slots_fini();
	connections_fini();
	for (unsigned int i = 0; i < 2; i++) {
		MUST(fi_close(&soak.domain[i]->fid));
		MUST(fi_close(&soak.fabric[i]->fid));
		fi_freeinfo(soak.info[i]);
	}
	printf("end\n");
	return 0;
}
