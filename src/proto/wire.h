/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The wire format, version 2: packet headers and the records in data packets. One bounds-checked
 * decoder; nothing behind it parses again. All fields are big endian byte arrays. What is done for
 * every packet stands here in line, the rest in wire.c.
 */
#ifndef PMF_PROTO_WIRE_H
#define PMF_PROTO_WIRE_H

#include "pmf_common.h"
#include "proto/bytes.h"

#define PMF_WIRE_VERSION 2
#define PMF_WIRE_TAG 16	     /* bytes at the tail of an authenticated packet */
#define PMF_WIRE_MAX_SACK 64 /* ranges in one acknowledgement */
#define PMF_WIRE_MIN_PAYLOAD \
	1200 /* UDP payload that every path carries (RFC 8899 §5.1.2 BASE_PLPMTU) */
#define PMF_WIRE_MAX_RECS 128 /* records in one packet */

enum pmf_ptype {
	PMF_PT_HELLO = 1,     /* who I am; asks for a challenge */
	PMF_PT_CHALLENGE = 2, /* stateless answer: cookie, incarnation, first credit */
	PMF_PT_OPEN = 3,      /* a data packet that carries the answer to the challenge */
	PMF_PT_DATA = 4,
	PMF_PT_ACK = 5,
	PMF_PT_PROBE = 6,     /* answered at once: liveness, path MTU, credit, resynchronisation */
	PMF_PT_RESET = 7,     /* "I know no such connection": a hint that is verified by a hello */
	PMF_PT_MULTICAST = 8, /* a message to a group, in no flow: best effort */
	PMF_PT_MAX
};

/* Flags of the header. Others are reserved: sent as 0, ignored on receipt. */
#define PMF_HF_RESYNC \
	0x01 /* PROBE: psn is the new base; ACK: ack is the last in-order number before it */
#define PMF_HF_ECHO 0x02   /* ACK: answers the probe whose transmission number is in ack_txno */
#define PMF_HF_VERIFY 0x04 /* HELLO: asks about the connection in peer_conn */
#define PMF_HF_GONE 0x08   /* CHALLENGE: that connection is not known here */
#define PMF_HF_CONNECT \
	0x10 /* HELLO: asks for a listener, not for an endpoint without connections */
#define PMF_HF_REFUSED 0x20 /* RESET: answers a hello to a port where nobody takes it */
#define PMF_HF_KEY \
	0x40 /* RESET: the authorization key is not taken here; nobody can prove to say so */
#define PMF_HF_ANSWER \
	0x40 /* OPEN, DATA: to be acknowledged at once, the sender has no window left */
#define PMF_HF_PHASE \
	0x80 /* with a sequence header: changes every PMF_CC_PHASE, for all peers at once */
#define PMF_HF_KNOWN 0xff

/*
 * Prefix of every packet:
 *
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * +---------------+---------------+---------------+---------------+
 * |    version    | header length |     type      |     flags     |  length in units of 4 bytes
 * +---------------+---------------+---------------+---------------+
 * |            key id             |             holds             |
 * +---------------+---------------+-------------------------------+
 * |          connection id chosen by the receiver (64)            |  0: not known yet
 * |                                                               |
 * +---------------------------------------------------------------+
 *
 * The body (records; padding of HELLO and PROBE) begins where the header length says. A header may
 * be longer than its type needs: what follows the known fields is skipped. With key id 0 no tag
 * stands at the tail; another one names the authorization key of the tag of 16 bytes there.
 */
struct pmf_wire_prefix {
	uint8_t version[1];
	uint8_t hlen[1];
	uint8_t type[1];
	uint8_t flags[1];
	uint8_t key[2];
	uint8_t holds[2];
	uint8_t conn[8];
};
static_assert(sizeof(struct pmf_wire_prefix) == 16, "picture and struct agree");

/*
 * OPEN, DATA, ACK and PROBE go on with this and the ranges of the selective acknowledgement:
 *
 * +---------------------------------------------------------------+
 * |                         packet number                         |  ACK: next to be sent
 * +---------------------------------------------------------------+
 * |                      transmission number                      |
 * +---------------------------------------------------------------+
 * |            next packet number expected in order               |
 * +---------------------------------------------------------------+
 * |      transmission number of the newest frame received         |
 * +---------------------------------------------------------------+
 * |      ns / 64 between that frame's arrival and this one        |
 * +---------------------------------------------------------------+
 * |        credit: limit of message cost, units of 64 bytes       |
 * +-------------------------------+---------------+---------------+
 * |      CE marks received        |  sack ranges  |     wait      |
 * +-------------------------------+---------------+---------------+
 * |    first, from the expected   |     count     |  × sack ranges, first ≥ 1, count ≥ 1
 * +-------------------------------+---------------+
 *
 * OPEN carries the opening block after them. That block and the bodies of HELLO, CHALLENGE and
 * RESET are drawn above their structs in wire.c, all of them in docs/protocol.md.
 */
