/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy products keep the array: cycles from the doorbell to the completion, operands and result
 * in device memory, for shapes, result formats, memories, alone and beside the other queue. Every
 * result is compared with the emulator's, byte by byte.
 *
 * Set against each figure is a bound: the largest of the rows' slots, the weight tiles' slots (16
 * cycles each) and the bytes that have to cross the memory port at the scratchpad's size, plus four
 * memory latencies (descriptor, program, first operands, last answer). Beside the other queue it is
 * the bound of the share that the product had: on top of its reads and writes come the beats of the
 * other queue for which one of them waited, and on top of its rows, under ROUND_ROBIN, a row tile
 * of the neighbour's, 16 rows, in each place where it had the array between two of its own rows.
 *
 * The grid of docs/results.md is the experiment's: host/python/coltrain/experiments/utilisation.py.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_product.h"
#include "cli.h"
#include "ct_queue.h"
#include "ct_probe.h"
#include "ct_units.h"

enum { MAX_SHAPES = 32, NEIGHBOUR = 256, NEIGHBOURS = 3, READS = 8 };

/* What the other queue does: nothing; it trains without end (the product goes to the inference
 * queue, policy PRIORITY); it infers without end (to the training queue, ROUND_ROBIN). */
enum beside { ALONE, BESIDE_TRAINING, BESIDE_INFERENCE };
static const char *const beside_name[] = {"alone", "training", "inference"};
static const char *const result_name[] = {[CT_GEMM_F32] = "fp32", [CT_GEMM_HBFP8] = "hbfp8"};

struct shape {
  uint32_t m, n, k;
};

struct options {
  const char *json, *core;
  struct shape shape[MAX_SHAPES];
  size_t shapes;
  unsigned stall, bandwidth, latency;
  enum ct_gemm_result result;
  enum beside beside;
  uint64_t seed;
  unsigned runs;   /* of each product, one after the other; the last one counts */
  unsigned phases; /* of the neighbour: so often all is measured, each time it is further on */
  bool trace;      /* when the units worked, below each figure */
  bool units;      /* what the units did in its cycles, below each figure */
};

/* ---- What is right ---- */

/* What the emulator makes of a product, which the caller frees; 0, or 1 after a sentence. */
static int expected(const struct shape *s, enum ct_gemm_result result, uint8_t **want) {
  ct_device *dev;
  struct bench_product p = {.m = s->m, .n = s->n, .k = s->k, .result = result};
  struct ct_event r;
  uint64_t tag;
  if (cli_open("emu:", &dev)) return 1;
  int rc = bench_product_make(dev, &p);
  if (rc >= 0) {
    rc = bench_product_submit(dev, CT_INFERENCE, &p, &tag);
    if (rc >= 0) rc = bench_product_reap(dev, &r, CT_FOREVER);
    if (rc >= 0) rc = bench_product_read(dev, &p, want);
    bench_product_free(dev, &p);
  }
  const int status = rc < 0 ? cli_fail_device(dev, rc, "emu:") : 0;
  ct_close(dev);
  return status;
}

/* ---- The other queue ---- */

struct neighbour {
  struct bench_product p;
  enum ct_queue queue;
  bool on;
};

static int neighbour_add(ct_device *dev, const struct neighbour *n) {
  uint64_t tag;
  return n->on ? bench_product_submit(dev, n->queue, &n->p, &tag) : 0;
}

/* Starts it and waits until it is under way; in each phase for a seventh of its product's rows
 * longer. */
