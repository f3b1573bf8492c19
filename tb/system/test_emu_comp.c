/* SPDX-License-Identifier: Apache-2.0 */
/* LD and ST with Comp on the emulator: what comes back, which pages are in use, how jobs end. */
#include <stdio.h>
#include <string.h>

#include "ct_act.h"
#include "ct_act_pages.h"
#include "ct_rig.h"
#include "unit/act_gen.h"

/* In the output area of context 1: tiles that come back, index, pages. */
enum {
  TILES = 16,
  TILE_UNITS = 17,
  BACK = CT_RIG_OUT,
  INDEX = CT_RIG_OUT + 0x4000,
  ARENA = CT_RIG_OUT + 0x5000,
  PAGES = 16,
  WORDS = 16 * TILES,
  SECOND = 512, /* where they are loaded to */
  BOUND_REG = 9
};

struct bench {
  struct ct_rig rig;
  struct ct_gen_prog prog;
  struct act_group group;
  struct ct_act_block block[WORDS];
  uint8_t in[TILES * TILE_UNITS * 16], out[TILES * TILE_UNITS * 16];
  uint8_t memory[CT_RIG_MIB << 20], after[CT_RIG_MIB << 20];
};

static struct bench *open_bench(const char *args) {
  struct bench *b = test_calloc(1, sizeof *b);
  ct_rig_open(&b->rig, "emu", &ct_transport_emu, NULL, args);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_BASE, ct_rig_unit(1, ARENA));
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
  return b;
}

static void close_bench(struct bench *b) {
  ct_rig_close(&b->rig);
  test_free(b);
}

static struct ct_cmd *add(struct bench *b, unsigned code) {
  struct ct_cmd *cmd = &b->prog.cmds[b->prog.count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

/* Records of all tiles, one behind the other. */
static struct ct_cmd *add_records(struct bench *b, unsigned code, uint32_t at, uint32_t spm) {
  struct ct_cmd *cmd = add(b, code);
  CT_PUT(cmd, DMA_DRAM, ct_rig_unit(1, at));
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_HDR, 1);
  CT_PUT(cmd, DMA_NB, 16);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_D1, TILE_UNITS);
  CT_PUT(cmd, DMA_N1, TILES);
  CT_PUT(cmd, DMA_S1, 16);
  CT_PUT(cmd, DMA_N2, 1);
  return cmd;
}

/* All of them in groups of so many tiles, four or fewer in an index unit. */
static struct ct_cmd *add_groups(struct bench *b, unsigned code, uint32_t spm, unsigned tiles,
                                 unsigned groups, unsigned first) {
  struct ct_cmd *cmd = add(b, code);
  CT_PUT(cmd, DMA_COMP, 1);
  CT_PUT(cmd, DMA_DRAM, ct_rig_unit(1, INDEX));
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_NB, 16 * tiles);
  CT_PUT(cmd, DMA_N1, groups);
  CT_PUT(cmd, DMA_FIRST, first);
  CT_PUT(cmd, DMA_S1, 16 * tiles);
  CT_PUT(cmd, DMA_S2, 16 * tiles * groups);
  CT_PUT(cmd, DMA_D2, 1);
  CT_PUT(cmd, DMA_N2, TILES / (tiles * groups));
  return cmd;
}

static struct ct_rig_cpl run(struct bench *b) {
  const struct ct_rig_job job = {.prog = &b->prog};
  add(b, CT_OP_END);
  ct_rig_submit(&b->rig, 1, &job);
  ct_rig_ring(&b->rig, 1);
  b->prog.count = 0;
  return ct_rig_reap(&b->rig, 1, 0);
}

static void run_well(struct bench *b) {
  const struct ct_rig_cpl cpl = run(b);
  if (cpl.code) fail_msg("code %u, address %x", (unsigned)cpl.code, (unsigned)cpl.addr);
}

