/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of gates, a bit a number.
 *
 * The gradient of a ReLU asks of its result only where it is above 0. Where that is kept compressed
 * within a bound, numbers below the bound would not be. So a step behind the one that makes it
 * makes a mask of it, 1 where it is above 0, else 0, and gates read that: it is kept compressed,
 * too, but exactly. What nothing but gates reads for gradients needs not be kept then.
 *
 * Where the result itself is kept, what becomes 0 was above 0, so gates err to one side. Made again
 * of something else that is kept, such as what a normalisation reads, it errs to both sides: masks
 * of that are made only if one asks for them.
 */
#include "ct_compile_impl.h"

static bool takes_two(enum ct_tile_fn fn) {
  return fn <= CT_TILE_EQUAL || fn == CT_TILE_SIGMOID_BACK || fn == CT_TILE_TANH_BACK;
}

/* How a tile program reads an input. */
struct reading {
  bool gates, otherwise;
};

static struct reading reading_of(const struct ct_net_step *s, unsigned in) {
  struct reading r = {false, false};
  for (unsigned i = 0; i < s->tile.ops; ++i) {
    const struct ct_tile_op *op = &s->tile.op[i];
    const bool gate = op->fn == CT_TILE_SELECT && op->b == in;
    r.gates = r.gates || gate;
    r.otherwise = r.otherwise || op->a == in || (takes_two(op->fn) && op->b == in && !gate);
  }
  return r;
}

/* Behind a product its sum is an input, too. */
static bool has_place(const struct ct_net_step *s) {
  return s->tile.ins + (s->kind != CT_STEP_TILES) < CT_TILE_INS;
}

/* The input of a step for gradients that gates by the value, if it has place for one more where it
 * reads it otherwise, too; or CT_TILE_INS. */
static unsigned gated_by(const struct ct_net_step *s, int value, struct reading *r) {
  for (unsigned i = 0; ct_step_is_back(s) && i < s->tile.ins; ++i) {
    *r = reading_of(s, i);
    if (s->in[i] == value && s->tile.in[i].spread == CT_SPREAD_NONE && r->gates &&
        (!r->otherwise || has_place(s)))
      return i;
  }
  return CT_TILE_INS;
}

static bool has_gates(const struct ct_compiler *c, int value) {
  struct reading r;
  for (size_t i = 0; i < c->steps; ++i)
    if (gated_by(&c->step[i], value, &r) < CT_TILE_INS) return true;
  return false;
}

/* 1 where a number is above 0, be it infinite, else 0, be it none. */
static int make_mask(struct ct_compiler *c, int value) {
  const struct ct_val v = c->value[value];
  const struct ct_net_step made = c->step[v.step];
  struct ct_tiles t = ct_tiles_apart(c, made.node, v.rows, v.cols, false);
  const int mask = ct_value_like(c, value);
  const unsigned x = ct_tiles_in(&t, value), one = ct_tiles_op(&t, CT_TILE_EQUAL, x, x);
  ct_tiles_make(&t, ct_tiles_op(&t, CT_TILE_SELECT, one, x), mask);
  if (c->error) return 0;
  c->step[t.step].order = made.order;
  c->step[t.step].runs = 1;
  c->value[mask].whole = 1;
  c->value[mask].format = CT_FORMAT_COMPRESSED;
  c->value[mask].need[CT_KEEP_ROWS] = true;
  return mask;
}

static void gate_by(struct ct_net_step *s, int value, int mask) {
  struct reading r;
  const unsigned in = gated_by(s, value, &r);
  if (in == CT_TILE_INS) return;
  if (!r.otherwise) {
    s->in[in] = mask;
    return;
  }
  const unsigned more = s->tile.ins++;
  s->tile.in[more].spread = CT_SPREAD_NONE;
  s->in[more] = mask;
  for (unsigned i = 0; i < s->tile.ops; ++i)
    if (s->tile.op[i].fn == CT_TILE_SELECT && s->tile.op[i].b == in) s->tile.op[i].b = more;
}

/* What gradients read as it is in any case, in FP32 or in two ways, loses nothing. */
static void one(struct ct_compiler *c, int value) {
  struct ct_readers r = ct_readers_of(c, value);
  const bool loses = !r.need[CT_KEEP_F32] && !(r.need[CT_KEEP_ROWS] && r.need[CT_KEEP_SQUARE]);
  if (!loses || !ct_value_is_kept(c, value, &r) || !has_gates(c, value)) return;
  if (!c->options->masks_again && ct_is_made_again(c, value, &r)) return;
  const int mask = make_mask(c, value);
  if (c->error) return;
  for (size_t i = 0; i < c->steps; ++i)
    gate_by(&c->step[i], value, mask);
  r = ct_readers_of(c, value);
  if (r.first != CT_FROM_START) c->value[mask].beside = value;
}

void ct_compile_gates(struct ct_compiler *c) {
  for (size_t i = 0, values = c->values; i < values && !c->error; ++i)
    if (c->value[i].format == CT_FORMAT_COMPRESSED && !c->value[i].whole) one(c, (int)i);
}
