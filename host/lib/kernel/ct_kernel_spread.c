/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row for each segment, to all rows of it: the gradient of a mean of rows.
 *
 * Where segments consist of whole tiles (or rows are FP32, which may be stored one by one) a tile
 * is made once for a segment and stored as often as it is long. Else each tile is put together from
 * the rows of the segments that meet in it, the last one first: each writes all rows up to its end.
 * Such tiles are written down one by one, for all planes.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"

struct spread {
  struct ct_vk v;
  const struct ct_spread_rows *k;
  uint32_t segments;
  enum ct_keep keep; /* of dy */
  bool by_rows;      /* dx is stored by rows */
  bool mixed;        /* tiles have rows of several segments */
  uint32_t dy, dx[CT_KEEPS], out_words;
  uint32_t temp, loads, result; /* registers */
  uint32_t words, out;          /* rings in the scratchpad */
  /* Under way. */
  uint32_t plane, first_plane, cols, group, tile;
  struct ct_ref slot;
};

static struct ct_ref factor(const struct spread *s) {
  return ct_tile_of(s->v.l, s->temp, 0, 0);
}

/* Row `row` of what lies in a slot, in a register. */
static struct ct_ref load_row(struct spread *s, struct ct_ref slot, uint32_t row) {
  const struct ct_ref reg = ct_next(s->v.l, s->loads);
  ct_vl(s->v.l, &(struct ct_vmove){.reg = reg,
                                   .spm = ct_behind(slot, row * ct_vk_row_words(s->keep)),
                                   .mode = ct_vk_vl_mode(s->keep),
                                   .rows = 1});
  return reg;
}

/* The first rows of a tile: row 0 of a register times the factor. */
static void put_rows(struct spread *s, struct ct_ref to, struct ct_ref row, uint32_t rows,
                     bool all) {
  ct_va(s->v.l, &(struct ct_va){.to = to,
                                .a = factor(s),
                                .q = row,
                                .b = CT_VA_ROW0,
                                .rows = rows,
                                .cols = s->cols,
                                .part_rows = !all});
}

static void load_tile(struct spread *s, struct ct_ref to, uint32_t group, uint32_t tiles) {
  ct_vk_ld(&s->v, s->keep, ct_tiles_of(s->v.l, s->dy, s->plane, 1, group, tiles), to, tiles);
}

/* ---- Whole tiles ---- */

static void quantise(struct spread *s, struct ct_ref reg, struct ct_ref out) {
  uint32_t at = 0;
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    if (s->dx[keep] == 0) continue;
    ct_vk_vs(&s->v, (enum ct_keep)keep, s->k->dx.narrow, reg, ct_behind(out, at));
    at += ct_vk_words((enum ct_keep)keep);
  }
}

/* Tiles [first, first + tiles) all hold what lies in out. */
static void store_tiles(struct spread *s, struct ct_ref out, uint32_t first, uint32_t tiles) {
  uint32_t at = 0;
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    if (s->dx[keep] == 0) continue;
    ct_vk_st_same(&s->v, (enum ct_keep)keep,
                  ct_tiles_of(s->v.l, s->dx[keep], s->plane, 1, first, tiles), ct_behind(out, at),
                  tiles);
    at += ct_vk_words((enum ct_keep)keep);
  }
}

/* FP32 rows [first, first + rows), all the same, sixteen of which lie in out. */
static void store_rows(struct spread *s, struct ct_ref out, uint32_t first, uint32_t rows) {
  const uint32_t whole = rows / CT_TILE, rest = rows % CT_TILE;
  struct ct_lower *l = s->v.l;
  const uint32_t to = s->dx[CT_KEEP_F32];
  if (whole)
    ct_st(l, &(struct ct_dma){.dram = ct_tiles_of(l, to, s->plane, 1, first, whole * CT_TILE),
                              .spm = out,
                              .nb = CT_F32_TILE_UNITS,
                              .n1 = whole,
                              .d1 = CT_F32_TILE_UNITS});
  if (rest)
    ct_st(l,
          &(struct ct_dma){.dram = ct_tiles_of(l, to, s->plane, 1, first + whole * CT_TILE, rest),
                           .spm = out,
                           .nb = rest * CT_F32_ROW_UNITS});
}

static void store(struct spread *s, struct ct_ref reg, uint32_t first, uint32_t rows) {
  const struct ct_ref out = ct_next(s->v.l, s->out);
  quantise(s, reg, out);
  if (s->by_rows)
    store_rows(s, out, first, rows);
  else
    store_tiles(s, out, first / CT_TILE, rows / CT_TILE);
}

static void segment(void *kernel, uint32_t i) {
  struct spread *s = kernel;
  const uint32_t rows = s->k->segment;
  const struct ct_ref row = load_row(s, s->slot, i), reg = ct_next(s->v.l, s->result);
  put_rows(s, reg, row, CT_TILE, true);
  store(s, reg, (s->group * CT_TILE + i) * rows, rows);
}

static void group_of(struct spread *s, uint32_t group, uint32_t segments) {
  s->group = group;
  s->slot = ct_next(s->v.l, s->words);
  load_tile(s, s->slot, group, 1);
  ct_repeat(s->v.l, segments, segment, s);
}

static void whole_group(void *kernel, uint32_t g) {
  group_of(kernel, g, CT_TILE);
}

