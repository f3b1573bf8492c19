/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of pixels and weights. A chunk of pixels lies in the scratchpad and is multiplied block
 * by block: up to 128 pixels, and 16 channels of the result.
 *
 *   weights stay   weights of some planes of the result; all chunks of pixels; a chunk's planes;
 *                  a plane's blocks
 *   weights pass   chunks of a block; its planes; a plane's weights, segment by segment, and, where
 *                  a block sees more than fits, what it sees with them
 *
 * Sums are made in the same order, k step by k step, in all of them.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum { CHUNKS, PLANES, BLOCKS }; /* loops, the outermost first */

/* A loop, or its passes written out. */
static void repeat(struct ct_conv_rows *c, unsigned which, uint32_t passes, ct_body *body) {
  if (which >= c->unrolled) {
    ct_repeat(c->v.l, passes, body, c);
    return;
  }
  for (uint32_t i = 0; i < passes && !ct_lower_error(c->v.l); ++i)
    body(c, i);
}

static uint32_t plane_words(const struct ct_conv_rows *c) {
  return c->plan.groups * CT_TILE;
}

/* ---- Loads --------------------------------------------------------------------------------- */

static void load_x(struct ct_conv_rows *c, const struct ct_conv_span *span, uint32_t b0,
                   uint32_t blocks) {
  c->x_slot = ct_next(c->v.l, c->x_ring);
  ct_ld(c->v.l, &(struct ct_dma){.dram = ct_tiles_of(c->v.l, c->x, c->part * c->cb + b0, blocks,
                                                     span->g0, span->groups),
                                 .spm = c->x_slot,
                                 .hdr = true,
                                 .nb = CT_TILE,
                                 .n1 = span->groups,
                                 .d1 = CT_RECORD_UNITS,
                                 .s1 = CT_TILE,
                                 .n2 = blocks,
                                 .d2 = (int32_t)(c->x_groups * CT_RECORD_UNITS),
                                 .s2 = (int32_t)plane_words(c)});
}

/* Of planes that are made, pieces of the weights as they lie: plane by plane of the outputs. */
static void load_forward(struct ct_conv_rows *c, uint32_t plane, uint32_t planes,
                         const struct ct_conv_seg *seg) {
  ct_ld(c->v.l, &(struct ct_dma){.dram = ct_tiles_of(c->v.l, c->w, c->part * c->nb + plane, planes,
                                                     seg->k, seg->steps),
                                 .spm = c->w_slot,
                                 .hdr = true,
                                 .nb = CT_TILE,
                                 .n1 = seg->steps,
                                 .d1 = CT_RECORD_UNITS,
                                 .s1 = CT_TILE,
                                 .n2 = planes,
                                 .d2 = (int32_t)(c->w_k * CT_RECORD_UNITS),
                                 .s2 = (int32_t)(seg->steps * CT_TILE)});
}

/* A step is a tap and a block of outputs; a plane that is made is a block of inputs. */
static void load_input(struct ct_conv_rows *c, uint32_t plane, uint32_t at,
                       const struct ct_conv_seg *seg) {
  const uint32_t taps = (uint32_t)(seg->nty * seg->ntx);
  const uint32_t tap = (uint32_t)(seg->ty * c->view.kx + seg->tx);
  ct_ld(c->v.l, &(struct ct_dma){.dram = ct_tiles_of(c->v.l, c->w, c->part * c->cb + seg->b0,
                                                     seg->nb, tap * c->nb + plane, taps * c->nb),
                                 .spm = ct_behind(c->w_slot, at * seg->steps * CT_TILE),
                                 .hdr = true,
                                 .nb = CT_TILE,
                                 .n1 = seg->nb,
                                 .d1 = (int32_t)(c->w_k * CT_RECORD_UNITS),
                                 .s1 = CT_TILE,
                                 .n2 = taps,
                                 .d2 = (int32_t)(c->nb * CT_RECORD_UNITS),
                                 .s2 = (int32_t)(seg->nb * CT_TILE)});
}

