/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_SELF_H
#define PERF_SELF_H

#include <stdbool.h>

#include "options.h"

/**
 * Ping-pong between two endpoints of this program, all sizes of the options, one row each.
 * @param stop  asked now and then; true: the user wants the end
 * @return 0; -1 with perf_error() set
 */
int perf_self(const struct perf_options *o, bool (*stop)(void *arg));

#endif
