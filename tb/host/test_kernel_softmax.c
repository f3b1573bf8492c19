/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its loss and gradient: to the bit, and against libm. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_num.h"
#include "kernel_bed.h"

enum { MOST_ROWS = 60, MOST_COLS = 70, MOST = MOST_ROWS * MOST_COLS };

struct values {
  uint32_t x[MOST], t[MOST], y[MOST], dx[MOST], loss[1];
  double exact_loss;
};

static uint32_t negative(uint32_t x) {
  return x ^ CT_FP_SIGN;
}

/* Sixteen partial sums to one. */
static uint32_t halved(uint32_t *x) {
  for (unsigned half = 8; half > 0; half /= 2)
    for (unsigned i = 0; i < half; ++i)
      x[i] = ct_fp_add(x[i], x[i + half]);
  return x[0];
}

/* Row r; adds to the partial sums of the loss. */
static void row_of(const struct ct_softmax *k, struct values *v, uint32_t r, uint32_t rate,
                   uint32_t loss[16][16]) {
  const uint32_t n = k->x.cols;
  const uint32_t *x = v->x + (size_t)r * n, *t = v->t + (size_t)r * n;
  uint32_t max = x[0], sum[16] = {0};
  for (uint32_t c = 1; c < n; ++c)
    max = ct_fp_max(max, x[c]);
  for (uint32_t c = 0; c < n; ++c)
    sum[c % 16] = ct_fp_add(sum[c % 16], ct_fn_exp(ct_fp_add(x[c], negative(max))));
  const uint32_t all = halved(sum), recip = ct_fn_recip(all), log = ct_fn_log(all);
  for (uint32_t c = 0; c < n; ++c) {
    const uint32_t d = ct_fp_add(x[c], negative(max)), y = ct_fp_mul(ct_fn_exp(d), recip);
    uint32_t *l = &loss[r % 16][c % 16];
    v->y[(size_t)r * n + c] = y;
    v->dx[(size_t)r * n + c] = ct_fp_mul(ct_fp_add(y, negative(t[c])), rate);
    *l = ct_fp_add(*l, ct_fp_mul(ct_fp_add(log, negative(d)), t[c]));
  }
}

static void reference(const struct ct_softmax *k, struct values *v, float dloss) {
  const uint32_t share = kb_bits(1 / (float)k->x.rows);
  uint32_t loss[16][16] = {{0}}, sum[16];
  for (uint32_t r = 0; r < k->x.rows; ++r)
    row_of(k, v, r, ct_fp_mul(kb_bits(dloss), share), loss);
  for (unsigned c = 0; c < 16; ++c) {
    uint32_t column[16];
    for (unsigned r = 0; r < 16; ++r)
      column[r] = loss[r][c];
    sum[c] = halved(column);
  }
  v->loss[0] = ct_fp_mul(halved(sum), share);
}

/* Double precision: softmax within a few ulps of exp and recip, the loss within those of log. */
static void check_exact(const struct ct_softmax *k, const struct values *v) {
  const uint32_t n = k->x.cols;
  double loss = 0, weight = 0;
  for (uint32_t r = 0; r < k->x.rows; ++r) {
    double max = -INFINITY, sum = 0;
    for (uint32_t c = 0; c < n; ++c)
      max = fmax(max, (double)kb_float(v->x[r * n + c]));
    for (uint32_t c = 0; c < n; ++c)
      sum += exp((double)kb_float(v->x[r * n + c]) - max);
    for (uint32_t c = 0; c < n; ++c) {
      const double d = (double)kb_float(v->x[r * n + c]) - max, y = exp(d) / sum;
      const double t = (double)kb_float(v->t[r * n + c]);
      assert_true(fabs((double)kb_float(v->y[r * n + c]) - y) <= 0x1p-18 * y + 0x1p-30);
      loss -= t * (d - log(sum));
      weight += t * (fabs(d) + log(sum) + 1);
    }
  }
  assert_true(fabs((double)kb_float(v->loss[0]) - loss / k->x.rows) <=
              0x1p-17 * weight / k->x.rows);
}

