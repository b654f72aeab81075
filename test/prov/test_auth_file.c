/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * FI_PMF_AUTH_KEY_FILE: read when a domain is opened, and again when it changes, under traffic.
 */
#include "fx.h"

#include <unistd.h>

#define K1 "00112233445566778899aabbccddeeff\n"
/* Encrypting: found by trying some 100,000. Packets name a key by 16 bits. */
#define SAME_ID_AS_K1 "000000000001867a\n"
#define K2 "ffeeddccbbaa99887766554433221100\n"

static char path[64];

/* As rename(2) does it: whole, or not at all. */
static void write_keys(const char *text)
{
	char tmp[80];
	FILE *file;

	snprintf(tmp, sizeof(tmp), "%s.new", path);
	file = fopen(tmp, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
	CU_ASSERT_EQUAL_FATAL(rename(tmp, path), 0);
}

static int try_domain(void)
{
	static const struct fx_opt usual;
	struct fi_info *hints = fx_hints(&usual), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int rc;

	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FX_API, NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL_FATAL(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	rc = fi_domain(fabric, info, &domain, NULL);
	if (!rc)
		fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return rc;
}

static void test_B11_file_that_is_no_good(void)
{
	unlink(path);
	CU_ASSERT_EQUAL(try_domain(), -FI_EINVAL);
	write_keys("");
	CU_ASSERT_EQUAL(try_domain(), -FI_EINVAL);
	write_keys("not a key\n");
	CU_ASSERT_EQUAL(try_domain(), -FI_EINVAL);
	write_keys(K1 K1);
	CU_ASSERT_EQUAL(try_domain(), -FI_EINVAL);
	write_keys(K1 SAME_ID_AS_K1);
	CU_ASSERT_EQUAL(try_domain(), -FI_EINVAL);
	write_keys(SAME_ID_AS_K1);
	CU_ASSERT_EQUAL(try_domain(), 0);
	write_keys(K1);
	CU_ASSERT_EQUAL(try_domain(), 0);
}

/* Messages both ways until the keys have rolled once more. */
static void traffic_until(struct fx *f, uint64_t rolls, unsigned int *count)
{
	double end = fx_now_ms() + FX_MS;
	char tx[3000], rx[3000];
	struct fx_comp c;

	do {
		struct fx_ep *from = *count % 2 ? &f->a : &f->b, *to = *count % 2 ? &f->b : &f->a;

		fx_fill(tx, sizeof(tx), *count);
		CU_ASSERT_EQUAL(fi_recv(to->ep, rx, sizeof(rx), NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(
			fi_send(from->ep, tx, sizeof(tx), NULL, *count % 2 ? f->a.b : f->b.a, tx),
			0);
		FX_WAIT_OK(f, to->rxcq, rx, &c);
		CU_ASSERT_TRUE(fx_same(rx, sizeof(rx), *count));
		FX_WAIT_OK(f, from->txcq, tx, &c);
		(*count)++;
	} while (fx_stat(f, "engine:0", "key_rolls") < rolls && fx_now_ms() < end);
	CU_ASSERT_TRUE(fx_stat(f, "engine:0", "key_rolls") >= rolls);
}

static void roll(bool msg)
{
	struct fx_opt opt = {.msg = msg};
	unsigned int count = 0;
	uint64_t rolls, rings;
	struct fx f;

	write_keys(K1);
	fx_open(&f, &opt);
	rolls = fx_stat(&f, "engine:0", "key_rolls");
	write_keys(K1 K2);
	traffic_until(&f, rolls + 1, &count);
	rings = fx_stat(&f, "engine:0", "key_rolls") - rolls;
	write_keys(K2 K1);
	traffic_until(&f, rolls + 2 * rings, &count);
	write_keys(K2);
	traffic_until(&f, rolls + 3 * rings, &count);
	CU_ASSERT_TRUE(count > 3);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "drop_key"), 0);
	CU_ASSERT_EQUAL(fx_stat(&f, "engine:0", "drop_tag"), 0);
	fx_close(&f);
}

static void test_B11_keys_roll_under_traffic(void)
{
	roll(false);
}

static void test_B11_keys_roll_on_connections(void)
{
	roll(true);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B11_file_that_is_no_good),
	FX_TEST(test_B11_keys_roll_under_traffic),
	FX_TEST(test_B11_keys_roll_on_connections),
};

int main(int argc, char **argv)
{
	int rc;

	snprintf(path, sizeof(path), "/tmp/pmf-keys-%d", (int)getpid());
	setenv("FI_PMF_AUTH_KEY_FILE", path, 1);
	setenv("FI_PMF_ENCRYPT", "1", 1);
	rc = fx_main(argc, argv, "auth_file", tests, sizeof(tests) / sizeof(tests[0]));
	unlink(path);
	return rc;
}
