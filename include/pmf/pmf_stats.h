/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Counters of the provider `pmf`, for applications. Opened on a domain:
 *
 *	struct pmf_stats_ops *ops;
 *	if (fi_open_ops(&domain->fid, PMF_STATS_OPS, 0, (void **)&ops, NULL) == 0) ...
 *
 * Other providers answer -FI_ENOSYS. The table belongs to the provider and stays valid until the
 * domain is closed.
 */
#ifndef PMF_STATS_H
#define PMF_STATS_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMF_STATS_OPS "pmf_stats"

/* One counter of one object. Counters only grow; they start at 0 with their object. */
struct pmf_stat {
	char name[48];	  /* "tx_retrans" */
	char object[48];  /* "port", "engine", "ep:10.99.0.1:4000", "peer:10.99.0.2:4000" */
	char unit[16];	  /* "packets" */
	const char *help; /* a sentence; static, never NULL */
	uint64_t value;
};

/* One peer of one endpoint of the domain's port. Counters are this flow's. */
struct pmf_peer_info {
	char local[64];		/* "10.99.0.1:4000", "[fd00::1]:4000" */
	char peer[64];		/* the same of the other end */
	char state[16];		/* "idle", "open", ... */
	uint64_t srtt_ns;	/* smoothed round trip; 0: not measured yet */
	uint32_t cwnd;		/* congestion window, packets */
	uint32_t inflight;	/* packets sent and not acknowledged */
	uint32_t mtu;		/* message bytes of the largest frame in use */
	uint32_t cwnd_fraction; /* and thousandths of a packet */
	uint64_t queue_ns;	/* mean time in queues of the network in the last round trip */
	uint64_t target_ns;	/* what congestion control lets it be */
	uint64_t tx_marked;	/* packets that came back with a congestion mark */
	uint64_t tx_msgs, tx_bytes, tx_packets, tx_retrans, timeouts;
	uint64_t rx_msgs, rx_bytes, rx_packets, rx_dups;
};

/*
 * Both calls may come from any thread, at any time while the domain is open, and drive no progress.
 * The figures are those of a moment, not all of the same one.
 *
 * @param domain  the domain's fid
 * @param out     room for *count elements; may be NULL when *count is 0
 * @param count   in: room; out: how many there are, which may be more than was filled in
 * @return 0 all were filled in; -FI_ETOOSMALL there are more, the first ones were filled in;
 *         -FI_EINVAL not a domain of this provider
 */
struct pmf_stats_ops {
	size_t size; /* of this struct in the provider: members behind it are not there */
	/** Every counter of the domain's port, its engines, endpoints and peers. */
	int (*get)(struct fid *domain, struct pmf_stat *out, size_t *count);
	/** Every peer. */
	int (*peers)(struct fid *domain, struct pmf_peer_info *out, size_t *count);
};

#ifdef __cplusplus
}
#endif

#endif
