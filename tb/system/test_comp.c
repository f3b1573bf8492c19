/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LD and ST with Comp on the cores, with a memory that stalls: the cases of ct_comp.h, and beside
 * plain loads and stores of the same context and random programs of inference the bytes, codes and
 * counts of the emulator. Jobs that fail, are cancelled or run too long in the middle of a group,
 * and an arena that is as new after that.
 */
#include "ct_comp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ct_pair.h"

enum { LIMIT = 3000000, JOBS = 4, PLAIN = 900 /* words of the plain commands between */ };
enum { PLAIN_OUT = CT_RIG_OUT + 0x18000 };
enum { SEM_IN, SEM_STORED, SEM_LOADED };

/* ---- Beside others --------------------------------------------------------------------------- */

struct beside {
  struct ct_pair pair;
  ct_rng rng;
  struct ct_act_block block[CT_COMP_WORDS];
  uint8_t in[CT_COMP_TILES * CT_COMP_TILE_UNITS * 16];
  struct act_group group;
  struct ct_comp work[JOBS]; /* (their programs) */
  struct ct_gen_prog other[JOBS];
};

static void open_pair(struct beside *b, const struct ct_core *core, const char *args) {
  ct_pair_open(&b->pair, core, args);
  ct_pair_cwrite(&b->pair, 1, CT_CREG_ARENA_BASE, ct_rig_unit(1, CT_COMP_ARENA));
  ct_pair_cwrite(&b->pair, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
}

static void draw_tiles(struct beside *b) {
  for (unsigned t = 0; t < CT_COMP_TILES; ++t) {
    act_draw(&b->rng, &b->group);
    ct_act_to_record(b->group.x, b->in + (size_t)CT_COMP_TILE_UNITS * 16 * t);
  }
  ct_pair_mem_write(&b->pair, ct_rig_addr(1, CT_RIG_IN), b->in, sizeof b->in);
}

static void plain(struct ct_comp *w, unsigned code, uint32_t at, unsigned runs) {
  struct ct_cmd *cmd = ct_comp_add(w, code);
  CT_PUT(cmd, DMA_DRAM, ct_rig_unit(1, at));
  CT_PUT(cmd, DMA_SPM, PLAIN);
  CT_PUT(cmd, DMA_NB, 20);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_D1, 20);
  CT_PUT(cmd, DMA_N1, runs);
  CT_PUT(cmd, DMA_S1, 20);
  CT_PUT(cmd, DMA_N2, 1);
}

/* Records that are loaded or stored in as many steps as there are index units. */
static struct ct_cmd *records_by_unit(struct ct_comp *w, unsigned code, uint32_t at, uint32_t spm,
                                      unsigned per_unit) {
  struct ct_cmd *cmd = ct_comp_records(w, code, at, spm);
  CT_PUT(cmd, DMA_N1, per_unit);
  CT_PUT(cmd, DMA_N2, CT_COMP_TILES / per_unit);
  CT_PUT(cmd, DMA_D2, CT_COMP_TILE_UNITS * per_unit);
  CT_PUT(cmd, DMA_S2, 16 * per_unit);
  return cmd;
}

/* Everything at the same time: a step is stored when its records are there, loaded when it is
 * stored, and goes out when it is back. Plain commands of both queues in front, between and behind.
 */
