/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * /pmf/domains        the device of each open domain
 * /pmf/stats          every object's counters, all domains
 * /pmf/stats,OBJECT   those of one object, as "port", "engine", "ep:10.99.0.1:4000"
 * /pmf/peers          one entry a peer
 * The handlers run in DPDK's telemetry thread and only read.
 */
#include "fabric/telemetry.h"

#include <pthread.h>
#include <rte_telemetry.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/stats.h"
#include "msg/addr.h"

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define add_u64 rte_tel_data_add_dict_uint
#else
#define add_u64 rte_tel_data_add_dict_u64
#endif

/*
 * Dictionaries, one an object, by number: names in a dictionary must be words, which an object's is
 * not, and an array takes no dictionaries before DPDK 23.03.
 */
static void add_numbered(struct rte_tel_data *top, unsigned int *n, struct rte_tel_data *one)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", *n);
	if (rte_tel_data_add_dict_container(top, name, one, 0))
		rte_tel_data_free(one);
	else
		++*n;
}

/* pmf_stats_walk() gives an object's counters in a row. */
struct walk {
	struct rte_tel_data *top, *object;
	unsigned int n;	  /* objects in top */
	const char *only; /* or NULL: all */
	const char *port;
	unsigned int seen; /* a bit a port: two domains of one port have the same counters */
	char name[RTE_TEL_MAX_STRING_LEN];
};

static void walk_flush(struct walk *w)
{
	if (w->object)
		add_numbered(w->top, &w->n, w->object);
	w->object = NULL;
}

static void walk_one(void *arg, const char *object, const struct pmf_stat_desc *desc,
		     uint64_t value)
{
	struct walk *w = arg;

	if (w->only && strcmp(w->only, object) != 0)
		return;
	if (w->object && strcmp(w->name, object) != 0)
		walk_flush(w);
	if (!w->object) {
		w->object = rte_tel_data_alloc();
		if (!w->object)
			return;
		rte_tel_data_start_dict(w->object);
		snprintf(w->name, sizeof(w->name), "%s", object);
		rte_tel_data_add_dict_string(w->object, "device", w->port);
		rte_tel_data_add_dict_string(w->object, "object", object);
	}
	add_u64(w->object, desc->name, value);
}

static const char *port_name(const struct pmf_domain *d)
{
	return d->conf->port[d->port].name;
}

static void stats_of(struct pmf_domain *d, void *arg)
{
	struct walk *w = arg;

	if (w->seen & 1u << d->port)
		return;
	w->seen |= 1u << d->port;
	w->port = port_name(d);
	pmf_stats_walk(&d->progress, walk_one, w);
	walk_flush(w);
}

static int handle_stats(const char *cmd, const char *params, struct rte_tel_data *data)
{
	struct walk w = {.top = data, .only = params && *params ? params : NULL};

	rte_tel_data_start_dict(data);
	pmf_domain_list_walk(stats_of, &w);
	return 0;
}

struct peers {
	struct rte_tel_data *top;
	unsigned int n;	   /* peers in top */
	unsigned int seen; /* a bit a port */
};

static void peer_to(struct peers *p, const struct pmf_peer_view *v)
{
	struct rte_tel_data *one = rte_tel_data_alloc();
	char text[PMF_ADDR_TEXT];

	if (!one)
		return;
	rte_tel_data_start_dict(one);
	rte_tel_data_add_dict_string(one, "local", pmf_addr_text(&v->local, text, sizeof(text)));
	rte_tel_data_add_dict_string(one, "peer", pmf_addr_text(&v->peer, text, sizeof(text)));
	rte_tel_data_add_dict_string(one, "state", v->state);
	add_u64(one, "srtt_ns", v->srtt);
	add_u64(one, "cwnd", v->cwnd / 1000);
	add_u64(one, "cwnd_fraction", v->cwnd % 1000);
	add_u64(one, "queue_ns", v->queue);
	add_u64(one, "target_ns", v->target);
	add_u64(one, "tx_marked", v->stats.tx_marked);
	add_u64(one, "inflight", v->inflight);
	add_u64(one, "mtu", v->mtu_payload);
	add_u64(one, "tx_packets", v->stats.tx_packets);
	add_u64(one, "tx_retrans", v->stats.tx_retrans);
	add_u64(one, "rx_packets", v->stats.rx_packets);
	add_u64(one, "rx_dups", v->stats.rx_dups);
	add_numbered(p->top, &p->n, one);
}

static void peers_of(struct pmf_domain *d, void *arg)
{
	struct pmf_peer_view *views;
	struct peers *p = arg;
	size_t n;

	if (p->seen & 1u << d->port)
		return;
	p->seen |= 1u << d->port;
	n = pmf_stats_peers(d, &views);
	for (size_t i = 0; i < n; i++)
		peer_to(p, &views[i]);
	free(views);
}

static int handle_peers(const char *cmd, const char *params, struct rte_tel_data *data)
{
	struct peers p = {.top = data};

	rte_tel_data_start_dict(data);
	pmf_domain_list_walk(peers_of, &p);
	return 0;
}

static void name_of(struct pmf_domain *d, void *arg)
{
	rte_tel_data_add_array_string(arg, port_name(d));
}

static int handle_domains(const char *cmd, const char *params, struct rte_tel_data *data)
{
	rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
	pmf_domain_list_walk(name_of, data);
	return 0;
}

static void register_all(void)
{
	rte_telemetry_register_cmd("/pmf/domains", handle_domains,
				   "Devices of the open domains. Takes no parameters");
	rte_telemetry_register_cmd("/pmf/stats", handle_stats,
				   "Counters. Parameter: an object, as port (default: all)");
	rte_telemetry_register_cmd("/pmf/peers", handle_peers, "Peers. Takes no parameters");
}

void pmf_telemetry_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_all);
}
