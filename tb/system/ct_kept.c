/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_kept.h"

#include <stdlib.h>

#include "coltrain/coltrain.h"
#include "host/lib/lower/ct_lower.h"

enum { GROUP = 4, SLOTS = 2, ACC = CT_KEPT_TILES, REGS = 4, VA_REG = 13, VL_REG, VS_REG };

struct kept {
  struct ct_lower *l;
  uint32_t x, y, x_back, y_back, w, slots; /* in the scratchpad */
  uint32_t x_mem, w_mem, index, out_mem, back_mem, acc, regs, gates;
};

static struct kept declare(struct ct_lower *l) {
  const struct ct_grid words = ct_grid(CT_KEPT_ROWS, CT_KEPT_COLS, CT_TILE);
  const uint32_t results = CT_KEPT_TILES * CT_F32_TILE_UNITS;
  struct kept k = {.l = l};
  k.x = ct_spm_tensor(l, "x", words);
  k.y = ct_spm_tensor(l, "y", words);
  k.x_back = ct_spm_tensor(l, "x again", words);
  k.y_back = ct_spm_tensor(l, "y again", words);
  k.w = ct_spm_tensor(l, "weights", ct_grid(CT_KEPT_COLS, CT_KEPT_COLS, CT_TILE));
  k.slots = ct_spm_ring(l, "results", CT_F32_TILE_UNITS, SLOTS);
  k.x_mem = ct_dram_tensor(l, "x", CT_KEPT_X, 0, ct_grid(1, CT_KEPT_TILES, CT_RECORD_UNITS));
  k.w_mem =
      ct_dram_tensor(l, "weights", CT_KEPT_W, 0, ct_grid(1, CT_KEPT_WEIGHTS, CT_RECORD_UNITS));
  k.index = ct_dram_tensor(l, "index", CT_KEPT_INDEX, 0, ct_grid(1, 2, 1));
  k.out_mem =
      ct_dram_tensor(l, "results", CT_KEPT_OUT, 0, ct_grid(1, CT_KEPT_TILES, CT_F32_TILE_UNITS));
  k.back_mem = ct_dram_tensor(l, "x as it came back", CT_KEPT_OUT, results,
                              ct_grid(1, CT_KEPT_TILES, CT_RECORD_UNITS));
  k.acc = ct_acc_ring(l, "products", 0, ACC);
  k.regs = ct_reg_ring(l, "registers", 0, REGS);
  k.gates = ct_reg_ring(l, "gates", REGS, REGS);
  ct_lower_carriers(l, &(struct ct_carriers){.va_reg = VA_REG,
                                             .vl_reg = VL_REG,
                                             .vs_reg = VS_REG,
                                             .acc = ACC,
                                             .spm = ct_spm_take(l, CT_CARRIER_WORDS),
                                             .calm = k.w,
                                             .load = k.w_mem});
  return k;
}

static struct ct_dma records(const struct kept *k, uint32_t mem, uint32_t words, uint32_t tiles) {
  return (struct ct_dma){.dram = ct_all_of(k->l, mem),
                         .spm = ct_all_of(k->l, words),
                         .hdr = true,
                         .nb = CT_TILE,
                         .n1 = tiles,
                         .d1 = CT_RECORD_UNITS,
                         .s1 = CT_TILE};
}

static struct ct_dma groups(const struct kept *k, uint32_t unit, uint32_t words,
                            struct ct_comp comp) {
  return (struct ct_dma){.dram = ct_tile_of(k->l, k->index, 0, unit),
                         .spm = ct_all_of(k->l, words),
                         .nb = GROUP * CT_TILE,
                         .n1 = CT_KEPT_TILES / GROUP,
                         .s1 = GROUP * CT_TILE,
                         .comp = comp};
}

static void load_weights(const struct kept *k) {
  const struct ct_dma w = records(k, k->w_mem, k->w, CT_KEPT_WEIGHTS);
  ct_ld(k->l, &w);
}

