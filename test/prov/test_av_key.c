/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Authorization keys of address vectors (FI_AV_AUTH_KEY): the rest of row B11, for headers that
 * have them.
 */
#include "fx.h"

/* Later headers deprecate some of what is tested here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define CAPS (FI_MSG | FI_DIRECTED_RECV | FI_SOURCE)
#define NKEYS 3

static const char *const key_text[NKEYS] = {"the first key", "the second",
					    "and a third, unlike them"};

/* An endpoint's keys and peers by key; FI_ADDR_NOTAVAIL: none. */
struct known {
	fi_addr_t key[NKEYS];
	fi_addr_t a[NKEYS], b[NKEYS], c[NKEYS];
};

struct keyed {
	struct fx f;
	struct fx_ep third;
	struct known a, b, c;
};

static fi_addr_t add_key(struct fid_av *av, const char *text)
{
	fi_addr_t key = FI_ADDR_NOTAVAIL;

	CU_ASSERT_EQUAL_FATAL(fi_av_insert_auth_key(av, text, strlen(text), &key, 0), 0);
	return key;
}

static fi_addr_t add_peer(struct fid_av *av, const void *name, fi_addr_t key)
{
	fi_addr_t addr = key;

	CU_ASSERT_EQUAL_FATAL(fi_av_insert(av, name, 1, &addr, FI_AUTH_KEY, NULL), 1);
	return addr;
}

/* Bit n: key n goes into the AV before the endpoint is enabled. */
static void enable_with(struct fx_ep *e, struct known *k, unsigned int keys)
{
	for (int i = 0; i < NKEYS; i++)
		k->key[i] = keys & 1u << i ? add_key(e->av, key_text[i]) : FI_ADDR_NOTAVAIL;
	fx_ep_enable(e);
}

static void meet(struct keyed *k, struct fx_ep *e, struct known *known)
{
	for (int i = 0; i < NKEYS; i++) {
		known->a[i] = known->b[i] = known->c[i] = FI_ADDR_NOTAVAIL;
		if (known->key[i] == FI_ADDR_NOTAVAIL)
			continue;
		known->a[i] = add_peer(e->av, k->f.a.name, known->key[i]);
		known->b[i] = add_peer(e->av, k->f.b.name, known->key[i]);
		if (k->third.ep)
			known->c[i] = add_peer(e->av, k->third.name, known->key[i]);
	}
}

static void open_keyed(struct keyed *k, uint64_t caps, unsigned int a, unsigned int b,
		       unsigned int c)
{
	struct fx_opt opt = {.av_keys = true, .caps = caps, .api = FI_VERSION(1, 20)};

	memset(k, 0, sizeof(*k));
	fx_open_domain(&k->f, &opt);
	fx_ep_open(&k->f, &k->f.a);
	fx_ep_open(&k->f, &k->f.b);
	enable_with(&k->f.a, &k->a, a);
	enable_with(&k->f.b, &k->b, b);
	if (c) {
		fx_ep_open(&k->f, &k->third);
		enable_with(&k->third, &k->c, c);
		meet(k, &k->third, &k->c);
	}
	meet(k, &k->f.a, &k->a);
	meet(k, &k->f.b, &k->b);
}

static void close_keyed(struct keyed *k)
{
	if (k->third.ep)
		fx_ep_close(&k->third);
	fx_close(&k->f);
}

static void say(struct keyed *k, struct fx_ep *from, fi_addr_t to, const char *text)
{
	CU_ASSERT_EQUAL(FX_RETRY(&k->f, fi_inject(from->ep, text, strlen(text) + 1, to)), 0);
}

/* The next entry is of the receive into @p buf, which brought @p text from @p src. */
static void heard(struct keyed *k, struct fx_ep *e, char *buf, const char *text, fi_addr_t src)
{
	double end = fx_now_ms() + FX_MS;
	struct fi_cq_tagged_entry entry;
	fi_addr_t from = FI_ADDR_UNSPEC;
	ssize_t n;

	while ((n = fi_cq_readfrom(e->rxcq, &entry, 1, &from)) == -FI_EAGAIN && fx_now_ms() < end)
		fx_progress(&k->f);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_PTR_EQUAL(entry.op_context, buf);
	CU_ASSERT_STRING_EQUAL(buf, text);
	CU_ASSERT_EQUAL(from, src);
}

