/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of weights: the rate, the factor that keeps a norm, new weights and states. */
#include <stdlib.h>

#include "ct_compile_impl.h"

enum { RATE_RUNS = 6, JOINED_WORDS = 2048 };

/* The rate is a number of the run: nothing to compute. */
void ct_lower_op_rate(struct ct_compiler *c, const struct ct_gnode *n) {
  const int v = ct_value_new(c, 1, 1);
  if (c->error) return;
  c->value[v].kind = CT_LAY_NUMBER;
  ct_value_is(c, n->out[0], v);
}

/* The sum of squares of a gradient: of its columns, then of their sums. */
static int squares_of(struct ct_compiler *c, const struct ct_gnode *n, unsigned i) {
  struct ct_sum_of sum = {.x = ct_value_in(c, n, i),
                          .less = CT_NO_VALUE,
                          .times = CT_NO_VALUE,
                          .squares = true,
                          .scale = 1};
  sum.x = ct_value_sum(c, n, &sum);
  sum.squares = false;
  sum.cols = true;
  return ct_value_sum(c, n, &sum);
}

/* The sum of single numbers, one after the other. */
static int sum_up(struct ct_compiler *c, const struct ct_gnode *n, const int *vals,
                  unsigned count) {
  int all = vals[0];
  for (unsigned i = 1; i < count && !c->error;) {
    struct ct_tiles t = ct_tiles_apart(c, n, 1, 1, false);
    unsigned sum = ct_tiles_in(&t, all);
    for (unsigned k = 1; k < CT_TILE_INS && i < count; ++k)
      sum = ct_tiles_op(&t, CT_TILE_ADD, sum, ct_tiles_in(&t, vals[i++]));
    all = ct_tiles_make(&t, sum, CT_NO_VALUE);
  }
  return all;
}

/* min(most / root(sum), 1), the sum that of all squares, gradient by gradient. */
void ct_lower_op_clip_norm(struct ct_compiler *c, const struct ct_gnode *n) {
  unsigned count = 0;
  int *squares = calloc(n->inputs, sizeof *squares);
  if (!squares) {
    ct_compile_no_memory(c);
    return;
  }
  for (unsigned i = 0; i < n->inputs && !c->error; ++i)
    if (ct_has(n, i)) squares[count++] = squares_of(c, n, i);
  const int all = c->error ? 0 : sum_up(c, n, squares, count);
  free(squares);
  if (c->error) return;
  struct ct_tiles t = ct_tiles_for(c, n, &all, 1, 3);
  const unsigned inverse = ct_tiles_op(&t, CT_TILE_RSQRT, ct_tiles_in(&t, all), 0);
  const unsigned factor = ct_tiles_axpb(&t, inverse, (float)ct_attr(n, 0, 0), 0);
  const int value = ct_value_new(c, 1, 1);
  ct_tiles_make(&t, ct_tiles_op_s(&t, CT_TILE_MIN_S, factor, 1), value);
  ct_value_is(c, n->out[0], value);
}

/* The mean of gradients so far, in the place of the one before. The first run of a step selects
 * nothing of that: times 0 an Inf or NaN in it would be there for good. */
void ct_lower_op_accumulate(struct ct_compiler *c, const struct ct_gnode *n) {
  const uint32_t runs = ct_attr_u32(n, 0, 0);
  int vals[2] = {0, ct_value_in(c, n, 1)}, like;
  if (c->error) return;
  vals[0] = ct_value_shaped(c, n->in[0], vals[1]);
  if (c->error || !ct_fit(c, n, vals, 2, &like)) return;
  struct ct_tiles t = ct_tiles_apart(c, n, c->value[like].rows, c->value[like].cols, false);
  const unsigned kept =
      ct_tiles_if(&t, ct_tiles_in(&t, vals[0]), ct_scalar_reg(c, CT_SCALAR_KEEP, n));
  const unsigned more = ct_tiles_axpb(&t, ct_tiles_in(&t, vals[1]), (float)(1.0 / runs), 0);
  ct_give(&t, n, 0, ct_tiles_op(&t, CT_TILE_ADD, kept, more), like);
}

/* The node that makes the rate which an update names; NULL: something else does, or it counts steps
 * of another length. */
