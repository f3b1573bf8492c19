/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pooling of images (NHWC): the largest of each window, the mean of it, the mean of all. Of equal
 * largest elements the first in the window counts, row by row. The mean is over the elements of the
 * window that exist, or over all of it with count_pad.
 */
#include <math.h>

#include "ct_op.h"
#include "ct_op_window.h"

enum { KERNEL = CT_WINDOW_NEXT, COUNT_PAD, SIZE };
#define RULES CT_WINDOW_RULES, CT_WHOLE("kernel", 2, 1, CT_WINDOW_MOST, NAN)
#define AVERAGE RULES, CT_WHOLE("count_pad", 1, 0, 1, 0)

static const struct ct_attr_rule max_attrs[] = {RULES, {0}};
static const struct ct_attr_rule average_attrs[] = {AVERAGE, {0}};
static const struct ct_attr_rule average_grad_attrs[] = {
    AVERAGE, CT_WHOLE("size", 2, 1, CT_GRAPH_MOST_DIM, NAN), {0}};

/* ---- Shapes -------------------------------------------------------------------------------- */

static void kernel_of(const struct ct_gnode *n, uint32_t kernel[2]) {
  kernel[0] = ct_attr_u32(n, KERNEL, 0);
  kernel[1] = ct_attr_u32(n, KERNEL, 1);
}

/* Every window has an element of the image: one that reaches into it has a tap in its first
 * dilation elements, or begins in it. */
static int fit(ct_graph *g, const struct ct_gnode *n, const struct ct_shape *x,
               struct ct_shape *y) {
  uint32_t kernel[2];
  struct ct_window w;
  kernel_of(n, kernel);
  const int err = ct_window_make(g, n, x, kernel, &w);
  if (err) return err;
  for (unsigned i = 0; i < 2; ++i) {
    const int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1;
    const bool small = w.pad[i] && w.in[i] < w.dilation[i];
    if (w.pad[i] >= span || ct_attr_u32(n, CT_WINDOW_PAD, i + 2) >= span || small)
      return ct_refuse(g, n, "a window of %lld may lie in the padding alone", (long long)span);
  }
  *y = (struct ct_shape){4, {x->dim[0], (uint32_t)w.out[0], (uint32_t)w.out[1], x->dim[3]}};
  return CT_OK;
}

static int pool_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  return fit(g, n, ct_in(g, n, 0), out);
}

/* gy and x. */
static int max_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  struct ct_shape y;
  out[0] = *ct_in(g, n, 1);
  const int err = fit(g, n, out, &y);
  return err ? err : ct_need_shape(g, n, 0, &y, "the gradient of its output");
}

static int average_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *gy = ct_in(g, n, 0);
  struct ct_shape y;
  if (gy->dims != 4)
    return ct_refuse(g, n, "its input is %s, it must have 4 dimensions", CT_SHAPE(gy));
  out[0] = (struct ct_shape){
      4, {gy->dim[0], ct_attr_u32(n, SIZE, 0), ct_attr_u32(n, SIZE, 1), gy->dim[3]}};
  const int err = fit(g, n, out, &y);
  return err ? err : ct_need_shape(g, n, 0, &y, "the gradient of its output");
}

/* ---- Reference ----------------------------------------------------------------------------- */

/* A window over channel c of an image: what it says goes to y, or y's gradient to gx. */
struct pooling {
  const struct ct_gnode *n;
  struct ct_window w;
  uint64_t channels;
  const double *x, *gy;
  double *y, *gx;
};

/* Element of a plane, of a tap; -1 outside. */
static int64_t element(const struct pooling *p, int64_t oy, int64_t ox, int64_t t) {
  const int64_t iy = ct_window_at(&p->w, 0, oy, t / p->w.kernel[1]);
  const int64_t ix = ct_window_at(&p->w, 1, ox, t % p->w.kernel[1]);
  return iy < 0 || ix < 0 ? -1 : (iy * p->w.in[1] + ix) * (int64_t)p->channels;
}

typedef void window_fn(const struct pooling *p, int64_t oy, int64_t ox, uint64_t plane,
                       uint64_t out);

