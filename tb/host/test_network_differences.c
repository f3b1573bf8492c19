/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients that the device computes, beside central differences of the device's own loss, for
 * drawn networks.
 *
 * Where HBFP permits it there is no bound: in networks of small whole numbers, whose loss is a
 * parabola in a single weight and all of whose tensors HBFP8 holds, both are exact, and equal.
 *
 * Else, for each weight w, along its gradient: with d = g / |g|,
 *
 *   (L(w + h d) - L(w - h d)) / 2h - c = g . d        c: what the curve adds, in double precision
 *
 * up to rounding. HBFP8 moves an element by half a step, at most 2^-7 of its block's largest
 * number. A loss is off by the sum of that times its slopes, whose spread is
 *
 *   s^2 = sum over the operands a of products of |dL/da|^2 (2^-7 max |a|)^2 / 3
 *
 * so the quotient is, by six spreads of each loss, 6 sqrt(2) s / 2h off. h is chosen so that this
 * is a twentieth of |g|. The gradient itself is off by what rounding each operand of a product,
 * forward and backward, is of its norm: the root of the sum of r_a^2, r_a = 2^-7 max |a| sqrt(n /
 * 3) / |a|. Weights whose gradient bends away within h, or is nothing but rounding, are left out
 * and counted. Of 900 weights the worst is 0.035 off; bounds are 0.07 to 0.11.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network_bed.h"

struct tally {
  size_t compared, left_out;
};

static int tensors(const struct bed *b) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(b->g, &info), CT_OK);
  return (int)info.tensors;
}

static size_t elements(const struct bed *b, int t) {
  return bed_info(b, t).elements;
}

static void ok(const struct net_bed *n, int err) {
  if (err) fail_msg("%s", ct_last_error(n->dev));
}

static void put(struct net_bed *n, int t) {
  const size_t count = elements(n->bed, t);
  float *f = malloc(count * sizeof *f);
  assert_non_null(f);
  for (size_t i = 0; i < count; ++i)
    f[i] = (float)bed_data(n->bed, t)[i];
  ok(n, ct_network_write(n->net, t, f, count));
  free(f);
}

static float *get(struct net_bed *n, int t) {
  float *f = malloc(elements(n->bed, t) * sizeof *f);
  assert_non_null(f);
  ok(n, ct_network_read(n->net, t, f, elements(n->bed, t)));
  return f;
}

/* The loss of the device (with its gradients) and of the reference. */
struct loss {
  double device, exact;
};

static struct loss run(struct net_bed *n, int loss) {
  float got;
  bed_run(n->bed);
  net_run_device(n, 0);
  ok(n, ct_network_read(n->net, loss, &got, 1));
  return (struct loss){(double)got, bed_data(n->bed, loss)[0]};
}

/* ---- Where HBFP permits it ------------------------------------------------------------------ */

/* Whole numbers, most of them small and many 0, times a unit. */
static int small(struct bed *b, enum ct_role role, struct ct_shape shape, ct_rng *rng) {
  const int t = bed_tensor(b, role, shape);
  if (t < 0) fail_msg("%s", ct_graph_error(b->g));
  for (size_t i = 0; i < elements(b, t); ++i)
    bed_data(b, t)[i] = ct_rng_below(rng, 3) ? 0 : (double)ct_rng_below(rng, 3) - 1;
  return t;
}

/* Half numbers: no sum of whole ones with them is 0, where ReLU has its kink. */
static int halves(struct bed *b, uint32_t outputs, ct_rng *rng) {
  const int t = small(b, CT_ROLE_WEIGHT, SHAPE(outputs), rng);
  for (size_t i = 0; i < outputs; ++i)
    bed_data(b, t)[i] += 0.5;
  return t;
}

