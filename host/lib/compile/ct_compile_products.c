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
#include <stdlib.h>

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
  s->y = ct_step_makes(c, s, y);
  c->value[y].part = CT_OPERAND_PRODUCT;
  return s;
}

/* y = product + bias: a value of its own, so that the product itself need not be kept. */
static void add_bias(struct ct_compiler *c, const struct ct_gnode *n, int y) {
  const int bias = ct_value_plain_in(c, n, 2);
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

/* The weights of a layer, laid as it needs them. CT_NO_VALUE: they cannot be, which is noted. */
static int weights_in(struct ct_compiler *c, const struct ct_gnode *n,
                      const struct ct_weight_lay *lay) {
  const struct ct_gtensor *t = c->g->tensor[n->in[1]];
  const int w = ct_value_weight(c, n->in[1], lay);
  if (c->error || w != CT_NO_VALUE) return w;
  if (t->node >= 0 && !ct_is_folded(c, n->in[1]))
    ct_compile_miss(c, n, "its weights (%s) are made by a node", t->name);
  else
    ct_compile_miss(c, n, "its weights (%s) are used in two ways", t->name);
  return CT_NO_VALUE;
}

/* y = x w^T */
static void forward(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *w = ct_in(c->g, n, 1), *y = ct_out(c->g, n, 0);
  const uint32_t rows = ct_shape_rows(y);
  int x = ct_value_in(c, n, 0);
  if (c->error) return;
  if (!sees(&c->value[x], rows, w->dim[1])) x = ct_value_plain_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  const struct ct_window_shape shape = shape_of(&c->value[x], rows);
  const uint32_t channels = c->value[x].cols;
  const int wv =
      weights_in(c, n, &(struct ct_weight_lay){shape.ky * shape.kx, channels, channels, w->dim[0]});
  if (c->error || wv == CT_NO_VALUE) return;
  const int out = ct_value_new(c, rows, w->dim[0]);
  if (c->error) return;
  struct ct_net_step *s = product(c, n, CT_STEP_CONV, out);
  s->x = x;
  s->w = wv;
  s->window = shape;
  add_bias(c, n, out);
}

/* gx = gy w: images as the layer saw them. */
static void linear_input(struct ct_compiler *c, const struct ct_gnode *n) {
  const int gy = ct_value_plain_in(c, n, 0), w = ct_value_in(c, n, 1);
  if (c->error || gy == CT_NO_VALUE) return;
  const struct ct_val weight = c->value[w];
  const uint32_t rows = ct_shape_rows(ct_in(c->g, n, 0)), taps = weight.weight.taps;
  /* The image's lines are those of the forward step. */
  uint32_t h = 1, width = taps;
  for (size_t i = 0; i < c->steps; ++i)
    if (c->step[i].kind == CT_STEP_CONV && c->step[i].w == w) {
      h = c->step[i].window.ky;
      width = c->step[i].window.kx;
    }
  const int gx = ct_value_new(c, rows * taps, weight.weight.channels);
  if (c->error) return;
  ct_value_image(c, gx, &(struct ct_shape){4, {rows, h, width, weight.weight.channels}});
  struct ct_net_step *s = product(c, n, CT_STEP_CONV_INPUT, gx);
  s->x = gy;
  s->w = w;
  s->window = linear_shape(rows, h, width);
  ct_value_is(c, n->out[0], gx);
}

/* How the weights of a convolution lie. */
static struct ct_weight_lay weights_of(const struct ct_window_shape *s, uint32_t inputs,
                                       uint32_t outputs) {
  const struct ct_conv k = {.shape = *s, .x = {.cols = inputs}, .y = {.cols = outputs}};
  return (struct ct_weight_lay){.taps = s->ky * s->kx,
                                .channels = inputs / ct_conv_parts(&k),
                                .own = inputs / s->groups,
                                .outputs = outputs / s->groups};
}

/* Where groups share a product its kernel sees to the zeros of weights that do not exist. */
static void weights_gradient(struct ct_compiler *c, const struct ct_gnode *n, int x, int gy,
                             const struct ct_window_shape *shape) {
  const struct ct_weight_lay lay = weights_of(shape, c->value[x].cols, c->value[gy].cols);
  const int gw = ct_value_new(c, lay.taps * ct_tiles(lay.channels) * CT_TILE, c->value[gy].cols);
  if (c->error) return;
  c->value[gw].kind = CT_LAY_WEIGHT;
  c->value[gw].weight = lay;
  struct ct_net_step *s = ct_step_add(c, CT_STEP_CONV_WEIGHTS, n);
  s->x = x;
  s->dy = gy;
  s->y = ct_step_makes(c, s, gw);
  s->window = *shape;
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

/* ---- Any two matrices ---------------------------------------------------------------------- */

/* a b: b lies as the weights of a linear layer do. a b^T is the gradient of such a layer's input,
 * a^T b that of its weights; a^T b^T is b a, turned. Of a^T the result is FP32 alone: good for
 * moves, and whoever else reads it needs ct_moved(). */
static int product_of(struct ct_compiler *c, const struct ct_gnode *n, const int *ab,
                      const bool *turned) {
  if (c->error) return 0;
  if (turned[0] && turned[1]) {
    const int y = product_of(c, n, (const int[]){ab[1], ab[0]}, (const bool[]){false, false});
    if (c->error) return 0;
    const struct ct_shape s = {2, {c->value[y].rows, c->value[y].cols}};
    return ct_permuted(c, n, y, &s, (const uint32_t[]){1, 0});
  }
  const struct ct_val a = c->value[ab[0]], b = c->value[ab[1]];
  const int y = ct_value_new(c, turned[0] ? a.cols : a.rows, turned[1] ? b.rows : b.cols);
  if (c->error) return 0;
  const enum ct_step_kind kind = turned[0]   ? CT_STEP_CONV_WEIGHTS
                                 : turned[1] ? CT_STEP_CONV_INPUT
                                             : CT_STEP_CONV;
  struct ct_net_step *s = product(c, n, kind, y);
  s->x = ab[0];
  s->window = linear_shape(a.rows, 1, 1);
  *(turned[0] ? &s->dy : &s->w) = ab[1];
  return y;
}

/* Matrices of an operand, one behind the other: its dimensions in front of the last two. */
struct batch {
  struct ct_shape flat; /* all rows, columns */
  uint32_t rows, n[2];  /* rows of a matrix */
  int value;
  int *made; /* by matrix: its value, once it has been asked for */
};

static bool batch_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i,
                     struct batch *of) {
  const struct ct_shape *s = ct_in(c->g, n, i);
  *of = (struct batch){
      .flat = {2, {ct_shape_rows(s), ct_shape_cols(s)}},
      .rows = s->dim[s->dims - 2],
      .n = {s->dims > 3 ? s->dim[s->dims - 4] : 1, s->dims > 2 ? s->dim[s->dims - 3] : 1}};
  of->value = ct_value_plain_in(c, n, i);
  return !c->error && of->value != CT_NO_VALUE;
}

static int matrix_of(struct ct_compiler *c, const struct ct_gnode *n, struct batch *of,
                     const uint32_t at[2]) {
  const uint32_t number = (of->n[0] == 1 ? 0 : at[0] * of->n[1]) + (of->n[1] == 1 ? 0 : at[1]);
  if (of->n[0] * of->n[1] == 1) return of->value;
  if (of->made[number] != CT_NO_VALUE) return of->made[number];
  const struct ct_part part = {of->value, number * of->rows, of->rows};
  of->made[number] = ct_moved(c, n, ct_part_of(c, n, &part, &of->flat, 0),
                              &(struct ct_shape){2, {of->rows, of->flat.dim[1]}});
  return of->made[number];
}

/* Room for the values of its matrices. */
static bool make_batch(struct ct_compiler *c, struct batch *of) {
  const size_t count = (size_t)of->n[0] * of->n[1];
  of->made = malloc(count * sizeof *of->made);
  for (size_t i = 0; of->made && i < count; ++i)
    of->made[i] = CT_NO_VALUE;
  if (!of->made) ct_compile_no_memory(c);
  return of->made;
}

/* Each matrix of the output is a product of its own. */
static void batches(struct ct_compiler *c, const struct ct_gnode *n, struct batch *ab,
                    const bool *turned) {
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  const struct ct_shape flat = {2, {ct_shape_rows(ys), ct_shape_cols(ys)}};
  const uint32_t rows = ys->dim[ys->dims - 2], count = flat.dim[0] / rows;
  struct ct_part *part = calloc(count, sizeof *part);
  if (!part) ct_compile_no_memory(c);
  const bool room = part && make_batch(c, &ab[0]) && make_batch(c, &ab[1]);
  for (uint32_t i = 0; room && i < count && !c->error; ++i) {
    const uint32_t inner = ab[0].n[1] == 1 ? ab[1].n[1] : ab[0].n[1];
    const uint32_t at[2] = {i / inner, i % inner};
    const int two[2] = {matrix_of(c, n, &ab[0], at), matrix_of(c, n, &ab[1], at)};
    part[i] = (struct ct_part){product_of(c, n, two, turned), i * rows, rows};
  }
  if (!c->error) {
    const int y = ct_whole_of(c, n, part, count, &flat, 0);
    ct_value_is(c, n->out[0], ct_moved(c, n, y, ys));
  }
  free(part);
  free(ab[0].made);
  free(ab[1].made);
}

/* Many matrices by one are a product of all their rows. Where both sides are square tiles these may
 * not lie across two matrices. */
static bool is_one(const struct batch *ab, const bool *turned) {
  return ab[1].n[0] * ab[1].n[1] == 1 && !turned[0] && (!turned[1] || ab[0].rows % CT_TILE == 0);
}

static void all_rows(struct ct_compiler *c, const struct ct_gnode *n, const int *two,
                     const bool *turned) {
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  const int y = product_of(c, n, two, turned);
  ct_value_image(c, y, ys);
  ct_value_is(c, n->out[0], y);
}

enum { MOST_PRODUCTS = 4096 };
static void any_product(struct ct_compiler *c, const struct ct_gnode *n, const bool *turned) {
  const struct ct_shape *ys = ct_out(c->g, n, 0);
  struct batch ab[2];
  if (!batch_in(c, n, 0, &ab[0]) || !batch_in(c, n, 1, &ab[1])) return;
  const int two[2] = {ab[0].value, ab[1].value};
  const uint64_t count = ct_shape_part(ys, 0, ys->dims - 2);
  if (count == 1 && turned[0])
    ct_value_is(c, n->out[0], ct_moved(c, n, product_of(c, n, two, turned), ys));
  else if (count == 1)
    ct_value_is(c, n->out[0], product_of(c, n, two, turned));
  else if (is_one(ab, turned))
    all_rows(c, n, two, turned);
  else if (count <= MOST_PRODUCTS)
    batches(c, n, ab, turned);
  else
    ct_compile_miss(c, n, "%llu products of matrices: %d are the most", (unsigned long long)count,
                    MOST_PRODUCTS);
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

/* Outputs x inputs, as layers have them: those lie in a way of their own. */
static bool is_weight(const struct ct_compiler *c, int tensor) {
  const struct ct_gtensor *t = c->g->tensor[tensor];
  return t->role == CT_ROLE_WEIGHT || t->role == CT_ROLE_STATE || ct_is_folded(c, tensor);
}

void ct_lower_op_matmul(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *a = ct_in(c->g, n, 0), *b = ct_in(c->g, n, 1);
  const bool turned[2] = {ct_attr(n, MATMUL_A, 0) != 0, ct_attr(n, MATMUL_B, 0) != 0};
  const bool matrices = a->dims == 2 && b->dims == 2, weight = is_weight(c, n->in[1]);
  /* What has been a matrix for another product remains one. */
  const bool fresh = c->value_of[n->in[1]] == CT_NO_VALUE;
  const bool laid = !fresh && c->value[c->value_of[n->in[1]]].kind == CT_LAY_WEIGHT;
  if (matrices && weight && (fresh || laid) && !turned[0] && turned[1])
    forward(c, n);
  else if (matrices && weight && laid && !turned[0])
    linear_input(c, n);
  else if (matrices && turned[0] && !turned[1] && of_weight(c, n->out[0]))
    linear_weights(c, n);
  else
    any_product(c, n, turned);
}

void ct_lower_op_linear(struct ct_compiler *c, const struct ct_gnode *n) {
  if (is_weight(c, n->in[1])) {
    forward(c, n);
    return;
  }
  const int two[2] = {ct_value_plain_in(c, n, 0), ct_value_plain_in(c, n, 1)};
  if (c->error || two[0] == CT_NO_VALUE || two[1] == CT_NO_VALUE) return;
  add_bias(c, n, product_of(c, n, two, (const bool[]){false, true}));
}

/* ---- Convolutions -------------------------------------------------------------------------- */

/* Somebody wants the image's gradient: that needs the weights as a convolution has them. */
static bool has_gradient(const struct ct_compiler *c, const struct ct_gnode *conv) {
  const struct ct_gop *back = ct_gop_find("conv_input_grad");
  for (size_t i = 0; i < c->g->nodes; ++i)
    if (c->g->node[i]->op == back && c->g->node[i]->in[1] == conv->in[1]) return true;
  return false;
}

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
static void bring_windows(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_gtensor *x = c->g->tensor[n->in[0]];
  const struct ct_shape *w = ct_in(c->g, n, 1), *y = ct_out(c->g, n, 0);
  const uint32_t seen = (uint32_t)ct_shape_part(w, 1, 4);
  const bool few = w->dim[1] * w->dim[2] > 1 && w->dim[3] < CT_TILE && seen <= 16 * CT_TILE;
  if (x->role != CT_ROLE_INPUT || !few || ct_attr_u32(n, CONV_GROUPS, 0) != 1) return;
  if (c->value_of[n->in[0]] != CT_NO_VALUE || has_gradient(c, n) || !seen_alike(c, n)) return;
  const int v = ct_value_new(c, ct_shape_rows(y), seen);
  if (c->error) return;
  c->value[v].kind = CT_LAY_WINDOWS;
  c->value[v].windows = conv_shape(n, ct_in(c->g, n, 0), w, y);
  c->value[v].place = CT_VALUE_EXTERNAL;
  c->value[v].tensor = n->in[0];
  c->value_of[n->in[0]] = v;
}

/* The shape of a convolution whose input is x: of windows, a linear layer. */
static struct ct_window_shape seen_shape(const struct ct_compiler *c, int x,
                                         const struct ct_window_shape *plain) {
  const struct ct_val *v = &c->value[x];
  return v->kind == CT_LAY_WINDOWS ? linear_shape(v->rows, 1, 1) : *plain;
}

/* Windows, or an image of which each pixel is a row. */
static int image_in(struct ct_compiler *c, const struct ct_gnode *n, unsigned i) {
  const int x = ct_value_in(c, n, i);
  if (c->error || x == CT_NO_VALUE || c->value[x].kind == CT_LAY_WINDOWS) return x;
  return ct_value_plain_in(c, n, i);
}

void ct_lower_op_conv(struct ct_compiler *c, const struct ct_gnode *n) {
  const struct ct_shape *xs = ct_in(c->g, n, 0), *ws = ct_in(c->g, n, 1), *ys = ct_out(c->g, n, 0);
  const struct ct_window_shape plain = conv_shape(n, xs, ws, ys);
  bring_windows(c, n);
  const int x = image_in(c, n, 0);
  if (c->error || x == CT_NO_VALUE) return;
  const struct ct_window_shape shape = seen_shape(c, x, &plain);
  const struct ct_weight_lay lay = weights_of(&shape, c->value[x].cols, ys->dim[3]);
  const int w = weights_in(c, n, &lay);
  if (c->error || w == CT_NO_VALUE) return;
  const int y = ct_value_shape(c, ys);
  if (c->error) return;
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
  const struct ct_weight_lay lay = weights_of(&shape, xs->dim[3], gys->dim[3]);
  const int gy = image_in(c, n, 0), w = weights_in(c, n, &lay);
  if (c->error || gy == CT_NO_VALUE || w == CT_NO_VALUE) return;
  const int gx = ct_value_shape(c, xs);
  if (c->error) return;
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
  if (c->error || gy == CT_NO_VALUE || x == CT_NO_VALUE) return;
  const struct ct_window_shape shape = seen_shape(c, x, &plain);
  weights_gradient(c, n, x, gy, &shape);
}
