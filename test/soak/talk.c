/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Messages: each by one of the calls that can say it, and checked when it arrives.
 */
#include <stdlib.h>
#include <string.h>

#include "soak.h"

static char injected; /* context of what has an entry only when it fails */

/* ---- sending ---- */

static const struct kind *kind_of(const struct slot *s, unsigned int dest)
{
	return s->kind->msg ? s->kind : &kinds[dest % RDM_SLOTS];
}

static uint64_t word_of(const struct slot *s, unsigned int dest)
{
	return message_word(s->life, s->dest[dest].next);
}

/* Of the flags that say when a send has ended at most one. */
static uint64_t some_flags(const struct slot *s)
{
	static const uint64_t level[] = {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
					 FI_DELIVERY_COMPLETE};
	uint64_t flags = s->kind->selective ? FI_COMPLETION : 0;

	if (soak_chance(3))
		flags |= level[soak_below(3)];
	if (soak_chance(8))
		flags |= FI_FENCE;
	if (soak_chance(8))
		flags |= FI_MORE;
	return flags;
}

static ssize_t inject(struct slot *s, unsigned int dest, size_t len, bool data)
{
	uint8_t bytes[INJECT_MAX];
	uint64_t word = word_of(s, dest);
	struct iovec iov = {bytes, len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest, .context = &injected, .data = word};
	ssize_t rc;

	message_fill(word, bytes, len);
	if (s->kind->selective && soak_chance(2))
		rc = fi_sendmsg(s->ep, &msg, FI_INJECT | (data ? FI_REMOTE_CQ_DATA : 0));
	else if (data)
		rc = fi_injectdata(s->ep, bytes, len, word, dest);
	else
		rc = fi_inject(s->ep, bytes, len, dest);
	memset(bytes, 0xdd, sizeof(bytes));
	return rc;
}

static ssize_t post(struct slot *s, struct send *t, size_t len, bool data, bool plain)
{
	uint64_t word = word_of(s, t->dest), flags = data ? FI_REMOTE_CQ_DATA : 0;
	struct iovec iov[3] = {
		{t->bytes, len / 2}, {t->bytes, 0}, {t->bytes + len / 2, len - len / 2}};
	struct iovec all = {t->bytes, len};
	bool pieces = soak_chance(4);
	struct fi_msg msg = {.msg_iov = pieces ? iov : &all,
			     .iov_count = pieces ? 3 : 1,
			     .addr = t->dest,
			     .context = t,
			     .data = word};

	if (s->kind->selective || (!plain && soak_chance(3)))
		return fi_sendmsg(s->ep, &msg, flags | (plain ? FI_COMPLETION : some_flags(s)));
	if (data)
		return fi_senddata(s->ep, t->bytes, len, NULL, word, t->dest, t);
	if (pieces)
		return fi_sendv(s->ep, iov, NULL, 3, t->dest, t);
	return fi_send(s->ep, t->bytes, len, NULL, t->dest, t);
}

static struct send *free_send(struct slot *s)
{
	for (unsigned int i = 0; i < s->kind->nsends; i++)
		if (!s->send[i].busy)
			return &s->send[i];
	return NULL;
}

/* @return whether it was accepted */
static bool send_to(struct slot *s, unsigned int dest, bool plain)
{
	uint64_t word = word_of(s, dest);
	size_t len = message_len(word, kind_of(s, dest));
	bool data = len < WORD_LEN || soak_chance(3);
	struct send *t = free_send(s);
	ssize_t rc;

	if (!t)
		return false;
	if (!plain && len <= INJECT_MAX && soak_chance(3)) {
		rc = inject(s, dest, len, data);
	} else {
		t->dest = dest;
		message_fill(word, t->bytes, len);
		rc = post(s, t, len, data, plain);
		t->busy = rc == 0;
	}
	if (rc == -FI_EAGAIN || (rc == -FI_ENOTCONN && s->kind->msg))
		return false;
	MUST(rc);
	s->dest[dest].next++;
	s->taken++;
	soak.sent++;
	return true;
}

