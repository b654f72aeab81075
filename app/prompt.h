/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_PROMPT_H
#define PERF_PROMPT_H

#include "options.h"
#include "session.h"

/*
 * The interactive side. Everything runs in the main thread: while a run is under way, its loop
 * calls perf_prompt_tick(), which reads and obeys what has been typed.
 */

void perf_prompt_init(struct perf_session *s, struct perf_options *o);

/** For session.tick: obey what has been typed. @return true if the run is to end */
bool perf_prompt_tick(void *arg);

/**
 * Client: read commands until "quit" or the end of the input.
 * @return 0; -1 if the input is no terminal and a command failed (the sentence is out already)
 */
int perf_prompt_client(void);

#endif
