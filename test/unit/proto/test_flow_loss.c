/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Loss, duplication, reordering: what goes out again, when, and what does not.
 */
#include "proto/flow_private.h"

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
	CU_ASSERT_EQUAL_FATAL(p.a.done, 1);
	CU_ASSERT_EQUAL_FATAL(p.b.done, 1);
	free(item);
	free(back);
	memset(p.a.frames, 0, sizeof(p.a.frames));
	memset(p.b.frames, 0, sizeof(p.b.frames));
	p.count = 0;
}

static struct pmf_item *push(struct end *e, uint64_t len)
{
	struct pmf_item *item = msg_new(len, e->f.tx_msg);

	pmf_flow_push(&e->f, item);
	return item;
}

/* Messages of a packet each. */
static void push_packets(struct pmf_item **item, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		item[i] = push(&p.a, 1000);
}

static void free_all(struct pmf_item **item, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		free(item[i]);
}

/* The first copy of the p.count-th data packet of A gets lost. */
static struct fate lose_nth(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			    size_t len)
{
	struct fate fate = {0};

	fate.lose = from == &pp->a && hdr->type == PMF_PT_DATA &&
		    from->frames[PMF_PT_DATA] == pp->count;
	return fate;
}

static void test_gap_is_filled_without_timeout(void)
{
	struct pmf_item *item[8];

	for (unsigned int n = 1; n <= 7; n++) {
		given_open();
		p.filter = lose_nth;
		p.count = n;
		push_packets(item, 8);
		/* two round trips and the reordering window */
		pipe_run(&p, 5 * PIPE_DELAY);
		CU_ASSERT_EQUAL(p.b.whole, 9);
		CU_ASSERT_EQUAL(p.a.stats.tx_retrans, 1);
		CU_ASSERT_EQUAL(p.a.stats.timeouts, 0);
		CU_ASSERT_EQUAL(p.b.stats.rx_ahead, 8 - n);
		pipe_run(&p, PMF_NS_PER_MS);
		CU_ASSERT_EQUAL(p.a.done, 9);
		CU_ASSERT_EQUAL(p.a.stats.tx_spurious, 0);
		CU_ASSERT_EQUAL(p.a.f.inflight, 0);
		pipe_fini(&p);
		free_all(item, 8);
	}
}

static void test_tail_is_probed(void)
{
	struct pmf_item *item[4];

	/* given: the last packet of a flight gets lost */
	given_open();
	p.filter = lose_nth;
	p.count = 4;
	/* when */
	push_packets(item, 4);
	pipe_run(&p, PMF_NS_PER_MS / 2);
	/* then: a tail probe repairs it long before a timeout would */
	CU_ASSERT_EQUAL(p.b.whole, 5);
	CU_ASSERT_EQUAL(p.a.done, 5);
	CU_ASSERT_EQUAL(p.a.stats.tail_probes, 1);
	CU_ASSERT_EQUAL(p.a.stats.timeouts, 0);
	pipe_fini(&p);
	free_all(item, 4);
}

static struct fate lose_until(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			      size_t len)
{
	struct fate fate = {0};

	fate.lose = pp->now < pp->random;
	return fate;
}

static void test_timeout_backs_off(void)
{
	struct pmf_item *item[8];

	/* given: nothing passes for a while */
	given_open();
	p.filter = lose_until;
	p.random = p.now + 100 * PMF_NS_PER_MS;
	/* when */
	push_packets(item, 8);
	pipe_run(&p, 95 * PMF_NS_PER_MS);
	/* then: 1, 2, 4, … 64 ms; a packet each, and the probe */
	CU_ASSERT_TRUE(p.a.stats.timeouts >= 5 && p.a.stats.timeouts <= 7);
	CU_ASSERT_TRUE(p.a.stats.tx_retrans <= 9);
	CU_ASSERT_EQUAL(p.a.f.state, PMF_FLOW_OPEN);
	/* when the wire is back, all comes */
	pipe_run(&p, 200 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.b.whole, 9);
	CU_ASSERT_EQUAL(p.a.done, 9);
	CU_ASSERT_EQUAL(p.a.f.lost, 0);
	CU_ASSERT_EQUAL(p.a.f.rtt.backoff, 0);
	pipe_fini(&p);
	free_all(item, 8);
}

static struct fate lose_acks(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			     size_t len)
{
	struct fate fate = {0};

	fate.lose = from == &pp->b && pp->now < pp->random;
	return fate;
}

