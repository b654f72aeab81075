/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * An open flow whose peer says anything. The input is a list of steps: packets (raw, or a header
 * near what the flow expects with arbitrary records), time, and what an engine does meanwhile.
 * Whatever comes, the flow stays inside its memory, gives each item back once, and keeps its
 * promises.
 */
#include "proto/contact.h"

#include "fuzz.h"
#include "input.h"

#define WINDOW 32
#define ITEMS 64
#define CONN 0x5678000000000001ull
#define PEER_CONN 0x1234000000000001ull

static const struct pmf_flow_conf conf = {
	.ack_delay = 20 * PMF_NS_PER_US,
	.dead_after = 2 * PMF_NS_PER_S,
	.min_rto = PMF_NS_PER_MS,
	.max_rto = 100 * PMF_NS_PER_MS,
	.ack_every = 4,
	.window = WINDOW,
	.eager_limit = 4096,
	.rx_credit = 65536,
	.first_credit = 16384,
	.max_payload = 2000,
};

static struct pmf_flow f;
static struct pmf_flow_stats stats;
static pmf_ns_t now;
static struct pmf_item item[ITEMS];
static bool used[ITEMS];
static uint8_t bytes[20000];
static uint64_t held; /* packets ahead of order that we keep, from rcv_next on */

static void take_done(void)
{
	struct pmf_item *it;

	while ((it = STAILQ_FIRST(&f.done)) != NULL) {
		STAILQ_REMOVE_HEAD(&f.done, link);
		FUZZ_CHECK(it >= item && it < item + ITEMS && used[it - item]);
		FUZZ_CHECK(it->state == PMF_ITEM_DONE && it->status <= 0);
		used[it - item] = false;
	}
	FUZZ_CHECK(f.bad_steps == 0);
	FUZZ_CHECK(f.inflight <= WINDOW && f.psn_next - f.una <= WINDOW);
}

static void lend(void)
{
	const uint32_t window = pmf_flow_window_wanted(&f);

	FUZZ_CHECK(window <= WINDOW && (window != 0) == pmf_flow_needs_active(&f));
	if (window)
		free(pmf_flow_lend(&f, aligned_alloc(64, pmf_flow_active_size(window)), window));
}

static void open_flow(void)
{
	struct pmf_flow_ident id = {.inc = 1, .conn = CONN, .nonce = 3};
	struct pmf_contact c = {.inc = 2, .conn = PEER_CONN, .max_payload = 2000};
	static const uint8_t ip[2][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}};

	memset(&stats, 0, sizeof(stats));
	memset(used, 0, sizeof(used));
	held = 0;
	now = c.cookie_time = PMF_NS_PER_S;
	pmf_addr_set_v4(&id.local, ip[0], 1);
	pmf_addr_set_v4(&id.peer, ip[1], 2);
	c.peer = id.peer;
	pmf_flow_init(&f, &conf, &id, &stats, now);
	pmf_flow_accept(&f, &c, now);
	FUZZ_CHECK(f.state == PMF_FLOW_OPEN);
}

static void send_all(void)
{
	uint8_t buf[2000];
	bool ect;

	lend();
	for (unsigned int n = 0; pmf_flow_wants_tx(&f, now); n++) {
		size_t len = pmf_flow_tx(&f, now, buf, sizeof(buf), &ect, NULL);
		struct pmf_hdr hdr;

		if (len == 0)
			break;
		FUZZ_CHECK(n < 10000);
		FUZZ_CHECK(len <= conf.max_payload && pmf_wire_get(buf, len, &hdr) == 0);
	}
	take_done();
}

static struct pmf_item *free_item(void)
{
	for (unsigned int i = 0; i < ITEMS; i++) {
		if (used[i])
			continue;
		used[i] = true;
		memset(&item[i], 0, sizeof(item[i]));
		return &item[i];
	}
	return NULL;
}

static void push(struct input *in)
{
	struct pmf_item *it = free_item();

	if (it == NULL)
		return;
	it->kind = PMF_ITEM_MSG;
	it->niov = 1;
	it->buf = bytes;
	it->len = word(in) % sizeof(bytes);
	it->flags = byte(in) & PMF_RF_DATA;
	pmf_flow_push(&f, it);
}

