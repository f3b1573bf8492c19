/* SPDX-License-Identifier: Apache-2.0 */
#include "fn_check.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { kBlock = 4096 };
static const double kLimit = 1.0 / (1 << 20);
static const char *const kNames[] = {"exp", "recip", "log", "rsqrt"};

static double as_double(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double truth(enum ct_fn fn, double x) {
  switch (fn) {
    case CT_FN_EXP:
      return exp(x);
    case CT_FN_RECIP:
      return 1 / x;
    case CT_FN_LOG:
      return log(x);
    case CT_FN_RSQRT:
      return 1 / sqrt(x);
  }
  return NAN;
}

/* Bit patterns in ascending order of their values: -NaN ... -0, +0 ... +NaN. */
static uint32_t nth(uint32_t n) {
  return n & CT_FP_SIGN ? n ^ CT_FP_SIGN : ~n;
}

/* What the inputs with an answer of their own give; false when x is none of them. */
static bool special(enum ct_fn fn, uint32_t x, uint32_t *y) {
  const uint32_t sign = x & CT_FP_SIGN, magnitude = x & ~CT_FP_SIGN;
  const bool zero = magnitude < 0x00800000u, inf = magnitude == CT_FP_INF;
  *y = CT_FP_NAN;
  if (magnitude > CT_FP_INF) return true;
  switch (fn) {
    case CT_FN_EXP:
      *y = zero ? CT_FP_ONE : sign ? 0 : CT_FP_INF;
      return zero || inf;
    case CT_FN_RECIP:
      *y = zero ? sign | CT_FP_INF : sign;
      return zero || inf;
    case CT_FN_LOG:
      *y = zero ? CT_FP_SIGN | CT_FP_INF : sign ? CT_FP_NAN : x == CT_FP_ONE ? 0 : CT_FP_INF;
      return zero || sign || inf || x == CT_FP_ONE;
    case CT_FN_RSQRT:
      *y = zero ? sign | CT_FP_INF : sign ? CT_FP_NAN : 0;
      return zero || sign || inf;
  }
  return false;
}

static const char *check_error(enum ct_fn fn, uint32_t x, uint32_t y, fn_report *r) {
  const double want = truth(fn, as_double(x)), got = as_double(y);
  const double error = fabs(got - want), relative = error / fabs(want);
  if (isnan(got)) return "NaN";
  if (fabs(want) > FLT_MAX && isinf(got) && (got > 0) == (want > 0)) return NULL;
  if (fabs(want) < FLT_MIN && got == 0 && signbit(got) == signbit(want)) return NULL;
  if (fn == CT_FN_LOG && fabs(as_double(x) - 1) < 1.0 / 16) {
    if (error > r->absolute) r->absolute = error, r->absolute_at = x;
    return error <= kLimit ? NULL : "absolute error";
  }
  if (relative > r->relative) r->relative = relative, r->relative_at = x;
  return relative <= kLimit ? NULL : "relative error";
}

/* Arguments at which the true result has a short mantissa and must come out exactly. */
static bool is_exact(enum ct_fn fn, uint32_t x) {
  if (fn == CT_FN_RECIP) return !(x & 0x7FFFFFu) && fabs(truth(fn, as_double(x))) >= FLT_MIN;
  if (fn == CT_FN_RSQRT) return !(x & 0x7FFFFFu) && (x >> 23 & 1);
  return false;
}

static const char *check_one(enum ct_fn fn, uint32_t x, uint32_t y, double *last, fn_report *r) {
  uint32_t want;
  if (ct_fn(fn, x) != y) return "ct_fn differs";
  const bool decreasing = fn == CT_FN_RECIP || fn == CT_FN_RSQRT;
  const double value = decreasing ? -as_double(y) : as_double(y);
  const double before = *last;
  *last = value;
  if (special(fn, x, &want)) {
    if (x << 1 == 0 || isnan(value)) *last = -INFINITY; /* a new branch starts at a zero */
    return y == want ? NULL : "special value";
  }
  if (value < before) return "not monotone";
  if (is_exact(fn, x) && as_double(y) != truth(fn, as_double(x))) return "not exact";
  return check_error(fn, x, y, r);
}

static uint32_t (*const kFunctions[])(uint32_t) = {ct_fn_exp, ct_fn_recip, ct_fn_log, ct_fn_rsqrt};

fn_report fn_check(enum ct_fn fn, uint32_t stride, uint32_t first) {
  fn_report r = {.bad = 0};
  double last = -INFINITY;
  for (uint32_t block = first; block < (UINT64_C(1) << 32) / kBlock; block += stride) {
    for (uint32_t i = 0; i < kBlock; ++i) {
      const uint32_t x = nth(block * kBlock + i);
      const char *why = check_one(fn, x, kFunctions[fn](x), &last, &r);
      ++r.inputs;
      if (why && r.bad++ == 0) r.first_bad = x, r.first_why = why;
    }
  }
  return r;
}

void fn_print(enum ct_fn fn, const fn_report *r) {
  printf("%-5s %" PRIu64 " inputs, worst relative error 2^%.2f at %08" PRIX32, kNames[fn],
         r->inputs, log2(r->relative), r->relative_at);
  if (fn == CT_FN_LOG)
    printf(", absolute near 1 2^%.2f at %08" PRIX32, log2(r->absolute), r->absolute_at);
  if (r->bad)
    printf("; %" PRIu64 " WRONG, first %08" PRIX32 ": %s", r->bad, r->first_bad, r->first_why);
  printf("\n");
}
