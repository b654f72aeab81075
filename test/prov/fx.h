/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Fixture of the provider tests: two endpoints a and b of one process over a DPDK ring, through
 * fi_* calls only. Everything that is waited for has a deadline, and waiting reads all queues of
 * the fixture, as the manual progress model asks.
 */
#ifndef PMF_TEST_FX_H
#define PMF_TEST_FX_H

#include <CUnit/CUnit.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FX_API FI_VERSION(1, 17)
#define FX_MS 60000 /* deadline of every wait: far above what a loaded machine needs */

/* What a test wants other than the usual; all zero is the usual. */
struct fx_opt {
	bool auto_progress;
	enum fi_threading threading; /* default FI_THREAD_SAFE */
	enum fi_cq_format format;    /* default FI_CQ_FORMAT_DATA */
	enum fi_wait_obj wait_obj;   /* of CQs and counters; default FI_WAIT_NONE */
	uint64_t caps;		     /* default FI_MSG */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t tx_bind, rx_bind; /* FI_SELECTIVE_COMPLETION */
	size_t tx_size, rx_size, inject_size, cq_size;
	uint32_t addr_format;	   /* default FI_SOCKADDR_IN */
	uint32_t api;		   /* version asked for; default FX_API */
	bool av_keys;		   /* FI_AV_AUTH_KEY: keys are the tests' to insert */
	const char *key;	   /* authorization key of the domain */
	const char *a_key, *b_key; /* of the endpoints, when not the domain's */
	bool one_cq;		   /* a and b and both directions on one CQ */
	bool counters;
	bool no_enable; /* bound, not enabled */
	bool no_insert; /* AVs are empty */
	bool eq;	/* an event queue for each endpoint, which msg always has */
	bool msg;	/* FI_EP_MSG: a has connected to b; addresses are garbage */
	bool shared_rx; /* a and b receive from f->srx, and share an AV */
	bool prefix;	/* FI_MSG_PREFIX */
};

struct fx_ep {
	struct fid_ep *ep;
	struct fid_cq *txcq, *rxcq;
	struct fid_cntr *txcntr, *rxcntr;
	struct fid_av *av;
	bool av_is_lent;      /* shared_rx: it is a's */
	struct fid_eq *eq;    /* msg, or opt.eq */
	struct fi_info *info; /* NULL: the fixture's */
	fi_addr_t a, b;	      /* of the two in this endpoint's AV */
	char name[128];
	size_t namelen;
};

struct fx {
	struct fx_opt opt;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fx_ep a, b;
	struct fid_ep *srx;  /* shared_rx */
	struct fid_pep *pep; /* msg: listens, and its queue */
	struct fid_eq *peq;
};

/* ---- running ---- */

struct fx_test {
	const char *name;
	void (*fn)(void);
};
#define FX_TEST(fn)     \
	{               \
#fn, fn \
	}

/** Run all, or those whose name contains argv[1]. @return main's exit code */
int fx_main(int argc, char **argv, const char *suite, const struct fx_test *tests, size_t count);
#define FX_MAIN(suite)                                                                      \
	int main(int argc, char **argv)                                                     \
	{                                                                                   \
		return fx_main(argc, argv, suite, tests, sizeof(tests) / sizeof(tests[0])); \
	}

/* ---- the fixture ---- */

/** Open all of it; a failure ends the test. @p opt may be NULL. */
void fx_open(struct fx *f, const struct fx_opt *opt);
/** Close all of it; each close must return 0. */
void fx_close(struct fx *f);
/** FX_EP=msg: the suite runs once more, with opt.msg wherever endpoints are opened. */
bool fx_on_connections(void);
/** fi_getinfo as fx_open() does it, with the options' hints. */
struct fi_info *fx_hints(const struct fx_opt *opt);
/** Fabric and domain only. */
void fx_open_domain(struct fx *f, const struct fx_opt *opt);
void fx_close_domain(struct fx *f);
/** One endpoint with its CQs and AV on f->domain. */
void fx_ep_open(struct fx *f, struct fx_ep *e);
void fx_ep_enable(struct fx_ep *e);
void fx_ep_close(struct fx_ep *e);
/** Enter each other's and the own name in the AVs: a is first, b second. */
void fx_meet(struct fx *f);

/* ---- waiting ---- */

double fx_now_ms(void);
/** Packets of all flows of the domain so far, those sent again included. */
uint64_t fx_packets_sent(struct fx *f);
/** FI_PMF_PEER_TIMEOUT_MS of this run. */
double fx_dead_ms(void);

/* A completion in the largest format, with what fi_cq_readerr gives. */
struct fx_comp {
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err; /* err.err is 0 for a success */
};

