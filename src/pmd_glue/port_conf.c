/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The text of FI_PMF_PORT. Pure parsing: no EAL, nothing is looked up.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmd_glue/port.h"

enum { MIN_MTU = 576, MAX_MTU = 9710, MIN_MTU_V6 = 1280 };

static int fail(char *err, size_t errlen, const char *word, const char *why)
{
	snprintf(err, errlen, "FI_PMF_PORT: \"%s\" %s", word, why);
	return -EINVAL;
}

static bool parse_uint(const char *s, unsigned long min, unsigned long max, unsigned long *out)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*out = strtoul(s, &end, 10);
	return errno == 0 && *end == '\0' && *out >= min && *out <= max;
}

static bool parse_ip(const char *s, struct pmf_addr *out)
{
	uint8_t ip[16];

	if (inet_pton(AF_INET, s, ip) == 1) {
		pmf_addr_set_v4(out, ip, 0);
		return true;
	}
	if (inet_pton(AF_INET6, s, ip) != 1)
		return false;
	memcpy(out->ip, ip, 16);
	out->port = 0;
	return !pmf_addr_is_v4(out);
}

static bool is_unicast(const struct pmf_addr *a)
{
	static const uint8_t zero[16];

	if (pmf_addr_is_v4(a))
		return a->ip[12] != 0 && a->ip[12] < 224 && a->ip[12] != 127;
	return a->ip[0] != 0xff && memcmp(a->ip, zero, 15) != 0;
}

static int word_addr(const char *w, struct pmf_port_conf *conf, char *err, size_t errlen)
{
	struct pmf_ifaddr *ifa;
	struct pmf_addr addr;
	unsigned long bits;
	char ip[64];
	const char *slash = strchr(w, '/');
	const size_t len = slash ? (size_t)(slash - w) : strlen(w);

	if (len >= sizeof(ip))
		return fail(err, errlen, w, "is not an address");
	memcpy(ip, w, len);
	ip[len] = '\0';
	if (!parse_ip(ip, &addr))
		return fail(err, errlen, w, "is neither an address nor a setting (key=value)");
	if (!slash || !parse_uint(slash + 1, 1, pmf_addr_is_v4(&addr) ? 32 : 128, &bits))
		return fail(err, errlen, w, "lacks its prefix length, as in 10.99.0.1/24");
	if (!is_unicast(&addr))
		return fail(err, errlen, w, "is not an address that a port can have");
	ifa = pmf_addr_is_v4(&addr) ? &conf->v4 : &conf->v6;
	if (ifa->set)
		return fail(err, errlen, w, "is a second address of its family");
	ifa->set = true;
	ifa->addr = addr;
	ifa->prefix = (uint8_t)bits;
	return 0;
}

static int word_gw(const char *w, const char *val, struct pmf_port_conf *conf, char *err,
		   size_t errlen)
{
	struct pmf_ifaddr *ifa;
	struct pmf_addr addr;

	if (!parse_ip(val, &addr) || !is_unicast(&addr))
		return fail(err, errlen, w, "does not name a gateway's address");
	ifa = pmf_addr_is_v4(&addr) ? &conf->v4 : &conf->v6;
	if (ifa->has_gw)
		return fail(err, errlen, w, "is a second gateway of its family");
	ifa->has_gw = true;
	ifa->gw = addr;
	return 0;
}

static bool parse_mac(const char *s, uint8_t mac[6])
{
	unsigned int v[6], i;
	int used = 0;

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%n", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		   &used) != 6 ||
	    s[used] != '\0')
		return false;
	for (i = 0; i < 6; i++)
		mac[i] = (uint8_t)v[i];
	return !(mac[0] & 1);
}

static int word_neigh(const char *w, const char *val, struct pmf_port_conf *conf, char *err,
		      size_t errlen)
{
	const char *eq = strchr(val, '=');
	const size_t len = eq ? (size_t)(eq - val) : 0;
	struct pmf_addr addr;
	uint8_t mac[6];
	char ip[64];

	if (!eq || len >= sizeof(ip))
		return fail(err, errlen, w, "is not of the form neigh=ADDRESS=MAC");
	memcpy(ip, val, len);
	ip[len] = '\0';
	if (!parse_ip(ip, &addr) || !is_unicast(&addr) || !parse_mac(eq + 1, mac))
		return fail(err, errlen, w, "is not of the form neigh=ADDRESS=MAC");
	if (conf->nneigh == PMF_MAX_STATIC_NEIGH)
		return fail(err, errlen, w, "is one static neighbour too many");
	conf->neigh[conf->nneigh].ip = addr;
	memcpy(conf->neigh[conf->nneigh].mac, mac, 6);
	conf->nneigh++;
	return 0;
}

