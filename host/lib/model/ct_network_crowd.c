/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of several members, whose places lie at constant strides, so that a kernel's job can go on
 * from one to the next (ct_compile_groups.c). A run takes as many at once as there are arenas,
 * stage by stage. What does not fill a pass of a kernel's loop, and kernels without one, run as a
 * network's alone, member by member.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_network.h"

/* ---- Programs ------------------------------------------------------------------------------ */

void ct_fusion_free(struct ct_fusion *g, size_t stages) {
  for (size_t i = 0; g->stage && i < stages; ++i)
    ct_programs_free(&g->stage[i].programs);
  free(g->stage);
  g->stage = NULL;
}

static bool has_group(const struct ct_compiled *c) {
  for (size_t i = 0; i < c->stages; ++i)
    if (c->stage[i].group.round) return true;
  return false;
}

int ct_fusion_load(ct_network *n, struct ct_compiled *c, struct ct_fusion *g) {
  int err = CT_OK;
  if (!has_group(c)) return CT_OK;
  g->stage = calloc(c->stages, sizeof *g->stage);
  if (!g->stage) return ct_fail(n->dev, CT_ERR_MEMORY, "no memory for programs of members");
  for (size_t i = 0; i < c->stages && !err; ++i) {
    struct ct_codes *codes = &c->stage[i].group.codes;
    g->stage[i].how = c->stage[i].group;
    g->stage[i].how.codes = (struct ct_codes){NULL, 0};
    if (!c->stage[i].group.round) continue;
    err = ct_programs_load(n->dev, codes, &g->stage[i].programs);
    if (!err) *codes = (struct ct_codes){NULL, 0};
  }
  return err;
}

/* Whether places are those of the network's other programs. */
static bool same_places(const struct ct_compiled *a, const struct ct_compiled *b) {
  return a->lasting == b->lasting && a->arena == b->arena && a->externals == b->externals &&
         a->scalars == b->scalars && a->stages == b->stages;
}

int ct_fusion_make(ct_network *n, bool common, const struct ct_fusion **group) {
  struct ct_fusion *g = &n->shared->group[common];
  *group = g;
  if (g->made) return CT_OK;
  /* (What is kept compressed has a bound for each network, which jobs of several have no place
   * for.) */
  if (n->compiled.whole || n->compiled.crowded || n->compiled.kepts) return CT_OK;
  struct ct_compiled c;
  int err = ct_network_compile(n, true, common, NULL, &c);
  if (!err && !same_places(&c, &n->shared->compiled))
    err = ct_fail(n->dev, CT_ERR_INTERNAL, "programs of members have other places");
  if (!err) err = ct_fusion_load(n, &c, g);
  ct_compiled_free(&c);
  if (err) ct_fusion_free(g, n->compiled.stages);
  if (err == CT_ERR_NO_SPACE) err = CT_OK;
  g->made = !err; /* else it is tried again */
  return err;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* Members that are at work at once. */
struct block {
  struct ct_crowd *c;
  struct ct_crowd_member m[CT_MEMBERS_AT_ONCE];
  uint32_t count;
};

static void add(struct ct_crowd *c, const struct ct_programs *p, const struct ct_job *like) {
  for (size_t k = 0; k < p->count; ++k, ++c->jobs) {
    if (!c->job) continue;
    c->job[c->jobs] = *like;
    c->job[c->jobs].program = p->of[k];
  }
}

static void arguments(const struct ct_crowd *c, const struct ct_crowd_member *m,
                      struct ct_job *job) {
  *job = (struct ct_job){.user = c->user};
  ct_compiled_arguments(&c->n->compiled, &m->at, m->scalar, m->step, job);
}

/* Regions are those of the first; numbers of all stand behind the passes. */
static void add_group(const struct block *b, const struct ct_fusion_stage *g, uint32_t i,
                      uint32_t count) {
  struct ct_job job;
  unsigned at = ct_compiled_group_reg(&b->c->n->compiled);
  arguments(b->c, &b->m[i], &job);
  memset(&job.args[at - 1], 0, (CT_MAX_ARGS + 1 - at) * sizeof *job.args);
  job.args[at - 1] = count / g->how.round;
  for (uint32_t k = i; k < i + count; ++k)
    for (unsigned s = 0; s < g->how.numbers; ++s)
      job.args[at++] =
          ct_bits_of(ct_compiled_scalar(&b->m[k].scalar[g->how.number[s]], b->m[k].step));
  add(b->c, &g->programs, &job);
}

static void add_stage(const struct block *b, size_t stage) {
  const struct ct_fusion_stage *g = b->c->group->stage ? &b->c->group->stage[stage] : NULL;
  uint32_t i = 0;
  struct ct_job job;
  while (g && g->how.round && b->count - i >= g->how.round) {
    const uint32_t some = ct_min_u32(g->how.most, (b->count - i) / g->how.round * g->how.round);
    add_group(b, g, i, some);
    i += some;
  }
  for (; i < b->count; ++i) {
    arguments(b->c, &b->m[i], &job);
    add(b->c, &b->c->n->part[stage].programs, &job);
  }
}

static void add_block(struct ct_crowd *c, uint32_t first) {
  const ct_network *n = c->n;
  struct block b = {.c = c, .count = ct_min_u32(CT_MEMBERS_AT_ONCE, c->count - first)};
  for (uint32_t i = 0; i < b.count; ++i) {
    c->of(c->arg, first + i, &b.m[i]);
    b.m[i].at.arena = c->arena + n->compiled.arena * i * CT_UNIT;
  }
  for (size_t i = 0; i < n->compiled.stages; ++i) {
    const struct ct_stage *stage = &n->compiled.stage[i];
    if ((stage->once && !c->once) || !n->part[i].programs.count ||
        !ct_compiled_runs(stage, b.m[0].step))
      continue;
    add_stage(&b, i);
  }
}

void ct_crowd_jobs(struct ct_crowd *c) {
  c->jobs = 0;
  for (uint32_t first = 0; first < c->count; first += CT_MEMBERS_AT_ONCE)
    add_block(c, first);
}

int ct_crowd_submit(struct ct_crowd *c, const struct ct_work *how, uint64_t *tag) {
  struct ct_work work = *how;
  c->job = malloc((c->jobs + 1) * sizeof *c->job);
  if (!c->job) return ct_fail(c->n->dev, CT_ERR_MEMORY, "no memory for jobs of members");
  ct_crowd_jobs(c);
  work.kind = CT_EVENT_RUN;
  work.job = c->job;
  work.jobs = (unsigned)c->jobs;
  const int err = ct_submit_work(c->n->dev, &work, tag);
  free(c->job);
  c->job = NULL;
  return err;
}
