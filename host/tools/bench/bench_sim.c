/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `coltrain bench sim`: cycles of the simulated core a second, for a product of 512 cubed (the
 * array always busy) and for the main job on digits (serving and training), with models of one and
 * of two threads. Times include what the host does for the work, packing and unpacking matrices.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "cli.h"
#include "colocate.h"

enum { SIDE = 512, REQUESTS = 200, MAX_REPEAT = 100 };

struct options {
  const char *json;
  unsigned repeat;
};

/* One measurement: the best of its repetitions, by CPU time. */
struct run {
  const char *work, *device;
  uint64_t cycles;
  double wall, cpu; /* seconds */
};

/* ---- Work ---- */

/* Either returns 0 and how many cycles it simulated, or 1 after a sentence. */

static int product(const char *uri, uint64_t *cycles) {
  const size_t area = (size_t)SIDE * SIDE;
  float *x = malloc(3 * area * sizeof *x);
  ct_device *dev;
  if (!x) return cli_fail("no memory for a product of %d cubed", SIDE);
  for (size_t i = 0; i < 2 * area; ++i)
    x[i] = (float)((int)(i * 2654435761u >> 16 & 255) - 128) * 0.0078125f;
  int status = cli_open(uri, &dev);
  if (!status) {
    int rc = ct_matmul(dev, CT_INFERENCE, SIDE, SIDE, SIDE, x, x + area, x + 2 * area, NULL);
    if (rc >= 0) rc = ct_now(dev, cycles);
    if (rc < 0) status = cli_fail_device(dev, rc, "the product");
    ct_close(dev);
  }
  free(x);
  return status;
}

static int main_job(const char *uri, uint64_t *cycles) {
  struct colocate_options o = {.learn = LEARN_DEFAULTS, .requests = REQUESTS, .permille = 500};
  struct colocate c;
  o.learn.device = uri;
  o.learn.epochs = 1;
  int status = colocate_open(&c, &o);
  if (!status) {
    ct_progress_open(&c.load.progress, stderr);
    status = colocate_runs(&c);
    ct_progress_close(&c.load.progress);
  }
  if (!status && cli_stopped()) status = 1;
  if (!status) {
    const int rc = ct_now(c.load.dev, cycles);
    if (rc < 0) status = cli_fail_device(c.load.dev, rc, "the clock");
  }
  colocate_close(&c);
  return status;
}

/* ---- Measuring ---- */

static int measure(struct run *r, unsigned repeat, int (*work)(const char *, uint64_t *)) {
  for (unsigned i = 0; i < repeat && !cli_stopped(); ++i) {
    const double wall = bench_seconds(CLOCK_MONOTONIC),
                 cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (work(r->device, &r->cycles)) return 1;
    const double took = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    if (i == 0 || took < r->cpu) {
      r->cpu = took;
      r->wall = bench_seconds(CLOCK_MONOTONIC) - wall;
    }
  }
  return 0;
}

static json_t *as_json(const struct run *r) {
  return json_pack("{s:s, s:s, s:I, s:f, s:f, s:o, s:o}", "work", r->work, "device", r->device,
                   "cycles", (json_int_t)r->cycles, "wall_seconds", r->wall, "cpu_seconds", r->cpu,
                   "cycles_per_second", cli_json_ratio((double)r->cycles, r->wall),
                   "cycles_per_cpu_second", cli_json_ratio((double)r->cycles, r->cpu));
}

static const struct work {
  const char *name;
  int (*run)(const char *, uint64_t *);
} works[] = {{"product of 512 cubed", product}, {"main job on digits", main_job}};

/* Everything on one device; 0, or 1 after a sentence. */
static int run_device(const struct options *o, const char *device, json_t *list) {
  FILE *text = cli_text(o->json);
  for (size_t w = 0; w < sizeof works / sizeof *works; ++w) {
    struct run r = {.work = works[w].name, .device = device};
    if (measure(&r, o->repeat, works[w].run)) return !cli_stopped();
    if (cli_stopped()) return 0; /* it may have had too few runs */
    fprintf(text, "%-22s %-15s %12" PRIu64 " %9.2f %9.2f %14.0f %14.0f\n", r.work, r.device,
            r.cycles, r.wall, r.cpu, (double)r.cycles / r.wall, (double)r.cycles / r.cpu);
    fflush(text);
    json_array_append_new(list, as_json(&r));
  }
  return 0;
}

static int run_all(const struct options *o) {
  static const char two_threads[] = "sim:threads=2";
  FILE *text = cli_text(o->json);
  json_t *list = json_array();
  char why[512] = "";
  fprintf(text, "%-22s %-15s %12s %9s %9s %14s %14s\n", "work", "device", "cycles", "wall s",
          "CPU s", "cycles/s", "cycles/CPU s");
  int status = 0;
  if (!bench_exists("sim:", why, sizeof why))
    status = cli_fail("cannot open the device \"sim:\": %s", why);
  else
    status = run_device(o, "sim:", list);
  if (!status && !cli_stopped()) {
    /* It is built only when asked for. */
    if (bench_exists(two_threads, why, sizeof why))
      status = run_device(o, two_threads, list);
    else
      fprintf(text, "left out: %s: %s\n", two_threads, why);
  }
  return bench_write(o->json, json_pack("{s:o}", "runs", list), status);
}

int bench_sim(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"json", "FILE", "Write the results (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)},
      {"repeat", "N", "Take the best of N runs by CPU time (3)",
       CLI_COUNT_AT(struct options, repeat, 1, MAX_REPEAT)}};
  static const struct cli_command command = {
      CLI_COMMAND(options),
      .doc =
          "Measures how many cycles a second the simulator runs: a product of 512 cubed, and "
          "serving and training digits; with one thread, and with two if make THREADS=2 has "
          "built that model.\vExample:\n  coltrain bench sim --repeat 1\n"};
  struct options o = {.repeat = 3};
  if (cli_options(&command, argc, argv, &o)) return 1;
  cli_catch_stop();
  return run_all(&o);
}
