/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The parts of the wire format that are not met with every packet: first contact, selective
 * acknowledgement, and the rarer records. Pure functions over the caller's bytes.
 */
#include "proto/wire.h"

/*
 * HELLO. As long as CHALLENGE, so that answering one gives nobody more bytes than he sent.
 *
 * +---------------------------------------------------------------+
 * |              incarnation of the sender (64)                   |
 * +---------------------------------------------------------------+
 * |          connection id chosen by the sender (64)              |
 * +---------------------------------------------------------------+
 * |                        nonce (64)                             |
 * +---------------------------------------------------------------+
 * |      with VERIFY: the connection that is asked about (64)     |
 * +-------------------------------+-------------------------------+
 * |  sender's endpoint port       |  largest UDP payload it takes |
 * +-------------------------------+-------------------------------+
 * |                       reserved (96)                           |
 * +---------------------------------------------------------------+
 */
struct wire_hello {
	struct pmf_wire_prefix prefix;
	uint8_t inc[8];
	uint8_t my_conn[8];
	uint8_t nonce[8];
	uint8_t peer_conn[8];
	uint8_t port[2];
	uint8_t max_payload[2];
	uint8_t reserved[12];
};
static_assert(sizeof(struct wire_hello) == 64, "picture and struct agree");

/*
 * CHALLENGE. Its connection id is the one that the hello chose.
 *
 * +---------------------------------------------------------------+
 * |              incarnation of the sender (64)                   |
 * +---------------------------------------------------------------+
 * |        incarnation of the receiver, from its hello (64)       |
 * +---------------------------------------------------------------+
 * |                  nonce of the hello (64)                      |
 * +---------------------------------------------------------------+
 * |           cookie: time of issue, opaque (64)                  |
 * +---------------------------------------------------------------+
 * |           cookie: authenticator, opaque (64)                  |
 * +---------------------------------------------------------------+
 * |             first credit, units of 64 bytes                   |
 * +-------------------------------+-------------------------------+
 * | largest UDP payload it takes  |           reserved            |
 * +-------------------------------+-------------------------------+
 */
struct wire_challenge {
	struct pmf_wire_prefix prefix;
	uint8_t inc[8];
	uint8_t peer_inc[8];
	uint8_t nonce[8];
	uint8_t cookie_time[8];
	uint8_t cookie_mac[8];
	uint8_t credit[4];
	uint8_t max_payload[2];
	uint8_t reserved[2];
};
static_assert(sizeof(struct wire_challenge) == 64, "picture and struct agree");
static_assert(sizeof(struct wire_hello) >= sizeof(struct wire_challenge), "no amplification");

/*
 * The opening block, after the selective acknowledgement of an OPEN: the cookie comes back, and
 * with it all that a stateless receiver needs.
 *
 * +---------------------------------------------------------------+
 * |              incarnation of the sender (64)                   |
 * +---------------------------------------------------------------+
 * |     incarnation of the receiver, from its challenge (64)      |
 * +---------------------------------------------------------------+
 * |          connection id chosen by the sender (64)              |
 * +---------------------------------------------------------------+
 * |           cookie: time of issue, opaque (64)                  |
 * +---------------------------------------------------------------+
 * |           cookie: authenticator, opaque (64)                  |
 * +---------------------------------------------------------------+
 * |   seed of the sender's keys: its first challenge's (64)       |
 * +-------------------------------+-------------------------------+
 * |  sender's endpoint port       |  largest UDP payload it takes |
 * +-------------------------------+-------------------------------+
 * |                       reserved (32)                           |
 * +---------------------------------------------------------------+
 */
struct wire_open {
	uint8_t inc[8];
	uint8_t peer_inc[8];
	uint8_t my_conn[8];
	uint8_t cookie_time[8];
	uint8_t cookie_mac[8];
	uint8_t seed[8];
	uint8_t port[2];
	uint8_t max_payload[2];
	uint8_t reserved[4];
};
static_assert(sizeof(struct wire_open) == 56, "picture and struct agree");

