/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Data packets: cut from a queue the first time, built from the remembered range when sent again.
 * Both write records by put_record(), straight from the bytes of the items. The last bytes of a new
 * packet may be left out, for a device that reads them where they lie.
 */
#include "proto/flow_private.h"

#define NO_ROOM UINT64_MAX
#define MIN_PIECE 64 /* a message is not split for less */
#define HEAD_SHORT sizeof(struct pmf_wire_rec)
#define HEAD_OFFSET sizeof(struct pmf_wire_rec_body)

static inline bool has_bytes(const struct pmf_item *item)
{
	return item->kind == PMF_ITEM_MSG && item->mode != PMF_MODE_ANNOUNCED;
}

/* A record of a connection goes with all its bytes; they are no message's and not counted as such.
 */
static inline size_t program_bytes(const struct pmf_item *item)
{
	return item->kind >= PMF_ITEM_CONNREQ ? item->len : 0;
}

/* Bytes [off, off + len) of the item. */
static void gather(const struct pmf_item *item, uint64_t off, uint64_t len, uint8_t *p)
{
	const struct iovec *iov = item->iov;

	if (pmf_likely(item->niov <= 1)) {
		if (len != 0)
			memcpy(p, (const uint8_t *)item->buf + off, len);
		return;
	}
	for (; off >= iov->iov_len && len != 0; iov++)
		off -= iov->iov_len;
	for (; len != 0; iov++, off = 0) {
		size_t n = PMF_MIN(iov->iov_len - off, len);

		memcpy(p, (const uint8_t *)iov->iov_base + off, n);
		p += n;
		len -= n;
	}
}

/* Where bytes [off, off + len) of the item lie. @return NULL: not in one place */
static const void *lies_at(const struct pmf_item *item, uint64_t off, uint64_t len)
{
	const struct iovec *iov = item->iov;

	if (item->niov <= 1)
		return (const uint8_t *)item->buf + off;
	for (; off >= iov->iov_len; iov++)
		off -= iov->iov_len;
	return len <= iov->iov_len - off ? (const uint8_t *)iov->iov_base + off : NULL;
}

/* Bytes of the message that are to go into the next @left bytes of a packet, or NO_ROOM. */
static uint64_t plan(const struct pmf_flow *f, const struct pmf_item *item, enum pmf_flow_queue q,
		     uint64_t off, size_t left, bool first)
{
	uint64_t rest = item->len - off;
	size_t data = item->flags & PMF_RF_DATA ? 8 : 0, whole = HEAD_SHORT + data, head;

	if (pmf_unlikely(item->aborted || item->kind != PMF_ITEM_MSG))
		return left >= HEAD_SHORT + program_bytes(item) ? 0 : NO_ROOM;
	if (q != PMF_Q_SEND || off != 0) {
		whole = head = HEAD_OFFSET;
	} else {
		head = whole + 8;
		if (item->mode == PMF_MODE_ANNOUNCED)
			return left >= head ? 0 : NO_ROOM;
	}
	if (pmf_likely(rest + whole <= left))
		return rest;
	/* What fits into a packet of its own is not split. */
	if (!first && rest + whole + sizeof(struct pmf_wire_data) <= f->mtu)
		return NO_ROOM;
	return left >= head + MIN_PIECE ? left - head : NO_ROOM;
}

/* Of the record of bytes [off, off + len) the head; what is no message's is written whole.
 * @return bytes written, 0: it does not fit */