static int neighbour_start(ct_device *dev, enum beside beside, unsigned phase,
                           struct neighbour *n) {
  enum { UNDER_WAY = 5000, STEP = 9362 };
  *n = (struct neighbour){.p = {NEIGHBOUR, NEIGHBOUR, NEIGHBOUR, .result = CT_GEMM_HBFP8},
                          .on = beside != ALONE,
                          .queue = beside == BESIDE_TRAINING ? CT_TRAINING : CT_INFERENCE};
  int rc = ct_set_policy(dev, beside == BESIDE_INFERENCE ? CT_ROUND_ROBIN : CT_PRIORITY);
  /* With half of the bursts that inference may have outstanding, the queues' turns are not equal.
   */
  if (rc >= 0 && beside == BESIDE_INFERENCE) rc = ct_reg_write(dev, CT_REG_TRAIN_CAP, READS);
  if (rc < 0 || !n->on) return rc;
  rc = bench_product_make(dev, &n->p);
  if (rc < 0) n->on = false;
  for (int i = 0; rc >= 0 && i < NEIGHBOURS; ++i)
    rc = neighbour_add(dev, n);
  uint64_t now = 0;
  struct ct_event r;
  if (rc >= 0) rc = ct_now(dev, &now);
  for (const uint64_t until = now + UNDER_WAY + (uint64_t)phase * STEP; rc >= 0;) {
    rc = ct_reap_until(dev, &r, until, CT_FOREVER);
    if (rc >= 0 && r.error) rc = ct_event_error(dev, &r);
    if (rc >= 0) rc = neighbour_add(dev, n);
  }
  return rc == CT_ERR_TIMEOUT ? 0 : rc;
}

/* Lets it run out. */
static int neighbour_stop(ct_device *dev, struct neighbour *n) {
  struct ct_event r;
  int rc = 0;
  while (n->on && rc >= 0 && ct_outstanding(dev, n->queue))
    rc = bench_product_reap(dev, &r, CT_FOREVER);
  if (n->on) bench_product_free(dev, &n->p);
  return rc;
}

/* ---- When the units worked ---- */

enum { TRACED = 7, SHOWN_RUNS = 6 };

static const struct traced {
  enum ct_unit unit;
  enum ct_probe_event event;
  const char *name;
} traced[TRACED] = {{CT_UNIT_READ, CT_PROBE_GRANT, "reads asked for"},
                    {CT_UNIT_READ, CT_PROBE_USED, "beats read"},
                    {CT_UNIT_MXU, CT_PROBE_USED, "rows multiplied"},
                    {CT_UNIT_VA, CT_PROBE_USED, "rows copied"},
                    {CT_UNIT_VS, CT_PROBE_USED, "rows quantised"},
                    {CT_UNIT_WRITE, CT_PROBE_USED, "beats written"},
                    {CT_UNIT_WRITE, CT_PROBE_COMPLETE, "writes answered"}};

/* Stretches of cycles in which something happened: how many there were, the first ones, and the
 * last ones (number n at n % SHOWN_RUNS). */
struct stretches {
  uint64_t count;
  struct {
    uint64_t from, to;
  } first[SHOWN_RUNS], last[SHOWN_RUNS];
};

struct trace {
  struct stretches of[TRACED];
};

static void trace_add(struct stretches *s, uint64_t cycle) {
  const uint64_t at = s->count - 1;
  if (s->count && s->last[at % SHOWN_RUNS].to + 1 == cycle) {
    s->last[at % SHOWN_RUNS].to = cycle;
  } else {
    s->last[s->count % SHOWN_RUNS].from = s->last[s->count % SHOWN_RUNS].to = cycle;
    ++s->count;
  }
  if (s->count <= SHOWN_RUNS) memcpy(s->first, s->last, sizeof s->first);
}

/* Cycles of the array that the other queue had between two rows of this one: a row tile of it goes
 * in front of one of this queue's (every one of the neighbour's has CT_TILE rows). What it had on
 * top of that, this queue did not ask for. */
struct turns {
  enum ct_queue queue;
  uint64_t most; /* of a row tile */
  uint64_t run;  /* since this queue's last row */
  uint64_t rows; /* in all */
};

static bool row_used(uint64_t events, enum ct_queue queue) {
  return events >> (CT_PROBE_UNIT_BITS * CT_UNIT_MXU + 2 * CT_PROBE_USED + queue) & 1;
}

static void turns_add(struct turns *t, uint64_t events) {
  if (row_used(events, t->queue)) {
    t->rows += t->run < t->most ? t->run : t->most;
    t->run = 0;
  } else {
    t->run += row_used(events, t->queue == CT_TRAINING ? CT_INFERENCE : CT_TRAINING);
  }
}

static void trace_cycle(struct trace *t, uint64_t cycle, uint64_t events) {
  for (size_t i = 0; i < TRACED; ++i) {
    const unsigned bit = CT_PROBE_UNIT_BITS * traced[i].unit + 2 * traced[i].event;
    if (events >> bit & 3) trace_add(&t->of[i], cycle);
  }
}

