/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products: convolutions, linear layers, matrix products with a weight, and their gradients. All of
 * them are the three kernels of a convolution. A linear layer is one on images of one pixel; behind
 * a flattened image its kernel is as large as the image.
 *
 * An image from outside that has few channels is brought in as windows: a row for each pixel of the
 * output, with all that its kernel sees. The convolution then is a linear layer, and no
 * multiplication of its blocks is wasted on channels that do not exist.
 */
#include "ct_compile_impl.h"
#include "ct_op_window.h"

enum { CONV_GROUPS = CT_WINDOW_NEXT, CONV_SIZE };

/* ---- Shapes -------------------------------------------------------------------------------- */

struct ct_window_shape ct_window_read(const struct ct_gnode *n, const struct ct_shape *x,
                                      const struct ct_shape *y, uint32_t ky, uint32_t kx) {
  return (struct ct_window_shape){.images = x->dim[0],
                                  .h = x->dim[1],
                                  .w = x->dim[2],
                                  .oh = y->dim[1],
                                  .ow = y->dim[2],
                                  .ky = ky,
                                  .kx = kx,
                                  .sy = ct_attr_u32(n, CT_WINDOW_STRIDE, 0),
                                  .sx = ct_attr_u32(n, CT_WINDOW_STRIDE, 1),
                                  .dy = ct_attr_u32(n, CT_WINDOW_DILATION, 0),
                                  .dx = ct_attr_u32(n, CT_WINDOW_DILATION, 1),
                                  .groups = 1,
                                  .top = (int32_t)ct_attr_u32(n, CT_WINDOW_PAD, 0),
                                  .left = (int32_t)ct_attr_u32(n, CT_WINDOW_PAD, 1)};
}

static struct ct_window_shape conv_shape(const struct ct_gnode *n, const struct ct_shape *x,
                                         const struct ct_shape *w, const struct ct_shape *y) {
  struct ct_window_shape s = ct_window_read(n, x, y, w->dim[1], w->dim[2]);
  s.groups = ct_attr_u32(n, CONV_GROUPS, 0);
  return s;
}

/* A linear layer on images of h x w pixels that it sees whole. */
static struct ct_window_shape linear_shape(uint32_t images, uint32_t h, uint32_t w) {
  return (struct ct_window_shape){.images = images,
                                  .h = h,
                                  .w = w,
                                  .oh = 1,
                                  .ow = 1,
                                  .ky = h,
                                  .kx = w,
                                  .sy = 1,
                                  .sx = 1,
                                  .dy = 1,
                                  .dx = 1,
                                  .groups = 1};
}

/* ---- Steps --------------------------------------------------------------------------------- */

/* A new step that makes y, an operand of which is its product. The caller says where y lies. */
static struct ct_net_step *product(struct ct_compiler *c, const struct ct_gnode *n,
                                   enum ct_step_kind kind, int y) {
  struct ct_net_step *s = ct_step_add(c, kind, n);
  s->tile.rows = c->value[y].rows;
  s->tile.cols = c->value[y].cols;
  c->value[y].step = ct_step_number(c, s);
  c->value[y].part = CT_OPERAND_PRODUCT;
  s->y = y;
  return s;
}

/* y = product + bias: a value of its own, so that the product itself need not be kept. */
static void add_bias(struct ct_compiler *c, const struct ct_gnode *n, int y) {
  const int bias = ct_value_in(c, n, 2);
  if (c->error || bias == CT_NO_VALUE) {
    ct_value_is(c, n->out[0], y);
    return;
  }
  const int vals[2] = {y, bias};
  struct ct_tiles t = ct_tiles_for(c, n, vals, 2, 1);
  const unsigned a = ct_tiles_in(&t, y), b = ct_tiles_in(&t, bias);
  const int sum = ct_value_like(c, y);
  ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_ADD, a, b), sum);
  ct_value_is(c, n->out[0], sum);
}

static void image_of(struct ct_compiler *c, int value, uint32_t images, uint32_t h, uint32_t w) {
  if (c->error) return;
  c->value[value].images = images;
  c->value[value].h = h;
  c->value[value].w = w;
}

/* ---- Linear layers, matrix products with a weight ------------------------------------------ */

/* The value is an image that a layer of so many inputs sees whole: rows images of h x w pixels. */
static bool sees(const struct ct_val *v, uint32_t rows, uint32_t inputs) {
  const uint32_t pixels = rows ? v->rows / rows : 0;
  if (v->kind != CT_LAY_MATRIX || !pixels || v->rows % rows) return false;
  if (pixels * v->cols != inputs) return false;
  return pixels == 1 || (v->images == rows && v->h * v->w == pixels);
}

static struct ct_window_shape shape_of(const struct ct_val *v, uint32_t rows) {
  return v->rows == rows ? linear_shape(rows, 1, 1) : linear_shape(rows, v->h, v->w);
}

