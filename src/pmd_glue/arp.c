/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * ARP (RFC 826) for IPv4 over Ethernet: requests answered, asked and announced. Owner of queue 0.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/internal.h"
#include "pmd_glue/neigh.h"

/*
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * |        hardware 1             |     protocol 0x0800           |
 * |     6         |     4         | operation: 1 request, 2 reply |
 * |            sender's MAC address (6), its IP address (4)       |
 * |            target's MAC address (6), its IP address (4)       |
 */
struct arp {
	uint8_t hrd[2], pro[2], hln, pln, op[2];
	uint8_t sha[6], spa[4], tha[6], tpa[4];
};

static_assert(sizeof(struct arp) == 28, "RFC 826 for Ethernet and IPv4");

enum { OP_REQUEST = 1, OP_REPLY = 2 };

static void arp_send(struct pmf_queue *q, const uint8_t *dst, uint16_t op, const uint8_t *tha,
		     const uint8_t *tpa)
{
	const struct pmf_port *port = q->port;
	struct rte_mbuf *m;
	struct arp *a;
	uint8_t *body;

	m = pmf_ctrl_frame(q, dst, ETYPE_ARP, sizeof(*a), &body);
	if (!m)
		return;
	a = (struct arp *)body;
	pmf_put_be16(a->hrd, 1);
	pmf_put_be16(a->pro, ETYPE_IP4);
	a->hln = 6;
	a->pln = 4;
	pmf_put_be16(a->op, op);
	memcpy(a->sha, port->mac, 6);
	memcpy(a->spa, port->conf.v4.addr.ip + 12, 4);
	if (tha)
		memcpy(a->tha, tha, 6);
	memcpy(a->tpa, tpa, 4);
	q->stats.arp_tx++;
	pmf_stage_or_drop(q, m);
}

void pmf_arp_solicit(struct pmf_queue *q, const uint8_t *ip4, const uint8_t *mac)
{
	arp_send(q, mac, OP_REQUEST, NULL, ip4);
}

void pmf_arp_announce(struct pmf_queue *q)
{
	if (q->port->conf.v4.set)
		arp_send(q, NULL, OP_REQUEST, NULL, q->port->conf.v4.addr.ip + 12);
}

static void arp_handle(struct pmf_queue *q, const struct arp *a, pmf_ns_t now)
{
	struct pmf_addr sender;
	const uint16_t op = pmf_get_be16(a->op);
	const bool to_us = pmf_owns_ip4(q->port, a->tpa);

	if (pmf_get_be16(a->hrd) != 1 || pmf_get_be16(a->pro) != ETYPE_IP4 || a->hln != 6 ||
	    a->pln != 4 || (a->sha[0] & 1) || !q->port->conf.v4.set)
		return;
	/* Our own address as the sender: an echo of ours, or a conflict that we do not defend. */
	if (pmf_owns_ip4(q->port, a->spa))
		return;
	pmf_addr_set_v4(&sender, a->spa, 0);
	if (op == OP_REPLY && to_us && memcmp(a->tha, q->port->mac, 6) == 0)
		pmf_neigh_answered(q, sender.ip, a->sha, now);
	else
		pmf_neigh_heard(q, sender.ip, a->sha, op == OP_REQUEST && to_us, now);
	if (op == OP_REQUEST && to_us)
		arp_send(q, a->sha, OP_REPLY, a->sha, a->spa);
}

void pmf_arp_rx(struct pmf_queue *q, struct rte_mbuf *m, uint16_t l3, pmf_ns_t now)
{
	struct arp a;

	q->stats.arp_rx++;
	if (m->data_len < l3 + sizeof(a)) {
		q->stats.rx_short++;
	} else {
		memcpy(&a, rte_pktmbuf_mtod_offset(m, const uint8_t *, l3), sizeof(a));
		arp_handle(q, &a, now);
	}
	rte_pktmbuf_free(m);
}
