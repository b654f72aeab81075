/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Selective acknowledgement: ranges out of the bitmap of what is held ahead of order, and ranges
 * taken.
 */
#include "proto/flow_private.h"

/* Slots in a word of the bitmaps: windows may be smaller than a word. */
static inline uint32_t word_slots(const struct pmf_flow_active *a)
{
	return PMF_MIN(64u, a->mask + 1);
}

/* First offset in [from, end) from @p base whose bit is @p set; @p end if there is none. */
static uint32_t next_bit(const struct pmf_flow_active *a, pmf_psn_t base, uint32_t from,
			 uint32_t end, bool set)
{
	while (from < end) {
		uint32_t slot = (uint32_t)(base + from) & a->mask, shift = slot & 63;
		uint64_t word = (set ? a->rx_map[slot >> 6] : ~a->rx_map[slot >> 6]) >> shift;

		if (word != 0) {
			from += (uint32_t)__builtin_ctzll(word);
			return PMF_MIN(from, end);
		}
		from += word_slots(a) - shift;
	}
	return end;
}

/*
 * The ranges held ahead of order, at most @p max. When there are more, the next list goes on where
 * this one ended, so that all of them are told in turn.
 */
unsigned int pmf_flow_sack_list(struct pmf_flow *f, struct pmf_sack *out, unsigned int max)
{
	struct pmf_flow_active *a = f->active;
	uint32_t end, first, left = f->ahead, at;
	unsigned int n = 0;
	bool wrapped;

	if (!a || max == 0)
		return 0;
	end = a->mask + 1;
	/* sack_from is a place in the numbers, seen from what is expected now. */
	at = (a->sack_from - (uint32_t)f->rcv_next) & a->mask;
	at = PMF_MAX(at, 1u);
	wrapped = at == 1;
	while (n < max && left != 0) {
		first = next_bit(a, f->rcv_next, at, end, true);
		if (first == end) {
			if (wrapped)
				break;
			wrapped = true;
			at = 1;
			continue;
		}
		at = next_bit(a, f->rcv_next, first, end, false);
		out[n].first = (uint16_t)first;
		out[n].count = (uint16_t)(at - first);
		left -= PMF_MIN(left, at - first);
		n++;
	}
	a->sack_from = left == 0 ? (uint32_t)f->rcv_next + 1 : (uint32_t)f->rcv_next + at;
	return n;
}

/* Bits [slot, slot + n) of one word that are new. */
static uint32_t take_word(struct pmf_flow *f, uint32_t slot, uint32_t n)
{
	struct pmf_flow_active *a = f->active;
	uint64_t *word = &a->tx_map[slot >> 6], fresh;
	uint32_t took = 0;

	fresh = (n == 64 ? UINT64_MAX : ((1ull << n) - 1) << (slot & 63)) & ~*word;
	*word |= fresh;
	for (; fresh != 0; fresh &= fresh - 1) {
		struct pmf_txpkt *p = &a->pkt[(slot & ~63u) + (uint32_t)__builtin_ctzll(fresh)];

		took += pmf_flow_pkt_acked(f, p);
		p->state = PMF_PKT_SACKED;
	}
	return took;
}

/* Packets that the header acknowledges selectively, counted from its `ack`, which is una. */
uint32_t pmf_flow_sack_take(struct pmf_flow *f, const struct pmf_hdr *hdr)
{
	uint32_t outstanding = (uint32_t)(f->psn_next - f->una), took = 0;

	for (unsigned int i = 0; i < hdr->nsack; i++) {
		uint32_t at = hdr->sack[i].first, end = at + hdr->sack[i].count;

		end = PMF_MIN(end, outstanding);
		while (at < end) {
			uint32_t slot = (uint32_t)(f->una + at) & f->active->mask;
			uint32_t n = PMF_MIN(word_slots(f->active) - (slot & 63), end - at);

			took += take_word(f, slot, n);
			at += n;
		}
	}
	return took;
}
