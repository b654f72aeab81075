/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Random programs in the simulator: nodes send, post no receives for a while, close, stop, die and
 * come back, over a wire that the seed draws. The simulator's streams are the reference: each
 * message once, whole, in order and to the life that it was for, and acknowledged only when it has
 * arrived. A program that fails is made shorter and printed.
 */
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

#include "sim.h"

enum { NODES = 5, STEPS = 60, OUTSTANDING = 16, STREAMS = 2 * SIM_MAX_NODES - NODES * NODES };

enum op { SEND, HOLD, GO, STOP, CONT, CLOSE, KILL, START, RUN, OPS };

static const char *const op_name[OPS] = {"send",  "hold", "go",	   "stop", "cont",
					 "close", "kill", "start", "run"};

struct step {
	uint8_t op, a, b;
	uint32_t n; /* messages, or microseconds */
};

struct program {
	uint64_t seed; /* of the wire and the messages */
	unsigned int nodes, nsteps;
	struct step step[STEPS];
};

/* ---- from a seed ---- */

static uint32_t below(uint64_t *r, uint32_t n)
{
	*r = sim_mix(*r);
	return (uint32_t)((*r >> 32) * n >> 32);
}

static void make(struct program *p, uint64_t seed)
{
	/* of 100 steps: how many are which */
	static const uint8_t often[OPS] = {38, 5, 6, 4, 6, 4, 4, 5, 28};
	uint64_t r = seed;

	p->seed = seed;
	p->nodes = 2 + below(&r, NODES - 1);
	p->nsteps = 4 + below(&r, STEPS - 3);
	for (unsigned int i = 0; i < p->nsteps; i++) {
		struct step *s = &p->step[i];
		uint32_t which = below(&r, 100);

		for (s->op = 0; which >= often[s->op]; s->op++)
			which -= often[s->op];
		s->a = (uint8_t)below(&r, p->nodes);
		s->b = (uint8_t)((s->a + 1 + below(&r, p->nodes - 1)) % p->nodes);
		s->n = s->op == SEND ? 1 + below(&r, below(&r, 4) ? 8 : 80)
				     : below(&r, below(&r, 3) ? 100 : 20000);
	}
}

/* ---- as text ---- */

static void print(const struct program *p, FILE *f)
{
	fprintf(f, "seed %" PRIu64 " nodes %u\n", p->seed, p->nodes);
	for (unsigned int i = 0; i < p->nsteps; i++)
		fprintf(f, "%s %u %u %u\n", op_name[p->step[i].op], p->step[i].a, p->step[i].b,
			p->step[i].n);
}

static bool read_program(struct program *p, FILE *f)
{
	unsigned int a, b, n;
	char name[16];

	p->nsteps = 0;
	if (fscanf(f, " seed %" SCNu64 " nodes %u", &p->seed, &p->nodes) != 2 || p->nodes < 2 ||
	    p->nodes > NODES)
		return false;
	while (fscanf(f, " %15s %u %u %u", name, &a, &b, &n) == 4) {
		struct step *s = &p->step[p->nsteps++];

		for (s->op = 0; s->op < OPS && strcmp(name, op_name[s->op]) != 0;)
			s->op++;
		if (s->op == OPS || a >= p->nodes || b >= p->nodes || a == b || p->nsteps == STEPS)
			return false;
		s->a = (uint8_t)a;
		s->b = (uint8_t)b;
		s->n = n;
	}
	return feof(f);
}

/* ---- one run ---- */

static struct sim sim;
static uint64_t away[NODES]; /* receives that are not posted for a while */
static bool closing[NODES];

static void run_until(pmf_ns_t at)
{
	while (!sim.failed && sim_step(&sim, at))
		;
}

static bool ended(const struct sim_stream *st)
{
	return st->done + st->failed == st->pushed;
}

