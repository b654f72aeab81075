/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "../clock.h"
#include "../eal.h"
#include "../error.h"
#include "raw_frame.h"
#include "raw_work.h"
#include "../value.h"

/*
 * pmf-raw: the same link by DPDK alone, without reliability, order or peers. What a provider is
 * measured against.
 */

static const char *const mode_names[RAW_MODES] = {"echo", "ping", "flood", "sink"};
static const char *const touch_names[RAW_TOUCHES] = {"none", "copy", "sum"};

#define BUFFERS 8191

static volatile int stop;
static struct raw_result result;

static void on_signal(int number)
{
	stop = 1;
}

static void help(void)
{
	printf("usage: pmf-raw [EAL options] -- --mode MODE [options]\n"
	       "Frames of ethertype 0x88b5 on one port and one queue, by DPDK alone.\n\n"
	       "  --mode echo       send every frame of a ping back, until it ends\n"
	       "  --mode ping       half round trips against an echo\n"
	       "  --mode flood      as many frames as the link takes, to a sink\n"
	       "  --mode sink       count and time the frames of a flood, until it ends\n"
	       "  --size N          bytes of a frame without CRC, 60 to 9728; the same on\n"
	       "                    both sides (64)\n"
	       "  --count N         frames; default: by time\n"
	       "  --seconds TIME    how long (1)\n"
	       "  --warmup N        round trips before the clock starts (1000)\n"
	       "  --touch WORD      none; copy: written from and read into 64 MB that is walked\n"
	       "                    through; sum: written so, and added up by the receiver (none)\n"
	       "  --room N          bytes of a frame's buffer, where a driver wants more\n"
	       "                    than the frame\n"
	       "  --port N          DPDK's number of the port (0)\n"
	       "  --timeout TIME    for an answer of the other side (10)\n"
	       "  --yield N         sched_yield after N empty polls, 0: never (100)\n"
	       "  --format WORD     text or json (text)\n"
	       "  --verbose         show what EAL says\n"
	       "Exit status: 0 done, 1 failed, 2 bad options.\n");
}

struct raw_main {
	struct raw_options work;
	uint64_t port;
	uint64_t room;
	uint64_t json;
	uint64_t verbose;
	uint64_t help;
};

static int find_word(const char *text, const char *const *words, int n, uint64_t *out)
{
	int i;

	for (i = 0; i < n; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = (uint64_t)i;
			return 0;
		}
	}
	return perf_fail("'%s' is not known here; --help names what is", text);
}

static int set_option(struct raw_main *m, const char *name, const char *value)
{
	static const char *const formats[] = {"text", "json"};
	struct raw_options *o = &m->work;
	uint64_t v = 0;
	int rc = 0;

	switch (name[0] == 's' ? name[1] : name[0]) {
	case 'm':
		rc = find_word(value, mode_names, RAW_MODES, &v);
		o->mode = (enum raw_mode)v;
		break;
	case 'i': /* size */
		rc = perf_value_size(value, RAW_SIZE_MAX, &v);
		if (rc == 0 && v < RAW_SIZE_MIN)
			rc = perf_fail("a frame has at least %d bytes", RAW_SIZE_MIN);
		o->size = (uint32_t)v;
		break;
	case 'c':
		rc = perf_value_count(value, UINT64_C(1) << 48, &o->count);
		break;
	case 'e': /* seconds */
		rc = perf_value_time(value, &o->duration_ns);
		break;
	case 'w':
		rc = perf_value_count(value, UINT64_C(1) << 40, &o->warmup);
		break;
	case 'p':
		rc = perf_value_count(value, 1023, &m->port);
		break;
	case 'r':
		rc = perf_value_size(value, RAW_ROOM_MAX, &m->room);
		break;
	case 'y':
		rc = perf_value_count(value, 1000000000, &v);
		o->yield = (uint32_t)v;
		break;
	case 'f':
		rc = find_word(value, formats, 2, &m->json);
		break;
	case 't':
		if (name[1] == 'o') {
			rc = find_word(value, touch_names, RAW_TOUCHES, &v);
			o->touch = (enum raw_touch)v;
		} else {
			rc = perf_value_time(value, &o->timeout_ns);
		}
		break;
	case 'v':
		m->verbose = 1;
		break;
	case 'h':
		m->help = 1;
		break;
	}
	return rc;
}

