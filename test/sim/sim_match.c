/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A node's messages on their way in: records to messages, receives to messages in order, memory for
 * those without a receive, holds, invitations, and credit back to the sender.
 */
#include "sim.h"

#include <stdlib.h>

static void rx_maybe_free(struct sim_rx *rx)
{
	if (!rx->gone || rx->invite_out || rx->hold_out)
		return;
	free(rx);
}

static void rx_return_cost(struct sim_rx *rx, uint64_t cost)
{
	if (cost == 0 || rx->flow == NULL)
		return;
	rx->cost -= cost;
	rx->flow->owed -= cost;
	pmf_flow_credit_return(&rx->flow->f, cost);
}

/* Bytes are to come: a sender that dies meanwhile must be missed, though nothing is owed to it. */
static void rx_await(struct sim_rx *rx)
{
	rx->awaited = true;
	if (rx->flow->awaited++ == 0)
		pmf_flow_watch(&rx->flow->f, sim_node_now(rx->flow->node));
}

static void rx_here(struct sim_rx *rx)
{
	if (rx->awaited && rx->flow != NULL && --rx->flow->awaited == 0)
		pmf_flow_unwatch(&rx->flow->f);
	rx->awaited = false;
}

/* Off all lists; its memory goes back, and its cost to the sender. */
static void rx_end(struct sim_node *n, struct sim_rx *rx)
{
	rx_here(rx);
	rx_return_cost(rx, rx->cost);
	n->memory += rx->memory;
	if (!rx->matched)
		TAILQ_REMOVE(&n->unexpected, rx, link);
	if (rx->flow != NULL) {
		LIST_REMOVE(rx, hash);
		if (rx->flow->cur == rx)
			rx->flow->cur = NULL;
	}
	free(rx->buf);
	rx->buf = NULL;
	rx->gone = true;
	rx_maybe_free(rx);
}

/* The application posts its buffer again, after a while. */
static void repost(struct sim_node *n)
{
	if (n->sim->conf.repost == 0) {
		sim_node_post(n, 1);
		return;
	}
	if (n->repost_n++ == 0)
		n->repost_at = n->sim->now + n->sim->conf.repost;
	sim_node_wake_at(n, n->repost_at);
}

static void rx_deliver(struct sim_node *n, struct sim_rx *rx)
{
	sim_stream_deliver(n->sim, rx);
	rx_end(n, rx);
	repost(n);
}

/* It will not come: a receive that has met it ends in an error. */
static void rx_abort(struct sim_node *n, struct sim_rx *rx)
{
	bool matched = rx->matched;

	sim_stream_aborted(n->sim, rx);
	rx_end(n, rx);
	if (matched)
		repost(n);
}

/* A receive meets the message: now, or when its bytes are here. */
static void rx_match(struct sim_node *n, struct sim_rx *rx)
{
	n->posted--;
	rx->matched = true;
	if (rx->by_body) {
		rx->buf = malloc(rx->len ? rx->len : 1);
		rx->invite.kind = PMF_ITEM_INVITE;
		rx->invite.state = PMF_ITEM_NEW;
		rx->invite_out = true;
		pmf_flow_invite(&rx->flow->f, &rx->invite, rx->msg);
	}
	rx_return_cost(rx, rx->cost);
	n->memory += rx->memory;
	rx->memory = 0;
}

/* The credit or the invitation wants to go, but not from inside a packet of that flow. */
static void kick_later(struct sim_flow *sf)
{
	sim_node_wake_at(sf->node, sf->node->sim->now);
	sim_flow_block(sf);
}

void sim_node_post(struct sim_node *n, uint64_t receives)
{
	struct sim_rx *rx;

	n->posted += receives;
	if (n->posting)
		return; /* a delivery below has posted again: the loop goes on with it */
	n->posting = true;
	while (n->posted > 0 && (rx = TAILQ_FIRST(&n->unexpected)) != NULL) {
		TAILQ_REMOVE(&n->unexpected, rx, link);
		if (rx->flow != NULL)
			kick_later(rx->flow);
		rx_match(n, rx);
		if (!rx->by_body && rx->got == rx->len)
			rx_deliver(n, rx);
	}
	n->posting = false;
}

