/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time against the simulated cores: products, perceptrons, convolutions and small
 * programs take as many cycles as it says, within 10 % (small jobs: within 60 cycles more); beats,
 * rows and commands are exact. SHOW=1 prints the table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cycles.h"
#include "ct_prog.h"
#include "harness/ct_tb.h"
#include "system/ct_conv.h"

enum { TOLERANCE = 10 /* percent */, SLACK = 60, REGION = 48 << 20, PART = 4 << 20 };

struct bed {
  const char *uri;
  ct_device *dev;
  struct ct_cycles_core core;
  uint32_t spm_words, unit; /* where its memory begins */
  unsigned cases, wrong;
};

/* ---- Measured ---- */

static uint64_t count_of(struct bed *b, unsigned counter) {
  uint64_t value[32];
  assert_true(ct_counters(b->dev, CT_TRAINING, value, 32) > (int)counter);
  return value[counter];
}

struct seen {
  uint64_t cycles, busy[CT_UNIT_COUNT], commands, rows;
};

static const unsigned counters[CT_UNIT_COUNT] = {CT_CNT_LD_BEATS, CT_CNT_ST_BEATS, CT_CNT_MXU_BUSY,
                                                 CT_CNT_VL_BUSY,  CT_CNT_VA_BUSY,  CT_CNT_VS_BUSY};

static void count(struct bed *b, struct seen *s, uint64_t sign) {
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    s->busy[u] += sign * count_of(b, counters[u]);
  s->commands += sign * count_of(b, CT_CNT_CMDS);
  s->rows += sign * count_of(b, CT_CNT_MXU_ROWS);
}

/* Jobs in a row, from the first one's start to the last one's end. */
static struct seen measure(struct bed *b, const struct ct_codes *codes, const uint32_t *args) {
  struct seen s = {0};
  ct_program **program = test_calloc(codes->count, sizeof(ct_program *));
  uint8_t *bytes = test_malloc(CT_PROG_MAX * CT_CMD_BYTES);
  for (size_t i = 0; i < codes->count; ++i) {
    for (size_t k = 0; k < codes->job[i].count; ++k)
      ct_cmd_to_bytes(&codes->job[i].cmd[k], bytes + k * CT_CMD_BYTES);
    assert_int_equal(ct_program_load(b->dev, bytes, codes->job[i].count, &program[i]), CT_OK);
  }
  count(b, &s, UINT64_MAX);
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_job job = {.program = program[i]};
    memcpy(job.args, args, CT_NUM_ARGS * sizeof *args);
    assert_int_equal(ct_submit(b->dev, CT_TRAINING, &job, NULL), CT_OK);
  }
  uint64_t start = 0;
  for (size_t i = 0; i < codes->count; ++i) {
    struct ct_event e;
    assert_int_equal(ct_reap(b->dev, &e, CT_FOREVER), CT_OK);
    assert_int_equal(e.code, CT_DEV_OK);
    if (!i) start = e.start;
    s.cycles = e.end - start;
  }
  count(b, &s, 1);
  for (size_t i = 0; i < codes->count; ++i)
    ct_program_free(program[i]);
  test_free(bytes);
  test_free(program);
  return s;
}

/* ---- Expected ---- */

static struct ct_cycles expect(const struct bed *b, const struct ct_codes *codes,
                               const uint32_t *args) {
  struct ct_cycles sum = {0}, one = {0};
  struct ct_cycles_core core = b->core;
  for (size_t i = 0; i < codes->count; ++i) {
    if (i) core.ahead = one.tail ? one.tail : 1;
    const int err = ct_cycles(&core, codes->job[i].cmd, codes->job[i].count, args, &one);
    if (err) fail_msg("job %zu: error %d", i, err);
    sum.total += one.total;
    sum.beats_read += one.beats_read;
    sum.beats_written += one.beats_written;
    sum.rows += one.rows;
    sum.commands += one.commands;
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      sum.busy[u] += one.busy[u];
  }
  return sum;
}

