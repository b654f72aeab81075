/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "matrix.h"

#include <inttypes.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct name {
	uint64_t flag;
	const char *name;
};
#define NAME(flag)          \
	{                   \
		flag, #flag \
	}

/* A3, A9, B12: what is taken where. */
static const struct name tx_taken[] = {
	NAME(FI_REMOTE_CQ_DATA),
	NAME(FI_COMPLETION),
	NAME(FI_MORE),
	NAME(FI_INJECT),
	NAME(FI_INJECT_COMPLETE),
	NAME(FI_TRANSMIT_COMPLETE),
	NAME(FI_DELIVERY_COMPLETE),
	NAME(FI_FENCE),
};
static const struct name rx_taken[] = {
	NAME(FI_COMPLETION),
	NAME(FI_MORE),
	NAME(FI_MULTI_RECV),
	NAME(FI_TRANSMIT_COMPLETE),
};
static const uint64_t tx_defaults[] = {FI_COMPLETION, FI_INJECT, FI_INJECT_COMPLETE,
				       FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE};
static const uint64_t rx_defaults[] = {FI_COMPLETION, FI_MULTI_RECV, FI_TRANSMIT_COMPLETE};

enum {
	PLAIN_SENDS = MX_SENDMSG,
	PLAIN_RECVS = MX_RECVMSG,
	TX_SUBSETS = 1 << COUNT(tx_taken),
	RX_SUBSETS = 1 << COUNT(rx_taken),
	/* each other bit alone, and once more with all that is taken */
	TX_CALLS = PLAIN_SENDS + TX_SUBSETS + 2 * (64 - COUNT(tx_taken)),
	RX_CALLS = PLAIN_RECVS + RX_SUBSETS + 2 * (64 - COUNT(rx_taken)),
	TX_DEFAULTS = 1 << COUNT(tx_defaults),
	RX_DEFAULTS = 1 << COUNT(rx_defaults),
	LENGTHS = 3,
	ROOMS = 4,
	TX_ALL = TX_CALLS * TX_DEFAULTS * LENGTHS,
	RX_ALL = RX_CALLS * RX_DEFAULTS * ROOMS,
	STRIDE = 7919, /* a prime: each receiving combination comes with many sending ones */
};

static uint64_t all_of(const struct name *taken, size_t n)
{
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		all |= taken[i].flag;
	return all;
}

/* The flags of call number @p k: the subsets of what is taken, then the bits that are not. */
static uint64_t flags_of(const struct name *taken, size_t n, unsigned int k)
{
	uint64_t all = all_of(taken, n), flags = 0;
	unsigned int bit = 0, nth;

	if (k < 1u << n) {
		for (size_t i = 0; i < n; i++)
			flags |= k >> i & 1 ? taken[i].flag : 0;
		return flags;
	}
	k -= 1u << n;
	for (nth = k / 2; all >> bit & 1 || nth--; bit++)
		;
	return 1ull << bit | (k % 2 ? all : 0);
}

static uint64_t subset(const uint64_t *of, size_t n, unsigned int k)
{
	uint64_t flags = 0;

	for (size_t i = 0; i < n; i++)
		flags |= k >> i & 1 ? of[i] : 0;
	return flags;
}

/* None, what can be injected, what cannot: in one frame, in several, and announced. */
static size_t length_of(unsigned int kind, unsigned int n)
{
	if (kind == 0)
		return n % 5 ? 0 : 1;
	if (kind == 1)
		return n % 3 ? MX_INJECT_SIZE : 33;
	return n % 211 == 0 ? 70000 : n % 31 == 0 ? 5000 : MX_INJECT_SIZE + 1;
}

unsigned int mx_count(void)
{
	return TX_ALL * MX_PAIRS;
}

