/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: products of forward and backward, with a resident A and panels of weights as B.
 * See ct_train.h. */
#include "ct_train.h"

enum { RUN = 256 };

static uint32_t block_rows(const struct train *t, uint32_t mb) {
  return ct_min_u32(t->batch - mb * t->bm * CT_TILE, t->bm * CT_TILE);
}

static struct ct_ref tile_of(const struct train *t, uint32_t tensor, uint32_t m, uint32_t c) {
  return ct_tile_of(t->l, tensor, m, c);
}

/* ---- Loads --------------------------------------------------------------------------------- */

/* Weights of the column, k steps first.., into a panel that begins with step `base`. In backward
 * the columns are those of W, and a k step is a row of its tiles. */
static void load_steps(struct train *t, struct ct_ref w, uint32_t base, uint32_t first,
                       uint32_t steps) {
  const uint32_t c0 = t->c * t->bn, at = first - base;
  const int32_t row = (int32_t)(ct_mlp_in(t->net, t->layer) * CT_RECORD_UNITS);
  ct_ld(t->l,
        &(struct ct_dma){
            .dram = t->backward ? ct_tiles_of(t->l, t->weights[t->layer], first, steps, c0, t->bn)
                                : ct_tiles_of(t->l, t->weights[t->layer], c0, t->bn, first, steps),
            .spm = ct_part(w, at, at * t->bn * CT_TILE),
            .by_step = true,
            .hdr = true,
            .nb = CT_TILE,
            .n1 = t->bn,
            .d1 = t->backward ? CT_RECORD_UNITS : row,
            .s1 = CT_TILE,
            .n2 = steps,
            .d2 = t->backward ? row : CT_RECORD_UNITS,
            .s2 = (int32_t)(t->bn * CT_TILE)});
}

static void load_inputs(struct train *t, uint32_t first, uint32_t steps) {
  ct_ld(t->l, &(struct ct_dma){.dram = ct_tiles_of(t->l, t->in_x, 0, t->mt, first, steps),
                               .spm = ct_tiles_of(t->l, t->x[0], 0, t->mt, first, steps),
                               .hdr = true,
                               .nb = CT_TILE,
                               .n1 = t->mt,
                               .d1 = (int32_t)(ct_mlp_in(t->net, 0) * CT_RECORD_UNITS),
                               .s1 = CT_TILE,
                               .n2 = steps,
                               .d2 = CT_RECORD_UNITS,
                               .s2 = (int32_t)(t->mt * CT_TILE)});
}

/* The first panel of all comes together with the inputs, in pieces, so that the array starts early.
 */
static void load_panel(struct train *t, struct ct_ref w, uint32_t from, uint32_t steps) {
  if (!t->with_inputs) {
    load_steps(t, w, from, from, steps);
    return;
  }
  for (uint32_t k = 0, piece = 1; k < steps; k += piece) {
    if (k >= 2) piece = k;
    piece = ct_min_u32(piece, steps - k);
    load_inputs(t, from + k, piece);
    load_steps(t, w, from, from + k, piece);
  }
}

/* A vector of FP32 words, in runs. */
static void load_words(struct train *t, uint32_t dram, uint32_t spm) {
  const uint32_t words = ct_mlp_bias_tile(t->net, t->net->layers) * CT_F32_ROW_UNITS;
  for (uint32_t at = 0; at < words; at += RUN) {
    const uint32_t n = ct_min_u32(RUN, words - at);
    ct_ld(t->l, &(struct ct_dma){.dram = ct_tiles_of(t->l, dram, at, n, 0, 1),
                                 .spm = ct_tiles_of(t->l, spm, at, n, 0, 1),
                                 .nb = n});
  }
}

static void load_batch(struct train *t) {
  load_words(t, t->image_bias, t->bias);
  ct_ld(t->l, &(struct ct_dma){.dram = ct_tiles_of(t->l, t->in_y, 0, t->mt, 0, t->ct),
                               .spm = ct_tiles_of(t->l, t->y, 0, t->mt, 0, t->ct),
                               .hdr = true,
                               .nb = CT_TILE,
                               .n1 = t->ct,
                               .d1 = CT_RECORD_UNITS,
                               .s1 = CT_TILE,
                               .n2 = t->mt,
                               .d2 = (int32_t)(t->ct * CT_RECORD_UNITS),
                               .s2 = (int32_t)(t->ct * CT_TILE)});
  if (t->end == CT_TRAIN_ADDS)
    load_words(t, t->gradient_bias, t->vb);
  else if (t->end == CT_TRAIN_UPDATES)
    load_words(t, t->state_bias, t->vb);
}

