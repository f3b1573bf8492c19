/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_comp.h"

#include <stdio.h>
#include <string.h>

#include "ct_act.h"
#include "ct_act_pages.h"

enum { LIMIT = 400000 /* cycles of a job */ };

struct ct_comp *ct_comp_open(const struct ct_comp_device *dev, const char *args) {
  struct ct_comp *b = test_calloc(1, sizeof *b);
  char all[160];
  snprintf(all, sizeof all, "%s%s%s", dev->args, *args ? "," : "", args);
  ct_rig_open(&b->rig, dev->name, dev->ops, dev->error, all);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_BASE, ct_rig_unit(1, CT_COMP_ARENA));
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
  return b;
}

void ct_comp_close(struct ct_comp *b) {
  ct_rig_close(&b->rig);
  test_free(b);
}

struct ct_cmd *ct_comp_add(struct ct_comp *b, unsigned code) {
  struct ct_cmd *cmd = &b->prog.cmds[b->prog.count++];
  memset(cmd, 0, sizeof *cmd);
  CT_PUT(cmd, ALL_OP, code);
  return cmd;
}

/* Records of all tiles, one behind the other. */
struct ct_cmd *ct_comp_records(struct ct_comp *b, unsigned code, uint32_t at, uint32_t spm) {
  struct ct_cmd *cmd = ct_comp_add(b, code);
  CT_PUT(cmd, DMA_DRAM, ct_rig_unit(1, at));
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_HDR, 1);
  CT_PUT(cmd, DMA_NB, 16);
  CT_PUT(cmd, DMA_S0, 1);
  CT_PUT(cmd, DMA_D1, CT_COMP_TILE_UNITS);
  CT_PUT(cmd, DMA_N1, CT_COMP_TILES);
  CT_PUT(cmd, DMA_S1, 16);
  CT_PUT(cmd, DMA_N2, 1);
  return cmd;
}

unsigned ct_comp_whole(unsigned tiles, unsigned groups) {
  return CT_COMP_TILES / (tiles * groups) * (tiles * groups);
}

/* All that fill index units in groups of so many tiles, four or fewer in a unit. */
struct ct_cmd *ct_comp_groups(struct ct_comp *b, unsigned code, uint32_t spm, unsigned tiles,
                              unsigned groups, unsigned first) {
  struct ct_cmd *cmd = ct_comp_add(b, code);
  CT_PUT(cmd, DMA_COMP, 1);
  CT_PUT(cmd, DMA_DRAM, ct_rig_unit(1, CT_COMP_INDEX));
  CT_PUT(cmd, DMA_SPM, spm);
  CT_PUT(cmd, DMA_NB, 16 * tiles);
  CT_PUT(cmd, DMA_N1, groups);
  CT_PUT(cmd, DMA_FIRST, first);
  CT_PUT(cmd, DMA_S1, 16 * tiles);
  CT_PUT(cmd, DMA_S2, 16 * tiles * groups);
  CT_PUT(cmd, DMA_D2, 1);
  CT_PUT(cmd, DMA_N2, CT_COMP_TILES / (tiles * groups));
  return cmd;
}

struct ct_rig_cpl ct_comp_run(struct ct_comp *b) {
  const struct ct_rig_job job = {.prog = &b->prog};
  ct_comp_add(b, CT_OP_END);
  ct_rig_submit(&b->rig, 1, &job);
  ct_rig_ring(&b->rig, 1);
  b->prog.count = 0;
  return ct_rig_reap(&b->rig, 1, LIMIT);
}

static void run_well(struct ct_comp *b) {
  const struct ct_rig_cpl cpl = ct_comp_run(b);
  if (cpl.code) fail_msg("code %u, address %x", (unsigned)cpl.code, (unsigned)cpl.addr);
}

static void ends_with(struct ct_comp *b, const char *what, uint32_t code, uint32_t addr) {
  const struct ct_rig_cpl cpl = ct_comp_run(b);
  if (cpl.code != code || cpl.addr != addr)
    fail_msg("%s: code %u, address %x", what, (unsigned)cpl.code, (unsigned)cpl.addr);
}

void ct_comp_order(struct ct_cmd *before, struct ct_cmd *after, unsigned sem) {
  CT_PUT(before, ALL_SIG1, CT_SEM(sem));
  CT_PUT(after, ALL_WAIT1, CT_SEM(sem));
}