static void ends_with(struct bench *b, const char *what, uint32_t code, uint32_t addr) {
  const struct ct_rig_cpl cpl = run(b);
  if (cpl.code != code || cpl.addr != addr)
    fail_msg("%s: code %u, address %x", what, (unsigned)cpl.code, (unsigned)cpl.addr);
}

static void order(struct ct_cmd *before, struct ct_cmd *after, unsigned sem) {
  CT_PUT(before, ALL_SIG1, CT_SEM(sem));
  CT_PUT(after, ALL_WAIT1, CT_SEM(sem));
}

/* Tiles of a random kind in the scratchpad and, as they are to come back, in block[]. */
static void draw(struct bench *b, ct_rng *rng, uint8_t bound) {
  for (unsigned t = 0; t < TILES; ++t) {
    act_draw(rng, &b->group);
    memcpy(b->block + (size_t)16 * t, b->group.x, 16 * sizeof *b->block);
  }
  for (unsigned t = 0; t < TILES; ++t)
    ct_act_to_record(b->block + (size_t)16 * t, b->in + (size_t)TILE_UNITS * 16 * t);
  b->rig.ops->mem_write(b->rig.self, ct_rig_addr(1, CT_RIG_IN), b->in, sizeof b->in);
  for (unsigned i = 0; i < WORDS; ++i)
    ct_act_round(&b->block[i], bound);
}

/* The manual's account of what each command does, by the functions of ct_act.h. */
static void same_memory(struct bench *b, uint8_t bound, unsigned tiles, unsigned groups,
                        unsigned first, struct ct_act_pages *pages) {
  uint8_t index[16 * TILES], bytes[CT_ACT_BYTES], got[CT_ACT_BYTES];
  b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, INDEX), index, sizeof index);
  struct ct_act_block x[CT_ACT_TILES * 16];
  for (unsigned g = 0; g < TILES / tiles; ++g) {
    for (unsigned t = 0; t < tiles; ++t)
      ct_act_from_record(x + (size_t)16 * t, b->in + (size_t)TILE_UNITS * 16 * (g * tiles + t));
    const unsigned units = ct_act_encode(x, tiles, bound, bytes);
    const int64_t place = ct_act_take(pages, units);
    const uint8_t *e = index + 16 * (g / groups) + 4 * (first + g % groups);
    const uint32_t entry =
        (uint32_t)e[0] | (uint32_t)e[1] << 8 | (uint32_t)e[2] << 16 | (uint32_t)e[3] << 24;
    assert_int_equal(entry, ct_act_entry((uint32_t)place, units));
    b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, ARENA) + 16 * (uint64_t)place, got,
                         (size_t)16 * units);
    assert_memory_equal(got, bytes, (size_t)16 * units);
  }
}

/* Every size of a group, every number of them in an index unit, wherever they begin in it. */
static void groups_come_back(void **state) {
  (void)state;
  struct bench *b = open_bench("dram=8");
  ct_rng rng = ct_rng_make(21);
  uint16_t groups_of[PAGES];
  uint32_t freed[PAGES];
  for (unsigned round = 0; round < 60; ++round) {
    const unsigned tiles = 1u << ct_rng_below(&rng, 3), most = TILES / tiles < 4 ? TILES / tiles : 4;
    const unsigned groups = most == 4 && ct_rng_percent(&rng, 50) ? 4 : 1u << ct_rng_below(&rng, 2);
    const unsigned first = (unsigned)ct_rng_below(&rng, 5 - groups);
    const uint8_t bound = ct_rng_percent(&rng, 30) ? 0 : (uint8_t)ct_rng_below(&rng, 255);
    struct ct_act_pages pages = ct_act_pages(PAGES, groups_of, freed);
    draw(b, &rng, bound);
    b->prog.args[BOUND_REG - 1] = (uint32_t)bound << 4;
    struct ct_cmd *ld = add_records(b, CT_OP_LD, CT_RIG_IN, 0);
    struct ct_cmd *st = add_groups(b, CT_OP_ST, 0, tiles, groups, first);
    CT_PUT(st, DMA_N1_REG, BOUND_REG);
    order(ld, st, 0);
    run_well(b);
    same_memory(b, bound, tiles, groups, first, &pages);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_HELD), pages.held);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), pages.most);
    /* Read, read once more and freed, stored raw. */
    add_groups(b, CT_OP_LD, SECOND, tiles, groups, first);
    ld = add_groups(b, CT_OP_LD, SECOND, tiles, groups, first);
    CT_PUT(ld, DMA_FREE, 1);
    st = add_records(b, CT_OP_ST, BACK, SECOND);
    order(ld, st, 1);
    run_well(b);
    b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, BACK), b->out, sizeof b->out);
    for (unsigned t = 0; t < TILES; ++t)
      ct_act_to_record(b->block + (size_t)16 * t, b->in + (size_t)TILE_UNITS * 16 * t);
    assert_memory_equal(b->out, b->in, sizeof b->in);
    assert_in_range(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_HELD), 0, 1); /* the open page */
    ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_HELD), 0);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), 0);
  }
  close_bench(b);
}

