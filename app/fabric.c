/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "clock.h"
#include "error.h"

/*
 * Provider, domain and addresses. The infos are what fi_getinfo gave; the control endpoint and the
 * data endpoints differ in nothing but the local port.
 */

#define API FI_VERSION(1, 17)
#define DEFAULT_NAME "pmf-perf"

static struct fi_info *make_hints(const struct perf_options *o)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG;
	hints->mode = 0;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = o->thread_safe ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	hints->domain_attr->data_progress =
		o->auto_progress ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	if (o->domain[0])
		hints->domain_attr->name = strdup(o->domain);
	hints->fabric_attr->prov_name = strdup(o->provider);
	return hints;
}

/* Does the library have a provider of this name at all? */
static bool is_known(const char *provider)
{
	struct fi_info *all = NULL, *info;
	bool known = false;

	/* Layered names ("udp;ofi_rxd") are no providers by themselves. */
	if (strchr(provider, ';') || fi_getinfo(API, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &all))
		return true;
	for (info = all; info && !known; info = info->next)
		known = strcmp(info->fabric_attr->prov_name, provider) == 0;
	fi_freeinfo(all);
	return known;
}

static int fail_getinfo(const struct perf_options *o, const char *what, int rc)
{
	if (!is_known(o->provider))
		return perf_fail("libfabric has no provider '%s' here (fi_info -l names them, "
				 "FI_PROVIDER_PATH says where more are)",
				 o->provider);
	if (strcmp(o->provider, "pmf") == 0 && !getenv("FI_PMF_PORT"))
		return perf_fail("provider pmf has no port: FI_PMF_PORT is not set");
	if (rc == -FI_ENODATA)
		return perf_fail("provider %s offers nothing for %s%s (FI_LOG_LEVEL=warn says why)",
				 o->provider, what,
				 o->auto_progress ? " with automatic progress" : "");
	return perf_fail("provider %s does not know %s: %s", o->provider, what, fi_strerror(-rc));
}

/* Part "ADDR:PORT" and "[ADDR6]:PORT"; a name with several colons stays whole. */
static int split_peer(const char *peer, const char *port, char *node, char *service)
{
	const char *colon = strrchr(peer, ':'), *end = strchr(peer, ']');
	size_t len = strlen(peer);

	snprintf(service, 8, "%s", port);
	if (strstr(peer, "://")) {
		strcpy(node, peer);
		service[0] = '\0';
		return 0;
	}
	if (peer[0] == '[') {
		if (!end || (end[1] && end[1] != ':'))
			return perf_fail("'%s' is not an address", peer);
		snprintf(node, PERF_TEXT_MAX, "%.*s", (int)(end - peer - 1), peer + 1);
		colon = end[1] ? end + 1 : NULL;
	} else {
		if (colon && strchr(peer, ':') != colon)
			colon = NULL;
		snprintf(node, PERF_TEXT_MAX, "%.*s", (int)(colon ? (size_t)(colon - peer) : len),
			 peer);
	}
	if (colon) {
		if (!colon[1] || strlen(colon + 1) > 5 ||
		    colon[1 + strspn(colon + 1, "0123456789")])
			return perf_fail("'%s' has no valid port", peer);
		strcpy(service, colon + 1);
	}
	return 0;
}

static int lookup(const struct perf_options *o, const struct fi_info *hints, const char *peer,
		  struct fi_info **info)
{
	char node[PERF_TEXT_MAX], service[8], what[PERF_TEXT_MAX + 16];
	int rc;

	if (split_peer(peer, o->port, node, service))
		return -1;
	rc = fi_getinfo(API, node, service[0] ? service : NULL, 0, hints, info);
	if (rc) {
		snprintf(what, sizeof(what), "peer %s", peer);
		return fail_getinfo(o, what, rc);
	}
	return 0;
}

static bool has_names(const struct fi_info *info)
{
	return info->addr_format == FI_ADDR_STR;
}

static int find_server(const struct perf_options *o, struct fi_info *hints, struct fi_info **info)
{
	char what[PERF_TEXT_MAX + 32];
	const char *node = o->bind[0] ? o->bind : NULL;
	struct fi_info *any = NULL;
	int rc;

	snprintf(what, sizeof(what), "own address %s", node ? node : "(any)");
	/* Where addresses are names, a server without one could not be found. */
	if (!node && fi_getinfo(API, NULL, o->port, FI_SOURCE, hints, &any) == 0) {
		if (has_names(any))
			node = DEFAULT_NAME;
		fi_freeinfo(any);
	}
	rc = fi_getinfo(API, node, o->port, FI_SOURCE, hints, info);
	return rc ? fail_getinfo(o, what, rc) : 0;
}

