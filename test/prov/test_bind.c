/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Binding, enabling, names, limits: rows A11, A17, D9, F2, F7, F8.
 */
#include "fx.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

static struct fid_ep *open_ep(struct fx *f)
{
	struct fid_ep *ep;

	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f->domain, f->info, &ep, NULL), 0);
	return ep;
}

static struct fid_cq *open_cq(struct fid_domain *domain)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA};
	struct fid_cq *cq;

	CU_ASSERT_EQUAL_FATAL(fi_cq_open(domain, &attr, &cq, NULL), 0);
	return cq;
}

static struct fid_av *open_av(struct fid_domain *domain)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fid_av *av;

	CU_ASSERT_EQUAL_FATAL(fi_av_open(domain, &attr, &av, NULL), 0);
	return av;
}

static struct fid_cntr *open_cntr(struct fid_domain *domain)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_cntr *cntr;

	CU_ASSERT_EQUAL_FATAL(fi_cntr_open(domain, &attr, &cntr, NULL), 0);
	return cntr;
}

static void test_A11_not_enabled(void)
{
	struct fx_opt opt = {.no_enable = true};
	char b[4] = {0};
	struct iovec iov = {b, 4};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	struct fid_ep *ep;
	struct fx f;

	fx_open(&f, &opt);
	ep = f.a.ep;
	CU_ASSERT_EQUAL(fi_send(ep, b, 4, NULL, 0, NULL), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_sendv(ep, &iov, NULL, 1, 0, NULL), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_sendmsg(ep, &msg, 0), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_inject(ep, b, 4, 0), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_senddata(ep, b, 4, NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_injectdata(ep, b, 4, 0, 0), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_recv(ep, b, 4, NULL, 0, NULL), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_recvv(ep, &iov, NULL, 1, 0, NULL), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_recvmsg(ep, &msg, 0), -FI_EOPBADSTATE);
	fx_close(&f);
}

static void one_direction(uint64_t dir)
{
	struct fx_opt opt = {.caps = FI_MSG | dir};
	char b[4] = {0};
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(f.info->caps & (FI_SEND | FI_RECV), dir);
	if (dir == FI_SEND) {
		CU_ASSERT_EQUAL(fi_recv(f.a.ep, b, 4, NULL, 0, NULL), -FI_ENOSYS);
		CU_ASSERT_EQUAL(fi_inject(f.a.ep, b, 4, f.a.b), 0);
	} else {
		CU_ASSERT_EQUAL(fi_send(f.a.ep, b, 4, NULL, f.a.b, NULL), -FI_ENOSYS);
		CU_ASSERT_EQUAL(fi_recv(f.a.ep, b, 4, NULL, 0, NULL), 0);
	}
	fx_close(&f);
}

static void test_A17_one_direction_needs_one_queue(void)
{
	one_direction(FI_SEND);
	one_direction(FI_RECV);
}

static void test_D9_what_is_missing_is_named(void)
{
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fx f;

	fx_open_domain(&f, NULL);
	cq = open_cq(f.domain);
	av = open_av(f.domain);
	ep = open_ep(&f);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_ENOAV);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &av->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_ENOCQ);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_ENOCQ);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_RECV), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), 0);
	CU_ASSERT_EQUAL(fi_enable(ep), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	fx_close_domain(&f);
}

static void test_D9_twice_and_with_foreign_flags(void)
{
	struct fid_cntr *cntr, *cntr2;
	struct fid_cq *cq, *cq2;
	struct fid_av *av, *av2;
	struct fid_ep *ep;
	struct fx f;

	fx_open_domain(&f, NULL);
	cq = open_cq(f.domain);
	cq2 = open_cq(f.domain);
	av = open_av(f.domain);
	av2 = open_av(f.domain);
	cntr = open_cntr(f.domain);
	cntr2 = open_cntr(f.domain);
	ep = open_ep(&f);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &av->fid, FI_SEND), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &av->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &av2->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_SELECTIVE_COMPLETION), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_READ), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq2->fid, FI_TRANSMIT), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq2->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq2->fid, FI_RECV | FI_SELECTIVE_COMPLETION), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr->fid, FI_MULTI_RECV), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr->fid, 0), 0);
	CU_ASSERT_EQUAL(
		fi_ep_bind(ep, &cntr->fid, FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
		0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr2->fid, FI_SEND), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr2->fid, FI_RECV), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr->fid, FI_RECV), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &f.domain->fid, 0), -FI_EINVAL);
	/* in use, and still working */
	CU_ASSERT_EQUAL(fi_close(&cq->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&av->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&cntr->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_enable(ep), 0);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&av2->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cq2->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cntr2->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cntr->fid), 0);
	fx_close_domain(&f);
}