/* Stores all tiles in groups of one, four in an index unit. */
static void store(struct bench *b) {
  struct ct_cmd *ld = add_records(b, CT_OP_LD, CT_RIG_IN, 0);
  order(ld, add_groups(b, CT_OP_ST, 0, 1, 4, 0), 0);
}

static void poke(struct bench *b, uint64_t addr, uint8_t value) {
  b->rig.ops->mem_write(b->rig.self, addr, &value, 1);
}

/* Turns bits of a byte over. */
static void damage(struct bench *b, uint32_t offset, uint8_t bits) {
  uint8_t byte;
  b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, offset), &byte, 1);
  poke(b, ct_rig_addr(1, offset), byte ^ bits);
}

static void jobs_end_in_errors(void **state) {
  (void)state;
  struct bench *b = open_bench("dram=8");
  ct_rng rng = ct_rng_make(22);
  const uint32_t index = ct_rig_unit(1, INDEX), arena = ct_rig_unit(1, ARENA);
  draw(b, &rng, 0);
  /* No pages. */
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, 0);
  store(b);
  ends_with(b, "no arena", CT_DEV_COMP, index);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
  /* A group, an entry that is not one, and one that was freed. */
  store(b);
  run_well(b);
  damage(b, ARENA, 1);
  add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
  ends_with(b, "a damaged group", CT_DEV_COMP, index);
  damage(b, ARENA, 1);
  damage(b, INDEX + 16 + 4, 127);
  add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
  ends_with(b, "a damaged entry", CT_DEV_COMP, index + 1);
  damage(b, INDEX + 16 + 4, 127);
  damage(b, INDEX + 16 + 3, 128);
  add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
  ends_with(b, "a place behind the pages", CT_DEV_COMP, index + 1);
  damage(b, INDEX + 16 + 3, 128);
  add_groups(b, CT_OP_LD, SECOND, 2, 2, 0);
  ends_with(b, "more tiles than the group has", CT_DEV_COMP, index);
  CT_PUT(add_groups(b, CT_OP_LD, SECOND, 1, 4, 0), DMA_FREE, 1);
  run_well(b);
  struct ct_cmd *again = add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
  CT_PUT(again, DMA_FREE, 1);
  ends_with(b, "freed twice", CT_DEV_COMP, index);
  /* Windows. */
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
  store(b);
  run_well(b);
  add_groups(b, CT_OP_LD, CT_GEN_SPM - 24, 1, 4, 0);
  ends_with(b, "loaded outside the window", CT_DEV_SPM_WINDOW, CT_GEN_SPM);
  add_groups(b, CT_OP_ST, CT_GEN_SPM - 24, 1, 4, 0);
  ends_with(b, "stored from outside the window", CT_DEV_SPM_WINDOW, CT_GEN_SPM);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_RD_LIMIT, arena);
  add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
  ends_with(b, "pages that may not be read", CT_DEV_DRAM_READ_WINDOW, arena);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_RD_LIMIT, index);
  add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
  ends_with(b, "an index that may not be read", CT_DEV_DRAM_READ_WINDOW, index);
  ct_rig_windows(&b->rig, 1);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_WR_LIMIT, arena + 1);
  store(b);
  ends_with(b, "pages that may not be written", CT_DEV_DRAM_WRITE_WINDOW, arena + 1);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
  ct_rig_windows(&b->rig, 1);
  struct ct_cmd *st = add_groups(b, CT_OP_ST, 0, 1, 4, 0);
  CT_PUT(st, DMA_DRAM, ct_rig_unit(1, CT_RIG_IN));
  ends_with(b, "an index that may not be written", CT_DEV_DRAM_WRITE_WINDOW,
            ct_rig_unit(1, CT_RIG_IN));
  close_bench(b);
}