static void hear_any(struct keyed *k, struct fx_ep *e, const char *text, fi_addr_t src)
{
	char buf[32] = "";

	CU_ASSERT_EQUAL(fi_recv(e->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	heard(k, e, buf, text, src);
}

static int post_from(struct fx_ep *e, char *buf, size_t len, fi_addr_t src, uint64_t flags)
{
	struct iovec iov = {buf, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = src, .context = buf};

	return (int)fi_recvmsg(e->ep, &msg, flags);
}

/* ---- data ---- */

static void test_B11_av_one_endpoint_under_several_keys(void)
{
	struct keyed k;

	open_keyed(&k, CAPS, 3, 1, 2);
	for (int i = 0; i < 3; i++) {
		say(&k, &k.f.a, k.a.b[0], "to b");
		hear_any(&k, &k.f.b, "to b", k.b.a[0]);
		say(&k, &k.f.a, k.a.c[1], "to c");
		hear_any(&k, &k.third, "to c", k.c.a[1]);
		say(&k, &k.f.b, k.b.a[0], "from b");
		hear_any(&k, &k.f.a, "from b", k.a.b[0]);
		say(&k, &k.third, k.c.a[1], "from c");
		hear_any(&k, &k.f.a, "from c", k.a.c[1]);
	}
	/* oneself is a peer as well */
	say(&k, &k.f.a, k.a.a[1], "myself");
	hear_any(&k, &k.f.a, "myself", k.a.a[1]);
	CU_ASSERT_EQUAL(fx_stat(&k.f, "engine:0", "drop_key"), 0);
	CU_ASSERT_EQUAL(fx_stat(&k.f, "engine:0", "drop_tag"), 0);
	close_keyed(&k);
}

static void test_B11_av_one_peer_under_two_keys_is_two(void)
{
	struct keyed k;

	open_keyed(&k, CAPS, 3, 3, 0);
	CU_ASSERT_NOT_EQUAL(k.a.b[0], k.a.b[1]);
	CU_ASSERT_NOT_EQUAL(k.b.a[0], k.b.a[1]);
	for (int i = 0; i < 2; i++) {
		say(&k, &k.f.a, k.a.b[i], "there");
		hear_any(&k, &k.f.b, "there", k.b.a[i]);
		say(&k, &k.f.b, k.b.a[i], "and back");
		hear_any(&k, &k.f.a, "and back", k.a.b[i]);
	}
	close_keyed(&k);
}

static void test_B11_av_without_a_common_key(void)
{
	struct fx_comp c;
	struct keyed k;
	char in[16];

	open_keyed(&k, CAPS, 1, 2, 0);
	CU_ASSERT_EQUAL(fi_recv(k.f.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	CU_ASSERT_EQUAL(fi_send(k.f.a.ep, "x", 2, NULL, k.a.b[0], &k), 0);
	FX_WAIT_ERR(&k.f, k.f.a.txcq, &k, FI_EKEYREJECTED, &c);
	CU_ASSERT_TRUE(fx_stays_empty(&k.f, k.f.b.rxcq));
	close_keyed(&k);
}

static void test_B11_av_keys_are_those_at_enable(void)
{
	fi_addr_t late, to;
	struct fx_comp c;
	struct keyed k;

	open_keyed(&k, CAPS, 1, 3, 0);
	late = add_key(k.f.a.av, key_text[1]);
	to = add_peer(k.f.a.av, k.f.b.name, late);
	CU_ASSERT_EQUAL(fi_send(k.f.a.ep, "x", 2, NULL, to, &k), 0);
	FX_WAIT_ERR(&k.f, k.f.a.txcq, &k, FI_EKEYREJECTED, &c);
	/* what it had goes on */
	say(&k, &k.f.a, k.a.b[0], "still");
	hear_any(&k, &k.f.b, "still", k.b.a[0]);
	/* the late key is nobody's yet, and can go; the other is an endpoint's */
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &to, 1, 0), 0);
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &late, 1, FI_AUTH_KEY), 0);
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &k.a.key[0], 1, FI_AUTH_KEY), -FI_EBUSY);
	close_keyed(&k);
}

