/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Streams of messages. Size, bytes and CQ data of a message follow from its stream's seed and its
 * number, so both ends know them; the bytes are a piece of one table of random ones, compared as a
 * whole.
 */
#include "sim.h"

#include <math.h>
#include <stdlib.h>

#define TABLE_SIZE (20u << 20)
#define NEAR_SIZE \
	(256u << 10) /* the part that messages up to NEAR_MAX begin in: it stays in the cache */
#define NEAR_MAX (64u << 10)

enum msg_state { MSG_NONE, MSG_PUSHED, MSG_STARTED, MSG_ARRIVED, MSG_DELIVERED };

/* ---- what message k is ---- */

static uint64_t msg_hash(const struct sim_stream *st, uint64_t k)
{
	return sim_mix(st->seed + k * 0xd1342543de82ef95ull);
}

static uint64_t msg_size(const struct sim *s, uint64_t hash)
{
	uint64_t r = sim_mix(hash), u = r >> 32;

	if (s->conf.fixed_size != SIM_MIX)
		return s->conf.fixed_size;
	if (hash % 10 == 0)
		return 0;
	if (s->conf.big && r % 10000 == 0)
		return (1u << 20) + (u * (15u << 20) >> 32);
	return (uint64_t)exp2((double)u / 4294967296.0 * 16.0);
}

static bool msg_has_data(uint64_t hash)
{
	return hash >> 8 & 1;
}

static uint64_t msg_data(const struct sim_stream *st, uint64_t k)
{
	return k << 8 | (st->seed & 0xff);
}

static const uint8_t *msg_bytes(const struct sim *s, uint64_t hash, uint64_t len)
{
	uint64_t room = len <= NEAR_MAX ? NEAR_SIZE : TABLE_SIZE - len;

	return s->table + (hash >> 24) % room;
}

/* ---- the sender ---- */

static void split(struct sim_item *it, uint64_t hash, const uint8_t *bytes, uint64_t len)
{
	unsigned int n = 2 + hash % 3;
	uint64_t at = 0;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t part = i + 1 < n ? (hash >> 8 * i & 0xff) * (len - at) / 256 : len - at;

		it->iov[i].iov_base = (void *)(uintptr_t)(bytes + at);
		it->iov[i].iov_len = part;
		at += part;
	}
	it->item.iov = it->iov;
	it->item.niov = (uint8_t)n;
}

static void make_item(struct sim *s, struct sim_stream *st, struct sim_item *it, uint64_t k)
{
	uint64_t hash = msg_hash(st, k), len = msg_size(s, hash);
	const uint8_t *bytes = msg_bytes(s, hash, len);

	memset(&it->item, 0, sizeof(it->item));
	it->stream = st;
	it->k = k;
	it->own = NULL;
	if (s->conf.private_bytes) {
		it->own = malloc(len ? len : 1);
		memcpy(it->own, bytes, len);
		bytes = it->own;
	}
	it->item.kind = PMF_ITEM_MSG;
	it->item.len = len;
	it->item.niov = 1;
	it->item.buf = len ? bytes : NULL;
	if ((hash >> 16) % 8 == 0 && len > 0)
		split(it, sim_mix(hash + 1), bytes, len);
	if (msg_has_data(hash)) {
		it->item.flags = PMF_RF_DATA;
		it->item.data = msg_data(st, k);
	}
}

void sim_stream_fill(struct sim *s, struct sim_stream *st)
{
	struct sim_flow *sf;

	if (st->error != 0 || !s->node[st->src].alive)
		return;
	while (st->free != NULL && st->pushed < st->count && st->pushed - st->oldest < SIM_RING) {
		struct sim_item *it = st->free;

		st->free = it->next;
		make_item(s, st, it, st->pushed);
		st->state[st->pushed++ % SIM_RING] = MSG_PUSHED;
		sf = sim_node_flow(&s->node[st->src], st->dst);
		pmf_flow_push(&sf->f, &it->item);
	}
}

