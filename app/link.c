/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "link.h"

#include <sched.h>
#include <string.h>

#include "clock.h"
#include "error.h"

/*
 * Sending and receiving of control messages. Speed does not matter here, only that nothing waits
 * for ever and that reading goes on while a send finds no room.
 */

static void post_receives(struct perf_link *l)
{
	unsigned int i;

	for (i = 0; i < l->n_rx; i++) {
		if (l->rx[i].busy)
			continue;
		/* Without room now it is tried again by the next poll. */
		if (fi_recv(l->endpoint.ep, l->rx[i].bytes, PERF_CONTROL_MAX, l->region.desc,
			    FI_ADDR_UNSPEC, &l->rx[i]))
			return;
		l->rx[i].busy = true;
	}
}

int perf_link_open(struct perf_link *l, struct perf_fabric *f)
{
	unsigned int i;

	memset(l, 0, sizeof(*l));
	l->fabric = f;
	if (perf_region_open(&l->region, f, (size_t)2 * PERF_LINK_BUFS * PERF_CONTROL_MAX))
		return -1;
	if (perf_endpoint_open(&l->endpoint, f, f->info, (size_t)2 * PERF_LINK_BUFS,
			       PERF_PARTNERS_MAX)) {
		perf_region_close(&l->region);
		return -1;
	}
	for (i = 0; i < PERF_LINK_BUFS; i++) {
		l->rx[i].bytes = l->region.base + (size_t)i * PERF_CONTROL_MAX;
		l->tx[i].bytes = l->rx[i].bytes + (size_t)PERF_LINK_BUFS * PERF_CONTROL_MAX;
		l->tx[i].is_tx = true;
	}
	/* A provider with few receives holds back what it has no buffer for. */
	l->n_rx = PERF_LINK_BUFS;
	if (f->info->rx_attr->size && f->info->rx_attr->size < l->n_rx)
		l->n_rx = (unsigned int)f->info->rx_attr->size;
	post_receives(l);
	if (!l->rx[0].busy) {
		perf_link_close(l);
		return perf_fail("the control endpoint takes no receive");
	}
	return 0;
}

void perf_link_close(struct perf_link *l)
{
	perf_endpoint_close(&l->endpoint);
	perf_region_close(&l->region);
}

static void take_message(struct perf_link *l, const struct perf_link_buf *buf, size_t len)
{
	unsigned int at = (l->inbox_head + l->inbox_len) % PERF_LINK_INBOX;

	if (perf_control_get(&l->inbox[at], buf->bytes, len))
		l->strangers++;
	else
		l->inbox_len++;
}

/* Read what is there. -errno with the buffer of a failed operation free again. */
static int drive(struct perf_link *l)
{
	struct fi_cq_data_entry entry;
	struct perf_link_buf *buf;
	int rc;

	while (l->inbox_len < PERF_LINK_INBOX) {
		rc = perf_endpoint_read(&l->endpoint, &entry, 1);
		if (rc == 0)
			break;
		if (rc < 0) {
			buf = l->endpoint.failed_context;
			if (buf && buf->is_tx && buf->forgotten) {
				buf->busy = false;
				perf_error_clear();
				continue;
			}
			l->lost = buf && buf->is_tx ? buf->to : FI_ADDR_UNSPEC;
			if (buf)
				buf->busy = false;
			return rc;
		}
		buf = entry.op_context;
		buf->busy = false;
		if (!buf->is_tx)
			take_message(l, buf, entry.len);
	}
	post_receives(l);
	return 0;
}

int perf_link_poll(struct perf_link *l, struct perf_control *m)
{
	if (l->inbox_len == 0) {
		int rc = drive(l);

		if (rc < 0)
			return rc;
		if (l->inbox_len == 0)
			return 0;
	}
	*m = l->inbox[l->inbox_head];
	l->inbox_head = (l->inbox_head + 1) % PERF_LINK_INBOX;
	l->inbox_len--;
	return 1;
}

int perf_link_try_send(struct perf_link *l, fi_addr_t to, const struct perf_control *m)
{
	struct perf_link_buf *buf = NULL;
	ssize_t rc;
	int i;

	for (i = 0; i < PERF_LINK_BUFS && !buf; i++) {
		if (!l->tx[i].busy)
			buf = &l->tx[i];
	}
	if (!buf)
		return -FI_EAGAIN;
	rc = fi_send(l->endpoint.ep, buf->bytes, perf_control_put(m, buf->bytes), l->region.desc,
		     to, buf);
	if (rc == 0) {
		buf->to = to;
		buf->forgotten = false;
		buf->busy = true;
	} else if (rc != -FI_EAGAIN) {
		l->lost = to;
		perf_fail("a send failed: %s", fi_strerror((int)-rc));
	}
	return (int)rc;
}

int perf_link_send(struct perf_link *l, fi_addr_t to, const struct perf_control *m)
{
	uint64_t deadline = perf_now() + l->fabric->options->timeout_ns;
	int rc;

	while ((rc = perf_link_try_send(l, to, m)) == -FI_EAGAIN) {
		rc = drive(l);
		if (rc < 0)
			return -1;
		if (perf_now() > deadline)
			return perf_fail("a control message found no room for too long");
		sched_yield();
	}
	return rc ? -1 : 0;
}

void perf_link_forget(struct perf_link *l, fi_addr_t addr)
{
	int i;

	for (i = 0; i < PERF_LINK_BUFS; i++) {
		if (l->tx[i].busy && l->tx[i].to == addr)
			l->tx[i].forgotten = true;
	}
	perf_endpoint_remove(&l->endpoint, addr);
}

static bool is_idle(const struct perf_link *l)
{
	int i;

	for (i = 0; i < PERF_LINK_BUFS; i++) {
		if (l->tx[i].busy)
			return false;
	}
	return true;
}

int perf_link_flush(struct perf_link *l, uint64_t ns)
{
	uint64_t deadline = perf_now() + ns;

	while (!is_idle(l)) {
		if (drive(l) < 0)
			return -1;
		if (perf_now() > deadline)
			return perf_fail("the last control message was not taken");
		sched_yield();
	}
	return 0;
}
