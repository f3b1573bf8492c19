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

struct tilewise {
  struct ct_vk v;
  const struct ct_tilewise *k;
  struct ct_tile_plan plan;
  struct ct_tile_regs regs[2]; /* for one tile at a time, for two: in the same registers */
  struct ct_tile_run run;
  struct ct_vk_lane in[CT_TILE_INS], out[CT_TILE_OUTS][CT_KEEPS];
  uint32_t in_words, out_words, row_words; /* of a tile, of a plane's rows */
  uint32_t in_ring, out_ring, row_ring;
  uint32_t chunk, slots;
  uint32_t most; /* tiles of a slot of inputs: a chunk, or, where one is groups, those of so many
                    index units */
  bool pairs;    /* two tiles at a time, where there are two */
  bool groups;   /* an input is groups */
  bool packs;    /* an output is stored as groups: a slot of outputs is an index unit */
  /* Under way. */
  uint32_t plane, first_plane, first_group, groups_left, tiles;
  uint32_t done;             /* tiles of a slot of outputs in front of the chunk */
  uint32_t loaded, at_group; /* of a slot of inputs: tiles in front of the pass; its first group */
  struct ct_ref in_slot, row_slot, out_slot;
};

/* ---- A tile ---- */

/* Tiles from t on, as many as the run does. */
static void load_tiles(struct tilewise *s, unsigned v, uint32_t t) {
  struct ct_lower *l = s->v.l;
  const struct ct_vk_lane *in = &s->in[v];
  const uint32_t words = ct_vk_words(in->keep), at = s->most * in->at;
  s->run.value[v] = ct_next_n(l, s->run.regs->load, s->run.more + 1);
  for (uint32_t i = 0; i <= s->run.more; ++i)
    ct_vl(l, &(struct ct_vmove){.reg = ct_nth(s->run.value[v], i),
                                .spm = ct_behind(s->in_slot, at + (s->loaded + t + i) * words),
                                .mode = ct_vk_vl_mode(in->keep),
                                .rows = s->run.rows});
}

/* Tiles of a slot of outputs. */
static uint32_t unit_of(const struct tilewise *s) {
  return s->packs ? CT_GROUPS_TILES : s->chunk;
}

/* Where tile t of the chunk goes. */
static struct ct_ref result(const struct tilewise *s, const struct ct_vk_lane *out, uint32_t t) {
  const struct ct_ref slot = s->packs ? ct_part(s->out_slot, s->done / s->tiles, 0) : s->out_slot;
  return ct_behind(slot, unit_of(s) * out->at + (s->done + t) * ct_vk_words(out->keep));
}

static void store_value(struct tilewise *s, unsigned i, uint32_t t) {
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct ct_vk_lane *out = &s->out[o][keep];
      if (s->k->out[o].value != s->plan.store[i] || !ct_vk_lane_is(out)) continue;
      ct_vk_vs_more(&s->v, out->keep, s->k->out[o].mat.narrow, s->run.stored[i], result(s, out, t),
                    s->run.more);
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

/* ---- What is loaded by a command each ---- */

static void load_input(struct tilewise *s, unsigned v, uint32_t group, uint32_t tiles) {
  struct ct_lower *l = s->v.l;
  const struct ct_vk_lane *in = &s->in[v];
  const struct ct_ref to = ct_behind(s->in_slot, s->most * in->at);
  const uint32_t plane = s->k->in[v].spread == CT_SPREAD_COLS ? 0 : s->plane;
  const uint32_t unit = group / CT_GROUPS_TILES, units = tiles / CT_GROUPS_TILES;
  if (in->groups)
    ct_vk_ld_groups(&s->v, ct_tiles_of(l, in->groups, plane, 1, unit, units), to, units,
                    s->k->in[v].mat.free);
  else
    ct_vk_ld_part(&s->v, in->keep, ct_tiles_of(l, in->tensor, plane, 1, group, tiles), to, tiles,
                  s->run.rows);
}

static void load_inputs(struct tilewise *s, uint32_t group, uint32_t tiles, bool groups) {
  for (unsigned i = 0; i < s->plan.loads; ++i)
    if ((s->in[s->plan.load[i]].groups != 0) == groups)
      load_input(s, s->plan.load[i], group, tiles);
}

/* Groups behind others: LD changes between them once. */
static void load(struct tilewise *s, uint32_t group, uint32_t tiles) {
  if (s->plan.loads == 0) return;
  s->in_slot = ct_next(s->v.l, s->in_ring);
  load_inputs(s, group, tiles, false);
  load_inputs(s, group, tiles, true);
}

/* ---- A chunk ---- */

static void store_chunk(struct tilewise *s, uint32_t group) {
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct ct_vk_lane *out = &s->out[o][keep];
      if (out->tensor == 0) continue;
      ct_vk_st(&s->v, out->keep, ct_tiles_of(s->v.l, out->tensor, s->plane, 1, group, s->tiles),
               result(s, out, 0), s->tiles);
    }
}

