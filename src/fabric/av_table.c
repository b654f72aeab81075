/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/av_table.h"

#include <stdlib.h>

#define AV_CAP_MIN 64u
#define AV_CAP_MAX (1u << 22)

static uint32_t hash_peer(const struct pmf_peer *p)
{
	const struct pmf_addr *a = &p->addr;
	uint64_t lo, hi;

	memcpy(&lo, a->ip, 8);
	memcpy(&hi, a->ip + 8, 8);
	/* Finalizer of splitmix64 over what differs most: the end of the address and the port. */
	lo ^= hi * 0x9e3779b97f4a7c15ull + a->port + ((uint64_t)p->key << 16);
	lo = (lo ^ (lo >> 30)) * 0xbf58476d1ce4e5b9ull;
	lo = (lo ^ (lo >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)(lo ^ (lo >> 31));
}

static uint32_t *head_of(const struct pmf_av_table *t, const struct pmf_peer *peer)
{
	return &t->bucket[hash_peer(peer) & (t->cap - 1)];
}

/* Make room for @p cap entries, a power of two, and hash all anew. */
static int table_resize(struct pmf_av_table *t, uint32_t cap)
{
	struct pmf_av_entry *entry = calloc(cap, sizeof(*entry));
	uint32_t *bucket = malloc(cap * sizeof(*bucket));
	uint32_t old = t->cap;

	if (!entry || !bucket) {
		free(entry);
		free(bucket);
		return -ENOMEM;
	}
	memset(bucket, 0xff, cap * sizeof(*bucket));
	if (old)
		memcpy(entry, t->entry, old * sizeof(*entry));
	pmf_av_table_fini(t);
	t->entry = entry;
	t->bucket = bucket;
	t->cap = cap;
	for (uint32_t i = 0; i < old; i++) {
		uint32_t *head = head_of(t, &entry[i].peer);

		if (!entry[i].refs)
			continue;
		entry[i].next = *head;
		*head = i;
	}
	return 0;
}

int pmf_av_table_init(struct pmf_av_table *t, size_t count)
{
	memset(t, 0, sizeof(*t));
	/* The count is the application's guess: believe it only so far. */
	return table_resize(
		t, pmf_roundup_pow2((uint32_t)PMF_MIN(PMF_MAX(count, AV_CAP_MIN), 65536u)));
}

void pmf_av_table_fini(struct pmf_av_table *t)
{
	free(t->entry);
	free(t->bucket);
	t->entry = NULL;
	t->bucket = NULL;
}

uint32_t pmf_av_table_find(const struct pmf_av_table *t, const struct pmf_peer *peer)
{
	uint32_t i = *head_of(t, peer);

	while (i != PMF_AV_NONE && !pmf_peer_eq(&t->entry[i].peer, peer))
		i = t->entry[i].next;
	return i;
}

int pmf_av_table_insert(struct pmf_av_table *t, const struct pmf_peer *peer, uint32_t *index,
			bool *fresh)
{
	uint32_t i = pmf_av_table_find(t, peer), *head;
	int rc;

	if (i != PMF_AV_NONE) {
		t->entry[i].refs++;
		*index = i;
		*fresh = false;
		return 0;
	}
	if (t->used == t->cap) {
		if (t->cap >= AV_CAP_MAX)
			return -ENOSPC;
		rc = table_resize(t, t->cap * 2);
		if (rc)
			return rc;
	}
	for (i = t->lowest; t->entry[i].refs; i++)
		;
	head = head_of(t, peer);
	t->entry[i] = (struct pmf_av_entry){.peer = *peer, .refs = 1, .next = *head};
	*head = i;
	t->used++;
	t->lowest = i + 1;
	*index = i;
	*fresh = true;
	return 0;
}

int pmf_av_table_remove(struct pmf_av_table *t, uint64_t index, bool *gone)
{
	struct pmf_av_entry *e;
	uint32_t *link;

	if (index >= t->cap || !t->entry[index].refs)
		return -EINVAL;
	e = &t->entry[index];
	*gone = --e->refs == 0;
	if (!*gone)
		return 0;
	for (link = head_of(t, &e->peer); *link != index; link = &t->entry[*link].next)
		;
	*link = e->next;
	t->used--;
	t->lowest = PMF_MIN(t->lowest, (uint32_t)index);
	return 0;
}

const struct pmf_peer *pmf_av_table_get(const struct pmf_av_table *t, uint64_t index)
{
	return index < t->cap && t->entry[index].refs ? &t->entry[index].peer : NULL;
}