static void test_B11_av_a_peer_that_comes_back(void)
{
	fi_addr_t key;
	double start, end;
	struct fx_comp c;
	struct keyed k;
	char name[16], in[16];

	open_keyed(&k, CAPS, 3, 3, 0);
	say(&k, &k.f.a, k.a.b[1], "one");
	hear_any(&k, &k.f.b, "one", k.b.a[1]);
	memcpy(name, k.f.b.name, sizeof(name));
	/* when: b is another on the same address, and knows nothing of the flow */
	fx_ep_close(&k.f.b);
	fx_ep_open(&k.f, &k.f.b);
	CU_ASSERT_EQUAL(fi_setname(&k.f.b.ep->fid, name, sizeof(name)), 0);
	key = add_key(k.f.b.av, key_text[1]);
	fx_ep_enable(&k.f.b);
	CU_ASSERT_EQUAL(fi_recv(k.f.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	start = fx_now_ms();
	end = start + FX_MS;
	do {
		CU_ASSERT_EQUAL_FATAL(fi_send(k.f.a.ep, "two", 4, NULL, k.a.b[1], &k), 0);
		CU_ASSERT_FATAL(fx_wait(&k.f, k.f.a.txcq, &c));
	} while (c.err.err && fx_now_ms() < end);
	/* then: a learns it by the reset, long before the old one would count as dead */
	CU_ASSERT_EQUAL(c.err.err, 0);
	CU_ASSERT_TRUE(fx_now_ms() - start < fx_dead_ms() - 500);
	heard(&k, &k.f.b, in, "two", FI_ADDR_NOTAVAIL);
	CU_ASSERT_EQUAL(fi_av_remove(k.f.b.av, &key, 1, FI_AUTH_KEY), -FI_EBUSY);
	close_keyed(&k);
}

/* ---- receives for a key ---- */

static void test_B11_av_receive_for_a_key(void)
{
	char one[16] = "", two[16] = "", any[16] = "";
	struct keyed k;

	open_keyed(&k, CAPS, 3, 3, 2);
	/* posted before the messages */
	CU_ASSERT_EQUAL(post_from(&k.f.b, two, 16, k.b.key[1], FI_AUTH_KEY), 0);
	CU_ASSERT_EQUAL(post_from(&k.f.b, one, 16, k.b.key[0], FI_AUTH_KEY), 0);
	say(&k, &k.f.a, k.a.b[0], "first key");
	heard(&k, &k.f.b, one, "first key", k.b.a[0]);
	say(&k, &k.third, k.c.b[1], "from c");
	heard(&k, &k.f.b, two, "from c", k.b.c[1]);
	/* and after them: one under another key is left for others */
	say(&k, &k.f.a, k.a.b[0], "left");
	say(&k, &k.f.a, k.a.b[1], "second key");
	CU_ASSERT_EQUAL(post_from(&k.f.b, two, 16, k.b.key[1], FI_AUTH_KEY), 0);
	heard(&k, &k.f.b, two, "second key", k.b.a[1]);
	CU_ASSERT_EQUAL(post_from(&k.f.b, any, 16, FI_ADDR_UNSPEC, FI_AUTH_KEY), 0);
	heard(&k, &k.f.b, any, "left", k.b.a[0]);
	close_keyed(&k);
}

static void test_B11_av_receive_for_a_peer_under_a_key(void)
{
	char one[16] = "", two[16] = "";
	struct keyed k;

	open_keyed(&k, CAPS, 3, 3, 0);
	CU_ASSERT_EQUAL(post_from(&k.f.b, two, 16, k.b.a[1], 0), 0);
	CU_ASSERT_EQUAL(post_from(&k.f.b, one, 16, k.b.a[0], 0), 0);
	say(&k, &k.f.a, k.a.b[0], "first key");
	heard(&k, &k.f.b, one, "first key", k.b.a[0]);
	say(&k, &k.f.a, k.a.b[1], "second key");
	heard(&k, &k.f.b, two, "second key", k.b.a[1]);
	close_keyed(&k);
}

static void test_B11_av_flag_where_it_is_not_taken(void)
{
	struct fx_opt opt = {.caps = CAPS};
	struct iovec iov = {(char[4]){""}, 4};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1};
	fi_addr_t addr;
	struct keyed k;
	char buf[16];
	struct fx f;

	open_keyed(&k, CAPS, 1, 1, 0);
	CU_ASSERT_EQUAL(post_from(&k.f.b, buf, 16, k.b.key[0] + 1, FI_AUTH_KEY), -FI_EINVAL);
	CU_ASSERT_EQUAL(post_from(&k.f.b, buf, 16, k.b.a[0], FI_AUTH_KEY), -FI_EINVAL);
	CU_ASSERT_EQUAL(post_from(&k.f.b, buf, 16, k.b.key[0], 0), -FI_EINVAL);
	msg.addr = k.b.a[0];
	CU_ASSERT_EQUAL(fi_sendmsg(k.f.b.ep, &msg, FI_AUTH_KEY), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_send(k.f.b.ep, buf, 1, NULL, k.b.key[0], NULL), -FI_EINVAL);
	close_keyed(&k);
	/* without directed receives */
	open_keyed(&k, FI_MSG, 1, 1, 0);
	CU_ASSERT_EQUAL(post_from(&k.f.b, buf, 16, k.b.key[0], FI_AUTH_KEY), -FI_EBADFLAGS);
	close_keyed(&k);
	/* and where keys are not the vector's */
	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(post_from(&f.b, buf, 16, f.b.a, FI_AUTH_KEY), -FI_EBADFLAGS);
	addr = f.b.a;
	CU_ASSERT_EQUAL(fi_av_insert(f.b.av, f.a.name, 1, &addr, FI_AUTH_KEY, NULL), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_av_remove(f.b.av, &addr, 1, FI_AUTH_KEY), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(f.b.av, "key", 3, &addr, 0), -FI_EINVAL);
	fx_close(&f);
}

static void test_B11_av_source_err_names_the_key(void)
{
	char rx[8] = "", addr[64];
	struct fi_cq_err_entry err = {.err_data = addr, .err_data_size = sizeof(addr)};
	double end = fx_now_ms() + FX_MS;
	struct fi_cq_tagged_entry e;
	struct keyed k;
	fi_addr_t a;
	ssize_t n;

	open_keyed(&k, FI_MSG | FI_SOURCE | FI_SOURCE_ERR, 3, 3, 0);
	CU_ASSERT_EQUAL(fi_av_remove(k.f.b.av, &k.b.a[1], 1, 0), 0);
	CU_ASSERT_EQUAL(fi_recv(k.f.b.ep, rx, 8, NULL, FI_ADDR_UNSPEC, rx), 0);
	say(&k, &k.f.a, k.a.b[1], "abc");
	while ((n = fi_cq_read(k.f.b.rxcq, &e, 1)) == -FI_EAGAIN && fx_now_ms() < end)
		fx_progress(&k.f);
	CU_ASSERT_EQUAL(n, -FI_EAVAIL);
	CU_ASSERT_EQUAL_FATAL(fi_cq_readerr(k.f.b.rxcq, &err, 0), 1);
	CU_ASSERT_EQUAL(err.err, FI_EADDRNOTAVAIL);
	CU_ASSERT_EQUAL(err.src_addr, k.b.key[1]);
	CU_ASSERT_EQUAL(memcmp(addr, k.f.a.name, k.f.a.namelen), 0);
	/* fit for fi_av_insert, both of it */
	a = add_peer(k.f.b.av, addr, err.src_addr);
	say(&k, &k.f.a, k.a.b[1], "x");
	hear_any(&k, &k.f.b, "x", a);
	close_keyed(&k);
}

/* ---- the vector ---- */

static void test_B11_av_inserting_peers(void)
{
	fi_addr_t two[2], key;
	int errors[2] = {-1, -1};
	char name[64], both[32];
	size_t len = sizeof(name);
	struct keyed k;

	open_keyed(&k, CAPS, 1, 1, 0);
	key = k.a.key[0];
	/* all packets are under a key: an address without one cannot be */
	CU_ASSERT_EQUAL(fi_av_insert(k.f.a.av, k.f.b.name, 1, two, 0, NULL), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_insert(k.f.a.av, k.f.b.name, 1, NULL, FI_AUTH_KEY, NULL), -FI_EINVAL);
	/* each address with its own; one that is none fails alone */
	memcpy(both, k.f.a.name, 16);
	memcpy(both + 16, k.f.b.name, 16);
	two[0] = key + 1;
	two[1] = key;
	CU_ASSERT_EQUAL(fi_av_insert(k.f.a.av, both, 2, two, FI_AUTH_KEY | FI_SYNC_ERR, errors), 1);
	CU_ASSERT_EQUAL(two[0], FI_ADDR_NOTAVAIL);
	CU_ASSERT_EQUAL(errors[0], FI_EINVAL);
	CU_ASSERT_EQUAL(two[1], k.a.b[0]);
	CU_ASSERT_EQUAL(errors[1], 0);
	/* the others that insert */
	two[0] = two[1] = key;
	CU_ASSERT_EQUAL(fi_av_insertsvc(k.f.a.av, "10.99.0.7", "4000", two, FI_AUTH_KEY, NULL), 1);
	CU_ASSERT_EQUAL(fi_av_lookup(k.f.a.av, two[0], name, &len), 0);
	two[0] = two[1] = key;
	CU_ASSERT_EQUAL(
		fi_av_insertsym(k.f.a.av, "10.99.0.8", 2, "4000", 1, two, FI_AUTH_KEY, NULL), 2);
	CU_ASSERT_NOT_EQUAL(two[0], two[1]);
	/* a key is no address */
	CU_ASSERT_EQUAL(fi_av_lookup(k.f.a.av, key, name, &len), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &key, 1, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, two, 1, FI_AUTH_KEY), -FI_EINVAL);
	close_keyed(&k);
}

