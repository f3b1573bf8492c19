/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of a convolution's input where strides are more than 1. Pixels of the input whose
 * coordinates leave the same remainder (a phase) are seen by the same taps, and in a phase steps
 * are 1 again. So each phase is a product of its own. Its results go, FP32, to the places of its
 * pixels in a band of the input; from there the band goes through the tile program as pixels follow
 * each other. Pixels of a phase without taps are zeros.
 *
 * Where lines are whole tiles and divide into phases evenly, lines of the same remainder lie
 * together in the band: then results of a phase are equally far apart from the first to the last,
 * and a product has as many rows as ACC takes. Otherwise a product is a line of a phase.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum { RESULTS = 4, MOST_TILES = 4, MOST_LINE = 8, PASS_TILES = 4, MOST_GROUPS = 4095 };
/* Loops that can be written out: over chunks, over planes, those of drain(). */
enum { CHUNKS, PLANES, UNROLLED = 3 };

struct plan {
  uint32_t images, lines; /* of a chunk: whole images, or lines of one */
  uint32_t planes, groups, tiles, slots;
  uint64_t cost;
};

struct phases {
  struct ct_vk v;
  const struct ct_conv *k;
  const struct ct_window_shape *s;
  struct ct_conv_drain drain;
  struct plan plan;
  bool together; /* lines of the same remainder */
  uint32_t parts, cb, nb, taps, w_k, y_groups;
  uint32_t y, w; /* tensors */
  uint32_t y_ring, w_ring, band_ring, acc, rest_acc, regs;
  unsigned unrolled;
  /* Under way. */
  uint32_t part, plane0, planes, plane;
  uint32_t image0, images, line0, lines; /* of the chunk */
  struct ct_conv_span span;
  struct ct_ref y_slot, w_slot, band;
  /* A run of pixels of a phase that are equally far apart: the first, its place. */
  struct ct_conv_view view;
  struct ct_conv_cut cut;
  uint32_t w_at, run, run_at;
};

/* ---- Phases -------------------------------------------------------------------------------- */

/* Along one axis: taps first, first + step, ..; n of them, which see outputs from `at` on, each
 * `back` further back. size: pixels of the phase. */
struct axis {
  uint32_t first, step, n, size;
  int32_t at, back;
};

static struct axis axis_of(uint32_t phase, uint32_t size, uint32_t k, uint32_t d, uint32_t s,
                           int32_t pad) {
  struct axis a = {.first = k, .size = phase < size ? (size - phase + s - 1) / s : 0};
  for (uint32_t i = 0; i < k; ++i) {
    const int64_t at = (int64_t)phase + pad - (int64_t)i * d;
    if (at % s) continue;
    if (a.n == 0) {
      a.first = i;
      a.at = (int32_t)(at / s);
    }
    if (a.n == 1) a.step = i - a.first;
    ++a.n;
  }
  a.back = (int32_t)(a.step * d / s);
  return a;
}

static struct axis down(const struct phases *c, uint32_t py) {
  const struct ct_window_shape *s = c->s;
  return axis_of(py, s->h, s->ky, s->dy, s->sy, s->top);
}

static struct axis along(const struct phases *c, uint32_t px) {
  const struct ct_window_shape *s = c->s;
  return axis_of(px, s->w, s->kx, s->dx, s->sx, s->left);
}

/* How a phase's pixels see the gradient. */
static struct ct_conv_view view_of(const struct phases *c, const struct axis *y,
                                   const struct axis *x) {
  return (struct ct_conv_view){.nx = (int32_t)x->size,
                               .ny = (int32_t)y->size,
                               .w = (int32_t)c->s->ow,
                               .h = (int32_t)c->s->oh,
                               .sx = 1,
                               .sy = 1,
                               .x0 = x->at,
                               .y0 = y->at,
                               .dx = x->n > 1 ? -x->back : 1,
                               .dy = y->n > 1 ? -y->back : 1,
                               .kx = (int32_t)x->n,
                               .ky = (int32_t)y->n,
                               .rows = c->s->images * y->size * x->size,
                               .seen = c->s->images * c->s->oh * c->s->ow};
}

/* ---- Loads --------------------------------------------------------------------------------- */

