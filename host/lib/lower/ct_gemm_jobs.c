/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products as several jobs: C is cut into a grid. Along each side there are equal parts, the rest
 * of them, and what fills no block any more: three sizes, and so nine programs for any product. A
 * part's operands are panels of A and of B that lie one behind the other. The contraction is never
 * cut: the order of its additions is the contract.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_gemm.h"

enum { BLOCK = CT_GEMM_HALF * CT_TILE }; /* rows or columns that blocks of any cut fill */
enum { SIZES = 3 };
_Static_assert(SIZES *SIZES == CT_GEMM_PROGRAMS, "a program for each pair of sizes");

/* ---- A side -------------------------------------------------------------------------------- */

/* Rows or columns of C: parts of size[0], then one of size[1] and one of size[2], if not 0. */
struct side {
  uint32_t size[SIZES];
  uint32_t full; /* parts of size[0] */
};

static struct side cut_side(uint32_t all, uint32_t each) {
  const uint32_t body = each < all && all > BLOCK ? all - all % BLOCK : all;
  return (struct side){.size = {each, body % each, all - body}, .full = body / each};
}

static uint32_t parts_of(const struct side *s) {
  return s->full + (s->size[1] > 0) + (s->size[2] > 0);
}

/* Which of the sizes part i has, and where it begins. */
static unsigned part_at(const struct side *s, uint32_t i, uint64_t *at) {
  const uint64_t body = (uint64_t)s->full * s->size[0];
  *at = i < s->full ? (uint64_t)i * s->size[0] : body;
  if (i < s->full) return 0;
  if (i == s->full && s->size[1]) return 1;
  *at = body + s->size[1];
  return 2;
}

/* ---- Programs ------------------------------------------------------------------------------ */

static int build_all(const struct ct_gemm *shape, struct ct_gemm_jobs *jobs,
                     const struct ct_why *why) {
  const struct side down = cut_side(shape->m, jobs->rows), across = cut_side(shape->n, jobs->cols);
  int err = CT_OK;
  for (unsigned i = 0; i < CT_GEMM_PROGRAMS && !err; ++i) {
    struct ct_gemm part = *shape;
    part.m = down.size[i / SIZES];
    part.n = across.size[i % SIZES];
    part.part = jobs->rows < shape->m || jobs->cols < shape->n;
    if (shape->result == CT_GEMM_HBFP8 && !part.c_tiles) part.c_tiles = ct_tiles(shape->n);
    if (part.m && part.n) err = ct_prog_gemm(&part, &jobs->code[i], why);
  }
  if (err) ct_gemm_jobs_free(jobs);
  return err;
}

void ct_gemm_jobs_free(struct ct_gemm_jobs *jobs) {
  for (unsigned i = 0; i < CT_GEMM_PROGRAMS; ++i) {
    free(jobs->code[i].cmd);
    jobs->code[i] = (struct ct_code){NULL, 0};
  }
}

static uint32_t trimmed(uint32_t size) {
  return size > BLOCK ? size - size % BLOCK : size;
}

static uint32_t half(uint32_t size) {
  const uint32_t each = size >= 2 * BLOCK ? BLOCK : CT_TILE;
  return ct_ceil_div(size, 2 * each) * each;
}

/* Programs are too long where blocks of many kinds meet, at the edges of C: so these are cut off
 * first. What is still too large is halved. */
int ct_prog_gemm_jobs(const struct ct_gemm *shape, struct ct_gemm_jobs *jobs,
                      const struct ct_why *why) {
  memset(jobs, 0, sizeof *jobs);
  jobs->rows = shape->m;
  jobs->cols = shape->n;
  int err = build_all(shape, jobs, why);
  if (err != CT_ERR_NO_SPACE) return err;
  jobs->rows = trimmed(shape->m);
  jobs->cols = trimmed(shape->n);
  for (;;) {
    uint32_t *const longer = jobs->rows >= jobs->cols ? &jobs->rows : &jobs->cols;
    err = build_all(shape, jobs, why);
    if (err != CT_ERR_NO_SPACE || *longer <= CT_TILE) return err;
    *longer = half(*longer);
  }
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

uint64_t ct_gemm_jobs_count(const struct ct_gemm *shape, const struct ct_gemm_jobs *jobs) {
  const struct side down = cut_side(shape->m, jobs->rows), across = cut_side(shape->n, jobs->cols);
  return (uint64_t)parts_of(&down) * parts_of(&across);
}

struct ct_gemm_job ct_gemm_job_at(const struct ct_gemm *shape, const struct ct_gemm_jobs *jobs,
                                  uint64_t i) {
  const struct side down = cut_side(shape->m, jobs->rows), across = cut_side(shape->n, jobs->cols);
  const uint64_t panel = (uint64_t)ct_tiles(shape->k) * CT_RECORD_UNITS;
  const uint64_t c_nt = shape->c_tiles ? shape->c_tiles : ct_tiles(shape->n);
  const uint32_t columns = parts_of(&across);
  uint64_t m0, n0;
  const unsigned rows = part_at(&down, (uint32_t)(i / columns), &m0);
  const unsigned cols = part_at(&across, (uint32_t)(i % columns), &n0);
  return (struct ct_gemm_job){.program = rows * SIZES + cols,
                              .a = m0 / CT_TILE * panel,
                              .b = n0 / CT_TILE * panel,
                              .c = shape->result == CT_GEMM_HBFP8
                                       ? (m0 / CT_TILE * c_nt + n0 / CT_TILE) * CT_RECORD_UNITS
                                       : m0 * shape->pitch + n0 / 4};
}
