/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Flows as the engine keeps them: table by connection id, names by address, the way from fi_addr_t,
 * and what follows every call into the protocol. Owner only.
 */
#include "msg/engine.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "msg/addr.h"
#include "msg/auth.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/steer.h"

#define REST_LOOKS 16		/* flows looked at in one go */
#define ACTIVES_CUT (64 * 1024) /* bytes of active parts made at once; of large windows one */
#define REST_AFTER (100 * PMF_NS_PER_MS)

static_assert(sizeof(struct pmf_eflow) <= 1536, "what an idle peer costs: docs/reliability.md");

/* ---- names ---- */

struct pmf_eflow *pmf_eflow_find(struct pmf_engine *e, uint16_t local_port,
				 const struct pmf_peer *peer)
{
	struct pmf_flow_name name = {*peer, local_port};
	void *ef;

	return rte_hash_lookup_data(e->by_name, &name, &ef) < 0 ? NULL : ef;
}

void pmf_eflow_unname(struct pmf_engine *e, struct pmf_eflow *ef)
{
	struct pmf_flow_name name = {ef->peer, ef->local_port};

	if (!ef->named)
		return;
	/* found by its name no more, an OPEN of it would begin it anew */
	if (ef->flow.bound && ef->flow.peer_conn)
		pmf_ended_add(&e->ended, ef->flow.peer_inc, ef->flow.peer_conn);
	rte_hash_del_key(e->by_name, &name);
	ef->named = false;
}

static struct pmf_eflow **slot_of(struct pmf_ep *ep, fi_addr_t a)
{
	struct pmf_eflow **chunk = ep->flow_of[a >> PMF_PEERS_CHUNK_BITS];

	return chunk ? &chunk[a & (PMF_PEERS_CHUNK - 1)] : NULL;
}

/* The first send to one of 4,096 neighbouring addresses makes their table: once, not per message.
 */
static bool slot_set(struct pmf_ep *ep, fi_addr_t a, struct pmf_eflow *ef)
{
	struct pmf_eflow ***chunk = &ep->flow_of[a >> PMF_PEERS_CHUNK_BITS];

	if (!*chunk)
		*chunk = calloc(PMF_PEERS_CHUNK, sizeof(**chunk));
	if (!*chunk)
		return false;
	(*chunk)[a & (PMF_PEERS_CHUNK - 1)] = ef;
	ef->fi_addr = a;
	return true;
}

void pmf_eflow_rename(struct pmf_engine *e, struct pmf_ep *ep, const struct pmf_peer *peer,
		      fi_addr_t old, fi_addr_t fi_addr)
{
	struct pmf_eflow *ef = pmf_eflow_find(e, ep->addr.port, peer);
	struct pmf_rctx *rc = ep->rctx;
	struct pmf_stub *s;
	struct pmf_rx *rx;

	if (old != FI_ADDR_NOTAVAIL && slot_of(ep, old))
		*slot_of(ep, old) = NULL;
	if (ef) {
		ef->fi_addr = FI_ADDR_NOTAVAIL;
		if (fi_addr != FI_ADDR_NOTAVAIL)
			slot_set(ep, fi_addr, ef);
		TAILQ_FOREACH (rx, &ef->rx_order, order)
			rx->src = ef->fi_addr;
	}
	TAILQ_FOREACH (s, &rc->unexpected, link)
		if (s->ep == ep && pmf_peer_eq(&s->peer, peer))
			s->src = fi_addr;
	if (fi_addr != FI_ADDR_NOTAVAIL && rc->ndirected)
		pmf_match_again(e, rc, NULL, pmf_clock_ns());
}

/* ---- opening ---- */

