/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients that accumulate over runs: N runs of B / N rows are a step of B rows, in double
 * precision and, within HBFP's rounding, on the device; to the bit they are the sums and the update
 * that docs/numerics.md writes down. Weights change in the last run of a step alone, statistics in
 * each. Files, submitted runs and simulated cores have the same bytes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ct_num.h"
#include "network_bed.h"

/* ---- A network, for any number of rows ------------------------------------------------------ */

enum { SIDE = 6, CHANNELS = 3, MIDDLE = 18, CLASSES = 5, PIXELS = SIDE * SIDE * CHANNELS };

static int weight(struct bed *b, const char *name, struct ct_shape shape) {
  return ct_graph_tensor(
      b->g, &(struct ct_new_tensor){
                .name = name, .shape = shape, .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE});
}

static int state(struct bed *b, const char *name, struct ct_shape shape, enum ct_initial initial) {
  return ct_graph_tensor(
      b->g, &(struct ct_new_tensor){
                .name = name, .shape = shape, .role = CT_ROLE_STATE, .initial = initial});
}

static int normalised(struct bed *b, int x) {
  const int in[5] = {x, weight(b, "scale", SHAPE(MIDDLE)), weight(b, "shift", SHAPE(MIDDLE)),
                     state(b, "mean", SHAPE(MIDDLE), CT_INITIAL_ZEROS),
                     state(b, "variance", SHAPE(MIDDLE), CT_INITIAL_ONES)};
  const int y = BED_ADD(b, "batch_norm_train", .inputs = in, .input_count = 5);
  ct_graph_becomes(b->g, in[3], y + 1);
  ct_graph_becomes(b->g, in[4], y + 2);
  return y;
}

struct extras {
  bool norm, dropout;
};

