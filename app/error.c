/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One sentence at most: a program that fails says why once. Each thread has its own. */
static _Thread_local char sentence[1024];

int perf_fail(const char *fmt, ...)
{
	va_list ap;

	if (sentence[0])
		return -1;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return -1;
}

int perf_fail_about(const char *who)
{
	char cause[sizeof(sentence)];

	if (!sentence[0])
		return -1;
	memcpy(cause, sentence, sizeof(cause));
	snprintf(sentence, sizeof(sentence), "%s: %.900s", who, cause);
	return -1;
}

const char *perf_error(void)
{
	return sentence;
}

void perf_error_clear(void)
{
	sentence[0] = '\0';
}
