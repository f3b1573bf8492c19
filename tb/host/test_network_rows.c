/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As test_network_bits.c, of operators whose sums run along rows, of those that move elements, and
 * of dropout.
 */
#include "bits_bed.h"

#include <stdio.h>
#include <unistd.h>

#include "ct_real.h"

/* ---- What they share ----------------------------------------------------------------------- */

/* Section 4: partial sums of a row, every number of it. */
static uint32_t sum_of_row(const uint32_t *x, size_t count) {
  uint32_t p[16] = {0};
  for (size_t i = 0; i < count; ++i)
    p[i % 16] = add(p[i % 16], x[i]);
  return halve(p, 1);
}

/* A number that is spread over columns: -0 counts as +0. */
static uint32_t spread(uint32_t x) {
  return add(x, 0);
}

static int inputs(struct run *r, int *in, int count, struct ct_shape shape) {
  for (int i = 0; i < count; ++i)
    in[i] = bed_tensor(&r->b, CT_ROLE_INPUT, shape);
  return count;
}

/* ---- Softmax's gradient -------------------------------------------------------------------- */

static void test_softmax_gradient(void **state) {
  (void)state;
  static uint32_t g[ALL], y[ALL], times[COLS], want[ALL];
  struct run r;
  int in[2];
  begin(&r, 11);
  inputs(&r, in, 2, SHAPE(ROWS, COLS));
  const int out = BED_ADD(&r.b, "softmax_grad", BED_IN(in[0], in[1]));
  ct_graph_result(r.b.g, out);
  put_on_device(&r);
  draw(&r, in[0], -1, g);
  draw(&r, in[1], 0, y);
  step(&r, 0);
  for (size_t row = 0; row < ROWS; ++row) {
    for (size_t c = 0; c < COLS; ++c)
      times[c] = mul(g[row * COLS + c], y[row * COLS + c]);
    const uint32_t s = spread(sum_of_row(times, COLS));
    for (size_t c = 0; c < COLS; ++c)
      want[row * COLS + c] = mul(add(g[row * COLS + c], minus(s)), y[row * COLS + c]);
  }
  expect(&r, out, want, "gradient of softmax");
  end(&r);
}

/* ---- Mean squares -------------------------------------------------------------------------- */

static void test_mean_squares(void **state) {
  (void)state;
  static uint32_t x[ALL], t[ALL], square[ALL], column[COLS], want[ALL], loss;
  struct run r;
  int in[2];
  begin(&r, 12);
  inputs(&r, in, 2, SHAPE(ROWS, COLS));
  const int out = ct_graph_result(r.b.g, BED_ADD(&r.b, "mse", BED_IN(in[0], in[1])));
  assert_int_equal(ct_graph_gradients(r.b.g, out, in, 1), CT_OK);
  const int g = ct_graph_result(r.b.g, ct_graph_gradient(r.b.g, in[0]));
  put_on_device(&r);
  draw(&r, in[0], -1, x);
  draw(&r, in[1], -1, t);
  step(&r, 0);
  for (size_t i = 0; i < ALL; ++i) {
    const uint32_t d = add(x[i], minus(t[i]));
    square[i] = mul(d, d);
    want[i] = mul(mul(d, bits(2.0 / ALL)), bits(1));
  }
  for (size_t c = 0; c < COLS; ++c)
    column[c] = sum_of(square, ROWS, c);
  loss = mul(sum_of_row(column, COLS), bits(1.0 / ALL));
  expect(&r, out, &loss, "mean of squares");
  expect(&r, g, want, "gradient of x");
  end(&r);
}

/* ---- Layer normalisation ------------------------------------------------------------------- */

struct layer {
  uint32_t g[ALL], x[ALL], scale[COLS], bias[COLS];
  uint32_t mean[ROWS], inverse[ROWS], h[ALL], y[ALL], gx[ALL], gscale[COLS], gbias[COLS];
};

static void expected_moments(struct layer *t, size_t row) {
  const uint32_t n = bits(1.0 / COLS), *x = t->x + row * COLS;
  uint32_t square[COLS];
  t->mean[row] = spread(mul(sum_of_row(x, COLS), n));
  for (size_t c = 0; c < COLS; ++c) {
    const uint32_t d = add(x[c], minus(t->mean[row]));
    square[c] = mul(d, d);
  }
  t->inverse[row] = ct_fn_rsqrt(add(mul(sum_of_row(square, COLS), n), bits(1e-5)));
  for (size_t c = 0; c < COLS; ++c) {
    t->h[row * COLS + c] = mul(add(x[c], minus(t->mean[row])), t->inverse[row]);
    t->y[row * COLS + c] = add(mul(t->h[row * COLS + c], t->scale[c]), t->bias[c]);
  }
}

