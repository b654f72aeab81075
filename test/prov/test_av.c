/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Address vectors: rows C8 and E4.
 */
#include "fx.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* Later headers deprecate some of what is tested here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct fid_av *open_av(struct fx *f, enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = {.type = type, .flags = flags};
	struct fid_av *av;

	CU_ASSERT_EQUAL_FATAL(fi_av_open(f->domain, &attr, &av, NULL), 0);
	return av;
}

static struct sockaddr_in sin_of(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, ip, &sin.sin_addr);
	return sin;
}

static void indices_count_up(enum fi_av_type type)
{
	struct sockaddr_in in[5], out;
	fi_addr_t addr[5], two[2];
	size_t len = sizeof(out);
	struct fid_av *av;
	struct fx f;

	fx_open_domain(&f, NULL);
	av = open_av(&f, type, 0);
	for (int i = 0; i < 5; i++)
		in[i] = sin_of("10.99.0.7", (uint16_t)(1000 + i));
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 5, addr, 0, NULL), 5);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(addr[i], (fi_addr_t)i);
		CU_ASSERT_EQUAL(fi_av_lookup(av, addr[i], &out, &len), 0);
		CU_ASSERT_EQUAL(len, sizeof(out));
		CU_ASSERT_EQUAL(memcmp(&out, &in[i], sizeof(out)), 0);
	}
	/* freed ones come again, the lowest first */
	two[0] = addr[3];
	two[1] = addr[1];
	CU_ASSERT_EQUAL(fi_av_remove(av, two, 2, 0), 0);
	CU_ASSERT_EQUAL(fi_av_lookup(av, addr[1], &out, &len), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_av_remove(av, two, 1, 0), -FI_EINVAL);
	in[0] = sin_of("10.99.0.8", 1);
	in[1] = sin_of("10.99.0.8", 2);
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 2, two, 0, NULL), 2);
	CU_ASSERT_EQUAL(two[0], 1);
	CU_ASSERT_EQUAL(two[1], 3);
	CU_ASSERT_EQUAL(fi_av_lookup(av, FI_ADDR_NOTAVAIL, &out, &len), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

static void test_C8_table(void)
{
	indices_count_up(FI_AV_TABLE);
}

static void test_C8_map(void)
{
	indices_count_up(FI_AV_MAP);
}

static void test_C8_fi_addr_may_be_null(void)
{
	struct sockaddr_in in = sin_of("10.99.0.7", 9), out;
	size_t len = sizeof(out);
	struct fid_av *av;
	struct fx f;

	fx_open_domain(&f, NULL);
	av = open_av(&f, FI_AV_TABLE, 0);
	CU_ASSERT_EQUAL(fi_av_insert(av, &in, 1, NULL, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_av_lookup(av, 0, &out, &len), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

static void test_C8_the_same_address_again(void)
{
	struct sockaddr_in in = sin_of("10.99.0.7", 9), out;
	size_t len = sizeof(out);
	fi_addr_t one, two;
	struct fid_av *av;
	struct fx f;

	fx_open_domain(&f, NULL);
	av = open_av(&f, FI_AV_MAP, 0);
	CU_ASSERT_EQUAL(fi_av_insert(av, &in, 1, &one, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_av_insert(av, &in, 1, &two, 0, NULL), 1);
	CU_ASSERT_EQUAL(one, two);
	CU_ASSERT_EQUAL(fi_av_remove(av, &one, 1, 0), 0);
	CU_ASSERT_EQUAL(fi_av_lookup(av, one, &out, &len), 0);
	CU_ASSERT_EQUAL(fi_av_remove(av, &one, 1, 0), 0);
	CU_ASSERT_EQUAL(fi_av_lookup(av, one, &out, &len), -FI_EINVAL);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

static void test_C8_a_failed_address_is_marked(void)
{
	struct sockaddr_in in[3] = {sin_of("10.99.0.7", 9), sin_of("10.99.0.7", 9),
				    sin_of("10.99.0.7", 10)};
	int errors[3] = {-1, -1, -1};
	fi_addr_t addr[3];
	struct fid_av *av;
	struct fx f;

	fx_open_domain(&f, NULL);
	av = open_av(&f, FI_AV_TABLE, 0);
	in[1].sin_family = AF_INET6;
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 3, addr, FI_SYNC_ERR, errors), 2);
	CU_ASSERT_EQUAL(addr[0], 0);
	CU_ASSERT_EQUAL(addr[1], FI_ADDR_NOTAVAIL);
	CU_ASSERT_EQUAL(addr[2], 1);
	CU_ASSERT_EQUAL(errors[0], 0);
	CU_ASSERT(errors[1] > 0);
	CU_ASSERT_EQUAL(errors[2], 0);
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 1, addr, 1ull << 40, NULL), -FI_EBADFLAGS);
	CU_ASSERT_EQUAL(fi_av_remove(av, addr, 1, 1), -FI_EBADFLAGS);
	/* nobody's */
	in[0] = sin_of("0.0.0.0", 9);
	in[1] = sin_of("10.99.0.7", 0);
	in[2] = sin_of("239.1.2.3", 9);
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 3, addr, 0, NULL), 0);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

static void text_is(struct fid_av *av, fi_addr_t addr, const char *want)
{
	char raw[128], text[128];
	size_t rawlen = sizeof(raw), len = sizeof(text);

	CU_ASSERT_EQUAL(fi_av_lookup(av, addr, raw, &rawlen), 0);
	CU_ASSERT_PTR_EQUAL(fi_av_straddr(av, raw, text, &len), text);
	CU_ASSERT_STRING_EQUAL(text, want);
	CU_ASSERT_EQUAL(len, strlen(want) + 1);
	len = 5;
	fi_av_straddr(av, raw, text, &len);
	CU_ASSERT_EQUAL(strlen(text), 4);
	CU_ASSERT_EQUAL(len, strlen(want) + 1);
}

static void test_C8_insertsvc_and_straddr(void)
{
	struct fid_av *av;
	fi_addr_t addr;
	struct fx f;

	fx_open_domain(&f, NULL);
	av = open_av(&f, FI_AV_TABLE, 0);
	CU_ASSERT_EQUAL(fi_av_insertsvc(av, "10.99.0.9", "4000", &addr, 0, NULL), 1);
	text_is(av, addr, "fi_sockaddr_in://10.99.0.9:4000");
	CU_ASSERT_NOT_EQUAL(fi_av_insertsvc(av, "no such node.invalid", "1", &addr, 0, NULL), 1);
	CU_ASSERT_EQUAL(addr, FI_ADDR_NOTAVAIL);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

static void test_C8_insertsym_counts_up(void)
{
	static const char *const want[] = {
		"fi_sockaddr_in://10.99.0.254:4000", "fi_sockaddr_in://10.99.0.254:4001",
		"fi_sockaddr_in://10.99.0.255:4000", "fi_sockaddr_in://10.99.0.255:4001",
		"fi_sockaddr_in://10.99.1.0:4000",   "fi_sockaddr_in://10.99.1.0:4001"};
	struct fid_av *av;
	fi_addr_t addr[6];
	struct fx f;

	fx_open_domain(&f, NULL);
	av = open_av(&f, FI_AV_TABLE, 0);
	CU_ASSERT_EQUAL(fi_av_insertsym(av, "10.99.0.254", 3, "4000", 2, addr, 0, NULL), 6);
	for (int i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(addr[i], (fi_addr_t)i);
		text_is(av, addr[i], want[i]);
	}
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	fx_close_domain(&f);
}

static void test_C8_events(void)
{
	struct sockaddr_in in[2] = {sin_of("10.99.0.7", 9), sin_of("10.99.0.7", 9)};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry e;
	fi_addr_t addr[2];
	struct fid_eq *eq;
	struct fid_av *av;
	uint32_t event;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL_FATAL(fi_eq_open(f.fabric, &eq_attr, &eq, NULL), 0);
	av = open_av(&f, FI_AV_TABLE, FI_EVENT);
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 1, addr, 0, in), -FI_ENOEQ);
	CU_ASSERT_EQUAL(fi_av_bind(av, &eq->fid, 0), 0);
	in[1].sin_family = AF_INET6;
	CU_ASSERT_EQUAL(fi_av_insert(av, in, 2, addr, 0, in), 0);
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), 0), -FI_EAVAIL);
	CU_ASSERT(fi_eq_readerr(eq, &err, 0) > 0);
	CU_ASSERT_EQUAL(err.data, 1);
	CU_ASSERT_PTR_EQUAL(err.context, in);
	CU_ASSERT(err.err > 0);
	CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &e, sizeof(e), 0), sizeof(e));
	CU_ASSERT_EQUAL(event, FI_AV_COMPLETE);
	CU_ASSERT_PTR_EQUAL(e.fid, &av->fid);
	CU_ASSERT_PTR_EQUAL(e.context, in);
	CU_ASSERT_EQUAL(e.data, 1);
	CU_ASSERT_EQUAL(addr[0], 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), -FI_EBUSY);
	CU_ASSERT_EQUAL(fi_close(&av->fid), 0);
	CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
	fx_close_domain(&f);
}

