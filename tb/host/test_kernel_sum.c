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
  uint32_t x[MOST], times[MOST], less[70], column[300], want[MOST], too[300];
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

/* Sums of the factor alone. */
static void sum_too(const struct ct_sum_rows *k, struct values *v) {
  const struct ct_sum_rows alone = {.x = k->times, .scale = k->scale};
  struct values *of = calloc(1, sizeof *of);
  assert_non_null(of);
  memcpy(of->x, v->times, sizeof of->x);
  for (uint32_t c = 0; c < k->x.cols; ++c)
    v->too[c] = sum_of(&alone, of, 0, k->x.rows, c);
  free(of);
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
  if (k.times.rows && !k.segment && ct_rng_percent(&b->rng, 70))
    k.too = kb_mat(b, 1, cols, 1 + ct_rng_below(&b->rng, 7), true);
  if (k.too.rows) sum_too(&k, v);
  /* Segments of HBFP8 that do not begin with tiles are loaded sixteen at a time. */
  const uint32_t least = 1000 + (k.segment % 16 ? k.segment * 128 : 0);
  run_sum(b, &k, least + ct_rng_below(&b->rng, 8000));
  kb_check(b, &k.y, v->want, "sums");
  if (k.too.rows) kb_check(b, &k.too, v->too, "sums of the factor");
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

/* ---- What a look at numbers asks ---- */

/* As they are kept: some become zeros of either sign. */
static struct ct_mat with_zeros(struct kbed *b, uint32_t rows, uint32_t cols, uint32_t *x) {
  static const uint32_t zero[] = {0, CT_FP_SIGN};
  const struct ct_mat m = kb_mat(b, rows, cols, some_keep(&b->rng), false);
  for (uint32_t i = 0; i < rows * cols; ++i)
    x[i] = ct_rng_percent(&b->rng, 40) ? zero[ct_rng_below(&b->rng, 2)]
                                       : kb_bits(some_number(&b->rng));
  kb_put(b, &m, x);
  return m;
}

static void want_counts(const struct ct_sum_rows *k, struct values *v) {
  for (uint32_t c = 0; c < k->x.cols; ++c) {
    uint32_t zeros = 0, largest = 0;
    for (uint32_t r = 0; r < k->x.rows; ++r) {
      const uint32_t x = v->x[r * k->x.cols + c] & ~CT_FP_SIGN;
      zeros += x == 0;
      if (x > largest) largest = x;
    }
    v->want[c] = kb_bits((float)zeros);
    v->too[c] = largest;
  }
}

static void check_look(struct kbed *b, struct values *v, bool zeros) {
  struct ct_sum_rows k = {.magnitudes = !zeros, .zeros = zeros, .scale = 1};
  const uint32_t rows = 1 + ct_rng_below(&b->rng, 300), cols = 1 + ct_rng_below(&b->rng, 70);
  kb_clear(b);
  k.x = with_zeros(b, rows, cols, v->x);
  k.y = kb_mat(b, 1, cols, KB_F32, true);
  if (zeros) k.too = kb_mat(b, 1, cols, KB_F32, true);
  if (zeros) want_counts(&k, v);
  for (uint32_t i = 0; i < rows * cols && !zeros; ++i)
    v->x[i] &= ~CT_FP_SIGN;
  for (uint32_t c = 0; c < cols && !zeros; ++c)
    v->want[c] = sum_of(&k, v, 0, rows, c);
  run_sum(b, &k, 1000 + ct_rng_below(&b->rng, 8000));
  kb_check(b, &k.y, v->want, zeros ? "how many are 0" : "sums of magnitudes");
  if (zeros) kb_check(b, &k.too, v->too, "largest magnitudes");
}

static void test_looks(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 6);
  for (unsigned i = 0; i < 120; ++i)
    check_look(&b, v, i % 2);
  kb_close(&b);
  free(v);
}

/* ---- Sums of columns ---- */

