/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of every operator against central differences, for drawn shapes and attributes;
 * every operator that has a gradient must have a case here. Then random graphs of random operators,
 * most of whose nodes are refused, each with a sentence.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ct_op.h"
#include "graph_bed.h"

enum { ROUNDS = 8, ELEMENTS = 10 };

static uint32_t draw(ct_rng *rng, uint32_t least, uint32_t most) {
  return least + ct_rng_below(rng, most - least + 1);
}

static struct ct_shape draw_shape(ct_rng *rng, uint32_t least, uint32_t most, uint32_t dim) {
  struct ct_shape s = {.dims = draw(rng, least, most)};
  for (uint32_t i = 0; i < s.dims; ++i)
    s.dim[i] = draw(rng, 1, dim);
  return s;
}

static int weight(struct bed *b, ct_rng *rng, struct ct_shape shape) {
  return bed_drawn(b, CT_ROLE_WEIGHT, shape, rng);
}

/* A weight or state that is nowhere near 0. */
static int positive(struct bed *b, ct_rng *rng, enum ct_role role, struct ct_shape shape) {
  const int t = bed_drawn(b, role, shape, rng);
  double *x = bed_data(b, t);
  for (size_t i = 0; i < bed_info(b, t).elements; ++i)
    x[i] = fabs(x[i]) + 0.5;
  return t;
}

/* ---- A case for each operator -------------------------------------------------------------- */

static int unary_case(struct bed *b, ct_rng *rng, const char *op) {
  const int x = weight(b, rng, draw_shape(rng, 1, 4, 4));
  if (!strcmp(op, "leaky_relu") && ct_rng_below(rng, 2))
    return BED_ADD(b, op, BED_IN(x), BED_ATTRS({"alpha", 1, {draw(rng, 0, 9) * 0.1}}));
  if (!strcmp(op, "clip"))
    return BED_ADD(b, op, BED_IN(x),
                   BED_ATTRS({"min", 1, {-0.5}}, {"max", 1, {draw(rng, 0, 1) ? 0.75 : 6}}));
  if (!strcmp(op, "scale"))
    return BED_ADD(b, op, BED_IN(x), BED_ATTRS({"factor", 1, {draw(rng, 1, 9) * -0.3}}));
  if (!strcmp(op, "dropout"))
    return BED_ADD(b, op, BED_IN(x), BED_ATTRS({"rate", 1, {draw(rng, 0, 8) * 0.1}}));
  return BED_ADD(b, op, BED_IN(x));
}

/* A shape that can be broadcast to that one. */
static struct ct_shape narrower(ct_rng *rng, struct ct_shape s) {
  const uint32_t drop = ct_rng_below(rng, 3) ? 0 : ct_rng_below(rng, s.dims);
  struct ct_shape t = {.dims = s.dims - drop};
  for (uint32_t i = 0; i < t.dims; ++i)
    t.dim[i] = ct_rng_below(rng, 3) ? s.dim[drop + i] : 1;
  return t;
}

static int binary_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape all = draw_shape(rng, 1, 4, 3);
  const int x = weight(b, rng, ct_rng_below(rng, 2) ? all : narrower(rng, all));
  const int y = strcmp(op, "div") ? weight(b, rng, narrower(rng, all))
                                  : positive(b, rng, CT_ROLE_WEIGHT, narrower(rng, all));
  return BED_ADD(b, op, BED_IN(x, y));
}

static int sum_to_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape all = draw_shape(rng, 1, 4, 3), to = narrower(rng, all);
  struct ct_attr attr = {"shape", to.dims, {0}};
  for (uint32_t i = 0; i < to.dims; ++i)
    attr.value[i] = to.dim[i];
  return BED_ADD(b, op, BED_IN(weight(b, rng, all)), BED_ATTRS(attr));
}

/* Stride, dilation and padding of a window that fits. */
struct draw_window {
  struct ct_attr attr[3];
  uint32_t kernel[2];
};

