/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution of x (NHWC) with w (outputs, height, width, inputs / groups) and a bias. Forward and
 * both gradients are one sum over images, pixels, taps and channels: y += x w, gx += gy w,
 * gw += gy x.
 */
#include <math.h>
#include <stddef.h>

#include "ct_op.h"
#include "ct_op_window.h"

enum { GROUPS = CT_WINDOW_NEXT, SIZE };
#define RULES CT_WINDOW_RULES, CT_WHOLE("groups", 1, 1, CT_GRAPH_MOST_DIM, 1)

static const struct ct_attr_rule conv_attrs[] = {RULES, {0}};
static const struct ct_attr_rule input_attrs[] = {
    RULES, CT_WHOLE("size", 2, 1, CT_GRAPH_MOST_DIM, NAN), {0}};
static const struct ct_attr_rule weight_attrs[] = {
    RULES, CT_WHOLE("size", 2, 1, CT_WINDOW_MOST, NAN), {0}};

/* ---- Shapes -------------------------------------------------------------------------------- */

/* The shapes that belong together. */
struct shapes {
  struct ct_shape x, w, y;
};

/* From x and w to y. */
static int conv_fit(ct_graph *g, const struct ct_gnode *n, struct shapes *s) {
  const uint32_t groups = ct_attr_u32(n, GROUPS, 0);
  struct ct_window window;
  if (s->w.dims != 4)
    return ct_refuse(
        g, n, "its weights are %s, they must have 4 dimensions: outputs, height, width, inputs",
        CT_SHAPE(&s->w));
  const int err = ct_window_make(g, n, &s->x, &s->w.dim[1], &window);
  if (err) return err;
  if ((uint64_t)s->w.dim[3] * groups != s->x.dim[3])
    return ct_refuse(g, n,
                     "%u groups of %u input channels (weights %s) are not the %u of its image",
                     groups, s->w.dim[3], CT_SHAPE(&s->w), s->x.dim[3]);
  if (s->w.dim[0] % groups)
    return ct_refuse(g, n, "%u output channels cannot be divided by %u groups", s->w.dim[0],
                     groups);
  s->y = (struct ct_shape){
      4, {s->x.dim[0], (uint32_t)window.out[0], (uint32_t)window.out[1], s->w.dim[0]}};
  return CT_OK;
}

static int conv_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  struct shapes s = {.x = *ct_in(g, n, 0), .w = *ct_in(g, n, 1)};
  int err = conv_fit(g, n, &s);
  if (!err) err = ct_need_shape(g, n, 2, &(struct ct_shape){1, {s.w.dim[0]}}, "its bias");
  out[0] = s.y;
  return err;
}

/* Inputs of both gradients: gy, and w or x. */
static int conv_gradient_fit(ct_graph *g, const struct ct_gnode *n, struct shapes *s) {
  const int err = conv_fit(g, n, s);
  return err ? err : ct_need_shape(g, n, 0, &s->y, "the gradient of its output");
}

static int four(ct_graph *g, const struct ct_gnode *n) {
  if (ct_in(g, n, 0)->dims == 4 && ct_in(g, n, 1)->dims == 4) return CT_OK;
  return ct_refuse(g, n, "its inputs are %s and %s, they must have 4 dimensions",
                   CT_SHAPE(ct_in(g, n, 0)), CT_SHAPE(ct_in(g, n, 1)));
}

static int conv_input_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  int err = four(g, n);
  if (err) return err;
  const struct ct_shape *gy = ct_in(g, n, 0), *w = ct_in(g, n, 1);
  const uint64_t channels = (uint64_t)w->dim[3] * ct_attr_u32(n, GROUPS, 0);
  if (channels > CT_GRAPH_MOST_DIM)
    return ct_refuse(g, n, "it has %llu channels", (unsigned long long)channels);
  struct shapes s = {
      .w = *w,
      .x = {4, {gy->dim[0], ct_attr_u32(n, SIZE, 0), ct_attr_u32(n, SIZE, 1), (uint32_t)channels}}};
  err = conv_gradient_fit(g, n, &s);
  out[0] = s.x;
  return err;
}

