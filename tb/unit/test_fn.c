/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions: host/emu/ct_num.c against libm over a hundredth of all inputs (fn_exhaustive takes
 * all of them), and ct_fn against host/emu/ct_num.c.
 */
#include "fn_check.h"
#include "fp_ref.h"
#include "lane_pipe.h"

#include <math.h>
#include <string.h>

#include "ct_fn_dut.h"

enum { kLanes = ct_fn_x_i_bits / 32, kSample = 100, kVectors = 300000 };

static void within_error_bounds(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (enum ct_fn fn = CT_FN_EXP; fn <= CT_FN_RSQRT; ++fn) {
    const fn_report report = fn_check(fn, kSample, ct_rng_below(&rng, kSample));
    fn_print(fn, &report);
    assert_true(report.bad == 0);
    assert_true(report.inputs > UINT32_MAX / kSample / 2);
  }
}

/* The contract's table of special inputs, by hand. */
static void special_inputs(void **state) {
  (void)state;
  static const struct {
    enum ct_fn fn;
    uint32_t x, y;
  } cases[] = {
      {CT_FN_EXP, 0x00000000, 0x3F800000},     {CT_FN_EXP, 0x80000000, 0x3F800000},
      {CT_FN_EXP, 0x807FFFFF, 0x3F800000},     {CT_FN_EXP, 0x7F800000, 0x7F800000},
      {CT_FN_EXP, 0xFF800000, 0x00000000},     {CT_FN_EXP, 0xFF800001, 0x7FC00000},
      {CT_FN_EXP, 0x42B17217, 0x7F7FFF83},     {CT_FN_EXP, 0x42B17218, 0x7F800000},
      {CT_FN_EXP, 0xC2AEAC4F, 0x00800026},     {CT_FN_EXP, 0xC2AEAC50, 0x00000000},
      {CT_FN_RECIP, 0x00000000, 0x7F800000},   {CT_FN_RECIP, 0x80000001, 0xFF800000},
      {CT_FN_RECIP, 0x7F800000, 0x00000000},   {CT_FN_RECIP, 0xFF800000, 0x80000000},
      {CT_FN_RECIP, 0x7FC12345, 0x7FC00000},   {CT_FN_RECIP, 0x3F800000, 0x3F800000},
      {CT_FN_RECIP, 0xC0000000, 0xBF000000},   {CT_FN_RECIP, 0x7E800000, 0x00800000},
      {CT_FN_RECIP, 0xFE800001, 0x80000000},   {CT_FN_RECIP, 0x00800000, 0x7E800000},
      {CT_FN_LOG, 0x00000000, 0xFF800000},     {CT_FN_LOG, 0x80000000, 0xFF800000},
      {CT_FN_LOG, 0x807FFFFF, 0xFF800000},     {CT_FN_LOG, 0xBF800000, 0x7FC00000},
      {CT_FN_LOG, 0xFF800000, 0x7FC00000},     {CT_FN_LOG, 0x7F800000, 0x7F800000},
      {CT_FN_LOG, 0x3F800000, 0x00000000},     {CT_FN_LOG, 0x7F800001, 0x7FC00000},
      {CT_FN_RSQRT, 0x00000000, 0x7F800000},   {CT_FN_RSQRT, 0x80000000, 0xFF800000},
      {CT_FN_RSQRT, 0xBF800000, 0x7FC00000},   {CT_FN_RSQRT, 0x7F800000, 0x00000000},
      {CT_FN_RSQRT, 0x40800000, 0x3F000000},   {CT_FN_RSQRT, 0xFF800000, 0x7FC00000},
      {(enum ct_fn)4, 0x3F800000, 0x7FC00000},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const uint32_t y = ct_fn(cases[i].fn, cases[i].x);
    if (y != cases[i].y)
      fail_msg("function %d of %08X: got %08X, want %08X", (int)cases[i].fn, cases[i].x, y,
               cases[i].y);
  }
}

/* FNV-1a over the results, as 32-bit words, of every x from first to last. */
static uint64_t digest(uint64_t hash, enum ct_fn fn, uint32_t first, uint32_t last) {
  for (uint32_t x = first; x <= last; ++x)
    hash = (hash ^ ct_fn(fn, x)) * UINT64_C(0x100000001B3);
  return hash;
}

/* The contract's digests (docs/numerics.md): any change of a bit of the tables shows. */
static void digests(void **state) {
  (void)state;
  const uint64_t start = UINT64_C(0xCBF29CE484222325);
  uint64_t h = digest(start, CT_FN_EXP, 0x3E800000u, 0x3F7FFFFFu);
  h = digest(h, CT_FN_EXP, 0xBE800000u, 0xBF7FFFFFu);
  assert_true(h == UINT64_C(0x369E20454AFE58CE));
  h = digest(start, CT_FN_RECIP, 0x3F800000u, 0x3FFFFFFFu);
  assert_true(h == UINT64_C(0xF7A6346858A2B35F));
  h = digest(start, CT_FN_LOG, 0x3F800000u, 0x3FFFFFFFu);
  assert_true(h == UINT64_C(0xE77F3443D928A847));
  h = digest(start, CT_FN_RSQRT, 0x3F800000u, 0x407FFFFFu);
  assert_true(h == UINT64_C(0x070EE3F52CE160D7));
}

