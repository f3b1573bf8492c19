/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products: the programs are race-free for all kinds of shapes and windows, and the emulator's
 * results equal straightforward C over the numeric contract, bit by bit.
 */
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_queue.h"
#include "ct_num.h"
#include "ct_gemm.h"
#include "ct_racecheck.h"
#include "harness/ct_tb.h"

static void check_result_program(uint32_t m, uint32_t n, uint32_t k, uint32_t window,
                                 unsigned depth, enum ct_gemm_result result) {
  char why[256];
  const struct ct_why w = {why, sizeof why};
  const struct ct_gemm shape = {
      .m = m, .n = n, .k = k, .pitch = (n + 3) / 4, .spm_words = window, .result = result};
  const uint32_t units = result == CT_GEMM_HBFP8 ? ct_tiles(m) * ct_tiles(n) * 17 : m * shape.pitch;
  struct ct_code code;
  if (ct_prog_gemm(&shape, &code, &w)) fail_msg("%u x %u x %u: %s", m, n, k, why);
  const uint32_t a = 0, b = ct_tiles(m) * ct_tiles(k) * 17, c = b + ct_tiles(n) * ct_tiles(k) * 17;
  struct ct_racecheck_stats stats;
  const struct ct_racecheck check = {.cmds = code.cmd,
                                     .count = code.count,
                                     .args = {a, b, c},
                                     .spm_words = window,
                                     .dram_units = c + units,
                                     .depth = depth,
                                     .eager = (int)(m + n + k + window) % 7};
  if (!ct_racecheck(&check, &stats, why, sizeof why))
    fail_msg("%u x %u x %u, window %u, depth %u: %s", m, n, k, window, depth, why);
  assert_int_equal(stats.st_beats, units);
  if (getenv("CT_VERBOSE"))
    print_message(
        "%u x %u x %u, window %u: %zu commands, %llu dispatched, %llu beats in, %llu rows\n", m, n,
        k, window, code.count, (unsigned long long)stats.dispatched,
        (unsigned long long)stats.ld_beats, (unsigned long long)stats.rows);
  free(code.cmd);
}

static void check_program(uint32_t m, uint32_t n, uint32_t k, uint32_t window, unsigned depth) {
  check_result_program(m, n, k, window, depth, CT_GEMM_F32);
  check_result_program(m, n, k, window, depth, CT_GEMM_HBFP8);
}

static void test_programs_are_race_free(void **state) {
  (void)state;
  static const uint32_t shape[][3] = {
      {1, 1, 1},       {16, 16, 16},    {17, 33, 5},      {64, 64, 64},    {1, 784, 10},
      {16, 512, 784},  {100, 10, 64},   {128, 128, 128},  {65, 129, 1030}, {50, 70, 20},
      {300, 40, 17},   {40, 300, 17},   {48, 80, 64},     {256, 256, 256}, {80, 112, 48},
      {33, 250, 2100}, {96, 16, 16},    {128, 32, 48},    {129, 48, 16},   {512, 20, 32},
      {272, 272, 16},  {160, 144, 80},  {112, 96, 33},    {64, 10, 256},   {100, 16, 300},
      {129, 130, 32},  {256, 144, 640}, {144, 256, 1000}, {112, 200, 30},  {48, 64, 70},
      {60, 50, 33},    {64, 40, 80},    {64, 256, 512},   {50, 90, 48},    {64, 96, 1344},
      {49, 81, 1360},  {64, 80, 20},    {32, 300, 100},   {48, 200, 1000}, {33, 140, 800},
      {32, 128, 1024}, {64, 160, 320}};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; ++i) {
    check_program(shape[i][0], shape[i][1], shape[i][2], 32768, 16);
    check_program(shape[i][0], shape[i][1], shape[i][2], 4096, 16);
    check_program(shape[i][0], shape[i][1], shape[i][2], 1600, 1);
  }
}

