/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What a peer may put into a packet: records straight to the engine, without a device.
 */
#include "msg/engine_rx.c" /* its statics are what is tested */

#include <CUnit/Basic.h>
#include <stdlib.h>

#define DEAD_AFTER PMF_NS_PER_S
#define NSTARTS 180 /* fits a frame, and is more than PMF_WIRE_MAX_RECS */

struct fix {
	struct pmf_engine *e;
	struct pmf_ep *ep;
	struct pmf_eflow *ef;
	struct pmf_conf conf;
	uint8_t packet[NSTARTS * sizeof(struct pmf_wire_rec)];
};

static void *zeroed(size_t size)
{
	void *mem = aligned_alloc(PMF_CACHE_LINE, (size + 63) & ~(size_t)63);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mem);
	return memset(mem, 0, size);
}

static void begin(struct fix *x)
{
	struct pmf_flow_ident id = {.inc = 1, .conn = 1};

	memset(x, 0, sizeof(*x));
	x->e = zeroed(sizeof(*x->e));
	x->ep = zeroed(sizeof(*x->ep));
	x->ep->rctx = zeroed(sizeof(*x->ep->rctx));
	x->ef = zeroed(sizeof(*x->ef));
	x->e->conf = &x->conf;
	CU_ASSERT_EQUAL_FATAL(pmf_unexpected_init(x->e), 0);
	x->e->fconf.rx_credit = 1 << 20;
	x->e->fconf.window = 8;
	x->e->fconf.dead_after = DEAD_AFTER;
	x->e->fconf.min_rto = PMF_NS_PER_MS;
	x->e->fconf.max_rto = DEAD_AFTER / 8;
	x->e->fconf.max_payload = PMF_WIRE_MIN_PAYLOAD;
	atomic_store(&x->ep->state, PMF_EP_ENABLED);
	x->ep->rx_selective = true; /* no queue is bound */
	TAILQ_INIT(&x->ep->rctx->posted);
	TAILQ_INIT(&x->ep->rctx->unexpected);
	x->ef->ep = x->ep;
	STAILQ_INIT(&x->ef->fenced);
	TAILQ_INIT(&x->ef->rx_order);
	TAILQ_INIT(&x->ef->bodies);
	TAILQ_INIT(&x->ef->stubs);
	pmf_flow_init(&x->ef->flow, &x->e->fconf, &id, &x->ef->stats, 1);
}

static void end(struct fix *x)
{
	pmf_unexpected_fini(x->e);
	free(x->e);
	free(x->ep->rctx);
	free(x->ep);
	free(x->ef);
}

static size_t put_starts(struct fix *x, uint32_t n, uint8_t kind)
{
	for (uint32_t i = 0; i < n; i++) {
		struct pmf_rec rec = {
			.type = PMF_RT_START, .flags = PMF_RF_WHOLE, .kind = kind, .msg32 = i};

		pmf_rec_put(x->packet + i * sizeof(struct pmf_wire_rec),
			    sizeof(struct pmf_wire_rec), &rec);
	}
	return n * sizeof(struct pmf_wire_rec);
}

/* A hostile peer puts more messages into one packet than ours do, when few stubs are left. */
static void test_more_messages_than_stubs_are_refused(void)
{
	struct fix x;
	size_t len;

	begin(&x);
	while (x.e->nstub_free > PMF_WIRE_MAX_RECS)
		pmf_stub_get(x.e);
	len = put_starts(&x, NSTARTS, PMF_MK_MSG);
	CU_ASSERT_EQUAL(deliver(x.e, x.ef, 0, x.packet, len, 1), -ENOMEM);
	CU_ASSERT_EQUAL(x.e->stats.drop_no_memory, 1);
	CU_ASSERT(TAILQ_EMPTY(&x.ep->rctx->unexpected));
	/* as many as there are stubs still come in */
	len = put_starts(&x, PMF_WIRE_MAX_RECS, PMF_MK_MSG);
	CU_ASSERT_EQUAL(deliver(x.e, x.ef, 0, x.packet, len, 1), 0);
	CU_ASSERT_EQUAL(x.ep->stats.rx_unexpected, PMF_WIRE_MAX_RECS);
	CU_ASSERT_EQUAL(x.e->nstub_free, 0);
	end(&x);
}

/* A message of a block comes; @return what has become of it */
static enum pmf_stub_state keep_message(struct fix *x, uint32_t i)
{
	struct pmf_rec start = {.type = PMF_RT_START,
				.flags = PMF_RF_WHOLE,
				.msg32 = i,
				.total = 1000,
				.len = 1000};
	size_t n = pmf_rec_put(x->packet, sizeof(x->packet), &start);

