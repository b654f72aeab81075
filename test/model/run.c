/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "run_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GUARD 16 /* bytes behind a receive buffer */
#define FILLER 0x5a
#define POISON 0xdd
#define LOOK 16384 /* of a buffer that is ours again so much is looked at for late writes */

static struct run run;

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the environment ---- */

static int get_info(enum fi_ep_type type, uint64_t caps, struct fi_info **info)
{
	struct fi_info *h = fi_allocinfo();
	int rc;

	h->caps = caps;
	h->addr_format = FI_SOCKADDR_IN;
	h->ep_attr->type = type;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->tx_attr->inject_size = INJECT_MAX;
	h->fabric_attr->prov_name = strdup("pmf");
	rc = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, info);
	fi_freeinfo(h);
	return rc;
}

static int side_open(struct run_side *s, enum fi_ep_type type, uint64_t caps)
{
	int rc = get_info(type, caps, &s->info);

	if (!rc)
		rc = fi_fabric(s->info->fabric_attr, &s->fabric, NULL);
	if (!rc)
		rc = fi_domain(s->fabric, s->info, &s->domain, NULL);
	return rc;
}

static int side_close(struct run_side *s)
{
	int rc = fi_close(&s->domain->fid);

	if (!rc)
		rc = fi_close(&s->fabric->fid);
	fi_freeinfo(s->info);
	return rc;
}

int run_open(struct run_env *env)
{
	int rc = side_open(&env->rdm, FI_EP_RDM,
			   FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_FENCE);

	if (!rc)
		rc = side_open(&env->msg, FI_EP_MSG, FI_MSG | FI_MULTI_RECV | FI_FENCE);
	if (rc)
		fprintf(stderr, "pmf-model: no domain: %s\n", fi_strerror(-rc));
	return rc;
}

int run_close(struct run_env *env)
{
	int rc = side_close(&env->msg);

	if (!rc)
		rc = side_close(&env->rdm);
	if (rc)
		fprintf(stderr, "pmf-model: fi_close of the domain: %s\n", fi_strerror(-rc));
	return rc;
}

/* ---- endpoints ---- */

static struct run_side *side(const struct run *r)
{
	return r->p->msg ? &r->env->msg : &r->env->rdm;
}

static const char key[] = "what all of them have, but strangers";

struct fi_info *run_info(struct run *r, unsigned int slot)
{
	struct fi_info *info = fi_dupinfo(side(r)->info);

	info->tx_attr->size = r->p->tx_size;
	info->rx_attr->size = r->p->rx_size;
	info->ep_attr->rx_ctx_cnt = r->p->shared ? FI_SHARED_CONTEXT : 0;
	if (r->p->keyed && !(r->p->strangers >> slot & 1)) {
		info->ep_attr->auth_key = (uint8_t *)strdup(key);
		info->ep_attr->auth_key_size = sizeof(key) - 1;
	}
	return info;
}

static void open_queues(struct run *r, struct life *l)
{
	struct fid_domain *domain = side(r)->domain;
	struct fi_cq_attr cq = {.size = r->p->cq_size, .format = FI_CQ_FORMAT_DATA};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_NONE};

	MUST(r, fi_cq_open(domain, &cq, &l->txcq, NULL));
	MUST(r, fi_cq_open(domain, &cq, &l->rxcq, NULL));
	MUST(r, fi_cntr_open(domain, &cntr, &l->txcntr, NULL));
	MUST(r, fi_cntr_open(domain, &cntr, &l->rxcntr, NULL));
	if (r->p->msg)
		MUST(r, fi_eq_open(side(r)->fabric, &eq, &l->eq, NULL));
	else if (!r->p->shared)
		MUST(r, fi_av_open(domain, &av, &l->av, NULL));
}

static void bind_ep(struct run *r, struct life *l)
{
	uint64_t selective = r->p->selective ? FI_SELECTIVE_COMPLETION : 0;

	MUST(r, fi_ep_bind(l->ep, &l->txcq->fid, FI_TRANSMIT | selective));
	MUST(r, fi_ep_bind(l->ep, &l->rxcq->fid, FI_RECV));
	MUST(r, fi_ep_bind(l->ep, &l->txcntr->fid, FI_SEND));
	MUST(r, fi_ep_bind(l->ep, &l->rxcntr->fid, FI_RECV));
	if (r->p->msg)
		MUST(r, fi_ep_bind(l->ep, &l->eq->fid, 0));
	else
		MUST(r, fi_ep_bind(l->ep, r->one_av ? &r->one_av->fid : &l->av->fid, 0));
	if (r->srx)
		MUST(r, fi_ep_bind(l->ep, &r->srx->fid, 0));
}

