/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What a wire that misbehaves does to mbufs. Each is owned by who applies it: a queue's engine, or
 * the loop of pmf-wire.
 */
#include "pmd_glue/fault.h"

#include <stdlib.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "pmf_fault_text.h"

enum {
	BEHIND_MAX = 256,
	OUT_MAX = 1024, /* a power of two */
};

/* When nothing follows that a held frame could fall behind, it passes after this time. */
static const pmf_ns_t hold_max = PMF_NS_PER_MS;

struct held {
	struct rte_mbuf *m;
	uint64_t after; /* passes when so many frames have passed */
	pmf_ns_t until;
};

struct timed {
	struct rte_mbuf *m;
	pmf_ns_t at;
	uint64_t order; /* of those of the same time */
};

struct pmf_faults {
	struct pmf_fault fault;
	struct pmf_fault_stats stats;
	struct rte_mempool *pool;
	uint64_t passed; /* frames put on `out`, ever */
	uint64_t taken;	 /* frames taken from it */
	uint64_t order;
	uint32_t nbehind, ntimed, room;
	struct held behind[BEHIND_MAX]; /* wait for others to overtake them */
	struct rte_mbuf *out[OUT_MAX];
	struct timed timed[]; /* wait for their time: a heap, the first to pass on top */
};

struct pmf_faults *pmf_faults_open(const struct pmf_fault *fault, struct rte_mempool *pool,
				   uint32_t room)
{
	struct pmf_faults *f = calloc(1, sizeof(*f) + room * sizeof(f->timed[0]));

	if (f) {
		f->fault = *fault;
		f->pool = pool;
		f->room = room;
	}
	return f;
}

void pmf_faults_change(struct pmf_faults *f, const struct pmf_fault *fault)
{
	f->fault = *fault;
}

void pmf_faults_close(struct pmf_faults *f)
{
	if (!f)
		return;
	while (f->nbehind > 0)
		rte_pktmbuf_free(f->behind[--f->nbehind].m);
	while (f->ntimed > 0)
		rte_pktmbuf_free(f->timed[--f->ntimed].m);
	for (; f->taken != f->passed; f->taken++)
		rte_pktmbuf_free(f->out[f->taken % OUT_MAX]);
	free(f);
}

const struct pmf_fault_stats *pmf_faults_stats(const struct pmf_faults *f)
{
	return &f->stats;
}

uint32_t pmf_faults_held(const struct pmf_faults *f)
{
	return f->nbehind + f->ntimed + (uint32_t)(f->passed - f->taken);
}

/* Bytes of the IP header in a frame of one segment. @return NULL: none, or cut */
static uint8_t *ip_header(struct rte_mbuf *m, uint16_t *left)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t at = RTE_ETHER_HDR_LEN;

	if (m->data_len > at + 4 && p[12] == 0x81 && p[13] == 0)
		at += sizeof(struct rte_vlan_hdr);
	if (m->data_len < at + sizeof(struct rte_ipv4_hdr))
		return NULL;
	*left = (uint16_t)(m->data_len - at);
	return p + at;
}

/* The type of our packet in the frame, 0 if it is none. */
static unsigned int packet_type(struct rte_mbuf *m)
{
	uint16_t left, at;
	const uint8_t *ip = ip_header(m, &left);

	if (!ip)
		return 0;
	if (ip[0] >> 4 == 4 && ip[9] == IPPROTO_UDP)
		at = (uint16_t)((ip[0] & 15) * 4);
	else if (ip[0] >> 4 == 6 && ip[6] == IPPROTO_UDP)
		at = sizeof(struct rte_ipv6_hdr);
	else
		return 0;
	at += 8; /* UDP's; then version, header length, type */
	return left > at + 2 && ip[at + 2] < PMF_ARRAY_SIZE(pmf_fault_kind) ? ip[at + 2] : 0;
}

/* A congestion mark, on a frame that may bear one (RFC 3168 §5). @return whether it does */
static bool mark(struct rte_mbuf *m)
{
	uint16_t left;
	uint8_t *ip = ip_header(m, &left);
	struct rte_ipv4_hdr *v4;

	if (!ip)
		return false;
	if (ip[0] >> 4 == 6 && (ip[1] & 0x30) != 0) {
		ip[1] |= 0x30;
		return true;
	}
	v4 = (struct rte_ipv4_hdr *)ip;
	if (ip[0] >> 4 != 4 || (ip[1] & 3) == 0)
		return false;
	ip[1] |= 3;
	v4->hdr_checksum = 0;
	v4->hdr_checksum = rte_ipv4_cksum(v4);
	return true;
}

