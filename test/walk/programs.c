/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What the walk goes through: unconnected and connected endpoints, automatic progress, groups,
 * keys. A call may be refused for want of memory, or ask to be repeated; then what is open is
 * closed. A send that was taken ends in an entry, and so does the receive of each that was well.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>
#include <time.h>

#include "walk.h"

#define PATIENCE_MS 20000
#define NSIZES 6
#define BIG 100000
#define RECVS 8

static const size_t sizes[NSIZES] = {0, 64, 5000, BIG, 300, 20000};

struct objects {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_av *av;
	struct fid_pep *pep;
	struct fid_ep *a, *b;
	struct fid_mc *mc;
	fi_addr_t to;
	bool lossless;
	unsigned int sent, failed, received, canceled;
	bool gone; /* a connection has ended */
};

static uint8_t out[BIG], in[RECVS][BIG];

/* The provider without libfabric's search for it. */
struct fi_provider *fi_prov_ini(void);

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* A call that may be refused, but only for want of something. @return whether it was done */
static bool done(struct objects *o, const char *call, long rc)
{
	if (rc >= 0)
		return true;
	if (o->lossless || (rc != -FI_ENOMEM && rc != -FI_EAGAIN))
		walk_bad(call, fi_strerror((int)-rc), rc);
	return false;
}

#define DO(call)                             \
	do {                                 \
		if (!done(o, #call, (call))) \
			return false;        \
	} while (0)

/* ---- opening ---- */

static struct fi_info *hints(enum fi_ep_type type, enum fi_progress progress, const char *key)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		abort();
	h->caps = type == FI_EP_RDM && !key ? FI_MSG | FI_MULTICAST : FI_MSG;
	h->addr_format = FI_SOCKADDR_IN;
	h->ep_attr->type = type;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->control_progress = progress;
	h->domain_attr->data_progress = progress;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (key) {
		h->domain_attr->auth_key = (uint8_t *)strdup(key);
		h->domain_attr->auth_key_size = strlen(key);
	}
	h->tx_attr->size = h->rx_attr->size = 16;
	return h;
}

static bool open_domain(struct objects *o, enum fi_ep_type type, enum fi_progress progress,
			const char *key)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
	static struct fi_provider *prov;
	struct fi_info *h;
	int rc;

	fail_pause(true);
	if (!prov)
		prov = fi_prov_ini();
	h = hints(type, progress, key);
	fail_pause(false);
	rc = prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, h, &o->info);
	fi_freeinfo(h);
	DO(rc);
	DO(prov->fabric(o->info->fabric_attr, &o->fabric, NULL));
	DO(fi_eq_open(o->fabric, &eq_attr, &o->eq, NULL));
	DO(fi_domain(o->fabric, o->info, &o->domain, NULL));
	DO(fi_cq_open(o->domain, &cq_attr, &o->cq, NULL));
	DO(fi_cntr_open(o->domain, &cntr_attr, &o->cntr, NULL));
	return true;
}

