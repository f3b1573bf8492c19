/* SPDX-License-Identifier: Apache-2.0 */
/* MXINT8 in and out: every code under every scale against the numbers of the specification, pairs
 * of blocks against a search for a scale, and what is refused. Values are doubles, which hold all
 * of them; packed matrices are read here by the format's own description. */
#include "ct_tb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"

enum { kCols = 32, kRecord = 272, kMost = 3 * 2 * kRecord };

/* By the specification: 2^(scale - 127), times a two's complement number with six fractional bits.
 */
static double mx_value(int8_t m, uint8_t scale) {
  return ldexp(m / 64.0, scale - 127);
}

/* By docs/numerics.md. */
static double hbfp_value(const uint8_t *packed, size_t cols, size_t r, size_t c) {
  const uint8_t *record = packed + (r / 16 * ((cols + 15) / 16) + c / 16) * kRecord;
  const int8_t q = (int8_t)record[16 + r % 16 * 16 + c % 16];
  const uint8_t e = record[r % 16];
  assert_int_not_equal(e, 255);
  return e == 0 || q == -128 ? 0 : ldexp(q, e - 133);
}

static void refused(int result, const char *part) {
  assert_int_equal(result, CT_ERR_ARG);
  if (!strstr(ct_last_error(NULL), part))
    fail_msg("\"%s\" is not in \"%s\"", part, ct_last_error(NULL));
}

/* ---- In ---- */

/* Sections 5.3 and 5.4 of OCP Microscaling Formats (MX) v1.0: INT8 has the step 1/64 and goes to 1
 * 63/64; E8M0 goes from 2^-127 to 2^127, and 255 is NaN. */
static void the_numbers_of_the_specification(void **state) {
  (void)state;
  static const struct {
    uint8_t code, scale;
    double value;
  } known[] = {{0x01, 127, 1 / 64.0},
               {0x7F, 127, 1 + 63 / 64.0},
               {0x81, 127, -1 - 63 / 64.0},
               {0x40, 127, 1},
               {0xC0, 127, -1},
               {0x20, 127, 0.5},
               {0x00, 127, 0},
               {0xFF, 127, -1 / 64.0},
               {0x40, 128, 2},
               {0x40, 254, 0x1p127},
               {0x40, 1, 0x1p-126},
               {0x7F, 254, 0x1.FCp127},
               {0x01, 254, 0x1p121},
               {0x01, 1, 0x1p-132},
               {0x60, 100, 1.5 * 0x1p-27},
               {0x41, 64, 0x1.04p-63}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    const int8_t m[1] = {(int8_t)known[i].code};
    uint8_t packed[kRecord];
    assert_int_equal(ct_pack_mxint8(m, &known[i].scale, 1, 1, packed), CT_OK);
    assert_true(hbfp_value(packed, 1, 0, 0) == known[i].value);
    float x;
    assert_int_equal(ct_unpack(packed, 1, 1, 1, &x), CT_OK);
    assert_true(x == (fabs(known[i].value) < 0x1p-126 ? 0 : known[i].value));
  }
}

/* Every code in both halves, under every scale: the value, the whole image, and the way back. */
static void every_code_under_every_scale(void **state) {
  (void)state;
  enum { kRows = 16 };
  int8_t m[kRows * kCols], back[kRows * kCols];
  uint8_t scales[kRows], again[kRows], packed[2 * kRecord];
  for (int first = 1; first < 255; ++first) {
    for (int i = 0; i < kRows * kCols; ++i) { /* -127..127 twice, and 4 more */
      const int code = (i + first) % 255 - 127;
      m[i] = (int8_t)code;
    }
    for (int r = 0; r < kRows; ++r)
      scales[r] = (uint8_t)(1 + (first + r) % 254);
    memset(packed, 0xA5, sizeof packed);
    assert_int_equal(ct_pack_mxint8(m, scales, kRows, kCols, packed), CT_OK);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t c = 0; c < kCols; ++c)
        assert_true(hbfp_value(packed, kCols, r, c) == mx_value(m[r * kCols + c], scales[r]));
      assert_int_equal(packed[r], scales[r]);
      assert_int_equal(packed[kRecord + r], scales[r]);
    }
    assert_int_equal(ct_unpack_mxint8(packed, kRows, kCols, CT_EXACT, back, again), CT_OK);
    assert_memory_equal(m, back, sizeof m);
    assert_memory_equal(scales, again, sizeof scales);
  }
}

