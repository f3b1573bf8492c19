/* SPDX-License-Identifier: Apache-2.0 */
/* What the six units do with a command, step by step. */
#include "ct_emu.h"

#include <string.h>

#include "ct_num.h"

/* Copies. Compilers make string instructions of those whose length they do not know, which take
 * long to start; the library's are faster, and moves faster still for the lengths that are most of
 * them: a row tile and its exponents. */

__attribute__((noinline)) static void copy_any(void *to, const void *from, size_t size) {
  memmove(to, from, size);
}

static inline void copy(void *to, const void *from, size_t size) {
  if (size == 256)
    memcpy(to, from, 256);
  else if (size == 16)
    memcpy(to, from, 16);
  else
    copy_any(to, from, size);
}

static inline void clear(uint8_t *bytes, uint32_t count) {
  static const uint8_t zeros[256];
  copy(bytes, zeros, count);
}

enum { NONE = CT_NUM_SEMS, SPM_MASK = (1 << 20) - 1, RECORD_BEATS = 17, RUN_BEATS = 16 };

/* ---- Semaphores ---------------------------------------------------------------------------- */

/* Takes one of each of these counters, or none at all. */
static inline bool take(struct ct_emu_ctx *ctx, unsigned n0, unsigned n1, unsigned n2) {
  uint8_t *const sem = ctx->sem;
  if (!sem[n0] || !sem[n1] || !sem[n2]) return false;
  --sem[n0];
  --sem[n1];
  --sem[n2];
  sem[CT_NUM_SEMS] = 1;
  return true;
}

static inline void give(struct ct_emu_ctx *ctx, unsigned n) {
  if (ctx->sem[n] == 255)
    ct_emu_fail(ctx, CT_DEV_SEM, n);
  else
    ++ctx->sem[n];
  ctx->sem[CT_NUM_SEMS] = 1;
}

static inline bool take_at_start(struct ct_emu_ctx *ctx, const struct ct_emu_queue *q) {
  return take(ctx, q->sems.wait[0], q->sems.wait[1], q->sems.wait[2]);
}

static void complete(struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  give(ctx, q->sems.sig[1]);
  q->cmd = NULL;
}

/* ---- LD, ST -------------------------------------------------------------------------------- */

static bool load_run(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd,
                     uint32_t dram, uint32_t spm) {
  const uint32_t nb = CT_GET(cmd, DMA_NB), s0 = CT_GET(cmd, DMA_S0), hdr = CT_GET(cmd, DMA_HDR);
  const uint8_t *data = ct_emu_dram_read(emu, ctx, dram, nb + hdr, hdr ? RECORD_BEATS : RUN_BEATS);
  if (!data) return false;
  const uint8_t *from = data + (hdr ? 16 : 0);
  uint32_t at;
  if (s0 == 1 && ct_emu_spm_together(emu, ctx, spm, nb, &at)) {
    copy(emu->spm_q[at], from, (size_t)16 * nb);
    if (hdr)
      copy(emu->spm_e + at, data, nb);
    else
      clear(emu->spm_e + at, nb);
    return true;
  }
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
  uint8_t data[16 * (256 + 1)];
  uint8_t *to = data + (hdr ? 16 : 0);
  uint32_t at;
  if (!hdr && s0 == 1 && ct_emu_spm_together(emu, ctx, spm, nb, &at))
    return ct_emu_dram_write(emu, ctx, dram, nb, RUN_BEATS, (const uint8_t *)emu->spm_q[at]);
  if (hdr) memset(data, 0, 16);
  if (hdr && s0 == 1 && ct_emu_spm_together(emu, ctx, spm, nb, &at)) {
    copy(data, emu->spm_e + at, nb);
    copy(to, emu->spm_q[at], (size_t)16 * nb);
    return ct_emu_dram_write(emu, ctx, dram, nb + 1, RECORD_BEATS, data);
  }
  for (uint32_t j = 0; j < nb; ++j, to += 16) {
    struct ct_emu_word word;
    if (!ct_emu_spm_read(emu, ctx, (spm + j * s0) & SPM_MASK, &word)) return false;
    if (hdr) data[j] = word.e;
    memcpy(to, word.q, 16);
  }
  return ct_emu_dram_write(emu, ctx, dram, nb + hdr, hdr ? RECORD_BEATS : RUN_BEATS, data);
}