static struct draw_window draw_window(ct_rng *rng, const uint32_t size[2], bool pool) {
  struct draw_window w = {.attr = {{"stride", 2, {0}}, {"dilation", 2, {0}}, {"pad", 4, {0}}}};
  for (int i = 0; i < 2; ++i) {
    uint32_t span, before, after;
    do {
      w.kernel[i] = draw(rng, 1, 3);
      w.attr[0].value[i] = draw(rng, 1, 3);
      w.attr[1].value[i] = draw(rng, 1, 2);
      before = draw(rng, 0, 2);
      after = draw(rng, 0, 2);
      span = (uint32_t)w.attr[1].value[i] * (w.kernel[i] - 1) + 1;
    } while (size[i] + before + after < span ||
             (pool && (before >= span || after >= span || size[i] < 2)));
    w.attr[2].value[i] = before;
    w.attr[2].value[2 + i] = after;
  }
  return w;
}

static int conv_case(struct bed *b, ct_rng *rng, const char *op) {
  const uint32_t groups = draw(rng, 1, 3), in = draw(rng, 1, 3), out = groups * draw(rng, 1, 2);
  const struct ct_shape shape = {4,
                                 {draw(rng, 1, 2), draw(rng, 2, 6), draw(rng, 2, 6), groups * in}};
  const struct draw_window w = draw_window(rng, &shape.dim[1], false);
  const int x = weight(b, rng, shape);
  const int k = weight(b, rng, SHAPE(out, w.kernel[0], w.kernel[1], in));
  const int bias = ct_rng_below(rng, 2) ? weight(b, rng, SHAPE(out)) : 0;
  return BED_ADD(b, op, BED_IN(x, k, bias),
                 BED_ATTRS(w.attr[0], w.attr[1], w.attr[2], {"groups", 1, {groups}}));
}

/* Of what a convolution gives, so that it fits. */
static int conv_input_case(struct bed *b, ct_rng *rng, const char *op) {
  const uint32_t groups = draw(rng, 1, 2), in = draw(rng, 1, 3), out = groups * draw(rng, 1, 2);
  const struct ct_shape shape = {4,
                                 {draw(rng, 1, 2), draw(rng, 2, 5), draw(rng, 2, 5), groups * in}};
  const struct draw_window w = draw_window(rng, &shape.dim[1], false);
  const struct ct_attr group = {"groups", 1, {groups}},
                       size = {"size", 2, {shape.dim[1], shape.dim[2]}};
  const struct ct_shape kernel = SHAPE(out, w.kernel[0], w.kernel[1], in);
  const int y = BED_ADD(b, "conv", BED_IN(weight(b, rng, shape), weight(b, rng, kernel)),
                        BED_ATTRS(w.attr[0], w.attr[1], w.attr[2], group));
  return BED_ADD(b, op, BED_IN(y, weight(b, rng, kernel)),
                 BED_ATTRS(w.attr[0], w.attr[1], w.attr[2], group, size));
}

static int pool_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape shape = {
      4, {draw(rng, 1, 2), draw(rng, 2, 6), draw(rng, 2, 6), draw(rng, 1, 3)}};
  const struct draw_window w = draw_window(rng, &shape.dim[1], true);
  const struct ct_attr kernel = {"kernel", 2, {w.kernel[0], w.kernel[1]}},
                       count = {"count_pad", 1, {ct_rng_below(rng, 2)}};
  const int x = weight(b, rng, shape);
  if (!strcmp(op, "global_average_pool")) return BED_ADD(b, op, BED_IN(x));
  if (!strcmp(op, "max_pool"))
    return BED_ADD(b, op, BED_IN(x), BED_ATTRS(w.attr[0], w.attr[1], w.attr[2], kernel));
  return BED_ADD(b, op, BED_IN(x), BED_ATTRS(w.attr[0], w.attr[1], w.attr[2], kernel, count));
}

static int linear_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape shape = draw_shape(rng, 2, 4, 4);
  const uint32_t out = draw(rng, 1, 4);
  const int x = weight(b, rng, shape), w = weight(b, rng, SHAPE(out, shape.dim[shape.dims - 1]));
  return BED_ADD(b, op, BED_IN(x, w, ct_rng_below(rng, 2) ? weight(b, rng, SHAPE(out)) : 0));
}

