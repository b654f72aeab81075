/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the programs of one endpoint have in common that dts/ starts as processes of their own: one
 * of each object, opened and closed. What fails ends the program.
 */
#ifndef PMF_TEST_PROV_PEER_H
#define PMF_TEST_PROV_PEER_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DO(call)                                                                 \
	do {                                                                     \
		long rc_ = (call);                                               \
		if (rc_ < 0) {                                                   \
			fprintf(stderr, #call ": %s\n", fi_strerror((int)-rc_)); \
			exit(1);                                                 \
		}                                                                \
	} while (0)

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av; /* of FI_EP_RDM */

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Frees hints. */
static void open_domain(const char *node, const char *service, uint64_t flags,
			struct fi_info *hints)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	hints->fabric_attr->prov_name = strdup("pmf");
	DO(fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &info));
	fi_freeinfo(hints);
	DO(fi_fabric(info->fabric_attr, &fabric, NULL));
	DO(fi_domain(fabric, info, &domain, NULL));
	DO(fi_eq_open(fabric, &attr, &eq, NULL));
}

static void open_ep(struct fi_info *from)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	DO(fi_endpoint(domain, from, &ep, NULL));
	DO(fi_cq_open(domain, &cq_attr, &cq, NULL));
	DO(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	DO(fi_ep_bind(ep, &eq->fid, 0));
	if (from->ep_attr->type == FI_EP_RDM) {
		DO(fi_av_open(domain, &av_attr, &av, NULL));
		DO(fi_ep_bind(ep, &av->fid, 0));
	}
	DO(fi_enable(ep));
}

static void close_all(void)
{
	DO(fi_close(&ep->fid));
	if (av)
		DO(fi_close(&av->fid));
	DO(fi_close(&cq->fid));
	DO(fi_close(&eq->fid));
	DO(fi_close(&domain->fid));
	DO(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

#endif