/* Where outer step number q->step begins: with Gather, at its request's address. */
static uint32_t dma_base(const struct ct_emu *emu, const struct ct_emu_ctx *ctx,
                         const struct ct_emu_queue *q, bool store) {
  const uint32_t dram = CT_GET(q->cmd, DMA_DRAM);
  if (!CT_GET(q->cmd, DMA_GATHER)) return dram + q->step * (uint32_t)CT_GETS(q->cmd, DMA_D2);
  const struct ct_emu_request *r = &emu->batcher.request[ctx->batch_place[q->step]];
  return dram + (store ? r->output : r->input);
}

/* The runs of an outer step; false: the job has failed. */
static bool dma_runs(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q,
                     bool store) {
  const struct ct_cmd *cmd = q->cmd;
  uint32_t dram = dma_base(emu, ctx, q, store);
  uint32_t spm = CT_GET(cmd, DMA_SPM) + q->step * (uint32_t)CT_GETS(cmd, DMA_S2);
  if (CT_GET(cmd, DMA_COMP)) {
    (store ? ct_emu_comp_store : ct_emu_comp_load)(emu, ctx, q);
    return !ctx->failed;
  }
  for (uint32_t i1 = 0; i1 < CT_GET(cmd, DMA_N1); ++i1) {
    if (!(store ? store_run : load_run)(emu, ctx, cmd, dram, spm & SPM_MASK)) return false;
    dram += (uint32_t)CT_GETS(cmd, DMA_D1);
    spm += (uint32_t)CT_GETS(cmd, DMA_S1);
  }
  return true;
}

/* One outer step. */
static bool dma_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q,
                     bool store) {
  const struct ct_cmd *cmd = q->cmd;
  if (q->step == 0 ? !take_at_start(ctx, q) : !take(ctx, q->sems.wait[0], NONE, NONE)) return false;
  const uint32_t steps = CT_GET(cmd, DMA_GATHER) ? ctx->batch : CT_GET(cmd, DMA_N2);
  if (!dma_runs(emu, ctx, q, store)) return true;
  give(ctx, q->sems.sig[0]);
  if (++q->step == steps) complete(ctx, q);
  return true;
}

/* ---- MM ------------------------------------------------------------------------------------ */

/* The words of a tile, where they are or copied here. */
struct words {
  int8_t q[16][16];
  uint8_t e[16];
};

/* Finds words 0..rows-1 of a tile; all 16 of them if it is transposed. */
static bool find_tile(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t rel, unsigned rows,
                      struct words *own, struct ct_words *words) {
  const unsigned count = words->transposed ? 16 : rows;
  uint32_t at;
  if (count == 16 && ct_emu_spm_together(emu, ctx, rel & SPM_MASK, 16, &at)) {
    words->q = (const int8_t(*)[16])emu->spm_q + at;
    words->e = emu->spm_e + at;
  } else {
    memset(own, 0, sizeof *own);
    for (unsigned i = 0; i < count; ++i) {
      struct ct_emu_word word;
      if (!ct_emu_spm_read(emu, ctx, (rel + i) & SPM_MASK, &word)) return false;
      memcpy(own->q[i], word.q, 16);
      own->e[i] = word.e;
      if (words->transposed && word.e != own->e[0]) break; /* found out below */
    }
    words->q = (const int8_t(*)[16])own->q;
    words->e = own->e;
  }
  for (unsigned i = 1; words->transposed && i < 16; ++i) {
    if (words->e[i] == words->e[0]) continue;
    ct_emu_fail(ctx, CT_DEV_SQUARE, CT_EMU_CREG(ctx, SPM_BASE) + ((rel + i) & SPM_MASK));
    return false;
  }
  return true;
}

