/* SPDX-License-Identifier: Apache-2.0 */
/* ct_fp_add and ct_fp_mul against the host's FPU: corner cases in all pairs, ten million random
 * pairs each, stalls. */
#include "fp_ref.h"
#include "lane_pipe.h"

#include "ct_fp_add_dut.h"
#include "ct_fp_mul_dut.h"

enum { kLanes = ct_fp_add_a_i_bits / 32, kRandomPairs = 10000000 };

/* One view of both models: what they compute, what feeds them, what should come out. */
typedef struct {
  lane_pipe pipe;
  uint32_t *a, *b;
  uint32_t (*model)(uint32_t a, uint32_t b);
  void (*generate)(ct_rng *rng, uint32_t *a, uint32_t *b);
  unsigned filled; /* lanes of the next vector that have their operands */
  uint32_t want[kLanes];
} bench;

static void add_tick(void *d) {
  ct_fp_add_tick(d);
}

static void mul_tick(void *d) {
  ct_fp_mul_tick(d);
}

static bench open_add(void) {
  ct_fp_add_dut *d = ct_fp_add_new(ct_tb_trace());
  const lane_pipe pipe = {"ct_fp_add", d, add_tick, d->valid_i, d->valid_o, d->sum_o, kLanes,
                          6,           0, 0,        {{0}},      false,      {0}};
  *d->valid_i = 0;
  ct_fp_add_reset(d, 2);
  return (bench){pipe, d->a_i, d->b_i, fp_ref_add, fp_gen_add, 0, {0}};
}

static bench open_mul(void) {
  ct_fp_mul_dut *d = ct_fp_mul_new(ct_tb_trace());
  const lane_pipe pipe = {"ct_fp_mul", d, mul_tick, d->valid_i, d->valid_o, d->prod_o, kLanes,
                          5,           0, 0,        {{0}},      false,      {0}};
  *d->valid_i = 0;
  ct_fp_mul_reset(d, 2);
  return (bench){pipe, d->a_i, d->b_i, fp_ref_mul, fp_gen_mul, 0, {0}};
}

static void flush(bench *t) {
  if (t->filled) pipe_step(&t->pipe, t->want);
  t->filled = 0;
}

/* Driver: one pair into the next lane; a full vector goes off. */
static void feed(bench *t, uint32_t a, uint32_t b) {
  t->a[t->filled] = a;
  t->b[t->filled] = b;
  t->want[t->filled] = t->model(a, b);
  if (++t->filled == kLanes) flush(t);
}

static void corners(bench *t) {
  for (size_t i = 0; i < fp_corners_count; ++i)
    for (size_t j = 0; j < fp_corners_count; ++j)
      feed(t, fp_corners[i], fp_corners[j]);
  flush(t);
  pipe_drain(&t->pipe);
}

static void random_pairs(bench *t, uint64_t stream) {
  ct_rng rng = ct_rng_make(stream);
  for (int i = 0; i < kRandomPairs; ++i) {
    uint32_t a, b;
    t->generate(&rng, &a, &b);
    feed(t, a, b);
  }
  flush(t);
  pipe_drain(&t->pipe);
}

/* Gaps between vectors: valid gates every stage, and what is on the inputs in a gap must not
 * matter. */
static void stalls(bench *t, uint64_t stream) {
  ct_rng rng = ct_rng_make(stream);
  ct_stall stall = ct_stall_make(stream + 1, 50, 3);
  for (int i = 0; i < 20000; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      t->generate(&rng, &t->a[lane], &t->b[lane]);
      t->want[lane] = t->model(t->a[lane], t->b[lane]);
    }
    pipe_step(&t->pipe, ct_stall_next(&stall) ? NULL : t->want);
  }
  pipe_drain(&t->pipe);
  assert_true(t->pipe.sent > 2000 && t->pipe.sent < 18000);
}

static void adds(void **state) {
  (void)state;
  bench t = open_add();
  corners(&t);
  random_pairs(&t, 1);
  ct_fp_add_free(t.pipe.dut);
}

static void adds_with_stalls(void **state) {
  (void)state;
  bench t = open_add();
  stalls(&t, 2);
  ct_fp_add_free(t.pipe.dut);
}

static void multiplies(void **state) {
  (void)state;
  bench t = open_mul();
  corners(&t);
  random_pairs(&t, 4);
  ct_fp_mul_free(t.pipe.dut);
}

static void multiplies_with_stalls(void **state) {
  (void)state;
  bench t = open_mul();
  stalls(&t, 5);
  ct_fp_mul_free(t.pipe.dut);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adds),
      cmocka_unit_test(adds_with_stalls),
      cmocka_unit_test(multiplies),
      cmocka_unit_test(multiplies_with_stalls),
  };
  if (!fp_ref_available())
    print_message("no FPU with FTZ and DAZ here: checked against ct_num instead\n");
  return cmocka_run_group_tests_name("ct_fp", tests, NULL, NULL);
}
