/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small product, all of it in ACC: three or four tiles by as many, and a few k steps. Its first k
 * step gives the array work at once; then panels of A and B come whole, in turn, so that tiles of C
 * are finished, and stored, from early on. Where the memory is slow, a panel's tiles take as long
 * to come as those that the panel before has finished take to leave.
 */
#include <string.h>

#include "ct_gemm.h"

enum { MAX_KT = 5 }; /* with more, all of B's would keep A waiting */

bool ct_gemm_is_compact(const struct gemm *g) {
  return g->s->result == CT_GEMM_HBFP8 && g->mt > 2 && g->mt <= 4 && g->nt > 2 && g->nt <= 4 &&
         g->kt > 1 && g->kt <= MAX_KT;
}

static void cut(const struct gemm *g, struct block *b) {
  b->bm = g->mt;
  b->n0 = 0;
  b->bn = g->nt;
}

/* Tiles of C that become final together: the corner of two by two; then, panel by panel, those that
 * a panel of B or of A has in common with the panels that are there: a column, or a row. */
static struct part piece_at(const struct gemm *g, uint32_t i, uint32_t acc) {
  struct part p = {.bm = 2, .bn = 2, .acc = acc};
  for (uint32_t at = 2; i > 0; ++at) {
    if (at < g->nt && --i == 0) {
      p.n = at;
      p.bn = 1;
      p.bm = ct_min_u32(at, g->mt);
    } else if (at < g->mt && --i == 0) {
      p.m = at;
      p.bm = 1;
      p.bn = ct_min_u32(at + 1, g->nt);
    }
  }
  p.acc_n = p.bm; /* its columns lie one behind the other */
  return p;
}

static uint32_t pieces(const struct gemm *g) {
  return 1 + (g->mt - 2) + (g->nt - 2);
}

/* ---- LD ------------------------------------------------------------------------------------ */

/* n panels of an operand, all k steps but the first, a signal for each step. */
static void load_panels(struct gemm *g, struct tiles first, uint32_t n) {
  first.k += 1;
  first.spm += CT_TILE;
  first.n1 = n;
  first.panels1 = 1;
  first.n2 = g->kt - 1;
  ct_gemm_load_tiles(g, &first);
}

/* n panels' tiles, one by one. */
static void load_column(struct gemm *g, struct tiles first, uint32_t n) {
  first.panels2 = 1;
  first.n2 = n;
  ct_gemm_load_tiles(g, &first);
}

/* The first k step, tile by tile: one of B and two of A, so that rows begin and go on; then B's
 * other panels, and A's. */
static void load_start(struct gemm *g, const struct chunk *c) {
  const struct tiles b = ct_gemm_b_tiles(g, c, 0, 0);
  ct_gemm_load_tiles(g, &b);
  load_column(g, ct_gemm_a_tiles(g, c, 0, 0), 2);
  load_column(g, ct_gemm_b_tiles(g, c, 1, 0), g->nt - 1);
  load_column(g, ct_gemm_a_tiles(g, c, 2, 0), g->mt - 2);
}

static void load_rest(struct gemm *g, const struct chunk *c) {
  load_panels(g, ct_gemm_b_tiles(g, c, 0, 0), 2);
  load_panels(g, ct_gemm_a_tiles(g, c, 0, 0), 2);
  for (uint32_t i = 1; i < pieces(g); ++i) {
    const struct part p = piece_at(g, i, 0);
    load_panels(g, p.m ? ct_gemm_a_tiles(g, c, p.m, 0) : ct_gemm_b_tiles(g, c, p.n, 0), 1);
  }
}

/* ---- MM ------------------------------------------------------------------------------------ */

/* The corner tile by tile, then piece by piece. */
static void multiply_start(struct gemm *g, const struct chunk *c) {
  struct part p = {.bm = 1, .bn = 1, .steps = 1, .waits_a = true, .waits_b = true, .acc_n = 1};
  ct_gemm_multiply_at(g, c, &p);
  p = (struct part){.m = 1, .bm = 1, .bn = 1, .steps = 1, .waits_a = true, .acc = 1, .acc_n = 1};
  ct_gemm_multiply_at(g, c, &p);
  p = (struct part){.bm = 2, .n = 1, .bn = 1, .steps = 1, .waits_b = true, .acc = 2, .acc_n = 2};
  ct_gemm_multiply_at(g, c, &p);
  for (uint32_t i = 1, acc = 4; i < pieces(g); ++i, acc += p.bm * p.bn) {
    p = piece_at(g, i, acc);
    p.steps = 1;
    p.waits_a = p.m > 0;
    p.waits_b = p.m == 0;
    ct_gemm_multiply_at(g, c, &p);
  }
}

