/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Each hint against what is offered, one by one. Pure: no configuration, no environment.
 */
#include "fabric/auth.h"
#include "fabric/info.h"
#include "msg/addr.h"
#include "msg/transfer.h"

/* Enumerators of later headers that are understood all the same. */
#define PROGRESS_CONTROL_UNIFIED 3

#define CHECK(cond, sentence)            \
	do {                             \
		if (!(cond))             \
			return sentence; \
	} while (0)

/* The labels by the service classes of RFC 4594 §2.3 that have their meaning; scavengers RFC 8622.
 */
bool pmf_info_dscp(uint32_t tclass, uint8_t *dscp)
{
	static const uint8_t of_label[] = {
		[FI_TC_BEST_EFFORT - FI_TC_LABEL] = 0,	     /* DF */
		[FI_TC_LOW_LATENCY - FI_TC_LABEL] = 18,	     /* AF21 */
		[FI_TC_DEDICATED_ACCESS - FI_TC_LABEL] = 46, /* EF */
		[FI_TC_BULK_DATA - FI_TC_LABEL] = 10,	     /* AF11 */
		[FI_TC_SCAVENGER - FI_TC_LABEL] = 1,	     /* LE */
		[FI_TC_NETWORK_CTRL - FI_TC_LABEL] = 48,     /* CS6 */
	};

	if (tclass == FI_TC_UNSPEC)
		return true;
	if (tclass >= FI_TC_DSCP && tclass < FI_TC_DSCP + 64) {
		*dscp = (uint8_t)(tclass - FI_TC_DSCP);
		return true;
	}
	if (tclass < FI_TC_LABEL || tclass - FI_TC_LABEL >= PMF_ARRAY_SIZE(of_label))
		return false;
	*dscp = of_label[tclass - FI_TC_LABEL];
	return true;
}

static const char *check_ep(const struct fi_ep_attr *a)
{
	const char *why;

	if (!a)
		return NULL;
	CHECK(a->type == FI_EP_UNSPEC || a->type == FI_EP_RDM || a->type == FI_EP_MSG,
	      "ep_attr->type is neither FI_EP_RDM nor FI_EP_MSG");
	CHECK(a->protocol == FI_PROTO_UNSPEC || a->protocol == PMF_PROTOCOL,
	      "ep_attr->protocol is another one");
	CHECK(a->protocol_version <= PMF_PROTOCOL_VERSION, "ep_attr->protocol_version is newer");
	CHECK(a->max_msg_size <= PMF_MAX_MSG_SIZE, "ep_attr->max_msg_size is too large");
	CHECK(a->tx_ctx_cnt <= 1, "ep_attr->tx_ctx_cnt is above 1 or FI_SHARED_CONTEXT");
	CHECK(a->rx_ctx_cnt <= 1 || a->rx_ctx_cnt == FI_SHARED_CONTEXT,
	      "ep_attr->rx_ctx_cnt is above 1");
	why = pmf_auth_check(a->auth_key, a->auth_key_size);
	return why;
}

