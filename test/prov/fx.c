/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fx.h"

#include <CUnit/Basic.h>
#include <inttypes.h>
#include <time.h>

#include "pmf/pmf_stats.h"

bool fx_on_connections(void)
{
	const char *ep = getenv("FX_EP");

	return ep && strcmp(ep, "msg") == 0;
}

int fx_main(int argc, char **argv, const char *suite, const struct fx_test *tests, size_t count)
{
	unsigned int failed, ran = 0;
	CU_pSuite s;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	s = CU_add_suite(suite, NULL, NULL);
	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && !strstr(tests[i].name, argv[1]))
			continue;
		/* who the peer is is no question there; one that makes its endpoints itself */
		if (fx_on_connections() &&
		    (strstr(tests[i].name, "A13") || strstr(tests[i].name, "B12_flags_changed")))
			continue;
		CU_add_test(s, tests[i].name, tests[i].fn);
		ran++;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() + CU_get_number_of_tests_failed();
	CU_cleanup_registry();
	return failed || !ran ? 1 : 0;
}

/* ---- the fixture ---- */

struct fi_info *fx_hints(const struct fx_opt *opt)
{
	struct fi_info *h = fi_allocinfo();

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	h->caps = opt->caps ? opt->caps : FI_MSG;
	h->addr_format = opt->addr_format ? opt->addr_format : FI_SOCKADDR_IN;
	h->ep_attr->type = opt->msg ? FI_EP_MSG : FI_EP_RDM;
	h->domain_attr->threading = opt->threading ? opt->threading : FI_THREAD_SAFE;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = opt->auto_progress ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	h->mode = opt->prefix ? FI_MSG_PREFIX : 0;
	h->ep_attr->rx_ctx_cnt = opt->shared_rx ? FI_SHARED_CONTEXT : 0;
	if (opt->key) {
		h->domain_attr->auth_key = (uint8_t *)strdup(opt->key);
		h->domain_attr->auth_key_size = strlen(opt->key);
	}
	if (opt->av_keys)
		h->domain_attr->auth_key_size =
			SIZE_MAX; /* FI_AV_AUTH_KEY, which old headers lack */
	h->tx_attr->op_flags = opt->tx_op_flags;
	h->rx_attr->op_flags = opt->rx_op_flags;
	h->tx_attr->size = opt->tx_size;
	h->rx_attr->size = opt->rx_size;
	h->tx_attr->inject_size = opt->inject_size;
	h->fabric_attr->prov_name = strdup("pmf");
	return h;
}

void fx_open_domain(struct fx *f, const struct fx_opt *opt)
{
	static const struct fx_opt usual;
	struct fi_info *hints;

	memset(f, 0, sizeof(*f));
	f->opt = opt ? *opt : usual;
	if (fx_on_connections() && !f->opt.no_enable)
		f->opt.msg = true;
	hints = fx_hints(&f->opt);
	CU_ASSERT_EQUAL_FATAL(
		fi_getinfo(f->opt.api ? f->opt.api : FX_API, NULL, NULL, 0, hints, &f->info), 0);
	fi_freeinfo(hints);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(f->info->fabric_attr, &f->fabric, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f->fabric, f->info, &f->domain, NULL), 0);
	if (f->opt.shared_rx)
		CU_ASSERT_EQUAL_FATAL(fi_srx_context(f->domain, f->info->rx_attr, &f->srx, NULL),
				      0);
}

void fx_close_domain(struct fx *f)
{
	if (f->srx)
		CU_ASSERT_EQUAL(fi_close(&f->srx->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f->domain->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f->fabric->fid), 0);
	fi_freeinfo(f->info);
}

static struct fid_cq *open_cq(struct fx *f)
{
	struct fi_cq_attr attr = {
		.size = f->opt.cq_size,
		.format = f->opt.format ? f->opt.format : FI_CQ_FORMAT_DATA,
		.wait_obj = f->opt.wait_obj,
	};
	struct fid_cq *cq;

	CU_ASSERT_EQUAL_FATAL(fi_cq_open(f->domain, &attr, &cq, NULL), 0);
	return cq;
}

static struct fid_cntr *open_cntr(struct fx *f)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = f->opt.wait_obj};
	struct fid_cntr *cntr;

	CU_ASSERT_EQUAL_FATAL(fi_cntr_open(f->domain, &attr, &cntr, NULL), 0);
	return cntr;
}

