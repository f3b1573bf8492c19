/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element by element: how operations are put together to tile programs.
 *
 * A node joins the step that made one of its inputs, if all others are there before that step
 * begins. So an activation, a residual sum, a normalisation become part of the product in front of
 * them, and what is in between needs no place in memory.
 */

#include "ct_compile_impl.h"

/* What a step may have that others have joined: registers are few. */
enum { MOST_INS = 4, MOST_OPS = 12, MOST_MADE = CT_TILE_OUTS - 1 };

/* Results that others may still read: those of which not all readers have joined. */
static unsigned made(const struct ct_compiler *c, const struct ct_net_step *s) {
  unsigned count = 0;
  for (unsigned i = 0; i < s->tile.ops; ++i) {
    const struct ct_val *v = s->of[i] == CT_NO_VALUE ? NULL : &c->value[s->of[i]];
    count += v && (v->readers == 0 || v->readers > v->inside);
  }
  return count;
}

static bool tiles_of(enum ct_step_kind kind) {
  return kind == CT_STEP_TILES || kind == CT_STEP_CONV || kind == CT_STEP_CONV_INPUT;
}

/* Whether a value is there before step `at` begins. */
static bool before(const struct ct_compiler *c, const struct ct_val *v, int at) {
  return v->step == CT_FROM_START || c->step[v->step].early || v->step < at;
}

/* Whether a step makes the value as an operand of its tile program. */
static bool of_step(const struct ct_val *v, int at) {
  return v->step == at && !v->apart;
}

static int join(const struct ct_compiler *c, const int *vals, unsigned count, unsigned more) {
  int at = CT_FROM_START;
  for (unsigned i = 0; i < count; ++i) {
    const struct ct_val *v = &c->value[vals[i]];
    if (v->step > at && !v->apart && !c->step[v->step].early) at = v->step;
  }
  if (at == CT_FROM_START) return at;
  const struct ct_net_step *s = &c->step[at];
  bool fits = tiles_of(s->kind) && s->tile.ops + more <= MOST_OPS && made(c, s) < MOST_MADE &&
              s->tile.ins + count - 1 <= MOST_INS;
  bool own = false;
  for (unsigned i = 0; i < count; ++i) {
    const struct ct_val *v = &c->value[vals[i]];
    fits = fits && (of_step(v, at) || before(c, v, at));
    own = own || (of_step(v, at) && v->rows == s->tile.rows && v->cols == s->tile.cols);
  }
  return fits && own ? at : CT_FROM_START;
}

struct ct_tiles ct_tiles_apart(struct ct_compiler *c, const struct ct_gnode *n, uint32_t rows,
                               uint32_t cols, bool early) {
  struct ct_net_step *s = ct_step_add(c, CT_STEP_TILES, n);
  s->tile.rows = rows;
  s->tile.cols = cols;
  s->early = early;
  return (struct ct_tiles){c, (int)c->steps - 1};
}

bool ct_values_last(const struct ct_compiler *c, const int *vals, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const struct ct_val *v = &c->value[vals[i]];
    if (v->step == CT_FROM_START ? v->place != CT_VALUE_LASTING : !c->step[v->step].early)
      return false;
  }
  return true;
}

struct ct_tiles ct_tiles_for(struct ct_compiler *c, const struct ct_gnode *n, const int *vals,
                             unsigned count, unsigned more) {
  uint32_t rows = 1, cols = 1;
  if (c->error) return (struct ct_tiles){c, CT_FROM_START};
  for (unsigned i = 0; i < count; ++i) {
    if (c->value[vals[i]].rows > rows) rows = c->value[vals[i]].rows;
    if (c->value[vals[i]].cols > cols) cols = c->value[vals[i]].cols;
  }
  const int at = join(c, vals, count, more);
  if (at != CT_FROM_START && c->step[at].tile.rows == rows && c->step[at].tile.cols == cols) {
    for (unsigned i = 0; i < count; ++i)
      c->value[vals[i]].inside += of_step(&c->value[vals[i]], at);
    return (struct ct_tiles){c, at};
  }
  return ct_tiles_apart(c, n, rows, cols, ct_values_last(c, vals, count));
}

