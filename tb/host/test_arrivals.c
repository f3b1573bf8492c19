/* SPDX-License-Identifier: Apache-2.0 */
/* Arrival times: known answers to the bit, the exponential against libm, the statistics of a
 * Poisson process, and the limits. */
#include "ct_tb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/tools/data/ct_arrivals.h"

enum { kMany = 100000 };

static uint64_t fnv(const uint64_t *v, size_t n) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < n; ++i)
    for (int k = 0; k < 64; k += 8)
      h = (h ^ (v[i] >> k & 0xFF)) * UINT64_C(0x100000001B3);
  return h;
}

/* Worked out apart from this code, from the text of ct_arrivals.h, in integers without a size. */
static void known_answers(void **state) {
  (void)state;
  static const uint64_t first[8] = {324, 904, 1759, 1847, 1941, 2065, 5647, 6050};
  static const struct {
    uint64_t mean, last, digest;
  } known[] = {
      {1000 << 16, 9895294, UINT64_C(0xAF962882606CF640)},
      {1260 << 16, 12468071, UINT64_C(0x5B3CA4C4E202EDD6)},
      {1, 0, UINT64_C(0x9B85A68C78294D25)},
      {65537, 9895, UINT64_C(0x46C58BDAAACB7A19)},
      {CT_ARRIVALS_MEAN_MAX - 12345, UINT64_C(42499968499644), UINT64_C(0x5076AB92B84A88CD)},
  };
  static uint64_t cycles[10000];
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    assert_int_equal(ct_arrivals_poisson(1, known[i].mean, cycles, 10000), 0);
    if (i == 0) assert_memory_equal(cycles, first, sizeof first);
    assert_int_equal(cycles[9999], known[i].last);
    assert_int_equal(fnv(cycles, 10000), known[i].digest);
  }
  static const struct {
    uint64_t x, e;
  } exponential[] = {
      {1, UINT64_C(0x2C5C85FE00)},
      {2, UINT64_C(0x2BAB13E608)},
      {UINT64_C(1) << 63, UINT64_C(0xB17217F8)},
      {UINT64_MAX, 1},
      {UINT64_C(0x802BDC545D6B4B87), UINT64_C(0xB11A6E55)},
  };
  for (size_t i = 0; i < sizeof exponential / sizeof *exponential; ++i)
    assert_int_equal(ct_arrivals_exponential(exponential[i].x), exponential[i].e);
}

static void exponential_is_a_logarithm(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int i = 0; i < kMany; ++i) {
    const uint64_t x = (ct_rng_u64(&rng) >> ct_rng_below(&rng, 64)) | 1;
    const double want = 64 * log(2) - log((double)x);
    const double got = (double)ct_arrivals_exponential(x) / 0x1p32;
    if (fabs(got - want) > 0x1p-27) fail_msg("%.12f instead of %.12f", got, want);
  }
}

/* The gaps of one list in means: average and variance 1, each within five standard deviations; the
 * distribution within the 10^-6 point of Kolmogorov and Smirnov; neighbours not correlated. */
static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void statistics(void **state) {
  (void)state;
  static uint64_t cycles[kMany];
  static double gaps[kMany];
  for (uint64_t seed = ct_tb_seed(); seed < ct_tb_seed() + 5; ++seed) {
    double sum = 0, squares = 0, pairs = 0, distance = 0;
    const double mean = 123456.75;
    assert_int_equal(ct_arrivals_poisson(seed, (uint64_t)(mean * 65536), cycles, kMany), 0);
    for (int i = 0; i < kMany; ++i) {
      if (i > 0) assert_true(cycles[i] >= cycles[i - 1]);
      gaps[i] = (double)(cycles[i] - (i > 0 ? cycles[i - 1] : 0)) / mean;
      sum += gaps[i];
      squares += (gaps[i] - 1) * (gaps[i] - 1);
      if (i > 0) pairs += (gaps[i] - 1) * (gaps[i - 1] - 1);
    }
    const double deviation = 1 / sqrt(kMany);
    assert_true(fabs(sum / kMany - 1) < 5 * deviation);
    assert_true(fabs(squares / kMany - 1) < 5 * sqrt(8) * deviation); /* fourth moment 9, minus 1 */
    assert_true(fabs(pairs / kMany) < 5 * deviation);
    qsort(gaps, kMany, sizeof *gaps, ascending);
    for (int i = 0; i < kMany; ++i) {
      const double p = 1 - exp(-gaps[i]);
      distance = fmax(distance, fmax(fabs(p - (double)i / kMany), fabs(p - (i + 1.0) / kMany)));
    }
    assert_true(distance < 2.7 * deviation);
  }
}

