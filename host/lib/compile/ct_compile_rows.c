/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that work row by row: softmax, losses, layer normalisation. */
#include "ct_compile_impl.h"

/* ---- Softmax ------------------------------------------------------------------------------- */

/* Rows along an axis: its dimension and the last one change places, in both directions alike. */
struct rows {
  bool turned;
  struct ct_shape shape; /* of the rows */
  uint32_t perm[CT_GRAPH_DIMS];
};

/* The axis in an attribute; -1 is the last dimension. */
static uint32_t axis_of(const struct ct_gnode *n, unsigned attr, const struct ct_shape *s) {
  return ct_attr(n, attr, 0) < 0 ? s->dims - 1 : ct_attr_u32(n, attr, 0);
}

static struct rows rows_along(const struct ct_gnode *n, const struct ct_shape *s) {
  const uint32_t last = s->dims - 1, axis = axis_of(n, 0, s);
  struct rows r = {.turned = axis != last, .shape = *s};
  for (uint32_t i = 0; i <= last; ++i)
    r.perm[i] = i == axis ? last : i == last ? axis : i;
  for (uint32_t i = 0; i <= last; ++i)
    r.shape.dim[i] = s->dim[r.perm[i]];
  return r;
}

static int row_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i,
                  const struct rows *r) {
  const int x = ct_value_plain_in(c, n, i);
  if (c->error || x == CT_NO_VALUE || !r->turned) return x;
  return ct_permuted(c, n, x, ct_in(c->g, n, i), r->perm);
}

static void rows_out(struct ct_compiler *c, const struct ct_gnode *n, int y, const struct rows *r) {
  if (!c->error && r->turned)
    y = ct_moved(c, n, ct_permuted(c, n, y, &r->shape, r->perm), ct_out(c->g, n, 0));
  ct_value_is(c, n->out[0], y);
}

void ct_lower_op_softmax(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct rows r = rows_along(n, ct_in(c->g, n, 0));
  const int x = row_in(c, n, 0, &r);
  if (c->error || x == CT_NO_VALUE) return;
  const int y = ct_value_like(c, x);
  struct ct_net_step *step = ct_step_add(c, CT_STEP_SOFTMAX, n);
  step->x = x;
  step->y = ct_step_makes(c, step, y);
  rows_out(c, n, y, &r);
}

/* gx = y (gy - sum gy y) */
void ct_lower_op_softmax_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct rows r = rows_along(n, ct_in(c->g, n, 1));
  const int gy = row_in(c, n, 0, &r), y = row_in(c, n, 1, &r);
  if (c->error || gy == CT_NO_VALUE || y == CT_NO_VALUE) return;
  const struct ct_sum_of of = {.x = gy, .less = CT_NO_VALUE, .times = y, .cols = true, .scale = 1};
  const int vals[3] = {gy, y, ct_value_sum(c, n, &of)};
  if (c->error) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 3, 2);
  const unsigned g = ct_tiles_in(&t, gy), sum = ct_tiles_in(&t, vals[2]);
  const unsigned less = ct_tiles_op(&t, CT_TILE_SUB, g, sum);
  const int gx = ct_value_like(c, y);
  ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_MUL, less, ct_tiles_in(&t, y)), gx);
  rows_out(c, n, gx, &r);
}

/* ---- Losses -------------------------------------------------------------------------------- */

/* The step of the loss of these logits and targets, whose gradient is 1; a new one if there is
 * none.
 */
static struct ct_net_step *loss_step(struct ct_compiler *c, const struct ct_gnode *n, int z,
                                     int t) {
  for (size_t i = 0; i < c->steps; ++i) {
    struct ct_net_step *s = &c->step[i];
    if (s->kind == CT_STEP_SOFTMAX && s->x == z && s->t == t && s->dy == CT_NO_VALUE) return s;
  }
  struct ct_net_step *s = ct_step_add(c, CT_STEP_SOFTMAX, n);
  s->x = z;
  s->t = t;
  return s;
}