static struct ct_net_step *step_of(const struct ct_tiles *t) {
  return &t->c->step[t->step];
}

unsigned ct_tiles_in(struct ct_tiles *t, int value) {
  if (t->c->error) return 0;
  struct ct_net_step *s = step_of(t);
  const struct ct_val *v = &t->c->value[value];
  if (of_step(v, t->step)) return v->part;
  for (unsigned i = 0; i < s->tile.ins; ++i)
    if (s->in[i] == value) return i;
  if (s->tile.ins == CT_TILE_INS) {
    ct_compile_fail(t->c, CT_ERR_INTERNAL, "a tile program of too many inputs");
    return 0;
  }
  struct ct_tile_in *in = &s->tile.in[s->tile.ins];
  const bool down = v->rows == 1 && s->tile.rows > 1, across = v->cols == 1 && s->tile.cols > 1;
  in->spread = down && across ? CT_SPREAD_ALL
               : down         ? CT_SPREAD_ROWS
               : across       ? CT_SPREAD_COLS
                              : CT_SPREAD_NONE;
  s->in[s->tile.ins] = value;
  return s->tile.ins++;
}

static unsigned add(struct ct_tiles *t, const struct ct_tile_op *op) {
  if (t->c->error) return 0;
  struct ct_net_step *s = step_of(t);
  if (s->tile.ops == CT_TILE_OPS) {
    ct_compile_fail(t->c, CT_ERR_INTERNAL, "a tile program of too many operations");
    return 0;
  }
  s->tile.op[s->tile.ops] = *op;
  return CT_OPERAND_OP + s->tile.ops++;
}

unsigned ct_tiles_op(struct ct_tiles *t, enum ct_tile_fn fn, unsigned a, unsigned b) {
  return add(t, &(struct ct_tile_op){.fn = fn, .a = a, .b = b});
}
unsigned ct_tiles_axpb(struct ct_tiles *t, unsigned a, float s, float plus) {
  return add(t, &(struct ct_tile_op){.fn = CT_TILE_AXPB, .a = a, .s = s, .t = plus});
}
unsigned ct_tiles_op_s(struct ct_tiles *t, enum ct_tile_fn fn, unsigned a, float s) {
  return add(t, &(struct ct_tile_op){.fn = fn, .a = a, .s = s});
}
unsigned ct_tiles_times(struct ct_tiles *t, unsigned a, unsigned reg) {
  return add(t, &(struct ct_tile_op){.fn = CT_TILE_AXPB, .a = a, .s_reg = reg});
}
unsigned ct_tiles_scaled(struct ct_tiles *t, unsigned a, struct ct_number by) {
  return add(t, &(struct ct_tile_op){.fn = CT_TILE_AXPB, .a = a, .s = by.value, .s_reg = by.reg});
}
unsigned ct_tiles_plus(struct ct_tiles *t, unsigned a, struct ct_number more) {
  return add(t, &(struct ct_tile_op){
                    .fn = CT_TILE_AXPB, .a = a, .s = 1, .t = more.value, .t_reg = more.reg});
}
unsigned ct_tiles_if(struct ct_tiles *t, unsigned a, unsigned reg) {
  return add(t, &(struct ct_tile_op){.fn = CT_TILE_SELECT_S, .a = a, .s_reg = reg});
}

int ct_tiles_make(struct ct_tiles *t, unsigned operand, int value) {
  if (t->c->error) return 0;
  struct ct_net_step *s = step_of(t);
  if (operand < CT_OPERAND_OP || s->of[operand - CT_OPERAND_OP] != CT_NO_VALUE)
    operand = ct_tiles_axpb(t, operand, 1, 0);
  if (t->c->error) return 0;
  if (value == CT_NO_VALUE) value = ct_value_new(t->c, s->tile.rows, s->tile.cols);
  if (t->c->error) return 0;
  s = step_of(t);
  s->of[operand - CT_OPERAND_OP] = value;
  t->c->value[value].step = t->step;
  t->c->value[value].part = operand;
  return value;
}
