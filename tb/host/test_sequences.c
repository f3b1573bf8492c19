/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are sequences of VA commands: how far they are from libm over a dense range, what
 * they make of zeros, infinities and NaN, how many commands they take, and that the simulated cores
 * leave the bytes of the emulator.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cmd.h"
#include "ct_racecheck.h"
#include "ct_sequences.h"
#include "harness/ct_tb.h"

enum {
  TILES = 16,
  VALUES = TILES * 256,
  UNITS = TILES * CT_F32_TILE_UNITS,
  JOBS = 96,
  AREAS = 3, /* x, g, y: arguments 1, 2, 3 */
  SPM_WORDS = 3 * UNITS
};
enum { R_X, R_G, R_Y, R_T, R_U, R_V, REGS };

typedef void record(struct ct_lower *l, const struct ct_sequence *s);

struct function {
  const char *name;
  record *record;
  double (*want)(double x);
  float lo, hi;
  unsigned commands;
  bool gradient; /* y = g * want(x) */
  double most,
      most_relative; /* errors: absolute, and where the result is at least 2^-126; 0: any */
  float special[5];  /* of +0, -0, +Inf, -Inf, NaN */
};

static double root(double x) {
  return sqrt(x);
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double gelu(double x) {
  return 0.5 * x * erfc(-x / sqrt(2));
}

/* The first two are functions of the result. */
static double sigmoid_back(double y) {
  return y * (1 - y);
}

static double tanh_back(double y) {
  return 1 - y * y;
}

static const struct function functions[] = {
    {"root", ct_lower_root, root, 0, 100, 2, false, 0, 0x1p-22, {0, -0.0f, INFINITY, NAN, NAN}},
    {"sigmoid",
     ct_lower_sigmoid,
     sigmoid,
     -87,
     40,
     2,
     false,
     0x1p-23,
     0x1p-22,
     {0.5f, 0.5f, 1, 0, NAN}},
    {"tanh", ct_lower_tanh, tanh, -20, 20, 3, false, 0x1p-22, 0, {0, 0, 1, -1, NAN}},
    {"gelu", ct_lower_gelu, gelu, -12, 12, 13, false, 0x1.8p-22, 0, {0, 0, NAN, NAN, NAN}},
    {"erf", ct_lower_erf, erf, -6, 6, 13, false, 0x1.2p-21, 0, {0, -0.0f, 1, -1, NAN}},
    {"sigmoid_back",
     ct_lower_sigmoid_back,
     sigmoid_back,
     0,
     1,
     3,
     true,
     0x1p-24,
     0,
     {0, -0.0f, NAN, NAN, NAN}},
    {"tanh_back", ct_lower_tanh_back, tanh_back, -1, 1, 3, true, 0x1p-23, 0, {1, 1, NAN, NAN, NAN}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- Programs ---- */

static struct ct_ref reg(struct ct_lower *l, uint32_t tensor) {
  return ct_tile_of(l, tensor, 0, 0);
}

static void record_tile(struct ct_lower *l, const struct function *f, const uint32_t *regs) {
  f->record(l, &(struct ct_sequence){.y = reg(l, regs[R_Y]),
                                     .x = reg(l, regs[R_X]),
                                     .g = reg(l, regs[R_G]),
                                     .t = reg(l, regs[R_T]),
                                     .u = reg(l, regs[R_U]),
                                     .v = reg(l, regs[R_V])});
}

/* All tiles, one after the other. */
static struct ct_codes program(const struct function *f) {
  static const char *const names[REGS] = {"x", "g", "y", "t", "u", "v"};
  struct ct_lower *l = ct_lower_start(AREAS, false);
  uint32_t dram[AREAS], spm[AREAS], regs[REGS];
  struct ct_codes codes;
  char why[256] = "";
  assert_non_null(l);
  for (unsigned i = 0; i < AREAS; ++i) {
    dram[i] = ct_dram_tensor(l, names[i], i + 1, 0, ct_grid(TILES, 1, CT_F32_TILE_UNITS));
    spm[i] = ct_spm_tensor(l, names[i], ct_grid(TILES, 1, CT_F32_TILE_UNITS));
  }
  for (unsigned i = 0; i < REGS; ++i)
    regs[i] = ct_reg_tensor(l, names[i], i, 1);
  for (unsigned i = 0; i < 2; ++i)
    ct_ld(l, &(struct ct_dma){.dram = ct_all_of(l, dram[i]),
                              .spm = ct_all_of(l, spm[i]),
                              .nb = CT_F32_TILE_UNITS,
                              .n1 = TILES,
                              .d1 = CT_F32_TILE_UNITS,
                              .s1 = CT_F32_TILE_UNITS});
  for (uint32_t t = 0; t < TILES; ++t) {
    for (unsigned i = 0; i < 2; ++i)
      ct_vl(l, &(struct ct_vmove){
                   .spm = ct_tile_of(l, spm[i], t, 0), .reg = reg(l, regs[i]), .rows = CT_TILE});
    record_tile(l, f, regs);
    ct_vs(l, &(struct ct_vmove){
                 .spm = ct_tile_of(l, spm[2], t, 0), .reg = reg(l, regs[R_Y]), .rows = CT_TILE});
  }
  ct_st(l, &(struct ct_dma){.dram = ct_all_of(l, dram[2]),
                            .spm = ct_all_of(l, spm[2]),
                            .nb = CT_F32_TILE_UNITS,
                            .n1 = TILES,
                            .d1 = CT_F32_TILE_UNITS,
                            .s1 = CT_F32_TILE_UNITS});
  if (ct_lower_finish(l, f->name, &codes, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  return codes;
}

static void check_program(const struct function *f, const struct ct_codes *codes) {
  char why[256];
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_racecheck check = {.cmds = codes->job[i].cmd,
                                 .count = codes->job[i].count,
                                 .args = {0, UNITS, 2 * UNITS},
                                 .spm_words = SPM_WORDS,
                                 .dram_units = 3 * UNITS,
                                 .depth = 16,
                                 .spm_holds_data = i > 0};
    if (!ct_racecheck(&check, NULL, why, sizeof why)) fail_msg("%s: %s", f->name, why);
  }
}

/* ---- A device ---- */

struct bed {
  ct_device *dev;
  uint64_t at;
  ct_program *job[4];
  size_t jobs;
};

static void bed_open(struct bed *b, const char *uri, const struct ct_codes *codes) {
  assert_int_equal(ct_open(uri, &b->dev), CT_OK);
  assert_int_equal(ct_mem_alloc(b->dev, (size_t)AREAS * UNITS * 16, &b->at), CT_OK);
  assert_true(codes->count <= 4);
  for (b->jobs = 0; b->jobs < codes->count; ++b->jobs) {
    const struct ct_code *code = &codes->job[b->jobs];
    assert_int_equal(ct_program_load(b->dev, code->cmd, code->count, &b->job[b->jobs]), CT_OK);
  }
}

static void bed_close(struct bed *b) {
  for (size_t i = 0; i < b->jobs; ++i)
    ct_program_free(b->job[i]);
  ct_close(b->dev);
}

static void run(struct bed *b, const float *x, const float *g, float *y) {
  const size_t size = (size_t)UNITS * 16;
  assert_int_equal(ct_mem_write(b->dev, b->at, x, size), CT_OK);
  assert_int_equal(ct_mem_write(b->dev, b->at + size, g, size), CT_OK);
  for (size_t i = 0; i < b->jobs; ++i) {
    struct ct_job job = {.program = b->job[i], .watchdog = 5000000};
    struct ct_event event;
    uint64_t tag;
    for (uint32_t a = 0; a < AREAS; ++a)
      job.args[a] = (uint32_t)(b->at / 16) + a * UNITS;
    assert_int_equal(ct_submit(b->dev, CT_TRAINING, &job, &tag), CT_OK);
    assert_int_equal(ct_wait(b->dev, tag, &event, CT_FOREVER), CT_OK);
    if (event.error) fail_msg("a job ended with code %s", ct_code_text(event.code));
  }
  assert_int_equal(ct_mem_read(b->dev, b->at + 2 * size, y, size), CT_OK);
}

/* ---- Tests ---- */

/* The values of job `job`: all jobs together cover lo..hi evenly. */
static void spread(const struct function *f, unsigned job, float *x, float *g) {
  for (unsigned i = 0; i < VALUES; ++i) {
    const double at = (double)(i * JOBS + job) / ((double)VALUES * JOBS);
    x[i] = (float)(f->lo + (f->hi - f->lo) * at);
    g[i] = f->gradient ? (float)(1 + i % 5) / 4 : 0;
  }
}

static void check_specials(struct bed *b, const struct function *f, float *x, float *g, float *y) {
  static const float special[5] = {0, -0.0f, INFINITY, -INFINITY, NAN};
  spread(f, 0, x, g);
  memcpy(x, special, sizeof special);
  for (unsigned i = 0; i < 5; ++i)
    g[i] = 1;
  run(b, x, g, y);
  for (unsigned i = 0; i < 5; ++i) {
    if (f->gradient && i >= 2) continue;
    if (isnan(f->special[i]) ? isnan(y[i])
                             : y[i] == f->special[i] && !signbit(y[i]) == !signbit(f->special[i]))
      continue;
    fail_msg("%s of %g is %g, not %g", f->name, (double)x[i], (double)y[i], (double)f->special[i]);
  }
}

static void check_accuracy(const struct function *f, float *x, float *g, float *y) {
  struct ct_codes codes = program(f);
  struct bed b;
  double worst = 0, worst_relative = 0, at = 0, at_relative = 0;
  check_program(f, &codes);
  bed_open(&b, "emu:", &codes);
  check_specials(&b, f, x, g, y);
  for (unsigned job = 0; job < JOBS; ++job) {
    spread(f, job, x, g);
    run(&b, x, g, y);
    for (unsigned i = 0; i < VALUES; ++i) {
      const double want = f->want(x[i]) * (f->gradient ? (double)g[i] : 1);
      const double error = fabs((double)y[i] - want), relative = error / fabs(want);
      if (!(error <= worst)) worst = error, at = x[i];
      if (fabs(want) >= 0x1p-126 && !(relative <= worst_relative))
        worst_relative = relative, at_relative = x[i];
    }
  }
  print_message("%-14s at most 2^%.2f at %g; relative 2^%.2f at %g\n", f->name, log2(worst), at,
                log2(worst_relative), at_relative);
  if (f->most > 0) assert_true(worst <= f->most);
  if (f->most_relative > 0) assert_true(worst_relative <= f->most_relative);
  bed_close(&b);
  ct_codes_free(&codes);
}

static float *values(void) {
  float *x = calloc((size_t)4 * VALUES, sizeof *x);
  assert_non_null(x);
  return x;
}

static void test_accuracy(void **state) {
  (void)state;
  float *x = values();
  for (unsigned i = 0; i < FUNCTIONS; ++i)
    check_accuracy(&functions[i], x, x + VALUES, x + 2 * VALUES);
  free(x);
}

/* Values of all kinds, on all cores. */
static void test_simulated(void **state) {
  (void)state;
  static const char *const uris[] = {"sim:stall=10,seed=7", "sim:core=16x8"};
  ct_rng rng = ct_rng_make(1);
  float *x = values(), *g = x + VALUES, *want = x + 2 * VALUES, *got = x + 3 * VALUES;
  for (unsigned i = 0; i < FUNCTIONS; ++i) {
    struct ct_codes codes = program(&functions[i]);
    spread(&functions[i], ct_rng_below(&rng, JOBS), x, g);
    for (unsigned k = 0; k < VALUES; k += 1 + ct_rng_below(&rng, 8)) {
      const uint32_t bits = (uint32_t)ct_rng_u64(&rng);
      memcpy(&x[k], &bits, sizeof bits);
    }
    struct bed emu, sim;
    bed_open(&emu, "emu:", &codes);
    run(&emu, x, g, want);
    bed_close(&emu);
    bed_open(&sim, uris[i % 2], &codes);
    run(&sim, x, g, got);
    bed_close(&sim);
    ct_assert_same(functions[i].name, got, want, VALUES * sizeof *want);
    ct_codes_free(&codes);
  }
  free(x);
}

/* As many commands as the header says. */
static void test_commands(void **state) {
  (void)state;
  for (unsigned i = 0; i < FUNCTIONS; ++i) {
    struct ct_lower *l = ct_lower_start(AREAS, false);
    uint32_t regs[REGS];
    struct ct_code code;
    assert_non_null(l);
    ct_lower_flat(l);
    for (unsigned r = 0; r < REGS; ++r)
      regs[r] = ct_reg_tensor(l, "register", r, 1);
    record_tile(l, &functions[i], regs);
    assert_int_equal(ct_lower_list(l, &code), CT_OK);
    assert_int_equal(code.count, functions[i].commands);
    free(code.cmd);
    ct_lower_drop(l);
  }
}

/* With More where no register is in between; refused where one is. */
static void test_more(void **state) {
  (void)state;
  for (unsigned i = 0; i < 4; ++i) {
    struct ct_lower *l = ct_lower_start(AREAS, false);
    assert_non_null(l);
    const uint32_t x = ct_reg_ring(l, "x", 0, 3), y = ct_reg_ring(l, "y", 4, 3);
    const struct ct_sequence s = {.x = ct_next_n(l, x, 3),
                                  .y = ct_next_n(l, y, 3),
                                  .t = ct_tile_of(l, ct_reg_tensor(l, "t", 8, 1), 0, 0),
                                  .more = 2};
    functions[i].record(l, &s);
    assert_int_equal(ct_lower_error(l), i == 3 ? CT_ERR_INTERNAL : CT_OK);
    ct_lower_drop(l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accuracy),
      cmocka_unit_test(test_simulated),
      cmocka_unit_test(test_commands),
      cmocka_unit_test(test_more),
  };
  return cmocka_run_group_tests_name("sequences", tests, NULL, NULL);
}