static void plane(void *kernel, uint32_t p) {
  struct spread *s = kernel;
  const uint32_t whole = s->segments / CT_TILE, rest = s->segments % CT_TILE;
  const uint32_t rows = s->k->dx.rows, padding = (CT_TILE - rows % CT_TILE) % CT_TILE;
  s->plane = s->first_plane + p;
  ct_repeat(s->v.l, whole, whole_group, s);
  if (rest) group_of(s, whole, rest);
  if (padding) {
    const struct ct_ref reg = ct_next(s->v.l, s->result);
    ct_va(s->v.l, &(struct ct_va){.to = reg});
    store(s, reg, rows, padding);
  }
}

/* ---- Tiles in which segments meet ---- */

static void mixed_tile(void *kernel, uint32_t p) {
  struct spread *s = kernel;
  struct ct_lower *l = s->v.l;
  const uint32_t rows = s->k->segment, begin = s->tile * CT_TILE;
  const uint32_t end = ct_min_u32(begin + CT_TILE, s->k->dx.rows);
  const uint32_t first = begin / rows, last = (end - 1) / rows, group = first / CT_TILE;
  s->plane = s->first_plane + p;
  const struct ct_ref slot = ct_next(l, s->words), reg = ct_next(l, s->result);
  load_tile(s, slot, group, last / CT_TILE - group + 1);
  for (uint32_t i = last + 1; i-- > first;) {
    const uint32_t row = i % CT_TILE, tile = i / CT_TILE - group;
    const struct ct_ref from = ct_behind(slot, tile * ct_vk_words(s->keep));
    put_rows(s, reg, load_row(s, from, row), ct_min_u32((i + 1) * rows, end) - begin, i == last);
  }
  const struct ct_ref out = ct_next(l, s->out);
  quantise(s, reg, out);
  store_tiles(s, out, s->tile, 1);
}

/* ---- All ---- */

static void some_planes(struct spread *s, bool mixed, uint32_t planes) {
  if (!mixed) {
    ct_repeat(s->v.l, planes, plane, s);
    return;
  }
  for (s->tile = 0; s->tile < ct_mat_groups(&s->k->dx); ++s->tile)
    ct_repeat(s->v.l, planes, mixed_tile, s);
}

static void all_planes(struct spread *s, bool mixed) {
  const uint32_t whole = s->k->dx.cols / CT_TILE;
  s->first_plane = 0;
  s->cols = CT_TILE;
  some_planes(s, mixed, whole);
  s->first_plane = whole;
  s->cols = s->k->dx.cols % CT_TILE;
  if (s->cols) some_planes(s, mixed, 1);
}

static void place(struct spread *s, bool mixed) {
  struct ct_lower *l = s->v.l;
  const struct ct_mat *dx = &s->k->dx;
  ct_vk_keep(&s->k->dy, &s->keep);
  s->dy = ct_vk_tensor(&s->v, &s->k->dy, s->keep, false);
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    if (dx->keep[keep].reg == 0) continue;
    s->dx[keep] = s->by_rows ? ct_vk_rows_tensor(&s->v, dx, true)
                             : ct_vk_tensor(&s->v, dx, (enum ct_keep)keep, true);
    s->out_words += ct_vk_words((enum ct_keep)keep);
  }
  s->temp = ct_reg_tensor(l, "factor", CT_VK_FIRST_REG, 1);
  s->loads = ct_reg_ring(l, "loads", CT_VK_FIRST_REG + 1, 2);
  s->result = ct_reg_ring(l, "results", CT_VK_FIRST_REG + 3, 2);
  ct_vk_carriers(&s->v, CT_VK_FIRST_REG);
  const uint32_t in = (mixed ? 2 : 1) * ct_vk_words(s->keep);
  const uint32_t slots = ct_vk_left(&s->v) >= 2 * ((uint64_t)in + s->out_words) ? 2 : 1;
  s->words = ct_spm_ring(l, "in", in, slots);
  s->out = ct_spm_ring(l, "out", s->out_words, slots);
  ct_va(l, &(struct ct_va){.to = factor(s), .c = CT_VA_SCALAR, .sc = ct_vk_bits(s->k->scale)});
}

static int check(struct spread *s) {
  const struct ct_spread_rows *k = s->k;
  const int err = ct_vk_check(&s->v, &k->dx, "dx", k->dx.rows, k->dx.cols);
  if (err) return err;
  if (k->segment == 0 || k->dx.rows % k->segment)
    return ct_why(s->v.why, CT_ERR_ARG, "%s: %u rows in segments of %u", s->v.name, k->dx.rows,
                  k->segment);
  s->segments = k->dx.rows / k->segment;
  return ct_vk_check(&s->v, &k->dy, "dy", s->segments, k->dx.cols);
}

static void member(void *kernel, uint32_t i) {
  struct spread *s = kernel;
  (void)i;
  all_planes(s, s->mixed);
}

int ct_kernel_spread_rows(const struct ct_spread_rows *k, const struct ct_room *room,
                          struct ct_codes *codes, const struct ct_why *why) {
  struct spread s = {.k = k};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_vk_start(&s.v, "rows for segments", room, why);
  if (err) return err;
  err = check(&s);
  if (err) {
    ct_lower_drop(s.v.l);
    return err;
  }
  const bool whole = k->segment % CT_TILE == 0;
  s.by_rows = !whole && !k->dx.keep[CT_KEEP_ROWS].reg && !k->dx.keep[CT_KEEP_SQUARE].reg;
  s.mixed = !whole && !s.by_rows;
  place(&s, s.mixed);
  ct_members(s.v.l, member, &s);
  return ct_vk_end(&s.v, codes);
}
