/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of a run: what changes from run to run, as the learning rate does, and what networks that
 * have the same programs may have for themselves, such as momentum and decay.
 */
#include <string.h>

#include "ct_compile_impl.h"
#include "ct_real.h"

/* ---- What a node asks for ------------------------------------------------------------------ */

/* Attributes by operator: ct_op_train.c has them in this order. */
enum { KIND, BASE, WARMUP, PERIOD, FACTOR, FLOOR, RATE_RUNS };
enum { SGD_MOMENTUM, SGD_DECAY, SGD_RUNS };
enum { ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, ADAM_DECAY, ADAM_DECOUPLED, ADAM_RUNS };

static bool is(const struct ct_gnode *n, const char *op) {
  return !strcmp(n->op->name, op);
}

/* The attribute that a number of an update is, or depends on; -1: it has none. */
static int attribute_of(const struct ct_gnode *n, enum ct_scalar_kind kind) {
  static const int sgd[CT_SCALAR_KINDS] = {
      [CT_SCALAR_MOMENTUM] = SGD_MOMENTUM + 1, [CT_SCALAR_DECAY] = SGD_DECAY + 1};
  static const int adam[CT_SCALAR_KINDS] = {
      [CT_SCALAR_STEP] = ADAM_BETA1 + 1,      [CT_SCALAR_ROOT] = ADAM_BETA2 + 1,
      [CT_SCALAR_BETA1] = ADAM_BETA1 + 1,     [CT_SCALAR_REST1] = ADAM_BETA1 + 1,
      [CT_SCALAR_BETA2] = ADAM_BETA2 + 1,     [CT_SCALAR_REST2] = ADAM_BETA2 + 1,
      [CT_SCALAR_EPSILON] = ADAM_EPSILON + 1, [CT_SCALAR_DECAY] = ADAM_DECAY + 1};
  return is(n, "sgd") ? sgd[kind] - 1 : is(n, "adam") ? adam[kind] - 1 : -1;
}

static bool goes_by_rate(enum ct_scalar_kind kind) {
  return kind <= CT_SCALAR_ROOT;
}

/* The node that makes an update's rate, its last input; NULL: none does. */
static const struct ct_gnode *rate_of(const ct_graph *g, const struct ct_gnode *n) {
  if (!n->inputs || !ct_has(n, n->inputs - 1)) return NULL;
  const struct ct_gtensor *t = g->tensor[n->in[n->inputs - 1]];
  const struct ct_gnode *rate = t->node < 0 ? NULL : g->node[t->node];
  return rate && is(rate, "rate") ? rate : NULL;
}

static struct ct_schedule schedule_of(const struct ct_gnode *rate) {
  return (struct ct_schedule){.rate = ct_attr(rate, BASE, 0),
                              .kind = (enum ct_schedule_kind)ct_attr_u32(rate, KIND, 0),
                              .warmup = ct_attr_u32(rate, WARMUP, 0),
                              .period = ct_attr_u32(rate, PERIOD, 0),
                              .factor = ct_attr(rate, FACTOR, 0),
                              .floor = ct_attr(rate, FLOOR, 0)};
}

/* The number of that kind that a node has; false: it has none. */
static bool scalar_of(const ct_graph *g, const struct ct_gnode *n, enum ct_scalar_kind kind,
                      struct ct_scalar *s) {
  const int attr = attribute_of(n, kind);
  *s = (struct ct_scalar){.kind = kind, .runs = 1, .node = n->index};
  if (kind == CT_SCALAR_KEEP) {
    s->runs = is(n, "accumulate") ? ct_attr_u32(n, 0, 0) : 0;
    return s->runs;
  }
  if (attr >= 0) s->value = ct_attr(n, (unsigned)attr, 0);
  if (!goes_by_rate(kind)) return attr >= 0;
  const struct ct_gnode *rate = rate_of(g, n);
  if (!rate) return false;
  s->schedule = schedule_of(rate);
  s->runs = ct_attr_u32(rate, RATE_RUNS, 0);
  return true;
}

static bool same_schedule(const struct ct_schedule *a, const struct ct_schedule *b) {
  return a->rate == b->rate && a->kind == b->kind && a->warmup == b->warmup &&
         a->period == b->period && a->factor == b->factor && a->floor == b->floor;
}

static bool same_number(const struct ct_scalar *a, const struct ct_scalar *b) {
  return a->kind == b->kind && a->value == b->value && a->runs == b->runs &&
         same_schedule(&a->schedule, &b->schedule);
}

/* ---- Registers ------------------------------------------------------------------------------ */

static const struct ct_scalar *find(const struct ct_compiled *o, const struct ct_scalar *like) {
  for (size_t i = 0; i < o->scalars; ++i)
    if (same_number(&o->scalar[i], like)) return &o->scalar[i];
  return NULL;
}

