/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators compute: numbers worked out by hand, functions against the C library's, batch
 * normalisation folded against unfolded.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ct_real.h"
#include "graph_bed.h"

#define NUMBERS(...) ((const double[]){__VA_ARGS__})
/* The value of a node added to a bed. */
#define EXPECT(b, tensor, tolerance, ...)                                                   \
  bed_expect(b, tensor, NUMBERS(__VA_ARGS__), sizeof NUMBERS(__VA_ARGS__) / sizeof(double), \
             tolerance)

/* ---- Convolution --------------------------------------------------------------------------- */

/* 1 .. 9 in three rows, taps 1 2 / 3 4. */
static void expect_conv(struct ct_attr attr, bool bias, const double *want, size_t count) {
  struct bed b;
  bed_make(&b);
  const int x =
      bed_values(&b, CT_ROLE_INPUT, SHAPE(1, 3, 3, 1), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9));
  const int w = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(1, 2, 2, 1), NUMBERS(1, 2, 3, 4));
  const int c = bias ? bed_values(&b, CT_ROLE_WEIGHT, SHAPE(1), NUMBERS(1000)) : 0;
  bed_expect(&b, BED_ADD(&b, "conv", BED_IN(x, w, c), BED_ATTRS(attr, {"groups", 1, {1}})), want,
             count, 0);
  bed_free(&b);
}

static void test_convolution(void **state) {
  (void)state;
  expect_conv((struct ct_attr){"stride", 2, {1, 1}}, false, NUMBERS(37, 47, 67, 77), 4);
  expect_conv((struct ct_attr){"stride", 2, {1, 1}}, true, NUMBERS(1037, 1047, 1067, 1077), 4);
  expect_conv((struct ct_attr){"stride", 2, {2, 1}}, false, NUMBERS(37, 47), 2);
  expect_conv((struct ct_attr){"stride", 2, {1, 2}}, false, NUMBERS(37, 67), 2);
  /* 1 2 / 3 4 at the corners; one tap apart in height alone */
  expect_conv((struct ct_attr){"dilation", 2, {2, 2}}, false, NUMBERS(1 + 6 + 21 + 36), 1);
  expect_conv((struct ct_attr){"dilation", 2, {2, 1}}, false,
              NUMBERS(1 + 4 + 21 + 32, 2 + 6 + 24 + 36), 2);
  /* a row of zeros above, a column of them behind */
  expect_conv((struct ct_attr){"pad", 4, {1, 0, 0, 0}}, false, NUMBERS(11, 18, 37, 47, 67, 77), 6);
  expect_conv((struct ct_attr){"pad", 4, {0, 0, 0, 1}}, false,
              NUMBERS(37, 47, 3 + 18, 67, 77, 6 + 27), 6);
}

/* Padding and stride at once: 4 / 2 * 3 + 3 * 4 / 4 * 2 + 7 * 4 / all four. */
static void test_padded_stride(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x =
      bed_values(&b, CT_ROLE_INPUT, SHAPE(1, 3, 3, 1), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8, 9));
  const int w = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(1, 2, 2, 1), NUMBERS(1, 2, 3, 4));
  EXPECT(
      &b,
      BED_ADD(&b, "conv", BED_IN(x, w), BED_ATTRS({"stride", 2, {2, 2}}, {"pad", 4, {1, 1, 0, 0}})),
      0, 4, 18, 36, 77);
  bed_free(&b);
}

/* Pixels of four channels; two groups, then each channel alone, with two outputs each. */
static void test_groups(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(1, 1, 2, 4), NUMBERS(1, 2, 3, 4, 5, 6, 7, 8));
  const int w = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(2, 1, 1, 2), NUMBERS(1, 10, 100, 1000));
  EXPECT(&b, BED_ADD(&b, "conv", BED_IN(x, w), BED_ATTRS({"groups", 1, {2}})), 0, 21, 4300, 65,
         8700);
  bed_free(&b);
  bed_make(&b);
  const int z = bed_values(&b, CT_ROLE_INPUT, SHAPE(1, 1, 1, 2), NUMBERS(2, 3));
  const int v = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(4, 1, 1, 1), NUMBERS(1, 10, 100, 1000));
  EXPECT(&b, BED_ADD(&b, "conv", BED_IN(z, v), BED_ATTRS({"groups", 1, {2}})), 0, 2, 20, 300, 3000);
  bed_free(&b);
}