/* The slot of large messages mostly talks to those of its kind. */
static unsigned int any_dest(const struct slot *s)
{
	if (s->kind->msg)
		return 0;
	return s->n == 0 && soak_chance(2) ? RDM_SLOTS * soak_below(HOSTS) : soak_below(DESTS);
}

void slot_talk(struct slot *s)
{
	if (s->state == OPEN)
		send_to(s, any_dest(s), false);
}

void slot_greet(struct slot *s)
{
	unsigned int n = s->kind->msg ? 1 : DESTS;

	for (unsigned int i = 0; i < n && s->state == OPEN; i++)
		if (!s->dest[i].greeted)
			s->dest[i].greeted = send_to(s, i, true);
}

bool slot_drained(struct slot *s)
{
	unsigned int n = s->kind->msg ? 1 : DESTS;

	if (s->state != OPEN)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (!s->dest[i].greeted)
			return false;
	return fi_cntr_read(s->txcntr) + fi_cntr_readerr(s->txcntr) == s->taken;
}

/* ---- entries ---- */

struct entry {
	struct fi_cq_data_entry ok;
	int err; /* positive errno, or 0 */
	uint64_t olen;
};

static bool read_entry(struct fid_cq *cq, struct entry *e)
{
	struct fi_cq_err_entry err = {0};
	ssize_t rc = fi_cq_read(cq, &e->ok, 1);

	e->err = 0;
	e->olen = 0;
	if (rc == -FI_EAGAIN)
		return false;
	soak.moved++;
	if (rc == 1)
		return true;
	if (rc != -FI_EAVAIL || fi_cq_readerr(cq, &err, 0) != 1)
		soak_fail("reading a queue: %zd", rc);
	e->ok = (struct fi_cq_data_entry){err.op_context, err.flags, err.len, err.buf, err.data};
	e->err = err.err;
	e->olen = err.olen;
	return true;
}

/* What becomes of a transfer when its peer is killed or closes. */
static bool is_end(int err)
{
	return err == FI_ETIMEDOUT || err == FI_ECONNRESET || err == FI_EHOSTUNREACH ||
	       err == FI_ECANCELED || err == FI_ECONNREFUSED || err == FI_ECONNABORTED;
}

static void send_ended(struct slot *s, const struct entry *e)
{
	struct send *t = e->ok.op_context;

	if (e->err && !is_end(e->err))
		soak_fail("slot %u: a send failed: %s", s->n, fi_strerror(e->err));
	soak.failed += e->err != 0;
	if (!t || (void *)t == &injected) {
		if (!e->err)
			soak_fail("slot %u: an entry that was not asked for", s->n);
		s->lost++;
		return;
	}
	if (!t->busy)
		soak_fail("slot %u: a send ended twice", s->n);
	t->busy = false;
	s->dest[t->dest].failed += e->err != 0;
}

/* The record of a sender's life; a new one takes the place of the oldest. */
static struct from *from_of(struct slot *s, uint32_t life, uint32_t seq)
{
	struct from *oldest = &s->from[0];

	for (unsigned int i = 0; i < FROMS; i++) {
		if (s->from[i].life == life)
			return &s->from[i];
		if (s->from[i].at < oldest->at)
			oldest = &s->from[i];
	}
	*oldest = (struct from){.life = life, .low = seq, .high = seq};
	return oldest;
}

static bool seen(struct from *f, uint32_t seq)
{
	uint64_t *word = &f->seen[seq % FROM_WINDOW / 64], bit = 1ull << seq % 64;
	bool was = *word & bit;

	*word |= bit;
	return was;
}

static void unseen(struct from *f, uint32_t seq)
{
	f->seen[seq % FROM_WINDOW / 64] &= ~(1ull << seq % 64);
}

