/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Reading and waiting on completion queues: entries that are there first, else a pass and another
 * look.
 */
#include "msg/calls.h"

#include <rdma/fi_errno.h>
#include <time.h>

#include "completion/cq.h"
#include "msg/addr.h"
#include "msg/stack.h"
#include "msg/waiting.h"

static inline struct pmf_cq *cq_of(struct fid_cq *fid)
{
	return pmf_container_of(fid, struct pmf_cq, fid);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct pmf_cq *cq = cq_of(fid);
	ssize_t n = count ? pmf_cq_take(cq, buf, count, src) : -FI_EAGAIN;

	if (n != -FI_EAGAIN)
		return n;
	/* who polls an idle queue looks at it once a call */
	if (!pmf_progress_poll(cq->progress) && count)
		return n;
	n = pmf_cq_take(cq, buf, count, src);
	if (n == -FI_EAGAIN && pmf_progress_rest(cq->progress))
		n = pmf_cq_take(cq, buf, count, src);
	return n;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/* The raw address of a sender that the AV does not know: in the caller's buffer, or in ours. */
static void put_sender(struct pmf_cq *cq, struct fi_cq_err_entry *buf,
		       const struct pmf_addr *sender)
{
	size_t len = sizeof(cq->err_data);

	if (pmf_addr_put(sender, cq->addr_format, cq->err_data, &len))
		len = 0;
	if (buf->err_data_size) {
		len = PMF_MIN(len, buf->err_data_size);
		memcpy(buf->err_data, cq->err_data, len);
	} else {
		buf->err_data = cq->err_data;
	}
	buf->err_data_size = len;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct pmf_cq *cq = cq_of(fid);
	struct pmf_progress *p = cq->progress;
	struct pmf_addr sender;
	ssize_t n = pmf_cq_take_err(cq, buf, flags, p->api_version, &sender);

	if (n == -FI_EAGAIN) {
		pmf_progress_run(p);
		n = pmf_cq_take_err(cq, buf, flags, p->api_version, &sender);
	}
	if (n == 1 && buf->err == FI_EADDRNOTAVAIL && p->api_version >= FI_VERSION(1, 5))
		put_sender(cq, buf, &sender);
	return n;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			    const void *cond, int timeout)
{
	struct pmf_cq *cq = cq_of(fid);
	struct pmf_waiting w;
	ssize_t n;

	/* the condition is a hint: fewer entries may be returned */
	if (!pmf_wait_can_sleep(&cq->wait))
		return -FI_ENOSYS;
	pmf_waiting_begin(&w, &cq->wait, cq->progress, timeout);
	do {
		n = cq_readfrom(fid, buf, count, src);
		if (n != -FI_EAGAIN || pmf_wait_take_signal(&cq->wait))
			break;
	} while (pmf_waiting_sleep(&w));
	pmf_waiting_end(&w);
	return n;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct pmf_cq *cq = cq_of(fid);

	if (!pmf_wait_can_sleep(&cq->wait))
		return -FI_ENOSYS;
	pmf_wait_signal(&cq->wait);
	return 0;
}

struct fi_ops_cq pmf_ops_cq = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = pmf_cq_strerror,
};
