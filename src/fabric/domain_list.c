/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The open domains, for telemetry and for fork. A child shares the parent's queues and hugepages
 * and owns none of them: its copies of the objects get ops tables that only refuse, in the atfork
 * handler, so that no call has to look.
 */
#include "fabric/objects.h"

#include "fabric/forked.h"
#include "msg/ep_state.h"

static struct {
	pthread_mutex_t lock;
	TAILQ_HEAD(, pmf_domain) all;
	bool forked; /* written in the child's handler only */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = TAILQ_HEAD_INITIALIZER(list.all)};

bool pmf_forked(void)
{
	return list.forked;
}

static void fork_prepare(void)
{
	struct pmf_domain *d;

	pthread_mutex_lock(&list.lock);
	TAILQ_FOREACH (d, &list.all, link)
		pthread_mutex_lock(&d->lock);
}

static void fork_parent(void)
{
	struct pmf_domain *d;

	TAILQ_FOREACH (d, &list.all, link)
		pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&list.lock);
}

static void fork_child(void)
{
	struct pmf_domain *d;

	TAILQ_FOREACH (d, &list.all, link) {
		pmf_forked_domain(d);
		list.forked = true;
	}
	fork_parent();
}

static void watch_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void pmf_domain_list_add(struct pmf_domain *d)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&list.lock);
	TAILQ_INSERT_TAIL(&list.all, d, link);
	pthread_mutex_unlock(&list.lock);
}

void pmf_domain_list_del(struct pmf_domain *d)
{
	pthread_mutex_lock(&list.lock);
	TAILQ_REMOVE(&list.all, d, link);
	pthread_mutex_unlock(&list.lock);
}

void pmf_domain_list_walk(void (*fn)(struct pmf_domain *d, void *arg), void *arg)
{
	struct pmf_domain *d;

	pthread_mutex_lock(&list.lock);
	TAILQ_FOREACH (d, &list.all, link)
		fn(d, arg);
	pthread_mutex_unlock(&list.lock);
}
