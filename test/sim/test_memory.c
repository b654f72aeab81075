/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Receivers that are slow or have no memory, many at once, and senders that close with messages
 * under way.
 */
#include "test_sim.h"

/* ---- many, and little memory ---- */

static void test_many_peers(void)
{
	begin();
	conf.nodes = 40;
	conf.queue = 256 << 10; /* they overrun it */
	conf.receives = 16;
	conf.unexpected = 1 << 20;
	open_sim();
	for (unsigned int i = 1; i < conf.nodes; i++) {
		sim_add_stream(&sim, i, 0, 300, 32);
		sim_add_stream(&sim, 0, i, 300, 32);
	}
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	CU_ASSERT_TRUE(sim.dropped > 0);
	end();
}

static void test_tiny_memory(void)
{
	begin();
	conf.receives = 1;
	conf.repost = 10 * US;
	conf.unexpected = 2048;
	open_sim();
	both_ways(3000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	CU_ASSERT_TRUE(sim.node[0].flow_stats.rx_held > 100);
	CU_ASSERT_TRUE(sim.node[1].flow_stats.tx_held > 100);
	CU_ASSERT_EQUAL(sim.node[0].flow_stats.rx_held, sim.node[1].flow_stats.tx_held);
	end();
}

static void test_tiny_memory_and_faults(void)
{
	for (uint64_t memory = 0; memory < 6; memory++) {
		begin();
		set_faults("loss=3%,dup=3%,reorder=10%:20");
		conf.receives = 1 + memory;
		conf.repost = 30 * US;
		conf.unexpected = memory << 12;
		conf.flow.rx_credit = 128 << 10;
		conf.flow.first_credit = 16 << 10;
		conf.held_frames = 16;
		conf.flow.window = 64;
		open_sim();
		both_ways(2000);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		end();
	}
}

/* No memory when the turn of a packet comes, whether it was told to be held or not. */
static void test_refused_at_their_turn(void)
{
	for (uint32_t refuse = 2; refuse <= 64; refuse *= 4) {
		begin();
		set_faults("loss=2%,dup=1%,reorder=10%:20");
		conf.refuse = refuse;
		conf.receives = 4;
		conf.repost = 5 * US;
		open_sim();
		both_ways(1000);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		CU_ASSERT_TRUE(sim.node[0].stats.refused > 0);
		end();
	}
}

/* A receiver that posts nothing for long: the sender is held back, and does not take it for dead.
 */
static void test_nobody_receives_for_long(void)
{
	begin();
	conf.receives = 0;
	conf.unexpected = 32 << 10;
	conf.flow.dead_after = 1000 * MS;
	open_sim();
	sim_add_stream(&sim, 0, 1, 2000, 500);
	run_until(30 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(flow(0, 1)->state, PMF_FLOW_OPEN);
	CU_ASSERT_EQUAL(sim.stream[0].delivered, 0);
	sim.conf.receives = 16;
	sim_node_post(&sim.node[1], 16);
	sim.node[0].posted += 16;
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	end();
}

/* Long pauses between the receives for messages that wait to be invited, with packets lost now and
 * then. */
static void test_slow_receiver_is_not_dead(void)
{
	begin();
	conf.fixed_size = 70000;
	conf.receives = 1;
	conf.repost = 3000 * MS;
	conf.fault.conf.loss = 1u << 28;
	conf.flow.dead_after = 2000 * MS;
	open_sim();
	sim_add_stream(&sim, 0, 1, 200, 50);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	end();
}

/* And one that dies between two of them is taken for dead. */
static void test_slow_receiver_dies(void)
{
	begin();
	conf.fixed_size = 70000;
	conf.receives = 1;
	conf.repost = 100000 * MS;
	conf.flow.dead_after = 2000 * MS;
	open_sim();
	sim.dead_is_fine = true;
	sim_add_stream(&sim, 0, 1, 200, 50);
	run_until_delivered(0, 1);
	run_until(sim.now + 300 * MS);
	sim_node_kill(&sim.node[1]);
	run_until_failed(0, 4500 * MS);
	end();
}

/* And one that dies meanwhile is taken for dead. */
static void test_held_back_by_the_dead(void)
{
	begin();
	conf.receives = 0;
	conf.unexpected = 32 << 10;
	conf.flow.dead_after = 1000 * MS;
	open_sim();
	sim.dead_is_fine = true;
	sim_add_stream(&sim, 0, 1, 2000, 500);
	run_until(5 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL_FATAL(flow(0, 1)->state, PMF_FLOW_OPEN);
	sim_node_kill(&sim.node[1]);
	run_until_failed(0, 20 * PMF_NS_PER_S);
	CU_ASSERT_NOT_EQUAL(sim.stream[0].error, 0);
	CU_ASSERT_TRUE(sim.now < 10 * PMF_NS_PER_S);
	end();
}

static void test_small_windows(void)
{
	for (uint32_t window = 1; window <= 64; window *= 2) {
		begin();
		conf.flow.window = window;
		conf.fault.conf.loss = conf.fault.conf.dup = 1u << 26;
		conf.fault.conf.reorder = 1u << 28;
		conf.fault.conf.span = 60;
		open_sim();
		both_ways(1000);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		end();
	}
}

/* ---- closing ---- */

static void test_abort(void)
{
	struct sim_stream *st;
	for (unsigned int round = 0; round < 30; round++) {
		begin();
		set_faults("loss=5%,reorder=5%:9");
		conf.receives = round % 3 ? 64 : 2;
		conf.unexpected = 16 << 10;
		conf.repost = 50 * US;
		open_sim();
		sim_add_stream(&sim, 1, 0, 2000, 16);
		st = sim_add_stream(&sim, 0, 1, 100000, 64);
		run_until(100 * US + round * 37 * US);
		/* When the endpoint closes with messages under way in all stages. */
		st->count = st->pushed;
		for (unsigned int i = 0; i < st->window; i++) {
			struct sim_item *it = &st->items[i];
			bool free = false;

			for (struct sim_item *e = st->free; e != NULL; e = e->next)
				free |= e == it;
			if (!free && flow(0, 1) != NULL)
				pmf_flow_abort(flow(0, 1), &it->item);
		}
		sim_flow_kick(sim.node[0].flow[1]);
		/* Then all of them end here, and none hangs at the peer. */
		for (pmf_ns_t until = sim.now + 20 * PMF_NS_PER_S;
		     !sim.failed && st->done + st->failed < st->pushed && sim_step(&sim, until);)
			;
		CU_ASSERT_EQUAL(st->done + st->failed, st->pushed);
		CU_ASSERT_TRUE(st->error == 0 || st->error == -ECANCELED);
		st->error = 0;
		sim.stream[1].error = -1;
		/* The other direction does not notice. */
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
		run_until(sim.now + 100 * MS);
		CU_ASSERT_TRUE(sim_settle(&sim));
		end();
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"many peers overrun a queue", test_many_peers},
		{"a receiver with hardly any memory holds", test_tiny_memory},
		{"hardly any memory, and faults", test_tiny_memory_and_faults},
		{"packets refused at their turn", test_refused_at_their_turn},
		{"a receiver that posts nothing for long", test_nobody_receives_for_long},
		{"a receiver that posts nothing and dies", test_held_back_by_the_dead},
		{"a receiver that posts slowly is not dead", test_slow_receiver_is_not_dead},
		{"a receiver that posts slowly and dies", test_slow_receiver_dies},
		{"windows of 1 to 64 packets", test_small_windows},
		{"an endpoint closes with messages under way", test_abort},
	};

	seed = test_seed();
	return test_main("memory", tests, PMF_ARRAY_SIZE(tests));
}