static int parse(struct raw_main *m, int argc, char *argv[])
{
	static const struct option names[] = {
		{"mode", 1, NULL, 0},	 {"size", 1, NULL, 0},	  {"count", 1, NULL, 0},
		{"seconds", 1, NULL, 0}, {"warmup", 1, NULL, 0},  {"touch", 1, NULL, 0},
		{"port", 1, NULL, 0},	 {"timeout", 1, NULL, 0}, {"yield", 1, NULL, 0},
		{"format", 1, NULL, 0},	 {"room", 1, NULL, 0},	  {"verbose", 0, NULL, 0},
		{"help", 0, NULL, 0},	 {NULL, 0, NULL, 0},
	};
	int c, at;

	m->work.mode = RAW_MODES;
	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", names, &at)) == 0) {
		if (set_option(m, names[at].name, optarg))
			return -1;
	}
	if (c == '?')
		return perf_fail("option '%s' is not understood; --help names all",
				 argv[optind - 1]);
	if (optind < argc)
		return perf_fail("'%s' is no option", argv[optind]);
	if (m->work.mode == RAW_MODES && !m->help)
		return perf_fail("--mode is missing; --help says more");
	return 0;
}

static double share(uint32_t per_million)
{
	return (double)perf_histogram_quantile(&result.rtt, per_million) / 2e3;
}

static void print_result(const struct raw_main *m)
{
	const struct raw_options *o = &m->work;
	double rate = result.ns ? (double)result.received * 1e9 / (double)result.ns : 0;
	double gbit = rate * o->size * 8 / 1e9;

	if (m->json) {
		printf("{\"program\": \"pmf-raw\", \"mode\": \"%s\", \"bytes\": %u, \"touch\": "
		       "\"%s\", "
		       "\"sent\": %llu, \"received\": %llu, \"seconds\": %.6f, "
		       "\"frames_per_s\": %.1f, \"bytes_per_s\": %.1f",
		       mode_names[o->mode], o->size, touch_names[o->touch],
		       (unsigned long long)result.sent, (unsigned long long)result.received,
		       (double)result.ns / 1e9, rate, rate * o->size);
		if (o->mode == RAW_MODE_PING)
			printf(", \"half_rtt_us\": {\"p50\": %.4f, \"p99\": %.4f, \"p99.9\": %.4f, "
			       "\"max\": %.4f}",
			       share(500000), share(990000), share(999000),
			       (double)result.rtt.max / 2e3);
		printf("}\n");
	} else if (o->mode == RAW_MODE_PING) {
		printf("ping %u bytes, touch %s: half round trip p50 %.3f us, p99 %.3f us, "
		       "p99.9 %.3f us, %llu round trips\n",
		       o->size, touch_names[o->touch], share(500000), share(990000), share(999000),
		       (unsigned long long)result.rtt.count);
	} else {
		printf("%s %u bytes, touch %s: %.0f frames/s, %.2f Gb/s, %llu sent, %llu "
		       "received\n",
		       mode_names[o->mode], o->size, touch_names[o->touch], rate, gbit,
		       (unsigned long long)result.sent, (unsigned long long)result.received);
	}
}

static int run(const struct raw_main *m, int n_eal, char *argv[])
{
	struct raw_port port;
	int rc;

	if (perf_eal_start(n_eal, argv, m->verbose))
		return -1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	rc = raw_port_open(&port, (uint16_t)m->port, m->work.size, (uint32_t)m->room, BUFFERS);
	if (rc == 0) {
		rc = raw_work(&port, &m->work, &result, &stop);
		raw_port_close(&port);
	}
	rte_eal_cleanup();
	if (rc == 0 && m->work.mode != RAW_MODE_ECHO)
		print_result(m);
	return rc;
}

int main(int argc, char *argv[])
{
	struct raw_main m = {
		.work =
			{
				.size = 64,
				.duration_ns = PERF_NS_PER_S,
				.warmup = 1000,
				.timeout_ns = 10 * PERF_NS_PER_S,
				.yield = 100,
			},
	};
	int at, status = 0;

	for (at = 1; at < argc && strcmp(argv[at], "--") != 0; at++)
		;
	if (at == argc)
		at = 0;
	if (parse(&m, argc - at, argv + at))
		status = 2;
	else if (m.help)
		help();
	else if (run(&m, at ? at : 1, argv))
		status = 1;
	fflush(stdout);
	if (status)
		fprintf(stderr, "pmf-raw: %s\n", perf_error());
	return status;
}
