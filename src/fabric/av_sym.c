/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Insertion by node and service, alone or counted up.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fabric/av.h"
#include "msg/addr.h"

/* The first address of the node that an endpoint of this domain can reach. */
static int resolve(const struct pmf_av *av, const char *node, const char *service,
		   struct pmf_addr *out)
{
	const struct pmf_port_conf *port = &av->domain->conf->port[av->domain->port];
	struct pmf_addr found[8];
	int n, family = AF_UNSPEC;

	if (av->addr_format == FI_SOCKADDR_IN)
		family = AF_INET;
	else if (av->addr_format == FI_SOCKADDR_IN6)
		family = AF_INET6;
	n = pmf_addr_resolve(node, service, family, 0, found, PMF_ARRAY_SIZE(found));
	for (int i = 0; i < n; i++)
		if (pmf_addr_is_v4(&found[i]) ? port->v4.set : port->v6.set) {
			*out = found[i];
			return out->port && !pmf_addr_is_any(out) ? 0 : -FI_EINVAL;
		}
	return -FI_EADDRNOTAVAIL;
}

int pmf_av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	int rc = pmf_av_flags(av, fi_addr, flags);
	struct pmf_addr addr = {0};
	struct pmf_av_add add;

	if (rc)
		return rc;
	if (!node)
		return -FI_EINVAL;
	pmf_av_add_start(&add, av, fi_addr, flags, context);
	pmf_av_add_one(&add, &addr, -resolve(av, node, service, &addr));
	return pmf_av_add_end(&add);
}

/* The numeric address @p n after @p a. @return false: that would leave the address space */
static bool addr_plus(struct pmf_addr *a, size_t n)
{
	int last = pmf_addr_is_v4(a) ? 12 : 0;

	for (int i = 15; i >= last && n; i--) {
		n += a->ip[i];
		a->ip[i] = (uint8_t)n;
		n >>= 8;
	}
	return n == 0;
}

/* "node7" + 3 is "node10", "node07" + 3 is "node10": digits keep their width. */
static int name_plus(const char *name, size_t n, char *out, size_t len)
{
	size_t end = strlen(name), digits = end;

	while (digits > 0 && isdigit((unsigned char)name[digits - 1]))
		digits--;
	if (n && digits == end)
		return -FI_EINVAL;
	if (digits == end)
		return snprintf(out, len, "%s", name) < (int)len ? 0 : -FI_EINVAL;
	n += strtoul(name + digits, NULL, 10);
	return snprintf(out, len, "%.*s%0*zu", (int)digits, name, (int)(end - digits), n) < (int)len
		       ? 0
		       : -FI_EINVAL;
}

static int sym_addr(const struct pmf_av *av, const char *node, size_t i, const char *service,
		    size_t j, struct pmf_addr *out)
{
	char name[256];
	int rc;

	/* A number counts up as a number, across the octets; a name by the digits at its end. */
	if (pmf_addr_resolve(node, service, AF_UNSPEC, FI_NUMERICHOST, out, 1) == 1) {
		rc = resolve(av, node, service, out);
		if (!rc && !addr_plus(out, i))
			rc = -FI_EINVAL;
	} else {
		rc = name_plus(node, i, name, sizeof(name));
		if (!rc)
			rc = resolve(av, name, service, out);
	}
	if (!rc && out->port + j > 65535)
		rc = -FI_EINVAL;
	out->port = (uint16_t)(out->port + j);
	return rc;
}

int pmf_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
		     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	int rc = pmf_av_flags(av, fi_addr, flags);
	struct pmf_av_add add;

	if (rc)
		return rc;
	if (!node || !service)
		return -FI_EINVAL;
	pmf_av_add_start(&add, av, fi_addr, flags, context);
	for (size_t i = 0; i < nodecnt; i++)
		for (size_t j = 0; j < svccnt; j++) {
			struct pmf_addr addr = {0};

			rc = sym_addr(av, node, i, service, j, &addr);
			pmf_av_add_one(&add, &addr, -rc);
		}
	return pmf_av_add_end(&add);
}
