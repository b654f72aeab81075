/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/param.h"

#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/log.h"
#include "msg/transfer.h"

enum param_kind { PARAM_TEXT, PARAM_U32, PARAM_U64 };

/* Numbers are given in units of `scale` of the field and are checked against min and max before
 * that. */
struct param {
	const char *name;
	enum param_kind kind;
	size_t offset;
	uint64_t min, max, fallback, scale;
	const char *help;
};

#define TEXT(name, field, help)                                                      \
	{                                                                            \
		name, PARAM_TEXT, offsetof(struct pmf_conf, field), 0, 0, 0, 1, help \
	}
#define U32(name, field, min, max, fallback, help)                                             \
	{                                                                                      \
		name, PARAM_U32, offsetof(struct pmf_conf, field), min, max, fallback, 1, help \
	}
#define U64(name, field, min, max, fallback, scale, help)                                          \
	{                                                                                          \
		name, PARAM_U64, offsetof(struct pmf_conf, field), min, max, fallback, scale, help \
	}

static const struct param params[] = {
	TEXT("EAL", eal_extra, "Further EAL arguments, separated by blanks (default: none)"),
	TEXT("LCORES", lcores,
	     "Processors on which engines poll under FI_PROGRESS_AUTO, as in 2,4-5 (default: none; "
	     "a "
	     "thread polls, yields, and sleeps when idle)"),
	TEXT("FAULT", fault,
	     "Faults made on purpose, for tests: loss=1%,dup=1%,reorder=5%:20,seed=7 and more, "
	     "see fi_pmf(7) (default: off)"),
	TEXT("CAPTURE", capture, "Write all frames to this pcapng file (default: off)"),
	TEXT("AUTH_KEY_FILE", auth_key_file,
	     "File of authorization keys, one a line in hexadecimal: the first seals what is sent, "
	     "all are accepted; read again when it changes (default: none, packets are not "
	     "authenticated)"),
	U32("ENCRYPT", encrypt, 0, 1, 0,
	    "1: packets that have an authorization key are encrypted, too; alike on all sides "
	    "(default: 0)"),
	U32("COALESCE", coalesce, 0, 1, 1,
	    "0: each message travels in packets of its own "
	    "(default: 1)"),
	U32("MEMORY_MB", memory_mb, 0, 1 << 20, 0,
	    "Memory for packets in megabytes (default: 0, as the ports need)"),
	U32("DSCP", dscp, 0, 63, 0,
	    "Differentiated services code point of sent frames (default: 0)"),
	U64("RESCUE_US", rescue, 10, 10000000, 1000, PMF_NS_PER_US,
	    "Microseconds without progress after which the helper thread makes some (default: "
	    "1000)"),
	U64("LINGER_MS", linger, 0, 600000, 2000, PMF_NS_PER_MS,
	    "Milliseconds that closing waits at most for what was sent (default: 2000)"),
	U64("PEER_TIMEOUT_MS", dead_after, 10, 3600000, 10000, PMF_NS_PER_MS,
	    "Milliseconds without an answer after which a peer counts as dead (default: 10000)"),
	U64("ACK_DELAY_US", ack_delay, 0, 100000, 50, PMF_NS_PER_US,
	    "Microseconds that an acknowledgement waits for something to ride on (default: 50)"),
	U32("EAGER_LIMIT", eager_limit, 0, 1 << 20, 16384,
	    "Bytes up to which a message is sent before its buffer is posted (default: 16384)"),
	U64("UNEXPECTED_MB", unexpected_bytes, 1, 65536, 64, 1 << 20,
	    "Megabytes for messages that come before their buffer is posted (default: 64)"),
	U32("TX_SIZE", tx_size, 1, PMF_TX_SIZE_MAX, 1024,
	    "Sends that an endpoint can have under way, unless hints say (default: 1024)"),
	U32("RX_SIZE", rx_size, 1, PMF_RX_SIZE_MAX, 1024,
	    "Receives that an endpoint can have posted, unless hints say (default: 1024)"),
	U32("INJECT_SIZE", inject_size, 0, PMF_INJECT_SIZE_MAX, 256,
	    "Bytes that can be injected, unless hints say (default: 256)"),
};

/* These need more than a bound. */
static const struct {
	const char *name, *help;
} special[] = {
	{"PORT", "Ports, separated by ';'. Each is words: the DPDK device (a PCI address, or a "
		 "virtual device "
		 "with its arguments), an IPv4 and/or an IPv6 address with prefix length, and "
		 "gw=ADDR, mtu=N, "
		 "vlan=N, neigh=ADDR=MAC, mcast_ttl=N, queues=N. Example: 0000:03:00.0 "
		 "10.99.0.1/24 (default: "
		 "none, and then "
		 "nothing is offered)"},
	{"HUGEPAGES", "auto, on (fail without) or off (default: auto)"},
	{"MTU",
	 "IP MTU of ports that do not say mtu=N (default: what the device bears, at most 9000)"},
};