/* ---- Pooling ------------------------------------------------------------------------------- */

/* Of equal elements the first of the window gets the gradient, row by row. */
static void test_ties(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(1, 2, 6, 1),
                           NUMBERS(5, 5, 1, 7, 2, 3, 5, 5, 7, 7, 3, 3));
  const int y =
      BED_ADD(&b, "max_pool", BED_IN(x), BED_ATTRS({"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}));
  const int zeros = bed_values(&b, CT_ROLE_LABEL, SHAPE(1, 1, 3, 1), NUMBERS(0, 0, 0));
  assert_int_equal(ct_graph_gradients(b.g, BED_ADD(&b, "mse", BED_IN(y, zeros)), NULL, 0), CT_OK);
  bed_data(&b, y);
  const double third = 2.0 / 3;
  EXPECT(&b, ct_graph_gradient(b.g, x), 1e-15, 5 * third, 0, 0, 7 * third, 0, 3 * third, 0, 0, 0, 0,
         0, 0);
  assert_memory_equal(bed_data(&b, y), NUMBERS(5, 7, 3), 3 * sizeof(double));
  bed_free(&b);
}

/* -1 is more than what is not there; the mean is over what is there, or over the window. */
static void test_pooling(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(1, 2, 2, 1), NUMBERS(-1, -2, -3, -6));
  const struct ct_attr kernel = {"kernel", 2, {2, 2}}, pad = {"pad", 4, {1, 1, 0, 0}};
  const int most = BED_ADD(&b, "max_pool", BED_IN(x), BED_ATTRS(kernel, pad));
  const int mean = BED_ADD(&b, "average_pool", BED_IN(x), BED_ATTRS(kernel, pad));
  const int all =
      BED_ADD(&b, "average_pool", BED_IN(x), BED_ATTRS(kernel, pad, {"count_pad", 1, {1}}));
  const int global = BED_ADD(&b, "global_average_pool", BED_IN(x));
  bed_data(&b, mean);
  bed_data(&b, all);
  bed_data(&b, global);
  EXPECT(&b, most, 0, -1, -1, -1, -1);
  assert_memory_equal(bed_data(&b, mean), NUMBERS(-1, -1.5, -2, -3), 4 * sizeof(double));
  assert_memory_equal(bed_data(&b, all), NUMBERS(-0.25, -0.75, -1, -3), 4 * sizeof(double));
  assert_memory_equal(bed_data(&b, global), NUMBERS(-3), sizeof(double));
  bed_free(&b);
}

/* ---- Products, shapes ---------------------------------------------------------------------- */

static void test_products(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(2, 2), NUMBERS(1, 2, 3, 4));
  const int w = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(3, 2), NUMBERS(1, 0, 0, 1, 10, 100));
  const int c = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(3), NUMBERS(0, 0, 5));
  const int pair = bed_values(&b, CT_ROLE_INPUT, SHAPE(2, 2, 1), NUMBERS(1, 1, 1, -1));
  const int product = BED_ADD(&b, "matmul", BED_IN(x, pair));
  const int transposed = BED_ADD(&b, "matmul", BED_IN(x, pair), BED_ATTRS({"transpose_a", 1, {1}}));
  bed_data(&b, product);
  bed_data(&b, transposed);
  EXPECT(&b, BED_ADD(&b, "linear", BED_IN(x, w, c)), 0, 1, 2, 215, 3, 4, 435);
  assert_memory_equal(bed_data(&b, product), NUMBERS(3, 7, -1, -1), 4 * sizeof(double));
  assert_memory_equal(bed_data(&b, transposed), NUMBERS(4, 6, -2, -2), 4 * sizeof(double));
  bed_free(&b);
}

