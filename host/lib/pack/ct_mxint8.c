/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MXINT8 of the OCP Microscaling specification to HBFP8 and back (docs/numerics.md). A number is
 * m * 2^(X - 133) there and q * 2^(E - 133) here: 32 elements under one scale are two of our blocks
 * with that exponent, and nothing is computed. The other way needs one scale for two exponents.
 * Integers only.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_device.h"
#include "ct_num.h"
#include "ct_pack.h"

enum {
  MX = 32,        /* elements under one scale */
  UNUSED = -128,  /* the code that HBFP8 has not, and the specification lets be unused */
  MOST = 127,     /* the largest mantissa */
  SHIFT_MOST = 8, /* a mantissa of 7 bits, shifted right by as many or more, rounds to 0 */
};

/* A piece of a row in a packed matrix: up to 16 elements. */
struct half {
  const int8_t *q;
  size_t n;
  uint8_t exp;
};

static size_t blocks_of(size_t n, size_t block) {
  return n / block + (n % block != 0);
}

/* The record of the tile of row r and of the block from column c on. */
static size_t record_at(size_t r, size_t c, size_t cols) {
  return (r / CT_TILE * blocks_of(cols, CT_TILE) + c / CT_TILE) * CT_RECORD;
}

/* ---- In ---- */

static int check_scale(const int8_t *m, size_t n, uint8_t scale, size_t r, size_t block) {
  if (scale == CT_EXP_NAN)
    return ct_fail(NULL, CT_ERR_ARG,
                   "the scale of row %zu, block %zu is 255, which is NaN: there is no number in it",
                   r, block);
  if (scale) return CT_OK;
  for (size_t i = 0; i < n; ++i)
    if (m[i])
      return ct_fail(NULL, CT_ERR_ARG,
                     "the scale of row %zu, block %zu is 0, which is 2^-127: exponents of HBFP8 "
                     "begin at 2^-126, so that such a block must be zero",
                     r, block);
  return CT_OK;
}

static int check_elements(const int8_t *elements, const uint8_t *scales, size_t rows, size_t cols) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < cols; c += MX) {
      const size_t n = cols - c < MX ? cols - c : MX;
      const int8_t *m = elements + r * cols + c;
      for (size_t i = 0; i < n; ++i)
        if (m[i] == UNUSED)
          return ct_fail(NULL, CT_ERR_ARG,
                         "element %zu (row %zu, column %zu) is -128, a code that HBFP8 does not "
                         "have: its mantissas are -127..127",
                         r * cols + c + i, r, c + i);
      const int err = check_scale(m, n, scales[r * blocks_of(cols, MX) + c / MX], r, c / MX);
      if (err) return err;
    }
  return CT_OK;
}

int ct_pack_mxint8(const int8_t *elements, const uint8_t *scales, size_t rows, size_t cols,
                   void *out) {
  CT_NEED(NULL, elements);
  CT_NEED(NULL, scales);
  CT_NEED(NULL, out);
  int err = ct_pack_check(rows, cols);
  if (!err) err = check_elements(elements, scales, rows, cols);
  if (err) return err;
  memset(out, 0, ct_pack_size(rows, cols));
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < cols; c += CT_TILE) {
      uint8_t *record = (uint8_t *)out + record_at(r, c, cols);
      record[r % CT_TILE] = scales[r * blocks_of(cols, MX) + c / MX];
      memcpy(record + CT_TILE * (r % CT_TILE + 1), elements + r * cols + c,
             cols - c < CT_TILE ? cols - c : CT_TILE);
    }
  return CT_OK;
}

/* ---- Out ---- */

/* What a mantissa counts as. */
static int value(const struct half *h, size_t i) {
  return h->exp == CT_EXP_ZERO || h->q[i] == UNUSED ? 0 : h->q[i];
}

/* v / 2^shift to nearest even; to the left it is exact. */
static int shifted(int v, int shift) {
  if (v == 0) return 0;
  if (shift <= 0) return v * (1 << -shift);
  if (shift > SHIFT_MOST) return 0;
  const int m = abs(v), rest = m & ((1 << shift) - 1), half = 1 << (shift - 1);
  const int rounded = (m >> shift) + (rest > half || (rest == half && (m >> shift & 1)));
  return v < 0 ? -rounded : rounded;
}

