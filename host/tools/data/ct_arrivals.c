/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_arrivals.h"

#include "ct_rand.h"

#define LOW32 UINT64_C(0xFFFFFFFF)
#define LN2_Q32 UINT64_C(2977044472)

/* log2(x) in 1/2^32; x at least 1. Squaring a number in [1, 2) doubles its logarithm: whether the
 * square reaches 2 is the next bit. */
static uint64_t log2_q32(uint64_t x) {
  unsigned k = 63;
  for (; !(x >> 63); x <<= 1)
    --k;
  uint64_t m = x >> 32, fraction = 0;
  for (int i = 0; i < 32; ++i) {
    const uint64_t square = m * m;
    const unsigned bit = (unsigned)(square >> 63);
    fraction = fraction << 1 | bit;
    m = square >> (31 + bit);
  }
  return (uint64_t)k << 32 | fraction;
}

uint64_t ct_arrivals_exponential(uint64_t x) {
  const uint64_t l = (UINT64_C(64) << 32) - log2_q32(x);
  return (l >> 32) * LN2_Q32 + ((l & LOW32) * LN2_Q32 >> 32);
}

/* a * b / 2^32 for a up to 2^48 and b below 2^38: the product itself may have 86 bits. */
static uint64_t scale(uint64_t a, uint64_t b) {
  const uint64_t high = b >> 32, low = b & LOW32;
  return a * high + (a >> 32) * low + ((a & LOW32) * low >> 32);
}

int ct_arrivals_poisson(uint64_t seed, uint64_t mean_q16, uint64_t *cycles, size_t count) {
  if (mean_q16 == 0 || mean_q16 > CT_ARRIVALS_MEAN_MAX) return -1;
  struct ct_rand rand;
  uint64_t time = 0;
  ct_rand_seed(&rand, seed, CT_RAND_STREAM_ARRIVALS);
  for (size_t i = 0; i < count; ++i) {
    uint64_t x;
    do {
      x = ct_rand_next(&rand);
    } while (x == 0);
    const uint64_t gap = scale(mean_q16, ct_arrivals_exponential(x));
    if (gap > UINT64_MAX - time) return -1;
    time += gap;
    cycles[i] = time >> 16;
  }
  return 0;
}

int ct_arrivals_constant(uint64_t mean_q16, uint64_t *cycles, size_t count) {
  if (mean_q16 == 0 || mean_q16 > CT_ARRIVALS_MEAN_MAX) return -1;
  if (count >= UINT64_MAX / mean_q16) return -1;
  for (size_t i = 0; i < count; ++i)
    cycles[i] = (i + 1) * mean_q16 >> 16;
  return 0;
}

int ct_arrivals_bursty(uint64_t seed, uint64_t mean_q16, uint64_t on, uint64_t period,
                       uint64_t *cycles, size_t count) {
  if (on == 0 || on > period || period > LOW32) return -1;
  if (mean_q16 == 0 || mean_q16 > CT_ARRIVALS_MEAN_MAX) return -1;
  const uint64_t mean = mean_q16 / period * on + mean_q16 % period * on / period;
  if (ct_arrivals_poisson(seed, mean ? mean : 1, cycles, count)) return -1;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t turn = cycles[i] / on;
    if (turn > UINT64_MAX / period - 1) return -1;
    cycles[i] = turn * period + cycles[i] % on;
  }
  return 0;
}

/* floor(a * b / d) for a <= d < 2^62, bit by bit of b. */
static uint64_t part_of(uint64_t a, uint64_t b, uint64_t d) {
  uint64_t quotient = 0, rest = 0;
  for (int i = 63; i >= 0; --i) {
    rest = 2 * rest + (b >> i & 1 ? a : 0);
    quotient = 2 * quotient + rest / d;
    rest %= d;
  }
  return quotient;
}

int ct_arrivals_trace(uint64_t mean_q16, const uint64_t *times, uint64_t *cycles, size_t count) {
  if (mean_q16 == 0 || mean_q16 > CT_ARRIVALS_MEAN_MAX) return -1;
  if (count < 2 || count >= UINT64_MAX / mean_q16) return -1;
  const uint64_t span = times[count - 1] - times[0], target = (count - 1) * mean_q16;
  if (times[count - 1] <= times[0] || span >> 62) return -1;
  for (size_t i = 0; i < count; ++i) {
    if (i && times[i] < times[i - 1]) return -1;
    cycles[i] = (mean_q16 + part_of(times[i] - times[0], target, span)) >> 16;
  }
  return 0;
}

uint64_t ct_arrivals_mean_q16(uint64_t busy, uint64_t done, uint32_t permille) {
  if (busy == 0 || done == 0 || permille == 0) return 0;
  if (busy > UINT64_MAX / 1000 || done > (UINT64_MAX >> 17) / permille) return 0;
  const uint64_t divisor = done * permille; /* below 2^47, so that a rest times 2^16 fits */
  const uint64_t whole = busy * 1000 / divisor, rest = busy * 1000 % divisor;
  if (whole >= CT_ARRIVALS_MEAN_MAX >> 16) return 0;
  return (whole << 16) + ((rest << 16) + divisor / 2) / divisor;
}