/** @return 1 a completion of any kind, 0 none, -1 something that must not happen */
int fx_take(struct fid_cq *cq, struct fx_comp *out);
/** Wait for one completion of any kind on @p cq. @return false at the deadline */
bool fx_wait(struct fx *f, struct fid_cq *cq, struct fx_comp *out);
/** Print what the provider has counted: why a wait went wrong. */
void fx_explain(struct fx *f, const struct fx_comp *c);
/** What the provider has counted. @return 0 as well when there is no such counter */
uint64_t fx_stat(struct fx *f, const char *object, const char *name);
/** fx_wait() as an assertion: a success entry with this context. */
#define FX_WAIT_OK(f, cq, ctx, out)                            \
	do {                                                   \
		CU_ASSERT_FATAL(fx_wait(f, cq, out));          \
		CU_ASSERT_EQUAL((out)->err.err, 0);            \
		CU_ASSERT_PTR_EQUAL((out)->e.op_context, ctx); \
	} while (0)
#define FX_WAIT_ERR(f, cq, ctx, errnum, out)                     \
	do {                                                     \
		CU_ASSERT_FATAL(fx_wait(f, cq, out));            \
		CU_ASSERT_EQUAL((out)->err.err, errnum);         \
		CU_ASSERT_PTR_EQUAL((out)->err.op_context, ctx); \
	} while (0)
/*
 * @p call drives progress: each runs a pass, or nearly. The helper thread may have the engine's
 * word now and then, and be preempted with it for as long as a thousand take: one of several
 * attempts must do.
 */
#define FX_DRIVES_PROGRESS(f, call)                                           \
	do {                                                                  \
		const double end_ = fx_now_ms() + 10000;                      \
		uint64_t before_, passes_;                                    \
		do {                                                          \
			before_ = fx_stat(f, "engine:0", "passes");           \
			for (int i_ = 0; i_ < 1000; i_++)                     \
				call;                                         \
			passes_ = fx_stat(f, "engine:0", "passes") - before_; \
		} while (passes_ <= 500 && fx_now_ms() < end_);               \
		CU_ASSERT(passes_ > 500);                                     \
	} while (0)

/** Drive everything for some passes and see that @p cq stays empty. */
bool fx_stays_empty(struct fx *f, struct fid_cq *cq);
/** Read all queues once without taking anything (count 0). */
void fx_progress(struct fx *f);
/** Repeat a call while it returns -FI_EAGAIN, driving progress. The value of `call` at the end. */
#define FX_RETRY(f, call)                                                        \
	({                                                                       \
		double fx_end_ = fx_now_ms() + FX_MS;                            \
		ssize_t fx_rc_;                                                  \
		while ((fx_rc_ = (call)) == -FI_EAGAIN && fx_now_ms() < fx_end_) \
			fx_progress(f);                                          \
		fx_rc_;                                                          \
	})

/* ---- connections; fx_msg.c ---- */

/* An event with room for what comes with it. */
struct fx_event {
	uint32_t event;
	ssize_t len;   /* what fi_eq_read gave */
	uint8_t *data; /* of the program */
	size_t datalen;
	struct fi_eq_err_entry err; /* err.err is 0 for an event */
	uint8_t err_data[512];
	union { /* last: the entry has a member without an end */
		struct fi_eq_cm_entry cm;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 512];
	};
};

struct fid_eq *fx_eq_open(struct fx *f);
/** A listener on a port of its choice, in f->pep and f->peq. */
void fx_listen(struct fx *f);
/** fi_connect to the listener. */
int fx_connect(struct fx *f, struct fx_ep *e, const void *data, size_t len);
/** Wait for one event of any kind, driving everything. @return false at the deadline */
bool fx_event(struct fx *f, struct fid_eq *eq, struct fx_event *out);
/* The next event is one of @p kind for @p fid. */
#define FX_EVENT(f, eq, kind, of, ev)                           \
	do {                                                    \
		CU_ASSERT_FATAL(fx_event(f, eq, ev));           \
		CU_ASSERT_EQUAL((ev)->event, (uint32_t)(kind)); \
		CU_ASSERT_PTR_EQUAL((ev)->cm.fid, of);          \
	} while (0)

/* The next event is an error of @p fid. */
#define FX_EVENT_ERR(f, eq, errnum, of, ev)             \
	do {                                            \
		CU_ASSERT_FATAL(fx_event(f, eq, ev));   \
		CU_ASSERT_EQUAL((ev)->err.err, errnum); \
		CU_ASSERT_PTR_EQUAL((ev)->err.fid, of); \
	} while (0)
/** a connects, b is made for its request and accepts. */
void fx_msg_meet(struct fx *f);
/** Drive everything for some passes and see that @p eq stays empty. */
bool fx_no_event(struct fx *f, struct fid_eq *eq);

/* ---- bytes ---- */

void fx_fill(void *buf, size_t len, unsigned int seed);
bool fx_same(const void *buf, size_t len, unsigned int seed);
/** Look at a byte of a posted buffer, which the provider may be writing. */
char fx_peek(const void *byte);

#endif