static void test_needless_ones_are_seen(void)
{
	struct pmf_item *item[1];

	/* given: the acknowledgement gets lost, and the one of the tail probe not */
	given_open();
	p.filter = lose_acks;
	p.random = p.now + 45 * PMF_NS_PER_US;
	/* when */
	push_packets(item, 1);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then: the duplicate is acknowledged again at once */
	CU_ASSERT_EQUAL(p.a.done, 2);
	CU_ASSERT_EQUAL(p.b.stats.rx_dups, 1);
	CU_ASSERT_EQUAL(p.b.whole, 2);
	pipe_fini(&p);
	free_all(item, 1);
}

/* The second packet is slower than two round trips. */
static struct fate late_second(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			       size_t len)
{
	struct fate fate = {0};

	if (from == &pp->a && hdr->type == PMF_PT_DATA && from->frames[PMF_PT_DATA] == 2)
		fate.late = 18 * PMF_NS_PER_US;
	return fate;
}

static void test_reordering_is_learned(void)
{
	struct pmf_item *item[6];
	uint8_t before;

	/* given: a packet so late that it counts as lost, but overtakes its second copy */
	given_open();
	p.filter = late_second;
	before = p.a.f.reo_mult;
	/* when */
	push_packets(item, 6);
	pipe_run(&p, PMF_NS_PER_MS);
	/* then */
	CU_ASSERT_EQUAL(p.b.whole, 7);
	CU_ASSERT_EQUAL(p.a.stats.tx_retrans, 1);
	CU_ASSERT_EQUAL(p.a.stats.tx_spurious, 1);
	CU_ASSERT_EQUAL(p.b.stats.rx_dups, 1);
	CU_ASSERT_TRUE(p.a.f.reo_mult > before);
	pipe_fini(&p);
	free_all(item, 6);
}

static void test_round_trip_is_exact(void)
{
	struct pmf_item *item[1];

	given_open();
	push_packets(item, 1);
	pipe_run(&p, PMF_NS_PER_MS);
	/* The acknowledgement was delayed by its longest: not counted, but for units of 64 ns. */
	CU_ASSERT_EQUAL(p.a.done, 2);
	CU_ASSERT_TRUE(p.a.f.rack_rtt >= 2 * PIPE_DELAY && p.a.f.rack_rtt < 2 * PIPE_DELAY + 200);
	pipe_fini(&p);
	free_all(item, 1);
}

static void test_acks_are_delayed(void)
{
	struct pmf_item *item[1], *many[10];

	/* one packet: after the delay */
	given_open();
	push_packets(item, 1);
	pipe_run(&p, PIPE_DELAY + 19 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(p.b.frames[PMF_PT_ACK], 0);
	CU_ASSERT_TRUE(pmf_flow_ack_pending(&p.b.f));
	pipe_run(&p, 2 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(p.b.frames[PMF_PT_ACK], 1);
	pipe_run(&p, PMF_NS_PER_MS);
	/* as many as ack_every says: at once */
	push_packets(many, 10);
	pipe_run(&p, PIPE_DELAY + 2);
	CU_ASSERT_FALSE(pmf_flow_ack_pending(&p.b.f));
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.done, 12);
	pipe_fini(&p);
	free_all(item, 1);
	free_all(many, 10);
}

static void test_no_memory_for_packets(void)
{
	struct pmf_item *item[8];

	/* given: the receiver can neither process nor hold some packets */
	given_open();
	p.b.refuse = 5;
	push_packets(item, 8);
	pipe_run(&p, 20 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.b.refuse, 0);
	CU_ASSERT_EQUAL(p.b.whole, 9);
	CU_ASSERT_EQUAL(p.a.done, 9);
	pipe_fini(&p);
	free_all(item, 8);
}

/* A body's first packet is lost and turns into an abort; the others were sent before. */
static void test_abort_among_bodies(void)
{
	struct pmf_item *item, *next;

	given_open();
	p.filter = lose_nth;
	p.count = 2; /* the first is the announcement */
	item = push(&p.a, 100000);
	while (p.b.f.ahead == 0)
		pipe_step(&p);
	pmf_flow_abort(&p.a.f, item);
	item->buf = NULL;
	next = push(&p.a, 10);
	pipe_run(&p, 20 * PMF_NS_PER_MS);
	CU_ASSERT_TRUE(p.b.got[1].aborted);
	CU_ASSERT_EQUAL(p.b.got[1].have, 0);
	CU_ASSERT_EQUAL(p.a.canceled, 1);
	CU_ASSERT_EQUAL(next->status, 0);
	CU_ASSERT_EQUAL(next->state, PMF_ITEM_DONE);
	pipe_fini(&p);
	free(item);
	free(next);
}

/* Held ahead of order, told so to the sender, and then dropped after all. */
static void test_held_and_dropped(void)
{
	struct pmf_item *item[20];

	given_open();
	p.filter = lose_nth;
	p.count = 2;
	p.b.refuse_held = 2;
	push_packets(item, 20);
	pipe_run(&p, 20 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.b.refuse_held, 0);
	CU_ASSERT_EQUAL(p.b.whole, 21);
	CU_ASSERT_EQUAL(p.a.done, 21);
	CU_ASSERT_EQUAL(p.a.stats.timeouts, 0);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.b.f));
	pipe_fini(&p);
	free_all(item, 20);
}