static const char *check_domain_counts(const struct fi_domain_attr *a)
{
	CHECK(a->cq_cnt <= PMF_OBJECTS, "domain_attr->cq_cnt is too large");
	CHECK(a->cntr_cnt <= PMF_OBJECTS, "domain_attr->cntr_cnt is too large");
	CHECK(a->mr_cnt <= PMF_OBJECTS, "domain_attr->mr_cnt is too large");
	CHECK(a->ep_cnt <= PMF_ENDPOINTS, "domain_attr->ep_cnt is too large");
	CHECK(a->tx_ctx_cnt <= PMF_ENDPOINTS, "domain_attr->tx_ctx_cnt is too large");
	CHECK(a->rx_ctx_cnt <= PMF_ENDPOINTS, "domain_attr->rx_ctx_cnt is too large");
	CHECK(a->max_ep_tx_ctx <= 1, "domain_attr->max_ep_tx_ctx is above 1");
	CHECK(a->max_ep_rx_ctx <= 1, "domain_attr->max_ep_rx_ctx is above 1");
	CHECK(!a->max_ep_stx_ctx, "domain_attr->max_ep_stx_ctx is not 0");
	CHECK(a->max_ep_srx_ctx <= PMF_ENDPOINTS, "domain_attr->max_ep_srx_ctx is too large");
	CHECK(a->mr_iov_limit <= PMF_MR_IOV_LIMIT, "domain_attr->mr_iov_limit is too large");
	CHECK(a->mr_key_size <= PMF_MR_KEY_SIZE, "domain_attr->mr_key_size is too large");
	CHECK(a->cq_data_size <= PMF_CQ_DATA_SIZE, "domain_attr->cq_data_size is too large");
	CHECK(a->max_err_data <= PMF_MAX_ERR_DATA, "domain_attr->max_err_data is too large");
#if FI_VERSION_GE(PMF_HEADERS, FI_VERSION(1, 20))
	CHECK(a->max_ep_auth_key <= PMF_EP_KEYS, "domain_attr->max_ep_auth_key is too large");
#endif
#if FI_VERSION_GE(PMF_HEADERS, FI_VERSION(2, 0))
	CHECK(!a->max_group_id, "domain_attr->max_group_id is not 0");
#endif
	return NULL;
}

static bool progress_ok(enum fi_progress p)
{
	return (unsigned int)p <= PROGRESS_CONTROL_UNIFIED;
}

static const char *check_domain(const struct fi_domain_attr *a)
{
	const char *why;
	uint8_t dscp;

	if (!a)
		return NULL;
	CHECK(pmf_info_dscp(a->tclass, &dscp), "domain_attr->tclass is unknown");
	CHECK((unsigned int)a->threading <= FI_THREAD_ENDPOINT,
	      "domain_attr->threading is unknown");
	CHECK(progress_ok(a->control_progress), "domain_attr->control_progress is unknown");
	CHECK(progress_ok(a->data_progress), "domain_attr->data_progress is unknown");
	CHECK((unsigned int)a->resource_mgmt <= FI_RM_ENABLED,
	      "domain_attr->resource_mgmt is unknown");
	CHECK((unsigned int)a->av_type <= FI_AV_TABLE, "domain_attr->av_type is unknown");
	CHECK(!(a->caps & ~PMF_DOMAIN_CAPS), "domain_attr->caps has what is not offered");
	why = pmf_auth_check_domain(a->auth_key, a->auth_key_size);
	return why ? why : check_domain_counts(a);
}

static const char *check_tx(const struct fi_tx_attr *a)
{
	uint8_t dscp;

	if (!a)
		return NULL;
	CHECK(pmf_info_dscp(a->tclass, &dscp), "tx_attr->tclass is unknown");
	CHECK(!(a->caps & ~PMF_CAPS), "tx_attr->caps has what is not offered");
	CHECK(!(a->op_flags & ~PMF_TX_OP_FLAGS), "tx_attr->op_flags has what is not offered");
	CHECK(!(a->msg_order & ~PMF_MSG_ORDER), "tx_attr->msg_order is more than FI_ORDER_SAS");
	CHECK(!a->comp_order, "tx_attr->comp_order is not 0");
	CHECK(a->inject_size <= PMF_INJECT_SIZE_MAX, "tx_attr->inject_size is too large");
	CHECK(a->size <= PMF_TX_SIZE_MAX, "tx_attr->size is too large");
	CHECK(a->iov_limit <= PMF_IOV_LIMIT, "tx_attr->iov_limit is too large");
	CHECK(!a->rma_iov_limit, "tx_attr->rma_iov_limit is not 0");
	return NULL;
}

