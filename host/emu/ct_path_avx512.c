/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of AVX-512 with VNNI, in two kinds: with VBMI tiles are transposed faster. An operand is
 * kept as quads, four neighbouring mantissas of a row in 32 bits, since VPDPBUSD multiplies quads
 * and adds the four products: A's unsigned, so 128 is added to every mantissa and 128 times the sum
 * of B's column taken off at the end.
 *
 *   A   data: quad g of row r at [4 * r + g], or, transposed, at [16 * g + r]
 *   B   data: quad g of columns 0..15 in line g (64 bytes); bias: what is taken off
 *   A.scale + B.scale: bits of 2^(Ea + Eb - 266)
 */
#include "ct_path.h"

#ifdef CT_PATH_X86

#include <immintrin.h>

#define FAST __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define VBMI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))

typedef __m512 v16;
typedef __mmask16 m16;

FAST static inline v16 v_load(const uint32_t *x) {
  return _mm512_loadu_ps(x);
}

FAST static inline void v_store(uint32_t *x, v16 v) {
  _mm512_storeu_ps(x, v);
}

FAST static inline v16 v_all(uint32_t bits) {
  return _mm512_castsi512_ps(_mm512_set1_epi32((int)bits));
}

FAST static inline v16 v_mul(v16 a, v16 b) {
  return _mm512_mul_ps(a, b);
}

FAST static inline v16 v_add(v16 a, v16 b) {
  return _mm512_add_ps(a, b);
}

FAST static inline v16 v_fma(v16 a, v16 b, v16 c) {
  return _mm512_fmadd_ps(a, b, c);
}

FAST static inline v16 v_max(v16 a, v16 b) {
  return _mm512_max_ps(a, b);
}

FAST static inline v16 v_min(v16 a, v16 b) {
  return _mm512_min_ps(a, b);
}

FAST static inline v16 v_and(v16 a, v16 b) {
  return _mm512_and_ps(a, b);
}

FAST static inline v16 v_or(v16 a, v16 b) {
  return _mm512_or_ps(a, b);
}

FAST static inline v16 v_xor(v16 a, v16 b) {
  return _mm512_xor_ps(a, b);
}

FAST static inline v16 v_iadd(v16 a, v16 b) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

FAST static inline v16 v_umax(v16 a, v16 b) {
  return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

FAST static inline uint32_t v_utop(v16 a) {
  return _mm512_reduce_max_epu32(_mm512_castps_si512(a));
}

FAST static inline m16 v_gt(v16 a, v16 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

FAST static inline m16 v_eq(v16 a, v16 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

FAST static inline m16 v_unord(v16 a, v16 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
}

FAST static inline v16 v_choose(m16 m, v16 yes, v16 no) {
  return _mm512_mask_blend_ps(m, no, yes);
}

FAST static inline m16 m_below(unsigned n) {
  return (m16)((1u << n) - 1);
}

FAST static inline v16 v_lane_xor(v16 v, unsigned x) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_permutexvar_ps(_mm512_xor_si512(lane, _mm512_set1_epi32((int)x)), v);
}

FAST static inline v16 v_from_i8(const int8_t *q) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)q)));
}

FAST static inline void v_to_i8(v16 v, int8_t *q) {
  const __m512i i = _mm512_max_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(-127));
  _mm_storeu_si128((__m128i *)q, _mm512_cvtsepi32_epi8(i));
}

/* ---- Operands ---- */

FAST static inline __m512i line(const void *p, unsigned i) {
  return _mm512_loadu_si512((const char *)p + (size_t)64 * i);
}

/* Lane i (128 bits) of vector j becomes lane j of vector i. */
FAST static inline void exchange_lanes(__m512i v[4]) {
  const __m512i a = _mm512_shuffle_i64x2(v[0], v[1], 0x44),
                b = _mm512_shuffle_i64x2(v[2], v[3], 0x44),
                c = _mm512_shuffle_i64x2(v[0], v[1], 0xEE),
                d = _mm512_shuffle_i64x2(v[2], v[3], 0xEE);
  v[0] = _mm512_shuffle_i64x2(a, b, 0x88);
  v[1] = _mm512_shuffle_i64x2(a, b, 0xDD);
  v[2] = _mm512_shuffle_i64x2(c, d, 0x88);
  v[3] = _mm512_shuffle_i64x2(c, d, 0xDD);
}