static void test_random_programs_are_race_free(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(1);
  for (int i = 0, draws = ct_tb_draws(150); i < draws; ++i) {
    const uint32_t m = 1 + ct_rng_below(&rng, 800), n = 1 + ct_rng_below(&rng, 800);
    const uint32_t k = 1 + ct_rng_below(&rng, 700);
    check_program(m, n, k, 1400 + ct_rng_below(&rng, 6000), 1 + ct_rng_below(&rng, 16));
  }
  for (int i = 0; i < 100; ++i) { /* operands that fit */
    const uint32_t m = 1 + ct_rng_below(&rng, 144), n = 1 + ct_rng_below(&rng, 300);
    const uint32_t k = 1 + ct_rng_below(&rng, ct_rng_below(&rng, 2) ? 200 : 1400);
    check_program(m, n, k, 32768, 1 + ct_rng_below(&rng, 16));
  }
}

/* Operands that fit the scratchpad cross the memory port once, and short programs do not keep the
 * first tiles waiting. */
static void test_nothing_is_read_twice(void **state) {
  (void)state;
  static const uint32_t shape[][3] = {{64, 64, 64},    {128, 128, 128}, {256, 256, 256},
                                      {512, 512, 512}, {1, 512, 512},   {64, 512, 784},
                                      {64, 256, 512},  {64, 10, 256},   {130, 100, 70}};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; ++i) {
    const uint32_t m = shape[i][0], n = shape[i][1], k = shape[i][2];
    const struct ct_gemm g = {.m = m, .n = n, .k = k, .spm_words = 32768, .result = CT_GEMM_HBFP8};
    struct ct_code code;
    assert_int_equal(ct_prog_gemm(&g, &code, NULL), CT_OK);
    assert_true(code.count <= 150);
    uint64_t tiles = 0;
    for (size_t j = 0; j < code.count; ++j) /* loads of these shapes are in no loop, or in one */
      if (CT_GET(&code.cmd[j], ALL_OP) == CT_OP_LD)
        tiles += CT_GET(&code.cmd[j], DMA_N1) * CT_GET(&code.cmd[j], DMA_N2);
    assert_true(tiles <= ct_tiles(k) * (ct_tiles(m) + ct_tiles(n)));
    free(code.cmd);
  }
}

static void test_large_products_fit_a_program(void **state) {
  (void)state;
  const uint32_t shape[][3] = {
      {512, 512, 512}, {1000, 1000, 1000}, {2048, 2048, 64}, {64, 64, 8192}};
  for (size_t i = 0; i < 4; ++i)
    check_program(shape[i][0], shape[i][1], shape[i][2], 32768, 16);
}

/* ---- All shapes ---- */

/* Any size up to `most`, small ones as often as large ones. */
static uint32_t draw_size(ct_rng *rng, uint32_t most) {
  uint32_t bits = 1;
  while (bits < 32 && most >> bits)
    ++bits;
  const uint32_t size = 1 + ct_rng_below(rng, UINT32_C(1) << ct_rng_below(rng, bits));
  return size < most ? size : most;
}

/* Windows from the smallest to the largest that a core can be built with. */
static uint32_t draw_window(ct_rng *rng) {
  const uint32_t words = (uint32_t)CT_GEMM_WINDOW << ct_rng_below(rng, 13);
  return words + (ct_rng_below(rng, 2) ? ct_rng_below(rng, words) : 0);
}

static uint64_t units_of_c(const struct ct_gemm *s) {
  if (s->result == CT_GEMM_F32) return (uint64_t)s->m * s->pitch;
  return (uint64_t)ct_tiles(s->m) * ct_tiles(s->n) * CT_RECORD_UNITS;
}

static uint64_t units_of_operand(uint32_t rows, uint32_t k) {
  return (uint64_t)ct_tiles(rows) * ct_tiles(k) * CT_RECORD_UNITS;
}

static uint64_t units_of(const struct ct_gemm *s) {
  return units_of_operand(s->m, s->k) + units_of_operand(s->n, s->k) + units_of_c(s);
}

