/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 *
 * One member of a group, for tests with several processes: mcast_peer GROUP PORT say|hear COUNT.
 * It joins and prints "joined"; who says sends COUNT numbered messages, a few a millisecond. Who
 * says hears itself, too. At the end, or after SILENCE without a message, it leaves and prints how
 * many it has heard, all of which were in order.
 */
#include "peer.h"

#include <stdbool.h>
#include <stdint.h>

#define SILENCE_MS 20000
#define BETWEEN_MS 0.5

static struct fid_mc *mc;

static void join(void)
{
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t n;

	DO(fi_join(ep, info->dest_addr, 0, &mc, NULL));
	do
		n = fi_eq_sread(eq, &event, &entry, sizeof(entry), SILENCE_MS, 0);
	while (n == -FI_EAGAIN);
	if (n != sizeof(entry) || event != FI_JOIN_COMPLETE || entry.fid != &mc->fid) {
		fprintf(stderr, "not joined: %zd\n", n);
		exit(1);
	}
	printf("joined\n");
}

int main(int argc, char **argv)
{
	uint32_t number = 0, last = 0, heard = 0, said = 0, count;
	double next = now_ms(), end = next + SILENCE_MS;
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_data_entry e;
	bool says;

	if (argc != 5)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	says = strcmp(argv[3], "say") == 0;
	count = (uint32_t)atoi(argv[4]);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_MULTICAST;
	hints->tx_attr->op_flags = FI_MULTICAST;
	open_domain(argv[1], argv[2], 0, hints);
	open_ep(info);
	join();
	DO(fi_recv(ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL));
	while (last != count && now_ms() < end) {
		if (says && said < count && now_ms() >= next) {
			said++;
			DO(fi_inject(ep, &said, sizeof(said), fi_mc_addr(mc)));
			next = now_ms() + BETWEEN_MS;
		}
		if (fi_cq_read(cq, &e, 1) != 1)
			continue;
		if (number <= last || !(e.flags & FI_MULTICAST)) {
			fprintf(stderr, "%u after %u\n", number, last);
			return 1;
		}
		last = number;
		heard++;
		end = now_ms() + SILENCE_MS;
		DO(fi_recv(ep, &number, sizeof(number), NULL, FI_ADDR_UNSPEC, NULL));
	}
	DO(fi_close(&mc->fid));
	close_all();
	printf("heard %u\n", heard);
	return 0;
}
