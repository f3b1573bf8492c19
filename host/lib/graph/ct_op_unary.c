/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on each element alone. One is two functions and a line: f(x), its derivative d, and of
 * what d is a function: OF_X, or OF_Y for y = f(x), so that x need not be kept.
 */
#include <math.h>

#include "ct_op.h"
#include "ct_real.h"

enum of { OF_X, OF_Y };

struct unary {
  double (*f)(double x, const struct ct_gnode *n);
  double (*d)(double v, const struct ct_gnode *n);
  enum of of;
  const char *grad;
  int (*check)(ct_graph *g, const struct ct_gnode *n); /* of attributes; NULL: all are good */
};

static const struct unary *unary_of(const struct ct_gnode *n) {
  return n->op->own;
}

static int unary_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const int err = unary_of(n)->check ? unary_of(n)->check(g, n) : CT_OK;
  return err ? err : ct_shape_of_first(g, n, out);
}

static int unary_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  ct_shape_of_first(g, n, out);
  return ct_need_shape(g, n, 1, out, "the value of the function");
}

static void unary_reference(const struct ct_ref_call *c) {
  const struct unary *u = unary_of(c->n);
  const uint64_t count = ct_shape_elements(ct_out(c->g, c->n, 0));
  for (uint64_t i = 0; i < count; ++i)
    c->out[0][i] = u->f(c->in[0][i], c->n);
}

static void unary_grad_reference(const struct ct_ref_call *c) {
  const struct unary *u = unary_of(c->n);
  const uint64_t count = ct_shape_elements(ct_out(c->g, c->n, 0));
  for (uint64_t i = 0; i < count; ++i)
    c->out[0][i] = c->in[0][i] * u->d(c->in[1][i], c->n);
}

static void unary_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  struct ct_attr attrs[CT_GOP_ATTRS];
  size_t count = 0;
  for (; n->op->attrs && n->op->attrs[count].name; ++count)
    attrs[count] = ct_attr_copy(n, (unsigned)count);
  gx[0] = CT_EMIT(g, n, .op = unary_of(n)->grad,
                  CT_IN(gy[0], unary_of(n)->of == OF_Y ? n->out[0] : n->in[0]), .attrs = attrs,
                  .attr_count = count);
}

#define UNARY(name_, of_, attrs_, check_)                                                        \
  static const struct unary name_##_unary = {name_##_f, name_##_d, of_, #name_ "_grad", check_}; \
  const struct ct_gop ct_gop_##name_ = {.name = #name_,                                          \
                                        .inputs = 1,                                             \
                                        .outputs = 1,                                            \
                                        .attrs = (attrs_),                                       \
                                        .shape = unary_shape,                                    \
                                        .grad = unary_grad,                                      \
                                        .reference = unary_reference,                            \
                                        .own = &name_##_unary};                                  \
  const struct ct_gop ct_gop_##name_##_grad = {.name = #name_ "_grad",                           \
                                               .inputs = 2,                                      \
                                               .outputs = 1,                                     \
                                               .attrs = (attrs_),                                \
                                               .shape = unary_grad_shape,                        \
                                               .reference = unary_grad_reference,                \
                                               .own = &name_##_unary}

/* ---- ReLU and what is like it -------------------------------------------------------------- */

static double relu_f(double x, const struct ct_gnode *n) {
  (void)n;
  return x < 0 ? 0 : x;
}
static double relu_d(double y, const struct ct_gnode *n) {
  (void)n;
  return y > 0;
}
UNARY(relu, OF_Y, NULL, NULL);

static const struct ct_attr_rule leaky_attrs[] = {CT_NUMBER("alpha", -1e6, 1e6, 0.01), {0}};
static double leaky_relu_f(double x, const struct ct_gnode *n) {
  return x < 0 ? ct_attr(n, 0, 0) * x : x;
}
static double leaky_relu_d(double x, const struct ct_gnode *n) {
  return x > 0 ? 1 : ct_attr(n, 0, 0);
}
UNARY(leaky_relu, OF_X, leaky_attrs, NULL);

