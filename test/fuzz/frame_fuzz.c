/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Any bytes as a received frame, on a port over net_ring: what is taken lies inside the frame, what
 * is answered is sound, and no buffer is lost. The first byte of the input says what of the frame
 * is put right before, since noise alone would hardly get past the addresses and checksums.
 */
#include "pmd_glue/mcast_internal.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "fuzz.h"
#include "port.h"

#define PUT_RIGHT_MAC 1
#define PUT_RIGHT_SUMS 2
#define MAX_FRAME 1600

static struct pmf_port *port;
static struct pmf_queue *q;
static pmf_ns_t now;

/* The groups that are joined; those of make_corpus.py. */
static const uint8_t group4[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
static const uint8_t group6[16] = {0xff, 5, [13] = 1, [15] = 3};

static void start(void)
{
	port = fuzz_port();
	q = &port->queue[0];
	now = PMF_NS_PER_S;
	FUZZ_CHECK(pmf_mcast_join(q, group4, now) >= 0 && pmf_mcast_join(q, group6, now) >= 0);
}

/* What the port answered, as the wire would get it. */
static void check_answers(void)
{
	while (q->nstage > 0) {
		struct rte_mbuf *m = q->stage[--q->nstage];

		FUZZ_CHECK(m->nb_segs == 1 && m->pkt_len == m->data_len && m->data_len >= 42);
		FUZZ_CHECK(memcmp(rte_pktmbuf_mtod(m, uint8_t *) + 6, port->mac, 6) == 0);
		rte_pktmbuf_free(m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t what = size > 0 ? data[0] : 0, *b;
	size_t len = size > 0 ? PMF_MIN(size - 1, MAX_FRAME) : 0;
	struct pmf_frame f;
	struct rte_mbuf *m;

	if (port == NULL)
		start();
	m = fuzz_frame(port, data + 1, len);
	b = rte_pktmbuf_mtod(m, uint8_t *);
	if ((what & PUT_RIGHT_MAC) && len >= 12)
		memcpy(b, port->mac, 6);
	if ((what & PUT_RIGHT_SUMS) && len >= 64)
		fuzz_put_right_sums(b, len);
	now += PMF_NS_PER_MS;
	if (pmf_frame_parse(q, m, &f, now)) {
		FUZZ_CHECK(f.payload >= b && f.payload + f.len <= b + len);
		FUZZ_CHECK(f.src_ip >= b && f.src_ip + (f.v6 ? 16 : 4) <= f.payload);
		FUZZ_CHECK(f.dst_ip >= b && f.dst_ip + (f.v6 ? 16 : 4) <= f.payload);
		FUZZ_CHECK(!f.multicast || f.group < PMF_MCAST_MAX);
		rte_pktmbuf_free(m);
	}
	pmf_mcast_tick(q, now);
	check_answers();
	FUZZ_CHECK(rte_mempool_in_use_count(port->rx_pool) == 0);
	return 0;
}
