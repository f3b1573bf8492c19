/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a vector path, written once for any vector instructions. Whoever includes this
 * defines before:
 *
 *   FAST        attributes of every function: the instructions it may use
 *   v16, m16    16 FP32 values (or their bits), 16 conditions
 *   v_load, v_store, v_all(bits), v_mul, v_add, v_fma, v_max, v_min, v_and, v_or, v_xor
 *   v_iadd, v_umax     of 32-bit integers           v_utop   the largest of 16, unsigned
 *   v_gt, v_eq, v_unord, v_choose(m, yes, no), m_below(n): lanes 0..n-1
 *   v_lane_xor(v, x)   lane j from lane j ^ x       v_from_i8, v_to_i8 (nearest even, +-127)
 *   struct held, hold(b)             what of B stays in registers
 *   dots(a, held, r, transposed)     block dot products of rows r..r+3 (struct rows), exact in FP32
 *
 * The processor flushes subnormals (MXCSR) while these run; NaNs are made canonical here. All
 * other choices of the numeric contract are what the processor does: docs/numerics.md, section 1.
 */
#ifndef CT_PATH_SIMD_H
#define CT_PATH_SIMD_H

#include <string.h>
#include <immintrin.h>

#include "ct_num.h"

enum { MXCSR_FLUSH = 0x9FC0 }; /* FTZ, DAZ, nearest even, no exception traps */

static unsigned enter(void) {
  const unsigned state = _mm_getcsr();
  _mm_setcsr(MXCSR_FLUSH);
  return state;
}

static void leave(unsigned state) {
  _mm_setcsr(state);
}

/* ---- Products ---- */

/* A term is exact, so rounding its sum with acc once is what the contract's addition does: a fused
 * operation is no other. Inf + finite makes no new NaN, and acc's are canonical. */
/* Four rows stay in registers over all k steps. uniform: all exponents of a step of A are the same,
 * as in square tiles. */
FAST static inline __attribute__((always_inline)) void accumulate(
    const struct ct_operand *a, const struct ct_operand *b, unsigned steps, unsigned rows,
    bool fresh, bool transposed, bool uniform, struct ct_emu_tile *acc) {
  for (unsigned r = 0; r < rows; r += 4) {
    uint32_t(*x)[16] = acc->x + r;
    const v16 zero = v_all(0);
    v16 s0 = fresh ? zero : v_load(x[0]), s1 = fresh ? zero : v_load(x[1]),
        s2 = fresh ? zero : v_load(x[2]), s3 = fresh ? zero : v_load(x[3]);
    for (unsigned k = 0; k < steps; ++k) {
      const struct held held = hold(&b[k]);
      const struct rows s = dots(&a[k], &held, r, transposed);
      const uint32_t *scale_a = (const uint32_t *)a[k].scale + r;
      const v16 b_alone = v_load((const uint32_t *)b[k].scale);
      const v16 scale = v_iadd(b_alone, v_all(scale_a[0]));
      s0 = v_fma(s.row0, scale, s0);
      s1 = v_fma(s.row1, uniform ? scale : v_iadd(b_alone, v_all(scale_a[1])), s1);
      s2 = v_fma(s.row2, uniform ? scale : v_iadd(b_alone, v_all(scale_a[2])), s2);
      s3 = v_fma(s.row3, uniform ? scale : v_iadd(b_alone, v_all(scale_a[3])), s3);
    }
    v_store(x[0], s0);
    if (r + 1 < rows) v_store(x[1], s1);
    if (r + 2 < rows) v_store(x[2], s2);
    if (r + 3 < rows) v_store(x[3], s3);
  }
}

FAST static void multiply(const struct ct_operand *a, const struct ct_operand *b, unsigned steps,
                          unsigned rows, bool fresh, struct ct_emu_tile *acc) {
  bool exact = true, uniform = true;
  for (unsigned k = 0; k < steps; ++k) {
    exact &= (a[k].low + b[k].low >= CT_PATH_LOW) & (a[k].high + b[k].high <= CT_PATH_HIGH);
    uniform &= a[k].low == a[k].high;
  }
  if (!exact)
    ct_path_multiply_plain(a, b, steps, rows, fresh, acc);
  else if (a->words.transposed) /* and so uniform */
    accumulate(a, b, steps, rows, fresh, true, true, acc);
  else if (uniform)
    accumulate(a, b, steps, rows, fresh, false, true, acc);
  else
    accumulate(a, b, steps, rows, fresh, false, false, acc);
}

/* ---- HBFP8 ---- */

