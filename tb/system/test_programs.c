/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on the core and on the emulator: the same bytes, completions and counts, whatever
 * the memory does and whichever policy shares the units. Between them jobs that fail before they
 * have done anything, and chains that are skipped behind these.
 *
 * CT_ROUNDS=N: rounds for each core (default 8). CT_PRINT=1: prints every program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ct_pair.h"
#include "host/lib/isa/ct_disasm.h"

enum { JOBS = 6, LIMIT = 3000000, ARENA = CT_RIG_OUT + 0x40000 };

/* The programs of a round: setup, jobs, dump. */
struct round {
  struct ct_pair pair;
  ct_rng rng;
  struct ct_gen_prog progs[2][JOBS + 2];
  struct ct_rig_job jobs[2][JOBS + 2];
  struct tally *tally;
  bool failures; /* some of the jobs fail */
  bool comp;     /* context 1 compresses */
};

/* What has happened in all rounds. */
struct tally {
  unsigned overlaps; /* jobs of the core that began before the one before had completed */
  unsigned failed, skipped, longest;
};

static void print_line(void *arg, const char *text) {
  (void)arg;
  printf("%s\n", text);
}

static void print_programs(const struct round *p) {
  for (unsigned c = 0; c < 2; ++c) {
    for (unsigned j = 1; j <= JOBS; ++j) {
      printf("# context %u, job %u\n", c, j);
      ct_disasm(p->progs[c][j].cmds, p->progs[c][j].count, print_line, NULL);
    }
  }
}

/* A job that fails before it does anything: at its descriptor, at an unknown command behind idle
 * loops, or at its end without END. */
static void make_failure(struct round *p, unsigned c, unsigned j) {
  struct ct_gen_prog *prog = &p->progs[c][j];
  struct ct_rig_job *job = &p->jobs[c][j];
  ct_rng *r = &p->rng;
  memset(prog, 0, sizeof *prog);
  for (unsigned loops = ct_rng_below(r, CT_NUM_LOOPS + 1), i = 0; i < 2 * loops; ++i) {
    struct ct_cmd *cmd = &prog->cmds[prog->count++];
    CT_PUT(cmd, ALL_OP, i < loops ? CT_OP_LOOP : CT_OP_ENDL);
    if (i < loops) CT_PUT(cmd, CTL_COUNT, 1 + ct_rng_below(r, 5));
  }
  CT_PUT(&prog->cmds[prog->count++], ALL_OP, ct_rng_percent(r, 50) ? 0x3f : CT_OP_NOP);
  if (ct_rng_percent(r, 25)) job->ncmds = CT_PROG_MAX + 1 + ct_rng_below(r, 1u << 20);
  if (ct_rng_percent(r, 25)) job->flags |= UINT32_C(4) << ct_rng_below(r, 30);
}

/* An arena in the memory of context 1, behind its output: a page for each group of all programs. */
static void make_arena(struct round *p) {
  ct_pair_cwrite(&p->pair, 1, CT_CREG_WR_LIMIT, ct_rig_unit(1, CT_RIG_CTX_BYTES));
  ct_pair_cwrite(&p->pair, 1, CT_CREG_ARENA_BASE, ct_rig_unit(1, ARENA));
  ct_pair_cwrite(&p->pair, 1, CT_CREG_ARENA_PAGES, 32 * JOBS + 1);
}

/* Which flags and failures there are says the round alone, for both devices. */
static void make_jobs(struct round *p) {
  for (unsigned c = 0; c < 2; ++c) {
    for (unsigned j = 0; j <= JOBS + 1; ++j) {
      struct ct_rig_job *job = &p->jobs[c][j];
      const bool known = j == 0 || j > JOBS;
      *job = (struct ct_rig_job){.prog = &p->progs[c][j], .tag = 100 * c + j, .version = 7 * j + c};
      if (p->progs[c][j].overlap) job->flags = CT_FLAG_OVERLAP;
      if (known) continue;
      if (ct_rng_percent(&p->rng, 50)) job->flags |= CT_FLAG_CHAIN;
      if (p->failures && ct_rng_percent(&p->rng, 30)) make_failure(p, c, j);
    }
  }
}

