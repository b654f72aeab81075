/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Addresses as libfabric writes them, sockaddr_in, sockaddr_in6 and FI_ADDR_STR
 * ("fi_sockaddr_in://10.99.0.1:4000", "fi_sockaddr_in6://[fd00::1]:4000"), and struct pmf_addr.
 */
#ifndef PMF_MSG_ADDR_H
#define PMF_MSG_ADDR_H

#include <rdma/fabric.h>

#include "pmf_common.h"

#define PMF_ADDR_TEXT 80 /* longest FI_ADDR_STR with its NUL, rounded up */

/** @return whether @p format is one of ours: FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_ADDR_STR. */
bool pmf_addr_format_ok(uint32_t format);

/** FI_SOCKADDR_IN or _IN6, by the address's family. */
uint32_t pmf_addr_format_of(const struct pmf_addr *a);

/**
 * Read one address in @p format; FI_FORMAT_UNSPEC and FI_SOCKADDR go by sa_family.
 * @param len  bytes at @p in; 0: not known, trust it
 * @return 0; -FI_EINVAL not an address of that format
 */
int pmf_addr_get(const void *in, size_t len, uint32_t format, struct pmf_addr *out);

/**
 * Write @p a in @p format.
 * @param len  in: room; out: the full length
 * @return 0; -FI_ETOOSMALL: cut to the room; -FI_EINVAL: the format cannot hold the address
 */
int pmf_addr_put(const struct pmf_addr *a, uint32_t format, void *out, size_t *len);

/** @p a in @p format in memory of malloc(3), as fi_freeinfo frees it. @return NULL: no memory */
void *pmf_addr_dup(const struct pmf_addr *a, uint32_t format, size_t *len);

/** "10.99.0.1:4000", "[fd00::1]:4000". @return @p buf */
char *pmf_addr_text(const struct pmf_addr *a, char *buf, size_t len);

/**
 * Resolve a node and service as fi_getinfo(3) takes them; @p node may be in FI_ADDR_STR form.
 * @param family  AF_INET, AF_INET6 or AF_UNSPEC
 * @param flags   FI_NUMERICHOST counts
 * @param out     at most @p max addresses
 * @return how many; -FI_ENODATA none
 */
int pmf_addr_resolve(const char *node, const char *service, int family, uint64_t flags,
		     struct pmf_addr *out, unsigned int max);

/** @return whether the IP address is 0.0.0.0 or ::. */
bool pmf_addr_is_any(const struct pmf_addr *a);

#endif
