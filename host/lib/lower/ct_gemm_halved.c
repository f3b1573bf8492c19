/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B stays (ct_gemm_whole.c), and the first band has more than four row tiles: it begins with blocks
 * of some of its rows, so that the first operands meet each other early, and goes on column by
 * column.
 */
#include "ct_gemm.h"

/* Whole B, one column a block: all columns from this chunk's on, which lie one behind the other. It
 * waits for products that come later in the program: they are dispatched past it, since behind it
 * comes no more than one load before the last of them. */
static void load_rest(struct gemm *g, const struct chunk *c) {
  struct tiles t = ct_gemm_b_tiles(g, c, 0, 0);
  t.n2 = (g->nt - c->b.n0) * g->kt;
  t.wait = CT_SEM(S_MM_LD);
  ct_gemm_load_tiles(g, &t);
}

static void ahead(struct gemm *g, const struct chunk *c) {
  const uint32_t single = g->how->single_from;
  if (c->q == 0 && single < g->cols0) {
    const struct chunk rest = ct_gemm_chunk(g, single);
    load_rest(g, &rest);
    ct_gemm_load_band(g, 1);
  }
  if (c->b.band_last) ct_gemm_load_band(g, c->b.band + 2);
}

/* ---- In halves: two blocks of half the rows, two columns each -------------------------------- */

static void cut_halves(const struct gemm *g, struct block *b) {
  const uint32_t half = (g->first.bm + 1) / 2, i = b->index;
  *b = (struct block){.index = i, .bm = g->first.bm, .n0 = i, .bn = 1};
  if (i >= g->how->single_from) return;
  b->m0 = i ? half : 0;
  b->bm = i ? g->first.bm - half : half;
  b->n0 = 0;
  b->bn = 2;
}

static void start_halves(struct gemm *g) {
  struct chunk c = ct_gemm_chunk(g, 0);
  ct_gemm_load_first(g, &c);
  c = ct_gemm_chunk(g, 1);
  ct_gemm_load(g, &c);
  if (g->cols0 <= g->how->single_from) ct_gemm_load_band(g, 1);
}

static const struct ct_gemm_strategy halves = {.b_stays = true,
                                               .single_from = 2,
                                               .cut = cut_halves,
                                               .start = start_halves,
                                               .multiply = ct_gemm_multiply,
                                               .ahead = ahead};

/* ---- In quarters: four blocks of the upper four rows, two columns each, the first two of which
 * come together; then the other rows one by one with these eight columns ----------------------- */

static void cut_quarters(const struct gemm *g, struct block *b) {
  const uint32_t i = b->index;
  if (i >= g->how->single_from)
    *b = (struct block){.index = i, .bm = g->first.bm, .n0 = i, .bn = 1};
  else if (i < 4)
    *b = (struct block){.index = i, .bm = 4, .n0 = 2 * i, .bn = 2};
  else
    *b = (struct block){.index = i, .m0 = i, .bm = 1, .bn = 8};
}

static void start_quarters(struct gemm *g) {
  ct_gemm_work_wide(g);
  for (uint32_t q = 2; q < 4; ++q) {
    const struct chunk c = ct_gemm_chunk(g, q);
    ct_gemm_load(g, &c);
  }
  struct chunk c = ct_gemm_chunk(g, 4);
  c.b.bm = g->first.bm - c.b.m0;
  ct_gemm_load_rows(g, &c, 0);
  if (g->cols0 <= g->how->single_from) ct_gemm_load_band(g, 1);
}

static const struct ct_gemm_strategy quarters = {.b_stays = true,
                                                 .together = 2,
                                                 .single_from = 8,
                                                 .cut = cut_quarters,
                                                 .start = start_quarters,
                                                 .multiply = ct_gemm_multiply,
                                                 .ahead = ahead};

const struct ct_gemm_strategy *ct_gemm_choose_halved(const struct gemm *g) {
  const bool fits = g->first.bm == 8 && g->nt >= 8 && g->kt >= 2 && g->kt <= CT_GEMM_MAX_STEPS / 3;
  return g->s->result == CT_GEMM_HBFP8 && fits ? &quarters : &halves;
}
