/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Contact between two flows: hello, challenge, opening, from one side, from both, with oneself.
 */
#include "proto/flow.h"

#include "test_flow_pipe.h"

static struct pipe p;

static void test_one_side_opens(void)
{
	struct pmf_item *item = msg_new(8, 0);

	/* given */
	pipe_init(&p);
	/* when */
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: one round trip before the message, and both know each other */
	CU_ASSERT_EQUAL(p.a.frames[PMF_PT_HELLO], 1);
	CU_ASSERT_EQUAL(p.b.frames[PMF_PT_CHALLENGE], 1);
	CU_ASSERT_EQUAL(p.a.frames[PMF_PT_OPEN], 1);
	CU_ASSERT_EQUAL(p.b.whole, 1);
	CU_ASSERT_EQUAL(p.a.done, 1);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(p.b.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(p.a.f.peer_conn, p.b.f.id.conn);
	CU_ASSERT_EQUAL(p.b.f.peer_conn, p.a.f.id.conn);
	CU_ASSERT_EQUAL(p.a.stats.tx_msgs, 1);
	CU_ASSERT_EQUAL(p.b.stats.rx_msgs, 1);
	CU_ASSERT_EQUAL(p.a.stats.tx_retrans, 0);
	CU_ASSERT_EQUAL(pmf_flow_deadline(&p.b.f), PMF_NS_NEVER);
	pipe_fini(&p);
	free(item);
}

static void test_answer_after_contact(void)
{
	struct pmf_item *ping = msg_new(8, 0), *pong = msg_new(8, 0), *again = msg_new(8, 1);

	/* given: A has opened */
	pipe_init(&p);
	pmf_flow_push(&p.a.f, ping);
	pipe_run(&p, PMF_NS_PER_MS);
	/* when: B answers, A sends again */
	pmf_flow_push(&p.b.f, pong);
	pipe_run(&p, PMF_NS_PER_MS);
	pmf_flow_push(&p.a.f, again);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: no other contact, and plain data once both ids are known */
	CU_ASSERT_EQUAL(p.a.whole, 1);
	CU_ASSERT_EQUAL(p.b.whole, 2);
	CU_ASSERT_EQUAL(p.b.frames[PMF_PT_HELLO], 0);
	CU_ASSERT_EQUAL(p.a.frames[PMF_PT_OPEN], 1);
	CU_ASSERT_EQUAL(p.a.frames[PMF_PT_DATA], 1);
	CU_ASSERT_FALSE(p.a.f.intro);
	CU_ASSERT_FALSE(p.b.f.intro);
	pipe_fini(&p);
	free(ping);
	free(pong);
	free(again);
}

static void test_crossing(void)
{
	struct pmf_item *a = msg_new(100, 0), *b = msg_new(200, 0);

	/* given */
	pipe_init(&p);
	/* when: both begin at the same time */
	pmf_flow_push(&p.a.f, a);
	pmf_flow_push(&p.b.f, b);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: one flow, both messages */
	CU_ASSERT_EQUAL(p.a.whole, 1);
	CU_ASSERT_EQUAL(p.b.whole, 1);
	CU_ASSERT_EQUAL(p.a.done, 1);
	CU_ASSERT_EQUAL(p.b.done, 1);
	CU_ASSERT_EQUAL(p.a.f.peer_conn, p.b.f.id.conn);
	CU_ASSERT_EQUAL(p.b.f.peer_conn, p.a.f.id.conn);
	CU_ASSERT_EQUAL(p.a.stats.rx_bad + p.b.stats.rx_bad, 0);
	pipe_fini(&p);
	free(a);
	free(b);
}

static void test_with_oneself(void)
{
	struct pmf_item *item[3] = {msg_new(8, 0), msg_new(3000, 1), msg_new(100000, 2)};

	/* given: a flow whose peer is its own endpoint */
	pipe_init(&p);
	end_fini(&p.a);
	end_init(&p, &p.a, &p.a, 1, 0x1111);
	/* when */
	for (int i = 0; i < 3; i++)
		pmf_flow_push(&p.a.f, item[i]);
	pipe_run(&p, 20 * PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_EQUAL(p.a.whole, 3);
	CU_ASSERT_EQUAL(p.a.done, 3);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(p.a.stats.rx_bad, 0);
	pipe_fini(&p);
	for (int i = 0; i < 3; i++)
		free(item[i]);
}

static struct fate lose_first_two(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
				  size_t len)
{
	struct fate fate = {0};

	fate.lose = hdr->type == pp->count && from->frames[hdr->type] <= 2;
	return fate;
}

/* A frame of each kind of contact gets lost, twice. */
static void test_lost(void)
{
	for (unsigned int type = PMF_PT_HELLO; type <= PMF_PT_OPEN; type++) {
		struct pmf_item *item = msg_new(8, 0);

		pipe_init(&p);
		p.filter = lose_first_two;
		p.count = type;
		pmf_flow_push(&p.a.f, item);
		pipe_run(&p, 900 * PMF_NS_PER_MS);
		CU_ASSERT_EQUAL(p.b.whole, 1);
		CU_ASSERT_EQUAL(p.a.done, 1);
		pipe_fini(&p);
		free(item);
	}
}

static struct fate lose_two_of_each(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
				    size_t len)
{
	struct fate fate = {.lose = from->frames[hdr->type] <= 2};

	return fate;
}

/* Both sides know the round trip from the contact itself: what gets lost after it costs no more
 * than that. */
static void test_lost_after_a_lost_hello(void)
{
	struct pmf_item *ping = msg_new(8, 0), *pong = msg_new(8, 0);

	/* given: the fifth hello is answered, after 75 ms */
	pipe_init(&p);
	p.filter = lose_two_of_each;
	/* when: two openings get lost, then two answers */
	pmf_flow_push(&p.a.f, ping);
	pipe_run(&p, 78 * PMF_NS_PER_MS);
	pmf_flow_push(&p.b.f, pong);
	pipe_run(&p, 3 * PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_EQUAL(p.a.frames[PMF_PT_HELLO], 5);
	CU_ASSERT_EQUAL(p.b.whole, 1);
	CU_ASSERT_EQUAL(p.a.whole, 1);
	pipe_fini(&p);
	free(ping);
	free(pong);
}

static struct fate lose_to_a(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			     size_t len)
{
	struct fate fate = {0};

	fate.lose = from == &pp->b && hdr->type != PMF_PT_CHALLENGE && pp->now < pp->random;
	return fate;
}

static void test_first_flight_is_limited(void)
{
	struct pmf_item *item[40];

	/* given: A never hears whether its opening was taken */
	pipe_init(&p);
	p.filter = lose_to_a;
	p.random = PMF_NS_NEVER;
	/* when: there is much to send */
	for (int i = 0; i < 40; i++) {
		item[i] = msg_new(1000, (uint64_t)i);
		pmf_flow_push(&p.a.f, item[i]);
	}
	pipe_run(&p, 100 * PMF_NS_PER_US);
	/* then: no more than the first flight */
	CU_ASSERT_EQUAL(p.a.stats.tx_packets, 8);
	/* and then A hears again, and all comes */
	p.random = 0;
	pipe_run(&p, PMF_NS_PER_S);
	CU_ASSERT_EQUAL(p.b.whole, 40);
	CU_ASSERT_EQUAL(p.a.done, 40);
	pipe_fini(&p);
	for (int i = 0; i < 40; i++)
		free(item[i]);
}

static void test_first_grant_of_nothing(void)
{
	struct pmf_item *item = msg_new(8, 0);

	/* given: a challenge without credit */
	pipe_init(&p);
	p.b.conf.first_credit = 0;
	/* when */
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, 20 * PMF_NS_PER_MS);
	/* then: opened without a message, and the credit came with the answer */
	CU_ASSERT_EQUAL(p.b.whole, 1);
	CU_ASSERT_EQUAL(p.a.done, 1);
	pipe_fini(&p);
	free(item);
}

static void test_nobody_there(void)
{
	struct pmf_item *item = msg_new(8, 0);

	/* given */
	pipe_init(&p);
	p.b.deaf = true;
	/* when */
	pmf_flow_push(&p.a.f, item);
	pipe_run(&p, p.a.conf.dead_after - 50 * PMF_NS_PER_MS);
	/* then: hellos with growing distance, and an end */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_HELLO);
	CU_ASSERT_TRUE(p.a.stats.tx_hellos >= 8 && p.a.stats.tx_hellos <= 16);
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_DEAD);
	CU_ASSERT_EQUAL(p.a.failed, 1);
	CU_ASSERT_EQUAL(p.a.last_status, -EHOSTUNREACH);
	CU_ASSERT_EQUAL(pmf_flow_deadline(&p.a.f), PMF_NS_NEVER);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	pipe_fini(&p);
	free(item);
}