static int find_client(const struct perf_options *o, struct fi_info *hints, struct fi_info **info)
{
	struct fi_info *own = NULL;
	int rc;

	if (o->bind[0]) {
		rc = fi_getinfo(API, o->bind, NULL, FI_SOURCE, hints, &own);
		if (rc)
			return fail_getinfo(o, "the own address", rc);
		hints->addr_format = own->addr_format;
		hints->src_addr = own->src_addr;
		hints->src_addrlen = own->src_addrlen;
		own->src_addr = NULL;
		own->src_addrlen = 0;
		fi_freeinfo(own);
	}
	return lookup(o, hints, o->peers[0], info);
}

/* The same info with any local port, for endpoints whose names travel in messages. */
static int make_data_info(struct perf_fabric *f)
{
	struct fi_info *hints, *any = NULL;

	f->data_info = fi_dupinfo(f->info);
	if (!f->data_info)
		return perf_fail("no memory for the provider's description");
	if (f->info->addr_format == FI_SOCKADDR_IN || f->info->addr_format == FI_SOCKADDR_IN6 ||
	    f->info->addr_format == FI_SOCKADDR) {
		/* sin_port and sin6_port stand in the same place. */
		if (f->data_info->src_addr)
			((struct sockaddr_in *)f->data_info->src_addr)->sin_port = 0;
		return 0;
	}
	hints = make_hints(f->options);
	if (hints && fi_getinfo(API, NULL, NULL, 0, hints, &any) == 0 && any->src_addr) {
		free(f->data_info->src_addr);
		f->data_info->src_addr = any->src_addr;
		f->data_info->src_addrlen = any->src_addrlen;
		any->src_addr = NULL;
		any->src_addrlen = 0;
	}
	fi_freeinfo(any);
	fi_freeinfo(hints);
	return 0;
}

/* Megabytes that are this process's now, huge pages and all; 0 where the kernel does not say. */
static double resident_mb(void)
{
	static const char *const names[] = {"VmRSS:", "HugetlbPages:"};
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kb, sum = 0;
	char line[128];
	size_t i;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		for (i = 0; i < 2; i++) {
			if (strncmp(line, names[i], strlen(names[i])) == 0 &&
			    sscanf(line + strlen(names[i]), "%lu", &kb) == 1)
				sum += kb;
		}
	}
	fclose(file);
	return (double)sum / 1024;
}

static int open_objects(struct perf_fabric *f)
{
	double before = resident_mb();
	uint64_t begun;
	int rc;

	rc = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (rc)
		return perf_fail("provider %s does not open its fabric: %s", f->options->provider,
				 fi_strerror(-rc));
	begun = perf_now();
	rc = fi_domain(f->fabric, f->info, &f->domain, NULL);
	f->domain_ns = perf_now() - begun;
	f->domain_mb = resident_mb() - before;
	if (rc)
		return perf_fail("provider %s does not open domain %s: %s (FI_LOG_LEVEL=warn says "
				 "why)",
				 f->options->provider, f->info->domain_attr->name,
				 fi_strerror(-rc));
	f->mr_local = f->options->mr || (f->info->domain_attr->mr_mode & FI_MR_LOCAL);
	return 0;
}

int perf_fabric_open(struct perf_fabric *f, const struct perf_options *options)
{
	struct fi_info *hints = make_hints(options);
	int rc;

	memset(f, 0, sizeof(*f));
	f->options = options;
	if (!hints)
		return perf_fail("no memory for hints");
	rc = options->listen || options->self ? find_server(options, hints, &f->info)
					      : find_client(options, hints, &f->info);
	fi_freeinfo(hints);
	if (rc == 0)
		rc = make_data_info(f);
	if (rc == 0)
		rc = open_objects(f);
	if (rc)
		perf_fabric_close(f);
	return rc;
}

void perf_fabric_close(struct perf_fabric *f)
{
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	fi_freeinfo(f->data_info);
	fi_freeinfo(f->info);
	memset(f, 0, sizeof(*f));
}

int perf_fabric_lookup(struct perf_fabric *f, const char *peer, struct fi_info **info)
{
	struct fi_info *hints = make_hints(f->options), *found = NULL;
	int rc;

	if (!hints)
		return perf_fail("no memory for hints");
	/* Another peer must be reached by the domain that is open. */
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup(f->info->domain_attr->name);
	hints->addr_format = f->info->addr_format;
	rc = lookup(f->options, hints, peer, &found);
	fi_freeinfo(hints);
	if (rc == 0 && !found->dest_addr) {
		fi_freeinfo(found);
		rc = perf_fail("provider %s gives no address for peer %s", f->options->provider,
			       peer);
	}
	if (rc == 0)
		*info = found;
	return rc;
}
