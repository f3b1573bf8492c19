/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "ct_units.h"

enum { SIDE = 64, AREA = SIDE * SIDE, COUNTERS = 32 };

static error_t parse(int key, char *arg, struct argp_state *state) {
  const char **device = state->input;
  return cli_common(key, arg, state, device, NULL);
}

/* A product of SIDE x SIDE matrices on each queue, so that the numbers are not all 0. */
static int run_products(ct_device *dev) {
  float *x = malloc(3 * (size_t)AREA * sizeof *x);
  if (!x) return CT_ERR_MEMORY;
  float *b = x + AREA, *c = b + AREA;
  for (int i = 0; i < 2 * AREA; ++i)
    x[i] = (float)(i % 17 - 8) * 0.125f;
  int rc = ct_matmul(dev, CT_INFERENCE, SIDE, SIDE, SIDE, x, b, c, NULL);
  if (rc >= 0) rc = ct_matmul(dev, CT_TRAINING, SIDE, SIDE, SIDE, x, b, c, NULL);
  free(x);
  return rc;
}

static int print_table(ct_device *dev) {
  uint64_t values[2][COUNTERS] = {{0}};
  int rc = ct_counters(dev, CT_INFERENCE, values[CT_INFERENCE], COUNTERS);
  if (rc >= 0) rc = ct_counters(dev, CT_TRAINING, values[CT_TRAINING], COUNTERS);
  uint64_t now = CT_NO_CYCLE;
  if (rc >= 0) rc = ct_now(dev, &now);
  if (rc < 0) return rc;
  printf("After a product of %d x %d x %d on each queue:\n\n", SIDE, SIDE, SIDE);
  printf("%-14s %12s %12s  %s\n", "counter", "inference", "training", "meaning");
  for (size_t i = 0; i < COUNTERS && ct_counter_name(i); ++i)
    printf("%-14s %12" PRIu64 " %12" PRIu64 "  %s\n", ct_counter_name(i), values[CT_INFERENCE][i],
           values[CT_TRAINING][i], ct_counter_text(i));
  if (now == CT_NO_CYCLE) return 0;
  printf("\nThe units in the %" PRIu64
         " cycles since reset: busy, waiting for the other queue, for operands or the memory, for\n"
         "semaphores, idle:\n\n",
         now);
  ct_units_print(stdout, values[CT_INFERENCE], values[CT_TRAINING], now);
  return 0;
}

int verb_counters(int argc, char **argv) {
  static const struct argp_option list[] = {
      {"device", CLI_KEY_DEVICE, "URI", 0, "The device (" CLI_DEVICE ")", 0}, {0}};
  static const struct argp argp = {
      .options = list,
      .parser = parse,
      .doc =
          "Shows every performance counter of both queues, after a small product on each."
          "\vExample:\n  coltrain counters --device sim:core=16x8,stall=25\n"};
  const char *uri = CLI_DEVICE;
  cli_parse(&argp, argc, argv, &uri);
  ct_device *dev;
  if (cli_open(uri, &dev)) return 1;
  int rc = run_products(dev);
  if (rc >= 0) rc = print_table(dev);
  const int status = rc < 0 ? cli_fail_device(dev, rc, uri) : 0;
  ct_close(dev);
  return status;
}
