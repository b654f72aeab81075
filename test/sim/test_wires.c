/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What wires do to flows: loss from the first frame on, doubles, reordering, paths that swallow
 * large frames, congestion. And whether the simulator would notice.
 */
#include "test_sim.h"

/* ---- faults all the time ---- */

static void with_faults(const char *text, uint64_t messages)
{
	begin();
	conf.flow.dead_after = 100 * PMF_NS_PER_S; /* so long that bad luck alone kills nobody */
	set_faults(text);
	open_sim();
	both_ways(messages);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	end();
}

static void test_heavy_loss(void)
{
	for (int i = 0; i < 3; i++)
		with_faults("loss=20%,dup=2%,reorder=10%:20", 3000);
}

static void test_half_lost(void)
{
	with_faults("loss=50%", 100);
}

/*
 * Every other frame, and round trips that swing, so that a packet goes out a timeout: the receiver
 * gives the flow's window back between two of them, and it must not be the same one that gets lost.
 */
static void test_every_other_lost(void)
{
	begin();
	conf.delay = 500 * US;
	conf.jitter = 800 * US;
	conf.flow.dead_after = 100 * PMF_NS_PER_S;
	set_faults("every=2");
	open_sim();
	sim_add_stream(&sim, 1, 0, 200, 16);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	end();
}

static void test_all_doubled(void)
{
	with_faults("dup=100%,reorder=50%:30", 5000);
}

/* ---- opening ---- */

struct eat_nth {
	uint8_t type;
	unsigned int nth, count;
};

/* The nth frame of a type vanishes, wherever it goes; type 0 is any. */
static bool eat_nth(struct sim *s, const struct sim_frame *f, void *arg)
{
	struct eat_nth *e = arg;

	(void)s;
	return (e->type == 0 || frame_type(f) == e->type) && e->count++ == e->nth;
}

static void test_each_early_frame_lost(void)
{
	for (unsigned int nth = 0; nth < 12; nth++) {
		struct eat_nth e = {.nth = nth};

		begin();
		conf.fixed_size = 100;
		open_sim();
		sim.eat = eat_nth;
		sim.eat_arg = &e;
		both_ways(20);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		/* One loss costs a timeout, and not seconds. */
		CU_ASSERT_TRUE(sim.now < PMF_NS_PER_S);
		end();
	}
}

static void test_one_side_opens(void)
{
	begin();
	conf.fixed_size = 100;
	open_sim();
	sim_add_stream(&sim, 0, 1, 1, 1);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	/* Hello and challenge, data and acknowledgement: two round trips, and the acknowledgement's
	 * delay.
	 */
	CU_ASSERT_TRUE(sim.now < 4 * conf.delay + conf.flow.ack_delay + 20 * US);
	CU_ASSERT_TRUE(sim_settle(&sim));
	CU_ASSERT_EQUAL(sim.node[0].flow_stats.tx_hellos, 1);
	CU_ASSERT_EQUAL(sim.node[1].flow_stats.tx_hellos, 0);
	CU_ASSERT_EQUAL(flow(0, 1)->peer_conn, flow(1, 0)->id.conn);
	CU_ASSERT_EQUAL(flow(1, 0)->peer_conn, flow(0, 1)->id.conn);
	end();
}

static void test_both_open_at_once(void)
{
	for (int i = 0; i < 20; i++) {
		begin();
		conf.jitter = i * US;
		open_sim();
		both_ways(50);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		CU_ASSERT_EQUAL(flow(0, 1)->peer_conn, flow(1, 0)->id.conn);
		CU_ASSERT_EQUAL(flow(1, 0)->peer_conn, flow(0, 1)->id.conn);
		CU_ASSERT_EQUAL(flow(0, 1)->peer_inc, sim.node[1].inc);
		CU_ASSERT_EQUAL(flow(1, 0)->peer_inc, sim.node[0].inc);
		end();
	}
}

/* ---- the path ---- */

struct narrow {
	unsigned int size; /* the largest that passes */
	pmf_ns_t from;
};

static bool eat_large(struct sim *s, const struct sim_frame *f, void *arg)
{
	const struct narrow *c = arg;

	return s->now >= c->from && f->len > c->size;
}

