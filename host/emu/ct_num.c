/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_num.h"

/* An FP32 operand taken apart; zeros and subnormals have exp = mant = 0. */
typedef struct {
  uint32_t sign; /* CT_FP_SIGN or 0 */
  int32_t exp;   /* the exponent field, 0..255 */
  uint32_t mant; /* 24 bits, hidden one included */
} fp;

static fp unpack(uint32_t x) {
  fp r = {x & CT_FP_SIGN, (int32_t)(x >> 23 & 255), 0};
  if (r.exp) r.mant = (x & 0x7FFFFFu) | 0x800000u;
  return r;
}

static bool is_nan(uint32_t x) {
  return (x & ~CT_FP_SIGN) > CT_FP_INF;
}

static bool is_inf(uint32_t x) {
  return (x & ~CT_FP_SIGN) == CT_FP_INF;
}

/* Subnormals to zeros of their sign. */
static uint32_t flush(uint32_t x) {
  return x & CT_FP_INF ? x : x & CT_FP_SIGN;
}

/* Of v > 0. */
static int top_bit(uint64_t v) {
  return 63 - __builtin_clzll(v);
}

/* The bits of v from bit `shift` upwards, rounded to nearest even; shift >= 1. */
static uint64_t round_even(uint64_t v, int shift) {
  if (shift > 63) return 0; /* callers have v < 2^62: less than half */
  const uint64_t floor = v >> shift;
  const uint64_t rest = v & ((UINT64_C(1) << shift) - 1);
  const uint64_t half = UINT64_C(1) << (shift - 1);
  return floor + (rest > half || (rest == half && (floor & 1)));
}

/* sign, mant * 2^(exp - 150) for 2^23 <= mant <= 2^24: overflow to Inf, underflow to zero. */
static uint32_t pack(uint32_t sign, int32_t exp, uint32_t mant) {
  if (mant >> 24) {
    mant >>= 1;
    ++exp;
  }
  if (exp >= 255) return sign | CT_FP_INF;
  if (exp <= 0) return sign;
  return sign | (uint32_t)exp << 23 | (mant & 0x7FFFFFu);
}

/* v * 2^(exp - 150), rounded to nearest even; v < 2^62. */
static uint32_t pack_rounded(uint32_t sign, int32_t exp, uint64_t v) {
  if (!v) return sign;
  const int shift = top_bit(v) - 23;
  if (shift <= 0) return pack(sign, exp + shift, (uint32_t)(v << -shift));
  return pack(sign, exp + shift, (uint32_t)round_even(v, shift));
}

uint32_t ct_fp_add(uint32_t a, uint32_t b) {
  if (is_nan(a) || is_nan(b)) return CT_FP_NAN;
  if (is_inf(a) && is_inf(b)) return a == b ? a : CT_FP_NAN;
  if (is_inf(a)) return a;
  if (is_inf(b)) return b;
  fp x = unpack(a), y = unpack(b);
  if (y.exp > x.exp || (y.exp == x.exp && y.mant > x.mant)) {
    const fp t = x;
    x = y;
    y = t;
  }
  /* |x| >= |y|. With 32 bits below x, a y out of reach is a little less than nothing or a little
   * more: 1 in the last bit stands for it. */
  const int distance = x.exp - y.exp;
  const uint64_t big = (uint64_t)x.mant << 32;
  uint64_t small = (uint64_t)y.mant << 32;
  small = distance < 32 ? small >> distance : small != 0;
  if (x.sign == y.sign) return pack_rounded(x.sign, x.exp - 32, big + small);
  if (big == small) return 0;
  return pack_rounded(x.sign, x.exp - 32, big - small);
}

uint32_t ct_fp_mul(uint32_t a, uint32_t b) {
  const uint32_t sign = (a ^ b) & CT_FP_SIGN;
  if (is_nan(a) || is_nan(b)) return CT_FP_NAN;
  const fp x = unpack(a), y = unpack(b);
  if (is_inf(a) || is_inf(b)) return x.exp && y.exp ? sign | CT_FP_INF : CT_FP_NAN;
  return pack_rounded(sign, x.exp + y.exp - 150, (uint64_t)x.mant * y.mant);
}

/* Order of values that are not NaN: increasing, -0 just below +0. */
static int64_t rank(uint32_t x) {
  const int64_t magnitude = flush(x) & ~CT_FP_SIGN;
  return x & CT_FP_SIGN ? -magnitude - 1 : magnitude;
}

