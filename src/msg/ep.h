/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The endpoint as the data path sees it. fabric makes it, checks arguments and binds; the nine
 * calls and the engine work on it.
 */
#ifndef PMF_MSG_EP_H
#define PMF_MSG_EP_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include "completion/cntr.h"
#include "completion/cq.h"
#include "msg/peers.h"
#include "msg/stack.h"

enum pmf_ep_type { PMF_EP_RDM, PMF_EP_MSG, PMF_EP_PASSIVE };

#define PMF_EP_KEYS 16 /* rings of authorization keys of one endpoint */

struct pmf_ep_attr {
	enum pmf_ep_type type;
	struct pmf_progress *progress; /* kept */
	uint64_t caps;		       /* FI_SEND and/or FI_RECV, FI_SOURCE … */
	uint64_t tx_op_flags, rx_op_flags;
	uint32_t tx_size, rx_size, inject_size, iov_limit;
	uint64_t max_msg_size;
	bool thread_safe;     /* posting threads may be several (FI_THREAD_SAFE) */
	bool shared_rx;	      /* receives come from a shared context, still to be bound */
	bool accepts;	      /* it is for a connection that a listener was asked for */
	uint8_t prefix;	      /* FI_MSG_PREFIX: bytes before each message, or 0 */
	uint8_t dscp;	      /* of its packets, 0..63 */
	struct pmf_addr addr; /* port 0: choose one at enable */
	const struct pmf_key_list *keys; /* authorization keys; NULL: none */
	bool keys_of_file;		 /* then those of FI_PMF_AUTH_KEY_FILE, which roll */
	bool keys_of_av;		 /* none of these: pmf_ep_add_key() */
};

struct pmf_ep;	 /* msg/ep_state.h */
struct pmf_rctx; /* msg/rctx.h */

/** @return 0 with a not yet enabled endpoint; -ENOMEM; -EINVAL, -EEXIST no good keys. The caller
 * sets fid ops. Control path. */
int pmf_ep_open(const struct pmf_ep_attr *attr, struct pmf_ep **out);

/** Direction of @p flags: FI_TRANSMIT and/or FI_RECV, FI_SELECTIVE_COMPLETION. Checked by fabric.
 * -ENOMEM */
int pmf_ep_bind_cq(struct pmf_ep *ep, struct pmf_cq *cq, uint64_t flags);
int pmf_ep_bind_cntr(struct pmf_ep *ep, struct pmf_cntr *cntr, uint64_t flags);
/** Under the AV's lock. */
void pmf_ep_bind_peers(struct pmf_ep *ep, struct pmf_peers *peers);
/** Take receives from a shared context; keeps a reference. @return 0; -EINVAL it does not fit */
int pmf_ep_bind_rctx(struct pmf_ep *ep, struct pmf_rctx *rctx);

/**
 * A key of its address vector, before enable; all that it talks to it talks to under one of these.
 * @param number  from 1 on, another one for each
 * @return 0; -ENOSPC: it has PMF_EP_KEYS; as pmf_ep_open()
 */
int pmf_ep_add_key(struct pmf_ep *ep, const struct pmf_key_bytes *key, uint16_t number);
/** None of them, when fi_enable has failed. */
void pmf_ep_drop_keys(struct pmf_ep *ep);

/** Take the UDP port and join the engine. @return 0, -EADDRINUSE, -ENOMEM */
int pmf_ep_enable(struct pmf_ep *ep);
bool pmf_ep_enabled(const struct pmf_ep *ep);

/** Its address; the port is 0 until enabled or named. */
const struct pmf_addr *pmf_ep_addr(const struct pmf_ep *ep);
/** Name it before enable; it has its port from then on. @return 0, -EADDRINUSE, -EADDRNOTAVAIL not
 * ours */
int pmf_ep_set_addr(struct pmf_ep *ep, const struct pmf_addr *addr);

/** Its address is its own from now on, with a port chosen if it has none; or another's. @return 0,
 * -EADDRINUSE */
int pmf_ep_hold_addr(struct pmf_ep *ep);
void pmf_ep_release_addr(struct pmf_ep *ep);

size_t pmf_ep_tx_left(const struct pmf_ep *ep);
/** Lower max_msg_size or inject_size before enable. */
void pmf_ep_set_limits(struct pmf_ep *ep, uint64_t max_msg_size, uint32_t inject_size);

/**
 * Close: buffers are the caller's on return; nothing is written to CQs afterwards; what was
 * completed or injected still goes out for at most conf->linger after. Under the AV's lock if one
 * is bound. Frees ep.
 */
void pmf_ep_close(struct pmf_ep *ep);

