/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * The wrapper of libcrypto against published vectors: RFC 5869 appendix A, RFC 4231 §4.2, and the
 * test cases of McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B.
 */
#include "seal/crypt.h"

#include "../unit.h"

static size_t hex(const char *text, uint8_t *out)
{
	size_t n = strlen(text) / 2;

	for (size_t i = 0; i < n; i++) {
		unsigned int v = 0;

		sscanf(text + 2 * i, "%2x", &v);
		out[i] = (uint8_t)v;
	}
	return n;
}

static bool is_hex(const uint8_t *p, size_t len, const char *text)
{
	uint8_t want[256];

	return hex(text, want) == len && memcmp(p, want, len) == 0;
}

/* ---- HKDF ---- */

struct hkdf_case {
	const char *ikm, *salt, *info, *prk, *okm;
};

static const struct hkdf_case hkdf_cases[] = {
	{"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
	 "f0f1f2f3f4f5f6f7f8f9", "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
	 "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
	{"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324252627"
	 "28292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
	 "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f8081828384858687"
	 "88898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
	 "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7"
	 "d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
	 "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
	 "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac78272"
	 "71cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f"
	 "1d87"},
	{"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
	 "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
	 "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"},
};

static void test_hkdf(void)
{
	for (size_t i = 0; i < PMF_ARRAY_SIZE(hkdf_cases); i++) {
		const struct hkdf_case *c = &hkdf_cases[i];
		uint8_t ikm[100], salt[100], info[100], prk[PMF_CRYPT_HASH], okm[100];
		size_t ikm_len = hex(c->ikm, ikm), salt_len = hex(c->salt, salt);
		size_t info_len = hex(c->info, info), len = strlen(c->okm) / 2;

		CU_ASSERT_EQUAL(pmf_hkdf_extract(salt, salt_len, ikm, ikm_len, prk), 0);
		CU_ASSERT_TRUE(is_hex(prk, sizeof(prk), c->prk));
		CU_ASSERT_EQUAL(pmf_hkdf_expand(prk, sizeof(prk), info, info_len, okm, len), 0);
		CU_ASSERT_TRUE(is_hex(okm, len, c->okm));
	}
}

/* ---- HMAC ---- */

static void test_hmac(void)
{
	static const char *const want = "b0344c61d8db38535ca8afceaf0bf12b";
	uint8_t key[20], tag[PMF_CRYPT_TAG];
	struct pmf_hmac *h;

	memset(key, 0x0b, sizeof(key));
	h = pmf_hmac_open(key, sizeof(key));
	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	/* More than once with one context, and however the bytes are cut. */
	CU_ASSERT_TRUE(pmf_hmac_tag(h, "Hi There", 8, "", 0, tag));
	CU_ASSERT_TRUE(is_hex(tag, sizeof(tag), want));
	CU_ASSERT_TRUE(pmf_hmac_tag(h, "Hi ", 3, "There", 5, tag));
	CU_ASSERT_TRUE(is_hex(tag, sizeof(tag), want));
	CU_ASSERT_TRUE(pmf_hmac_tag(h, "Hi There", 8, "!", 1, tag));
	CU_ASSERT_FALSE(is_hex(tag, sizeof(tag), want));
	pmf_hmac_close(h);
}

/* ---- AES-GCM ---- */

struct gcm_case {
	const char *key, *iv, *aad, *text, *cipher, *tag;
};

#define KEY "feffe9928665731c6d6a8f9467308308"
#define IV "cafebabefacedbaddecaf888"
#define TEXT                                                                                \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532" \
	"fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define AAD "feedfacedeadbeeffeedfacedeadbeefabaddad2"

static const struct gcm_case gcm_cases[] = {
	{"00000000000000000000000000000000", "000000000000000000000000", "", "", "",
	 "58e2fccefa7e3061367f1d57a4e7455a"},
	{"00000000000000000000000000000000", "000000000000000000000000", "",
	 "00000000000000000000000000000000", "0388dace60b6a392f328c2b971b2fe78",
	 "ab6e47d42cec13bdf53a67b21257bddf"},
	{KEY, IV, "", TEXT "1aafd255",
	 "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
	 "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
	 "4d5c2af327cd64a62cf35abd2ba6fab4"},
	{KEY, IV, AAD, TEXT,
	 "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
	 "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
	 "5bc94fbc3221a5db94fae95ae7121a47"},
	{KEY KEY, IV, AAD, TEXT,
	 "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
	 "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
	 "76fc6ece0f4e1768cddf8853bb2d551b"},
};

static void test_gcm(void)
{
	for (size_t i = 0; i < PMF_ARRAY_SIZE(gcm_cases); i++) {
		const struct gcm_case *c = &gcm_cases[i];
		uint8_t key[32], iv[12], aad[64], text[64], tag[PMF_CRYPT_TAG];
		size_t key_len = hex(c->key, key), aad_len = hex(c->aad, aad);
		size_t len = hex(c->text, text);
		struct pmf_gcm *seals = pmf_gcm_open(key, key_len, true);
		struct pmf_gcm *opens = pmf_gcm_open(key, key_len, false);

		hex(c->iv, iv);
		CU_ASSERT_PTR_NOT_NULL_FATAL(seals);
		CU_ASSERT_PTR_NOT_NULL_FATAL(opens);
		/* Twice: a context serves many packets. */
		for (int turn = 0; turn < 2; turn++) {
			CU_ASSERT_TRUE(pmf_gcm_seal(seals, iv, aad, aad_len, text, len, tag));
			CU_ASSERT_TRUE(is_hex(text, len, c->cipher));
			CU_ASSERT_TRUE(is_hex(tag, sizeof(tag), c->tag));
			CU_ASSERT_TRUE(pmf_gcm_unseal(opens, iv, aad, aad_len, text, len, tag));
			CU_ASSERT_TRUE(is_hex(text, len, c->text));
		}
		tag[15] ^= 1;
		CU_ASSERT_FALSE(pmf_gcm_unseal(opens, iv, aad, aad_len, text, len, tag));
		pmf_gcm_close(seals);
		pmf_gcm_close(opens);
	}
}

static void test_key_sizes(void)
{
	uint8_t key[32] = {0};

	CU_ASSERT_PTR_NULL(pmf_gcm_open(key, 15, true));
	CU_ASSERT_PTR_NULL(pmf_gcm_open(key, 24, true));
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"HKDF as RFC 5869", test_hkdf},
		{"HMAC as RFC 4231", test_hmac},
		{"AES-GCM as its authors", test_gcm},
		{"key sizes", test_key_sizes},
	};

	return test_main("crypt", tests, PMF_ARRAY_SIZE(tests));
}
