/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise operators and optimisers: a tile program over all tiles of a matrix.
 *
 * Tiles of a plane lie side by side, so several are loaded and stored by a command (a chunk), in
 * two slots each way. What the last group has less of rows, and the last plane of columns, is in
 * fields of VA: those tiles are nodes of their own at the top level, and so is what a plane has
 * left over from chunks. Where every tile is alike and needs no more than its own place, all planes
 * are one. A program that is a chain does two tiles with a command: the one hides how long the
 * other takes from command to command.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"
#include "ct_tile.h"

/* Chunks are short, so that loads, arithmetic and stores overlap in small matrices, too. */
enum { MOST_CHUNK = 4, COMMANDS = 360 };

/* Somewhere in a slot: tile t is at at + t * words. groups: of compressed tiles, which the tensor
 * has index units of. */
struct lane {
  enum ct_keep keep;
  bool groups;
  uint32_t tensor, at;
};

struct tilewise {
  struct ct_vk v;
  const struct ct_tilewise *k;
  struct ct_tile_plan plan;
  struct ct_tile_regs regs[2]; /* for one tile at a time, for two: in the same registers */
  struct ct_tile_run run;
  struct lane in[CT_TILE_INS], out[CT_TILE_OUTS][CT_KEEPS];
  uint32_t in_words, out_words, row_words; /* of a tile, of a plane's rows */
  uint32_t in_ring, out_ring, row_ring;
  uint32_t chunk, slots;
  bool pairs;  /* two tiles at a time, where there are two */
  bool groups; /* an input is groups: a chunk is the tiles of an index unit */
  /* Under way. */
  uint32_t plane, first_plane, group, first_group, tiles, chunks;
  struct ct_ref in_slot, out_slot;
};

/* ---- A tile ---- */

/* Tiles from t on, as many as the run does. */
static void load_tiles(struct tilewise *s, unsigned v, uint32_t t) {
  struct ct_lower *l = s->v.l;
  const struct lane *in = &s->in[v];
  const uint32_t words = ct_vk_words(in->keep);
  s->run.value[v] = ct_next_n(l, s->run.regs->load, s->run.more + 1);
  for (uint32_t i = 0; i <= s->run.more; ++i)
    ct_vl(l, &(struct ct_vmove){.reg = ct_nth(s->run.value[v], i),
                                .spm = ct_behind(s->in_slot, s->tiles * in->at + (t + i) * words),
                                .mode = ct_vk_vl_mode(in->keep),
                                .rows = s->run.rows});
}

static void store_value(struct tilewise *s, unsigned i, uint32_t t) {
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct lane *out = &s->out[o][keep];
      const uint32_t words = ct_vk_words(out->keep);
      if (s->k->out[o].value != s->plan.store[i] || out->tensor == 0) continue;
      ct_vk_vs_more(&s->v, out->keep, s->k->out[o].mat.narrow, s->run.stored[i],
                    ct_behind(s->out_slot, s->tiles * out->at + t * words), s->run.more);
    }
}

static void some_tiles(void *kernel, uint32_t pass) {
  struct tilewise *s = kernel;
  const uint32_t t = pass * (s->run.more + 1);
  for (unsigned i = 0; i < s->plan.loads; ++i)
    load_tiles(s, s->plan.load[i], t);
  ct_tile_emit(s->v.l, &s->run);
  for (unsigned i = 0; i < s->plan.stores; ++i)
    store_value(s, i, t);
}

/* ---- A chunk ---- */

static void load_input(struct tilewise *s, unsigned v, uint32_t group, struct ct_ref to) {
  struct ct_lower *l = s->v.l;
  const struct lane *in = &s->in[v];
  const uint32_t plane = s->k->in[v].spread == CT_SPREAD_COLS ? 0 : s->plane;
  const uint32_t unit = group / CT_GROUPS_TILES, units = s->tiles / CT_GROUPS_TILES;
  if (in->groups)
    ct_vk_ld_groups(&s->v, ct_tiles_of(l, in->tensor, plane, 1, unit, units), to, units,
                    s->k->in[v].mat.free);
  else
    ct_vk_ld_part(&s->v, in->keep, ct_tiles_of(l, in->tensor, plane, 1, group, s->tiles), to,
                  s->tiles, s->run.rows);
}

static void load_inputs(struct tilewise *s, struct ct_ref slot, uint32_t c, bool groups) {
  for (unsigned i = 0; i < s->plan.loads; ++i) {
    const unsigned v = s->plan.load[i];
    if (s->in[v].groups == groups)
      load_input(s, v, s->first_group + c * s->tiles, ct_behind(slot, s->tiles * s->in[v].at));
  }
}

/* Groups behind others: LD changes between them once. */
static struct ct_ref load_chunk(struct tilewise *s, uint32_t c) {
  struct ct_ref slot = {.space = 0};
  if (s->plan.loads == 0) return slot;
  slot = ct_next(s->v.l, s->in_ring);
  load_inputs(s, slot, c, false);
  load_inputs(s, slot, c, true);
  return slot;
}

