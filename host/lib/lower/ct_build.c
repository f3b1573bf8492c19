/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists and their encoding. See ct_build.h. */
#include "ct_build.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_roll.h"

/* ---- The list ------------------------------------------------------------------------------ */

void ct_build_init(struct ct_build *b, unsigned args) {
  memset(b, 0, sizeof *b);
  b->args = args;
}

void ct_build_free(struct ct_build *b) {
  free(b->node);
  b->node = NULL;
  b->count = b->room = 0;
}

/* The address fields of an operation and the registers added to them. */
struct slots {
  unsigned n;
  enum ct_field_id value[CT_SLOTS], reg[CT_SLOTS];
};

static struct slots slots_of(uint32_t op) {
  switch (op) {
    case CT_OP_LD:
    case CT_OP_ST:
      return (struct slots){
          2, {CT_F_DMA_DRAM, CT_F_DMA_SPM}, {CT_F_DMA_DRAM_REG, CT_F_DMA_SPM_REG}};
    case CT_OP_MM:
      return (struct slots){
          3, {CT_F_MM_A, CT_F_MM_B, CT_F_MM_POS}, {CT_F_MM_A_REG, CT_F_MM_B_REG, CT_F_MM_POS_REG}};
    case CT_OP_VL:
      return (struct slots){1, {CT_F_VL_SPM}, {CT_F_VL_SPM_REG}};
    case CT_OP_VS:
      return (struct slots){1, {CT_F_VS_SPM}, {CT_F_VS_SPM_REG}};
    default:
      return (struct slots){.n = 0};
  }
}

void ct_node_of(struct ct_node *n, const struct ct_cmd *cmd) {
  memset(n, 0, sizeof *n);
  n->cmd = *cmd;
  n->size = 1;
  const struct slots slots = slots_of(CT_GET(cmd, ALL_OP));
  for (unsigned s = 0; s < slots.n; ++s) {
    n->slot[s] = ct_cmd_get(cmd, slots.value[s]);
    ct_cmd_set(&n->cmd, slots.value[s], 0);
  }
  ct_node_hash(n);
}

struct ct_cmd ct_node_command(const struct ct_node *n) {
  struct ct_cmd cmd = n->cmd;
  const struct slots slots = slots_of(CT_GET(&cmd, ALL_OP));
  for (unsigned s = 0; s < slots.n; ++s)
    ct_cmd_set(&cmd, slots.value[s], n->slot[s]);
  return cmd;
}

void ct_build_add(struct ct_build *b, const struct ct_cmd *cmd) {
  if (b->error) return;
  if (b->count == b->room) {
    const size_t room = b->room ? 2 * b->room : 256;
    struct ct_node *node = realloc(b->node, room * sizeof *node);
    if (!node) {
      b->error = CT_ERR_MEMORY;
      return;
    }
    b->node = node;
    b->room = room;
  }
  ct_node_of(&b->node[b->count++], cmd);
  ++b->work;
}

void ct_build_repeat(struct ct_build *b, size_t mark, uint32_t copies) {
  if (b->error) return;
  b->error = ct_roll_pair(b->node + mark, b->count - mark, copies);
  b->count = mark + (b->count - mark) / 2 + 1;
}

void ct_build_passes(struct ct_build *b, uint32_t passes, void (*body)(void *self, uint32_t pass),
                     void *self) {
  const size_t mark = b->count;
  for (uint32_t i = 0; i < passes && i < 2; ++i)
    body(self, i);
  if (passes > 2) ct_build_repeat(b, mark, passes);
}

void ct_build_cmd(struct ct_build *b, uint32_t op, const struct ct_field_value *v, size_t n) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, op);
  for (size_t i = 0; i < n; ++i)
    if (!ct_cmd_set(&cmd, v[i].field, v[i].value) && !b->error) b->error = CT_ERR_INTERNAL;
  ct_build_add(b, &cmd);
}

/* ---- Encoding ------------------------------------------------------------------------------ */

/* An address register: it starts at register base and moves by stride[l] in each pass of a loop at
 * level l (0 outermost) in which it is used; after an inner loop it is set back. Where there are no
 * registers left and base has one user in the loop, it is base itself, set back behind all loops.
 */
struct reg {
  unsigned number, base, levels;
  int32_t stride[CT_NUM_LOOPS];
};

struct encoder {
  struct ct_cmd *cmd; /* CT_PROG_MAX places; more are counted, not written */
  size_t count;
  unsigned args;
  bool batch;
  const struct ct_fused *group;
  struct reg reg[CT_NUM_REGS];
  unsigned regs;
  unsigned level;
  bool full;                  /* out of registers */
  const struct ct_node *loop; /* the outermost one */
  uint32_t used;              /* set of register indices met by find_registers() */
};

static void emit(struct encoder *e, const struct ct_cmd *cmd) {
  if (e->count < CT_PROG_MAX) e->cmd[e->count] = *cmd;
  ++e->count;
}

