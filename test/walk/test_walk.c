/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A program runs once for each allocation, buffer, burst and ring entry in it, and that one fails.
 * Whatever comes, the program gets an error or what it asked for, ends in time, and leaves nothing:
 * no memory, no descriptor, no thread. Then it runs well.
 *   test_walk PROGRAM [STRIDE [KIND FIRST]]
 * Every STRIDE-th failure only, from one on that PMF_TEST_SEED chooses; or FIRST alone.
 */
#include "walk.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <rte_malloc.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	walk_program run;
} programs[] = {
	{"rdm", program_rdm},
	{"key", program_key},
	{"msg", program_msg},
	{"auto", program_auto},
};

static const char *const kinds[FAIL_KINDS] = {"memory", "buffer", "device", "ring"};

static unsigned int bad;
static char now_at[100];

void walk_bad(const char *where, const char *what, long value)
{
	printf("%s: %s: %s (%ld)\n", now_at, where, what, value);
	bad++;
}

/* ---- what is left ---- */

struct left {
	long heap, dpdk, fds, threads;
};

/* With AddressSanitizer it knows better than glibc, whose heap is not used then. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static long entries_of(const char *path)
{
	DIR *d = opendir(path);
	long n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static struct left look(void)
{
	struct left l = {.fds = entries_of("/proc/self/fd"),
			 .threads = entries_of("/proc/self/task")};
	struct rte_malloc_socket_stats dpdk;

	if (__sanitizer_get_current_allocated_bytes) {
		l.heap = (long)__sanitizer_get_current_allocated_bytes();
	} else {
		struct mallinfo2 m = mallinfo2();

		l.heap = (long)(m.uordblks + m.hblkhd);
	}
	for (int socket = 0; rte_malloc_get_socket_stats(socket, &dpdk) == 0; socket++)
		l.dpdk += (long)dpdk.heap_allocsz_bytes;
	return l;
}

/* A thread that has ended, and what it had open, may be seen for a moment. */
static struct left look_again(const struct left *before)
{
	struct left l = look();

	for (int i = 0; i < 300 && (l.fds > before->fds || l.threads > before->threads); i++) {
		usleep(10000);
		l = look();
	}
	return l;
}

static void compare(const struct left *a, const struct left *b)
{
	if (b->heap > a->heap)
		walk_bad("after", "more heap is in use", b->heap - a->heap);
	if (b->dpdk > a->dpdk)
		walk_bad("after", "more of DPDK's memory is in use", b->dpdk - a->dpdk);
	if (b->fds > a->fds)
		walk_bad("after", "more descriptors are open", b->fds - a->fds);
	if (b->threads > a->threads)
		walk_bad("after", "more threads run", b->threads - a->threads);
}

/* ---- walking ---- */

/* Fails the @p from th and those behind it, @p count in all. @return how many there were */
static uint64_t run(walk_program program, const char *name, enum fail_kind kind, uint64_t from,
		    uint64_t count)
{
	struct left before, after;
	uint64_t n;

	snprintf(now_at, sizeof(now_at), "%s %s %" PRIu64 "+%" PRIu64, name, kinds[kind], from,
		 count);
	/* What is made when it is first needed is no leak, and does not come a second time. */
	for (int turn = 0; turn < 2; turn++) {
		before = look();
		fail_begin(kind, from, count);
		program(kind != FAIL_MEMORY || !from);
		n = fail_end(kind);
		after = look_again(&before);
		if (after.heap <= before.heap && after.dpdk <= before.dpdk)
			break;
	}
	compare(&before, &after);
	return n;
}

static void walk(walk_program program, const char *name, enum fail_kind kind, uint64_t stride,
		 uint64_t start, uint64_t only)
{
	uint64_t n = run(program, name, kind, 0, 1), runs = 0;

	if (stride > n) /* one at least */
		stride = n ? n : 1;
	for (uint64_t at = 1 + start % stride; at <= n && bad < 20; at += stride) {
		if (only && at != only)
			continue;
		run(program, name, kind, at, 1);
		if (kind != FAIL_MEMORY) /* and when it lasts for a while */
			run(program, name, kind, at, 50);
		run(program, name, kind, 0, 1);
		runs++;
	}
	printf("%s: %s: %" PRIu64 " of %" PRIu64 " failed in turn\n", name, kinds[kind], runs, n);
}

int main(int argc, char **argv)
{
	uint64_t stride = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint64_t only = argc > 4 ? strtoull(argv[4], NULL, 0) : 0;
	const char *seed = getenv("PMF_TEST_SEED");
	uint64_t start = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);

	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (strcmp(argv[1], programs[i].name) != 0)
			continue;
		/* What is made once for the process is no leak. */
		printf("PMF_TEST_SEED=%" PRIu64 "\n", start);
		programs[i].run(true);
		programs[i].run(true);
		for (int k = 0; k < FAIL_KINDS; k++)
			if (argc <= 3 || strcmp(argv[3], kinds[k]) == 0)
				walk(programs[i].run, programs[i].name, (enum fail_kind)k,
				     only ? 1 : stride, start, only);
		return bad ? 1 : 0;
	}
	fprintf(stderr, "usage: %s rdm|key|msg|auto [STRIDE [KIND FIRST]]\n", argv[0]);
	return 2;
}