static struct ct_gemm draw_shape(ct_rng *rng, uint32_t most) {
  const uint32_t n = draw_size(rng, most);
  struct ct_gemm s = (struct ct_gemm){.m = draw_size(rng, most),
                                      .n = n,
                                      .k = draw_size(rng, most),
                                      .pitch = (n + 3) / 4,
                                      .spm_words = draw_window(rng),
                                      .result = ct_rng_below(rng, 2) ? CT_GEMM_HBFP8 : CT_GEMM_F32};
  if (s.result == CT_GEMM_HBFP8 && s.spm_words < CT_GEMM_WINDOW_HBFP8)
    s.spm_words = CT_GEMM_WINDOW_HBFP8;
  return s;
}

/* What building may cost: commands written down and comparisons. The largest that 200,000 drawn
 * shapes took is 1,203,172. */
enum { MOST_WORK = 2000000, MOST_MS = 1000 };

static void build_jobs(struct ct_gemm *s, struct ct_gemm_jobs *jobs) {
  char why[256] = "";
  const struct ct_why w = {why, sizeof why};
  uint64_t work = 0;
  s->work = &work;
  const uint64_t from = ct_tb_ms();
  const int err = ct_prog_gemm_jobs(s, jobs, &w);
  s->work = NULL;
  if (err) fail_msg("%u x %u x %u, window %u: %s", s->m, s->n, s->k, s->spm_words, why);
  if (work > MOST_WORK)
    fail_msg("%u x %u x %u, window %u: %llu to build", s->m, s->n, s->k, s->spm_words,
             (unsigned long long)work);
  assert_true(ct_tb_ms() - from < MOST_MS);
}

/* Every shape whose data fit the largest device memory, 2^32 units, has programs, which take no
 * time to make. */
static void test_nothing_is_refused(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(4);
  struct ct_gemm_jobs jobs;
  unsigned several = 0;
  for (int i = 0; i < 2000; ++i) {
    struct ct_gemm s = draw_shape(&rng, 1 << 24);
    while (units_of(&s) >> 32)
      s = draw_shape(&rng, 1 << 24);
    build_jobs(&s, &jobs);
    several += ct_gemm_jobs_count(&s, &jobs) > 1;
    ct_gemm_jobs_free(&jobs);
  }
  assert_true(several > 0);
  struct ct_gemm long_one = {.m = 2221, .n = 2597, .k = 1264, .pitch = 650, .spm_words = 4096};
  build_jobs(&long_one, &jobs);
  ct_gemm_jobs_free(&jobs);
}

/* Each job in its place; together they store all of C, and nothing twice. */
static void check_jobs(struct ct_gemm *s, unsigned depth, int eager) {
  char why[256] = "";
  const uint32_t b = (uint32_t)units_of_operand(s->m, s->k);
  const uint32_t c = b + (uint32_t)units_of_operand(s->n, s->k);
  struct ct_gemm_jobs jobs;
  uint64_t stored = 0;
  build_jobs(s, &jobs);
  for (uint64_t i = 0; i < ct_gemm_jobs_count(s, &jobs); ++i) {
    const struct ct_gemm_job job = ct_gemm_job_at(s, &jobs, i);
    struct ct_racecheck_stats stats;
    const struct ct_racecheck check = {
        .cmds = jobs.code[job.program].cmd,
        .count = jobs.code[job.program].count,
        .args = {(uint32_t)job.a, b + (uint32_t)job.b, c + (uint32_t)job.c},
        .spm_words = s->spm_words,
        .dram_units = c + (uint32_t)units_of_c(s),
        .depth = depth,
        .eager = eager};
    if (!ct_racecheck(&check, &stats, why, sizeof why))
      fail_msg("%u x %u x %u, window %u, depth %u, job %u: %s", s->m, s->n, s->k, s->spm_words,
               depth, (unsigned)i, why);
    stored += stats.st_beats;
  }
  /* In the smallest windows each job stores a unit twice: see ct_gemm_least.c. */
  const bool least = s->result == CT_GEMM_F32 && s->spm_words < CT_GEMM_ROOMY;
  assert_true(stored == units_of_c(s) + (least ? ct_gemm_jobs_count(s, &jobs) : 0));
  ct_gemm_jobs_free(&jobs);
}

