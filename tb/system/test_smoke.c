/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole core, by hand-made programs: one product from memory to memory in each context, then
 * every way to stop a job, and what the other context feels of it.
 */
#include <math.h>
#include <string.h>

#include "ct_rig.h"
#include "host/transports/sim/ct_sim.h"

enum { kLimit = 100000, kTileBytes = 272, kTile = 16 };

typedef struct {
  uint8_t exponent[kTile];
  int8_t q[kTile][kTile]; /* row by row */
} tile;

static const struct {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *(*error)(void *self);
} cores[] = {{"16x16", &ct_core_sim, ct_core_sim_error},
             {"16x8", &ct_core_16x8_sim, ct_core_16x8_sim_error},
             {"16x4", &ct_core_16x4_sim, ct_core_16x4_sim_error}};
enum { kCores = sizeof cores / sizeof *cores };

static void open_core(struct ct_rig *rig, unsigned core, const char *args) {
  ct_rig_open(rig, cores[core].name, cores[core].ops, cores[core].error, args);
}

/* ---- Programs ------------------------------------------------------------------------------ */

static struct ct_cmd *append(struct ct_gen_prog *p, unsigned code) {
  struct ct_cmd *cmd = &p->cmds[p->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static void append_load(struct ct_gen_prog *p, unsigned reg, unsigned spm, unsigned sem) {
  struct ct_cmd *cmd = append(p, CT_OP_LD);
  CT_PUT(cmd, DMA_DRAM_REG, reg);
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_HDR, 1);
  CT_PUT(cmd, DMA_NB, kTile);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_N1, 1);
  CT_PUT(cmd, DMA_N2, 1);
  CT_PUT(cmd, ALL_SIG0, CT_SEM(sem));
}

/* r1: tile A, r2: tile B, r3: the FP32 result, all DRAM addresses. Every semaphore is left at zero.
 */
static void append_product(struct ct_gen_prog *p) {
  append_load(p, 1, 0, 0);
  append_load(p, 2, 16, 1);
  struct ct_cmd *mm = append(p, CT_OP_MM);
  CT_PUT(mm, MM_B, 16);
  CT_PUT(mm, MM_KT, 1);
  CT_PUT(mm, MM_NT, 1);
  CT_PUT(mm, MM_ROWS, kTile);
  CT_PUT(mm, MM_ACC, 5);
  CT_PUT(mm, ALL_WAIT0, CT_SEM(0));
  CT_PUT(mm, ALL_WAIT1, CT_SEM(1));
  CT_PUT(mm, ALL_SIG1, CT_SEM(2));
  struct ct_cmd *va = append(p, CT_OP_VA);
  CT_PUT(va, VA_TD, 3);
  CT_PUT(va, VA_TA, 5);
  CT_PUT(va, VA_A_SRC, 1);
  CT_PUT(va, VA_ROWS, kTile);
  CT_PUT(va, VA_COLS, kTile);
  CT_PUT(va, ALL_WAIT0, CT_SEM(2));
  CT_PUT(va, ALL_SIG0, CT_SEM(3));
  struct ct_cmd *vs = append(p, CT_OP_VS);
  CT_PUT(vs, VS_TS, 3);
  CT_PUT(vs, VS_SPM, 32);
  CT_PUT(vs, VS_ROW_STRIDE, 4);
  CT_PUT(vs, VS_ROWS, kTile);
  CT_PUT(vs, ALL_WAIT0, CT_SEM(3));
  CT_PUT(vs, ALL_SIG0, CT_SEM(4));
  struct ct_cmd *st = append(p, CT_OP_ST);
  CT_PUT(st, DMA_DRAM_REG, 3);
  CT_PUT(st, DMA_SPM, 32);
  CT_PUT(st, DMA_NB, 64);
  CT_PUT(st, DMA_S0, 1);
  CT_PUT(st, DMA_N1, 1);
  CT_PUT(st, DMA_N2, 1);
  CT_PUT(st, ALL_WAIT0, CT_SEM(4));
}

static void set_args(struct ct_gen_prog *p, unsigned ctx) {
  p->args[0] = ct_rig_unit(ctx, CT_RIG_IN);
  p->args[1] = ct_rig_unit(ctx, CT_RIG_IN + kTileBytes);
  p->args[2] = ct_rig_unit(ctx, CT_RIG_OUT);
}

static struct ct_gen_prog product_program(unsigned ctx) {
  struct ct_gen_prog p = {.count = 0};
  set_args(&p, ctx);
  append_product(&p);
  append(&p, CT_OP_END);
  return p;
}

