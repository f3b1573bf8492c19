/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training can do to a job of inference under each policy and floor: programs made to be in
 * the way, in one unit each. Every job of inference ends within its time alone and the bounds of
 * docs/architecture.md; under JOB, when the other job is over.
 */
#include <stdio.h>
#include <string.h>

#include "ct_rig.h"
#include "host/transports/sim/ct_sim.h"

enum {
  kCap = 8,        /* TRAIN_CAP */
  kPasses = 60000, /* of loops that outlast every test */
  kWatchdog = 20000,
  kWords = 1024, /* of a context's window */
  kBurst = 17,
  kJob = 3, /* the policy */
};

static const struct {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *(*error)(void *self);
  unsigned banks;
} cores[] = {{"16x16", &ct_core_sim, ct_core_sim_error, 8},
             {"16x8", &ct_core_16x8_sim, ct_core_16x8_sim_error, 4}};
enum { kCores = sizeof cores / sizeof *cores };

/* The second one keeps every bank as busy as it can. */
static const char *const memories[] = {"dram=8", "dram=8,latency=8"};

static const unsigned floors[] = {0, 1, 64, 128, 200, 255};

/* ---- Commands ------------------------------------------------------------------------------ */

static struct ct_cmd *append(struct ct_gen_prog *p, unsigned code) {
  struct ct_cmd *cmd = &p->cmds[p->count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

static void append_loop(struct ct_gen_prog *p) {
  CT_PUT(append(p, CT_OP_LOOP), CTL_COUNT, kPasses);
}

static void append_end(struct ct_gen_prog *p, bool loop) {
  if (loop) append(p, CT_OP_ENDL);
  append(p, CT_OP_END);
}

/* A run of nb raw words, n1 times over the same units of DRAM, as one step. */
static struct ct_cmd *append_dma(struct ct_gen_prog *p, unsigned code, unsigned nb, unsigned n1,
                                 unsigned s0) {
  struct ct_cmd *cmd = append(p, code);
  CT_PUT(cmd, DMA_DRAM_REG, code == CT_OP_LD ? 1 : 2);
  CT_PUT(cmd, DMA_NB, nb);
  CT_PUT(cmd, DMA_S0, s0);
  CT_PUT(cmd, DMA_N1, n1);
  CT_PUT(cmd, DMA_N2, 1);
  return cmd;
}

static struct ct_cmd *append_mm(struct ct_gen_prog *p, unsigned rows, bool trans) {
  struct ct_cmd *cmd = append(p, CT_OP_MM);
  CT_PUT(cmd, MM_A, 512);
  CT_PUT(cmd, MM_A_TRANS, trans);
  CT_PUT(cmd, MM_B, 256);
  CT_PUT(cmd, MM_KT, 1);
  CT_PUT(cmd, MM_NT, 1);
  CT_PUT(cmd, MM_ROWS, rows);
  return cmd;
}

static struct ct_cmd *append_vl(struct ct_gen_prog *p, unsigned stride) {
  struct ct_cmd *cmd = append(p, CT_OP_VL);
  CT_PUT(cmd, VL_MODE, 1);
  CT_PUT(cmd, VL_ROWS, 16);
  CT_PUT(cmd, VL_ROW_STRIDE, stride);
  return cmd;
}

static struct ct_cmd *append_vs(struct ct_gen_prog *p, unsigned stride) {
  struct ct_cmd *cmd = append(p, CT_OP_VS);
  CT_PUT(cmd, VS_MODE, 1);
  CT_PUT(cmd, VS_ROWS, 16);
  CT_PUT(cmd, VS_ROW_STRIDE, stride);
  return cmd;
}

static struct ct_cmd *append_va(struct ct_gen_prog *p, unsigned rows) {
  struct ct_cmd *cmd = append(p, CT_OP_VA);
  CT_PUT(cmd, VA_TD, 1);
  CT_PUT(cmd, VA_A_SRC, 1);
  CT_PUT(cmd, VA_ROWS, rows);
  CT_PUT(cmd, VA_COLS, 16);
  return cmd;
}

/* ---- What is in the way, and of what ------------------------------------------------------- */

/* A product of two row tiles with one count for its two Wait2. */
static void hung_product(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  CT_PUT(append_vl(p, 1), ALL_SIG0, CT_SEM(6));
  CT_PUT(append_mm(p, 32, false), ALL_WAIT2, CT_SEM(6));
  append_end(p, false);
}

static void products(struct ct_gen_prog *p, bool trans) {
  append_loop(p);
  append_mm(p, 128, trans);
  append_end(p, true);
}

static void rows_of_a(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  products(p, false);
}

static void turned_tiles(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  products(p, true);
}

static void stores_from_a_bank(struct ct_gen_prog *p, unsigned banks) {
  append_loop(p);
  append_dma(p, CT_OP_ST, 64, 4095, banks);
  append_end(p, true);
}

static void loads_to_a_bank(struct ct_gen_prog *p, unsigned banks) {
  append_loop(p);
  append_dma(p, CT_OP_LD, 64, 4095, banks);
  append_end(p, true);
}

static void one_row_tiles(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  append_loop(p);
  append_va(p, 1);
  append_end(p, true);
}

static void tiles_from_a_bank(struct ct_gen_prog *p, unsigned banks) {
  append_loop(p);
  append_vl(p, banks);
  append_vs(p, banks);
  append_va(p, 16);
  append_end(p, true);
}

static void one_product(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  append_mm(p, 16, false);
}

static void one_turned(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  append_mm(p, 16, true);
}

static void one_load(struct ct_gen_prog *p, unsigned banks) {
  append_dma(p, CT_OP_LD, 16, 1, banks);
}

static void one_store(struct ct_gen_prog *p, unsigned banks) {
  append_dma(p, CT_OP_ST, 16, 1, banks);
}

static void one_vl(struct ct_gen_prog *p, unsigned banks) {
  append_vl(p, banks);
}

static void one_vs(struct ct_gen_prog *p, unsigned banks) {
  append_vs(p, banks);
}

static void one_va(struct ct_gen_prog *p, unsigned banks) {
  (void)banks;
  append_va(p, 16);
}

typedef void (*maker)(struct ct_gen_prog *p, unsigned banks);

static const struct {
  const char *training, *inference;
  maker make[2]; /* inference, training */
} pairs[] = {
    {"a hung product", "a product", {one_product, hung_product}},
    {"products", "a product", {one_product, rows_of_a}},
    {"transposed products", "a transposed product", {one_turned, turned_tiles}},
    {"stores from one bank", "a VL of that bank", {one_vl, stores_from_a_bank}},
    {"stores from one bank", "a product", {one_product, stores_from_a_bank}},
    {"stores from one bank", "a store of that bank", {one_store, stores_from_a_bank}},
    {"loads to one bank", "a VS to that bank", {one_vs, loads_to_a_bank}},
    {"loads to one bank", "a load", {one_load, loads_to_a_bank}},
    {"VA, VL and VS of one bank", "a VL of that bank", {one_vl, tiles_from_a_bank}},
    {"VA, VL and VS of one bank", "a VS to that bank", {one_vs, tiles_from_a_bank}},
    {"VA, VL and VS of one bank", "a VA", {one_va, tiles_from_a_bank}},
    {"VA of one row each", "a VL", {one_vl, one_row_tiles}},
    {"VA of one row each", "a VA", {one_va, one_row_tiles}},
};
enum { kPairs = sizeof pairs / sizeof *pairs };

/* ---- The bound ----------------------------------------------------------------------------- */

/* Units that serve training in turn with inference give it at most that many slots in a row. */
static unsigned in_a_row(unsigned policy, unsigned floor) {
  if (policy == 0 && floor == 0) return 0;
  const unsigned k = floor ? (floor + 255 - floor) / (256 - floor) : 1;
  return policy == 0 || (policy == 4 && floor) ? k : 1;
}

/* Three reads at most (descriptor, program, a load) and an operation of the other queues: each
 * waits for what is under way, and for k slots; 16 words wait for their banks. With 4 lanes a slot
 * of the VPU has 256 cycles at most. */
static uint64_t bound(unsigned policy, unsigned floor) {
  const uint64_t k = in_a_row(policy, floor);
  const uint64_t reads = 3 * (kBurst * kCap + 1 + k * (kBurst + 1));
  const uint64_t slot = 256 * (1 + k);
  const uint64_t words = 16 * (4 + k) + (k ? 2 * (32 + kBurst * (8 + kCap)) + 16 * (16 + 43) : 100);
  return reads + slot + words;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void open_core(struct ct_rig *rig, unsigned core, const char *memory) {
  ct_rig_open(rig, cores[core].name, cores[core].ops, cores[core].error, memory);
  ct_rig_write(rig, CT_REG_TRAIN_CAP, kCap);
  /* Word 0 of both windows lies in bank 0. */
  for (unsigned c = 0; c < 2; ++c) {
    ct_rig_cwrite(rig, c, CT_CREG_SPM_BASE, 2048 * c);
    ct_rig_cwrite(rig, c, CT_CREG_SPM_SIZE, kWords);
  }
}

static struct ct_gen_prog make_prog(unsigned pair, unsigned ctx, unsigned banks) {
  struct ct_gen_prog p = {.count = 0};
  p.args[0] = ct_rig_unit(ctx, CT_RIG_IN);
  p.args[1] = ct_rig_unit(ctx, CT_RIG_OUT);
  pairs[pair].make[ctx](&p, banks);
  if (ctx == 0) append_end(&p, false);
  return p;
}

static void submit(struct ct_rig *rig, unsigned ctx, const struct ct_gen_prog *p) {
  const struct ct_rig_job job = {.prog = p, .tag = ctx, .watchdog = ctx ? kWatchdog : 0};
  ct_rig_submit(rig, ctx, &job);
  ct_rig_ring(rig, ctx);
}

/* Cycles from the doorbell to the end. */
static uint64_t run(struct ct_rig *rig, const struct ct_gen_prog *p, uint64_t limit) {
  submit(rig, 0, p);
  const struct ct_rig_cpl c = ct_rig_reap(rig, 0, limit);
  assert_int_equal(c.code, CT_DEV_OK);
  return c.end - c.arrive;
}

/* Training under way for so long; then a job of inference. Ends training. */
static uint64_t beside(struct ct_rig *rig, unsigned pair, unsigned banks, unsigned after,
                       uint64_t limit) {
  const struct ct_gen_prog infer = make_prog(pair, 0, banks), train = make_prog(pair, 1, banks);
  submit(rig, 1, &train);
  ct_rig_pass(rig, after);
  const uint64_t took = run(rig, &infer, limit);
  ct_rig_cwrite(rig, 1, CT_CREG_CONTROL, 2);
  ct_rig_reap(rig, 1, 100000);
  return took;
}

static void check_pair(struct ct_rig *rig, unsigned core, unsigned pair) {
  const unsigned banks = cores[core].banks;
  const struct ct_gen_prog infer = make_prog(pair, 0, banks);
  uint64_t alone = 0, most[5] = {0};
  for (unsigned i = 0; i < 3; ++i) { /* the first job's program is not guessed */
    const uint64_t took = run(rig, &infer, 10000);
    if (took > alone) alone = took;
  }
  for (unsigned policy = 0; policy < 5; ++policy) {
    if (policy == kJob) continue;
    ct_rig_write(rig, CT_REG_POLICY, policy);
    for (unsigned f = 0; f < sizeof floors / sizeof *floors; ++f) {
      ct_rig_write(rig, CT_REG_FLOOR, floors[f]);
      const uint64_t limit = alone + bound(policy, floors[f]);
      for (unsigned after = 700; after < 1100; after += 97) {
        const uint64_t took = beside(rig, pair, banks, after, limit + 1000);
        if (took > most[policy] && floors[f] < 255) most[policy] = took;
        if (took > limit)
          fail_msg(
              "%s, policy %u, floor %u: %s takes %u cycles beside %s, %u alone; the bound is %u",
              cores[core].name, policy, floors[f], pairs[pair].inference, (unsigned)took,
              pairs[pair].training, (unsigned)alone, (unsigned)limit);
      }
    }
  }
  ct_rig_write(rig, CT_REG_POLICY, 0);
  ct_rig_write(rig, CT_REG_FLOOR, 0);
  printf(
      "%s: %s beside %s: %u cycles alone, at most %u PRIORITY, %u FCFS, %u ROUND_ROBIN, %u SLACK\n",
      cores[core].name, pairs[pair].inference, pairs[pair].training, (unsigned)alone,
      (unsigned)most[0], (unsigned)most[1], (unsigned)most[2], (unsigned)most[4]);
}

/* Slots, words and beats that training has under each policy and floor never keep inference for
 * longer than the bound. */
static void bounded_wait(void **state) {
  const unsigned pair = *(const unsigned *)*state;
  for (unsigned i = 0; i < 2 * kCores; ++i) {
    struct ct_rig rig;
    open_core(&rig, i / 2, memories[i % 2]);
    check_pair(&rig, i / 2, pair);
    ct_rig_close(&rig);
  }
}

/* JOB is one job at a time: a hung one of training is waited for until its watchdog ends it. */
static void job_waits_for_the_watchdog(void **state) {
  (void)state;
  for (unsigned core = 0; core < kCores; ++core) {
    struct ct_rig rig;
    open_core(&rig, core, memories[0]);
    ct_rig_write(&rig, CT_REG_POLICY, kJob);
    const struct ct_gen_prog infer = make_prog(0, 0, cores[core].banks);
    const struct ct_gen_prog train = make_prog(0, 1, cores[core].banks);
    const uint64_t alone = run(&rig, &infer, 10000);
    submit(&rig, 1, &train);
    ct_rig_pass(&rig, 500);
    const uint64_t took = run(&rig, &infer, 2 * kWatchdog);
    const struct ct_rig_cpl c = ct_rig_reap(&rig, 1, 10);
    assert_int_equal(c.code, CT_DEV_WATCHDOG);
    assert_in_range(took, kWatchdog - 1000, kWatchdog + alone + 500);
    ct_rig_close(&rig);
  }
}

int main(void) {
  unsigned number[kPairs];
  char name[kPairs][80];
  struct CMUnitTest tests[kPairs + 1] = {cmocka_unit_test(job_waits_for_the_watchdog)};
  for (unsigned i = 0; i < kPairs; ++i) {
    number[i] = i;
    snprintf(name[i], sizeof name[i], "%s beside %s", pairs[i].inference, pairs[i].training);
    tests[1 + i] = (struct CMUnitTest){name[i], bounded_wait, NULL, NULL, &number[i]};
  }
  return cmocka_run_group_tests_name("policies", tests, NULL, NULL);
}