static void write_program(struct beside *b, struct ct_comp *w, bool freed) {
  ct_rng *r = &b->rng;
  const unsigned tiles = 1 + ct_rng_below(r, 4), groups = 1 + ct_rng_below(r, 4);
  const unsigned first = ct_rng_below(r, 5 - groups), per_unit = tiles * groups;
  const uint8_t bound = (uint8_t)(ct_rng_percent(r, 30) ? 0 : ct_rng_below(r, 255));
  w->prog.count = 0;
  w->prog.args[CT_COMP_BOUND_REG - 1] = (uint32_t)bound << 4;
  if (ct_rng_percent(r, 50)) plain(w, CT_OP_ST, PLAIN_OUT, 1 + ct_rng_below(r, 6));
  struct ct_cmd *in = records_by_unit(w, CT_OP_LD, CT_RIG_IN, 0, per_unit);
  CT_PUT(in, ALL_SIG0, CT_SEM(SEM_IN));
  struct ct_cmd *st = ct_comp_groups(w, CT_OP_ST, 0, tiles, groups, first);
  CT_PUT(st, DMA_N1_REG, CT_COMP_BOUND_REG);
  CT_PUT(st, ALL_WAIT0, CT_SEM(SEM_IN));
  CT_PUT(st, ALL_SIG0, CT_SEM(SEM_STORED));
  if (ct_rng_percent(r, 50)) plain(w, CT_OP_ST, PLAIN_OUT + 0x1000, 1 + ct_rng_below(r, 6));
  struct ct_cmd *ld = ct_comp_groups(w, CT_OP_LD, CT_COMP_SECOND, tiles, groups, first);
  CT_PUT(ld, DMA_FREE, freed);
  CT_PUT(ld, ALL_WAIT0, CT_SEM(SEM_STORED));
  CT_PUT(ld, ALL_SIG0, CT_SEM(SEM_LOADED));
  struct ct_cmd *out = records_by_unit(w, CT_OP_ST, CT_COMP_BACK, CT_COMP_SECOND, per_unit);
  CT_PUT(out, ALL_WAIT0, CT_SEM(SEM_LOADED));
  if (ct_rng_percent(r, 50)) plain(w, CT_OP_ST, PLAIN_OUT + 0x2000, 1 + ct_rng_below(r, 6));
  ct_comp_add(w, CT_OP_END);
}

/* Jobs that free what they have stored. */
static void write_freeing(struct ct_comp *w, const struct ct_comp *stored) {
  unsigned i = 0;
  while (CT_GET(&stored->prog.cmds[i], ALL_OP) != CT_OP_LD ||
         !CT_GET(&stored->prog.cmds[i], DMA_COMP))
    ++i;
  w->prog.count = 0;
  struct ct_cmd *ld = ct_comp_add(w, CT_OP_LD);
  *ld = stored->prog.cmds[i];
  CT_PUT(ld, DMA_FREE, 1);
  CT_PUT(ld, ALL_WAIT0, 0);
  CT_PUT(ld, ALL_SIG0, 0);
  ct_comp_add(w, CT_OP_END);
}

/* All jobs of both contexts on both devices; false: something differs. */
static bool run_all(struct beside *b, unsigned jobs, bool other) {
  bool same = true;
  for (unsigned i = 0; i < jobs; ++i) {
    const struct ct_rig_job mine = {.prog = &b->work[i].prog, .tag = i};
    const struct ct_rig_job theirs = {.prog = &b->other[i], .tag = 10 + i};
    ct_pair_submit(&b->pair, 1, &mine);
    if (other) ct_pair_submit(&b->pair, 0, &theirs);
  }
  for (unsigned c = 0; c < 2; ++c)
    ct_pair_ring(&b->pair, c);
  for (unsigned c = other ? 0 : 1; c < 2; ++c) {
    for (unsigned i = 0; i < jobs; ++i) {
      struct ct_rig_cpl cpl[2];
      for (unsigned d = 0; d < 2; ++d)
        cpl[d] = ct_rig_reap(&b->pair.rig[d], c, LIMIT);
      assert_int_equal(cpl[0].code, CT_DEV_OK);
      same &= ct_same_completions(&cpl[0], &cpl[1]);
    }
  }
  return same;
}