	CU_ASSERT_EQUAL_FATAL(deliver(x->e, x->ef, i, x->packet, n + start.len, 1), 0);
	return TAILQ_LAST(&x->ef->ep->rctx->unexpected, pmf_stubq)->state;
}

/* An endpoint that receives nothing must not take the memory of those that do. */
static void test_one_endpoint_leaves_memory_to_others(void)
{
	enum { BLOCKS = 32, MOST = 24 };
	struct pmf_ep *first, *other = zeroed(sizeof(*other));
	struct fix x;
	uint32_t i;

	begin(&x);
	pmf_unexpected_fini(x.e);
	x.conf.unexpected_bytes = BLOCKS * PMF_BLOCK_SIZE;
	CU_ASSERT_EQUAL_FATAL(pmf_unexpected_init(x.e), 0);
	for (i = 0; i < MOST; i++)
		CU_ASSERT_EQUAL(keep_message(&x, i), PMF_STUB_COMPLETE);
	CU_ASSERT_EQUAL(keep_message(&x, i++), PMF_STUB_HELD);
	first = x.ep;
	atomic_store(&other->state, PMF_EP_ENABLED);
	other->rx_selective = true;
	other->rctx = zeroed(sizeof(*other->rctx));
	TAILQ_INIT(&other->rctx->posted);
	TAILQ_INIT(&other->rctx->unexpected);
	x.ef->ep = other;
	CU_ASSERT_EQUAL(keep_message(&x, i++), PMF_STUB_COMPLETE);
	/* One that is received makes room for the next. */
	x.ef->ep = first;
	pmf_stub_put(x.e, TAILQ_FIRST(&first->rctx->unexpected));
	CU_ASSERT_EQUAL(keep_message(&x, i++), PMF_STUB_COMPLETE);
	CU_ASSERT_EQUAL(keep_message(&x, i++), PMF_STUB_HELD);
	free(other->rctx);
	free(other);
	end(&x);
}

/* What the flow would do by itself until @p until, its packets lost on the way. */
static void run_unanswered(struct pmf_flow *f, pmf_ns_t until)
{
	uint8_t frame[PMF_WIRE_MIN_PAYLOAD];
	pmf_ns_t now;
	bool ect;

	while ((now = pmf_flow_deadline(f)) < until) {
		pmf_flow_on_timer(f, now);
		while (pmf_flow_wants_tx(f, now) &&
		       pmf_flow_tx(f, now, frame, sizeof(frame), &ect, NULL))
			;
	}
}

/* Half of a message has come; a posted receive, if any, has taken it. */
static void begin_half(struct fix *x, struct pmf_rx *rx, uint8_t *buf)
{
	struct pmf_contact c = {
		.inc = 2, .conn = 3, .max_payload = PMF_WIRE_MIN_PAYLOAD, .cookie_time = 1};
	struct pmf_rec start = {.type = PMF_RT_START, .total = 64, .len = 32};

	begin(x);
	pmf_flow_accept(&x->ef->flow, &c, 1);
	if (rx) {
		*rx = (struct pmf_rx){
			.rctx = x->ep->rctx, .cap = 64, .niov = 1, .iov = {{buf, 64}}};
		TAILQ_INSERT_TAIL(&x->ep->rctx->posted, rx, link);
		x->ep->rctx->nany = 1;
	}
	CU_ASSERT_EQUAL(deliver(x->e, x->ef, 0, x->packet,
				pmf_rec_put(x->packet, sizeof(x->packet), &start) + start.len, 1),
			0);
	if (rx)
		CU_ASSERT_EQUAL(rx->got, 32);
}

/* E1: the receive must not wait for ever, though this side has nothing to send. */
static void test_a_sender_that_dies_within_a_message_is_missed(void)
{
	struct pmf_rx rx;
	uint8_t buf[64];
	struct fix x;

	begin_half(&x, &rx, buf);
	run_unanswered(&x.ef->flow, 10 * DEAD_AFTER);
	CU_ASSERT_EQUAL(x.ef->flow.state, PMF_FLOW_DEAD);
	CU_ASSERT_EQUAL(x.ef->flow.error, ETIMEDOUT);
	end(&x);
}

/* Nor must what nobody has received yet keep its memory for ever. */
static void test_a_sender_that_dies_within_a_kept_message_is_missed(void)
{
	struct fix x;

	begin_half(&x, NULL, NULL);
	CU_ASSERT_EQUAL(x.ep->stats.rx_unexpected, 1);
	run_unanswered(&x.ef->flow, 10 * DEAD_AFTER);
	CU_ASSERT_EQUAL(x.ef->flow.state, PMF_FLOW_DEAD);
	pmf_match_flow_end(x.e, x.ef, ETIMEDOUT);
	CU_ASSERT(TAILQ_EMPTY(&x.ep->rctx->unexpected));
	CU_ASSERT_EQUAL(x.ef->awaited, 0);
	end(&x);
}

