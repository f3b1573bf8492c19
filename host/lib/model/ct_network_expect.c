/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stages of a network should take on this device, when it does nothing else.
 *
 * Where something is kept compressed, that depends on how long groups are. It is made once by what
 * there are pages for, and again by the groups of the last run: so the programs stay here, too.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_cycles.h"
#include "ct_network.h"
#include "ct_sharing.h"

/* Looks at gradients are part of some runs, or of none. */
static bool has_part(const ct_network *n, const struct ct_stage *stage) {
  return !stage->looks || n->kept_error > 0;
}

/* The programs of a stage, while they are there. */
static const struct ct_codes *codes_of(const ct_network *n, size_t stage) {
  return n->shared->codes ? &n->shared->codes[stage] : &n->shared->compiled.stage[stage].codes;
}

/* Commands of the job behind job i of a stage; 0: there is none. */
static uint32_t next_of(const ct_network *n, size_t stage, size_t i) {
  const struct ct_codes *codes = codes_of(n, stage);
  if (++i < codes->count * ct_compiled_passes(&n->compiled.stage[stage]))
    return (uint32_t)codes->job[i % codes->count].count;
  while (++stage < n->compiled.stages)
    if (codes_of(n, stage)->count && has_part(n, &n->compiled.stage[stage]))
      return (uint32_t)codes_of(n, stage)->job[0].count;
  return 0;
}

/* Where a run's arena is: no queue has it yet, or training has. */
static uint64_t arena_of(const ct_network *n) {
  const struct ct_shared *s = n->shared;
  const uint64_t taken = s->arena[CT_TRAINING] ? s->arena[CT_TRAINING] : s->arena[CT_INFERENCE];
  return s->spare ? s->spare : taken;
}

static const char *unit_name(enum ct_unit unit) {
  static const char *const name[] = {
      [CT_UNIT_READ] = "reads", [CT_UNIT_WRITE] = "writes", [CT_UNIT_MXU] = "array",
      [CT_UNIT_VL] = "VL",      [CT_UNIT_VA] = "VA",        [CT_UNIT_VS] = "VS"};
  return name[unit];
}

/* What cycles of jobs, times so many, are to a stage: how many, and the unit that works most. */
static void add_cost(struct ct_network_cost *cost, const struct ct_cycles *all, uint64_t times) {
  enum ct_unit most = CT_UNIT_READ;
  for (enum ct_unit u = CT_UNIT_READ; u < CT_UNIT_COUNT; ++u)
    if (all->busy[u] > all->busy[most]) most = u;
  cost->expected += times * all->total;
  cost->busy += times * all->busy[most];
  cost->unit = unit_name(most);
  cost->bound = ct_cycles_by_name(ct_cycles_bound(all));
}

static void add_cycles(struct ct_cycles *all, const struct ct_cycles *one) {
  all->total += one->total;
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    all->busy[u] += one->busy[u];
}

/* What a stage's jobs should take in a row, on this device when it does nothing else. */
static int expect(ct_network *n, size_t at_stage, uint64_t *ahead) {
  const struct ct_stage *stage = &n->compiled.stage[at_stage];
  const struct ct_codes *codes = codes_of(n, at_stage);
  struct ct_network_part *part = &n->part[at_stage];
  struct ct_cycles_core core = ct_network_core(n);
  struct ct_cycles all = {0}, one;
  struct ct_job job = {0};
  struct ct_regions at = ct_network_own(n);
  at.arena = arena_of(n);
  core.ahead = *ahead;
  core.groups = n->groups;
  core.groups_count = n->groups ? n->compiled.kepts : 0;
  ct_network_arguments(n, &at, 0, &job);
  for (size_t i = 0; i < codes->count * ct_compiled_passes(stage); ++i) {
    const struct ct_code *code = &codes->job[i % codes->count];
    struct ct_job pass = job;
    ct_compiled_pass(&n->compiled, stage, (uint32_t)(i / codes->count), pass.args);
    core.next = next_of(n, at_stage, i);
    const int err = ct_cycles(&core, code->cmd, code->count, pass.args, &one);
    if (err == CT_ERR_MEMORY) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the network");
    if (err) return CT_OK; /* too long to be followed: not known */
    add_cycles(&all, &one);
    core.ahead = *ahead = one.tail;
  }
  part->one = (struct ct_network_cost){0};
  if (codes->count) add_cost(&part->one, &all, 1);
  return CT_OK;
}

