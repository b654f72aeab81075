/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "station.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "mix.h"

/*
 * The data endpoints of one run: slots, buffers, receives and completions, for whatever loop drives
 * them. A slot belongs to the provider from its post to its completion.
 */

#define RX_BYTES_MAX ((size_t)256 << 20)
#define LAT_SLOTS 16u
#define ENDPOINT_SLOTS 4u /* receives of each of many endpoints, at least */
#define BATCH 32
/* Of CQ data: the sender's place in the receiver's table; above it stands the pair's number. */
#define PLACE_BITS 8
static_assert(PERF_PARTNERS_MAX <= 1 << PLACE_BITS, "places fit");

static size_t buffer_stride(uint64_t size)
{
	return size ? ((size_t)size + 63) & ~(size_t)63 : 64;
}

/*
 * Of one endpoint: twice its part of the window, so that a message seldom has to wait for its
 * receive to be posted again.
 */
static unsigned int count_receives(const struct perf_station *st)
{
	size_t n = 2 * (st->work.mode == PERF_LAT ? LAT_SLOTS : st->work.window) * st->n_flows;
	size_t limit = st->session->fabric.data_info->rx_attr->size;

	if (n > ENDPOINT_SLOTS * st->n_endpoints)
		n /= st->n_endpoints;
	else if (n > ENDPOINT_SLOTS)
		n = ENDPOINT_SLOTS;
	if (limit && n > limit)
		n = limit;
	if (n * st->n_endpoints * st->stride > RX_BYTES_MAX)
		n = RX_BYTES_MAX / st->stride / st->n_endpoints;
	return n ? (unsigned int)n : 1;
}

static uint32_t count_laps(const struct perf_work *work, size_t lap_bytes)
{
	return lap_bytes && work->walk > lap_bytes ? (uint32_t)(work->walk / lap_bytes) : 1;
}

static int open_buffers(struct perf_station *st)
{
	struct perf_fabric *f = &st->session->fabric;
	unsigned int i, n_tx = st->n_tx * st->n_flows;
	struct perf_slot *slot;

	st->tx_lap_bytes = n_tx * st->stride;
	st->rx_lap_bytes = st->n_rx * st->stride;
	st->tx_laps = count_laps(&st->work, st->tx_lap_bytes);
	st->rx_laps = count_laps(&st->work, st->rx_lap_bytes);
	st->slots = calloc(n_tx + st->n_rx, sizeof(*st->slots));
	if (!st->slots)
		return perf_fail("no memory for %u slots", n_tx + st->n_rx);
	if (n_tx && perf_region_open(&st->tx, f, st->tx_lap_bytes * st->tx_laps))
		return -1;
	if (st->n_rx && perf_region_open(&st->rx, f, st->rx_lap_bytes * st->rx_laps))
		return -1;
	for (i = 0; i < n_tx; i++) {
		slot = &st->slots[i];
		slot->buf = st->tx.base + i * st->stride;
		slot->flow = &st->flows[i / st->n_tx];
		slot->next = slot->flow->free;
		slot->flow->free = slot;
	}
	for (i = 0; i < st->n_rx; i++) {
		slot = &st->slots[n_tx + i];
		slot->buf = st->rx.base + i * st->stride;
		slot->ep = st->endpoints[i % st->n_endpoints].ep;
		slot->next = st->unposted;
		st->unposted = slot;
	}
	return 0;
}

/* The next buffer of a slot lies one lap on: its own residue, so slots never share a buffer. */
static void walk(struct perf_slot *slot, uint32_t laps, size_t lap_bytes)
{
	if (laps == 1)
		return;
	if (++slot->lap < laps) {
		slot->buf += lap_bytes;
	} else {
		slot->buf -= lap_bytes * (laps - 1);
		slot->lap = 0;
	}
}