static void store_groups(struct tilewise *s, uint32_t group) {
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct ct_vk_lane *out = &s->out[o][keep];
      if (out->groups == 0) continue;
      ct_vk_st_groups(&s->v, ct_tile_of(s->v.l, out->groups, s->plane, group / CT_GROUPS_TILES),
                      ct_behind(s->out_slot, CT_GROUPS_TILES * out->at), 1,
                      s->k->out[o].mat.bound_reg);
    }
}

/* A chunk, or those of an index unit that is stored. */
static void pass_of(void *kernel, uint32_t pass) {
  struct tilewise *s = kernel;
  const uint32_t all = s->packs ? CT_GROUPS_TILES : s->tiles, group = s->at_group + pass * all;
  s->out_slot = ct_next(s->v.l, s->out_ring);
  for (s->done = 0; s->done < all; s->done += s->tiles) {
    s->loaded = s->groups ? pass * all + s->done : 0;
    if (!s->groups) load(s, group + s->done, s->tiles);
    ct_repeat(s->v.l, s->tiles / (s->run.more + 1), some_tiles, s);
    store_chunk(s, group + s->done);
  }
  if (s->packs) store_groups(s, group);
}

static void passes(struct tilewise *s, uint32_t group, uint32_t tiles) {
  s->at_group = group;
  ct_repeat(s->v.l, tiles / (s->packs ? CT_GROUPS_TILES : s->tiles), pass_of, s);
}

/* ---- A plane ---- */

static void load_rows(struct tilewise *s) {
  struct ct_lower *l = s->v.l;
  if (s->plan.row_loads == 0) return;
  s->row_slot = ct_next(l, s->row_ring);
  for (unsigned i = 0; i < s->plan.row_loads; ++i) {
    const unsigned v = s->plan.row_load[i];
    const uint32_t plane = s->k->in[v].spread == CT_SPREAD_ALL ? 0 : s->plane;
    ct_vk_ld_row(&s->v, s->in[v].keep, ct_tile_of(l, s->in[v].tensor, plane, 0),
                 ct_behind(s->row_slot, s->in[v].at));
  }
}

static void make_rows(struct tilewise *s) {
  struct ct_lower *l = s->v.l;
  for (unsigned i = 0; i < s->plan.row_loads; ++i) {
    const unsigned v = s->plan.row_load[i];
    s->run.value[v] = ct_next(l, s->run.regs->row_load);
    ct_vl(l, &(struct ct_vmove){.reg = s->run.value[v],
                                .spm = ct_behind(s->row_slot, s->in[v].at),
                                .mode = ct_vk_vl_mode(s->in[v].keep),
                                .rows = 1});
  }
  ct_tile_rows(l, &s->run);
}

static void plane(void *kernel, uint32_t p) {
  struct tilewise *s = kernel;
  s->plane = s->first_plane + p;
  load_rows(s);
  make_rows(s);
  passes(s, s->first_group, s->groups_left);
}

/* ---- Inputs that are groups ---- */

/* What is loaded for a stretch. */
struct loaded {
  struct ct_vk_stretch at;
  struct ct_ref in, rows;
};

static void load_stretch(struct tilewise *s, struct loaded *t) {
  s->plane = t->at.plane;
  if (t->at.first) load_rows(s);
  load(s, t->at.unit * CT_GROUPS_TILES, t->at.units * CT_GROUPS_TILES);
  t->rows = s->row_slot;
  t->in = s->in_slot;
}

static void stretches(struct tilewise *s, uint32_t planes) {
  const struct ct_vk_units of = {.first_plane = s->first_plane,
                                 .planes = planes,
                                 .first = s->first_group / CT_GROUPS_TILES,
                                 .units = s->groups_left / CT_GROUPS_TILES,
                                 .at_once = s->most / CT_GROUPS_TILES};
  struct loaded next = {0}, now;
  bool more = ct_vk_next_stretch(&of, &next.at);
  load_stretch(s, &next);
  while (more && !ct_lower_error(s->v.l)) {
    now = next;
    more = ct_vk_next_stretch(&of, &next.at);
    if (more) load_stretch(s, &next);
    s->plane = now.at.plane;
    s->row_slot = now.rows;
    s->in_slot = now.in;
    if (now.at.first) make_rows(s);
    passes(s, now.at.unit * CT_GROUPS_TILES, now.at.units * CT_GROUPS_TILES);
  }
}

