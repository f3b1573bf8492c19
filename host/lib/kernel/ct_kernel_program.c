/* SPDX-License-Identifier: Apache-2.0 */
/* See ct_kernel_program.h. */
#include "ct_kernel_program.h"

#include <string.h>

#include "coltrain/coltrain.h"

enum { R_VL, R_VS };

/* ---- Matrices ---- */

bool ct_vk_keep(const struct ct_mat *m, enum ct_keep *keep) {
  for (unsigned i = 0; i < CT_KEEPS; ++i)
    if (m->keep[i].reg) {
      *keep = (enum ct_keep)i;
      return true;
    }
  return false;
}

int ct_vk_check(const struct ct_vk *v, const struct ct_mat *m, const char *what, uint32_t rows,
                uint32_t cols) {
  enum ct_keep keep;
  if (m->rows != rows || m->cols != cols || rows == 0 || cols == 0)
    return ct_why(v->why, CT_ERR_ARG, "%s: %s has %u rows and %u columns, not %u and %u", v->name,
                  what, m->rows, m->cols, rows, cols);
  if (m->groups.reg > v->room->args)
    return ct_why(v->why, CT_ERR_ARG, "%s: %s lies behind argument %u, there are %u", v->name, what,
                  m->groups.reg, v->room->args);
  if (m->bound_reg > v->room->args)
    return ct_why(v->why, CT_ERR_ARG, "%s: the bound of %s is argument %u, there are %u", v->name,
                  what, m->bound_reg, v->room->args);
  if (m->groups.reg && !ct_reads_groups(rows))
    return ct_why(v->why, CT_ERR_ARG, "%s: %s is %u rows in groups: no whole index units", v->name,
                  what, rows);
  if (!m->groups.reg && !ct_vk_keep(m, &keep))
    return ct_why(v->why, CT_ERR_ARG, "%s: %s is kept in no way", v->name, what);
  if (m->narrow > 6)
    return ct_why(v->why, CT_ERR_ARG, "%s: %s with mantissas of 8 - %u bits, 2 are the least",
                  v->name, what, m->narrow);
  for (unsigned i = 0; i < CT_KEEPS; ++i) {
    if (m->keep[i].reg > v->room->args)
      return ct_why(v->why, CT_ERR_ARG, "%s: %s lies behind argument %u, there are %u", v->name,
                    what, m->keep[i].reg, v->room->args);
    if (m->keep[i].reg && ct_mat_units(rows, cols, (enum ct_keep)i) + m->keep[i].at > UINT32_MAX)
      return ct_why(v->why, CT_ERR_NO_SPACE, "%s: %s of %u rows and %u columns is too large",
                    v->name, what, rows, cols);
  }
  return CT_OK;
}

/* ---- A program ---- */

int ct_vk_start(struct ct_vk *v, const char *name, const struct ct_room *room,
                const struct ct_why *why) {
  *v = (struct ct_vk){
      .l = ct_lower_start(room->args, false), .name = name, .room = room, .why = why};
  if (!v->l) return ct_why(why, CT_ERR_MEMORY, "%s: no memory for its programs", name);
  if (room->work) ct_lower_count(v->l, room->work);
  ct_lower_group(v->l, room->group);
  return CT_OK;
}

static uint32_t add_tensor(struct ct_vk *v, struct ct_seat seat, uint32_t units,
                           struct ct_grid grid, bool written) {
  for (unsigned i = 0; i < v->mats; ++i)
    if (v->mat[i].seat.reg == seat.reg && v->mat[i].seat.at == seat.at &&
        v->mat[i].units == units && v->mat[i].piece == grid.piece) {
      v->mat[i].written |= written;
      return v->mat[i].tensor;
    }
  if (v->mats == CT_VK_MATS) {
    ct_lower_fail(v->l, CT_ERR_INTERNAL, "a kernel of more than %d matrices", CT_VK_MATS);
    return 0;
  }
  const uint32_t tensor = ct_dram_tensor(v->l, "a matrix", seat.reg, seat.at, grid);
  v->mat[v->mats].seat = seat;
  v->mat[v->mats].units = units;
  v->mat[v->mats].piece = grid.piece;
  v->mat[v->mats].tensor = tensor;
  v->mat[v->mats++].written = written;
  return tensor;
}

uint32_t ct_vk_tensor(struct ct_vk *v, const struct ct_mat *m, enum ct_keep keep, bool written) {
  return add_tensor(v, m->keep[keep], (uint32_t)ct_mat_units(m->rows, m->cols, keep),
                    ct_grid(ct_mat_planes(m), ct_mat_groups(m), ct_keep_units(keep)), written);
}

uint32_t ct_vk_rows_tensor(struct ct_vk *v, const struct ct_mat *m, bool written) {
  return add_tensor(v, m->keep[CT_KEEP_F32], (uint32_t)ct_mat_units(m->rows, m->cols, CT_KEEP_F32),
                    ct_grid(ct_mat_planes(m), ct_mat_groups(m) * CT_TILE, CT_F32_ROW_UNITS),
                    written);
}

