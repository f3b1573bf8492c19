/* SPDX-License-Identifier: Apache-2.0 */
/* Final tiles of a product on their way: out of ACC (VA), into the scratchpad (VS), to memory (ST).
 */
#include <string.h>

#include "ct_gemm.h"

static bool is_hbfp8(const struct gemm *g) {
  return g->s->result == CT_GEMM_HBFP8;
}

/* A product takes a permission for each of its tiles: where the block two before had fewer,
 * operations without effect on its last tile register give the rest. */
static uint32_t missing(const struct gemm *g, uint32_t block) {
  const uint32_t has = ct_gemm_block_tiles(g, block), wants = ct_gemm_block_tiles(g, block + 2);
  return wants > has ? wants - has : 0;
}

/* Whether the block's operations write tile register i of its half. */
static bool writes(const struct gemm *g, uint32_t block, uint32_t i) {
  return i < ct_gemm_users(g, block) || (i == CT_GEMM_HALF - 1 && missing(g, block));
}

/* Row and column of a block's tile i. */
static uint32_t tile_row(const struct block *b, uint32_t i) {
  return b->rows ? i / b->bn : i % b->bm; /* NOLINT(*.DivideZero): a block has tiles */
}

static uint32_t tile_column(const struct block *b, uint32_t i) {
  return b->rows ? i % b->bn : i / b->bm;
}

/* Results in HBFP8 wait for their places tile by tile, those in FP32 with their first tile for the
 * whole block two (or four) before, since blocks of other shapes lie differently. */
static struct copy copy_of(const struct gemm *g, const struct block *b, uint32_t i) {
  const uint32_t m = tile_row(b, i), n = tile_column(b, i);
  struct copy c;
  memset(&c, 0, sizeof c); /* to be compared whole */
  c.rows = ct_in_tile(g->s->m, b->m0 + m);
  c.cols = ct_in_tile(g->s->n, b->n0 + n);
  c.reused = b->index >= 2 && i < ct_gemm_block_tiles(g, b->index - 2);
  c.rewritten = writes(g, b->index + 2, i);
  c.again = i < ct_gemm_users(g, b->index + 2);
  if (is_hbfp8(g)) {
    c.out_used = c.reused;
  } else {
    c.out_used = b->index >= 2 && i == 0;
    c.line = (uint8_t)(b->rows ? m : n);
    c.ends_row = n + 1 == b->bn;
  }
  return c;
}

void ct_gemm_copy_tiles(struct gemm *g, const struct block *b, const struct copy *c, uint32_t i,
                        uint32_t count) {
  const bool hbfp8 = is_hbfp8(g);
  const uint32_t reg = (b->index & 1) * CT_GEMM_HALF + i, pitch = b->bn * CT_F32_ROW_UNITS;
  const uint32_t m = tile_row(b, i), n = tile_column(b, i);
  const uint32_t stride = b->rows ? CT_F32_ROW_UNITS : CT_TILE * pitch;
  const uint32_t place = hbfp8 ? i * CT_TILE : m * CT_TILE * pitch + n * CT_F32_ROW_UNITS;
  CT_ADD(&g->b, VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, reg), CT_SET(VA_TD, reg),
         CT_SET(VA_MORE, count - 1), CT_SET(VA_ROWS, c->rows), CT_SET(VA_COLS, c->cols),
         CT_SET(VA_FULL, hbfp8), CT_SET(ALL_WAIT0, CT_SEM(S_MM_VA)),
         CT_SET(ALL_WAIT1, c->reused ? CT_SEM(S_VS_VA) : 0), CT_SET(ALL_SIG0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_SIG1, c->again ? CT_SEM(S_VA_MM) : 0));
  CT_ADD(&g->b, VS, CT_SET(VS_TS, reg), CT_SET(VS_MORE, count - 1),
         CT_SET(VS_SPM, ct_gemm_out_place(g, b) + place), CT_SET(VS_MODE, hbfp8),
         CT_SET(VS_TILE_STRIDE, hbfp8 ? CT_TILE : stride), CT_SET(VS_ROW_STRIDE, hbfp8 ? 1 : pitch),
         CT_SET(VS_ROWS, hbfp8 ? CT_TILE : c->rows), CT_SET(ALL_WAIT0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_WAIT1, c->out_used ? CT_SEM(S_ST_VS) : 0),
         CT_SET(ALL_SIG0, c->rewritten ? CT_SEM(S_VS_VA) : 0),
         CT_SET(ALL_SIG1, hbfp8 || c->ends_row ? CT_SEM(S_VS_ST) : 0));
}

void ct_gemm_store_records(struct gemm *g, const struct block *b, const struct records *r) {
  CT_ADD(&g->b, ST, CT_SET(DMA_DRAM, r->at * CT_RECORD_UNITS), CT_SET(DMA_DRAM_REG, CT_GEMM_C),
         CT_SET(DMA_HDR, 1), CT_SET(DMA_NB, CT_TILE),
         CT_SET(DMA_SPM, ct_gemm_out_place(g, b) + r->i * CT_TILE), CT_SET(DMA_S0, 1),
         CT_SET(DMA_N1, 1), CT_SET(DMA_N2, r->count),
         CT_SET(DMA_D2, r->count > 1 ? r->next * CT_RECORD_UNITS : 0), CT_SET(DMA_S2, CT_TILE),
         CT_SET(ALL_WAIT0, CT_SEM(S_VS_ST)), CT_SET(ALL_SIG0, r->again ? CT_SEM(S_ST_VS) : 0));
}

