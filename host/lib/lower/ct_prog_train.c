/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One training step of a multilayer perceptron (docs/numerics.md, Training).
 *
 * The batch's activations X(l) and gradients dZ(l) stay in SPM as square HBFP8 tiles, tile (m, k)
 * at (k * mt + m) * 16 words; weights stream through two panels. Phases, in program order:
 *
 *   forward(l)     X(l) * W(l)^T + b, ReLU, quantised to X(l+1); the last layer's logits stay FP32
 *   softmax        rows of 16: gradient of Z (FP32 over Z, and quantised as dZ), loss;
 *                  bias sums of the last layer, from the FP32 gradient
 *   backward(l)    dZ(l) * W(l), masked, quantised to dZ(l-1); bias sums on the way (l = last..1)
 *   biases         all of them: momentum, new value
 *   update(l)      dZ(l)^T * X(l), up to four weight tiles at a time: momentum, master weights,
 *                  compute copy
 *
 * All dX are computed before the first weight changes. Phases overlap as the queues allow; only
 * where a product needs what the phase before quantised it waits for all of it.
 *
 * Signals. Each resource that goes round (panels, ACC tiles, tile registers, SPM slots) is a struct
 * turn: its first users do not wait, later ones wait for the user so many before. Signals are
 * always given; what is left over at the end of a job is harmless.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_prog.h"

enum {
  S_LD_MM,     /* a k step of a panel has landed */
  S_VL_LD,     /* a panel has been used up */
  S_MM_VA,     /* an ACC tile is final */
  S_VA_MM,     /* an ACC tile has been read (tiles 0..3) */
  S_VA_MM_UPD, /* the same, in update (from tile 8 on) */
  S_VA_VS,     /* a tile register holds a result */
  S_VS_VA,     /* ... has been stored */
  S_LD_VL,     /* FP32 words, targets or master weights have landed */
  S_VL_VA,     /* a tile register is loaded */
  S_VA_VL,     /* ... has been read */
  S_VS_MM,     /* everything before has been stored (phases) */
  S_VS_VL,     /* the same, for loads (phases and blocks) */
  S_VS_VA_SUM, /* a bias sum has been stored */
  S_VS_ST,     /* results lie in SPM */
  S_ST_VS,     /* ... and in DRAM */
  S_VL_LD_SLOT /* master weights have been loaded into registers */
};

/* Tile registers. 0..3 go round for loads (signs in backward), 4..7 for results, 8..11 hold biases,
 * then sums, then the gradients of weights. */
enum {
  R_LOAD = 0,
  R_LOADS = 4,
  R_OUT = 4,
  R_BIAS = 8,
  R_SUM = 8,
  R_TMP = 12,
  R_SCRATCH_VA = 13,
  R_DB = 14,
  R_SCRATCH_VS = 15,
  /* softmax */
  R_MAX = 8,
  R_EXPSUM = 9,
  R_RECIP = 10,
  R_LOG = 11,
  R_E = 12,
  R_D = 13,
  R_ROWLOSS = 14,
  R_LOSS = 7,
  /* update */
  R_GRAD = 8
};

enum {
  ACC_UPD = 8,
  ACC_NOBODY = 7, /* of no round */
  MOST_BLOCK = 4,
  MOST_UNIT = 4, /* weight tiles updated together */
  MOST_SIGNALS = 255,
  RUN = 256,
  SLOTS = 2,                           /* of units on their way in, and as many on their way out */
  STATE_UNITS = 2 * CT_F32_TILE_UNITS, /* momentum and masters of a weight tile */
  OUT_UNITS = STATE_UNITS + CT_TILE,   /* and its compute copy */
  MAX_CLASS_TILES = 4095
};
enum { FN_ADD = 0, FN_MAX = 1, FN_SELECT = 3, FUNC_EXP = 8, FUNC_RECIP = 9, FUNC_LOG = 10 };

/* Users take turns: use i waits for the signal of use i - n. */
struct turn {
  unsigned sem;
  uint32_t fresh; /* uses that need not wait any more */
};

struct train {
  struct ct_build b;
  const struct ct_mlp *net;
  uint32_t batch, mt, classes, ct; /* rows, row tiles; outputs, their tiles */
  uint32_t bm, blocks;             /* row tiles of a block, blocks of a column */
  uint32_t outs;                   /* result registers, and ACC tiles, that go round in blocks */
  uint32_t unit; /* weight tiles updated together: 4, or 2 or 1 in a small window */
  uint32_t x_at[CT_MLP_LAYERS], dz_at[CT_MLP_LAYERS];
  uint32_t z_at, y_at, bias_at, vb_at, db_at, loss_at, scratch_at, panel_at, panel, in_at, out_at,
      words;

  struct turn
      panels; /* one fresh less than there are: the first column gives back what it never had */
  struct turn acc, acc_upd, out, load, sum, in_slots, out_slots;
  uint32_t panel_i, acc_i, acc_upd_i, load_i, out_i, unit_i; /* where each round stands */
  uint32_t vl_tokens;                                        /* S_VS_VL given and not taken */
  bool mm_token;                                             /* S_VS_MM given and not taken */
  uint32_t ld_tokens;                                        /* S_LD_VL given and not taken */
};

/* Another use; the SEM field to wait with. */
static uint32_t turn_take(struct turn *t) {
  if (t->fresh == 0) return CT_SEM(t->sem);
  --t->fresh;
  return 0;
}

/* Takes a pending signal of VS for VL, if there is one. */
static uint32_t take_vl_token(struct train *t) {
  if (t->vl_tokens == 0) return 0;
  --t->vl_tokens;
  return CT_SEM(S_VS_VL);
}

static uint32_t take_ld_token(struct train *t) {
  if (t->ld_tokens == 0) return 0;
  --t->ld_tokens;
  return CT_SEM(S_LD_VL);
}

static uint32_t give_vl_token(struct train *t) {
  ++t->vl_tokens;
  return CT_SEM(S_VS_VL);
}

/* ---- Commands ---- */

static void ld(struct train *t, unsigned reg, uint32_t dram, uint32_t spm, uint32_t nb, uint32_t n1,
               uint32_t d1, uint32_t s1, uint32_t n2, uint32_t d2, uint32_t s2, bool hdr,
               uint32_t wait1, uint32_t sig0, uint32_t sig1) {
  CT_ADD(&t->b, LD, CT_SET(DMA_DRAM, dram), CT_SET(DMA_DRAM_REG, reg), CT_SET(DMA_SPM, spm),
         CT_SET(DMA_HDR, hdr), CT_SET(DMA_NB, nb), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, n1),
         CT_SET(DMA_D1, d1), CT_SET(DMA_S1, s1), CT_SET(DMA_N2, n2), CT_SET(DMA_D2, d2),
         CT_SET(DMA_S2, s2), CT_SET(ALL_WAIT1, wait1), CT_SET(ALL_SIG0, sig0),
         CT_SET(ALL_SIG1, sig1));
}

