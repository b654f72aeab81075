/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Starts EAL once and runs all tests that need a port.
 */
#include "port_test.h"

#include <pthread.h>
#include <signal.h>

#include "pmd_glue/eal.h"

struct pmf_port *port;
struct pmf_queue *q;

void port_test_open(const char *text, const char *fault)
{
	struct pmf_port_conf conf;
	char err[256] = "";

	CU_ASSERT_EQUAL_FATAL(pmf_port_conf_parse(text, &conf, err, sizeof(err)), 0);
	conf.fault = fault;
	if (pmf_port_open(&conf, &port, err, sizeof(err)) != 0) {
		printf("\n  %s\n", err);
		CU_FAIL_FATAL("the port does not open");
	}
	q = &port->queue[0];
	/* As a driver that does not give frames back, unless a test says otherwise. */
	q->hairpin = false;
	port->announce = false;
}

void port_test_close(void)
{
	const unsigned int rx_lost = rte_mempool_in_use_count(port->rx_pool);
	const unsigned int tx_lost =
		rte_mempool_in_use_count(port->tx_pool) - q->nstash - q->nstage;

	CU_ASSERT_EQUAL(rx_lost, 0);
	CU_ASSERT_EQUAL(tx_lost, 0);
	pmf_port_close(port);
	port = NULL;
	q = NULL;
}

struct rte_mbuf *frame_mbuf(const struct frame *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port->rx_pool);

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	memcpy(rte_pktmbuf_append(m, f->len), f->b, f->len);
	return m;
}

bool port_test_rx(const struct frame *f, pmf_ns_t now)
{
	struct rte_mbuf *m = frame_mbuf(f);
	struct pmf_frame parsed;

	if (!pmf_frame_parse(q, m, &parsed, now))
		return false;
	rte_pktmbuf_free(m);
	return true;
}

bool port_test_tx(struct frame *out)
{
	struct rte_mbuf *m;

	if (q->nstage == 0)
		return false;
	m = q->stage[0];
	memmove(q->stage, q->stage + 1, --q->nstage * sizeof(q->stage[0]));
	CU_ASSERT_FATAL(m->nb_segs == 1 && m->data_len <= sizeof(out->b));
	CU_ASSERT_EQUAL(m->pkt_len, m->data_len);
	out->len = m->data_len;
	memcpy(out->b, rte_pktmbuf_mtod(m, void *), m->data_len);
	rte_pktmbuf_free(m);
	return true;
}

int main(void)
{
	static const struct unit_suite suites[] = {
		{"frame_rx", frame_rx_tests},
		{"frame_tx", frame_tx_tests},
		{"answers", answers_tests},
		{"neigh", neigh_tests},
		{"mcast", mcast_tests},
		{"port", port_tests},
		{"link", link_tests, link_tests_init, link_tests_fini},
	};
	const struct pmf_eal_conf conf = {
		.huge = PMF_HUGE_OFF, .single_file = true, .extra = "--no-telemetry"};
	sigset_t pipe;
	char err[256];

	/* As the helper thread does: virtio-user writes to sockets that may have closed. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);

	if (pmf_eal_start(&conf, err, sizeof(err)) != 0) {
		printf("%s\n", err);
		return 2;
	}
	return test_suites(suites, PMF_ARRAY_SIZE(suites));
}
