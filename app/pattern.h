/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/*
 * What a verified message holds: byte i of message seq depends on the flow's key, on seq and on i,
 * so a byte that comes from another flow, another message or another place shows.
 */

/** @return the key of the messages that one side of a flow sends. */
uint64_t perf_pattern_key(uint64_t nonce, int from_server);

/** Fill buf with message seq of the flow. */
void perf_pattern_fill(void *buf, size_t len, uint64_t key, uint64_t seq);

/**
 * Look at every byte.
 * @return len if all are right, else the offset of the first wrong one
 */
size_t perf_pattern_check(const void *buf, size_t len, uint64_t key, uint64_t seq);

/** @return the byte that belongs at this offset. */
uint8_t perf_pattern_byte(size_t offset, uint64_t key, uint64_t seq);

#endif
