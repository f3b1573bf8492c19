/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all operators, and what several of them share. */
#include <stdio.h>
#include <string.h>

#include "ct_op.h"

#define CT_GOP_ADDRESS(name) &ct_gop_##name,
const struct ct_gop *const ct_gops[] = {CT_GOPS(CT_GOP_ADDRESS)};

size_t ct_gop_count(void) {
  return sizeof ct_gops / sizeof *ct_gops; /* NOLINT(bugprone-sizeof-expression): of pointers */
}

const char *ct_graph_op_name(size_t index) {
  return index < ct_gop_count() ? ct_gops[index]->name : NULL;
}

const struct ct_gop *ct_gop_find(const char *name) {
  for (size_t i = 0; i < ct_gop_count(); ++i)
    if (!strcmp(ct_gops[i]->name, name)) return ct_gops[i];
  return NULL;
}

const char *ct_graph_op_attr(const char *op, size_t index) {
  const struct ct_gop *known = op ? ct_gop_find(op) : NULL;
  const struct ct_attr_rule *rule = known ? known->attrs : NULL;
  while (rule && rule->name && index) {
    ++rule;
    --index;
  }
  return rule ? rule->name : NULL;
}

/* ---- Shapes -------------------------------------------------------------------------------- */

int ct_need_shape(ct_graph *g, const struct ct_gnode *n, unsigned i, const struct ct_shape *want,
                  const char *what) {
  if (!ct_has(n, i) || ct_shape_same(ct_in(g, n, i), want)) return CT_OK;
  return ct_refuse(g, n, "%s (%.80s) is %s, it must be %s", what, g->tensor[n->in[i]]->name,
                   CT_SHAPE(ct_in(g, n, i)), CT_SHAPE(want));
}

int ct_shape_of_first(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  out[0] = *ct_in(g, n, 0);
  return CT_OK;
}

int ct_shape_scalar(ct_graph *g, const struct ct_gnode *n, struct ct_shape *out) {
  (void)g;
  (void)n;
  out[0] = (struct ct_shape){1, {1}};
  return CT_OK;
}

/* ---- Adding nodes -------------------------------------------------------------------------- */

bool ct_wants(const ct_graph *g, const struct ct_gnode *n, unsigned i) {
  return ct_has(n, i) && g->wanted && g->wanted[n->in[i]];
}

int ct_emit(ct_graph *g, const struct ct_gnode *n, const struct ct_emit *e) {
  char name[160];
  snprintf(name, sizeof name, "%.80s/%.40s%zu", n ? n->name : "training", e->op, g->nodes);
  return ct_graph_add(g, &(struct ct_new_node){.op = e->op,
                                               .name = name,
                                               .inputs = e->in,
                                               .input_count = e->inputs,
                                               .attrs = e->attrs,
                                               .attr_count = e->attr_count});
}

struct ct_attr ct_attr_shape(const char *name, const struct ct_shape *s) {
  struct ct_attr a = {.name = name, .count = s->dims};
  for (uint32_t i = 0; i < s->dims; ++i)
    a.value[i] = s->dim[i];
  return a;
}

struct ct_attr ct_attr_copy(const struct ct_gnode *n, unsigned attr) {
  struct ct_attr a = {.name = n->op->attrs[attr].name, .count = n->attr[attr].count};
  memcpy(a.value, n->attr[attr].value, sizeof a.value);
  return a;
}

int ct_emit_sum_to(ct_graph *g, const struct ct_gnode *n, int x, const struct ct_shape *to) {
  if (x < 0 || ct_shape_same(&g->tensor[x]->shape, to)) return x;
  return CT_EMIT(g, n, .op = "sum_to", CT_IN(x), CT_ATTRS(ct_attr_shape("shape", to)));
}

int ct_emit_reshape(ct_graph *g, const struct ct_gnode *n, int x, const struct ct_shape *to) {
  if (x < 0 || ct_shape_same(&g->tensor[x]->shape, to)) return x;
  return CT_EMIT(g, n, .op = "reshape", CT_IN(x), CT_ATTRS(ct_attr_shape("shape", to)));
}
