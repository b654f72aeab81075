/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * pmf-sim: messages over the simulated wire, every one verified. Prints its seed, and what it
 * measured.
 */
#include "sim.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS 64

static struct sim sim;
static double started;

static const char usage[] =
	"usage: pmf-sim [options]\n"
	"  --messages N       of each stream (100000)\n"
	"  --seed S           of everything (from the clock)\n"
	"  --vary             the seed draws faults, delays, sizes and memory too\n"
	"  --seeds N          so many runs with --vary, each with --messages in all, from --seed "
	"on\n"
	"  --every K          only one in K of them    --jobs J: beside each other (1)\n"
	"  --fault TEXT       as FI_PMF_FAULT: loss=1%,dup=1%,reorder=5%:20\n"
	"  --both             both ways\n"
	"  --nodes N          all to node 0, and back with --both (2)\n"
	"  --sizes mix|mid|N  mix: 0 B, 1 B to 64 KB, 1 to 16 MB; mid: without the large ones "
	"(mix)\n"
	"  --window N         packets of a flow (512)\n"
	"  --outstanding N    messages of a stream (64)\n"
	"  --payload N        largest UDP payload (8972)\n"
	"  --delay-us N       one way (5)        --jitter-us N\n"
	"  --rate-gbps N      of each port (100)\n"
	"  --queue-kb N       before each receiver (16384)   --mark-kb N: ECN\n"
	"  --receives N       posted (256)       --repost-us N: and again so much later\n"
	"  --memory-kb N      for messages without a receive (65536)\n"
	"  --credit-kb N      for one peer (1024)   --eager N: longer ones are announced\n"
	"  --held N           frames ahead of order that a node keeps (2048)\n"
	"  --refuse N         one in N packets finds no memory when its turn comes (never)\n"
	"  --private          every message has a block of its own, poisoned when it is done\n"
	"  --reclaim          take the active part of a flow back when it has been quiet\n"
	"  --goodput          report bytes per simulated second\n"
	"  --stats            report counters\n"
	"  --trace FILE       a line for every frame\n"
	"  --quiet            no progress\n";

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void totals(const struct sim *s, uint64_t *delivered, uint64_t *all, uint64_t *bytes)
{
	*delivered = *all = *bytes = 0;
	for (unsigned int i = 0; i < s->nstreams; i++) {
		*delivered += s->stream[i].delivered;
		*all += s->stream[i].count;
		*bytes += s->stream[i].bytes;
	}
}

static void progress(struct sim *s)
{
	static double last;
	uint64_t delivered, all, bytes;
	double now = seconds();

	if (now - last < 2)
		return;
	last = now;
	totals(s, &delivered, &all, &bytes);
	fprintf(stderr, "%5.1f %%  %" PRIu64 " messages, %.0f a second, %.3f s simulated\n",
		100.0 * (double)delivered / (double)all, delivered,
		(double)delivered / (now - started), (double)s->now / 1e9);
}

struct options {
	struct sim_conf conf;
	uint64_t messages, outstanding;
	uint64_t seeds, every, jobs;
	bool both, goodput, stats, quiet, seeded, vary;
	const char *trace;
};

enum {
	MESSAGES = 256,
	SEED,
	FAULT,
	BOTH,
	NODES,
	SIZES,
	WINDOW,
	OUTSTANDING,
	PAYLOAD,
	DELAY,
	JITTER,
	RATE,
	QUEUE,
	MARK,
	RECEIVES,
	REPOST,
	MEMORY,
	CREDIT,
	EAGER,
	HELD,
	REFUSE,
	PRIVATE,
	RECLAIM,
	GOODPUT,
	STATS,
	QUIET,
	TRACE,
	VARY,
	SEEDS,
	EVERY,
	JOBS
};

