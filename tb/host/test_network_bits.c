/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/numerics.md says of networks, operation by operation, beside what the device gives: the
 * same bits. Kernels have tests of their own; here are the operators that the compiler puts
 * together of them. Those that work row by row are in test_network_rows.c.
 */
#include "bits_bed.h"

/* ---- Batch normalisation ------------------------------------------------------------------- */

static uint32_t inverse_root(uint32_t variance) {
  return ct_fn_rsqrt(add(variance, bits(1e-5)));
}

struct gradient {
  uint32_t g[ALL], x[ALL], scale[COLS], mean[COLS], variance[COLS];
  uint32_t gx[ALL], gscale[COLS], gbias[COLS];
};

static void expected_gradient(struct gradient *t, uint32_t part) {
  static uint32_t times[ALL];
  for (size_t i = 0; i < ALL; ++i)
    times[i] = mul(add(t->x[i], minus(t->mean[i % COLS])), t->g[i]);
  for (size_t c = 0; c < COLS; ++c) {
    const uint32_t i = inverse_root(t->variance[c]), a = mul(t->scale[c], i), r = minus(part);
    t->gbias[c] = sum_of(t->g, ROWS, c);
    t->gscale[c] = mul(sum_of(times, ROWS, c), i);
    const uint32_t b = mul(mul(a, mul(i, t->gscale[c])), r);
    const uint32_t k = add(mul(mul(a, t->gbias[c]), r), minus(mul(t->mean[c], b)));
    for (size_t row = 0; row < ROWS; ++row) {
      const size_t at = row * COLS + c;
      t->gx[at] = add(add(mul(t->g[at], a), mul(t->x[at], b)), k);
    }
  }
}

static void test_norm_gradient(void **state) {
  (void)state;
  for (int batch = 0; batch < 2; ++batch) {
    static struct gradient t;
    struct run r;
    int in[5];
    begin(&r, 3);
    for (int i = 0; i < 5; ++i)
      in[i] = bed_tensor(&r.b, CT_ROLE_INPUT, i < 2 ? SHAPE(ROWS, COLS) : SHAPE(COLS));
    const int y = BED_ADD(&r.b, "batch_norm_grad", .inputs = in, .input_count = 5,
                          BED_ATTRS({"batch", 1, {batch}}));
    for (int i = 0; i < 3; ++i)
      ct_graph_result(r.b.g, y + i);
    put_on_device(&r);
    uint32_t *const to[5] = {t.g, t.x, t.scale, t.mean, t.variance};
    for (int i = 0; i < 5; ++i)
      draw(&r, in[i], i == 4 ? 0.1 : -1, to[i]);
    step(&r, 0);
    expected_gradient(&t, batch ? bits(1.0 / ROWS) : 0);
    expect(&r, y + 2, t.gbias, "gradient of the bias");
    expect(&r, y + 1, t.gscale, "gradient of the scale");
    expect(&r, y, t.gx, "gradient of x");
    end(&r);
  }
}