static size_t put_head(const struct pmf_item *item, enum pmf_flow_queue q, uint64_t off,
		       uint64_t len, uint8_t *p, size_t left)
{
	static const uint8_t control[] = {
		[PMF_ITEM_INVITE] = PMF_RT_INVITE, [PMF_ITEM_HOLD] = PMF_RT_HOLD,
		[PMF_ITEM_ABORT] = PMF_RT_ABORT,   [PMF_ITEM_CONNREQ] = PMF_RT_CONNREQ,
		[PMF_ITEM_ACCEPT] = PMF_RT_ACCEPT, [PMF_ITEM_REJECT] = PMF_RT_REJECT,
		[PMF_ITEM_CLOSE] = PMF_RT_CLOSE,
	};
	struct pmf_rec rec;
	size_t head;

	rec.msg32 = (uint32_t)item->msg;
	rec.flags = 0;
	rec.kind = PMF_MK_MSG;
	rec.len = (uint32_t)len;
	rec.off = off;
	rec.total = item->len;
	rec.data = item->data;
	if (pmf_unlikely(item->aborted || item->kind != PMF_ITEM_MSG)) {
		rec.type = item->aborted ? PMF_RT_ABORT : control[item->kind];
		rec.len = (uint32_t)program_bytes(item);
		head = pmf_rec_put(p, left, &rec);
		if (rec.len != 0 && head != 0)
			memcpy(p + head, item->buf, rec.len);
		return head + (head ? rec.len : 0);
	}
	if (q == PMF_Q_BODY) {
		rec.type = PMF_RT_BODY;
	} else if (off != 0) {
		rec.type = PMF_RT_CONT;
	} else {
		rec.type = PMF_RT_START;
		rec.flags = item->flags & PMF_RF_DATA;
		if (item->mode == PMF_MODE_ANNOUNCED)
			rec.flags |= PMF_RF_ANNOUNCE;
		else if (len == item->len)
			rec.flags |= PMF_RF_WHOLE;
	}
	return pmf_rec_put(p, left, &rec);
}

/* The record of bytes [off, off + len). @return its bytes, 0: it does not fit */
static size_t put_record(const struct pmf_item *item, enum pmf_flow_queue q, uint64_t off,
			 uint64_t len, uint8_t *p, size_t left)
{
	size_t head = put_head(item, q, off, len, p, left);

	if (pmf_unlikely(head == 0 || item->aborted || item->kind != PMF_ITEM_MSG))
		return head;
	gather(item, off, len, p + head);
	return head + len;
}

/* As put_record(), but bytes that are worth it stay where they are. @return the same */
static size_t put_or_leave(struct pmf_item *item, enum pmf_flow_queue q, uint64_t off, uint64_t len,
			   uint8_t *p, size_t left, struct pmf_piece *piece)
{
	size_t head;

	if (!piece || len < piece->min)
		return put_record(item, q, off, len, p, left);
	piece->bytes = lies_at(item, off, len);
	if (!piece->bytes)
		return put_record(item, q, off, len, p, left);
	head = put_head(item, q, off, len, p, left);
	if (pmf_unlikely(head == 0))
		return 0;
	piece->item = item;
	piece->len = (uint32_t)len;
	return head + len;
}

/* A record follows, at @p end: what was left out goes before it. */
static void fill_in(struct pmf_piece *piece, uint8_t *end)
{
	memcpy(end - piece->len, piece->bytes, piece->len);
	piece->len = 0;
}

/* The common case: an eager message in one piece, without options, that fits. */
static inline bool is_plain(const struct pmf_item *item, uint64_t off, size_t left)
{
	return off == 0 && item->mode == PMF_MODE_EAGER && item->niov <= 1 && item->flags == 0 &&
	       !item->aborted && item->len + HEAD_SHORT <= left;
}

/* As put_record() would write it: type, flags, length and number are one word. */
static inline size_t put_plain(const struct pmf_item *item, uint8_t *p)
{
	uint64_t length = HEAD_SHORT - PMF_WIRE_REC_TLV + item->len;

	pmf_put64(p, (uint64_t)PMF_RT_START << 56 | (uint64_t)PMF_RF_WHOLE << 48 | length << 32 |
			     (uint32_t)item->msg);
	if (item->len != 0)
		memcpy(p + HEAD_SHORT, item->buf, item->len);
	return HEAD_SHORT + item->len;
}