/* Whose message is whole may go: peers that are idle are not asked whether they live. */
static void test_an_idle_peer_is_not_watched(void)
{
	struct pmf_rec cont = {.type = PMF_RT_CONT, .off = 32, .len = 32};
	struct pmf_rx rx;
	uint8_t buf[64];
	struct fix x;

	begin_half(&x, &rx, buf);
	CU_ASSERT_EQUAL_FATAL(pmf_freelist_open(&x.ep->rctx->free, sizeof(rx), 8, false), 0);
	CU_ASSERT_EQUAL(deliver(x.e, x.ef, 1, x.packet,
				pmf_rec_put(x.packet, sizeof(x.packet), &cont) + cont.len, 1),
			0);
	CU_ASSERT_EQUAL(x.ep->stats.rx_msgs, 1);
	run_unanswered(&x.ef->flow, 10 * DEAD_AFTER);
	CU_ASSERT_EQUAL(x.ef->flow.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(x.ef->stats.tx_probes, 0);
	pmf_freelist_close(&x.ep->rctx->free);
	end(&x);
}

/* E2: an OPEN that a dead process left on the way must not end the flow with the process after it.
 */
static void test_a_late_opening_does_not_end_a_newer_flow(void)
{
	struct pmf_contact c = {.cookie_time = 100};
	struct fix x;

	begin(&x);
	/* with nobody, or with this very life, a good cookie is all that is asked for */
	CU_ASSERT_TRUE(cookie_good(0, &c, NULL, NULL));
	x.ef->flow.last_rx = 200;
	CU_ASSERT_TRUE(cookie_good(0, &c, x.ef, x.ef));
	/* with another life: given before that one was heard, or after */
	CU_ASSERT_FALSE(cookie_good(0, &c, x.ef, NULL));
	x.ef->flow.last_rx = 101;
	CU_ASSERT_FALSE(cookie_good(0, &c, x.ef, NULL));
	/* (of one burst with the last that it said) */
	x.ef->flow.last_rx = 100;
	CU_ASSERT_TRUE(cookie_good(0, &c, x.ef, NULL));
	/* too old a cookie opens nothing, and stops nothing that is open */
	CU_ASSERT_FALSE(cookie_good(-ETIMEDOUT, &c, NULL, NULL));
	CU_ASSERT_FALSE(cookie_good(-ETIMEDOUT, &c, x.ef, x.ef));
	x.ef->flow.bound = true;
	CU_ASSERT_TRUE(cookie_good(-ETIMEDOUT, &c, x.ef, x.ef));
	CU_ASSERT_FALSE(cookie_good(-EACCES, &c, x.ef, x.ef));
	end(&x);
}

/* Tagged messages and the like are reserved: they must not arrive as plain ones. */
static void test_a_message_of_another_kind_ends_the_flow(void)
{
	struct fix x;

	begin(&x);
	CU_ASSERT_EQUAL(deliver(x.e, x.ef, 0, x.packet, put_starts(&x, 1, PMF_MK_TAGGED), 1),
			-EPROTO);
	CU_ASSERT_EQUAL(x.ef->flow.state, PMF_FLOW_DEAD);
	CU_ASSERT_EQUAL(x.e->stats.drop_protocol, 1);
	CU_ASSERT(TAILQ_EMPTY(&x.ep->rctx->unexpected));
	end(&x);
}

int main(void)
{
	unsigned int failed;
	CU_pSuite s;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	s = CU_add_suite("engine, received records", NULL, NULL);
	CU_add_test(s, "more messages than stubs are refused",
		    test_more_messages_than_stubs_are_refused);
	CU_add_test(s, "one endpoint leaves memory to others",
		    test_one_endpoint_leaves_memory_to_others);
	CU_add_test(s, "a sender that dies within a message is missed",
		    test_a_sender_that_dies_within_a_message_is_missed);
	CU_add_test(s, "a sender that dies within a kept message is missed",
		    test_a_sender_that_dies_within_a_kept_message_is_missed);
	CU_add_test(s, "an idle peer is not watched", test_an_idle_peer_is_not_watched);
	CU_add_test(s, "a late opening does not end a newer flow",
		    test_a_late_opening_does_not_end_a_newer_flow);
	CU_add_test(s, "a message of another kind ends the flow",
		    test_a_message_of_another_kind_ends_the_flow);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures() + CU_get_number_of_tests_failed();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}
