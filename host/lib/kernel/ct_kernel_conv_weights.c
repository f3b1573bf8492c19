/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradient of a convolution's weights: for each tap and channel block of the input a tile,
 * which is the sum over all pixels of what the tap sees, transposed, times the gradient of the
 * outputs.
 *
 * A pass makes as many tiles as ACC holds: some lines of taps, some blocks of the input, some of
 * the output. It goes through all pixels, chunk by chunk, or finds all of them in the scratchpad.
 * Lines, taps and blocks are divided evenly, so passes are alike.
 *
 * The input may be groups of compressed tiles, if each has to be loaded once: all pixels are there
 * together, or a pass makes all tiles, and goes through whole images of whole index units; and if
 * that is faster than unpacking it first. What was loaded goes to device memory, too, for those who
 * read records.
 *
 * Where groups of channels share blocks, what lies off their diagonal is left out: a tile of ones
 * and zeros says where.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum { MOST_SUMS = 14, MOST_PRODUCT = 8, MOST_TAPS = 15, MOST_IMAGES = 254, MOST_ROWS = 16320 };
enum {
  R_ONES = CT_VK_FIRST_REG,
  R_RESULTS = R_ONES + 3,
  RESULTS = 8,
  OUT_SLOTS = 2,
  MORE_SLOTS = 4
};
enum {
  MOST_STEPS = 4080,
  GATHERED = 17,
  TURNED = 20,
  CHUNK_COST = 120,
  PASS_COST = 300,
  UNPACK_COST = 1200
};

struct plan {
  bool stay;                     /* all pixels of a group of channels are there */
  uint32_t blocks, planes;       /* of a pass: of the input, of the output */
  int32_t lines, taps, mm_lines; /* of a pass; lines of a product */
  uint32_t chunk, groups, slots;
  uint64_t cost;
};

struct weights {
  struct ct_vk v;
  const struct ct_conv *k;
  struct ct_conv_view view;
  struct plan plan;
  uint32_t parts, cb, nb, x_groups, y_groups;
  const struct ct_made *made; /* x is groups; NULL */
  uint32_t x, y, to, x_units; /* tensors; x_units: its index units */
  uint32_t x_ring, x_twin, y_ring, acc, regs, out, temp;
  struct ct_conv_drain drain; /* where something comes behind the gradient */
  bool masks, one_mask;
  bool joined; /* what comes behind the gradient takes it, and it is not stored */
  unsigned unrolled;
  /* Under way. */
  uint32_t part, n0, b0;
  int32_t ty, tx;
  struct ct_conv_span span;
  struct ct_ref x_slot, y_slot, sum;
};

/* ---- What lies off the diagonal ------------------------------------------------------------ */

/* Rows up to the end of each group, from the last on, get ones in front of a column; so each row
 * keeps those of its own group. */
static void stairs(struct weights *c, unsigned t, uint32_t block, uint32_t plane, bool end) {
  struct ct_lower *l = c->v.l;
  const uint32_t in = c->k->x.cols / c->k->shape.groups, out = c->k->y.cols / c->k->shape.groups;
  const uint32_t row0 = block * CT_TILE, col0 = plane * CT_TILE;
  for (uint32_t g = (row0 + CT_TILE - 1) / in + 1; g-- > row0 / in;) {
    const uint32_t rows = ct_min_u32((g + 1) * in - row0, CT_TILE), col = (g + (end ? 1 : 0)) * out;
    const uint32_t cols = col <= col0 ? 0 : ct_min_u32(col - col0, CT_TILE);
    struct ct_va va = {
        .to = ct_tile_of(l, c->temp, t, 0), .part_rows = true, .rows = rows, .cols = cols};
    if (cols) {
      va.c = CT_VA_SCALAR;
      va.sc = 0x3f800000;
    }
    ct_va(l, &va);
  }
}

/* Register t + 1 is used, too. */
static struct ct_ref mask(struct weights *c, uint32_t block, uint32_t plane) {
  struct ct_lower *l = c->v.l;
  const struct ct_ref ones = ct_tile_of(l, c->temp, 1, 0), front = ct_tile_of(l, c->temp, 2, 0);
  stairs(c, 1, block, plane, true);
  stairs(c, 2, block, plane, false);
  ct_va(l, &(struct ct_va){.to = ones, .a = ones, .q = front, .c = CT_VA_TILE, .neg_c = true});
  return ones;
}

