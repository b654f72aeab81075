/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A wire that misbehaves, one direction of it: what happens to the next frame. Seeded, so that a
 * run repeats; no state but the caller's, no clock but his. Ports, the simulator and pmf-wire carry
 * out alike what is decided here. The words are in pmf_fault_text.h.
 */
#ifndef PMF_FAULT_H
#define PMF_FAULT_H

#include "pmf_common.h"

enum { PMF_FAULT_SPAN_MAX = 1024, PMF_FAULT_SPAN_DEFAULT = 4 };

/* Chances are in 2^-32, so that a comparison with 32 random bits decides; 2^32 is always. */
struct pmf_fault_conf {
	uint64_t loss;
	uint64_t burst_in, burst_out; /* Gilbert-Elliott: in the bad state every frame is lost */
	uint64_t nth;		      /* every nth frame is lost; 0: none */
	uint64_t kinds;		      /* a bit per packet type that may be lost; 0: all */
	uint64_t dup;
	uint64_t reorder;
	uint64_t span;		  /* a reordered frame falls behind 1 to this many later ones */
	uint64_t corrupt, spared; /* spared: the first bytes of a frame, which stay whole */
	uint64_t truncate;
	pmf_ns_t delay, jitter;
	uint64_t rate;		     /* Mb/s; 0: as fast as they come */
	uint64_t queue, mark;	     /* bytes that wait for it before frames are dropped, marked */
	pmf_ns_t cut, cut_end;	     /* nothing passes from, to; since the first frame */
	pmf_ns_t pause_every, pause; /* what comes in a pause passes at its end */
	uint64_t seed;
};

struct pmf_fault {
	struct pmf_fault_conf conf;
	uint64_t state; /* of the generator */
	uint64_t seen;	/* frames that may be lost */
	pmf_ns_t begun; /* the first frame; 0: none yet */
	pmf_ns_t free;	/* when the limited wire has sent what it was given */
	bool bad;
};

enum pmf_fault_drop { PMF_FAULT_PASSES, PMF_FAULT_LOST, PMF_FAULT_FULL, PMF_FAULT_CUT };

struct pmf_fault_verdict {
	uint8_t drop; /* enum pmf_fault_drop; then nothing else counts */
	bool dup;     /* a second copy passes */
	bool mark;    /* the queue asks for a congestion mark, where the frame may bear one */
	uint8_t flip; /* bits to be changed in byte `where`; 0: none */
	uint16_t where;
	uint16_t len;	 /* bytes that are left of it */
	uint16_t behind; /* 0, or it passes after so many later frames have passed */
	pmf_ns_t at;	 /* when it passes; not before now */
};

/** Begin again from @p seed: the same seed gives the same decisions. */
static inline void pmf_fault_reseed(struct pmf_fault *f, uint64_t seed)
{
	f->conf.seed = f->state = seed;
	f->seen = 0;
	f->begun = f->free = 0;
	f->bad = false;
}

/* splitmix64 (Steele, Lea, Flood 2014): every seed is a good one. */
static inline uint64_t pmf_fault_random(struct pmf_fault *f)
{
	uint64_t z = f->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* Is it lost? @p a decides by chance, @p b about the burst. */
static inline bool pmf_fault_loses(struct pmf_fault *f, unsigned int type, uint32_t a, uint32_t b)
{
	const struct pmf_fault_conf *c = &f->conf;

	if (c->kinds != 0 && !(c->kinds >> (type & 63) & 1))
		return false;
	f->seen++;
	if (f->bad ? b < c->burst_out : b < c->burst_in)
		f->bad = !f->bad;
	return f->bad || a < c->loss || (c->nth != 0 && f->seen % c->nth == 0);
}

/* The limited wire and its queue. @return whether there is a place; moves *at */
static inline bool pmf_fault_queue(struct pmf_fault *f, uint32_t len, pmf_ns_t *at, bool *mark)
{
	uint64_t waits;

	if (f->conf.rate == 0)
		return true;
	waits = f->free > *at ? (f->free - *at) * f->conf.rate / 8000 : 0;
	if (f->conf.queue != 0 && waits + len > f->conf.queue)
		return false;
	*mark = f->conf.mark != 0 && waits > f->conf.mark;
	f->free = PMF_MAX(f->free, *at) + (uint64_t)len * 8000 / f->conf.rate;
	*at = f->free;
	return true;
}

/**
 * What happens to the next frame. Always as many steps of the generator, whatever the chances.
 * @param len   bytes, more than 0
 * @param type  of its packet (enum pmf_ptype), 0 if it is none or not known
 */
static inline struct pmf_fault_verdict pmf_fault_next(struct pmf_fault *f, uint32_t len,
						      unsigned int type, pmf_ns_t now)
{
	const struct pmf_fault_conf *c = &f->conf;
	const uint64_t a = pmf_fault_random(f), b = pmf_fault_random(f), d = pmf_fault_random(f),
		       e = pmf_fault_random(f);
	struct pmf_fault_verdict v = {.len = (uint16_t)len, .at = now};
	pmf_ns_t since, in;

	if (f->begun == 0)
		f->begun = now;
	since = now - f->begun;
	if (pmf_fault_loses(f, type, (uint32_t)a, (uint32_t)d))
		v.drop = PMF_FAULT_LOST;
	else if (since >= c->cut && since < c->cut_end)
		v.drop = PMF_FAULT_CUT;
	else if (!pmf_fault_queue(f, len, &v.at, &v.mark))
		v.drop = PMF_FAULT_FULL;
	if (v.drop != PMF_FAULT_PASSES)
		return v;
	v.dup = a >> 32 < c->dup;
	if ((uint32_t)b < c->reorder)
		v.behind = (uint16_t)(1 + ((b >> 32) * c->span >> 32));
	if (d >> 32 < c->corrupt && c->spared < len) {
		v.where = (uint16_t)(c->spared + ((e & UINT16_MAX) * (len - c->spared) >> 16));
		v.flip = (uint8_t)(1u << (e >> 16 & 7));
	}
	if ((uint32_t)(e >> 32) < c->truncate)
		v.len = (uint16_t)((e & UINT16_MAX) * len >> 16);
	v.at += c->delay + (c->jitter ? (b ^ e) % (c->jitter + 1) : 0);
	if (c->pause != 0 && (in = (since + c->pause) % c->pause_every) < c->pause)
		v.at = PMF_MAX(v.at, now + c->pause - in);
	return v;
}

#endif