/* Words without headers, in runs. */
static void ld_words(struct train *t, unsigned reg, uint32_t dram, uint32_t spm, uint32_t words,
                     uint32_t sig) {
  for (uint32_t at = 0; at < words; at += RUN)
    ld(t, reg, dram + at, spm + at, ct_min_u32(RUN, words - at), 1, 0, 0, 1, 0, 0, false, 0, 0,
       at + RUN >= words ? sig : 0);
}

/* give: a turn whose signals the last run gives in advance (two, or none left), or NULL. */
static void st_words(struct train *t, unsigned reg, uint32_t dram, uint32_t spm, uint32_t words,
                     uint32_t wait, struct turn *give) {
  for (uint32_t at = 0; at < words; at += RUN) {
    const uint32_t sig = give && give->fresh && at + RUN >= words ? CT_SEM(give->sem) : 0;
    CT_ADD(&t->b, ST, CT_SET(DMA_DRAM, dram + at), CT_SET(DMA_DRAM_REG, reg),
           CT_SET(DMA_SPM, spm + at), CT_SET(DMA_NB, ct_min_u32(RUN, words - at)),
           CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
           CT_SET(ALL_WAIT1, at == 0 ? wait : 0), CT_SET(ALL_SIG0, sig), CT_SET(ALL_SIG1, sig));
  }
  if (give && give->fresh) give->fresh -= 2;
}

enum { VL_F32 = 0, VL_HBFP8 = 1, VL_SIGN = 2 };

static void vl(struct train *t, unsigned td, uint32_t spm, unsigned mode, uint32_t rows,
               uint32_t wait0, uint32_t wait1, uint32_t wait2, uint32_t sig0, uint32_t sig1) {
  CT_ADD(&t->b, VL, CT_SET(VL_TD, td), CT_SET(VL_SPM, spm), CT_SET(VL_MODE, mode),
         CT_SET(VL_ROWS, rows), CT_SET(VL_ROW_STRIDE, mode == VL_F32 ? CT_F32_ROW_UNITS : 1),
         CT_SET(ALL_WAIT0, wait0), CT_SET(ALL_WAIT1, wait1), CT_SET(ALL_WAIT2, wait2),
         CT_SET(ALL_SIG0, sig0), CT_SET(ALL_SIG1, sig1));
}

enum { VS_F32 = 0, VS_SQUARE = 2 };

static void vs(struct train *t, unsigned ts, uint32_t spm, unsigned mode, uint32_t rows,
               uint32_t wait0, uint32_t wait1, uint32_t sig0, uint32_t sig1) {
  CT_ADD(&t->b, VS, CT_SET(VS_TS, ts), CT_SET(VS_SPM, spm), CT_SET(VS_MODE, mode),
         CT_SET(VS_ROWS, rows), CT_SET(VS_ROW_STRIDE, mode == VS_F32 ? CT_F32_ROW_UNITS : 1),
         CT_SET(ALL_WAIT0, wait0), CT_SET(ALL_WAIT1, wait1), CT_SET(ALL_SIG0, sig0),
         CT_SET(ALL_SIG1, sig1));
}

/* An operation on tiles with all 16 rows written; start with va_op(), set what it needs, va_add().
 */
struct va {
  unsigned td, ta, tq, more;
  unsigned a, b,
      c; /* sources as in the command: a: 1 ACC, 2 +0; b, c: 1 tile tq, 2 its row 0, 3 scalar */
  unsigned fn, func, neg_c, relu, ninf, scalar, row_xor, lane_xor;
  uint32_t rows, cols, wait0, wait1, wait2, sig0, sig1;
};

static struct va va_op(unsigned td, unsigned ta) {
  return (struct va){.td = td, .ta = ta, .rows = CT_TILE, .cols = CT_TILE};
}

static void va_add(struct train *t, const struct va *v) {
  CT_ADD(&t->b, VA, CT_SET(VA_TD, v->td), CT_SET(VA_TA, v->ta), CT_SET(VA_TQ, v->tq),
         CT_SET(VA_A_SRC, v->a), CT_SET(VA_B_SRC, v->b), CT_SET(VA_C_SRC, v->c),
         CT_SET(VA_FN, v->fn), CT_SET(VA_FUNC, v->func), CT_SET(VA_NEG_C, v->neg_c),
         CT_SET(VA_RELU, v->relu), CT_SET(VA_PAD_NINF, v->ninf), CT_SET(VA_FULL, 1),
         CT_SET(VA_SB_REG, v->b == 3 ? v->scalar : 0), CT_SET(VA_ROWS, v->rows),
         CT_SET(VA_COLS, v->cols), CT_SET(VA_MORE, v->more), CT_SET(VA_ROW_XOR, v->row_xor),
         CT_SET(VA_LANE_XOR, v->lane_xor), CT_SET(ALL_WAIT0, v->wait0), CT_SET(ALL_WAIT1, v->wait1),
         CT_SET(ALL_WAIT2, v->wait2), CT_SET(ALL_SIG0, v->sig0), CT_SET(ALL_SIG1, v->sig1));
}

/* td = ta OP tq: c is tile tq. */
static struct va va_with(unsigned td, unsigned ta, unsigned tq) {
  struct va v = va_op(td, ta);
  v.c = 1;
  v.tq = tq;
  return v;
}

/* Signals in advance for uses that would not have to wait, so that all uses look alike (and fit
 * into one loop). These are operations, loads and stores without effect. */
static void give_by_va(struct train *t, struct turn *turn) {
  for (; turn->fresh; turn->fresh -= turn->fresh > 1 ? 2 : 1) {
    struct va v = va_op(R_SCRATCH_VA, 0);
    v.a = 2;
    v.rows = 1;
    v.sig0 = CT_SEM(turn->sem);
    v.sig1 = turn->fresh > 1 ? CT_SEM(turn->sem) : 0;
    va_add(t, &v);
  }
}

static void give_by_vs(struct train *t, struct turn *turn) {
  for (; turn->fresh; turn->fresh -= turn->fresh > 1 ? 2 : 1)
    vs(t, R_SCRATCH_VS, t->scratch_at, VS_F32, 1, 0, 0, CT_SEM(turn->sem),
       turn->fresh > 1 ? CT_SEM(turn->sem) : 0);
}

/* They read targets, which have landed by then. */
static void give_by_vl(struct train *t, struct turn *turn, unsigned reg, uint32_t wait) {
  for (; turn->fresh; turn->fresh -= turn->fresh > 1 ? 2 : 1, wait = 0)
    vl(t, reg, t->y_at, VL_F32, 1, wait, 0, 0, CT_SEM(turn->sem),
       turn->fresh > 1 ? CT_SEM(turn->sem) : 0);
}

/* Combines partials j and j + 8, 4, 2, 1 of rows or lanes of tile a, with b in between; the result
 * is in a, or in `last` if that is not a. */
static void reduce(struct train *t, unsigned a, unsigned b, bool rows, unsigned fn, unsigned last,
                   uint32_t last_wait, uint32_t last_sig) {
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned from = i & 1 ? b : a, to = i == 3 ? last : i & 1 ? a : b;
    struct va v = va_with(to, from, from);
    v.fn = fn;
    *(rows ? &v.row_xor : &v.lane_xor) = 8u >> i;
    if (i == 3) {
      v.wait0 = last_wait;
      v.sig0 = last_sig;
    }
    va_add(t, &v);
  }
}