static void test_broadcasting(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(2, 1, 2), NUMBERS(1, 2, 3, 4));
  const int y = bed_values(&b, CT_ROLE_INPUT, SHAPE(3, 1), NUMBERS(10, 20, 40));
  const int quotient = BED_ADD(&b, "div", BED_IN(y, x)),
            sum = BED_ADD(&b, "sum_to", BED_IN(quotient), BED_ATTRS({"shape", 2, {1, 2}}));
  bed_data(&b, quotient);
  bed_data(&b, sum);
  EXPECT(&b, BED_ADD(&b, "sub", BED_IN(x, y)), 0, -9, -8, -19, -18, -39, -38, -7, -6, -17, -16, -37,
         -36);
  assert_memory_equal(bed_data(&b, quotient),
                      NUMBERS(10, 5, 20, 10, 40, 20, 10.0 / 3, 2.5, 20.0 / 3, 5, 40.0 / 3, 10),
                      12 * sizeof(double));
  assert_float_equal(bed_data(&b, sum)[0], 70 + 70.0 / 3, 1e-12);
  assert_float_equal(bed_data(&b, sum)[1], 52.5, 1e-12);
  bed_free(&b);
}

static void test_moved(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
  const int turned = BED_ADD(&b, "transpose", BED_IN(x), BED_ATTRS({"perm", 2, {1, 0}}));
  const int wide = BED_ADD(&b, "concat", BED_IN(x, x), BED_ATTRS({"axis", 1, {1}}));
  const int part = BED_ADD(&b, "slice", BED_IN(wide),
                           BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {2}}, {"size", 1, {2}}));
  bed_data(&b, turned);
  bed_data(&b, part);
  EXPECT(&b, wide, 0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
  assert_memory_equal(bed_data(&b, turned), NUMBERS(1, 4, 2, 5, 3, 6), 6 * sizeof(double));
  assert_memory_equal(bed_data(&b, part), NUMBERS(3, 1, 6, 4), 4 * sizeof(double));
  bed_free(&b);
}

/* ---- Functions ----------------------------------------------------------------------------- */

/* So many units in the last place of what is expected. */
static void close_to(const char *what, double x, double got, double want, double ulps) {
  const double unit = fabs(want) * 0x1p-52 + 0x1p-1060;
  if (!(got == want || fabs(got - want) <= ulps * unit))
    fail_msg("%s(%.17g) is %.17g, not %.17g", what, x, got, want);
}

static void test_functions(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int i = 0; i < 20000; ++i) {
    const double u = (double)(ct_rng_u64(&rng) >> 11) * 0x1p-53,
                 scale = ldexp(1, (int)ct_rng_below(&rng, 30) - 22);
    const double x = (2 * u - 1) * scale;
    close_to("exp", x, ct_real_exp(x), exp(x), 4);
    close_to("log", fabs(x), ct_real_log(fabs(x)), log(fabs(x)), 4);
    close_to("sqrt", fabs(x), ct_real_sqrt(fabs(x)), sqrt(fabs(x)), 1);
    close_to("tanh", x, ct_real_tanh(x), tanh(x), 8);
    close_to("erf", x, ct_real_erf(x), erf(x), 16);
    close_to("sigmoid", x, ct_real_sigmoid(x), x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)),
             8);
    assert_float_equal(ct_real_cos_pi(u), cos(3.14159265358979323846 * u), 1e-15);
    close_to("power", u, ct_real_power(u, ct_rng_below(&rng, 1)), 1, 0);
    close_to("power", u + 0.5, ct_real_power(u + 0.5, 37), pow(u + 0.5, 37), 40);
  }
  assert_true(ct_real_exp(-INFINITY) == 0 && isinf(ct_real_exp(800)) && isnan(ct_real_exp(NAN)) &&
              isinf(ct_real_log(0)));
  assert_true(ct_real_erf(40) == 1 && ct_real_tanh(-700) == -1 && isnan(ct_real_sqrt(-1)) &&
              ct_real_sqrt(0) == 0);
  close_to("sqrt", 5e-324, ct_real_sqrt(5e-324), sqrt(5e-324), 1);
  close_to("log", 5e-324, ct_real_log(5e-324), log(5e-324), 2);
}