static struct fate lose_odd(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			    size_t len)
{
	struct fate fate = {0};

	fate.lose = from == &pp->a && hdr->type == PMF_PT_DATA && hdr->psn % 2 == 1;
	return fate;
}

/* More gaps than one list holds: the lists tell of all of them in turn. */
static void test_many_gaps(void)
{
	struct pmf_item *item[60];
	struct pmf_sack list[16];
	bool told[PIPE_WINDOW] = {false};

	/* given: every other packet is there */
	given_open();
	p.a.f.cc.cwnd = 64 * PMF_CC_ONE;
	p.filter = lose_odd;
	push_packets(item, 60);
	end_work(&p.a);
	p.now += PIPE_DELAY;
	pipe_deliver(&p);
	CU_ASSERT_TRUE(p.b.f.ahead >= 29);
	/* when: two lists are made */
	for (int round = 0; round < 2; round++) {
		unsigned int n = pmf_flow_sack_list(&p.b.f, list, PMF_ARRAY_SIZE(list));

		CU_ASSERT_EQUAL(n, PMF_ARRAY_SIZE(list));
		for (unsigned int i = 0; i < n; i++) {
			CU_ASSERT_EQUAL(list[i].count, 1);
			told[list[i].first] = true;
		}
	}
	/* then */
	for (unsigned int i = 1; i < PIPE_WINDOW; i++)
		CU_ASSERT_EQUAL(told[i], p.b.held[(p.b.f.rcv_next + i) % PIPE_WINDOW] != NULL);
	p.filter = NULL;
	pipe_run(&p, 100 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.b.whole, 61);
	CU_ASSERT_EQUAL(p.a.stats.tx_spurious, 0);
	pipe_fini(&p);
	free_all(item, 60);
}

static void test_congestion_marks(void)
{
	struct pmf_item *item[1];
	uint8_t buf[PIPE_PAYLOAD];
	struct pmf_hdr hdr;
	pmf_psn_t psn;
	bool ect;

	/* given: a data packet of A that a switch has marked */
	given_open();
	push_packets(item, 1);
	end_work(&p.b);
	if (pmf_flow_needs_active(&p.a.f))
		end_work(&p.a);
	/* when */
	memset(&hdr, 0, sizeof(hdr));
	hdr.type = PMF_PT_DATA;
	hdr.conn = p.b.f.id.conn;
	hdr.psn = (uint32_t)p.b.f.rcv_next;
	hdr.txno = (uint32_t)p.b.f.rx_txno + 1;
	hdr.ack = (uint32_t)p.b.f.una;
	hdr.credit = (uint32_t)p.b.f.tx_limit;
	CU_ASSERT_EQUAL(pmf_flow_rx(&p.b.f, &hdr, 3, p.now, &psn), PMF_RX_NEXT);
	pmf_flow_rx_done(&p.b.f, p.now);
	/* then: told at once */
	CU_ASSERT_EQUAL(p.b.stats.rx_ce, 1);
	CU_ASSERT_TRUE(pmf_flow_wants_tx(&p.b.f, p.now));
	CU_ASSERT_NOT_EQUAL(pmf_flow_tx(&p.b.f, p.now, buf, sizeof(buf), &ect, NULL), 0);
	CU_ASSERT_FALSE(ect);
	CU_ASSERT_EQUAL(pmf_wire_get(buf, sizeof(struct pmf_wire_data), &hdr), 0);
	CU_ASSERT_EQUAL(hdr.ce, 1);
	pipe_fini(&p);
	free_all(item, 1);
}