/* What names the peers, or tells of the one peer. */
static void bind_peers(struct fx *f, struct fx_ep *e)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};

	if (f->opt.msg || f->opt.eq) {
		e->eq = fx_eq_open(f);
		CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->eq->fid, 0), 0);
	}
	if (f->opt.msg)
		return;
	e->av_is_lent = f->opt.shared_rx && e != &f->a;
	if (e->av_is_lent)
		e->av = f->a.av;
	else
		CU_ASSERT_EQUAL_FATAL(fi_av_open(f->domain, &attr, &e->av, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
}

/* The endpoint's own authorization key goes into an info of its own. */
static void own_key(struct fx *f, struct fx_ep *e)
{
	const char *key = e == &f->a ? f->opt.a_key : f->opt.b_key;

	if (!key)
		return;
	if (!e->info)
		e->info = fi_dupinfo(f->info);
	free(e->info->ep_attr->auth_key);
	e->info->ep_attr->auth_key = (uint8_t *)strdup(key);
	e->info->ep_attr->auth_key_size = strlen(key);
}

void fx_ep_open(struct fx *f, struct fx_ep *e)
{
	uint64_t caps = f->info->caps;

	own_key(f, e);
	CU_ASSERT_EQUAL_FATAL(fi_endpoint(f->domain, e->info ? e->info : f->info, &e->ep, NULL), 0);
	if (f->opt.one_cq && e == &f->b) {
		e->txcq = f->a.txcq;
		e->rxcq = f->a.rxcq;
	} else {
		e->txcq = open_cq(f);
		e->rxcq = f->opt.one_cq ? e->txcq : open_cq(f);
	}
	bind_peers(f, e);
	if (f->srx)
		CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &f->srx->fid, 0), 0);
	if (caps & FI_SEND)
		CU_ASSERT_EQUAL_FATAL(
			fi_ep_bind(e->ep, &e->txcq->fid, FI_TRANSMIT | f->opt.tx_bind), 0);
	if (caps & FI_RECV)
		CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->rxcq->fid, FI_RECV | f->opt.rx_bind),
				      0);
	if (f->opt.counters) {
		e->txcntr = open_cntr(f);
		e->rxcntr = open_cntr(f);
		CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->txcntr->fid, FI_SEND), 0);
		CU_ASSERT_EQUAL_FATAL(fi_ep_bind(e->ep, &e->rxcntr->fid, FI_RECV), 0);
	}
}

void fx_ep_enable(struct fx_ep *e)
{
	CU_ASSERT_EQUAL_FATAL(fi_enable(e->ep), 0);
	e->namelen = sizeof(e->name);
	CU_ASSERT_EQUAL_FATAL(fi_getname(&e->ep->fid, e->name, &e->namelen), 0);
}

static void close_and_clear(struct fid *fid)
{
	if (fid)
		CU_ASSERT_EQUAL(fi_close(fid), 0);
}

/* The endpoint and what stands beside its queues. */
static void close_ep_alone(struct fx_ep *e)
{
	if (e->ep)
		close_and_clear(&e->ep->fid);
	if (e->av && !e->av_is_lent)
		close_and_clear(&e->av->fid);
	if (e->eq)
		close_and_clear(&e->eq->fid);
	if (e->info)
		fi_freeinfo(e->info);
}

void fx_ep_close(struct fx_ep *e)
{
	close_ep_alone(e);
	if (e->txcntr)
		close_and_clear(&e->txcntr->fid);
	if (e->rxcntr)
		close_and_clear(&e->rxcntr->fid);
	if (e->rxcq != e->txcq)
		close_and_clear(&e->rxcq->fid);
	close_and_clear(&e->txcq->fid);
	memset(e, 0, sizeof(*e));
}

static fi_addr_t insert(struct fid_av *av, const char *name)
{
	const char *names[1] = {name};
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	const void *in = strncmp(name, "fi_", 3) == 0 ? (const void *)names : name;

	CU_ASSERT_EQUAL_FATAL(fi_av_insert(av, in, 1, &addr, 0, NULL), 1);
	return addr;
}

void fx_meet(struct fx *f)
{
	struct fx_ep *both[] = {&f->a, &f->b};

	for (int i = 0; i < 2; i++) {
		both[i]->a = insert(both[i]->av, f->a.name);
		both[i]->b = insert(both[i]->av, f->b.name);
	}
}

void fx_open(struct fx *f, const struct fx_opt *opt)
{
	fx_open_domain(f, opt);
	if (f->opt.msg) {
		fx_listen(f);
		fx_msg_meet(f);
		return;
	}
	fx_ep_open(f, &f->a);
	fx_ep_open(f, &f->b);
	if (f->opt.no_enable)
		return;
	fx_ep_enable(&f->a);
	fx_ep_enable(&f->b);
	if (!f->opt.no_insert)
		fx_meet(f);
}

