/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "options.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "value.h"

/*
 * One table of options serves the command line, the prompt's "set" and both helps. Nothing is kept
 * here but the table; the values belong to the caller.
 */

struct option {
	const char *name;
	char letter;	 /* 0: none */
	bool prompt;	 /* may be set while connected */
	const char *arg; /* NULL: a flag */
	const char *help;
	int (*set)(struct perf_options *o, const char *value);
};

static const char *const mode_names[] = {"lat", "bw", "rate"};
static const char *const direction_names[] = {"", "tx", "rx", "both"};
static const char *const format_names[] = {"text", "csv", "json"};
static const char *const choice_names[] = {"auto", "on", "off"};

#define NAMES(table) (table), sizeof(table) / sizeof((table)[0])

static int word_of(const char *value, const char *const *names, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (names[i][0] && strcmp(value, names[i]) == 0)
			return (int)i;
	}
	return perf_fail("'%s' is not a %s", value, what);
}

static int set_text(char *to, size_t room, const char *value)
{
	if (!value[0] || strlen(value) >= room)
		return perf_fail("'%s' is empty or longer than %zu letters", value, room - 1);
	strcpy(to, value);
	return 0;
}

static int set_provider(struct perf_options *o, const char *value)
{
	return set_text(o->provider, sizeof(o->provider), value);
}

static int set_domain(struct perf_options *o, const char *value)
{
	return set_text(o->domain, sizeof(o->domain), value);
}

static int set_bind(struct perf_options *o, const char *value)
{
	return set_text(o->bind, sizeof(o->bind), value);
}

static int set_port(struct perf_options *o, const char *value)
{
	uint64_t port;

	if (perf_value_count(value, 65535, &port))
		return -1;
	snprintf(o->port, sizeof(o->port), "%u", (unsigned int)port);
	return 0;
}

static int set_peer(struct perf_options *o, const char *value)
{
	if (o->n_peers == PERF_PARTNERS_MAX)
		return perf_fail("more than %d peers", PERF_PARTNERS_MAX);
	if (set_text(o->peers[o->n_peers], sizeof(o->peers[0]), value))
		return -1;
	o->n_peers++;
	return 0;
}

static int set_listen(struct perf_options *o, const char *value)
{
	o->listen = true;
	return 0;
}

static int set_self(struct perf_options *o, const char *value)
{
	o->self = true;
	return 0;
}

static int set_unsigned(unsigned int *to, const char *value, uint64_t min, uint64_t max)
{
	uint64_t n;

	if (perf_value_count(value, max, &n))
		return -1;
	if (n < min)
		return perf_fail("%s is less than %llu", value, (unsigned long long)min);
	*to = (unsigned int)n;
	return 0;
}

static int set_clients(struct perf_options *o, const char *value)
{
	return set_unsigned(&o->clients, value, 1, PERF_PARTNERS_MAX);
}

static int set_endpoints(struct perf_options *o, const char *value)
{
	return set_unsigned(&o->endpoints, value, 1, PERF_ENDPOINTS_MAX);
}

static int set_threads(struct perf_options *o, const char *value)
{
	return set_unsigned(&o->threads, value, 1, PERF_THREADS_MAX);
}

static int set_forever(struct perf_options *o, const char *value)
{
	o->forever = true;
	return 0;
}

static int set_progress(struct perf_options *o, const char *value)
{
	static const char *const names[] = {"manual", "auto"};
	int word = word_of(value, NAMES(names), "progress mode (manual or auto)");

	if (word < 0)
		return -1;
	o->auto_progress = word == 1;
	return 0;
}

static int set_threading(struct perf_options *o, const char *value)
{
	static const char *const names[] = {"domain", "safe"};
	int word = word_of(value, NAMES(names), "threading level (domain or safe)");

	if (word < 0)
		return -1;
	o->thread_safe = word == 1;
	return 0;
}

static int set_mr(struct perf_options *o, const char *value)
{
	o->mr = true;
	return 0;
}

static int set_mode(struct perf_options *o, const char *value)
{
	enum perf_mode modes[PERF_MODES];
	char copy[64], *item, *rest = copy;
	unsigned int n = 0;
	int word;

	if (strlen(value) >= sizeof(copy))
		return perf_fail("'%s' is not a mode", value);
	strcpy(copy, value);
	while ((item = strsep(&rest, ","))) {
		word = word_of(item, NAMES(mode_names), "mode (lat, bw or rate)");
		if (word < 0)
			return -1;
		if (n == PERF_MODES)
			return perf_fail("more than %d modes", PERF_MODES);
		modes[n++] = (enum perf_mode)word;
	}
	memcpy(o->modes, modes, sizeof(modes[0]) * n);
	o->n_modes = n;
	return 0;
}

