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
    all.total += one.total;
    for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
      all.busy[u] += one.busy[u];
    core.ahead = *ahead = one.tail;
  }
  part->expected = all.total;
  part->busy = 0;
  for (unsigned u = 0; u < CT_UNIT_COUNT; ++u)
    if (all.busy[u] > part->busy) part->busy = all.busy[u];
  part->bound = codes->count ? ct_cycles_by_name(ct_cycles_bound(&all)) : "";
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
    n->part[i].expected = 0;
  return err ? err : bound_beside(n, stage, &n->part[i]);
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