static int post_receives(struct perf_station *st)
{
	struct perf_slot *slot;
	ssize_t rc;

	while ((slot = st->unposted)) {
		rc = fi_recv(slot->ep, slot->buf, st->work.size, st->rx.desc, FI_ADDR_UNSPEC, slot);
		if (rc == -FI_EAGAIN)
			return 0;
		if (rc)
			return perf_fail("a receive of %zu bytes is refused: %s",
					 (size_t)st->work.size, fi_strerror((int)-rc));
		slot->seq = st->rx_posted++;
		st->unposted = slot->next;
	}
	return 0;
}

static unsigned int count_pairs(const struct perf_station *st, const struct perf_partner *p)
{
	return p->endpoints > st->n_endpoints ? p->endpoints : st->n_endpoints;
}

static void set_up_flow(struct perf_station *st, struct perf_flow *flow, struct perf_partner *p)
{
	bool server = st->session->options->listen;
	uint64_t seed = p->nonce + ((uint64_t)p->run << 32);
	unsigned int i;

	/* One client may work with several servers: their place in its table tells them apart. */
	seed += server ? p->place_there : (uint64_t)(p - st->session->partners);
	flow->partner = p;
	for (i = 0; i < flow->n_pairs; i++, seed += 1 << PLACE_BITS) {
		flow->pairs[i].ep = st->endpoints[i % st->n_endpoints].ep;
		flow->pairs[i].tx_key = perf_pattern_key(seed, server);
		flow->pairs[i].rx_key = perf_pattern_key(seed, !server);
	}
	st->flow_at[p - st->session->partners] = flow;
}

static int open_flows(struct perf_station *st, struct perf_partner *const *partners)
{
	struct perf_pair *next;
	unsigned int i;

	for (i = 0; i < st->n_flows; i++)
		st->n_pairs += st->flows[i].n_pairs = count_pairs(st, partners[i]);
	if (st->work.mix && st->n_pairs > st->n_flows)
		return perf_fail("mixed sizes go with one endpoint a side");
	next = st->pairs = calloc(st->n_pairs, sizeof(*st->pairs));
	if (!next)
		return perf_fail("no memory for %u pairs of endpoints", st->n_pairs);
	for (i = 0; i < st->n_flows; next += st->flows[i++].n_pairs) {
		st->flows[i].pairs = next;
		set_up_flow(st, &st->flows[i], partners[i]);
	}
	return 0;
}

static bool may_inject(const struct perf_station *st)
{
	const struct perf_work *w = &st->work;

	if (w->inject == PERF_OFF || (w->inject == PERF_AUTO && w->mode != PERF_LAT))
		return false;
	return !w->mix && w->size <= st->session->fabric.data_info->tx_attr->inject_size;
}

static void set_up(struct perf_station *st, unsigned int n)
{
	const struct perf_work *w = &st->work;
	bool server = st->session->options->listen;

	st->n_flows = n;
	st->n_endpoints = perf_own_endpoints(st->session->options);
	st->sends = w->mode == PERF_LAT || (w->direction & (server ? PERF_RX : PERF_TX));
	st->receives = w->mode == PERF_LAT || (w->direction & (server ? PERF_TX : PERF_RX));
	st->stride = buffer_stride(w->size);
	st->inject = may_inject(st);
	if (st->sends)
		st->n_tx = w->mode == PERF_LAT ? LAT_SLOTS : w->window;
	if (st->receives)
		st->n_rx = count_receives(st) * st->n_endpoints;
}

static size_t part_of(size_t size, size_t n)
{
	size_t part = 64;

	while (part < size / n)
		part *= 2;
	return part < size ? part : size;
}

/* Endpoints that are many need less room each. */
static struct fi_info *make_info(const struct perf_station *st)
{
	struct fi_info *info = fi_dupinfo(st->session->fabric.data_info);

	if (info) {
		info->tx_attr->size = part_of(info->tx_attr->size, st->n_endpoints);
		info->rx_attr->size = part_of(info->rx_attr->size, st->n_endpoints);
	}
	return info;
}

