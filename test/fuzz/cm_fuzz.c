/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Connections in every state: an engine with a listener and endpoints, a program that accepts,
 * rejects, connects, sends, shuts down and closes whenever the input says so, and peers that say
 * anything. They know what a peer can know (the cookies, ids and numbers that were sent to them),
 * so that they get to where a connection stands, and lie there. Time is the target's own. Whatever
 * comes, states change as they may, each posted operation has one entry, and when all is closed
 * nothing is left.
 */
#include "msg/cm_state.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rte_mempool.h>

#include "completion/cq.h"
#include "fuzz.h"
#include "input.h"
#include "msg/addr.h"
#include "msg/calls.h"
#include "msg/stack.h"
#include "pmd_glue/eal.h"
#include "port.h"

#define PEERS                                                                              \
	3 /* of the last one the program asks for connections; the others ask the listener \
	   */
#define PEER_PORT 4000
#define LISTENER_PORT 5000
#define EPS 4
#define OPS 64
#define REQUESTS 8

/* What a peer has been told, and what it has said. */
struct peer {
	uint16_t port, to;
	uint64_t inc, conn; /* its own */
	uint64_t their_inc, their_conn, hello_conn, nonce;
	uint64_t cookie_time, cookie_mac;
	uint32_t psn, txno, ack, ack_txno;
};

static struct pmf_port *port;
static struct pmf_queue *q;
static struct pmf_engine *e;
static struct pmf_progress progress;
static struct pmf_conf conf;
static pmf_ns_t now;

static struct peer peer[PEERS];
static struct pmf_ep *listener, *ep[EPS];
static struct fid listener_fid, ep_fid[EPS];
static struct fi_info *info;
static struct pmf_eq eq;
static struct pmf_cq cq;
static fid_t request[REQUESTS];
static unsigned int nrequests;
static bool posted[OPS];
static uint8_t buf[8192], out[8192];
static uint64_t lives;
static uint32_t nstubs, nblocks; /* of unexpected memory, all free */

/* Time and chance are the input's. */
pmf_ns_t __wrap_pmf_clock_monotonic(void);
pmf_ns_t __wrap_pmf_clock_monotonic(void)
{
	return now;
}

void __wrap_pmf_random(void *p, size_t len);
void __wrap_pmf_random(void *p, size_t len)
{
	static uint64_t n;

	for (size_t i = 0; i < len; i++)
		((uint8_t *)p)[i] = (uint8_t)((++n * 0x9e3779b97f4a7c15ull) >> 56);
}

static void no_log(enum pmf_log_level level, const char *line)
{
}

/* ---- the program ---- */

static void open_listener(void)
{
	struct pmf_ep_attr attr = {
		.type = PMF_EP_PASSIVE, .progress = &progress, .tx_size = 1, .rx_size = 1};

	attr.addr = port->conf.v4.addr;
	attr.addr.port = LISTENER_PORT;
	FUZZ_CHECK(pmf_ep_open(&attr, &listener) == 0);
	pmf_cm_set_eq(listener, &eq, &listener_fid);
	FUZZ_CHECK(pmf_cm_listen(listener, info) == 0);
	pmf_cm_backlog(listener, 3);
}

static struct pmf_ep *open_ep(unsigned int i, struct pmf_connreq *req)
{
	struct pmf_ep_attr attr = {
		.type = PMF_EP_MSG,
		.progress = &progress,
		.caps = FI_SEND | FI_RECV,
		.tx_size = 8,
		.rx_size = 8,
		.inject_size = 64,
		.iov_limit = 4,
		.max_msg_size = sizeof(buf),
	};

	attr.addr = port->conf.v4.addr;
	FUZZ_CHECK(pmf_ep_open(&attr, &ep[i]) == 0);
	ep[i]->fid.msg = &pmf_ops_msg;
	pmf_cm_set_eq(ep[i], &eq, &ep_fid[i]);
	FUZZ_CHECK(pmf_ep_bind_cq(ep[i], &cq, FI_TRANSMIT) == 0);
	FUZZ_CHECK(pmf_ep_bind_cq(ep[i], &cq, FI_RECV) == 0);
	if (req)
		FUZZ_CHECK(pmf_cm_adopt(ep[i], req) == 0);
	FUZZ_CHECK(pmf_ep_enable(ep[i]) == 0);
	return ep[i];
}

