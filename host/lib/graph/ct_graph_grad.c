/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients: nodes are walked from the loss back, each adds what its inputs get, and what a tensor
 * gets from several nodes is summed in that order.
 */
#include <stdlib.h>

#include "ct_graph_impl.h"

/* What is known while gradients are made. */
struct back {
  ct_graph *g;
  bool *wanted; /* by tensor: something that is wanted leads to it */
  size_t tensors;
  int *sum; /* by tensor: its gradient so far, 0: none */
};

/* Marks what is wanted, then all that depends on it. */
static int mark_wanted(struct back *b, const uint32_t *order, size_t nodes, const int *wanted,
                       size_t count) {
  const ct_graph *g = b->g;
  for (size_t i = 1; i <= b->tensors && !wanted; ++i)
    b->wanted[i] = g->tensor[i]->role == CT_ROLE_WEIGHT;
  for (size_t i = 0; wanted && i < count; ++i) {
    const int err = ct_graph_has(b->g, wanted[i], "what a gradient is wanted of");
    if (err) return err;
    b->wanted[wanted[i]] = true;
  }
  for (size_t i = 0; i < nodes; ++i) {
    const struct ct_gnode *n = g->node[order[i]];
    bool depends = false;
    for (unsigned k = 0; k < n->inputs; ++k)
      depends = depends || (n->in[k] && b->wanted[n->in[k]]);
    for (unsigned k = 0; k < n->op->outputs && depends; ++k)
      b->wanted[n->out[k]] = true;
  }
  return CT_OK;
}

/* Adds one more contribution to the gradient of input i. */
static int contribute(struct back *b, const struct ct_gnode *n, unsigned i, int gradient) {
  ct_graph *g = b->g;
  int *sum = &b->sum[n->in[i]];
  if (!ct_shape_same(&g->tensor[gradient]->shape, ct_in(g, n, i)))
    return ct_graph_fail(g, CT_ERR_INTERNAL, "node %.80s (%s): the gradient of input %u is %s",
                         n->name, n->op->name, i, CT_SHAPE(&g->tensor[gradient]->shape));
  if (*sum) gradient = CT_EMIT(g, n, .op = "add", CT_IN(*sum, gradient));
  *sum = gradient;
  return gradient < 0 ? gradient : CT_OK;
}

static int walk_node(struct back *b, const struct ct_gnode *n) {
  ct_graph *g = b->g;
  int gy[CT_GOP_OUTPUTS], err = CT_OK;
  bool any = false, wants = false;
  for (unsigned k = 0; k < n->op->outputs; ++k) {
    gy[k] = b->sum[n->out[k]];
    any = any || gy[k];
  }
  for (unsigned k = 0; k < n->inputs; ++k)
    wants = wants || ct_wants(g, n, k);
  if (!any || !wants) return CT_OK;
  if (!n->op->grad) return ct_refuse(g, n, "this operator has no gradient");
  int *gx = calloc(n->inputs, sizeof *gx);
  if (!gx) return ct_graph_fail(g, CT_ERR_MEMORY, "no memory for gradients");
  n->op->grad(g, n, gy, gx);
  for (unsigned k = 0; k < n->inputs && !err; ++k)
    if (gx[k] < 0) err = gx[k];
  for (unsigned k = 0; k < n->inputs && !err; ++k)
    if (gx[k] && ct_wants(g, n, k)) err = contribute(b, n, k, gx[k]);
  free(gx);
  return err;
}

static int walk(struct back *b, const uint32_t *order, size_t nodes, int loss) {
  ct_graph *g = b->g;
  int err = CT_EMIT(g, NULL, .op = "fill",
                    CT_ATTRS(ct_attr_shape("shape", &g->tensor[loss]->shape), {"value", 1, {1}}));
  if (err < 0) return err;
  b->sum[loss] = err;
  err = CT_OK;
  for (size_t i = nodes; i-- > 0 && !err;)
    err = walk_node(b, g->node[order[i]]);
  for (size_t i = 1; i <= b->tensors && !err; ++i)
    if (b->wanted[i]) g->tensor[i]->gradient = b->sum[i];
  return err;
}

static int differentiate(ct_graph *g, int loss, const int *wanted, size_t count) {
  uint32_t *order;
  int err = ct_graph_sort(g, &order);
  if (err) return err;
  struct back b = {.g = g,
                   .tensors = g->tensors,
                   .wanted = calloc(g->tensors + 1, sizeof *b.wanted),
                   .sum = calloc(g->tensors + 1, sizeof *b.sum)};
  const size_t nodes = g->nodes;
  if (!b.wanted || !b.sum) err = ct_graph_fail(g, CT_ERR_MEMORY, "no memory for gradients");
  if (!err) err = ct_graph_infer_all(g, order);
  if (!err) err = mark_wanted(&b, order, nodes, wanted, count);
  if (!err && g->tensor[loss]->elements != 1)
    err = ct_graph_fail(g, CT_ERR_ARG, "the loss %.80s is %s, it must be a scalar",
                        g->tensor[loss]->name, CT_SHAPE(&g->tensor[loss]->shape));
  if (!err && !b.wanted[loss])
    err = ct_graph_fail(g, CT_ERR_ARG, "the loss %.80s depends on nothing that has a gradient",
                        g->tensor[loss]->name);
  g->wanted = b.wanted;
  g->backward = true;
  if (!err) err = walk(&b, order, nodes, loss);
  g->backward = false;
  g->wanted = NULL;
  free(b.wanted);
  free(b.sum);
  free(order);
  return err;
}

int ct_graph_gradients(ct_graph *g, int loss, const int *wanted, size_t count) {
  int err = ct_graph_open(g);
  if (!err) err = ct_graph_has(g, loss, "the loss");
  if (err) return err;
  if (count && !wanted) return ct_graph_fail(g, CT_ERR_ARG, "the list of tensors is NULL");
  if (g->differentiated) return ct_graph_fail(g, CT_ERR_ARG, "the graph has gradients already");
  const struct ct_mark mark = ct_graph_mark(g);
  err = differentiate(g, loss, wanted, count);
  if (err) ct_graph_rollback(g, mark);
  g->differentiated = !err;
  return err;
}

int ct_graph_gradient(ct_graph *g, int tensor) {
  if (!g) return CT_ERR_ARG;
  const int err = ct_graph_has(g, tensor, "what a gradient is asked of");
  return err ? err : g->tensor[tensor]->gradient;
}