static void test_element_wise(void **state) {
  (void)state;
  static const double x[] = {-3, -0.5, 0, 0.5, 7};
  static const struct {
    const char *op;
    double want[5];
  } cases[] = {
      {"relu", {0, 0, 0, 0.5, 7}},
      {"leaky_relu", {-0.03, -0.005, 0, 0.5, 7}},
      {"clip", {0, 0, 0, 0.5, 6}},
      {"sigmoid",
       {0.04742587317756678, 0.37754066879814544, 0.5, 0.62245933120185456, 0.99908894880559936}},
      {"tanh",
       {-0.99505475368673046, -0.46211715726000976, 0, 0.46211715726000976, 0.99999833694394468}},
      {"erf", {-0.99997790950300136, -0.52049987781304652, 0, 0.52049987781304652, 1}},
      {"gelu",
       {-0.0040496940948902, -0.15426876936299344, 0, 0.34573123063700656, 6.9999999999910418}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct bed b;
    bed_make(&b);
    const int t = bed_values(&b, CT_ROLE_INPUT, SHAPE(5), x);
    const struct ct_attr six[] = {{"min", 1, {0}}, {"max", 1, {6}}};
    bed_expect(&b,
               BED_ADD(&b, cases[i].op, BED_IN(t), .attrs = six,
                       .attr_count = strcmp(cases[i].op, "clip") ? 0 : 2),
               cases[i].want, 5, 2e-15);
    bed_free(&b);
  }
}

static void test_softmax_and_losses(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int z =
      bed_values(&b, CT_ROLE_WEIGHT, SHAPE(2, 3), NUMBERS(0, log(2), log(5), 1000, 1000, -1000));
  const int t = bed_values(&b, CT_ROLE_LABEL, SHAPE(2, 3), NUMBERS(0, 0, 1, 0.5, 0.5, 0));
  const int down = BED_ADD(&b, "softmax", BED_IN(z), BED_ATTRS({"axis", 1, {0}}));
  const int loss = BED_ADD(&b, "cross_entropy", BED_IN(z, t)),
            square = BED_ADD(&b, "mse", BED_IN(t, t));
  bed_data(&b, down);
  bed_data(&b, loss);
  bed_data(&b, square);
  EXPECT(&b, BED_ADD(&b, "softmax", BED_IN(z)), 1e-15, 0.125, 0.25, 0.625, 0.5, 0.5, 0);
  assert_float_equal(bed_data(&b, down)[0], 0, 0);
  assert_float_equal(bed_data(&b, down)[5], 0, 0);
  assert_float_equal(bed_data(&b, loss)[0], (log(8.0 / 5) + log(2)) / 2, 1e-13);
  assert_float_equal(bed_data(&b, square)[0], 0, 0);
  bed_free(&b);
}

/* ---- Normalisation ------------------------------------------------------------------------- */

/* Two channels of 1 2 3 4 and 10 10 10 30: means 2.5 and 15, variances 1.25 and 75. */
static void test_batch_norm(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int x = bed_values(&b, CT_ROLE_INPUT, SHAPE(2, 2, 2), NUMBERS(1, 10, 2, 10, 3, 10, 4, 30));
  const int scale = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(2), NUMBERS(1, 2)),
            bias = bed_values(&b, CT_ROLE_WEIGHT, SHAPE(2), NUMBERS(0, 100));
  const int mean = bed_values(&b, CT_ROLE_STATE, SHAPE(2), NUMBERS(0, 5)),
            variance = bed_values(&b, CT_ROLE_STATE, SHAPE(2), NUMBERS(1, 4));
  const struct ct_attr none = {"epsilon", 1, {0}};
  const int y = BED_ADD(&b, "batch_norm_train", BED_IN(x, scale, bias, mean, variance),
                        BED_ATTRS(none, {"momentum", 1, {0.75}}));
  assert_int_equal(ct_graph_becomes(b.g, mean, y + 1), mean);
  assert_int_equal(ct_graph_becomes(b.g, variance, y + 2), variance);
  const int running =
      BED_ADD(&b, "batch_norm", BED_IN(x, scale, bias, mean, variance), BED_ATTRS(none));
  bed_data(&b, running);
  b.update = true;
  const double r = 1 / sqrt(1.25), s = 2 / sqrt(75);
  EXPECT(&b, y, 1e-12, -1.5 * r, 100 - 5 * s, -0.5 * r, 100 - 5 * s, 0.5 * r, 100 - 5 * s, 1.5 * r,
         100 + 15 * s);
  assert_memory_equal(bed_data(&b, running), NUMBERS(1, 105, 2, 105, 3, 105, 4, 125),
                      8 * sizeof(double));
  assert_memory_equal(bed_data(&b, mean), NUMBERS(0.625, 7.5), 2 * sizeof(double));
  assert_memory_equal(bed_data(&b, variance), NUMBERS(0.75 + 0.25 * 1.25, 3 + 0.25 * 75),
                      2 * sizeof(double));
  bed_free(&b);
}

