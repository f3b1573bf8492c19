/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators one by one on the device, of random shapes, and their gradients: beside the reference,
 * and byte for byte on emulated and simulated cores.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_device.h"
#include "network_bed.h"

enum { MOST_INPUTS = 4 };

/* A graph of one operator. */
struct maker {
  struct bed *b;
  ct_rng *rng;
  int x[MOST_INPUTS];
  unsigned count;
};

static uint32_t draw(struct maker *m, uint32_t most) {
  return 1 + ct_rng_below(m->rng, most);
}

/* All from outside: gradients of it are compared. */
static int input(struct maker *m, struct ct_shape shape) {
  return m->x[m->count++] = bed_tensor(m->b, CT_ROLE_INPUT, shape);
}

static struct ct_shape some_shape(struct maker *m, uint32_t least_dims) {
  static const uint32_t most[] = {5, 6, 7, 40};
  struct ct_shape s = {least_dims + ct_rng_below(m->rng, 5 - least_dims), {0}};
  for (uint32_t i = 0; i < s.dims; ++i)
    s.dim[i] = draw(m, most[i + 4 - s.dims]);
  return s;
}

static int transpose(struct maker *m) {
  const struct ct_shape s = some_shape(m, 1);
  struct ct_attr perm = {"perm", s.dims, {0, 1, 2, 3}};
  for (uint32_t i = 0; i < s.dims; ++i) {
    const uint32_t j = ct_rng_below(m->rng, s.dims);
    const double t = perm.value[i];
    perm.value[i] = perm.value[j];
    perm.value[j] = t;
  }
  return BED_ADD(m->b, "transpose", BED_IN(input(m, s)), .attrs = &perm, .attr_count = 1);
}

/* Into other shapes, with something in between that looks at rows. */
static int reshape(struct maker *m) {
  static const double shapes[][4] = {{24, 35}, {8, 3, 5, 7}, {35, 24}, {4, 6, 35}, {840},
                                     {7, 120}, {1, 840},     {840, 1}, {15, 56},   {2, 2, 3, 70}};
  int y = input(m, SHAPE(2, 3, 4, 35));
  for (uint32_t i = draw(m, 3); i > 0; --i) {
    struct ct_attr shape = {"shape", 0, {0}};
    memcpy(shape.value, shapes[ct_rng_below(m->rng, 10)], sizeof shape.value);
    while (shape.count < 4 && shape.value[shape.count] > 0)
      ++shape.count;
    y = BED_ADD(m->b, "reshape", BED_IN(y), .attrs = &shape, .attr_count = 1);
    if (ct_rng_percent(m->rng, 60)) y = BED_ADD(m->b, "softmax", BED_IN(y));
  }
  return y;
}

static int slice(struct maker *m) {
  const struct ct_shape s = some_shape(m, 1);
  const uint32_t axis = ct_rng_below(m->rng, s.dims);
  const uint32_t begin = ct_rng_below(m->rng, s.dim[axis]);
  return BED_ADD(m->b, "slice", BED_IN(input(m, s)),
                 BED_ATTRS({"axis", 1, {axis}}, {"begin", 1, {begin}},
                           {"size", 1, {draw(m, s.dim[axis] - begin)}}));
}

static int concat(struct maker *m) {
  struct ct_shape s = some_shape(m, 1);
  const uint32_t axis = ct_rng_below(m->rng, s.dims);
  for (uint32_t i = draw(m, 3); i > 0; --i) {
    s.dim[axis] = draw(m, 20);
    (void)input(m, s);
  }
  return BED_ADD(m->b, "concat", .inputs = m->x, .input_count = m->count,
                 BED_ATTRS({"axis", 1, {axis}}));
}

/* Dimensions of 1, or missing in front, of either. */
static struct ct_shape narrowed(struct maker *m, struct ct_shape s) {
  for (uint32_t i = 0; i < s.dims; ++i)
    if (ct_rng_percent(m->rng, 35)) s.dim[i] = 1;
  while (s.dims > 1 && ct_rng_percent(m->rng, 30)) {
    memmove(s.dim, s.dim + 1, (s.dims - 1) * sizeof *s.dim);
    --s.dims;
  }
  return s;
}

static int broadcast(struct maker *m) {
  static const char *const ops[] = {"add", "sub", "mul"};
  const struct ct_shape s = some_shape(m, 1);
  const int a = input(m, narrowed(m, s)),
            b = input(m, ct_rng_percent(m->rng, 50) ? s : narrowed(m, s));
  return BED_ADD(m->b, ops[ct_rng_below(m->rng, 3)], BED_IN(a, b));
}

