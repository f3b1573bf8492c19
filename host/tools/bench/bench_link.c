/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain bench link`: what the way to a device carries. A large write to its memory and a large
 * read, whose bytes are compared, and how long a small request takes there and back.
 *
 * Times are the device's own where its clock went on meanwhile, so that a simulated board is
 * measured as the board it stands for; else they are the host's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "cli.h"
#include "coltrain_spec.h"
#include "ct_device.h"
#include "ct_rand.h"
#include "ct_stats.h"

enum { MAX_KIB = 1 << 20, MAX_REQUESTS = 1000000 };

struct options {
  const char *device, *json;
  unsigned kib, requests;
};

struct link {
  const struct options *o;
  ct_device *dev;
  struct ct_info info;
  size_t size;
  uint64_t addr;
  uint8_t *wrote, *read;
  uint64_t *host_ns, *cycles; /* of each request */
};

/* What a transfer took. */
struct transfer {
  double host, device; /* seconds; 0: no time passed there */
};

/* ---- Transfers ---- */

static int now(const struct link *l, uint64_t *cycle) {
  *cycle = 0;
  return l->info.has_clock ? ct_now(l->dev, cycle) : CT_OK;
}

static int move(const struct link *l, bool write, struct transfer *t) {
  uint64_t from = 0, to = 0;
  int rc = now(l, &from);
  const double start = bench_seconds(CLOCK_MONOTONIC);
  if (rc >= 0)
    rc = write ? ct_mem_write(l->dev, l->addr, l->wrote, l->size)
               : ct_mem_read(l->dev, l->addr, l->read, l->size);
  t->host = bench_seconds(CLOCK_MONOTONIC) - start;
  if (rc >= 0) rc = now(l, &to);
  t->device = l->info.clock_hz ? (double)(to - from) / (double)l->info.clock_hz : 0;
  return rc;
}

/* ---- Requests ---- */

/* The device's clock is read by one request, too: what it shows is as far apart as the requests. */
static int ask(const struct link *l) {
  uint32_t id = 0;
  uint64_t before = 0, after = 0;
  int rc = now(l, &before);
  for (unsigned i = 0; i < l->o->requests && rc >= 0 && !cli_stopped(); ++i) {
    const double start = bench_seconds(CLOCK_MONOTONIC);
    rc = ct_reg_read(l->dev, CT_REG_ID, &id);
    l->host_ns[i] = (uint64_t)(1e9 * (bench_seconds(CLOCK_MONOTONIC) - start));
    if (rc >= 0) rc = now(l, &after);
    /* Two requests: that of the clock is as long, with 4 more bytes. */
    l->cycles[i] = (after - before) / 2;
    before = after;
  }
  if (rc >= 0 && id != CT_ID_VALUE) rc = CT_ERR_DEVICE;
  return rc;
}

/* ---- Results ---- */

static double rate(const struct link *l, double seconds) {
  return seconds > 0 ? (double)l->size / seconds : 0;
}

/* Percent of what the line carries; 0: not known. */
static double share(const struct link *l, const struct transfer *t) {
  if (!l->info.line_rate) return 0;
  return 100 * rate(l, t->device > 0 ? t->device : t->host) / (double)l->info.line_rate;
}

static json_t *or_null(double x) {
  return x > 0 ? json_real(x) : json_null();
}

static json_t *transfer_json(const struct link *l, const struct transfer *t) {
  return json_pack("{s:I, s:f, s:o, s:o, s:o}", "bytes", (json_int_t)l->size, "host_seconds",
                   t->host, "host_mb_per_second", or_null(rate(l, t->host) / 1e6),
                   "device_mb_per_second", or_null(rate(l, t->device) / 1e6), "percent_of_line",
                   or_null(share(l, t)));
}

static void print_transfer(FILE *text, const struct link *l, const char *name,
                           const struct transfer *t) {
  fprintf(text, "%-6s %12zu bytes %12.3f MB/s by the host's clock", name, l->size,
          rate(l, t->host) / 1e6);
  if (t->device > 0) fprintf(text, " %12.3f MB/s by the device's", rate(l, t->device) / 1e6);
  if (l->info.line_rate) fprintf(text, ", %.1f %% of the line", share(l, t));
  fputc('\n', text);
}

static json_t *trip_json(const struct ct_stats *s, double unit) {
  return json_pack("{s:o, s:o}", "p50_us", or_null((double)s->p50 * unit), "p99_us",
                   or_null((double)s->p99 * unit));
}

/* Microseconds of a cycle. */
static double cycle_us(const struct link *l) {
  return l->info.has_clock && l->info.clock_hz ? 1e6 / (double)l->info.clock_hz : 0;
}

static json_t *print_requests(FILE *text, struct link *l) {
  struct ct_stats host, device;
  const size_t n = l->o->requests;
  ct_stats_sum_up(&host, l->host_ns, n, 0);
  ct_stats_sum_up(&device, l->cycles, n, 0);
  fprintf(text, "request %11zu times %12.3f us by the host's clock (p99 %.3f)", n,
          (double)host.p50 / 1e3, (double)host.p99 / 1e3);
  if (device.p50 && cycle_us(l) > 0)
    fprintf(text, ", %.3f us by the device's (p99 %.3f)", (double)device.p50 * cycle_us(l),
            (double)device.p99 * cycle_us(l));
  fputc('\n', text);
  return json_pack("{s:I, s:o, s:o}", "requests", (json_int_t)n, "host", trip_json(&host, 1e-3),
                   "device", trip_json(&device, cycle_us(l)));
}

/* ---- The measurement ---- */

static int measure(struct link *l, json_t *root) {
  FILE *text = cli_text(l->o->json);
  struct transfer write, read;
  struct ct_rand rand;
  ct_rand_seed(&rand, 1, CT_RAND_STREAM_NONE);
  for (size_t i = 0; i < l->size; ++i)
    l->wrote[i] = (uint8_t)ct_rand_below(&rand, 256);
  int rc = ct_mem_alloc(l->dev, l->size, &l->addr);
  if (rc >= 0) rc = move(l, true, &write);
  if (rc >= 0) rc = move(l, false, &read);
  if (rc >= 0) rc = ask(l);
  if (rc < 0) return cli_fail_device(l->dev, rc, l->o->device);
  if (cli_stopped()) return 0;
  if (memcmp(l->wrote, l->read, l->size) != 0)
    return cli_fail("%s: what was read of its memory is not what was written", l->o->device);
  print_transfer(text, l, "write", &write);
  print_transfer(text, l, "read", &read);
  json_object_set_new(root, "write", transfer_json(l, &write));
  json_object_set_new(root, "read", transfer_json(l, &read));
  json_object_set_new(root, "round_trip", print_requests(text, l));
  return 0;
}

static int run(const struct options *o) {
  struct link l = {.o = o, .size = (size_t)o->kib << 10};
  if (cli_open(o->device, &l.dev)) return 1;
  l.wrote = malloc(2 * l.size);
  l.host_ns = calloc(2 * (size_t)o->requests, sizeof *l.host_ns);
  json_t *root = json_object();
  int status = 1;
  if (!l.wrote || !l.host_ns) {
    cli_fail("the host has no memory for %u KiB", o->kib);
  } else if (ct_info(l.dev, &l.info) < 0) {
    cli_fail("%s", ct_last_error(l.dev));
  } else {
    l.read = l.wrote + l.size;
    l.cycles = l.host_ns + o->requests;
    json_object_set_new(root, "device", json_string(o->device));
    json_object_set_new(
        root, "line_rate",
        l.info.line_rate ? json_integer((json_int_t)l.info.line_rate) : json_null());
    status = measure(&l, root);
  }
  if (l.addr) ct_mem_free(l.dev, l.addr);
  ct_close(l.dev);
  free(l.wrote);
  free(l.host_ns);
  return bench_write(o->json, root, status);
}

/* ---- Command line ---- */

int bench_link(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"kib", "N", "Write and read so many KiB (256)",
       CLI_COUNT_AT(struct options, kib, 1, MAX_KIB)},
      {"requests", "N", "Small requests (200)",
       CLI_COUNT_AT(struct options, requests, 1, MAX_REQUESTS)},
      {"json", "FILE", "Write the figures (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Measures the way to a device: MB/s of a large write to its memory and a large read, as "
          "percent of what the line carries where that is known, and how long the read of a "
          "register takes. By the device's clock, where it has one that goes on, and the "
          "host's.\vExample:\n  coltrain bench link --device usb:\n"};
  struct options o = {.device = CLI_DEVICE, .kib = 256, .requests = 200};
  if (cli_options(&command, argc, argv, &o)) return 1;
  cli_catch_stop();
  return run(&o);
}
