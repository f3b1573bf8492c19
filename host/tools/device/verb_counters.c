/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench_product.h"
#include "cli.h"
#include "ct_probe.h"
#include "ct_units.h"

enum { SIDE = 64, WAIT_MS = 60000 };

struct options {
  const char *device, *json;
};

/* What both queues have counted, and the cycle at which; operations where the device shows them. */
struct reading {
  uint64_t value[2][CT_MAX_COUNTERS], cycle;
  bool probed;
  struct ct_probe probe;
  struct ct_info info;
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
  struct ct_event r;
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
  r->probe = (struct ct_probe){0};
  r->probed = ct_probe(dev, &r->probe) >= 0;
  if (rc >= 0) rc = run_products(dev);
  if (r->probed) ct_probe(dev, NULL);
  if (rc >= 0) rc = take(dev, r);
  if (rc >= 0) rc = ct_info(dev, &r->info);
  if (rc < 0) return rc;
  for (int q = 0; q < 2; ++q)
    for (size_t i = 0; i < CT_MAX_COUNTERS; ++i)
      r->value[q][i] -= before.value[q][i];
  if (r->cycle != CT_NO_CYCLE) r->cycle -= before.cycle;
  return 0;
}

/* Of those granted to a queue: how many the other queue had gone before. */
static uint64_t preempted(const struct ct_probe_side *side) {
  return side->served - side->peer.bin[0];
}

static void print_operations(FILE *to, const struct ct_probe *probe) {
  static const char *const queues[] = {"inference", "training"};
  fprintf(to,
          "\nTheir operations: granted, of these preempted (the other queue's went first), and the "
          "cycles lost by it, in all and\nat most. Reads of training that are held back until "
          "inference wants none are in LD_WAIT_ARB only.\n\n");
  fprintf(to, "%-10s %-10s %9s %9s %9s %9s\n", "unit", "queue", "granted", "preempted", "cycles",
          "at most");
  for (int u = 0; u < CT_UNIT_COUNT; ++u) {
    for (int q = 0; q < 2; ++q) {
      const struct ct_probe_side *side = &probe->side[u][q];
      fprintf(to, "%-10s %-10s %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "\n",
              q ? "" : ct_probe_name((enum ct_unit)u), queues[q], side->served, preempted(side),
              side->peer.sum, side->peer.max);
    }
  }
}

/* What counts cycles (its meaning begins so) counts nothing on a device without time. */
static bool is_known(const struct reading *r, size_t counter) {
  return r->cycle != CT_NO_CYCLE || strncmp(ct_counter_text(counter), "cycles ", 7) != 0;
}

static void put_value(FILE *to, const struct reading *r, int queue, size_t counter) {
  if (is_known(r, counter))
    fprintf(to, " %12" PRIu64, r->value[queue][counter]);
  else
    fprintf(to, " %12s", "unknown");
}

static void print_table(FILE *to, const struct reading *r) {
  fprintf(to, "A product of %d x %d x %d on each queue, at the same time:\n\n", SIDE, SIDE, SIDE);
  fprintf(to, "%-14s %12s %12s  %s\n", "counter", "inference", "training", "meaning");
  for (size_t i = 0; i < CT_MAX_COUNTERS && ct_counter_name(i); ++i) {
    fprintf(to, "%-14s", ct_counter_name(i));
    put_value(to, r, CT_INFERENCE, i);
    put_value(to, r, CT_TRAINING, i);
    fprintf(to, "  %s\n", ct_counter_text(i));
  }
  if (r->cycle == CT_NO_CYCLE) {
    fputs("\nThis device has no time, so what counts cycles is unknown.\n", to);
    return;
  }
  fprintf(to,
          "\nThe units in these %" PRIu64
          " cycles: busy, waiting for the other queue, for operands or the memory, for semaphores,"
          "\nidle:\n\n",
          r->cycle);
  ct_units_print(to, r->value[CT_INFERENCE], r->value[CT_TRAINING], r->cycle);
  if (r->probed) print_operations(to, &r->probe);
  if (r->probe.rows)
    fprintf(to, "\nThe memory's chip: %" PRIu64 " refreshes, %" PRIu64 " rows opened.\n",
            r->probe.refreshes, r->probe.rows);
}

static json_t *operations_json(const struct ct_probe *probe, int queue) {
  json_t *units = json_object();
  for (int u = 0; u < CT_UNIT_COUNT; ++u) {
    const struct ct_probe_side *side = &probe->side[u][queue];
    json_object_set_new(
        units, ct_probe_name((enum ct_unit)u),
        json_pack("{s:I, s:I, s:I, s:I}", "granted", (json_int_t)side->served, "preempted",
                  (json_int_t)preempted(side), "lost_cycles", (json_int_t)side->peer.sum, "longest",
                  (json_int_t)side->peer.max));
  }
  return units;
}

static json_t *as_json(const struct options *o, const struct reading *r) {
  json_t *queue[2] = {json_object(), json_object()};
  for (int q = 0; q < 2; ++q)
    for (size_t i = 0; i < CT_MAX_COUNTERS && ct_counter_name(i); ++i)
      json_object_set_new(queue[q], ct_counter_name(i),
                          is_known(r, i) ? json_integer((json_int_t)r->value[q][i]) : json_null());
  json_t *root = json_pack(
      "{s:s, s:o, s:o, s:o, s:o}", "device", o->device, "array",
      json_pack("[I, I]", (json_int_t)r->info.array_rows, (json_int_t)r->info.array_cols), "cycles",
      cli_json_cycles(r->cycle), "inference", queue[CT_INFERENCE], "training", queue[CT_TRAINING]);
  json_object_set_new(root, "time",
                      ct_units_json(r->value[CT_INFERENCE], r->value[CT_TRAINING], r->cycle));
  if (r->probe.rows)
    json_object_set_new(root, "chip",
                        json_pack("{s:I, s:I}", "refreshes", (json_int_t)r->probe.refreshes, "rows",
                                  (json_int_t)r->probe.rows));
  if (r->probed)
    json_object_set_new(
        root, "operations",
        json_pack("{s:o, s:o}", "inference", operations_json(&r->probe, CT_INFERENCE), "training",
                  operations_json(&r->probe, CT_TRAINING)));
  return root;
}

int verb_counters(int argc, char **argv) {
  static const struct cli_option options[] = {
      CLI_DEVICE_AT(struct options, device),
      {"json", "FILE", "Write the counters (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Shows what every performance counter of both queues counts in a small product on each, "
          "at the same time; on sim: also the operations granted and preempted."
          "\vExample:\n  coltrain counters --device sim:core=16x8,stall=25\n"};
  struct options o = {.device = CLI_DEVICE};
  if (cli_options(&command, argc, argv, &o)) return 1;
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