static void test_B11_av_inserting_and_looking_up_keys(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fx_opt opt = {.av_keys = true};
	fi_addr_t key[17], again;
	char text[300], out[300];
	struct fid_av *av;
	struct fx f;
	size_t len;

	fx_open_domain(&f, &opt);
	CU_ASSERT_EQUAL_FATAL(fi_av_open(f.domain, &attr, &av, NULL), 0);
	memset(text, 'k', sizeof(text));
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 0, key, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 257, key, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, NULL, 5, key, 0), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 5, key, FI_AUTH_KEY), -FI_EBADFLAGS);
	for (size_t i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 241 + i, &key[i], 0), 0);
	CU_ASSERT_EQUAL(f.info->domain_attr->max_ep_auth_key, 16);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 5, &key[16], 0), -FI_ENOSPC);
	/* the same again is the same, to be removed as often */
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 243, &again, 0), 0);
	CU_ASSERT_EQUAL(again, key[2]);
	CU_ASSERT_EQUAL(fi_av_remove(av, &again, 1, FI_AUTH_KEY), 0);
	len = sizeof(out);
	CU_ASSERT_EQUAL(fi_av_lookup_auth_key(av, key[2], out, &len), 0);
	CU_ASSERT_EQUAL(len, 243);
	CU_ASSERT_EQUAL(memcmp(out, text, len), 0);
	/* cut, and the length tells */
	memset(out, 0, sizeof(out));
	len = 3;
	CU_ASSERT_EQUAL(fi_av_lookup_auth_key(av, key[2], out, &len), 0);
	CU_ASSERT_EQUAL(len, 243);
	CU_ASSERT_EQUAL(out[2], 'k');
	CU_ASSERT_EQUAL(out[3], 0);
	CU_ASSERT_EQUAL(fi_av_remove(av, &key[2], 1, FI_AUTH_KEY), 0);
	CU_ASSERT_EQUAL(fi_av_remove(av, &key[2], 1, FI_AUTH_KEY), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_lookup_auth_key(av, key[2], out, &len), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(av, text, 5, &key[16], 0), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

/* Packets name a key by 16 bits; these two have the same ones (without FI_PMF_ENCRYPT). */
static void test_B11_av_keys_that_packets_cannot_tell_apart(void)
{
	static const char one[] = "a key 201", other[] = "a key 581";
	fi_addr_t key, none = FI_ADDR_NOTAVAIL, peer;
	char in[16] = "";
	struct keyed k;

	open_keyed(&k, CAPS, 1, 1, 0);
	key = add_key(k.f.a.av, one);
	CU_ASSERT_EQUAL(fi_av_insert_auth_key(k.f.a.av, other, strlen(other), &none, 0),
			-FI_EINVAL);
	CU_ASSERT_EQUAL(none, FI_ADDR_NOTAVAIL);
	/* what is there is as it was */
	CU_ASSERT_EQUAL(add_key(k.f.a.av, one), key);
	peer = add_peer(k.f.a.av, k.f.b.name, key);
	CU_ASSERT_EQUAL(fi_recv(k.f.b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	say(&k, &k.f.a, k.a.b[0], "still");
	heard(&k, &k.f.b, in, "still", k.b.a[0]);
	/* gone with all that holds it, the first leaves its place to the other */
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &peer, 1, 0), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &key, 1, FI_AUTH_KEY), 0);
	add_key(k.f.a.av, other);
	close_keyed(&k);
}