void sim_stream_done(struct sim *s, struct pmf_item *item)
{
	struct sim_item *it = pmf_container_of(item, struct sim_item, item);
	struct sim_stream *st = it->stream;

	if (item->status == 0) {
		st->done++;
		/* Acknowledged means: matched and placed, or kept whole at the receiver. */
		if (it->k >= st->oldest && st->state[it->k % SIM_RING] < MSG_ARRIVED)
			sim_fail(s, "message %" PRIu64 " of %u to %u is done but has not arrived",
				 it->k, st->src, st->dst);
	} else {
		st->failed++;
		if (st->error == 0)
			st->error = item->status;
	}
	if (it->own != NULL) {
		/* Whoever still sends from it, sends this. */
		memset(it->own, 0xdd, it->item.len);
		free(it->own);
	}
	it->next = st->free;
	st->free = it;
	sim_stream_fill(s, st);
}

/* ---- the receiver ---- */

/* What a flow brings is settled by its first message: the newest stream of that life of the peer.
 */
static struct sim_stream *stream_of(struct sim *s, struct sim_flow *sf)
{
	for (unsigned int i = s->nstreams; i-- > 0 && sf->in == NULL;) {
		struct sim_stream *st = &s->stream[i];

		if (st->src == sf->peer && st->dst == sf->node->id && st->inc == sf->f.peer_inc)
			sf->in = st;
	}
	return sf->in;
}

bool sim_stream_start(struct sim *s, struct sim_flow *sf, const struct pmf_rec *rec, uint64_t k)
{
	struct sim_stream *st;
	uint64_t hash;

	st = stream_of(s, sf);
	if (st == NULL || k >= st->pushed || st->state[k % SIM_RING] != MSG_PUSHED) {
		sim_fail(s, "a message that was not sent: %" PRIu64 " of %u to %u", k, sf->peer,
			 sf->node->id);
		return false;
	}
	hash = msg_hash(st, k);
	if (rec->total != msg_size(s, hash) || !(rec->flags & PMF_RF_DATA) != !msg_has_data(hash) ||
	    (msg_has_data(hash) && rec->data != msg_data(st, k)) || rec->kind != PMF_MK_MSG) {
		sim_fail(s,
			 "message %" PRIu64 " of %u to %u: another one's head (%" PRIu64 " bytes)",
			 k, st->src, st->dst, rec->total);
		return false;
	}
	st->state[k % SIM_RING] = MSG_STARTED;
	st->started++;
	return true;
}

static bool msg_step(struct sim *s, struct sim_rx *rx, enum msg_state from, enum msg_state to)
{
	struct sim_stream *st = rx->stream;

	if (st->state[rx->k % SIM_RING] != from) {
		sim_fail(s, "message %" PRIu64 " of %u to %u comes a second time", rx->k, st->src,
			 st->dst);
		return false;
	}
	st->state[rx->k % SIM_RING] = to;
	return true;
}

void sim_stream_arrived(struct sim *s, struct sim_rx *rx)
{
	msg_step(s, rx, MSG_STARTED, MSG_ARRIVED);
}

static void advance(struct sim_stream *st)
{
	while (st->oldest < st->pushed && st->state[st->oldest % SIM_RING] == MSG_DELIVERED)
		st->state[st->oldest++ % SIM_RING] = MSG_NONE;
}

void sim_stream_deliver(struct sim *s, struct sim_rx *rx)
{
	struct sim_stream *st = rx->stream;

	if (!msg_step(s, rx, MSG_ARRIVED, MSG_DELIVERED))
		return;
	if (rx->len != 0 &&
	    memcmp(rx->buf, msg_bytes(s, msg_hash(st, rx->k), rx->len), rx->len) != 0)
		sim_fail(s, "message %" PRIu64 " of %u to %u (%" PRIu64 " bytes): bytes altered",
			 rx->k, st->src, st->dst, rx->len);
	st->delivered++;
	st->bytes += rx->len;
	advance(st);
}

