/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#ifndef RAW_FRAME_H
#define RAW_FRAME_H

#include <assert.h>
#include <stdint.h>

#include "raw_port.h"

/*
 *  0                   6                  12      14    15    16               24               32
 * +-------------------+-------------------+-------+-----+-----+----------------+----------------+
 * | destination       | source            | 88b5  | kind| zero| number         | ns             |
 * +-------------------+-------------------+-------+-----+-----+----------------+----------------+
 */
struct raw_frame {
	struct rte_ether_hdr ether;
	uint8_t kind;
	uint8_t zero;
	uint8_t number[8]; /* big endian: of the frame, or how many there were */
	uint8_t ns[8];	   /* big endian: in STOPPED, how long the frames took to come */
};

static_assert(sizeof(struct raw_frame) == 32, "the frame is as drawn");

enum raw_kind {
	RAW_HELLO = 1, /* is somebody there? */
	RAW_WELCOME,   /* yes */
	RAW_PING,      /* to be sent back as RAW_PONG */
	RAW_PONG,
	RAW_DATA,    /* to be counted */
	RAW_STOP,    /* how many were sent */
	RAW_STOPPED, /* how many came */
};

enum {
	RAW_ETHERTYPE = 0x88b5, /* IEEE 802 local experimental */
	RAW_SIZE_MIN = 60,
	RAW_SIZE_MAX = 9728,
	RAW_BURST = 32,
};

/** Make an mbuf into a frame of this kind and size; what is behind the header stays as it is. */
void raw_frame_make(struct rte_mbuf *m, const struct raw_port *p, enum raw_kind kind,
		    uint64_t number, uint64_t ns, uint32_t size);

/** @return the frame if the mbuf holds one of ours, else NULL. */
struct raw_frame *raw_frame_get(struct rte_mbuf *m);

uint64_t raw_get64(const uint8_t *bytes);

#endif