/* Gaps below one cycle: many arrivals a cycle, and still the right rate. */
static void short_gaps(void **state) {
  (void)state;
  static uint64_t cycles[kMany];
  assert_int_equal(ct_arrivals_poisson(ct_tb_seed(), 16384, cycles, kMany), 0);
  assert_true(fabs((double)cycles[kMany - 1] / (kMany / 4) - 1) < 0.02);
}

static void seeds_differ_and_prefixes_agree(void **state) {
  (void)state;
  uint64_t a[100], b[50];
  assert_int_equal(ct_arrivals_poisson(8, 5 << 16, a, 100), 0);
  assert_int_equal(ct_arrivals_poisson(8, 5 << 16, b, 50), 0);
  assert_memory_equal(a, b, sizeof b);
  assert_int_equal(ct_arrivals_poisson(9, 5 << 16, b, 50), 0);
  assert_memory_not_equal(a, b, sizeof b);
}

static void constant_gaps(void **state) {
  (void)state;
  uint64_t a[6];
  static const uint64_t want[6] = {2, 5, 7, 10, 12, 15};
  assert_int_equal(ct_arrivals_constant(5 << 15, a, 6), 0);
  assert_memory_equal(a, want, sizeof want);
  assert_int_equal(ct_arrivals_constant(0, a, 6), -1);
  assert_int_equal(ct_arrivals_constant(CT_ARRIVALS_MEAN_MAX + 1, a, 6), -1);
}

/* The right rate, nothing outside the bursts, and within them the process of bursts alone. */
static void bursts(void **state) {
  (void)state;
  enum { kOn = 3000, kPeriod = 10000, kMean = 50 };
  static uint64_t cycles[kMany], alone[kMany];
  const uint64_t seed = ct_tb_seed();
  assert_int_equal(ct_arrivals_bursty(seed, kMean << 16, kOn, kPeriod, cycles, kMany), 0);
  assert_int_equal(ct_arrivals_poisson(seed, ((uint64_t)kMean << 16) * kOn / kPeriod, alone, kMany),
                   0);
  for (int i = 0; i < kMany; ++i) {
    assert_true(cycles[i] % kPeriod < kOn);
    assert_true(cycles[i] / kPeriod * kOn + cycles[i] % kPeriod == alone[i]);
  }
  assert_true(fabs((double)cycles[kMany - 1] / ((double)kMean * kMany) - 1) < 0.03);
  assert_int_equal(ct_arrivals_bursty(seed, kMean << 16, kPeriod, kPeriod, cycles, 1000), 0);
  assert_int_equal(ct_arrivals_poisson(seed, kMean << 16, alone, 1000), 0);
  assert_memory_equal(cycles, alone, 1000 * sizeof *alone);
  assert_int_equal(ct_arrivals_bursty(1, kMean, 0, kPeriod, cycles, 10), -1);
  assert_int_equal(ct_arrivals_bursty(1, kMean, kPeriod + 1, kPeriod, cycles, 10), -1);
  assert_int_equal(ct_arrivals_bursty(1, kMean, 1, UINT64_C(1) << 32, cycles, 10), -1);
}

