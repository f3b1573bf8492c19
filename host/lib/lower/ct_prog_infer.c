/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward pass of requests: 1..16 rows, weights streamed once. In a batch the device says how
 * many rows there are and where they lie; the commands are the same for each number.
 *
 * A layer is cut into blocks of up to 8 column tiles, one half of ACC. A block's weights are a
 * panel: for each k step its column tiles, signalled step by step. Loads run ahead of everything
 * else, through layers, as far as there is SPM: with all panels in SPM at once nothing waits for
 * space; otherwise panels go round a ring. A block's results pass bias, ReLU and quantisation tile
 * by tile and become k steps of the next layer.
 *
 *   LD panel ..k step..> MM ..tile final..> VA ..> VS ..k step of the next layer..> MM
 *                                                  VS ..block..> VA (tile registers 0..7 are free)
 *   MM <..ACC tile read.. VA       LD <..panel read.. VS ..biases used..> VL
 *
 * With resident weights nothing is loaded but the rows, and the first product's first k step waits
 * for them.
 *
 * The last two are given by a store of nothing after the block, where there is somebody to wait.
 */
#include <stdlib.h>

#include "coltrain/coltrain.h"
#include "ct_infer_spilled.h"
#include "ct_infer_wide.h"
#include "ct_prog.h"

enum {
  S_LD_MM,
  S_LD_VL,
  S_VL_VA,
  S_MM_VA,
  S_VA_VS,
  S_VS_VA,
  S_VS_MM,
  S_VA_MM,
  S_VS_LD,
  S_VS_VL,
  S_VS_ST
};

enum {
  HALF = 8,
  BIAS_REG = 8,
  BIAS_REGS = 4,
  SCRATCH_REG = 15,
  SCRATCH_REG_VA = 14,
  MOST_SIGNALS = 255,
  RUN = 256
};

struct infer {
  struct ct_build b;
  const struct ct_mlp *net;
  uint32_t rows, rows_reg; /* their sum is the number of rows ... */
  uint32_t rows_max;       /* ... this at most */
  uint32_t bn;             /* column tiles of a block at most */
  uint32_t x_at[2];        /* activations, in turn */
  uint32_t bias_at, out_at, scratch_at, pool_at;
  bool resident;          /* weights and biases are in SPM */
  bool ring;              /* panels go round */
  uint32_t slot, slots;   /* of a ring: words, number */
  uint32_t panels, panel; /* in all; written so far */
  uint32_t next_at;       /* without a ring: where the next panel goes */
  uint32_t blocks;        /* written so far */
  uint32_t per_group;     /* column tiles whose biases share a register, one a row: 16, or 1 */
  uint32_t groups, group; /* in all; loaded so far */
  uint32_t used;          /* words of the window, but for those that are pinned */
};

/* A block of a layer. */
struct block {
  uint32_t l, n0, bn, index; /* first column tile, column tiles, number in the layer */
  uint32_t spm;              /* its panel */
};

static uint32_t blocks_of(const struct infer *f, uint32_t l) {
  return (ct_mlp_out(f->net, l) + f->bn - 1) / f->bn;
}

/* ---- Loads ---- */

/* Row vectors: each group of blocks lands as one row of up to 16 tiles. A batch's rows are the
 * steps of one command. */
static void load_row(struct infer *f, uint32_t row, uint32_t dram_reg, uint32_t landed) {
  const uint32_t blocks = ct_mlp_in(f->net, 0), full = blocks / CT_TILE, rest = blocks % CT_TILE;
  const uint32_t spm = f->x_at[0] + row;
  const bool gather = f->rows_reg != 0;
  if (full)
    CT_ADD(&f->b, LD, CT_SET(DMA_DRAM_REG, dram_reg), CT_SET(DMA_GATHER, gather),
           CT_SET(DMA_SPM, spm), CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, CT_TILE),
           CT_SET(DMA_S0, CT_TILE), CT_SET(DMA_N1, full), CT_SET(DMA_D1, CT_RECORD_UNITS),
           CT_SET(DMA_S1, CT_TILE * CT_TILE), CT_SET(DMA_N2, 1), CT_SET(DMA_S2, gather),
           CT_SET(ALL_SIG1, rest ? 0 : landed));
  if (rest)
    CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, full * CT_RECORD_UNITS), CT_SET(DMA_DRAM_REG, dram_reg),
           CT_SET(DMA_GATHER, gather), CT_SET(DMA_SPM, spm + full * CT_TILE * CT_TILE),
           CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, rest), CT_SET(DMA_S0, CT_TILE), CT_SET(DMA_N1, 1),
           CT_SET(DMA_N2, 1), CT_SET(DMA_S2, gather), CT_SET(ALL_SIG1, landed));
}

