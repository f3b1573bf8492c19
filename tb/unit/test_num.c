/* SPDX-License-Identifier: Apache-2.0 */
/* host/emu/ct_num.c against independent references: the host's FPU, and the contract's formulas in
 * double precision. */
#include "fp_ref.h"

#include <math.h>
#include <string.h>

#include "host/emu/ct_num.h"

enum { kRandomPairs = 10000000, kRandom = 1000000 };

static void assert_bits(const char *what, uint32_t a, uint32_t b, uint32_t got, uint32_t want) {
  if (got != want) fail_msg("%s of %08X, %08X: got %08X, want %08X", what, a, b, got, want);
}

static void adds_and_multiplies_corners(void **state) {
  (void)state;
  if (!fp_ref_available()) skip();
  for (size_t i = 0; i < fp_corners_count; ++i) {
    for (size_t j = 0; j < fp_corners_count; ++j) {
      const uint32_t a = fp_corners[i], b = fp_corners[j];
      assert_bits("add", a, b, ct_fp_add(a, b), fp_ref_add(a, b));
      assert_bits("mul", a, b, ct_fp_mul(a, b), fp_ref_mul(a, b));
    }
  }
}

static void adds_and_multiplies_random(void **state) {
  (void)state;
  if (!fp_ref_available()) skip();
  ct_rng rng = ct_rng_make(1);
  for (int i = 0; i < kRandomPairs; ++i) {
    uint32_t a, b;
    fp_gen_add(&rng, &a, &b);
    assert_bits("add", a, b, ct_fp_add(a, b), fp_ref_add(a, b));
    fp_gen_mul(&rng, &a, &b);
    assert_bits("mul", a, b, ct_fp_mul(a, b), fp_ref_mul(a, b));
  }
}

