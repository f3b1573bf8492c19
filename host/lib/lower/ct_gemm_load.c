/* SPDX-License-Identifier: Apache-2.0 */
/* The loads of a product. */
#include "ct_gemm.h"

/* Panels further apart than a stride can be come one by one: blocks are single tiles then. */
void ct_gemm_load_tiles(struct gemm *g, const struct tiles *t) {
  const uint32_t s_panel = ct_gemm_panel_words(g);
  const uint32_t d_panel = ct_gemm_panels_near(g, 1) ? g->kt * CT_RECORD_UNITS : 0;
  CT_ADD(&g->b, LD, CT_SET(DMA_DRAM, (t->panel * g->kt + t->k) * CT_RECORD_UNITS),
         CT_SET(DMA_DRAM_REG, t->reg), CT_SET(DMA_SPM, t->spm), CT_SET(DMA_HDR, 1),
         CT_SET(DMA_NB, CT_TILE), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, t->n1),
         CT_SET(DMA_D1, t->panels1 ? t->panels1 * d_panel : CT_RECORD_UNITS),
         CT_SET(DMA_S1, t->panels1 ? t->panels1 * s_panel : CT_TILE), CT_SET(DMA_N2, t->n2),
         CT_SET(DMA_D2, t->panels2 ? t->panels2 * d_panel : CT_RECORD_UNITS),
         CT_SET(DMA_S2, t->panels2 ? t->panels2 * s_panel : CT_TILE), CT_SET(ALL_SIG0, t->sem),
         CT_SET(ALL_WAIT0, t->wait));
}

struct tiles ct_gemm_a_tiles(const struct gemm *g, const struct chunk *c, uint32_t m, uint32_t k) {
  return (struct tiles){.reg = CT_GEMM_A,
                        .sem = CT_SEM(S_LD_A),
                        .panel = c->b.m0 + m,
                        .k = c->k0 + k,
                        .spm = ct_gemm_a_place(g, c, m) + k * CT_TILE,
                        .n1 = 1,
                        .n2 = 1};
}

struct tiles ct_gemm_b_tiles(const struct gemm *g, const struct chunk *c, uint32_t n, uint32_t k) {
  return (struct tiles){.reg = CT_GEMM_B,
                        .sem = CT_SEM(S_LD_B),
                        .panel = c->b.n0 + n,
                        .k = c->k0 + k,
                        .spm = ct_gemm_b_place(g, c, n) + k * CT_TILE,
                        .n1 = 1,
                        .n2 = 1};
}

/* Steps k..k+steps of a chunk, each signalled. Where space had a user they wait for it, step by
 * step, by what comes first:
 *   streamed   B waits for the steps of the chunk two before (or of a later one, since the short
 *              chunk comes first); once it is through, that chunk's operands have all been read, so
 *              A needs no wait of its own;
 *   B stays    in the first band no space is short, but the signals are: a block's loads wait for
 *              the steps of the block two before (if the first two come together, from the fifth
 *              block on). A of a later band waits for those of the last block of the band two
 *              before, whose place it takes. */
static void load(struct gemm *g, const struct chunk *c, uint32_t k, uint32_t steps) {
  const bool early =
      g->how->single_from ? c->b.band == 0 : c->q < (g->how->together ? 2 + g->how->together : 2);
  const bool waits = g->how->b_stays && c->b.band ? c->b.band >= 2 : !early;
  unsigned wait = waits ? CT_SEM(S_MM_LD) : 0;
  if (c->loads_b) {
    struct tiles t = ct_gemm_b_tiles(g, c, 0, k);
    const uint32_t later = ct_gemm_by_columns(g, c) ? c->b.bn - 1 : 0; /* one behind the other */
    t.n1 = c->b.bn - later;
    t.panels1 = 1;
    t.n2 = steps + (wait ? 0 : later * steps);
    t.wait = wait;
    ct_gemm_load_tiles(g, &t);
    if (later && wait) { /* there is a signal for each step of the block two before, no more */
      t = ct_gemm_b_tiles(g, c, 1, k);
      t.n2 = later * steps;
      ct_gemm_load_tiles(g, &t);
    }
    wait = 0;
  }
  if (c->loads_a) {
    struct tiles t = ct_gemm_a_tiles(g, c, 0, k);
    t.n1 = c->b.bm;
    t.panels1 = 1;
    t.n2 = steps;
    t.wait = wait;
    ct_gemm_load_tiles(g, &t);
  }
}