uint32_t ct_vk_line_tensor(struct ct_vk *v, const struct ct_mat *m, bool written) {
  const uint32_t rows = ct_mat_planes(m) * ct_mat_groups(m) * CT_TILE;
  return add_tensor(v, m->keep[CT_KEEP_F32], (uint32_t)ct_mat_units(m->rows, m->cols, CT_KEEP_F32),
                    ct_grid(1, rows, CT_F32_ROW_UNITS), written);
}

uint32_t ct_vk_units_tensor(struct ct_vk *v, struct ct_seat seat, uint32_t units, bool written) {
  return add_tensor(v, seat, units, ct_grid(1, units, 1), written);
}

uint32_t ct_vk_groups_tensor(struct ct_vk *v, const struct ct_mat *m, bool written) {
  const uint32_t units = ct_mat_groups(m) / CT_GROUPS_TILES;
  return add_tensor(v, m->groups, ct_mat_planes(m) * units, ct_grid(ct_mat_planes(m), units, 1),
                    written);
}

void ct_vk_carriers(struct ct_vk *v, unsigned va_reg) {
  struct ct_lower *l = v->l;
  uint32_t load = 0;
  for (unsigned i = v->mats; i-- > 0;)
    if (!v->mat[i].written) load = v->mat[i].tensor;
  v->calm = ct_spm_tensor(l, "calm words", ct_grid(1, 1, CT_F32_ROW_UNITS));
  struct ct_carriers c = {.va_reg = va_reg,
                          .vl_reg = R_VL,
                          .vs_reg = R_VS,
                          .spm = ct_spm_take(l, CT_CARRIER_WORDS),
                          .calm = v->calm,
                          .load = load,
                          .store_spm = v->calm};
  if (v->room->scratch.reg)
    c.store_dram =
        ct_dram_tensor(l, "scratch", v->room->scratch.reg, v->room->scratch.at, ct_grid(1, 1, 1));
  ct_lower_carriers(l, &c);
  if (v->mats == 0) return;
  ct_ld(l, &(struct ct_dma){.dram = ct_tile_of(l, load ? load : v->mat[0].tensor, 0, 0),
                            .spm = ct_tile_of(l, v->calm, 0, 0),
                            .nb = CT_F32_ROW_UNITS});
}

uint64_t ct_vk_left(const struct ct_vk *v) {
  const uint64_t taken = ct_spm_taken(v->l);
  return taken < v->room->spm_words ? v->room->spm_words - taken : 0;
}

int ct_vk_end(struct ct_vk *v, struct ct_codes *codes) {
  if (ct_spm_taken(v->l) > v->room->spm_words)
    ct_lower_fail(v->l, CT_ERR_NO_SPACE, "%s needs %llu words of scratchpad, the window has %u",
                  v->name, (unsigned long long)ct_spm_taken(v->l), v->room->spm_words);
  return ct_lower_finish(v->l, v->name, codes, v->why);
}

/* ---- Commands ---- */

static struct ct_dma move(enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
                          uint32_t tiles) {
  const bool f32 = keep == CT_KEEP_F32;
  return (struct ct_dma){.dram = dram,
                         .spm = spm,
                         .hdr = !f32,
                         .nb = f32 ? CT_F32_TILE_UNITS : CT_TILE,
                         .n1 = tiles,
                         .d1 = (int32_t)ct_keep_units(keep),
                         .s1 = (int32_t)ct_vk_words(keep)};
}

void ct_vk_ld(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
              uint32_t tiles) {
  const struct ct_dma c = move(keep, dram, spm, tiles);
  ct_ld(v->l, &c);
}

void ct_vk_ld_part(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
                   uint32_t tiles, uint32_t rows) {
  struct ct_dma c = move(keep, dram, spm, tiles);
  c.nb = rows * ct_vk_row_words(keep);
  ct_ld(v->l, &c);
}

/* So many index units, of whole tiles side by side. */
static struct ct_dma groups(struct ct_ref dram, struct ct_ref spm, uint32_t units) {
  enum { GROUPS = 4, WORDS = CT_GROUPS_TILES / GROUPS * CT_TILE };
  return (struct ct_dma){.dram = dram,
                         .spm = spm,
                         .nb = WORDS,
                         .n1 = GROUPS,
                         .s1 = WORDS,
                         .n2 = units,
                         .d2 = 1,
                         .s2 = GROUPS * WORDS,
                         .comp = {.on = true}};
}

void ct_vk_ld_twin_groups(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm,
                          struct ct_ref twin, uint32_t units, bool free) {
  struct ct_dma c = groups(dram, spm, units);
  c.twin = twin;
  c.comp.free = free;
  ct_ld(v->l, &c);
}

void ct_vk_ld_groups(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm, uint32_t units,
                     bool free) {
  ct_vk_ld_twin_groups(v, dram, spm, (struct ct_ref){.space = 0}, units, free);
}

void ct_vk_st_groups(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm, uint32_t units,
                     unsigned bound_reg) {
  struct ct_dma c = groups(dram, spm, units);
  c.comp.n1_reg = bound_reg;
  ct_st(v->l, &c);
}

