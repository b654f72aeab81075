/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Senders' bytes that are attached to frames, over a device that reads them when it sends: they
 * leave as they were when they were given, whatever becomes of the buffer afterwards.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>
#include <time.h>

#include "pmf/pmf_stats.h"
#include "walk.h"

#define PATIENCE 60 /* seconds; of a test that fails */
#define MOST 70000
#define MESSAGES 120

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;

struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr; /* in the AV */
};

static uint8_t out[MOST], in[MOST];
static uint64_t seed;

struct fi_provider *fi_prov_ini(void);

void walk_bad(const char *where, const char *what, long value)
{
	fprintf(stderr, "%s: %s (%ld); PMF_TEST_SEED=%lu\n", where, what, value,
		(unsigned long)seed);
	exit(1);
}

#define MUST(call)                                                    \
	do {                                                          \
		long rc_ = (call);                                    \
		if (rc_ < 0)                                          \
			walk_bad(#call, fi_strerror((int)-rc_), rc_); \
	} while (0)

static uint64_t next_random(void)
{
	static uint64_t x;

	x = x ? x : seed;
	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void open_all(void)
{
	struct fi_provider *prov = fi_prov_ini();
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fi_info *h = fi_allocinfo();

	h->caps = FI_MSG;
	h->addr_format = FI_SOCKADDR_IN;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->threading = FI_THREAD_SAFE;
	MUST(prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &info));
	fi_freeinfo(h);
	MUST(prov->fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	MUST(fi_av_open(domain, &attr, &av, NULL));
}

static void close_all(void)
{
	MUST(fi_close(&av->fid));
	MUST(fi_close(&domain->fid));
	MUST(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void end_open(struct end *e)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA};
	char name[64];
	size_t len = sizeof(name);

	MUST(fi_cq_open(domain, &attr, &e->cq, NULL));
	MUST(fi_endpoint(domain, info, &e->ep, NULL));
	MUST(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(e->ep, &av->fid, 0));
	MUST(fi_enable(e->ep));
	MUST(fi_getname(&e->ep->fid, name, &len));
	if (fi_av_insert(av, name, 1, &e->addr, 0, NULL) != 1)
		walk_bad("fi_av_insert", "refused", 0);
}

static void end_close(struct end *e)
{
	if (e->ep)
		MUST(fi_close(&e->ep->fid));
	MUST(fi_close(&e->cq->fid));
}

/* The next entry of @p e, while both sides are driven. @return its length */
static size_t entry(struct end *e, struct end *other, const char *what)
{
	struct fi_cq_data_entry got;
	time_t give_up = time(NULL) + PATIENCE;
	ssize_t rc;

	while ((rc = fi_cq_read(e->cq, &got, 1)) == -FI_EAGAIN) {
		fi_cq_read(other->cq, NULL, 0);
		if (time(NULL) > give_up)
			walk_bad(what, "does not come", 0);
	}
	if (rc != 1)
		walk_bad(what, "ends in an error", rc);
	return got.len;
}

static void fill(size_t len, uint64_t salt)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(salt * 131 + i * 7 + (i >> 8));
}

static void expect(size_t len, uint64_t salt, const char *where)
{
	for (size_t i = 0; i < len; i++)
		if (in[i] != (uint8_t)(salt * 131 + i * 7 + (i >> 8)))
			walk_bad(where, "other bytes than were sent", (long)i);
}

static uint64_t port_counter(const char *name)
{
	struct pmf_stats_ops *ops;
	struct pmf_stat stats[256];
	size_t count = 256;

	MUST(fi_open_ops(&domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL));
	ops->get(&domain->fid, stats, &count);
	for (size_t i = 0; i < count && i < 256; i++)
		if (strcmp(stats[i].name, name) == 0 && strcmp(stats[i].object, "port") == 0)
			return stats[i].value;
	walk_bad(name, "is no counter of the port", 0);
	return 0;
}

static void one_message(struct end *a, struct end *b, size_t len, uint64_t salt)
{
	fill(len, salt);
	MUST(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	MUST(fi_send(a->ep, out, len, NULL, b->addr, NULL));
	entry(a, b, "the end of a send");
	memset(out, 0xee, sizeof(out)); /* the application's again */
	if (entry(b, a, "a message") != len)
		walk_bad("a message", "another length", (long)len);
	expect(len, salt, "a message");
}

/* Frames get lost, come twice or late, and stay with us when the device is full. */
static void test_a_buffer_changes_after_its_completion(void)
{
	struct end a = {0}, b = {0};

	end_open(&a);
	end_open(&b);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		fail_begin(FAIL_DEVICE, 1 + next_random() % 8, next_random() % 6);
		one_message(&a, &b, next_random() % MOST, i);
		fail_end(FAIL_DEVICE);
	}
	if (port_counter("tx_attached") < MESSAGES)
		walk_bad("tx_attached", "too few for the test to mean anything",
			 (long)port_counter("tx_attached"));
	if (port_counter("rx_bad_cksum") != 0)
		walk_bad("rx_bad_cksum", "sums", (long)port_counter("rx_bad_cksum"));
	end_close(&a);
	end_close(&b);
}

/* The device takes nothing until the endpoint is closed: its frame goes as it was nevertheless. */
static void test_a_buffer_changes_after_the_close(void)
{
	enum { LEN = 1000 }; /* in one packet, whatever the path is known to bear */
	struct end a = {0}, b = {0};
	uint64_t attached;

	end_open(&a);
	end_open(&b);
	one_message(&a, &b, LEN, 1);
	one_message(&a, &b, LEN, 2);
	MUST(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	attached = port_counter("tx_attached");
	fill(LEN, 3);
	fail_begin(FAIL_DEVICE, 1, UINT32_MAX);
	MUST(fi_send(a.ep, out, LEN, NULL, b.addr, NULL));
	while (port_counter("tx_attached") == attached)
		fi_cq_read(a.cq, NULL, 0);
	MUST(fi_close(&a.ep->fid));
	a.ep = NULL;
	memset(out, 0xee, sizeof(out));
	fail_end(FAIL_DEVICE);
	if (entry(&b, &a, "the message that stayed with us") != LEN)
		walk_bad("the message that stayed with us", "another length", 0);
	expect(LEN, 3, "the message that stayed with us");
	end_close(&a);
	end_close(&b);
}

int main(int argc, char **argv)
{
	const char *given = getenv("PMF_TEST_SEED");

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("PMF_TEST_SEED=%lu\n", (unsigned long)seed);
	open_all();
	if (argc > 1) /* with faults */
		test_a_buffer_changes_after_its_completion();
	else
		test_a_buffer_changes_after_the_close();
	close_all();
	return 0;
}