static bool bind_ep(struct objects *o, struct fid_ep *ep, bool with_eq)
{
	DO(fi_ep_bind(ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	DO(fi_ep_bind(ep, &o->cntr->fid, FI_SEND));
	if (o->av)
		DO(fi_ep_bind(ep, &o->av->fid, 0));
	if (with_eq)
		DO(fi_ep_bind(ep, &o->eq->fid, 0));
	return true;
}

static bool open_pair(struct objects *o)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	char name[64];
	size_t len = sizeof(name);
	int rc;

	DO(fi_av_open(o->domain, &attr, &o->av, NULL));
	DO(fi_endpoint(o->domain, o->info, &o->a, NULL));
	DO(fi_endpoint(o->domain, o->info, &o->b, NULL));
	if (!bind_ep(o, o->a, true) || !bind_ep(o, o->b, false))
		return false;
	DO(fi_enable(o->a));
	DO(fi_enable(o->b));
	DO(fi_getname(&o->b->fid, name, &len));
	rc = fi_av_insert(o->av, name, 1, &o->to, 0, NULL);
	if (rc == 0) /* of one address none: for want of memory, as there is no other reason here */
		rc = -FI_ENOMEM;
	DO(rc);
	return true;
}

static void close_one(const char *what, struct fid *fid)
{
	int rc = fid ? fi_close(fid) : 0;

	if (rc)
		walk_bad(what, "close", rc);
}

#define CLOSE(member) close_one(#member, o->member ? &o->member->fid : NULL)

static void close_all(struct objects *o)
{
	CLOSE(mc);
	CLOSE(a);
	CLOSE(b);
	CLOSE(pep);
	CLOSE(av);
	CLOSE(cq);
	CLOSE(cntr);
	CLOSE(domain);
	CLOSE(eq);
	CLOSE(fabric);
	fi_freeinfo(o->info);
}

/* ---- traffic ---- */

/* All entries that are there. */
static void read_entries(struct objects *o)
{
	struct fi_cq_data_entry e;
	struct fi_cq_err_entry err = {0};
	ssize_t rc;

	while ((rc = fi_cq_read(o->cq, &e, 1)) != -FI_EAGAIN) {
		if (rc == 1) {
			if (e.flags & FI_SEND) {
				o->sent++;
				continue;
			}
			o->received++;
			if (memcmp(e.op_context, out, e.len) != 0)
				walk_bad("fi_cq_read", "other bytes than were sent", (long)e.len);
			continue;
		}
		if (rc != -FI_EAVAIL || fi_cq_readerr(o->cq, &err, 0) != 1) {
			walk_bad("fi_cq_read", "neither an entry nor an error", rc);
			return;
		}
		if (err.err == FI_ECANCELED && (err.flags & FI_RECV)) {
			o->canceled++;
			continue;
		}
		if (o->lossless || (err.flags & FI_RECV && !o->gone))
			walk_bad("entry", fi_strerror(err.err), err.err);
		o->failed += err.flags & FI_SEND ? 1 : 0;
	}
}

static bool wait_until(struct objects *o, const char *what, bool (*is)(struct objects *))
{
	double end = now_ms() + PATIENCE_MS;

	while (!is(o)) {
		if (now_ms() > end) {
			walk_bad(what, "does not come", (long)o->sent);
			return false;
		}
		read_entries(o);
	}
	return true;
}

static unsigned int posted_sends, posted_recvs;

static bool sends_ended(struct objects *o)
{
	return o->sent + o->failed == posted_sends;
}

static bool messages_came(struct objects *o)
{
	return o->received >= o->sent;
}

static bool receives_ended(struct objects *o)
{
	return o->received + o->canceled == posted_recvs;
}

static bool post_recv(struct objects *o, unsigned int i)
{
	double end = now_ms() + PATIENCE_MS;
	ssize_t rc;

	while ((rc = fi_recv(o->b, in[i], BIG, NULL, FI_ADDR_UNSPEC, in[i])) == -FI_EAGAIN &&
	       now_ms() < end)
		read_entries(o);
	posted_recvs += rc == 0;
	return done(o, "fi_recv", rc);
}

static bool post_send(struct objects *o, size_t len)
{
	double end = now_ms() + PATIENCE_MS;
	ssize_t rc;

	while ((rc = fi_send(o->a, out, len, NULL, o->to, out)) == -FI_EAGAIN && now_ms() < end)
		read_entries(o);
	posted_sends += rc == 0;
	return done(o, "fi_send", rc);
}

/* Messages of all sizes, some before their receives; then receives that nothing comes for. */
static bool traffic(struct objects *o)
{
	posted_sends = posted_recvs = 0;
	for (unsigned int i = 0; i < NSIZES / 2; i++)
		if (!post_recv(o, i))
			return false;
	for (unsigned int i = 0; i < NSIZES; i++)
		if (!post_send(o, sizes[i]))
			return false;
	for (unsigned int i = 0; i < 50; i++) /* some wait without a receive */
		read_entries(o);
	for (unsigned int i = NSIZES / 2; i < RECVS; i++)
		if (!post_recv(o, i))
			return false;
	if (!wait_until(o, "the end of a send", sends_ended) ||
	    !wait_until(o, "a message", messages_came))
		return false;
	for (unsigned int i = 0; i < RECVS; i++)
		fi_cancel(&o->b->fid, in[i]);
	return wait_until(o, "the end of a receive", receives_ended);
}

/* ---- events ---- */

/* @return the event; 0 an error event; -1 none within the time */
static long next_event(struct objects *o, struct fi_eq_cm_entry *entry)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[512];
	} e;
	double end = now_ms() + PATIENCE_MS;
	struct fi_eq_err_entry err = {0};
	uint32_t event;
	ssize_t rc;

	while ((rc = fi_eq_read(o->eq, &event, &e, sizeof(e), 0)) == -FI_EAGAIN) {
		if (now_ms() > end) {
			walk_bad("event", "does not come", 0);
			return -1;
		}
		read_entries(o);
	}
	if (rc == -FI_EAVAIL && fi_eq_readerr(o->eq, &err, 0) > 0) {
		if (o->lossless)
			walk_bad("event", fi_strerror(err.err), err.err);
		return 0;
	}
	*entry = e.cm;
	if (rc < 0)
		walk_bad("fi_eq_read", fi_strerror((int)-rc), rc);
	return rc < 0 ? -1 : (long)event;
}

