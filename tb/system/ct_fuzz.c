/* SPDX-License-Identifier: Apache-2.0 */
#include "ct_fuzz.h"

#include <string.h>

/* ---- Values -------------------------------------------------------------------------------- */

static uint32_t below(struct ct_fuzz *f, uint32_t bound) {
  return ct_rng_below(&f->rng, bound);
}

static bool percent(struct ct_fuzz *f, unsigned p) {
  return ct_rng_percent(&f->rng, p);
}

static uint32_t bits(struct ct_fuzz *f, unsigned width) {
  return (uint32_t)(ct_rng_u64(&f->rng) >> (64 - width));
}

/* What a field mostly holds in a program that works: lo .. hi. Fields that are not here are drawn
 * over their whole width. */
static const struct usual {
  enum ct_field_id field;
  int32_t lo, hi;
} usual[] = {
    {CT_F_CTL_COUNT, 1, 4},
    {CT_F_DMA_SPM, 0, CT_GEN_SPM - 64},
    {CT_F_DMA_GATHER, 0, 0},
    {CT_F_DMA_NB, 1, 16},
    {CT_F_DMA_S0, 0, 3},
    {CT_F_DMA_D1, -20, 40},
    {CT_F_DMA_D2, -40, 80},
    {CT_F_DMA_N1, 1, 3},
    {CT_F_DMA_S1, -20, 40},
    {CT_F_DMA_N2, 1, 3},
    {CT_F_DMA_S2, -20, 40},
    {CT_F_MM_A, 0, CT_GEN_SPM - 256},
    {CT_F_MM_B, 0, CT_GEN_SPM - 256},
    {CT_F_MM_A_TRANS, 0, 0},
    {CT_F_MM_B_TRANS, 0, 0},
    {CT_F_MM_AM, -16, 32},
    {CT_F_MM_AK, -16, 32},
    {CT_F_MM_BN, -16, 32},
    {CT_F_MM_BK, -16, 32},
    {CT_F_MM_KT, 1, 4},
    {CT_F_MM_NT, 1, 2},
    {CT_F_MM_ROWS, 1, 32},
    {CT_F_MM_ACC, 0, 10},
    {CT_F_MM_ACC_N, 0, 4},
    {CT_F_MM_WALK, 0, 1},
    {CT_F_WPIX_AX, 0, 3},
    {CT_F_WPIX_AY, -20, 40},
    {CT_F_WPIX_AI, -40, 80},
    {CT_F_WPIX_X0, -2, 2},
    {CT_F_WPIX_XE, -2, 9},
    {CT_F_WPIX_Y0, -2, 2},
    {CT_F_WPIX_YE, -2, 9},
    {CT_F_WPIX_SX, 1, 2},
    {CT_F_WPIX_SY, 1, 2},
    {CT_F_WPIX_W, 1, 9},
    {CT_F_WPIX_H, 1, 9},
    {CT_F_WTAP_TC, -16, 32},
    {CT_F_WTAP_TX, -16, 32},
    {CT_F_WTAP_TY, -16, 32},
    {CT_F_WTAP_X, -2, 2},
    {CT_F_WTAP_Y, -2, 2},
    {CT_F_WTAP_DX, -2, 2},
    {CT_F_WTAP_DY, -2, 2},
    {CT_F_WTAP_KX, 1, 3},
    {CT_F_WTAP_CB, 1, 3},
    {CT_F_VL_SPM, 0, CT_GEN_SPM - 64},
    {CT_F_VL_MODE, 0, 2},
    {CT_F_VL_ROW_STRIDE, 0, 4},
    {CT_F_VL_ROWS, 1, 16},
    {CT_F_VA_A_SRC, 0, 2},
    {CT_F_VA_C_SRC, 0, 0},
    {CT_F_VA_FN, 0, 4},
    {CT_F_VA_FUNC, 8, 11},
    {CT_F_VA_ROWS, 1, 16},
    {CT_F_VA_COLS, 1, 16},
    {CT_F_VA_ROW_XOR, 0, 0},
    {CT_F_VA_LANE_XOR, 0, 0},
    {CT_F_VS_SPM, 0, CT_GEN_SPM - 64},
    {CT_F_VS_MODE, 0, 2},
    {CT_F_VS_ROW_STRIDE, 0, 4},
    {CT_F_VS_ROWS, 1, 16},
    {CT_F_VS_ROUND, 0, 0},
    {CT_F_VS_NARROW, 0, 6},
};

static const struct usual *find_usual(unsigned field) {
  for (size_t i = 0; i < sizeof usual / sizeof *usual; ++i)
    if (usual[i].field == field) return &usual[i];
  return NULL;
}

