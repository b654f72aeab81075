/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Sealed packets, and somebody on the way who sees, changes, repeats and holds back frames.
 */
#include "test_sim.h"

#define K1 "00112233445566778899aabbccddeeff\n"
#define K2 "ffeeddccbbaa99887766554433221100\n"

static struct pmf_key_list keys(const char *text)
{
	struct pmf_key_list l;
	char err[100];

	CU_ASSERT_EQUAL_FATAL(pmf_keys_parse(text, &l, err, sizeof(err)), 0);
	return l;
}

static void begin_sealed(bool encrypt)
{
	begin();
	conf.keys = keys(K1);
	conf.encrypt = encrypt;
}

static uint64_t sum_of(size_t offset)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < sim.conf.nodes; i++)
		sum += *(uint64_t *)((char *)&sim.node[i].stats + offset);
	return sum;
}
#define SUM(stat) sum_of(offsetof(struct sim_node_stats, stat))

/* ---- numbers ---- */

/* Keys and numbers that have been used, as a hash of both; a second use of one is a hole. */
static uint64_t used[1u << 20];
static unsigned int nused;
static bool twice;

static void note_number(const struct pmf_seal *seal, uint64_t txno)
{
	uint64_t h = txno, at;

	memcpy(&at, seal->tx.iv + 4, sizeof(at)); /* stands for the key: derived with it */
	h = sim_mix(h ^ sim_mix(at)) | 1;
	for (at = h; used[at % PMF_ARRAY_SIZE(used)] != 0; at++)
		if (used[at % PMF_ARRAY_SIZE(used)] == h)
			twice = true;
	used[at % PMF_ARRAY_SIZE(used)] = h;
	nused++;
}

static void begin_noting(void)
{
	memset(used, 0, sizeof(used));
	nused = 0;
	twice = false;
	sim.sealed = note_number;
}

static void test_bad_wire(void)
{
	for (int encrypt = 0; encrypt < 2; encrypt++) {
		begin_sealed(encrypt);
		set_faults("loss=2%,dup=2%,reorder=5%:20");
		open_sim();
		begin_noting();
		both_ways(20000);
		CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL) && sim_settle(&sim));
		/* Sent again or not, each packet had a number of its own. */
		CU_ASSERT_TRUE(nused > 1000 && nused < PMF_ARRAY_SIZE(used) / 2);
		CU_ASSERT_FALSE(twice);
		CU_ASSERT_TRUE(sim.node[0].flow_stats.tx_retrans > 0);
		/* What the wire doubled was found out before it was looked at. */
		CU_ASSERT_TRUE(SUM(replayed) > 0);
		CU_ASSERT_EQUAL(SUM(bad_tag) + SUM(other_key), 0);
		end();
	}
}

static void test_number_of_a_new_life(void)
{
	begin_sealed(true);
	open_sim();
	begin_noting();
	sim.dead_is_fine = true;
	sim_add_stream(&sim, 0, 1, 1000000, 64);
	for (unsigned int life = 0; life < 10 && !sim.failed; life++) {
		run_until_delivered(life, 50);
		sim_node_kill(&sim.node[life & 1]);
		sim_node_start(&sim.node[life & 1]);
		run_until_failed(life, 10 * PMF_NS_PER_S);
		sim_add_stream(&sim, 0, 1, 1000000, 64);
	}
	run_until_delivered(10, 50);
	CU_ASSERT_FALSE(twice);
	end();
}

/* ---- somebody on the way ---- */

#define KEPT 4096

/* Frames as they were seen, and what is to be done with new ones. */
static struct {
	struct {
		uint16_t len;
		uint8_t src, dst;
		uint8_t data[1500];
	} frame[KEPT];
	unsigned int n, count;
	bool keep;
	unsigned int change; /* one in so many is held back, and comes changed */
	unsigned int nchanged, first;
} mallory;

static bool see(struct sim *s, const struct sim_frame *f, void *arg)
{
	bool change = mallory.change && ++mallory.count % mallory.change == 0;

	if ((mallory.keep || change) && f->len <= sizeof(mallory.frame[0].data)) {
		unsigned int i = mallory.n++ % KEPT;

		mallory.frame[i].len = f->len;
		mallory.frame[i].src = f->src;
		mallory.frame[i].dst = f->dst;
		memcpy(mallory.frame[i].data, f->data, f->len);
	}
	return change;
}

static void say(unsigned int i)
{
	struct sim_frame *f = sim_frame_get(&sim);

	f->len = mallory.frame[i % KEPT].len;
	f->src = mallory.frame[i % KEPT].src;
	f->dst = mallory.frame[i % KEPT].dst;
	f->ecn = 0;
	memcpy(f->data, mallory.frame[i % KEPT].data, f->len);
	sim_node_rx(&sim.node[f->dst], f);
}

