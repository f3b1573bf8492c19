/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bound of a value that is kept compressed follows: the gradients of weights that are made
 * of it, or of what is made of it again. The host sets the bound by sums that kernels make in runs
 * that look: of the squares of their other operand, of the momentum's magnitudes, and of the
 * value's own numbers. If gradients make anything else of the value, it has no bound.
 */
#include <string.h>

#include "coltrain/coltrain.h"
#include "ct_compile_impl.h"

/* What updates a weight from its gradient and momentum, or mean; the state that has these; 0: none.
 * gradient: the weight's. */
static int momentum_of(const struct ct_compiler *c, int gradient) {
  enum { AT = 2 };
  for (size_t t = 1; t <= c->g->tensors; ++t) {
    const struct ct_gtensor *w = c->g->tensor[t];
    const int by = w->becomes ? c->g->tensor[w->becomes]->node : -1;
    if (w->role != CT_ROLE_WEIGHT || w->gradient != gradient || by < 0) continue;
    const struct ct_gnode *n = c->g->node[by];
    if (strcmp(n->op->name, "sgd") != 0 && strcmp(n->op->name, "adam") != 0) continue;
    if (n->in[0] == (int)t && n->inputs > AT) return n->in[AT];
  }
  return 0;
}

/* A row for the host, which is the value's number until places are known. */
static struct ct_mat row_for_host(struct ct_compiler *c, uint32_t cols, int *value) {
  *value = ct_value_new(c, 1, cols);
  if (c->error) return (struct ct_mat){.rows = 0};
  ct_value_for_host(c, *value);
  return (struct ct_mat){.rows = 1, .cols = cols, .keep[CT_KEEP_F32] = {.at = (uint32_t)*value}};
}

/* A value is summed as `how` says, in runs that look. */
static struct ct_net_step *add_look(struct ct_compiler *c, const struct ct_gnode *n, int order,
                                    int value, struct ct_sum_rows how) {
  struct ct_net_step *s = ct_step_between(c, CT_STEP_SUM_ROWS, n, order);
  s->again = s->looks = true;
  s->x = value;
  s->sum = how;
  return s;
}

/* The squares of delta, which is there behind step `at`, are summed for the host. */
static void add_sum(struct ct_compiler *c, struct ct_kept *k, size_t at, int delta,
                    struct ct_kept_sum of) {
  int sum;
  of.delta = row_for_host(c, c->value[delta].cols, &sum);
  if (c->error) return;
  struct ct_net_step *s = add_look(c, c->step[at].node, c->step[at].order + 1, delta,
                                   (struct ct_sum_rows){.squares = true, .scale = 1});
  s->y = ct_step_makes(c, s, sum);
  k->sum[k->sums++] = of;
}

/* A weight's gradient from the value and another one. */
static void add_product(struct ct_compiler *c, struct ct_kept *k, size_t i) {
  const int gradient = c->step[i].node->out[0];
  add_sum(c, k, i, c->step[i].dy, (struct ct_kept_sum){.momentum = momentum_of(c, gradient)});
}

/* The gradient of what normalises; CT_NO_VALUE: it has none, or its scale no momentum. */
static int delta_of(const struct ct_compiler *c, const struct ct_gnode *norm) {
  const int delta = c->value_of[c->g->tensor[norm->out[0]]->gradient];
  const int scale = c->g->tensor[norm->in[1]]->gradient;
  if (delta == CT_NO_VALUE || c->value[delta].step == CT_FROM_START || scale <= 0)
    return CT_NO_VALUE;
  return momentum_of(c, scale) ? delta : CT_NO_VALUE;
}

/* The gradient of a scale from the value, which the node normalises, and its result's gradient. */
static void add_norm(struct ct_compiler *c, struct ct_kept *k, const struct ct_gnode *n) {
  const int delta = delta_of(c, n);
  if (delta == CT_NO_VALUE) return;
  add_sum(c, k, (size_t)c->value[delta].step, delta,
          (struct ct_kept_sum){.momentum = momentum_of(c, c->g->tensor[n->in[1]]->gradient),
                               .variance = n->in[4],
                               .epsilon = ct_attr(n, CT_NORM_EPSILON, 0)});
}

/* The node that normalises the value over the batch; NULL: none does. */
static const struct ct_gnode *norm_of(const struct ct_compiler *c, int value) {
  for (size_t i = 0; i < c->g->nodes; ++i) {
    const struct ct_gnode *n = c->g->node[i];
    if (!strcmp(n->op->name, "batch_norm_train") && c->value_of[n->in[0]] == value) return n;
  }
  return NULL;
}

