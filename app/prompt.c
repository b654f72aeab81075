/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "prompt.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "job.h"
#include "stats.h"

/* The line reader and the commands. One prompt a program, hence the one state below. */

static struct {
	struct perf_session *session;
	struct perf_options *options;
	char line[512];
	size_t len;
	bool overlong; /* the rest of the line is skipped */
	bool eof;
	bool terminal;
	bool running;
	bool start;
	bool stop;
	bool waiting; /* "wait": nothing more is read while a run is under way */
	bool quit;
	bool failed;
} prompt;

static void show_prompt(void)
{
	if (prompt.terminal && !prompt.quit && !prompt.eof) {
		printf("pmf-perf> ");
		fflush(stdout);
	}
}

static void complain(void)
{
	fflush(stdout);
	fprintf(stderr, "pmf-perf: %s\n", perf_error());
	perf_error_clear();
	prompt.failed = true;
}

static int do_start(char *args)
{
	if (prompt.options->listen)
		return perf_fail("a server starts when its clients do");
	if (prompt.running || prompt.start)
		return perf_fail("it is running already");
	prompt.start = true;
	return 0;
}

static int do_stop(char *args)
{
	if (!prompt.running)
		return perf_fail("nothing is running");
	prompt.stop = true;
	return 0;
}

static int do_wait(char *args)
{
	prompt.waiting = true;
	return 0;
}

static int do_show(char *args)
{
	const char *what = strsep(&args, " \t");

	if (what && strcmp(what, "stats") == 0)
		return perf_stats_show(prompt.session, args && strcmp(args, "all") == 0);
	if (what && strcmp(what, "peers") == 0)
		return perf_stats_peers(prompt.session);
	if (what && strcmp(what, "config") == 0) {
		perf_options_show(prompt.options);
		return 0;
	}
	return perf_fail("show what? stats, stats all, peers or config");
}

static int do_set(char *args)
{
	const char *name = strsep(&args, " \t");
	struct perf_options old = *prompt.options;

	if (prompt.running || prompt.start)
		return perf_fail("stop the run first");
	if (!name || !name[0])
		return perf_fail("set what? 'help set' names it");
	if (perf_options_set(prompt.options, name, args))
		return -1;
	if (perf_options_check(prompt.options)) {
		*prompt.options = old;
		return -1;
	}
	return 0;
}

static int do_quit(char *args)
{
	prompt.quit = true;
	prompt.stop = true;
	return 0;
}

static int do_help(char *args);