static void test_norm(void **state) {
  (void)state;
  static uint32_t x[ALL], square[ALL], y[ALL], v[4][COLS], now[2][COLS];
  const uint32_t m = bits(0.7), part = bits(1.0 / ROWS);
  struct run r;
  int in[5];
  begin(&r, 4);
  for (int i = 0; i < 5; ++i)
    in[i] = i ? bed_tensor(&r.b, CT_ROLE_STATE, SHAPE(COLS))
              : bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(ROWS, COLS));
  const int out = BED_ADD(&r.b, "batch_norm_train", .inputs = in, .input_count = 5,
                          BED_ATTRS({"momentum", 1, {0.7}}));
  ct_graph_result(r.b.g, out);
  for (int i = 0; i < 2; ++i)
    ct_graph_becomes(r.b.g, in[3 + i], out + 1 + i);
  put_on_device(&r);
  draw(&r, in[0], -1, x);
  for (int i = 0; i < 4; ++i)
    draw(&r, in[i + 1], -1, v[i]);
  step(&r, 0);
  for (size_t c = 0; c < COLS; ++c) {
    now[0][c] = mul(sum_of(x, ROWS, c), part);
    for (size_t row = 0; row < ROWS; ++row) {
      const uint32_t d = add(x[row * COLS + c], minus(now[0][c]));
      square[row * COLS + c] = mul(d, d);
    }
    now[1][c] = mul(sum_of(square, ROWS, c), part);
    const uint32_t f = mul(v[0][c], inverse_root(now[1][c]));
    const uint32_t t = add(v[1][c], minus(mul(now[0][c], f)));
    for (size_t row = 0; row < ROWS; ++row)
      y[row * COLS + c] = add(mul(x[row * COLS + c], f), t);
    for (int i = 0; i < 2; ++i)
      v[2 + i][c] = add(mul(v[2 + i][c], m), mul(now[i][c], one_minus(m)));
  }
  expect(&r, out, y, "normalised");
  expect(&r, in[3], v[2], "running mean");
  expect(&r, in[4], v[3], "running variance");
  end(&r);
}

/* ---- The loss ------------------------------------------------------------------------------ */

struct loss {
  uint32_t z[ALL], y[ALL], rate[1], g[ALL], loss[1];
};

static void expected_loss(struct loss *t) {
  uint32_t sum[16 * 16] = {0};
  for (size_t row = 0; row < ROWS; ++row) {
    const uint32_t *z = t->z + row * COLS;
    uint32_t most = z[0], p[16] = {0};
    for (size_t c = 1; c < COLS; ++c)
      most = ct_fp_max(most, z[c]);
    for (size_t c = 0; c < COLS; ++c)
      p[c % 16] = add(p[c % 16], ct_fn_exp(add(z[c], minus(most))));
    const uint32_t s = halve(p, 1), l = ct_fn_log(s);
    for (size_t c = 0; c < COLS; ++c) {
      const size_t at = row * COLS + c;
      const uint32_t d = add(z[c], minus(most)), e = mul(ct_fn_exp(d), ct_fn_recip(s));
      t->g[at] = mul(add(e, minus(t->y[at])), mul(t->rate[0], bits(1.0 / ROWS)));
      uint32_t *part = &sum[row % 16 * 16 + c % 16];
      *part = add(*part, mul(add(l, minus(d)), t->y[at]));
    }
  }
  for (size_t c = 0; c < 16; ++c)
    (void)halve(sum + c, 16);
  t->loss[0] = mul(halve(sum, 1), bits(1.0 / ROWS));
}

static void test_loss(void **state) {
  (void)state;
  static struct loss t;
  struct run r;
  begin(&r, 5);
  const int z = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(ROWS, COLS));
  const int y = bed_tensor(&r.b, CT_ROLE_LABEL, SHAPE(ROWS, COLS));
  const int rate = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(1));
  const int loss = ct_graph_result(r.b.g, BED_ADD(&r.b, "cross_entropy", BED_IN(z, y)));
  const int g = ct_graph_result(r.b.g, BED_ADD(&r.b, "cross_entropy_grad", BED_IN(rate, z, y)));
  put_on_device(&r);
  draw(&r, z, -1, t.z);
  draw(&r, y, 0, t.y);
  draw(&r, rate, 0.1, t.rate);
  step(&r, 0);
  expected_loss(&t);
  expect(&r, loss, t.loss, "loss");
  expect(&r, g, t.g, "gradient of the logits");
  end(&r);
}

/* ---- Updates ------------------------------------------------------------------------------- */

enum { STEP = 6 };
static const double kRate = 0.013, kBeta1 = 0.87, kBeta2 = 0.993, kDecay = 0.05;

static double power(double x, int n) {
  return n ? x * power(x, n - 1) : 1;
}