static void close_ep(unsigned int i)
{
	if (!ep[i])
		return;
	pmf_ep_close(ep[i]);
	pmf_eq_forget(&eq, &ep_fid[i]);
	ep[i] = NULL;
	/* Nothing of its operations comes any more. */
	for (unsigned int k = i; k < OPS; k += EPS)
		posted[k] = false;
}

static void close_listener(void)
{
	if (!listener)
		return;
	pmf_ep_close(listener);
	pmf_eq_forget(&eq, &listener_fid);
	listener = NULL;
}

static void take_entries(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err;
	ssize_t rc;

	for (;;) {
		struct pmf_addr sender;
		bool *op;

		rc = pmf_cq_take(&cq, &entry, 1, NULL);
		if (rc == -FI_EAGAIN)
			return;
		if (rc == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			FUZZ_CHECK(pmf_cq_take_err(&cq, &err, 0, FI_VERSION(1, 17), &sender) == 1);
			FUZZ_CHECK(err.err > 0 && err.len <= sizeof(buf));
			entry.op_context = err.op_context;
		} else {
			FUZZ_CHECK(rc == 1 && entry.len <= sizeof(buf));
		}
		op = entry.op_context;
		FUZZ_CHECK(op >= posted && op < posted + OPS && *op);
		*op = false;
	}
}

static void take_events(void)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + PMF_CM_DATA];
	} entry;
	struct fi_eq_err_entry err = {0};
	uint32_t event;
	ssize_t n;

	while ((n = pmf_eq_read(&eq, &event, &entry, sizeof(entry), 0)) != -FI_EAGAIN) {
		if (n == -FI_EAVAIL) {
			FUZZ_CHECK(pmf_eq_readerr(&eq, &err, 0) > 0 && err.err > 0);
			continue;
		}
		FUZZ_CHECK(n >= (ssize_t)sizeof(entry.cm) && n <= (ssize_t)sizeof(entry));
		if (event != FI_CONNREQ) {
			FUZZ_CHECK(event == FI_CONNECTED || event == FI_SHUTDOWN);
			continue;
		}
		if (nrequests < REQUESTS)
			request[nrequests++] = entry.cm.info->handle;
		fi_freeinfo(entry.cm.info);
	}
}

static void answer_request(uint8_t how, struct input *in)
{
	uint8_t data[PMF_CM_DATA];
	size_t len = bytes_of(in, data, byte(in));
	struct pmf_connreq *req = NULL;
	unsigned int i = how % EPS;

	while (!req && nrequests)
		req = pmf_connreq_take(request[--nrequests]);
	if (!req)
		return;
	if (how & 0x40) {
		pmf_cm_reject(req, data, len);
		return;
	}
	close_ep(i);
	open_ep(i, req);
	if (how & 0x20) /* the program accepts later, or never */
		return;
	pmf_cm_accept(ep[i], data, len);
}

static void connect_to_peer(unsigned int i, struct input *in)
{
	struct pmf_addr to = port->conf.v4.addr;
	uint8_t data[PMF_CM_DATA];
	size_t len = bytes_of(in, data, byte(in));

	to.port = PEER_PORT + PEERS - 1;
	if (!ep[i])
		open_ep(i, NULL);
	pmf_cm_connect(ep[i], &to, data, len);
	peer[PEERS - 1].to = ep[i]->addr.port;
}

static bool *free_op(unsigned int i)
{
	while (i < OPS && posted[i])
		i += EPS;
	return i < OPS ? &posted[i] : NULL;
}

