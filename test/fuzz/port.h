/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A port over net_ring for targets that need one, whose frames go through the fuzzer's hands, and
 * checksums.
 */
#ifndef PMF_FUZZ_PORT_H
#define PMF_FUZZ_PORT_H

#include "pmd_glue/frame.h"

/** Start EAL and open the port, once. It does not announce itself; frames to its own address take
 * the loop ring. */
struct pmf_port *fuzz_port(void);

/** The sum of @p p's words, added to @p sum. */
uint32_t fuzz_sum(const uint8_t *p, size_t len, uint32_t sum);
void fuzz_put_sum(uint8_t *at, uint32_t sum);

/** Write the checksums of IPv4 and of UDP, ICMP or IGMP, as far as the frame goes. */
void fuzz_put_right_sums(uint8_t *b, size_t len);

/** A received frame of @p len bytes, at the end of its mbuf's room, whose end is all that a
 * sanitizer could know. */
struct rte_mbuf *fuzz_frame(struct pmf_port *port, const uint8_t *bytes, size_t len);

#endif