/* FI_EVENT: the addresses go in with their keys and come out when the event says so. */
static void test_B11_av_events(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
	struct fx_opt opt = {.av_keys = true};
	struct fi_eq_err_entry err = {0};
	fi_addr_t key, addr[3];
	struct fi_eq_entry e;
	char names[48], out[64];
	struct fid_av *av;
	struct fid_eq *eq;
	size_t len;
	uint32_t event;
	struct fx f;

	fx_open_domain(&f, &opt);
	for (int i = 0; i < 3; i++) {
		memcpy(names + 16 * i, f.info->src_addr, 16);
		names[16 * i + 3] = (char)(i + 1); /* a port */
	}
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f.fabric, &eq_attr, &eq, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fi_av_open(f.domain, &attr, &av, NULL), 0);
	CU_ASSERT_EQUAL(fi_av_bind(av, &eq->fid, 0), 0);
	key = add_key(av, key_text[0]); /* at once: it has no event (fi_av(3)) */
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	addr[0] = addr[2] = key;
	addr[1] = key + 1;
	CU_ASSERT_EQUAL(fi_av_insert(av, names, 3, addr, FI_AUTH_KEY, names), 0);
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAVAIL);
	CU_ASSERT(fi_eq_readerr(eq, &err, 0) > 0);
	CU_ASSERT_EQUAL(err.data, 1);
	CU_ASSERT_EQUAL(err.err, FI_EINVAL);
	CU_ASSERT_PTR_EQUAL(err.context, names);
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), 0), sizeof(e));
	CU_ASSERT_EQUAL(event, FI_AV_COMPLETE);
	CU_ASSERT_EQUAL(e.data, 2);
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAGAIN);
	CU_ASSERT_EQUAL(addr[1], FI_ADDR_NOTAVAIL);
	for (int i = 0; i < 3; i += 2) {
		len = sizeof(out);
		CU_ASSERT_EQUAL(fi_av_lookup(av, addr[i], out, &len), 0);
		CU_ASSERT_EQUAL(memcmp(out, names + 16 * i, 16), 0);
		len = sizeof(out);
		CU_ASSERT_EQUAL(fi_av_lookup_auth_key(av, addr[i], out, &len), 0);
		CU_ASSERT_EQUAL(len, strlen(key_text[0]));
	}
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	fx_close_domain(&f);
}