/* Shapes that take several jobs. */
static const uint32_t several_jobs[][4] = {
    {323, 250, 106, 236}, {230, 375, 129, 192}, {366, 209, 216, 318}, {427, 245, 213, 256}};
enum { SEVERAL = sizeof several_jobs / sizeof *several_jobs };

static struct ct_gemm shape_of(const uint32_t *size) {
  return (struct ct_gemm){
      .m = size[0], .n = size[1], .k = size[2], .pitch = (size[1] + 3) / 4, .spm_words = size[3]};
}

static void test_drawn_jobs_are_race_free(void **state) {
  (void)state;
  enum { MOST_STEPS = 2500 }; /* products of tiles: the checker takes them one by one */
  ct_rng rng = ct_rng_make(5);
  for (int i = 0, draws = ct_tb_draws(300); i < draws; ++i) {
    struct ct_gemm s = draw_shape(&rng, 1 << 14);
    while ((uint64_t)ct_tiles(s.m) * ct_tiles(s.n) * ct_tiles(s.k) > MOST_STEPS)
      s = draw_shape(&rng, 1 << 14);
    check_jobs(&s, 16, (int)ct_rng_below(&rng, 7));
  }
  for (size_t i = 0; i < SEVERAL; ++i) {
    struct ct_gemm s = shape_of(several_jobs[i]);
    check_jobs(&s, 16, (int)ct_rng_below(&rng, 7));
  }
}

/* ---- Results ---- */

static uint32_t bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* C = A * B by the contract, from FP32 and with no code of the library. */
static void reference(size_t m, size_t n, size_t k, const float *a, const float *b, uint32_t *c) {
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      uint32_t acc = 0;
      for (size_t k0 = 0; k0 < k; k0 += 16) {
        uint32_t xa[16] = {0}, xb[16] = {0};
        for (size_t l = 0; l < 16 && k0 + l < k; ++l) {
          xa[l] = bits(a[i * k + k0 + l]);
          xb[l] = bits(b[(k0 + l) * n + j]);
        }
        const uint8_t ea = ct_hbfp8_group_exp(xa, 16), eb = ct_hbfp8_group_exp(xb, 16);
        int32_t s = 0;
        for (size_t l = 0; l < 16; ++l)
          s += ct_hbfp8_quant(xa[l], ea) * ct_hbfp8_quant(xb[l], eb);
        acc = ct_fp_add(acc, ct_fp_term(s, ea, eb));
      }
      c[i * n + j] = acc;
    }
  }
}

static float *random_matrix(ct_rng *rng, size_t count) {
  float *x = malloc(count * sizeof *x);
  for (size_t i = 0; i < count; ++i)
    x[i] =
        ((float)ct_rng_below(rng, 20001) - 10000.0f) * (ct_rng_below(rng, 9) == 0 ? 16.0f : 1e-3f);
  return x;
}

static void check_result(const char *uri, enum ct_queue queue, uint32_t m, uint32_t n, uint32_t k,
                         ct_rng *rng) {
  ct_device *dev;
  struct ct_timing timing;
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  float *a = random_matrix(rng, (size_t)m * k), *b = random_matrix(rng, (size_t)k * n);
  float *c = malloc((size_t)m * n * sizeof *c);
  uint32_t *want = malloc((size_t)m * n * sizeof *want);
  if (ct_rng_below(rng, 4) == 0) a[ct_rng_below(rng, m * k)] = 1.0f / 0.0f;
  reference(m, n, k, a, b, want);
  const int err = ct_matmul(dev, queue, m, n, k, a, b, c, &timing);
  if (err) fail_msg("%u x %u x %u: %s", m, n, k, ct_last_error(dev));
  assert_memory_equal(c, want, (size_t)m * n * sizeof *c);
  assert_int_equal(timing.macs, (uint64_t)m * n * k);
  assert_true(timing.cycles == CT_NO_CYCLE);
  free(a);
  free(b);
  free(c);
  free(want);
  ct_close(dev);
}

