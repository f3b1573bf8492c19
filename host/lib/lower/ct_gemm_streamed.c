/* SPDX-License-Identifier: Apache-2.0 */
/*
 * B does not fit: bands are of up to 4 row tiles, B comes anew for each band, and the contraction
 * is cut into chunks if need be; two chunks lie in SPM, so that one lands while the other is in
 * use. With one chunk the band's A stays for all of its blocks.
 */
#include "ct_gemm.h"

static void start(struct gemm *g) {
  struct chunk c = ct_gemm_chunk(g, 0);
  ct_gemm_load_first(g, &c);
  if (g->blocks * g->chunks == 1) return;
  c = ct_gemm_chunk(g, 1);
  ct_gemm_load(g, &c);
}

static void ahead(struct gemm *g, const struct chunk *c) {
  const uint32_t next = c->q + 2;
  if (next >= g->blocks * g->chunks) return;
  const struct chunk n = ct_gemm_chunk(g, next);
  ct_gemm_load(g, &n);
}

static const struct ct_gemm_strategy streamed = {
    .start = start, .multiply = ct_gemm_multiply, .ahead = ahead};

int ct_gemm_plan_streamed(struct gemm *g, uint32_t most, const struct ct_why *why) {
  g->how = &streamed;
  g->first = ct_gemm_cut_band(g, ct_min_u32(g->mt, 4), most);
  g->first.bm = ct_min_u32(most / g->first.bn, g->mt);
  g->other = g->first;
  ct_gemm_count(g);
  const uint32_t step = 2 * (g->first.bm + g->first.bn) * CT_TILE;
  const uint32_t out = ct_gemm_place_results(g, g->first.bm * g->first.bn);
  if (g->s->spm_words < out + step)
    return ct_why(why, CT_ERR_NO_SPACE, "a product needs %u words of scratchpad, the window has %u",
                  out + step, g->s->spm_words);
  const uint32_t fit = ct_min_u32((g->s->spm_words - out) / step, CT_GEMM_MAX_STEPS);
  g->chunks = ct_ceil_div(g->kt, fit);
  g->chunk = ct_ceil_div(g->kt, g->chunks);
  g->a_at = out;
  g->b_at = out + 2 * g->chunk * g->first.bm * CT_TILE;
  return CT_OK;
}