static void rx_unexpected(struct sim_node *n, struct sim_rx *rx)
{
	uint64_t head = pmf_msg_cost(0, false);

	TAILQ_INSERT_TAIL(&n->unexpected, rx, link);
	if (rx->by_body)
		return;
	if (rx->len <= n->memory) {
		rx->memory = rx->len;
		n->memory -= rx->len;
		n->memory_least = PMF_MIN(n->memory_least, n->memory);
		rx->buf = malloc(rx->len ? rx->len : 1);
		return;
	}
	rx->by_body = true;
	rx->hold.kind = PMF_ITEM_HOLD;
	rx->hold.state = PMF_ITEM_NEW;
	rx->hold_out = true;
	pmf_flow_hold(&rx->flow->f, &rx->hold, rx->msg);
	rx_return_cost(rx, rx->cost - head);
}

static void rx_arrived(struct sim_node *n, struct sim_rx *rx)
{
	rx_here(rx);
	sim_stream_arrived(n->sim, rx);
	if (rx->matched)
		rx_deliver(n, rx);
}

static bool on_start(struct sim_node *n, struct sim_flow *sf, const struct pmf_rec *rec)
{
	bool eager = !(rec->flags & PMF_RF_ANNOUNCE);
	struct sim_rx *rx;

	if (sf->cur != NULL) {
		sim_fail(n->sim, "message %" PRIu64 " begins inside another", rec->msg);
		return false;
	}
	if (sf->starts == 0)
		sf->first_msg = rec->msg;
	if (rec->msg != sf->first_msg + sf->starts) {
		sim_fail(n->sim, "message %" PRIu64 " begins after %" PRIu64 " others", rec->msg,
			 sf->starts);
		return false;
	}
	if (!sim_stream_start(n->sim, sf, rec, sf->starts))
		return false;
	rx = calloc(1, sizeof(*rx));
	rx->flow = sf;
	rx->stream = sf->in;
	rx->msg = rec->msg;
	rx->k = sf->starts++;
	rx->len = rec->total;
	rx->has_data = rec->flags & PMF_RF_DATA;
	rx->data = rec->data;
	rx->by_body = !eager;
	rx->cost = pmf_msg_cost(rx->len, eager);
	sf->owed += rx->cost;
	if (sf->owed > n->conf.rx_credit) {
		sim_fail(n->sim, "node %u: peer %u has %" PRIu64 " of cost outstanding", n->id,
			 sf->peer, sf->owed);
		return false;
	}
	LIST_INSERT_HEAD(&sf->rx[rx->msg % SIM_RX_HASH], rx, hash);
	if (n->posted > 0) {
		rx_match(n, rx);
		if (eager)
			rx->buf = malloc(rx->len ? rx->len : 1);
	} else {
		rx_unexpected(n, rx);
	}
	if (rx->by_body || rec->len < rec->total)
		rx_await(rx);
	if (!eager)
		return true;
	if (rec->len != 0 && !rx->by_body)
		memcpy(rx->buf, rec->bytes, rec->len);
	if (!rx->by_body)
		rx->got = rec->len;
	if (rec->len < rec->total)
		sf->cur = rx;
	else if (!rx->by_body)
		rx_arrived(n, rx);
	return true;
}

static bool on_cont(struct sim_node *n, struct sim_flow *sf, const struct pmf_rec *rec)
{
	struct sim_rx *rx = sf->cur;
	bool last;

	if (rx == NULL || rx->msg != rec->msg || rec->off + rec->len > rx->len) {
		sim_fail(n->sim, "bytes of message %" PRIu64 " that is not under way", rec->msg);
		return false;
	}
	last = rec->off + rec->len == rx->len;
	if (last)
		sf->cur = NULL;
	if (rx->by_body)
		return true; /* held: they come again */
	if (rec->off != rx->got) {
		sim_fail(n->sim, "message %" PRIu64 ": offset %" PRIu64 " after %" PRIu64, rec->msg,
			 rec->off, rx->got);
		return false;
	}
	memcpy(rx->buf + rec->off, rec->bytes, rec->len);
	rx->got += rec->len;
	if (last)
		rx_arrived(n, rx);
	return true;
}

