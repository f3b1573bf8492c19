/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B fits the scratchpad, is read once and stays. The first band of up to 8 row tiles meets it as it
 * comes in; the other bands are single row tiles (in FP32 two), so that little of A has to come
 * before all of B is at work on it. A is read once, too: nothing crosses the memory port twice.
 *
 * With a panels of A and b of B no more than a * b tiles of C can be done, so where the memory is
 * slow both have to grow together: four panels of each, k step by k step, for all of ACC; with 8
 * row tiles four more of B, four more of A, one by one; then B column by column, with 4 row tiles
 * two by two. From then on each panel that comes brings as much work as it took to come, or more,
 * and results to store. (FP32 rows are stored when the last of a block's tiles in them is there, so
 * blocks are higher than wide there, and with few row tiles single columns: single_columns().)
 *
 * Here: four row tiles at most in the first band, or a single column. More: ct_gemm_halved.c.
 */
#include "ct_gemm.h"

enum {
  MAX_WIDE = 84,    /* k steps: those of three blocks stay below 255 signals */
  MIN_WIDE = 5,     /* measured: with fewer, stores decide; see starts_wide() */
  MIN_WIDE_F32 = 16 /* the same; see also single_columns() */
};

/* Whether the first band's blocks are single columns: one row tile; and in FP32, where rows of a
 * block are stored when the last of its tiles in them is there, up to four row tiles, unless the
 * contraction is long enough for the stores to pass beside it. */
static bool single_columns(const struct gemm *g) {
  const bool f32 = g->s->result == CT_GEMM_F32;
  return g->first.bm == 1 || (f32 && g->first.bm <= 4 && g->kt < MIN_WIDE_F32);
}

/* Whether the first two blocks come together. Not with few k steps: there it is the stores that
 * take long, and they would begin later. */
static bool starts_wide(const struct gemm *g) {
  const uint32_t least = g->s->result == CT_GEMM_HBFP8 ? MIN_WIDE : MIN_WIDE_F32;
  return g->first.bm == 4 && g->nt > 4 && g->kt >= least && g->kt <= MAX_WIDE;
}

/* Whether a single column of row tiles comes row tile by row tile, each with all of its k steps:
 * then one tile is left to store when the last operand has come. */
static bool by_rows(const struct gemm *g) {
  return g->nt == 1 && g->mt > 1 && g->mt <= CT_GEMM_HALF && g->mt * g->kt <= 2 * CT_GEMM_MAX_STEPS;
}

void ct_gemm_load_band(struct gemm *g, uint32_t band) {
  if (band >= ct_gemm_bands(g)) return;
  const struct chunk c = ct_gemm_chunk(g, g->cols0 + (band - 1) * g->cols);
  ct_gemm_load(g, &c);
}

static void ahead(struct gemm *g, const struct chunk *c) {
  const uint32_t next = c->q + 2;
  if (next < g->cols0) {
    const struct chunk n = ct_gemm_chunk(g, next);
    ct_gemm_load(g, &n);
  }
  if (next + 1 == g->cols0) ct_gemm_load_band(g, 1);
  if (c->b.band_last) ct_gemm_load_band(g, c->b.band + 2);
}

/* ---- Block by block ------------------------------------------------------------------------ */

static void start_plain(struct gemm *g) {
  struct chunk c = ct_gemm_chunk(g, 0);
  ct_gemm_load_first(g, &c);
  if (g->cols0 > 1) {
    c = ct_gemm_chunk(g, 1);
    ct_gemm_load(g, &c);
  }
  if (g->cols0 <= 2) ct_gemm_load_band(g, 1);
}

static const struct ct_gemm_strategy plain = {
    .b_stays = true, .start = start_plain, .multiply = ct_gemm_multiply, .ahead = ahead};

/* ---- A single column, row tile by row tile -------------------------------------------------- */

static void start_rows(struct gemm *g) {
  const struct chunk c = ct_gemm_chunk(g, 0);
  struct chunk top = c;
  top.b.bm = 1;
  ct_gemm_load_first(g, &top);
  ct_gemm_load_rows(g, &c, 1);
}

static void multiply_rows(struct gemm *g, const struct chunk *c) {
  for (uint32_t m = 0; m < c->b.bm; ++m) {
    const struct part p = {.m = m,
                           .bm = 1,
                           .bn = c->b.bn,
                           .steps = c->steps,
                           .waits_a = c->loads_a,
                           .waits_b = m == 0 && c->loads_b,
                           .ends_step = m + 1 == c->b.bm};
    ct_gemm_multiply_part(g, c, &p);
  }
}

static const struct ct_gemm_strategy rows = {
    .b_stays = true, .start = start_rows, .multiply = multiply_rows, .ahead = ahead};