static void expected_row(struct layer *t, size_t row) {
  const uint32_t n = bits(1.0 / COLS), *h = t->h + row * COLS;
  uint32_t s[COLS], sh[COLS];
  for (size_t c = 0; c < COLS; ++c) {
    s[c] = mul(t->g[row * COLS + c], t->scale[c]);
    sh[c] = mul(s[c], h[c]);
  }
  const uint32_t a = spread(mul(sum_of_row(s, COLS), n)), b = spread(mul(sum_of_row(sh, COLS), n));
  for (size_t c = 0; c < COLS; ++c)
    t->gx[row * COLS + c] = mul(add(add(s[c], minus(a)), minus(mul(h[c], b))), t->inverse[row]);
}

static void expected_layer(struct layer *t) {
  static uint32_t gh[ALL];
  for (size_t row = 0; row < ROWS; ++row) {
    expected_moments(t, row);
    expected_row(t, row);
  }
  for (size_t i = 0; i < ALL; ++i)
    gh[i] = mul(t->g[i], t->h[i]);
  for (size_t c = 0; c < COLS; ++c) {
    t->gscale[c] = sum_of(gh, ROWS, c);
    t->gbias[c] = sum_of(t->g, ROWS, c);
  }
}

/* In rows of COLS elements, whether they are one dimension or two. */
static void test_layer(void **state) {
  (void)state;
  for (int dims = 2; dims < 4; ++dims) {
    static struct layer t;
    struct run r;
    int in[2], row[2];
    begin(&r, 13);
    inputs(&r, in, 2, dims == 2 ? SHAPE(ROWS, COLS) : SHAPE(ROWS, 7, 3));
    inputs(&r, row, 2, dims == 2 ? SHAPE(COLS) : SHAPE(7, 3));
    const int y =
        BED_ADD(&r.b, "layer_norm", BED_IN(in[1], row[0], row[1]), BED_ATTRS({"axis", 1, {1}}));
    const int g =
        BED_ADD(&r.b, "layer_norm_grad", BED_IN(in[0], in[1], row[0]), BED_ATTRS({"axis", 1, {1}}));
    ct_graph_result(r.b.g, y);
    for (int i = 0; i < 3; ++i)
      ct_graph_result(r.b.g, g + i);
    put_on_device(&r);
    draw(&r, in[0], -1, t.g);
    draw(&r, in[1], -1, t.x);
    draw(&r, row[0], -1, t.scale);
    draw(&r, row[1], -1, t.bias);
    step(&r, 0);
    expected_layer(&t);
    expect(&r, y, t.y, "normalised");
    expect(&r, g + 2, t.gbias, "gradient of the bias");
    expect(&r, g + 1, t.gscale, "gradient of the scale");
    expect(&r, g, t.gx, "gradient of x");
    end(&r);
  }
}

/* ---- Clipping by the norm ------------------------------------------------------------------ */

static void test_clip_norm(void **state) {
  (void)state;
  for (int clips = 0; clips < 2; ++clips) {
    static uint32_t x[ALL], square[ALL], column[COLS], total, want;
    enum { GRADIENTS = 9 }; /* more than a tile program has inputs */
    struct run r;
    int in[GRADIENTS];
    const double most = clips ? 1.5 : 1000;
    begin(&r, 14);
    inputs(&r, in, GRADIENTS, SHAPE(ROWS, COLS));
    const int out =
        ct_graph_result(r.b.g, BED_ADD(&r.b, "clip_norm", .inputs = in, .input_count = GRADIENTS,
                                       BED_ATTRS({"most", 1, {most}})));
    put_on_device(&r);
    total = 0;
    for (int i = 0; i < GRADIENTS; ++i) {
      draw(&r, in[i], -1, x);
      for (size_t k = 0; k < ALL; ++k)
        square[k] = mul(x[k], x[k]);
      for (size_t c = 0; c < COLS; ++c)
        column[c] = sum_of(square, ROWS, c);
      total = add(total, sum_of_row(column, COLS));
    }
    step(&r, 0);
    want = mul(ct_fn_rsqrt(total), bits(most));
    if (ct_fp_gt(want, bits(1))) want = bits(1);
    assert_true((want == bits(1)) == !clips);
    expect(&r, out, &want, "factor");
    end(&r);
  }
}

/* ---- Dropout ------------------------------------------------------------------------------- */

enum { STREAM = 77, SEED = 12345, STEP = 6 };