/* ---- All ---- */

/* Groups of planes, in chunks of so many tiles. Pairs of registers begin with the first of a ring.
 */
static void some_groups(struct tilewise *s, uint32_t planes, uint32_t first, uint32_t groups,
                        uint32_t tiles) {
  s->first_group = first;
  s->groups_left = groups;
  s->run.more = s->pairs && tiles % 2 == 0 ? 1 : 0;
  s->run.regs = &s->regs[s->run.more];
  s->tiles = tiles;
  if (!groups || !planes) return;
  if (s->groups)
    stretches(s, planes);
  else
    ct_repeat(s->v.l, planes, plane, s);
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
  const struct ct_mat *m = &s->k->in[v].mat;
  struct ct_vk_lane *in = &s->in[v];
  in->keep = CT_KEEP_ROWS;
  if (m->groups.reg) {
    in->groups = ct_vk_groups_tensor(&s->v, m, false);
  } else {
    ct_vk_keep(m, &in->keep);
    in->tensor = ct_vk_tensor(&s->v, m, in->keep, false);
  }
  s->groups |= in->groups != 0;
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
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep)
      s->packs |= ct_vk_lane_out(&s->v, &s->k->out[o].mat, (enum ct_keep)keep, &s->out_words,
                                 &s->out[o][keep]);
}

/* Commands of a tile; what two sets of registers and two slots make of them, at most. */
static unsigned commands(const struct tilewise *s) {
  unsigned stores = 0;
  for (unsigned o = 0; o < s->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep)
      stores += ct_vk_lane_is(&s->out[o][keep]);
  return s->plan.commands + 2 * (s->plan.loads + stores) + 2;
}

static void take_registers(struct tilewise *s) {
  const bool roomy = commands(s) * 12 <= COMMANDS;
  ct_tile_take(s->v.l, &s->plan, CT_VK_FIRST_REG, 0, roomy ? 2 : 1, &s->regs[0]);
  const unsigned pairs = s->plan.temps + s->plan.row_loads + 4 * (s->plan.loads + 1);
  s->pairs = s->plan.chain && roomy && CT_VK_FIRST_REG + 1 + pairs <= CT_TILE_REGS;
  if (s->pairs) ct_tile_take(s->v.l, &s->plan, CT_VK_FIRST_REG, 1, 2, &s->regs[1]);
}

/* A chunk has so many tiles of inputs, or of inputs and outputs, in each slot. */
static void choose_chunk(struct tilewise *s, uint64_t groups, uint64_t left) {
  const uint32_t each = s->in_words + (s->packs ? 0 : s->out_words);
  const uint64_t own = s->packs ? (uint64_t)CT_GROUPS_TILES * s->out_words : 0; /* of a slot */
  s->slots = left >= 2 * (each + own) && commands(s) * 6 <= COMMANDS ? 2 : 1;
  uint64_t most = MOST_CHUNK;
  if (each) most = left > s->slots * own ? (left / s->slots - own) / each : 0;
  if (most > MOST_CHUNK) most = MOST_CHUNK;
  if (most > groups / 4) most = groups / 4;
  s->most = s->chunk = most < 2 ? 1 : (uint32_t)most & ~1u;
}

static void take_words(struct tilewise *s) {
  const uint64_t groups = (uint64_t)ct_tiles(s->k->rows) * (is_flat(s) ? ct_tiles(s->k->cols) : 1);
  if (s->row_words) s->row_ring = ct_spm_ring(s->v.l, "rows", s->row_words, s->groups ? 2 : 1);
  choose_chunk(s, groups, ct_vk_left(&s->v));
  if (s->groups) {
    s->most = CT_GROUPS_TILES * ct_groups_at_once((uint32_t)groups);
    s->slots = 2;
  }
  if (s->in_words) s->in_ring = ct_spm_ring(s->v.l, "in", s->most * s->in_words, s->slots);
  s->out_ring = ct_spm_ring(s->v.l, "out", unit_of(s) * s->out_words, s->slots);
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