static void largest(const struct pooling *p, int64_t oy, int64_t ox, uint64_t plane, uint64_t out) {
  int64_t best = -1;
  for (int64_t t = 0; t < p->w.kernel[0] * p->w.kernel[1]; ++t) {
    const int64_t at = element(p, oy, ox, t);
    if (at >= 0 && (best < 0 || p->x[plane + (uint64_t)at] > p->x[plane + (uint64_t)best]))
      best = at;
  }
  if (best < 0) return;
  if (p->y) p->y[out] = p->x[plane + (uint64_t)best];
  if (p->gx) p->gx[plane + (uint64_t)best] += p->gy[out];
}

static void mean(const struct pooling *p, int64_t oy, int64_t ox, uint64_t plane, uint64_t out) {
  const int64_t taps = p->w.kernel[0] * p->w.kernel[1];
  int64_t count = 0;
  for (int64_t t = 0; t < taps; ++t)
    count += element(p, oy, ox, t) >= 0;
  if (ct_attr(p->n, COUNT_PAD, 0) != 0) count = taps;
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t at = element(p, oy, ox, t);
    if (at >= 0 && p->y) p->y[out] += p->x[plane + (uint64_t)at] / (double)count;
    if (at >= 0 && p->gx) p->gx[plane + (uint64_t)at] += p->gy[out] / (double)count;
  }
}

/* image: what the windows go over. */
static void pool(struct pooling *p, const struct ct_shape *image, window_fn *window) {
  uint32_t kernel[2];
  uint64_t out = 0;
  kernel_of(p->n, kernel);
  p->w = ct_window_of(p->n, image, kernel);
  p->channels = image->dim[3];
  for (uint64_t i = 0; i < image->dim[0]; ++i)
    for (int64_t oy = 0; oy < p->w.out[0]; ++oy)
      for (int64_t ox = 0; ox < p->w.out[1]; ++ox)
        for (uint64_t c = 0; c < p->channels; ++c)
          window(p, oy, ox, i * ct_shape_part(image, 1, 4) + c, out++);
}

static void max_reference(const struct ct_ref_call *c) {
  pool(&(struct pooling){.n = c->n, .x = c->in[0], .y = c->out[0]}, ct_in(c->g, c->n, 0), largest);
}
static void max_grad_reference(const struct ct_ref_call *c) {
  pool(&(struct pooling){.n = c->n, .gy = c->in[0], .x = c->in[1], .gx = c->out[0]},
       ct_in(c->g, c->n, 1), largest);
}
static void average_reference(const struct ct_ref_call *c) {
  pool(&(struct pooling){.n = c->n, .x = c->in[0], .y = c->out[0]}, ct_in(c->g, c->n, 0), mean);
}
static void average_grad_reference(const struct ct_ref_call *c) {
  pool(&(struct pooling){.n = c->n, .gy = c->in[0], .gx = c->out[0]}, ct_out(c->g, c->n, 0), mean);
}

/* Taps that are looked at. */
static uint64_t pool_work(const ct_graph *g, const struct ct_gnode *n) {
  const uint64_t x = ct_shape_elements(ct_in(g, n, 0)), y = ct_shape_elements(ct_out(g, n, 0));
  return ct_macs(x < y ? x : y, (uint64_t)ct_attr_u32(n, KERNEL, 0) * ct_attr_u32(n, KERNEL, 1));
}

/* ---- Gradients ----------------------------------------------------------------------------- */

static void max_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  struct ct_attr attrs[KERNEL + 1];
  for (unsigned i = 0; i <= KERNEL; ++i)
    attrs[i] = ct_attr_copy(n, i);
  gx[0] = CT_EMIT(g, n, .op = "max_pool_grad", CT_IN(gy[0], n->in[0]), .attrs = attrs,
                  .attr_count = KERNEL + 1);
}

static void average_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_shape *x = ct_in(g, n, 0);
  struct ct_attr attrs[SIZE + 1] = {[SIZE] = {"size", 2, {x->dim[1], x->dim[2]}}};
  for (unsigned i = 0; i < SIZE; ++i)
    attrs[i] = ct_attr_copy(n, i);
  gx[0] = CT_EMIT(g, n, .op = "average_pool_grad", CT_IN(gy[0]), .attrs = attrs,
                  .attr_count = SIZE + 1);
}