#define PMF_EP_STATS(X)                                                       \
	X(tx_msgs, "messages", "sends completed in success")                  \
	X(tx_bytes, "bytes", "bytes of those")                                \
	X(tx_errors, "messages", "sends completed in error")                  \
	X(rx_msgs, "messages", "receives completed in success")               \
	X(rx_bytes, "bytes", "bytes of those")                                \
	X(rx_errors, "messages", "receives completed in error")               \
	X(rx_truncated, "messages", "messages longer than the posted buffer") \
	X(rx_expected, "messages", "messages that found a posted buffer")     \
	X(rx_unexpected, "messages", "messages kept until a buffer was posted")

struct pmf_ep_stats {
	PMF_EP_STATS(PMF_STAT_FIELD)
};
extern const struct pmf_stat_desc pmf_ep_stat_desc[];
extern const unsigned int pmf_ep_stat_count;

#define PMF_ENGINE_STATS(X)                                                                        \
	X(passes, "passes", "passes run")                                                          \
	X(passes_busy, "passes", "passes that found something to do")                              \
	X(rescues, "passes", "passes run by the helper thread because nobody else did")            \
	X(flows_opened, "flows", "flows begun, by either side")                                    \
	X(flows_dead, "flows", "flows ended because the peer was dead or restarted")               \
	X(flows_forgotten, "flows", "flows ended because an idle peer had gone for good")          \
	X(hello_rx, "packets", "hellos answered")                                                  \
	X(drop_malformed, "packets", "dropped: not a packet of this protocol")                     \
	X(drop_version, "packets", "dropped: another protocol version")                            \
	X(drop_no_ep, "packets", "dropped: no endpoint on that port")                              \
	X(drop_no_flow, "packets", "dropped: unknown connection id")                               \
	X(drop_key, "packets", "dropped: an authorization key that is not taken, or none")         \
	X(drop_tag, "packets", "dropped: changed on the way, or forged")                           \
	X(drop_replay, "packets", "dropped: authentic, but seen before or of an earlier life")     \
	X(key_refused, "packets", "answered: the authorization key is not taken here")             \
	X(key_rolls, "times", "other authorization keys were read from the file")                  \
	X(drop_cookie, "packets", "dropped: the answer to a challenge was wrong or old")           \
	X(drop_ended, "packets", "dropped: a late copy of what opened a flow that has ended")      \
	X(drop_no_memory, "packets", "dropped: no memory to process it; it comes again")           \
	X(drop_protocol, "packets", "dropped: the peer broke the protocol; its flow was closed")   \
	X(hello_refused, "packets", "hellos answered: nobody takes that here")                     \
	X(mcast_tx, "messages", "multicast messages sent")                                         \
	X(mcast_rx, "messages", "multicast messages received for endpoints here")                  \
	X(mcast_drop_old, "messages", "multicast dropped: seen before, or overtaken")              \
	X(mcast_drop_no_member, "messages", "multicast dropped: nobody has joined at that port")   \
	X(mcast_drop_no_memory, "messages", "multicast dropped: no receive, no memory to keep it") \
	X(mcast_forgotten, "senders", "senders of multicast that made room for others")            \
	X(cm_requests, "requests", "connection requests received")                                 \
	X(cm_refused, "requests", "connection requests rejected")                                  \
	X(cm_no_memory, "events", "connection events lost for want of memory")                     \
	X(cm_bad_steps, "steps", "state changes of connections that are not allowed")

struct pmf_engine_stats {
	PMF_ENGINE_STATS(PMF_STAT_FIELD)
};
extern const struct pmf_stat_desc pmf_engine_stat_desc[];
extern const unsigned int pmf_engine_stat_count;

/**
 * Counters for include/pmf/pmf_stats.h, telemetry and pmf-perf. Any thread; figures may be a moment
 * old. Each calls @p emit for every line: object ("port", "engine", "ep:10.99.0.1:4000", "peer:…"),
 * counter, value.
 */
typedef void (*pmf_stat_emit)(void *arg, const char *object, const struct pmf_stat_desc *desc,
			      uint64_t value);
void pmf_stats_walk(struct pmf_progress *p, pmf_stat_emit emit, void *arg);

/** One line per peer: state, rtt, counters. */
struct pmf_peer_view {
	struct pmf_addr local, peer;
	char state[16];
	pmf_ns_t srtt;
	pmf_ns_t queue, target; /* of congestion control; queue 0: not measured lately */
	uint32_t cwnd;		/* thousandths of a packet */
	uint32_t inflight;	/* packets */
	uint16_t mtu_payload;
	struct pmf_flow_stats stats;
};
/** @return how many there are; fills at most @p max. */
size_t pmf_peers_walk(struct pmf_progress *p, struct pmf_peer_view *out, size_t max);

#endif
