/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * A bad wire on purpose: what FI_PMF_FAULT says, and one decision a frame from a seeded generator.
 * No state but the caller's, so that ports and the simulator decide alike and a run repeats.
 */
#ifndef PMF_FAULT_H
#define PMF_FAULT_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmf_common.h"

enum { PMF_FAULT_SPAN_MAX = 1024, PMF_FAULT_SPAN_DEFAULT = 4 };

/* Chances are in 2^-32, so that a comparison with 32 random bits decides; 2^32 is always. */
struct pmf_fault {
	uint64_t loss;
	uint64_t dup;
	uint64_t reorder;
	uint64_t span; /* a reordered frame falls behind 1 to this many later ones */
	uint64_t seed;
	uint64_t state; /* of the generator */
};

struct pmf_fault_verdict {
	bool drop;	 /* then nothing else counts */
	bool dup;	 /* a second copy passes at once */
	uint16_t behind; /* 0: pass now; else after so many later frames have passed */
};

/* "5%", "0.5%" or "0.05" to a chance. @return where the number ends, NULL if it is none */
static inline const char *pmf_fault_chance(const char *s, uint64_t *out)
{
	char *end;
	double v;

	/* strtod would take "nan", "inf" and hexadecimal, too. */
	if (!isdigit((unsigned char)*s) && *s != '.')
		return NULL;
	v = strtod(s, &end);
	if (*end == '%') {
		v /= 100;
		end++;
	}
	if (!(v >= 0 && v <= 1))
		return NULL;
	*out = (uint64_t)(v * 4294967296.0 + 0.5);
	return end;
}

static inline const char *pmf_fault_number(const char *s, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return NULL;
	errno = 0;
	*out = strtoull(s, &end, 0);
	return errno ? NULL : end;
}

/** Begin again from @p seed: the same seed gives the same decisions. */
static inline void pmf_fault_reseed(struct pmf_fault *f, uint64_t seed)
{
	f->seed = seed;
	f->state = seed;
}

/**
 * Parse "loss=1%,dup=1%,reorder=5%:20,seed=7"; every word may be missing.
 * @return 0, or -EINVAL with a sentence in @p err that holds the word at fault
 */
static inline int pmf_fault_parse(const char *text, struct pmf_fault *out, char *err, size_t errlen)
{
	static const struct {
		const char *key;
		size_t chance; /* offset; SIZE_MAX: none */
		size_t number; /* offset, behind a ":" where there is a chance, too; SIZE_MAX: none
				*/
	} words[] = {
		{"loss", offsetof(struct pmf_fault, loss), SIZE_MAX},
		{"dup", offsetof(struct pmf_fault, dup), SIZE_MAX},
		{"reorder", offsetof(struct pmf_fault, reorder), offsetof(struct pmf_fault, span)},
		{"seed", SIZE_MAX, offsetof(struct pmf_fault, seed)},
	};
	struct pmf_fault f = {.span = PMF_FAULT_SPAN_DEFAULT, .seed = 1};
	const char *p = text;

	while (*p) {
		const size_t len = strcspn(p, ",");
		const size_t klen = strcspn(p, "=,");
		const char *v = p[klen] == '=' ? p + klen + 1 : NULL;
		unsigned int i;

		for (i = 0; v && i < PMF_ARRAY_SIZE(words); i++) {
			if (strlen(words[i].key) != klen || strncmp(p, words[i].key, klen) != 0)
				continue;
			if (words[i].chance != SIZE_MAX)
				v = pmf_fault_chance(v, (uint64_t *)((char *)&f + words[i].chance));
			if (v && words[i].number != SIZE_MAX &&
			    (words[i].chance == SIZE_MAX || *v == ':'))
				v = pmf_fault_number(v + (words[i].chance != SIZE_MAX),
						     (uint64_t *)((char *)&f + words[i].number));
			break;
		}
		if (!v || v != p + len || i == PMF_ARRAY_SIZE(words) || f.span == 0 ||
		    f.span > PMF_FAULT_SPAN_MAX) {
			snprintf(err, errlen,
				 "\"%.*s\" is no fault; they are as in "
				 "loss=1%%,dup=1%%,reorder=5%%:20,seed=7",
				 (int)len, p);
			return -EINVAL;
		}
		p += len + (p[len] == ',');
	}
	pmf_fault_reseed(&f, f.seed);
	*out = f;
	return 0;
}

/* splitmix64 (Steele, Lea, Flood 2014): every seed is a good one. */
static inline uint64_t pmf_fault_random(struct pmf_fault *f)
{
	uint64_t z = f->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/** What happens to the next frame. Always two steps of the generator, whatever the chances. */
static inline struct pmf_fault_verdict pmf_fault_next(struct pmf_fault *f)
{
	const uint64_t a = pmf_fault_random(f), b = pmf_fault_random(f);
	struct pmf_fault_verdict v = {
		.drop = (a & UINT32_MAX) < f->loss,
		.dup = a >> 32 < f->dup,
	};

	if ((b & UINT32_MAX) < f->reorder)
		v.behind = (uint16_t)(1 + ((b >> 32) * f->span >> 32));
	return v;
}

#endif