/* w, g, m and v. */
static void expected_adam(uint32_t x[4][ALL], bool apart) {
  const uint32_t b1 = bits(kBeta1), b2 = bits(kBeta2), decay = bits(kDecay);
  const uint32_t c = bits(1 / (1 - power(kBeta2, STEP + 1)));
  const uint32_t s = bits(kRate / (1 - power(kBeta1, STEP + 1)));
  for (size_t i = 0; i < ALL; ++i) {
    uint32_t *w = &x[0][i], *m = &x[2][i], *v = &x[3][i], g = x[1][i];
    if (!apart) g = add(g, mul(*w, decay));
    *m = add(mul(*m, b1), mul(g, one_minus(b1)));
    *v = add(mul(*v, b2), mul(mul(g, g), one_minus(b2)));
    const uint32_t q = add(ct_fn_recip(ct_fn_rsqrt(mul(*v, c))), bits(1e-8));
    uint32_t by = mul(mul(*m, ct_fn_recip(q)), s);
    if (apart) by = add(by, mul(mul(*w, decay), bits(kRate)));
    *w = add(*w, minus(by));
  }
}

static void test_adam(void **state) {
  (void)state;
  for (int apart = 0; apart < 2; ++apart) {
    static uint32_t x[4][ALL];
    struct run r;
    int in[5];
    begin(&r, 6);
    for (int i = 0; i < 4; ++i)
      in[i] = bed_tensor(&r.b, i == 1 ? CT_ROLE_INPUT : CT_ROLE_STATE, SHAPE(ROWS, COLS));
    in[4] = BED_ADD(&r.b, "rate", BED_ATTRS({"rate", 1, {kRate}}));
    const int out = BED_ADD(&r.b, "adam", .inputs = in, .input_count = 5,
                            BED_ATTRS({"beta1", 1, {kBeta1}}, {"beta2", 1, {kBeta2}},
                                      {"decay", 1, {kDecay}}, {"decoupled", 1, {apart}}));
    ct_graph_becomes(r.b.g, in[0], out);
    ct_graph_becomes(r.b.g, in[2], out + 1);
    ct_graph_becomes(r.b.g, in[3], out + 2);
    put_on_device(&r);
    for (int i = 0; i < 4; ++i)
      draw(&r, in[i], i == 3 ? 0.01 : -1, x[i]);
    step(&r, STEP);
    expected_adam(x, apart);
    expect(&r, in[2], x[2], "mean");
    expect(&r, in[3], x[3], "mean of squares");
    expect(&r, in[0], x[0], "weights");
    end(&r);
  }
}

static void test_sgd(void **state) {
  (void)state;
  static uint32_t x[3][ALL];
  const uint32_t mu = bits(0.9), decay = bits(kDecay), rate = bits(-kRate);
  struct run r;
  int in[4];
  begin(&r, 7);
  for (int i = 0; i < 3; ++i)
    in[i] = bed_tensor(&r.b, i == 1 ? CT_ROLE_INPUT : CT_ROLE_STATE, SHAPE(ROWS, COLS));
  in[3] = BED_ADD(&r.b, "rate", BED_ATTRS({"rate", 1, {kRate}}));
  const int out = BED_ADD(&r.b, "sgd", .inputs = in, .input_count = 4,
                          BED_ATTRS({"momentum", 1, {0.9}}, {"decay", 1, {kDecay}}));
  ct_graph_becomes(r.b.g, in[0], out);
  ct_graph_becomes(r.b.g, in[2], out + 1);
  put_on_device(&r);
  for (int i = 0; i < 3; ++i)
    draw(&r, in[i], -1, x[i]);
  step(&r, STEP);
  for (size_t i = 0; i < ALL; ++i) {
    x[2][i] = add(mul(x[2][i], mu), add(mul(x[0][i], decay), x[1][i]));
    x[0][i] = add(mul(x[2][i], rate), x[0][i]);
  }
  expect(&r, in[2], x[2], "velocity");
  expect(&r, in[0], x[0], "weights");
  end(&r);
}

/* ---- Gradients of functions ---------------------------------------------------------------- */