struct pmf_wire_seq {
	uint8_t psn[4];
	uint8_t txno[4];
	uint8_t ack[4];
	uint8_t ack_txno[4];
	uint8_t ack_delay[4];
	uint8_t credit[4];
	uint8_t ce[2];
	uint8_t nsack[1];
	uint8_t wait[1];
};
static_assert(sizeof(struct pmf_wire_seq) == 28, "picture and struct agree");

struct pmf_wire_sack {
	uint8_t first[2];
	uint8_t count[2];
};
static_assert(sizeof(struct pmf_wire_sack) == 4, "picture and struct agree");

struct pmf_wire_data {
	struct pmf_wire_prefix prefix;
	struct pmf_wire_seq seq;
};
static_assert(sizeof(struct pmf_wire_data) == 44, "no padding");

struct pmf_sack {
	uint16_t first; /* offset from `ack` */
	uint16_t count;
};

/*
 * A decoded packet header, fields in host order. Those that the type does not have are 0; of sack
 * only the first nsack are set.
 */
struct pmf_hdr {
	uint8_t type;
	uint8_t flags;
	uint8_t nsack;
	uint16_t key;	/* of the tag; 0: there is none */
	uint16_t holds; /* HOLD records sent so far by the sender of this packet, modulo 2^16 */
	uint16_t ce;
	uint64_t conn;
	uint32_t psn, txno, ack, ack_txno;
	uint32_t ack_delay; /* units of 64 ns */
	uint32_t credit;    /* units of 64 bytes; CHALLENGE: the first grant */
	uint8_t wait; /* of the frame acknowledged, for its receiver to look; units of 256 ns */
	const uint8_t *body; /* records, into the packet; the tag is not counted */
	uint32_t body_len;
	uint16_t port; /* the sender's endpoint (HELLO, OPEN, RESET, MULTICAST) */
	uint16_t max_payload;
	/* HELLO, CHALLENGE, OPEN, MULTICAST */
	uint64_t inc;	    /* incarnation of the packet's sender */
	uint64_t peer_inc;  /* incarnation of its receiver (CHALLENGE, OPEN) */
	uint64_t my_conn;   /* connection id chosen by the packet's sender (HELLO, OPEN) */
	uint64_t peer_conn; /* HELLO with VERIFY; RESET: the id that is not known, or the hello's
			       nonce */
	uint64_t cookie_time, cookie_mac; /* CHALLENGE, OPEN */
	uint64_t seed;			  /* OPEN: of the sender's keys */
	union {
		uint64_t nonce; /* HELLO, echoed by CHALLENGE */
		uint64_t seq;	/* MULTICAST: counts what its sender has sent to groups */
	};
	struct pmf_sack sack[PMF_WIRE_MAX_SACK];
};

static inline bool pmf_wire_has_seq(uint8_t type)
{
	return type >= PMF_PT_OPEN && type <= PMF_PT_PROBE;
}

/* The two behind pmf_wire_get() and pmf_wire_put(), for what is not DATA, ACK or PROBE without
 * ranges. */
int pmf_wire_get_any(const uint8_t *p, size_t len, struct pmf_hdr *hdr);
size_t pmf_wire_put_any(uint8_t *p, size_t cap, const struct pmf_hdr *hdr);

/* Bytes of the tag. */
static inline size_t pmf_wire_tail(const struct pmf_wire_data *w)
{
	return (w->prefix.key[0] | w->prefix.key[1]) != 0 ? PMF_WIRE_TAG : 0;
}