static int matmul_case(struct bed *b, ct_rng *rng, const char *op) {
  const uint32_t m = draw(rng, 1, 4), n = draw(rng, 1, 4), k = draw(rng, 1, 4);
  const bool ta = ct_rng_below(rng, 2), tb = ct_rng_below(rng, 2);
  struct ct_shape batches = draw_shape(rng, 1, 2, 3), x = narrower(rng, batches),
                  y = narrower(rng, batches);
  if (ct_rng_below(rng, 3) == 0) x.dims = 0;
  if (ct_rng_below(rng, 3) == 0) y.dims = 0;
  x.dim[x.dims++] = ta ? k : m;
  x.dim[x.dims++] = ta ? m : k;
  y.dim[y.dims++] = tb ? n : k;
  y.dim[y.dims++] = tb ? k : n;
  const int a = weight(b, rng, x);
  return BED_ADD(b, op, BED_IN(a, weight(b, rng, y)),
                 BED_ATTRS({"transpose_a", 1, {ta}}, {"transpose_b", 1, {tb}}));
}

static int batch_norm_case(struct bed *b, ct_rng *rng, const char *op) {
  struct ct_shape shape = draw_shape(rng, 2, 4, 4);
  shape.dim[0] = draw(rng, 3, 5);
  const struct ct_shape channels = {1, {shape.dim[shape.dims - 1]}};
  const int x = weight(b, rng, shape), scale = weight(b, rng, channels),
            bias = weight(b, rng, channels);
  const int mean = bed_drawn(b, CT_ROLE_STATE, channels, rng);
  return BED_ADD(b, op, BED_IN(x, scale, bias, mean, positive(b, rng, CT_ROLE_STATE, channels)),
                 BED_ATTRS({"epsilon", 1, {0.01}}));
}

static int layer_norm_case(struct bed *b, ct_rng *rng, const char *op) {
  struct ct_shape shape = draw_shape(rng, 2, 4, 4), row = {0};
  const uint32_t axis = ct_rng_below(rng, shape.dims);
  shape.dim[shape.dims - 1] = draw(rng, 3, 5);
  for (uint32_t i = axis; i < shape.dims; ++i)
    row.dim[row.dims++] = shape.dim[i];
  const int x = weight(b, rng, shape), scale = weight(b, rng, row);
  return BED_ADD(b, op, BED_IN(x, scale, ct_rng_below(rng, 2) ? weight(b, rng, row) : 0),
                 BED_ATTRS({"axis", 1, {axis}}, {"epsilon", 1, {0.01}}));
}

static int softmax_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape shape = draw_shape(rng, 1, 4, 4);
  return BED_ADD(b, op, BED_IN(weight(b, rng, shape)),
                 BED_ATTRS({"axis", 1, {(double)ct_rng_below(rng, shape.dims + 1) - 1}}));
}

static int loss_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape shape = draw_shape(rng, 2, 4, 4);
  const bool mse = !strcmp(op, "mse");
  const int x = weight(b, rng, shape);
  return BED_ADD(
      b, op,
      BED_IN(x, positive(b, rng, mse && ct_rng_below(rng, 2) ? CT_ROLE_WEIGHT : CT_ROLE_LABEL,
                         shape)));
}

static int reshape_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape s = draw_shape(rng, 2, 4, 4);
  const int x = weight(b, rng, s);
  struct ct_attr perm = {"perm", s.dims, {0}};
  for (uint32_t i = 0; i < s.dims; ++i) {
    const uint32_t k = ct_rng_below(rng, i + 1);
    perm.value[i] = perm.value[k];
    perm.value[k] = i;
  }
  if (!strcmp(op, "transpose")) return BED_ADD(b, op, BED_IN(x), BED_ATTRS(perm));
  if (!strcmp(op, "flatten"))
    return BED_ADD(b, op, BED_IN(x), BED_ATTRS({"axis", 1, {ct_rng_below(rng, s.dims + 1)}}));
  return BED_ADD(b, op, BED_IN(x), BED_ATTRS({"shape", 3, {s.dim[0], -1, 1}}));
}

