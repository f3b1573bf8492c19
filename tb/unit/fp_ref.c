/* SPDX-License-Identifier: Apache-2.0 */
#include "fp_ref.h"

#include "host/emu/ct_num.h"

#ifdef __SSE2__

#include <immintrin.h>

static __m128 scalar(uint32_t bits) {
  return _mm_castsi128_ps(_mm_cvtsi32_si128((int)bits));
}

static uint32_t bits_of(__m128 x) {
  const uint32_t bits = (uint32_t)_mm_cvtsi128_si32(_mm_castps_si128(x));
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? CT_FP_NAN : bits;
}

/* Sets FTZ, DAZ and rounding to nearest for one operation; volatile keeps the operation inside. */
static uint32_t operate(uint32_t a, uint32_t b, bool multiply) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(0x1F80u | 0x8040u);
  volatile __m128 x = scalar(a), y = scalar(b);
  volatile __m128 r = multiply ? _mm_mul_ss(x, y) : _mm_add_ss(x, y);
  const uint32_t bits = bits_of(r);
  _mm_setcsr(saved);
  return bits;
}

bool fp_ref_available(void) {
  return true;
}
uint32_t fp_ref_add(uint32_t a, uint32_t b) {
  return operate(a, b, false);
}
uint32_t fp_ref_mul(uint32_t a, uint32_t b) {
  return operate(a, b, true);
}

#else

bool fp_ref_available(void) {
  return false;
}
uint32_t fp_ref_add(uint32_t a, uint32_t b) {
  return ct_fp_add(a, b);
}
uint32_t fp_ref_mul(uint32_t a, uint32_t b) {
  return ct_fp_mul(a, b);
}

#endif

#define BOTH(x) (x), (x) | 0x80000000u

const uint32_t fp_corners[] = {
    /* zeros and subnormals */
    BOTH(0x00000000u),
    BOTH(0x00000001u),
    BOTH(0x00400000u),
    BOTH(0x007FFFFFu),
    /* the smallest normals and their neighbours, which subtract and multiply to subnormals */
    BOTH(0x00800000u),
    BOTH(0x00800001u),
    BOTH(0x00800002u),
    BOTH(0x00FFFFFFu),
    BOTH(0x01000000u),
    BOTH(0x01000001u),
    BOTH(0x0C800000u),
    BOTH(0x0C000001u),
    /* square roots of the ends of the range: products at the edge */
    BOTH(0x1FFFFFFFu),
    BOTH(0x20000000u),
    BOTH(0x20000001u),
    BOTH(0x5F7FFFFFu),
    BOTH(0x5F800000u),
    BOTH(0x5F800001u),
    BOTH(0x5F3504F3u),
    /* one, its neighbours, and what ties or nearly ties with it */
    BOTH(0x3F7FFFFFu),
    BOTH(0x3F800000u),
    BOTH(0x3F800001u),
    BOTH(0x3FFFFFFFu),
    BOTH(0x40000000u),
    BOTH(0x33000000u),
    BOTH(0x337FFFFFu),
    BOTH(0x33800000u),
    BOTH(0x33800001u),
    BOTH(0x33FFFFFFu),
    BOTH(0x34000000u),
    BOTH(0x34000001u),
    BOTH(0x32800000u),
    BOTH(0x32FFFFFFu),
    BOTH(0x3F000000u),
    BOTH(0x3FC00000u),
    BOTH(0x3F7FFFFEu),
    /* the largest, what rounds to Inf with it, Inf, NaNs quiet and signalling */
    BOTH(0x7F7FFFFFu),
    BOTH(0x7F7FFFFEu),
    BOTH(0x7F000000u),
    BOTH(0x72FFFFFFu),
    BOTH(0x73000000u),
    BOTH(0x73800000u),
    BOTH(0x7F800000u),
    BOTH(0x7FC00000u),
    BOTH(0x7F800001u),
    BOTH(0x7FFFFFFFu),
};
const size_t fp_corners_count = sizeof(fp_corners) / sizeof(fp_corners[0]);

static uint32_t gen_mantissa(ct_rng *rng) {
  const uint64_t r = ct_rng_u64(rng);
  const uint32_t random = (uint32_t)(r >> 40) & 0x7FFFFFu;
  const uint32_t bit = 1u << (r >> 8 & 31) % 23, bits = bit | 1u << (r >> 16 & 31) % 23;
  switch (r & 7) {
    case 0:
      return bit;
    case 1:
      return bits;
    case 2:
      return 0x7FFFFFu ^ bit;
    case 3:
      return 0x7FFFFFu & (0u - bit); /* ones down to a bit, and with it 0x7FFFFF */
    case 4:
      return bit - 1; /* ones up to a bit, and with it 0 */
    default:
      return random;
  }
}

static uint32_t gen_value(ct_rng *rng, int exponent) {
  exponent = exponent < 0 ? 0 : exponent > 255 ? 255 : exponent;
  const uint32_t sign = (uint32_t)ct_rng_u64(rng) & CT_FP_SIGN;
  return sign | (uint32_t)exponent << 23 | gen_mantissa(rng);
}

uint32_t fp_gen(ct_rng *rng) {
  return gen_value(rng, (int)ct_rng_below(rng, 256));
}

void fp_gen_add(ct_rng *rng, uint32_t *a, uint32_t *b) {
  const uint32_t kind = ct_rng_below(rng, 16);
  *a = fp_gen(rng);
  if (kind == 0) {
    *b = fp_corners[ct_rng_below(rng, (uint32_t)fp_corners_count)];
  } else if (kind == 1) {
    *b = fp_gen(rng);
  } else if (kind == 2) { /* cancellation to a few last places */
    *b = (*a ^ CT_FP_SIGN) + ct_rng_below(rng, 17) - 8;
  } else {
    *b = gen_value(rng, (int)(*a >> 23 & 255) + (int)ct_rng_below(rng, 61) - 30);
  }
}

void fp_gen_mul(ct_rng *rng, uint32_t *a, uint32_t *b) {
  const uint32_t kind = ct_rng_below(rng, 16);
  *a = fp_gen(rng);
  const int exponent = (int)(*a >> 23 & 255);
  if (kind == 0) {
    *b = fp_corners[ct_rng_below(rng, (uint32_t)fp_corners_count)];
  } else if (kind < 4) { /* near 2^-126 */
    *b = gen_value(rng, 127 - exponent + (int)ct_rng_below(rng, 5) - 2);
  } else if (kind < 6) { /* near 2^128 */
    *b = gen_value(rng, 381 - exponent + (int)ct_rng_below(rng, 5) - 2);
  } else {
    *b = fp_gen(rng);
  }
}