static inline void pmf_wire_get_seq(const struct pmf_wire_data *w, struct pmf_hdr *hdr)
{
	hdr->type = w->prefix.type[0];
	hdr->flags = w->prefix.flags[0] & PMF_HF_KNOWN;
	hdr->key = pmf_get16(w->prefix.key);
	hdr->holds = pmf_get16(w->prefix.holds);
	hdr->conn = pmf_get64(w->prefix.conn);
	hdr->psn = pmf_get32(w->seq.psn);
	hdr->txno = pmf_get32(w->seq.txno);
	hdr->ack = pmf_get32(w->seq.ack);
	hdr->ack_txno = pmf_get32(w->seq.ack_txno);
	hdr->ack_delay = pmf_get32(w->seq.ack_delay);
	hdr->credit = pmf_get32(w->seq.credit);
	hdr->ce = pmf_get16(w->seq.ce);
	hdr->wait = w->seq.wait[0];
}

/**
 * Decode a packet. Pure; any bytes are safe.
 * @return 0; -EBADMSG malformed; -EPROTONOSUPPORT another version (hdr->type and conn are set where
 *         the prefix allows); -EOPNOTSUPP an unknown type (the same)
 */
static inline int pmf_wire_get(const uint8_t *p, size_t len, struct pmf_hdr *hdr)
{
	const struct pmf_wire_data *w = (const struct pmf_wire_data *)p;

	memset(hdr, 0, offsetof(struct pmf_hdr, sack));
	if (pmf_unlikely(len < sizeof(*w) || w->prefix.version[0] != PMF_WIRE_VERSION ||
			 w->prefix.hlen[0] != sizeof(*w) / 4 ||
			 len < sizeof(*w) + pmf_wire_tail(w) || w->seq.nsack[0] != 0 ||
			 w->prefix.type[0] < PMF_PT_DATA || w->prefix.type[0] > PMF_PT_PROBE))
		return pmf_wire_get_any(p, len, hdr);
	pmf_wire_get_seq(w, hdr);
	hdr->body = p + sizeof(*w);
	hdr->body_len = (uint32_t)(len - sizeof(*w) - pmf_wire_tail(w));
	return 0;
}

static inline void pmf_wire_put_seq(struct pmf_wire_data *w, const struct pmf_hdr *hdr)
{
	w->prefix.version[0] = PMF_WIRE_VERSION;
	w->prefix.type[0] = hdr->type;
	w->prefix.flags[0] = hdr->flags;
	pmf_put16(w->prefix.key, hdr->key);
	pmf_put16(w->prefix.holds, hdr->holds);
	pmf_put64(w->prefix.conn, hdr->conn);
	pmf_put32(w->seq.psn, hdr->psn);
	pmf_put32(w->seq.txno, hdr->txno);
	pmf_put32(w->seq.ack, hdr->ack);
	pmf_put32(w->seq.ack_txno, hdr->ack_txno);
	pmf_put32(w->seq.ack_delay, hdr->ack_delay);
	pmf_put32(w->seq.credit, hdr->credit);
	pmf_put16(w->seq.ce, hdr->ce);
	w->seq.nsack[0] = hdr->nsack;
	w->seq.wait[0] = hdr->wait;
}

/**
 * Encode a header; body follows at the returned offset. HELLO is padded by the caller's wish only.
 * @return bytes written; 0 when @p cap is too small or the type has no layout
 */
static inline size_t pmf_wire_put(uint8_t *p, size_t cap, const struct pmf_hdr *hdr)
{
	struct pmf_wire_data *w = (struct pmf_wire_data *)p;

	if (pmf_unlikely(hdr->type < PMF_PT_DATA || hdr->type > PMF_PT_PROBE || hdr->nsack != 0 ||
			 cap < sizeof(*w)))
		return pmf_wire_put_any(p, cap, hdr);
	pmf_wire_put_seq(w, hdr);
	w->prefix.hlen[0] = sizeof(*w) / 4;
	return sizeof(*w);
}

/* A packet that stands finished but for its tag: its type, its header's bytes, and its key. */
static inline uint8_t pmf_wire_type(const uint8_t *p)
{
	return ((const struct pmf_wire_prefix *)p)->type[0];
}

static inline size_t pmf_wire_head(const uint8_t *p)
{
	return ((const struct pmf_wire_prefix *)p)->hlen[0] * (size_t)4;
}

static inline void pmf_wire_set_key(uint8_t *p, uint16_t key)
{
	pmf_put16(((struct pmf_wire_prefix *)p)->key, key);
}

/* Bytes of a header as pmf_wire_put() writes it; 0 for a type without layout. */
size_t pmf_wire_size(uint8_t type, uint8_t nsack);

/* Of MULTICAST: its header and the longest head of the START record that is its body. */
#define PMF_WIRE_MULTICAST_OVERHEAD 56