static int concat_case(struct bed *b, ct_rng *rng, const char *op) {
  struct ct_shape s = draw_shape(rng, 1, 4, 3);
  const uint32_t axis = ct_rng_below(rng, s.dims), count = draw(rng, 1, 4);
  int in[4];
  for (uint32_t i = 0; i < count; ++i) {
    s.dim[axis] = draw(rng, 1, 3);
    in[i] = weight(b, rng, s);
  }
  return BED_ADD(b, op, .inputs = in, .input_count = count, BED_ATTRS({"axis", 1, {axis}}));
}

static int slice_case(struct bed *b, ct_rng *rng, const char *op) {
  const struct ct_shape s = draw_shape(rng, 1, 4, 4);
  const uint32_t axis = ct_rng_below(rng, s.dims), begin = ct_rng_below(rng, s.dim[axis]);
  const uint32_t size = draw(rng, 1, s.dim[axis] - begin);
  return BED_ADD(b, op, BED_IN(weight(b, rng, s)),
                 BED_ATTRS({"axis", 1, {axis}}, {"begin", 1, {begin}}, {"size", 1, {size}}));
}

static const struct {
  const char *op;
  int (*build)(struct bed *b, ct_rng *rng, const char *op);
} cases[] = {
    {"relu", unary_case},
    {"leaky_relu", unary_case},
    {"clip", unary_case},
    {"sigmoid", unary_case},
    {"tanh", unary_case},
    {"erf", unary_case},
    {"gelu", unary_case},
    {"scale", unary_case},
    {"dropout", unary_case},
    {"add", binary_case},
    {"sub", binary_case},
    {"mul", binary_case},
    {"div", binary_case},
    {"sum_to", sum_to_case},
    {"conv", conv_case},
    {"conv_input_grad", conv_input_case},
    {"linear", linear_case},
    {"matmul", matmul_case},
    {"max_pool", pool_case},
    {"average_pool", pool_case},
    {"global_average_pool", pool_case},
    {"batch_norm", batch_norm_case},
    {"batch_norm_train", batch_norm_case},
    {"layer_norm", layer_norm_case},
    {"softmax", softmax_case},
    {"cross_entropy", loss_case},
    {"mse", loss_case},
    {"reshape", reshape_case},
    {"flatten", reshape_case},
    {"transpose", reshape_case},
    {"concat", concat_case},
    {"slice", slice_case},
};
enum { CASES = sizeof cases / sizeof *cases };

/* What is a weight has a gradient in each case. */
static void need_gradients(struct bed *b, const char *op) {
  struct ct_graph_info info;
  assert_int_equal(ct_graph_info(b->g, &info), CT_OK);
  for (int t = 1; t <= (int)info.tensors; ++t)
    if (bed_info(b, t).role == CT_ROLE_WEIGHT && !bed_info(b, t).gradient)
      fail_msg("%s: an input has no gradient", op);
}

static void test_every_operator(void **state) {
  (void)state;
  for (size_t i = 0; i < CASES; ++i) {
    ct_rng rng = ct_rng_make(100 + i);
    struct bed_found found = {0};
    for (int round = 0; round < ROUNDS; ++round) {
      struct bed b;
      bed_make(&b);
      bed_gradients(&b, cases[i].build(&b, &rng, cases[i].op), ELEMENTS, &rng, &found, cases[i].op);
      need_gradients(&b, cases[i].op);
      bed_free(&b);
    }
    if (found.nonzero < ROUNDS || found.kinks * 20 > found.compared)
      fail_msg("%s: of %zu elements %zu have a gradient, %zu are at kinks", cases[i].op,
               found.compared, found.nonzero, found.kinks);
  }
}

/* A gradient without a case here would be believed. */
static void test_no_operator_is_missing(void **state) {
  (void)state;
  for (size_t i = 0; i < ct_gop_count(); ++i) {
    bool found = !ct_gops[i]->grad;
    for (size_t k = 0; k < CASES; ++k)
      found = found || !strcmp(cases[k].op, ct_gops[i]->name);
    if (!found) fail_msg("operator %s has no case", ct_gops[i]->name);
  }
}