/* A unit of the context's memory, mostly of the area that the command may use. */
static uint32_t dram(struct ct_fuzz *f, unsigned code) {
  const uint32_t limit = f->in + (CT_RIG_CTX_BYTES - CT_RIG_IN) / 16;
  if (below(f, 200) == 0) return limit - below(f, 40);
  if (below(f, 200) == 0) return f->in - below(f, CT_RIG_CTX_BYTES / 16) - below(f, 1000);
  if (code == CT_OP_ST || percent(f, 30)) return f->out + 100 + below(f, CT_GEN_OUT_UNITS - 400);
  return f->in + 100 + below(f, CT_GEN_IN_UNITS - 400);
}

/* More signals than waits: a program that waits for nothing gets further. */
static uint32_t semaphore(struct ct_fuzz *f, unsigned field) {
  const bool wait = field == CT_F_ALL_WAIT0 || field == CT_F_ALL_WAIT1 || field == CT_F_ALL_WAIT2;
  return percent(f, wait ? 1 : 12) ? CT_SEM(below(f, wait ? 4 : CT_NUM_SEMS)) : 0;
}

static uint32_t near_value(struct ct_fuzz *f, unsigned field, unsigned code) {
  const struct ct_field_info *info = &ct_fields[field];
  const struct usual *u = find_usual(field);
  if (below(f, 1500) == 0) return bits(f, info->width);
  if (info->kind == CT_KIND_SEM) return semaphore(f, field);
  if (info->kind == CT_KIND_REG) return percent(f, 98) ? 0 : below(f, CT_NUM_REGS);
  if (field == CT_F_DMA_DRAM) return dram(f, code);
  if (field == CT_F_VA_FUNC && percent(f, 60)) return 0;
  if (!u) return bits(f, info->width);
  return (uint32_t)(u->lo + (int32_t)below(f, (uint32_t)(u->hi - u->lo + 1)));
}

/* ---- Commands ------------------------------------------------------------------------------ */

static struct ct_cmd raw(struct ct_fuzz *f) {
  struct ct_cmd cmd;
  ct_rng_fill(&f->rng, &cmd, sizeof cmd);
  return cmd;
}

/* A load or store that is compressed, mostly by index units that others write, too. */
static void compress(struct ct_fuzz *f, struct ct_cmd *cmd) {
  const uint32_t groups = 1 + below(f, 4);
  const uint32_t bound = percent(f, 90) ? below(f, 255) : bits(f, 8);
  CT_PUT(cmd, DMA_COMP, 1);
  CT_PUT(cmd, DMA_HDR, below(f, 2000) == 0);
  CT_PUT(cmd, DMA_GATHER, below(f, 2000) == 0);
  CT_PUT(cmd, DMA_NB, below(f, 1000) ? 16 * (1 + below(f, 4)) : bits(f, 9));
  CT_PUT(cmd, DMA_FIRST, below(f, 1000) ? below(f, 5 - groups) : bits(f, 2));
  CT_PUT(cmd, DMA_N1, bound << 4 | groups);
  CT_PUT(cmd, DMA_FREE, percent(f, 40));
  CT_PUT(cmd, DMA_D2, below(f, 3));
  if (percent(f, 80)) CT_PUT(cmd, DMA_DRAM, f->out + CT_FUZZ_INDEX + below(f, 12));
}

/* near: fields of a usual size. */
static struct ct_cmd command(struct ct_fuzz *f, const struct ct_op_info *op, bool near) {
  const bool control = op->group == CT_GROUP_CTL || op->group == CT_GROUP_ADDI ||
                       op->group == CT_GROUP_WPIX || op->group == CT_GROUP_WTAP;
  struct ct_cmd cmd = {{0}};
  for (unsigned i = 0; i < CT_NUM_FIELDS; ++i) {
    const struct ct_field_info *info = &ct_fields[i];
    const bool common = info->group == CT_GROUP_ALL && !(near && control);
    if (info->group != op->group && !common) continue;
    ct_cmd_set_bits(&cmd, info->lsb, info->width,
                    near ? near_value(f, i, op->code) : bits(f, info->width));
  }
  CT_PUT(&cmd, ALL_OP, op->code);
  if (near && op->group == CT_GROUP_DMA) CT_PUT(&cmd, DMA_COMP, 0);
  if (near && op->group == CT_GROUP_DMA && percent(f, 25)) compress(f, &cmd);
  return cmd;
}

static const struct ct_op_info *any_op(struct ct_fuzz *f, bool near) {
  static const uint8_t usual_op[] = {CT_OP_LD,   CT_OP_LD,  CT_OP_LD, CT_OP_ST,   CT_OP_ST,
                                     CT_OP_MM,   CT_OP_MM,  CT_OP_VL, CT_OP_VL,   CT_OP_VA,
                                     CT_OP_VA,   CT_OP_VS,  CT_OP_VS, CT_OP_ADDI, CT_OP_NOP,
                                     CT_OP_WPIX, CT_OP_WTAP};
  return near ? ct_op_find(usual_op[below(f, sizeof usual_op)]) : &ct_ops[below(f, CT_NUM_OPS)];
}

