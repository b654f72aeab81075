/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_JOB_H
#define PERF_JOB_H

#include "options.h"
#include "session.h"

/**
 * Client: connect if that is still to be done, then all modes and sizes of the options, one row
 * each. Ends early when s->stop is set, after the row that was under way.
 * @return 0; -1 with perf_error() set, the peers told and the session closed
 */
int perf_job_client(struct perf_session *s, const struct perf_options *o);

/**
 * Server: serve the clients once, or again and again with --forever, until the user stops it.
 * @return 0; -1 with perf_error() set
 */
int perf_job_server(struct perf_session *s, const struct perf_options *o);

#endif