/* Lines of the gradient that a chunk sees. */
static struct ct_conv_span span_of(const struct phases *c, uint32_t image0, uint32_t images,
                                   uint32_t line0, uint32_t lines) {
  const struct ct_window_shape *s = c->s;
  const int64_t low = (int64_t)line0 + s->top - (int64_t)(s->ky - 1) * s->dy;
  const int64_t high = ((int64_t)line0 + lines - 1 + s->top) / s->sy;
  const uint32_t first = low < 0 ? 0 : ct_min_u32((uint32_t)(low / s->sy), s->oh - 1);
  const uint32_t last = high < s->oh ? (uint32_t)high : s->oh - 1;
  const uint64_t from = ((uint64_t)image0 * s->oh + first) * s->ow;
  const uint64_t to = ((uint64_t)(image0 + images - 1) * s->oh + last + 1) * s->ow;
  const uint32_t g0 = (uint32_t)(from / CT_TILE);
  return (struct ct_conv_span){g0, (uint32_t)((to + CT_TILE - 1) / CT_TILE) - g0};
}

static uint32_t y_words(const struct phases *c) {
  return c->plan.groups * CT_TILE;
}

static void load_y(struct phases *c) {
  c->span = span_of(c, c->image0, c->images, c->line0, c->lines);
  c->y_slot = ct_next(c->v.l, c->y_ring);
  ct_ld(c->v.l, &(struct ct_dma){.dram = ct_tiles_of(c->v.l, c->y, c->part * c->cb, c->cb,
                                                     c->span.g0, c->span.groups),
                                 .spm = c->y_slot,
                                 .hdr = true,
                                 .nb = CT_TILE,
                                 .n1 = c->span.groups,
                                 .d1 = CT_RECORD_UNITS,
                                 .s1 = CT_TILE,
                                 .n2 = c->cb,
                                 .d2 = (int32_t)(c->y_groups * CT_RECORD_UNITS),
                                 .s2 = (int32_t)y_words(c)});
}

/* A line of a phase's taps for a plane. */
static void load_taps(struct phases *c, uint32_t plane, uint32_t at, uint32_t tap,
                      const struct axis *x) {
  ct_ld(c->v.l,
        &(struct ct_dma){.dram = ct_tiles_of(c->v.l, c->w, c->part * c->cb, c->cb,
                                             tap * c->nb + plane, (x->n - 1) * x->step * c->nb + 1),
                         .spm = ct_behind(c->w_slot, at * CT_TILE),
                         .hdr = true,
                         .nb = CT_TILE,
                         .n1 = c->cb,
                         .d1 = (int32_t)(c->w_k * CT_RECORD_UNITS),
                         .s1 = CT_TILE,
                         .n2 = x->n,
                         .d2 = (int32_t)(x->step * c->nb * CT_RECORD_UNITS),
                         .s2 = (int32_t)(c->cb * CT_TILE)});
}

/* Phase by phase, as they are used. */
static void load_weights(struct phases *c) {
  uint32_t at = 0;
  c->w_slot = ct_next(c->v.l, c->w_ring);
  for (uint32_t plane = c->plane0; plane < c->plane0 + c->planes; ++plane)
    for (uint32_t py = 0; py < c->s->sy; ++py)
      for (uint32_t px = 0; px < c->s->sx; ++px) {
        const struct axis y = down(c, py), x = along(c, px);
        for (uint32_t i = 0; i < y.n && x.n; ++i, at += x.n * c->cb)
          load_taps(c, plane, at, (y.first + i * y.step) * c->s->kx + x.first, &x);
      }
}

/* ---- A phase ------------------------------------------------------------------------------- */

/* Rows [first, first + rows) of a run: to their places. */
static void put_tile(struct phases *c, struct ct_ref acc, uint32_t first, uint32_t rows) {
  struct ct_lower *l = c->v.l;
  const uint32_t step = c->s->sx * CT_F32_ROW_UNITS;
  const struct ct_ref reg = ct_next(l, c->regs);
  ct_va(l, &(struct ct_va){.to = reg, .a = acc});
  ct_vs(l, &(struct ct_vmove){.reg = reg,
                              .spm = ct_behind(c->band, c->run_at + first * step),
                              .rows = rows,
                              .stride = step});
}

static void walk(struct phases *c, const struct ct_conv_seg *seg) {
  const struct ct_walk_shape w = ct_conv_walk(&c->view, seg, y_words(c));
  ct_mm_walk(c->v.l, &w);
}