static bool near(uint64_t want, uint64_t got, uint64_t slack) {
  const uint64_t off = want > got ? want - got : got - want;
  return off * 100 <= want * TOLERANCE + slack * 100;
}

static void compare(struct bed *b, const char *name, const struct ct_codes *codes,
                    const uint32_t *args) {
  const struct ct_cycles want = expect(b, codes, args);
  const struct seen got = measure(b, codes, args);
  const double off = 100.0 * ((double)want.total - (double)got.cycles) / (double)got.cycles;
  const bool good = near(got.cycles, want.total, SLACK) && want.beats_read == got.busy[0] &&
                    want.beats_written == got.busy[1] && want.rows == got.rows &&
                    want.commands == got.commands;
  if (getenv("SHOW"))
    print_message("%-26s %8" PRIu64 " measured %8" PRIu64 " expected %+6.1f %%  %s\n", name,
                  got.cycles, want.total, off, ct_cycles_by_name(ct_cycles_bound(&want)));
  ++b->cases;
  if (good) return;
  ++b->wrong;
  print_message("%s, %s: %" PRIu64 " cycles, not %" PRIu64 "; beats %" PRIu64 "/%" PRIu64
                ", not %" PRIu64 "/%" PRIu64 "; rows %" PRIu64 ", not %" PRIu64
                "; commands %" PRIu64 ", not %" PRIu64 "\n",
                b->uri, name, got.cycles, want.total, got.busy[0], got.busy[1], want.beats_read,
                want.beats_written, got.rows, want.rows, got.commands, want.commands);
}

/* ---- Programs ---- */

static uint32_t part(const struct bed *b, unsigned i) {
  return b->unit + i * (PART / 16);
}

