/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Whose packet is it? The question that comes before all others where there are authorization keys.
 * Owner only.
 */
#include "msg/auth.h"

static struct pmf_seal_ends ends_of(const struct pmf_frame *f)
{
	struct pmf_seal_ends ends = {.to_port = f->dst_port};
	struct pmf_addr a;

	if (f->v6) {
		memcpy(ends.from, f->src_ip, sizeof(ends.from));
		memcpy(ends.to, f->dst_ip, sizeof(ends.to));
		return ends;
	}
	pmf_addr_set_v4(&a, f->src_ip, 0);
	memcpy(ends.from, a.ip, sizeof(ends.from));
	pmf_addr_set_v4(&a, f->dst_ip, 0);
	memcpy(ends.to, a.ip, sizeof(ends.to));
	return ends;
}

/* @return whether the packet may be looked at; else it is counted */
static bool verdict(struct pmf_engine *e, enum pmf_seal_verdict v)
{
	switch (v) {
	case PMF_SEAL_OK:
		return true;
	case PMF_SEAL_KEY:
		e->stats.drop_key++;
		break;
	case PMF_SEAL_TAG:
		e->stats.drop_tag++;
		break;
	case PMF_SEAL_REPLAY:
		e->stats.drop_replay++;
		break;
	}
	return false;
}

/* ---- outside flows ---- */

bool pmf_auth_contact(struct pmf_engine *e, const struct pmf_auth *auth, const struct pmf_frame *f,
		      const struct pmf_hdr *hdr)
{
	struct pmf_seal_ends ends;

	if (!auth && !hdr->key)
		return true;
	if (!auth || !hdr->key)
		return verdict(e, PMF_SEAL_KEY);
	ends = ends_of(f);
	return verdict(e, pmf_seal_contact_check(auth->ring, hdr, &ends, f->payload, f->len));
}

struct pmf_auth *pmf_auth_any(struct pmf_engine *e, uint16_t key)
{
	struct pmf_auth *auth;

	TAILQ_FOREACH (auth, &e->auths, link)
		if (pmf_keyring_find(auth->ring, key))
			return auth;
	return NULL;
}

bool pmf_auth_find(const struct pmf_ep *ep, const struct pmf_hdr *hdr, struct pmf_auth **auth)
{
	*auth = NULL;
	if (!hdr->key)
		return ep->nauths == 0;
	for (uint32_t i = 0; i < ep->nauths; i++) {
		*auth = ep->auths[i];
		if (pmf_keyring_find((*auth)->ring, hdr->key))
			return true;
	}
	return false;
}

bool pmf_auth_of(const struct pmf_ep *ep, uint16_t number, struct pmf_auth **auth)
{
	*auth = NULL;
	if (!ep->nauths)
		return number == 0;
	for (uint32_t i = 0; i < ep->nauths; i++) {
		*auth = ep->auths[i];
		if ((*auth)->number == number)
			return true;
	}
	return false;
}

bool pmf_auth_hello(struct pmf_engine *e, const struct pmf_ep *ep, const struct pmf_frame *f,
		    const struct pmf_hdr *hdr, struct pmf_auth **auth)
{
	if (ep)
		return pmf_auth_find(ep, hdr, auth) ? pmf_auth_contact(e, *auth, f, hdr)
						    : verdict(e, PMF_SEAL_KEY);
	*auth = pmf_auth_any(e, hdr->key);
	return pmf_auth_contact(e, *auth, f, hdr);
}

/* ---- flows ---- */

/* An OPEN that names our id is of today if it brings back our seed, or a cookie of ours. */
static bool is_fresh(struct pmf_engine *e, const struct pmf_eflow *ef, const struct pmf_frame *f,
		     const struct pmf_hdr *hdr, pmf_ns_t now)
{
	struct pmf_contact c;
	struct pmf_addr src;

	if (ef->seal->rx_known || (ef->flow.bound && hdr->seed == ef->flow.seed))
		return true;
	pmf_frame_src(f, &src);
	return !pmf_contact_check(&e->key, hdr, &src, ef->local_port, ef->flow.id.inc, now, &c);
}

bool pmf_auth_flow_rx(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_frame *f,
		      const struct pmf_hdr *hdr, pmf_ns_t now)
{
	struct pmf_seal_ends ends;

	if (!ef->seal || !hdr->key)
		return verdict(e, PMF_SEAL_KEY);
	if (pmf_likely(hdr->type != PMF_PT_OPEN))
		return verdict(e, pmf_seal_rx(ef->seal, hdr, f->payload, f->len));
	if (!is_fresh(e, ef, f, hdr, now))
		return verdict(e, PMF_SEAL_REPLAY);
	ends = ends_of(f);
	return verdict(e,
		       pmf_seal_rx_open(ef->seal, hdr, &ends, ef->flow.id.inc, f->payload, f->len));
}

bool pmf_auth_open_rx(struct pmf_engine *e, struct pmf_eflow *ef, const struct pmf_auth *auth,
		      const struct pmf_frame *f, const struct pmf_hdr *hdr, uint64_t inc,
		      struct pmf_seal **fresh)
{
	struct pmf_seal_ends ends;
	struct pmf_seal *s;

	*fresh = NULL;
	if (ef && ef->auth != auth)
		return verdict(e, PMF_SEAL_KEY);
	if (!auth)
		return true;
	ends = ends_of(f);
	s = ef ? ef->seal : pmf_seal_open(auth->ring, &ends);
	if (!s) {
		e->stats.drop_no_memory++;
		return false;
	}
	if (!ef)
		*fresh = s;
	if (verdict(e, pmf_seal_rx_open(s, hdr, &ends, inc, f->payload, f->len)))
		return true;
	pmf_seal_close(*fresh);
	*fresh = NULL;
	return false;
}

void pmf_auth_adopt(struct pmf_eflow *ef, struct pmf_seal *fresh)
{
	struct pmf_seal_ends ends;

	if (!fresh)
		return;
	if (!ef) {
		pmf_seal_close(fresh);
		return;
	}
	ends = ef->seal->tx_way.ends;
	pmf_seal_close(ef->seal);
	ef->seal = fresh;
	fresh->tx_way.ends = ends;
}

bool pmf_auth_begin(struct pmf_engine *e, struct pmf_eflow *ef, struct pmf_auth *auth)
{
	struct pmf_seal_ends ends = {.to_port = ef->peer.addr.port};

	if (!auth)
		return true;
	pmf_path_src(&ef->path, ends.from);
	memcpy(ends.to, ef->peer.addr.ip, sizeof(ends.to));
	ef->seal = pmf_seal_open(auth->ring, &ends);
	if (!ef->seal)
		return false;
	ef->auth = auth;
	auth->refs++;
	return true;
}

void pmf_auth_end(struct pmf_engine *e, struct pmf_eflow *ef)
{
	pmf_seal_close(ef->seal);
	if (ef->auth)
		pmf_auth_put(e, ef->auth);
}

void pmf_auth_bind(struct pmf_eflow *ef)
{
	if (ef->seal && pmf_seal_bind(ef->seal, &ef->flow))
		pmf_flow_kill(&ef->flow, ENOMEM);
}