static void answer(struct input *in)
{
	struct pmf_item *it = free_item();
	uint64_t msg = f.rx_msg - byte(in);
	uint8_t what = byte(in);

	if (it == NULL)
		return;
	if (what >= 0xe0)
		pmf_flow_control(&f, it, PMF_ITEM_CONNREQ + what % 4, what % 3, bytes, what);
	else if (what & 1)
		pmf_flow_invite(&f, it, msg);
	else
		pmf_flow_hold(&f, it, msg);
}

/* The packet that is next: all of it is read, then it is done; and so on with those that we kept.
 */
static void records(const uint8_t *p, size_t len)
{
	struct pmf_rec_iter it = {p, len};
	struct pmf_rec rec;
	int err;

	while ((err = pmf_flow_next_rec(&f, &it, &rec)) > 0) {
		FUZZ_CHECK(rec.type >= PMF_RT_START && rec.type < PMF_RT_MAX);
		FUZZ_CHECK(rec.len == 0 || (rec.bytes >= p && rec.bytes + rec.len <= p + len));
		if (rec.type == PMF_RT_START)
			FUZZ_CHECK(rec.msg + 1 == f.rx_msg && rec.len <= rec.total);
	}
	if (err < 0) {
		pmf_flow_kill(&f, EPROTO);
		return;
	}
	pmf_flow_rx_done(&f, now);
	held >>= 1;
}

static void rx(const struct pmf_hdr *hdr, uint8_t ecn, bool refuse)
{
	pmf_psn_t psn = UINT64_MAX, next = f.rcv_next;

	pmf_flow_make_room(&f, hdr);
	if (hdr->nsack % 2 == 0)
		lend();
	switch (pmf_flow_rx(&f, hdr, ecn, now, &psn)) {
	case PMF_RX_NEXT:
		FUZZ_CHECK(psn == f.rcv_next && f.rcv_next == next);
		if (refuse) {
			pmf_flow_rx_refuse(&f, psn);
			break;
		}
		records(hdr->body, hdr->body_len);
		/* What we kept is without records here. */
		while (f.state != PMF_FLOW_DEAD && (held & 1))
			records(NULL, 0);
		break;
	case PMF_RX_AHEAD:
		FUZZ_CHECK(psn > f.rcv_next && psn - f.rcv_next < WINDOW);
		FUZZ_CHECK(!(held >> (psn - f.rcv_next) & 1));
		if (refuse)
			pmf_flow_rx_refuse(&f, psn);
		else
			held |= 1ull << (psn - f.rcv_next);
		break;
	case PMF_RX_FLUSH:
		held = 0;
		break;
	default:
		FUZZ_CHECK(f.rcv_next == next || f.state == PMF_FLOW_DEAD);
		break;
	}
}

static void raw_packet(struct input *in)
{
	size_t len = word(in) % 2048;
	uint8_t ecn = byte(in);
	struct pmf_hdr hdr;

	len = PMF_MIN(len, in->left);
	if (pmf_wire_get(in->p, len, &hdr) == 0) {
		if (pmf_wire_has_seq(hdr.type))
			rx(&hdr, ecn, false);
		else if (hdr.type == PMF_PT_CHALLENGE)
			pmf_flow_on_challenge(&f, &hdr, now);
		else if (hdr.type == PMF_PT_RESET && (hdr.flags & PMF_HF_REFUSED))
			pmf_flow_on_refused(&f, &hdr, now);
		else if (hdr.type == PMF_PT_RESET)
			pmf_flow_on_reset(&f, &hdr, now);
	}
	in->p += len;
	in->left -= len;
}