static void load_rows(struct infer *f) {
  const uint32_t landed = f->resident ? CT_SEM(S_LD_MM) : 0;
  if (f->rows_reg) load_row(f, 0, 0, landed);
  for (uint32_t r = 0; r < f->rows; ++r)
    load_row(f, r, CT_INFER_ROW + r, r + 1 == f->rows ? landed : 0);
}

/* All biases at once. */
static void load_biases(struct infer *f) {
  const uint32_t words = ct_mlp_bias_tile(f->net, f->net->layers) * CT_F32_ROW_UNITS;
  for (uint32_t at = 0; at < words && !f->resident; at += RUN)
    CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, ct_mlp_bias_at(f->net) + at),
           CT_SET(DMA_DRAM_REG, CT_INFER_IMAGE), CT_SET(DMA_SPM, f->bias_at + at),
           CT_SET(DMA_NB, ct_min_u32(RUN, words - at)), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1),
           CT_SET(DMA_N2, 1), CT_SET(ALL_SIG1, at + RUN >= words ? CT_SEM(S_LD_VL) : 0));
}

static uint32_t panel_place(struct infer *f, uint32_t words) {
  if (f->ring) return f->pool_at + f->panel % f->slots * f->slot;
  const uint32_t at = f->next_at;
  f->next_at += words;
  return at;
}

/* Column tiles of block number i of the program; 0: there is none. */
static uint32_t tiles_of(const struct infer *f, uint32_t i) {
  for (uint32_t l = 0; l < f->net->layers; i -= blocks_of(f, l++))
    if (i < blocks_of(f, l)) return ct_min_u32(f->bn, ct_mlp_out(f->net, l) - i * f->bn);
  return 0;
}

static void load_panel(struct infer *f, struct block *k) {
  const uint32_t kt = ct_mlp_in(f->net, k->l);
  k->spm = panel_place(f, kt * k->bn * CT_TILE);
  ++f->panel;
  if (f->resident) return;
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, (ct_mlp_tile(f->net, k->l) + k->n0 * kt) * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, CT_INFER_IMAGE), CT_SET(DMA_SPM, k->spm), CT_SET(DMA_HDR, 1),
         CT_SET(DMA_NB, CT_TILE), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, k->bn),
         CT_SET(DMA_D1, kt * CT_RECORD_UNITS), CT_SET(DMA_S1, CT_TILE), CT_SET(DMA_N2, kt),
         CT_SET(DMA_D2, CT_RECORD_UNITS), CT_SET(DMA_S2, k->bn * CT_TILE),
         CT_SET(ALL_SIG0, CT_SEM(S_LD_MM)),
         CT_SET(ALL_WAIT1, f->ring && f->panel > f->slots ? CT_SEM(S_VS_LD) : 0));
}

/* The biases of a group of column tiles as the rows of one tile register. */
static void load_group(struct infer *f, uint32_t l, uint32_t first) {
  const uint32_t rows = ct_min_u32(f->per_group, ct_mlp_out(f->net, l) - first), g = f->group++;
  CT_ADD(&f->b, VL,
         CT_SET(VL_SPM, f->bias_at + (ct_mlp_bias_tile(f->net, l) + first) * CT_F32_ROW_UNITS),
         CT_SET(VL_ROW_STRIDE, CT_F32_ROW_UNITS), CT_SET(VL_ROWS, rows),
         CT_SET(VL_TD, BIAS_REG + g % BIAS_REGS),
         CT_SET(ALL_WAIT0, g == 0 && !f->resident ? CT_SEM(S_LD_VL) : 0),
         CT_SET(ALL_WAIT1, g >= BIAS_REGS ? CT_SEM(S_VS_VL) : 0),
         CT_SET(ALL_SIG0, CT_SEM(S_VL_VA)));
}

/* ---- Products ---- */

/* The layer's first block waits for its inputs, one k step after the other. From the third block
 * on, ACC tiles have had a user, two blocks before. */
