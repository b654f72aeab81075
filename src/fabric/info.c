/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/info.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/log.h"
#include "fabric/objects.h"
#include "msg/addr.h"
#include "pmd_glue/mcast.h"

#define RESOLVE_MAX 16

/*
 * Set in flags by libfabric's own layers, OFI_CORE_PROV_ONLY. ofi_rxm over our connections could do
 * nothing that FI_EP_RDM does not, lacks the FI_RMA that it needs, and would be listed before it.
 */
#define CORE_PROV_ONLY (1ull << 59)

/* What one fi_getinfo asks for, addresses resolved. */
struct query {
	const struct fi_info *hints;
	uint32_t format; /* FI_FORMAT_UNSPEC: by the address's family */
	bool has_src, has_dest;
	unsigned int nsrc, ndest;
	struct pmf_addr src[RESOLVE_MAX], dest[RESOLVE_MAX];
	bool dest_is_own; /* a service without a node: that port, here */
	uint16_t dest_port;
};

static int query_hint_addrs(struct query *q, const struct fi_info *h)
{
	if (!q->has_src && h->src_addr && h->src_addrlen) {
		if (pmf_addr_get(h->src_addr, h->src_addrlen, h->addr_format, &q->src[0])) {
			pmf_info(CORE, "hints->src_addr is not an address of its format\n");
			return -FI_ENODATA;
		}
		q->has_src = true;
		q->nsrc = 1;
	}
	if (!q->has_dest && !q->dest_is_own && h->dest_addr && h->dest_addrlen) {
		if (pmf_addr_get(h->dest_addr, h->dest_addrlen, h->addr_format, &q->dest[0])) {
			pmf_info(CORE, "hints->dest_addr is not an address of its format\n");
			return -FI_ENODATA;
		}
		q->has_dest = true;
		q->ndest = 1;
	}
	return 0;
}

static int query_service(struct query *q, const char *service, uint64_t flags)
{
	struct pmf_addr any[2];
	int n = pmf_addr_resolve("0.0.0.0", service, AF_INET, FI_NUMERICHOST, any, 2);

	if (n < 0) {
		pmf_info(CORE, "service \"%s\" is unknown\n", service);
		return -FI_ENODATA;
	}
	if (flags & FI_SOURCE) {
		q->src[0] = any[0];
		memset(&q->src[1], 0, sizeof(q->src[1]));
		q->src[1].port = any[0].port;
		q->nsrc = 2;
		q->has_src = true;
	} else {
		q->dest_is_own = true;
		q->dest_port = any[0].port;
	}
	return 0;
}

static int query_node(struct query *q, const char *node, const char *service, uint64_t flags)
{
	struct pmf_addr *out = flags & FI_SOURCE ? q->src : q->dest;
	int family = q->format == FI_SOCKADDR_IN    ? AF_INET
		     : q->format == FI_SOCKADDR_IN6 ? AF_INET6
						    : AF_UNSPEC;
	int n = pmf_addr_resolve(node, service, family, flags, out, RESOLVE_MAX);

	if (n < 0) {
		pmf_info(CORE, "node \"%s\" service \"%s\" does not resolve\n", node,
			 service ? service : "");
		return -FI_ENODATA;
	}
	if (flags & FI_SOURCE) {
		q->nsrc = (unsigned int)n;
		q->has_src = true;
	} else {
		q->ndest = (unsigned int)n;
		q->has_dest = true;
	}
	return 0;
}

static int query_make(struct query *q, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints)
{
	int rc = 0;

	memset(q, 0, sizeof(*q));
	q->hints = hints;
	if (hints && hints->addr_format != FI_SOCKADDR)
		q->format = hints->addr_format;
	if (node)
		rc = query_node(q, node, service, flags);
	else if (service)
		rc = query_service(q, service, flags);
	if (!rc && hints)
		rc = query_hint_addrs(q, hints);
	return rc;
}

static void mask_to(struct pmf_addr *a, unsigned int prefix)
{
	unsigned int bits = prefix + (pmf_addr_is_v4(a) ? 96 : 0);

	for (unsigned int i = 0; i < 16; i++) {
		unsigned int keep = bits > i * 8 ? PMF_MIN(bits - i * 8, 8u) : 0;

		a->ip[i] &= (uint8_t)(0xff00u >> keep);
	}
	a->port = 0;
}

char *pmf_fabric_name(const struct pmf_ifaddr *ifa, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct pmf_addr net = ifa->addr;

	mask_to(&net, ifa->prefix);
	if (pmf_addr_is_v4(&ifa->addr))
		inet_ntop(AF_INET, net.ip + 12, host, sizeof(host));
	else
		inet_ntop(AF_INET6, net.ip, host, sizeof(host));
	snprintf(buf, len, "%s/%u", host, ifa->prefix);
	return buf;
}

