/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks on the device: perceptrons, LeNet-5, ResNets, forward and whole training steps, beside
 * the reference in double precision. HBFP8 has 7 bits behind the sign, so a product of n terms is
 * about 2^-8 off, whatever n is; layers add to that. What is compared is the distance of whole
 * tensors. Gradients behind ReLU are off by more: an activation that is rounded to the other side
 * of zero loses or gets all of its gradient. test_network_random has networks without kinks, and
 * tighter limits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_model.h"
#include "network_bed.h"

static void builtin(struct bed *b, const char *name, uint32_t batch, bool training) {
  bed_make(b);
  if (ct_graph_builtin(b->g, name, batch, training)) fail_msg("%s", ct_graph_error(b->g));
}

static void optimise(struct bed *b, const struct ct_optimise *how) {
  if (ct_graph_optimise(b->g, ct_graph_find(b->g, "loss"), how))
    fail_msg("%s", ct_graph_error(b->g));
  b->update = true;
}

static void compare(struct bed *b, double most, const char *what) {
  struct net_bed n;
  ct_rng rng = ct_rng_make(1);
  bed_check(b);
  net_open(&n, b, "emu:");
  net_draw(&n, 7, &rng);
  net_run(&n);
  net_expect(&n, most, what);
  net_close(&n);
  bed_free(b);
}

static void test_perceptron(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){50, 33, 20, 10}, 3, 21, false), CT_OK);
  compare(&b, 0.03, "perceptron");
}

static void test_perceptron_trains(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){50, 33, 20, 10}, 3, 21, true), CT_OK);
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.3, "perceptron, a step"); /* activations are rounded in squares */
}

static void test_perceptron_trains_by_adam(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  assert_int_equal(ct_graph_mlp(b.g, (const uint32_t[]){50, 33, 20, 10}, 3, 21, true), CT_OK);
  optimise(&b,
           &(struct ct_optimise){
               .optimiser = CT_OPTIMISER_ADAMW, .schedule = {.rate = 0.001}, .weight_decay = 0.01});
  compare(&b, 0.35, "perceptron, a step of AdamW");
}

static void test_lenet5(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "lenet5", 4, false);
  compare(&b, 0.03, "lenet5");
}

static void test_lenet5_trains(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "lenet5", 4, true);
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.25, "lenet5, a step");
}

static void test_resnet8(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "resnet8", 2, false);
  compare(&b, 0.05, "resnet8");
}

static void test_resnet8_trains(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "resnet8", 2, true);
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.4, "resnet8, a step");
}

static void test_resnet20(void **state) {
  (void)state;
  struct bed b;
  builtin(&b, "resnet20", 1, false);
  compare(&b, 0.08, "resnet20");
}

/* ---- A block of a transformer -------------------------------------------------------------- */

enum { IMAGES = 2, STEPS = 5, HEADS = 3, HEAD = 8, WIDTH = HEADS * HEAD };

struct block {
  struct bed *b;
  int count;
};

static int given(struct block *k, struct ct_shape shape, enum ct_initial initial) {
  char name[16];
  snprintf(name, sizeof name, "w%d", k->count++);
  return ct_graph_tensor(
      k->b->g, &(struct ct_new_tensor){
                   .name = name, .role = CT_ROLE_WEIGHT, .shape = shape, .initial = initial});
}

static int layer(struct block *k, int x, uint32_t inputs, uint32_t outputs) {
  const int w = given(k, SHAPE(outputs, inputs), CT_INITIAL_HE);
  return BED_ADD(k->b, "linear", BED_IN(x, w, given(k, SHAPE(outputs), CT_INITIAL_ZEROS)));
}

static int normal(struct block *k, int x) {
  const int scale = given(k, SHAPE(WIDTH), CT_INITIAL_ONES);
  return BED_ADD(k->b, "layer_norm", BED_IN(x, scale, given(k, SHAPE(WIDTH), CT_INITIAL_ZEROS)));
}

