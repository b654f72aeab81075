/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Threads of the application that poll: registered with EAL for the mempool cache that goes with
 * it, and unregistered when they end. EAL has 128 ids; who gets none goes on without a cache.
 */
#include "msg/threads.h"

#include <pthread.h>
#include <rte_lcore.h>

#include "pmd_glue/eal.h"

__thread struct pmf_thread pmf_thread __attribute__((tls_model("initial-exec")));

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *arg)
{
	(void)arg;
	if (pmf_eal_running())
		rte_thread_unregister();
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ends);
}

void pmf_thread_register(struct pmf_thread *self)
{
	self->known = true;
	if (rte_lcore_id() != LCORE_ID_ANY || rte_thread_register())
		return;
	pthread_once(&once, make_key);
	pthread_setspecific(key, &key); /* not NULL: the destructor is to run */
}
