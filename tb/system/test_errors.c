/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way a job can fail, on the core and on the emulator: the code and address that the manual
 * promises, on both. While it fails the other context works: its results must not change.
 * Afterwards the failed context must work as if nothing had happened.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ct_pair.h"

enum { LIMIT = 400000, WATCHDOG = 3000, NO_ADDR = 0 };

/* A pair of devices, the context that fails (the victim) and the one that must not notice. */
struct bench {
  struct ct_pair pair;
  ct_rng rng;
  unsigned victim, other, tag;
  struct ct_gen_prog setup[2], work[2], dump[2];
};

/* ---- Programs ------------------------------------------------------------------------------ */

static struct ct_cmd *add(struct ct_gen_prog *p, unsigned code) {
  assert_true(p->count < CT_PROG_MAX);
  struct ct_cmd *cmd = &p->cmds[p->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static void set(struct ct_cmd *cmd, enum ct_field_id field, int64_t value) {
  assert_true(ct_cmd_set(cmd, field, value));
}

/* Legal commands that do a little, to be spoilt. */
static struct ct_cmd *add_dma(struct ct_gen_prog *p, unsigned code, uint32_t dram, uint32_t spm,
                              uint32_t nb, bool hdr) {
  struct ct_cmd *cmd = add(p, code);
  set(cmd, CT_F_DMA_DRAM, dram);
  set(cmd, CT_F_DMA_SPM, spm);
  set(cmd, CT_F_DMA_NB, nb);
  set(cmd, CT_F_DMA_HDR, hdr);
  set(cmd, CT_F_DMA_S0, 1);
  set(cmd, CT_F_DMA_N1, 1);
  set(cmd, CT_F_DMA_N2, 1);
  return cmd;
}

static struct ct_cmd *add_mm(struct ct_gen_prog *p, uint32_t a, uint32_t b) {
  struct ct_cmd *cmd = add(p, CT_OP_MM);
  set(cmd, CT_F_MM_A, a);
  set(cmd, CT_F_MM_B, b);
  set(cmd, CT_F_MM_KT, 1);
  set(cmd, CT_F_MM_NT, 1);
  set(cmd, CT_F_MM_ROWS, 16);
  return cmd;
}

static struct ct_cmd *add_vl(struct ct_gen_prog *p, uint32_t spm, uint32_t rows, uint32_t stride) {
  struct ct_cmd *cmd = add(p, CT_OP_VL);
  set(cmd, CT_F_VL_SPM, spm);
  set(cmd, CT_F_VL_ROWS, rows);
  set(cmd, CT_F_VL_ROW_STRIDE, stride);
  return cmd;
}

static struct ct_cmd *add_va(struct ct_gen_prog *p) {
  struct ct_cmd *cmd = add(p, CT_OP_VA);
  set(cmd, CT_F_VA_A_SRC, 2);
  set(cmd, CT_F_VA_ROWS, 16);
  set(cmd, CT_F_VA_COLS, 16);
  return cmd;
}

static struct ct_cmd *add_vs(struct ct_gen_prog *p, uint32_t spm, uint32_t rows, uint32_t stride) {
  struct ct_cmd *cmd = add(p, CT_OP_VS);
  set(cmd, CT_F_VS_SPM, spm);
  set(cmd, CT_F_VS_ROWS, rows);
  set(cmd, CT_F_VS_ROW_STRIDE, stride);
  return cmd;
}

/* Waits for ever. */
static void add_hang(struct ct_gen_prog *p) {
  set(add_va(p), CT_F_ALL_WAIT0, CT_SEM(7));
}

/* ---- The bench ------------------------------------------------------------------------------- */

static void open_bench(struct bench *b, const struct ct_core *core, unsigned victim) {
  memset(b, 0, sizeof *b);
  b->rng = ct_rng_make(50 + victim + 2 * (unsigned)(core - ct_cores));
  b->victim = victim;
  b->other = 1 - victim;
  ct_pair_open(&b->pair, core, "stall=20");
  for (unsigned c = 0; c < 2; ++c) {
    ct_pair_fill_input(&b->pair, c, &b->rng);
    ct_gen_setup(&b->setup[c], ct_rig_unit(c, CT_RIG_IN));
    ct_gen_dump(&b->dump[c], ct_rig_unit(c, CT_RIG_OUT));
  }
}

static void submit(struct bench *b, unsigned ctx, const struct ct_gen_prog *prog) {
  const struct ct_rig_job job = {.prog = prog, .tag = ++b->tag, .version = ~b->tag};
  ct_pair_submit(&b->pair, ctx, &job);
}

/* The next completion of both devices: equal, and with this code and address. */
static void expect(struct bench *b, unsigned ctx, const char *what, uint32_t code, uint32_t addr) {
  struct ct_rig_cpl c[2];
  for (unsigned d = 0; d < 2; ++d)
    c[d] = ct_rig_reap(&b->pair.rig[d], ctx, LIMIT);
  c[0].rows = c[1].rows; /* how far the product came before */
  if (ct_same_completions(&c[0], &c[1]) && c[0].code == code && c[0].addr == addr) return;
  fail_msg("%s: %s at 0x%" PRIx32 " (emulator: %s at 0x%" PRIx32 "), but expected %s at 0x%" PRIx32,
           what, ct_dev_name(c[0].code), c[0].addr, ct_dev_name(c[1].code), c[1].addr,
           ct_dev_name(code), addr);
}

static void run(struct bench *b, unsigned ctx, const struct ct_gen_prog *prog, const char *what,
                uint32_t code, uint32_t addr) {
  submit(b, ctx, prog);
  ct_pair_ring(&b->pair, ctx);
  expect(b, ctx, what, code, addr);
}

/* Gives the other context something to do while the victim fails. */
static void start_other(struct bench *b) {
  const unsigned c = b->other;
  ct_gen_random(&b->rng, &b->work[c], 60, ct_rig_unit(c, CT_RIG_IN), ct_rig_unit(c, CT_RIG_OUT));
  submit(b, c, &b->setup[c]);
  submit(b, c, &b->work[c]);
  submit(b, c, &b->dump[c]);
  ct_pair_ring(&b->pair, c);
}

static void finish_other(struct bench *b, const char *what) {
  for (unsigned i = 0; i < 3; ++i)
    expect(b, b->other, what, CT_DEV_OK, 0);
  assert_true(ct_same_out(&b->pair, b->other, what));
}

/* The victim is as good as new. What a failed job left in memory is its own affair. */
static void check_recovery(struct bench *b, const char *what) {
  const unsigned c = b->victim;
  uint8_t *zeros = test_calloc(CT_GEN_OUT_UNITS, 16);
  ct_pair_mem_write(&b->pair, ct_rig_addr(c, CT_RIG_OUT), zeros, 16 * CT_GEN_OUT_UNITS);
  test_free(zeros);
  ct_gen_random(&b->rng, &b->work[c], 60, ct_rig_unit(c, CT_RIG_IN), ct_rig_unit(c, CT_RIG_OUT));
  run(b, c, &b->setup[c], what, CT_DEV_OK, 0);
  run(b, c, &b->work[c], what, CT_DEV_OK, 0);
  run(b, c, &b->dump[c], what, CT_DEV_OK, 0);
  assert_true(ct_same_out(&b->pair, c, what));
}

/* A job of the victim that fails, with everything around it. */
static void fails(struct bench *b, const struct ct_gen_prog *prog, const char *what, uint32_t code,
                  uint32_t addr) {
  start_other(b);
  run(b, b->victim, prog, what, code, addr);
  finish_other(b, what);
  check_recovery(b, what);
}

/* ---- Illegal commands --------------------------------------------------------------------------
 */

/* A program with one command made of a legal one by changing fields. */
struct spoilt {
  const char *what;
  unsigned code;
  struct {
    enum ct_field_id field;
    int64_t value;
  } change[4];
};

#define NONE CT_F_ALL_OP, 0 /* the end of a list of changes */

static const struct spoilt spoilt[] = {
    {"LD with Nb = 0", CT_OP_LD, {{CT_F_DMA_NB, 0}}},
    {"LD with Nb = 257", CT_OP_LD, {{CT_F_DMA_NB, 257}}},
    {"LD of a record with Nb = 17", CT_OP_LD, {{CT_F_DMA_HDR, 1}, {CT_F_DMA_NB, 17}}},
    {"ST of a record with Nb = 17", CT_OP_ST, {{CT_F_DMA_HDR, 1}, {CT_F_DMA_NB, 17}}},
    {"LD with N1 = 0", CT_OP_LD, {{CT_F_DMA_N1, 0}}},
    {"LD with N1 = 0 by its register", CT_OP_LD, {{CT_F_DMA_N1, 4095}, {CT_F_DMA_N1_REG, 1}}},
    {"ST with N2 = 0", CT_OP_ST, {{CT_F_DMA_N2, 0}}},
    {"LD with one semaphore in two waits",
     CT_OP_LD,
     {{CT_F_ALL_WAIT0, CT_SEM(3)}, {CT_F_ALL_WAIT1, CT_SEM(3)}}},
    {"MM with Kt = 0", CT_OP_MM, {{CT_F_MM_KT, 0}}},
    {"MM with Nt = 0", CT_OP_MM, {{CT_F_MM_NT, 0}}},
    {"MM with Rows = 0", CT_OP_MM, {{CT_F_MM_ROWS, 0}}},
    {"MM with Rows = 129", CT_OP_MM, {{CT_F_MM_ROWS, 129}}},
    {"MM with Rows = 129 by its register", CT_OP_MM, {{CT_F_MM_ROWS, 128}, {CT_F_MM_ROWS_REG, 1}}},
    {"MM with 9 tiles", CT_OP_MM, {{CT_F_MM_ROWS, 33}, {CT_F_MM_NT, 3}, {CT_F_MM_ACC_N, 3}}},
    {"MM past ACC tile 15", CT_OP_MM, {{CT_F_MM_ACC, 15}, {CT_F_MM_ROWS, 17}}},
    {"MM past ACC tile 15 along n",
     CT_OP_MM,
     {{CT_F_MM_ACC, 8}, {CT_F_MM_NT, 2}, {CT_F_MM_ACC_N, 8}}},
    {"MM with one semaphore in two waits",
     CT_OP_MM,
     {{CT_F_ALL_WAIT1, CT_SEM(0)}, {CT_F_ALL_WAIT2, CT_SEM(0)}}},
    {"VL with Mode = 3", CT_OP_VL, {{CT_F_VL_MODE, 3}}},
    {"VL with Mode = 7", CT_OP_VL, {{CT_F_VL_MODE, 7}}},
    {"VL with Rows = 0", CT_OP_VL, {{CT_F_VL_ROWS, 0}}},
    {"VL with Rows = 17", CT_OP_VL, {{CT_F_VL_ROWS, 17}}},
    {"VA with ASrc = 3", CT_OP_VA, {{CT_F_VA_A_SRC, 3}}},
    {"VA with Fn = 5", CT_OP_VA, {{CT_F_VA_FN, 5}}},
    {"VA with Fn = 6", CT_OP_VA, {{CT_F_VA_FN, 6}}},
    {"VA with Func = 1", CT_OP_VA, {{CT_F_VA_FUNC, 1}}},
    {"VA with Func = 7", CT_OP_VA, {{CT_F_VA_FUNC, 7}}},
    {"VA with Func = 12", CT_OP_VA, {{CT_F_VA_FUNC, 12}}},
    {"VA with Func = 15", CT_OP_VA, {{CT_F_VA_FUNC, 15}}},
    {"VA with Rows = 0", CT_OP_VA, {{CT_F_VA_ROWS, 0}}},
    {"VA with Rows = 17 by its register", CT_OP_VA, {{CT_F_VA_ROWS_REG, 1}}},
    {"VA with Cols = 0", CT_OP_VA, {{CT_F_VA_COLS, 0}}},
    {"VA with Cols = 17", CT_OP_VA, {{CT_F_VA_COLS, 17}}},
    {"VA with b and c from a tile",
     CT_OP_VA,
     {{CT_F_VA_TD, 1}, {CT_F_VA_B_SRC, 1}, {CT_F_VA_C_SRC, 2}}},
    {"VA that permutes its own destination",
     CT_OP_VA,
     {{CT_F_VA_B_SRC, 1}, {CT_F_VA_TD, 5}, {CT_F_VA_TQ, 5}, {CT_F_VA_ROW_XOR, 1}}},
    {"VA with row 0 of its own destination",
     CT_OP_VA,
     {{CT_F_VA_C_SRC, 2}, {CT_F_VA_TD, 5}, {CT_F_VA_TQ, 5}}},
    {"VS with Mode = 3", CT_OP_VS, {{CT_F_VS_MODE, 3}}},
    {"VS with Rows = 0", CT_OP_VS, {{CT_F_VS_ROWS, 0}}},
    {"VS with Rows = 31", CT_OP_VS, {{CT_F_VS_ROWS, 31}}},
    {"VS with Round = 1", CT_OP_VS, {{CT_F_VS_ROUND, 1}}},
    {"VS with Narrow = 7", CT_OP_VS, {{CT_F_VS_NARROW, 7}}},
    {"NOP that signals", CT_OP_NOP, {{CT_F_ALL_SIG1, CT_SEM(1)}}},
    {"END that waits", CT_OP_END, {{CT_F_ALL_WAIT0, CT_SEM(1)}}},
    {"ADDI that signals", CT_OP_ADDI, {{CT_F_ALL_SIG0, CT_SEM(1)}}},
    {"LOOP that waits", CT_OP_LOOP, {{CT_F_CTL_COUNT, 1}, {CT_F_ALL_WAIT2, CT_SEM(1)}}},
    {"LOOP with Count = 0", CT_OP_LOOP, {{CT_F_CTL_COUNT, 0}}},
    {"LOOP with Count = 0 by its register",
     CT_OP_LOOP,
     {{CT_F_CTL_COUNT, UINT32_MAX}, {CT_F_CTL_COUNT_REG, 1}}},
    {"ENDL without LOOP", CT_OP_ENDL, {{NONE}}},
};

static struct ct_cmd *add_any(struct ct_gen_prog *p, unsigned code) {
  switch (code) {
    case CT_OP_LD:
    case CT_OP_ST:
      return add_dma(p, code, 0, 0, 1, false);
    case CT_OP_MM:
      return add_mm(p, 0, 16);
    case CT_OP_VL:
      return add_vl(p, 0, 16, 4);
    case CT_OP_VA:
      return add_va(p);
    case CT_OP_VS:
      return add_vs(p, 0, 16, 4);
    default:
      return add(p, code);
  }
}

static void illegal_commands(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  start_other(b);
  for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; ++i) {
    memset(p, 0, sizeof *p);
    p->args[0] = 1; /* r1 */
    const unsigned before = ct_rng_below(&b->rng, 4);
    for (unsigned n = 0; n < before; ++n)
      add(p, CT_OP_NOP);
    struct ct_cmd *cmd = add_any(p, spoilt[i].code);
    for (unsigned n = 0; n < 4 && spoilt[i].change[n].field; ++n)
      set(cmd, spoilt[i].change[n].field, spoilt[i].change[n].value);
    add(p, CT_OP_END);
    run(b, b->victim, p, spoilt[i].what, CT_DEV_ILLEGAL, before);
  }
  finish_other(b, "illegal commands");
  check_recovery(b, "illegal commands");
  test_free(p);
}

static void unknown_codes(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  for (unsigned code = 0; code < 64; ++code) {
    if (ct_op_find(code)) continue;
    p->count = 0;
    add(p, CT_OP_NOP);
    add(p, code);
    add(p, CT_OP_END);
    run(b, b->victim, p, "unknown code", CT_DEV_ILLEGAL, 1);
  }
  test_free(p);
}

static void illegal_flow(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  for (unsigned i = 0; i < 5; ++i)
    set(add(p, CT_OP_LOOP), CT_F_CTL_COUNT, 2);
  add(p, CT_OP_END);
  run(b, b->victim, p, "five loops", CT_DEV_ILLEGAL, 4);

  p->count = 0;
  for (unsigned i = 0; i < 4; ++i)
    set(add(p, CT_OP_LOOP), CT_F_CTL_COUNT, 2);
  for (unsigned i = 0; i < 5; ++i)
    add(p, CT_OP_ENDL);
  run(b, b->victim, p, "one ENDL too many", CT_DEV_ILLEGAL, 8);

  p->count = 0;
  for (unsigned i = 0; i < 3; ++i)
    add(p, CT_OP_NOP);
  run(b, b->victim, p, "no END", CT_DEV_ILLEGAL, 3);

  p->count = 0;
  for (unsigned i = 0; i < CT_PROG_MAX; ++i)
    add(p, CT_OP_NOP);
  run(b, b->victim, p, "no END in a full program", CT_DEV_ILLEGAL, CT_PROG_MAX);

  p->cmds[CT_PROG_MAX - 1] = p->cmds[0];
  CT_PUT(&p->cmds[CT_PROG_MAX - 1], ALL_OP, CT_OP_END);
  run(b, b->victim, p, "a full program", CT_DEV_OK, 0);
  check_recovery(b, "illegal flow");
  test_free(p);
}

/* The largest values that are legal. */
static void limits_are_legal(struct bench *b) {
  const uint32_t in = ct_rig_unit(b->victim, CT_RIG_IN), out = ct_rig_unit(b->victim, CT_RIG_OUT);
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  struct ct_cmd *cmd;
  run(b, b->victim, &b->setup[b->victim], "setup", CT_DEV_OK, 0);
  cmd = add_dma(p, CT_OP_LD, in + 2176, 640, 256, false);
  set(cmd, CT_F_ALL_SIG0, CT_SEM(15));
  cmd = add_dma(p, CT_OP_ST, out, 640, 256, false);
  set(cmd, CT_F_ALL_WAIT0, CT_SEM(15));
  cmd = add_mm(p, 0, 16); /* 8 tiles of 128 rows, up to ACC tile 15 */
  set(cmd, CT_F_MM_ROWS, 128);
  set(cmd, CT_F_MM_AM, 16);
  set(cmd, CT_F_MM_ACC, 8);
  set(cmd, CT_F_ALL_SIG1, CT_SEM(0));
  cmd = add_mm(p, 0, 16); /* 8 tiles along n, in ACC two apart */
  set(cmd, CT_F_MM_NT, 8);
  set(cmd, CT_F_MM_BN, 16);
  set(cmd, CT_F_MM_ACC, 1);
  set(cmd, CT_F_MM_ACC_N, 2);
  cmd = add_mm(p, 0, 16);
  set(cmd, CT_F_MM_KT, 4095); /* of one tile */
  for (unsigned i = 0; i < 4; ++i)
    set(add(p, CT_OP_LOOP), CT_F_CTL_COUNT, 3);
  add(p, CT_OP_NOP);
  for (unsigned i = 0; i < 4; ++i)
    add(p, CT_OP_ENDL);
  add(p, CT_OP_END);
  run(b, b->victim, p, "limits", CT_DEV_OK, 0);
  run(b, b->victim, &b->dump[b->victim], "limits", CT_DEV_OK, 0);
  assert_true(ct_same_out(&b->pair, b->victim, "limits"));
  assert_true(ct_same_counters(&b->pair, true));
  test_free(p);
}

/* ---- Windows ------------------------------------------------------------------------------- */

static void one_command(struct bench *b, struct ct_gen_prog *p, const char *what, uint32_t code,
                        uint32_t addr) {
  add(p, CT_OP_END);
  fails(b, p, what, code, addr);
  memset(p, 0, sizeof *p);
}

static void dram_windows(struct bench *b) {
  const uint32_t first = ct_rig_unit(b->victim, 0), limit = first + CT_RIG_CTX_BYTES / 16;
  const uint32_t out = ct_rig_unit(b->victim, CT_RIG_OUT), out_end = out + CT_GEN_OUT_UNITS;
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  add_dma(p, CT_OP_LD, limit - 5, 0, 16, false);
  one_command(b, p, "LD over the end", CT_DEV_DRAM_READ_WINDOW, limit);
  add_dma(p, CT_OP_LD, limit - 100, 0, 200, false);
  one_command(b, p, "long LD over the end", CT_DEV_DRAM_READ_WINDOW, limit);
  add_dma(p, CT_OP_LD, limit + 3, 0, 16, true);
  one_command(b, p, "LD behind the end", CT_DEV_DRAM_READ_WINDOW, limit + 3);
  add_dma(p, CT_OP_LD, first - 2, 0, 16, false);
  one_command(b, p, "LD before the start", CT_DEV_DRAM_READ_WINDOW, first - 2);
  struct ct_cmd *cmd = add_dma(p, CT_OP_LD, limit - 40, 0, 16, true);
  set(cmd, CT_F_DMA_N1, 3); /* the third record ends 11 units outside */
  set(cmd, CT_F_DMA_D1, 17);
  one_command(b, p, "LD of records over the end", CT_DEV_DRAM_READ_WINDOW, limit);
  add_dma(p, CT_OP_ST, out_end - 8, 0, 16, true);
  one_command(b, p, "ST over the end", CT_DEV_DRAM_WRITE_WINDOW, out_end);
  add_dma(p, CT_OP_ST, out - 1, 0, 1, false);
  one_command(b, p, "ST before the start", CT_DEV_DRAM_WRITE_WINDOW, out - 1);
  add_dma(p, CT_OP_ST, ct_rig_unit(b->other, CT_RIG_OUT), 0, 16, false);
  one_command(b, p, "ST to the other context", CT_DEV_DRAM_WRITE_WINDOW,
              ct_rig_unit(b->other, CT_RIG_OUT));
  add_dma(p, CT_OP_LD, ct_rig_unit(b->other, CT_RIG_OUT), 0, 16, false);
  one_command(b, p, "LD from the other context", CT_DEV_DRAM_READ_WINDOW,
              ct_rig_unit(b->other, CT_RIG_OUT));
  test_free(p);
}

static void fetch_windows(struct bench *b) {
  const uint32_t first = ct_rig_unit(b->victim, 0), limit = first + CT_RIG_CTX_BYTES / 16;
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  for (unsigned i = 0; i < 20; ++i)
    add(p, CT_OP_NOP);
  struct ct_rig_job job = {.prog = p, .tag = ++b->tag, .prog_unit = limit - 8};
  start_other(b);
  ct_pair_submit(&b->pair, b->victim, &job);
  ct_pair_ring(&b->pair, b->victim);
  expect(b, b->victim, "program over the end", CT_DEV_DRAM_READ_WINDOW, limit);

  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_RING_BASE, first - 1024);
  const uint32_t slot = b->pair.rig[0].tail[b->victim] % (1u << CT_RIG_RING_LOG2);
  submit(b, b->victim, p);
  ct_pair_ring(&b->pair, b->victim);
  struct ct_rig_cpl c[2];
  for (unsigned d = 0; d < 2; ++d)
    c[d] = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
  assert_int_equal(c[0].code, CT_DEV_DRAM_READ_WINDOW);
  assert_int_equal(c[0].addr, first - 1024 + 8 * slot);
  assert_true(ct_same_completions(&c[0], &c[1]));
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_windows(&b->pair.rig[d], b->victim);
  finish_other(b, "fetch windows");
  check_recovery(b, "fetch windows");
  test_free(p);
}