/* ---- A tile leaves ------------------------------------------------------------------------- */

static void drain_tile(struct weights *c, struct ct_ref sum, uint32_t tap, uint32_t block,
                       uint32_t plane) {
  struct ct_lower *l = c->v.l;
  if (c->joined) {
    ct_conv_drain_plane(&c->drain, c->part * c->nb + plane);
    ct_conv_drain_block(&c->drain, sum, c->part * c->nb + plane, tap * c->cb + block, CT_TILE);
    return;
  }
  struct ct_va va = {.a = sum, .cols = ct_in_tile(c->k->y.cols, c->part * c->nb + plane)};
  if (c->masks) {
    va.fn = CT_VA_SELECT;
    va.c = CT_VA_TILE;
    va.q = c->one_mask ? ct_tile_of(l, c->temp, 1, 0) : mask(c, block, plane);
  }
  va.to = ct_next(l, c->regs);
  ct_va(l, &va);
  const struct ct_ref out = ct_next(l, c->out);
  ct_vs(l, &(struct ct_vmove){.reg = va.to, .spm = out, .rows = CT_TILE});
  ct_vk_st(&c->v, CT_KEEP_F32, ct_tile_of(l, c->to, c->part * c->nb + plane, tap * c->cb + block),
           out, 1);
}

/* ---- Chunks -------------------------------------------------------------------------------- */

static uint32_t x_words(const struct plan *p) {
  return p->groups * CT_TILE;
}

/* Records of pixels: of so many blocks from one on. */
static struct ct_dma records_of(const struct weights *c, struct ct_ref slot, uint32_t b0,
                                uint32_t blocks) {
  return (struct ct_dma){
      .dram = ct_tiles_of(c->v.l, c->x, c->part * c->cb + b0, blocks, c->span.g0, c->span.groups),
      .spm = slot,
      .hdr = true,
      .nb = CT_TILE,
      .n1 = c->span.groups,
      .d1 = CT_RECORD_UNITS,
      .s1 = CT_TILE,
      .n2 = blocks,
      .d2 = (int32_t)(c->x_groups * CT_RECORD_UNITS),
      .s2 = (int32_t)x_words(&c->plan)};
}

static void load_groups(struct weights *c, uint32_t b0, uint32_t blocks) {
  struct ct_lower *l = c->v.l;
  const uint32_t unit = c->span.g0 / CT_GROUPS_TILES, units = c->span.groups / CT_GROUPS_TILES;
  struct ct_ref twin = {.space = 0};
  if (c->made->stored) twin = ct_next(l, c->x_twin);
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t words = b * x_words(&c->plan);
    ct_vk_ld_twin_groups(&c->v,
                         ct_tiles_of(l, c->x_units, c->part * c->cb + b0 + b, 1, unit, units),
                         ct_behind(c->x_slot, words), twin.space ? ct_behind(twin, words) : twin,
                         units, c->made->k.in[0].mat.free);
  }
  if (!c->made->stored) return;
  const struct ct_dma records = records_of(c, twin, b0, blocks);
  ct_st(l, &records);
}

static void load(struct weights *c, uint32_t r0, uint32_t rows, uint32_t b0, uint32_t blocks,
                 uint32_t n0, uint32_t planes) {
  struct ct_lower *l = c->v.l;
  const uint32_t groups = ct_tiles(rows);
  c->x_slot = ct_next(l, c->x_ring);
  c->y_slot = ct_next(l, c->y_ring);
  const struct ct_dma records = records_of(c, c->x_slot, b0, blocks);
  if (c->made)
    load_groups(c, b0, blocks);
  else
    ct_ld(l, &records);
  ct_ld(l, &(struct ct_dma){
               .dram = ct_tiles_of(l, c->y, c->part * c->nb + n0, planes, r0 / CT_TILE, groups),
               .spm = c->y_slot,
               .hdr = true,
               .nb = CT_TILE,
               .n1 = groups,
               .d1 = CT_RECORD_UNITS,
               .s1 = CT_TILE,
               .n2 = planes,
               .d2 = (int32_t)(c->y_groups * CT_RECORD_UNITS),
               .s2 = (int32_t)c->plan.chunk});
}