/* All sizes of edges: nothing outside is read or written, and the padding is 0. */
static void edges(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(7);
  for (size_t rows = 1; rows < 35; rows += 1 + rows % 3)
    for (size_t cols = 1; cols < 70; ++cols) {
      const size_t n = rows * cols, blocks = rows * ((cols + 31) / 32),
                   size = ct_pack_size(rows, cols);
      int8_t *m = malloc(n), *back = malloc(n);
      uint8_t *s = malloc(blocks), *again = malloc(blocks), *packed = malloc(size);
      for (size_t i = 0; i < n; ++i)
        m[i] = (int8_t)((int)ct_rng_below(&rng, 255) - 127);
      for (size_t i = 0; i < blocks; ++i)
        s[i] = (uint8_t)(1 + ct_rng_below(&rng, 254));
      memset(packed, 0xA5, size);
      assert_int_equal(ct_pack_mxint8(m, s, rows, cols, packed), CT_OK);
      const size_t whole = (cols + 15) / 16 * 16;
      for (size_t r = 0; r < (rows + 15) / 16 * 16; ++r)
        for (size_t c = 0; c < whole; ++c)
          assert_true(hbfp_value(packed, cols, r, c) ==
                      (r < rows && c < cols
                           ? mx_value(m[r * cols + c], s[r * ((cols + 31) / 32) + c / 32])
                           : 0));
      for (size_t r = rows; r < (rows + 15) / 16 * 16; ++r) /* no exponent where there is no row */
        for (size_t c = 0; c < whole; c += 16)
          assert_int_equal(packed[(r / 16 * (whole / 16) + c / 16) * kRecord + r % 16], 0);
      assert_int_equal(ct_unpack_mxint8(packed, rows, cols, CT_EXACT, back, again), CT_OK);
      assert_memory_equal(m, back, n);
      assert_memory_equal(s, again, blocks);
      free(m);
      free(back);
      free(s);
      free(again);
      free(packed);
    }
}

static void what_hbfp8_does_not_have(void **state) {
  (void)state;
  int8_t m[3 * 40] = {0};
  uint8_t s[3 * 2], packed[3 * kRecord], before[3 * kRecord];
  char part[96];
  memset(s, 127, sizeof s);
  memset(before, 0xA5, sizeof before);
  memcpy(packed, before, sizeof packed);
  for (int i = 0; i < 3 * 40; ++i) { /* anywhere */
    m[i] = -128;
    snprintf(part, sizeof part, "element %d (row %d, column %d) is -128", i, i / 40, i % 40);
    refused(ct_pack_mxint8(m, s, 3, 40, packed), part);
    m[i] = 0;
  }
  for (int i = 0; i < 3 * 2; ++i) {
    s[i] = 255;
    snprintf(part, sizeof part, "row %d, block %d is 255, which is NaN", i / 2, i % 2);
    refused(ct_pack_mxint8(m, s, 3, 40, packed), part);
    s[i] = 0;
    m[i / 2 * 40 + (i % 2 ? 39 : 31)] = 1; /* the last of its block */
    snprintf(part, sizeof part, "row %d, block %d is 0, which is 2^-127", i / 2, i % 2);
    refused(ct_pack_mxint8(m, s, 3, 40, packed), part);
    memset(m, 0, sizeof m);
    s[i] = 127;
  }
  assert_memory_equal(packed, before, sizeof packed);
  memset(s, 0, sizeof s); /* blocks of zeros may have it, and keep it */
  assert_int_equal(ct_pack_mxint8(m, s, 3, 40, packed), CT_OK);
  memset(s, 9, sizeof s);
  assert_int_equal(ct_unpack_mxint8(packed, 3, 40, CT_EXACT, m, s), CT_OK);
  for (int i = 0; i < 3 * 2; ++i)
    assert_int_equal(s[i], 0);
}

