/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Messages over a wire without faults: packing, cutting, announcing, holding, credit and aborting.
 */
#include "proto/flow.h"

#include "test_flow_pipe.h"

static struct pipe p;

/* Two flows that know each other already; msg 0 has gone from A to B. */
static void given_open(void)
{
	struct pmf_item *item = msg_new(1, 0);

	pipe_init(&p);
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL_FATAL(p.a.done, 1);
	free(item);
}

static struct pmf_item *push(struct end *e, uint64_t len)
{
	struct pmf_item *item = msg_new(len, e->f.tx_msg);

	pmf_flow_push(&e->f, item);
	return item;
}

/* An eager message's acknowledgement may be accounted after what came with it, and no other. */
static void test_an_answer_first(void)
{
	struct pmf_item *ask, *answer, *large;

	given_open();
	p.a.later = true;
	/* when: B answers before its acknowledgement is due */
	ask = push(&p.a, 8);
	while (p.b.whole < 2)
		pipe_run(&p, PMF_NS_PER_US);
	answer = push(&p.b, 8);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_EQUAL(p.a.laters, 1);
	CU_ASSERT_EQUAL(p.a.whole, 1);
	CU_ASSERT_EQUAL(p.a.done, 2);
	CU_ASSERT_EQUAL(p.a.f.inflight, 0);
	/* the packet that invites acknowledges what it invites */
	large = push(&p.a, 1 << 20);
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.laters, 1);
	CU_ASSERT_EQUAL(p.a.done, 3);
	CU_ASSERT_EQUAL(p.b.whole, 3);
	pipe_fini(&p);
	free(ask);
	free(answer);
	free(large);
}

static void test_small_ones_share_a_packet(void)
{
	struct pmf_item *item[60];

	given_open();
	for (int i = 0; i < 60; i++)
		item[i] = push(&p.a, 8);
	pipe_run(&p, PMF_NS_PER_MS);
	/* 60 records of 16 bytes */
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 2);
	CU_ASSERT_EQUAL(p.b.whole, 61);
	CU_ASSERT_EQUAL(p.a.done, 61);
	pipe_fini(&p);
	for (int i = 0; i < 60; i++)
		free(item[i]);
}

static void test_one_record_in_a_packet(void)
{
	struct pmf_item *item[20];

	given_open();
	p.a.conf.one_record = true;
	for (int i = 0; i < 20; i++)
		item[i] = push(&p.a, i == 10 ? 4000 : 8);
	pipe_run(&p, PMF_NS_PER_MS);
	/* 1 before, 19 small ones, and one in pieces that nothing rides with */
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 1 + 19 + (4000 + PIPE_PAYLOAD - 1) / PIPE_PAYLOAD);
	CU_ASSERT_EQUAL(p.b.whole, 21);
	CU_ASSERT_EQUAL(p.a.done, 21);
	pipe_fini(&p);
	for (int i = 0; i < 20; i++)
		free(item[i]);
}

static void test_at_most_so_many_records(void)
{
	static struct pmf_item *item[300];

	given_open();
	for (int i = 0; i < 300; i++)
		item[i] = push(&p.a, 0);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 1 + 3);
	CU_ASSERT_EQUAL(p.b.whole, 301);
	pipe_fini(&p);
	for (int i = 0; i < 300; i++)
		free(item[i]);
}

static void test_data_and_pieces(void)
{
	struct iovec iov[5];
	struct pmf_item *whole = msg_new(3000, 1), *item = msg_new(0, 1);

	/* given: a message in five pieces, one of them empty, with CQ data */
	given_open();
	for (int i = 0; i < 5; i++) {
		static const size_t at[] = {0, 1, 1, 1300, 1301, 3000};

		iov[i].iov_base = (uint8_t *)(uintptr_t)whole->buf + at[i];
		iov[i].iov_len = at[i + 1] - at[i];
	}
	item->iov = iov;
	item->niov = 5;
	item->len = 3000;
	item->flags = PMF_RF_DATA;
	item->data = 0x123456789abcdef0;
	/* when */
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: as long as the eager limit allows, in packets of the least MTU */
	CU_ASSERT_EQUAL(p.b.whole, 2);
	CU_ASSERT_EQUAL(p.b.got[1].flags & PMF_RF_DATA, PMF_RF_DATA);
	CU_ASSERT_EQUAL(p.b.got[1].data, 0x123456789abcdef0);
	CU_ASSERT_EQUAL(p.a.done, 2);
	pipe_fini(&p);
	free(whole);
	free(item);
}