/* Images that exist from a pixel's own on, where groups reach beyond the last. */
static uint32_t images_from(const struct weights *c, uint32_t r0, uint32_t rows) {
  const uint32_t each = (uint32_t)(c->view.nx * c->view.ny);
  if (c->view.flat || rows % CT_TILE == 0) return MOST_IMAGES;
  return c->view.rows / each - r0 / each;
}

static struct ct_conv_seg seg_at(const struct weights *c, int32_t line) {
  const struct plan *p = &c->plan;
  const int32_t left = p->lines - line, lines = left < p->mm_lines ? left : p->mm_lines;
  return (struct ct_conv_seg){.ty = c->ty + line,
                              .tx = c->tx,
                              .nty = lines,
                              .ntx = p->taps,
                              .b0 = c->b0,
                              .nb = p->blocks,
                              .steps = (uint32_t)(lines * p->taps) * p->blocks};
}

/* b0, n0: the first blocks in the slots. */
static void multiply(struct weights *c, uint32_t r0, uint32_t rows, bool first) {
  const struct plan *p = &c->plan;
  const uint32_t b0 = p->stay ? 0 : c->b0, n0 = p->stay ? 0 : c->n0;
  uint32_t at = 0;
  for (int32_t line = 0; line < p->lines; line += p->mm_lines) {
    const struct ct_conv_seg seg = seg_at(c, line);
    const struct ct_walk_shape walk = ct_conv_walk(&c->view, &seg, x_words(p));
    struct ct_ref acc = ct_nth(c->sum, at);
    acc.gens = seg.steps * p->planes;
    ct_mm_walk(c->v.l, &walk);
    ct_mm(c->v.l, &(struct ct_mm){.a = c->x_slot,
                                  .b = ct_behind(c->y_slot, (c->n0 - n0) * p->chunk),
                                  .acc = acc,
                                  .a_trans = true,
                                  .b_trans = true,
                                  .accum = !first,
                                  .walk = true,
                                  .walk_a = ct_conv_a(&c->view, &seg, x_words(p), r0, &c->span, b0),
                                  .pos = ct_conv_pos(&c->view, r0, images_from(c, r0, rows)),
                                  .bn = p->planes > 1 ? (int32_t)p->chunk : 0,
                                  .bk = CT_TILE,
                                  .kt = ct_tiles(rows),
                                  .nt = p->planes,
                                  .rows = seg.steps * CT_TILE,
                                  .acc_n = seg.steps});
    at += seg.steps * p->planes;
  }
}

/* What rows see through some lines of taps; of groups all of their images. */
static struct ct_conv_span span_of(const struct weights *c, uint32_t r0, uint32_t rows, int32_t ty,
                                   int32_t lines) {
  const struct ct_conv_view *v = &c->view;
  const uint32_t sees = (uint32_t)(v->nx * v->ny), seen = (uint32_t)(v->w * v->h);
  if (!c->made) return ct_conv_span(v, r0, rows, ty, lines);
  if (v->flat) return (struct ct_conv_span){r0 / CT_TILE, rows / CT_TILE};
  return (struct ct_conv_span){r0 / sees * seen / CT_TILE, rows / sees * seen / CT_TILE};
}

static void chunk(struct weights *c, uint32_t r0, uint32_t rows) {
  const struct plan *p = &c->plan;
  if (!p->stay) {
    c->span = span_of(c, r0, rows, c->ty, p->lines);
    load(c, r0, rows, c->b0, p->blocks, c->n0, p->planes);
  }
  multiply(c, r0, rows, r0 == 0);
}

static uint32_t period_rows(const struct weights *c) {
  const uint64_t rows = (uint64_t)ct_conv_period(&c->view) * (uint32_t)(c->view.nx * c->view.ny);
  const uint64_t most = rows > c->plan.chunk ? rows : c->plan.chunk;
  return most < c->view.rows ? (uint32_t)most : c->view.rows;
}

static void some_rows(struct weights *c, uint32_t r0, uint32_t rows) {
  for (uint32_t r = 0; r < rows; r += c->plan.chunk)
    chunk(c, r0 + r, ct_min_u32(c->plan.chunk, rows - r));
}