/* A command that waits for ever, with another one behind it. */
static struct ct_gen_prog hanging_program(void) {
  struct ct_gen_prog p = {.count = 0};
  for (unsigned i = 0; i < 2; ++i) {
    struct ct_cmd *cmd = append(&p, CT_OP_VL);
    CT_PUT(cmd, VL_ROWS, 1);
    CT_PUT(cmd, ALL_WAIT0, CT_SEM(7));
  }
  append(&p, CT_OP_END);
  return p;
}

/* Loads one tile again and again: memory traffic for a while. */
static struct ct_gen_prog long_program(unsigned ctx, unsigned passes) {
  struct ct_gen_prog p = {.count = 0};
  set_args(&p, ctx);
  struct ct_cmd *loop = append(&p, CT_OP_LOOP);
  CT_PUT(loop, CTL_COUNT, passes);
  append_load(&p, 1, 0, 0);
  struct ct_cmd *vl = append(&p, CT_OP_VL);
  CT_PUT(vl, VL_MODE, 1);
  CT_PUT(vl, VL_ROWS, kTile);
  CT_PUT(vl, VL_ROW_STRIDE, 1);
  CT_PUT(vl, ALL_WAIT0, CT_SEM(0));
  append(&p, CT_OP_ENDL);
  append(&p, CT_OP_END);
  return p;
}

static void submit(struct ct_rig *rig, unsigned ctx, const struct ct_gen_prog *p, uint32_t tag) {
  const struct ct_rig_job job = {.prog = p, .tag = tag, .version = ~tag};
  ct_rig_submit(rig, ctx, &job);
  ct_rig_ring(rig, ctx);
}

static struct ct_rig_cpl reap(struct ct_rig *rig, unsigned ctx, uint32_t tag, uint32_t code) {
  const struct ct_rig_cpl c = ct_rig_reap(rig, ctx, kLimit);
  assert_int_equal(c.tag, tag);
  assert_int_equal(c.version, ~tag);
  assert_int_equal(c.code, code);
  assert_true(c.arrive < c.start && c.start < c.end);
  return c;
}

/* ---- Data ---------------------------------------------------------------------------------- */

static void random_tile(ct_rng *rng, tile *t) {
  for (unsigned r = 0; r < kTile; ++r) {
    t->exponent[r] = (uint8_t)(110 + ct_rng_below(rng, 30));
    for (unsigned i = 0; i < kTile; ++i)
      t->q[r][i] = (int8_t)((int)ct_rng_below(rng, 255) - 127);
  }
}

/* Two tiles into the input area, and their product (one block of 16: every step is exact). */
static void put_tiles(struct ct_rig *rig, unsigned ctx, ct_rng *rng, float want[kTile][kTile]) {
  tile t[2];
  random_tile(rng, &t[0]);
  random_tile(rng, &t[1]);
  assert_int_equal(sizeof t, 2 * kTileBytes);
  rig->ops->mem_write(rig->self, ct_rig_addr(ctx, CT_RIG_IN), t, sizeof t);
  const uint8_t zero[4 * kTile * kTile] = {0};
  rig->ops->mem_write(rig->self, ct_rig_addr(ctx, CT_RIG_OUT), zero, sizeof zero);
  for (unsigned r = 0; r < kTile; ++r) {
    for (unsigned c = 0; c < kTile; ++c) {
      int sum = 0;
      for (unsigned i = 0; i < kTile; ++i)
        sum += t[0].q[r][i] * t[1].q[c][i];
      want[r][c] = ldexpf((float)sum, t[0].exponent[r] + t[1].exponent[c] - 266);
    }
  }
}

static void check_result(struct ct_rig *rig, unsigned ctx, float want[kTile][kTile]) {
  float got[kTile][kTile];
  rig->ops->mem_read(rig->self, ct_rig_addr(ctx, CT_RIG_OUT), got, sizeof got);
  ct_assert_same("product", got, want, sizeof got);
}