static const struct {
	const char *name;
	const char *args;
	const char *help;
	int (*run)(char *args);
} commands[] = {
	{"start", "", "connect if needed, and do the work that is set", do_start},
	{"stop", "", "end the work that is under way, with its result", do_stop},
	{"wait", "", "read no further command before the work is done", do_wait},
	{"show", "stats [all]", "counters of the provider (not zero, or all)", do_show},
	{"show", "peers", "what the provider knows of each peer", do_show},
	{"show", "config", "what is set", do_show},
	{"set", "NAME VALUE", "change an option; 'help set' names them", do_set},
	{"help", "[set]", "this list", do_help},
	{"quit", "", "end", do_quit},
	{"exit", "", "end", do_quit},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int do_help(char *args)
{
	char left[48];
	size_t i;

	if (args && strcmp(args, "set") == 0) {
		perf_options_help(true);
		return 0;
	}
	for (i = 0; i < N_COMMANDS; i++) {
		snprintf(left, sizeof(left), "%s %s", commands[i].name, commands[i].args);
		printf("  %-18s %s\n", left, commands[i].help);
	}
	return 0;
}

static int obey(char *line)
{
	char *args, *name;
	size_t i, len;

	line += strspn(line, " \t");
	len = strlen(line);
	while (len && strchr(" \t\r", line[len - 1]))
		line[--len] = '\0';
	if (!line[0] || line[0] == '#')
		return 0;
	args = line;
	name = strsep(&args, " \t");
	if (args)
		args += strspn(args, " \t");
	for (i = 0; i < N_COMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run(args);
	}
	return perf_fail("'%s' is no command; 'help' names them", name);
}

/* One whole line out of the buffer, if there is one. */
static bool obey_line(void)
{
	char *end = memchr(prompt.line, '\n', prompt.len);
	size_t used;

	if (!end && prompt.len == sizeof(prompt.line)) {
		prompt.overlong = true;
		prompt.len = 0;
	}
	if (!end && prompt.eof && prompt.len) {
		end = prompt.line + prompt.len++;
	} else if (!end) {
		return false;
	}
	*end = '\0';
	if (prompt.overlong)
		perf_fail("the line is too long");
	if (prompt.overlong || obey(prompt.line))
		complain();
	prompt.overlong = false;
	used = (size_t)(end - prompt.line) + 1;
	prompt.len -= used;
	memmove(prompt.line, prompt.line + used, prompt.len);
	fflush(stdout);
	return true;
}

/* May the next line be obeyed now? */
static bool may_obey(void)
{
	if (prompt.quit || prompt.start)
		return false;
	return !(prompt.running && (prompt.waiting || prompt.stop));
}

static void read_input(int timeout_ms)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	size_t room = sizeof(prompt.line) - prompt.len;
	ssize_t n;

	/* One place is left for the end of a last line without a newline. */
	if (prompt.eof || room <= 1 || poll(&in, 1, timeout_ms) <= 0)
		return;
	n = read(STDIN_FILENO, prompt.line + prompt.len, room - 1);
	if (n > 0)
		prompt.len += (size_t)n;
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		prompt.eof = true;
	if (n > 0 && prompt.len == sizeof(prompt.line) - 1 &&
	    !memchr(prompt.line, '\n', prompt.len)) {
		prompt.overlong = true;
		prompt.len = 0;
	}
}

static void obey_input(int timeout_ms)
{
	bool obeyed = false;

	read_input(timeout_ms);
	while (may_obey() && obey_line())
		obeyed = true;
	if (obeyed && !prompt.start)
		show_prompt();
}

void perf_prompt_init(struct perf_session *s, struct perf_options *o)
{
	memset(&prompt, 0, sizeof(prompt));
	prompt.session = s;
	prompt.options = o;
	prompt.terminal = isatty(STDIN_FILENO);
	if (o->listen)
		show_prompt();
}

bool perf_prompt_tick(void *arg)
{
	static uint64_t last;
	uint64_t now = perf_now();

	/* A system call now and then, not at every turn of a waiting loop. */
	if (now - last > 5 * PERF_NS_PER_MS) {
		last = now;
		if (may_obey())
			obey_input(0);
	}
	if (prompt.options->listen && prompt.eof && !prompt.terminal)
		return prompt.stop;
	return prompt.stop;
}

static void run_once(void)
{
	prompt.start = false;
	prompt.stop = false;
	prompt.running = true;
	show_prompt();
	if (perf_job_client(prompt.session, prompt.options))
		complain();
	prompt.running = false;
	prompt.waiting = false;
	show_prompt();
}

/* Keep the peers and learn of their end while nothing runs. */
static void idle(void)
{
	struct perf_session *s = prompt.session;
	bool (*tick)(void *) = s->tick;
	int rc;

	if (!s->open)
		return;
	s->tick = NULL;
	rc = perf_session_pulse(s, perf_now());
	s->tick = tick;
	if (rc == 0)
		return;
	complain();
	perf_session_close(s);
	show_prompt();
}

int perf_prompt_client(void)
{
	show_prompt();
	while (!prompt.quit && !(prompt.eof && prompt.len == 0)) {
		obey_input(10);
		prompt.waiting = false;
		if (prompt.start)
			run_once();
		idle();
	}
	return prompt.failed && !prompt.terminal ? -1 : 0;
}
