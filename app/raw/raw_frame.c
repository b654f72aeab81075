/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "raw_frame.h"

#include <string.h>

#include <rte_byteorder.h>

/* Writing and reading of frames. No state. */

static void put64(uint8_t *bytes, uint64_t v)
{
	v = rte_cpu_to_be_64(v);
	memcpy(bytes, &v, sizeof(v));
}

uint64_t raw_get64(const uint8_t *bytes)
{
	uint64_t v;

	memcpy(&v, bytes, sizeof(v));
	return rte_be_to_cpu_64(v);
}

void raw_frame_make(struct rte_mbuf *m, const struct raw_port *p, enum raw_kind kind,
		    uint64_t number, uint64_t ns, uint32_t size)
{
	struct raw_frame *f = rte_pktmbuf_mtod(m, struct raw_frame *);

	m->data_len = (uint16_t)size;
	m->pkt_len = size;
	f->ether.dst_addr = p->peer;
	f->ether.src_addr = p->own;
	f->ether.ether_type = RTE_BE16(RAW_ETHERTYPE);
	f->kind = (uint8_t)kind;
	f->zero = 0;
	put64(f->number, number);
	put64(f->ns, ns);
}

struct raw_frame *raw_frame_get(struct rte_mbuf *m)
{
	struct raw_frame *f = rte_pktmbuf_mtod(m, struct raw_frame *);

	if (m->data_len < sizeof(*f) || f->ether.ether_type != RTE_BE16(RAW_ETHERTYPE))
		return NULL;
	return f;
}