static void period_pass(void *kernel, uint32_t pass) {
  struct weights *c = kernel;
  const uint32_t rows = period_rows(c);
  some_rows(c, (pass + 1) * rows, rows);
}

/* ---- Passes -------------------------------------------------------------------------------- */

/* Loops, the outermost first, or their passes written out. */
enum { PLANES, BLOCKS, CHUNKS };

static void repeat(struct weights *c, unsigned which, uint32_t passes, ct_body *body) {
  if (which >= c->unrolled) {
    ct_repeat(c->v.l, passes, body, c);
    return;
  }
  for (uint32_t i = 0; i < passes && !ct_lower_error(c->v.l); ++i)
    body(c, i);
}

static void drain(struct weights *c) {
  const struct plan *p = &c->plan;
  uint32_t at = 0;
  for (int32_t line = 0; line < p->lines; line += p->mm_lines) {
    const struct ct_conv_seg seg = seg_at(c, line);
    for (uint32_t i = 0; i < seg.steps * p->planes; ++i, ++at) {
      const uint32_t m = i % seg.steps, t = m / p->blocks, taps = (uint32_t)p->taps;
      const uint32_t tap =
          ((uint32_t)seg.ty + t / taps) * (uint32_t)c->view.kx + (uint32_t)c->tx + t % taps;
      drain_tile(c, ct_nth(c->sum, at), tap, c->b0 + m % p->blocks, c->n0 + i / seg.steps);
    }
  }
}

static void blocks_pass(void *kernel, uint32_t pass) {
  struct weights *c = kernel;
  const struct plan *p = &c->plan;
  const uint32_t rows = period_rows(c), whole = c->view.rows / rows;
  c->b0 = pass * p->blocks;
  c->sum = ct_next_n(c->v.l, c->acc, (uint32_t)(p->lines * p->taps) * p->blocks * p->planes);
  some_rows(c, 0, rows);
  if (whole > 1) repeat(c, CHUNKS, whole - 1, period_pass);
  if (c->view.rows % rows) some_rows(c, whole * rows, c->view.rows % rows);
  drain(c);
}

static void planes_pass(void *kernel, uint32_t pass) {
  struct weights *c = kernel;
  c->n0 = pass * c->plan.planes;
  repeat(c, BLOCKS, c->cb / c->plan.blocks, blocks_pass);
}

/* All planes and blocks for some taps. The last plane of all may have fewer columns. */
static void taps_pass(struct weights *c) {
  const uint32_t all = c->nb / c->plan.planes;
  const bool last = c->k->y.cols % CT_TILE && c->part + 1 == c->parts;
  repeat(c, PLANES, last ? all - 1 : all, planes_pass);
  if (last) planes_pass(c, all - 1);
}

static void one_part(struct weights *c) {
  if (c->plan.stay) {
    c->span = span_of(c, 0, c->view.rows, 0, c->view.ky);
    load(c, 0, c->view.rows, 0, c->cb, 0, c->nb);
  }
  for (c->ty = 0; c->ty < c->view.ky; c->ty += c->plan.lines)
    for (c->tx = 0; c->tx < c->view.kx; c->tx += c->plan.taps)
      taps_pass(c);
}

/* ---- How much of everything ---------------------------------------------------------------- */

static uint64_t out_words(const struct weights *c) {
  if (c->joined) return ct_conv_drain_words(&c->drain, 1, OUT_SLOTS);
  return (uint64_t)OUT_SLOTS * CT_F32_TILE_UNITS;
}

static uint64_t words_of(const struct weights *c, const struct plan *p) {
  const uint64_t x = (uint64_t)x_words(p) * (p->stay ? c->cb : p->blocks);
  const uint64_t y = (uint64_t)p->chunk * (p->stay ? c->nb : p->planes);
  return CT_TILE + CT_CARRIER_WORDS + (x + y) * p->slots + out_words(c);
}