static void open_with_mallory(void)
{
	open_sim();
	memset(&mallory, 0, sizeof(mallory));
	sim.eat = see;
	sim.noise = true;
}

static bool at_end(void)
{
	return sim_streams_finished(&sim) || sim.failed || sim.now > 100 * PMF_NS_PER_S;
}

static void test_changed_frames(void)
{
	for (int encrypt = 0; encrypt < 2; encrypt++) {
		begin_sealed(encrypt);
		conf.flow.max_payload = 1472;
		open_with_mallory();
		mallory.change = 13;
		both_ways(3000);
		/* Every 13th frame comes with one bit changed, and only so. */
		while (!at_end()) {
			run_until(sim.now + 20 * US);
			for (; mallory.first < mallory.n; mallory.first++) {
				unsigned int i = mallory.first % KEPT;
				uint64_t bit = test_random(&seed) % (mallory.frame[i].len * 8u);

				mallory.frame[i].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
				say(i);
			}
		}
		mallory.change = 0;
		CU_ASSERT_TRUE(sim_streams_finished(&sim) && sim_settle(&sim));
		CU_ASSERT_TRUE(SUM(bad_tag) > 50);
		CU_ASSERT_TRUE(SUM(other_key) > 0);
		end();
	}
}

static void test_repeated_frames(void)
{
	uint64_t msgs[2], packets[2], before;

	begin_sealed(true);
	conf.flow.max_payload = 1472;
	open_with_mallory();
	mallory.keep = true;
	both_ways(2000);
	while (!at_end()) {
		run_until(sim.now + 20 * US);
		for (int i = 0; i < 3 && mallory.n; i++)
			say((unsigned int)(test_random(&seed) %
					   PMF_MIN(mallory.n, (unsigned)KEPT)));
	}
	mallory.keep = false;
	CU_ASSERT_TRUE(sim_streams_finished(&sim) && sim_settle(&sim));
	/* And once more, all of them, of each kind, when nobody expects anything. */
	for (int i = 0; i < 2; i++) {
		msgs[i] = sim.node[i].flow_stats.rx_msgs;
		packets[i] = sim.node[i].flow_stats.rx_packets;
	}
	before = SUM(replayed);
	for (unsigned int i = 0; i < PMF_MIN(mallory.n, (unsigned)KEPT); i++)
		say(i);
	run_until(sim.now + 100 * MS);
	CU_ASSERT_TRUE(SUM(replayed) - before > PMF_MIN(mallory.n, (unsigned)KEPT) * 9 / 10);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(sim.node[i].flow_stats.rx_msgs, msgs[i]);
		CU_ASSERT_EQUAL(sim.node[i].flow_stats.rx_packets, packets[i]);
		CU_ASSERT_EQUAL(flow((unsigned)i, !i)->state, PMF_FLOW_OPEN);
	}
	CU_ASSERT_EQUAL(SUM(bad_tag) + SUM(other_key), 0);
	end();
}

/* What was said to a life that is over moves nobody in the next. */
static void test_frames_of_an_earlier_life(void)
{
	begin_sealed(true);
	conf.flow.max_payload = 1472;
	open_with_mallory();
	sim.dead_is_fine = true;
	mallory.keep = true;
	sim_add_stream(&sim, 0, 1, 500, 64);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	mallory.keep = false;
	sim_node_kill(&sim.node[1]);
	sim_node_start(&sim.node[1]);
	for (unsigned int i = 0; i < PMF_MIN(mallory.n, (unsigned)KEPT); i++)
		if (mallory.frame[i].dst == 1)
			say(i);
	run_until(sim.now + 10 * MS);
	CU_ASSERT_PTR_NULL(flow(1, 0));
	end();
}

