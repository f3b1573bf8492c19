/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that work element by element, and those that only say that a tensor has another shape.
 */
#include "ct_compile_impl.h"

/* ---- What they share ----------------------------------------------------------------------- */

/* Values of the first `count` inputs fit each other: of one layout, or spread over it. The largest
 * is *like. */
static bool fit(struct ct_compiler *c, const struct ct_gnode *n, const int *vals, unsigned count,
                int *like) {
  *like = vals[0];
  for (unsigned i = 1; i < count; ++i)
    if ((uint64_t)c->value[vals[i]].rows * c->value[vals[i]].cols >
        (uint64_t)c->value[*like].rows * c->value[*like].cols)
      *like = vals[i];
  const struct ct_val *to = &c->value[*like];
  const uint64_t all = ct_shape_elements(ct_out(c->g, n, 0));
  for (unsigned i = 0; i < count; ++i) {
    const struct ct_val *v = &c->value[vals[i]];
    const bool rows = v->rows == to->rows || v->rows == 1;
    const bool cols = v->cols == to->cols || v->cols == 1;
    if (rows && cols && v->kind != CT_LAY_WINDOWS) continue;
    ct_compile_miss(c, n, "its inputs (%.40s ...) lie in memory in ways that do not fit",
                    c->g->tensor[n->in[0]]->name);
    return false;
  }
  if (to->kind == CT_LAY_WEIGHT || (uint64_t)to->rows * to->cols == all) return true;
  ct_compile_miss(c, n, "broadcasting to %s", CT_SHAPE(ct_out(c->g, n, 0)));
  return false;
}

/* The operand is output i of the node. */
static void give(struct ct_tiles *t, const struct ct_gnode *n, unsigned i, unsigned operand,
                 int like) {
  struct ct_compiler *c = t->c;
  if (c->error) return;
  const int value = ct_value_like(c, like);
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
  if (c->error || !fit(c, n, &u->x, 1, &like)) return false;
  u->t = ct_tiles_for(c, n, &u->x, 1, ops);
  u->a = ct_tiles_in(&u->t, u->x);
  return true;
}

static void simple(struct ct_compiler *c, const struct ct_gnode *n, enum ct_tile_fn fn) {
  struct unary u;
  if (unary(c, n, 1, &u)) give(&u.t, n, 0, ct_tiles_op(&u.t, fn, u.a, 0), u.x);
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
    give(&u.t, n, 0, ct_tiles_axpb(&u.t, u.a, (float)ct_attr(n, 0, 0), 0), u.x);
}

void ct_lower_op_clip(struct ct_compiler *c, const struct ct_gnode *n) {
  struct unary u;
  if (!unary(c, n, 2, &u)) return;
  const unsigned above = ct_tiles_op_s(&u.t, CT_TILE_MAX_S, u.a, (float)ct_attr(n, 0, 0));
  give(&u.t, n, 0, ct_tiles_op_s(&u.t, CT_TILE_MIN_S, above, (float)ct_attr(n, 1, 0)), u.x);
}

/* alpha is anything: max(x, 0) + alpha min(x, 0). */
void ct_lower_op_leaky_relu(struct ct_compiler *c, const struct ct_gnode *n) {
  struct unary u;
  if (!unary(c, n, 4, &u)) return;
  const unsigned up = ct_tiles_op(&u.t, CT_TILE_RELU, u.a, 0);
  const unsigned down = ct_tiles_op_s(&u.t, CT_TILE_MIN_S, u.a, 0);
  const unsigned less = ct_tiles_axpb(&u.t, down, (float)ct_attr(n, 0, 0), 0);
  give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_ADD, up, less), u.x);
}

/* ---- Gradients: of the output's, and of the argument or the result ------------------------- */

struct gradient {
  struct ct_tiles t;
  int like;
  unsigned g, x;
};

static bool gradient(struct ct_compiler *c, const struct ct_gnode *n, int x, unsigned ops,
                     struct gradient *u) {
  const int vals[2] = {ct_value_in(c, n, 0), x};
  if (c->error || !fit(c, n, vals, 2, &u->like)) return false;
  u->t = ct_tiles_for(c, n, vals, 2, ops);
  u->g = ct_tiles_in(&u->t, vals[0]);
  u->x = ct_tiles_in(&u->t, vals[1]);
  return true;
}

/* Of the result: it is positive where the argument is. */
void ct_lower_op_relu_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  if (gradient(c, n, ct_value_in(c, n, 1), 1, &u))
    give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_SELECT, u.g, u.x), u.like);
}

