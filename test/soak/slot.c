/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Endpoints, and the receives that are posted for them.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

const struct kind kinds[SLOTS] = {
	{.max = 16 << 20, .cap = 16 << 20, .nrecvs = 3, .nsends = 3},
	{.max = 1 << 20, .cap = 1 << 20, .nrecvs = 8, .nsends = 8, .directed = true},
	{.max = 16 << 10, .cap = 16 << 10, .nrecvs = 64, .nsends = 32, .shared = true},
	{.max = 16 << 10,
	 .cap = 16 << 10,
	 .nrecvs = 64,
	 .nsends = 32,
	 .shared = true,
	 .selective = true},
	{.max = 16 << 10, .cap = 256 << 10, .nrecvs = 3, .nsends = 32, .multi = true},
	{.msg = true, .max = 1 << 20, .cap = 1 << 20, .nrecvs = 4, .nsends = 4},
	{.msg = true, .max = 16 << 10, .cap = 16 << 10, .nrecvs = 64, .nsends = 32, .shared = true},
	{.msg = true,
	 .max = 16 << 10,
	 .cap = 16 << 10,
	 .nrecvs = 64,
	 .nsends = 32,
	 .shared = true,
	 .selective = true},
	{.msg = true, .max = 16 << 10, .cap = 256 << 10, .nrecvs = 3, .nsends = 32, .multi = true},
};

/* Touched now, so that no page comes later. */
static uint8_t *bytes_alloc(size_t len)
{
	uint8_t *bytes = malloc(len);

	if (!bytes)
		soak_fail("no memory");
	memset(bytes, 1, len);
	return bytes;
}

static void rxq_init(struct rxq *q, const struct kind *kind)
{
	q->kind = kind;
	q->n = kind->nrecvs;
	for (unsigned int i = 0; i < q->n; i++) {
		q->buf[i].q = q;
		q->buf[i].bytes = bytes_alloc(kind->cap);
	}
}

static void srx_open(bool msg, const struct kind *kind)
{
	struct fi_rx_attr attr = *soak.info[msg]->rx_attr;

	if (soak.srx[msg])
		return;
	MUST(fi_srx_context(soak.domain[msg], &attr, &soak.srx[msg], NULL));
	rxq_init(&soak.shared[msg], kind);
	soak.shared[msg].ep = soak.srx[msg];
}

static struct sockaddr_in address(unsigned int host, unsigned int slot)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(PORT + slot))};

	inet_pton(AF_INET, soak.host[host], &a.sin_addr);
	return a;
}

/* Own slots are addresses 0 …, the other host's follow. */
static void meet(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};

	MUST(fi_av_open(soak.domain[0], &attr, &soak.av, NULL));
	for (unsigned int i = 0; i < DESTS; i++) {
		struct sockaddr_in a = address(i / RDM_SLOTS, i % RDM_SLOTS);
		fi_addr_t addr;

		if (fi_av_insert(soak.av, &a, 1, &addr, 0, NULL) != 1 || addr != i)
			soak_fail("address %u is not taken", i);
	}
}

void slots_init(void)
{
	meet();
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct slot *s = &soak.slot[i];

		s->n = i;
		s->kind = &kinds[i];
		for (unsigned int k = 0; k < s->kind->nsends; k++)
			s->send[k].bytes = bytes_alloc(s->kind->max + 1000);
		if (s->kind->shared) {
			srx_open(s->kind->msg, s->kind);
			s->q = &soak.shared[s->kind->msg];
		} else {
			s->q = &soak.own[i];
			rxq_init(s->q, s->kind);
		}
	}
}

/* ---- receives ---- */

static void post(struct rxq *q, struct buf *b)
{
	bool directed = q->kind->directed && !soak.quiet && soak_chance(4);
	fi_addr_t src = directed ? soak_below(DESTS) : FI_ADDR_UNSPEC;
	struct iovec iov[2] = {{b->bytes, q->kind->cap / 3},
			       {b->bytes + q->kind->cap / 3, q->kind->cap - q->kind->cap / 3}};
	struct iovec all = {b->bytes, q->kind->cap};
	struct fi_msg msg = {.msg_iov = &all, .iov_count = 1, .addr = src, .context = b};
	ssize_t rc;

	if (q->kind->multi)
		rc = fi_recvmsg(q->ep, &msg, FI_MULTI_RECV);
	else if (soak_chance(4))
		rc = fi_recvv(q->ep, iov, NULL, 2, src, b);
	else
		rc = fi_recv(q->ep, b->bytes, q->kind->cap, NULL, src, b);
	if (rc == -FI_EAGAIN || rc == -FI_ENOTCONN)
		return;
	MUST(rc);
	b->posted = true;
	b->post = ++q->posts;
	b->directed = directed;
	b->suspect = b->doomed = false;
	q->posted++;
}

void rxq_post(struct rxq *q)
{
	for (unsigned int i = 0; i < q->n && q->ep && q->posted < q->n; i++)
		if (!q->buf[i].posted)
			post(q, &q->buf[i]);
}

/* A shared queue without an endpoint has nobody to be told. @return whether it was matched before
 */
static bool cancel(struct rxq *q, struct buf *b)
{
	int rc = fi_cancel(&q->ep->fid, b);

	if (rc && rc != -FI_ENOENT && !(rc == -FI_EAGAIN && q->kind->multi) &&
	    !(rc == -FI_EOPBADSTATE && q->kind->shared))
		soak_fail("fi_cancel: %s", fi_strerror(-rc));
	return rc == -FI_ENOENT;
}

