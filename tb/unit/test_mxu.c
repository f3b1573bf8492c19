/* SPDX-License-Identifier: Apache-2.0 */
/* ct_mxu, all variants: products bit by bit, order of reads and signals, errors, flush,
 * interference, throughput. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mxu_tb.h"

/* ---- commands ---- */

static struct ct_cmd product(unsigned rows, unsigned kt, unsigned nt) {
  struct ct_cmd cmd = {{0}};
  const unsigned mt = (rows + 15) / 16;
  CT_PUT(&cmd, ALL_OP, CT_OP_MM);
  CT_PUT(&cmd, MM_A, kSpmWords / 4); /* the square part */
  CT_PUT(&cmd, MM_B, kSpmWords / 4 + 2048);
  CT_PUT(&cmd, MM_AM, 16);
  CT_PUT(&cmd, MM_AK, 16 * mt);
  CT_PUT(&cmd, MM_BN, 16);
  CT_PUT(&cmd, MM_BK, 16 * nt);
  CT_PUT(&cmd, MM_KT, kt);
  CT_PUT(&cmd, MM_NT, nt);
  CT_PUT(&cmd, MM_ROWS, rows);
  CT_PUT(&cmd, MM_ACC_N, mt);
  return cmd;
}

/* A random operand: start and strides such that all tiles lie in the window; transposed ones in its
 * square half. */
static void place(ct_rng *rng, bool square, unsigned kt, unsigned other, uint32_t *start,
                  int32_t *stride, int32_t *k_stride) {
  const int32_t unit = square ? 16 : 1, half = kSpmWords / 4;
  const int32_t spread = (half - 16) / unit;
  *stride = (int32_t)ct_rng_below(rng, (uint32_t)(spread / 2 / (int32_t)other)) * unit;
  *k_stride = (int32_t)ct_rng_below(rng, (uint32_t)(spread / 2 / (int32_t)kt)) * unit;
  int32_t low = 0;
  if (ct_rng_percent(rng, 30)) *stride = -*stride;
  if (ct_rng_percent(rng, 30)) *k_stride = -*k_stride;
  if (*stride < 0) low -= *stride * (int32_t)(other - 1);
  if (*k_stride < 0) low -= *k_stride * (int32_t)(kt - 1);
  *start = (uint32_t)(low + (square ? half : 0));
}

static uint32_t maybe_sem(ct_rng *rng, unsigned first, unsigned num, unsigned percent) {
  return ct_rng_percent(rng, percent) ? CT_SEM(first + ct_rng_below(rng, num)) : 0;
}

static void random_semaphores(ct_rng *rng, struct ct_cmd *cmd, unsigned index, mxu_mode mode) {
  const uint32_t wait0 = maybe_sem(rng, 0, 3, 60);
  CT_PUT(cmd, ALL_WAIT0, wait0);
  CT_PUT(cmd, ALL_WAIT1, ct_rng_percent(rng, 10) ? wait0 : maybe_sem(rng, 3, 3, 40));
  CT_PUT(cmd, ALL_SIG0, maybe_sem(rng, 11, 2, 70));
  if (mode == kHandshake) {
    CT_PUT(cmd, ALL_WAIT2, CT_SEM(6 + index % 2));
    CT_PUT(cmd, ALL_SIG1, CT_SEM(13 + ct_rng_below(rng, 3)));
    return;
  }
  CT_PUT(cmd, ALL_WAIT2, maybe_sem(rng, 6, 4, 50));
  CT_PUT(cmd, ALL_SIG1, maybe_sem(rng, 13, 3, 50));
  if (mode != kShared) return;
  CT_PUT(cmd, ALL_SIG1, maybe_sem(rng, 11, 2, 80));
  CT_PUT(cmd, ALL_WAIT2, maybe_sem(rng, 0, 6, 80));
}