void fx_close(struct fx *f)
{
	if (f->opt.one_cq && f->a.ep && f->b.ep) {
		/* b borrowed a's queue: its endpoint goes first, the queue with a */
		close_ep_alone(&f->b);
		f->b.ep = NULL;
	}
	if (f->b.ep)
		fx_ep_close(&f->b);
	if (f->a.ep)
		fx_ep_close(&f->a);
	if (f->pep)
		close_and_clear(&f->pep->fid);
	if (f->peq)
		close_and_clear(&f->peq->fid);
	fx_close_domain(f);
}

/* ---- waiting ---- */

double fx_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

double fx_dead_ms(void)
{
	const char *text = getenv("FI_PMF_PEER_TIMEOUT_MS");

	return text ? atof(text) : 10000;
}

void fx_progress(struct fx *f)
{
	struct fid_cq *cqs[] = {f->a.txcq, f->a.rxcq, f->b.txcq, f->b.rxcq};

	for (size_t i = 0; i < sizeof(cqs) / sizeof(cqs[0]); i++)
		if (cqs[i])
			fi_cq_read(cqs[i], NULL, 0);
}

int fx_take(struct fid_cq *cq, struct fx_comp *out)
{
	ssize_t n;

	memset(out, 0, sizeof(*out));
	n = fi_cq_read(cq, &out->e, 1);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == 1)
		return 1;
	if (n != -FI_EAVAIL)
		return -1;
	return fi_cq_readerr(cq, &out->err, 0) == 1 ? 1 : -1;
}

void fx_explain(struct fx *f, const struct fx_comp *c)
{
	struct pmf_stats_ops *ops;
	struct pmf_peer_info peers[16];
	struct pmf_stat stats[512];
	size_t n = 512, np = 16;

	printf("\n    error %d (%s)\n", c->err.err, fi_strerror(c->err.err));
	if (fi_open_ops(&f->domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL))
		return;
	ops->get(&f->domain->fid, stats, &n);
	for (size_t i = 0; i < n && i < 512; i++)
		if (stats[i].value)
			printf("    %s %s %" PRIu64 "\n", stats[i].object, stats[i].name,
			       stats[i].value);
	ops->peers(&f->domain->fid, peers, &np);
	for (size_t i = 0; i < np && i < 16; i++)
		printf("    %s -> %s: %s, in flight %u, cwnd %u\n", peers[i].local, peers[i].peer,
		       peers[i].state, peers[i].inflight, peers[i].cwnd);
}

uint64_t fx_stat(struct fx *f, const char *object, const char *name)
{
	struct pmf_stats_ops *ops;
	struct pmf_stat stats[512];
	size_t n = 512;

	CU_ASSERT_EQUAL_FATAL(fi_open_ops(&f->domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL),
			      0);
	ops->get(&f->domain->fid, stats, &n);
	for (size_t i = 0; i < n && i < 512; i++)
		if (!strcmp(stats[i].object, object) && !strcmp(stats[i].name, name))
			return stats[i].value;
	return 0;
}

bool fx_wait(struct fx *f, struct fid_cq *cq, struct fx_comp *out)
{
	double end = fx_now_ms() + FX_MS;
	int got;

	while ((got = fx_take(cq, out)) == 0 && fx_now_ms() < end)
		fx_progress(f);
	if (!got)
		fx_explain(f, out);
	return got == 1;
}

bool fx_stays_empty(struct fx *f, struct fid_cq *cq)
{
	double end = fx_now_ms() + 30;

	/* A message over the ring takes microseconds: what is not there after 30 ms is not under
	 * way. */
	while (fx_now_ms() < end) {
		struct fi_cq_tagged_entry e;

		fx_progress(f);
		if (fi_cq_read(cq, &e, 1) != -FI_EAGAIN)
			return false;
	}
	return true;
}

/* ---- bytes ---- */

void fx_fill(void *buf, size_t len, unsigned int seed)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((i * 131 + (i >> 8) * 17 + seed * 197) ^ (i >> 16));
}

bool fx_same(const void *buf, size_t len, unsigned int seed)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)((i * 131 + (i >> 8) * 17 + seed * 197) ^ (i >> 16)))
			return false;
	return true;
}

/* Not for the sanitizer to judge: the test looks on while the bytes come, to see them without a
 * call. */
__attribute__((noinline, no_sanitize("thread"))) char fx_peek(const void *byte)
{
	return *(const volatile char *)byte;
}

uint64_t fx_packets_sent(struct fx *f)
{
	struct pmf_stats_ops *ops;
	struct pmf_peer_info peers[16];
	size_t n = 16;
	uint64_t sum = 0;

	CU_ASSERT_EQUAL_FATAL(fi_open_ops(&f->domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL),
			      0);
	CU_ASSERT_EQUAL_FATAL(ops->peers(&f->domain->fid, peers, &n), 0);
	for (size_t i = 0; i < n; i++)
		sum += peers[i].tx_packets;
	return sum;
}
