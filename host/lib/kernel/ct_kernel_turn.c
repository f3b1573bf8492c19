/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Square tiles of HBFP8, turned. The array does it: one times a tile is the tile, and what it
 * streams in from the tile's rows comes out in columns. Products by one are exact, and the largest
 * number of a tile that was quantised has the tile's exponent; so the mantissas that come out are
 * those that went in.
 *
 * The first tile stays in the scratchpad: what ST carries signals by is to store a row of it again.
 */
#include "coltrain/coltrain.h"
#include "ct_kernel.h"
#include "ct_lower.h"

enum { R_VA, R_VL, R_VS, R_ONE, R_RESULT = R_ONE + 2, ACC_CARRIER = 15, SLOTS = 4, BITS = 4 };
static const uint32_t kOne = 0x3F800000;

struct turn {
  struct ct_lower *l;
  uint32_t from, to;            /* in device memory */
  uint32_t one, first, in, out; /* in the scratchpad */
  uint32_t temp, result, acc;   /* registers, sums */
};

/* A single 1, whose copies go down the diagonal: 1, 2, 4, 8 of them, 16. */
static void make_one(struct turn *t) {
  struct ct_ref a = ct_tile_of(t->l, t->temp, 0, 0), b = ct_tile_of(t->l, t->temp, 1, 0);
  ct_va(t->l, &(struct ct_va){.to = a, .c = CT_VA_SCALAR, .sc = kOne, .rows = 1, .cols = 1});
  for (unsigned i = 0; i < BITS; ++i) {
    ct_va(t->l,
          &(struct ct_va){
              .to = b, .a = a, .q = a, .c = CT_VA_TILE, .row_xor = 1u << i, .lane_xor = 1u << i});
    const struct ct_ref last = a;
    a = b;
    b = last;
  }
  ct_vs(
      t->l,
      &(struct ct_vmove){
          .reg = a, .spm = ct_tile_of(t->l, t->one, 0, 0), .mode = CT_VS_SQUARE, .rows = CT_TILE});
}

static struct ct_dma record(struct ct_ref dram, struct ct_ref spm) {
  return (struct ct_dma){.dram = dram, .spm = spm, .hdr = true, .nb = CT_TILE};
}

static void tile(struct turn *t, uint32_t i, struct ct_ref out) {
  const struct ct_ref in = ct_next(t->l, t->in);
  const struct ct_ref acc = ct_next(t->l, t->acc), reg = ct_next(t->l, t->result);
  const struct ct_dma ld = record(ct_tile_of(t->l, t->from, 0, i), in);
  ct_ld(t->l, &ld);
  ct_mm(t->l, &(struct ct_mm){.a = ct_tile_of(t->l, t->one, 0, 0),
                              .b = in,
                              .acc = acc,
                              .kt = 1,
                              .nt = 1,
                              .rows = CT_TILE});
  ct_va(t->l, &(struct ct_va){.to = reg, .a = acc});
  ct_vs(t->l, &(struct ct_vmove){.reg = reg, .spm = out, .mode = CT_VS_SQUARE, .rows = CT_TILE});
  const struct ct_dma st = record(ct_tile_of(t->l, t->to, 0, i), out);
  ct_st(t->l, &st);
}

static void next_tile(void *kernel, uint32_t i) {
  struct turn *t = kernel;
  tile(t, i + 1, ct_next(t->l, t->out));
}

/* Loads calm words. */
static void place(struct turn *t, const struct ct_turn *k) {
  struct ct_lower *l = t->l;
  const struct ct_grid tiles = ct_grid(1, k->tiles, CT_RECORD_UNITS);
  t->from = ct_dram_tensor(l, "tiles", CT_COPY_FROM, k->from, tiles);
  t->to = ct_dram_tensor(l, "turned tiles", CT_COPY_TO, k->to, tiles);
  t->one = ct_spm_tensor(l, "one", ct_grid(1, 1, CT_TILE));
  t->first = ct_spm_tensor(l, "the first tile", ct_grid(1, 1, CT_TILE));
  t->in = ct_spm_ring(l, "in", CT_TILE, SLOTS);
  t->out = ct_spm_ring(l, "out", CT_TILE, SLOTS);
  t->temp = ct_reg_tensor(l, "one", R_ONE, 2);
  t->result = ct_reg_ring(l, "results", R_RESULT, SLOTS);
  t->acc = ct_acc_ring(l, "products", 0, SLOTS);
  const uint32_t row = ct_dram_tensor(l, "a row", CT_COPY_TO, k->to + 1, ct_grid(1, 1, 1));
  const uint32_t calm = ct_spm_tensor(l, "calm words", ct_grid(1, 1, CT_TILE));
  ct_lower_carriers(l, &(struct ct_carriers){.va_reg = R_VA,
                                             .vl_reg = R_VL,
                                             .vs_reg = R_VS,
                                             .acc = ACC_CARRIER,
                                             .spm = ct_spm_take(l, CT_CARRIER_WORDS),
                                             .calm = calm,
                                             .load = t->from,
                                             .store_spm = t->first,
                                             .store_dram = row});
  const struct ct_dma ld = record(ct_tile_of(l, t->from, 0, 0), ct_tile_of(l, calm, 0, 0));
  ct_ld(l, &ld);
}

int ct_kernel_turn(const struct ct_turn *k, uint32_t spm_words, struct ct_codes *codes,
                   const struct ct_why *why) {
  struct turn t = {.l = ct_lower_start(CT_COPY_ARGS, false)};
  *codes = (struct ct_codes){NULL, 0};
  if (!t.l) return ct_why(why, CT_ERR_MEMORY, "no memory for a program that turns tiles");
  place(&t, k);
  if (ct_spm_taken(t.l) > spm_words)
    ct_lower_fail(t.l, CT_ERR_NO_SPACE,
                  "turning tiles needs %llu words of scratchpad, the window has %u",
                  (unsigned long long)ct_spm_taken(t.l), spm_words);
  make_one(&t);
  tile(&t, 0, ct_tile_of(t.l, t.first, 0, 0));
  ct_repeat(t.l, k->tiles - 1, next_tile, &t);
  return ct_lower_finish(t.l, "tiles that are turned", codes, why);
}
