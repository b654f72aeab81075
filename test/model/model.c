/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "model.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ME(m, x) ((int)((x) - (m)->msg))

void model_fail(struct model *m, const char *fmt, ...)
{
	va_list ap;

	if (m->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(m->why, sizeof(m->why), fmt, ap);
	va_end(ap);
}

void model_begin(struct model *m, const struct program *p)
{
	memset(m, 0, sizeof(*m));
	m->p = p;
	for (int i = 0; i < MAX_EPS; i++)
		m->life_of[i] = NOBODY;
}

/* ---- bytes ---- */

uint64_t model_id(const struct model *m, int msg)
{
	return model_mix(m->p->seed ^ (uint64_t)(msg + 1) << 40);
}

uint64_t model_next_id(const struct model *m)
{
	return model_id(m, m->nmsgs);
}

void model_bytes(uint64_t id, uint8_t *to, uint64_t len)
{
	uint64_t word = id;

	for (uint64_t at = 0; at < len; at += 8) {
		memcpy(to + at, &word, len - at < 8 ? len - at : 8);
		word = word * 0xd1342543de82ef95ull + 1;
	}
}

bool model_same(uint64_t id, const uint8_t *bytes, uint64_t len, uint64_t total)
{
	uint64_t word = id;

	for (uint64_t at = 0; at < len && at < total; at += 8) {
		if (memcmp(bytes + at, &word, len - at < 8 ? len - at : 8) != 0)
			return false;
		word = word * 0xd1342543de82ef95ull + 1;
	}
	return true;
}

/* ---- calls ---- */

int model_open(struct model *m, unsigned int slot)
{
	struct model_life *l = &m->life[m->nlives];

	*l = (struct model_life){.slot = (int)slot,
				 .opened = ++m->now,
				 .closed = NEVER,
				 .min = 64,
				 .mate = NOBODY,
				 .ended = NEVER,
				 .own_end = NEVER};
	if (m->closed >> slot & 1)
		m->restarted |= 1u << slot;
	m->life_of[slot] = m->nlives;
	return m->nlives++;
}

/* Who is longest with a shared context. */
static int eldest(const struct model *m)
{
	for (int i = 0; i < m->nlives; i++)
		if (m->life[i].closed == NEVER)
			return i;
	return NOBODY;
}

void model_close(struct model *m, int life)
{
	struct model_life *l = &m->life[life];

	if (m->p->msg)
		model_ended(m, life);
	l->closed = ++m->now;
	m->closed |= 1u << l->slot;
	m->life_of[l->slot] = NOBODY;
	m->lonely |= m->p->shared && eldest(m) == NOBODY;
	for (int i = 0; i < m->nrecvs && m->lonely; i++)
		m->recv[i].lost |= m->recv[i].hears != NOBODY && !m->recv[i].done;
}

int model_queue(const struct model *m, int life)
{
	return m->p->shared ? 0 : life;
}

bool model_apart(const struct model *m, int a, int b)
{
	return m->p->keyed && ((m->p->strangers >> a ^ m->p->strangers >> b) & 1);
}

void model_connected(struct model *m, int a, int b)
{
	m->life[a].mate = b;
	m->life[b].mate = a;
}

void model_ended(struct model *m, int life)
{
	struct model_life *l = &m->life[life], *mate = l->mate == NOBODY ? l : &m->life[l->mate];

	m->now++;
	l->own_end = l->own_end < m->now ? l->own_end : m->now;
	l->ended = l->ended < m->now ? l->ended : m->now;
	mate->ended = mate->ended < m->now ? mate->ended : m->now;
	for (int i = 0; i < m->nrecvs && !m->p->shared; i++) {
		struct model_recv *r = &m->recv[i];

		if ((r->queue == life || r->queue == l->mate) && !r->done && r->cancelled == NEVER)
			r->cancelled = m->now;
	}
}

void model_refused(struct model *m, int life)
{
	if (m->life[life].ended == NEVER)
		model_fail(m, "life %d: not connected, and nobody ended it", life);
}

void model_told(struct model *m, int life)
{
	if (m->life[life].ended == NEVER)
		model_fail(m, "life %d: told of an end that nobody called for", life);
	if (m->life[life].told++)
		model_fail(m, "life %d: told of its end twice", life);
}

unsigned int model_untold(const struct model *m, int life)
{
	const struct model_life *l = &m->life[life];

	return l->mate != NOBODY && l->ended != NEVER && l->closed == NEVER && !l->told;
}

int model_sent(struct model *m, int life, const struct step *s)
{
	struct model_msg *x = &m->msg[m->nmsgs];
	bool silent = (s->flags & SF_INJECT) || (m->p->selective && (s->flags & SF_SILENT));

	*x = (struct model_msg){.from = life,
				.to_slot = s->peer,
				.dest = m->life[life].mate,
				.to = NOBODY,
				.len = s->len,
				.flags = s->flags,
				.sent = ++m->now,
				.acked = NEVER,
				.entry_due = !silent,
				.older_than = NEVER};
	m->life[life].tx_taken++;
	if (m->life[life].own_end != NEVER)
		model_fail(m, "life %d: a send is accepted after its end", life);
	return m->nmsgs++;
}

int model_posted(struct model *m, int life, const struct step *s)
{
	const int queue = model_queue(m, life);

	m->recv[m->nrecvs] = (struct model_recv){.queue = queue,
						 .hears = NOBODY,
						 .want = m->p->msg ? ANY : s->peer,
						 .cap = s->len,
						 .min = m->life[queue].min,
						 .multi = s->flags & SF_MULTI,
						 .posted = ++m->now,
						 .cancelled = NEVER,
						 .by = NEVER};
	if (m->p->msg && !m->p->shared && m->life[life].ended != NEVER)
		m->recv[m->nrecvs].cancelled = m->now;
	return m->nrecvs++;
}

static bool some_have_ended(const struct model *m)
{
	for (int i = 0; i < m->nlives; i++)
		if (m->life[i].closed != NEVER || m->life[i].ended != NEVER)
			return true;
	return false;
}

void model_cancelled(struct model *m, int recv, long rc)
{
	struct model_recv *r = &m->recv[recv];

	if (rc == 0) {
		r->cancelled = ++m->now;
		r->hears = m->p->shared ? eldest(m) : r->queue;
	} else if (rc == -FI_ENOENT && m->lonely) {
		r->lost = true;
	} else if (rc != -FI_ENOENT && !(rc == -FI_EAGAIN && r->multi)) {
		model_fail(m, "receive %d: fi_cancel gave %ld", recv, rc);
	}
}

int model_open_recv(const struct model *m, int queue, unsigned int n)
{
	for (int i = m->nrecvs - 1; i >= 0; i--)
		if (m->recv[i].queue == queue && !m->recv[i].done &&
		    m->recv[i].cancelled == NEVER && n-- == 0)
			return i;
	return NOBODY;
}

/* ---- what may be ---- */

static int slot_of(const struct model *m, const struct model_msg *x)
{
	return m->life[x->from].slot;
}

static bool sender_open(const struct model *m, const struct model_msg *x)
{
	return m->life[x->from].closed == NEVER;
}

static bool apart(const struct model *m, const struct model_msg *x)
{
	return model_apart(m, slot_of(m, x), x->to_slot);
}

/* Is it, or anything before it to the same peer, fenced? */
static bool behind_fence(const struct model *m, const struct model_msg *x)
{
	for (const struct model_msg *y = x; y >= m->msg; y--)
		if (y->from == x->from && y->to_slot == x->to_slot && (y->flags & SF_FENCE))
			return true;
	return false;
}

/*
 * Connected: what its sender ended is lost, unless it had arrived or was injected; what a fence
 * holds back cannot leave before the end, and an inject that is to have an entry may have been
 * canceled by an entry that is not read yet.
 */
static bool may_vanish_with_connection(const struct model *m, const struct model_msg *x)
{
	if (m->life[x->from].ended == NEVER)
		return false;
	if (m->life[x->dest].own_end != NEVER)
		return true;
	return x->acked == NEVER &&
	       (!(x->flags & (SF_INJECT | SF_INJECT_FLAG)) || x->entry_due || behind_fence(m, x));
}

/* May it have been lost on the way, for an endpoint that closed? */
static bool may_vanish(const struct model *m, const struct model_msg *x)
{
	if (x->err || x->gone || apart(m, x))
		return true;
	if (m->p->msg)
		return may_vanish_with_connection(m, x);
	if (x->acked != NEVER)
		return m->closed >> x->to_slot & 1; /* to an earlier life, perhaps */
	if (m->closed >> x->to_slot & 1)
		return true;
	if (sender_open(m, x))
		return false;
	/* What was injected is tried after the close, unless another takes the place. */
	return !(x->flags & (SF_INJECT | SF_INJECT_FLAG)) || (m->restarted >> slot_of(m, x) & 1);
}

bool model_is_due(const struct model *m, int msg)
{
	const struct model_msg *x = &m->msg[msg];
	int life = m->life_of[x->to_slot];

	if (x->to != NOBODY || x->err || x->gone || apart(m, x))
		return false;
	if (m->p->msg)
		return m->life[x->dest].closed == NEVER && !may_vanish(m, x);
	if (life == NOBODY)
		return false;
	if (!(m->closed >> x->to_slot & 1))
		return !may_vanish(m, x);
	/* Acknowledged, and never on its way to another life: this one has it. */
	return x->acked != NEVER && x->sent > m->life[life].opened;
}

/* Does this life stand where the message goes? */
static bool goes_to(const struct model *m, const struct model_msg *x, int life)
{
	return m->p->msg ? x->dest == life : m->life_of[x->to_slot] == life;
}

unsigned int model_coming(const struct model *m, int life, bool must)
{
	unsigned int n = 0;

	for (int i = 0; i < m->nmsgs; i++) {
		const struct model_msg *x = &m->msg[i];

		if (!goes_to(m, x, life) || x->to != NOBODY || x->gone || x->err)
			continue;
		n += !must || model_is_due(m, i);
	}
	return n;
}

unsigned int model_unanswered(const struct model *m, int life)
{
	unsigned int n = 0;

	for (int i = 0; i < m->nmsgs; i++)
		n += m->msg[i].from == life && m->msg[i].entry_due && !m->msg[i].entry_seen;
	return n;
}

/* ---- sends end ---- */

/* A fence: whatever was sent before it, to the same peer, has ended before what comes after. */
static void check_fence(struct model *m, const struct model_msg *x)
{
	bool fenced = false;

	for (const struct model_msg *y = x; y >= m->msg; y--) {
		if (y->from != x->from || y->to_slot != x->to_slot)
			continue;
		if (fenced && y->entry_due && !y->entry_seen)
			model_fail(m, "message %d ended before message %d, which a fence parts",
				   ME(m, x), ME(m, y));
		fenced |= (y->flags & SF_FENCE) != 0;
	}
}

void model_tx_entry(struct model *m, int life, int msg, const struct model_entry *e)
{
	struct model_msg *x = &m->msg[msg];

	m->now++;
	if (msg < 0 || msg >= m->nmsgs || x->from != life) {
		model_fail(m, "an entry of a send that life %d never made: %d", life, msg);
		return;
	}
	if (x->entry_seen) {
		model_fail(m, "message %d: a second entry", msg);
		return;
	}
	if (e->flags != (FI_SEND | FI_MSG))
		model_fail(m, "message %d: send entry with flags %#llx", msg,
			   (unsigned long long)e->flags);
	x->entry_seen = true;
	check_fence(m, x);
	if (e->err) {
		m->life[life].tx_err++;
		if (apart(m, x) ? e->err != FI_EKEYREJECTED && !m->closed
		    : m->p->msg ? m->life[life].ended == NEVER || e->err != FI_ECANCELED
				: !(m->closed >> x->to_slot & 1))
			model_fail(m, "message %d failed with %d (%s): its peer never closed", msg,
				   e->err, fi_strerror(e->err));
		x->err = e->err;
		return;
	}
	if (apart(m, x))
		model_fail(m, "message %d was taken by a peer with another key", msg);
	if (!x->entry_due)
		model_fail(m, "message %d: an entry, but none is due", msg);
	if (!(x->flags & SF_EARLY))
		x->acked = m->now;
}

void model_lost_inject(struct model *m, int life, int err)
{
	const struct model_life *l = &m->life[life];
	bool may = m->p->msg ? l->mate != NOBODY && m->life[l->mate].own_end != NEVER
			     : m->closed || m->p->strangers;

	for (int i = 0; i < m->nmsgs && !may && l->ended != NEVER; i++)
		may = m->msg[i].from == life && (m->msg[i].flags & SF_INJECT) &&
		      behind_fence(m, &m->msg[i]);
	m->life[life].tx_err++;
	if (!err || !may)
		model_fail(m, "life %d: an entry of an inject, error %d", life, err);
}

/* ---- receives end ---- */

static bool wants(const struct model_recv *r, int slot)
{
	return r->want == ANY || r->want == slot;
}

/* Messages that can still meet a receive of this life. */
static bool on_its_way(const struct model *m, const struct model_msg *x, int life)
{
	return x->to == NOBODY && !x->gone &&
	       (m->p->msg ? x->dest == life : x->to_slot == m->life[life].slot);
}

static bool heads_for(const struct model *m, const struct model_msg *x, int queue)
{
	return m->p->shared ? x->to == NOBODY && !x->gone : on_its_way(m, x, queue);
}

/* Which message is it? By its data, its bytes, or its place. @return NULL: none that there is */
static struct model_msg *identify(struct model *m, int life, const struct model_entry *e)
{
	bool has_data = e->flags & FI_REMOTE_CQ_DATA;
	struct model_msg *place = NULL;

	for (int i = 0; i < m->nmsgs; i++) {
		struct model_msg *x = &m->msg[i];
		uint64_t id = model_id(m, i);

		if (x->to_slot != m->life[life].slot)
			continue;
		if (has_data ? e->data == id
			     : e->len >= ID_LEN && memcmp(e->bytes, &id, ID_LEN) == 0)
			return x;
		if (!place && slot_of(m, x) == e->src && on_its_way(m, x, life))
			place = x;
	}
	return has_data || e->len >= ID_LEN ? NULL : place;
}

/* Older messages of the same place cannot come any more: may they be missing? */
static void check_order(struct model *m, const struct model_msg *x, int life)
{
	for (struct model_msg *y = m->msg; y < x; y++) {
		if (!on_its_way(m, y, life) || slot_of(m, y) != slot_of(m, x))
			continue;
		if (y->sent < m->life[life].opened)
			continue; /* an earlier life may have it, in a queue that is not read yet */
		if (!may_vanish(m, y))
			model_fail(m, "message %d came before message %d", ME(m, x), ME(m, y));
		y->gone = true;
	}
}

/* Was it sent to an earlier life of this place, with which messages had been exchanged? */
static void check_life(struct model *m, const struct model_msg *x, int life)
{
	for (int e = 0; e < life && !m->p->msg; e++) {
		const struct model_life *l = &m->life[e];

		if (l->slot != m->life[life].slot || x->sent < l->opened || x->sent > l->closed)
			continue;
		for (const struct model_msg *y = m->msg; y < m->msg + m->nmsgs; y++)
			if (y->from == x->from &&
			    (y->to == e || (y->to_slot == x->to_slot && y->acked > l->opened &&
					    y->acked < l->closed)))
				model_fail(m, "message %d was for life %d, and life %d got it",
					   ME(m, x), e, life);
	}
}

/* Receive r took message x, at `by` at the latest: what does that say of others? */
static void conclude(struct model *m, int life, struct model_recv *r, const struct model_msg *x)
{
	int slot = slot_of(m, x), by = r->by < m->now ? r->by : m->now, nr = (int)(r - m->recv);

	if (!wants(r, slot))
		model_fail(m, "receive %d took message %d of another source", nr, ME(m, x));
	if (x->sent > by || r->not_from[life] >> slot & 1)
		model_fail(m, "receive %d took message %d, but had its turn before it", nr,
			   ME(m, x));
	if (r->posted > x->older_than || (r->posted == x->older_than && !r->multi))
		model_fail(m, "message %d, taken by receive %d, had its turn before", ME(m, x), nr);
	for (struct model_recv *o = m->recv; o < r; o++) {
		if (o->queue != r->queue || o->done || !wants(o, slot))
			continue;
		o->by = o->by < by ? o->by : by;
		o->not_from[life] |= 1u << slot;
		if (!m->p->msg && o->cancelled < NEVER && o->cancelled > o->by)
			o->cancelled = NEVER; /* too late: it ends otherwise */
	}
	for (struct model_msg *y = m->msg; y < m->msg + m->nmsgs; y++)
		if (heads_for(m, y, r->queue) && wants(r, slot_of(m, y)) && y->acked < x->sent &&
		    !may_vanish(m, y) && r->posted < y->older_than)
			y->older_than = r->posted;
}

/* ---- buffers for several messages ---- */

static int by_place(const void *a, const void *b)
{
	const struct model_part *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return (x->len > y->len) - (x->len < y->len);
}

/* The buffer is over: parts without gaps, and released no sooner and no later than it says. */
static void check_parts(struct model *m, struct model_recv *r)
{
	struct model_part *part = malloc((r->nparts + 1) * sizeof(*part));
	int nr = (int)(r - m->recv);
	uint64_t at = 0;
	uint32_t n = 0;
	bool over = false;

	for (uint32_t i = 0; i < m->nparts; i++)
		if (m->part[i].src >> 8 == nr)
			part[n++] = m->part[i];
	qsort(part, n, sizeof(*part), by_place);
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		if (over)
			model_fail(m, "receive %d: filled on after its end", nr);
		if (part[i].off != at)
			model_fail(m, "receive %d: a part at %llu, where %llu are filled", nr,
				   (unsigned long long)part[i].off, (unsigned long long)at);
		at += part[i].len;
		over = part[i].cut || r->cap - at < (r->min ? r->min : 1);
	}
	if (!r->failed && over == r->was_cancelled)
		model_fail(m, "receive %d: %llu of %llu bytes filled, and %s", nr,
			   (unsigned long long)at, (unsigned long long)r->cap,
			   r->was_cancelled ? "cancelled" : "released");
	free(part);
}