/* An arena that is too small holds what fits, and has room again for what was freed. */
static void arenas_are_full(void **state) {
  (void)state;
  struct bench *b = open_bench("dram=8");
  ct_rng rng = ct_rng_make(23);
  draw(b, &rng, 0);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, 1);
  unsigned stored = 0;
  struct ct_rig_cpl cpl;
  do {
    store(b);
    CT_PUT(&b->prog.cmds[1], DMA_DRAM, ct_rig_unit(1, INDEX) + 4 * stored);
    cpl = run(b);
  } while (cpl.code == CT_DEV_OK && ++stored < 100);
  assert_in_range(stored, 1, 99);
  assert_int_equal(cpl.code, CT_DEV_COMP);
  assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), 1);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, 2);
  for (unsigned i = 0; i < 50; ++i) {
    store(b);
    CT_PUT(add_groups(b, CT_OP_LD, SECOND, 1, 4, 0), DMA_FREE, 1);
    order(&b->prog.cmds[1], &b->prog.cmds[2], 1);
    run_well(b);
  }
  assert_in_range(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), 1, 2);
  close_bench(b);
}

static void what_is_illegal(void **state) {
  (void)state;
  struct bench *b = open_bench("dram=8");
  static const struct {
    const char *what;
    enum ct_field_id field;
    uint32_t value;
    bool ld;
  } wrong[] = {
      {"no groups", CT_F_DMA_N1, 0, true},      {"five groups", CT_F_DMA_N1, 5, true},
      {"bit 3", CT_F_DMA_N1, 9, true},          {"a bound of 255", CT_F_DMA_N1, 4 | 255 << 4, false},
      {"past the unit", CT_F_DMA_FIRST, 1, true}, {"half a tile", CT_F_DMA_NB, 24, true},
      {"five tiles", CT_F_DMA_NB, 80, true},    {"no words", CT_F_DMA_NB, 0, true},
      {"a header", CT_F_DMA_HDR, 1, true},      {"gathered", CT_F_DMA_GATHER, 1, true},
      {"no steps", CT_F_DMA_N2, 0, true},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    for (unsigned ld = 0; ld <= wrong[i].ld; ++ld) {
      struct ct_cmd *cmd = add_groups(b, ld ? CT_OP_LD : CT_OP_ST, 0, 1, 4, 0);
      assert_true(ct_cmd_set(cmd, wrong[i].field, wrong[i].value));
      ends_with(b, wrong[i].what, CT_DEV_ILLEGAL, 0);
    }
  }
  close_bench(b);
}