static int turned(struct block *k, int x) {
  return BED_ADD(k->b, "transpose", BED_IN(x), BED_ATTRS({"perm", 4, {0, 2, 1, 3}}));
}

/* Images, heads, steps, and the numbers of a head. */
static int heads(struct block *k, int x) {
  const int y = BED_ADD(k->b, "reshape", BED_IN(layer(k, x, WIDTH, WIDTH)),
                        BED_ATTRS({"shape", 4, {IMAGES, STEPS, HEADS, HEAD}}));
  return turned(k, y);
}

static int attention(struct block *k, int x) {
  const int q = heads(k, x), key = heads(k, x), v = heads(k, x);
  int y = BED_ADD(k->b, "matmul", BED_IN(q, key), BED_ATTRS({"transpose_b", 1, {1}}));
  y = BED_ADD(k->b, "scale", BED_IN(y), BED_ATTRS({"factor", 1, {0.35}}));
  y = BED_ADD(k->b, "matmul", BED_IN(BED_ADD(k->b, "softmax", BED_IN(y)), v));
  y = BED_ADD(k->b, "reshape", BED_IN(turned(k, y)),
              BED_ATTRS({"shape", 3, {IMAGES, STEPS, WIDTH}}));
  return layer(k, y, WIDTH, WIDTH);
}

static void test_transformer(void **state) {
  (void)state;
  for (int training = 0; training < 2; ++training) {
    struct bed b;
    struct block k = {&b, 0};
    bed_make(&b);
    int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(IMAGES, STEPS, WIDTH));
    x = BED_ADD(&b, "add", BED_IN(x, attention(&k, normal(&k, x))));
    const int wide = BED_ADD(&b, "gelu", BED_IN(layer(&k, normal(&k, x), WIDTH, 2 * WIDTH)));
    x = BED_ADD(&b, "add", BED_IN(x, layer(&k, wide, 2 * WIDTH, WIDTH)));
    x = layer(&k, BED_ADD(&b, "flatten", BED_IN(normal(&k, x))), STEPS * WIDTH, 7);
    ct_graph_result(b.g, x);
    if (training) {
      const int y = bed_tensor(&b, CT_ROLE_LABEL, SHAPE(IMAGES, 7));
      const int loss = ct_graph_result(b.g, BED_ADD(&b, "cross_entropy", BED_IN(x, y)));
      const struct ct_optimise how = {.schedule = {.rate = 0.1}, .momentum = 0.9, .clip = 1};
      if (ct_graph_optimise(b.g, loss, &how)) fail_msg("%s", ct_graph_error(b.g));
      b.update = true;
    }
    compare(&b, training ? 0.15 : 0.03, training ? "transformer, a step" : "transformer");
  }
}

/* ---- What changes between runs, and what does not run -------------------------------------- */

static int named(struct bed *b, const char *name, enum ct_role role, struct ct_shape shape) {
  return ct_graph_tensor(
      b->g, &(struct ct_new_tensor){
                .name = name, .shape = shape, .role = role, .initial = CT_INITIAL_ONES});
}

/* The scale, the bias or the mean comes with each run: nothing of it is computed once. */
static void test_normalisation_by_an_input(void **state) {
  (void)state;
  for (int which = 0; which < 3; ++which) {
    struct bed b;
    struct net_bed n;
    ct_rng rng = ct_rng_make(5);
    bed_make(&b);
    int in[5] = {bed_tensor(&b, CT_ROLE_INPUT, SHAPE(2, 3, 4, 21))};
    for (int i = 0; i < 3; ++i)
      in[i + 1] = bed_tensor(&b, i == which ? CT_ROLE_INPUT : CT_ROLE_STATE, SHAPE(21));
    in[4] = named(&b, "variance", CT_ROLE_STATE, SHAPE(21));
    ct_graph_result(b.g, BED_ADD(&b, "batch_norm", .inputs = in, .input_count = 5));
    bed_check(&b);
    net_open(&n, &b, "emu:");
    net_draw(&n, 7, &rng);
    for (int run = 0; run < 3; ++run) {
      net_draw_inputs(&n, &rng);
      net_run(&n);
      net_expect(&n, 1e-5, "normalised by an input");
    }
    net_close(&n);
    bed_free(&b);
  }
}

