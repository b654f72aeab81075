/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Address vectors. Table and map are the same: an fi_addr_t is an index. The table here says which
 * index an address has; msg's peers' table is what sends look at.
 */
#include "fabric/av.h"

#include <stdlib.h>

#include "fabric/log.h"
#include "fabric/nosys.h"
#include "msg/addr.h"
#include "pmd_glue/mcast.h"

/* Addresses that an AV is made for: what its user says, within these. */
#define AV_MIN ((size_t)16384)
#define AV_MAX ((size_t)1 << 22)

/* With the lock. @return 0 or negative errno */
static int enter_locked(struct pmf_av *av, const struct pmf_peer *peer, uint32_t *index)
{
	bool fresh, gone;
	int rc = pmf_av_table_insert(&av->table, peer, index, &fresh);

	if (rc || !fresh)
		return rc;
	rc = pmf_peers_set(av->peers, *index, peer);
	if (rc)
		pmf_av_table_remove(&av->table, *index, &gone);
	else
		pmf_av_key_hold(av, peer->key);
	return rc;
}

/* Enter one, under the key that stands in @p key, NULL: under none. @return 0 or negative errno */
static int av_enter(struct pmf_av *av, const struct pmf_addr *addr, const fi_addr_t *key,
		    fi_addr_t *out)
{
	struct pmf_peer peer = {.addr = *addr};
	uint32_t index;
	int rc = 0;

	pthread_mutex_lock(&av->lock);
	if (key && !pmf_peers_have_key(av->peers, *key))
		rc = -FI_EINVAL;
	else if (key)
		peer.key = (uint16_t)(*key - PMF_KEY_ADDR);
	if (!rc)
		rc = enter_locked(av, &peer, &index);
	pthread_mutex_unlock(&av->lock);
	if (!rc)
		*out = index;
	return rc;
}

static void av_event(struct pmf_av *av, void *context, uint64_t data, int err)
{
	struct fi_eq_err_entry bad = {
		.fid = &av->fid.fid,
		.context = context,
		.data = data,
		.err = err,
		.prov_errno = err,
	};
	struct fi_eq_entry done = {.fid = &av->fid.fid, .context = context, .data = data};
	int rc = err ? pmf_eq_post_err(av->eq, &bad)
		     : pmf_eq_post(av->eq, FI_AV_COMPLETE, &done, sizeof(done));

	if (rc)
		pmf_warn(AV, "an event is lost for want of memory\n");
}

int pmf_av_flags(const struct pmf_av *av, const fi_addr_t *fi_addr, uint64_t flags)
{
	bool keyed = flags & PMF_AUTH_KEY;

#ifdef FI_AV_USER_ID
	if (flags & FI_AV_USER_ID)
		return -FI_ENOSYS;
#endif
	if ((flags & ~(FI_MORE | FI_SYNC_ERR | PMF_AUTH_KEY)) || (keyed && !av->keys))
		return -FI_EBADFLAGS;
	/* all packets are under a key there: no peer is without one (fi_av(3)) */
	if (av->keys && (!keyed || !fi_addr))
		return -FI_EINVAL;
	return av->events && !av->eq ? -FI_ENOEQ : 0;
}

void pmf_av_add_start(struct pmf_av_add *add, struct pmf_av *av, fi_addr_t *fi_addr, uint64_t flags,
		      void *context)
{
	*add = (struct pmf_av_add){.av = av, .fi_addr = fi_addr, .context = context};
	if ((flags & FI_SYNC_ERR) && !av->events)
		add->errors = context;
}

void pmf_av_add_one(struct pmf_av_add *add, const struct pmf_addr *addr, int err)
{
	fi_addr_t got = FI_ADDR_NOTAVAIL;

	if (!err)
		err = -av_enter(add->av, addr, add->av->keys ? &add->fi_addr[add->count] : NULL,
				&got);
	if (add->fi_addr)
		add->fi_addr[add->count] = got;
	if (add->errors)
		add->errors[add->count] = err;
	if (err && add->av->events)
		av_event(add->av, add->context, add->count, err);
	add->count++;
	add->good += !err;
}

int pmf_av_add_end(struct pmf_av_add *add)
{
	if (!add->av->events)
		return (int)add->good;
	av_event(add->av, add->context, add->good, 0);
	return 0;
}

/*
 * The @p i-th of an array of addresses. Names come as an array of pointers (fi_av(3)), and from
 * some programs as one text behind the other: no pointer reads "fi_socka".
 */
static int nth_addr(const struct pmf_av *av, const void *array, size_t i, struct pmf_addr *out)
{
	const char *text = array;

	switch (av->addr_format) {
	case FI_SOCKADDR_IN:
		return pmf_addr_get(text + i * 16, 16, FI_SOCKADDR_IN, out);
	case FI_SOCKADDR_IN6:
		return pmf_addr_get(text + i * 28, 28, FI_SOCKADDR_IN6, out);
	default:
		break;
	}
	if (memcmp(text, "fi_socka", 8) == 0) {
		while (i--)
			text += strlen(text) + 1;
	} else {
		text = ((const char *const *)array)[i];
	}
	return pmf_addr_get(text, 0, FI_ADDR_STR, out);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	int rc = pmf_av_flags(av, fi_addr, flags);
	struct pmf_av_add add;

	if (rc)
		return rc;
	if (!addr && count)
		return -FI_EINVAL;
	pmf_av_add_start(&add, av, fi_addr, flags, context);
	for (size_t i = 0; i < count; i++) {
		struct pmf_addr one;

		rc = nth_addr(av, addr, i, &one);
		/* Port 0 and 0.0.0.0 are nobody's; a group is joined. */
		if (!rc && (!one.port || pmf_addr_is_any(&one) || pmf_mcast_is_group(one.ip)))
			rc = -FI_EINVAL;
		pmf_av_add_one(&add, &one, -rc);
	}
	return pmf_av_add_end(&add);
}