static bool take_index(struct pmf_engine *e, struct pmf_eflow *ef)
{
	uint32_t cap = e->flows_cap;
	struct pmf_eflow **more;

	for (uint32_t i = 0; i < cap; i++) {
		uint32_t at = (e->flow_free_hint + i) % cap;

		if (!e->flows[at]) {
			e->flows[at] = ef;
			ef->index = at;
			e->flow_free_hint = at + 1;
			return true;
		}
	}
	more = realloc(e->flows, 2ul * cap * sizeof(*more));
	if (!more)
		return false;
	memset(more + cap, 0, cap * sizeof(*more));
	e->flows = more;
	e->flows_cap = 2 * cap;
	more[cap] = ef;
	ef->index = cap;
	e->flow_free_hint = cap + 1;
	return true;
}

static void init_flow(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	struct pmf_flow_ident id = {.inc = ef->ep->inc,
				    .local = ef->ep->addr,
				    .peer = ef->peer.addr,
				    .connects = ef->ep->type == PMF_EP_MSG,
				    .tail = ef->seal ? PMF_WIRE_TAG : 0};
	uint32_t high;

	pmf_random(&high, sizeof(high));
	pmf_random(&id.nonce, sizeof(id.nonce));
	high |= high == 0; /* connection id 0 means "not known" */
	ef->conn = id.conn = (uint64_t)high << 32 | ef->index;
	pmf_flow_init(&ef->flow, &e->fconf, &id, &ef->stats, now);
}

struct pmf_eflow *pmf_eflow_open(struct pmf_engine *e, struct pmf_ep *ep,
				 const struct pmf_addr *addr, struct pmf_auth *auth, pmf_ns_t now,
				 int *err)
{
	struct pmf_peer peer = {*addr, auth ? auth->number : 0};
	struct pmf_flow_name name = {peer, ep->addr.port};
	struct pmf_eflow *ef = aligned_alloc(PMF_CACHE_LINE, (sizeof(*ef) + 63) & ~(size_t)63);

	*err = FI_ENOMEM;
	if (!ef)
		return NULL;
	memset(ef, 0, sizeof(*ef));
	ef->ep = ep;
	ef->peer = peer;
	ef->local_port = ep->addr.port;
	ef->fi_addr = FI_ADDR_NOTAVAIL;
	STAILQ_INIT(&ef->fenced);
	TAILQ_INIT(&ef->rx_order);
	TAILQ_INIT(&ef->bodies);
	TAILQ_INIT(&ef->stubs);
	pmf_timer_init(&ef->timer);
	if (pmf_path_init(&ef->path, e->port, addr, ep->addr.port)) {
		*err = FI_EHOSTUNREACH;
		goto free_flow;
	}
	pmf_path_set_dscp(&ef->path, ep->dscp);
	if (!pmf_auth_begin(e, ef, auth))
		goto fini_path;
	if (!pmf_steer_take(e->q, ef->local_port))
		goto end_auth;
	if (!take_index(e, ef))
		goto drop_steer;
	if (rte_hash_add_key_data(e->by_name, &name, ef))
		goto free_index;
	ef->named = true;
	if (ep->type != PMF_EP_RDM && !pmf_cm_new(e, ef, now))
		goto free_name;
	init_flow(e, ef, now);
	TAILQ_INSERT_TAIL(&ep->eflows, ef, ep_link);
	if (ep->peers)
		ef->fi_addr = pmf_peers_find(ep->peers, &peer);
	if (ef->fi_addr != FI_ADDR_NOTAVAIL)
		slot_set(ep, ef->fi_addr, ef);
	ep->nflows++;
	e->nflows++;
	e->stats.flows_opened++;
	return ef;

free_name:
	pmf_eflow_unname(e, ef);
free_index:
	e->flows[ef->index] = NULL;
drop_steer:
	pmf_steer_drop(e->q, ef->local_port);
end_auth:
	pmf_auth_end(e, ef);
fini_path:
	pmf_path_fini(&ef->path, e->q);
free_flow:
	free(ef);
	return NULL;
}

/** The flow from @p ep to a peer of its AV; made on the first send. @param err positive, set on
 * NULL */