/* States and outputs that are inputs, or parts of them: nothing is computed. */
static void test_nothing_but_copies(void **state) {
  (void)state;
  for (int outputs = 0; outputs < 2; ++outputs) {
    struct bed b;
    ct_rng rng = ct_rng_make(6);
    struct net_bed n;
    bed_make(&b);
    const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(5, 40));
    const int flat = BED_ADD(&b, "flatten", BED_IN(x));
    ct_graph_becomes(b.g, named(&b, "all", CT_ROLE_STATE, SHAPE(5, 40)), flat);
    if (outputs) {
      const int half = BED_ADD(&b, "slice", BED_IN(x),
                               BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {16}}, {"size", 1, {16}}));
      ct_graph_becomes(b.g, named(&b, "half", CT_ROLE_STATE, SHAPE(5, 16)), half);
      ct_graph_result(b.g, BED_ADD(&b, "flatten", BED_IN(half)));
    }
    b.update = true;
    bed_check(&b);
    net_open(&n, &b, "emu:");
    net_draw(&n, 7, &rng);
    net_run(&n);
    net_expect(&n, 0, "copies");
    net_close(&n);
    bed_free(&b);
  }
}

/* A part of what is computed is an output or a state's new value: it is still there when the whole
 * has given its place to others. */
static void test_parts_that_last(void **state) {
  (void)state;
  for (int output = 0; output < 2; ++output) {
    struct bed b;
    ct_rng rng = ct_rng_make(8);
    struct net_bed n;
    bed_make(&b);
    int y = BED_ADD(&b, "tanh", BED_IN(bed_tensor(&b, CT_ROLE_INPUT, SHAPE(5, 40))));
    const int part = BED_ADD(&b, "slice", BED_IN(y),
                             BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {16}}, {"size", 1, {16}}));
    if (output)
      ct_graph_result(b.g, BED_ADD(&b, "flatten", BED_IN(part)));
    else
      ct_graph_becomes(b.g, named(&b, "part", CT_ROLE_STATE, SHAPE(5, 16)), part);
    for (int i = 0; i < 4; ++i)
      y = BED_ADD(&b, "softmax", BED_IN(y));
    ct_graph_result(b.g, y);
    b.update = true;
    bed_check(&b);
    net_open(&n, &b, "emu:");
    net_draw(&n, 7, &rng);
    net_run(&n);
    net_expect(&n, 1e-4, "parts");
    net_close(&n);
    bed_free(&b);
  }
}

/* ---- States that are read while they get new values ---------------------------------------- */

static int state(struct bed *b, const char *name, struct ct_shape shape) {
  return named(b, name, CT_ROLE_STATE, shape);
}

/* All of these read more of the state than what they make of it at a time. */
static void by_linear(struct bed *b) {
  const int s = state(b, "s", SHAPE(96, 320)), w = named(b, "w", CT_ROLE_WEIGHT, SHAPE(320, 320));
  ct_graph_becomes(b->g, s, BED_ADD(b, "linear", BED_IN(s, w)));
}

static void by_convolution(struct bed *b) {
  const int s = state(b, "s", SHAPE(3, 20, 20, 48)),
            w = named(b, "w", CT_ROLE_WEIGHT, SHAPE(48, 3, 3, 48));
  ct_graph_becomes(b->g, s, BED_ADD(b, "conv", BED_IN(s, w), BED_ATTRS({"pad", 4, {1, 1, 1, 1}})));
}

static void by_pool(struct bed *b) {
  const int s = state(b, "s", SHAPE(3, 20, 20, 48));
  ct_graph_becomes(b->g, s,
                   BED_ADD(b, "max_pool", BED_IN(s),
                           BED_ATTRS({"kernel", 2, {3, 3}}, {"pad", 4, {1, 1, 1, 1}})));
}

