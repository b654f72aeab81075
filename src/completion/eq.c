/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "completion/eq.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EQ_SIZE_DEFAULT 256
#define EQ_SIZE_MAX (1u << 20)
#define SPARE_DATA 320 /* any entry of a connection, with the program's data */

struct pmf_event {
	TAILQ_ENTRY(pmf_event) link;
	uint32_t event;
	bool is_err;
	bool is_spare; /* of those that were reserved */
	struct fi_eq_err_entry err;
	struct fi_info *info; /* in the entry; nobody's until it is read */
	size_t len;	      /* of data: the entry, or the err_data of an error */
	uint8_t data[] __attribute__((aligned(8)));
};

static int eq_init_wait(struct pmf_eq *eq, enum fi_wait_obj obj)
{
	eq->fd = -1;
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		eq->wait_obj = obj;
		return 0;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
		eq->wait_obj = FI_WAIT_FD;
		eq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		return eq->fd < 0 ? -ENOMEM : 0;
	default:
		return -EINVAL;
	}
}

int pmf_eq_init(struct pmf_eq *eq, const struct fi_eq_attr *attr, uint32_t api_version)
{
	struct fid_eq fid = eq->fid;
	pthread_condattr_t clock;
	int rc;

	if (attr->size > EQ_SIZE_MAX || (attr->flags & ~(FI_WRITE | FI_AFFINITY)))
		return -EINVAL;
	memset(eq, 0, sizeof(*eq));
	eq->fid = fid;
	rc = eq_init_wait(eq, attr->wait_obj);
	if (rc)
		return rc;
	eq->size = attr->size ? attr->size : EQ_SIZE_DEFAULT;
	eq->writable = attr->flags & FI_WRITE;
	eq->api_version = api_version;
	TAILQ_INIT(&eq->events);
	TAILQ_INIT(&eq->drivers);
	TAILQ_INIT(&eq->spare);
	pthread_mutex_init(&eq->lock, NULL);
	pthread_mutex_init(&eq->drive_lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&eq->more, &clock);
	pthread_condattr_destroy(&clock);
	return 0;
}

/* A reserved one is there for the next. The lock is held. */
static void event_put(struct pmf_eq *eq, struct pmf_event *ev)
{
	if (ev && ev->is_spare && eq->nspare < eq->reserved) {
		TAILQ_INSERT_TAIL(&eq->spare, ev, link);
		eq->nspare++;
		return;
	}
	free(ev);
}

/* One that nobody has read. */
static void event_drop(struct pmf_eq *eq, struct pmf_event *ev)
{
	if (ev->info)
		fi_freeinfo(ev->info);
	event_put(eq, ev);
}

static void spares_trim(struct pmf_eq *eq)
{
	struct pmf_event *ev;

	while (eq->nspare > eq->reserved) {
		ev = TAILQ_FIRST(&eq->spare);
		TAILQ_REMOVE(&eq->spare, ev, link);
		eq->nspare--;
		free(ev);
	}
}

int pmf_eq_reserve(struct pmf_eq *eq, unsigned int n)
{
	unsigned int got;

	pthread_mutex_lock(&eq->lock);
	for (got = 0; got < n; got++) {
		struct pmf_event *ev = calloc(1, sizeof(*ev) + SPARE_DATA);

		if (!ev)
			break;
		ev->is_spare = true;
		TAILQ_INSERT_TAIL(&eq->spare, ev, link);
		eq->nspare++;
	}
	if (got == n)
		eq->reserved += n;
	spares_trim(eq);
	pthread_mutex_unlock(&eq->lock);
	return got == n ? 0 : -ENOMEM;
}

void pmf_eq_unreserve(struct pmf_eq *eq, unsigned int n)
{
	pthread_mutex_lock(&eq->lock);
	eq->reserved -= n;
	spares_trim(eq);
	pthread_mutex_unlock(&eq->lock);
}

void pmf_eq_fini(struct pmf_eq *eq)
{
	struct pmf_event *ev;

	while ((ev = TAILQ_FIRST(&eq->events))) {
		TAILQ_REMOVE(&eq->events, ev, link);
		event_drop(eq, ev);
	}
	free(eq->last_err);
	eq->reserved = 0;
	spares_trim(eq);
	pthread_cond_destroy(&eq->more);
	pthread_mutex_destroy(&eq->lock);
	pthread_mutex_destroy(&eq->drive_lock);
	if (eq->fd >= 0)
		close(eq->fd);
}

/* The descriptor follows the list: ready when the first event comes, quiet when the last one goes.
 */