static int layer_norm(struct maker *m) {
  struct ct_shape s = some_shape(m, 1);
  const uint32_t axis = ct_rng_below(m->rng, s.dims);
  s.dim[s.dims - 1] += 7; /* of two or three numbers the deviation may be next to nothing */
  struct ct_shape row = {s.dims - axis, {0}};
  memcpy(row.dim, s.dim + axis, row.dims * sizeof *row.dim);
  const int x = input(m, s), scale = input(m, row),
            bias = ct_rng_percent(m->rng, 50) ? input(m, row) : 0;
  return BED_ADD(m->b, "layer_norm", BED_IN(x, scale, bias), BED_ATTRS({"axis", 1, {axis}}));
}

static int softmax(struct maker *m) {
  const struct ct_shape s = some_shape(m, 1);
  return BED_ADD(m->b, "softmax", BED_IN(input(m, s)),
                 BED_ATTRS({"axis", 1, {ct_rng_below(m->rng, s.dims)}}));
}

static int dropout(struct maker *m) {
  return BED_ADD(m->b, "dropout", BED_IN(input(m, some_shape(m, 1))),
                 BED_ATTRS({"rate", 1, {0.3}}, {"stream", 1, {ct_rng_below(m->rng, 9)}}));
}

static int matmul(struct maker *m) {
  const uint32_t dims = 2 + ct_rng_below(m->rng, 3), r = draw(m, 20), k = draw(m, 20),
                 c = draw(m, 20);
  const bool ta = ct_rng_percent(m->rng, 50), tb = ct_rng_percent(m->rng, 50);
  struct ct_shape a = {dims, {draw(m, 2), draw(m, 3)}}, b = a;
  for (uint32_t i = 0; i + 2 < dims; ++i)
    if (ct_rng_percent(m->rng, 30)) (ct_rng_percent(m->rng, 50) ? &a : &b)->dim[i] = 1;
  a.dim[dims - 2] = ta ? k : r;
  a.dim[dims - 1] = ta ? r : k;
  b.dim[dims - 2] = tb ? c : k;
  b.dim[dims - 1] = tb ? k : c;
  const int x = input(m, a), y = input(m, b);
  return BED_ADD(m->b, "matmul", BED_IN(x, y),
                 BED_ATTRS({"transpose_a", 1, {ta}}, {"transpose_b", 1, {tb}}));
}

static int weight(struct maker *m, struct ct_shape s) {
  return ct_graph_tensor(
      m->b->g, &(struct ct_new_tensor){
                   .shape = s, .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE, .name = "w"});
}

/* A matrix of either side is trained: outputs x inputs, as a layer's, or inputs x outputs. */
static int trained(struct maker *m) {
  const uint32_t r = draw(m, 20), k = draw(m, 20), c = draw(m, 20);
  const bool left = ct_rng_percent(m->rng, 30), turned = ct_rng_percent(m->rng, 50);
  const struct ct_shape b = turned ? SHAPE(c, k) : SHAPE(k, c);
  const int x = left ? weight(m, SHAPE(r, k)) : input(m, SHAPE(r, k)),
            y = left ? input(m, b) : weight(m, b);
  m->x[m->count++] = left ? x : y;
  return BED_ADD(m->b, "matmul", BED_IN(x, y), BED_ATTRS({"transpose_b", 1, {turned}}));
}

static int linear(struct maker *m) {
  const uint32_t inputs = draw(m, 30), outputs = draw(m, 30);
  const int x = input(m, SHAPE(draw(m, 20), inputs)), w = input(m, SHAPE(outputs, inputs));
  return BED_ADD(m->b, "linear", BED_IN(x, w, input(m, SHAPE(outputs))));
}

/* Groups of few channels, depthwise among them. */
static int groups(struct maker *m) {
  const uint32_t g = draw(m, 20), in = draw(m, 9), out = draw(m, 4), size = 2 + draw(m, 5);
  const int x = input(m, SHAPE(draw(m, 3), size, size, g * in));
  const int w = weight(m, SHAPE(g * out, draw(m, 2), draw(m, 3), in));
  m->x[m->count++] = w;
  return BED_ADD(m->b, "conv", BED_IN(x, w),
                 BED_ATTRS({"groups", 1, {g}}, {"pad", 4, {1, 1, 0, 1}}));
}

static const struct {
  const char *name;
  int (*make)(struct maker *m);
  double most; /* off the reference; where there are products, HBFP8 has a say */
} ops[] = {
    {"transpose", transpose, 0}, {"reshape", reshape, 1e-5},     {"slice", slice, 0},
    {"concat", concat, 0},       {"broadcast", broadcast, 1e-5}, {"layer_norm", layer_norm, 1e-3},
    {"softmax", softmax, 1e-5},  {"dropout", dropout, 1e-6},     {"matmul", matmul, 0.03},
    {"trained", trained, 0.03},  {"linear", linear, 0.03},       {"groups", groups, 0.03}};
enum { OPS = sizeof ops / sizeof *ops };

