/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The bytes of an input, taken one after another; zeros behind its end.
 */
#ifndef PMF_FUZZ_INPUT_H
#define PMF_FUZZ_INPUT_H

#include "pmf_common.h"

struct input {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

static inline uint16_t word(struct input *in)
{
	uint16_t hi = byte(in);

	return (uint16_t)(hi << 8 | byte(in));
}

/** Up to @p cap bytes of it. @return how many */
static inline size_t bytes_of(struct input *in, uint8_t *out, size_t cap)
{
	size_t n = PMF_MIN(cap, in->left);

	memcpy(out, in->p, n);
	in->p += n;
	in->left -= n;
	return n;
}

#endif
