/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The pmf authors
 */
#include "report.h"

#include "mix.h"

#include <stdarg.h>
#include <stdio.h>

/* Printing of results. Kept between rows: the options, and what headings are out. */

static const struct perf_options *options;
static unsigned int rows;
static bool begun;
static double domain_ms, domain_mb; /* 0: not said */
static int headed = -1;		    /* the kind of table that is under way in text */

static double per_second(const struct perf_received *r)
{
	return r->ns ? (double)r->messages * 1e9 / (double)r->ns : 0;
}

static double micros(const struct perf_histogram *h, uint32_t per_million)
{
	return (double)perf_histogram_quantile(h, per_million) / 2e3;
}

struct figures {
	uint64_t messages;
	double seconds;
	double rate;
	double tx_rate;
	double rx_rate;
	double all_rate;
	double bytes;
};

/* What a mixed stream carried: the sizes are known from the seed. */
static uint64_t mixed_bytes(const struct perf_result *r)
{
	const struct perf_work *w = &r->work;
	uint64_t bytes = 0, i;

	for (i = 0; i < r->tx.messages; i++)
		bytes += perf_mix_size(w->mix, options->listen, w->warmup + i, w->size);
	for (i = 0; i < r->rx.messages; i++)
		bytes += perf_mix_size(w->mix, !options->listen, w->warmup + i, w->size);
	return bytes;
}

/* A ping-pong counts its round trips, a stream in both directions the sum of the two. */
static void figure(const struct perf_result *r, struct figures *f)
{
	f->tx_rate = per_second(&r->tx);
	f->rx_rate = per_second(&r->rx);
	f->all_rate = per_second(&r->all);
	if (r->work.mode == PERF_LAT && r->rtt.count) {
		f->messages = r->rtt.count;
		f->seconds = (double)r->rtt_ns / 1e9;
		f->rate = f->seconds > 0 ? (double)f->messages / f->seconds : 0;
	} else {
		f->messages = r->tx.messages + r->rx.messages;
		f->seconds = (double)(r->tx.ns > r->rx.ns ? r->tx.ns : r->rx.ns) / 1e9;
		f->rate = f->tx_rate + f->rx_rate;
	}
	f->bytes = f->rate * (double)r->work.size;
	if (r->work.mix)
		f->bytes = f->seconds > 0 ? (double)mixed_bytes(r) / f->seconds : 0;
}

static void text_head(bool lat)
{
	if (headed == lat)
		return;
	headed = lat;
	if (lat)
		printf("%-4s %10s %10s %10s %10s %10s %10s %10s\n", "mode", "bytes", "messages",
		       "p50 us", "p99 us", "p99.9 us", "max us", "mean us");
	else
		printf("%-4s %10s %5s %6s %12s %8s %12s %10s\n", "mode", "bytes", "dir", "window",
		       "messages", "seconds", "messages/s", "MB/s");
}

static void text_row(const struct perf_result *r, const struct figures *f)
{
	const struct perf_work *w = &r->work;
	const struct perf_histogram *h = &r->rtt;
	bool lat = w->mode == PERF_LAT && h->count;

	text_head(lat);
	if (lat) {
		printf("%-4s %10llu %10llu %10.3f %10.3f %10.3f %10.3f %10.3f\n", "lat",
		       (unsigned long long)w->size, (unsigned long long)h->count, micros(h, 500000),
		       micros(h, 990000), micros(h, 999000), (double)h->max / 2e3,
		       perf_histogram_mean(h) / 2e3);
		return;
	}
	printf("%-4s %10llu %5s %6u %12llu %8.3f %12.0f %10.2f\n", perf_mode_name(w->mode),
	       (unsigned long long)w->size, perf_direction_name(w->direction), w->window,
	       (unsigned long long)f->messages, f->seconds, f->rate, f->bytes / 1e6);
	if (options->verbose && f->rate > 0)
		printf("     %u pair%s of endpoints, %.1f ns a message\n", r->pairs,
		       r->pairs == 1 ? "" : "s", 1e9 / f->rate);
	if (options->verbose && w->direction == PERF_BOTH)
		printf("     of these tx %.0f and rx %.0f messages/s\n", f->tx_rate, f->rx_rate);
	if (options->verbose && r->all.messages > r->tx.messages)
		printf("     all clients together %.0f messages/s, %.2f MB/s\n", f->all_rate,
		       f->all_rate * (double)w->size / 1e6);
}