/* FP32 to double with subnormals as zeros. */
static double value(uint32_t bits) {
  float f;
  if (!(bits & 0x7F800000u)) bits &= 0x80000000u;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* A double known to need no rounding, to FP32 by the contract: zeros below 2^-126, Inf beyond the
 * range. */
static uint32_t bits_of(double x) {
  const float f = fabs(x) < 0x1p-126   ? (float)copysign(0, x)
                  : fabs(x) >= 0x1p128 ? (float)copysign(INFINITY, x)
                                       : (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return isnan(x) ? 0x7FC00000u : bits;
}

static void check_compares(uint32_t a, uint32_t b) {
  const double x = value(a), y = value(b);
  const bool any_nan = isnan(x) || isnan(y), first = x > y || (x == y && !signbit(x));
  assert_bits("max", a, b, ct_fp_max(a, b), any_nan ? 0x7FC00000u : bits_of(first ? x : y));
  assert_bits("min", a, b, ct_fp_min(a, b), any_nan ? 0x7FC00000u : bits_of(first ? y : x));
  assert_bits("gt", a, b, ct_fp_gt(a, b), x > y);
  assert_bits("eq", a, b, ct_fp_eq(a, b), x == y);
  assert_bits("eq", a, a, ct_fp_eq(a, a), x == x);
  assert_bits("relu", a, 0, ct_fp_relu(a), bits_of(isnan(x) || x > 0 ? x : 0));
}

static void compares(void **state) {
  (void)state;
  for (size_t i = 0; i < fp_corners_count; ++i)
    for (size_t j = 0; j < fp_corners_count; ++j)
      check_compares(fp_corners[i], fp_corners[j]);
  ct_rng rng = ct_rng_make(2);
  for (int i = 0; i < kRandom; ++i) {
    uint32_t a, b;
    fp_gen_add(&rng, &a, &b);
    check_compares(a, b);
  }
}

static uint32_t term_reference(int32_t s, int ea, int eb) {
  if (ea == 255 || eb == 255) return 0x7FC00000u;
  if (ea == 0 || eb == 0 || s == 0) return 0;
  return bits_of(ldexp(s, ea + eb - 266));
}

/* All exponent pairs, with sums of one bit, of many, of either sign. */
static void terms(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  for (int ea = 0; ea < 256; ++ea) {
    for (int eb = 0; eb < 256; ++eb) {
      for (int k = 0; k < 24; ++k) {
        const int32_t limit = 16 * 127 * 127;
        const int32_t r = (int32_t)ct_rng_below(&rng, 2 * limit + 1) - limit;
        const int32_t s = k < 18 ? 1 << k : k == 18 ? 0 : k == 19 ? limit : k == 20 ? -limit : r;
        assert_bits("term", (uint32_t)s, (uint32_t)(ea << 8 | eb),
                    ct_fp_term(s, (uint8_t)ea, (uint8_t)eb), term_reference(s, ea, eb));
      }
    }
  }
}

static void dequantises(void **state) {
  (void)state;
  for (int e = 0; e < 256; ++e) {
    for (int q = -127; q <= 127; ++q) {
      const uint32_t want = e == 255           ? 0x7FC00000u
                            : e == 0 || q == 0 ? 0
                                               : bits_of(ldexp(q, e - 133));
      assert_bits("dequant", (uint32_t)q, (uint32_t)e, ct_hbfp8_dequant((int8_t)q, (uint8_t)e),
                  want);
    }
    assert_bits("dequant", 0x80, (uint32_t)e, ct_hbfp8_dequant(-128, (uint8_t)e),
                e == 255 ? 0x7FC00000u : 0);
  }
}

/* A mantissa of so many bits, with its lowest bit worth 2^(e - 127 - (bits - 2)). */
static int quant_reference(uint32_t x, int e, int bits) {
  const double v = value(x), most = ldexp(1, bits - 1) - 1;
  const double scaled = nearbyint(ldexp(fabs(v), 127 + (bits - 2) - e)); /* to nearest even */
  if (e == 0 || e == 255) return 0;
  const int q = scaled > most || isnan(scaled) ? (int)most : (int)scaled;
  return signbit(v) ? -q : q;
}

/* In every width, and stored so that HBFP8 reads the same value. */
static void check_quant(uint32_t x, int e) {
  for (int bits = 2; bits <= 8; ++bits) {
    const int got = ct_hbfp8_quant_narrow(x, (uint8_t)e, 8 - (unsigned)bits);
    const int want = quant_reference(x, e, bits) * (1 << (8 - bits));
    if (got != want)
      fail_msg("quant of %08X by %d to %d bits: got %d, want %d", x, e, bits, got, want);
  }
  assert_int_equal(ct_hbfp8_quant(x, (uint8_t)e), quant_reference(x, e, 8));
}

static void quantises(void **state) {
  (void)state;
  for (size_t i = 0; i < fp_corners_count; ++i)
    for (int e = 0; e < 256; ++e)
      check_quant(fp_corners[i], e);
  /* every tie, and its neighbours, at every distance from the group's exponent */
  for (uint32_t gap = 0; gap < 12; ++gap)
    for (uint32_t top = 0; top < 256; ++top)
      for (uint32_t low = 0; low < 3; ++low)
        check_quant(((100u - gap) << 23 | top << 15) + low - 1, 100);
  ct_rng rng = ct_rng_make(4);
  for (int i = 0; i < kRandom; ++i) {
    const uint32_t x = fp_gen(&rng);
    check_quant(x, (int)((x >> 23) + ct_rng_below(&rng, 12)) & 255);
  }
}

static void group_exponents(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(5);
  uint32_t x[16];
  for (int i = 0; i < 10000; ++i) {
    double largest = 0;
    for (int k = 0; k < 16; ++k) {
      x[k] = ct_rng_percent(&rng, 98) ? fp_gen(&rng)
                                      : fp_corners[ct_rng_below(&rng, (uint32_t)fp_corners_count)];
      const double v = fabs(value(x[k]));
      largest = isnan(v) ? INFINITY : fmax(largest, v);
    }
    const int want = isinf(largest) ? 255 : largest == 0 ? 0 : ilogb(largest) + 127;
    assert_int_equal(ct_hbfp8_group_exp(x, 16), want);
  }
  assert_int_equal(ct_hbfp8_group_exp(x, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(adds_and_multiplies_corners),
      cmocka_unit_test(adds_and_multiplies_random),
      cmocka_unit_test(compares),
      cmocka_unit_test(terms),
      cmocka_unit_test(dequantises),
      cmocka_unit_test(quantises),
      cmocka_unit_test(group_exponents),
  };
  return cmocka_run_group_tests_name("ct_num", tests, NULL, NULL);
}