enum { CHUNK = 4 /* k steps at once */, MOST = 8 /* output tiles */ };

/* Operands of up to CHUNK k steps, and the words of those that had to be copied. */
struct sides {
  struct ct_operand a[MOST][CHUNK], b[MOST][CHUNK];
  struct words own_a[MOST][CHUNK], own_b;
  uint32_t walk[MOST * 16]; /* MM with Walk: the words of a k step */
};

/* Words `at` of a walk as a tile; as find_tile(). A gathered tile that is read transposed has one
 * exponent. */
static bool find_walk(struct ct_emu *emu, struct ct_emu_ctx *ctx, const uint32_t *at, unsigned rows,
                      struct words *own, struct ct_words *words) {
  const unsigned count = words->transposed ? 16 : rows;
  memset(own, 0, sizeof *own);
  words->q = (const int8_t(*)[16])own->q;
  words->e = own->e;
  for (unsigned i = 0; i < count; ++i) {
    struct ct_emu_word word;
    if (at[i] == CT_WALK_PAD) continue;
    if (!ct_emu_spm_read(emu, ctx, at[i], &word)) return false;
    memcpy(own->q[i], word.q, 16);
    own->e[i] = word.e;
  }
  if (words->transposed) emu->path->align(own->q, own->e);
  return true;
}

static uint32_t a_at(const struct ct_cmd *cmd, uint32_t m, uint32_t k) {
  return (CT_GET(cmd, MM_A) + m * (uint32_t)CT_GETS(cmd, MM_AM) +
          k * (uint32_t)CT_GETS(cmd, MM_AK)) &
         SPM_MASK;
}

static uint32_t b_at(const struct ct_cmd *cmd, uint32_t n, uint32_t k) {
  return (CT_GET(cmd, MM_B) + n * (uint32_t)CT_GETS(cmd, MM_BN) +
          k * (uint32_t)CT_GETS(cmd, MM_BK)) &
         SPM_MASK;
}

/* Rows of A in row tile m. */
static uint32_t mm_rows(const struct ct_cmd *cmd, uint32_t m) {
  const uint32_t left = CT_GET(cmd, MM_ROWS) - 16 * m;
  return left < 16 ? left : 16;
}

static void mm_multiply(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q,
                        const struct sides *sides, uint32_t n, uint32_t m, uint32_t steps) {
  const struct ct_cmd *cmd = q->cmd;
  const uint32_t rows = mm_rows(cmd, m);
  emu->path->multiply(sides->a[m], sides->b[n], steps, rows, q->step == 0 && !CT_GET(cmd, MM_ACCUM),
                      &ctx->acc[CT_GET(cmd, MM_ACC) + n * CT_GET(cmd, MM_ACC_N) + m]);
  ctx->cnt[CT_CNT_MXU_ROWS] += (uint64_t)rows * steps;
  ctx->fuel -= (int64_t)rows * steps;
  ctx->result.rows += rows * steps;
}

/* One k step, or the part of it before an output tile whose semaphore is missing: what the unit
 * does, in its order. */
