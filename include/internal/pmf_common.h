/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * What every module may use: units, the peer address, small helpers. libc only.
 */
#ifndef PMF_COMMON_H
#define PMF_COMMON_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

typedef uint64_t pmf_ns_t;  /* nanoseconds on the engine's monotonic clock */
typedef uint64_t pmf_psn_t; /* packet number of one flow and direction; the low 32 bits travel */

#define PMF_NS_PER_US 1000ull
#define PMF_NS_PER_MS 1000000ull
#define PMF_NS_PER_S 1000000000ull
#define PMF_NS_NEVER UINT64_MAX

#define PMF_CACHE_LINE 64
#define PMF_CACHE_ALIGNED __attribute__((aligned(PMF_CACHE_LINE)))
#define pmf_likely(x) __builtin_expect(!!(x), 1)
#define pmf_unlikely(x) __builtin_expect(!!(x), 0)
#define pmf_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define PMF_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define PMF_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PMF_MAX(a, b) ((a) > (b) ? (a) : (b))

/* sys/queue.h of glibc lacks the _SAFE walk; the current element may be removed in the body. */
#define PMF_TAILQ_FOREACH_SAFE(var, head, field, tmp) \
	for ((var) = TAILQ_FIRST(head); (var) && ((tmp) = TAILQ_NEXT(var, field), 1); (var) = (tmp))

/*
 * An endpoint's address on the wire. IPv4 stands as an IPv4-mapped IPv6 address (RFC 4291
 * §2.5.5.2), so that one comparison serves both. No padding: the struct is hashed and compared as
 * bytes.
 */
struct pmf_addr {
	uint8_t ip[16];
	uint16_t port; /* UDP port, host order */
};

static_assert(sizeof(struct pmf_addr) == 18, "pmf_addr is compared as bytes");

static inline bool pmf_addr_is_v4(const struct pmf_addr *a)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	return memcmp(a->ip, prefix, sizeof(prefix)) == 0;
}

static inline bool pmf_addr_eq(const struct pmf_addr *a, const struct pmf_addr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * A peer: who, and under which of the authorization keys of an address vector; 0 where those are
 * not the vector's. Hashed and compared as bytes, too.
 */
struct pmf_peer {
	struct pmf_addr addr;
	uint16_t key;
};

static_assert(sizeof(struct pmf_peer) == 20, "pmf_peer is compared as bytes");

static inline bool pmf_peer_eq(const struct pmf_peer *a, const struct pmf_peer *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The fi_addr_t of a key is its number, from 1 on, above those of all peers. */
#define PMF_KEY_ADDR (1ull << 61)

/* Set to the IPv4 address @p be, 4 bytes in network order. */
static inline void pmf_addr_set_v4(struct pmf_addr *a, const void *be, uint16_t port)
{
	memset(a->ip, 0, 10);
	a->ip[10] = a->ip[11] = 0xff;
	memcpy(a->ip + 12, be, 4);
	a->port = port;
}

static inline uint32_t pmf_roundup_pow2(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

/*
 * One line of a statistics list: the list makes the struct, the telemetry and the printout.
 *   #define FOO_STATS(X) X(rx_frames, "frames", "frames received")
 *   struct foo_stats { FOO_STATS(PMF_STAT_FIELD) };
 */
#define PMF_STAT_FIELD(name, unit, help) uint64_t name;

struct pmf_stat_desc {
	const char *name;
	const char *unit;
	const char *help;
};
#define PMF_STAT_DESC(name, unit, help) {#name, unit, help},

/* Levels of a log line handed upwards by a module that cannot log itself. */
enum pmf_log_level { PMF_LOG_WARN, PMF_LOG_INFO, PMF_LOG_DEBUG };

/** Takes one line without its newline. Any thread; @p line is not kept. */
typedef void (*pmf_log_fn)(enum pmf_log_level level, const char *line);

#endif