/* Returns the loss. */
static int describe(struct bed *b, uint32_t rows, struct extras with) {
  bed_make(b);
  const int x = ct_graph_tensor(
      b->g, &(struct ct_new_tensor){.name = "x", .shape = SHAPE(rows, SIDE, SIDE, CHANNELS)});
  const int y = ct_graph_tensor(
      b->g,
      &(struct ct_new_tensor){.name = "y", .shape = SHAPE(rows, CLASSES), .role = CT_ROLE_LABEL});
  int t = BED_ADD(b, "conv", BED_IN(x, weight(b, "kernel", SHAPE(MIDDLE, 3, 3, CHANNELS))));
  if (with.norm) t = normalised(b, t);
  t = BED_ADD(b, "average_pool", BED_IN(BED_ADD(b, "tanh", BED_IN(t))),
              BED_ATTRS({"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}));
  if (with.dropout) t = BED_ADD(b, "dropout", BED_IN(t), BED_ATTRS({"rate", 1, {0.25}}));
  t = BED_ADD(b, "flatten", BED_IN(t));
  t = BED_ADD(
      b, "linear",
      BED_IN(t, weight(b, "w", SHAPE(CLASSES, 4 * MIDDLE)), weight(b, "b", SHAPE(CLASSES))));
  const int loss = BED_ADD(b, "cross_entropy", BED_IN(t, y), .name = "loss");
  return ct_graph_result(b->g, loss);
}

static void describe_steps(struct bed *b, uint32_t rows, struct extras with,
                           const struct ct_optimise *how) {
  const int loss = describe(b, rows, with);
  if (ct_graph_optimise(b->g, loss, how)) fail_msg("%s", ct_graph_error(b->g));
  b->update = true;
  bed_check(b);
}

static int find(const struct bed *b, const char *name) {
  const int t = ct_graph_find(b->g, name);
  if (t < 0) fail_msg("there is no tensor %s", name);
  return t;
}

static int tensors(const struct bed *b) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(b->g, &info), CT_OK);
  return (int)info.tensors;
}

static bool lasts(const struct bed *b, int t) {
  const enum ct_role role = bed_info(b, t).role;
  return role == CT_ROLE_WEIGHT || role == CT_ROLE_STATE;
}

/* Rows of a run: those from `first` on of what is drawn for all; whole 64ths, one-hot labels. */
static void rows_at(double *x, double *y, uint64_t seed, uint32_t first, uint32_t rows) {
  for (uint32_t r = 0; r < rows; ++r) {
    ct_rng rng = ct_rng_make(seed * 1000 + first + r);
    for (uint32_t i = 0; i < PIXELS; ++i)
      x[r * PIXELS + i] = ((double)ct_rng_below(&rng, 255) - 127) / 64;
    for (uint32_t i = 0; i < CLASSES; ++i)
      y[r * CLASSES + i] = 0;
    y[r * CLASSES + ct_rng_below(&rng, CLASSES)] = 1;
  }
}

static void bed_rows(struct bed *b, uint64_t seed, uint32_t first) {
  const int x = find(b, "x");
  rows_at(bed_data(b, x), bed_data(b, find(b, "y")), seed, first, bed_info(b, x).shape.dim[0]);
}

static const struct ct_schedule falling = {
    .rate = 0.25, .kind = CT_SCHEDULE_STEP, .period = 1, .factor = 0.5, .warmup = 2};
/* Adam divides by the size of a gradient: with its small epsilon, rounding decides about elements
 * that have next to none. */
static const struct ct_optimise all_hows[] = {
    {.schedule = {.rate = 0.1}},
    {.schedule = {.rate = 0.1}, .momentum = 0.9, .weight_decay = 0.01, .clip = 0.3},
    {.schedule = falling, .optimiser = CT_OPTIMISER_ADAM, .epsilon = 0.1, .weight_decay = 0.01},
    {.schedule = falling,
     .optimiser = CT_OPTIMISER_ADAMW,
     .epsilon = 0.1,
     .weight_decay = 0.01,
     .clip = 0.3}};
enum { HOWS = sizeof all_hows / sizeof *all_hows, STEPS = 3 };

static struct ct_optimise over(const struct ct_optimise *how, uint32_t runs) {
  struct ct_optimise o = *how;
  o.accumulate = runs;
  return o;
}

/* ---- In double precision ------------------------------------------------------------------- */

/* Weights and states begin as small numbers that depend on their place and name. */
static void begin(struct bed *b) {
  for (int t = 1; t <= tensors(b); ++t) {
    if (!lasts(b, t)) continue;
    const struct ct_tensor_info info = bed_info(b, t);
    double *x = bed_data(b, t);
    for (uint64_t i = 0; i < info.elements && info.role == CT_ROLE_WEIGHT; ++i)
      x[i] = (double)((i * 37 + (uint64_t)info.name[0] * 11) % 64) / 256 - 0.125;
  }
}

static void same_weights(struct bed *a, struct bed *b, double most, const char *what) {
  for (int t = 1; t <= tensors(a); ++t) {
    const struct ct_tensor_info info = bed_info(a, t);
    if (!lasts(a, t)) continue;
    const double *x = bed_data(a, t), *y = bed_data(b, find(b, info.name));
    for (uint64_t i = 0; i < info.elements; ++i)
      if (!(fabs(x[i] - y[i]) <= most))
        fail_msg("%s: element %d of %s is %.17g, not %.17g", what, (int)i, info.name, y[i], x[i]);
  }
}

static void compare_references(const struct ct_optimise *how, uint32_t runs, uint32_t rows) {
  const struct ct_optimise split = over(how, runs);
  struct bed whole, part;
  describe_steps(&whole, runs * rows, (struct extras){0}, how);
  describe_steps(&part, rows, (struct extras){0}, &split);
  begin(&whole);
  begin(&part);
  for (whole.step = 0; whole.step < STEPS; ++whole.step) {
    double mean = 0;
    bed_rows(&whole, 1 + whole.step, 0);
    double *loss = bed_data(&whole, find(&whole, "loss"));
    bed_run(&whole);
    for (uint32_t k = 0; k < runs; ++k, ++part.step) {
      const double was = bed_data(&part, find(&part, "w"))[0];
      bed_rows(&part, 1 + whole.step, k * rows);
      bed_data(&part, find(&part, "loss"));
      bed_run(&part);
      mean += bed_data(&part, find(&part, "loss"))[0] / runs;
      assert_true((bed_data(&part, find(&part, "w"))[0] != was) == (k == runs - 1));
    }
    assert_float_equal(mean, *loss, 1e-12);
    same_weights(&whole, &part, 1e-12, "in double precision");
  }
  bed_free(&whole);
  bed_free(&part);
}

static void test_reference(void **s) {
  (void)s;
  for (int h = 0; h < HOWS; ++h)
    for (uint32_t runs = 1; runs <= 4; ++runs)
      compare_references(&all_hows[h], runs, 2);
}

/* ---- On the device ------------------------------------------------------------------------- */

static void ok(const struct net_bed *n, int err) {
  if (err) fail_msg("%s", ct_last_error(n->dev));
}

static void put(struct net_bed *n, const char *name) {
  const int t = find(n->bed, name);
  const uint64_t count = bed_info(n->bed, t).elements;
  float *f = malloc(count * sizeof *f);
  assert_non_null(f);
  for (uint64_t i = 0; i < count; ++i)
    f[i] = (float)bed_data(n->bed, t)[i];
  ok(n, ct_network_write(n->net, t, f, count));
  free(f);
}

static void net_rows(struct net_bed *n, uint64_t seed, uint32_t first) {
  bed_rows(n->bed, seed, first);
  put(n, "x");
  put(n, "y");
}

/* The elements of a tensor, which the caller frees. */
static float *got(struct net_bed *n, const char *name, uint64_t *count) {
  const int t = find(n->bed, name);
  *count = bed_info(n->bed, t).elements;
  float *f = malloc(*count * sizeof *f);
  assert_non_null(f);
  ok(n, ct_network_read(n->net, t, f, *count));
  return f;
}

/* The parts on the device, the whole in double precision: what is off is HBFP's rounding alone.
 * Worst seen: 0.017 of a weight's change. */
static void against_the_whole(const struct ct_optimise *how, uint32_t runs, uint32_t rows) {
  const struct ct_optimise split = over(how, runs);
  struct bed whole, part;
  struct net_bed n;
  ct_rng rng = ct_rng_make(3);
  describe_steps(&whole, runs * rows, (struct extras){0}, how);
  describe_steps(&part, rows, (struct extras){0}, &split);
  net_open(&n, &part, "emu:");
  net_draw(&n, 5, &rng);
  for (int t = 1; t <= tensors(&whole); ++t)
    if (lasts(&whole, t))
      memcpy(bed_data(&whole, t), bed_data(&part, find(&part, bed_info(&whole, t).name)),
             bed_info(&whole, t).elements * sizeof(double));
  for (uint32_t run = 0; run < STEPS * runs; ++run) {
    net_rows(&n, 1 + run / runs, run % runs * rows);
    net_run_device(&n, run);
  }
  for (whole.step = 0; whole.step < STEPS; ++whole.step) {
    bed_rows(&whole, 1 + whole.step, 0);
    bed_run(&whole);
  }
  for (int t = 1; t <= tensors(&whole); ++t) {
    const struct ct_tensor_info info = bed_info(&whole, t);
    if (info.role != CT_ROLE_WEIGHT) continue;
    const double *want = bed_data(&whole, t), *from = bed_data(&part, find(&part, info.name));
    uint64_t count;
    float *have = got(&n, info.name, &count);
    double off = 0, changed = 0;
    for (uint64_t i = 0; i < count; ++i) {
      off += pow((double)have[i] - want[i], 2);
      changed += pow(want[i] - from[i], 2);
    }
    free(have);
    if (getenv("SHOW")) printf("%s of %u: %.5f\n", info.name, runs, sqrt(off / changed));
    if (!(sqrt(off) <= 0.05 * sqrt(changed)))
      fail_msg("%s of %u runs: %g of its change off", info.name, runs, sqrt(off / changed));
  }
  net_close(&n);
  bed_free(&whole);
  bed_free(&part);
}

static void test_whole_batches(void **s) {
  (void)s;
  for (int h = 0; h < HOWS; ++h)
    for (uint32_t runs = 1; runs <= 5; runs += 2)
      against_the_whole(&all_hows[h], runs, 8);
}

/* Beside its own reference, run for run, with what differs from run to run. */
static void test_each_run(void **s) {
  (void)s;
  const struct ct_optimise how = {
      .schedule = {.rate = 0.05}, .momentum = 0.9, .clip = 2, .accumulate = 3};
  struct bed b;
  struct net_bed n;
  ct_rng rng = ct_rng_make(4);
  describe_steps(&b, 24, (struct extras){true, true}, &how);
  net_open(&n, &b, "emu:");
  net_draw(&n, 6, &rng);
  for (b.step = 0; b.step < 6; ++b.step) {
    net_rows(&n, 9, (uint32_t)b.step * 24);
    net_run(&n);
    net_expect(&n, 0.1, "a run");
  }
  net_close(&n);
  bed_free(&b);
}

/* ---- To the bit ---------------------------------------------------------------------------- */

static uint32_t bits(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

/* What a weight was and what becomes of it, by hand. */
struct by_hand {
  float *w, *v, *mean;
  uint64_t count;
};
static const char *const names[] = {"kernel", "w", "b"};
enum { WEIGHTS = sizeof names / sizeof *names };

/* mean = (first ? +0 : mean) + g * (1 / runs) */
static void add_by_hand(struct by_hand *h, const float *g, uint32_t run, uint32_t runs) {
  for (uint64_t i = 0; i < h->count; ++i) {
    const uint32_t kept = run % runs ? bits(h->mean[i]) : 0;
    const uint32_t sum = ct_fp_add(kept, ct_fp_mul(bits(g[i]), bits((float)(1.0 / runs))));
    memcpy(&h->mean[i], &sum, sizeof sum);
  }
}

static void update_by_hand(struct by_hand *h, float rate, float momentum, float decay) {
  for (uint64_t i = 0; i < h->count; ++i) {
    uint32_t t = bits(h->mean[i]);
    if (decay != 0) t = ct_fp_add(ct_fp_mul(bits(h->w[i]), bits(decay)), t);
    const uint32_t v = ct_fp_add(ct_fp_mul(bits(h->v[i]), bits(momentum)), t);
    const uint32_t w = ct_fp_add(ct_fp_mul(v, bits(-rate)), bits(h->w[i]));
    memcpy(&h->v[i], &v, sizeof v);
    memcpy(&h->w[i], &w, sizeof w);
  }
}

/* The same graph that gives its gradients and updates nothing. */
static void describe_gradients(struct bed *b, uint32_t rows) {
  const int loss = describe(b, rows, (struct extras){0});
  if (ct_graph_gradients(b->g, loss, NULL, 0)) fail_msg("%s", ct_graph_error(b->g));
  for (int i = 0; i < WEIGHTS; ++i)
    ct_graph_result(b->g, ct_graph_gradient(b->g, find(b, names[i])));
  bed_check(b);
}

static float *gradient_of(struct net_bed *n, const char *name) {
  uint64_t count;
  return got(n, bed_info(n->bed, ct_graph_gradient(n->bed->g, find(n->bed, name))).name, &count);
}

static void expect_bits(struct net_bed *n, const char *weight_name, const char *what,
                        const float *want, uint64_t count) {
  char name[64];
  uint64_t have;
  snprintf(name, sizeof name, "%s%s", weight_name, what);
  float *f = got(n, name, &have);
  assert_int_equal(have, count);
  ct_assert_same(name, (const uint8_t *)f, (const uint8_t *)want, count * sizeof *f);
  free(f);
}

static void by_hand(uint32_t runs) {
  const struct ct_optimise how = {
      .schedule = {.rate = 0.1}, .momentum = 0.9, .weight_decay = 0.01, .accumulate = runs};
  struct bed b, plain;
  struct net_bed n, g;
  struct by_hand h[WEIGHTS];
  ct_rng rng = ct_rng_make(7);
  describe_steps(&b, 6, (struct extras){0}, &how);
  describe_gradients(&plain, 6);
  net_open(&n, &b, "emu:");
  net_open(&g, &plain, "emu:");
  net_draw(&n, 8, &rng);
  net_draw(&g, 8, &rng);
  for (int i = 0; i < WEIGHTS; ++i) {
    h[i].w = got(&n, names[i], &h[i].count);
    h[i].v = calloc(h[i].count, sizeof *h[i].v);
    h[i].mean = calloc(h[i].count, sizeof *h[i].mean);
    assert_true(h[i].v && h[i].mean);
  }
  for (uint32_t run = 0; run < 2 * runs + 1; ++run) {
    net_rows(&n, 2, 6 * run);
    net_rows(&g, 2, 6 * run);
    net_run_device(&n, run);
    net_run_device(&g, run);
    for (int i = 0; i < WEIGHTS; ++i) {
      float *one = gradient_of(&g, names[i]);
      add_by_hand(&h[i], one, run, runs);
      free(one);
      /* Biases do not decay. */
      if (run % runs == runs - 1) update_by_hand(&h[i], 0.1f, 0.9f, i < 2 ? 0.01f : 0);
      expect_bits(&n, names[i], ".gradient", h[i].mean, h[i].count);
      expect_bits(&n, names[i], ".momentum", h[i].v, h[i].count);
      expect_bits(&n, names[i], "", h[i].w, h[i].count);
      ok(&g, ct_network_write(g.net, find(&plain, names[i]), h[i].w, h[i].count));
    }
  }
  for (int i = 0; i < WEIGHTS; ++i) {
    free(h[i].w);
    free(h[i].v);
    free(h[i].mean);
  }
  net_close(&n);
  net_close(&g);
  bed_free(&b);
  bed_free(&plain);
}

static void test_by_hand(void **s) {
  (void)s;
  by_hand(2);
  by_hand(3);
}

/* A first run with an Inf or NaN in it, and then one that begins a step: that is all right again,
 * and as the reference has it. */
static void test_begun_anew(void **s) {
  (void)s;
  static const float bad[] = {INFINITY, NAN};
  struct ct_optimise how = over(&all_hows[0], 2);
  for (int k = 0; k < 2; ++k) {
    struct bed b;
    struct net_bed n;
    uint64_t count;
    ct_rng rng = ct_rng_make(11);
    describe_steps(&b, 6, (struct extras){0}, &how);
    net_open(&n, &b, "emu:");
    net_draw(&n, 3, &rng);
    const int g = find(&b, "w.gradient");
    float *f = got(&n, "w.gradient", &count);
    for (uint64_t i = 0; i < count; ++i)
      bed_data(&b, g)[i] = (double)(f[i] = bad[k]);
    ok(&n, ct_network_write(n.net, g, f, count));
    free(f);
    for (b.step = 2; b.step < 4; ++b.step) {
      net_rows(&n, 4, 6 * (uint32_t)b.step);
      net_run(&n);
      net_expect(&n, 0.1, "a step after a bad one");
    }
    f = got(&n, "w", &count);
    for (uint64_t i = 0; i < count; ++i)
      assert_true(isfinite(f[i]));
    free(f);
    net_close(&n);
    bed_free(&b);
  }
}

/* The same rows twice: g / 2 + g / 2 is g, so all that follows has the bits of a step of one run.
 */
static void test_the_same_twice(void **s) {
  (void)s;
  for (int k = 0; k < HOWS; ++k) {
    const struct ct_optimise split = over(&all_hows[k], 2);
    struct bed one, two;
    struct net_bed n, m;
    ct_rng rng = ct_rng_make(5);
    describe_steps(&one, 6, (struct extras){0}, &all_hows[k]);
    describe_steps(&two, 6, (struct extras){0}, &split);
    net_open(&n, &one, "emu:");
    net_open(&m, &two, "emu:");
    net_draw(&n, 9, &rng);
    net_draw(&m, 9, &rng);
    for (uint32_t step = 0; step < STEPS; ++step) {
      net_rows(&n, 4, 6 * step);
      net_rows(&m, 4, 6 * step);
      net_run_device(&n, step);
      net_run_device(&m, 2 * step);
      net_run_device(&m, 2 * step + 1);
      for (int t = 1; t <= tensors(&one); ++t) {
        if (!lasts(&one, t)) continue;
        uint64_t count;
        float *want = got(&n, bed_info(&one, t).name, &count);
        expect_bits(&m, bed_info(&one, t).name, "", want, count);
        free(want);
      }
    }
    net_close(&n);
    net_close(&m);
    bed_free(&one);
    bed_free(&two);
  }
}

/* Running statistics follow in each run: as those of a network whose weights stay. */
static void test_statistics(void **s) {
  (void)s;
  const struct ct_optimise how = {.schedule = {.rate = 0.1}, .accumulate = 4}, none = {0};
  struct bed b, still;
  struct net_bed n, m;
  ct_rng rng = ct_rng_make(5);
  describe_steps(&b, 12, (struct extras){.norm = true}, &how);
  describe_steps(&still, 12, (struct extras){.norm = true}, &none);
  net_open(&n, &b, "emu:");
  net_open(&m, &still, "emu:");
  net_draw(&n, 9, &rng);
  net_draw(&m, 9, &rng);
  for (uint32_t run = 0; run < 4; ++run) {
    static const char *const kept[] = {"mean", "variance"};
    net_rows(&n, 4, 12 * run);
    net_rows(&m, 4, 12 * run);
    net_run_device(&n, run);
    net_run_device(&m, run);
    for (int i = 0; i < 2; ++i) {
      uint64_t count;
      float *want = got(&m, kept[i], &count);
      expect_bits(&n, kept[i], "", want, count);
      free(want);
    }
  }
  net_close(&n);
  net_close(&m);
  bed_free(&b);
  bed_free(&still);
}

/* ---- Everywhere the same ------------------------------------------------------------------- */

enum { RUNS = 7 };
static const struct ct_optimise usual = {
    .schedule = {.rate = 0.05}, .momentum = 0.9, .clip = 2, .accumulate = 3};

static void open_usual(struct net_bed *n, struct bed *b, const char *uri) {
  ct_rng rng = ct_rng_make(1);
  net_open(n, b, uri);
  net_draw(n, 6, &rng);
}

static void submit(struct net_bed *n, uint64_t run) {
  struct ct_event e;
  uint64_t tag;
  ok(n, ct_network_submit(n->net, &(struct ct_run){.queue = CT_TRAINING, .step = run}, &tag));
  ok(n, ct_wait(n->dev, tag, &e, CT_FOREVER));
  assert_int_equal(e.error, CT_OK);
}

static uint64_t runs_on(struct bed *b, const char *uri, bool submitted) {
  struct net_bed n;
  open_usual(&n, b, uri);
  for (uint32_t run = 0; run < RUNS; ++run) {
    net_rows(&n, 3, 4 * run);
    if (submitted)
      submit(&n, run);
    else
      net_run_device(&n, run);
  }
  const uint64_t digest = net_digest(&n);
  net_close(&n);
  return digest;
}

static void test_same_everywhere(void **s) {
  (void)s;
  static const char *const uris[] = {"emu:core=16x8", "sim:stall=25", "sim:core=16x8"};
  struct bed b;
  describe_steps(&b, 4, (struct extras){true, true}, &usual);
  const uint64_t want = runs_on(&b, "emu:", false);
  assert_true(runs_on(&b, "emu:", true) == want);
  for (int i = 0; i < 3; ++i)
    assert_true(runs_on(&b, uris[i], i == 1) == want);
  bed_free(&b);
}

/* A file is written within a step and goes on there. */
static void test_files(void **s) {
  (void)s;
  struct bed b;
  struct net_bed n;
  struct ct_network_info info;
  char path[64];
  snprintf(path, sizeof path, "/tmp/ct-accumulate-%ld.ctm", (long)getpid());
  describe_steps(&b, 4, (struct extras){true, true}, &usual);
  const uint64_t want = runs_on(&b, "emu:", false);
  open_usual(&n, &b, "emu:");
  for (uint32_t run = 0; run < RUNS; ++run) {
    ok(&n, ct_network_save(n.net, path));
    ct_network_free(n.net);
    ok(&n, ct_network_load(n.dev, path, NULL, &n.net));
    ok(&n, ct_network_info(n.net, &info));
    assert_int_equal(info.steps, run);
    assert_int_equal(info.accumulate, 3);
    net_rows(&n, 3, 4 * run);
    net_run_device(&n, info.steps);
  }
  unlink(path);
  assert_true(net_digest(&n) == want);
  net_close(&n);
  bed_free(&b);
}

/* ---- Facts and refusals --------------------------------------------------------------------- */

/* Runs that end no step have no jobs for updates, nor for the norm of the gradients. */
static void test_stages(void **s) {
  (void)s;
  struct bed b;
  struct net_bed n;
  struct ct_network_info info;
  struct ct_network_stage stage;
  describe_steps(&b, 4, (struct extras){true, false}, &usual);
  open_usual(&n, &b, "sim:");
  net_run_device(&n, 0);
  ok(&n, ct_network_info(n.net, &info));
  uint32_t jobs = 0, last = 0, sums = 0;
  for (size_t i = 0; i < ct_network_stages(n.net); ++i) {
    ok(&n, ct_network_stage(n.net, i, &stage));
    assert_true(stage.runs == 1 || stage.runs == 3);
    if (!strcmp(stage.op, "accumulate")) assert_int_equal(stage.runs, 1);
    if (!strcmp(stage.op, "sgd")) assert_int_equal(stage.runs, 3);
    if (stage.runs == 3 && stage.jobs) assert_true(stage.cycles == CT_NO_CYCLE);
    sums += stage.runs == 3 && !strcmp(stage.op, "sum");
    jobs += stage.runs == 1 ? stage.jobs : 0;
    last += stage.runs == 1 ? 0 : stage.jobs;
  }
  assert_int_equal(info.jobs, jobs + last);
  assert_int_equal(sums, 5);
  assert_true(last >= 5 + 5 + 5);
  net_run_device(&n, 2);
  for (size_t i = 0; i < ct_network_stages(n.net); ++i) {
    ok(&n, ct_network_stage(n.net, i, &stage));
    assert_true(!stage.jobs || stage.cycles != CT_NO_CYCLE);
  }
  net_run_device(&n, 3); /* what a run has left out says nothing of the one before */
  for (size_t i = 0; i < ct_network_stages(n.net); ++i) {
    ok(&n, ct_network_stage(n.net, i, &stage));
    assert_true(!stage.jobs || (stage.cycles == CT_NO_CYCLE) == (stage.runs == 3));
    assert_true(stage.runs == 1 || stage.rows == 0);
  }
  net_close(&n);
  bed_free(&b);
}

/* The last run of a step takes more jobs than a queue holds, the first does not: it is refused
 * before a gradient has been added. */
static void test_queue(void **s) {
  (void)s;
  enum { LAYERS = 16, SLOTS = 128 };
  const struct ct_optimise how = {.schedule = {.rate = 0.1}, .clip = 1, .accumulate = 4};
  struct bed b;
  struct net_bed n;
  struct ct_network_info info;
  char name[2][16];
  ct_rng rng = ct_rng_make(1);
  bed_make(&b);
  int t = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, 16));
  for (int i = 0; i < LAYERS; ++i) {
    snprintf(name[0], sizeof name[0], "w%d", i);
    snprintf(name[1], sizeof name[1], "b%d", i);
    const int in[3] = {t, weight(&b, name[0], SHAPE(16, 16)), weight(&b, name[1], SHAPE(16))};
    t = BED_ADD(&b, "relu", BED_IN(BED_ADD(&b, "linear", .inputs = in, .input_count = 3)));
  }
  t = BED_ADD(&b, "mse", BED_IN(t, bed_tensor(&b, CT_ROLE_LABEL, SHAPE(4, 16))), .name = "loss");
  t = ct_graph_result(b.g, t);
  if (ct_graph_optimise(b.g, t, &how)) fail_msg("%s", ct_graph_error(b.g));
  bed_check(&b);
  net_open(&n, &b, "emu:core=16x8,dram=8");
  net_draw(&n, 1, &rng);
  ok(&n, ct_network_info(n.net, &info));
  uint32_t first = 0;
  for (size_t i = 0; i < ct_network_stages(n.net); ++i) {
    struct ct_network_stage stage;
    ok(&n, ct_network_stage(n.net, i, &stage));
    first += stage.runs == 1 ? stage.jobs : 0;
  }
  if (first > SLOTS || info.jobs <= SLOTS) fail_msg("%u and %u jobs", first, info.jobs);
  for (uint64_t step = 0; step < 4; ++step) {
    uint64_t tag;
    const struct ct_run run = {.queue = CT_TRAINING, .step = step};
    assert_int_equal(ct_network_submit(n.net, &run, &tag), CT_ERR_NO_SPACE);
    assert_non_null(strstr(ct_last_error(n.dev), "jobs in a row"));
  }
  net_run_device(&n, 0); /* stage by stage there is room */
  net_run_device(&n, 3);
  net_close(&n);
  bed_free(&b);
}