void ct_gemm_load(struct gemm *g, const struct chunk *c) {
  load(g, c, 0, c->steps);
}

void ct_gemm_load_rows(struct gemm *g, const struct chunk *c, uint32_t m) {
  struct tiles t = ct_gemm_a_tiles(g, c, m, 0);
  t.n2 = (c->b.bm - m) * c->steps;
  ct_gemm_load_tiles(g, &t);
}

/* ---- The first chunk ----------------------------------------------------------------------- */

/* Its first k steps are taken apart into products of single tiles, in the order in which these
 * land. */
bool ct_gemm_apart(const struct chunk *c) {
  return c->q == 0 && c->b.bm >= 2;
}

/* Two steps, but not the last one, whose tiles become final. */
uint32_t ct_gemm_split_steps(const struct chunk *c) {
  return ct_gemm_apart(c) && c->b.bm % 2 == 0 && c->steps > 2 ? ct_min_u32(c->steps - 2, 2) : 0;
}

/* Single ones next to the step taken apart, then halves. */
uint32_t ct_gemm_piece_rows(const struct chunk *c, uint32_t k) {
  return k == 1 && c->b.bn > 1 ? 1 : c->b.bm / 2;
}

/* Two, so that every row tile after the first brings two products, which take longer than its way
 * here. One, if these tiles are final already: those leave in the order of ACC. */
uint32_t ct_gemm_columns_apart(const struct chunk *c) {
  return c->last && c->steps == 1 ? 1 : ct_min_u32(c->b.bn, 2);
}

/* The first step's tiles one by one: a column of B, a row tile, perhaps the next column, the other
 * row tiles, the other columns. */
static void load_apart(struct gemm *g, const struct chunk *c) {
  const uint32_t two = ct_gemm_columns_apart(c);
  struct tiles t = ct_gemm_b_tiles(g, c, 0, 0);
  ct_gemm_load_tiles(g, &t);
  t = ct_gemm_a_tiles(g, c, 0, 0);
  t.panels2 = 1;
  t.n2 = two == 2 ? 1 : c->b.bm;
  ct_gemm_load_tiles(g, &t);
  if (two == 2) {
    t = ct_gemm_b_tiles(g, c, 1, 0);
    ct_gemm_load_tiles(g, &t);
    t = ct_gemm_a_tiles(g, c, 1, 0);
    t.panels2 = 1;
    t.n2 = c->b.bm - 1;
    ct_gemm_load_tiles(g, &t);
  }
  if (c->b.bn == two) return;
  t = ct_gemm_b_tiles(g, c, two, 0);
  t.n1 = c->b.bn - two;
  t.panels1 = 1;
  ct_gemm_load_tiles(g, &t);
}

/* Another early step: all of B, and A in pieces. */
static void load_pieces(struct gemm *g, const struct chunk *c, uint32_t k) {
  struct tiles t = ct_gemm_b_tiles(g, c, 0, k);
  t.n1 = c->b.bn;
  t.panels1 = 1;
  ct_gemm_load_tiles(g, &t);
  t = ct_gemm_a_tiles(g, c, 0, k);
  t.n1 = ct_gemm_piece_rows(c, k);
  t.panels1 = 1;
  t.n2 = c->b.bm / t.n1;
  t.panels2 = t.n1;
  ct_gemm_load_tiles(g, &t);
}

void ct_gemm_load_first(struct gemm *g, const struct chunk *c) {
  uint32_t k = 0;
  if (ct_gemm_apart(c)) {
    load_apart(g, c);
    k = 1;
  }
  for (uint32_t end = k + ct_gemm_split_steps(c); k < end; ++k)
    load_pieces(g, c, k);
  for (uint32_t piece = 1; k < c->steps; k += piece) {
    if (k >= 4) piece = k / 2;
    piece = ct_min_u32(piece, c->steps - k);
    load(g, c, k, piece);
  }
}