/* What a tensor gets from several nodes is summed; what nobody needs is not computed. */
static void test_shared_and_unneeded(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  struct bed_found found = {0};
  struct bed b;
  bed_make(&b);
  const int w = weight(&b, &rng, SHAPE(3, 4)), x = bed_drawn(&b, CT_ROLE_INPUT, SHAPE(3, 4), &rng);
  const int unused = weight(&b, &rng, SHAPE(2));
  const int squared = BED_ADD(&b, "mul", BED_IN(w, w)), bent = BED_ADD(&b, "tanh", BED_IN(w));
  const int sum = BED_ADD(&b, "add", BED_IN(squared, bent));
  const int apart = BED_ADD(&b, "relu", BED_IN(bent));
  bed_gradients(&b, BED_ADD(&b, "mul", BED_IN(sum, x)), 12, &rng, &found,
                "a tensor used three times");
  assert_int_equal(found.nonzero, 12);
  assert_true(ct_graph_gradient(b.g, w) > 0 && ct_graph_gradient(b.g, squared) > 0);
  assert_int_equal(ct_graph_gradient(b.g, x), 0);
  assert_int_equal(ct_graph_gradient(b.g, unused), 0);
  assert_int_equal(ct_graph_gradient(b.g, apart), 0);
  bed_free(&b);
}

/* Only what is wanted: no product for the images of a first layer. */
static void test_wanted(void **state) {
  (void)state;
  for (int image = 0; image < 2; ++image) {
    struct bed b;
    bed_make(&b);
    assert_int_equal(ct_graph_builtin(b.g, "lenet5", 1, true), CT_OK);
    const int x = ct_graph_find(b.g, "x"), loss = ct_graph_find(b.g, "loss");
    assert_int_equal(ct_graph_gradients(b.g, loss, image ? &x : NULL, image ? 1 : 0), CT_OK);
    assert_int_equal(ct_graph_gradient(b.g, x) > 0, image);
    assert_int_equal(ct_graph_gradient(b.g, ct_graph_find(b.g, "conv1.weight")) > 0, !image);
    struct ct_graph_info info;
    struct ct_node_info node;
    int inputs = 0, weights = 0;
    assert_int_equal(ct_graph_info(b.g, &info), CT_OK);
    for (size_t i = 0; i < info.nodes; ++i) {
      assert_int_equal(ct_graph_node_info(b.g, i, &node), CT_OK);
      inputs += !strcmp(node.op, "conv_input_grad");
      weights += !strcmp(node.op, "conv_weight_grad");
    }
    assert_int_equal(inputs, image ? 2 : 1);
    assert_int_equal(weights, image ? 0 : 2);
    bed_free(&b);
  }
}

/* ---- Random graphs ------------------------------------------------------------------------- */

enum { GRAPHS = 200, TRIES = 150, INPUTS = 6, MOST_NODES = INPUTS + 8 };

static double draw_number(ct_rng *rng) {
  static const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, 0.5, -1, 16777217};
  return ct_rng_percent(rng, 4) ? odd[ct_rng_below(rng, sizeof odd / sizeof *odd)]
                                : draw(rng, 0, 3);
}

/* What nodes may be given: tensors that have a gradient. */
struct usable {
  int tensor[64];
  uint32_t count;
};