/* ---- The first two blocks together ---------------------------------------------------------- */

/* The first step, in quarters: two columns with two row tiles, with two others, two other columns
 * with all. */
static void start_quarters(struct gemm *g, const struct chunk *c) {
  struct tiles t = ct_gemm_b_tiles(g, c, 0, 0);
  t.n1 = 2;
  t.panels1 = 1;
  ct_gemm_load_tiles(g, &t);
  t = ct_gemm_a_tiles(g, c, 0, 0);
  t.n1 = t.n2 = t.panels2 = 2;
  t.panels1 = 1;
  ct_gemm_load_tiles(g, &t);
  t = ct_gemm_b_tiles(g, c, 2, 0);
  t.n1 = 2;
  t.panels1 = 1;
  ct_gemm_load_tiles(g, &t);
  for (uint32_t m = 0; m < 4; m += 2) {
    const struct part p = {
        .m = m, .bm = 2, .bn = 2, .steps = 1, .waits_a = true, .waits_b = m == 0};
    ct_gemm_multiply_part(g, c, &p);
  }
  const struct part p = {.bm = 4, .n = 2, .bn = 2, .steps = 1, .waits_b = true};
  ct_gemm_multiply_part(g, c, &p);
}

/* First A, then the columns of the one block and of the other. */
void ct_gemm_work_wide(struct gemm *g) {
  struct chunk c = ct_gemm_chunk(g, 0);
  c.b.bn += ct_gemm_block(g, 1).bn;
  start_quarters(g, &c);
  for (uint32_t k = 1; k < c.steps; ++k) {
    struct tiles t = ct_gemm_a_tiles(g, &c, 0, k);
    t.n1 = c.b.bm;
    t.panels1 = 1;
    ct_gemm_load_tiles(g, &t);
    t = ct_gemm_b_tiles(g, &c, 0, k);
    t.n1 = t.panels2 = c.border;
    t.panels1 = 1;
    t.n2 = 2;
    ct_gemm_load_tiles(g, &t);
    struct part p = {.bm = c.b.bm, .bn = c.border, .k = k, .steps = 1, .waits_b = true};
    p.waits_a = true;
    ct_gemm_multiply_part(g, &c, &p);
    p.n = c.border;
    p.waits_a = false;
    ct_gemm_multiply_part(g, &c, &p);
  }
}

static void start_wide(struct gemm *g) {
  ct_gemm_work_wide(g);
  if (g->cols0 <= 2) ct_gemm_load_band(g, 1);
}

static const struct ct_gemm_strategy wide = {.b_stays = true,
                                             .together = 2,
                                             .start = start_wide,
                                             .multiply = ct_gemm_multiply,
                                             .ahead = ahead};

/* ---- The plan ------------------------------------------------------------------------------ */

static const struct ct_gemm_strategy *choose(const struct gemm *g) {
  if (ct_gemm_is_compact(g)) return &ct_gemm_compact;
  if (g->first.bm > 4 && g->nt >= 2) return ct_gemm_choose_halved(g);
  if (by_rows(g)) return &rows;
  return starts_wide(g) ? &wide : &plain;
}

bool ct_gemm_plan_whole(struct gemm *g) {
  const uint64_t panel = (uint64_t)g->kt * CT_TILE;
  g->first = ct_gemm_cut_band(g, ct_min_u32(g->mt, CT_GEMM_HALF), CT_GEMM_HALF);
  if (single_columns(g)) g->first.bn = 1;
  g->how = choose(g);
  g->other.bn = ct_min_u32(g->s->result == CT_GEMM_HBFP8 ? 8 : 4, g->nt);
  if (g->other.bn == 0) return false; /* never: a product has columns */
  g->other.bm = CT_GEMM_HALF / g->other.bn;
  g->chunks = 1;
  g->chunk = g->kt;
  ct_gemm_count(g);
  const uint32_t bands = ct_gemm_bands(g);
  const uint32_t a_panels = g->first.bm + (bands > 1 ? g->other.bm : 0);
  const uint64_t words = (g->nt + a_panels) * panel;
  if (g->kt > CT_GEMM_MAX_STEPS || words > g->s->spm_words) return false;
  if (g->nt * g->kt > CT_GEMM_MAX_LOAD) return false; /* ct_gemm_halved.c: one load for the rest */
  g->all_signal = bands < 3 && g->blocks * (uint64_t)g->kt <= (uint64_t)2 * CT_GEMM_MAX_STEPS;
  const bool full = g->how->single_from || g->how == &ct_gemm_compact;
  g->a_at = ct_gemm_place_results(g, full ? CT_GEMM_HALF : g->first.bm * g->first.bn);
  g->b_at = g->a_at + a_panels * g->chunk * CT_TILE;
  return words + g->a_at <= g->s->spm_words;
}
