/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels that see a tensor through taps. See ct_kernel_conv.h. */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum { MOST_SIZE = 255, MOST_FAR = 511, MOST_STRIDE = 7, MOST_DILATION = 31 };
enum { MOST_TAPS = 15, MOST_BLOCKS = 255, MOST_STEPS = 4095, MOST_GROUPS = 4095 };

/* ---- Whether a walk can ---- */

static int32_t far(int32_t n, int32_t s, int32_t at, int32_t k, int32_t d) {
  const int32_t a = at + (n - 1) * s + (d > 0 ? (k - 1) * d : 0);
  const int32_t b = -at - (d < 0 ? (k - 1) * d : 0);
  return a > b ? a : b;
}

int ct_conv_view_check(const struct ct_conv_view *v, const char *name, const struct ct_why *why) {
  if (v->w > MOST_SIZE || v->h > MOST_SIZE)
    return ct_why(why, CT_ERR_UNSUPPORTED, "%s: images of %d x %d pixels, %d each way is the most",
                  name, (int)v->w, (int)v->h, MOST_SIZE);
  if (v->sx > MOST_STRIDE || v->sy > MOST_STRIDE)
    return ct_why(why, CT_ERR_UNSUPPORTED, "%s: strides of %d and %d, %d is the most", name,
                  (int)v->sy, (int)v->sx, MOST_STRIDE);
  if (v->dx > MOST_DILATION || v->dy > MOST_DILATION || v->dx < -MOST_DILATION ||
      v->dy < -MOST_DILATION)
    return ct_why(why, CT_ERR_UNSUPPORTED, "%s: dilations of %d and %d, %d is the most", name,
                  (int)v->dy, (int)v->dx, MOST_DILATION);
  if ((v->nx - 1) * v->sx > MOST_SIZE || (v->ny - 1) * v->sy > MOST_SIZE)
    return ct_why(why, CT_ERR_UNSUPPORTED,
                  "%s: its last pixel looks at (%d, %d), %d each way is the most", name,
                  (int)((v->nx - 1) * v->sx), (int)((v->ny - 1) * v->sy), MOST_SIZE);
  if (far(v->nx, v->sx, v->x0, v->kx, v->dx) > MOST_FAR ||
      far(v->ny, v->sy, v->y0, v->ky, v->dy) > MOST_FAR)
    return ct_why(why, CT_ERR_UNSUPPORTED,
                  "%s: its kernel reaches more than %d pixels beyond the corner of the image", name,
                  MOST_FAR);
  return CT_OK;
}

/* ---- Segments ---- */

struct ct_conv_cut ct_conv_cut(const struct ct_conv_view *v, uint32_t cb, uint32_t most) {
  struct ct_conv_cut c = {.lines = 1, .taps = 1, .blocks = cb};
  if (most > MOST_STEPS) most = MOST_STEPS;
  if (cb > most || cb > MOST_BLOCKS) {
    const uint32_t n = ct_ceil_div(cb, ct_min_u32(most, MOST_BLOCKS));
    c.blocks = ct_ceil_div(cb, n);
  } else if ((uint32_t)v->kx * cb > most || v->kx > MOST_TAPS) {
    const uint32_t n = ct_ceil_div((uint32_t)v->kx, ct_min_u32(most / cb, MOST_TAPS));
    c.taps = (int32_t)ct_ceil_div((uint32_t)v->kx, n);
  } else {
    const uint32_t fit = most / ((uint32_t)v->kx * cb), n = ct_ceil_div((uint32_t)v->ky, fit);
    c.taps = v->kx;
    c.lines = (int32_t)ct_ceil_div((uint32_t)v->ky, n);
  }
  c.ny = ct_ceil_div((uint32_t)v->ky, (uint32_t)c.lines);
  c.nx = ct_ceil_div((uint32_t)v->kx, (uint32_t)c.taps);
  c.nb = ct_ceil_div(cb, c.blocks);
  c.all = c.ny * c.nx * c.nb;
  return c;
}