static void test_B11_av_a_removed_key_of_a_peer(void)
{
	fi_addr_t key, peer, other;
	struct keyed k;
	char out[64];
	size_t len = sizeof(out);

	open_keyed(&k, CAPS, 1, 1, 0);
	key = add_key(k.f.a.av, key_text[2]);
	peer = add_peer(k.f.a.av, k.f.b.name, key);
	/* an endpoint alone keeps a key; what was inserted under it remembers it */
	CU_ASSERT_EQUAL(fi_av_remove(k.f.a.av, &key, 1, FI_AUTH_KEY), 0);
	CU_ASSERT_EQUAL(fi_av_lookup_auth_key(k.f.a.av, peer, out, &len), 0);
	CU_ASSERT_EQUAL(len, strlen(key_text[2]));
	CU_ASSERT_EQUAL(memcmp(out, key_text[2], len), 0);
	/* another key is another one, though the first is gone */
	other = add_key(k.f.a.av, key_text[1]);
	CU_ASSERT_NOT_EQUAL(other, key);
	CU_ASSERT_EQUAL(add_key(k.f.a.av, key_text[2]), key);
	CU_ASSERT_EQUAL(add_peer(k.f.a.av, k.f.b.name, key), peer);
	close_keyed(&k);
}

/* ---- attributes, endpoints, regions ---- */