static int whole_layer(struct bed *b, int x, ct_rng *rng) {
  const struct ct_shape s = bed_info(b, x).shape;
  const uint32_t outputs = 1 + ct_rng_below(rng, 20), k = 1 + 2 * ct_rng_below(rng, 2);
  const double pad = (k - 1) / 2, stride = 1 + ct_rng_below(rng, 2);
  const int w = small(b, CT_ROLE_WEIGHT, SHAPE(outputs, k, k, s.dim[3]), rng);
  int y = BED_ADD(b, "conv", BED_IN(x, w, halves(b, outputs, rng)),
                  BED_ATTRS({"pad", 4, {pad, pad, pad, pad}}, {"stride", 2, {stride, stride}}));
  if (ct_rng_percent(rng, 60)) y = BED_ADD(b, "relu", BED_IN(y));
  if (stride == 1 && ct_rng_percent(rng, 40))
    y = BED_ADD(b, "concat", BED_IN(y, x), BED_ATTRS({"axis", 1, {3}}));
  if (bed_info(b, y).shape.dim[1] % 2 == 0 && ct_rng_percent(rng, 50))
    y = BED_ADD(b, "average_pool", BED_IN(y),
                BED_ATTRS({"kernel", 2, {2, 2}}, {"stride", 2, {2, 2}}));
  return y;
}

/* Returns the loss: mean squares over a power of two of numbers. */
static int whole_network(struct bed *b, ct_rng *rng) {
  const uint32_t images = 1 << ct_rng_below(rng, 3), classes = 1 << ct_rng_below(rng, 4);
  const uint32_t side = 2 + ct_rng_below(rng, 4);
  bed_make(b);
  int x = small(b, CT_ROLE_INPUT, SHAPE(images, side, side, 1 + ct_rng_below(rng, 18)), rng);
  for (uint32_t i = 1 + ct_rng_below(rng, 2); i > 0; --i)
    x = whole_layer(b, x, rng);
  x = BED_ADD(b, "flatten", BED_IN(x));
  const int w = small(b, CT_ROLE_WEIGHT, SHAPE(classes, bed_info(b, x).shape.dim[1]), rng);
  x = BED_ADD(b, "linear", BED_IN(x, w));
  const int t = small(b, CT_ROLE_LABEL, SHAPE(images, classes), rng);
  const int loss = ct_graph_result(b->g, BED_ADD(b, "mse", BED_IN(x, t)));
  const int before = tensors(b);
  if (ct_graph_gradients(b->g, loss, NULL, 0)) fail_msg("%s", ct_graph_error(b->g));
  for (int i = 1; i <= before; ++i)
    if (bed_info(b, i).role == CT_ROLE_WEIGHT) ct_graph_result(b->g, ct_graph_gradient(b->g, i));
  bed_check(b);
  for (int i = 1; i <= tensors(b); ++i)
    (void)bed_data(b, i);
  return loss;
}

/* HBFP8 holds a tensor whatever its blocks are: all are multiples, up to 127, of one unit. */
static bool holds(const double *x, size_t count) {
  double most = 0;
  int unit = 1000;
  for (size_t i = 0; i < count; ++i) {
    int e;
    double m = frexp(fabs(x[i]), &e);
    if (x[i] == 0) continue;
    while (m != floor(m)) {
      m *= 2;
      --e;
    }
    unit = e < unit ? e : unit;
    most = fabs(x[i]) > most ? fabs(x[i]) : most;
  }
  return most <= ldexp(127, unit);
}

/* After a run of the reference: all but the loss and what it is made of. */
static bool permits(struct bed *b, int loss) {
  for (int t = 1; t <= tensors(b); ++t)
    if (t != loss && !holds(bed_data(b, t), elements(b, t))) return false;
  return true;
}

/* One element of a weight, moved by h to both sides. */
static void exact_element(struct net_bed *n, int loss, int w, size_t i, struct tally *tally) {
  struct bed *b = n->bed;
  const int g = ct_graph_gradient(b->g, w);
  double *x = &bed_data(b, w)[i];
  const double was = *x, want = bed_data(b, g)[i], h = 0.25;
  float *all = get(n, g);
  const double got = (double)all[i];
  free(all);
  *x = was + h;
  put(n, w);
  const struct loss up = run(n, loss);
  bool fits = permits(b, loss);
  *x = was - h;
  put(n, w);
  const struct loss down = run(n, loss);
  fits = fits && permits(b, loss);
  *x = was;
  put(n, w);
  run(n, loss);
  if (!fits || (up.exact - down.exact) / (2 * h) != want) { /* rounded, or over a kink */
    ++tally->left_out;
    return;
  }
  ++tally->compared;
  if ((up.device - down.device) / (2 * h) != got)
    fail_msg("element %zu of %s: the device's gradient is %.9g, its difference %.9g", i,
             bed_info(b, w).name, got, (up.device - down.device) / (2 * h));
}

