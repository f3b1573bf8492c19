/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of a multilayer perceptron lie in device memory, and copies of them. */
#include <stdlib.h>

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
    return ct_why(why, CT_ERR_NO_SPACE,
                  "a model of %llu weight tiles of 16 x 16 is too large: %d are the most",
                  (unsigned long long)tiles, 1 << 21);
  return CT_OK;
}

/* ---- Copy ---------------------------------------------------------------------------------- */

enum { S_LD_ST, S_ST_LD };
enum { RUN = 256, SLOTS = 4, CHUNKS = (CT_PROG_MAX - 1) / 2 /* of a program, at most */ };

/* A copy that is being made: its chunks so far, and the units of one. */
struct copying {
  struct ct_build b;
  uint32_t chunks, run;
};

/* The next chunk of a copy: up to `run` units through the next of the slots. */
static void copy_chunk(struct copying *c, uint32_t from, uint32_t to, uint32_t units) {
  struct ct_build *b = &c->b;
  const uint32_t i = c->chunks++, spm = i % SLOTS * c->run;
  CT_ADD(b, LD, CT_SET(DMA_DRAM, from), CT_SET(DMA_DRAM_REG, CT_COPY_FROM), CT_SET(DMA_SPM, spm),
         CT_SET(DMA_NB, units), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, i >= SLOTS ? CT_SEM(S_ST_LD) : 0), CT_SET(ALL_SIG1, CT_SEM(S_LD_ST)));
  CT_ADD(b, ST, CT_SET(DMA_DRAM, to), CT_SET(DMA_DRAM_REG, CT_COPY_TO), CT_SET(DMA_SPM, spm),
         CT_SET(DMA_NB, units), CT_SET(DMA_S0, 1), CT_SET(DMA_N1, 1), CT_SET(DMA_N2, 1),
         CT_SET(ALL_WAIT1, CT_SEM(S_LD_ST)), CT_SET(ALL_SIG1, CT_SEM(S_ST_LD)));
}

static struct copying copy_begin(uint32_t spm_words) {
  struct copying c = {.run = ct_min_u32(RUN, spm_words / SLOTS)};
  ct_build_init(&c.b, CT_COPY_ARGS);
  return c;
}

/* A job more: the copies from stretch *i, unit *at of it, on. */
static void copy_some(const struct ct_stretch *s, size_t count, size_t *i, uint32_t *at,
                      struct copying *c) {
  while (*i < count && c->chunks < CHUNKS) {
    const uint32_t n = ct_min_u32(c->run, s[*i].units - *at);
    if (n) copy_chunk(c, s[*i].from + *at, s[*i].to + *at, n);
    *at += n;
    if (*at < s[*i].units) continue;
    *at = 0;
    ++*i;
  }
}

int ct_prog_copies(const struct ct_stretch *stretch, size_t count, uint32_t spm_words,
                   struct ct_codes *codes, const struct ct_why *why) {
  size_t i = 0;
  uint32_t at = 0;
  int err = CT_OK;
  *codes = (struct ct_codes){NULL, 0};
  if (spm_words < SLOTS) return ct_why(why, CT_ERR_NO_SPACE, "a copy needs %d words", SLOTS);
  while (i < count && !err) {
    struct copying c = copy_begin(spm_words);
    copy_some(stretch, count, &i, &at, &c);
    struct ct_code *job = realloc(codes->job, (codes->count + 1) * sizeof *job);
    if (!job) {
      ct_build_free(&c.b);
      err = ct_why(why, CT_ERR_MEMORY, "no memory for a copy");
      break;
    }
    codes->job = job;
    job[codes->count] = (struct ct_code){0};
    err = ct_code_finish(&c.b, &job[codes->count], "a copy", why);
    ++codes->count;
  }
  if (err) ct_codes_free(codes);
  return err;
}