static void beside(void **state) {
  const struct ct_core *core = *state;
  struct beside *b = test_calloc(1, sizeof *b);
  bool same = true;
  for (unsigned round = 0; round < 12 && same; ++round) {
    /* Where groups are freed while others are stored, their places are not the emulator's. */
    const bool racing = round % 3 == 2;
    char args[80];
    b->rng = ct_rng_make(31 + round);
    snprintf(args, sizeof args, "stall=%u,latency=%u,bandwidth=%u,seed=%u", round % 2 * 30,
             5 + 40 * (round % 3), round % 4 == 3 ? 4 : 16, round);
    open_pair(b, core, args);
    ct_pair_write(&b->pair, CT_REG_POLICY, round % 5);
    ct_pair_write(&b->pair, CT_REG_FLOOR, round % 4 == 1 ? ct_rng_below(&b->rng, 256) : 0);
    draw_tiles(b);
    ct_pair_fill_input(&b->pair, 0, &b->rng);
    for (unsigned i = 0; i < JOBS; ++i) {
      write_program(b, &b->work[i], racing);
      if (i == 0) ct_gen_setup(&b->other[i], ct_rig_unit(0, CT_RIG_IN));
      if (i > 0)
        ct_gen_random(&b->rng, &b->other[i], 60 + ct_rng_below(&b->rng, 100),
                      ct_rig_unit(0, CT_RIG_IN), ct_rig_unit(0, CT_RIG_OUT));
    }
    same = run_all(b, JOBS, true) && ct_same_counters(&b->pair, true);
    static const uint8_t none[CT_COMP_ARENA - CT_COMP_INDEX + 4096 * CT_COMP_ARENA_PAGES];
    if (racing) ct_pair_mem_write(&b->pair, ct_rig_addr(1, CT_COMP_INDEX), none, sizeof none);
    for (unsigned c = 0; c < 2; ++c)
      same &= ct_same_out(&b->pair, c, "jobs");
    for (unsigned d = 0; d < 2; ++d) {
      const uint32_t held = ct_rig_cread(&b->pair.rig[d], 1, CT_CREG_ARENA_HELD);
      if (racing) assert_in_range(held, 0, 1);
      if (!racing) assert_int_equal(held, ct_rig_cread(&b->pair.rig[0], 1, CT_CREG_ARENA_HELD));
    }
    /* The last job's index is the one that is there. */
    if (!racing) {
      write_freeing(&b->work[0], &b->work[JOBS - 1]);
      same &= run_all(b, 1, false);
    }
    assert_int_equal(ct_rig_cread(&b->pair.rig[0], 1, CT_CREG_ARENA_HELD),
                     ct_rig_cread(&b->pair.rig[1], 1, CT_CREG_ARENA_HELD));
    ct_pair_close(&b->pair);
  }
  test_free(b);
  assert_true(same);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* Records come, are stored in groups of two tiles, come back, and go out. */
static void write_trip(struct ct_comp *b) {
  b->prog.count = 0;
  struct ct_cmd *in = ct_comp_records(b, CT_OP_LD, CT_RIG_IN, 0);
  ct_comp_order(in, ct_comp_groups(b, CT_OP_ST, 0, 2, 4, 0), 0);
  struct ct_cmd *st = &b->prog.cmds[b->prog.count - 1];
  struct ct_cmd *ld = ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 2, 4, 0);
  ct_comp_order(st, ld, 1);
  ct_comp_order(ld, ct_comp_records(b, CT_OP_ST, CT_COMP_BACK, CT_COMP_SECOND), 2);
}

static void trip_goes_well(struct ct_comp *b, const char *when) {
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
  write_trip(b);
  const struct ct_rig_cpl cpl = ct_comp_run(b);
  if (cpl.code) fail_msg("behind %s: code %" PRIu32 ", address %" PRIx32, when, cpl.code, cpl.addr);
  b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, CT_COMP_BACK), b->out, sizeof b->out);
  assert_memory_equal(b->out, b->in, sizeof b->in);
}

static void fault(struct ct_comp *b, enum ct_fault kind, uint32_t unit) {
  assert_int_equal(b->rig.ops->fault(b->rig.self, kind, 16 * (uint64_t)unit + 3), 0);
}

