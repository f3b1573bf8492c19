/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What answers take of a graph that is trained: the nodes in front of an output, for another number
 * of rows. Tensors and nodes come in the order in which the graph has them, so a network by name
 * gives the very graph that it is without training.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_op.h"

struct taking {
  const ct_graph *from;
  ct_graph *to;
  uint32_t was, batch; /* rows there and here */
  bool *needed;        /* by tensor of `from` */
  int *now;            /* its number in `to`; 0: not there yet */
};

/* ---- What is needed ------------------------------------------------------------------------ */

/* The tensors that a tensor depends on. A node that belongs to gradients or updates is refused. */
static int mark(struct taking *t, int tensor, int *stack) {
  size_t depth = 0;
  t->needed[tensor] = true;
  stack[depth++] = tensor;
  while (depth) {
    const struct ct_gtensor *x = t->from->tensor[stack[--depth]];
    const struct ct_gnode *n = x->node >= 0 ? t->from->node[x->node] : NULL;
    if (n && n->backward)
      return ct_graph_fail(t->to, CT_ERR_ARG,
                           "tensor %.80s is made by gradients or updates: it is no answer",
                           x->name);
    for (unsigned i = 0; n && i < n->inputs; ++i) {
      const int in = n->in[i];
      if (in <= 0 || t->needed[in]) continue;
      t->needed[in] = true;
      stack[depth++] = in;
    }
  }
  return CT_OK;
}

/* ---- Tensors and nodes --------------------------------------------------------------------- */

/* A tensor from outside; one that a node makes later: without its shape. */
static int declare(struct taking *t, int tensor) {
  const struct ct_gtensor *x = t->from->tensor[tensor];
  struct ct_new_tensor new = {
      .name = x->name, .format = x->format, .role = x->role, .initial = x->initial};
  if (x->node < 0) new.shape = x->shape;
  if (x->node >= 0) new.role = CT_ROLE_ACTIVATION;
  if (x->node < 0 && (x->role == CT_ROLE_INPUT || x->role == CT_ROLE_LABEL))
    new.shape.dim[0] = t->batch;
  return t->now[tensor] = ct_graph_tensor(t->to, &new);
}

/* Shapes among attributes have the rows in front. */
static struct ct_attr attr_of(const struct taking *t, const struct ct_gnode *n, unsigned i) {
  struct ct_attr a = {.name = n->op->attrs[i].name, .count = n->attr[i].count};
  memcpy(a.value, n->attr[i].value, sizeof a.value);
  if (!strcmp(a.name, "shape") && a.count > 1 && a.value[0] == (double)t->was)
    a.value[0] = t->batch;
  return a;
}

static unsigned attrs_of(const struct taking *t, const struct ct_gnode *n, struct ct_attr *attrs) {
  unsigned count = 0;
  const bool norm = n->op == &ct_gop_batch_norm_train;
  for (unsigned i = 0; n->op->attrs && n->op->attrs[i].name; ++i)
    if (!norm || !strcmp(n->op->attrs[i].name, "epsilon")) attrs[count++] = attr_of(t, n, i);
  return count;
}

/* Whether a node's output has the name that it gets if nobody gives it one. */
static bool has_own_name(const struct taking *t, const struct ct_gnode *n) {
  return !strcmp(t->from->tensor[n->out[0]]->name, n->name);
}

/* A node, with outputs that are declared, if one of them has been or is called otherwise. */
static int add_node(struct taking *t, const struct ct_gnode *n, const int *in) {
  struct ct_attr attrs[CT_GOP_ATTRS];
  const bool norm = n->op == &ct_gop_batch_norm_train;
  const unsigned outputs = norm ? 1 : n->op->outputs;
  int out[CT_GOP_OUTPUTS];
  bool declared = !has_own_name(t, n);
  for (unsigned i = 0; i < outputs; ++i)
    declared = declared || t->now[n->out[i]] > 0;
  for (unsigned i = 0; i < outputs && declared; ++i) {
    if (!t->now[n->out[i]] && declare(t, n->out[i]) < 0) return t->now[n->out[i]];
    out[i] = t->now[n->out[i]];
  }
  const int first =
      ct_graph_add(t->to, &(struct ct_new_node){.op = norm ? ct_gop_batch_norm.name : n->op->name,
                                                .name = n->name,
                                                .inputs = in,
                                                .input_count = n->inputs,
                                                .outputs = declared ? out : NULL,
                                                .attrs = attrs,
                                                .attr_count = attrs_of(t, n, attrs)});
  for (unsigned i = 0; i < outputs && first > 0 && !declared; ++i) {
    t->now[n->out[i]] = first + (int)i;
    ct_graph_set_format(t->to, first + (int)i, t->from->tensor[n->out[i]]->format);
  }
  return first;
}

