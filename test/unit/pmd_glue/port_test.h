/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A port over net_ring for tests, and frames built by hand for it. A frame put in by port_test_rx()
 * is parsed as if it had come from the wire; what the port answers stands on its stage, from which
 * port_test_tx() takes it. Time is the test's own.
 */
#ifndef PORT_TEST_H
#define PORT_TEST_H

#include "pmd_glue/frame.h"

#include "../unit.h"

#define TEST_DEV "net_ring0 10.99.0.1/24 fd00::1/64 gw=10.99.0.254 gw=fd00::fe"

extern struct pmf_port *port; /* of the test that runs */
extern struct pmf_queue *q;   /* its queue 0 */

extern const struct unit_test answers_tests[], frame_rx_tests[], frame_tx_tests[], neigh_tests[],
	port_tests[], link_tests[], mcast_tests[];
int link_tests_init(void);
int link_tests_fini(void);

/* The peer in all tests. */
extern const uint8_t peer_mac[6];

/** Open the port of @p conf; FI_PMF_FAULT's text or NULL. */
void port_test_open(const char *conf, const char *fault);

/** Close it; all of its mbufs must have come back. */
void port_test_close(void);

/** Address from text, with a UDP port. */
struct pmf_addr addr_of(const char *ip, uint16_t udp_port);

/* A frame as bytes. */
struct frame {
	uint16_t len;
	uint8_t b[2048];
};

/** Ethernet, IPv4 or IPv6 by @p src, UDP with @p len pattern bytes, all sums right. */
struct frame frame_udp(const char *src, const char *dst, uint16_t sport, uint16_t dport,
		       uint16_t len);
struct frame frame_arp(uint16_t op, const uint8_t *sha, const char *spa, const uint8_t *tha,
		       const char *tpa);
struct frame frame_echo(const char *src, const char *dst, uint16_t len);
/** Solicitation (135) or advertisement (136); @p mac NULL: without the option. */
struct frame frame_nd(uint8_t type, const char *src, const char *dst, const char *target,
		      const uint8_t *mac, uint8_t flags);

/** Write the sums of an IPv4 header and of the UDP or ICMP in it (or in IPv6) anew. */
void frame_sums(struct frame *f);
bool frame_sums_ok(const struct frame *f);

/** Copy into an mbuf of the port. */
struct rte_mbuf *frame_mbuf(const struct frame *f);

/** Parse @p f as received at @p now. @return whether it is for the caller; then it is freed, too */
bool port_test_rx(const struct frame *f, pmf_ns_t now);

/** Take the oldest staged frame. @return false: none */
bool port_test_tx(struct frame *out);

/** Payload byte @p i of every frame here. */
static inline uint8_t pattern(unsigned int i)
{
	return (uint8_t)(i * 7 + 3);
}

#endif
