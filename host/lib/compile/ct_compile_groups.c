/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the members of a group. A kernel's rings come round after one member, two or four,
 * so its loop has as many in a pass; where several will do, the one that should take the fewest
 * cycles is taken, and none if members are as fast one after the other. Not every kernel has one:
 * loops nest four deep, and a job has so many commands.
 */
#include "ct_compile_impl.h"

enum { MOST_ROUND = 4, SOME = 8 };

static struct ct_fused fused(const struct ct_compiler *c, uint32_t round) {
  const struct ct_compiled *o = c->out;
  struct ct_fused g = {.round = round,
                       .passes = CT_ARG_PASSES,
                       .number = CT_ARG_SCALAR,
                       .numbers = (unsigned)o->scalars,
                       .all = CT_MEMBER_SCALARS};
  g.stride[CT_ARG_LASTING] = (uint32_t)o->lasting;
  g.stride[CT_ARG_ARENA] = (uint32_t)o->arena;
  for (size_t i = 0; i < o->externals; ++i)
    g.stride[o->external[i].reg] = o->external[i].shared ? 0 : (uint32_t)o->external[i].units;
  return g;
}

/* Arguments of a job that nothing is done with. */
static void some_arguments(const struct ct_compiler *c, uint32_t passes, uint32_t *args) {
  const struct ct_fused g = fused(c, 1);
  uint32_t at = CT_RECORD_UNITS;
  for (unsigned r = CT_ARG_LASTING; r < CT_ARG_SCALAR; ++r) {
    args[r - 1] = at;
    at += g.stride[r] * SOME;
  }
  args[CT_ARG_PASSES - 1] = passes;
}

/* Cycles that the jobs of a kernel should take, for so many passes; not known: 0. They follow jobs
 * like them, so descriptor and program come ahead. */
static uint64_t cycles_of(struct ct_compiler *c, const struct ct_codes *codes, uint32_t passes) {
  uint32_t args[CT_NUM_ARGS] = {0};
  struct ct_cycles_core core = *c->options->core;
  struct ct_cycles one;
  uint64_t all = 0;
  some_arguments(c, passes, args);
  for (unsigned round = 0; round < 2; ++round) {
    all = 0;
    for (size_t i = 0; i < codes->count; ++i) {
      if (ct_cycles(&core, codes->job[i].cmd, codes->job[i].count, args, &one)) return 0;
      all += one.total;
      core.ahead = one.tail;
    }
  }
  return all;
}

/* Takes those programs for the stage's, if they are better. */
static void offer(struct ct_compiler *c, struct ct_stage *stage, struct ct_codes *codes,
                  uint32_t round, uint64_t *best) {
  const uint32_t members = SOME / round * round;
  const uint64_t all = cycles_of(c, codes, members / round), each = all / members;
  if (all == 0 || each >= *best) {
    ct_codes_free(codes);
    return;
  }
  ct_codes_free(&stage->group);
  stage->group = *codes;
  stage->round = round;
  *best = each;
}

void ct_step_group(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  struct ct_stage *stage = &c->out->stage[s->order];
  struct ct_codes codes = {NULL, 0};
  uint64_t best = cycles_of(c, &stage->codes, 0);
  struct ct_target mine = *t;
  mine.room.args = CT_ARG_PASSES;
  mine.codes = &codes;
  /* A job has numbers for so many members. */
  const size_t scalars = c->out->scalars, room = scalars ? CT_MEMBER_SCALARS / scalars : MOST_ROUND;
  const uint32_t most = room < MOST_ROUND ? (uint32_t)room : MOST_ROUND;
  for (uint32_t round = 1; round <= most && best; round *= 2) {
    const struct ct_fused g = fused(c, round);
    mine.room.group = &g;
    const int err = ct_step_program(c, s, &mine);
    if (err == CT_ERR_MEMORY) ct_compile_no_memory(c);
    if (err == CT_ERR_MEMORY) return;
    if (!err) offer(c, stage, &codes, round, &best);
  }
}
