/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Programs: what some endpoints are told to do, one step after another. Made from a seed, or read
 * from text; every step stands by itself, so that any of them can be left out.
 */
#ifndef PMF_MODEL_PROGRAM_H
#define PMF_MODEL_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	MAX_EPS = 6,
	RDM_EPS = 5,
	MAX_STEPS = 160,
	ANY = 255, /* no peer in particular */
	INJECT_MAX = 256,
	LEN_MAX = 150000,
	ID_LEN = 8, /* bytes that say which message it is */
};

enum op {
	OP_SEND,     /* len bytes from ep to peer */
	OP_RECV,     /* into len bytes, from peer or any */
	OP_CANCEL,   /* the len-th of the receives that are open, counted from the newest */
	OP_POLL,     /* read up to len entries of ep's queues */
	OP_WAIT,     /* read everybody's queues, len times */
	OP_SETMIN,   /* FI_OPT_MIN_MULTI_RECV of ep */
	OP_CLOSE,    /* ep */
	OP_RESTART,  /* ep, closed first if it is open, at the same address; connected: its pair */
	OP_SHUTDOWN, /* ep's connection */
	OP_COUNT
};

enum step_flag {
	SF_DATA = 1 << 0,	 /* with CQ data */
	SF_INJECT = 1 << 1,	 /* fi_inject, fi_injectdata */
	SF_INJECT_FLAG = 1 << 2, /* FI_INJECT */
	SF_FENCE = 1 << 3,
	SF_MORE = 1 << 4,
	SF_SILENT = 1 << 5, /* under selective completion: without an entry */
	SF_PIECES = 1 << 6, /* from, or into, several */
	SF_EARLY = 1 << 7,  /* FI_INJECT_COMPLETE */
	SF_DELIVERY = 1 << 8,
	SF_MULTI = 1 << 9, /* a multi-receive buffer */
	SF_COUNT = 10
};

struct step {
	uint8_t op, ep, peer;
	uint16_t flags;
	uint32_t len;
};

/*
 * Connected, endpoints are pairs: 0 and 1, 2 and 3, 4 and 5. Who restarts connects, and the other
 * one accepts, or rejects when the length says so.
 */
struct program {
	uint64_t seed; /* of the bytes, too */
	uint32_t neps, tx_size, rx_size, cq_size;
	bool selective;	    /* sends without FI_COMPLETION have no entry */
	bool closes;	    /* endpoints close and come back; then every message has CQ data */
	bool msg;	    /* connected endpoints */
	bool shared;	    /* all receive from one context */
	bool keyed;	    /* all have an authorization key ... */
	uint32_t strangers; /* ... but these, a bit each */
	uint32_t nsteps;
	struct step step[MAX_STEPS];
};

/* Percentages of programs that close endpoints, connect them, share receives, have keys, and of
 * those with keys in which some have none. */
struct mix {
	unsigned int closes, msg, shared, keys, strangers;
};

void program_make(struct program *p, uint64_t seed, const struct mix *mix);
void program_print(const struct program *p, FILE *f);
/** @return 0, or the number of the line that is no good, with the reason in *why */
unsigned int program_read(struct program *p, FILE *f, const char **why);

static inline uint64_t model_mix(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

#endif