/* The caller puts the last bytes of a packet behind it, if nothing follows them. */
static void test_last_bytes_are_left_out(void)
{
	struct pmf_item *small, *last;

	given_open();
	p.a.leaves = 500;
	small = push(&p.a, 8);
	last = push(&p.a, 600);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 2);
	CU_ASSERT_EQUAL(p.a.left_out, 1);
	CU_ASSERT_EQUAL(p.b.whole, 3);
	free(small);
	free(last);
	last = push(&p.a, 600);
	small = push(&p.a, 8);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 3);
	CU_ASSERT_EQUAL(p.a.left_out, 1);
	CU_ASSERT_EQUAL(p.b.whole, 5);
	pipe_fini(&p);
	free(small);
	free(last);
}

static struct fate lose_first(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			      size_t len)
{
	struct fate fate = {.lose = from == &pp->a && hdr->type == PMF_PT_DATA && !pp->count};

	pp->count += fate.lose;
	return fate;
}

/* What is sent again is a copy: the caller's device may still have the first one. */
static void test_nothing_is_left_out_again(void)
{
	struct pmf_item *item;

	given_open();
	p.a.leaves = 500;
	p.filter = lose_first;
	item = push(&p.a, 600);
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.count, 1);
	CU_ASSERT(p.a.stats.tx_retrans >= 1);
	CU_ASSERT_EQUAL(p.a.left_out, 1);
	CU_ASSERT_EQUAL(p.b.whole, 2);
	pipe_fini(&p);
	free(item);
}

/* A message of two pieces, sent where bytes of 100 and more may be left with the sender. */
static void run_two_pieces(struct pmf_item *item, const struct iovec *iov, uint64_t len)
{
	given_open();
	p.a.leaves = 100;
	item->iov = iov;
	item->niov = 2;
	item->len = len;
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, PMF_NS_PER_MS);
}

/* Bytes of two pieces of a message are not in one place. */
static void test_last_bytes_in_pieces(void)
{
	struct pmf_item *whole = msg_new(1000, 1), *item = msg_new(0, 1);
	struct iovec iov[2] = {{(void *)(uintptr_t)whole->buf, 400},
			       {(uint8_t *)(uintptr_t)whole->buf + 400, 600}};

	run_two_pieces(item, iov, 1000);
	CU_ASSERT_EQUAL(p.a.left_out, 0);
	CU_ASSERT_EQUAL(p.b.whole, 2);
	pipe_fini(&p);
	/* longer than a packet, some lie in one */
	free(whole);
	free(item);
	whole = msg_new(4000, 1);
	item = msg_new(0, 1);
	iov[0] = (struct iovec){(void *)(uintptr_t)whole->buf, 3000};
	iov[1] = (struct iovec){(uint8_t *)(uintptr_t)whole->buf + 3000, 1000};
	run_two_pieces(item, iov, 4000);
	CU_ASSERT(p.a.left_out >= 2);
	CU_ASSERT(p.a.left_out < p.a.stats.tx_packets - 1);
	CU_ASSERT_EQUAL(p.b.whole, 2);
	pipe_fini(&p);
	free(whole);
	free(item);
}

static void test_large_is_announced(void)
{
	struct pmf_item *item;

	/* given: nobody posts a receive */
	given_open();
	p.b.posted = false;
	/* when */
	item = push(&p.a, 300000);
	pipe_run(&p, 10 * PMF_NS_PER_MS);
	/* then: announced, and waits */
	CU_ASSERT_TRUE(p.b.got[1].announced);
	CU_ASSERT_EQUAL(p.b.got[1].len, 300000);
	CU_ASSERT_EQUAL(p.a.stats.tx_announced, 1);
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 2);
	CU_ASSERT_EQUAL(item->state, PMF_ITEM_PARKED);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	/* when it is invited */
	end_invite(&p.b, 1);
	pipe_run(&p, 10 * PMF_NS_PER_MS);
	/* then it comes */
	CU_ASSERT_TRUE(p.b.got[1].whole);
	CU_ASSERT_EQUAL(p.a.done, 2);
	CU_ASSERT_EQUAL(item->status, 0);
	CU_ASSERT_EQUAL(p.a.stats.tx_retrans, 0);
	pipe_fini(&p);
	free(item);
}