/* ---- A block ------------------------------------------------------------------------------- */

static void multiply(struct train *t, struct ct_ref w, uint32_t from, uint32_t steps, bool fresh) {
  const uint32_t a = t->backward ? t->dz[t->layer] : t->x[t->layer];
  ct_mm(t->l, &(struct ct_mm){.a = ct_tiles_of(t->l, a, t->mb * t->bm, t->bm, from, steps),
                              .b = w,
                              .acc = t->acc_ref,
                              .by_step = fresh,
                              .am = CT_TILE,
                              .ak = (int32_t)(t->mt * CT_TILE),
                              .b_trans = t->backward,
                              .bn = CT_TILE,
                              .bk = (int32_t)(t->bn * CT_TILE),
                              .accum = from > 0,
                              .kt = steps,
                              .nt = t->bn,
                              .rows = block_rows(t, t->mb),
                              .acc_n = t->bm});
}

/* Where a panel does not hold all k steps, every block has its own. */
static void chunk(void *train, uint32_t i) {
  struct train *t = train;
  const uint32_t from = (i + 1) * t->chunk, steps = ct_min_u32(t->chunk, t->steps - from);
  const struct ct_ref w = ct_next(t->l, t->panel);
  load_panel(t, w, from, steps);
  multiply(t, w, from, steps, true);
}

/* The panel of a column's first block, or of every block. */
static void next_panel(struct train *t) {
  if (t->mb > 0 && t->steps <= t->chunk) return;
  t->held = ct_next(t->l, t->panel);
  load_panel(t, t->held, 0, ct_min_u32(t->chunk, t->steps));
}

static void multiply_all(struct train *t) {
  const uint32_t full = t->steps / t->chunk;
  const uint32_t tiles = t->bm * t->bn;
  const bool chunks = t->steps > t->chunk;
  t->acc_ref = ct_next_n(t->l, t->acc[tiles], tiles);
  multiply(t, t->held, 0, ct_min_u32(t->chunk, t->steps), t->mb == 0 || chunks);
  if (full > 1) ct_repeat(t->l, full - 1, chunk, t);
  if (chunks && t->steps % t->chunk) chunk(t, full - 1);
}

/* A column's blocks but the first, which is different; the last may be shorter. */
static void other_blocks(struct train *t, ct_body *block) {
  const bool part = t->batch % CT_TILE != 0 && t->blocks > 1;
  t->with_inputs = false;
  if (t->blocks > 1) ct_repeat(t->l, t->blocks - 1 - part, block, t);
  if (part) block(t, t->blocks - 2);
}

/* All columns. The very first one is different; the last may be narrower. */
static void all_columns(struct train *t, ct_body *column, uint32_t width) {
  const uint32_t first = t->with_inputs ? 1 : 0;
  const uint32_t part = width % CT_TILE != 0 && t->columns > first ? 1 : 0;
  t->base = 0;
  if (first) column(t, 0);
  t->base = first;
  ct_repeat(t->l, t->columns - first - part, column, t);
  if (part) column(t, t->columns - first - 1);
}

/* ---- Forward ------------------------------------------------------------------------------- */

static void load_biases(struct train *t) {
  const uint32_t at = ct_mlp_bias_tile(t->net, t->layer) + t->c * t->bn;
  for (uint32_t n = 0; n < t->bn; ++n) {
    t->bias_ref[n] = ct_next(t->l, t->biases[t->bn]);
    ct_vl(t->l, &(struct ct_vmove){.spm = ct_tiles_of(t->l, t->bias, (at + n) * CT_F32_ROW_UNITS,
                                                      CT_F32_ROW_UNITS, 0, 1),
                                   .reg = t->bias_ref[n],
                                   .rows = 1});
  }
}

/* Row tiles m0.. of a column tile, which is number n of the block. */
static void forward_tiles(struct train *t, uint32_t n, uint32_t first, uint32_t tiles) {
  const bool last = t->layer + 1 == t->net->layers;
  const uint32_t m = t->mb * t->bm + first, c = t->c * t->bn + n;
  const struct ct_ref out = ct_next_n(t->l, t->block_out, tiles);
  struct ct_ref acc = ct_nth(t->acc_ref, n * t->bm + first);
  acc.gens = tiles;
  ct_va(t->l, &(struct ct_va){.to = out,
                              .a = acc,
                              .q = t->bias_ref[n],
                              .c = CT_VA_ROW0,
                              .relu = !last,
                              .rows = ct_train_rows(t, m),
                              .cols = ct_in_tile(t->net->width[t->layer + 1], c),
                              .more = tiles - 1});
  ct_vs(t->l, &(struct ct_vmove){
                  .reg = out,
                  .spm = ct_tiles_of(t->l, last ? t->z : t->x[t->layer + 1], m, tiles, c, 1),
                  .mode = last ? CT_VS_F32 : CT_VS_SQUARE,
                  .rows = CT_TILE,
                  .more = tiles - 1,
                  .tile_stride = last ? CT_F32_TILE_UNITS : CT_TILE});
}

