/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Path MTU: proven before use, searched when the largest does not pass, given up when it passes no
 * more.
 */
#include "proto/flow_private.h"

#include "test_flow_pipe.h"

static struct pipe p;

static void given_open(size_t mtu)
{
	struct pmf_item *item = msg_new(1, 0), *back = msg_new(1, 0);

	pipe_init(&p);
	p.mtu = mtu;
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, PMF_NS_PER_MS);
	pmf_flow_push(&p.b.f, back);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL_FATAL(p.b.done, 1);
	free(item);
	free(back);
}

static struct pmf_item *push(struct end *e, uint64_t len)
{
	struct pmf_item *item = msg_new(len, e->f.tx_msg);

	pmf_flow_push(&e->f, item);
	return item;
}

static void test_small_messages_need_no_search(void)
{
	struct pmf_item *item;

	given_open(PIPE_PAYLOAD);
	item = push(&p.a, 100);
	pipe_run(&p, PMF_NS_PER_S);
	CU_ASSERT_EQUAL(p.a.stats.tx_probes, 0);
	CU_ASSERT_EQUAL(p.a.f.mtu, PMF_WIRE_MIN_PAYLOAD);
	pipe_fini(&p);
	free(item);
}

static void test_largest_passes(void)
{
	struct pmf_item *item;

	given_open(PIPE_PAYLOAD);
	item = push(&p.a, 500000);
	pipe_run(&p, 10 * PMF_NS_PER_MS);
	/* one padded probe, and then large packets */
	CU_ASSERT_EQUAL(p.a.stats.tx_probes, 1);
	CU_ASSERT_EQUAL(p.largest[PMF_PT_PROBE], PIPE_PAYLOAD);
	CU_ASSERT_EQUAL(p.a.stats.mtu_raised, 1);
	CU_ASSERT_EQUAL(p.a.f.mtu, PIPE_PAYLOAD);
	CU_ASSERT_EQUAL(p.largest[PMF_PT_DATA], PIPE_PAYLOAD);
	CU_ASSERT_TRUE(p.b.got[1].whole);
	pipe_fini(&p);
	free(item);
}

static void test_smaller_port_bounds(void)
{
	struct pmf_item *item;

	pipe_init(&p);
	p.b.conf.max_payload = 1400;
	item = push(&p.a, 100000);
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	CU_ASSERT_TRUE(p.b.got[0].whole);
	CU_ASSERT_EQUAL(p.a.f.mtu, 1400);
	CU_ASSERT_TRUE(p.largest[PMF_PT_PROBE] <= 1400 && p.largest[PMF_PT_DATA] <= 1400);
	pipe_fini(&p);
	free(item);
}

/* Bulk until the search has ended. @return how much went */
static unsigned int bulk(unsigned int rounds)
{
	unsigned int whole = p.b.whole;

	for (unsigned int i = 0; i < rounds; i++) {
		struct pmf_item *item = push(&p.a, 100000);

		pipe_run(&p, 20 * PMF_NS_PER_MS);
		CU_ASSERT_EQUAL_FATAL(item->state, PMF_ITEM_DONE);
		free(item);
	}
	return p.b.whole - whole;
}

static void test_search(void)
{
	static const struct {
		size_t path;
		unsigned int least;
	} cases[] = {{1472, 1472}, {1452, 1452}, {1300, 1200}, {4000, 3700}, {8900, 8600}};

	for (unsigned int i = 0; i < PMF_ARRAY_SIZE(cases); i++) {
		given_open(cases[i].path);
		CU_ASSERT_EQUAL(bulk(20), 20);
		CU_ASSERT_TRUE(p.a.f.mtu >= cases[i].least && p.a.f.mtu <= cases[i].path);
		/* probes that get lost slow nothing down */
		CU_ASSERT_EQUAL(p.a.stats.timeouts, 0);
		CU_ASSERT_EQUAL(p.a.stats.tx_retrans, 0);
		CU_ASSERT_TRUE(p.a.stats.tx_probes < 30);
		pipe_fini(&p);
	}
}

/* Answers to a resynchronisation that get lost. */
static struct fate lose_answers(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
				size_t len)
{
	struct fate fate = {0};

	if (from == &pp->b && hdr->type == PMF_PT_ACK && (hdr->flags & PMF_HF_RESYNC) &&
	    pp->count > 0) {
		pp->count--;
		fate.lose = true;
	}
	return fate;
}

static void check_fall(unsigned int lost_answers)
{
	struct pmf_item *item[30];

	/* given: large packets in use */
	given_open(PIPE_PAYLOAD);
	bulk(1);
	CU_ASSERT_EQUAL(p.a.f.mtu, PIPE_PAYLOAD);
	/* when: large frames vanish from now on, with messages of all kinds under way */
	p.mtu = 1300;
	p.filter = lose_answers;
	p.count = lost_answers;
	item[0] = push(&p.a, 1000000);
	for (int i = 1; i < 30; i++)
		item[i] = push(&p.a, i % 3 ? 4000 : 10);
	pipe_run(&p, 2 * PMF_NS_PER_S);
	/* then: everything comes in small ones, once */
	CU_ASSERT_EQUAL(p.a.stats.mtu_fell, 1);
	CU_ASSERT_EQUAL(p.b.flushes, 1);
	CU_ASSERT_EQUAL(p.a.f.mtu, PMF_WIRE_MIN_PAYLOAD);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(p.b.whole, 1 + 1 + 30);
	CU_ASSERT_EQUAL(p.a.done, 1 + 1 + 30);
	CU_ASSERT_EQUAL(p.a.f.inflight, 0);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.b.f));
	pipe_fini(&p);
	for (int i = 0; i < 30; i++)
		free(item[i]);
}

