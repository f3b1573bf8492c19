/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time against the simulated cores: products, perceptrons, convolutions and small
 * programs take as many cycles as it says, within 3 % and 20 cycles; so is the work of
 * the vector unit. Beats, rows and commands are exact. SHOW=1 prints the table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_cycles.h"
#include "ct_device.h"
#include "ct_prog.h"
#include "harness/ct_tb.h"
#include "system/ct_conv.h"

/* Percent, and cycles more. */
enum { TOLERANCE = 3, SLACK = 20 };
/* Device memory: of a test, of one of the things in it. */
enum { REGION = 48 << 20, PART = 4 << 20 };

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

/* A job that does nothing. Behind it the device does not guess that a program comes again, which a
 * test's one might, at the address that the last one had. */
static void run_nothing(struct bed *b) {
  struct ct_cmd end = {{0}};
  uint8_t bytes[CT_CMD_BYTES];
  CT_PUT(&end, ALL_OP, CT_OP_END);
  ct_cmd_to_bytes(&end, bytes);
  struct ct_job job = {0};
  ct_program *program;
  assert_int_equal(ct_program_load(b->dev, bytes, 1, &program), CT_OK);
  job.program = program;
  assert_int_equal(ct_submit(b->dev, CT_TRAINING, &job, NULL), CT_OK);
  struct ct_event e;
  assert_int_equal(ct_reap(b->dev, &e, CT_FOREVER), CT_OK);
  ct_program_free(program);
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
  run_nothing(b);
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

static bool near(uint64_t want, uint64_t got) {
  const uint64_t off = want > got ? want - got : got - want;
  return off * 100 <= want * TOLERANCE + SLACK * 100;
}

/* What the model says of the units is what their counters say: of the array, where tiles with few
 * rows wait for weights, no less; of VL, which waits for the scratchpad, no more. */
static bool same_work(const struct ct_cycles *want, const struct seen *got) {
  bool same = want->beats_read == got->busy[CT_UNIT_READ] &&
              want->beats_written == got->busy[CT_UNIT_WRITE] && want->rows == got->rows &&
              want->commands == got->commands && want->busy[CT_UNIT_MXU] >= got->busy[CT_UNIT_MXU];
  same &= want->busy[CT_UNIT_VL] <= got->busy[CT_UNIT_VL];
  return same && near(got->busy[CT_UNIT_VA], want->busy[CT_UNIT_VA]) &&
         near(got->busy[CT_UNIT_VS], want->busy[CT_UNIT_VS]);
}

static void compare(struct bed *b, const char *name, const struct ct_codes *codes,
                    const uint32_t *args) {
  const struct ct_cycles want = expect(b, codes, args);
  const struct seen got = measure(b, codes, args);
  const double off = 100.0 * ((double)want.total - (double)got.cycles) / (double)got.cycles;
  const bool good = near(got.cycles, want.total) && same_work(&want, &got);
  if (getenv("SHOW"))
    print_message("%-26s %8" PRIu64 " measured %8" PRIu64 " expected %+5d %+6.1f %%  %s\n", name,
                  got.cycles, want.total, (int)(want.total - got.cycles), off,
                  ct_cycles_by_name(ct_cycles_bound(&want)));
  ++b->cases;
  if (good) return;
  ++b->wrong;
  print_message("%s, %s: %" PRIu64 " cycles, not %" PRIu64 "; rows %" PRIu64 ", not %" PRIu64
                "; commands %" PRIu64 ", not %" PRIu64 "\n",
                b->uri, name, got.cycles, want.total, got.rows, want.rows, got.commands,
                want.commands);
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    print_message("  unit %u worked %" PRIu64 " cycles or beats, not %" PRIu64 "\n", u, got.busy[u],
                  want.busy[u]);
}

/* ---- Programs ---- */

static uint32_t part(const struct bed *b, unsigned i) {
  return b->unit + i * (PART / 16);
}

static void product(struct bed *b, uint32_t m, uint32_t n, uint32_t k, enum ct_gemm_result result) {
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
  static const uint32_t shape[][3] = {{16, 16, 16},   {16, 32, 32}, {1, 64, 64},   {5, 100, 40},
                                      {64, 64, 64},   {96, 64, 96}, {128, 64, 64}, {32, 256, 64},
                                      {200, 16, 128}, {4, 256, 200}};
  for (size_t i = b->core.lanes == 4; i < sizeof shape / sizeof *shape;
       i += b->core.lanes == 4 ? 2 : 1)
    product(b, shape[i][0], shape[i][1], shape[i][2], i / 2 % 2 ? CT_GEMM_HBFP8 : CT_GEMM_F32);
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
      if ((i + pass) % 2 == (b->core.lanes == 4)) continue; /* the other core has it */
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

/* ---- One unit at a time ---- */

struct value {
  enum ct_field_id field;
  int64_t value;
};

static void command(struct ct_gen_prog *p, unsigned op, const struct value *v, size_t n) {
  struct ct_cmd *cmd = &p->cmds[p->count++];
  *cmd = (struct ct_cmd){{0}};
  CT_PUT(cmd, ALL_OP, op);
  for (size_t i = 0; i < n; ++i)
    assert_true(ct_cmd_set(cmd, v[i].field, v[i].value));
}
#define COMMAND(p, op, ...)                                   \
  command(p, CT_OP_##op, (const struct value[]){__VA_ARGS__}, \
          sizeof((const struct value[]){__VA_ARGS__}) / sizeof(struct value))

static void alone(struct bed *b, const char *name, struct ct_gen_prog *p) {
  command(p, CT_OP_END, NULL, 0);
  struct ct_code code = {p->cmds, p->count};
  compare(b, name, &(struct ct_codes){&code, 1}, p->args);
  p->count = 0;
}

static void moves(struct bed *b, struct ct_gen_prog *p) {
  for (unsigned op = CT_OP_LD; op <= CT_OP_ST; ++op)
    for (unsigned hdr = 0; hdr < 2; ++hdr)
      for (unsigned n = 1; n <= 64; n *= 8) {
        char name[64];
        const struct value v[] = {{CT_F_DMA_DRAM, part(b, 1)},
                                  {CT_F_DMA_HDR, hdr},
                                  {CT_F_DMA_NB, 16},
                                  {CT_F_DMA_S0, 1},
                                  {CT_F_DMA_N1, n},
                                  {CT_F_DMA_N2, 2},
                                  {CT_F_DMA_D1, 16 + hdr},
                                  {CT_F_DMA_S1, 16},
                                  {CT_F_DMA_D2, 5000}};
        command(p, op, v, sizeof v / sizeof *v);
        snprintf(name, sizeof name, "%s of 2 x %u %s", op == CT_OP_LD ? "LD" : "ST", n,
                 hdr ? "records" : "runs");
        alone(b, name, p);
      }
}

static void multiplies(struct bed *b, struct ct_gen_prog *p) {
  static const unsigned rows[] = {1, 16, 40, 128};
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned trans = 0; trans < 4; ++trans) {
      char name[64];
      COMMAND(p, MM, {CT_F_MM_KT, 20}, {CT_F_MM_NT, 1}, {CT_F_MM_ROWS, rows[i]}, {CT_F_MM_AM, 16},
              {CT_F_MM_AK, 16}, {CT_F_MM_BK, 16}, {CT_F_MM_A_TRANS, trans & 1},
              {CT_F_MM_B_TRANS, trans >> 1});
      snprintf(name, sizeof name, "MM of %u rows%s%s", rows[i], trans & 1 ? ", A turned" : "",
               trans & 2 ? ", B turned" : "");
      alone(b, name, p);
    }
}

static void vectors(struct bed *b, struct ct_gen_prog *p) {
  for (unsigned mode = 0; mode < 3; ++mode)
    for (unsigned rows = 1; rows <= 16; rows += 15) {
      char name[64];
      for (unsigned i = 0; i < 10; ++i)
        COMMAND(p, VL, {CT_F_VL_MODE, mode}, {CT_F_VL_ROW_STRIDE, 4}, {CT_F_VL_ROWS, rows});
      snprintf(name, sizeof name, "VL, mode %u, %u rows", mode, rows);
      alone(b, name, p);
      for (unsigned i = 0; i < 10; ++i)
        COMMAND(p, VS, {CT_F_VS_MODE, mode}, {CT_F_VS_ROW_STRIDE, 4}, {CT_F_VS_ROWS, rows},
                {CT_F_VS_MORE, i % 2});
      snprintf(name, sizeof name, "VS, mode %u, %u rows", mode, rows);
      alone(b, name, p);
    }
  static const char *const kind[] = {"copy", "sum", "by lanes", "exp", "first row"};
  for (unsigned k = 0; k < 5; ++k)
    for (unsigned rows = 1; rows <= 16; rows += 15) {
      char name[64];
      for (unsigned i = 0; i < 10; ++i)
        COMMAND(p, VA, {CT_F_VA_A_SRC, k == 0},
                {CT_F_VA_C_SRC, k == 0   ? 0
                                : k == 4 ? 2
                                         : 1},
                {CT_F_VA_TQ, 1}, {CT_F_VA_LANE_XOR, k == 2}, {CT_F_VA_FUNC, k == 3 ? 8 : 0},
                {CT_F_VA_ROWS, rows}, {CT_F_VA_COLS, 16});
      snprintf(name, sizeof name, "VA, %s, %u rows", kind[k], rows);
      alone(b, name, p);
    }
}

static void loops(struct bed *b, struct ct_gen_prog *p) {
  COMMAND(p, LOOP, {CT_F_CTL_COUNT, 40});
  COMMAND(p, ADDI, {CT_F_ADDI_RD0, 1}, {CT_F_ADDI_RS0, 1}, {CT_F_ADDI_IMM0, 1}, {CT_F_ADDI_RD1, 2},
          {CT_F_ADDI_RS1, 1}, {CT_F_ADDI_IMM1, 1});
  COMMAND(p, LOOP, {CT_F_CTL_COUNT, 3});
  command(p, CT_OP_NOP, NULL, 0);
  command(p, CT_OP_ENDL, NULL, 0);
  command(p, CT_OP_ENDL, NULL, 0);
  alone(b, "loops", p);
  alone(b, "nothing", p);
  for (unsigned i = 0; i < 500; ++i)
    command(p, CT_OP_NOP, NULL, 0);
  alone(b, "500 NOPs", p);
}

/* Programs of all kinds of commands, steps and semaphores. */
static void random_programs(struct bed *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  ct_rng rng = ct_rng_make(7);
  for (unsigned i = 0; i < 5; ++i) {
    char name[64];
    ct_gen_random(&rng, p, 20 + ct_rng_below(&rng, 200), part(b, 0), part(b, 1));
    struct ct_code code = {p->cmds, p->count};
    snprintf(name, sizeof name, "random, %u commands", p->count);
    compare(b, name, &(struct ct_codes){&code, 1}, p->args);
  }
  test_free(p);
}

static void units(struct bed *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  moves(b, p);
  multiplies(b, p);
  vectors(b, p);
  loops(b, p);
  test_free(p);
}

/* ---- Programs that do not end, or not well ---- */

static int model(struct ct_gen_prog *p, struct ct_cycles *out) {
  const struct ct_cycles_core core = {.cols = 16, .lanes = 16, .walks = true};
  const uint32_t args[CT_NUM_ARGS] = {0};
  command(p, CT_OP_END, NULL, 0);
  const int err = ct_cycles(&core, p->cmds, p->count, args, out);
  p->count = 0;
  return err;
}

static void move(struct ct_gen_prog *p, uint32_t n1, uint32_t n2, unsigned sig) {
  COMMAND(p, LD, {CT_F_DMA_NB, 1}, {CT_F_DMA_S0, 1}, {CT_F_DMA_N1, n1}, {CT_F_DMA_N2, n2},
          {CT_F_ALL_SIG0, sig});
}

static void test_bad_programs(void **state) {
  (void)state;
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  struct ct_cycles out;
  const uint32_t args[CT_NUM_ARGS] = {0};
  struct ct_cycles_core core = {.cols = 16, .lanes = 16};
  assert_int_equal(ct_cycles(&core, p->cmds, 0, args, &out), CT_ERR_ARG); /* no END */
  COMMAND(p, VL, {CT_F_VL_ROWS, 1}, {CT_F_ALL_WAIT0, CT_SEM(3)});
  assert_int_equal(model(p, &out), CT_ERR_ARG); /* waits for nobody */
  COMMAND(p, VL, {CT_F_VL_ROWS, 0});
  assert_int_equal(model(p, &out), CT_ERR_ARG); /* illegal */
  COMMAND(p, LD, {CT_F_DMA_NB, 1}, {CT_F_DMA_N1, 1}, {CT_F_DMA_N2, 1}, {CT_F_DMA_GATHER, 1});
  assert_int_equal(model(p, &out), CT_ERR_ARG); /* not a batch */
  command(p, CT_OP_ENDL, NULL, 0);
  assert_int_equal(model(p, &out), CT_ERR_ARG); /* no LOOP */
  move(p, 1, 255, CT_SEM(0));
  assert_int_equal(model(p, &out), CT_OK);
  move(p, 1, 256, CT_SEM(0));
  assert_int_equal(model(p, &out), CT_ERR_ARG); /* a semaphore overflows */
  COMMAND(p, LOOP, {CT_F_CTL_COUNT, UINT32_MAX});
  command(p, CT_OP_NOP, NULL, 0);
  command(p, CT_OP_ENDL, NULL, 0);
  assert_int_equal(model(p, &out), CT_ERR_NO_SPACE);
  for (unsigned i = 0; i < 5; ++i)
    move(p, 4095, 4095, 0);
  assert_int_equal(model(p, &out), CT_ERR_NO_SPACE);
  core.cols = 12;
  assert_int_equal(ct_cycles(&core, p->cmds, 1, args, &out), CT_ERR_ARG);
  test_free(p);
}

/* What bounds a job is what works most of the time. */
static void test_bound(void **state) {
  (void)state;
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  struct ct_cycles out;
  move(p, 1, 1, 0);
  assert_int_equal(model(p, &out), CT_OK);
  assert_int_equal(ct_cycles_bound(&out), CT_BY_LATENCY);
  COMMAND(p, LD, {CT_F_DMA_NB, 256}, {CT_F_DMA_S0, 1}, {CT_F_DMA_N1, 10}, {CT_F_DMA_N2, 1});
  assert_int_equal(model(p, &out), CT_OK);
  assert_int_equal(ct_cycles_bound(&out), CT_BY_MEMORY);
  COMMAND(p, MM, {CT_F_MM_KT, 100}, {CT_F_MM_NT, 1}, {CT_F_MM_ROWS, 128});
  assert_int_equal(model(p, &out), CT_OK);
  assert_int_equal(ct_cycles_bound(&out), CT_BY_ARRAY);
  for (unsigned i = 0; i < 20; ++i)
    COMMAND(p, VS, {CT_F_VS_ROWS, 16}, {CT_F_VS_MORE, 3});
  assert_int_equal(model(p, &out), CT_OK);
  assert_int_equal(ct_cycles_bound(&out), CT_BY_VECTOR);
  test_free(p);
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
  assert_int_equal(ct_reg_read(b->dev, CT_REG_TRAIN_CAP, &b->core.reads), CT_OK);
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
  units(&b);
  products(&b);
  perceptrons(&b);
  convolutions(&b);
  random_programs(&b);
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
      cmocka_unit_test(test_bad_programs), cmocka_unit_test(test_bound),
      cmocka_unit_test(test_large_core),   cmocka_unit_test(test_small_core),
      cmocka_unit_test(test_slow_memory),
  };
  return cmocka_run_group_tests_name("cycles", tests, NULL, NULL);
}