int run_open_ep(struct run *r, unsigned int slot, struct fi_info *info)
{
	int n = model_open(&r->m, slot);
	struct life *l = &r->life[n];

	open_queues(r, l);
	if (!failed(r))
		MUST(r, fi_endpoint(side(r)->domain, info, &l->ep, NULL));
	if (!failed(r))
		bind_ep(r, l);
	return n;
}

static void open_ep(struct run *r, unsigned int slot, bool again)
{
	struct fi_info *info = run_info(r, slot);
	struct life *l = &r->life[run_open_ep(r, slot, info)];

	fi_freeinfo(info);
	if (failed(r))
		return;
	if (again)
		MUST(r, fi_setname(&l->ep->fid, r->name[slot], r->namelen[slot]));
	MUST(r, fi_enable(l->ep));
	r->namelen[slot] = sizeof(r->name[slot]);
	MUST(r, fi_getname(&l->ep->fid, r->name[slot], &r->namelen[slot]));
}

/* An endpoint's address is its slot in everybody's table. */
static void meet(struct run *r, struct fid_av *av)
{
	for (unsigned int slot = 0; slot < r->p->neps && !failed(r); slot++) {
		fi_addr_t addr = FI_ADDR_NOTAVAIL;

		if (fi_av_insert(av, r->name[slot], 1, &addr, 0, NULL) != 1 || addr != slot)
			model_fail(&r->m, "address %u became %llu", slot, (unsigned long long)addr);
	}
}

static void share(struct run *r)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_rx_attr attr = *side(r)->info->rx_attr;

	if (!r->p->shared)
		return;
	attr.size = r->p->rx_size;
	MUST(r, fi_srx_context(side(r)->domain, &attr, &r->srx, NULL));
	if (!r->p->msg)
		MUST(r, fi_av_open(side(r)->domain, &av, &r->one_av, NULL));
}

/* Where this life's receives are posted and cancelled, and what they are told. */
static struct fid_ep *rx_of(const struct run *r, int n)
{
	return r->srx ? r->srx : r->life[n].ep;
}

static void poison(struct run *r, int msg)
{
	if (!r->sent[msg])
		return;
	memset(r->sent[msg], POISON, r->m.msg[msg].len);
	free(r->sent[msg]);
	r->sent[msg] = NULL;
}

static uint64_t sum(const struct run *r, int recv)
{
	uint64_t len = r->m.recv[recv].cap, s = 1, word;

	len = len < LOOK ? len : LOOK;
	for (uint64_t at = 0; at + 8 <= len + GUARD; at += 8) {
		memcpy(&word, r->recv[recv] + at, 8);
		s = (s ^ word) * 0xd1342543de82ef95ull;
	}
	return s | 1;
}

/* Its buffers are ours from now on: what is read or written of them shows. */
void run_close_ep(struct run *r, int n)
{
	struct life *l = &r->life[n];

	MUST(r, fi_close(&l->ep->fid));
	l->ep = NULL;
	model_close(&r->m, n);
	for (int i = 0; i < r->m.nmsgs; i++)
		if (r->m.msg[i].from == n)
			poison(r, i);
	for (int i = 0; i < r->m.nrecvs; i++)
		if (!r->srx && r->m.recv[i].queue == n && !r->sum[i])
			r->sum[i] = sum(r, i);
}

static void close_queues(struct run *r, struct life *l)
{
	if (l->txcq)
		MUST(r, fi_close(&l->txcq->fid));
	if (l->rxcq)
		MUST(r, fi_close(&l->rxcq->fid));
	if (l->txcntr)
		MUST(r, fi_close(&l->txcntr->fid));
	if (l->rxcntr)
		MUST(r, fi_close(&l->rxcntr->fid));
	if (l->av)
		MUST(r, fi_close(&l->av->fid));
	if (l->eq)
		MUST(r, fi_close(&l->eq->fid));
}

/* ---- posting ---- */

static unsigned int cut(struct iovec *iov, uint8_t *bytes, size_t len, bool pieces)
{
	size_t parts[4] = {len / 3, 0, len / 2, len - len / 3 - len / 2}, at = 0;

	if (!pieces) {
		iov[0] = (struct iovec){bytes, len};
		return 1;
	}
	for (unsigned int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){bytes + at, parts[i]};
		at += parts[i];
	}
	return 4;
}

