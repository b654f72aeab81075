/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * EAL's manners: what a start must leave as it was. EAL starts once a process, so each test forks a
 * child that has not started it; the child's exit status says which check failed.
 */
#include "pmd_glue/eal.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "pmd_glue_test.h"

static char err[512];

/* In a child: the number of the line that failed, in eight bits. */
#define CHECK(cond)                                                                      \
	do {                                                                             \
		if (!(cond)) {                                                           \
			fprintf(stderr, "\n  line %d: %s (%s)\n", __LINE__, #cond, err); \
			return 1;                                                        \
		}                                                                        \
	} while (0)

static int start(enum pmf_huge huge, const char *extra)
{
	const struct pmf_eal_conf conf = {.huge = huge, .extra = extra};

	err[0] = '\0';
	return pmf_eal_start(&conf, err, sizeof(err));
}

/* @return the child's status: 0 went well */
static int in_child(int (*fn)(void))
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(fn()); /* not _exit(): EAL's telemetry socket is to go */
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	return status;
}

static void *start_in_thread(void *arg)
{
	cpu_set_t *set = arg;

	if (start(PMF_HUGE_OFF, NULL) != 0)
		CPU_ZERO(set);
	else
		sched_getaffinity(0, sizeof(*set), set);
	return NULL;
}

static int child_affinity(void)
{
	cpu_set_t before, after, helper;
	pthread_t t;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	CHECK(pthread_create(&t, NULL, start_in_thread, &helper) == 0);
	pthread_join(t, NULL);
	sched_getaffinity(0, sizeof(after), &after);
	CHECK(CPU_EQUAL(&before, &after));
	CHECK(CPU_EQUAL(&before, &helper));
	return 0;
}

static void test_affinity_stays(void)
{
	CU_ASSERT_EQUAL(in_child(child_affinity), 0);
}

static int child_signals(void)
{
	struct sigaction before[NSIG], after;
	int sig;

	memset(before, 0, sizeof(before));
	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, NULL, &before[sig]);
	CHECK(start(PMF_HUGE_OFF, NULL) == 0);
	for (sig = 1; sig < NSIG; sig++) {
		memset(&after, 0, sizeof(after));
		sigaction(sig, NULL, &after);
		CHECK(after.sa_handler == before[sig].sa_handler);
	}
	return 0;
}

static void test_no_signal_handler_is_set(void)
{
	CU_ASSERT_EQUAL(in_child(child_signals), 0);
}

static int child_no_pci(void)
{
	CHECK(!pmf_eal_running());
	CHECK(start(PMF_HUGE_OFF, NULL) == 0);
	CHECK(pmf_eal_running());
	CHECK(!rte_eal_has_pci());
	CHECK(!rte_eal_has_hugepages());
	CHECK(rte_lcore_count() == 1);
	return 0;
}

static void test_no_pci_without_a_device(void)
{
	CU_ASSERT_EQUAL(in_child(child_no_pci), 0);
}

/* Runs with stdout and stderr in a file; nothing may be there in the end. */
static int quiet(int (*fn)(void))
{
	char path[] = "/tmp/pmf-eal-XXXXXX";
	const int file = mkstemp(path), keep = dup(2);
	off_t size;
	int ret;

	unlink(path);
	if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0)
		return 1;
	ret = fn();
	fflush(NULL);
	size = lseek(file, 0, SEEK_END);
	dup2(keep, 2);
	CHECK(size == 0);
	return ret;
}

static unsigned int logged;

static void count_lines(enum pmf_log_level level, const char *line)
{
	logged++;
}

static int logged_start(void)
{
	const struct pmf_eal_conf conf = {.huge = PMF_HUGE_OFF, .log = count_lines};

	CHECK(pmf_eal_start(&conf, err, sizeof(err)) == 0);
	CHECK(logged > 0);
	return 0;
}

static int child_output(void)
{
	return quiet(logged_start);
}

static void test_output_goes_to_the_log(void)
{
	CU_ASSERT_EQUAL(in_child(child_output), 0);
}