struct mx_combo mx_combo(unsigned int number)
{
	unsigned int t = number / MX_PAIRS, r = (unsigned int)((uint64_t)t * STRIDE % RX_ALL);
	unsigned int length = t % LENGTHS, tx_default = t / LENGTHS % TX_DEFAULTS;
	unsigned int room = r % ROOMS, rx_default = r / ROOMS % RX_DEFAULTS;
	struct mx_combo c = {
		.number = number,
		.tx_default = subset(tx_defaults, COUNT(tx_defaults), tx_default),
		.rx_default = subset(rx_defaults, COUNT(rx_defaults), rx_default),
		.send = MX_SENDMSG,
		.recv = MX_RECVMSG,
		.len = length_of(length, t),
		.tx_pieces = t % 7 ? 1 : 3,
		.rx_pieces = t % 11 ? 1 : 2,
		.send_first = t % 13 == 0,
	};

	t /= LENGTHS * TX_DEFAULTS;
	r /= ROOMS * RX_DEFAULTS;
	if (t < PLAIN_SENDS)
		c.send = (enum mx_send)t;
	else
		c.tx_flags = flags_of(tx_taken, COUNT(tx_taken), t - PLAIN_SENDS);
	if (r < PLAIN_RECVS)
		c.recv = (enum mx_recv)r;
	else
		c.rx_flags = flags_of(rx_taken, COUNT(rx_taken), r - PLAIN_RECVS);
	if ((c.tx_flags & FI_MULTICAST) && c.len > MX_INJECT_SIZE)
		c.len = MX_INJECT_SIZE; /* one reason to refuse it at a time */
	/* as long as the message, longer, shorter, none at all (now and then) */
	c.room = c.len + (room == 1 ? 40 : 0);
	if (room == 2)
		c.room /= 2;
	if (room == 3 && number % 3 == 0)
		c.room = 0;
	return c;
}

static void print_flags(const char *what, uint64_t flags)
{
	printf(" %s=", what);
	for (size_t i = 0; i < COUNT(tx_taken); i++)
		if (flags & tx_taken[i].flag) {
			printf("%s|", tx_taken[i].name);
			flags &= ~tx_taken[i].flag;
		}
	if (flags & FI_MULTI_RECV)
		printf("FI_MULTI_RECV|");
	printf("%#" PRIx64, (uint64_t)(flags & ~FI_MULTI_RECV));
}

void mx_print(const struct mx_combo *c)
{
	static const char *sends[] = {"send",	"sendv",      "senddata",
				      "inject", "injectdata", "sendmsg"};
	static const char *recvs[] = {"recv", "recvv", "recvmsg"};
	unsigned int pair = c->number % MX_PAIRS;

	printf("\n    combination %u: %s, tx %s, rx %s,", c->number, pair & 4 ? "MSG" : "RDM",
	       pair & 1 ? "selective" : "full", pair & 2 ? "selective" : "full");
	print_flags("tx op_flags", c->tx_default);
	print_flags("rx op_flags", c->rx_default);
	printf("\n      fi_%s of %zu bytes in %u,", sends[c->send], c->len, c->tx_pieces);
	print_flags("flags", c->tx_flags);
	printf("%s\n      fi_%s of %zu bytes in %u,", c->send_first ? " first" : "", recvs[c->recv],
	       c->room, c->rx_pieces);
	print_flags("flags", c->rx_flags);
	printf("\n      alone: FX_ONLY=%u; with what came before it: FX_ONLY=%u-%u\n", c->number,
	       c->number - c->number % MX_PAIRS > 800 ? c->number - 800 : pair, c->number);
}

/* ---- the oracle ---- */