static void store_chunk(struct tilewise *s) {
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct lane *out = &s->out[o][keep];
      if (out->tensor == 0) continue;
      ct_vk_st(&s->v, out->keep, ct_tiles_of(s->v.l, out->tensor, s->plane, 1, s->group, s->tiles),
               ct_behind(s->out_slot, s->tiles * out->at), s->tiles);
    }
}

static void work(struct tilewise *s, uint32_t c) {
  s->group = s->first_group + c * s->tiles;
  s->out_slot = ct_next(s->v.l, s->out_ring);
  ct_repeat(s->v.l, s->tiles / (s->run.more + 1), some_tiles, s);
  store_chunk(s);
}

static void chunk(void *kernel, uint32_t c) {
  struct tilewise *s = kernel;
  s->in_slot = load_chunk(s, c);
  work(s, c);
}

/* Where chunks have many tiles the next one is loaded while one is worked on: in their order its
 * commands would come behind all those of that. */
static void chunks(struct tilewise *s) {
  if (!s->groups) {
    ct_repeat(s->v.l, s->chunks, chunk, s);
    return;
  }
  struct ct_ref next = load_chunk(s, 0);
  for (uint32_t c = 0; c < s->chunks; ++c) {
    s->in_slot = next;
    if (c + 1 < s->chunks) next = load_chunk(s, c + 1);
    work(s, c);
  }
}

/* ---- A plane ---- */

static void load_rows(struct tilewise *s) {
  struct ct_lower *l = s->v.l;
  if (s->plan.row_loads == 0) return;
  const struct ct_ref slot = ct_next(l, s->row_ring);
  for (unsigned i = 0; i < s->plan.row_loads; ++i) {
    const unsigned v = s->plan.row_load[i];
    const uint32_t plane = s->k->in[v].spread == CT_SPREAD_ALL ? 0 : s->plane;
    ct_vk_ld_row(&s->v, s->in[v].keep, ct_tile_of(l, s->in[v].tensor, plane, 0),
                 ct_behind(slot, s->in[v].at));
  }
  for (unsigned i = 0; i < s->plan.row_loads; ++i) {
    const unsigned v = s->plan.row_load[i];
    s->run.value[v] = ct_next(l, s->run.regs->row_load);
    ct_vl(l, &(struct ct_vmove){.reg = s->run.value[v],
                                .spm = ct_behind(slot, s->in[v].at),
                                .mode = ct_vk_vl_mode(s->in[v].keep),
                                .rows = 1});
  }
}

static void plane(void *kernel, uint32_t p) {
  struct tilewise *s = kernel;
  s->plane = s->first_plane + p;
  load_rows(s);
  ct_tile_rows(s->v.l, &s->run);
  chunks(s);
}

/* ---- All ---- */

/* Groups of planes, in chunks of so many tiles. Pairs of registers begin with the first of a ring.
 */
static void some_groups(struct tilewise *s, uint32_t planes, uint32_t first, uint32_t groups,
                        uint32_t tiles) {
  s->first_group = first;
  s->run.more = s->pairs && tiles % 2 == 0 ? 1 : 0;
  s->run.regs = &s->regs[s->run.more];
  s->tiles = tiles;
  s->chunks = tiles ? groups / tiles : 0;
  if (s->chunks && planes) ct_repeat(s->v.l, planes, plane, s);
}

static void some_planes(struct tilewise *s, uint32_t first, uint32_t planes, uint32_t groups,
                        uint32_t rows) {
  const uint32_t last = rows % CT_TILE, whole = groups - (last ? 1 : 0);
  const uint32_t rest = whole % s->chunk;
  s->first_plane = first;
  s->run.rows = CT_TILE;
  some_groups(s, planes, 0, whole - rest, s->chunk);
  some_groups(s, planes, whole - rest, rest, rest);
  s->run.rows = last;
  if (last) some_groups(s, planes, whole, 1, 1);
}

/* Whether a tile needs nothing but tiles in its own place, and all groups are whole. */
static bool is_flat(const struct tilewise *s) {
  bool cols = false;
  for (unsigned i = 0; i < s->plan.loads; ++i)
    cols |= s->k->in[s->plan.load[i]].spread == CT_SPREAD_COLS;
  return !cols && s->plan.row_loads == 0 && s->k->rows % CT_TILE == 0;
}

static void all_planes(struct tilewise *s) {
  const uint32_t groups = ct_tiles(s->k->rows), last = s->k->cols % CT_TILE;
  const uint32_t whole = s->k->cols / CT_TILE;
  s->run.cols = CT_TILE;
  if (is_flat(s) && (uint64_t)whole * groups < UINT32_MAX)
    some_planes(s, 0, whole ? 1 : 0, whole * groups, 0);
  else
    some_planes(s, 0, whole, groups, s->k->rows);
  s->run.cols = last;
  if (last) some_planes(s, whole, 1, groups, s->k->rows);
}

/* ---- Places ---- */

static int check_in(const struct tilewise *s, unsigned i) {
  const struct ct_tile_in *in = &s->k->in[i];
  const bool row = in->spread == CT_SPREAD_ROWS || in->spread == CT_SPREAD_ALL;
  const bool col = in->spread == CT_SPREAD_COLS || in->spread == CT_SPREAD_ALL;
  return ct_vk_check(&s->v, &in->mat, "an input", row ? 1 : s->k->rows, col ? 1 : s->k->cols);
}