static void multiply(struct phases *c, struct ct_ref acc, uint32_t r, uint32_t rows) {
  const struct ct_conv_view *v = &c->view;
  for (uint32_t i = 0; i < c->cut.all; ++i) {
    const struct ct_conv_seg seg = ct_conv_seg(v, &c->cut, c->cb, i);
    if (c->cut.all > 1) walk(c, &seg);
    ct_mm(c->v.l, &(struct ct_mm){.a = c->y_slot,
                                  .b = ct_behind(c->w_slot, (c->w_at + seg.k) * CT_TILE),
                                  .acc = acc,
                                  .accum = i > 0,
                                  .walk = true,
                                  .walk_a = ct_conv_a(v, &seg, y_words(c), r, &c->span, 0),
                                  .pos = ct_conv_pos(v, r, 255),
                                  .bk = CT_TILE,
                                  .kt = seg.steps,
                                  .nt = 1,
                                  .rows = rows,
                                  .acc_n = ct_tiles(rows)});
  }
}

static void block(struct phases *c, uint32_t first, uint32_t rows) {
  const uint32_t tiles = ct_tiles(rows);
  struct ct_ref acc = {.space = 0};
  if (c->view.kx && c->view.ky) {
    acc = ct_next_n(c->v.l, tiles == c->plan.tiles ? c->acc : c->rest_acc, tiles);
    multiply(c, acc, c->run + first, rows);
  }
  for (uint32_t t = 0; t < tiles; ++t)
    put_tile(c, acc.space ? ct_nth(acc, t) : acc, first + t * CT_TILE,
             ct_min_u32(rows - t * CT_TILE, CT_TILE));
}

/* So many pixels from c->run on. */
static void run(struct phases *c, uint32_t rows) {
  const uint32_t most = c->plan.tiles * CT_TILE;
  for (uint32_t r = 0; r < rows;) {
    uint32_t n = ct_min_u32(rows - r, most);
    if (ct_tiles(n) < c->plan.tiles) n = ct_min_u32(n, CT_TILE);
    block(c, r, n);
    r += n;
  }
}

/* Lines of a remainder in front of line y. */
static uint32_t lines_before(const struct phases *c, uint32_t y, uint32_t py) {
  return y <= py ? 0 : (y - py + c->s->sy - 1) / c->s->sy;
}

static uint32_t lines_of(const struct phases *c, uint32_t py) {
  return lines_before(c, c->line0 + c->lines, py) - lines_before(c, c->line0, py);
}

/* Where lines of a remainder begin in the band, in pixels. */
static uint32_t lines_at(const struct phases *c, uint32_t image, uint32_t py) {
  uint32_t lines = image * c->lines;
  for (uint32_t p = 0; p < py; ++p)
    lines += lines_of(c, p);
  return lines * c->s->w;
}

static void phase_of_image(struct phases *c, uint32_t image, uint32_t py, uint32_t px) {
  const uint32_t nx = (uint32_t)c->view.nx, ny = (uint32_t)c->view.ny;
  const uint32_t first = lines_before(c, c->line0, py), lines = lines_of(c, py);
  c->run = ((c->image0 + image) * ny + first) * nx;
  if (c->together) {
    c->run_at = (lines_at(c, image, py) + px) * CT_F32_ROW_UNITS;
    run(c, lines * nx);
    return;
  }
  for (uint32_t i = 0; i < lines; ++i, c->run += nx) {
    const uint32_t line = image * c->lines + (first + i) * c->s->sy + py - c->line0;
    c->run_at = (line * c->s->w + px) * CT_F32_ROW_UNITS;
    run(c, nx);
  }
}

static void one_phase(struct phases *c, uint32_t py, uint32_t px) {
  const struct axis y = down(c, py), x = along(c, px);
  const uint32_t steps = y.n * x.n * c->cb;
  if (y.size && x.size) {
    c->view = view_of(c, &y, &x);
    if (steps) {
      c->cut = ct_conv_cut(&c->view, c->cb, UINT32_MAX);
      const struct ct_conv_seg seg = ct_conv_seg(&c->view, &c->cut, c->cb, 0);
      if (c->cut.all == 1) walk(c, &seg);
    }
    for (uint32_t i = 0; i < c->images; ++i)
      phase_of_image(c, i, py, px);
  }
  c->w_at += steps;
}

