/* SPDX-License-Identifier: Apache-2.0 */
/* A tile program as commands of VA. See ct_tile.h. */
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_kernel_program.h"
#include "ct_tile_impl.h"

enum { NO_TEMP = CT_TILE_REGS }; /* too many: ct_tile_take() says so */
static const uint32_t kOne = 0x3F800000, kMinusOne = 0xBF800000;

/* What is under way. Without l it is only counted. */
struct emit {
  struct ct_lower *l;
  const struct ct_tile_plan *p;
  struct ct_tile_run *run;
  bool rows;     /* ct_tile_rows(): row 0 of registers */
  uint32_t busy; /* registers in between that hold something */
  unsigned most, commands;
  unsigned home[CT_TILE_VALUES]; /* of a value: which of them, + 1 */
  bool in_reg;                   /* the product has been copied to a register */
  struct ct_ref out;             /* of a chain */
};

/* ---- Registers ---- */

static unsigned take(struct emit *e) {
  unsigned t = 0;
  while (t < NO_TEMP && (e->busy >> t & 1))
    ++t;
  e->busy |= UINT32_C(1) << t;
  if (t + 1 > e->most) e->most = t + 1;
  return t;
}

static void drop(struct emit *e, unsigned t) {
  e->busy &= ~(UINT32_C(1) << t);
}

static struct ct_ref temp(const struct emit *e, unsigned t) {
  return e->l ? ct_tile_of(e->l, e->run->regs->temp, t, 0) : (struct ct_ref){.space = 0};
}

static struct ct_ref next_out(struct emit *e) {
  return e->l ? ct_next_n(e->l, e->run->regs->out, e->run->more + 1) : (struct ct_ref){.space = 0};
}

/* ---- Commands ---- */

static void va(struct emit *e, struct ct_va c) {
  ++e->commands;
  if (!e->l) return;
  c.rows = e->rows ? 1 : e->run->rows;
  c.rows_reg = e->rows ? 0 : e->run->rows_reg;
  c.cols = e->run->cols;
  c.more = e->rows ? 0 : e->run->more;
  ct_va(e->l, &c);
}

/* Of row 0 alone, among commands for a tile. */
static void va_row(struct emit *e, struct ct_va c) {
  const bool rows = e->rows;
  e->rows = true;
  va(e, c);
  e->rows = rows;
}

/* ---- Operands ---- */

/* Row 0 stands for all rows. */
static bool spread(const struct emit *e, unsigned v) {
  return !e->rows && e->p->row[v];
}

static bool in_acc(const struct emit *e, unsigned v) {
  return e->p->product && v == 0 && !e->in_reg;
}

/* Row 0 to all rows: times 1, for a sum would make a -0 +0. */
static void spread_rows(struct emit *e, struct ct_ref to, struct ct_ref row) {
  va(e, (struct ct_va){.to = to, .c = CT_VA_SCALAR, .sc = kOne});
  va(e, (struct ct_va){.to = to, .a = to, .q = row, .b = CT_VA_ROW0});
}

/* A copy in a register of its own, all rows of it. */
static unsigned copy(struct emit *e, unsigned v) {
  const unsigned t = take(e);
  if (spread(e, v))
    spread_rows(e, temp(e, t), e->run->value[v]);
  else
    va(e, (struct ct_va){.to = temp(e, t), .a = e->run->value[v]});
  return t;
}

/* What an operation has taken for its own time. */
struct hold {
  unsigned t[4], n;
};

static struct ct_ref hold(struct emit *e, struct hold *h, unsigned t) {
  h->t[h->n++] = t;
  return temp(e, t);
}

/* Operand a: a register or ACC tile with all rows. */
static struct ct_ref operand(struct emit *e, struct hold *h, unsigned v) {
  return spread(e, v) ? hold(e, h, copy(e, v)) : e->run->value[v];
}

/* A register with all rows. */
static struct ct_ref in_register(struct emit *e, struct hold *h, unsigned v) {
  if (in_acc(e, v)) {
    const unsigned t = copy(e, v);
    e->in_reg = true;
    e->run->value[v] = temp(e, t);
    e->home[v] = t + 1;
  }
  return operand(e, h, v);
}

/* Operand b or c, as its source. */
static unsigned tq(struct emit *e, struct ct_va *c, struct hold *h, unsigned v) {
  c->q = spread(e, v) ? e->run->value[v] : in_register(e, h, v);
  return spread(e, v) ? CT_VA_ROW0 : CT_VA_TILE;
}

