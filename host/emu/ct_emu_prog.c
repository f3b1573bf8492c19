/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: control commands, and dispatch into the queues. */
#include "ct_emu.h"
#include "ct_exec.h"

/* The unit that executes an operation; CT_EMU_UNITS: none, it is a control command. */
static enum ct_emu_unit unit_of(uint32_t code) {
  switch (code) {
    case CT_OP_LD:
      return CT_EMU_LD;
    case CT_OP_ST:
      return CT_EMU_ST;
    case CT_OP_MM:
    case CT_OP_WPIX:
    case CT_OP_WTAP:
      return CT_EMU_MM;
    case CT_OP_VL:
      return CT_EMU_VL;
    case CT_OP_VA:
      return CT_EMU_VA;
    case CT_OP_VS:
      return CT_EMU_VS;
    default:
      return CT_EMU_UNITS;
  }
}

/* Notes a sum whose result may be anything; false: it is of another kind. */
static bool note_sum(struct ct_emu_line *line, const struct ct_sum_info *sum, uint32_t reg) {
  const struct ct_field_info *value = &ct_fields[sum->value];
  const unsigned shift = value->lsb % 32;
  if (sum->min || sum->max || shift + value->width > 32 || line->adds == CT_EMU_ADDS) return false;
  line->add[line->adds].reg = (uint8_t)reg;
  line->add[line->adds].word = (uint8_t)(value->lsb / 32);
  line->add[line->adds].shift = (uint8_t)shift;
  line->add[line->adds].mask = (uint32_t)(((UINT64_C(1) << value->width) - 1) << shift);
  ++line->adds;
  return true;
}

static uint8_t counter_of(uint32_t field) {
  return (uint8_t)(field & 16 ? field & 15 : CT_NUM_SEMS);
}

static struct ct_emu_sems sems_of(const struct ct_cmd *cmd) {
  return (struct ct_emu_sems){
      {counter_of(CT_GET(cmd, ALL_WAIT0)), counter_of(CT_GET(cmd, ALL_WAIT1)),
       counter_of(CT_GET(cmd, ALL_WAIT2))},
      {counter_of(CT_GET(cmd, ALL_SIG0)), counter_of(CT_GET(cmd, ALL_SIG1))}};
}

void ct_emu_prepare(struct ct_emu_line *line, const struct ct_cmd *cmd) {
  static const uint32_t zeros[CT_NUM_REGS];
  struct ct_cmd resolved = *cmd;
  line->cmd = *cmd;
  line->sems = sems_of(cmd);
  line->op = ct_op_find(CT_GET(cmd, ALL_OP));
  line->unit = unit_of(CT_GET(cmd, ALL_OP));
  line->gather = (line->unit == CT_EMU_LD || line->unit == CT_EMU_ST) && CT_GET(cmd, DMA_GATHER);
  line->comp = (line->unit == CT_EMU_LD || line->unit == CT_EMU_ST) && CT_GET(cmd, DMA_COMP);
  line->walk = CT_GET(cmd, ALL_OP) == CT_OP_MM && CT_GET(cmd, MM_WALK);
  line->walks = CT_GET(cmd, ALL_OP) == CT_OP_WPIX ? 1 : CT_GET(cmd, ALL_OP) == CT_OP_WTAP ? 2 : 0;
  line->adds = 0;
  line->judged = true;
  for (size_t i = 0; line->op && i < CT_NUM_SUMS; ++i) {
    const uint32_t reg =
        ct_sum_applies(&ct_sums[i], line->op) ? ct_cmd_get(cmd, ct_sums[i].reg) : 0;
    if (reg && !note_sum(line, &ct_sums[i], reg)) line->judged = false;
  }
  line->legal =
      line->op && ct_cmd_resolve(&resolved, line->op, zeros) && ct_cmd_legal(cmd, line->op->group);
}

/* The command with its registers added in; false: it is illegal. */
static bool finish(const struct ct_emu_line *line, const uint32_t *r, struct ct_cmd *cmd) {
  *cmd = line->cmd;
  if (!line->judged)
    return line->op && ct_cmd_resolve(cmd, line->op, r) && ct_cmd_legal(cmd, line->op->group);
  for (unsigned i = 0; i < line->adds; ++i) {
    uint32_t *w = &cmd->w[line->add[i].word];
    const uint32_t mask = line->add[i].mask;
    *w = (*w & ~mask) | (((*w & mask) + (r[line->add[i].reg] << line->add[i].shift)) & mask);
  }
  return line->legal;
}

/* Executes LOOP or ENDL; false: illegal. Moves pc. */
static bool loop(struct ct_emu_ctx *ctx, const struct ct_cmd *cmd, uint32_t code) {
  if (code == CT_OP_LOOP) {
    if (ctx->depth == CT_NUM_LOOPS) return false;
    ctx->loop[ctx->depth].first = ctx->pc + 1;
    ctx->loop[ctx->depth].left = CT_GET(cmd, CTL_COUNT) - 1;
    ++ctx->depth;
    ++ctx->pc;
    return true;
  }
  if (ctx->depth == 0) return false;
  if (ctx->loop[ctx->depth - 1].left) {
    --ctx->loop[ctx->depth - 1].left;
    ctx->pc = ctx->loop[ctx->depth - 1].first;
  } else {
    --ctx->depth;
    ++ctx->pc;
  }
  return true;
}

/* Executes a resolved control command; false: it is illegal. */
static bool control(struct ct_emu_ctx *ctx, const struct ct_cmd *cmd) {
  const uint32_t code = CT_GET(cmd, ALL_OP);
  if (code == CT_OP_LOOP || code == CT_OP_ENDL) return loop(ctx, cmd, code);
  if (code == CT_OP_ADDI) ct_cmd_addi(cmd, ctx->r);
  ctx->ended = code == CT_OP_END;
  ++ctx->pc;
  return true;
}

bool ct_emu_dispatch(struct ct_emu_ctx *ctx) {
  if (ctx->ended || ctx->failed) return false;
  if (ctx->pc >= ctx->ncmds) {
    ct_emu_fail(ctx, CT_DEV_ILLEGAL, ctx->pc);
    return true;
  }
  const struct ct_emu_line *line = &ctx->prog[ctx->pc];
  struct ct_emu_queue *q = line->unit < CT_EMU_UNITS ? &ctx->queue[line->unit] : NULL;
  struct ct_emu_slot here, *slot = q ? ct_emu_queue_end(q) : &here;
  if ((line->gather && !ctx->batch) || (line->comp && !ctx->compress) ||
      (line->walk && ctx->walks != 3) || !finish(line, ctx->r, &slot->cmd) ||
      (!q && !control(ctx, &slot->cmd))) {
    ct_emu_fail(ctx, CT_DEV_ILLEGAL, ctx->pc);
    return true;
  }
  if (q) {
    if (q->count == CT_EMU_QUEUE) return false;
    slot->sems = line->sems;
    ctx->walks |= line->walks;
    ++q->count;
    ++ctx->pc;
  }
  ++ctx->cnt[CT_CNT_CMDS];
  --ctx->fuel;
  return true;
}