/* quad[g] = quad g of rows 0..15, from rows. */
FAST static inline void quads_of_rows(const int8_t (*q)[16], __m512i quad[4]) {
  const __m512i first = _mm512_set_epi32(29, 25, 21, 17, 13, 9, 5, 1, 28, 24, 20, 16, 12, 8, 4, 0);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(2));
  const __m512i z0 = line(q, 0), z1 = line(q, 1), z2 = line(q, 2), z3 = line(q, 3);
  const __m512i a = _mm512_permutex2var_epi32(z0, first, z1),
                b = _mm512_permutex2var_epi32(z2, first, z3),
                c = _mm512_permutex2var_epi32(z0, second, z1),
                d = _mm512_permutex2var_epi32(z2, second, z3);
  quad[0] = _mm512_shuffle_i64x2(a, b, 0x44);
  quad[1] = _mm512_shuffle_i64x2(a, b, 0xEE);
  quad[2] = _mm512_shuffle_i64x2(c, d, 0x44);
  quad[3] = _mm512_shuffle_i64x2(c, d, 0xEE);
}

/* The same from columns: word k holds mantissa k of every row. */
FAST static inline void quads_of_columns(const int8_t (*q)[16], __m512i quad[4]) {
  __m512i w[4] = {line(q, 0), line(q, 1), line(q, 2), line(q, 3)};
  exchange_lanes(w); /* lane g of w[j]: word 4g + j */
  const __m512i a = _mm512_unpacklo_epi8(w[0], w[1]), b = _mm512_unpackhi_epi8(w[0], w[1]),
                c = _mm512_unpacklo_epi8(w[2], w[3]), d = _mm512_unpackhi_epi8(w[2], w[3]);
  quad[0] = _mm512_unpacklo_epi16(a, c);
  quad[1] = _mm512_unpackhi_epi16(a, c);
  quad[2] = _mm512_unpacklo_epi16(b, d);
  quad[3] = _mm512_unpackhi_epi16(b, d);
  exchange_lanes(quad);
}

/* VBMI has the instruction for that. */
VBMI static inline void quads_of_columns_vbmi(const int8_t (*q)[16], __m512i quad[4]) {
  const __m512i row_0 =
      _mm512_set_epi32(0x3f2f1f0f, 0x3e2e1e0e, 0x3d2d1d0d, 0x3c2c1c0c, 0x3b2b1b0b, 0x3a2a1a0a,
                       0x39291909, 0x38281808, 0x37271707, 0x36261606, 0x35251505, 0x34241404,
                       0x33231303, 0x32221202, 0x31211101, 0x30201000);
  for (unsigned g = 0; g < 4; ++g)
    quad[g] = _mm512_permutexvar_epi8(row_0, line(q, g));
}

/* Range and scale of the exponents; returns which rows are empty. base: what belongs to no row. */
FAST static inline m16 prepare_exponents(struct ct_operand *o, const uint8_t *exps, int base) {
  __m128i e = _mm_loadu_si128((const __m128i *)exps);
  const m16 empty = _mm_cmpeq_epi8_mask(e, _mm_setzero_si128());
  e = _mm_mask_blend_epi8(empty, e, _mm_set1_epi8((char)CT_PATH_EMPTY));
  const __m128i not_e = _mm_xor_si128(e, _mm_set1_epi8(-1));
  const __m128i low = _mm_minpos_epu16(_mm_min_epu8(e, _mm_srli_epi16(e, 8))),
                high = _mm_minpos_epu16(_mm_min_epu8(not_e, _mm_srli_epi16(not_e, 8)));
  o->low = (unsigned)_mm_cvtsi128_si32(low) & 255;
  o->high = ~(unsigned)_mm_cvtsi128_si32(high) & 255;
  if (o->high == 255) o->high = CT_PATH_NEVER;
  const __m512i scale = _mm512_add_epi32(_mm512_cvtepu8_epi32(e), _mm512_set1_epi32(base));
  _mm512_store_si512(o->scale, _mm512_slli_epi32(scale, 23));
  return empty;
}

/* quad: of the columns, if it is transposed. */
FAST static inline __attribute__((always_inline)) void finish_a(struct ct_operand *a,
                                                                const struct ct_words *words,
                                                                __m512i quad[4]) {
  const __m512i bias = _mm512_set1_epi8(-128);
  const m16 empty = prepare_exponents(a, words->e, 0);
  a->words = *words;
  if (words->transposed) {
    if (empty) quad[0] = quad[1] = quad[2] = quad[3] = _mm512_setzero_si512();
  } else {
    for (unsigned i = 0; i < 4; ++i)
      quad[i] = line(words->q, i);
    if (empty) { /* row 4i + j is lane j of quad[i] */
      const __m512i full = _mm512_maskz_set1_epi32((m16)~empty, -1);
      const __m512i spread = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
      for (unsigned i = 0; i < 4; ++i) {
        const __m512i lane = _mm512_add_epi32(spread, _mm512_set1_epi32((int)(4 * i)));
        quad[i] = _mm512_and_si512(quad[i], _mm512_permutexvar_epi32(lane, full));
      }
    }
  }
  for (unsigned i = 0; i < 4; ++i)
    _mm512_store_si512((char *)a->data + (size_t)64 * i, _mm512_xor_si512(quad[i], bias));
}