static void by_softmax(struct bed *b) {
  const int s = state(b, "s", SHAPE(40, 300));
  ct_graph_becomes(b->g, s, BED_ADD(b, "softmax", BED_IN(s)));
}

/* What is made of it before anything else, and in the midst, with readers behind. */
static void with_readers(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(5, 40)), s = state(b, "s", SHAPE(5, 40)),
            t = state(b, "t", SHAPE(5, 40));
  ct_graph_becomes(b->g, s, BED_ADD(b, "scale", BED_IN(s), BED_ATTRS({"factor", 1, {0.5}})));
  ct_graph_becomes(b->g, t, BED_ADD(b, "softmax", BED_IN(BED_ADD(b, "add", BED_IN(x, t)))));
  ct_graph_result(b->g, BED_ADD(b, "add", BED_IN(BED_ADD(b, "mul", BED_IN(s, t)), x)));
}

/* Each becomes the other; halves of one change places. */
static void by_exchange(struct bed *b) {
  const int s = state(b, "s", SHAPE(5, 32)), t = state(b, "t", SHAPE(5, 32)),
            u = state(b, "u", SHAPE(5, 32));
  const struct ct_attr flat = {"shape", 2, {5, 32}};
  const int half[2] = {BED_ADD(b, "slice", BED_IN(u),
                               BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {16}}, {"size", 1, {16}})),
                       BED_ADD(b, "slice", BED_IN(u),
                               BED_ATTRS({"axis", 1, {1}}, {"begin", 1, {0}}, {"size", 1, {16}}))};
  ct_graph_becomes(b->g, s, BED_ADD(b, "reshape", BED_IN(t), .attrs = &flat, .attr_count = 1));
  ct_graph_becomes(b->g, t, BED_ADD(b, "reshape", BED_IN(s), .attrs = &flat, .attr_count = 1));
  ct_graph_becomes(
      b->g, u, BED_ADD(b, "concat", .inputs = half, .input_count = 2, BED_ATTRS({"axis", 1, {1}})));
}

/* The weights of a layer become the gradient of others'. */
static void by_gradient(struct bed *b) {
  const int x = bed_tensor(b, CT_ROLE_INPUT, SHAPE(5, 40)), s = state(b, "s", SHAPE(20, 40)),
            w = named(b, "w", CT_ROLE_WEIGHT, SHAPE(20, 40)),
            y = bed_tensor(b, CT_ROLE_LABEL, SHAPE(5, 20));
  ct_graph_result(b->g, BED_ADD(b, "linear", BED_IN(x, s)));
  const int z = BED_ADD(b, "linear", BED_IN(x, w));
  const int loss = ct_graph_result(b->g, BED_ADD(b, "mse", BED_IN(z, y)));
  if (ct_graph_gradients(b->g, loss, NULL, 0)) fail_msg("%s", ct_graph_error(b->g));
  ct_graph_becomes(b->g, s, ct_graph_gradient(b->g, w));
}

/* Numbers that HBFP8 holds. */
static void draw_lasting(struct net_bed *n, ct_rng *rng) {
  struct ct_tensor_info info;
  for (int t = 1; !ct_graph_tensor_info(n->bed->g, t, &info); ++t) {
    if (info.role != CT_ROLE_STATE && info.role != CT_ROLE_WEIGHT) continue;
    float *f = calloc(info.elements, sizeof *f);
    assert_non_null(f);
    for (size_t i = 0; i < info.elements; ++i)
      bed_data(n->bed, t)[i] = (double)(f[i] = (float)((double)ct_rng_below(rng, 255) - 127) / 64);
    assert_int_equal(ct_network_write(n->net, t, f, info.elements), CT_OK);
    free(f);
  }
}

