/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows and their gradients, to the bit: order of additions, segments, windows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "kernel_bed.h"

enum { MOST = 300 * 70, ONE = 0x3f800000 };

static float some_number(ct_rng *rng) {
  return ldexpf((float)(int32_t)ct_rng_below(rng, 2001) - 1000, (int)ct_rng_below(rng, 4) - 8);
}

static unsigned some_keep(ct_rng *rng) {
  return 1u << ct_rng_below(rng, 3);
}

static struct ct_mat filled(struct kbed *b, uint32_t rows, uint32_t cols, uint32_t *x) {
  const struct ct_mat m = kb_mat(b, rows, cols, some_keep(&b->rng), false);
  for (uint32_t i = 0; i < rows * cols; ++i)
    x[i] = kb_bits(some_number(&b->rng));
  kb_put(b, &m, x);
  return m;
}

/* ---- Sums ---- */

struct values {
  uint32_t x[MOST], times[MOST], less[70], want[MOST];
};

static uint32_t term(const struct ct_sum_rows *k, const struct values *v, uint32_t row,
                     uint32_t col) {
  const size_t i = (size_t)row * k->x.cols + col;
  uint32_t x = v->x[i];
  if (k->less.rows) x = ct_fp_add(x, v->less[col] ^ CT_FP_SIGN);
  if (k->squares) x = ct_fp_mul(x, x);
  return k->times.rows ? ct_fp_mul(x, v->times[i]) : x;
}

static uint32_t sum_of(const struct ct_sum_rows *k, const struct values *v, uint32_t first,
                       uint32_t rows, uint32_t col) {
  uint32_t sum[16] = {0};
  for (uint32_t r = 0; r < rows; ++r)
    sum[r % 16] = ct_fp_add(sum[r % 16], term(k, v, first + r, col));
  for (unsigned half = 8; half > 0; half /= 2)
    for (unsigned r = 0; r < half; ++r)
      sum[r] = ct_fp_add(sum[r], sum[r + half]);
  return ct_fp_mul(sum[0], kb_bits(k->scale));
}

static void run_sum(struct kbed *b, const struct ct_sum_rows *k, uint32_t window) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  if (ct_kernel_sum_rows(k, &room, &codes, &(struct ct_why){why, sizeof why}))
    fail_msg("%u rows in segments of %u, %u words: %s", k->x.rows, k->segment, window, why);
  kb_run(b, &codes, window);
}

static void random_shape(struct kbed *b, struct ct_sum_rows *k, uint32_t *segments) {
  static const uint32_t sizes[] = {1, 4, 9, 16, 25, 32, 49, 64};
  if (ct_rng_percent(&b->rng, 50)) {
    k->x.rows = 1 + ct_rng_below(&b->rng, 300);
    *segments = 1;
    return;
  }
  k->segment = sizes[ct_rng_below(&b->rng, 8)];
  *segments = 1 + ct_rng_below(&b->rng, 300 / k->segment);
  k->x.rows = *segments * k->segment;
}

static void check_sum(struct kbed *b, struct values *v) {
  struct ct_sum_rows k = {.squares = ct_rng_percent(&b->rng, 30),
                          .scale = ct_rng_percent(&b->rng, 50) ? 1 : some_number(&b->rng)};
  uint32_t segments;
  kb_clear(b);
  random_shape(b, &k, &segments);
  const uint32_t rows = k.x.rows, cols = 1 + ct_rng_below(&b->rng, 70);
  k.x = filled(b, rows, cols, v->x);
  if (ct_rng_percent(&b->rng, 40)) k.times = filled(b, rows, cols, v->times);
  if (ct_rng_percent(&b->rng, 40)) k.less = filled(b, 1, cols, v->less);
  k.y = kb_mat(b, segments, cols, 1 + ct_rng_below(&b->rng, 7), true);
  k.y.narrow = ct_rng_below(&b->rng, 7);
  const uint32_t row = k.segment ? k.segment : rows;
  for (uint32_t s = 0; s < segments; ++s)
    for (uint32_t c = 0; c < cols; ++c)
      v->want[s * cols + c] = sum_of(&k, v, s * row, row, c);
  /* Segments of HBFP8 that do not begin with tiles are loaded sixteen at a time. */
  const uint32_t least = 1000 + (k.segment % 16 ? k.segment * 128 : 0);
  run_sum(b, &k, least + ct_rng_below(&b->rng, 8000));
  kb_check(b, &k.y, v->want, "sums");
}

static void test_sums(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 1);
  for (unsigned i = 0; i < 200; ++i)
    check_sum(&b, v);
  kb_close(&b);
  free(v);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),
  };
  return cmocka_run_group_tests_name("kernel_sum", tests, NULL, NULL);
}