static void emit_op(struct encoder *e, uint32_t op) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, op);
  emit(e, &cmd);
}

/* Address fields in the outermost loop that have this register. */
static unsigned users_of(const struct encoder *e, unsigned base) {
  unsigned users = 0;
  for (uint32_t i = 1; i < e->loop->size; ++i) {
    const struct ct_node *n = &e->loop[i];
    const struct slots slots = slots_of(CT_GET(&n->cmd, ALL_OP));
    for (unsigned s = 0; s < slots.n && !n->count; ++s)
      users += ct_cmd_get(&n->cmd, slots.reg[s]) == base;
  }
  return users;
}

/* Index of the register for slot s of a node at the present level; -1: the slot does not move. */
static int reg_for(struct encoder *e, const struct ct_node *n, unsigned s, unsigned base) {
  struct reg want = {.base = base};
  for (unsigned l = 0; l < e->level; ++l) {
    want.stride[l] = n->stride[s][e->level - 1 - l];
    if (want.stride[l]) want.levels = l + 1;
  }
  if (want.levels == 0) return -1;
  for (unsigned i = 0; i < e->regs; ++i) {
    const struct reg *r = &e->reg[i];
    if (r->base == base && r->levels == want.levels &&
        !memcmp(r->stride, want.stride, sizeof r->stride))
      return (int)i;
  }
  want.number = CT_NUM_REGS - 1 - e->regs;
  if (e->batch && want.number <= CT_BATCH_REG) --want.number;
  if (want.number <= e->args || e->regs + 1 == CT_NUM_REGS) {
    if (base == 0 || e->regs + 1 == CT_NUM_REGS || users_of(e, base) != 1) {
      e->full = true;
      return -1;
    }
    want.number = base;
  }
  e->reg[e->regs] = want;
  return (int)e->regs++;
}

/* Up to four scalar updates in a command. */
struct updates {
  unsigned n;
  struct {
    unsigned rd, rs;
    int32_t imm;
  } u[4];
};

static void flush_updates(struct encoder *e, struct updates *u) {
  static const enum ct_field_id rd[4] = {CT_F_ADDI_RD0, CT_F_ADDI_RD1, CT_F_ADDI_RD2,
                                         CT_F_ADDI_RD3};
  static const enum ct_field_id rs[4] = {CT_F_ADDI_RS0, CT_F_ADDI_RS1, CT_F_ADDI_RS2,
                                         CT_F_ADDI_RS3};
  static const enum ct_field_id imm[4] = {CT_F_ADDI_IMM0, CT_F_ADDI_IMM1, CT_F_ADDI_IMM2,
                                          CT_F_ADDI_IMM3};
  if (u->n == 0) return;
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, CT_OP_ADDI);
  for (unsigned i = 0; i < u->n; ++i) {
    ct_cmd_set(&cmd, rd[i], u->u[i].rd);
    ct_cmd_set(&cmd, rs[i], u->u[i].rs);
    ct_cmd_set(&cmd, imm[i], u->u[i].imm);
  }
  emit(e, &cmd);
  u->n = 0;
}

static void update(struct encoder *e, struct updates *u, unsigned rd, unsigned rs, int32_t imm) {
  if (rd == rs && imm == 0) return;
  u->u[u->n].rd = rd;
  u->u[u->n].rs = rs;
  u->u[u->n].imm = imm;
  if (++u->n == 4) flush_updates(e, u);
}

/* Adds passes * stride of the loop at level l to the registers of a set. */
static void move_registers(struct encoder *e, uint32_t set, unsigned l, int64_t passes) {
  struct updates u = {.n = 0};
  for (unsigned i = 0; i < e->regs; ++i) {
    const struct reg *r = &e->reg[i];
    if (set >> i & 1) update(e, &u, r->number, r->number, (int32_t)(passes * r->stride[l]));
  }
  flush_updates(e, &u);
}

/* Notes, and makes where there are none yet, the registers of nodes at the present level. */
static void find_registers(struct encoder *e, const struct ct_node *n, size_t nodes) {
  for (size_t i = 0; i < nodes; i += n[i].size) {
    if (n[i].count) {
      ++e->level;
      find_registers(e, n + i + 1, n[i].size - 1);
      --e->level;
      continue;
    }
    const struct slots slots = slots_of(CT_GET(&n[i].cmd, ALL_OP));
    for (unsigned s = 0; s < slots.n; ++s) {
      const int reg = reg_for(e, &n[i], s, ct_cmd_get(&n[i].cmd, slots.reg[s]));
      if (reg >= 0) e->used |= UINT32_C(1) << reg;
    }
  }
}

static void start_registers(struct encoder *e) {
  struct updates u = {.n = 0};
  for (unsigned i = 0; i < e->regs; ++i)
    update(e, &u, e->reg[i].number, e->reg[i].base, 0);
  flush_updates(e, &u);
}