/* Whole row tiles go together; the batch's last one may be a part of one. */
static void forward_results(struct train *t) {
  const bool part = t->batch % CT_TILE != 0 && t->mb + 1 == t->blocks;
  for (uint32_t n = 0; n < t->bn; ++n) {
    if (!part) {
      forward_tiles(t, n, 0, t->bm);
      continue;
    }
    for (uint32_t i = 0; i < t->bm; ++i)
      forward_tiles(t, n, i, 1);
  }
}

static void forward_block(void *train, uint32_t i) {
  struct train *t = train;
  t->mb = i + 1;
  next_panel(t);
  multiply_all(t);
  forward_results(t);
}

static void forward_column(void *train, uint32_t i) {
  struct train *t = train;
  t->c = t->base + i;
  t->mb = 0;
  next_panel(t);
  if (t->with_inputs) load_batch(t);
  load_biases(t);
  multiply_all(t);
  forward_results(t);
  other_blocks(t, forward_block);
}

void ct_train_forward(struct train *t, uint32_t layer) {
  const uint32_t columns = ct_mlp_out(t->net, layer);
  t->layer = layer;
  t->backward = false;
  t->with_inputs = layer == 0;
  t->steps = ct_mlp_in(t->net, layer);
  t->bn = ct_train_columns(t, columns);
  t->columns = columns / t->bn;
  all_columns(t, forward_column, t->net->width[layer + 1]);
}

/* ---- Backward ------------------------------------------------------------------------------ */

static void backward_results(struct train *t) {
  const uint32_t tiles = t->bm * t->bn;
  struct ct_ref sign[CT_TRAIN_BLOCK], out[CT_TRAIN_BLOCK];
  for (uint32_t i = 0; i < tiles; ++i) {
    sign[i] = ct_next(t->l, t->block_load);
    ct_vl(t->l, &(struct ct_vmove){.spm = tile_of(t, t->x[t->layer], t->mb * t->bm + i % t->bm,
                                                  t->c * t->bn + i / t->bm),
                                   .reg = sign[i],
                                   .mode = CT_VL_SIGN,
                                   .rows = CT_TILE});
  }
  multiply_all(t);
  for (uint32_t i = 0; i < tiles; ++i) {
    out[i] = ct_next(t->l, t->block_out);
    ct_va(t->l,
          &(struct ct_va){.to = out[i],
                          .a = ct_nth(t->acc_ref, i),
                          .q = sign[i],
                          .c = CT_VA_TILE,
                          .fn = CT_VA_SELECT,
                          .rows = ct_train_rows(t, t->mb * t->bm + i % t->bm),
                          .cols = ct_in_tile(t->net->width[t->layer], t->c * t->bn + i / t->bm)});
  }
  for (uint32_t i = 0; i < tiles; ++i) {
    const uint32_t n = i / t->bm, m = t->mb * t->bm + i % t->bm;
    ct_train_add_sum(t, n, out[i], m == 0);
    ct_vs(t->l, &(struct ct_vmove){.reg = out[i],
                                   .spm = tile_of(t, t->dz[t->layer - 1], m, t->c * t->bn + n),
                                   .mode = CT_VS_SQUARE,
                                   .rows = CT_TILE});
  }
}

static void backward_block(void *train, uint32_t i) {
  struct train *t = train;
  t->mb = i + 1;
  next_panel(t);
  backward_results(t);
}

static void backward_column(void *train, uint32_t i) {
  struct train *t = train;
  t->c = t->base + i;
  t->mb = 0;
  next_panel(t);
  backward_results(t);
  other_blocks(t, backward_block);
  for (uint32_t n = 0; n < t->bn; ++n)
    ct_train_finish_sum(t, n, t->layer - 1, t->c * t->bn + n);
}

void ct_train_backward(struct train *t, uint32_t layer) {
  const uint32_t columns = ct_mlp_in(t->net, layer);
  t->layer = layer;
  t->backward = true;
  t->with_inputs = false;
  t->steps = ct_mlp_out(t->net, layer);
  t->bn = ct_train_columns(t, columns);
  t->columns = columns / t->bn;
  all_columns(t, backward_column, t->net->width[layer]);
}
