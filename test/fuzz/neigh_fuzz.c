/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Neighbours and groups in every state. The input is a list of steps: frames sent to neighbours,
 * paths that come and go, groups joined and left, time, and what the link says: ARP, neighbour
 * discovery, IGMP and MLD, near what is right or any bytes. An address is learnt only when it was
 * asked for or its owner asks for us; frames go where was learnt; answers, entries and buffers stay
 * within bounds.
 */
#include "pmd_glue/mcast_internal.h"

#include <rte_mempool.h>

#include "fuzz.h"
#include "input.h"
#include "pmd_glue/neigh.h"
#include "port.h"

#define PATHS 6 /* three of each family; the last of each is static */
#define MACS 4

static const uint8_t nobody[16];

static struct pmf_port *port;
static struct pmf_queue *q;
static pmf_ns_t now;
static struct pmf_path path[PATHS];
static bool open_[PATHS];
static int joined[4];

static void ip_of(unsigned int i, uint8_t ip[16])
{
	static const uint8_t v6[16] = {0xfd}, v4[16] = {[10] = 0xff, 0xff, 10, 99, 0};

	memcpy(ip, i & 1 ? v6 : v4, 16);
	ip[15] = (uint8_t)(2 + i / 2);
}

static void mac_of(unsigned int i, uint8_t mac[6])
{
	const uint8_t m[6] = {2, 0, 0, 0, 9, (uint8_t)(i % MACS)};

	memcpy(mac, m, 6);
}

static void make_static(unsigned int i)
{
	uint8_t n = (uint8_t)port->conf.nneigh++;

	ip_of(i, port->conf.neigh[n].ip.ip);
	mac_of(0, port->conf.neigh[n].mac);
}

static void start(void)
{
	if (!port) {
		port = fuzz_port();
		q = &port->queue[0];
		make_static(PATHS - 2);
		make_static(PATHS - 1);
	}
	pmf_neigh_close(port->neigh);
	pmf_mcast_close(port->mcast);
	port->neigh = pmf_neigh_open(port);
	port->mcast = pmf_mcast_open(port);
	FUZZ_CHECK(port->neigh && port->mcast);
	port->mcast->random = 1;
	port->announce = false;
	port->announce_due = PMF_NS_NEVER;
	now = PMF_NS_PER_S;
	memset(open_, 0, sizeof(open_));
	memset(joined, 0xff, sizeof(joined));
}

/* ---- what leaves ---- */

static bool is_known(const uint8_t mac[6])
{
	for (uint32_t i = 0; i < port->neigh->count; i++) {
		uint64_t v = port->neigh->e[i].mac;

		if (v && memcmp(&v, mac, 6) == 0)
			return true;
	}
	return false;
}

/* What found no room on the stage has left through the device, and comes back from it. */
static void drain_device(void)
{
	struct rte_mbuf *m[PMF_BURST];
	uint16_t n;

	while ((n = rte_eth_rx_burst(q->port_id, 0, m, PMF_BURST)) != 0)
		rte_pktmbuf_free_bulk(m, n);
}

static void take_frames(unsigned int most)
{
	FUZZ_CHECK(q->nstage <= most);
	while (q->nstage > 0) {
		struct rte_mbuf *m = q->stage[--q->nstage];
		const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);

		FUZZ_CHECK(m->nb_segs == 1 && m->pkt_len == m->data_len && m->data_len >= 42);
		FUZZ_CHECK(memcmp(b + 6, port->mac, 6) == 0);
		if (b[12] == 0x08 && b[13] == 0 && b[23] == 17)
			FUZZ_CHECK(is_known(b));
		if (b[12] == 0x86 && b[20] == 17)
			FUZZ_CHECK(is_known(b));
		rte_pktmbuf_free(m);
	}
	drain_device();
}