/* alpha g + (1 - alpha) g where x > 0. */
void ct_lower_op_leaky_relu_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  const float alpha = (float)ct_attr(n, 0, 0);
  if (!gradient(c, n, ct_value_in(c, n, 1), 4, &u)) return;
  const unsigned up = ct_tiles_op(&u.t, CT_TILE_SELECT, u.g, u.x);
  const unsigned down = ct_tiles_op(&u.t, CT_TILE_SUB, u.g, up);
  const unsigned less = ct_tiles_axpb(&u.t, down, alpha, 0);
  give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_ADD, up, less), u.like);
}

/* g where min < x < max. */
void ct_lower_op_clip_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  struct gradient u;
  if (!gradient(c, n, ct_value_in(c, n, 1), 4, &u)) return;
  const unsigned above = ct_tiles_axpb(&u.t, u.x, 1, -(float)ct_attr(n, 0, 0));
  const unsigned below = ct_tiles_axpb(&u.t, u.x, -1, (float)ct_attr(n, 1, 0));
  const unsigned part = ct_tiles_op(&u.t, CT_TILE_SELECT, u.g, above);
  give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_SELECT, part, below), u.like);
}

static void back(struct ct_compiler *c, const struct ct_gnode *n, enum ct_tile_fn fn) {
  struct gradient u;
  if (gradient(c, n, ct_value_in(c, n, 1), 1, &u))
    give(&u.t, n, 0, ct_tiles_op(&u.t, fn, u.x, u.g), u.like);
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
  give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_MUL, u.g, slope), u.like);
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
  give(&u.t, n, 0, ct_tiles_op(&u.t, CT_TILE_MUL, u.g, slope), u.like);
}

/* ---- Two inputs ---------------------------------------------------------------------------- */

static void binary(struct ct_compiler *c, const struct ct_gnode *n, enum ct_tile_fn fn) {
  int vals[2], like;
  for (unsigned i = 0; i < 2; ++i)
    vals[i] = ct_value_in(c, n, i);
  if (c->error || !fit(c, n, vals, 2, &like)) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 2, 1);
  const unsigned a = ct_tiles_in(&t, vals[0]), b = ct_tiles_in(&t, vals[1]);
  give(&t, n, 0, ct_tiles_op(&t, fn, a, b), like);
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

/* ---- Shapes -------------------------------------------------------------------------------- */

/* An output of that value has to be copied: it is the caller's on both sides, or planes of another
 * one, which have no place of their own. */
static bool needs_copy(const struct ct_val *v) {
  return v->step == CT_FROM_START || v->within != CT_NO_VALUE;
}

/* The elements stay where they are; who reads them looks whether that is what he needs. */
static void same_place(struct ct_compiler *c, const struct ct_gnode *n) {
  const int x = ct_value_in(c, n, 0);
  if (c->error) return;
  if (c->value[x].kind == CT_LAY_WINDOWS) {
    ct_compile_miss(c, n, "its input is brought in for a convolution");
  } else if (needs_copy(&c->value[x]) && c->g->tensor[n->out[0]]->role == CT_ROLE_OUTPUT) {
    struct ct_tiles t = ct_tiles_apart(c, n, c->value[x].rows, c->value[x].cols, false);
    give(&t, n, 0, ct_tiles_axpb(&t, ct_tiles_in(&t, x), 1, 0), x);
  } else {
    ct_value_is(c, n->out[0], x);
  }
}
void ct_lower_op_reshape(struct ct_compiler *c, const struct ct_gnode *n) {
  same_place(c, n);
}
void ct_lower_op_flatten(struct ct_compiler *c, const struct ct_gnode *n) {
  same_place(c, n);
}

/* Along channels, where pieces are whole planes (the last one may be less). */
static bool along_channels(struct ct_compiler *c, const struct ct_gnode *n, double axis,
                           uint32_t dims) {
  if (axis < 0 || (uint32_t)axis == dims - 1) return true;
  ct_compile_miss(c, n, "along axis %g: only the last one", axis);
  return false;
}

static bool whole_planes(struct ct_compiler *c, const struct ct_gnode *n, uint32_t channels) {
  if (channels % CT_TILE == 0) return true;
  ct_compile_miss(c, n, "pieces of %u channels: whole blocks of 16, but for the last", channels);
  return false;
}