/* Of the elements that are not 0: the largest exponent, and the largest under which all are whole
 * numbers. Without any, both are the larger of the two. */
static void measure(const struct half h[2], int *top, int *whole) {
  *top = -1;
  *whole = CT_EXP_NAN;
  for (int k = 0; k < 2; ++k)
    for (size_t i = 0; i < h[k].n; ++i) {
      const int v = abs(value(&h[k], i));
      if (v == 0) continue;
      const int last = h[k].exp + __builtin_ctz((unsigned)v);
      if (h[k].exp > *top) *top = h[k].exp;
      if (last < *whole) *whole = last;
    }
  if (*top < 0) *top = *whole = h[0].exp > h[1].exp ? h[0].exp : h[1].exp;
}

/* Whether the numbers of both, in units of that scale, are within -127..127. */
static bool fits(const struct half h[2], int scale) {
  for (int k = 0; k < 2; ++k)
    for (size_t i = 0; i < h[k].n; ++i) {
      const int left = h[k].exp - scale, v = abs(value(&h[k], i));
      if (v && left > 0 && (left >= SHIFT_MOST - 1 || v << left > MOST)) return false;
    }
  return true;
}

/* The scale of an MX block made of two halves; a negative error. */
static int scale_of(const struct half h[2], enum ct_rounding rounding, size_t r, size_t block) {
  int top, whole;
  if (h[0].exp == CT_EXP_NAN || h[1].exp == CT_EXP_NAN)
    return ct_fail(NULL, CT_ERR_ARG, "row %zu, block %zu (of 32) is NaN", r, block);
  measure(h, &top, &whole);
  const int scale = whole < top ? whole : top;
  if (fits(h, scale)) return scale;
  if (rounding == CT_NEAREST) return top;
  return ct_fail(
      NULL, CT_ERR_ARG,
      "row %zu, block %zu (of 32): its halves have the exponents %d and %d, and under no "
      "scale are all elements whole numbers of -127..127; CT_NEAREST rounds them",
      r, block, h[0].exp, h[1].exp);
}

/* The two halves of the MX block of row r from column c on; the second may have no elements. */
static void halves_of(const uint8_t *packed, size_t r, size_t c, size_t cols, struct half h[2]) {
  for (size_t k = 0; k < 2; ++k, c += CT_TILE) {
    h[k] = (struct half){NULL, 0, CT_EXP_ZERO};
    if (c >= cols) continue;
    const uint8_t *record = packed + record_at(r, c, cols);
    h[k].q = (const int8_t *)record + CT_TILE * (r % CT_TILE + 1);
    h[k].n = cols - c < CT_TILE ? cols - c : CT_TILE;
    h[k].exp = record[r % CT_TILE];
  }
}

int ct_unpack_mxint8(const void *packed, size_t rows, size_t cols, enum ct_rounding rounding,
                     int8_t *elements, uint8_t *scales) {
  struct half h[2];
  CT_NEED(NULL, packed);
  CT_NEED(NULL, elements);
  CT_NEED(NULL, scales);
  if (rounding != CT_EXACT && rounding != CT_NEAREST)
    return ct_fail(NULL, CT_ERR_ARG, "there is no rounding %d: CT_EXACT or CT_NEAREST",
                   (int)rounding);
  int scale = ct_pack_check(rows, cols);
  /* Twice, so that what is refused has written nothing. */
  for (size_t r = 0; r < rows && scale >= 0; ++r)
    for (size_t c = 0; c < cols && scale >= 0; c += MX) {
      halves_of(packed, r, c, cols, h);
      scale = scale_of(h, rounding, r, c / MX);
    }
  if (scale < 0) return scale;
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < cols; c += MX) {
      halves_of(packed, r, c, cols, h);
      scale = scale_of(h, rounding, r, c / MX);
      *scales++ = (uint8_t)scale;
      for (int k = 0; k < 2; ++k)
        for (size_t i = 0; i < h[k].n; ++i)
          *elements++ = (int8_t)shifted(value(&h[k], i), scale - h[k].exp);
    }
  return CT_OK;
}