static void test_D9_objects_of_another_domain(void)
{
	struct fid_domain *other;
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f.fabric, f.info, &other, NULL), 0);
	cq = open_cq(other);
	av = open_av(other);
	cntr = open_cntr(other);
	ep = open_ep(&f);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EDOMAIN);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &av->fid, 0), -FI_EDOMAIN);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &cntr->fid, FI_SEND), -FI_EDOMAIN);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cntr->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&cq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&other->fid), 0);
	fx_close_domain(&f);
}

static void test_E3_an_event_queue_in_use(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_eq *eq;
	struct fid_ep *ep;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f.fabric, &attr, &eq, NULL), 0);
	ep = open_ep(&f);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &eq->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_ep_bind(ep, &eq->fid, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
	CU_ASSERT_EQUAL(fi_domain_bind(f.domain, &eq->fid, 0), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&f.fabric->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.fabric->fid), 0);
	fi_freeinfo(f.info);
}

static void closes_after(struct fid_domain *domain, struct fid *fid)
{
	CU_ASSERT_EQUAL(fi_close(&domain->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(fid), 0);
}

/* Each kind of object keeps its domain open by itself. */
static void test_E3_a_domain_in_use(void)
{
	struct fi_poll_attr attr = {0};
	struct fid_poll *set;
	struct fid_ep *srx;
	struct fid_mr *mr;
	char b[8];
	struct fx f;

	fx_open_domain(&f, NULL);
	closes_after(f.domain, &open_ep(&f)->fid);
	closes_after(f.domain, &open_cq(f.domain)->fid);
	closes_after(f.domain, &open_av(f.domain)->fid);
	closes_after(f.domain, &open_cntr(f.domain)->fid);
	CU_ASSERT_EQUAL_FATAL(fi_mr_reg(f.domain, b, 8, FI_SEND, 0, 0, 0, &mr, NULL), 0);
	closes_after(f.domain, &mr->fid);
	CU_ASSERT_EQUAL_FATAL(fi_srx_context(f.domain, NULL, &srx, NULL), 0);
	closes_after(f.domain, &srx->fid);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	CU_ASSERT_EQUAL_FATAL(fi_poll_open(f.domain, &attr, &set), 0);
#pragma GCC diagnostic pop
	closes_after(f.domain, &set->fid);
	fx_close_domain(&f);
}

static void test_F2_sizes_are_really_there(void)
{
	struct fx_opt opt = {.tx_size = 40, .rx_size = 30, .inject_size = 100};
	char b[100] = {0};
	unsigned int n;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT(f.info->rx_attr->size >= 30 && f.info->tx_attr->size >= 40);
	for (n = 0; n < f.info->rx_attr->size; n++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, b, 100, NULL, FI_ADDR_UNSPEC, NULL), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, b, f.info->tx_attr->inject_size, f.a.b), 0);
	/* tx_attr->size sends at once, with nobody progressing in between: to a peer that is not
	 * there */
	for (n = 1; n < f.info->tx_attr->size; n++)
		CU_ASSERT_EQUAL(fi_send(f.a.ep, b, 100, NULL, f.a.b, NULL), 0);
	fx_close(&f);
}

static void test_F2_size_left_never_promises_too_much(void)
{
	struct fx_opt opt = {.tx_size = 8, .rx_size = 8, .no_enable = true};
	ssize_t left;
	char b[4] = {0};
	struct fx f;

	fx_open(&f, &opt);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	CU_ASSERT_EQUAL(fi_tx_size_left(f.b.ep), -FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_rx_size_left(f.b.ep), -FI_EOPBADSTATE);
	fx_ep_enable(&f.a);
	fx_ep_enable(&f.b);
	fx_meet(&f);
	left = fi_rx_size_left(f.b.ep);
	CU_ASSERT(left > 0);
	for (ssize_t i = 0; i < left; i++)
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, b, 4, NULL, FI_ADDR_UNSPEC, NULL), 0);
	left = fi_tx_size_left(f.b.ep);
	CU_ASSERT(left > 0);
	for (ssize_t i = 0; i < left; i++)
		CU_ASSERT_EQUAL(fi_send(f.b.ep, b, 4, NULL, f.b.a, NULL), 0);
