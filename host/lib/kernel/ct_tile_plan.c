/* SPDX-License-Identifier: Apache-2.0 */
/* What a tile program takes. See ct_tile.h. */
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_tile_impl.h"

/* ---- Operations ---- */

static const struct ct_tile_kind kinds[CT_TILE_FNS] = {
    [CT_TILE_ADD] = {.operands = 2, .swaps = true, .in_place = true},
    [CT_TILE_SUB] = {.operands = 2, .in_place = true},
    [CT_TILE_MUL] = {.operands = 2, .swaps = true, .in_place = true},
    [CT_TILE_DIV] = {.operands = 2},
    [CT_TILE_MAX] = {.operands = 2, .swaps = true, .in_place = true},
    [CT_TILE_MIN] = {.operands = 2, .swaps = true, .in_place = true},
    [CT_TILE_SELECT] = {.operands = 2},
    [CT_TILE_EQUAL] = {.operands = 2, .swaps = true, .in_place = true},
    [CT_TILE_AXPB] = {.operands = 1, .in_place = true},
    [CT_TILE_RELU] = {.operands = 1, .in_place = true},
    [CT_TILE_MAX_S] = {.operands = 1, .in_place = true},
    [CT_TILE_MIN_S] = {.operands = 1, .in_place = true},
    [CT_TILE_SELECT_S] = {.operands = 1, .in_place = true},
    [CT_TILE_EXP] = {.operands = 1, .in_place = true, .func = CT_VA_EXP},
    [CT_TILE_LOG] = {.operands = 1, .in_place = true, .func = CT_VA_LOG},
    [CT_TILE_RECIP] = {.operands = 1, .in_place = true, .func = CT_VA_RECIP},
    [CT_TILE_RSQRT] = {.operands = 1, .in_place = true, .func = CT_VA_RSQRT},
    [CT_TILE_SQRT] = {.operands = 1, .in_place = true, .sequence = ct_lower_root, .commands = 2},
    [CT_TILE_SIGMOID] = {.operands = 1,
                         .in_place = true,
                         .sequence = ct_lower_sigmoid,
                         .commands = 2},
    [CT_TILE_TANH] = {.operands = 1, .in_place = true, .sequence = ct_lower_tanh, .commands = 3},
    [CT_TILE_ERF] = {.operands = 1, .scratch = 3, .sequence = ct_lower_erf, .commands = 13},
    [CT_TILE_GELU] = {.operands = 1, .scratch = 3, .sequence = ct_lower_gelu, .commands = 13},
    [CT_TILE_SIGMOID_BACK] = {.operands = 2,
                              .scratch = 1,
                              .sequence = ct_lower_sigmoid_back,
                              .commands = 3},
    [CT_TILE_TANH_BACK] = {.operands = 2,
                           .scratch = 1,
                           .sequence = ct_lower_tanh_back,
                           .commands = 3},
};

const struct ct_tile_kind *ct_tile_kind(enum ct_tile_fn fn) {
  return &kinds[fn];
}

static unsigned operands(const struct ct_tile_op *op) {
  return kinds[op->fn].operands;
}

/* ---- Whether it is right ---- */

static int check_op(const struct ct_tilewise *k, unsigned i, unsigned args,
                    const struct ct_why *why) {
  const struct ct_tile_op *op = &k->op[i];
  if ((unsigned)op->fn >= CT_TILE_FNS)
    return ct_why(why, CT_ERR_ARG, "operation %u of a tile program is none: %u", i,
                  (unsigned)op->fn);
  const unsigned values = k->ins + i;
  const unsigned most = operands(op) == 2 && op->b > op->a ? op->b : op->a;
  if (most >= values)
    return ct_why(why, CT_ERR_ARG,
                  "operation %u of a tile program takes value %u, in front of it are %u", i, most,
                  values);
  if (op->s_reg > args || op->t_reg > args)
    return ct_why(why, CT_ERR_ARG,
                  "operation %u of a tile program takes a number from argument %u, there are %u", i,
                  op->s_reg > args ? op->s_reg : op->t_reg, args);
  return CT_OK;
}