static void test_black_hole_appears(void)
{
	struct narrow c = {1472, 500 * US};

	begin();
	open_sim();
	sim.eat = eat_large;
	sim.eat_arg = &c;
	both_ways(20000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	CU_ASSERT_TRUE(sim.node[0].flow_stats.mtu_fell > 0);
	CU_ASSERT_TRUE(flow(0, 1)->mtu <= 1472);
	end();
}

static void test_path_narrower_than_ports(void)
{
	struct narrow c = {1472, 0};

	begin();
	open_sim();
	sim.eat = eat_large;
	sim.eat_arg = &c;
	both_ways(20000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	/* The usual size is found, and no data was lost to a larger one. */
	CU_ASSERT_EQUAL(flow(0, 1)->mtu, 1472);
	CU_ASSERT_EQUAL(sim.node[0].flow_stats.mtu_fell, 0);
	end();
}

static void test_black_hole_with_loss(void)
{
	struct narrow c = {4000, 300 * US};
	begin();
	set_faults("loss=5%,dup=2%,reorder=10%:20");
	conf.receives = 8;
	conf.unexpected = 128 << 10;
	conf.repost = 20 * US;
	open_sim();
	sim.eat = eat_large;
	sim.eat_arg = &c;
	both_ways(10000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	end();
}

static void test_different_ports(void)
{
	begin();
	open_sim();
	sim.node[0].conf.max_payload = 1472;
	both_ways(5000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	CU_ASSERT_EQUAL(flow(0, 1)->mtu, 1472);
	CU_ASSERT_EQUAL(flow(1, 0)->mtu, 1472);
	end();
}

static void test_marks_instead_of_drops(void)
{
	begin();
	conf.nodes = 5;
	conf.ecn_mark = 200 << 10;
	conf.queue = 4 << 20;
	conf.big = true;
	open_sim();
	for (unsigned int i = 1; i < conf.nodes; i++)
		sim_add_stream(&sim, i, 0, 5000, 64);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	CU_ASSERT_TRUE(sim.marked > 0);
	CU_ASSERT_TRUE(sim.node[0].flow_stats.rx_ce > 0);
	CU_ASSERT_EQUAL(sim.dropped, 0);
	end();
}

/* ---- numbers ---- */

/* Both ends have counted nearly to 2^32, where the low 32 bits begin anew. */
static void test_numbers_wrap(void)
{
	static const uint64_t start = (1ull << 32) - 50;
	begin();
	set_faults("loss=2%,dup=2%,reorder=5%:20");
	open_sim();
	for (unsigned int i = 0; i < 2; i++) {
		struct pmf_flow *f = &sim_node_flow(&sim.node[i], !i)->f;

		f->psn_next = f->una = f->rcv_next = start;
		f->tx_msg = f->rx_msg = start;
		f->txno_next = start;
		f->rx_txno = f->acked_txno = start - 1;
	}
	both_ways(3000);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
	CU_ASSERT_TRUE(flow(0, 1)->una > 1ull << 32);
	CU_ASSERT_EQUAL(flow(0, 1)->tx_msg, start + 3000);
	end();
}

/* ---- the simulator itself ---- */

static bool spoil(struct sim *s, const struct sim_frame *f, void *arg)
{
	unsigned int *count = arg;

	(void)s;
	if (frame_type(f) == PMF_PT_DATA && f->len > 1000 && ++*count == 100)
		((struct sim_frame *)(uintptr_t)f)->data[f->len - 7] ^= 1;
	return false;
}

static void test_one_altered_bit_is_found(void)
{
	unsigned int count = 0;

	begin();
	open_sim();
	sim.quiet = true;
	sim.eat = spoil;
	sim.eat_arg = &count;
	both_ways(5000);
	CU_ASSERT_FALSE(sim_run(&sim, STALL, NULL));
	CU_ASSERT_TRUE(sim.failed);
	sim.failed = false;
	end();
}

static void test_same_seed_same_run(void)
{
	pmf_ns_t now = 0;
	uint64_t carried = 0;
	for (int i = 0; i < 2; i++) {
		begin();
		conf.seed = 42;
		set_faults("loss=2%,dup=2%,reorder=5%:20");
		open_sim();
		both_ways(1000);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		CU_ASSERT_TRUE(i == 0 || (now == sim.now && carried == sim.carried));
		now = sim.now;
		carried = sim.carried;
		end();
	}
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a fifth of all frames lost", test_heavy_loss},
		{"half of all frames lost", test_half_lost},
		{"every other frame lost", test_every_other_lost},
		{"all frames doubled, half of them late", test_all_doubled},
		{"each of the first frames lost", test_each_early_frame_lost},
		{"one side opens, in one round trip", test_one_side_opens},
		{"both sides open at once and end in one flow", test_both_open_at_once},
		{"a path that begins to swallow large frames", test_black_hole_appears},
		{"a path narrower than both ports", test_path_narrower_than_ports},
		{"a path that swallows large frames, with faults", test_black_hole_with_loss},
		{"ports of different size agree on the smaller", test_different_ports},
		{"congestion marks prevent drops", test_marks_instead_of_drops},
		{"numbers beyond 32 bits", test_numbers_wrap},
		{"one altered bit is found", test_one_altered_bit_is_found},
		{"the same seed is the same run", test_same_seed_same_run},
	};

	seed = test_seed();
	return test_main("wires", tests, PMF_ARRAY_SIZE(tests));
}