static void test_bulk_does_not_hold_up_small(void)
{
	struct pmf_item *bulk, *small;

	given_open();
	bulk = push(&p.a, 3000000);
	pipe_run(&p, 100 * PMF_NS_PER_US);
	CU_ASSERT_FALSE(p.b.got[1].whole);
	small = push(&p.a, 8);
	pipe_run(&p, 4 * PIPE_DELAY);
	CU_ASSERT_TRUE(p.b.got[2].whole);
	CU_ASSERT_FALSE(p.b.got[1].whole);
	pipe_run(&p, PMF_NS_PER_S);
	CU_ASSERT_TRUE(p.b.got[1].whole);
	pipe_fini(&p);
	free(bulk);
	free(small);
}

/* An eager message of one packet and one of four find no memory. */
static void test_held(void)
{
	static const uint64_t lens[] = {100, 4000, 0};
	struct pmf_item *item[3];

	for (int invite_early = 0; invite_early < 2; invite_early++) {
		given_open();
		p.b.holds = 3;
		for (int i = 0; i < 3; i++)
			item[i] = push(&p.a, lens[i]);
		if (invite_early)
			while (p.b.begun < 4)
				pipe_step(&p);
		else
			pipe_run(&p, PMF_NS_PER_MS);
		if (!invite_early)
			for (int i = 0; i < 3; i++)
				CU_ASSERT_EQUAL(item[i]->state, PMF_ITEM_PARKED);
		CU_ASSERT_EQUAL(p.a.done, 1);
		for (uint64_t i = 1; i <= 3; i++)
			end_invite(&p.b, i);
		pipe_run(&p, PMF_NS_PER_MS);
		CU_ASSERT_EQUAL(p.b.whole, 4);
		CU_ASSERT_EQUAL(p.a.done, 4);
		CU_ASSERT_EQUAL(p.a.stats.tx_held, 3);
		CU_ASSERT_EQUAL(p.b.stats.rx_held, 3);
		pipe_fini(&p);
		for (int i = 0; i < 3; i++)
			free(item[i]);
	}
}

static struct fate late_holds(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			      size_t len)
{
	struct fate fate = {0};

	/* Data from B holds HOLD records here; acknowledgements overtake them. */
	if (from == &pp->b && hdr->type >= PMF_PT_OPEN && hdr->body_len != 0)
		fate.late = 500 * PMF_NS_PER_US;
	return fate;
}

