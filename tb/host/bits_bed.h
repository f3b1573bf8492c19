/* SPDX-License-Identifier: Apache-2.0 */
/* A graph on the device whose tensors are bits, and the arithmetic of docs/numerics.md: for tests
 * that compare operators to the bit. */
#ifndef BITS_BED_H
#define BITS_BED_H

#include <stdlib.h>
#include <string.h>

#include "ct_num.h"
#include "graph_bed.h"

#include "coltrain/network.h"

enum { ROWS = 75, COLS = 21, ALL = ROWS * COLS };

/* ---- A graph on the device, its tensors as bits -------------------------------------------- */

struct run {
  struct bed b;
  ct_device *dev;
  ct_network *net;
  ct_rng rng;
};

static inline void begin(struct run *r, uint64_t seed) {
  *r = (struct run){.rng = ct_rng_make(seed)};
  bed_make(&r->b);
}

static inline void put_on_device(struct run *r) {
  bed_check(&r->b);
  assert_int_equal(ct_open("emu:", &r->dev), CT_OK);
  if (ct_network_create(r->dev, r->b.g, NULL, &r->net)) fail_msg("%s", ct_last_error(r->dev));
}

static inline void end(struct run *r) {
  ct_network_free(r->net);
  ct_close(r->dev);
  bed_free(&r->b);
}

static inline uint32_t bits(double x) {
  const float f = (float)x;
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

/* Draws a tensor from `least` on; x gets its bits. */
static inline void draw(struct run *r, int tensor, double least, uint32_t *x) {
  const size_t count = bed_info(&r->b, tensor).elements;
  assert_true(count <= ALL);
  float f[ALL];
  for (size_t i = 0; i < count; ++i) {
    f[i] = (float)(least + (double)ct_rng_below(&r->rng, 1u << 24) * 0x1p-23);
    x[i] = bits((double)f[i]);
  }
  assert_int_equal(ct_network_write(r->net, tensor, f, count), CT_OK);
}

static inline void expect(struct run *r, int tensor, const uint32_t *want, const char *what) {
  const size_t count = bed_info(&r->b, tensor).elements;
  float f[ALL];
  assert_int_equal(ct_network_read(r->net, tensor, f, count), CT_OK);
  for (size_t i = 0; i < count; ++i)
    if (bits((double)f[i]) != want[i])
      fail_msg("%s: element %zu is %08x, not %08x", what, i, bits((double)f[i]), want[i]);
}

static inline void step(struct run *r, uint64_t t) {
  if (ct_network_run(r->net, CT_TRAINING, t)) fail_msg("%s", ct_last_error(r->dev));
}

/* ---- Arithmetic ---------------------------------------------------------------------------- */

static inline uint32_t add(uint32_t a, uint32_t b) {
  return ct_fp_add(a, b);
}
static inline uint32_t mul(uint32_t a, uint32_t b) {
  return ct_fp_mul(a, b);
}
static inline uint32_t minus(uint32_t x) {
  return x ^ 0x80000000u;
}
static inline uint32_t one_minus(uint32_t x) {
  return add(bits(1), minus(x));
}

/* Sixteen partial sums, every step-th number: j and j + 8, j + 4, j + 2, j + 1. */
static inline uint32_t halve(uint32_t *p, size_t step) {
  for (size_t half = 8; half; half /= 2)
    for (size_t j = 0; j < half; ++j)
      p[j * step] = add(p[j * step], p[(j + half) * step]);
  return p[0];
}

static inline uint32_t sum_of(const uint32_t *x, size_t rows, size_t col) {
  uint32_t p[16] = {0};
  for (size_t i = 0; i < rows; ++i)
    p[i % 16] = add(p[i % 16], x[i * COLS + col]);
  return halve(p, 1);
}

#endif
