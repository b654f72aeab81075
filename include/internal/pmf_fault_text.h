/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The words for a wire that misbehaves, read and printed: what is printed is read as the same.
 *
 *   loss=1%  burst=0.1%:20%  every=100  kinds=data+ack   what is lost; kinds: only of these
 *   dup=1%  reorder=5%:20  corrupt=1%:14  truncate=1%    14: not in the first 14 bytes
 *   delay=50us  jitter=10us  rate=25000:1000000:100000   Mb/s, bytes of queue, bytes before marks
 *   cut=100ms:400ms  pause=10ms:1ms                      since the first frame; each 10 ms for 1 ms
 *   seed=7
 */
#ifndef PMF_FAULT_TEXT_H
#define PMF_FAULT_TEXT_H

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmf_fault.h"

enum pmf_fault_form { PMF_FF_NONE, PMF_FF_CHANCE, PMF_FF_NUMBER, PMF_FF_TIME, PMF_FF_KINDS };

#define PMF_FAULT_AT(member) offsetof(struct pmf_fault_conf, member)

struct pmf_fault_word {
	const char *key;
	struct {
		uint8_t form, needed;
		size_t at;
	} value[3];
};

/* Packet types by number, as in docs/protocol.md. */
static const char *const pmf_fault_kind[] = {"other", "hello", "challenge", "open",	"data",
					     "ack",   "probe", "reset",	    "multicast"};

static const struct pmf_fault_word pmf_fault_words[] = {
	{"loss", {{PMF_FF_CHANCE, 1, PMF_FAULT_AT(loss)}}},
	{"burst",
	 {{PMF_FF_CHANCE, 1, PMF_FAULT_AT(burst_in)}, {PMF_FF_CHANCE, 1, PMF_FAULT_AT(burst_out)}}},
	{"every", {{PMF_FF_NUMBER, 1, PMF_FAULT_AT(nth)}}},
	{"kinds", {{PMF_FF_KINDS, 1, PMF_FAULT_AT(kinds)}}},
	{"dup", {{PMF_FF_CHANCE, 1, PMF_FAULT_AT(dup)}}},
	{"reorder",
	 {{PMF_FF_CHANCE, 1, PMF_FAULT_AT(reorder)}, {PMF_FF_NUMBER, 0, PMF_FAULT_AT(span)}}},
	{"corrupt",
	 {{PMF_FF_CHANCE, 1, PMF_FAULT_AT(corrupt)}, {PMF_FF_NUMBER, 0, PMF_FAULT_AT(spared)}}},
	{"truncate", {{PMF_FF_CHANCE, 1, PMF_FAULT_AT(truncate)}}},
	{"delay", {{PMF_FF_TIME, 1, PMF_FAULT_AT(delay)}}},
	{"jitter", {{PMF_FF_TIME, 1, PMF_FAULT_AT(jitter)}}},
	{"rate",
	 {{PMF_FF_NUMBER, 1, PMF_FAULT_AT(rate)},
	  {PMF_FF_NUMBER, 0, PMF_FAULT_AT(queue)},
	  {PMF_FF_NUMBER, 0, PMF_FAULT_AT(mark)}}},
	{"cut", {{PMF_FF_TIME, 1, PMF_FAULT_AT(cut)}, {PMF_FF_TIME, 1, PMF_FAULT_AT(cut_end)}}},
	{"pause",
	 {{PMF_FF_TIME, 1, PMF_FAULT_AT(pause_every)}, {PMF_FF_TIME, 1, PMF_FAULT_AT(pause)}}},
	{"seed", {{PMF_FF_NUMBER, 1, PMF_FAULT_AT(seed)}}},
};

static const struct {
	const char *name;
	uint64_t ns;
} pmf_fault_units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

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

static inline const char *pmf_fault_time(const char *s, uint64_t *out)
{
	const char *end = pmf_fault_number(s, out);

	for (size_t i = 0; end && i < PMF_ARRAY_SIZE(pmf_fault_units); i++) {
		const size_t len = strlen(pmf_fault_units[i].name);

		if (strncmp(end, pmf_fault_units[i].name, len) != 0)
			continue;
		if (*out > INT64_MAX / pmf_fault_units[i].ns)
			return NULL;
		*out *= pmf_fault_units[i].ns;
		return end + len;
	}
	return NULL;
}

static inline const char *pmf_fault_kinds(const char *s, uint64_t *out)
{
	uint64_t kinds = 0;

	for (;; s++) {
		const size_t len = strcspn(s, "+,:");
		size_t i = 0;

		while (i < PMF_ARRAY_SIZE(pmf_fault_kind) &&
		       (strlen(pmf_fault_kind[i]) != len || strncmp(s, pmf_fault_kind[i], len)))
			i++;
		if (i == PMF_ARRAY_SIZE(pmf_fault_kind))
			return NULL;
		kinds |= 1ull << i;
		s += len;
		if (*s != '+')
			break;
	}
	*out = kinds;
	return s;
}