static int set_size(struct perf_options *o, const char *value)
{
	size_t sizes[PERF_SIZES_MAX];
	unsigned int n = PERF_SIZES_MAX;

	if (perf_value_sizes(value, UINT64_C(1) << 30, sizes, &n))
		return -1;
	memcpy(o->sizes, sizes, sizeof(sizes[0]) * n);
	o->n_sizes = n;
	return 0;
}

static int set_direction(struct perf_options *o, const char *value)
{
	int word = word_of(value, NAMES(direction_names), "direction (tx, rx or both)");

	if (word < 0)
		return -1;
	o->direction = (enum perf_direction)word;
	return 0;
}

static int set_window(struct perf_options *o, const char *value)
{
	return set_unsigned(&o->window, value, 1, 4096);
}

static int set_more(struct perf_options *o, const char *value)
{
	return set_unsigned(&o->more, value, 1, 4096);
}

static int set_choice(enum perf_choice *to, const char *value)
{
	int word = word_of(value, NAMES(choice_names), "choice (auto, on or off)");

	if (word < 0)
		return -1;
	*to = (enum perf_choice)word;
	return 0;
}

static int set_inject(struct perf_options *o, const char *value)
{
	return set_choice(&o->inject, value);
}

static int set_verify(struct perf_options *o, const char *value)
{
	int word = value ? word_of(value, NAMES(choice_names), "choice (on or off)") : PERF_ON;

	if (word < 0)
		return -1;
	o->verify = word == PERF_ON;
	return 0;
}

static int set_count(struct perf_options *o, const char *value)
{
	uint64_t n;

	if (perf_value_count(value, UINT64_C(1) << 48, &n))
		return -1;
	if (n == 0)
		return perf_fail("the count is 0");
	o->count = n;
	return 0;
}

static int set_duration(struct perf_options *o, const char *value)
{
	if (perf_value_time(value, &o->duration_ns))
		return -1;
	o->count = 0;
	return 0;
}

static int set_warmup(struct perf_options *o, const char *value)
{
	if (strcmp(value, "auto") == 0) {
		o->warmup_auto = true;
		return 0;
	}
	if (perf_value_count(value, UINT64_C(1) << 40, &o->warmup))
		return -1;
	o->warmup_auto = false;
	return 0;
}

static int set_mix(struct perf_options *o, const char *value)
{
	if (perf_value_count(value, UINT64_MAX, &o->mix))
		return -1;
	if (o->mix == 0) /* any seed will do: it is printed */
		o->mix = perf_now() | 1;
	o->sizes[0] = (size_t)16 << 20;
	o->n_sizes = 1;
	o->verify = true;
	o->direction = PERF_BOTH;
	o->modes[0] = PERF_BW;
	o->n_modes = 1;
	return 0;
}

static int set_walk(struct perf_options *o, const char *value)
{
	if (strcmp(value, "auto") == 0) {
		o->walk_auto = true;
		return 0;
	}
	if (perf_value_size(value, UINT64_C(1) << 34, &o->walk))
		return -1;
	o->walk_auto = false;
	return 0;
}

static int set_timeout(struct perf_options *o, const char *value)
{
	uint64_t ns;

	if (perf_value_time(value, &ns))
		return -1;
	if (ns == 0)
		return perf_fail("the time-out is 0");
	o->timeout_ns = ns;
	return 0;
}

static int set_yield(struct perf_options *o, const char *value)
{
	return set_unsigned(&o->yield, value, 0, 1000000000);
}

static int set_core(struct perf_options *o, const char *value)
{
	unsigned int core;

	if (set_unsigned(&core, value, 0, 1023))
		return -1;
	o->core = (int)core;
	return 0;
}

static int set_format(struct perf_options *o, const char *value)
{
	int word = word_of(value, NAMES(format_names), "format (text, csv or json)");

	if (word < 0)
		return -1;
	o->format = (enum perf_format)word;
	return 0;
}

static int set_interactive(struct perf_options *o, const char *value)
{
	o->interactive = true;
	return 0;
}

static int set_verbose(struct perf_options *o, const char *value)
{
	o->verbose = true;
	return 0;
}

static int set_help(struct perf_options *o, const char *value)
{
	o->help = true;
	return 0;
}

static int set_version(struct perf_options *o, const char *value)
{
	o->version = true;
	return 0;
}

