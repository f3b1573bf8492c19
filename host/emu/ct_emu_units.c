/* SPDX-License-Identifier: Apache-2.0 */
/* What the six units do with a command, step by step. */
#include "ct_emu.h"

#include <string.h>

#include "ct_num.h"

enum { SPM_MASK = (1 << 20) - 1, RECORD_BEATS = 17, RUN_BEATS = 16 };

/* ---- Semaphores ---------------------------------------------------------------------------- */

/* Takes one of each semaphore that the SEM fields name, or none at all. */
static bool take(struct ct_emu_ctx *ctx, const uint32_t *fields, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (fields[i] & 16 && !ctx->sem[fields[i] & 15]) return false;
  for (unsigned i = 0; i < count; ++i)
    if (fields[i] & 16) --ctx->sem[fields[i] & 15];
  return true;
}

static void give(struct ct_emu_ctx *ctx, uint32_t field) {
  if (!(field & 16)) return;
  if (ctx->sem[field & 15] == 255)
    ct_emu_fail(ctx, CT_DEV_SEM, field & 15);
  else
    ++ctx->sem[field & 15];
}

static bool take_at_start(struct ct_emu_ctx *ctx, const struct ct_cmd *cmd) {
  const uint32_t waits[3] = {CT_GET(cmd, ALL_WAIT0), CT_GET(cmd, ALL_WAIT1),
                             CT_GET(cmd, ALL_WAIT2)};
  return take(ctx, waits, 3);
}

static void complete(struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  give(ctx, CT_GET(&q->cmd, ALL_SIG1));
  q->active = false;
}

/* ---- LD, ST -------------------------------------------------------------------------------- */

static bool load_run(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd,
                     uint32_t dram, uint32_t spm) {
  const uint32_t nb = CT_GET(cmd, DMA_NB), s0 = CT_GET(cmd, DMA_S0), hdr = CT_GET(cmd, DMA_HDR);
  uint8_t data[16 * (256 + 1)];
  if (!ct_emu_dram_read(emu, ctx, dram, nb + hdr, hdr ? RECORD_BEATS : RUN_BEATS, data))
    return false;
  const uint8_t *from = data + (hdr ? 16 : 0);
  for (uint32_t j = 0; j < nb; ++j, from += 16) {
    struct ct_emu_word word = {.e = hdr ? data[j] : 0};
    memcpy(word.q, from, 16);
    if (!ct_emu_spm_write(emu, ctx, (spm + j * s0) & SPM_MASK, &word)) return false;
  }
  return true;
}

static bool store_run(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd,
                      uint32_t dram, uint32_t spm) {
  const uint32_t nb = CT_GET(cmd, DMA_NB), s0 = CT_GET(cmd, DMA_S0), hdr = CT_GET(cmd, DMA_HDR);
  uint8_t data[16 * (256 + 1)] = {0};
  uint8_t *to = data + (hdr ? 16 : 0);
  for (uint32_t j = 0; j < nb; ++j, to += 16) {
    struct ct_emu_word word;
    if (!ct_emu_spm_read(emu, ctx, (spm + j * s0) & SPM_MASK, &word)) return false;
    if (hdr) data[j] = word.e;
    memcpy(to, word.q, 16);
  }
  return ct_emu_dram_write(emu, ctx, dram, nb + hdr, hdr ? RECORD_BEATS : RUN_BEATS, data);
}

/* One outer step: N1 runs. */
static bool dma_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q,
                     bool store) {
  const struct ct_cmd *cmd = &q->cmd;
  const uint32_t wait0 = CT_GET(cmd, ALL_WAIT0);
  if (q->step == 0 ? !take_at_start(ctx, cmd) : !take(ctx, &wait0, 1)) return false;
  uint32_t dram = CT_GET(cmd, DMA_DRAM) + q->step * (uint32_t)CT_GETS(cmd, DMA_D2);
  uint32_t spm = CT_GET(cmd, DMA_SPM) + q->step * (uint32_t)CT_GETS(cmd, DMA_S2);
  for (uint32_t i1 = 0; i1 < CT_GET(cmd, DMA_N1); ++i1) {
    if (!(store ? store_run : load_run)(emu, ctx, cmd, dram, spm & SPM_MASK)) return true;
    dram += (uint32_t)CT_GETS(cmd, DMA_D1);
    spm += (uint32_t)CT_GETS(cmd, DMA_S1);
  }
  give(ctx, CT_GET(cmd, ALL_SIG0));
  if (++q->step == CT_GET(cmd, DMA_N2)) complete(ctx, q);
  return true;
}

/* ---- MM ------------------------------------------------------------------------------------ */

