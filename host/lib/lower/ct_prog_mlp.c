/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of a multilayer perceptron lie in device memory, and copies of them. */
#include "coltrain/coltrain.h"
#include "ct_prog.h"

uint32_t ct_mlp_tile(const struct ct_mlp *n, uint32_t l) {
  uint32_t tiles = 0;
  for (uint32_t i = 0; i < l; ++i)
    tiles += ct_mlp_in(n, i) * ct_mlp_out(n, i);
  return tiles;
}

uint32_t ct_mlp_bias_tile(const struct ct_mlp *n, uint32_t l) {
  uint32_t tiles = 0;
  for (uint32_t i = 0; i < l; ++i)
    tiles += ct_mlp_out(n, i);
  return tiles;
}

uint32_t ct_mlp_bias_at(const struct ct_mlp *n) {
  return ct_mlp_tile(n, n->layers) * CT_RECORD_UNITS;
}

uint32_t ct_mlp_image_units(const struct ct_mlp *n) {
  return ct_mlp_bias_at(n) + ct_mlp_bias_tile(n, n->layers) * CT_F32_ROW_UNITS;
}

uint32_t ct_mlp_bias_momentum_at(const struct ct_mlp *n) {
  return ct_mlp_tile(n, n->layers) * 2 * CT_F32_TILE_UNITS;
}

uint32_t ct_mlp_state_units(const struct ct_mlp *n) {
  return ct_mlp_bias_momentum_at(n) + ct_mlp_bias_tile(n, n->layers) * CT_F32_ROW_UNITS;
}

uint32_t ct_mlp_bias_gradient_at(const struct ct_mlp *n) {
  return ct_mlp_tile(n, n->layers) * CT_F32_TILE_UNITS;
}

uint32_t ct_mlp_scratch_at(const struct ct_mlp *n) {
  return ct_mlp_bias_gradient_at(n) + ct_mlp_bias_tile(n, n->layers) * CT_F32_ROW_UNITS;
}

uint32_t ct_mlp_gradient_units(const struct ct_mlp *n) {
  return ct_mlp_scratch_at(n) + 1;
}

int ct_mlp_check(const struct ct_mlp *n, const struct ct_why *why) {
  if (n->layers < 1 || n->layers > CT_MLP_LAYERS)
    return ct_why(why, CT_ERR_ARG, "a model has 1..%d layers, not %u", CT_MLP_LAYERS, n->layers);
  uint64_t tiles = 0;
  for (uint32_t l = 0; l <= n->layers; ++l) {
    if (n->width[l] < 1 || n->width[l] > CT_MLP_WIDEST)
      return ct_why(why, CT_ERR_ARG, "a layer has 1..%d units, not %u", CT_MLP_WIDEST, n->width[l]);
    if (l) tiles += (uint64_t)ct_tiles(n->width[l - 1]) * ct_tiles(n->width[l]);
  }
  if (tiles > 1 << 21)
    return ct_why(why, CT_ERR_NO_SPACE, "a model of %llu weight tiles is too large",
                  (unsigned long long)tiles);
  return CT_OK;
}

/* ---- Copy ---------------------------------------------------------------------------------- */

enum { S_LD_ST, S_ST_LD };
enum { RUN = 256, SLOTS = 4 };

/* Chunk i of a copy: a run of up to 256 units through slot i modulo 4. */
static void copy_chunk(struct ct_build *b, uint32_t i, uint32_t units, uint32_t run) {
  const uint32_t n = ct_min_u32(run, units - i * run), spm = i % SLOTS * run;
  CT_ADD(b, LD, CT_SET(DMA_DRAM, i * run), CT_SET(DMA_DRAM_REG, CT_COPY_FROM), CT_SET(DMA_SPM, spm),
         CT_SET(DMA_NB, n), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, i >= SLOTS ? CT_SEM(S_ST_LD) : 0), CT_SET(ALL_SIG1, CT_SEM(S_LD_ST)));
  CT_ADD(b, ST, CT_SET(DMA_DRAM, i * run), CT_SET(DMA_DRAM_REG, CT_COPY_TO), CT_SET(DMA_SPM, spm),
         CT_SET(DMA_NB, n), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, CT_SEM(S_LD_ST)), CT_SET(ALL_SIG1, CT_SEM(S_ST_LD)));
}

int ct_prog_copy(uint32_t units, uint32_t spm_words, struct ct_code *code,
                 const struct ct_why *why) {
  const uint32_t run = ct_min_u32(RUN, spm_words / SLOTS);
  code->cmd = NULL;
  code->count = 0;
  if (units == 0 || run == 0) return ct_why(why, CT_ERR_ARG, "a copy of %u units", units);
  struct ct_build b;
  ct_build_init(&b, CT_COPY_ARGS);
  for (uint32_t i = 0; (uint64_t)i * run < units; ++i)
    copy_chunk(&b, i, units, run);
  return ct_code_finish(&b, code, "a copy", why);
}