static const struct option long_options[] = {
	{"messages", 1, NULL, MESSAGES}, {"seed", 1, NULL, SEED},
	{"fault", 1, NULL, FAULT},	 {"both", 0, NULL, BOTH},
	{"nodes", 1, NULL, NODES},	 {"sizes", 1, NULL, SIZES},
	{"window", 1, NULL, WINDOW},	 {"outstanding", 1, NULL, OUTSTANDING},
	{"payload", 1, NULL, PAYLOAD},	 {"delay-us", 1, NULL, DELAY},
	{"jitter-us", 1, NULL, JITTER},	 {"rate-gbps", 1, NULL, RATE},
	{"queue-kb", 1, NULL, QUEUE},	 {"mark-kb", 1, NULL, MARK},
	{"receives", 1, NULL, RECEIVES}, {"repost-us", 1, NULL, REPOST},
	{"memory-kb", 1, NULL, MEMORY},	 {"credit-kb", 1, NULL, CREDIT},
	{"eager", 1, NULL, EAGER},	 {"held", 1, NULL, HELD},
	{"refuse", 1, NULL, REFUSE},	 {"private", 0, NULL, PRIVATE},
	{"reclaim", 0, NULL, RECLAIM},	 {"goodput", 0, NULL, GOODPUT},
	{"stats", 0, NULL, STATS},	 {"quiet", 0, NULL, QUIET},
	{"trace", 1, NULL, TRACE},	 {"vary", 0, NULL, VARY},
	{"seeds", 1, NULL, SEEDS},	 {"every", 1, NULL, EVERY},
	{"jobs", 1, NULL, JOBS},	 {0},
};

static bool set_option(struct options *o, int opt, const char *arg)
{
	struct sim_conf *c = &o->conf;
	char *end = NULL;
	double v = arg ? strtod(arg, &end) : 0;
	char err[200];

	if (opt == FAULT) {
		if (pmf_fault_parse(arg, &c->fault, err, sizeof(err)) == 0)
			return true;
		fprintf(stderr, "pmf-sim: %s\n", err);
		return false;
	}
	if (opt == TRACE) {
		o->trace = arg;
		return true;
	}
	if (opt == SIZES && end == arg) {
		c->big = strcmp(arg, "mix") == 0;
		return c->big || strcmp(arg, "mid") == 0;
	}
	if (arg != NULL && (*end != '\0' || end == arg || v < 0))
		return false;
	switch (opt) {
	case MESSAGES:
		o->messages = (uint64_t)v;
		break;
	case SEED:
		c->seed = strtoull(arg, NULL, 0);
		o->seeded = true;
		break;
	case BOTH:
		o->both = true;
		break;
	case NODES:
		c->nodes = (unsigned int)v;
		break;
	case SIZES:
		c->fixed_size = (uint64_t)v;
		break;
	case WINDOW:
		c->flow.window = (uint32_t)v;
		break;
	case OUTSTANDING:
		o->outstanding = (uint64_t)v;
		break;
	case PAYLOAD:
		c->flow.max_payload = (uint16_t)v;
		break;
	case DELAY:
		c->delay = (pmf_ns_t)(v * 1000);
		break;
	case JITTER:
		c->jitter = (pmf_ns_t)(v * 1000);
		break;
	case RATE:
		c->gbps = v;
		break;
	case QUEUE:
		c->queue = (uint64_t)v << 10;
		break;
	case MARK:
		c->ecn_mark = (uint64_t)v << 10;
		break;
	case RECEIVES:
		c->receives = (uint32_t)v;
		break;
	case REPOST:
		c->repost = (pmf_ns_t)(v * 1000);
		break;
	case MEMORY:
		c->unexpected = (uint64_t)v << 10;
		break;
	case CREDIT:
		c->flow.rx_credit = (uint64_t)v << 10;
		break;
	case EAGER:
		c->flow.eager_limit = (uint32_t)v;
		break;
	case HELD:
		c->held_frames = (uint32_t)v;
		break;
	case REFUSE:
		c->refuse = (uint32_t)v;
		break;
	case PRIVATE:
		c->private_bytes = true;
		break;
	case RECLAIM:
		c->reclaim = true;
		break;
	case GOODPUT:
		o->goodput = true;
		break;
	case STATS:
		o->stats = true;
		break;
	case QUIET:
		o->quiet = true;
		break;
	case VARY:
		o->vary = true;
		break;
	case SEEDS:
		o->seeds = (uint64_t)v;
		break;
	case EVERY:
		o->every = (uint64_t)v;
		break;
	case JOBS:
		o->jobs = (uint64_t)v;
		break;
	default:
		return false;
	}
	return true;
}

