/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of AVX2 with FMA. An operand is kept as pairs, two neighbouring mantissas of a row with
 * 16 bits each, since VPMADDWD multiplies pairs and adds the two products.
 *
 *   A   data: pair p of row r at [8 * r + p], or, transposed, at [16 * p + r], of 32 bits each
 *   B   data: pair p of columns 0..15 in line p (64 bytes)
 *   A.scale + B.scale: bits of 2^(Ea + Eb - 266)
 */
#include "ct_path.h"

#ifdef CT_PATH_X86

#include <immintrin.h>

#define FAST __attribute__((target("avx2,fma")))

typedef struct {
  __m256 lo, hi;
} v16;
typedef v16 m16; /* all bits of a lane, or none */

FAST static inline v16 v_load(const uint32_t *x) {
  return (v16){_mm256_loadu_ps((const float *)x), _mm256_loadu_ps((const float *)x + 8)};
}

FAST static inline void v_store(uint32_t *x, v16 v) {
  _mm256_storeu_ps((float *)x, v.lo);
  _mm256_storeu_ps((float *)x + 8, v.hi);
}

FAST static inline v16 v_all(uint32_t bits) {
  const __m256 v = _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
  return (v16){v, v};
}

FAST static inline v16 v_mul(v16 a, v16 b) {
  return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}

FAST static inline v16 v_add(v16 a, v16 b) {
  return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}

FAST static inline v16 v_fma(v16 a, v16 b, v16 c) {
  return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

FAST static inline v16 v_max(v16 a, v16 b) {
  return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}

FAST static inline v16 v_min(v16 a, v16 b) {
  return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}

FAST static inline v16 v_and(v16 a, v16 b) {
  return (v16){_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}

FAST static inline v16 v_or(v16 a, v16 b) {
  return (v16){_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
}

FAST static inline v16 v_xor(v16 a, v16 b) {
  return (v16){_mm256_xor_ps(a.lo, b.lo), _mm256_xor_ps(a.hi, b.hi)};
}

FAST static inline __m256i bits(__m256 x) {
  return _mm256_castps_si256(x);
}

FAST static inline v16 v_ints(__m256i lo, __m256i hi) {
  return (v16){_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}

FAST static inline v16 v_iadd(v16 a, v16 b) {
  return v_ints(_mm256_add_epi32(bits(a.lo), bits(b.lo)), _mm256_add_epi32(bits(a.hi), bits(b.hi)));
}

FAST static inline v16 v_umax(v16 a, v16 b) {
  return v_ints(_mm256_max_epu32(bits(a.lo), bits(b.lo)), _mm256_max_epu32(bits(a.hi), bits(b.hi)));
}

FAST static inline uint32_t v_utop(v16 a) {
  const __m256i eight = _mm256_max_epu32(bits(a.lo), bits(a.hi));
  __m128i x = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  x = _mm_max_epu32(x, _mm_shuffle_epi32(x, 0x4E));
  x = _mm_max_epu32(x, _mm_shuffle_epi32(x, 0xB1));
  return (uint32_t)_mm_cvtsi128_si32(x);
}

FAST static inline m16 v_gt(v16 a, v16 b) {
  return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)};
}

FAST static inline m16 v_eq(v16 a, v16 b) {
  return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}

FAST static inline m16 v_unord(v16 a, v16 b) {
  return (m16){_mm256_cmp_ps(a.lo, b.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, b.hi, _CMP_UNORD_Q)};
}

FAST static inline v16 v_choose(m16 m, v16 yes, v16 no) {
  return (v16){_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}

FAST static inline __m256i lanes(void) {
  return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
}

FAST static inline m16 m_below(unsigned n) {
  return v_ints(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes()),
                _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - 8), lanes()));
}

FAST static inline v16 v_lane_xor(v16 v, unsigned x) {
  const __m256i from = _mm256_xor_si256(lanes(), _mm256_set1_epi32((int)(x & 7)));
  const __m256 lo = _mm256_permutevar8x32_ps(v.lo, from), hi = _mm256_permutevar8x32_ps(v.hi, from);
  return x & 8 ? (v16){hi, lo} : (v16){lo, hi};
}

FAST static inline v16 v_from_i8(const int8_t *q) {
  const __m128i x = _mm_loadu_si128((const __m128i *)q);
  return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
               _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}

FAST static inline void v_to_i8(v16 v, int8_t *q) {
  /* Packing works within 128 bits: the halves' quarters are put in order afterwards. */
  const __m256i x = _mm256_packs_epi32(_mm256_cvtps_epi32(v.lo), _mm256_cvtps_epi32(v.hi));
  const __m256i y = _mm256_permute4x64_epi64(x, 0xD8);
  const __m128i z = _mm_packs_epi16(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
  _mm_storeu_si128((__m128i *)q, _mm_max_epi8(z, _mm_set1_epi8(-127)));
}

/* ---- Operands ---- */

FAST static inline __m128i word(const int8_t *q) {
  return _mm_loadu_si128((const __m128i *)q);
}

static inline __m256i *line(struct ct_operand *o, size_t i) {
  return (__m256i *)(void *)o->data + i;
}

/* Rows of 16 bits each: pair p of row r at [8 * r + p]. */
FAST static void widen_rows(struct ct_operand *o) {
  for (unsigned r = 0; r < 16; ++r) {
    const __m256i full = _mm256_set1_epi32(o->words.e[r] ? -1 : 0);
    _mm256_store_si256(line(o, r),
                       _mm256_and_si256(_mm256_cvtepi8_epi16(word(o->words.q[r])), full));
  }
}

/* The same from columns: pair p of row r at [16 * p + r]. */
FAST static void widen_columns(struct ct_operand *o) {
  const __m256i full = _mm256_set1_epi32(o->words.e[0] ? -1 : 0);
  for (size_t p = 0; p < 8; ++p) {
    const __m128i even = word(o->words.q[2 * p]), odd = word(o->words.q[2 * p + 1]);
    const __m256i lo = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(even, odd)),
                  hi = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(even, odd));
    _mm256_store_si256(line(o, 2 * p), _mm256_and_si256(lo, full));
    _mm256_store_si256(line(o, 2 * p + 1), _mm256_and_si256(hi, full));
  }
}