static int bad_start(void)
{
	CHECK(start(PMF_HUGE_OFF, "--no-such-option") == -EINVAL);
	CHECK(strstr(err, "--no-such-option"));
	CHECK(strstr(err, "FI_PMF_EAL"));
	CHECK(!pmf_eal_running());
	/* A second call says the same. */
	CHECK(start(PMF_HUGE_OFF, NULL) == -EINVAL);
	CHECK(strstr(err, "--no-such-option"));
	return 0;
}

/* One line of EAL's goes to stderr by itself: it is a FATAL one, and allowed. stdout is not. */
static int child_bad_words(void)
{
	char path[] = "/tmp/pmf-eal-XXXXXX";
	const int file = mkstemp(path);
	int ret;

	unlink(path);
	if (file < 0 || dup2(file, 1) < 0)
		return 1;
	ret = bad_start();
	/* Back in order, and not in the log. */
	printf("x");
	fflush(NULL);
	CHECK(lseek(file, 0, SEEK_END) == 1);
	return ret;
}

static void test_bad_words_are_named_and_stdout_is_clean(void)
{
	CU_ASSERT_EQUAL(in_child(child_bad_words), 0);
}

static int child_no_hugepages(void)
{
	const struct pmf_eal_conf conf = {.huge = PMF_HUGE_ON, .memory_mb = 1u << 30};

	CHECK(pmf_eal_start(&conf, err, sizeof(err)) == -ENOMEM);
	CHECK(strstr(err, "FI_PMF_HUGEPAGES"));
	return 0;
}

static void test_missing_hugepages_are_named(void)
{
	CU_ASSERT_EQUAL(in_child(child_no_hugepages), 0);
}

static int child_falls_back(void)
{
	const struct pmf_eal_conf conf = {.huge = PMF_HUGE_AUTO, .memory_mb = 64};

	CHECK(pmf_eal_start(&conf, err, sizeof(err)) == 0);
	return 0;
}

static void test_auto_starts_with_what_is_there(void)
{
	CU_ASSERT_EQUAL(in_child(child_falls_back), 0);
}

static int child_joins(void)
{
	char *argv[] = {(char *)(uintptr_t) "app",
			(char *)(uintptr_t) "--no-pci",
			(char *)(uintptr_t) "--no-huge",
			(char *)(uintptr_t) "--no-shconf",
			(char *)(uintptr_t) "--no-telemetry",
			(char *)(uintptr_t) "--log-level=error"};

	CHECK(rte_eal_init(PMF_ARRAY_SIZE(argv), argv) >= 0);
	CHECK(pmf_eal_running());
	CHECK(start(PMF_HUGE_ON, "--no-such-option") == 0);
	CHECK(pmf_clock_ns() > 0);
	return 0;
}

static void test_joins_what_the_application_started(void)
{
	CU_ASSERT_EQUAL(in_child(child_joins), 0);
}

static void test_several_processes_at_once(void)
{
	enum { N = 3 };
	pid_t pid[N];

	fflush(NULL);
	for (int i = 0; i < N; i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			exit(start(PMF_HUGE_OFF, NULL) == 0 ? 0 : 1);
	}
	for (int i = 0; i < N; i++) {
		int status = -1;

		CU_ASSERT_EQUAL(waitpid(pid[i], &status, 0), pid[i]);
		CU_ASSERT_EQUAL(status, 0);
	}
}

int main(void)
{
	static const struct glue_test tests[] = {
		{"the affinity stays", test_affinity_stays},
		{"no signal handler is set", test_no_signal_handler_is_set},
		{"no PCI without a device", test_no_pci_without_a_device},
		{"output goes to the log", test_output_goes_to_the_log},
		{"bad words are named, stdout is clean",
		 test_bad_words_are_named_and_stdout_is_clean},
		{"missing hugepages are named", test_missing_hugepages_are_named},
		{"auto starts with what is there", test_auto_starts_with_what_is_there},
		{"joins what the application started", test_joins_what_the_application_started},
		{"several processes at once", test_several_processes_at_once},
		{NULL},
	};
	static const struct glue_suite suite = {"eal", tests};

	return glue_run(&suite, 1);
}
