/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and normalisation over the batch. */
#include "ct_compile_impl.h"
#include "ct_op_window.h"

/* ---- Pooling ------------------------------------------------------------------------------- */

enum { POOL_KERNEL = CT_WINDOW_NEXT, POOL_COUNT_PAD };

static void pool_shape(struct ct_net_step *s, const struct ct_gnode *n, const struct ct_shape *x,
                       const struct ct_shape *y, enum ct_pool_kind kind) {
  const uint32_t ky = ct_attr_u32(n, POOL_KERNEL, 0), kx = ct_attr_u32(n, POOL_KERNEL, 1);
  s->pool_kind = kind;
  s->window = ct_window_read(n, x, y, ky, kx);
  s->count_pad = kind == CT_POOL_AVERAGE && ct_attr(n, POOL_COUNT_PAD, 0) != 0;
}

static void pool(struct ct_compiler *c, const struct ct_gnode *n, enum ct_pool_kind kind) {
  const struct ct_shape *xs = ct_in(c->g, n, 0), *ys = ct_out(c->g, n, 0);
  const int x = ct_value_plain_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  const int y = ct_value_shape(c, ys);
  struct ct_net_step *s = ct_step_add(c, CT_STEP_POOL, n);
  pool_shape(s, n, xs, ys, kind);
  s->x = x;
  s->y = ct_step_makes(c, s, y);
  ct_value_is(c, n->out[0], y);
}
void ct_lower_op_max_pool(struct ct_compiler *c, const struct ct_gnode *n) {
  pool(c, n, CT_POOL_MAX);
}
void ct_lower_op_average_pool(struct ct_compiler *c, const struct ct_gnode *n) {
  pool(c, n, CT_POOL_AVERAGE);
}

/* The step that pooled x as this one's gradient says. */
static struct ct_net_step *pooled(struct ct_compiler *c, const struct ct_gnode *n, int x) {
  for (size_t i = 0; i < c->steps; ++i) {
    struct ct_net_step *s = &c->step[i];
    bool same = s->kind == CT_STEP_POOL && s->x == x && s->pool_kind == CT_POOL_MAX;
    for (unsigned a = 0; same && a <= POOL_KERNEL; ++a)
      for (unsigned k = 0; k < 4; ++k)
        same = same && s->node->attr[a].value[k] == n->attr[a].value[k];
    if (same) return s;
  }
  return NULL;
}

/* Where maxima were, as small whole numbers, if x is kept in HBFP: then it needs not be kept for
 * that, nor in FP32, and may be rounded, for forward compares what it has read. Else CT_NO_VALUE.
 */
static int places_of(struct ct_compiler *c, struct ct_net_step *forward) {
  const enum ct_format format = c->value[forward->x].format;
  if (forward->t != CT_NO_VALUE || format == CT_FORMAT_FP32) return forward->t;
  const int y = forward->y, step = (int)(forward - c->step), t = ct_value_like(c, y);
  if (c->error) return CT_NO_VALUE;
  struct ct_val *v = &c->value[t];
  v->format = format == CT_FORMAT_COMPRESSED ? CT_FORMAT_COMPRESSED : CT_FORMAT_HBFP8;
  v->whole = forward->window.ky * forward->window.kx;
  v->beside = y;
  v->step = step;
  forward->t = t;
  return t;
}

/* gy and x. */
void ct_lower_op_max_pool_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *gys = ct_in(c->g, n, 0), *xs = ct_in(c->g, n, 1);
  const int gy = ct_value_plain_in(c, n, 0), x = ct_value_plain_in(c, n, 1);
  if (c->error || gy == CT_NO_VALUE || x == CT_NO_VALUE) return;
  struct ct_net_step *forward = pooled(c, n, x);
  if (!forward) {
    ct_compile_miss(c, n, "nothing has pooled its input (%s) before", c->g->tensor[n->in[1]]->name);
    return;
  }
  const int y = forward->y, places = places_of(c, forward), gx = ct_value_shape(c, xs);
  struct ct_net_step *s = ct_step_add(c, CT_STEP_POOL_BACK, n);
  pool_shape(s, n, xs, gys, CT_POOL_MAX);
  s->t = places;
  s->x = places == CT_NO_VALUE ? x : CT_NO_VALUE;
  s->y = places == CT_NO_VALUE ? y : CT_NO_VALUE;
  s->dy = gy;
  s->dx = ct_step_makes(c, s, gx);
  ct_value_is(c, n->out[0], gx);
}