static struct ct_cmd random_command(ct_rng *rng, unsigned index, mxu_mode mode,
                                    unsigned trans_percent) {
  static const uint8_t rows_choice[] = {1, 1, 2, 15, 16, 16, 17, 31, 32, 33, 64, 127, 128};
  const unsigned rows = ct_rng_percent(rng, 50) ? rows_choice[ct_rng_below(rng, sizeof rows_choice)]
                                                : 1 + ct_rng_below(rng, 128);
  const unsigned mt = (rows + 15) / 16, kt = 1 + ct_rng_below(rng, 5);
  const unsigned nt = 1 + ct_rng_below(rng, 8 / mt);
  struct ct_cmd cmd = product(rows, kt, nt);
  const bool a_trans = ct_rng_percent(rng, trans_percent),
             b_trans = ct_rng_percent(rng, trans_percent);
  uint32_t start;
  int32_t stride, k_stride;
  place(rng, a_trans, kt, mt, &start, &stride, &k_stride);
  CT_PUT(&cmd, MM_A, start);
  CT_PUT(&cmd, MM_AM, (uint32_t)stride & 0xFFFF);
  CT_PUT(&cmd, MM_AK, (uint32_t)k_stride & 0xFFFF);
  place(rng, b_trans, kt, nt, &start, &stride, &k_stride);
  CT_PUT(&cmd, MM_B, start);
  CT_PUT(&cmd, MM_BN, (uint32_t)stride & 0xFFFF);
  CT_PUT(&cmd, MM_BK, (uint32_t)k_stride & 0xFFFF);
  CT_PUT(&cmd, MM_A_TRANS, a_trans);
  CT_PUT(&cmd, MM_B_TRANS, b_trans);
  CT_PUT(&cmd, MM_ACCUM, ct_rng_percent(rng, 30));
  CT_PUT(&cmd, MM_ACC, mode == kHandshake ? 8 * (index % 2) : ct_rng_below(rng, 16 - mt * nt + 1));
  random_semaphores(rng, &cmd, index, mode);
  return cmd;
}

/* Images somewhere in the window and a few taps: a WPIX, a WTAP, and in mm what is left of a
 * command.
 */
static void random_walk(ct_rng *rng, struct ct_cmd *wpix, struct ct_cmd *wtap, struct ct_cmd *mm) {
  const int32_t wide = (int32_t)ct_rng_below(rng, 2);
  const struct ct_walk_shape s = {.w = 1 + (int32_t)ct_rng_below(rng, 12),
                                  .h = 1 + (int32_t)ct_rng_below(rng, 10),
                                  .pixel = 1 + wide,
                                  .line = 26,
                                  .image = 300,
                                  .block = 1000 + 7 * wide,
                                  .nx = 1 + (int32_t)ct_rng_below(rng, 12),
                                  .ny = 1 + (int32_t)ct_rng_below(rng, 10),
                                  .sx = 1 + (int32_t)ct_rng_below(rng, 2),
                                  .sy = 1 + (int32_t)ct_rng_below(rng, 2),
                                  .x0 = (int32_t)ct_rng_below(rng, 5) - 2,
                                  .y0 = (int32_t)ct_rng_below(rng, 5) - 2,
                                  .dx = (int32_t)ct_rng_below(rng, 5) - 2,
                                  .dy = (int32_t)ct_rng_below(rng, 5) - 2,
                                  .kx = 1 + (int32_t)ct_rng_below(rng, 3),
                                  .cb = 1 + (int32_t)ct_rng_below(rng, 3)};
  const int32_t x = (int32_t)ct_rng_below(rng, (uint32_t)s.nx);
  const int32_t y = (int32_t)ct_rng_below(rng, (uint32_t)s.ny);
  const uint32_t images = 1 + ct_rng_below(rng, 3);
  const uint32_t base = ct_rng_below(rng, kSpmWords / 2 - 3 * 1100 - 900);
  assert_true(ct_walk_commands(&s, wpix, wtap));
  CT_PUT(mm, MM_WALK, 1);
  CT_PUT(mm, MM_A, ct_walk_a(&s, base, x, y, 0));
  CT_PUT(mm, MM_POS, ct_walk_pos(&s, x, y, images));
  CT_PUT(mm, MM_A_TRANS, ct_rng_below(rng, 2));
}