static void add_part(struct model *m, struct model_recv *r, const struct model_msg *x,
		     const struct model_entry *e)
{
	int nr = (int)(r - m->recv), src = nr << 8 | (slot_of(m, x) * MAX_EPS + x->to_slot);

	for (uint32_t i = 0; i < m->nparts; i++)
		if (m->part[i].src == src && m->part[i].off > e->off)
			model_fail(m, "receive %d: message %d lies before an older one", nr,
				   ME(m, x));
	m->part[m->nparts++] = (struct model_part){e->off, e->len, src, e->err == FI_ETRUNC};
	r->nparts++;
	r->failed |= e->err && e->err != FI_ETRUNC;
}

/* ---- an entry of a receive ---- */

/* Connected: a receive that had taken a message ends with it when the connection does. */
static bool lost_inside(const struct model *m, const struct model_recv *r)
{
	for (const struct model_msg *y = m->msg; y < m->msg + m->nmsgs && m->p->msg; y++)
		if (heads_for(m, y, r->queue) && y->sent <= r->by && may_vanish(m, y))
			return true;
	return false;
}

/* A shared receive ends so, too, when an endpoint closes that had it; one that was cancelled had
 * not been given to any. */
static bool ends_inside(const struct model *m, const struct model_recv *r)
{
	return lost_inside(m, r) ||
	       (m->p->shared && (r->multi || r->cancelled == NEVER) && some_have_ended(m));
}