static void load_weights(struct ct_conv_rows *c, uint32_t plane, uint32_t planes,
                         const struct ct_conv_seg *seg) {
  c->w_slot = ct_next(c->v.l, c->w_ring);
  if (!c->input)
    load_forward(c, plane, planes, seg);
  else
    for (uint32_t i = 0; i < planes; ++i)
      load_input(c, plane + i, i, seg);
}

/* ---- A block ------------------------------------------------------------------------------- */

static bool several_walks(const struct ct_conv_rows *c) {
  return c->cut.ny * c->cut.nx > 1 || (c->cut.nb > 1 && c->view.kx * c->view.ky > 1);
}

static void walk(struct ct_conv_rows *c, const struct ct_conv_seg *seg) {
  const struct ct_walk_shape s = ct_conv_walk(&c->view, seg, plane_words(c));
  ct_mm_walk(c->v.l, &s);
}

static struct ct_conv_seg seg_at(const struct ct_conv_rows *c, uint32_t i) {
  return ct_conv_seg(&c->view, &c->cut, c->cb, i);
}

/* b0: the first channel block in the slot; w: the segment's weights in theirs. */
static void multiply(struct ct_conv_rows *c, const struct ct_conv_seg *seg, uint32_t b0,
                     struct ct_ref w) {
  if (several_walks(c)) walk(c, seg);
  ct_mm(c->v.l,
        &(struct ct_mm){.a = c->x_slot,
                        .b = w,
                        .acc = c->sum,
                        .b_trans = !c->input,
                        .accum = seg->k > 0,
                        .walk = true,
                        .walk_a = ct_conv_a(&c->view, seg, plane_words(c), c->first, &c->span, b0),
                        .pos = ct_conv_pos(&c->view, c->first, 255),
                        .bk = CT_TILE,
                        .kt = seg->steps,
                        .nt = 1,
                        .rows = c->rows,
                        .acc_n = ct_tiles(c->rows)});
}

static void next_sum(struct ct_conv_rows *c) {
  const uint32_t tiles = ct_tiles(c->rows);
  c->sum = ct_next_n(c->v.l, tiles == c->plan.tiles ? c->acc : c->rest_acc, tiles);
}

static void drain(struct ct_conv_rows *c) {
  ct_conv_drain_block(&c->drain, c->sum, c->part * c->nb + c->plane, c->first / CT_TILE, c->rows);
}

/* ---- Weights that stay --------------------------------------------------------------------- */

static void block(struct ct_conv_rows *c, uint32_t first, uint32_t rows) {
  c->first = first;
  c->rows = rows;
  next_sum(c);
  for (uint32_t i = 0; i < c->cut.all; ++i) {
    const struct ct_conv_seg seg = seg_at(c, i);
    const uint32_t at = (c->plane - c->plane0) * c->k + seg.k;
    multiply(c, &seg, 0, ct_behind(c->w_slot, at * CT_TILE));
  }
  drain(c);
}

/* Rows of a pass: a block, or those of an index unit of groups. */
static uint32_t pass_rows(const struct ct_conv_rows *c) {
  return ct_conv_drain_unit(&c->drain, c->plan.tiles) * CT_TILE;
}

static void block_pass(void *kernel, uint32_t pass) {
  struct ct_conv_rows *c = kernel;
  const uint32_t rows = c->plan.tiles * CT_TILE;
  for (uint32_t r = 0; r < pass_rows(c); r += rows)
    block(c, c->from + pass * pass_rows(c) + r, rows);
}

/* Whether blocks of so many passes from row r on, one in each, follow each other evenly. */
static bool one_even(const struct ct_conv_rows *c, uint32_t r, uint32_t passes) {
  const struct ct_conv_seg seg = seg_at(c, 0);
  uint32_t pos[2] = {0}, a[2] = {0};
  for (uint32_t i = 0; i < passes; ++i, r += pass_rows(c)) {
    const uint32_t p = ct_conv_pos(&c->view, r, 255);
    const uint32_t w = (uint32_t)ct_conv_a(&c->view, &seg, plane_words(c), r, &c->span, 0);
    if (i > 1 && ((p - pos[1] - (pos[1] - pos[0])) << 6 || (w - a[1] - (a[1] - a[0])) << 12))
      return false;
    pos[0] = pos[1];
    a[0] = a[1];
    pos[1] = p;
    a[1] = w;
  }
  return true;
}