static int check(const struct ct_tilewise *k, bool product, unsigned args,
                 const struct ct_why *why) {
  if (k->ins > CT_TILE_INS || k->ops > CT_TILE_OPS || k->outs > CT_TILE_OUTS || k->outs == 0 ||
      (product && k->ins == 0))
    return ct_why(
        why, CT_ERR_ARG,
        "a tile program of %u inputs, %u operations and %u outputs: %d, %d and 1 to %d are "
        "possible",
        k->ins, k->ops, k->outs, CT_TILE_INS, CT_TILE_OPS, CT_TILE_OUTS);
  for (unsigned i = 0; i < k->ops; ++i) {
    const int err = check_op(k, i, args, why);
    if (err) return err;
  }
  for (unsigned i = 0; i < k->outs; ++i)
    if (k->out[i].value >= k->ins + k->ops)
      return ct_why(why, CT_ERR_ARG, "output %u of a tile program is value %u of %u", i,
                    k->out[i].value, k->ins + k->ops);
  return CT_OK;
}

/* ---- Who uses what ---- */

static bool is_input(const struct ct_tile_plan *p, unsigned v) {
  return v < p->k->ins && !(p->product && v == 0);
}

static void find_rows(struct ct_tile_plan *p) {
  const struct ct_tilewise *k = p->k;
  for (unsigned v = 0; v < k->ins; ++v)
    p->row[v] =
        is_input(p, v) && (k->in[v].spread == CT_SPREAD_ROWS || k->in[v].spread == CT_SPREAD_ALL);
  for (unsigned i = 0; i < k->ops; ++i) {
    const struct ct_tile_op *op = &k->op[i];
    p->row[k->ins + i] = p->row[op->a] && (operands(op) == 1 || p->row[op->b]);
  }
}

static void use(struct ct_tile_plan *p, unsigned v, unsigned by) {
  p->counts[v] = true;
  ++p->uses[v];
  if (p->last[v] == 0) p->last[v] = by + 1; /* operations are gone through backwards */
  p->keep[v] |= p->row[v] && !p->row[p->k->ins + by];
}

static void find_uses(struct ct_tile_plan *p) {
  const struct ct_tilewise *k = p->k;
  for (unsigned i = 0; i < k->outs; ++i) {
    const unsigned v = k->out[i].value;
    p->counts[v] = p->stored[v] = true;
  }
  for (unsigned i = k->ops; i-- > 0;) {
    if (!p->counts[k->ins + i]) continue;
    use(p, k->op[i].a, i);
    if (operands(&k->op[i]) == 2) use(p, k->op[i].b, i);
  }
}

/* The last operation that uses a value, + 1; of a row that is used for every tile, of these. */
static unsigned last_use(const struct ct_tile_plan *p, unsigned v) {
  const struct ct_tilewise *k = p->k;
  unsigned i = p->last[v];
  for (; i > 0 && p->keep[v]; --i) {
    const struct ct_tile_op *op = &k->op[i - 1];
    const bool uses = op->a == v || (operands(op) == 2 && op->b == v);
    if (uses && p->counts[k->ins + i - 1] && !p->row[k->ins + i - 1]) break;
  }
  return i;
}

/* When an input has been used for the last time, as a number that grows: what is spread over lanes
 * at once, what is used for every tile behind what is not, what is stored as it is at the end. The
 * slots of rings are freed in that order. */
static unsigned end_of(const struct ct_tile_plan *p, unsigned v) {
  enum { STAGE = 2 * CT_TILE_OPS + 2 };
  const struct ct_tilewise *k = p->k;
  if (k->in[v].spread == CT_SPREAD_COLS || k->in[v].spread == CT_SPREAD_ALL) return 0;
  if (p->stored[v]) return 2 * STAGE + v;
  const unsigned last = last_use(p, v);
  if (last == 0) return 0;
  /* Of two operands a division is through with b first, a sequence with a. */
  const struct ct_tile_op *op = &k->op[last - 1];
  const bool second = op->fn == CT_TILE_DIV ? op->a == v : op->a != v;
  return (p->keep[v] ? STAGE : 0) + 2 * last + (second ? 1 : 0);
}

