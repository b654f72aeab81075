/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>

#include "pmf_fault_text.h"

/* What is said of a wire. A line of JSON is whole when it is seen. */

static const struct pmf_stat_desc descs[] = {WIRE_STATS(PMF_STAT_DESC)};

void wire_report_faults(const struct wire_way way[2], const char *event, bool json)
{
	char text[512];
	int i;

	if (json)
		printf("{\"event\": \"%s\", \"ways\": [", event);
	for (i = 0; i < 2; i++) {
		pmf_fault_print(&way[i].fault.conf, text, sizeof(text));
		printf(json ? "%s{\"from\": %u, \"to\": %u, \"fault\": \"%s\"}"
			    : "%sport %u to port %u: %s",
		       json && i ? ", " : "", way[i].from->id, way[i].to->id, text);
		printf("%s", json ? "" : "\n");
	}
	printf("%s", json ? "]}\n" : "forwarding; SIGUSR1 shows the counters\n");
	fflush(stdout);
}

static void report_text(const struct wire_way way[2], const uint64_t *v[2])
{
	char head[2][24];
	size_t i;

	for (i = 0; i < 2; i++)
		snprintf(head[i], sizeof(head[i]), "%u to %u", way[i].from->id, way[i].to->id);
	printf("%-16s %16s %16s\n", "", head[0], head[1]);
	for (i = 0; i < PMF_ARRAY_SIZE(descs); i++)
		printf("%-16s %16" PRIu64 " %16" PRIu64 "  %s\n", descs[i].name, v[0][i], v[1][i],
		       descs[i].help);
}

static void report_json(const struct wire_way way[2], const char *event, const uint64_t *v[2])
{
	size_t i, k;

	printf("{\"event\": \"%s\", \"ways\": [", event);
	for (i = 0; i < 2; i++) {
		printf("%s{\"from\": %u, \"to\": %u", i ? ", " : "", way[i].from->id,
		       way[i].to->id);
		for (k = 0; k < PMF_ARRAY_SIZE(descs); k++)
			printf(", \"%s\": %" PRIu64, descs[k].name, v[i][k]);
		printf("}");
	}
	printf("]}\n");
}

void wire_report(const struct wire_way way[2], const char *event, bool json)
{
	struct wire_stats stats[2];
	/* A statistics struct is its list's uint64_t fields in order. */
	const uint64_t *v[2] = {(const uint64_t *)&stats[0], (const uint64_t *)&stats[1]};

	wire_stats_get(&way[0], &stats[0]);
	wire_stats_get(&way[1], &stats[1]);
	if (json)
		report_json(way, event, v);
	else
		report_text(way, v);
	fflush(stdout);
}