static bool mm_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q,
                    struct sides *sides) {
  const struct ct_cmd *cmd = q->cmd;
  const uint32_t mt = (CT_GET(cmd, MM_ROWS) + 15) / 16;
  const bool walk = CT_GET(cmd, MM_WALK), trans = CT_GET(cmd, MM_A_TRANS);
  uint32_t as = 0; /* operands A that are prepared */
  bool moved = false;
  if (walk) ct_walk_rows(&ctx->walk, &q->at, trans, 16 * mt, sides->walk);
  if (!q->begun) {
    if (!take(ctx, q->sems.wait[0], q->sems.wait[1], NONE)) return false;
    q->begun = moved = true;
  }
  for (; q->n < CT_GET(cmd, MM_NT); ++q->n, q->m = 0) {
    for (bool new_b = true; q->m < mt; ++q->m, new_b = false) {
      struct ct_words words = {.transposed = CT_GET(cmd, MM_B_TRANS)};
      if (q->step == 0 && !take(ctx, q->sems.wait[2], NONE, NONE)) return moved;
      moved = true;
      if (new_b) {
        if (!find_tile(emu, ctx, b_at(cmd, q->n, q->step), 16, &sides->own_b, &words)) return true;
        emu->path->prepare_b(sides->b[q->n], &words);
      }
      words.transposed = trans;
      for (; as <= q->m; ++as) {
        struct words *const own = &sides->own_a[as][0];
        const uint32_t rows = mm_rows(cmd, as);
        if (walk ? !find_walk(emu, ctx, sides->walk + (size_t)16 * as, rows, own, &words)
                 : !find_tile(emu, ctx, a_at(cmd, as, q->step), rows, own, &words))
          return true;
        emu->path->prepare_a(sides->a[as], &words);
      }
      mm_multiply(emu, ctx, q, sides, q->n, q->m, 1);
      if (q->step + 1 == CT_GET(cmd, MM_KT)) give(ctx, q->sems.sig[1]);
    }
  }
  give(ctx, q->sems.sig[0]);
  q->begun = false;
  q->n = 0;
  if (walk) ct_walk_step(&ctx->walk, &q->at, trans);
  if (++q->step == CT_GET(cmd, MM_KT)) q->cmd = NULL;
  return true;
}

/* A whole tile that nothing is wrong with, where it is; false: to be looked at in its turn. */
static bool find_good_tile(const struct ct_emu *emu, const struct ct_emu_ctx *ctx, uint32_t rel,
                           struct ct_words *words) {
  uint32_t at;
  uint64_t e[2];
  if (!ct_emu_spm_together(emu, ctx, rel, 16, &at)) return false;
  words->q = (const int8_t(*)[16])emu->spm_q + at;
  words->e = emu->spm_e + at;
  if (!words->transposed) return true;
  memcpy(e, words->e, sizeof e);
  return e[0] == e[1] && e[0] == words->e[0] * UINT64_C(0x0101010101010101);
}

/* Sixteen words that nothing is wrong with. */
static void copy_walk(const struct ct_emu *emu, const struct ct_emu_ctx *ctx, const uint32_t *at,
                      struct words *own) {
  const uint32_t base = CT_EMU_CREG(ctx, SPM_BASE);
  for (unsigned i = 0; i < 16; ++i) {
    const bool pad = at[i] == CT_WALK_PAD;
    const uint32_t from = base + at[i];
    own->e[i] = pad ? 0 : emu->spm_e[from];
    if (pad)
      memset(own->q[i], 0, 16);
    else
      memcpy(own->q[i], emu->spm_q[from], 16);
  }
}

/* The same of a walk. Rows that follow each other are used where they are. */
static bool find_good_walk(const struct ct_emu *emu, const struct ct_emu_ctx *ctx,
                           const uint32_t *at, struct words *own, struct ct_words *words) {
  bool outside = emu->flipped, apart = words->transposed || at[0] == CT_WALK_PAD;
  for (unsigned i = 0; i < 16; ++i) {
    outside |= at[i] != CT_WALK_PAD && at[i] >= ctx->spm_len;
    apart |= at[i] != at[0] + i;
  }
  if (outside) return false;
  if (!apart) return find_good_tile(emu, ctx, at[0], words);
  copy_walk(emu, ctx, at, own);
  if (words->transposed) emu->path->align(own->q, own->e);
  words->q = (const int8_t(*)[16])own->q;
  words->e = own->e;
  return true;
}

