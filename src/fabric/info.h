/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * fi_getinfo: what is offered comes from the configuration and from the limits below alone; EAL is
 * never started for it.
 */
#ifndef PMF_FABRIC_INFO_H
#define PMF_FABRIC_INFO_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include "completion/cq.h"
#include "fabric/param.h"

/* The headers that this is compiled with. */
#define PMF_HEADERS FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

#define PMF_CAPS_PRIMARY (FI_MSG | FI_MULTICAST | FI_SEND | FI_RECV | FI_DIRECTED_RECV)
#define PMF_CAPS_FREE                                                              \
	(FI_MULTI_RECV | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM) /* set unasked \
								     */
#define PMF_CAPS_SECONDARY (PMF_CAPS_FREE | FI_SOURCE | FI_SOURCE_ERR)
#define PMF_CAPS (PMF_CAPS_PRIMARY | PMF_CAPS_SECONDARY)
/* libfabric counts FI_MULTICAST among what is sent; who joins needs FI_RECV alone. */
#define PMF_TX_CAPS (FI_MSG | FI_MULTICAST | FI_SEND | FI_FENCE)
#define PMF_RX_CAPS \
	(FI_MSG | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR)
#define PMF_MSG_PREFIX_SIZE 8
#define PMF_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
/* Of FI_EP_MSG: what names a peer of many is not a connection's. */
#define PMF_MSG_CAPS (PMF_CAPS & ~(FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV | FI_MULTICAST))
#define PMF_LEVELS (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define PMF_TX_OP_FLAGS (FI_COMPLETION | FI_INJECT | FI_MULTICAST | PMF_LEVELS)
#define PMF_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE)
#define PMF_MSG_ORDER FI_ORDER_SAS
#define PMF_PROTOCOL ((1u << 31) | 0x706d66u) /* the high bit: provider specific */
#define PMF_PROTOCOL_VERSION 1
#define PMF_OBJECTS 65536 /* CQs, counters, regions; memory is the limit, not a table */
#define PMF_ENDPOINTS 16384
#define PMF_MR_IOV_LIMIT 4
#define PMF_CQ_DATA_SIZE 8
#define PMF_MR_KEY_SIZE 8
#define PMF_MAX_ERR_DATA PMF_CQ_ERR_DATA /* the sender of FI_SOURCE_ERR */

/** The member of fi_provider. -FI_ENODATA: nothing fits, the reason is logged. */
int pmf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

/** @return NULL, or a sentence that says which hint cannot be met. Addresses and names are not
 * looked at. */
const char *pmf_info_check(const struct fi_info *hints);

/** The same for the attributes that fi_endpoint(3) was given. */
const char *pmf_info_check_ep(const struct fi_info *info);

/** The same for fi_srx_context(3). @p a may be NULL. */
const char *pmf_info_check_rx(const struct fi_rx_attr *a);

/** The code point of a traffic class; FI_TC_UNSPEC leaves @p dscp alone. @return false: no such
 * class
 */
bool pmf_info_dscp(uint32_t tclass, uint8_t *dscp);

/** Set all attributes of @p info but names and addresses. @p hints may be NULL. @return false: no
 * memory */
bool pmf_info_fill(struct fi_info *info, const struct fi_info *hints, enum fi_ep_type type,
		   const struct pmf_conf *conf);

/** @return NULL, or a sentence: the hints ask for what endpoints of @p type do not have. */
const char *pmf_info_check_type(const struct fi_info *hints, enum fi_ep_type type);

/** "10.99.0.0/24": the name of the fabric that an address of a port is in. */
char *pmf_fabric_name(const struct pmf_ifaddr *ifa, char *buf, size_t len);

#endif