/*
 * RESET. The prefix's connection id is 0: who does not know the connection does not know its other
 * end. With REFUSED it answers a hello: the connection id is the one that the hello chose.
 *
 * +---------------------------------------------------------------+
 * |  the connection id that is not known; REFUSED: the nonce (64) |
 * +-------------------------------+-------------------------------+
 * |  sender's endpoint port       |        reserved (48)          |
 * +-------------------------------+-------------------------------+
 * |                                                               |
 * +---------------------------------------------------------------+
 */
struct wire_reset {
	struct pmf_wire_prefix prefix;
	uint8_t peer_conn[8];
	uint8_t port[2];
	uint8_t reserved[6];
};
static_assert(sizeof(struct wire_reset) == 32, "picture and struct agree");
static_assert(sizeof(struct wire_reset) <= sizeof(struct pmf_wire_data), "no amplification");

/*
 * MULTICAST. The prefix's connection id is 0. Its body is one START record, WHOLE.
 *
 * +---------------------------------------------------------------+
 * |              incarnation of the sender (64)                   |
 * +---------------------------------------------------------------+
 * |   sequence number, from 1 on in this incarnation (64)         |
 * +-------------------------------+-------------------------------+
 * |  sender's endpoint port       |        reserved (48)          |
 * +-------------------------------+-------------------------------+
 * |                                                               |
 * +---------------------------------------------------------------+
 */
struct wire_multicast {
	struct pmf_wire_prefix prefix;
	uint8_t inc[8];
	uint8_t seq[8];
	uint8_t port[2];
	uint8_t reserved[6];
};
static_assert(sizeof(struct wire_multicast) == 40, "picture and struct agree");
static_assert(sizeof(struct wire_multicast) + sizeof(struct pmf_wire_rec) + 8 ==
		      PMF_WIRE_MULTICAST_OVERHEAD,
	      "a whole START with CQ data");

size_t pmf_wire_size(uint8_t type, uint8_t nsack)
{
	switch (type) {
	case PMF_PT_HELLO:
		return sizeof(struct wire_hello);
	case PMF_PT_CHALLENGE:
		return sizeof(struct wire_challenge);
	case PMF_PT_RESET:
		return sizeof(struct wire_reset);
	case PMF_PT_MULTICAST:
		return sizeof(struct wire_multicast);
	case PMF_PT_OPEN:
		return sizeof(struct pmf_wire_data) + nsack * sizeof(struct pmf_wire_sack) +
		       sizeof(struct wire_open);
	case PMF_PT_DATA:
	case PMF_PT_ACK:
	case PMF_PT_PROBE:
		return sizeof(struct pmf_wire_data) + nsack * sizeof(struct pmf_wire_sack);
	default:
		return 0;
	}
}

static int get_sack(const uint8_t *p, struct pmf_hdr *hdr)
{
	const struct pmf_wire_sack *w = (const struct pmf_wire_sack *)p;

	for (unsigned int i = 0; i < hdr->nsack; i++) {
		uint16_t first = pmf_get16(w[i].first), count = pmf_get16(w[i].count);

		/* Offset 0 is the one that is still expected; the window is far below 2^16. */
		if (first == 0 || count == 0 || first + count > UINT16_MAX)
			return -EBADMSG;
		hdr->sack[i].first = first;
		hdr->sack[i].count = count;
	}
	return 0;
}

static void get_open(const uint8_t *p, struct pmf_hdr *hdr)
{
	const struct wire_open *w = (const struct wire_open *)p;

	hdr->inc = pmf_get64(w->inc);
	hdr->peer_inc = pmf_get64(w->peer_inc);
	hdr->my_conn = pmf_get64(w->my_conn);
	hdr->cookie_time = pmf_get64(w->cookie_time);
	hdr->cookie_mac = pmf_get64(w->cookie_mac);
	hdr->seed = pmf_get64(w->seed);
	hdr->port = pmf_get16(w->port);
	hdr->max_payload = pmf_get16(w->max_payload);
}