static void memory_errors(struct ct_comp *b) {
  const uint32_t index = ct_rig_unit(1, CT_COMP_INDEX), arena = ct_rig_unit(1, CT_COMP_ARENA);
  const struct {
    enum ct_fault kind;
    uint32_t unit, code, addr;
  } faults[] = {
      {CT_FAULT_AXI_WRITE, arena + 3, CT_DEV_AXI_WRITE, arena},
      {CT_FAULT_AXI_WRITE, index + 1, CT_DEV_AXI_WRITE, index + 1},
      {CT_FAULT_AXI_READ, arena + 1, CT_DEV_AXI_READ, arena},
      {CT_FAULT_AXI_READ, index + 1, CT_DEV_AXI_READ, index + 1},
  };
  for (unsigned i = 0; i < 4; ++i) {
    fault(b, faults[i].kind, faults[i].unit);
    ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
    write_trip(b);
    const struct ct_rig_cpl cpl = ct_comp_run(b);
    if (cpl.code != faults[i].code || cpl.addr != faults[i].addr)
      fail_msg("memory error %u: code %" PRIu32 ", address %" PRIx32, i, cpl.code, cpl.addr);
    trip_goes_well(b, "an error of the memory");
  }
}

/* A bit of a word that is stored turns over. */
static void parity_errors(struct ct_comp *b) {
  const uint32_t word = ct_rig_spm_base(1) + 37;
  ct_rig_write(&b->rig, CT_REG_DBG_ADDR, word);
  ct_rig_write(&b->rig, CT_REG_DBG_FLIP, 0x100 | 77);
  uint32_t peek[5];
  ct_rig_peek(&b->rig, word, peek);
  ct_comp_groups(b, CT_OP_ST, 0, 1, 4, 0);
  const struct ct_rig_cpl cpl = ct_comp_run(b);
  assert_int_equal(cpl.code, CT_DEV_PARITY);
  assert_int_equal(cpl.addr, word);
  trip_goes_well(b, "a parity error");
}

/* The job is stopped after some cycles, by the watchdog, by a cancel or by a soft reset. */
static void stopped(struct ct_comp *b, ct_rng *rng, unsigned rounds) {
  unsigned seen[CT_DEV_COMP + 1] = {0};
  for (unsigned i = 0; i < rounds; ++i) {
    const unsigned cycles = 60 + ct_rng_below(rng, 2500), how = ct_rng_below(rng, 3);
    const struct ct_rig_job job = {.prog = &b->prog, .watchdog = how ? 0 : cycles};
    write_trip(b);
    ct_comp_add(b, CT_OP_END);
    ct_rig_submit(&b->rig, 1, &job);
    ct_rig_ring(&b->rig, 1);
    if (how) ct_rig_pass(&b->rig, cycles);
    if (how) ct_rig_cwrite(&b->rig, 1, CT_CREG_CONTROL, how == 1 ? 2 : 1);
    const struct ct_rig_cpl cpl = ct_rig_reap(&b->rig, 1, LIMIT);
    assert_true(cpl.code == CT_DEV_OK || cpl.code == CT_DEV_WATCHDOG ||
                cpl.code == CT_DEV_CANCELLED || cpl.code == CT_DEV_RESET);
    ++seen[cpl.code];
    trip_goes_well(b, "a job that was stopped");
  }
  printf("  watchdog %u, cancelled %u, reset %u, ended before %u\n", seen[CT_DEV_WATCHDOG],
         seen[CT_DEV_CANCELLED], seen[CT_DEV_RESET], seen[CT_DEV_OK]);
  assert_true(seen[CT_DEV_WATCHDOG] && seen[CT_DEV_CANCELLED] && seen[CT_DEV_RESET]);
}

/* A memory that does not answer: the job ends with DEAD, and when the answers have come, or are
 * given up, the context goes on. */
