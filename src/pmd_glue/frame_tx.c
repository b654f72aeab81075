/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * From a payload to the device: headers put before it, checksums, staging, one burst a flush, and
 * the periodic work. Owner of the engine.
 */
#include "pmd_glue/cksum.h"
#include "pmd_glue/mcast_internal.h"
#include "pmd_glue/neigh.h"
#include "pmd_glue/steer.h"

/*
 * Below this a sum in software costs less than what drivers do for an offloaded one (a descriptor
 * field, and on virtio's receiving side a walk through the headers).
 */
enum { OFFLOAD_MIN = 512 };

enum { ECT0_IP4 = 0x02, ECT0_IP6 = 0x20 };

struct rte_mbuf *pmf_frame_alloc(struct pmf_queue *q)
{
	if (pmf_unlikely(q->nstash == 0)) {
		if (pmf_likely(rte_pktmbuf_alloc_bulk(q->tx_pool, q->stash, PMF_BURST) == 0)) {
			q->nstash = PMF_BURST;
		} else {
			struct rte_mbuf *m = rte_pktmbuf_alloc(q->tx_pool);

			q->stats.tx_nobuf += m == NULL;
			return m;
		}
	}
	return q->stash[--q->nstash];
}

static void stage_drop_all(struct pmf_queue *q)
{
	q->stats.tx_link_down += q->nstage;
	rte_pktmbuf_free_bulk(q->stage, q->nstage);
	q->nstage = 0;
}

void pmf_queue_flush(struct pmf_queue *q)
{
	uint64_t bytes[PMF_TX_STAGE + 1];
	uint16_t sent = 0, i;

	if (q->nstage == 0)
		return;
	/* The mbufs are the driver's once taken: count before, subtract what stays. */
	bytes[0] = 0;
	for (i = 0; i < q->nstage; i++)
		bytes[i + 1] = bytes[i] + q->stage[i]->pkt_len;
	if (pmf_likely(q->port->started))
		sent = rte_eth_tx_burst(q->port_id, q->queue_id, q->stage, q->nstage);
	q->stats.tx_frames += sent;
	q->stats.tx_bytes += bytes[sent];
	if (pmf_likely(sent == q->nstage)) {
		q->nstage = 0;
		return;
	}
	q->nstage = (uint16_t)(q->nstage - sent);
	memmove(q->stage, q->stage + sent, q->nstage * sizeof(q->stage[0]));
	/* What waits for a link that is down would be old when it comes up. */
	if (atomic_load_explicit(&q->port->link_up, memory_order_relaxed))
		q->stats.tx_stalls++;
	else
		stage_drop_all(q);
}

static void stage(struct pmf_queue *q, struct rte_mbuf *m)
{
	if (pmf_unlikely(q->capture != NULL))
		pmf_capture_frames(q, &m, 1, true);
	q->stage[q->nstage++] = m;
}

void pmf_stage_or_drop(struct pmf_queue *q, struct rte_mbuf *m)
{
	if (pmf_queue_room(q) == 0)
		pmf_queue_flush(q);
	if (pmf_queue_room(q) == 0) {
		q->stats.tx_stalls++;
		rte_pktmbuf_free(m);
		return;
	}
	stage(q, m);
}

struct rte_mbuf *pmf_ctrl_frame(struct pmf_queue *q, const uint8_t *dst, uint16_t etype,
				uint16_t len, uint8_t **body)
{
	const struct pmf_port *port = q->port;
	struct rte_mbuf *m = pmf_frame_alloc(q);
	const uint16_t total = (uint16_t)PMF_MAX(ETH_MIN, pmf_l2_len(port) + len);
	uint8_t *p;

	if (!m)
		return NULL;
	p = rte_pktmbuf_mtod(m, uint8_t *);
	m->data_len = total;
	m->pkt_len = total;
	memset(p, 0, total);
	if (dst)
		memcpy(p, dst, 6);
	else
		memset(p, 0xff, 6);
	memcpy(p + 6, port->mac, 6);
	p += 12;
	if (port->vlan) {
		pmf_put_be16(p, ETYPE_VLAN);
		pmf_put_be16(p + 2, port->vlan);
		p += VLAN_LEN;
	}
	pmf_put_be16(p, etype);
	*body = p + 2;
	return m;
}

/* The path's MAC address is of another generation, or none. @return whether it is right now */
static bool path_refresh(struct pmf_queue *q, struct pmf_path *path)
{
	uint8_t mac[6];
	const uint32_t gen = pmf_neigh_mac(q->port->neigh, path->neigh, mac);

	path->neigh_gen = gen;
	if (gen == 0)
		return false;
	memcpy(path->hdr + PMF_L2L3L4_MAX - path->hdr_len, mac, 6);
	return true;
}

static bool path_fresh(struct pmf_queue *q, const struct pmf_path *path)
{
	struct pmf_neigh *e = &q->port->neigh->e[path->neigh];
	const uint32_t gen = atomic_load_explicit(&e->gen, memory_order_relaxed);

	return gen == path->neigh_gen && gen != 0;
}

