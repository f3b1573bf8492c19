/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made again of compressed groups while a product is under way. The array works, and the
 * vector unit and the memory have little to do: so the tiles that a block's epilogue reads are made
 * right in front of it, go to device memory for those who read them later, and are read where they
 * are. Groups come an index unit at a time.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_conv.h"

enum { SLOTS = 2, UNIT_WORDS = CT_GROUPS_TILES * CT_TILE };

/* Nothing is computed: what is in the groups. */
static bool is_plain(const struct ct_conv_made *m) {
  return m->what->k.ops == 0;
}

/* ---- Places -------------------------------------------------------------------------------- */

static int no_way(const struct ct_conv_made *m, const char *what) {
  return ct_why(m->v->why, CT_ERR_NO_SPACE, "%s: what is made on the way %s", m->v->name, what);
}

static int place_in(struct ct_conv_made *m, unsigned i, bool row) {
  const struct ct_mat *mat = &m->what->k.in[i].mat;
  struct ct_vk_lane *in = &m->in[i];
  in->keep = CT_KEEP_ROWS;
  if (!row) {
    if (!mat->groups.reg) return no_way(m, "reads more than groups");
    in->groups = ct_vk_groups_tensor(m->v, mat, false);
    in->at = m->words;
    m->words += UNIT_WORDS;
    return CT_OK;
  }
  ct_vk_keep(mat, &in->keep);
  in->tensor = ct_vk_tensor(m->v, mat, in->keep, false);
  in->at = m->row_words;
  m->row_words += ct_vk_row_words(in->keep);
  return CT_OK;
}

static int place_out(struct ct_conv_made *m) {
  const struct ct_mat *mat = &m->what->k.out[0].mat;
  ct_vk_keep(mat, &m->keep);
  for (unsigned keep = 0; keep < CT_KEEPS; ++keep)
    if (mat->keep[keep].reg && (keep != m->keep || keep == CT_KEEP_F32))
      return no_way(m, "is kept in other ways than one of HBFP8");
  if (m->what->stored) m->tensor = ct_vk_tensor(m->v, mat, m->keep, true);
  return CT_OK;
}

static int check(const struct ct_conv_made *m, uint32_t rows, uint32_t cols) {
  const struct ct_tilewise *k = &m->what->k;
  int err = k->outs == 1 ? CT_OK : no_way(m, "has several results");
  for (unsigned i = 0; i < k->ins && !err; ++i) {
    const bool row = k->in[i].spread == CT_SPREAD_ROWS, all = k->in[i].spread == CT_SPREAD_ALL;
    if (k->in[i].spread == CT_SPREAD_COLS) err = no_way(m, "reads a column");
    if (!err)
      err = ct_vk_check(m->v, &k->in[i].mat, "an input of what is made on the way",
                        row || all ? 1 : rows, all ? 1 : cols);
  }
  return err ? err : ct_vk_check(m->v, &k->out[0].mat, "what is made on the way", rows, cols);
}

int ct_conv_made_start(struct ct_conv_made *m, struct ct_vk *v, const struct ct_made *what,
                       uint32_t rows, uint32_t cols) {
  *m = (struct ct_conv_made){.v = v, .what = what};
  if (!what) return CT_OK;
  int err = ct_tile_plan(&m->plan, &what->k, false, v->room->args, v->why);
  if (!err) err = check(m, rows, cols);
  for (unsigned i = 0; i < m->plan.loads && !err; ++i)
    err = place_in(m, m->plan.load[i], false);
  for (unsigned i = 0; i < m->plan.row_loads && !err; ++i)
    err = place_in(m, m->plan.row_load[i], true);
  return err ? err : place_out(m);
}

uint32_t ct_conv_made_words(const struct ct_conv_made *m) {
  if (!m->what) return 0;
  return CT_CONV_AHEAD * m->words + SLOTS * (m->row_words + (is_plain(m) ? 0 : UNIT_WORDS));
}

unsigned ct_conv_made_regs(const struct ct_conv_made *m) {
  if (!m->what || is_plain(m)) return 0;
  const unsigned tiles = m->plan.chain ? 2 : 1;
  return m->plan.temps + (m->plan.temps == 0) + m->plan.row_loads +
         tiles * (m->plan.loads + m->plan.stores);
}

void ct_conv_made_rings(struct ct_conv_made *m, unsigned first, bool even, bool ahead) {
  struct ct_lower *l = m->v->l;
  if (!m->what) return;
  m->in_ring = ct_spm_ring(l, "groups", m->words, ahead ? CT_CONV_AHEAD : SLOTS);
  if (m->row_words) m->row_ring = ct_spm_ring(l, "rows for what is made", m->row_words, SLOTS);
  /* Stores go behind what VL reads, and know that it is through. */
  if (is_plain(m) && m->tensor) ct_ring_freed_by(l, m->in_ring, CT_Q_ST);
  if (is_plain(m)) return;
  m->out_ring = ct_spm_ring(l, "made again", UNIT_WORDS, SLOTS);
  if (m->tensor) ct_ring_freed_by(l, m->out_ring, CT_Q_ST);
  m->run = (struct ct_tile_run){.k = &m->what->k,
                                .plan = &m->plan,
                                .regs = &m->regs,
                                .rows = CT_TILE,
                                .more = m->plan.chain && even ? 1 : 0};
  ct_tile_take(l, &m->plan, first, m->run.more, SLOTS, &m->regs);
}