/* ---- Registers, tiles ---- */

static unsigned next_load(struct train *t) {
  return R_LOAD + t->load_i++ % R_LOADS;
}

static unsigned next_out(struct train *t) {
  return R_OUT + t->out_i++ % R_LOADS;
}

/* Valid rows of row tile m, columns of tile n of `width`. */
static uint32_t rows_in(const struct train *t, uint32_t m) {
  return ct_in_tile(t->batch, m);
}

static uint32_t tile_at(const struct train *t, uint32_t base, uint32_t m, uint32_t k) {
  return base + (k * t->mt + m) * CT_TILE;
}

static uint32_t z_tile_at(const struct train *t, uint32_t m, uint32_t c) {
  return t->z_at + (c * t->mt + m) * CT_F32_TILE_UNITS;
}

/* Where the bias gradient of a column tile lies. */
static uint32_t db_row_at(const struct train *t, uint32_t l, uint32_t n) {
  return t->db_at + (ct_mlp_bias_tile(t->net, l) + n) * CT_F32_ROW_UNITS;
}

/* Everything stored so far is ready for the next products (and loads, if vl). A store of nothing
 * carries the signals: the last real one then looks like the others. */
static void stored(struct train *t, bool mm, bool for_vl) {
  vs(t, R_SCRATCH_VS, t->scratch_at, VS_F32, 1, 0, 0, mm ? CT_SEM(S_VS_MM) : 0,
     for_vl ? give_vl_token(t) : 0);
  t->mm_token |= mm;
}

/* ---- Products of forward and backward ---- */

/* Columns of tiles that a block has, of `tiles` in all: with bm rows 1, 2, 3 or 4 tiles, so that
 * blocks fit into the round of ACC tiles. */
static uint32_t block_columns(const struct train *t, uint32_t tiles) {
  uint32_t bn = t->blocks == 1 ? MOST_BLOCK / t->bm : 1;
  while (tiles % bn)
    bn /= 2;
  return bn;
}

/* One phase of products with a resident A and panels of weights as B. */
struct product {
  uint32_t l, a_at, steps, columns, bn; /* k steps, column tiles, columns of a block */
  bool backward;
};

static uint32_t panel_slot(const struct train *t, uint32_t i) {
  return t->panel_at + i % 2 * t->panel;
}

/* Weights of columns c0..c0+bn, k steps first..first+steps, into the panel being loaded. In
 * backward the columns are those of W, and a k step is a row of its tiles. The first load of
 * registers of each column gives the panel of the column before back. */
static void load_steps(struct train *t, const struct product *p, uint32_t c0, uint32_t first,
                       uint32_t steps) {
  const uint32_t kt = ct_mlp_in(t->net, p->l);
  const uint32_t per_column = p->backward ? 1 : kt, per_step = p->backward ? kt : 1;
  const uint32_t tile = ct_mlp_tile(t->net, p->l) + c0 * per_column + first * per_step;
  ld(t, CT_TRAIN_IMAGE, tile * CT_RECORD_UNITS, panel_slot(t, t->panel_i) + first * p->bn * CT_TILE,
     CT_TILE, p->bn, per_column * CT_RECORD_UNITS, CT_TILE, steps, per_step * CT_RECORD_UNITS,
     p->bn * CT_TILE, true, first ? 0 : turn_take(&t->panels), CT_SEM(S_LD_MM), 0);
}

/* The first panel of all comes together with the inputs, in pieces, so that the array starts early.
 */
static void load_weights(struct train *t, const struct product *p, uint32_t c0, bool with_inputs) {
  for (uint32_t k = 0, piece = with_inputs ? 1 : p->steps; k < p->steps; k += piece) {
    if (k >= 2) piece = k;
    piece = ct_min_u32(piece, p->steps - k);
    if (with_inputs)
      ld(t, CT_TRAIN_X, k * CT_RECORD_UNITS, tile_at(t, t->x_at[0], 0, k), CT_TILE, t->mt,
         p->steps * CT_RECORD_UNITS, CT_TILE, piece, CT_RECORD_UNITS, t->mt * CT_TILE, true, 0, 0,
         0);
    load_steps(t, p, c0, k, piece);
  }
}

/* Lets products wait until everything before has been stored: a product of one row that nobody
 * reads. (Waiting in the first real one would make it look different from the others.) */
static void gate(struct train *t) {
  if (!t->mm_token) return;
  t->mm_token = false;
  CT_ADD(&t->b, MM, CT_SET(MM_A, t->x_at[0]), CT_SET(MM_B, t->x_at[0]), CT_SET(MM_KT, 1),
         CT_SET(MM_NT, 1), CT_SET(MM_ROWS, 1), CT_SET(MM_ACC, ACC_NOBODY),
         CT_SET(ALL_WAIT1, CT_SEM(S_VS_MM)));
}

/* The SEM field with which a product waits for its `tiles` ACC tiles: for all of them or for none.
 */
static uint32_t acc_take(struct train *t, struct turn *acc, uint32_t tiles) {
  if (acc->fresh >= tiles) {
    acc->fresh -= tiles;
    return 0;
  }
  give_by_va(t, acc);
  return CT_SEM(acc->sem);
}

static void multiply(struct train *t, const struct product *p, uint32_t mb) {
  const uint32_t rows = ct_min_u32(t->batch - mb * t->bm * CT_TILE, t->bm * CT_TILE);
  const uint32_t wait = acc_take(t, &t->acc, t->bm * p->bn);
  CT_ADD(&t->b, MM, CT_SET(MM_A, tile_at(t, p->a_at, mb * t->bm, 0)), CT_SET(MM_AM, CT_TILE),
         CT_SET(MM_AK, t->mt * CT_TILE), CT_SET(MM_B, panel_slot(t, t->panel_i)),
         CT_SET(MM_B_TRANS, p->backward), CT_SET(MM_BN, CT_TILE), CT_SET(MM_BK, p->bn * CT_TILE),
         CT_SET(MM_KT, p->steps), CT_SET(MM_NT, p->bn), CT_SET(MM_ROWS, rows),
         CT_SET(MM_ACC, t->acc_i), CT_SET(MM_ACC_N, t->bm),
         CT_SET(ALL_WAIT0, mb == 0 ? CT_SEM(S_LD_MM) : 0), CT_SET(ALL_WAIT2, wait),
         CT_SET(ALL_SIG1, CT_SEM(S_MM_VA)));
}

/* The rounds of ACC tiles and result registers start over: all users are through. */
static void restart_rounds(struct train *t) {
  t->acc_i = t->out_i = 0;
}

static void next_block(struct train *t, const struct product *p) {
  t->acc_i = (t->acc_i + t->bm * p->bn) % t->outs;
}

/* ---- Forward ---- */