static uint64_t fi_flags(const struct run *r, const struct step *s)
{
	return (s->flags & SF_DATA ? FI_REMOTE_CQ_DATA : 0) |
	       (s->flags & SF_INJECT_FLAG ? FI_INJECT : 0) | (s->flags & SF_FENCE ? FI_FENCE : 0) |
	       (s->flags & SF_MORE ? FI_MORE : 0) | (s->flags & SF_EARLY ? FI_INJECT_COMPLETE : 0) |
	       (s->flags & SF_DELIVERY ? FI_DELIVERY_COMPLETE : 0) |
	       (r->p->selective && !(s->flags & SF_SILENT) ? FI_COMPLETION : 0);
}

/* By the simplest call that says all of it. */
static ssize_t call_send(struct run *r, struct fid_ep *ep, const struct step *s, uint8_t *bytes,
			 uint64_t data, void *context)
{
	uint64_t flags = fi_flags(r, s);
	struct iovec iov[4];
	size_t n = cut(iov, bytes, s->len, s->flags & SF_PIECES);
	struct fi_msg msg = {
		.msg_iov = iov, .iov_count = n, .addr = s->peer, .context = context, .data = data};

	if (s->flags & SF_INJECT)
		return s->flags & SF_DATA ? fi_injectdata(ep, bytes, s->len, data, s->peer)
					  : fi_inject(ep, bytes, s->len, s->peer);
	if (flags == 0 && n > 1)
		return fi_sendv(ep, iov, NULL, n, s->peer, context);
	if (flags == 0)
		return fi_send(ep, bytes, s->len, NULL, s->peer, context);
	if (flags == FI_REMOTE_CQ_DATA && n == 1)
		return fi_senddata(ep, bytes, s->len, NULL, data, s->peer, context);
	return fi_sendmsg(ep, &msg, flags);
}

static void poll_life(struct run *r, int n, unsigned int most);

static void refused(struct run *r, int n, ssize_t rc)
{
	if (rc == -FI_ENOTCONN && r->p->msg)
		model_refused(&r->m, n);
	else if (rc != -FI_EAGAIN)
		model_fail(&r->m, "life %d: posting: %s", n, fi_strerror((int)-rc));
}

static void do_send(struct run *r, const struct step *s)
{
	int n = r->m.life_of[s->ep], msg = r->m.nmsgs;
	uint64_t id = model_next_id(&r->m);
	uint8_t *bytes = malloc(s->len + 8);
	ssize_t rc = -FI_EAGAIN;

	model_bytes(id, bytes, s->len);
	for (int tries = 0; rc == -FI_EAGAIN && tries < 3; tries++) {
		if (tries)
			poll_life(r, n, 1);
		rc = call_send(r, r->life[n].ep, s, bytes, id, &r->sent_token[msg]);
	}
	if (rc) {
		free(bytes);
		refused(r, n, rc);
		return;
	}
	r->sent[model_sent(&r->m, n, s)] = bytes;
	if (s->flags & (SF_INJECT | SF_INJECT_FLAG))
		poison(r, msg);
}

static int do_recv(struct run *r, const struct step *s, bool sweep)
{
	int n = r->m.life_of[s->ep], i = r->m.nrecvs;
	fi_addr_t src = s->peer == ANY ? FI_ADDR_UNSPEC : s->peer;
	struct fid_ep *ep = rx_of(r, n);
	uint8_t *bytes;
	struct iovec iov[4];
	size_t niov;
	ssize_t rc;

	if (i == MAX_RECVS)
		return 0;
	bytes = malloc(s->len + GUARD);
	memset(bytes, FILLER, s->len + GUARD);
	niov = cut(iov, bytes, s->len, s->flags & SF_PIECES);
	if (s->flags & SF_MULTI) {
		struct fi_msg msg = {
			.msg_iov = iov, .iov_count = 1, .addr = src, .context = &r->token[i]};

		rc = fi_recvmsg(ep, &msg, FI_MULTI_RECV);
	} else if (niov > 1) {
		rc = fi_recvv(ep, iov, NULL, niov, src, &r->token[i]);
	} else {
		rc = fi_recv(ep, bytes, s->len, NULL, src, &r->token[i]);
	}
	if (rc) {
		free(bytes);
		refused(r, n, rc);
		return 0;
	}
	r->recv[i] = bytes;
	r->sweep[i] = sweep;
	model_posted(&r->m, n, s);
	return 1;
}

