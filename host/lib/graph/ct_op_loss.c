/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax along an axis, and losses, which are scalars. cross_entropy: the mean over the rows of
 * sum t (log sum exp z - z), of logits z and targets t, which are probabilities (one-hot or soft).
 * mse: the mean of all (x - t)^2.
 */
#include <math.h>

#include "ct_op.h"
#include "ct_real.h"

/* ---- Softmax ------------------------------------------------------------------------------- */

static const struct ct_attr_rule softmax_attrs[] = {CT_WHOLE("axis", 1, -1, CT_GRAPH_DIMS - 1, -1),
                                                    {0}};

/* Rows along an axis: element k of row i is at start(i) + k * step. */
struct rows {
  uint64_t count, length, step;
};

static struct rows rows_along(const struct ct_shape *s, uint32_t axis) {
  const uint64_t length = s->dim[axis];
  return (struct rows){ct_shape_elements(s) / length, length, ct_shape_part(s, axis + 1, s->dims)};
}

static uint64_t start(const struct rows *r, uint64_t i) {
  return i / r->step * r->step * r->length + i % r->step;
}

static uint32_t axis_of(const struct ct_gnode *n, const struct ct_shape *x) {
  return ct_attr(n, 0, 0) < 0 ? x->dims - 1 : ct_attr_u32(n, 0, 0);
}

static int softmax_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  out[0] = *ct_in(g, n, 0);
  if (axis_of(n, out) >= out->dims)
    return ct_refuse(g, n, "its input is %s, it has no axis %u", CT_SHAPE(out), axis_of(n, out));
  return ct_need_shape(g, n, 1, out, "its output");
}

/* The largest of a row, and the sum of exp(x - largest), which cannot overflow. */
struct peak {
  double most, sum;
};

static struct peak peak_of(const struct rows *r, const double *x) {
  struct peak p = {x[0], 0};
  for (uint64_t k = 1; k < r->length; ++k)
    if (x[k * r->step] > p.most) p.most = x[k * r->step];
  for (uint64_t k = 0; k < r->length; ++k)
    p.sum += ct_real_exp(x[k * r->step] - p.most);
  return p;
}

static double share(const struct peak *p, double x) {
  return ct_real_exp(x - p->most) / p->sum;
}

static void softmax_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0);
  const struct rows r = rows_along(x, axis_of(c->n, x));
  for (uint64_t i = 0; i < r.count; ++i) {
    const uint64_t at = start(&r, i);
    const struct peak p = peak_of(&r, c->in[0] + at);
    for (uint64_t k = 0; k < r.length; ++k)
      c->out[0][at + k * r.step] = share(&p, c->in[0][at + k * r.step]);
  }
}

/* gx = y (gy - sum gy y). */
static void softmax_grad_reference(const struct ct_ref_call *c) {
  const struct ct_shape *y = ct_in(c->g, c->n, 1);
  const struct rows r = rows_along(y, axis_of(c->n, y));
  for (uint64_t i = 0; i < r.count; ++i) {
    const uint64_t at = start(&r, i);
    double sum = 0;
    for (uint64_t k = 0; k < r.length; ++k)
      sum += c->in[0][at + k * r.step] * c->in[1][at + k * r.step];
    for (uint64_t k = 0; k < r.length; ++k)
      c->out[0][at + k * r.step] = c->in[1][at + k * r.step] * (c->in[0][at + k * r.step] - sum);
  }
}

static void softmax_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  gx[0] =
      CT_EMIT(g, n, .op = "softmax_grad", CT_IN(gy[0], n->out[0]), CT_ATTRS(ct_attr_copy(n, 0)));
}

const struct ct_gop ct_gop_softmax = {.name = "softmax",
                                      .inputs = 1,
                                      .outputs = 1,
                                      .attrs = softmax_attrs,
                                      .shape = softmax_shape,
                                      .grad = softmax_grad,
                                      .reference = softmax_reference};
const struct ct_gop ct_gop_softmax_grad = {.name = "softmax_grad",
                                           .inputs = 2,
                                           .outputs = 1,
                                           .attrs = softmax_attrs,
                                           .shape = softmax_shape,
                                           .reference = softmax_grad_reference};

