/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the emulator computes, for each of its paths that this machine has: a product of 512
 * cubed from operands to result in device memory, and training steps of 784-512-256-10 at batch 64
 * as a user takes them (packing the batch, the job, the loss).
 *
 * Time is CPU time of the one thread, so that other programs hardly matter; of several runs the
 * best counts, because what disturbs a run only makes it longer.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "bench_product.h"
#include "cli.h"
#include "ct_rand.h"

enum { SIDE = 512, BATCH = 64, INPUTS = 784, CLASSES = 10, LEAST_RUNS = 3 };

static const uint32_t widths[] = {INPUTS, 512, 256, CLASSES};
enum { LAYERS = sizeof widths / sizeof *widths - 1 };

static const char *const paths[] = {"plain", "avx2", "avx512"};
enum { PATHS = sizeof paths / sizeof *paths };

struct options {
  const char *json;
  float seconds; /* of CPU time, for each figure */
};

struct figures {
  const char *path;
  double macs;   /* of the product, a second */
  double step;   /* seconds */
  uint32_t loss; /* bits of the loss after the first steps: the same on every path */
};

static double cpu_seconds(void) {
  return bench_seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* At least LEAST_RUNS, then until the time is over; less only if stopped. */
static bool goes_on(unsigned runs, double end) {
  return !cli_stopped() && (runs < LEAST_RUNS || cpu_seconds() < end);
}

/* ---- The product ---- */

static int multiply(ct_device *dev, const struct bench_product *p) {
  struct ct_event result;
  uint64_t tag;
  const int rc = bench_product_submit(dev, CT_TRAINING, p, &tag);
  return rc < 0 ? rc : bench_product_reap(dev, &result, CT_FOREVER);
}

static int time_product(ct_device *dev, double seconds, double *best) {
  struct bench_product p = {.m = SIDE, .n = SIDE, .k = SIDE, .result = CT_GEMM_F32};
  int rc = bench_product_make(dev, &p);
  if (rc < 0) return rc;
  *best = 0;
  const double end = cpu_seconds() + seconds;
  for (unsigned i = 0; rc >= 0 && goes_on(i, end); ++i) {
    const double from = cpu_seconds();
    rc = multiply(dev, &p);
    const double took = cpu_seconds() - from;
    if (i == 0 || took < *best) *best = took;
  }
  bench_product_free(dev, &p);
  return rc;
}

/* ---- Training ---- */

static int time_steps(ct_model *model, double seconds, struct figures *f) {
  struct ct_rand rand;
  uint32_t labels[BATCH];
  float loss = 0, *x = malloc(sizeof *x * BATCH * INPUTS);
  int rc = x ? 0 : CT_ERR_MEMORY;
  ct_rand_seed(&rand, 2, CT_RAND_STREAM_NONE);
  for (size_t i = 0; x && i < (size_t)BATCH * INPUTS; ++i)
    x[i] = ct_rand_unit(&rand);
  for (size_t i = 0; i < BATCH; ++i)
    labels[i] = (uint32_t)ct_rand_below(&rand, CLASSES);
  const double end = cpu_seconds() + seconds;
  for (unsigned i = 0; rc >= 0 && goes_on(i, end); ++i) {
    const double from = cpu_seconds();
    rc = ct_model_step(model, x, labels, &loss);
    const double took = cpu_seconds() - from;
    if (i == 0 || took < f->step) f->step = took;
    if (i + 1 == LEAST_RUNS) memcpy(&f->loss, &loss, sizeof loss);
  }
  free(x);
  return rc;
}

static int time_training(ct_device *dev, double seconds, struct figures *f) {
  const struct ct_training training = {.batch = BATCH, .rates = {.lr = 0.05f, .momentum = 0.9f}};
  ct_model *model = NULL;
  int rc = ct_model_create(dev, widths, LAYERS, 1, &model);
  if (rc >= 0) rc = ct_model_training(model, &training);
  if (rc >= 0) rc = time_steps(model, seconds, f);
  ct_model_free(model);
  return rc;
}

/* ---- Results ---- */

static int measure(const struct options *o, struct figures *f) {
  char uri[32];
  ct_device *dev;
  double product = 0;
  snprintf(uri, sizeof uri, "emu:path=%s", f->path);
  if (cli_open(uri, &dev)) return 1;
  int rc = time_product(dev, (double)o->seconds, &product);
  if (rc >= 0) rc = time_training(dev, (double)o->seconds, f);
  f->macs = (double)SIDE * SIDE * SIDE / product;
  const int status = rc < 0 ? cli_fail_device(dev, rc, uri) : 0;
  ct_close(dev);
  return status;
}

static bool is_available(const char *path) {
  char uri[32], why[256];
  snprintf(uri, sizeof uri, "emu:path=%s", path);
  return bench_exists(uri, why, sizeof why);
}

static json_t *row_json(const struct figures *f) {
  return json_pack("{s:s, s:f, s:f, s:f}", "path", f->path, "gmacs_per_second", f->macs / 1e9,
                   "steps_per_second", 1 / f->step, "samples_per_second", BATCH / f->step);
}

static int run(const struct options *o) {
  FILE *text = cli_text(o->json);
  json_t *rows = json_array();
  struct figures first = {.path = NULL};
  int status = 0;
  fprintf(text, "%-8s %14s %14s %14s\n", "path", "GMAC/s", "steps/s", "samples/s");
  for (unsigned i = 0; i < PATHS && !status && !cli_stopped(); ++i) {
    struct figures f = {.path = paths[i]};
    if (!is_available(f.path)) {
      fprintf(text, "%-8s this machine cannot\n", f.path);
      continue;
    }
    status = measure(o, &f);
    if (status || cli_stopped()) break; /* its figures may be those of too few runs */
    fprintf(text, "%-8s %14.3f %14.2f %14.1f\n", f.path, f.macs / 1e9, 1 / f.step, BATCH / f.step);
    fflush(text);
    json_array_append_new(rows, row_json(&f));
    if (!first.path) first = f;
    if (f.loss != first.loss)
      status = cli_fail("the paths %s and %s compute different losses", first.path, f.path);
  }
  json_t *root = json_pack("{s:i, s:s, s:i, s:o}", "product", SIDE, "layers", "784-512-256-10",
                           "batch", BATCH, "paths", rows);
  return bench_write(o->json, root, status);
}

/* ---- Command line ---- */

int bench_emu(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"json", "FILE", "Write the figures (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)},
      {"seconds", "S", "CPU time for each figure (2)",
       CLI_REAL_AT(struct options, seconds, 0.0f, 1000.0f)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Measures the emulator on one thread, by path: multiply-accumulates a second of a "
          "product of 512 cubed, and training steps and samples a second of 784-512-256-10 at "
          "batch 64. Best of several runs, in CPU time.\vExample:\n  coltrain bench emu --json "
          "emu.json\n"};
  struct options o = {.seconds = 2.0f};
  if (cli_options(&command, argc, argv, &o)) return 1;
  cli_catch_stop();
  return run(&o);
}