static uint32_t rows_of(const struct ct_shape *s) {
  return (uint32_t)ct_shape_part(s, 0, s->dims - 1);
}

/* y = x w^T */
static void forward(struct ct_compiler *c, const struct ct_gnode *n, int x, int weight) {
  const struct ct_shape *w = &c->g->tensor[weight]->shape, *y = ct_out(c->g, n, 0);
  const uint32_t rows = rows_of(y);
  if (!sees(&c->value[x], rows, w->dim[1])) x = ct_value_plain_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  const struct ct_window_shape shape = shape_of(&c->value[x], rows);
  const int wv = ct_value_weight(c, weight, shape.ky * shape.kx, c->value[x].cols);
  if (wv == CT_NO_VALUE) {
    ct_compile_miss(c, n, "its weights (%.60s) are used in two ways", c->g->tensor[weight]->name);
    return;
  }
  const int out = ct_value_new(c, rows, w->dim[0]);
  if (c->error) return;
  struct ct_net_step *s = product(c, n, CT_STEP_CONV, out);
  s->x = x;
  s->w = wv;
  s->window = shape;
  add_bias(c, n, out);
}

void ct_lower_op_linear(struct ct_compiler *c, const struct ct_gnode *n) {
  const int x = ct_value_in(c, n, 0);
  const enum ct_role role = c->g->tensor[n->in[1]]->role;
  if (c->error) return;
  if (role == CT_ROLE_WEIGHT || role == CT_ROLE_STATE)
    forward(c, n, x, n->in[1]);
  else
    ct_compile_miss(c, n, "its weights (%.60s) are not a weight of the graph",
                    c->g->tensor[n->in[1]]->name);
}

/* gx = gy w: images as the layer saw them. */
static void linear_input(struct ct_compiler *c, const struct ct_gnode *n) {
  const int gy = ct_value_in(c, n, 0), w = ct_value_in(c, n, 1);
  if (c->error) return;
  const struct ct_val weight = c->value[w];
  const uint32_t rows = rows_of(ct_in(c->g, n, 0)), taps = weight.taps;
  /* The image's lines are those of the forward step. */
  uint32_t h = 1, width = taps;
  for (size_t i = 0; i < c->steps; ++i)
    if (c->step[i].kind == CT_STEP_CONV && c->step[i].w == w) {
      h = c->step[i].window.ky;
      width = c->step[i].window.kx;
    }
  const int gx = ct_value_new(c, rows * taps, weight.channels);
  if (c->error) return;
  image_of(c, gx, rows, h, width);
  struct ct_net_step *s = product(c, n, CT_STEP_CONV_INPUT, gx);
  s->x = gy;
  s->w = w;
  s->window = linear_shape(rows, h, width);
  ct_value_is(c, n->out[0], gx);
}

static void weights_gradient(struct ct_compiler *c, const struct ct_gnode *n, int x, int gy,
                             const struct ct_window_shape *shape) {
  const struct ct_val *xv = &c->value[x];
  const uint32_t taps = shape->ky * shape->kx, channels = xv->cols / shape->groups;
  const uint32_t outputs = c->value[gy].cols;
  const int gw = ct_value_new(c, taps * ct_tiles(channels) * CT_TILE, outputs);
  if (c->error) return;
  c->value[gw].kind = CT_LAY_WEIGHT;
  c->value[gw].taps = taps;
  c->value[gw].channels = channels;
  struct ct_net_step *s = ct_step_add(c, CT_STEP_CONV_WEIGHTS, n);
  s->x = x;
  s->dy = gy;
  s->y = gw;
  s->window = *shape;
  c->value[gw].step = ct_step_number(c, s);
  c->value[gw].part = CT_OPERAND_PRODUCT;
  ct_value_is(c, n->out[0], gw);
}

/* gw = gy^T x */
static void linear_weights(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *of = ct_in(c->g, n, 0), *xs = ct_in(c->g, n, 1);
  const int gy = ct_value_plain_in(c, n, 0);
  int x = ct_value_in(c, n, 1);
  if (!c->error && !sees(&c->value[x], of->dim[0], xs->dim[1])) x = ct_value_plain_in(c, n, 1);
  if (c->error || gy == CT_NO_VALUE || x == CT_NO_VALUE) return;
  const struct ct_window_shape shape = shape_of(&c->value[x], of->dim[0]);
  weights_gradient(c, n, x, gy, &shape);
}

/* ---- Products of two activations ----------------------------------------------------------- */

/* a b: b lies as the weights of a linear layer do. a b^T is the gradient of such a layer's input,
 * a^T b that of its weights. */