static uint32_t where(uint32_t g, uint32_t x) {
  return ct_fp_gt(x, 0) ? g : 0;
}

static uint32_t leaky(uint32_t g, uint32_t x) {
  const uint32_t u = where(g, x);
  return add(u, mul(add(g, minus(u)), bits(0.01)));
}
static uint32_t clipped(uint32_t g, uint32_t x) {
  const uint32_t below = add(mul(x, bits(-1)), bits(0.5));
  return where(where(g, add(x, minus(bits(-0.25)))), below);
}
static uint32_t erf_slope(uint32_t g, uint32_t x) {
  return mul(g, mul(ct_fn_exp(mul(mul(x, x), bits(-1))), bits(1.1283791670955126)));
}

static void test_function_gradients(void **state) {
  (void)state;
  static const struct {
    const char *op;
    uint32_t (*of)(uint32_t g, uint32_t x);
  } functions[] = {{"relu_grad", where},
                   {"leaky_relu_grad", leaky},
                   {"clip_grad", clipped},
                   {"erf_grad", erf_slope}};
  static uint32_t g[ALL], x[ALL], want[ALL];
  for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
    struct run r;
    begin(&r, 8);
    const int in[2] = {bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(ROWS, COLS)),
                       bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(ROWS, COLS))};
    const bool clips = functions[f].of == clipped;
    const int y = BED_ADD(&r.b, functions[f].op, .inputs = in, .input_count = 2,
                          .attrs = (struct ct_attr[]){{"min", 1, {-0.25}}, {"max", 1, {0.5}}},
                          .attr_count = clips ? 2 : 0);
    ct_graph_result(r.b.g, y);
    put_on_device(&r);
    draw(&r, in[0], -1, g);
    draw(&r, in[1], -1, x);
    step(&r, 0);
    for (size_t i = 0; i < ALL; ++i)
      want[i] = functions[f].of(g[i], x[i]);
    expect(&r, y, want, functions[f].op);
    end(&r);
  }
}

/* ---- Many matrices by one ------------------------------------------------------------------ */

static unsigned stages(const struct run *r, const char *op) {
  struct ct_network_stage stage;
  unsigned count = 0;
  for (size_t i = 0; !ct_network_stage(r->net, i, &stage); ++i)
    count += !strncmp(stage.op, op, strlen(op));
  return count;
}

/* All together give what each by itself gives. They are one product, but where square tiles would
 * lie across two of them. */
static void test_many_by_one(void **state) {
  (void)state;
  enum { MOST = 6, K = 20, D = 18 };
  for (uint32_t way = 0; way < 4; ++way) {
    static uint32_t w[ALL];
    static float x[ALL], all[ALL];
    const uint32_t rows = way / 2 ? 16 : 5, many = way / 2 ? 4 : MOST;
    const bool turned = way % 2;
    struct run r;
    int one[MOST];
    begin(&r, 20 + way);
    const int a = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(2, many / 2, rows, K)),
              b = bed_tensor(&r.b, CT_ROLE_INPUT, turned ? SHAPE(D, K) : SHAPE(K, D));
    const int flat = BED_ADD(&r.b, "reshape", BED_IN(a), BED_ATTRS({"shape", 3, {many, rows, K}}));
    const struct ct_attr turn = {"transpose_b", 1, {turned}};
    const int y = ct_graph_result(
        r.b.g, BED_ADD(&r.b, "matmul", BED_IN(a, b), .attrs = &turn, .attr_count = 1));
    for (uint32_t i = 0; i < many; ++i) {
      const int part = BED_ADD(&r.b, "slice", BED_IN(flat),
                               BED_ATTRS({"axis", 1, {0}}, {"begin", 1, {i}}, {"size", 1, {1}}));
      one[i] = ct_graph_result(
          r.b.g, BED_ADD(&r.b, "matmul", BED_IN(part, b), .attrs = &turn, .attr_count = 1));
    }
    put_on_device(&r);
    for (uint32_t i = 0; i < many * rows * K; ++i) /* each matrix smaller than the one before */
      x[i] = (float)(1 + ct_rng_below(&r.rng, 1000)) / (float)(1u << (3 * (i / (rows * K))));
    assert_int_equal(ct_network_write(r.net, a, x, (size_t)many * rows * K), CT_OK);
    draw(&r, b, -1, w);
    step(&r, 0);
    assert_int_equal(ct_network_read(r.net, y, all, (size_t)many * rows * D), CT_OK);
    for (uint32_t i = 0; i < many; ++i) {
      uint32_t want[16 * D];
      memcpy(want, all + (size_t)i * rows * D, rows * D * sizeof *want);
      expect(&r, one[i], want, "one of many");
    }
    assert_int_equal(stages(&r, "conv"), many + (turned && rows % 16 ? many : 1));
    end(&r);
  }
}