static void post(unsigned int i, bool sends, size_t len)
{
	bool *op = free_op(i);

	if (!ep[i] || !op)
		return;
	*op = true;
	if ((sends ? fi_send(&ep[i]->fid, out, len, NULL, 0, op)
		   : fi_recv(&ep[i]->fid, buf, len, NULL, 0, op)) != 0)
		*op = false;
}

/* ---- the peers ---- */

static void learn(struct peer *p, const struct pmf_hdr *hdr)
{
	switch (hdr->type) {
	case PMF_PT_HELLO:
		p->their_inc = hdr->inc;
		p->hello_conn = hdr->my_conn;
		p->nonce = hdr->nonce;
		break;
	case PMF_PT_CHALLENGE:
		p->their_inc = hdr->inc;
		p->cookie_time = hdr->cookie_time;
		p->cookie_mac = hdr->cookie_mac;
		break;
	case PMF_PT_OPEN:
		p->their_conn = hdr->my_conn;
		/* fall through */
	case PMF_PT_DATA:
	case PMF_PT_ACK:
	case PMF_PT_PROBE:
		if (hdr->body_len && hdr->psn == p->ack)
			p->ack++;
		p->ack_txno = hdr->txno;
		break;
	default:
		break;
	}
}

/* What the engine has sent goes through the loop ring, as what it receives does. */
static void hear(void)
{
	struct rte_mbuf *m;
	struct pmf_frame f;
	struct pmf_hdr hdr;

	while (rte_ring_dequeue(q->loop, (void **)&m) == 0) {
		if (!pmf_frame_parse(q, m, &f, now))
			continue;
		if (f.dst_port >= PEER_PORT && f.dst_port < PEER_PORT + PEERS) {
			FUZZ_CHECK(pmf_wire_get(f.payload, f.len, &hdr) == 0);
			learn(&peer[f.dst_port - PEER_PORT], &hdr);
		}
		rte_pktmbuf_free(m);
	}
}

static void pass(void)
{
	pmf_engine_pass(e);
	hear();
	take_entries();
	take_events();
	FUZZ_CHECK(e->stats.cm_bad_steps == 0);
}

static void say_bytes(const struct peer *p, const uint8_t *bytes, size_t len)
{
	struct pmf_addr to = port->conf.v4.addr;
	struct rte_mbuf *m = pmf_frame_alloc(q);
	struct pmf_path path;

	FUZZ_CHECK(m != NULL);
	to.port = p->to;
	FUZZ_CHECK(pmf_path_init(&path, port, &to, p->port) == 0);
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), bytes, len);
	pmf_frame_send(q, &path, m, (uint16_t)len, false, now);
	pass();
}

static void say(const struct peer *p, struct pmf_hdr *hdr, const uint8_t *body, size_t len)
{
	uint8_t bytes[4096] = {0};
	size_t n;

	hdr->port = p->port;
	hdr->max_payload = 1472;
	n = pmf_wire_put(bytes, sizeof(bytes), hdr);
	if (len)
		memcpy(bytes + n, body, len);
	n += len;
	if (hdr->type == PMF_PT_HELLO)
		n = PMF_MAX(n, (size_t)PMF_WIRE_MIN_PAYLOAD);
	say_bytes(p, bytes, n);
}

static void new_life(struct peer *p)
{
	uint16_t at = p->port, to = p->to;

	memset(p, 0, sizeof(*p));
	p->port = at;
	p->to = to;
	p->inc = ++lives;
	p->conn = lives << 32 | 7;
	p->txno = 1;
}

static void hello(const struct peer *p, uint8_t flags)
{
	struct pmf_hdr hdr = {.type = PMF_PT_HELLO, .flags = flags ^ PMF_HF_CONNECT};

	hdr.inc = p->inc;
	hdr.my_conn = p->conn;
	hdr.peer_conn = p->their_conn;
	hdr.nonce = p->txno;
	say(p, &hdr, NULL, 0);
}

