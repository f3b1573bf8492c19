/* SPDX-License-Identifier: Apache-2.0 */
/* Flat command lists, and the loops made of them. See ct_build.h. */
#include "ct_build.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"

enum { LONGEST_RUN = 3000, MOST_WORK = 400000000, SLOTS = 2 };

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
  enum ct_field_id value[SLOTS], reg[SLOTS];
};

static struct slots slots_of(uint32_t op) {
  switch (op) {
    case CT_OP_LD:
    case CT_OP_ST:
      return (struct slots){
          2, {CT_F_DMA_DRAM, CT_F_DMA_SPM}, {CT_F_DMA_DRAM_REG, CT_F_DMA_SPM_REG}};
    case CT_OP_MM:
      return (struct slots){2, {CT_F_MM_A, CT_F_MM_B}, {CT_F_MM_A_REG, CT_F_MM_B_REG}};
    case CT_OP_VL:
      return (struct slots){1, {CT_F_VL_SPM, CT_F_VL_SPM}, {CT_F_VL_SPM_REG, CT_F_VL_SPM_REG}};
    case CT_OP_VS:
      return (struct slots){1, {CT_F_VS_SPM, CT_F_VS_SPM}, {CT_F_VS_SPM_REG, CT_F_VS_SPM_REG}};
    default:
      return (struct slots){0, {CT_F_ALL_OP, CT_F_ALL_OP}, {CT_F_ALL_OP, CT_F_ALL_OP}};
  }
}

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

static void node_hash(struct ct_node *n) {
  uint64_t hash = n->count;
  if (n->count == 0) {
    for (unsigned i = 0; i < 8; ++i)
      hash = mix(hash, n->cmd.w[i]);
    for (unsigned s = 0; s < SLOTS; ++s)
      for (unsigned l = 0; l < CT_NUM_LOOPS; ++l)
        hash = mix(hash, (uint32_t)n->stride[s][l]);
  } else {
    for (uint32_t i = 1; i < n->size; i += n[i].size)
      hash = mix(hash, n[i].shape);
  }
  n->shape = hash;
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
  struct ct_node *n = &b->node[b->count++];
  memset(n, 0, sizeof *n);
  n->cmd = *cmd;
  n->size = 1;
  const struct slots slots = slots_of(CT_GET(cmd, ALL_OP));
  for (unsigned s = 0; s < slots.n; ++s) {
    n->slot[s] = ct_cmd_get(cmd, slots.value[s]);
    ct_cmd_set(&n->cmd, slots.value[s], 0);
  }
  node_hash(n);
}

void ct_build_cmd(struct ct_build *b, uint32_t op, const struct ct_field_value *v, size_t n) {
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, op);
  for (size_t i = 0; i < n; ++i)
    if (!ct_cmd_set(&cmd, v[i].field, v[i].value) && !b->error) b->error = CT_ERR_INTERNAL;
  ct_build_add(b, &cmd);
}

/* ---- Rolling ------------------------------------------------------------------------------- */

/* From a to b; addresses wrap like their fields do. */
static int32_t slot_delta(const struct ct_node *a, const struct ct_node *b, unsigned s) {
  const uint32_t op = CT_GET(&a->cmd, ALL_OP), delta = b->slot[s] - a->slot[s];
  const bool wide = s == 0 && (op == CT_OP_LD || op == CT_OP_ST);
  return wide ? (int32_t)delta : ct_sign_extend(delta & 0xfffff, 20);
}

/* Whether two runs of nodes are equal but for their slots. */
static bool same_shape(const struct ct_node *a, const struct ct_node *b, size_t nodes) {
  for (size_t i = 0; i < nodes; ++i)
    if (a[i].count != b[i].count || a[i].size != b[i].size ||
        memcmp(&a[i].cmd, &b[i].cmd, sizeof a[i].cmd) != 0 ||
        memcmp(a[i].stride, b[i].stride, sizeof a[i].stride) != 0)
      return false;
  return true;
}

/* Whether c - b equals b - a in every slot. */
static bool same_delta(const struct ct_node *a, const struct ct_node *b, const struct ct_node *c,
                       size_t nodes) {
  for (size_t i = 0; i < nodes; ++i)
    for (unsigned s = 0; s < SLOTS; ++s)
      if (slot_delta(&a[i], &b[i], s) != slot_delta(&b[i], &c[i], s)) return false;
  return true;
}