/* Records that are well formed, with numbers near those in use. @return bytes */
static size_t make_records(struct input *in, uint8_t *out, size_t cap)
{
	size_t at = 0, n;

	for (unsigned int count = byte(in) % 6; count > 0; count--) {
		struct pmf_rec rec = {.type = 1 + byte(in) % (PMF_RT_MAX - 1),
				      .len = byte(in),
				      .total = word(in)};
		int8_t delta = (int8_t)byte(in);
		bool ours = rec.type == PMF_RT_INVITE || rec.type == PMF_RT_HOLD;

		rec.flags = byte(in) & PMF_RF_KNOWN;
		rec.msg32 = (uint32_t)((ours ? f.tx_msg : f.rx_msg) + delta / 4);
		rec.off = byte(in) & 1 ? f.rx_off : word(in);
		if ((rec.type > PMF_RT_BODY && rec.type < PMF_RT_CONNREQ) ||
		    (rec.flags & PMF_RF_ANNOUNCE))
			rec.len = 0;
		n = pmf_rec_put(out + at, cap - at, &rec);
		if (n == 0)
			break;
		memset(out + at + n, 0x5a, rec.len);
		at += n + rec.len;
	}
	return at;
}

/* A header whose numbers are near what the flow expects, then the input's bytes as records. */
static void near_packet(struct input *in)
{
	static uint8_t made[2048];
	static const uint8_t types[] = {PMF_PT_DATA,  PMF_PT_DATA, PMF_PT_DATA, PMF_PT_ACK,
					PMF_PT_PROBE, PMF_PT_OPEN, PMF_PT_ACK,	PMF_PT_DATA};
	struct pmf_hdr hdr = {0};
	uint8_t bits = byte(in), refuse = byte(in);
	size_t len;

	hdr.type = types[bits & 7];
	hdr.flags = bits >> 3 & PMF_HF_KNOWN;
	hdr.conn = CONN;
	hdr.psn = (uint32_t)f.rcv_next + (int8_t)byte(in) / 2;
	hdr.txno = (uint32_t)f.rx_txno + (int8_t)byte(in);
	hdr.ack = (uint32_t)f.una + (int8_t)byte(in) / 2;
	hdr.ack_txno = (uint32_t)f.txno_next - byte(in);
	hdr.credit = (uint32_t)f.tx_limit + (int16_t)word(in) / 16;
	hdr.holds = byte(in) / 16;
	hdr.nsack = byte(in) % 4;
	for (unsigned int i = 0; i < hdr.nsack; i++) {
		hdr.sack[i].first = 1 + byte(in) % 64;
		hdr.sack[i].count = 1 + byte(in) % 64;
	}
	hdr.inc = hdr.peer_inc = byte(in) & 3;
	hdr.my_conn = byte(in) & 1 ? PEER_CONN : 7;
	if (refuse & 0x80) {
		hdr.body = made;
		hdr.body_len = (uint32_t)make_records(in, made, sizeof(made));
		rx(&hdr, bits >> 6, refuse % 8 == 1);
		return;
	}
	len = word(in) % 512;
	len = PMF_MIN(len, in->left);
	hdr.body = in->p;
	hdr.body_len = (uint32_t)len;
	rx(&hdr, bits >> 6, refuse % 8 == 1);
	in->p += len;
	in->left -= len;
}

static void step(struct input *in)
{
	switch (byte(in) % 10) {
	case 0:
		raw_packet(in);
		break;
	case 1:
	case 2:
	case 3:
		near_packet(in);
		break;
	case 4:
		now += (pmf_ns_t)word(in) << (byte(in) % 16);
		pmf_flow_on_timer(&f, now);
		break;
	case 5:
		push(in);
		break;
	case 6:
		answer(in);
		break;
	case 7: {
		struct pmf_item *it = &item[byte(in) % ITEMS];

		if (used[it - item] && it->kind == PMF_ITEM_MSG)
			pmf_flow_abort(&f, it);
		break;
	}
	case 8:
		pmf_flow_credit_return(&f, word(in));
		switch (byte(in)) {
		case 0x77:
			pmf_flow_watch(&f, now);
			break;
		case 0x78:
			pmf_flow_idle(&f, now);
		}
		break;
	default:
		send_all();
	}
	take_done();
	lend();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	open_flow();
	while (in.left > 0 && f.state != PMF_FLOW_DEAD)
		step(&in);
	/* However it went, an end gives everything back. */
	pmf_flow_kill(&f, ECONNABORTED);
	take_done();
	for (unsigned int i = 0; i < ITEMS; i++)
		FUZZ_CHECK(!used[i]);
	if (f.active != NULL)
		free(pmf_flow_reclaim(&f));
	return 0;
}
