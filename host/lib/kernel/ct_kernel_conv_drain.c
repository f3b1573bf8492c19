/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a product: blocks of row tiles of a plane go through the tile program behind it.
 * Its inputs come, and its outputs leave, a block by a command.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

/* Rows of the next plane are on their way while this one's are in use: loads behind them do not
 * wait. */
enum { ROW_SLOTS = 2 };

/* ---- Places ---- */

static int check(const struct ct_conv_drain *d, uint32_t rows, uint32_t cols) {
  const struct ct_tilewise *k = d->k;
  int err = CT_OK;
  for (unsigned i = 1; i < k->ins && !err; ++i) {
    const enum ct_spread s = k->in[i].spread;
    const bool row = s == CT_SPREAD_ROWS || s == CT_SPREAD_ALL;
    const bool col = s == CT_SPREAD_COLS || s == CT_SPREAD_ALL;
    err = ct_vk_check(d->v, &k->in[i].mat, "an input behind the product", row ? 1 : rows,
                      col ? 1 : cols);
  }
  for (unsigned o = 0; o < k->outs && !err; ++o)
    err = ct_vk_check(d->v, &k->out[o].mat, "an output", rows, cols);
  return err;
}

static void place_in(struct ct_conv_drain *d, unsigned i, bool row) {
  struct ct_vk_lane *in = &d->in[i];
  uint32_t *words = row ? &d->row_words : &d->in_words;
  if (i == 0) return; /* the band */
  ct_vk_keep(&d->k->in[i].mat, &in->keep);
  if (!row && ct_conv_made_is(&d->made, &d->k->in[i].mat)) {
    in->keep = d->made.keep;
    return;
  }
  in->tensor = ct_vk_tensor(d->v, &d->k->in[i].mat, in->keep, false);
  in->at = *words;
  *words += row ? ct_vk_row_words(in->keep) : ct_vk_words(in->keep);
}

int ct_conv_drain_start(struct ct_conv_drain *d, struct ct_vk *v, const struct ct_tilewise *k,
                        const struct ct_made *made, uint32_t rows, uint32_t cols, bool product) {
  *d = (struct ct_conv_drain){.first = d->first, .v = v, .own = *k, .k = k};
  if (!product) {
    d->own.in[0] = (struct ct_tile_in){.spread = CT_SPREAD_NONE};
    d->k = &d->own;
  }
  int err = ct_tile_plan(&d->plan, d->k, product, ct_room_numbers(v->room), v->why);
  if (!err) err = check(d, rows, cols);
  if (!err) err = ct_conv_made_start(&d->made, v, made, rows, cols);
  if (err) return err;
  d->groups = made;
  for (unsigned i = 0; i < d->plan.loads; ++i)
    place_in(d, d->plan.load[i], false);
  for (unsigned i = 0; i < d->plan.row_loads; ++i)
    place_in(d, d->plan.row_load[i], true);
  for (unsigned o = 0; o < k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep)
      d->groups |=
          ct_vk_lane_out(v, &k->out[o].mat, (enum ct_keep)keep, &d->out_words, &d->out[o][keep]);
  return CT_OK;
}

uint32_t ct_conv_drain_unit(const struct ct_conv_drain *d, uint32_t tiles) {
  return d->groups ? CT_GROUPS_TILES : tiles;
}

/* Tiles of a slot of inputs. */
static uint32_t ins_of(const struct ct_conv_drain *d, uint32_t tiles) {
  return d->made.what ? CT_GROUPS_TILES : tiles;
}

uint32_t ct_conv_drain_words(const struct ct_conv_drain *d, uint32_t tiles, uint32_t slots) {
  const uint32_t in = d->in_words * ins_of(d, tiles) * (d->made.what ? CT_CONV_AHEAD : slots);
  return in + d->out_words * ct_conv_drain_unit(d, tiles) * slots + d->row_words * ROW_SLOTS +
         ct_conv_made_words(&d->made);
}

/* Whether there are registers for all tiles of a block at once. */
static bool together(const struct ct_conv_drain *d, uint32_t tiles, uint32_t rest) {
  const unsigned temps = d->plan.temps ? d->plan.temps : 1;
  return d->plan.chain && d->plan.loads == 0 &&
         d->first + temps + d->plan.row_loads + tiles + rest <= CT_TILE;
}

