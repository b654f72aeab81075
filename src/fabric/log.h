/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Everything is said through fi_log: FI_LOG_LEVEL and FI_LOG_SUBSYS choose, stdout stays the
 * host's.
 */
#ifndef PMF_FABRIC_LOG_H
#define PMF_FABRIC_LOG_H

#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include "pmf_common.h"

extern struct fi_provider pmf_prov; /* prov.c */

#define pmf_warn(subsys, ...) FI_WARN(&pmf_prov, FI_LOG_##subsys, __VA_ARGS__)
#define pmf_info(subsys, ...) FI_INFO(&pmf_prov, FI_LOG_##subsys, __VA_ARGS__)

/** pmf_log_fn of the lower modules. */
void pmf_log_line(enum pmf_log_level level, const char *line);

#endif
