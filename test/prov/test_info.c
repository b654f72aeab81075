/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * fi_getinfo: rows E7, F6, F8; and event queues as RDM programs use them (E11). The variables are
 * this program's own: it changes them, and only the last tests open a domain.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP "239.1.2.3"

static const char two_ports[] = "net_ring0 10.99.0.1/24 fd00:99::1/64; net_ring1 10.98.0.1/16 "
				"gw=10.98.0.254";

static int info_of(const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(FX_API, node, service, flags, hints, info);
}

static unsigned int count(const struct fi_info *info)
{
	unsigned int n = 0;

	for (; info; info = info->next)
		n++;
	return n;
}

static struct fi_info *usual_hints(uint32_t format)
{
	struct fx_opt opt = {.addr_format = format};

	return fx_hints(&opt);
}

static unsigned int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void test_E7_nothing_without_a_port(void)
{
	struct fi_info *hints = usual_hints(0), *info;

	unsetenv("FI_PMF_PORT");
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	setenv("FI_PMF_PORT", "", 1);
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	setenv("FI_PMF_PORT", "net_ring0 nonsense", 1);
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* Every field that a caller may look at, for a caller that asks for nothing. */
static void test_E7_getinfo_starts_and_prints_nothing(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int out = dup(1), pipe_fd[2];
	char byte;

	setenv("FI_PMF_PORT", two_ports, 1);
	CU_ASSERT_EQUAL_FATAL(pipe2(pipe_fd, O_NONBLOCK), 0);
	fflush(stdout);
	dup2(pipe_fd[1], 1);
	hints->fabric_attr->prov_name = strdup("pmf");
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), 0);
	dup2(out, 1);
	CU_ASSERT_EQUAL(read(pipe_fd[0], &byte, 1), -1);
	CU_ASSERT_EQUAL(threads(), 1);
	/* each port, each of its address families, each type of endpoint */
	CU_ASSERT_EQUAL(count(info), 6);
	for (struct fi_info *i = info; i; i = i->next) {
		CU_ASSERT_STRING_EQUAL(i->fabric_attr->prov_name, "pmf");
		CU_ASSERT(i->ep_attr->type == FI_EP_RDM || i->ep_attr->type == FI_EP_MSG);
		CU_ASSERT(i->caps & FI_MSG);
		CU_ASSERT_EQUAL(i->mode, 0);
		CU_ASSERT_PTR_NOT_NULL(i->src_addr);
		CU_ASSERT(i->src_addrlen < 56);
		CU_ASSERT_EQUAL(i->domain_attr->max_ep_tx_ctx, 1);
	}
	fi_freeinfo(info);
	fi_freeinfo(hints);
	close(out);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

/* This program again, which asks once and says nothing: what comes on stderr is the provider's. */
static void ask(void)
{
	struct fi_info *hints = usual_hints(0), *info;
	int rc = info_of(NULL, NULL, 0, hints, &info);

	_exit(rc == -FI_ENODATA ? 1 : rc ? 2 : 0);
}

/* @return its exit code; @p err what it said, as far as there is room */
static int asked(const char *port, const char *level, char *err, size_t len)
{
	char path[512], command[1024];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	FILE *out;
	size_t got;
	int status;

	CU_ASSERT_FATAL(n > 0);
	path[n] = '\0';
	snprintf(command, sizeof(command),
		 "FX_ASK=1 FI_PMF_HUGEPAGES=off FI_PMF_PORT='%s' %s '%s' what_is_missing 2>&1 "
		 ">/dev/null",
		 port, level, path);
	out = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	got = fread(err, 1, len - 1, out);
	err[got] = '\0';
	status = pclose(out);
	CU_ASSERT(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_E7_what_is_missing_is_said_in_the_log_alone(void)
{
	static const char pci[] = "0000:03:00.0 10.99.0.1/24", ring[] = "net_ring0 10.99.0.1/24";
	static const char warn[] = "FI_LOG_LEVEL=warn FI_LOG_PROV=pmf";
	char err[4096];

	if (getenv("FX_ASK"))
		ask();
	CU_ASSERT_EQUAL(asked("", "", err, sizeof(err)), 1);
	CU_ASSERT_STRING_EQUAL(err, "");
	CU_ASSERT_EQUAL(asked("", warn, err, sizeof(err)), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "FI_PMF_PORT"));
	/* without hugepages only what cannot do without */
	CU_ASSERT_EQUAL(asked(pci, warn, err, sizeof(err)), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "hugepages"));
	CU_ASSERT_EQUAL(asked(ring, warn, err, sizeof(err)), 0);
	CU_ASSERT_PTR_NULL(strstr(err, ":pmf:")); /* the library has its say */
}

