/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/objects.h"

#include <stdlib.h>

#include "fabric/auth.h"
#include "fabric/info.h"
#include "fabric/log.h"
#include "fabric/nosys.h"
#include "fabric/stats.h"
#include "fabric/telemetry.h"
#include "msg/addr.h"
#include "msg/cm.h"

static void domain_free(struct pmf_domain *d)
{
	pthread_mutex_destroy(&d->lock);
	if (d->auth_key)
		pmf_wipe(d->auth_key, d->auth_key_size);
	free(d->auth_key);
	free(d);
}

static int domain_close(struct fid *fid)
{
	struct pmf_domain *d = (struct pmf_domain *)fid;

	if (pmf_in_use(&d->refs))
		return -FI_EBUSY;
	pmf_domain_list_del(d);
	if (d->eq)
		pmf_eq_undrive(d->eq, &d->progress);
	pmf_stack_put(&d->progress);
	if (d->eq) {
		pmf_eq_forget(d->eq, fid);
		pmf_unref(&d->eq->refs);
	}
	pmf_unref(&d->fabric->refs);
	domain_free(d);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct pmf_domain *d = (struct pmf_domain *)fid;
	struct pmf_eq *eq = (struct pmf_eq *)bfid;
	int rc = 0;

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	/* FI_REG_MR, by value: later headers warn about the name. Registrations end at once here.
	 */
	if (flags & ~(1ull << 59))
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&d->lock);
	if (d->eq) {
		rc = -FI_EINVAL;
	} else if (pmf_eq_drive(eq, &d->progress)) {
		rc = -FI_ENOMEM;
	} else {
		d->eq = eq;
		pmf_ref(&eq->refs);
	}
	pthread_mutex_unlock(&d->lock);
	return rc;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = pmf_nosys_control,
	.ops_open = pmf_stats_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

static int domain_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			    uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : pmf_endpoint_open(domain, info, ep, context);
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = pmf_av_open,
	.cq_open = pmf_cq_open,
	.endpoint = pmf_endpoint_open,
	.scalable_ep = pmf_nosys_scalable_ep,
	.cntr_open = pmf_cntr_open,
	.poll_open = pmf_poll_open,
	.stx_ctx = pmf_nosys_stx_ctx,
	.srx_ctx = pmf_srx_open,
	.query_atomic = pmf_nosys_query_atomic,
	.query_collective = pmf_nosys_query_collective,
	.endpoint2 = domain_endpoint2,
};

static int find_port(const struct pmf_conf *conf, const char *name)
{
	for (unsigned int i = 0; i < conf->nports; i++)
		if (strcmp(conf->port[i].name, name) == 0)
			return (int)i;
	return -FI_ENODATA;
}

static uint32_t domain_format(const struct fi_info *info, const struct pmf_port_conf *port)
{
	if (pmf_addr_format_ok(info->addr_format))
		return info->addr_format;
	return port->v4.set ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

static bool format_has_addr(uint32_t format, const struct pmf_port_conf *port)
{
	return format == FI_ADDR_STR || (format == FI_SOCKADDR_IN ? port->v4.set : port->v6.set);
}

/*
 * Under these levels one object may be used by two threads at once; under the others the
 * application serializes what shares an object, and readers pay for no lock.
 */
static bool is_thread_safe(enum fi_threading t)
{
	return t == FI_THREAD_UNSPEC || t == FI_THREAD_SAFE || t == FI_THREAD_ENDPOINT;
}

static int domain_make(struct pmf_fabric *f, const struct fi_info *info,
		       const struct pmf_conf *conf, int port, struct pmf_domain **out)
{
	const struct fi_domain_attr *attr = info->domain_attr;
	struct pmf_domain *d = calloc(1, sizeof(*d));
	char err[512] = "";
	int rc;

	if (!d)
		return -FI_ENOMEM;
	d->fabric = f;
	d->conf = conf;
	d->port = (unsigned int)port;
	d->api_version = f->fid.api_version;
	d->addr_format = domain_format(info, &conf->port[port]);
	d->av_type = attr->av_type;
	d->thread_safe = is_thread_safe(attr->threading);
	d->dscp = (uint8_t)conf->dscp;
	pmf_info_dscp(attr->tclass, &d->dscp);
	TAILQ_INIT(&d->eps);
	TAILQ_INIT(&d->srxs);
	TAILQ_INIT(&d->avs);
	TAILQ_INIT(&d->cqs);
	TAILQ_INIT(&d->cntrs);
	pthread_mutex_init(&d->lock, NULL);
	if (!pmf_auth_dup(attr->auth_key, attr->auth_key_size, &d->auth_key, &d->auth_key_size)) {
		domain_free(d);
		return -FI_ENOMEM;
	}
	rc = pmf_stack_get(conf, d->port, attr->data_progress != FI_PROGRESS_AUTO, d->thread_safe,
			   &d->progress, err, sizeof(err));
	if (rc) {
		pmf_warn(DOMAIN, "%s: %s\n", conf->port[port].name, err);
		domain_free(d);
		return rc;
	}
	*out = d;
	return 0;
}

int pmf_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context)
{
	struct pmf_fabric *f = (struct pmf_fabric *)fabric;
	const struct pmf_conf *conf = pmf_conf_load();
	struct pmf_domain *d;
	const char *why;
	int port, rc;

	if (pmf_forked()) {
		pmf_warn(DOMAIN, "this is a forked child: DPDK belongs to its parent\n");
		return -FI_EOPBADSTATE;
	}
	if (!conf)
		return -FI_ENODATA;
	if (!info->domain_attr || !info->domain_attr->name)
		return -FI_EINVAL;
	port = find_port(conf, info->domain_attr->name);
	if (port < 0 ||
	    !format_has_addr(domain_format(info, &conf->port[port]), &conf->port[port])) {
		pmf_warn(DOMAIN,
			 "FI_PMF_PORT has no device \"%s\" with an address of that format\n",
			 info->domain_attr->name);
		return -FI_ENODATA;
	}
	why = pmf_auth_check_domain(info->domain_attr->auth_key, info->domain_attr->auth_key_size);
	if (why) {
		pmf_warn(DOMAIN, "fi_domain: domain_attr: %s\n", why);
		return -FI_EINVAL;
	}
	rc = pmf_auth_load(info->domain_attr, conf);
	if (rc)
		return rc;
	rc = domain_make(f, info, conf, port, &d);
	if (rc)
		return rc;
	pmf_conf_keep(conf);
	d->fid.fid.fclass = FI_CLASS_DOMAIN;
	d->fid.fid.context = context;
	d->fid.fid.ops = &domain_fid_ops;
	d->fid.ops = &domain_ops;
	d->fid.mr = &pmf_ops_mr;
	d->progress.api_version = d->api_version;
	pmf_ref(&f->refs);
	pmf_domain_list_add(d);
	pmf_telemetry_init();
	*domain = &d->fid;
	return 0;
}