static void put_in_order(const struct ct_tile_plan *p, unsigned *list, unsigned *n, unsigned v) {
  unsigned at = (*n)++;
  for (; at > 0 && end_of(p, list[at - 1]) > end_of(p, v); --at)
    list[at] = list[at - 1];
  list[at] = v;
}

static void find_loads(struct ct_tile_plan *p) {
  for (unsigned v = 0; v < p->k->ins; ++v) {
    if (!is_input(p, v) || !p->counts[v]) continue;
    if (p->row[v])
      put_in_order(p, p->row_load, &p->row_loads, v);
    else
      put_in_order(p, p->load, &p->loads, v);
  }
}

static void find_stores(struct ct_tile_plan *p) {
  const struct ct_tilewise *k = p->k;
  for (unsigned v = k->ins; v < k->ins + k->ops; ++v)
    if (p->stored[v] && !p->row[v]) p->store[p->stores++] = v;
  for (unsigned v = 0; v < k->ins + k->ops; ++v)
    if (p->stored[v] && (v < k->ins || p->row[v])) p->store[p->stores++] = v;
}

/* The operand that is not the same for all rows, if one is; else a value that there is not. */
static unsigned tile_operand(const struct ct_tile_plan *p, const struct ct_tile_op *op) {
  if (operands(op) == 1 || p->row[op->b]) return op->a;
  return p->row[op->a] ? op->b : CT_TILE_VALUES;
}

static bool is_chain(const struct ct_tile_plan *p) {
  const struct ct_tilewise *k = p->k;
  const bool acc = p->product && p->counts[0];
  if (p->stores != 1 || p->row[p->store[0]] || p->loads + (acc ? 1 : 0) != 1) return false;
  unsigned value = acc ? 0 : p->load[0];
  if (!acc && k->in[value].spread == CT_SPREAD_COLS) return false;
  for (unsigned i = 0; i < k->ops; ++i) {
    const unsigned v = k->ins + i;
    if (!p->counts[v] || p->row[v]) continue;
    if (!kinds[k->op[i].fn].in_place || tile_operand(p, &k->op[i]) != value || p->uses[value] != 1)
      return false;
    value = v;
  }
  return value == p->store[0];
}

int ct_tile_plan(struct ct_tile_plan *plan, const struct ct_tilewise *k, bool product,
                 unsigned args, const struct ct_why *why) {
  const int err = check(k, product, args, why);
  if (err) return err;
  *plan = (struct ct_tile_plan){.k = k, .product = product};
  find_rows(plan);
  find_uses(plan);
  find_loads(plan);
  find_stores(plan);
  plan->chain = is_chain(plan);
  ct_tile_count(plan);
  return CT_OK;
}

/* ---- Registers ---- */

void ct_tile_take(struct ct_lower *l, const struct ct_tile_plan *plan, unsigned first,
                  uint32_t more, unsigned sets, struct ct_tile_regs *regs) {
  const unsigned temps = plan->temps ? plan->temps : 1;
  const unsigned out = plan->stores * (more + 1);
  const unsigned in = plan->loads * (more + 1);
  const unsigned least = first + temps + plan->row_loads + in + out;
  unsigned left = CT_TILE_REGS - least, loads = in, outs = out;
  if (least > CT_TILE_REGS) {
    ct_lower_fail(l, CT_ERR_NO_SPACE,
                  "a tile program takes %u tile registers (%u inputs, %u outputs, %u in between), "
                  "there are %u: cut it in two",
                  least - first, in + plan->row_loads, out, temps, CT_TILE_REGS - first);
    return;
  }
  if (sets > 1 && loads <= left) {
    left -= loads;
    loads *= 2;
  }
  if (sets > 1 && outs <= left) outs *= 2;
  *regs = (struct ct_tile_regs){.first_temp = first};
  regs->temp = ct_reg_tensor(l, "in between", first, temps);
  first += temps;
  if (loads) regs->load = ct_reg_ring(l, "loads", first, loads);
  first += loads;
  if (plan->row_loads) regs->row_load = ct_reg_ring(l, "rows", first, plan->row_loads);
  first += plan->row_loads;
  regs->out = ct_reg_ring(l, "results", first, outs);
  regs->end = first + outs;
}