static void get_hello(const uint8_t *p, struct pmf_hdr *hdr)
{
	const struct wire_hello *w = (const struct wire_hello *)p;

	hdr->inc = pmf_get64(w->inc);
	hdr->my_conn = pmf_get64(w->my_conn);
	hdr->nonce = pmf_get64(w->nonce);
	hdr->peer_conn = pmf_get64(w->peer_conn);
	hdr->port = pmf_get16(w->port);
	hdr->max_payload = pmf_get16(w->max_payload);
}

static void get_challenge(const uint8_t *p, struct pmf_hdr *hdr)
{
	const struct wire_challenge *w = (const struct wire_challenge *)p;

	hdr->inc = pmf_get64(w->inc);
	hdr->peer_inc = pmf_get64(w->peer_inc);
	hdr->nonce = pmf_get64(w->nonce);
	hdr->cookie_time = pmf_get64(w->cookie_time);
	hdr->cookie_mac = pmf_get64(w->cookie_mac);
	hdr->credit = pmf_get32(w->credit);
	hdr->max_payload = pmf_get16(w->max_payload);
}

static void get_reset(const uint8_t *p, struct pmf_hdr *hdr)
{
	const struct wire_reset *w = (const struct wire_reset *)p;

	hdr->peer_conn = pmf_get64(w->peer_conn);
	hdr->port = pmf_get16(w->port);
}

static void get_multicast(const uint8_t *p, struct pmf_hdr *hdr)
{
	const struct wire_multicast *w = (const struct wire_multicast *)p;

	hdr->inc = pmf_get64(w->inc);
	hdr->seq = pmf_get64(w->seq);
	hdr->port = pmf_get16(w->port);
}

/* The fields behind the prefix; all of pmf_wire_size() is inside the header. */
static int get_fields(const uint8_t *p, struct pmf_hdr *hdr)
{
	switch (hdr->type) {
	case PMF_PT_HELLO:
		get_hello(p, hdr);
		return 0;
	case PMF_PT_CHALLENGE:
		get_challenge(p, hdr);
		return 0;
	case PMF_PT_RESET:
		get_reset(p, hdr);
		return 0;
	case PMF_PT_MULTICAST:
		get_multicast(p, hdr);
		return 0;
	case PMF_PT_OPEN:
		get_open(p + pmf_wire_size(PMF_PT_DATA, hdr->nsack), hdr);
		break;
	}
	pmf_wire_get_seq((const struct pmf_wire_data *)p, hdr);
	return get_sack(p + sizeof(struct pmf_wire_data), hdr);
}