static void test_states(void **unused) {
  (void)unused;
  static const struct {
    const char *name;
    void (*make)(struct bed *b);
    double most;
  } cases[] = {{"a layer", by_linear, 0.03},
               {"a convolution", by_convolution, 0.03},
               {"pooling", by_pool, 0},
               {"softmax", by_softmax, 1e-4},
               {"later readers", with_readers, 1e-5},
               {"exchanged", by_exchange, 0},
               {"a gradient", by_gradient, 0.03}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    struct bed b;
    struct net_bed n;
    ct_rng rng = ct_rng_make(10);
    bed_make(&b);
    cases[i].make(&b);
    b.update = true;
    bed_check(&b);
    net_open(&n, &b, "emu:core=16x4");
    net_draw(&n, 7, &rng);
    draw_lasting(&n, &rng);
    for (int run = 1; run < 3; ++run) {
      net_run(&n);
      net_expect(&n, run * cases[i].most, cases[i].name);
    }
    net_close(&n);
    bed_free(&b);
  }
}

/* Gradients that nobody but a state takes are made all the same. */
static void test_gradients_that_last(void **state) {
  (void)state;
  struct bed b;
  struct net_bed n;
  ct_rng rng = ct_rng_make(9);
  bed_make(&b);
  const int gy = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(6, 21)),
            x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(6, 21));
  const int gx =
      BED_ADD(&b, "layer_norm_grad", BED_IN(gy, x, named(&b, "scale", CT_ROLE_WEIGHT, SHAPE(21))));
  ct_graph_result(b.g, gx);
  ct_graph_becomes(b.g, named(&b, "of scale", CT_ROLE_STATE, SHAPE(21)), gx + 1);
  ct_graph_becomes(b.g, named(&b, "of bias", CT_ROLE_STATE, SHAPE(21)), gx + 2);
  b.update = true;
  bed_check(&b);
  net_open(&n, &b, "emu:");
  net_draw(&n, 7, &rng);
  net_run(&n);
  net_expect(&n, 1e-4, "gradients");
  net_close(&n);
  bed_free(&b);
}

/* Of many operators that read one product not all can become part of its kernel, whether their
 * results are outputs, operands of others, or new values of states. */
static void test_many_readers(void **state) {
  (void)state;
  enum { OUTPUTS, OPERANDS, STATES, WAYS };
  static const char *const ops[] = {"relu", "tanh", "sigmoid", "leaky_relu", "gelu", "erf"};
  for (int way = 0; way < WAYS; ++way) {
    struct bed b;
    bed_make(&b);
    const int x = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(2, 4, 4, 16));
    const int y =
        BED_ADD(&b, "conv", BED_IN(x, named(&b, "w", CT_ROLE_WEIGHT, SHAPE(16, 1, 1, 16))));
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; ++i) {
      const int z = BED_ADD(&b, ops[i], BED_IN(y));
      if (way == STATES)
        ct_graph_becomes(b.g, named(&b, ops[i], CT_ROLE_STATE, SHAPE(2, 4, 4, 16)), z);
      else
        ct_graph_result(b.g, way == OPERANDS ? BED_ADD(&b, "softmax", BED_IN(z)) : z);
    }
    b.update = way == STATES;
    compare(&b, 0.03, "many readers");
  }
}

static int drawn(struct bed *b, const char *name, struct ct_shape shape) {
  return ct_graph_tensor(
      b->g, &(struct ct_new_tensor){
                .name = name, .shape = shape, .role = CT_ROLE_WEIGHT, .initial = CT_INITIAL_HE});
}

