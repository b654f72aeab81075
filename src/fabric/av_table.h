/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Peer → index of an AV: indices 0, 1, 2 … in order of insertion, freed ones reused lowest first,
 * and one that is inserted again keeps its index and is counted. Not locked.
 */
#ifndef PMF_FABRIC_AV_TABLE_H
#define PMF_FABRIC_AV_TABLE_H

#include "pmf_common.h"

struct pmf_av_entry {
	struct pmf_peer peer;
	uint32_t refs; /* inserted so often; 0: free */
	uint32_t next; /* in its bucket; PMF_AV_NONE ends it */
};

#define PMF_AV_NONE UINT32_MAX

struct pmf_av_table {
	struct pmf_av_entry *entry;
	uint32_t *bucket; /* heads; as many as cap, a power of two */
	uint32_t cap;
	uint32_t used;	 /* entries that are not free */
	uint32_t lowest; /* no free entry below this */
};

/** @param count  how many are expected; a hint. @return 0, -ENOMEM */
int pmf_av_table_init(struct pmf_av_table *t, size_t count);
void pmf_av_table_fini(struct pmf_av_table *t);

/**
 * @param index  the entry's, new or not
 * @param fresh  whether it is new
 * @return 0; -ENOMEM, -ENOSPC: nothing changed
 */
int pmf_av_table_insert(struct pmf_av_table *t, const struct pmf_peer *peer, uint32_t *index,
			bool *fresh);
/** @param gone  whether that was the last of its insertions. @return 0, -EINVAL not inserted */
int pmf_av_table_remove(struct pmf_av_table *t, uint64_t index, bool *gone);
/** @return the peer at @p index or NULL; good until the next insertion. */
const struct pmf_peer *pmf_av_table_get(const struct pmf_av_table *t, uint64_t index);
/** @return the index of @p peer, or PMF_AV_NONE */
uint32_t pmf_av_table_find(const struct pmf_av_table *t, const struct pmf_peer *peer);

#endif
