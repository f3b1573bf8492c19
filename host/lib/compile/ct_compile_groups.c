/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the members of a group. A kernel's rings come round after one member, two or four,
 * so its loop has as many in a pass; where several will do, the one that should take the fewest
 * cycles is taken, and none if members are as fast one after the other. Not every kernel has one:
 * loops nest four deep, and a job has so many commands.
 */
#include "ct_compile_impl.h"

enum { MOST_ROUND = 4 };

/* ---- Numbers of a stage --------------------------------------------------------------------- */

static void note_number(struct ct_stage_group *g, size_t scalars, uint32_t reg) {
  if (reg < CT_ARG_SCALAR || reg >= CT_ARG_SCALAR + scalars) return;
  const uint8_t scalar = (uint8_t)(reg - CT_ARG_SCALAR);
  for (unsigned i = 0; i < g->numbers; ++i)
    if (g->number[i] == scalar) return;
  g->number[g->numbers++] = scalar;
}

/* Those that its programs for one network use: an update's, as a rule. */
static void find_numbers(const struct ct_compiled *o, const struct ct_codes *codes,
                         struct ct_stage_group *g) {
  for (size_t i = 0; i < codes->count; ++i)
    for (uint32_t k = 0; k < codes->job[i].count; ++k) {
      const struct ct_cmd *cmd = &codes->job[i].cmd[k];
      if (CT_GET(cmd, ALL_OP) != CT_OP_VA) continue;
      note_number(g, o->scalars, CT_GET(cmd, VA_SB_REG));
      note_number(g, o->scalars, CT_GET(cmd, VA_SC_REG));
    }
}

/* Members for which there are registers. */
static uint32_t most_members(const struct ct_compiled *o, unsigned numbers) {
  const uint32_t room = CT_MAX_ARGS - ct_compiled_group_reg(o);
  return numbers ? ct_min_u32(room / numbers, CT_MEMBERS_AT_ONCE) : CT_MEMBERS_AT_ONCE;
}

/* ---- Programs ------------------------------------------------------------------------------- */

static struct ct_fused fused(const struct ct_compiled *o, const struct ct_stage_group *like,
                             uint32_t round) {
  const uint32_t most = most_members(o, like->numbers) / round * round;
  struct ct_fused g = {.round = round,
                       .passes = ct_compiled_group_reg(o),
                       .table = ct_compiled_group_reg(o) + 1,
                       .numbers = like->numbers,
                       .all = like->numbers * most};
  g.stride[CT_ARG_LASTING] = (uint32_t)o->lasting;
  g.stride[CT_ARG_ARENA] = (uint32_t)o->arena;
  for (size_t i = 0; i < o->externals; ++i)
    g.stride[o->external[i].reg] = o->external[i].shared ? 0 : (uint32_t)o->external[i].units;
  for (unsigned i = 0; i < like->numbers; ++i)
    g.place[CT_ARG_SCALAR + like->number[i]] = (uint8_t)(1 + i);
  return g;
}

/* Arguments of a job that nothing is done with. */
static void some_arguments(const struct ct_compiled *o, uint32_t passes, uint32_t *args) {
  const struct ct_fused g = fused(o, &(struct ct_stage_group){.numbers = 0}, 1);
  uint32_t at = CT_RECORD_UNITS;
  for (unsigned r = CT_ARG_LASTING; r < g.passes; ++r) {
    args[r - 1] = at;
    at += g.stride[r] * CT_MEMBERS_AT_ONCE;
  }
  if (passes) args[g.passes - 1] = passes;
}

/* Cycles that the jobs of a kernel should take, for so many passes (0: they have none); not known:
 * 0. They follow jobs like them, so descriptor and program come ahead. */
static uint64_t cycles_of(struct ct_compiler *c, const struct ct_codes *codes, uint32_t passes) {
  uint32_t args[CT_NUM_ARGS] = {0};
  struct ct_cycles_core core = *c->options->core;
  struct ct_cycles one;
  uint64_t all = 0;
  some_arguments(c->out, passes, args);
  for (unsigned round = 0; round < 2; ++round) {
    all = 0;
    for (size_t i = 0; i < codes->count; ++i) {
      const int err = ct_cycles(&core, codes->job[i].cmd, codes->job[i].count, args, &one);
      if (err == CT_ERR_MEMORY) ct_compile_no_memory(c);
      if (err) return 0;
      all += one.total;
      core.ahead = one.tail;
    }
  }
  return all;
}

/* Takes those programs for the stage's, if they are better. */
static void offer(struct ct_compiler *c, struct ct_stage_group *g, struct ct_stage_group *more,
                  uint64_t *best) {
  const uint64_t all = cycles_of(c, &more->codes, more->most / more->round);
  if (all == 0 || all / more->most >= *best) {
    ct_codes_free(&more->codes);
    return;
  }
  ct_codes_free(&g->codes);
  *g = *more;
  *best = all / more->most;
}

void ct_step_group(struct ct_compiler *c, const struct ct_net_step *s, struct ct_target *t) {
  struct ct_stage *stage = &c->out->stage[s->order];
  struct ct_stage_group *g = &stage->group, more;
  uint64_t best = cycles_of(c, &stage->codes, 0);
  struct ct_target mine = *t;
  find_numbers(c->out, &stage->codes, g);
  const uint32_t most = most_members(c->out, g->numbers);
  for (uint32_t round = 1; round <= MOST_ROUND && round <= most && most > 1 && best; round *= 2) {
    const struct ct_fused how = fused(c->out, g, round);
    more = *g;
    more.codes = (struct ct_codes){NULL, 0};
    more.round = round;
    more.most = most / round * round;
    mine.codes = &more.codes;
    mine.room.group = &how;
    mine.room.args = how.passes + how.all;
    const int err = ct_step_program(c, s, &mine);
    if (err == CT_ERR_MEMORY) ct_compile_no_memory(c);
    if (err == CT_ERR_MEMORY) return;
    if (!err) offer(c, g, &more, &best);
  }
}