/* What is made of it again, by step `again`, makes gradients: its error becomes that one's. */
void ct_bound_derived(struct ct_compiler *c, int value, size_t again) {
  const struct ct_gnode *norm = norm_of(c, value);
  struct ct_kept *k = &c->out->kept[c->out->kepts - 1];
  for (size_t i = 0, steps = c->steps; i < steps && !c->error; ++i) {
    const struct ct_net_step *s = &c->step[i];
    if (s->kind != CT_STEP_CONV_WEIGHTS || c->value[s->x].step != (int)again) continue;
    add_sum(c, k, i, s->dy,
            (struct ct_kept_sum){.momentum = momentum_of(c, s->node->out[0]),
                                 .derived = true,
                                 .through = norm ? norm->in[1] : 0,
                                 .divisor = norm ? norm->in[4] : 0,
                                 .epsilon = norm ? ct_attr(norm, CT_NORM_EPSILON, 0) : 0});
  }
}

/* What nothing is made of but means or maxima, as behind a ReLU that only says what it let through,
 * is kept as closely as these. */
void ct_bound_means(struct ct_compiler *c, int value, struct ct_kept *k) {
  for (size_t i = 0; i < c->steps; ++i) {
    const struct ct_net_step *s = &c->step[i];
    const bool mean = s->kind == CT_STEP_POOL ||
                      (s->kind == CT_STEP_SUM_ROWS && s->sum.segment && !s->sum.squares);
    if (ct_step_is_back(s) || !mean || s->x != value) continue;
    for (const struct ct_kept *y = c->out->kept; y < k; ++y)
      for (unsigned j = 0; y->value == s->y && j < y->sums; ++j) {
        if (k->sums == CT_KEPT_SUMS) {
          k->sums = 0;
          return;
        }
        k->sum[k->sums] = y->sum[j];
        k->sum[k->sums++].derived = true;
      }
  }
}

/* What the bound follows: the gradients of weights that are made of the value. */
void ct_bound_sums(struct ct_compiler *c, int value, int copy) {
  struct ct_kept *k = &c->out->kept[c->out->kepts - 1];
  for (size_t i = 0, steps = c->steps; i < steps && !c->error; ++i)
    if (c->step[i].kind == CT_STEP_CONV_WEIGHTS && c->step[i].x == copy) add_product(c, k, i);
  const struct ct_gnode *norm = norm_of(c, value);
  if (norm && !c->error) add_norm(c, k, norm);
}

/* ---- What else the host need not read ------------------------------------------------------ */

/* These steps have even orders. What may join a step has the odd one in front of it: so none comes
 * between the two. */

/* The step that makes what a state becomes; NULL. */
static const struct ct_net_step *update_of(const struct ct_compiler *c, int state) {
  for (size_t i = 0; i < c->values; ++i)
    if (c->value[i].same == state && c->value[i].step != CT_FROM_START)
      return &c->step[c->value[i].step];
  return NULL;
}

/* The same momentum is summed once. */
static const struct ct_mat *magnitudes_of(const struct ct_compiler *c, int momentum) {
  const struct ct_compiled *o = c->out;
  for (size_t i = 0; i < o->kepts; ++i)
    for (unsigned j = 0; j < o->kept[i].sums; ++j)
      if (o->kept[i].sum[j].momentum == momentum && o->kept[i].sum[j].magnitudes.cols)
        return &o->kept[i].sum[j].magnitudes;
  return NULL;
}

/* Behind its update, whose order is even. */
static void add_magnitudes(struct ct_compiler *c, struct ct_kept_sum *sum) {
  const struct ct_mat *there = magnitudes_of(c, sum->momentum);
  const int value = c->value_of[sum->momentum];
  const struct ct_net_step *by = value == CT_NO_VALUE ? NULL : update_of(c, value);
  if (there) sum->magnitudes = *there;
  if (there || !by || !c->value[value].need[CT_KEEP_F32]) return;
  const struct ct_gnode *n = by->node;
  const int order = by->order;
  int row;
  const struct ct_mat made = row_for_host(c, c->value[value].cols, &row);
  if (c->error) return;
  struct ct_net_step *s =
      add_look(c, n, order, value, (struct ct_sum_rows){.magnitudes = true, .scale = 1});
  s->y = ct_step_makes(c, s, row);
  sum->magnitudes = made;
}

/* What can be counted: groups, in front of all who read them, or what a step unpacks, behind the
 * one that reads it. That lies in memory where a map is no whole index units: nothing joins there.
 * CT_NO_VALUE: nothing. */
static int counted(struct ct_compiler *c, int value, int index, int *order) {
  if (ct_reads_groups(c->value[value].rows)) {
    const bool can = *order != CT_FROM_START && ct_can_sum_groups(c, value);
    return can ? ct_value_of_groups(c, value, index) : CT_NO_VALUE;
  }
  for (size_t i = 0; i < c->steps; ++i) {
    if (c->step[i].kind != CT_STEP_UNPACK || c->step[i].x != index) continue;
    *order = ct_even(c->step[i].order + 2);
    return c->step[i].y;
  }
  return CT_NO_VALUE;
}

