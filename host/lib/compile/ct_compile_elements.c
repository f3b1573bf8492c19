/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that work element by element. */
#include "ct_compile_impl.h"

/* ---- What they share ----------------------------------------------------------------------- */

static bool one_number(const struct ct_val *v) {
  return v->rows == 1 && v->cols == 1 && v->kind == CT_LAY_MATRIX;
}

/* The value is spread over another one as its tensor is over the node's output, or has a place for
 * each element of that. Weights of a layer have no row or column that is one of their tensor. */
static bool fits(const struct ct_compiler *c, const struct ct_gnode *n, unsigned i, int value,
                 int like) {
  const struct ct_val *v = &c->value[value], *to = &c->value[like];
  const struct ct_shape *y = ct_out(c->g, n, 0);
  if (one_number(v)) return true;
  if (v->rows == to->rows && v->cols == to->cols)
    return v->kind == to->kind && ct_same_weights(&v->weight, &to->weight);
  const bool row = v->rows == 1 && v->cols == to->cols, col = v->cols == 1 && v->rows == to->rows;
  return (row || col) && v->kind == CT_LAY_MATRIX && to->kind == CT_LAY_MATRIX &&
         ct_value_plain(c, n->in[i]) && to->cols == ct_shape_cols(y);
}

static int largest(const struct ct_compiler *c, const int *vals, unsigned count) {
  int like = vals[0];
  for (unsigned i = 1; i < count; ++i)
    if ((uint64_t)c->value[vals[i]].rows * c->value[vals[i]].cols >
        (uint64_t)c->value[like].rows * c->value[like].cols)
      like = vals[i];
  return like;
}

/* It has a place for each element of the node's output. */
static bool is_whole(const struct ct_compiler *c, const struct ct_gnode *n, int value) {
  const struct ct_val *v = &c->value[value];
  return v->kind == CT_LAY_WEIGHT ||
         (uint64_t)v->rows * v->cols == ct_shape_elements(ct_out(c->g, n, 0));
}

/* Weights of a layer lie among zeros, which its products, and sums of squares, rely on: whether the
 * operator makes zeros of zeros. Those that are not asked about here do, or are no operators of one
 * number and weights. */
static bool keeps_zeros(const struct ct_compiler *c, const struct ct_gnode *n, const int *vals,
                        unsigned count) {
  bool number = false;
  for (unsigned i = 0; i < count; ++i)
    number = number || one_number(&c->value[vals[i]]);
  if (n->op == ct_gop_find("sigmoid")) return false;
  if (n->op == ct_gop_find("clip")) return ct_attr(n, 0, 0) <= 0 && ct_attr(n, 1, 0) >= 0;
  if (n->op == ct_gop_find("div")) return one_number(&c->value[vals[1]]);
  return !number || n->op == ct_gop_find("mul");
}

bool ct_fit(struct ct_compiler *c, const struct ct_gnode *n, int *vals, unsigned count, int *like) {
  *like = largest(c, vals, count);
  bool fit = is_whole(c, n, *like) &&
             (c->value[*like].kind != CT_LAY_WEIGHT || keeps_zeros(c, n, vals, count));
  for (unsigned i = 0; i < count; ++i)
    fit = fit && fits(c, n, i, vals[i], *like);
  if (fit) return true;
  for (unsigned i = 0; i < count && !c->error; ++i) {
    vals[i] = ct_spread_in(c, n, i, ct_out(c->g, n, 0));
    if (vals[i] == CT_NO_VALUE) return false;
  }
  if (c->error) return false;
  *like = largest(c, vals, count);
  if (!is_whole(c, n, *like)) *like = CT_NO_VALUE;
  return true;
}

/* Where nothing lies as the output does it is a row for each of its rows. */
void ct_give(struct ct_tiles *t, const struct ct_gnode *n, unsigned i, unsigned operand, int like) {
  struct ct_compiler *c = t->c;
  const struct ct_shape *s = ct_out(c->g, n, i);
  if (c->error) return;
  const int value = like == CT_NO_VALUE ? ct_value_new(c, ct_shape_rows(s), ct_shape_cols(s))
                                        : ct_value_like(c, like);
  ct_tiles_make(t, operand, value);
  ct_value_is(c, n->out[i], value);
}

/* ---- One input ----------------------------------------------------------------------------- */

struct unary {
  struct ct_tiles t;
  int x;
  unsigned a;
};

static bool unary(struct ct_compiler *c, const struct ct_gnode *n, unsigned ops, struct unary *u) {
  int like;
  u->x = ct_value_in(c, n, 0);
  if (c->error || !ct_fit(c, n, &u->x, 1, &like)) return false;
  u->t = ct_tiles_for(c, n, &u->x, 1, ops);
  u->a = ct_tiles_in(&u->t, u->x);
  return true;
}

