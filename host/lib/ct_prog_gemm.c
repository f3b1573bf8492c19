/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product C = A * B^T of HBFP8 matrices in device memory.
 *
 * C is cut into blocks of up to bm x bn = 8 tiles, one half of ACC. Blocks go row by row. The
 * contraction of a block runs over k steps of bm + bn tiles, in chunks; two chunks lie in SPM, so
 * the next one lands while one is in use. Where the whole contraction fits (one chunk), the panel
 * of A stays for all blocks of its row and only B streams.
 *
 *   LD  B(q) A(q)  ..landed..>  MM(q)  ..tile final..>  VA  ..>  VS  ..row of tiles..>  ST
 *   B(q+2) step <..k step read.. MM    MM(b+2) <..tile copied.. VA(b)
 *
 * Waits for space are exact: they start with the third chunk or block, whose space had a user.
 */
#include "ct_prog.h"

#include "coltrain/coltrain.h"

/* Semaphores, named by who signals and who waits. */
enum { S_LD_B, S_LD_A, S_MM_LD, S_MM_VA, S_VA_MM, S_VA_VS, S_VS_VA, S_VS_ST, S_ST_VS };

enum { HALF = 8, MAX_STEPS = 127 /* two chunks stay below 255 signals */ };

struct gemm {
  struct ct_build b;
  const struct ct_gemm *s;
  uint32_t mt, nt, kt;         /* tiles */
  uint32_t most;               /* tiles a block may have */
  uint32_t bm, bn;             /* tiles of a block */
  uint32_t rows, cols;         /* of blocks */
  uint32_t chunks, chunk;      /* chunks of a block; k steps of all but the first */
  bool resident;               /* A is loaded once for a row of blocks */
  uint32_t a_at, b_at, out_at; /* SPM: two of each */
};

/* Chunk q of the whole product. */
struct chunk {
  uint32_t q, block, mb, nb; /* block = mb * cols + nb */
  uint32_t bm, bn;           /* tiles this block has */
  uint32_t k0, steps;
  bool first, last; /* of the block */
  bool loads_a;
};

static uint32_t in_block(uint32_t tiles, uint32_t per_block, uint32_t index) {
  return ct_min_u32(tiles - index * per_block, per_block);
}

/* The first chunk is the short one: then waiting in order is safe (see load_b). */
static struct chunk chunk_at(const struct gemm *g, uint32_t q) {
  struct chunk c = {.q = q, .block = q / g->chunks};
  const uint32_t i = q % g->chunks, short_one = g->kt - (g->chunks - 1) * g->chunk;
  c.mb = c.block / g->cols;
  c.nb = c.block % g->cols;
  c.bm = in_block(g->mt, g->bm, c.mb);
  c.bn = in_block(g->nt, g->bn, c.nb);
  c.k0 = i ? short_one + (i - 1) * g->chunk : 0;
  c.steps = i ? g->chunk : short_one;
  c.first = i == 0;
  c.last = i + 1 == g->chunks;
  c.loads_a = !g->resident || c.nb == 0;
  return c;
}

static uint32_t block_tiles(const struct gemm *g, uint32_t block) {
  return in_block(g->mt, g->bm, block / g->cols) * in_block(g->nt, g->bn, block % g->cols);
}

static bool has_block(const struct gemm *g, uint32_t block) {
  return block < g->rows * g->cols;
}

static uint32_t a_buffer(const struct gemm *g, const struct chunk *c) {
  const uint32_t half = g->resident ? c->mb : c->q;
  return g->a_at + (half & 1) * g->chunk * g->bm * CT_TILE;
}

static uint32_t b_buffer(const struct gemm *g, const struct chunk *c) {
  return g->b_at + (c->q & 1) * g->chunk * g->bn * CT_TILE;
}