/* All of ACC gets known values. */
static void clear_acc(struct ct_cmd cmds[2]) {
  for (unsigned i = 0; i < 2; ++i) {
    cmds[i] = product(128, 1, 1);
    CT_PUT(&cmds[i], MM_ACC, 8 * i);
  }
}

static void load_random(mxu_tb *tb, ct_rng *rng, unsigned ctx, mxu_mode mode, unsigned num,
                        unsigned trans) {
  struct ct_cmd cmds[kMaxCmds];
  for (unsigned i = 0; i < num; ++i) {
    cmds[i] = random_command(rng, i, mode, trans);
    if (!tb->p.walks || mode == kHandshake || i + 2 >= num || ct_rng_percent(rng, 50)) continue;
    struct ct_cmd mm = cmds[i], wpix, wtap;
    random_walk(rng, &wpix, &wtap, &mm);
    cmds[i] = wpix;
    cmds[++i] = wtap;
    cmds[++i] = mm;
  }
  mxu_tb_load(tb, ctx, mode, cmds, num);
}

static mxu_tb *open_cleared(unsigned variant, uint64_t stream, unsigned stall) {
  mxu_tb *tb = mxu_tb_open(variant, stream, stall);
  struct ct_cmd cmds[2];
  mxu_tb_fill(tb);
  clear_acc(cmds);
  for (unsigned c = 0; c < 2; ++c)
    mxu_tb_load(tb, c, kFree, cmds, 2);
  mxu_tb_run(tb, 20000);
  return tb;
}

/* ---- random programs of both contexts ---- */

/* Any policy, any floor; half of them 0. */
static void draw_policy(mxu_tb *tb, ct_rng *rng) {
  tb->policy = ct_rng_below(rng, 5);
  tb->floor = ct_rng_percent(rng, 50) ? 0 : (unsigned)ct_rng_below(rng, 256);
}

/* Slots that a ready row waits for the other context, at most: those that a floor gives, a row in
 * turn, a row tile in turn, or what is left of one and another that came first. */
static unsigned most_slots(const mxu_tb *tb) {
  const unsigned floor = tb->floor, slots[] = {255 / (256 - floor), 32, 16, 32, 1};
  return slots[tb->policy];
}

static void random_programs(void **state) {
  (void)state;
  for (unsigned v = 0; v < kVariants; ++v) {
    mxu_tb *tb = open_cleared(v, 1 + v, v % 2 ? 10 : 30);
    ct_rng rng = ct_rng_make(1000 + v);
    for (unsigned round = 0; round < 40; ++round) {
      draw_policy(tb, &rng);
      tb->give_percent = round % 3 ? 20 : 2;
      for (unsigned c = 0; c < 2; ++c)
        load_random(tb, &rng, c, (mxu_mode)((round / 2 + c) % 3), 8, round % 4 * 30);
      mxu_tb_run(tb, 400000);
      mxu_tb_check_acc(tb, 0);
      mxu_tb_check_acc(tb, 1);
      /* (With fewer columns than 16 a row may be under way.) */
      const unsigned beats = 16 / tb->p.cols, cycles = beats * most_slots(tb) + beats - 1;
      if (tb->c[0].max_wait_run > cycles)
        fail_msg("policy %u, floor %u: a row of inference waited %u cycles, not %u", tb->policy,
                 tb->floor, tb->c[0].max_wait_run, cycles);
    }
    mxu_tb_close(tb);
  }
}

/* ---- rows of one ACC address that come close to each other ---- */

/* Operations of few rows, held up in their midst by the other context and by SPM: a row may come
 * again as soon as its last sum is written, and not before. */