static void trace_print(FILE *to, const struct trace *t, uint64_t doorbell) {
  for (size_t i = 0; i < TRACED; ++i) {
    const struct stretches *s = &t->of[i];
    fprintf(to, "  %-16s", traced[i].name);
    for (uint64_t n = 0; n < s->count; ++n) {
      const bool early = n < SHOWN_RUNS, late = n + SHOWN_RUNS >= s->count;
      if (n == SHOWN_RUNS && !late) fputs(" ...", to);
      if (!early && !late) continue;
      const uint64_t from = early ? s->first[n].from : s->last[n % SHOWN_RUNS].from;
      const uint64_t end = late ? s->last[n % SHOWN_RUNS].to : s->first[n].to;
      fprintf(to, " %" PRId64, (int64_t)(from - doorbell));
      if (end > from) fprintf(to, "-%" PRId64, (int64_t)(end - doorbell));
    }
    fputc('\n', to);
  }
}

/* ---- One figure ---- */

struct figure {
  struct shape s;
  enum ct_gemm_result result;
  enum beside beside;
  unsigned stall, bandwidth, latency, runs, phase;
  enum ct_queue queue; /* the product's */
  uint64_t cycles, bound, counted;
  uint64_t counter[CT_MAX_COUNTERS]; /* of its queue, which is at rest before and after */
  double use, of_bound;
  bool traced, units;
  uint64_t doorbell;
  struct trace trace;
  struct turns turns;
};

static void watch(void *arg, uint64_t cycle, uint64_t events) {
  struct figure *f = arg;
  if (f->traced) trace_cycle(&f->trace, cycle, events);
  if (f->beside == BESIDE_INFERENCE) turns_add(&f->turns, events);
}