/* ---- Operations of one command ---- */

static void add_scalar(struct ct_va *c, float t, unsigned reg, unsigned fn) {
  c->c = CT_VA_SCALAR;
  c->fn = fn;
  c->sc = reg ? 0 : ct_vk_bits(t);
  c->sc_reg = reg;
}

static void scale(struct ct_va *c, const struct ct_tile_op *op) {
  if (op->s_reg || op->s != 1) {
    c->b = CT_VA_SCALAR;
    c->sb = op->s_reg ? 0 : ct_vk_bits(op->s);
    c->sb_reg = op->s_reg;
  }
  if (op->t_reg || op->t != 0) add_scalar(c, op->t, op->t_reg, CT_VA_ADD);
}

static unsigned fn_of(enum ct_tile_fn fn) {
  switch (fn) {
    case CT_TILE_MAX:
    case CT_TILE_MAX_S:
      return CT_VA_MAX;
    case CT_TILE_MIN:
    case CT_TILE_MIN_S:
      return CT_VA_MIN;
    case CT_TILE_SELECT:
    case CT_TILE_SELECT_S:
      return CT_VA_SELECT;
    case CT_TILE_EQUAL:
      return CT_VA_EQUAL;
    default:
      return CT_VA_ADD;
  }
}

/* The number is what OP compares with, where two_operands() has a tile. */
static bool by_number(enum ct_tile_fn fn) {
  return fn == CT_TILE_MAX_S || fn == CT_TILE_MIN_S || fn == CT_TILE_SELECT_S;
}

/* a * (1 / b) */
static void divide(struct emit *e, struct ct_va *c, struct hold *h, const struct ct_tile_op *op) {
  const unsigned t = take(e);
  const struct ct_va recip = {.to = temp(e, t), .a = e->run->value[op->b], .func = CT_VA_RECIP};
  if (spread(e, op->b))
    va_row(e, recip);
  else
    va(e, recip);
  if (spread(e, op->a)) {
    c->a = hold(e, h, t);
    c->b = tq(e, c, h, op->a);
  } else {
    c->a = e->run->value[op->a];
    c->q = hold(e, h, t);
    c->b = spread(e, op->b) ? CT_VA_ROW0 : CT_VA_TILE;
  }
}

/* Operand a has to have all rows, b not to be in ACC: the places they take. */
static bool places_change(const struct emit *e, const struct ct_tile_op *op) {
  return (spread(e, op->a) && !spread(e, op->b)) || (in_acc(e, op->b) && !in_acc(e, op->a));
}

static void two_operands(struct emit *e, struct ct_va *c, struct hold *h,
                         const struct ct_tile_op *op) {
  const bool changed =
      places_change(e, op) && (ct_tile_kind(op->fn)->swaps || op->fn == CT_TILE_SUB);
  const unsigned a = changed ? op->b : op->a, b = changed ? op->a : op->b;
  const unsigned source = tq(e, c, h, b);
  c->a = operand(e, h, a);
  if (op->fn == CT_TILE_MUL) {
    c->b = source;
    return;
  }
  c->c = source;
  c->fn = fn_of(op->fn);
  if (op->fn == CT_TILE_SUB && changed) { /* (b * -1) + a: the same bits */
    c->b = CT_VA_SCALAR;
    c->sb = kMinusOne;
  } else {
    c->neg_c = op->fn == CT_TILE_SUB;
  }
}

static void one_command(struct emit *e, struct ct_va *c, struct hold *h,
                        const struct ct_tile_op *op) {
  if (op->fn == CT_TILE_DIV) {
    divide(e, c, h, op);
    return;
  }
  if (ct_tile_kind(op->fn)->operands == 2) {
    two_operands(e, c, h, op);
    return;
  }
  c->a = operand(e, h, op->a);
  c->func = ct_tile_kind(op->fn)->func;
  c->relu = op->fn == CT_TILE_RELU;
  if (op->fn == CT_TILE_AXPB) scale(c, op);
  if (by_number(op->fn)) add_scalar(c, op->s, op->s_reg, fn_of(op->fn));
}

/* ---- Operations that the command of the one before does, too ---- */

/* The next operation of this stage. */
static unsigned next_op(const struct emit *e, unsigned i) {
  const struct ct_tilewise *k = e->p->k;
  for (++i; i < k->ops; ++i)
    if (e->p->counts[k->ins + i] && e->p->row[k->ins + i] == e->rows) break;
  return i;
}