static void on_canceled(struct model *m, int life, struct model_recv *r,
			const struct model_entry *e)
{
	bool inside = ends_inside(m, r);
	int nr = (int)(r - m->recv);

	if ((e->flags & ~(inside ? FI_REMOTE_CQ_DATA : 0)) !=
	    (FI_RECV | FI_MSG | (r->multi ? FI_MULTI_RECV : 0)))
		model_fail(m, "receive %d: cancelled with flags %#llx", nr,
			   (unsigned long long)e->flags);
	/* what waited for room in the queue of who has closed, another one tells */
	if (!inside && r->hears != NOBODY && life != r->hears && m->life[r->hears].closed == NEVER)
		model_fail(m, "receive %d: life %d is told of its cancel, not %d", nr, life,
			   r->hears);
	if (!inside && (r->cancelled == NEVER || r->by < r->cancelled))
		model_fail(m, "receive %d ended as cancelled, %s", nr,
			   r->by < NEVER ? "but had its turn before" : "which it was not");
	r->done = true;
	r->failed |= inside;
	r->was_cancelled = true;
	if (r->multi && !m->p->shared)
		check_parts(m, r);
	if (inside)
		return;
	/* It was open until then: what had arrived and it wanted had gone to an older one. */
	for (struct model_msg *y = m->msg; y < m->msg + m->nmsgs; y++)
		if (heads_for(m, y, r->queue) && wants(r, slot_of(m, y)) &&
		    y->acked < r->cancelled && !may_vanish(m, y) && r->posted < y->older_than)
			y->older_than = r->posted;
}