static void two_activations(struct ct_compiler *c, const struct ct_gnode *n, bool ta, bool tb) {
  const int a = ct_value_plain_in(c, n, 0), b = ct_value_plain_in(c, n, 1);
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  if (c->error || a == CT_NO_VALUE || b == CT_NO_VALUE) return;
  const int y = ct_value_new(c, ys->dim[0], ys->dim[1]);
  const uint32_t rows = c->error ? 1 : c->value[a].rows;
  if (c->error) return;
  const enum ct_step_kind kind = ta ? CT_STEP_CONV_WEIGHTS : tb ? CT_STEP_CONV_INPUT : CT_STEP_CONV;
  struct ct_net_step *s = product(c, n, kind, y);
  s->x = a;
  s->window = linear_shape(rows, 1, 1);
  if (ta)
    s->dy = b;
  else
    s->w = b;
  ct_value_is(c, n->out[0], y);
}

enum { MATMUL_A, MATMUL_B };
/* Whether a tensor is the gradient of a weight: it lies as that does. */
static bool of_weight(const struct ct_compiler *c, int tensor) {
  for (size_t t = 1; t <= c->g->tensors; ++t)
    if (c->g->tensor[t]->gradient == tensor && c->value_of[t] != CT_NO_VALUE &&
        c->value[c->value_of[t]].kind == CT_LAY_WEIGHT)
      return true;
  return false;
}

void ct_lower_op_matmul(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *a = ct_in(c->g, n, 0), *b = ct_in(c->g, n, 1);
  const bool ta = ct_attr(n, MATMUL_A, 0) != 0, tb = ct_attr(n, MATMUL_B, 0) != 0;
  const enum ct_role role = c->g->tensor[n->in[1]]->role;
  const bool weight = role == CT_ROLE_WEIGHT || role == CT_ROLE_STATE;
  if (a->dims == 2 && b->dims == 2 && weight && !ta && tb)
    forward(c, n, ct_value_in(c, n, 0), n->in[1]);
  else if (a->dims == 2 && b->dims == 2 && weight && !ta && !tb &&
           c->value_of[n->in[1]] != CT_NO_VALUE &&
           c->value[c->value_of[n->in[1]]].kind == CT_LAY_WEIGHT)
    linear_input(c, n);
  else if (a->dims == 2 && b->dims == 2 && ta && !tb && !weight && of_weight(c, n->out[0]))
    linear_weights(c, n);
  else if (a->dims == 2 && b->dims == 2 && !(ta && tb) && !weight)
    two_activations(c, n, ta, tb);
  else
    ct_compile_miss(c, n, "a product of %s by %s: matrices, one of them transposed at most",
                    CT_SHAPE(a), CT_SHAPE(b));
}

/* ---- Convolutions -------------------------------------------------------------------------- */

/* All who read the tensor are convolutions that see it in the same way, or gradients of those. */
static bool seen_alike(const struct ct_compiler *c, const struct ct_gnode *conv) {
  const struct ct_gop *forward = ct_gop_find("conv"), *back = ct_gop_find("conv_weight_grad");
  const struct ct_shape *w = ct_in(c->g, conv, 1);
  for (size_t i = 0; i < c->g->nodes; ++i) {
    const struct ct_gnode *n = c->g->node[i];
    for (uint32_t k = 0; k < n->inputs; ++k) {
      if (n->in[k] != conv->in[0]) continue;
      const struct ct_shape *own = n->op == forward ? ct_in(c->g, n, 1) : ct_out(c->g, n, 0);
      if ((n->op != forward || k) && (n->op != back || k != 1)) return false;
      if (own->dim[1] != w->dim[1] || own->dim[2] != w->dim[2]) return false;
      for (unsigned a = 0; a < CONV_SIZE; ++a)
        for (unsigned j = 0; j < 4; ++j)
          if (n->attr[a].value[j] != conv->attr[a].value[j]) return false;
    }
  }
  return true;
}

/* Images of few channels from outside: see above. */
static bool bring_windows(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_gtensor *x = c->g->tensor[n->in[0]];
  const struct ct_shape *w = ct_in(c->g, n, 1), *y = ct_out(c->g, n, 0);
  const uint32_t seen = (uint32_t)ct_shape_part(w, 1, 4);
  const bool few = w->dim[1] * w->dim[2] > 1 && w->dim[3] < CT_TILE && seen <= 16 * CT_TILE;
  if (x->role != CT_ROLE_INPUT || !few || ct_attr_u32(n, CONV_GROUPS, 0) != 1) return false;
  if (c->value_of[n->in[0]] != CT_NO_VALUE)
    return c->value[c->value_of[n->in[0]]].kind == CT_LAY_WINDOWS;
  if (!seen_alike(c, n)) return false;
  const int v = ct_value_new(c, y->dim[0] * y->dim[1] * y->dim[2], seen);
  if (c->error) return false;
  c->value[v].kind = CT_LAY_WINDOWS;
  c->value[v].windows = conv_shape(n, ct_in(c->g, n, 0), w, y);
  c->value[v].place = CT_VALUE_EXTERNAL;
  c->value[v].tensor = n->in[0];
  c->value_of[n->in[0]] = v;
  return true;
}