enum pmf_rtype {
	PMF_RT_START = 1,   /* a message begins; bytes follow (eager), or none (announced) */
	PMF_RT_CONT = 2,    /* more bytes of an eager message */
	PMF_RT_BODY = 3,    /* bytes of an invited message */
	PMF_RT_INVITE = 4,  /* send the bytes of that message */
	PMF_RT_HOLD = 5,    /* its bytes were not kept: they will be invited */
	PMF_RT_ABORT = 6,   /* it will not come: its sender closed its endpoint */
	PMF_RT_CONNREQ = 7, /* the first record of a connection; data of the connecting program */
	PMF_RT_ACCEPT = 8,  /* its answer: the connection stands; data of the accepting program */
	PMF_RT_REJECT = 9,  /* or: it will not; data of the rejecting program */
	PMF_RT_CLOSE = 10,  /* the last record of a connection */
	PMF_RT_MAX
};

/* Why a connection does not come about or ends; in REJECT and CLOSE. */
enum pmf_reason {
	PMF_REASON_NONE = 0,	/* the program's wish */
	PMF_REASON_BACKLOG = 1, /* too many requests wait at the listener */
	PMF_REASON_GONE = 2	/* the listener or the endpoint for it was closed */
};

#define PMF_WIRE_CM_DATA 256 /* most bytes of a program in CONNREQ, ACCEPT and REJECT */

/* Kinds of a message (RT_START). Others than MSG are reserved and refused with a reason. */
enum pmf_mkind { PMF_MK_MSG = 0, PMF_MK_TAGGED = 1, PMF_MK_RMA = 2, PMF_MK_ATOMIC = 3 };

/* Flags of a START record. On the wire its kind stands in the two bits between them. */
#define PMF_RF_WHOLE 0x01    /* all bytes are in this record: no length field */
#define PMF_RF_ANNOUNCE 0x02 /* no bytes now: sent when invited */
#define PMF_RF_DATA 0x04     /* 64 bits of CQ data stand in the record */
#define PMF_RF_TAG 0x08	     /* reserved: 64 bits of tag stand in the record; they are skipped */
#define PMF_RF_OPTIONAL 0x80 /* (any record) who does not know the type may skip it */
#define PMF_RF_KNOWN 0x8f
#define PMF_RF_KIND_SHIFT 4
#define PMF_RF_KIND_MASK 0x30

/*
 * Records stand one after another, without padding.
 *
 *  0                   1                   2                   3
 *  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 * +---------------+---------------+-------------------------------+
 * |     type      |     flags     |  length of what follows       |  every record
 * +---------------+---------------+-------------------------------+
 * |                 message number, low 32 bits                   |  every known record
 * +---------------------------------------------------------------+
 *
 * INVITE, HOLD and ABORT end here. CONNREQ, ACCEPT, REJECT and CLOSE have a reason (enum
 * pmf_reason) in place of the message number, then at most 256 bytes of the program's. CONT and
 * BODY: |                offset of the first byte (64)                  |  then bytes of the
 * message |                                                               |
 * +---------------------------------------------------------------+
 *
 * START, with the kind in bits 0x30 of the flags:
 * |                     message length (64)                       |  unless WHOLE
 * |                                                               |
 * +---------------------------------------------------------------+
 * |                        CQ data (64)                           |  with DATA
 * |                                                               |
 * +---------------------------------------------------------------+
 * |                          tag (64)                             |  with TAG
 * |                                                               |  then bytes of the message
 * +---------------------------------------------------------------+
 */
struct pmf_wire_rec {
	uint8_t type[1];
	uint8_t flags[1];
	uint8_t length[2];
	uint8_t msg[4];
};
static_assert(sizeof(struct pmf_wire_rec) == 8, "picture and struct agree");

struct pmf_wire_rec_body {
	struct pmf_wire_rec rec;
	uint8_t offset[8];
};
static_assert(sizeof(struct pmf_wire_rec_body) == 16, "picture and struct agree");

#define PMF_WIRE_REC_TLV 4 /* type, flags and length: not counted in the length */

/* A decoded record. Fields that the type does not have are 0. */
struct pmf_rec {
	uint8_t type;
	uint8_t flags;
	uint8_t kind;
	uint32_t len;	/* bytes of payload in this record */
	uint32_t msg32; /* low bits, as on the wire; CONNREQ to CLOSE: the reason */
	uint64_t msg;	/* extended by the flow */
	uint64_t off;	/* of the first byte, in the message (CONT, BODY) */
	uint64_t total; /* message length (START) */
	uint64_t data;	/* with PMF_RF_DATA */
	const uint8_t *bytes;
};

