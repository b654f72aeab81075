/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What peers do to each other: they are cut off, stop, die, come back as somebody else.
 */
#include "test_sim.h"

/* ---- cuts and deaths ---- */

struct cut {
	unsigned int src; /* frames of this node vanish; SIM_MAX_NODES: of all */
	pmf_ns_t from, until;
};

static bool eat_cut(struct sim *s, const struct sim_frame *f, void *arg)
{
	const struct cut *c = arg;

	return (c->src == SIM_MAX_NODES || f->src == c->src) && s->now >= c->from &&
	       s->now < c->until;
}

static void test_one_way_cut_heals(void)
{
	for (unsigned int src = 0; src < 2; src++) {
		struct cut c = {src, MS, 400 * MS};

		begin();
		open_sim();
		sim.eat = eat_cut;
		sim.eat_arg = &c;
		both_ways(10000);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		CU_ASSERT_TRUE(sim.now > 400 * MS);
		/* It goes on soon after: backing off has a bound. */
		CU_ASSERT_TRUE(sim.now < 400 * MS + conf.flow.max_rto + 200 * MS);
		end();
	}
}

static void test_stopped_process_goes_on(void)
{
	begin();
	open_sim();
	both_ways(10000);
	run_until(MS);
	sim.node[1].stopped = true;
	run_until(2000 * MS);
	CU_ASSERT_FALSE(sim_streams_finished(&sim));
	sim.node[1].stopped = false;
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	end();
}

static void test_cut_off_peer_is_dead(void)
{
	struct cut c = {SIM_MAX_NODES, MS, PMF_NS_NEVER};

	begin();
	conf.flow.dead_after = 3000 * MS;
	open_sim();
	sim.dead_is_fine = true;
	sim.eat = eat_cut;
	sim.eat_arg = &c;
	both_ways(100000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	run_until(sim.now + 10 * PMF_NS_PER_S);
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_stream *st = &sim.stream[i];

		/* Every message that was pushed has ended, one way or the other. */
		CU_ASSERT_NOT_EQUAL(st->error, 0);
		CU_ASSERT_EQUAL(st->done + st->failed, st->pushed);
		CU_ASSERT_PTR_NULL(flow(i, !i));
	}
	end();
}

static void test_dead_within_its_time(void)
{
	begin();
	conf.flow.dead_after = 1000 * MS;
	open_sim();
	sim.dead_is_fine = true;
	sim_add_stream(&sim, 0, 1, 1000000, 64);
	run_until(5 * MS);
	sim_node_kill(&sim.node[1]);
	run_until_failed(0, 10 * PMF_NS_PER_S);
	CU_ASSERT_TRUE(sim.now >= 900 * MS);
	CU_ASSERT_TRUE(sim.now <= 1500 * MS);
	CU_ASSERT_EQUAL(sim.stream[0].done + sim.stream[0].failed, sim.stream[0].pushed);
	end();
}

static void test_nobody_there(void)
{
	begin();
	conf.flow.dead_after = 1000 * MS;
	open_sim();
	sim.dead_is_fine = true;
	sim_node_kill(&sim.node[1]);
	sim_add_stream(&sim, 0, 1, 100, 10);
	run_until_failed(0, 10 * PMF_NS_PER_S);
	CU_ASSERT_TRUE(sim.now >= 900 * MS && sim.now <= 1500 * MS);
	CU_ASSERT_EQUAL(sim.stream[0].failed, 10);
	/* Nothing of it is left on the wheel. */
	run_until(20 * PMF_NS_PER_S);
	CU_ASSERT_PTR_NULL(flow(0, 1));
	end();
}

static void test_idle_flow_stays(void)
{
	begin();
	open_sim();
	both_ways(100);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	uint64_t carried = sim.carried;

	/* Silence is no death, and costs no frame. */
	run_until(sim.now + 3600 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(flow(0, 1)->state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(sim.carried, carried);
	end();
}

/* ---- new lives ---- */

static void new_life(unsigned int node)
{
	sim_node_kill(&sim.node[node]);
	sim_node_start(&sim.node[node]);
}

/* A stream over the same way as @p i, which has ended. */
static void again(unsigned int i, uint64_t messages)
{
	unsigned int src = sim.stream[i].src, dst = sim.stream[i].dst;

	CU_ASSERT_EQUAL(sim.stream[i].done + sim.stream[i].failed, sim.stream[i].pushed);
	sim_add_stream(&sim, src, dst, messages, 64);
}

static void test_receiver_restarts(void)
{
	begin();
	open_sim();
	sim.dead_is_fine = true;
	sim_add_stream(&sim, 0, 1, 1000000, 64);
	run_until(2 * MS);
	new_life(1);
	/* The new process does not know the connection; the sender learns of it in a round trip. */
	run_until_failed(0, 10 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(sim.stream[0].error, -ECONNRESET);
	CU_ASSERT_TRUE(sim.now < 50 * MS);
	CU_ASSERT_EQUAL(sim.node[1].flow_stats.rx_msgs, sim.stream[0].started);
	run_until(sim.now + MS);
	/* What comes next goes to the new life, and only that. */
	again(0, 1000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	CU_ASSERT_EQUAL(sim.stream[1].delivered, 1000);
	end();
}

static void test_sender_restarts(void)
{
	begin();
	open_sim();
	sim.dead_is_fine = true;
	both_ways(1000000);
	run_until(2 * MS);
	new_life(0);
	CU_ASSERT_NOT_EQUAL(sim.stream[0].error, 0);
	again(0, 1000);
	/* Node 1 meets the new life while it still sends to the old one. */
	run_until_delivered(2, 1000);
	CU_ASSERT_NOT_EQUAL(sim.stream[1].error, 0);
	CU_ASSERT_TRUE(sim.now < 200 * MS);
	end();
}

static void test_many_lives(void)
{
	begin();
	open_sim();
	sim.dead_is_fine = true;
	sim_add_stream(&sim, 0, 1, 1000000, 64);
	for (unsigned int life = 0; life < 20 && !sim.failed; life++) {
		run_until_delivered(life, 100);
		new_life(life & 1);
		run_until_failed(life, 10 * PMF_NS_PER_S);
		again(life, 1000000);
	}
	run_until_delivered(20, 1000);
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a cut of one direction heals", test_one_way_cut_heals},
		{"a process that is stopped for a while goes on", test_stopped_process_goes_on},
		{"a peer that is cut off ends every send", test_cut_off_peer_is_dead},
		{"a dead peer is noticed within its time", test_dead_within_its_time},
		{"a peer that never existed is noticed within its time", test_nobody_there},
		{"an idle flow lives on without a frame", test_idle_flow_stays},
		{"a restarted receiver is a new peer", test_receiver_restarts},
		{"a restarted sender is a new peer", test_sender_restarts},
		{"twenty lives, none gets what was another's", test_many_lives},
	};

	seed = test_seed();
	return test_main("peers", tests, PMF_ARRAY_SIZE(tests));
}
