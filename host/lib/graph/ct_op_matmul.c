/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices. "linear": y = x w^T + b, w (outputs, inputs), over the last dimension of x.
 * "matmul": the last two dimensions of both, each transposed or not; those in front are batches and
 * are broadcast.
 */
#include "ct_op.h"

/* c (m x n) += a (m x k) b (k x n); how far it is to the next row and column of each. */
struct product {
  uint64_t m, n, k, a_row, a_col, b_row, b_col;
};

static void multiply(const struct product *p, const double *a, const double *b, double *c) {
  for (uint64_t i = 0; i < p->m; ++i)
    for (uint64_t j = 0; j < p->n; ++j)
      for (uint64_t k = 0; k < p->k; ++k)
        c[i * p->n + j] += a[i * p->a_row + k * p->a_col] * b[k * p->b_row + j * p->b_col];
}

/* ---- Linear -------------------------------------------------------------------------------- */

static int linear_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *x = ct_in(g, n, 0), *w = ct_in(g, n, 1);
  if (x->dims < 2 || w->dims != 2 || x->dim[x->dims - 1] != w->dim[1])
    return ct_refuse(g, n,
                     "its input is %s and its weights are %s: the weights must be outputs x inputs",
                     CT_SHAPE(x), CT_SHAPE(w));
  out[0] = ct_shape_last(x, w->dim[0]);
  return ct_need_shape(g, n, 2, &(struct ct_shape){1, {w->dim[0]}}, "its bias");
}

static void linear_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0), *w = ct_in(c->g, c->n, 1);
  const struct product p = {.m = ct_shape_part(x, 0, x->dims - 1),
                            .n = w->dim[0],
                            .k = w->dim[1],
                            .a_row = w->dim[1],
                            .a_col = 1,
                            .b_row = 1,
                            .b_col = w->dim[1]};
  for (uint64_t i = 0; ct_has(c->n, 2) && i < p.m * p.n; ++i)
    c->out[0][i] = c->in[2][i % p.n];
  multiply(&p, c->in[0], c->in[1], c->out[0]);
}

/* As matrices of two dimensions: gx = gy w, gw = gy^T x. */
static void linear_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_shape *x = ct_in(g, n, 0), *w = ct_in(g, n, 1);
  const uint32_t rows = (uint32_t)ct_shape_part(x, 0, x->dims - 1);
  const int flat = ct_emit_reshape(g, n, gy[0], &(struct ct_shape){2, {rows, w->dim[0]}});
  if (ct_wants(g, n, 0))
    gx[0] = ct_emit_reshape(g, n, CT_EMIT(g, n, .op = "matmul", CT_IN(flat, n->in[1])), x);
  if (ct_wants(g, n, 1)) {
    const int rows_of_x = ct_emit_reshape(g, n, n->in[0], &(struct ct_shape){2, {rows, w->dim[1]}});
    gx[1] =
        CT_EMIT(g, n, .op = "matmul", CT_IN(flat, rows_of_x), CT_ATTRS({"transpose_a", 1, {1}}));
  }
  if (ct_wants(g, n, 2)) gx[2] = ct_emit_sum_to(g, n, gy[0], ct_in(g, n, 2));
}

static uint64_t linear_macs(const ct_graph *g, const struct ct_gnode *n) {
  return ct_macs(ct_shape_elements(ct_out(g, n, 0)), ct_in(g, n, 1)->dim[1]);
}

const struct ct_gop ct_gop_linear = {.name = "linear",
                                     .inputs = 2,
                                     .optional = 1,
                                     .outputs = 1,
                                     .shape = linear_shape,
                                     .grad = linear_grad,
                                     .reference = linear_reference,
                                     .macs = linear_macs};

/* ---- Batched product ----------------------------------------------------------------------- */

enum { TRANSPOSE_A, TRANSPOSE_B };
static const struct ct_attr_rule matmul_attrs[] = {
    CT_WHOLE("transpose_a", 1, 0, 1, 0), CT_WHOLE("transpose_b", 1, 0, 1, 0), {0}};

static bool transposed(const struct ct_gnode *n, unsigned which) {
  return ct_attr(n, which, 0) != 0;
}

/* The batches of operand i: its dimensions but the last two, as two. */
static void batches(const struct ct_shape *s, uint32_t b[2]) {
  b[0] = s->dims > 3 ? s->dim[s->dims - 4] : 1;
  b[1] = s->dims > 2 ? s->dim[s->dims - 3] : 1;
}

