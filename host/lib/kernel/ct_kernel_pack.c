/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records to groups of compressed tiles, and back. LD brings tiles, ST takes them away again: one
 * of the two does the work. A pass is an index unit.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"

enum { GROUP = 4, GROUPS = 4, STEP = GROUP * GROUPS, SLOTS = 4, STEP_WORDS = STEP * CT_TILE };

struct pack {
  struct ct_vk v;
  const struct ct_pack *k;
  enum ct_keep keep;
  uint32_t tiles;      /* of the matrix */
  uint32_t mat, index; /* tensors */
  uint32_t words;      /* a ring in the scratchpad */
};

static uint32_t tiles_of(uint32_t rows, uint32_t cols) {
  return ct_tiles(rows) * ct_tiles(cols);
}

uint32_t ct_pack_units(uint32_t rows, uint32_t cols) {
  const uint32_t rest = tiles_of(rows, cols) % STEP;
  return tiles_of(rows, cols) / STEP + (rest >= GROUP) + (rest % GROUP != 0);
}

/* So many groups of so many tiles each, which have an index unit of their own. */
static void move(struct pack *p, uint32_t unit, uint32_t tile, uint32_t groups, uint32_t tiles) {
  struct ct_lower *l = p->v.l;
  const struct ct_ref slot = ct_next(l, p->words);
  const struct ct_dma raw = {.dram = ct_tiles_of(l, p->mat, 0, 1, tile, groups * tiles),
                             .spm = slot,
                             .hdr = true,
                             .nb = CT_TILE,
                             .n1 = groups * tiles,
                             .d1 = CT_RECORD_UNITS,
                             .s1 = CT_TILE};
  const struct ct_dma comp = {
      .dram = ct_tile_of(l, p->index, 0, unit),
      .spm = slot,
      .nb = tiles * CT_TILE,
      .n1 = groups,
      .s1 = (int32_t)(tiles * CT_TILE),
      .comp = {
          .on = true, .free = p->k->back && p->k->free, .n1_reg = p->k->back ? 0 : p->k->n1_reg}};
  ct_ld(l, p->k->back ? &comp : &raw);
  ct_st(l, p->k->back ? &raw : &comp);
}

static void step(void *kernel, uint32_t i) {
  move(kernel, i, i * STEP, GROUPS, GROUP);
}

static void all(struct pack *p) {
  const uint32_t steps = p->tiles / STEP, rest = p->tiles % STEP, groups = rest / GROUP;
  ct_repeat(p->v.l, steps, step, p);
  if (groups) move(p, steps, steps * STEP, groups, GROUP);
  if (rest % GROUP) move(p, steps + (groups > 0), p->tiles - rest % GROUP, 1, rest % GROUP);
}

static int check(struct pack *p) {
  const struct ct_pack *k = p->k;
  const int err = ct_vk_check(&p->v, &k->mat, "the matrix", k->mat.rows, k->mat.cols);
  if (err) return err;
  ct_vk_keep(&k->mat, &p->keep);
  if (p->keep == CT_KEEP_F32)
    return ct_why(p->v.why, CT_ERR_ARG, "%s: FP32 has no groups", p->v.name);
  if (k->index.reg == 0 || k->index.reg > p->v.room->args || k->n1_reg > p->v.room->args)
    return ct_why(p->v.why, CT_ERR_ARG, "%s: an argument that is not there", p->v.name);
  return CT_OK;
}

int ct_kernel_pack(const struct ct_pack *k, const struct ct_room *room, struct ct_codes *codes,
                   const struct ct_why *why) {
  struct pack p = {.k = k, .tiles = tiles_of(k->mat.rows, k->mat.cols)};
  const uint32_t units = ct_pack_units(k->mat.rows, k->mat.cols);
  *codes = (struct ct_codes){NULL, 0};
  int err = ct_vk_start(&p.v, k->back ? "unpacking tiles" : "packing tiles", room, why);
  if (err) return err;
  err = check(&p);
  if (err) {
    ct_lower_drop(p.v.l);
    return err;
  }
  const struct ct_seat at = k->mat.keep[p.keep];
  p.mat = ct_dram_tensor(p.v.l, "records", at.reg, at.at, ct_grid(1, p.tiles, CT_RECORD_UNITS));
  p.index = ct_vk_units_tensor(&p.v, k->index, units, !k->back);
  ct_vk_carriers(&p.v, CT_VK_FIRST_REG);
  const uint64_t fit = ct_vk_left(&p.v) / STEP_WORDS;
  p.words =
      ct_spm_ring(p.v.l, "tiles", STEP_WORDS, fit == 0 ? 1 : ct_min_u32((uint32_t)fit, SLOTS));
  all(&p);
  return ct_vk_end(&p.v, codes);
}