static void spm_windows(struct bench *b) {
  const uint32_t in = ct_rig_unit(b->victim, CT_RIG_IN), out = ct_rig_unit(b->victim, CT_RIG_OUT);
  const uint32_t end = CT_GEN_SPM;
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  struct ct_cmd *cmd;
  add_dma(p, CT_OP_LD, in, end - 4, 16, false);
  one_command(b, p, "LD over the end of SPM", CT_DEV_SPM_WINDOW, end);
  cmd = add_dma(p, CT_OP_LD, in, 3, 16, true);
  set(cmd, CT_F_DMA_N1, 2);
  set(cmd, CT_F_DMA_S1, -7); /* the second run begins before word 0: at the top of 20 bits */
  one_command(b, p, "LD before the start of SPM", CT_DEV_SPM_WINDOW, (1u << 20) - 4);
  add_dma(p, CT_OP_ST, out, end - 4, 16, true);
  one_command(b, p, "ST over the end of SPM", CT_DEV_SPM_WINDOW, end);
  add_mm(p, end - 3, 0);
  one_command(b, p, "A over the end of SPM", CT_DEV_SPM_WINDOW, end);
  add_mm(p, 0, end - 8);
  one_command(b, p, "B over the end of SPM", CT_DEV_SPM_WINDOW, end);
  add_vl(p, end - 50, 16, 4);
  one_command(b, p, "VL over the end of SPM", CT_DEV_SPM_WINDOW, end - 50 + 63);
  cmd = add_vl(p, 100, 16, 65535);
  set(cmd, CT_F_VL_MODE, 1);
  one_command(b, p, "VL far over the end of SPM", CT_DEV_SPM_WINDOW, 100 + 15 * 65535);
  add_vs(p, end - 1, 1, 0);
  one_command(b, p, "VS over the end of SPM", CT_DEV_SPM_WINDOW, end + 2);
  cmd = add_vs(p, end, 1, 0);
  set(cmd, CT_F_VS_MODE, 2);
  one_command(b, p, "VS behind the end of SPM", CT_DEV_SPM_WINDOW, end);
  test_free(p);
}

