/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The open domains and event queues, for telemetry and for fork. A child shares the parent's queues
 * and hugepages and owns none of them: its copies of the objects get ops tables that only refuse,
 * in the atfork handler, so that no call has to look.
 */
#include "fabric/objects.h"

#include "fabric/forked.h"
#include "fabric/pep.h"
#include "msg/ep_state.h"

static struct {
	pthread_mutex_t lock;
	TAILQ_HEAD(, pmf_domain) all;
	TAILQ_HEAD(, pmf_feq) eqs;
	bool forked; /* written in the child's handler only */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER,
	  .all = TAILQ_HEAD_INITIALIZER(list.all),
	  .eqs = TAILQ_HEAD_INITIALIZER(list.eqs)};

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
	pmf_peps_hold();
}

static void fork_parent(void)
{
	struct pmf_domain *d;

	pmf_peps_let_go();
	TAILQ_FOREACH (d, &list.all, link)
		pthread_mutex_unlock(&d->lock);
	pthread_mutex_unlock(&list.lock);
}

static void fork_child(void)
{
	struct pmf_domain *d;
	struct pmf_feq *eq;

	list.forked = pmf_peps_forked() || !TAILQ_EMPTY(&list.all);
	TAILQ_FOREACH (d, &list.all, link)
		pmf_forked_domain(d);
	if (list.forked)
		TAILQ_FOREACH (eq, &list.eqs, link)
			pmf_forked_eq(&eq->eq.fid);
	fork_parent();
}

static void watch_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void pmf_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
}

void pmf_eq_list_add(struct pmf_feq *eq)
{
	pthread_mutex_lock(&list.lock);
	TAILQ_INSERT_TAIL(&list.eqs, eq, link);
	pthread_mutex_unlock(&list.lock);
}

void pmf_eq_list_del(struct pmf_feq *eq)
{
	pthread_mutex_lock(&list.lock);
	TAILQ_REMOVE(&list.eqs, eq, link);
	pthread_mutex_unlock(&list.lock);
}

void pmf_domain_list_add(struct pmf_domain *d)
{
	pmf_watch_forks();
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