static void check_entry(struct model *m, const struct model_recv *r, const struct model_msg *x,
			const struct model_entry *e)
{
	uint64_t flags = FI_RECV | FI_MSG | (x->flags & SF_DATA ? FI_REMOTE_CQ_DATA : 0);
	uint64_t room = r->cap - e->off, fits = x->len < room ? x->len : room;
	int nr = (int)(r - m->recv), n = ME(m, x);

	if ((e->flags & ~(r->multi ? FI_MULTI_RECV : 0)) != flags)
		model_fail(m, "receive %d, message %d: flags %#llx", nr, n,
			   (unsigned long long)e->flags);
	if (e->src != NOBODY && e->src != slot_of(m, x))
		model_fail(m, "receive %d, message %d: said to be of %d", nr, n, e->src);
	if (e->err && e->err != FI_ETRUNC) {
		if (sender_open(m, x) || x->acked != NEVER ||
		    ((x->flags & (SF_INJECT | SF_INJECT_FLAG)) && !may_vanish(m, x)))
			model_fail(m, "receive %d, message %d: error %d (%s)", nr, n, e->err,
				   fi_strerror(e->err));
		return;
	}
	if (e->off > r->cap || e->len != fits || (e->err == FI_ETRUNC) != (fits < x->len) ||
	    e->olen != x->len - fits)
		model_fail(m, "receive %d (%llu bytes), message %d (%u bytes): %llu and %llu more",
			   nr, (unsigned long long)r->cap, n, x->len, (unsigned long long)e->len,
			   (unsigned long long)e->olen);
	else if (!model_same(model_id(m, n), e->bytes, e->len, x->len))
		model_fail(m, "receive %d, message %d: bytes altered", nr, n);
}

