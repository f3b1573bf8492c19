/* SPDX-License-Identifier: Apache-2.0 */
/* Products: the chooser. What there is to choose from: ct_gemm.h. */
#include <string.h>

#include "ct_gemm.h"

/* Chunks and addresses are counted in 32 bits, and stay far from their end: what is larger is cut
 * into jobs (ct_gemm_jobs.c). */
static int check(const struct ct_gemm *s, const struct ct_why *why) {
  if (s->m == 0 || s->n == 0 || s->k == 0)
    return ct_why(why, CT_ERR_ARG, "a product of %u x %u x %u has no elements", s->m, s->n, s->k);
  if (s->result == CT_GEMM_F32 && s->pitch < (s->n + 3) / 4)
    return ct_why(why, CT_ERR_ARG, "a pitch of %u units does not hold %u columns", s->pitch, s->n);
  if (s->c_tiles && s->c_tiles < ct_tiles(s->n))
    return ct_why(why, CT_ERR_ARG, "rows of %u tiles do not hold %u columns", s->c_tiles, s->n);
  const uint64_t mt = ct_tiles(s->m), nt = ct_tiles(s->n), kt = ct_tiles(s->k);
  const uint64_t c_nt = s->c_tiles ? s->c_tiles : nt;
  const uint64_t c =
      s->result == CT_GEMM_F32 ? (uint64_t)s->m * s->pitch : mt * c_nt * CT_RECORD_UNITS;
  const bool far = s->result == CT_GEMM_F32 && s->pitch >= CT_GEMM_MAX_STRIDE;
  const uint64_t a = mt * kt * CT_RECORD_UNITS, b = nt * kt * CT_RECORD_UNITS;
  if (a >> 31 || b >> 31 || c >> 31 || far || (mt * nt) >> 31 || (mt * nt * kt) >> 31)
    return ct_why(why, CT_ERR_NO_SPACE, "a product of %u x %u x %u is too large for one job", s->m,
                  s->n, s->k);
  return CT_OK;
}

static void prepare(struct gemm *g, const struct ct_gemm *shape) {
  memset(g, 0, sizeof *g);
  g->s = shape;
  g->mt = ct_tiles(shape->m);
  g->nt = ct_tiles(shape->n);
  g->kt = ct_tiles(shape->k);
  g->c_nt = shape->c_tiles ? shape->c_tiles : g->nt;
}

static int build(struct gemm *g, struct ct_code *code, const struct ct_why *why) {
  ct_build_init(&g->b, CT_GEMM_ARGS);
  ct_gemm_write(g);
  const int err = ct_code_finish(&g->b, code, "a product", why);
  if (g->s->work) *g->s->work += g->b.work;
  return err;
}

/* The first step of a chunk comes in pieces of up to half a block's row tiles. */
static bool blocks_reach(const struct gemm *g, uint32_t most) {
  return most == 1 || ct_gemm_panels_near(g, most / 2);
}

/* Shapes that are irregular in every direction may not fit a program with the largest blocks:
 * smaller ones take fewer commands, and less scratchpad (and more traffic). */
int ct_prog_gemm(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why) {
  struct gemm g;
  code->cmd = NULL;
  code->count = 0;
  int err = check(shape, why);
  if (err) return err;
  if (shape->spm_words < CT_GEMM_ROOMY && shape->result == CT_GEMM_F32)
    return ct_gemm_least(shape, code, why);
  prepare(&g, shape);
  if (ct_gemm_plan_whole(&g)) {
    err = build(&g, code, why);
    if (err != CT_ERR_NO_SPACE || shape->part) return err;
  }
  for (uint32_t most = CT_GEMM_HALF; most >= 1; most /= 2) {
    if (!blocks_reach(&g, most)) continue;
    prepare(&g, shape);
    err = ct_gemm_plan_streamed(&g, most, why);
    if (err) continue;
    err = build(&g, code, why);
    if (err != CT_ERR_NO_SPACE || shape->part) break;
  }
  return err;
}
