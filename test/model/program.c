/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "program.h"

#include <string.h>

static const char *const op_name[OP_COUNT] = {"send",	"recv",	 "cancel",  "poll",    "wait",
					      "setmin", "close", "restart", "shutdown"};
static const char *const flag_name[SF_COUNT] = {"data",	    "inject", "inject-flag", "fence",
						"more",	    "silent", "pieces",	     "early",
						"delivery", "multi"};

/* ---- from a seed ---- */

struct maker {
	struct program *p;
	uint64_t state;
	uint32_t busy;	/* of 100 steps so many send or receive */
	uint32_t sends; /* of 100 of those so many send */
	uint32_t large; /* of 100 messages so many are large */
	uint32_t directed, multi, odd;
};

static uint32_t below(struct maker *k, uint32_t n)
{
	k->state = model_mix(k->state);
	return (uint32_t)((k->state >> 32) * n >> 32);
}

static bool chance(struct maker *k, uint32_t percent)
{
	return below(k, 100) < percent;
}

static uint32_t length(struct maker *k)
{
	static const uint32_t edges[] = {1,    7,    8,	   63,	 64,	255,   256,   1400,  1472,
					 1500, 2900, 8900, 9000, 16383, 16384, 16385, 40000, 65536};

	if (chance(k, k->large))
		return 10000 + below(k, LEN_MAX - 10000);
	switch (below(k, 5)) {
	case 0:
		return 0;
	case 1:
		return edges[below(k, sizeof(edges) / sizeof(edges[0]))];
	case 2:
		return below(k, 4000);
	default:
		return below(k, 200);
	}
}

/* Without data only its bytes, or its place among others, say which message it is: a buffer that
 * cuts it must keep enough of them. */
static uint32_t room(struct maker *k)
{
	uint32_t len = length(k);

	if (chance(k, 40))
		len += 2000;
	return k->p->closes || len >= ID_LEN ? len : ID_LEN;
}

static uint16_t send_flags(struct maker *k, uint32_t *len)
{
	uint16_t flags = 0;

	if (k->p->closes || chance(k, 40))
		flags |= SF_DATA;
	if (chance(k, 15))
		flags |= SF_PIECES;
	if (chance(k, 15)) {
		*len %= INJECT_MAX + 1;
		return (flags & SF_DATA) | SF_INJECT;
	}
	if (k->p->selective && chance(k, 40))
		flags |= SF_SILENT;
	if (chance(k, k->odd)) {
		if (chance(k, 25)) {
			*len %= INJECT_MAX + 1;
			flags |= SF_INJECT_FLAG;
		}
		flags |= chance(k, 40) ? SF_FENCE : 0;
		flags |= chance(k, 25) ? SF_MORE : 0;
		flags |= chance(k, 15) ? SF_EARLY : chance(k, 25) ? SF_DELIVERY : 0;
	}
	return flags;
}

static void make_transfer(struct maker *k, struct step *s)
{
	s->peer = k->p->msg ? s->ep ^ 1 : (uint8_t)below(k, k->p->neps);
	if (chance(k, k->sends)) {
		s->op = OP_SEND;
		s->len = length(k);
		s->flags = send_flags(k, &s->len);
		return;
	}
	s->op = OP_RECV;
	s->len = room(k);
	if (!chance(k, k->directed))
		s->peer = ANY;
	if (chance(k, k->multi)) {
		s->flags |= SF_MULTI;
		s->len *= 1 + below(k, 8);
	} else if (chance(k, 15)) {
		s->flags |= SF_PIECES;
	}
}

static void make_other(struct maker *k, struct step *s)
{
	uint32_t r = below(k, 100);

	if (k->p->closes && r < 15) {
		s->op = k->p->msg && chance(k, 40) ? OP_SHUTDOWN
			: chance(k, 50)		   ? OP_CLOSE
						   : OP_RESTART;
		s->len = below(k, 10); /* 0: rejected */
	} else if (r < 40) {
		s->op = OP_CANCEL;
		s->len = below(k, 6);
	} else if (r < 50) {
		s->op = OP_SETMIN;
		s->len = k->p->closes ? below(k, 200) : ID_LEN + below(k, 200);
	} else if (r < 85) {
		s->op = OP_POLL;
		s->len = 1 + below(k, 6);
	} else {
		s->op = OP_WAIT;
		s->len = 1 + below(k, 12);
	}
}