/* @return why the options cannot be, or NULL */
static const char *check_options(struct options *o)
{
	struct sim_conf *c = &o->conf;

	c->flow.first_credit = PMF_MIN(c->flow.first_credit, c->flow.rx_credit);
	if (c->nodes < 2 || c->nodes > SIM_MAX_NODES)
		return "--nodes is 2 to 64";
	if (c->flow.window == 0 || c->flow.window > 32768 ||
	    (c->flow.window & (c->flow.window - 1)) != 0)
		return "--window is a power of two, 32768 at most";
	if (c->flow.max_payload < PMF_WIRE_MIN_PAYLOAD || c->flow.max_payload > SIM_MAX_FRAME)
		return "--payload is 1200 to 9216";
	if (c->gbps <= 0 || o->outstanding == 0 || c->receives == 0)
		return "--rate-gbps, --outstanding and --receives are more than 0";
	if (o->every == 0 || o->jobs == 0 || o->jobs > MAX_JOBS)
		return "--every is 1 or more, --jobs 1 to 64";
	if (c->fixed_size != SIM_MIX && c->fixed_size > (16u << 20))
		return "--sizes is 16 MB at most";
	return NULL;
}

static void report(const struct options *o, double took)
{
	uint64_t delivered, all, bytes;

	totals(&sim, &delivered, &all, &bytes);
	printf("%s: %" PRIu64 " of %" PRIu64
	       " messages verified, %.3f GB, in %.1f s (%.0f messages/s), "
	       "%.6f s simulated\n",
	       sim.failed ? "FAILED" : "ok", delivered, all, (double)bytes / 1e9, took,
	       (double)delivered / took, (double)sim.now / 1e9);
	printf("frames: %" PRIu64 " carried, %" PRIu64 " lost, %" PRIu64 " doubled, %" PRIu64
	       " reordered, %" PRIu64 " dropped by the queue, %" PRIu64 " marked\n",
	       sim.carried, sim.lost, sim.doubled, sim.reordered, sim.dropped, sim.marked);
	if (o->goodput)
		printf("goodput: %.3f Gb/s of %.0f, %.0f messages/s, simulated\n",
		       (double)bytes * 8 / (double)sim.now, o->conf.gbps,
		       (double)delivered * 1e9 / (double)sim.now);
	if (o->stats)
		sim_print_state(&sim, stdout);
}

/* The streams of a run: each of --messages, or all together when the seed draws them. */
static void add_streams(const struct options *o)
{
	unsigned int streams = (o->conf.nodes - 1) * (o->both ? 2 : 1);
	uint64_t each = o->vary ? (o->messages + streams - 1) / streams : o->messages;

	for (unsigned int i = 1; i < o->conf.nodes; i++) {
		sim_add_stream(&sim, i, 0, each, o->outstanding);
		if (o->both)
			sim_add_stream(&sim, 0, i, each, o->outstanding);
	}
}