static void test_impossible_headers(void)
{
	struct pmf_hdr good = {.type = PMF_PT_ACK}, hdr;
	pmf_psn_t psn;
	uint64_t bad;

	given_open();
	good.conn = p.a.f.id.conn;
	good.psn = (uint32_t)p.a.f.rcv_next;
	good.txno = (uint32_t)p.a.f.rx_txno + 1;
	good.ack = (uint32_t)p.a.f.una;
	good.ack_txno = (uint32_t)p.a.f.acked_txno;
	good.credit = (uint32_t)p.a.f.tx_limit;
	bad = p.a.stats.rx_bad;
	CU_ASSERT_EQUAL(pmf_flow_rx(&p.a.f, &good, 0, p.now, &psn), PMF_RX_NONE);
	hdr = good;
	hdr.ack++;
	CU_ASSERT_EQUAL(pmf_flow_rx(&p.a.f, &hdr, 0, p.now, &psn), PMF_RX_DROP);
	hdr = good;
	hdr.ack_txno = (uint32_t)p.a.f.txno_next;
	CU_ASSERT_EQUAL(pmf_flow_rx(&p.a.f, &hdr, 0, p.now, &psn), PMF_RX_DROP);
	CU_ASSERT_EQUAL(p.a.stats.rx_bad, bad + 2);
	hdr = good;
	hdr.type = PMF_PT_DATA;
	hdr.psn = (uint32_t)p.a.f.rcv_next + PIPE_WINDOW;
	CU_ASSERT_EQUAL(pmf_flow_rx(&p.a.f, &hdr, 0, p.now, &psn), PMF_RX_DROP);
	CU_ASSERT_EQUAL(p.a.stats.rx_outside, 1);
	pipe_fini(&p);
}

/* Every fifth of A's packets gets lost, those that go again too. */
static struct fate lose_fifth(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			      size_t len)
{
	return (struct fate){.lose = from == &pp->a && hdr->type == PMF_PT_DATA &&
				     from->frames[PMF_PT_DATA] % 5 == 4};
}

static void test_window_grows(void)
{
	struct pmf_item *item[100], *one;

	/* given: a message now and then */
	given_open();
	one = push(&p.a, 1000);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.tx_window, PMF_WINDOW_LEAST);
	CU_ASSERT_EQUAL(p.b.f.tx_window, PMF_WINDOW_LEAST);
	/* when: many, of which some get lost */
	p.filter = lose_fifth;
	push_packets(item, 100);
	pipe_run(&p, PMF_NS_PER_S);
	/* then: what was sent, lost and held ahead has moved with the window, at both ends */
	CU_ASSERT_TRUE(p.a.f.tx_window > 4 * PMF_WINDOW_LEAST);
	CU_ASSERT_TRUE(p.b.f.tx_window > PMF_WINDOW_LEAST);
	CU_ASSERT_EQUAL(p.b.whole, 102);
	CU_ASSERT_EQUAL(p.a.done, 102);
	CU_ASSERT_TRUE(pmf_flow_is_quiet(&p.a.f));
	CU_ASSERT_EQUAL(p.b.f.ahead, 0);
	/* and a flow that rests begins small again */
	free(pmf_flow_reclaim(&p.a.f));
	p.filter = NULL;
	free(one);
	one = push(&p.a, 1000);
	pipe_run(&p, PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(p.a.f.tx_window, PMF_WINDOW_LEAST);
	CU_ASSERT_EQUAL(p.a.done, 103);
	pipe_fini(&p);
	free(one);
	free_all(item, 100);
}

static void test_window_cannot_grow(void)
{
	struct pmf_item *item[100];

	/* given: no memory but for the smallest window */
	given_open();
	pipe_no_memory = true;
	p.filter = lose_fifth;
	/* when */
	push_packets(item, 100);
	pipe_run(&p, PMF_NS_PER_S);
	/* then: slower, but all of it */
	CU_ASSERT_EQUAL(p.a.f.tx_window, PMF_WINDOW_LEAST);
	CU_ASSERT_EQUAL(p.b.f.tx_window, PMF_WINDOW_LEAST);
	CU_ASSERT_EQUAL(p.b.whole, 101);
	CU_ASSERT_EQUAL(p.a.done, 101);
	pipe_no_memory = false;
	pipe_fini(&p);
	free_all(item, 100);
}

/* Every kind of trouble at once, both ways, sizes from none to large. */
static struct fate chaos(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr, size_t len)
{
	uint64_t r = test_random(&pp->random);
	struct fate fate = {0};

