/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * FI_PMF_FAULT on received frames: pmf_fault.h decides, mbufs are dropped, copied or held here.
 * One a queue, owned by its engine.
 */
#include "pmf_fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "pmd_glue/internal.h"

enum {
	HELD_MAX = 256,
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
	uint32_t nheld;
	struct held held[HELD_MAX];
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
	pmf_fault_reseed(&f->fault, f->fault.seed + queue);
	return f;
}

void pmf_faults_close(struct pmf_faults *f)
{
	if (!f)
		return;
	while (f->nheld > 0)
		rte_pktmbuf_free(f->held[--f->nheld].m);
	for (; f->taken != f->passed; f->taken++)
		rte_pktmbuf_free(f->out[f->taken % OUT_MAX]);
	free(f);
}

static void out_put(struct pmf_queue *q, struct pmf_faults *f, struct rte_mbuf *m)
{
	if (f->passed - f->taken == OUT_MAX) {
		q->stats.fault_lost++;
		rte_pktmbuf_free(m);
		return;
	}
	f->out[f->passed++ % OUT_MAX] = m;
}

/* Passing one may make the next one due, so from the start again. */
static void held_release(struct pmf_queue *q, struct pmf_faults *f, pmf_ns_t now)
{
	uint32_t i = 0;

	while (i < f->nheld) {
		struct held *h = &f->held[i];

		if (h->after > f->passed && h->until > now) {
			i++;
			continue;
		}
		out_put(q, f, h->m);
		f->held[i] = f->held[--f->nheld];
		i = 0;
	}
}

static void frame_apply(struct pmf_queue *q, struct pmf_faults *f, struct rte_mbuf *m, pmf_ns_t now)
{
	const struct pmf_fault_verdict v = pmf_fault_next(&f->fault);

	if (v.drop) {
		q->stats.fault_lost++;
		rte_pktmbuf_free(m);
		return;
	}
	if (v.dup) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, q->port->rx_pool, 0, UINT32_MAX);

		if (copy) {
			q->stats.fault_dup++;
			out_put(q, f, copy);
		}
	}
	if (v.behind && f->nheld < HELD_MAX) {
		q->stats.fault_reordered++;
		f->held[f->nheld++] = (struct held){m, f->passed + v.behind, now + hold_max};
		return;
	}
	out_put(q, f, m);
	held_release(q, f, now);
}

uint16_t pmf_faults_apply(struct pmf_queue *q, struct rte_mbuf **m, uint16_t n, uint16_t max,
			  pmf_ns_t now)
{
	struct pmf_faults *f = q->faults;
	uint16_t i;

	for (i = 0; i < n; i++)
		frame_apply(q, f, m[i], now);
	held_release(q, f, now);
	for (i = 0; i < max && f->taken != f->passed; i++)
		m[i] = f->out[f->taken++ % OUT_MAX];
	return i;
}