/* Transposed convolutions, as in a generator of images: 4 x 4 pixels become 8 x 8, then 16 x 16. */
static void test_generator_trains(void **state) {
  (void)state;
  struct bed b;
  bed_make(&b);
  const int z = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, 4, 4, 24)),
            w1 = drawn(&b, "w1", SHAPE(24, 4, 4, 20)), w2 = drawn(&b, "w2", SHAPE(20, 4, 4, 3)),
            y = named(&b, "y", CT_ROLE_LABEL, SHAPE(4, 16 * 16 * 3));
  int t = BED_ADD(&b, "conv_input_grad", BED_IN(z, w1),
                  BED_ATTRS({"size", 2, {8, 8}}, {"stride", 2, {2, 2}}, {"pad", 4, {1, 1, 1, 1}}));
  t = BED_ADD(&b, "relu", BED_IN(t));
  t = BED_ADD(&b, "conv_input_grad", BED_IN(t, w2),
              BED_ATTRS({"size", 2, {16, 16}}, {"stride", 2, {2, 2}}, {"pad", 4, {1, 1, 1, 1}}));
  t = BED_ADD(&b, "flatten", BED_IN(BED_ADD(&b, "tanh", BED_IN(t))));
  ct_graph_result(b.g, t);
  ct_graph_result(b.g, BED_ADD(&b, "mse", BED_IN(t, y), .name = "loss"));
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}, .momentum = 0.9});
  compare(&b, 0.25, "a generator, a step");
}

/* Outputs, and what the compiler makes for itself, are results of one kernel: no more than it has
 * room for. */
static void test_many_results(void **state) {
  (void)state;
  static const char *const ops[] = {"relu", "tanh", "relu", "tanh"};
  for (unsigned outputs = 0; outputs <= 4; ++outputs) {
    struct bed b;
    bed_make(&b);
    int t = BED_ADD(&b, "linear",
                    BED_IN(bed_tensor(&b, CT_ROLE_INPUT, SHAPE(4, 16)),
                           named(&b, "w", CT_ROLE_WEIGHT, SHAPE(16, 16))));
    ct_graph_result(b.g, t);
    for (unsigned i = 0; i < outputs; ++i) {
      t = BED_ADD(&b, ops[i], BED_IN(t));
      ct_graph_result(b.g, t);
    }
    const int y = named(&b, "y", CT_ROLE_LABEL, SHAPE(4, 16));
    ct_graph_result(b.g, BED_ADD(&b, "mse", BED_IN(t, y), .name = "loss"));
    optimise(&b, &(struct ct_optimise){.schedule = {.rate = 0.1}});
    compare(&b, 0.1, "many results");
  }
}

/* What is trained, or lasts, stays in FP32 where products read it as their first operand: changes
 * that are less than a step of HBFP8 add up. */
static void test_small_changes(void **state) {
  (void)state;
  enum { SIDE = 16, COUNT = SIDE * SIDE, RUNS = 20 };
  struct bed b;
  struct net_bed n;
  float was[COUNT], now[COUNT];
  ct_rng rng = ct_rng_make(5);
  bed_make(&b);
  const struct ct_shape square = SHAPE(SIDE, SIDE);
  const int w = named(&b, "w", CT_ROLE_WEIGHT, square), s = named(&b, "s", CT_ROLE_STATE, square),
            x = bed_tensor(&b, CT_ROLE_INPUT, square), y = named(&b, "y", CT_ROLE_LABEL, square);
  ct_graph_becomes(b.g, s, BED_ADD(&b, "add", BED_IN(s, x)));
  ct_graph_result(b.g, BED_ADD(&b, "matmul", BED_IN(s, x)));
  const int wx = BED_ADD(&b, "matmul", BED_IN(w, x));
  ct_graph_result(b.g, BED_ADD(&b, "mse", BED_IN(wx, y), .name = "loss"));
  optimise(&b, &(struct ct_optimise){.schedule = {.rate = 1}});
  bed_check(&b);
  net_open(&n, &b, "emu:");
  net_draw(&n, 3, &rng);
  for (int i = 0; i < COUNT; ++i) {
    was[i] = (float)(i * 37 % 101) / 64;
    now[i] = 0.001f;
  }
  assert_int_equal(ct_network_write(n.net, s, was, COUNT), CT_OK);
  assert_int_equal(ct_network_write(n.net, w, was, COUNT), CT_OK);
  assert_int_equal(ct_network_write(n.net, x, now, COUNT), CT_OK);
  for (uint64_t run = 0; run < RUNS; ++run)
    net_run_device(&n, run);
  assert_int_equal(ct_network_read(n.net, s, now, COUNT), CT_OK);
  for (int i = 0; i < COUNT; ++i)
    assert_float_equal(now[i] - was[i], RUNS * 0.001, 1e-5);
  assert_int_equal(ct_network_read(n.net, w, now, COUNT), CT_OK);
  for (int i = 0; i < COUNT; ++i)
    if (now[i] == was[i] || fabs(now[i] - was[i]) > 1e-2)
      fail_msg("element %d was %g and is %g", i, (double)was[i], (double)now[i]);
  net_close(&n);
  bed_free(&b);
}