/* A message takes a posted buffer, or a part of one: B5, C1, D1. */
static void take(struct mx_oracle *o, struct mx_post *p, struct mx_sent *s)
{
	struct mx_entry *e = &o->entries[o->nentries];
	size_t left = p->room - p->used;
	bool cut = s->len > left, last;

	*e = (struct mx_entry){
		.buf = p->buf,
		.at = p->buf + p->used,
		.flags = FI_RECV | FI_MSG | (s->has_data ? FI_REMOTE_CQ_DATA : 0),
		.data = s->data,
		.placed = cut ? left : s->len,
		.len = cut ? left : s->len,
		.olen = cut ? s->len - left : 0,
		.sent = s->number,
		.posted = p->number,
		.multi = p->multi,
		.err = cut ? FI_ETRUNC : 0,
	};
	p->used += e->placed;
	last = !p->multi || cut || p->room - p->used < MX_MIN_MULTI;
	if (p->multi && last)
		e->flags |= FI_MULTI_RECV;
	e->due = !o->rx_selective || p->due || cut || (p->multi && last);
	*(cut ? &o->rx_err : &o->rx_ok) += 1;
	s->received = (int)o->nentries++;
	if (last)
		memmove(p, p + 1, (size_t)(--o->nposted) * sizeof(*p));
}

/* A7, C3: the oldest message takes the oldest receive. */
static void match(struct mx_oracle *o)
{
	while (o->nposted && o->nmatched < o->nsent)
		take(o, &o->posted[0], &o->sent[o->nmatched++]);
}

int mx_expect_send(struct mx_oracle *o, const struct mx_combo *c, void *context, uint64_t data)
{
	bool silent = c->send == MX_INJECT || c->send == MX_INJECTDATA;
	uint64_t flags = c->send == MX_SENDMSG ? c->tx_flags : silent ? 0 : c->tx_default;

	if (flags & FI_MULTICAST) /* B10: the address is a peer's, and a connection has no groups */
		return o->msg || (flags & (FI_FENCE | FI_DELIVERY_COMPLETE)) ? -FI_EBADFLAGS
									     : -FI_EINVAL;
	if (flags & ~all_of(tx_taken, COUNT(tx_taken)))
		return -FI_EBADFLAGS;
	if ((silent || (flags & FI_INJECT)) && c->len > o->inject_size)
		return -FI_EMSGSIZE;
	if (c->send == MX_SENDDATA || c->send == MX_INJECTDATA)
		flags |= FI_REMOTE_CQ_DATA;
	o->sent[o->nsent++] = (struct mx_sent){
		.context = silent ? NULL : context,
		.len = c->len,
		.number = c->number,
		.data = data,
		.has_data = flags & FI_REMOTE_CQ_DATA,
		.due = !silent && (!o->tx_selective || (flags & FI_COMPLETION)),
		.fence = flags & FI_FENCE,
		.delivered = flags & FI_DELIVERY_COMPLETE,
		.received = -1,
	};
	o->tx_ok++;
	match(o);
	/* B8: a message that is only held may be called delivered */
	if (o->nmatched < o->nsent)
		o->sent[o->nsent - 1].delivered = false;
	return 0;
}

int mx_expect_recv(struct mx_oracle *o, const struct mx_combo *c, char *buf)
{
	uint64_t flags = c->recv == MX_RECVMSG ? c->rx_flags : c->rx_default;

	if (flags & ~all_of(rx_taken, COUNT(rx_taken)))
		return -FI_EBADFLAGS;
	if ((flags & FI_MULTI_RECV) && c->recv != MX_RECV && c->rx_pieces > 1)
		return -FI_EINVAL;
	o->posted[o->nposted++] = (struct mx_post){
		.buf = buf,
		.room = c->room,
		.number = c->number,
		.multi = flags & FI_MULTI_RECV,
		.due = flags & FI_COMPLETION,
	};
	match(o);
	return 0;
}

bool mx_in_turn(const struct mx_oracle *o, unsigned int i)
{
	unsigned int fence = i + 1;

	while (fence > 0 && !o->sent[fence - 1].fence)
		fence--;
	for (unsigned int k = 0; k + 1 < fence; k++)
		if (o->sent[k].due && !o->sent[k].seen)
			return false;
	return true;
}

void mx_forget(struct mx_oracle *o)
{
	o->nsent = o->nmatched = o->nentries = 0;
}
