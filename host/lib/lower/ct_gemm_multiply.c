/* SPDX-License-Identifier: Apache-2.0 */
/* The multiplications of a product. */
#include "ct_gemm.h"

/* Whether someone waits for the k steps of this block, or nobody does and they may be signalled all
 * the same: then the last blocks roll up with the others. */
static bool steps_awaited(const struct gemm *g, uint32_t index) {
  const struct block b = ct_gemm_block(g, index);
  const uint32_t single = g->how->single_from;
  if (!g->how->b_stays) return true;
  const bool no_columns = single && g->cols0 <= single;
  const bool early = single && index + 2 < single;
  if (b.band > 0 || !(no_columns || early)) {
    if (g->all_signal || (b.band == 0 && index + 2 < g->cols0)) return true;
  }
  return b.band_last && b.band + 2 < ct_gemm_bands(g);
}

/* The block of a part. */
static uint32_t part_block(const struct chunk *c, const struct part *p) {
  return c->b.index + (p->n >= c->border ? 1 : 0);
}

void ct_gemm_multiply_at(struct gemm *g, const struct chunk *c, const struct part *p) {
  const uint32_t top = (c->b.m0 + p->m) * CT_TILE, index = part_block(c, p);
  const bool final = c->last && p->k + p->steps == c->steps;
  const uint32_t words = ct_gemm_panel_words(g);
  CT_ADD(&g->b, MM, CT_SET(MM_A, ct_gemm_a_place(g, c, p->m) + p->k * CT_TILE),
         CT_SET(MM_AM, words), CT_SET(MM_AK, CT_TILE),
         CT_SET(MM_B, ct_gemm_b_place(g, c, p->n) + p->k * CT_TILE), CT_SET(MM_BN, words),
         CT_SET(MM_BK, CT_TILE), CT_SET(MM_KT, p->steps), CT_SET(MM_NT, p->bn),
         CT_SET(MM_ROWS, ct_min_u32(g->s->m - top, p->bm * CT_TILE)), CT_SET(MM_ACC, p->acc),
         CT_SET(MM_ACC_N, p->acc_n), CT_SET(MM_ACCUM, !c->first || p->k > 0),
         CT_SET(ALL_WAIT0, p->waits_a ? CT_SEM(S_LD_A) : 0),
         CT_SET(ALL_WAIT1, p->waits_b ? CT_SEM(S_LD_B) : 0),
         CT_SET(ALL_WAIT2, c->first && p->k == 0 && index >= 2 ? CT_SEM(S_VA_MM) : 0),
         CT_SET(ALL_SIG0, p->ends_step && steps_awaited(g, index) ? CT_SEM(S_MM_LD) : 0),
         CT_SET(ALL_SIG1, final ? CT_SEM(S_MM_VA) : 0));
}

/* A part of one block. */
static void multiply_tiles(struct gemm *g, const struct chunk *c, struct part p) {
  const uint32_t n = p.n >= c->border ? p.n - c->border : p.n;
  p.acc =
      (part_block(c, &p) & 1) * CT_GEMM_HALF + (c->b.rows ? p.m * c->b.bn + n : n * c->b.bm + p.m);
  p.acc_n = c->b.rows ? 1 : c->b.bm;
  ct_gemm_multiply_at(g, c, &p);
}

void ct_gemm_multiply_part(struct gemm *g, const struct chunk *c, const struct part *p) {
  if (p->n >= c->border || p->n + p->bn <= c->border) {
    multiply_tiles(g, c, *p);
    return;
  }
  struct part left = *p, right = *p;
  left.bn = c->border - p->n;
  left.steps = right.steps = 1;
  right.n = c->border;
  right.bn = p->bn - left.bn;
  right.waits_a = right.waits_b = false;
  for (uint32_t k = p->k; k < p->k + p->steps; ++k) {
    left.k = right.k = k;
    multiply_tiles(g, c, left);
    multiply_tiles(g, c, right);
  }
}

/* The first row tile with the first column, and perhaps with the second; each other row tile with
 * these; all with each other column. */
static void multiply_apart(struct gemm *g, const struct chunk *c) {
  const uint32_t bm = c->b.bm, bn = c->b.bn, two = ct_gemm_columns_apart(c);
  for (uint32_t n = 0; n < two; ++n) {
    const struct part p = {
        .bm = 1, .n = n, .bn = 1, .steps = 1, .waits_a = n == 0, .waits_b = true};
    ct_gemm_multiply_part(g, c, &p);
  }
  for (uint32_t m = 1; m < bm; ++m) {
    const bool ends = m + 1 == bm && bn == two;
    const struct part p = {
        .m = m, .bm = 1, .bn = two, .steps = 1, .waits_a = true, .ends_step = ends};
    ct_gemm_multiply_part(g, c, &p);
  }
  if (two == bn) return;
  const struct part p = {
      .bm = bm, .n = two, .bn = bn - two, .steps = 1, .waits_b = true, .ends_step = true};
  ct_gemm_multiply_part(g, c, &p);
}

static void multiply_pieces(struct gemm *g, const struct chunk *c, uint32_t k) {
  const uint32_t rows = ct_gemm_piece_rows(c, k);
  for (uint32_t m = 0; m < c->b.bm; m += rows) {
    const struct part p = {.m = m,
                           .bm = rows,
                           .bn = c->b.bn,
                           .k = k,
                           .steps = 1,
                           .waits_a = true,
                           .waits_b = m == 0,
                           .ends_step = m + rows == c->b.bm};
    ct_gemm_multiply_part(g, c, &p);
  }
}

/* Column by column. Of the last one the last row tile comes alone, behind the others: a tile takes
 * a beat more to store than its last k step has rows, and so none waits for the one before it. */
static void multiply_columns(struct gemm *g, const struct chunk *c) {
  const uint32_t bm = c->b.bm;
  for (uint32_t n = 0; n < c->b.bn; ++n) {
    const uint32_t alone = n + 1 == c->b.bn && g->s->m % CT_TILE == 0 ? 1 : 0;
    struct part p = {.bm = bm - alone, .n = n, .bn = 1, .steps = c->steps, .waits_b = true};
    ct_gemm_multiply_part(g, c, &p);
    if (!alone) continue;
    p = (struct part){.m = bm - 1, .bm = 1, .n = n, .bn = 1, .steps = c->steps};
    ct_gemm_multiply_part(g, c, &p);
  }
}

void ct_gemm_multiply(struct gemm *g, const struct chunk *c) {
  uint32_t k = 0;
  if (ct_gemm_by_columns(g, c)) {
    multiply_columns(g, c);
    return;
  }
  if (ct_gemm_apart(c)) {
    multiply_apart(g, c);
    k = 1;
  }
  for (uint32_t end = k + ct_gemm_split_steps(c); k < end; ++k)
    multiply_pieces(g, c, k);
  if (k == c->steps) return;
  const struct part p = {.bm = c->b.bm,
                         .bn = c->b.bn,
                         .k = k,
                         .steps = c->steps - k,
                         .waits_a = c->loads_a,
                         .waits_b = c->loads_b,
                         .ends_step = true};
  ct_gemm_multiply_part(g, c, &p);
}