static void eq_fd_set(struct pmf_eq *eq, bool ready)
{
	uint64_t value = 1;
	ssize_t n;

	if (eq->fd < 0)
		return;
	n = ready ? write(eq->fd, &value, sizeof(value)) : read(eq->fd, &value, sizeof(value));
	(void)n; /* non-blocking, and only called on a change */
}

static void eq_append(struct pmf_eq *eq, struct pmf_event *ev)
{
	TAILQ_INSERT_TAIL(&eq->events, ev, link);
	if (eq->count++ == 0)
		eq_fd_set(eq, true);
	pthread_cond_broadcast(&eq->more);
}

static void eq_remove(struct pmf_eq *eq, struct pmf_event *ev)
{
	TAILQ_REMOVE(&eq->events, ev, link);
	if (--eq->count == 0)
		eq_fd_set(eq, false);
}

static struct pmf_event *spare_take(struct pmf_eq *eq)
{
	struct pmf_event *ev;

	pthread_mutex_lock(&eq->lock);
	ev = TAILQ_FIRST(&eq->spare);
	if (ev) {
		TAILQ_REMOVE(&eq->spare, ev, link);
		eq->nspare--;
		ev->is_err = false;
		ev->info = NULL;
	}
	pthread_mutex_unlock(&eq->lock);
	return ev;
}

/* @param eq  whose reserve may be used, or NULL */
static struct pmf_event *event_make(struct pmf_eq *eq, uint32_t event, const void *data, size_t len)
{
	struct pmf_event *ev = calloc(1, sizeof(*ev) + len);

	if (!ev && eq && len <= SPARE_DATA)
		ev = spare_take(eq);
	if (!ev)
		return NULL;
	ev->event = event;
	ev->len = len;
	if (len)
		memcpy(ev->data, data, len);
	return ev;
}

int pmf_eq_post_info(struct pmf_eq *eq, uint32_t event, const void *entry, size_t len,
		     struct fi_info *info)
{
	struct pmf_event *ev = event_make(eq, event, entry, len);

