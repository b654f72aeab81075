/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The attributes of an info: what the hints ask for where there is a choice, else the
 * configuration's defaults.
 */
#include "fabric/auth.h"
#include "fabric/info.h"

/* FI_MR_BASIC and FI_MR_SCALABLE by value: later headers warn about the names. */
#define MR_BASIC (1 << 0)
#define MR_SCALABLE (1 << 1)

static uint64_t fill_caps(const struct fi_info *hints, enum fi_ep_type type)
{
	uint64_t all = type == FI_EP_MSG ? PMF_MSG_CAPS : PMF_CAPS, caps;

	if (!hints || !hints->caps)
		return all;
	caps = (hints->caps & all) | (PMF_CAPS_FREE & all);
	/* FI_MSG alone means both directions. */
	if ((caps & FI_MSG) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	return caps;
}

static size_t choose(size_t hinted, size_t fallback)
{
	return hinted ? hinted : fallback;
}

static void fill_tx(struct fi_tx_attr *a, const struct fi_tx_attr *h, uint64_t caps, uint64_t mode,
		    const struct pmf_conf *conf)
{
	a->caps = caps & PMF_TX_CAPS;
	a->mode = mode;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = PMF_MSG_ORDER;
	a->comp_order = 0;
	a->inject_size = choose(h ? h->inject_size : 0, conf->inject_size);
	a->size = choose(h ? h->size : 0, conf->tx_size);
	a->iov_limit = conf->iov_limit;
	a->rma_iov_limit = 0;
	a->tclass = h ? h->tclass : FI_TC_UNSPEC;
}

static void fill_rx(struct fi_rx_attr *a, const struct fi_rx_attr *h, uint64_t caps, uint64_t mode,
		    const struct pmf_conf *conf)
{
	a->caps = caps & PMF_RX_CAPS;
	a->mode = mode;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = PMF_MSG_ORDER;
	a->comp_order = 0;
	a->size = choose(h ? h->size : 0, conf->rx_size);
	a->iov_limit = conf->iov_limit;
}

static void fill_ep(struct fi_ep_attr *a, const struct fi_ep_attr *h, enum fi_ep_type type,
		    uint64_t mode)
{
	a->type = type;
	a->protocol = PMF_PROTOCOL;
	a->protocol_version = PMF_PROTOCOL_VERSION;
	a->max_msg_size = PMF_MAX_MSG_SIZE;
	a->msg_prefix_size = mode & FI_MSG_PREFIX ? PMF_MSG_PREFIX_SIZE : 0;
	a->tx_ctx_cnt = 1;
	a->rx_ctx_cnt = h && h->rx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1;
}

static enum fi_progress fill_progress(enum fi_progress hinted)
{
	return hinted == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
}

static void fill_domain(struct fi_domain_attr *a, const struct fi_domain_attr *h)
{
	int mr_mode = h ? h->mr_mode : 0;

	a->threading = h && h->threading ? h->threading : FI_THREAD_SAFE;
	a->control_progress = fill_progress(h ? h->control_progress : FI_PROGRESS_UNSPEC);
	a->data_progress = fill_progress(h ? h->data_progress : FI_PROGRESS_UNSPEC);
	a->resource_mgmt = FI_RM_ENABLED;
	a->av_type = h ? h->av_type : FI_AV_UNSPEC;
	/* Nothing is demanded; the two old values are whole modes and are given back as they are.
	 */
	a->mr_mode = mr_mode == MR_BASIC || mr_mode == MR_SCALABLE ? mr_mode : 0;
	a->mr_key_size = PMF_MR_KEY_SIZE;
	a->cq_data_size = PMF_CQ_DATA_SIZE;
	a->cq_cnt = PMF_OBJECTS;
	a->ep_cnt = PMF_ENDPOINTS;
	a->tx_ctx_cnt = PMF_ENDPOINTS;
	a->rx_ctx_cnt = PMF_ENDPOINTS;
	a->max_ep_tx_ctx = 1;
	a->max_ep_rx_ctx = 1;
	a->max_ep_stx_ctx = 0;
	a->max_ep_srx_ctx = PMF_ENDPOINTS;
	a->cntr_cnt = PMF_OBJECTS;
	a->mr_iov_limit = PMF_MR_IOV_LIMIT;
	a->caps = PMF_DOMAIN_CAPS;
	a->mode = 0;
	a->max_err_data = PMF_MAX_ERR_DATA;
	a->mr_cnt = PMF_OBJECTS;
	a->tclass = h ? h->tclass : FI_TC_UNSPEC;
#if FI_VERSION_GE(PMF_HEADERS, FI_VERSION(1, 20))
	a->max_ep_auth_key = PMF_EP_KEYS;
#endif
}

/* Keys are echoed, so that what was asked for is what is opened. */
static bool fill_keys(struct fi_info *info, const struct fi_info *hints)
{
	const struct fi_domain_attr *d = hints ? hints->domain_attr : NULL;
	const struct fi_ep_attr *ep = hints ? hints->ep_attr : NULL;

	return (!d || pmf_auth_dup(d->auth_key, d->auth_key_size, &info->domain_attr->auth_key,
				   &info->domain_attr->auth_key_size)) &&
	       (!ep || pmf_auth_dup(ep->auth_key, ep->auth_key_size, &info->ep_attr->auth_key,
				    &info->ep_attr->auth_key_size));
}

bool pmf_info_fill(struct fi_info *info, const struct fi_info *hints, enum fi_ep_type type,
		   const struct pmf_conf *conf)
{
	info->caps = fill_caps(hints, type);
	info->mode = hints ? hints->mode & FI_MSG_PREFIX : 0;
	fill_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps, info->mode, conf);
	fill_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps, info->mode, conf);
	fill_ep(info->ep_attr, hints ? hints->ep_attr : NULL, type, info->mode);
	fill_domain(info->domain_attr, hints ? hints->domain_attr : NULL);
	return fill_keys(info, hints);
}
