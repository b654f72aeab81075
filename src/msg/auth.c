/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Rings of keys, and the file that they may come from. The file is read at first by who opens a
 * domain, and again by the helper thread when it has changed; its keys go to the engines under
 * their owner words.
 */
#include "msg/auth.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 16384

/* ---- rings ---- */

int pmf_auth_open(struct pmf_engine *e, const struct pmf_key_list *keys, uint16_t number,
		  struct pmf_auth **out)
{
	struct pmf_auth *a = calloc(1, sizeof(*a));
	struct pmf_key_list list;
	int err;

	if (!a)
		return -ENOMEM;
	a->refs = 1;
	a->number = number;
	a->file = !keys;
	/* Under the word, so that no roll comes between reading the list and the engine's. */
	pmf_engine_lock(e);
	if (!keys)
		pmf_keyfile_keys(&list);
	err = pmf_keyring_open(keys ? keys : &list, e->conf->encrypt, &a->ring);
	if (!err)
		TAILQ_INSERT_TAIL(&e->auths, a, link);
	pmf_engine_unlock(e);
	pmf_wipe(&list, sizeof(list));
	if (err) {
		free(a);
		return err;
	}
	*out = a;
	return 0;
}

void pmf_auth_put(struct pmf_engine *e, struct pmf_auth *a)
{
	if (--a->refs)
		return;
	TAILQ_REMOVE(&e->auths, a, link);
	pmf_keyring_close(a->ring);
	free(a);
}

static void roll_flows(struct pmf_engine *e, const struct pmf_auth *a, pmf_ns_t now)
{
	for (uint32_t i = 0; i < e->flows_cap; i++) {
		struct pmf_eflow *ef = e->flows[i];

		if (!ef || ef->auth != a || !pmf_seal_roll(ef->seal))
			continue;
		pmf_flow_kill(&ef->flow, ENOMEM);
		pmf_eflow_settle(e, ef, now);
	}
}

void pmf_auth_roll(struct pmf_engine *e)
{
	struct pmf_key_list list;
	struct pmf_keyring gone;
	struct pmf_auth *a;

	pmf_keyfile_keys(&list);
	TAILQ_FOREACH (a, &e->auths, link) {
		if (!a->file || pmf_keyring_change(a->ring, &list, &gone))
			continue;
		roll_flows(e, a, atomic_load_explicit(&e->last_pass, memory_order_relaxed));
		pmf_keyring_drop(&gone);
		e->stats.key_rolls++;
	}
	pmf_wipe(&list, sizeof(list));
}

/* ---- the file ---- */

static struct {
	pthread_mutex_t lock;
	struct stat seen; /* as it was when it was read */
	int rc;		  /* of that */
	char why[200];
	struct pmf_key_list keys; /* the last good ones */
	uint32_t generation;	  /* of them; 0: none yet */
} file = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int read_text(const char *path, char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &file.seen) == 0)
		n = read(fd, text, FILE_MAX);
	close(fd);
	if (n < 0)
		return -errno;
	if (n == FILE_MAX)
		return -EFBIG;
	text[n] = '\0';
	return 0;
}

/* Two keys that packets could not tell apart are found here, before they are anybody's. */
static int check(const struct pmf_key_list *keys, bool encrypt)
{
	struct pmf_keyring *r;
	int rc = pmf_keyring_open(keys, encrypt, &r);

	if (!rc)
		pmf_keyring_close(r);
	else
		snprintf(file.why, sizeof(file.why), "%s",
			 rc == -EEXIST ? "two keys are the same, or have the same id"
				       : strerror(-rc));
	return rc;
}

static int read_keys(const struct pmf_conf *conf, struct pmf_key_list *keys)
{
	char text[FILE_MAX];
	int rc = read_text(conf->auth_key_file, text);

	if (rc) {
		snprintf(file.why, sizeof(file.why), "%s", strerror(-rc));
		return rc;
	}
	rc = pmf_keys_parse(text, keys, file.why, sizeof(file.why));
	pmf_wipe(text, sizeof(text));
	return rc ? rc : check(keys, conf->encrypt);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Read it if it is another than before. @return whether it was read; file.rc tells how that went */
static bool refresh(const struct pmf_conf *conf)
{
	struct pmf_key_list keys;
	struct stat st;

	if (file.seen.st_ino && stat(conf->auth_key_file, &st) == 0 && same_file(&st, &file.seen))
		return false;
	file.rc = read_keys(conf, &keys);
	if (!file.rc) {
		file.keys = keys;
		file.generation++;
	}
	pmf_wipe(&keys, sizeof(keys));
	return true;
}

int pmf_keyfile_load(const struct pmf_conf *conf, char *err, size_t errlen)
{
	int rc;

	pthread_mutex_lock(&file.lock);
	refresh(conf);
	rc = file.rc;
	if (rc)
		snprintf(err, errlen, "FI_PMF_AUTH_KEY_FILE=%s: %s", conf->auth_key_file, file.why);
	pthread_mutex_unlock(&file.lock);
	return rc;
}

void pmf_keyfile_keys(struct pmf_key_list *out)
{
	pthread_mutex_lock(&file.lock);
	*out = file.keys;
	pthread_mutex_unlock(&file.lock);
}

uint32_t pmf_keyfile_look(const struct pmf_conf *conf)
{
	char line[512];
	uint32_t generation;

	pthread_mutex_lock(&file.lock);
	/* (One that is gone is no news: it may be on its way back.) */
	if (access(conf->auth_key_file, R_OK) == 0 && refresh(conf)) {
		if (file.rc)
			snprintf(line, sizeof(line),
				 "FI_PMF_AUTH_KEY_FILE=%s has changed and is not taken: %s",
				 conf->auth_key_file, file.why);
		else
			snprintf(line, sizeof(line), "%s has changed: %u keys, the first sends",
				 conf->auth_key_file, file.keys.n);
		conf->log(file.rc ? PMF_LOG_WARN : PMF_LOG_INFO, line);
	}
	generation = file.generation;
	pthread_mutex_unlock(&file.lock);
	return generation;
}