/* Where there is no arena commands are illegal, and registers read 0. */
static void without(void **state) {
  (void)state;
  for (unsigned none = 0; none < 2; ++none) {
    struct bench *b = open_bench(none ? "dram=8,compress=0" : "dram=8");
    const unsigned ctx = none ? 1 : 0;
    const struct ct_rig_job job = {.prog = &b->prog};
    ct_rig_cwrite(&b->rig, ctx, CT_CREG_ARENA_BASE, 0x10000);
    ct_rig_cwrite(&b->rig, ctx, CT_CREG_ARENA_PAGES, 5);
    assert_int_equal(ct_rig_cread(&b->rig, ctx, CT_CREG_ARENA_BASE), 0);
    assert_int_equal(ct_rig_cread(&b->rig, ctx, CT_CREG_ARENA_PAGES), 0);
    add_groups(b, CT_OP_ST, 0, 1, 4, 0);
    add(b, CT_OP_END);
    ct_rig_submit(&b->rig, ctx, &job);
    ct_rig_ring(&b->rig, ctx);
    assert_int_equal(ct_rig_reap(&b->rig, ctx, 0).code, CT_DEV_ILLEGAL);
    assert_int_equal(!(ct_rig_read(&b->rig, CT_REG_FEATURES) & CT_FEATURE_COMPRESS), none);
    close_bench(b);
  }
  struct bench *b = open_bench("dram=8");
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_BASE, 0x123456ff);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_PAGES + 1);
  assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_BASE), 0x12345600);
  assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_PAGES), CT_COMP_PAGES);
  close_bench(b);
}

/* Whatever index and pages hold, a load writes no device memory and no word that it does not name,
 * and its job ends. */
static void anything_is_loaded(void **state) {
  (void)state;
  struct bench *b = open_bench("dram=8");
  ct_rng rng = ct_rng_make(24);
  unsigned ok = 0, bad = 0;
  draw(b, &rng, 0);
  for (unsigned round = 0; round < 400; ++round) {
    uint8_t noise[64];
    ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, PAGES);
    store(b);
    run_well(b);
    const bool in_index = ct_rng_percent(&rng, 50);
    const size_t size = 1 + ct_rng_below(&rng, in_index ? 4 : sizeof noise);
    ct_rng_fill(&rng, noise, sizeof noise);
    b->rig.ops->mem_write(b->rig.self,
                          ct_rig_addr(1, in_index ? INDEX : ARENA) +
                              ct_rng_below(&rng, in_index ? 61 : 4096),
                          noise, size);
    b->rig.ops->mem_read(b->rig.self, 0, b->memory, sizeof b->memory);
    struct ct_cmd *ld = add_groups(b, CT_OP_LD, SECOND, 1, 4, 0);
    CT_PUT(ld, DMA_FREE, ct_rng_percent(&rng, 50));
    const struct ct_rig_cpl cpl = run(b);
    ok += cpl.code == CT_DEV_OK;
    bad += cpl.code == CT_DEV_COMP;
    assert_true(cpl.code == CT_DEV_OK || cpl.code == CT_DEV_COMP);
    b->rig.ops->mem_read(b->rig.self, 0, b->after, sizeof b->after);
    /* (Ring and programs have changed, which are below the input.) */
    assert_memory_equal(b->memory + ct_rig_addr(1, CT_RIG_IN), b->after + ct_rig_addr(1, CT_RIG_IN),
                        CT_RIG_CTX_BYTES - CT_RIG_IN);
    const uint32_t near[2] = {SECOND - 1, SECOND + WORDS};
    for (unsigned i = 0; i < 2; ++i) {
      uint32_t word[5];
      ct_rig_peek(&b->rig, ct_rig_spm_base(1) + near[i], word);
      for (unsigned w = 0; w < 4; ++w)
        assert_int_equal(word[w], 0);
    }
  }
  printf("  %u loads end well, %u with COMP\n", ok, bad);
  assert_true(ok > 10 && bad > 100);
  close_bench(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_come_back), cmocka_unit_test(jobs_end_in_errors),
      cmocka_unit_test(arenas_are_full),  cmocka_unit_test(what_is_illegal),
      cmocka_unit_test(without),          cmocka_unit_test(anything_is_loaded),
  };
  ct_tb_seed();
  return cmocka_run_group_tests_name("compressed groups", tests, NULL, NULL);
}