static uint64_t cost_of(const struct weights *c, const struct plan *p) {
  const uint64_t groups = ct_tiles(c->view.rows), chunks = (c->view.rows + p->chunk - 1) / p->chunk;
  const uint64_t taps = (uint64_t)(c->view.ky / p->lines) * (uint64_t)(c->view.kx / p->taps);
  const uint64_t passes = (uint64_t)c->parts * (c->cb / p->blocks) * (c->nb / p->planes) * taps;
  uint64_t step = 0;
  for (int32_t line = 0; line < p->lines; line += p->mm_lines) {
    const struct ct_conv_seg seg = seg_at(&(struct weights){.plan = *p}, line);
    const uint64_t a = (uint64_t)seg.steps * p->planes * GATHERED, b = (uint64_t)p->planes * TURNED;
    step += a > b ? a : b;
  }
  const uint64_t multiply = passes * groups * step;
  const uint64_t each = p->stay ? c->parts : passes * chunks;
  const uint64_t first =
      CT_RECORD_UNITS * ((uint64_t)p->groups * (p->stay ? c->cb : p->blocks) +
                         (uint64_t)p->chunk / CT_TILE * (p->stay ? c->nb : p->planes));
  const uint64_t load = each * first;
  const uint64_t most = multiply > load ? multiply : load;
  const uint64_t start = c->v.room->group ? 0 : first; /* else the last member hides it */
  /* What updates read comes in front of the next pass's first chunk, and waits for this one's
   * products: by measurement. */
  const uint64_t late = c->joined && !p->stay ? passes * first * 3 / 4 : 0;
  return (p->slots == 1 ? multiply + load : most + start) + late +
         passes * (PASS_COST + chunks * CHUNK_COST);
}

static uint32_t most_groups(const struct weights *c, const struct plan *p) {
  const struct weights at = {.view = c->view, .plan = *p, .made = c->made};
  const uint32_t rows = period_rows(&at);
  uint32_t most = 0;
  for (int32_t ty = 0; ty < c->view.ky; ty += p->stay ? c->view.ky : p->lines)
    for (uint32_t r = 0; r < rows; r += p->chunk) {
      const struct ct_conv_span s =
          span_of(&at, r, ct_min_u32(p->chunk, rows - r), ty, p->stay ? c->view.ky : p->lines);
      if (s.groups > most) most = s.groups;
    }
  return most;
}

struct best {
  struct plan plan;
  struct ct_conv_view view;
  uint64_t least;
};

/* Whether each group of x is loaded once, and an index unit at a time. */
static bool loads_once(const struct weights *c, const struct plan *p, uint32_t rows) {
  enum { UNIT = CT_GROUPS_TILES * CT_TILE };
  const uint32_t sees = (uint32_t)(c->view.nx * c->view.ny),
                 seen = (uint32_t)(c->view.w * c->view.h);
  if (p->stay) return true;
  if (c->parts != 1 || p->lines != c->view.ky || p->taps != c->view.kx || p->blocks != c->cb ||
      p->planes != c->nb)
    return false;
  return c->view.flat ? rows % UNIT == 0 : rows % sees == 0 && rows / sees * seen % UNIT == 0;
}

static void try_chunk(struct weights *c, struct plan p, uint32_t rows, struct best *b) {
  const struct ct_conv_view view = c->view;
  const uint64_t images = (uint64_t)MOST_IMAGES * (uint32_t)(view.nx * view.ny);
  p.chunk = rows;
  if ((!view.flat && rows > images) || (c->made && !loads_once(c, &p, rows))) return;
  if (view.flat) {
    c->view.nx = c->view.w = CT_TILE;
    c->view.ny = c->view.h = (int32_t)(ct_min_u32(rows, 4080) / CT_TILE);
  }
  p.groups = most_groups(c, &p);
  for (p.slots = 1; p.slots <= 2; ++p.slots) {
    const uint64_t words = words_of(c, &p);
    p.cost = cost_of(c, &p);
    if (b->least == 0 || words < b->least) b->least = words;
    if (words > c->v.room->spm_words || (b->plan.cost && p.cost >= b->plan.cost)) continue;
    b->plan = p;
    b->view = c->view;
  }
  c->view = view;
}