static struct sim_rx *rx_find(struct sim_flow *sf, uint64_t msg)
{
	struct sim_rx *rx;

	LIST_FOREACH (rx, &sf->rx[msg % SIM_RX_HASH], hash)
		if (rx->msg == msg)
			return rx;
	return NULL;
}

static bool on_body(struct sim_node *n, struct sim_flow *sf, const struct pmf_rec *rec)
{
	struct sim_rx *rx = rx_find(sf, rec->msg);

	/* What was aborted may have been on its way still. */
	if (rx == NULL && sf->aborts > 0)
		return true;
	if (rx == NULL || !rx->matched || !rx->by_body || rec->off + rec->len > rx->len ||
	    rx->got + rec->len > rx->len) {
		sim_fail(n->sim, "body of message %" PRIu64 " that was not asked for", rec->msg);
		return false;
	}
	memcpy(rx->buf + rec->off, rec->bytes, rec->len);
	rx->got += rec->len;
	if (rx->got == rx->len)
		rx_arrived(n, rx);
	return true;
}

static void on_abort(struct sim_node *n, struct sim_flow *sf, uint64_t msg)
{
	struct sim_rx *rx = rx_find(sf, msg);

	sf->aborts++;
	if (sf->starts == 0)
		sf->first_msg = msg;
	if (rx != NULL)
		rx_abort(n, rx);
	else if (msg == sf->first_msg + sf->starts)
		sim_stream_skipped(n->sim, sf, sf->starts++); /* none of it was sent */
}

bool sim_match_records(struct sim_node *n, struct sim_flow *sf, const uint8_t *p, size_t len)
{
	struct pmf_rec_iter it = {p, len};
	struct pmf_rec rec;
	bool ok = true;
	int err;

	while (ok && (err = pmf_flow_next_rec(&sf->f, &it, &rec)) > 0) {
		if (rec.type == PMF_RT_START)
			ok = on_start(n, sf, &rec);
		else if (rec.type == PMF_RT_CONT)
			ok = on_cont(n, sf, &rec);
		else if (rec.type == PMF_RT_BODY)
			ok = on_body(n, sf, &rec);
		else if (rec.type == PMF_RT_ABORT)
			on_abort(n, sf, rec.msg);
	}
	if (ok && err < 0)
		sim_fail(n->sim, "node %u: peer %u broke the protocol", n->id, sf->peer);
	return ok && err == 0;
}

/* What the flow was given comes back: the item of an invitation or a hold. */
void sim_match_item_done(struct pmf_item *item)
{
	struct sim_rx *rx;

	if (item->kind == PMF_ITEM_INVITE) {
		rx = pmf_container_of(item, struct sim_rx, invite);
		rx->invite_out = false;
	} else {
		rx = pmf_container_of(item, struct sim_rx, hold);
		rx->hold_out = false;
	}
	rx_maybe_free(rx);
}

void sim_match_bury(struct sim_flow *sf)
{
	struct sim_node *n = sf->node;
	struct sim_rx *rx;

	for (unsigned int i = 0; i < SIM_RX_HASH; i++) {
		while ((rx = LIST_FIRST(&sf->rx[i])) != NULL) {
			bool whole = !rx->by_body && rx->got == rx->len && !rx->matched;

			LIST_REMOVE(rx, hash);
			rx->flow = NULL;
			if (!whole)
				rx_abort(n, rx);
		}
	}
}

void sim_match_forget(struct sim_node *n)
{
	struct sim_rx *rx;

	while ((rx = TAILQ_FIRST(&n->unexpected)) != NULL)
		rx_end(n, rx);
}