static void test_foreign_challenge(void)
{
	struct pmf_item *item = msg_new(8, 0);
	struct pmf_hdr hdr = {.type = PMF_PT_CHALLENGE};
	uint8_t buf[PIPE_PAYLOAD];
	bool ect;

	/* given: a hello is out */
	pipe_init(&p);
	pmf_flow_push(&p.a.f, item);
	CU_ASSERT_NOT_EQUAL(pmf_flow_tx(&p.a.f, p.now, buf, sizeof(buf), &ect, NULL), 0);
	/* when: somebody answers who has not seen it */
	hdr.conn = p.a.f.id.conn;
	hdr.peer_inc = p.a.inc;
	hdr.nonce = p.a.f.id.nonce + 2;
	CU_ASSERT_EQUAL(pmf_flow_on_challenge(&p.a.f, &hdr, p.now), -EBADMSG);
	hdr.nonce = p.a.f.id.nonce + 1;
	hdr.peer_inc = p.a.inc + 1;
	CU_ASSERT_EQUAL(pmf_flow_on_challenge(&p.a.f, &hdr, p.now), -EBADMSG);
	/* then */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_HELLO);
	pipe_fini(&p);
	free(item);
}

/* The peer has ended and come back, and its new life has opened before the old one's answer came.
 */
