/* SPDX-License-Identifier: Apache-2.0 */
#include "mxu_model.h"

#include <assert.h>
#include <string.h>

#include "ct_num.h"

/* A 16x16 tile as an operand: rows of mantissas, an exponent for each. */
typedef struct {
  int8_t q[16][16];
  uint8_t e[16];
} operand;

typedef struct {
  const struct ct_cmd *cmd;
  const mxu_spm *spm;
  uint32_t base;
} source;

static uint32_t tile_at(uint32_t start, uint32_t i, int32_t si, uint32_t k, int32_t sk) {
  return start + i * (uint32_t)si + k * (uint32_t)sk;
}

/* Notes the reads of a tile and returns its contents; transposed ones are read to the end. */
static operand fetch(const source *s, uint32_t relative, unsigned rows, bool transpose,
                     mxu_read *log, unsigned *num, unsigned step) {
  operand t = {0};
  for (unsigned r = 0; r < (transpose ? 16 : rows); ++r) {
    const uint32_t addr = (s->base + ((relative + r) & 0xFFFFF)) & 0xFFFFF;
    assert(addr < kSpmWords && *num < kMaxReads);
    log[(*num)++] = (mxu_read){addr, step};
    if (transpose) {
      for (unsigned j = 0; j < 16; ++j)
        t.q[j][r] = s->spm->q[addr][j];
      t.e[r] = s->spm->e[addr];
    } else {
      memcpy(t.q[r], s->spm->q[addr], 16);
      t.e[r] = s->spm->e[addr];
    }
  }
  return t;
}

/* Sixteen rows, or fewer, of a walk. What is gathered gets the largest of their exponents. */
static operand fetch_walk(const source *s, const uint32_t *word, unsigned rows, bool transpose,
                          mxu_expect *x, unsigned step) {
  operand t = {0};
  int8_t q[16][16] = {0};
  uint8_t e[16] = {0}, top = 0;
  for (unsigned r = 0; r < (transpose ? 16 : rows); ++r) {
    if (word[r] == CT_WALK_PAD) continue;
    const uint32_t addr = (s->base + word[r]) & 0xFFFFF;
    assert(addr < kSpmWords && x->num_a < kMaxReads);
    x->a[x->num_a++] = (mxu_read){addr, step};
    memcpy(q[r], s->spm->q[addr], 16);
    e[r] = s->spm->e[addr];
    if (e[r] > top) top = e[r];
  }
  for (unsigned r = 0; r < 16; ++r) {
    for (unsigned j = 0; j < 16; ++j)
      *(transpose ? &t.q[j][r] : &t.q[r][j]) =
          transpose ? ct_hbfp8_align(q[r][j], e[r], top) : q[r][j];
    t.e[r] = transpose ? top : e[r];
  }
  return t;
}

static void multiply(mxu_acc *acc, unsigned tile, const operand *a, const operand *b, unsigned rows,
                     bool clear) {
  for (unsigned r = 0; r < rows; ++r) {
    for (unsigned c = 0; c < 16; ++c) {
      int32_t s = 0;
      for (unsigned i = 0; i < 16; ++i)
        s += a->q[r][i] * b->q[c][i];
      const uint32_t old = clear ? 0 : acc->x[tile][r][c];
      acc->x[tile][r][c] = ct_fp_add(old, ct_fp_term(s, a->e[r], b->e[c]));
    }
    if (clear) acc->known[tile][r] = true;
  }
}

static void finish(mxu_expect *x, unsigned tile) {
  assert(x->num_finals < kMaxTiles);
  mxu_final *f = &x->final[x->num_finals++];
  f->tile = tile;
  memcpy(f->x, x->acc.x[tile], sizeof f->x);
  memcpy(f->known, x->acc.known[tile], sizeof f->known);
}

static void count(unsigned counts[16], uint32_t sem, unsigned times) {
  if (sem & 16) counts[sem & 15] += times;
}

static void count_semaphores(mxu_expect *x, const struct ct_cmd *cmd) {
  const uint32_t wait0 = CT_GET(cmd, ALL_WAIT0), wait1 = CT_GET(cmd, ALL_WAIT1);
  const unsigned kt = CT_GET(cmd, MM_KT);
  const unsigned tiles = CT_GET(cmd, MM_NT) * ((CT_GET(cmd, MM_ROWS) + 15) / 16);
  count(x->takes, wait0, kt);
  if (wait1 != wait0) count(x->takes, wait1, kt);
  count(x->takes, CT_GET(cmd, ALL_WAIT2), tiles);
  count(x->gives, CT_GET(cmd, ALL_SIG0), kt);
  count(x->gives, CT_GET(cmd, ALL_SIG1), tiles);
}

/* One weight tile with all rows of A; at: of a walk. */
static void operation(mxu_expect *x, const source *s, const struct ct_walk_place *at, unsigned k,
                      unsigned n) {
  uint32_t word[128];
  const struct ct_cmd *cmd = s->cmd;
  const unsigned rows = CT_GET(cmd, MM_ROWS), step = x->num_steps;
  const uint32_t b_at = tile_at(CT_GET(cmd, MM_B), n, CT_GETS(cmd, MM_BN), k, CT_GETS(cmd, MM_BK));
  const operand b = fetch(s, b_at, 16, CT_GET(cmd, MM_B_TRANS), x->b, &x->num_b, step);
  ct_walk_rows(&x->walk, at, CT_GET(cmd, MM_A_TRANS), 128, word);
  for (unsigned m = 0; 16 * m < rows; ++m) {
    const unsigned valid = rows - 16 * m < 16 ? rows - 16 * m : 16;
    const uint32_t a_at =
        tile_at(CT_GET(cmd, MM_A), m, CT_GETS(cmd, MM_AM), k, CT_GETS(cmd, MM_AK));
    const bool trans = CT_GET(cmd, MM_A_TRANS);
    const operand a = CT_GET(cmd, MM_WALK)
                          ? fetch_walk(s, word + (size_t)16 * m, valid, trans, x, step)
                          : fetch(s, a_at, valid, trans, x->a, &x->num_a, step);
    const unsigned tile = (CT_GET(cmd, MM_ACC) + n * CT_GET(cmd, MM_ACC_N) + m) % 16;
    multiply(&x->acc, tile, &a, &b, valid, k == 0 && !CT_GET(cmd, MM_ACCUM));
    if (k + 1 == CT_GET(cmd, MM_KT) && CT_GET(cmd, ALL_SIG1)) finish(x, tile);
  }
  assert(x->num_ops < kMaxOps);
  x->op_rows[x->num_ops++] = rows;
  x->num_rows += rows;
}

void mxu_model_run(mxu_expect *x, const struct ct_cmd *cmd, const mxu_spm *spm, uint32_t base) {
  const source s = {cmd, spm, base};
  if (CT_GET(cmd, ALL_OP) != CT_OP_MM) {
    ct_walk_set(&x->walk, cmd);
    return;
  }
  struct ct_walk_place at = ct_walk_start(&x->walk, cmd);
  for (unsigned k = 0; k < CT_GET(cmd, MM_KT); ++k) {
    assert(x->num_steps < kMaxSteps);
    for (unsigned n = 0; n < CT_GET(cmd, MM_NT); ++n)
      operation(x, &s, &at, k, n);
    ct_walk_step(&x->walk, &at, CT_GET(cmd, MM_A_TRANS));
    x->a_end[x->num_steps] = x->num_a;
    x->b_end[x->num_steps] = x->num_b;
    x->step_cmd[x->num_steps] = *cmd;
    x->step_first[x->num_steps++] = k == 0;
  }
  count_semaphores(x, cmd);
}