static void sums_are_complete_before_they_are_used(void **state) {
  (void)state;
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 70 + v, 20);
    ct_rng rng = ct_rng_make(1070 + v);
    tb->spm_stall[0] = ct_stall_make(1080 + v, 40, 4);
    for (unsigned round = 0; round < 20; ++round) {
      struct ct_cmd few[8], others[40];
      for (unsigned i = 0; i < 8; ++i) {
        few[i] = product(2 + ct_rng_below(&rng, 20), 20, 1);
        CT_PUT(&few[i], MM_ACCUM, i > 0);
        CT_PUT(&few[i], MM_AK, 16);
        CT_PUT(&few[i], MM_BK, 16);
      }
      for (unsigned i = 0; i < 40; ++i)
        others[i] = product(1 + ct_rng_below(&rng, 40), 1 + ct_rng_below(&rng, 2), 1);
      mxu_tb_load(tb, 0, kFree, others, 40);
      mxu_tb_load(tb, 1, kFree, few, 8);
      mxu_tb_run(tb, 50000);
      mxu_tb_check_acc(tb, 0);
      mxu_tb_check_acc(tb, 1);
    }
    mxu_tb_close(tb);
  }
}

/* ---- flush ---- */

static void flush_leaves_the_other_alone(void **state) {
  (void)state;
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 10 + v, 15);
    ct_rng rng = ct_rng_make(1010 + v);
    struct ct_cmd clear[2];
    clear_acc(clear);
    for (unsigned round = 0; round < 40; ++round) {
      const unsigned victim = round % 2;
      draw_policy(tb, &rng);
      tb->give_percent = 30;
      load_random(tb, &rng, victim, kFree, 6, 50);
      load_random(tb, &rng, !victim, kHandshake, 6, 50);
      for (unsigned i = ct_rng_below(&rng, 900); i > 0; --i) {
        if (ct_rng_percent(&rng, 3)) *tb->p.freeze_i = ct_rng_percent(&rng, 30);
        mxu_tb_cycle(tb);
      }
      *tb->p.freeze_i = round % 8 == 7; /* a flush ends in a frozen core, too */
      mxu_tb_flush(tb, victim, 16 / tb->p.cols + ct_rng_below(&rng, 3), round % 4 < 2);
      *tb->p.freeze_i = 0;
      mxu_tb_load(tb, victim, kFree, clear, 2);
      mxu_tb_run(tb, 100000);
      mxu_tb_check_acc(tb, 0);
      mxu_tb_check_acc(tb, 1);
    }
    mxu_tb_close(tb);
  }
}

/* ---- errors ---- */

typedef struct {
  uint8_t code;
  bool in_b, trans;
} fault;

/* Spoils the word that the stream reads as number n and returns the address to be reported. */
static uint32_t spoil(mxu_tb *tb, unsigned ctx, const fault *f, struct ct_cmd *cmd, unsigned n) {
  mxu_ctx *c = &tb->c[ctx];
  const mxu_read *read = f->in_b ? &c->expect->b[n] : &c->expect->a[n];
  switch (f->code) {
    case CT_DEV_PARITY:
      tb->spm->bad[read->addr] = true;
      return read->addr;
    case CT_DEV_SQUARE:
      if (n % 16 == 0) return spoil(tb, ctx, f, cmd, n + 1);
      tb->spm->e[read->addr] ^= 1;
      /* The word behind it may be bad as well, and come in the next cycle: it is not the first. */
      if (n % 16 != 15 && n % 2) tb->spm->bad[read[1].addr] = true;
      return read->addr;
    default: /* the window ends in front of the word */
      c->size = read->addr - c->base;
      return c->size;
  }
}