static uint32_t sum_of_row(const struct ct_sum_cols *k, const struct values *v, uint32_t row) {
  uint32_t sum[16] = {0};
  for (uint32_t c = 0; c < k->x.cols; ++c) {
    const size_t i = (size_t)row * k->x.cols + c;
    uint32_t x = v->x[i];
    if (k->less.rows) x = ct_fp_add(x, v->column[row] ^ CT_FP_SIGN);
    if (k->squares) x = ct_fp_mul(x, x);
    if (k->times.rows) x = ct_fp_mul(x, v->times[i]);
    sum[c % 16] = ct_fp_add(sum[c % 16], x);
  }
  for (unsigned half = 8; half > 0; half /= 2)
    for (unsigned c = 0; c < half; ++c)
      sum[c] = ct_fp_add(sum[c], sum[c + half]);
  return ct_fp_mul(sum[0], kb_bits(k->scale));
}

static void sum_cols_too(const struct ct_sum_cols *k, struct values *v) {
  const struct ct_sum_cols alone = {.x = k->times, .scale = k->scale};
  struct values *of = calloc(1, sizeof *of);
  assert_non_null(of);
  memcpy(of->x, v->times, sizeof of->x);
  for (uint32_t r = 0; r < k->x.rows; ++r)
    v->too[r] = sum_of_row(&alone, of, r);
  free(of);
}

static void check_cols(struct kbed *b, struct values *v) {
  struct ct_sum_cols k = {.squares = ct_rng_percent(&b->rng, 30),
                          .scale = ct_rng_percent(&b->rng, 50) ? 1 : some_number(&b->rng)};
  const uint32_t rows = 1 + ct_rng_below(&b->rng, 300), cols = 1 + ct_rng_below(&b->rng, 70);
  struct ct_codes codes;
  char why[256] = "";
  kb_clear(b);
  k.x = filled(b, rows, cols, v->x);
  if (ct_rng_percent(&b->rng, 40)) k.times = filled(b, rows, cols, v->times);
  if (ct_rng_percent(&b->rng, 40)) k.less = filled(b, rows, 1, v->column);
  k.y = kb_mat(b, rows, 1, 1 + ct_rng_below(&b->rng, 7), true);
  k.y.narrow = ct_rng_below(&b->rng, 7);
  for (uint32_t r = 0; r < rows; ++r)
    v->want[r] = sum_of_row(&k, v, r);
  if (k.times.rows && ct_rng_percent(&b->rng, 70)) {
    k.too = kb_mat(b, rows, 1, 1 + ct_rng_below(&b->rng, 7), true);
    sum_cols_too(&k, v);
  }
  const uint32_t window = 400 + ct_rng_below(&b->rng, 600);
  const struct ct_room room = kb_room(window);
  if (ct_kernel_sum_cols(&k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
  kb_check(b, &k.y, v->want, "sums of columns");
  if (k.too.rows) kb_check(b, &k.too, v->too, "sums of the factor's columns");
}

static void test_columns(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 5);
  for (unsigned i = 0; i < 200; ++i)
    check_cols(&b, v);
  kb_close(&b);
  free(v);
}

/* ---- Rows to segments ---- */

static void check_spread(struct kbed *b, struct values *v) {
  static const uint32_t sizes[] = {1, 3, 4, 7, 16, 25, 32, 49, 64};
  struct ct_spread_rows k = {.segment = sizes[ct_rng_below(&b->rng, 9)],
                             .scale = some_number(&b->rng)};
  const uint32_t most = 300 / k.segment,
                 segments = 1 + ct_rng_below(&b->rng, most < 40 ? most : 40);
  const uint32_t rows = segments * k.segment, cols = 1 + ct_rng_below(&b->rng, 70);
  struct ct_codes codes;
  char why[256] = "";
  kb_clear(b);
  k.dy = filled(b, segments, cols, v->x);
  k.dx = kb_mat(b, rows, cols, ct_rng_percent(&b->rng, 30) ? KB_F32 : 1 + ct_rng_below(&b->rng, 7),
                true);
  k.dx.narrow = ct_rng_below(&b->rng, 7);
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t c = 0; c < cols; ++c)
      v->want[r * cols + c] = ct_fp_mul(kb_bits(k.scale), v->x[r / k.segment * cols + c]);
  const uint32_t window = 400 + ct_rng_below(&b->rng, 1000);
  const struct ct_room room = kb_room(window);
  if (ct_kernel_spread_rows(&k, &room, &codes, &(struct ct_why){why, sizeof why}))
    fail_msg("%u rows in segments of %u, %u words: %s", rows, k.segment, window, why);
  kb_run(b, &codes, window);
  kb_check(b, &k.dx, v->want, "rows of segments");
}