static void test_late_challenge_of_an_earlier_life(void)
{
	struct pmf_item *item = msg_new(8, 0);
	struct pmf_hdr hdr = {.type = PMF_PT_CHALLENGE};
	struct pmf_contact c = {.inc = 0x2222, .conn = 77, .max_payload = PIPE_PAYLOAD};
	uint8_t buf[PIPE_PAYLOAD];
	bool ect;

	/* given: a hello is out, and the peer's OPEN comes meanwhile */
	pipe_init(&p);
	pmf_flow_push(&p.a.f, item);
	CU_ASSERT_NOT_EQUAL(pmf_flow_tx(&p.a.f, p.now, buf, sizeof(buf), &ect, NULL), 0);
	c.cookie_time = p.now;
	pmf_flow_accept(&p.a.f, &c, p.now);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	/* when: the hello's answer is of another life */
	hdr.conn = p.a.f.id.conn;
	hdr.peer_inc = p.a.inc;
	hdr.nonce = p.a.f.id.nonce + 1;
	hdr.inc = 0x1111;
	CU_ASSERT_EQUAL(pmf_flow_on_challenge(&p.a.f, &hdr, p.now), -EBADMSG);
	/* then: the flow lives */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	pipe_fini(&p);
	free(item);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"one side opens", test_one_side_opens},
		{"answer after contact", test_answer_after_contact},
		{"both open at once", test_crossing},
		{"with oneself", test_with_oneself},
		{"contact frames lost", test_lost},
		{"lost after a lost hello", test_lost_after_a_lost_hello},
		{"first flight is limited", test_first_flight_is_limited},
		{"first grant of nothing", test_first_grant_of_nothing},
		{"nobody there", test_nobody_there},
		{"foreign challenge", test_foreign_challenge},
		{"late challenge of an earlier life", test_late_challenge_of_an_earlier_life},
	};

	return test_main("flow contact", tests, PMF_ARRAY_SIZE(tests));
}
