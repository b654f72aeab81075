/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_SELF_H
#define PERF_SELF_H

#include <stdbool.h>

#include "options.h"

/**
 * Messages between two endpoints of this program, or between two in each of several threads: a row
 * for each mode and size of the options.
 * @param stop  asked now and then; true: the user wants the end
 * @return 0; -1 with perf_error() set
 */
int perf_self(const struct perf_options *o, bool (*stop)(void *arg));

#endif