void rxq_cancel_one(struct rxq *q)
{
	struct buf *b = &q->buf[soak_below(q->n)];

	if (!q->ep || !b->posted)
		return;
	cancel(q, b);
	/* Shared, somebody has to be there to hear of it. */
	b->suspect = q->kind->shared;
}

void rxq_cancel_odd(struct rxq *q)
{
	for (unsigned int i = 0; i < q->n && q->ep; i++) {
		struct buf *b = &q->buf[i];

		if (b->posted && (b->directed || b->suspect) && cancel(q, b))
			b->doomed = b->suspect;
	}
}

unsigned int rxq_doomed(const struct rxq *q)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < q->n; i++)
		n += q->buf[i].posted && q->buf[i].doomed;
	return n;
}

void rxq_reclaim(struct rxq *q)
{
	for (unsigned int i = 0; i < q->n; i++) {
		struct buf *b = &q->buf[i];

		if (!b->posted || !b->doomed)
			continue;
		b->posted = false;
		q->posted--;
	}
}

/* What was posted on an endpoint that has closed is ours again; of a shared queue, what was being
 * filled. */
static void take_back(struct slot *s)
{
	for (unsigned int i = 0; i < s->q->n; i++) {
		if (s->kind->shared)
			s->q->buf[i].suspect = s->q->buf[i].posted;
		else
			s->q->buf[i].posted = false;
	}
	if (s->kind->shared)
		rxq_cancel_odd(s->q);
	else
		s->q->posted = 0;
	for (unsigned int i = 0; i < s->kind->nsends; i++)
		s->send[i].busy = false;
}

/* ---- endpoints ---- */

static void queues_open(struct slot *s)
{
	struct fid_domain *domain = soak.domain[s->kind->msg];
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_NONE};

	/* Some can be waited for, which has descriptors. */
	cq.wait_obj = s->n % 2 ? FI_WAIT_FD : FI_WAIT_NONE;
	MUST(fi_cq_open(domain, &cq, &s->txcq, NULL));
	MUST(fi_cq_open(domain, &cq, &s->rxcq, NULL));
	MUST(fi_cntr_open(domain, &cntr, &s->txcntr, NULL));
	if (s->kind->msg)
		MUST(fi_eq_open(soak.fabric[1], &eq, &s->eq, NULL));
}

static void queues_bind(struct slot *s)
{
	MUST(fi_ep_bind(s->ep, &s->txcq->fid,
			FI_TRANSMIT | (s->kind->selective ? FI_SELECTIVE_COMPLETION : 0)));
	MUST(fi_ep_bind(s->ep, &s->rxcq->fid, FI_RECV));
	MUST(fi_ep_bind(s->ep, &s->txcntr->fid, FI_SEND));
	MUST(fi_ep_bind(s->ep, s->kind->msg ? &s->eq->fid : &soak.av->fid, 0));
	if (s->kind->shared)
		MUST(fi_ep_bind(s->ep, &soak.srx[s->kind->msg]->fid, 0));
}

void slot_open(struct slot *s, struct fi_info *info)
{
	struct fi_info *own = fi_dupinfo(info);
	struct sockaddr_in a = address(0, s->n);
	size_t min = 4096;

	s->life = soak.life << 20 | s->n << 16 | (++soak.opened & 0xffff);
	s->mate = 0;
	s->taken = s->lost = 0;
	memset(s->dest, 0, sizeof(s->dest));
	memset(s->from, 0, sizeof(s->from));
	queues_open(s);
	own->ep_attr->rx_ctx_cnt = s->kind->shared ? FI_SHARED_CONTEXT : 0;
	MUST(fi_endpoint(soak.domain[s->kind->msg], own, &s->ep, NULL));
	fi_freeinfo(own);
	queues_bind(s);
	if (!s->kind->msg)
		MUST(fi_setname(&s->ep->fid, &a, sizeof(a)));
	if (s->kind->multi)
		MUST(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			       sizeof(min)));
	MUST(fi_enable(s->ep));
	if (!s->kind->shared)
		s->q->ep = s->ep;
	rxq_post(s->q);
	s->state = s->kind->msg ? PENDING : OPEN;
}

bool slot_may_close(const struct slot *s)
{
	return !s->kind->shared || rxq_doomed(s->q) < s->q->n / 4;
}

void slot_close(struct slot *s)
{
	MUST(fi_close(&s->ep->fid));
	s->ep = NULL;
	s->state = EMPTY;
	if (!s->kind->shared)
		s->q->ep = NULL;
	slot_read(s); /* what has ended before */
	take_back(s);
	MUST(fi_close(&s->txcq->fid));
	MUST(fi_close(&s->rxcq->fid));
	MUST(fi_close(&s->txcntr->fid));
	if (s->eq)
		MUST(fi_close(&s->eq->fid));
	s->eq = NULL;
	soak.closed++;
}

static void rxq_free(struct rxq *q)
{
	for (unsigned int i = 0; i < q->n; i++)
		free(q->buf[i].bytes);
}

void slots_fini(void)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct slot *s = &soak.slot[i];

		if (s->ep)
			slot_close(s);
		for (unsigned int k = 0; k < s->kind->nsends; k++)
			free(s->send[k].bytes);
		rxq_free(&soak.own[i]);
	}
	MUST(fi_close(&soak.av->fid));
	for (unsigned int i = 0; i < 2; i++) {
		MUST(fi_close(&soak.srx[i]->fid));
		rxq_free(&soak.shared[i]);
	}
}
