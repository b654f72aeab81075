/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Sealed packets, and somebody on the way. The input is a list of steps: packets sealed by a peer,
 * given on as they are, changed, cut, again, late, under other addresses; keys that roll on either
 * side; bytes of his own. What comes through is what was sent, once, and while its key is taken.
 */
#include "seal/seal.h"

#include "fuzz.h"
#include "input.h"

#define KEPT 16
#define TEXT_MAX 256
#define PACKET_MAX 1400

/* A packet that its sender has sealed. */
struct packet {
	size_t len;
	uint8_t bytes[PACKET_MAX];
	uint16_t key;
	uint64_t txno; /* 0: outside flows */
	bool taken;
};

static const struct pmf_seal_ends ends = {.from = {1}, .to = {2}, .to_port = 7};
static const struct pmf_seal_ends other_ends = {.from = {1}, .to = {3}, .to_port = 7};
static const char *const keys[] = {"00\n", "00\n01\n", "01\n00\n", "01\n", "02\n01\n00\n", "02\n"};

static struct pmf_keyring *tx_ring, *rx_ring;
static struct pmf_seal *tx, *rx;
static struct pmf_flow tx_flow;
static struct packet kept[KEPT];
static unsigned int nkept;

static struct pmf_key_list list_of(unsigned int i)
{
	struct pmf_key_list l;
	char err[100];

	FUZZ_CHECK(pmf_keys_parse(keys[i % PMF_ARRAY_SIZE(keys)], &l, err, sizeof(err)) == 0);
	return l;
}

static void start(bool encrypt)
{
	struct pmf_key_list l = list_of(0);

	FUZZ_CHECK(pmf_crypt_init() == 0);
	FUZZ_CHECK(pmf_keyring_open(&l, encrypt, &tx_ring) == 0);
	FUZZ_CHECK(pmf_keyring_open(&l, encrypt, &rx_ring) == 0);
	tx = pmf_seal_open(tx_ring, &ends);
	rx = pmf_seal_open(rx_ring, &other_ends);
	FUZZ_CHECK(tx && rx);
	memset(&tx_flow, 0, sizeof(tx_flow));
	tx_flow.id.inc = 11;
	tx_flow.id.conn = 12;
	tx_flow.peer_inc = 13;
	tx_flow.seed = 14;
	tx_flow.bound = true;
	tx_flow.txno_next = 1;
	FUZZ_CHECK(pmf_seal_bind(tx, &tx_flow) == 0);
	nkept = 0;
}

static void stop(void)
{
	pmf_seal_close(tx);
	pmf_seal_close(rx);
	pmf_keyring_close(tx_ring);
	pmf_keyring_close(rx_ring);
}

/* ---- the peer ---- */

static void send_packet(struct input *in, uint8_t type)
{
	struct packet *p = &kept[nkept++ % KEPT];
	struct pmf_hdr hdr = {.type = type, .conn = 9, .port = 5, .max_payload = 1400};
	size_t n;

	hdr.inc = tx_flow.id.inc;
	hdr.my_conn = tx_flow.id.conn;
	hdr.peer_inc = tx_flow.peer_inc;
	hdr.seed = tx_flow.seed;
	hdr.nsack = pmf_wire_has_seq(type) ? byte(in) % 3 : 0;
	for (unsigned int i = 0; i < hdr.nsack; i++)
		hdr.sack[i] = (struct pmf_sack){1, 1};
	p->taken = false;
	p->txno = 0;
	if (pmf_wire_has_seq(type)) {
		hdr.txno = (uint32_t)tx_flow.txno_next;
		p->txno = tx_flow.txno_next++;
	}
	n = pmf_wire_put(p->bytes, sizeof(p->bytes), &hdr);
	FUZZ_CHECK(n != 0);
	n += bytes_of(in, p->bytes + n, byte(in) % TEXT_MAX);
	p->len = p->txno ? pmf_seal_tx(tx, &tx_flow, p->bytes, n)
			 : pmf_seal_contact(tx_ring, 0, &ends, p->bytes, n);
	FUZZ_CHECK(p->len == n + PMF_WIRE_TAG);
	p->key = tx_ring->key[0]->id;
}

static void roll(struct pmf_keyring *ring, struct pmf_seal *seal, uint8_t to)
{
	struct pmf_key_list l = list_of(to);
	struct pmf_keyring gone;

	if (pmf_keyring_change(ring, &l, &gone) != 0)
		return;
	FUZZ_CHECK(pmf_seal_roll(seal) == 0);
	pmf_keyring_drop(&gone);
}

/* ---- the receiver ---- */