void ct_vk_st(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
              uint32_t tiles) {
  const struct ct_dma c = move(keep, dram, spm, tiles);
  ct_st(v->l, &c);
}

/* A run, or several of sixteen rows. */
static void load_rows(struct ct_vk *v, struct ct_ref dram, struct ct_ref spm, uint32_t rows) {
  const bool runs = rows > CT_F32_TILE_UNITS;
  ct_ld(v->l, &(struct ct_dma){.dram = dram,
                               .spm = spm,
                               .nb = (runs ? CT_TILE : rows) * CT_F32_ROW_UNITS,
                               .n1 = runs ? rows / CT_TILE : 1,
                               .d1 = CT_F32_TILE_UNITS,
                               .s1 = CT_F32_TILE_UNITS});
}

void ct_vk_ld_rows(struct ct_vk *v, uint32_t tensor, uint32_t plane, uint32_t row, uint32_t rows,
                   struct ct_ref spm) {
  const uint32_t rest = rows > CT_F32_TILE_UNITS ? rows % CT_TILE : 0, whole = rows - rest;
  load_rows(v, ct_tiles_of(v->l, tensor, plane, 1, row, whole), spm, whole);
  if (rest)
    load_rows(v, ct_tiles_of(v->l, tensor, plane, 1, row + whole, rest),
              ct_behind(spm, whole * CT_F32_ROW_UNITS), rest);
}

void ct_vk_ld_row(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm) {
  struct ct_dma c = move(keep, dram, spm, 1);
  c.nb = ct_vk_row_words(keep);
  ct_ld(v->l, &c);
}

void ct_vk_st_same(struct ct_vk *v, enum ct_keep keep, struct ct_ref dram, struct ct_ref spm,
                   uint32_t tiles) {
  struct ct_dma c = move(keep, dram, spm, tiles);
  c.s1 = 0;
  ct_st(v->l, &c);
}

void ct_vk_vs_more(struct ct_vk *v, enum ct_keep keep, unsigned narrow, struct ct_ref reg,
                   struct ct_ref spm, uint32_t more) {
  const unsigned mode = keep == CT_KEEP_F32    ? CT_VS_F32
                        : keep == CT_KEEP_ROWS ? CT_VS_ROWS
                                               : CT_VS_SQUARE;
  ct_vs(v->l, &(struct ct_vmove){.reg = reg,
                                 .spm = spm,
                                 .mode = mode,
                                 .rows = CT_TILE,
                                 .narrow = narrow,
                                 .more = more,
                                 .tile_stride = ct_vk_words(keep)});
}

bool ct_vk_lane_out(struct ct_vk *v, const struct ct_mat *m, enum ct_keep keep, uint32_t *words,
                    struct ct_vk_lane *lane) {
  const bool packed = m->groups.reg && m->packed == keep;
  if (m->keep[keep].reg == 0 && !packed) return false;
  lane->keep = keep;
  if (m->keep[keep].reg) lane->tensor = ct_vk_tensor(v, m, keep, true);
  if (packed) lane->groups = ct_vk_groups_tensor(v, m, true);
  lane->at = *words;
  *words += ct_vk_words(keep);
  return packed;
}

bool ct_vk_next_stretch(const struct ct_vk_units *of, struct ct_vk_stretch *t) {
  const uint32_t end = of->first + of->units, most = t->units ? of->at_once : 1;
  t->first = t->units == 0 || t->last;
  if (t->first) {
    t->plane = t->units ? t->plane + 1 : of->first_plane;
    t->unit = of->first;
  } else {
    t->unit += t->units;
  }
  t->units = ct_min_u32(most, end - t->unit);
  t->last = t->unit + t->units == end;
  return t->plane < of->first_plane + of->planes;
}

uint32_t ct_vk_made(struct ct_vk *v, const struct ct_mat *m, struct ct_vk_made *made) {
  uint32_t words = 0;
  *made = (struct ct_vk_made){.mat = m};
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    if (m->rows == 0 || m->keep[keep].reg == 0) continue;
    made->tensor[keep] = ct_vk_tensor(v, m, (enum ct_keep)keep, true);
    words += ct_vk_words((enum ct_keep)keep);
  }
  return words;
}

uint32_t ct_vk_vs_made(struct ct_vk *v, const struct ct_vk_made *made, struct ct_ref reg,
                       struct ct_ref spm) {
  uint32_t at = 0;
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    if (made->tensor[keep] == 0) continue;
    ct_vk_vs(v, (enum ct_keep)keep, made->mat->narrow, reg, ct_behind(spm, at));
    at += ct_vk_words((enum ct_keep)keep);
  }
  return at;
}

uint32_t ct_vk_st_made(struct ct_vk *v, const struct ct_vk_made *made, uint32_t plane,
                       struct ct_ref spm, uint32_t group) {
  uint32_t at = 0;
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
    if (made->tensor[keep] == 0) continue;
    ct_vk_st(v, (enum ct_keep)keep, ct_tile_of(v->l, made->tensor[keep], plane, group),
             ct_behind(spm, at), 1);
    at += ct_vk_words((enum ct_keep)keep);
  }
  return at;
}