static void dead(struct ct_comp *b) {
  const uint32_t units[] = {ct_rig_unit(1, CT_COMP_INDEX) + 1, ct_rig_unit(1, CT_COMP_ARENA) + 20};
  ct_rig_write(&b->rig, CT_REG_DRAIN_LIMIT, 3000);
  for (unsigned i = 0; i < 4; ++i) {
    fault(b, CT_FAULT_AXI_HANG, units[i % 2]);
    ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
    write_trip(b);
    ct_comp_add(b, CT_OP_END);
    const struct ct_rig_job job = {.prog = &b->prog, .watchdog = 4000};
    ct_rig_submit(&b->rig, 1, &job);
    ct_rig_ring(&b->rig, 1);
    assert_int_equal(ct_rig_reap(&b->rig, 1, LIMIT).code, CT_DEV_DEAD);
    fault(b, CT_FAULT_NONE, 0);
    trip_goes_well(b, "a dead port");
  }
}

static void failures(void **state) {
  const struct ct_comp_device *dev = *state;
  struct ct_comp *b = ct_comp_open(dev, "stall=20,latency=20,seed=8");
  ct_rng rng = ct_rng_make(41);
  ct_comp_draw(b, &rng, 0);
  for (unsigned t = 0; t < CT_COMP_TILES; ++t) /* as they come back */
    ct_act_to_record(b->block + (size_t)16 * t, b->in + (size_t)CT_COMP_TILE_UNITS * 16 * t);
  b->rig.ops->mem_write(b->rig.self, ct_rig_addr(1, CT_RIG_IN), b->in, sizeof b->in);
  trip_goes_well(b, "nothing");
  memory_errors(b);
  parity_errors(b);
  stopped(b, &rng, 60);
  dead(b);
  ct_comp_close(b);
}

/* ---- What there is --------------------------------------------------------------------------- */

static void without(struct ct_rig *rig, unsigned ctx) {
  struct ct_comp *b = test_calloc(1, sizeof *b);
  const struct ct_rig_job job = {.prog = &b->prog};
  for (uint32_t creg = CT_CREG_ARENA_BASE; creg <= CT_CREG_ARENA_HELD; creg += 4) {
    ct_rig_cwrite(rig, ctx, creg, 0x1000);
    assert_int_equal(ct_rig_cread(rig, ctx, creg), 0);
  }
  assert_int_equal(ct_rig_cread(rig, ctx, CT_CREG_ARENA_MOST), 0);
  for (unsigned ld = 0; ld < 2; ++ld) {
    b->prog.count = 0;
    ct_comp_groups(b, ld ? CT_OP_LD : CT_OP_ST, 0, 1, 4, 0);
    ct_comp_add(b, CT_OP_END);
    ct_rig_submit(rig, ctx, &job);
    ct_rig_ring(rig, ctx);
    assert_int_equal(ct_rig_reap(rig, ctx, LIMIT).code, CT_DEV_ILLEGAL);
  }
  test_free(b);
}

/* A core without it, inference on one with it, and registers that keep what they should. */
static void who_has_it(void **state) {
  (void)state;
  for (unsigned i = 0; i < CT_ALL_CORES; ++i) {
    struct ct_rig rig;
    char args[32];
    snprintf(args, sizeof args, "dram=%d", CT_RIG_MIB);
    ct_rig_open(&rig, ct_cores[i].name, ct_cores[i].ops, ct_cores[i].error, args);
    const bool has = ct_rig_read(&rig, CT_REG_FEATURES) & CT_FEATURE_COMPRESS;
    assert_int_equal(has, i < CT_CORES);
    without(&rig, 0);
    if (!has) without(&rig, 1);
    if (has) {
      ct_rig_cwrite(&rig, 1, CT_CREG_ARENA_BASE, 0x123456ff);
      ct_rig_cwrite(&rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_PAGES + 1);
      ct_rig_cwrite(&rig, 1, CT_CREG_ARENA_HELD, 7);
      ct_rig_cwrite(&rig, 1, CT_CREG_ARENA_MOST, 7);
      assert_int_equal(ct_rig_cread(&rig, 1, CT_CREG_ARENA_BASE), 0x12345600);
      assert_int_equal(ct_rig_cread(&rig, 1, CT_CREG_ARENA_PAGES), CT_COMP_PAGES);
      assert_int_equal(ct_rig_cread(&rig, 1, CT_CREG_ARENA_HELD), 0);
      assert_int_equal(ct_rig_cread(&rig, 1, CT_CREG_ARENA_MOST), 0);
    }
    ct_rig_close(&rig);
  }
}

