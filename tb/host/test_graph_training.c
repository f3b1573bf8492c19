/* SPDX-License-Identifier: Apache-2.0 */
/* What training adds to graphs: dropout's masks, schedules and optimisers against their formulas
 * written down again, a network that learns. */
#include <math.h>
#include <string.h>

#include "ct_real.h"
#include "graph_bed.h"

#define NUMBERS(...) ((const double[]){__VA_ARGS__})

/* ---- Dropout ------------------------------------------------------------------------------- */

/* Known answers of the generator's authors (Random123, kat_vectors). */
static void test_philox(void **state) {
  (void)state;
  static const uint32_t kat[3][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
       0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int i = 0; i < 3; ++i) {
    uint32_t c[4];
    memcpy(c, kat[i], sizeof c);
    ct_philox(c, kat[i][4], kat[i][5]);
    assert_memory_equal(c, &kat[i][6], sizeof c);
  }
}

enum { DROPPED = 4000 };
static size_t mask(uint64_t seed, uint64_t step, uint32_t stream, bool keeps[DROPPED]) {
  struct bed b;
  size_t kept = 0;
  bed_make(&b);
  b.seed = seed;
  b.step = step;
  const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(40, 100));
  const int y =
      BED_ADD(&b, "dropout", BED_IN(x), BED_ATTRS({"rate", 1, {0.25}}, {"stream", 1, {stream}}));
  for (int i = 0; i < DROPPED; ++i)
    bed_data(&b, x)[i] = 3;
  bed_check(&b);
  bed_data(&b, y);
  bed_run(&b);
  for (int i = 0; i < DROPPED; ++i) {
    assert_true(bed_data(&b, y)[i] == 0 || bed_data(&b, y)[i] == 4);
    keeps[i] = bed_data(&b, y)[i] != 0;
    kept += keeps[i];
  }
  bed_free(&b);
  return kept;
}

static void test_dropout(void **state) {
  (void)state;
  static const struct {
    uint64_t seed, step;
    uint32_t stream;
  } runs[] = {{1, 0, 0}, {1, 0, 0},
              {2, 0, 0}, {UINT64_C(1) << 40 | 1, 0, 0},
              {1, 1, 0}, {1, UINT64_C(1) << 40, 0},
              {1, 0, 1}};
  enum { RUNS = sizeof runs / sizeof *runs };
  bool keeps[RUNS][DROPPED];
  for (int i = 0; i < RUNS; ++i)
    assert_in_range(mask(runs[i].seed, runs[i].step, runs[i].stream, keeps[i]), 2850, 3150);
  assert_memory_equal(keeps[0], keeps[1], sizeof keeps[0]);
  for (int i = 1; i < RUNS; ++i)
    for (int k = i + 1; k < RUNS; ++k) {
      size_t same = 0;
      for (int e = 0; e < DROPPED; ++e)
        same += keeps[i][e] == keeps[k][e];
      assert_in_range(same, 2300, 2700); /* 0.75^2 + 0.25^2 of them */
    }
}

/* Two nodes drop different elements; a graph built again drops the same. */
static void test_streams(void **state) {
  (void)state;
  struct ct_attr stream[2];
  struct bed b;
  bed_make(&b);
  const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4));
  BED_ADD(&b, "dropout", BED_IN(BED_ADD(&b, "dropout", BED_IN(x))));
  for (size_t i = 0; i < 2; ++i)
    assert_int_equal(ct_graph_node_attr(b.g, i, "stream", &stream[i]), CT_OK);
  assert_true(stream[0].value[0] == 0 && stream[1].value[0] == 1);
  bed_free(&b);
}

/* ---- Training ------------------------------------------------------------------------------ */