uint32_t ct_fp_max(uint32_t a, uint32_t b) {
  if (is_nan(a) || is_nan(b)) return CT_FP_NAN;
  return flush(rank(a) > rank(b) ? a : b);
}

uint32_t ct_fp_min(uint32_t a, uint32_t b) {
  if (is_nan(a) || is_nan(b)) return CT_FP_NAN;
  return flush(rank(a) > rank(b) ? b : a);
}

bool ct_fp_gt(uint32_t a, uint32_t b) {
  if (is_nan(a) || is_nan(b)) return false;
  if (!unpack(a).exp && !unpack(b).exp) return false; /* zeros are equal, whatever their signs */
  return rank(a) > rank(b);
}

bool ct_fp_eq(uint32_t a, uint32_t b) {
  if (is_nan(a) || is_nan(b)) return false;
  return a == b || (!unpack(a).exp && !unpack(b).exp);
}

uint32_t ct_fp_relu(uint32_t x) {
  if (is_nan(x)) return CT_FP_NAN;
  return ct_fp_gt(x, 0) ? x : 0;
}

uint32_t ct_fp_term(int32_t s, uint8_t ea, uint8_t eb) {
  if (ea == CT_EXP_NAN || eb == CT_EXP_NAN) return CT_FP_NAN;
  if (s == 0 || ea == CT_EXP_ZERO || eb == CT_EXP_ZERO) return 0;
  const uint32_t sign = s < 0 ? CT_FP_SIGN : 0;
  return pack_rounded(sign, ea + eb - 266 + 150, s < 0 ? -(int64_t)s : s);
}

uint32_t ct_hbfp8_dequant(int8_t q, uint8_t e) {
  if (e == CT_EXP_NAN) return CT_FP_NAN;
  const uint32_t magnitude = (uint32_t)(q < 0 ? -q : q) & 127;
  if (magnitude == 0 || e == CT_EXP_ZERO) return 0;
  return pack_rounded(q < 0 ? CT_FP_SIGN : 0, e - 133 + 150, magnitude);
}

uint8_t ct_hbfp8_group_exp(const uint32_t *x, size_t n) {
  uint8_t e = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint8_t field = x[i] >> 23 & 255;
    if (field > e) e = field;
  }
  return e;
}

int8_t ct_hbfp8_quant(uint32_t x, uint8_t e) {
  return ct_hbfp8_quant_narrow(x, e, 0);
}

int8_t ct_hbfp8_quant_narrow(uint32_t x, uint8_t e, unsigned narrow) {
  if (e == CT_EXP_ZERO || e == CT_EXP_NAN) return 0;
  const fp v = unpack(x);
  const int most = 127 >> narrow;
  int magnitude = most; /* for v.exp > e, too: e is not the group's exponent */
  if (v.exp <= e) {
    /* |x| * 2^(133 - narrow - e) = mant * 2^(exp - 150 + 133 - narrow - e) */
    const uint64_t q = round_even(v.mant, 17 + (int)narrow + e - v.exp);
    if (q < (uint64_t)most) magnitude = (int)q;
  }
  magnitude <<= (int)narrow;
  return (int8_t)(v.sign ? -magnitude : magnitude);
}

int8_t ct_hbfp8_align(int8_t q, uint8_t e, uint8_t to) {
  const int shift = to - e;
  if (e == CT_EXP_ZERO || shift >= 8) return 0; /* 127 * 2^-8 is less than half */
  const int floor = q >> shift, rest = q - floor * (1 << shift);
  return (int8_t)(floor + (2 * rest + (floor & 1) > 1 << shift));
}

/* --- Functions: docs/numerics.md explains the scheme. --- */

static const uint64_t kFnTable[512] = {
#define X(index, row) [index] = (row),
#include "../../rtl/fp/ct_fn_table.def"
#undef X
};

#define LOG2E_28 UINT32_C(0x17154765) /* log2(e) in units of 2^-28 */
#define LN2_28 UINT32_C(0x0B17217F)   /* ln(2) in units of 2^-28 */

/* A polynomial y = c0 - step of the table, at 23 bits of argument: the segment and the offset in
 * it. Both parts are apart because the logarithm adds around c0. */
typedef struct {
  int64_t c0, step;
} fn_poly;

static fn_poly evaluate(enum ct_fn fn, uint32_t argument) {
  const uint32_t t = argument & 0xFFFF;
  const uint64_t row = kFnTable[128 * fn + (argument >> 16)];
  const uint32_t c0 = (uint32_t)(row >> 36), c1 = row >> 16 & 0xFFFFF, c2 = row & 0xFFFF;
  const uint32_t g = c1 - (uint32_t)((uint64_t)c2 * t >> 20);
  return (fn_poly){c0, (int64_t)((uint64_t)g * t >> 13)};
}

