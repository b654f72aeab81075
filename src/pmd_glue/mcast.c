/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Groups and when to speak of them: a change is told at once and again (RFC 3376 §5.1), a query
 * answered after a random delay (§5.2), older queriers in their own words (§7). MLD is the same
 * with other bytes (RFC 3810 §6, §8). All members want every source. Owner of queue 0.
 */
#include <stdlib.h>

#include "pmd_glue/eal.h"
#include "pmd_glue/mcast_internal.h"

enum {
	FULL_VERSION = 3,
	ROBUSTNESS = 2,
	ROBUSTNESS_MAX = 7,
};

static const pmf_ns_t repeat_within = PMF_NS_PER_S; /* RFC 3376 §8.11 */
/* Robustness × query interval + response interval (§8.12), with the defaults of all three. */
static const pmf_ns_t old_querier = 260 * PMF_NS_PER_S;
/* A query that leaves no time is not let have the port speak at once. */
static const pmf_ns_t least_delay = 100 * PMF_NS_PER_MS;

static bool is_v6(const uint8_t ip[16])
{
	struct pmf_addr a;

	memcpy(a.ip, ip, 16);
	return !pmf_addr_is_v4(&a);
}

bool pmf_mcast_is_group(const uint8_t ip[16])
{
	if (is_v6(ip)) /* not the reserved scope, and not the one that never leaves a host */
		return ip[0] == 0xff && (ip[1] & 15) >= 2;
	return ip[12] >> 4 == 14 && (ip[12] != 224 || ip[13] | ip[14] | ip[15]);
}

/* All hosts are in these by standing; nobody is told (RFC 3376 §6, RFC 3810 §6). */
static bool is_told(const uint8_t ip[16])
{
	static const uint8_t all_nodes[16] = {0xff, 0x02, [15] = 1};
	static const uint8_t all_hosts[4] = {224, 0, 0, 1};

	return is_v6(ip) ? memcmp(ip, all_nodes, 16) != 0 : memcmp(ip + 12, all_hosts, 4) != 0;
}

void pmf_mcast_mac(const uint8_t ip[16], uint8_t mac[6])
{
	if (is_v6(ip)) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, ip + 12, 4);
		return;
	}
	mac[0] = 0x01;
	mac[1] = 0x00;
	mac[2] = 0x5e;
	mac[3] = ip[13] & 0x7f;
	memcpy(mac + 4, ip + 14, 2);
}

/* ---- the table ---- */

static uint16_t *bucket_of(struct pmf_mcast *mc, const uint8_t ip[16])
{
	uint32_t low;

	memcpy(&low, ip + 12, 4);
	return &mc->bucket[(low * 0x9e3779b1u) >> 22]; /* 10 bits */
}

static_assert(PMF_MCAST_MAX == 1 << 10, "bucket_of() makes as many bits");

static int find(const struct pmf_mcast *mc, const uint8_t ip[16])
{
	uint16_t i = *bucket_of((struct pmf_mcast *)(uintptr_t)mc, ip);

	while (i && memcmp(mc->g[i - 1].ip, ip, 16) != 0)
		i = mc->g[i - 1].next;
	return i - 1;
}

int pmf_mcast_find(const struct pmf_mcast *mc, const uint8_t ip[16])
{
	const int i = find(mc, ip);

	return i >= 0 && mc->g[i].refs ? i : -1;
}

bool pmf_mcast_joined(const struct pmf_port *port, const uint8_t ip[16])
{
	return pmf_mcast_find(port->mcast, ip) >= 0;
}

static int group_make(struct pmf_mcast *mc, const uint8_t ip[16])
{
	uint16_t *bucket = bucket_of(mc, ip);
	struct pmf_mcast_group *g;
	uint16_t i;

	if (mc->free_head) {
		i = (uint16_t)(mc->free_head - 1);
		mc->free_head = mc->g[i].next;
	} else if (mc->top < PMF_MCAST_MAX) {
		i = mc->top++;
	} else {
		return -ENOSPC;
	}
	g = &mc->g[i];
	memcpy(g->ip, ip, 16);
	g->used = true;
	g->answer_due = PMF_NS_NEVER;
	g->nsrc = 0;
	g->left = 0;
	g->next = *bucket;
	*bucket = (uint16_t)(i + 1);
	return i;
}

static void group_free(struct pmf_mcast *mc, struct pmf_mcast_group *g)
{
	const uint16_t i = (uint16_t)(g - mc->g + 1);
	uint16_t *link = bucket_of(mc, g->ip);

	while (*link != i)
		link = &mc->g[*link - 1].next;
	*link = g->next;
	g->used = false;
	g->next = mc->free_head;
	mc->free_head = i;
}