static void test_B11_av_attributes(void)
{
	struct fx_opt opt = {.av_keys = true};
	struct fi_info *hints = fx_hints(&opt), *info;

	CU_ASSERT_EQUAL_FATAL(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), 0);
	CU_ASSERT_EQUAL(info->domain_attr->auth_key_size, FI_AV_AUTH_KEY);
	CU_ASSERT_PTR_NULL(info->domain_attr->auth_key);
	CU_ASSERT_EQUAL(info->domain_attr->max_ep_auth_key, 16);
	fi_freeinfo(info);
	hints->domain_attr->max_ep_auth_key = 17;
	CU_ASSERT_EQUAL(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->max_ep_auth_key = 0;
	/* the keys are the vector's, and a connection has none */
	hints->ep_attr->type = FI_EP_MSG;
	CU_ASSERT_EQUAL(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->auth_key = (uint8_t *)strdup("key");
	hints->ep_attr->auth_key_size = 3;
	CU_ASSERT_EQUAL(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void test_B11_av_endpoints(void)
{
	struct fx_opt opt = {.av_keys = true};
	struct fi_info *info;
	struct fid_ep *ep;
	struct fx f;

	fx_open_domain(&f, &opt);
	info = fi_dupinfo(f.info);
	info->ep_attr->auth_key = (uint8_t *)strdup("key");
	info->ep_attr->auth_key_size = 3;
	CU_ASSERT_EQUAL(fi_endpoint(f.domain, info, &ep, NULL), -FI_EINVAL);
	fi_freeinfo(info);
	fx_ep_open(&f, &f.a);
	/* one that has no key could talk to nobody */
	CU_ASSERT_EQUAL(fi_enable(f.a.ep), -FI_ENOKEY);
	add_key(f.a.av, "key");
	fx_ep_enable(&f.a);
	fx_close(&f);
}

static void test_B11_av_keys_of_closed_endpoints_can_go(void)
{
	struct fx_opt opt = {.av_keys = true};
	fi_addr_t key;
	struct fx f;

	fx_open_domain(&f, &opt);
	fx_ep_open(&f, &f.a);
	key = add_key(f.a.av, "key");
	fx_ep_enable(&f.a);
	CU_ASSERT_EQUAL(fi_av_remove(f.a.av, &key, 1, FI_AUTH_KEY), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&f.a.ep->fid), 0);
	f.a.ep = NULL;
	CU_ASSERT_EQUAL(fi_av_remove(f.a.av, &key, 1, FI_AUTH_KEY), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.txcq->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&f.a.rxcq->fid), 0);
	fx_close_domain(&f);
}

static void test_B11_av_regions(void)
{
	struct iovec iov = {(char[64]){""}, 64};
	struct fi_mr_attr attr = {.mr_iov = &iov, .iov_count = 1, .access = FI_SEND};
	struct fi_mr_auth_key key;
	struct fid_mr *mr;
	struct keyed k;

	open_keyed(&k, CAPS, 1, 1, 0);
	CU_ASSERT_EQUAL(fi_mr_reg(k.f.domain, iov.iov_base, 64, FI_SEND, 0, 0, 0, &mr, NULL),
			-FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_mr_regv(k.f.domain, &iov, 1, FI_SEND, 0, 0, 0, &mr, NULL), -FI_ENOSYS);
	CU_ASSERT_EQUAL(fi_mr_regattr(k.f.domain, &attr, 0, &mr), -FI_EINVAL);
	key.av = k.f.a.av;
	key.src_addr = k.a.key[0];
	attr.auth_key = (uint8_t *)&key;
	attr.auth_key_size = sizeof(key);
	CU_ASSERT_EQUAL(fi_mr_regattr(k.f.domain, &attr, FI_AUTH_KEY, &mr), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL_FATAL(fi_mr_regattr(k.f.domain, &attr, 0, &mr), 0);
	CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
	close_keyed(&k);
}

static const struct fx_test tests[] = {
	FX_TEST(test_B11_av_one_endpoint_under_several_keys),
	FX_TEST(test_B11_av_one_peer_under_two_keys_is_two),
	FX_TEST(test_B11_av_without_a_common_key),
	FX_TEST(test_B11_av_keys_are_those_at_enable),
	FX_TEST(test_B11_av_a_peer_that_comes_back),
	FX_TEST(test_B11_av_receive_for_a_key),
	FX_TEST(test_B11_av_receive_for_a_peer_under_a_key),
	FX_TEST(test_B11_av_flag_where_it_is_not_taken),
	FX_TEST(test_B11_av_source_err_names_the_key),
	FX_TEST(test_B11_av_inserting_peers),
	FX_TEST(test_B11_av_inserting_and_looking_up_keys),
	FX_TEST(test_B11_av_keys_that_packets_cannot_tell_apart),
	FX_TEST(test_B11_av_events),
	FX_TEST(test_B11_av_a_removed_key_of_a_peer),
	FX_TEST(test_B11_av_attributes),
	FX_TEST(test_B11_av_endpoints),
	FX_TEST(test_B11_av_keys_of_closed_endpoints_can_go),
	FX_TEST(test_B11_av_regions),
};
FX_MAIN("av_key")
