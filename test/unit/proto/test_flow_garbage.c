/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Headers and records that no honest peer sends: a flow may die of them, and must do no other harm.
 * What is checked is that its own books stay in order and every item comes back; the sanitizers see
 * the rest.
 */
#include "proto/flow_private.h"

#include "test_flow_pipe.h"

#define ITEMS 100
#define STEPS 400

static struct pipe p;
static struct pmf_item *items[2][ITEMS];
static unsigned int nitems;

static struct fate some_lost(struct pipe *pp, struct end *from, const struct pmf_hdr *hdr,
			     size_t len)
{
	uint64_t r = test_random(&pp->random);
	struct fate fate = {0};

	fate.lose = (r & 255) < 20;
	if ((r >> 8 & 255) < 40)
		fate.late = r >> 16 & 0xffff;
	return fate;
}

static void alter_sack(struct pmf_hdr *h, uint64_t r)
{
	h->nsack = (uint8_t)(r % (PMF_WIRE_MAX_SACK + 1));
	for (unsigned int i = 0; i < h->nsack; i++) {
		uint64_t s = test_random(&p.random);

		h->sack[i].first = (uint16_t)(1 + s % (r & 1 << 20 ? 70 : 60000));
		h->sack[i].count = (uint16_t)(1 + (s >> 32) % (r & 1 << 21 ? 10 : 5000));
	}
}

/* One field of a header that was right becomes another, near or far. */
static void alter(struct pmf_hdr *h)
{
	uint64_t r = test_random(&p.random);
	uint32_t by = (uint32_t)(r >> 32) % (r & 256 ? UINT32_MAX : 64);
	uint32_t *number[] = {&h->psn, &h->txno, &h->ack, &h->ack_txno, &h->ack_delay, &h->credit};

	switch (r % 12) {
	case 0:
		h->holds += (uint16_t)by;
		break;
	case 1:
		h->ce += (uint16_t)by;
		break;
	case 2:
		alter_sack(h, r);
		break;
	case 3:
		h->flags ^= 1 << by % 4;
		break;
	case 4:
		h->type = (uint8_t)(PMF_PT_OPEN + by % 4);
		break;
	case 5: /* a resynchronisation, or the answer to one */
		h->type = by & 1 ? PMF_PT_PROBE : PMF_PT_ACK;
		h->flags = PMF_HF_RESYNC | PMF_HF_ECHO;
		h->psn += by % 80;
		break;
	default:
		*number[r % 6] += r & 512 ? by : -by;
	}
}

static void receive(struct end *e, struct pmf_hdr *h)
{
	struct pmf_rec_iter it = {h->body, h->body_len};
	struct pmf_rec rec;
	pmf_psn_t psn;
	int ret;

	switch (pmf_flow_rx(&e->f, h, (uint8_t)(test_random(&p.random) & 3), p.now, &psn)) {
	case PMF_RX_AHEAD:
		pmf_flow_rx_refuse(&e->f, psn);
		break;
	case PMF_RX_NEXT:
		while ((ret = pmf_flow_next_rec(&e->f, &it, &rec)) > 0) {
			if (rec.type == PMF_RT_START)
				pmf_flow_credit_return(&e->f, PMF_MSG_HEAD_COST);
		}
		if (ret < 0)
			pmf_flow_kill(&e->f, EPROTO);
		else
			pmf_flow_rx_done(&e->f, p.now);
		break;
	default:
		break;
	}
}

static void on_frame(struct frame *f)
{
	struct pmf_contact c;
	struct end *e = f->to;
	struct pmf_hdr h;

	CU_ASSERT_EQUAL_FATAL(pmf_wire_get(f->data, f->len, &h), 0);
	if (h.type == PMF_PT_HELLO || h.type == PMF_PT_CHALLENGE || h.type == PMF_PT_RESET) {
		end_rx(e, f);
		return;
	}
	if (h.type == PMF_PT_OPEN && h.conn == 0) {
		if (pmf_contact_check(&e->key, &h, &e->peer->addr, e->addr.port, e->inc, p.now, &c))
			return;
		pmf_flow_accept(&e->f, &c, p.now);
	} else if (p.count != 0) {
		alter(&h);
	}
	receive(e, &h);
}