/* The shape of a convolution whose input is x, and the taps and channels of its weights. */
static struct ct_window_shape seen_shape(const struct ct_compiler *c, int x,
                                         const struct ct_window_shape *plain, uint32_t *taps,
                                         uint32_t *channels) {
  const struct ct_val *v = &c->value[x];
  const bool windows = v->kind == CT_LAY_WINDOWS;
  *taps = windows ? 1 : plain->ky * plain->kx;
  *channels = windows ? v->cols : v->cols / plain->groups;
  return windows ? linear_shape(v->rows, 1, 1) : *plain;
}

/* Windows, or an image of which each pixel is a row. */
static int image_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i) {
  const int x = ct_value_in(c, n, i);
  if (c->error || x == CT_NO_VALUE || c->value[x].kind == CT_LAY_WINDOWS) return x;
  return ct_value_plain_in(c, n, i);
}

/* Groups are products of their own; those of less than a block of channels share one, and their
 * weights would have another layout. */
static bool groups_fit(struct ct_compiler *c, const struct ct_gnode *n,
                       const struct ct_window_shape *shape, uint32_t inputs, uint32_t outputs) {
  const struct ct_conv k = {.shape = *shape, .x = {.cols = inputs}, .y = {.cols = outputs}};
  if (ct_conv_parts(&k) == shape->groups) return true;
  ct_compile_miss(c, n, "%u groups of %u channels: groups must be whole blocks of 16",
                  shape->groups, inputs / shape->groups);
  return false;
}

static const char *name_in(const struct ct_compiler *c, const struct ct_gnode *n, unsigned i) {
  return c->g->tensor[n->in[i]]->name;
}

void ct_lower_op_conv(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *xs = ct_in(c->g, n, 0), *ws = ct_in(c->g, n, 1), *ys = ct_out(c->g, n, 0);
  const struct ct_window_shape plain = conv_shape(n, xs, ws, ys);
  uint32_t taps, channels;
  (void)bring_windows(c, n);
  const int x = image_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  if (!groups_fit(c, n, &plain, xs->dim[3], ys->dim[3])) return;
  const struct ct_window_shape shape = seen_shape(c, x, &plain, &taps, &channels);
  const int w = ct_value_weight(c, n->in[1], taps, channels);
  if (w == CT_NO_VALUE) {
    ct_compile_miss(c, n, "its weights (%.60s) are used in two ways", name_in(c, n, 1));
    return;
  }
  const int y = ct_value_new(c, rows_of(ys), ys->dim[3]);
  if (c->error) return;
  image_of(c, y, ys->dim[0], ys->dim[1], ys->dim[2]);
  struct ct_net_step *s = product(c, n, CT_STEP_CONV, y);
  s->x = x;
  s->w = w;
  s->window = shape;
  add_bias(c, n, y);
}

/* gy and w. */
void ct_lower_op_conv_input_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *gys = ct_in(c->g, n, 0), *xs = ct_out(c->g, n, 0);
  const struct ct_window_shape shape = conv_shape(n, xs, ct_in(c->g, n, 1), gys);
  const int gy = image_in(c, n, 0), w = ct_value_in(c, n, 1);
  if (c->error || gy == CT_NO_VALUE || !groups_fit(c, n, &shape, xs->dim[3], gys->dim[3])) return;
  const int gx = ct_value_new(c, rows_of(xs), xs->dim[3]);
  if (c->error) return;
  image_of(c, gx, xs->dim[0], xs->dim[1], xs->dim[2]);
  struct ct_net_step *s = product(c, n, CT_STEP_CONV_INPUT, gx);
  s->x = gy;
  s->w = w;
  s->window = shape;
  ct_value_is(c, n->out[0], gx);
}

/* gy and x. */
void ct_lower_op_conv_weight_grad(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *gys = ct_in(c->g, n, 0), *xs = ct_in(c->g, n, 1);
  const struct ct_window_shape plain = conv_shape(n, xs, ct_out(c->g, n, 0), gys);
  const int gy = image_in(c, n, 0), x = image_in(c, n, 1);
  uint32_t taps, channels;
  if (c->error || gy == CT_NO_VALUE || x == CT_NO_VALUE ||
      !groups_fit(c, n, &plain, xs->dim[3], gys->dim[3]))
    return;
  const struct ct_window_shape shape = seen_shape(c, x, &plain, &taps, &channels);
  weights_gradient(c, n, x, gy, &shape);
}