/* k steps k..k+steps of a panel of `tiles` row tiles; sem is signalled each step. */
static void load_panel(struct gemm *g, unsigned reg, uint32_t first_tile, uint32_t tiles,
                       uint32_t pitch, uint32_t k, uint32_t steps, uint32_t spm, unsigned sem,
                       unsigned wait) {
  CT_ADD(&g->b, LD, CT_SET(DMA_DRAM, (first_tile * g->kt + k) * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, reg), CT_SET(DMA_SPM, spm), CT_SET(DMA_HDR, 1),
         CT_SET(DMA_NB, CT_TILE), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, tiles),
         CT_SET(DMA_D1, g->kt * CT_RECORD_UNITS), CT_SET(DMA_S1, CT_TILE), CT_SET(DMA_N2, steps),
         CT_SET(DMA_D2, CT_RECORD_UNITS), CT_SET(DMA_S2, pitch * CT_TILE), CT_SET(ALL_SIG0, sem),
         CT_SET(ALL_WAIT0, wait));
}

/* Loads steps k..k+steps of a chunk. B first: it waits, step by step, for the steps of the chunk
 * two before (or of a later one, since the short chunk comes first); once it is through, that
 * chunk's operands have all been read, so A needs no wait of its own. */
static void load(struct gemm *g, const struct chunk *c, uint32_t k, uint32_t steps) {
  load_panel(g, CT_GEMM_B, c->nb * g->bn, c->bn, g->bn, c->k0 + k, steps,
             b_buffer(g, c) + k * g->bn * CT_TILE, CT_SEM(S_LD_B), c->q >= 2 ? CT_SEM(S_MM_LD) : 0);
  if (c->loads_a)
    load_panel(g, CT_GEMM_A, c->mb * g->bm, c->bm, g->bm, c->k0 + k, steps,
               a_buffer(g, c) + k * g->bm * CT_TILE, CT_SEM(S_LD_A), 0);
}

/* The first chunk comes in growing pieces, so that the array starts early. */
static void load_first(struct gemm *g, const struct chunk *c) {
  for (uint32_t k = 0, piece = 1; k < c->steps; k += piece) {
    if (k >= 2) piece = k;
    piece = ct_min_u32(piece, c->steps - k);
    load(g, c, k, piece);
  }
}

static void multiply(struct gemm *g, const struct chunk *c) {
  const uint32_t rows = ct_min_u32(g->s->m - c->mb * g->bm * CT_TILE, c->bm * CT_TILE);
  CT_ADD(&g->b, MM, CT_SET(MM_A, a_buffer(g, c)), CT_SET(MM_AM, CT_TILE),
         CT_SET(MM_AK, g->bm * CT_TILE), CT_SET(MM_B, b_buffer(g, c)), CT_SET(MM_BN, CT_TILE),
         CT_SET(MM_BK, g->bn * CT_TILE), CT_SET(MM_KT, c->steps), CT_SET(MM_NT, c->bn),
         CT_SET(MM_ROWS, rows), CT_SET(MM_ACC, (c->block & 1) * HALF), CT_SET(MM_ACC_N, c->bm),
         CT_SET(MM_ACCUM, !c->first), CT_SET(ALL_WAIT0, c->loads_a ? CT_SEM(S_LD_A) : 0),
         CT_SET(ALL_WAIT1, CT_SEM(S_LD_B)),
         CT_SET(ALL_WAIT2, c->first && c->block >= 2 ? CT_SEM(S_VA_MM) : 0),
         CT_SET(ALL_SIG0, CT_SEM(S_MM_LD)), CT_SET(ALL_SIG1, c->last ? CT_SEM(S_MM_VA) : 0));
}

/* A product takes a permission for each of its tiles: where the block two before had fewer,
 * operations without effect on its last tile register give the rest. */
static uint32_t missing(const struct gemm *g, uint32_t block) {
  if (!has_block(g, block + 2)) return 0;
  const uint32_t has = block_tiles(g, block), wants = block_tiles(g, block + 2);
  return wants > has ? wants - has : 0;
}

/* Whether the block's operations write tile register i of its half. */
static bool writes(const struct gemm *g, uint32_t block, uint32_t i) {
  if (!has_block(g, block)) return false;
  return i < block_tiles(g, block) || (i == HALF - 1 && missing(g, block));
}

static uint32_t out_buffer(const struct gemm *g, uint32_t block) {
  return g->out_at + (block & 1) * g->bm * g->bn * CT_F32_TILE_UNITS;
}