static const struct option options[] = {
	{"provider", 'p', false, "NAME", "libfabric provider (pmf)", set_provider},
	{"domain", 'd', false, "NAME", "only this domain of the provider", set_domain},
	{"listen", 'l', false, NULL, "wait for clients; what to do comes from them", set_listen},
	{"self", 0, false, NULL, "between two endpoints of this program alone", set_self},
	{"threads", 0, false, "N",
	 "with --self: N at once, each with a domain, two endpoints and a processor (1)",
	 set_threads},
	{"clients", 0, false, "N", "with --listen: start when N clients are there (1)",
	 set_clients},
	{"endpoints", 0, false, "N",
	 "so many on this side, the messages in turn over all pairs of theirs and ours",
	 set_endpoints},
	{"forever", 0, false, NULL, "with --listen: serve again and again", set_forever},
	{"peer", 0, false, "ADDR[:PORT]", "a server to work with; several times: one to many",
	 set_peer},
	{"bind", 'b', false, "ADDR", "own address", set_bind},
	{"name", 0, false, "NAME", "own name, for providers such as shm (pmf-perf)", set_bind},
	{"port", 'P', false, "N", "port of the servers (9471)", set_port},
	{"mode", 'm', true, "LIST", "of lat, bw, rate (lat)", set_mode},
	{"size", 's', true, "LIST", "of sizes, A-B for powers of two, 'all' is 1-1m (8)", set_size},
	{"direction", 0, true, "WORD", "bw, rate: tx, rx or both, as seen by the client (tx)",
	 set_direction},
	{"window", 'w', true, "N", "bw, rate: sends under way to each peer (64)", set_window},
	{"more", 0, true, "K", "bw, rate: bursts of K calls with FI_MORE (1: without)", set_more},
	{"inject", 0, true, "WORD", "on, off; auto: lat only, up to inject_size", set_inject},
	{"verify", 'c', true, NULL, "fill every message and check every byte", set_verify},
	{"count", 'n', true, "N", "messages to each peer (default: by duration)", set_count},
	{"duration", 't', true, "TIME", "time for each size (1s)", set_duration},
	{"warmup", 0, true, "N", "messages before the clock starts (auto: 16 to 1000)", set_warmup},
	{"walk", 0, true, "SIZE", "walk buffers through SIZE; 0: reuse them (auto: bw 64m)",
	 set_walk},
	{"mix", 0, true, "SEED",
	 "bw, both ways, verified: sizes 0 to 16 MiB drawn from SEED (0: any, printed)", set_mix},
	{"timeout", 0, true, "TIME", "give up when nothing comes for so long (10s)", set_timeout},
	{"yield", 0, true, "N", "sched_yield after N empty polls, 0: never (100)", set_yield},
	{"progress", 0, false, "WORD", "manual or auto (manual)", set_progress},
	{"threading", 0, false, "WORD", "domain or safe (domain)", set_threading},
	{"register", 0, false, NULL, "register the buffers even if nobody demands it", set_mr},
	{"core", 0, false, "N", "run on this processor", set_core},
	{"format", 'f', false, "WORD", "text, csv or json (text)", set_format},
	{"interactive", 'i', false, NULL, "prompt; 'help' there says more", set_interactive},
	{"verbose", 'v', false, NULL, "more words; results on the server too", set_verbose},
	{"help", 'h', false, NULL, "this text", set_help},
	{"version", 'V', false, NULL, "the versions of program and libfabric", set_version},
};

#define N_OPTIONS (sizeof(options) / sizeof(options[0]))

static const struct option *find(const char *name, size_t len, char letter)
{
	size_t i;

	for (i = 0; i < N_OPTIONS; i++) {
		if (letter ? options[i].letter == letter
			   : strlen(options[i].name) == len && !memcmp(options[i].name, name, len))
			return &options[i];
	}
	return NULL;
}

static int apply(struct perf_options *o, const struct option *opt, const char *value)
{
	struct perf_options copy = *o;
	char cause[256];

	if (opt->set(&copy, value) == 0) {
		*o = copy;
		return 0;
	}
	snprintf(cause, sizeof(cause), "%s", perf_error());
	perf_error_clear();
	return perf_fail("--%s: %s", opt->name, cause);
}

void perf_options_init(struct perf_options *o)
{
	memset(o, 0, sizeof(*o));
	strcpy(o->provider, "pmf");
	strcpy(o->port, "9471");
	o->clients = 1;
	o->threads = 1;
	o->modes[0] = PERF_LAT;
	o->n_modes = 1;
	o->sizes[0] = 8;
	o->n_sizes = 1;
	o->direction = PERF_TX;
	o->window = 64;
	o->more = 1;
	o->duration_ns = UINT64_C(1000000000);
	o->warmup_auto = true;
	o->walk_auto = true;
	o->timeout_ns = UINT64_C(10000000000);
	o->yield = 100;
	o->core = -1;
}