void ct_lower_op_average_pool_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *gys = ct_in(c->g, n, 0), *xs = ct_out(c->g, n, 0);
  const int gy = ct_value_plain_in(c, n, 0);
  if (c->error || gy == CT_NO_VALUE) return;
  const int gx = ct_value_shape(c, xs);
  struct ct_net_step *s = ct_step_add(c, CT_STEP_POOL_BACK, n);
  pool_shape(s, n, xs, gys, CT_POOL_AVERAGE);
  s->dy = gy;
  s->dx = ct_step_makes(c, s, gx);
  ct_value_is(c, n->out[0], gx);
}

void ct_lower_op_global_average_pool(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *xs = ct_in(c->g, n, 0);
  const int x = ct_value_plain_in(c, n, 0);
  const uint32_t pixels = xs->dim[1] * xs->dim[2];
  if (c->error || x == CT_NO_VALUE) return;
  const struct ct_sum_of mean = {.x = x,
                                 .less = CT_NO_VALUE,
                                 .times = CT_NO_VALUE,
                                 .segment = pixels,
                                 .scale = 1.0f / (float)pixels};
  ct_value_is(c, n->out[0], ct_value_sum(c, n, &mean));
}

void ct_lower_op_global_average_pool_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *xs = ct_out(c->g, n, 0);
  const uint32_t pixels = xs->dim[1] * xs->dim[2];
  const int gy = ct_value_plain_in(c, n, 0);
  if (c->error || gy == CT_NO_VALUE) return;
  const int gx = ct_value_shape(c, xs);
  struct ct_net_step *s = ct_step_add(c, CT_STEP_SPREAD_ROWS, n);
  s->dy = gy;
  s->spread.segment = pixels;
  s->spread.scale = 1.0f / (float)pixels;
  s->dx = ct_step_makes(c, s, gx);
  ct_value_is(c, n->out[0], gx);
}

/* ---- Normalisation over the batch ---------------------------------------------------------- */

/* What is done to each channel: y = x factor + shift. */
struct affine {
  int factor, shift;
};

/* From scale, bias, mean and variance: factor = scale / root(variance + epsilon), shift = bias -
 * mean factor. layer: the bias of the layer in front, which is taken from the mean; or
 * CT_NO_VALUE. */
static struct affine affine_of(struct ct_compiler *c, const struct ct_gnode *n, const int *vals,
                               int layer) {
  struct affine f = {CT_NO_VALUE, CT_NO_VALUE};
  if (c->error) return f;
  const bool early =
      ct_values_last(c, vals, 4) && (layer == CT_NO_VALUE || ct_values_last(c, &layer, 1));
  struct ct_tiles t = ct_tiles_apart(c, n, 1, c->value[vals[0]].cols, early);
  const unsigned scale = ct_tiles_in(&t, vals[0]), bias = ct_tiles_in(&t, vals[1]),
                 variance = ct_tiles_in(&t, vals[3]);
  unsigned mean = ct_tiles_in(&t, vals[2]);
  if (layer != CT_NO_VALUE) mean = ct_tiles_op(&t, CT_TILE_SUB, mean, ct_tiles_in(&t, layer));
  const unsigned sum = ct_tiles_axpb(&t, variance, 1, (float)ct_attr(n, CT_NORM_EPSILON, 0));
  const unsigned inverse = ct_tiles_op(&t, CT_TILE_RSQRT, sum, 0);
  const unsigned factor = ct_tiles_op(&t, CT_TILE_MUL, scale, inverse);
  const unsigned moved = ct_tiles_op(&t, CT_TILE_MUL, mean, factor);
  f.factor = ct_tiles_make(&t, factor, CT_NO_VALUE);
  f.shift = ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_SUB, bias, moved), CT_NO_VALUE);
  return f;
}

static void apply(struct ct_compiler *c, const struct ct_gnode *n, int x, struct affine f) {
  const int vals[3] = {x, f.factor, f.shift};
  if (c->error) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 3, 2);
  const unsigned a = ct_tiles_in(&t, x), b = ct_tiles_in(&t, f.factor);
  const unsigned product = ct_tiles_op(&t, CT_TILE_MUL, a, b);
  const unsigned y = ct_tiles_op(&t, CT_TILE_ADD, product, ct_tiles_in(&t, f.shift));
  if (c->error) return;
  const int value = ct_value_like(c, x);
  ct_tiles_make(&t, y, value);
  ct_value_is(c, n->out[0], value);
}

/* A bias that was added to a product for this node alone: the product is normalised instead, with
 * the bias among the vectors. */