static const struct ct_gnode *rate_of(struct ct_compiler *c, const struct ct_gnode *n,
                                      uint32_t runs) {
  const struct ct_gtensor *t = c->g->tensor[n->in[n->inputs - 1]];
  const struct ct_gnode *rate = t->node < 0 ? NULL : c->g->node[t->node];
  if (!rate || rate->op != ct_gop_find("rate")) {
    ct_compile_miss(c, n, "its rate (%s) is not that of a schedule", t->name);
    return NULL;
  }
  if (ct_attr_u32(rate, RATE_RUNS, 0) == runs) return rate;
  ct_compile_miss(c, n, "its steps are %u runs, those of its rate %u", runs,
                  ct_attr_u32(rate, RATE_RUNS, 0));
  return NULL;
}

/* In runs that end no step the device makes nothing of it: nobody but the weight and its states may
 * ask. */
static bool only_replaces(struct ct_compiler *c, const struct ct_gnode *n, uint32_t runs) {
  if (runs == 1) return true;
  for (unsigned i = 0; i < n->op->outputs; ++i) {
    const struct ct_gtensor *old = c->g->tensor[n->in[i ? i + 1 : 0]];
    if (c->readers[n->out[i]] == 1 && old->becomes == n->out[i]) continue;
    ct_compile_miss(c, n, "a step is %u runs, but %.60s is more than what %.60s becomes", runs,
                    c->g->tensor[n->out[i]]->name, old->name);
    return false;
  }
  return true;
}

/* The weight, its gradient, its states: all of one layout. */
static bool update_values(struct ct_compiler *c, const struct ct_gnode *n, int *vals) {
  vals[0] = ct_value_in(c, n, 0);
  for (unsigned i = 1; i < n->inputs - 1 && !c->error; ++i) {
    vals[i] = ct_value_shaped(c, n->in[i], vals[0]);
    if (c->error || vals[i] != CT_NO_VALUE) continue;
    ct_compile_miss(c, n, "its input (%s) lies in memory in another order",
                    c->g->tensor[n->in[i]]->name);
    return false;
  }
  int like;
  return !c->error && ct_fit(c, n, vals, n->inputs - 1, &like);
}

/* Whether a step reads the value. */
static bool step_reads(const struct ct_net_step *s, int value) {
  bool reads = s->x == value || s->w == value || s->dy == value || s->t == value;
  for (unsigned i = 0; i < s->tile.ins; ++i)
    reads |= s->in[i] == value;
  return reads;
}

/* The step that makes the gradient may update the weight, too, tile by tile as they leave: nobody
 * else asks for the gradient, all else is there, and nobody behind it reads what is replaced. */
static bool may_join(const struct ct_compiler *c, const struct ct_gnode *n, const int *vals) {
  const struct ct_val *g = &c->value[vals[1]];
  if (g->step == CT_FROM_START || g->part != CT_OPERAND_PRODUCT || c->readers[n->in[1]] != 1 ||
      c->options->spm_words < JOINED_WORDS)
    return false;
  const struct ct_net_step *s = &c->step[g->step];
  if (s->kind != CT_STEP_CONV_WEIGHTS || s->window.groups != 1 || s->tile.ops) return false;
  for (unsigned i = 0; i < n->inputs - 1; ++i) {
    const struct ct_val *v = &c->value[vals[i]];
    if (i == 1) continue;
    if (v->step != CT_FROM_START || v->within != CT_NO_VALUE) return false;
    for (size_t k = (size_t)g->step; k < c->steps; ++k)
      if (step_reads(&c->step[k], vals[i])) return false;
  }
  return true;
}

static struct ct_tiles update_tiles(struct ct_compiler *c, const struct ct_gnode *n,
                                    const int *vals, uint32_t runs) {
  struct ct_val *w = &c->value[vals[0]], *g = &c->value[vals[1]];
  struct ct_tiles t = {c, g->step};
  if (runs == 1 && may_join(c, n, vals)) {
    ++g->inside;
    c->step[t.step].tile.rows = w->rows;
    c->step[t.step].tile.cols = w->cols;
  } else {
    t = ct_tiles_apart(c, n, w->rows, w->cols, false);
  }
  if (!c->error) c->step[t.step].runs = runs;
  return t;
}