/* Operands of k step q->step + i, into place i; at: where a walk is then. */
static bool mm_prepare(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_emu_queue *q,
                       const struct ct_walk_place *at, uint32_t i, struct sides *sides) {
  const struct ct_cmd *cmd = q->cmd;
  const uint32_t mt = (CT_GET(cmd, MM_ROWS) + 15) / 16;
  const bool walk = CT_GET(cmd, MM_WALK);
  struct ct_words words = {.transposed = CT_GET(cmd, MM_B_TRANS)};
  for (uint32_t n = 0; n < CT_GET(cmd, MM_NT); ++n) {
    if (!find_good_tile(emu, ctx, b_at(cmd, n, q->step + i), &words)) return false;
    emu->path->prepare_b(&sides->b[n][i], &words);
  }
  words.transposed = CT_GET(cmd, MM_A_TRANS);
  if (walk) ct_walk_rows(&ctx->walk, at, words.transposed, 16 * mt, sides->walk);
  for (uint32_t m = 0; m < mt; ++m) {
    const uint32_t *const rows = sides->walk + (size_t)16 * m;
    if (walk ? !find_good_walk(emu, ctx, rows, &sides->own_a[m][i], &words)
             : !find_good_tile(emu, ctx, a_at(cmd, m, q->step + i), &words))
      return false;
    emu->path->prepare_a(&sides->a[m][i], &words);
  }
  return true;
}

/* As many k steps as can go at once without a difference: nothing fails, no semaphore is missing,
 * no two columns share an ACC tile.
 * They read the operands before the first of them signals, and give all signals after the last. */
static uint32_t mm_chunk(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q,
                         struct sides *sides) {
  const struct ct_cmd *cmd = q->cmd;
  const uint32_t nt = CT_GET(cmd, MM_NT), mt = (CT_GET(cmd, MM_ROWS) + 15) / 16;
  const uint32_t left = CT_GET(cmd, MM_KT) - q->step;
  uint8_t *const wait_tile = &ctx->sem[q->sems.wait[2]];
  const uint32_t tiles = q->step == 0 && q->sems.wait[2] != NONE ? mt * nt : 0;
  struct ct_walk_place at = q->at;
  uint32_t steps = 0;
  if (q->begun || CT_GET(cmd, MM_ROWS) % 16 || (tiles && *wait_tile < tiles)) return 0;
  if (nt > 1 && CT_GET(cmd, MM_ACC_N) < mt) return 0;
  for (; steps < left && steps < CHUNK; ++steps) {
    if (!ctx->sem[q->sems.wait[0]] || !ctx->sem[q->sems.wait[1]]) break;
    if (!mm_prepare(emu, ctx, q, &at, steps, sides)) break;
    take(ctx, q->sems.wait[0], q->sems.wait[1], NONE);
    if (CT_GET(cmd, MM_WALK)) ct_walk_step(&ctx->walk, &at, CT_GET(cmd, MM_A_TRANS));
  }
  if (steps == 0) return 0;
  *wait_tile = (uint8_t)(*wait_tile - tiles);
  for (uint32_t n = 0; n < nt; ++n) {
    for (uint32_t m = 0; m < mt; ++m) {
      mm_multiply(emu, ctx, q, sides, n, m, steps);
      if (steps == left) give(ctx, q->sems.sig[1]);
    }
  }
  for (uint32_t i = 0; i < steps; ++i)
    give(ctx, q->sems.sig[0]);
  q->at = at;
  q->step += steps;
  if (steps == left) q->cmd = NULL;
  return steps;
}

/* WPIX, WTAP. True: it was one of them, and is done. */
static bool mm_walk(struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  if (CT_GET(q->cmd, ALL_OP) == CT_OP_MM) {
    if (q->step == 0 && !q->begun) q->at = ct_walk_start(&ctx->walk, q->cmd);
    return false;
  }
  ct_walk_set(&ctx->walk, q->cmd);
  q->cmd = NULL;
  return true;
}

static bool mm_steps(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  struct sides sides;
  return mm_walk(ctx, q) || mm_chunk(emu, ctx, q, &sides) || mm_step(emu, ctx, q, &sides);
}

