/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch normalisation folded into the layer in front. The layer's node becomes the one that makes
 * folded weights and bias, the normalisation's node becomes the layer; so nothing is taken out.
 */
#include <stdlib.h>
#include <string.h>

#include "ct_op.h"

/* How often each tensor is read, for all: folding does not change that for what is asked about. */
static uint32_t *count_readers(const ct_graph *g) {
  uint32_t *count = calloc(g->tensors + 1, sizeof *count);
  for (size_t i = 0; count && i < g->nodes; ++i)
    for (unsigned k = 0; k < g->node[i]->inputs; ++k)
      ++count[g->node[i]->in[k]];
  for (size_t i = 1; count && i <= g->tensors; ++i)
    ++count[g->tensor[i]->becomes];
  return count;
}

/* The layer that a normalisation can be folded into, or NULL. */
static struct ct_gnode *layer_of(const ct_graph *g, const struct ct_gnode *norm,
                                 const uint32_t *readers) {
  if (norm->op != &ct_gop_batch_norm) return NULL;
  const struct ct_gtensor *x = g->tensor[norm->in[0]];
  if (x->node < 0 || x->role != CT_ROLE_ACTIVATION || readers[norm->in[0]] != 1) return NULL;
  struct ct_gnode *layer = g->node[x->node];
  return layer->op == &ct_gop_conv || layer->op == &ct_gop_linear ? layer : NULL;
}

/* What takes the place of the two nodes' lists and of the normalised tensor's name. */
struct folding {
  int *fold_in, *layer_in;
  char *name;
  int bias;
};

static int prepare(ct_graph *g, const struct ct_gnode *layer, struct folding *f) {
  const char *weights = g->tensor[layer->in[1]]->name;
  const size_t size = strlen(weights) + sizeof ".folded.bias";
  char *bias = malloc(size);
  *f = (struct folding){
      .fold_in = calloc(6, sizeof(int)), .layer_in = calloc(3, sizeof(int)), .name = malloc(size)};
  int err = CT_OK;
  if (!bias || !f->fold_in || !f->layer_in || !f->name) {
    err = ct_graph_fail(g, CT_ERR_MEMORY, "no memory for the graph");
  } else {
    memcpy(f->name, weights, strlen(weights));
    memcpy(f->name + strlen(weights), ".folded", sizeof ".folded");
    memcpy(bias, f->name, strlen(f->name));
    memcpy(bias + strlen(f->name), ".bias", sizeof ".bias");
    f->bias = ct_graph_tensor(g, &(struct ct_new_tensor){.name = bias, .role = CT_ROLE_ACTIVATION});
    if (f->bias < 0) err = f->bias;
  }
  free(bias);
  if (err) {
    free(f->fold_in);
    free(f->layer_in);
    free(f->name);
  }
  return err;
}

static int fold(ct_graph *g, struct ct_gnode *norm, struct ct_gnode *layer) {
  struct folding f;
  int err = prepare(g, layer, &f);
  if (err) return err;
  const int folded = layer->out[0];
  const bool has_bias = ct_has(layer, 2);
  memcpy(f.fold_in,
         (const int[]){layer->in[1], norm->in[1], norm->in[2], norm->in[3], norm->in[4],
                       has_bias ? layer->in[2] : 0},
         6 * sizeof(int));
  memcpy(f.layer_in, (const int[]){layer->in[0], folded, f.bias}, 3 * sizeof(int));
  struct ct_gtensor *t = g->tensor[folded];
  free(t->name);
  t->name = f.name;
  t->elements = 0;
  t->format = g->tensor[layer->in[1]]->format;
  g->tensor[f.bias]->node = (int)layer->index;
  free(layer->in);
  free(norm->in);
  const struct ct_gnode was = *layer, bn = *norm;
  layer->op = &ct_gop_batch_norm_fold;
  layer->in = f.fold_in;
  layer->inputs = has_bias ? 6 : 5;
  layer->out[1] = f.bias;
  layer->name = bn.name;
  memcpy(layer->attr, bn.attr, sizeof layer->attr);
  norm->op = was.op;
  norm->in = f.layer_in;
  norm->inputs = 3;
  norm->name = was.name;
  memcpy(norm->attr, was.attr, sizeof norm->attr);
  err = ct_graph_infer(g, layer);
  return err ? err : ct_graph_infer(g, norm);
}

int ct_graph_fold(ct_graph *g) {
  int err = ct_graph_open(g), count = 0;
  if (err) return err;
  if (g->differentiated)
    return ct_graph_fail(g, CT_ERR_ARG, "the graph has gradients: fold before, or do not");
  uint32_t *order;
  err = ct_graph_sort(g, &order);
  if (err) return err;
  err = ct_graph_infer_all(g, order);
  free(order);
  if (err) return err;
  uint32_t *readers = count_readers(g);
  if (!readers) return ct_graph_fail(g, CT_ERR_MEMORY, "no memory to fold the graph");
  for (size_t i = 0; i < g->nodes && !err; ++i) {
    struct ct_gnode *layer = layer_of(g, g->node[i], readers);
    if (!layer) continue;
    err = fold(g, g->node[i], layer);
    ++count;
  }
  free(readers);
  return err ? err : count;
}
