/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on two tensors, element by element, broadcast as ONNX and NumPy do: shapes are put side
 * by side from the last dimension on, and what is 1 or missing is repeated. The gradient of what
 * was repeated is a sum: "sum_to".
 */
#include <math.h>

#include "ct_op.h"

/* ---- Broadcasting -------------------------------------------------------------------------- */

/* Dimension i of CT_GRAPH_DIMS, as if there were ones in front. */
static uint32_t wide_dim(const struct ct_shape *s, unsigned i) {
  const unsigned ahead = CT_GRAPH_DIMS - s->dims;
  return i < ahead ? 1 : s->dim[i - ahead];
}

static int spread(const struct ct_shape *a, const struct ct_shape *b, struct ct_shape *out) {
  const unsigned dims = a->dims > b->dims ? a->dims : b->dims;
  out->dims = dims;
  for (unsigned i = 0; i < dims; ++i) {
    const uint32_t x = wide_dim(a, CT_GRAPH_DIMS - dims + i);
    const uint32_t y = wide_dim(b, CT_GRAPH_DIMS - dims + i);
    if (x != y && x != 1 && y != 1) return CT_ERR_ARG;
    out->dim[i] = x == 1 ? y : x;
  }
  return CT_OK;
}

/* How far it is in s from one element of dimension i to the next; 0 where s is repeated. */
struct steps {
  uint64_t by[CT_GRAPH_DIMS];
};

static struct steps steps_of(const struct ct_shape *s) {
  struct steps t;
  uint64_t step = 1;
  for (unsigned i = CT_GRAPH_DIMS; i-- > 0;) {
    t.by[i] = wide_dim(s, i) == 1 ? 0 : step;
    step *= wide_dim(s, i);
  }
  return t;
}

static uint64_t place(const struct steps *s, const uint32_t *at) {
  return at[0] * s->by[0] + at[1] * s->by[1] + at[2] * s->by[2] + at[3] * s->by[3];
}

/* The next element of a shape; false behind the last. */
static bool advance(const struct ct_shape *s, uint32_t *at) {
  for (unsigned i = CT_GRAPH_DIMS; i-- > 0;) {
    if (++at[i] < wide_dim(s, i)) return true;
    at[i] = 0;
  }
  return false;
}

/* ---- Two operands -------------------------------------------------------------------------- */

static int binary_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  if (!spread(ct_in(g, n, 0), ct_in(g, n, 1), out)) return CT_OK;
  return ct_refuse(g, n, "%s and %s cannot be broadcast to one shape", CT_SHAPE(ct_in(g, n, 0)),
                   CT_SHAPE(ct_in(g, n, 1)));
}

typedef double binary_fn(double a, double b);

static void binary_reference(const struct ct_ref_call *c, binary_fn *f) {
  const struct ct_shape *out = ct_out(c->g, c->n, 0);
  const struct steps a = steps_of(ct_in(c->g, c->n, 0)), b = steps_of(ct_in(c->g, c->n, 1));
  uint32_t at[CT_GRAPH_DIMS] = {0};
  double *y = c->out[0];
  do {
    *y++ = f(c->in[0][place(&a, at)], c->in[1][place(&b, at)]);
  } while (advance(out, at));
}

/* gx[i] = g, summed over what was broadcast. */
static void give(ct_graph *g, const struct ct_gnode *n, unsigned i, int gradient, int *gx) {
  gx[i] = ct_emit_sum_to(g, n, gradient, ct_in(g, n, i));
}

#define BINARY(name_)                                          \
  static void name_##_reference(const struct ct_ref_call *c) { \
    binary_reference(c, name_##_f);                            \
  }                                                            \
  const struct ct_gop ct_gop_##name_ = {.name = #name_,        \
                                        .inputs = 2,           \
                                        .outputs = 1,          \
                                        .shape = binary_shape, \
                                        .grad = name_##_grad,  \
                                        .reference = name_##_reference}

static double add_f(double a, double b) {
  return a + b;
}
static void add_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  for (unsigned i = 0; i < 2; ++i)
    if (ct_wants(g, n, i)) give(g, n, i, gy[0], gx);
}
BINARY(add);

