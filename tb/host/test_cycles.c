/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of time against the simulated cores: products, perceptrons, convolutions and small
 * programs take as many cycles as it says, within 3 % and 20 cycles; so is the work of
 * the vector unit. Beats, rows and commands are exact. SHOW=1 prints the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cycles_bed.h"
#include "harness/ct_tb.h"
#include "system/ct_conv.h"

/* ---- Programs ---- */

static void product(struct cycles_bed *b, uint32_t m, uint32_t n, uint32_t k,
                    enum ct_gemm_result result) {
  char why[256], name[64];
  struct ct_code code;
  const struct ct_gemm shape = {
      .m = m, .n = n, .k = k, .pitch = (n + 3) / 4, .spm_words = b->spm_words, .result = result};
  if (ct_prog_gemm(&shape, &code, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  const uint32_t args[CT_NUM_ARGS] = {cycles_part(b, 0), cycles_part(b, 1), cycles_part(b, 2)};
  snprintf(name, sizeof name, "%ux%ux%u %s", m, n, k, result == CT_GEMM_F32 ? "fp32" : "hbfp8");
  cycles_compare(b, name, &(struct ct_codes){&code, 1}, args);
  free(code.cmd);
}

static void products(struct cycles_bed *b) {
  static const uint32_t shape[][3] = {{16, 16, 16},   {16, 32, 32}, {1, 64, 64},   {5, 100, 40},
                                      {64, 64, 64},   {96, 64, 96}, {128, 64, 64}, {32, 256, 64},
                                      {200, 16, 128}, {4, 256, 200}};
  for (size_t i = b->core.lanes == 4; i < sizeof shape / sizeof *shape;
       i += b->core.lanes == 4 ? 2 : 1)
    product(b, shape[i][0], shape[i][1], shape[i][2], i / 2 % 2 ? CT_GEMM_HBFP8 : CT_GEMM_F32);
}

static void inference(struct cycles_bed *b, const struct ct_mlp *net, const char *of,
                      uint32_t rows) {
  char why[256], name[64];
  struct ct_code code;
  uint64_t work = 0;
  const struct ct_infer shape = {
      .net = net, .rows = rows, .spm_words = b->spm_words, .work = &work};
  if (ct_prog_infer(&shape, &code, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  uint32_t args[CT_NUM_ARGS] = {cycles_part(b, 0), cycles_part(b, 1)};
  for (uint32_t i = 0; i < rows; ++i)
    args[CT_INFER_ROW - 1 + i] = cycles_part(b, 2) + i * (net->width[0] + 15) / 16 * 2;
  args[ct_infer_work(rows) - 1] = cycles_part(b, 3);
  snprintf(name, sizeof name, "%s, %u rows", of, rows);
  cycles_compare(b, name, &(struct ct_codes){&code, 1}, args);
  free(code.cmd);
}

static void training(struct cycles_bed *b, const struct ct_mlp *net, const char *of,
                     uint32_t batch) {
  char why[256], name[64];
  struct ct_codes codes;
  uint64_t work;
  const struct ct_train shape = {.net = net, .batch = batch, .spm_words = b->spm_words};
  if (ct_prog_step(&shape, &codes, &work, &(struct ct_why){why, sizeof why})) fail_msg("%s", why);
  uint32_t args[CT_NUM_ARGS] = {0};
  for (unsigned i = 0; i < CT_TRAIN_LOSS; ++i)
    args[i] = cycles_part(b, i);
  args[CT_TRAIN_WORK - 1] = cycles_part(b, CT_TRAIN_LOSS);
  snprintf(name, sizeof name, "train %s, %u, %zu jobs", of, batch, codes.count);
  cycles_compare(b, name, &codes, args);
  ct_codes_free(&codes);
}

static const struct ct_mlp small = {2, {20, 40, 2}}, digits = {3, {64, 128, 64, 10}};

static void perceptrons(struct cycles_bed *b) {
  inference(b, &small, "20-40-2", 1);
  inference(b, &digits, "64-128-64-10", 1);
  inference(b, &digits, "64-128-64-10", 16);
  training(b, &small, "20-40-2", 16);
  training(b, &digits, "64-128-64-10", 32);
}

static void convolutions(struct cycles_bed *b) {
  static const char *const pass_name[] = {"forward", "input", "weight"};
  struct ct_conv_data *data = test_calloc(1, sizeof *data);
  struct ct_gen_prog *prog = test_calloc(1, sizeof *prog);
  ct_rng rng = ct_rng_make(5);
  for (unsigned i = 0; i < ct_conv_layer_count; ++i)
    for (unsigned pass = 0; pass < CT_CONV_PASSES; ++pass) {
      char name[64];
      if ((i + pass) % 2 == (b->core.lanes == 4)) continue; /* the other core has it */
      ct_conv_draw(&ct_conv_layers[i], &rng, true, data);
      ct_conv_program(&ct_conv_layers[i], data, (enum ct_conv_pass)pass, cycles_part(b, 0),
                      cycles_part(b, 1), prog);
      struct ct_code code = {prog->cmds, prog->count};
      snprintf(name, sizeof name, "%s %s", ct_conv_layers[i].name, pass_name[pass]);
      cycles_compare(b, name, &(struct ct_codes){&code, 1}, prog->args);
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

static void alone(struct cycles_bed *b, const char *name, struct ct_gen_prog *p) {
  command(p, CT_OP_END, NULL, 0);
  struct ct_code code = {p->cmds, p->count};
  cycles_compare(b, name, &(struct ct_codes){&code, 1}, p->args);
  p->count = 0;
}

static void moves(struct cycles_bed *b, struct ct_gen_prog *p) {
  for (unsigned op = CT_OP_LD; op <= CT_OP_ST; ++op)
    for (unsigned hdr = 0; hdr < 2; ++hdr)
      for (unsigned n = 1; n <= 64; n *= 8) {
        char name[64];
        const struct value v[] = {{CT_F_DMA_DRAM, cycles_part(b, 1)},
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

static void multiplies(struct cycles_bed *b, struct ct_gen_prog *p) {
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

static void vectors(struct cycles_bed *b, struct ct_gen_prog *p) {
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

static void loops(struct cycles_bed *b, struct ct_gen_prog *p) {
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
static void random_programs(struct cycles_bed *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  ct_rng rng = ct_rng_make(7);
  for (unsigned i = 0; i < 5; ++i) {
    char name[64];
    ct_gen_random(&rng, p, 20 + ct_rng_below(&rng, 200), cycles_part(b, 0), cycles_part(b, 1));
    struct ct_code code = {p->cmds, p->count};
    snprintf(name, sizeof name, "random, %u commands", p->count);
    cycles_compare(b, name, &(struct ct_codes){&code, 1}, p->args);
  }
  test_free(p);
}

static void units(struct cycles_bed *b) {
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
  COMMAND(p, MM, {CT_F_MM_KT, 1}, {CT_F_MM_NT, 1}, {CT_F_MM_ROWS, 1}, {CT_F_MM_WALK, 1});
  assert_int_equal(model(p, &out), CT_ERR_ARG); /* no WPIX, no WTAP */
  COMMAND(p, WPIX, {CT_F_WPIX_W, 1}, {CT_F_WPIX_H, 1});
  COMMAND(p, WTAP, {CT_F_WTAP_KX, 1}, {CT_F_WTAP_CB, 1});
  COMMAND(p, MM, {CT_F_MM_KT, 1}, {CT_F_MM_NT, 1}, {CT_F_MM_ROWS, 1}, {CT_F_MM_WALK, 1});
  const unsigned walks = p->count;
  assert_int_equal(model(p, &out), CT_OK);
  assert_int_equal(ct_cycles(&core, p->cmds, walks + 1, args, &out), CT_ERR_ARG); /* has none */
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

/* The program of a batch: as many rows and answers as there are requests. */
static void test_batches(void **state) {
  (void)state;
  struct ct_code code;
  const uint32_t args[CT_NUM_ARGS] = {0}, tiles = ct_mlp_tile(&digits, digits.layers);
  const struct ct_infer shape = {.net = &digits, .rows = CT_INFER_BATCH, .spm_words = 8192};
  assert_int_equal(ct_prog_infer(&shape, &code, NULL), CT_OK);
  uint64_t before = 0;
  for (uint32_t n = 1; n <= CT_BATCH_MAX; ++n) {
    const struct ct_cycles_core core = {.cols = 16, .lanes = 16, .requests = n};
    struct ct_cycles out;
    assert_int_equal(ct_cycles(&core, code.cmd, code.count, args, &out), CT_OK);
    assert_int_equal(out.beats_written, (uint64_t)n * ((digits.width[digits.layers] + 3) / 4));
    assert_in_range(out.rows, n * tiles, (uint64_t)n * tiles + code.count);
    assert_true(out.total > before);
    before = out.total;
  }
  free(code.cmd);
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

static void all(const char *uri) {
  struct cycles_bed b;
  cycles_open(&b, uri, CT_TRAINING, 0, 0);
  units(&b);
  products(&b);
  perceptrons(&b);
  convolutions(&b);
  random_programs(&b);
  cycles_close(&b);
}

static void test_large_core(void **state) {
  (void)state;
  all("sim:");
}

static void test_small_core(void **state) {
  (void)state;
  all("sim:core=16x8");
}

static void test_slow_memory(void **state) {
  (void)state;
  struct cycles_bed b;
  cycles_open(&b, "sim:latency=200,bandwidth=4", CT_INFERENCE, 200, 4);
  products(&b);
  cycles_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_programs), cmocka_unit_test(test_batches),
      cmocka_unit_test(test_bound),        cmocka_unit_test(test_large_core),
      cmocka_unit_test(test_small_core),   cmocka_unit_test(test_slow_memory),
  };
  return cmocka_run_group_tests_name("cycles", tests, NULL, NULL);
}