/* The listener's side of first contact, and what nobody asked for. */
static void answer_hello(const struct peer *p, uint8_t how)
{
	struct pmf_hdr hdr = {.type = how & 1 ? PMF_PT_CHALLENGE : PMF_PT_RESET};

	hdr.conn = p->hello_conn;
	hdr.inc = p->inc;
	if (how & 1) {
		hdr.flags = how & 2 ? PMF_HF_GONE : 0;
		hdr.peer_inc = p->their_inc;
		hdr.nonce = p->nonce - (how >> 6);
		hdr.cookie_time = 1;
		hdr.credit = 64;
	} else {
		hdr.flags = how & 2 ? PMF_HF_REFUSED : how & 4 ? PMF_HF_KEY : 0;
		hdr.peer_conn = how & 2 ? p->nonce : how & 8 ? p->conn : p->their_conn;
	}
	say(p, &hdr, NULL, 0);
}

static size_t records(struct input *in, uint8_t *body, size_t cap)
{
	static const uint8_t types[] = {PMF_RT_CONNREQ, PMF_RT_ACCEPT, PMF_RT_REJECT,
					PMF_RT_CLOSE,	PMF_RT_START,  PMF_RT_START,
					PMF_RT_CONT,	PMF_RT_BODY,   PMF_RT_INVITE,
					PMF_RT_HOLD,	PMF_RT_ABORT,  PMF_RT_CONNREQ};
	size_t at = 0, n;

	for (unsigned int i = 1 + byte(in) % 3; i > 0 && in->left; i--) {
		struct pmf_rec rec = {.type = types[byte(in) % PMF_ARRAY_SIZE(types)]};
		uint8_t what = byte(in);

		rec.msg32 = what & 7;
		rec.len = byte(in);
		rec.total = what & 8 ? word(in) : rec.len;
		rec.off = what & 16 ? byte(in) : 0;
		rec.flags = what & 32 ? PMF_RF_WHOLE : what & 64 ? PMF_RF_ANNOUNCE : 0;
		if (rec.flags & PMF_RF_ANNOUNCE ||
		    (rec.type >= PMF_RT_INVITE && rec.type <= PMF_RT_ABORT))
			rec.len = 0;
		n = pmf_rec_put(body + at, cap - at, &rec);
		if (!n)
			break;
		memset(body + at + n, 0x5a, rec.len);
		at += n + rec.len;
	}
	return at;
}

/* A packet of a flow; OPEN brings the cookie that was given, or the id that was told. */
static void packet(struct peer *p, struct input *in, uint8_t type)
{
	uint8_t body[1024], odd = byte(in);
	size_t len =
		type == PMF_PT_ACK || type == PMF_PT_PROBE ? 0 : records(in, body, sizeof(body));
	struct pmf_hdr hdr = {.type = type};

	hdr.conn = type == PMF_PT_OPEN && !(odd & 1) ? 0 : p->their_conn;
	hdr.inc = p->inc;
	hdr.peer_inc = p->their_inc;
	hdr.my_conn = p->conn;
	hdr.cookie_time = p->cookie_time;
	hdr.cookie_mac = p->cookie_mac;
	hdr.seed = 1;
	hdr.psn = p->psn;
	hdr.txno = p->txno++;
	hdr.ack = p->ack;
	hdr.ack_txno = p->ack_txno;
	hdr.credit = 1024;
	if (odd & 2)
		hdr.psn += byte(in) - 128;
	if (odd & 4)
		hdr.ack += byte(in) - 128;
	if (odd & 8)
		hdr.flags = byte(in);
	if (odd & 16)
		hdr.holds = byte(in);
	if (odd & 32)
		hdr.cookie_mac ^= byte(in);
	if (len && !(odd & 2))
		p->psn++;
	say(p, &hdr, body, len);
}

static void raw(const struct peer *p, struct input *in)
{
	uint8_t bytes[1500];
	size_t len = bytes_of(in, bytes, word(in) % sizeof(bytes));

	say_bytes(p, bytes, len);
}

/* ---- a run ---- */