/* Somebody joins. @return the index; -ENOSPC */
static int enter(struct pmf_mcast *mc, const uint8_t ip[16])
{
	int i = find(mc, ip);

	if (i < 0)
		i = group_make(mc, ip);
	if (i < 0)
		return i;
	if (mc->g[i].refs++ == 0) {
		mc->g[i].left = is_told(ip) ? mc->fam[is_v6(ip)].robustness : 0;
		atomic_fetch_add_explicit(&mc->wanted, 1, memory_order_release);
	}
	return i;
}

/* The solicited-node group of an address: a switch that knows no member keeps solicitations back.
 */
static void enter_solicited(struct pmf_mcast *mc, const uint8_t ip6[16])
{
	const uint8_t ip[16] = {
		0xff, 0x02, [11] = 1, [12] = 0xff, [13] = ip6[13], ip6[14], ip6[15]};

	enter(mc, ip);
}

struct pmf_mcast *pmf_mcast_open(const struct pmf_port *port)
{
	/* Zeroed pages cost nothing until a group is used. */
	struct pmf_mcast *mc = calloc(1, sizeof(*mc));
	unsigned int i;

	if (!mc)
		return NULL;
	for (i = 0; i < PMF_ARRAY_SIZE(mc->fam); i++) {
		mc->fam[i].version = FULL_VERSION;
		mc->fam[i].robustness = ROBUSTNESS;
		mc->fam[i].answer_due = PMF_NS_NEVER;
	}
	mc->change_due = PMF_NS_NEVER;
	mc->group_due = PMF_NS_NEVER;
	pmf_random(&mc->random, sizeof(mc->random));
	mc->random |= 1;
	if (port->conf.v6.set) {
		enter_solicited(mc, port->conf.v6.addr.ip);
		enter_solicited(mc, port->ip6_ll);
	}
	return mc;
}

void pmf_mcast_close(struct pmf_mcast *mc)
{
	free(mc);
}

/* ---- speaking ---- */

/* From (0, max]; a linear generator is enough to keep hosts from speaking all at once. */
static pmf_ns_t delay_within(struct pmf_mcast *mc, pmf_ns_t max)
{
	mc->random = mc->random * 6364136223846793005u + 1442695040888963407u;
	return 1 + (mc->random >> 16) % max;
}

static void report(struct pmf_queue *q, bool v6, const struct pmf_mcast_rec *recs, unsigned int n)
{
	if (!n)
		return;
	if (v6)
		pmf_mld_report(q, recs, n);
	else
		pmf_igmp_report(q, recs, n);
}

static void report_old(struct pmf_queue *q, bool v6, bool leave, const uint8_t ip[16])
{
	const uint8_t version = q->port->mcast->fam[v6].version;

	if (v6)
		pmf_mld_old(q, leave, ip);
	else if (!leave || version > 1)
		pmf_igmp_old(q, version, leave, ip);
}

/* One state-change report of each pending change of a family, newest state. */
static void tell_changes(struct pmf_queue *q, bool v6)
{
	struct pmf_mcast *mc = q->port->mcast;
	struct pmf_mcast_rec recs[PMF_MCAST_RECS];
	unsigned int n = 0;
	uint16_t i;

	for (i = 0; i < mc->top; i++) {
		struct pmf_mcast_group *g = &mc->g[i];

		if (!g->used || !g->left || is_v6(g->ip) != v6)
			continue;
		g->left--;
		if (mc->fam[v6].version == FULL_VERSION) {
			recs[n++] = (struct pmf_mcast_rec){
				.type = g->refs ? PMF_MCAST_TO_EX : PMF_MCAST_TO_IN,
				.ip = g->ip,
			};
		} else {
			report_old(q, v6, !g->refs, g->ip);
			if (!g->refs)
				g->left = 0; /* older leaves are not repeated */
		}
		if (n == PMF_MCAST_RECS) {
			report(q, v6, recs, n);
			n = 0;
		}
		if (!g->refs && !g->left) /* its address stays until another group is made */
			group_free(mc, g);
	}
	report(q, v6, recs, n);
}

static bool changes_left(const struct pmf_mcast *mc)
{
	uint16_t i;

	for (i = 0; i < mc->top; i++)
		if (mc->g[i].used && mc->g[i].left)
			return true;
	return false;
}

