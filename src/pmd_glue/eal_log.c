/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * EAL's output on its way to the caller's log: the log stream, and the usage text and getopt's
 * complaints, which EAL and libc print past it. State is the process's; EAL is one a process.
 */
#include "pmd_glue/eal_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_log.h>

enum { LINE_MAX_LEN = 512 };

/* A line in the making. One a thread: EAL logs from several. */
struct line {
	char text[LINE_MAX_LEN];
	size_t len;
};

static pmf_log_fn log_fn;
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static char first_error[LINE_MAX_LEN];

static FILE *real_stdout, *real_stderr;
static FILE *divert_out, *divert_err;
static __thread bool diverting;

/* Of several complaints the first is the cause, the others follow from it. */
static void remember(const char *text)
{
	pthread_mutex_lock(&error_lock);
	if (!first_error[0])
		snprintf(first_error, sizeof(first_error), "%s", text);
	pthread_mutex_unlock(&error_lock);
}

void pmf_eal_log_first_error(char *buf, size_t len)
{
	pthread_mutex_lock(&error_lock);
	snprintf(buf, len, "%s", first_error);
	pthread_mutex_unlock(&error_lock);
}

static void line_end(struct line *l, enum pmf_log_level level)
{
	const bool was = diverting;

	l->text[l->len] = '\0';
	l->len = 0;
	/* What the log itself prints must not come back here. */
	diverting = false;
	if (l->text[0] && log_fn)
		log_fn(level, l->text);
	diverting = was;
}

static void line_add(struct line *l, const char *buf, size_t size, enum pmf_log_level level)
{
	for (; size > 0; size--, buf++) {
		if (*buf == '\n') {
			line_end(l, level);
			continue;
		}
		if (l->len < LINE_MAX_LEN - 1)
			l->text[l->len++] = *buf;
	}
}

/* Our warnings are for what hinders; EAL calls a missing 1 GB hugepage a warning. */
static enum pmf_log_level level_of(int rte_level)
{
	if (rte_level > 0 && rte_level <= (int)RTE_LOG_ERR)
		return PMF_LOG_WARN;
	return rte_level <= (int)RTE_LOG_NOTICE ? PMF_LOG_INFO : PMF_LOG_DEBUG;
}

static ssize_t log_write(void *cookie, const char *buf, size_t size)
{
	static __thread struct line line;
	const enum pmf_log_level level = level_of(rte_log_cur_msg_loglevel());
	char text[LINE_MAX_LEN];

	if (level == PMF_LOG_WARN && size > 1) {
		snprintf(text, sizeof(text), "%.*s", (int)(size - (buf[size - 1] == '\n')), buf);
		remember(text);
	}
	line_add(&line, buf, size, level);
	return (ssize_t)size;
}

void pmf_eal_log_open(pmf_log_fn log)
{
	static const cookie_io_functions_t io = {.write = log_write};
	FILE *f;

	log_fn = log;
	f = fopencookie(NULL, "w", io);
	if (f)
		rte_openlog_stream(f); /* lives as long as EAL: never closed */
}

static ssize_t divert_write(void *cookie, const char *buf, size_t size)
{
	static __thread struct line line;
	const bool is_err = cookie == &real_stderr;

	if (!diverting)
		return (ssize_t)fwrite(buf, 1, size, *(FILE **)cookie);
	if (is_err && size > 1 && memcmp(buf, "EAL: ", PMF_MIN(size, 5u)) != 0) {
		char text[LINE_MAX_LEN];

		snprintf(text, sizeof(text), "%.*s", (int)(size - (buf[size - 1] == '\n')), buf);
		remember(text);
	}
	line_add(&line, buf, size, PMF_LOG_DEBUG);
	return (ssize_t)size;
}

static FILE *divert_open(FILE **real)
{
	static const cookie_io_functions_t io = {.write = divert_write};
	FILE *f = fopencookie(real, "w", io);

	/* Unbuffered, so that the write happens on the thread that printed. */
	if (f)
		setvbuf(f, NULL, _IONBF, 0);
	return f;
}

/*
 * glibc's stdout and stderr are variables that may be set. The streams made here are kept, since
 * another thread may still be inside one.
 */
void pmf_eal_stdio_divert(void)
{
#ifdef __GLIBC__
	if (!divert_out)
		divert_out = divert_open(&real_stdout);
	if (!divert_err)
		divert_err = divert_open(&real_stderr);
	if (!divert_out || !divert_err)
		return;
	real_stdout = stdout;
	real_stderr = stderr;
	diverting = true;
	stdout = divert_out;
	stderr = divert_err;
#endif
}

void pmf_eal_stdio_restore(void)
{
#ifdef __GLIBC__
	if (!diverting)
		return;
	stdout = real_stdout;
	stderr = real_stderr;
	diverting = false;
#endif
}