/* ---- How long it takes ----------------------------------------------------------------------- */

/* Cycles of a job of one command. */
static uint64_t cycles_of(struct ct_comp *b) {
  const struct ct_rig_cpl cpl = ct_comp_run(b);
  assert_int_equal(cpl.code, CT_DEV_OK);
  return cpl.end - cpl.start;
}

/* A tile takes 17 cycles each way, as it does uncompressed: more is only what the first group takes
 * on its way through. */
static void rate(void **state) {
  const struct ct_comp_device *dev = *state;
  enum { LATENCY = 40 };
  struct ct_comp *b = ct_comp_open(dev, "");
  ct_rng rng = ct_rng_make(51);
  ct_comp_draw(b, &rng, 128);
  b->prog.args[CT_COMP_BOUND_REG - 1] = 128 << 4;
  ct_comp_records(b, CT_OP_LD, CT_RIG_IN, 0);
  const uint64_t load = cycles_of(b);
  ct_comp_records(b, CT_OP_ST, CT_COMP_BACK, 0);
  const uint64_t store = cycles_of(b);
  struct ct_cmd *st = ct_comp_groups(b, CT_OP_ST, 0, 4, 4, 0);
  CT_PUT(st, DMA_N1_REG, CT_COMP_BOUND_REG);
  const uint64_t comp_store = cycles_of(b);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 4, 4, 0);
  const uint64_t comp_load = cycles_of(b);
  printf("  %u tiles: %" PRIu64 " cycles to load, %" PRIu64 " compressed; %" PRIu64
         " to store, %" PRIu64 " compressed\n",
         CT_COMP_TILES, load, comp_load, store, comp_store);
  assert_in_range(comp_store, store, store + LATENCY);
  assert_in_range(comp_load, load, load + LATENCY);
  ct_comp_close(b);
}

int main(void) {
  static struct ct_comp_device core[2];
  for (unsigned i = 0; i < 2; ++i)
    core[i] = (struct ct_comp_device){ct_cores[i].name, ct_cores[i].ops, ct_cores[i].error,
                                      "dram=8,stall=20,latency=20,seed=7", 20};
  static struct ct_comp_device plain_memory[2];
  for (unsigned i = 0; i < 2; ++i) {
    plain_memory[i] = core[i];
    plain_memory[i].args = "dram=8";
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_has_it),
      cmocka_unit_test_prestate(rate, &plain_memory[0]),
      cmocka_unit_test_prestate(ct_comp_groups_come_back, &core[0]),
      cmocka_unit_test_prestate(ct_comp_groups_come_back, &core[1]),
      cmocka_unit_test_prestate(ct_comp_jobs_end_in_errors, &core[0]),
      cmocka_unit_test_prestate(ct_comp_jobs_end_in_errors, &core[1]),
      cmocka_unit_test_prestate(ct_comp_arenas_are_full, &core[0]),
      cmocka_unit_test_prestate(ct_comp_what_is_illegal, &core[1]),
      cmocka_unit_test_prestate(ct_comp_anything_is_loaded, &core[0]),
      cmocka_unit_test_prestate(ct_comp_anything_is_loaded, &core[1]),
      cmocka_unit_test_prestate(failures, &plain_memory[0]),
      cmocka_unit_test_prestate(failures, &plain_memory[1]),
      cmocka_unit_test_prestate(beside, (void *)&ct_cores[0]),
      cmocka_unit_test_prestate(beside, (void *)&ct_cores[1]),
  };
  ct_tb_seed();
  return cmocka_run_group_tests_name("compressed groups on the cores", tests, NULL, NULL);
}