/* ---- reading ---- */

static void guard(struct run *r, int n)
{
	const uint8_t *behind = r->recv[n] + r->m.recv[n].cap;

	for (int i = 0; i < GUARD; i++)
		if (behind[i] != FILLER)
			model_fail(&r->m, "receive %d: written behind its end", n);
}

/* One entry of a queue. @return whether there was one */
static bool take(struct run *r, struct fid_cq *cq, struct model_entry *e, void **context,
		 void **buf)
{
	struct fi_cq_data_entry ok = {0};
	struct fi_cq_err_entry err = {0};
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	ssize_t rc = fi_cq_readfrom(cq, &ok, 1, &src);

	memset(e, 0, sizeof(*e));
	if (rc == -FI_EAGAIN)
		return false;
	r->read++;
	if (rc == 1) {
		*context = ok.op_context;
		*buf = ok.buf;
		*e = (struct model_entry){.flags = ok.flags,
					  .len = ok.len,
					  .data = ok.data,
					  .src = src == FI_ADDR_NOTAVAIL ? NOBODY : (int)src};
		return true;
	}
	if (rc != -FI_EAVAIL || fi_cq_readerr(cq, &err, 0) != 1) {
		model_fail(&r->m, "reading a queue: %zd", rc);
		return false;
	}
	*context = err.op_context;
	*buf = err.buf;
	*e = (struct model_entry){.err = err.err,
				  .flags = err.flags,
				  .len = err.len,
				  .olen = err.olen,
				  .data = err.data,
				  .src = NOBODY};
	return true;
}

static bool take_tx(struct run *r, int n)
{
	void *context, *buf;
	struct model_entry e;
	int msg;

	if (!take(r, r->life[n].txcq, &e, &context, &buf))
		return false;
	if (!context) { /* of an inject that failed: which one it was nobody says */
		model_lost_inject(&r->m, n, e.err);
		return true;
	}
	msg = (int)((char *)context - r->sent_token);
	model_tx_entry(&r->m, n, msg, &e);
	if (!failed(r))
		poison(r, msg);
	return true;
}

static bool take_rx(struct run *r, int n)
{
	void *context, *buf;
	struct model_entry e;
	int i;

	if (!take(r, r->life[n].rxcq, &e, &context, &buf))
		return false;
	i = (int)((char *)context - r->token);
	if (i < 0 || i >= r->m.nrecvs) {
		model_fail(&r->m, "life %d: an entry of a receive that was never posted", n);
		return true;
	}
	e.bytes = r->recv[i];
	if (r->p->msg)
		e.src = r->m.life[n].slot ^ 1;
	if (r->m.recv[i].multi && e.err != FI_ECANCELED) {
		e.off = (uint64_t)((uint8_t *)buf - r->recv[i]);
		if (e.off > r->m.recv[i].cap) {
			model_fail(&r->m, "receive %d: bytes outside of it", i);
			return true;
		}
		e.bytes += e.off;
	}
	model_rx_entry(&r->m, n, i, &e);
	guard(r, i);
	if (r->m.recv[i].done && r->life[n].ep)
		r->sum[i] = sum(r, i);
	return true;
}

static void poll_life(struct run *r, int n, unsigned int most)
{
	bool more = true;

	for (unsigned int i = 0; i < most && more && !failed(r); i++) {
		more = take_tx(r, n);
		if (!failed(r))
			more |= take_rx(r, n);
	}
}

void run_poll(struct run *r)
{
	for (int n = 0; n < r->m.nlives && !failed(r); n++) {
		poll_life(r, n, UINT32_MAX);
		run_events(r, n);
	}
}

bool run_late(struct run *r, const char *what)
{
	if (seconds() > r->end)
		model_fail(&r->m, "hangs while %s", what);
	return failed(r);
}

/* ---- steps ---- */

static void do_cancel(struct run *r, const struct step *s)
{
	int n = r->m.life_of[s->ep], i = model_open_recv(&r->m, model_queue(&r->m, n), s->len);

	if (i != NOBODY)
		model_cancelled(&r->m, i, fi_cancel(&rx_of(r, n)->fid, &r->token[i]));
}

static void do_setmin(struct run *r, const struct step *s)
{
	int n = r->m.life_of[s->ep];
	size_t min = s->len;

	MUST(r, fi_setopt(&rx_of(r, n)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			  sizeof(min)));
	r->m.life[model_queue(&r->m, n)].min = min;
}