/* The shape of the trace, with the mean gap that was asked for. */
static void traces(void **state) {
  (void)state;
  static const uint64_t times[] = {100, 100, 200, 1000, 1100}, late[] = {5, 4, 6},
                        same[] = {7, 7, 7};
  static const uint64_t want[] = {250, 250, 350, 1150, 1250};
  uint64_t a[5];
  assert_int_equal(ct_arrivals_trace(250 << 16, times, a, 5), 0);
  assert_memory_equal(a, want, sizeof want);
  /* Times in 100 ns over years, and a span that no 64-bit product holds. */
  static uint64_t many[kMany], cycles[kMany];
  for (int i = 0; i < kMany; ++i)
    many[i] = (UINT64_C(1) << 60) + (uint64_t)i * UINT64_C(123456789012);
  assert_int_equal(ct_arrivals_trace(777 << 16, many, cycles, kMany), 0);
  for (int i = 0; i < kMany; ++i)
    assert_in_range(cycles[i], 777 * ((uint64_t)i + 1) - 1, 777 * ((uint64_t)i + 1));
  assert_int_equal(ct_arrivals_trace(250, late, a, 3), -1);
  assert_int_equal(ct_arrivals_trace(250, same, a, 3), -1);
  assert_int_equal(ct_arrivals_trace(250, times, a, 1), -1);
  assert_int_equal(ct_arrivals_trace(0, times, a, 5), -1);
}

static void limits(void **state) {
  (void)state;
  static uint64_t cycles[kMany];
  assert_int_equal(ct_arrivals_poisson(1, 0, cycles, 1), -1);
  assert_int_equal(ct_arrivals_poisson(1, CT_ARRIVALS_MEAN_MAX + 1, cycles, 1), -1);
  assert_int_equal(ct_arrivals_poisson(1, CT_ARRIVALS_MEAN_MAX, cycles, 1), 0);
  assert_int_equal(ct_arrivals_poisson(1, 1, cycles, 0), 0);
  /* 2^48 cycles are 65,536 of the largest gaps. */
  assert_int_equal(ct_arrivals_poisson(1, CT_ARRIVALS_MEAN_MAX, cycles, 60000), 0);
  assert_int_equal(ct_arrivals_poisson(1, CT_ARRIVALS_MEAN_MAX, cycles, 72000), -1);
}

static void mean_gaps(void **state) {
  (void)state;
  /* 2,000 completions in 1,600,000 cycles: 800 cycles each, 1000 at load 0.8. */
  assert_int_equal(ct_arrivals_mean_q16(1600000, 2000, 800), 1000 << 16);
  assert_int_equal(ct_arrivals_mean_q16(1600000, 2000, 1000), 800 << 16);
  assert_int_equal(ct_arrivals_mean_q16(1600000, 2000, 1250), 640 << 16);
  assert_int_equal(ct_arrivals_mean_q16(1, 3, 1000), 21845);             /* 65536 / 3 = 21845.33 */
  assert_int_equal(ct_arrivals_mean_q16(2, 3, 1000), 43691);             /* 43690.67 */
  assert_int_equal(ct_arrivals_mean_q16(1, UINT64_C(1) << 36, 1000), 0); /* below 1/65536 */
  assert_int_equal(ct_arrivals_mean_q16(0, 1, 1), 0);
  assert_int_equal(ct_arrivals_mean_q16(1, 0, 1), 0);
  assert_int_equal(ct_arrivals_mean_q16(1, 1, 0), 0);
  assert_int_equal(ct_arrivals_mean_q16(UINT64_C(1) << 32, 1, 1000), 0);
  assert_int_equal(ct_arrivals_mean_q16((UINT64_C(1) << 32) - 1, 1, 1000), ((UINT64_C(1) << 32) - 1)
                                                                               << 16);
  assert_int_equal(ct_arrivals_mean_q16(UINT64_MAX, 1000000, 1000), 0);
  assert_int_equal(ct_arrivals_mean_q16(1, UINT64_MAX, 2), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(exponential_is_a_logarithm),
      cmocka_unit_test(statistics),
      cmocka_unit_test(short_gaps),
      cmocka_unit_test(seeds_differ_and_prefixes_agree),
      cmocka_unit_test(constant_gaps),
      cmocka_unit_test(bursts),
      cmocka_unit_test(traces),
      cmocka_unit_test(limits),
      cmocka_unit_test(mean_gaps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