static bool reaches(const struct pmf_ifaddr *ifa, const struct pmf_addr *dest)
{
	struct pmf_addr a = ifa->addr, b = *dest;

	if (pmf_addr_is_v4(&a) != pmf_addr_is_v4(&b))
		return false;
	mask_to(&a, ifa->prefix);
	mask_to(&b, ifa->prefix);
	return ifa->has_gw || pmf_addr_eq(&a, &b);
}

static bool same_ip(const struct pmf_addr *a, const struct pmf_addr *b)
{
	return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

/* A group is reached by all addresses of its family, from where groups can be joined. */
static bool reaches_group(const struct pmf_ifaddr *ifa, const struct pmf_addr *group, uint64_t caps)
{
	return (caps & FI_MULTICAST) && pmf_addr_is_v4(&ifa->addr) == pmf_addr_is_v4(group);
}

/* Source and destination for one address of a port. @return false: this one is not meant */
static bool choose_addrs(const struct query *q, const struct pmf_ifaddr *ifa, uint64_t caps,
			 struct pmf_addr *src, struct pmf_addr *dest)
{
	bool found;

	*src = ifa->addr;
	*dest = ifa->addr;
	dest->port = q->dest_port;
	found = !q->has_src;
	for (unsigned int i = 0; i < q->nsrc && !found; i++) {
		const struct pmf_addr *a = &q->src[i];

		found = same_ip(a, &ifa->addr) ||
			(pmf_addr_is_any(a) && pmf_addr_is_v4(a) == pmf_addr_is_v4(src));
		src->port = a->port;
	}
	if (!found)
		return false;
	found = !q->has_dest;
	for (unsigned int i = 0; i < q->ndest && !found; i++) {
		found = pmf_mcast_is_group(q->dest[i].ip) ? reaches_group(ifa, &q->dest[i], caps)
							  : reaches(ifa, &q->dest[i]);
		*dest = q->dest[i];
	}
	return found;
}

static bool names_match(const struct fi_info *hints, const char *domain, const char *fabric)
{
	const struct fi_fabric_attr *f = hints ? hints->fabric_attr : NULL;
	const struct fi_domain_attr *d = hints ? hints->domain_attr : NULL;

	if (f && f->name && strcmp(f->name, fabric) != 0)
		return false;
	/* A hook's object is not ours to look into; the names are compared anyway. */
	if (f && f->fabric && f->fabric->ops->domain == pmf_domain_open &&
	    strcmp(((struct pmf_fabric *)f->fabric)->name, fabric) != 0)
		return false;
	if (f && f->prov_version > pmf_prov.version)
		return false;
	if (d && d->name && strcmp(d->name, domain) != 0)
		return false;
	if (d && d->domain && d->domain->ops->endpoint == pmf_endpoint_open) {
		struct pmf_domain *open = pmf_domain_of(d->domain);

		if (strcmp(open->conf->port[open->port].name, domain) != 0)
			return false;
	}
	return true;
}

static void without_multicast(struct fi_info *info)
{
	info->caps &= ~FI_MULTICAST;
	info->tx_attr->caps &= ~FI_MULTICAST;
}

/* The network of a port carries no multicast, and that is asked for. */
static bool lacks_multicast(const struct fi_info *hints, const struct pmf_port_conf *port)
{
	uint64_t asked = hints ? hints->caps : 0;

	if (hints && hints->tx_attr)
		asked |= hints->tx_attr->op_flags;
	return !port->mcast_ttl && (asked & FI_MULTICAST);
}

/* @return 0; -FI_ENODATA: not with these addresses; -FI_ENOMEM */
static int info_make(const struct query *q, enum fi_ep_type type, const struct pmf_conf *conf,
		     const struct pmf_port_conf *port, const struct pmf_ifaddr *ifa,
		     struct fi_info **out)
{
	struct pmf_addr src, dest;
	char fabric[FI_NAME_MAX];
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return -FI_ENOMEM;
	if (!pmf_info_fill(info, q->hints, type, conf)) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	if (!port->mcast_ttl)
		without_multicast(info);
	if (!choose_addrs(q, ifa, info->caps, &src, &dest)) {
		fi_freeinfo(info);
		return -FI_ENODATA;
	}
	if (type == FI_EP_MSG && q->hints)
		info->handle = q->hints->handle;
	info->addr_format = q->format ? q->format : pmf_addr_format_of(&src);
	info->src_addr = pmf_addr_dup(&src, info->addr_format, &info->src_addrlen);
	if (q->has_dest || q->dest_is_own)
		info->dest_addr = pmf_addr_dup(&dest, info->addr_format, &info->dest_addrlen);
	info->domain_attr->name = strdup(port->name);
	info->fabric_attr->name = strdup(pmf_fabric_name(ifa, fabric, sizeof(fabric)));
	/* prov_name stays NULL: the core sets it, and would write it twice. */
	info->fabric_attr->prov_version = pmf_prov.version;
	if (!info->src_addr || !info->domain_attr->name || !info->fabric_attr->name ||
	    ((q->has_dest || q->dest_is_own) && !info->dest_addr)) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	*out = info;
	return 0;
}

/* @return 0, -FI_ENOMEM */
static int append_port(const struct query *q, enum fi_ep_type type, const struct pmf_conf *conf,
		       const struct pmf_port_conf *port, struct fi_info ***tail)
{
	const struct pmf_ifaddr *const ifas[] = {&port->v4, &port->v6};
	char fabric[FI_NAME_MAX];

	if (lacks_multicast(q->hints, port))
		return 0;
	for (size_t i = 0; i < PMF_ARRAY_SIZE(ifas); i++) {
		uint32_t format;
		int rc;

		if (!ifas[i]->set)
			continue;
		format = pmf_addr_format_of(&ifas[i]->addr);
		if (q->format && q->format != FI_ADDR_STR && q->format != format)
			continue;
		if (!names_match(q->hints, port->name,
				 pmf_fabric_name(ifas[i], fabric, sizeof(fabric))))
			continue;
		rc = info_make(q, type, conf, port, ifas[i], *tail);
		if (rc == -FI_ENOMEM)
			return rc;
		if (!rc)
			*tail = &(**tail)->next;
	}
	return 0;
}

/*
 * Without hugepages some links cannot run; better said now than at fi_domain. An EAL that runs has
 * taken its own: how many are free then says nothing.
 */
static const char *huge_problem(const struct pmf_conf *conf)
{
	if (pmf_eal_running())
		return NULL;
	if (conf->huge != PMF_HUGE_OFF && pmf_eal_hugepages_usable())
		return NULL;
	if (conf->huge == PMF_HUGE_ON)
		return "FI_PMF_HUGEPAGES=on, but no free hugepages or no hugetlbfs to write to";
	for (unsigned int i = 0; i < conf->nports; i++)
		if (conf->port[i].is_pci)
			return "FI_PMF_PORT names a PCI device, which needs hugepages: reserve "
			       "some "
			       "(dpdk-hugepages.py --setup 1G), and do not say "
			       "FI_PMF_HUGEPAGES=off";
	return NULL;
}

static const struct pmf_conf *usable_conf(void)
{
	const struct pmf_conf *conf = pmf_conf_load();
	const char *why;

	if (!conf)
		return NULL;
	if (!conf->nports) {
		pmf_warn(CORE, "no port is configured: set FI_PMF_PORT, for example to "
			       "\"0000:03:00.0 10.99.0.1/24\"\n");
		return NULL;
	}
	why = huge_problem(conf);
	if (why) {
		pmf_warn(CORE, "%s\n", why);
		return NULL;
	}
	return conf;
}

static bool type_meant(const struct fi_info *hints, uint64_t flags, enum fi_ep_type type)
{
	enum fi_ep_type hinted = hints && hints->ep_attr ? hints->ep_attr->type : FI_EP_UNSPEC;
	const char *why;

	if (hinted != FI_EP_UNSPEC && hinted != type)
		return false;
	if (type == FI_EP_MSG && (flags & CORE_PROV_ONLY))
		return false;
	why = pmf_info_check_type(hints, type);
	if (why)
		pmf_info(CORE, "hints: %s\n", why);
	return !why;
}

int pmf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	/* the unconnected ones first: a program that does not say gets them */
	static const enum fi_ep_type types[] = {FI_EP_RDM, FI_EP_MSG};
	struct fi_info *head = NULL, **tail = &head;
	const struct pmf_conf *conf;
	const char *why = pmf_info_check(hints);
	struct query q;

	if (why) {
		pmf_info(CORE, "hints: %s\n", why);
		return -FI_ENODATA;
	}
	conf = usable_conf();
	if (!conf || query_make(&q, node, service, flags, hints))
		return -FI_ENODATA;
	for (size_t t = 0; t < PMF_ARRAY_SIZE(types); t++) {
		if (!type_meant(hints, flags, types[t]))
			continue;
		for (unsigned int i = 0; i < conf->nports; i++) {
			int rc = append_port(&q, types[t], conf, &conf->port[i], &tail);

			if (rc) {
				fi_freeinfo(head);
				return rc;
			}
		}
	}
	if (!head) {
		pmf_info(CORE, "no configured port has the names and addresses asked for\n");
		return -FI_ENODATA;
	}
	*info = head;
	return 0;
}