static void exact_network(ct_rng *rng, struct tally *tally) {
  struct bed b;
  struct net_bed n;
  const int loss = whole_network(&b, rng);
  net_open(&n, &b, "emu:");
  for (int t = 1; t <= tensors(&b); ++t)
    if (bed_info(&b, t).node < 0) put(&n, t);
  run(&n, loss);
  const bool fits = permits(&b, loss);
  for (int t = 1; t <= tensors(&b) && fits; ++t)
    for (int k = 0; bed_info(&b, t).role == CT_ROLE_WEIGHT && k < 4; ++k)
      exact_element(&n, loss, t, ct_rng_below(rng, (uint32_t)elements(&b, t)), tally);
  net_close(&n);
  bed_free(&b);
}

static void test_exact(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  struct tally t = {0};
  const int draws = ct_tb_draws(60);
  for (int i = 0; i < draws; ++i)
    exact_network(&rng, &t);
  printf("%zu elements compared, %zu left out\n", t.compared, t.left_out);
  assert_true(t.compared >= (size_t)draws);
}

/* ---- Within rounding ------------------------------------------------------------------------ */

static double largest(struct bed *b, int t) {
  double most = 0;
  for (size_t i = 0; i < elements(b, t); ++i)
    most = fmax(most, fabs(bed_data(b, t)[i]));
  return most;
}

static double norm(struct bed *b, int t) {
  double sum = 0;
  for (size_t i = 0; i < elements(b, t); ++i)
    sum += bed_data(b, t)[i] * bed_data(b, t)[i];
  return sqrt(sum);
}

static bool is_product(const char *op) {
  return !strcmp(op, "conv") || !strncmp(op, "conv_", 5) || !strcmp(op, "linear") ||
         !strcmp(op, "matmul");
}

/* Values of all operands of products, and the slopes of the loss there, are asked for. */
static void ask(struct bed *b) {
  struct ct_node_info n;
  for (size_t i = 0; !ct_graph_node_info(b->g, i, &n); ++i)
    for (int k = 0; is_product(n.op) && k < 2; ++k) {
      (void)bed_data(b, n.inputs[k]);
      const int g = ct_graph_gradient(b->g, n.inputs[k]);
      if (g > 0) (void)bed_data(b, g);
    }
  for (int t = 1; t <= tensors(b); ++t)
    if (bed_info(b, t).role == CT_ROLE_WEIGHT && ct_graph_gradient(b->g, t) > 0)
      (void)bed_data(b, ct_graph_gradient(b->g, t));
}

/* After a run: s, and the share of a gradient that rounding may be. Inputs are exact. */
struct rounding {
  double spread, share;
};

static struct rounding rounding_of(struct bed *b) {
  struct rounding r = {0, 0};
  struct ct_node_info n;
  for (size_t i = 0; !ct_graph_node_info(b->g, i, &n); ++i)
    for (int k = 0; is_product(n.op) && k < 2; ++k) {
      const int a = n.inputs[k], g = ct_graph_gradient(b->g, a);
      if (bed_info(b, a).role == CT_ROLE_INPUT || norm(b, a) == 0) continue;
      const double half = largest(b, a) / 128;
      r.share += half * half * (double)elements(b, a) / 3 / pow(norm(b, a), 2);
      if (!n.backward && g > 0) r.spread += pow(norm(b, g) * half, 2) / 3;
    }
  return (struct rounding){sqrt(r.spread), sqrt(r.share)};
}