/* 16 blocks of 16 elements and their exponents: rows of A, or of B. 16 bits a mantissa, because
 * compilers multiply and add those in vectors. */
struct blocks {
  int16_t q[16][16];
  uint8_t e[16];
};

/* Reads a tile: words 0..rows-1; all 16 of them, as columns, if it is transposed. */
static bool read_tile(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t rel, unsigned rows,
                      bool transpose, struct blocks *b) {
  struct ct_emu_word word;
  for (unsigned i = 0; i < (transpose ? 16 : rows); ++i) {
    const uint32_t at = (rel + i) & SPM_MASK;
    if (!ct_emu_spm_read(emu, ctx, at, &word)) return false;
    b->e[i] = word.e;
    if (transpose && word.e != b->e[0]) {
      ct_emu_fail(ctx, CT_DEV_SQUARE, CT_EMU_CREG(ctx, SPM_BASE) + at);
      return false;
    }
    for (unsigned j = 0; j < 16; ++j)
      *(transpose ? &b->q[j][i] : &b->q[i][j]) = (int16_t)(int)word.q[j];
  }
  return true;
}

static int32_t dot(const int16_t *a, const int16_t *b) {
  int32_t s = 0;
  for (unsigned i = 0; i < 16; ++i)
    s += a[i] * b[i];
  return s;
}

static void multiply(const struct blocks *a, const struct blocks *b, unsigned rows, bool fresh,
                     struct ct_emu_tile *acc) {
  for (unsigned r = 0; r < rows; ++r) {
    for (unsigned c = 0; c < 16; ++c) {
      const uint32_t p = ct_fp_term(dot(a->q[r], b->q[c]), a->e[r], b->e[c]);
      acc->x[r][c] = ct_fp_add(fresh ? 0 : acc->x[r][c], p);
    }
  }
}

/* Output tile (n, m) of k step q->step. */
static bool mm_tile(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  const struct ct_cmd *cmd = &q->cmd;
  const uint32_t left = CT_GET(cmd, MM_ROWS) - 16 * q->m, rows = left < 16 ? left : 16;
  const uint32_t k = q->step;
  const uint32_t a_at =
      CT_GET(cmd, MM_A) + q->m * (uint32_t)CT_GETS(cmd, MM_AM) + k * (uint32_t)CT_GETS(cmd, MM_AK);
  const uint32_t b_at =
      CT_GET(cmd, MM_B) + q->n * (uint32_t)CT_GETS(cmd, MM_BN) + k * (uint32_t)CT_GETS(cmd, MM_BK);
  struct blocks a, b;
  if (!read_tile(emu, ctx, b_at, 16, CT_GET(cmd, MM_B_TRANS), &b) ||
      !read_tile(emu, ctx, a_at, rows, CT_GET(cmd, MM_A_TRANS), &a))
    return false;
  const uint32_t tile = CT_GET(cmd, MM_ACC) + q->n * CT_GET(cmd, MM_ACC_N) + q->m;
  multiply(&a, &b, rows, k == 0 && !CT_GET(cmd, MM_ACCUM), &ctx->acc[tile]);
  ctx->cnt[CT_CNT_MXU_ROWS] += rows;
  ctx->result.rows += rows;
  return true;
}

/* One k step, or the part of it before an output tile whose semaphore is missing. */
static bool mm_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  const struct ct_cmd *cmd = &q->cmd;
  const uint32_t waits[2] = {CT_GET(cmd, ALL_WAIT0), CT_GET(cmd, ALL_WAIT1)};
  const uint32_t wait_tile = CT_GET(cmd, ALL_WAIT2);
  const uint32_t mt = (CT_GET(cmd, MM_ROWS) + 15) / 16;
  bool moved = false;
  if (!q->begun) {
    if (!take(ctx, waits, 2)) return false;
    q->begun = moved = true;
  }
  for (; q->n < CT_GET(cmd, MM_NT); ++q->n, q->m = 0) {
    for (; q->m < mt; ++q->m) {
      if (q->step == 0 && !take(ctx, &wait_tile, 1)) return moved;
      if (!mm_tile(emu, ctx, q)) return true;
      if (q->step + 1 == CT_GET(cmd, MM_KT)) give(ctx, CT_GET(cmd, ALL_SIG1));
      moved = true;
    }
  }
  give(ctx, CT_GET(cmd, ALL_SIG0));
  q->begun = false;
  q->n = 0;
  if (++q->step == CT_GET(cmd, MM_KT)) q->active = false;
  return true;
}

/* ---- VL, VS -------------------------------------------------------------------------------- */