static void one_error(mxu_tb *tb, ct_rng *rng, unsigned victim, const fault *f) {
  mxu_tb_fill(tb);
  draw_policy(tb, rng);
  struct ct_cmd cmd = product(33, 3, 2);
  CT_PUT(&cmd, MM_A,
         kSpmWords / 4 + (f->in_b ? 0 : 2048)); /* the one with the fault lies above the other */
  CT_PUT(&cmd, MM_B, kSpmWords / 4 + (f->in_b ? 2048 : 0));
  if (f->in_b) CT_PUT(&cmd, MM_B_TRANS, f->trans);
  if (!f->in_b) CT_PUT(&cmd, MM_A_TRANS, f->trans);
  CT_PUT(&cmd, ALL_SIG1, CT_SEM(13));
  mxu_tb_load(tb, victim, kFree, &cmd, 1);
  load_random(tb, rng, !victim, kHandshake, 4, 50);
  const unsigned n = ct_rng_below(rng, 90);
  const uint32_t addr = spoil(tb, victim, f, &cmd, n);
  for (unsigned i = 0; i < 5000 && !tb->c[victim].err; ++i)
    mxu_tb_cycle(tb);
  assert_true(tb->c[victim].err);
  assert_int_equal(tb->c[victim].err_code, f->code);
  assert_int_equal(tb->c[victim].err_addr, addr);
  /* No second error, and the other context is not held up until the flush. */
  for (unsigned i = 0; i < 100 || !mxu_tb_done(tb, !victim); ++i) {
    assert_true(i < 50000);
    mxu_tb_cycle(tb);
  }
  assert_false(*tb->p.idle_o >> victim & 1);
  mxu_tb_flush(tb, victim, 1, true);
  tb->c[victim].size = kSpmWords / 2;
  mxu_tb_run(tb, 100000);
  mxu_tb_check_acc(tb, !victim);
}

static void errors_stop_one_context(void **state) {
  (void)state;
  static const fault faults[] = {
      {CT_DEV_PARITY, false, false},     {CT_DEV_PARITY, false, true},
      {CT_DEV_PARITY, true, false},      {CT_DEV_PARITY, true, true},
      {CT_DEV_SQUARE, false, true},      {CT_DEV_SQUARE, true, true},
      {CT_DEV_SPM_WINDOW, false, false}, {CT_DEV_SPM_WINDOW, true, false},
  };
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 20 + v, 15);
    ct_rng rng = ct_rng_make(1020 + v);
    tb->give_percent = 30;
    for (unsigned round = 0; round < 6; ++round)
      for (unsigned i = 0; i < sizeof faults / sizeof *faults; ++i)
        one_error(tb, &rng, (round + i) % 2, &faults[i]);
    mxu_tb_close(tb);
  }
}

/* Relative addresses count modulo 2^20: one below 0 is outside every window. */
static void window_wraps(void **state) {
  (void)state;
  mxu_tb *tb = mxu_tb_open(0, 30, 0);
  struct ct_cmd cmd = product(16, 2, 1);
  CT_PUT(&cmd, MM_A, 8);
  CT_PUT(&cmd, MM_AK, (uint32_t)-16 & 0xFFFF);
  struct ct_cmd legal = product(16, 2, 1);
  mxu_tb_load(tb, 0, kFree, &legal, 1);
  tb->c[0].cmds[0] = cmd;
  for (unsigned i = 0; i < 16; ++i)
    tb->c[0].expect->a[i].addr = 8 + i;
  for (unsigned i = 0; i < 200 && !tb->c[0].err; ++i)
    mxu_tb_cycle(tb);
  assert_true(tb->c[0].err);
  assert_int_equal(tb->c[0].err_code, CT_DEV_SPM_WINDOW);
  assert_int_equal(tb->c[0].err_addr, 0xFFFF8);
  mxu_tb_close(tb);
}

/* ---- semaphores ---- */

/* Where a k step and a tile wait for one semaphore, counts go in program order: to step 0, to the
 * tile, to step 1. */