struct pmf_eflow *pmf_eflow_to(struct pmf_engine *e, struct pmf_ep *ep, fi_addr_t dest,
			       pmf_ns_t now, int *err)
{
	struct pmf_eflow **slot, *ef;
	struct pmf_auth *auth = NULL;
	struct pmf_peer *peer;

	if (ep->type == PMF_EP_MSG) { /* the address is garbage */
		*err = FI_ECANCELED;
		return ep->conn;
	}
	slot = slot_of(ep, dest);
	if (pmf_likely(slot && *slot))
		return *slot;
	peer = pmf_peers_get(ep->peers, dest);
	*err = FI_EHOSTUNREACH;
	if (!peer)
		return NULL; /* removed between the post and now */
	ef = pmf_eflow_find(e, ep->addr.port, peer);
	if (!ef && !pmf_auth_of(ep, peer->key, &auth)) {
		*err = FI_EKEYREJECTED; /* a key that came to the AV after fi_enable */
		return NULL;
	}
	if (!ef)
		ef = pmf_eflow_open(e, ep, &peer->addr, auth, now, err);
	if (ef && !slot_set(ep, dest, ef)) {
		*err = FI_ENOMEM;
		return NULL;
	}
	return ef;
}

/* ---- the active part ---- */

static uint32_t window_of(const struct pmf_engine *e, unsigned int size)
{
	return PMF_MIN(PMF_WINDOW_LEAST << 2 * size, e->fconf.window);
}

/* @return the size of the least window that is not smaller */
static unsigned int size_of(const struct pmf_engine *e, uint32_t window)
{
	unsigned int size = 0;

	while (window_of(e, size) < window)
		size++;
	return size;
}

/* Of a flow's active part, its frames ahead of order behind it. */
static size_t bytes_of(uint32_t window)
{
	size_t size = pmf_flow_active_size(window) + window * sizeof(struct rte_mbuf *);

	return (size + PMF_CACHE_LINE - 1) & ~(size_t)(PMF_CACHE_LINE - 1);
}

static void active_put(struct pmf_engine *e, void *mem, uint32_t window)
{
	void **head = &e->active_free[size_of(e, window)];

	*(void **)mem = *head;
	*head = mem;
}

/* More flows are active at once than ever before. They lie together, those of small windows many to
 * a page.
 */
static void *active_cut(struct pmf_engine *e, uint32_t window)
{
	size_t bytes = bytes_of(window), n = PMF_MAX(ACTIVES_CUT / bytes, 1u);
	uint8_t *mem = aligned_alloc(PMF_CACHE_LINE, PMF_CACHE_LINE + n * bytes), *first;

	if (!mem)
		return NULL;
	*(void **)(void *)mem = e->active_mem;
	e->active_mem = mem;
	first = mem + PMF_CACHE_LINE;
	while (--n)
		active_put(e, first + n * bytes, window);
	return first;
}

/* Frames ahead of order have other places in a larger window. */
static void held_move(struct pmf_eflow *ef, struct rte_mbuf **to, uint32_t mask)
{
	pmf_psn_t psn = ef->flow.rcv_next;

	memset(to, 0, (mask + 1) * sizeof(struct rte_mbuf *));
	for (uint32_t i = 0; ef->nheld && i <= ef->held_mask; i++)
		to[(psn + i) & mask] = ef->held[(psn + i) & ef->held_mask];
	ef->held = to;
	ef->held_mask = mask;
}