/* In the order of docs/numerics.md, Training. */
enum { SGD_DECAY = 1, SGD_RUNS };
void ct_lower_op_sgd(struct ct_compiler *c, const struct ct_gnode *n) {
  int vals[3] = {0};
  const uint32_t runs = ct_attr_u32(n, SGD_RUNS, 0);
  const struct ct_gnode *rate = rate_of(c, n, runs);
  if (!rate || !only_replaces(c, n, runs) || !update_values(c, n, vals)) return;
  struct ct_tiles t = update_tiles(c, n, vals, runs);
  const unsigned w = ct_tiles_in(&t, vals[0]), g = ct_tiles_in(&t, vals[1]);
  const bool decays = ct_attr(n, SGD_DECAY, 0) != 0;
  const unsigned pull = decays ? ct_tiles_scaled(&t, w, ct_number_of(c, CT_SCALAR_DECAY, n)) : 0;
  const unsigned sum = decays ? ct_tiles_op(&t, CT_TILE_ADD, pull, g) : g;
  const unsigned old = ct_tiles_in(&t, vals[2]);
  const unsigned kept = ct_tiles_scaled(&t, old, ct_number_of(c, CT_SCALAR_MOMENTUM, n));
  const unsigned v = ct_tiles_op(&t, CT_TILE_ADD, kept, sum);
  const unsigned step = ct_tiles_times(&t, v, ct_scalar_reg(c, CT_SCALAR_MINUS_RATE, n));
  ct_give(&t, n, 1, v, vals[0]);
  ct_give(&t, n, 0, ct_tiles_op(&t, CT_TILE_ADD, step, w), vals[0]);
}

enum { ADAM_DECAY = 3, ADAM_DECOUPLED, ADAM_RUNS };

/* a times the number of that kind. */
static unsigned scaled(struct ct_tiles *t, const struct ct_gnode *n, unsigned a,
                       enum ct_scalar_kind kind) {
  return ct_tiles_scaled(t, a, ct_number_of(t->c, kind, n));
}

/* Numbers of the run correct the means: the rate / (1 - beta1^t), 1 / (1 - beta2^t). */
void ct_lower_op_adam(struct ct_compiler *c, const struct ct_gnode *n) {
  int vals[4] = {0};
  const uint32_t runs = ct_attr_u32(n, ADAM_RUNS, 0);
  const struct ct_gnode *rate = rate_of(c, n, runs);
  if (!rate || !only_replaces(c, n, runs) || !update_values(c, n, vals)) return;
  const bool decays = ct_attr(n, ADAM_DECAY, 0) != 0;
  const bool apart = ct_attr(n, ADAM_DECOUPLED, 0) != 0;
  struct ct_tiles t = update_tiles(c, n, vals, runs);
  const unsigned w = ct_tiles_in(&t, vals[0]);
  unsigned g = ct_tiles_in(&t, vals[1]);
  if (decays && !apart) g = ct_tiles_op(&t, CT_TILE_ADD, g, scaled(&t, n, w, CT_SCALAR_DECAY));
  unsigned m = scaled(&t, n, ct_tiles_in(&t, vals[2]), CT_SCALAR_BETA1);
  m = ct_tiles_op(&t, CT_TILE_ADD, m, scaled(&t, n, g, CT_SCALAR_REST1));
  unsigned v = scaled(&t, n, ct_tiles_in(&t, vals[3]), CT_SCALAR_BETA2);
  const unsigned square = ct_tiles_op(&t, CT_TILE_MUL, g, g);
  v = ct_tiles_op(&t, CT_TILE_ADD, v, scaled(&t, n, square, CT_SCALAR_REST2));
  const unsigned fix = ct_scalar_reg(c, CT_SCALAR_ROOT, n);
  unsigned root = ct_tiles_op(&t, CT_TILE_SQRT, ct_tiles_times(&t, v, fix), 0);
  root = ct_tiles_plus(&t, root, ct_number_of(c, CT_SCALAR_EPSILON, n));
  unsigned step = ct_tiles_op(&t, CT_TILE_DIV, m, root);
  step = ct_tiles_times(&t, step, ct_scalar_reg(c, CT_SCALAR_STEP, n));
  if (decays && apart) {
    const unsigned shrunk = scaled(&t, n, w, CT_SCALAR_DECAY);
    const unsigned part = ct_tiles_times(&t, shrunk, ct_scalar_reg(c, CT_SCALAR_RATE, n));
    step = ct_tiles_op(&t, CT_TILE_ADD, step, part);
  }
  ct_give(&t, n, 1, m, vals[0]);
  ct_give(&t, n, 2, v, vals[0]);
  ct_give(&t, n, 0, ct_tiles_op(&t, CT_TILE_SUB, w, step), vals[0]);
}