static int conv_weight_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  int err = four(g, n);
  if (err) return err;
  const struct ct_shape *gy = ct_in(g, n, 0), *x = ct_in(g, n, 1);
  struct shapes s = {.x = *x,
                     .w = {4,
                           {gy->dim[3], ct_attr_u32(n, SIZE, 0), ct_attr_u32(n, SIZE, 1),
                            x->dim[3] / ct_attr_u32(n, GROUPS, 0)}}};
  err = conv_gradient_fit(g, n, &s);
  out[0] = s.w;
  return err;
}

/* ---- Reference ----------------------------------------------------------------------------- */

enum product { FORWARD, TO_INPUT, TO_WEIGHT };

/* What of x, w and y is computed, from the other two. */
struct sums {
  struct ct_window window;
  struct shapes s;
  enum product product;
  double *x, *w, *y;
};

/* The channels of a tap: x and w are consecutive. */
static void tap(const struct sums *t, double *x, double *w, double *y) {
  for (uint32_t c = 0; c < t->s.w.dim[3]; ++c) {
    if (t->product == FORWARD) *y += x[c] * w[c];
    if (t->product == TO_INPUT) x[c] += *y * w[c];
    if (t->product == TO_WEIGHT) w[c] += *y * x[c];
  }
}

/* The taps of output channel o of a pixel. */
static void pixel(const struct sums *t, int64_t image, const int64_t *at, int64_t o, double *y) {
  const struct ct_window *v = &t->window;
  const int64_t per_group = t->s.w.dim[3], channels = t->s.x.dim[3];
  const int64_t group = o / (t->s.w.dim[0] / (channels / per_group));
  for (int64_t ky = 0; ky < v->kernel[0]; ++ky)
    for (int64_t kx = 0; kx < v->kernel[1]; ++kx) {
      const int64_t iy = ct_window_at(v, 0, at[0], ky), ix = ct_window_at(v, 1, at[1], kx);
      if (iy < 0 || ix < 0) continue;
      tap(t, t->x + ((image * v->in[0] + iy) * v->in[1] + ix) * channels + group * per_group,
          t->w + ((o * v->kernel[0] + ky) * v->kernel[1] + kx) * per_group, y);
    }
}

static void sum(const struct sums *t) {
  double *y = t->y;
  for (int64_t image = 0; image < t->s.y.dim[0]; ++image)
    for (int64_t oy = 0; oy < t->window.out[0]; ++oy)
      for (int64_t ox = 0; ox < t->window.out[1]; ++ox)
        for (int64_t o = 0; o < t->s.y.dim[3]; ++o)
          pixel(t, image, (const int64_t[]){oy, ox}, o, y++);
}

/* Where the three are, by product: index of an input, or of the output as -1. */
static void conv_sum(const struct ct_ref_call *c, enum product product, const int where[3]) {
  struct ct_shape shape[3];
  double *data[3];
  for (int i = 0; i < 3; ++i) {
    const bool made = where[i] < 0;
    shape[i] = made ? *ct_out(c->g, c->n, 0) : *ct_in(c->g, c->n, (unsigned)where[i]);
    data[i] = made ? c->out[0] : (double *)c->in[where[i]]; /* only what is made is written */
  }
  const struct sums t = {.window = ct_window_of(c->n, &shape[0], &shape[1].dim[1]),
                         .s = {shape[0], shape[1], shape[2]},
                         .product = product,
                         .x = data[0],
                         .w = data[1],
                         .y = data[2]};
  sum(&t);
}

static void conv_reference(const struct ct_ref_call *c) {
  const struct ct_shape *y = ct_out(c->g, c->n, 0);
  const uint64_t count = ct_has(c->n, 2) ? ct_shape_elements(y) : 0;
  for (uint64_t i = 0; i < count; ++i)
    c->out[0][i] = c->in[2][i % y->dim[3]];
  conv_sum(c, FORWARD, (const int[]){0, 1, -1});
}