static void close_slot(struct run *r, unsigned int slot)
{
	if (r->m.life_of[slot] != NOBODY)
		run_close_ep(r, r->m.life_of[slot]);
}

static void do_restart(struct run *r, unsigned int slot, bool reject)
{
	if (r->m.nlives >= MAX_LIVES - 1)
		return;
	close_slot(r, slot);
	if (r->p->msg) {
		close_slot(r, slot ^ 1);
		run_connect(r, slot, reject);
		return;
	}
	open_ep(r, slot, true);
	if (!failed(r) && !r->one_av)
		meet(r, r->life[r->m.life_of[slot]].av);
}

static void do_step(struct run *r, const struct step *s)
{
	int n = r->m.life_of[s->ep];

	if (s->op == OP_RESTART) {
		if (r->m.nlives < MAX_LIVES - MAX_EPS)
			do_restart(r, s->ep, s->len == 0);
		return;
	}
	if (s->op == OP_WAIT) {
		for (uint32_t i = 0; i < s->len; i++)
			run_poll(r);
		return;
	}
	if (n == NOBODY)
		return;
	if (s->op == OP_SEND)
		do_send(r, s);
	else if (s->op == OP_RECV)
		do_recv(r, s, false);
	else if (s->op == OP_CANCEL)
		do_cancel(r, s);
	else if (s->op == OP_POLL)
		poll_life(r, n, s->len);
	else if (s->op == OP_SETMIN)
		do_setmin(r, s);
	else if (s->op == OP_SHUTDOWN)
		run_shutdown(r, n);
	else
		run_close_ep(r, n);
}

/* ---- the end of a program ---- */

/* Sends of a life that have neither succeeded nor failed. */
static uint64_t unfinished(struct run *r, int n)
{
	struct life *l = &r->life[n];
	uint64_t failed = l->ep ? fi_cntr_readerr(l->txcntr) : 0;

	/* Each that failed has an entry, those that were injected as well. */
	return l->ep ? r->m.life[n].tx_taken - fi_cntr_read(l->txcntr) - failed +
			       (failed - r->m.life[n].tx_err)
		     : 0;
}

/* An endpoint that stands, of those of a queue. @return NOBODY: none */
static int stands(const struct run *r, int queue)
{
	for (int n = 0; n < r->m.nlives; n++)
		if (r->life[n].ep && model_queue(&r->m, n) == queue)
			return n;
	return NOBODY;
}

static void cancel_open(struct run *r, bool directed_only)
{
	for (int i = 0; i < r->m.nrecvs && !failed(r); i++) {
		struct model_recv *v = &r->m.recv[i];
		int n = stands(r, v->queue);

		/* The end of a connection cancels by itself. */
		if (v->done || v->hears != NOBODY || n == NOBODY ||
		    (!r->srx && r->m.life[n].ended != NEVER) || (directed_only && v->want == ANY))
			continue;
		model_cancelled(&r->m, i, fi_cancel(&rx_of(r, n)->fid, &r->token[i]));
	}
}

static unsigned int open_of(const struct run *r, int queue, bool sweep)
{
	unsigned int n = 0;

	for (int i = 0; i < r->m.nrecvs; i++)
		n += r->m.recv[i].queue == queue && !r->m.recv[i].done && !r->m.recv[i].lost &&
		     r->sweep[i] >= sweep;
	return n;
}

static unsigned int coming_to(const struct run *r, int queue)
{
	unsigned int sum = 0;

	for (int n = 0; n < r->m.nlives; n++)
		if (r->life[n].ep && model_queue(&r->m, n) == queue)
			sum += model_coming(&r->m, n, false);
	return sum;
}

/* Receives for what is still to come. */
static void sweep(struct run *r, int n)
{
	struct step s = {.op = OP_RECV, .ep = (uint8_t)r->m.life[n].slot, .peer = ANY};
	int queue = model_queue(&r->m, n);

	if (r->m.life_of[s.ep] != n || stands(r, queue) != n)
		return;
	for (int i = 0; i < r->m.nmsgs; i++)
		s.len = s.len < r->m.msg[i].len ? r->m.msg[i].len : s.len;
	while (open_of(r, queue, true) < coming_to(r, queue) && do_recv(r, &s, true))
		;
}