/* Mostly whole loops, one in another or not. */
static void near_program(struct ct_fuzz *f, struct ct_gen_prog *p, unsigned length) {
  const bool moves = percent(f, 25); /* loads and stores alone, so that they come to their errors */
  unsigned open = 0;
  if (!moves && length > 3 && percent(f, 80)) { /* MMs may walk, then */
    p->cmds[p->count++] = command(f, ct_op_find(CT_OP_WPIX), true);
    p->cmds[p->count++] = command(f, ct_op_find(CT_OP_WTAP), true);
  }
  while (p->count < length - 1) {
    struct ct_cmd *cmd = &p->cmds[p->count++];
    const unsigned dice = below(f, 100);
    if (dice < 3 && open < 3 + (dice == 0)) {
      *cmd = command(f, ct_op_find(CT_OP_LOOP), true);
      ++open;
    } else if (dice < 12 && open) {
      *cmd = command(f, ct_op_find(CT_OP_ENDL), true);
      --open;
    } else {
      *cmd = command(f, moves ? ct_op_find(percent(f, 50) ? CT_OP_LD : CT_OP_ST) : any_op(f, true),
                     true);
    }
  }
  p->cmds[p->count++] = (struct ct_cmd){{CT_OP_END}};
}

static void spoil(struct ct_fuzz *f, struct ct_gen_prog *p) {
  *p = f->pool[below(f, CT_FUZZ_POOL)];
  for (unsigned n = 1 + below(f, 3); n > 0; --n) {
    struct ct_cmd *cmd = &p->cmds[below(f, p->count)];
    cmd->w[below(f, 8)] ^= UINT32_C(1) << below(f, 32);
  }
}

enum ct_fuzz_kind ct_fuzz_next(struct ct_fuzz *f, struct ct_gen_prog *p) {
  static const enum ct_fuzz_kind mix[] = {
      CT_FUZZ_RAW,  CT_FUZZ_FIELDS, CT_FUZZ_FIELDS, CT_FUZZ_NEAR,   CT_FUZZ_NEAR,  CT_FUZZ_NEAR,
      CT_FUZZ_NEAR, CT_FUZZ_NEAR,   CT_FUZZ_SPOILT, CT_FUZZ_SPOILT, CT_FUZZ_SPOILT};
  const enum ct_fuzz_kind kind = mix[below(f, sizeof mix / sizeof *mix)];
  const bool near = kind == CT_FUZZ_NEAR;
  p->count = 0;
  for (unsigned i = 0; i < CT_NUM_ARGS; ++i)
    p->args[i] = percent(f, 50) ? below(f, 64) : bits(f, 32);
  if (kind == CT_FUZZ_SPOILT) {
    spoil(f, p);
  } else if (near) {
    near_program(f, p, percent(f, 5) ? CT_PROG_MAX : 20 + below(f, 140));
  } else {
    for (unsigned length = 1 + below(f, 12); p->count < length; ++p->count)
      p->cmds[p->count] = kind == CT_FUZZ_RAW ? raw(f) : command(f, any_op(f, false), false);
  }
  return kind;
}

void ct_fuzz_descriptor(struct ct_fuzz *f, struct ct_rig_job *job) {
  if (percent(f, 30)) job->flags |= CT_FLAG_OVERLAP;
  if (percent(f, 30)) job->flags |= CT_FLAG_CHAIN;
  if (percent(f, 4)) job->flags |= UINT32_C(4) << below(f, 30);
  if (percent(f, 4)) job->ncmds = 1 + below(f, CT_PROG_MAX);
  if (percent(f, 4)) job->ncmds = CT_PROG_MAX + 1 + (bits(f, 32) >> below(f, 32)) / 2;
  if (percent(f, 4)) job->prog_unit = dram(f, CT_OP_LD);
  if (percent(f, 2)) job->prog_unit = f->in + (CT_RIG_CTX_BYTES - CT_RIG_IN) / 16 - below(f, 40);
  if (percent(f, 8)) job->watchdog = 1 + below(f, percent(f, 50) ? 100 : 6000);
}

void ct_fuzz_init(struct ct_fuzz *f, uint64_t stream, unsigned ctx) {
  f->rng = ct_rng_make(stream);
  f->in = ct_rig_unit(ctx, CT_RIG_IN);
  f->out = ct_rig_unit(ctx, CT_RIG_OUT);
  for (unsigned i = 0; i < CT_FUZZ_POOL; ++i)
    (i % 2 ? ct_gen_compressing : ct_gen_random)(&f->rng, &f->pool[i], 20 + below(f, 180), f->in,
                                                 f->out);
}