static double sub_f(double a, double b) {
  return a - b;
}
static void sub_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_attr minus = {"factor", 1, {-1}};
  if (ct_wants(g, n, 0)) give(g, n, 0, gy[0], gx);
  if (ct_wants(g, n, 1))
    give(g, n, 1, CT_EMIT(g, n, .op = "scale", CT_IN(gy[0]), CT_ATTRS(minus)), gx);
}
BINARY(sub);

static double mul_f(double a, double b) {
  return a * b;
}
static void mul_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  for (unsigned i = 0; i < 2; ++i)
    if (ct_wants(g, n, i))
      give(g, n, i, CT_EMIT(g, n, .op = "mul", CT_IN(gy[0], n->in[1 - i])), gx);
}
BINARY(mul);

static double div_f(double a, double b) {
  return a / b;
}
/* y = a / b: gy / b, and -(gy / b) y. */
static void div_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_attr minus = {"factor", 1, {-1}};
  const int ga = CT_EMIT(g, n, .op = "div", CT_IN(gy[0], n->in[1]));
  if (ct_wants(g, n, 0)) give(g, n, 0, ga, gx);
  if (ct_wants(g, n, 1)) {
    const int product = CT_EMIT(g, n, .op = "mul", CT_IN(ga, n->out[0]));
    give(g, n, 1, CT_EMIT(g, n, .op = "scale", CT_IN(product), CT_ATTRS(minus)), gx);
  }
}
BINARY(div);

/* ---- Sums over what was broadcast ---------------------------------------------------------- */

static const struct ct_attr_rule shape_attrs[] = {
    CT_LIST("shape", CT_GRAPH_DIMS, 1, CT_GRAPH_MOST_DIM), {0}};

static struct ct_shape attr_shape(const struct ct_gnode *n, unsigned attr) {
  struct ct_shape s = {.dims = n->attr[attr].count};
  for (unsigned i = 0; i < s.dims; ++i)
    s.dim[i] = ct_attr_u32(n, attr, i);
  return s;
}

static int sum_to_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  struct ct_shape wide;
  out[0] = attr_shape(n, 0);
  if (!spread(ct_in(g, n, 0), out, &wide) && ct_shape_same(&wide, ct_in(g, n, 0))) return CT_OK;
  return ct_refuse(g, n, "%s cannot be summed to %s", CT_SHAPE(ct_in(g, n, 0)), CT_SHAPE(out));
}

static void sum_to_reference(const struct ct_ref_call *c) {
  const struct ct_shape *in = ct_in(c->g, c->n, 0);
  const struct steps to = steps_of(ct_out(c->g, c->n, 0));
  uint32_t at[CT_GRAPH_DIMS] = {0};
  const double *x = c->in[0];
  do {
    c->out[0][place(&to, at)] += *x++;
  } while (advance(in, at));
}

/* The gradient is repeated again: an addition to zeros does it. */
static void sum_to_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const int zeros = CT_EMIT(g, n, .op = "fill",
                            CT_ATTRS(ct_attr_shape("shape", ct_in(g, n, 0)), {"value", 1, {0}}));
  gx[0] = CT_EMIT(g, n, .op = "add", CT_IN(zeros, gy[0]));
}

const struct ct_gop ct_gop_sum_to = {.name = "sum_to",
                                     .inputs = 1,
                                     .outputs = 1,
                                     .attrs = shape_attrs,
                                     .shape = sum_to_shape,
                                     .grad = sum_to_grad,
                                     .reference = sum_to_reference};

/* ---- Constants ----------------------------------------------------------------------------- */

static const struct ct_attr_rule fill_attrs[] = {
    CT_LIST("shape", CT_GRAPH_DIMS, 1, CT_GRAPH_MOST_DIM), CT_NUMBER("value", -1e30, 1e30, 0), {0}};

static int fill_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  (void)g;
  out[0] = attr_shape(n, 0);
  return CT_OK;
}

static void fill_reference(const struct ct_ref_call *c) {
  const uint64_t count = ct_shape_elements(ct_out(c->g, c->n, 0));
  for (uint64_t i = 0; i < count; ++i)
    c->out[0][i] = ct_attr(c->n, 1, 0);
}

const struct ct_gop ct_gop_fill = {.name = "fill",
                                   .outputs = 1,
                                   .attrs = fill_attrs,
                                   .shape = fill_shape,
                                   .reference = fill_reference};