/* A window that goes on past the last word of the scratchpad ends there, and none of its words is
 * one of the other context. */
static void spm_past_the_end(struct bench *b) {
  const uint32_t in = ct_rig_unit(b->victim, CT_RIG_IN), out = ct_rig_unit(b->victim, CT_RIG_OUT);
  const uint32_t words = ct_rig_read(&b->pair.rig[0], CT_REG_SPM_WORDS);
  const uint32_t end = 8, theirs = end + ct_rig_spm_base(b->other); /* as if addresses wrapped */
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  struct ct_cmd *cmd;
  static const unsigned codes[] = {CT_OP_LD, CT_OP_ST, CT_OP_MM, CT_OP_VL, CT_OP_VS};
  for (unsigned i = 0; i < 5; ++i) {
    memset(p, 0, sizeof *p);
    ct_pair_cwrite(&b->pair, b->victim, CT_CREG_SPM_BASE, words - end);
    ct_pair_cwrite(&b->pair, b->victim, CT_CREG_SPM_SIZE, 0xfffff);
    cmd = add_any(p, codes[i]);
    if (codes[i] <= CT_OP_ST) {
      set(cmd, CT_F_DMA_DRAM, codes[i] == CT_OP_LD ? in : out);
      set(cmd, CT_F_DMA_SPM, theirs);
      set(cmd, CT_F_DMA_NB, 16);
    } else {
      const enum ct_field_id at[] = {CT_F_MM_A, CT_F_VL_SPM, CT_F_VS_SPM};
      set(cmd, at[i - 2], theirs);
      if (codes[i] == CT_OP_MM) set(cmd, CT_F_MM_B, theirs);
    }
    add(p, CT_OP_END);
    start_other(b);
    run(b, b->victim, p, "window past the end of SPM", CT_DEV_SPM_WINDOW,
        theirs + (i < 3 ? 0 : 63));
    finish_other(b, "window past the end of SPM");
  }
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_windows(&b->pair.rig[d], b->victim);
  check_recovery(b, "window past the end of SPM");
  test_free(p);
}