/* ---- The band ------------------------------------------------------------------------------ */

struct piece {
  struct phases *c;
  uint32_t at, to, step; /* pixels: in the band, in the tensor; from a piece to the next */
  uint32_t rows;
};

static void piece_pass(void *kernel, uint32_t pass) {
  const struct piece *p = kernel;
  ct_conv_drain_block(
      &p->c->drain, ct_behind(p->c->band, (p->at + pass * p->rows) * CT_F32_ROW_UNITS),
      p->c->part * p->c->nb + p->c->plane, (p->to + pass * p->step) / CT_TILE, p->rows);
}

/* Pixels that follow each other both in the band and in the tensor. */
static void pieces(struct piece p, uint32_t rows, bool loop) {
  const uint32_t whole = rows / p.rows;
  p.step = p.rows;
  if (loop)
    ct_repeat(p.c->v.l, whole, piece_pass, &p);
  else
    for (uint32_t i = 0; i < whole; ++i)
      piece_pass(&p, i);
  if (rows % p.rows == 0) return;
  p.at += whole * p.rows;
  p.to += whole * p.rows;
  p.rows = rows % p.rows;
  piece_pass(&p, 0);
}

static void lines_pass(void *kernel, uint32_t pass) {
  const struct piece *p = kernel;
  const uint32_t w = p->c->s->w;
  pieces((struct piece){p->c, p->at + pass * w, p->to + pass * p->step, 0, p->rows}, w, false);
}

static void drain(struct phases *c) {
  const uint32_t w = c->s->w, first = (c->image0 * c->s->h + c->line0) * w;
  const bool loop = c->unrolled < UNROLLED;
  if (!c->together) {
    pieces((struct piece){c, 0, first, 0, PASS_TILES * CT_TILE}, c->images * c->lines * w, loop);
    return;
  }
  for (uint32_t i = 0; i < c->images; ++i)
    for (uint32_t py = 0; py < c->s->sy; ++py) {
      const uint32_t y = lines_before(c, c->line0, py) * c->s->sy + py;
      struct piece p = {c, lines_at(c, i, py), ((c->image0 + i) * c->s->h + y) * w, c->s->sy * w,
                        ct_min_u32(w, PASS_TILES * CT_TILE)};
      if (loop)
        ct_repeat(c->v.l, lines_of(c, py), lines_pass, &p);
      else
        for (uint32_t j = 0; j < lines_of(c, py); ++j)
          lines_pass(&p, j);
    }
}

/* ---- All ----------------------------------------------------------------------------------- */

static void repeat(struct phases *c, unsigned which, uint32_t passes, ct_body *body) {
  if (which >= c->unrolled) {
    ct_repeat(c->v.l, passes, body, c);
    return;
  }
  for (uint32_t i = 0; i < passes && !ct_lower_error(c->v.l); ++i)
    body(c, i);
}

static void plane_pass(void *kernel, uint32_t pass) {
  struct phases *c = kernel;
  c->plane = c->plane0 + pass;
  c->w_at = pass * c->taps * c->cb;
  c->band = ct_next(c->v.l, c->band_ring);
  for (uint32_t py = 0; py < c->s->sy; ++py)
    for (uint32_t px = 0; px < c->s->sx; ++px)
      one_phase(c, py, px);
  ct_conv_drain_plane(&c->drain, c->part * c->nb + c->plane);
  drain(c);
}

static void chunk(struct phases *c, uint32_t image0, uint32_t images, uint32_t line0,
                  uint32_t lines) {
  const uint32_t whole = c->k->x.cols / CT_TILE, at = c->part * c->nb + c->plane0;
  const uint32_t alike = at + c->planes <= whole ? c->planes : whole > at ? whole - at : 0;
  c->image0 = image0;
  c->images = images;
  c->line0 = line0;
  c->lines = lines;
  load_y(c);
  repeat(c, PLANES, alike, plane_pass);
  for (uint32_t i = alike; i < c->planes; ++i)
    plane_pass(c, i);
}

/* Images whose first pixel begins a group, of both tensors. */
static uint32_t period_of(const struct ct_window_shape *s) {
  uint32_t n = 1;
  while (n < CT_TILE &&
         ((uint64_t)n * s->h * s->w % CT_TILE || (uint64_t)n * s->oh * s->ow % CT_TILE))
    n *= 2;
  return n;
}