#pragma GCC diagnostic pop
	fx_close(&f);
}

static void test_F2_unknown_options(void)
{
	size_t value = 0, len = sizeof(value);
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(fi_getopt(&f.a.ep->fid, FI_OPT_ENDPOINT, 9999, &value, &len),
			-FI_ENOPROTOOPT);
	CU_ASSERT_EQUAL(fi_getopt(&f.a.ep->fid, 77, FI_OPT_MIN_MULTI_RECV, &value, &len),
			-FI_ENOPROTOOPT);
	CU_ASSERT_EQUAL(fi_setopt(&f.a.ep->fid, FI_OPT_ENDPOINT, 9999, &value, len),
			-FI_ENOPROTOOPT);
	fx_close(&f);
}

static void test_F2_lengths_of_options(void)
{
	struct fid *fid;
	size_t value[2] = {100, 0}, len;
	struct fx f;

	fx_open(&f, NULL);
	fid = &f.a.ep->fid;
	CU_ASSERT_EQUAL(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, 4),
			-FI_EINVAL);
	CU_ASSERT_EQUAL(fi_setopt(fid, 77, FI_OPT_MIN_MULTI_RECV, value, 8), -FI_ENOPROTOOPT);
	CU_ASSERT_EQUAL(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, 8), 0);
	/* too small: how much it is; larger: how much was written */
	value[0] = 7;
	len = 4;
	CU_ASSERT_EQUAL(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, &len),
			-FI_ETOOSMALL);
	CU_ASSERT_EQUAL(len, sizeof(size_t));
	CU_ASSERT_EQUAL(value[0], 7);
	len = sizeof(value);
	CU_ASSERT_EQUAL(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, value, &len), 0);
	CU_ASSERT_EQUAL(len, sizeof(size_t));
	CU_ASSERT_EQUAL(value[0], 100);
	/* a connection's */
	CU_ASSERT_EQUAL(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, value, &len),
			-FI_ENOPROTOOPT);
	fx_close(&f);
}

#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 22))
static void test_F2_limits_are_lowered(void)
{
	struct fx_opt opt = {.no_enable = true};
	size_t most = 100, inject = 10, got = 0, len = sizeof(got);
	char b[128] = {0};
	struct fid *fid;
	struct fx f;

	fx_open(&f, &opt);
	fid = &f.a.ep->fid;
	CU_ASSERT_EQUAL(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &got, &len), 0);
	CU_ASSERT_EQUAL(got, f.info->ep_attr->max_msg_size);
	CU_ASSERT_EQUAL(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &most, len), 0);
	CU_ASSERT_EQUAL(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_INJECT_MSG_SIZE, &inject, len), 0);
	CU_ASSERT_EQUAL(fi_getopt(fid, FI_OPT_ENDPOINT, FI_OPT_INJECT_MSG_SIZE, &got, &len), 0);
	CU_ASSERT_EQUAL(got, inject);
	most++;
	CU_ASSERT_EQUAL(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &most, len),
			-FI_EINVAL);
	fx_ep_enable(&f.a);
	fx_ep_enable(&f.b);
	fx_meet(&f);
	most = 10;
	CU_ASSERT_EQUAL(fi_setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &most, len),
			-FI_EOPBADSTATE);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, b, 101, NULL, f.a.b, b), -FI_EMSGSIZE);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, b, 100, NULL, f.a.b, b), 0);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, b, 11, f.a.b), -FI_EMSGSIZE);
	CU_ASSERT_EQUAL(fi_inject(f.a.ep, b, 10, f.a.b), 0);
	fx_close(&f);
}
#endif