void ct_lower_op_cross_entropy(struct ct_compiler *c, const struct ct_gnode *n) {
  const int z = ct_value_plain_in(c, n, 0), t = ct_value_plain_in(c, n, 1);
  if (c->error || z == CT_NO_VALUE || t == CT_NO_VALUE) return;
  struct ct_net_step *s = loss_step(c, n, z, t);
  if (s->loss == CT_NO_VALUE) s->loss = ct_step_makes(c, s, ct_value_new(c, 1, 1));
  ct_value_is(c, n->out[0], s->loss);
}

/* The gradient of the loss, z, t. Where it is 1 the step of the loss makes the gradient, too, once.
 */
void ct_lower_op_cross_entropy_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const int gy = ct_value_in(c, n, 0), z = ct_value_plain_in(c, n, 1),
            t = ct_value_plain_in(c, n, 2);
  if (c->error || z == CT_NO_VALUE || t == CT_NO_VALUE) return;
  const bool one = c->value[gy].constant && c->value[gy].number == 1.0f;
  struct ct_net_step *s = one ? loss_step(c, n, z, t) : ct_step_add(c, CT_STEP_SOFTMAX, n);
  s->x = z;
  s->t = t;
  if (s->dx == CT_NO_VALUE) s->dx = ct_step_makes(c, s, ct_value_like(c, z));
  if (!one) s->dy = gy;
  ct_value_is(c, n->out[0], s->dx);
}

/* The mean of (x - t)^2: columns are summed over the rows, then their sums. */
void ct_lower_op_mse(struct ct_compiler *c, const struct ct_gnode *n) {
  const int vals[2] = {ct_value_plain_in(c, n, 0), ct_value_plain_in(c, n, 1)};
  if (c->error || vals[0] == CT_NO_VALUE || vals[1] == CT_NO_VALUE) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 2, 1);
  const unsigned a = ct_tiles_in(&t, vals[0]), b = ct_tiles_in(&t, vals[1]);
  const int d = ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_SUB, a, b), CT_NO_VALUE);
  struct ct_sum_of sum = {
      .x = d, .less = CT_NO_VALUE, .times = CT_NO_VALUE, .squares = true, .scale = 1};
  sum.x = ct_value_sum(c, n, &sum);
  sum.squares = false;
  sum.cols = true;
  sum.scale = 1.0f / (float)ct_shape_elements(ct_in(c->g, n, 0));
  ct_value_is(c, n->out[0], ct_value_sum(c, n, &sum));
}

/* ---- Layer normalisation ------------------------------------------------------------------- */

enum { LAYER_EPSILON, LAYER_AXIS };

/* x in rows that are normalised, its mean, and 1 / root(variance + epsilon), for each row. */
struct layer {
  uint32_t cols;
  int x, mean, inverse;
};

static bool layer_of(struct ct_compiler *c, const struct ct_gnode *n, unsigned i,
                     struct layer *of) {
  const struct ct_shape *s = ct_in(c->g, n, i);
  of->cols = (uint32_t)ct_shape_part(s, axis_of(n, LAYER_AXIS, s), s->dims);
  of->x = ct_reshaped(c, n, i, of->cols);
  if (c->error || of->x == CT_NO_VALUE) return false;
  struct ct_sum_of sum = {.x = of->x,
                          .less = CT_NO_VALUE,
                          .times = CT_NO_VALUE,
                          .cols = true,
                          .scale = 1.0f / (float)of->cols};
  of->mean = ct_value_sum(c, n, &sum);
  sum.less = of->mean;
  sum.squares = true;
  const int variance = ct_value_sum(c, n, &sum);
  if (c->error) return false;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[of->x].rows, 1, false);
  const unsigned v =
      ct_tiles_axpb(&t, ct_tiles_in(&t, variance), 1, (float)ct_attr(n, LAYER_EPSILON, 0));
  of->inverse = ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_RSQRT, v, 0), CT_NO_VALUE);
  return !c->error;
}

/* (x - mean) inverse */
static unsigned normalised(struct ct_tiles *t, const struct layer *of) {
  const unsigned x = ct_tiles_in(t, of->x), mean = ct_tiles_in(t, of->mean);
  const unsigned d = ct_tiles_op(t, CT_TILE_SUB, x, mean);
  return ct_tiles_op(t, CT_TILE_MUL, d, ct_tiles_in(t, of->inverse));
}