static void test_C8_a_named_vector_is_not_offered(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .name = "shared"};
	struct fid_av *av;
	struct fx f;

	fx_open_domain(&f, NULL);
	CU_ASSERT_EQUAL(fi_av_open(f.domain, &attr, &av, NULL), -FI_ENOSYS);
	fx_close_domain(&f);
}

/* Each address format from getinfo to the bytes. */
static void exchange_with(uint32_t format)
{
	struct fx_opt opt = {.addr_format = format};
	char tx[4] = "abc", rx[4];
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(f.info->addr_format, format);
	CU_ASSERT_EQUAL(f.a.a, 0);
	CU_ASSERT_EQUAL(f.a.b, 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	fx_close(&f);
}

static void test_C8_address_formats(void)
{
	exchange_with(FI_SOCKADDR_IN);
	exchange_with(FI_SOCKADDR_IN6);
	exchange_with(FI_ADDR_STR);
}

/* Of a source that the vector does not hold any more (C6). */
static void test_E4_a_removed_peer_still_comes_through(void)
{
	struct fx_opt opt = {.caps = FI_MSG | FI_SOURCE};
	char tx[4] = "abc", rx[4];
	struct fi_cq_data_entry e;
	struct fx_comp c;
	fi_addr_t src;
	struct fx f;

	fx_open(&f, &opt);
	for (int removed = 0; removed < 2; removed++) {
		if (removed)
			CU_ASSERT_EQUAL(fi_av_remove(f.b.av, &f.b.a, 1, 0), 0);
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
		src = 12345;
		CU_ASSERT_EQUAL_FATAL(FX_RETRY(&f, fi_cq_readfrom(f.b.rxcq, &e, 1, &src)), 1);
		CU_ASSERT_EQUAL(src, removed ? FI_ADDR_NOTAVAIL : f.b.a);
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	}
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, 4, NULL, f.b.a, tx), -FI_EINVAL);
	fx_close(&f);
}