const char *pmf_info_check_rx(const struct fi_rx_attr *a)
{
	if (!a)
		return NULL;
	CHECK(!(a->caps & ~PMF_CAPS), "rx_attr->caps has what is not offered");
	CHECK(!(a->op_flags & ~PMF_RX_OP_FLAGS), "rx_attr->op_flags has what is not offered");
	CHECK(!(a->msg_order & ~PMF_MSG_ORDER), "rx_attr->msg_order is more than FI_ORDER_SAS");
	CHECK(!a->comp_order, "rx_attr->comp_order is not 0");
	CHECK(a->size <= PMF_RX_SIZE_MAX, "rx_attr->size is too large");
	CHECK(a->iov_limit <= PMF_IOV_LIMIT, "rx_attr->iov_limit is too large");
	return NULL;
}

static const char *check_keys(const struct fi_info *hints)
{
	if (!hints->ep_attr || !hints->domain_attr)
		return NULL;
	return pmf_auth_check_ep(hints->ep_attr, hints->domain_attr->auth_key_size);
}

const char *pmf_info_check(const struct fi_info *hints)
{
	const char *why;

	if (!hints)
		return NULL;
	CHECK(!(hints->caps & ~PMF_CAPS), "caps has what is not offered");
	CHECK(!(hints->caps & FI_SOURCE_ERR) || (hints->caps & FI_SOURCE),
	      "caps has FI_SOURCE_ERR without FI_SOURCE");
	CHECK(!(hints->caps & FI_MULTICAST) || (hints->caps & FI_MSG),
	      "caps has FI_MULTICAST without FI_MSG");
	CHECK(hints->addr_format == FI_FORMAT_UNSPEC || hints->addr_format == FI_SOCKADDR ||
		      pmf_addr_format_ok(hints->addr_format),
	      "addr_format is not FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_ADDR_STR");
	CHECK(!hints->handle || !hints->ep_attr || hints->ep_attr->type != FI_EP_RDM,
	      "handle is set, and an FI_EP_RDM endpoint has no connections");
	(void)((why = check_ep(hints->ep_attr)) || (why = check_domain(hints->domain_attr)) ||
	       (why = check_keys(hints)) || (why = check_tx(hints->tx_attr)) ||
	       (why = pmf_info_check_rx(hints->rx_attr)));
	return why;
}

/* Is FI_MULTICAST the default of sends? */
static bool sends_to_groups(const struct fi_info *info)
{
	return info->tx_attr && (info->tx_attr->op_flags & FI_MULTICAST);
}

const char *pmf_info_check_type(const struct fi_info *hints, enum fi_ep_type type)
{
	if (!hints)
		return NULL;
	CHECK(!sends_to_groups(hints) || !hints->caps || (hints->caps & FI_MULTICAST),
	      "tx_attr->op_flags has FI_MULTICAST, and caps do not");
	if (type == FI_EP_MSG) {
		CHECK(!(hints->caps & ~PMF_MSG_CAPS),
		      "caps has what FI_EP_MSG endpoints do not have");
		CHECK(!sends_to_groups(hints), "tx_attr->op_flags has FI_MULTICAST");
		CHECK(!hints->domain_attr || !pmf_auth_of_av(hints->domain_attr->auth_key_size),
		      "domain_attr->auth_key_size is FI_AV_AUTH_KEY");
	} else
		CHECK(!hints->handle, "handle is set, and FI_EP_RDM has no connections");
	return NULL;
}

const char *pmf_info_check_ep(const struct fi_info *info)
{
	const char *why;

	CHECK(info->ep_attr && info->ep_attr->type != FI_EP_UNSPEC, "ep_attr->type is not set");
	CHECK(info->ep_attr->type != FI_EP_MSG || !sends_to_groups(info),
	      "tx_attr->op_flags has FI_MULTICAST");
	CHECK(!(info->caps & ~PMF_CAPS), "caps has what is not offered");
	(void)((why = check_ep(info->ep_attr)) || (why = check_tx(info->tx_attr)) ||
	       (why = pmf_info_check_rx(info->rx_attr)));
	return why;
}