/* Nobody vouches for what has been altered: sums are looked at again. */
static void alter(struct rte_mbuf *m, const struct pmf_fault_verdict *v)
{
	if (v->flip)
		rte_pktmbuf_mtod(m, uint8_t *)[v->where] ^= v->flip;
	m->data_len = v->len;
	m->pkt_len = v->len;
	m->ol_flags &= ~(uint64_t)(RTE_MBUF_F_RX_L4_CKSUM_MASK | RTE_MBUF_F_RX_IP_CKSUM_MASK);
}

static void lose(struct rte_mbuf *m, uint64_t *why)
{
	(*why)++;
	rte_pktmbuf_free(m);
}

static void out_put(struct pmf_faults *f, struct rte_mbuf *m)
{
	if (f->passed - f->taken == OUT_MAX)
		lose(m, &f->stats.fault_crowded);
	else
		f->out[f->passed++ % OUT_MAX] = m;
}

static bool before(const struct timed *a, const struct timed *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void timed_push(struct pmf_faults *f, struct rte_mbuf *m, pmf_ns_t at)
{
	const struct timed t = {m, at, f->order++};
	uint32_t i = f->ntimed++;

	for (; i > 0 && before(&t, &f->timed[(i - 1) / 2]); i = (i - 1) / 2)
		f->timed[i] = f->timed[(i - 1) / 2];
	f->timed[i] = t;
}

static struct rte_mbuf *timed_pop(struct pmf_faults *f)
{
	struct rte_mbuf *first = f->timed[0].m;
	const struct timed t = f->timed[--f->ntimed];
	uint32_t i = 0, c;

	while ((c = 2 * i + 1) < f->ntimed) {
		if (c + 1 < f->ntimed && before(&f->timed[c + 1], &f->timed[c]))
			c++;
		if (!before(&f->timed[c], &t))
			break;
		f->timed[i] = f->timed[c];
		i = c;
	}
	f->timed[i] = t;
	return first;
}

/* Passing one may make the next one due, so from the start again. */
static void release(struct pmf_faults *f, pmf_ns_t now)
{
	uint32_t i = 0;

	while (f->ntimed > 0 && f->timed[0].at <= now)
		out_put(f, timed_pop(f));
	while (i < f->nbehind) {
		struct held *h = &f->behind[i];

		if (h->after > f->passed && h->until > now) {
			i++;
			continue;
		}
		out_put(f, h->m);
		f->behind[i] = f->behind[--f->nbehind];
		i = 0;
	}
}

/* At its time, after those of the same time. */
static void pass(struct pmf_faults *f, struct rte_mbuf *m, pmf_ns_t at, pmf_ns_t now)
{
	if (at <= now) {
		out_put(f, m);
	} else if (f->ntimed == f->room) {
		lose(m, &f->stats.fault_crowded);
	} else {
		f->stats.fault_delayed++;
		timed_push(f, m, at);
	}
}

static uint64_t *drop_count(struct pmf_faults *f, uint8_t drop)
{
	return drop == PMF_FAULT_CUT	? &f->stats.fault_cut
	       : drop == PMF_FAULT_FULL ? &f->stats.fault_full
					: &f->stats.fault_lost;
}

static void frame_apply(struct pmf_faults *f, struct rte_mbuf *m, pmf_ns_t now)
{
	struct pmf_fault_verdict v;

	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) {
		lose(m, &f->stats.fault_crowded);
		return;
	}
	v = pmf_fault_next(&f->fault, m->data_len, packet_type(m), now);
	if (v.drop != PMF_FAULT_PASSES) {
		lose(m, drop_count(f, v.drop));
		return;
	}
	if (v.mark && mark(m))
		f->stats.fault_marked++;
	f->stats.fault_corrupted += v.flip != 0;
	f->stats.fault_truncated += v.len != m->data_len;
	if (v.flip || v.len != m->data_len)
		alter(m, &v);
	if (v.dup) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, f->pool, 0, UINT32_MAX);

		if (copy) {
			f->stats.fault_dup++;
			pass(f, copy, v.at, now);
		}
	}
	if (v.behind && f->nbehind < BEHIND_MAX) {
		f->stats.fault_reordered++;
		f->behind[f->nbehind++] =
			(struct held){m, f->passed + v.behind, PMF_MAX(v.at, now + hold_max)};
		return;
	}
	pass(f, m, v.at, now);
}

uint16_t pmf_faults_apply(struct pmf_faults *f, struct rte_mbuf **m, uint16_t n, uint16_t max,
			  pmf_ns_t now)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		frame_apply(f, m[i], now);
		release(f, now);
	}
	release(f, now);
	for (i = 0; i < max && f->taken != f->passed; i++)
		m[i] = f->out[f->taken++ % OUT_MAX];
	return i;
}