/* ---- Formats ------------------------------------------------------------------------------- */

enum { KEPT_ROWS = 64, KEPT_COLS = 16 };

/* Sums the columns of what is kept in that format: in each row 127 and otherwise 0.4. */
static void sum_of_kept(enum ct_format format, float sums[KEPT_COLS]) {
  float x[KEPT_ROWS * KEPT_COLS];
  ct_device *dev;
  ct_network *net;
  struct bed b;
  bed_make(&b);
  const int in = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(KEPT_ROWS, KEPT_COLS));
  const int kept = BED_ADD(&b, "scale", BED_IN(in), BED_ATTRS({"factor", 1, {2}}));
  const int sum = BED_ADD(&b, "sum_to", BED_IN(kept), BED_ATTRS({"shape", 2, {1, KEPT_COLS}}));
  assert_int_equal(ct_graph_keep(b.g, CT_ROLE_ACTIVATION, format), 2);
  ct_graph_result(b.g, sum);
  bed_check(&b);
  for (size_t i = 0; i < KEPT_ROWS * KEPT_COLS; ++i)
    x[i] = i % KEPT_COLS ? 0.2f : 63.5f;
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_network_create(dev, b.g, NULL, &net), CT_OK);
  assert_int_equal(ct_network_write(net, in, x, KEPT_ROWS * KEPT_COLS), CT_OK);
  assert_int_equal(ct_network_run(net, CT_INFERENCE, 0), CT_OK);
  assert_int_equal(ct_network_read(net, sum, sums, KEPT_COLS), CT_OK);
  ct_network_free(net);
  ct_close(dev);
  bed_free(&b);
}

/* Steps of a block that holds 127 are 1 in HBFP8, 4 in HBFP6, 16 in HBFP4: 0.4 becomes nothing, and
 * 127 is cut to the largest mantissa. */
static void test_readers_see_the_format(void **state) {
  (void)state;
  float sums[KEPT_COLS];
  sum_of_kept(CT_FORMAT_FP32, sums);
  assert_true(sums[0] == 127 * KEPT_ROWS);
  assert_true(sums[1] > 25.5f && sums[1] < 25.7f);
  static const float largest[] = {
      [CT_FORMAT_HBFP8] = 127, [CT_FORMAT_HBFP6] = 124, [CT_FORMAT_HBFP4] = 112};
  for (enum ct_format f = CT_FORMAT_HBFP8; f <= CT_FORMAT_HBFP4; ++f) {
    sum_of_kept(f, sums);
    assert_true(sums[0] == largest[f] * KEPT_ROWS);
    for (size_t i = 1; i < KEPT_COLS; ++i)
      assert_true(sums[i] == 0);
  }
}

