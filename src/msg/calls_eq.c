/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Reading and waiting on event queues: events that are there first, else a pass on every engine
 * that objects bound to the queue live on, and another look.
 */
#include "msg/calls.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "msg/cm.h"
#include "msg/stack.h"

/* ---- which engines ---- */

static struct pmf_eq_driver *find(struct pmf_eq *eq, const struct pmf_progress *p)
{
	struct pmf_eq_driver *d;

	TAILQ_FOREACH (d, &eq->drivers, link)
		if (d->progress == p)
			return d;
	return NULL;
}

int pmf_eq_drive(struct pmf_eq *eq, struct pmf_progress *p)
{
	struct pmf_eq_driver *d;

	pthread_mutex_lock(&eq->drive_lock);
	d = find(eq, p);
	if (!d) {
		d = calloc(1, sizeof(*d));
		if (!d) {
			pthread_mutex_unlock(&eq->drive_lock);
			return -FI_ENOMEM;
		}
		d->progress = p;
		TAILQ_INSERT_TAIL(&eq->drivers, d, link);
		for (unsigned int i = 0; i < eq->sleeping; i++)
			pmf_progress_sleep_begin(p);
	}
	d->refs++;
	pthread_mutex_unlock(&eq->drive_lock);
	return 0;
}

void pmf_eq_undrive(struct pmf_eq *eq, struct pmf_progress *p)
{
	struct pmf_eq_driver *d;

	pthread_mutex_lock(&eq->drive_lock);
	d = find(eq, p);
	if (d && --d->refs == 0) {
		TAILQ_REMOVE(&eq->drivers, d, link);
		for (unsigned int i = 0; i < eq->sleeping; i++)
			pmf_progress_sleep_end(p);
		free(d);
	}
	pthread_mutex_unlock(&eq->drive_lock);
}

void pmf_eq_progress(struct pmf_eq *eq)
{
	struct pmf_eq_driver *d;

	/* taken: somebody else is at it */
	if (pthread_mutex_trylock(&eq->drive_lock))
		return;
	TAILQ_FOREACH (d, &eq->drivers, link)
		pmf_progress_run(d->progress);
	pthread_mutex_unlock(&eq->drive_lock);
}

/* ---- calls ---- */

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct pmf_eq *eq = (struct pmf_eq *)fid;
	ssize_t n = pmf_eq_read(eq, event, buf, len, flags);

	if (n != -FI_EAGAIN)
		return n;
	pmf_eq_progress(eq);
	return pmf_eq_read(eq, event, buf, len, flags);
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct pmf_eq *eq = (struct pmf_eq *)fid;
	ssize_t n = pmf_eq_readerr(eq, buf, flags);

	if (n != -FI_EAGAIN)
		return n;
	pmf_eq_progress(eq);
	return pmf_eq_readerr(eq, buf, flags);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	return pmf_eq_write((struct pmf_eq *)fid, event, buf, len, flags);
}

/* The helper thread drives the engines while the reader sleeps. */
static void sleep_begin(struct pmf_eq *eq)
{
	struct pmf_eq_driver *d;

	pthread_mutex_lock(&eq->drive_lock);
	eq->sleeping++;
	TAILQ_FOREACH (d, &eq->drivers, link)
		pmf_progress_sleep_begin(d->progress);
	pthread_mutex_unlock(&eq->drive_lock);
}

static void sleep_end(struct pmf_eq *eq)
{
	struct pmf_eq_driver *d;

	pthread_mutex_lock(&eq->drive_lock);
	eq->sleeping--;
	TAILQ_FOREACH (d, &eq->drivers, link)
		pmf_progress_sleep_end(d->progress);
	pthread_mutex_unlock(&eq->drive_lock);
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct pmf_eq *eq = (struct pmf_eq *)fid;
	ssize_t n;

	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	n = eq_read(fid, event, buf, len, flags);
	if (n != -FI_EAGAIN || timeout == 0)
		return n;
	sleep_begin(eq);
	n = pmf_eq_sread(eq, event, buf, len, timeout, flags);
	sleep_end(eq);
	return n;
}

struct fi_ops_eq pmf_ops_eq = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = pmf_eq_strerror,
};