static int open_endpoints(struct perf_station *st, struct perf_partner *const *partners)
{
	struct perf_fabric *f = &st->session->fabric;
	struct fi_info *info = make_info(st);
	size_t entries = st->n_tx * st->n_flows + st->n_rx + BATCH, peers = 0;
	unsigned int i;
	int rc;

	for (i = 0; i < st->n_flows; i++)
		peers += partners[i]->endpoints;
	if (!info)
		return perf_fail("no memory for the provider's description");
	st->endpoints = calloc(st->n_endpoints, sizeof(*st->endpoints));
	if (!st->endpoints)
		rc = perf_fail("no memory for %u endpoints", st->n_endpoints);
	else
		rc = perf_endpoint_open(&st->endpoints[0], f, info, entries, peers);
	for (i = 1; rc == 0 && i < st->n_endpoints; i++)
		rc = perf_endpoint_join(&st->endpoints[i], f, info, &st->endpoints[0]);
	fi_freeinfo(info);
	return rc;
}

int perf_station_open(struct perf_station *st, struct perf_session *s, const struct perf_work *work,
		      struct perf_partner *const *partners, unsigned int n)
{
	struct perf_fabric *f = &s->fabric;

	memset(st, 0, sizeof(*st));
	st->session = s;
	st->work = *work;
	set_up(st, n);
	if (work->size > f->data_info->ep_attr->max_msg_size)
		return perf_fail("provider %s takes messages up to %zu bytes, not %zu",
				 s->options->provider, f->data_info->ep_attr->max_msg_size,
				 (size_t)work->size);
	if (work->cq_data && f->data_info->domain_attr->cq_data_size < 4)
		return perf_fail("provider %s has no CQ data to tell several partners apart",
				 s->options->provider);
	if (open_endpoints(st, partners) || open_flows(st, partners) || open_buffers(st) ||
	    post_receives(st)) {
		perf_station_close(st);
		return -1;
	}
	return 0;
}

/* The partner's endpoints in turn: with several of ours each is in several pairs. */
static int insert_names(struct perf_station *st, struct perf_flow *flow)
{
	const struct perf_name *names = flow->partner->names;
	unsigned int i, n = flow->partner->endpoints;

	for (i = 0; i < n; i++) {
		if (perf_endpoint_insert(&st->endpoints[0], names[i].bytes, names[i].len,
					 &flow->pairs[i].to))
			return -1;
	}
	for (; i < flow->n_pairs; i++)
		flow->pairs[i].to = flow->pairs[i - n].to;
	return 0;
}

int perf_station_connect(struct perf_station *st)
{
	uint64_t now = perf_now();
	unsigned int i;

	for (i = 0; i < st->n_flows; i++) {
		st->flows[i].first_ns = now; /* without a warm-up it counts from here */
		if (insert_names(st, &st->flows[i]))
			return -1;
	}
	st->moved_ns = now;
	return 0;
}

void perf_station_close(struct perf_station *st)
{
	unsigned int i;

	for (i = st->endpoints ? st->n_endpoints : 0; i > 0; i--)
		perf_endpoint_close(&st->endpoints[i - 1]);
	perf_region_close(&st->tx);
	perf_region_close(&st->rx);
	free(st->endpoints);
	free(st->pairs);
	free(st->slots);
	st->endpoints = NULL;
	st->pairs = NULL;
	st->slots = NULL;
	st->n_flows = 0;
}

/* Bytes of message seq that this station sends (tx) or receives. */
static inline size_t message_size(const struct perf_station *st, bool tx, uint64_t seq)
{
	if (!st->work.mix)
		return st->work.size;
	return perf_mix_size(st->work.mix, st->session->options->listen == tx, seq, st->work.size);
}

/* One posting call for one message. A slot is only used up if it is needed afterwards. */
static ssize_t post_send(struct perf_station *st, const struct perf_flow *flow,
			 struct perf_slot *slot, size_t size, uint64_t flags)
{
	const struct perf_work *w = &st->work;
	const struct perf_pair *pair = &flow->pairs[flow->turn];
	uint64_t data = flow->partner->place_there | (uint64_t)flow->turn << PLACE_BITS;
	struct fid_ep *ep = pair->ep;
	void *desc = st->tx.desc;
	struct iovec iov = {slot->buf, size};
	struct fi_msg msg = {&iov, &desc, 1, pair->to, slot, data};