static uint64_t max_u64(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* Bytes that have to be read: both operands once if one of them fits the window; else the smaller
 * one in parts that fit, and the other for each part. */
static uint64_t read_bytes(const struct shape *s, uint32_t window) {
  const uint64_t a = ct_pack_size(s->m, s->k), b = ct_pack_size(s->n, s->k);
  const uint64_t small = a < b ? a : b, large = a < b ? b : a;
  const uint64_t words = small / CT_RECORD_UNITS / CT_UNIT * CT_TILE;
  return small + large * ((words + window - 1) / window);
}

static uint64_t counted(const struct figure *f, const char *name) {
  const int at = cli_counter_index(name);
  return at < 0 ? 0 : f->counter[at];
}

static uint64_t bound_of(const struct figure *f, const struct ct_info *info, uint32_t window) {
  const uint64_t nk = (uint64_t)ct_tiles(f->s.n) * ct_tiles(f->s.k);
  const uint64_t rows = f->s.m * nk * (16 / info->array_cols) + f->turns.rows;
  const uint64_t weights = (ct_tiles(f->s.m) + 7) / 8 * nk * 16;
  /* A narrow memory begins with a beat when the one before has gone, and then may refuse it. */
  const double beat = 16.0 / f->bandwidth + f->stall / (100.0 - f->stall);
  /* Where the queues take turns, a queue's share is what the other leaves it. */
  const bool turns = f->beside == BESIDE_INFERENCE;
  const uint64_t in = read_bytes(&f->s, window) / CT_UNIT + (turns ? counted(f, "LD_WAIT_ARB") : 0);
  const uint64_t out = bench_product_size(f->s.m, f->s.n, f->result) / CT_UNIT +
                       (turns ? counted(f, "ST_WAIT_ARB") : 0);
  const uint64_t memory = (uint64_t)((double)max_u64(in, out) * beat);
  return max_u64(max_u64(rows, weights), memory) + 4 * (uint64_t)f->latency;
}

static int run_measured(ct_device *dev, struct neighbour *n, const struct bench_product *p,
                        enum ct_queue queue, struct ct_event *r) {
  uint64_t tag;
  int rc = bench_product_submit(dev, queue, p, &tag);
  while (rc >= 0) {
    rc = bench_product_reap(dev, r, CT_FOREVER);
    if (rc < 0 || r->tag == tag) break;
    rc = neighbour_add(dev, n);
  }
  return rc;
}

static void conclude(struct figure *f, const struct ct_event *r, const struct ct_info *info,
                     uint32_t window) {
  const double macs = (double)f->s.m * f->s.n * f->s.k;
  f->cycles = r->end - r->arrive;
  f->doorbell = r->arrive;
  f->bound = bound_of(f, info, window);
  f->use = macs / (info->macs_per_cycle * (double)f->cycles);
  f->of_bound = (double)f->bound / (double)f->cycles;
}

/* The runs of a product, the last of which counts. */
static int run_product(ct_device *dev, struct neighbour *n, struct figure *f,
                       const struct bench_product *p, struct ct_event *r) {
  uint64_t before[CT_MAX_COUNTERS] = {0}, from = 0, to = 0;
  struct ct_probe probe = {.watch = watch, .watch_arg = f};
  const bool watched = f->traced || f->beside == BESIDE_INFERENCE;
  int rc = watched ? ct_probe(dev, &probe) : 0;
  for (unsigned i = 0; rc >= 0 && i < f->runs; ++i) {
    memset(&f->trace, 0, sizeof f->trace);
    f->turns.run = f->turns.rows = 0;
    rc = ct_counters(dev, f->queue, before, CT_MAX_COUNTERS);
    if (rc >= 0) rc = ct_now(dev, &from);
    if (rc >= 0) rc = run_measured(dev, n, p, f->queue, r);
  }
  if (watched) ct_probe(dev, NULL);
  if (rc >= 0) rc = ct_now(dev, &to);
  if (rc >= 0) rc = ct_counters(dev, f->queue, f->counter, CT_MAX_COUNTERS);
  for (size_t i = 0; i < CT_MAX_COUNTERS; ++i)
    f->counter[i] -= before[i];
  f->counted = to - from;
  return rc;
}

/* *same: the result is what it has to be. *kept: the product before this one, and then this one.
 * While it is kept no program takes another's place, which the device might fetch as a guess. */
static int measure(ct_device *dev, struct neighbour *n, struct figure *f, const uint8_t *want,
                   struct bench_product *kept, bool *same) {
  f->queue = f->beside == BESIDE_INFERENCE ? CT_TRAINING : CT_INFERENCE;
  struct bench_product p = {.m = f->s.m, .n = f->s.n, .k = f->s.k, .result = f->result};
  struct ct_info info;
  struct ct_event r;
  uint8_t *got = NULL;
  int rc = bench_product_make(dev, &p);
  if (rc < 0) return rc;
  bench_product_free(dev, kept);
  *kept = p;
  rc = ct_info(dev, &info);
  if (rc >= 0)
    f->turns = (struct turns){.queue = f->queue, .most = (uint64_t)CT_TILE * 16 / info.array_cols};
  if (rc >= 0) rc = run_product(dev, n, f, &p, &r);
  if (rc >= 0) rc = bench_product_read(dev, &p, &got);
  if (rc >= 0) conclude(f, &r, &info, ct_window_words(dev));
  *same = got && !memcmp(got, want, p.c_size);
  free(got);
  return rc < 0 ? rc : 0;
}

/* ---- Output ---- */

static void print_figure(FILE *to, const struct figure *f) {
  static const char *const shown[] = {"MXU_BUSY",     "MXU_WAIT_ARB", "MXU_WAIT_B", "MXU_WAIT_A",
                                      "MXU_WAIT_SEM", "LD_BEATS",     "ST_BEATS"};
  char shape[32];
  snprintf(shape, sizeof shape, "%ux%ux%u", f->s.m, f->s.n, f->s.k);
  fprintf(to, "%-12s %-5s %3u%% %3u %4u %-9s %8" PRIu64 " %6.2f%% %8" PRIu64 " %6.1f%%", shape,
          result_name[f->result], f->stall, f->bandwidth, f->latency, beside_name[f->beside],
          f->cycles, 100 * f->use, f->bound, 100 * f->of_bound);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; ++i)
    fprintf(to, " %8" PRIu64, counted(f, shown[i]));
  fputc('\n', to);
  fflush(to);
}

static void print_head(FILE *to) {
  fprintf(to, "%-12s %-5s %4s %3s %4s %-9s %8s %7s %8s %7s %8s %8s %8s %8s %8s %8s %8s\n",
          "m x n x k", "C", "stal", "B/c", "lat", "beside", "cycles", "use", "bound", "of it",
          "busy", "wait arb", "wait B", "wait A", "wait sem", "beats in", "out");
}