/* Commands a loop costs besides its body: LOOP, ENDL, and the registers' start and step. */
static size_t overhead(const struct ct_node *a, const struct ct_node *b, size_t nodes) {
  int32_t seen[16];
  size_t n = 0;
  for (size_t i = 0; i < nodes && n < 16; ++i) {
    for (unsigned s = 0; s < SLOTS && n < 16; ++s) {
      const int32_t delta = slot_delta(&a[i], &b[i], s);
      bool known = delta == 0;
      for (size_t j = 0; j < n; ++j)
        known |= seen[j] == delta;
      if (!known) seen[n++] = delta;
    }
  }
  return 2 + 2 * ((n + 3) / 4);
}

/* Siblings: the top level of a program, or a loop's body. */
struct siblings {
  struct ct_node *node;
  size_t nodes;
  size_t *item; /* where each sibling starts, and the end */
  uint64_t *shape;
  size_t items;
  unsigned above; /* loops around them */
};

/* A repetition: `copies` times the items [at, at + period). */
struct repetition {
  size_t at, period, copies, gain;
};

static size_t nodes_in(const struct siblings *l, size_t at, size_t items) {
  return l->item[at + items] - l->item[at];
}

static const struct ct_node *item_node(const struct siblings *l, size_t i) {
  return l->node + l->item[i];
}

static void list_items(struct siblings *l) {
  l->items = 0;
  for (size_t i = 0; i < l->nodes; i += l->node[i].size) {
    l->item[l->items] = i;
    l->shape[l->items++] = l->node[i].shape;
  }
  l->item[l->items] = l->nodes;
}

static unsigned depth_of(const struct siblings *l, size_t at, size_t items) {
  unsigned depth = 0;
  for (size_t i = at; i < at + items; ++i)
    if (item_node(l, i)->depth > depth) depth = item_node(l, i)->depth;
  return depth;
}

/* Items [from, to) look like those a period later. The place in there with the most copies, and
 * among those the first. */
static void examine(const struct siblings *l, size_t from, size_t to, size_t period,
                    struct repetition *best) {
  size_t at = from, copies = 2, run = 0;
  for (size_t t = to - period; t-- > from;) {
    const bool goes_on = same_delta(item_node(l, t), item_node(l, t + period),
                                    item_node(l, t + 2 * period), nodes_in(l, t, 1));
    run = goes_on ? run + 1 : 0;
    if (2 + run / period >= copies && run >= period) {
      at = t;
      copies = 2 + run / period;
    }
  }
  const size_t nodes = nodes_in(l, at, period);
  const size_t cost = overhead(item_node(l, at), item_node(l, at + period), nodes);
  const size_t saved = (copies - 1) * nodes;
  if (saved <= cost || saved - cost <= best->gain) return;
  if (l->above + 1 + depth_of(l, at, period) > CT_NUM_LOOPS) return;
  if (!same_shape(item_node(l, at), item_node(l, at + period), nodes)) return;
  *best = (struct repetition){at, period, copies, saved - cost};
}

/* The repetition that saves most; false: none saves anything. */
static bool find(const struct siblings *l, struct repetition *best) {
  size_t longest = MOST_WORK / (l->items + 1);
  *best = (struct repetition){0, 0, 0, 0};
  if (longest > LONGEST_RUN) longest = LONGEST_RUN;
  for (size_t period = 1; period <= longest && 2 * period <= l->items; ++period) {
    for (size_t i = 0; i + period < l->items; ++i) {
      const size_t from = i;
      while (i + period < l->items && l->shape[i] == l->shape[i + period])
        ++i;
      if (i - from >= period && nodes_in(l, from, i - from) > best->gain)
        examine(l, from, i, period, best);
    }
  }
  return best->gain > 0;
}

/* Puts a loop around nodes (inside which `level` loops lie already): the difference to the next
 * copy becomes a stride between those of inner and outer loops. */