/* A stream that has ended for a death goes on as another one. @return whether there is one */
static bool send_more(unsigned int a, unsigned int b, uint64_t n)
{
	struct sim_stream *st = sim.by_pair[a][b];

	if (!sim.node[a].alive || closing[a])
		return false;
	if (st == NULL || st->error != 0 || st->inc != sim.node[a].inc) {
		if (sim.nstreams == STREAMS || (st != NULL && !ended(st)))
			return false;
		sim_add_stream(&sim, a, b, n, OUTSTANDING);
		return true;
	}
	st->count += n;
	sim_stream_fill(&sim, st);
	if (sim.node[a].flow[b] != NULL)
		sim_flow_kick(sim.node[a].flow[b]);
	return true;
}

/* The endpoint's buffers are withdrawn, whatever stage they are in. */
static void close_node(unsigned int a)
{
	closing[a] = true;
	for (unsigned int b = 0; b < sim.conf.nodes; b++) {
		struct sim_stream *st = sim.by_pair[a][b];
		struct sim_flow *sf = sim.node[a].flow[b];

		if (st == NULL || sf == NULL || st->inc != sim.node[a].inc)
			continue;
		st->count = st->pushed;
		for (unsigned int i = 0; i < st->window; i++) {
			bool free = false;

			for (struct sim_item *e = st->free; e != NULL; e = e->next)
				free |= e == &st->items[i];
			if (!free)
				pmf_flow_abort(&sf->f, &st->items[i].item);
		}
		sim_flow_kick(sf);
	}
}

static void kill_node(unsigned int a)
{
	if (!sim.node[a].alive)
		return;
	/* What it kept goes with it: streams of those that have met it are not complete any more.
	 */
	for (unsigned int b = 0; b < sim.conf.nodes; b++) {
		struct sim_stream *st = sim.by_pair[b][a];
		struct sim_flow *sf = sim.node[b].flow[a];

		if (st != NULL && st->error == 0 && sf != NULL && sf->f.bound)
			st->error = -ECONNRESET;
		st = sim.by_pair[a][b];
		if (st != NULL && st->error == 0)
			st->error = -ECONNABORTED;
	}
	sim_node_kill(&sim.node[a]);
	away[a] = 0;
}

static void start_node(unsigned int a)
{
	kill_node(a);
	closing[a] = false;
	sim_node_start(&sim.node[a]);
}

static void post_again(unsigned int a)
{
	sim_node_post(&sim.node[a], away[a]);
	away[a] = 0;
}

static void do_step(const struct step *s)
{
	struct sim_node *n = &sim.node[s->a];

	if (s->op == SEND) {
		send_more(s->a, s->b, s->n);
	} else if (s->op == RUN) {
		run_until(sim.now + s->n * PMF_NS_PER_US);
	} else if (s->op == START) {
		start_node(s->a);
	} else if (s->op == KILL) {
		kill_node(s->a);
	} else if (s->op == STOP || s->op == CONT) {
		n->stopped = s->op == STOP;
	} else if (n->alive && s->op == CLOSE && !closing[s->a]) {
		close_node(s->a);
	} else if (n->alive && s->op == HOLD) {
		away[s->a] += n->posted;
		n->posted = 0;
	} else if (n->alive && s->op == GO) {
		post_again(s->a);
	}
}

static bool all_ended(void)
{
	bool all = sim_streams_finished(&sim);

	for (unsigned int i = 0; i < sim.nstreams; i++)
		all &= ended(&sim.stream[i]);
	return all;
}

/* Something gets on before a peer would count as dead: who is back is found by reset, not by time.
 */
static void wait_all_ended(void)
{
	uint64_t moved = sim_moved(&sim), now_moved;
	pmf_ns_t since = sim.now;

	while (!sim.failed && !all_ended()) {
		if (!sim_step(&sim, since + 95 * PMF_NS_PER_S))
			sim_fail(&sim, "messages never end");
		now_moved = sim_moved(&sim);
		if (now_moved != moved)
			since = sim.now;
		moved = now_moved;
	}
}

/* All pairs talk. @return whether all of it came through: after deaths some of it may not */
static bool talk(void)
{
	bool through = true;

	for (unsigned int a = 0; a < sim.conf.nodes; a++)
		for (unsigned int b = 0; b < sim.conf.nodes; b++)
			if (a != b)
				through &= send_more(a, b, 2);
	wait_all_ended();
	for (unsigned int a = 0; a < sim.conf.nodes; a++)
		for (unsigned int b = 0; b < sim.conf.nodes; b++)
			through &= a == b || sim.by_pair[a][b]->error == 0;
	return through;
}

