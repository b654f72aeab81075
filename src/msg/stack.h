/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The process's stack: the helper thread, the ports it has opened and their engines. Domains take
 * references to ports; the first reference starts EAL and the port, the last one closes the port.
 */
#ifndef PMF_MSG_STACK_H
#define PMF_MSG_STACK_H

#include <rdma/fabric.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/port.h"
#include "pmf_common.h"
#include "proto/flow.h"
#include "seal/keys.h"

#define PMF_MAX_PORTS 8

/* All that FI_PMF_* says, parsed by fabric before EAL runs. Strings stay valid for the process's
 * life. */
struct pmf_conf {
	unsigned int nports;
	struct pmf_port_conf port[PMF_MAX_PORTS];
	const char *eal_extra, *fault, *capture, *lcores;
	unsigned int nlcores; /* processors in lcores, as far as there can be engines */
	uint16_t lcore[PMF_MAX_QUEUES];
	const char *auth_key_file; /* NULL: none */
	uint32_t encrypt;	   /* packets under a key, too */
	uint32_t coalesce;	   /* messages share packets */
	enum pmf_huge huge;
	unsigned int memory_mb;
	unsigned int dscp;
	pmf_ns_t rescue, linger, dead_after, ack_delay;
	uint32_t eager_limit;
	uint64_t unexpected_bytes; /* of one engine in all */
	uint32_t tx_size, rx_size, inject_size, iov_limit;
	pmf_log_fn log;
};

#define PMF_MAX_MSG_SIZE (1ull << 40)

struct pmf_engine;

/* What a domain holds, and what reading a CQ, counter or EQ of it drives. */
struct pmf_progress {
	uint32_t nengines;
	uint32_t home;	       /* the engine of endpoints that one thread works with */
	_Atomic uint32_t used; /* engines that have endpoints of the domain, a bit each; set only */
	struct pmf_engine *engine[PMF_MAX_QUEUES];
	bool manual;	      /* the reader runs passes; else only threads of ours do */
	bool thread_safe;     /* calls on one object may come from several threads */
	unsigned int port;    /* index in pmf_conf */
	uint32_t api_version; /* of the domain's application; set by fabric */
};

/**
 * Open port @p index of @p conf (or share it) and its engines. Any thread; blocks up to seconds the
 * first time. @p conf is kept by pointer on the first call and the same later.
 * @return 0; negative errno and a sentence in @p err that says what to do
 */
int pmf_stack_get(const struct pmf_conf *conf, unsigned int index, bool manual, bool thread_safe,
		  struct pmf_progress *out, char *err, size_t errlen);

/** Give it back: waits for orphaned flows of this domain's endpoints, at most conf->linger. */
void pmf_stack_put(struct pmf_progress *p);

/** @return whether this is a forked child of a process that runs the stack: it must leave all
 * alone. */
bool pmf_stack_forked(void);

/** Read FI_PMF_AUTH_KEY_FILE; the helper thread reads it again when it changes. @return 0;
 * negative errno and a sentence in @p err */
int pmf_keyfile_load(const struct pmf_conf *conf, char *err, size_t errlen);
/** The keys that were read last. */
void pmf_keyfile_keys(struct pmf_key_list *out);

/**
 * Run passes for a reader: try the owner word of each engine that is used, one pass each; now and
 * then of the others, lest frames lie in their queues that nobody looks at. Any thread.
 * @return false: nothing has happened, so a queue that was empty need not be looked at again
 */
bool pmf_progress_run(struct pmf_progress *p);
/** The same for who may answer the one message that is found: what its packet acknowledges is left
 * until the answer has gone, or until a next pass. */
bool pmf_progress_poll(struct pmf_progress *p);
/** There was no answer to give: what pmf_progress_poll() left is done. @return as above */
bool pmf_progress_rest(struct pmf_progress *p);

/** A reader is about to sleep on a wait object: the helper thread drives the engines until done. */
void pmf_progress_sleep_begin(struct pmf_progress *p);
void pmf_progress_sleep_end(struct pmf_progress *p);

/** For statistics: the port in use. NULL when it is not open. */
struct pmf_port *pmf_progress_port(struct pmf_progress *p);

#endif