static void fill(struct kbed *b, struct ct_softmax *k, struct values *v) {
  const uint32_t n = k->x.rows * k->x.cols;
  for (uint32_t i = 0; i < n; ++i) {
    v->x[i] = kb_bits(((float)ct_rng_below(&b->rng, 2001) - 1000) / 64);
    v->t[i] = kb_bits((float)ct_rng_below(&b->rng, 9) / 8);
  }
  kb_put(b, &k->x, v->x);
  if (k->targets.rows) kb_put(b, &k->targets, v->t);
}

static void check(struct kbed *b, struct values *v) {
  const uint32_t rows = 1 + ct_rng_below(&b->rng, MOST_ROWS);
  const uint32_t cols = 1 + ct_rng_below(&b->rng, MOST_COLS);
  const unsigned wanted = 1 + ct_rng_below(&b->rng, 7);
  float dloss = 1;
  struct ct_codes codes;
  char why[256] = "";
  struct ct_softmax k = {.x = {.rows = 0}};
  kb_clear(b);
  k.x = kb_mat(b, rows, cols, 1u << ct_rng_below(&b->rng, 3), false);
  if (wanted & 1) k.y = kb_mat(b, rows, cols, 1 + ct_rng_below(&b->rng, 7), true);
  if (wanted & 2) k.loss = kb_mat(b, 1, 1, 1 + ct_rng_below(&b->rng, 7), true);
  if (wanted & 4) k.dx = kb_mat(b, rows, cols, 1 + ct_rng_below(&b->rng, 7), true);
  if (wanted & 6) k.targets = kb_mat(b, rows, cols, 1u << ct_rng_below(&b->rng, 3), false);
  if (ct_rng_percent(&b->rng, 50)) {
    uint32_t x = kb_bits(dloss = 0.375f);
    k.dloss = kb_mat(b, 1, 1, 1u << ct_rng_below(&b->rng, 3), false);
    kb_put(b, &k.dloss, &x);
  }
  k.y.narrow = ct_rng_below(&b->rng, 7);
  k.dx.narrow = ct_rng_below(&b->rng, 7);
  fill(b, &k, v);
  const uint32_t window = 400 + ct_rng_below(&b->rng, ct_rng_percent(&b->rng, 50) ? 400 : 4000);
  const struct ct_room room = kb_room(window);
  if (ct_kernel_softmax(&k, &room, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  kb_run(b, &codes, window);
  reference(&k, v, dloss);
  if (wanted & 1) kb_check(b, &k.y, v->y, "softmax");
  if (wanted & 2) kb_check(b, &k.loss, v->loss, "the loss");
  if (wanted & 4) kb_check(b, &k.dx, v->dx, "the gradient");
  if (wanted & 6) check_exact(&k, v);
}

static void test_random(void **state) {
  (void)state;
  struct kbed b;
  struct values *v = calloc(1, sizeof *v);
  assert_non_null(v);
  kb_open(&b, "emu:", 1);
  for (unsigned i = 0; i < 150; ++i)
    check(&b, v);
  kb_close(&b);
  free(v);
}

static void refuse(const struct ct_softmax *k, uint32_t window, int error, const char *what) {
  struct ct_codes codes;
  char why[256] = "";
  const struct ct_room room = kb_room(window);
  const int err = ct_kernel_softmax(k, &room, &codes, &(struct ct_why){why, sizeof why});
  if (err != error || !strstr(why, what)) fail_msg("%d (%s), not %d (%s)", err, why, error, what);
}

static void test_refusals(void **state) {
  (void)state;
  struct kbed b;
  kb_open(&b, "emu:", 2);
  const struct ct_softmax good = {.x = kb_mat(&b, 20, 30, KB_F32, false),
                                  .y = kb_mat(&b, 20, 30, KB_F32, true)};
  struct ct_softmax k = good;
  k.y.rows = 0;
  refuse(&k, 1000, CT_ERR_ARG, "nothing is wanted");
  k.dx = good.y;
  refuse(&k, 1000, CT_ERR_ARG, "without targets");
  k = good;
  k.y.cols = 29;
  refuse(&k, 1000, CT_ERR_ARG, "y has 20 rows and 29 columns, not 20 and 30");
  k = good;
  k.loss = good.y;
  refuse(&k, 1000, CT_ERR_ARG, "loss has 20 rows and 30 columns, not 1 and 1");
  refuse(&good, 100, CT_ERR_NO_SPACE, "words of scratchpad, the window has 100");
  kb_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests_name("kernel_softmax", tests, NULL, NULL);
}