void program_make(struct program *p, uint64_t seed, const struct mix *mix)
{
	struct maker k = {.p = p, .state = seed};

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->msg = chance(&k, mix->msg);
	p->neps = p->msg ? 2 + 2 * below(&k, MAX_EPS / 2) : 1 + below(&k, RDM_EPS);
	p->shared = chance(&k, mix->shared);
	p->keyed = chance(&k, mix->keys);
	if (p->keyed && !p->msg && chance(&k, mix->strangers))
		p->strangers = below(&k, 1u << p->neps);
	p->tx_size = 4u << below(&k, 4);
	p->rx_size = 4u << below(&k, 4);
	p->cq_size = 4u << below(&k, 4);
	p->selective = chance(&k, 30);
	p->closes = chance(&k, p->msg ? 50 : mix->closes);
	p->nsteps = 3 + below(&k, chance(&k, 10) ? MAX_STEPS - 3 : 50);
	k.busy = 50 + below(&k, 45);
	k.sends = 30 + below(&k, 40);
	k.large = chance(&k, 30) ? below(&k, 30) : below(&k, 4);
	k.directed = chance(&k, 50) ? below(&k, 60) : 0;
	k.multi = chance(&k, 40) ? below(&k, 60) : 0;
	k.odd = chance(&k, 60) ? below(&k, 60) : 0;
	for (uint32_t i = 0; i < p->nsteps; i++) {
		struct step *s = &p->step[i];

		s->ep = (uint8_t)below(&k, p->neps);
		s->peer = ANY;
		if (chance(&k, k.busy))
			make_transfer(&k, s);
		else
			make_other(&k, s);
	}
}

/* ---- as text ---- */

void program_print(const struct program *p, FILE *f)
{
	fprintf(f,
		"program seed %#llx eps %u tx %u rx %u cq %u selective %d closes %d msg %d shared "
		"%d keyed %d strangers %u\n",
		(unsigned long long)p->seed, p->neps, p->tx_size, p->rx_size, p->cq_size,
		p->selective, p->closes, p->msg, p->shared, p->keyed, p->strangers);
	for (uint32_t i = 0; i < p->nsteps; i++) {
		const struct step *s = &p->step[i];

		fprintf(f, "%s %u ", op_name[s->op], s->ep);
		if (s->peer == ANY)
			fputs("*", f);
		else
			fprintf(f, "%u", s->peer);
		fprintf(f, " %u", s->len);
		for (unsigned int b = 0; b < SF_COUNT; b++)
			if (s->flags >> b & 1)
				fprintf(f, " %s", flag_name[b]);
		fputc('\n', f);
	}
}

static const char *read_head(struct program *p, const char *line)
{
	unsigned long long seed;
	int selective, closes, msg, shared, keyed;

	if (sscanf(line,
		   "program seed %lli eps %u tx %u rx %u cq %u selective %d closes %d msg %d "
		   "shared %d keyed %d strangers %u",
		   (long long *)&seed, &p->neps, &p->tx_size, &p->rx_size, &p->cq_size, &selective,
		   &closes, &msg, &shared, &keyed, &p->strangers) != 11)
		return "the first line is: program seed S eps N tx N rx N cq N selective N closes "
		       "N msg N shared N keyed N strangers N";
	p->seed = seed;
	p->selective = selective;
	p->closes = closes;
	p->msg = msg;
	p->shared = shared;
	p->keyed = keyed;
	if (p->neps < 1 || p->neps > MAX_EPS || !p->tx_size || !p->rx_size || !p->cq_size)
		return "1 to 6 endpoints, and sizes above 0";
	if (p->msg && p->neps % 2)
		return "connected endpoints are pairs";
	return NULL;
}

static const char *read_flags(struct step *s, char *save)
{
	const char *word;

	while ((word = strtok_r(NULL, " \t\n", &save)) != NULL) {
		unsigned int b = 0;

		while (b < SF_COUNT && strcmp(word, flag_name[b]) != 0)
			b++;
		if (b == SF_COUNT)
			return "no such flag";
		s->flags |= (uint16_t)(1u << b);
	}
	return NULL;
}

static const char *read_step(const struct program *p, struct step *s, char *line)
{
	char *save, *word = strtok_r(line, " \t\n", &save);
	unsigned int ep, peer = ANY;

	memset(s, 0, sizeof(*s));
	while (s->op < OP_COUNT && strcmp(word, op_name[s->op]) != 0)
		s->op++;
	if (s->op == OP_COUNT)
		return "no such step";
	word = strtok_r(NULL, " \t\n", &save);
	if (!word || sscanf(word, "%u", &ep) != 1 || ep >= p->neps)
		return "no such endpoint";
	word = strtok_r(NULL, " \t\n", &save);
	if (!word ||
	    (strcmp(word, "*") != 0 && (sscanf(word, "%u", &peer) != 1 || peer >= p->neps)))
		return "no such peer";
	if (s->op == OP_SEND && peer == ANY)
		return "a message goes to one peer";
	word = strtok_r(NULL, " \t\n", &save);
	if (!word || sscanf(word, "%u", &s->len) != 1 || s->len > 16 * LEN_MAX)
		return "no length";
	s->ep = (uint8_t)ep;
	s->peer = (uint8_t)peer;
	return read_flags(s, save);
}

unsigned int program_read(struct program *p, FILE *f, const char **why)
{
	unsigned int n = 0, used = 0;
	char line[256];

	memset(p, 0, sizeof(*p));
	while (fgets(line, sizeof(line), f)) {
		n++;
		if (line[0] == '#' || line[strspn(line, " \t\n")] == '\0')
			continue;
		if (used++ == 0)
			*why = read_head(p, line);
		else if (p->nsteps == MAX_STEPS)
			*why = "too many steps";
		else
			*why = read_step(p, &p->step[p->nsteps++], line);
		if (*why)
			return n;
	}
	*why = "there is no program";
	return used ? 0 : n + 1;
}
