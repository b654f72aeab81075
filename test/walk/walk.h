/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The walk: a program runs again and again, and each time another allocation, buffer, burst or ring
 * entry fails.
 */
#ifndef PMF_WALK_H
#define PMF_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum fail_kind {
	FAIL_MEMORY, /* of the heap and of DPDK, threads and descriptors */
	FAIL_BUFFER, /* mbufs */
	FAIL_DEVICE, /* a burst that the device does not take */
	FAIL_RING,   /* an entry that finds its ring full */
	FAIL_KINDS
};

/** @return whether this one fails: asked by what fail.h has put in its place. Any thread. */
bool fail_now(enum fail_kind kind);

/** From now on the @p from th to the @p from + @p count - 1 st of @p kind fail. From 0: none */
void fail_begin(enum fail_kind kind, uint64_t from, uint64_t count);
/** While the test takes something for itself. */
void fail_pause(bool pause);
/** None any more. @return how many of @p kind there were */
uint64_t fail_end(enum fail_kind kind);

/**
 * Open, use and close everything, whatever fails. Complaints go by walk_bad().
 * @param lossless  what fails must not be seen from outside
 */
typedef void (*walk_program)(bool lossless);
void program_rdm(bool lossless);
void program_key(bool lossless);
void program_msg(bool lossless);
void program_auto(bool lossless);

/** Something that must not be. */
void walk_bad(const char *where, const char *what, long value);

#endif
