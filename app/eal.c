/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "eal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "error.h"

/*
 * EAL's start in a program of its own. What EAL and its option parser print while it starts goes to
 * a memory file, so that a failure can be told in one sentence.
 */

struct silence {
	int out;
	int err;
	int heard;
};

static bool is_option(const char *arg, const char *name)
{
	size_t len = strcspn(arg, "=");

	/* getopt takes unique beginnings of long options too. */
	return len > 3 && strncmp(arg, name, len) == 0;
}

static bool allows_device(int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strncmp(argv[i], "-a", 2) == 0 || is_option(argv[i], "--allow"))
			return true;
	}
	return false;
}

static bool chooses_lcores(int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc; i++) {
		if (argv[i][0] == '-' && strchr("lcsS", argv[i][1] ? argv[i][1] : '-'))
			return true;
		if (is_option(argv[i], "--lcores"))
			return true;
	}
	return false;
}

static bool chooses_log(int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc; i++) {
		if (is_option(argv[i], "--log-level"))
			return true;
	}
	return false;
}

static int silence_begin(struct silence *s)
{
	int null;

	fflush(NULL);
	s->heard = memfd_create("eal", MFD_CLOEXEC);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	s->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	s->err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (s->heard < 0 || null < 0 || s->out < 0 || s->err < 0)
		return perf_fail("EAL's output cannot be caught: %s", strerror(errno));
	dup2(null, STDOUT_FILENO);
	dup2(s->heard, STDERR_FILENO);
	close(null);
	return 0;
}

static void silence_end(struct silence *s)
{
	fflush(NULL);
	dup2(s->out, STDOUT_FILENO);
	dup2(s->err, STDERR_FILENO);
	close(s->out);
	close(s->err);
}

static size_t heard_text(const struct silence *s, char *text, size_t room)
{
	ssize_t n = pread(s->heard, text, room - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* The first line that names a fault is nearest to the cause. */
static void find_cause(const struct silence *s, const char *program, char *cause, size_t room)
{
	static const char *const words[] = {"unrecognized", "invalid",	"Invalid", "annot", "ailed",
					    "rror",	    "requires", "No such", "not "};
	static char text[65536];
	char *line, *rest = text;
	size_t i;

	heard_text(s, text, sizeof(text));
	snprintf(cause, room, "%s", rte_strerror(rte_errno));
	while ((line = strsep(&rest, "\n"))) {
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			if (!strstr(line, words[i]))
				continue;
			/* "EAL: " or the program's name in front of it tells nothing new. */
			if (strncmp(line, "EAL: ", 5) == 0)
				line += 5;
			else if (strncmp(line, program, strlen(program)) == 0)
				line += strlen(program) + strspn(line + strlen(program), ": ");
			snprintf(cause, room, "%s", line);
			return;
		}
	}
}

/* rte_eal_init with its words caught. They are shown if asked for, or told in one sentence. */
static int init(int argc, char *argv[], bool verbose)
{
	static char text[65536];
	struct silence silence;
	char cause[256];
	int rc;

	if (silence_begin(&silence))
		return -1;
	rc = rte_eal_init(argc, argv);
	silence_end(&silence);
	if (rc < 0) {
		find_cause(&silence, argv[0], cause, sizeof(cause));
		perf_fail("EAL did not start: %s", cause);
	}
	if (verbose) {
		heard_text(&silence, text, sizeof(text));
		fputs(text, stderr);
	}
	close(silence.heard);
	return rc < 0 ? -1 : 0;
}

int perf_eal_start(int argc, char *argv[], bool verbose)
{
	static char no_pci[] = "--no-pci";
	static char **args; /* EAL keeps pointers into them: they live as long as the program */
	bool pinned = chooses_lcores(argc, argv);
	cpu_set_t mask;
	sigset_t pipe;
	int n = argc;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe, NULL);
	sched_getaffinity(0, sizeof(mask), &mask);
	args = calloc((size_t)argc + 2, sizeof(*args));
	if (!args)
		return perf_fail("no memory for EAL's arguments");
	memcpy(args, argv, sizeof(*args) * (size_t)argc);
	if (!allows_device(argc, argv))
		args[n++] = no_pci;
	if (init(n, args, verbose))
		return -1;
	/* Drivers tell of every step at the default level. */
	if (!verbose && !chooses_log(argc, argv))
		rte_log_set_global_level(RTE_LOG_WARNING);
	if (!pinned)
		sched_setaffinity(0, sizeof(mask), &mask);
	return 0;
}
