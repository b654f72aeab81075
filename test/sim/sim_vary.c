/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A configuration that the seed draws: what the wire does, how far it is, what nodes have.
 */
#include "sim.h"

struct draw {
	uint64_t state;
};

static uint64_t below(struct draw *d, uint64_t n)
{
	d->state = sim_mix(d->state);
	return (d->state >> 32) * n >> 32;
}

static bool one_in(struct draw *d, uint64_t n)
{
	return below(d, n) == 0;
}

/* A chance of up to @p permille, in the unit of faults. */
static uint64_t chance(struct draw *d, uint64_t permille)
{
	return (below(d, permille * 100 + 1) << 32) / 100000;
}

static void draw_fault(struct draw *d, struct pmf_fault_conf *f)
{
	static const uint64_t most[] = {2, 20, 50, 100, 200, 200};

	f->loss = chance(d, most[below(d, PMF_ARRAY_SIZE(most))]);
	if (one_in(d, 4)) { /* in bursts; less of the other */
		f->loss /= 4;
		f->burst_in = chance(d, 10);
		f->burst_out = (1ull << 32) / (2 + below(d, 6));
	}
	f->nth = one_in(d, 6) ? 101 + below(d, 200) : 0;
	f->dup = one_in(d, 2) ? chance(d, 50) : 0;
	f->reorder = one_in(d, 2) ? chance(d, 150) : 0;
	f->span = 1 + below(d, 40);
	f->corrupt = one_in(d, 3) ? chance(d, 20) : 0;
	f->truncate = one_in(d, 3) ? chance(d, 20) : 0;
	if (one_in(d, 6)) {
		f->pause_every = 10 * PMF_NS_PER_MS;
		f->pause = below(d, 2 * PMF_NS_PER_MS);
	}
}

static void draw_nodes(struct draw *d, struct sim_conf *c)
{
	c->nodes = one_in(d, 3) ? 3 + (unsigned int)below(d, 6) : 2;
	c->stall = one_in(d, 8) ? below(d, 200 * PMF_NS_PER_US) : 0;
	c->receives = one_in(d, 3) ? 1 + (uint32_t)below(d, 16) : 256;
	c->repost = one_in(d, 3) ? below(d, 30 * PMF_NS_PER_US) : 0;
	c->unexpected = one_in(d, 3) ? (64 + below(d, 512)) << 10 : c->unexpected;
	c->held_frames = one_in(d, 4) ? 8 + (uint32_t)below(d, 100) : c->held_frames;
	c->refuse = one_in(d, 5) ? 50 + (uint32_t)below(d, 1000) : 0;
	c->private_bytes = one_in(d, 3);
	c->reclaim = one_in(d, 2);
	c->flow.window = 32u << below(d, 6);
	c->flow.max_payload = one_in(d, 2) ? 1472 : 8972;
	c->flow.eager_limit = one_in(d, 2) ? 16384 : (uint32_t)below(d, 32768);
	if (one_in(d, 3))
		c->flow.rx_credit = (64 + below(d, 512)) << 10;
	c->flow.first_credit = PMF_MIN(c->flow.first_credit, c->flow.rx_credit);
}

/* Sealed, and perhaps encrypted: that costs more than all the rest. */
static void draw_keys(struct draw *d, struct sim_conf *c)
{
	char err[100];

	if (one_in(d, 12) &&
	    pmf_keys_parse("00112233445566778899aabbccddeeff\n", &c->keys, err, sizeof(err)) == 0)
		c->encrypt = one_in(d, 2);
}

void sim_conf_vary(struct sim_conf *c)
{
	struct draw d = {sim_mix(c->seed ^ 0x73696d5f76617279)};

	draw_fault(&d, &c->fault.conf);
	draw_nodes(&d, c);
	draw_keys(&d, c);
	c->delay = 1000 * (1 + below(&d, one_in(&d, 4) ? 500 : 20));
	c->jitter = one_in(&d, 3) ? below(&d, 2 * c->delay) : 0;
	c->gbps = one_in(&d, 4) ? 10 : 100;
	c->queue = (64 + below(&d, 16 << 10)) << 10;
	c->ecn_mark = one_in(&d, 3) ? c->queue / 8 : 0;
	c->big = one_in(&d, 10);
	c->flow.one_record = one_in(&d, 10);
	/* so long that bad luck alone kills nobody */
	c->flow.dead_after = 100 * PMF_NS_PER_S;
}