/* Tiles of a random kind in the scratchpad and, as they are to come back, in block[]. */
void ct_comp_draw(struct ct_comp *b, ct_rng *rng, uint8_t bound) {
  for (unsigned t = 0; t < CT_COMP_TILES; ++t) {
    act_draw(rng, &b->group);
    memcpy(b->block + (size_t)16 * t, b->group.x, 16 * sizeof *b->block);
  }
  for (unsigned t = 0; t < CT_COMP_TILES; ++t)
    ct_act_to_record(b->block + (size_t)16 * t, b->in + (size_t)CT_COMP_TILE_UNITS * 16 * t);
  b->rig.ops->mem_write(b->rig.self, ct_rig_addr(1, CT_RIG_IN), b->in, sizeof b->in);
  for (unsigned i = 0; i < CT_COMP_WORDS; ++i)
    ct_act_round(&b->block[i], bound);
}

/* The manual's account of what each command does, by the functions of ct_act.h. */
static void same_memory(struct ct_comp *b, uint8_t bound, unsigned tiles, unsigned groups,
                        unsigned first, struct ct_act_pages *pages) {
  uint8_t index[16 * CT_COMP_TILES], bytes[CT_ACT_BYTES], got[CT_ACT_BYTES];
  b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, CT_COMP_INDEX), index, sizeof index);
  struct ct_act_block x[CT_ACT_TILES * 16];
  for (unsigned g = 0; g < ct_comp_whole(tiles, groups) / tiles; ++g) {
    for (unsigned t = 0; t < tiles; ++t)
      ct_act_from_record(x + (size_t)16 * t,
                         b->in + (size_t)CT_COMP_TILE_UNITS * 16 * (g * tiles + t));
    const unsigned units = ct_act_encode(x, tiles, bound, bytes);
    const int64_t place = ct_act_take(pages, units);
    const uint32_t entry =
        ct_act_entry_at(index, CT_ACT_ENTRIES * (g / groups) + first + g % groups);
    assert_int_equal(entry, ct_act_entry((uint32_t)place, units));
    b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, CT_COMP_ARENA) + 16 * (uint64_t)place, got,
                         (size_t)16 * units);
    assert_memory_equal(got, bytes, (size_t)16 * units);
  }
}

/* Every size of a group, every number of them in an index unit, wherever they begin in it. */
void ct_comp_groups_come_back(void **state) {
  const struct ct_comp_device *dev = *state;
  struct ct_comp *b = ct_comp_open(dev, "");
  ct_rng rng = ct_rng_make(21);
  uint16_t groups_of[CT_COMP_ARENA_PAGES];
  uint32_t freed[CT_COMP_ARENA_PAGES];
  for (unsigned round = 0; round < dev->rounds; ++round) {
    const unsigned tiles = 1 + round % 4, groups = 1 + round / 4 % 4;
    const unsigned whole = ct_comp_whole(tiles, groups);
    const unsigned first = (unsigned)ct_rng_below(&rng, 5 - groups);
    const uint8_t bound = ct_rng_percent(&rng, 30) ? 0 : (uint8_t)ct_rng_below(&rng, 255);
    struct ct_act_pages pages = ct_act_pages(CT_COMP_ARENA_PAGES, groups_of, freed);
    ct_comp_draw(b, &rng, bound);
    b->prog.args[CT_COMP_BOUND_REG - 1] = (uint32_t)bound << 4;
    struct ct_cmd *ld = ct_comp_records(b, CT_OP_LD, CT_RIG_IN, 0);
    struct ct_cmd *st = ct_comp_groups(b, CT_OP_ST, 0, tiles, groups, first);
    CT_PUT(st, DMA_N1_REG, CT_COMP_BOUND_REG);
    ct_comp_order(ld, st, 0);
    run_well(b);
    same_memory(b, bound, tiles, groups, first, &pages);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_HELD), pages.held);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), pages.most);
    /* Read, read once more and freed, stored raw. */
    ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, tiles, groups, first);
    ld = ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, tiles, groups, first);
    CT_PUT(ld, DMA_FREE, 1);
    st = ct_comp_records(b, CT_OP_ST, CT_COMP_BACK, CT_COMP_SECOND);
    CT_PUT(st, DMA_N1, whole);
    ct_comp_order(ld, st, 1);
    run_well(b);
    b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, CT_COMP_BACK), b->out, sizeof b->out);
    for (unsigned t = 0; t < CT_COMP_TILES; ++t)
      ct_act_to_record(b->block + (size_t)16 * t, b->in + (size_t)CT_COMP_TILE_UNITS * 16 * t);
    assert_memory_equal(b->out, b->in, (size_t)16 * CT_COMP_TILE_UNITS * whole);
    assert_in_range(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_HELD), 0, 1); /* the open page */
    ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_HELD), 0);
    assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), 0);
  }
  ct_comp_close(b);
}