/* F3: each of the two as it is asked for. */
static void test_F3_progress_models_are_told(void)
{
	static const enum fi_progress models[] = {FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO};
	struct fi_info *hints = usual_hints(0), *info;

	for (int i = 0; i < 4; i++) {
		hints->domain_attr->control_progress = models[i & 1];
		hints->domain_attr->data_progress = models[i / 2];
		CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
		CU_ASSERT_EQUAL(info->domain_attr->control_progress, models[i & 1]);
		CU_ASSERT_EQUAL(info->domain_attr->data_progress, models[i / 2]);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void test_F6_names(void)
{
	struct fi_info *hints = usual_hints(0), *info;

	hints->domain_attr->name = strdup("net_ring1");
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(count(info), 1);
	CU_ASSERT_STRING_EQUAL(info->fabric_attr->name, "10.98.0.0/16");
	fi_freeinfo(info);
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup("eth0");
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	free(hints->domain_attr->name);
	hints->domain_attr->name = NULL;
	hints->fabric_attr->name = strdup("10.98.0.0/16");
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(count(info), 1);
	CU_ASSERT_STRING_EQUAL(info->domain_attr->name, "net_ring1");
	fi_freeinfo(info);
	strcpy(hints->fabric_attr->name, "10.97.0.0/16");
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void expect_addrs(const char *node, const char *service, uint64_t flags, const char *src,
			 const char *dest)
{
	struct fi_info *hints = usual_hints(FI_ADDR_STR), *info;

	CU_ASSERT_EQUAL_FATAL(info_of(node, service, flags, hints, &info), 0);
	CU_ASSERT_STRING_EQUAL(info->src_addr, src);
	CU_ASSERT_EQUAL(info->src_addrlen, strlen(src) + 1);
	CU_ASSERT_EQUAL(info->dest_addr != NULL, dest != NULL);
	if (dest)
		CU_ASSERT_STRING_EQUAL(info->dest_addr, dest);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_F6_node_and_service(void)
{
	expect_addrs(NULL, NULL, 0, "fi_sockaddr_in://10.99.0.1:0", NULL);
	expect_addrs("10.99.0.5", "4000", 0, "fi_sockaddr_in://10.99.0.1:0",
		     "fi_sockaddr_in://10.99.0.5:4000");
	expect_addrs("fi_sockaddr_in://10.99.0.5:4000", NULL, 0, "fi_sockaddr_in://10.99.0.1:0",
		     "fi_sockaddr_in://10.99.0.5:4000");
	expect_addrs("10.99.0.1", "4000", FI_SOURCE, "fi_sockaddr_in://10.99.0.1:4000", NULL);
	expect_addrs(NULL, "4000", FI_SOURCE, "fi_sockaddr_in://10.99.0.1:4000", NULL);
	expect_addrs("fd00:99::7", "1", 0, "fi_sockaddr_in6://[fd00:99::1]:0",
		     "fi_sockaddr_in6://[fd00:99::7]:1");
	/* the port whose network it is; and the one with a gateway for the rest of the world */
	expect_addrs("10.98.3.4", "1", 0, "fi_sockaddr_in://10.98.0.1:0",
		     "fi_sockaddr_in://10.98.3.4:1");
	expect_addrs("192.0.2.1", "1", 0, "fi_sockaddr_in://10.98.0.1:0",
		     "fi_sockaddr_in://192.0.2.1:1");
}

static void test_F6_nodes_that_are_not_there(void)
{
	struct fi_info *hints = usual_hints(0), *info;

	CU_ASSERT_EQUAL(info_of("10.99.0.5", "1", FI_SOURCE, hints, &info), -FI_ENODATA);
	CU_ASSERT_EQUAL(info_of("no-such-node", "1", FI_NUMERICHOST, hints, &info), -FI_ENODATA);
	CU_ASSERT_EQUAL(info_of("2001:db8::1", "1", 0, hints, &info), -FI_ENODATA);
	CU_ASSERT_EQUAL(info_of("10.99.0.5", "no such service", 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void test_F6_addresses_in_the_hints(void)
{
	struct fi_info *hints = usual_hints(FI_ADDR_STR), *info;

	hints->src_addr = strdup("fi_sockaddr_in://10.99.0.1:777");
	hints->src_addrlen = strlen(hints->src_addr) + 1;
	hints->dest_addr = strdup("fi_sockaddr_in://10.99.0.9:778");
	hints->dest_addrlen = strlen(hints->dest_addr) + 1;
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_STRING_EQUAL(info->src_addr, "fi_sockaddr_in://10.99.0.1:777");
	CU_ASSERT_STRING_EQUAL(info->dest_addr, "fi_sockaddr_in://10.99.0.9:778");
	fi_freeinfo(info);
	strcpy(hints->src_addr, "fi_sockaddr_in://10.99.0.2:777");
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void test_F6_each_version(void)
{
	for (uint32_t minor = 5; minor <= FI_MINOR(fi_version()) || minor == 5; minor++) {
		struct fi_info *hints = usual_hints(0), *info;

		CU_ASSERT_EQUAL_FATAL(fi_getinfo(FI_VERSION(1, minor), NULL, NULL, 0, hints, &info),
				      0);
		CU_ASSERT_EQUAL(info->fabric_attr->api_version, FI_VERSION(1, minor));
		fi_freeinfo(info);
		fi_freeinfo(hints);
		if (FI_MAJOR(fi_version()) > 1 && minor == 22)
			break;
	}
}

/* By number what some headers lack or call otherwise. */
static void test_F8_not_offered(void)
{
	static const uint64_t caps[] = {
		FI_TAGGED,	 FI_RMA,       FI_ATOMIC,      FI_COLLECTIVE,
		FI_READ,	 FI_WRITE,     FI_REMOTE_READ, FI_REMOTE_WRITE,
		FI_NAMED_RX_CTX, FI_SHARED_AV, FI_TRIGGER,     FI_HMEM,
		FI_RMA_EVENT,	 FI_RMA_PMEM,  1ull << 41, /* FI_AV_USER_ID */
		1ull << 43,				   /* FI_PEER */
		1ull << 44,				   /* FI_XPU */
		1ull << 48, /* FI_VARIABLE_MSG, FI_EXACT_DIRECTED_RECV */
	};
	static const size_t too_many[] = {2, FI_SHARED_CONTEXT};
	struct fi_info *hints = usual_hints(0), *info;

	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(info);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		hints->caps = FI_MSG | caps[i];
		CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	}
	hints->caps = FI_MSG;
	for (size_t i = 0; i < sizeof(too_many) / sizeof(too_many[0]); i++) {
		hints->ep_attr->tx_ctx_cnt = too_many[i];
		CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	}
	hints->ep_attr->tx_ctx_cnt = 0;
	hints->ep_attr->rx_ctx_cnt = 2;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->ep_attr->rx_ctx_cnt = 0;
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(2, 0))
	hints->domain_attr->max_group_id = 1;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->max_group_id = 0;
#endif
	hints->mode = 1ull << 51; /* FI_BUFFERED_RECV, a mode: what a program could bear */
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->mode, 0);
	fi_freeinfo(info);
	hints->ep_attr->type = FI_EP_DGRAM;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* What may be a default flag is one, and given back; nothing else is. */
static void test_B12_default_flags_in_the_hints(void)
{
	static const uint64_t tx_all = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
				       FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MULTICAST,
			      rx_all = FI_COMPLETION | FI_MULTI_RECV | FI_TRANSMIT_COMPLETE;
	struct fi_info *hints = usual_hints(0), *info;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_MULTICAST;
	for (int bit = 0; bit < 58; bit++) { /* those behind are libfabric's own */
		const uint64_t flag = 1ull << bit;

		hints->tx_attr->op_flags = flag;
		hints->rx_attr->op_flags = 0;
		CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info),
				flag & tx_all ? 0 : -FI_ENODATA);
		CU_ASSERT_FATAL(!(flag & tx_all) || info);
		if (info)
			CU_ASSERT_EQUAL(info->tx_attr->op_flags, flag);
		fi_freeinfo(info);
		hints->tx_attr->op_flags = 0;
		hints->rx_attr->op_flags = flag;
		CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info),
				flag & rx_all ? 0 : -FI_ENODATA);
		CU_ASSERT_FATAL(!(flag & rx_all) || info);
		if (info)
			CU_ASSERT_EQUAL(info->rx_attr->op_flags, flag);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

/* C2, C3, D4: for both types, asked for or not. */
static void test_C3_order_and_resources_are_told(void)
{
	static const enum fi_resource_mgmt rm[] = {FI_RM_UNSPEC, FI_RM_DISABLED, FI_RM_ENABLED};
	struct fi_info *hints = usual_hints(0), *info;

	for (int i = 0; i < 6; i++) {
		hints->ep_attr->type = i & 1 ? FI_EP_MSG : FI_EP_RDM;
		hints->tx_attr->msg_order = hints->rx_attr->msg_order = i < 2 ? FI_ORDER_SAS : 0;
		hints->domain_attr->resource_mgmt = rm[i / 2];
		CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
		CU_ASSERT_EQUAL(info->tx_attr->msg_order, FI_ORDER_SAS);
		CU_ASSERT_EQUAL(info->rx_attr->msg_order, FI_ORDER_SAS);
		CU_ASSERT_EQUAL(info->tx_attr->comp_order, 0);
		CU_ASSERT_EQUAL(info->rx_attr->comp_order, 0);
		CU_ASSERT_EQUAL(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void test_C6_who_may_ask_for_sources(void)
{
	static const uint64_t not_connected[] = {FI_SOURCE, FI_SOURCE | FI_SOURCE_ERR,
						 FI_DIRECTED_RECV, FI_MULTICAST};
	struct fi_info *hints = usual_hints(0), *info;

	hints->caps = FI_MSG | FI_SOURCE_ERR;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	for (size_t i = 0; i < sizeof(not_connected) / sizeof(not_connected[0]); i++) {
		hints->caps = FI_MSG | not_connected[i];
		hints->ep_attr->type = FI_EP_RDM;
		CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
		CU_ASSERT_EQUAL(info->caps & not_connected[i], not_connected[i]);
		fi_freeinfo(info);
		hints->ep_attr->type = FI_EP_MSG;
		CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	}
	fi_freeinfo(hints);
}

/* As libfabric's own test of fi_getinfo divides them: multicast is among what is sent. */
static void test_F6_caps_of_each_direction(void)
{
	const uint64_t tx = FI_MSG | FI_MULTICAST | FI_SEND | FI_FENCE;
	const uint64_t rx = FI_MSG | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV;
	struct fi_info *hints = usual_hints(0), *info;

	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, NULL, &info), 0);
	for (struct fi_info *i = info; i; i = i->next) {
		const uint64_t less =
			i->ep_attr->type == FI_EP_MSG ? FI_MULTICAST | FI_DIRECTED_RECV : 0;

		CU_ASSERT_EQUAL(i->tx_attr->caps, tx & ~less);
		CU_ASSERT_EQUAL(i->rx_attr->caps & ~(FI_SOURCE | FI_SOURCE_ERR), rx & ~less);
	}
	fi_freeinfo(info);
	hints->caps = FI_MSG | FI_MULTICAST;
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->tx_attr->caps, tx);
	CU_ASSERT_EQUAL(info->rx_attr->caps, rx & ~FI_DIRECTED_RECV);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_B10_the_group_as_node(void)
{
	struct sockaddr_in want = {.sin_family = AF_INET, .sin_port = htons(4000)};
	struct fi_info *hints = usual_hints(0), *info;

	inet_pton(AF_INET, GROUP, &want.sin_addr);
	hints->caps = FI_MSG | FI_MULTICAST;
	CU_ASSERT_EQUAL_FATAL(info_of(GROUP, "4000", 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->dest_addrlen, sizeof(want));
	CU_ASSERT_EQUAL(memcmp(info->dest_addr, &want, sizeof(want)), 0);
	CU_ASSERT_NOT_EQUAL(info->caps & FI_MULTICAST, 0);
	CU_ASSERT_NOT_EQUAL(info->tx_attr->caps & FI_MULTICAST, 0);
	CU_ASSERT_EQUAL(info->rx_attr->caps & FI_MULTICAST, 0);
	fi_freeinfo(info);
	hints->addr_format = FI_SOCKADDR_IN6;
	CU_ASSERT_EQUAL_FATAL(info_of("ff05::1:3", "4000", 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->dest_addrlen, sizeof(struct sockaddr_in6));
	fi_freeinfo(info);
	/* who does not ask for the capability does not get there */
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_MSG;
	CU_ASSERT_EQUAL(info_of(GROUP, "4000", 0, hints, &info), -FI_ENODATA);
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->caps & FI_MULTICAST, 0);
	fi_freeinfo(info);
	hints->caps = FI_MULTICAST;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->caps = FI_MSG;
	hints->tx_attr->op_flags = FI_MULTICAST;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	/* who asks for nothing gets all */
	hints->caps = 0;
	CU_ASSERT_EQUAL_FATAL(info_of(GROUP, "4000", 0, hints, &info), 0);
	CU_ASSERT_NOT_EQUAL(info->caps & FI_MULTICAST, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* B10: a network that carries no multicast. */
static void test_B10_without_multicast(void)
{
	struct fi_info *hints = usual_hints(0), *info;

	setenv("FI_PMF_PORT", "net_ring0 10.99.0.1/24 mcast_ttl=0", 1);
	hints->caps = 0;
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL((info->caps | info->tx_attr->caps | info->rx_attr->caps) & FI_MULTICAST, 0);
	fi_freeinfo(info);
	hints->tx_attr->op_flags = FI_MULTICAST;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->tx_attr->op_flags = 0;
	CU_ASSERT_EQUAL(info_of(GROUP, "1", 0, hints, &info), -FI_ENODATA);
	hints->caps = FI_MSG | FI_MULTICAST;
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	setenv("FI_PMF_PORT", two_ports, 1);
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_F6_unknown_names_in_what_is_opened(void)
{
	struct fi_fabric_attr attr = {.name = (char *)(uintptr_t) "10.1.0.0/16",
				      .prov_name = (char *)(uintptr_t) "pmf",
				      .api_version = FX_API};
	struct fid_domain *domain;
	struct fid_fabric *fabric;
	struct fi_info *hints = usual_hints(0), *info;

	CU_ASSERT_EQUAL(fi_fabric(&attr, &fabric, NULL), -FI_ENODATA);
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	free(info->domain_attr->name);
	info->domain_attr->name = strdup("eth0");
	CU_ASSERT_EQUAL(fi_domain(fabric, info, &domain, NULL), -FI_ENODATA);
	CU_ASSERT_EQUAL(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* An info as reported goes straight to fi_fabric … fi_endpoint, whatever the hints asked for. */
static void test_F6_what_is_reported_opens(void)
{
	static const uint64_t caps[] = {0, FI_MSG, FI_MSG | FI_SEND, FI_MSG | FI_RECV};

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct fi_info *hints = fi_allocinfo(), *info;
		struct fid_domain *domain;
		struct fid_fabric *fabric;
		struct fid_ep *ep;

		hints->caps = caps[i];
		hints->fabric_attr->prov_name = strdup("pmf");
		CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
		for (struct fi_info *one = info; one; one = one->next) {
			CU_ASSERT_EQUAL_FATAL(fi_fabric(one->fabric_attr, &fabric, NULL), 0);
			CU_ASSERT_EQUAL_FATAL(fi_domain(fabric, one, &domain, NULL), 0);
			CU_ASSERT_EQUAL_FATAL(fi_endpoint(domain, one, &ep, NULL), 0);
			CU_ASSERT_EQUAL(fi_close(&ep->fid), 0);
			CU_ASSERT_EQUAL(fi_close(&domain->fid), 0);
			CU_ASSERT_EQUAL(fi_close(&fabric->fid), 0);
		}
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

/* What is open in the hints is what is meant. */
static void test_F6_objects_in_the_hints(void)
{
	struct fi_info *hints = usual_hints(0), *first, *info;
	struct fid_domain *domain;
	struct fid_fabric *fabric;

	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &first), 0);
	CU_ASSERT_FATAL(count(first) > 1);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(first->fabric_attr, &fabric, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_domain(fabric, first, &domain, NULL), 0);
	hints->fabric_attr->fabric = fabric;
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(count(info), 1);
	CU_ASSERT_STRING_EQUAL(info->fabric_attr->name, first->fabric_attr->name);
	fi_freeinfo(info);
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = domain;
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &info), 0);
	for (struct fi_info *i = info; i; i = i->next)
		CU_ASSERT_STRING_EQUAL(i->domain_attr->name, first->domain_attr->name);
	fi_freeinfo(info);
	hints->domain_attr->domain = NULL;
	hints->fabric_attr->prov_version = FI_VERSION(99, 0);
	CU_ASSERT_EQUAL(info_of(NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
	fi_freeinfo(first);
	CU_ASSERT_EQUAL(fi_close(&domain->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&fabric->fid), 0);
}

static void test_E11_an_event_queue_opens_for_rdm(void)
{
	struct fi_eq_attr attr = {.size = 32, .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE};
	struct fi_eq_entry e = {.data = 3};
	struct fid_eq *eq;
	uint32_t event;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f.fabric, &attr, &eq, NULL), 0);
	CU_ASSERT_EQUAL(fi_eq_sread(eq, &event, &e, sizeof(e), 10, 0), -FI_EAGAIN);
	for (int i = 0; i < 32; i++)
		CU_ASSERT_EQUAL(fi_eq_write(eq, FI_NOTIFY, &e, sizeof(e), 0), sizeof(e));
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), FI_PEEK), sizeof(e));
	for (int i = 0; i < 32; i++)
		CU_ASSERT_EQUAL(fi_eq_sread(eq, &event, &e, sizeof(e), 1000, 0), sizeof(e));
	CU_ASSERT_EQUAL(event, FI_NOTIFY);
	CU_ASSERT_PTR_NOT_NULL(fi_eq_strerror(eq, FI_EIO, NULL, NULL, 0));
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	attr.wait_obj = FI_WAIT_SET;
	CU_ASSERT_EQUAL(fi_eq_open(f.fabric, &attr, &eq, NULL), -FI_EINVAL);
	fx_close_domain(&f);
}

/* An endpoint that sends, or connects, to nobody at @p port. */
static void talk_in_class(struct fx *f, struct fx_ep *e, uint32_t tclass, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	fi_addr_t to;

	sin.sin_addr.s_addr = htonl(0x0a630007);
	f->info->tx_attr->tclass = tclass;
	fx_ep_open(f, e);
	if (f->opt.msg) {
		CU_ASSERT_EQUAL(fi_connect(e->ep, &sin, NULL, 0), 0);
	} else {
		fx_ep_enable(e);
		CU_ASSERT_EQUAL_FATAL(fi_av_insert(e->av, &sin, 1, &to, 0, NULL), 1);
		CU_ASSERT_EQUAL(fi_send(e->ep, &sin, 1, NULL, to, NULL), 0);
	}
	CU_ASSERT_TRUE(fx_stays_empty(f, e->txcq));
}

/* The code point of the frames to @p port, or -1. */
static int code_point_to(const uint8_t *p, size_t len, uint16_t port)
{
	const uint8_t to[] = {10, 99, 0, 7}, udp[] = {(uint8_t)(port >> 8), (uint8_t)port};

	for (size_t i = 0; i + 28 < len; i++)
		if (p[i] == 0x45 && !memcmp(p + i + 16, to, 4) && !memcmp(p + i + 22, udp, 2))
			return p[i + 1] >> 2;
	return -1;
}

/* Run by itself with a capture: the endpoint's class counts, else the domain's. */
static void test_F6_traffic_classes_on_the_wire(void)
{
	const char *path = getenv("FI_PMF_CAPTURE");
	static uint8_t bytes[1 << 20];
	struct fi_info *hints = usual_hints(0);
	struct fx f = {0};
	size_t len;
	FILE *file;

	hints->domain_attr->tclass = fi_tc_dscp_set(7);
	CU_ASSERT_EQUAL_FATAL(info_of(NULL, NULL, 0, hints, &f.info), 0);
	fi_freeinfo(hints);
	if (!path) {
		fi_freeinfo(f.info);
		return;
	}
	CU_ASSERT_EQUAL_FATAL(fi_fabric(f.info->fabric_attr, &f.fabric, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_domain(f.fabric, f.info, &f.domain, NULL), 0);
	talk_in_class(&f, &f.a, FI_TC_UNSPEC, 7001);
	talk_in_class(&f, &f.b, FI_TC_NETWORK_CTRL, 7002);
	fx_ep_close(&f.b);
	f.opt.msg = true;
	f.info->ep_attr->type = FI_EP_MSG;
	talk_in_class(&f, &f.b, FI_TC_BULK_DATA, 7003);
	fx_close(&f);
	file = fopen(path, "rb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	CU_ASSERT_EQUAL(code_point_to(bytes, len, 7001), 7);
	CU_ASSERT_EQUAL(code_point_to(bytes, len, 7002), 48);
	CU_ASSERT_EQUAL(code_point_to(bytes, len, 7003), 10);
}

static const struct fx_test tests[] = {
	FX_TEST(test_E7_nothing_without_a_port),
	FX_TEST(test_E7_getinfo_starts_and_prints_nothing),
	FX_TEST(test_E7_what_is_missing_is_said_in_the_log_alone),
	FX_TEST(test_F3_progress_models_are_told),
	FX_TEST(test_F6_names),
	FX_TEST(test_F6_node_and_service),
	FX_TEST(test_F6_nodes_that_are_not_there),
	FX_TEST(test_F6_addresses_in_the_hints),
	FX_TEST(test_F6_each_version),
	FX_TEST(test_F8_not_offered),
	FX_TEST(test_B12_default_flags_in_the_hints),
	FX_TEST(test_C3_order_and_resources_are_told),
	FX_TEST(test_C6_who_may_ask_for_sources),
	FX_TEST(test_F6_caps_of_each_direction),
	FX_TEST(test_B10_the_group_as_node),
	FX_TEST(test_B10_without_multicast),
	FX_TEST(test_F6_traffic_classes_on_the_wire),
	FX_TEST(test_F6_unknown_names_in_what_is_opened),
	FX_TEST(test_F6_what_is_reported_opens),
	FX_TEST(test_F6_objects_in_the_hints),
	FX_TEST(test_E11_an_event_queue_opens_for_rdm),
};
FX_MAIN("getinfo")