void model_rx_entry(struct model *m, int life, int recv, const struct model_entry *e)
{
	struct model_recv *r = &m->recv[recv];
	struct model_msg *x;

	m->now++;
	if (recv < 0 || recv >= m->nrecvs || r->queue != model_queue(m, life) ||
	    (r->done && !(r->multi && m->p->shared))) {
		model_fail(m, "an entry of receive %d, which life %d has not open", recv, life);
		return;
	}
	m->life[life].rx_ok += !e->err;
	m->life[life].rx_err += e->err != 0;
	if (e->err == FI_ECANCELED && r->multi && !(e->flags & FI_MULTI_RECV) &&
	    ends_inside(m, r)) {
		r->failed = true; /* one message of several; the buffer goes on */
		return;
	}
	if (e->err == FI_ECANCELED) {
		on_canceled(m, life, r, e);
		return;
	}
	x = identify(m, life, e);
	if (!x || !on_its_way(m, x, life)) {
		model_fail(m, "receive %d: %s (%d)", recv,
			   x ? "a message that had ended" : "a message that was not sent",
			   x ? ME(m, x) : -1);
		return;
	}
	if (apart(m, x))
		model_fail(m, "message %d came from a peer with another key", ME(m, x));
	check_entry(m, r, x, e);
	check_order(m, x, life);
	check_life(m, x, life);
	conclude(m, life, r, x);
	if (r->multi)
		add_part(m, r, x, e);
	x->to = life;
	if (!r->multi || (e->flags & FI_MULTI_RECV)) {
		r->done = true;
		if (r->multi && !m->p->shared)
			check_parts(m, r);
	}
}

