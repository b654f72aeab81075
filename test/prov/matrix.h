/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The matrix of flags: one number names one combination of binding, default flags, calls, per-call
 * flags, lengths and kind of endpoint; and the oracle, which says from the specification alone what
 * a pair of endpoints that is used by such combinations has to answer.
 */
#ifndef PMF_TEST_MATRIX_H
#define PMF_TEST_MATRIX_H

#include "fx.h"

enum mx_send { MX_SEND, MX_SENDV, MX_SENDDATA, MX_INJECT, MX_INJECTDATA, MX_SENDMSG };
enum mx_recv { MX_RECV, MX_RECVV, MX_RECVMSG };

enum {
	MX_PAIRS = 8, /* pairs of endpoints: msg × tx selective × rx selective */
	MX_INJECT_SIZE = 64,
	MX_MIN_MULTI = 16,
	MX_QUEUE = 256, /* what the oracle remembers of each kind */
};

struct mx_combo {
	unsigned int number;
	enum mx_send send;
	enum mx_recv recv;
	uint64_t tx_default, rx_default, tx_flags, rx_flags; /* flags: of the …msg calls */
	size_t len, room;
	unsigned int tx_pieces, rx_pieces;
	bool send_first;
};

/** How many numbers there are. */
unsigned int mx_count(void);
struct mx_combo mx_combo(unsigned int number);
void mx_print(const struct mx_combo *c);

/* A posted buffer. */
struct mx_post {
	char *buf;
	size_t room, used;
	unsigned int number; /* of the combination that posted it */
	bool multi, due;
};

/* An accepted send. */
struct mx_sent {
	void *context; /* NULL for inject */
	size_t len;
	unsigned int number; /* of the combination that sent it; seed of its bytes */
	uint64_t data;
	bool has_data;
	bool due, seen; /* its entry */
	bool fence, delivered;
	int received; /* index in entries, or -1 */
};

/* The end of a receive. */
struct mx_entry {
	char *buf, *at;
	uint64_t flags, data;
	size_t len, olen, placed;
	unsigned int sent, posted; /* the numbers of both */
	bool multi, due;
	int err;
};

struct mx_oracle {
	bool tx_selective, rx_selective, msg;
	size_t inject_size;
	struct mx_post posted[MX_QUEUE];
	struct mx_sent sent[MX_QUEUE];
	struct mx_entry entries[MX_QUEUE];
	unsigned int nposted, nsent, nmatched, nentries;
	uint64_t tx_ok, rx_ok, rx_err; /* counters */
};

/** @return what the sending call returns; on 0 the message has been sent */
int mx_expect_send(struct mx_oracle *o, const struct mx_combo *c, void *context, uint64_t data);
/** @return what the receiving call returns; on 0 the buffer has been posted. */
int mx_expect_recv(struct mx_oracle *o, const struct mx_combo *c, char *buf);
/** All that was sent is over and looked at; buffers may still be posted. */
void mx_forget(struct mx_oracle *o);
/** Whether the entry of send @p i may stand in the queue now, as far as fences have a say. */
bool mx_in_turn(const struct mx_oracle *o, unsigned int i);

#endif