/* a * w^T in tiles of ACC, column by column. */
static struct ct_ref product(const struct kept *k, uint32_t a) {
  const struct ct_ref acc = ct_next_n(k->l, k->acc, ACC);
  ct_mm(k->l, &(struct ct_mm){.a = ct_all_of(k->l, a),
                              .b = ct_all_of(k->l, k->w),
                              .acc = acc,
                              .am = CT_KEPT_COLS * CT_TILE,
                              .ak = CT_TILE,
                              .bn = CT_KEPT_COLS * CT_TILE,
                              .bk = CT_TILE,
                              .kt = CT_KEPT_COLS,
                              .nt = CT_KEPT_COLS,
                              .rows = CT_KEPT_ROWS * CT_TILE,
                              .acc_n = CT_KEPT_ROWS});
  return acc;
}

static struct ct_ref tile(const struct kept *k, uint32_t tensor, uint32_t i) {
  return ct_tile_of(k->l, tensor, i % CT_KEPT_ROWS, i / CT_KEPT_ROWS);
}

static void front(const struct kept *k) {
  const struct ct_dma x = records(k, k->x_mem, k->x, CT_KEPT_TILES);
  const struct ct_dma keep_x =
      groups(k, 0, k->x, (struct ct_comp){.on = true, .n1_reg = CT_KEPT_X_BOUND});
  const struct ct_dma keep_y =
      groups(k, 1, k->y, (struct ct_comp){.on = true, .n1_reg = CT_KEPT_Y_BOUND});
  ct_ld(k->l, &x);
  ct_st(k->l, &keep_x);
  const struct ct_ref acc = product(k, k->x);
  for (uint32_t i = 0; i < CT_KEPT_TILES; ++i) {
    const struct ct_ref r = ct_next(k->l, k->regs);
    ct_va(k->l, &(struct ct_va){.to = r, .a = ct_nth(acc, i), .relu = true});
    ct_vs(k->l, &(struct ct_vmove){
                    .spm = tile(k, k->y, i), .reg = r, .mode = CT_VS_ROWS, .rows = CT_TILE});
  }
  ct_st(k->l, &keep_y);
}

static void back(const struct kept *k) {
  const struct ct_comp comp = {.on = true, .free = true};
  const struct ct_dma y = groups(k, 1, k->y_back, comp), x = groups(k, 0, k->x_back, comp);
  const struct ct_dma x_records = records(k, k->back_mem, k->x_back, CT_KEPT_TILES);
  ct_ld(k->l, &y);
  ct_ld(k->l, &x);
  const struct ct_ref acc = product(k, k->y_back);
  for (uint32_t i = 0; i < CT_KEPT_TILES; ++i) {
    const struct ct_ref gate = ct_next(k->l, k->gates), r = ct_next(k->l, k->regs);
    const struct ct_ref slot = ct_next(k->l, k->slots);
    ct_vl(k->l,
          &(struct ct_vmove){
              .spm = tile(k, k->x_back, i), .reg = gate, .mode = CT_VL_HBFP8, .rows = CT_TILE});
    ct_va(k->l, &(struct ct_va){
                    .to = r, .a = ct_nth(acc, i), .q = gate, .c = CT_VA_TILE, .fn = CT_VA_SELECT});
    ct_vs(k->l, &(struct ct_vmove){.spm = slot, .reg = r, .mode = CT_VS_F32, .rows = CT_TILE});
    ct_st(k->l,
          &(struct ct_dma){
              .dram = ct_tile_of(k->l, k->out_mem, 0, i), .spm = slot, .nb = CT_F32_TILE_UNITS});
  }
  ct_st(k->l, &x_records);
}

int ct_kept_program(bool with_front, bool with_back, uint32_t spm_words, struct ct_code *code,
                    const struct ct_why *why) {
  struct ct_codes codes;
  struct ct_lower *l = ct_lower_start(CT_KEPT_ARGS, false);
  if (!l) return ct_why(why, CT_ERR_MEMORY, "no memory for a program");
  const struct kept k = declare(l);
  if (ct_spm_taken(l) > spm_words) {
    ct_lower_drop(l);
    return ct_why(why, CT_ERR_NO_SPACE, "%u words are too few for what is kept", spm_words);
  }
  load_weights(&k);
  if (with_front) front(&k);
  if (with_back) back(&k);
  ct_lower_one_job(l);
  const int err = ct_lower_finish(l, "what is kept", &codes, why);
  if (err) return err;
  *code = codes.job[0];
  free(codes.job);
  return CT_OK;
}