static json_t *figure_json(const struct figure *f) {
  json_t *counters = json_object();
  for (size_t i = 0; i < CT_MAX_COUNTERS && ct_counter_name(i); ++i)
    json_object_set_new(counters, ct_counter_name(i), json_integer((json_int_t)f->counter[i]));
  return json_pack(
      "{s:i, s:i, s:i, s:s, s:i, s:i, s:i, s:s, s:i, s:I, s:f, s:I, s:f, s:o}", "m", (int)f->s.m,
      "n", (int)f->s.n, "k", (int)f->s.k, "result", result_name[f->result], "stall", (int)f->stall,
      "bandwidth", (int)f->bandwidth, "latency", (int)f->latency, "beside", beside_name[f->beside],
      "phase", (int)f->phase, "cycles", (json_int_t)f->cycles, "utilisation", f->use,
      "bound_cycles", (json_int_t)f->bound, "of_bound", f->of_bound, "counters", counters);
}

/* ---- All ---- */

/* One figure, printed and noted; 0, or 1 after a sentence. */
static int run_one(const struct options *o, ct_device *dev, const char *uri, struct neighbour *n,
                   struct figure *f, struct bench_product *kept, json_t *list) {
  FILE *text = cli_text(o->json);
  uint8_t *want = NULL;
  bool same = false;
  if (expected(&f->s, f->result, &want) || !want) return 1;
  const int rc = measure(dev, n, f, want, kept, &same);
  free(want);
  if (rc < 0) return cli_fail_device(dev, rc, uri);
  if (!same)
    return cli_fail("%s: a product of %u x %u x %u differs from that of emu:", uri, f->s.m, f->s.n,
                    f->s.k);
  print_figure(text, f);
  if (f->traced) trace_print(text, &f->trace, f->doorbell);
  if (f->units)
    ct_units_print(text, f->queue == CT_INFERENCE ? f->counter : NULL,
                   f->queue == CT_TRAINING ? f->counter : NULL, f->counted);
  json_array_append_new(list, figure_json(f));
  return 0;
}

/* All shapes on one device, in one phase of the neighbour. */
static int run_phase(const struct options *o, unsigned phase, json_t *list) {
  char uri[160];
  ct_device *dev;
  struct neighbour n;
  struct bench_product kept = {.m = 0};
  snprintf(uri, sizeof uri, "sim:core=%s,stall=%u,latency=%u,bandwidth=%u,seed=%" PRIu64, o->core,
           o->stall, o->latency, o->bandwidth, o->seed);
  if (cli_open(uri, &dev)) return 1;
  int rc = neighbour_start(dev, o->beside, phase, &n);
  int status = rc < 0 ? cli_fail_device(dev, rc, uri) : 0;
  for (size_t s = 0; !status && s < o->shapes && !cli_stopped(); ++s) {
    struct figure f = {.s = o->shape[s],
                       .result = o->result,
                       .beside = o->beside,
                       .stall = o->stall,
                       .bandwidth = o->bandwidth,
                       .latency = o->latency,
                       .runs = o->runs,
                       .phase = phase,
                       .traced = o->trace,
                       .units = o->units};
    status = run_one(o, dev, uri, &n, &f, &kept, list);
  }
  rc = neighbour_stop(dev, &n);
  if (rc < 0 && !status) status = cli_fail_device(dev, rc, uri);
  bench_product_free(dev, &kept);
  ct_close(dev);
  return status;
}

/* The neighbour's phase matters where the queues take turns. */
static int run(const struct options *o) {
  const struct cli_file files[] = {{"--json", o->json, CLI_WRITE}};
  if (cli_files(files, 1)) return 1;
  const unsigned phases = o->beside == BESIDE_INFERENCE ? o->phases : 1;
  json_t *list = json_array();
  int status = 0;
  print_head(cli_text(o->json));
  for (unsigned phase = 0; phase < phases && !status && !cli_stopped(); ++phase)
    status = run_phase(o, phase, list);
  json_t *root = json_pack("{s:s, s:i, s:I, s:o}", "core", o->core, "runs", (int)o->runs, "seed",
                           (json_int_t)o->seed, "products", list);
  return bench_write(o->json, root, status);
}

