/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Passive endpoints: a port of the stack of their own, since they belong to no domain, and a
 * listener of msg on it.
 */
#include "fabric/pep.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>

#include "fabric/auth.h"
#include "fabric/ep.h"
#include "fabric/forked.h"
#include "fabric/info.h"
#include "fabric/log.h"
#include "fabric/nosys.h"
#include "msg/addr.h"
#include "msg/cm.h"

struct pmf_pep {
	struct fid_pep fid;
	struct pmf_fabric *fabric;
	struct pmf_eq *eq;
	struct pmf_progress progress;
	struct pmf_ep *ep;
	struct fi_info *info; /* with its address: what requests are copies of */
	bool given;	      /* the address is an active endpoint's now */
	pthread_mutex_t lock;
	TAILQ_ENTRY(pmf_pep) link;
};

/* All of the process, so that a handle is looked up before it is followed. */
static struct {
	pthread_mutex_t lock;
	TAILQ_HEAD(, pmf_pep) all;
} peps = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = TAILQ_HEAD_INITIALIZER(peps.all)};

static struct pmf_pep *pep_of(struct fid *fid)
{
	return (struct pmf_pep *)fid;
}

static bool listening(const struct pmf_pep *p)
{
	return pmf_ep_enabled(p->ep);
}

int pmf_pep_give(fid_t handle, struct pmf_addr *addr)
{
	struct pmf_pep *p;
	int rc = -FI_EINVAL;

	pthread_mutex_lock(&peps.lock);
	TAILQ_FOREACH (p, &peps.all, link) {
		if (&p->fid.fid == handle)
			break;
	}
	if (p) {
		pthread_mutex_lock(&p->lock);
		rc = p->given || listening(p) ? -FI_EOPBADSTATE : 0;
		if (!rc) {
			*addr = *pmf_ep_addr(p->ep);
			pmf_ep_release_addr(p->ep);
			p->given = true;
		}
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&peps.lock);
	return rc;
}

void pmf_peps_hold(void)
{
	pthread_mutex_lock(&peps.lock);
}

void pmf_peps_let_go(void)
{
	pthread_mutex_unlock(&peps.lock);
}

bool pmf_peps_forked(void)
{
	struct pmf_pep *p;

	TAILQ_FOREACH (p, &peps.all, link)
		pmf_forked_pep(&p->fid);
	return !TAILQ_EMPTY(&peps.all);
}

static int pep_close(struct fid *fid)
{
	struct pmf_pep *p = pep_of(fid);

	pthread_mutex_lock(&peps.lock);
	TAILQ_REMOVE(&peps.all, p, link);
	pthread_mutex_unlock(&peps.lock);
	if (p->eq)
		pmf_eq_undrive(p->eq, &p->progress);
	pmf_ep_close(p->ep);
	if (p->eq) {
		pmf_eq_forget(p->eq, fid);
		pmf_unref(&p->eq->refs);
	}
	pmf_stack_put(&p->progress);
	pmf_unref(&p->fabric->refs);
	fi_freeinfo(p->info);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return 0;
}

static int bind_locked(struct pmf_pep *p, struct pmf_eq *eq)
{
	int rc;

	if (p->eq)
		return -FI_EINVAL;
	if (listening(p))
		return -FI_EOPBADSTATE;
	rc = pmf_eq_drive(eq, &p->progress);
	if (rc)
		return rc;
	p->eq = eq;
	pmf_ref(&eq->refs);
	pmf_cm_set_eq(p->ep, eq, &p->fid.fid);
	return 0;
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct pmf_pep *p = pep_of(fid);
	struct pmf_eq *eq = (struct pmf_eq *)bfid;
	int rc;

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if (eq->fabric != p->fabric)
		return -FI_EDOMAIN;
	pthread_mutex_lock(&p->lock);
	rc = bind_locked(p, eq);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (!arg || *(int *)arg < 0)
		return -FI_EINVAL;
	pmf_cm_backlog(pep_of(fid)->ep, (uint32_t) * (int *)arg);
	return 0;
}

static struct fi_ops pep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = pep_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

/* ---- names ---- */

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct pmf_pep *p = pep_of(fid);
	struct pmf_addr a;
	int rc;

	if (!addr || !addrlen || pmf_addr_get(addr, addrlen, p->info->addr_format, &a))
		return -FI_EINVAL;
	pthread_mutex_lock(&p->lock);
	if (pmf_addr_is_any(&a))
		memcpy(a.ip, pmf_ep_addr(p->ep)->ip, sizeof(a.ip));
	rc = p->given || listening(p) ? -FI_EOPBADSTATE : pmf_ep_set_addr(p->ep, &a);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct pmf_pep *p = pep_of(fid);
	int rc;

	if (!addrlen)
		return -FI_EINVAL;
	pthread_mutex_lock(&p->lock);
	rc = pmf_addr_put(pmf_ep_addr(p->ep), p->info->addr_format, addr, addrlen);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

/* ---- requests ---- */