/* Settings that are one number. */
static const struct {
	const char *key;
	size_t offset;
	unsigned long min, max;
	const char *why;
} numbers[] = {
	{"mtu", offsetof(struct pmf_port_conf, mtu), MIN_MTU, MAX_MTU,
	 "is not an MTU from 576 to 9710"},
	{"vlan", offsetof(struct pmf_port_conf, vlan), 1, 4094, "is not a VLAN from 1 to 4094"},
	{"mcast_ttl", offsetof(struct pmf_port_conf, mcast_ttl), 0, 255,
	 "is not a TTL for multicast from 0 (no multicast) to 255"},
	{"queues", offsetof(struct pmf_port_conf, nqueues), 1, PMF_MAX_QUEUES,
	 "is not a number of queues from 1 to 16"},
};

static int word_setting(const char *w, const char *eq, struct pmf_port_conf *conf, char *err,
			size_t errlen)
{
	const size_t len = (size_t)(eq - w);
	unsigned long v;
	unsigned int i;

	for (i = 0; i < PMF_ARRAY_SIZE(numbers); i++) {
		uint16_t out;

		if (strlen(numbers[i].key) != len || strncmp(w, numbers[i].key, len) != 0)
			continue;
		if (!parse_uint(eq + 1, numbers[i].min, numbers[i].max, &v))
			return fail(err, errlen, w, numbers[i].why);
		out = (uint16_t)v;
		memcpy((char *)conf + numbers[i].offset, &out, sizeof(out));
		return 0;
	}
	if (len == 2 && strncmp(w, "gw", 2) == 0)
		return word_gw(w, eq + 1, conf, err, errlen);
	if (len == 5 && strncmp(w, "neigh", 5) == 0)
		return word_neigh(w, eq + 1, conf, err, errlen);
	return fail(err, errlen, w,
		    "is not a setting; known are gw, mtu, vlan, neigh, queues and mcast_ttl");
}

/* "0000:03:00.0" or "03:00.0", perhaps with devargs behind a comma. */
static bool is_pci_name(const char *s, char *full, size_t len)
{
	unsigned int dom = 0, bus, dev, fn;
	int used = 0;

	if (sscanf(s, "%4x:%2x:%2x.%1x%n", &dom, &bus, &dev, &fn, &used) != 4) {
		dom = 0;
		used = 0;
		if (sscanf(s, "%2x:%2x.%1x%n", &bus, &dev, &fn, &used) != 3)
			return false;
	}
	if (s[used] != '\0')
		return false;
	snprintf(full, len, "%04x:%02x:%02x.%x", dom, bus, dev, fn);
	return true;
}

static int word_dev(const char *w, struct pmf_port_conf *conf, char *err, size_t errlen)
{
	const size_t len = strcspn(w, ",");
	char name[sizeof(conf->name)];

	if (len == 0 || len >= sizeof(conf->name) || strlen(w) >= sizeof(conf->dev))
		return fail(err, errlen, w, "is not a device");
	memcpy(name, w, len);
	name[len] = '\0';
	/* "=" before the first comma, or a slash: a setting or an address stands in its place. */
	if (strpbrk(name, "=/"))
		return fail(err, errlen, w, "stands where the device's name should be");
	memcpy(conf->dev, w, strlen(w) + 1);
	conf->is_pci = is_pci_name(name, conf->name, sizeof(conf->name));
	if (!conf->is_pci)
		memcpy(conf->name, name, len + 1);
	return 0;
}

static int check_whole(const struct pmf_port_conf *conf, const char *text, char *err, size_t errlen)
{
	if (!conf->v4.set && !conf->v6.set)
		return fail(err, errlen, text, "gives the port no address");
	if (conf->v4.has_gw && !conf->v4.set)
		return fail(err, errlen, text, "has an IPv4 gateway but no IPv4 address");
	if (conf->v6.has_gw && !conf->v6.set)
		return fail(err, errlen, text, "has an IPv6 gateway but no IPv6 address");
	if (conf->v6.set && conf->mtu && conf->mtu < MIN_MTU_V6)
		return fail(err, errlen, text, "has an IPv6 address, which needs mtu=1280 or more");
	return 0;
}

int pmf_port_conf_parse(const char *text, struct pmf_port_conf *conf, char *err, size_t errlen)
{
	struct pmf_port_conf c = {.nqueues = 1, .mcast_ttl = 1};
	char *copy = strdup(text), *save = NULL, *w;
	int ret = 0;

	if (!copy) {
		snprintf(err, errlen, "no memory");
		return -ENOMEM;
	}
	w = strtok_r(copy, " \t\n", &save);
	ret = w ? word_dev(w, &c, err, errlen) : fail(err, errlen, text, "names no device");
	while (ret == 0 && (w = strtok_r(NULL, " \t\n", &save))) {
		const char *eq = strchr(w, '=');

		ret = eq ? word_setting(w, eq, &c, err, errlen) : word_addr(w, &c, err, errlen);
	}
	if (ret == 0)
		ret = check_whole(&c, text, err, errlen);
	free(copy);
	if (ret == 0)
		*conf = c;
	return ret;
}