int perf_options_parse(struct perf_options *o, int argc, char *argv[])
{
	const struct option *opt;
	const char *arg, *value;
	int i;

	for (i = 0; i < argc; i++) {
		arg = argv[i];
		value = NULL;
		if (strncmp(arg, "--", 2) == 0) {
			value = strchr(arg, '=');
			opt = find(arg + 2, value ? (size_t)(value - arg - 2) : strlen(arg + 2), 0);
			value = value ? value + 1 : NULL;
		} else if (arg[0] == '-' && arg[1]) {
			opt = find(NULL, 0, arg[1]);
			value = arg[2] ? arg + 2 : NULL;
		} else {
			return perf_fail("'%s' is not an option; --help names them", arg);
		}
		if (!opt)
			return perf_fail("option '%s' is unknown; --help names all", arg);
		if (opt->arg && !value) {
			if (i + 1 == argc)
				return perf_fail("--%s wants a value: %s", opt->name, opt->arg);
			value = argv[++i];
		}
		if (!opt->arg && value)
			return perf_fail("--%s takes no value", opt->name);
		if (apply(o, opt, value))
			return -1;
	}
	return 0;
}

int perf_options_set(struct perf_options *o, const char *name, const char *value)
{
	const struct option *opt = find(name, strlen(name), 0);

	if (!opt || !opt->prompt)
		return perf_fail("'%s' cannot be set here; 'help set' names what can", name);
	if (opt->arg && !value)
		return perf_fail("set %s wants a value: %s", name, opt->arg);
	return apply(o, opt, value);
}

int perf_options_check(const struct perf_options *o)
{
	if (o->listen && o->n_peers)
		return perf_fail("--listen and --peer exclude each other");
	if (o->self && (o->listen || o->n_peers || o->interactive || o->endpoints || o->verify ||
			o->more != 1 || o->direction != PERF_TX))
		return perf_fail("--self is alone, and sends one way without --verify and --more");
	if (!o->self && o->threads != 1)
		return perf_fail("--threads needs --self");
	if (!o->listen && !o->n_peers && !o->self)
		return perf_fail("nothing to do: give --listen or --peer ADDR; --help says more");
	if (!o->listen && (o->forever || o->clients != 1))
		return perf_fail("--forever and --clients need --listen");
	if (o->more > o->window)
		return perf_fail("--more %u is larger than the window of %u", o->more, o->window);
	return 0;
}

void perf_options_help(bool prompt)
{
	char left[48];
	size_t i;

	if (!prompt)
		printf("usage: pmf-perf [EAL options] -- --listen [options]\n"
		       "       pmf-perf [EAL options] -- --peer ADDR[:PORT] [options]\n"
		       "       pmf-perf [EAL options] -- --self [options]\n"
		       "Latency, bandwidth and message rate of a libfabric provider. EAL options\n"
		       "start DPDK in this program, and the provider pmf shares it; without them\n"
		       "the provider starts it. --no-pci is added unless -a names a device.\n"
		       "Providers pmf and tcp take addresses (an IPv6 one in brackets), shm takes\n"
		       "names. Exit status: 0 done, 1 failed, 2 bad options.\n\n");
	for (i = 0; i < N_OPTIONS; i++) {
		const struct option *o = &options[i];

		if (prompt) {
			if (!o->prompt)
				continue;
			snprintf(left, sizeof(left), "set %s %s", o->name,
				 o->arg ? o->arg : "on|off");
		} else {
			snprintf(left, sizeof(left), "%c%c%c --%s %s", o->letter ? '-' : ' ',
				 o->letter ? o->letter : ' ', o->letter ? ',' : ' ', o->name,
				 o->arg ? o->arg : "");
		}
		printf("  %-24s %s\n", left, o->help);
	}
}

void perf_options_show(const struct perf_options *o)
{
	unsigned int i;

	printf("provider %s, port %s, progress %s, threading %s\n", o->provider, o->port,
	       o->auto_progress ? "auto" : "manual", o->thread_safe ? "safe" : "domain");
	for (i = 0; i < o->n_peers; i++)
		printf("peer %s\n", o->peers[i]);
	printf("mode");
	for (i = 0; i < o->n_modes; i++)
		printf("%c%s", i ? ',' : ' ', mode_names[o->modes[i]]);
	printf("\nsize");
	for (i = 0; i < o->n_sizes; i++)
		printf("%c%zu", i ? ',' : ' ', o->sizes[i]);
	printf("\ndirection %s, window %u, more %u, inject %s, verify %s\n",
	       direction_names[o->direction], o->window, o->more, choice_names[o->inject],
	       choice_names[o->verify ? PERF_ON : PERF_OFF]);
	if (o->count)
		printf("count %llu\n", (unsigned long long)o->count);
	else
		printf("duration %gs\n", (double)o->duration_ns / 1e9);
}

const char *perf_mode_name(enum perf_mode mode)
{
	return mode < PERF_MODES ? mode_names[mode] : "?";
}

const char *perf_direction_name(enum perf_direction direction)
{
	return direction <= PERF_BOTH ? direction_names[direction] : "?";
}
