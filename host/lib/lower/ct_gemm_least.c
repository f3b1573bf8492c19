/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products in windows too small for the other strategies: one tile of C at a time, in FP32, of
 * which half the rows lie in the scratchpad. Each command waits for the one before it, so results
 * take no more than 32 words, and operands what is left: two tiles, or chunks of k steps.
 */
#include "ct_gemm.h"

enum { OUT_ROWS = 8, OUT_WORDS = OUT_ROWS * CT_F32_ROW_UNITS, MOST_STEPS = 255 };

/* Named by who signals and who waits. */
enum { L_ST_LD, L_LD_MM, L_MM_LD, L_MM_VA, L_VA_VS, L_VS_ST, L_ST_VS };

struct least {
  struct ct_build b;
  const struct ct_gemm *s;
  uint32_t kt, chunk, a_at, b_at;
  uint32_t m, n, rows, cols; /* of the tile */
};

static uint32_t rows_of(const struct least *f, uint32_t half) {
  return ct_min_u32(f->rows - half * OUT_ROWS, OUT_ROWS);
}

static uint32_t halves(const struct least *f) {
  return ct_ceil_div(f->rows, OUT_ROWS);
}

/* ---- A tile -------------------------------------------------------------------------------- */

static void load(struct least *f, unsigned reg, uint32_t tile, uint32_t steps, uint32_t spm) {
  CT_ADD(&f->b, LD, CT_SET(DMA_DRAM, tile * CT_RECORD_UNITS), CT_SET(DMA_DRAM_REG, reg),
         CT_SET(DMA_SPM, spm), CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, CT_TILE), CT_SET(DMA_S0, 1),
         CT_SET(DMA_N1, 1), CT_SET(DMA_N2, steps), CT_SET(DMA_D2, CT_RECORD_UNITS),
         CT_SET(DMA_S2, CT_TILE), CT_SET(ALL_SIG0, reg == CT_GEMM_A ? CT_SEM(L_LD_MM) : 0),
         CT_SET(ALL_WAIT1, reg == CT_GEMM_A    ? 0
                           : tile % f->kt == 0 ? CT_SEM(L_ST_LD)
                                               : CT_SEM(L_MM_LD)));
}

/* The halves of the rows are products of their own, so that each can be written by itself. */
static void chunk(struct least *f, uint32_t k, uint32_t steps) {
  load(f, CT_GEMM_B, f->n * f->kt + k, steps, f->b_at);
  load(f, CT_GEMM_A, f->m * f->kt + k, steps, f->a_at);
  for (uint32_t h = 0; h < halves(f); ++h) {
    const bool last = h + 1 == halves(f);
    CT_ADD(&f->b, MM, CT_SET(MM_A, f->a_at + h * OUT_ROWS), CT_SET(MM_AK, CT_TILE),
           CT_SET(MM_B, f->b_at), CT_SET(MM_BK, CT_TILE), CT_SET(MM_KT, steps), CT_SET(MM_NT, 1),
           CT_SET(MM_ROWS, rows_of(f, h)), CT_SET(MM_ACCUM, k > 0), CT_SET(MM_ACC, h),
           CT_SET(MM_ACC_N, 1), CT_SET(ALL_WAIT0, h == 0 ? CT_SEM(L_LD_MM) : 0),
           CT_SET(ALL_SIG1, !last                ? 0
                            : k + steps == f->kt ? CT_SEM(L_MM_VA)
                                                 : CT_SEM(L_MM_LD)));
  }
}

static void middle_chunk(void *product, uint32_t pass) {
  struct least *f = product;
  chunk(f, (pass + 1) * f->chunk, f->chunk);
}

