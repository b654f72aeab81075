/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * First contact without state: challenges and the check of their answers (after RFC 9000 §8.1), and
 * resets. Nothing is stored for a stranger.
 */
#ifndef PMF_PROTO_CONTACT_H
#define PMF_PROTO_CONTACT_H

#include "proto/flow.h"

#define PMF_COOKIE_LIFE (10 * PMF_NS_PER_S)

/* Random, an engine's own, for the life of the process. */
struct pmf_contact_key {
	uint64_t k[2];
};

/* What a valid OPEN says. */
struct pmf_contact {
	struct pmf_addr peer; /* IP address of the frame, endpoint port of the packet */
	uint64_t inc;	      /* the peer's */
	uint64_t conn;	      /* chosen by the peer: goes into packets to it */
	uint16_t max_payload;
	uint64_t seed;	      /* of the peer's keys */
	pmf_ns_t cookie_time; /* when we issued the cookie */
};

/**
 * Answer a HELLO. The answer is never longer than the hello was.
 * @param src   the frame's source IP address; its port is replaced by the hello's endpoint port, @p
 * to
 * @param inc   incarnation of the local endpoint that the hello was sent to
 * @param conn_known  for a HELLO with VERIFY: whether hdr->peer_conn is a connection with that peer
 * here
 * @return bytes in @p out; 0: the hello is not acceptable
 */
size_t pmf_contact_challenge(const struct pmf_contact_key *key, const struct pmf_flow_conf *conf,
			     const struct pmf_hdr *hello, size_t hello_len,
			     const struct pmf_addr *src, uint16_t local_port, uint64_t inc,
			     bool conn_known, pmf_ns_t now, uint8_t *out, size_t cap,
			     struct pmf_addr *to);

/**
 * Check an OPEN.
 * @return 0; -EACCES wrong cookie; -ETIMEDOUT an old one; -ESTALE for another life of the local
 * endpoint
 */
int pmf_contact_check(const struct pmf_contact_key *key, const struct pmf_hdr *open,
		      const struct pmf_addr *src, uint16_t local_port, uint64_t inc, pmf_ns_t now,
		      struct pmf_contact *out);

/**
 * A RESET in answer to a packet with a connection id unknown here, or with @p flags PMF_HF_KEY
 * under an authorization key that is not taken. @return bytes
 */
size_t pmf_contact_reset(const struct pmf_hdr *bad, uint16_t local_port, uint8_t flags,
			 uint8_t *out, size_t cap);

/**
 * A RESET in answer to a HELLO that nobody takes here: it brings the nonce back, so that it is
 * believed. Never longer than the hello. @p flags as above. @return bytes; 0: the hello is not
 * acceptable
 */
size_t pmf_contact_refuse(const struct pmf_hdr *hello, uint16_t local_port, uint8_t flags,
			  uint8_t *out, size_t cap);

/** SipHash-2-4 (Aumasson, Bernstein 2012) of @p len bytes. */
uint64_t pmf_siphash(const struct pmf_contact_key *key, const void *data, size_t len);

#endif