/* What a driver might write: near the end, behind it, anything. */
static uint32_t random_window(struct bench *b, uint32_t words) {
  switch (ct_rng_below(&b->rng, 5)) {
    case 0:
      return words - ct_rng_below(&b->rng, 40);
    case 1:
      return words + ct_rng_below(&b->rng, (1u << 20) - words);
    case 2:
      return ct_rng_below(&b->rng, 40);
    case 3:
      return ct_rng_below(&b->rng, words);
    default:
      return ct_rng_below(&b->rng, 1u << 20);
  }
}

/* One command that touches words rel and up. Returns how many behind rel it touches. */
static uint32_t touch_words(struct bench *b, struct ct_gen_prog *p, uint32_t rel, bool *whole) {
  const uint32_t in = ct_rig_unit(b->victim, CT_RIG_IN), out = ct_rig_unit(b->victim, CT_RIG_OUT);
  *whole = true;
  switch (ct_rng_below(&b->rng, 5)) {
    case 0:
      add_vl(p, rel, 16, 4);
      return 63;
    case 1:
      add_vs(p, rel, 16, 4);
      return 63;
    case 2:
      *whole = false;
      add_mm(p, rel, rel);
      return 15;
    case 3:
      *whole = false;
      add_dma(p, CT_OP_LD, in + 2176, rel, 16, false);
      return 15;
    default:
      *whole = false;
      add_dma(p, CT_OP_ST, out, rel, 16, false);
      return 15;
  }
}

/* Any values of the two registers, written in any order: both devices show the same window and keep
 * to it. VL and VS (whole) name the last word they would touch, the others the first one outside.
 */
static void random_spm_windows(struct bench *b) {
  const uint32_t words = ct_rig_read(&b->pair.rig[0], CT_REG_SPM_WORDS);
  uint32_t value[2] = {0, 0}, inside = 0;
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  static const uint32_t creg[2] = {CT_CREG_SPM_BASE, CT_CREG_SPM_SIZE};
  for (unsigned round = 0; round < 150; ++round) {
    const unsigned first = ct_rng_below(&b->rng, 2), writes = round ? ct_rng_below(&b->rng, 3) : 2;
    for (unsigned i = 0; i < writes; ++i) {
      value[first ^ i] = random_window(b, words);
      ct_pair_cwrite(&b->pair, b->victim, creg[first ^ i], value[first ^ i]);
    }
    const uint32_t room = value[0] < words ? words - value[0] : 0;
    const uint32_t end = value[1] < room ? value[1] : room;
    for (unsigned d = 0; d < 2; ++d) {
      assert_int_equal(ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_SPM_BASE), value[0]);
      assert_int_equal(ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_SPM_SIZE), end);
    }
    memset(p, 0, sizeof *p);
    const uint32_t back = ct_rng_below(&b->rng, 100), rel = end > back ? end - back : back;
    bool whole;
    const uint32_t last = rel + touch_words(b, p, rel, &whole);
    add(p, CT_OP_END);
    inside += last < end;
    if (last < end)
      run(b, b->victim, p, "random windows", CT_DEV_OK, 0);
    else
      run(b, b->victim, p, "random windows", CT_DEV_SPM_WINDOW,
          whole || rel >= end ? (whole ? last : rel) : end);
  }
  assert_in_range(inside, 5, 145);
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_windows(&b->pair.rig[d], b->victim);
  check_recovery(b, "random windows");
  test_free(p);
}

/* ---- Memory errors --------------------------------------------------------------------------- */

static void arm(struct bench *b, enum ct_fault kind, uint32_t unit) {
  for (unsigned d = 0; d < 2; ++d) {
    struct ct_rig *rig = &b->pair.rig[d];
    assert_int_equal(rig->ops->fault(rig->self, kind, 16 * (uint64_t)unit + 3), 0);
  }
}

static void axi_errors(struct bench *b) {
  const uint32_t out = ct_rig_unit(b->victim, CT_RIG_OUT); /* at a 4 KB boundary */
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  arm(b, CT_FAULT_AXI_READ, out + 37);
  add_dma(p, CT_OP_LD, out, 0, 64, false);
  one_command(b, p, "LD with an error", CT_DEV_AXI_READ, out + 32);
  arm(b, CT_FAULT_AXI_READ, out + 257);
  add_dma(p, CT_OP_LD, out + 250, 0, 16, true);
  one_command(b, p, "LD with an error behind 4 KB", CT_DEV_AXI_READ, out + 256);
  arm(b, CT_FAULT_AXI_WRITE, out + 20);
  add_dma(p, CT_OP_ST, out, 0, 64, false);
  one_command(b, p, "ST with an error", CT_DEV_AXI_WRITE, out + 16);
  arm(b, CT_FAULT_AXI_WRITE, out + 250);
  add_dma(p, CT_OP_ST, out + 249, 0, 16, true);
  one_command(b, p, "ST of a record with an error", CT_DEV_AXI_WRITE, out + 249);

  const uint32_t past = CT_RIG_MIB * 65536; /* the first unit that does not exist */
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_RD_LIMIT, UINT32_MAX);
  add_dma(p, CT_OP_LD, past, 0, 16, false);
  one_command(b, p, "LD of memory that is not there", CT_DEV_AXI_READ, past);
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_windows(&b->pair.rig[d], b->victim);
  test_free(p);
}

static void fetch_errors(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  for (unsigned i = 0; i < 40; ++i)
    add(p, CT_OP_NOP);
  add(p, CT_OP_END);
  for (unsigned program = 0; program < 2; ++program) {
    const uint32_t slot = b->pair.rig[0].tail[b->victim] % (1u << CT_RIG_RING_LOG2);
    const uint32_t desc = ct_rig_unit(b->victim, slot * CT_DESC_BYTES);
    const uint32_t prog = ct_rig_unit(b->victim, CT_RIG_PROGS + slot * CT_PROG_MAX * CT_CMD_BYTES);
    arm(b, CT_FAULT_AXI_READ, program ? prog + 20 : desc + 7);
    start_other(b);
    submit(b, b->victim, p);
    ct_pair_ring(&b->pair, b->victim);
    struct ct_rig_cpl c[2];
    for (unsigned d = 0; d < 2; ++d)
      c[d] = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
    assert_int_equal(c[0].code, CT_DEV_AXI_READ);
    assert_int_equal(c[0].addr, program ? prog + 16 : desc);
    assert_int_equal(c[1].code, CT_DEV_AXI_READ);
    assert_int_equal(c[1].addr, c[0].addr);
    finish_other(b, "fetch errors");
    check_recovery(b, "fetch errors");
  }
  test_free(p);
}

/* A port that never answers: DEAD after the watchdog and DRAIN_LIMIT; once the answers come after
 * all, the context goes on. */
static void dead_port(struct bench *b) {
  const uint32_t out = ct_rig_unit(b->victim, CT_RIG_OUT);
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  ct_pair_write(&b->pair, CT_REG_DRAIN_LIMIT, 5000);
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_WATCHDOG, WATCHDOG);
  arm(b, CT_FAULT_AXI_HANG, out + 20);
  add_dma(p, CT_OP_LD, out, 0, 64, false);
  add(p, CT_OP_END);
  start_other(b);
  run(b, b->victim, p, "dead port", CT_DEV_DEAD, 0);
  for (unsigned d = 0; d < 2; ++d)
    assert_int_equal(ct_rig_read(&b->pair.rig[d], CT_REG_DEAD), 1u << b->victim);
  finish_other(b, "dead port");
  arm(b, CT_FAULT_NONE, 0);
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_WATCHDOG, 0);
  check_recovery(b, "dead port");
  test_free(p);
}

/* Under policy JOB a context whose port was dead once has its turn as before: of the other's jobs
 * that begin after its doorbell, one at most goes before its own. */
static void job_order_after_dead(struct bench *b) {
  enum { JOBS = 10 };
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  dead_port(b);
  ct_pair_write(&b->pair, CT_REG_POLICY, 3);
  add_dma(p, CT_OP_LD, ct_rig_unit(b->other, CT_RIG_IN), 0, 256, false);
  add(p, CT_OP_END);
  for (unsigned i = 0; i < JOBS; ++i)
    submit(b, b->other, p);
  set(&p->cmds[0], CT_F_DMA_DRAM, ct_rig_unit(b->victim, CT_RIG_IN));
  submit(b, b->victim, p);
  ct_pair_ring(&b->pair, b->other);
  ct_rig_pass(&b->pair.rig[0], 100);
  ct_pair_ring(&b->pair, b->victim);
  struct ct_rig_cpl c[2], other[2];
  for (unsigned d = 0; d < 2; ++d)
    c[d] = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
  assert_true(ct_same_completions(&c[0], &c[1]));
  unsigned before = 0;
  for (unsigned i = 0; i < JOBS; ++i) {
    for (unsigned d = 0; d < 2; ++d)
      other[d] = ct_rig_reap(&b->pair.rig[d], b->other, LIMIT);
    assert_true(ct_same_completions(&other[0], &other[1]));
    before += other[0].start > c[0].arrive && other[0].start < c[0].start;
    assert_true(other[0].end <= c[0].start || other[0].start >= c[0].end); /* one at a time */
  }
  assert_in_range(before, 0, 1);
  ct_pair_write(&b->pair, CT_REG_POLICY, 0);
  check_recovery(b, "job order after a dead port");
  test_free(p);
}

/* ---- A failing memory, unit by unit ------------------------------------------------------------
 */

