/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/log.h"

void pmf_log_line(enum pmf_log_level level, const char *line)
{
	static const enum fi_log_level of[] = {
		[PMF_LOG_WARN] = FI_LOG_WARN,
		[PMF_LOG_INFO] = FI_LOG_INFO,
		[PMF_LOG_DEBUG] = FI_LOG_DEBUG,
	};

	FI_LOG(&pmf_prov, of[level], FI_LOG_CORE, "%s\n", line);
}