static void multiply_steps(struct infer *f, const struct block *k, uint32_t from, uint32_t to,
                           uint32_t wait0) {
  const bool last = to == ct_mlp_in(f->net, k->l);
  CT_ADD(&f->b, MM, CT_SET(MM_A, f->x_at[k->l & 1] + from * CT_TILE), CT_SET(MM_AM, 0),
         CT_SET(MM_AK, CT_TILE), CT_SET(MM_B, k->spm + from * k->bn * CT_TILE),
         CT_SET(MM_BN, CT_TILE), CT_SET(MM_BK, k->bn * CT_TILE), CT_SET(MM_KT, to - from),
         CT_SET(MM_NT, k->bn), CT_SET(MM_ROWS, f->rows), CT_SET(MM_ROWS_REG, f->rows_reg),
         CT_SET(MM_ACCUM, from > 0), CT_SET(MM_ACC, (f->blocks & 1) * HALF), CT_SET(MM_ACC_N, 1),
         CT_SET(ALL_WAIT0, wait0), CT_SET(ALL_WAIT1, k->l && k->index == 0 ? CT_SEM(S_VS_MM) : 0),
         CT_SET(ALL_WAIT2, f->blocks >= 2 && from == 0 ? CT_SEM(S_VA_MM) : 0),
         CT_SET(ALL_SIG1, last ? CT_SEM(S_MM_VA) : 0));
}

static void multiply(struct infer *f, const struct block *k) {
  const uint32_t kt = ct_mlp_in(f->net, k->l);
  uint32_t from = 0;
  if (f->resident && f->blocks == 0 && kt > 1) multiply_steps(f, k, from++, 1, CT_SEM(S_LD_MM));
  multiply_steps(f, k, from, kt, f->resident && (f->blocks || from) ? 0 : CT_SEM(S_LD_MM));
}

/* ---- Results ---- */

static void finish_tile(struct infer *f, const struct block *k, uint32_t i, uint32_t first_group) {
  const uint32_t l = k->l, n = k->n0 + i;
  const bool last_layer = l + 1 == f->net->layers;
  const bool last = last_layer && n + 1 == ct_mlp_out(f->net, l);
  const bool new_group = n % f->per_group == 0;
  CT_ADD(&f->b, VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, (f->blocks & 1) * HALF + i),
         CT_SET(VA_C_SRC, 2),
         CT_SET(VA_TQ, BIAS_REG + (first_group + n / f->per_group) % BIAS_REGS),
         CT_SET(VA_ROW_XOR, n % f->per_group), CT_SET(VA_RELU, !last_layer), CT_SET(VA_TD, i),
         CT_SET(VA_ROWS, f->rows), CT_SET(VA_ROWS_REG, f->rows_reg),
         CT_SET(VA_COLS, ct_in_tile(f->net->width[l + 1], n)), CT_SET(ALL_WAIT0, CT_SEM(S_MM_VA)),
         CT_SET(ALL_WAIT1, i == 0 && f->blocks ? CT_SEM(S_VS_VA) : 0),
         CT_SET(ALL_WAIT2, new_group ? CT_SEM(S_VL_VA) : 0), CT_SET(ALL_SIG0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_SIG1, i < tiles_of(f, f->blocks + 2) ? CT_SEM(S_VA_MM) : 0));
  const uint32_t spm =
      last_layer ? f->out_at + n * CT_F32_ROW_UNITS : f->x_at[(l + 1) & 1] + n * CT_TILE;
  CT_ADD(&f->b, VS, CT_SET(VS_TS, i), CT_SET(VS_ROWS, f->rows), CT_SET(VS_ROWS_REG, f->rows_reg),
         CT_SET(VS_MODE, last_layer ? 0 : 1),
         CT_SET(VS_ROW_STRIDE, last_layer ? ct_mlp_out(f->net, l) * CT_F32_ROW_UNITS : 1),
         CT_SET(VS_SPM, spm), CT_SET(ALL_WAIT0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_SIG0, last         ? CT_SEM(S_VS_ST)
                          : last_layer ? 0
                                       : CT_SEM(S_VS_MM)),
         CT_SET(ALL_SIG1, i + 1 == k->bn && !last ? CT_SEM(S_VS_VA) : 0));
}

/* A store of nothing, to signal once more. */
static void tell(struct infer *f, uint32_t sig) {
  CT_ADD(&f->b, VS, CT_SET(VS_TS, SCRATCH_REG), CT_SET(VS_ROWS, 1), CT_SET(VS_SPM, f->scratch_at),
         CT_SET(ALL_SIG0, sig));
}

/* A product takes a permission for each of its tiles: where the block two before had fewer,
 * operations without effect give the rest. */