enum { OTHERS = 6, SUMS = 600, LINE = 70, RECORD_UNITS = 17 };

/* What the program of a sweep loads and stores, and how often its three loops go. */
struct sweep {
  uint32_t in, out, passes[3];
  struct ct_gen_prog prog, others[OTHERS];
  unsigned failed, next;
};

static void add_loop(struct ct_gen_prog *p, uint32_t passes) {
  set(add(p, CT_OP_LOOP), CT_F_CTL_COUNT, passes);
}

static void add_step(struct ct_gen_prog *p, uint32_t r0, int32_t step0, uint32_t r1,
                     int32_t step1) {
  struct ct_cmd *cmd = add(p, CT_OP_ADDI);
  set(cmd, CT_F_ADDI_RD0, r0);
  set(cmd, CT_F_ADDI_RS0, r0);
  set(cmd, CT_F_ADDI_IMM0, step0);
  set(cmd, CT_F_ADDI_RD1, r1);
  set(cmd, CT_F_ADDI_RS1, r1);
  set(cmd, CT_F_ADDI_IMM1, step1);
}

/* Sums of squares of as many records as two nested loops load. */
static void add_sums(struct ct_gen_prog *p, const struct sweep *s) {
  add_loop(p, s->passes[0]);
  add_loop(p, s->passes[1]);
  struct ct_cmd *cmd = add_dma(p, CT_OP_LD, s->in, 0, 16, true);
  set(cmd, CT_F_DMA_DRAM_REG, 25);
  set(cmd, CT_F_DMA_SPM_REG, 26);
  set(cmd, CT_F_ALL_SIG0, CT_SEM(0));
  add_step(p, 25, RECORD_UNITS, 26, 16);
  add(p, CT_OP_ENDL);
  add(p, CT_OP_ENDL);
  cmd = add_mm(p, 0, 0);
  set(cmd, CT_F_MM_KT, s->passes[0] * s->passes[1]);
  set(cmd, CT_F_MM_AK, 16);
  set(cmd, CT_F_MM_BK, 16);
  set(cmd, CT_F_ALL_WAIT0, CT_SEM(0));
  set(cmd, CT_F_ALL_SIG1, CT_SEM(1));
}

/* The sums go to memory as often as a third loop says. */
static void add_stores(struct ct_gen_prog *p, const struct sweep *s) {
  struct ct_cmd *cmd = add_va(p);
  set(cmd, CT_F_VA_A_SRC, 1);
  set(cmd, CT_F_ALL_WAIT0, CT_SEM(1));
  set(cmd, CT_F_ALL_SIG0, CT_SEM(2));
  cmd = add_vs(p, SUMS, 16, 4);
  set(cmd, CT_F_ALL_WAIT0, CT_SEM(2));
  set(cmd, CT_F_ALL_SIG0, CT_SEM(3));
  add_loop(p, s->passes[2]);
  cmd = add_vl(p, SUMS, 16, 4); /* there and back: one store waits for the one before it */
  set(cmd, CT_F_VL_TD, 1);
  set(cmd, CT_F_ALL_WAIT0, CT_SEM(3));
  set(cmd, CT_F_ALL_SIG0, CT_SEM(4));
  cmd = add_dma(p, CT_OP_ST, s->out, SUMS, 64, false);
  set(cmd, CT_F_DMA_DRAM_REG, 27);
  set(cmd, CT_F_ALL_WAIT1, CT_SEM(4));
  set(cmd, CT_F_ALL_SIG1, CT_SEM(3));
  add_step(p, 27, LINE, 0, 0);
  add(p, CT_OP_ENDL);
}

/* Needs nothing of what was before it, and stores the same units each time. */
static void make_sweep(struct bench *b, struct sweep *s) {
  const unsigned c = b->other;
  for (unsigned i = 0; i < 3; ++i)
    s->passes[i] = 1 + ct_rng_below(&b->rng, 2);
  s->in = ct_rig_unit(b->victim, CT_RIG_IN) + RECORD_UNITS * ct_rng_below(&b->rng, 50);
  s->out = ct_rig_unit(b->victim, CT_RIG_OUT) + ct_rng_below(&b->rng, 1000);
  add_sums(&s->prog, s);
  add_stores(&s->prog, s);
  add(&s->prog, CT_OP_END);
  for (unsigned i = 0; i < OTHERS; ++i)
    ct_gen_random(&b->rng, &s->others[i], 30, ct_rig_unit(c, CT_RIG_IN),
                  ct_rig_unit(c, CT_RIG_OUT));
}

/* The unit fails when a job meets it (UINT32_MAX: none does). Behind that job one that continues
 * it, which is skipped, and the same once more, which is right; beside them the other context
 * works. */
static void fail_at(struct bench *b, struct sweep *s, enum ct_fault kind, uint32_t unit) {
  const unsigned v = b->victim;
  const uint32_t code = kind == CT_FAULT_AXI_READ ? CT_DEV_AXI_READ : CT_DEV_AXI_WRITE;
  struct ct_rig_job jobs[3] = {{.flags = 0}, {.flags = CT_FLAG_CHAIN}, {.flags = CT_FLAG_OVERLAP}};
  ct_pair_write(&b->pair, CT_REG_POLICY, s->failed % 5);
  ct_pair_write(&b->pair, CT_REG_FLOOR, ct_rng_below(&b->rng, 2) * ct_rng_below(&b->rng, 256));
  submit(b, b->other, &s->others[s->next++ % OTHERS]);
  ct_pair_ring(&b->pair, b->other);
  arm(b, kind, unit);
  for (unsigned i = 0; i < 3; ++i) {
    jobs[i].prog = &s->prog;
    jobs[i].tag = ++b->tag;
    ct_pair_submit(&b->pair, v, &jobs[i]);
  }
  ct_pair_ring(&b->pair, v);
  for (unsigned i = 0; i < 3; ++i) {
    struct ct_rig_cpl c[2];
    for (unsigned d = 0; d < 2; ++d)
      c[d] = ct_rig_reap(&b->pair.rig[d], v, LIMIT);
    const uint32_t right = i == 0 ? code : i == 1 ? CT_DEV_SKIPPED : CT_DEV_OK;
    if (i == 0) c[0].rows = c[1].rows; /* how far the product came before */
    if (!ct_same_completions(&c[0], &c[1]) || c[0].code != right)
      fail_msg("unit 0x%" PRIx32 " fails: job %u ends with %s", unit, i, ct_dev_name(c[0].code));
  }
  expect(b, b->other, "beside a failing memory", CT_DEV_OK, 0);
  ++s->failed;
}

/* Each unit that a job reads fails once, and each third that it writes: of its descriptor, its
 * program, each pass of its loads and stores. */
static void every_unit_fails(struct bench *b) {
  struct sweep *s = test_calloc(1, sizeof *s);
  make_sweep(b, s);
  run(b, b->other, &b->setup[b->other], "setup", CT_DEV_OK, 0);
  const uint32_t loads = RECORD_UNITS * s->passes[0] * s->passes[1], lines = s->passes[2];
  const uint32_t fetches = CT_DESC_BYTES / 16 + 2 * s->prog.count;
  for (uint32_t i = 0; i < fetches; ++i) {
    const uint32_t slot = b->pair.rig[0].tail[b->victim] % (1u << CT_RIG_RING_LOG2);
    const uint32_t desc = ct_rig_unit(b->victim, slot * CT_DESC_BYTES);
    const uint32_t prog = ct_rig_unit(b->victim, CT_RIG_PROGS + slot * CT_PROG_MAX * CT_CMD_BYTES);
    fail_at(b, s, CT_FAULT_AXI_READ, i < 8 ? desc + i : prog + i - 8);
  }
  for (uint32_t i = 0; i < loads; ++i)
    fail_at(b, s, CT_FAULT_AXI_READ, s->in + i);
  for (uint32_t i = 0; i < 64 * lines; i += 1 + ct_rng_below(&b->rng, 5)) {
    fail_at(b, s, CT_FAULT_AXI_WRITE, s->out + LINE * (i / 64) + i % 64);
    assert_true(ct_same_out(&b->pair, b->victim, "behind a failed store"));
  }
  assert_true(ct_same_out(&b->pair, b->victim, "behind failures"));
  ct_pair_write(&b->pair, CT_REG_POLICY, 0);
  ct_pair_write(&b->pair, CT_REG_FLOOR, 0);
  check_recovery(b, "every unit fails");
  test_free(s);
}

/* ---- Scratchpad ------------------------------------------------------------------------------ */

static void flip(struct bench *b, uint32_t rel, uint32_t bit) {
  ct_pair_write(&b->pair, CT_REG_DBG_ADDR, ct_rig_spm_base(b->victim) + rel);
  ct_pair_write(&b->pair, CT_REG_DBG_FLIP, 0x100 | bit);
  for (unsigned d = 0; d < 2; ++d)
    ct_rig_pass(&b->pair.rig[d], 50);
  uint32_t core[5], emu[5];
  ct_rig_peek(&b->pair.rig[0], ct_rig_spm_base(b->victim) + rel, core);
  ct_rig_peek(&b->pair.rig[1], ct_rig_spm_base(b->victim) + rel, emu);
  assert_memory_equal(core, emu, sizeof core);
  assert_true(core[4] & 0x100);
}