static int check_all(const struct tilewise *s) {
  int err = CT_OK;
  for (unsigned i = 0; i < s->k->ins && !err; ++i)
    err = check_in(s, i);
  for (unsigned o = 0; o < s->k->outs && !err; ++o)
    err = ct_vk_check(&s->v, &s->k->out[o].mat, "an output", s->k->rows, s->k->cols);
  return err;
}

static void place_in(struct tilewise *s, unsigned v, bool row) {
  struct lane *in = &s->in[v];
  in->groups = s->k->in[v].mat.groups.reg;
  s->groups |= in->groups;
  in->keep = CT_KEEP_ROWS;
  if (!in->groups) ct_vk_keep(&s->k->in[v].mat, &in->keep);
  in->tensor = in->groups ? ct_vk_groups_tensor(&s->v, &s->k->in[v].mat, false)
                          : ct_vk_tensor(&s->v, &s->k->in[v].mat, in->keep, false);
  uint32_t *words = row ? &s->row_words : &s->in_words;
  in->at = *words;
  *words += row ? ct_vk_row_words(in->keep) : ct_vk_words(in->keep);
}

static void place_all(struct tilewise *s) {
  for (unsigned i = 0; i < s->plan.loads; ++i)
    place_in(s, s->plan.load[i], false);
  for (unsigned i = 0; i < s->plan.row_loads; ++i)
    place_in(s, s->plan.row_load[i], true);
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      struct lane *out = &s->out[o][keep];
      if (s->k->out[o].mat.keep[keep].reg == 0) continue;
      out->keep = (enum ct_keep)keep;
      out->tensor = ct_vk_tensor(&s->v, &s->k->out[o].mat, out->keep, true);
      out->at = s->out_words;
      s->out_words += ct_vk_words(out->keep);
    }
}

/* Commands of a tile; what two sets of registers and two slots make of them, at most. */
static unsigned commands(const struct tilewise *s) {
  unsigned stores = 0;
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep)
      stores += s->out[o][keep].tensor != 0;
  return s->plan.commands + 2 * (s->plan.loads + stores) + 2;
}

static void take_registers(struct tilewise *s) {
  const bool roomy = commands(s) * 12 <= COMMANDS;
  ct_tile_take(s->v.l, &s->plan, CT_VK_FIRST_REG, 0, roomy ? 2 : 1, &s->regs[0]);
  const unsigned pairs = s->plan.temps + s->plan.row_loads + 4 * (s->plan.loads + 1);
  s->pairs = s->plan.chain && roomy && CT_VK_FIRST_REG + 1 + pairs <= CT_TILE_REGS;
  if (s->pairs) ct_tile_take(s->v.l, &s->plan, CT_VK_FIRST_REG, 1, 2, &s->regs[1]);
}

static void take_words(struct tilewise *s) {
  const uint32_t each = s->in_words + s->out_words;
  const uint64_t groups = (uint64_t)ct_tiles(s->k->rows) * (is_flat(s) ? ct_tiles(s->k->cols) : 1);
  if (s->row_words) s->row_ring = ct_spm_ring(s->v.l, "rows", s->row_words, 1);
  const uint64_t left = ct_vk_left(&s->v);
  s->slots = left >= 2 * (uint64_t)each && commands(s) * 6 <= COMMANDS ? 2 : 1;
  uint64_t most = left / ((uint64_t)s->slots * each);
  if (most > MOST_CHUNK) most = MOST_CHUNK;
  if (most > groups / 4) most = groups / 4;
  s->chunk = most < 2 ? 1 : (uint32_t)most & ~1u;
  if (s->groups) {
    s->chunk = CT_GROUPS_TILES * ct_groups_at_once((uint32_t)groups);
    s->slots = 2;
  }
  if (s->in_words) s->in_ring = ct_spm_ring(s->v.l, "in", s->chunk * s->in_words, s->slots);
  s->out_ring = ct_spm_ring(s->v.l, "out", s->chunk * s->out_words, s->slots);
}

static void member(void *kernel, uint32_t i) {
  (void)i;
  all_planes(kernel);
}

int ct_kernel_tilewise(const struct ct_tilewise *k, const struct ct_room *room,
                       struct ct_codes *codes, const struct ct_why *why) {
  struct tilewise s = {.k = k};
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_tile_plan(&s.plan, k, false, ct_room_numbers(room), why);
  if (err) return err;
  err = ct_vk_start(&s.v, "a tile program", room, why);
  if (err) return err;
  err = check_all(&s);
  if (err) {
    ct_lower_drop(s.v.l);
    return err;
  }
  place_all(&s);
  take_registers(&s);
  ct_vk_carriers(&s.v, s.regs[0].first_temp);
  take_words(&s);
  s.run.k = k;
  s.run.plan = &s.plan;
  ct_members(s.v.l, member, &s);
  return ct_vk_end(&s.v, codes);
}