static bool used_once(const struct emit *e, unsigned v) {
  return e->p->uses[v] == 1 && !e->p->stored[v] && !(e->rows && e->p->keep[v]);
}

/* x + b and the like, of x = a or a * scalar. */
static bool join_tile(struct emit *e, struct ct_va *c, struct hold *h, const struct ct_tile_op *op,
                      unsigned value) {
  const unsigned other = op->a == value ? op->b : op->a;
  if (c->b == CT_VA_TILE || c->b == CT_VA_ROW0 || in_acc(e, other)) return false;
  if (op->a != value && !ct_tile_kind(op->fn)->swaps) return false;
  c->c = tq(e, c, h, other);
  c->fn = fn_of(op->fn);
  c->neg_c = op->fn == CT_TILE_SUB;
  return true;
}

static bool join(struct emit *e, struct ct_va *c, struct hold *h, const struct ct_tile_op *op,
                 unsigned value) {
  const struct ct_tile_kind *kind = ct_tile_kind(op->fn);
  if (c->func || kind->sequence || op->fn == CT_TILE_DIV || op->fn == CT_TILE_MUL) return false;
  if (op->fn == CT_TILE_RELU) return c->relu = true;
  if (kind->func) {
    c->func = kind->func;
    return true;
  }
  if (c->c != CT_VA_NONE || c->relu) return false;
  if (op->fn == CT_TILE_AXPB) {
    if (op->s_reg || op->s != 1) return false;
    scale(c, op);
    return true;
  }
  if (by_number(op->fn)) {
    add_scalar(c, op->s, op->s_reg, fn_of(op->fn));
    return true;
  }
  return op->a != op->b && join_tile(e, c, h, op, value);
}

/* ---- A value ---- */

/* Gives back the registers of operands that nobody needs any more. */
static void release(struct emit *e, unsigned i) {
  const struct ct_tile_op *op = &e->p->k->op[i];
  for (unsigned x = 0; x < ct_tile_kind(op->fn)->operands; ++x) {
    const unsigned v = x ? op->b : op->a;
    if (e->home[v] == 0 || e->p->last[v] > i + 1 || (e->rows && e->p->keep[v]) || e->p->stored[v])
      continue;
    drop(e, e->home[v] - 1);
    e->home[v] = 0;
  }
}

/* Where a value goes. */
static struct ct_ref place(struct emit *e, unsigned v) {
  if (!e->rows && e->p->chain) return e->run->value[v] = e->out;
  if (!e->rows && e->p->stored[v]) return e->run->value[v] = next_out(e);
  const unsigned t = take(e);
  e->home[v] = t + 1;
  return e->run->value[v] = temp(e, t);
}

static void drop_all(struct emit *e, struct hold *h) {
  while (h->n)
    drop(e, h->t[--h->n]);
}

static void sequence(struct emit *e, unsigned i) {
  const struct ct_tile_op *op = &e->p->k->op[i];
  const struct ct_tile_kind *kind = ct_tile_kind(op->fn);
  struct hold h = {.n = 0};
  struct ct_ref scratch[3] = {{.space = 0}};
  struct ct_sequence s = {.rows = e->rows ? 1 : e->run->rows,
                          .rows_reg = e->rows ? 0 : e->run->rows_reg,
                          .cols = e->run->cols,
                          .more = e->rows ? 0 : e->run->more};
  s.x = kind->scratch ? in_register(e, &h, op->a) : operand(e, &h, op->a);
  if (kind->operands == 2) s.g = operand(e, &h, op->b);
  unsigned own[3];
  for (unsigned t = 0; t < kind->scratch; ++t) {
    own[t] = take(e);
    scratch[t] = temp(e, own[t]);
  }
  s.t = scratch[0];
  s.u = scratch[1];
  s.v = scratch[2];
  release(e, i);
  drop_all(e, &h);
  for (unsigned t = 0; t < kind->scratch; ++t)
    drop(e, own[t]);
  s.y = place(e, e->p->k->ins + i);
  if (e->l) kind->sequence(e->l, &s);
  e->commands += kind->commands;
}