static void parity(struct bench *b) {
  static const uint32_t bits[] = {0, 127, 128, 135, 136, 143, 64};
  const uint32_t base = ct_rig_spm_base(b->victim), out = ct_rig_unit(b->victim, CT_RIG_OUT);
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  for (unsigned i = 0; i < sizeof bits / sizeof *bits; ++i) {
    const uint32_t word = 33 + i;
    run(b, b->victim, &b->setup[b->victim], "setup", CT_DEV_OK, 0);
    flip(b, word, bits[i]);
    struct ct_cmd *cmd;
    switch (i % 5) {
      case 0:
        add_dma(p, CT_OP_ST, out, 20, 64, false);
        break;
      case 1:
        add_mm(p, 32, 0);
        break;
      case 2:
        add_mm(p, 0, 32);
        break;
      case 3:
        cmd = add_vl(p, 32, 16, 1);
        set(cmd, CT_F_VL_MODE, 1);
        break;
      default:
        cmd = add_mm(p, 32, 0);
        set(cmd, CT_F_MM_A_TRANS, 1);
    }
    one_command(b, p, "parity", CT_DEV_PARITY, base + word);
  }
  /* A word that is written is right again. */
  flip(b, 40, 5);
  struct ct_cmd *cmd = add_dma(p, CT_OP_LD, ct_rig_unit(b->victim, CT_RIG_IN), 40, 1, false);
  set(cmd, CT_F_ALL_SIG1, CT_SEM(0));
  cmd = add_dma(p, CT_OP_ST, out, 40, 1, false);
  set(cmd, CT_F_ALL_WAIT1, CT_SEM(0));
  add(p, CT_OP_END);
  run(b, b->victim, p, "written again", CT_DEV_OK, 0);
  test_free(p);
}

static void not_square(struct bench *b) {
  const uint32_t in = ct_rig_unit(b->victim, CT_RIG_IN), base = ct_rig_spm_base(b->victim);
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  uint8_t record[272];
  memset(record, 1, sizeof record);
  memset(record, 130, 16);
  record[9] = 131;
  ct_pair_mem_write(&b->pair, 16 * (uint64_t)in, record, sizeof record);
  ct_gen_setup(&b->setup[b->victim], in);
  for (unsigned side = 0; side < 2; ++side) {
    struct ct_cmd *cmd = add_dma(p, CT_OP_LD, in, 48, 16, true);
    set(cmd, CT_F_ALL_SIG1, CT_SEM(0));
    cmd = side ? add_mm(p, 0, 48) : add_mm(p, 48, 0);
    set(cmd, CT_F_ALL_WAIT0, CT_SEM(0));
    set(cmd, side ? CT_F_MM_B_TRANS : CT_F_MM_A_TRANS, 1);
    add(p, CT_OP_END);
    start_other(b);
    run(b, b->victim, p, "not square", CT_DEV_SQUARE, base + 48 + 9);
    finish_other(b, "not square");
    memset(p, 0, sizeof *p);
  }
  ct_pair_fill_input(&b->pair, b->victim, &b->rng);
  check_recovery(b, "not square");
  test_free(p);
}

/* ---- Semaphores, time, the host's own interventions ------------------------------------------ */

static void semaphore_overflow(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  set(add(p, CT_OP_LOOP), CT_F_CTL_COUNT, 255);
  set(add_va(p), CT_F_ALL_SIG0, CT_SEM(11));
  add(p, CT_OP_ENDL);
  add(p, CT_OP_END);
  run(b, b->victim, p, "255 signals", CT_DEV_OK, 0);
  set(&p->cmds[0], CT_F_CTL_COUNT, 256);
  fails(b, p, "256 signals", CT_DEV_SEM, 11);
  test_free(p);
}

static void watchdog(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_WATCHDOG, WATCHDOG);
  add(p, CT_OP_NOP);
  add_hang(p);
  add(p, CT_OP_END);
  run(b, b->victim, p, "hang", CT_DEV_WATCHDOG, 3);
  p->count = 0;
  for (unsigned i = 0; i < 30; ++i) /* one in the unit, one that it holds, 16 in the queue */
    add_hang(p);
  add(p, CT_OP_END);
  start_other(b);
  submit(b, b->victim, p);
  ct_pair_ring(&b->pair, b->victim);
  struct ct_rig_cpl c[2];
  for (unsigned d = 0; d < 2; ++d) {
    c[d] = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
    assert_int_equal(c[d].code, CT_DEV_WATCHDOG);
    assert_in_range(c[d].addr, 16, 18); /* how many a unit holds itself is its own affair */
  }
  finish_other(b, "hang with a full queue");
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_WATCHDOG, 0);

  /* The descriptor's limit, without one in the register. */
  const struct ct_rig_job job = {.prog = p, .tag = ++b->tag, .watchdog = WATCHDOG};
  ct_pair_submit(&b->pair, b->victim, &job);
  ct_pair_ring(&b->pair, b->victim);
  for (unsigned d = 0; d < 2; ++d) {
    c[d] = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
    assert_int_equal(c[d].code, CT_DEV_WATCHDOG);
  }
  assert_in_range(c[0].end - c[0].start, WATCHDOG, WATCHDOG + 300);
  check_recovery(b, "watchdog");
  test_free(p);
}

static void bad_descriptors(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  add(p, CT_OP_END);
  struct ct_rig_job jobs[] = {{.prog = p, .ncmds = CT_PROG_MAX + 1},
                              {.prog = p, .ncmds = 0x80000001},
                              {.prog = p, .flags = 4},
                              {.prog = p, .flags = 0x80000000},
                              {.prog = p}};
  for (unsigned i = 0; i < 5; ++i) {
    jobs[i].tag = ++b->tag;
    if (i == 4) p->count = 0; /* NCMDS = 0 */
    ct_pair_submit(&b->pair, b->victim, &jobs[i]);
    ct_pair_ring(&b->pair, b->victim);
    expect(b, b->victim, "bad descriptor", CT_DEV_DESCRIPTOR,
           i == 2 || i == 3 ? CT_DESC_FLAGS : CT_DESC_NCMDS);
  }
  add(p, CT_OP_END);
  for (unsigned i = 0; i < 2; ++i) { /* the second one's predecessor was skipped itself */
    struct ct_rig_job chained = {.prog = p, .tag = ++b->tag, .flags = CT_FLAG_CHAIN | i};
    ct_pair_submit(&b->pair, b->victim, &chained);
    ct_pair_ring(&b->pair, b->victim);
    expect(b, b->victim, "what a bad descriptor began", CT_DEV_SKIPPED, 0);
  }
  check_recovery(b, "bad descriptors");

  /* The descriptor is judged first, even if its program lies where nothing may be read. */
  const uint32_t limit = ct_rig_unit(b->victim, 0) + CT_RIG_CTX_BYTES / 16;
  for (unsigned i = 0; i < 24; ++i) {
    const uint32_t unit = limit + 7 - i; /* the last ones leave the window on their way */
    const struct ct_rig_job bad = {.prog = p, .tag = ++b->tag, .flags = 8, .prog_unit = unit};
    const struct ct_rig_job next = {
        .prog = p, .tag = ++b->tag, .flags = CT_FLAG_CHAIN, .prog_unit = unit, .ncmds = 60};
    ct_pair_submit(&b->pair, b->victim, &bad);
    if (i % 2) ct_pair_ring(&b->pair, b->victim);
    if (i % 2) expect(b, b->victim, "bad flags", CT_DEV_DESCRIPTOR, CT_DESC_FLAGS);
    ct_pair_submit(&b->pair, b->victim, &next);
    ct_pair_ring(&b->pair, b->victim);
    if (i % 2 == 0) expect(b, b->victim, "bad flags", CT_DEV_DESCRIPTOR, CT_DESC_FLAGS);
    expect(b, b->victim, "what bad flags began", CT_DEV_SKIPPED, 0);
  }
  check_recovery(b, "descriptors of programs out of reach");
  test_free(p);
}

/* A job that would hang is ended by the host. The emulator would end it itself, so it is held there
 * by freezing; the core runs. */
static void ended_by_host(struct bench *b, uint32_t control, uint32_t code, const char *what) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  add_hang(p);
  add(p, CT_OP_END);
  start_other(b);
  ct_rig_write(&b->pair.rig[1], CT_REG_CTRL, 2);
  submit(b, b->victim, p);
  const uint32_t job_tag = b->tag;
  if (control & 1) { /* two more in the ring */
    submit(b, b->victim, p);
    submit(b, b->victim, p);
  }
  ct_pair_ring(&b->pair, b->victim);
  ct_rig_write(&b->pair.rig[1], CT_REG_CTRL, 6); /* it has started */
  ct_rig_pass(&b->pair.rig[0], 2000);
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_CONTROL, control);
  ct_rig_write(&b->pair.rig[1], CT_REG_CTRL, 0);
  for (unsigned d = 0; d < 2; ++d) {
    const struct ct_rig_cpl c = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
    assert_int_equal(c.code, code);
    assert_int_equal(c.addr, NO_ADDR);
    assert_int_equal(c.tag, job_tag);
    assert_int_equal(ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_CPL_COUNT), 0);
    const uint32_t head = ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_HEAD);
    assert_int_equal(head, b->pair.rig[d].tail[b->victim]);
    assert_int_equal(ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_STATUS), 0);
  }
  finish_other(b, what);
  check_recovery(b, what);
  test_free(p);
}