static uint32_t word_f32(const struct ct_emu_word *word, size_t i) {
  const uint8_t *p = (const uint8_t *)word->q + 4 * i;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void word_set_f32(struct ct_emu_word *word, unsigned i, uint32_t x) {
  for (unsigned b = 0; b < 4; ++b)
    word->q[4 * i + b] = (int8_t)(x >> 8 * b);
}

static bool load_row(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t mode, uint32_t spm,
                     uint32_t *row) {
  struct ct_emu_word word;
  if (mode == 0) {
    for (unsigned i = 0; i < 16; ++i) {
      if (i % 4 == 0 && !ct_emu_spm_read(emu, ctx, (spm + i / 4) & SPM_MASK, &word)) return false;
      row[i] = word_f32(&word, i % 4);
    }
    return true;
  }
  if (!ct_emu_spm_read(emu, ctx, spm & SPM_MASK, &word)) return false;
  const bool empty = word.e == CT_EXP_ZERO || word.e == CT_EXP_NAN; /* every q counts as 0 */
  for (unsigned i = 0; i < 16; ++i)
    row[i] = mode == 1                 ? ct_hbfp8_dequant(word.q[i], word.e)
             : !empty && word.q[i] > 0 ? CT_FP_ONE
                                       : 0;
  return true;
}

/* The window is checked for the whole command at its start: rows of one word, or four. */
static bool rows_window(struct ct_emu_ctx *ctx, uint32_t spm, uint32_t rows, uint32_t stride,
                        uint32_t mode) {
  return ct_emu_spm_window(ctx, spm + (rows - 1) * stride + (mode == 0 ? 3 : 0));
}

static void vl(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd) {
  struct ct_emu_tile *td = &ctx->tile[CT_GET(cmd, VL_TD)];
  const uint32_t mode = CT_GET(cmd, VL_MODE), rows = CT_GET(cmd, VL_ROWS);
  const uint32_t spm = CT_GET(cmd, VL_SPM), stride = CT_GET(cmd, VL_ROW_STRIDE);
  if (!rows_window(ctx, spm, rows, stride, mode)) return;
  for (uint32_t r = 0; r < rows; ++r)
    if (!load_row(emu, ctx, mode, spm + r * stride, td->x[r])) return;
}

static bool store_f32(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t spm,
                      const uint32_t *row) {
  for (unsigned w = 0; w < 4; ++w) {
    struct ct_emu_word word = {.e = 0};
    for (unsigned i = 0; i < 4; ++i)
      word_set_f32(&word, i, row[4 * w + i]);
    if (!ct_emu_spm_write(emu, ctx, (spm + w) & SPM_MASK, &word)) return false;
  }
  return true;
}

static bool store_hbfp8(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t spm,
                        const uint32_t *row, uint8_t e) {
  struct ct_emu_word word = {.e = e};
  for (unsigned i = 0; i < 16; ++i)
    word.q[i] = ct_hbfp8_quant(row[i], e);
  return ct_emu_spm_write(emu, ctx, spm & SPM_MASK, &word);
}

static uint8_t group_exp(struct ct_emu_ctx *ctx, const uint32_t *x, size_t n) {
  const uint8_t e = ct_hbfp8_group_exp(x, n);
  ctx->cnt[CT_CNT_NAN_GROUPS] += e == CT_EXP_NAN;
  return e;
}

static void vs(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd) {
  const struct ct_emu_tile *ts = &ctx->tile[CT_GET(cmd, VS_TS)];
  const uint32_t mode = CT_GET(cmd, VS_MODE), rows = CT_GET(cmd, VS_ROWS);
  const uint32_t at = CT_GET(cmd, VS_SPM), stride = CT_GET(cmd, VS_ROW_STRIDE);
  if (!rows_window(ctx, at, rows, stride, mode)) return;
  const uint8_t square = mode == 2 ? group_exp(ctx, ts->x[0], (size_t)16 * rows) : 0;
  for (uint32_t r = 0; r < rows; ++r) {
    const uint32_t spm = at + r * stride;
    if (mode == 0) {
      if (!store_f32(emu, ctx, spm, ts->x[r])) return;
    } else {
      const uint8_t e = mode == 2 ? square : group_exp(ctx, ts->x[r], 16);
      if (!store_hbfp8(emu, ctx, spm, ts->x[r], e)) return;
    }
  }
}

/* ---- VA ------------------------------------------------------------------------------------ */

/* What a bypassed multiplication or addition makes of its operand. */
static uint32_t canonical(uint32_t x) {
  if ((x & ~CT_FP_SIGN) > CT_FP_INF) return CT_FP_NAN;
  return x & CT_FP_INF ? x : x & CT_FP_SIGN;
}

/* Operand b or c (src: BSrc, CSrc) of element (r, j). */
static uint32_t va_operand(const struct ct_emu_ctx *ctx, const struct ct_cmd *cmd, uint32_t src,
                           uint32_t scalar, unsigned r, unsigned j) {
  if (src == 3) return scalar;
  const unsigned row = (src == 2 ? 0 : r) ^ CT_GET(cmd, VA_ROW_XOR);
  return ctx->tile[CT_GET(cmd, VA_TQ)].x[row][j ^ CT_GET(cmd, VA_LANE_XOR)];
}

static uint32_t va_op(uint32_t fn, uint32_t t, uint32_t c) {
  switch (fn) {
    case 0:
      return ct_fp_add(t, c);
    case 1:
      return ct_fp_max(t, c);
    case 2:
      return ct_fp_min(t, c);
    default:
      return ct_fp_gt(c, 0) ? t : 0;
  }
}

static uint32_t va_func(uint32_t func, uint32_t x) {
  switch (func) {
    case 8:
      return ct_fn_exp(x);
    case 9:
      return ct_fn_recip(x);
    case 10:
      return ct_fn_log(x);
    default:
      return x;
  }
}

static uint32_t va_element(const struct ct_emu_ctx *ctx, const struct ct_cmd *cmd, unsigned r,
                           unsigned j) {
  const uint32_t a_src = CT_GET(cmd, VA_A_SRC), b_src = CT_GET(cmd, VA_B_SRC),
                 c_src = CT_GET(cmd, VA_C_SRC), ta = CT_GET(cmd, VA_TA);
  uint32_t y = a_src == 0 ? ctx->tile[ta].x[r][j] : a_src == 1 ? ctx->acc[ta].x[r][j] : 0;
  if (b_src)
    y = ct_fp_mul(y, va_operand(ctx, cmd, b_src, CT_GET(cmd, VA_SB), r, j));
  else
    y = canonical(y);
  if (c_src) {
    const uint32_t c = va_operand(ctx, cmd, c_src, CT_GET(cmd, VA_SC), r, j);
    y = va_op(CT_GET(cmd, VA_FN), y, CT_GET(cmd, VA_NEG_C) ? c ^ CT_FP_SIGN : c);
  }
  if (CT_GET(cmd, VA_RELU)) y = ct_fp_relu(y);
  return va_func(CT_GET(cmd, VA_FUNC), y);
}

static void va(struct ct_emu_ctx *ctx, const struct ct_cmd *cmd) {
  const uint32_t rows = CT_GET(cmd, VA_ROWS), cols = CT_GET(cmd, VA_COLS);
  const uint32_t pad = CT_GET(cmd, VA_PAD_NINF) ? CT_FP_SIGN | CT_FP_INF : 0;
  const unsigned written = CT_GET(cmd, VA_FULL) ? 16 : rows;
  struct ct_emu_tile y;
  for (unsigned r = 0; r < written; ++r)
    for (unsigned j = 0; j < 16; ++j)
      y.x[r][j] = r < rows && j < cols ? va_element(ctx, cmd, r, j) : pad;
  memcpy(ctx->tile[CT_GET(cmd, VA_TD)].x, y.x, written * sizeof y.x[0]);
}

/* ---- All ----------------------------------------------------------------------------------- */

static bool vpu_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q,
                     enum ct_emu_unit unit) {
  if (!take_at_start(ctx, &q->cmd)) return false;
  if (unit == CT_EMU_VL)
    vl(emu, ctx, &q->cmd);
  else if (unit == CT_EMU_VA)
    va(ctx, &q->cmd);
  else
    vs(emu, ctx, &q->cmd);
  if (ctx->failed) return true;
  give(ctx, CT_GET(&q->cmd, ALL_SIG0));
  complete(ctx, q);
  return true;
}

bool ct_emu_unit_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, enum ct_emu_unit unit) {
  struct ct_emu_queue *q = &ctx->queue[unit];
  bool moved = false;
  if (!q->active) {
    if (q->count == 0) return false;
    q->cmd = q->waiting[q->head];
    q->head = (q->head + 1) % CT_EMU_QUEUE;
    --q->count;
    q->active = moved = true;
    q->begun = false;
    q->step = q->n = q->m = 0;
  }
  switch (unit) {
    case CT_EMU_LD:
    case CT_EMU_ST:
      return dma_step(emu, ctx, q, unit == CT_EMU_ST) || moved;
    case CT_EMU_MM:
      return mm_step(emu, ctx, q) || moved;
    default:
      return vpu_step(emu, ctx, q, unit) || moved;
  }
}