enum { CLIP_MIN, CLIP_MAX };
static const struct ct_attr_rule clip_attrs[] = {CT_NUMBER("min", -INFINITY, INFINITY, -INFINITY),
                                                 CT_NUMBER("max", -INFINITY, INFINITY, INFINITY),
                                                 {0}};
static int clip_check(ct_graph *g, const struct ct_gnode *n) {
  if (ct_attr(n, CLIP_MIN, 0) <= ct_attr(n, CLIP_MAX, 0)) return CT_OK;
  return ct_refuse(g, n, "min %g is above max %g", ct_attr(n, CLIP_MIN, 0),
                   ct_attr(n, CLIP_MAX, 0));
}
static double clip_f(double x, const struct ct_gnode *n) {
  const double low = ct_attr(n, CLIP_MIN, 0), high = ct_attr(n, CLIP_MAX, 0);
  return x < low ? low : x > high ? high : x;
}
static double clip_d(double y, const struct ct_gnode *n) {
  return y > ct_attr(n, CLIP_MIN, 0) && y < ct_attr(n, CLIP_MAX, 0);
}
UNARY(clip, OF_Y, clip_attrs, clip_check);

/* ---- Smooth functions ---------------------------------------------------------------------- */

static double sigmoid_f(double x, const struct ct_gnode *n) {
  (void)n;
  return ct_real_sigmoid(x);
}
static double sigmoid_d(double y, const struct ct_gnode *n) {
  (void)n;
  return y * (1 - y);
}
UNARY(sigmoid, OF_Y, NULL, NULL);

static double tanh_f(double x, const struct ct_gnode *n) {
  (void)n;
  return ct_real_tanh(x);
}
static double tanh_d(double y, const struct ct_gnode *n) {
  (void)n;
  return 1 - y * y;
}
UNARY(tanh, OF_Y, NULL, NULL);

/* 2 / sqrt(pi), 1 / sqrt(2), 1 / sqrt(2 pi) */
#define TWO_BY_ROOT_PI 0x1.20dd750429b6dp+0
#define ROOT_HALF 0x1.6a09e667f3bcdp-1
#define ONE_BY_ROOT_TWO_PI 0x1.9884533d43651p-2

static double erf_f(double x, const struct ct_gnode *n) {
  (void)n;
  return ct_real_erf(x);
}
static double erf_d(double x, const struct ct_gnode *n) {
  (void)n;
  return TWO_BY_ROOT_PI * ct_real_exp(-x * x);
}
UNARY(erf, OF_X, NULL, NULL);

/* x times the normal distribution's integral up to x. */
static double gelu_f(double x, const struct ct_gnode *n) {
  (void)n;
  return 0.5 * x * (1 + ct_real_erf(x * ROOT_HALF));
}
static double gelu_d(double x, const struct ct_gnode *n) {
  (void)n;
  return 0.5 * (1 + ct_real_erf(x * ROOT_HALF)) + x * ONE_BY_ROOT_TWO_PI * ct_real_exp(-x * x / 2);
}
UNARY(gelu, OF_X, NULL, NULL);

/* ---- Times a constant ---------------------------------------------------------------------- */

static const struct ct_attr_rule scale_attrs[] = {CT_NUMBER("factor", -1e30, 1e30, NAN), {0}};

static void scale_reference(const struct ct_ref_call *c) {
  const uint64_t count = ct_shape_elements(ct_out(c->g, c->n, 0));
  for (uint64_t i = 0; i < count; ++i)
    c->out[0][i] = c->in[0][i] * ct_attr(c->n, 0, 0);
}

static void scale_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  gx[0] = CT_EMIT(g, n, .op = "scale", CT_IN(gy[0]), CT_ATTRS(ct_attr_copy(n, 0)));
}

const struct ct_gop ct_gop_scale = {.name = "scale",
                                    .inputs = 1,
                                    .outputs = 1,
                                    .attrs = scale_attrs,
                                    .shape = ct_shape_of_first,
                                    .grad = scale_grad,
                                    .reference = scale_reference};