static void store_hbfp8(struct gemm *g, const struct block *b) {
  const uint32_t users = ct_gemm_users(g, b->index + 2), tiles = b->bm * b->bn;
  const uint32_t row = b->bn == g->c_nt ? tiles : b->bn; /* whole rows lie one behind the other */
  const uint32_t line = b->rows ? row : b->bm;
  const bool near = b->rows || g->c_nt < CT_GEMM_MAX_STRIDE / CT_RECORD_UNITS;
  struct records r = {.next = b->rows ? 1 : g->c_nt};
  for (; r.i < tiles; r.i += r.count) {
    r.count = ct_min_u32(near ? CT_GEMM_HALF : 1, line - r.i % line);
    r.again = r.i < users;
    if (r.again) r.count = ct_min_u32(r.count, users - r.i);
    r.at = (b->m0 + tile_row(b, r.i)) * g->c_nt + b->n0 + tile_column(b, r.i);
    ct_gemm_store_records(g, b, &r);
  }
}

/* Rows of tiles m.. of a block, `rows` rows in each. */
struct lines {
  uint32_t m, count, rows;
};

static void store_rows(struct gemm *g, const struct block *b, const struct lines *l) {
  const uint32_t row_tile = b->m0 + l->m, pitch = b->bn * CT_F32_ROW_UNITS;
  const uint32_t used = (g->s->n + 3) / 4 - b->n0 * CT_F32_ROW_UNITS;
  const bool again = l->m + l->count == b->bm;
  /* Rows that are further apart than a stride can be come one by one. */
  const bool far = g->s->pitch >= CT_GEMM_MAX_STRIDE;
  const uint32_t at_once = far ? 1 : l->rows;
  for (uint32_t i = 0; i < l->rows; i += at_once)
    CT_ADD(&g->b, ST,
           CT_SET(DMA_DRAM, (row_tile * CT_TILE + i) * g->s->pitch + b->n0 * CT_F32_ROW_UNITS),
           CT_SET(DMA_DRAM_REG, CT_GEMM_C),
           CT_SET(DMA_SPM, ct_gemm_out_place(g, b) + (l->m * CT_TILE + i) * pitch),
           CT_SET(DMA_NB, ct_min_u32(pitch, used)), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, at_once),
           CT_SET(DMA_D1, far ? 0 : g->s->pitch), CT_SET(DMA_S1, pitch), CT_SET(DMA_N2, l->count),
           CT_SET(DMA_D2, l->count > 1 ? CT_TILE * g->s->pitch : 0),
           CT_SET(DMA_S2, CT_TILE * pitch), CT_SET(ALL_WAIT0, i == 0 ? CT_SEM(S_VS_ST) : 0),
           CT_SET(ALL_SIG1, again && i + at_once == l->rows ? CT_SEM(S_ST_VS) : 0));
}

static void store_f32(struct gemm *g, const struct block *b) {
  const uint32_t most = g->s->pitch < CT_GEMM_MAX_STRIDE / CT_TILE ? CT_GEMM_HALF : 1;
  struct lines l = {.m = 0};
  for (; l.m < b->bm; l.m += l.count) {
    l.rows = ct_in_tile(g->s->m, b->m0 + l.m);
    l.count = 1;
    while (l.m + l.count < b->bm && l.count < most &&
           ct_in_tile(g->s->m, b->m0 + l.m + l.count) == l.rows)
      ++l.count;
    store_rows(g, b, &l);
  }
}

static void top_up(struct gemm *g, const struct block *b) {
  const uint32_t n = missing(g, b->index);
  const bool reused = n && b->index >= 2 && ct_gemm_block_tiles(g, b->index - 2) == CT_GEMM_HALF;
  for (uint32_t i = 0; i < n; i += 2)
    CT_ADD(&g->b, VA, CT_SET(VA_A_SRC, 2),
           CT_SET(VA_TD, (b->index & 1) * CT_GEMM_HALF + CT_GEMM_HALF - 1), CT_SET(VA_ROWS, 1),
           CT_SET(VA_COLS, 1), CT_SET(ALL_WAIT0, i == 0 && reused ? CT_SEM(S_VS_VA) : 0),
           CT_SET(ALL_SIG0, CT_SEM(S_VA_MM)), CT_SET(ALL_SIG1, i + 1 < n ? CT_SEM(S_VA_MM) : 0));
}

void ct_gemm_drain(struct gemm *g, const struct block *b) {
  const uint32_t tiles = b->bm * b->bn;
  for (uint32_t i = 0, count; i < tiles; i += count) {
    const struct copy c = copy_of(g, b, i);
    for (count = 1; i + count < tiles; ++count) {
      const struct copy next = copy_of(g, b, i + count);
      if (memcmp(&c, &next, sizeof c) != 0) break;
    }
    ct_gemm_copy_tiles(g, b, &c, i, count);
  }
  if (is_hbfp8(g))
    store_hbfp8(g, b);
  else
    store_f32(g, b);
  top_up(g, b);
}
