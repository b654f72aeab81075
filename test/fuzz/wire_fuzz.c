/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Any bytes as a packet: the decoders stay inside, and what they take, the encoders write again.
 */
#include "proto/wire.h"

#include "fuzz.h"

static void check_record(const uint8_t *p, size_t left, const struct pmf_rec *rec, int n)
{
	uint8_t head[64];
	struct pmf_rec again;
	size_t size;

	FUZZ_CHECK(n >= PMF_WIRE_REC_TLV && (size_t)n <= left);
	if (rec->type == 0)
		return;
	FUZZ_CHECK(rec->len == 0 || (rec->bytes > p && rec->bytes + rec->len == p + n));
	FUZZ_CHECK(rec->type != PMF_RT_START || rec->len <= rec->total);
	FUZZ_CHECK(rec->off + rec->len >= rec->off);
	size = pmf_rec_put(head, sizeof(head) + rec->len, rec);
	if (size == 0) {
		FUZZ_CHECK(rec->len > UINT16_MAX - 64);
		return;
	}
	FUZZ_CHECK(size <= sizeof(head) && size == pmf_rec_size(rec));
	/* The head alone claims bytes that are not there, unless there are none. */
	FUZZ_CHECK(pmf_rec_get(head, size, &again) == (rec->len == 0 ? (int)size : -EBADMSG));
	if (rec->len != 0)
		return;
	FUZZ_CHECK(again.type == rec->type && again.kind == rec->kind && again.off == rec->off);
	FUZZ_CHECK(again.total == rec->total && again.data == rec->data);
	FUZZ_CHECK(again.msg32 == rec->msg32);
}

static void check_header(const struct pmf_hdr *hdr, const uint8_t *data, size_t size)
{
	uint8_t buf[1024] = {0};
	struct pmf_hdr again;
	size_t n = pmf_wire_put(buf, sizeof(buf), hdr), tail = hdr->key ? PMF_WIRE_TAG : 0;

	FUZZ_CHECK(hdr->body >= data && hdr->body + hdr->body_len + tail == data + size);
	FUZZ_CHECK(n != 0 && n == pmf_wire_size(hdr->type, hdr->nsack));
	FUZZ_CHECK(pmf_wire_get(buf, n + tail, &again) == 0);
	again.body = hdr->body;
	again.body_len = hdr->body_len;
	FUZZ_CHECK(memcmp(hdr, &again, offsetof(struct pmf_hdr, sack)) == 0);
	FUZZ_CHECK(memcmp(hdr->sack, again.sack, hdr->nsack * sizeof(again.sack[0])) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data;
	struct pmf_hdr hdr;
	struct pmf_rec rec;
	size_t left = size;
	int n;

	memset(&hdr, 0, sizeof(hdr));
	if (pmf_wire_get(data, size, &hdr) == 0) {
		check_header(&hdr, data, size);
		p = hdr.body;
		left = hdr.body_len;
	}
	for (; left > 0 && (n = pmf_rec_get(p, left, &rec)) > 0; p += n, left -= n)
		check_record(p, left, &rec, n);
	return 0;
}