/* ---- the end ---- */

void model_end(struct model *m, int life, const uint64_t counter[4])
{
	const struct model_life *l = &m->life[life];
	const uint64_t want[4] = {l->tx_taken - l->tx_err, l->tx_err, l->rx_ok, l->rx_err};
	static const char *const name[] = {"sends", "failed sends", "receives", "failed receives"};

	for (int i = 0; i < 4; i++)
		if (counter[i] != want[i])
			model_fail(m, "life %d: %llu %s counted, not %llu", life,
				   (unsigned long long)counter[i], name[i],
				   (unsigned long long)want[i]);
	if (model_untold(m, life))
		model_fail(m, "life %d was not told of its end", life);
	for (int i = 0; i < m->nrecvs; i++)
		if (m->recv[i].queue == model_queue(m, life) && !m->recv[i].done &&
		    !m->recv[i].lost)
			model_fail(m, "receive %d never ended", i);
	/* Parts of a shared buffer are told in several queues: they are looked at when all are
	 * read. */
	for (int i = 0; i < m->nrecvs && m->p->shared; i++) {
		struct model_recv *r = &m->recv[i];

		if (r->multi && r->done && !some_have_ended(m))
			check_parts(m, r);
	}
	for (int i = 0; i < m->nmsgs; i++) {
		if (goes_to(m, &m->msg[i], life) && model_is_due(m, i))
			model_fail(m, "message %d never came", i);
		if (m->msg[i].from == life && m->msg[i].entry_due && !m->msg[i].entry_seen)
			model_fail(m, "message %d: its send never ended", i);
	}
}