/* Cut as many records from @p q as fit: the range is noted in @p p. */
static void cut_range(struct pmf_flow *f, enum pmf_flow_queue q, struct pmf_txpkt *p, uint8_t *out,
		      size_t left, struct pmf_piece *piece)
{
	const uint64_t short_of = piece ? piece->min : UINT64_MAX;
	uint64_t plain_end = short_of; /* 0 while a piece is left out */
	struct pmf_txq *txq = &f->txq[q];
	struct pmf_item *item = txq->cur;
	uint64_t off = txq->off, take;
	unsigned int most = f->conf->one_record ? 1 : PMF_WIRE_MAX_RECS;
	size_t room = left, n;

	p->first = item;
	p->off = off;
	p->bytes = 0;
	p->nrecs = p->ends = 0;
	while (item && p->nrecs < most) {
		/* (Control has no mode, but is in another queue.) */
		if (pmf_likely(item->mode == PMF_MODE_NONE) && q == PMF_Q_SEND && !item->aborted &&
		    !pmf_flow_admit(f, item))
			break;
		if (pmf_likely(is_plain(item, off, left) && item->len < plain_end)) {
			n = put_plain(item, out);
			out += n;
			left -= n;
			p->nrecs++;
			p->ends++;
			p->bytes += (uint32_t)item->len;
			item = STAILQ_NEXT(item, link);
			continue;
		}
		take = plan(f, item, q, off, left, p->nrecs == 0);
		if (take == NO_ROOM)
			break;
		if (plain_end == 0)
			fill_in(piece, out);
		n = put_or_leave(item, q, off, take, out, left, piece);
		if (pmf_unlikely(n == 0))
			break;
		plain_end = piece && piece->len ? 0 : short_of;
		out += n;
		left -= n;
		p->nrecs++;
		p->bytes += (uint32_t)take;
		off += take;
		if (pmf_unlikely(item->aborted))
			item->len = off; /* may have been cut further before a resynchronisation */
		else if (has_bytes(item) && off < item->len)
			break;
		p->ends++;
		item = STAILQ_NEXT(item, link);
		off = 0;
	}
	txq->cur = item;
	txq->off = off;
	p->size = (uint16_t)(room - left);
	if (!item)
		f->ready &= (uint8_t) ~(1u << q);
}

/* Control first; the others in turn, packet by packet. */
static enum pmf_flow_queue choose(struct pmf_flow *f)
{
	const uint8_t bulk = 1u << PMF_Q_SEND | 1u << PMF_Q_BODY;

	if (pmf_unlikely(f->ready >> PMF_Q_CTL & 1))
		return PMF_Q_CTL;
	if ((f->ready & bulk) == bulk)
		f->turn ^= PMF_Q_SEND ^ PMF_Q_BODY;
	else
		f->turn = f->ready >> PMF_Q_SEND & 1 ? PMF_Q_SEND : PMF_Q_BODY;
	return f->turn;
}

/* The packet leaves, for the first time or again. */
static void launch(struct pmf_flow *f, struct pmf_txpkt *p, pmf_ns_t now)
{
	p->txno = f->txno_next;
	p->sent_at = now;
	p->state = PMF_PKT_SENT;
	pmf_pktlist_append(f->active, &f->active->sent, p);
	f->inflight++;
	f->sent_last = now;
	pmf_flow_sent(f, p->size, now);
	pmf_cc_on_send(&f->cc, now);
	if (f->loss_kind != PMF_LOSS_REORDER)
		pmf_flow_loss_arm(f);
}

/*
 * The peer need not wait for more: the window is used up, or lets out a packet at a time and is in
 * use. Who sends now and then is answered when there is something to say.
 */
static inline bool asks_for_answer(const struct pmf_flow *f)
{
	return !pmf_cc_has_room(&f->cc, f->inflight + 1u) ||
	       (pmf_unlikely(f->cc.interval != 0) && f->cc.cwnd < 16 * PMF_CC_ONE &&
		2 * PMF_CC_ONE * (uint64_t)(f->inflight + 1u) >= f->cc.cwnd);
}

/* Header without selective acknowledgement. @return its size */
static size_t data_header(const struct pmf_flow *f, struct pmf_hdr *hdr, pmf_ns_t now)
{
	if (pmf_likely(!f->intro)) {
		pmf_flow_fill(f, hdr, PMF_PT_DATA, now);
		if (asks_for_answer(f))
			hdr->flags |= PMF_HF_ANSWER;
		return sizeof(struct pmf_wire_data);
	}
	pmf_flow_fill(f, hdr, PMF_PT_OPEN, now);
	pmf_flow_fill_open(f, hdr);
	return pmf_wire_size(PMF_PT_OPEN, 0);
}

/* More than half of the window is in use: a larger one is wanted before it is full. */
static void outgrow(struct pmf_flow *f)
{
	uint32_t window = f->active->mask + 1;

	if (window < f->conf->window)
		pmf_flow_want_window(f, 4 * window);
}