/* @return false: it has none, and there is no memory now */
static __attribute__((noinline)) bool lend(struct pmf_engine *e, struct pmf_eflow *ef)
{
	unsigned int size = size_of(e, pmf_flow_window_wanted(&ef->flow));
	uint32_t window = window_of(e, size), before = ef->held_mask + 1;
	void *mem = e->active_free[size], *old;

	if (mem)
		e->active_free[size] = *(void **)mem;
	else
		mem = active_cut(e, window);
	if (!mem) {
		if (ef->held)
			pmf_flow_make_do(&ef->flow);
		return ef->held;
	}
	if (!ef->held) {
		TAILQ_INSERT_TAIL(&e->actives, ef, active_link);
		ef->quiet_since = 0;
	}
	old = pmf_flow_lend(&ef->flow, mem, window);
	held_move(ef, (struct rte_mbuf **)((uint8_t *)mem + pmf_flow_active_size(window)),
		  window - 1);
	if (old)
		active_put(e, old, before);
	return true;
}

bool pmf_eflow_activate(struct pmf_engine *e, struct pmf_eflow *ef)
{
	return pmf_likely(!pmf_flow_needs_active(&ef->flow)) || lend(e, ef);
}

static void deactivate(struct pmf_engine *e, struct pmf_eflow *ef)
{
	if (!ef->held)
		return;
	pmf_engine_release_held(e, ef);
	active_put(e, pmf_flow_reclaim(&ef->flow), ef->held_mask + 1);
	ef->held = NULL;
	TAILQ_REMOVE(&e->actives, ef, active_link);
}

/* Nobody here sends to the peer, and nothing of it is waited for. */
static bool is_idle(const struct pmf_eflow *ef)
{
	return ef && !ef->cm && ef->fi_addr == FI_ADDR_NOTAVAIL && TAILQ_EMPTY(&ef->stubs) &&
	       TAILQ_EMPTY(&ef->rx_order);
}

/* Peers come and go while an endpoint stays: those that have gone must not. */
static void forget_gone(struct pmf_engine *e, pmf_ns_t now)
{
	for (unsigned int i = 0; i < REST_LOOKS; i++) {
		struct pmf_eflow *ef = e->flows[e->idle_at++ % e->flows_cap];

		if (!is_idle(ef))
			continue;
		if (pmf_flow_idle(&ef->flow, now)) {
			pmf_eflow_settle(e, ef, now);
			continue;
		}
		e->stats.flows_forgotten++;
		pmf_eflow_free(e, ef, ETIMEDOUT);
	}
}

void pmf_eflow_rest(struct pmf_engine *e, pmf_ns_t now)
{
	struct pmf_eflow *ef;

	forget_gone(e, now);
	for (unsigned int i = 0; i < REST_LOOKS && (ef = TAILQ_FIRST(&e->actives)); i++) {
		if (!pmf_flow_is_quiet(&ef->flow))
			ef->quiet_since = 0;
		else if (!ef->quiet_since)
			ef->quiet_since = now;
		else if (now - ef->quiet_since > REST_AFTER) {
			deactivate(e, ef);
			continue;
		}
		TAILQ_REMOVE(&e->actives, ef, active_link);
		TAILQ_INSERT_TAIL(&e->actives, ef, active_link);
	}
}

/* ---- after every call into the protocol ---- */

void pmf_eflow_drain(struct pmf_engine *e, struct pmf_eflow *ef)
{
	struct pmf_item *item;

	while ((item = STAILQ_FIRST(&ef->flow.done))) {
		STAILQ_REMOVE_HEAD(&ef->flow.done, link);
		switch (item->kind) {
		case PMF_ITEM_MSG:
			pmf_complete_tx(e, pmf_container_of(item, struct pmf_tx, item),
					item->status && ef->cm ? FI_ECANCELED : -item->status);
			break;
		case PMF_ITEM_INVITE:
			pmf_match_invited(e, pmf_container_of(item, struct pmf_rx, item));
			break;
		case PMF_ITEM_CONNREQ:
		case PMF_ITEM_ACCEPT:
		case PMF_ITEM_REJECT:
		case PMF_ITEM_CLOSE:
			pmf_cm_item_done(ef, item);
			break;
		default: { /* HOLD */
			struct pmf_stub *s = pmf_container_of(item, struct pmf_stub, item);

			s->hold_out = false;
			if (s->state == PMF_STUB_GONE)
				pmf_stub_put(e, s);
			break;
		}
		}
	}
}