/* Its output, and behind a loss the gradients of all that comes from outside. */
static void make(struct bed *b, unsigned op, ct_rng *rng) {
  struct maker m = {.b = b, .rng = rng};
  bed_make(b);
  const int y = ops[op].make(&m);
  if (y < 0) fail_msg("%s: %s", ops[op].name, ct_graph_error(b->g));
  const int t = bed_tensor(b, CT_ROLE_LABEL, bed_info(b, y).shape);
  const int loss = ct_graph_result(b->g, BED_ADD(b, "mse", BED_IN(y, t)));
  if (ct_graph_gradients(b->g, loss, m.x, m.count)) fail_msg("%s", ct_graph_error(b->g));
  ct_graph_result(b->g, y);
  for (unsigned i = 0; i < m.count; ++i) {
    const int g = ct_graph_gradient(b->g, m.x[i]);
    if (g > 0 && bed_info(b, g).role != CT_ROLE_OUTPUT) ct_graph_result(b->g, g);
  }
  bed_check(b);
}

static void test_beside_the_reference(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  char text[1024];
  for (int i = 0, draws = ct_tb_draws(12 * OPS); i < draws; ++i) {
    const unsigned op = (unsigned)i % OPS;
    struct net_bed n;
    struct bed b;
    make(&b, op, &rng);
    net_open(&n, &b, "emu:");
    net_draw(&n, ct_rng_u64(&rng), &rng);
    net_run(&n);
    net_expect(&n, ops[op].most > 1e-5 ? ops[op].most : 1e-5, net_text(&b, text, sizeof text));
    net_close(&n);
    bed_free(&b);
  }
}

/* ---- Moves change no number ---------------------------------------------------------------- */

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Any number that FP32 holds, all 24 bits of it; -0 and subnormals are not rare. */
static float some_number(ct_rng *rng) {
  uint32_t bits = (uint32_t)ct_rng_u64(rng);
  float x;
  if ((bits >> 23 & 255) == 255) bits ^= 1u << 30;
  if (ct_rng_percent(rng, 10)) bits &= 1u << 31;
  if (ct_rng_percent(rng, 5)) bits &= ~(255u << 23);
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void draw_numbers(struct net_bed *n, int tensor, ct_rng *rng) {
  const size_t count = bed_info(n->bed, tensor).elements;
  float *x = malloc(count * sizeof *x);
  assert_non_null(x);
  for (size_t i = 0; i < count; ++i) {
    x[i] = some_number(rng);
    /* A subnormal is the zero of its sign. */
    bed_data(n->bed, tensor)[i] = bits_of(x[i]) >> 23 & 255 ? (double)x[i] : copysign(0, x[i]);
  }
  assert_int_equal(ct_network_write(n->net, tensor, x, count), CT_OK);
  free(x);
}

static void expect_bits(struct net_bed *n, int tensor, const char *what) {
  const size_t count = bed_info(n->bed, tensor).elements;
  const double *want = bed_data(n->bed, tensor);
  float *x = malloc(count * sizeof *x);
  assert_non_null(x);
  assert_int_equal(ct_network_read(n->net, tensor, x, count), CT_OK);
  for (size_t i = 0; i < count; ++i)
    if (bits_of(x[i]) != bits_of((float)want[i]))
      fail_msg("%s: element %zu is %08x, not %08x", what, i, bits_of(x[i]),
               bits_of((float)want[i]));
  free(x);
}

/* The output has the bits of what was given. */
static void test_moves_are_exact(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  char text[1024];
  unsigned moves = 0;
  for (int i = 0, draws = ct_tb_draws(10 * OPS); i < draws; ++i) {
    const unsigned op = (unsigned)i % OPS;
    struct net_bed n;
    struct bed b;
    struct maker m = {.b = &b, .rng = &rng};
    if (ops[op].most != 0) continue;
    bed_make(&b);
    const int y = ct_graph_result(b.g, ops[op].make(&m));
    bed_check(&b);
    net_open(&n, &b, "emu:");
    for (unsigned k = 0; k < m.count; ++k)
      draw_numbers(&n, m.x[k], &rng);
    net_run(&n);
    expect_bits(&n, y, net_text(&b, text, sizeof text));
    net_close(&n);
    bed_free(&b);
    ++moves;
  }
  assert_true(moves > 0);
}

/* No core is too small for any of them. */
static uint64_t digest_on(struct bed *b, const char *uri, uint64_t seed) {
  struct net_bed n;
  ct_rng rng = ct_rng_make(seed);
  net_open(&n, b, uri);
  net_draw(&n, seed, &rng);
  net_run_device(&n, 0);
  net_run_device(&n, 1);
  const uint64_t digest = net_digest(&n);
  net_close(&n);
  return digest;
}

static void same_on(const char *const *uri, size_t uris, int draws, uint64_t stream) {
  ct_rng rng = ct_rng_make(stream);
  char text[1024];
  for (int i = 0; i < draws; ++i) {
    const uint64_t seed = ct_rng_u64(&rng);
    struct bed b;
    make(&b, (unsigned)i % OPS, &rng);
    const uint64_t want = digest_on(&b, uri[0], seed);
    for (size_t k = 1; k < uris; ++k) {
      const uint64_t got = digest_on(&b, uri[k], seed);
      if (got != want)
        fail_msg("%s and %s differ: %s", uri[0], uri[k], net_text(&b, text, sizeof text));
    }
    bed_free(&b);
  }
}

static void test_same_on_emulated_cores(void **state) {
  (void)state;
  same_on((const char *const[]){"emu:", "emu:core=16x8", "emu:core=16x4"}, 3, ct_tb_draws(5 * OPS),
          3);
}

static void test_same_on_simulated_cores(void **state) {
  (void)state;
  same_on((const char *const[]){"emu:", "sim:stall=25"}, 2, ct_tb_draws(2 * OPS), 4);
}

/* ---- A column that is given the shape of a row is a row ------------------------------------ */

static int row(struct bed *b, uint32_t size) {
  return BED_ADD(b, "reshape", BED_IN(bed_tensor(b, CT_ROLE_INPUT, SHAPE(size, 1))),
                 BED_ATTRS({"shape", 1, {size}}));
}

static void added_row(struct bed *b) {
  ct_graph_result(b->g,
                  BED_ADD(b, "add", BED_IN(bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 4)), row(b, 4))));
}