/* What training can cost a stage's jobs. */
static int bound_beside(ct_network *n, const struct ct_stage *stage, struct ct_network_part *part) {
  const struct ct_codes *codes = &stage->codes;
  struct ct_chain_core core;
  uint64_t all = 0;
  const int err = ct_sharing(n->dev, 1, &core);
  for (size_t i = 0; i < codes->count && !err; ++i) {
    const uint64_t one = ct_chain_job(&core, &codes->job[i]);
    if (!one) return CT_OK; /* too long to be followed: not known */
    all += one;
  }
  if (!err) part->beside = all * ct_compiled_passes(stage);
  return err;
}

int ct_expect_stage(ct_network *n, size_t i, uint64_t *ahead) {
  const struct ct_stage *stage = &n->shared->compiled.stage[i];
  int err = CT_OK;
  if (has_part(n, stage))
    err = expect(n, i, ahead);
  else
    n->part[i].one = (struct ct_network_cost){0};
  return err ? err : bound_beside(n, stage, &n->part[i]);
}

/* ---- Of several members ---------------------------------------------------------------------- */

/* A job of a stage: of one member, or in passes of several. */
struct turn {
  const struct ct_code *code;
  size_t stage;
  uint32_t member, passes; /* 0 passes: of one */
};

/* Jobs of members that are at work at once, as ct_crowd_jobs() has them. */
struct turns {
  struct turn *turn; /* NULL: they are counted */
  size_t count;
};

static void add_turns(struct turns *t, const struct ct_codes *codes, struct turn like) {
  for (size_t i = 0; i < codes->count; ++i, ++t->count) {
    like.code = &codes->job[i];
    if (t->turn) t->turn[t->count] = like;
  }
}

static void add_stage(const ct_network *n, size_t at, uint32_t members, struct turns *t) {
  const struct ct_stage *stage = &n->compiled.stage[at];
  const struct ct_stage_group *g = &stage->group;
  uint32_t i = 0;
  while (g->round && members - i >= g->round) {
    const uint32_t some = ct_min_u32(g->most, (members - i) / g->round * g->round);
    add_turns(t, &g->codes, (struct turn){.stage = at, .member = i, .passes = some / g->round});
    i += some;
  }
  for (; i < members; ++i)
    add_turns(t, &stage->codes, (struct turn){.stage = at, .member = i});
}

static size_t turns_of(const ct_network *n, uint32_t members, struct turn *turn) {
  struct turns t = {.turn = turn};
  for (size_t i = 0; i < n->compiled.stages; ++i)
    if (has_part(n, &n->compiled.stage[i])) add_stage(n, i, members, &t);
  return t.count;
}

/* (Numbers of the optimiser change no cycle.) */
static void arguments_of(const ct_network *n, const struct turn *t, struct ct_job *job) {
  const unsigned at = ct_compiled_group_reg(&n->compiled);
  struct ct_regions r = ct_network_member_at(n, t->member);
  r.arena = arena_of(n) + n->compiled.arena * t->member * CT_UNIT;
  *job = (struct ct_job){0};
  ct_network_arguments(n, &r, 0, job);
  if (t->passes) job->args[at - 1] = t->passes;
}