static void check_table(void)
{
	const struct pmf_neigh_table *t = port->neigh;
	uint32_t npend = 0, used = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct pmf_neigh *e = &t->e[i];
		uint8_t mac[6];
		uint64_t v = 0;

		npend += e->npend;
		used += e->users != 0;
		FUZZ_CHECK(e->npend <= PMF_NEIGH_PEND && (!e->gen || !e->npend));
		FUZZ_CHECK(e->state != PMF_NEIGH_REACHABLE || e->gen);
		mac_of(0, mac);
		memcpy(&v, mac, 6);
		FUZZ_CHECK(e->state != PMF_NEIGH_STATIC || e->mac == v);
	}
	FUZZ_CHECK(npend == t->npend && npend <= PMF_NEIGH_PEND_ALL);
	FUZZ_CHECK(used == t->nused && t->nunused <= PMF_NEIGH_UNUSED);
}

/* ---- what we do ---- */

static void send_to(struct pmf_path *p)
{
	struct rte_mbuf *m = pmf_frame_alloc(q);

	FUZZ_CHECK(m != NULL);
	pmf_frame_send(q, p, m, 1, false, now);
}

static void open_or_send(unsigned int i, bool close)
{
	struct pmf_addr dst = {.port = 7};

	if (open_[i] && close) {
		pmf_path_fini(&path[i], q);
		open_[i] = false;
		return;
	}
	ip_of(i, dst.ip);
	if (!open_[i])
		FUZZ_CHECK(pmf_path_init(&path[i], port, &dst, 7) == 0);
	open_[i] = true;
	send_to(&path[i]);
}

static void answer_strangers(uint16_t from, unsigned int n)
{
	struct pmf_addr dst = {.ip = {0xfd, [12] = 1}, .port = 7};

	for (unsigned int i = 0; i < n; i++) {
		struct pmf_path p;

		dst.ip[14] = (uint8_t)((from + i) >> 8);
		dst.ip[15] = (uint8_t)(from + i);
		FUZZ_CHECK(pmf_path_init(&p, port, &dst, 7) == 0);
		send_to(&p);
		pmf_path_fini(&p, q);
		take_frames(1 + PMF_NEIGH_PEND);
	}
}

static void join_or_leave(unsigned int i)
{
	static const uint8_t group[4][16] = {{[10] = 0xff, 0xff, 239, 1, 2, 3},
					     {[10] = 0xff, 0xff, 224, 0, 0, 1},
					     {0xff, 5, [13] = 1, [15] = 3},
					     {0xff, 2, [15] = 1}};

	if (joined[i] < 0) {
		joined[i] = pmf_mcast_join(q, group[i], now);
		FUZZ_CHECK(joined[i] >= 0);
	} else {
		pmf_mcast_leave(q, (uint16_t)joined[i], now);
		joined[i] = -1;
	}
}

/* ---- what the link says ---- */

/*
 * The entry's address may change if it was asked for, or if its owner asks for us while nothing is
 * known of it.
 * @param ip  who speaks; NULL: anybody
 */
static void receive(uint8_t *b, size_t len, const uint8_t ip[16])
{
	static struct pmf_neigh before[64];
	const struct pmf_neigh_table *t = port->neigh;
	uint32_t n = PMF_MIN(t->count, PMF_ARRAY_SIZE(before));
	struct rte_mbuf *m;
	struct pmf_frame f;

	memcpy(before, t->e, n * sizeof(before[0]));
	if (b[13] != 0x06)
		fuzz_put_right_sums(b, PMF_MAX(len, (size_t)64));
	m = fuzz_frame(port, b, len);
	if (pmf_frame_parse(q, m, &f, now))
		rte_pktmbuf_free(m);
	for (uint32_t i = 0; i < n; i++) {
		const struct pmf_neigh *e = &t->e[i];

		if (e->mac == before[i].mac && (e->gen != 0) == (before[i].gen != 0))
			continue;
		FUZZ_CHECK(!ip || memcmp(ip, e->ip, 16) == 0);
		FUZZ_CHECK(before[i].state == PMF_NEIGH_IDLE ||
			   before[i].state == PMF_NEIGH_INCOMPLETE ||
			   before[i].state == PMF_NEIGH_PROBE);
	}
	/* An answer, a request of ours, and what waited. */
	take_frames(2 + PMF_NEIGH_PEND);
}