void pmf_param_define(void)
{
	for (size_t i = 0; i < PMF_ARRAY_SIZE(special); i++)
		fi_param_define(&pmf_prov, special[i].name, FI_PARAM_STRING, "%s", special[i].help);
	for (size_t i = 0; i < PMF_ARRAY_SIZE(params); i++)
		fi_param_define(&pmf_prov, params[i].name, FI_PARAM_STRING, "%s", params[i].help);
}

static const char *get_param(const char *name)
{
	char *value = NULL;

	return fi_param_get_str(&pmf_prov, name, &value) ? NULL : value;
}

const char *pmf_param_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK",
					    "SLURM_LOCALID"};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(names); i++) {
		const char *v = getenv(names[i]);

		if (v && *v && v[strspn(v, "0123456789")] == '\0')
			return v;
	}
	return "0";
}

/* A copy of @p text with every %r replaced; other percent signs stay. */
static char *expand(const char *text, const char *rank)
{
	size_t len = strlen(text), rlen = strlen(rank), n = 0;
	char *out = malloc(len / 2 * rlen + len + 1);

	if (!out)
		return NULL;
	for (; *text; text++) {
		if (text[0] == '%' && text[1] == 'r') {
			memcpy(out + n, rank, rlen);
			n += rlen;
			text++;
		} else {
			out[n++] = *text;
		}
	}
	out[n] = '\0';
	return out;
}

static int parse_number(const char *text, const char *name, uint64_t min, uint64_t max,
			uint64_t *value, char *err, size_t errlen)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || errno || end[strspn(end, " \t")] || v < min ||
	    v > max) {
		snprintf(err, errlen, "FI_PMF_%s: \"%s\" is not a number from %llu to %llu", name,
			 text, (unsigned long long)min, (unsigned long long)max);
		return -EINVAL;
	}
	*value = v;
	return 0;
}

static int parse_param(const struct param *p, char *text, struct pmf_conf *conf, char *err,
		       size_t errlen)
{
	void *field = (char *)conf + p->offset;
	uint64_t v = p->fallback;
	int rc = 0;

	if (p->kind == PARAM_TEXT) {
		if (text && *text)
			*(const char **)field = text;
		else
			free(text);
		return 0;
	}
	if (text)
		rc = parse_number(text, p->name, p->min, p->max, &v, err, errlen);
	free(text);
	if (rc)
		return rc;
	if (p->kind == PARAM_U32)
		*(uint32_t *)field = (uint32_t)v;
	else
		*(uint64_t *)field = v * p->scale;
	return 0;
}

static int parse_huge(const char *text, struct pmf_conf *conf, char *err, size_t errlen)
{
	static const char *const word[] = {
		[PMF_HUGE_AUTO] = "auto", [PMF_HUGE_ON] = "on", [PMF_HUGE_OFF] = "off"};

	conf->huge = PMF_HUGE_AUTO;
	if (!text)
		return 0;
	for (size_t i = 0; i < PMF_ARRAY_SIZE(word); i++)
		if (strcmp(text, word[i]) == 0) {
			conf->huge = (enum pmf_huge)i;
			return 0;
		}
	snprintf(err, errlen, "FI_PMF_HUGEPAGES: \"%s\" is not auto, on or off", text);
	return -EINVAL;
}