/* The values of one word, from behind the "=". @return where they end, NULL: not as they should */
static inline const char *pmf_fault_values(const struct pmf_fault_word *w, const char *s,
					   struct pmf_fault_conf *c)
{
	for (size_t i = 0; s && i < PMF_ARRAY_SIZE(w->value); i++) {
		uint64_t *out = (uint64_t *)(void *)((char *)c + w->value[i].at);

		if (w->value[i].form == PMF_FF_NONE || (i > 0 && *s != ':'))
			return w->value[i].needed ? NULL : s;
		s += i > 0;
		s = w->value[i].form == PMF_FF_CHANCE	? pmf_fault_chance(s, out)
		    : w->value[i].form == PMF_FF_NUMBER ? pmf_fault_number(s, out)
		    : w->value[i].form == PMF_FF_TIME	? pmf_fault_time(s, out)
							: pmf_fault_kinds(s, out);
	}
	return s;
}

static inline bool pmf_fault_makes_sense(const struct pmf_fault_conf *c)
{
	return c->span != 0 && c->span <= PMF_FAULT_SPAN_MAX && c->cut <= c->cut_end &&
	       (c->pause_every == 0 ? c->pause == 0 : c->pause < c->pause_every);
}

/**
 * Parse; every word may be missing.
 * @return 0, or -EINVAL with a sentence in @p err that holds the word at fault
 */
static inline int pmf_fault_parse(const char *text, struct pmf_fault *out, char *err, size_t errlen)
{
	struct pmf_fault f = {.conf = {.span = PMF_FAULT_SPAN_DEFAULT, .seed = 1}};
	const char *p = text;

	while (*p) {
		const size_t len = strcspn(p, ","), klen = strcspn(p, "=,");
		const char *v = p[klen] == '=' ? p + klen + 1 : NULL, *end = NULL;

		for (size_t i = 0; v && i < PMF_ARRAY_SIZE(pmf_fault_words); i++)
			if (strlen(pmf_fault_words[i].key) == klen &&
			    strncmp(p, pmf_fault_words[i].key, klen) == 0)
				end = pmf_fault_values(&pmf_fault_words[i], v, &f.conf);
		if (end != p + len || !pmf_fault_makes_sense(&f.conf)) {
			snprintf(err, errlen,
				 "\"%.*s\" is no fault; they are as in "
				 "loss=1%%,dup=1%%,reorder=5%%:20,seed=7",
				 (int)len, p);
			return -EINVAL;
		}
		p += len + (p[len] == ',');
	}
	pmf_fault_reseed(&f, f.conf.seed);
	*out = f;
	return 0;
}

static inline int pmf_fault_print_value(enum pmf_fault_form form, uint64_t v, char *s, size_t len)
{
	size_t unit = PMF_ARRAY_SIZE(pmf_fault_units) - 1;
	uint64_t read = v + 1;
	int n = 0;

	/* As few digits as tell it. */
	for (int digits = 3; form == PMF_FF_CHANCE && digits <= 12 && read != v; digits++) {
		n = snprintf(s, len, "%.*g%%", digits, (double)v / 4294967296.0 * 100);
		if ((size_t)n >= len || !pmf_fault_chance(s, &read))
			break;
	}
	if (form == PMF_FF_CHANCE)
		return n;
	if (form == PMF_FF_NUMBER)
		return snprintf(s, len, "%" PRIu64, v);
	if (form == PMF_FF_TIME) {
		while (v % pmf_fault_units[unit].ns != 0)
			unit--;
		return snprintf(s, len, "%" PRIu64 "%s", v / pmf_fault_units[unit].ns,
				pmf_fault_units[unit].name);
	}
	for (size_t i = 0; i < PMF_ARRAY_SIZE(pmf_fault_kind) && (size_t)n < len; i++)
		if (v >> i & 1)
			n += snprintf(s + n, len - (size_t)n, "%s%s", n ? "+" : "",
				      pmf_fault_kind[i]);
	return n;
}

/** Print what pmf_fault_parse() reads as the same; at most @p len - 1 characters. */
static inline void pmf_fault_print(const struct pmf_fault_conf *c, char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < PMF_ARRAY_SIZE(pmf_fault_words); i++) {
		const struct pmf_fault_word *w = &pmf_fault_words[i];
		const bool seed = w->value[0].at == PMF_FAULT_AT(seed);
		bool set = seed;

		for (size_t k = 0; k < PMF_ARRAY_SIZE(w->value); k++)
			set |= w->value[k].needed &&
			       *(const uint64_t *)(const void *)((const char *)c + w->value[k].at);
		for (size_t k = 0; set && k < PMF_ARRAY_SIZE(w->value) && w->value[k].form; k++) {
			const void *v = (const char *)c + w->value[k].at;

			if (n < len)
				n += (size_t)snprintf(s + n, len - n, "%s%s%s", k || !n ? "" : ",",
						      k ? ":" : w->key, k ? "" : "=");
			if (n < len)
				n += (size_t)pmf_fault_print_value(
					w->value[k].form, *(const uint64_t *)v, s + n, len - n);
		}
	}
}

#endif