/* The info of requests names the address that is listened on. */
static int listen_locked(struct pmf_pep *p)
{
	struct fi_info *info = p->info;
	int rc;

	if (p->given || listening(p))
		return -FI_EOPBADSTATE;
	if (!p->eq)
		return -FI_ENOEQ;
	rc = pmf_ep_hold_addr(p->ep);
	if (rc)
		return rc;
	free(info->src_addr);
	info->src_addr = pmf_addr_dup(pmf_ep_addr(p->ep), info->addr_format, &info->src_addrlen);
	return info->src_addr ? pmf_cm_listen(p->ep, info) : -FI_ENOMEM;
}

static int pep_listen(struct fid_pep *pep)
{
	struct pmf_pep *p = (struct pmf_pep *)pep;
	int rc;

	pthread_mutex_lock(&p->lock);
	rc = listen_locked(p);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static int pep_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	struct pmf_connreq *req = pmf_connreq_take(handle);

	if (!req)
		return -FI_EINVAL;
	pmf_cm_reject(req, param, param ? paramlen : 0);
	return 0;
}

static struct fi_ops_cm pep_ops_cm = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = pmf_nosys_getpeer,
	.connect = pmf_nosys_connect,
	.listen = pep_listen,
	.accept = pmf_nosys_accept,
	.reject = pep_reject,
	.shutdown = pmf_nosys_shutdown,
	.join = pmf_nosys_join,
};

static ssize_t pep_cancel(fid_t fid, void *context)
{
	return -FI_ENOSYS;
}

static int pep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return -FI_ENOPROTOOPT;
}

static ssize_t pep_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

static struct fi_ops_ep pep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = pep_cancel,
	.getopt = pmf_cm_getopt,
	.setopt = pep_setopt,
	.tx_ctx = pmf_nosys_tx_ctx,
	.rx_ctx = pmf_nosys_rx_ctx,
	.rx_size_left = pep_size_left,
	.tx_size_left = pep_size_left,
};

/* ---- opening ---- */

/* @return index in @p conf, or -FI_ENODATA */
static int find_port(const struct pmf_conf *conf, const struct fi_info *info)
{
	const char *name = info->domain_attr ? info->domain_attr->name : NULL;

	for (unsigned int i = 0; i < conf->nports; i++)
		if (!name || !strcmp(conf->port[i].name, name))
			return (int)i;
	return -FI_ENODATA;
}

static int open_listener(struct pmf_pep *p, const struct pmf_conf *conf, int port)
{
	struct pmf_ep_attr attr = {
		.type = PMF_EP_PASSIVE,
		.progress = &p->progress,
		.tx_size = 1,
		.rx_size = 1,
		.dscp = (uint8_t)conf->dscp,
	};
	const struct fi_domain_attr *d = p->info->domain_attr;
	struct pmf_key_list keys = {0};
	char err[512] = "";
	int rc = pmf_auth_load(d, conf);

	if (rc)
		return rc;
	rc = pmf_ep_choose_addr(&conf->port[port], p->info, p->info->addr_format, &attr.addr);
	if (rc)
		return rc;
	rc = pmf_stack_get(conf, (unsigned int)port, d->control_progress != FI_PROGRESS_AUTO, true,
			   &p->progress, err, sizeof(err));
	if (rc) {
		pmf_warn(EP_CTRL, "%s: %s\n", conf->port[port].name, err);
		return rc;
	}
	pmf_auth_choose(p->info->ep_attr, d->auth_key, d->auth_key_size, conf, &keys, &attr);
	rc = pmf_ep_open(&attr, &p->ep);
	pmf_wipe(&keys, sizeof(keys));
	if (rc)
		pmf_stack_put(&p->progress);
	return rc;
}

static struct pmf_pep *pep_make(struct pmf_fabric *f, const struct fi_info *info, void *context)
{
	struct pmf_pep *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->info = fi_dupinfo(info);
	if (!p->info) {
		free(p);
		return NULL;
	}
	p->fabric = f;
	p->info->handle = NULL;
	p->fid.fid.fclass = FI_CLASS_PEP;
	p->fid.fid.context = context;
	p->fid.fid.ops = &pep_fid_ops;
	p->fid.ops = &pep_ops;
	p->fid.cm = &pep_ops_cm;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

int pmf_passive_ep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			void *context)
{
	const struct pmf_conf *conf = pmf_conf_load();
	struct pmf_pep *p;
	int port, rc;

	if (pmf_forked())
		return -FI_EOPBADSTATE;
	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_MSG || !info->domain_attr ||
	    !pmf_addr_format_ok(info->addr_format) ||
	    pmf_auth_check(info->ep_attr->auth_key, info->ep_attr->auth_key_size) ||
	    pmf_auth_check(info->domain_attr->auth_key, info->domain_attr->auth_key_size))
		return -FI_EINVAL;
	port = conf ? find_port(conf, info) : -FI_ENODATA;
	if (port < 0)
		return port;
	pmf_watch_forks();
	p = pep_make((struct pmf_fabric *)fabric, info, context);
	if (!p)
		return -FI_ENOMEM;
	rc = open_listener(p, conf, port);
	if (rc) {
		fi_freeinfo(p->info);
		free(p);
		return rc;
	}
	pmf_conf_keep(conf);
	pmf_ref(&p->fabric->refs);
	pthread_mutex_lock(&peps.lock);
	TAILQ_INSERT_TAIL(&peps.all, p, link);
	pthread_mutex_unlock(&peps.lock);
	*pep = &p->fid;
	return 0;
}