/* ---- Out ---- */

/* Two blocks of one row, side by side. */
struct pair {
  uint8_t packed[2 * kRecord];
};

static void set_pair(struct pair *p, const int8_t q[32], uint8_t e0, uint8_t e1) {
  memset(p, 0, sizeof *p);
  p->packed[0] = e0;
  p->packed[kRecord] = e1;
  memcpy(p->packed + 16, q, 16);
  memcpy(p->packed + kRecord + 16, q + 16, 16);
}

/* The scales under which all 32 are whole numbers of -127..127, by trying all; the largest that is
 * not above the larger exponent, or 0. */
static int search(const struct pair *p, int top) {
  for (int scale = top; scale > 0; --scale) {
    bool all = true;
    for (size_t c = 0; c < 32 && all; ++c) {
      const double units = ldexp(hbfp_value(p->packed, 32, 0, c), 133 - scale);
      all = units == floor(units) && fabs(units) <= 127;
    }
    if (all) return scale;
  }
  return 0;
}

static bool some(const struct pair *p, int half) {
  for (size_t c = 0; c < 16; ++c)
    if (hbfp_value(p->packed, 32, 0, c + (size_t)half * 16) != 0) return true;
  return false;
}

static int larger(int a, int b) {
  return a > b ? a : b;
}

/* The exponent that has a say. */
static int top_of(const struct pair *p, int e0, int e1) {
  const bool a = some(p, 0), b = some(p, 1);
  return a == b ? larger(e0, e1) : a ? e0 : e1;
}

static void expect_rounded(const struct pair *p, const int8_t m[32], int scale) {
  for (size_t c = 0; c < 32; ++c)
    assert_int_equal(m[c], (int)nearbyint(ldexp(hbfp_value(p->packed, 32, 0, c), 133 - scale)));
}

/* Whether it was exact. */
static bool check_pair(const int8_t q[32], uint8_t e0, uint8_t e1) {
  struct pair p;
  int8_t m[32], near[32];
  uint8_t scale = 77, nearscale = 77;
  memset(m, 55, sizeof m);
  set_pair(&p, q, e0, e1);
  const int top = top_of(&p, e0, e1);
  const int want = !some(&p, 0) && !some(&p, 1) ? top : search(&p, top);
  const int got = ct_unpack_mxint8(p.packed, 1, 32, CT_EXACT, m, &scale);
  assert_int_equal(ct_unpack_mxint8(p.packed, 1, 32, CT_NEAREST, near, &nearscale), CT_OK);
  if (want || !top) {
    assert_int_equal(got, CT_OK);
    assert_int_equal(scale, want);
    assert_int_equal(nearscale, want);
    for (size_t c = 0; c < 32; ++c)
      assert_true(mx_value(m[c], scale) == hbfp_value(p.packed, 32, 0, c));
    assert_memory_equal(m, near, sizeof m);
    return true;
  }
  char part[96];
  snprintf(part, sizeof part, "row 0, block 0 (of 32): its halves have the exponents %d and %d", e0,
           e1);
  refused(got, part);
  assert_int_equal(m[0], 55);
  assert_int_equal(scale, 77);
  assert_int_equal(nearscale, top);
  expect_rounded(&p, near, top);
  return false;
}

/* Every mantissa beside every other at every distance that matters: all are rounded right, and are
 * exact just when there is a scale. */
static void pairs_of_blocks(void **state) {
  (void)state;
  unsigned exact = 0, all = 0;
  for (int a = -128; a < 128; ++a)
    for (int b = -127; b < 128; b += a % 16 ? 29 : 1)
      for (int d = -10; d <= 10; ++d, ++all) {
        int8_t q[32] = {0};
        q[3] = (int8_t)a;
        q[20] = (int8_t)b;
        exact += check_pair(q, (uint8_t)(120 + d), 120);
      }
  assert_in_range(exact, all / 5, all / 2);
}