/* Leave the sum to the device. @return false: it does not make it, or not of so little */
static inline bool cksum_offload(const struct pmf_queue *q, const struct pmf_path *path,
				 struct rte_mbuf *m, uint8_t *udp, uint16_t ulen, uint64_t pseudo)
{
	if (!q->port->tx_cksum_udp || ulen < OFFLOAD_MIN)
		return false;
	pmf_put16(udp + 6, pmf_cksum_fold(pseudo));
	m->ol_flags |=
		RTE_MBUF_F_TX_UDP_CKSUM | (path->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4);
	m->l2_len = pmf_l2_len(q->port);
	m->l3_len = path->v6 ? IP6_LEN : IP4_LEN;
	m->packet_type = RTE_PTYPE_L4_UDP; /* vhost's software sum asks for it */
	return true;
}

static inline uint64_t pseudo_sum(const struct pmf_path *path, uint16_t ulen)
{
	return (uint64_t)path->pseudo_sum + rte_cpu_to_be_16(ulen);
}

static void udp_cksum(struct pmf_queue *q, const struct pmf_path *path, struct rte_mbuf *m,
		      uint8_t *udp, uint16_t ulen)
{
	const uint64_t pseudo = pseudo_sum(path, ulen);

	if (!cksum_offload(q, path, m, udp, ulen, pseudo))
		pmf_put16(udp + 6, pmf_cksum_udp(pmf_cksum_add(udp, ulen, pseudo)));
}

/* Within the process the bytes are vouched for by memory: no checksum is made or checked. */
static void send_local(struct pmf_queue *q, struct rte_mbuf *m, uint8_t *udp)
{
	const int owner = pmf_steer_of(q->port, pmf_get_be16(udp + 2));
	struct pmf_queue *to = owner < 0 ? q : &q->port->queue[owner];

	pmf_put16(udp + 6, 0xffff);
	m->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	if (!pmf_loop_put(to, m)) {
		q->stats.loop_full++;
		rte_pktmbuf_free(m);
		return;
	}
	q->stats.loop_frames++;
}

/* The headers before the payload. @return that of UDP */
static inline uint8_t *put_headers(const struct pmf_path *path, struct rte_mbuf *m, uint16_t len,
				   bool ect)
{
	uint8_t *payload = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *udp = payload - UDP_LEN;
	const uint16_t ulen = (uint16_t)(len + UDP_LEN);

	/* Of constant size, so a few vector moves; what lies before the header is headroom. */
	memcpy(payload - PMF_L2L3L4_MAX, path->hdr, PMF_L2L3L4_MAX);
	m->data_off = (uint16_t)(m->data_off - path->hdr_len);
	m->data_len = (uint16_t)(path->hdr_len + len);
	m->pkt_len = m->data_len;
	pmf_put_be16(udp + 4, ulen);
	if (path->v6) {
		uint8_t *ip = udp - IP6_LEN;

		pmf_put_be16(ip + 4, ulen);
		ip[1] |= ect ? ECT0_IP6 : 0;
	} else {
		uint8_t *ip = udp - IP4_LEN;
		const uint16_t total = rte_cpu_to_be_16((uint16_t)(ulen + IP4_LEN));
		const uint8_t ecn = ect ? ECT0_IP4 : 0;

		pmf_put16(ip + 2, total);
		ip[1] |= ecn;
		pmf_put16(ip + 10, (uint16_t)~pmf_cksum_fold((uint64_t)path->ip_sum + total +
							     rte_cpu_to_be_16(ecn)));
	}
	return udp;
}

void pmf_frame_send(struct pmf_queue *q, struct pmf_path *path, struct rte_mbuf *m, uint16_t len,
		    bool ect, pmf_ns_t now)
{
	bool resolved = true;
	uint8_t *udp;

	if (pmf_unlikely(!path_fresh(q, path)) && !path->local)
		resolved = path_refresh(q, path);
	udp = put_headers(path, m, len, ect);
	if (path->local && !q->hairpin) {
		send_local(q, m, udp);
		return;
	}
	udp_cksum(q, path, m, udp, (uint16_t)(len + UDP_LEN));
	if (pmf_unlikely(!resolved))
		pmf_neigh_hold(q, path->neigh, m, now);
	else
		stage(q, m);
}

static void given_back(void *bytes, void *count)
{
	(void)bytes;
	--*(uint16_t *)count;
}

