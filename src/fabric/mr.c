/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Memory regions. Nothing demands them, and a transfer never follows its descriptor: they are plain
 * objects with a key.
 */
#include <stdlib.h>

#include "fabric/auth.h"
#include "fabric/info.h"
#include "fabric/nosys.h"
#include "fabric/objects.h"

#define MR_ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static int mr_close(struct fid *fid)
{
	struct pmf_mr *mr = (struct pmf_mr *)fid;

	pmf_unref(&mr->domain->refs);
	free(mr);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	/* As FI_MR_ENDPOINT has it; a counter would count accesses from outside, which there are
	 * none. */
	return bfid->fclass == FI_CLASS_EP || bfid->fclass == FI_CLASS_CNTR ? 0 : -FI_EINVAL;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = pmf_nosys_ops_open,
	.tostr = pmf_nosys_tostr,
	.ops_set = pmf_nosys_ops_set,
};

/* Where keys are those of address vectors a region names one (fi_mr(3)), whose peers alone would
 * reach it. */
static int check_key(const struct pmf_domain *d, const struct fi_mr_attr *attr)
{
#ifdef FI_AV_AUTH_KEY
	struct fi_mr_auth_key key;

	if (!pmf_auth_of_av(d->auth_key_size))
		return 0;
	if (attr->auth_key_size != sizeof(key) || !attr->auth_key)
		return -FI_EINVAL;
	memcpy(&key, attr->auth_key, sizeof(key));
	if (!key.av || key.av->fid.fclass != FI_CLASS_AV)
		return -FI_EINVAL;
	return ((struct pmf_av *)key.av)->domain == d ? 0 : -FI_EDOMAIN;
#else
	return 0;
#endif
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr)
{
	struct pmf_domain *d = (struct pmf_domain *)fid;
	struct pmf_mr *m;
	int rc;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr || (attr->access & ~MR_ACCESS))
		return -FI_EINVAL;
	if (attr->iov_count > PMF_MR_IOV_LIMIT || (attr->iov_count && !attr->mr_iov))
		return -FI_EINVAL;
	if (flags & ~(FI_RMA_EVENT | FI_RMA_PMEM))
		return -FI_EBADFLAGS;
	if (FI_VERSION_GE(d->api_version, FI_VERSION(1, 9)) && attr->iface != FI_HMEM_SYSTEM)
		return -FI_ENOSYS;
	rc = check_key(d, attr);
	if (rc)
		return rc;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	m->domain = d;
	m->fid.fid.fclass = FI_CLASS_MR;
	m->fid.fid.context = attr->context;
	m->fid.fid.ops = &mr_fid_ops;
	m->fid.mem_desc = m;
	m->fid.key = attr->requested_key;
	pmf_ref(&d->refs);
	*mr = &m->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
		.iface = FI_HMEM_SYSTEM,
	};

	/* there a region names its key, which fi_mr_regattr() alone can (fi_mr(3)) */
	if (fid->fclass == FI_CLASS_DOMAIN &&
	    pmf_auth_of_av(((struct pmf_domain *)fid)->auth_key_size))
		return -FI_ENOSYS;
	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr pmf_ops_mr = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