static void conv_input_reference(const struct ct_ref_call *c) {
  conv_sum(c, TO_INPUT, (const int[]){-1, 1, 0});
}

static void conv_weight_reference(const struct ct_ref_call *c) {
  conv_sum(c, TO_WEIGHT, (const int[]){1, -1, 0});
}

/* ---- Gradients, work ----------------------------------------------------------------------- */

static void conv_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_shape *x = ct_in(g, n, 0), *w = ct_in(g, n, 1);
  struct ct_attr attrs[SIZE + 1];
  for (unsigned i = 0; i < SIZE; ++i)
    attrs[i] = ct_attr_copy(n, i);
  attrs[SIZE] = (struct ct_attr){"size", 2, {x->dim[1], x->dim[2]}};
  if (ct_wants(g, n, 0))
    gx[0] = CT_EMIT(g, n, .op = "conv_input_grad", CT_IN(gy[0], n->in[1]), .attrs = attrs,
                    .attr_count = SIZE + 1);
  attrs[SIZE] = (struct ct_attr){"size", 2, {w->dim[1], w->dim[2]}};
  if (ct_wants(g, n, 1))
    gx[1] = CT_EMIT(g, n, .op = "conv_weight_grad", CT_IN(gy[0], n->in[0]), .attrs = attrs,
                    .attr_count = SIZE + 1);
  if (ct_wants(g, n, 2)) gx[2] = ct_emit_sum_to(g, n, gy[0], ct_in(g, n, 2));
}

/* That of an image whose convolution would be the input, as in a generator: back it is that. */
static void conv_input_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_shape *w = ct_in(g, n, 1);
  struct ct_attr attrs[SIZE + 1];
  for (unsigned i = 0; i < SIZE; ++i)
    attrs[i] = ct_attr_copy(n, i);
  if (ct_wants(g, n, 0))
    gx[0] = CT_EMIT(g, n, .op = "conv", CT_IN(gy[0], n->in[1]), .attrs = attrs, .attr_count = SIZE);
  attrs[SIZE] = (struct ct_attr){"size", 2, {w->dim[1], w->dim[2]}};
  if (ct_wants(g, n, 1))
    gx[1] = CT_EMIT(g, n, .op = "conv_weight_grad", CT_IN(n->in[0], gy[0]), .attrs = attrs,
                    .attr_count = SIZE + 1);
}

/* Taps outside of the image count, as is usual. */
static uint64_t macs(const struct ct_shape *y, const struct ct_shape *w) {
  return ct_macs(ct_shape_elements(y), ct_shape_part(w, 1, 4));
}
static uint64_t conv_macs(const ct_graph *g, const struct ct_gnode *n) {
  return macs(ct_out(g, n, 0), ct_in(g, n, 1));
}
static uint64_t conv_input_macs(const ct_graph *g, const struct ct_gnode *n) {
  return macs(ct_in(g, n, 0), ct_in(g, n, 1));
}
static uint64_t conv_weight_macs(const ct_graph *g, const struct ct_gnode *n) {
  return macs(ct_in(g, n, 0), ct_out(g, n, 0));
}

const struct ct_gop ct_gop_conv = {.name = "conv",
                                   .inputs = 2,
                                   .optional = 1,
                                   .outputs = 1,
                                   .attrs = conv_attrs,
                                   .shape = conv_shape,
                                   .grad = conv_grad,
                                   .reference = conv_reference,
                                   .macs = conv_macs};
const struct ct_gop ct_gop_conv_input_grad = {.name = "conv_input_grad",
                                              .inputs = 2,
                                              .outputs = 1,
                                              .attrs = input_attrs,
                                              .shape = conv_input_shape,
                                              .grad = conv_input_grad,
                                              .reference = conv_input_reference,
                                              .macs = conv_input_macs};
const struct ct_gop ct_gop_conv_weight_grad = {.name = "conv_weight_grad",
                                               .inputs = 2,
                                               .outputs = 1,
                                               .attrs = weight_attrs,
                                               .shape = conv_weight_shape,
                                               .reference = conv_weight_reference,
                                               .macs = conv_weight_macs};