static void test_spread(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 2);
  for (unsigned i = 0; i < 100; ++i)
    check_spread(&b, v);
  kb_close(&b);
  free(v);
}

/* ---- What is refused ---- */

static void test_refusals(void **state) {
  (void)state;
  struct kbed b;
  struct ct_codes codes;
  char text[256] = "";
  const struct ct_why why = {text, sizeof text};
  kb_open(&b, "emu:", 3);
  struct ct_sum_rows k = {.x = kb_mat(&b, 98, 20, KB_ROWS, false),
                          .y = kb_mat(&b, 2, 20, KB_F32, true),
                          .segment = 49,
                          .scale = 1};
  struct ct_room room = kb_room(700);
  assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, &why), CT_ERR_NO_SPACE);
  assert_non_null(strstr(text, "words of scratchpad, the window has 700"));
  room = kb_room(2000);
  k.segment = 48;
  assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "98 rows in segments of 48"));
  k.segment = 49;
  k.times = k.y;
  assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "the factor has 2 rows"));
  k.times = k.x;
  k.too = k.y;
  assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "two of them are of all rows"));
  k.too.rows = 0;
  k.magnitudes = true;
  assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "counted or summed alone"));
  k.times.rows = 0;
  k.magnitudes = false;
  k.zeros = true; /* without a place for the largest */
  assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "counted or summed alone"));
  struct ct_spread_rows s = {.dx = k.x, .dy = k.y, .segment = 0, .scale = 1};
  assert_int_equal(ct_kernel_spread_rows(&s, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "98 rows in segments of 0"));
  s.segment = 7;
  assert_int_equal(ct_kernel_spread_rows(&s, &room, &codes, &why), CT_ERR_ARG);
  assert_non_null(strstr(text, "dy has 2 rows and 20 columns, not 14 and 20"));
  kb_close(&b);
}

/* A long matrix is loops. */
static void test_long(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  uint32_t *x = calloc((size_t)3000 * 17, sizeof *x);
  assert_true(v && x);
  kb_open(&b, "emu:", 4);
  struct ct_sum_rows k = {
      .x = filled(&b, 3000, 17, x), .y = kb_mat(&b, 1, 17, KB_F32, true), .scale = 1};
  for (unsigned i = 0; i < 2; ++i) {
    const struct ct_room room = kb_room(i ? 20000 : 400);
    struct ct_codes codes;
    uint32_t got[17];
    kb_put(&b, &k.x, x);
    assert_int_equal(ct_kernel_sum_rows(&k, &room, &codes, NULL), CT_OK);
    assert_int_equal(codes.count, 1);
    assert_true(codes.job[0].count < 250);
    kb_run(&b, &codes, room.spm_words);
    kb_get(&b, &k.y, got);
    for (uint32_t c = 0; c < 17; ++c) {
      double sum = 0, size = 0;
      for (uint32_t r = 0; r < 3000; ++r) {
        sum += (double)kb_float(x[r * 17 + c]);
        size += fabs((double)kb_float(x[r * 17 + c]));
      }
      assert_true(fabs((double)kb_float(got[c]) - sum) <= size * (3000.0 / 16 + 5) * 0x1p-24);
      if (i) assert_int_equal(got[c], v->want[c]);
      v->want[c] = got[c];
    }
  }
  kb_close(&b);
  free(v);
  free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),     cmocka_unit_test(test_looks),
      cmocka_unit_test(test_columns),  cmocka_unit_test(test_spread),
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_long),
  };
  return cmocka_run_group_tests_name("kernel_sum", tests, NULL, NULL);
}