static void try_chunks(struct weights *c, struct plan p, struct best *b) {
  const struct ct_conv_view *v = &c->view;
  const uint64_t period = (uint64_t)ct_conv_period(v) * (uint32_t)(v->nx * v->ny);
  const uint32_t all = ct_tiles(v->rows) * CT_TILE;
  p.stay = true;
  if (all <= (v->flat ? 4080u : MOST_ROWS)) try_chunk(c, p, all, b);
  p.stay = false;
  for (uint32_t rows = CT_TILE; rows <= 4080 && (v->flat || rows < period); rows *= 2) {
    try_chunk(c, p, rows, b);
    if (rows >= all) return;
  }
  for (uint64_t n = period; !v->flat && n <= MOST_ROWS; n *= 2) {
    try_chunk(c, p, (uint32_t)n, b);
    if (n >= all) return;
  }
}

static void try_pass(struct weights *c, struct plan p, struct best *b) {
  const uint32_t line = (uint32_t)p.taps * p.blocks * p.planes;
  if (line > MOST_PRODUCT || (uint32_t)p.lines * line > MOST_SUMS) return;
  p.mm_lines = (int32_t)(MOST_PRODUCT / line);
  if (p.mm_lines >= p.lines) p.mm_lines = p.lines;
  try_chunks(c, p, b);
}

static bool divides(int64_t a, int64_t b) {
  return b % a == 0;
}

static struct best best_of(struct weights *c) {
  struct best b = {.least = 0};
  struct plan p = {.slots = 1};
  for (p.lines = 1; p.lines <= c->view.ky && p.lines <= MOST_SUMS; ++p.lines)
    for (p.taps = 1; p.taps <= c->view.kx && p.taps <= MOST_PRODUCT; ++p.taps)
      for (p.blocks = 1; p.blocks <= c->cb && p.blocks <= MOST_PRODUCT; ++p.blocks)
        for (p.planes = 1; p.planes <= c->nb && p.planes <= MOST_PRODUCT; ++p.planes)
          if (divides(p.lines, c->view.ky) && divides(p.taps, c->view.kx) &&
              divides(p.blocks, c->cb) && divides(p.planes, c->nb))
            try_pass(c, p, &b);
  return b;
}

/* Whether a kernel that unpacks, and another one that reads records, as often as it likes, would be
 * done before. */
static bool unpacks_better(struct weights *c, uint64_t cost) {
  const struct ct_made *made = c->made;
  if (!made) return false;
  c->made = NULL;
  const struct best other = best_of(c);
  c->made = made;
  const uint64_t tiles = (uint64_t)c->x_groups * c->cb * c->parts;
  return other.plan.cost && other.plan.cost + tiles * CT_RECORD_UNITS + UNPACK_COST < cost;
}

static int choose(struct weights *c) {
  const struct best b = best_of(c);
  if (b.plan.cost == 0 && c->made && b.least == 0)
    return ct_why(c->v.why, CT_ERR_NO_SPACE, "%s: groups would be loaded several times", c->v.name);
  if (unpacks_better(c, b.plan.cost))
    return ct_why(c->v.why, CT_ERR_NO_SPACE, "%s is faster with records", c->v.name);
  if (b.plan.cost == 0)
    return ct_why(c->v.why, CT_ERR_NO_SPACE, "%s needs %llu words of scratchpad, the window has %u",
                  c->v.name, (unsigned long long)b.least, c->v.room->spm_words);
  c->plan = b.plan;
  c->view = b.view;
  return CT_OK;
}

/* ---- Programs ------------------------------------------------------------------------------ */

static void member(void *kernel, uint32_t i) {
  struct weights *c = kernel;
  (void)i;
  for (c->part = 0; c->part < c->parts; ++c->part)
    one_part(c);
}

/* Two slots keep a store waiting for the memory's answer to the one before. */
static void take_out(struct weights *c) {
  struct ct_lower *l = c->v.l;
  const uint64_t left = ct_vk_left(&c->v), rest = CT_TILE + CT_CARRIER_WORDS;
  if (c->joined) {
    const bool roomy = left >= ct_conv_drain_words(&c->drain, 1, MORE_SLOTS) + rest;
    ct_conv_drain_rings(&c->drain, 1, 0, roomy ? MORE_SLOTS : OUT_SLOTS);
    return;
  }
  const bool roomy = left >= (uint64_t)MORE_SLOTS * CT_F32_TILE_UNITS + rest;
  c->out = ct_spm_ring(l, "out", CT_F32_TILE_UNITS, roomy ? MORE_SLOTS : OUT_SLOTS);
  c->temp = ct_reg_tensor(l, "in between", R_ONES, 3);
  c->regs = ct_reg_ring(l, "results", R_RESULTS, RESULTS);
}