void ct_conv_drain_rings(struct ct_conv_drain *d, uint32_t tiles, uint32_t rest, uint32_t slots) {
  struct ct_lower *l = d->v->l;
  unsigned first = d->first;
  d->tiles = tiles;
  d->run = (struct ct_tile_run){.k = d->k, .plan = &d->plan};
  d->together = together(d, tiles, rest);
  const uint32_t own =
      d->together && rest ? ct_reg_ring(l, "results that are left over", first, rest) : 0;
  if (own) first += rest;
  const unsigned made = ct_conv_made_regs(&d->made);
  const unsigned twice = 2 * (d->plan.loads + d->plan.stores) + d->plan.temps + d->plan.row_loads;
  const unsigned sets = made && first + twice + 1 + made > CT_TILE ? 1 : slots;
  ct_tile_take(l, &d->plan, first, d->together ? tiles - 1 : 0, sets, &d->regs);
  const unsigned rows = 2 * d->plan.row_loads; /* a plane's, while those of the last are in use */
  if (rows && !ct_lower_error(l) && d->regs.end + rows + made < CT_TILE) {
    d->regs.row_load = ct_reg_ring(l, "rows", d->regs.end, rows);
    d->regs.end += rows;
  }
  ct_conv_made_rings(&d->made, d->regs.end, tiles % 2 == 0, d->ahead);
  d->rest_regs = d->regs;
  if (own) d->rest_regs.out = own;
  if (d->row_words) d->row_ring = ct_spm_ring(l, "rows", d->row_words, ROW_SLOTS);
  d->ins = ins_of(d, tiles);
  if (d->in_words)
    d->in_ring = ct_spm_ring(l, "in", d->in_words * d->ins, d->ahead ? CT_CONV_AHEAD : slots);
  d->out_ring = ct_spm_ring(l, "out", d->out_words * ct_conv_drain_unit(d, tiles), slots);
}

/* ---- A plane ---- */

void ct_conv_drain_plane(struct ct_conv_drain *d, uint32_t plane) {
  struct ct_lower *l = d->v->l;
  d->run.regs = &d->regs;
  d->run.cols = ct_in_tile(d->k->cols, plane);
  if (d->plan.row_loads) {
    const struct ct_ref slot = ct_next(l, d->row_ring);
    for (unsigned i = 0; i < d->plan.row_loads; ++i) {
      const unsigned v = d->plan.row_load[i];
      const uint32_t p = d->k->in[v].spread == CT_SPREAD_ALL ? 0 : plane;
      ct_vk_ld_row(d->v, d->in[v].keep, ct_tile_of(l, d->in[v].tensor, p, 0),
                   ct_behind(slot, d->in[v].at));
    }
    for (unsigned i = 0; i < d->plan.row_loads; ++i) {
      const unsigned v = d->plan.row_load[i];
      d->run.value[v] = ct_next(l, d->regs.row_load);
      ct_vl(l, &(struct ct_vmove){.reg = d->run.value[v],
                                  .spm = ct_behind(slot, d->in[v].at),
                                  .mode = ct_vk_vl_mode(d->in[v].keep),
                                  .rows = 1});
    }
  }
  ct_tile_rows(l, &d->run);
  d->begins = true;
}

/* ---- A block ---- */

struct block {
  struct ct_ref acc;
  uint32_t plane, group, tiles;
};

/* An input that has no place of its own, and is not the band: it is made on the way. */
static bool is_made(const struct ct_conv_drain *d, unsigned v) {
  return v != 0 && d->in[v].tensor == 0;
}

/* Tile t of a block, in the slot of results. */
static struct ct_ref result(const struct ct_conv_drain *d, const struct ct_vk_lane *out,
                            uint32_t t) {
  const uint32_t at = ct_conv_drain_unit(d, d->tiles) * out->at;
  const struct ct_ref slot = d->groups ? ct_part(d->out_slot, d->done / d->tiles, 0) : d->out_slot;
  return ct_behind(slot, at + (d->done + t) * ct_vk_words(out->keep));
}

/* Tiles of a plane from one on: of a block, or of an index unit. */
static struct ct_ref load_inputs(struct ct_conv_drain *d, uint32_t plane, uint32_t group,
                                 uint32_t tiles) {
  struct ct_lower *l = d->v->l;
  struct ct_ref slot = {.space = 0};
  if (d->in_words == 0) return slot;
  slot = ct_next(l, d->in_ring);
  for (unsigned i = 0; i < d->plan.loads; ++i) {
    const unsigned v = d->plan.load[i];
    if (v == 0 || is_made(d, v)) continue;
    const uint32_t p = d->k->in[v].spread == CT_SPREAD_COLS ? 0 : plane;
    ct_vk_ld(d->v, d->in[v].keep, ct_tiles_of(l, d->in[v].tensor, p, 1, group, tiles),
             ct_behind(slot, d->ins * d->in[v].at), tiles);
  }
  return slot;
}

static void load_tile(struct ct_conv_drain *d, const struct block *b, uint32_t t) {
  struct ct_lower *l = d->v->l;
  for (unsigned i = 0; i < d->plan.loads; ++i) {
    const unsigned v = d->plan.load[i];
    const struct ct_vk_lane *in = &d->in[v];
    const uint32_t tile = (d->made.what ? d->done : 0) + t;
    const uint32_t at = d->ins * in->at + tile * ct_vk_words(in->keep);
    const struct ct_ref from =
        is_made(d, v) ? ct_conv_made_at(&d->made, d->done / d->tiles, d->done + t)
                      : ct_behind(v ? d->in_slot : b->acc, v ? at : t * CT_F32_TILE_UNITS);
    d->run.value[v] = ct_next(l, d->regs.load);
    ct_vl(l, &(struct ct_vmove){.reg = d->run.value[v],
                                .spm = from,
                                .mode = ct_vk_vl_mode(in->keep),
                                .rows = v ? CT_TILE : d->run.rows});
  }
}

