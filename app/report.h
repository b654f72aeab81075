/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include "run.h"

/* The output of one program run: rows as they come, in one format. Main thread only. */

/** Begin: for JSON the head of the document. */
void perf_report_begin(const struct perf_options *o);

/** What opening the domain took: a line of its own with --verbose, and in JSON. */
void perf_report_domain(const struct perf_fabric *f);

/** One row. */
void perf_report_add(const struct perf_result *r);

/** End of the document; error is NULL or the sentence that also goes to stderr. */
void perf_report_end(const char *error);

/** A word to the user that is no result: on stdout with text, else on stderr. */
void perf_report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