void sim_stream_aborted(struct sim *s, struct sim_rx *rx)
{
	(void)s;
	rx->stream->aborted++;
	rx->stream->state[rx->k % SIM_RING] = MSG_DELIVERED;
	advance(rx->stream);
}

void sim_stream_skipped(struct sim *s, struct sim_flow *sf, uint64_t k)
{
	if (stream_of(s, sf) == NULL || sf->in->state[k % SIM_RING] != MSG_PUSHED) {
		sim_fail(s, "the end of a message that was not sent: %" PRIu64, k);
		return;
	}
	sf->in->aborted++;
	sf->in->state[k % SIM_RING] = MSG_DELIVERED;
	advance(sf->in);
}

/* ---- runs ---- */

void sim_conf_default(struct sim_conf *c)
{
	memset(c, 0, sizeof(*c));
	c->seed = 1;
	c->nodes = 2;
	c->fault.conf.span = 1;
	c->delay = 5 * PMF_NS_PER_US;
	c->gbps = 100;
	c->queue = 16u << 20;
	c->flow = (struct pmf_flow_conf){
		.ack_delay = 20 * PMF_NS_PER_US,
		.ack_every = 16,
		.dead_after = 10 * PMF_NS_PER_S,
		.min_rto = 2 * PMF_NS_PER_MS,
		.max_rto = 500 * PMF_NS_PER_MS,
		.window = 512,
		.eager_limit = 16384,
		.rx_credit = 1u << 20,
		.first_credit = 64u << 10,
		.max_payload = 8972,
		.queue_aim = 6 * PMF_NS_PER_US,
	};
	c->unexpected = 64u << 20;
	c->held_frames = 2048;
	c->receives = 256;
	c->fixed_size = SIM_MIX;
	c->big = true;
}

/* The same for all simulations of a process: it takes longer to make than many of them. */
static const uint8_t *bytes_table(void)
{
	static uint64_t *table;
	uint64_t r = 1;

	if (table != NULL)
		return (const uint8_t *)table;
	table = aligned_alloc(64, TABLE_SIZE);
	for (size_t i = 0; table != NULL && i < TABLE_SIZE / 8; i++)
		table[i] = r = sim_mix(r);
	return (const uint8_t *)table;
}

int sim_init(struct sim *s, const struct sim_conf *conf)
{
	memset(s, 0, sizeof(*s));
	s->conf = *conf;
	s->link = calloc((size_t)conf->nodes * conf->nodes, sizeof(s->link[0]));
	s->table = bytes_table();
	if (s->link == NULL || s->table == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < conf->nodes * conf->nodes; i++) {
		s->link[i].fault = conf->fault;
		pmf_fault_reseed(&s->link[i].fault,
				 sim_mix(conf->fault.conf.seed ^ conf->seed ^ (uint64_t)i << 32));
	}
	for (unsigned int i = 0; i < conf->nodes; i++) {
		const uint8_t ip[4] = {10, 99, (uint8_t)(i >> 8), (uint8_t)i};

		s->node[i].sim = s;
		s->node[i].id = i;
		pmf_addr_set_v4(&s->node[i].addr, ip, (uint16_t)(7000 + i));
		sim_node_start(&s->node[i]);
	}
	return 0;
}

void sim_fini(struct sim *s)
{
	struct sim_frame *f;

	for (unsigned int i = 0; i < s->conf.nodes; i++)
		if (s->node[i].alive)
			sim_node_kill(&s->node[i]);
	while (s->nheap > 0)
		if ((f = s->heap[--s->nheap].frame) != NULL)
			sim_frame_put(s, f);
	for (unsigned int i = 0; i < s->conf.nodes * s->conf.nodes; i++)
		while (s->link[i].nbehind > 0)
			sim_frame_put(s, s->link[i].behind[--s->link[i].nbehind].frame);
	while ((f = s->free) != NULL) {
		s->free = f->next;
		free(f);
	}
	for (unsigned int i = 0; i < s->nstreams; i++) {
		free(s->stream[i].items);
		free(s->stream[i].state);
	}
	free(s->heap);
	free(s->link);
}