static void test_F7_names(void)
{
	struct fx_opt opt = {.no_enable = true};
	char name[128], cut[8];
	size_t len = 0;
	struct fx f;

	fx_open(&f, &opt);
	fx_ep_enable(&f.a);
	fx_ep_enable(&f.b);
	CU_ASSERT_EQUAL(f.a.namelen, 16);
	CU_ASSERT_NOT_EQUAL(memcmp(f.a.name, f.b.name, 16), 0);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, NULL, &len), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(len, 16);
	len = sizeof(cut);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, cut, &len), -FI_ETOOSMALL);
	CU_ASSERT_EQUAL(len, 16);
	CU_ASSERT_EQUAL(memcmp(cut, f.a.name, 8), 0);
	len = sizeof(name);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, name, &len), 0);
	CU_ASSERT_EQUAL(len, 16);
	len = sizeof(name);
	CU_ASSERT_EQUAL(fi_getpeer(f.a.ep, name, &len), -FI_ENOTCONN);
	CU_ASSERT_EQUAL(fi_setname(&f.a.ep->fid, f.b.name, 16), -FI_EOPBADSTATE);
	fx_close(&f);
}

static void test_F7_setname(void)
{
	struct fx_opt opt = {.no_enable = true, .addr_format = FI_ADDR_STR};
	char mine[] = "fi_sockaddr_in://10.99.0.1:4321", name[128];
	char other[] = "fi_sockaddr_in://10.99.0.77:4321";
	size_t len = sizeof(name);
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_setname(&f.a.ep->fid, other, sizeof(other)), -FI_EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(fi_setname(&f.a.ep->fid, mine, 4), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_setname(&f.a.ep->fid, mine, sizeof(mine)), 0);
	CU_ASSERT_EQUAL(fi_getname(&f.a.ep->fid, name, &len), 0);
	CU_ASSERT_STRING_EQUAL(name, mine);
	fx_ep_enable(&f.a);
	CU_ASSERT_STRING_EQUAL(f.a.name, mine);
	CU_ASSERT_EQUAL(fi_setname(&f.b.ep->fid, mine, sizeof(mine)), -FI_EADDRINUSE);
	fx_close(&f);
}

static void test_F7_a_port_that_is_asked_for(void)
{
	struct fi_info *hints, *info;
	struct fx_opt opt = {.addr_format = FI_ADDR_STR};
	struct fx f;

	fx_open_domain(&f, &opt);
	hints = fx_hints(&opt);
	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FX_API, "10.99.0.1", "5555", FI_SOURCE, hints, &info), 0);
	CU_ASSERT_STRING_EQUAL(info->src_addr, "fi_sockaddr_in://10.99.0.1:5555");
	fi_freeinfo(hints);
	fi_freeinfo(f.info);
	f.info = info;
	fx_ep_open(&f, &f.a);
	fx_ep_enable(&f.a);
	CU_ASSERT_STRING_EQUAL(f.a.name, "fi_sockaddr_in://10.99.0.1:5555");
	/* taken: the second one finds out at enable */
	fx_ep_open(&f, &f.b);
	CU_ASSERT_EQUAL(fi_enable(f.b.ep), -FI_EADDRINUSE);
	fx_close(&f);
}

