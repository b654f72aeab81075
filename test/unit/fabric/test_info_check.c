/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Rows F6 and F8: every hint that cannot be met is refused by itself, every one that can be is not.
 */
#include "fabric/info.h"

#include "msg/ep.h"
#include "../unit.h"

static struct fi_info *hints_new(void)
{
	struct fi_info *h = fi_allocinfo();

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	return h;
}

#define EXPECT(met, assignment)                                                      \
	do {                                                                         \
		struct fi_info *h = hints_new();                                     \
		const char *why;                                                     \
		assignment;                                                          \
		why = pmf_info_check(h);                                             \
		if ((why == NULL) != (met))                                          \
			printf("\n    %s: %s\n", #assignment, why ? why : "is met"); \
		CU_ASSERT_EQUAL(why == NULL, met);                                   \
		h->handle = NULL;                                                    \
		fi_freeinfo(h);                                                      \
	} while (0)
#define MET(assignment) EXPECT(true, assignment)
#define NOT_MET(assignment) EXPECT(false, assignment)

static void test_no_hints_are_met(void)
{
	CU_ASSERT_PTR_NULL(pmf_info_check(NULL));
	MET((void)0);
}

static void test_capabilities(void)
{
	MET(h->caps = FI_MSG);
	MET(h->caps = FI_MSG | FI_SEND);
	MET(h->caps = FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM);
	NOT_MET(h->caps = FI_TAGGED);
	NOT_MET(h->caps = FI_MSG | FI_RMA);
	NOT_MET(h->caps = FI_ATOMIC);
	NOT_MET(h->caps = FI_MSG | FI_TRIGGER);
	NOT_MET(h->caps = FI_MSG | FI_NAMED_RX_CTX);
	NOT_MET(h->caps = FI_MSG | FI_SHARED_AV);
	NOT_MET(h->caps = FI_MSG | FI_HMEM);
	NOT_MET(h->caps = FI_COLLECTIVE);
	NOT_MET(h->caps = FI_MSG | 1ull << 48);
	NOT_MET(h->domain_attr->caps = FI_SHARED_AV);
	NOT_MET(h->domain_attr->caps = FI_AV_USER_ID);
}

static void test_modes_are_never_a_reason(void)
{
	MET(h->mode = ~0ull);
	MET(h->domain_attr->mr_mode = 0);
	MET(h->domain_attr->mr_mode = FI_MR_LOCAL);
	MET(h->domain_attr->mr_mode = 1);
	MET(h->domain_attr->mr_mode = 2);
}

static void test_endpoint(void)
{
	MET(h->ep_attr->type = FI_EP_RDM);
	NOT_MET(h->ep_attr->type = FI_EP_DGRAM);
	NOT_MET(h->ep_attr->type = FI_EP_DGRAM);
	MET(h->ep_attr->max_msg_size = 1ull << 30);
	NOT_MET(h->ep_attr->max_msg_size = SIZE_MAX);
	NOT_MET(h->ep_attr->tx_ctx_cnt = 2);
	NOT_MET(h->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT);
	NOT_MET(h->ep_attr->rx_ctx_cnt = 2);
	MET(h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT);
	NOT_MET(h->ep_attr->auth_key_size = 16); /* without a key */
	NOT_MET(h->ep_attr->auth_key_size = SIZE_MAX);
	NOT_MET(h->ep_attr->protocol = FI_PROTO_UDP);
	MET(h->ep_attr->protocol = PMF_PROTOCOL);
	NOT_MET(h->ep_attr->protocol_version = 99);
}

static void test_addresses(void)
{
	MET(h->addr_format = FI_SOCKADDR);
	MET(h->addr_format = FI_SOCKADDR_IN);
	MET(h->addr_format = FI_SOCKADDR_IN6);
	MET(h->addr_format = FI_ADDR_STR);
	NOT_MET(h->addr_format = FI_SOCKADDR_IB);
	NOT_MET(h->addr_format = FI_ADDR_PSMX2);
}

static void test_domain(void)
{
	MET(h->domain_attr->threading = FI_THREAD_SAFE);
	MET(h->domain_attr->threading = FI_THREAD_DOMAIN);
	MET(h->domain_attr->threading = FI_THREAD_COMPLETION);
	MET(h->domain_attr->data_progress = FI_PROGRESS_AUTO);
	MET(h->domain_attr->control_progress = FI_PROGRESS_AUTO);
	MET(h->domain_attr->resource_mgmt = FI_RM_DISABLED);
	MET(h->domain_attr->av_type = FI_AV_MAP);
	MET(h->domain_attr->av_type = FI_AV_TABLE);
	MET(h->domain_attr->cq_data_size = 8);
	NOT_MET(h->domain_attr->cq_data_size = 16);
	NOT_MET(h->domain_attr->max_ep_tx_ctx = 2);
	NOT_MET(h->domain_attr->max_ep_stx_ctx = 1);
	MET(h->domain_attr->max_ep_srx_ctx = 1);
#ifdef FI_AV_AUTH_KEY
	MET(h->domain_attr->auth_key_size = FI_AV_AUTH_KEY);
	MET(h->domain_attr->max_ep_auth_key = PMF_EP_KEYS);
	NOT_MET(h->domain_attr->max_ep_auth_key = PMF_EP_KEYS + 1);
#else
	NOT_MET(h->domain_attr->auth_key_size = SIZE_MAX);
#endif
	NOT_MET(h->domain_attr->ep_cnt = SIZE_MAX);
}

static void test_transmit_and_receive(void)
{
	MET(h->tx_attr->op_flags = FI_COMPLETION | FI_INJECT | FI_DELIVERY_COMPLETE);
	NOT_MET(h->tx_attr->op_flags = FI_MORE);
	NOT_MET(h->tx_attr->op_flags = FI_COMMIT_COMPLETE);
	MET(h->rx_attr->op_flags = FI_COMPLETION | FI_TRANSMIT_COMPLETE);
	NOT_MET(h->rx_attr->op_flags = FI_INJECT);
	MET(h->tx_attr->msg_order = FI_ORDER_SAS);
	NOT_MET(h->tx_attr->msg_order = FI_ORDER_RAW);
	NOT_MET(h->tx_attr->comp_order = FI_ORDER_SAS);
	NOT_MET(h->rx_attr->comp_order = FI_ORDER_SAS);
	MET(h->tx_attr->inject_size = 4096);
	NOT_MET(h->tx_attr->inject_size = SIZE_MAX);
	NOT_MET(h->tx_attr->size = SIZE_MAX);
	NOT_MET(h->rx_attr->size = SIZE_MAX);
	NOT_MET(h->tx_attr->iov_limit = 1000);
	NOT_MET(h->rx_attr->iov_limit = 1000);
}

static struct pmf_conf defaults = {
	.tx_size = 100, .rx_size = 200, .inject_size = 300, .iov_limit = 4};

static void expect_dscp(uint32_t tclass, int want)
{
	uint8_t dscp = 77;

	CU_ASSERT_EQUAL(pmf_info_dscp(tclass, &dscp), want >= 0);
	CU_ASSERT_EQUAL(dscp, want < 0 ? 77 : want);
}

static void test_F6_traffic_classes(void)
{
	struct fi_info *hints = hints_new(), *i = hints_new();

	NOT_MET(h->tx_attr->tclass = 1);
	NOT_MET(h->domain_attr->tclass = FI_TC_DSCP + 64);
	MET(h->tx_attr->tclass = FI_TC_BULK_DATA);
	MET(h->domain_attr->tclass = fi_tc_dscp_set(63));
	expect_dscp(FI_TC_UNSPEC, 77);
	expect_dscp(fi_tc_dscp_set(0), 0);
	expect_dscp(fi_tc_dscp_set(63), 63);
	expect_dscp(FI_TC_BEST_EFFORT, 0);
	expect_dscp(FI_TC_NETWORK_CTRL, 48);
	expect_dscp(FI_TC_NETWORK_CTRL + 1, -1);
	hints->tx_attr->tclass = FI_TC_LOW_LATENCY;
	hints->domain_attr->tclass = FI_TC_SCAVENGER;
	pmf_info_fill(i, hints, FI_EP_RDM, &defaults);
	CU_ASSERT_EQUAL(i->tx_attr->tclass, FI_TC_LOW_LATENCY);
	CU_ASSERT_EQUAL(i->domain_attr->tclass, FI_TC_SCAVENGER);
	fi_freeinfo(hints);
	fi_freeinfo(i);
}

static void test_F6_primary_capabilities_only_when_asked_for(void)
{
	struct fi_info *h = hints_new(), *i = hints_new();

	h->caps = FI_MSG | FI_SEND;
	pmf_info_fill(i, h, FI_EP_RDM, &defaults);
	CU_ASSERT_EQUAL(i->caps & PMF_CAPS_PRIMARY, FI_MSG | FI_SEND);
	h->caps = FI_MSG;
	pmf_info_fill(i, h, FI_EP_RDM, &defaults);
	CU_ASSERT_EQUAL(i->caps & PMF_CAPS_PRIMARY, FI_MSG | FI_SEND | FI_RECV);
	CU_ASSERT_EQUAL(i->tx_attr->caps & (FI_SEND | FI_RECV), FI_SEND);
	CU_ASSERT_EQUAL(i->rx_attr->caps & (FI_SEND | FI_RECV), FI_RECV);
	pmf_info_fill(i, NULL, FI_EP_RDM, &defaults);
	CU_ASSERT_EQUAL(i->caps, PMF_CAPS);
	fi_freeinfo(h);
	fi_freeinfo(i);
}

static void test_F6_sizes_are_the_hints_or_the_defaults(void)
{
	struct fi_info *h = hints_new(), *i = hints_new();

	pmf_info_fill(i, h, FI_EP_RDM, &defaults);
	CU_ASSERT_EQUAL(i->tx_attr->size, 100);
	CU_ASSERT_EQUAL(i->rx_attr->size, 200);
	CU_ASSERT_EQUAL(i->tx_attr->inject_size, 300);
	h->tx_attr->size = 512;
	h->rx_attr->size = 7;
	h->tx_attr->inject_size = 1000;
	h->domain_attr->threading = FI_THREAD_FID;
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	h->domain_attr->control_progress = (enum fi_progress)3; /* FI_PROGRESS_CONTROL_UNIFIED */
	h->domain_attr->av_type = FI_AV_MAP;
	h->mode = FI_CONTEXT | FI_MSG_PREFIX;
	h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
	pmf_info_fill(i, h, FI_EP_RDM, &defaults);
	CU_ASSERT_EQUAL(i->tx_attr->size, 512);
	CU_ASSERT_EQUAL(i->rx_attr->size, 7);
	CU_ASSERT_EQUAL(i->tx_attr->inject_size, 1000);
	CU_ASSERT_EQUAL(i->domain_attr->threading, FI_THREAD_FID);
	CU_ASSERT_EQUAL(i->domain_attr->data_progress, FI_PROGRESS_AUTO);
	CU_ASSERT_EQUAL(i->domain_attr->control_progress, FI_PROGRESS_MANUAL);
	CU_ASSERT_EQUAL(i->domain_attr->av_type, FI_AV_MAP);
	CU_ASSERT_EQUAL(i->mode, FI_MSG_PREFIX);
	CU_ASSERT_EQUAL(i->ep_attr->msg_prefix_size % 8, 0);
	CU_ASSERT_EQUAL(i->domain_attr->mr_mode, 0);
	CU_ASSERT_EQUAL(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
	/* what is offered can be handed straight to fi_endpoint */
	CU_ASSERT_PTR_NULL(pmf_info_check_ep(i));
	fi_freeinfo(h);
	fi_freeinfo(i);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_no_hints_are_met),
	UNIT_TEST(test_capabilities),
	UNIT_TEST(test_modes_are_never_a_reason),
	UNIT_TEST(test_endpoint),
	UNIT_TEST(test_addresses),
	UNIT_TEST(test_domain),
	UNIT_TEST(test_transmit_and_receive),
	UNIT_TEST(test_F6_traffic_classes),
	UNIT_TEST(test_F6_primary_capabilities_only_when_asked_for),
	UNIT_TEST(test_F6_sizes_are_the_hints_or_the_defaults),
};
UNIT_MAIN("fabric info_check")
