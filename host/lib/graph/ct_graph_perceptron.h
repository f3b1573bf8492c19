/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a graph is a perceptron: what ct_graph_mlp() makes, for answers, or with what
 * ct_graph_optimise() adds for SGD. */
#ifndef CT_GRAPH_PERCEPTRON_H
#define CT_GRAPH_PERCEPTRON_H

#include "coltrain/coltrain.h"
#include "coltrain/graph.h"

/* Layer l maps width[l] inputs to width[l + 1] outputs. Numbers are those of tensors; what only
 * training has is 0 in a graph for answers. */
struct ct_perceptron {
  uint32_t layers, batch, width[CT_MAX_LAYERS + 1];
  bool trains;
  bool quiet;  /* of a step: nobody asks for logits */
  int x, flat; /* the input; what the first layer reads: it, or all numbers of each row of it */
  int y, logits, loss;
  int w[CT_MAX_LAYERS], b[CT_MAX_LAYERS];   /* weights, biases ... */
  int vw[CT_MAX_LAYERS], vb[CT_MAX_LAYERS]; /* ... and their momentum */
  struct ct_schedule schedule;
  double momentum, decay;
};

/* 1: the checked graph computes that, node by node, and nothing else: no output but logits and
 * loss, and all weights are trained, each run being a step, or none; and no tensor is to be kept in
 * a format of its own. What things are called does not matter, nor does what nobody needs. 0: it
 * does not. Negative: an error. */
int ct_graph_perceptron(const ct_graph *graph, struct ct_perceptron *p);

/* Such a graph, checked, of layers, widths, batch, and what training is to be like; *graph is NULL
 * on failure. */
int ct_graph_perceptron_make(const struct ct_perceptron *p, ct_graph **graph);

/* Whether a graph that takes no steps begins with a perceptron of two layers or more, whose numbers
 * nobody else reads: the one of most layers, logits being what it gives to the rest. */
bool ct_graph_front(const ct_graph *graph, struct ct_perceptron *p);

#endif