static void top_up(struct infer *f, const struct block *k) {
  const uint32_t wants = tiles_of(f, f->blocks + 2);
  for (uint32_t i = k->bn; i < wants; i += 2)
    CT_ADD(&f->b, VA, CT_SET(VA_A_SRC, 2), CT_SET(VA_TD, SCRATCH_REG_VA), CT_SET(VA_ROWS, 1),
           CT_SET(VA_COLS, 1), CT_SET(ALL_SIG0, CT_SEM(S_VA_MM)),
           CT_SET(ALL_SIG1, i + 1 < wants ? CT_SEM(S_VA_MM) : 0));
}

/* The block is through: its panel and, at the end of a group, a bias register. */
static void block_done(struct infer *f, const struct block *k, uint32_t first_group) {
  const uint32_t end = k->n0 + k->bn, nt = ct_mlp_out(f->net, k->l);
  const bool panel_again = f->ring && f->blocks + f->slots < f->panels;
  top_up(f, k);
  if (panel_again) tell(f, CT_SEM(S_VS_LD));
  for (uint32_t n = k->n0; n < end; ++n)
    if ((n % f->per_group == f->per_group - 1 || n + 1 == nt) &&
        first_group + n / f->per_group + BIAS_REGS < f->groups)
      tell(f, CT_SEM(S_VS_VL));
  ++f->blocks;
}

static void store_answers(struct infer *f) {
  const uint32_t l = f->net->layers - 1, classes = f->net->width[f->net->layers];
  const uint32_t pitch = ct_mlp_out(f->net, l) * CT_F32_ROW_UNITS, used = (classes + 3) / 4;
  const bool gather = f->rows_reg != 0;
  for (uint32_t at = 0; at < used; at += RUN)
    CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, at), CT_SET(DMA_DRAM_REG, gather ? 0 : CT_INFER_OUT),
           CT_SET(DMA_GATHER, gather), CT_SET(DMA_SPM, f->out_at + at),
           CT_SET(DMA_NB, ct_min_u32(RUN, used - at)), CT_SET(DMA_S0, 1),
           CT_SET(DMA_N1, gather ? 1 : f->rows), CT_SET(DMA_D1, used), CT_SET(DMA_S1, pitch),
           CT_SET(DMA_N2, 1), CT_SET(DMA_S2, gather ? pitch : 0),
           CT_SET(ALL_WAIT1, at == 0 ? CT_SEM(S_VS_ST) : 0));
}

/* ---- All ---- */

uint32_t ct_infer_pinned(const struct ct_mlp *net) {
  return ct_mlp_bias_tile(net, net->layers) * CT_F32_ROW_UNITS +
         ct_mlp_tile(net, net->layers) * CT_TILE;
}

/* Places in SPM for blocks of up to bn column tiles; false: they do not fit. */
static bool plan(struct infer *f, uint32_t bn, const struct ct_infer *shape) {
  const struct ct_mlp *net = f->net;
  const uint32_t spm_words = shape->spm_words;
  uint32_t widest[2] = {0, 0}, all = 0, steps = 0, most_steps = 1, most = 1;
  f->bn = bn;
  f->panels = f->groups = 0;
  for (uint32_t l = 0; l < net->layers; ++l) {
    const uint32_t kt = ct_mlp_in(net, l), nt = ct_mlp_out(net, l), blocks = blocks_of(f, l);
    if (kt > widest[l & 1]) widest[l & 1] = kt;
    if (kt > most_steps) most_steps = kt;
    if (kt * ct_min_u32(bn, nt) * CT_TILE > most) most = kt * ct_min_u32(bn, nt) * CT_TILE;
    all += kt * nt * CT_TILE;
    steps += kt * blocks;
    f->panels += blocks;
    f->groups += (nt + f->per_group - 1) / f->per_group;
  }
  f->x_at[0] = 0;
  f->x_at[1] = widest[0] * CT_TILE;
  const uint32_t biases = ct_mlp_bias_tile(net, net->layers) * CT_F32_ROW_UNITS;
  const uint32_t free_at = f->x_at[1] + widest[1] * CT_TILE;
  f->bias_at = shape->pinned ? shape->pin_at : free_at;
  f->out_at = shape->pinned ? free_at : free_at + biases;
  f->scratch_at = f->out_at + f->rows_max * ct_mlp_out(net, net->layers - 1) * CT_F32_ROW_UNITS;
  const uint32_t end = f->scratch_at + CT_F32_ROW_UNITS;
  f->pool_at = f->next_at = shape->pinned ? shape->pin_at + biases : end;
  f->used = end;
  if (end >= spm_words) return false;
  const uint32_t pool = shape->pinned ? all : spm_words - end;
  f->ring = all > pool || steps > MOST_SIGNALS;
  f->slot = most;
  f->slots = ct_min_u32(pool / most, MOST_SIGNALS / most_steps);
  if (!shape->pinned) f->used += f->ring ? f->slots * most : all;
  return f->resident || shape->pinned ? !f->ring : !f->ring || f->slots >= 2;
}