/* Images [from, from + n). */
static void some_images(struct phases *c, uint32_t from, uint32_t n) {
  const struct plan *p = &c->plan;
  if (p->lines == c->s->h) {
    for (uint32_t i = 0; i < n; i += p->images)
      chunk(c, from + i, ct_min_u32(p->images, n - i), 0, c->s->h);
    return;
  }
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t y = 0; y < c->s->h; y += p->lines)
      chunk(c, from + i, 1, y, ct_min_u32(p->lines, c->s->h - y));
}

static uint32_t step_images(const struct phases *c) {
  const uint32_t period = period_of(c->s);
  return period > c->plan.images ? period : c->plan.images;
}

static void images_pass(void *kernel, uint32_t pass) {
  struct phases *c = kernel;
  const uint32_t n = step_images(c);
  some_images(c, pass * n, n);
}

static void all_images(struct phases *c) {
  const uint32_t n = step_images(c), whole = c->s->images / n;
  repeat(c, CHUNKS, whole, images_pass);
  if (c->s->images % n) some_images(c, whole * n, c->s->images % n);
}

/* ---- How much of everything ---------------------------------------------------------------- */

static uint64_t words_of(const struct phases *c, const struct plan *p) {
  const uint64_t pixels = (uint64_t)ct_tiles(p->images * p->lines * c->s->w) * CT_TILE;
  return CT_TILE + CT_CARRIER_WORDS + (uint64_t)c->taps * c->cb * p->planes * CT_TILE +
         p->slots * (pixels * CT_F32_ROW_UNITS + (uint64_t)p->groups * CT_TILE * c->cb) +
         ct_conv_drain_words(&c->drain, PASS_TILES, p->slots);
}

static void try_plan(struct phases *c, struct plan p, uint64_t *least) {
  const uint32_t bands = ct_ceil_div(c->s->h, p.lines);
  p.groups = 0;
  for (uint32_t i = 0; i < bands * ct_min_u32(period_of(c->s), c->s->images); ++i) {
    const uint32_t y = i % bands * p.lines, lines = ct_min_u32(p.lines, c->s->h - y);
    const uint32_t image = p.images > 1 ? 0 : i / bands;
    const uint32_t groups = span_of(c, image, ct_min_u32(p.images, c->s->images), y, lines).groups;
    if (groups > p.groups) p.groups = groups;
  }
  if (p.groups > MOST_GROUPS) return;
  const uint64_t chunks = (uint64_t)ct_ceil_div(c->s->images, p.images) * bands;
  for (uint32_t n = 1; n <= c->nb; ++n)
    for (p.slots = 1; p.slots <= 2; ++p.slots) {
      p.planes = ct_ceil_div(c->nb, n);
      const uint64_t words = words_of(c, &p), each = (uint64_t)p.groups * CT_RECORD_UNITS * c->cb;
      p.cost = 1 + n * chunks * (each / p.slots + 150);
      if (*least == 0 || words < *least) *least = words;
      if (words <= c->v.room->spm_words && (c->plan.cost == 0 || p.cost < c->plan.cost))
        c->plan = p;
    }
}

static uint32_t lines_step(const struct ct_window_shape *s) {
  uint32_t n = s->sy;
  while ((uint64_t)n * s->w % CT_TILE)
    n += s->sy;
  return n;
}

static int choose(struct phases *c) {
  const struct ct_window_shape *s = c->s;
  const uint32_t line = ct_tiles(ct_ceil_div(s->w, s->sx)), period = period_of(s);
  struct plan p = {.tiles = c->together ? MOST_TILES : ct_min_u32(line, MOST_LINE - 1)};
  uint64_t least = 0;
  p.lines = s->h;
  for (p.images = period; p.images <= 64; p.images *= 2) {
    try_plan(c, p, &least);
    if (p.images >= s->images) break;
  }
  p.images = 1;
  if ((uint64_t)s->h * s->w % CT_TILE == 0)
    for (p.lines = lines_step(s); p.lines < s->h; p.lines += lines_step(s))
      try_plan(c, p, &least);
  if (c->plan.cost == 0)
    return ct_why(c->v.why, CT_ERR_NO_SPACE, "%s needs %llu words of scratchpad, the window has %u",
                  c->v.name, (unsigned long long)least, c->v.room->spm_words);
  return CT_OK;
}