/* ACC tile (n, m) of the block to a tile register and on to SPM. */
static void copy_tile(struct gemm *g, const struct chunk *c, uint32_t n, uint32_t m) {
  const uint32_t i = n * c->bm + m, half = c->block & 1, pitch = g->bn * CT_F32_ROW_UNITS;
  const uint32_t rows = ct_in_tile(g->s->m, c->mb * g->bm + m);
  const bool again = has_block(g, c->block + 2) && i < block_tiles(g, c->block + 2);
  const bool reused = c->block >= 2 && i < block_tiles(g, c->block - 2);
  const bool rewritten = writes(g, c->block + 2, i);
  CT_ADD(&g->b, VA, CT_SET(VA_A_SRC, 1), CT_SET(VA_TA, half * HALF + i),
         CT_SET(VA_TD, half * HALF + i), CT_SET(VA_ROWS, rows),
         CT_SET(VA_COLS, ct_in_tile(g->s->n, c->nb * g->bn + n)),
         CT_SET(ALL_WAIT0, CT_SEM(S_MM_VA)), CT_SET(ALL_WAIT1, reused ? CT_SEM(S_VS_VA) : 0),
         CT_SET(ALL_SIG0, CT_SEM(S_VA_VS)), CT_SET(ALL_SIG1, again ? CT_SEM(S_VA_MM) : 0));
  CT_ADD(&g->b, VS, CT_SET(VS_TS, half * HALF + i), CT_SET(VS_ROWS, rows),
         CT_SET(VS_ROW_STRIDE, pitch),
         CT_SET(VS_SPM, out_buffer(g, c->block) + m * CT_TILE * pitch + n * CT_F32_ROW_UNITS),
         CT_SET(ALL_WAIT0, CT_SEM(S_VA_VS)),
         CT_SET(ALL_WAIT1, c->block >= 2 && n == 0 ? CT_SEM(S_ST_VS) : 0),
         CT_SET(ALL_SIG0, rewritten ? CT_SEM(S_VS_VA) : 0),
         CT_SET(ALL_SIG1, n + 1 == c->bn ? CT_SEM(S_VS_ST) : 0));
}

/* Row m of the block's tiles to DRAM. */
static void store_row(struct gemm *g, const struct chunk *c, uint32_t m) {
  const uint32_t row_tile = c->mb * g->bm + m, col_tile = c->nb * g->bn;
  const uint32_t pitch = g->bn * CT_F32_ROW_UNITS, used = (g->s->n + 3) / 4;
  const bool again =
      has_block(g, c->block + 2) && m < in_block(g->mt, g->bm, (c->block + 2) / g->cols);
  CT_ADD(&g->b, ST,
         CT_SET(DMA_DRAM, row_tile * CT_TILE * g->s->pitch + col_tile * CT_F32_ROW_UNITS),
         CT_SET(DMA_DRAM_REG, CT_GEMM_C),
         CT_SET(DMA_SPM, out_buffer(g, c->block) + m * CT_TILE * pitch),
         CT_SET(DMA_NB, ct_min_u32(c->bn * CT_F32_ROW_UNITS, used - col_tile * CT_F32_ROW_UNITS)),
         CT_SET(DMA_S0, 1), CT_SET(DMA_N1, ct_in_tile(g->s->m, row_tile)),
         CT_SET(DMA_D1, g->s->pitch), CT_SET(DMA_S1, pitch), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, CT_SEM(S_VS_ST)), CT_SET(ALL_SIG1, again ? CT_SEM(S_ST_VS) : 0));
}

static void top_up(struct gemm *g, const struct chunk *c) {
  const uint32_t n = missing(g, c->block);
  const bool reused = n && c->block >= 2 && block_tiles(g, c->block - 2) == HALF;
  for (uint32_t i = 0; i < n; i += 2)
    CT_ADD(&g->b, VA, CT_SET(VA_A_SRC, 2), CT_SET(VA_TD, (c->block & 1) * HALF + HALF - 1),
           CT_SET(VA_ROWS, 1), CT_SET(VA_COLS, 1),
           CT_SET(ALL_WAIT0, i == 0 && reused ? CT_SEM(S_VS_VA) : 0),
           CT_SET(ALL_SIG0, CT_SEM(S_VA_MM)), CT_SET(ALL_SIG1, i + 1 < n ? CT_SEM(S_VA_MM) : 0));
}