/* A row divided by 2^shift, 1..7, to nearest, ties to even; as ct_hbfp8_align(). */
FAST static inline void shift_row(int8_t *q, unsigned shift) {
  const __m128i by = _mm_cvtsi32_si128((int)shift);
  const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)q));
  const __m256i odd = _mm256_and_si256(_mm256_sra_epi16(x, by), _mm256_set1_epi16(1));
  const __m256i half = _mm256_set1_epi16((int16_t)((1 << (shift - 1)) - 1));
  const __m256i y = _mm256_sra_epi16(_mm256_add_epi16(x, _mm256_add_epi16(half, odd)), by);
  const __m128i low = _mm256_castsi256_si128(y), high = _mm256_extracti128_si256(y, 1);
  _mm_storeu_si128((__m128i *)q, _mm_packs_epi16(low, high));
}

FAST static void align(int8_t (*q)[16], uint8_t *e) {
  const __m128i not_e = _mm_xor_si128(_mm_loadu_si128((const __m128i *)e), _mm_set1_epi8(-1));
  const __m128i least = _mm_minpos_epu16(_mm_min_epu8(not_e, _mm_srli_epi16(not_e, 8)));
  const unsigned top = ~(unsigned)_mm_cvtsi128_si32(least) & 255;
  for (unsigned r = 0; r < 16; ++r) {
    const unsigned shift = top - e[r];
    if (shift == 0) continue;
    if (e[r] == CT_EXP_ZERO || shift >= 8)
      _mm_storeu_si128((__m128i *)q[r], _mm_setzero_si128());
    else
      shift_row(q[r], shift);
  }
  memset(e, (int)top, 16);
}

enum { LEAST_SCALE = 7 }; /* 2^(e - 133) and 2^(133 - e) are normal from here on */

FAST static void dequantise(const int8_t (*q)[16], const uint8_t *e, unsigned rows, bool sign,
                            uint32_t (*x)[16]) {
  const v16 zero = v_all(0), one = v_all(CT_FP_ONE), lowest = v_all(0xC3000000u /* -128 */);
  for (unsigned r = 0; r < rows; ++r) {
    if (e[r] < LEAST_SCALE || e[r] == CT_EXP_NAN) {
      ct_path_plain.dequantise(q + r, e + r, 1, sign, x + r);
      continue;
    }
    const v16 v = v_from_i8(q[r]);
    if (sign)
      v_store(x[r], v_choose(v_gt(v, zero), one, zero));
    else
      v_store(x[r], v_choose(v_eq(v, lowest), zero, v_mul(v, v_all((e[r] - 6u) << 23))));
  }
}

FAST static inline uint8_t group_exp(const uint32_t (*x)[16], unsigned rows) {
  const v16 magnitude = v_all(~CT_FP_SIGN);
  v16 top = v_all(0);
  for (unsigned r = 0; r < rows; ++r)
    top = v_umax(top, v_and(v_load(x[r]), magnitude));
  return (uint8_t)(v_utop(top) >> 23);
}

/* |v| < 128 to the nearest multiple of 2^narrow, ties to even: with this number added, that is the
 * last bit of an FP32 value. Then at most the largest multiple below 128. */
FAST static inline v16 narrowed(v16 v, unsigned narrow) {
  const float largest = (float)(127 >> narrow << narrow);
  uint32_t bits_of_it;
  memcpy(&bits_of_it, &largest, sizeof bits_of_it);
  const v16 large = v_all(0x4B400000u + (narrow << 23)),
            minus = v_all(0xCB400000u + (narrow << 23));
  const v16 most = v_all(bits_of_it);
  const v16 x = v_add(v_add(v, large), minus);
  return v_max(v_min(x, most), v_xor(most, v_all(CT_FP_SIGN)));
}

FAST static inline void quantise_rows(const uint32_t (*x)[16], unsigned rows, uint8_t e,
                                      unsigned narrow, int8_t (*q)[16]) {
  if (e == CT_EXP_ZERO || e == CT_EXP_NAN) {
    memset(q, 0, sizeof *q * rows);
  } else if (e < LEAST_SCALE) {
    for (unsigned i = 0; i < 16 * rows; ++i)
      q[i / 16][i % 16] = ct_hbfp8_quant_narrow(x[i / 16][i % 16], e, narrow);
  } else {
    const v16 scale = v_all((260u - e) << 23);
    for (unsigned r = 0; r < rows; ++r) {
      const v16 v = v_mul(v_load(x[r]), scale);
      v_to_i8(narrow ? narrowed(v, narrow) : v, q[r]);
    }
  }
}

FAST static unsigned quantise(const uint32_t (*x)[16], unsigned rows, bool square, unsigned narrow,
                              int8_t (*q)[16], uint8_t *e) {
  unsigned nans = 0;
  const unsigned step = square ? rows : 1;
  for (unsigned r = 0; r < rows; r += step) {
    const uint8_t shared = group_exp(x + r, step);
    nans += shared == CT_EXP_NAN;
    quantise_rows(x + r, step, shared, narrow, q + r);
    memset(e + r, shared, step);
  }
  return nans;
}