void ct_scalar_in(struct ct_compiler *c, enum ct_scalar_kind kind, const struct ct_gnode *n,
                  unsigned reg) {
  struct ct_compiled *o = c->out;
  struct ct_scalar s;
  if (!scalar_of(c->g, n, kind, &s)) {
    ct_compile_fail(c, CT_ERR_INTERNAL, "node %s has no such number of a run", n->name);
    return;
  }
  s.reg = reg;
  o->argument[reg - 1] =
      (struct ct_argument){.kind = CT_ARGUMENT_SCALAR, .at = (uint32_t)o->scalars};
  o->scalar[o->scalars++] = s;
}

unsigned ct_scalar_reg(struct ct_compiler *c, enum ct_scalar_kind kind, const struct ct_gnode *n) {
  struct ct_compiled *o = c->out;
  struct ct_scalar s;
  if (!scalar_of(c->g, n, kind, &s)) {
    ct_compile_fail(c, CT_ERR_INTERNAL, "node %s has no such number of a run", n->name);
    return 0;
  }
  const struct ct_scalar *same = find(o, &s);
  if (same) return same->reg;
  if (o->scalars == CT_SCALARS) {
    c->full = !o->fixed;
    ct_compile_miss(c, n, "the network has more than %d numbers of a run", CT_SCALARS);
    return 0;
  }
  s.reg = CT_ARG_FIRST + CT_EXTERNALS + (unsigned)o->scalars;
  o->scalar[o->scalars++] = s;
  return s.reg;
}

struct ct_number ct_number_of(struct ct_compiler *c, enum ct_scalar_kind kind,
                              const struct ct_gnode *n) {
  struct ct_scalar s;
  if (!c->out->fixed) return (struct ct_number){.reg = ct_scalar_reg(c, kind, n)};
  return (struct ct_number){.value =
                                scalar_of(c->g, n, kind, &s) ? ct_compiled_scalar(&s, 0) : 0.0f};
}

float ct_compiled_scalar(const struct ct_scalar *s, uint64_t run) {
  const uint64_t step = run / s->runs;
  const double rate = ct_schedule_rate(&s->schedule, step);
  const double part = 1 - ct_real_power(s->value, step + 1);
  switch (s->kind) {
    case CT_SCALAR_RATE:
      return (float)rate;
    case CT_SCALAR_MINUS_RATE:
      return (float)-rate;
    case CT_SCALAR_STEP:
      return (float)(rate / part);
    case CT_SCALAR_ROOT:
      return (float)(1 / part);
    case CT_SCALAR_KEEP:
      return run % s->runs == 0 ? 0.0f : 1.0f;
    case CT_SCALAR_REST1:
    case CT_SCALAR_REST2:
      return 1 - (float)s->value;
    default:
      return (float)s->value;
  }
}

void ct_compiled_update(struct ct_scalar *s, const struct ct_optimise *how) {
  s->schedule = how->schedule;
  switch (s->kind) {
    case CT_SCALAR_MOMENTUM:
      s->value = how->momentum;
      break;
    case CT_SCALAR_DECAY:
      s->value = how->weight_decay;
      break;
    case CT_SCALAR_STEP:
    case CT_SCALAR_BETA1:
    case CT_SCALAR_REST1:
      s->value = ct_adam_of(how).beta1;
      break;
    case CT_SCALAR_ROOT:
    case CT_SCALAR_BETA2:
    case CT_SCALAR_REST2:
      s->value = ct_adam_of(how).beta2;
      break;
    case CT_SCALAR_EPSILON:
      s->value = ct_adam_of(how).epsilon;
      break;
    default:
      break;
  }
}

/* ---- Numbers that an update takes ------------------------------------------------------------ */

static const char *first_wrong(const struct ct_gop *op, const double *x, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (!(x[i] >= op->attrs[i].low && x[i] <= op->attrs[i].high)) return op->attrs[i].name;
  return NULL;
}

const char *ct_compiled_wrong_schedule(const struct ct_schedule *s) {
  const double x[] = {s->kind, s->rate, s->warmup, s->period ? s->period : 1, s->factor, s->floor};
  const char *wrong = first_wrong(ct_gop_find("rate"), x, sizeof x / sizeof *x);
  return wrong || s->floor <= s->rate ? wrong : "floor";
}

static const char *wrong_in(const struct ct_scalar *s, const struct ct_optimise *how) {
  const double sgd[] = {how->momentum, how->weight_decay};
  const struct ct_adam own = ct_adam_of(how);
  const double adam[] = {own.beta1, own.beta2, own.epsilon, how->weight_decay};
  if (s->kind == CT_SCALAR_MOMENTUM) return first_wrong(ct_gop_find("sgd"), sgd, 2);
  return s->kind >= CT_SCALAR_BETA1 ? first_wrong(ct_gop_find("adam"), adam, 4) : NULL;
}