static void simple(struct ct_compiler *c, const struct ct_gnode *n, enum ct_tile_fn fn) {
  struct unary u;
  if (unary(c, n, 1, &u)) ct_give(&u.t, n, 0, ct_tiles_op(&u.t, fn, u.a, 0), u.x);
}

void ct_lower_op_relu(struct ct_compiler *c, const struct ct_gnode *n) {
  simple(c, n, CT_TILE_RELU);
}
void ct_lower_op_sigmoid(struct ct_compiler *c, const struct ct_gnode *n) {
  simple(c, n, CT_TILE_SIGMOID);
}
void ct_lower_op_tanh(struct ct_compiler *c, const struct ct_gnode *n) {
  simple(c, n, CT_TILE_TANH);
}
void ct_lower_op_erf(struct ct_compiler *c, const struct ct_gnode *n) {
  simple(c, n, CT_TILE_ERF);
}
void ct_lower_op_gelu(struct ct_compiler *c, const struct ct_gnode *n) {
  simple(c, n, CT_TILE_GELU);
}

void ct_lower_op_scale(struct ct_compiler *c, const struct ct_gnode *n) {
  struct unary u;
  if (unary(c, n, 1, &u))
    ct_give(&u.t, n, 0, ct_tiles_axpb(&u.t, u.a, (float)ct_attr(n, 0, 0), 0), u.x);
}

/* Scaled, where the mask is not 0. The mask counts elements in the tensor's order, which is that of
 * a matrix. */
enum { DROP_RATE, DROP_STREAM };
void ct_lower_op_dropout(struct ct_compiler *c, const struct ct_gnode *n) {
  const double rate = ct_attr(n, DROP_RATE, 0);
  int vals[2] = {ct_value_in(c, n, 0)};
  if (!c->error && c->value[vals[0]].kind != CT_LAY_MATRIX) vals[0] = ct_value_plain_in(c, n, 0);
  if (c->error || vals[0] == CT_NO_VALUE) return;
  vals[1] = ct_value_mask(c, vals[0], ct_attr_u32(n, DROP_STREAM, 0), (uint32_t)(rate * 0x1p32));
  if (c->error) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 2, 2);
  const unsigned x = ct_tiles_in(&t, vals[0]), mask = ct_tiles_in(&t, vals[1]);
  const unsigned scaled = ct_tiles_axpb(&t, x, (float)(1 / (1 - rate)), 0);
  ct_give(&t, n, 0, ct_tiles_op(&t, CT_TILE_SELECT, scaled, mask), vals[0]);
}

void ct_lower_op_clip(struct ct_compiler *c, const struct ct_gnode *n) {
  struct unary u;
  if (!unary(c, n, 2, &u)) return;
  const unsigned above = ct_tiles_op_s(&u.t, CT_TILE_MAX_S, u.a, (float)ct_attr(n, 0, 0));
  ct_give(&u.t, n, 0, ct_tiles_op_s(&u.t, CT_TILE_MIN_S, above, (float)ct_attr(n, 1, 0)), u.x);
}

/* alpha is anything: max(x, 0) + alpha min(x, 0). */
void ct_lower_op_leaky_relu(struct ct_compiler *c, const struct ct_gnode *n) {
  struct unary u;
  if (!unary(c, n, 4, &u)) return;
  const unsigned up = ct_tiles_op(&u.t, CT_TILE_RELU, u.a, 0);
  const unsigned down = ct_tiles_op_s(&u.t, CT_TILE_MIN_S, u.a, 0);
  const unsigned less = ct_tiles_axpb(&u.t, down, (float)ct_attr(n, 0, 0), 0);
  ct_give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_ADD, up, less), u.x);
}

/* ---- Gradients: of the output's, and of the argument or the result ------------------------- */

struct gradient {
  struct ct_tiles t;
  int like;
  unsigned g, x;
};

static bool gradient(struct ct_compiler *c, const struct ct_gnode *n, int x, unsigned ops,
                     struct gradient *u) {
  int vals[2] = {ct_value_in(c, n, 0), x};
  if (c->error || !ct_fit(c, n, vals, 2, &u->like)) return false;
  u->t = ct_tiles_for(c, n, vals, 2, ops);
  u->g = ct_tiles_in(&u->t, vals[0]);
  u->x = ct_tiles_in(&u->t, vals[1]);
  return true;
}

/* Of the result: it is positive where the argument is. */
void ct_lower_op_relu_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  if (gradient(c, n, ct_value_in(c, n, 1), 1, &u))
    ct_give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_SELECT, u.g, u.x), u.like);
}

