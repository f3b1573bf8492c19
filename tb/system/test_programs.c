/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on the core and on the emulator: the same bytes, completions and counts, whatever
 * the memory does and whichever policy shares the units.
 *
 * CT_ROUNDS=N: rounds for each core (default 4). CT_PRINT=1: prints every program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_rig.h"
#include "host/lib/ct_disasm.h"
#include "host/transports/sim/ct_sim.h"

enum { JOBS = 3, LIMIT = 3000000 };

struct core {
  const char *name;
  const struct ct_transport_ops *ops;
  const char *(*error)(void *self);
  const char *emu;
};

static const struct core cores[] = {
    {"16x16", &ct_core_sim, ct_core_sim_error, "dram=8"},
    {"16x8", &ct_core_16x8_sim, ct_core_16x8_sim_error, "dram=8,spm=8192,cols=8,lanes=4"},
};

/* The two devices side by side: [0] the core, [1] the emulator. */
struct pair {
  struct ct_rig rig[2];
  ct_rng rng;
  struct ct_prog progs[2][JOBS + 2]; /* setup, jobs, dump */
};

static void print_line(void *arg, const char *text) {
  (void)arg;
  printf("%s\n", text);
}

static void print_programs(const struct pair *p) {
  for (unsigned c = 0; c < 2; ++c) {
    for (unsigned j = 1; j <= JOBS; ++j) {
      printf("# context %u, job %u\n", c, j);
      ct_disasm(p->progs[c][j].cmds, p->progs[c][j].count, print_line, NULL);
    }
  }
}

static void make_programs(struct pair *p) {
  for (unsigned c = 0; c < 2; ++c) {
    const uint32_t in = ct_rig_unit(c, CT_RIG_IN), out = ct_rig_unit(c, CT_RIG_OUT);
    uint8_t *bytes = test_malloc(16 * CT_GEN_IN_UNITS);
    ct_gen_input(&p->rng, bytes);
    for (unsigned d = 0; d < 2; ++d)
      p->rig[d].ops->mem_write(p->rig[d].self, ct_rig_addr(c, CT_RIG_IN), bytes,
                               16 * CT_GEN_IN_UNITS);
    test_free(bytes);
    ct_gen_setup(&p->progs[c][0], in);
    for (unsigned j = 1; j <= JOBS; ++j)
      ct_gen_random(&p->rng, &p->progs[c][j], 20 + ct_rng_below(&p->rng, 120), in, out);
    ct_gen_dump(&p->progs[c][JOBS + 1], out);
  }
}

static bool same_out(struct pair *p, unsigned c, const char *when) {
  const size_t size = 16 * CT_GEN_OUT_UNITS;
  uint8_t *bytes = test_malloc(2 * size);
  for (unsigned d = 0; d < 2; ++d)
    p->rig[d].ops->mem_read(p->rig[d].self, ct_rig_addr(c, CT_RIG_OUT), bytes + d * size, size);
  unsigned wrong = 0;
  for (unsigned u = 0; u < CT_GEN_OUT_UNITS; ++u) {
    const uint8_t *core = bytes + 16 * u, *emu = core + size;
    if (!memcmp(core, emu, 16) || wrong++ >= 10) continue;
    printf("context %u, %s: out + %u (unit 0x%" PRIx32 "): core ", c, when, u,
           ct_rig_unit(c, CT_RIG_OUT) + u);
    for (unsigned i = 0; i < 16; ++i)
      printf("%02x", core[i]);
    printf(", emulator ");
    for (unsigned i = 0; i < 16; ++i)
      printf("%02x", emu[i]);
    printf("\n");
  }
  test_free(bytes);
  return wrong == 0;
}

static bool same_completions(const struct ct_completion *core, const struct ct_completion *emu) {
  const bool same = core->tag == emu->tag && core->code == emu->code && core->addr == emu->addr &&
                    core->version == emu->version && core->rows == emu->rows;
  if (!same)
    printf("core: tag %" PRIu32 " code %" PRIu32 " addr 0x%" PRIx32 " rows %" PRIu32
           "; emulator: tag %" PRIu32 " code %" PRIu32 " addr 0x%" PRIx32 " rows %" PRIu32 "\n",
           core->tag, core->code, core->addr, core->rows, emu->tag, emu->code, emu->addr,
           emu->rows);
  return same;
}

/* All jobs first..last of both contexts at once, reaped in order. */
static bool run_jobs(struct pair *p, unsigned first, unsigned last) {
  struct ct_completion cpl[2][2][JOBS + 2];
  for (unsigned d = 0; d < 2; ++d) {
    for (unsigned c = 0; c < 2; ++c) {
      for (unsigned j = first; j <= last; ++j) {
        const struct ct_job job = {
            .prog = &p->progs[c][j], .tag = 100 * c + j, .version = 7 * j + c};
        ct_rig_submit(&p->rig[d], c, &job);
      }
      ct_rig_ring(&p->rig[d], c);
    }
    for (unsigned c = 0; c < 2; ++c)
      for (unsigned j = first; j <= last; ++j)
        cpl[d][c][j] = ct_rig_reap(&p->rig[d], c, LIMIT);
  }
  bool same = true;
  for (unsigned c = 0; c < 2; ++c) {
    for (unsigned j = first; j <= last; ++j) {
      same &= same_completions(&cpl[0][c][j], &cpl[1][c][j]) && cpl[0][c][j].code == CT_DEV_OK;
      assert_true(cpl[0][c][j].arrive <= cpl[0][c][j].start);
      assert_true(cpl[0][c][j].start < cpl[0][c][j].end);
    }
    same &= same_out(p, c, first ? last > JOBS ? "dump" : "jobs" : "setup");
  }
  return same;
}