FAST static inline __attribute__((always_inline)) void finish_b(struct ct_operand *b,
                                                                const struct ct_words *words,
                                                                __m512i quad[4]) {
  const __m512i bias = _mm512_set1_epi8(-128);
  const m16 full = (m16)~prepare_exponents(b, words->e, 127 - 266);
  __m512i sum = _mm512_setzero_si512();
  b->words = *words;
  if (!words->transposed) quads_of_rows(words->q, quad);
  for (unsigned g = 0; g < 4; ++g) {
    quad[g] = _mm512_maskz_mov_epi32(full, quad[g]);
    sum = _mm512_dpbusd_epi32(sum, bias, quad[g]);
    _mm512_store_si512((char *)b->data + (size_t)64 * g, quad[g]);
  }
  _mm512_store_si512(b->bias, _mm512_sub_epi32(_mm512_setzero_si512(), sum));
}

FAST static void prepare_a(struct ct_operand *a, const struct ct_words *words) {
  __m512i quad[4];
  if (words->transposed) quads_of_columns(words->q, quad);
  finish_a(a, words, quad);
}

FAST static void prepare_b(struct ct_operand *b, const struct ct_words *words) {
  __m512i quad[4];
  if (words->transposed) quads_of_columns(words->q, quad);
  finish_b(b, words, quad);
}

VBMI static void prepare_a_vbmi(struct ct_operand *a, const struct ct_words *words) {
  __m512i quad[4];
  if (words->transposed) quads_of_columns_vbmi(words->q, quad);
  finish_a(a, words, quad);
}

VBMI static void prepare_b_vbmi(struct ct_operand *b, const struct ct_words *words) {
  __m512i quad[4];
  if (words->transposed) quads_of_columns_vbmi(words->q, quad);
  finish_b(b, words, quad);
}

/* B while it is in use. */
struct held {
  __m512i quad[4], bias;
};

FAST static inline struct held hold(const struct ct_operand *b) {
  return (struct held){{line(b->data, 0), line(b->data, 1), line(b->data, 2), line(b->data, 3)},
                       _mm512_load_si512(b->bias)};
}

FAST static inline v16 dot_row(const int32_t *quad, size_t step, const struct held *b) {
  __m512i s = _mm512_dpbusd_epi32(b->bias, _mm512_set1_epi32(quad[0]), b->quad[0]);
  s = _mm512_dpbusd_epi32(s, _mm512_set1_epi32(quad[step]), b->quad[1]);
  s = _mm512_dpbusd_epi32(s, _mm512_set1_epi32(quad[2 * step]), b->quad[2]);
  s = _mm512_dpbusd_epi32(s, _mm512_set1_epi32(quad[3 * step]), b->quad[3]);
  return _mm512_cvtepi32_ps(s);
}

struct rows {
  v16 row0, row1, row2, row3;
};

FAST static inline __attribute__((always_inline)) struct rows dots(const struct ct_operand *a,
                                                                   const struct held *b, unsigned r,
                                                                   bool transposed) {
  const size_t row = transposed ? 1 : 4, step = transposed ? 16 : 1;
  const int32_t *quad = (const int32_t *)(const void *)a->data + row * r;
  return (struct rows){dot_row(quad, step, b), dot_row(quad + row, step, b),
                       dot_row(quad + 2 * row, step, b), dot_row(quad + 3 * row, step, b)};
}

#include "ct_path_simd.h"

static bool available(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

static bool available_vbmi(void) {
  return available() && __builtin_cpu_supports("avx512vbmi");
}

const struct ct_path ct_path_avx512 = {
    .name = "avx512",
    .available = available,
    .enter = enter,
    .leave = leave,
    .prepare_a = prepare_a,
    .prepare_b = prepare_b,
    .multiply = multiply,
    .align = align,
    .dequantise = dequantise,
    .quantise = quantise,
    .va = va,
};

const struct ct_path ct_path_avx512_vbmi = {
    .name = "avx512",
    .available = available_vbmi,
    .enter = enter,
    .leave = leave,
    .prepare_a = prepare_a_vbmi,
    .prepare_b = prepare_b_vbmi,
    .multiply = multiply,
    .align = align,
    .dequantise = dequantise,
    .quantise = quantise,
    .va = va,
};

#else
typedef int ct_path_avx512_absent; /* a translation unit must not be empty */
#endif