/* A piece without its last tile, and that one behind the others: a tile takes a beat more to store
 * than its last k step has rows, and so none waits for the one before it. */
static void multiply_last(struct gemm *g, const struct chunk *c, struct part p) {
  struct part last = p;
  last.acc += p.bm * p.bn - 1;
  last.acc_n = last.bm = last.bn = 1;
  last.waits_a = last.waits_b = false;
  if (p.bm > 1)
    last.m += --p.bm;
  else
    last.n += --p.bn;
  p.acc_n = p.bm;
  ct_gemm_multiply_at(g, c, &p);
  ct_gemm_multiply_at(g, c, &last);
}

/* The other k steps. */
static void multiply_rest(struct gemm *g, const struct chunk *c) {
  for (uint32_t i = 0, acc = 0; i < pieces(g); ++i) {
    struct part p = piece_at(g, i, acc);
    acc += p.bm * p.bn;
    p.k = 1;
    p.steps = g->kt - 1;
    p.waits_a = i == 0 || p.m > 0;
    p.waits_b = i == 0 || p.m == 0;
    if (i + 1 < pieces(g))
      ct_gemm_multiply_at(g, c, &p);
    else
      multiply_last(g, c, p);
  }
}

static void multiply(struct gemm *g, const struct chunk *c) {
  multiply_start(g, c);
  multiply_rest(g, c);
}

/* ---- VA, VS, ST ---------------------------------------------------------------------------- */

/* Tiles of C by their places there, in the order in which they lie in ACC. */
static uint32_t order(const struct gemm *g, uint32_t *tile) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < pieces(g); ++i) {
    const struct part p = piece_at(g, i, count);
    for (uint32_t n = p.n; n < p.n + p.bn; ++n)
      for (uint32_t m = p.m; m < p.m + p.bm; ++m)
        tile[count++] = m * g->c_nt + n;
  }
  return count;
}

static struct copy copy_of(const struct gemm *g, uint32_t tile) {
  struct copy c;
  memset(&c, 0, sizeof c); /* to be compared whole */
  c.rows = ct_in_tile(g->s->m, tile / g->c_nt);
  c.cols = ct_in_tile(g->s->n, tile % g->c_nt);
  return c;
}

static void drain(struct gemm *g, const struct block *b) {
  uint32_t tile[2 * CT_GEMM_HALF];
  const uint32_t tiles = order(g, tile);
  for (uint32_t i = 0, count; i < tiles; i += count) {
    const struct copy c = copy_of(g, tile[i]);
    for (count = 1; i + count < tiles && count < CT_GEMM_HALF; ++count) {
      const struct copy next = copy_of(g, tile[i + count]);
      if (memcmp(&c, &next, sizeof c) != 0) break;
    }
    ct_gemm_copy_tiles(g, b, &c, i, count);
  }
  struct records r = {.i = 0};
  for (; r.i < tiles; r.i += r.count) {
    const uint32_t i = r.i;
    r.at = tile[i];
    r.next = i + 1 < tiles ? tile[i + 1] - tile[i] : 0;
    for (r.count = 1; i + r.count < tiles; ++r.count)
      if (tile[i + r.count] - tile[i + r.count - 1] != r.next) break;
    ct_gemm_store_records(g, b, &r);
  }
}

static void start(struct gemm *g) {
  const struct chunk c = ct_gemm_chunk(g, 0);
  load_start(g, &c);
  load_rest(g, &c);
}

/* One block, drained in an order of its own. */
static void multiply_and_drain(struct gemm *g, const struct chunk *c) {
  multiply(g, c);
  drain(g, &c->b);
}

const struct ct_gemm_strategy ct_gemm_compact = {
    .b_stays = true, .cut = cut, .start = start, .multiply = multiply_and_drain};