static void test_schedules(void **state) {
  (void)state;
  const struct ct_schedule constant = {.rate = 0.5, .warmup = 4};
  const struct ct_schedule step = {
      .rate = 1, .kind = CT_SCHEDULE_STEP, .period = 10, .factor = 0.5};
  const struct ct_schedule cosine = {
      .rate = 1, .kind = CT_SCHEDULE_COSINE, .period = 8, .warmup = 2, .floor = 0.5};
  const double quarter = 0.5 + 0.25 * (1 + sqrt(0.5));
  const double want[] = {0.125, 0.25, 0.375, 0.5, 0.5, 0.5};
  for (unsigned i = 0; i < 6; ++i)
    assert_float_equal(ct_schedule_rate(&constant, i), want[i], 1e-15);
  assert_float_equal(ct_schedule_rate(&step, 9), 1, 0);
  assert_float_equal(ct_schedule_rate(&step, 10), 0.5, 0);
  assert_float_equal(ct_schedule_rate(&step, 39), 0.125, 0);
  assert_float_equal(ct_schedule_rate(&cosine, 0), 0.5, 1e-15);
  assert_float_equal(ct_schedule_rate(&cosine, 2), 1, 1e-15);
  assert_float_equal(ct_schedule_rate(&cosine, 4), quarter, 1e-15);
  assert_float_equal(ct_schedule_rate(&cosine, 6), 0.75, 1e-15);
  assert_float_equal(ct_schedule_rate(&cosine, 10), 0.5, 1e-15);
  assert_float_equal(ct_schedule_rate(&cosine, UINT64_MAX), 0.5, 1e-15);
}

/* Two weights, one of which decays; loss = mse(w x + c, 0). The same steps in plain C. */
struct plain {
  double w[2], c, m[3], v[3];
};

static void plain_gradients(const struct plain *p, const double x[2], double g[3]) {
  const double y = p->w[0] * x[0] + p->w[1] * x[1] + p->c;
  g[0] = 2 * y * x[0];
  g[1] = 2 * y * x[1];
  g[2] = 2 * y;
}

static void plain_step(struct plain *p, const struct ct_optimise *how, const double x[2],
                       int step) {
  double g[3], *w[3] = {&p->w[0], &p->w[1], &p->c}, clip = 1;
  plain_gradients(p, x, g);
  const double norm = sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]), rate = how->schedule.rate;
  if (how->clip != 0 && norm > how->clip) clip = how->clip / norm;
  for (int i = 0; i < 3; ++i) {
    const double decay = i < 2 ? how->weight_decay : 0;
    double t = clip * g[i] + (how->optimiser == CT_OPTIMISER_ADAMW ? 0 : decay * *w[i]);
    if (how->optimiser == CT_OPTIMISER_SGD) {
      p->m[i] = how->momentum * p->m[i] + t;
      *w[i] -= rate * p->m[i];
      continue;
    }
    p->m[i] = 0.8 * p->m[i] + 0.2 * t;
    p->v[i] = 0.999 * p->v[i] + 0.001 * t * t;
    t = p->m[i] / (1 - pow(0.8, step + 1)) / (sqrt(p->v[i] / (1 - pow(0.999, step + 1))) + 1e-8);
    *w[i] -= rate * (t + (how->optimiser == CT_OPTIMISER_ADAMW ? decay * *w[i] : 0));
  }
}

