/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Frames built and summed by plain code of their own, so that the module is not tested by itself.
 */
#include "port_test.h"

#include <arpa/inet.h>

const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0x02};

static void put16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static unsigned int get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static uint32_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

struct pmf_addr addr_of(const char *ip, uint16_t udp_port)
{
	struct pmf_addr a;
	uint8_t b[16];

	if (inet_pton(AF_INET, ip, b) == 1) {
		pmf_addr_set_v4(&a, b, udp_port);
	} else {
		CU_ASSERT_FATAL(inet_pton(AF_INET6, ip, b) == 1);
		memcpy(a.ip, b, 16);
		a.port = udp_port;
	}
	return a;
}

static bool is_v6(const struct frame *f)
{
	return get16(f->b + 12) == 0x86dd;
}

/* Where the transport's header, its length, its checksum and its pseudo header's sum are. */
static uint8_t *transport(struct frame *f, unsigned int *len, unsigned int *at, uint32_t *pseudo)
{
	uint8_t *ip = f->b + 14;
	unsigned int proto;

	if (is_v6(f)) {
		proto = ip[6];
		*len = get16(ip + 4);
		*pseudo = sum16(ip + 8, 32, *len + proto);
		*at = proto == 17 ? 6 : 2;
		return ip + 40;
	}
	proto = ip[9];
	*len = get16(ip + 2) - (ip[0] & 15) * 4u;
	*pseudo = proto == 17 ? sum16(ip + 12, 8, *len + proto) : 0;
	*at = proto == 17 ? 6 : 2;
	return ip + (ip[0] & 15) * 4;
}

void frame_sums(struct frame *f)
{
	unsigned int len, at;
	uint32_t pseudo;
	uint8_t *ip = f->b + 14, *t = transport(f, &len, &at, &pseudo);
	uint16_t sum;

	if (!is_v6(f)) {
		put16(ip + 10, 0);
		put16(ip + 10, (uint16_t)~fold(sum16(ip, (ip[0] & 15) * 4u, 0)));
	}
	put16(t + at, 0);
	sum = (uint16_t)~fold(sum16(t, len, pseudo));
	put16(t + at, sum == 0 && at == 6 ? 0xffff : sum);
}

bool frame_sums_ok(const struct frame *f)
{
	struct frame copy = *f;
	unsigned int len, at;
	uint32_t pseudo;
	uint8_t *ip = copy.b + 14, *t = transport(&copy, &len, &at, &pseudo);

	if (t + len > copy.b + copy.len)
		return false;
	if (!is_v6(f) && fold(sum16(ip, (ip[0] & 15) * 4u, 0)) != 0xffff)
		return false;
	return fold(sum16(t, len, pseudo)) == 0xffff;
}

/* Ethernet and IP around @p len bytes of @p proto. @return where those lie */
static uint8_t *frame_ip(struct frame *f, const char *src, const char *dst, uint8_t proto,
			 uint16_t len)
{
	const struct pmf_addr s = addr_of(src, 0), d = addr_of(dst, 0);
	uint8_t *ip = f->b + 14;

	memset(f, 0, sizeof(*f));
	memcpy(f->b, port->mac, 6);
	memcpy(f->b + 6, peer_mac, 6);
	if (pmf_addr_is_v4(&s)) {
		put16(f->b + 12, 0x0800);
		ip[0] = 0x45;
		put16(ip + 2, 20u + len);
		ip[8] = 64;
		ip[9] = proto;
		memcpy(ip + 12, s.ip + 12, 4);
		memcpy(ip + 16, d.ip + 12, 4);
		f->len = (uint16_t)(34 + len);
		return ip + 20;
	}
	put16(f->b + 12, 0x86dd);
	ip[0] = 0x60;
	put16(ip + 4, len);
	ip[6] = proto;
	ip[7] = proto == 58 ? 255 : 64;
	memcpy(ip + 8, s.ip, 16);
	memcpy(ip + 24, d.ip, 16);
	f->len = (uint16_t)(54 + len);
	return ip + 40;
}

struct frame frame_udp(const char *src, const char *dst, uint16_t sport, uint16_t dport,
		       uint16_t len)
{
	struct frame f;
	uint8_t *udp = frame_ip(&f, src, dst, 17, (uint16_t)(len + 8));

	put16(udp, sport);
	put16(udp + 2, dport);
	put16(udp + 4, 8u + len);
	for (unsigned int i = 0; i < len; i++)
		udp[8 + i] = pattern(i);
	frame_sums(&f);
	return f;
}

struct frame frame_echo(const char *src, const char *dst, uint16_t len)
{
	const struct pmf_addr s = addr_of(src, 0);
	struct frame f;
	const bool v4 = pmf_addr_is_v4(&s);
	uint8_t *icmp = frame_ip(&f, src, dst, v4 ? 1 : 58, (uint16_t)(len + 8));

	icmp[0] = v4 ? 8 : 128;
	put16(icmp + 4, 0x1234);
	put16(icmp + 6, 7);
	for (unsigned int i = 0; i < len; i++)
		icmp[8 + i] = pattern(i);
	frame_sums(&f);
	return f;
}

struct frame frame_nd(uint8_t type, const char *src, const char *dst, const char *target,
		      const uint8_t *mac, uint8_t flags)
{
	const struct pmf_addr t = addr_of(target, 0);
	struct frame f;
	uint8_t *icmp = frame_ip(&f, src, dst, 58, mac ? 32 : 24);

	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + 8, t.ip, 16);
	if (mac) {
		icmp[24] = type == 135 ? 1 : 2;
		icmp[25] = 1;
		memcpy(icmp + 26, mac, 6);
	}
	if (addr_of(dst, 0).ip[0] == 0xff) {
		const uint8_t group[6] = {0x33, 0x33, 0xff, t.ip[13], t.ip[14], t.ip[15]};

		memcpy(f.b, group, 6);
	}
	frame_sums(&f);
	return f;
}

struct frame frame_arp(uint16_t op, const uint8_t *sha, const char *spa, const uint8_t *tha,
		       const char *tpa)
{
	static const uint8_t zero[6], broadcast[6] = {255, 255, 255, 255, 255, 255};
	struct frame f = {.len = 60};
	uint8_t *a = f.b + 14;

	memcpy(f.b, tha ? tha : broadcast, 6);
	memcpy(f.b + 6, sha, 6);
	put16(f.b + 12, 0x0806);
	put16(a, 1);
	put16(a + 2, 0x0800);
	a[4] = 6;
	a[5] = 4;
	put16(a + 6, op);
	memcpy(a + 8, sha, 6);
	memcpy(a + 14, addr_of(spa, 0).ip + 12, 4);
	memcpy(a + 18, tha ? tha : zero, 6);
	memcpy(a + 24, addr_of(tpa, 0).ip + 12, 4);
	return f;
}