static int take_bias(const struct ct_compiler *c, int *x) {
  const struct ct_val *v = &c->value[*x];
  if (v->step == CT_FROM_START || v->readers != 1 || v->part < CT_OPERAND_OP) return CT_NO_VALUE;
  const struct ct_net_step *s = &c->step[v->step];
  const struct ct_tile_op *op = &s->tile.op[v->part - CT_OPERAND_OP];
  if (op->fn != CT_TILE_ADD || op->a != CT_OPERAND_PRODUCT || op->b >= s->tile.ins)
    return CT_NO_VALUE;
  const int bias = s->in[op->b];
  if (s->tile.in[op->b].spread != CT_SPREAD_ROWS || c->value[bias].step != CT_FROM_START ||
      c->value[bias].place != CT_VALUE_LASTING)
    return CT_NO_VALUE;
  *x = s->y;
  return bias;
}

/* ---- Normalisation in the weights of the layer in front ------------------------------------ */

enum { FOLD_W, FOLD_VECTORS, FOLD_BIAS = 5 };

bool ct_is_folded(const struct ct_compiler *c, int tensor) {
  const int node = c->g->tensor[tensor]->node;
  return node >= 0 && c->g->node[node]->op == ct_gop_find("batch_norm_fold");
}

/* How weights lie is known when their layer comes: it asks for folded ones then. */
int ct_fold_weight(struct ct_compiler *c, int tensor, const struct ct_weight_lay *lay) {
  const struct ct_gnode *n = c->g->node[c->g->tensor[tensor]->node];
  const int w = ct_value_weight(c, n->in[FOLD_W], lay);
  if (c->error || w == CT_NO_VALUE) return w;
  int vals[5];
  const bool biased = ct_has(n, FOLD_BIAS);
  if (!ct_values_plain_in(c, n, FOLD_VECTORS, vals, biased ? 5 : 4)) {
    /* That is noted: the layer goes on with what has its shape. */
    const int none = ct_value_new(c, 1, c->error ? 1 : c->value[w].cols);
    ct_value_is(c, n->out[1], none);
    return w;
  }
  const struct affine f = affine_of(c, n, vals, biased ? vals[4] : CT_NO_VALUE);
  if (c->error) return 0;
  const int two[2] = {w, f.factor};
  struct ct_tiles t =
      ct_tiles_apart(c, n, c->value[w].rows, c->value[w].cols, ct_values_last(c, two, 2));
  const unsigned a = ct_tiles_in(&t, w), b = ct_tiles_in(&t, f.factor);
  const int folded = ct_value_like(c, w);
  ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_MUL, a, b), folded);
  ct_value_is(c, n->out[0], folded);
  ct_value_is(c, n->out[1], f.shift);
  return folded;
}

/* Both outputs are read by one layer, as its weights and bias. */
void ct_lower_op_batch_norm_fold(struct ct_compiler *c, const struct ct_gnode *n) {
  for (size_t i = 0; i < c->g->nodes; ++i) {
    const struct ct_gnode *layer = c->g->node[i];
    const bool fits = (layer->op == ct_gop_find("conv") || layer->op == ct_gop_find("linear")) &&
                      ct_has(layer, 2) && layer->in[1] == n->out[0] && layer->in[2] == n->out[1];
    if (fits && c->readers[n->out[0]] == 1 && c->readers[n->out[1]] == 1) return;
  }
  ct_compile_miss(c, n, "its outputs are not weights and bias of one layer");
}

/* ---- Normalisation by running statistics --------------------------------------------------- */

void ct_lower_op_batch_norm(struct ct_compiler *c, const struct ct_gnode *n) {
  int vals[5]; /* x, then the vectors */
  if (!ct_values_plain_in(c, n, 0, vals, 5)) return;
  const int bias = take_bias(c, &vals[0]);
  apply(c, n, vals[0], affine_of(c, n, vals + 1, bias));
}

/* Statistics of the batch, in two passes; the running ones go a part of the way to them. */
void ct_lower_op_batch_norm_train(struct ct_compiler *c, const struct ct_gnode *n) {
  enum { X, SCALE, BIAS, RUNNING, INPUTS = RUNNING + 2 };
  const float momentum = (float)ct_attr(n, CT_NORM_OTHER, 0);
  int in[INPUTS];
  if (!ct_values_plain_in(c, n, 0, in, INPUTS)) return;
  const int x = in[X];
  const uint32_t cols = c->value[x].cols;
  const float part = 1.0f / (float)c->value[x].rows;
  struct ct_sum_of sum = {.x = x, .less = CT_NO_VALUE, .times = CT_NO_VALUE, .scale = part};
  const int mean = ct_value_sum(c, n, &sum);
  sum.squares = true;
  sum.less = mean;
  const int variance = ct_value_sum(c, n, &sum);
  const int vals[4] = {in[SCALE], in[BIAS], mean, variance};
  const struct affine f = affine_of(c, n, vals, CT_NO_VALUE);
  for (unsigned i = 0; i < 2 && !c->error; ++i) {
    const int old = in[RUNNING + i], now = vals[i + 2];
    struct ct_tiles t = ct_tiles_apart(c, n, 1, cols, false);
    const unsigned a = ct_tiles_axpb(&t, ct_tiles_in(&t, old), momentum, 0);
    const unsigned b = ct_tiles_axpb(&t, ct_tiles_in(&t, now), 1 - momentum, 0);
    const int running = ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_ADD, a, b), CT_NO_VALUE);
    ct_value_is(c, n->out[i + 1], running);
    ct_value_is(c, n->out[i + 3], now);
  }
  apply(c, n, x, f);
}

