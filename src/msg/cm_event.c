/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Events of connections, from the engine to the event queue. Connecting is control path: memory is
 * taken here, with the owner word held.
 */
#include "msg/cm_state.h"

#include <rdma/fi_cm.h>
#include <stdlib.h>

#include "msg/addr.h"

/* A cm entry with the program's data behind it. */
union entry {
	struct fi_eq_cm_entry cm;
	uint8_t room[sizeof(struct fi_eq_cm_entry) + PMF_CM_DATA];
};

void pmf_cm_event(struct pmf_engine *e, struct pmf_ep *ep, uint32_t event, const void *data,
		  size_t len)
{
	union entry entry = {.cm.fid = ep->event_fid};

	if (len)
		memcpy(entry.cm.data, data, len);
	if (!ep->eq || pmf_eq_post(ep->eq, event, &entry, sizeof(entry.cm) + len))
		e->stats.cm_no_memory++;
}

void pmf_cm_error(struct pmf_engine *e, struct pmf_ep *ep, int err, const void *data, size_t len)
{
	struct fi_eq_err_entry entry = {
		.fid = ep->event_fid,
		.context = ep->event_fid->context,
		.err = err,
		.prov_errno = err,
		.err_data = (void *)(uintptr_t)data,
		.err_data_size = len,
	};

	if (!ep->eq || pmf_eq_post_err(ep->eq, &entry))
		e->stats.cm_no_memory++;
}

int pmf_cm_request(struct pmf_ep *listener, struct pmf_connreq *req, const struct pmf_addr *peer,
		   const void *data, size_t len)
{
	struct fi_info *info = fi_dupinfo(listener->info);
	union entry entry = {.cm = {.fid = listener->event_fid, .info = info}};

	if (!info)
		return -ENOMEM;
	free(info->dest_addr);
	info->dest_addr = pmf_addr_dup(peer, info->addr_format, &info->dest_addrlen);
	info->handle = &req->fid;
	if (len)
		memcpy(entry.cm.data, data, len);
	if (info->dest_addr &&
	    !pmf_eq_post_info(listener->eq, FI_CONNREQ, &entry, sizeof(entry.cm) + len, info))
		return 0;
	fi_freeinfo(info);
	return -ENOMEM;
}
