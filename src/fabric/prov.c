/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The one symbol that libfabric looks for. Every libfabric process calls it, so it does next to
 * nothing.
 */
#include "fabric/info.h"
#include "fabric/log.h"
#include "fabric/objects.h"

static void prov_cleanup(void)
{
}

struct fi_provider pmf_prov = {
	.version = FI_VERSION(0, 1),
	.fi_version = PMF_HEADERS,
	.name = "pmf",
	.getinfo = pmf_getinfo,
	.fabric = pmf_fabric_open,
	.cleanup = prov_cleanup,
};

struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	/* A provider that says less than a caller asks for is invisible: what runs is what counts.
	 */
	pmf_prov.fi_version = fi_version();
	pmf_param_define();
	return &pmf_prov;
}