/* A batch as large as a row is long. */
static void bias_row(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 6)),
            w = bed_tensor(b, CT_ROLE_WEIGHT, SHAPE(4, 6));
  ct_graph_result(b->g, BED_ADD(b, "linear", BED_IN(x, w, row(b, 4))));
}

static void normalised_by_rows(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(1, 2, 4, 8)),
            gy = bed_tensor(b, CT_ROLE_INPUT, SHAPE(1, 2, 4, 8));
  const int y =
      BED_ADD(b, "batch_norm_train", BED_IN(x, row(b, 8), row(b, 8), row(b, 8), row(b, 8)));
  const int gx =
      BED_ADD(b, "batch_norm_grad",
              BED_IN(gy, x, row(b, 8), row(b, 8), BED_ADD(b, "mul", BED_IN(row(b, 8), row(b, 8)))));
  for (int i = 0; i < 3; ++i) {
    ct_graph_result(b->g, y + i);
    ct_graph_result(b->g, gx + i);
  }
}

/* The bias of the layer in front. */
static void folded_rows(struct bed *b) {
  int in[6] = {bed_tensor(b, CT_ROLE_WEIGHT, SHAPE(4, 6))};
  for (int i = 1; i < 6; ++i)
    in[i] = row(b, 4);
  in[4] = BED_ADD(b, "mul", BED_IN(in[4], in[4]));
  const int w = BED_ADD(b, "batch_norm_fold", .inputs = in, .input_count = 6);
  ct_graph_result(
      b->g, BED_ADD(b, "linear", BED_IN(bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 6)), w, w + 1)));
}

/* Graphs beside the reference, each so far off at most. */
struct known {
  const char *name;
  void (*make)(struct bed *b);
  double most;
};

static void beside(const struct known *cases, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    struct bed b;
    struct net_bed n;
    ct_rng rng = ct_rng_make(5);
    bed_make(&b);
    cases[i].make(&b);
    bed_check(&b);
    net_open(&n, &b, "emu:");
    net_draw(&n, 1, &rng);
    net_run(&n);
    net_expect(&n, cases[i].most, cases[i].name);
    net_close(&n);
    bed_free(&b);
  }
}

static void test_shapes_count(void **state) {
  (void)state;
  static const struct known cases[] = {{"added", added_row, 0},
                                       {"a bias", bias_row, 0.03},
                                       {"normalised", normalised_by_rows, 1e-4},
                                       {"folded", folded_rows, 0.03}};
  beside(cases, sizeof cases / sizeof *cases);
}

/* ---- Gradients that stand alone, and more than once ---------------------------------------- */

/* No convolution has these weights: it is this node that says how they lie. Here they would fit as
 * a matrix, too. */
static void alone(struct bed *b) {
  const int gy = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 16)),
            w = ct_graph_tensor(b->g, &(struct ct_new_tensor){.shape = SHAPE(16, 1, 1, 16),
                                                              .role = CT_ROLE_WEIGHT,
                                                              .initial = CT_INITIAL_HE});
  ct_graph_result(b->g,
                  BED_ADD(b, "conv_input_grad", BED_IN(gy, w), BED_ATTRS({"size", 2, {4, 4}})));
}

/* The gradient of weights is the weights of a layer. */
static void taken_as_weights(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 16)),
            gy = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 16));
  const int gw = BED_ADD(b, "conv_weight_grad", BED_IN(gy, x), BED_ATTRS({"size", 2, {1, 1}}));
  ct_graph_result(b->g, BED_ADD(b, "conv", BED_IN(x, gw)));
  ct_graph_result(b->g, gw);
}