/* The length of a program: one in ten is as long as it may be, or nearly. */
static unsigned draw_length(struct round *p) {
  const bool whole = ct_rng_percent(&p->rng, 10);
  const unsigned length =
      whole ? CT_PROG_MAX - ct_rng_below(&p->rng, 4) : 20 + ct_rng_below(&p->rng, 120);
  if (length > p->tally->longest) p->tally->longest = length;
  return length;
}

static void make_programs(struct round *p) {
  for (unsigned c = 0; c < 2; ++c) {
    const uint32_t in = ct_rig_unit(c, CT_RIG_IN), out = ct_rig_unit(c, CT_RIG_OUT);
    ct_pair_fill_input(&p->pair, c, &p->rng);
    ct_gen_setup(&p->progs[c][0], in);
    for (unsigned j = 1; j <= JOBS; ++j)
      (c && p->comp ? ct_gen_compressing : ct_gen_random)(&p->rng, &p->progs[c][j], draw_length(p),
                                                          in, out);
    ct_gen_dump(&p->progs[c][JOBS + 1], out);
  }
}

/* Whether a job did well, failed or was skipped, as it should. */
static uint32_t check_code(struct round *p, const struct ct_rig_job *job, uint32_t before,
                           uint32_t code) {
  const uint32_t last = CT_GET(&job->prog->cmds[job->prog->count - 1], ALL_OP);
  uint32_t right = last == CT_OP_END ? CT_DEV_OK : CT_DEV_ILLEGAL;
  if (job->flags & CT_FLAG_CHAIN && before) right = CT_DEV_SKIPPED;
  if (job->ncmds || job->flags & ~(uint32_t)(CT_FLAG_CHAIN | CT_FLAG_OVERLAP))
    right = CT_DEV_DESCRIPTOR;
  assert_int_equal(code, right);
  p->tally->failed += code && code != CT_DEV_SKIPPED;
  p->tally->skipped += code == CT_DEV_SKIPPED;
  return code;
}

/* All jobs first..last of both contexts at once, reaped in order. */
static bool run_jobs(struct round *p, unsigned first, unsigned last) {
  struct ct_rig_cpl cpl[2][2][JOBS + 2];
  for (unsigned d = 0; d < 2; ++d) {
    for (unsigned c = 0; c < 2; ++c) {
      for (unsigned j = first; j <= last; ++j)
        ct_rig_submit(&p->pair.rig[d], c, &p->jobs[c][j]);
      ct_rig_ring(&p->pair.rig[d], c);
    }
    for (unsigned c = 0; c < 2; ++c)
      for (unsigned j = first; j <= last; ++j)
        cpl[d][c][j] = ct_rig_reap(&p->pair.rig[d], c, LIMIT);
  }
  bool same = true;
  for (unsigned c = 0; c < 2; ++c) {
    for (unsigned j = first; j < last; ++j)
      p->tally->overlaps += cpl[0][c][j + 1].start < cpl[0][c][j].end;
    uint32_t before = CT_DEV_OK;
    for (unsigned j = first; j <= last; ++j) {
      same &= ct_same_completions(&cpl[0][c][j], &cpl[1][c][j]);
      before = check_code(p, &p->jobs[c][j], before, cpl[0][c][j].code);
      assert_true(cpl[0][c][j].arrive <= cpl[0][c][j].start);
      assert_true(cpl[0][c][j].start < cpl[0][c][j].end);
    }
    same &= ct_same_out(&p->pair, c, first ? last > JOBS ? "dump" : "jobs" : "setup");
  }
  return same;
}