static void csv_row(const struct perf_result *r, const struct figures *f)
{
	const struct perf_work *w = &r->work;
	const struct perf_histogram *h = &r->rtt;

	if (rows == 0)
		printf("provider,mode,direction,bytes,window,more,partners,pairs,verified,messages,"
		       "seconds,"
		       "messages_per_s,bytes_per_s,tx_messages_per_s,rx_messages_per_s,"
		       "all_messages_per_s,half_rtt_min_us,half_rtt_p50_us,half_rtt_p99_us,"
		       "half_rtt_p99_9_us,half_rtt_max_us,half_rtt_mean_us\n");
	printf("%s,%s,%s,%llu,%u,%u,%u,%u,%u,%llu,%.6f,%.1f,%.1f,%.1f,%.1f,%.1f,",
	       options->provider, perf_mode_name(w->mode), perf_direction_name(w->direction),
	       (unsigned long long)w->size, w->window, w->more, r->partners, r->pairs, w->verify,
	       (unsigned long long)f->messages, f->seconds, f->rate, f->bytes, f->tx_rate,
	       f->rx_rate, f->all_rate);
	if (h->count)
		printf("%.4f,%.4f,%.4f,%.4f,%.4f,%.4f\n", (double)h->min / 2e3, micros(h, 500000),
		       micros(h, 990000), micros(h, 999000), (double)h->max / 2e3,
		       perf_histogram_mean(h) / 2e3);
	else
		printf(",,,,,\n");
}

static void json_row(const struct perf_result *r, const struct figures *f)
{
	const struct perf_work *w = &r->work;
	const struct perf_histogram *h = &r->rtt;

	printf("%s\n    {\"mode\": \"%s\", \"direction\": \"%s\", \"bytes\": %llu, \"window\": %u, "
	       "\"more\": %u, \"partners\": %u, \"pairs\": %u, \"verified\": %s, \"messages\": "
	       "%llu, "
	       "\"seconds\": %.6f, \"messages_per_s\": %.1f, \"bytes_per_s\": %.1f, "
	       "\"tx_messages_per_s\": %.1f, \"rx_messages_per_s\": %.1f, "
	       "\"all_messages_per_s\": %.1f",
	       rows ? "," : "", perf_mode_name(w->mode), perf_direction_name(w->direction),
	       (unsigned long long)w->size, w->window, w->more, r->partners, r->pairs,
	       w->verify ? "true" : "false", (unsigned long long)f->messages, f->seconds, f->rate,
	       f->bytes, f->tx_rate, f->rx_rate, f->all_rate);
	if (h->count)
		printf(",\n     \"half_rtt_us\": {\"min\": %.4f, \"p50\": %.4f, \"p99\": %.4f, "
		       "\"p99.9\": %.4f, \"max\": %.4f, \"mean\": %.4f}",
		       (double)h->min / 2e3, micros(h, 500000), micros(h, 990000),
		       micros(h, 999000), (double)h->max / 2e3, perf_histogram_mean(h) / 2e3);
	printf("}");
}

static void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned int)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

void perf_report_begin(const struct perf_options *o)
{
	options = o;
	rows = 0;
	begun = true;
	if (o->format != PERF_JSON)
		return;
	printf("{\n  \"program\": \"pmf-perf\", \"provider\": ");
	json_string(o->provider);
	printf(", \"libfabric\": \"%u.%u\", \"progress\": \"%s\",\n  \"results\": [",
	       FI_MAJOR(fi_version()), FI_MINOR(fi_version()),
	       o->auto_progress ? "auto" : "manual");
	fflush(stdout);
}

void perf_report_domain(const struct perf_fabric *f)
{
	domain_ms = (double)f->domain_ns / 1e6;
	domain_mb = f->domain_mb;
	if (options->verbose)
		perf_report_note("domain opened in %.1f ms, with %.1f MB\n", domain_ms, domain_mb);
}

void perf_report_add(const struct perf_result *r)
{
	struct figures f;

	figure(r, &f);
	if (options->format == PERF_JSON)
		json_row(r, &f);
	else if (options->format == PERF_CSV)
		csv_row(r, &f);
	else
		text_row(r, &f);
	rows++;
	fflush(stdout);
}

void perf_report_end(const char *error)
{
	if (begun && options->format == PERF_JSON) {
		printf("\n  ]");
		if (domain_ms > 0)
			printf(",\n  \"domain\": {\"ms\": %.3f, \"mb\": %.1f}", domain_ms,
			       domain_mb);
		if (error) {
			printf(",\n  \"error\": ");
			json_string(error);
		}
		printf("\n}\n");
	}
	begun = false;
	fflush(stdout);
}

void perf_report_note(const char *fmt, ...)
{
	FILE *to = options && options->format != PERF_TEXT ? stderr : stdout;
	va_list ap;

	va_start(ap, fmt);
	vfprintf(to, fmt, ap);
	va_end(ap);
	fflush(to);
}
