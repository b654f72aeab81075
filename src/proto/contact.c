/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * First contact. The cookie is the time of issue and a keyed hash of who asked whom; so that
 * whoever brings it back has received what was sent to that address, and nothing had to be
 * remembered.
 */
#include "proto/contact.h"

/* What the cookie vouches for, as the bytes that are hashed. */
struct cookie_input {
	uint8_t ip[16];
	uint8_t port[2];
	uint8_t local_port[2];
	uint8_t inc[8];
	uint8_t conn[8];
	uint8_t local_inc[8];
	uint8_t time[8];
};
static_assert(sizeof(struct cookie_input) == 52, "no padding is hashed");

static uint64_t cookie_mac(const struct pmf_contact_key *key, const struct pmf_hdr *from,
			   const struct pmf_addr *src, uint16_t local_port, uint64_t local_inc,
			   pmf_ns_t time)
{
	struct cookie_input in;

	memcpy(in.ip, src->ip, sizeof(in.ip));
	pmf_put16(in.port, from->port);
	pmf_put16(in.local_port, local_port);
	pmf_put64(in.inc, from->inc);
	pmf_put64(in.conn, from->my_conn);
	pmf_put64(in.local_inc, local_inc);
	pmf_put64(in.time, time);
	return pmf_siphash(key, &in, sizeof(in));
}

size_t pmf_contact_challenge(const struct pmf_contact_key *key, const struct pmf_flow_conf *conf,
			     const struct pmf_hdr *hello, size_t hello_len,
			     const struct pmf_addr *src, uint16_t local_port, uint64_t inc,
			     bool conn_known, pmf_ns_t now, uint8_t *out, size_t cap,
			     struct pmf_addr *to)
{
	struct pmf_hdr hdr = {0};
	uint64_t credit = PMF_MIN(conf->first_credit, conf->rx_credit) / 64;

	if (hello->type != PMF_PT_HELLO || hello->port == 0 || hello->my_conn == 0 ||
	    hello->max_payload < PMF_WIRE_MIN_PAYLOAD ||
	    hello_len < pmf_wire_size(PMF_PT_CHALLENGE, 0))
		return 0;
	hdr.type = PMF_PT_CHALLENGE;
	if ((hello->flags & PMF_HF_VERIFY) && !conn_known)
		hdr.flags = PMF_HF_GONE;
	hdr.conn = hello->my_conn;
	hdr.inc = inc;
	hdr.peer_inc = hello->inc;
	hdr.nonce = hello->nonce;
	hdr.cookie_time = now;
	hdr.cookie_mac = cookie_mac(key, hello, src, local_port, inc, now);
	hdr.credit = (uint32_t)PMF_MIN(credit, UINT32_MAX);
	hdr.max_payload = conf->max_payload;
	cap = pmf_wire_put(out, cap, &hdr);
	if (cap != 0) {
		*to = *src;
		to->port = hello->port;
	}
	return cap;
}

int pmf_contact_check(const struct pmf_contact_key *key, const struct pmf_hdr *open,
		      const struct pmf_addr *src, uint16_t local_port, uint64_t inc, pmf_ns_t now,
		      struct pmf_contact *out)
{
	/* Over the incarnation that the peer was told, so that an older life's cookie is told
	 * apart. */
	if (open->type != PMF_PT_OPEN || open->port == 0 || open->my_conn == 0 ||
	    open->max_payload < PMF_WIRE_MIN_PAYLOAD ||
	    open->cookie_mac !=
		    cookie_mac(key, open, src, local_port, open->peer_inc, open->cookie_time))
		return -EACCES;
	if (open->peer_inc != inc)
		return -ESTALE;
	if (open->cookie_time > now || now - open->cookie_time > PMF_COOKIE_LIFE)
		return -ETIMEDOUT;
	out->peer = *src;
	out->peer.port = open->port;
	out->inc = open->inc;
	out->conn = open->my_conn;
	out->max_payload = open->max_payload;
	out->seed = open->seed;
	out->cookie_time = open->cookie_time;
	return 0;
}

size_t pmf_contact_reset(const struct pmf_hdr *bad, uint16_t local_port, uint8_t flags,
			 uint8_t *out, size_t cap)
{
	struct pmf_hdr hdr = {
		.type = PMF_PT_RESET,
		.flags = flags,
		.peer_conn = bad->conn,
		.port = local_port,
	};

	/* A reset never answers one, nor the stateless types: two strangers would talk for ever. */
	if (!pmf_wire_has_seq(bad->type))
		return 0;
	return pmf_wire_put(out, cap, &hdr);
}

size_t pmf_contact_refuse(const struct pmf_hdr *hello, uint16_t local_port, uint8_t flags,
			  uint8_t *out, size_t cap)
{
	struct pmf_hdr hdr = {
		.type = PMF_PT_RESET,
		.flags = PMF_HF_REFUSED | flags,
		.conn = hello->my_conn,
		.peer_conn = hello->nonce,
		.port = local_port,
	};

	if (hello->type != PMF_PT_HELLO || hello->my_conn == 0)
		return 0;
	return pmf_wire_put(out, cap, &hdr);
}
