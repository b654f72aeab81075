/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Descriptors that DPDK opens are made close-on-exec, which it does not do itself: a program that
 * the application starts must not hold our memory, sockets and devices. Nor may their signals reach
 * the application's threads.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pmd_glue/eal_internal.h"

static void fds_walk(void (*fn)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	if (!dir)
		return;
	while ((e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd != dirfd(dir))
			fn(fd, arg);
	}
	closedir(dir);
}

static void fd_note(int fd, void *arg)
{
	struct pmf_fdset *set = arg;

	if (fd < PMF_FDSET_MAX)
		set->bits[fd / 64] |= 1ull << (fd % 64);
}

void pmf_fdset_take(struct pmf_fdset *set)
{
	memset(set, 0, sizeof(*set));
	fds_walk(fd_note, set);
}

/*
 * The TAP driver learns of frames by a signal, sent to the process. In a thread of the application
 * it would break off system calls (EINTR), so the thread that opens the port takes it.
 */
static void fd_signals_to_this_thread(int fd)
{
	const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};
	const int flags = fcntl(fd, F_GETFL);
	const int sig = flags >= 0 && flags & O_ASYNC ? fcntl(fd, F_GETSIG) : 0;
	sigset_t set;

	if (sig <= 0)
		return;
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	fcntl(fd, F_SETOWN_EX, &owner);
}

static void fd_mark(int fd)
{
	const int flags = fcntl(fd, F_GETFD);

	if (flags >= 0 && !(flags & FD_CLOEXEC))
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

static void fd_mark_new(int fd, void *arg)
{
	const struct pmf_fdset *before = arg;

	if (fd >= PMF_FDSET_MAX || before->bits[fd / 64] >> (fd % 64) & 1)
		return;
	fd_mark(fd);
	fd_signals_to_this_thread(fd);
}

void pmf_fdset_cloexec_new(const struct pmf_fdset *before)
{
	struct pmf_fdset copy = *before;

	fds_walk(fd_mark_new, &copy);
}

static bool is_at(const struct sockaddr_un *sun, socklen_t len, const char *path)
{
	/* Abstract names begin with a zero. */
	const unsigned int skip = sun->sun_path[0] == '\0';
	const size_t n = strlen(path);

	return sun->sun_family == AF_UNIX && len > offsetof(struct sockaddr_un, sun_path) &&
	       n + skip <= sizeof(sun->sun_path) && memcmp(sun->sun_path + skip, path, n) == 0;
}

/* Is one end of the socket bound to @p path, in the file system or abstract? */
static bool socket_is_at(int fd, const char *path)
{
	struct sockaddr_un sun;
	socklen_t len = sizeof(sun);

	memset(&sun, 0, sizeof(sun));
	if (getsockname(fd, (struct sockaddr *)&sun, &len) == 0 && is_at(&sun, len, path))
		return true;
	memset(&sun, 0, sizeof(sun));
	len = sizeof(sun);
	return getpeername(fd, (struct sockaddr *)&sun, &len) == 0 && is_at(&sun, len, path);
}

static void fd_mark_link(int fd, void *arg)
{
	/* As DPDK names the memory that it shares. */
	static const char *const memory[] = {"/memfd:nohuge", "/memfd:seg_", "/memfd:memif_region"};
	char link[64], target[64];
	unsigned int i;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = '\0';
	if (strncmp(target, "socket:", 7) == 0 && socket_is_at(fd, arg))
		fd_mark(fd);
	for (i = 0; i < PMF_ARRAY_SIZE(memory); i++)
		if (strncmp(target, memory[i], strlen(memory[i])) == 0)
			fd_mark(fd);
}

void pmf_fds_cloexec_link(const char *path)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];

	if (strlen(path) >= sizeof(copy))
		return;
	memcpy(copy, path, strlen(path) + 1);
	fds_walk(fd_mark_link, copy);
}