/* y * 2^(exp - 150), truncated to FP32. y of a table other than log's lacks its 1. */
static uint32_t pack_truncated(uint32_t sign, int32_t exp, uint64_t y) {
  if (!y) return 0;
  const int shift = top_bit(y) - 23;
  const uint64_t mant = shift < 0 ? y << -shift : y >> shift;
  return pack(sign, exp + shift, (uint32_t)mant);
}

static uint32_t pack_octave(uint32_t sign, int32_t exp, fn_poly p) {
  return pack_truncated(sign, exp - 4, (uint64_t)((INT64_C(1) << 27) + p.c0 - p.step));
}

uint32_t ct_fn_exp(uint32_t x) {
  if (is_nan(x)) return CT_FP_NAN;
  const fp v = unpack(x);
  if (v.exp >= 134) return v.sign ? 0 : CT_FP_INF; /* |x| >= 128 */
  /* z = |x| / ln 2 in units of 2^-23, rounded half up. Below, y covers 2^(1 - f) for 0 <= f < 1. */
  const int shift = 155 - v.exp;
  const uint64_t product = (uint64_t)v.mant * LOG2E_28;
  const uint32_t z = shift > 63 ? 0 : (uint32_t)((product + (UINT64_C(1) << (shift - 1))) >> shift);
  const int32_t w = v.sign ? (int32_t)z : -(int32_t)z; /* e^x = 2^-w */
  const uint32_t f = (uint32_t)w & 0x7FFFFF;
  const int32_t whole = (w - (int32_t)f) / 0x800000;
  return pack_octave(0, 126 - whole, evaluate(CT_FN_EXP, f));
}

uint32_t ct_fn_recip(uint32_t x) {
  if (is_nan(x)) return CT_FP_NAN;
  const fp v = unpack(x);
  if (v.exp == 255) return v.sign;
  if (v.exp == 0) return v.sign | CT_FP_INF;
  return pack_octave(v.sign, 253 - v.exp, evaluate(CT_FN_RECIP, v.mant & 0x7FFFFF));
}

uint32_t ct_fn_log(uint32_t x) {
  const fp v = unpack(x);
  if (is_nan(x)) return CT_FP_NAN;
  if (v.exp == 0) return CT_FP_SIGN | CT_FP_INF;
  if (v.sign) return CT_FP_NAN;
  if (v.exp == 255) return CT_FP_INF;
  /* x = 2^e (1 + m); y = ln(2 / (1 + m)), so log(x) = (e + 1) ln 2 - y. All in units of 2^-28. */
  const int32_t e = v.exp - 127;
  const fn_poly p = evaluate(CT_FN_LOG, v.mant & 0x7FFFFF);
  const int64_t log = (int64_t)(e + 1) * LN2_28 - p.c0 + p.step;
  if (e < 0) return pack_truncated(CT_FP_SIGN, 127 - 5, (uint64_t)-log);
  return pack_truncated(0, 127 - 5, (uint64_t)log);
}

uint32_t ct_fn_rsqrt(uint32_t x) {
  if (is_nan(x)) return CT_FP_NAN;
  const fp v = unpack(x);
  if (v.exp == 0) return v.sign | CT_FP_INF;
  if (v.sign) return CT_FP_NAN;
  if (v.exp == 255) return 0;
  /* x = 4^h u with u in [1, 2) when the exponent e is even, in [2, 4) when odd; y = 2 / sqrt(u).
   * The lowest bit of x is not looked at. */
  const int32_t odd = ~v.exp & 1; /* the field is e + 127 */
  const int32_t h = (v.exp - 127 - odd) / 2;
  const uint32_t argument = (uint32_t)odd << 22 | (v.mant & 0x7FFFFF) >> 1;
  return pack_octave(0, 126 - h, evaluate(CT_FN_RSQRT, argument));
}

uint32_t ct_fn(enum ct_fn fn, uint32_t x) {
  switch (fn) {
    case CT_FN_EXP:
      return ct_fn_exp(x);
    case CT_FN_RECIP:
      return ct_fn_recip(x);
    case CT_FN_LOG:
      return ct_fn_log(x);
    case CT_FN_RSQRT:
      return ct_fn_rsqrt(x);
  }
  return CT_FP_NAN;
}
