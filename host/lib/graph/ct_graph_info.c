/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph says of itself. */
#include <string.h>

#include "ct_graph_impl.h"

int ct_graph_find(ct_graph *g, const char *name) {
  if (!g) return CT_ERR_ARG;
  if (!name) return ct_graph_fail(g, CT_ERR_ARG, "the name is NULL");
  for (size_t i = 1; i <= g->tensors; ++i)
    if (!strcmp(g->tensor[i]->name, name)) return (int)i;
  return ct_graph_fail(g, CT_ERR_NOT_FOUND, "the graph has no tensor %.80s", name);
}

int ct_graph_tensor_info(ct_graph *g, int tensor, struct ct_tensor_info *info) {
  if (!g || !info) return CT_ERR_ARG;
  const int err = ct_graph_has(g, tensor, "what is asked about");
  if (err) return err;
  const struct ct_gtensor *t = g->tensor[tensor];
  *info = (struct ct_tensor_info){.name = t->name,
                                  .shape = t->shape,
                                  .format = t->format,
                                  .role = t->role,
                                  .initial = t->initial,
                                  .node = t->node,
                                  .gradient = t->gradient,
                                  .becomes = t->becomes,
                                  .elements = t->elements};
  return CT_OK;
}

static int need_node(ct_graph *g, size_t index) {
  if (!g) return CT_ERR_ARG;
  return index < g->nodes ? CT_OK
                          : ct_graph_fail(g, CT_ERR_ARG, "there is no node %zu: the graph has %zu",
                                          index, g->nodes);
}

int ct_graph_node_info(ct_graph *g, size_t index, struct ct_node_info *info) {
  const int err = info ? need_node(g, index) : CT_ERR_ARG;
  if (err) return err;
  const struct ct_gnode *n = g->node[index];
  *info = (struct ct_node_info){.op = n->op->name,
                                .name = n->name,
                                .inputs = n->in,
                                .outputs = n->out,
                                .input_count = n->inputs,
                                .output_count = n->op->outputs,
                                .macs = ct_node_macs(g, n),
                                .backward = n->backward};
  return CT_OK;
}

int ct_graph_node_attr(ct_graph *g, size_t index, const char *name, struct ct_attr *attr) {
  const int err = name && attr ? need_node(g, index) : CT_ERR_ARG;
  if (err) return err;
  const struct ct_gnode *n = g->node[index];
  for (unsigned i = 0; n->op->attrs && n->op->attrs[i].name; ++i)
    if (!strcmp(n->op->attrs[i].name, name)) {
      *attr = ct_attr_copy(n, i);
      return CT_OK;
    }
  return ct_graph_fail(g, CT_ERR_NOT_FOUND, "node %.80s (%s): it has no attribute %.40s", n->name,
                       n->op->name, name);
}

uint64_t ct_node_macs(const ct_graph *g, const struct ct_gnode *n) {
  for (unsigned i = 0; i < n->inputs; ++i)
    if (n->in[i] && !g->tensor[n->in[i]]->elements) return 0;
  if (!g->tensor[n->out[0]]->elements) return 0;
  return n->op->macs ? n->op->macs(g, n) : 0;
}

uint64_t ct_graph_macs(const ct_graph *g) {
  uint64_t macs = 0;
  for (size_t i = 0; g && i < g->nodes; ++i) {
    const uint64_t more = ct_node_macs(g, g->node[i]);
    macs = macs > UINT64_MAX - more ? UINT64_MAX : macs + more;
  }
  return macs;
}

int ct_graph_info(ct_graph *g, struct ct_graph_info *info) {
  if (!g || !info) return CT_ERR_ARG;
  *info = (struct ct_graph_info){
      .nodes = g->nodes, .tensors = g->tensors, .macs = ct_graph_macs(g), .checked = g->checked};
  for (size_t i = 1; i <= g->tensors; ++i) {
    if (g->tensor[i]->role == CT_ROLE_WEIGHT) info->weights += g->tensor[i]->elements;
    if (g->tensor[i]->role == CT_ROLE_STATE) info->states += g->tensor[i]->elements;
  }
  return CT_OK;
}
