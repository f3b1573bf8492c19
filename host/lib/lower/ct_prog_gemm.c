/* SPDX-License-Identifier: Apache-2.0 */
/* Products: the chooser. What there is to choose from: ct_gemm.h. */
#include <string.h>

#include "ct_gemm.h"

/* Commands reach 2^23 units from an argument; tile counts stay far from 32 bits. */
static int check(const struct ct_gemm *s, const struct ct_why *why) {
  if (s->m == 0 || s->n == 0 || s->k == 0)
    return ct_why(why, CT_ERR_ARG, "a product of %u x %u x %u has no elements", s->m, s->n, s->k);
  if (s->result == CT_GEMM_F32 && s->pitch < (s->n + 3) / 4)
    return ct_why(why, CT_ERR_ARG, "a pitch of %u units does not hold %u columns", s->pitch, s->n);
  const uint64_t a = (uint64_t)ct_tiles(s->m) * ct_tiles(s->k) * CT_RECORD_UNITS;
  const uint64_t b = (uint64_t)ct_tiles(s->n) * ct_tiles(s->k) * CT_RECORD_UNITS;
  const uint64_t c = s->result == CT_GEMM_F32
                         ? (uint64_t)s->m * s->pitch
                         : (uint64_t)ct_tiles(s->m) * ct_tiles(s->n) * CT_RECORD_UNITS;
  const bool far = s->result == CT_GEMM_F32 && s->pitch >= 1 << 23;
  if (a >> 31 || b >> 31 || c >> 31 || ct_tiles(s->k) >= 1 << 18 || far)
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
  g->c_nt = g->nt;
}

static int build(struct gemm *g, struct ct_code *code, const struct ct_why *why) {
  ct_build_init(&g->b, CT_GEMM_ARGS);
  ct_gemm_write(g);
  const int err = ct_code_finish(&g->b, code, "a product", why);
  if (g->s->work) *g->s->work += g->b.work;
  return err;
}

/* Shapes that are irregular in every direction may not fit a program with the largest blocks:
 * smaller ones take fewer commands (and more traffic). */
int ct_prog_gemm(const struct ct_gemm *shape, struct ct_code *code, const struct ct_why *why) {
  struct gemm g;
  code->cmd = NULL;
  code->count = 0;
  int err = check(shape, why);
  if (err) return err;
  prepare(&g, shape);
  if (ct_gemm_plan_whole(&g)) {
    err = build(&g, code, why);
    if (err != CT_ERR_NO_SPACE) return err;
  }
  for (uint32_t most = CT_GEMM_HALF; most >= 2; most /= 2) {
    prepare(&g, shape);
    err = ct_gemm_plan_streamed(&g, most, why);
    if (!err) err = build(&g, code, why);
    if (err != CT_ERR_NO_SPACE) break;
  }
  return err;
}
