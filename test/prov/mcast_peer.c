/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * One member of a group, for tests with several processes: mcast_peer GROUP PORT say|hear COUNT.
 * It joins and prints "joined"; who says sends COUNT numbered messages, a few a millisecond. Who
 * says hears itself, too. At the end, or after SILENCE without a message, it leaves and prints how
 * many it has heard, all of which were in order.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SILENCE_MS 20000
#define BETWEEN_MS 0.5

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
static struct fid_ep *ep;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_mc *mc;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void open_all(const char *group, const char *port)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};

	hints->fabric_attr->prov_name = strdup("pmf");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_MULTICAST;
	hints->tx_attr->op_flags = FI_MULTICAST;
	DO(fi_getinfo(FI_VERSION(1, 17), group, port, 0, hints, &info));
	fi_freeinfo(hints);
	DO(fi_fabric(info->fabric_attr, &fabric, NULL));
	DO(fi_domain(fabric, info, &domain, NULL));
	DO(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	DO(fi_endpoint(domain, info, &ep, NULL));
	DO(fi_cq_open(domain, &cq_attr, &cq, NULL));
	DO(fi_av_open(domain, &av_attr, &av, NULL));
	DO(fi_ep_bind(ep, &eq->fid, 0));
	DO(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	DO(fi_ep_bind(ep, &av->fid, 0));
	DO(fi_enable(ep));
}

static void join(void)
{
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t n;

	DO(fi_join(ep, info->dest_addr, 0, &mc, NULL));
	do
		n = fi_eq_sread(eq, &event, &entry, sizeof(entry), SILENCE_MS, 0);
	while (n == -FI_EAGAIN);
	if (n != sizeof(entry) || event != FI_JOIN_COMPLETE || entry.fid != &mc->fid) {
		fprintf(stderr, "not joined: %zd\n", n);
		exit(1);
	}
	printf("joined\n");
}

static void close_all(void)
{
	DO(fi_close(&mc->fid));
	DO(fi_close(&ep->fid));
	DO(fi_close(&av->fid));
	DO(fi_close(&cq->fid));
	DO(fi_close(&eq->fid));
	DO(fi_close(&domain->fid));
	DO(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

int main(int argc, char **argv)
{
	uint32_t number = 0, last = 0, heard = 0, said = 0, count;
	double next = now_ms(), end = next + SILENCE_MS;
	struct fi_cq_data_entry e;
	bool says;

	if (argc != 5)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	says = strcmp(argv[3], "say") == 0;
	count = (uint32_t)atoi(argv[4]);
	open_all(argv[1], argv[2]);
	join();
	DO(fi_recv(ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL));
	while (last != count && now_ms() < end) {
		if (says && said < count && now_ms() >= next) {
			said++;
			DO(fi_inject(ep, &said, sizeof(said), fi_mc_addr(mc)));
			next = now_ms() + BETWEEN_MS;
		}
		if (fi_cq_read(cq, &e, 1) != 1)
			continue;
		if (number <= last || !(e.flags & FI_MULTICAST)) {
			fprintf(stderr, "%u after %u\n", number, last);
			return 1;
		}
		last = number;
		heard++;
		end = now_ms() + SILENCE_MS;
		DO(fi_recv(ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL));
	}
	close_all();
	printf("heard %u\n", heard);
	return 0;
}