static void test_black_hole(void)
{
	check_fall(0);
}

static void test_resync_answer_lost(void)
{
	check_fall(3);
}

/* The first data packet after the fall gets lost too. */
static struct fate lose_after_fall(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
				   size_t len)
{
	struct fate fate = {0};

	if (from == &pp->a && hdr->type == PMF_PT_DATA && pp->b.flushes == 1)
		fate.lose = pp->count++ == 0;
	return fate;
}

static void test_abort_and_black_hole(void)
{
	struct pmf_item *item[5];

	/* given: large packets in flight that vanish */
	given_open(PIPE_PAYLOAD);
	bulk(1);
	p.mtu = 1300;
	p.filter = lose_after_fall;
	p.b.posted = false;
	item[0] = push(&p.a, 4000);
	item[1] = push(&p.a, 4000);
	for (int i = 2; i < 5; i++)
		item[i] = push(&p.a, 300);
	while (p.a.f.state != PMF_FLOW_RESYNC)
		pipe_step(&p);
	/* when: some of them are aborted before they are cut again */
	for (int i = 0; i < 3; i++) {
		pmf_flow_abort(&p.a.f, item[i]);
		item[i]->buf = NULL;
	}
	pipe_run(&p, 500 * PMF_NS_PER_MS);
	CU_ASSERT_TRUE(p.count > 1);
	CU_ASSERT_EQUAL(p.a.canceled, 3);
	CU_ASSERT_EQUAL(p.b.begun, 2 + 5);
	CU_ASSERT_EQUAL(p.a.done, 2 + 2);
	CU_ASSERT_EQUAL(p.b.whole, 2 + 2);
	pipe_fini(&p);
	for (int i = 0; i < 5; i++)
		free(item[i]);
}

static struct fate lose_questions(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
				  size_t len)
{
	struct fate fate = {0};

	if (from == &pp->a && hdr->type == PMF_PT_PROBE && pp->count > 0) {
		pp->count--;
		fate.lose = true;
	}
	return fate;
}

/* The answers to A's messages come while it waits to hear where B stands. */
static void check_answers(fate_fn filter)
{
	struct pmf_item *announced, *held, *lost, *ahead;

	/* given: a message that B invites, one that it holds and invites, one that gets lost, and
	 * one behind it */
	given_open(PIPE_PAYLOAD);
	p.b.holds = 1;
	announced = push(&p.a, 100000);
	held = push(&p.a, 1000);
	end_work(&p.a);
	p.mtu = 0;
	lost = push(&p.a, 1000);
	end_work(&p.a);
	p.mtu = PIPE_PAYLOAD;
	ahead = push(&p.a, 1000);
	end_work(&p.a);
	/* when: A has begun to resynchronise before anything of B comes, and that gets lost */
	p.filter = filter;
	p.count = 1;
	pmf_flow_resync(&p.a.f, p.now);
	while (p.b.begun < 3)
		pipe_step(&p);
	end_invite(&p.b, 2);
	while (p.count != 0 || p.b.f.inflight == 0)
		pipe_step(&p);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_RESYNC);
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	/* then: nothing that B says about numbers behind the base was taken for an acknowledgement
	 */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(announced->state, PMF_ITEM_DONE);
	CU_ASSERT_EQUAL(held->state, PMF_ITEM_DONE);
	CU_ASSERT_EQUAL(lost->state, PMF_ITEM_DONE);
	CU_ASSERT_EQUAL(ahead->state, PMF_ITEM_DONE);
	CU_ASSERT_EQUAL(p.b.stats.rx_ahead, 1);
	CU_ASSERT_EQUAL(p.b.whole, 5);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.b.f));
	pipe_fini(&p);
	free(announced);
	free(held);
	free(lost);
	free(ahead);
}

static void test_answers_during_resync(void)
{
	check_answers(lose_answers);   /* B has skipped to the base */
	check_answers(lose_questions); /* B has not */
}

static void test_abort_after_resync(void)
{
	struct pmf_item *item[20];

	/* given: cut once, and again uncut after a resynchronisation, with no window to send */
	given_open(PIPE_PAYLOAD);
	p.mtu = 0;
	for (int i = 0; i < 20; i++)
		item[i] = push(&p.a, 1000);
	end_work(&p.a);
	p.mtu = PIPE_PAYLOAD;
	pmf_flow_resync(&p.a.f, p.now);
	while (p.a.f.state == PMF_FLOW_RESYNC) {
		pipe_deliver(&p);
		p.a.f.cc.cwnd = 0;
		end_work(&p.a);
		end_work(&p.b);
		p.now += PMF_NS_PER_US;
	}
	/* when */
	for (int i = 0; i < 20; i += 2) {
		pmf_flow_abort(&p.a.f, item[i]);
		item[i]->buf = NULL;
	}
	p.a.f.cc.cwnd = PMF_CC_ONE;
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_EQUAL(p.a.canceled, 10);
	CU_ASSERT_EQUAL(p.a.done, 1 + 10);
	CU_ASSERT_EQUAL(p.b.whole, 1 + 10);
	pipe_fini(&p);
	for (int i = 0; i < 20; i++)
		free(item[i]);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"small messages need no search", test_small_messages_need_no_search},
		{"the largest passes", test_largest_passes},
		{"the smaller port bounds", test_smaller_port_bounds},
		{"search", test_search},
		{"black hole", test_black_hole},
		{"resync answer lost", test_resync_answer_lost},
		{"abort and black hole", test_abort_and_black_hole},
		{"answers during resynchronisation", test_answers_during_resync},
		{"abort after resynchronisation", test_abort_after_resync},
	};

	return test_main("flow path mtu", tests, PMF_ARRAY_SIZE(tests));
}