static void load_batch_words(struct train *t) {
  const uint32_t words = ct_mlp_bias_tile(t->net, t->net->layers) * CT_F32_ROW_UNITS;
  ld_words(t, CT_TRAIN_IMAGE, ct_mlp_bias_at(t->net), t->bias_at, words, CT_SEM(S_LD_VL));
  ld(t, CT_TRAIN_Y, 0, t->y_at, CT_TILE, t->ct, CT_RECORD_UNITS, CT_TILE, t->mt,
     t->ct * CT_RECORD_UNITS, t->ct * CT_TILE, true, 0, 0, CT_SEM(S_LD_VL));
  ld_words(t, CT_TRAIN_STATE, ct_mlp_bias_momentum_at(t->net), t->vb_at, words, CT_SEM(S_LD_VL));
  t->ld_tokens += 3;
}

/* Biases, targets, momentum of the biases; and signals in advance, so that the first column looks
 * like the others. */
static void start_forward(struct train *t) {
  load_batch_words(t);
  vl(t, R_TMP, t->bias_at, VL_F32, 1, take_ld_token(t), 0, 0, 0, 0);
  give_by_va(t, &t->acc);
  give_by_vs(t, &t->out);
  stored(t, false, true);
}

/* Biases of the block's columns, when the columns before are through. */
static void load_biases(struct train *t, const struct product *p, uint32_t c0) {
  for (uint32_t n = 0; n < p->bn; ++n) {
    const uint32_t at = t->bias_at + (ct_mlp_bias_tile(t->net, p->l) + c0 + n) * CT_F32_ROW_UNITS;
    vl(t, R_BIAS + n, at, VL_F32, 1, n == 0 ? take_vl_token(t) : 0, 0, 0,
       n + 1 == p->bn ? CT_SEM(S_VL_VA) : 0, n == 0 ? CT_SEM(S_VL_LD) : 0);
  }
}

static void forward_tile(struct train *t, const struct product *p, uint32_t mb, uint32_t c0,
                         uint32_t i) {
  const bool last_layer = p->l + 1 == t->net->layers;
  const uint32_t n = i / t->bm, m = mb * t->bm + i % t->bm, c = c0 + n;
  const bool last = mb + 1 == t->blocks && i + 1 == t->bm * p->bn;
  const unsigned reg = R_OUT + t->out_i++ % t->outs;
  struct va v = va_op(reg, t->acc_i + i);
  v.a = 1;
  v.c = 2;
  v.tq = R_BIAS + n;
  v.relu = !last_layer;
  v.rows = rows_in(t, m);
  v.cols = ct_in_tile(t->net->width[p->l + 1], c);
  v.wait0 = CT_SEM(S_MM_VA);
  v.wait1 = turn_take(&t->out);
  v.wait2 = mb == 0 && i == 0 ? CT_SEM(S_VL_VA) : 0;
  v.sig0 = CT_SEM(S_VA_VS);
  v.sig1 = CT_SEM(S_VA_MM);
  va_add(t, &v);
  vs(t, reg, last_layer ? z_tile_at(t, m, c) : tile_at(t, t->x_at[p->l + 1], m, c),
     last_layer ? VS_F32 : VS_SQUARE, CT_TILE, CT_SEM(S_VA_VS), 0, CT_SEM(S_VS_VA),
     last ? give_vl_token(t) : 0);
}

static void forward(struct train *t, uint32_t l) {
  struct product p = {
      .l = l, .a_at = t->x_at[l], .steps = ct_mlp_in(t->net, l), .columns = ct_mlp_out(t->net, l)};
  p.bn = block_columns(t, p.columns);
  restart_rounds(t);
  gate(t);
  for (uint32_t c0 = 0; c0 < p.columns; c0 += p.bn) {
    load_weights(t, &p, c0, l == 0 && c0 == 0);
    if (l == 0 && c0 == 0) start_forward(t);
    load_biases(t, &p, c0);
    for (uint32_t mb = 0; mb < t->blocks; ++mb) {
      multiply(t, &p, mb);
      for (uint32_t i = 0; i < t->bm * p.bn; ++i)
        forward_tile(t, &p, mb, c0, i);
      next_block(t, &p);
    }
    ++t->panel_i;
  }
  if (l + 1 < t->net->layers) stored(t, true, false);
}

/* ---- Softmax, loss ---- */

/* Loads a tile into the next register of the round. */
static unsigned load_tile(struct train *t, uint32_t spm, unsigned mode, uint32_t wait1) {
  const unsigned reg = next_load(t);
  vl(t, reg, spm, mode, CT_TILE, turn_take(&t->load), wait1, 0, CT_SEM(S_VL_VA), 0);
  return reg;
}

/* m = max over the row, into R_MAX. */
static void row_max(struct train *t, uint32_t m) {
  for (uint32_t c = 0; c < t->ct; ++c) {
    struct va v = va_op(c ? R_E : R_MAX, load_tile(t, z_tile_at(t, m, c), VL_F32, 0));
    v.rows = rows_in(t, m);
    v.cols = ct_in_tile(t->classes, c);
    v.ninf = 1;
    v.wait0 = CT_SEM(S_VL_VA);
    v.sig1 = CT_SEM(S_VA_VL);
    va_add(t, &v);
    if (c == 0) continue;
    struct va w = va_with(R_MAX, R_MAX, R_E);
    w.fn = FN_MAX;
    va_add(t, &w);
  }
  reduce(t, R_MAX, R_E, false, FN_MAX, R_MAX, 0, 0);
}

/* td = func(z - m), where the tile exists. */
static struct va minus_max(struct train *t, unsigned td, unsigned z, uint32_t m, uint32_t c,
                           unsigned func) {
  struct va v = va_with(td, z, R_MAX);
  v.neg_c = 1;
  v.func = func;
  v.rows = rows_in(t, m);
  v.cols = ct_in_tile(t->classes, c);
  return v;
}

/* s = sum of e, then r and l. exp() is never -0, so the first tile needs no addition to +0. */
static void row_sum(struct train *t, uint32_t m) {
  for (uint32_t c = 0; c < t->ct; ++c) {
    struct va v = minus_max(t, c ? R_E : R_EXPSUM, load_tile(t, z_tile_at(t, m, c), VL_F32, 0), m,
                            c, FUNC_EXP);
    v.wait0 = CT_SEM(S_VL_VA);
    v.sig1 = CT_SEM(S_VA_VL);
    va_add(t, &v);
    if (c == 0) continue;
    const struct va w = va_with(R_EXPSUM, R_EXPSUM, R_E);
    va_add(t, &w);
  }
  reduce(t, R_EXPSUM, R_E, false, FN_ADD, R_EXPSUM, 0, 0);
  struct va r = va_op(R_RECIP, R_EXPSUM), log = va_op(R_LOG, R_EXPSUM);
  r.func = FUNC_RECIP;
  log.func = FUNC_LOG;
  va_add(t, &r);
  va_add(t, &log);
}