/* Losses of the same logits and targets, and their gradients, where that of a loss is 1 and where
 * it is not. */
static void losses(struct bed *b) {
  const int z = bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 10)),
            t = bed_tensor(b, CT_ROLE_LABEL, SHAPE(4, 10));
  const double of_loss[] = {1, 0.5, 1, 0.5, 1};
  for (unsigned i = 0; i < sizeof of_loss / sizeof *of_loss; ++i) {
    const int gy = BED_ADD(b, "fill", BED_ATTRS({"shape", 1, {1}}, {"value", 1, {of_loss[i]}}));
    ct_graph_result(b->g, BED_ADD(b, "cross_entropy_grad", BED_IN(gy, z, t)));
    if (i % 2) ct_graph_result(b->g, BED_ADD(b, "cross_entropy", BED_IN(z, t)));
  }
}

static void test_gradients_alone(void **state) {
  (void)state;
  static const struct known cases[] = {{"a gradient of an image", alone, 0.03},
                                       {"a gradient that is weights", taken_as_weights, 0.03},
                                       {"losses", losses, 1e-4}};
  beside(cases, sizeof cases / sizeof *cases);
}

/* ---- Products of products ------------------------------------------------------------------ */

/* a^T b is the operand of another product, on either side, turned or not; and an output. */
static void products(struct bed *b) {
  const struct ct_shape square = SHAPE(20, 20);
  for (unsigned way = 0; way < 8; ++way) {
    const struct ct_attr how[] = {{"transpose_a", 1, {way & 1}},
                                  {"transpose_b", 1, {way >> 1 & 1}}};
    const int x = bed_tensor(b, CT_ROLE_INPUT, square), y = bed_tensor(b, CT_ROLE_INPUT, square);
    const int t = BED_ADD(b, "matmul", BED_IN(x, y), BED_ATTRS({"transpose_a", 1, {1}}));
    const int in[2] = {way & 4 ? y : t, way & 4 ? t : y};
    ct_graph_result(
        b->g, BED_ADD(b, "matmul", .inputs = in, .input_count = 2, .attrs = how, .attr_count = 2));
    ct_graph_result(b->g, t);
  }
}

static void one_product(struct bed *b) {
  const struct ct_shape square = SHAPE(20, 20);
  const int x = bed_tensor(b, CT_ROLE_INPUT, square), y = bed_tensor(b, CT_ROLE_INPUT, square);
  const int t = BED_ADD(b, "matmul", BED_IN(x, y), BED_ATTRS({"transpose_a", 1, {1}}));
  ct_graph_result(b->g, BED_ADD(b, "matmul", BED_IN(t, y)));
}

static void test_products(void **state) {
  (void)state;
  static const struct known cases[] = {{"one that nobody else reads", one_product, 0.03},
                                       {"of a turned one", products, 0.03}};
  beside(cases, sizeof cases / sizeof *cases);
}

/* ---- Constants that are outputs ------------------------------------------------------------ */

static void test_filled(void **state) {
  (void)state;
  struct bed b;
  struct net_bed n;
  ct_frame *frame;
  uint64_t tag;
  float x[12];
  bed_make(&b);
  const int y = BED_ADD(&b, "relu", BED_IN(bed_tensor(&b, CT_ROLE_INPUT, SHAPE(3, 4)))),
            f = BED_ADD(&b, "fill", BED_ATTRS({"shape", 2, {3, 4}}, {"value", 1, {0.75}}));
  ct_graph_result(b.g, y);
  ct_graph_result(b.g, f);
  bed_check(&b);
  net_open(&n, &b, "emu:");
  assert_int_equal(ct_frame_create(n.net, &frame), CT_OK);
  assert_int_equal(ct_network_submit(n.net, &(struct ct_run){.frame = frame}, &tag), CT_OK);
  assert_int_equal(ct_wait(n.dev, tag, NULL, 10000), CT_OK);
  if (ct_frame_read(frame, f, x, 12)) fail_msg("%s", ct_last_error(n.dev));
  for (int i = 0; i < 12; ++i)
    assert_true(x[i] == 0.75f);
  ct_frame_free(frame);
  net_close(&n);
  bed_free(&b);
}

/* ---- Sums of what was not repeated --------------------------------------------------------- */

/* Of what nothing else reads, and of a state that is another one after the run. */
static void sums_of_one(struct bed *b) {
  const struct ct_attr own = {"shape", 2, {4, 10}}, less = {"shape", 1, {10}};
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 10)),
            y = bed_tensor(b, CT_ROLE_INPUT, SHAPE(1, 1, 10)),
            s = bed_tensor(b, CT_ROLE_STATE, SHAPE(4, 10));
  ct_graph_result(b->g, BED_ADD(b, "sum_to", BED_IN(x), .attrs = &own, .attr_count = 1));
  ct_graph_result(b->g, BED_ADD(b, "sum_to", BED_IN(s), .attrs = &own, .attr_count = 1));
  ct_graph_becomes(b->g, s, BED_ADD(b, "add", BED_IN(s, x)));
  const int z =
      BED_ADD(b, "sum_to", BED_IN(BED_ADD(b, "relu", BED_IN(y))), .attrs = &less, .attr_count = 1);
  ct_graph_result(b->g, BED_ADD(b, "clip", BED_IN(z), .name = "last",
                                BED_ATTRS({"min", 1, {-1}}, {"max", 1, {1}})));
}

