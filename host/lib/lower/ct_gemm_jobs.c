/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products as several jobs: C is cut into a grid of equal parts, smaller at its right and lower
 * edge, so that four programs are enough for any of them. A part's operands are panels of A and of
 * B that lie one behind the other. The contraction is never cut: the order of its additions is the
 * contract.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_gemm.h"

/* Rows or columns of part i, of `all` in parts of `each`. */
static uint32_t size_of(uint32_t all, uint32_t each, uint32_t i) {
  return ct_min_u32(each, all - i * each);
}

/* The programs: whole parts, those of the right edge, of the lower edge, of the corner. */
enum { RIGHT = 1, LOWER = 2 };

static bool has_edge(uint32_t all, uint32_t each) {
  return all % each != 0;
}

static bool is_used(const struct ct_gemm *s, const struct ct_gemm_jobs *j, unsigned program) {
  const bool right = program & RIGHT, lower = program & LOWER;
  return (!right || has_edge(s->n, j->cols)) && (!lower || has_edge(s->m, j->rows));
}

static int build_all(const struct ct_gemm *shape, struct ct_gemm_jobs *jobs,
                     const struct ct_why *why) {
  int err = CT_OK;
  for (unsigned i = 0; i < CT_GEMM_PROGRAMS && !err; ++i) {
    struct ct_gemm part = *shape;
    if (!is_used(shape, jobs, i)) continue;
    part.m = i & LOWER ? shape->m % jobs->rows : jobs->rows;
    part.n = i & RIGHT ? shape->n % jobs->cols : jobs->cols;
    if (shape->result == CT_GEMM_HBFP8 && !part.c_tiles) part.c_tiles = ct_tiles(shape->n);
    err = ct_prog_gemm(&part, &jobs->code[i], why);
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

enum { BLOCK = CT_GEMM_HALF * CT_TILE }; /* rows or columns that blocks of any cut fill */

/* Without the rest that fills no block. */
static uint32_t trimmed(uint32_t size) {
  return size > BLOCK ? size - size % BLOCK : size;
}

static uint32_t half(uint32_t size) {
  const uint32_t each = size > 2 * BLOCK ? BLOCK : CT_TILE;
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

uint64_t ct_gemm_jobs_count(const struct ct_gemm *shape, const struct ct_gemm_jobs *jobs) {
  return (uint64_t)ct_ceil_div(shape->m, jobs->rows) * ct_ceil_div(shape->n, jobs->cols);
}

struct ct_gemm_job ct_gemm_job_at(const struct ct_gemm *shape, const struct ct_gemm_jobs *jobs,
                                  uint64_t i) {
  const uint32_t across = ct_ceil_div(shape->n, jobs->cols);
  const uint32_t row = (uint32_t)(i / across), col = (uint32_t)(i % across);
  const bool lower = size_of(shape->m, jobs->rows, row) != jobs->rows;
  const bool right = size_of(shape->n, jobs->cols, col) != jobs->cols;
  const uint64_t panel = (uint64_t)ct_tiles(shape->k) * CT_RECORD_UNITS;
  const uint64_t m0 = (uint64_t)row * jobs->rows, n0 = (uint64_t)col * jobs->cols;
  const uint64_t c_nt = shape->c_tiles ? shape->c_tiles : ct_tiles(shape->n);
  return (struct ct_gemm_job){.program = (lower ? LOWER : 0) | (right ? RIGHT : 0),
                              .a = m0 / CT_TILE * panel,
                              .b = n0 / CT_TILE * panel,
                              .c = shape->result == CT_GEMM_HBFP8
                                       ? (m0 / CT_TILE * c_nt + n0 / CT_TILE) * CT_RECORD_UNITS
                                       : m0 * shape->pitch + n0 / 4};
}