static bool mm_one_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  struct sides sides;
  return mm_walk(ctx, q) || mm_step(emu, ctx, q, &sides);
}

/* ---- VL, VS -------------------------------------------------------------------------------- */

/* The window is checked for the whole command at its start: rows of one word, or four. */
static bool rows_window(struct ct_emu_ctx *ctx, uint32_t spm, uint32_t rows, uint32_t stride,
                        uint32_t mode) {
  return ct_emu_spm_window(ctx, spm + (rows - 1) * stride + (mode == 0 ? 3 : 0));
}

/* FP32 values by their bits, and as words hold them: little-endian. */
static void get_f32(const int8_t (*words)[16], uint32_t *x, uint32_t count) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  copy(x, words, (size_t)4 * count);
#else
  const uint8_t *p = (const uint8_t *)words;
  for (uint32_t i = 0; i < count; ++i, p += 4)
    x[i] = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
#endif
}

static void put_f32(int8_t (*words)[16], const uint32_t *x, uint32_t count) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  copy(words, x, (size_t)4 * count);
#else
  uint8_t *p = (uint8_t *)words;
  for (uint32_t i = 0; i < 4 * count; ++i)
    p[i] = (uint8_t)(x[i / 4] >> 8 * (i % 4));
#endif
}

static bool load_f32(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t spm, uint32_t rows,
                     uint32_t stride, uint32_t (*x)[16]) {
  uint32_t at;
  if (stride == 4 && ct_emu_spm_together(emu, ctx, spm, 4 * rows, &at)) {
    get_f32((const int8_t(*)[16])emu->spm_q + at, x[0], 16 * rows);
    return true;
  }
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t w = 0; w < 4; ++w) {
      struct ct_emu_word word;
      if (!ct_emu_spm_read(emu, ctx, (spm + r * stride + w) & SPM_MASK, &word)) return false;
      get_f32((const int8_t(*)[16]) & word.q, x[r] + 4 * (size_t)w, 4);
    }
  }
  return true;
}

static bool store_f32(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t spm, uint32_t rows,
                      uint32_t stride, const uint32_t (*x)[16]) {
  uint32_t at;
  if (stride == 4 && ct_emu_spm_together(emu, ctx, spm, 4 * rows, &at)) {
    put_f32(emu->spm_q + at, x[0], 16 * rows);
    clear(emu->spm_e + at, 4 * rows);
    return true;
  }
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t w = 0; w < 4; ++w) {
      struct ct_emu_word word = {.e = 0};
      put_f32(&word.q, x[r] + 4 * (size_t)w, 4);
      if (!ct_emu_spm_write(emu, ctx, (spm + r * stride + w) & SPM_MASK, &word)) return false;
    }
  }
  return true;
}

/* Rows of HBFP8, where they are or copied to own; returns how many: fewer, and the job has failed.
 */
static uint32_t find_blocks(struct ct_emu *emu, struct ct_emu_ctx *ctx, uint32_t spm, uint32_t rows,
                            uint32_t stride, struct words *own, struct ct_words *words) {
  struct ct_emu_word word;
  uint32_t at;
  if (stride == 1 && ct_emu_spm_together(emu, ctx, spm, rows, &at)) {
    words->q = (const int8_t(*)[16])emu->spm_q + at;
    words->e = emu->spm_e + at;
    return rows;
  }
  words->q = (const int8_t(*)[16])own->q;
  words->e = own->e;
  for (uint32_t r = 0; r < rows; ++r, spm += stride) {
    if (!ct_emu_spm_read(emu, ctx, spm & SPM_MASK, &word)) return r;
    memcpy(own->q[r], word.q, 16);
    own->e[r] = word.e;
  }
  return rows;
}