static void step(struct input *in)
{
	uint8_t what = byte(in), arg = byte(in);
	struct peer *p = &peer[arg % PEERS];

	switch (what % 18) {
	case 0:
		new_life(p);
		/* fall through */
	case 1:
		hello(p, what & 0x80 ? arg : 0);
		break;
	case 2:
	case 3:
		packet(p, in, PMF_PT_OPEN);
		break;
	case 4:
	case 5:
	case 6:
		packet(p, in, PMF_PT_DATA);
		break;
	case 7:
		packet(p, in, what & 0x80 ? PMF_PT_ACK : PMF_PT_PROBE);
		break;
	case 8:
		answer_hello(p, arg / PEERS);
		break;
	case 9:
		raw(p, in);
		break;
	case 10:
	case 11:
		answer_request(arg, in);
		break;
	case 12:
		connect_to_peer(arg % EPS, in);
		break;
	case 13:
		if (ep[arg % EPS])
			pmf_cm_shutdown(ep[arg % EPS]);
		break;
	case 14:
		if (what & 0x80)
			close_listener();
		else
			close_ep(arg % EPS);
		break;
	case 15:
		post(arg % EPS, false, byte(in));
		break;
	case 16:
		post(arg % EPS, true, word(in) % sizeof(out));
		break;
	default:
		now += (pmf_ns_t)arg << (what >> 3 & 31);
		if (!listener)
			open_listener();
	}
	now += PMF_NS_PER_US;
	pass();
}

static void start_once(void)
{
	struct fi_cq_attr cq_attr = {.size = 256, .format = FI_CQ_FORMAT_DATA};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};

	now = PMF_NS_PER_S;
	port = fuzz_port();
	q = &port->queue[0];
	pmf_clock.mult = 0; /* so the clock is ours */
	conf = (struct pmf_conf){
		.dead_after = PMF_NS_PER_S,
		.linger = PMF_NS_PER_S / 2,
		.ack_delay = 50 * PMF_NS_PER_US,
		.eager_limit = 4096,
		.unexpected_bytes = 1 << 16,
		.log = no_log,
	};
	FUZZ_CHECK(pmf_engine_open(q, &conf, &e) == 0);
	progress = (struct pmf_progress){.nengines = 1, .engine = {e}, .manual = true};
	FUZZ_CHECK(pmf_cq_init(&cq, &cq_attr, false) == 0);
	FUZZ_CHECK(pmf_eq_init(&eq, &eq_attr, FI_VERSION(1, 17)) == 0);
	info = fi_allocinfo();
	FUZZ_CHECK(info != NULL);
	info->addr_format = FI_SOCKADDR_IN;
}

/* All is closed, and what peers were still owed is given up: nothing is left. */
static void check_end(void)
{
	for (unsigned int i = 0; i < EPS; i++)
		close_ep(i);
	close_listener();
	nrequests = 0;
	for (unsigned int i = 0; i < 3; i++) {
		now += conf.dead_after;
		pass();
	}
	FUZZ_CHECK(e->nflows == 0 && TAILQ_EMPTY(&e->cms) && TAILQ_EMPTY(&e->eps));
	FUZZ_CHECK(TAILQ_EMPTY(&e->orphans) && e->nheld == 0);
	FUZZ_CHECK(e->nstub_free == nstubs && e->nblock_free == nblocks);
	FUZZ_CHECK(rte_mempool_in_use_count(port->rx_pool) == 0);
	FUZZ_CHECK(rte_mempool_in_use_count(q->tx_pool) == q->nstash + q->nstage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	if (!port) {
		start_once();
		nstubs = e->nstub_free;
		nblocks = e->nblock_free;
	}
	memset(&e->ended, 0, sizeof(e->ended));
	e->reset_window = e->resets = 0;
	lives = 0;
	for (unsigned int i = 0; i < PEERS; i++) {
		peer[i] = (struct peer){.port = (uint16_t)(PEER_PORT + i), .to = LISTENER_PORT};
		new_life(&peer[i]);
	}
	open_listener();
	while (in.left > 0)
		step(&in);
	check_end();
	return 0;
}