/* Everybody there, everything ends, and all pairs talk once more: then nothing may be left. */
static void finish(void)
{
	unsigned int rounds = 0;

	for (unsigned int a = 0; a < sim.conf.nodes; a++) {
		sim.node[a].stopped = false;
		if (!sim.node[a].alive || closing[a])
			start_node(a);
		post_again(a);
	}
	wait_all_ended();
	while (!sim.failed && !talk())
		if (++rounds > 8)
			sim_fail(&sim, "flows do not come to life");
	if (!sim.failed)
		sim_settle(&sim);
}

/* @return whether everything held */
static bool run(const struct program *p, bool quiet)
{
	struct sim_conf conf;

	sim_conf_default(&conf);
	conf.seed = p->seed;
	sim_conf_vary(&conf);
	conf.nodes = p->nodes;
	conf.big = false;
	/* A burst may swallow all of the few probes of a quiet flow; every nth frame may be the one
	 * that all others wait for, time and again. */
	conf.fault.conf.burst_in = conf.fault.conf.nth = 0;
	if (sim_init(&sim, &conf) != 0)
		return false;
	sim.dead_is_fine = true;
	sim.quiet = quiet;
	memset(away, 0, sizeof(away));
	memset(closing, 0, sizeof(closing));
	for (unsigned int i = 0; i < p->nsteps && !sim.failed; i++)
		do_step(&p->step[i]);
	if (!sim.failed)
		finish();
	sim_fini(&sim);
	return !sim.failed;
}

/* ---- shorter ---- */

static bool drop(struct program *p, unsigned int at, unsigned int n)
{
	struct program q = *p;

	memmove(&q.step[at], &q.step[at + n], (q.nsteps - at - n) * sizeof(q.step[0]));
	q.nsteps -= n;
	if (run(&q, true))
		return false;
	*p = q;
	return true;
}

static void shrink(struct program *p)
{
	bool any = true;

	while (any) {
		any = false;
		for (unsigned int n = p->nsteps / 2; n > 0; n /= 2)
			for (unsigned int at = 0; at + n <= p->nsteps;) {
				bool gone = drop(p, at, n);

				any |= gone;
				at += gone ? 0 : n;
			}
		for (unsigned int i = 0; i < p->nsteps; i++) {
			struct program q = *p;

			q.step[i].n /= 2;
			if (q.step[i].n != 0 && !run(&q, true)) {
				*p = q;
				any = true;
			}
		}
	}
}

static int replay(const char *path)
{
	FILE *f = fopen(path, "r");
	struct program p;

	if (f == NULL || !read_program(&p, f)) {
		fprintf(stderr, "%s: no program\n", path);
		return 2;
	}
	fclose(f);
	return run(&p, false) ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"programs", 1, NULL, 'n'}, {"seed", 1, NULL, 's'}, {"replay", 1, NULL, 'r'}, {0}};
	const char *env = getenv("PMF_TEST_SEED"), *scale = getenv("PMF_LONG");
	uint64_t programs = 1000, seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) << 20;
	struct program p;
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (opt == 'r')
			return replay(optarg);
		if (opt == 'n')
			programs = strtoull(optarg, NULL, 0);
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	programs *= scale && *scale ? 50 : 1;
	printf("test_sim_program: --seed %" PRIu64 " (or PMF_TEST_SEED) --programs %" PRIu64 "\n",
	       seed, programs);
	for (uint64_t i = 0; i < programs; i++) {
		make(&p, seed + i);
		if (run(&p, true))
			continue;
		printf("FAILED: --seed %" PRIu64 " --programs 1. Shorter, for --replay:\n\n",
		       seed + i);
		shrink(&p);
		print(&p, stdout);
		fflush(stdout);
		run(&p, false);
		return 1;
	}
	printf("ok: %" PRIu64 " programs\n", programs);
	return 0;
}
