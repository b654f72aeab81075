/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Peers that die, restart or forget: what is believed, and when it is over. And the loan of the
 * active part.
 */
#include "proto/flow.h"

#include "test_flow_pipe.h"

static struct pipe p;

static void given_open(void)
{
	struct pmf_item *item = msg_new(1, 0), *back = msg_new(1, 0);

	pipe_init(&p);
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

/* ---- peers that nobody sends to ---- */

/* @return whether it was not forgotten within @p times the time that makes a peer dead */
static bool idle_for(struct end *e, unsigned int times)
{
	for (unsigned int i = 0; i < 4 * times; i++) {
		if (!pmf_flow_idle(&e->f, p.now))
			return false;
		pipe_run(&p, e->conf.dead_after / 4);
	}
	return true;
}

static void test_an_idle_peer_that_lives_is_kept(void)
{
	given_open();
	CU_ASSERT_TRUE(idle_for(&p.b, 1000));
	CU_ASSERT_EQUAL(p.b.f.state, PMF_FLOW_OPEN);
	/* It is asked, and not often. */
	CU_ASSERT_TRUE(p.b.frames[PMF_PT_PROBE] > 100 && p.b.frames[PMF_PT_PROBE] < 200);
	pipe_fini(&p);
}

static void test_an_idle_peer_that_has_gone_is_forgotten(void)
{
	given_open();
	p.a.deaf = true;
	CU_ASSERT_TRUE(idle_for(&p.b, 50));
	CU_ASSERT_EQUAL(p.b.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_FALSE(idle_for(&p.b, 30));
	pipe_fini(&p);
}

static void test_an_idle_peer_that_comes_back_in_time_is_kept(void)
{
	given_open();
	for (unsigned int i = 0; i < 10; i++) {
		p.a.deaf = true;
		CU_ASSERT_TRUE(idle_for(&p.b, 50));
		p.a.deaf = false;
		CU_ASSERT_TRUE(idle_for(&p.b, 7));
	}
	/* Nor is one that was heard while we did not look for long. */
	p.now += 1000 * p.b.conf.dead_after;
	CU_ASSERT_TRUE(idle_for(&p.b, 50));
	CU_ASSERT_EQUAL(p.b.f.state, PMF_FLOW_OPEN);
	pipe_fini(&p);
}

static void test_dead_in_flight(void)
{
	struct pmf_item *item;

	given_open();
	p.b.deaf = true;
	item = push(&p.a, 10);
	pipe_run(&p, p.a.conf.dead_after - PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	pipe_run(&p, 2 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_DEAD);
	CU_ASSERT_EQUAL(p.a.f.error, ETIMEDOUT);
	CU_ASSERT_EQUAL(p.a.failed, 1);
	CU_ASSERT_EQUAL(p.a.last_status, -ETIMEDOUT);
	pipe_fini(&p);
	free(item);
}

/* The process is stopped, and goes on long after: it cannot know what the peer did meanwhile. */
static void test_time_without_us_is_not_silence(void)
{
	struct pmf_item *item;

	/* given: an answer is due for half of the time that makes a peer dead */
	given_open();
	p.b.deaf = true;
	item = push(&p.a, 10);
	pipe_run(&p, p.a.conf.dead_after / 2);
	/* when: nobody looks at the flow for ten times as long */
	p.now += 10 * p.a.conf.dead_after;
	pipe_run(&p, p.a.conf.dead_after / 4);
	/* then: the peer has as much time left as it had */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	pipe_run(&p, p.a.conf.dead_after / 2);
	CU_ASSERT_EQUAL(p.a.f.error, ETIMEDOUT);
	pipe_fini(&p);
	free(item);
}

static void test_idle_is_not_dead(void)
{
	given_open();
	p.b.deaf = true;
	pipe_run(&p, 10 * p.a.conf.dead_after);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(pmf_flow_deadline(&p.a.f), PMF_NS_NEVER);
	pipe_fini(&p);
}

static void test_slow_is_not_dead(void)
{
	struct pmf_item *item;

	/* given: a peer that has no memory for any packet, and says so */
	given_open();
	p.b.refuse = 1000000;
	item = push(&p.a, 10);
	pipe_run(&p, 5 * p.a.conf.dead_after);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_NOT_EQUAL(p.a.f.inflight + p.a.f.lost, 0);
	/* when it has some */
	p.b.refuse = 0;
	pipe_run(&p, 2 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(p.a.done, 2);
	pipe_fini(&p);
	free(item);
}

static void test_answered_probe_is_over(void)
{
	struct pmf_item *item;

	/* given: a message that waited so long that the peer was probed, and is done */
	given_open();
	p.b.posted = false;
	item = push(&p.a, 100000);
	pipe_run(&p, p.a.conf.dead_after);
	CU_ASSERT_NOT_EQUAL(p.a.stats.tx_probes, 0);
	end_invite(&p.b, 1);
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.done, 2);
	/* when: the peer goes while nothing is under way */
	p.b.deaf = true;
	pipe_run(&p, 10 * p.a.conf.dead_after);
	/* then: nobody waits for an answer */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	pipe_fini(&p);
	free(item);
}

static void test_dead_while_parked(void)
{
	struct pmf_item *item;

	/* given: a message waits for an invitation, at a peer that lives and posts nothing */
	given_open();
	p.b.posted = false;
	item = push(&p.a, 100000);
	pipe_run(&p, 5 * p.a.conf.dead_after);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_TRUE(p.a.stats.tx_probes >= 15 && p.a.stats.tx_probes <= 25);
	/* when: it dies */
	p.b.deaf = true;
	pipe_run(&p, 2 * p.a.conf.dead_after);
	/* then */
	CU_ASSERT_EQUAL(p.a.f.error, ETIMEDOUT);
	CU_ASSERT_EQUAL(p.a.failed, 1);
	pipe_fini(&p);
	free(item);
}

static void test_restarted_peer(void)
{
	struct pmf_item *item;

	/* given: B is a new process, at the same address, and knows nothing */
	given_open();
	end_restart(&p.b, 0x3333);
	/* when: A goes on as if nothing were */
	item = push(&p.a, 10);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: the hint is verified, and nothing is replayed into the new life */
	CU_ASSERT_TRUE(p.b.resets >= 1);
	CU_ASSERT_TRUE(p.a.stats.rx_resets >= 1);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_DEAD);
	CU_ASSERT_EQUAL(p.a.f.error, ECONNRESET);
	CU_ASSERT_EQUAL(p.a.last_status, -ECONNRESET);
	CU_ASSERT_EQUAL(p.b.begun, 0);
	pipe_fini(&p);
	free(item);
}

static void test_restarted_peer_comes_first(void)
{
	struct pmf_item *item, *parked;

	/* given: A waits for an old life of B */
	given_open();
	p.b.posted = false;
	parked = push(&p.a, 100000);
	pipe_run(&p, PMF_NS_PER_MS);
	end_restart(&p.b, 0x3333);
	/* when: the new life opens */
	item = push(&p.b, 10);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: the old flow ends at once */
	CU_ASSERT_EQUAL(p.a.f.error, ECONNRESET);
	CU_ASSERT_EQUAL(p.a.failed, 1);
	pipe_fini(&p);
	free(item);
	free(parked);
}

static void test_old_life_is_late(void)
{
	struct pmf_contact c = {.inc = 0x9999, .conn = 77, .max_payload = 9000};

	/* given: an OPEN of an older life of B that was under way for long */
	given_open();
	c.cookie_time = p.a.f.bound_at - 1;
	pmf_flow_accept(&p.a.f, &c, p.now);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(p.a.f.peer_inc, p.b.inc);
	/* and of a newer one */
	c.cookie_time = p.now;
	pmf_flow_accept(&p.a.f, &c, p.now);
	CU_ASSERT_EQUAL(p.a.f.error, ECONNRESET);
	pipe_fini(&p);
}

static void test_false_reset(void)
{
	struct pmf_hdr reset = {.type = PMF_PT_RESET};
	struct pmf_item *item;

	/* given: somebody forges resets */
	given_open();
	reset.peer_conn = p.b.f.id.conn + 1;
	pmf_flow_on_reset(&p.a.f, &reset, p.now);
	CU_ASSERT_FALSE(pmf_flow_wants_tx(&p.a.f, p.now));
	reset.peer_conn = p.b.f.id.conn;
	for (int i = 0; i < 1000; i++) {
		pmf_flow_on_reset(&p.a.f, &reset, p.now);
		pipe_run(&p, 100 * PMF_NS_PER_US);
	}
	/* then: asked at a low rate, and the flow lives */
	CU_ASSERT_TRUE(p.a.stats.tx_hellos >= 2 && p.a.stats.tx_hellos <= 3);
	CU_ASSERT_EQUAL(p.a.stats.rx_resets, 1001);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	item = push(&p.a, 10);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(item->status, 0);
	CU_ASSERT_EQUAL(item->state, PMF_ITEM_DONE);
	pipe_fini(&p);
	free(item);
}

static void test_forgotten_connection(void)
{
	struct pmf_hdr reset = {.type = PMF_PT_RESET};
	struct pmf_hdr old = {.type = PMF_PT_CHALLENGE, .flags = PMF_HF_GONE};

	/* given: B is the same life, but its flow to A is gone */
	given_open();
	p.b.conn_known = false;
	reset.peer_conn = p.b.f.id.conn;
	pmf_flow_on_reset(&p.a.f, &reset, p.now);
	/* a challenge that answers an earlier hello proves nothing */
	old.peer_inc = p.a.inc;
	old.inc = p.b.inc;
	old.nonce = p.a.f.id.nonce + 1;
	CU_ASSERT_EQUAL(pmf_flow_on_challenge(&p.a.f, &old, p.now), -EBADMSG);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.error, ECONNRESET);
	pipe_fini(&p);
}

static struct fate lose_to_a(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			     size_t len)
{
	struct fate fate = {0};

	fate.lose = from == &pp->b && hdr->type != PMF_PT_CHALLENGE;
	return fate;
}

static void test_cookie_is_renewed(void)
{
	struct pmf_item *item;

	/* given: for longer than a cookie lives, nothing of B but challenges comes through */
	pipe_init(&p);
	p.a.conf.dead_after = 60 * PMF_NS_PER_S;
	p.filter = lose_to_a;
	item = push(&p.a, 10);
	/* then another is asked for soon: the first may be older than a late packet of A's life
	 * before */
	pipe_run(&p, 400 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPENING);
	CU_ASSERT_EQUAL(p.a.stats.tx_hellos, 2);
	/* and not too often */
	pipe_run(&p, PMF_COOKIE_LIFE + 2 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPENING);
	CU_ASSERT(p.a.stats.tx_hellos < 10);
	/* when the way is free */
	p.filter = NULL;
	pipe_run(&p, 5 * PMF_NS_PER_S);
	/* then the cookie is still good */
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(p.a.done, 1);
	pipe_fini(&p);
	free(item);
}

static void test_loan(void)
{
	struct pmf_item *item;
	void *mem;

	/* given: nothing under way */
	given_open();
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	CU_ASSERT_FALSE(pmf_flow_needs_active(&p.a.f));
	/* when: taken back, and wanted again */
	mem = pmf_flow_reclaim(&p.a.f);
	CU_ASSERT_PTR_NOT_NULL(mem);
	free(mem);
	CU_ASSERT_FALSE(pmf_flow_wants_tx(&p.a.f, p.now));
	item = push(&p.a, 10);
	CU_ASSERT_TRUE(pmf_flow_needs_active(&p.a.f));
	CU_ASSERT_FALSE(pmf_flow_is_quiet(&p.a.f));
	pipe_run(&p, PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_EQUAL(p.a.done, 2);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	/* a receiver needs none as long as all comes in order */
	free(pmf_flow_reclaim(&p.b.f));
	free(item);
	item = push(&p.a, 10);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.b.whole, 3);
	CU_ASSERT_PTR_NULL(p.b.f.active);
	pipe_fini(&p);
	free(item);
}

static void test_names(void)
{
	CU_ASSERT_EQUAL(pmf_flow_stat_count * sizeof(uint64_t), sizeof(struct pmf_flow_stats));
	CU_ASSERT_STRING_EQUAL(pmf_flow_state_name[PMF_FLOW_DEAD], "dead");
	CU_ASSERT_STRING_EQUAL(pmf_flow_stat_desc[0].name, "tx_packets");
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"an idle peer that lives is kept", test_an_idle_peer_that_lives_is_kept},
		{"an idle peer that has gone is forgotten",
		 test_an_idle_peer_that_has_gone_is_forgotten},
		{"an idle peer that comes back in time is kept",
		 test_an_idle_peer_that_comes_back_in_time_is_kept},
		{"dead with data in flight", test_dead_in_flight},
		{"time without us is not silence", test_time_without_us_is_not_silence},
		{"idle is not dead", test_idle_is_not_dead},
		{"slow is not dead", test_slow_is_not_dead},
		{"an answered probe is over", test_answered_probe_is_over},
		{"dead while parked", test_dead_while_parked},
		{"restarted peer", test_restarted_peer},
		{"restarted peer comes first", test_restarted_peer_comes_first},
		{"an old life is late", test_old_life_is_late},
		{"false reset", test_false_reset},
		{"forgotten connection", test_forgotten_connection},
		{"the cookie is renewed", test_cookie_is_renewed},
		{"loan of the active part", test_loan},
		{"names", test_names},
	};

	return test_main("flow life", tests, PMF_ARRAY_SIZE(tests));
}