/* A network by name, all of its weights drawn, its answers. */
static double *answers(const char *name, bool fold, int *folded, size_t *count) {
  ct_rng rng = ct_rng_make(9);
  struct ct_graph_info info;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_builtin(b.g, name, 1, false), CT_OK);
  assert_int_equal(ct_graph_info(b.g, &info), CT_OK);
  for (int t = 1; t <= (int)info.tensors; ++t) {
    const struct ct_tensor_info tensor = bed_info(&b, t);
    for (size_t i = 0; tensor.node < 0 && i < tensor.elements; ++i)
      bed_data(&b, t)[i] = tensor.role == CT_ROLE_STATE ? 0.5 + ct_rng_below(&rng, 100) * 0.01
                                                        : (ct_rng_below(&rng, 201) - 100.0) * 1e-3;
  }
  *folded = fold ? ct_graph_fold(b.g) : 0;
  if (*folded < 0) fail_msg("%s", ct_graph_error(b.g));
  bed_check(&b);
  const int y = ct_graph_find(b.g, "logits");
  double *out = malloc(bed_info(&b, y).elements * sizeof *out);
  assert_non_null(out);
  bed_data(&b, y);
  bed_run(&b);
  *count = bed_info(&b, y).elements;
  memcpy(out, bed_data(&b, y), *count * sizeof *out);
  bed_free(&b);
  return out;
}

static void test_folding(void **state) {
  (void)state;
  size_t count;
  int folded;
  double *plain = answers("resnet8", false, &folded, &count);
  double *after = answers("resnet8", true, &folded, &count);
  assert_int_equal(folded, 7);
  assert_true(plain[0] != plain[1]);
  for (size_t i = 0; i < count; ++i)
    close_to("folded", (double)i, after[i], plain[i], 4096);
  free(plain);
  free(after);
}

/* Not where somebody else reads what is normalised. */
static void test_not_folded(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(4);
  struct bed b;
  bed_make(&b);
  const int x = bed_drawn(&b, CT_ROLE_INPUT, SHAPE(2, 3), &rng),
            w = bed_drawn(&b, CT_ROLE_WEIGHT, SHAPE(4, 3), &rng);
  const int s = bed_values(&b, CT_ROLE_STATE, SHAPE(4), NUMBERS(1, 2, 3, 4));
  const int y = BED_ADD(&b, "linear", BED_IN(x, w)),
            n = BED_ADD(&b, "batch_norm", BED_IN(y, s, s, s, s));
  assert_true(BED_ADD(&b, "add", BED_IN(y, n)) > 0);
  assert_int_equal(ct_graph_fold(b.g), 0);
  bed_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_convolution),
      cmocka_unit_test(test_padded_stride),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_ties),
      cmocka_unit_test(test_pooling),
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_broadcasting),
      cmocka_unit_test(test_moved),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_element_wise),
      cmocka_unit_test(test_softmax_and_losses),
      cmocka_unit_test(test_batch_norm),
      cmocka_unit_test(test_folding),
      cmocka_unit_test(test_not_folded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