static uint32_t in_place(const struct encoder *e) {
  uint32_t set = 0;
  for (unsigned i = 0; i < e->regs; ++i)
    if (e->reg[i].number == e->reg[i].base) set |= UINT32_C(1) << i;
  return set;
}

static void encode(struct encoder *e, const struct ct_node *n, size_t nodes);

/* ---- The loop over members ---- */

/* Registers of the regions that a pass uses move on to the next members'. */
static void next_regions(struct encoder *e, const struct ct_node *n, size_t nodes) {
  struct updates u = {.n = 0};
  uint32_t used = 0;
  for (size_t i = 0; i < nodes; ++i) {
    const uint32_t op = CT_GET(&n[i].cmd, ALL_OP);
    if (n[i].count == 0 && (op == CT_OP_LD || op == CT_OP_ST))
      used |= UINT32_C(1) << CT_GET(&n[i].cmd, DMA_DRAM_REG);
  }
  for (unsigned r = 1; r < CT_NUM_REGS; ++r)
    if (used >> r & 1) update(e, &u, r, r, (int32_t)(e->group->stride[r] * e->group->round));
  flush_updates(e, &u);
}

static bool is_number(const struct ct_fused *g, uint32_t reg) {
  return reg >= g->table && reg < g->table + g->all;
}

/* So do their numbers, if a pass uses some. */
static void next_numbers(struct encoder *e, const struct ct_node *n, size_t nodes) {
  const struct ct_fused *g = e->group;
  const unsigned by = g->round * g->numbers;
  struct updates u = {.n = 0};
  bool used = false;
  for (size_t i = 0; i < nodes; ++i)
    if (n[i].count == 0 && CT_GET(&n[i].cmd, ALL_OP) == CT_OP_VA)
      used |=
          is_number(g, CT_GET(&n[i].cmd, VA_SB_REG)) || is_number(g, CT_GET(&n[i].cmd, VA_SC_REG));
  for (unsigned i = 0; used && i + by < g->all; ++i)
    update(e, &u, g->table + i, g->table + i + by, 0);
  flush_updates(e, &u);
}

static void encode_members(struct encoder *e, const struct ct_node *n) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmd, CTL_COUNT_REG, e->group->passes);
  emit(e, &cmd);
  encode(e, n + 1, n->size - 1);
  next_regions(e, n + 1, n->size - 1);
  next_numbers(e, n + 1, n->size - 1);
  emit_op(e, CT_OP_ENDL);
}

static void encode_loop(struct encoder *e, const struct ct_node *n) {
  struct ct_cmd cmd = {{0}};
  const unsigned level = e->level++;
  if (level == 0) {
    e->regs = 0;
    e->loop = n;
  }
  e->used = 0;
  find_registers(e, n + 1, n->size - 1);
  const uint32_t used = e->used;
  if (level == 0) start_registers(e);
  CT_PUT(&cmd, ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmd, CTL_COUNT, n->count);
  emit(e, &cmd);
  encode(e, n + 1, n->size - 1);
  move_registers(e, used, level, 1);
  emit_op(e, CT_OP_ENDL);
  move_registers(e, level ? used : used & in_place(e), level, -(int64_t)n->count);
  --e->level;
}

static void encode(struct encoder *e, const struct ct_node *n, size_t nodes) {
  for (size_t i = 0; i < nodes; i += n[i].size) {
    if (n[i].count) {
      (n[i].members ? encode_members : encode_loop)(e, &n[i]);
      continue;
    }
    struct ct_cmd cmd = n[i].cmd;
    const struct slots slots = slots_of(CT_GET(&cmd, ALL_OP));
    for (unsigned s = 0; s < slots.n; ++s) {
      const int reg = reg_for(e, &n[i], s, ct_cmd_get(&cmd, slots.reg[s]));
      ct_cmd_set(&cmd, slots.value[s], n[i].slot[s]);
      if (reg >= 0) ct_cmd_set(&cmd, slots.reg[s], e->reg[reg].number);
    }
    emit(e, &cmd);
  }
}

int ct_build_finish(struct ct_build *b, struct ct_cmd **cmds, size_t *needed) {
  *cmds = NULL;
  if (!b->error) b->error = ct_roll(b->node, &b->count, &b->work);
  return b->error ? b->error : ct_build_encode(b, cmds, needed);
}

int ct_build_encode(const struct ct_build *b, struct ct_cmd **cmds, size_t *needed) {
  *cmds = NULL;
  struct encoder e = {.args = b->args, .batch = b->batch, .group = b->group};
  e.cmd = calloc(CT_PROG_MAX, sizeof *e.cmd);
  if (!e.cmd) return CT_ERR_MEMORY;
  encode(&e, b->node, b->count);
  emit_op(&e, CT_OP_END);
  if (needed) *needed = e.full ? 0 : e.count;
  if (e.full || e.count > CT_PROG_MAX) {
    free(e.cmd);
    return CT_ERR_NO_SPACE;
  }
  *cmds = e.cmd;
  return (int)e.count;
}
