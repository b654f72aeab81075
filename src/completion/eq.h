/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Event queues: control events in order, under a mutex. The descriptor is ready exactly while an
 * event is there, so poll(2) on it needs no arming. Nothing here drives progress.
 */
#ifndef PMF_COMPLETION_EQ_H
#define PMF_COMPLETION_EQ_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "pmf_common.h"

struct pmf_event;
struct pmf_progress;

/* Engines that reading the queue drives; msg's. */
struct pmf_eq_driver {
	TAILQ_ENTRY(pmf_eq_driver) link;
	struct pmf_progress *progress;
	unsigned int refs;
};

struct pmf_eq {
	struct fid_eq fid; /* ops are set by fabric */
	void *fabric;	   /* struct pmf_fabric, never followed here */
	size_t size; /* events that fi_eq_write may queue; the provider's own are always taken */
	bool writable;
	enum fi_wait_obj wait_obj; /* _NONE, _FD or _YIELD */
	int fd;			   /* eventfd; -1 without */
	uint32_t api_version;	   /* of the application: which fields error entries have */
	_Atomic int refs;	   /* bound objects: fi_close is -FI_EBUSY while not 0 */
	pthread_mutex_t lock;
	pthread_cond_t more;
	TAILQ_HEAD(, pmf_event) events;
	size_t count;
	struct pmf_event *last_err;    /* its err_data is the reader's until the next read */
	TAILQ_HEAD(, pmf_event) spare; /* for when there is no memory */
	unsigned int nspare, reserved; /* there; there when none of them is queued */
	pthread_mutex_t drive_lock;    /* never taken with an owner word or `lock` held */
	TAILQ_HEAD(, pmf_eq_driver) drivers;
	unsigned int sleeping; /* readers in sread; drive_lock */
};

/** Fill @p eq in place (fid excepted). @return 0, -EINVAL, -ENOMEM */
int pmf_eq_init(struct pmf_eq *eq, const struct fi_eq_attr *attr, uint32_t api_version);
/** Drop what was not read. The caller has checked refs. */
void pmf_eq_fini(struct pmf_eq *eq);

/**
 * Have memory for @p n events more of the provider, so that they come in any case: what a bound
 * object may have queued at once. Control path. @return 0, -ENOMEM
 */
int pmf_eq_reserve(struct pmf_eq *eq, unsigned int n);
/** They do not come any more. */
void pmf_eq_unreserve(struct pmf_eq *eq, unsigned int n);

/** Queue an event of the provider, any thread; never refused for want of room. @return 0; -ENOMEM:
 * and none was reserved */
int pmf_eq_post(struct pmf_eq *eq, uint32_t event, const void *entry, size_t len);
/** The same for an entry that holds @p info: freed with the event unless a reader gets it. */
int pmf_eq_post_info(struct pmf_eq *eq, uint32_t event, const void *entry, size_t len,
		     struct fi_info *info);
/** Queue an error entry; @p err->err_data is copied. @return 0, -ENOMEM */
int pmf_eq_post_err(struct pmf_eq *eq, const struct fi_eq_err_entry *err);
/** Drop all events of @p fid: it is being closed. */
void pmf_eq_forget(struct pmf_eq *eq, struct fid *fid);

/* What fi_eq(3) says of the calls of these names; EQ opened with any wait object. */
ssize_t pmf_eq_read(struct pmf_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags);
ssize_t pmf_eq_readerr(struct pmf_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags);
ssize_t pmf_eq_write(struct pmf_eq *eq, uint32_t event, const void *buf, size_t len,
		     uint64_t flags);
ssize_t pmf_eq_sread(struct pmf_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
		     uint64_t flags);
const char *pmf_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
			    size_t len);
int pmf_eq_control(struct pmf_eq *eq, int command, void *arg);
bool pmf_eq_is_empty(struct pmf_eq *eq);

#endif
