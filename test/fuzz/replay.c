/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Runs a fuzz target without libFuzzer, with any compiler: every file of the corpus directory, then
 * seeded random mutations of them.
 *   replay_TARGET DIRECTORY [MUTATIONS]     the seed is PMF_TEST_SEED, or a new one
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "fuzz.h"

#define MAX_FILES 1024
#define MAX_SIZE 65536

struct input {
	uint8_t *data;
	size_t size;
};

static struct input corpus[MAX_FILES];
static size_t files;

static uint64_t random64(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static bool load_file(const char *dir, const char *name)
{
	struct input *in = &corpus[files];
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	in->data = malloc(MAX_SIZE);
	if (f == NULL || in->data == NULL) {
		perror(path);
		return false;
	}
	in->size = fread(in->data, 1, MAX_SIZE, f);
	fclose(f);
	files++;
	return true;
}

static bool load_corpus(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool ok = true;

	if (d == NULL) {
		perror(dir);
		return false;
	}
	while (ok && files < MAX_FILES && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			ok = load_file(dir, e->d_name);
	closedir(d);
	return ok && files > 0;
}

static int by_content(const void *a, const void *b)
{
	const struct input *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return memcmp(x->data, y->data, x->size);
}

/* In a block of just its size, so that a sanitizer sees what is read behind it. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void mutate(uint64_t *rnd, uint8_t *buf, size_t *size)
{
	static const uint8_t odd[] = {0, 1, 2, 4, 8, 0x7f, 0x80, 0xfe, 0xff};
	uint64_t r = random64(rnd);
	size_t at = *size ? (r >> 16) % *size : 0, other = (r >> 40) % files;

	switch (r & 7) {
	case 0:
	case 1: /* a bit */
		if (*size)
			buf[at] ^= 1u << (r >> 8 & 7);
		break;
	case 2: /* a byte that means something */
	case 3:
		if (*size)
			buf[at] = odd[(r >> 8 & 0xff) % sizeof(odd)];
		break;
	case 4: /* cut */
		*size = at;
		break;
	case 5: /* the tail of another one */
		if (at < corpus[other].size) {
			memcpy(buf + at, corpus[other].data + at, corpus[other].size - at);
			*size = corpus[other].size;
		}
		break;
	case 6: /* all of another one behind */
		if (*size + corpus[other].size <= MAX_SIZE) {
			memcpy(buf + *size, corpus[other].data, corpus[other].size);
			*size += corpus[other].size;
		}
		break;
	default:
		if (*size)
			buf[at] = (uint8_t)(r >> 8);
	}
}

int main(int argc, char **argv)
{
	uint64_t mutations = argc > 2 ? strtoull(argv[2], NULL, 0) : 0, rnd;
	const char *seed = getenv("PMF_TEST_SEED");
	static uint8_t buf[MAX_SIZE];
	struct timespec ts;

	if (argc < 2 || !load_corpus(argv[1])) {
		fprintf(stderr, "usage: %s DIRECTORY [MUTATIONS]\n", argv[0]);
		return 2;
	}
	/* The directory's order is the file system's; a seed means the same everywhere. */
	qsort(corpus, files, sizeof(corpus[0]), by_content);
	clock_gettime(CLOCK_REALTIME, &ts);
	rnd = seed ? strtoull(seed, NULL, 0) : (uint64_t)ts.tv_sec * 1000000007u + ts.tv_nsec;
	printf("%zu files, %" PRIu64 " mutations, PMF_TEST_SEED=%" PRIu64 "\n", files, mutations,
	       rnd);
	fflush(stdout);
	for (size_t i = 0; i < files; i++)
		run(corpus[i].data, corpus[i].size);
	for (uint64_t i = 0; i < mutations; i++) {
		const struct input *in = &corpus[random64(&rnd) % files];
		size_t size = in->size;

		memcpy(buf, in->data, size);
		for (uint64_t n = 1 + random64(&rnd) % 6; n > 0; n--)
			mutate(&rnd, buf, &size);
		run(buf, size);
	}
	return 0;
}