static void test_acknowledged_before_its_hold(void)
{
	struct pmf_item *item[2];

	/* given: the HOLD is late */
	given_open();
	p.filter = late_holds;
	p.b.holds = 1;
	/* when: a message that is held, and one that is not, both acknowledged by what is not late
	 */
	item[0] = push(&p.a, 100);
	pipe_step(&p);
	item[1] = push(&p.a, 100);
	pipe_run(&p, 300 * PMF_NS_PER_US);
	/* then: neither may be called done, since the header counts a HOLD that has not come */
	CU_ASSERT_EQUAL(p.a.f.una, p.a.f.psn_next);
	CU_ASSERT_EQUAL(p.a.done, 1);
	pipe_run(&p, 300 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(p.a.done, 2);
	CU_ASSERT_EQUAL(item[0]->state, PMF_ITEM_PARKED);
	CU_ASSERT_EQUAL(item[1]->state, PMF_ITEM_DONE);
	end_invite(&p.b, 1);
	pipe_run(&p, 2 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.done, 3);
	CU_ASSERT_EQUAL(p.b.whole, 3);
	pipe_fini(&p);
	free(item[0]);
	free(item[1]);
}

static void test_credit_runs_out(void)
{
	struct pmf_item *item[40];
	uint64_t cost = pmf_msg_cost(4096, true), fit;

	/* given: B takes nothing out of its memory */
	given_open();
	p.b.posted = false;
	fit = (p.b.conf.rx_credit) / cost;
	/* when */
	for (int i = 0; i < 40; i++)
		item[i] = push(&p.a, 4096);
	pipe_run(&p, 200 * PMF_NS_PER_MS);
	/* then: as many as fit are there, and A asks from time to time */
	CU_ASSERT_EQUAL(p.b.begun, 1 + fit);
	CU_ASSERT_TRUE(p.a.stats.credit_stalls >= 1);
	CU_ASSERT_TRUE(p.a.stats.tx_probes >= 3 && p.a.stats.tx_probes <= 20);
	CU_ASSERT_FALSE(pmf_flow_is_quiet(&p.a.f));
	/* and waits without limit for a peer that only is slow */
	pipe_run(&p, 3 * p.a.conf.dead_after);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	/* when: less than would be told at once comes back */
	pmf_flow_credit_return(&p.b.f, cost);
	pipe_run(&p, p.a.conf.dead_after);
	/* then: the next probe's answer tells it */
	CU_ASSERT_EQUAL(p.b.begun, 1 + fit + 1);
	/* when: all comes back */
	p.b.posted = true;
	pmf_flow_credit_return(&p.b.f, fit * cost);
	/* then: B tells at once */
	CU_ASSERT_TRUE(pmf_flow_wants_tx(&p.b.f, p.now));
	pipe_run(&p, 5 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.b.whole, 41);
	CU_ASSERT_EQUAL(p.a.done, 41);
	pipe_fini(&p);
	for (int i = 0; i < 40; i++)
		free(item[i]);
}

static void test_blocked_start_does_not_block_invite(void)
{
	struct pmf_item *item[20], *large;

	/* given: A has used all its credit at B and waits; B has announced something to A */
	given_open();
	p.b.posted = false;
	p.a.posted = false;
	large = push(&p.b, 100000);
	for (int i = 0; i < 20; i++)
		item[i] = push(&p.a, 4096);
	pipe_run(&p, 5 * PMF_NS_PER_MS);
	CU_ASSERT_TRUE(p.a.f.blocked);
	CU_ASSERT_TRUE(p.a.got[0].announced);
	/* when */
	end_invite(&p.a, 0);
	pipe_run(&p, 5 * PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_TRUE(p.a.got[0].whole);
	CU_ASSERT_TRUE(p.a.f.blocked);
	pipe_fini(&p);
	free(large);
	for (int i = 0; i < 20; i++)
		free(item[i]);
}

static void test_larger_than_all_credit(void)
{
	struct pmf_item *item;

	/* given: eager to us, but the peer never opens so much */
	pipe_init(&p);
	p.b.conf.rx_credit = p.b.conf.first_credit = 2048;
	end_begin(&p.b);
	/* when */
	item = push(&p.a, 4096);
	pipe_run(&p, 5 * PMF_NS_PER_MS);
	/* then: announced instead of waiting for ever */
	CU_ASSERT_TRUE(p.b.got[0].announced);
	CU_ASSERT_EQUAL(p.b.whole, 1);
	CU_ASSERT_EQUAL(p.a.done, 1);
	pipe_fini(&p);
	free(item);
}

static void test_abort(void)
{
	struct pmf_item *item[4];

	/* given: one parked, one being sent, one blocked, one behind it */
	given_open();
	p.b.posted = false;
	item[0] = push(&p.a, 50000);
	item[1] = push(&p.a, 1000000);
	pipe_run(&p, PMF_NS_PER_MS);
	end_invite(&p.b, 2);
	pipe_run(&p, 60 * PMF_NS_PER_US);
	CU_ASSERT_TRUE(p.b.got[2].have > 0 && p.b.got[2].have < 1000000);
	p.a.f.tx_limit = p.a.f.tx_cost;
	item[2] = push(&p.a, 100);
	item[3] = push(&p.a, 100);
	end_work(&p.a);
	/* when: the endpoint closes, and its bytes are gone */
	for (int i = 0; i < 4; i++) {
		pmf_flow_abort(&p.a.f, item[i]);
		item[i]->buf = NULL;
	}
	pipe_run(&p, 10 * PMF_NS_PER_MS);
	/* then: the peer knows of each, and all items are given back */
	CU_ASSERT_EQUAL(p.a.canceled, 4);
	CU_ASSERT_EQUAL(p.b.begun, 5);
	for (int i = 1; i <= 4; i++)
		CU_ASSERT_TRUE(p.b.got[i].aborted);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	pipe_fini(&p);
	for (int i = 0; i < 4; i++)
		free(item[i]);
}

static void test_abort_of_what_is_lost(void)
{
	struct pmf_item *item;
	struct pmf_item *next;

	/* given: a message of several packets, all of them lost */
	given_open();
	item = push(&p.a, 4000);
	p.mtu = 0;
	end_work(&p.a);
	p.mtu = PIPE_PAYLOAD;
	/* when */
	pmf_flow_abort(&p.a.f, item);
	item->buf = NULL;
	next = push(&p.a, 10);
	pipe_run(&p, 50 * PMF_NS_PER_MS);
	/* then: packets keep their numbers and carry aborts */
	CU_ASSERT_TRUE(p.b.got[1].aborted);
	CU_ASSERT_EQUAL(p.a.canceled, 1);
	CU_ASSERT_TRUE(p.b.got[2].whole);
	CU_ASSERT_EQUAL(p.a.done, 2);
	pipe_fini(&p);
	free(item);
	free(next);
}

static void test_push_on_dead(void)
{
	struct pmf_item *item[3];

	given_open();
	p.b.posted = false;
	item[0] = push(&p.a, 100000);
	pipe_run(&p, PMF_NS_PER_MS);
	item[1] = push(&p.a, 10);
	pmf_flow_kill(&p.a.f, ECONNABORTED);
	item[2] = push(&p.a, 10);
	end_collect(&p.a);
	CU_ASSERT_EQUAL(p.a.failed, 3);
	CU_ASSERT_EQUAL(p.a.last_status, -ECONNABORTED);
	CU_ASSERT_FALSE(pmf_flow_wants_tx(&p.a.f, p.now));
	pipe_fini(&p);
	for (int i = 0; i < 3; i++)
		free(item[i]);
}

/* What a peer that breaks the protocol may send. */
static void test_broken_records(void)
{
	static const struct pmf_rec bad[] = {
		{.type = PMF_RT_START, .flags = PMF_RF_WHOLE, .msg32 = 5},
		{.type = PMF_RT_CONT, .msg32 = 0, .off = 1, .len = 1},
		{.type = PMF_RT_CONT, .msg32 = 77, .off = 0, .len = 1},
		{.type = PMF_RT_BODY, .msg32 = 1, .off = 0, .len = 1},
		{.type = PMF_RT_ABORT, .msg32 = 2},
		{.type = PMF_RT_INVITE, .msg32 = 0},
		{.type = PMF_RT_HOLD, .msg32 = 0},
		{.type = PMF_RT_START, .msg32 = 1, .total = 1 << 20, .len = 1},
		{.type = PMF_RT_START, .msg32 = 1, .total = UINT64_MAX, .len = 1},
	};
	uint8_t buf[64] = {0};

	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(bad); i++) {
		struct pmf_rec_iter it = {buf, 0};
		struct pmf_rec rec;

		given_open(); /* B has taken message 0 and sent none */
		it.left = pmf_rec_put(buf, sizeof(buf), &bad[i]) + bad[i].len;
		CU_ASSERT_EQUAL(pmf_flow_next_rec(&p.b.f, &it, &rec), -EPROTO);
		pipe_fini(&p);
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"an answer first", test_an_answer_first},
		{"small ones share a packet", test_small_ones_share_a_packet},
		{"one record in a packet", test_one_record_in_a_packet},
		{"at most so many records", test_at_most_so_many_records},
		{"CQ data, and pieces", test_data_and_pieces},
		{"the last bytes are left out", test_last_bytes_are_left_out},
		{"nothing is left out again", test_nothing_is_left_out_again},
		{"the last bytes in pieces", test_last_bytes_in_pieces},
		{"large is announced", test_large_is_announced},
		{"bulk does not hold up small", test_bulk_does_not_hold_up_small},
		{"held", test_held},
		{"acknowledged before its hold", test_acknowledged_before_its_hold},
		{"credit runs out", test_credit_runs_out},
		{"a blocked start does not block an invitation",
		 test_blocked_start_does_not_block_invite},
		{"larger than all credit", test_larger_than_all_credit},
		{"abort", test_abort},
		{"abort of what is lost", test_abort_of_what_is_lost},
		{"push on dead", test_push_on_dead},
		{"broken records", test_broken_records},
	};

	return test_main("flow messages", tests, PMF_ARRAY_SIZE(tests));
}