void ct_lower_op_concat(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  if (!along_channels(c, n, ct_attr(n, 0, 0), ys->dims)) return;
  for (unsigned i = 0; i < n->inputs; ++i) {
    const int x = ct_value_in(c, n, i);
    if (c->error || (i + 1 < n->inputs && !whole_planes(c, n, c->value[x].cols))) return;
    if (!ct_value_plain(c, n->in[i])) {
      ct_compile_miss(c, n, "its input (%.60s) lies in memory in another order",
                      c->g->tensor[n->in[i]]->name);
      return;
    }
  }
  const int first = ct_value_in(c, n, 0), y = ct_value_like(c, first);
  if (c->error) return;
  c->value[y].cols = ys->dim[ys->dims - 1];
  for (unsigned i = 0, plane = 0; i < n->inputs && !c->error; ++i) {
    const int x = ct_value_in(c, n, i), part = ct_value_like(c, x);
    struct ct_tiles t = ct_tiles_apart(c, n, c->value[x].rows, c->value[x].cols, false);
    ct_tiles_make(&t, ct_tiles_axpb(&t, ct_tiles_in(&t, x), 1, 0), part);
    if (c->error) return;
    c->value[part].within = y;
    c->value[part].plane = plane;
    c->value[y].step = c->value[part].step;
    c->value[y].apart = true;
    plane += ct_tiles(c->value[x].cols);
  }
  ct_value_is(c, n->out[0], y);
}

enum { SLICE_AXIS, SLICE_BEGIN, SLICE_SIZE };
void ct_lower_op_slice(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *xs = ct_in(c->g, n, 0);
  const uint32_t begin = ct_attr_u32(n, SLICE_BEGIN, 0), size = ct_attr_u32(n, SLICE_SIZE, 0);
  const int x = ct_value_in(c, n, 0);
  if (c->error || !along_channels(c, n, ct_attr(n, SLICE_AXIS, 0), xs->dims)) return;
  if (!whole_planes(c, n, begin)) return;
  if (begin + size != xs->dim[xs->dims - 1] && !whole_planes(c, n, size)) return;
  if (!ct_value_plain(c, n->in[0])) {
    ct_compile_miss(c, n, "its input lies in memory in another order");
    return;
  }
  const int part = ct_value_like(c, x);
  if (c->error) return;
  struct ct_val *v = &c->value[part];
  const struct ct_val *whole = &c->value[x];
  v->cols = size;
  v->within = whole->within == CT_NO_VALUE ? x : whole->within;
  v->plane = whole->plane + begin / CT_TILE;
  v->step = whole->step;
  v->apart = true;
  v->place = whole->place;
  if (c->g->tensor[n->out[0]]->role != CT_ROLE_OUTPUT) {
    ct_value_is(c, n->out[0], part);
    return;
  }
  struct ct_tiles t = ct_tiles_apart(c, n, v->rows, size, false);
  give(&t, n, 0, ct_tiles_axpb(&t, ct_tiles_in(&t, part), 1, 0), part);
}

void ct_lower_op_fill(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *s = ct_out(c->g, n, 0);
  const uint32_t cols = s->dim[s->dims - 1];
  ct_value_is(
      c, n->out[0],
      ct_value_constant(c, (uint32_t)(ct_shape_elements(s) / cols), cols, (float)ct_attr(n, 1, 0)));
}

/* ---- Sums over rows ------------------------------------------------------------------------ */

/* To a vector of the last dimension: what biases get. */
void ct_lower_op_sum_to(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *to = ct_out(c->g, n, 0);
  const int x = ct_value_in(c, n, 0);
  if (c->error) return;
  if (ct_shape_elements(to) != c->value[x].cols || to->dim[to->dims - 1] != c->value[x].cols ||
      c->value[x].kind != CT_LAY_MATRIX) {
    ct_compile_miss(c, n, "a sum of %s to %s", CT_SHAPE(ct_in(c->g, n, 0)), CT_SHAPE(to));
    return;
  }
  const int y = ct_value_new(c, 1, c->value[x].cols);
  struct ct_net_step *s = ct_step_add(c, CT_STEP_SUM_ROWS, n);
  s->x = x;
  s->y = y;
  s->sum.scale = 1;
  c->value[y].step = ct_step_number(c, s);
  ct_value_is(c, n->out[0], y);
}

/* ---- Updates ------------------------------------------------------------------------------- */

/* The rate is a number of the run: nothing to compute. */
void ct_lower_op_rate(struct ct_compiler *c, const struct ct_gnode *n) {
  const int v = ct_value_new(c, 1, 1);
  if (c->error) return;
  c->value[v].kind = CT_LAY_NUMBER;
  ct_value_is(c, n->out[0], v);
}

/* The node that makes the rate which an update names; NULL: something else does. */
static const struct ct_gnode *rate_of(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_gtensor *t = c->g->tensor[n->in[n->inputs - 1]];
  if (t->node >= 0 && c->g->node[t->node]->op == ct_gop_find("rate")) return c->g->node[t->node];
  ct_compile_miss(c, n, "its rate (%.60s) is not that of a schedule", t->name);
  return NULL;
}