static bool same_counters(struct pair *p) {
  static const unsigned counters[] = {CT_CNT_JOBS,     CT_CNT_MXU_ROWS, CT_CNT_LD_BEATS,
                                      CT_CNT_ST_BEATS, CT_CNT_CMDS,     CT_CNT_NAN_GROUPS};
  bool same = true;
  for (unsigned c = 0; c < 2; ++c) {
    for (size_t i = 0; i < sizeof counters / sizeof *counters; ++i) {
      const uint64_t core = ct_rig_counter(&p->rig[0], c, counters[i]);
      const uint64_t emu = ct_rig_counter(&p->rig[1], c, counters[i]);
      if (core == emu) continue;
      printf("context %u: counter %s: core %" PRIu64 ", emulator %" PRIu64 "\n", c,
             ct_cnt_name(counters[i]), core, emu);
      same = false;
    }
  }
  return same;
}

static bool same_peeks(struct pair *p) {
  bool same = true;
  for (unsigned i = 0; i < 24; ++i) {
    const uint32_t addr = ct_rng_below(&p->rng, 4096);
    uint32_t core[5], emu[5];
    ct_rig_peek(&p->rig[0], addr, core);
    ct_rig_peek(&p->rig[1], addr, emu);
    if (!memcmp(core, emu, sizeof core)) continue;
    printf("SPM word %" PRIu32 ": core %08" PRIx32 " %08" PRIx32 " .. e %08" PRIx32
           ", emulator %08" PRIx32 " %08" PRIx32 " .. e %08" PRIx32 "\n",
           addr, core[0], core[1], core[4], emu[0], emu[1], emu[4]);
    same = false;
  }
  return same;
}

/* How the memory behaves and how the units are shared. */
static void choose_circumstances(struct pair *p, char *args, size_t size, unsigned round) {
  static const unsigned stalls[] = {0, 25, 60}, latencies[] = {5, 60, 200}, widths[] = {16, 4, 1};
  ct_rng *r = &p->rng;
  const bool slow = ct_rng_percent(r, 20);
  snprintf(args, size, "dram=%d,stall=%u,latency=%u,bandwidth=%u,seed=%" PRIu64, CT_RIG_MIB,
           stalls[ct_rng_below(r, 3)], latencies[ct_rng_below(r, 3)],
           slow ? widths[ct_rng_below(r, 3)] : 16, ct_rng_u64(r));
  printf("  round %u: %s", round, args);
}

static void share(struct pair *p, unsigned round) {
  const uint32_t floor = ct_rng_percent(&p->rng, 50) ? ct_rng_below(&p->rng, 256) : 0;
  const uint32_t cap = 1 + ct_rng_below(&p->rng, 8);
  for (unsigned d = 0; d < 2; ++d) {
    ct_rig_write(&p->rig[d], CT_REG_POLICY, round % 4);
    ct_rig_write(&p->rig[d], CT_REG_FLOOR, floor);
    ct_rig_write(&p->rig[d], CT_REG_TRAIN_CAP, cap);
  }
  printf(", policy %u, floor %" PRIu32 ", cap %" PRIu32 "\n", round % 4, floor, cap);
}

static void one_round(const struct core *core, unsigned round) {
  struct pair *p = test_calloc(1, sizeof *p);
  char args[160];
  p->rng = ct_rng_make(1000 * (unsigned)(core - cores) + round);
  choose_circumstances(p, args, sizeof args, round);
  ct_rig_open(&p->rig[0], core->name, core->ops, core->error, args);
  ct_rig_open(&p->rig[1], "emu", &ct_transport_emu, NULL, core->emu);
  share(p, round);
  make_programs(p);
  if (getenv("CT_PRINT")) print_programs(p);
  const bool setup = run_jobs(p, 0, 0), jobs = run_jobs(p, 1, JOBS), peeks = same_peeks(p);
  const bool dump = run_jobs(p, JOBS + 1, JOBS + 1), counters = same_counters(p);
  const bool same = setup && jobs && peeks && dump && counters;
  ct_rig_close(&p->rig[0]);
  ct_rig_close(&p->rig[1]);
  test_free(p);
  assert_true(same);
}

static void random_programs(void **state) {
  const struct core *core = *state;
  const char *text = getenv("CT_ROUNDS");
  const unsigned rounds = text ? (unsigned)strtoul(text, NULL, 0) : 4;
  ct_tb_seed();
  for (unsigned i = 0; i < rounds; ++i)
    one_round(core, i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(random_programs, (void *)&cores[0]),
      cmocka_unit_test_prestate(random_programs, (void *)&cores[1]),
  };
  return cmocka_run_group_tests_name("random programs", tests, NULL, NULL);
}