static void write_layer(struct infer *f, uint32_t l, uint32_t *first_group) {
  const uint32_t nt = ct_mlp_out(f->net, l);
  for (uint32_t i = 0; i < blocks_of(f, l); ++i) {
    struct block k = {.l = l, .n0 = i * f->bn, .bn = ct_min_u32(f->bn, nt - i * f->bn), .index = i};
    load_panel(f, &k);
    if (l == 0 && i == 0) load_biases(f);
    for (uint32_t n = k.n0; n < k.n0 + k.bn; ++n)
      if (n % f->per_group == 0) load_group(f, l, n);
    multiply(f, &k);
    for (uint32_t n = 0; n < k.bn; ++n)
      finish_tile(f, &k, n, *first_group);
    block_done(f, &k, *first_group);
  }
  *first_group += (nt + f->per_group - 1) / f->per_group;
}

/* Blocks of up to `most` column tiles. */
static int write_all(struct infer *f, uint32_t most, const struct ct_infer *shape,
                     struct ct_code *code, const struct ct_why *why) {
  uint32_t bn = most, first_group = 0;
  while (bn && !plan(f, bn, shape))
    bn /= 2;
  if (!bn)
    return ct_why(
        why, CT_ERR_NO_SPACE,
        "the widest activations and two panels of weights do not fit a window of %u words",
        shape->spm_words);
  f->panel = f->blocks = f->group = 0;
  ct_build_init(&f->b, f->rows_reg ? CT_INFER_IMAGE : CT_INFER_ROW + shape->rows - 1);
  f->b.batch = f->rows_reg != 0;
  load_rows(f);
  for (uint32_t l = 0; l < shape->net->layers; ++l)
    write_layer(f, l, &first_group);
  store_answers(f);
  if (shape->used) *shape->used = f->used;
  return ct_code_finish(&f->b, code, "a forward pass", why);
}

/* Wide layers take too many commands where each tile picks its row of biases (no loop can): then
 * every tile's biases are loaded by themselves. */
static int write_either(struct infer *f, const struct ct_infer *shape, struct ct_code *code,
                        const struct ct_why *why, bool *wide) {
  f->per_group = CT_TILE;
  const int err = *wide ? CT_ERR_NO_SPACE : write_all(f, HALF, shape, code, why);
  *wide = err == CT_ERR_NO_SPACE;
  if (!*wide) return err;
  f->per_group = 1;
  return write_all(f, BIAS_REGS, shape, code, why);
}

/* The last resort is slow, and never has too many commands. */
static int write_loops(const struct ct_infer *shape, struct ct_code *code,
                       const struct ct_why *why) {
  const int err = ct_infer_wide(shape, code, why);
  return err == CT_ERR_NO_SPACE && shape->work ? ct_infer_spilled(shape, code, why) : err;
}

/* A program for weights that are there already has the form of the one that loads them. */
int ct_prog_infer(const struct ct_infer *shape, struct ct_code *code, const struct ct_why *why) {
  const bool batch = shape->rows == CT_INFER_BATCH;
  struct infer f = {.net = shape->net,
                    .rows = shape->rows,
                    .rows_reg = batch ? CT_BATCH_REG : 0,
                    .rows_max = batch ? CT_INFER_ROWS_MAX : shape->rows};
  bool wide = false;
  code->cmd = NULL;
  code->count = 0;
  if (shape->work) *shape->work = 0;
  int err = ct_mlp_check(shape->net, why);
  if (!err && shape->rows > CT_INFER_ROWS_MAX)
    err =
        ct_why(why, CT_ERR_ARG, "a request has 1..%d rows, not %u", CT_INFER_ROWS_MAX, shape->rows);
  if (err) return err;
  err = write_either(&f, shape, code, why, &wide);
  if (err == CT_ERR_NO_SPACE && !shape->pinned && !shape->resident)
    return write_loops(shape, code, why);
  if (err || !shape->resident) return err;
  free(code->cmd);
  code->cmd = NULL;
  code->count = 0;
  f.resident = true;
  return write_either(&f, shape, code, why, &wide);
}