static void record(struct weights *c) {
  struct ct_lower *l = c->v.l;
  const struct plan *p = &c->plan;
  const uint32_t sums = (uint32_t)(p->lines * p->taps) * p->blocks * p->planes;
  c->x_ring = ct_spm_ring(l, "pixels", x_words(p) * (p->stay ? c->cb : p->blocks), p->slots);
  if (c->made && c->made->stored) c->x_twin = ct_ring_twin(l, c->x_ring, "pixels to be stored");
  c->y_ring = ct_spm_ring(l, "gradients", p->chunk * (p->stay ? c->nb : p->planes), p->slots);
  c->acc = ct_acc_ring(l, "sums", 0, 2 * sums <= MOST_SUMS ? 2 * sums : sums);
  if (p->stay) {
    ct_ring_freed_by(l, c->x_ring, CT_Q_VA);
    ct_ring_freed_by(l, c->y_ring, CT_Q_VA);
  }
  take_out(c);
  ct_conv_carriers(&c->v, c->y, c->joined ? c->drain.regs.first_temp : R_ONES);
  if (c->one_mask) mask(c, 0, 0);
  ct_members(l, member, c);
}

/* x comes in groups. */
static int take_groups(struct weights *c) {
  const struct ct_made *made = c->k->made;
  const struct ct_mat *x = &made->k.in[0].mat;
  c->made = made;
  if (made->k.ops || !x->groups.reg)
    return ct_why(c->v.why, CT_ERR_NO_SPACE, "%s: its input is not as it is in groups", c->v.name);
  c->x_units = ct_vk_groups_tensor(&c->v, x, false);
  return ct_vk_check(&c->v, x, "the input", c->k->x.rows, c->k->x.cols);
}

static int try_weights(const struct ct_conv *k, unsigned unrolled, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why) {
  struct weights c = {.k = k, .unrolled = unrolled, .view = ct_conv_forward_view(&k->shape)};
  c.joined = ct_conv_joins(k);
  int err = ct_vk_start(&c.v, "the gradient of a convolution's weights", room, why);
  if (err) return err;
  err = ct_conv_check(&c.v, k, &c.view);
  c.parts = err ? 1 : ct_conv_parts(k);
  c.cb = ct_tiles(k->x.cols / c.parts);
  c.nb = ct_tiles(k->y.cols / c.parts);
  c.masks = k->shape.groups > c.parts;
  c.one_mask = c.masks && c.cb == 1 && c.nb == 1;
  if (c.masks && !c.one_mask && c.unrolled < CHUNKS) c.unrolled = CHUNKS; /* masks differ */
  c.x_groups = ct_mat_groups(&k->x);
  c.y_groups = ct_mat_groups(&k->y);
  if (!err && k->made) err = take_groups(&c);
  if (!err) {
    if (!c.made || c.made->stored)
      c.x = ct_vk_tensor(&c.v, &k->x, ct_conv_keep(&k->x), c.made != NULL);
    c.y = ct_vk_tensor(&c.v, &k->y, CT_KEEP_SQUARE, false);
    c.drain.first = CT_VK_FIRST_REG;
    if (c.joined)
      err = ct_conv_drain_start(&c.drain, &c.v, k->after, NULL,
                                ct_mat_groups(&k->weights) * CT_TILE, k->weights.cols, true);
    else
      c.to = ct_vk_tensor(&c.v, &k->weights, CT_KEEP_F32, true);
    if (!err) err = choose(&c);
  }
  if (err) {
    ct_lower_drop(c.v.l);
    return err;
  }
  record(&c);
  return ct_vk_end(&c.v, codes);
}

int ct_kernel_conv_weights(const struct ct_conv *k, const struct ct_room *room,
                           struct ct_codes *codes, const struct ct_why *why) {
  return ct_conv_tries(try_weights, CHUNKS + 1, k, room, codes, why);
}