static void cancel(struct bench *b) {
  ended_by_host(b, 2, CT_DEV_CANCELLED, "cancel");
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_CONTROL, 2); /* nothing runs */
  check_recovery(b, "cancel of nothing");
}

static void soft_reset(struct bench *b) {
  ended_by_host(b, 1, CT_DEV_RESET, "soft reset");
  ct_pair_cwrite(&b->pair, b->victim, CT_CREG_CONTROL, 1);
  check_recovery(b, "soft reset of nothing");
}

/* Both contexts stuck, one of them on the memory: everything starts anew, SPM is kept. */
static void global_reset(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  run(b, b->victim, &b->setup[b->victim], "setup", CT_DEV_OK, 0);
  add_hang(p);
  add(p, CT_OP_END);
  for (unsigned c = 0; c < 2; ++c) {
    const struct ct_rig_job job = {.prog = p, .tag = 1};
    ct_rig_submit(&b->pair.rig[0], c, &job);
    ct_rig_ring(&b->pair.rig[0], c);
  }
  ct_rig_pass(&b->pair.rig[0], 1000);
  ct_pair_write(&b->pair, CT_REG_POLICY, 2);
  ct_pair_write(&b->pair, CT_REG_CTRL, 1);
  ct_rig_pass(&b->pair.rig[0], 1000);
  for (unsigned d = 0; d < 2; ++d) {
    struct ct_rig *rig = &b->pair.rig[d];
    const uint32_t half = ct_rig_read(rig, CT_REG_SPM_WORDS) / 2;
    assert_int_equal(ct_rig_read(rig, CT_REG_CTRL), 0);
    assert_int_equal(ct_rig_read(rig, CT_REG_POLICY), 0);
    assert_int_equal(ct_rig_read(rig, CT_REG_IRQ_STATUS), 0);
    assert_int_equal(ct_rig_read(rig, CT_REG_TRAIN_CAP), 4);
    assert_int_equal(ct_rig_read(rig, CT_REG_DRAIN_LIMIT), 100000);
    for (unsigned c = 0; c < 2; ++c) {
      assert_int_equal(ct_rig_cread(rig, c, CT_CREG_STATUS), 0);
      assert_int_equal(ct_rig_cread(rig, c, CT_CREG_HEAD), 0);
      assert_int_equal(ct_rig_cread(rig, c, CT_CREG_TAIL), 0);
      assert_int_equal(ct_rig_cread(rig, c, CT_CREG_RD_LIMIT), 0);
      assert_int_equal(ct_rig_cread(rig, c, CT_CREG_SPM_BASE), c * half);
      assert_int_equal(ct_rig_cread(rig, c, CT_CREG_SPM_SIZE), half);
      assert_int_equal(ct_rig_counter(rig, c, CT_CNT_JOBS), 0);
    }
    ct_rig_setup(rig);
  }
  run(b, b->victim, &b->dump[b->victim], "SPM after the reset", CT_DEV_OK, 0);
  assert_true(ct_same_out(&b->pair, b->victim, "SPM after the reset"));
  check_recovery(b, "global reset");
  test_free(p);
}

/* The device holds 16 completions, then waits with the next job. */
static void full_of_completions(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  add(p, CT_OP_END);
  const uint32_t first = b->tag + 1;
  for (unsigned i = 0; i < 16; ++i)
    submit(b, b->victim, p);
  ct_pair_ring(&b->pair, b->victim);
  for (unsigned d = 0; d < 2; ++d) {
    for (unsigned n = 0; n < 200 && ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_HEAD) !=
                                        b->pair.rig[d].tail[b->victim];
         ++n)
      ct_rig_pass(&b->pair.rig[d], 1000);
    ct_rig_pass(&b->pair.rig[d], 2000);
  }
  submit(b, b->victim, p);
  submit(b, b->victim, p);
  ct_pair_ring(&b->pair, b->victim);
  for (unsigned d = 0; d < 2; ++d) {
    ct_rig_pass(&b->pair.rig[d], 3000);
    assert_int_equal(ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_STATUS), 16 << 8 | 7);
    for (unsigned i = 0; i < 18; ++i)
      assert_int_equal(ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT).tag, first + i);
    ct_rig_cwrite(&b->pair.rig[d], b->victim, CT_CREG_CPL_POP, 1); /* of nothing */
    assert_int_equal(ct_rig_cread(&b->pair.rig[d], b->victim, CT_CREG_CPL_COUNT), 0);
  }
  check_recovery(b, "completions");
  test_free(p);
}

/* A frozen core stands still; step by step it gets there, too, with the same results. */
static void freeze_and_step(struct bench *b) {
  const unsigned c = b->victim;
  run(b, c, &b->setup[c], "setup", CT_DEV_OK, 0);
  ct_gen_random(&b->rng, &b->work[c], 30, ct_rig_unit(c, CT_RIG_IN), ct_rig_unit(c, CT_RIG_OUT));
  ct_pair_write(&b->pair, CT_REG_CTRL, 2);
  submit(b, c, &b->work[c]);
  ct_pair_ring(&b->pair, c);
  for (unsigned d = 0; d < 2; ++d) {
    struct ct_rig *rig = &b->pair.rig[d];
    ct_rig_pass(rig, 3000);
    assert_int_equal(ct_rig_cread(rig, c, CT_CREG_CPL_COUNT), 0);
    unsigned steps = 0;
    while (!ct_rig_cread(rig, c, CT_CREG_CPL_COUNT) && steps < 100000) {
      ct_rig_write(rig, CT_REG_CTRL, 6);
      ++steps;
    }
    assert_in_range(steps, 5, 99999);
    ct_rig_write(rig, CT_REG_CTRL, 0);
  }
  expect(b, c, "single steps", CT_DEV_OK, 0);
  run(b, c, &b->dump[c], "single steps", CT_DEV_OK, 0);
  assert_true(ct_same_out(&b->pair, c, "single steps"));
}

/* ---- Overlapping jobs ------------------------------------------------------------------------ */

enum { CHAIN = 12, CHAIN_UNITS = 320 };

/* Job i of a chain: loads, then stores what it has loaded to a place of its own; or fails on the
 * way. */
static void chain_program(struct bench *b, struct ct_rig_job *job, struct ct_gen_prog *p,
                          unsigned i) {
  const uint32_t in = ct_rig_unit(b->victim, CT_RIG_IN), out = ct_rig_unit(b->victim, CT_RIG_OUT);
  const uint32_t limit = ct_rig_unit(b->victim, 0) + CT_RIG_CTX_BYTES / 16;
  const uint32_t words = 1 + ct_rng_below(&b->rng, 256);
  *p = (struct ct_gen_prog){.count = 0};
  *job = (struct ct_rig_job){.prog = p, .tag = ++b->tag, .version = ~b->tag};
  job->flags = ct_rng_percent(&b->rng, 80) ? CT_FLAG_OVERLAP : 0;
  switch (ct_rng_below(&b->rng, 12)) {
    case 0:
      add_dma(p, CT_OP_LD, limit - 5, 0, 16, false);
      break;
    case 1:
      add(p, 0x3f);
      break;
    case 2:
      job->prog_unit = limit - 2; /* what is read ahead of its time is wrong */
      break;
    case 3:
      job->flags |= 4;
      break;
    case 4:
      job->ncmds = CT_PROG_MAX + 1;
      break;
    default:
      break;
  }
  set(add_dma(p, CT_OP_LD, in + ct_rng_below(&b->rng, 1000), 0, words, false), CT_F_ALL_SIG1,
      CT_SEM(3));
  set(add_dma(p, CT_OP_ST, out + CHAIN_UNITS * i, 0, words, false), CT_F_ALL_WAIT1, CT_SEM(3));
  add(p, CT_OP_END);
  if (i == CHAIN / 2) /* one of its bursts is answered with an error */
    arm(b, CT_FAULT_AXI_WRITE, out + CHAIN_UNITS * i + ct_rng_below(&b->rng, words));
}

static void clear_place(struct bench *b, unsigned i) {
  static const uint8_t zeros[16 * CHAIN_UNITS];
  const uint64_t at = ct_rig_addr(b->victim, CT_RIG_OUT) + UINT64_C(16) * CHAIN_UNITS * i;
  ct_pair_mem_write(&b->pair, at, zeros, sizeof zeros);
}

/* Chains of jobs that overlap and fail: each with its own code, in order, on both devices. */
static void chains(struct bench *b) {
  struct ct_gen_prog *p = test_calloc(CHAIN, sizeof *p);
  struct ct_rig_job jobs[CHAIN];
  unsigned overlaps = 0, write_errors = 0;
  for (unsigned round = 0; round < 20; ++round) {
    arm(b, CT_FAULT_NONE, 0);
    start_other(b);
    for (unsigned i = 0; i < CHAIN; ++i) {
      chain_program(b, &jobs[i], &p[i], i);
      ct_pair_submit(&b->pair, b->victim, &jobs[i]);
    }
    ct_pair_ring(&b->pair, b->victim);
    uint64_t end = 0;
    for (unsigned i = 0; i < CHAIN; ++i) {
      struct ct_rig_cpl c[2];
      for (unsigned d = 0; d < 2; ++d)
        c[d] = ct_rig_reap(&b->pair.rig[d], b->victim, LIMIT);
      assert_true(ct_same_completions(&c[0], &c[1]));
      assert_true(c[0].end > end);
      overlaps += c[0].start < end;
      write_errors += c[0].code == CT_DEV_AXI_WRITE;
      end = c[0].end;
      if (c[0].code) clear_place(b, i); /* what a failed job has left is its own affair */
    }
    finish_other(b, "chain");
    assert_true(ct_same_out(&b->pair, b->victim, "chain"));
  }
  assert_true(overlaps > 12 && write_errors > 3);
  arm(b, CT_FAULT_NONE, 0); /* the job may have failed before */
  check_recovery(b, "chains");
  test_free(p);
}