/* The words of a reference in HBFP8 tiles: 16 exponents, then 16 rows of 16 mantissas. */
static uint8_t *reference_records(size_t m, size_t n, const uint32_t *c) {
  const size_t mt = (m + 15) / 16, nt = (n + 15) / 16;
  uint8_t *out = calloc(mt * nt, 272);
  for (size_t i = 0; i < m; ++i) {
    for (size_t t = 0; t < nt; ++t) {
      uint32_t x[16] = {0};
      for (size_t j = 0; j < 16 && 16 * t + j < n; ++j)
        x[j] = c[i * n + 16 * t + j];
      uint8_t *tile = out + (i / 16 * nt + t) * 272;
      tile[i % 16] = ct_hbfp8_group_exp(x, 16);
      for (size_t j = 0; j < 16; ++j)
        tile[16 + 16 * (i % 16) + j] = (uint8_t)ct_hbfp8_quant(x[j], tile[i % 16]);
    }
  }
  return out;
}

static void put_packed(ct_device *dev, const float *x, size_t rows, size_t cols, bool transposed,
                       uint64_t *at) {
  const size_t size = ct_pack_size(rows, cols);
  void *packed = malloc(size);
  if (transposed)
    ct_pack_transposed(x, rows, cols, rows, CT_ROW, packed);
  else
    ct_pack(x, rows, cols, cols, CT_ROW, packed);
  assert_int_equal(ct_mem_alloc(dev, size, at), CT_OK);
  assert_int_equal(ct_mem_write(dev, *at, packed, size), CT_OK);
  free(packed);
}

/* C in HBFP8 at *at, as jobs. */
static void run_hbfp8(ct_device *dev, enum ct_queue queue, const struct ct_gemm *shape, uint64_t a,
                      uint64_t b, uint64_t *at) {
  struct ct_gemm_jobs jobs;
  ct_program *program[CT_GEMM_PROGRAMS] = {NULL};
  struct ct_event r;
  assert_int_equal(ct_mem_alloc(dev, ct_pack_size(shape->m, shape->n), at), CT_OK);
  assert_int_equal(ct_prog_gemm_jobs(shape, &jobs, NULL), CT_OK);
  for (unsigned i = 0; i < CT_GEMM_PROGRAMS; ++i)
    if (jobs.code[i].cmd) assert_int_equal(ct_code_load(dev, &jobs.code[i], &program[i]), CT_OK);
  for (uint64_t i = 0; i < ct_gemm_jobs_count(shape, &jobs); ++i) {
    const struct ct_gemm_job part = ct_gemm_job_at(shape, &jobs, i);
    const struct ct_job job = {.program = program[part.program],
                               .args = {(uint32_t)(a / 16 + part.a), (uint32_t)(b / 16 + part.b),
                                        (uint32_t)(*at / 16 + part.c)}};
    assert_int_equal(ct_submit(dev, queue, &job, NULL), CT_OK);
    assert_int_equal(ct_reap(dev, &r, CT_FOREVER), CT_OK);
    assert_int_equal(r.error, CT_OK);
  }
  for (unsigned i = 0; i < CT_GEMM_PROGRAMS; ++i)
    ct_program_free(program[i]);
}

static void check_hbfp8(const char *uri, enum ct_queue queue, uint32_t m, uint32_t n, uint32_t k,
                        ct_rng *rng) {
  ct_device *dev;
  uint64_t at[3];
  assert_int_equal(ct_open(uri, &dev), CT_OK);
  const struct ct_gemm shape = {
      .m = m, .n = n, .k = k, .spm_words = ct_window_words(dev), .result = CT_GEMM_HBFP8};
  const size_t size = ct_pack_size(m, n);
  float *a = random_matrix(rng, (size_t)m * k), *b = random_matrix(rng, (size_t)k * n);
  uint32_t *c = malloc((size_t)m * n * sizeof *c);
  uint8_t *got = malloc(size);
  if (ct_rng_below(rng, 4) == 0) a[ct_rng_below(rng, m * k)] = 1.0f / 0.0f;
  reference(m, n, k, a, b, c);
  uint8_t *want = reference_records(m, n, c);
  put_packed(dev, a, m, k, false, &at[0]);
  put_packed(dev, b, n, k, true, &at[1]);
  run_hbfp8(dev, queue, &shape, at[0], at[1], &at[2]);
  assert_int_equal(ct_mem_read(dev, at[2], got, size), CT_OK);
  if (memcmp(got, want, size) != 0) fail_msg("%u x %u x %u on %s: another result", m, n, k, uri);
  free(a);
  free(b);
  free(c);
  free(want);
  free(got);
  ct_close(dev);
}