/* Eight rows of eight 32-bit values to columns. */
FAST static inline void transpose(__m256i v[8]) {
  __m256i t[8];
  for (unsigned i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (unsigned i = 0; i < 8; i += 4) {
    v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (unsigned i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x20);
    t[i + 4] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x31);
  }
  for (unsigned i = 0; i < 8; ++i)
    v[i] = t[i];
}

/* From [8 * r + p] to [16 * p + r]. */
FAST static void pairs_of_rows(struct ct_operand *o) {
  __m256i low[8], high[8];
  for (unsigned i = 0; i < 8; ++i) {
    low[i] = _mm256_load_si256(line(o, i));
    high[i] = _mm256_load_si256(line(o, i + 8));
  }
  transpose(low);
  transpose(high);
  for (size_t p = 0; p < 8; ++p) {
    _mm256_store_si256(line(o, 2 * p), low[p]);
    _mm256_store_si256(line(o, 2 * p + 1), high[p]);
  }
}

/* Range and scale of the exponents. base: what belongs to no row. */
FAST static inline void prepare_exponents(struct ct_operand *o, int base) {
  __m128i e = _mm_loadu_si128((const __m128i *)o->words.e);
  const __m128i empty = _mm_cmpeq_epi8(e, _mm_setzero_si128());
  e = _mm_blendv_epi8(e, _mm_set1_epi8((char)CT_PATH_EMPTY), empty);
  const __m128i not_e = _mm_xor_si128(e, _mm_set1_epi8(-1));
  const __m128i low = _mm_minpos_epu16(_mm_min_epu8(e, _mm_srli_epi16(e, 8))),
                high = _mm_minpos_epu16(_mm_min_epu8(not_e, _mm_srli_epi16(not_e, 8)));
  o->low = (unsigned)_mm_cvtsi128_si32(low) & 255;
  o->high = ~(unsigned)_mm_cvtsi128_si32(high) & 255;
  if (o->high == 255) o->high = CT_PATH_NEVER;
  const __m256i add = _mm256_set1_epi32(base);
  const __m256i lo = _mm256_add_epi32(_mm256_cvtepu8_epi32(e), add),
                hi = _mm256_add_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(e, 8)), add);
  _mm256_store_si256((__m256i *)o->scale, _mm256_slli_epi32(lo, 23));
  _mm256_store_si256((__m256i *)(o->scale + 8), _mm256_slli_epi32(hi, 23));
}

FAST static void prepare_a(struct ct_operand *a, const struct ct_words *words) {
  a->words = *words;
  prepare_exponents(a, 0);
  if (words->transposed)
    widen_columns(a);
  else
    widen_rows(a);
}

FAST static void prepare_b(struct ct_operand *b, const struct ct_words *words) {
  b->words = *words;
  prepare_exponents(b, 127 - 266);
  if (words->transposed) {
    widen_columns(b);
  } else {
    widen_rows(b);
    pairs_of_rows(b);
  }
}

/* B does not fit the registers: it is read again for every four rows. */
struct held {
  const __m256i *pair;
};

FAST static inline struct held hold(const struct ct_operand *b) {
  return (struct held){(const __m256i *)(const void *)b->data};
}

struct rows {
  v16 row0, row1, row2, row3;
};

struct sums {
  __m256i lo, hi;
};

FAST static inline struct sums add_pair(struct sums s, int32_t pair, __m256i lo, __m256i hi) {
  const __m256i a = _mm256_set1_epi32(pair);
  return (struct sums){_mm256_add_epi32(s.lo, _mm256_madd_epi16(a, lo)),
                       _mm256_add_epi32(s.hi, _mm256_madd_epi16(a, hi))};
}

FAST static inline v16 to_f32(struct sums s) {
  return (v16){_mm256_cvtepi32_ps(s.lo), _mm256_cvtepi32_ps(s.hi)};
}

FAST static inline __attribute__((always_inline)) struct rows dots(const struct ct_operand *a,
                                                                   const struct held *b, unsigned r,
                                                                   bool transposed) {
  const size_t row = transposed ? 1 : 8, step = transposed ? 16 : 1;
  const int32_t *pair = (const int32_t *)(const void *)a->data + row * r;
  const __m256i zero = _mm256_setzero_si256();
  struct sums s0 = {zero, zero}, s1 = s0, s2 = s0, s3 = s0;
  for (size_t p = 0; p < 8; ++p, pair += step) {
    const __m256i lo = _mm256_load_si256(b->pair + 2 * p),
                  hi = _mm256_load_si256(b->pair + 2 * p + 1);
    s0 = add_pair(s0, pair[0], lo, hi);
    s1 = add_pair(s1, pair[row], lo, hi);
    s2 = add_pair(s2, pair[2 * row], lo, hi);
    s3 = add_pair(s3, pair[3 * row], lo, hi);
  }
  return (struct rows){to_f32(s0), to_f32(s1), to_f32(s2), to_f32(s3)};
}

#include "ct_path_simd.h"

static bool available(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const struct ct_path ct_path_avx2 = {
    .name = "avx2",
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

#else
typedef int ct_path_avx2_absent; /* a translation unit must not be empty */
#endif
