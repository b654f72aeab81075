/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * pmf-model: random programs through fi_* calls, checked against the model. They run in a child
 * process, so that a crash or a hang is a finding like others; a failing program is made shorter
 * while it still fails, by children that run nothing else, and printed.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

enum {
	HANGS_S = 60,	  /* a child that says nothing for so long hangs */
	PATIENCE_S = 20,  /* what a program waits for comes by then */
	SHRINK_S = 300,	  /* so long is a program made shorter */
	SHRUNK_HANG_S = 4 /* a shorter program hangs when it takes so long */
};

static const char usage[] =
	"usage: pmf-model [options]\n"
	"  --programs N    so many (1000); 0: until one fails\n"
	"  --seed S        of the first; the others follow (from the clock and the process)\n"
	"  --closes P      in P of 100 programs endpoints close and come back (5)\n"
	"  --msg P         in P of 100 they are connected, and half of those end connections (30)\n"
	"  --shared P      in P of 100 all receive from one context (20)\n"
	"  --keys P        in P of 100 they have an authorization key (10)\n"
	"  --strangers P   in P of 100 of those some have none: each waits until the others count\n"
	"                  as dead (0)\n"
	"  --mix A,B,C,D,E all five at once\n"
	"  --replay FILE   run this program alone; - is standard input\n"
	"  --print         print the program of --seed, and run nothing\n"
	"  --no-shrink     print a failing program as it is\n"
	"  --patience S    a program that takes longer hangs (20)\n"
	"Port and faults come from FI_PMF_PORT and FI_PMF_FAULT. PMF_LONG=1: 20 times as many "
	"programs.\n";

struct options {
	uint64_t programs, seed;
	struct mix mix;
	const char *replay;
	bool print, no_shrink, worker, seeded;
	double patience_s;
};

static const char self[] = "/proc/self/exe"; /* how to run it again */

static uint64_t seed_of(uint64_t seed, uint64_t n)
{
	return n ? model_mix(seed + n) : seed;
}

/* ---- in the child ---- */

/* The number of the next program goes to the parent, before it runs. */
static void announce(uint64_t n)
{
	if (write(STDOUT_FILENO, &n, sizeof(n)) != sizeof(n))
		_exit(3);
}

/* @return the exit code of a run that ended with @p why, or NULL: well so far */
static int report(struct run_env *env, const char *why)
{
	if (!why)
		return run_close(env) ? 1 : 0;
	fprintf(stderr, "%s\n", why);
	return 1;
}

static int work(const struct options *o)
{
	struct run_env env = {.patience_s = o->patience_s};
	const char *why = NULL;
	struct program p;

	if (run_open(&env))
		return 2;
	for (uint64_t i = 0; !why && (i < o->programs || !o->programs); i++) {
		announce(i);
		program_make(&p, seed_of(o->seed, i), &o->mix);
		why = run_program(&env, &p);
	}
	return report(&env, why);
}

static int replay(const struct options *o)
{
	FILE *f = strcmp(o->replay, "-") == 0 ? stdin : fopen(o->replay, "r");
	struct run_env env = {.patience_s = o->patience_s};
	const char *why = NULL;
	struct program p;
	unsigned int line;

	if (!f) {
		perror(o->replay);
		return 2;
	}
	line = program_read(&p, f, &why);
	if (line) {
		fprintf(stderr, "pmf-model: %s:%u: %s\n", o->replay, line, why);
		return 2;
	}
	if (run_open(&env))
		return 2;
	return report(&env, run_program(&env, &p));
}

/* ---- children ---- */

struct child {
	pid_t pid;
	int out;     /* what it announces */
	FILE *err;   /* what it says */
	uint64_t at; /* the last program that it has announced */
	char said[600];
};