static void test_sums_of_one(void **state) {
  (void)state;
  struct ct_network_stage stage;
  struct bed b;
  struct net_bed n;
  ct_rng rng = ct_rng_make(7);
  bed_make(&b);
  sums_of_one(&b);
  bed_check(&b);
  net_open(&n, &b, "emu:");
  net_draw(&n, 1, &rng);
  net_run(&n);
  net_expect(&n, 0, "sums of one");
  for (size_t i = 0; !ct_network_stage(n.net, i, &stage); ++i)
    assert_string_not_equal(stage.op, "sum");
  net_close(&n);
  bed_free(&b);
}

/* A normalisation folded into convolutions, of groups, too, and into a linear layer. */
static void test_folded(void **state) {
  (void)state;
  for (uint32_t groups = 0; groups < 5; ++groups) {
    struct bed b;
    struct net_bed n;
    ct_rng rng = ct_rng_make(6);
    struct maker m = {.b = &b, .rng = &rng};
    bed_make(&b);
    const int x = bed_tensor(&b, CT_ROLE_INPUT, groups ? SHAPE(2, 5, 5, 24) : SHAPE(9, 24));
    const int bias = groups % 2 ? bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(36)) : 0;
    const int w = weight(&m, groups ? SHAPE(36, 3, 3, 24 / groups) : SHAPE(36, 24));
    const int y = groups
                      ? BED_ADD(&b, "conv", BED_IN(x, w, bias), BED_ATTRS({"groups", 1, {groups}}))
                      : BED_ADD(&b, "linear", BED_IN(x, w, bias));
    int in[5] = {y};
    for (int i = 1; i < 5; ++i)
      in[i] = ct_graph_tensor(
          b.g, &(struct ct_new_tensor){
                   .shape = SHAPE(36), .role = CT_ROLE_STATE, .initial = CT_INITIAL_ONES});
    ct_graph_result(b.g, BED_ADD(&b, "batch_norm", .inputs = in, .input_count = 5));
    assert_int_equal(ct_graph_fold(b.g), 1);
    bed_check(&b);
    net_open(&n, &b, "emu:");
    net_draw(&n, 7, &rng);
    net_run(&n);
    net_expect(&n, 0.03, "folded");
    net_close(&n);
    bed_free(&b);
  }
}

/* ---- What is refused ----------------------------------------------------------------------- */

static int named(struct bed *b, const char *name, enum ct_role role, struct ct_shape shape) {
  return ct_graph_tensor(b->g, &(struct ct_new_tensor){.name = name, .role = role, .shape = shape});
}

/* A layer has its weights as layers have them, so nobody can read them as a matrix. */
static int laid(struct bed *b, uint32_t outputs, uint32_t inputs) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(20, inputs));
  const int w = named(b, "w", CT_ROLE_WEIGHT, SHAPE(outputs, inputs));
  ct_graph_result(b->g, BED_ADD(b, "linear", BED_IN(x, w)));
  return w;
}

static void turned_weights(struct bed *b) {
  const int w = laid(b, 16, 16);
  ct_graph_result(
      b->g, BED_ADD(b, "transpose", BED_IN(w), .name = "turn", BED_ATTRS({"perm", 2, {1, 0}})));
}

/* Square, so that both sides are as long as the vector. */
static void a_row_over_weights(struct bed *b) {
  const int w = laid(b, 16, 16), s = named(b, "s", CT_ROLE_STATE, SHAPE(16));
  ct_graph_result(b->g, BED_ADD(b, "mul", BED_IN(w, s), .name = "scaled"));
}
static void a_column_over_weights(struct bed *b) {
  const int w = laid(b, 16, 16), s = named(b, "s", CT_ROLE_STATE, SHAPE(16, 1));
  ct_graph_result(b->g, BED_ADD(b, "div", BED_IN(w, s), .name = "scaled"));
}