/* ---- VA ---- */

FAST static inline v16 canonical(v16 x) {
  return v_choose(v_unord(x, x), v_all(CT_FP_NAN), x);
}

enum { FN_ADD, FN_MAX, FN_MIN, FN_SELECT, FN_EQUAL, FN_NONE };

/* Subnormals to zeros of their sign, where no operation does it. (They compare equal to zero. A
 * multiplication by 1 would do, but compilers take it away.) */
FAST static inline v16 flushed(v16 x) {
  return v_choose(v_eq(x, v_all(0)), v_and(x, v_all(CT_FP_SIGN)), x);
}

/* Equal values differ in bits only if they are zeros: of these, + wins in max, - in min. */
FAST static inline v16 extreme(v16 t, v16 c, bool max) {
  const v16 x = flushed(t), y = flushed(c);
  const v16 zeros = max ? v_and(x, y) : v_or(x, y), other = max ? v_max(x, y) : v_min(x, y);
  const v16 z = v_choose(v_eq(x, y), zeros, other);
  return v_choose(v_unord(x, y), v_all(CT_FP_NAN), z);
}

FAST static inline v16 combined(v16 t, v16 c, unsigned fn) {
  switch (fn) {
    case FN_ADD:
      return canonical(v_add(t, c));
    case FN_MAX:
      return extreme(t, c, true);
    case FN_MIN:
      return extreme(t, c, false);
    case FN_SELECT:
      return v_choose(v_gt(c, v_all(0)), canonical(t), v_all(0));
    case FN_EQUAL:
      return v_choose(v_eq(t, c), v_all(CT_FP_ONE), v_all(0));
    default:
      return canonical(t);
  }
}

/* Functions are rare, and plain. */
static void apply_func(const struct ct_va *op, struct ct_emu_tile *to) {
  for (unsigned r = 0; r < op->rows; ++r)
    for (unsigned j = 0; j < op->cols; ++j)
      to->x[r][j] = ct_path_func(op->func, to->x[r][j]);
}

/* Rows of an operation; what is not op or to is a constant where this is inlined: BSrc and CSrc (1
 * stands for 1 and 2), the operation, whether Tq is permuted. */
FAST static inline __attribute__((always_inline)) void va_rows(const struct ct_va *op, unsigned b,
                                                               unsigned c, unsigned fn,
                                                               bool permuted,
                                                               struct ct_emu_tile *to) {
  const v16 sb = v_all(op->sb), sc = v_all(op->sc), pad = v_all(op->pad), zero = v_all(0);
  const v16 sign = v_all(op->negc ? CT_FP_SIGN : 0);
  const unsigned every = op->b == 2 || op->c == 2 ? 0 : 1, row_xor = op->row_xor;
  const struct ct_emu_tile *const at = op->a, *const qt = op->q;
  const bool relu = op->relu, whole = op->cols == 16;
  const m16 inside = m_below(op->cols);
  for (unsigned r = 0, rows = op->rows; r < rows; ++r) {
    v16 q = zero, y = at ? v_load(at->x[r]) : zero;
    if (b == 1 || c == 1) q = v_load(qt->x[(r * every) ^ row_xor]);
    if (permuted) q = v_lane_xor(q, op->lane_xor);
    if (b)
      y = v_mul(y, b == 3 ? sb : q);
    else if (fn != FN_ADD)
      y = flushed(y);
    y = combined(y, v_xor(c == 3 ? sc : q, sign), fn);
    if (relu) y = v_choose(v_gt(y, zero), y, v_choose(v_unord(y, y), y, zero));
    if (!whole) y = v_choose(inside, y, pad);
    v_store(to->x[r], y);
  }
}

/* The operations of which training has many have code of their own. */
FAST static void va(const struct ct_va *op, struct ct_emu_tile *to) {
  const unsigned b = op->b == 2 ? 1 : op->b, c = op->c == 2 ? 1 : op->c;
  const unsigned fn = c ? op->fn : (unsigned)FN_NONE;
  const bool permuted = op->lane_xor != 0 && (b == 1 || c == 1);
  if (b == 3 && c == 1 && fn == FN_ADD && !permuted)
    va_rows(op, 3, 1, FN_ADD, false, to);
  else if (b == 0 && c == 1 && fn == FN_ADD && !permuted)
    va_rows(op, 0, 1, FN_ADD, false, to);
  else if (b == 0 && c == 0)
    va_rows(op, 0, 0, FN_NONE, false, to);
  else if (b == 1 && c == 0 && !permuted)
    va_rows(op, 1, 0, FN_NONE, false, to);
  else
    va_rows(op, b, c, fn, permuted, to);
  if (op->func) apply_func(op, to);
  for (unsigned r = op->rows; r < op->written; ++r)
    v_store(to->x[r], v_all(op->pad));
}

#endif