/* An mbuf of bytes that are somebody else's. @return NULL: none is free, counted */
static struct rte_mbuf *attach(struct pmf_queue *q, const void *bytes, uint16_t len,
			       uint16_t *attached)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->attach_pool);
	struct pmf_lent *lent;

	if (pmf_unlikely(!m)) {
		q->stats.tx_nobuf++;
		return NULL;
	}
	lent = rte_mbuf_to_priv(m);
	lent->shared.free_cb = given_back;
	lent->shared.fcb_opaque = attached;
	rte_mbuf_ext_refcnt_set(&lent->shared, 1);
	rte_pktmbuf_attach_extbuf(m, (void *)(uintptr_t)bytes, RTE_BAD_IOVA, len, &lent->shared);
	m->data_len = len;
	++*attached;
	return m;
}

/*
 * Asked for all at once, lines come in three quarters of the time that a sum or a copy takes which
 * meets them one by one.
 */
static inline void prefetch_bytes(const void *bytes, uint16_t len)
{
	for (uint32_t i = 0; i < len; i += PMF_CACHE_LINE)
		rte_prefetch0((const uint8_t *)bytes + i);
}

void pmf_frame_send_attached(struct pmf_queue *q, struct pmf_path *path, struct rte_mbuf *m,
			     uint16_t len, const void *bytes, uint16_t more, uint16_t *attached,
			     bool ect, pmf_ns_t now)
{
	const uint16_t all = (uint16_t)(len + more), ulen = (uint16_t)(all + UDP_LEN);
	struct rte_mbuf *tail = NULL;
	uint64_t pseudo;
	uint8_t *udp;

	prefetch_bytes(bytes, more);
	/* what waits for a neighbour may wait for long */
	if (path->local || path_fresh(q, path) || path_refresh(q, path))
		tail = attach(q, bytes, more, attached);
	if (pmf_unlikely(!tail)) {
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, len), bytes, more);
		pmf_frame_send(q, path, m, all, ect, now);
		return;
	}
	udp = put_headers(path, m, all, ect);
	m->data_len = (uint16_t)(m->data_len - more);
	m->nb_segs = 2;
	m->next = tail;
	pseudo = pseudo_sum(path, ulen);
	if (!cksum_offload(q, path, m, udp, ulen, pseudo)) {
		uint16_t sum = pmf_cksum_fold(pmf_cksum_add(bytes, more, 0));

		if (len & 1) /* its words begin in the middle of the datagram's (RFC 1071 §2) */
			sum = rte_bswap16(sum);
		sum = pmf_cksum_udp(pmf_cksum_add(udp, (size_t)UDP_LEN + len, pseudo) + sum);
		pmf_put16(udp + 6, sum);
	}
	q->stats.tx_attached++;
	stage(q, m);
}

void pmf_queue_detach(struct pmf_queue *q)
{
	for (uint16_t i = 0; i < q->nstage; i++)
		if (q->stage[i]->nb_segs > 1)
			/* its first mbuf has room for all of it */
			(void)rte_pktmbuf_linearize(q->stage[i]);
}

/* What is sent to a group of ours comes here too; without a buffer it does not, as if it were lost.
 */
static void send_copy(struct pmf_queue *q, const struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, q->tx_pool, 0, UINT32_MAX);

	if (!copy) {
		q->stats.tx_nobuf++;
		return;
	}
	copy->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	if (pmf_loop_put(q, copy)) {
		q->stats.loop_frames++;
		return;
	}
	q->stats.loop_full++;
	rte_pktmbuf_free(copy);
}

void pmf_frame_send_group(struct pmf_queue *q, const struct pmf_path *path, struct rte_mbuf *m,
			  uint16_t len, bool here)
{
	uint8_t *udp = put_headers(path, m, len, false);

	udp_cksum(q, path, m, udp, (uint16_t)(len + UDP_LEN));
	if (here && !q->hairpin)
		send_copy(q, m);
	stage(q, m);
}

/*
 * The addresses are announced at once when the link comes up, and again a little later, since links
 * lose their first frames (RFC 5227 has two announcements, too).
 */
static void announce(struct pmf_queue *q, pmf_ns_t now)
{
	static const pmf_ns_t again[] = {100 * PMF_NS_PER_MS, PMF_NS_PER_S};
	struct pmf_port *port = q->port;

	if (atomic_load_explicit(&port->announce, memory_order_relaxed) &&
	    atomic_exchange_explicit(&port->announce, false, memory_order_acquire)) {
		port->announced = 0;
		port->announce_due = now;
		pmf_neigh_kick(q, now);
		pmf_mcast_announce(q, now);
	}
	if (pmf_likely(now < port->announce_due))
		return;
	pmf_arp_announce(q);
	pmf_nd_announce(q);
	port->announce_due = port->announced < PMF_ARRAY_SIZE(again) ? now + again[port->announced]
								     : PMF_NS_NEVER;
	port->announced++;
}

void pmf_queue_tick(struct pmf_queue *q, pmf_ns_t now)
{
	if (q->queue_id == 0) {
		announce(q, now);
		pmf_neigh_tick(q, now);
		pmf_mcast_tick(q, now);
	}
	pmf_queue_flush(q);
	if (pmf_unlikely(q->capture != NULL))
		pmf_capture_flush(q);
}