/* g = (e * r - y) / batch of one tile. */
static void gradient(struct train *t, unsigned z, unsigned y, uint32_t m, uint32_t c,
                     unsigned out) {
  struct va e = minus_max(t, R_E, z, m, c, FUNC_EXP);
  e.wait0 = CT_SEM(S_VL_VA);
  va_add(t, &e);
  struct va p = va_op(R_E, R_E);
  p.b = 1;
  p.tq = R_RECIP;
  va_add(t, &p);
  struct va g0 = va_with(R_E, R_E, y);
  g0.neg_c = 1;
  g0.wait0 = CT_SEM(S_VL_VA);
  va_add(t, &g0);
  struct va g = va_op(out, R_E);
  g.b = 3;
  g.scalar = CT_TRAIN_INV;
  g.rows = rows_in(t, m);
  g.cols = ct_in_tile(t->classes, c);
  g.wait0 = turn_take(&t->sum);
  g.sig0 = CT_SEM(S_VA_VS);
  va_add(t, &g);
}

/* Adds (l - d) * y of one tile to the row's loss. */
static void loss_terms(struct train *t, unsigned z, unsigned y, uint32_t m, uint32_t c) {
  struct va d = minus_max(t, R_D, z, m, c, 0);
  d.sig1 = CT_SEM(S_VA_VL);
  va_add(t, &d);
  struct va u = va_with(R_D, R_LOG, R_D);
  u.neg_c = 1;
  va_add(t, &u);
  struct va w = va_op(R_D, R_D);
  w.b = 1;
  w.tq = y;
  w.rows = rows_in(t, m);
  w.cols = ct_in_tile(t->classes, c);
  w.sig1 = CT_SEM(S_VA_VL);
  va_add(t, &w);
  struct va sum = va_with(R_ROWLOSS, R_ROWLOSS, R_D);
  if (c == 0) sum.a = 2;
  va_add(t, &sum);
}

static void row_gradients(struct train *t, uint32_t m) {
  for (uint32_t c = 0; c < t->ct; ++c) {
    const unsigned z = load_tile(t, z_tile_at(t, m, c), VL_F32, 0);
    const unsigned y = load_tile(t, t->y_at + (m * t->ct + c) * CT_TILE, VL_HBFP8, 0);
    gradient(t, z, y, m, c, R_OUT);
    loss_terms(t, z, y, m, c);
    vs(t, R_OUT, z_tile_at(t, m, c), VS_F32, CT_TILE, CT_SEM(S_VA_VS), 0, 0, 0);
    vs(t, R_OUT, tile_at(t, t->dz_at[t->net->layers - 1], m, c), VS_SQUARE, CT_TILE, 0, 0,
       CT_SEM(S_VS_VA_SUM), 0);
  }
  reduce(t, R_ROWLOSS, R_D, false, FN_ADD, R_ROWLOSS, 0, 0);
  const struct va sum = va_with(R_LOSS, R_LOSS, R_ROWLOSS);
  va_add(t, &sum);
}

/* Waits for the logits and the targets, gives the last panel back, starts the batch's loss from +0.
 */
static void start_softmax(struct train *t) {
  const uint32_t logits = take_vl_token(t);
  vl(t, R_TMP, t->y_at, VL_F32, 1, logits, take_ld_token(t), 0, CT_SEM(S_VL_VA), 0);
  give_by_va(t, &t->load);
  give_by_vs(t, &t->sum);
  struct va zero = va_op(R_LOSS, 0);
  zero.a = 2;
  zero.wait0 = CT_SEM(S_VL_VA);
  va_add(t, &zero);
}

static void softmax(struct train *t) {
  start_softmax(t);
  for (uint32_t m = 0; m < t->mt; ++m) {
    row_max(t, m);
    row_sum(t, m);
    row_gradients(t, m);
  }
  stored(t, false, true);
  reduce(t, R_LOSS, R_D, true, FN_ADD, R_OUT, turn_take(&t->sum), CT_SEM(S_VA_VS));
  vs(t, R_OUT, t->loss_at, VS_F32, 1, CT_SEM(S_VA_VS), 0, CT_SEM(S_VS_VA_SUM), CT_SEM(S_VS_ST));
  st_words(t, CT_TRAIN_LOSS, 0, t->loss_at, 1, CT_SEM(S_VS_ST), 0);
}

/* Adds a tile of gradients to the partial sums of its column. */
static void add_to_sum(struct train *t, unsigned sum, unsigned tile, bool first, uint32_t wait,
                       uint32_t sig0, uint32_t sig1) {
  struct va v = va_with(sum, sum, tile);
  if (first) v.a = 2;
  v.wait0 = wait;
  v.sig0 = sig0;
  v.sig1 = sig1;
  va_add(t, &v);
}

/* Partial sums of rows to the bias gradient of a column tile. */
static void finish_sum(struct train *t, unsigned sum, uint32_t l, uint32_t n) {
  reduce(t, sum, R_TMP, true, FN_ADD, R_DB, turn_take(&t->sum), CT_SEM(S_VA_VS));
  vs(t, R_DB, db_row_at(t, l, n), VS_F32, 1, CT_SEM(S_VA_VS), 0, CT_SEM(S_VS_VA_SUM), 0);
}

/* Bias sums of the last layer. */
static void last_bias_sums(struct train *t) {
  for (uint32_t c = 0; c < t->ct; ++c) {
    for (uint32_t m = 0; m < t->mt; ++m)
      add_to_sum(t, R_SUM, load_tile(t, z_tile_at(t, m, c), VL_F32, take_vl_token(t)), m == 0,
                 CT_SEM(S_VL_VA), 0, CT_SEM(S_VA_VL));
    finish_sum(t, R_SUM, t->net->layers - 1, c);
  }
  stored(t, true, true);
}

/* ---- Backward ---- */

/* Signs of X(l) for the block's tiles, when the block before has read its own. */
static void load_signs(struct train *t, const struct product *p, uint32_t mb, uint32_t c0) {
  for (uint32_t i = 0; i < t->bm * p->bn; ++i) {
    const uint32_t at = tile_at(t, t->x_at[p->l], mb * t->bm + i % t->bm, c0 + i / t->bm);
    vl(t, R_LOAD + i, at, VL_SIGN, CT_TILE, i == 0 ? take_vl_token(t) : 0, 0, 0, CT_SEM(S_VL_VA),
       i == 0 && mb == 0 ? CT_SEM(S_VL_LD) : 0);
  }
}

static void backward_block(struct train *t, const struct product *p, uint32_t mb, uint32_t c0) {
  const uint32_t tiles = t->bm * p->bn, out_i = t->out_i;
  for (uint32_t i = 0; i < tiles; ++i) {
    struct va v = va_with(R_OUT + (out_i + i) % t->outs, t->acc_i + i, R_LOAD + i);
    v.a = 1;
    v.fn = FN_SELECT;
    v.rows = rows_in(t, mb * t->bm + i % t->bm);
    v.cols = ct_in_tile(t->net->width[p->l], c0 + i / t->bm);
    v.wait0 = CT_SEM(S_MM_VA);
    v.wait1 = turn_take(&t->out);
    v.wait2 = CT_SEM(S_VL_VA);
    v.sig0 = CT_SEM(S_VA_MM);
    va_add(t, &v);
  }
  for (uint32_t i = 0; i < tiles; ++i) {
    const uint32_t n = i / t->bm, m = mb * t->bm + i % t->bm;
    const unsigned reg = R_OUT + t->out_i++ % t->outs;
    add_to_sum(t, R_SUM + n, reg, m == 0, 0, CT_SEM(S_VA_VS), 0);
    vs(t, reg, tile_at(t, t->dz_at[p->l - 1], m, c0 + n), VS_SQUARE, CT_TILE, CT_SEM(S_VA_VS), 0,
       CT_SEM(S_VS_VA), i == 0 ? give_vl_token(t) : 0);
  }
}

