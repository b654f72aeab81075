/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "msg/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define STR_V4 "fi_sockaddr_in://"
#define STR_V6 "fi_sockaddr_in6://"

bool pmf_addr_format_ok(uint32_t format)
{
	return format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6 || format == FI_ADDR_STR;
}

uint32_t pmf_addr_format_of(const struct pmf_addr *a)
{
	return pmf_addr_is_v4(a) ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
}

bool pmf_addr_is_any(const struct pmf_addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->ip + (pmf_addr_is_v4(a) ? 12 : 0), zero, pmf_addr_is_v4(a) ? 4 : 16) == 0;
}

static int from_v4(const void *in, size_t len, struct pmf_addr *out)
{
	struct sockaddr_in sin;

	if (len && len < sizeof(sin))
		return -FI_EINVAL;
	memcpy(&sin, in, sizeof(sin));
	if (sin.sin_family != AF_INET)
		return -FI_EINVAL;
	pmf_addr_set_v4(out, &sin.sin_addr, ntohs(sin.sin_port));
	return 0;
}

static int from_v6(const void *in, size_t len, struct pmf_addr *out)
{
	struct sockaddr_in6 sin6;

	if (len && len < sizeof(sin6))
		return -FI_EINVAL;
	memcpy(&sin6, in, sizeof(sin6));
	if (sin6.sin6_family != AF_INET6)
		return -FI_EINVAL;
	memcpy(out->ip, &sin6.sin6_addr, 16);
	out->port = ntohs(sin6.sin6_port);
	/* A mapped address would be IPv4 to everybody else. */
	return pmf_addr_is_v4(out) ? -FI_EINVAL : 0;
}

static int port_from(const char *text, uint16_t *port)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || v > 65535 || (*end && *end != '/' && *end != '?'))
		return -FI_EINVAL;
	*port = (uint16_t)v;
	return 0;
}

/* "HOST", "HOST:PORT", "[HOST]:PORT"; the host is numeric. */
static int from_text(const char *text, bool v6, struct pmf_addr *out)
{
	char host[INET6_ADDRSTRLEN];
	const char *end, *port = NULL;
	struct pmf_addr a = {0};
	uint8_t ip[16];

	if (*text == '[') {
		end = strchr(++text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return -FI_EINVAL;
		port = end[1] ? end + 2 : NULL;
	} else {
		end = v6 ? NULL : strchr(text, ':');
		port = end ? end + 1 : NULL;
		if (!end)
			end = text + strcspn(text, "/?");
	}
	if ((size_t)(end - text) >= sizeof(host))
		return -FI_EINVAL;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	if (inet_pton(v6 ? AF_INET6 : AF_INET, host, ip) != 1)
		return -FI_EINVAL;
	if (v6)
		memcpy(a.ip, ip, 16);
	else
		pmf_addr_set_v4(&a, ip, 0);
	if (port && port_from(port, &a.port))
		return -FI_EINVAL;
	*out = a;
	return 0;
}

static int from_str(const char *text, size_t len, struct pmf_addr *out)
{
	if (len && !memchr(text, '\0', len))
		return -FI_EINVAL;
	if (strncmp(text, STR_V4, strlen(STR_V4)) == 0)
		return from_text(text + strlen(STR_V4), false, out);
	if (strncmp(text, STR_V6, strlen(STR_V6)) == 0)
		return from_text(text + strlen(STR_V6), true, out);
	return -FI_EINVAL;
}

int pmf_addr_get(const void *in, size_t len, uint32_t format, struct pmf_addr *out)
{
	sa_family_t family;

	switch (format) {
	case FI_SOCKADDR_IN:
		return from_v4(in, len, out);
	case FI_SOCKADDR_IN6:
		return from_v6(in, len, out);
	case FI_ADDR_STR:
		return from_str(in, len, out);
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
		if (len && len < sizeof(family))
			return -FI_EINVAL;
		memcpy(&family, in, sizeof(family));
		return family == AF_INET6 ? from_v6(in, len, out) : from_v4(in, len, out);
	default:
		return -FI_EINVAL;
	}
}

/* @return the full length, or 0 when the format cannot hold the address */
static size_t encode(const struct pmf_addr *a, uint32_t format, uint8_t *out)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	char host[PMF_ADDR_TEXT - 24];

	switch (format) {
	case FI_SOCKADDR_IN:
		if (!pmf_addr_is_v4(a))
			return 0;
		memcpy(&sin.sin_addr, a->ip + 12, 4);
		memcpy(out, &sin, sizeof(sin));
		return sizeof(sin);
	case FI_SOCKADDR_IN6:
		if (pmf_addr_is_v4(a))
			return 0;
		memcpy(&sin6.sin6_addr, a->ip, 16);
		memcpy(out, &sin6, sizeof(sin6));
		return sizeof(sin6);
	case FI_ADDR_STR:
		return 1 + (size_t)snprintf((char *)out, PMF_ADDR_TEXT, "%s%s",
					    pmf_addr_is_v4(a) ? STR_V4 : STR_V6,
					    pmf_addr_text(a, host, sizeof(host)));
	default:
		return 0;
	}
}

int pmf_addr_put(const struct pmf_addr *a, uint32_t format, void *out, size_t *len)
{
	uint8_t full[PMF_ADDR_TEXT];
	size_t n = encode(a, format, full), room = *len;

	if (!n)
		return -FI_EINVAL;
	if (PMF_MIN(n, room))
		memcpy(out, full, PMF_MIN(n, room));
	*len = n;
	return n > room ? -FI_ETOOSMALL : 0;
}

void *pmf_addr_dup(const struct pmf_addr *a, uint32_t format, size_t *len)
{
	uint8_t full[PMF_ADDR_TEXT];
	size_t n = encode(a, format, full);
	void *out = n ? malloc(n) : NULL;

	if (!out)
		return NULL;
	memcpy(out, full, n);
	*len = n;
	return out;
}

char *pmf_addr_text(const struct pmf_addr *a, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (pmf_addr_is_v4(a)) {
		inet_ntop(AF_INET, a->ip + 12, host, sizeof(host));
		snprintf(buf, len, "%s:%u", host, a->port);
	} else {
		inet_ntop(AF_INET6, a->ip, host, sizeof(host));
		snprintf(buf, len, "[%s]:%u", host, a->port);
	}
	return buf;
}

static bool family_ok(const struct pmf_addr *a, int family)
{
	return family == AF_UNSPEC || (family == AF_INET) == pmf_addr_is_v4(a);
}

int pmf_addr_resolve(const char *node, const char *service, int family, uint64_t flags,
		     struct pmf_addr *out, unsigned int max)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM}, *list, *ai;
	int n = 0;

	if (strstr(node, "://")) {
		if (service || pmf_addr_get(node, 0, FI_ADDR_STR, &out[0]) ||
		    !family_ok(&out[0], family))
			return -FI_ENODATA;
		return 1;
	}
	if (flags & FI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	if (getaddrinfo(node, service, &hints, &list))
		return -FI_ENODATA;
	for (ai = list; ai && n < (int)max; ai = ai->ai_next)
		if (pmf_addr_get(ai->ai_addr, ai->ai_addrlen, FI_FORMAT_UNSPEC, &out[n]) == 0)
			n++;
	freeaddrinfo(list);
	return n ? n : -FI_ENODATA;
}