static struct ct_rig_cpl reap_core(struct bench *b, uint32_t tag, uint32_t code) {
  const struct ct_rig_cpl c = ct_rig_reap(&b->pair.rig[0], b->victim, LIMIT);
  assert_int_equal(c.tag, tag);
  assert_int_equal(c.code, code);
  return c;
}

/* The core only: the emulator never overlaps jobs. The answer to a store does not come, and the
 * next job has begun: both end with DEAD, the context is as new when the answer has come. */
static void dead_behind(struct bench *b) {
  const uint32_t out = ct_rig_unit(b->victim, CT_RIG_OUT);
  struct ct_rig *core = &b->pair.rig[0];
  struct ct_gen_prog *p = test_calloc(2, sizeof *p);
  ct_rig_write(core, CT_REG_DRAIN_LIMIT, 5000);
  assert_int_equal(core->ops->fault(core->self, CT_FAULT_AXI_HANG, 16 * (uint64_t)(out + 20)), 0);
  add_dma(&p[0], CT_OP_ST, out, 0, 64, false);
  add(&p[0], CT_OP_END);
  add_hang(&p[1]);
  add(&p[1], CT_OP_END);
  start_other(b);
  for (unsigned i = 0; i < 2; ++i) {
    const struct ct_rig_job job = {.prog = &p[i], .tag = 70 + i, .flags = CT_FLAG_OVERLAP};
    ct_rig_submit(core, b->victim, &job);
  }
  ct_rig_ring(core, b->victim);
  const struct ct_rig_cpl first = reap_core(b, 70, CT_DEV_DEAD),
                          second = reap_core(b, 71, CT_DEV_DEAD);
  assert_true(second.start < first.end); /* they did overlap */
  assert_int_equal(ct_rig_read(core, CT_REG_DEAD), 1u << b->victim);
  finish_other(b, "dead behind");
  assert_int_equal(core->ops->fault(core->self, CT_FAULT_NONE, 0), 0);
  check_recovery(b, "dead behind");
  test_free(p);
}

/* The core only: a cancel with a number hits that job, in front or about to start, and no other. */
static void cancel_by_number(struct bench *b) {
  struct ct_rig *core = &b->pair.rig[0];
  struct ct_gen_prog *p = test_calloc(1, sizeof *p);
  add_hang(p);
  add(p, CT_OP_END);
  start_other(b);
  const uint32_t number = core->tail[b->victim];
  for (unsigned i = 0; i < 3; ++i) {
    const struct ct_rig_job job = {.prog = p, .tag = 80 + i, .flags = CT_FLAG_OVERLAP};
    ct_rig_submit(core, b->victim, &job);
  }
  ct_rig_ring(core, b->victim);
  ct_rig_pass(core, 2000); /* the first hangs, the second has been read */
  assert_int_equal(ct_rig_cread(core, b->victim, CT_CREG_HEAD), (number + 2) & 0xffff);
  static const unsigned order[] = {3, 2, 0xffff, 1, 0}; /* those that are not there hit nobody */
  for (unsigned i = 0; i < 5; ++i) {
    assert_int_equal(ct_rig_cread(core, b->victim, CT_CREG_CPL_COUNT), 0);
    ct_rig_cwrite(core, b->victim, CT_CREG_CONTROL, (number + order[i]) << 16 | 6);
    ct_rig_pass(core, i < 4 ? 500 : 2000);
  }
  reap_core(b, 80, CT_DEV_CANCELLED);
  reap_core(b, 81, CT_DEV_CANCELLED);
  assert_int_equal(ct_rig_cread(core, b->victim, CT_CREG_CPL_COUNT), 0);
  ct_rig_cwrite(core, b->victim, CT_CREG_CONTROL, (number + 1) << 16 | 6); /* too late */
  ct_rig_pass(core, 500);
  assert_int_equal(ct_rig_cread(core, b->victim, CT_CREG_CPL_COUNT), 0);
  ct_rig_cwrite(core, b->victim, CT_CREG_CONTROL, (number + 2) << 16 | 6);
  reap_core(b, 82, CT_DEV_CANCELLED);
  finish_other(b, "cancel by number");
  check_recovery(b, "cancel by number");
  test_free(p);
}

/* A soft reset while one job waits for answers, one runs and one has been read: one completion for
 * each that has started, none for the others. */
static void reset_of_a_chain(struct bench *b) {
  const uint32_t out = ct_rig_unit(b->victim, CT_RIG_OUT);
  struct ct_rig *core = &b->pair.rig[0];
  struct ct_gen_prog *p = test_calloc(2, sizeof *p);
  add_dma(&p[0], CT_OP_ST, out, 0, 256, false);
  add(&p[0], CT_OP_END);
  add_hang(&p[1]);
  add(&p[1], CT_OP_END);
  start_other(b);
  for (unsigned round = 0; round < 40; ++round) {
    for (unsigned i = 0; i < 4; ++i) {
      const struct ct_rig_job job = {.prog = &p[i == 1], .tag = 90 + i, .flags = CT_FLAG_OVERLAP};
      ct_rig_submit(core, b->victim, &job);
    }
    ct_rig_ring(core, b->victim);
    ct_rig_pass(core, 20 * round);
    ct_rig_cwrite(core, b->victim, CT_CREG_CONTROL, 1);
    ct_rig_pass(core, 3000);
    const uint32_t ended = ct_rig_cread(core, b->victim, CT_CREG_CPL_COUNT);
    assert_in_range(ended, 0, 2);
    for (uint32_t i = 0; i < ended; ++i) {
      const struct ct_rig_cpl c = ct_rig_reap(core, b->victim, LIMIT);
      assert_int_equal(c.tag, 90 + i);
      assert_true(c.code == CT_DEV_RESET || (i == 0 && c.code == CT_DEV_OK));
    }
    assert_int_equal(ct_rig_cread(core, b->victim, CT_CREG_HEAD), core->tail[b->victim]);
    assert_int_equal(ct_rig_cread(core, b->victim, CT_CREG_STATUS), 0);
  }
  finish_other(b, "reset of a chain");
  check_recovery(b, "reset of a chain");
  test_free(p);
}

/* ---- Main ---------------------------------------------------------------------------------- */

/* Each test with either context as the victim. */
struct one {
  const struct ct_core *core;
  void (*test)(struct bench *b);
};

static void run_one(void **state) {
  const struct one *one = *state;
  struct bench *b = test_malloc(sizeof *b);
  for (unsigned victim = 0; victim < 2; ++victim) {
    open_bench(b, one->core, victim);
    one->test(b);
    assert_true(ct_same_out(&b->pair, b->other, "at the end"));
    ct_pair_close(&b->pair);
  }
  test_free(b);
}

static const struct {
  const char *name;
  void (*test)(struct bench *b);
} all[] = {
    {"illegal commands", illegal_commands},
    {"unknown codes", unknown_codes},
    {"illegal flow", illegal_flow},
    {"limits are legal", limits_are_legal},
    {"dram windows", dram_windows},
    {"fetch windows", fetch_windows},
    {"spm windows", spm_windows},
    {"spm past the end", spm_past_the_end},
    {"random spm windows", random_spm_windows},
    {"axi errors", axi_errors},
    {"fetch errors", fetch_errors},
    {"every unit fails", every_unit_fails},
    {"dead port", dead_port},
    {"job order after a dead port", job_order_after_dead},
    {"parity", parity},
    {"not square", not_square},
    {"semaphore overflow", semaphore_overflow},
    {"watchdog", watchdog},
    {"bad descriptors", bad_descriptors},
    {"cancel", cancel},
    {"soft reset", soft_reset},
    {"global reset", global_reset},
    {"full of completions", full_of_completions},
    {"freeze and step", freeze_and_step},
    {"chains", chains},
    {"dead behind", dead_behind},
    {"cancel by number", cancel_by_number},
    {"reset of a chain", reset_of_a_chain},
};

enum { COUNT = sizeof all / sizeof *all };

int main(void) {
  char names[CT_CORES * COUNT][64];
  struct one ones[CT_CORES * COUNT];
  struct CMUnitTest tests[CT_CORES * COUNT] = {{0}};
  for (size_t i = 0; i < CT_CORES * COUNT; ++i) {
    ones[i] = (struct one){&ct_cores[i / COUNT], all[i % COUNT].test};
    snprintf(names[i], sizeof names[i], "%s: %s", ones[i].core->name, all[i % COUNT].name);
    tests[i].name = names[i];
    tests[i].test_func = run_one;
    tests[i].initial_state = &ones[i];
  }
  ct_tb_seed();
  return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