/* Behind pmf_rec_get(): what is not CONT, BODY or a whole START. */
int pmf_rec_get_any(const uint8_t *p, size_t len, struct pmf_rec *rec);

/**
 * Decode the record at @p p.
 * @return bytes it takes, payload included; -EBADMSG malformed; -EOPNOTSUPP unknown and not
 * optional (an unknown optional one is returned with type 0 and is to be skipped)
 */
static inline int pmf_rec_get(const uint8_t *p, size_t len, struct pmf_rec *rec)
{
	const struct pmf_wire_rec_body *w = (const struct pmf_wire_rec_body *)p;
	size_t length;

	if (pmf_unlikely(len < sizeof(w->rec)))
		return pmf_rec_get_any(p, len, rec);
	length = pmf_get16(w->rec.length);
	if (pmf_unlikely(length > len - PMF_WIRE_REC_TLV))
		return -EBADMSG;
	memset(rec, 0, sizeof(*rec));
	rec->type = w->rec.type[0];
	rec->flags = w->rec.flags[0] & PMF_RF_KNOWN;
	rec->msg32 = pmf_get32(w->rec.msg);
	if (rec->type == PMF_RT_START && w->rec.flags[0] == PMF_RF_WHOLE && length >= 4) {
		rec->len = (uint32_t)length - 4;
		rec->total = rec->len;
		rec->bytes = p + sizeof(w->rec);
	} else if ((rec->type == PMF_RT_CONT || rec->type == PMF_RT_BODY) && length >= 12) {
		rec->len = (uint32_t)length - 12;
		rec->off = pmf_get64(w->offset);
		rec->bytes = p + sizeof(*w);
		if (pmf_unlikely(rec->off > UINT64_MAX - rec->len))
			return -EBADMSG;
	} else {
		return pmf_rec_get_any(p, len, rec);
	}
	return (int)(PMF_WIRE_REC_TLV + length);
}

/** Bytes of the head that pmf_rec_put() writes; 0 for a type without layout. */
static inline size_t pmf_rec_size(const struct pmf_rec *rec)
{
	switch (rec->type) {
	case PMF_RT_START:
		return sizeof(struct pmf_wire_rec) + (rec->flags & PMF_RF_WHOLE ? 0 : 8) +
		       (rec->flags & PMF_RF_DATA ? 8 : 0);
	case PMF_RT_CONT:
	case PMF_RT_BODY:
		return sizeof(struct pmf_wire_rec_body);
	case PMF_RT_INVITE:
	case PMF_RT_HOLD:
	case PMF_RT_ABORT:
	case PMF_RT_CONNREQ:
	case PMF_RT_ACCEPT:
	case PMF_RT_REJECT:
	case PMF_RT_CLOSE:
		return sizeof(struct pmf_wire_rec);
	default:
		return 0;
	}
}

/**
 * Encode the head of a record; rec->len payload bytes are to follow.
 * @return bytes written; 0: no room for head and payload in @p cap, or not representable
 */
static inline size_t pmf_rec_put(uint8_t *p, size_t cap, const struct pmf_rec *rec)
{
	struct pmf_wire_rec *w = (struct pmf_wire_rec *)p;
	size_t head = pmf_rec_size(rec), length = head - PMF_WIRE_REC_TLV + rec->len;
	uint8_t *field = p + sizeof(*w);

	if (pmf_unlikely(head == 0 || PMF_WIRE_REC_TLV + length > cap || length > UINT16_MAX))
		return 0;
	w->type[0] = rec->type;
	w->flags[0] = rec->flags;
	pmf_put16(w->length, (uint16_t)length);
	pmf_put32(w->msg, rec->msg32);
	if (rec->type == PMF_RT_CONT || rec->type == PMF_RT_BODY) {
		pmf_put64(field, rec->off);
	} else if (rec->type == PMF_RT_START) {
		w->flags[0] = (rec->flags & (PMF_RF_KNOWN & ~PMF_RF_TAG)) |
			      (uint8_t)(rec->kind << PMF_RF_KIND_SHIFT & PMF_RF_KIND_MASK);
		if (!(rec->flags & PMF_RF_WHOLE)) {
			pmf_put64(field, rec->total);
			field += 8;
		}
		if (rec->flags & PMF_RF_DATA)
			pmf_put64(field, rec->data);
	}
	return head;
}

#endif