	if (st->inject)
		return w->cq_data ? fi_injectdata(ep, slot->buf, size, data, pair->to)
				  : fi_inject(ep, slot->buf, size, pair->to);
	if (w->more > 1)
		return fi_sendmsg(ep, &msg, flags | (w->cq_data ? FI_REMOTE_CQ_DATA : 0));
	if (w->cq_data)
		return fi_senddata(ep, slot->buf, size, desc, data, pair->to, slot);
	return fi_send(ep, slot->buf, size, desc, pair->to, slot);
}

int perf_station_send(struct perf_station *st, struct perf_flow *flow, uint64_t flags)
{
	struct perf_pair *pair = &flow->pairs[flow->turn];
	struct perf_slot *slot = flow->free;
	size_t size;
	ssize_t rc;

	if (!slot)
		return 0;
	size = message_size(st, true, pair->sent);
	if (st->work.verify)
		perf_pattern_fill(slot->buf, size, pair->tx_key, pair->sent);
	rc = post_send(st, flow, slot, size, flags);
	if (rc == -FI_EAGAIN)
		return 0;
	if (rc) {
		perf_fail("a send of %zu bytes is refused: %s", size, fi_strerror((int)-rc));
		return perf_fail_about(flow->partner->text);
	}
	flow->sent++;
	pair->sent++;
	if (!(flags & FI_MORE) && ++flow->turn == flow->n_pairs)
		flow->turn = 0;
	if (st->inject) {
		flow->completed++;
		walk(slot, st->tx_laps, st->tx_lap_bytes);
	} else {
		flow->free = slot->next;
	}
	return 1;
}

static int check_message(const struct perf_flow *flow, const struct perf_pair *pair,
			 const uint8_t *buf, size_t size, uint64_t seq)
{
	size_t at = perf_pattern_check(buf, size, pair->rx_key, seq);

	if (at == size)
		return 0;
	return perf_fail("%s: byte %zu of message %llu is 0x%02x, not 0x%02x", flow->partner->text,
			 at, (unsigned long long)seq, buf[at],
			 perf_pattern_byte(at, pair->rx_key, seq));
}

/* Whose message it is. 0, or -1 if it does not say so. */
static int find_pair(struct perf_station *st, const struct fi_cq_data_entry *entry,
		     struct perf_flow **flow, struct perf_pair **pair)
{
	uint64_t place = entry->data & ((1 << PLACE_BITS) - 1), i = entry->data >> PLACE_BITS;

	if (!(entry->flags & FI_REMOTE_CQ_DATA) || place >= PERF_PARTNERS_MAX ||
	    !st->flow_at[place] || i >= st->flow_at[place]->n_pairs)
		return perf_fail("a message came without its sender's number");
	*flow = st->flow_at[place];
	*pair = &(*flow)->pairs[i];
	return 0;
}

static int take_receive(struct perf_station *st, const struct fi_cq_data_entry *entry, uint64_t now)
{
	struct perf_slot *slot = entry->op_context;
	struct perf_flow *flow = &st->flows[0];
	struct perf_pair *pair = flow->pairs;
	uint64_t seq;
	size_t size;

	if (st->work.cq_data && find_pair(st, entry, &flow, &pair))
		return -1;
	seq = st->n_pairs == 1 ? slot->seq : pair->received;
	size = message_size(st, false, seq);
	if (entry->len != size)
		return perf_fail("%s: message %llu has %zu bytes where %zu were sent",
				 flow->partner->text, (unsigned long long)seq, entry->len, size);
	if (st->work.verify && check_message(flow, pair, slot->buf, size, seq))
		return -1;
	pair->received++;
	flow->received++;
	flow->owed++;
	flow->last_ns = now;
	if (flow->received == st->work.warmup)
		flow->first_ns = now;
	walk(slot, st->rx_laps, st->rx_lap_bytes);
	slot->next = st->unposted;
	st->unposted = slot;
	return 0;
}