struct sim_stream *sim_add_stream(struct sim *s, unsigned int src, unsigned int dst, uint64_t count,
				  uint64_t window)
{
	struct sim_stream *st = &s->stream[s->nstreams++];

	memset(st, 0, sizeof(*st));
	st->src = src;
	st->dst = dst;
	st->inc = s->node[src].inc;
	st->seed = sim_mix(s->conf.seed ^ (uint64_t)src << 40 ^ (uint64_t)dst << 50 ^
			   (uint64_t)s->nstreams << 56);
	st->count = count;
	st->window = window;
	st->state = calloc(SIM_RING, 1);
	st->items = calloc(window, sizeof(st->items[0]));
	for (uint64_t i = 0; i < window; i++) {
		st->items[i].next = st->free;
		st->free = &st->items[i];
	}
	s->by_pair[src][dst] = st;
	sim_stream_fill(s, st);
	if (s->node[src].flow[dst] != NULL)
		sim_flow_kick(s->node[src].flow[dst]);
	return st;
}

bool sim_streams_finished(const struct sim *s)
{
	for (unsigned int i = 0; i < s->nstreams; i++)
		if (s->stream[i].error == 0 && (s->stream[i].done < s->stream[i].count ||
						s->stream[i].delivered < s->stream[i].count))
			return false;
	return true;
}

uint64_t sim_moved(const struct sim *s)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < s->nstreams; i++)
		sum += s->stream[i].delivered + s->stream[i].done + s->stream[i].failed;
	for (unsigned int i = 0; i < s->conf.nodes; i++)
		sum += s->node[i].flow_stats.rx_bytes;
	return sum;
}

bool sim_run(struct sim *s, pmf_ns_t stall, void (*progress)(struct sim *s))
{
	uint64_t steps = 0, seen = 0, sum;
	pmf_ns_t seen_at = s->now, ticked = s->now;

	while (!s->failed && !sim_streams_finished(s)) {
		if (!sim_step(s, PMF_NS_NEVER)) {
			sim_fail(s, "nothing happens any more");
			break;
		}
		if (++steps % 4096 != 0)
			continue;
		if (steps % (1u << 22) == 0) {
			if (s->now == ticked)
				sim_fail(s, "time stands still");
			ticked = s->now;
		}
		if (progress != NULL && steps % (1u << 20) == 0)
			progress(s);
		sum = sim_moved(s);
		if (sum != seen) {
			seen = sum;
			seen_at = s->now;
		} else if (s->now - seen_at > stall) {
			sim_fail(s, "nothing moved for %.1f s", (double)stall / 1e9);
		}
	}
	return !s->failed;
}

static bool all_quiet(const struct sim *s)
{
	for (unsigned int i = 0; i < s->conf.nodes; i++)
		for (unsigned int j = 0; s->node[i].alive && j < s->conf.nodes; j++)
			if (s->node[i].flow[j] != NULL &&
			    !pmf_flow_is_quiet(&s->node[i].flow[j]->f))
				return false;
	return true;
}