static void drain(struct gemm *g, const struct chunk *c) {
  for (uint32_t n = 0; n < c->bn; ++n) {
    for (uint32_t m = 0; m < c->bm; ++m) {
      copy_tile(g, c, n, m);
      if (n + 1 == c->bn) store_row(g, c, m);
    }
  }
  top_up(g, c);
}

/* Chooses blocks, chunks and the places in SPM. */
static int plan(struct gemm *g, const struct ct_why *why) {
  const struct ct_gemm *s = g->s;
  g->mt = ct_tiles(s->m);
  g->nt = ct_tiles(s->n);
  g->kt = ct_tiles(s->k);
  g->bm = ct_min_u32(g->most < 4 ? g->most : 4, g->mt);
  g->bn = ct_min_u32(g->most / g->bm, g->nt);
  g->bm = ct_min_u32(g->most / g->bn, g->mt);
  g->rows = (g->mt + g->bm - 1) / g->bm;
  g->cols = (g->nt + g->bn - 1) / g->bn;
  const uint32_t out = 2 * g->bm * g->bn * CT_F32_TILE_UNITS;
  const uint32_t step = 2 * (g->bm + g->bn) * CT_TILE;
  if (s->spm_words < out + step)
    return ct_why(why, CT_ERR_NO_SPACE, "a product needs %u words of scratchpad, the window has %u",
                  out + step, s->spm_words);
  const uint32_t fit = ct_min_u32((s->spm_words - out) / step, MAX_STEPS);
  g->chunks = (g->kt + fit - 1) / fit;
  g->chunk = (g->kt + g->chunks - 1) / g->chunks;
  g->resident = g->chunks == 1;
  g->out_at = 0;
  g->a_at = out;
  g->b_at = out + 2 * g->chunk * g->bm * CT_TILE;
  return CT_OK;
}

/* Commands reach 2^23 units from an argument; tile counts stay far from 32 bits. */
static int check(const struct ct_gemm *s, const struct ct_why *why) {
  if (s->m == 0 || s->n == 0 || s->k == 0)
    return ct_why(why, CT_ERR_ARG, "a product of %u x %u x %u has no elements", s->m, s->n, s->k);
  if (s->pitch < (s->n + 3) / 4)
    return ct_why(why, CT_ERR_ARG, "a pitch of %u units does not hold %u columns", s->pitch, s->n);
  const uint64_t a = (uint64_t)ct_tiles(s->m) * ct_tiles(s->k) * CT_RECORD_UNITS;
  const uint64_t b = (uint64_t)ct_tiles(s->n) * ct_tiles(s->k) * CT_RECORD_UNITS;
  const uint64_t c = (uint64_t)s->m * s->pitch;
  if (a >> 31 || b >> 31 || c >> 31 || ct_tiles(s->k) >= 1 << 18 || s->pitch >= 1 << 23)
    return ct_why(why, CT_ERR_NO_SPACE, "a product of %u x %u x %u is too large for one job", s->m,
                  s->n, s->k);
  return CT_OK;
}

/* Writes down the whole product. */
static void write_all(struct gemm *g) {
  const uint32_t total = g->rows * g->cols * g->chunks;
  struct chunk c = chunk_at(g, 0);
  load_first(g, &c);
  if (total > 1) {
    c = chunk_at(g, 1);
    load(g, &c, 0, c.steps);
  }
  for (uint32_t q = 0; q < total; ++q) {
    c = chunk_at(g, q);
    multiply(g, &c);
    if (q + 2 < total) {
      const struct chunk next = chunk_at(g, q + 2);
      load(g, &next, 0, next.steps);
    }
    if (c.last) drain(g, &c);
  }
}

/* Shapes that are irregular in every direction may not fit a program with the largest blocks:
 * smaller ones take fewer commands (and more traffic). */
int ct_prog_gemm(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why) {
  code->cmd = NULL;
  code->count = 0;
  int err = check(shape, why);
  for (uint32_t most = HALF; !err && most >= 2; most /= 2) {
    struct gemm g = {.s = shape, .most = most};
    err = plan(&g, why);
    if (err) break;
    ct_build_init(&g.b, CT_GEMM_ARGS);
    write_all(&g);
    err = ct_code_finish(&g.b, code, "a product", why);
    if (err != CT_ERR_NO_SPACE || most == 2) break;
    err = CT_OK;
  }
  return err;
}
