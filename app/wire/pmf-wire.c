/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include "../clock.h"
#include "../eal.h"
#include "../error.h"
#include "../value.h"
#include "pmf_fault_text.h"
#include "wire.h"

/*
 * pmf-wire: frames of one port to another and back, over a wire that misbehaves, each way in its
 * own manner.
 */

enum {
	RINGS = 4096, /* buffers with the two drivers, and on their way between */
	HELD_MAX = 1 << 20,
};

static volatile sig_atomic_t stop, show, change;

struct wire_main {
	struct wire_way way[2];
	struct raw_port port[2];
	const char *fault[2];
	const char *file; /* of faults, instead */
	uint64_t id[2];
	uint64_t seed, size, room, held, yield, duration_ns;
	bool seeded, json, verbose, help;
};

static void on_signal(int number)
{
	if (number == SIGUSR1)
		show = 1;
	else if (number == SIGHUP)
		change = 1;
	else
		stop = 1;
}

static void help(void)
{
	printf("usage: pmf-wire [EAL options] -- [options]\n"
	       "A wire between two ports that loses, doubles, alters and delays frames on "
	       "purpose.\n\n"
	       "  --fault TEXT      what happens to frames, both ways\n"
	       "  --forth TEXT      from the first port to the second\n"
	       "  --back TEXT       from the second to the first\n"
	       "  --faults FILE     instead: a line for each way, or one for both; read again at "
	       "SIGHUP\n"
	       "  --seed N          instead of the text's; the way back gets the next one\n"
	       "  --ports A,B       DPDK's numbers of the two ports (0,1)\n"
	       "  --duration TIME   end after it; without: at SIGINT or SIGTERM\n"
	       "  --size N          bytes of the largest frame without CRC (9018)\n"
	       "  --room N          bytes of a frame's buffer, where a driver wants more than\n"
	       "                    the frame\n"
	       "  --held N          frames that can wait for their time at once, each way (2048)\n"
	       "  --yield N         sched_yield after N empty polls, 0: never (100)\n"
	       "  --format WORD     text or json, a line for each report (text)\n"
	       "  --verbose         show what EAL says\n\n"
	       "TEXT is that of FI_PMF_FAULT, words parted by commas:\n"
	       "  loss=1%% burst=0.1%%:20%% every=100   lost: by chance, in bursts (chance to "
	       "begin,\n"
	       "                                     to end), every nth\n"
	       "  kinds=data+ack                     only packets of these kinds are lost: other,\n"
	       "                                     hello, challenge, open, data, ack, probe,\n"
	       "                                     reset, multicast\n"
	       "  dup=1%% reorder=5%%:20               doubled; behind up to so many later ones\n"
	       "  corrupt=1%%:14 truncate=1%%          one bit, not in the first 14 bytes, which\n"
	       "                                     Ethernet's own sum covers; cut short\n"
	       "  delay=50us jitter=10us             each; up to so much more\n"
	       "  rate=1000:100000:50000             Mb/s; bytes of its queue; bytes before marks\n"
	       "  cut=1s:2s pause=10ms:1ms           nothing passes from, to, since the first\n"
	       "                                     frame; every 10 ms held for 1 ms\n"
	       "  seed=7                             (1; without it the way back has the next "
	       "one)\n"
	       "SIGUSR1 shows the counters. Exit status: 0 done, 1 failed, 2 bad options.\n");
}

static int set_ports(struct wire_main *m, const char *value)
{
	const char *comma = strchr(value, ',');
	char first[8];

	if (!comma || (size_t)(comma - value) >= sizeof(first))
		return perf_fail("'%s' is not two ports as in 0,1", value);
	snprintf(first, sizeof(first), "%.*s", (int)(comma - value), value);
	if (perf_value_count(first, RTE_MAX_ETHPORTS - 1, &m->id[0]) ||
	    perf_value_count(comma + 1, RTE_MAX_ETHPORTS - 1, &m->id[1]))
		return -1;
	if (m->id[0] == m->id[1])
		return perf_fail("a wire has two ports, not port %s twice", first);
	return 0;
}

static int set_size(const char *value, uint64_t max, uint64_t *out)
{
	if (perf_value_size(value, max, out))
		return -1;
	return *out < RTE_ETHER_MIN_LEN ? perf_fail("'%s' is too small for a frame", value) : 0;
}

static int set_held(struct wire_main *m, const char *value)
{
	if (perf_value_count(value, HELD_MAX, &m->held))
		return -1;
	return m->held == 0 ? perf_fail("at least one frame has to be able to wait") : 0;
}

static int set_format(struct wire_main *m, const char *value)
{
	m->json = strcmp(value, "json") == 0;
	return m->json || strcmp(value, "text") == 0
		       ? 0
		       : perf_fail("'%s' is no format; text and json are", value);
}

static int set_option(struct wire_main *m, int option, const char *value)
{
	switch (option) {
	case 'f':
		m->fault[0] = m->fault[1] = value;
		return 0;
	case 'a':
		m->fault[0] = value;
		return 0;
	case 'b':
		m->fault[1] = value;
		return 0;
	case 'F':
		m->file = value;
		return 0;
	case 's':
		m->seeded = true;
		return perf_value_count(value, UINT64_MAX, &m->seed);
	case 'p':
		return set_ports(m, value);
	case 'd':
		return perf_value_time(value, &m->duration_ns);
	case 'z':
		return set_size(value, RAW_ROOM_MAX - 64, &m->size);
	case 'r':
		return set_size(value, RAW_ROOM_MAX, &m->room);
	case 'n':
		return set_held(m, value);
	case 'y':
		return perf_value_count(value, 1000000000, &m->yield);
	case 'o':
		return set_format(m, value);
	case 'v':
		m->verbose = true;
		return 0;
	default:
		m->help = true;
		return 0;
	}
}