static void check_left_behind(struct sim *s)
{
	uint64_t frames = 0;

	for (size_t i = 0; i < s->nheap; i++)
		frames += s->heap[i].frame != NULL;
	for (unsigned int i = 0; i < s->conf.nodes * s->conf.nodes; i++)
		frames += s->link[i].nbehind;
	for (unsigned int i = 0; i < s->conf.nodes; i++) {
		struct sim_node *n = &s->node[i];

		frames += n->alive ? n->nheld : 0;
		if (!n->alive)
			continue;
		if (n->memory != s->conf.unexpected || n->posted != s->conf.receives ||
		    !TAILQ_EMPTY(&n->unexpected) || n->nheld != 0)
			sim_fail(s, "node %u keeps messages or frames at the end", i);
		for (unsigned int j = 0; j < s->conf.nodes; j++) {
			struct sim_flow *sf = n->flow[j];

			if (sf == NULL)
				continue;
			if (sf->f.state != PMF_FLOW_OPEN || sf->owed != 0 || sf->f.bad_steps != 0)
				sim_fail(s, "flow %u to %u ends %s, %" PRIu64 " owed, %u bad steps",
					 i, j, pmf_flow_state_name[sf->f.state], sf->owed,
					 sf->f.bad_steps);
		}
	}
	if (frames != s->frames_out)
		sim_fail(s, "%" PRIu64 " frames leaked", s->frames_out - frames);
}

bool sim_settle(struct sim *s)
{
	pmf_ns_t end = s->now + 5 * PMF_NS_PER_S;

	/* Until nothing is in flight, and receives have been posted again. */
	while (!s->failed && !all_quiet(s) && sim_step(s, end))
		;
	if (!all_quiet(s))
		sim_fail(s, "not quiet at the end");
	for (end = s->now + PMF_NS_PER_MS + 2 * s->conf.repost; !s->failed && sim_step(s, end);)
		;
	check_left_behind(s);
	return !s->failed;
}

static void print_stats(const struct sim_node *n, FILE *f)
{
	const uint64_t *v = (const uint64_t *)(const void *)&n->flow_stats;

	for (unsigned int i = 0; i < pmf_flow_stat_count; i++)
		if (v[i] != 0)
			fprintf(f, " %s %" PRIu64, pmf_flow_stat_desc[i].name, v[i]);
	fprintf(f,
		" refused %" PRIu64 " flushed %" PRIu64 " resets_tx %" PRIu64 " tx_nothing %" PRIu64
		"\n",
		n->stats.refused, n->stats.flushed, n->stats.resets_tx, n->stats.tx_nothing);
}

void sim_print_state(struct sim *s, FILE *f)
{
	for (unsigned int i = 0; i < s->nstreams; i++) {
		struct sim_stream *st = &s->stream[i];

		fprintf(f,
			"  stream %u to %u: %" PRIu64 " pushed, %" PRIu64 " done, %" PRIu64
			" failed (%d), %" PRIu64 " started, %" PRIu64 " delivered, %" PRIu64
			" ended\n",
			st->src, st->dst, st->pushed, st->done, st->failed, st->error, st->started,
			st->delivered, st->aborted);
	}
	for (unsigned int i = 0; i < s->conf.nodes; i++) {
		struct sim_node *n = &s->node[i];

		fprintf(f,
			"  node %u: %" PRIu64 " receives, %" PRIu64
			" bytes of memory (least %" PRIu64 "), %u frames held;",
			i, n->posted, n->memory, n->memory_least, n->nheld);
		print_stats(n, f);
		for (unsigned int j = 0; n->alive && j < s->conf.nodes; j++) {
			struct pmf_flow *fl;

			if (n->flow[j] == NULL)
				continue;
			fl = &n->flow[j]->f;
			fprintf(f,
				"    flow to %u: %s, error %d, una %" PRIu64 ", next %" PRIu64
				", expected %" PRIu64
				", %u in flight, %u lost, mtu %u, cwnd %.1f, srtt %.1f us,"
				" credit %" PRIu64 "/%" PRIu64 ", ready %x, want %x, owed %" PRIu64
				"\n",
				j, pmf_flow_state_name[fl->state], fl->error, fl->una, fl->psn_next,
				fl->rcv_next, fl->inflight, fl->lost, fl->mtu,
				fl->cc.cwnd / 65536.0, (double)fl->rtt.srtt / 1e3, fl->tx_cost,
				fl->tx_limit, fl->ready, fl->want, n->flow[j]->owed);
		}
	}
}