static int take_node(struct taking *t, const struct ct_gnode *n) {
  int *in = calloc(n->inputs + 1, sizeof *in), err = CT_OK;
  if (!in) return ct_graph_fail(t->to, CT_ERR_MEMORY, "no memory for the graph");
  for (unsigned i = 0; i < n->inputs && err >= 0; ++i) {
    if (n->in[i] > 0 && !t->now[n->in[i]]) err = declare(t, n->in[i]);
    in[i] = n->in[i] > 0 ? t->now[n->in[i]] : 0;
  }
  if (err >= 0 && n->op == &ct_gop_dropout)
    t->now[n->out[0]] = in[0];
  else if (err >= 0)
    err = add_node(t, n, in);
  free(in);
  return err < 0 ? err : CT_OK;
}

static int take_all(struct taking *t) {
  int err = CT_OK;
  bool *taken = calloc(t->from->nodes + 1, 1);
  if (!taken) return ct_graph_fail(t->to, CT_ERR_MEMORY, "no memory for the graph");
  for (int i = 1; i <= (int)t->from->tensors && err >= 0; ++i) {
    const struct ct_gtensor *x = t->from->tensor[i];
    if (!t->needed[i]) continue;
    if (x->node < 0 && !t->now[i]) err = declare(t, i);
    if (x->node < 0 || taken[x->node]) continue;
    taken[x->node] = true;
    err = take_node(t, t->from->node[x->node]);
  }
  free(taken);
  return err < 0 ? err : CT_OK;
}

/* ---- The call ------------------------------------------------------------------------------ */

/* The rows of the first input; 0: it has none. */
static uint32_t rows_of(const ct_graph *g) {
  for (size_t i = 1; i <= g->tensors; ++i)
    if (g->tensor[i]->role == CT_ROLE_INPUT && g->tensor[i]->shape.dims)
      return g->tensor[i]->shape.dim[0];
  return 0;
}

int ct_graph_answers(ct_graph *g, const ct_graph *trained, int output, uint32_t batch) {
  int err = ct_graph_open(g);
  if (err) return err;
  if (!trained) return ct_graph_fail(g, CT_ERR_ARG, "the graph that is trained is NULL");
  if (g->tensors || g->nodes) return ct_graph_fail(g, CT_ERR_ARG, "the graph is not empty");
  if (output < 1 || (size_t)output > trained->tensors)
    return ct_graph_fail(g, CT_ERR_ARG, "the graph that is trained has no tensor %d", output);
  if (batch < 1 || batch > CT_GRAPH_MOST_DIM)
    return ct_graph_fail(g, CT_ERR_ARG, "%u rows: 1..%d", batch, CT_GRAPH_MOST_DIM);
  struct taking t = {trained, g, rows_of(trained), batch, NULL, NULL};
  t.needed = calloc(trained->tensors + 1, 1);
  t.now = calloc(trained->tensors + 1, sizeof *t.now);
  int *stack = calloc(trained->tensors + 1, sizeof *stack);
  err =
      t.needed && t.now && stack ? CT_OK : ct_graph_fail(g, CT_ERR_MEMORY, "no memory for a graph");
  if (!err) err = mark(&t, output, stack);
  if (!err) err = take_all(&t);
  if (!err) err = ct_graph_result(g, t.now[output]);
  if (err < 0) ct_graph_rollback(g, (struct ct_mark){0, 0});
  free(stack);
  free(t.needed);
  free(t.now);
  return err < 0 ? err : CT_OK;
}