void ct_lower_op_layer_norm(struct ct_compiler *c, const struct ct_gnode *n) {
  struct layer of;
  if (!layer_of(c, n, 0, &of)) return;
  const int scale = ct_reshaped(c, n, 1, of.cols), bias = ct_reshaped(c, n, 2, of.cols);
  if (c->error || scale == CT_NO_VALUE || (ct_has(n, 2) && bias == CT_NO_VALUE)) return;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[of.x].rows, of.cols, false);
  const unsigned h = normalised(&t, &of);
  unsigned y = ct_tiles_op(&t, CT_TILE_MUL, h, ct_tiles_in(&t, scale));
  if (bias != CT_NO_VALUE) y = ct_tiles_op(&t, CT_TILE_ADD, y, ct_tiles_in(&t, bias));
  ct_give(&t, n, 0, y, of.x);
}

/* h and s = gy scale, of which the gradients are sums. */
struct layer_parts {
  int gy, h, s;
};

static bool layer_parts(struct ct_compiler *c, const struct ct_gnode *n, const struct layer *of,
                        struct layer_parts *p) {
  const int scale = ct_reshaped(c, n, 2, of->cols);
  p->gy = ct_reshaped(c, n, 0, of->cols);
  if (c->error || scale == CT_NO_VALUE || p->gy == CT_NO_VALUE) return false;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[of->x].rows, of->cols, false);
  p->h = ct_tiles_make(&t, normalised(&t, of), CT_NO_VALUE);
  const unsigned g = ct_tiles_in(&t, p->gy);
  p->s = ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_MUL, g, ct_tiles_in(&t, scale)), CT_NO_VALUE);
  return !c->error;
}

/* Gradients of scale and bias. */
static void give_sums(struct ct_compiler *c, const struct ct_gnode *n,
                      const struct layer_parts *p) {
  const struct ct_sum_of gy = {.x = p->gy, .less = CT_NO_VALUE, .times = CT_NO_VALUE, .scale = 1};
  const struct ct_sum_of gy_h = {.x = p->h, .less = CT_NO_VALUE, .times = p->gy, .scale = 1};
  int bias, scale;
  if (c->readers[n->out[1]] && c->readers[n->out[2]]) {
    scale = ct_value_sums(c, n, &gy_h, &bias);
    ct_value_is(c, n->out[1], scale);
    ct_value_is(c, n->out[2], bias);
  } else if (c->readers[n->out[1]]) {
    ct_value_is(c, n->out[1], ct_value_sum(c, n, &gy_h));
  } else if (c->readers[n->out[2]]) {
    ct_value_is(c, n->out[2], ct_value_sum(c, n, &gy));
  }
}

/* gy, x, scale; gives the gradients of x, scale and bias:
 * gx = ((s - mean of s) - h (mean of s h)) inverse */
void ct_lower_op_layer_norm_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct layer of;
  struct layer_parts p;
  if (!layer_of(c, n, 1, &of) || !layer_parts(c, n, &of, &p)) return;
  const struct ct_sum_of means = {
      .x = p.h, .less = CT_NO_VALUE, .times = p.s, .cols = true, .scale = 1.0f / (float)of.cols};
  int mean;
  const int mean_h = ct_value_sums(c, n, &means, &mean);
  give_sums(c, n, &p);
  if (c->error) return;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[of.x].rows, of.cols, false);
  const unsigned less = ct_tiles_op(&t, CT_TILE_SUB, ct_tiles_in(&t, p.s), ct_tiles_in(&t, mean));
  const unsigned part = ct_tiles_op(&t, CT_TILE_MUL, ct_tiles_in(&t, p.h), ct_tiles_in(&t, mean_h));
  const unsigned rest = ct_tiles_op(&t, CT_TILE_SUB, less, part);
  const unsigned gx = ct_tiles_op(&t, CT_TILE_MUL, rest, ct_tiles_in(&t, of.inverse));
  ct_give(&t, n, 0, gx, of.x);
}