static void test_refusals(void **s) {
  (void)s;
  struct ct_optimise how = {.schedule = {.rate = 0.1}, .accumulate = CT_MOST_ACCUMULATED + 1};
  struct bed b;
  int loss = describe(&b, 2, (struct extras){0});
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_ERR_ARG);
  assert_non_null(strstr(ct_graph_error(b.g), "65537 runs: at most 65536"));
  how.accumulate = UINT32_MAX;
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_ERR_ARG);
  how.accumulate = 0; /* what was refused has left nothing */
  assert_int_equal(ct_graph_optimise(b.g, loss, &how), CT_OK);
  assert_int_equal(ct_graph_find(b.g, "w.gradient"), CT_ERR_NOT_FOUND);
  bed_free(&b);
  how.accumulate = CT_MOST_ACCUMULATED;
  describe_steps(&b, 2, (struct extras){0}, &how);
  bed_free(&b);
  bed_make(&b);
  const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(2, 3)),
            y = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(3));
  assert_int_equal(BED_ADD(&b, "accumulate", BED_IN(x, y)), CT_ERR_ARG);
  assert_int_equal(BED_ADD(&b, "accumulate", BED_IN(x, x), BED_ATTRS({"runs", 1, {0}})),
                   CT_ERR_ARG);
  bed_free(&b);
}

