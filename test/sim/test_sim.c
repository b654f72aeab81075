/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What flows live through: lost openings, cuts, deaths, new lives, paths that swallow large frames,
 * peers without memory. Each test builds its wire, runs it, and looks at both ends.
 */
#include "sim.h"

#include "../unit/proto/proto_test.h"

#define MS PMF_NS_PER_MS
#define US PMF_NS_PER_US
#define STALL (60 * PMF_NS_PER_S)

static struct sim sim;
static struct sim_conf conf;
static uint64_t seed; /* of this run of all tests; each simulation takes the next number from it */

static void begin(void)
{
	sim_conf_default(&conf);
	conf.seed = test_random(&seed);
	conf.big = false;
	conf.private_bytes = true;
	conf.reclaim = true;
}

static void open_sim(void)
{
	CU_ASSERT_EQUAL_FATAL(sim_init(&sim, &conf), 0);
}

static void end(void)
{
	CU_ASSERT_FALSE(sim.failed);
	sim_fini(&sim);
}

static void run_until(pmf_ns_t at)
{
	while (!sim.failed && sim_step(&sim, at))
		;
}

static struct pmf_flow *flow(unsigned int node, unsigned int peer)
{
	return sim.node[node].flow[peer] ? &sim.node[node].flow[peer]->f : NULL;
}

static uint8_t frame_type(const struct sim_frame *f)
{
	return f->data[2];
}

static void both_ways(uint64_t messages)
{
	sim_add_stream(&sim, 0, 1, messages, 64);
	sim_add_stream(&sim, 1, 0, messages, 64);
}

/* ---- faults all the time ---- */

static void with_faults(const char *text, uint64_t messages)
{
	char err[200];

	begin();
	conf.flow.dead_after = 100 * PMF_NS_PER_S; /* so long that bad luck alone kills nobody */
	CU_ASSERT_EQUAL_FATAL(pmf_fault_parse(text, &conf.fault, err, sizeof(err)), 0);
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

static void run_until_failed(unsigned int stream, pmf_ns_t most)
{
	pmf_ns_t limit = sim.now + most;

	while (!sim.failed && sim.stream[stream].error == 0 && sim_step(&sim, limit))
		;
	CU_ASSERT_NOT_EQUAL(sim.stream[stream].error, 0);
}

static void run_until_delivered(unsigned int stream, uint64_t messages)
{
	pmf_ns_t limit = sim.now + 10 * PMF_NS_PER_S;

	while (!sim.failed && sim.stream[stream].delivered < messages && sim_step(&sim, limit))
		;
	CU_ASSERT_TRUE(sim.stream[stream].delivered >= messages);
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

/* ---- the path ---- */

static bool eat_large(struct sim *s, const struct sim_frame *f, void *arg)
{
	const struct cut *c = arg; /* src: the largest that passes */

	return s->now >= c->from && f->len > c->src;
}

static void test_black_hole_appears(void)
{
	struct cut c = {1472, 500 * US, 0};

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
	struct cut c = {1472, 0, 0};

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
	struct cut c = {4000, 300 * US, 0};
	char err[200];

	begin();
	CU_ASSERT_EQUAL_FATAL(
		pmf_fault_parse("loss=5%,dup=2%,reorder=10%:20", &conf.fault, err, sizeof(err)), 0);
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
	char err[200];

	for (uint64_t memory = 0; memory < 6; memory++) {
		begin();
		CU_ASSERT_EQUAL_FATAL(pmf_fault_parse("loss=3%,dup=3%,reorder=10%:20", &conf.fault,
						      err, sizeof(err)),
				      0);
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
	char err[200];

	for (uint32_t refuse = 2; refuse <= 64; refuse *= 4) {
		begin();
		CU_ASSERT_EQUAL_FATAL(pmf_fault_parse("loss=2%,dup=1%,reorder=10%:20", &conf.fault,
						      err, sizeof(err)),
				      0);
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
	conf.fault.loss = 1u << 28;
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
		conf.fault.loss = conf.fault.dup = 1u << 26;
		conf.fault.reorder = 1u << 28;
		conf.fault.span = 60;
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
	char err[200];

	for (unsigned int round = 0; round < 30; round++) {
		begin();
		CU_ASSERT_EQUAL_FATAL(
			pmf_fault_parse("loss=5%,reorder=5%:9", &conf.fault, err, sizeof(err)), 0);
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

/* ---- numbers ---- */

/* Both ends have counted nearly to 2^32, where the low 32 bits begin anew. */
static void test_numbers_wrap(void)
{
	static const uint64_t start = (1ull << 32) - 50;
	char err[200];

	begin();
	CU_ASSERT_EQUAL_FATAL(
		pmf_fault_parse("loss=2%,dup=2%,reorder=5%:20", &conf.fault, err, sizeof(err)), 0);
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
	char err[200];

	for (int i = 0; i < 2; i++) {
		begin();
		conf.seed = 42;
		CU_ASSERT_EQUAL_FATAL(pmf_fault_parse("loss=2%,dup=2%,reorder=5%:20", &conf.fault,
						      err, sizeof(err)),
				      0);
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
	static const struct proto_test tests[] = {
		{"a fifth of all frames lost", test_heavy_loss},
		{"half of all frames lost", test_half_lost},
		{"all frames doubled, half of them late", test_all_doubled},
		{"each of the first frames lost", test_each_early_frame_lost},
		{"one side opens, in one round trip", test_one_side_opens},
		{"both sides open at once and end in one flow", test_both_open_at_once},
		{"a cut of one direction heals", test_one_way_cut_heals},
		{"a process that is stopped for a while goes on", test_stopped_process_goes_on},
		{"a peer that is cut off ends every send", test_cut_off_peer_is_dead},
		{"a dead peer is noticed within its time", test_dead_within_its_time},
		{"a peer that never existed is noticed within its time", test_nobody_there},
		{"an idle flow lives on without a frame", test_idle_flow_stays},
		{"a restarted receiver is a new peer", test_receiver_restarts},
		{"a restarted sender is a new peer", test_sender_restarts},
		{"twenty lives, none gets what was another's", test_many_lives},
		{"a path that begins to swallow large frames", test_black_hole_appears},
		{"a path narrower than both ports", test_path_narrower_than_ports},
		{"a path that swallows large frames, with faults", test_black_hole_with_loss},
		{"ports of different size agree on the smaller", test_different_ports},
		{"congestion marks prevent drops", test_marks_instead_of_drops},
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
		{"numbers beyond 32 bits", test_numbers_wrap},
		{"one altered bit is found", test_one_altered_bit_is_found},
		{"the same seed is the same run", test_same_seed_same_run},
	};

	seed = test_seed();
	return test_main("sim", tests, PMF_ARRAY_SIZE(tests));
}