/* Stores all tiles in groups of one, four in an index unit. */
static void store(struct ct_comp *b) {
  struct ct_cmd *ld = ct_comp_records(b, CT_OP_LD, CT_RIG_IN, 0);
  ct_comp_order(ld, ct_comp_groups(b, CT_OP_ST, 0, 1, 4, 0), 0);
}

static void poke(struct ct_comp *b, uint64_t addr, uint8_t value) {
  b->rig.ops->mem_write(b->rig.self, addr, &value, 1);
}

/* Turns bits of a byte over. */
static void damage(struct ct_comp *b, uint32_t offset, uint8_t bits) {
  uint8_t byte;
  b->rig.ops->mem_read(b->rig.self, ct_rig_addr(1, offset), &byte, 1);
  poke(b, ct_rig_addr(1, offset), byte ^ bits);
}

void ct_comp_jobs_end_in_errors(void **state) {
  const struct ct_comp_device *dev = *state;
  struct ct_comp *b = ct_comp_open(dev, "");
  ct_rng rng = ct_rng_make(22);
  const uint32_t index = ct_rig_unit(1, CT_COMP_INDEX), arena = ct_rig_unit(1, CT_COMP_ARENA);
  ct_comp_draw(b, &rng, 0);
  /* No pages. */
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, 0);
  store(b);
  ends_with(b, "no arena", CT_DEV_COMP, index);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
  /* A group, an entry that is not one, and one that was freed. */
  store(b);
  run_well(b);
  damage(b, CT_COMP_ARENA, 1);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
  ends_with(b, "a damaged group", CT_DEV_COMP, index);
  damage(b, CT_COMP_ARENA, 1);
  damage(b, CT_COMP_INDEX + 16 + 4, 127);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
  ends_with(b, "a damaged entry", CT_DEV_COMP, index + 1);
  damage(b, CT_COMP_INDEX + 16 + 4, 127);
  damage(b, CT_COMP_INDEX + 16 + 3, 128);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
  ends_with(b, "a place behind the pages", CT_DEV_COMP, index + 1);
  damage(b, CT_COMP_INDEX + 16 + 3, 128);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 2, 2, 0);
  ends_with(b, "more tiles than the group has", CT_DEV_COMP, index);
  CT_PUT(ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0), DMA_FREE, 1);
  run_well(b);
  struct ct_cmd *again = ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
  CT_PUT(again, DMA_FREE, 1);
  ends_with(b, "freed twice", CT_DEV_COMP, index);
  /* Windows. */
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
  store(b);
  run_well(b);
  ct_comp_groups(b, CT_OP_LD, CT_GEN_SPM - 24, 1, 4, 0);
  ends_with(b, "loaded outside the window", CT_DEV_SPM_WINDOW, CT_GEN_SPM);
  ct_comp_groups(b, CT_OP_ST, CT_GEN_SPM - 24, 1, 4, 0);
  ends_with(b, "stored from outside the window", CT_DEV_SPM_WINDOW, CT_GEN_SPM);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_RD_LIMIT, arena);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
  ends_with(b, "pages that may not be read", CT_DEV_DRAM_READ_WINDOW, arena);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_RD_LIMIT, index);
  ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
  ends_with(b, "an index that may not be read", CT_DEV_DRAM_READ_WINDOW, index);
  ct_rig_windows(&b->rig, 1);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_WR_LIMIT, arena + 1);
  store(b);
  ends_with(b, "pages that may not be written", CT_DEV_DRAM_WRITE_WINDOW, arena + 1);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
  ct_rig_windows(&b->rig, 1);
  struct ct_cmd *st = ct_comp_groups(b, CT_OP_ST, 0, 1, 4, 0);
  CT_PUT(st, DMA_DRAM, ct_rig_unit(1, CT_RIG_IN));
  ends_with(b, "an index that may not be written", CT_DEV_DRAM_WRITE_WINDOW,
            ct_rig_unit(1, CT_RIG_IN));
  ct_comp_close(b);
}

/* An arena that is too small holds what fits, and has room again for what was freed. */
void ct_comp_arenas_are_full(void **state) {
  const struct ct_comp_device *dev = *state;
  struct ct_comp *b = ct_comp_open(dev, "");
  ct_rng rng = ct_rng_make(23);
  ct_comp_draw(b, &rng, 0);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, 1);
  unsigned stored = 0;
  struct ct_rig_cpl cpl;
  do {
    store(b);
    CT_PUT(&b->prog.cmds[1], DMA_DRAM, ct_rig_unit(1, CT_COMP_INDEX) + 4 * stored);
    cpl = ct_comp_run(b);
  } while (cpl.code == CT_DEV_OK && ++stored < 100);
  assert_in_range(stored, 1, 99);
  assert_int_equal(cpl.code, CT_DEV_COMP);
  assert_int_equal(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), 1);
  ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, 2);
  for (unsigned i = 0; i < 50; ++i) {
    store(b);
    CT_PUT(ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0), DMA_FREE, 1);
    ct_comp_order(&b->prog.cmds[1], &b->prog.cmds[2], 1);
    run_well(b);
  }
  assert_in_range(ct_rig_cread(&b->rig, 1, CT_CREG_ARENA_MOST), 1, 2);
  ct_comp_close(b);
}