static int child_start(struct child *c, const char *const argv[])
{
	int out[2];

	memset(c, 0, sizeof(*c));
	c->err = tmpfile();
	if (!c->err || pipe(out))
		return -1;
	c->pid = fork();
	if (c->pid < 0)
		return -1;
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		dup2(fileno(c->err), STDERR_FILENO);
		close(out[0]);
		execv(self, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(out[1]);
	c->out = out[0];
	return 0;
}

/* Follow it to its end. @return whether it fell silent before */
static bool child_follow(struct child *c, int silence_s)
{
	struct pollfd fd = {.fd = c->out, .events = POLLIN};
	uint64_t n[512];
	ssize_t got;

	while (poll(&fd, 1, silence_s * 1000) > 0) {
		got = read(c->out, n, sizeof(n));
		if (got <= 0)
			return false;
		c->at = n[got / (ssize_t)sizeof(n[0]) - 1];
	}
	return true;
}

/* @return 0 when all is well; else c->said tells what is wrong */
static int child_end(struct child *c, int silence_s)
{
	bool hangs = child_follow(c, silence_s);
	size_t n;
	int status;

	if (hangs)
		kill(c->pid, SIGKILL);
	waitpid(c->pid, &status, 0);
	fseek(c->err, 0, SEEK_END);
	n = (size_t)ftell(c->err);
	fseek(c->err, n < sizeof(c->said) ? 0 : (long)(n - sizeof(c->said) + 1), SEEK_SET);
	n = fread(c->said, 1, sizeof(c->said) - 1, c->err);
	fclose(c->err);
	close(c->out);
	if (WIFSIGNALED(status))
		snprintf(c->said + n, sizeof(c->said) - n, "%s (signal %d)\n",
			 hangs ? "killed, for it hung" : "crashed", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- shorter ---- */

static int tries = 3; /* how often a program may pass and yet count as failing */

/* Does this program fail when it runs alone? */
static bool fails(const struct program *p, char *said, size_t len)
{
	char path[] = "/tmp/pmf-model-XXXXXX", patience[16];
	const char *argv[] = {self, "--replay", path, "--patience", patience, NULL};
	FILE *f = fdopen(mkstemp(path), "w");
	struct child c;
	int rc = 0;

	if (!f)
		return false;
	snprintf(patience, sizeof(patience), "%d", SHRUNK_HANG_S);
	program_print(p, f);
	fclose(f);
	for (int i = 0; i < tries && rc == 0; i++) {
		if (child_start(&c, argv))
			break;
		rc = child_end(&c, 2 * SHRUNK_HANG_S);
	}
	unlink(path);
	if (rc)
		snprintf(said, len, "%s", c.said);
	return rc != 0;
}

static void drop(struct program *p, uint32_t at, uint32_t n)
{
	memmove(&p->step[at], &p->step[at + n], (p->nsteps - at - n) * sizeof(p->step[0]));
	p->nsteps -= n;
}

/* Leave out steps, the larger pieces first. @return whether any could go */
static bool shrink_steps(struct program *p, char *said, size_t len, time_t end)
{
	bool any = false;

	for (uint32_t n = p->nsteps / 2; n > 0; n /= 2) {
		for (uint32_t at = 0; at + n <= p->nsteps && time(NULL) < end;) {
			struct program q = *p;

			drop(&q, at, n);
			if (fails(&q, said, len)) {
				*p = q;
				any = true;
			} else {
				at += n;
			}
		}
	}
	return any;
}

/* Simpler steps: without flags, with short messages. */
static bool shrink_words(struct program *p, char *said, size_t len, time_t end)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nsteps && time(NULL) < end; i++) {
		for (unsigned int b = 0; b <= SF_COUNT && time(NULL) < end; b++) {
			struct program q = *p;

			if (b < SF_COUNT)
				q.step[i].flags &= (uint16_t) ~(1u << b);
			else if (q.step[i].op <= OP_RECV && q.step[i].len > 100)
				q.step[i].len = 100;
			if (b < SF_COUNT && p->closes && 1u << b == SF_DATA)
				continue;
			if (memcmp(&q, p, sizeof(q)) != 0 && fails(&q, said, len)) {
				*p = q;
				any = true;
			}
		}
	}
	return any;
}

/* Fewer endpoints, where no step names the last ones. */
static void fewer(struct program *p)
{
	uint32_t least = p->msg ? 2 : 1, each = least;

	for (uint32_t i = 0; i < p->nsteps; i++) {
		const struct step *s = &p->step[i];
		uint32_t last = s->peer != ANY && s->peer > s->ep ? s->peer : s->ep;

		least = last + 1 > least ? last + 1 : least;
	}
	p->neps = (least + each - 1) / each * each;
	p->strangers &= (1u << p->neps) - 1;
}

/* Simpler endpoints: fewer, without keys, with receives of their own, and with all entries. */
static bool shrink_endpoints(struct program *p, char *said, size_t len, time_t end)
{
	bool any = false;

	for (unsigned int i = 0; i < 4 && time(NULL) < end; i++) {
		struct program q = *p;

		if (i == 0)
			fewer(&q);
		else if (i == 1)
			q.keyed = false, q.strangers = 0;
		else if (i == 2)
			q.shared = false;
		else
			q.selective = false;
		if (memcmp(&q, p, sizeof(q)) != 0 && fails(&q, said, len)) {
			*p = q;
			any = true;
		}
	}
	return any;
}

static void shrink(struct program *p)
{
	time_t end = time(NULL) + SHRINK_S;
	char said[600] = "";
	bool again;

	if (!fails(p, said, sizeof(said))) {
		printf("Alone it passes. As it was:\n\n");
		program_print(p, stdout);
		return;
	}
	fprintf(stderr, "making it shorter ...\n");
	tries = 1;
	if (!fails(p, said, sizeof(said)) || !fails(p, said, sizeof(said)))
		tries = 3; /* it fails at times */
	do {
		again = shrink_steps(p, said, sizeof(said), end);
		again |= shrink_words(p, said, sizeof(said), end);
		again |= shrink_endpoints(p, said, sizeof(said), end);
	} while (again);
	printf("The shortest that fails, with: %s\nFor --replay:\n\n", said);
	program_print(p, stdout);
}

/* ---- the parent ---- */

static int run_all(const struct options *o)
{
	char seed[32], programs[32], mix[96];
	const char *argv[] = {self,	"--worker", "--seed", seed, "--programs",
			      programs, "--mix",    mix,      NULL};
	struct program p;
	struct child c;
	int rc;

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)o->seed);
	snprintf(programs, sizeof(programs), "%llu", (unsigned long long)o->programs);
	snprintf(mix, sizeof(mix), "%u,%u,%u,%u,%u", o->mix.closes, o->mix.msg, o->mix.shared,
		 o->mix.keys, o->mix.strangers);
	printf("pmf-model: --seed %s --programs %s --mix %s (or PMF_TEST_SEED)\n", seed, programs,
	       mix);
	fflush(stdout);
	if (child_start(&c, argv)) {
		perror("pmf-model");
		return 2;
	}
	rc = child_end(&c, HANGS_S);
	if (rc == 0) {
		printf("ok: %llu programs\n", (unsigned long long)(c.at + 1));
		return 0;
	}
	if (rc == 2) {
		fputs(c.said, stderr);
		return 2;
	}
	printf("FAILED: program %llu, --seed %llu --programs 1 --mix %s: %s\n",
	       (unsigned long long)c.at, (unsigned long long)seed_of(o->seed, c.at), mix, c.said);
	program_make(&p, seed_of(o->seed, c.at), &o->mix);
	if (o->no_shrink)
		program_print(&p, stdout);
	else
		shrink(&p);
	return 1;
}