static void backward(struct train *t, uint32_t l) {
  struct product p = {.l = l,
                      .a_at = t->dz_at[l],
                      .steps = ct_mlp_out(t->net, l),
                      .columns = ct_mlp_in(t->net, l),
                      .backward = true};
  p.bn = block_columns(t, p.columns);
  restart_rounds(t);
  gate(t);
  for (uint32_t c0 = 0; c0 < p.columns; c0 += p.bn) {
    load_weights(t, &p, c0, false);
    for (uint32_t mb = 0; mb < t->blocks; ++mb) {
      load_signs(t, &p, mb, c0);
      multiply(t, &p, mb);
      backward_block(t, &p, mb, c0);
      next_block(t, &p);
    }
    for (uint32_t n = 0; n < p.bn; ++n)
      finish_sum(t, R_SUM + n, l - 1, c0 + n);
    ++t->panel_i;
  }
  stored(t, true, l == 1);
}

/* ---- Biases ---- */

/* t = g, v = v * mu + t, b = v * -lr + b, sixteen column tiles at a time (one a row). The momentum
 * is loaded first: the sums may still be on their way. */
static void biases(struct train *t) {
  const uint32_t columns = ct_mlp_bias_tile(t->net, t->net->layers),
                 words = columns * CT_F32_ROW_UNITS;
  for (uint32_t c = 0; c < columns; c += CT_TILE) {
    const uint32_t rows = ct_min_u32(CT_TILE, columns - c), at = c * CT_F32_ROW_UNITS;
    const unsigned v = next_load(t), g = next_load(t), b = next_load(t);
    const unsigned v_new = R_OUT + t->out_i++ % t->outs, b_new = R_OUT + t->out_i++ % t->outs;
    const bool last = c + CT_TILE >= columns;
    vl(t, v, t->vb_at + at, VL_F32, rows, turn_take(&t->load), take_vl_token(t), take_ld_token(t),
       0, 0);
    vl(t, g, t->db_at + at, VL_F32, rows, turn_take(&t->load), take_vl_token(t), 0, CT_SEM(S_VL_VA),
       0);
    vl(t, b, t->bias_at + at, VL_F32, rows, turn_take(&t->load), 0, 0, CT_SEM(S_VL_VA), 0);
    struct va momentum = va_with(v_new, v, g);
    momentum.b = 3;
    momentum.scalar = CT_TRAIN_MU;
    momentum.rows = rows;
    momentum.wait0 = CT_SEM(S_VL_VA);
    momentum.wait1 = turn_take(&t->out);
    momentum.sig0 = CT_SEM(S_VA_VS);
    momentum.sig1 = CT_SEM(S_VA_VL);
    va_add(t, &momentum);
    struct va value = va_with(b_new, v_new, b);
    value.b = 3;
    value.scalar = CT_TRAIN_NEG_LR;
    value.rows = rows;
    value.wait0 = CT_SEM(S_VL_VA);
    value.wait1 = turn_take(&t->out);
    value.sig0 = CT_SEM(S_VA_VS);
    value.sig1 = CT_SEM(S_VA_VL);
    va_add(t, &value);
    struct va third = va_op(R_SCRATCH_VA, 0); /* three registers were read */
    third.a = 2;
    third.rows = 1;
    third.sig0 = CT_SEM(S_VA_VL);
    va_add(t, &third);
    vs(t, v_new, t->vb_at + at, VS_F32, rows, CT_SEM(S_VA_VS), 0, CT_SEM(S_VS_VA), 0);
    vs(t, b_new, t->bias_at + at, VS_F32, rows, CT_SEM(S_VA_VS), 0, CT_SEM(S_VS_VA),
       last ? CT_SEM(S_VS_ST) : 0);
  }
  st_words(t, CT_TRAIN_IMAGE, ct_mlp_bias_at(t->net), t->bias_at, words, CT_SEM(S_VS_ST), NULL);
  st_words(t, CT_TRAIN_STATE, ct_mlp_bias_momentum_at(t->net), t->vb_at, words, 0, &t->out_slots);
}

/* ---- Update ---- */

/* Up to four neighbouring weight tiles of a column (down) or of a row of W. */
struct unit {
  uint32_t l, n, k, tiles;
  bool down;
  uint32_t in, out, acc; /* slots, first ACC tile */
};

static uint32_t unit_n(const struct unit *u, uint32_t i) {
  return u->n + (u->down ? i : 0);
}

static uint32_t unit_k(const struct unit *u, uint32_t i) {
  return u->k + (u->down ? 0 : i);
}

/* Number of the unit's tile i in the model. */
static uint32_t unit_tile(const struct train *t, const struct unit *u, uint32_t i) {
  return ct_mlp_tile(t->net, u->l) + unit_n(u, i) * ct_mlp_in(t->net, u->l) + unit_k(u, i);
}

static void load_unit(struct train *t, const struct unit *u) {
  ld(t, CT_TRAIN_STATE, unit_tile(t, u, 0) * STATE_UNITS, u->in, STATE_UNITS, 1, 0, 0, u->tiles,
     (u->down ? ct_mlp_in(t->net, u->l) : 1) * STATE_UNITS, STATE_UNITS, false,
     turn_take(&t->in_slots), CT_SEM(S_LD_VL), 0);
}

static void multiply_unit(struct train *t, const struct unit *u) {
  const uint32_t wait = acc_take(t, &t->acc_upd, u->tiles);
  CT_ADD(&t->b, MM, CT_SET(MM_A, tile_at(t, t->dz_at[u->l], 0, u->n)), CT_SET(MM_A_TRANS, 1),
         CT_SET(MM_AM, t->mt * CT_TILE), CT_SET(MM_AK, CT_TILE),
         CT_SET(MM_B, tile_at(t, t->x_at[u->l], 0, u->k)), CT_SET(MM_B_TRANS, 1),
         CT_SET(MM_BN, t->mt * CT_TILE), CT_SET(MM_BK, CT_TILE), CT_SET(MM_KT, t->mt),
         CT_SET(MM_NT, u->down ? 1 : u->tiles),
         CT_SET(MM_ROWS, u->down ? u->tiles * CT_TILE : CT_TILE), CT_SET(MM_ACC, u->acc),
         CT_SET(MM_ACC_N, 1), CT_SET(ALL_WAIT2, wait), CT_SET(ALL_SIG1, CT_SEM(S_MM_VA)));
}