static void test_dropout(void **state) {
  (void)state;
  static uint32_t x[ALL], want[ALL];
  struct run r;
  begin(&r, 15);
  const int in = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(ROWS, COLS));
  const int out =
      BED_ADD(&r.b, "dropout", BED_IN(in), BED_ATTRS({"rate", 1, {0.3}}, {"stream", 1, {STREAM}}));
  ct_graph_result(r.b.g, out);
  bed_check(&r.b);
  assert_int_equal(ct_open("emu:", &r.dev), CT_OK);
  const struct ct_network_options options = {.seed = SEED};
  assert_int_equal(ct_network_create(r.dev, r.b.g, &options, &r.net), CT_OK);
  draw(&r, in, -1, x);
  for (uint64_t t = STEP; t < STEP + 2; ++t) { /* each step has a mask of its own */
    step(&r, t);
    for (uint32_t i = 0; i < ALL; ++i) {
      uint32_t word[4] = {i / 4, STREAM, (uint32_t)t, 0};
      ct_philox(word, SEED, 0);
      want[i] = word[i % 4] < (uint32_t)(0.3 * 0x1p32) ? 0 : mul(x[i], bits(1 / 0.7));
    }
    expect(&r, out, want, "dropped");
  }
  /* A file goes on with the same masks. */
  static uint32_t again[ALL];
  char path[64];
  snprintf(path, sizeof path, "/tmp/ct-rows-%ld.ctm", (long)getpid());
  assert_int_equal(ct_network_save(r.net, path), CT_OK);
  ct_network_free(r.net);
  assert_int_equal(ct_network_load(r.dev, path, NULL, &r.net), CT_OK);
  unlink(path);
  memcpy(again, x, sizeof again);
  assert_int_equal(ct_network_write(r.net, in, (const float *)again, ALL), CT_OK);
  step(&r, STEP + 1);
  expect(&r, out, want, "dropped by a network from a file");
  end(&r);
}

/* ---- Sums over what was repeated ----------------------------------------------------------- */

/* [5, 5, 3, 21] to [5, 1, 3, 1]: the last dimension, then the second. */
static void test_sum_to(void **state) {
  (void)state;
  enum { A = 5, B = 5, C = 3 };
  static uint32_t x[ALL], row[A][B][C], want[A * C];
  struct run r;
  begin(&r, 16);
  const int in = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(A, B, C, COLS));
  const int out = BED_ADD(&r.b, "sum_to", BED_IN(in), BED_ATTRS({"shape", 4, {A, 1, C, 1}}));
  ct_graph_result(r.b.g, out);
  put_on_device(&r);
  draw(&r, in, -1, x);
  step(&r, 0);
  for (size_t i = 0; i < A * B * C; ++i)
    row[i / (B * C)][i / C % B][i % C] = sum_of_row(x + i * COLS, COLS);
  for (size_t i = 0; i < A * C; ++i) {
    uint32_t part[B];
    for (size_t b = 0; b < B; ++b)
      part[b] = row[i / C][b][i % C];
    want[i] = sum_of_row(part, B);
  }
  expect(&r, out, want, "sums");
  end(&r);
}

/* ---- Folded normalisation ------------------------------------------------------------------ */

/* The layer gives what one of the folded weights gives, which have the bits that are stated. */
static void test_folded(void **state) {
  (void)state;
  enum { IN = 30, BATCH = 9 };
  static uint32_t x[2][BATCH * IN], v[6][COLS * IN], w[COLS * IN], bias[COLS], got[BATCH * COLS];
  for (int folded = 1; folded >= 0; --folded) {
    struct run r;
    int in[6];
    begin(&r, 17);
    const int images = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(BATCH, IN));
    for (int i = 0; i < 6; ++i)
      in[i] = bed_tensor(&r.b, CT_ROLE_STATE, i ? SHAPE(COLS) : SHAPE(COLS, IN));
    int layer[3] = {images, in[0], in[1]};
    if (folded) {
      layer[1] = BED_ADD(&r.b, "batch_norm_fold", .inputs = in, .input_count = 6);
      layer[2] = layer[1] + 1;
    }
    const int y = BED_ADD(&r.b, "linear", .inputs = layer, .input_count = 3);
    ct_graph_result(r.b.g, y);
    put_on_device(&r);
    draw(&r, images, -1, x[folded]);
    for (int i = 0; i < 6 && folded; ++i)
      draw(&r, in[i], i == 4 ? 0.1 : -1, v[i]);
    for (int i = 0; i < 2 && !folded; ++i) {
      assert_int_equal(
          ct_network_write(r.net, in[i], (const float *)(i ? bias : w), i ? COLS : COLS * IN),
          CT_OK);
    }
    step(&r, 0);
    if (folded) assert_int_equal(ct_network_read(r.net, y, (float *)got, BATCH * COLS), CT_OK);
    if (!folded) expect(&r, y, got, "a layer of folded weights");
    for (size_t o = 0; o < COLS; ++o) {
      const uint32_t factor = mul(v[1][o], ct_fn_rsqrt(add(v[4][o], bits(1e-5))));
      const uint32_t mean = add(v[3][o], minus(v[5][o]));
      bias[o] = add(v[2][o], minus(mul(mean, factor)));
      for (size_t i = 0; i < IN; ++i)
        w[o * IN + i] = mul(v[0][o * IN + i], factor);
    }
    end(&r);
  }
  assert_memory_equal(x[0], x[1], sizeof x[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_softmax_gradient),
                                     cmocka_unit_test(test_mean_squares),
                                     cmocka_unit_test(test_layer),
                                     cmocka_unit_test(test_clip_norm),
                                     cmocka_unit_test(test_dropout),
                                     cmocka_unit_test(test_sum_to),
                                     cmocka_unit_test(test_folded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