static bool same_peeks(struct round *p) {
  bool same = true;
  for (unsigned i = 0; i < 24; ++i) {
    const uint32_t addr = ct_rng_below(&p->rng, 4096);
    uint32_t core[5], emu[5];
    ct_rig_peek(&p->pair.rig[0], addr, core);
    ct_rig_peek(&p->pair.rig[1], addr, emu);
    if (!memcmp(core, emu, sizeof core)) continue;
    printf("SPM word %" PRIu32 ": core %08" PRIx32 " %08" PRIx32 " .. e %08" PRIx32
           ", emulator %08" PRIx32 " %08" PRIx32 " .. e %08" PRIx32 "\n",
           addr, core[0], core[1], core[4], emu[0], emu[1], emu[4]);
    same = false;
  }
  return same;
}

/* How the memory behaves and how the units are shared. */
static void choose_circumstances(struct round *p, char *args, size_t size, unsigned round) {
  static const unsigned stalls[] = {0, 25, 60}, latencies[] = {5, 60, 200}, widths[] = {16, 4, 1};
  ct_rng *r = &p->rng;
  const bool slow = ct_rng_percent(r, 20);
  snprintf(args, size, "stall=%u,latency=%u,bandwidth=%u,seed=%" PRIu64, stalls[ct_rng_below(r, 3)],
           latencies[ct_rng_below(r, 3)], slow ? widths[ct_rng_below(r, 3)] : 16, ct_rng_u64(r));
  printf("  round %u: %s", round, args);
}

static void share(struct round *p, unsigned round) {
  const uint32_t floor = ct_rng_percent(&p->rng, 50) ? ct_rng_below(&p->rng, 256) : 0;
  const uint32_t cap = 1 + ct_rng_below(&p->rng, 8);
  const unsigned policy = round % 5;
  ct_pair_write(&p->pair, CT_REG_POLICY, policy);
  ct_pair_write(&p->pair, CT_REG_FLOOR, floor);
  ct_pair_write(&p->pair, CT_REG_TRAIN_CAP, cap);
  printf(", policy %u, floor %" PRIu32 ", cap %" PRIu32 "\n", policy, floor, cap);
}

static void one_round(const struct ct_core *core, unsigned round, struct tally *tally) {
  struct round *p = test_calloc(1, sizeof *p);
  char args[160];
  p->tally = tally;
  p->failures = round % 2;
  p->rng = ct_rng_make(1000 * (unsigned)(core - ct_cores) + round);
  choose_circumstances(p, args, sizeof args, round);
  ct_pair_open(&p->pair, core, args);
  share(p, round);
  p->comp = ct_rig_read(&p->pair.rig[0], CT_REG_FEATURES) & CT_FEATURE_COMPRESS;
  if (p->comp) make_arena(p);
  make_programs(p);
  make_jobs(p);
  if (getenv("CT_PRINT")) print_programs(p);
  const bool setup = run_jobs(p, 0, 0), jobs = run_jobs(p, 1, JOBS), peeks = same_peeks(p);
  const bool dump = run_jobs(p, JOBS + 1, JOBS + 1),
             counters = ct_same_counters(&p->pair, !p->failures);
  const bool same = setup && jobs && peeks && dump && counters;
  ct_pair_close(&p->pair);
  test_free(p);
  assert_true(same);
}

static void random_programs(void **state) {
  const char *text = getenv("CT_ROUNDS");
  const unsigned rounds = text ? (unsigned)strtoul(text, NULL, 0) : 8;
  ct_tb_seed();
  struct tally tally = {0};
  for (unsigned i = 0; i < rounds; ++i)
    one_round(*state, i, &tally);
  printf("  %u jobs overlapped the one before, %u failed, %u were skipped behind these\n",
         tally.overlaps, tally.failed, tally.skipped);
  if (rounds < 8) return;
  assert_true(tally.overlaps > rounds && tally.failed > 3 && tally.skipped > 0);
  assert_in_range(tally.longest, CT_PROG_MAX - 3, CT_PROG_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_prestate(random_programs, (void *)&ct_cores[0]),
      cmocka_unit_test_prestate(random_programs, (void *)&ct_cores[1]),
      cmocka_unit_test_prestate(random_programs, (void *)&ct_cores[2]),
  };
  return cmocka_run_group_tests_name("random programs", tests, NULL, NULL);
}