/* alpha g + (1 - alpha) g where x > 0. */
void ct_lower_op_leaky_relu_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  const float alpha = (float)ct_attr(n, 0, 0);
  if (!gradient(c, n, ct_value_in(c, n, 1), 4, &u)) return;
  const unsigned up = ct_tiles_op(&u.t, CT_TILE_SELECT, u.g, u.x);
  const unsigned down = ct_tiles_op(&u.t, CT_TILE_SUB, u.g, up);
  const unsigned less = ct_tiles_axpb(&u.t, down, alpha, 0);
  ct_give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_ADD, up, less), u.like);
}

/* g where min < x < max. */
void ct_lower_op_clip_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  if (!gradient(c, n, ct_value_in(c, n, 1), 4, &u)) return;
  const unsigned above = ct_tiles_axpb(&u.t, u.x, 1, -(float)ct_attr(n, 0, 0));
  const unsigned below = ct_tiles_axpb(&u.t, u.x, -1, (float)ct_attr(n, 1, 0));
  const unsigned part = ct_tiles_op(&u.t, CT_TILE_SELECT, u.g, above);
  ct_give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_SELECT, part, below), u.like);
}

static void back(struct ct_compiler *c, const struct ct_gnode *n, enum ct_tile_fn fn) {
  struct gradient u;
  if (gradient(c, n, ct_value_in(c, n, 1), 1, &u))
    ct_give(&u.t, n, 0, ct_tiles_op(&u.t, fn, u.x, u.g), u.like);
}
void ct_lower_op_sigmoid_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  back(c, n, CT_TILE_SIGMOID_BACK);
}
void ct_lower_op_tanh_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  back(c, n, CT_TILE_TANH_BACK);
}

/* 2 / sqrt(pi), 1 / sqrt(2), 1 / sqrt(2 pi) */
#define TWO_BY_ROOT_PI 0x1.20dd76p+0f
#define ROOT_HALF 0x1.6a09e6p-1f
#define ONE_BY_ROOT_TWO_PI 0x1.988454p-2f

/* factor exp(-x^2 scale) */
static unsigned bell(struct gradient *u, float scale) {
  const unsigned square = ct_tiles_op(&u->t, CT_TILE_MUL, u->x, u->x);
  return ct_tiles_op(&u->t, CT_TILE_EXP, ct_tiles_axpb(&u->t, square, -scale, 0), 0);
}

void ct_lower_op_erf_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  if (!gradient(c, n, ct_value_in(c, n, 1), 5, &u)) return;
  const unsigned slope = ct_tiles_axpb(&u.t, bell(&u, 1), TWO_BY_ROOT_PI, 0);
  ct_give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_MUL, u.g, slope), u.like);
}

/* (1 + erf(x / sqrt(2))) / 2 + x exp(-x^2 / 2) / sqrt(2 pi) */
void ct_lower_op_gelu_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  if (!gradient(c, n, ct_value_in(c, n, 1), 10, &u)) return;
  const unsigned small = ct_tiles_axpb(&u.t, u.x, ROOT_HALF, 0);
  const unsigned part = ct_tiles_axpb(&u.t, ct_tiles_op(&u.t, CT_TILE_ERF, small, 0), 0.5f, 0.5f);
  const unsigned peak = ct_tiles_op(&u.t, CT_TILE_MUL, u.x, bell(&u, 0.5f));
  const unsigned rest = ct_tiles_axpb(&u.t, peak, ONE_BY_ROOT_TWO_PI, 0);
  const unsigned slope = ct_tiles_op(&u.t, CT_TILE_ADD, part, rest);
  ct_give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_MUL, u.g, slope), u.like);
}

/* ---- Two inputs ---------------------------------------------------------------------------- */

static void binary(struct ct_compiler *c, const struct ct_gnode *n, enum ct_tile_fn fn) {
  int vals[2], like;
  for (unsigned i = 0; i < 2; ++i)
    vals[i] = ct_value_in(c, n, i);
  if (c->error || !ct_fit(c, n, vals, 2, &like)) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 2, 1);
  const unsigned a = ct_tiles_in(&t, vals[0]), b = ct_tiles_in(&t, vals[1]);
  ct_give(&t, n, 0, ct_tiles_op(&t, fn, a, b), like);
}
void ct_lower_op_add(struct ct_compiler *c, const struct ct_gnode *n) {
  binary(c, n, CT_TILE_ADD);
}
void ct_lower_op_sub(struct ct_compiler *c, const struct ct_gnode *n) {
  binary(c, n, CT_TILE_SUB);
}
void ct_lower_op_mul(struct ct_compiler *c, const struct ct_gnode *n) {
  binary(c, n, CT_TILE_MUL);
}
void ct_lower_op_div(struct ct_compiler *c, const struct ct_gnode *n) {
  binary(c, n, CT_TILE_DIV);
}