int pmf_wire_get_any(const uint8_t *p, size_t len, struct pmf_hdr *hdr)
{
	const struct pmf_wire_data *w = (const struct pmf_wire_data *)p;
	size_t hlen, need, tail;

	if (len < sizeof(w->prefix))
		return -EBADMSG;
	hdr->type = w->prefix.type[0];
	hdr->flags = w->prefix.flags[0] & PMF_HF_KNOWN;
	hdr->key = pmf_get16(w->prefix.key);
	hdr->holds = pmf_get16(w->prefix.holds);
	hdr->conn = pmf_get64(w->prefix.conn);
	if (w->prefix.version[0] != PMF_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	need = pmf_wire_size(hdr->type, 0);
	if (need == 0)
		return -EOPNOTSUPP;
	hlen = w->prefix.hlen[0] * (size_t)4;
	tail = pmf_wire_tail(w);
	if (hlen + tail > len || hlen < need)
		return -EBADMSG;
	if (pmf_wire_has_seq(hdr->type)) {
		hdr->nsack = w->seq.nsack[0];
		if (hdr->nsack > PMF_WIRE_MAX_SACK || hlen < pmf_wire_size(hdr->type, hdr->nsack))
			return -EBADMSG;
	}
	hdr->body = p + hlen;
	hdr->body_len = (uint32_t)(len - hlen - tail);
	return get_fields(p, hdr);
}

static void put_open(uint8_t *p, const struct pmf_hdr *hdr)
{
	struct wire_open *w = (struct wire_open *)p;

	pmf_put64(w->inc, hdr->inc);
	pmf_put64(w->peer_inc, hdr->peer_inc);
	pmf_put64(w->my_conn, hdr->my_conn);
	pmf_put64(w->cookie_time, hdr->cookie_time);
	pmf_put64(w->cookie_mac, hdr->cookie_mac);
	pmf_put64(w->seed, hdr->seed);
	pmf_put16(w->port, hdr->port);
	pmf_put16(w->max_payload, hdr->max_payload);
	memset(w->reserved, 0, sizeof(w->reserved));
}

static void put_hello(uint8_t *p, const struct pmf_hdr *hdr)
{
	struct wire_hello *w = (struct wire_hello *)p;

	pmf_put64(w->inc, hdr->inc);
	pmf_put64(w->my_conn, hdr->my_conn);
	pmf_put64(w->nonce, hdr->nonce);
	pmf_put64(w->peer_conn, hdr->peer_conn);
	pmf_put16(w->port, hdr->port);
	pmf_put16(w->max_payload, hdr->max_payload);
	memset(w->reserved, 0, sizeof(w->reserved));
}

static void put_challenge(uint8_t *p, const struct pmf_hdr *hdr)
{
	struct wire_challenge *w = (struct wire_challenge *)p;

	pmf_put64(w->inc, hdr->inc);
	pmf_put64(w->peer_inc, hdr->peer_inc);
	pmf_put64(w->nonce, hdr->nonce);
	pmf_put64(w->cookie_time, hdr->cookie_time);
	pmf_put64(w->cookie_mac, hdr->cookie_mac);
	pmf_put32(w->credit, hdr->credit);
	pmf_put16(w->max_payload, hdr->max_payload);
	memset(w->reserved, 0, sizeof(w->reserved));
}

static void put_reset(uint8_t *p, const struct pmf_hdr *hdr)
{
	struct wire_reset *w = (struct wire_reset *)p;

	pmf_put64(w->peer_conn, hdr->peer_conn);
	pmf_put16(w->port, hdr->port);
	memset(w->reserved, 0, sizeof(w->reserved));
}

static void put_multicast(uint8_t *p, const struct pmf_hdr *hdr)
{
	struct wire_multicast *w = (struct wire_multicast *)p;

	pmf_put64(w->inc, hdr->inc);
	pmf_put64(w->seq, hdr->seq);
	pmf_put16(w->port, hdr->port);
	memset(w->reserved, 0, sizeof(w->reserved));
}

static void put_sack(uint8_t *p, const struct pmf_hdr *hdr)
{
	struct pmf_wire_sack *w = (struct pmf_wire_sack *)p;

	for (unsigned int i = 0; i < hdr->nsack; i++) {
		pmf_put16(w[i].first, hdr->sack[i].first);
		pmf_put16(w[i].count, hdr->sack[i].count);
	}
}

size_t pmf_wire_put_any(uint8_t *p, size_t cap, const struct pmf_hdr *hdr)
{
	struct pmf_wire_prefix *w = (struct pmf_wire_prefix *)p;
	size_t size = pmf_wire_size(hdr->type, hdr->nsack);

	if (size == 0 || size > cap || hdr->nsack > PMF_WIRE_MAX_SACK)
		return 0;
	if (pmf_wire_has_seq(hdr->type)) {
		pmf_wire_put_seq((struct pmf_wire_data *)p, hdr);
		put_sack(p + sizeof(struct pmf_wire_data), hdr);
		if (hdr->type == PMF_PT_OPEN)
			put_open(p + pmf_wire_size(PMF_PT_DATA, hdr->nsack), hdr);
	} else {
		memset(w, 0, sizeof(*w));
		w->version[0] = PMF_WIRE_VERSION;
		w->type[0] = hdr->type;
		w->flags[0] = hdr->flags;
		pmf_put16(w->key, hdr->key);
		pmf_put16(w->holds, hdr->holds);
		pmf_put64(w->conn, hdr->conn);
		if (hdr->type == PMF_PT_HELLO)
			put_hello(p, hdr);
		else if (hdr->type == PMF_PT_CHALLENGE)
			put_challenge(p, hdr);
		else if (hdr->type == PMF_PT_MULTICAST)
			put_multicast(p, hdr);
		else
			put_reset(p, hdr);
	}
	w->hlen[0] = (uint8_t)(size / 4);
	return size;
}

static int get_start(const uint8_t *p, size_t length, struct pmf_rec *rec)
{
	const struct pmf_wire_rec *w = (const struct pmf_wire_rec *)p;
	size_t head = 4 + (rec->flags & PMF_RF_WHOLE ? 0 : 8) + (rec->flags & PMF_RF_DATA ? 8 : 0) +
		      (rec->flags & PMF_RF_TAG ? 8 : 0);
	const uint8_t *field = p + sizeof(*w);

	if (length < head)
		return -EBADMSG;
	rec->kind = (w->flags[0] & PMF_RF_KIND_MASK) >> PMF_RF_KIND_SHIFT;
	rec->len = (uint32_t)(length - head);
	rec->total = rec->len;
	if (!(rec->flags & PMF_RF_WHOLE)) {
		rec->total = pmf_get64(field);
		field += 8;
	}
	if (rec->flags & PMF_RF_DATA)
		rec->data = pmf_get64(field);
	rec->bytes = p + PMF_WIRE_REC_TLV + head;
	if (rec->len > rec->total)
		return -EBADMSG;
	if ((rec->flags & PMF_RF_ANNOUNCE) && (rec->len != 0 || (rec->flags & PMF_RF_WHOLE)))
		return -EBADMSG;
	return 0;
}

static bool has_program_data(uint8_t type)
{
	return type >= PMF_RT_CONNREQ && type <= PMF_RT_CLOSE;
}

int pmf_rec_get_any(const uint8_t *p, size_t len, struct pmf_rec *rec)
{
	const struct pmf_wire_rec *w = (const struct pmf_wire_rec *)p;
	size_t length;
	int err;

	if (len < PMF_WIRE_REC_TLV)
		return -EBADMSG;
	length = pmf_get16(w->length);
	if (length > len - PMF_WIRE_REC_TLV)
		return -EBADMSG;
	memset(rec, 0, sizeof(*rec));
	rec->flags = w->flags[0] & PMF_RF_KNOWN;
	if (w->type[0] == 0 || w->type[0] >= PMF_RT_MAX) {
		if (!(rec->flags & PMF_RF_OPTIONAL))
			return -EOPNOTSUPP;
		return (int)(PMF_WIRE_REC_TLV + length);
	}
	rec->type = w->type[0];
	/* CONT and BODY come here only when they are too short. */
	if (length < 4 || rec->type == PMF_RT_CONT || rec->type == PMF_RT_BODY)
		return -EBADMSG;
	rec->msg32 = pmf_get32(w->msg);
	if (rec->type == PMF_RT_START) {
		err = get_start(p, length, rec);
		if (err < 0)
			return err;
	} else if (has_program_data(rec->type)) {
		if (length - 4 > PMF_WIRE_CM_DATA)
			return -EBADMSG;
		rec->len = (uint32_t)length - 4;
		rec->bytes = p + sizeof(*w);
	}
	return (int)(PMF_WIRE_REC_TLV + length);
}