static void store_value(struct ct_conv_drain *d, unsigned i, uint32_t t, uint32_t tiles) {
  static const unsigned mode[CT_KEEPS] = {CT_VS_F32, CT_VS_ROWS, CT_VS_SQUARE};
  for (unsigned o = 0; o < d->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct ct_vk_lane *out = &d->out[o][keep];
      const uint32_t words = ct_vk_words(out->keep);
      if (d->k->out[o].value != d->plan.store[i] || !ct_vk_lane_is(out)) continue;
      ct_vs(d->v->l, &(struct ct_vmove){.reg = d->run.stored[i],
                                        .spm = result(d, out, t),
                                        .mode = mode[keep],
                                        .rows = CT_TILE,
                                        .narrow = d->k->out[o].mat.narrow,
                                        .more = tiles - 1,
                                        .tile_stride = tiles > 1 ? words : 0});
    }
}

/* Tiles [t, t + tiles) of a block, the last of them with so many rows. */
static void some_tiles(struct ct_conv_drain *d, const struct block *b, uint32_t t, uint32_t tiles,
                       uint32_t rows) {
  d->run.rows = rows;
  d->run.more = tiles - 1;
  if (d->plan.product) {
    d->run.value[0] = ct_nth(b->acc, t);
    d->run.value[0].gens = tiles;
  }
  load_tile(d, b, t);
  ct_tile_emit(d->v->l, &d->run);
  for (unsigned i = 0; i < d->plan.stores; ++i)
    store_value(d, i, t, tiles);
}

static void store_block(struct ct_conv_drain *d, const struct block *b) {
  for (unsigned o = 0; o < d->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct ct_vk_lane *out = &d->out[o][keep];
      if (out->tensor == 0) continue;
      ct_vk_st(d->v, out->keep, ct_tiles_of(d->v->l, out->tensor, b->plane, 1, b->group, b->tiles),
               result(d, out, 0), b->tiles);
    }
}

/* The last block of an index unit. */
static void store_groups(struct ct_conv_drain *d, const struct block *b) {
  for (unsigned o = 0; o < d->k->outs; ++o)
    for (unsigned keep = 0; keep < CT_KEEPS; ++keep) {
      const struct ct_vk_lane *out = &d->out[o][keep];
      if (out->groups == 0) continue;
      ct_vk_st_groups(d->v, ct_tile_of(d->v->l, out->groups, b->plane, b->group / CT_GROUPS_TILES),
                      ct_behind(d->out_slot, CT_GROUPS_TILES * out->at), 1,
                      d->k->out[o].mat.bound_reg);
    }
}

struct ct_conv_unit ct_conv_drain_load(struct ct_conv_drain *d, uint32_t plane, uint32_t group,
                                       bool first) {
  const struct ct_ref in = load_inputs(d, plane, group, CT_GROUPS_TILES);
  struct ct_conv_unit unit = ct_conv_made_load(&d->made, plane, group, first);
  unit.in = in;
  return unit;
}

/* What its blocks read, and groups for what is made on the way. */
static void begin_unit(struct ct_conv_drain *d, uint32_t plane, uint32_t group) {
  struct ct_conv_unit own;
  if (!d->unit) own = ct_conv_drain_load(d, plane, group, d->begins);
  ct_conv_made_unit(&d->made, d->unit ? d->unit : &own);
  d->in_slot = d->unit ? d->unit->in : own.in;
  d->begins = false;
}

void ct_conv_drain_block(struct ct_conv_drain *d, struct ct_ref acc, uint32_t plane, uint32_t group,
                         uint32_t rows) {
  struct block b = {.acc = acc, .plane = plane, .group = group, .tiles = ct_tiles(rows)};
  const uint32_t whole = rows / CT_TILE, step = d->together && whole ? whole : 1;
  d->run.regs = b.tiles == d->tiles ? &d->regs : &d->rest_regs;
  if (!d->made.what)
    d->in_slot = load_inputs(d, plane, group, b.tiles);
  else if (d->done == 0)
    begin_unit(d, plane, group);
  if (d->done == 0) d->out_slot = ct_next(d->v->l, d->out_ring);
  ct_conv_made_tiles(&d->made, d->done, b.tiles);
  for (uint32_t t = 0; t < whole; t += step)
    some_tiles(d, &b, t, step, CT_TILE);
  if (rows % CT_TILE) some_tiles(d, &b, whole, 1, rows % CT_TILE);
  store_block(d, &b);
  if (d->made.tensor)
    ct_conv_made_store(&d->made, ct_tiles_of(d->v->l, d->made.tensor, plane, 1, group, b.tiles),
                       d->done, b.tiles);
  d->done = d->groups ? (d->done + b.tiles) % CT_GROUPS_TILES : 0;
  if (d->groups && d->done == 0) store_groups(d, &b);
}