/* The weight, its gradient, its states: all of one layout. */
static bool update_values(struct ct_compiler *c, const struct ct_gnode *n, int *vals) {
  vals[0] = ct_value_in(c, n, 0);
  for (unsigned i = 1; i < n->inputs - 1; ++i)
    vals[i] = ct_value_shaped(c, n->in[i], vals[0]);
  int like;
  return !c->error && fit(c, n, vals, n->inputs - 1, &like);
}

/* In the order of docs/numerics.md, Training. */
enum { SGD_MOMENTUM, SGD_DECAY };
void ct_lower_op_sgd(struct ct_compiler *c, const struct ct_gnode *n) {
  int vals[3] = {0};
  const struct ct_gnode *rate = rate_of(c, n);
  if (!rate || !update_values(c, n, vals)) return;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[vals[0]].rows, c->value[vals[0]].cols, false);
  const unsigned w = ct_tiles_in(&t, vals[0]), g = ct_tiles_in(&t, vals[1]);
  const float decay = (float)ct_attr(n, SGD_DECAY, 0);
  const unsigned pull = decay != 0 ? ct_tiles_axpb(&t, w, decay, 0) : 0;
  const unsigned sum = decay != 0 ? ct_tiles_op(&t, CT_TILE_ADD, pull, g) : g;
  const unsigned old = ct_tiles_in(&t, vals[2]);
  const unsigned kept = ct_tiles_axpb(&t, old, (float)ct_attr(n, SGD_MOMENTUM, 0), 0);
  const unsigned v = ct_tiles_op(&t, CT_TILE_ADD, kept, sum);
  const unsigned step = ct_tiles_times(&t, v, ct_scalar_reg(c, CT_SCALAR_MINUS_RATE, rate, 0));
  give(&t, n, 1, v, vals[0]);
  give(&t, n, 0, ct_tiles_op(&t, CT_TILE_ADD, step, w), vals[0]);
}

enum { ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, ADAM_DECAY, ADAM_DECOUPLED };
/* Numbers of the run correct the means: the rate / (1 - beta1^t), 1 / (1 - beta2^t). */
void ct_lower_op_adam(struct ct_compiler *c, const struct ct_gnode *n) {
  int vals[4] = {0};
  const struct ct_gnode *rate = rate_of(c, n);
  if (!rate || !update_values(c, n, vals)) return;
  const float b1 = (float)ct_attr(n, ADAM_BETA1, 0), b2 = (float)ct_attr(n, ADAM_BETA2, 0);
  const float decay = (float)ct_attr(n, ADAM_DECAY, 0);
  const bool apart = ct_attr(n, ADAM_DECOUPLED, 0) != 0;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[vals[0]].rows, c->value[vals[0]].cols, false);
  const unsigned w = ct_tiles_in(&t, vals[0]);
  unsigned g = ct_tiles_in(&t, vals[1]);
  if (decay != 0 && !apart) g = ct_tiles_op(&t, CT_TILE_ADD, g, ct_tiles_axpb(&t, w, decay, 0));
  unsigned m = ct_tiles_axpb(&t, ct_tiles_in(&t, vals[2]), b1, 0);
  m = ct_tiles_op(&t, CT_TILE_ADD, m, ct_tiles_axpb(&t, g, 1 - b1, 0));
  unsigned v = ct_tiles_axpb(&t, ct_tiles_in(&t, vals[3]), b2, 0);
  const unsigned square = ct_tiles_op(&t, CT_TILE_MUL, g, g);
  v = ct_tiles_op(&t, CT_TILE_ADD, v, ct_tiles_axpb(&t, square, 1 - b2, 0));
  const unsigned fix = ct_scalar_reg(c, CT_SCALAR_ROOT, rate, ct_attr(n, ADAM_BETA2, 0));
  unsigned root = ct_tiles_op(&t, CT_TILE_SQRT, ct_tiles_times(&t, v, fix), 0);
  root = ct_tiles_axpb(&t, root, 1, (float)ct_attr(n, ADAM_EPSILON, 0));
  unsigned step = ct_tiles_op(&t, CT_TILE_DIV, m, root);
  const double beta1 = ct_attr(n, ADAM_BETA1, 0);
  step = ct_tiles_times(&t, step, ct_scalar_reg(c, CT_SCALAR_STEP, rate, beta1));
  if (decay != 0 && apart) {
    const unsigned shrunk = ct_tiles_axpb(&t, w, decay, 0);
    const unsigned part = ct_tiles_times(&t, shrunk, ct_scalar_reg(c, CT_SCALAR_RATE, rate, 0));
    step = ct_tiles_op(&t, CT_TILE_ADD, step, part);
  }
  give(&t, n, 1, m, vals[0]);
  give(&t, n, 2, v, vals[0]);
  give(&t, n, 0, ct_tiles_op(&t, CT_TILE_SUB, w, step), vals[0]);
}
