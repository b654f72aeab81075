/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>

#include "error.h"

/* Making and closing of endpoints. Each belongs to the link or the station that opened it. */

static int open_queue(struct perf_endpoint *e, struct perf_fabric *f, size_t entries)
{
	struct fi_cq_attr attr = {
		.size = entries,
		.format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_NONE,
	};
	int rc = fi_cq_open(f->domain, &attr, &e->cq, NULL);

	return rc ? perf_fail("no completion queue of %zu entries: %s", entries, fi_strerror(-rc))
		  : 0;
}

static int open_addresses(struct perf_endpoint *e, struct perf_fabric *f, size_t peers)
{
	struct fi_av_attr attr = {.type = f->info->domain_attr->av_type, .count = peers};
	int rc;

	if (attr.type == FI_AV_UNSPEC)
		attr.type = FI_AV_TABLE;
	rc = fi_av_open(f->domain, &attr, &e->av, NULL);
	return rc ? perf_fail("no address vector: %s", fi_strerror(-rc)) : 0;
}

static int enable(struct perf_endpoint *e, struct perf_fabric *f, struct fi_info *info)
{
	char text[PERF_NAME_MAX] = "";
	int rc;

	if (info->src_addr)
		perf_endpoint_text(e, info->src_addr, text, sizeof(text));
	rc = fi_endpoint(f->domain, info, &e->ep, NULL);
	if (rc)
		return perf_fail("no endpoint %s: %s", text, fi_strerror(-rc));
	rc = fi_ep_bind(e->ep, &e->av->fid, 0);
	if (rc == 0)
		rc = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	if (rc)
		return perf_fail("the endpoint cannot be bound: %s", fi_strerror(-rc));
	rc = fi_enable(e->ep);
	if (rc)
		return perf_fail("the endpoint %s cannot be enabled: %s", text, fi_strerror(-rc));
	e->name_len = sizeof(e->name);
	rc = fi_getname(&e->ep->fid, e->name, &e->name_len);
	if (rc)
		return perf_fail("the endpoint has no name: %s", fi_strerror(-rc));
	return 0;
}

int perf_endpoint_open(struct perf_endpoint *e, struct perf_fabric *f, struct fi_info *info,
		       size_t entries, size_t peers)
{
	memset(e, 0, sizeof(*e));
	if (open_queue(e, f, entries) || open_addresses(e, f, peers) || enable(e, f, info)) {
		perf_endpoint_close(e);
		return -1;
	}
	return 0;
}

int perf_endpoint_join(struct perf_endpoint *e, struct perf_fabric *f, struct fi_info *info,
		       const struct perf_endpoint *host)
{
	memset(e, 0, sizeof(*e));
	e->cq = host->cq;
	e->av = host->av;
	e->guest = true;
	if (enable(e, f, info)) {
		perf_endpoint_close(e);
		return -1;
	}
	return 0;
}

void perf_endpoint_close(struct perf_endpoint *e)
{
	if (e->ep)
		fi_close(&e->ep->fid);
	if (e->cq && !e->guest)
		fi_close(&e->cq->fid);
	if (e->av && !e->guest)
		fi_close(&e->av->fid);
	memset(e, 0, sizeof(*e));
}

int perf_endpoint_insert(struct perf_endpoint *e, const void *name, size_t len, fi_addr_t *addr)
{
	fi_addr_t inserted = FI_ADDR_NOTAVAIL;
	char text[128];
	int rc;

	rc = fi_av_insert(e->av, name, 1, &inserted, 0, NULL);
	if (rc == 1) {
		*addr = inserted;
		return 0;
	}
	perf_endpoint_text(e, name, text, sizeof(text));
	return perf_fail("the address %s is not taken: %s", text,
			 rc < 0 ? fi_strerror(-rc) : "no reason given");
}

void perf_endpoint_remove(struct perf_endpoint *e, fi_addr_t addr)
{
	fi_av_remove(e->av, &addr, 1, 0);
}

void perf_endpoint_text(struct perf_endpoint *e, const void *name, char *text, size_t room)
{
	size_t len = room;

	text[0] = '\0';
	fi_av_straddr(e->av, name, text, &len);
	text[room - 1] = '\0';
}

int perf_endpoint_read_error(struct perf_endpoint *e, ssize_t rc)
{
	struct fi_cq_err_entry entry = {0};
	const char *what, *more;
	char text[128];
	int err;

	e->failed_context = NULL;
	e->failed_flags = 0;
	if (rc != -FI_EAVAIL) {
		perf_fail("the completion queue cannot be read: %s", fi_strerror((int)-rc));
		return (int)rc;
	}
	rc = fi_cq_readerr(e->cq, &entry, 0);
	if (rc < 0) {
		perf_fail("the error entry cannot be read: %s", fi_strerror((int)-rc));
		return (int)rc;
	}
	e->failed_context = entry.op_context;
	e->failed_flags = entry.flags;
	/* The errno is positive, but for providers that forget it. */
	err = entry.err ? abs(entry.err) : FI_EIO;
	what = entry.flags & FI_RECV ? "a receive" : "a send";
	more = fi_cq_strerror(e->cq, entry.prov_errno, entry.err_data, text, sizeof(text));
	if (more && more[0] && strcmp(more, fi_strerror(err)) != 0)
		perf_fail("%s failed: %s (%s)", what, fi_strerror(err), more);
	else
		perf_fail("%s failed: %s", what, fi_strerror(err));
	return -err;
}