static void counts_go_in_order(void **state) {
  (void)state;
  mxu_tb *tb = open_cleared(0, 35, 0);
  struct ct_cmd cmds[2] = {product(16, 2, 1), product(16, 1, 1)};
  for (unsigned i = 0; i < 2; ++i) {
    CT_PUT(&cmds[i], ALL_WAIT1, CT_SEM(i ? 4 : 3));
    CT_PUT(&cmds[i], ALL_WAIT2, CT_SEM(i ? 3 : 4));
  }
  CT_PUT(&cmds[0], ALL_WAIT0, CT_SEM(4));
  mxu_tb_load(tb, 0, kShared, cmds, 2);
  const unsigned counts[][2] = {{0, 0}, {1, 1}, {1, 2}, {2, 3}, {2, 4}, {3, 4}};
  const unsigned rows[] = {0, 0, 16, 32, 32, 48};
  memset(tb->c[0].owed, 0, sizeof tb->c[0].owed);
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
    tb->c[0].sem[3] = counts[i][0] - tb->c[0].taken[3];
    tb->c[0].sem[4] = counts[i][1] - tb->c[0].taken[4];
    for (unsigned t = 0; t < 100; ++t)
      mxu_tb_cycle(tb);
    assert_int_equal(tb->c[0].rows, rows[i]);
  }
  mxu_tb_run(tb, 1000);
  mxu_tb_check_acc(tb, 0);
  mxu_tb_close(tb);
}

/* ---- freeze ---- */

static void freeze_holds_operations(void **state) {
  (void)state;
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 40 + v, 0);
    const struct ct_cmd cmd = product(20, 6, 1);
    mxu_tb_load(tb, 0, kFree, &cmd, 1);
    for (unsigned i = 0; i < 100; ++i)
      mxu_tb_cycle(tb);
    *tb->p.freeze_i = 1;
    for (unsigned i = 0; i < 100; ++i)
      mxu_tb_cycle(tb);
    assert_true(tb->c[0].op_row == 0 && tb->c[0].op > 0 && tb->c[0].op < 6);
    const unsigned op = tb->c[0].op;
    *tb->p.freeze_i = 0;
    mxu_tb_cycle(tb);
    *tb->p.freeze_i = 1;
    for (unsigned i = 0; i < 100; ++i)
      mxu_tb_cycle(tb);
    assert_true(tb->c[0].op_row == 0 && tb->c[0].op == op + 1);
    *tb->p.freeze_i = 0;
    mxu_tb_run(tb, 10000);
    mxu_tb_check_acc(tb, 0);
    mxu_tb_close(tb);
  }
}

/* ---- throughput and interference ---- */

/* Rows a row slot, from the first row to the last. */
static double rate(const mxu_tb *tb, unsigned ctx) {
  const mxu_ctx *c = &tb->c[ctx];
  return (double)(c->rows - 1) * (16 / tb->p.cols) / (double)(c->last_row - c->first_row);
}

static double measure(mxu_tb *tb, struct ct_cmd cmd, unsigned times, unsigned trans) {
  struct ct_cmd cmds[kMaxCmds];
  CT_PUT(&cmd, MM_A_TRANS, trans & 1);
  CT_PUT(&cmd, MM_B_TRANS, trans >> 1);
  /* Operands in 1 KB each, or they would not fit. */
  CT_PUT(&cmd, MM_AK, 16);
  CT_PUT(&cmd, MM_BK, 16);
  for (unsigned i = 0; i < times; ++i)
    cmds[i] = cmd;
  mxu_tb_load(tb, 0, kFree, cmds, times);
  mxu_tb_load(tb, 1, kFree, cmds, 0);
  mxu_tb_run(tb, 100000);
  mxu_tb_check_acc(tb, 0);
  return rate(tb, 0);
}

static void full_rate(void **state) {
  (void)state;
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 50 + v, 0);
    for (unsigned i = 0; i < 20; ++i) {
      const unsigned trans = i % 4;
      tb->policy = i / 4;
      const double wide = measure(tb, product(64, 32, 2), 1, trans);
      const double narrow = measure(tb, product(16, 64, 1), 1, trans);
      const double chained = measure(tb, product(32, 1, 2), 20, trans);
      print_message(
          "%s, policy %u, trans %u: rows a slot %.4f (64 rows, Nt 2), %.4f (16 rows, Nt 1), %.4f "
          "(20 commands "
          "of 64 rows)\n",
          mxu_variant_names[v], tb->policy, trans, wide, narrow, chained);
      assert_true(wide >= 0.99);
      /* (A transposed tile of B every 20 cycles.) */
      assert_true(narrow >= (trans >> 1 && tb->p.cols == 16 ? 16.0 / 21 : 16.0 / 17));
      assert_true(chained >= 0.99);
    }
    mxu_tb_close(tb);
  }
}

