/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * Can EAL's telemetry start here? EAL fails whole when it cannot make its socket, and waits for
 * ever when the socket belongs to a process that hangs: it connects to see whether somebody is
 * there. So both are found out before. Control path, nothing is kept.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "pmd_glue/eal_internal.h"

enum { PATIENCE_MS = 3000 }; /* for all sockets together: a living process answers at once */

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The directory of run-time files, chosen as EAL chooses it. */
static const char *base_dir(void)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");

	return geteuid() == 0 ? "/var/run" : xdg ? xdg : "/tmp";
}

/* As where another user owns /tmp/dpdk. */
static bool dir_usable(const char *prefix)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/dpdk/%s", base_dir(), prefix);
	if (access(path, W_OK | X_OK) == 0)
		return true;
	if (errno != ENOENT)
		return false;
	snprintf(path, sizeof(path), "%s/dpdk", base_dir());
	if (access(path, W_OK | X_OK) == 0)
		return true;
	return errno == ENOENT && access(base_dir(), W_OK | X_OK) == 0;
}

enum answer { NOBODY, ANSWERS, SILENT };

/* A server accepts and greets, or hangs up when it has too many clients. */
static enum answer ask(const struct sockaddr_un *sun, int64_t until)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	enum answer a = NOBODY;

	if (fd < 0)
		return SILENT;
	while (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			goto out; /* left behind by a process that is gone, or not there */
		a = SILENT;	  /* as long as its backlog is full */
		if (now_ms() >= until)
			goto out;
		poll(NULL, 0, 1);
	}
	do
		a = poll(&p, 1, (int)PMF_MAX(until - now_ms(), 0)) > 0 ? ANSWERS : SILENT;
	while (a == SILENT && errno == EINTR && now_ms() < until);
out:
	close(fd);
	return a;
}

/* The names that EAL tries, in its order, until one is nobody's. @return false: one is silent */
static bool all_answer(const char *prefix, char *why, size_t len)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const size_t room = sizeof(sun.sun_path);
	const int64_t until = now_ms() + PATIENCE_MS;
	enum answer a = ANSWERS;

	for (unsigned int i = 0; a == ANSWERS; i++) {
		char suffix[16] = "";

		if (i)
			snprintf(suffix, sizeof(suffix), ":%u", i);
		if (snprintf(sun.sun_path, room, "%s/dpdk/%s/dpdk_telemetry.v2%s", base_dir(),
			     prefix, suffix) >= (int)room)
			return true; /* EAL says so itself */
		a = ask(&sun, until);
	}
	if (a == SILENT)
		snprintf(why, len, "the process at %s does not answer", sun.sun_path);
	return a == NOBODY;
}

bool pmf_eal_telemetry_possible(const char *prefix, char *why, size_t len)
{
	if (!dir_usable(prefix)) {
		snprintf(why, len, "%s/dpdk is not ours to write", base_dir());
		return false;
	}
	return all_answer(prefix, why, len);
}