/* The flow is over, the endpoint lives: the packet that opened it does not open it again. */
static void test_opening_again(void)
{
	uint64_t before;

	begin_sealed(true);
	conf.flow.max_payload = 1472;
	open_with_mallory();
	sim.dead_is_fine = true;
	mallory.keep = true;
	sim_add_stream(&sim, 0, 1, 500, 64);
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	mallory.keep = false;
	/* given: node 1 has ended its flow by itself, within the life of the cookie */
	run_until(sim.now + MS);
	pmf_flow_kill(flow(1, 0), EIO);
	sim_flow_kick(sim.node[1].flow[0]);
	CU_ASSERT_PTR_NULL(flow(1, 0));
	for (unsigned int i = 0; i < PMF_MIN(mallory.n, (unsigned)KEPT); i++)
		if (mallory.frame[i].dst == 1 && mallory.frame[i].data[2] == PMF_PT_OPEN)
			say(i);
	CU_ASSERT_PTR_NULL(flow(1, 0));
	CU_ASSERT_TRUE(sim.node[1].stats.opens_bad > 0);
	/* nor is one that has just been begun, and is not bound yet, bound by it */
	before = sim.node[1].stats.opens_bad;
	sim_add_stream(&sim, 1, 0, 1, 64);
	sim_step(&sim, sim.now);
	CU_ASSERT_PTR_NOT_NULL_FATAL(flow(1, 0));
	for (unsigned int i = 0; i < PMF_MIN(mallory.n, (unsigned)KEPT); i++)
		if (mallory.frame[i].dst == 1 && mallory.frame[i].data[2] == PMF_PT_OPEN)
			say(i);
	CU_ASSERT_TRUE(sim.node[1].stats.opens_bad > before);
	end();
}

/* ---- keys ---- */

static void test_other_key(void)
{
	struct pmf_key_list other = keys(K2);

	begin_sealed(false);
	conf.flow.dead_after = 500 * MS;
	open_sim();
	sim.dead_is_fine = true;
	sim_node_roll(&sim.node[1], &other);
	sim_add_stream(&sim, 0, 1, 100, 10);
	run_until_failed(0, 10 * PMF_NS_PER_S);
	CU_ASSERT_EQUAL(sim.stream[0].error, -EKEYREJECTED);
	CU_ASSERT_EQUAL(sim.node[1].flow_stats.rx_msgs, 0);
	CU_ASSERT_TRUE(sim.node[1].stats.other_key > 0);
	end();
}

/* Who says "not your key" cannot prove it: a flow that has one goes on. */
static void test_forged_refusal(void)
{
	struct pmf_hdr hdr = {.type = PMF_PT_RESET, .flags = PMF_HF_REFUSED | PMF_HF_KEY};

	begin_sealed(false);
	open_with_mallory();
	mallory.change = 1; /* all is held back at first */
	sim_add_stream(&sim, 0, 1, 100, 10);
	run_until(20 * MS);
	for (int kind = 0; kind < 2; kind++) {
		struct sim_frame *f = sim_frame_get(&sim);

		hdr.conn = flow(0, 1)->id.conn;
		hdr.peer_conn = flow(0, 1)->nonce;
		f->src = 1;
		f->len = (uint16_t)pmf_wire_put(f->data, SIM_MAX_FRAME, &hdr);
		sim_node_rx(&sim.node[0], f);
		hdr.flags = PMF_HF_REFUSED; /* nor that nobody listens */
	}
	mallory.change = 0;
	CU_ASSERT_TRUE(sim_run(&sim, STALL, NULL));
	CU_ASSERT_EQUAL(sim.stream[0].delivered, 100);
	end();
}

static void test_roll(void)
{
	struct pmf_key_list step[] = {keys(K1 K2), keys(K2 K1), keys(K2)};
	unsigned int at = 0;

	begin_sealed(true);
	open_sim();
	begin_noting();
	both_ways(30000);
	/* One node after the other, each step at its own time, as people do it. */
	while (!at_end()) {
		run_until(sim.now + 500 * US);
		if (at < 2 * PMF_ARRAY_SIZE(step)) {
			sim_node_roll(&sim.node[at % 2], &step[at / 2]);
			at++;
		}
	}
	CU_ASSERT_EQUAL(at, 2 * PMF_ARRAY_SIZE(step));
	CU_ASSERT_TRUE(sim_settle(&sim));
	CU_ASSERT_FALSE(twice);
	CU_ASSERT_EQUAL(SUM(bad_tag), 0);
	CU_ASSERT_EQUAL(SUM(other_key), 0);
	CU_ASSERT_EQUAL(sim.node[0].flow_stats.tx_retrans, 0);
	CU_ASSERT_EQUAL(sim.node[1].flow_stats.tx_retrans, 0);
	end();
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a bad wire", test_bad_wire},
		{"numbers of a new life", test_number_of_a_new_life},
		{"changed frames", test_changed_frames},
		{"repeated frames", test_repeated_frames},
		{"frames of an earlier life", test_frames_of_an_earlier_life},
		{"a flow is not opened again by what opened it", test_opening_again},
		{"another key", test_other_key},
		{"a refusal that is forged", test_forged_refusal},
		{"keys roll under traffic", test_roll},
	};

	seed = test_seed();
	return test_main("seal", tests, PMF_ARRAY_SIZE(tests));
}