static bool even(const struct ct_conv_rows *c, uint32_t r, uint32_t passes) {
  bool is = true;
  for (uint32_t at = 0; is && at < pass_rows(c); at += c->plan.tiles * CT_TILE)
    is = one_even(c, r + at, passes);
  return is;
}

/* Whether n passes from row r on fall into runs of `run` of which each is even. A run that begins
 * in the midst of an image may cross its end where the first one does not: each is looked at. */
static bool even_runs(const struct ct_conv_rows *c, uint32_t r, uint32_t n, uint32_t run) {
  if (run == 0 || n % run) return false;
  for (uint32_t i = 0; i < n; i += run)
    if (!even(c, r + i * pass_rows(c), run)) return false;
  return true;
}

/* Whole passes from row `from` on: all in a loop, or those of an image, or none. */
static void blocks(struct ct_conv_rows *c, uint32_t from, uint32_t n) {
  const uint32_t rows = pass_rows(c);
  const uint32_t image = (uint32_t)(c->view.nx * c->view.ny) / rows;
  const uint32_t step = even(c, from, n) ? n : even_runs(c, from, n, image) ? image : 1;
  for (uint32_t i = 0; i < n; i += step) {
    c->from = from + i * rows;
    repeat(c, BLOCKS, step, block_pass);
  }
}

static void plane_pass(void *kernel, uint32_t pass) {
  struct ct_conv_rows *c = kernel;
  const uint32_t rows = pass_rows(c), whole = c->chunk_rows / rows;
  c->plane = c->plane0 + pass;
  ct_conv_drain_plane(&c->drain, c->part * c->nb + c->plane);
  if (whole) blocks(c, c->r0, whole);
  for (uint32_t r = whole * rows; r < c->chunk_rows;) {
    const uint32_t left = c->chunk_rows - r;
    const uint32_t some = ct_tiles(left) == c->plan.tiles ? left : ct_min_u32(left, CT_TILE);
    block(c, c->r0 + r, some);
    r += some;
  }
}

/* Planes that are alike: the last of all may have fewer columns. */
static uint32_t alike(const struct ct_conv_rows *c, uint32_t plane0, uint32_t planes) {
  const uint32_t whole = c->cols / CT_TILE, at = c->part * c->nb + plane0;
  return at + planes <= whole ? planes : whole > at ? whole - at : 0;
}

static void staying_chunk(struct ct_conv_rows *c) {
  c->span = ct_conv_span(&c->view, c->r0, c->chunk_rows, 0, c->view.ky);
  load_x(c, &c->span, 0, c->cb);
  const uint32_t whole = alike(c, c->plane0, c->planes);
  repeat(c, PLANES, whole, plane_pass);
  for (uint32_t i = whole; i < c->planes; ++i)
    plane_pass(c, i);
}

/* ---- Weights that pass --------------------------------------------------------------------- */

static void segment(void *kernel, uint32_t i) {
  struct ct_conv_rows *c = kernel;
  const struct ct_conv_seg seg = seg_at(c, i);
  if (!c->plan.whole) {
    c->span = ct_conv_span(&c->view, c->r0, c->chunk_rows, seg.ty, seg.nty);
    load_x(c, &c->span, seg.b0, seg.nb);
  }
  load_weights(c, c->plane, 1, &seg);
  multiply(c, &seg, c->plan.whole ? 0 : seg.b0, c->w_slot);
}

static void middle_segment(void *kernel, uint32_t pass) {
  segment(kernel, pass + 1);
}