	if (!ev)
		return -ENOMEM;
	ev->info = info;
	pthread_mutex_lock(&eq->lock);
	eq_append(eq, ev);
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

int pmf_eq_post(struct pmf_eq *eq, uint32_t event, const void *entry, size_t len)
{
	return pmf_eq_post_info(eq, event, entry, len, NULL);
}

int pmf_eq_post_err(struct pmf_eq *eq, const struct fi_eq_err_entry *err)
{
	struct pmf_event *ev = event_make(eq, 0, err->err_data, err->err_data_size);

	if (!ev)
		return -ENOMEM;
	ev->is_err = true;
	ev->err = *err;
	pthread_mutex_lock(&eq->lock);
	eq_append(eq, ev);
	pthread_mutex_unlock(&eq->lock);
	return 0;
}

static bool event_is_of(const struct pmf_event *ev, const struct fid *fid)
{
	fid_t of = NULL;

	if (ev->is_err)
		return ev->err.fid == fid;
	/* Every standard entry begins with its fid. */
	if (ev->len >= sizeof(of))
		memcpy(&of, ev->data, sizeof(of));
	return of == fid;
}

void pmf_eq_forget(struct pmf_eq *eq, struct fid *fid)
{
	struct pmf_event *ev, *next;

	pthread_mutex_lock(&eq->lock);
	PMF_TAILQ_FOREACH_SAFE(ev, &eq->events, link, next)
	{
		if (!event_is_of(ev, fid))
			continue;
		eq_remove(eq, ev);
		event_drop(eq, ev);
	}
	pthread_mutex_unlock(&eq->lock);
}

static void eq_drop_last_err(struct pmf_eq *eq)
{
	event_put(eq, eq->last_err);
	eq->last_err = NULL;
}

static ssize_t eq_read_locked(struct pmf_eq *eq, uint32_t *event, void *buf, size_t len,
			      uint64_t flags)
{
	struct pmf_event *ev = TAILQ_FIRST(&eq->events);
	size_t n;

	eq_drop_last_err(eq);
	if (!ev)
		return -FI_EAGAIN;
	if (ev->is_err)
		return -FI_EAVAIL;
	if (len < ev->len)
		return -FI_ETOOSMALL;
	n = ev->len;
	*event = ev->event;
	if (n)
		memcpy(buf, ev->data, n);
	if (!(flags & FI_PEEK)) {
		eq_remove(eq, ev);
		event_put(eq, ev); /* an info in it is the reader's now */
	}
	return (ssize_t)n;
}

ssize_t pmf_eq_read(struct pmf_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	ssize_t rc;

	pthread_mutex_lock(&eq->lock);
	rc = eq_read_locked(eq, event, buf, len, flags);
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

static void err_fill(const struct pmf_eq *eq, struct pmf_event *ev, struct fi_eq_err_entry *out)
{
	size_t room;

	out->fid = ev->err.fid;
	out->context = ev->err.context;
	out->data = ev->err.data;
	out->err = ev->err.err;
	out->prov_errno = ev->err.prov_errno;
	if (FI_VERSION_LT(eq->api_version, FI_VERSION(1, 5))) {
		out->err_data = ev->len ? ev->data : NULL;
		return;
	}
	room = out->err_data ? out->err_data_size : 0;
	if (!room) {
		out->err_data = ev->len ? ev->data : NULL;
		out->err_data_size = ev->len;
		return;
	}
	out->err_data_size = PMF_MIN(room, ev->len);
	memcpy(out->err_data, ev->data, out->err_data_size);
}

ssize_t pmf_eq_readerr(struct pmf_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	ssize_t rc = -FI_EAGAIN;
	struct pmf_event *ev;

	pthread_mutex_lock(&eq->lock);
	eq_drop_last_err(eq);
	ev = TAILQ_FIRST(&eq->events);
	if (ev && ev->is_err) {
		err_fill(eq, ev, buf);
		if (!(flags & FI_PEEK)) {
			eq_remove(eq, ev);
			eq->last_err = ev;
		}
		rc = sizeof(*buf);
	}
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

ssize_t pmf_eq_write(struct pmf_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	struct pmf_event *ev;
	bool full;

	if (!eq->writable)
		return -FI_EINVAL;
	if (flags || (len && !buf))
		return -FI_EINVAL;
	ev = event_make(NULL, event, buf, len);
	if (!ev)
		return -FI_ENOMEM;
	pthread_mutex_lock(&eq->lock);
	full = eq->count >= eq->size;
	if (!full)
		eq_append(eq, ev);
	pthread_mutex_unlock(&eq->lock);
	if (full) {
		free(ev);
		return -FI_EAGAIN;
	}
	return (ssize_t)len;
}

static void deadline_in(struct timespec *ts, int ms)
{
	clock_gettime(CLOCK_MONOTONIC, ts);
	ts->tv_sec += ms / 1000;
	ts->tv_nsec += ms % 1000 * 1000000l;
	if (ts->tv_nsec >= 1000000000l) {
		ts->tv_sec++;
		ts->tv_nsec -= 1000000000l;
	}
}

static bool is_past(const struct timespec *ts)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > ts->tv_sec || (now.tv_sec == ts->tv_sec && now.tv_nsec >= ts->tv_nsec);
}

/* @return whether the deadline has passed; an event may have come before. The lock is held. */
static bool eq_wait_locked(struct pmf_eq *eq, int timeout, const struct timespec *deadline)
{
	if (eq->wait_obj == FI_WAIT_YIELD) {
		pthread_mutex_unlock(&eq->lock);
		sched_yield();
		pthread_mutex_lock(&eq->lock);
		return timeout >= 0 && is_past(deadline);
	}
	if (timeout < 0) {
		pthread_cond_wait(&eq->more, &eq->lock);
		return false;
	}
	return pthread_cond_timedwait(&eq->more, &eq->lock, deadline) == ETIMEDOUT;
}

ssize_t pmf_eq_sread(struct pmf_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
		     uint64_t flags)
{
	struct timespec deadline;
	bool late = timeout == 0;
	ssize_t rc;

	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	deadline_in(&deadline, PMF_MAX(timeout, 0));
	pthread_mutex_lock(&eq->lock);
	while ((rc = eq_read_locked(eq, event, buf, len, flags)) == -FI_EAGAIN && !late)
		late = eq_wait_locked(eq, timeout, &deadline);
	pthread_mutex_unlock(&eq->lock);
	return rc;
}

const char *pmf_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
			    size_t len)
{
	const char *text = prov_errno > 0 ? fi_strerror(prov_errno) : "Unknown error.";

	if (!buf || !len)
		return text;
	strncpy(buf, text, len - 1);
	buf[len - 1] = '\0';
	return buf;
}

int pmf_eq_control(struct pmf_eq *eq, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (eq->fd < 0)
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(int *)arg = eq->fd;
		return 0;
	case FI_GETWAITOBJ:
		if (eq->wait_obj == FI_WAIT_NONE)
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

bool pmf_eq_is_empty(struct pmf_eq *eq)
{
	bool empty;

	pthread_mutex_lock(&eq->lock);
	empty = eq->count == 0;
	pthread_mutex_unlock(&eq->lock);
	return empty;
}