struct ct_conv_seg ct_conv_seg(const struct ct_conv_view *v, const struct ct_conv_cut *cut,
                               uint32_t cb, uint32_t i) {
  const uint32_t b = i % cut->nb, x = i / cut->nb % cut->nx, y = i / cut->nb / cut->nx;
  struct ct_conv_seg s = {
      .ty = (int32_t)y * cut->lines, .tx = (int32_t)x * cut->taps, .b0 = b * cut->blocks};
  s.nty = v->ky - s.ty < cut->lines ? v->ky - s.ty : cut->lines;
  s.ntx = v->kx - s.tx < cut->taps ? v->kx - s.tx : cut->taps;
  s.nb = ct_min_u32(cb - s.b0, cut->blocks);
  s.k = (uint32_t)(s.ty * v->kx + s.tx) * cb + s.b0;
  s.steps = (uint32_t)(s.nty * s.ntx) * s.nb;
  return s;
}

/* ---- Where things are ---- */

struct place {
  int32_t x, y;
  uint32_t image;
};

static struct place place_of(const struct ct_conv_view *v, uint32_t r) {
  const uint32_t nx = (uint32_t)v->nx, ny = (uint32_t)v->ny;
  return (struct place){(int32_t)(r % nx), (int32_t)(r / nx % ny), r / nx / ny};
}

/* A line of an image: where there is padding alone, the nearest one is loaded. */
static uint64_t line_of(const struct ct_conv_view *v, const struct place *p, int32_t y) {
  const int32_t line = p->y * v->sy + y;
  return p->image * (uint64_t)v->h + (uint64_t)(line < 0 ? 0 : line < v->h ? line : v->h - 1);
}

struct ct_conv_span ct_conv_span(const struct ct_conv_view *v, uint32_t r0, uint32_t rows,
                                 int32_t ty, int32_t nty) {
  const struct place a = place_of(v, r0), b = place_of(v, r0 + rows - 1);
  const int32_t from = v->y0 + ty * v->dy, to = from + (nty - 1) * v->dy;
  const uint64_t first = line_of(v, &a, from < to ? from : to) * (uint64_t)v->w;
  uint64_t end = (line_of(v, &b, from < to ? to : from) + 1) * (uint64_t)v->w;
  if (end > v->seen) end = v->seen;
  const uint32_t g0 = (uint32_t)(first / CT_TILE);
  return (struct ct_conv_span){g0, (uint32_t)((end + CT_TILE - 1) / CT_TILE) - g0};
}

struct ct_walk_shape ct_conv_walk(const struct ct_conv_view *v, const struct ct_conv_seg *seg,
                                  uint32_t plane) {
  return (struct ct_walk_shape){.w = v->w,
                                .h = v->h,
                                .pixel = 1,
                                .line = v->w,
                                .image = v->w * v->h,
                                .block = (int32_t)plane,
                                .nx = v->nx,
                                .ny = v->ny,
                                .sx = v->sx,
                                .sy = v->sy,
                                .x0 = v->x0 + seg->tx * v->dx,
                                .y0 = v->y0 + seg->ty * v->dy,
                                .dx = v->dx,
                                .dy = v->dy,
                                .kx = seg->ntx,
                                .cb = (int32_t)seg->nb};
}

int32_t ct_conv_a(const struct ct_conv_view *v, const struct ct_conv_seg *seg, uint32_t plane,
                  uint32_t r, const struct ct_conv_span *span, uint32_t b0) {
  const struct ct_walk_shape s = ct_conv_walk(v, seg, plane);
  const struct place p = place_of(v, r);
  const uint32_t base = (seg->b0 - b0) * plane - span->g0 * CT_TILE;
  return (int32_t)ct_walk_a(&s, base, p.x, p.y, (int32_t)p.image);
}

uint32_t ct_conv_pos(const struct ct_conv_view *v, uint32_t r, uint32_t images) {
  const struct ct_walk_shape s = {.sx = v->sx, .sy = v->sy};
  const struct place p = place_of(v, r);
  return ct_walk_pos(&s, p.x, p.y, ct_min_u32(images, 255));
}

uint32_t ct_conv_period(const struct ct_conv_view *v) {
  uint32_t n = 1;
  while (n < CT_TILE && ((uint64_t)n * (uint32_t)(v->nx * v->ny) % CT_TILE ||
                         (uint64_t)n * (uint32_t)(v->w * v->h) % CT_TILE))
    n *= 2;
  return n;
}