static void passing_plane(void *kernel, uint32_t plane) {
  struct ct_conv_rows *c = kernel;
  const uint32_t all = c->cut.all;
  c->plane = plane;
  c->first = c->r0;
  c->rows = c->chunk_rows;
  ct_conv_drain_plane(&c->drain, c->part * c->nb + plane);
  next_sum(c);
  segment(c, 0);
  if (several_walks(c))
    for (uint32_t i = 1; i + 1 < all; ++i)
      segment(c, i);
  else if (all > 2)
    repeat(c, BLOCKS, all - 2, middle_segment);
  if (all > 1) segment(c, all - 1);
  drain(c);
}

static void passing_chunk(struct ct_conv_rows *c) {
  const uint32_t whole = alike(c, 0, c->nb);
  if (c->plan.whole) {
    c->span = ct_conv_span(&c->view, c->r0, c->chunk_rows, 0, c->view.ky);
    load_x(c, &c->span, 0, c->cb);
  }
  repeat(c, PLANES, whole, passing_plane);
  for (uint32_t i = whole; i < c->nb; ++i)
    passing_plane(c, i);
}

/* ---- All ----------------------------------------------------------------------------------- */

/* Rows after which everything looks the same again; all, if what passes had something left over. */
static uint32_t period_rows(const struct ct_conv_rows *c) {
  const struct ct_conv_view *v = &c->view;
  const uint64_t rows = (uint64_t)ct_conv_period(v) * (uint32_t)(v->nx * v->ny);
  const uint32_t chunk = c->plan.chunk;
  if (!c->plan.stay && (rows > chunk ? rows % chunk : chunk % rows)) return v->rows;
  return rows < v->rows ? (uint32_t)rows : v->rows;
}

/* Rows [r0, r0 + rows), which begin with an image. */
static void some_rows(struct ct_conv_rows *c, uint32_t r0, uint32_t rows) {
  for (uint32_t r = 0; r < rows; r += c->plan.chunk) {
    c->r0 = r0 + r;
    c->chunk_rows = ct_min_u32(c->plan.chunk, rows - r);
    if (c->plan.stay)
      staying_chunk(c);
    else
      passing_chunk(c);
  }
}

static void period_pass(void *kernel, uint32_t pass) {
  struct ct_conv_rows *c = kernel;
  const uint32_t period = period_rows(c), rows = period > c->plan.chunk ? period : c->plan.chunk;
  some_rows(c, pass * rows, rows);
}

/* ---- Loads ahead --------------------------------------------------------------------------- */

/* Where tiles are made on the way, a block has twice as many commands, so the next chunk's loads,
 * which a loop has behind them, would be dispatched too late: they stand in front of the last index
 * unit before. So nothing is a loop, unless it would be too long. */
enum { MOST_AHEAD = 64 };

/* An index unit of a plane of a chunk. */
struct ahead {
  uint32_t r0, rows, plane, first;
  bool chunk; /* the first of its chunk */
  struct ct_conv_span span;
  struct ct_ref x;
  struct ct_conv_unit unit;
};

static bool is_ahead(const struct ct_conv_rows *c) {
  const uint32_t units = c->view.rows / (CT_GROUPS_TILES * CT_TILE);
  return c->drain.made.what && c->unrolled == 0 && c->plan.x_slots > 1 &&
         units * c->plan.planes <= MOST_AHEAD;
}

/* The chunk that begins with row r0. */
static uint32_t rows_of_chunk(const struct ct_conv_rows *c, uint32_t r0) {
  const uint32_t period = period_rows(c), step = period > c->plan.chunk ? period : c->plan.chunk;
  return ct_min_u32(ct_min_u32(c->plan.chunk, step - r0 % step), c->view.rows - r0);
}

static void load_ahead(struct ct_conv_rows *c, struct ahead *a) {
  if (a->chunk) {
    c->r0 = a->r0;
    a->span = ct_conv_span(&c->view, a->r0, a->rows, 0, c->view.ky);
    load_x(c, &a->span, 0, c->cb);
    a->x = c->x_slot;
  }
  a->unit = ct_conv_drain_load(&c->drain, c->part * c->nb + a->plane, a->first / CT_TILE,
                               a->first == a->r0);
}