static void take_send(struct perf_station *st, struct perf_slot *slot)
{
	struct perf_flow *flow = slot->flow;

	walk(slot, st->tx_laps, st->tx_lap_bytes);
	slot->next = flow->free;
	flow->free = slot;
	flow->completed++;
}

static int fail_operation(struct perf_station *st)
{
	struct perf_slot *slot = st->endpoints[0].failed_context;
	struct perf_flow *flow = slot && slot->flow ? slot->flow : NULL;

	if (!flow && st->n_flows == 1)
		flow = &st->flows[0];
	return flow ? perf_fail_about(flow->partner->text) : -1;
}

int perf_station_poll(struct perf_station *st)
{
	struct fi_cq_data_entry entries[BATCH];
	int n = perf_endpoint_read(&st->endpoints[0], entries, BATCH), i;
	uint64_t now;

	if (n <= 0)
		return n < 0 ? fail_operation(st) : (st->unposted ? post_receives(st) : 0);
	now = st->receives ? perf_now() : 0;
	for (i = 0; i < n; i++) {
		if (((struct perf_slot *)entries[i].op_context)->flow)
			take_send(st, entries[i].op_context);
		else if (take_receive(st, &entries[i], now) || post_receives(st))
			return -1;
	}
	st->events += (uint64_t)n;
	return n;
}

/* Quick messages are many between two looks; of slow ones few, or partners would miss our word. */
static void be_patient(struct perf_station *st, uint64_t now)
{
	uint64_t since = now - st->checked_ns;

	if (since < 2 * PERF_NS_PER_MS)
		st->patience = st->patience < 2048 ? 2 * st->patience + 1 : 4096;
	else if (since > 20 * PERF_NS_PER_MS)
		st->patience /= 4;
	st->checked_ns = now;
	st->busy = 0;
}

int perf_station_check(struct perf_station *st)
{
	struct perf_session *s = st->session;
	uint64_t now = perf_now();

	be_patient(st, now);
	if (perf_session_pulse(s, now))
		return -1;
	if (st->events != st->events_seen) {
		st->events_seen = st->events;
		st->moved_ns = now;
	} else if (now - st->moved_ns > s->options->timeout_ns) {
		return perf_fail("no message has moved for %g s",
				 (double)s->options->timeout_ns / 1e9);
	}
	return 0;
}

bool perf_station_all_received(const struct perf_station *st)
{
	unsigned int i;

	if (!st->receives)
		return true;
	for (i = 0; i < st->n_flows; i++) {
		if (st->flows[i].received != st->flows[i].partner->expected)
			return false;
	}
	return true;
}

int perf_station_tell_done(struct perf_station *st)
{
	struct perf_control m;
	struct perf_flow *flow;
	unsigned int i;

	for (i = 0; i < st->n_flows; i++) {
		flow = &st->flows[i];
		if (flow->done_told || flow->completed != flow->sent)
			continue;
		m = (struct perf_control){.type = PERF_DONE, .u.done = flow->sent};
		if (perf_session_send(st->session, flow->partner, &m))
			return -1;
		flow->done_told = true;
	}
	return 0;
}

struct perf_received perf_station_received(const struct perf_station *st,
					   const struct perf_flow *flow)
{
	struct perf_received r = {0};
	uint64_t first = UINT64_MAX, last = 0;
	unsigned int i;

	for (i = 0; i < st->n_flows; i++) {
		const struct perf_flow *each = &st->flows[i];

		if ((flow && flow != each) || each->received <= st->work.warmup)
			continue;
		r.messages += each->received - st->work.warmup;
		first = each->first_ns < first ? each->first_ns : first;
		last = each->last_ns > last ? each->last_ns : last;
	}
	r.ns = r.messages ? last - first : 0;
	return r;
}
