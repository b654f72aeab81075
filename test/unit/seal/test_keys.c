/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "seal/keys.h"

#include "../unit.h"

static char err[200];

static int parse(const char *text, struct pmf_key_list *out)
{
	return pmf_keys_parse(text, out, err, sizeof(err));
}

static struct pmf_key_list list_of(const char *text)
{
	struct pmf_key_list l;

	CU_ASSERT_EQUAL_FATAL(parse(text, &l), 0);
	return l;
}

static void test_text(void)
{
	struct pmf_key_list l = list_of("# the new one\n 00ff10Ab \tcomment\r\n\n0102\n");

	CU_ASSERT_EQUAL(l.n, 2);
	CU_ASSERT_EQUAL(l.key[0].len, 4);
	CU_ASSERT_EQUAL(memcmp(l.key[0].bytes, "\x00\xff\x10\xab", 4), 0);
	CU_ASSERT_EQUAL(l.key[1].len, 2);
	CU_ASSERT_EQUAL(memcmp(l.key[1].bytes, "\x01\x02", 2), 0);
}

static void test_bad_text(void)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"", "no key"},	       {"#\n\n", "no key"},	{"00\n0\n", "line 2: an odd"},
		{"0x12\n", "not hex"}, {"00\n1122", "newline"}, {"# comment", "newline"},
	};
	struct pmf_key_list l;
	char many[64] = "", longer[2 * PMF_KEY_SIZE_MAX + 4];

	for (size_t i = 0; i < PMF_ARRAY_SIZE(bad); i++) {
		CU_ASSERT_EQUAL(parse(bad[i].text, &l), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i].why));
	}
	for (int i = 0; i <= PMF_KEYS_MAX; i++)
		snprintf(many + strlen(many), 5, "0%d\n", i);
	CU_ASSERT_EQUAL(parse(many, &l), -EINVAL);
	memset(longer, '0', sizeof(longer));
	strcpy(longer + 2 * PMF_KEY_SIZE_MAX, "\n");
	CU_ASSERT_EQUAL(parse(longer, &l), 0);
	CU_ASSERT_EQUAL(l.key[0].len, PMF_KEY_SIZE_MAX);
	strcpy(longer + 2 * PMF_KEY_SIZE_MAX, "00\n");
	CU_ASSERT_EQUAL(parse(longer, &l), -EINVAL);
}

static void test_ids(void)
{
	struct pmf_key_list l = list_of("00112233\n00112234\n");
	struct pmf_keyring *a, *b, *secret;

	/* given: the same keys in two processes, and in one that encrypts */
	CU_ASSERT_EQUAL_FATAL(pmf_keyring_open(&l, false, &a), 0);
	CU_ASSERT_EQUAL_FATAL(pmf_keyring_open(&l, false, &b), 0);
	CU_ASSERT_EQUAL_FATAL(pmf_keyring_open(&l, true, &secret), 0);
	/* then: the ids agree, differ by key, and by mode */
	CU_ASSERT_EQUAL(a->key[0]->id, b->key[0]->id);
	CU_ASSERT_NOT_EQUAL(a->key[0]->id, a->key[1]->id);
	CU_ASSERT_NOT_EQUAL(a->key[0]->id, secret->key[0]->id);
	CU_ASSERT_PTR_EQUAL(pmf_keyring_find(a, b->key[1]->id), a->key[1]);
	CU_ASSERT_PTR_NULL(pmf_keyring_find(a, secret->key[0]->id));
	CU_ASSERT_PTR_NULL(pmf_keyring_find(a, 0));
	pmf_keyring_close(a);
	pmf_keyring_close(b);
	pmf_keyring_close(secret);
}

static void test_bad_rings(void)
{
	struct pmf_key_list l = list_of("0011\n0011\n");
	struct pmf_keyring *r;

	CU_ASSERT_EQUAL(pmf_keyring_open(&l, false, &r), -EEXIST);
	l.key[0].len = 0;
	CU_ASSERT_EQUAL(pmf_keyring_open(&l, false, &r), -EINVAL);
	l.n = 0;
	CU_ASSERT_EQUAL(pmf_keyring_open(&l, false, &r), -EINVAL);
}

static void test_change(void)
{
	struct pmf_key_list ab = list_of("aa\nbb\n"), bc = list_of("bb\ncc\n"), cc;
	struct pmf_keyring *r, gone;
	struct pmf_key *a, *b;

	CU_ASSERT_EQUAL_FATAL(pmf_keyring_open(&ab, false, &r), 0);
	a = r->key[0];
	b = r->key[1];
	/* when: the first goes, another one comes */
	CU_ASSERT_EQUAL(pmf_keyring_change(r, &bc, &gone), 0);
	/* then: what stays is the same object, what went is handed out */
	CU_ASSERT_EQUAL(r->n, 2);
	CU_ASSERT_PTR_EQUAL(r->key[0], b);
	CU_ASSERT_EQUAL(gone.n, 1);
	CU_ASSERT_PTR_EQUAL(gone.key[0], a);
	pmf_keyring_drop(&gone);
	CU_ASSERT_EQUAL(pmf_keyring_change(r, &bc, &gone), -EALREADY);
	/* when: the new ones are no good, all is as before */
	cc = list_of("cc\ncc\n");
	CU_ASSERT_EQUAL(pmf_keyring_change(r, &cc, &gone), -EEXIST);
	CU_ASSERT_EQUAL(gone.n, 0);
	CU_ASSERT_PTR_EQUAL(r->key[0], b);
	pmf_keyring_close(r);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"text", test_text},	       {"bad text", test_bad_text}, {"ids", test_ids},
		{"bad rings", test_bad_rings}, {"change", test_change},
	};

	return test_main("keys", tests, PMF_ARRAY_SIZE(tests));
}
