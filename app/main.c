/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

#include "eal.h"
#include "error.h"
#include "job.h"
#include "options.h"
#include "prompt.h"
#include "report.h"
#include "self.h"
#include "session.h"

/* pmf-perf: the start and the end of the program. */

static struct perf_options options;
static struct perf_session session;
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = 1;
}

static bool tick(void *arg)
{
	return (options.interactive && perf_prompt_tick(NULL)) || interrupted;
}

static int find_separator(int argc, char *argv[])
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return i;
	}
	return 0;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	/* A second one ends the program whatever it does. */
	action.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int pin(int core)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(core, &mask);
	if (sched_setaffinity(0, sizeof(mask), &mask))
		return perf_fail("there is no processor %d for this program", core);
	return 0;
}

static int start(int n_eal, char *argv[])
{
	bool pmf = strncmp(options.provider, "pmf", 3) == 0;

	if (n_eal > 1 && !pmf)
		fprintf(stderr, "pmf-perf: EAL options mean nothing to provider %s\n",
			options.provider);
	if (n_eal > 1 && pmf && perf_eal_start(n_eal, argv, options.verbose))
		return -1;
	return options.core >= 0 ? pin(options.core) : 0;
}

static int client(void)
{
	int rc;

	if (options.interactive) {
		rc = perf_prompt_client();
	} else {
		rc = perf_job_client(&session, &options);
		if (rc == 0 && interrupted)
			rc = perf_fail("interrupted");
	}
	if (session.open)
		perf_session_bye(&session);
	perf_session_close(&session);
	return rc;
}

static int work(void)
{
	int rc;

	catch_signals();
	session.tick = tick;
	if (options.interactive)
		perf_prompt_init(&session, &options);
	perf_report_begin(&options);
	if (options.self)
		rc = perf_self(&options, tick);
	else
		rc = options.listen ? perf_job_server(&session, &options) : client();
	perf_report_end(rc && perf_error()[0] ? perf_error() : NULL);
	return rc;
}

static int complain(int status)
{
	fflush(stdout);
	if (perf_error()[0])
		fprintf(stderr, "pmf-perf: %s\n", perf_error());
	return status;
}

int main(int argc, char *argv[])
{
	int at = find_separator(argc, argv);

	perf_options_init(&options);
	if (perf_options_parse(&options, argc - at - 1, argv + at + 1))
		return complain(2);
	if (options.help) {
		perf_options_help(false);
		return 0;
	}
	if (options.version) {
		printf("pmf-perf " PERF_VERSION ", libfabric %u.%u\n", FI_MAJOR(fi_version()),
		       FI_MINOR(fi_version()));
		return 0;
	}
	if (perf_options_check(&options))
		return complain(2);
	if (start(at, argv) || work())
		return complain(1);
	if (fflush(stdout) || ferror(stdout)) {
		perf_fail("the results could not be written");
		return complain(1);
	}
	return 0;
}