/* As an engine asks. @return whether it may be looked at */
static bool take(const struct pmf_hdr *hdr, const struct pmf_seal_ends *from, uint8_t *p,
		 size_t len)
{
	if (!hdr->key)
		return false;
	if (!pmf_wire_has_seq(hdr->type))
		return pmf_seal_contact_check(rx_ring, hdr, from, p, len) == PMF_SEAL_OK;
	if (hdr->type == PMF_PT_OPEN)
		return pmf_seal_rx_open(rx, hdr, from, 13, p, len) == PMF_SEAL_OK;
	return pmf_seal_rx(rx, hdr, p, len) == PMF_SEAL_OK;
}

/* Its number can be told, and is not too old. The first one of all has none before it. */
static bool is_in_window(uint64_t txno, bool known)
{
	uint64_t newest = rx->replay.newest;

	if (!known)
		return txno <= UINT32_MAX;
	return txno > newest ? txno - newest <= INT32_MAX : newest - txno < PMF_REPLAY_WINDOW;
}

/* Must it be taken? */
static bool is_due(const struct packet *p, const struct pmf_hdr *hdr, bool known)
{
	if (!pmf_keyring_find(rx_ring, p->key))
		return false;
	if (!p->txno)
		return true;
	return !p->taken && is_in_window(p->txno, known) && (known || hdr->type == PMF_PT_OPEN);
}

static void give_on(struct packet *p)
{
	uint8_t copy[PACKET_MAX];
	bool known = rx->rx_known, due;
	struct pmf_hdr hdr;

	memcpy(copy, p->bytes, p->len);
	FUZZ_CHECK(pmf_wire_get(copy, p->len, &hdr) == 0);
	due = is_due(p, &hdr, known);
	FUZZ_CHECK(take(&hdr, &ends, copy, p->len) == due);
	p->taken |= due && p->txno != 0;
	if (!due || !p->txno)
		return;
	/* Sealed again under the same number it is the same packet: the text has come back. */
	if (tx->tx.key && tx->tx.key->id == p->key) {
		struct pmf_flow f = tx_flow;

		f.txno_next = p->txno + 1;
		FUZZ_CHECK(pmf_seal_tx(tx, &f, copy, p->len - PMF_WIRE_TAG) == p->len);
		FUZZ_CHECK(memcmp(copy, p->bytes, p->len) == 0);
	}
}

/* What nobody with the key has made. */
static void forged(uint8_t *bytes, size_t len, const struct pmf_seal_ends *from)
{
	struct pmf_hdr hdr;

	if (pmf_wire_get(bytes, len, &hdr) == 0)
		FUZZ_CHECK(!take(&hdr, from, bytes, len));
}

static void change(struct input *in, const struct packet *p)
{
	uint8_t copy[PACKET_MAX + 32];
	size_t at = word(in) % p->len, len = p->len;

	memcpy(copy, p->bytes, len);
	copy[at] ^= byte(in) | 1;
	forged(copy, len, &ends);
}

static void cut(struct input *in, const struct packet *p)
{
	uint8_t copy[PACKET_MAX + 32] = {0};
	size_t len = word(in) % (p->len + 32);

	if (len == p->len)
		return;
	memcpy(copy, p->bytes, PMF_MIN(len, p->len));
	forged(copy, len, &ends);
}

/* The right bytes from somewhere else; a flow's addresses count when its keys are made. */
static void elsewhere(const struct packet *p)
{
	uint8_t copy[PACKET_MAX];

	if (p->txno && rx->rx_known)
		return;
	memcpy(copy, p->bytes, p->len);
	forged(copy, p->len, &other_ends);
}

static void raw(struct input *in)
{
	uint8_t copy[PACKET_MAX];
	size_t len = bytes_of(in, copy, word(in) % sizeof(copy));

	forged(copy, len, &ends);
}

static void step(struct input *in)
{
	static const uint8_t types[] = {PMF_PT_DATA,	  PMF_PT_ACK,	PMF_PT_PROBE, PMF_PT_HELLO,
					PMF_PT_CHALLENGE, PMF_PT_RESET, PMF_PT_OPEN,  PMF_PT_DATA};
	uint8_t what = byte(in);
	struct packet *p = &kept[byte(in) % KEPT];
	bool any = (unsigned int)(p - kept) < nkept;

	switch (what % 10) {
	case 0:
	case 1:
		send_packet(in, types[byte(in) % PMF_ARRAY_SIZE(types)]);
		break;
	case 2:
	case 3:
		if (any)
			give_on(p);
		break;
	case 4:
		if (any)
			change(in, p);
		break;
	case 5:
		if (any)
			cut(in, p);
		break;
	case 6:
		if (any)
			elsewhere(p);
		break;
	case 7:
		roll(tx_ring, tx, byte(in));
		break;
	case 8:
		roll(rx_ring, rx, byte(in));
		break;
	default:
		if (what & 0x80)
			tx_flow.txno_next += (uint64_t)word(in) << (what >> 3 & 15);
		else
			raw(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	start(byte(&in) & 1);
	while (in.left > 0)
		step(&in);
	stop();
	return 0;
}