static int remove_peer(struct pmf_av *av, fi_addr_t fi_addr)
{
	const struct pmf_peer *peer = pmf_av_table_get(&av->table, fi_addr);
	uint16_t key = peer ? peer->key : 0;
	bool gone;
	int rc = pmf_av_table_remove(&av->table, fi_addr, &gone);

	if (!rc && gone) {
		pmf_peers_unset(av->peers, fi_addr);
		pmf_av_key_release(av, key);
	}
	return rc;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	bool keyed = flags & PMF_AUTH_KEY;
	int rc = 0;

	if ((flags & ~PMF_AUTH_KEY) || (keyed && !av->keys))
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&av->lock);
	for (size_t i = 0; i < count && !rc; i++)
		rc = keyed ? pmf_av_remove_auth_key(av, fi_addr[i]) : remove_peer(av, fi_addr[i]);
	pthread_mutex_unlock(&av->lock);
	return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	const struct pmf_peer *peer;
	int rc = -FI_EINVAL;

	pthread_mutex_lock(&av->lock);
	peer = pmf_av_table_get(&av->table, fi_addr);
	if (peer)
		rc = pmf_addr_put(&peer->addr, av->addr_format, addr, addrlen);
	pthread_mutex_unlock(&av->lock);
	/* A cut address is no error here (fi_av(3)): the length tells. */
	return rc == -FI_ETOOSMALL ? 0 : rc;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	char text[PMF_ADDR_TEXT] = "(not an address)";
	size_t full = sizeof(text), room = *len;
	struct pmf_addr a;

	if (pmf_addr_get(addr, 0, av->addr_format, &a) == 0)
		pmf_addr_put(&a, FI_ADDR_STR, text, &full);
	full = strlen(text) + 1;
	if (buf && room) {
		memcpy(buf, text, PMF_MIN(full, room));
		buf[PMF_MIN(full, room) - 1] = '\0';
	}
	*len = full;
	return buf;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = pmf_av_insertsvc,
	.insertsym = pmf_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = pmf_nosys_av_set,
#if FI_VERSION_GE(PMF_HEADERS, FI_VERSION(1, 20))
	.insert_auth_key = pmf_av_insert_auth_key,
	.lookup_auth_key = pmf_av_lookup_auth_key,
	.set_user_id = pmf_nosys_set_user_id,
#endif
};

static int av_close(struct fid *fid)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	struct pmf_domain *d = av->domain;

	if (pmf_in_use(&av->refs))
		return -FI_EBUSY;
	pthread_mutex_lock(&d->lock);
	TAILQ_REMOVE(&d->avs, av, link);
	pthread_mutex_unlock(&d->lock);
	if (av->eq) {
		pmf_eq_forget(av->eq, fid);
		pmf_unref(&av->eq->refs);
	}
	pmf_peers_close(av->peers);
	pmf_av_keys_close(av);
	pmf_av_table_fini(&av->table);
	pthread_mutex_destroy(&av->lock);
	free(av);
	pmf_unref(&d->refs);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct pmf_av *av = (struct pmf_av *)fid;
	struct pmf_eq *eq = (struct pmf_eq *)bfid;
	int rc = 0;

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	if (flags & ~FI_EVENT)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&av->lock);
	if (av->eq) {
		rc = -FI_EINVAL;
	} else {
		av->eq = eq;
		pmf_ref(&eq->refs);
	}
	pthread_mutex_unlock(&av->lock);
	return rc;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = pmf_nosys_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

static int av_make(struct pmf_domain *d, size_t count, struct pmf_av **out)
{
	struct pmf_av *av = calloc(1, sizeof(*av));

	if (!av)
		return -FI_ENOMEM;
	if (pmf_av_table_init(&av->table, count))
		goto free_av;
	av->peers = pmf_peers_open((uint32_t)PMF_MAX(PMF_MIN(count, AV_MAX), AV_MIN));
	if (!av->peers)
		goto fini_table;
	av->domain = d;
	if (pmf_av_keys_open(av))
		goto close_peers;
	pthread_mutex_init(&av->lock, NULL);
	av->addr_format = d->addr_format;
	*out = av;
	return 0;

close_peers:
	pmf_peers_close(av->peers);
fini_table:
	pmf_av_table_fini(&av->table);
free_av:
	free(av);
	return -FI_ENOMEM;
}

int pmf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid,
		void *context)
{
	struct pmf_domain *d = pmf_domain_of(domain);
	struct fi_av_attr fallback = {0};
	struct pmf_av *av;
	int rc;

	if (!attr)
		attr = &fallback;
	if (attr->name)
		return -FI_ENOSYS;
	if ((unsigned int)attr->type > FI_AV_TABLE || attr->rx_ctx_bits)
		return -FI_EINVAL;
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))
		return -FI_EBADFLAGS;
	rc = av_make(d, attr->count, &av);
	if (rc)
		return rc;
	if (attr->type == FI_AV_UNSPEC)
		attr->type = d->av_type ? d->av_type : FI_AV_TABLE;
	av->events = attr->flags & FI_EVENT;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	pthread_mutex_lock(&d->lock);
	TAILQ_INSERT_TAIL(&d->avs, av, link);
	pthread_mutex_unlock(&d->lock);
	pmf_ref(&d->refs);
	*fid = &av->fid;
	return 0;
}