static void compare_steps(const struct ct_optimise *how) {
  static const double x[2] = {0.5, -2};
  struct plain p = {.w = {0.3, 0.7}, .c = -0.2};
  struct bed b;
  bed_make(&b);
  const int in = bed_values(&b, CT_ROLE_INPUT, SHAPE(1, 2), x),
            y = bed_values(&b, CT_ROLE_LABEL, SHAPE(1, 1), NUMBERS(0));
  const int w = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(1, 2), p.w),
            c = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(1), &p.c);
  const int loss = BED_ADD(&b, "mse", BED_IN(BED_ADD(&b, "linear", BED_IN(in, w, c)), y));
  if (ct_graph_optimise(b.g, loss, how)) fail_msg("%s", ct_graph_error(b.g));
  bed_check(&b);
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(b.g, &info), CT_OK);
  assert_int_equal(info.states, how->optimiser == CT_OPTIMISER_SGD ? 3 : 6);
  for (int t = 1; t <= (int)info.tensors; ++t)
    if (bed_info(&b, t).role == CT_ROLE_STATE) bed_data(&b, t);
  b.update = true;
  for (int step = 0; step < 6; ++step) {
    b.step = (uint64_t)step;
    bed_run(&b);
    plain_step(&p, how, x, step);
    assert_float_equal(bed_data(&b, w)[0], p.w[0], 1e-13);
    assert_float_equal(bed_data(&b, w)[1], p.w[1], 1e-13);
    assert_float_equal(bed_data(&b, c)[0], p.c, 1e-13);
  }
  bed_free(&b);
}

static void test_optimisers(void **state) {
  (void)state;
  const struct ct_schedule rate = {.rate = 0.03};
  compare_steps(&(struct ct_optimise){.schedule = rate});
  compare_steps(&(struct ct_optimise){.schedule = rate, .momentum = 0.9, .weight_decay = 0.1});
  compare_steps(&(struct ct_optimise){.schedule = rate, .momentum = 0.5, .clip = 0.25});
  for (int o = CT_OPTIMISER_ADAM; o <= CT_OPTIMISER_ADAMW; ++o)
    compare_steps(&(struct ct_optimise){.optimiser = (enum ct_optimiser)o,
                                        .schedule = rate,
                                        .beta1 = 0.8,
                                        .weight_decay = 0.2,
                                        .clip = 1});
}

/* A convolutional network learns a few images by heart. */
static void test_learning(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(5);
  struct ct_graph_info info;
  struct bed b;
  double first = 0;
  bed_make(&b);
  const int x = bed_drawn(&b, CT_ROLE_INPUT, SHAPE(4, 6, 6, 1), &rng);
  const int y = bed_values(&b, CT_ROLE_LABEL, SHAPE(4, 2), NUMBERS(1, 0, 0, 1, 1, 0, 0, 1));
  const int k = bed_drawn(&b, CT_ROLE_WEIGHT, SHAPE(3, 3, 3, 1), &rng),
            w = bed_drawn(&b, CT_ROLE_WEIGHT, SHAPE(2, 12), &rng);
  int t = BED_ADD(&b, "conv", BED_IN(x, k));
  t = BED_ADD(&b, "max_pool", BED_IN(BED_ADD(&b, "relu", BED_IN(t))),
              BED_ATTRS({"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}));
  t = BED_ADD(&b, "linear", BED_IN(BED_ADD(&b, "flatten", BED_IN(t)), w));
  const int loss = BED_ADD(&b, "cross_entropy", BED_IN(t, y));
  const struct ct_optimise how = {.schedule = {.rate = 0.3}, .momentum = 0.9, .clip = 1};
  if (ct_graph_optimise(b.g, loss, &how)) fail_msg("%s", ct_graph_error(b.g));
  bed_check(&b);
  assert_int_equal(ct_graph_info(b.g, &info), CT_OK);
  for (int i = 1; i <= (int)info.tensors; ++i)
    if (bed_info(&b, i).role == CT_ROLE_STATE) bed_data(&b, i);
  bed_data(&b, loss);
  b.update = true;
  for (b.step = 0; b.step < 60; ++b.step) {
    bed_run(&b);
    if (b.step == 0) first = bed_data(&b, loss)[0];
  }
  if (!(bed_data(&b, loss)[0] < first / 10))
    fail_msg("the loss went from %g to %g", first, bed_data(&b, loss)[0]);
  bed_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_philox),     cmocka_unit_test(test_dropout),
      cmocka_unit_test(test_streams),    cmocka_unit_test(test_schedules),
      cmocka_unit_test(test_optimisers), cmocka_unit_test(test_learning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