static void put_half(struct least *f, uint32_t h) {
  const uint32_t rows = rows_of(f, h), at = f->m * CT_TILE + h * OUT_ROWS;
  const bool last = h + 1 == halves(f);
  CT_ADD(&f->b, VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, h), CT_SET(VA_TD, h), CT_SET(VA_FULL, 1),
         CT_SET(VA_ROWS, rows), CT_SET(VA_COLS, f->cols),
         CT_SET(ALL_WAIT0, h == 0 ? CT_SEM(L_MM_VA) : 0), CT_SET(ALL_SIG0, CT_SEM(L_VA_VS)));
  CT_ADD(&f->b, VS, CT_SET(VS_TS, h), CT_SET(VS_ROWS, rows),
         CT_SET(VS_ROW_STRIDE, CT_F32_ROW_UNITS), CT_SET(ALL_WAIT0, CT_SEM(L_VA_VS)),
         CT_SET(ALL_WAIT1, h ? CT_SEM(L_ST_VS) : 0), CT_SET(ALL_SIG0, CT_SEM(L_VS_ST)));
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM, at * f->s->pitch + f->n * CT_F32_ROW_UNITS),
         CT_SET(DMA_DRAM_REG, CT_GEMM_C), CT_SET(DMA_NB, ct_ceil_div(f->cols, 4)),
         CT_SET(DMA_S0, 1), CT_SET(DMA_N1, rows), CT_SET(DMA_D1, f->s->pitch),
         CT_SET(DMA_S1, CT_F32_ROW_UNITS), CT_SET(DMA_N2, 1), CT_SET(ALL_WAIT1, CT_SEM(L_VS_ST)),
         CT_SET(ALL_SIG1, CT_SEM(last ? L_ST_LD : L_ST_VS)));
}

static void tile(void *product, uint32_t n) {
  struct least *f = product;
  const uint32_t chunks = ct_ceil_div(f->kt, f->chunk);
  f->n = n;
  if (chunks > 1) chunk(f, 0, f->chunk);
  if (chunks > 2) ct_build_passes(&f->b, chunks - 2, middle_chunk, f);
  chunk(f, (chunks - 1) * f->chunk, f->kt - (chunks - 1) * f->chunk);
  for (uint32_t h = 0; h < halves(f); ++h)
    put_half(f, h);
}

static void row(void *product, uint32_t m) {
  struct least *f = product;
  f->m = m;
  f->cols = CT_TILE;
  ct_build_passes(&f->b, f->s->n / CT_TILE, tile, f);
  f->cols = f->s->n % CT_TILE;
  if (f->cols) tile(f, f->s->n / CT_TILE);
}

_Static_assert(OUT_WORDS + 2 * CT_TILE == CT_GEMM_WINDOW, "a tile of each operand");

/* ---- All ----------------------------------------------------------------------------------- */

/* The first tile is like all others: it waits for a store, too, of zeros where it goes itself. */
static void begin(struct least *f) {
  CT_ADD(&f->b, VA, CT_SET(VA_A_SRC, 2), CT_SET(VA_FULL, 1), CT_SET(VA_ROWS, 1), CT_SET(VA_COLS, 1),
         CT_SET(ALL_SIG0, CT_SEM(L_VA_VS)));
  CT_ADD(&f->b, VS, CT_SET(VS_ROWS, 1), CT_SET(VS_ROW_STRIDE, CT_F32_ROW_UNITS),
         CT_SET(ALL_WAIT0, CT_SEM(L_VA_VS)), CT_SET(ALL_SIG0, CT_SEM(L_VS_ST)));
  CT_ADD(&f->b, ST, CT_SET(DMA_DRAM_REG, CT_GEMM_C), CT_SET(DMA_NB, 1), CT_SET(DMA_S0, 1),
         CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1), CT_SET(ALL_WAIT1, CT_SEM(L_VS_ST)),
         CT_SET(ALL_SIG1, CT_SEM(L_ST_LD)));
}

int ct_gemm_least(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why) {
  struct least f = {.s = shape, .kt = ct_tiles(shape->k), .a_at = OUT_WORDS};
  if (shape->spm_words < CT_GEMM_WINDOW)
    return ct_why(why, CT_ERR_NO_SPACE, "a product needs %d words of scratchpad, the window has %u",
                  CT_GEMM_WINDOW, shape->spm_words);
  f.chunk = ct_min_u32((shape->spm_words - OUT_WORDS) / (2 * CT_TILE), MOST_STEPS);
  f.b_at = f.a_at + f.chunk * CT_TILE;
  ct_build_init(&f.b, CT_GEMM_ARGS);
  begin(&f);
  f.rows = CT_TILE;
  ct_build_passes(&f.b, shape->m / CT_TILE, row, &f);
  f.rows = shape->m % CT_TILE;
  if (f.rows) row(&f, shape->m / CT_TILE);
  const int err = ct_code_finish(&f.b, code, "a product", why);
  if (shape->work) *shape->work += f.b.work;
  return err;
}