/* A step with its activations and gradients in HBFP8 needs half of the memory, and learns. */
static uint64_t run_bytes(ct_graph *g, bool kept) {
  static const struct ct_optimise how = {.schedule = {.rate = 0.01}, .momentum = 0.9};
  struct ct_network_info info;
  ct_device *dev;
  ct_network *net;
  assert_int_equal(ct_graph_builtin(g, "resnet8", 4, true), CT_OK);
  assert_int_equal(ct_graph_optimise(g, ct_graph_find(g, "loss"), &how), CT_OK);
  assert_int_equal(ct_graph_keep(g, CT_ROLE_LABEL, CT_FORMAT_HBFP8), CT_ERR_ARG);
  assert_non_null(strstr(ct_graph_error(g), "activations and gradients"));
  if (kept) {
    assert_true(ct_graph_keep(g, CT_ROLE_ACTIVATION, CT_FORMAT_HBFP8) > 10);
    assert_true(ct_graph_keep(g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8) > 10);
  }
  assert_int_equal(ct_graph_check(g), CT_OK);
  assert_int_equal(ct_graph_keep(g, CT_ROLE_GRADIENT, CT_FORMAT_HBFP8), CT_ERR_ARG);
  assert_int_equal(ct_open("emu:", &dev), CT_OK);
  assert_int_equal(ct_network_create(dev, g, NULL, &net), CT_OK);
  assert_int_equal(ct_network_info(net, &info), CT_OK);
  ct_network_free(net);
  ct_close(dev);
  return info.run_bytes;
}

static void test_kept_in_less(void **state) {
  (void)state;
  ct_graph *g[2];
  uint64_t bytes[2];
  for (int kept = 0; kept < 2; ++kept) {
    assert_int_equal(ct_graph_create(&g[kept]), CT_OK);
    bytes[kept] = run_bytes(g[kept], kept);
    ct_graph_free(g[kept]);
  }
  printf("resnet8, 4 images: %lu bytes in FP32, %lu in HBFP8\n", (unsigned long)bytes[0],
         (unsigned long)bytes[1]);
  assert_true(10 * bytes[1] < 6 * bytes[0]);
}

static void test_a_device_without_convolution(void **state) {
  (void)state;
  for (int product = 0; product < 2; ++product) {
    ct_device *dev;
    ct_network *net;
    struct bed b;
    bed_make(&b);
    int y = bed_tensor(&b, CT_ROLE_INPUT, SHAPE(2, 5, 5, 16));
    if (product)
      y = BED_ADD(&b, "conv", BED_IN(y, bed_tensor(&b, CT_ROLE_WEIGHT, SHAPE(8, 3, 3, 16))),
                  .name = "edges");
    ct_graph_result(b.g, BED_ADD(&b, "relu", BED_IN(y)));
    bed_check(&b);
    assert_int_equal(ct_open("emu:", &dev), CT_OK);
    dev->info.features &= ~CT_FEATURE_CONVOLUTION;
    const int err = ct_network_create(dev, b.g, NULL, &net);
    assert_int_equal(err, product ? CT_ERR_UNSUPPORTED : CT_OK);
    if (product)
      assert_non_null(strstr(ct_last_error(dev), "edges (conv): this device has no convolution"));
    ct_network_free(net);
    ct_close(dev);
    bed_free(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_perceptron),
                                     cmocka_unit_test(test_perceptron_trains),
                                     cmocka_unit_test(test_perceptron_trains_by_adam),
                                     cmocka_unit_test(test_lenet5),
                                     cmocka_unit_test(test_lenet5_trains),
                                     cmocka_unit_test(test_resnet8),
                                     cmocka_unit_test(test_resnet8_trains),
                                     cmocka_unit_test(test_resnet20),
                                     cmocka_unit_test(test_transformer),
                                     cmocka_unit_test(test_normalisation_by_an_input),
                                     cmocka_unit_test(test_nothing_but_copies),
                                     cmocka_unit_test(test_parts_that_last),
                                     cmocka_unit_test(test_states),
                                     cmocka_unit_test(test_gradients_that_last),
                                     cmocka_unit_test(test_many_readers),
                                     cmocka_unit_test(test_many_results),
                                     cmocka_unit_test(test_generator_trains),
                                     cmocka_unit_test(test_small_changes),
                                     cmocka_unit_test(test_readers_see_the_format),
                                     cmocka_unit_test(test_kept_in_less),
                                     cmocka_unit_test(test_a_device_without_convolution)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