/* ---- Programs ------------------------------------------------------------------------------ */

static void member(void *kernel, uint32_t i) {
  struct phases *c = kernel;
  const struct plan *p = &c->plan;
  (void)i;
  for (c->part = 0; c->part < c->parts; ++c->part)
    for (c->plane0 = 0; c->plane0 < c->nb; c->plane0 += p->planes) {
      c->planes = ct_min_u32(p->planes, c->nb - c->plane0);
      load_weights(c);
      all_images(c);
    }
}

static void record(struct phases *c) {
  struct ct_lower *l = c->v.l;
  const struct plan *p = &c->plan;
  c->regs = ct_reg_ring(l, "results of a phase", CT_VK_FIRST_REG, RESULTS);
  ct_conv_drain_rings(&c->drain, PASS_TILES, 0, p->slots);
  c->y_ring = ct_spm_ring(l, "gradients", y_words(c) * c->cb, p->slots);
  c->w_ring = ct_spm_ring(l, "weights", c->taps * c->cb * p->planes * CT_TILE, 1);
  c->band_ring = ct_spm_ring(
      l, "band", ct_tiles(p->images * p->lines * c->s->w) * CT_F32_TILE_UNITS, p->slots);
  c->acc = ct_acc_ring(l, "products", 0, 2 * p->tiles);
  if (p->tiles > 1) c->rest_acc = ct_acc_ring(l, "products left over", 2 * p->tiles, 1);
  ct_ring_freed_by(l, c->y_ring, CT_Q_VA);
  ct_ring_freed_by(l, c->w_ring, CT_Q_VA);
  ct_conv_carriers(&c->v, c->w, c->drain.regs.first_temp);
  ct_members(l, member, c);
}

static int check_views(const struct phases *c) {
  int err = CT_OK;
  for (uint32_t py = 0; py < c->s->sy && py < c->s->h && !err; ++py)
    for (uint32_t px = 0; px < c->s->sx && px < c->s->w && !err; ++px) {
      const struct axis y = down(c, py), x = along(c, px);
      const struct ct_conv_view v = view_of(c, &y, &x);
      if (x.n && y.n) err = ct_conv_view_check(&v, c->v.name, c->v.why);
    }
  return err;
}

static int try_phases(const struct ct_conv *k, unsigned unrolled, const struct ct_room *room,
                      struct ct_codes *codes, const struct ct_why *why) {
  struct phases c = {.k = k, .s = &k->shape, .unrolled = unrolled};
  int err = ct_vk_start(&c.v, "the gradient of a convolution's input", room, why);
  if (err) return err;
  err = ct_conv_check_input(&c.v, k);
  if (!err) err = check_views(&c);
  c.parts = ct_conv_parts(k);
  c.cb = ct_tiles(k->y.cols / c.parts);
  c.nb = ct_tiles(k->x.cols / c.parts);
  c.taps = c.s->ky * c.s->kx;
  c.w_k = ct_mat_groups(&k->weights);
  c.y_groups = ct_mat_groups(&k->y);
  c.together = c.s->w % CT_TILE == 0 && c.s->w % c.s->sx == 0;
  c.drain.first = CT_VK_FIRST_REG + RESULTS;
  if (!err) err = ct_conv_drain_start(&c.drain, &c.v, k->after, NULL, k->x.rows, k->x.cols, false);
  if (!err) {
    c.y = ct_vk_tensor(&c.v, &k->y, ct_conv_keep(&k->y), false);
    c.w = ct_vk_tensor(&c.v, &k->weights, CT_KEEP_SQUARE, false);
    err = choose(&c);
  }
  if (err) {
    ct_lower_drop(c.v.l);
    return err;
  }
  record(&c);
  return ct_vk_end(&c.v, codes);
}

int ct_conv_phases(const struct ct_conv *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why) {
  if (k->made)
    return ct_why(why, CT_ERR_NO_SPACE,
                  "the gradient of a convolution's input: its pixels do not "
                  "follow each other, so nothing is made on the way");
  return ct_conv_tries(try_phases, UNROLLED, k, room, codes, why);
}
