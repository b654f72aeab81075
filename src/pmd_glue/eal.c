/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * EAL's start: arguments made from the configuration, its descriptors closed on exec, its child
 * processes kept away. All state is the process's, since EAL is.
 */
#include "pmd_glue/eal.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_version.h>

#include "pmd_glue/eal_internal.h"

enum { MAX_ARGS = 64, DEFAULT_MEMORY_MB = 256, TURN_MS = 10000 };

/* Locked by who counts and takes hugepages: there everywhere, for every user to read. */
#define TURN "/dev"

static struct {
	pthread_mutex_t lock;
	bool tried;	       /* written under the lock */
	int result;	       /* of the first start */
	char err[512];	       /* its sentence */
	_Atomic bool running;  /* written under the lock, read by anyone */
	_Atomic bool is_child; /* written in a forked child only */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct args {
	char *v[MAX_ARGS + 1];
	int n;
	bool full;
};

static void args_add(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void args_add(struct args *a, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	if (a->n == MAX_ARGS) {
		a->full = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	if (s)
		a->v[a->n++] = s;
	else
		a->full = true;
}

static void args_free(struct args *a)
{
	while (a->n > 0)
		free(a->v[--a->n]);
}

/* Is option @p name (as "-m" or "--lcores") among the words that the user gave? */
static bool extra_has(const char *extra, const char *name)
{
	const size_t len = strlen(name);
	const char *p = extra;

	while (p && *p) {
		while (isspace((unsigned char)*p))
			p++;
		/* "-m512" is short option and value; "--lcores=…" and "--lcores …" both occur. */
		if (strncmp(p, name, len) == 0 && (name[1] != '-' || p[len] == '\0' ||
						   p[len] == '=' || isspace((unsigned char)p[len])))
			return true;
		while (*p && !isspace((unsigned char)*p))
			p++;
	}
	return false;
}

static bool extra_has_any(const char *extra, const char *const *names)
{
	for (; *names; names++)
		if (extra_has(extra, *names))
			return true;
	return false;
}

/* "0-3,7": the processors this thread may run on, in the syntax of --lcores. */
static bool affinity_list(char *buf, size_t len)
{
	cpu_set_t set;
	size_t at = 0;
	int cpu, last;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return false;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu = last + 1) {
		last = cpu;
		if (!CPU_ISSET(cpu, &set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
			last++;
		at += (size_t)snprintf(buf + at, len - at, last > cpu ? "%s%d-%d" : "%s%d",
				       at ? "," : "", cpu, last);
		if (at >= len)
			return false;
	}
	return at > 0;
}

static uint64_t hugepages_count(const char *pool, const char *of)
{
	char path[sizeof("/sys/kernel/mm/hugepages//free_hugepages") + NAME_MAX];
	unsigned long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/%s_hugepages", pool, of);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

/*
 * Bytes of hugepages of all sizes that are to be had: those that somebody has mapped and not
 * touched yet are counted as free, but taken.
 */
static uint64_t hugepages_free(void)
{
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	uint64_t total = 0;
	struct dirent *e;

	if (!dir)
		return 0;
	while ((e = readdir(dir))) {
		uint64_t count, reserved;
		unsigned long kb;

		if (sscanf(e->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		count = hugepages_count(e->d_name, "free");
		reserved = hugepages_count(e->d_name, "resv");
		if (count > reserved)
			total += (count - reserved) * kb * 1024;
	}
	closedir(dir);
	return total;
}

/*
 * In memory mode takes anonymous hugepages, for which the kernel asks neither a mount nor a right,
 * so that free pages are all it needs.
 */
static bool hugepages_enough(unsigned int mb)
{
	return hugepages_free() >= (uint64_t)mb << 20;
}

bool pmf_eal_hugepages_usable(void)
{
	return hugepages_enough(DEFAULT_MEMORY_MB);
}

/* What EAL's run-time files are called by: the user's --file-prefix, or EAL's own word. */
static void file_prefix(const char *extra, char *buf, size_t len)
{
	static const char option[] = "--file-prefix";
	const char *at = extra_has(extra, option) ? strstr(extra, option) + strlen(option) : "";
	size_t n;

	at += strspn(at, "= \t\n");
	n = strcspn(at, " \t\n");
	snprintf(buf, len, "%.*s", n ? (int)n : 3, n ? at : "rte");
}

static void args_telemetry(struct args *a, const struct pmf_eal_conf *conf)
{
	char prefix[64], why[256], line[300];

	if (extra_has(conf->extra, "--no-telemetry"))
		return;
	file_prefix(conf->extra, prefix, sizeof(prefix));
	if (pmf_eal_telemetry_possible(prefix, why, sizeof(why)))
		return;
	args_add(a, "--no-telemetry");
	snprintf(line, sizeof(line), "no telemetry: %s", why);
	if (conf->log)
		conf->log(PMF_LOG_WARN, line);
}

static int args_memory(struct args *a, const struct pmf_eal_conf *conf, char *err, size_t errlen)
{
	static const char *const mode[] = {"--no-huge",	   "--in-memory", "--huge-dir",
					   "--legacy-mem", "--no-shconf", NULL};
	static const char *const amount[] = {"-m", "--socket-mem", NULL};
	const unsigned int mb = conf->memory_mb ? conf->memory_mb : DEFAULT_MEMORY_MB;

	if (!extra_has_any(conf->extra, mode)) {
		const bool enough = hugepages_enough(mb);

		if (conf->huge == PMF_HUGE_ON && !enough) {
			snprintf(err, errlen,
				 "FI_PMF_HUGEPAGES=on, but fewer than %u MB of hugepages are free; "
				 "reserve some (sysctl vm.nr_hugepages=%u), or set it to auto",
				 mb, mb / 2 + 64);
			return -ENOMEM;
		}
		if (conf->huge != PMF_HUGE_OFF && enough) {
			args_add(a, "--in-memory");
		} else {
			args_add(a, "--no-huge");
			args_add(a, "--no-shconf");
		}
	}
	if (!extra_has_any(conf->extra, amount)) {
		args_add(a, "-m");
		args_add(a, "%u", mb);
	}
	if (conf->single_file && !extra_has(conf->extra, "--single-file-segments"))
		args_add(a, "--single-file-segments");
	return 0;
}

static int args_make(struct args *a, const struct pmf_eal_conf *conf, char *err, size_t errlen)
{
	static const char *const lcores[] = {"-l", "-c", "--lcores", NULL};
	static const char *const allow[] = {"-a", "--allow", "--no-pci", NULL};
	char cpus[1024];
	unsigned int i;
	int ret;

	args_add(a, "pmf");
	for (i = 0; i < conf->npci; i++) {
		args_add(a, "-a");
		args_add(a, "%s", conf->pci[i]);
	}
	/* Without a device named, EAL would take every NIC that is bound to a userspace driver. */
	if (conf->npci == 0 && !extra_has_any(conf->extra, allow))
		args_add(a, "--no-pci");
	if (!extra_has_any(conf->extra, lcores) && affinity_list(cpus, sizeof(cpus)))
		args_add(a, "--lcores=0@(%s)", cpus);
	args_telemetry(a, conf);
	ret = args_memory(a, conf, err, errlen);
	if (ret)
		return ret;
	if (conf->extra) {
		char *copy = strdup(conf->extra), *save = NULL, *w;

		for (w = copy ? strtok_r(copy, " \t\n", &save) : NULL; w;
		     w = strtok_r(NULL, " \t\n", &save))
			args_add(a, "%s", w);
		free(copy);
	}
	if (a->full) {
		snprintf(err, errlen, "FI_PMF_EAL holds too many words");
		return -EINVAL;
	}
	return 0;
}

static void on_fork_child(void)
{
	atomic_store_explicit(&state.is_child, true, memory_order_relaxed);
}

/*
 * An EAL that somebody else started. There is no public question for it; but the count of lcores
 * and the frequency of the timer are both set only while EAL starts, the latter near its end.
 */
static bool eal_foreign(void)
{
	return rte_lcore_count() > 0 && rte_get_tsc_hz() > 0;
}

static int init_error(char *err, size_t errlen)
{
	const int e = rte_errno;
	char why[256];

	pmf_eal_log_first_error(why, sizeof(why));
	switch (e) {
	case EINVAL:
		snprintf(err, errlen, "EAL refuses its arguments (FI_PMF_EAL)%s%s",
			 why[0] ? ": " : "", why);
		return -EINVAL;
	case EALREADY:
		snprintf(err, errlen, "EAL has run in this process before and cannot start again");
		return -EALREADY;
	case ENOMEM:
		snprintf(err, errlen,
			 "EAL finds no memory (FI_PMF_HUGEPAGES, FI_PMF_MEMORY_MB)%s%s",
			 why[0] ? ": " : "", why);
		return -ENOMEM;
	default:
		snprintf(err, errlen, "EAL does not start%s%s", why[0] ? ": " : "", why);
		return e ? -e : -EIO;
	}
}

/*
 * Programs that start together would count the same hugepages and all take them, so they do it one
 * after another: from the count until EAL has what it wants. One that is stuck holds up the others
 * for a time only. @return a descriptor for turn_give(), -1 without a turn
 */
static int turn_take(const struct pmf_eal_conf *conf)
{
	const struct timespec pause = {.tv_nsec = PMF_NS_PER_MS};
	int fd = conf->huge == PMF_HUGE_OFF ? -1 : open(TURN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int ms = 0; fd >= 0 && ms < TURN_MS && flock(fd, LOCK_EX | LOCK_NB) != 0;
	     ms++)
		nanosleep(&pause, NULL);
	return fd;
}

static void turn_give(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int eal_init(const struct pmf_eal_conf *conf, char *err, size_t errlen)
{
	const int turn = turn_take(conf);
	struct pmf_fdset before;
	struct args a = {.n = 0};
	/* EAL permutes the vector: the strings are freed from ours. */
	char *argv[MAX_ARGS + 1];
	int ret = args_make(&a, conf, err, errlen);

	if (ret) {
		turn_give(turn);
		args_free(&a);
		return ret;
	}
	memcpy(argv, a.v, sizeof(argv));
	argv[a.n] = NULL;
	pmf_clock_prepare();
	pmf_fdset_take(&before);
	pmf_eal_log_open(conf->log);
	/* Only words of the user's can be wrong, and make EAL print its usage. */
	if (conf->extra)
		pmf_eal_stdio_divert();
	ret = rte_eal_init(a.n, argv);
	turn_give(turn);
	if (conf->extra)
		pmf_eal_stdio_restore();
	ret = ret < 0 ? init_error(err, errlen) : 0;
	pmf_fdset_cloexec_new(&before);
	args_free(&a);
	return ret;
}

int pmf_eal_start(const struct pmf_eal_conf *conf, char *err, size_t errlen)
{
	int ret;

	if (atomic_load_explicit(&state.is_child, memory_order_relaxed)) {
		snprintf(err, errlen,
			 "this process is a forked child of one that runs EAL; "
			 "open the fabric in the child before the parent does, or exec");
		return -ECHILD;
	}
	pthread_mutex_lock(&state.lock);
	if (!state.tried) {
		state.tried = true;
		state.err[0] = '\0';
		state.result = eal_foreign() ? 0 : eal_init(conf, state.err, sizeof(state.err));
		if (state.result == 0) {
			pmf_clock_start();
			pthread_atfork(NULL, NULL, on_fork_child);
			atomic_store_explicit(&state.running, true, memory_order_release);
		}
	}
	ret = state.result;
	if (ret)
		snprintf(err, errlen, "%s", state.err);
	pthread_mutex_unlock(&state.lock);
	return ret;
}

bool pmf_eal_running(void)
{
	if (atomic_load_explicit(&state.is_child, memory_order_relaxed))
		return false;
	return atomic_load_explicit(&state.running, memory_order_acquire) || eal_foreign();
}

void pmf_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			/* Linux has getrandom since 3.17; a guessable incarnation is worse than an
			 * end. */
			abort();
		}
		p += n;
		len -= (size_t)n;
	}
}