/* The state of all groups of a family: the answer to a general query. */
static void tell_all(struct pmf_queue *q, bool v6)
{
	struct pmf_mcast *mc = q->port->mcast;
	struct pmf_mcast_rec recs[PMF_MCAST_RECS];
	unsigned int n = 0;
	uint16_t i;

	for (i = 0; i < mc->top; i++) {
		const struct pmf_mcast_group *g = &mc->g[i];

		if (!g->used || !g->refs || is_v6(g->ip) != v6 || !is_told(g->ip))
			continue;
		recs[n++] = (struct pmf_mcast_rec){.type = PMF_MCAST_IS_EX, .ip = g->ip};
		if (n == PMF_MCAST_RECS) {
			report(q, v6, recs, n);
			n = 0;
		}
	}
	report(q, v6, recs, n);
}

/* Asked about sources: all of them are wanted (RFC 3376 §5.2, EXCLUDE of nothing). */
static void tell_group(struct pmf_queue *q, struct pmf_mcast_group *g)
{
	const bool v6 = is_v6(g->ip);
	const struct pmf_mcast_rec rec = {
		.type = g->nsrc ? PMF_MCAST_IS_IN : PMF_MCAST_IS_EX,
		.nsrc = g->nsrc,
		.ip = g->ip,
		.src = g->src,
	};

	if (q->port->mcast->fam[v6].version == FULL_VERSION)
		report(q, v6, &rec, 1);
	else
		report_old(q, v6, false, g->ip);
	g->answer_due = PMF_NS_NEVER;
	g->nsrc = 0;
}

static void tell_groups(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_mcast *mc = q->port->mcast;
	uint16_t i;

	mc->group_due = PMF_NS_NEVER;
	for (i = 0; i < mc->top; i++) {
		struct pmf_mcast_group *g = &mc->g[i];

		if (g->used && g->answer_due <= now)
			tell_group(q, g);
		if (g->used)
			mc->group_due = PMF_MIN(mc->group_due, g->answer_due);
	}
}

/* Another version: what was pending is not said in it (RFC 3376 §7.2.1). */
static void version_set(struct pmf_mcast *mc, bool v6, uint8_t version)
{
	uint16_t i;

	if (mc->fam[v6].version == version)
		return;
	mc->fam[v6].version = version;
	mc->fam[v6].answer_due = PMF_NS_NEVER;
	for (i = 0; i < mc->top; i++) {
		struct pmf_mcast_group *g = &mc->g[i];

		if (!g->used || is_v6(g->ip) != v6)
			continue;
		g->left = 0;
		g->answer_due = PMF_NS_NEVER;
		if (!g->refs)
			group_free(mc, g);
	}
}

void pmf_mcast_tick(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_mcast *mc = q->port->mcast;
	unsigned int v6;

	for (v6 = 0; v6 < PMF_ARRAY_SIZE(mc->fam); v6++) {
		struct pmf_mcast_family *fam = &mc->fam[v6];

		if (pmf_unlikely(fam->version != FULL_VERSION && now >= fam->old_until))
			version_set(mc, v6, FULL_VERSION);
		if (pmf_unlikely(now >= fam->answer_due)) {
			fam->answer_due = PMF_NS_NEVER;
			tell_all(q, v6);
		}
	}
	if (pmf_unlikely(now >= mc->group_due))
		tell_groups(q, now);
	/* a change waits for the link, which announces all of them */
	if (pmf_likely(now < mc->change_due) ||
	    !atomic_load_explicit(&q->port->link_up, memory_order_relaxed))
		return;
	tell_changes(q, false);
	tell_changes(q, true);
	mc->change_due = changes_left(mc) ? now + delay_within(mc, repeat_within) : PMF_NS_NEVER;
}

void pmf_mcast_announce(struct pmf_queue *q, pmf_ns_t now)
{
	struct pmf_mcast *mc = q->port->mcast;
	uint16_t i;

	for (i = 0; i < mc->top; i++)
		if (mc->g[i].used && mc->g[i].refs && is_told(mc->g[i].ip))
			mc->g[i].left = mc->fam[is_v6(mc->g[i].ip)].robustness;
	mc->change_due = now;
}

/* ---- joining and leaving ---- */

int pmf_mcast_join(struct pmf_queue *q, const uint8_t ip[16], pmf_ns_t now)
{
	struct pmf_mcast *mc = q->port->mcast;
	const struct pmf_port_conf *conf = &q->port->conf;
	int i;

	if (!(is_v6(ip) ? conf->v6.set : conf->v4.set))
		return -ENETUNREACH;
	i = enter(mc, ip);
	if (i >= 0 && mc->g[i].refs == 1) {
		mc->change_due = now;
		pmf_mcast_tick(q, now);
	}
	return i;
}