/* ---- Commands ------------------------------------------------------------------------------ */

static void load_rows(struct ct_conv_made *m, uint32_t plane) {
  struct ct_lower *l = m->v->l;
  if (m->row_words == 0) return;
  m->row_slot = ct_next(l, m->row_ring);
  for (unsigned i = 0; i < m->plan.row_loads; ++i) {
    const unsigned v = m->plan.row_load[i];
    const uint32_t p = m->what->k.in[v].spread == CT_SPREAD_ALL ? 0 : plane;
    ct_vk_ld_row(m->v, m->in[v].keep, ct_tile_of(l, m->in[v].tensor, p, 0),
                 ct_behind(m->row_slot, m->in[v].at));
  }
}

static void make_rows(struct ct_conv_made *m, uint32_t plane) {
  struct ct_lower *l = m->v->l;
  m->run.cols = ct_in_tile(m->what->k.cols, plane);
  for (unsigned i = 0; i < m->plan.row_loads; ++i) {
    const unsigned v = m->plan.row_load[i];
    m->run.value[v] = ct_next(l, m->regs.row_load);
    ct_vl(l, &(struct ct_vmove){.reg = m->run.value[v],
                                .spm = ct_behind(m->row_slot, m->in[v].at),
                                .mode = ct_vk_vl_mode(m->in[v].keep),
                                .rows = 1});
  }
  ct_tile_rows(l, &m->run);
}

struct ct_conv_unit ct_conv_made_load(struct ct_conv_made *m, uint32_t plane, uint32_t group,
                                      bool first) {
  struct ct_lower *l = m->v->l;
  if (first && !is_plain(m)) load_rows(m, plane);
  const struct ct_conv_unit unit = {
      .plane = plane, .first = first, .groups = ct_next(l, m->in_ring), .rows = m->row_slot};
  for (unsigned i = 0; i < m->plan.loads; ++i) {
    const unsigned v = m->plan.load[i];
    ct_vk_ld_groups(m->v, ct_tile_of(l, m->in[v].groups, plane, group / CT_GROUPS_TILES),
                    ct_behind(unit.groups, m->in[v].at), 1, m->what->k.in[v].mat.free);
  }
  return unit;
}

void ct_conv_made_unit(struct ct_conv_made *m, const struct ct_conv_unit *unit) {
  m->in_slot = unit->groups;
  m->row_slot = unit->rows;
  if (unit->first && !is_plain(m)) make_rows(m, unit->plane);
  m->out_slot = is_plain(m) ? m->in_slot : ct_next(m->v->l, m->out_ring);
}

struct ct_ref ct_conv_made_at(const struct ct_conv_made *m, uint32_t part, uint32_t tile) {
  const struct ct_ref slot = is_plain(m) ? m->out_slot : ct_part(m->out_slot, part, 0);
  return ct_behind(slot, tile * CT_TILE);
}

/* Tiles from one on, as many as a run does. */
static void make_tiles(struct ct_conv_made *m, uint32_t part, uint32_t tile) {
  struct ct_lower *l = m->v->l;
  for (unsigned i = 0; i < m->plan.loads; ++i) {
    const unsigned v = m->plan.load[i];
    m->run.value[v] = ct_next_n(l, m->regs.load, m->run.more + 1);
    for (uint32_t t = 0; t <= m->run.more; ++t)
      ct_vl(l, &(struct ct_vmove){.reg = ct_nth(m->run.value[v], t),
                                  .spm = ct_behind(m->in_slot, m->in[v].at + (tile + t) * CT_TILE),
                                  .mode = CT_VL_HBFP8,
                                  .rows = CT_TILE});
  }
  ct_tile_emit(l, &m->run);
  ct_vk_vs_more(m->v, m->keep, m->what->k.out[0].mat.narrow, m->run.stored[0],
                ct_conv_made_at(m, part, tile), m->run.more);
}

void ct_conv_made_tiles(struct ct_conv_made *m, uint32_t tile, uint32_t tiles) {
  if (!m->what || is_plain(m)) return;
  for (uint32_t t = 0; t < tiles; t += m->run.more + 1)
    make_tiles(m, tile / tiles, tile + t);
}

void ct_conv_made_store(struct ct_conv_made *m, struct ct_ref to, uint32_t tile, uint32_t tiles) {
  ct_vk_st(m->v, m->keep, to, ct_conv_made_at(m, tile / tiles, tile), tiles);
}

bool ct_conv_made_is(const struct ct_conv_made *m, const struct ct_mat *mat) {
  if (!m->what) return false;
  const struct ct_seat made = m->what->k.out[0].mat.keep[m->keep], read = mat->keep[m->keep];
  return read.reg && read.reg == made.reg && read.at == made.at;
}