static size_t ether(uint8_t *b, uint8_t mac, uint16_t etype)
{
	memset(b, 0xff, 6);
	mac_of(mac, b + 6);
	b[12] = (uint8_t)(etype >> 8);
	b[13] = (uint8_t)etype;
	return 14;
}

static void arp(struct input *in)
{
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0};
	uint8_t b[128] = {0}, *a = b + ether(b, byte(in), 0x0806), odd = byte(in), ip[16];

	memcpy(a, head, sizeof(head));
	a[7] = byte(in) % 4;
	mac_of(byte(in), a + 8);
	ip_of(byte(in) % PATHS & ~1u, ip);
	memcpy(a + 14, ip + 12, 4);
	if (odd & 1)
		memcpy(a + 18, port->mac, 6);
	memcpy(a + 24, port->conf.v4.addr.ip + 12, 4);
	if (odd & 2)
		a[27] = byte(in);
	if (odd & 4)
		a[odd >> 3] ^= byte(in);
	memcpy(ip + 12, a + 14, 4);
	receive(b, (odd & 0xf8) == 0xf8 ? byte(in) % 60 : 60, ip);
}

static size_t ipv6(uint8_t *ip, const uint8_t *src, const uint8_t *dst, uint8_t proto, uint8_t hops,
		   size_t len)
{
	ip[0] = 0x60;
	ip[4] = (uint8_t)(len >> 8);
	ip[5] = (uint8_t)len;
	ip[6] = proto;
	ip[7] = hops;
	memcpy(ip + 8, src, 16);
	memcpy(ip + 24, dst, 16);
	return 40;
}

static void nd(struct input *in)
{
	uint8_t b[256] = {0}, *ip = b + ether(b, byte(in), 0x86dd), *icmp = ip + 40, odd = byte(in);
	uint8_t peer[16], kind = byte(in), len = 32;
	bool solicits = kind & 1;

	ip_of(byte(in) % PATHS | 1, peer);
	if (odd & 8)
		len = (uint8_t)(24 + byte(in) % 100);
	icmp[0] = solicits ? 135 : 136;
	icmp[4] = kind & 0xe0;
	memcpy(icmp + 8, solicits ? port->conf.v6.addr.ip : peer, 16);
	icmp[24] = solicits ? 1 : 2;
	icmp[25] = 1;
	mac_of(byte(in), icmp + 26);
	if (odd & 8)
		bytes_of(in, icmp + 24, len - 24u);
	if (odd & 4)
		icmp[odd >> 3 & 31] ^= byte(in);
	ipv6(ip, odd & 1 ? nobody : peer, port->conf.v6.addr.ip, 58, odd & 2 ? byte(in) : 255, len);
	receive(b, 54u + len, icmp[0] == 135 ? ip + 8 : icmp + 8);
}

static void query4(struct input *in)
{
	static const uint8_t alert[4] = {0x94, 4, 0, 0};
	uint8_t b[256] = {0}, *ip = b + ether(b, byte(in), 0x0800), odd = byte(in), len = 8;

	if (odd & 1)
		len = (uint8_t)(12 + 4 * (byte(in) % 16));
	ip[0] = 0x46;
	ip[3] = (uint8_t)(24 + len);
	ip[8] = 1;
	ip[9] = 2;
	memcpy(ip + 12, "\x0a\x63\x00\x63", 4);
	memcpy(ip + 16, odd & 2 ? "\xef\x01\x02\x03" : "\xe0\x00\x00\x01", 4);
	memcpy(ip + 20, alert, sizeof(alert));
	ip[24] = 0x11;
	ip[25] = byte(in);
	if (odd & 2)
		memcpy(ip + 28, ip + 16, 4);
	if (len > 8) {
		ip[32] = byte(in);
		ip[35] = odd & 4 ? byte(in) : (uint8_t)((len - 12) / 4);
		bytes_of(in, ip + 36, len - 12u);
	}
	if (odd & 8)
		ip[8 + (odd >> 4)] ^= byte(in);
	receive(b, 38u + len, nobody);
}