static bool settled(struct run *r, bool receives)
{
	for (int n = 0; n < r->m.nlives; n++) {
		if (!r->life[n].ep)
			continue;
		if (unfinished(r, n) || model_unanswered(&r->m, n) || model_untold(&r->m, n) ||
		    model_coming(&r->m, n, true) ||
		    (receives && open_of(r, model_queue(&r->m, n), false)))
			return false;
	}
	return true;
}

static void stuck(struct run *r, const char *what)
{
	char text[300] = "";
	size_t at = 0;

	for (int n = 0; n < r->m.nlives && at < sizeof(text) - 1; n++)
		if (r->life[n].ep)
			at += (size_t)snprintf(
				text + at, sizeof(text) - at,
				" life %d: %llu sends, %u entries, %u messages, %u receives;", n,
				(unsigned long long)unfinished(r, n), model_unanswered(&r->m, n),
				model_coming(&r->m, n, true),
				open_of(r, model_queue(&r->m, n), false));
	model_fail(&r->m, "hangs while %s; open:%s", what, text);
}

static void wait_settled(struct run *r, bool receives)
{
	while (!failed(r) && !settled(r, receives)) {
		if (receives)
			cancel_open(r, false);
		else
			for (int n = 0; n < r->m.nlives && !failed(r); n++)
				if (r->life[n].ep)
					sweep(r, n);
		run_poll(r);
		if (seconds() > r->end)
			stuck(r, receives ? "receives are cancelled" : "all is received");
	}
}

static void finish(struct run *r)
{
	uint64_t before;

	run_poll(r);
	/* Who is closed comes back: what waits for it gets there, or hears that it cannot. */
	for (unsigned int i = 0; i < r->p->neps && !failed(r) && !r->p->msg; i++)
		if (r->m.life_of[i] == NOBODY)
			do_restart(r, i, false);
	/* Somebody has to hear of the end of shared receives. */
	if (!failed(r) && r->p->msg && r->srx && stands(r, 0) == NOBODY)
		do_restart(r, 0, false);
	cancel_open(r, true);
	wait_settled(r, false);
	wait_settled(r, true);
	before = r->read;
	for (int i = 0; i < 3; i++)
		run_poll(r);
	if (!failed(r) && r->read != before)
		model_fail(&r->m, "entries after the end");
	for (int n = 0; n < r->m.nlives && !failed(r); n++) {
		struct life *l = &r->life[n];
		uint64_t counter[4];

		if (!l->ep)
			continue;
		counter[0] = fi_cntr_read(l->txcntr);
		counter[1] = fi_cntr_readerr(l->txcntr);
		counter[2] = fi_cntr_read(l->rxcntr);
		counter[3] = fi_cntr_readerr(l->rxcntr);
		model_end(&r->m, n, counter);
	}
}

/* Nobody writes after the entry, or after the close. */
static void look_again(struct run *r)
{
	for (int i = 0; i < r->m.nrecvs && !failed(r); i++)
		if (r->sum[i] && r->sum[i] != sum(r, i))
			model_fail(&r->m, "receive %d: written after its end", i);
}

const char *run_program(struct run_env *env, const struct program *p)
{
	struct run *r = &run;

	memset(r, 0, sizeof(*r));
	r->env = env;
	r->p = p;
	r->end = seconds() + env->patience_s;
	model_begin(&r->m, p);
	share(r);
	if (p->msg)
		run_listen(r);
	for (unsigned int i = 0; i < p->neps && !failed(r); i += p->msg ? 2 : 1)
		p->msg ? run_connect(r, i, false) : open_ep(r, i, false);
	if (r->one_av && !failed(r))
		meet(r, r->one_av);
	for (unsigned int i = 0; i < p->neps && !failed(r) && !p->msg && !r->one_av; i++)
		meet(r, r->life[i].av);
	for (uint32_t i = 0; i < p->nsteps && !failed(r); i++)
		do_step(r, &p->step[i]);
	if (!failed(r))
		finish(r);
	for (int n = 0; n < r->m.nlives; n++)
		if (r->life[n].ep)
			run_close_ep(r, n);
	look_again(r);
	for (int n = 0; n < r->m.nlives; n++)
		close_queues(r, &r->life[n]);
	run_unlisten(r);
	if (r->srx)
		MUST(r, fi_close(&r->srx->fid));
	if (r->one_av)
		MUST(r, fi_close(&r->one_av->fid));
	for (int i = 0; i < r->m.nmsgs; i++)
		poison(r, i);
	for (int i = 0; i < r->m.nrecvs; i++)
		free(r->recv[i]);
	return failed(r) ? r->m.why : NULL;
}
