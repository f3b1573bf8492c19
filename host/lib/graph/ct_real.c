/* SPDX-License-Identifier: Apache-2.0 */
/* See ct_real.h. */
#include "ct_real.h"

#include <math.h>
#include <string.h>

static uint64_t bits_of(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

static double of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}

/* 2^k for a normal result. */
static double two_to(int k) {
  return of_bits((uint64_t)(k + 1023) << 52);
}

static double absolute(double x) {
  return x < 0 ? -x : x;
}

/* x = k ln 2 + r, |r| <= ln 2 / 2; e^r by its series, whose 15th term is below 2^-60. ln 2 is in
 * two parts, the first with zeros at its end, so that k times it is exact. */
double ct_real_exp(double x) {
  const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  if (isnan(x)) return x;
  if (x > 710) return INFINITY;
  if (x < -750) return 0;
  const double scaled = x * 0x1.71547652b82fep+0;
  const int k = (int)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  double sum = 1;
  for (int i = 15; i > 0; --i)
    sum = 1 + sum * r / i;
  return sum * two_to(k / 2) * two_to(k - k / 2);
}

/* x = 2^k m, m from sqrt(1/2) to sqrt(2); log m = 2 artanh s, s = (m - 1) / (m + 1), |s| < 0.172.
 */
double ct_real_log(double x) {
  if (isnan(x) || x < 0) return NAN;
  if (x == 0) return -INFINITY;
  if (isinf(x)) return x;
  int k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  k += (int)(bits_of(x) >> 52) - 1023;
  double m = of_bits((bits_of(x) & 0xfffffffffffff) | UINT64_C(0x3ff) << 52);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int i = 23; i > 1; i -= 2)
    sum = (sum + 1.0 / i) * s2;
  return k * 0x1.62e42fee00000p-1 + (k * 0x1.a39ef35793c76p-33 + 2 * (s + s * sum));
}

/* Newton, from half the exponent. */
double ct_real_sqrt(double x) {
  if (isnan(x) || x < 0) return NAN;
  if (x == 0 || isinf(x)) return x;
  const int down = x < 0x1p-900 ? 200 : 0;
  if (down) x *= two_to(2 * down);
  double y = of_bits((bits_of(x) >> 1) + (UINT64_C(1023) << 51));
  for (int i = 0; i < 5; ++i)
    y = 0.5 * (y + x / y);
  return y * two_to(-down);
}

double ct_real_tanh(double x) {
  const double a = absolute(x);
  if (a > 20) return x < 0 ? -1 : 1;
  const double e = ct_real_exp(a), cosh2 = e + 1 / e;
  double t;
  if (a < 0.5) { /* sinh by its series: e - 1/e would cancel */
    double sum = 1;
    for (int i = 17; i > 1; i -= 2)
      sum = 1 + sum * a * a / (i * (i - 1));
    t = 2 * a * sum / cosh2;
  } else {
    t = (e - 1 / e) / cosh2;
  }
  return x < 0 ? -t : t;
}

/* erf x = 2 / sqrt(pi) e^(-x^2) sum of 2^n x^(2n+1) / (1 3 5 .. 2n+1): all terms are positive. */
double ct_real_erf(double x) {
  const double a = absolute(x);
  if (isnan(x)) return x;
  if (a > 6) return x < 0 ? -1 : 1;
  double term = a, sum = a;
  for (int n = 1; n < 200 && term > sum * 1e-18; ++n) {
    term *= 2 * a * a / (2 * n + 1);
    sum += term;
  }
  const double y = 0x1.20dd750429b6dp+0 * ct_real_exp(-a * a) * sum;
  return x < 0 ? -y : y;
}

double ct_real_sigmoid(double x) {
  const double e = ct_real_exp(-absolute(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

double ct_real_cos_pi(double x) {
  const double a = (0.5 - x) * 0x1.921fb54442d18p+1; /* cos(pi x) = sin(a), |a| <= pi / 2 */
  double sum = 1;
  for (int i = 25; i > 1; i -= 2)
    sum = 1 - sum * a * a / (i * (i - 1));
  return a * sum;
}

double ct_real_power(double x, uint64_t n) {
  double y = 1;
  for (; n; n >>= 1, x *= x)
    if (n & 1) y *= x;
  return y;
}

void ct_philox(uint32_t c[4], uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)c[0] * 0xd2511f53, p1 = (uint64_t)c[2] * 0xcd9e8d57;
    const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ key0, (uint32_t)p1,
                              (uint32_t)(p0 >> 32) ^ c[3] ^ key1, (uint32_t)p0};
    memcpy(c, next, sizeof next);
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
}

void ct_dropout_four(const struct ct_dropout *d, uint64_t group, bool dropped[4]) {
  uint32_t r[4] = {(uint32_t)group, d->stream, (uint32_t)d->step, (uint32_t)(d->step >> 32)};
  ct_philox(r, (uint32_t)d->seed, (uint32_t)(d->seed >> 32));
  for (unsigned i = 0; i < 4; ++i)
    dropped[i] = r[i] < d->limit;
}