/* --- The RTL --- */

typedef struct {
  ct_fn_dut *dut;
  lane_pipe pipe;
  unsigned filled;
} bench;

static void fn_tick(void *d) {
  ct_fn_tick(d);
}

static bench open_bench(void) {
  ct_fn_dut *d = ct_fn_new(ct_tb_trace());
  *d->valid_i = 0;
  ct_fn_reset(d, 2);
  return (bench){
      d,
      {"ct_fn", d, fn_tick, d->valid_i, d->valid_o, d->y_o, kLanes, 11, 0, 0, {{0}}, false, {0}},
      0};
}

/* Drives the vector in x_i. */
static void send(bench *t, uint32_t sel, bool offer) {
  uint32_t want[kLanes];
  *t->dut->sel_i = (uint8_t)sel;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    want[lane] = ct_fn((enum ct_fn)sel, t->dut->x_i[lane]);
  pipe_step(&t->pipe, offer ? want : NULL);
  t->filled = 0;
}

static void feed(bench *t, uint32_t sel, uint32_t x) {
  t->dut->x_i[t->filled] = x;
  if (++t->filled == kLanes) send(t, sel, true);
}

static uint32_t float_bits(double x) {
  const float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* Both sides of every segment boundary and of every segment's middle: for the functions of the
 * mantissa at every exponent, for exp by the value. */
static void rtl_segments(void **state) {
  (void)state;
  bench t = open_bench();
  for (uint32_t sel = CT_FN_RECIP; sel <= CT_FN_RSQRT; ++sel)
    for (uint32_t middle = 0; middle < 0x7F800000u; middle += 0x8000)
      for (uint32_t k = 0; k < 8; ++k)
        feed(&t, sel, (middle + k - 4) & 0x7FFFFFFFu);
  for (int n = -140 * 256; n <= 140 * 256; ++n)
    for (uint32_t k = 0; k < kLanes; ++k)
      feed(&t, CT_FN_EXP, float_bits(n / 256.0 * log(2)) + k - kLanes / 2);
  pipe_drain(&t.pipe);
  ct_fn_free(t.dut);
}

static void rtl_corners(void **state) {
  (void)state;
  bench t = open_bench();
  for (uint32_t sel = 0; sel < 8; ++sel) {
    for (size_t i = 0; i < fp_corners_count; ++i)
      feed(&t, sel, fp_corners[i]);
    while (t.filled)
      feed(&t, sel, CT_FP_ONE);
    /* where exp is neither 1 nor out of range, and log is near 0 */
    for (uint32_t x = 0x32000000u; x < 0x43800000u; x += 0x1234)
      feed(&t, sel, x | (x >> 3 & 1) << 31);
    while (t.filled)
      feed(&t, sel, CT_FP_ONE);
    for (uint32_t x = 0x3F7F0000u; x < 0x3F810000u; ++x)
      feed(&t, sel, x);
  }
  pipe_drain(&t.pipe);
  ct_fn_free(t.dut);
}

/* The function changes with every vector; there are gaps. */
static void rtl_random(void **state) {
  (void)state;
  bench t = open_bench();
  ct_rng rng = ct_rng_make(2);
  ct_stall stall = ct_stall_make(3, 25, 3);
  for (int i = 0; i < kVectors; ++i) {
    const uint32_t sel =
        ct_rng_percent(&rng, 3) ? 4 + ct_rng_below(&rng, 4) : ct_rng_below(&rng, 4);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint32_t x = fp_gen(&rng);
      if (ct_rng_percent(&rng, 40)) /* 2^-26 .. 2^8, where exp lives */
        x = (x & 0x807FFFFFu) | (101 + ct_rng_below(&rng, 34)) << 23;
      t.dut->x_i[lane] = ct_rng_percent(&rng, 50) ? x : x & ~CT_FP_SIGN;
    }
    send(&t, sel, !ct_stall_next(&stall));
  }
  pipe_drain(&t.pipe);
  ct_fn_free(t.dut);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(within_error_bounds),
      cmocka_unit_test(special_inputs),
      cmocka_unit_test(digests),
      cmocka_unit_test(rtl_segments),
      cmocka_unit_test(rtl_corners),
      cmocka_unit_test(rtl_random),
  };
  return cmocka_run_group_tests_name("ct_fn", tests, NULL, NULL);
}