static bool set_option(struct options *o, int opt, const char *arg)
{
	char *end = NULL;
	unsigned long long v = arg && opt != 'r' && opt != 'M' ? strtoull(arg, &end, 0) : 0;

	if (end && (*end || end == arg))
		return false;
	if (opt == 'n')
		o->programs = v;
	else if (opt == 's')
		o->seed = v, o->seeded = true;
	else if (opt == 'c')
		o->mix.closes = (unsigned int)v;
	else if (opt == 'm')
		o->mix.msg = (unsigned int)v;
	else if (opt == 'x')
		o->mix.shared = (unsigned int)v;
	else if (opt == 'y')
		o->mix.keys = (unsigned int)v;
	else if (opt == 'z')
		o->mix.strangers = (unsigned int)v;
	else if (opt == 'M')
		return sscanf(arg, "%u,%u,%u,%u,%u", &o->mix.closes, &o->mix.msg, &o->mix.shared,
			      &o->mix.keys, &o->mix.strangers) == 5;
	else if (opt == 'r')
		o->replay = arg;
	else if (opt == 'p')
		o->print = true;
	else if (opt == 'k')
		o->no_shrink = true;
	else if (opt == 'w')
		o->worker = true;
	else if (opt == 't')
		o->patience_s = (double)v;
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"programs", 1, NULL, 'n'}, {"seed", 1, NULL, 's'},
		{"closes", 1, NULL, 'c'},   {"replay", 1, NULL, 'r'},
		{"print", 0, NULL, 'p'},    {"no-shrink", 0, NULL, 'k'},
		{"worker", 0, NULL, 'w'},   {"patience", 1, NULL, 't'},
		{"msg", 1, NULL, 'm'},	    {"shared", 1, NULL, 'x'},
		{"keys", 1, NULL, 'y'},	    {"strangers", 1, NULL, 'z'},
		{"mix", 1, NULL, 'M'},	    {0}};
	struct options o = {.programs = 1000, .mix = {5, 30, 20, 10, 0}, .patience_s = PATIENCE_S};
	const char *env = getenv("PMF_TEST_SEED"), *scale = getenv("PMF_LONG");
	struct program p;
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (!set_option(&o, opt, optarg)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	if (!o.seeded)
		o.seed = env ? strtoull(env, NULL, 0)
			     : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	if (scale && *scale && !o.worker)
		o.programs *= 20;
	if (o.print) {
		program_make(&p, o.seed, &o.mix);
		program_print(&p, stdout);
		return 0;
	}
	return o.worker ? work(&o) : o.replay ? replay(&o) : run_all(&o);
}