static void query6(struct input *in)
{
	static const uint8_t hop[8] = {58, 0, 5, 2, 0, 0, 1, 0},
			     group[16] = {0xff, 5, [13] = 1, [15] = 3};
	static const uint8_t router[16] = {0xfe, 0x80, [15] = 0x99}, all[16] = {0xff, 2, [15] = 1};
	uint8_t b[400] = {0}, *ip = b + ether(b, byte(in), 0x86dd), *m = ip + 48, odd = byte(in);
	uint16_t len = 24;

	if (odd & 1)
		len = (uint16_t)(28 + 16 * (byte(in) % 12));
	ipv6(ip, router, odd & 2 ? group : all, 0, 1, len + 8u);
	memcpy(ip + 40, hop, sizeof(hop));
	m[0] = 130;
	m[4] = byte(in);
	m[5] = byte(in);
	if (odd & 2)
		memcpy(m + 8, group, 16);
	if (len > 24) {
		m[24] = byte(in);
		m[27] = odd & 4 ? byte(in) : (uint8_t)((len - 28) / 16);
		bytes_of(in, m + 28, len - 28u);
	}
	if (odd & 8)
		ip[4 + (odd >> 4) * 3] ^= byte(in);
	receive(b, 62u + len, nobody);
}

static void raw(struct input *in)
{
	uint8_t b[256] = {0};
	size_t at = ether(b, byte(in), byte(in) & 1 ? 0x0806 : 0x86dd), len = byte(in) % 200;

	len = at + bytes_of(in, b + at, len);
	/* (UDP is another target's.) */
	if (b[12] == 0x86 && b[20] == 17)
		return;
	receive(b, len, NULL);
}

static void step(struct input *in)
{
	uint8_t what = byte(in);

	switch (what % 12) {
	case 0:
	case 1:
		open_or_send(byte(in) % PATHS, what & 0x80);
		break;
	case 2:
	case 3:
		arp(in);
		break;
	case 4:
	case 5:
		nd(in);
		break;
	case 6:
		query4(in);
		break;
	case 7:
		query6(in);
		break;
	case 8:
		join_or_leave(what >> 4 & 3);
		break;
	case 9:
		answer_strangers(word(in), what & 0x80 ? 40 : 1);
		break;
	case 10:
		raw(in);
		break;
	default:
		now += (pmf_ns_t)word(in) << (what >> 4 & 15) << 4;
		if (what & 8)
			pmf_neigh_kick(q, now);
		take_frames(PMF_TX_STAGE);
		pmf_neigh_tick(q, now);
		take_frames(PMF_TX_STAGE);
		pmf_mcast_tick(q, now);
	}
	take_frames(PMF_TX_STAGE);
	check_table();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	start();
	while (in.left > 0)
		step(&in);
	for (unsigned int i = 0; i < PATHS; i++)
		if (open_[i])
			pmf_path_fini(&path[i], q);
	/* What waits for nobody ends by itself. */
	for (unsigned int i = 0; i < 8; i++) {
		pmf_neigh_tick(q, now += PMF_NS_PER_S);
		take_frames(PMF_TX_STAGE);
	}
	check_table();
	FUZZ_CHECK(rte_mempool_in_use_count(q->tx_pool) == q->nstash);
	FUZZ_CHECK(rte_mempool_in_use_count(port->rx_pool) == 0);
	FUZZ_CHECK(port->neigh->npend == 0 && port->neigh->nused == port->conf.nneigh);
	return 0;
}
