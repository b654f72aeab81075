/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The FI_PMF_* variables: their names, help and defaults in one list, and what they say as a struct
 * pmf_conf. Nothing here starts or opens anything.
 */
#ifndef PMF_FABRIC_PARAM_H
#define PMF_FABRIC_PARAM_H

#include "msg/stack.h"

#define PMF_TX_SIZE_MAX 32768u
#define PMF_RX_SIZE_MAX 32768u
#define PMF_INJECT_SIZE_MAX 16384u

/** Tell libfabric of all variables: `fi_info -e` lists them. Once, from fi_prov_ini. */
void pmf_param_define(void);

/**
 * Parse. Pure but for memory: strings in @p conf are copies that nobody frees (they live as long as
 * the process), and on failure there are none left.
 * @param get   gives a variable's text without its FI_PMF_ prefix, or NULL when unset
 * @param rank  replaces %r
 * @return 0; -EINVAL with a sentence in @p err that names the variable; -ENOMEM
 */
int pmf_conf_parse(const char *(*get)(const char *name), const char *rank, struct pmf_conf *conf,
		   char *err, size_t errlen);

/** This process's rank on its node as text: what %r becomes. "0" when nobody says. */
const char *pmf_param_rank(void);

/**
 * What the variables say now, or what they said when pmf_conf_keep() was called. Any thread.
 * @return good for the process's life; NULL after a warning that names the variable
 */
const struct pmf_conf *pmf_conf_load(void);

/** The stack runs with @p conf: it is what pmf_conf_load() gives from now on. */
void pmf_conf_keep(const struct pmf_conf *conf);

#endif