/* One run. @return 0 when everything held */
static int run_one(struct options *o)
{
	char faults[256];
	bool ok;

	if (o->vary) {
		sim_conf_vary(&o->conf);
		o->both = sim_mix(o->conf.seed) % 2;
		o->outstanding = 1 + sim_mix(o->conf.seed + 1) % 128;
	}
	pmf_fault_print(&o->conf.fault.conf, faults, sizeof(faults));
	if (!o->quiet || !o->vary)
		printf("pmf-sim: --seed %" PRIu64 " (or PMF_TEST_SEED) --fault %s, %" PRIu64
		       " messages %s\n",
		       o->conf.seed, faults, o->messages, o->vary ? "in all" : "a stream");
	fflush(stdout);
	if (sim_init(&sim, &o->conf) != 0)
		return 2;
	if (o->trace != NULL && (sim.trace = fopen(o->trace, "w")) == NULL) {
		perror(o->trace);
		return 2;
	}
	started = seconds();
	add_streams(o);
	ok = sim_run(&sim, 60 * PMF_NS_PER_S, o->quiet ? NULL : progress) && sim_settle(&sim);
	if (!o->quiet || !o->vary || !ok)
		report(o, seconds() - started);
	sim_fini(&sim);
	return ok ? 0 : 1;
}

/* Each run is a process of its own. @return how many failed */
static uint64_t reap(pid_t *pid, uint64_t *seed, uint64_t n, const struct options *o)
{
	int status = 0;
	pid_t ended = wait(&status);

	for (uint64_t i = 0; i < n; i++)
		if (pid[i] == ended) {
			pid[i] = 0;
			if (status == 0)
				return 0;
			printf("FAILED: pmf-sim --vary --seed %" PRIu64 " --messages %" PRIu64 "\n",
			       seed[i], o->messages);
			fflush(stdout);
			return 1;
		}
	return 0;
}

static int run_seeds(const struct options *o)
{
	uint64_t failed = 0, runs = 0, seed[MAX_JOBS], busy = 0;
	double began = seconds();
	pid_t pid[MAX_JOBS] = {0};

	printf("pmf-sim: --seeds %" PRIu64 " --every %" PRIu64 " --seed %" PRIu64
	       " --messages %" PRIu64 " --jobs %" PRIu64 "\n",
	       o->seeds, o->every, o->conf.seed, o->messages, o->jobs);
	fflush(stdout);
	for (uint64_t s = 0; s < o->seeds || busy > 0;) {
		uint64_t i = 0;

		if (s >= o->seeds || busy == o->jobs) {
			failed += reap(pid, seed, o->jobs, o);
			busy--;
			continue;
		}
		while (pid[i] != 0)
			i++;
		seed[i] = o->conf.seed + s;
		pid[i] = fork();
		if (pid[i] == 0) {
			struct options one = *o;

			one.conf.seed = seed[i];
			one.vary = one.quiet = true;
			exit(run_one(&one));
		}
		if (pid[i] < 0) {
			perror("pmf-sim: fork");
			return 2;
		}
		busy++;
		runs++;
		s += o->every;
	}
	printf("%s: %" PRIu64 " seeds, %" PRIu64 " messages, %" PRIu64 " failed, in %.0f s\n",
	       failed ? "FAILED" : "ok", runs, runs * o->messages, failed, seconds() - began);
	return failed ? 1 : 0;
}

static uint64_t some_seed(void)
{
	const char *env = getenv("PMF_TEST_SEED");
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return env ? strtoull(env, NULL, 0) : (uint64_t)ts.tv_nsec ^ (uint64_t)ts.tv_sec;
}

int main(int argc, char **argv)
{
	struct options o = {.messages = 100000, .outstanding = 64, .every = 1, .jobs = 1};
	const char *scale = getenv("PMF_LONG"), *why;
	int opt;

	sim_conf_default(&o.conf);
	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (!set_option(&o, opt, optarg)) {
			fputs(usage, stderr);
			return 2;
		}
	}
	why = check_options(&o);
	if (why != NULL || optind != argc) {
		fprintf(stderr, "pmf-sim: %s\n", why ? why : argv[optind]);
		return 2;
	}
	if (!o.seeded)
		o.conf.seed = some_seed();
	/* The long lane runs the same tests with more of it. */
	if (scale != NULL && *scale != '\0' && o.seeds == 0)
		o.messages *= 50;
	return o.seeds ? run_seeds(&o) : run_one(&o);
}