/* Operation i and those that join it; returns the last of them. */
static unsigned operation(struct emit *e, unsigned i) {
  const struct ct_tilewise *k = e->p->k;
  struct ct_va c = {.b = CT_VA_NONE};
  struct hold h = {.n = 0};
  unsigned done[CT_TILE_OPS], n = 0;
  if (ct_tile_kind(k->op[i].fn)->sequence) {
    sequence(e, i);
    return i;
  }
  one_command(e, &c, &h, &k->op[i]);
  done[n++] = i;
  for (unsigned next = next_op(e, i); next < k->ops; next = next_op(e, i)) {
    const unsigned v = k->ins + i;
    const bool takes =
        k->op[next].a == v || (ct_tile_kind(k->op[next].fn)->operands == 2 && k->op[next].b == v);
    if (!takes || !used_once(e, v) || !join(e, &c, &h, &k->op[next], v)) break;
    i = next;
    done[n++] = i;
  }
  for (unsigned d = 0; d < n; ++d)
    release(e, done[d]);
  /* A row that is given back here must not be written by the command that spreads it. */
  if (c.b != CT_VA_ROW0) drop_all(e, &h);
  c.to = place(e, k->ins + i);
  drop_all(e, &h);
  va(e, c);
  return i;
}

static void operations(struct emit *e) {
  const struct ct_tilewise *k = e->p->k;
  for (unsigned i = 0; i < k->ops; ++i)
    if (e->p->counts[k->ins + i] && e->p->row[k->ins + i] == e->rows) i = operation(e, i);
}

/* ---- Spreading over lanes ---- */

/* Lane 0 to all lanes: the others are zeros, so sums are it (+0 of -0). Two registers take turns.
 */
static void spread_lanes(struct emit *e, unsigned v) {
  struct ct_ref from = e->run->value[v];
  unsigned t[2] = {take(e), take(e)};
  for (unsigned i = 0; i < 4; ++i) {
    const struct ct_ref to = temp(e, t[i & 1]);
    va(e, (struct ct_va){.to = to, .a = from, .q = from, .c = CT_VA_TILE, .lane_xor = 1u << i});
    from = to;
  }
  drop(e, t[0]);
  e->home[v] = t[1] + 1;
  e->run->value[v] = from;
}

static void spread_all(struct emit *e, const unsigned *inputs, unsigned n, enum ct_spread how) {
  for (unsigned i = 0; i < n; ++i)
    if (e->p->k->in[inputs[i]].spread == how) spread_lanes(e, inputs[i]);
}

/* ---- Both stages ---- */

static void make_rows(struct emit *e) {
  e->rows = true;
  spread_all(e, e->p->row_load, e->p->row_loads, CT_SPREAD_ALL);
  operations(e);
}

/* Inputs and rows that are stored as they are. */
static void copy_stored(struct emit *e) {
  const struct ct_tile_plan *p = e->p;
  for (unsigned i = 0; i < p->stores; ++i) {
    const unsigned v = p->store[i];
    const struct ct_ref from = e->run->value[v];
    e->run->stored[i] = from;
    if (v >= p->k->ins && !p->row[v]) continue;
    e->run->stored[i] = next_out(e);
    if (spread(e, v))
      spread_rows(e, e->run->stored[i], from);
    else
      va(e, (struct ct_va){.to = e->run->stored[i], .a = from});
  }
}

static void make_tile(struct emit *e) {
  const unsigned v = e->p->store[0];
  spread_all(e, e->p->load, e->p->loads, CT_SPREAD_COLS);
  if (e->p->chain && v >= e->p->k->ins) e->out = next_out(e);
  operations(e);
  copy_stored(e);
}

void ct_tile_rows(struct ct_lower *l, struct ct_tile_run *run) {
  struct emit e = {.l = l, .p = run->plan, .run = run};
  make_rows(&e);
}

void ct_tile_emit(struct ct_lower *l, struct ct_tile_run *run) {
  struct emit e = {.l = l, .p = run->plan, .run = run, .busy = run->plan->busy};
  if (run->more && !run->plan->chain) {
    ct_lower_fail(l, CT_ERR_INTERNAL, "a tile program that is no chain, for %u tiles",
                  run->more + 1);
    return;
  }
  make_tile(&e);
}

void ct_tile_count(struct ct_tile_plan *plan) {
  struct ct_tile_run run = {.k = plan->k, .plan = plan};
  struct emit e = {.p = plan, .run = &run};
  make_rows(&e);
  plan->busy = e.busy;
  memset(e.home, 0, sizeof e.home);
  e.rows = false;
  e.commands = 0;
  make_tile(&e);
  plan->commands = e.commands;
  plan->temps = e.most;
}
