/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The text of FI_PMF_PORT: what is taken, what is refused, and whether the refusal names the word.
 */
#include "pmd_glue/port.h"

#include <arpa/inet.h>

#include "../unit.h"

static struct pmf_port_conf conf;
static char err[256];

static int parse(const char *text)
{
	memset(&conf, 0xa5, sizeof(conf));
	err[0] = '\0';
	return pmf_port_conf_parse(text, &conf, err, sizeof(err));
}

static bool ip_is(const struct pmf_addr *a, const char *text)
{
	struct pmf_addr want = {.port = 0};
	uint8_t ip[16];

	if (inet_pton(AF_INET, text, ip) == 1)
		pmf_addr_set_v4(&want, ip, 0);
	else
		CU_ASSERT_FATAL(inet_pton(AF_INET6, text, want.ip) == 1);
	return pmf_addr_eq(a, &want);
}

static void test_vdev_with_devargs(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("net_vhost0,iface=/run/l.sock,client=0 10.99.0.1/24"), 0);
	CU_ASSERT_STRING_EQUAL(conf.dev, "net_vhost0,iface=/run/l.sock,client=0");
	CU_ASSERT_STRING_EQUAL(conf.name, "net_vhost0");
	CU_ASSERT_FALSE(conf.is_pci);
	CU_ASSERT_TRUE(conf.v4.set && !conf.v6.set);
	CU_ASSERT_TRUE(ip_is(&conf.v4.addr, "10.99.0.1"));
	CU_ASSERT_EQUAL(conf.v4.prefix, 24);
	CU_ASSERT_EQUAL(conf.nqueues, 1);
	CU_ASSERT_EQUAL(conf.mtu, 0);
	CU_ASSERT_EQUAL(conf.vlan, 0);
	CU_ASSERT_EQUAL(conf.mcast_ttl, 1);
	CU_ASSERT_PTR_NULL(conf.fault);
}

static void test_every_setting(void)
{
	CU_ASSERT_EQUAL_FATAL(
		parse("net_ring0 10.0.0.5/8 fd00::5/64 gw=10.0.0.1 gw=fd00::1 mtu=9000 vlan=7 "
		      "queues=4 mcast_ttl=0 neigh=10.0.0.9=02:00:00:00:00:09 "
		      "neigh=fd00::9=0a:b:c:d:e:f"),
		0);
	CU_ASSERT_TRUE(ip_is(&conf.v6.addr, "fd00::5"));
	CU_ASSERT_TRUE(conf.v4.has_gw && ip_is(&conf.v4.gw, "10.0.0.1"));
	CU_ASSERT_TRUE(conf.v6.has_gw && ip_is(&conf.v6.gw, "fd00::1"));
	CU_ASSERT_EQUAL(conf.mtu, 9000);
	CU_ASSERT_EQUAL(conf.vlan, 7);
	CU_ASSERT_EQUAL(conf.nqueues, 4);
	CU_ASSERT_EQUAL(conf.mcast_ttl, 0);
	CU_ASSERT_EQUAL_FATAL(conf.nneigh, 2);
	CU_ASSERT_TRUE(ip_is(&conf.neigh[0].ip, "10.0.0.9"));
	CU_ASSERT_EQUAL(conf.neigh[0].mac[5], 9);
	CU_ASSERT_TRUE(ip_is(&conf.neigh[1].ip, "fd00::9"));
	CU_ASSERT_EQUAL(conf.neigh[1].mac[1], 0xb);
}

static void test_pci_short_name_is_completed(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("03:00.1,x=1 192.0.2.1/24"), 0);
	CU_ASSERT_TRUE(conf.is_pci);
	CU_ASSERT_STRING_EQUAL(conf.name, "0000:03:00.1");
	CU_ASSERT_EQUAL_FATAL(parse("0001:af:1f.7 192.0.2.1/24"), 0);
	CU_ASSERT_STRING_EQUAL(conf.name, "0001:af:1f.7");
}