/* Changes nothing when it fails. */
static int parse_faults(const struct wire_main *m, const char *const text[2],
			struct pmf_fault fault[2])
{
	struct pmf_fault f[2];
	char why[256];
	int i;

	for (i = 0; i < 2; i++) {
		if (pmf_fault_parse(text[i], &f[i], why, sizeof(why)))
			return perf_fail("%s", why);
		if (m->seeded)
			pmf_fault_reseed(&f[i], m->seed + (uint64_t)i);
		else if (i == 1 && text[0] == text[1])
			pmf_fault_reseed(&f[i], f[i].conf.seed + 1);
	}
	memcpy(fault, f, sizeof(f));
	return 0;
}

static int read_faults(const struct wire_main *m, struct pmf_fault fault[2])
{
	char line[2][512] = {""};
	const char *text[2] = {line[0], line[0]};
	FILE *f = fopen(m->file, "r");
	int i;

	if (!f)
		return perf_fail("%s: %s", m->file, strerror(errno));
	for (i = 0; i < 2 && fgets(line[i], sizeof(line[i]), f); i++)
		line[i][strcspn(line[i], "\n")] = '\0';
	fclose(f);
	if (line[1][0])
		text[1] = line[1];
	return parse_faults(m, text, fault);
}

static int find_faults(const struct wire_main *m, struct pmf_fault fault[2])
{
	return m->file ? read_faults(m, fault) : parse_faults(m, m->fault, fault);
}

static int parse(struct wire_main *m, int argc, char *argv[])
{
	static const struct option names[] = {
		{"fault", 1, NULL, 'f'},    {"forth", 1, NULL, 'a'}, {"back", 1, NULL, 'b'},
		{"faults", 1, NULL, 'F'},   {"seed", 1, NULL, 's'},  {"ports", 1, NULL, 'p'},
		{"duration", 1, NULL, 'd'}, {"size", 1, NULL, 'z'},  {"room", 1, NULL, 'r'},
		{"held", 1, NULL, 'n'},	    {"yield", 1, NULL, 'y'}, {"format", 1, NULL, 'o'},
		{"verbose", 0, NULL, 'v'},  {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0},
	};
	struct pmf_fault fault[2];
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == '?')
			return perf_fail("option '%s' is not understood; --help names all",
					 argv[optind - 1]);
		if (set_option(m, c, optarg))
			return -1;
	}
	if (optind < argc)
		return perf_fail("'%s' is no option", argv[optind]);
	if (find_faults(m, fault))
		return -1;
	m->way[0].fault = fault[0];
	m->way[1].fault = fault[1];
	return 0;
}

static void catch_signals(bool file)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	size_t i;

	for (i = 0; i < PMF_ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
	if (file)
		sigaction(SIGHUP, &action, NULL);
}

/* A file that is no good is said, and changes nothing. */
static void change_faults(struct wire_main *m)
{
	struct pmf_fault fault[2];
	int i;

	change = 0;
	if (read_faults(m, fault)) {
		fprintf(stderr, "pmf-wire: %s\n", perf_error());
		return;
	}
	for (i = 0; i < 2; i++)
		wire_way_change(&m->way[i], &fault[i]);
	wire_report_faults(m->way, "changed", m->json);
}

static void forward(struct wire_main *m)
{
	const uint64_t begun = perf_now();
	uint64_t now = begun, idle = 0;

	while (!stop && (m->duration_ns == 0 || now - begun < m->duration_ns)) {
		bool worked = wire_way_turn(&m->way[0], now);

		worked |= wire_way_turn(&m->way[1], now);
		idle = worked ? 0 : idle + 1;
		if (m->yield && idle && idle % m->yield == 0)
			sched_yield();
		if (show) {
			show = 0;
			wire_report(m->way, "counters", m->json);
		}
		if (change)
			change_faults(m);
		now = perf_now();
	}
}

static int ways_open(struct wire_main *m)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct wire_way *w = &m->way[i];
		const struct pmf_fault fault = w->fault;

		w->from = &m->port[i];
		w->to = &m->port[!i];
		if (wire_way_open(w, &fault, (uint32_t)m->held))
			return -1;
	}
	return 0;
}

/* Frames go before the ports, and those before the pools that both use. */
static void close_all(struct wire_main *m)
{
	wire_way_close(&m->way[0]);
	wire_way_close(&m->way[1]);
	raw_port_stop(&m->port[0]);
	raw_port_stop(&m->port[1]);
	raw_port_close(&m->port[0]);
	raw_port_close(&m->port[1]);
}

static int run(struct wire_main *m, int n_eal, char *argv[])
{
	const uint32_t buffers = (uint32_t)m->held + RINGS;
	int rc, i;

	catch_signals(m->file != NULL);
	if (perf_eal_start(n_eal, argv, m->verbose))
		return -1;
	for (i = 0, rc = 0; i < 2 && rc == 0; i++)
		rc = raw_port_open(&m->port[i], (uint16_t)m->id[i], (uint32_t)m->size,
				   (uint32_t)m->room, buffers);
	if (rc == 0)
		rc = ways_open(m);
	if (rc == 0) {
		wire_report_faults(m->way, "begin", m->json);
		forward(m);
		wire_report(m->way, "end", m->json);
	}
	close_all(m);
	rte_eal_cleanup();
	return rc;
}

int main(int argc, char *argv[])
{
	static struct wire_main m = {
		.fault = {"", ""}, .id = {0, 1}, .size = 9018, .held = 2048, .yield = 100};
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
		fprintf(stderr, "pmf-wire: %s\n", perf_error());
	return status;
}