/* Some node: any operator, any tensors, any attributes. Most are refused. */
static int add_any(struct bed *b, ct_rng *rng, const struct usable *usable) {
  const struct ct_gop *op = ct_gops[ct_rng_below(rng, (uint32_t)ct_gop_count())];
  const uint32_t more = op->optional < 3 ? op->optional : 2;
  struct ct_attr attrs[CT_GOP_ATTRS];
  int in[8];
  struct ct_new_node n = {.op = op->name,
                          .inputs = in,
                          .attrs = attrs,
                          .input_count = op->inputs + ct_rng_below(rng, more + 1)};
  if (ct_rng_percent(rng, 2)) n.input_count = ct_rng_below(rng, 8);
  for (size_t i = 0; i < n.input_count; ++i)
    in[i] = ct_rng_percent(rng, 2) ? (int)draw(rng, 0, 99)
                                   : usable->tensor[ct_rng_below(rng, usable->count)];
  for (unsigned i = 0; op->attrs && op->attrs[i].name; ++i) {
    if (!isnan(op->attrs[i].fallback) && ct_rng_below(rng, 2)) continue;
    struct ct_attr *a = &attrs[n.attr_count++];
    *a = (struct ct_attr){
        op->attrs[i].name, op->attrs[i].varies ? draw(rng, 1, 4) : op->attrs[i].count, {0}};
    for (unsigned k = 0; k < a->count; ++k)
      a->value[k] = draw_number(rng);
  }
  const int y = ct_graph_add(b->g, &n);
  if (y < 0 && !strstr(ct_graph_error(b->g), op->name))
    fail_msg("a refused %s: %s", op->name, ct_graph_error(b->g));
  return y;
}

/* Values so large that differences mean nothing, NaN and Inf. */
static bool wild(struct bed *b, int last) {
  for (int t = 1; t <= last; ++t)
    for (size_t i = 0; i < bed_info(b, t).elements; ++i)
      if (!(fabs(bed_data(b, t)[i]) < 30)) return true;
  return false;
}

struct tally {
  size_t added, refused, without_gradient, wild, compared;
};

static void grow(struct bed *b, ct_rng *rng, struct usable *u, struct tally *tally) {
  for (int i = 0; i < TRIES && u->count < MOST_NODES; ++i) {
    struct ct_node_info node;
    const int y = add_any(b, rng, u);
    if (y < 0) {
      ++tally->refused;
      continue;
    }
    ++tally->added;
    assert_int_equal(ct_graph_node_info(b->g, (size_t)bed_info(b, y).node, &node), CT_OK);
    if (ct_gop_find(node.op)->grad && bed_info(b, y).elements <= 500) u->tensor[u->count++] = y;
  }
}

static void random_graph(ct_rng *rng, struct bed_found *found, struct tally *tally) {
  struct usable u = {.count = 0};
  struct ct_graph_info info;
  struct bed b;
  bed_make(&b);
  b.step = ct_rng_below(rng, 5);
  for (; u.count < INPUTS; ++u.count)
    u.tensor[u.count] = weight(&b, rng, draw_shape(rng, u.count < 3 ? 4 : 1, 4, 3));
  grow(&b, rng, &u, tally);
  assert_int_equal(ct_graph_info(b.g, &info), CT_OK);
  const int last = (int)info.tensors, loss = bed_loss(&b, u.tensor[u.count - 1], rng);
  if (u.count == INPUTS || ct_graph_gradients(b.g, loss, NULL, 0)) {
    if (u.count > INPUTS) assert_true(strstr(ct_graph_error(b.g), "gradient"));
    ++tally->without_gradient;
  } else {
    bed_check(&b);
    for (int t = 1; t <= last; ++t)
      bed_data(&b, t);
    bed_run(&b);
    tally->wild += wild(&b, last);
    if (!wild(&b, last)) {
      bed_compare(&b, loss, 4, rng, found, "a random graph");
      ++tally->compared;
    }
  }
  bed_free(&b);
}

static void test_random_graphs(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  struct bed_found found = {0};
  struct tally t = {0};
  for (int i = 0; i < GRAPHS; ++i)
    random_graph(&rng, &found, &t);
  print_message(
      "%zu nodes added, %zu refused; %zu graphs without gradient, %zu wild, %zu compared: %zu "
      "elements, %zu not 0, %zu at kinks\n",
      t.added, t.refused, t.without_gradient, t.wild, t.compared, found.compared, found.nonzero,
      found.kinks);
  assert_true(t.compared * 4 > GRAPHS && t.added > 2 * GRAPHS && t.refused > t.added);
  assert_true(found.nonzero * 4 > found.compared && found.kinks * 10 < found.compared);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator),      cmocka_unit_test(test_no_operator_is_missing),
      cmocka_unit_test(test_shared_and_unneeded), cmocka_unit_test(test_wanted),
      cmocka_unit_test(test_random_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