/* A normalisation, and one that is folded, by the weights of a layer. */
static int scale_of(struct bed *b, int w) {
  return BED_ADD(b, "reshape", BED_IN(w), BED_ATTRS({"shape", 1, {16}}));
}
static void normalised_by_weights(struct bed *b) {
  int in[5] = {bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 3, 3, 16)), scale_of(b, laid(b, 16, 1))};
  for (int i = 2; i < 5; ++i)
    in[i] = bed_tensor(b, CT_ROLE_STATE, SHAPE(16));
  ct_graph_result(b->g, BED_ADD(b, "batch_norm", .inputs = in, .input_count = 5, .name = "normal"));
}
static void folded_by_weights(struct bed *b) {
  int in[5] = {bed_tensor(b, CT_ROLE_WEIGHT, SHAPE(16, 6)), scale_of(b, laid(b, 16, 1))};
  for (int i = 2; i < 5; ++i)
    in[i] = bed_tensor(b, CT_ROLE_STATE, SHAPE(16));
  const int w = BED_ADD(b, "batch_norm_fold", .inputs = in, .input_count = 5, .name = "fold");
  ct_graph_result(
      b->g, BED_ADD(b, "linear", BED_IN(bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 6)), w, w + 1)));
}

/* Weights that are made by a node, of a convolution and of a gradient that stands alone. */
static void made_weights(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 16)),
            v = named(b, "v", CT_ROLE_WEIGHT, SHAPE(16, 1, 1, 16));
  const int w = BED_ADD(b, "tanh", BED_IN(v));
  ct_graph_result(b->g, BED_ADD(b, "conv", BED_IN(x, w), .name = "edges"));
}
static void made_weights_back(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 16)),
            v = named(b, "v", CT_ROLE_WEIGHT, SHAPE(16, 1, 1, 16));
  const int w = BED_ADD(b, "tanh", BED_IN(v));
  ct_graph_result(b->g, BED_ADD(b, "conv_input_grad", BED_IN(x, w), .name = "back",
                                BED_ATTRS({"size", 2, {4, 4}})));
}

/* What makes something of nothing would put numbers where the weights of a group are zeros. */
static int depthwise(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 8)),
            w = named(b, "w", CT_ROLE_WEIGHT, SHAPE(8, 3, 3, 1));
  ct_graph_result(b->g, BED_ADD(b, "conv", BED_IN(x, w), BED_ATTRS({"groups", 1, {8}})));
  return w;
}
static int half(struct bed *b) {
  return BED_ADD(b, "fill", BED_ATTRS({"shape", 1, {1}}, {"value", 1, {0.5}}));
}
static void number_added(struct bed *b) {
  const int w = depthwise(b);
  ct_graph_becomes(b->g, w, BED_ADD(b, "add", BED_IN(w, half(b)), .name = "more"));
}
static void number_divided(struct bed *b) {
  const int w = depthwise(b);
  ct_graph_becomes(b->g, w, BED_ADD(b, "div", BED_IN(half(b), w), .name = "more"));
}
static void sigmoid_of_weights(struct bed *b) {
  const int w = depthwise(b);
  ct_graph_becomes(b->g, w, BED_ADD(b, "sigmoid", BED_IN(w), .name = "more"));
}
static void clip_of_weights(struct bed *b) {
  const int w = depthwise(b);
  ct_graph_becomes(
      b->g, w,
      BED_ADD(b, "clip", BED_IN(w), .name = "more", BED_ATTRS({"min", 1, {0.1}}, {"max", 1, {1}})));
}

/* An update by what a normalisation of other weights gives, which a node has read in their order.
 */
static void folded_gradient(struct bed *b) {
  const int w = laid(b, 16, 6), v = named(b, "v", CT_ROLE_WEIGHT, SHAPE(16, 6)),
            m = named(b, "m", CT_ROLE_STATE, SHAPE(16, 6));
  int in[5] = {v};
  ct_graph_result(b->g, BED_ADD(b, "softmax", BED_IN(v)));
  for (int i = 1; i < 5; ++i)
    in[i] = bed_tensor(b, CT_ROLE_STATE, SHAPE(16));
  const int f = BED_ADD(b, "batch_norm_fold", .inputs = in, .input_count = 5, .name = "fold");
  const int rate = BED_ADD(b, "rate", BED_ATTRS({"rate", 1, {0.1}}));
  ct_graph_becomes(b->g, w, BED_ADD(b, "sgd", BED_IN(w, f, m, rate), .name = "step"));
}

/* Rows of another length than those of the state. */
static void becomes_others(struct bed *b) {
  const int y = BED_ADD(b, "softmax", BED_IN(bed_tensor(b, CT_ROLE_INPUT, SHAPE(4, 6))));
  ct_graph_becomes(b->g, named(b, "s", CT_ROLE_STATE, SHAPE(24)),
                   BED_ADD(b, "reshape", BED_IN(y), .name = "long", BED_ATTRS({"shape", 1, {24}})));
}