/* One product in context ctx, checked: the context works. */
static void check_works(struct ct_rig *rig, unsigned ctx) {
  static const uint32_t tag = 0xABCD0123;
  ct_rng rng = ct_rng_make(99 + ctx);
  float want[kTile][kTile];
  put_tiles(rig, ctx, &rng, want);
  const struct ct_gen_prog p = product_program(ctx);
  submit(rig, ctx, &p, tag);
  const struct ct_rig_cpl c = reap(rig, ctx, tag, CT_DEV_OK);
  assert_int_equal(c.addr, 0);
  assert_int_equal(c.rows, kTile);
  check_result(rig, ctx, want);
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void products(void **state) {
  (void)state;
  static const char *const memories[] = {"dram=8", "dram=8,latency=5,stall=40,seed=3",
                                         "dram=8,latency=200,bandwidth=2"};
  for (unsigned k = 0; k < kCores; ++k) {
    for (unsigned m = 0; m < 3; ++m) {
      struct ct_rig rig;
      open_core(&rig, k, memories[m]);
      check_works(&rig, 0);
      check_works(&rig, 1);
      for (unsigned c = 0; c < 2; ++c) {
        assert_int_equal(ct_rig_counter(&rig, c, CT_CNT_JOBS), 1);
        assert_int_equal(ct_rig_counter(&rig, c, CT_CNT_MXU_ROWS), kTile);
        assert_int_equal(ct_rig_counter(&rig, c, CT_CNT_CMDS), 7);
        assert_int_equal(ct_rig_counter(&rig, c, CT_CNT_ST_BEATS), 64);
      }
      ct_rig_close(&rig);
    }
  }
}

/* Both contexts at once, under every policy. */
static void both(void **state) {
  (void)state;
  for (unsigned k = 0; k < kCores; ++k) {
    struct ct_rig rig;
    open_core(&rig, k, "dram=8");
    ct_rng rng = ct_rng_make(5);
    for (unsigned policy = 0; policy < 4; ++policy) {
      float want[2][kTile][kTile];
      ct_rig_write(&rig, CT_REG_POLICY, policy);
      const struct ct_gen_prog p0 = product_program(0), p1 = product_program(1);
      put_tiles(&rig, 0, &rng, want[0]);
      put_tiles(&rig, 1, &rng, want[1]);
      submit(&rig, 1, &p1, 11);
      submit(&rig, 0, &p0, 22);
      const struct ct_rig_cpl c0 = reap(&rig, 0, 22, CT_DEV_OK);
      const struct ct_rig_cpl c1 = reap(&rig, 1, 11, CT_DEV_OK);
      check_result(&rig, 0, want[0]);
      check_result(&rig, 1, want[1]);
      if (policy == 3)
        assert_true(c0.start >= c1.end); /* one job after the other, in order of arrival */
      else
        assert_true(c0.start < c1.end);
    }
    ct_rig_close(&rig);
  }
}

static void illegal(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  struct ct_gen_prog p = product_program(0);
  CT_PUT(&p.cmds[2], MM_NT, 9);
  submit(&rig, 0, &p, 1);
  assert_int_equal(reap(&rig, 0, 1, CT_DEV_ILLEGAL).addr, 2);
  check_works(&rig, 0);

  p = product_program(0);
  p.count--; /* no END */
  submit(&rig, 0, &p, 2);
  assert_int_equal(reap(&rig, 0, 2, CT_DEV_ILLEGAL).addr, p.count);
  check_works(&rig, 0);

  const struct ct_rig_job reserved = {.prog = &p, .tag = 3, .version = ~UINT32_C(3), .flags = 4};
  ct_rig_submit(&rig, 0, &reserved);
  ct_rig_ring(&rig, 0);
  assert_int_equal(reap(&rig, 0, 3, CT_DEV_DESCRIPTOR).addr, CT_DESC_FLAGS);
  check_works(&rig, 0);
  check_works(&rig, 1);
  ct_rig_close(&rig);
}

static void windows(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  struct ct_gen_prog p = product_program(0);
  p.args[1] = ct_rig_unit(1, CT_RIG_IN);
  submit(&rig, 0, &p, 1);
  assert_int_equal(reap(&rig, 0, 1, CT_DEV_DRAM_READ_WINDOW).addr, p.args[1]);
  p = product_program(0);
  p.args[2] = ct_rig_unit(0, CT_RIG_OUT) - 1;
  submit(&rig, 0, &p, 2);
  assert_int_equal(reap(&rig, 0, 2, CT_DEV_DRAM_WRITE_WINDOW).addr, p.args[2]);
  p = product_program(0);
  CT_PUT(&p.cmds[2], MM_A, CT_GEN_SPM);
  submit(&rig, 0, &p, 3);
  assert_int_equal(reap(&rig, 0, 3, CT_DEV_SPM_WINDOW).addr, CT_GEN_SPM);
  /* A descriptor outside the window: the job has no tag. */
  ct_rig_cwrite(&rig, 0, CT_CREG_RING_BASE, ct_rig_unit(1, 0));
  ct_rig_submit(&rig, 0, &(struct ct_rig_job){.prog = &p});
  ct_rig_ring(&rig, 0);
  const struct ct_rig_cpl c = ct_rig_reap(&rig, 0, kLimit);
  assert_int_equal(c.code, CT_DEV_DRAM_READ_WINDOW);
  assert_int_equal(c.tag, 0);
  ct_rig_cwrite(&rig, 0, CT_CREG_RING_BASE, ct_rig_unit(0, 0));
  check_works(&rig, 0);
  ct_rig_close(&rig);
}

static void cancel_and_watchdog(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  const struct ct_gen_prog hang = hanging_program();
  for (unsigned c = 0; c < 2; ++c) {
    submit(&rig, c, &hang, 1);
    ct_rig_pass(&rig, 1000);
    assert_int_equal(ct_rig_cread(&rig, c, CT_CREG_STATUS) & 7, 4); /* draining: END is past */
    ct_rig_cwrite(&rig, c, CT_CREG_CONTROL, 2);
    reap(&rig, c, 1, CT_DEV_CANCELLED);
    check_works(&rig, c);

    const struct ct_rig_job job = {
        .prog = &hang, .tag = 2, .version = ~UINT32_C(2), .watchdog = 700};
    ct_rig_submit(&rig, c, &job);
    ct_rig_ring(&rig, c);
    struct ct_rig_cpl done = reap(&rig, c, 2, CT_DEV_WATCHDOG);
    assert_int_equal(done.addr, 3);
    assert_in_range(done.end - done.start, 700, 800);
    check_works(&rig, c);

    ct_rig_cwrite(&rig, c, CT_CREG_WATCHDOG, 900);
    submit(&rig, c, &hang, 3);
    done = reap(&rig, c, 3, CT_DEV_WATCHDOG);
    assert_in_range(done.end - done.start, 900, 1000);
    ct_rig_cwrite(&rig, c, CT_CREG_WATCHDOG, 0);
    check_works(&rig, c);
  }
  ct_rig_close(&rig);
}

/* A soft reset of one context while the other one works: at any time, the other feels nothing. */
static void reset_one(void **state) {
  (void)state;
  for (unsigned k = 0; k < kCores; ++k) {
    struct ct_rig rig;
    open_core(&rig, k, "dram=8,stall=10");
    ct_rng rng = ct_rng_make(17);
    for (unsigned i = 0; i < 20; ++i) {
      const unsigned victim = i % 2, other = 1 - victim;
      float want[kTile][kTile];
      put_tiles(&rig, other, &rng, want);
      const struct ct_gen_prog busy = long_program(victim, 1000), good = product_program(other);
      submit(&rig, victim, &busy, 100 + i);
      submit(&rig, victim, &busy, 200 + i); /* dropped by the reset */
      ct_rig_pass(&rig, ct_rng_below(&rng, i < 10 ? 150 : 1500));
      submit(&rig, other, &good, 300 + i);
      ct_rig_pass(&rig, ct_rng_below(&rng, 300));
      ct_rig_cwrite(&rig, victim, CT_CREG_CONTROL, 1);
      reap(&rig, victim, 100 + i, CT_DEV_RESET);
      reap(&rig, other, 300 + i, CT_DEV_OK);
      check_result(&rig, other, want);
      assert_int_equal(ct_rig_cread(&rig, victim, CT_CREG_STATUS), 0);
      check_works(&rig, victim);
    }
    ct_rig_close(&rig);
  }
}

/* The memory never answers one address: the job ends with DEAD, the other context goes on, and when
 * the memory answers after all, so does this one. */
static void dead_port(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  ct_rig_write(&rig, CT_REG_DRAIN_LIMIT, 2000);
  rig.ops->fault(rig.self, CT_FAULT_AXI_HANG, ct_rig_addr(0, CT_RIG_IN));
  const struct ct_gen_prog p = product_program(0);
  submit(&rig, 0, &p, 1);
  ct_rig_pass(&rig, 500);
  assert_int_equal(ct_rig_cread(&rig, 0, CT_CREG_CPL_COUNT), 0);
  ct_rig_cwrite(&rig, 0, CT_CREG_CONTROL, 2);
  reap(&rig, 0, 1, CT_DEV_DEAD);
  assert_int_equal(ct_rig_read(&rig, CT_REG_DEAD), 1);
  assert_int_equal(ct_rig_cread(&rig, 0, CT_CREG_STATUS) & 7, 5);
  check_works(&rig, 1);
  rig.ops->fault(rig.self, CT_FAULT_NONE, 0);
  check_works(&rig, 0);
  check_works(&rig, 1);
  ct_rig_close(&rig);
}

/* Slave errors on read and write. */
static void bus_errors(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  const struct ct_gen_prog p = product_program(0);
  rig.ops->fault(rig.self, CT_FAULT_AXI_READ, ct_rig_addr(0, CT_RIG_IN + kTileBytes));
  submit(&rig, 0, &p, 1);
  assert_int_equal(reap(&rig, 0, 1, CT_DEV_AXI_READ).addr, p.args[1]);
  check_works(&rig, 0);
  rig.ops->fault(rig.self, CT_FAULT_AXI_WRITE, ct_rig_addr(0, CT_RIG_OUT + 16 * 16));
  submit(&rig, 0, &p, 2);
  reap(&rig, 0, 2, CT_DEV_AXI_WRITE);
  check_works(&rig, 0);
  ct_rig_close(&rig);
}

static void global_reset(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  ct_rng rng = ct_rng_make(23);
  for (unsigned i = 0; i < 12; ++i) {
    const struct ct_gen_prog p0 = long_program(0, 1000), p1 = long_program(1, 1000);
    check_works(&rig, i % 2);
    ct_rig_write(&rig, CT_REG_POLICY, 1);
    submit(&rig, 0, &p0, 1);
    submit(&rig, 1, &p1, 2);
    ct_rig_pass(&rig, ct_rng_below(&rng, 600));
    ct_rig_write(&rig, CT_REG_CTRL, 1);
    for (unsigned n = 0; ct_rig_read(&rig, CT_REG_CTRL) & 1; ++n)
      assert_true(n < 1000);
    assert_int_equal(ct_rig_read(&rig, CT_REG_POLICY), 0);
    assert_int_equal(ct_rig_read(&rig, CT_REG_IRQ_STATUS), 0);
    assert_int_equal(ct_rig_cread(&rig, 0, CT_CREG_HEAD), 0);
    assert_int_equal(ct_rig_counter(&rig, 0, CT_CNT_JOBS), 0);
    assert_int_equal(ct_rig_counter(&rig, 1, CT_CNT_LD_BEATS), 0);
    ct_rig_setup(&rig);
  }
  check_works(&rig, 0);
  check_works(&rig, 1);
  ct_rig_close(&rig);
}

/* Frozen, nothing moves; step by step, it does. */
static void freeze(void **state) {
  (void)state;
  struct ct_rig rig;
  open_core(&rig, 0, "dram=8");
  ct_rng rng = ct_rng_make(31);
  float want[kTile][kTile];
  put_tiles(&rig, 1, &rng, want);
  const struct ct_gen_prog p = product_program(1);
  ct_rig_write(&rig, CT_REG_CTRL, 2);
  submit(&rig, 1, &p, 7);
  ct_rig_pass(&rig, 3000);
  assert_int_equal(ct_rig_cread(&rig, 1, CT_CREG_CPL_COUNT), 0);
  unsigned steps = 0;
  for (; !ct_rig_cread(&rig, 1, CT_CREG_CPL_COUNT) && steps < 500; ++steps) {
    ct_rig_write(&rig, CT_REG_CTRL, 6);
    ct_rig_pass(&rig, 200);
  }
  assert_in_range(steps, 5, 100);
  reap(&rig, 1, 7, CT_DEV_OK);
  check_result(&rig, 1, want);
  submit(&rig, 1, &p, 8);
  ct_rig_pass(&rig, 500);
  assert_int_equal(ct_rig_cread(&rig, 1, CT_CREG_CPL_COUNT), 0);
  ct_rig_write(&rig, CT_REG_CTRL, 0);
  reap(&rig, 1, 8, CT_DEV_OK);
  ct_rig_close(&rig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(both),
      cmocka_unit_test(illegal),
      cmocka_unit_test(windows),
      cmocka_unit_test(cancel_and_watchdog),
      cmocka_unit_test(reset_one),
      cmocka_unit_test(dead_port),
      cmocka_unit_test(bus_errors),
      cmocka_unit_test(global_reset),
      cmocka_unit_test(freeze),
  };
  return cmocka_run_group_tests_name("smoke", tests, NULL, NULL);
}