/* Updates by hand that a device cannot leave out. */
static int odd_update(struct bed *b, double runs, double rate_runs, bool asked) {
  bed_make(b);
  const int w = bed_tensor(b, CT_ROLE_WEIGHT, SHAPE(2, 3)),
            g = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 3)),
            v = bed_tensor(b, CT_ROLE_STATE, SHAPE(2, 3));
  const int rate = BED_ADD(b, "rate", BED_ATTRS({"rate", 1, {0.1}}, {"runs", 1, {rate_runs}}));
  const int now = BED_ADD(b, "sgd", BED_IN(w, g, v, rate), BED_ATTRS({"runs", 1, {runs}}));
  ct_graph_becomes(b->g, w, now);
  ct_graph_becomes(b->g, v, now + 1);
  if (asked) ct_graph_result(b->g, now);
  bed_check(b);
  ct_device *dev;
  ct_network *net;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  const int err = ct_network_create(dev, b->g, NULL, &net);
  if (err)
    assert_non_null(strstr(ct_last_error(dev), asked ? "more than what" : "those of its rate"));
  ct_network_free(net);
  ct_close(dev);
  bed_free(b);
  return err;
}

static void test_odd_updates(void **s) {
  (void)s;
  struct bed b;
  assert_int_equal(odd_update(&b, 2, 2, false), CT_OK);
  assert_int_equal(odd_update(&b, 1, 1, true), CT_OK);
  assert_int_equal(odd_update(&b, 2, 2, true), CT_ERR_UNSUPPORTED);
  assert_int_equal(odd_update(&b, 2, 1, false), CT_ERR_UNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                     cmocka_unit_test(test_whole_batches),
                                     cmocka_unit_test(test_each_run),
                                     cmocka_unit_test(test_by_hand),
                                     cmocka_unit_test(test_the_same_twice),
                                     cmocka_unit_test(test_statistics),
                                     cmocka_unit_test(test_same_everywhere),
                                     cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_stages),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_odd_updates),
                                     cmocka_unit_test(test_begun_anew),
                                     cmocka_unit_test(test_queue)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