/* The loss with a weight moved along d. */
static struct loss moved(struct net_bed *n, int loss, int w, const double *d, double by) {
  const size_t count = elements(n->bed, w);
  double *x = bed_data(n->bed, w), *was = malloc(count * sizeof *was);
  assert_non_null(was);
  memcpy(was, x, count * sizeof *was);
  for (size_t i = 0; i < count; ++i)
    x[i] = (double)(float)(was[i] + by * d[i]);
  put(n, w);
  const struct loss l = run(n, loss);
  memcpy(x, was, count * sizeof *was);
  free(was);
  return l;
}

/* The gradient that the device has added to nothing, halved: see near_network(). */
static double along(struct net_bed *n, int w, const double *d) {
  char name[64];
  snprintf(name, sizeof name, "%s.gradient", bed_info(n->bed, w).name);
  float *g = get(n, ct_graph_find(n->bed->g, name));
  double sum = 0;
  for (size_t i = 0; i < elements(n->bed, w); ++i)
    sum += 2 * (double)g[i] * d[i];
  free(g);
  return sum;
}

static void near_weight(struct net_bed *n, int loss, int w, struct tally *tally) {
  struct bed *b = n->bed;
  const int g = ct_graph_gradient(b->g, w);
  put(n, w);
  run(n, loss);
  const struct rounding r = rounding_of(b);
  const double size = norm(b, g), h = 6 * sqrt(2) * r.spread / (2 * 0.05 * size);
  ++tally->left_out;
  if (!(size > 1e-6) || !(r.share < 0.1) || !isfinite(h)) return;
  double *d = malloc(elements(b, w) * sizeof *d);
  assert_non_null(d);
  for (size_t i = 0; i < elements(b, w); ++i)
    d[i] = bed_data(b, g)[i] / size;
  const double got = along(n, w, d);
  const struct loss up = moved(n, loss, w, d, h), down = moved(n, loss, w, d, -h);
  free(d);
  put(n, w);
  const double bend = (up.exact - down.exact) / (2 * h) - size;
  if (fabs(bend) > 0.2 * size) return;
  --tally->left_out;
  ++tally->compared;
  const double have = (up.device - down.device) / (2 * h) - bend;
  if (getenv("SHOW"))
    printf("%-6s %.4f of %.4f\n", bed_info(b, w).name, fabs(have - got) / size, 0.05 + r.share);
  if (!(fabs(have - got) <= (0.05 + r.share) * size))
    fail_msg("%s: the device's gradient is %g along it, its difference %g, %g of %g off",
             bed_info(b, w).name, got, have, fabs(have - got) / size, 0.05 + r.share);
}

/* Steps of two runs: the first leaves half of each gradient in a state and changes no weight. */
static void near_network(ct_rng *rng, struct tally *tally) {
  const struct net_shape shape = {.smooth = true,
                                  .training = true,
                                  .accumulate = 2,
                                  .most_layers = 3,
                                  .most_channels = 24,
                                  .most_size = 8,
                                  .most_images = 4};
  struct bed b;
  struct net_bed n;
  int loss = 0;
  net_random(&b, &shape, rng);
  b.update = false;
  net_open(&n, &b, "emu:");
  net_draw(&n, ct_rng_u64(rng), rng);
  for (int t = 1; t <= tensors(&b); ++t)
    if (bed_info(&b, t).role == CT_ROLE_OUTPUT && elements(&b, t) == 1) loss = t;
  (void)bed_data(&b, loss);
  ask(&b);
  for (int t = 1; t <= tensors(&b); ++t)
    if (bed_info(&b, t).role == CT_ROLE_WEIGHT && ct_graph_gradient(b.g, t) > 0)
      near_weight(&n, loss, t, tally);
  net_close(&n);
  bed_free(&b);
}

static void test_near(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  struct tally t = {0};
  const int draws = ct_tb_draws(40);
  for (int i = 0; i < draws; ++i)
    near_network(&rng, &t);
  printf("%zu weights compared, %zu left out\n", t.compared, t.left_out);
  assert_true(t.compared >= (size_t)draws);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exact), cmocka_unit_test(test_near)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