void pmf_mcast_leave(struct pmf_queue *q, uint16_t group, pmf_ns_t now)
{
	struct pmf_mcast *mc = q->port->mcast;
	struct pmf_mcast_group *g = &mc->g[group];

	if (--g->refs)
		return;
	atomic_fetch_add_explicit(&mc->wanted, 1, memory_order_release);
	g->answer_due = PMF_NS_NEVER;
	g->nsrc = 0;
	g->left = is_told(g->ip) ? mc->fam[is_v6(g->ip)].robustness : 0;
	if (!g->left) {
		group_free(mc, g);
		return;
	}
	mc->change_due = now;
	pmf_mcast_tick(q, now);
}

bool pmf_mcast_leaving(const struct pmf_port *port)
{
	const struct pmf_mcast *mc = port->mcast;
	uint16_t i;

	if (mc->change_due == PMF_NS_NEVER)
		return false;
	for (i = 0; i < mc->top; i++)
		if (mc->g[i].used && !mc->g[i].refs)
			return true;
	return false;
}

/* ---- being asked ---- */

static void answer_at(struct pmf_mcast *mc, struct pmf_mcast_group *g, pmf_ns_t due)
{
	g->answer_due = PMF_MIN(g->answer_due, due);
	mc->group_due = PMF_MIN(mc->group_due, g->answer_due);
}

/* Add the sources asked about to those of the pending answer. Too many: the whole group is told. */
static void add_sources(struct pmf_mcast_group *g, const struct pmf_mcast_query *query)
{
	uint16_t i;
	uint8_t k;

	for (i = 0; i < query->nsrc; i++) {
		struct pmf_addr a;

		if (query->v6)
			memcpy(a.ip, query->src + 16 * i, 16);
		else
			pmf_addr_set_v4(&a, query->src + 4 * i, 0);
		for (k = 0; k < g->nsrc && memcmp(g->src[k], a.ip, 16) != 0; k++)
			continue;
		if (k < g->nsrc)
			continue;
		if (g->nsrc == PMF_MCAST_SOURCES) {
			g->nsrc = 0;
			return;
		}
		memcpy(g->src[g->nsrc++], a.ip, 16);
	}
}

static void queried_group(struct pmf_mcast *mc, const struct pmf_mcast_query *query, pmf_ns_t due)
{
	const int i = pmf_mcast_find(mc, query->ip);
	struct pmf_mcast_group *g;
	bool pending;

	if (i < 0)
		return;
	g = &mc->g[i];
	pending = g->answer_due != PMF_NS_NEVER;
	if (query->nsrc == 0 || (pending && g->nsrc == 0))
		g->nsrc = 0;
	else
		add_sources(g, query);
	answer_at(mc, g, due);
}

/* Older versions answer for each group by itself. */
static void queried_all_old(struct pmf_mcast *mc, bool v6, pmf_ns_t max, pmf_ns_t now)
{
	uint16_t i;

	for (i = 0; i < mc->top; i++) {
		struct pmf_mcast_group *g = &mc->g[i];

		if (g->used && g->refs && is_v6(g->ip) == v6 && is_told(g->ip))
			answer_at(mc, g, now + delay_within(mc, max));
	}
}

void pmf_mcast_queried(struct pmf_queue *q, const struct pmf_mcast_query *query, pmf_ns_t now)
{
	struct pmf_mcast *mc = q->port->mcast;
	struct pmf_mcast_family *fam = &mc->fam[query->v6];
	const pmf_ns_t max = PMF_MAX(query->max_delay, least_delay);
	const pmf_ns_t due = now + delay_within(mc, max);

	q->stats.mcast_queries++;
	if (query->version < FULL_VERSION) {
		if (query->version <= fam->version)
			fam->old_until = now + old_querier;
		version_set(mc, query->v6, PMF_MIN(query->version, fam->version));
	} else if (query->robustness) {
		fam->robustness = PMF_MIN(query->robustness, (uint8_t)ROBUSTNESS_MAX);
	}
	/* An answer to all that is due sooner says it anyway. */
	if (fam->answer_due <= due)
		return;
	if (!query->general)
		queried_group(mc, query, due);
	else if (fam->version == FULL_VERSION)
		fam->answer_due = due;
	else
		queried_all_old(mc, query->v6, max, now);
}