/* One product, its batches in a and b. */
static struct product product_of(const ct_graph *g, const struct ct_gnode *n) {
  const struct ct_shape *a = ct_in(g, n, 0), *b = ct_in(g, n, 1);
  const uint32_t a_rows = a->dim[a->dims - 2], a_cols = a->dim[a->dims - 1];
  const uint32_t b_rows = b->dim[b->dims - 2], b_cols = b->dim[b->dims - 1];
  const bool ta = transposed(n, TRANSPOSE_A), tb = transposed(n, TRANSPOSE_B);
  return (struct product){.m = ta ? a_cols : a_rows,
                          .k = ta ? a_rows : a_cols,
                          .n = tb ? b_rows : b_cols,
                          .a_row = ta ? 1 : a_cols,
                          .a_col = ta ? a_cols : 1,
                          .b_row = tb ? 1 : b_cols,
                          .b_col = tb ? b_cols : 1};
}

static int matmul_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *a = ct_in(g, n, 0), *b = ct_in(g, n, 1);
  if (a->dims < 2 || b->dims < 2)
    return ct_refuse(g, n, "its inputs are %s and %s: they must have 2 dimensions or more",
                     CT_SHAPE(a), CT_SHAPE(b));
  const struct product p = product_of(g, n);
  const uint32_t inner = b->dim[b->dims - (transposed(n, TRANSPOSE_B) ? 1 : 2)];
  uint32_t x[2], y[2];
  batches(a, x);
  batches(b, y);
  const bool fit =
      (x[0] == y[0] || x[0] == 1 || y[0] == 1) && (x[1] == y[1] || x[1] == 1 || y[1] == 1);
  if (p.k != inner || !fit)
    return ct_refuse(g, n, "%s%s cannot be multiplied by %s%s", CT_SHAPE(a),
                     transposed(n, TRANSPOSE_A) ? " transposed" : "", CT_SHAPE(b),
                     transposed(n, TRANSPOSE_B) ? " transposed" : "");
  out->dims = a->dims > b->dims ? a->dims : b->dims;
  const uint32_t all[4] = {x[0] == 1 ? y[0] : x[0], x[1] == 1 ? y[1] : x[1], (uint32_t)p.m,
                           (uint32_t)p.n};
  for (uint32_t i = 0; i < out->dims; ++i)
    out->dim[i] = all[4 - out->dims + i];
  return CT_OK;
}

static void matmul_reference(const struct ct_ref_call *c) {
  const struct product p = product_of(c->g, c->n);
  uint32_t a[2], b[2], y[2];
  batches(ct_in(c->g, c->n, 0), a);
  batches(ct_in(c->g, c->n, 1), b);
  batches(ct_out(c->g, c->n, 0), y);
  for (uint64_t i = 0; i < (uint64_t)y[0] * y[1]; ++i) {
    const uint64_t outer = i / y[1], inner = i % y[1];
    const uint64_t at_a = (a[0] == 1 ? 0 : outer * a[1]) + (a[1] == 1 ? 0 : inner);
    const uint64_t at_b = (b[0] == 1 ? 0 : outer * b[1]) + (b[1] == 1 ? 0 : inner);
    multiply(&p, c->in[0] + at_a * p.m * p.k, c->in[1] + at_b * p.k * p.n,
             c->out[0] + i * p.m * p.n);
  }
}

static int emit_product(ct_graph *g, const struct ct_gnode *n, int a, bool ta, int b, bool tb) {
  return CT_EMIT(g, n, .op = "matmul", CT_IN(a, b),
                 CT_ATTRS({"transpose_a", 1, {ta}}, {"transpose_b", 1, {tb}}));
}

/* y = op(a) op(b): op(a)' = gy op(b)^T and op(b)' = op(a)^T gy, and their transposes. */
static void matmul_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const bool ta = transposed(n, TRANSPOSE_A), tb = transposed(n, TRANSPOSE_B);
  const int a = n->in[0], b = n->in[1];
  if (ct_wants(g, n, 0)) {
    const int ga =
        ta ? emit_product(g, n, b, tb, gy[0], true) : emit_product(g, n, gy[0], false, b, !tb);
    gx[0] = ct_emit_sum_to(g, n, ga, ct_in(g, n, 0));
  }
  if (ct_wants(g, n, 1)) {
    const int gb =
        tb ? emit_product(g, n, gy[0], true, a, ta) : emit_product(g, n, a, !ta, gy[0], false);
    gx[1] = ct_emit_sum_to(g, n, gb, ct_in(g, n, 1));
  }
}

static uint64_t matmul_macs(const ct_graph *g, const struct ct_gnode *n) {
  return ct_macs(ct_shape_elements(ct_out(g, n, 0)), product_of(g, n).k);
}

const struct ct_gop ct_gop_matmul = {.name = "matmul",
                                     .inputs = 2,
                                     .outputs = 1,
                                     .attrs = matmul_attrs,
                                     .shape = matmul_shape,
                                     .grad = matmul_grad,
                                     .reference = matmul_reference,
                                     .macs = matmul_macs};