/* Inference beside training: as fast as alone; training gets the slots between. */
static void beside_training(mxu_tb *tb, const char *what, struct ct_cmd inference) {
  struct ct_cmd training[16];
  const double alone = measure(tb, inference, 1, 0);
  CT_PUT(&inference, MM_AK, 16);
  CT_PUT(&inference, MM_BK, 16);
  for (unsigned i = 0; i < 16; ++i)
    training[i] = product(64, 8, 2);
  mxu_tb_load(tb, 0, kFree, &inference, 1);
  mxu_tb_load(tb, 1, kFree, training, 16);
  CT_TB_WHILE (!mxu_tb_done(tb, 0), 100000)
    mxu_tb_cycle(tb);
  const mxu_ctx *c = tb->c;
  const double both = rate(tb, 0);
  print_message(
      "16x%u, %s: %.4f rows a slot alone, %.4f beside training, which got %u rows; longest wait "
      "%u\n",
      tb->p.cols, what, alone, both, c[1].rows, c[0].max_wait_run);
  assert_true(both >= 0.99 * alone);
  assert_true(c[0].max_wait_run < 16 / tb->p.cols);
  assert_true(c[0].busy + c[1].busy >= 0.97 * (double)(c[0].last_row - c[0].first_row));
  mxu_tb_run(tb, 100000);
  mxu_tb_check_acc(tb, 0);
  mxu_tb_check_acc(tb, 1);
}

static void inference_beside_training(void **state) {
  (void)state;
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 60 + v, 0);
    beside_training(tb, "batch 1", product(1, 48, 2));
    beside_training(tb, "batch 8", product(8, 48, 2));
    beside_training(tb, "batch 64", product(64, 20, 2));
    mxu_tb_close(tb);
  }
}

/* Cycles of a product with A transposed, beside as many of training as it takes. */
static unsigned transposed_takes(mxu_tb *tb, unsigned trainings, unsigned at) {
  struct ct_cmd inference = product(64, 8, 2), training[16];
  CT_PUT(&inference, MM_A_TRANS, 1);
  for (unsigned i = 0; i < trainings; ++i) {
    training[i] = product(64, 8, 2);
    CT_PUT(&training[i], MM_A_TRANS, 1);
  }
  mxu_tb_load(tb, 1, kFree, training, trainings);
  for (unsigned i = 0; i < at; ++i)
    mxu_tb_cycle(tb);
  mxu_tb_load(tb, 0, kFree, &inference, 1);
  unsigned cycles = 0;
  CT_TB_WHILE (!mxu_tb_done(tb, 0), 100000) {
    mxu_tb_cycle(tb);
    ++cycles;
  }
  assert_true(!trainings || !mxu_tb_done(tb, 1));
  mxu_tb_run(tb, 100000);
  for (unsigned c = 0; c < 2; ++c)
    mxu_tb_check_acc(tb, c);
  return cycles;
}

/* Inference waits for a buffer of the transposer once, and not for each of its tiles. */
static void transposed_beside_training(void **state) {
  (void)state;
  enum { kWait = 32 };
  for (unsigned v = 0; v < kWidths; ++v) {
    mxu_tb *tb = open_cleared(v, 65 + v, 0);
    const unsigned alone = transposed_takes(tb, 0, 0);
    unsigned most = 0;
    for (unsigned at = 100; at < 140; ++at) {
      const unsigned beside = transposed_takes(tb, 16, at);
      if (beside > most) most = beside;
    }
    print_message("16x%u, A transposed: %u cycles alone, %u beside training at most\n", tb->p.cols,
                  alone, most);
    assert_in_range(most, alone, alone + kWait);
    mxu_tb_close(tb);
  }
}

/* Both multiply transposed tiles all the time: the transposer's buffers go in turn, so that each
 * has its part of the rows under every policy. */