/* ---- Options ---- */

static void take_shape(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  unsigned size[3];
  char text[16];
  size_t count = 0;
  const char *p = arg;
  for (;; ++p) {
    const size_t len = strcspn(p, "x");
    if (count == 3) argp_error(state, "--shape: more than 3 numbers");
    snprintf(text, sizeof text, "%.*s", (int)len, p);
    size[count++] = (unsigned)cli_count(state, "--shape", text, 1, 4096);
    p += len;
    if (!*p) break;
  }
  if (count != 3) argp_error(state, "--shape: \"%s\" is not MxNxK", arg);
  if (o->shapes == MAX_SHAPES) argp_error(state, "--shape: at most %d", MAX_SHAPES);
  o->shape[o->shapes++] = (struct shape){size[0], size[1], size[2]};
}

/* Which of so many names arg is. */
static size_t choice(const char *const *names, size_t count, const char *arg, const char *error,
                     const struct argp_state *state) {
  for (size_t i = 0; i < count; ++i)
    if (!strcmp(arg, names[i])) return i;
  argp_error(state, error, arg);
  return 0;
}

static void take_result(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  o->result = (enum ct_gemm_result)choice(result_name, 2, arg,
                                          "--result: \"%s\" is not hbfp8 or fp32", state);
}

static void take_beside(void *input, const char *arg, const struct argp_state *state) {
  struct options *o = input;
  o->beside = (enum beside)choice(beside_name, 3, arg,
                                  "--beside: \"%s\" is not alone, training or inference", state);
}

static void end(void *input, const struct argp_state *state) {
  const struct options *o = input;
  if (o->shapes == 0)
    argp_error(state,
               "give a --shape MxNxK, such as 64x64x64; `coltrain experiment "
               "utilisation' measures the usual ones");
}

#define COUNT(field, least, most) CLI_COUNT_AT(struct options, field, least, most)

int bench_gemm(int argc, char **argv) {
  static const struct cli_option options[] = {
      {"json", "FILE", "Write all figures (- for standard output)",
       CLI_FILE_AT(struct options, json, CLI_WRITE)},
      {"shape", "MxNxK", "A shape; may be given again", .call = take_shape},
      {"result", "FORMAT", "hbfp8 (the default) or fp32", .call = take_result},
      {"stall", "N", "Percent of cycles in which the memory stalls (0)", COUNT(stall, 0, 90)},
      {"bandwidth", "N", "Bytes a cycle, each way (16)", COUNT(bandwidth, 1, 16)},
      {"latency", "N", "Cycles of the memory (60)", COUNT(latency, 1, 10000)},
      {"beside", "WHO", "alone (the default), training or inference: what the other queue does",
       .call = take_beside},
      {"core", "NAME", "16x16 (the default), 16x8 or 16x4", CLI_TEXT_AT(struct options, core)},
      {"seed", "N", "Seed of the memory's stalls (1)", COUNT(seed, 0, INT64_MAX)},
      {"runs", "N", "Runs of each product one after the other, of which the last counts (1)",
       COUNT(runs, 1, 1000)},
      {"phases", "N",
       "Beside inference, measure everything N times, each time when that is further on (1)",
       COUNT(phases, 1, 1000)},
      {"trace", NULL,
       "Also the cycles, from the doorbell on, in which each unit worked (the first and the last "
       "ones)",
       CLI_FLAG_AT(struct options, trace)},
      {"units", NULL, "Also what each unit did for the product: busy, waiting and for what, idle",
       CLI_FLAG_AT(struct options, units)}};
  static const struct cli_command command = {
      CLI_COMMAND(options), .end = end,
      .doc =
          "Measures how busy products keep the array, against a bound, and compares every "
          "result with that of emu:.\vExample:\n  coltrain bench gemm --shape 256x256x256 --beside "
          "training\n"};
  struct options o = {.core = "16x16",
                      .bandwidth = 16,
                      .latency = 60,
                      .result = CT_GEMM_HBFP8,
                      .runs = 1,
                      .phases = 1,
                      .seed = 1};
  if (cli_options(&command, argc, argv, &o)) return 1;
  cli_catch_stop();
  return run(&o);
}