/* Each text, and the word that the sentence must hold. */
static void test_refusals_name_the_word(void)
{
	static const struct {
		const char *text, *word;
	} bad[] = {
		{"", "no device"},
		{"   ", "no device"},
		{"net_ring0", "no address"},
		{"10.0.0.1/24", "10.0.0.1/24"},
		{"net_ring0 10.0.0.1", "10.0.0.1"},
		{"net_ring0 10.0.0.1/33", "10.0.0.1/33"},
		{"net_ring0 10.0.0.1/0", "10.0.0.1/0"},
		{"net_ring0 fd00::1/129", "fd00::1/129"},
		{"net_ring0 224.0.0.1/24", "224.0.0.1/24"},
		{"net_ring0 127.0.0.1/8", "127.0.0.1/8"},
		{"net_ring0 ff02::1/64", "ff02::1/64"},
		{"net_ring0 10.0.0.1/24 10.0.0.2/24", "10.0.0.2/24"},
		{"net_ring0 10.0.0.1/24 mtu=100", "mtu=100"},
		{"net_ring0 10.0.0.1/24 mtu=9000x", "mtu=9000x"},
		{"net_ring0 10.0.0.1/24 mtu=-1", "mtu=-1"},
		{"net_ring0 10.0.0.1/24 mtu=", "mtu="},
		{"net_ring0 10.0.0.1/24 vlan=4095", "vlan=4095"},
		{"net_ring0 10.0.0.1/24 queues=17", "queues=17"},
		{"net_ring0 10.0.0.1/24 queues=0", "queues=0"},
		{"net_ring0 10.0.0.1/24 colour=red", "colour=red"},
		{"net_ring0 10.0.0.1/24 gw=fd00::1", "IPv6 gateway"},
		{"net_ring0 10.0.0.1/24 gw=x", "gw=x"},
		{"net_ring0 10.0.0.1/24 neigh=10.0.0.2", "neigh=10.0.0.2"},
		{"net_ring0 10.0.0.1/24 neigh=10.0.0.2=01:00:00:00:00:00", "neigh="},
		{"net_ring0 10.0.0.1/24 neigh=10.0.0.2=02:00:00:00:00", "neigh="},
		{"net_ring0 fd00::1/64 mtu=1000", "mtu=1280"},
	};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(bad); i++) {
		CU_ASSERT_EQUAL(parse(bad[i].text), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i].word));
		if (!strstr(err, bad[i].word))
			printf("\n  \"%s\": %s\n", bad[i].text, err);
		/* Outputs are set only on success. */
		CU_ASSERT_EQUAL(conf.dev[0], (char)0xa5);
	}
}

static void test_too_many_neighbours(void)
{
	char text[2048] = "net_ring0 10.0.0.1/24";

	for (int i = 0; i < PMF_MAX_STATIC_NEIGH; i++)
		sprintf(text + strlen(text), " neigh=10.0.0.%d=02:00:00:00:00:%02x", i + 2, i);
	CU_ASSERT_EQUAL(parse(text), 0);
	CU_ASSERT_EQUAL(conf.nneigh, PMF_MAX_STATIC_NEIGH);
	strcat(text, " neigh=10.0.0.99=02:00:00:00:00:99");
	CU_ASSERT_EQUAL(parse(text), -EINVAL);
}

static void test_long_device_is_refused(void)
{
	char text[2048];

	memset(text, 'a', 600);
	strcpy(text + 600, " 10.0.0.1/24");
	CU_ASSERT_EQUAL(parse(text), -EINVAL);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"a vdev with devargs", test_vdev_with_devargs},
		{"every setting is taken", test_every_setting},
		{"a PCI address is completed", test_pci_short_name_is_completed},
		{"refusals name the word", test_refusals_name_the_word},
		{"too many static neighbours", test_too_many_neighbours},
		{"a device that is too long", test_long_device_is_refused},
	};

	return test_main("port_conf", tests, PMF_ARRAY_SIZE(tests));
}