static void test_E4_remove_and_insert_with_operations_in_flight(void)
{
	enum { N = 200 };
	char tx[64], rx[64];
	unsigned int got = 0;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_fill(tx, 64, 1);
	for (int i = 0; i < N; i++) {
		fi_addr_t again;

		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 64, NULL, FI_ADDR_UNSPEC, rx), 0);
		CU_ASSERT_EQUAL(FX_RETRY(&f, fi_send(f.a.ep, tx, 64, NULL, f.a.b, tx)), 0);
		CU_ASSERT_EQUAL(fi_av_remove(f.a.av, &f.a.b, 1, 0), 0);
		CU_ASSERT_EQUAL(fi_av_insert(f.a.av, f.b.name, 1, &again, 0, NULL), 1);
		CU_ASSERT_EQUAL(again, f.a.b);
	}
	for (int i = 0; i < N; i++) {
		/* accepted before its peer was removed: it ends, in success or in error */
		CU_ASSERT_FATAL(fx_wait(&f, f.a.txcq, &c));
		got += c.err.err == 0;
	}
	for (unsigned int i = 0; i < got; i++)
		FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	CU_ASSERT(got > 0);
	fx_close(&f);
}

/* The first message comes from somebody who is not in the AV yet, and is then inserted. */
static void test_E4_a_stranger_is_heard(void)
{
	struct fx_opt opt = {.no_insert = true};
	char tx[4] = "abc", rx[4];
	fi_addr_t addr;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, &opt);
	CU_ASSERT_EQUAL(fi_av_insert(f.a.av, f.b.name, 1, &addr, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, addr, tx), 0);
	FX_WAIT_OK(&f, f.b.rxcq, rx, &c);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_EQUAL(fi_av_insert(f.b.av, f.a.name, 1, NULL, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_recv(f.a.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL(fi_send(f.b.ep, tx, 4, NULL, 0, tx), 0);
	FX_WAIT_OK(&f, f.a.rxcq, rx, &c);
	fx_close(&f);
}

/* Sends that wait for their turn are for who had the address when they were posted. */
static void test_E4_posted_sends_go_to_the_removed_peer(void)
{
	enum { N = 3 };
	char tx[4] = "abc", rx[N][4], other[4];
	struct fx_ep third = {0};
	fi_addr_t addr;
	struct fx_comp c;
	struct fx f;

	fx_open(&f, NULL);
	fx_ep_open(&f, &third);
	fx_ep_enable(&third);
	CU_ASSERT_EQUAL(fi_recv(third.ep, other, 4, NULL, FI_ADDR_UNSPEC, other), 0);
	for (int i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(fi_recv(f.b.ep, rx[i], 4, NULL, FI_ADDR_UNSPEC, rx[i]), 0);
		CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	}
	CU_ASSERT_EQUAL(fi_av_remove(f.a.av, &f.a.b, 1, 0), 0);
	CU_ASSERT_EQUAL(fi_av_insert(f.a.av, third.name, 1, &addr, 0, NULL), 1);
	CU_ASSERT_EQUAL(addr, f.a.b);
	for (int i = 0; i < N; i++)
		FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT(fx_stays_empty(&f, third.rxcq));
	for (int i = 0; i < N; i++)
		FX_WAIT_OK(&f, f.b.rxcq, rx[i], &c);
	/* and those that are posted now for who has it now */
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, addr, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	FX_WAIT_OK(&f, third.rxcq, other, &c);
	fx_ep_close(&third);
	fx_close(&f);
}

static fi_addr_t source_of_next(struct fx *f)
{
	struct fi_cq_data_entry e;
	fi_addr_t src = 0;
	char rx[4];

	CU_ASSERT_EQUAL(fi_recv(f->b.ep, rx, 4, NULL, FI_ADDR_UNSPEC, rx), 0);
	CU_ASSERT_EQUAL_FATAL(FX_RETRY(f, fi_cq_readfrom(f->b.rxcq, &e, 1, &src)), 1);
	return src;
}

/* Kept messages, one of an endpoint that is gone, do not get the next peer's address. */
static void test_E4_kept_messages_forget_a_removed_peer(void)
{
	struct fx_opt opt = {.caps = FI_MSG | FI_SOURCE};
	struct fx_ep third = {0};
	char tx[4] = "abc", name[128];
	struct fx_comp c;
	fi_addr_t addr;
	size_t len;
	struct fx f;

	fx_open(&f, &opt);
	fx_ep_open(&f, &third);
	fx_ep_enable(&third);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	/* another endpoint on the same address takes the flow's place */
	len = f.a.namelen;
	memcpy(name, f.a.name, len);
	fx_ep_close(&f.a);
	fx_ep_open(&f, &f.a);
	CU_ASSERT_EQUAL(fi_setname(&f.a.ep->fid, name, len), 0);
	fx_ep_enable(&f.a);
	CU_ASSERT_EQUAL(fi_av_insert(f.a.av, f.b.name, 1, &f.a.b, 0, NULL), 1);
	CU_ASSERT_EQUAL(fi_send(f.a.ep, tx, 4, NULL, f.a.b, tx), 0);
	FX_WAIT_OK(&f, f.a.txcq, tx, &c);
	CU_ASSERT_EQUAL(fi_av_remove(f.b.av, &f.b.a, 1, 0), 0);
	CU_ASSERT_EQUAL(fi_av_insert(f.b.av, third.name, 1, &addr, 0, NULL), 1);
	CU_ASSERT_EQUAL(addr, f.b.a);
	CU_ASSERT_EQUAL(source_of_next(&f), FI_ADDR_NOTAVAIL);
	CU_ASSERT_EQUAL(source_of_next(&f), FI_ADDR_NOTAVAIL);
	fx_ep_close(&third);
	fx_close(&f);
}

static const struct fx_test tests[] = {
	FX_TEST(test_C8_table),
	FX_TEST(test_C8_map),
	FX_TEST(test_C8_fi_addr_may_be_null),
	FX_TEST(test_C8_the_same_address_again),
	FX_TEST(test_C8_a_failed_address_is_marked),
	FX_TEST(test_C8_insertsvc_and_straddr),
	FX_TEST(test_C8_insertsym_counts_up),
	FX_TEST(test_C8_events),
	FX_TEST(test_C8_a_named_vector_is_not_offered),
	FX_TEST(test_C8_address_formats),
	FX_TEST(test_E4_a_removed_peer_still_comes_through),
	FX_TEST(test_E4_remove_and_insert_with_operations_in_flight),
	FX_TEST(test_E4_a_stranger_is_heard),
	FX_TEST(test_E4_posted_sends_go_to_the_removed_peer),
	FX_TEST(test_E4_kept_messages_forget_a_removed_peer),
};
FX_MAIN("address vectors")