const struct ct_gop ct_gop_max_pool = {.name = "max_pool",
                                       .inputs = 1,
                                       .outputs = 1,
                                       .attrs = max_attrs,
                                       .shape = pool_shape,
                                       .grad = max_grad,
                                       .reference = max_reference,
                                       .work = pool_work};
const struct ct_gop ct_gop_max_pool_grad = {.name = "max_pool_grad",
                                            .inputs = 2,
                                            .outputs = 1,
                                            .attrs = max_attrs,
                                            .shape = max_grad_shape,
                                            .reference = max_grad_reference,
                                            .work = pool_work};
const struct ct_gop ct_gop_average_pool = {.name = "average_pool",
                                           .inputs = 1,
                                           .outputs = 1,
                                           .attrs = average_attrs,
                                           .shape = pool_shape,
                                           .grad = average_grad,
                                           .reference = average_reference,
                                           .work = pool_work};
const struct ct_gop ct_gop_average_pool_grad = {.name = "average_pool_grad",
                                                .inputs = 1,
                                                .outputs = 1,
                                                .attrs = average_grad_attrs,
                                                .shape = average_grad_shape,
                                                .reference = average_grad_reference,
                                                .work = pool_work};

/* ---- The mean of an image ------------------------------------------------------------------ */

static const struct ct_attr_rule global_grad_attrs[] = {
    CT_WHOLE("size", 2, 1, CT_GRAPH_MOST_DIM, NAN), {0}};

static int global_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *x = ct_in(g, n, 0);
  if (x->dims != 4)
    return ct_refuse(g, n, "its image is %s, it must have 4 dimensions: NHWC", CT_SHAPE(x));
  out[0] = (struct ct_shape){4, {x->dim[0], 1, 1, x->dim[3]}};
  return CT_OK;
}

static int global_grad_shape(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  const struct ct_shape *gy = ct_in(g, n, 0);
  if (gy->dims != 4 || gy->dim[1] != 1 || gy->dim[2] != 1)
    return ct_refuse(g, n, "its input is %s, it must be batch x 1 x 1 x channels", CT_SHAPE(gy));
  out[0] =
      (struct ct_shape){4, {gy->dim[0], ct_attr_u32(n, 0, 0), ct_attr_u32(n, 0, 1), gy->dim[3]}};
  return CT_OK;
}

static void global_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_in(c->g, c->n, 0);
  const uint64_t plane = ct_shape_part(x, 1, 4), channels = x->dim[3];
  const uint64_t pixels = plane / channels;
  for (uint64_t i = 0; i < ct_shape_elements(x); ++i)
    c->out[0][i / plane * channels + i % channels] += c->in[0][i] / (double)pixels;
}

static void global_grad_reference(const struct ct_ref_call *c) {
  const struct ct_shape *x = ct_out(c->g, c->n, 0);
  const uint64_t plane = ct_shape_part(x, 1, 4), channels = x->dim[3];
  const uint64_t pixels = plane / channels;
  for (uint64_t i = 0; i < ct_shape_elements(x); ++i)
    c->out[0][i] = c->in[0][i / plane * channels + i % channels] / (double)pixels;
}

static void global_grad(ct_graph *g, const struct ct_gnode *n, const int *gy, int *gx) {
  const struct ct_shape *x = ct_in(g, n, 0);
  gx[0] = CT_EMIT(g, n, .op = "global_average_pool_grad", CT_IN(gy[0]),
                  CT_ATTRS({"size", 2, {x->dim[1], x->dim[2]}}));
}

const struct ct_gop ct_gop_global_average_pool = {.name = "global_average_pool",
                                                  .inputs = 1,
                                                  .outputs = 1,
                                                  .shape = global_shape,
                                                  .grad = global_grad,
                                                  .reference = global_reference};
const struct ct_gop ct_gop_global_average_pool_grad = {.name = "global_average_pool_grad",
                                                       .inputs = 1,
                                                       .outputs = 1,
                                                       .attrs = global_grad_attrs,
                                                       .shape = global_grad_shape,
                                                       .reference = global_grad_reference};