/* What is not offered answers -FI_ENOSYS, and nothing crashes. */
static void test_F8_calls_that_are_not_offered(void)
{
	struct fi_tx_attr tx = {0};
	struct fid_pep *pep;
	struct fid_stx *stx;
	struct fid_ep *ep;
	char b[8] = {0};
	struct fx f;

	fx_open(&f, NULL);
	ep = f.a.ep;
	CU_ASSERT_EQUAL(fi_tsend(ep, b, 8, NULL, f.a.b, 1, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_trecv(ep, b, 8, NULL, f.a.b, 1, 0, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_read(ep, b, 8, NULL, f.a.b, 0, 0, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_write(ep, b, 8, NULL, f.a.b, 0, 0, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_atomic(ep, b, 1, NULL, f.a.b, 0, 0, FI_INT64, FI_SUM, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_connect(ep, b, NULL, 0), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_shutdown(ep, 0), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_scalable_ep(f.domain, f.info, &ep, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_stx_context(f.domain, &tx, &stx, NULL), -FI_ENOSYS);
	/* an unconnected endpoint has nothing to listen for */
	CU_ASSERT(fi_passive_ep(f.fabric, f.info, &pep, NULL) < 0);
	CU_ASSERT_EQUAL(fi_query_atomic(f.domain, FI_INT64, FI_SUM, NULL, 0), -FI_ENOSYS);
	fx_close(&f);
}

/* Each member of each table is there: a NULL one would be a crash in somebody's program. */
static void table_is_full(const void *table)
{
	const size_t *size = table;
	void *const *member = table;

	for (size_t i = 1; i < *size / sizeof(void *); i++)
		CU_ASSERT_PTR_NOT_NULL(member[i]);
}

static void test_F8_every_member_of_every_table_is_set(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fx_opt opt = {.counters = true};
	struct fid_eq *eq;
	struct fid_mr *mr;
	char b[8];
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f.fabric, &attr, &eq, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_mr_reg(f.domain, b, 8, FI_SEND, 0, 0, 0, &mr, NULL), 0);
	table_is_full(f.fabric->fid.ops);
	table_is_full(f.fabric->ops);
	table_is_full(f.domain->fid.ops);
	table_is_full(f.domain->ops);
	table_is_full(f.domain->mr);
	table_is_full(f.a.ep->fid.ops);
	table_is_full(f.a.ep->ops);
	table_is_full(f.a.ep->cm);
	table_is_full(f.a.ep->msg);
	table_is_full(f.a.ep->rma);
	table_is_full(f.a.ep->tagged);
	table_is_full(f.a.ep->atomic);
	table_is_full(f.a.ep->collective);
	table_is_full(f.a.av->fid.ops);
	table_is_full(f.a.av->ops);
	table_is_full(f.a.txcq->fid.ops);
	table_is_full(f.a.txcq->ops);
	table_is_full(f.a.txcntr->fid.ops);
	table_is_full(f.a.txcntr->ops);
	table_is_full(eq->fid.ops);
	table_is_full(eq->ops);
	table_is_full(mr->fid.ops);
	CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	fx_close(&f);
}

static void test_F5_memory_regions_are_plain_objects(void)
{
	char b[64], rx[64];
	struct iovec iov[2] = {{b, 32}, {b + 32, 32}};
	struct fi_mr_attr attr = {.mr_iov = iov, .iov_count = 2, .access = FI_SEND};
	struct fid_mr *mr[3];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	CU_ASSERT_EQUAL(f.info->domain_attr->mr_mode, 0);
	CU_ASSERT_EQUAL_FATAL(fi_mr_reg(f.domain, b, 64, FI_SEND, 0, 42, 0, &mr[0], b), 0);
	CU_ASSERT_EQUAL_FATAL(fi_mr_regv(f.domain, iov, 2, FI_RECV, 0, 43, 0, &mr[1], NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_mr_regattr(f.domain, &attr, 0, &mr[2]), 0);
	CU_ASSERT_EQUAL(fi_mr_key(mr[0]), 42);
	CU_ASSERT_PTR_EQUAL(mr[0]->fid.context, b);
	attr.iface = FI_HMEM_CUDA;
	CU_ASSERT_EQUAL(fi_mr_regattr(f.domain, &attr, 0, &mr[2]), -FI_ENOSYS);
	fx_fill(b, 64, 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, fi_mr_desc(mr[1]), FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, b, 64, fi_mr_desc(mr[0]), f.a.b, b), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	/* a bad one is never followed */
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, (void *)8, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, b, 64, (void *)8, f.a.b, b), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(fx_same(rx, 64, 1));
	CU_ASSERT_EQUAL(fi_close(&f.domain->fid), -FI_EBUSY);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fi_close(&mr[i]->fid), 0);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_A11_not_enabled),
	FX_TEST(test_A17_one_direction_needs_one_queue),
	FX_TEST(test_D9_what_is_missing_is_named),
	FX_TEST(test_D9_twice_and_with_foreign_flags),
	FX_TEST(test_D9_objects_of_another_domain),
	FX_TEST(test_E3_an_event_queue_in_use),
	FX_TEST(test_E3_a_domain_in_use),
	FX_TEST(test_F2_sizes_are_really_there),
	FX_TEST(test_F2_size_left_never_promises_too_much),
	FX_TEST(test_F2_unknown_options),
	FX_TEST(test_F2_lengths_of_options),
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 22))
	FX_TEST(test_F2_limits_are_lowered),
#endif
	FX_TEST(test_F5_memory_regions_are_plain_objects),
	FX_TEST(test_F7_names),
	FX_TEST(test_F7_setname),
	FX_TEST(test_F7_a_port_that_is_asked_for),
	FX_TEST(test_F8_calls_that_are_not_offered),
	FX_TEST(test_F8_every_member_of_every_table_is_set),
};
FX_MAIN("binding")
