/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef PERF_MIX_H
#define PERF_MIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The sizes of a mixed stream: one message in ten of 0 bytes, one in 10,000 of 1 to 16 MiB, the
 * others spread evenly over the powers of two from 1 byte to 64 KiB. Both sides know them from the
 * seed.
 */

/** @return bytes of message seq of the streams that one side sends, at most max. */
size_t perf_mix_size(uint64_t seed, bool from_server, uint64_t seq, size_t max);

#endif