static void transposed_shares(void **state) {
  (void)state;
  static const struct {
    unsigned policy, floor, least; /* 1/256 of the rows for training */
  } cases[] = {{0, 64, 60}, {0, 128, 120}, {1, 0, 120}, {2, 0, 120}, {3, 0, 120}, {4, 0, 120}};
  for (unsigned i = 0; i < kWidths * sizeof cases / sizeof *cases; ++i) {
    mxu_tb *tb = open_cleared(i % kWidths, 90 + i, 0);
    struct ct_cmd cmds[20];
    for (unsigned k = 0; k < 20; ++k) {
      cmds[k] = product(64, 16, 1);
      CT_PUT(&cmds[k], MM_A_TRANS, 1);
    }
    tb->policy = cases[i / kWidths].policy;
    tb->floor = cases[i / kWidths].floor;
    for (unsigned c = 0; c < 2; ++c)
      mxu_tb_load(tb, c, kFree, cmds, 20);
    for (unsigned n = 0; n < 10000; ++n)
      mxu_tb_cycle(tb);
    const double got = tb->c[1].rows, all = got + tb->c[0].rows;
    print_message("16x%u, policy %u, floor %u, A transposed: training has %.1f / 256 of the rows\n",
                  tb->p.cols, tb->policy, tb->floor, 256 * got / all);
    assert_true(256 * got / all >= cases[i / kWidths].least &&
                256 * got / all <= cases[i / kWidths].least + 8);
    mxu_tb_close(tb);
  }
}

/* While both have rows all the time, a floor of F gives training F/256 of them. */
static void floor_is_the_share_of_rows(void **state) {
  (void)state;
  static const uint8_t floors[] = {0, 16, 64, 128};
  for (unsigned i = 0; i < kWidths * sizeof floors; ++i) {
    mxu_tb *tb = open_cleared(i % kWidths, 70 + i % kWidths, 0);
    const unsigned floor = floors[i / kWidths];
    tb->floor = floor;
    struct ct_cmd products[8];
    for (unsigned n = 0; n < 8; ++n)
      products[n] = product(64, 20, 2);
    for (unsigned c = 0; c < 2; ++c)
      mxu_tb_load(tb, c, kFree, products, 8);
    for (unsigned n = 0; n < 500; ++n)
      mxu_tb_cycle(tb);
    const unsigned inf = tb->c[0].rows, trn = tb->c[1].rows;
    for (unsigned n = 0; n < 12000; ++n)
      mxu_tb_cycle(tb);
    assert_false(mxu_tb_done(tb, 0) || mxu_tb_done(tb, 1));
    const double got = tb->c[1].rows - trn, all = got + tb->c[0].rows - inf;
    print_message("16x%u, floor %u: training has %.1f / 256 of the rows, %.4f rows a slot\n",
                  tb->p.cols, floor, 256 * got / all, all * (16 / tb->p.cols) / 12000);
    assert_true(all * (16 / tb->p.cols) >= 0.97 * 12000);
    assert_true(got >= all * (floor - 1.) / 256 && got <= all * (floor + 1.) / 256);
    assert_true(floor || got == 0);
    mxu_tb_run(tb, 200000);
    for (unsigned c = 0; c < 2; ++c)
      mxu_tb_check_acc(tb, c);
    mxu_tb_close(tb);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_programs),
      cmocka_unit_test(sums_are_complete_before_they_are_used),
      cmocka_unit_test(flush_leaves_the_other_alone),
      cmocka_unit_test(errors_stop_one_context),
      cmocka_unit_test(window_wraps),
      cmocka_unit_test(counts_go_in_order),
      cmocka_unit_test(freeze_holds_operations),
      cmocka_unit_test(full_rate),
      cmocka_unit_test(inference_beside_training),
      cmocka_unit_test(transposed_beside_training),
      cmocka_unit_test(floor_is_the_share_of_rows),
      cmocka_unit_test(transposed_shares),
  };
  return cmocka_run_group_tests_name("ct_mxu", tests, NULL, NULL);
}