static bool next_ahead(const struct ct_conv_rows *c, struct ahead *a) {
  a->chunk = false;
  a->first += CT_GROUPS_TILES * CT_TILE;
  if (a->first < a->r0 + a->rows) return true;
  a->first = a->r0;
  if (++a->plane < c->plane0 + c->planes) return true;
  a->plane = c->plane0;
  a->first = a->r0 += a->rows;
  a->chunk = true;
  a->rows = a->r0 < c->view.rows ? rows_of_chunk(c, a->r0) : 0;
  return a->rows > 0;
}

static void work_ahead(struct ct_conv_rows *c, struct ahead *a) {
  c->r0 = a->r0;
  c->span = a->span;
  c->x_slot = a->x;
  c->plane = a->plane;
  c->from = a->first;
  c->drain.unit = &a->unit;
  if (a->unit.first) ct_conv_drain_plane(&c->drain, a->unit.plane);
  block_pass(c, 0);
  ct_lower_cut(c->v.l);
}

static void rows_ahead(struct ct_conv_rows *c) {
  struct ahead now, next = {.plane = c->plane0, .rows = rows_of_chunk(c, 0), .chunk = true};
  bool more = true;
  load_ahead(c, &next);
  while (more && !ct_lower_error(c->v.l)) {
    now = next;
    more = next_ahead(c, &next);
    if (more) load_ahead(c, &next);
    work_ahead(c, &now);
  }
}

static void all_rows(struct ct_conv_rows *c) {
  if (c->drain.ahead) {
    rows_ahead(c);
    return;
  }
  const uint32_t period = period_rows(c), rows = period > c->plan.chunk ? period : c->plan.chunk;
  const uint32_t whole = c->view.rows / rows;
  repeat(c, CHUNKS, whole, period_pass);
  if (c->view.rows % rows) some_rows(c, whole * rows, c->view.rows % rows);
}

static void all_planes(struct ct_conv_rows *c) {
  const struct ct_conv_seg all = {.nty = c->view.ky, .ntx = c->view.kx, .nb = c->cb, .steps = c->k};
  if (!c->plan.stay) {
    all_rows(c);
    return;
  }
  for (uint32_t p = 0; p < c->nb; p += c->plan.planes) {
    c->plane0 = p;
    c->planes = ct_min_u32(c->plan.planes, c->nb - p);
    load_weights(c, p, c->planes, &all);
    all_rows(c);
  }
}

static void take_rings(struct ct_conv_rows *c) {
  struct ct_lower *l = c->v.l;
  const struct ct_conv_plan *p = &c->plan;
  const uint32_t blocks = p->whole ? c->cb : c->cut.blocks;
  const uint32_t w = CT_TILE * (p->stay ? c->k * p->planes : p->steps);
  c->drain.ahead = is_ahead(c);
  ct_conv_drain_rings(&c->drain, p->tiles, p->rest, p->out_slots);
  c->x_ring = ct_spm_ring(l, "pixels", plane_words(c) * blocks, p->x_slots);
  c->w_ring = ct_spm_ring(l, "weights", w, p->w_slots);
  c->acc = ct_acc_ring(l, "products", 0, p->tiles < 8 ? 2 * p->tiles : 8);
  if (p->rest)
    c->rest_acc = ct_acc_ring(l, "products left over", p->tiles < 8 ? 2 * p->tiles : 8, p->rest);
  if (p->whole) ct_ring_freed_by(l, c->x_ring, CT_Q_VA);
  if (p->stay) ct_ring_freed_by(l, c->w_ring, CT_Q_VA);
}

static void member(void *kernel, uint32_t i) {
  struct ct_conv_rows *c = kernel;
  const struct ct_conv_seg first = seg_at(c, 0);
  (void)i;
  if (!several_walks(c)) walk(c, &first);
  for (c->part = 0; c->part < c->parts; ++c->part)
    all_planes(c);
}

void ct_conv_record(struct ct_conv_rows *c, unsigned unrolled) {
  c->unrolled = unrolled;
  take_rings(c);
  ct_conv_carriers(&c->v, c->w, c->drain.regs.first_temp);
  ct_members(c->v.l, member, c);
}
