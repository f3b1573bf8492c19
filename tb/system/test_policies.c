/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What training can do to a job of inference under each policy and floor: programs made to be in
 * the way, in one unit each, and random ones. Every wait of inference stays within its bound, and
 * every job ends within its time alone and the bounds of docs/architecture.md; under JOB, when the
 * other job is over.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_rig.h"
#include "ct_waits.h"
#include "host/transports/sim/ct_sim.h"

enum {
  kCap = 8,        /* TRAIN_CAP */
  kPasses = 60000, /* of loops that outlast every test */
  kWatchdog = 20000,
  kWords = 1024, /* of a context's window */
};

static const struct {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *(*error)(void *self);
  unsigned banks, lanes;
} cores[] = {{"16x16", &ct_core_sim, ct_core_sim_error, 8, 16},
             {"16x8", &ct_core_16x8_sim, ct_core_16x8_sim_error, 4, 4},
             {"16x4", &ct_core_16x4_sim, ct_core_16x4_sim_error, 2, 4}};
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

static struct ct_bound_setting setting_of(unsigned core, unsigned policy, unsigned floor) {
  return (struct ct_bound_setting){.policy = (enum ct_policy)policy,
                                   .floor = floor,
                                   .train_cap = kCap,
                                   .array_cols = 2 * cores[core].banks,
                                   .vpu_lanes = cores[core].lanes};
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
    if (policy == CT_WHOLE_JOB) continue;
    ct_rig_write(rig, CT_REG_POLICY, policy);
    for (unsigned f = 0; f < sizeof floors / sizeof *floors; ++f) {
      ct_rig_write(rig, CT_REG_FLOOR, floors[f]);
      const struct ct_bound_setting setting = setting_of(core, policy, floors[f]);
      const uint64_t limit = alone + ct_waits_job(&infer, &setting);
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
 * longer than the bound. Each pair meets each core with one of the memories; with both if CT_ALL is
 * in the environment (make campaign). */
static void bounded_wait(void **state) {
  const unsigned pair = *(const unsigned *)*state;
  for (unsigned core = 0; core < kCores; ++core)
    for (unsigned memory = 0; memory < 2; ++memory) {
      struct ct_rig rig;
      if (!getenv("CT_ALL") && memory != (core + pair) % 2) continue;
      open_core(&rig, core, memories[memory]);
      check_pair(&rig, core, pair);
      ct_rig_close(&rig);
    }
}

/* ---- Random programs ----------------------------------------------------------------------- */

/* What a context runs: operands of products are never written, everything else overlaps as it
 * likes, for only times are looked at. */
enum { kOperands = 512, kWeights = 256, kLanding = 768 };

static void random_dma(ct_rng *rng, struct ct_gen_prog *p, bool train) {
  const bool load = ct_rng_percent(rng, 50), record = ct_rng_percent(rng, 30);
  const bool is_long = !record && ct_rng_percent(rng, 30);
  static const unsigned strides[] = {1, 3, 4, 8};
  const unsigned nb = 1 + ct_rng_below(rng, is_long ? 64 : 16);
  const unsigned n1 = 1 + ct_rng_below(rng, train ? 64 : 4);
  struct ct_cmd *cmd =
      append_dma(p, load ? CT_OP_LD : CT_OP_ST, nb, n1,
                 is_long ? 1 + ct_rng_below(rng, 2) : strides[ct_rng_below(rng, 4)]);
  CT_PUT(cmd, DMA_HDR, record);
  CT_PUT(cmd, DMA_SPM, (load ? kLanding : 0) + ct_rng_below(rng, 64));
  CT_PUT(cmd, DMA_DRAM, ct_rng_below(rng, 512));
}

static void random_mm(ct_rng *rng, struct ct_gen_prog *p, bool train) {
  struct ct_cmd *cmd =
      append_mm(p, 1 + ct_rng_below(rng, train ? 128 : 16), ct_rng_percent(rng, 30));
  CT_PUT(cmd, MM_A, kOperands + ct_rng_below(rng, 64));
  CT_PUT(cmd, MM_AM, ct_rng_percent(rng, 50) ? 16 : 0);
  CT_PUT(cmd, MM_B, kWeights + ct_rng_below(rng, 64));
  CT_PUT(cmd, MM_B_TRANS, ct_rng_percent(rng, 30));
  if (train) CT_PUT(cmd, MM_KT, 1 + ct_rng_below(rng, 8));
  CT_PUT(cmd, MM_ACC, ct_rng_below(rng, 8));
}

static void random_vl(ct_rng *rng, struct ct_gen_prog *p) {
  struct ct_cmd *cmd = append_vl(p, 1 + ct_rng_below(rng, 8));
  CT_PUT(cmd, VL_SPM, ct_rng_below(rng, 64));
  CT_PUT(cmd, VL_MODE, ct_rng_below(rng, 3));
  if (ct_rng_percent(rng, 40)) CT_PUT(cmd, VL_ROWS, 1 + ct_rng_below(rng, 16));
  CT_PUT(cmd, VL_TD, ct_rng_below(rng, 8));
}

static void random_vs(ct_rng *rng, struct ct_gen_prog *p, bool train) {
  struct ct_cmd *cmd = append_vs(p, 1 + ct_rng_below(rng, 8));
  CT_PUT(cmd, VS_SPM, ct_rng_below(rng, 64));
  CT_PUT(cmd, VS_MODE, ct_rng_below(rng, 3));
  if (ct_rng_percent(rng, 40)) CT_PUT(cmd, VS_ROWS, 1 + ct_rng_below(rng, 16));
  if (train) CT_PUT(cmd, VS_MORE, ct_rng_below(rng, 8));
}

static void random_va(ct_rng *rng, struct ct_gen_prog *p, bool train) {
  struct ct_cmd *cmd = append_va(p, 1 + ct_rng_below(rng, 16));
  const unsigned operand = ct_rng_below(rng, 4);
  CT_PUT(cmd, VA_TD, 8);
  CT_PUT(cmd, VA_TQ, ct_rng_below(rng, 8));
  CT_PUT(cmd, VA_A_SRC, ct_rng_below(rng, 3));
  if (operand == 1) CT_PUT(cmd, VA_B_SRC, 1 + ct_rng_below(rng, 3));
  if (operand == 2) CT_PUT(cmd, VA_C_SRC, 1 + ct_rng_below(rng, 3));
  CT_PUT(cmd, VA_FUNC, ct_rng_percent(rng, 40) ? 8 + ct_rng_below(rng, 3) : 0);
  CT_PUT(cmd, VA_FULL, ct_rng_percent(rng, 50));
  if (ct_rng_percent(rng, 20)) CT_PUT(cmd, VA_ROW_XOR, 1 + ct_rng_below(rng, 15));
  if (train) CT_PUT(cmd, VA_MORE, ct_rng_below(rng, 8));
}

static void random_command(ct_rng *rng, struct ct_gen_prog *p, bool train) {
  switch (ct_rng_below(rng, 6)) {
    case 0:
    case 1:
      random_dma(rng, p, train);
      break;
    case 2:
      random_mm(rng, p, train);
      break;
    case 3:
      random_vl(rng, p);
      break;
    case 4:
      random_va(rng, p, train);
      break;
    default:
      random_vs(rng, p, train);
      break;
  }
}

/* An endless loop, whose queues run as they can; now and then its last product, or in its stead an
 * operation of another unit, waits for what never comes, and soon nothing of that queue moves. */
static struct ct_gen_prog random_training(ct_rng *rng) {
  struct ct_gen_prog p = {.args = {ct_rig_unit(1, CT_RIG_IN), ct_rig_unit(1, CT_RIG_OUT)}};
  append_loop(&p);
  for (unsigned n = 1 + ct_rng_below(rng, 10); n > 0; --n)
    random_command(rng, &p, true);
  if (ct_rng_percent(rng, 20)) {
    random_command(rng, &p, true);
    CT_PUT(&p.cmds[p.count - 1], ALL_WAIT2, CT_SEM(15));
  }
  append_end(&p, true);
  return p;
}

/* Some commands, each behind the one before or not. */
static struct ct_gen_prog random_inference(ct_rng *rng) {
  struct ct_gen_prog p = {.args = {ct_rig_unit(0, CT_RIG_IN), ct_rig_unit(0, CT_RIG_OUT)}};
  const unsigned n = 1 + ct_rng_below(rng, 8);
  for (unsigned i = 0; i < n; ++i) {
    random_command(rng, &p, false);
    if (i == 0 || ct_rng_percent(rng, 50)) continue;
    CT_PUT(&p.cmds[i - 1], ALL_SIG1, CT_SEM(i));
    CT_PUT(&p.cmds[i], ALL_WAIT1, CT_SEM(i));
  }
  append_end(&p, false);
  return p;
}

struct draw {
  struct ct_bound_setting setting;
  struct ct_gen_prog infer, train;
  unsigned after; /* cycles of training before the job */
};

static struct draw draw_round(ct_rng *rng, unsigned core, unsigned stall) {
  static const enum ct_policy policies[] = {CT_PRIORITY, CT_FCFS, CT_ROUND_ROBIN, CT_SLACK};
  const bool whole = ct_rng_percent(rng, 5);
  struct draw d = {.setting =
                       setting_of(core, whole ? CT_WHOLE_JOB : policies[ct_rng_below(rng, 4)], 0)};
  if (ct_rng_percent(rng, 60)) d.setting.floor = ct_rng_below(rng, 256);
  if (ct_rng_percent(rng, 10)) d.setting.floor = 255;
  d.setting.train_cap = 1 + ct_rng_below(rng, 8);
  d.setting.reorders = stall > 0;
  d.infer = random_inference(rng);
  d.train = random_training(rng);
  d.after = 300 + ct_rng_below(rng, 1500);
  return d;
}

/* The job beside training: the waits that the probe has seen, and *refused: cycles with a refusal.
 */
static uint64_t probed(struct ct_rig *rig, const struct draw *d, uint64_t limit,
                       struct ct_probe *probe, uint64_t *refused) {
  submit(rig, 1, &d->train);
  ct_rig_pass(rig, d->after);
  memset(probe, 0, sizeof *probe);
  assert_true(rig->ops->probe(rig->self, probe) >= 0);
  const uint64_t took = run(rig, &d->infer, limit);
  *refused = probe->refused;
  assert_true(rig->ops->probe(rig->self, NULL) >= 0);
  ct_rig_cwrite(rig, 1, CT_CREG_CONTROL, 2);
  const struct ct_rig_cpl c = ct_rig_reap(rig, 1, 100000);
  if (c.code != CT_DEV_CANCELLED) assert_int_equal(c.code, CT_DEV_WATCHDOG);
  return took;
}

static void check_probe(const struct draw *d, const struct ct_probe *probe, const char *where) {
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u) {
    const uint64_t most = probe->side[u][0].peer.max, bound = ct_bound_wait(u, &d->setting);
    if (most > bound)
      fail_msg("%s: an operation of %s waited %" PRIu64 " cycles for training, not %" PRIu64, where,
               ct_probe_name(u), most, bound);
  }
}

static void random_round(struct ct_rig *rig, struct ct_rig *plain, const struct draw *d,
                         struct ct_probe *probe, uint64_t longest[CT_UNIT_COUNT]) {
  char where[128];
  uint64_t refused = 0;
  snprintf(where, sizeof where, "%s, policy %s, floor %u, TRAIN_CAP %u", rig->name,
           ct_policy_name(d->setting.policy), (unsigned)d->setting.floor,
           (unsigned)d->setting.train_cap);
  ct_rig_write(rig, CT_REG_POLICY, d->setting.policy);
  ct_rig_write(rig, CT_REG_FLOOR, d->setting.floor);
  ct_rig_write(rig, CT_REG_TRAIN_CAP, d->setting.train_cap);
  const uint64_t alone = run(plain, &d->infer, 50000);
  const bool whole = d->setting.policy == CT_WHOLE_JOB;
  const uint64_t bound = whole ? kWatchdog + 2000 : ct_waits_job(&d->infer, &d->setting);
  /* What hangs ends the test here. */
  const uint64_t took = probed(rig, d, 2 * (alone + bound) + 10000, probe, &refused);
  check_probe(d, probe, where);
  const bool unordered = d->setting.policy != CT_PRIORITY && d->setting.reorders && !whole;
  if (!unordered && took > alone + bound + refused)
    fail_msg("%s: a job took %" PRIu64 " cycles, alone %" PRIu64 ", refusals %" PRIu64
             ", bound %" PRIu64,
             where, took, alone, refused, bound);
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    if (probe->side[u][0].peer.max > longest[u]) longest[u] = probe->side[u][0].peer.max;
}

/* Random training beside random inference under random policies and floors, on memories with and
 * without stalls; CT_ROUNDS of them on each core and memory. */
static void random_neighbours(void **state) {
  (void)state;
  static const char *const with[] = {"dram=8,latency=30", "dram=8,stall=30,seed=7"};
  const char *text = getenv("CT_ROUNDS");
  const unsigned long rounds = text ? strtoul(text, NULL, 0) : 60;
  struct ct_probe *probe = test_malloc(sizeof *probe);
  for (unsigned i = 0; i < 2 * kCores; ++i) {
    struct ct_rig rig, plain;
    uint64_t longest[CT_UNIT_COUNT] = {0};
    ct_rng rng = ct_rng_make(100 + i);
    open_core(&rig, i / 2, with[i % 2]);
    open_core(&plain, i / 2, i % 2 ? "dram=8" : with[0]);
    for (unsigned long n = 0; n < rounds; ++n) {
      const struct draw d = draw_round(&rng, i / 2, i % 2 ? 30 : 0);
      random_round(&rig, &plain, &d, probe, longest);
    }
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      printf("%s%s: %" PRIu64 "%s", u ? ", " : "longest waits: ", ct_probe_name(u), longest[u],
             u + 1 < CT_UNIT_COUNT ? "" : "\n");
    ct_rig_close(&plain);
    ct_rig_close(&rig);
  }
  test_free(probe);
}

/* JOB is one job at a time: a hung one of training is waited for until its watchdog ends it. */
static void job_waits_for_the_watchdog(void **state) {
  (void)state;
  for (unsigned core = 0; core < kCores; ++core) {
    struct ct_rig rig;
    open_core(&rig, core, memories[0]);
    ct_rig_write(&rig, CT_REG_POLICY, CT_WHOLE_JOB);
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
  struct CMUnitTest tests[kPairs + 2] = {cmocka_unit_test(job_waits_for_the_watchdog),
                                         cmocka_unit_test(random_neighbours)};
  for (unsigned i = 0; i < kPairs; ++i) {
    number[i] = i;
    snprintf(name[i], sizeof name[i], "%s beside %s", pairs[i].inference, pairs[i].training);
    tests[2 + i] = (struct CMUnitTest){name[i], bounded_wait, NULL, NULL, &number[i]};
  }
  return cmocka_run_group_tests_name("policies", tests, NULL, NULL);
}