void ct_comp_what_is_illegal(void **state) {
  const struct ct_comp_device *dev = *state;
  struct ct_comp *b = ct_comp_open(dev, "");
  static const struct {
    const char *what;
    enum ct_field_id field;
    uint32_t value;
    bool ld;
  } wrong[] = {
      {"no groups", CT_F_DMA_N1, 0, true},
      {"five groups", CT_F_DMA_N1, 5, true},
      {"bit 3", CT_F_DMA_N1, 9, true},
      {"a bound of 255", CT_F_DMA_N1, 4 | 255 << 4, false},
      {"past the unit", CT_F_DMA_FIRST, 1, true},
      {"half a tile", CT_F_DMA_NB, 24, true},
      {"five tiles", CT_F_DMA_NB, 80, true},
      {"no words", CT_F_DMA_NB, 0, true},
      {"a header", CT_F_DMA_HDR, 1, true},
      {"gathered", CT_F_DMA_GATHER, 1, true},
      {"no steps", CT_F_DMA_N2, 0, true},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    for (unsigned ld = 0; ld <= wrong[i].ld; ++ld) {
      struct ct_cmd *cmd = ct_comp_groups(b, ld ? CT_OP_LD : CT_OP_ST, 0, 1, 4, 0);
      assert_true(ct_cmd_set(cmd, wrong[i].field, wrong[i].value));
      ends_with(b, wrong[i].what, CT_DEV_ILLEGAL, 0);
    }
  }
  ct_comp_close(b);
}

/* Whatever index and pages hold, a load writes no device memory and no word that it does not name,
 * and its job ends. */
void ct_comp_anything_is_loaded(void **state) {
  const struct ct_comp_device *dev = *state;
  struct ct_comp *b = ct_comp_open(dev, "");
  ct_rng rng = ct_rng_make(24);
  unsigned ok = 0, bad = 0;
  ct_comp_draw(b, &rng, 0);
  for (unsigned round = 0; round < 4 * dev->rounds; ++round) {
    uint8_t noise[64];
    ct_rig_cwrite(&b->rig, 1, CT_CREG_ARENA_PAGES, CT_COMP_ARENA_PAGES);
    store(b);
    run_well(b);
    const bool in_index = ct_rng_percent(&rng, 50);
    const size_t size = 1 + ct_rng_below(&rng, in_index ? 4 : sizeof noise);
    ct_rng_fill(&rng, noise, sizeof noise);
    b->rig.ops->mem_write(b->rig.self,
                          ct_rig_addr(1, in_index ? CT_COMP_INDEX : CT_COMP_ARENA) +
                              ct_rng_below(&rng, in_index ? 61 : 4096),
                          noise, size);
    b->rig.ops->mem_read(b->rig.self, 0, b->memory, sizeof b->memory);
    struct ct_cmd *ld = ct_comp_groups(b, CT_OP_LD, CT_COMP_SECOND, 1, 4, 0);
    CT_PUT(ld, DMA_FREE, ct_rng_percent(&rng, 50));
    const struct ct_rig_cpl cpl = ct_comp_run(b);
    ok += cpl.code == CT_DEV_OK;
    bad += cpl.code == CT_DEV_COMP;
    assert_true(cpl.code == CT_DEV_OK || cpl.code == CT_DEV_COMP);
    b->rig.ops->mem_read(b->rig.self, 0, b->after, sizeof b->after);
    /* (Ring and programs have changed, which are below the input.) */
    assert_memory_equal(b->memory + ct_rig_addr(1, CT_RIG_IN), b->after + ct_rig_addr(1, CT_RIG_IN),
                        CT_RIG_CTX_BYTES - CT_RIG_IN);
    const uint32_t near[2] = {CT_COMP_SECOND - 1, CT_COMP_SECOND + CT_COMP_WORDS};
    for (unsigned i = 0; i < 2; ++i) {
      uint32_t word[5];
      ct_rig_peek(&b->rig, ct_rig_spm_base(1) + near[i], word);
      for (unsigned w = 0; w < 4; ++w)
        assert_int_equal(word[w], 0);
    }
  }
  printf("  %u loads end well, %u with COMP\n", ok, bad);
  assert_true(ok > dev->rounds / 6 && bad > dev->rounds);
  ct_comp_close(b);
}
