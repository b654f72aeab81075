/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Receiving of multicast: each message at most once and in sending order, to every endpoint that
 * has joined its group. Owner only.
 */
#include "msg/mcast_state.h"

/* ---- who was heard ---- */

/* One that is new; when there are too many, in the place of the one not heard for longest. */
static struct pmf_mc_sender *sender_make(struct pmf_engine *e, const struct pmf_mc_key *key)
{
	struct pmf_mcasts *ms = e->mcasts;
	struct pmf_mc_sender *s;

	if (ms->nsenders < PMF_MC_SENDERS) {
		s = &ms->sender[ms->nsenders++];
	} else {
		s = TAILQ_FIRST(&ms->senders);
		TAILQ_REMOVE(&ms->senders, s, link);
		rte_hash_del_key(ms->by_sender, &s->key);
		e->stats.mcast_forgotten++;
	}
	s->key = *key;
	s->inc = s->before = s->seq = 0;
	TAILQ_INSERT_TAIL(&ms->senders, s, link);
	return rte_hash_add_key_data(ms->by_sender, &s->key, s) ? NULL : s;
}

/*
 * Is the message newer than all before it? Another life of the sender begins a new count; the life
 * that it has replaced does not come back.
 */
static bool is_news(struct pmf_engine *e, const struct pmf_mc_key *key, uint64_t inc, uint64_t seq)
{
	struct pmf_mcasts *ms = e->mcasts;
	struct pmf_mc_sender *s;
	void *found;

	if (rte_hash_lookup_data(ms->by_sender, key, &found) >= 0) {
		s = found;
		TAILQ_REMOVE(&ms->senders, s, link);
		TAILQ_INSERT_TAIL(&ms->senders, s, link);
	} else {
		s = sender_make(e, key);
		if (!s)
			return true;
	}
	if (inc != s->inc) {
		if (inc == s->before && inc)
			return false;
		s->before = s->inc;
		s->inc = inc;
	} else if (seq <= s->seq) {
		return false;
	}
	s->seq = seq;
	return true;
}

/* ---- delivery ---- */

static void deliver(struct pmf_engine *e, struct pmf_mc *first, const struct pmf_rec *rec,
		    const struct pmf_addr *from)
{
	const struct pmf_ep *last = NULL;
	struct pmf_mc *mc;

	for (mc = first; mc; mc = TAILQ_NEXT(mc, link)) {
		if (mc->ep == last || !pmf_addr_eq(&mc->attr.group, &first->attr.group))
			continue;
		last = mc->ep;
		if (pmf_match_datagram(e, mc->ep, rec, from))
			e->stats.mcast_drop_no_memory++;
	}
}

/* The first that has joined the group at @p port. */
static struct pmf_mc *member_at(struct pmf_engine *e, const struct pmf_frame *f)
{
	struct pmf_mc *mc;

	if (!e->mcasts) /* a group that the port itself is in */
		return NULL;
	TAILQ_FOREACH (mc, &e->mcasts->members[f->group], link)
		if (mc->attr.group.port == f->dst_port)
			return mc;
	return NULL;
}

/* One message, whole, and nothing behind it. */
static bool message_get(const struct pmf_hdr *hdr, struct pmf_rec *rec)
{
	return pmf_rec_get(hdr->body, hdr->body_len, rec) == (int)hdr->body_len &&
	       rec->type == PMF_RT_START && rec->kind == PMF_MK_MSG && (rec->flags & PMF_RF_WHOLE);
}

static void take(struct pmf_engine *e, const struct pmf_frame *f)
{
	struct pmf_mc_key key;
	struct pmf_mc *first;
	struct pmf_hdr hdr;
	struct pmf_rec rec;
	int err = pmf_wire_get(f->payload, f->len, &hdr);

	if (err == -EPROTONOSUPPORT) {
		e->stats.drop_version++;
		return;
	}
	if (err || hdr.type != PMF_PT_MULTICAST || !message_get(&hdr, &rec)) {
		e->stats.drop_malformed++;
		return;
	}
	if (hdr.key) { /* nobody with a key joins a group: fabric/mc.c */
		e->stats.drop_key++;
		return;
	}
	first = member_at(e, f);
	if (!first) {
		e->stats.mcast_drop_no_member++;
		return;
	}
	pmf_frame_src(f, &key.sender);
	key.sender.port = hdr.port;
	key.group = first->attr.group;
	if (!is_news(e, &key, hdr.inc, hdr.seq)) {
		e->stats.mcast_drop_old++;
		return;
	}
	e->stats.mcast_rx++;
	deliver(e, first, &rec, &key.sender);
}

void pmf_mc_receive(struct pmf_engine *e, const struct pmf_frame *f, struct rte_mbuf *m)
{
	take(e, f);
	rte_pktmbuf_free(m);
}
