/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The wire, and the order of events. A frame leaves at the rate of its sender's port, waits in the
 * queue of the receiver's port, and arrives a delay later, unless a fault meets it first.
 */
#include "sim.h"

#include <stdarg.h>
#include <stdlib.h>

#define BACKLOG_NS (20 * PMF_NS_PER_US) /* what a port's own ring holds */
#define LATE_NS PMF_NS_PER_MS		/* a late frame waits so long for others to overtake it */

struct sim_frame *sim_frame_get(struct sim *s)
{
	struct sim_frame *f = s->free;

	if (f != NULL)
		s->free = f->next;
	else
		f = aligned_alloc(64, sizeof(*f));
	s->frames_out++;
	return f;
}

void sim_frame_put(struct sim *s, struct sim_frame *f)
{
	f->next = s->free;
	s->free = f;
	s->frames_out--;
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void heap_push(struct sim *s, pmf_ns_t at, struct sim_frame *f, struct sim_link *l)
{
	struct sim_event e = {at, s->seq++, f, l};
	size_t i = s->nheap++;

	if (s->nheap > s->cap) {
		s->cap = 2 * s->cap + 1024;
		s->heap = realloc(s->heap, s->cap * sizeof(s->heap[0]));
	}
	for (; i > 0 && before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct sim_event heap_pop(struct sim *s)
{
	struct sim_event first = s->heap[0];
	struct sim_event e = s->heap[--s->nheap];
	size_t i = 0, c;

	while ((c = 2 * i + 1) < s->nheap) {
		if (c + 1 < s->nheap && before(&s->heap[c + 1], &s->heap[c]))
			c++;
		if (!before(&s->heap[c], &e))
			break;
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = e;
	return first;
}

static pmf_ns_t wire_time(const struct sim *s, size_t len)
{
	return (pmf_ns_t)((double)(len + SIM_WIRE_OVERHEAD) * 8 / s->conf.gbps) + 1;
}

bool sim_net_room(const struct sim *s, const struct sim_node *n, pmf_ns_t *when)
{
	if (n->port_free <= s->now + BACKLOG_NS)
		return true;
	*when = n->port_free - BACKLOG_NS;
	return false;
}

/* Frames that have been overtaken often enough, or have waited long enough, come now. */
static void release_late(struct sim *s, struct sim_link *l, unsigned int overtaken, pmf_ns_t at)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < l->nbehind; i++) {
		struct sim_frame *f = l->behind[i].frame;

		l->behind[i].left -= overtaken;
		if (l->behind[i].left > 0 && f->at > at) {
			l->behind[kept++] = l->behind[i];
			continue;
		}
		f->at = at;
		heap_push(s, at, f, NULL);
	}
	l->nbehind = (uint8_t)kept;
}

/* @return whether the frame has a place in the queue before its receiver; sets when it arrives. */
static bool through_queue(struct sim *s, struct sim_frame *f)
{
	struct sim_node *src = &s->node[f->src], *dst = &s->node[f->dst];
	pmf_ns_t wire = wire_time(s, f->len), at;
	double waiting;

	src->port_free = PMF_MAX(src->port_free, s->now) + wire;
	at = src->port_free;
	if (dst->in_free > at) {
		waiting = (double)(dst->in_free - at) * s->conf.gbps / 8;
		if (waiting > (double)s->conf.queue) {
			s->dropped++;
			return false;
		}
		if (s->conf.ecn_mark != 0 && waiting > (double)s->conf.ecn_mark && f->ecn == 2) {
			f->ecn = 3;
			s->marked++;
		}
	}
	dst->in_free = PMF_MAX(dst->in_free, at - wire) + wire;
	f->at = PMF_MAX(dst->in_free, at);
	if (s->watch != NULL)
		s->watch(s, f, f->at - at, s->watch_arg);
	f->at += PMF_MAX(src->delay, dst->delay);
	if (s->conf.jitter != 0)
		f->at += sim_mix(s->conf.seed ^ s->seq) % s->conf.jitter;
	return true;
}

/* One line a frame, for the eye that looks for what went wrong. */
static void trace(struct sim *s, const struct sim_frame *f, const char *fate)
{
	static const char *const names[] = {"?",   "HELLO", "CHALLENGE", "OPEN", "DATA",
					    "ACK", "PROBE", "RESET",	 "MCAST"};
	struct pmf_hdr h;

	if (s->trace == NULL)
		return;
	if (pmf_wire_get(f->data, f->len, &h) != 0)
		memset(&h, 0, sizeof(h));
	fprintf(s->trace,
		"%.6f %u>%u %s%s%s psn %u tx %u ack %u/%u sack %u holds %u credit %u len %u %s\n",
		(double)s->now / 1e6, f->src, f->dst, names[h.type],
		h.flags & PMF_HF_RESYNC ? "+resync" : "", h.flags & PMF_HF_ECHO ? "+echo" : "",
		h.psn, h.txno, h.ack, h.ack_txno, h.nsack, h.holds, h.credit, f->len, fate);
}

static unsigned int frame_type(const struct sim_frame *f)
{
	return f->len > offsetof(struct pmf_wire_prefix, type)
		       ? f->data[offsetof(struct pmf_wire_prefix, type)]
		       : 0;
}

void sim_net_send(struct sim *s, struct sim_frame *f)
{
	struct sim_link *l = &s->link[f->src * s->conf.nodes + f->dst];
	struct pmf_fault_verdict v;
	pmf_ns_t at;

	s->carried++;
	s->carried_bytes += f->len;
	if (!through_queue(s, f) || (s->eat != NULL && s->eat(s, f, s->eat_arg))) {
		trace(s, f, "dropped");
		sim_frame_put(s, f);
		return;
	}
	/* Frames meet the faults when they arrive; +1, for 0 is no time. */
	v = pmf_fault_next(&l->fault, f->len, frame_type(f), f->at + 1);
	/* What is altered or cut does not get past the UDP checksum. */
	if (v.drop != PMF_FAULT_PASSES || v.flip != 0 || v.len != f->len) {
		s->lost++;
		trace(s, f, "lost");
		sim_frame_put(s, f);
		return;
	}
	at = v.at - 1;
	if (v.mark && f->ecn == 2) {
		f->ecn = 3;
		s->marked++;
	}
	trace(s, f, v.dup ? "twice" : v.behind ? "late" : "");
	if (v.dup) {
		struct sim_frame *copy = sim_frame_get(s);

		memcpy(copy, f, offsetof(struct sim_frame, data) + f->len);
		heap_push(s, at + 1, copy, NULL);
		s->doubled++;
	}
	release_late(s, l, 1, at + 1);
	if (v.behind != 0 && l->nbehind < PMF_ARRAY_SIZE(l->behind)) {
		f->at = at + LATE_NS;
		heap_push(s, f->at, NULL, l);
		l->behind[l->nbehind].frame = f;
		l->behind[l->nbehind++].left = v.behind;
		s->reordered++;
		return;
	}
	heap_push(s, at, f, NULL);
}

static void happen(struct sim *s, const struct sim_event *e)
{
	struct sim_frame *f = e->frame;
	pmf_ns_t until;
	struct sim_node *n;

	if (f == NULL) {
		release_late(s, e->link, 0, s->now);
		return;
	}
	n = &s->node[f->dst];
	if (n->alive && !n->stopped && (until = sim_node_stalled(n)) != 0)
		heap_push(s, until, f, NULL);
	else if (n->alive && !n->stopped)
		sim_node_rx(n, f);
	else
		sim_frame_put(s, f);
}

bool sim_step(struct sim *s, pmf_ns_t until)
{
	struct sim_node *first = NULL;
	pmf_ns_t wake = PMF_NS_NEVER, frame = s->nheap ? s->heap[0].at : PMF_NS_NEVER, at;

	for (unsigned int i = 0; i < s->conf.nodes; i++) {
		struct sim_node *n = &s->node[i];

		if (n->alive && !n->stopped && n->wake_at < wake) {
			wake = n->wake_at;
			first = n;
		}
	}
	at = PMF_MIN(wake, frame);
	if (at > until || at == PMF_NS_NEVER) {
		if (until != PMF_NS_NEVER)
			s->now = PMF_MAX(s->now, until);
		return false;
	}
	s->now = PMF_MAX(s->now, at);
	if (frame <= wake) {
		struct sim_event e = heap_pop(s);

		happen(s, &e);
	} else {
		at = sim_node_stalled(first);
		if (at != 0)
			first->wake_at = at;
		else
			sim_node_wake(first);
	}
	return true;
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failed)
		return;
	s->failed = true;
	if (s->quiet)
		return;
	fprintf(stderr, "at %.6f ms: ", (double)s->now / 1e6);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	sim_print_state(s, stderr);
}
