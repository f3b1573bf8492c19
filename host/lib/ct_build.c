/* SPDX-License-Identifier: Apache-2.0 */
/* Flat command lists, and the loops made of them. See ct_build.h. */
#include "ct_build.h"

#include <stdlib.h>
#include <string.h>

#include "coltrain/coltrain.h"

enum { LONGEST_RUN = 640, SLOTS = 2 };

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

/* Width of slot addresses: differences wrap like the fields do. */
static int32_t slot_delta(const struct ct_node *a, const struct ct_node *b, unsigned s) {
  const uint32_t op = CT_GET(&a->cmd, ALL_OP), delta = b->slot[s] - a->slot[s];
  return s == 0 && (op == CT_OP_LD || op == CT_OP_ST) ? (int32_t)delta
                                                      : ct_sign_extend(delta & 0xfffff, 20);
}

/* Whether the subtrees at a and b are equal but for their slots. */
static bool same_shape(const struct ct_node *a, const struct ct_node *b, size_t nodes) {
  for (size_t i = 0; i < nodes; ++i) {
    if (a[i].count != b[i].count || a[i].size != b[i].size || a[i].shape != b[i].shape ||
        (a[i].count == 0 && (memcmp(&a[i].cmd, &b[i].cmd, sizeof a[i].cmd) ||
                             memcmp(a[i].stride, b[i].stride, sizeof a[i].stride))))
      return false;
  }
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

struct roll {
  struct ct_build *b;
  size_t *item; /* indices of the top-level nodes, and one past the last */
  size_t items;
};

static bool list_items(struct roll *r) {
  size_t *item = realloc(r->item, (r->b->count + 1) * sizeof *item);
  if (!item) return false;
  r->item = item;
  r->items = 0;
  for (size_t i = 0; i < r->b->count; i += r->b->node[i].size)
    item[r->items++] = i;
  item[r->items] = r->b->count;
  return true;
}

/* How often the run of items [at, at + period) repeats with constant differences; 1: never. */
static size_t copies(const struct roll *r, size_t at, size_t period) {
  const struct ct_node *node = r->b->node;
  const size_t nodes = r->item[at + period] - r->item[at];
  const struct ct_node *first = node + r->item[at];
  size_t n = 1;
  while (at + (n + 1) * period <= r->items) {
    const struct ct_node *last = node + r->item[at + (n - 1) * period];
    const struct ct_node *next = node + r->item[at + n * period];
    if (r->item[at + (n + 1) * period] - r->item[at + n * period] != nodes ||
        next->shape != first->shape || !same_shape(first, next, nodes) ||
        (n > 1 && !same_delta(last - nodes, last, next, nodes)))
      break;
    ++n;
  }
  return n;
}

static unsigned depth_of(const struct roll *r, size_t at, size_t period) {
  unsigned depth = 0;
  for (size_t i = at; i < at + period; ++i)
    if (r->b->node[r->item[i]].depth > depth) depth = r->b->node[r->item[i]].depth;
  return depth;
}

/* Loops already around the commands of a subtree, for each of its nodes: where a new stride goes.
 */
static void add_strides(struct ct_node *node, size_t nodes, unsigned level,
                        const struct ct_node *next) {
  for (size_t i = 0; i < nodes;) {
    if (node[i].count) {
      add_strides(node + i + 1, node[i].size - 1, level + 1, next + i + 1);
      node_hash(&node[i]);
      i += node[i].size;
    } else {
      for (unsigned s = 0; s < SLOTS; ++s)
        node[i].stride[s][level] = slot_delta(&node[i], &next[i], s);
      node_hash(&node[i]);
      ++i;
    }
  }
}

/* Replaces n copies of the items at `at` by a loop. The list gets no longer: out may be node. */
static size_t write_loop(const struct roll *r, size_t at, size_t period, size_t n,
                         struct ct_node *out) {
  const struct ct_node *first = r->b->node + r->item[at];
  const struct ct_node *second = r->b->node + r->item[at + period];
  const size_t nodes = (size_t)(second - first);
  struct ct_node loop = {.count = (uint32_t)n, .size = (uint32_t)nodes + 1};
  loop.depth = (uint8_t)(depth_of(r, at, period) + 1);
  memcpy(out + 1, first, nodes * sizeof *out);
  out[0] = loop;
  add_strides(out + 1, nodes, 0, second);
  node_hash(out);
  return nodes + 1;
}

/* One sweep with one period. True: something was rolled. */
static bool sweep(struct roll *r, size_t period, struct ct_node *out) {
  bool rolled = false;
  size_t to = 0;
  for (size_t at = 0; at < r->items;) {
    const size_t n = at + 2 * period <= r->items ? copies(r, at, period) : 1;
    if (n > 1 && depth_of(r, at, period) < CT_NUM_LOOPS) {
      const struct ct_node *first = r->b->node + r->item[at];
      const struct ct_node *second = r->b->node + r->item[at + period];
      const size_t nodes = (size_t)(second - first);
      if ((n - 1) * nodes > overhead(first, second, nodes)) {
        to += write_loop(r, at, period, n, out + to);
        at += n * period;
        rolled = true;
        continue;
      }
    }
    const struct ct_node *node = r->b->node + r->item[at];
    memcpy(out + to, node, node->size * sizeof *out);
    to += node->size;
    ++at;
  }
  if (rolled) {
    memcpy(r->b->node, out, to * sizeof *out);
    r->b->count = to;
  }
  return rolled;
}

/* Rolls the shortest repetitions first, again and again until none is left. */
static int roll(struct ct_build *b) {
  struct roll r = {.b = b};
  struct ct_node *out = malloc((b->count + 1) * sizeof *out);
  bool again = out && list_items(&r), ok = again;
  while (ok && again) {
    again = false;
    for (size_t period = 1; ok && period <= LONGEST_RUN && 2 * period <= r.items; ++period) {
      if (!sweep(&r, period, out)) continue;
      again = true;
      ok = list_items(&r);
    }
  }
  free(out);
  free(r.item);
  return ok ? CT_OK : CT_ERR_MEMORY;
}

/* ---- Encoding ------------------------------------------------------------------------------ */

/* An address register: it starts at register base and moves with the loops path[0..levels). */
struct reg {
  unsigned number, base, levels;
  const struct ct_node *path[CT_NUM_LOOPS]; /* outermost first */
  int32_t stride[CT_NUM_LOOPS];
};

struct encoder {
  struct ct_cmd *cmd; /* CT_PROG_MAX places; more are counted, not written */
  size_t count;
  unsigned args;
  struct reg reg[CT_NUM_REGS];
  unsigned regs;
  const struct ct_node *path[CT_NUM_LOOPS];
  unsigned level;
  bool full; /* out of registers */
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

/* The register for slot s of a node inside the loops e->path; 0: the slot does not move. */
static unsigned reg_for(struct encoder *e, const struct ct_node *n, unsigned s, unsigned base) {
  struct reg want = {.base = base};
  for (unsigned l = 0; l < e->level; ++l) {
    want.path[l] = e->path[l];
    want.stride[l] = n->stride[s][e->level - 1 - l];
    if (want.stride[l]) want.levels = l + 1;
  }
  if (want.levels == 0) return 0;
  for (unsigned i = 0; i < e->regs; ++i) {
    const struct reg *r = &e->reg[i];
    if (r->base == base && r->levels == want.levels &&
        !memcmp(r->path, want.path, want.levels * sizeof *r->path) &&
        !memcmp(r->stride, want.stride, want.levels * sizeof *r->stride))
      return r->number;
  }
  if (e->args + e->regs + 1 >= CT_NUM_REGS) {
    e->full = true;
    return 0;
  }
  want.number = CT_NUM_REGS - 1 - e->regs;
  e->reg[e->regs++] = want;
  return want.number;
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

/* Steps the registers that move with the innermost open loop, at its end. What the loops inside
 * have added is taken back. */
static void step_registers(struct encoder *e) {
  struct updates u = {.n = 0};
  const unsigned l = e->level - 1;
  for (unsigned i = 0; i < e->regs; ++i) {
    const struct reg *r = &e->reg[i];
    if (r->levels <= l || memcmp(r->path, e->path, e->level * sizeof *r->path)) continue;
    int64_t imm = r->stride[l];
    if (l + 1 < r->levels) imm -= (int64_t)r->path[l + 1]->count * r->stride[l + 1];
    update(e, &u, r->number, r->number, (int32_t)imm);
  }
  flush_updates(e, &u);
}

static void find_registers(struct encoder *e, const struct ct_node *n, size_t nodes);
static void encode(struct encoder *e, const struct ct_node *n, size_t nodes);

static void in_loop(struct encoder *e, const struct ct_node *n,
                    void (*visit)(struct encoder *, const struct ct_node *, size_t)) {
  e->path[e->level++] = n;
  visit(e, n + 1, n->size - 1);
  --e->level;
}

static void find_registers(struct encoder *e, const struct ct_node *n, size_t nodes) {
  for (size_t i = 0; i < nodes; i += n[i].size) {
    if (n[i].count) {
      in_loop(e, &n[i], find_registers);
      continue;
    }
    const struct slots slots = slots_of(CT_GET(&n[i].cmd, ALL_OP));
    for (unsigned s = 0; s < slots.n; ++s)
      reg_for(e, &n[i], s, ct_cmd_get(&n[i].cmd, slots.reg[s]));
  }
}

static void encode_loop(struct encoder *e, const struct ct_node *n) {
  if (e->level == 0) {
    struct updates u = {.n = 0};
    e->regs = 0;
    in_loop(e, n, find_registers);
    for (unsigned i = 0; i < e->regs; ++i)
      update(e, &u, e->reg[i].number, e->reg[i].base, 0);
    flush_updates(e, &u);
  }
  struct ct_cmd cmd = {{0}};
  CT_PUT(&cmd, ALL_OP, CT_OP_LOOP);
  CT_PUT(&cmd, CTL_COUNT, n->count);
  emit(e, &cmd);
  e->path[e->level++] = n;
  encode(e, n + 1, n->size - 1);
  step_registers(e);
  --e->level;
  emit_op(e, CT_OP_ENDL);
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
      const unsigned reg = reg_for(e, &n[i], s, ct_cmd_get(&cmd, slots.reg[s]));
      ct_cmd_set(&cmd, slots.value[s], n[i].slot[s]);
      if (reg) ct_cmd_set(&cmd, slots.reg[s], reg);
    }
    emit(e, &cmd);
  }
}

int ct_build_finish(struct ct_build *b, struct ct_cmd **cmds, size_t *needed) {
  *cmds = NULL;
  if (!b->error) b->error = roll(b);
  if (b->error) return b->error;
  struct encoder e = {.args = b->args};
  e.cmd = calloc(CT_PROG_MAX, sizeof *e.cmd);
  if (!e.cmd) return CT_ERR_MEMORY;
  encode(&e, b->node, b->count);
  emit_op(&e, CT_OP_END);
  if (needed) *needed = e.count;
  if (e.full || e.count > CT_PROG_MAX) {
    free(e.cmd);
    return CT_ERR_NO_SPACE;
  }
  *cmds = e.cmd;
  return (int)e.count;
}