/* Sums over the rows: of gy, and of gy (x - mean). */
struct sums {
  int gy, times;
};

enum { GRAD_GY, GRAD_X, GRAD_SCALE, GRAD_MEAN, GRAD_VARIANCE, GRAD_INPUTS };

/* factors of dx = gy a + x b + k, by channels. inverse = 1 / root(variance + epsilon). */
static void norm_vectors(struct ct_compiler *c, const struct ct_gnode *n, const int *in,
                         const struct sums *sums, float part, int v[4]) {
  const int scale = in[GRAD_SCALE], mean = in[GRAD_MEAN], variance = in[GRAD_VARIANCE];
  if (c->error) return;
  struct ct_tiles t = ct_tiles_apart(c, n, 1, c->value[scale].cols, false);
  const unsigned sum =
      ct_tiles_axpb(&t, ct_tiles_in(&t, variance), 1, (float)ct_attr(n, CT_NORM_EPSILON, 0));
  const unsigned inverse = ct_tiles_op(&t, CT_TILE_RSQRT, sum, 0);
  const unsigned gscale = ct_tiles_op(&t, CT_TILE_MUL, ct_tiles_in(&t, sums->times), inverse);
  const unsigned a = ct_tiles_op(&t, CT_TILE_MUL, ct_tiles_in(&t, scale), inverse);
  v[3] = ct_tiles_make(&t, gscale, CT_NO_VALUE);
  v[0] = ct_tiles_make(&t, a, CT_NO_VALUE);
  /* b = - a inverse gscale / rows; k = - a gbias / rows - mean b */
  const unsigned b0 =
      ct_tiles_op(&t, CT_TILE_MUL, a, ct_tiles_op(&t, CT_TILE_MUL, inverse, gscale));
  const unsigned b = ct_tiles_axpb(&t, b0, -part, 0);
  const unsigned k0 = ct_tiles_op(&t, CT_TILE_MUL, a, ct_tiles_in(&t, sums->gy));
  const unsigned k1 = ct_tiles_axpb(&t, k0, -part, 0);
  const unsigned k2 = ct_tiles_op(&t, CT_TILE_MUL, ct_tiles_in(&t, mean), b);
  v[1] = ct_tiles_make(&t, b, CT_NO_VALUE);
  v[2] = ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_SUB, k1, k2), CT_NO_VALUE);
}

/* gy, x, scale, mean, variance; gives the gradients of x, scale and bias. */
void ct_lower_op_batch_norm_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  int in[GRAD_INPUTS];
  if (!ct_values_plain_in(c, n, 0, in, GRAD_INPUTS)) return;
  const int gy = in[GRAD_GY], x = in[GRAD_X];
  const struct ct_sum_of times = {.x = x, .less = in[GRAD_MEAN], .times = gy, .scale = 1};
  struct sums sums;
  sums.times = ct_value_sums(c, n, &times, &sums.gy);
  const bool batch = ct_attr(n, CT_NORM_OTHER, 0) != 0;
  int v[4] = {0};
  norm_vectors(c, n, in, &sums, batch ? 1.0f / (float)c->value[x].rows : 0, v);
  const int vals[5] = {gy, x, v[0], v[1], v[2]};
  if (c->error) return;
  struct ct_tiles t = ct_tiles_for(c, n, vals, 5, 4);
  unsigned y = ct_tiles_op(&t, CT_TILE_MUL, ct_tiles_in(&t, gy), ct_tiles_in(&t, v[0]));
  const unsigned xb = ct_tiles_op(&t, CT_TILE_MUL, ct_tiles_in(&t, x), ct_tiles_in(&t, v[1]));
  y = ct_tiles_op(&t, CT_TILE_ADD, y, xb);
  y = ct_tiles_op(&t, CT_TILE_ADD, y, ct_tiles_in(&t, v[2]));
  const int gx = ct_value_like(c, x);
  ct_tiles_make(&t, y, gx);
  ct_value_is(c, n->out[0], gx);
  ct_value_is(c, n->out[1], v[3]);
  ct_value_is(c, n->out[2], sums.gy);
}