static void add_strides(struct ct_node *node, size_t nodes, unsigned level,
                        const struct ct_node *next) {
  for (size_t i = 0; i < nodes; i += node[i].size) {
    if (node[i].count) {
      add_strides(node + i + 1, node[i].size - 1, level + 1, next + i + 1);
    } else {
      for (unsigned s = 0; s < SLOTS; ++s) {
        int32_t *stride = node[i].stride[s];
        memmove(stride + level + 1, stride + level, (CT_NUM_LOOPS - 1 - level) * sizeof *stride);
        stride[level] = slot_delta(&node[i], &next[i], s);
      }
    }
    node_hash(&node[i]);
  }
}

static int roll(struct ct_node *node, size_t *nodes, unsigned above);

/* Replaces a repetition by a loop, and rolls its body. */
static int make_loop(struct siblings *l, const struct repetition *r) {
  struct ct_node *first = l->node + l->item[r->at];
  const size_t body = nodes_in(l, r->at, r->period),
               all = nodes_in(l, r->at, r->period * r->copies);
  struct ct_node *copy = malloc(2 * body * sizeof *copy);
  if (!copy) return CT_ERR_MEMORY;
  memcpy(copy, first, 2 * body * sizeof *copy);
  add_strides(copy, body, 0, copy + body);
  size_t rolled = body;
  const int err = roll(copy, &rolled, l->above + 1);
  if (!err) {
    struct ct_node loop = {.count = (uint32_t)r->copies, .size = (uint32_t)rolled + 1, .depth = 1};
    for (size_t i = 0; i < rolled; ++i)
      if (copy[i].depth >= loop.depth) loop.depth = (uint8_t)(copy[i].depth + 1);
    memcpy(first + 1, copy, rolled * sizeof *copy);
    first[0] = loop;
    node_hash(first);
    memmove(first + 1 + rolled, first + all, (l->nodes - l->item[r->at] - all) * sizeof *first);
    l->nodes -= all - 1 - rolled;
  }
  free(copy);
  return err;
}

/* Rolls siblings, the greatest saving first, until nothing repeats. */
static int roll(struct ct_node *node, size_t *nodes, unsigned above) {
  struct siblings l = {.node = node, .nodes = *nodes, .above = above};
  struct repetition r;
  int err = CT_OK;
  l.item = malloc((l.nodes + 1) * sizeof *l.item);
  l.shape = malloc((l.nodes + 1) * sizeof *l.shape);
  if (!l.item || !l.shape) err = CT_ERR_MEMORY;
  while (!err) {
    list_items(&l);
    if (!find(&l, &r)) break;
    err = make_loop(&l, &r);
  }
  free(l.item);
  free(l.shape);
  *nodes = l.nodes;
  return err;
}

/* ---- Encoding ------------------------------------------------------------------------------ */

/* An address register: it starts at register base and moves by stride[l] in each pass of a loop at
 * level l (0 outermost) in which it is used; after an inner loop it is set back. */
struct reg {
  unsigned number, base, levels;
  int32_t stride[CT_NUM_LOOPS];
};

struct encoder {
  struct ct_cmd *cmd; /* CT_PROG_MAX places; more are counted, not written */
  size_t count;
  unsigned args;
  bool batch;
  struct reg reg[CT_NUM_REGS];
  unsigned regs;
  unsigned level;
  bool full;     /* out of registers */
  uint32_t used; /* set of register indices met by find_registers() */
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
  if (want.number <= e->args) {
    e->full = true;
    return -1;
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

static void encode(struct encoder *e, const struct ct_node *n, size_t nodes);

static void encode_loop(struct encoder *e, const struct ct_node *n) {
  struct ct_cmd cmd = {{0}};
  const unsigned level = e->level++;
  if (level == 0) e->regs = 0;
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
  if (level) move_registers(e, used, level, -(int64_t)n->count);
  --e->level;
}

static void encode(struct encoder *e, const struct ct_node *n, size_t nodes) {
  for (size_t i = 0; i < nodes; i += n[i].size) {
    if (n[i].count) {
      encode_loop(e, &n[i]);
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
  if (!b->error) b->error = roll(b->node, &b->count, 0);
  if (b->error) return b->error;
  struct encoder e = {.args = b->args, .batch = b->batch};
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