static void vl(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd) {
  struct ct_emu_tile *td = &ctx->tile[CT_GET(cmd, VL_TD)];
  const uint32_t mode = CT_GET(cmd, VL_MODE), rows = CT_GET(cmd, VL_ROWS);
  const uint32_t spm = CT_GET(cmd, VL_SPM), stride = CT_GET(cmd, VL_ROW_STRIDE);
  struct words own;
  struct ct_words words = {.transposed = false};
  if (!rows_window(ctx, spm, rows, stride, mode)) return;
  if (mode == 0) {
    load_f32(emu, ctx, spm, rows, stride, td->x);
    return;
  }
  const uint32_t found = find_blocks(emu, ctx, spm, rows, stride, &own, &words);
  emu->path->dequantise(words.q, words.e, found, mode == 2, td->x);
}

static void store_blocks(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd,
                         uint32_t spm, const uint32_t (*x)[16]) {
  const uint32_t rows = CT_GET(cmd, VS_ROWS), stride = CT_GET(cmd, VS_ROW_STRIDE);
  const uint32_t narrow = CT_GET(cmd, VS_NARROW);
  const bool square = CT_GET(cmd, VS_MODE) == 2;
  struct words words;
  uint32_t at;
  uint64_t *const nans = &ctx->cnt[CT_CNT_NAN_GROUPS];
  if (stride == 1 && ct_emu_spm_together(emu, ctx, spm, rows, &at)) {
    *nans += emu->path->quantise(x, rows, square, narrow, emu->spm_q + at, emu->spm_e + at);
    return;
  }
  *nans += emu->path->quantise(x, rows, square, narrow, words.q, words.e);
  for (uint32_t r = 0; r < rows; ++r, spm += stride) {
    struct ct_emu_word word = {.e = words.e[r]};
    memcpy(word.q, words.q[r], 16);
    if (!ct_emu_spm_write(emu, ctx, spm & SPM_MASK, &word)) return;
  }
}

/* i: tiles of the command that are done. */
static void vs(struct ct_emu *emu, struct ct_emu_ctx *ctx, const struct ct_cmd *cmd, uint32_t i) {
  const struct ct_emu_tile *ts = &ctx->tile[(CT_GET(cmd, VS_TS) + i) % CT_TILE_REGS];
  const uint32_t mode = CT_GET(cmd, VS_MODE), rows = CT_GET(cmd, VS_ROWS);
  const uint32_t spm = CT_GET(cmd, VS_SPM) + i * CT_GET(cmd, VS_TILE_STRIDE);
  const uint32_t stride = CT_GET(cmd, VS_ROW_STRIDE);
  const uint32_t(*x)[16] = (const uint32_t(*)[16])ts->x;
  if (!rows_window(ctx, spm, rows, stride, mode)) return;
  if (mode == 0)
    store_f32(emu, ctx, spm, rows, stride, x);
  else
    store_blocks(emu, ctx, cmd, spm, x);
}

/* ---- VA ------------------------------------------------------------------------------------ */

/* Takes the command apart, but for what differs between its tiles. */
static void va_begin(const struct ct_emu_ctx *ctx, const struct ct_cmd *cmd, struct ct_va *op) {
  const uint32_t rows = CT_GET(cmd, VA_ROWS);
  *op = (struct ct_va){.q = &ctx->tile[CT_GET(cmd, VA_TQ)],
                       .b = CT_GET(cmd, VA_B_SRC),
                       .c = CT_GET(cmd, VA_C_SRC),
                       .sb = CT_GET(cmd, VA_SB),
                       .sc = CT_GET(cmd, VA_SC),
                       .pad = CT_GET(cmd, VA_PAD_NINF) ? CT_FP_SIGN | CT_FP_INF : 0,
                       .fn = CT_GET(cmd, VA_FN),
                       .func = CT_GET(cmd, VA_FUNC),
                       .negc = CT_GET(cmd, VA_NEG_C),
                       .relu = CT_GET(cmd, VA_RELU),
                       .rows = rows,
                       .cols = CT_GET(cmd, VA_COLS),
                       .written = CT_GET(cmd, VA_FULL) ? 16 : rows,
                       .row_xor = CT_GET(cmd, VA_ROW_XOR),
                       .lane_xor = CT_GET(cmd, VA_LANE_XOR)};
}

