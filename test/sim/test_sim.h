/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the tests over the simulator share: one simulation at a time, begun, run and looked at.
 */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#include "sim.h"

#include "../unit/unit.h"

#define MS PMF_NS_PER_MS
#define US PMF_NS_PER_US
#define STALL (60 * PMF_NS_PER_S)

static struct sim sim;
static struct sim_conf conf;
static uint64_t seed; /* of this run of all tests; each simulation takes the next number from it */

static inline void begin(void)
{
	sim_conf_default(&conf);
	conf.seed = test_random(&seed);
	conf.big = false;
	conf.private_bytes = true;
	conf.reclaim = true;
}

static inline void open_sim(void)
{
	CU_ASSERT_EQUAL_FATAL(sim_init(&sim, &conf), 0);
}

static inline void end(void)
{
	CU_ASSERT_FALSE(sim.failed);
	sim_fini(&sim);
}

static inline void run_until(pmf_ns_t at)
{
	while (!sim.failed && sim_step(&sim, at))
		;
}

static inline struct pmf_flow *flow(unsigned int node, unsigned int peer)
{
	return sim.node[node].flow[peer] ? &sim.node[node].flow[peer]->f : NULL;
}

static inline uint8_t frame_type(const struct sim_frame *f)
{
	return f->data[2];
}

static inline void both_ways(uint64_t messages)
{
	sim_add_stream(&sim, 0, 1, messages, 64);
	sim_add_stream(&sim, 1, 0, messages, 64);
}

static inline void set_faults(const char *text)
{
	char err[200];

	CU_ASSERT_EQUAL_FATAL(pmf_fault_parse(text, &conf.fault, err, sizeof(err)), 0);
}

static inline void run_until_failed(unsigned int stream, pmf_ns_t most)
{
	pmf_ns_t limit = sim.now + most;

	while (!sim.failed && sim.stream[stream].error == 0 && sim_step(&sim, limit))
		;
	CU_ASSERT_NOT_EQUAL(sim.stream[stream].error, 0);
}

static inline void run_until_delivered(unsigned int stream, uint64_t messages)
{
	pmf_ns_t limit = sim.now + 10 * PMF_NS_PER_S;

	while (!sim.failed && sim.stream[stream].delivered < messages && sim_step(&sim, limit))
		;
	CU_ASSERT_TRUE(sim.stream[stream].delivered >= messages);
}

#endif