/* Two times three matrices, on one side the same three twice: each is cut out once. */
static void test_parts_are_cut_once(void **state) {
  (void)state;
  struct run r;
  begin(&r, 30);
  const int a = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(1, 3, 5, 6)),
            b = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(2, 3, 6, 7));
  ct_graph_result(r.b.g, BED_ADD(&r.b, "matmul", BED_IN(a, b)));
  put_on_device(&r);
  assert_int_equal(stages(&r, "conv"), 6);
  assert_int_equal(stages(&r, "moving"), 3 + 6 + 6);
  end(&r);
}

/* ---- What is not done twice ---------------------------------------------------------------- */

/* Some columns: all become rows, and those that are wanted columns again. */
static void test_columns_in_two_moves(void **state) {
  (void)state;
  static uint32_t x[ALL], want[ALL];
  struct run r;
  begin(&r, 31);
  const int in = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(ROWS, COLS));
  const int y = ct_graph_result(
      r.b.g, BED_ADD(&r.b, "slice", BED_IN(in),
                     BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {3}}, {"size", 1, {10}})));
  put_on_device(&r);
  draw(&r, in, -1, x);
  step(&r, 0);
  for (size_t i = 0; i < ROWS * 10; ++i)
    want[i] = x[i / 10 * COLS + 3 + i % 10];
  expect(&r, y, want, "columns");
  assert_int_equal(stages(&r, "moving"), 2);
  end(&r);
}

/* The zeros beside parts, and numbers of graphs. */
static uint64_t constant_bytes(unsigned times) {
  struct run r;
  struct ct_network_info info;
  begin(&r, 32);
  for (unsigned i = 0; i < times; ++i) {
    const int gy = bed_tensor(&r.b, CT_ROLE_INPUT, SHAPE(2, COLS));
    const int y = BED_ADD(&r.b, "slice_grad", BED_IN(gy),
                          BED_ATTRS({"axis", 1, {0}}, {"begin", 1, {i}}, {"size", 1, {7}}));
    const int half = BED_ADD(&r.b, "fill", BED_ATTRS({"shape", 2, {7, COLS}}, {"value", 1, {0.5}}));
    assert_true(ct_graph_result(r.b.g, BED_ADD(&r.b, "add", BED_IN(y, half))) > 0);
  }
  put_on_device(&r);
  assert_int_equal(ct_network_info(r.net, &info), CT_OK);
  end(&r);
  return info.weights_bytes;
}

static void test_constants_lie_once(void **state) {
  (void)state;
  assert_int_equal(constant_bytes(4), constant_bytes(2));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_norm),
                                     cmocka_unit_test(test_norm_gradient),
                                     cmocka_unit_test(test_loss),
                                     cmocka_unit_test(test_adam),
                                     cmocka_unit_test(test_sgd),
                                     cmocka_unit_test(test_function_gradients),
                                     cmocka_unit_test(test_many_by_one),
                                     cmocka_unit_test(test_parts_are_cut_once),
                                     cmocka_unit_test(test_columns_in_two_moves),
                                     cmocka_unit_test(test_constants_lie_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