static bool decays(const struct ct_compiled *o) {
  for (size_t i = 0; i < o->scalars; ++i)
    if (o->scalar[i].kind == CT_SCALAR_DECAY) return true;
  return false;
}

const char *ct_compiled_wrong_update(const struct ct_compiled *o, const struct ct_optimise *how) {
  const char *wrong = decays(o) == (how->weight_decay != 0) ? NULL : "weight_decay";
  for (size_t i = 0; i < o->scalars && !wrong; ++i)
    wrong = wrong_in(&o->scalar[i], how);
  return wrong;
}

/* ---- Graphs that have the same programs ------------------------------------------------------ */

/* Attributes in which updates may differ. That there is no decay is part of the program. */
static bool may_differ(const struct ct_compiled *o, const struct ct_gnode *a,
                       const struct ct_gnode *b, unsigned attr) {
  if (is(a, "rate")) return attr != RATE_RUNS;
  if (o->fixed) return false;
  if (is(a, "sgd") && attr == SGD_MOMENTUM) return true;
  if (is(a, "adam") && attr <= ADAM_EPSILON) return true;
  const bool decay = (is(a, "sgd") && attr == SGD_DECAY) || (is(a, "adam") && attr == ADAM_DECAY);
  return decay && (ct_attr(a, attr, 0) == 0) == (ct_attr(b, attr, 0) == 0);
}

static bool same_attribute(const struct ct_gvalue *a, const struct ct_gvalue *b) {
  for (uint32_t i = 0; i < a->count; ++i)
    if (a->value[i] != b->value[i]) return false;
  return a->count == b->count;
}

static bool same_node(const struct ct_compiled *o, const struct ct_gnode *a,
                      const struct ct_gnode *b) {
  if (a->op != b->op || a->inputs != b->inputs || a->backward != b->backward ||
      strcmp(a->name, b->name) != 0 || memcmp(a->out, b->out, sizeof a->out) != 0)
    return false;
  if (a->inputs && memcmp(a->in, b->in, a->inputs * sizeof *a->in) != 0) return false;
  for (unsigned i = 0; i < CT_GOP_ATTRS; ++i)
    if (!same_attribute(&a->attr[i], &b->attr[i]) && !may_differ(o, a, b, i)) return false;
  return true;
}

static bool same_tensor(const struct ct_gtensor *a, const struct ct_gtensor *b) {
  return !strcmp(a->name, b->name) && ct_shape_same(&a->shape, &b->shape) &&
         a->format == b->format && a->role == b->role && a->initial == b->initial &&
         a->node == b->node && a->becomes == b->becomes;
}

/* Whether each number that node `a` may have asked for is in its register in the other graph, too.
 */
static bool same_registers(const struct ct_compiled *o, const struct ct_compiled *p,
                           const struct ct_gnode *a, const ct_graph *graph, const ct_graph *other) {
  for (unsigned k = 0; k < CT_SCALAR_KINDS; ++k) {
    struct ct_scalar s, t;
    if (!scalar_of(graph, a, (enum ct_scalar_kind)k, &s)) continue;
    const struct ct_scalar *found = find(o, &s);
    if (!found) continue;
    if (!scalar_of(other, other->node[a->index], (enum ct_scalar_kind)k, &t)) return false;
    if (!same_number(&p->scalar[found - o->scalar], &t)) return false;
  }
  return true;
}

bool ct_compiled_suits(const struct ct_compiled *o, const ct_graph *graph, const ct_graph *other) {
  if (graph->nodes != other->nodes || graph->tensors != other->tensors) return false;
  for (size_t i = 1; i <= graph->tensors; ++i)
    if (!same_tensor(graph->tensor[i], other->tensor[i])) return false;
  for (size_t i = 0; i < graph->nodes; ++i)
    if (!same_node(o, graph->node[i], other->node[i])) return false;
  struct ct_compiled p = *o;
  ct_compiled_numbers(&p, other);
  for (size_t i = 0; i < graph->nodes; ++i)
    if (!same_registers(o, &p, graph->node[i], graph, other)) return false;
  return true;
}

void ct_compiled_numbers(struct ct_compiled *o, const ct_graph *other) {
  for (size_t i = 0; i < o->scalars; ++i) {
    struct ct_scalar s;
    if (!scalar_of(other, other->node[o->scalar[i].node], o->scalar[i].kind, &s)) continue;
    s.reg = o->scalar[i].reg;
    o->scalar[i] = s;
  }
}
