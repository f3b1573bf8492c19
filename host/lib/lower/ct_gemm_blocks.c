/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and chunks of a product, and where they lie in the scratchpad. */
#include "ct_gemm.h"

struct block ct_gemm_block(const struct gemm *g, uint32_t index) {
  struct block b = {.index = index};
  uint32_t at = index;
  if (index < g->cols0) {
    b.bm = g->first.bm;
    b.n0 = index * g->first.bn;
    b.bn = ct_min_u32(g->first.bn, g->nt - ct_min_u32(b.n0, g->nt));
    if (g->how->cut) g->how->cut(g, &b);
  } else {
    b.band = 1 + (index - g->cols0) / g->cols;
    at = (index - g->cols0) % g->cols;
    b.m0 = g->first.bm + (b.band - 1) * g->other.bm;
    b.bm = ct_min_u32(g->other.bm, g->mt - b.m0);
    b.n0 = at * g->other.bn;
    b.bn = ct_min_u32(g->other.bn, g->nt - b.n0);
  }
  b.rows |= b.bm == 1;
  b.band_first = at == 0;
  b.band_last = at + 1 == (b.band ? g->cols : g->cols0);
  return b;
}

uint32_t ct_gemm_block_tiles(const struct gemm *g, uint32_t index) {
  if (index >= g->blocks) return 0;
  const struct block b = ct_gemm_block(g, index);
  return b.bm * b.bn;
}

uint32_t ct_gemm_users(const struct gemm *g, uint32_t index) {
  return index < g->blocks ? ct_gemm_block_tiles(g, index) : CT_GEMM_HALF;
}

uint32_t ct_gemm_bands(const struct gemm *g) {
  return 1 + (g->blocks - g->cols0) / g->cols;
}

/* Whether it is the lower part of a first band that begins with blocks of some of its rows. */
static bool is_lower(const struct gemm *g, const struct block *b) {
  return g->how->single_from && b->band == 0 && b->m0 > 0;
}

/* The first chunk is the short one: then waiting in order is safe (see ct_gemm_load()). */
struct chunk ct_gemm_chunk(const struct gemm *g, uint32_t q) {
  struct chunk c = {.b = ct_gemm_block(g, q / g->chunks), .q = q};
  const uint32_t i = q % g->chunks, short_one = g->kt - (g->chunks - 1) * g->chunk;
  c.border = c.b.bn;
  c.k0 = i ? short_one + (i - 1) * g->chunk : 0;
  c.steps = i ? g->chunk : short_one;
  c.first = i == 0;
  c.last = i + 1 == g->chunks;
  c.loads_a = g->chunks > 1 || c.b.band_first || is_lower(g, &c.b);
  c.loads_b = !g->how->b_stays || (c.b.band == 0 && !is_lower(g, &c.b));
  return c;
}

bool ct_gemm_by_columns(const struct gemm *g, const struct chunk *c) {
  return c->q > 0 && c->b.index + 1 == g->blocks && g->blocks == g->cols0 && g->chunks == 1 &&
         c->loads_b && !c->loads_a && c->b.bm > 1 && c->b.bn > 1 &&
         (c->b.bn + 1) * c->steps <= 2 * CT_GEMM_MAX_STEPS;
}

/* ---- Plans --------------------------------------------------------------------------------- */

struct cut ct_gemm_cut_band(const struct gemm *g, uint32_t rows, uint32_t most) {
  struct cut c = {.bm = ct_min_u32(rows, most)};
  c.bn = ct_min_u32(most / c.bm, g->nt);
  return c;
}

void ct_gemm_count(struct gemm *g) {
  g->cols0 = g->how->single_from ? g->nt : ct_ceil_div(g->nt, g->first.bn);
  if (g->how == &ct_gemm_compact) g->cols0 = 1;
  g->cols = ct_ceil_div(g->nt, g->other.bn);
  g->blocks = g->cols0 + ct_ceil_div(g->mt - g->first.bm, g->other.bm) * g->cols;
}

uint32_t ct_gemm_place_results(struct gemm *g, uint32_t tiles) {
  const uint32_t other = g->mt > g->first.bm ? g->other.bm * g->other.bn : 0;
  const uint32_t most = other > tiles ? other : tiles;
  g->out_at = 0;
  g->out_words = most * (g->s->result == CT_GEMM_HBFP8 ? CT_TILE : CT_F32_TILE_UNITS);
  return 2 * g->out_words;
}

/* ---- Places in SPM ------------------------------------------------------------------------- */

uint32_t ct_gemm_panel_words(const struct gemm *g) {
  return g->chunk * CT_TILE;
}

/* Bands use two places in turn; with one chunk, those of its parity. */
uint32_t ct_gemm_a_place(const struct gemm *g, const struct chunk *c, uint32_t m) {
  const uint32_t turn = g->chunks > 1 ? c->q : c->b.band;
  const uint32_t in_band = is_lower(g, &c->b) ? c->b.m0 : 0;
  return g->a_at + ((turn & 1) * g->first.bm + in_band + m) * ct_gemm_panel_words(g);
}

uint32_t ct_gemm_b_place(const struct gemm *g, const struct chunk *c, uint32_t n) {
  const uint32_t panel = g->how->b_stays ? c->b.n0 : (c->q & 1) * g->first.bn;
  return g->b_at + (panel + n) * ct_gemm_panel_words(g);
}

uint32_t ct_gemm_out_place(const struct gemm *g, const struct block *b) {
  return g->out_at + (b->index & 1) * g->out_words;
}