static void check_books(const struct pmf_flow *f)
{
	CU_ASSERT_TRUE_FATAL(f->psn_next - f->una <= f->conf->window);
	CU_ASSERT_TRUE_FATAL(f->inflight + f->lost <= f->psn_next - f->una ||
			     f->state == PMF_FLOW_DEAD);
	CU_ASSERT_TRUE_FATAL(f->ahead < f->conf->window);
	CU_ASSERT_TRUE_FATAL(f->tx_cost <= f->tx_limit);
	CU_ASSERT_EQUAL_FATAL(f->bad_steps, 0);
}

static void step(void)
{
	for (unsigned int i = 0; i < p.top; i++) {
		if (!p.frames[i].used || p.frames[i].at > p.now)
			continue;
		on_frame(&p.frames[i]);
		p.frames[i].used = false;
	}
	end_work(&p.a);
	end_work(&p.b);
	check_books(&p.a.f);
	check_books(&p.b.f);
	p.now += 1 + test_random(&p.random) % (20 * PMF_NS_PER_US);
	if (test_random(&p.random) % 50 == 0)
		p.now += 3 * PMF_NS_PER_MS;
}

static void push_some(void)
{
	uint64_t r = test_random(&p.random);

	if (nitems < ITEMS && r % 4 == 0) {
		items[0][nitems] = msg_new((r >> 8) % (r & 64 ? 300 : 20000), 0);
		items[1][nitems] = msg_new((r >> 24) % (r & 32 ? 300 : 20000), 0);
		pmf_flow_push(&p.a.f, items[0][nitems]);
		pmf_flow_push(&p.b.f, items[1][nitems]);
		nitems++;
	}
	if (nitems > 0 && (r >> 40) % 40 == 0)
		pmf_flow_abort(&p.a.f, items[0][(r >> 48) % nitems]);
}

/* @return whether a flow died */
static bool garbage_round(uint64_t seed)
{
	bool died;

	pipe_init(&p);
	p.random = seed;
	p.filter = some_lost;
	p.a.conf.dead_after = p.b.conf.dead_after = 50 * PMF_NS_PER_MS;
	nitems = 0;
	for (unsigned int i = 0; i < STEPS; i++) {
		p.count = i >= 20; /* contact is made in peace */
		push_some();
		step();
	}
	died = p.a.f.state == PMF_FLOW_DEAD || p.b.f.state == PMF_FLOW_DEAD;
	pmf_flow_kill(&p.a.f, ECONNABORTED);
	pmf_flow_kill(&p.b.f, ECONNABORTED);
	end_collect(&p.a);
	end_collect(&p.b);
	for (unsigned int i = 0; i < nitems; i++) {
		CU_ASSERT_EQUAL(items[0][i]->state, PMF_ITEM_DONE);
		CU_ASSERT_EQUAL(items[1][i]->state, PMF_ITEM_DONE);
		free(items[0][i]);
		free(items[1][i]);
	}
	pipe_fini(&p);
	return died;
}

static void test_garbage(void)
{
	const char *scale = getenv("PMF_LONG");
	unsigned int rounds = scale && *scale ? 5000 : 100, died = 0;
	uint64_t seed = test_seed();

	for (unsigned int i = 0; i < rounds; i++)
		died += garbage_round(seed + i);
	/* Some die of it, most only drop it: otherwise the test has tried nothing. */
	CU_ASSERT_TRUE(died < rounds);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"garbage", test_garbage},
	};

	return test_main("flow garbage", tests, PMF_ARRAY_SIZE(tests));
}