static bool group(struct objects *o)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(7000)};
	struct fi_eq_cm_entry entry;

	inet_pton(AF_INET, "239.1.2.3", &sin.sin_addr);
	DO(fi_join(o->a, &sin, 0, &o->mc, NULL));
	return next_event(o, &entry) == FI_JOIN_COMPLETE;
}

/* ---- connections ---- */

static bool connect_pair(struct objects *o)
{
	struct fi_eq_cm_entry entry;
	struct fi_info *info;
	unsigned int connected = 0;
	char name[64];
	size_t len = sizeof(name);
	long event;
	bool ok;
	int rc;

	DO(fi_passive_ep(o->fabric, o->info, &o->pep, NULL));
	DO(fi_pep_bind(o->pep, &o->eq->fid, 0));
	DO(fi_listen(o->pep));
	DO(fi_getname(&o->pep->fid, name, &len));
	DO(fi_endpoint(o->domain, o->info, &o->a, NULL));
	if (!bind_ep(o, o->a, true))
		return false;
	DO(fi_enable(o->a));
	DO(fi_connect(o->a, name, "hello", 5));
	if (next_event(o, &entry) != FI_CONNREQ)
		return false;
	info = entry.info;
	rc = fi_endpoint(o->domain, info, &o->b, NULL);
	if (rc)
		fi_reject(o->pep, info->handle, NULL, 0);
	fi_freeinfo(info);
	DO(rc);
	ok = bind_ep(o, o->b, true);
	if (!ok)
		return false;
	DO(fi_enable(o->b));
	DO(fi_accept(o->b, "well", 4));
	while (connected < 2) {
		event = next_event(o, &entry);
		if (event == FI_SHUTDOWN)
			o->gone = true;
		if (event != FI_CONNECTED)
			return false;
		connected++;
	}
	return true;
}

static bool end_connection(struct objects *o)
{
	struct fi_eq_cm_entry entry;

	o->gone = true;
	DO(fi_shutdown(o->a, 0));
	return next_event(o, &entry) == FI_SHUTDOWN && next_event(o, &entry) == FI_SHUTDOWN;
}

/* ---- the programs ---- */

static void begin(struct objects *o, bool lossless)
{
	for (size_t i = 0; i < BIG; i++)
		out[i] = (uint8_t)(i * 7 + i / 251);
	memset(o, 0, sizeof(*o));
	o->lossless = lossless;
}

static void unconnected(bool lossless, enum fi_progress progress, const char *key)
{
	struct objects o;

	begin(&o, lossless);
	if (open_domain(&o, FI_EP_RDM, progress, key) && open_pair(&o) && traffic(&o) && !key)
		group(&o);
	close_all(&o);
}

void program_rdm(bool lossless)
{
	unconnected(lossless, FI_PROGRESS_MANUAL, NULL);
}

void program_key(bool lossless)
{
	unconnected(lossless, FI_PROGRESS_MANUAL, "a secret");
}

void program_auto(bool lossless)
{
	unconnected(lossless, FI_PROGRESS_AUTO, NULL);
}

void program_msg(bool lossless)
{
	struct objects o;

	begin(&o, lossless);
	if (open_domain(&o, FI_EP_MSG, FI_PROGRESS_MANUAL, NULL) && connect_pair(&o) && traffic(&o))
		end_connection(&o);
	close_all(&o);
}