	fate.lose = (r & 0xff) < 12;
	fate.twice = (r >> 8 & 0xff) < 12;
	if ((r >> 16 & 0xff) < 30)
		fate.late = r >> 24 & 0x7fff;
	fate.ecn = (r >> 40 & 0xff) < 5 ? 3 : 2;
	return fate;
}

static void chaos_round(uint64_t seed)
{
	static struct pmf_item *item[2][400];
	struct end *e;
	unsigned int pushed = 0;

	pipe_init(&p);
	p.random = seed;
	p.filter = chaos;
	p.a.later = seed & 1;
	p.b.later = seed & 2;
	p.a.conf.window = p.b.conf.window = 1u << test_random(&p.random) % 7;
	p.a.conf.rx_credit = p.b.conf.rx_credit = 32 * 1024;
	end_begin(&p.a);
	end_begin(&p.b);
	while (pushed < 400 && p.a.f.state != PMF_FLOW_DEAD) {
		for (unsigned int burst = test_random(&p.random) % 20; burst > 0 && pushed < 400;
		     burst--, pushed++) {
			for (int i = 0; i < 2; i++) {
				uint64_t r = test_random(&p.random), len = r >> 40;

				e = i ? &p.b : &p.a;
				len &= (1u << (r % 17)) - 1;
				item[i][pushed] = push(e, r % 7 == 0 ? 0 : len);
				e->refuse = r >> 36 & 1;
				e->refuse_held = r >> 37 & 1;
				if (r >> 32 & 1 && e->holds == 0)
					e->holds = r >> 33 & 3;
			}
		}
		/* the receives for what was held come later */
		pipe_run(&p, test_random(&p.random) % (200 * PMF_NS_PER_US));
		for (int i = 0; i < 2; i++) {
			e = i ? &p.b : &p.a;
			for (unsigned int k = 0; k < e->begun; k++)
				if (e->got[k].held && !e->got[k].aborted &&
				    e->got[k].item.state == PMF_ITEM_NEW && !e->got[k].whole)
					end_invite(e, k);
		}
	}
	p.a.holds = p.b.holds = 0;
	for (int i = 0; i < 200 && (p.a.done < 400 || p.b.done < 400); i++) {
		pipe_run(&p, 10 * PMF_NS_PER_MS);
		for (int j = 0; j < 2; j++) {
			e = j ? &p.b : &p.a;
			for (unsigned int k = 0; k < e->begun; k++)
				if (e->got[k].held && e->got[k].item.state == PMF_ITEM_NEW &&
				    !e->got[k].whole)
					end_invite(e, k);
		}
	}
	CU_ASSERT_EQUAL(p.a.done, 400);
	CU_ASSERT_EQUAL(p.b.done, 400);
	CU_ASSERT_EQUAL(p.a.whole, 400);
	CU_ASSERT_EQUAL(p.b.whole, 400);
	CU_ASSERT_TRUE(p.a.stats.tx_retrans > 0);
	CU_ASSERT_EQUAL(p.a.f.inflight, 0);
	CU_ASSERT_EQUAL(p.a.f.lost, 0);
	CU_ASSERT_EQUAL(p.a.f.ahead, 0);
	CU_ASSERT_EQUAL(p.a.f.rx_cost, p.b.f.tx_cost);
	CU_ASSERT_EQUAL(p.a.stats.rx_bad + p.b.stats.rx_bad, 0);
	pipe_fini(&p);
	for (unsigned int i = 0; i < pushed; i++) {
		free(item[0][i]);
		free(item[1][i]);
	}
}

static void test_chaos(void)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < 20; i++)
		chaos_round(seed + (uint64_t)i);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a gap is filled without a timeout", test_gap_is_filled_without_timeout},
		{"the tail is probed", test_tail_is_probed},
		{"a timeout backs off", test_timeout_backs_off},
		{"needless ones are seen", test_needless_ones_are_seen},
		{"reordering is learned", test_reordering_is_learned},
		{"the round trip is exact", test_round_trip_is_exact},
		{"acknowledgements are delayed", test_acks_are_delayed},
		{"no memory for packets", test_no_memory_for_packets},
		{"an abort among bodies", test_abort_among_bodies},
		{"held and dropped", test_held_and_dropped},
		{"many gaps", test_many_gaps},
		{"congestion marks", test_congestion_marks},
		{"impossible headers", test_impossible_headers},
		{"a window grows", test_window_grows},
		{"a window that cannot grow", test_window_cannot_grow},
		{"chaos", test_chaos},
	};

	return test_main("flow loss", tests, PMF_ARRAY_SIZE(tests));
}