size_t pmf_flow_cut(struct pmf_flow *f, pmf_ns_t now, uint8_t *buf, size_t cap,
		    struct pmf_piece *piece)
{
	struct pmf_txpkt *p = pmf_pkt(f->active, f->psn_next);
	struct pmf_hdr hdr;
	size_t head = data_header(f, &hdr, now);
	enum pmf_flow_queue q;

	if (pmf_unlikely(cap < f->mtu))
		return 0;
	if (pmf_unlikely(f->ahead != 0)) {
		hdr.nsack = (uint8_t)pmf_flow_sack_list(f, hdr.sack, PMF_WIRE_MAX_SACK);
		head += hdr.nsack * sizeof(struct pmf_wire_sack);
	}
	do {
		q = choose(f);
		cut_range(f, q, p, buf + head, f->mtu - head, piece);
	} while (pmf_unlikely(p->nrecs == 0) && f->ready);
	if (pmf_unlikely(p->nrecs == 0)) {
		if (f->blocked && f->una == f->psn_next)
			pmf_flow_stalled(f, now);
		return 0;
	}
	pmf_wire_put(buf, head, &hdr);
	if (f->una == f->psn_next)
		pmf_flow_due(f, now);
	p->queue = (uint8_t)q;
	p->tries = 1;
	f->psn_next++;
	launch(f, p, now);
	if (pmf_unlikely(2 * (f->psn_next - f->una) > f->active->mask + 1))
		outgrow(f);
	f->stats->tx_packets++;
	f->stats->tx_bytes += p->bytes;
	if (pmf_unlikely(f->ready && f->pl.ceiling > f->mtu))
		pmf_flow_mtu_full(f, now);
	return head + p->size - (piece ? piece->len : 0);
}

/* Build the range of @p p again. @return bytes, 0: it does not fit, which a sender's bug alone
 * makes */
static size_t rebuild(const struct pmf_txpkt *p, uint8_t *out, size_t left)
{
	const struct pmf_item *item = p->first;
	uint64_t off = p->off, bytes = p->bytes, take;
	size_t room = left, n;

	for (unsigned int i = 0; i < p->nrecs; i++) {
		take = has_bytes(item) ? PMF_MIN(item->len - off, bytes) : 0;
		n = put_record(item, p->queue, off, take, out, left);
		if (n == 0)
			return 0;
		out += n;
		left -= n;
		bytes -= take;
		off = 0;
		item = STAILQ_NEXT(item, link);
	}
	return room - left;
}

size_t pmf_flow_again(struct pmf_flow *f, struct pmf_txpkt *p, pmf_ns_t now, uint8_t *buf,
		      size_t cap)
{
	struct pmf_flow_active *a = f->active;
	struct pmf_hdr hdr;
	size_t head = data_header(f, &hdr, now), n;
	uint32_t slot = (uint32_t)(p - a->pkt), spare;

	cap = PMF_MIN(cap, (size_t)f->conf->max_payload - f->id.tail);
	hdr.psn = (uint32_t)(f->una + ((slot - (uint32_t)f->una) & a->mask));
	/* Selective acknowledgement takes only what the records leave: their size is given. */
	if (f->ahead != 0 && head + p->size < f->mtu) {
		spare = (uint32_t)((f->mtu - head - p->size) / sizeof(struct pmf_wire_sack));
		hdr.nsack =
			(uint8_t)pmf_flow_sack_list(f, hdr.sack, PMF_MIN(spare, PMF_WIRE_MAX_SACK));
		head += hdr.nsack * sizeof(struct pmf_wire_sack);
	}
	n = cap > head ? rebuild(p, buf + head, cap - head) : 0;
	if (n == 0 || pmf_wire_put(buf, head, &hdr) == 0)
		return 0;
	if (p->state == PMF_PKT_LOST) {
		pmf_pktlist_remove(a, &a->lost, p);
		f->lost--;
	} else {
		pmf_pktlist_remove(a, &a->sent, p);
		f->inflight--;
	}
	if (p->tries != UINT8_MAX)
		p->tries++;
	launch(f, p, now);
	f->stats->tx_retrans++;
	return head + n;
}
