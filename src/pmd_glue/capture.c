/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * FI_PMF_CAPTURE: frames of both directions into a pcapng file. Each queue keeps copies, which its
 * owner writes in whole blocks when they are many and at every tick; so a process that ends without
 * closing loses a millisecond, and the file stays whole.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_pcapng.h>
#include <rte_version.h>

#include "pmd_glue/internal.h"

enum { KEEP = 64, POOL_SIZE = 2 * KEEP * 4 - 1 };

struct kept {
	uint16_t n;
	struct rte_mbuf *m[KEEP];
};

struct pmf_capture {
	rte_pcapng_t *file;
	struct rte_mempool *pool;
	pthread_mutex_t lock;		  /* the file: one writer at a time */
	struct kept kept[PMF_MAX_QUEUES]; /* each its queue's owner's */
};

/* A second port of the process must not overwrite the first one's file. */
static int file_open(const struct pmf_port *port)
{
	static unsigned int opened; /* helper thread only */
	char path[4096];

	if (opened++ == 0)
		snprintf(path, sizeof(path), "%s", port->conf.capture);
	else
		snprintf(path, sizeof(path), "%s.%s", port->conf.capture, port->conf.name);
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

struct pmf_capture *pmf_capture_open(struct pmf_port *port, char *err, size_t errlen)
{
	struct pmf_capture *c = calloc(1, sizeof(*c));
	char name[RTE_MEMPOOL_NAMESIZE];
	int fd;

	if (!c)
		goto no_memory;
	fd = file_open(port);
	if (fd < 0) {
		snprintf(err, errlen, "FI_PMF_CAPTURE: %s cannot be written: %s",
			 port->conf.capture, strerror(errno));
		goto free_capture;
	}
	c->file = rte_pcapng_fdopen(fd, NULL, NULL, "pmf", NULL);
	if (!c->file) {
		snprintf(err, errlen, "FI_PMF_CAPTURE: %s: %s", port->conf.capture,
			 rte_strerror(rte_errno));
		close(fd);
		goto free_capture;
	}
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_pcapng_add_interface(c->file, port->port_id, NULL, NULL, NULL);
#endif
	snprintf(name, sizeof(name), "pmf_cap_%u", port->port_id);
	c->pool = rte_pktmbuf_pool_create(name, POOL_SIZE * port->nqueues, 0, 0,
					  (uint16_t)rte_pcapng_mbuf_size(port->mtu + 64u),
					  port->socket_id);
	if (!c->pool) {
		rte_pcapng_close(c->file);
		goto no_memory;
	}
	pthread_mutex_init(&c->lock, NULL);
	return c;

no_memory:
	snprintf(err, errlen, "no memory to capture frames (FI_PMF_CAPTURE)");
free_capture:
	free(c);
	return NULL;
}

static void kept_write(struct pmf_capture *c, struct kept *k)
{
	if (k->n == 0)
		return;
	pthread_mutex_lock(&c->lock);
	/* A full disk ends the capture's use, not the traffic. */
	(void)rte_pcapng_write_packets(c->file, k->m, k->n);
	pthread_mutex_unlock(&c->lock);
	/* Against its documentation the library keeps the mbufs ours. */
	rte_pktmbuf_free_bulk(k->m, k->n);
	k->n = 0;
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 7, 0, 0)
static struct rte_mbuf *frame_copy(struct pmf_capture *c, struct pmf_queue *q,
				   const struct rte_mbuf *m, bool out)
{
	return rte_pcapng_copy(q->port_id, q->queue_id, m, c->pool, UINT32_MAX,
			       out ? RTE_PCAPNG_DIRECTION_OUT : RTE_PCAPNG_DIRECTION_IN, NULL);
}
#else
/*
 * These releases scale times with an unlocked state of the process, which a time that is older than
 * the state's throws centuries ahead, for good. So the clock is read under a lock, and a first time
 * is given from the future, since the state is made only after it was read.
 */
static struct rte_mbuf *frame_copy(struct pmf_capture *c, struct pmf_queue *q,
				   const struct rte_mbuf *m, bool out)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool scaled;
	struct rte_mbuf *copy;

	pthread_mutex_lock(&lock);
	if (!scaled) {
		scaled = true;
		rte_pktmbuf_free(rte_pcapng_copy(q->port_id, q->queue_id, m, c->pool, UINT32_MAX,
						 rte_rdtsc() + rte_get_tsc_hz() / 2,
						 RTE_PCAPNG_DIRECTION_OUT));
	}
	copy = rte_pcapng_copy(q->port_id, q->queue_id, m, c->pool, UINT32_MAX, rte_rdtsc(),
			       out ? RTE_PCAPNG_DIRECTION_OUT : RTE_PCAPNG_DIRECTION_IN);
	pthread_mutex_unlock(&lock);
	return copy;
}
#endif

void pmf_capture_frames(struct pmf_queue *q, struct rte_mbuf *const *m, uint16_t n, bool out)
{
	struct kept *k = &q->capture->kept[q->queue_id];
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *copy;

		if (k->n == KEEP)
			kept_write(q->capture, k);
		copy = frame_copy(q->capture, q, m[i], out);
		if (copy)
			k->m[k->n++] = copy;
	}
}

void pmf_capture_flush(struct pmf_queue *q)
{
	kept_write(q->capture, &q->capture->kept[q->queue_id]);
}

void pmf_capture_close(struct pmf_capture *c)
{
	unsigned int i;

	if (!c)
		return;
	for (i = 0; i < PMF_MAX_QUEUES; i++)
		kept_write(c, &c->kept[i]);
	rte_pcapng_close(c->file);
	pthread_mutex_destroy(&c->lock);
	rte_mempool_free(c->pool);
	free(c);
}