/* t = w * wd + g, v = v * mu + t, w = v * -lr + w of tile i of the unit. */
static void update_tile(struct train *t, const struct unit *u, uint32_t i) {
  const unsigned v = next_load(t), w = next_load(t), g = R_GRAD + i;
  const unsigned v_new = next_out(t), w_new = next_out(t);
  const bool last = i + 1 == u->tiles;
  const uint32_t tile = unit_tile(t, u, i), in = u->in + i * STATE_UNITS;
  const uint32_t out = u->out + i * OUT_UNITS;
  vl(t, v, in, VL_F32, CT_TILE, turn_take(&t->load), CT_SEM(S_LD_VL), 0, 0, 0);
  vl(t, w, in + CT_F32_TILE_UNITS, VL_F32, CT_TILE, turn_take(&t->load), 0, 0, CT_SEM(S_VL_VA),
     last ? CT_SEM(S_VL_LD_SLOT) : 0);
  struct va decay = va_with(g, w, g);
  decay.b = 3;
  decay.scalar = CT_TRAIN_WD;
  decay.wait0 = CT_SEM(S_VL_VA);
  va_add(t, &decay);
  struct va momentum = va_with(v_new, v, g);
  momentum.b = 3;
  momentum.scalar = CT_TRAIN_MU;
  momentum.rows = ct_in_tile(t->net->width[u->l + 1], unit_n(u, i));
  momentum.cols = ct_in_tile(t->net->width[u->l], unit_k(u, i));
  momentum.wait0 = turn_take(&t->out);
  momentum.sig0 = CT_SEM(S_VA_VS);
  momentum.sig1 = CT_SEM(S_VA_VL);
  va_add(t, &momentum);
  struct va value = va_with(w_new, v_new, w);
  value.b = 3;
  value.scalar = CT_TRAIN_NEG_LR;
  value.rows = momentum.rows;
  value.cols = momentum.cols;
  value.wait0 = turn_take(&t->out);
  value.sig0 = CT_SEM(S_VA_VS);
  value.sig1 = CT_SEM(S_VA_VL);
  va_add(t, &value);
  vs(t, v_new, out, VS_F32, CT_TILE, CT_SEM(S_VA_VS), i == 0 ? turn_take(&t->out_slots) : 0,
     CT_SEM(S_VS_VA), 0);
  vs(t, w_new, out + CT_F32_TILE_UNITS, VS_F32, CT_TILE, CT_SEM(S_VA_VS), 0, 0, 0);
  vs(t, w_new, out + STATE_UNITS, VS_SQUARE, CT_TILE, 0, 0, CT_SEM(S_VS_VA), CT_SEM(S_VS_ST));
  CT_ADD(&t->b, ST, CT_SET(DMA_DRAM, tile * STATE_UNITS), CT_SET(DMA_DRAM_REG, CT_TRAIN_STATE),
         CT_SET(DMA_SPM, out), CT_SET(DMA_NB, STATE_UNITS), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1),
         CT_SET(DMA_N2, 1), CT_SET(ALL_WAIT1, CT_SEM(S_VS_ST)));
  CT_ADD(&t->b, ST, CT_SET(DMA_DRAM, tile * CT_RECORD_UNITS), CT_SET(DMA_DRAM_REG, CT_TRAIN_IMAGE),
         CT_SET(DMA_SPM, out + STATE_UNITS), CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, CT_TILE),
         CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
         CT_SET(ALL_SIG1, last ? CT_SEM(S_ST_VS) : 0));
}

/* Units take turns with two slots. A product waits until all but the last four gradients have been
 * taken out of ACC. So a full unit may use the tiles of the one before; behind a smaller one the
 * other four come; single tiles go round. */
static void update_unit(struct train *t, struct unit *u, bool single) {
  const uint32_t i = t->unit_i++;
  u->in = t->in_at + i % SLOTS * t->unit * STATE_UNITS;
  u->out = t->out_at + i % SLOTS * t->unit * OUT_UNITS;
  u->acc = ACC_UPD + t->acc_upd_i;
  if (single)
    t->acc_upd_i = t->acc_upd_i + 1 < t->unit ? t->acc_upd_i + 1 : 0;
  else if (u->tiles < t->unit)
    t->acc_upd_i = t->unit - t->acc_upd_i;
  load_unit(t, u);
  multiply_unit(t, u);
  struct va g = va_op(R_GRAD, u->acc);
  g.a = 1;
  g.more = u->tiles - 1;
  g.wait0 = CT_SEM(S_MM_VA);
  g.sig0 = CT_SEM(S_VA_MM_UPD);
  va_add(t, &g);
  for (uint32_t j = 0; j < u->tiles; ++j)
    update_tile(t, u, j);
}

/* From here on four result registers go round: if it was fewer, the others' users must be through.
 */
static void start_updates(struct train *t) {
  if (t->outs != R_LOADS) {
    vs(t, R_SCRATCH_VS, t->scratch_at, VS_F32, 1, 0, 0, give_vl_token(t), 0);
    t->out_i = 0;
  }
  give_by_va(t, &t->acc_upd);
  give_by_vl(t, &t->in_slots, R_TMP, take_vl_token(t));
}

/* How badly units fit into lines of that many tiles: what is left over shifts the rounds, and the
 * program becomes longer, for loops then have to take several lines together. */
static unsigned misfit(const struct train *t, uint32_t length) {
  return length % t->unit == 0 ? 0 : length % 2 == 0 ? 1 : 2;
}

/* By columns of W or by rows, as units fit better. Columns are the better choice otherwise, for the
 * product of a unit then needs each tile of X once. */
static bool goes_down(const struct train *t, uint32_t nt, uint32_t kt) {
  const unsigned column = misfit(t, nt), row = misfit(t, kt);
  return column < row || (column == row && nt >= t->unit);
}

/* Another layer may go round in ACC in another way, so its products wait until all gradients of the
 * one before have been taken out: a product of one row that nobody reads takes all signals, a k
 * step each, and VA gives as many anew. */
static void next_layer(struct train *t) {
  t->acc_upd_i = 0;
  if (t->acc_upd.fresh == t->unit) return; /* the first layer of this job */
  give_by_va(t, &t->acc_upd);
  CT_ADD(&t->b, MM, CT_SET(MM_A, t->x_at[0]), CT_SET(MM_B, t->x_at[0]), CT_SET(MM_KT, t->unit),
         CT_SET(MM_NT, 1), CT_SET(MM_ROWS, 1), CT_SET(MM_ACC, ACC_NOBODY),
         CT_SET(ALL_WAIT0, CT_SEM(S_VA_MM_UPD)));
  t->acc_upd.fresh = t->unit;
  give_by_va(t, &t->acc_upd);
}