/* Cycles of each stage. CT_ERR_ARG: some are too long to be followed. */
static int follow(const ct_network *n, const struct turn *turn, size_t count,
                  struct ct_cycles *stage) {
  struct ct_cycles_core core = ct_network_core(n);
  struct ct_cycles one;
  struct ct_job job;
  for (size_t i = 0; i < count; ++i) {
    const struct ct_code *code = turn[i].code;
    arguments_of(n, &turn[i], &job);
    core.next = i + 1 < count ? (uint32_t)turn[i + 1].code->count : 0;
    const int err = ct_cycles(&core, code->cmd, code->count, job.args, &one);
    if (err) return err == CT_ERR_MEMORY ? err : CT_ERR_ARG;
    add_cycles(&stage[turn[i].stage], &one);
    core.ahead = one.tail;
  }
  return CT_OK;
}

/* So many members at once, `times` such runs. */
static int expect_block(ct_network *n, uint32_t members, uint32_t times) {
  const size_t stages = n->compiled.stages, count = turns_of(n, members, NULL);
  struct ct_cycles *stage = calloc(stages + 1, sizeof *stage);
  struct turn *turn = calloc(count + 1, sizeof *turn);
  int err = stage && turn ? CT_OK : CT_ERR_MEMORY;
  if (!err) turns_of(n, members, turn);
  if (!err) err = follow(n, turn, count, stage);
  for (size_t i = 0; i < stages && !err; ++i)
    if (stage[i].total) add_cost(&n->part[i].all, &stage[i], times);
  free(turn);
  free(stage);
  return err;
}

int ct_expect_members(ct_network *n) {
  const uint32_t blocks = n->members / CT_MEMBERS_AT_ONCE, rest = n->members % CT_MEMBERS_AT_ONCE;
  int err = CT_OK;
  for (size_t i = 0; i < n->compiled.stages; ++i)
    n->part[i].all = (struct ct_network_cost){0};
  if (rest) err = expect_block(n, rest, 1);
  if (!err && blocks) err = expect_block(n, CT_MEMBERS_AT_ONCE, blocks);
  if (err == CT_ERR_MEMORY) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the network");
  for (size_t i = 0; i < n->compiled.stages && err; ++i)
    n->part[i].all = (struct ct_network_cost){.expected = CT_NO_CYCLE};
  return CT_OK;
}

/* ---- Again --------------------------------------------------------------------------------- */

static bool copy(struct ct_codes *to, const struct ct_codes *from) {
  to->job = calloc(from->count + 1, sizeof *to->job);
  bool good = to->job != NULL;
  for (; good && to->count < from->count; ++to->count) {
    const struct ct_code *job = &from->job[to->count];
    struct ct_cmd *cmd = calloc(job->count + 1, sizeof *cmd);
    good = cmd != NULL;
    if (!good) break;
    memcpy(cmd, job->cmd, job->count * sizeof *cmd);
    to->job[to->count] = (struct ct_code){.cmd = cmd, .count = job->count};
  }
  return good;
}

int ct_expect_keep(ct_network *n) {
  struct ct_shared *s = n->shared;
  if (!s->expected || !n->groups) return CT_OK;
  bool good = (s->codes = calloc(n->compiled.stages + 1, sizeof *s->codes)) != NULL;
  for (size_t i = 0; i < n->compiled.stages && good; ++i)
    good = copy(&s->codes[i], &s->compiled.stage[i].codes);
  return good ? CT_OK : ct_fail(n->dev, CT_ERR_MEMORY, "no memory for the network");
}

void ct_expect_free(struct ct_shared *s) {
  for (size_t i = 0; s->codes && i < s->compiled.stages; ++i)
    ct_codes_free(&s->codes[i]);
  free(s->codes);
  s->codes = NULL;
}

void ct_expect_again(ct_network *n) {
  uint64_t ahead = 0;
  if (!ct_kept_measured(n) || !n->shared->codes) return;
  for (size_t i = 0; i < n->compiled.stages; ++i)
    if (has_part(n, &n->compiled.stage[i]) && expect(n, i, &ahead)) return;
}