/* i: tiles of the command that are done. */
static void va(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q, uint32_t i) {
  const uint32_t a_src = CT_GET(q->cmd, VA_A_SRC), ta = (CT_GET(q->cmd, VA_TA) + i) % CT_TILE_REGS;
  const struct ct_emu_tile *const sources[3] = {&ctx->tile[ta], &ctx->acc[ta], NULL};
  if (i == 0) va_begin(ctx, q->cmd, &q->va);
  q->va.a = sources[a_src];
  emu->path->va(&q->va, &ctx->tile[(CT_GET(q->cmd, VA_TD) + i) % CT_TILE_REGS]);
}

/* ---- All ----------------------------------------------------------------------------------- */

/* After a tile of the command, of which `more` follow the first. */
static bool tile_done(struct ct_emu_ctx *ctx, struct ct_emu_queue *q, uint32_t more) {
  if (ctx->failed) return true;
  give(ctx, q->sems.sig[0]);
  if (q->step++ == more)
    complete(ctx, q);
  else
    give(ctx, q->sems.sig[1]);
  return true;
}

/* A step of the command in each unit; false: it waits. */

static bool ld_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  return dma_step(emu, ctx, q, false);
}

static bool st_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  return dma_step(emu, ctx, q, true);
}

static bool vl_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  if (!take_at_start(ctx, q)) return false;
  vl(emu, ctx, q->cmd);
  return tile_done(ctx, q, 0);
}

static bool va_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  if (!take_at_start(ctx, q)) return false;
  va(emu, ctx, q, q->step);
  return tile_done(ctx, q, CT_GET(q->cmd, VA_MORE));
}

static bool vs_step(struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q) {
  if (!take_at_start(ctx, q)) return false;
  vs(emu, ctx, q->cmd, q->step);
  return tile_done(ctx, q, CT_GET(q->cmd, VS_MORE));
}

static void next_command(struct ct_emu_queue *q) {
  q->cmd = &q->slot[q->head].cmd;
  q->sems = q->slot[q->head].sems;
  q->head = (q->head + 1) % (2 * CT_EMU_QUEUE);
  --q->count;
  q->begun = false;
  q->step = q->n = q->m = 0;
}

/* Steps of one unit, as far as it can go while the slice lasts, or one only. Inlined for each unit,
 * since processors predict a branch that is the same in every turn. */
static inline __attribute__((always_inline)) bool unit_run(
    struct ct_emu *emu, struct ct_emu_ctx *ctx, struct ct_emu_queue *q, bool one_step,
    bool (*step)(struct ct_emu *, struct ct_emu_ctx *, struct ct_emu_queue *)) {
  bool moved = false;
  while (!ctx->failed && ctx->fuel > 0 && (q->cmd || q->count)) {
    if (!q->cmd) {
      next_command(q);
      moved = true;
    }
    if (!step(emu, ctx, q)) break;
    moved = true;
    --ctx->fuel;
    if (one_step) break;
  }
  return moved;
}

bool ct_emu_unit_run(struct ct_emu *emu, struct ct_emu_ctx *ctx, enum ct_emu_unit unit,
                     bool one_step) {
  struct ct_emu_queue *const q = &ctx->queue[unit];
  switch (unit) {
    case CT_EMU_LD:
      return unit_run(emu, ctx, q, one_step, ld_step);
    case CT_EMU_ST:
      return unit_run(emu, ctx, q, one_step, st_step);
    case CT_EMU_MM:
      return unit_run(emu, ctx, q, one_step, one_step ? mm_one_step : mm_steps);
    case CT_EMU_VL:
      return unit_run(emu, ctx, q, one_step, vl_step);
    case CT_EMU_VA:
      return unit_run(emu, ctx, q, one_step, va_step);
    default:
      return unit_run(emu, ctx, q, one_step, vs_step);
  }
}
