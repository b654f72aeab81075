/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "port.h"

#include "fuzz.h"
#include "pmd_glue/eal.h"

/* EAL frees nothing at exit. Read by the sanitizer's runtime where there is one. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

struct pmf_port *fuzz_port(void)
{
	const struct pmf_eal_conf eal = {
		.huge = PMF_HUGE_OFF, .memory_mb = 128, .extra = "--no-telemetry"};
	struct pmf_port_conf conf;
	struct pmf_port *port;
	char err[256] = "";

	if (pmf_eal_start(&eal, err, sizeof(err)) != 0 ||
	    pmf_port_conf_parse("net_ring0 10.99.0.1/24 fd00::1/64", &conf, err, sizeof(err)) !=
		    0 ||
	    pmf_port_open(&conf, &port, err, sizeof(err)) != 0) {
		fprintf(stderr, "%s\n", err);
		exit(2);
	}
	port->queue[0].hairpin = false;
	port->announce = false;
	return port;
}

uint32_t fuzz_sum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	return sum;
}

void fuzz_put_sum(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

void fuzz_put_right_sums(uint8_t *b, size_t len)
{
	bool v6 = b[12] == 0x86;
	uint8_t *ip = b + 14, *t = v6 ? ip + 40 : ip + (ip[0] & 15) * 4;
	uint8_t proto = v6 ? ip[6] : ip[9];
	ptrdiff_t tlen = v6 ? ip[4] << 8 | ip[5] : (ip[2] << 8 | ip[3]) - (t - ip);
	size_t at;
	uint32_t pseudo = 0;

	if (v6 && proto == 0) { /* hop-by-hop options */
		size_t hop = (t[1] + 1) * 8u;

		if (hop + 8 > (size_t)(b + len - t))
			return;
		proto = t[0];
		t += hop;
		tlen -= (ptrdiff_t)hop;
	}
	at = proto == 17 ? 6 : 2;
	if (tlen < 8 || tlen > b + len - t)
		return;
	if (!v6) {
		ip[10] = ip[11] = 0;
		fuzz_put_sum(ip + 10, fuzz_sum(ip, t - ip, 0));
	}
	if (v6)
		pseudo = fuzz_sum(ip + 8, 32, (uint32_t)tlen + proto);
	else if (proto == 17)
		pseudo = fuzz_sum(ip + 12, 8, (uint32_t)tlen + proto);
	t[at] = t[at + 1] = 0;
	fuzz_put_sum(t + at, fuzz_sum(t, (size_t)tlen, pseudo));
}

struct rte_mbuf *fuzz_frame(struct pmf_port *port, const uint8_t *bytes, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->rx_pool);
	char *b;

	FUZZ_CHECK(m != NULL);
	b = rte_pktmbuf_append(m, (uint16_t)len);
	FUZZ_CHECK(b != NULL);
	memcpy(b, bytes, len);
	return m;
}