static void random_pairs(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(8);
  unsigned exact = 0;
  for (unsigned n = 0; n < 20000; ++n) {
    int8_t q[32];
    const unsigned zeros = (unsigned)ct_rng_below(&rng, 8), low = (unsigned)ct_rng_below(&rng, 3);
    for (size_t i = 0; i < 32; ++i)
      q[i] = (int8_t)(zeros >> i / 16 & 1
                          ? 0
                          : ((int)ct_rng_below(&rng, 255) - 127) / (1 << low) * (1 << low));
    const int e0 = (int)ct_rng_below(&rng, 255), d = (int)ct_rng_below(&rng, 7) - 3;
    const int e1 = n % 5 == 0 ? (int)ct_rng_below(&rng, 255) : e0 + d;
    exact += check_pair(q, (uint8_t)e0, (uint8_t)(e1 < 0 ? 0 : e1 > 254 ? 254 : e1));
  }
  assert_in_range(exact, 4000, 18000);
}

/* A block that is NaN has no MXINT8 here, whichever half it is in; -128 counts as the 0 that the
 * device reads. */
static void blocks_without_numbers(void **state) {
  (void)state;
  struct pair p;
  int8_t q[32] = {0}, m[32];
  uint8_t scale;
  for (int k = 0; k < 2; ++k) {
    set_pair(&p, q, k ? 100 : 255, k ? 255 : 100);
    refused(ct_unpack_mxint8(p.packed, 1, 32, CT_EXACT, m, &scale),
            "row 0, block 0 (of 32) is NaN");
    refused(ct_unpack_mxint8(p.packed, 1, 32, CT_NEAREST, m, &scale), "is NaN");
  }
  q[0] = -128;
  q[1] = 5;
  set_pair(&p, q, 100, 0);
  assert_int_equal(ct_unpack_mxint8(p.packed, 1, 32, CT_EXACT, m, &scale), CT_OK);
  assert_int_equal(scale, 100);
  assert_int_equal(m[0], 0);
  assert_int_equal(m[1], 5);
}

/* The specification's conversion (section 6.3) of FP32: the scale is the largest power of two that
 * is no larger than the largest magnitude, and elements are rounded. ct_pack() does the same for a
 * block of 16, so that both agree wherever the halves of a block have one exponent. */
static void as_the_specification_converts(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(9);
  for (unsigned n = 0; n < 2000; ++n) {
    float x[32];
    uint8_t packed[2 * kRecord], scale;
    int8_t m[32];
    double most = 0;
    const int e = (int)ct_rng_below(&rng, 230) - 110; /* no FP32 subnormals, which count as 0 */
    for (size_t i = 0; i < 32; ++i)
      x[i] = (float)ldexp((double)ct_rng_below(&rng, 1u << 24) / (1 << 23) - 1, e);
    x[n % 16] = (float)ldexp(1, e - 1); /* both halves reach into the same octave */
    x[16 + n % 16] = (float)ldexp(-1.99, e - 1);
    for (size_t i = 0; i < 32; ++i)
      most = fmax(most, fabs((double)x[i]));
    const int shared = (int)floor(log2(most));
    ct_pack(x, 1, 32, 32, CT_ROW, packed);
    if (packed[0] != packed[kRecord]) continue;
    assert_int_equal(ct_unpack_mxint8(packed, 1, 32, CT_EXACT, m, &scale), CT_OK);
    assert_int_equal(scale, shared + 127);
    for (size_t i = 0; i < 32; ++i) {
      const double units = nearbyint(ldexp((double)x[i], 6 - shared));
      assert_int_equal(m[i], units > 127 ? 127 : units < -127 ? -127 : (int)units);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_numbers_of_the_specification),
      cmocka_unit_test(every_code_under_every_scale),
      cmocka_unit_test(edges),
      cmocka_unit_test(what_hbfp8_does_not_have),
      cmocka_unit_test(pairs_of_blocks),
      cmocka_unit_test(random_pairs),
      cmocka_unit_test(blocks_without_numbers),
      cmocka_unit_test(as_the_specification_converts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