static void update(struct train *t, uint32_t l) {
  if (l == 0)
    start_updates(t);
  else
    next_layer(t);
  gate(t);
  const uint32_t kt = ct_mlp_in(t->net, l), nt = ct_mlp_out(t->net, l);
  const bool down = goes_down(t, nt, kt);
  const uint32_t lines = down ? kt : nt, length = down ? nt : kt;
  for (uint32_t line = 0; line < lines; ++line) {
    for (uint32_t at = 0; at < length; at += t->unit) {
      struct unit u = {.l = l,
                       .n = down ? at : line,
                       .k = down ? line : at,
                       .tiles = ct_min_u32(t->unit, length - at),
                       .down = down};
      update_unit(t, &u, length == 1);
    }
  }
}

/* ---- All ---- */

/* Row tiles of a block: the most, up to 4, that divide the batch's. */
static uint32_t block_rows(uint32_t mt) {
  uint32_t bm = MOST_BLOCK;
  while (mt % bm)
    --bm;
  return bm;
}

static uint32_t place(struct train *t, uint32_t words) {
  const uint32_t at = t->words;
  t->words += words;
  return at;
}

/* The largest panel of all phases, and the most k steps. */
static void size_panels(struct train *t, uint32_t *steps) {
  t->panel = *steps = 0;
  for (uint32_t l = 0; l < t->net->layers; ++l) {
    const uint32_t kt = ct_mlp_in(t->net, l), nt = ct_mlp_out(t->net, l);
    const uint32_t forward = kt * block_columns(t, nt),
                   backward = l ? nt * block_columns(t, kt) : 0;
    const uint32_t most = forward > backward ? forward : backward;
    if (most * CT_TILE > t->panel) t->panel = most * CT_TILE;
    if (kt > *steps) *steps = kt;
    if (l && nt > *steps) *steps = nt;
  }
}

static int plan(struct train *t, const struct ct_train *shape, const struct ct_why *why) {
  const struct ct_mlp *net = t->net;
  const uint32_t biases = ct_mlp_bias_tile(net, net->layers) * CT_F32_ROW_UNITS;
  uint32_t steps;
  t->mt = ct_tiles(t->batch);
  t->bm = block_rows(t->mt);
  t->blocks = t->mt / t->bm;
  t->outs = t->bm == 3 ? 3 : MOST_BLOCK;
  t->classes = net->width[net->layers];
  t->ct = ct_tiles(t->classes);
  size_panels(t, &steps);
  if (steps > MOST_SIGNALS)
    return ct_why(why, CT_ERR_NO_SPACE, "training takes layers of up to %d units",
                  MOST_SIGNALS * CT_TILE);
  for (uint32_t l = 0; l < net->layers; ++l) {
    t->x_at[l] = place(t, ct_mlp_in(net, l) * t->mt * CT_TILE);
    t->dz_at[l] = place(t, ct_mlp_out(net, l) * t->mt * CT_TILE);
  }
  t->z_at = place(t, t->ct * t->mt * CT_F32_TILE_UNITS);
  t->y_at = place(t, t->ct * t->mt * CT_TILE);
  t->bias_at = place(t, biases);
  t->vb_at = place(t, biases);
  t->db_at = place(t, biases);
  t->loss_at = place(t, CT_F32_ROW_UNITS);
  t->scratch_at = place(t, CT_F32_ROW_UNITS);
  t->panel_at = place(t, 2 * t->panel);
  t->unit = MOST_UNIT;
  while (t->unit > 1 && t->words + SLOTS * t->unit * (STATE_UNITS + OUT_UNITS) > shape->spm_words)
    t->unit /= 2;
  t->in_at = place(t, SLOTS * t->unit * STATE_UNITS);
  t->out_at = place(t, SLOTS * t->unit * OUT_UNITS);
  t->panels.fresh = 2 * steps <= MOST_SIGNALS ? 1 : 0;
  if (t->words <= shape->spm_words) return CT_OK;
  return ct_why(
      why, CT_ERR_NO_SPACE,
      "a step of %u rows needs %u words of scratchpad, the window has %u: try a smaller batch",
      t->batch, t->words, shape->spm_words);
}

/* At the start of a job nothing is under way. */
static void start_job(struct train *t, uint32_t panels) {
  t->panels = (struct turn){S_VL_LD, panels};
  t->acc = (struct turn){S_VA_MM, t->outs};
  t->acc_upd = (struct turn){S_VA_MM_UPD, t->unit};
  t->out = (struct turn){S_VS_VA, t->outs};
  t->load = (struct turn){S_VA_VL, R_LOADS};
  t->sum = (struct turn){S_VS_VA_SUM, 1};
  t->in_slots = (struct turn){S_VL_LD_SLOT, SLOTS};
  t->out_slots = (struct turn){S_ST_VS, SLOTS};
  t->panel_i = t->acc_i = t->acc_upd_i = t->load_i = t->out_i = t->unit_i = 0;
  t->vl_tokens = t->ld_tokens = 0;
  t->mm_token = false;
  ct_build_init(&t->b, CT_TRAIN_ARGS);
}

/* Phases by number, in program order: layers of forward, softmax with its bias sums, layers - 1 of
 * backward, biases, layers of update. */
static uint32_t phase_count(const struct train *t) {
  return 3 * t->net->layers + 1;
}

static void write_phase(struct train *t, uint32_t i) {
  const uint32_t layers = t->net->layers;
  if (i < layers) {
    forward(t, i);
  } else if (i == layers) {
    softmax(t);
    last_bias_sums(t);
  } else if (i < 2 * layers) {
    backward(t, 2 * layers - i);
  } else if (i == 2 * layers) {
    biases(t);
  } else {
    update(t, i - 2 * layers - 1);
  }
}

/* One job of the phases first..last-1. */
static int write_job(struct train *t, uint32_t first, uint32_t last, struct ct_code *code,
                     const struct ct_why *why) {
  start_job(t, t->panels.fresh);
  for (uint32_t i = first; i < last; ++i)
    write_phase(t, i);
  return ct_code_finish(&t->b, code, "a training step", why);
}

int ct_prog_train(const struct ct_train *shape, struct ct_code *code, const struct ct_why *why) {
  struct train t = {.net = shape->net, .batch = shape->batch};
  int err = ct_mlp_check(shape->net, why), jobs = 0;
  if (!err && shape->batch < 1) err = ct_why(why, CT_ERR_ARG, "a batch has at least one row");
  if (!err && shape->batch > 4095 * CT_TILE)
    err = ct_why(why, CT_ERR_NO_SPACE, "a batch of %u rows is too large", shape->batch);
  if (!err) err = plan(&t, shape, why);
  if (err) return err;
  const uint32_t phases = phase_count(&t), panels = t.panels.fresh;
  for (uint32_t first = 0, last = phases; first < phases; last = phases) {
    if (jobs == CT_TRAIN_JOBS) err = CT_ERR_NO_SPACE;
    for (; !err; --last) {
      t.panels.fresh = panels;
      err = write_job(&t, first, last, &code[jobs], why);
      if (err != CT_ERR_NO_SPACE || last == first + 1) break;
      err = CT_OK;
    }
    if (err) break;
    first = last;
    ++jobs;
  }
  for (int i = 0; err && i < jobs; ++i) {
    free(code[i].cmd);
    code[i].cmd = NULL;
  }
  return err ? err : jobs;
}
