/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product, block by block. What would be too long to be written down is cut short: chunks of a
 * block, blocks of a band, and bands that have nothing but their like around them differ by
 * addresses alone, which go on by the same steps. Two periods of them are written down, and the
 * builder makes a loop.
 *
 * "Around" is as far as a block looks: two blocks back for what they leave, four ahead for who
 * uses what it leaves. A period is two of each, because places in the scratchpad and halves of ACC
 * take turns.
 */
#include "ct_gemm.h"

enum { PERIOD = 2, BACK = 2, AHEAD = 4, CHUNK_COMMANDS = 3, BLOCK_COMMANDS = 5 };

/* Things [from, to) that have nothing but their like around them. */
struct range {
  uint32_t from, to;
};

typedef void write_fn(struct gemm *g, uint32_t from, uint32_t to);

/* Writes down the things [from, to), those in `like` as a loop. */
static void write_range(struct gemm *g, struct range all, struct range like, write_fn *write) {
  const uint32_t periods = like.to > like.from ? (like.to - like.from) / PERIOD : 0;
  if (periods <= 2) {
    write(g, all.from, all.to);
    return;
  }
  const uint32_t end = like.from + periods * PERIOD;
  write(g, all.from, like.from);
  const size_t mark = g->b.count;
  for (uint32_t at = like.from; at < like.from + 2 * PERIOD; at += PERIOD)
    write(g, at, at + PERIOD);
  ct_build_repeat(&g->b, mark, periods);
  write(g, end, all.to);
}

/* n less some, or 0. */
static uint32_t less(uint32_t n, uint32_t some) {
  return n > some ? n - some : 0;
}

static void write_chunks(struct gemm *g, uint32_t from, uint32_t to) {
  for (uint32_t q = from; q < to; ++q) {
    const struct chunk c = ct_gemm_chunk(g, q);
    if (q >= g->how->together) g->how->multiply(g, &c);
    if (g->how->ahead) g->how->ahead(g, &c);
    if (c.last && g->how->ahead) ct_gemm_drain(g, &c.b);
  }
}

/* The first chunk is shorter, the last two load the next block's. */
static void write_blocks(struct gemm *g, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; ++i) {
    const uint32_t at = i * g->chunks, end = at + g->chunks;
    write_range(g, (struct range){at, end}, (struct range){at + 1, less(end, 2)}, write_chunks);
  }
}

/* The first band's blocks begin in other ways (see the strategies), the last one may be narrower.
 */
static void write_band(struct gemm *g, uint32_t band) {
  const uint32_t at = band ? g->cols0 + (band - 1) * g->cols : 0;
  const uint32_t cols = band ? g->cols : g->cols0;
  const uint32_t early = band ? BACK : BACK + g->how->single_from;
  write_range(g, (struct range){at, at + cols},
              (struct range){at + early, at + less(cols, AHEAD + 1)}, write_blocks);
}

static void write_bands(struct gemm *g, uint32_t from, uint32_t to) {
  for (uint32_t band = from; band < to; ++band)
    write_band(g, band);
}

void ct_gemm_write(struct gemm *g) {
  const uint32_t bands = ct_gemm_bands(g), flat = g->s->flat ? g->s->flat : CT_GEMM_FLAT;
  const uint64_t chunks = (uint64_t)g->blocks * g->chunks;
  g->how->start(g);
  if (chunks * CHUNK_COMMANDS + (uint64_t)g->blocks * BLOCK_COMMANDS <= flat)
    write_chunks(g, 0, (uint32_t)chunks);
  else
    write_range(g, (struct range){0, bands}, (struct range){1 + BACK, less(bands, AHEAD + 1)},
                write_bands);
}
