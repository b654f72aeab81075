/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Authorization keys as attributes of domain and endpoint: row B11 as far as every version of
 * libfabric has it.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define KEY "a key of some thirty bytes, or so"
#define OTHER "another key of some thirty bytes."

static const size_t sizes[] = {0, 1, 64, 1500, 5000, 16384, 100000};
static char out[100000], in[100000];

/* Messages of all sizes from @p from to @p to. */
static void exchange(struct fx *f, struct fx_ep *from, struct fx_ep *to, fi_addr_t dest)
{
	struct fx_comp c;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		fx_fill(out, sizes[i], (unsigned int)i);
		memset(in, 0, sizeof(in));
		CU_ASSERT_EQUAL(fi_recv(to->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
		CU_ASSERT_EQUAL(fi_send(from->ep, out, sizes[i], NULL, dest, out), 0);
		FX_WAIT_OK(f, to->rxcq, in, &c);
		CU_ASSERT_EQUAL(c.e.len, sizes[i]);
		CU_ASSERT_TRUE(fx_same(in, sizes[i], (unsigned int)i));
		FX_WAIT_OK(f, from->txcq, out, &c);
	}
}

static void both_ways(const struct fx_opt *opt)
{
	struct fx f;

	fx_open(&f, opt);
	exchange(&f, &f.a, &f.b, f.a.b);
	exchange(&f, &f.b, &f.a, f.b.a);
	/* nothing was refused on the way: what is counted there would be a fault of ours */
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "drop_key"), 0);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "drop_tag"), 0);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "drop_malformed"), 0);
	fx_close(&f);
}

static void test_B11_key_of_the_domain(void)
{
	struct fx_opt opt = {.key = KEY};

	both_ways(&opt);
	opt.msg = true;
	both_ways(&opt);
}

static void test_B11_key_of_the_endpoints(void)
{
	struct fx_opt opt = {.key = OTHER, .a_key = KEY, .b_key = KEY};

	both_ways(&opt);
	opt.key = NULL;
	both_ways(&opt);
}

/* FI_PMF_PEER_TIMEOUT_MS of this run. */
static double dead_after(void)
{
	const char *text = getenv("FI_PMF_PEER_TIMEOUT_MS");

	return text ? atof(text) : 10000;
}

/* a sends to b, and hears that its key is not b's. */
static void refused(const struct fx_opt *opt, bool at_once)
{
	struct fx_comp c;
	double start;
	struct fx f;

	fx_open(&f, opt);
	start = fx_now_ms();
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, out, 64, NULL, f.a.b, out), 0);
	FX_WAIT_ERR(&f, f.a.txcq, out, FI_EKEYREJECTED, &c);
	CU_ASSERT_EQUAL(c.err.prov_errno, FI_EKEYREJECTED);
	/* Who has a key believes nobody without one, and tries on until the peer counts as dead. */
	if (!at_once)
		CU_ASSERT_TRUE(fx_now_ms() - start >= dead_after() - 100);
	CU_ASSERT_TRUE(fx_stat(&f, "engine:0", "drop_key") > 0);
	CU_ASSERT_TRUE(fx_stat(&f, "engine:0", "key_refused") > 0);
	CU_ASSERT_TRUE(fx_stays_empty(&f, f.b.rxcq));
	fx_close(&f);
}

static void test_B11_different_keys(void)
{
	refused(&(struct fx_opt){.key = KEY, .b_key = OTHER}, false);
}

static void test_B11_only_the_sender_has_a_key(void)
{
	refused(&(struct fx_opt){.a_key = KEY}, false);
}

static void test_B11_only_the_receiver_has_a_key(void)
{
	refused(&(struct fx_opt){.b_key = KEY}, true);
}

/* The listener's keys are its info's, as those of a domain are. */
static void test_B11_connecting_with_another_key(void)
{
	struct fx_opt opt = {.key = KEY, .a_key = OTHER, .msg = true};
	struct fx_event ev;
	struct fx f;

	fx_open_domain(&f, &opt);
	fx_listen(&f);
	fx_ep_open(&f, &f.a);
	CU_ASSERT_EQUAL(fx_connect(&f, &f.a, NULL, 0), 0);
	CU_ASSERT_FATAL(fx_event(&f, f.a.eq, &ev));
	CU_ASSERT_EQUAL(ev.err.err, FI_EKEYREJECTED);
	CU_ASSERT_TRUE(fx_no_event(&f, f.peq));
	fx_close(&f);
}

static void test_B11_nobody_listens(void)
{
	struct fx_opt opt = {.key = KEY, .msg = true};
	char name[128];
	size_t len = sizeof(name);
	struct fx_event ev;
	struct fx f;

	fx_open_domain(&f, &opt);
	fx_listen(&f);
	CU_ASSERT_EQUAL_FATAL(fi_getname(&f.pep->fid, name, &len), 0);
	CU_ASSERT_EQUAL(fi_close(&f.pep->fid), 0);
	f.pep = NULL;
	/* when: somebody with the key answers for a port without a listener */
	fx_ep_open(&f, &f.a);
	CU_ASSERT_EQUAL(fi_connect(f.a.ep, name, NULL, 0), 0);
	CU_ASSERT_FATAL(fx_event(&f, f.a.eq, &ev));
	/* then: that is believed */
	CU_ASSERT_EQUAL(ev.err.err, FI_ECONNREFUSED);
	fx_close(&f);
}

static void test_B11_keys_that_are_none(void)
{
	struct fx_opt opt = {.key = KEY};
	struct fi_info *hints = fx_hints(&opt), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	/* what is asked for comes back */
	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL_FATAL(info->domain_attr->auth_key_size, strlen(KEY));
	CU_ASSERT_EQUAL(memcmp(info->domain_attr->auth_key, KEY, strlen(KEY)), 0);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	info->domain_attr->auth_key_size = 257;
	CU_ASSERT_EQUAL(fi_domain(fabric, info, &domain, NULL), -FI_EINVAL);
	info->domain_attr->auth_key_size = strlen(KEY);
	CU_ASSERT_EQUAL(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	hints->domain_attr->auth_key_size = 257;
	CU_ASSERT_EQUAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->auth_key_size = strlen(KEY);
	fi_freeinfo(hints);
}

/* Messages to groups have no tag: who has a key stays away from them. */
static void test_B11_no_multicast_under_a_key(void)
{
	struct fx_opt opt = {.key = KEY, .caps = FI_MSG | FI_MULTICAST};
	struct sockaddr_in group = {.sin_family = AF_INET};
	struct fid_mc *mc;
	struct fx f;

	group.sin_addr.s_addr = htonl(0xefff0007); /* 239.255.0.7 */
	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_join(f.a.ep, &group, 0, &mc, NULL), -FI_EACCES);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B11_key_of_the_domain),
	FX_TEST(test_B11_key_of_the_endpoints),
	FX_TEST(test_B11_different_keys),
	FX_TEST(test_B11_only_the_sender_has_a_key),
	FX_TEST(test_B11_only_the_receiver_has_a_key),
	FX_TEST(test_B11_connecting_with_another_key),
	FX_TEST(test_B11_nobody_listens),
	FX_TEST(test_B11_keys_that_are_none),
	FX_TEST(test_B11_no_multicast_under_a_key),
};
FX_MAIN("auth")
