/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 by integer arithmetic: the caller's rounding mode is none of our affair. */
#include "ct_fixed.h"

#include <stdbool.h>
#include <string.h>

#include "ct_num.h"

enum { BITS = 64 };

static int top_bit(uint64_t v) {
  return BITS - 1 - __builtin_clzll(v);
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* v * 2^(exp - 150) for v > 0, rounded to nearest even as if the exponent had no limits. */
static uint32_t rounded(int exp, uint64_t v) {
  const int shift = top_bit(v) - 23;
  uint64_t mant = shift <= 0 ? v << -shift : v >> shift;
  exp += shift;
  if (shift > 0) {
    const uint64_t rest = v & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    mant += rest > half || (rest == half && (mant & 1));
  }
  if (mant >> 24) {
    mant >>= 1;
    ++exp;
  }
  if (exp < 1) return 0;
  if (exp >= 255) return CT_FP_INF;
  return (uint32_t)exp << 23 | ((uint32_t)mant & 0x7fffff);
}

float ct_from_fixed(int64_t v, int point) {
  const uint32_t sign = v < 0 ? CT_FP_SIGN : 0;
  if (v == 0) return 0;
  return float_of(sign | rounded(150 - point, v < 0 ? 0 - (uint64_t)v : (uint64_t)v));
}

float ct_divide(float x, uint32_t n) {
  const uint32_t b = bits_of(x), sign = b & CT_FP_SIGN;
  const int e = (int)(b >> 23 & 255);
  if (e == 255 || n == 0) return x; /* Inf and NaN */
  if (e == 0) return float_of(sign);
  /* 24 + 38 bits by at most 32: 29 good bits, and what is left over counts as a little more. */
  const uint64_t v = (uint64_t)((b & 0x7fffff) | 0x800000) << 38, q = v / n;
  if (e - 38 + top_bit(q) - 23 < 1) return float_of(sign); /* below 2^-126 before it is rounded */
  return float_of(sign | rounded(e - 38, q | (v % n != 0)));
}

uint64_t ct_floor_root(uint64_t x) {
  uint64_t r = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
    if ((r + bit) * (r + bit) <= x) r += bit;
  return r;
}

/* 38 bits and more, the last of which stands for what is left over, too. */
float ct_quotient(float a, float b) {
  const uint32_t x = bits_of(a), y = bits_of(b);
  const uint64_t n = (uint64_t)((x & 0x7fffff) | 0x800000) << 39;
  const uint64_t d = (y & 0x7fffff) | 0x800000;
  return float_of(rounded((int)(x >> 23) - (int)(y >> 23) + 150 - 39, n / d | (n % d != 0)));
}

/* The 64 bits from bit `low` on, which may be below 0. *rest: whether there is more below. */
static uint64_t bits_from(const uint64_t *a, unsigned words, int low, bool *rest) {
  *rest = false;
  if (low < 0) return a[0] << -low;
  const unsigned word = (unsigned)low / BITS, shift = (unsigned)low % BITS;
  for (unsigned i = 0; i < word; ++i)
    *rest |= a[i] != 0;
  if (shift == 0) return a[word];
  *rest |= a[word] << (BITS - shift) != 0;
  return a[word] >> shift | (word + 1 < words ? a[word + 1] << (BITS - shift) : 0);
}

/* Of 63 or 64 bits the root has 32, eight more than are kept. */
float ct_root(const uint64_t *a, unsigned words, int point) {
  unsigned top = words - 1;
  bool rest;
  while (top > 0 && a[top] == 0)
    --top;
  if (a[top] == 0) return 0;
  int low = (int)top * BITS + top_bit(a[top]) - (BITS - 1);
  if (low & 1) ++low;
  const uint64_t x = bits_from(a, words, low, &rest), r = ct_floor_root(x);
  return float_of(rounded(150 - 1 + (low - point) / 2, r << 1 | (rest || r * r != x)));
}
