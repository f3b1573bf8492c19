/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "bench_product.h"
#include "cli.h"
#include "ct_units.h"

enum { SIDE = 64, WAIT_MS = 60000 };

struct options {
  const char *device, *json;
};

/* What both queues have counted, and the cycle at which. */
struct reading {
  uint64_t value[2][CT_MAX_COUNTERS], cycle;
};

static int take(ct_device *dev, struct reading *r) {
  int rc = ct_now(dev, &r->cycle);
  for (int q = 0; q < 2 && rc >= 0; ++q)
    rc = ct_counters(dev, (enum ct_queue)q, r->value[q], CT_MAX_COUNTERS);
  return rc;
}

/* A product on each queue at the same time, so that the numbers are not all 0. */
static int run_products(ct_device *dev) {
  struct bench_product p = {.m = SIDE, .n = SIDE, .k = SIDE, .result = CT_GEMM_HBFP8};
  struct ct_result r;
  uint64_t tag;
  int rc = bench_product_make(dev, &p);
  if (rc < 0) return rc;
  /* Both write the same bytes to the same place. */
  for (int q = 0; q < 2 && rc >= 0; ++q)
    rc = bench_product_submit(dev, (enum ct_queue)q, &p, &tag);
  for (int q = 0; q < 2 && rc >= 0; ++q)
    rc = bench_product_reap(dev, &r, WAIT_MS);
  bench_product_free(dev, &p);
  return rc;
}

/* What was counted between two readings; the cycle becomes their number, if the device has a clock.
 */
static int measure(ct_device *dev, struct reading *r) {
  struct reading before;
  int rc = take(dev, &before);
  if (rc >= 0) rc = run_products(dev);
  if (rc >= 0) rc = take(dev, r);
  if (rc < 0) return rc;
  for (int q = 0; q < 2; ++q)
    for (size_t i = 0; i < CT_MAX_COUNTERS; ++i)
      r->value[q][i] -= before.value[q][i];
  if (r->cycle != CT_NO_CYCLE) r->cycle -= before.cycle;
  return 0;
}

static void print_table(FILE *to, const struct reading *r) {
  fprintf(to, "A product of %d x %d x %d on each queue, at the same time:\n\n", SIDE, SIDE, SIDE);
  fprintf(to, "%-14s %12s %12s  %s\n", "counter", "inference", "training", "meaning");
  for (size_t i = 0; i < CT_MAX_COUNTERS && ct_counter_name(i); ++i)
    fprintf(to, "%-14s %12" PRIu64 " %12" PRIu64 "  %s\n", ct_counter_name(i),
            r->value[CT_INFERENCE][i], r->value[CT_TRAINING][i], ct_counter_text(i));
  if (r->cycle == CT_NO_CYCLE) return;
  fprintf(to,
          "\nThe units in these %" PRIu64
          " cycles: busy, waiting for the other queue, for operands or the memory, for semaphores,"
          "\nidle:\n\n",
          r->cycle);
  ct_units_print(to, r->value[CT_INFERENCE], r->value[CT_TRAINING], r->cycle);
}

static json_t *as_json(const struct options *o, const struct reading *r) {
  json_t *queue[2] = {json_object(), json_object()};
  for (int q = 0; q < 2; ++q)
    for (size_t i = 0; i < CT_MAX_COUNTERS && ct_counter_name(i); ++i)
      json_object_set_new(queue[q], ct_counter_name(i), json_integer((json_int_t)r->value[q][i]));
  return json_pack("{s:s, s:s, s:o, s:o, s:o}", "coltrain", CT_VERSION_STRING, "device", o->device,
                   "cycles", cli_json_cycles(r->cycle), "inference", queue[CT_INFERENCE],
                   "training", queue[CT_TRAINING]);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  struct options *o = state->input;
  return cli_common(key, arg, state, &o->device, &o->json);
}

int verb_counters(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"device", CLI_KEY_DEVICE, "URI", 0, "The device (" CLI_DEVICE ")", 0},
      {"json", CLI_KEY_JSON, "FILE", 0, "Write the counters (- for standard output)", 0},
      {0}};
  static const struct argp argp = {
      .options = list,
      .parser = parse,
      .doc =
          "Shows what every performance counter of both queues counts in a small product on each, "
          "at the same time."
          "\vExample:\n  coltrain counters --device sim:core=16x8,stall=25\n"};
  struct options o = {.device = CLI_DEVICE};
  cli_parse(&argp, argc, argv, &o);
  if (cli_writable(o.json)) return 1;
  ct_device *dev;
  struct reading r;
  if (cli_open(o.device, &dev)) return 1;
  const int rc = measure(dev, &r);
  const int status = rc < 0 ? cli_fail_device(dev, rc, o.device) : 0;
  ct_close(dev);
  if (status) return status;
  print_table(cli_text(o.json), &r);
  return o.json ? cli_json_write(o.json, as_json(&o, &r)) : 0;
}