static void product(struct bed *b, uint32_t m, uint32_t n, uint32_t k,
                    enum ct_gemm_result result) {
  char why[256], name[64];
  struct ct_code code;
  const struct ct_gemm shape = {
      .m = m, .n = n, .k = k, .pitch = (n + 3) / 4, .spm_words = b->spm_words, .result = result};
  if (ct_prog_gemm(&shape, &code, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  const uint32_t args[CT_NUM_ARGS] = {part(b, 0), part(b, 1), part(b, 2)};
  snprintf(name, sizeof name, "%ux%ux%u %s", m, n, k, result == CT_GEMM_F32 ? "fp32" : "hbfp8");
  compare(b, name, &(struct ct_codes){&code, 1}, args);
  free(code.cmd);
}

static void products(struct bed *b) {
  static const uint32_t shape[][3] = {{16, 16, 16},   {16, 32, 32},  {1, 64, 64},    {5, 100, 40},
                                      {64, 64, 64},   {128, 64, 96}, {128, 128, 128}, {32, 256, 64},
                                      {256, 16, 256}, {4, 256, 256}};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; ++i)
    for (unsigned r = 0; r < 2; ++r)
      product(b, shape[i][0], shape[i][1], shape[i][2], r ? CT_GEMM_HBFP8 : CT_GEMM_F32);
}

static void inference(struct bed *b, const struct ct_mlp *net, const char *of, uint32_t rows) {
  char why[256], name[64];
  struct ct_code code;
  uint64_t work = 0;
  const struct ct_infer shape = {
      .net = net, .rows = rows, .spm_words = b->spm_words, .work = &work};
  if (ct_prog_infer(&shape, &code, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  uint32_t args[CT_NUM_ARGS] = {part(b, 0), part(b, 1)};
  for (uint32_t i = 0; i < rows; ++i)
    args[CT_INFER_ROW - 1 + i] = part(b, 2) + i * (net->width[0] + 15) / 16 * 2;
  args[ct_infer_work(rows) - 1] = part(b, 3);
  snprintf(name, sizeof name, "%s, %u rows", of, rows);
  compare(b, name, &(struct ct_codes){&code, 1}, args);
  free(code.cmd);
}

static void training(struct bed *b, const struct ct_mlp *net, const char *of, uint32_t batch) {
  char why[256], name[64];
  struct ct_codes codes;
  uint64_t work;
  const struct ct_train shape = {.net = net, .batch = batch, .spm_words = b->spm_words};
  if (ct_prog_step(&shape, &codes, &work, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  uint32_t args[CT_NUM_ARGS] = {0};
  for (unsigned i = 0; i < CT_TRAIN_LOSS; ++i)
    args[i] = part(b, i);
  args[CT_TRAIN_WORK - 1] = part(b, CT_TRAIN_LOSS);
  snprintf(name, sizeof name, "train %s, %u, %zu jobs", of, batch, codes.count);
  compare(b, name, &codes, args);
  ct_codes_free(&codes);
}

static const struct ct_mlp small = {2, {20, 40, 2}}, digits = {3, {64, 128, 64, 10}};

static void perceptrons(struct bed *b) {
  inference(b, &small, "20-40-2", 1);
  inference(b, &digits, "64-128-64-10", 1);
  inference(b, &digits, "64-128-64-10", 16);
  training(b, &small, "20-40-2", 16);
  training(b, &digits, "64-128-64-10", 32);
}

static void convolutions(struct bed *b) {
  static const char *const pass_name[] = {"forward", "input", "weight"};
  struct ct_conv_data *data = test_calloc(1, sizeof *data);
  struct ct_gen_prog *prog = test_calloc(1, sizeof *prog);
  ct_rng rng = ct_rng_make(5);
  for (unsigned i = 0; i < ct_conv_layer_count; ++i)
    for (unsigned pass = 0; pass < CT_CONV_PASSES; ++pass) {
      char name[64];
      ct_conv_draw(&ct_conv_layers[i], &rng, true, data);
      ct_conv_program(&ct_conv_layers[i], data, (enum ct_conv_pass)pass, part(b, 0), part(b, 1),
                      prog);
      struct ct_code code = {prog->cmds, prog->count};
      snprintf(name, sizeof name, "%s %s", ct_conv_layers[i].name, pass_name[pass]);
      compare(b, name, &(struct ct_codes){&code, 1}, prog->args);
    }
  test_free(prog);
  test_free(data);
}

/* ---- Cores and memories ---- */

static void open_bed(struct bed *b, const char *uri, uint32_t latency, uint32_t bytes) {
  struct ct_info info;
  uint64_t addr;
  *b = (struct bed){.uri = uri};
  if (ct_open(uri, &b->dev)) fail_msg("%s", ct_last_error(NULL));
  assert_int_equal(ct_info(b->dev, &info), CT_OK);
  assert_int_equal(ct_mem_alloc(b->dev, REGION, &addr), CT_OK);
  b->core = (struct ct_cycles_core){.cols = info.array_cols,
                                    .lanes = info.vpu_lanes,
                                    .walks = info.features & CT_FEATURE_CONVOLUTION,
                                    .latency = latency,
                                    .bytes = bytes};
  b->unit = (uint32_t)(addr / 16);
  b->spm_words = info.spm_words / 2;
}

static void close_bed(struct bed *b) {
  ct_close(b->dev);
  print_message("%s: %u of %u programs as expected\n", b->uri, b->cases - b->wrong, b->cases);
  assert_int_equal(b->wrong, 0);
}

static void all(const char *uri, uint32_t latency, uint32_t bytes) {
  struct bed b;
  open_bed(&b, uri, latency, bytes);
  products(&b);
  perceptrons(&b);
  convolutions(&b);
  close_bed(&b);
}

static void test_large_core(void **state) {
  (void)state;
  all("sim:", 0, 0);
}

static void test_small_core(void **state) {
  (void)state;
  all("sim:core=16x8", 0, 0);
}

static void test_slow_memory(void **state) {
  (void)state;
  struct bed b;
  open_bed(&b, "sim:latency=200,bandwidth=4", 200, 4);
  products(&b);
  close_bed(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_large_core),
      cmocka_unit_test(test_small_core),
      cmocka_unit_test(test_slow_memory),
  };
  return cmocka_run_group_tests_name("cycles", tests, NULL, NULL);
}
