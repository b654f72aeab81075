/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "fabric/param.h"

#include <stdlib.h>

#include "../unit.h"

#define MAX_VARS 8

/* The variables of one case: names and values in turn. */
static const char *const *vars;

static const char *get(const char *name)
{
	for (const char *const *v = vars; v && v[0]; v += 2)
		if (strcmp(v[0], name) == 0)
			return v[1];
	return NULL;
}

static int parse_rank(const char *rank, struct pmf_conf *conf, char err[512],
		      const char *const *list)
{
	vars = list;
	err[0] = '\0';
	return pmf_conf_parse(get, rank, conf, err, 512);
}

#define PARSE(conf, err, ...) \
	parse_rank("0", conf, err, (const char *const[MAX_VARS * 2 + 1]){__VA_ARGS__})

static void test_defaults(void)
{
	struct pmf_conf c;
	char err[512];

	CU_ASSERT_EQUAL(PARSE(&c, err, NULL), 0);
	CU_ASSERT_EQUAL(c.nports, 0);
	CU_ASSERT_EQUAL(c.rescue, 1000 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(c.huge, PMF_HUGE_AUTO);
	CU_ASSERT(c.tx_size > 0 && c.rx_size > 0 && c.iov_limit >= 1);
	CU_ASSERT(c.dead_after > 0 && c.unexpected_bytes > 0);
	CU_ASSERT_PTR_NULL(c.fault);
	CU_ASSERT_PTR_NULL(c.capture);
	CU_ASSERT_PTR_NOT_NULL(c.log);
}

static void test_values_and_units(void)
{
	struct pmf_conf c;
	char err[512];

	CU_ASSERT_EQUAL(PARSE(&c, err, "RESCUE_US", "250", "LINGER_MS", "3", "UNEXPECTED_MB", "2",
			      "PEER_TIMEOUT_MS", "1500", "DSCP", "46", "HUGEPAGES", "off",
			      "MEMORY_MB", "64"),
			0);
	CU_ASSERT_EQUAL(c.rescue, 250 * PMF_NS_PER_US);
	CU_ASSERT_EQUAL(c.linger, 3 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(c.unexpected_bytes, 2u << 20);
	CU_ASSERT_EQUAL(c.dead_after, 1500 * PMF_NS_PER_MS);
	CU_ASSERT_EQUAL(c.dscp, 46);
	CU_ASSERT_EQUAL(c.huge, PMF_HUGE_OFF);
	CU_ASSERT_EQUAL(c.memory_mb, 64);
}

static void test_processors(void)
{
	struct pmf_conf c;
	char err[512];

	CU_ASSERT_EQUAL(PARSE(&c, err, "PORT", ""), 0);
	CU_ASSERT_EQUAL(c.nlcores, 0);
	CU_ASSERT_EQUAL_FATAL(PARSE(&c, err, "LCORES", "7,2-4,0"), 0);
	CU_ASSERT_EQUAL_FATAL(c.nlcores, 5);
	CU_ASSERT_EQUAL(c.lcore[0], 7);
	CU_ASSERT_EQUAL(c.lcore[1], 2);
	CU_ASSERT_EQUAL(c.lcore[3], 4);
	CU_ASSERT_EQUAL(c.lcore[4], 0);
	/* more than there can be engines */
	CU_ASSERT_EQUAL(PARSE(&c, err, "LCORES", "0-63"), 0);
	CU_ASSERT_EQUAL(c.nlcores, PMF_MAX_QUEUES);
}

static void test_ports(void)
{
	struct pmf_conf c;
	char err[512];

	CU_ASSERT_EQUAL(
		PARSE(&c, err, "PORT",
		      "net_ring0 10.99.0.1/24 ; net_memif0,role=server fd00::1/64 mtu=1400;", "MTU",
		      "9000", "FAULT", "loss=1%,seed=7", "DSCP", "8"),
		0);
	CU_ASSERT_EQUAL(c.nports, 2);
	CU_ASSERT_STRING_EQUAL(c.port[0].name, "net_ring0");
	CU_ASSERT(c.port[0].v4.set && !c.port[0].v6.set);
	CU_ASSERT_EQUAL(c.port[0].mtu, 9000);
	CU_ASSERT_EQUAL(c.port[0].dscp, 8);
	CU_ASSERT_STRING_EQUAL(c.port[0].fault, "loss=1%,seed=7");
	CU_ASSERT_STRING_EQUAL(c.port[1].name, "net_memif0");
	CU_ASSERT_EQUAL(c.port[1].mtu, 1400);
}

static void test_the_rank_is_put_in(void)
{
	const char *const list[MAX_VARS * 2 + 1] = {"PORT", "net_ring%r 10.99.0.1%r/24", "CAPTURE",
						    "/tmp/%r-50%.pcapng"};
	struct pmf_conf c;
	char err[512];

	CU_ASSERT_EQUAL(parse_rank("12", &c, err, list), 0);
	CU_ASSERT_STRING_EQUAL(c.port[0].name, "net_ring12");
	CU_ASSERT_EQUAL(c.port[0].v4.addr.ip[15], 112);
	CU_ASSERT_STRING_EQUAL(c.capture, "/tmp/12-50%.pcapng");
}

static void test_the_rank_comes_from_the_launcher(void)
{
	unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
	unsetenv("PMI_RANK");
	unsetenv("SLURM_LOCALID");
	CU_ASSERT_STRING_EQUAL(pmf_param_rank(), "0");
	setenv("SLURM_LOCALID", "5", 1);
	CU_ASSERT_STRING_EQUAL(pmf_param_rank(), "5");
	setenv("PMI_RANK", "not a number", 1);
	CU_ASSERT_STRING_EQUAL(pmf_param_rank(), "5");
	setenv("OMPI_COMM_WORLD_LOCAL_RANK", "3", 1);
	CU_ASSERT_STRING_EQUAL(pmf_param_rank(), "3");
}

/* Every mistake is answered with a sentence that names its variable. */
static void test_mistakes_name_their_variable(void)
{
	static const char *const cases[][2] = {
		{"RESCUE_US", "soon"},
		{"RESCUE_US", ""},
		{"RESCUE_US", "-1"},
		{"RESCUE_US", "99999999999999999999999"},
		{"DSCP", "64"},
		{"DSCP", "46 x"},
		{"MEMORY_MB", "1G"},
		{"HUGEPAGES", "yes"},
		{"LCORES", "2,"},
		{"LCORES", "2,x"},
		{"LCORES", "5-4"},
		{"LCORES", "1-"},
		{"LCORES", "2 3"},
		{"LCORES", "1024"},
		{"MTU", "100"},
		{"TX_SIZE", "0"},
		{"RX_SIZE", "1000000"},
		{"PORT", "net_ring0"},
		{"PORT", "net_ring0 10.99.0.1"},
		{"PORT", "net_ring0 10.99.0.1/24 speed=9"},
		{"PORT", "net_ring0 10.99.0.1/24; net_ring0 10.99.1.1/24"},
		{"PORT", "a 10.0.0.1/8;b 10.0.0.1/8;c 10.0.0.1/8;d 10.0.0.1/8;e 10.0.0.1/8;"
			 "f 10.0.0.1/8;g 10.0.0.1/8;h 10.0.0.1/8;i 10.0.0.1/8"},
	};

	for (size_t i = 0; i < PMF_ARRAY_SIZE(cases); i++) {
		char err[512], name[64];
		struct pmf_conf c;

		snprintf(name, sizeof(name), "FI_PMF_%s", cases[i][0]);
		CU_ASSERT_EQUAL(PARSE(&c, err, cases[i][0], cases[i][1]), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, name));
	}
}

static void test_the_same_text_gives_the_same_configuration(void)
{
	const struct pmf_conf *one, *two;

	setenv("FI_PMF_PORT", "net_ring0 10.99.0.1/24", 1);
	one = pmf_conf_load();
	CU_ASSERT_PTR_NOT_NULL_FATAL(one);
	CU_ASSERT_EQUAL(one->nports, 1);
	CU_ASSERT_PTR_EQUAL(pmf_conf_load(), one);
	setenv("FI_PMF_PORT", "net_ring0 10.99.0.1/24; net_ring1 10.99.1.1/24", 1);
	two = pmf_conf_load();
	CU_ASSERT_PTR_NOT_NULL_FATAL(two);
	CU_ASSERT_EQUAL(two->nports, 2);
	/* once something runs with it, it stays */
	pmf_conf_keep(two);
	unsetenv("FI_PMF_PORT");
	CU_ASSERT_PTR_EQUAL(pmf_conf_load(), two);
}

static const struct unit_test tests[] = {
	UNIT_TEST(test_defaults),
	UNIT_TEST(test_values_and_units),
	UNIT_TEST(test_processors),
	UNIT_TEST(test_ports),
	UNIT_TEST(test_the_rank_is_put_in),
	UNIT_TEST(test_the_rank_comes_from_the_launcher),
	UNIT_TEST(test_mistakes_name_their_variable),
	UNIT_TEST(test_the_same_text_gives_the_same_configuration),
};

int main(void)
{
	pmf_param_define();
	return test_main("fabric param", tests, PMF_ARRAY_SIZE(tests));
}