static void test_hbfp8_results_equal_the_contract(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(3);
  check_hbfp8("emu:", CT_INFERENCE, 1, 1, 1, &rng);
  check_hbfp8("emu:", CT_TRAINING, 64, 64, 64, &rng);
  check_hbfp8("emu:", CT_INFERENCE, 128, 128, 32, &rng);
  check_hbfp8("emu:spm=8192,cols=8,lanes=4", CT_INFERENCE, 130, 70, 530, &rng);
  for (int i = 0; i < 10; ++i)
    check_hbfp8(i & 1 ? "emu:spm=4096" : "emu:", i & 2 ? CT_TRAINING : CT_INFERENCE,
                1 + ct_rng_below(&rng, 300), 1 + ct_rng_below(&rng, 100),
                1 + ct_rng_below(&rng, 200), &rng);
}

static void test_results_equal_the_contract(void **state) {
  (void)state;
  ct_rng rng = ct_rng_make(2);
  check_result("emu:", CT_INFERENCE, 1, 1, 1, &rng);
  check_result("emu:", CT_TRAINING, 64, 64, 64, &rng);
  check_result("emu:spm=8192,cols=8,lanes=4", CT_INFERENCE, 130, 70, 530, &rng);
  check_result("emu:spm=512", CT_TRAINING, 427, 245, 213, &rng); /* several jobs */
  check_result("emu:spm=128", CT_TRAINING, 427, 245, 213, &rng); /* tile by tile */
  check_result("emu:spm=256", CT_INFERENCE, 31, 70, 1000, &rng);
  for (int i = 0; i < 10; ++i)
    check_result(i & 1 ? "emu:spm=4096" : "emu:", i & 2 ? CT_TRAINING : CT_INFERENCE,
                 1 + ct_rng_below(&rng, 150), 1 + ct_rng_below(&rng, 100),
                 1 + ct_rng_below(&rng, 200), &rng);
}

static void test_refusals_say_why(void **state) {
  (void)state;
  char why[256] = "";
  const struct ct_why w = {why, sizeof why};
  struct ct_code code;
  struct ct_gemm shape = {.m = 16, .n = 16, .k = 0, .pitch = 4, .spm_words = 4096};
  assert_int_equal(ct_prog_gemm(&shape, &code, &w), CT_ERR_ARG);
  assert_non_null(strstr(why, "16 x 16 x 0"));
  shape.k = 16;
  shape.pitch = 3;
  assert_int_equal(ct_prog_gemm(&shape, &code, &w), CT_ERR_ARG);
  shape.pitch = 4;
  shape.spm_words = 60;
  assert_int_equal(ct_prog_gemm(&shape, &code, &w), CT_ERR_NO_SPACE);
  assert_non_null(strstr(why, "60"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs_are_race_free),
                                     cmocka_unit_test(test_random_programs_are_race_free),
                                     cmocka_unit_test(test_nothing_is_read_twice),
                                     cmocka_unit_test(test_large_products_fit_a_program),
                                     cmocka_unit_test(test_nothing_is_refused),
                                     cmocka_unit_test(test_drawn_jobs_are_race_free),
                                     cmocka_unit_test(test_hbfp8_results_equal_the_contract),
                                     cmocka_unit_test(test_results_equal_the_contract),
                                     cmocka_unit_test(test_refusals_say_why)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