/* Once, and in its turn? */
static void take_turn(struct slot *s, struct from *f, uint32_t seq, uint64_t post)
{
	if (seq < f->high ? post > f->post : post < f->post)
		soak_fail(
			"slot %u, from life %#x: message %u (%zu bytes) took receive %llu, %u (%zu "
			"bytes) took %llu",
			s->n, f->life, seq, message_len(message_word(f->life, seq), s->kind),
			(unsigned long long)post, f->high - 1,
			message_len(message_word(f->life, f->high - 1), s->kind),
			(unsigned long long)f->post);
	while (f->high <= seq) {
		unseen(f, f->high++);
		f->post = post;
	}
	if (f->high - seq > FROM_WINDOW || seen(f, seq))
		soak_fail("slot %u, from life %#x: message %u again, after %u", s->n, f->life, seq,
			  f->high - 1);
	f->low = seq < f->low ? seq : f->low;
	f->count++;
	f->at = ++soak.got;
}

/* Which message is it? @return its word */
static uint64_t arrived(struct slot *s, const struct entry *e, const uint8_t *bytes, uint64_t post)
{
	bool has_data = e->ok.flags & FI_REMOTE_CQ_DATA;
	uint64_t word = e->ok.data;
	struct from *f;

	if (!has_data && e->ok.len < WORD_LEN)
		soak_fail("slot %u: %zu bytes and no data", s->n, e->ok.len);
	if (!has_data)
		memcpy(&word, bytes, WORD_LEN);
	f = from_of(s, (uint32_t)(word >> 32), s->kind->msg ? 0 : (uint32_t)word);
	if (s->mate && f->life != s->mate)
		soak_fail("slot %u: a message of life %#x, connected to %#x", s->n, f->life,
			  s->mate);
	take_turn(s, f, (uint32_t)word, post);
	return word;
}

static void check(struct slot *s, const struct buf *b, const struct entry *e, uint64_t at)
{
	const uint8_t *bytes = b->bytes + at;
	uint64_t word = arrived(s, e, bytes, b->post);
	size_t len = message_len(word, s->kind), room = b->q->kind->cap - at,
	       fits = len < room ? len : room;

	if (e->ok.len != fits || e->olen != len - fits || (e->err == FI_ETRUNC) != (fits < len))
		soak_fail("slot %u, message %#llx of %zu bytes into %zu: %zu and %llu more, error "
			  "%d",
			  s->n, (unsigned long long)word, len, room, e->ok.len,
			  (unsigned long long)e->olen, e->err);
	if (!message_same(word, bytes, fits))
		soak_fail("slot %u, message %#llx of %zu bytes: bytes altered", s->n,
			  (unsigned long long)word, len);
	soak.bytes += fits;
	soak.cut += e->err != 0;
}

static void recv_ended(struct slot *s, const struct entry *e)
{
	struct buf *b = e->ok.op_context;
	struct rxq *q = b->q;
	bool multi = q->kind->multi;
	uint64_t at = 0;

	if (!b->posted)
		soak_fail("slot %u: a receive ended twice", s->n);
	if (!e->err || e->err == FI_ETRUNC) {
		if (multi)
			at = (uint64_t)((uint8_t *)e->ok.buf - b->bytes);
		if (at > q->kind->cap)
			soak_fail("slot %u: outside of a buffer", s->n);
		check(s, b, e, at);
	} else if (!is_end(e->err)) {
		soak_fail("slot %u: a receive failed: %s", s->n, fi_strerror(e->err));
	}
	soak.cancelled += e->err == FI_ECANCELED;
	if (multi && !(e->ok.flags & FI_MULTI_RECV))
		return;
	b->posted = false;
	q->posted--;
}

void slot_read(struct slot *s)
{
	struct entry e;

	for (unsigned int i = 0; i < 64 && read_entry(s->txcq, &e); i++)
		send_ended(s, &e);
	for (unsigned int i = 0; (!s->ep || i < 64) && read_entry(s->rxcq, &e); i++)
		recv_ended(s, &e);
	if (s->ep)
		rxq_post(s->q);
}
