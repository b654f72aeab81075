/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * FI_PMF_FAULT on received frames: pmf_fault.h decides, mbufs are dropped, copied, altered or
 * held here. One a queue, owned by its engine.
 */
#include "pmf_fault_text.h"

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "pmd_glue/internal.h"

enum {
	BEHIND_MAX = 256,
	TIMED_MAX = 1024,
	OUT_MAX = 1024, /* a power of two */
};

/* When nothing follows that a held frame could fall behind, it passes after this time. */
static const pmf_ns_t hold_max = PMF_NS_PER_MS;

struct held {
	struct rte_mbuf *m;
	uint64_t after; /* passes when so many frames have passed */
	pmf_ns_t until;
};

struct pmf_faults {
	struct pmf_fault fault;
	uint64_t passed; /* frames put on `out`, ever */
	uint64_t taken;	 /* frames taken from it */
	uint32_t nbehind, ntimed;
	struct held behind[BEHIND_MAX]; /* wait for others to overtake them */
	struct held timed[TIMED_MAX];	/* wait for their time, the latest first */
	struct rte_mbuf *out[OUT_MAX];
};

struct pmf_faults *pmf_faults_open(struct pmf_port *port, uint16_t queue, char *err, size_t errlen)
{
	struct pmf_faults *f = calloc(1, sizeof(*f));
	char why[128];

	if (!f) {
		snprintf(err, errlen, "no memory for FI_PMF_FAULT");
		return NULL;
	}
	if (pmf_fault_parse(port->conf.fault, &f->fault, why, sizeof(why)) != 0) {
		snprintf(err, errlen, "FI_PMF_FAULT: %s", why);
		free(f);
		return NULL;
	}
	pmf_fault_reseed(&f->fault, f->fault.conf.seed + queue);
	return f;
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

static void lose(struct pmf_queue *q, struct rte_mbuf *m)
{
	q->stats.fault_lost++;
	rte_pktmbuf_free(m);
}

static void out_put(struct pmf_queue *q, struct pmf_faults *f, struct rte_mbuf *m)
{
	if (f->passed - f->taken == OUT_MAX)
		lose(q, m);
	else
		f->out[f->passed++ % OUT_MAX] = m;
}

/* Passing one may make the next one due, so from the start again. */
static void release(struct pmf_queue *q, struct pmf_faults *f, pmf_ns_t now)
{
	uint32_t i = 0;

	while (f->ntimed > 0 && f->timed[f->ntimed - 1].until <= now)
		out_put(q, f, f->timed[--f->ntimed].m);
	while (i < f->nbehind) {
		struct held *h = &f->behind[i];

		if (h->after > f->passed && h->until > now) {
			i++;
			continue;
		}
		out_put(q, f, h->m);
		f->behind[i] = f->behind[--f->nbehind];
		i = 0;
	}
}

/* At its time, after those of the same time. */
static void pass(struct pmf_queue *q, struct pmf_faults *f, struct rte_mbuf *m, pmf_ns_t at,
		 pmf_ns_t now)
{
	uint32_t i = 0;

	if (at <= now) {
		out_put(q, f, m);
		return;
	}
	if (f->ntimed == TIMED_MAX) {
		lose(q, m);
		return;
	}
	q->stats.fault_delayed++;
	while (i < f->ntimed && f->timed[i].until > at)
		i++;
	memmove(&f->timed[i + 1], &f->timed[i], (f->ntimed - i) * sizeof(f->timed[0]));
	f->timed[i] = (struct held){m, 0, at};
	f->ntimed++;
}

static void frame_apply(struct pmf_queue *q, struct pmf_faults *f, struct rte_mbuf *m, pmf_ns_t now)
{
	struct pmf_fault_verdict v;

	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) {
		lose(q, m);
		return;
	}
	v = pmf_fault_next(&f->fault, m->data_len, packet_type(m), now);
	if (v.drop != PMF_FAULT_PASSES) {
		lose(q, m);
		return;
	}
	if (v.mark && mark(m))
		q->stats.fault_marked++;
	if (v.flip || v.len != m->data_len) {
		q->stats.fault_altered++;
		alter(m, &v);
	}
	if (v.dup) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, q->port->rx_pool, 0, UINT32_MAX);

		if (copy) {
			q->stats.fault_dup++;
			pass(q, f, copy, v.at, now);
		}
	}
	if (v.behind && f->nbehind < BEHIND_MAX) {
		q->stats.fault_reordered++;
		f->behind[f->nbehind++] =
			(struct held){m, f->passed + v.behind, PMF_MAX(v.at, now + hold_max)};
		return;
	}
	pass(q, f, m, v.at, now);
}

uint16_t pmf_faults_apply(struct pmf_queue *q, struct rte_mbuf **m, uint16_t n, uint16_t max,
			  pmf_ns_t now)
{
	struct pmf_faults *f = q->faults;
	uint16_t i;

	for (i = 0; i < n; i++) {
		frame_apply(q, f, m[i], now);
		release(q, f, now);
	}
	release(q, f, now);
	for (i = 0; i < max && f->taken != f->passed; i++)
		m[i] = f->out[f->taken++ % OUT_MAX];
	return i;
}
