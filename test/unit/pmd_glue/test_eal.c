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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_lcore.h>

#include "../unit.h"

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

/* ---- telemetry sockets of other processes; each test has a file prefix of its own ---- */

static char prefix_option[64], rundir[256];

static void own_prefix(void)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	const char *base = geteuid() == 0 ? "/var/run" : xdg ? xdg : "/tmp";
	char top[128];

	snprintf(prefix_option, sizeof(prefix_option), "--file-prefix=pmftest%d", (int)getpid());
	snprintf(top, sizeof(top), "%s/dpdk", base);
	mkdir(top, 0700);
	snprintf(rundir, sizeof(rundir), "%s/pmftest%d", top, (int)getpid());
	mkdir(rundir, 0700);
}

static struct sockaddr_un socket_name(const char *suffix)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.64s/dpdk_telemetry.v2%s", rundir, suffix);
	return sun;
}

static void remove_rundir(void)
{
	static const char *const suffix[] = {"", ":1", ":2"};

	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(suffix); i++)
		unlink(socket_name(suffix[i]).sun_path);
	rmdir(rundir);
}

static char warning[512];

static void keep_warning(enum pmf_log_level level, const char *line)
{
	if (level == PMF_LOG_WARN && strstr(line, "telemetry"))
		snprintf(warning, sizeof(warning), "%s", line);
}

static int start_with_prefix(void)
{
	const struct pmf_eal_conf conf = {
		.huge = PMF_HUGE_OFF, .extra = prefix_option, .log = keep_warning};

	alarm(100); /* ends a start that hangs */
	CHECK(pmf_eal_start(&conf, err, sizeof(err)) == 0);
	alarm(0);
	return 0;
}

static int child_without_telemetry(void)
{
	CHECK(start_with_prefix() == 0);
	CHECK(strstr(warning, socket_name("").sun_path));
	/* the socket that hangs is still there, and there is none of ours */
	CHECK(access(socket_name("").sun_path, F_OK) == 0);
	CHECK(access(socket_name(":1").sun_path, F_OK) != 0);
	return 0;
}

/* A process that hangs: it listens and never accepts. @param full  others have tried already */
static void beside_a_hung_process(bool full)
{
	int server = socket(AF_UNIX, SOCK_SEQPACKET, 0), client[8], n = 0;
	struct sockaddr_un sun;

	own_prefix();
	sun = socket_name("");
	CU_ASSERT_EQUAL_FATAL(bind(server, (struct sockaddr *)&sun, sizeof(sun)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(server, 1), 0);
	while (full && n < 8) {
		client[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (connect(client[n++], (struct sockaddr *)&sun, sizeof(sun)))
			break;
	}
	CU_ASSERT_EQUAL(in_child(child_without_telemetry), 0);
	while (n)
		close(client[--n]);
	close(server);
	remove_rundir();
}

static void test_a_hung_process_does_not_hold_us_up(void)
{
	beside_a_hung_process(false);
	beside_a_hung_process(true);
}

static int child_with_telemetry(void)
{
	CHECK(start_with_prefix() == 0);
	CHECK(warning[0] == '\0');
	CHECK(access(socket_name("").sun_path, F_OK) == 0);
	return 0;
}

static int child_beside_a_living_one(void)
{
	CHECK(start_with_prefix() == 0);
	CHECK(warning[0] == '\0');
	CHECK(access(socket_name(":1").sun_path, F_OK) == 0);
	return 0;
}

/* Runs EAL until its standard input ends. */
static pid_t living_process(int *input)
{
	int in[2], ready[2];
	char byte = 0;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe(in) || pipe(ready), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(in[1]);
		byte = (char)child_with_telemetry();
		if (write(ready[1], &byte, 1) != 1 || read(in[0], &byte, 1) != 0)
			exit(1);
		exit(0);
	}
	close(in[0]);
	close(ready[1]);
	CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
	CU_ASSERT_EQUAL(byte, 0);
	close(ready[0]);
	*input = in[1];
	return pid;
}

static void test_living_processes_all_have_telemetry(void)
{
	int input, status = -1;
	pid_t pid;

	own_prefix();
	/* one that is gone has left its socket behind: it is taken over */
	{
		int dead = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		struct sockaddr_un sun = socket_name("");

		CU_ASSERT_EQUAL(bind(dead, (struct sockaddr *)&sun, sizeof(sun)), 0);
		close(dead);
	}
	pid = living_process(&input);
	CU_ASSERT_EQUAL(in_child(child_beside_a_living_one), 0);
	close(input);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	remove_rundir();
}

int main(void)
{
	static const struct unit_test tests[] = {
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
		{"a hung process does not hold us up", test_a_hung_process_does_not_hold_us_up},
		{"living processes all have telemetry", test_living_processes_all_have_telemetry},
	};

	return test_main("eal", tests, PMF_ARRAY_SIZE(tests));
}