/* "2,4-5": the first is the first engine's, and so on. */
static int parse_lcores(const char *text, struct pmf_conf *conf, char *err, size_t errlen)
{
	const char *p = text;
	char *end;

	while (p) {
		unsigned long first, last;

		first = last = strtoul(p, &end, 10);
		if (isdigit((unsigned char)p[0]) && end[0] == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (!isdigit((unsigned char)p[0]) || (*end && *end != ',') || last < first ||
		    last >= CPU_SETSIZE) {
			snprintf(err, errlen,
				 "FI_PMF_LCORES: \"%s\" is no list of processors, as in 2,4-5",
				 text);
			return -EINVAL;
		}
		for (; first <= last && conf->nlcores < PMF_MAX_QUEUES; first++)
			conf->lcore[conf->nlcores++] = (uint16_t)first;
		p = *end ? end + 1 : NULL;
	}
	return 0;
}

static int parse_port(const char *text, uint16_t mtu, struct pmf_conf *conf, char *err,
		      size_t errlen)
{
	struct pmf_port_conf *port = &conf->port[conf->nports];
	int rc;

	if (text[strspn(text, " \t\r\n")] == '\0')
		return 0;
	if (conf->nports == PMF_MAX_PORTS) {
		snprintf(err, errlen, "FI_PMF_PORT: more than %d ports", PMF_MAX_PORTS);
		return -EINVAL;
	}
	rc = pmf_port_conf_parse(text, port, err, errlen);
	if (rc)
		return rc;
	for (unsigned int i = 0; i < conf->nports; i++)
		if (strcmp(conf->port[i].name, port->name) == 0) {
			snprintf(err, errlen, "FI_PMF_PORT: the device \"%s\" is there twice",
				 port->name);
			return -EINVAL;
		}
	if (!port->mtu)
		port->mtu = mtu;
	port->dscp = (uint8_t)conf->dscp;
	port->fault = conf->fault;
	port->capture = conf->capture;
	conf->nports++;
	return 0;
}

/* @p list is taken apart. */
static int parse_ports(char *list, uint16_t mtu, struct pmf_conf *conf, char *err, size_t errlen)
{
	char *save = NULL;
	int rc = 0;

	for (char *one = strtok_r(list, ";", &save); one && !rc; one = strtok_r(NULL, ";", &save))
		rc = parse_port(one, mtu, conf, err, errlen);
	return rc;
}

static void conf_free_texts(struct pmf_conf *conf)
{
	for (size_t i = 0; i < PMF_ARRAY_SIZE(params); i++)
		if (params[i].kind == PARAM_TEXT)
			free(*(void **)((char *)conf + params[i].offset));
}

static int parse_all(const char *(*get)(const char *name), const char *rank, struct pmf_conf *conf,
		     char *err, size_t errlen)
{
	char *ports = NULL;
	const char *text;
	uint64_t mtu = 0;
	int rc;

	for (size_t i = 0; i < PMF_ARRAY_SIZE(params); i++) {
		char *copy = NULL;

		text = get(params[i].name);
		if (text && !(copy = expand(text, rank)))
			return -ENOMEM;
		rc = parse_param(&params[i], copy, conf, err, errlen);
		if (rc)
			return rc;
	}
	rc = parse_lcores(conf->lcores, conf, err, errlen);
	if (!rc)
		rc = parse_huge(get("HUGEPAGES"), conf, err, errlen);
	if (rc)
		return rc;
	text = get("MTU");
	rc = text ? parse_number(text, "MTU", 576, 9710, &mtu, err, errlen) : 0;
	if (rc)
		return rc;
	text = get("PORT");
	if (text && !(ports = expand(text, rank)))
		return -ENOMEM;
	rc = ports ? parse_ports(ports, (uint16_t)mtu, conf, err, errlen) : 0;
	free(ports);
	return rc;
}

int pmf_conf_parse(const char *(*get)(const char *name), const char *rank, struct pmf_conf *conf,
		   char *err, size_t errlen)
{
	int rc;

	memset(conf, 0, sizeof(*conf));
	snprintf(err, errlen, "out of memory");
	conf->iov_limit = PMF_IOV_LIMIT;
	conf->log = pmf_log_line;
	rc = parse_all(get, rank, conf, err, errlen);
	if (rc)
		conf_free_texts(conf);
	return rc;
}

/*
 * The last configuration, and the variables' text that it came from: parsed again only when they
 * have changed, so that a thousand fi_getinfo cost no memory.
 */
static struct {
	pthread_mutex_t lock;
	struct pmf_conf *conf;
	char *text;
	bool kept;
} current = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool append(char **out, size_t *len, const char *name, const char *value)
{
	size_t more = strlen(name) + (value ? strlen(value) + 1 : 0) + 2;
	char *grown = realloc(*out, *len + more + 1);

	if (!grown)
		return false;
	*out = grown;
	*len += (size_t)snprintf(grown + *len, more + 1, "%s%s%s\n", name, value ? "=" : "",
				 value ? value : "");
	return true;
}

static char *all_text(void)
{
	bool ok = true;
	char *out = NULL;
	size_t len = 0;

	ok = append(&out, &len, "rank", pmf_param_rank());
	for (size_t i = 0; ok && i < PMF_ARRAY_SIZE(special); i++)
		ok = append(&out, &len, special[i].name, get_param(special[i].name));
	for (size_t i = 0; ok && i < PMF_ARRAY_SIZE(params); i++)
		ok = append(&out, &len, params[i].name, get_param(params[i].name));
	if (!ok) {
		free(out);
		return NULL;
	}
	return out;
}

/* Configurations handed out before stay as they are: somebody may hold them. */
static const struct pmf_conf *conf_renew(char *text)
{
	struct pmf_conf *conf = malloc(sizeof(*conf));
	char err[512];

	if (!conf) {
		free(text);
		return NULL;
	}
	if (pmf_conf_parse(get_param, pmf_param_rank(), conf, err, sizeof(err))) {
		pmf_warn(CORE, "%s\n", err);
		free(conf);
		free(text);
		return NULL;
	}
	free(current.text);
	current.text = text;
	current.conf = conf;
	return conf;
}

const struct pmf_conf *pmf_conf_load(void)
{
	const struct pmf_conf *conf;
	char *text;

	pthread_mutex_lock(&current.lock);
	conf = current.conf;
	if (!current.kept) {
		text = all_text();
		if (text && conf && strcmp(text, current.text) == 0)
			free(text);
		else
			conf = text ? conf_renew(text) : NULL;
	}
	pthread_mutex_unlock(&current.lock);
	return conf;
}

void pmf_conf_keep(const struct pmf_conf *conf)
{
	pthread_mutex_lock(&current.lock);
	if (conf == current.conf)
		current.kept = true;
	pthread_mutex_unlock(&current.lock);
}