static void add_counts(struct ct_compiler *c, int value, int index, int order) {
  struct ct_kept *k = &c->out->kept[c->out->kepts - 1];
  const struct ct_gnode *n = c->step[c->value[value].step].node;
  int zeros, largest;
  const int what = counted(c, value, index, &order);
  if (c->error || what == CT_NO_VALUE) return;
  const struct ct_mat rows[2] = {row_for_host(c, k->cols, &zeros),
                                 row_for_host(c, k->cols, &largest)};
  if (c->error) return;
  struct ct_net_step *s =
      add_look(c, n, order, what, (struct ct_sum_rows){.zeros = true, .scale = 1});
  s->y = ct_step_makes(c, s, zeros);
  s->dx = ct_step_makes(c, s, largest);
  k->zeros = rows[0];
  k->largest = rows[1];
}

void ct_bound_counts(struct ct_compiler *c, int value, int index, int order) {
  struct ct_kept *k = &c->out->kept[c->out->kepts - 1];
  for (unsigned j = 0; j < k->sums && !c->error; ++j)
    add_magnitudes(c, &k->sum[j]);
  if (k->sums && !c->error) add_counts(c, value, index, order);
}

/* ---- Whether a bound can follow ------------------------------------------------------------ */

static bool is_one_of(const struct ct_gnode *n, const char *const *ops) {
  for (; *ops; ++ops)
    if (!strcmp(n->op->name, *ops)) return true;
  return false;
}

static bool node_reads(const struct ct_compiler *c, const struct ct_gnode *n, int value) {
  for (uint32_t i = 0; i < n->inputs; ++i)
    if (n->in[i] > 0 && c->value_of[n->in[i]] == value) return true;
  return false;
}

/* Whether a node of the gradients makes of the value what its bound follows, which it counts, or
 * nothing: a mask, another name. Of products steps tell. */
static bool node_follows(const struct ct_compiler *c, const struct ct_gnode *n, int value,
                         const struct ct_gnode *norm, unsigned *sums) {
  static const char *const known[] = {
      "relu_grad",        "leaky_relu_grad", "clip_grad", "max_pool_grad",
      "conv_weight_grad", "matmul",          NULL};
  static const char *const names[] = {"reshape", "flatten", NULL};
  if (is_one_of(n, known)) return true;
  if (is_one_of(n, names)) return c->value_of[n->out[0]] == value;
  if (strcmp(n->op->name, "batch_norm_grad") != 0 || !norm || n->in[2] != norm->in[1]) return false;
  ++*sums;
  return delta_of(c, norm) != CT_NO_VALUE;
}

/* So does a step: a product is one for a weight's gradient. */
static bool step_follows(const struct ct_compiler *c, const struct ct_net_step *s, int value,
                         unsigned *sums) {
  const bool product = s->kind == CT_STEP_CONV_WEIGHTS && s->x == value;
  const bool other = s->w == value || s->dy == value || (s->x == value && !product);
  if (s->kind == CT_STEP_SUM_ROWS || s->kind == CT_STEP_POOL_BACK) return true;
  *sums += product;
  return !other && (!product || momentum_of(c, s->node->out[0]));
}

/* So do all that read the value, which is `of` or that again. norm: the node whose scale's gradient
 * may be made of it. */
static bool follow(struct ct_compiler *c, int value, int of, const struct ct_gnode *norm,
                   unsigned *sums) {
  for (size_t i = 0; i < c->g->nodes; ++i) {
    const struct ct_gnode *n = c->g->node[i];
    if (n->backward && node_reads(c, n, of) && !node_follows(c, n, of, norm, sums)) return false;
  }
  for (size_t i = 0; i < c->steps; ++i) {
    struct ct_net_step *s = &c->step[i];
    if (!ct_step_is_back(s) || ct_step_makes_again(s) || !ct_step_reads_instead(s, value, value))
      continue;
    if (!step_follows(c, s, value, sums)) return false;
  }
  return true;
}

/* Whether a bound can follow all that gradients make of a value, and of what is made of it again: a
 * value that something else is made of has none. */
bool ct_bound_follows(struct ct_compiler *c, int value) {
  unsigned sums = 0;
  if (!follow(c, value, value, norm_of(c, value), &sums)) return false;
  for (size_t i = 0; i < c->values; ++i) {
    const struct ct_val *v = &c->value[i];
    if (v->again == CT_NO_VALUE || v->step == CT_FROM_START) continue;
    struct ct_net_step *s = &c->step[v->step];
    if (ct_step_makes_again(s) && ct_step_reads_instead(s, value, value) &&
        !follow(c, (int)i, v->again, NULL, &sums))
      return false;
  }
  return sums <= CT_KEPT_SUMS;
}