/* ---- Losses -------------------------------------------------------------------------------- */

static int targets_fit(ct_graph *g, const struct ct_gnode *n, unsigned i) {
  return ct_need_shape(g, n, i + 1, ct_in(g, n, i), "its targets");
}

static int loss_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const int err = targets_fit(g, n, 0);
  return err ? err : ct_shape_scalar(g, n, out);
}

static int no_target_gradient(ct_graph *g, const struct ct_gnode *n) {
  return ct_refuse(g, n, "its targets (%.80s) have no gradient", g->tensor[n->in[1]]->name);
}

static void entropy_reference(const struct ct_ref_call *c) {
  const struct ct_shape *z = ct_in(c->g, c->n, 0);
  const struct rows r = rows_along(z, z->dims - 1);
  for (uint64_t i = 0; i < r.count; ++i) {
    const double *row = c->in[0] + i * r.length, *t = c->in[1] + i * r.length;
    const struct peak p = peak_of(&r, row);
    for (uint64_t k = 0; k < r.length; ++k)
      c->out[0][0] += t[k] * (p.most - row[k] + ct_real_log(p.sum)) / (double)r.count;
  }
}

static void entropy_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  gx[0] = CT_EMIT(g, n, .op = "cross_entropy_grad", CT_IN(gy[0], n->in[0], n->in[1]));
  if (ct_wants(g, n, 1)) gx[0] = no_target_gradient(g, n);
}

/* The gradient of the loss, z, t. */
static int entropy_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  out[0] = *ct_in(g, n, 1);
  const int err = ct_need_shape(g, n, 0, &(struct ct_shape){1, {1}}, "the gradient of the loss");
  return err ? err : targets_fit(g, n, 1);
}

/* softmax(z) times the sum of t, less t. */
static void entropy_grad_reference(const struct ct_ref_call *c) {
  const struct ct_shape *z = ct_in(c->g, c->n, 1);
  const struct rows r = rows_along(z, z->dims - 1);
  for (uint64_t i = 0; i < r.count; ++i) {
    const double *row = c->in[1] + i * r.length, *t = c->in[2] + i * r.length;
    const struct peak p = peak_of(&r, row);
    double sum = 0;
    for (uint64_t k = 0; k < r.length; ++k)
      sum += t[k];
    for (uint64_t k = 0; k < r.length; ++k)
      c->out[0][i * r.length + k] =
          c->in[0][0] * (share(&p, row[k]) * sum - t[k]) / (double)r.count;
  }
}

const struct ct_gop ct_gop_cross_entropy = {.name = "cross_entropy",
                                            .inputs = 2,
                                            .outputs = 1,
                                            .shape = loss_shape,
                                            .grad = entropy_grad,
                                            .reference = entropy_reference};
const struct ct_gop ct_gop_cross_entropy_grad = {.name = "cross_entropy_grad",
                                                 .inputs = 3,
                                                 .outputs = 1,
                                                 .shape = entropy_grad_shape,
                                                 .reference = entropy_grad_reference};

static void mse_reference(const struct ct_ref_call *c) {
  const uint64_t count = ct_shape_elements(ct_in(c->g, c->n, 0));
  for (uint64_t i = 0; i < count; ++i)
    c->out[0][0] += (c->in[0][i] - c->in[1][i]) * (c->in[0][i] - c->in[1][i]) / (double)count;
}

/* 2 / n (x - t), times the loss's gradient. */
static void mse_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const double factor = 2 / (double)ct_shape_elements(ct_in(g, n, 0));
  for (unsigned i = 0; i < 2; ++i)
    if (ct_wants(g, n, i)) {
      const int d = CT_EMIT(g, n, .op = "sub", CT_IN(n->in[i], n->in[1 - i]));
      const int scaled = CT_EMIT(g, n, .op = "scale", CT_IN(d), CT_ATTRS({"factor", 1, {factor}}));
      gx[i] = CT_EMIT(g, n, .op = "mul", CT_IN(scaled, gy[0]));
    }
}

const struct ct_gop ct_gop_mse = {.name = "mse",
                                  .inputs = 2,
                                  .outputs = 1,
                                  .shape = loss_shape,
                                  .grad = mse_grad,
                                  .reference = mse_reference};