/* What cannot run is named, with the reason. */
static void test_refused(void **state) {
  (void)state;
  static const struct {
    void (*make)(struct bed *b);
    const char *says;
  } cases[] = {
      {turned_weights, "1 node cannot run on the device: turn (transpose): its input (w) lies"},
      {a_row_over_weights, "1 node cannot run on the device: scaled (mul): its input (w) lies"},
      {a_column_over_weights, "1 node cannot run on the device: scaled (div): its input (w) lies"},
      {normalised_by_weights, "1 node cannot run on the device: normal (batch_norm): its input ("},
      {folded_by_weights, "1 node cannot run on the device: fold (batch_norm_fold): its input ("},
      {made_weights, "1 node cannot run on the device: edges (conv): its weights (tanh0) are made"},
      {made_weights_back,
       "1 node cannot run on the device: back (conv_input_grad): its weights (tanh0) are made"},
      {number_added, "1 node cannot run on the device: more (add): its input (w) lies"},
      {number_divided, "1 node cannot run on the device: more (div): its input (w) lies"},
      {sigmoid_of_weights, "1 node cannot run on the device: more (sigmoid): its input (w) lies"},
      {clip_of_weights, "1 node cannot run on the device: more (clip): its input (w) lies"},
      {folded_gradient,
       "2 nodes cannot run on the device: fold (batch_norm_fold): its outputs are not weights and "
       "bias of one layer; step (sgd): its input ("},
      {becomes_others,
       "1 node cannot run on the device: long (reshape): s, which becomes what it "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct bed b;
    ct_device *dev;
    ct_network *net = NULL;
    bed_make(&b);
    cases[i].make(&b);
    bed_check(&b);
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    if (ct_network_create(dev, b.g, NULL, &net) != CT_ERR_UNSUPPORTED)
      fail_msg("this is not refused: %s", cases[i].says);
    if (!strstr(ct_last_error(dev), cases[i].says))
      fail_msg("not %s, but %s", cases[i].says, ct_last_error(dev));
    ct_close(dev);
    bed_free(&b);
  }
}

/* All of them are listed, each once, whatever it is that finds the reason. */
static void test_all_refused_are_listed(void **state) {
  (void)state;
  enum { LAID = 40, FAR = 20 };
  struct bed b;
  ct_device *dev;
  ct_network *net = NULL;
  char name[LAID + FAR][80], says[200];
  bed_make(&b);
  const int w = laid(&b, 16, 16), x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(3, 40, 40, 8)),
            v = named(&b, "v", CT_ROLE_WEIGHT, SHAPE(8, 1, 1, 8));
  for (int i = 0; i < LAID + FAR; ++i) {
    const bool far = i >= LAID;
    snprintf(name[i], sizeof name[i], "a name so long that few of it are enough, number %d", i);
    ct_graph_result(b.g, far ? BED_ADD(&b, "conv", BED_IN(x, v), .name = name[i],
                                       BED_ATTRS({"stride", 2, {33, 1}}))
                             : BED_ADD(&b, "softmax", BED_IN(w), .name = name[i]));
  }
  bed_check(&b);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_network_create(dev, b.g, NULL, &net), CT_ERR_UNSUPPORTED);
  snprintf(says, sizeof says, "%d nodes cannot run on the device: ", LAID + FAR);
  const char *at = strstr(ct_last_error(dev), says);
  for (int i = 0; i < LAID + FAR; ++i) {
    snprintf(says, sizeof says, "%.79s (%s): ", name[i], i < LAID ? "softmax" : "conv");
    at = at ? strstr(at, says) : NULL;
    if (!at || strstr(at + 1, says)) fail_msg("%s is not listed: %s", name[i], ct_last_error(dev));
  }
  assert_int_equal(ct_network_create(dev, NULL, NULL, &net), CT_ERR_ARG);
  assert_string_equal(ct_last_error(dev), "ct_network_create(): graph is NULL");
  ct_close(dev);
  bed_free(&b);
}

/* A node is listed once, however many products it is. */
static void test_refused_once(void **state) {
  (void)state;
  struct bed b;
  ct_device *dev;
  ct_network *net = NULL;
  bed_make(&b);
  const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(5, 4, 4));
  ct_graph_result(b.g, BED_ADD(&b, "matmul", BED_IN(x, x), .name = "squares"));
  bed_check(&b);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  dev->info.features &= ~CT_FEATURE_CONVOLUTION;
  assert_int_equal(ct_network_create(dev, b.g, NULL, &net), CT_ERR_UNSUPPORTED);
  assert_string_equal(
      ct_last_error(dev),
      "1 node cannot run on the device: squares (matmul): this device has no convolution");
  ct_close(dev);
  bed_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_the_reference),
                                     cmocka_unit_test(test_moves_are_exact),
                                     cmocka_unit_test(test_shapes_count),
                                     cmocka_unit_test(test_gradients_alone),
                                     cmocka_unit_test(test_products),
                                     cmocka_unit_test(test_filled),
                                     cmocka_unit_test(test_sums_of_one),
                                     cmocka_unit_test(test_folded),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_all_refused_are_listed),
                                     cmocka_unit_test(test_refused_once),
                                     cmocka_unit_test(test_same_on_emulated_cores),
                                     cmocka_unit_test(test_same_on_simulated_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
