/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>

#include "../raw/raw_port.h"
#include "pmd_glue/fault.h"

enum {
	WIRE_BURST = 32,
	WIRE_OUT = 2 * WIRE_BURST, /* every frame may be doubled */
};

/* What came in and was doubled has been lost or cut for a reason, is held, or went out. */
#define WIRE_STATS(X)                                                                     \
	X(rx_frames, "frames", "taken from the one port")                                 \
	X(rx_bytes, "bytes", "of those frames")                                           \
	PMF_FAULT_STATS(X)                                                                \
	X(runts, "frames", "lost: too little was left of them to be a frame")             \
	X(refused, "frames", "lost: the other port took nothing for a tenth of a second") \
	X(held, "frames", "on their way now, lost when the wire ends")                    \
	X(tx_frames, "frames", "given to the other port")                                 \
	X(tx_bytes, "bytes", "of those frames")

struct wire_stats {
	WIRE_STATS(PMF_STAT_FIELD)
};

/* From one port to the other. */
struct wire_way {
	struct raw_port *from, *to;
	struct pmf_fault fault; /* as it was when it began, or changed */
	struct pmf_faults *faults;
	uint16_t at, n;		 /* of `out`: given to the port, there in all */
	uint64_t refused_since;	 /* the port has taken nothing since then, ns; 0: it takes */
	struct wire_stats stats; /* without those of the faults, see wire_stats_get() */
	struct rte_mbuf *out[WIRE_OUT];
};

/**
 * Begin a way.
 * @param held  frames that can wait for their time at once
 * @return 0; -1 with perf_error() set
 */
int wire_way_open(struct wire_way *w, const struct pmf_fault *fault, uint32_t held);
/** Another manner from now on. */
void wire_way_change(struct wire_way *w, const struct pmf_fault *fault);
void wire_way_close(struct wire_way *w);

/**
 * Take what has come, and send what is due.
 * @param now  ns, never 0
 * @return whether there was anything
 */
bool wire_way_turn(struct wire_way *w, uint64_t now);

void wire_stats_get(const struct wire_way *w, struct wire_stats *out);

/** What is said of the two ways of one wire, as text or as one line of JSON, to stdout. */
/** @param event  "begin" or "changed": the faults are those of now */
void wire_report_faults(const struct wire_way way[2], const char *event, bool json);
/** @param event  "counters" or "end" */
void wire_report(const struct wire_way way[2], const char *event, bool json);

#endif