static inline void rearm(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	pmf_ns_t at = pmf_flow_deadline(&ef->flow);

	/* a timer that is armed for earlier stays: it fires, finds nothing due and is set anew */
	if (pmf_likely(at >= ef->timer.at))
		return;
	/* what is due already waits for its frame, not for the clock: not twice in one pass */
	pmf_wheel_arm(&e->wheel, &ef->timer, PMF_MAX(at, now + (1u << PMF_WHEEL_SHIFT)));
}

/* Once a flow, and nothing else tells the user what to look for. */
static void log_key(struct pmf_engine *e, const struct pmf_eflow *ef)
{
	char text[PMF_ADDR_TEXT], line[300];

	snprintf(line, sizeof(line),
		 "%s does not take our authorization key, or wants one: see auth_key of fi_domain "
		 "and fi_endpoint, FI_PMF_AUTH_KEY_FILE and FI_PMF_ENCRYPT on both sides",
		 pmf_addr_text(&ef->peer.addr, text, sizeof(text)));
	e->conf->log(PMF_LOG_WARN, line);
}

bool pmf_eflow_settle(struct pmf_engine *e, struct pmf_eflow *ef, pmf_ns_t now)
{
	pmf_eflow_drain(e, ef);
	if (pmf_unlikely(ef->flow.state == PMF_FLOW_DEAD)) {
		e->stats.flows_dead++;
		if (ef->flow.error == EKEYREJECTED)
			log_key(e, ef);
		pmf_eflow_free(e, ef, ef->flow.error);
		return false;
	}
	if (pmf_unlikely(!STAILQ_EMPTY(&ef->fenced)))
		pmf_fence_release(ef);
	if (!ef->ready && (pmf_flow_wants_tx(&ef->flow, now) || pmf_flow_needs_active(&ef->flow))) {
		ef->ready = true;
		TAILQ_INSERT_TAIL(&e->ready, ef, ready_link);
	}
	if (!ef->ack && pmf_flow_ack_pending(&ef->flow)) {
		ef->ack = true;
		TAILQ_INSERT_TAIL(&e->acks, ef, ack_link);
	}
	rearm(e, ef, now);
	return true;
}

void pmf_eflow_free(struct pmf_engine *e, struct pmf_eflow *ef, int error)
{
	struct pmf_ep *ep = ef->ep;

	if (ef->flow.state != PMF_FLOW_DEAD)
		pmf_flow_kill(&ef->flow, error);
	pmf_eflow_drain(e, ef);
	pmf_fence_end(e, ef, ef->cm ? FI_ECANCELED : error);
	pmf_match_flow_end(e, ef, ef->cm ? FI_ECANCELED : error);
	deactivate(e, ef);
	if (e->later.flow == ef)
		e->later.flow = NULL;
	if (ef->ready)
		TAILQ_REMOVE(&e->ready, ef, ready_link);
	if (ef->ack)
		TAILQ_REMOVE(&e->acks, ef, ack_link);
	pmf_wheel_disarm(&e->wheel, &ef->timer);
	pmf_eflow_unname(e, ef);
	if (ef->fi_addr != FI_ADDR_NOTAVAIL) {
		struct pmf_eflow **slot = slot_of(ep, ef->fi_addr);

		if (slot && *slot == ef)
			*slot = NULL;
	}
	e->flows[ef->index] = NULL;
	pmf_steer_drop(e->q, ef->local_port);
	e->nflows--;
	ep->nflows--;
	TAILQ_REMOVE(&ep->eflows, ef, ep_link);
	if (ef->cm)
		pmf_cm_flow_end(e, ef, ef->flow.error);
	pmf_auth_end(e, ef);
	pmf_path_fini(&ef->path, e->q);
	free(ef);
}
