/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_ERROR_H
#define PERF_ERROR_H

#include <stdbool.h>

/**
 * Note what went wrong, as one sentence without a full stop. The first sentence since the last
 * perf_error_clear() stays: it is the nearest to the cause. Main thread only.
 * @return always -1, so that a failing function can return the call
 */
int perf_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** Put "who: " in front of the sentence that is noted, if there is one. @return always -1 */
int perf_fail_about(const char *who);

/** @return the sentence, "" if there is none. */
const char *perf_error(void);

void perf_error_clear(void);

#endif
